//! MaxPass: credits over several paths at once, each with a feedback control of its own (MaxPass
//! §III).
//!
//! A request names N ports, each of which leads over a path that no other takes
//! ([`FiveTuples::Apart`]). The receiver sends credits over all of them, keeps the k paths with the
//! smallest round-trip times, and chooses anew when one of them was slowed down t times in a row.
//! All paths carry one sequence of segments: a sender answers a credit with the next segment, by
//! the port that the credit came by.
//!
//! What the paper leaves open, and what this does:
//! - Probing ends when every path has answered, or after twice the smallest round-trip time, with
//!   what has answered by then. Until then credits go at the initial rate, one path after the
//!   other, and no rate changes.
//! - Paths may deliver out of order: a segment counts as missing once it has been for the longest
//!   round-trip time of the paths in use, and a credit stop that comes before the last segment is
//!   answered that much later, or with the segment.
//! - A path that does not answer at all for t round trips counts as one that was slowed down t
//!   times in a row.
//! - A path that a sender stops (SUBCSTOP) is out until paths are chosen anew; the last one goes
//!   on.

mod receiver;

pub use receiver::Receiver;

use crate::credits::Terms;
pub use crate::credits::config::{Feedback, MaxPassConfig};
pub use crate::credits::feedback::{Growth, RateCut};
pub use crate::credits::sender::Sender;
use crate::{
    ArrivedPacket, Counted, CreditPorts, Delivery, FiveTuples, FlowSize, Multipath, Ports, Protocol,
    ReceiverStats, Segmentation, SenderState, SenderStats,
};

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

    fn segmentation(&self) -> Segmentation {
        self.terms.segmentation()
    }

    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        Some(self.terms.handshake_wire_bytes())
    }

    fn credit_ports(&self) -> Option<CreditPorts> {
        Some(self.terms.credit_ports())
    }

    fn uses_ecn(&self) -> bool {
        false
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(size, self.single_below)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(size)
    }

    fn counted(&self) -> Counted {
        Counted::default()
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }
}

impl Multipath for MaxPass {
    fn five_tuples(&self) -> FiveTuples {
        FiveTuples::Apart(self.paths)
    }

    fn start(&self, sender: &mut Sender, out: &mut impl Ports) {
        sender.request(&self.terms, out);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller.
    fn sender_receives(
        &self,
        sender: &mut Sender,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> SenderState {
        sender.receives(&self.terms, arrived, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Ports) -> SenderState {
        sender.wakes(&self.terms, out);
        SenderState::Open
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller.
    fn receiver_receives(
        &self,
        receiver: &mut Receiver,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> Delivery {
        receiver.receives(self, arrived, out)
    }

    fn receiver_wakes(&self, receiver: &mut Receiver, out: &mut impl Ports) -> Delivery {
        receiver.wakes(self, out);
        Delivery::Ongoing
    }
}
