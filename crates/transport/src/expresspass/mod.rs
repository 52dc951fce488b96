//! ExpressPass: a sender may send one data packet for each credit that its receiver sent it.
//!
//! Credits wait in queues of their own, small and metered to their share of every link
//! ([`CreditPorts`](crate::CreditPorts)), and data comes back the way that its credit went: so what
//! credits survive is what data the way back can carry. A receiver learns of congestion from the
//! credits that do not come back as data, and paces its credits accordingly (MaxPass §II.D, MaxPass
//! Alg. 1). That data retraces its credit's path is up to the load balancer: `ecmp` with `hash =
//! "symmetric"`.
//!
//! What the paper leaves open, and what this does:
//! - A credit's number is its time stamp, which data echoes. The receiver remembers when it sent
//!   those that are not answered.
//! - A credit acknowledges what is in order, and says if there is a hole behind it. Data is lost by
//!   faults only: the sender then spends a credit on the hole, at most one in `retransmit_timeout`.
//! - The receiver answers a credit stop with an acknowledgement. If bytes are missing, the sender
//!   asks for credits again and goes on from the first of them.

mod receiver;

pub use receiver::Receiver;
use weft_packet::Packet;

use crate::credits::Terms;
use crate::credits::alone::Alone;
pub use crate::credits::config::ExpressPassConfig;
pub use crate::credits::feedback::Decrease;
pub use crate::credits::sender::Sender;
use crate::{
    ArrivedPacket, Counted, CreditPorts, Delivery, FlowSize, Outbox, Protocol, ReceiverStats, Segmentation,
    SenderState, SenderStats, SinglePath,
};

/// `ExpressPass` with checked parameters: made by [`ExpressPassConfig::build`], shared by all
/// flows.
#[derive(Debug, Clone)]
pub struct ExpressPass {
    pub(crate) terms: Terms,
}

impl Protocol for ExpressPass {
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
        Sender::new(size, 0)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(self, size)
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

impl SinglePath for ExpressPass {
    fn start(&self, sender: &mut Sender, out: &mut impl Outbox) {
        sender.request(&self.terms, &mut Alone(out));
    }

    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        sender.receives(&self.terms, ArrivedPacket::alone(packet), &mut Alone(out))
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.wakes(&self.terms, &mut Alone(out));
        SenderState::Open
    }

    fn receiver_receives(&self, receiver: &mut Receiver, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        receiver.receives(self, packet, out)
    }

    fn receiver_wakes(&self, receiver: &mut Receiver, out: &mut impl Outbox) -> Delivery {
        receiver.send_credit(self, out);
        Delivery::Ongoing
    }
}
