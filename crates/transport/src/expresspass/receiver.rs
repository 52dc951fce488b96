//! The receiving end: paces credits, learns from the data that answers them which were lost, and adapts.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Bytes, Span, Time};

use super::feedback::{Control, Period};
use super::{ExpressPass, stamp};
use crate::tcp::segments::SegmentSet;
use crate::{Delivery, FlowSize, Outbox, Outgoing, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The next segment in order.
    expected: u32,
    segments: u32,
    /// Whether the sender wants credits.
    crediting: bool,
    control: Control,
    /// Credits sent: the number of the next one.
    credits_sent: u64,
    /// The number of the next credit that data should echo.
    echo_expected: u64,
    /// Credits of this update period that data told of, and how many of them were lost.
    told: u32,
    lost: u32,
    updated: Time,
    /// Smoothed; zero before the first data.
    rtt: Span,
    /// Segments beyond a hole; exists for flows that saw one.
    beyond: Option<Box<SegmentSet>>,
    segments_received: u64,
    out_of_order: u32,
    duplicates: u32,
    marked: u32,
}

impl Receiver {
    pub(super) const fn new(protocol: &ExpressPass, size: FlowSize) -> Self {
        Self {
            expected: 0,
            segments: size.segments,
            crediting: false,
            control: Control::new(&protocol.feedback, protocol.initial_rate),
            credits_sent: 0,
            echo_expected: 0,
            told: 0,
            lost: 0,
            updated: Time::ZERO,
            rtt: Span::ZERO,
            beyond: None,
            segments_received: 0,
            out_of_order: 0,
            duplicates: 0,
            marked: 0,
        }
    }

    pub(super) fn receives(
        &mut self,
        protocol: &ExpressPass,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> Delivery {
        match packet.kind {
            Kind::Data => return self.on_data(packet, out),
            Kind::CreditRequest if !self.crediting => self.begin(protocol, out),
            Kind::CreditStop => {
                self.crediting = false;
                out.wake_at(Time::NEVER);
                out.send(protocol.signal(Kind::Ack, self.expected, packet.sent));
            }
            _ => {}
        }
        Delivery::Ongoing
    }

    /// Algorithm 1, lines 1 and 2; then the first credit.
    fn begin(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        self.crediting = true;
        self.control = Control::new(&protocol.feedback, protocol.initial_rate);
        self.echo_expected = self.credits_sent;
        (self.told, self.lost, self.updated) = (0, 0, out.now());
        self.send_credit(protocol, out);
    }

    /// Sends a credit, and sees to it that the next one follows at the current rate, more or less by the jitter.
    pub(super) fn send_credit(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        if !self.crediting {
            return;
        }
        let now = out.now();
        // What a credit and its frame take of the cable: one credit in that time is the highest rate.
        let pair = u64::from(protocol.credit_bytes) + u64::from(protocol.mss + protocol.header);
        let period = out.link_rate().service(Bytes::new(pair)).as_ps() as f64;
        self.update(protocol, now, period);
        let wire_bytes = match protocol.credit_spread {
            0 => protocol.credit_bytes,
            spread => protocol.credit_bytes - spread + out.random().below(2 * u32::from(spread) + 1) as u16,
        };
        let stamp = stamp::of(now, self.credits_sent);
        let credit = protocol.signal(Kind::Credit, self.expected, stamp);
        let has_hole = self.beyond.as_ref().is_some_and(|beyond| beyond.len() > 0);
        let flags = PacketFlags::default().with_if(PacketFlags::ECE, has_hole);
        out.send(Outgoing { flags, wire_bytes, ..credit });
        self.credits_sent += 1;
        let jitter = 1.0 + protocol.jitter * (2.0 * out.random().unit() - 1.0);
        let gap = (period / self.control.rate * jitter).max(1.0);
        out.wake_at(now.saturating_add(Span::from_ps(gap as u64)));
    }

    /// Algorithm 1, line 3: once a round trip, if data told of any credit.
    fn update(&mut self, protocol: &ExpressPass, now: Time, period: f64) {
        if self.told == 0 || now.since(self.updated) < self.rtt {
            return;
        }
        // At least one credit a round trip, as in the authors' simulator.
        let least = period / self.rtt.as_ps().max(1) as f64;
        let answered = f64::from(self.told - self.lost);
        let throughput = answered * period / now.since(self.updated).as_ps().max(1) as f64;
        let told = Period { told: self.told, lost: self.lost, throughput };
        self.control.update(&protocol.feedback, told, least);
        (self.told, self.lost, self.updated) = (0, 0, now);
    }

    fn on_data(&mut self, data: &Packet, out: &impl Outbox) -> Delivery {
        self.segments_received += 1;
        self.marked += u32::from(data.flags.has(PacketFlags::CE));
        self.note_echo(data.sent, out.now());
        let before = self.expected;
        if data.seq == self.expected {
            self.expected += 1;
            if let Some(beyond) = &mut self.beyond {
                self.expected = beyond.next_absent(self.expected);
                beyond.advance(self.expected);
            }
        } else {
            self.on_disorder(data.seq);
        }
        let complete = self.expected == self.segments && self.expected > before;
        if complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    #[cold]
    fn on_disorder(&mut self, segment: u32) {
        let expected = self.expected;
        if segment < expected || segment >= self.segments {
            self.duplicates += 1;
            return;
        }
        let beyond = self.beyond.get_or_insert_with(|| Box::new(SegmentSet::new(expected)));
        if beyond.insert(segment) {
            self.out_of_order += 1;
        } else {
            self.duplicates += 1;
        }
    }

    /// Data answers the credit with this stamp: the credits before it that no data answered are lost.
    fn note_echo(&mut self, echo: Time, now: Time) {
        let sample = now.since(stamp::time(echo));
        // The authors' simulator has these weights.
        self.rtt = if self.rtt.is_zero() { sample } else { (self.rtt * 4 + sample) / 5 };
        match stamp::ahead(echo, self.echo_expected) {
            Some(lost) => {
                self.lost += lost as u32;
                self.told += lost as u32 + 1;
                self.echo_expected += lost + 1;
            }
            // It was late, not lost.
            None => self.lost = self.lost.saturating_sub(1),
        }
    }

    pub(super) const fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            segments_received: self.segments_received,
            out_of_order: self.out_of_order,
            duplicates: self.duplicates,
            marked: self.marked,
            credits_sent: self.credits_sent,
        }
    }
}
