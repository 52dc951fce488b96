//! The receiving end: answers each packet, and says how long the answer waits at its host.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::Span;

use super::SwiftTransport;
use crate::selective::Intake;
use crate::selective::intake::Came;
use crate::{Delivery, FlowSize, Outbox, ReceiverStats};

/// Unit of a wait: 2^14 ps, about 16 ns.
const TICK: Span = Span::from_ps(1 << 14);

/// How long an answer waited at its host, as it says: at most 1.07 ms.
pub(super) fn end_delay(answer: &Packet) -> Span {
    let [.., last] = answer.sack_blocks();
    TICK.saturating_mul(last.first.into())
}

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    intake: Intake,
    trimmed: u32,
    nacks: u32,
}

impl Receiver {
    pub(super) fn new(size: FlowSize) -> Self {
        Self { intake: Intake::new(size), trimmed: 0, nacks: 0 }
    }

    pub(super) fn finished(size: FlowSize) -> Self {
        Self { intake: Intake::finished(size), trimmed: 0, nacks: 0 }
    }

    #[inline]
    pub(super) fn receives(
        &mut self,
        transport: &SwiftTransport,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> Delivery {
        match packet.kind {
            Kind::Data => {}
            Kind::Trimmed => {
                self.trimmed += 1;
                return Delivery::Ongoing;
            }
            _ => return Delivery::Ongoing,
        }
        let was_complete = self.intake.is_complete();
        let is_early = self.intake.take(packet, out.now()) == Came::Early;
        let kind = if is_early { Kind::Nack } else { Kind::Ack };
        let is_marked = packet.flags.has(PacketFlags::CE);
        let mut answer = transport.wire.answer(kind, self.intake.expected, packet, is_marked);
        if is_early && let Ok(first) = u16::try_from(packet.seq - self.intake.expected) {
            answer.sack[0] = SackBlock { first, count: 1 };
        }
        self.nacks += u32::from(is_early);
        let waits = out.free_at().since(out.now()).as_ps() / TICK.as_ps();
        let [.., last] = &mut answer.sack;
        *last = SackBlock { first: waits.min(u16::MAX.into()) as u16, count: 0 };
        out.send_ack(answer);
        if self.intake.is_complete() && !was_complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        ReceiverStats { trimmed: self.trimmed, nacks_sent: self.nacks, ..self.intake.stats() }
    }
}
