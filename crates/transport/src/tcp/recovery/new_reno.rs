//! NewReno: fast recovery without SACK (RFC 6582, with its "impatient" timer).

use weft_packet::Packet;

use super::dupack::Counting;
use crate::Outbox;
use crate::tcp::Tcp;
use crate::tcp::sender::{Sender, SenderFlags};

/// RFC 6582.
pub(super) struct NewReno;

impl Counting for NewReno {
    const SENDS_ON_DUPLICATES: bool = false;

    #[inline]
    fn take(_: &mut Sender, _: &Packet) -> bool {
        true
    }

    /// RFC 6582 §3.2 step 2: more than recover is acknowledged. Below that, the duplicates may come
    /// from segments that were retransmitted in vain.
    fn may_enter(sender: &Sender) -> bool {
        sender.una > sender.recover
    }

    fn first_is_lost(_: &Sender, _: &Tcp) -> bool {
        false
    }

    /// RFC 5681 §3.2 step 3: the segments that left the network.
    fn begin(sender: &mut Sender, tcp: &Tcp) {
        sender.window.cwnd += f64::from(tcp.dup_ack_threshold);
    }

    /// RFC 5681 §3.2 step 4: a segment has left the network.
    fn on_duplicate(sender: &mut Sender) {
        sender.window.cwnd += 1.0;
    }

    /// The next hole. Deflates by what left, and adds back one for the retransmission.
    fn on_partial_ack(sender: &mut Sender, tcp: &Tcp, acked: u32, out: &mut impl Outbox) -> bool {
        sender.window.cwnd = (sender.window.cwnd - f64::from(acked)).max(0.0) + 1.0;
        sender.transmit(tcp, sender.una, out);
        // RFC 6582 §3.2 step 3: only the first partial acknowledgement restarts the timer.
        let is_first = !sender.facts.has(SenderFlags::PARTIAL_SEEN);
        sender.facts.set(SenderFlags::PARTIAL_SEEN, true);
        is_first
    }

    /// RFC 6582 §3.2 step 3, first option: no burst when little is outstanding.
    fn end(sender: &mut Sender) {
        let flight = f64::from(sender.next - sender.una);
        sender.window.cwnd = sender.window.ssthresh.min(flight.max(1.0) + 1.0);
    }
}
