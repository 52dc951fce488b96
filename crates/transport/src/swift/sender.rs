//! The sending end: selective repeat below Swift's window.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::SwiftTransport;
use super::receiver::end_delay;
use crate::congestion::swift::Swift;
use crate::selective::Outgo;
use crate::{FlowSize, Outbox, Pull, Resend, SenderState, SenderStats, WindowState};

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    pub(super) outgo: Outgo,
    swift: Swift,
    /// When the last packet was sent.
    sent: Time,
    /// When the timer began that runs.
    timer_since: Time,
    timeouts: u32,
    nacks: u32,
    marked_acks: u32,
    timed_out: Span,
}

impl Sender {
    pub(super) fn new(transport: &SwiftTransport, size: FlowSize) -> Self {
        Self {
            outgo: Outgo::new(size),
            swift: Swift::new(&transport.rules),
            sent: Time::ZERO,
            timer_since: Time::ZERO,
            timeouts: 0,
            nacks: 0,
            marked_acks: 0,
            timed_out: Span::ZERO,
        }
    }

    /// Whether a packet may be sent that never was: one always may if none is out.
    #[inline]
    fn may_send_new(&self) -> bool {
        let in_flight = self.outgo.in_flight();
        self.outgo.has_new() && (in_flight == 0 || f64::from(in_flight + 1) <= self.swift.window())
    }

    #[inline]
    fn has_packet(&self) -> bool {
        self.may_send_new() || self.outgo.resend().is_some()
    }

    /// When the next packet may be sent: after a pause, if the window holds less than one.
    #[inline]
    pub(super) fn gate(&self, now: Time) -> Time {
        match self.swift.pause() {
            Some(pause) if self.outgo.next > 0 => self.sent.saturating_add(pause).max(now),
            _ => now,
        }
    }

    #[inline]
    pub(super) fn pull(&mut self, transport: &SwiftTransport, out: &mut impl Outbox) -> Pull {
        let now = out.now();
        let again = self.outgo.resend();
        if again.is_none() && !self.may_send_new() {
            return Pull::NotBefore(Time::NEVER);
        }
        let gate = self.gate(now);
        if gate > now {
            return Pull::NotBefore(gate);
        }
        self.send(transport, again, now, out);
        Pull::Sent(if self.has_packet() { self.gate(now) } else { Time::NEVER })
    }

    #[inline]
    fn send(&mut self, transport: &SwiftTransport, again: Option<u32>, now: Time, out: &mut impl Outbox) {
        let segment = again.unwrap_or(self.outgo.next);
        if again.is_some() {
            self.outgo.resent(segment);
            let cause = if self.outgo.has_timed_out { Resend::Timeout } else { Resend::FastRecovery };
            out.note_retransmission(segment, now, cause);
        } else {
            self.outgo.next += 1;
        }
        self.sent = now;
        let flags = PacketFlags::ECT.with_if(PacketFlags::RETRANSMISSION, again.is_some());
        out.send(transport.wire.data(self.outgo.size, segment, flags, now));
        self.restart_timer(transport, out);
    }

    #[inline]
    fn restart_timer(&mut self, transport: &SwiftTransport, out: &mut impl Outbox) {
        self.timer_since = out.now();
        out.wake_at(self.timer_since.saturating_add(transport.rto));
    }

    #[inline]
    pub(super) fn receives(
        &mut self,
        transport: &SwiftTransport,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> SenderState {
        if !matches!(packet.kind, Kind::Ack | Kind::Nack) {
            return SenderState::Open;
        }
        let now = out.now();
        self.marked_acks += u32::from(packet.flags.has(PacketFlags::ECE));
        self.nacks += u32::from(packet.kind == Kind::Nack);
        let progress = self.outgo.take(packet);
        let delays = (now.since(packet.sent), end_delay(packet));
        self.swift.acknowledged(&transport.rules, progress.newly, delays, now);
        if progress.begins_recovery {
            self.swift.lost(&transport.rules, now);
        }
        if self.outgo.is_done() {
            out.wake_at(Time::NEVER);
            return SenderState::Done;
        }
        if self.outgo.span() == 0 {
            out.wake_at(Time::NEVER);
        } else if progress.newly > 0 {
            self.restart_timer(transport, out);
        }
        if self.has_packet() {
            out.request_turn();
        }
        SenderState::Open
    }

    /// No answer came in time.
    #[cold]
    pub(super) fn times_out(&mut self, transport: &SwiftTransport, out: &mut impl Outbox) {
        if self.outgo.span() == 0 {
            return;
        }
        self.timeouts += 1;
        self.timed_out += out.now().since(self.timer_since);
        self.outgo.time_out();
        self.swift.timed_out(&transport.rules, out.now());
        out.timed_out();
        self.restart_timer(transport, out);
        out.request_turn();
    }

    pub(super) fn window(&self) -> WindowState {
        WindowState {
            cwnd: self.swift.window(),
            ssthresh: f64::INFINITY,
            outstanding: self.outgo.in_flight(),
            smoothed_rtt: self.swift.rtt(),
        }
    }

    pub(super) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.outgo.next) + u64::from(self.outgo.retransmissions),
            retransmissions: self.outgo.retransmissions,
            timeouts: self.timeouts,
            fast_recoveries: self.outgo.recoveries(),
            marked_acks: self.marked_acks,
            nacks: self.nacks,
            timed_out: self.timed_out,
            ..SenderStats::default()
        }
    }
}
