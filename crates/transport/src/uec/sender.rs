//! The sending end: a window of NSCC, and for each packet whether it has come.

use std::collections::VecDeque;

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::Uec;
use super::report::Report;
use crate::congestion::nscc::Nscc;
use crate::rdma::wire::ACK_REQUEST;
use crate::{FlowSize, Outbox, Pull, Resend, SenderState, SenderStats, WindowState, Written};

/// Where a packet is, as far as the sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentState {
    /// On its way.
    Out,
    /// Trimmed, or without an answer for too long: to be sent again.
    Missing,
    /// At the receiver.
    There,
}

/// A packet that is not acknowledged cumulatively.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// When it was sent last.
    sent: Time,
    place: SegmentState,
    was_timed_out: bool,
}

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    size: FlowSize,
    /// The packets below are written.
    available: u32,
    /// The next packet that was never sent.
    next: u32,
    /// The receiver has everything below.
    acked: u32,
    /// Those from `acked` to `next`.
    records: VecDeque<Record>,
    /// How many of them are missing; none is below this one.
    missing: u32,
    first_missing: u32,
    /// Sent packets that may be out yet, by time.
    sent: VecDeque<(Time, u32)>,
    /// Bytes on the wire.
    in_flight: i64,
    /// Bytes that the receiver reported as received, modulo 2^32.
    received: u32,
    nscc: Nscc,
    retransmissions: u32,
    timeouts: u32,
    nacks: u32,
    marked_acks: u32,
    timed_out: Span,
}

impl Sender {
    pub(super) fn new(uec: &Uec, size: FlowSize) -> Self {
        Self {
            size,
            available: size.segments,
            next: 0,
            acked: 0,
            records: VecDeque::new(),
            missing: 0,
            first_missing: 0,
            sent: VecDeque::new(),
            in_flight: 0,
            received: 0,
            nscc: Nscc::new(&uec.rules),
            retransmissions: 0,
            timeouts: 0,
            nacks: 0,
            marked_acks: 0,
            timed_out: Span::ZERO,
        }
    }

    pub(super) fn limit(&mut self, written: Written) {
        self.available = if written.is_all { self.size.segments } else { written.segments };
    }

    /// Tells where the ends of its lists are: of the segments that are acknowledged next and sent
    /// next.
    pub(super) fn keeps(&self, tell: impl FnMut(*const u8)) {
        let records = [self.records.front(), self.records.back()];
        let sent = [self.sent.front(), self.sent.back()];
        let records = records.into_iter().flatten().map(|record| std::ptr::from_ref(record).cast());
        let sent = sent.into_iter().flatten().map(|entry| std::ptr::from_ref(entry).cast());
        records.chain(sent).for_each(tell);
    }

    fn record(&mut self, segment: u32) -> Option<&mut Record> {
        self.records.get_mut(segment.checked_sub(self.acked)? as usize)
    }

    /// The packet that is to be sent next: the first that is missing, or else a new one.
    #[inline]
    fn candidate(&mut self) -> Option<u32> {
        if self.missing == 0 {
            return (self.next < self.available).then_some(self.next);
        }
        self.find_missing()
    }

    #[cold]
    fn find_missing(&mut self) -> Option<u32> {
        let from = self.first_missing.max(self.acked);
        let behind = self.records.iter().skip((from - self.acked) as usize);
        let place = behind.take_while(|record| record.place != SegmentState::Missing).count();
        self.first_missing = from + place as u32;
        (self.first_missing < self.next).then_some(self.first_missing)
    }

    /// The packet that may be sent next, as far as the window goes, and its size on the wire.
    #[inline]
    fn may_send(&mut self, uec: &Uec) -> Option<(u32, u16)> {
        let segment = self.candidate()?;
        let bytes = uec.wire.data_bytes(self.size, segment);
        (self.in_flight as f64 + f64::from(bytes) <= self.nscc.window).then_some((segment, bytes))
    }

    #[inline]
    pub(super) fn pull(&mut self, uec: &Uec, out: &mut impl Outbox) -> Pull {
        let Some((segment, bytes)) = self.may_send(uec) else { return Pull::NotBefore(Time::NEVER) };
        let now = out.now();
        let again = segment < self.next;
        let record = Record { sent: now, place: SegmentState::Out, was_timed_out: false };
        if again {
            self.send_again(segment, record, out);
        } else {
            self.records.push_back(record);
            self.next += 1;
        }
        self.sent.push_back((now, segment));
        self.in_flight += i64::from(bytes);
        let has_more = self.may_send(uec).is_some();
        let flags = PacketFlags::ECT
            .with_if(PacketFlags::RETRANSMISSION, again)
            .with_if(ACK_REQUEST, again || !has_more);
        out.send(uec.wire.data(self.size, segment, flags, now));
        if self.sent.len() == 1 {
            out.wake_at(now.saturating_add(uec.rules.rto));
        }
        Pull::Sent(if has_more { now } else { Time::NEVER })
    }

    #[cold]
    fn send_again(&mut self, segment: u32, anew: Record, out: &mut impl Outbox) {
        let Some(record) = self.record(segment) else { return };
        let cause = if record.was_timed_out { Resend::Timeout } else { Resend::FastRecovery };
        *record = anew;
        self.missing -= 1;
        self.first_missing = segment + 1;
        self.retransmissions += 1;
        out.note_retransmission(segment, anew.sent, cause);
    }

    #[inline]
    pub(super) fn receives(&mut self, uec: &Uec, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        match packet.kind {
            Kind::Ack => self.on_ack(uec, packet, out),
            Kind::Nack => self.on_nack(uec, packet, out),
            _ => return SenderState::Open,
        }
        if self.acked == self.size.segments {
            out.wake_at(Time::NEVER);
            return SenderState::Done;
        }
        self.set_timer(uec, out);
        if self.may_send(uec).is_some() {
            out.request_turn();
        }
        SenderState::Open
    }

    #[inline]
    fn on_ack(&mut self, uec: &Uec, packet: &Packet, out: &mut impl Outbox) {
        let (report, now) = (Report::read(packet), out.now());
        let is_marked = packet.flags.has(PacketFlags::ECE);
        self.marked_acks += u32::from(is_marked);
        // Of two that changed places, the later one told of the bytes of both.
        let newly = report.received.wrapping_sub(self.received).cast_signed();
        let newly = newly.max(0) as u32;
        self.received = self.received.wrapping_add(newly);
        self.in_flight -= i64::from(newly);
        let trigger = i64::from(packet.seq) + i64::from(report.trigger);
        let is_out = u32::try_from(trigger)
            .ok()
            .and_then(|trigger| self.record(trigger))
            .is_some_and(|record| record.place == SegmentState::Out);
        let rtt = is_out.then(|| now.since(packet.sent));
        self.take_in_order(uec, packet.seq);
        if report.bits != 0 {
            self.take_bits(uec, packet.seq.saturating_add(report.base.into()), report.bits);
        }
        let in_flight = self.in_flight.max(0) as f64;
        self.nscc.acknowledged(&uec.rules, (newly, is_marked), rtt, in_flight, now);
    }

    /// The receiver has everything below `expected`.
    #[inline]
    fn take_in_order(&mut self, uec: &Uec, expected: u32) {
        while self.acked < expected.min(self.next) {
            let segment = self.acked;
            if self.records.pop_front().is_some_and(|record| record.place == SegmentState::Missing) {
                self.found(uec, segment);
            }
            self.acked += 1;
        }
    }

    #[cold]
    fn take_bits(&mut self, uec: &Uec, base: u32, bits: u64) {
        let mut left = bits;
        while left != 0 {
            let segment = base.saturating_add(left.trailing_zeros());
            left &= left - 1;
            let Some(record) = self.record(segment) else { continue };
            let before = std::mem::replace(&mut record.place, SegmentState::There);
            if before == SegmentState::Missing {
                self.found(uec, segment);
            }
        }
    }

    /// A packet that was taken to be missing has come: it was in flight all the while.
    #[cold]
    fn found(&mut self, uec: &Uec, segment: u32) {
        self.missing -= 1;
        self.in_flight += i64::from(uec.wire.data_bytes(self.size, segment));
    }

    /// A packet was trimmed on its way.
    #[cold]
    fn on_nack(&mut self, uec: &Uec, packet: &Packet, out: &mut impl Outbox) {
        self.nacks += 1;
        if let Some(bytes) = self.lose(uec, packet.seq, false) {
            let now = out.now();
            let in_flight = (self.in_flight + i64::from(bytes)).max(0) as f64;
            self.nscc.trimmed(&uec.rules, bytes, now.since(packet.sent), in_flight, now);
        }
    }

    /// A packet that is on its way is missing from now on. Returns its size on the wire.
    #[cold]
    fn lose(&mut self, uec: &Uec, segment: u32, was_timed_out: bool) -> Option<u16> {
        let record = self.record(segment).filter(|record| record.place == SegmentState::Out)?;
        (record.place, record.was_timed_out) = (SegmentState::Missing, was_timed_out);
        self.first_missing = if self.missing == 0 { segment } else { self.first_missing.min(segment) };
        self.missing += 1;
        let bytes = uec.wire.data_bytes(self.size, segment);
        self.in_flight -= i64::from(bytes);
        Some(bytes)
    }

    /// The timer is that of the packet that has been on its way for the longest.
    #[inline]
    fn set_timer(&mut self, uec: &Uec, out: &mut impl Outbox) {
        while let Some(&(sent, segment)) = self.sent.front() {
            let is_out = self
                .record(segment)
                .is_some_and(|record| record.place == SegmentState::Out && record.sent == sent);
            if is_out {
                // What comes at the very instant at which the timer is due comes first.
                let due = sent.saturating_add(uec.rules.rto);
                out.wake_at(due.max(out.now() + Span::from_ps(1)));
                return;
            }
            self.sent.pop_front();
        }
        out.wake_at(Time::NEVER);
    }

    /// Packets have had no answer for too long.
    #[cold]
    pub(super) fn times_out(&mut self, uec: &Uec, out: &mut impl Outbox) {
        let now = out.now();
        let mut has_lost = false;
        while let Some(&(sent, segment)) = self.sent.front() {
            if sent.saturating_add(uec.rules.rto) > now {
                break;
            }
            self.sent.pop_front();
            let is_it = self.record(segment).is_some_and(|record| record.sent == sent);
            if is_it && let Some(bytes) = self.lose(uec, segment, true) {
                self.nscc.lost(&uec.rules, bytes);
                has_lost = true;
            }
        }
        if has_lost {
            self.timeouts += 1;
            self.timed_out += uec.rules.rto;
            out.timed_out();
            out.request_turn();
        }
        self.set_timer(uec, out);
    }

    pub(super) fn window(&self, uec: &Uec) -> WindowState {
        WindowState {
            cwnd: self.nscc.window / f64::from(uec.wire.mtu + uec.wire.header),
            ssthresh: f64::INFINITY,
            outstanding: self.next - self.acked,
            smoothed_rtt: self.nscc.base_rtt(),
        }
    }

    pub(super) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.next) + u64::from(self.retransmissions),
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            marked_acks: self.marked_acks,
            nacks: self.nacks,
            timed_out: self.timed_out,
            ..SenderStats::default()
        }
    }
}
