//! Swift (Kumar et al., SIGCOMM 2020): delays as the signal of congestion.
//!
//! - The window follows the delay of each packet's round trip (`congestion/swift.rs`), apart for
//!   the fabric and for the far end.
//! - What is lost is found as IRN finds it: selective repeat, one answer a packet.
//!
//! What a host can see, and what this takes for it:
//! - A round trip is from when the card sends a packet until it gets the answer. Of it the far end
//!   took as long as the answer waited in its host's queue, which the answer says.
//! - Hops are read off the TTL in the paper. Here their number is a key, the same for all flows.

mod config;
mod receiver;
mod sender;

pub use config::SwiftConfig;
pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::Packet;
use weft_units::{Span, Time};

use crate::congestion::swift::Rules;
use crate::rdma::wire::Wire;
use crate::{
    Counted, Delivery, FlowSize, Outbox, Protocol, Pull, ReceiverStats, Segmentation, SenderState,
    SenderStats, SinglePath, WindowState, Written,
};

/// Swift with checked parameters: made by [`SwiftConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct SwiftTransport {
    pub(crate) wire: Wire,
    pub(crate) rules: Rules,
    pub(crate) rto: Span,
}

impl Protocol for SwiftTransport {
    type Sender = Sender;
    type Receiver = Receiver;

    #[inline]
    fn segmentation(&self) -> Segmentation {
        self.wire.segmentation()
    }

    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        None
    }

    #[inline]
    fn is_rnic_scheduled(&self) -> bool {
        true
    }

    fn takes_writes(&self) -> bool {
        true
    }

    fn limit(&self, sender: &mut Sender, written: Written) {
        sender.outgo.limit(written);
    }

    fn uses_ecn(&self) -> bool {
        false
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(self, size)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(size)
    }

    fn finished_receiver(&self, size: FlowSize) -> Option<Receiver> {
        Some(Receiver::finished(size))
    }

    fn sender_held_until(&self, sender: &Sender, now: Time) -> Time {
        sender.gate(now)
    }

    fn counted(&self) -> Counted {
        Counted { fast_recoveries: true, marked_acks: true, nacks: true, ..Counted::default() }
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }

    fn window(&self, sender: &Sender) -> Option<WindowState> {
        Some(sender.window())
    }
}

impl SinglePath for SwiftTransport {
    fn start(&self, _: &mut Sender, out: &mut impl Outbox) {
        out.request_turn();
    }

    fn sender_writes(&self, sender: &mut Sender, written: Written, out: &mut impl Outbox) {
        sender.outgo.limit(written);
        out.request_turn();
    }

    #[inline]
    fn sender_pull(&self, sender: &mut Sender, out: &mut impl Outbox) -> Pull {
        sender.pull(self, out)
    }

    #[inline]
    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        sender.receives(self, packet, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.times_out(self, out);
        SenderState::Open
    }

    #[inline]
    fn receiver_receives(&self, receiver: &mut Receiver, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        receiver.receives(self, packet, out)
    }

    fn receiver_wakes(&self, _: &mut Receiver, _: &mut impl Outbox) -> Delivery {
        Delivery::Ongoing
    }
}
