//! The receiving end: keeps what comes early, and tells of it.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::Time;

use super::Irn;
use crate::rdma::notifier::Notifier;
use crate::rdma::wire::ACK_REQUEST;
use crate::selective::intake::Came;
use crate::selective::{Intake, Resends};
use crate::{Delivery, FlowSize, Outbox, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    intake: Intake,
    /// Packets in order that are not acknowledged yet, and whether one of them was marked.
    pending: u16,
    is_marked: bool,
    /// When it complained last of a packet that came early.
    complained: Time,
    notifier: Notifier,
    trimmed: u32,
    nacks: u32,
}

impl Receiver {
    pub(super) fn new(size: FlowSize) -> Self {
        Self::with(Intake::new(size))
    }

    pub(super) fn finished(size: FlowSize) -> Self {
        Self::with(Intake::finished(size))
    }

    fn with(intake: Intake) -> Self {
        Self {
            intake,
            pending: 0,
            is_marked: false,
            complained: Time::ZERO,
            notifier: Notifier::default(),
            trimmed: 0,
            nacks: 0,
        }
    }

    #[inline]
    pub(super) fn receives(&mut self, irn: &Irn, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        match packet.kind {
            Kind::Data => {}
            Kind::Trimmed => {
                self.trimmed += 1;
                return Delivery::Ongoing;
            }
            _ => return Delivery::Ongoing,
        }
        let was_complete = self.intake.is_complete();
        self.is_marked |= packet.flags.has(PacketFlags::CE);
        self.notifier.note(irn.notify, &irn.wire, packet, out);
        match self.intake.take(packet, out.now()) {
            Came::InOrder => {
                self.pending += 1;
                let asks = packet.flags.has(ACK_REQUEST) || self.intake.held() > 0;
                if self.pending >= irn.ack_every || asks || self.intake.is_complete() {
                    self.acknowledge(irn, packet, out);
                }
            }
            Came::Again if packet.seq > self.intake.expected && !irn.nack_interval.is_zero() => {
                if out.now().since(self.complained) >= irn.nack_interval {
                    self.tell_of(irn, packet, out);
                }
            }
            // Its acknowledgement may have been lost.
            Came::Again => self.acknowledge(irn, packet, out),
            Came::Early => self.tell_of(irn, packet, out),
        }
        if self.intake.is_complete() && !was_complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    #[inline]
    fn acknowledge(&mut self, irn: &Irn, packet: &Packet, out: &mut impl Outbox) {
        self.pending = 0;
        let is_marked = std::mem::take(&mut self.is_marked);
        // Whoever sends everything again has to hear when there is no hole any more.
        let has_hole = irn.resends == Resends::Onwards && self.intake.held() > 0;
        self.nacks += u32::from(has_hole);
        let kind = if has_hole { Kind::Nack } else { Kind::Ack };
        out.send_ack(irn.wire.answer(kind, self.intake.expected, packet, is_marked));
    }

    /// A packet came behind a hole.
    #[cold]
    fn tell_of(&mut self, irn: &Irn, packet: &Packet, out: &mut impl Outbox) {
        self.pending = 0;
        self.nacks += 1;
        self.complained = out.now();
        let is_marked = std::mem::take(&mut self.is_marked) || irn.nack_notifies;
        let mut answer = irn.wire.answer(Kind::Nack, self.intake.expected, packet, is_marked);
        // The cap keeps it near.
        if let Ok(first) = u16::try_from(packet.seq - self.intake.expected) {
            answer.sack[0] = SackBlock { first, count: 1 };
        }
        out.send_ack(answer);
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            trimmed: self.trimmed,
            nacks_sent: self.nacks,
            cnps_sent: self.notifier.sent,
            ..self.intake.stats()
        }
    }
}
