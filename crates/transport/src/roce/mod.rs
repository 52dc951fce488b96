//! RoCEv2 as RDMA cards do it: go-back-N, at a rate that DCQCN sets.
//!
//! - A receiver takes packets in order alone. One that comes behind a hole is refused, and a
//!   negative acknowledgement asks the sender to go back to the packet that is missing; the next
//!   one of that kind comes after the hole was filled (IBTA vol. 1 §9.7.5).
//! - The sender then sends everything again from there on.
//! - There is no window: congestion is DCQCN's (Zhu et al., SIGCOMM 2015), and loss is for PFC to
//!   prevent.
//! - Its host asks for packets one by one ([`Protocol::is_rnic_scheduled`]); rates are kept by the
//!   time at which the next may be sent.
//!
//! What the sources leave open, and what this does:
//! - A sender asks for an acknowledgement (AckReq) with the last packet that it has to send or that
//!   its window lets go.
//! - A card gives up after seven timeouts in a row; this one goes on.
//! - A packet that a full queue trimmed is as one that is missing.

mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::Packet;
use weft_units::{Span, Time};

use crate::congestion::dcqcn::Rules;
use crate::rdma::notifier::Notify;
use crate::rdma::wire::Wire;
use crate::{
    Counted, Delivery, FlowSize, Outbox, PathRequirement, Protocol, Pull, ReceiverStats, Requirements,
    Segmentation, SenderState, SenderStats, SinglePath, Written,
};

pub use crate::rdma::RoceConfig;

/// `RoCE` with checked parameters: made by [`RoceConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct Roce {
    pub(crate) wire: Wire,
    pub(crate) ack_every: u16,
    pub(crate) notify: Notify,
    /// None: at the rate of the cable.
    pub(crate) dcqcn: Option<Rules>,
    /// Packets.
    pub(crate) window: u32,
    /// Zero: a complaint is made once.
    pub(crate) nack_interval: Span,
    pub(crate) nack_notifies: bool,
    pub(crate) timeout: Span,
}

impl Protocol for Roce {
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

    fn requirements(&self) -> Requirements {
        Requirements { ways: PathRequirement::InOrder, ..Requirements::default() }
    }

    fn takes_writes(&self) -> bool {
        true
    }

    fn limit(&self, sender: &mut Sender, written: Written) {
        sender.limit(written);
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(size)
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
}

impl SinglePath for Roce {
    fn start(&self, _: &mut Sender, out: &mut impl Outbox) {
        out.request_turn();
    }

    fn sender_writes(&self, sender: &mut Sender, written: Written, out: &mut impl Outbox) {
        sender.limit(written);
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
