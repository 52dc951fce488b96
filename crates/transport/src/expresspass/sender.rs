//! The sending end: asks for credits, answers each with a segment, and says when it needs no more.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::Time;

use super::ExpressPass;
use crate::{FlowSize, Outbox, Outgoing, Resend, SenderState, SenderStats};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Asked for credits; none has come.
    Requesting,
    /// Credits come.
    Sending,
    /// Said that it needs no more; the receiver has not answered.
    Stopping,
    /// Everything is acknowledged.
    Done,
}

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    phase: Phase,
    /// How often in a row the timer of this phase expired.
    expired: u32,
    segments: u32,
    last_payload: u16,
    /// The next segment to send.
    next: u32,
    /// One past the highest segment that was ever sent.
    sent_below: u32,
    /// The receiver has everything below.
    acked: u32,
    /// The hole that was filled last, and when.
    refilled: (u32, Time),
    retransmissions: u32,
    timeouts: u32,
    wasted_credits: u64,
}

impl Sender {
    /// The timeout is doubled at most so often: from 0.1 ms to 0.1 s.
    const MOST_DOUBLINGS: u32 = 10;

    pub(super) const fn new(size: FlowSize) -> Self {
        Self {
            phase: Phase::Requesting,
            expired: 0,
            segments: size.segments,
            last_payload: size.last_payload,
            next: 0,
            sent_below: 0,
            acked: 0,
            refilled: (u32::MAX, Time::ZERO),
            retransmissions: 0,
            timeouts: 0,
            wasted_credits: 0,
        }
    }

    /// Asks for credits, until one comes.
    pub(super) fn request(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        self.phase = Phase::Requesting;
        out.send(protocol.signal(Kind::CreditRequest, self.acked, out.now()));
        self.arm(protocol.retransmit_timeout, out);
    }

    /// Says that no more credits are needed, until the receiver answers.
    fn stop(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        self.phase = Phase::Stopping;
        out.send(protocol.signal(Kind::CreditStop, self.acked, out.now()));
        self.arm(protocol.stop_timeout, out);
    }

    fn arm(&self, timeout: weft_units::Span, out: &mut impl Outbox) {
        let timeout = timeout.saturating_mul(1 << self.expired.min(Self::MOST_DOUBLINGS));
        out.wake_at(out.now().saturating_add(timeout));
    }

    pub(super) fn wakes(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        self.timeouts += 1;
        self.expired += 1;
        out.timed_out();
        match self.phase {
            Phase::Requesting => self.request(protocol, out),
            Phase::Stopping => self.stop(protocol, out),
            Phase::Sending | Phase::Done => {}
        }
    }

    #[inline]
    pub(super) fn receives(
        &mut self,
        protocol: &ExpressPass,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> SenderState {
        match packet.kind {
            Kind::Credit => self.on_credit(protocol, packet, out),
            Kind::Ack => self.on_answer(protocol, packet, out),
            _ => {}
        }
        if self.phase == Phase::Done { SenderState::Done } else { SenderState::Open }
    }

    fn on_credit(&mut self, protocol: &ExpressPass, credit: &Packet, out: &mut impl Outbox) {
        self.acked = self.acked.max(credit.seq);
        if self.phase == Phase::Requesting {
            self.phase = Phase::Sending;
            self.expired = 0;
            out.wake_at(Time::NEVER);
        }
        if self.phase != Phase::Sending {
            self.wasted_credits += 1;
            return;
        }
        let segment = self.hole(protocol, credit, out.now()).unwrap_or_else(|| self.take_next());
        self.transmit(protocol, segment, credit.sent, out);
        if self.next == self.segments {
            self.stop(protocol, out);
        }
    }

    /// The segment that a credit says is missing, unless it was sent again a moment ago.
    fn hole(&mut self, protocol: &ExpressPass, credit: &Packet, now: Time) -> Option<u32> {
        let (segment, at) = self.refilled;
        let is_news = segment != self.acked || now.since(at) >= protocol.retransmit_timeout;
        let missing = credit.flags.has(PacketFlags::ECE) && credit.seq == self.acked && is_news;
        missing.then(|| {
            self.refilled = (self.acked, now);
            self.acked
        })
    }

    /// The next segment in order. There is one: otherwise the phase is another.
    fn take_next(&mut self) -> u32 {
        // After going back: what arrived the first time need not be sent again. All but the last, which ends the phase.
        self.next = self.next.max(self.acked.min(self.segments - 1));
        self.next += 1;
        self.next - 1
    }

    fn transmit(&mut self, protocol: &ExpressPass, segment: u32, stamp: Time, out: &mut impl Outbox) {
        let again = segment < self.sent_below;
        if again {
            self.retransmissions += 1;
            out.sends_again_stamped(segment, stamp, Resend::FastRecovery);
        }
        self.sent_below = self.sent_below.max(segment + 1);
        let last = segment + 1 == self.segments;
        let payload = if last { self.last_payload } else { protocol.mss };
        let flags = PacketFlags::default()
            .with_if(PacketFlags::RETRANSMISSION, again)
            .with_if(PacketFlags::LAST, last);
        let wire_bytes = payload + protocol.header;
        out.send(Outgoing { flags, wire_bytes, ..protocol.signal(Kind::Data, segment, stamp) });
    }

    /// The receiver heard the stop.
    fn on_answer(&mut self, protocol: &ExpressPass, answer: &Packet, out: &mut impl Outbox) {
        self.acked = self.acked.max(answer.seq);
        if self.acked == self.segments {
            self.phase = Phase::Done;
            out.wake_at(Time::NEVER);
        } else if self.phase == Phase::Stopping {
            self.next = self.acked;
            self.expired = 0;
            self.request(protocol, out);
        }
    }

    pub(super) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.sent_below) + u64::from(self.retransmissions),
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            wasted_credits: self.wasted_credits,
            ..SenderStats::default()
        }
    }
}
