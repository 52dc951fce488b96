//! Instants and durations in whole picoseconds: one byte at 400 Gbit/s is 20 ps, and 2^64 ps is 213
//! days.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

use crate::quantity::{Quantity, text_form};

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

const TIME: Quantity = Quantity {
    name: "time",
    example: "4us",
    units: &[("s", PS_PER_S), ("ms", PS_PER_MS), ("us", PS_PER_US), ("ns", PS_PER_NS), ("ps", 1)],
};

/// An instant: picoseconds since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// The beginning of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after the beginning.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the beginning.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Microseconds since the beginning.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / PS_PER_US as f64
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The time since `earlier`; `None` if that is later.
    #[must_use]
    pub const fn checked_since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(ps) => Some(Span(ps)),
            None => None,
        }
    }

    /// This instant and `span`, or [`Time::NEVER`] when that is beyond the end of time.
    #[must_use]
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

/// A duration in picoseconds. Text form: `"4us"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * PS_PER_NS)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * PS_PER_US)
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * PS_PER_MS)
    }

    /// `s` seconds.
    pub const fn from_s(s: u64) -> Self {
        Self(s * PS_PER_S)
    }

    /// The duration nearest to `seconds`; zero for anything negative or not a number.
    pub fn from_s_f64(seconds: f64) -> Self {
        Self((seconds * PS_PER_S as f64).round() as u64)
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / PS_PER_US as f64
    }

    /// Seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time as people read it, rounded: about three digits and a unit, as in "317 µs".
    pub fn rounded(self) -> String {
        let units = [("s", PS_PER_S), ("ms", PS_PER_MS), ("µs", PS_PER_US), ("ns", PS_PER_NS)];
        let (unit, scale) = units.into_iter().find(|unit| self.0 >= unit.1).unwrap_or(("ps", 1));
        let value = self.0 as f64 / scale as f64;
        let decimals = if value >= 100.0 { 0 } else { 2 - usize::from(value >= 10.0) };
        let text = format!("{value:.decimals$}");
        let text = if decimals == 0 { &text } else { text.trim_end_matches('0').trim_end_matches('.') };
        format!("{text} {unit}")
    }

    /// The difference, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or [`Span::MAX`] when that is too long.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

text_form!(Span, TIME, "Time", r"^[0-9]+(\.[0-9]+)? *(s|ms|us|ns|ps)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_every_picosecond() {
        assert_eq!("4us".parse(), Ok(Span::from_us(4)));
        assert_eq!("1.5us".parse(), Ok(Span::from_ns(1_500)));
        assert_eq!("0.001 ns".parse(), Ok(Span::from_ps(1)));
        assert_eq!(Span::from_ns(1_500).to_string(), "1500ns");
    }

    #[test]
    fn people_read_three_digits() {
        for (ps, expected) in [
            (0, "0 ps"),
            (7, "7 ps"),
            (35_651_041, "35.7 µs"),
            (316_570_257, "317 µs"),
            (9_000_000_000, "9 ms"),
            (100_000_000_000_000, "100 s"),
            (1_239_999, "1.24 µs"),
        ] {
            assert_eq!(Span::from_ps(ps).rounded(), expected);
        }
    }

    #[test]
    fn a_bad_time_says_what_is_allowed() {
        let message = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert!(message("4").contains("the unit is missing"), "{}", message("4"));
        assert!(message("-4us").contains("negative"));
        assert!(message("4 uS").contains("did you mean \"us\""), "{}", message("4 uS"));
        assert!(message("0.5ps").contains("finer"));
        assert!(message("99999999999s").contains("too large"));
        assert!(message("").contains("no number"));
    }

    #[test]
    fn since_never_goes_below_zero() {
        assert_eq!(Time::from_ps(5).since(Time::from_ps(9)), Span::ZERO);
        assert_eq!(Time::from_ps(9).since(Time::from_ps(5)), Span::from_ps(4));
    }
}
