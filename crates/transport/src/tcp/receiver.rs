//! The receiving end: reassembly, acknowledgements and the echo of marks.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::{Span, Time};

use super::compression::Compression;
use super::reassembly::Reassembly;
use super::receive_window::{Offered, Offers};
use super::resequence::Resequencer;
use super::{Ecn, Tcp};
use crate::{Delivery, FlowSize, Outbox, Outgoing, ReceiverStats};

/// The receiving end of a flow. One cache line.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// RCV.NXT: the next segment in order.
    expected: u32,
    segments: u32,
    /// Segments held beyond a hole.
    held: u32,
    /// Segments in order that are not acknowledged yet.
    pending: u16,
    /// Whether acknowledgements carry ECE: `DCTCP.CE`, or what RFC 3168 latches until CWR.
    echo: bool,
    /// The FIN has come, which counts as a segment and brings no data.
    has_fin: bool,
    /// The time stamp to echo: that of the first pending segment (RFC 7323 §4.3), else that of the
    /// segment that caused the acknowledgement.
    stamp: Time,
    /// Saturates: a flow has no more segments than that.
    segments_received: u32,
    out_of_order: u32,
    duplicates: u32,
    marked: u32,
    reassembly: Option<Box<Reassembly>>,
    /// The reordering buffer below TCP, if there is one.
    resequencer: Option<Box<Resequencer>>,
    /// State that not every receiver needs.
    more: Option<Box<ReceiverCold>>,
}

/// Cold state of a receiver, if it needs any.
#[derive(Debug, Clone)]
struct ReceiverCold {
    /// The window, if it is not whatever comes.
    offered: Option<Offered>,
    /// Which acknowledgements are left out.
    compression: Option<Compression>,
}

impl ReceiverCold {
    fn of(tcp: &Tcp) -> Option<Box<Self>> {
        let compression = tcp.compresses.map(|_| Compression::default());
        let more = Self { offered: tcp.offers.map(Offers::begin), compression };
        (more.offered.is_some() || more.compression.is_some()).then(|| Box::new(more))
    }
}

impl Receiver {
    pub(super) fn new(tcp: &Tcp, size: FlowSize) -> Self {
        Self { more: ReceiverCold::of(tcp), ..Self::that_takes_all(size) }
    }

    const fn that_takes_all(size: FlowSize) -> Self {
        Self {
            expected: 0,
            segments: size.segments,
            held: 0,
            pending: 0,
            echo: false,
            has_fin: false,
            stamp: Time::ZERO,
            segments_received: 0,
            out_of_order: 0,
            duplicates: 0,
            marked: 0,
            reassembly: None,
            resequencer: None,
            more: None,
        }
    }

    /// A receiver that has everything. Marks that it would still echo are forgotten: its sender has
    /// nothing to slow down.
    pub(super) fn finished(size: FlowSize) -> Self {
        Self { expected: size.segments, ..Self::that_takes_all(size) }
    }

    #[inline]
    pub(super) fn receives(&mut self, tcp: &Tcp, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        self.receives_for(tcp, packet, out, |_, _| ())
    }

    /// As [`Receiver::receives`]; `above` is told the number of each segment that is passed up,
    /// before it is acknowledged.
    #[inline]
    pub(crate) fn receives_for<O: Outbox>(
        &mut self,
        tcp: &Tcp,
        packet: &Packet,
        out: &mut O,
        mut above: impl FnMut(&mut O, u32),
    ) -> Delivery {
        match packet.kind {
            Kind::Data if !tcp.reorder_hold.is_zero() => self.resequence(tcp, packet, out, above),
            Kind::Data => {
                above(out, packet.seq);
                self.on_data(tcp, packet, out)
            }
            Kind::Syn => {
                self.send_syn_ack(tcp, packet, out);
                Delivery::Ongoing
            }
            _ => Delivery::Ongoing,
        }
    }

    /// An acknowledgement that was delayed or left out is due, or a segment in the reordering
    /// buffer waited long enough.
    pub(super) fn wakes(&mut self, tcp: &Tcp, out: &mut impl Outbox) -> Delivery {
        self.wakes_for(tcp, out, |_, _| ())
    }

    /// As [`Receiver::wakes`]; `above` is told as in [`Receiver::receives_for`].
    pub(crate) fn wakes_for<O: Outbox>(
        &mut self,
        tcp: &Tcp,
        out: &mut O,
        above: impl FnMut(&mut O, u32),
    ) -> Delivery {
        if let Some(mut buffer) = self.resequencer.take() {
            let mut up = Vec::new();
            buffer.expire(out.now(), &mut up);
            let delivery = self.pass_up(tcp, &up, out, above);
            self.keep(tcp, buffer, out);
            return delivery;
        }
        self.acknowledge_pending(tcp, out);
        Delivery::Ongoing
    }

    /// Acknowledges what is not acknowledged yet, if anything.
    pub(crate) fn acknowledge_pending(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        if self.pending > 0 || self.left_out_until().is_some() {
            self.acknowledge(tcp, out);
        }
    }

    /// Until when acknowledgements are left out, if any is.
    fn left_out_until(&self) -> Option<Time> {
        self.more.as_ref()?.compression.as_ref()?.due()
    }

    /// A segment comes to the reordering buffer.
    fn resequence<O: Outbox>(
        &mut self,
        tcp: &Tcp,
        packet: &Packet,
        out: &mut O,
        above: impl FnMut(&mut O, u32),
    ) -> Delivery {
        let mut buffer = self.resequencer.take().unwrap_or_default();
        let mut up = Vec::new();
        let until = out.now().saturating_add(tcp.reorder_hold);
        buffer.expire(out.now(), &mut up);
        buffer.take(packet, until, tcp.reorder_segments, &mut up);
        let delivery = self.pass_up(tcp, &up, out, above);
        self.keep(tcp, buffer, out);
        delivery
    }

    fn pass_up<O: Outbox>(
        &mut self,
        tcp: &Tcp,
        packets: &[Packet],
        out: &mut O,
        mut above: impl FnMut(&mut O, u32),
    ) -> Delivery {
        let mut delivery = Delivery::Ongoing;
        for packet in packets {
            above(out, packet.seq);
            if self.on_data(tcp, packet, out) == Delivery::Complete {
                delivery = Delivery::Complete;
            }
        }
        delivery
    }

    /// Puts the reordering buffer back, and sets the one timer for it and for the delayed
    /// acknowledgement.
    fn keep(&mut self, tcp: &Tcp, mut buffer: Box<Resequencer>, out: &mut impl Outbox) {
        let now = out.now();
        let delayed = buffer.acknowledge_at.filter(|_| self.pending > 0);
        if delayed.or_else(|| self.left_out_until()).is_some_and(|at| at <= now) {
            self.acknowledge(tcp, out);
        }
        let due = buffer.acknowledge_at.unwrap_or_else(|| tcp.timers.due(now, tcp.ack_timeout));
        buffer.acknowledge_at = (self.pending > 0).then_some(due).or_else(|| self.left_out_until());
        out.wake_at(buffer.due().min(buffer.acknowledge_at.unwrap_or(Time::NEVER)));
        self.resequencer = Some(buffer);
    }

    /// A repeated SYN is answered again: the answer may have been lost.
    fn send_syn_ack(&mut self, tcp: &Tcp, syn: &Packet, out: &mut impl Outbox) {
        if let Some(compression) = self.more.as_mut().and_then(|more| more.compression.as_mut()) {
            compression.answers_syn(out.now());
        }
        out.send(Outgoing {
            kind: Kind::SynAck,
            flags: PacketFlags::default(),
            seq: 0,
            wire_bytes: tcp.syn_bytes,
            sent: syn.sent,
            sack: [SackBlock::default(); Packet::SACK_BLOCKS],
        });
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // As a call it takes 1 % more instructions a packet-hop.
    fn on_data(&mut self, tcp: &Tcp, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        if packet.seq == self.segments {
            self.on_fin(tcp, packet, out);
            return Delivery::Ongoing;
        }
        self.segments_received = self.segments_received.saturating_add(1);
        let echo_changed = self.take_mark(tcp, packet, out);
        if self.pending == 0 {
            self.stamp = packet.sent;
        }
        if packet.seq != self.expected || self.held > 0 {
            return self.on_disorder(tcp, packet, echo_changed, out);
        }
        self.expected += 1;
        self.pending += 1;
        let offers_more = self.note_arrival(tcp, packet, out);
        let complete = self.expected == self.segments;
        let is_due = self.pending >= tcp.ack_every || self.is_quick(tcp);
        // Of segments that were joined, the last one speaks for all.
        if complete || echo_changed || offers_more || (is_due && !packet.is_joined(out.now())) {
            self.acknowledge(tcp, out);
        } else if self.pending == 1 {
            // RFC 5681 §4.2.
            out.wake_at(tcp.timers.due(out.now(), tcp.ack_timeout));
        }
        self.note_reading(tcp, out);
        if complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    /// The window follows what arrives, before it is acknowledged. Whether it grows.
    #[inline]
    fn note_arrival(&mut self, tcp: &Tcp, packet: &Packet, out: &impl Outbox) -> bool {
        let Some(more) = &mut self.more else { return false };
        if let Some(compression) = &mut more.compression {
            compression.arrives(out.now());
        }
        let (Some(offered), Some(offers)) = (&mut more.offered, tcp.offers) else { return false };
        offered.arrives(offers, packet, self.expected, self.held, out.now())
    }

    /// The window follows what is read, which is after it was acknowledged.
    #[inline]
    fn note_reading(&mut self, tcp: &Tcp, out: &impl Outbox) {
        let offered = self.more.as_mut().and_then(|more| more.offered.as_mut());
        if let (Some(offered), Some(offers)) = (offered, tcp.offers) {
            offered.reads(offers, self.expected, out.now());
        }
    }

    /// Whether it is among the first segments, or the next after one that came twice: each of them
    /// is acknowledged at once.
    #[inline]
    fn is_quick(&self, tcp: &Tcp) -> bool {
        let received = self.segments_received;
        received <= u32::from(tcp.quick_acks)
            || self.reassembly.as_ref().is_some_and(|known| received < known.quick_before)
    }

    /// Follows the marks. Returns whether this segment must be acknowledged at once.
    #[inline]
    fn take_mark(&mut self, tcp: &Tcp, packet: &Packet, out: &mut impl Outbox) -> bool {
        let marked = packet.flags.has(PacketFlags::CE);
        self.marked += u32::from(marked);
        match tcp.ecn {
            Ecn::Off => false,
            Ecn::Classic => {
                // RFC 3168 §6.1.3: echo from a mark until CWR. A segment may carry both: then the
                // echo goes on.
                self.echo = marked || (self.echo && !packet.flags.has(PacketFlags::CWR));
                false
            }
            Ecn::Dctcp if marked == self.echo => false,
            Ecn::Dctcp => {
                // RFC 8257 §3.2: on a change, what is pending is acknowledged with the old state,
                // and this segment at once with the new one.
                if self.pending > 0 {
                    self.acknowledge(tcp, out);
                }
                self.echo = marked;
                true
            }
        }
    }

    /// A segment that is not the next one in order, or that arrived while there is a hole.
    /// Acknowledged at once (RFC 5681 §4.2), whether it opens a hole, fills one or is known; unless
    /// the acknowledgement is one that may be left out.
    #[cold]
    fn on_disorder(
        &mut self,
        tcp: &Tcp,
        packet: &Packet,
        echo_changed: bool,
        out: &mut impl Outbox,
    ) -> Delivery {
        let segment = packet.seq;
        let (before, duplicates) = (self.expected, self.duplicates);
        if segment < self.expected || segment >= self.segments {
            self.duplicates += 1;
        } else {
            self.tell_before_too_many_blocks(tcp, segment, out);
            self.reassemble(segment, packet.flags.has(PacketFlags::RETRANSMISSION), out.now());
        }
        let offers_more = self.note_arrival(tcp, packet, out);
        let known = self.duplicates > duplicates;
        let complete = self.expected == self.segments && self.expected > before;
        let at_once = known || complete || echo_changed || offers_more || self.held == 0;
        if known {
            self.quicken(tcp);
        }
        // Of segments that were joined, the last one speaks for all.
        let speaks = known || complete || !packet.is_joined(out.now());
        if speaks && (at_once || !self.leaves_out(tcp, out)) {
            // RFC 2883: RACK wants to know.
            let in_vain = known && tcp.recovery.has_dsack();
            let flags = PacketFlags::default().with_if(PacketFlags::RETRANSMISSION, in_vain);
            self.acknowledge_with(tcp, flags, out);
        }
        self.note_reading(tcp, out);
        if complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    /// The FIN, which brings no data: it tells that there is a hole, if there is one, as a segment
    /// would.
    #[cold]
    fn on_fin(&mut self, tcp: &Tcp, packet: &Packet, out: &mut impl Outbox) {
        self.segments_received = self.segments_received.saturating_add(1);
        self.duplicates += u32::from(self.has_fin);
        self.has_fin = true;
        self.take_mark(tcp, packet, out);
        if self.pending == 0 {
            self.stamp = packet.sent;
        }
        if self.expected >= self.segments {
            return self.acknowledge(tcp, out);
        }
        self.tell_before_too_many_blocks(tcp, packet.seq, out);
        let (expected, now) = (self.expected, out.now());
        let reassembly = self.reassembly.get_or_insert_with(|| Box::new(Reassembly::new(expected)));
        if self.held == 0 {
            reassembly.restart(expected, now);
        }
        let is_known = !reassembly.hold(packet.seq);
        self.held = reassembly.len();
        if is_known || !self.leaves_out(tcp, out) {
            // RFC 2883, as of a segment.
            let in_vain = is_known && tcp.recovery.has_dsack();
            self.acknowledge_with(
                tcp,
                PacketFlags::default().with_if(PacketFlags::RETRANSMISSION, in_vain),
                out,
            );
        }
    }

    /// Acknowledges the next segments at once: `tcp_enter_quickack_mode` of Linux.
    fn quicken(&mut self, tcp: &Tcp) {
        let (expected, before) =
            (self.expected, self.segments_received.saturating_add(tcp.quick_acks.into()));
        self.reassembly.get_or_insert_with(|| Box::new(Reassembly::new(expected))).quick_before = before;
    }

    /// Whether the acknowledgement of a segment that is held is left out: then the next one tells
    /// of it, or the timer.
    fn leaves_out(&mut self, tcp: &Tcp, out: &mut impl Outbox) -> bool {
        let Some(rules) = tcp.compresses.filter(|_| !self.is_quick(tcp)) else { return false };
        let Some(ReceiverCold { offered, compression: Some(compression) }) = self.more.as_deref_mut() else {
            return false;
        };
        let rtt = offered.as_ref().map_or(Span::ZERO, Offered::round_trip);
        let Some(due) = compression.leaves_out(rules, self.expected, rtt, out.now()) else { return false };
        out.wake_at(due);
        true
    }

    /// A segment is about to be held that opens a third block: what was left out is told before. An
    /// acknowledgement with more blocks may be lost: `tcp_sack_new_ofo_skb` of Linux.
    fn tell_before_too_many_blocks(&mut self, tcp: &Tcp, segment: u32, out: &mut impl Outbox) {
        let is_apart = |known: &Reassembly| !known.joins_block_of(Compression::BLOCKS, segment);
        if self.left_out_until().is_some() && self.reassembly.as_deref().is_some_and(is_apart) {
            self.acknowledge(tcp, out);
        }
    }

    fn reassemble(&mut self, segment: u32, sent_again: bool, now: Time) {
        let expected = self.expected;
        let reassembly = self.reassembly.get_or_insert_with(|| Box::new(Reassembly::new(expected)));
        if self.held == 0 {
            reassembly.restart(expected, now);
        }
        if segment == expected {
            reassembly.end_stall(sent_again, now);
            // What comes after the data is the FIN.
            self.expected = reassembly.fill(segment).min(self.segments);
        } else if reassembly.hold(segment) {
            self.out_of_order += 1;
        } else {
            self.duplicates += 1;
        }
        self.held = reassembly.len();
    }

    #[inline]
    fn acknowledge(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        self.acknowledge_with(tcp, PacketFlags::default(), out);
    }

    #[inline]
    fn acknowledge_with(&mut self, tcp: &Tcp, flags: PacketFlags, out: &mut impl Outbox) {
        let mut blocks = match &self.reassembly {
            Some(reassembly) if tcp.recovery.has_sack() && self.held > 0 => reassembly.blocks(self.expected),
            _ => [SackBlock::default(); Packet::SACK_BLOCKS],
        };
        if let Some(more) = &mut self.more {
            if let (Some(offered), [.., last]) = (&mut more.offered, &mut blocks) {
                *last = SackBlock::of_window(offered.window(self.expected, self.held));
            }
            if let Some(compression) = &mut more.compression {
                compression.tells();
            }
        }
        out.send(Outgoing {
            kind: Kind::Ack,
            flags: flags.with_if(PacketFlags::ECE, self.echo),
            seq: self.expected,
            wire_bytes: tcp.ack_bytes,
            sent: self.stamp,
            sack: blocks,
        });
        self.pending = 0;
        if tcp.ack_every > 1 || tcp.compresses.is_some() {
            out.wake_at(Time::NEVER);
        }
    }

    pub(crate) fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            segments_received: u64::from(self.segments_received),
            out_of_order: self.out_of_order,
            duplicates: self.duplicates,
            without_payload: u32::from(self.has_fin),
            marked: self.marked,
            stalls: self.reassembly.as_ref().map(|reassembly| reassembly.stalls()).unwrap_or_default(),
            ..ReceiverStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_one_cache_line() {
        assert!(size_of::<Receiver>() <= 64, "{}", size_of::<Receiver>());
    }
}
