//! The receiving end: takes packets in order alone.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::Time;

use super::Roce;
use crate::rdma::notifier::Notifier;
use crate::rdma::wire::ACK_REQUEST;
use crate::{Delivery, FlowSize, Outbox, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The next packet in order.
    expected: u32,
    segments: u32,
    /// Packets in order that are not acknowledged yet, and whether one of them was marked.
    pending: u16,
    is_marked: bool,
    /// When it complained last that the next packet is missing; never, if it has not.
    complained: Time,
    notifier: Notifier,
    received: u32,
    duplicates: u32,
    refused: u32,
    marked: u32,
    trimmed: u32,
    nacks: u32,
}

impl Receiver {
    pub(super) fn new(size: FlowSize) -> Self {
        Self {
            expected: 0,
            segments: size.segments,
            pending: 0,
            is_marked: false,
            complained: Time::NEVER,
            notifier: Notifier::default(),
            received: 0,
            duplicates: 0,
            refused: 0,
            marked: 0,
            trimmed: 0,
            nacks: 0,
        }
    }

    pub(super) fn finished(size: FlowSize) -> Self {
        Self { expected: size.segments, ..Self::new(size) }
    }

    #[inline]
    pub(super) fn receives(&mut self, roce: &Roce, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        match packet.kind {
            Kind::Data => {}
            Kind::Trimmed => {
                self.trimmed += 1;
                if packet.seq >= self.expected {
                    self.complain(roce, packet, out);
                }
                return Delivery::Ongoing;
            }
            _ => return Delivery::Ongoing,
        }
        let is_marked = packet.flags.has(PacketFlags::CE);
        self.marked += u32::from(is_marked);
        self.is_marked |= is_marked;
        self.notifier.note(roce.notify, &roce.wire, packet, out);
        if packet.seq > self.expected {
            self.refused += 1;
            self.complain(roce, packet, out);
            return Delivery::Ongoing;
        }
        self.received = self.received.saturating_add(1);
        if packet.seq < self.expected {
            // Its acknowledgement may have been lost.
            self.duplicates += 1;
            self.acknowledge(roce, packet, out);
            return Delivery::Ongoing;
        }
        self.expected += 1;
        self.pending += 1;
        self.complained = Time::NEVER;
        let is_complete = self.expected == self.segments;
        if self.pending >= roce.ack_every || is_complete || packet.flags.has(ACK_REQUEST) {
            self.acknowledge(roce, packet, out);
        }
        if is_complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    #[inline]
    fn acknowledge(&mut self, roce: &Roce, packet: &Packet, out: &mut impl Outbox) {
        self.pending = 0;
        let is_marked = std::mem::take(&mut self.is_marked);
        out.send_ack(roce.wire.answer(Kind::Ack, self.expected, packet, is_marked));
    }

    /// A packet came behind a hole: its sender is asked to go back, once for each hole, or again
    /// after a while.
    #[cold]
    fn complain(&mut self, roce: &Roce, packet: &Packet, out: &mut impl Outbox) {
        let now = out.now();
        let is_first = self.complained == Time::NEVER;
        if !is_first && (roce.nack_interval.is_zero() || now.since(self.complained) < roce.nack_interval) {
            return;
        }
        self.complained = now;
        self.nacks += 1;
        self.pending = 0;
        let is_marked = std::mem::take(&mut self.is_marked) || roce.nack_notifies;
        out.send_ack(roce.wire.answer(Kind::Nack, self.expected, packet, is_marked));
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            segments_received: u64::from(self.received) + u64::from(self.refused),
            out_of_order: self.refused,
            duplicates: self.duplicates,
            marked: self.marked,
            refused: self.refused,
            trimmed: self.trimmed,
            nacks_sent: self.nacks,
            cnps_sent: self.notifier.sent,
            ..ReceiverStats::default()
        }
    }
}
