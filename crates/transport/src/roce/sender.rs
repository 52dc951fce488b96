//! The sending end: go-back-N.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::Roce;
use crate::congestion::dcqcn::Dcqcn;
use crate::rdma::notifier::Notify;
use crate::rdma::wire::ACK_REQUEST;
use crate::{FlowSize, Outbox, Pull, Resend, SenderState, SenderStats, Written};

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    size: FlowSize,
    /// The packets below are written.
    available: u32,
    /// The next packet to send.
    next: u32,
    /// The receiver has everything below.
    acked: u32,
    /// One past the highest packet that was ever sent.
    sent_below: u32,
    /// Whether what is sent again is sent so because of a timeout.
    has_timed_out: bool,
    dcqcn: Dcqcn,
    /// When the timer began that runs.
    timer_since: Time,
    retransmissions: u32,
    timeouts: u32,
    nacks: u32,
    cnps: u32,
    went_back: u32,
    marked_acks: u32,
    timed_out: Span,
}

impl Sender {
    pub(super) fn new(size: FlowSize) -> Self {
        Self {
            size,
            available: size.segments,
            next: 0,
            acked: 0,
            sent_below: 0,
            has_timed_out: false,
            dcqcn: Dcqcn::default(),
            timer_since: Time::ZERO,
            retransmissions: 0,
            timeouts: 0,
            nacks: 0,
            cnps: 0,
            went_back: 0,
            marked_acks: 0,
            timed_out: Span::ZERO,
        }
    }

    pub(super) fn limit(&mut self, written: Written) {
        self.available = if written.is_all { self.size.segments } else { written.segments };
    }

    /// Whether there is a packet that may be sent as far as the window goes.
    #[inline]
    fn has_packet(&self, roce: &Roce) -> bool {
        self.next < self.available && self.next - self.acked < roce.window
    }

    /// Until when its rate holds it back.
    pub(super) fn held_until(&self, roce: &Roce, now: Time) -> Time {
        roce.dcqcn.as_ref().map_or(now, |rules| self.dcqcn.gate_seen(rules, now).max(now))
    }

    #[inline]
    pub(super) fn pull(&mut self, roce: &Roce, out: &mut impl Outbox) -> Pull {
        let now = out.now();
        if !self.has_packet(roce) {
            return Pull::NotBefore(Time::NEVER);
        }
        if let Some(rules) = &roce.dcqcn {
            let gate = self.dcqcn.gate(rules, now);
            if gate > now {
                return Pull::NotBefore(gate);
            }
        }
        self.send(roce, now, out);
        if !self.has_packet(roce) {
            return Pull::Sent(Time::NEVER);
        }
        Pull::Sent(roce.dcqcn.as_ref().map_or(now, |rules| self.dcqcn.gate(rules, now)))
    }

    #[inline]
    fn send(&mut self, roce: &Roce, now: Time, out: &mut impl Outbox) {
        let segment = self.next;
        let again = segment < self.sent_below;
        let is_answer_due = self.acked < self.sent_below;
        self.next += 1;
        let flags = PacketFlags::ECT
            .with_if(PacketFlags::RETRANSMISSION, again)
            .with_if(ACK_REQUEST, !self.has_packet(roce));
        if again {
            self.retransmissions += 1;
            let cause = if self.has_timed_out { Resend::Timeout } else { Resend::FastRecovery };
            out.note_retransmission(segment, now, cause);
        } else {
            self.sent_below = self.next;
        }
        let packet = roce.wire.data(self.size, segment, flags, now);
        if let Some(rules) = &roce.dcqcn {
            self.dcqcn.sent(rules, packet.wire_bytes, now);
        }
        out.send(packet);
        // It runs from the first packet that awaits an answer, and begins anew with each answer,
        // not with what is sent meanwhile (IBTA vol. 1 §9.7.6.1.3): else a flow that goes on
        // sending would not notice that what it went back for was lost again.
        if !is_answer_due {
            self.restart_timer(roce, out);
        }
    }

    #[inline]
    fn restart_timer(&mut self, roce: &Roce, out: &mut impl Outbox) {
        self.timer_since = out.now();
        out.wake_at(self.timer_since.saturating_add(roce.timeout));
    }

    #[inline]
    pub(super) fn receives(&mut self, roce: &Roce, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        if !matches!(packet.kind, Kind::Ack | Kind::Nack) {
            if packet.kind == Kind::Cnp {
                self.on_notification(roce, out);
            }
            return SenderState::Open;
        }
        if packet.flags.has(PacketFlags::ECE) {
            self.marked_acks += 1;
            if roce.notify == Notify::InAcks {
                self.on_notification(roce, out);
            }
        }
        let has_more = packet.seq > self.acked;
        self.acked = self.acked.max(packet.seq);
        self.next = self.next.max(self.acked);
        if packet.kind == Kind::Nack {
            self.nacks += 1;
            // One that was overtaken tells nothing new.
            if packet.seq == self.acked && self.next > self.acked {
                self.went_back += 1;
                self.has_timed_out = false;
                self.next = self.acked;
            }
        }
        if self.acked == self.size.segments {
            out.wake_at(Time::NEVER);
            return SenderState::Done;
        }
        if self.acked == self.sent_below {
            out.wake_at(Time::NEVER);
        } else if has_more || packet.kind == Kind::Nack {
            self.restart_timer(roce, out);
        }
        if self.has_packet(roce) {
            out.request_turn();
        }
        SenderState::Open
    }

    #[cold]
    fn on_notification(&mut self, roce: &Roce, out: &mut impl Outbox) {
        self.cnps += 1;
        if let Some(rules) = &roce.dcqcn {
            self.dcqcn.notified(rules, out.link_pace(), out.now());
        }
    }

    /// No answer came in time: everything that is not acknowledged is sent again.
    #[cold]
    pub(super) fn times_out(&mut self, roce: &Roce, out: &mut impl Outbox) {
        if self.acked == self.sent_below {
            return;
        }
        self.timeouts += 1;
        self.timed_out += out.now().since(self.timer_since);
        self.has_timed_out = true;
        self.next = self.acked;
        out.timed_out();
        self.restart_timer(roce, out);
        out.request_turn();
    }

    pub(super) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.sent_below) + u64::from(self.retransmissions),
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            fast_recoveries: self.went_back,
            marked_acks: self.marked_acks,
            nacks: self.nacks,
            cnps: self.cnps,
            timed_out: self.timed_out,
            ..SenderStats::default()
        }
    }
}
