//! The credits of one path: when they go, which were lost, and what follows for their rate.

use weft_packet::{Kind, PacketFlags};
use weft_units::{Bytes, Span, Time};

use super::feedback::{Control, Period};
use super::{Terms, stamp};
use crate::Outbox;

/// A loop of credits and the data that answers them.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    control: Control,
    /// Credits sent: the number of the next one.
    sent: u64,
    /// The number of the next credit that data should echo.
    echo_expected: u64,
    /// Credits of this update period that data told of, and how many of them were lost.
    told: u32,
    lost: u32,
    updated: Time,
    /// Smoothed; zero before the first data since the loop began.
    rtt: Span,
}

impl Pacer {
    /// A loop that has not begun.
    pub const fn new(terms: &Terms) -> Self {
        Self {
            control: Control::new(&terms.feedback, terms.initial_rate),
            sent: 0,
            echo_expected: 0,
            told: 0,
            lost: 0,
            updated: Time::ZERO,
            rtt: Span::ZERO,
        }
    }

    /// Begins, or begins anew, at this rate: lines 1 and 2 of the algorithm. What the past tells counts no more.
    pub fn begin(&mut self, terms: &Terms, rate: f64, now: Time) {
        self.rtt = Span::ZERO;
        self.echo_expected = self.sent;
        self.control_anew(terms, rate, now);
    }

    /// Lines 1 and 2 for a loop that goes on.
    pub fn control_anew(&mut self, terms: &Terms, rate: f64, now: Time) {
        self.control = Control::new(&terms.feedback, rate);
        (self.told, self.lost, self.updated) = (0, 0, now);
    }

    /// Credits sent so far.
    pub const fn credits_sent(&self) -> u64 {
        self.sent
    }

    /// The smoothed round-trip time; zero before the first data since the loop began.
    pub const fn rtt(&self) -> Span {
        self.rtt
    }

    /// How many decreases in a row there have been.
    pub const fn decreases(&self) -> u32 {
        self.control.decreases
    }

    /// Whether nothing came back for so many round trips, though there is a credit in each.
    pub fn is_silent(&self, round_trips: u32, now: Time) -> bool {
        self.told == 0 && !self.rtt.is_zero() && now.since(self.updated) >= self.rtt * u64::from(round_trips)
    }

    /// Line 3: the feedback control, once a round trip, if data told of any credit. `subflows` is the number of loops that
    /// the flow has.
    pub fn update(&mut self, terms: &Terms, subflows: u32, out: &impl Outbox) {
        let now = out.now();
        if self.told == 0 || now.since(self.updated) < self.rtt {
            return;
        }
        let gap = least_gap_ps(terms, out);
        // At least one credit a round trip, as in the authors' simulator.
        let least = gap / self.rtt.as_ps().max(1) as f64;
        let answered = f64::from(self.told - self.lost);
        let throughput = answered * gap / now.since(self.updated).as_ps().max(1) as f64;
        let period = Period { told: self.told, lost: self.lost, throughput, least, subflows };
        self.control.update(&terms.feedback, period);
        (self.told, self.lost, self.updated) = (0, 0, now);
    }

    /// Sends a credit by this port: `expected` and `has_hole` acknowledge. When the next one follows, at the current rate
    /// give or take the jitter.
    pub fn send(
        &mut self,
        terms: &Terms,
        port: u8,
        (expected, has_hole): (u32, bool),
        out: &mut impl Outbox,
    ) -> Time {
        let now = out.now();
        let wire_bytes = match terms.credit_spread {
            0 => terms.credit_bytes,
            spread => terms.credit_bytes - spread + out.random().below(2 * u32::from(spread) + 1) as u16,
        };
        let mut credit = terms.signal(Kind::Credit, expected, stamp::of(now, self.sent));
        credit.wire_bytes = wire_bytes;
        credit.flags = PacketFlags::default().with_if(PacketFlags::ECE, has_hole);
        out.send_by(port, credit);
        self.sent += 1;
        let jitter = 1.0 + terms.jitter * (2.0 * out.random().unit() - 1.0);
        let gap = (least_gap_ps(terms, out) / self.control.rate * jitter).max(1.0);
        now.saturating_add(Span::from_ps(gap as u64))
    }

    /// Data answers the credit with this stamp: the credits before it that no data answered are lost. Whether it is one of
    /// those sent since the loop began.
    pub fn note_echo(&mut self, echo: Time, now: Time) -> bool {
        let sample = now.since(stamp::time(echo));
        // The authors' simulator has these weights.
        self.rtt = if self.rtt.is_zero() { sample } else { (self.rtt * 4 + sample) / 5 };
        let Some(lost) = stamp::ahead(echo, self.echo_expected) else {
            // It was late, not lost.
            self.lost = self.lost.saturating_sub(1);
            return false;
        };
        self.lost += lost as u32;
        self.told += lost as u32 + 1;
        self.echo_expected += lost + 1;
        true
    }
}

/// What a credit and its frame take of the receiver's cable, in ps: one credit in that time is the highest rate.
pub(crate) fn least_gap_ps(terms: &Terms, out: &impl Outbox) -> f64 {
    let pair = u64::from(terms.credit_bytes) + u64::from(terms.frame_bytes());
    out.link_rate().service(Bytes::new(pair)).as_ps() as f64
}
