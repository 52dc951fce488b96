//! MaxPass: credits over several paths at once, each with a feedback control of its own (MaxPass §III).
//!
//! A request names N ports, each of which leads over a path that no other takes ([`Outbox::ports`]). The receiver sends
//! credits over all of them, keeps the k paths with the smallest round-trip times, and chooses anew when one of them was
//! slowed down t times in a row. All paths carry one sequence of segments: a sender answers a credit with the next segment,
//! by the port that the credit came by.
//!
//! What the paper leaves open, and what this does:
//! - Probing ends when every path has answered, or after twice the smallest round-trip time, with what has answered by then.
//!   Until then credits go at the initial rate, one path after the other, and no rate changes.
//! - Paths may deliver out of order: a segment counts as missing once it has been for the longest round-trip time of the
//!   paths in use, and a credit stop that comes before the last segment is answered that much later, or with the segment.
//! - A path that does not answer at all for t round trips counts as one that was slowed down t times in a row.
//! - A path that a sender stops (SUBCSTOP) is out until paths are chosen anew; the last one goes on.

mod receiver;

pub use receiver::Receiver;
use weft_packet::Packet;

use crate::credits::Terms;
pub use crate::credits::config::{Feedback, MaxPassConfig};
pub use crate::credits::feedback::{Cut, Growth};
pub use crate::credits::sender::Sender;
use crate::{CreditPorts, Delivery, FlowSize, Outbox, Protocol, ReceiverStats, SenderState, SenderStats};

/// `MaxPass` with checked parameters: made by [`MaxPassConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct MaxPass {
    pub(crate) terms: Terms,
    /// N, at most.
    pub(crate) paths: u8,
    /// k.
    pub(crate) keep: usize,
    /// t.
    pub(crate) reselect_after: u32,
    pub(crate) single_below: u32,
}

impl Protocol for MaxPass {
    type Sender = Sender;
    type Receiver = Receiver;

    fn flow_size(&self, bytes: u64) -> FlowSize {
        FlowSize::of(bytes, self.terms.mss)
    }

    fn segment_wire_bytes(&self, size: FlowSize, segment: u32) -> u16 {
        self.terms.segment_wire_bytes(size, segment)
    }

    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        Some(self.terms.handshake_wire_bytes())
    }

    fn ports(&self) -> u8 {
        self.paths
    }

    fn credit_ports(&self) -> Option<CreditPorts> {
        Some(self.terms.credit_ports())
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(size, self.single_below)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(size)
    }

    fn start(&self, sender: &mut Sender, out: &mut impl Outbox) {
        sender.request(&self.terms, out);
    }

    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        sender.receives(&self.terms, packet, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.wakes(&self.terms, out);
        SenderState::Open
    }

    fn receiver_receives(&self, receiver: &mut Receiver, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        receiver.receives(self, packet, out)
    }

    fn receiver_wakes(&self, receiver: &mut Receiver, out: &mut impl Outbox) -> Delivery {
        receiver.wakes(self, out);
        Delivery::Ongoing
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }
}
