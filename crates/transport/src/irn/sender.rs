//! The sending end: selective repeat below a cap.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::Irn;
use crate::congestion::dcqcn::Dcqcn;
use crate::rdma::notifier::Notify;
use crate::rdma::wire::ACK_REQUEST;
use crate::selective::{Outgo, Resends};
use crate::{FlowSize, Outbox, Pull, Resend, SenderState, SenderStats};

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    pub(super) outgo: Outgo,
    dcqcn: Dcqcn,
    /// When the timer began that runs.
    timer_since: Time,
    timeouts: u32,
    nacks: u32,
    cnps: u32,
    marked_acks: u32,
    timed_out: Span,
}

impl Sender {
    pub(super) fn new(size: FlowSize, resends: Resends) -> Self {
        Self {
            outgo: Outgo::new(size).with(resends),
            dcqcn: Dcqcn::default(),
            timer_since: Time::ZERO,
            timeouts: 0,
            nacks: 0,
            cnps: 0,
            marked_acks: 0,
            timed_out: Span::ZERO,
        }
    }

    /// Whether a packet may be sent that never was.
    #[inline]
    const fn may_send_new(&self, irn: &Irn) -> bool {
        self.outgo.has_new() && self.outgo.span() < irn.cap
    }

    /// Whether there is anything that may be sent, as far as the cap goes.
    #[inline]
    fn has_packet(&self, irn: &Irn) -> bool {
        self.may_send_new(irn) || self.outgo.resend().is_some()
    }

    /// Until when its rate holds it back.
    pub(super) fn held_until(&self, irn: &Irn, now: Time) -> Time {
        irn.dcqcn.as_ref().map_or(now, |rules| self.dcqcn.gate_seen(rules, now).max(now))
    }

    #[inline]
    pub(super) fn pull(&mut self, irn: &Irn, out: &mut impl Outbox) -> Pull {
        let now = out.now();
        let again = self.outgo.resend();
        if again.is_none() && !self.may_send_new(irn) {
            return Pull::NotBefore(Time::NEVER);
        }
        if let Some(rules) = &irn.dcqcn {
            let gate = self.dcqcn.gate(rules, now);
            if gate > now {
                return Pull::NotBefore(gate);
            }
        }
        self.send(irn, again, now, out);
        if !self.has_packet(irn) {
            return Pull::Sent(Time::NEVER);
        }
        Pull::Sent(irn.dcqcn.as_ref().map_or(now, |rules| self.dcqcn.gate(rules, now)))
    }

    #[inline]
    fn send(&mut self, irn: &Irn, again: Option<u32>, now: Time, out: &mut impl Outbox) {
        let segment = again.unwrap_or(self.outgo.next);
        if again.is_some() {
            self.outgo.resent(segment);
            let cause = if self.outgo.has_timed_out { Resend::Timeout } else { Resend::FastRecovery };
            out.note_retransmission(segment, now, cause);
        } else {
            self.outgo.sent_new();
        }
        let flags = PacketFlags::ECT
            .with_if(PacketFlags::RETRANSMISSION, again.is_some())
            .with_if(ACK_REQUEST, !self.has_packet(irn));
        let packet = irn.wire.data(self.outgo.size, segment, flags, now);
        if let Some(rules) = &irn.dcqcn {
            self.dcqcn.sent(rules, packet.wire_bytes, now);
        }
        out.send(packet);
        self.restart_timer(irn, out);
    }

    #[inline]
    fn restart_timer(&mut self, irn: &Irn, out: &mut impl Outbox) {
        self.timer_since = out.now();
        let is_few = self.outgo.in_flight() <= irn.few_packets;
        out.wake_at(self.timer_since.saturating_add(if is_few { irn.rto_low } else { irn.rto_high }));
    }

    #[inline]
    pub(super) fn receives(&mut self, irn: &Irn, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        if !matches!(packet.kind, Kind::Ack | Kind::Nack) {
            if packet.kind == Kind::Cnp {
                self.on_notification(irn, out);
            }
            return SenderState::Open;
        }
        if packet.flags.has(PacketFlags::ECE) {
            self.marked_acks += 1;
            if irn.notify == Notify::InAcks {
                self.on_notification(irn, out);
            }
        }
        self.nacks += u32::from(packet.kind == Kind::Nack);
        let progress = self.outgo.take(packet);
        if self.outgo.is_done() {
            out.wake_at(Time::NEVER);
            return SenderState::Done;
        }
        if self.outgo.span() == 0 {
            out.wake_at(Time::NEVER);
        } else if progress.newly > 0 {
            self.restart_timer(irn, out);
        }
        if self.has_packet(irn) {
            out.request_turn();
        }
        SenderState::Open
    }

    #[cold]
    fn on_notification(&mut self, irn: &Irn, out: &mut impl Outbox) {
        self.cnps += 1;
        if let Some(rules) = &irn.dcqcn {
            self.dcqcn.notified(rules, out.link_pace(), out.now());
        }
    }

    /// No answer came in time.
    #[cold]
    pub(super) fn times_out(&mut self, irn: &Irn, out: &mut impl Outbox) {
        if self.outgo.span() == 0 {
            return;
        }
        self.timeouts += 1;
        self.timed_out += out.now().since(self.timer_since);
        self.outgo.time_out();
        out.timed_out();
        self.restart_timer(irn, out);
        out.request_turn();
    }

    pub(super) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.outgo.next) + u64::from(self.outgo.retransmissions),
            retransmissions: self.outgo.retransmissions,
            timeouts: self.timeouts,
            fast_recoveries: self.outgo.recoveries(),
            marked_acks: self.marked_acks,
            nacks: self.nacks,
            cnps: self.cnps,
            timed_out: self.timed_out,
            ..SenderStats::default()
        }
    }
}
