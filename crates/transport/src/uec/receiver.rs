//! The receiving end: takes packets in any order, and reports what has come.

use weft_packet::{Kind, Packet, PacketFlags};

use super::Uec;
use super::report::Report;
use crate::rdma::wire::ACK_REQUEST;
use crate::selective::Intake;
use crate::selective::intake::Came;
use crate::{Delivery, FlowSize, Outbox, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    intake: Intake,
    /// Bytes on the wire that have come, each packet once; and those since the last
    /// acknowledgement.
    received: u32,
    pending: u32,
    /// Whether the first packet has come, and whether an answer was asked for since there is a
    /// hole.
    has_begun: bool,
    was_asked: bool,
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

    const fn with(intake: Intake) -> Self {
        Self { intake, received: 0, pending: 0, has_begun: false, was_asked: false, trimmed: 0, nacks: 0 }
    }

    #[inline]
    pub(super) fn receives(&mut self, uec: &Uec, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        match packet.kind {
            Kind::Data => self.take(uec, packet, out),
            Kind::Trimmed => {
                self.take_trimmed(uec, packet, out);
                Delivery::Ongoing
            }
            _ => Delivery::Ongoing,
        }
    }

    #[inline]
    fn take(&mut self, uec: &Uec, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        let was_complete = self.intake.is_complete();
        let had_hole = self.intake.held() > 0;
        let is_new = self.intake.take(packet, out.now()) != Came::Again;
        if is_new {
            self.received = self.received.wrapping_add(u32::from(packet.wire_bytes));
            self.pending += u32::from(packet.wire_bytes);
        }
        let asks = packet.flags.has(ACK_REQUEST);
        let at_once = packet.flags.has(PacketFlags::CE) || asks;
        self.was_asked |= asks;
        let closes = had_hole && self.intake.held() == 0 && self.was_asked;
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if at_once || !is_new || is_first || closes || self.pending >= uec.ack_bytes {
            self.acknowledge(uec, packet, at_once, out);
        }
        if self.intake.held() == 0 {
            self.was_asked = false;
        }
        if self.intake.is_complete() && !was_complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    #[inline]
    fn acknowledge(&mut self, uec: &Uec, packet: &Packet, at_once: bool, out: &mut impl Outbox) {
        self.pending = 0;
        let expected = self.intake.expected;
        // From the packet on that made it, or else the last 64 up to that one.
        let base = if at_once { packet.seq } else { packet.seq.saturating_sub(63) };
        let base = base.max(expected);
        let report = Report {
            base: (base - expected).min(u16::MAX.into()) as u16,
            bits: if self.intake.held() == 0 { 0 } else { self.intake.bits(base) },
            trigger: (i64::from(packet.seq) - i64::from(expected)).clamp(i16::MIN.into(), i16::MAX.into())
                as i16,
            received: self.received,
        };
        let is_marked = packet.flags.has(PacketFlags::CE);
        let mut answer = uec.wire.answer(Kind::Ack, expected, packet, is_marked);
        answer.sack = report.blocks();
        out.send_ack(answer);
    }

    /// A packet came without its payload: asked for again at once, if it is not here already.
    #[cold]
    fn take_trimmed(&mut self, uec: &Uec, packet: &Packet, out: &mut impl Outbox) {
        self.trimmed += 1;
        if self.intake.has(packet.seq) {
            return self.acknowledge(uec, packet, true, out);
        }
        self.nacks += 1;
        let is_marked = packet.flags.has(PacketFlags::CE);
        out.send_ack(uec.wire.answer(Kind::Nack, packet.seq, packet, is_marked));
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        ReceiverStats { trimmed: self.trimmed, nacks_sent: self.nacks, ..self.intake.stats() }
    }
}
