//! The receiving end: a bitmap of what came early, and an answer to each packet, on its path.

use weft_packet::{Kind, Packet, PacketFlags};

use super::MpRdma;
use super::ack_detail::AckDetail;
use crate::selective::Intake;
use crate::selective::intake::Came;
use crate::{Delivery, FlowSize, Outbox, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    intake: Intake,
    /// Packets that came beyond the bitmap.
    refused: u32,
    trimmed: u32,
}

impl Receiver {
    pub(super) const fn new(size: FlowSize) -> Self {
        Self { intake: Intake::new(size), refused: 0, trimmed: 0 }
    }

    pub(super) fn finished(size: FlowSize) -> Self {
        Self { intake: Intake::finished(size), ..Self::new(size) }
    }

    #[inline]
    pub(super) fn receives(&mut self, mprdma: &MpRdma, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        if packet.kind != Kind::Data {
            self.trimmed += u32::from(packet.kind == Kind::Trimmed);
            return Delivery::Ongoing;
        }
        let was_complete = self.intake.is_complete();
        if packet.seq.saturating_sub(self.intake.expected) >= mprdma.rules.bitmap {
            self.refused += 1;
            self.answer(mprdma, Kind::Nack, (packet, false), out);
            return Delivery::Ongoing;
        }
        let had_come = self.intake.take(packet, out.now()) == Came::Again;
        self.answer(mprdma, Kind::Ack, (packet, had_come), out);
        if self.intake.is_complete() && !was_complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    /// Answers a packet, and says whether it had come before.
    #[inline]
    fn answer(
        &self,
        mprdma: &MpRdma,
        kind: Kind,
        (packet, had_come): (&Packet, bool),
        out: &mut impl Outbox,
    ) {
        let is_marked = packet.flags.has(PacketFlags::CE);
        let is_again = packet.flags.has(PacketFlags::RETRANSMISSION);
        let mut answer = mprdma.wire.answer(kind, self.intake.expected, packet, is_marked);
        answer.sack = AckDetail { packet: packet.seq, is_again, had_come }.blocks();
        out.send_ack_by_path(out.path_of(packet), answer);
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        let kept = self.intake.stats();
        ReceiverStats {
            segments_received: kept.segments_received + u64::from(self.refused),
            out_of_order: kept.out_of_order + self.refused,
            refused: self.refused,
            nacks_sent: self.refused,
            trimmed: self.trimmed,
            ..kept
        }
    }
}
