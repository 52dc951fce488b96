//! The sending end: asks for credits, answers each with a segment, and says when it needs no more.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::Terms;
use crate::{ArrivedPacket, FlowSize, Outbox, Outgoing, Ports, Resend, SenderState, SenderStats};

/// On data of credit transports: SUBCSTOP of MaxPass §III.F, no more credits by this port. The bit
/// of a flag that only windows need.
pub(crate) const SUBFLOW_STOP: PacketFlags = PacketFlags::CWR;

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
    /// How long the timers ran that expired.
    timed_out: Span,
    wasted_credits: u64,
    /// With fewer segments than this to send, one subflow is enough.
    single_below: u32,
    /// The port of the subflow that goes on then.
    last_port: Option<u8>,
}

impl Sender {
    /// The bytes that each port but the first adds to a request.
    const PORT_BYTES: u16 = 2;

    /// The timeout is doubled at most so often: from 0.1 ms to 0.1 s.
    const MOST_DOUBLINGS: u32 = 10;

    /// A sender that has not begun. With fewer than `single_below` segments to send, it stops all
    /// subflows but one.
    pub(crate) const fn new(size: FlowSize, single_below: u32) -> Self {
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
            timed_out: Span::ZERO,
            wasted_credits: 0,
            single_below,
            last_port: None,
        }
    }

    /// Asks for credits, until one comes.
    pub(crate) fn request(&mut self, terms: &Terms, out: &mut impl Ports) {
        self.phase = Phase::Requesting;
        self.last_port = None;
        let mut request = terms.signal(Kind::CreditRequest, self.acked, out.now());
        request.wire_bytes += u16::from(out.ports() - 1) * Self::PORT_BYTES;
        out.by(self.signal_port(out)).send(request);
        self.arm(terms, out);
    }

    /// Says that no more credits are needed, until the receiver answers.
    #[cold]
    #[inline(never)]
    fn stop(&mut self, terms: &Terms, out: &mut impl Ports) {
        self.phase = Phase::Stopping;
        let stop = terms.signal(Kind::CreditStop, self.acked, out.now());
        out.by(self.signal_port(out)).send(stop);
        self.arm(terms, out);
    }

    /// Requests and stops go by the flow's own port; each repetition takes the next one, lest the
    /// path be dead.
    fn signal_port(&self, out: &impl Ports) -> u8 {
        (self.expired % u32::from(out.ports())) as u8
    }

    /// How long the timer of this phase runs.
    fn timer(&self, terms: &Terms) -> Span {
        let first =
            if self.phase == Phase::Requesting { terms.retransmit_timeout } else { terms.stop_timeout };
        first.saturating_mul(1 << self.expired.min(Self::MOST_DOUBLINGS))
    }

    fn arm(&self, terms: &Terms, out: &mut impl Ports) {
        out.wake_at(out.now().saturating_add(self.timer(terms)));
    }

    pub(crate) fn wakes(&mut self, terms: &Terms, out: &mut impl Ports) {
        self.timeouts += 1;
        self.timed_out += self.timer(terms);
        self.expired += 1;
        out.timed_out();
        match self.phase {
            // No credit for so long: on another path, an old stop came behind the last request.
            Phase::Requesting | Phase::Sending => self.request(terms, out),
            Phase::Stopping => self.stop(terms, out),
            Phase::Done => {}
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller in each transport.
    pub(crate) fn receives(
        &mut self,
        terms: &Terms,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> SenderState {
        match arrived.packet.kind {
            Kind::Credit => self.on_credit(terms, arrived, out),
            Kind::Ack => self.on_answer(terms, arrived.packet.seq, out),
            _ => {}
        }
        if self.phase == Phase::Done { SenderState::Done } else { SenderState::Open }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn on_credit(&mut self, terms: &Terms, arrived: ArrivedPacket<'_>, out: &mut impl Ports) {
        let credit = arrived.packet;
        self.acked = self.acked.max(credit.seq);
        if self.phase == Phase::Requesting {
            self.phase = Phase::Sending;
            self.expired = 0;
        }
        if self.phase != Phase::Sending {
            self.wasted_credits += 1;
            return;
        }
        self.arm(terms, out);
        let segment = self.hole(terms, credit, out.now()).unwrap_or_else(|| self.take_next());
        self.transmit(terms, segment, credit.sent, arrived.port, out);
        if self.next == self.segments {
            self.stop(terms, out);
        }
    }

    /// The segment that a credit says is missing, unless it was sent again a moment ago.
    fn hole(&mut self, terms: &Terms, credit: &Packet, now: Time) -> Option<u32> {
        let (segment, at) = self.refilled;
        let is_news = segment != self.acked || now.since(at) >= terms.retransmit_timeout;
        let missing = credit.flags.has(PacketFlags::ECE) && credit.seq == self.acked && is_news;
        missing.then(|| {
            self.refilled = (self.acked, now);
            self.acked
        })
    }

    /// The next segment in order. There is one: otherwise the phase is another.
    fn take_next(&mut self) -> u32 {
        // After going back: what arrived the first time need not be sent again. All but the last,
        // which ends the phase.
        self.next = self.next.max(self.acked.min(self.segments - 1));
        self.next += 1;
        self.next - 1
    }

    /// Sends a segment that answers the credit with this stamp, by the port that the credit came
    /// by.
    fn transmit(&mut self, terms: &Terms, segment: u32, stamp: Time, port: u8, out: &mut impl Ports) {
        let stops = self.stops_subflow(port);
        let mut out = out.by(port);
        let again = segment < self.sent_below;
        if again {
            self.retransmissions += 1;
            out.note_retransmission(segment, stamp, Resend::FastRecovery);
        }
        self.sent_below = self.sent_below.max(segment + 1);
        let last = segment + 1 == self.segments;
        let payload = if last { self.last_payload } else { terms.mss };
        let flags = PacketFlags::default()
            .with_if(PacketFlags::RETRANSMISSION, again)
            .with_if(PacketFlags::LAST, last)
            .with_if(SUBFLOW_STOP, stops);
        let wire_bytes = payload + terms.header;
        out.send(Outgoing { flags, wire_bytes, ..terms.signal(Kind::Data, segment, stamp) });
    }

    /// Whether the subflow by this port is one too many: near the end, all are but the first that
    /// is heard of.
    fn stops_subflow(&mut self, port: u8) -> bool {
        self.segments - self.next < self.single_below && *self.last_port.get_or_insert(port) != port
    }

    /// The receiver heard the stop, and waits for this segment.
    #[cold]
    #[inline(never)]
    fn on_answer(&mut self, terms: &Terms, expected: u32, out: &mut impl Ports) {
        self.acked = self.acked.max(expected);
        if self.acked == self.segments {
            self.phase = Phase::Done;
            out.wake_at(Time::NEVER);
        } else if self.phase == Phase::Stopping {
            self.next = self.acked;
            self.expired = 0;
            self.request(terms, out);
        }
    }

    pub(crate) fn stats(&self) -> SenderStats {
        SenderStats {
            segments_sent: u64::from(self.sent_below) + u64::from(self.retransmissions),
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            timed_out: self.timed_out,
            wasted_credits: self.wasted_credits,
            ..SenderStats::default()
        }
    }
}
