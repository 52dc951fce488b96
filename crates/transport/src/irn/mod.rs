//! IRN: RDMA that needs no lossless fabric (Mittal et al., SIGCOMM 2018).
//!
//! - Selective repeat: a receiver keeps what comes early and tells of each such packet; the sender
//!   sends what is missing again, each packet once until a timeout (IRN §3.1).
//! - No more is in flight than the path holds (BDP-FC, IRN §3.2).
//! - A sender with few packets in flight has a shorter timeout (IRN §4.1).
//! - With or without DCQCN.
//!
//! What the paper leaves open, and what this does:
//! - In flight is what was sent beyond the first packet that is missing, whether it is known to
//!   have come or not.
//! - A packet that is sent again is so in place of a new one, at the rate that DCQCN allows, and
//!   needs no room under the cap.
//! - A recovery ends when everything is acknowledged that had been sent when it began. What was
//!   sent again in one is not sent again in the next one before a timeout.
//!
//! The simulator of ConWeave has other rules (`resends = "onwards"`): a sender goes back to the
//! first packet that is missing and sends everything from there on again that it does not know to
//! have come, though it may well be under way. Its receiver complains with each packet as long as
//! there is a hole, and the first complaint after one that there was none has the sender go back
//! again.

mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::Packet;
use weft_units::{PicosPerByte, Span, Time};

use crate::congestion::dcqcn::Rules;
use crate::rdma::notifier::Notify;
use crate::rdma::wire::Wire;
use crate::selective::Resends;
use crate::{
    Counted, Delivery, FlowSize, KnownFabric, Outbox, Protocol, Pull, ReceiverStats, Segmentation,
    SenderState, SenderStats, SinglePath, WindowState, Written,
};

pub use crate::rdma::IrnConfig;

/// IRN with checked parameters: made by [`IrnConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct Irn {
    pub(crate) wire: Wire,
    pub(crate) ack_every: u16,
    pub(crate) notify: Notify,
    /// None: at the rate of the cable.
    pub(crate) dcqcn: Option<Rules>,
    /// Packets in flight at most.
    pub(crate) cap: u32,
    /// Whether the spec gives it.
    pub(crate) has_own_cap: bool,
    pub(crate) rto_low: Span,
    pub(crate) rto_high: Span,
    pub(crate) few_packets: u32,
    /// Whether what came early counts as a mark.
    pub(crate) nack_notifies: bool,
    pub(crate) resends: Resends,
    /// When a packet that came early, and comes again, is complained of again; zero: it is
    /// acknowledged.
    pub(crate) nack_interval: Span,
}

/// How many packets of this size on the wire fill a path, at least one.
pub(crate) fn packets_of_path(base_rtt: Span, pace: PicosPerByte, wire_bytes: u16) -> u32 {
    base_rtt.as_ps().div_ceil(pace.service(wire_bytes).as_ps().max(1)).clamp(1, u64::from(u32::MAX)) as u32
}

impl Protocol for Irn {
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

    fn needs_fabric(&self) -> bool {
        !self.has_own_cap
    }

    fn configure(&mut self, known: KnownFabric) {
        self.cap = packets_of_path(known.base_rtt, known.pace, self.wire.mtu + self.wire.header);
    }

    fn takes_writes(&self) -> bool {
        true
    }

    fn limit(&self, sender: &mut Sender, written: Written) {
        sender.outgo.limit(written);
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(size, self.resends)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(size)
    }

    fn finished_receiver(&self, size: FlowSize) -> Option<Receiver> {
        Some(Receiver::finished(size))
    }

    fn sender_held_until(&self, sender: &Sender, now: Time) -> Time {
        sender.held_until(self, now)
    }

    fn counted(&self) -> Counted {
        Counted { duplicate_acks: false, fast_recoveries: true, marked_acks: true, nacks: true, cnps: true }
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }

    fn window(&self, sender: &Sender) -> Option<WindowState> {
        Some(WindowState {
            cwnd: f64::from(self.cap),
            ssthresh: f64::INFINITY,
            outstanding: sender.outgo.span(),
            smoothed_rtt: Span::ZERO,
        })
    }
}

impl SinglePath for Irn {
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
