//! ExpressPass: a sender may send one data packet for each credit that its receiver sent it.
//!
//! Credits wait in queues of their own, small and metered to their share of every link
//! ([`CreditPorts`](crate::CreditPorts)), and data comes back the way that its credit went: so what credits survive is what
//! data the way back can carry. A receiver learns of congestion from the credits that do not come back as data, and paces
//! its credits accordingly (MaxPass section II.D, Algorithm 1). That data retraces its credit's path is up to the load
//! balancer: `ecmp` with `hash = "symmetric"`.
//!
//! What the paper leaves open, and what this does:
//! - A credit's number is in the low 12 bits of its time stamp, which data echoes: see [`stamp`].
//! - A credit acknowledges what is in order, and says if there is a hole behind it. Data is lost by faults only: the sender
//!   then spends a credit on the hole, at most one in `retransmit_timeout`.
//! - The receiver answers a credit stop with an acknowledgement. If bytes are missing, the sender asks for credits again
//!   and goes on from the first of them.

mod config;
mod feedback;
mod receiver;
mod sender;
pub mod stamp;

pub use config::ExpressPassConfig;
pub use feedback::Decrease;
pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::{Span, Time};

use crate::{
    CreditPorts, Delivery, FlowSize, Outbox, Outgoing, Protocol, ReceiverStats, SenderState, SenderStats,
};

/// `ExpressPass` with checked parameters: made by [`ExpressPassConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct ExpressPass {
    mss: u16,
    header: u16,
    credit_bytes: u16,
    /// Credits are this much smaller or larger, at random.
    credit_spread: u16,
    queue: u32,
    burst_bytes: u16,
    /// Share of the highest rate.
    initial_rate: f64,
    feedback: feedback::Rules,
    /// Share of the time between two credits.
    jitter: f64,
    retransmit_timeout: Span,
    stop_timeout: Span,
}

impl ExpressPass {
    /// A packet without payload.
    fn signal(&self, kind: Kind, seq: u32, sent: Time) -> Outgoing {
        Outgoing {
            kind,
            flags: PacketFlags::default(),
            seq,
            wire_bytes: self.credit_bytes,
            sent,
            sack: [SackBlock::default(); Packet::SACK_BLOCKS],
        }
    }
}

impl Protocol for ExpressPass {
    type Sender = Sender;
    type Receiver = Receiver;

    fn flow_size(&self, bytes: u64) -> FlowSize {
        FlowSize::of(bytes, self.mss)
    }

    fn segment_wire_bytes(&self, size: FlowSize, segment: u32) -> u16 {
        let payload = if segment.saturating_add(1) == size.segments { size.last_payload } else { self.mss };
        payload + self.header
    }

    /// The request, and the smallest credit: no data leaves before them.
    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        Some((self.credit_bytes, self.credit_bytes - self.credit_spread))
    }

    fn credit_ports(&self) -> Option<CreditPorts> {
        Some(CreditPorts {
            credit_bytes: self.credit_bytes,
            frame_bytes: self.mss + self.header,
            queue: self.queue,
            burst_bytes: self.burst_bytes,
        })
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(size)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(self, size)
    }

    fn start(&self, sender: &mut Sender, out: &mut impl Outbox) {
        sender.request(self, out);
    }

    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        sender.receives(self, packet, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.wakes(self, out);
        SenderState::Open
    }

    fn receiver_receives(&self, receiver: &mut Receiver, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        receiver.receives(self, packet, out)
    }

    fn receiver_wakes(&self, receiver: &mut Receiver, out: &mut impl Outbox) -> Delivery {
        receiver.send_credit(self, out);
        Delivery::Ongoing
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }
}
