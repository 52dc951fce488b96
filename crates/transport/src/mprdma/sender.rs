//! The sending end: answers call for packets, on the paths by which they came.
//!
//! What an answer calls for waits until the host's card asks for it: as a turn, which is a path.
//! What it will carry is seen then.

use std::collections::VecDeque;

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::ack_detail::AckDetail;
use super::window::Window;
use super::{MpRdma, Rules, UncalledPaths};
use crate::{FlowSize, Outbox, Pull, Resend, SenderState, SenderStats, WindowState, Written};

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    size: FlowSize,
    /// The packets below are written.
    available: u32,
    /// The next packet that was never sent (`snd_nxt`).
    next: u32,
    /// The receiver has everything below (`snd_una`).
    una: u32,
    /// The furthest packet that is known to have come (`snd_ooh`).
    furthest: u32,
    /// In a recovery, the first packet that was not sent when it began (`recovery`); else 0.
    recovers_until: u32,
    /// The next packet to be sent again (`snd_retx`).
    resend_from: u32,
    /// Whether what is sent again is sent so because of a timeout.
    has_timed_out: bool,
    window: Window,
    /// Turns that answers called for, each with its path.
    turns: VecDeque<u16>,
    /// Turns by paths that are drawn.
    drawn_turns: u32,
    /// The path of the last answer that called for a packet.
    last_path: Option<u16>,
    /// Smoothed; zero before the first.
    rtt: Span,
    /// No new path is tried before this time.
    probe_at: Time,
    /// When the last answer came.
    heard_at: Time,
    /// Since when nothing more came in order.
    timer_since: Time,
    /// When the rest of the window is sent, if nothing comes before.
    burst_at: Time,
    retransmissions: u32,
    timeouts: u32,
    recoveries: u32,
    nacks: u32,
    marked_acks: u32,
    timed_out: Span,
}

impl Sender {
    pub(super) const fn new(rules: &Rules, size: FlowSize) -> Self {
        Self {
            size,
            available: size.segments,
            next: 0,
            una: 0,
            furthest: 0,
            recovers_until: 0,
            resend_from: 0,
            has_timed_out: false,
            window: Window::new(rules),
            turns: VecDeque::new(),
            drawn_turns: 0,
            last_path: None,
            rtt: Span::ZERO,
            probe_at: Time::ZERO,
            heard_at: Time::ZERO,
            timer_since: Time::ZERO,
            burst_at: Time::NEVER,
            retransmissions: 0,
            timeouts: 0,
            recoveries: 0,
            nacks: 0,
            marked_acks: 0,
            timed_out: Span::ZERO,
        }
    }

    pub(super) const fn limit(&mut self, written: Written) {
        self.available = if written.is_all { self.size.segments } else { written.segments };
    }

    /// The first window goes by paths that are drawn.
    pub(super) fn start(&mut self, out: &mut impl Outbox) {
        self.heard_at = out.now();
        self.draw_turns(out);
    }

    /// There is more to send. Without anything in flight nothing will call for it.
    pub(super) fn writes(&mut self, rules: &Rules, written: Written, out: &mut impl Outbox) {
        self.limit(written);
        if self.outstanding() > 0 {
            return self.set_timers(rules, out);
        }
        if out.now().since(self.heard_at) > self.round_trips(rules, rules.idle_after) {
            self.window.cwnd = rules.initial;
        }
        self.draw_turns(out);
    }

    /// Permits the packets that the window has room for, by paths that are drawn.
    fn draw_turns(&mut self, out: &mut impl Outbox) {
        self.drawn_turns += self.sendable();
        if self.turns() > 0 {
            out.request_turn();
        }
    }

    /// So many packets may be sent, for which no answer called.
    fn add_turns(&mut self, count: u32, paths: UncalledPaths) {
        match self.last_path {
            Some(path) if paths == UncalledPaths::Last => {
                self.turns.extend(std::iter::repeat_n(path, count as usize));
            }
            _ => self.drawn_turns += count,
        }
    }

    /// Packets that are not acknowledged in order.
    #[inline]
    const fn outstanding(&self) -> u32 {
        self.next - self.una
    }

    #[inline]
    const fn is_recovering(&self) -> bool {
        self.recovers_until > 0
    }

    /// Turns that were called for and not taken yet.
    #[inline]
    fn turns(&self) -> u32 {
        self.turns.len() as u32 + self.drawn_turns
    }

    /// Packets that were never sent and for which there is no turn yet.
    #[inline]
    fn unsent(&self) -> u32 {
        (self.available - self.next).saturating_sub(self.turns())
    }

    /// How many new packets the window has room for beside turns that were called for: less than 0
    /// if for less than those.
    #[inline]
    fn room(&self) -> i64 {
        self.window.room(self.outstanding()) - i64::from(self.turns())
    }

    /// New packets that may be called for.
    #[inline]
    fn sendable(&self) -> u32 {
        if self.is_recovering() { 0 } else { self.room().clamp(0, self.unsent().into()) as u32 }
    }

    /// So many round trips.
    fn round_trips(&self, rules: &Rules, count: f64) -> Span {
        let rtt = if self.rtt.is_zero() { rules.base_rtt } else { self.rtt };
        Span::from_ps((rtt.as_ps() as f64 * count) as u64).max(Span::from_ps(1))
    }

    /// Number of the packet that the next turn carries.
    #[inline]
    fn choice(&self, rules: &Rules) -> Option<u32> {
        if self.turns() == 0 {
            return None;
        }
        let resend = self.resend_from.max(self.una);
        if self.is_recovering() {
            return (resend < self.recovers_until).then_some(resend);
        }
        if self.next < self.available {
            return (self.window.room(self.outstanding()) >= 1).then_some(self.next);
        }
        (rules.early && resend < self.next).then_some(resend)
    }

    #[inline]
    pub(super) fn pull(&mut self, mprdma: &MpRdma, out: &mut impl Outbox) -> Pull {
        let rules = &mprdma.rules;
        let Some(segment) = self.choice(rules) else {
            self.forget_turns();
            return Pull::NotBefore(Time::NEVER);
        };
        let (now, is_again) = (out.now(), segment < self.next);
        let path = self.take_path(rules, out);
        if is_again {
            self.note_resend(segment, now, out);
        } else {
            if self.outstanding() == 0 {
                self.timer_since = now;
            }
            self.next += 1;
        }
        let flags = PacketFlags::ECT.with_if(PacketFlags::RETRANSMISSION, is_again);
        out.send_by_path(path, mprdma.wire.data(self.size, segment, flags, now));
        if self.outstanding() == 1 {
            self.set_timers(rules, out);
        }
        if self.choice(rules).is_none() {
            self.forget_turns();
            return Pull::Sent(Time::NEVER);
        }
        Pull::Sent(now)
    }

    /// Turns for which there is nothing to send, or no room any more.
    fn forget_turns(&mut self) {
        self.turns.clear();
        self.drawn_turns = 0;
    }

    /// The path of the next turn; once a round trip, by chance, another one (MP-RDMA §3.5).
    #[inline]
    fn take_path(&mut self, rules: &Rules, out: &mut impl Outbox) -> u16 {
        let Some(path) = self.turns.pop_front() else {
            self.drawn_turns = self.drawn_turns.saturating_sub(1);
            return draw(rules, out);
        };
        if out.now() >= self.probe_at {
            self.probe_at = out.now() + self.round_trips(rules, 1.0);
            if rules.probe > 0.0 && out.random().unit() < rules.probe {
                return draw(rules, out);
            }
        }
        path
    }

    #[cold]
    fn note_resend(&mut self, segment: u32, now: Time, out: &mut impl Outbox) {
        self.resend_from = segment + 1;
        self.retransmissions += 1;
        let cause = if self.has_timed_out { Resend::Timeout } else { Resend::FastRecovery };
        out.note_retransmission(segment, now, cause);
    }

    #[inline]
    pub(super) fn receives(&mut self, rules: &Rules, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        let detail = AckDetail::read(packet);
        let is_answer = matches!(packet.kind, Kind::Ack | Kind::Nack);
        if !is_answer || packet.seq > self.next || detail.packet >= self.next {
            return SenderState::Open;
        }
        self.heard_at = out.now();
        let path = out.path_of(packet);
        let calls = if packet.kind == Kind::Ack {
            self.on_ack(rules, packet, detail, out)
        } else {
            self.on_nack(rules, packet, detail, out);
            true
        };
        if self.una == self.size.segments {
            out.wake_at(Time::NEVER);
            return SenderState::Done;
        }
        if calls {
            self.call(rules, path);
        }
        self.set_timers(rules, out);
        if self.turns() > 0 {
            out.request_turn();
        }
        SenderState::Open
    }

    /// Returns whether it calls for a packet.
    #[inline]
    fn on_ack(&mut self, rules: &Rules, packet: &Packet, detail: AckDetail, out: &mut impl Outbox) -> bool {
        let is_marked = packet.flags.has(PacketFlags::ECE);
        self.marked_acks += u32::from(is_marked);
        self.measure(out.now().since(packet.sent));
        self.window.acknowledged(rules, is_marked);
        if !detail.had_come {
            self.window.came(detail.packet);
        }
        self.furthest = self.furthest.max(detail.packet);
        self.advance(packet.seq, out.now());
        // Too far behind: the path is given up (MP-RDMA §3.3).
        let is_late = !detail.is_again && detail.packet.saturating_add(rules.delta) < self.furthest;
        if is_late {
            self.window.lower(rules, 1.0);
        }
        !is_late
    }

    #[inline]
    fn measure(&mut self, sample: Span) {
        let smoothed = (self.rtt.as_ps() * 7 + sample.as_ps()) / 8;
        self.rtt = if self.rtt.is_zero() { sample } else { Span::from_ps(smoothed) };
    }

    /// The receiver has everything below `expected`.
    #[inline]
    fn advance(&mut self, expected: u32, now: Time) {
        if expected <= self.una {
            return;
        }
        let newly = expected - self.una;
        self.una = expected;
        self.timer_since = now;
        self.window.advanced(newly, expected, self.furthest < expected);
        if self.una >= self.recovers_until {
            self.recovers_until = 0;
            self.has_timed_out = false;
        }
    }

    /// A packet came beyond the bitmap, and is lost with those that are missing.
    #[cold]
    fn on_nack(&mut self, rules: &Rules, packet: &Packet, detail: AckDetail, out: &mut impl Outbox) {
        self.nacks += 1;
        self.advance(packet.seq, out.now());
        if detail.packet < self.una {
            return;
        }
        if self.is_recovering() {
            if detail.is_again {
                self.resend_from = self.resend_from.min(detail.packet);
            }
            return;
        }
        self.recovers_until = self.next;
        self.resend_from = self.una;
        self.recoveries += 1;
        self.timer_since = out.now();
        self.forget_turns();
        self.window.cut(rules, rules.loss_cut);
    }

    /// An answer that came by this path calls for a packet on it.
    #[inline]
    fn call(&mut self, rules: &Rules, path: u16) {
        self.last_path = Some(path);
        if self.is_recovering() {
            let called = self.resend_from.max(self.una) + self.turns();
            if called < self.recovers_until {
                self.turns.push_back(path);
            }
            return;
        }
        let count = self.sendable().min(rules.burst);
        for _ in 0..count {
            self.turns.push_back(path);
        }
        if count == 0 && self.unsent() == 0 && self.room() >= 1 {
            self.lose_unused(rules, path);
        }
    }

    /// There is room and nothing new to fill it: it is used or lost, and tries whether something
    /// was lost (MP-RDMA §3.5).
    #[cold]
    fn lose_unused(&mut self, rules: &Rules, path: u16) {
        self.window.lower(rules, 1.0);
        if rules.early && self.resend_from.max(self.una) + self.turns() < self.next {
            self.turns.push_back(path);
        }
    }

    /// There is one timer, for what is not acknowledged and for the rest of the window.
    #[inline]
    fn set_timers(&mut self, rules: &Rules, out: &mut impl Outbox) {
        let now = out.now();
        self.burst_at =
            if self.sendable() > 0 { now + self.round_trips(rules, rules.burst_after) } else { Time::NEVER };
        self.arm(rules, out);
    }

    #[inline]
    fn arm(&self, rules: &Rules, out: &mut impl Outbox) {
        let due =
            if self.outstanding() > 0 { self.timer_since.saturating_add(rules.rto) } else { Time::NEVER };
        // What comes at the very instant at which the timer is due comes first.
        out.wake_at(due.min(self.burst_at).max(out.now() + Span::from_ps(1)));
    }

    /// The timer is due.
    #[cold]
    pub(super) fn wakes(&mut self, rules: &Rules, out: &mut impl Outbox) {
        let now = out.now();
        if self.outstanding() > 0 && self.timer_since.saturating_add(rules.rto) <= now {
            self.time_out(rules, out);
        } else if self.burst_at <= now {
            self.add_turns(self.sendable(), rules.burst_paths);
            out.request_turn();
        }
        self.burst_at = Time::NEVER;
        self.arm(rules, out);
    }

    /// Nothing more came in order for too long: everything is sent again that is not acknowledged.
    fn time_out(&mut self, rules: &Rules, out: &mut impl Outbox) {
        self.timeouts += 1;
        self.timed_out += out.now().since(self.timer_since);
        self.timer_since = out.now();
        (self.recovers_until, self.resend_from) = (self.next, self.una);
        self.has_timed_out = true;
        self.window.cut(rules, rules.timeout_cut);
        self.forget_turns();
        let count = self.outstanding().min(self.window.cwnd as u32);
        self.add_turns(count, rules.timeout_paths);
        out.timed_out();
        out.request_turn();
    }

    pub(super) fn window(&self) -> WindowState {
        WindowState {
            cwnd: self.window.cwnd,
            ssthresh: f64::INFINITY,
            outstanding: self.outstanding(),
            smoothed_rtt: self.rtt,
        }
    }

    pub(super) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.next) + u64::from(self.retransmissions),
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            fast_recoveries: self.recoveries,
            marked_acks: self.marked_acks,
            nacks: self.nacks,
            timed_out: self.timed_out,
            ..SenderStats::default()
        }
    }
}

/// Any path.
fn draw(rules: &Rules, out: &mut impl Outbox) -> u16 {
    out.random().below(rules.paths) as u16
}
