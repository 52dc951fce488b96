//! The sending end: what it keeps, how it opens, sends and takes acknowledgements. How losses are
//! found and mended is in `recovery`.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::{Span, Time};

use super::recovery::LossDetection;
use super::rtt::{RttEstimator, backed_off};
use super::{Ecn, Tcp};
use crate::congestion::{Ack, Controller, Window};
use crate::{FlowSize, Outbox, Outgoing, Resend, SenderState, SenderStats, Written};

/// Where a sender is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Not started.
    Idle,
    /// A SYN is out.
    SynSent,
    /// Slow start or congestion avoidance; after a timeout, the way back up to where it was.
    Open,
    /// Fast recovery.
    Recovery,
    /// All is acknowledged.
    Done,
}

/// The sending end of a flow. Two cache lines; without SACK it needs nothing per segment.
#[derive(Debug, Clone)]
pub struct Sender {
    /// SND.UNA: the first segment that is not acknowledged.
    pub(super) una: u32,
    /// SND.NXT: the next segment to send. Below `max` only on the way back after a timeout.
    pub(super) next: u32,
    /// One past the highest segment that was ever sent.
    pub(super) max: u32,
    /// One past the last segment that there is to send: what the application has written, and a FIN
    /// of its own.
    pub(super) segments: u32,
    pub(super) window: Window,
    pub(super) rtt: RttEstimator,
    pub(super) last_payload: u16,
    pub(super) phase: Phase,
    /// Timeouts since the last acknowledgement of new data.
    pub(super) backoff: u8,
    /// RFC 6582's recover: `max` when the last loss was found; 0 if there was none.
    pub(super) recover: u32,
    /// Duplicate acknowledgements in a row.
    pub(super) dup_acks: u32,
    /// Segments that limited transmit sent since the last acknowledgement of new data.
    pub(super) limited: u16,
    /// The next new segment says that the window was reduced.
    pub(super) cwr_due: bool,
    pub(super) facts: SenderFlags,
    pub(super) counts: Counts,
    /// Recovery state of single segments: with SACK after the first block, with RACK always, else
    /// nothing.
    pub(super) board: Option<Box<LossDetection>>,
}

/// Flags of a sender: one byte for all, since a sender has no more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SenderFlags(u8);

impl SenderFlags {
    /// This recovery has seen a partial acknowledgement.
    pub const PARTIAL_SEEN: u8 = 1;
    /// The application has yet to write the end of the flow.
    pub const MORE_TO_COME: u8 = 2;
    /// The last segment is a FIN without payload.
    pub const ENDS_BY_FIN: u8 = 4;
    /// The application writes, and closes the connection after that, if it does: what is sent
    /// meanwhile has no FIN.
    pub const IS_WRITING: u8 = 8;

    #[inline]
    pub const fn has(self, fact: u8) -> bool {
        self.0 & fact != 0
    }

    pub const fn set(&mut self, fact: u8, is_so: bool) {
        self.0 = if is_so { self.0 | fact } else { self.0 & !fact };
    }
}

/// Counters beyond the sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub retransmissions: u32,
    pub timeouts: u32,
    pub fast_recoveries: u32,
    pub duplicate_acks: u32,
    pub marked_acks: u32,
    /// How long the timers ran that expired, in microseconds: 32 bits keep the sender in two cache
    /// lines.
    pub timed_out_us: u32,
}

impl Sender {
    pub(super) fn new(tcp: &Tcp, size: FlowSize) -> Self {
        Self {
            una: 0,
            next: 0,
            max: 0,
            segments: size.segments,
            window: tcp.control.window(tcp.initial_window, tcp.initial_ssthresh),
            rtt: RttEstimator::default(),
            last_payload: size.last_payload,
            phase: Phase::Idle,
            backoff: 0,
            recover: 0,
            dup_acks: 0,
            limited: 0,
            cwr_due: false,
            facts: SenderFlags::default(),
            counts: Counts::default(),
            board: None,
        }
    }

    pub(super) fn start(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        if tcp.handshake {
            self.phase = Phase::SynSent;
            self.send_syn(tcp, out);
        } else {
            self.open(tcp, out);
        }
    }

    #[inline]
    pub(crate) fn receives(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> SenderState {
        match (self.phase, packet.kind) {
            (Phase::Open | Phase::Recovery, Kind::Ack) => self.on_ack(tcp, control, packet, out),
            (Phase::SynSent, Kind::SynAck) => self.on_syn_ack(tcp, packet, out),
            _ => {}
        }
        self.state()
    }

    pub(super) fn wakes(&mut self, tcp: &Tcp, out: &mut impl Outbox) -> SenderState {
        match self.phase {
            Phase::SynSent => {
                self.count_timeout(backed_off(tcp, tcp.syn_timeout, self.backoff));
                out.timed_out();
                self.backoff = self.backoff.saturating_add(1);
                self.send_syn(tcp, out);
            }
            Phase::Open | Phase::Recovery => self.on_timer(tcp, out),
            Phase::Idle | Phase::Done => {}
        }
        self.state()
    }

    fn open(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        self.phase = Phase::Open;
        self.send_first_window(tcp, out);
    }

    fn send_syn(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let now = out.now();
        out.send(Outgoing {
            kind: Kind::Syn,
            flags: PacketFlags::default().with_if(PacketFlags::RETRANSMISSION, self.backoff > 0),
            seq: 0,
            wire_bytes: tcp.syn_bytes,
            sent: now,
            sack: NO_SACK,
        });
        // RFC 6298 rule 5.5 for the SYN too.
        out.wake_at(tcp.timers.due(now, backed_off(tcp, tcp.syn_timeout, self.backoff)));
    }

    fn on_syn_ack(&mut self, tcp: &Tcp, packet: &Packet, out: &mut impl Outbox) {
        self.rtt.sample(out.now().since(packet.sent));
        if self.backoff > 0 {
            // RFC 5681 §3.1: after a lost SYN or SYN-ACK the initial window is one segment.
            self.window.cwnd = 1.0;
            self.backoff = 0;
        }
        self.acknowledge(tcp, out);
        self.open(tcp, out);
    }

    /// Acknowledges what the receiver has sent beside its acknowledgements, if that costs a packet:
    /// its SYN-ACK and its FIN.
    pub(super) fn acknowledge(&self, tcp: &Tcp, out: &mut impl Outbox) {
        if tcp.sender_acks {
            out.send(Outgoing {
                kind: Kind::SenderAck,
                flags: PacketFlags::default(),
                seq: self.next,
                wire_bytes: tcp.ack_bytes,
                sent: out.now(),
                sack: NO_SACK,
            });
        }
    }

    #[inline]
    fn on_ack(&mut self, tcp: &Tcp, control: &impl Controller, packet: &Packet, out: &mut impl Outbox) {
        let ack = packet.seq;
        // Older than what is known, or of data never sent: RFC 9293 §3.10.7.4.
        if ack < self.una || ack > self.max {
            return;
        }
        let marked = packet.flags.has(PacketFlags::ECE) && tcp.ecn != Ecn::Off;
        self.counts.marked_acks += u32::from(marked);
        self.follow(tcp, control, packet, marked, out);
    }

    /// Input of controllers: an acknowledgement of new data, after its sample was taken.
    #[inline]
    pub(super) fn ack_info(&self, acked: u32, marked: bool, rtt: Option<Span>, out: &impl Outbox) -> Ack {
        let smoothed_rtt = self.rtt.smoothed();
        Ack { acked, una: self.una, next: self.next, marked, now: out.now(), rtt, smoothed_rtt }
    }

    /// An acknowledgement carried ECE, outside recovery.
    pub(super) fn on_mark(&mut self, control: &impl Controller) {
        // At most once per window of data, be it for marks or for losses (RFC 3168 §6.1.2).
        if self.una <= self.window.cwr_end || (self.recover > 0 && self.una <= self.recover) {
            return;
        }
        control.on_mark(&mut self.window);
        self.window.cwr_end = self.next;
        self.cwr_due = true;
    }

    pub(super) fn finish(&mut self, out: &mut impl Outbox) {
        self.phase = Phase::Done;
        self.board = None;
        // A FIN is not waited for.
        (self.una, self.next) = (self.segments, self.segments);
        out.wake_at(Time::NEVER);
    }

    /// Sends what the window allows.
    #[inline]
    pub(super) fn send_allowed(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        if self.board.is_some() {
            self.send_around_sacked(tcp, out);
            return;
        }
        let window = self.window.segments().min(tcp.max_window);
        let end = self.una.saturating_add(window).min(self.segments);
        while self.next < end {
            self.transmit(tcp, self.next, out);
            self.next += 1;
        }
    }

    /// Sends one segment, new or again. `next` stays.
    #[inline]
    pub(super) fn transmit(&mut self, tcp: &Tcp, segment: u32, out: &mut impl Outbox) {
        let in_recovery = self.phase == Phase::Recovery;
        let cause = if in_recovery { Resend::FastRecovery } else { Resend::Timeout };
        self.transmit_for(cause, tcp, segment, out);
    }

    /// Transmits a segment; `cause` applies if it was sent before.
    #[inline]
    pub(super) fn transmit_for(&mut self, cause: Resend, tcp: &Tcp, segment: u32, out: &mut impl Outbox) {
        let again = segment < self.max;
        // RFC 3168 §6.1.5: retransmitted segments are not ECN-capable. DCTCP marks all data, as
        // Linux does.
        let ect = tcp.ecn == Ecn::Dctcp || (tcp.ecn == Ecn::Classic && !again);
        let last = segment + 1 == self.segments && !self.may_go_on();
        let mut flags = PacketFlags::default()
            .with_if(PacketFlags::ECT, ect)
            .with_if(PacketFlags::RETRANSMISSION, again)
            .with_if(PacketFlags::LAST, last);
        if again {
            self.counts.retransmissions += 1;
            out.note_retransmission(segment, out.now(), cause);
        } else {
            self.max = segment + 1;
            // RFC 3168 §6.1.2: on the first new segment after the reduction.
            flags = flags.with_if(PacketFlags::CWR, self.cwr_due);
            self.cwr_due = false;
        }
        out.send(Outgoing {
            kind: Kind::Data,
            flags,
            seq: segment,
            wire_bytes: self.payload(tcp, segment) + tcp.header,
            sent: out.now(),
            sack: NO_SACK,
        });
    }

    /// Payload bytes of a segment.
    #[inline]
    fn payload(&self, tcp: &Tcp, segment: u32) -> u16 {
        let left = self.segments - segment;
        if left > 2 || self.has_more_to_come() {
            return tcp.mss;
        }
        match (left, self.facts.has(SenderFlags::ENDS_BY_FIN)) {
            (1, true) => 0,
            (1, false) | (2, true) => self.last_payload,
            _ => tcp.mss,
        }
    }

    /// Whether something may come behind the last segment that is written.
    #[inline]
    pub(super) const fn may_go_on(&self) -> bool {
        self.facts.has(SenderFlags::MORE_TO_COME | SenderFlags::IS_WRITING)
    }

    /// Whether all data is acknowledged, and there is no more to come.
    #[inline]
    pub(super) fn is_acknowledged(&self) -> bool {
        let fin = u32::from(self.facts.has(SenderFlags::ENDS_BY_FIN));
        self.una + fin >= self.segments && !self.has_more_to_come()
    }

    /// Restarts the retransmission timer, or stops it if nothing is outstanding (RFC 6298 rules 5.1
    /// to 5.3).
    #[inline]
    pub(super) fn arm(&self, tcp: &Tcp, out: &mut impl Outbox) {
        let deadline = if self.una == self.max {
            Time::NEVER
        } else {
            tcp.timers.due(out.now(), self.rtt.timeout(tcp, self.backoff))
        };
        out.wake_at(deadline);
    }

    #[inline]
    fn state(&self) -> SenderState {
        if self.phase == Phase::Done { SenderState::Done } else { SenderState::Open }
    }

    pub(crate) fn stats(&self) -> SenderStats {
        let Counts { retransmissions, timeouts, fast_recoveries, duplicate_acks, marked_acks, timed_out_us } =
            self.counts;
        SenderStats {
            // Every segment below `max` was sent for the first time once.
            segments_sent: u64::from(self.max) + u64::from(retransmissions),
            retransmissions,
            timeouts,
            fast_recoveries,
            duplicate_acks,
            marked_acks,
            timed_out: Span::from_us(u64::from(timed_out_us)),
            ..SenderStats::default()
        }
    }

    /// A timer that was set for `timer` expired.
    pub(super) fn count_timeout(&mut self, timer: Span) {
        self.counts.timeouts += 1;
        let us = u32::try_from(timer.as_ps() / Span::from_us(1).as_ps()).unwrap_or(u32::MAX);
        self.counts.timed_out_us = self.counts.timed_out_us.saturating_add(us);
    }
}

/// It is another one after each reduction of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reductions {
    fast_recoveries: u32,
    timeouts: u32,
    cwr_end: u32,
}

/// A sender whose segments are given to it as it goes: a subflow.
impl Sender {
    /// It may send so many new segments now.
    pub(crate) fn supply(&mut self, segments: u32) {
        self.segments = self.max.saturating_add(segments);
        if self.phase == Phase::Done && segments > 0 {
            self.phase = Phase::Open;
        }
    }

    /// So much of the flow is written.
    pub(super) const fn limit(&mut self, written: Written) {
        self.segments = written.segments;
        self.facts.set(SenderFlags::MORE_TO_COME, !written.is_all);
    }

    /// Whether the application has yet to write the end of the flow.
    #[inline]
    pub(super) const fn has_more_to_come(&self) -> bool {
        self.facts.has(SenderFlags::MORE_TO_COME)
    }

    /// The application has written so much by now.
    pub(super) fn writes(&mut self, tcp: &Tcp, written: Written, out: &mut impl Outbox) {
        self.limit(written);
        match (self.phase, tcp.recovery.is_by_time()) {
            (Phase::Open | Phase::Recovery, true) => self.resume_by_time(tcp, out),
            (Phase::Open | Phase::Recovery, false) => self.resume(tcp, out),
            // When the connection is open, what is written then is sent.
            (Phase::Idle | Phase::SynSent | Phase::Done, _) => {}
        }
    }

    /// Sends what the window allows, be it the first time or after there was nothing to send.
    pub(crate) fn resume(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        match self.phase {
            Phase::Idle => self.start(tcp, out),
            Phase::Open | Phase::Recovery => {
                let was_idle = self.una == self.max;
                self.send_allowed(tcp, out);
                if was_idle {
                    self.arm(tcp, out);
                }
            }
            Phase::SynSent | Phase::Done => {}
        }
    }

    /// The first segment that is not acknowledged.
    pub(crate) const fn acknowledged(&self) -> u32 {
        self.una
    }

    /// Whether it ever sent anything.
    pub(crate) const fn carries(&self) -> bool {
        self.max > 0
    }

    /// Congestion window in segments; in fast recovery, when it may be inflated, what it will be
    /// afterwards.
    pub(crate) fn uninflated_window(&self) -> f64 {
        if self.phase == Phase::Recovery { self.window.ssthresh } else { self.window.cwnd }
    }

    /// Whether it has left slow start.
    pub(crate) fn avoids_congestion(&self) -> bool {
        self.window.cwnd >= self.window.ssthresh
    }

    /// Counters that change with each reduction of the window.
    pub(crate) const fn reductions(&self) -> Reductions {
        let Counts { fast_recoveries, timeouts, .. } = self.counts;
        Reductions { fast_recoveries, timeouts, cwr_end: self.window.cwr_end }
    }

    /// Timeouts since the last acknowledgement of new data.
    pub(crate) const fn timeouts_in_a_row(&self) -> u8 {
        self.backoff
    }
}

/// Values that may be traced.
impl Sender {
    /// Congestion window, in segments.
    pub const fn congestion_window(&self) -> f64 {
        self.window.cwnd
    }

    /// Slow start threshold, in segments; infinite until the first reduction if the configuration
    /// sets none.
    pub const fn slow_start_threshold(&self) -> f64 {
        self.window.ssthresh
    }

    /// Segments sent and not acknowledged cumulatively.
    pub const fn outstanding(&self) -> u32 {
        self.next - self.una
    }

    /// DCTCP's estimate of the marked share, 0 to 1.
    pub const fn marked_share(&self) -> f64 {
        self.window.marks.alpha
    }

    /// Smoothed round-trip time and its variation (RFC 6298); zero before the first sample.
    pub const fn round_trip(&self) -> (Span, Span) {
        (self.rtt.smoothed(), self.rtt.variation())
    }
}

const NO_SACK: [SackBlock; Packet::SACK_BLOCKS] = [SackBlock { first: 0, count: 0 }; Packet::SACK_BLOCKS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_two_cache_lines() {
        assert!(size_of::<Sender>() <= 128, "{}", size_of::<Sender>());
    }
}
