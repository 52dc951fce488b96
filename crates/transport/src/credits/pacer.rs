//! The credits of one path: when they go, which were lost, and what follows for their rate.

use weft_packet::{Kind, PacketFlags};
use weft_units::{Bytes, Span, Time};

use super::Terms;
use super::feedback::{Control, Period};
use super::outstanding::Outstanding;
use crate::Outbox;

/// A loop of credits and the data that answers them.
///
/// Its clock ticks in the time that a byte takes on the host's cable, as the clock of a network
/// adapter does: credits go at whole ticks from each other, and the smoothed round-trip time is so
/// many ticks. No other time is in here, so a fabric with all rates a tenth and all times tenfold
/// has the same credits at ten times the time.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    control: Control,
    /// Credits sent.
    sent: u64,
    outstanding: Outstanding,
    /// Rounding remainder of the time to the next credit, in ticks: it is added to the one after
    /// that.
    carried: f64,
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
            outstanding: Outstanding::new(),
            carried: 0.0,
            told: 0,
            lost: 0,
            updated: Time::ZERO,
            rtt: Span::ZERO,
        }
    }

    /// Begins, or begins anew, at this rate: lines 1 and 2 of the algorithm. What the past tells
    /// counts no more.
    pub fn begin(&mut self, terms: &Terms, rate: f64, now: Time) {
        self.rtt = Span::ZERO;
        self.carried = 0.0;
        self.outstanding.forget();
        self.control_anew(terms, rate, now);
    }

    /// No more credits are wanted: what is still answered tells nothing.
    pub fn end(&mut self) {
        self.outstanding.forget();
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

    /// Line 3: the feedback control, once a round trip, if data told of any credit. `subflows` is
    /// the number of loops that the flow has.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Most calls are too early.
    pub fn update(&mut self, terms: &Terms, subflows: u32, now: Time, out: &impl Outbox) {
        if self.told > 0 && now.since(self.updated) >= self.rtt {
            self.end_period(terms, subflows, out);
        }
    }

    #[cold]
    fn end_period(&mut self, terms: &Terms, subflows: u32, out: &impl Outbox) {
        let now = out.now();
        let gap = ticks(least_gap_bytes(terms), out).as_ps() as f64;
        // At least one credit a round trip, as in the authors' simulator.
        let least = gap / self.rtt.as_ps().max(1) as f64;
        let answered = f64::from(self.told - self.lost);
        let throughput = answered * gap / now.since(self.updated).as_ps().max(1) as f64;
        let period = Period { told: self.told, lost: self.lost, throughput, least, subflows };
        self.control.update(&terms.feedback, period);
        (self.told, self.lost, self.updated) = (0, 0, now);
    }

    /// Sends a credit: `expected` and `has_hole` acknowledge. When the next one follows, at the
    /// current rate give or take the jitter.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller in each transport.
    pub fn send(
        &mut self,
        terms: &Terms,
        (expected, has_hole): (u32, bool),
        now: Time,
        out: &mut impl Outbox,
    ) -> Time {
        let wire_bytes = match terms.credit_spread {
            0 => terms.credit_bytes,
            spread => terms.credit_bytes - spread + out.random().below(2 * u32::from(spread) + 1) as u16,
        };
        let mut credit = terms.signal(Kind::Credit, expected, now);
        credit.wire_bytes = wire_bytes;
        credit.flags = PacketFlags::default().with_if(PacketFlags::ECE, has_hole);
        out.send(credit);
        self.sent += 1;
        self.outstanding.sent(now);
        let jitter = 1.0 + terms.jitter * (2.0 * out.random().unit() - 1.0);
        let gap = least_gap_bytes(terms) as f64 / self.control.rate * jitter + self.carried;
        // With a sign: that is converted in fewer instructions.
        let whole = (gap as i64).max(1);
        self.carried = (gap - whole as f64).max(0.0);
        now.saturating_add(ticks(whole.unsigned_abs(), out))
    }

    /// Data answers the credit with this stamp: the credits before it that no data answered are
    /// lost. Whether it is one of those sent since the loop began.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller in each transport.
    pub fn note_echo(&mut self, echo: Time, now: Time, out: &impl Outbox) -> bool {
        let sample = now.since(echo);
        let tick = out.link_pace().service(1);
        self.rtt = if self.rtt.is_zero() { sample } else { smoothed(self.rtt, sample, tick) };
        let Some(lost) = self.outstanding.answered(echo) else {
            // It was late, not lost.
            self.lost = self.lost.saturating_sub(1);
            return false;
        };
        self.lost += lost;
        self.told += lost + 1;
        true
    }
}

/// The round-trip time with one sample more, to the nearest tick. The authors' simulator has these
/// weights.
const fn smoothed(rtt: Span, sample: Span, tick: Span) -> Span {
    let (sum, five) = (rtt.as_ps() * 4 + sample.as_ps(), 5 * tick.as_ps());
    Span::from_ps((2 * sum + five) / (2 * five) * tick.as_ps())
}

/// Bytes of a credit and its frame on the receiver's cable: one credit in the time of so many is
/// the highest rate.
pub(crate) fn least_gap_bytes(terms: &Terms) -> u64 {
    u64::from(terms.credit_bytes) + u64::from(terms.frame_bytes())
}

/// So many ticks: the time of as many bytes on the host's cable.
pub(crate) fn ticks(count: u64, out: &impl Outbox) -> Span {
    out.link_pace().service_of(Bytes::new(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_time_is_smoothed_to_the_nearest_tick_at_any_scale() {
        let smooth = |scale: u64| {
            let ps = |ps| Span::from_ps(ps * scale);
            smoothed(ps(20_000_000), ps(20_004_321), ps(800))
        };
        // (4 x 20,000,000 + 20,004,321) / 5 = 20,000,864.2: the nearest multiple of 800 is
        // 20,000,800.
        assert_eq!(smooth(1), Span::from_ps(20_000_800));
        assert_eq!(smooth(10), Span::from_ps(200_008_000));
        assert_eq!(
            smoothed(Span::from_ps(1_600), Span::from_ps(1_600), Span::from_ps(800)),
            Span::from_ps(1_600)
        );
    }
}
