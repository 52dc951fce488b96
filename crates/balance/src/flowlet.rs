//! Flowlets: bursts of a flow's packets, ended by a pause.
//!
//! What ends a flowlet is said here once: by a [`Timer`] at exactly a gap, by an [`AgeBit`] at one
//! to two gaps. A switch keeps flowlets in a table by hash ([`crate::switch::flowlets`]); an edge,
//! which knows its flows, keeps a [`FlowletClock`] in the state of each.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Span, Time};

/// Clock that measures pauses: the time in whole units of its own, at most 48 bits.
pub trait Pauses: Copy {
    /// A moment, as it is kept.
    fn stamp(self, now: Time) -> u64;

    /// How many units may lie between two packets of a flowlet.
    fn limit(self) -> u64;

    /// Whether a packet at the second stamp is of the flowlet that had its last one at the first.
    #[inline]
    fn goes_on(self, last: u64, now: u64) -> bool {
        now.wrapping_sub(last) <= self.limit()
    }
}

/// A time stamp a packet, in ticks of 1,024 ps: every pause longer than the gap by two ticks ends
/// the flowlet, none that is no longer than the gap does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    gap_ticks: u64,
}

impl Timer {
    /// A tick is two to this power of picoseconds.
    pub const TICK_BITS: u32 = 10;

    /// For pauses longer than `gap`.
    pub fn new(gap: Span) -> Self {
        // Rounded up: a pause of exactly `gap` stays within it, whichever ticks it begins and ends
        // in.
        Self { gap_ticks: gap.as_ps().div_ceil(1 << Self::TICK_BITS) }
    }
}

impl Pauses for Timer {
    #[inline]
    fn stamp(self, now: Time) -> u64 {
        now.as_ps() >> Self::TICK_BITS
    }

    #[inline]
    fn limit(self) -> u64 {
        self.gap_ticks
    }
}

/// A bit an entry, set once a gap for all of them and cleared by each packet: an entry whose bit is
/// still set when it is to be set again has no flowlet any more. Touched in one interval, the bit
/// is set at its end, and found set at the end of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgeBit {
    gap_ps: u64,
}

impl AgeBit {
    /// For pauses of one to two times `gap`, which is not zero.
    pub fn new(gap: Span) -> Self {
        Self { gap_ps: gap.as_ps() }
    }
}

impl Pauses for AgeBit {
    #[inline]
    fn stamp(self, now: Time) -> u64 {
        now.as_ps() / self.gap_ps
    }

    #[inline]
    fn limit(self) -> u64 {
        1
    }
}

/// How a switch notices that a flow has paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// An age bit: set once a gap for every entry, cleared by each packet; an entry whose bit is
    /// still set when it is to be set again has no flowlet any more. Pauses of one to two gaps are
    /// noticed.
    #[default]
    AgeBit,
    /// A time stamp: every pause longer than the gap is noticed.
    Timer,
}

/// Either of the two, as a parameter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// See [`AgeBit`].
    AgeBit(AgeBit),
    /// See [`Timer`].
    Timer(Timer),
}

impl Chosen {
    /// For a gap, which is not zero.
    pub fn new(detection: Detection, gap: Span) -> Self {
        match detection {
            Detection::AgeBit => Self::AgeBit(AgeBit::new(gap)),
            Detection::Timer => Self::Timer(Timer::new(gap)),
        }
    }
}

impl Pauses for Chosen {
    #[inline]
    fn stamp(self, now: Time) -> u64 {
        match self {
            Self::AgeBit(pauses) => pauses.stamp(now),
            Self::Timer(pauses) => pauses.stamp(now),
        }
    }

    #[inline]
    fn limit(self) -> u64 {
        match self {
            Self::AgeBit(pauses) => pauses.limit(),
            Self::Timer(pauses) => pauses.limit(),
        }
    }
}

/// When a flow's last packet passed, to the picosecond, in eight bytes: for the state of a flow
/// that is known by itself, where nothing is shared and no table is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowletClock {
    /// One more than the time in ps.
    last: Option<NonZeroU64>,
}

impl FlowletClock {
    /// A packet passes now. Whether it begins a flowlet: it is the flow's first, or came longer
    /// than `gap` after the one before it. A pause of exactly `gap` does not.
    #[inline]
    pub fn begins(&mut self, now: Time, gap: Span) -> bool {
        let pause = self.pause(now);
        self.last = NonZeroU64::new(now.as_ps().saturating_add(1));
        pause.is_none_or(|pause| pause > gap)
    }

    /// The time since the flow's last packet, or `None` before its first.
    #[inline]
    pub fn pause(self, now: Time) -> Option<Span> {
        self.last.map(|last| Span::from_ps(now.as_ps().saturating_sub(last.get() - 1)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GAP: Span = Span::from_us(500);

    /// Whether a flowlet lives on after a packet at `first` and a pause (both in us).
    fn lives(pauses: impl Pauses, first: u64, pause: u64) -> bool {
        let start = Time::ZERO + Span::from_us(first);
        pauses.goes_on(pauses.stamp(start), pauses.stamp(start + Span::from_us(pause)))
    }

    /// The age bits are set at 500, 1,000, 1,500 us: an entry touched at 0 dies at 1,000, one
    /// touched at 499 too.
    #[test]
    fn an_age_bit_notices_pauses_of_one_to_two_gaps() {
        let dies = |first, pause| !lives(Chosen::new(Detection::AgeBit, GAP), first, pause);
        assert!(!dies(0, 999) && dies(0, 1_000));
        assert!(!dies(499, 500) && dies(499, 501));
        assert!(!dies(500, 999) && dies(500, 1_000));
    }

    #[test]
    fn a_timer_notices_every_pause_longer_than_the_gap() {
        for first in [0, 1, 250, 499, 500] {
            let timer = Chosen::new(Detection::Timer, GAP);
            assert!(lives(timer, first, 500) && !lives(timer, first, 501));
        }
    }

    proptest! {
        /// Ticks are 1,024 ps, so two of them beyond the gap always end it.
        #[test]
        fn ticks_never_end_a_flowlet_early_and_end_it_two_late_at_most(
            first in 0u64..1 << 50, gap in 1u64..1 << 40,
        ) {
            let (timer, start) = (Timer::new(Span::from_ps(gap)), Time::from_ps(first));
            let goes_on = |pause| timer.goes_on(timer.stamp(start), timer.stamp(start + Span::from_ps(pause)));
            prop_assert!(goes_on(0) && goes_on(gap));
            prop_assert!(!goes_on(gap + 2 * 1_024));
        }

        /// Against a list of the times: a flowlet begins with the first packet and after each pause
        /// above the gap.
        #[test]
        fn a_clock_begins_flowlets_where_the_list_of_times_has_gaps(
            steps in proptest::collection::vec(0u64..2_000, 1..100), gap in 1u64..2_000,
        ) {
            let (mut clock, mut now) = (FlowletClock::default(), Time::ZERO);
            for (index, &step) in steps.iter().enumerate() {
                now += Span::from_ps(step);
                prop_assert_eq!(clock.begins(now, Span::from_ps(gap)), index == 0 || step > gap);
            }
        }
    }

    #[test]
    fn a_clock_is_eight_bytes_and_knows_that_it_has_seen_nothing() {
        let mut clock = FlowletClock::default();
        assert_eq!((size_of_val(&clock), clock.pause(Time::ZERO)), (8, None));
        assert!(clock.begins(Time::ZERO, GAP), "the first packet, at the beginning of time");
        assert_eq!(clock.pause(Time::ZERO + GAP), Some(GAP));
        assert!(!clock.begins(Time::ZERO + GAP, GAP));
        assert!(clock.begins(Time::ZERO + GAP * 2 + Span::from_ps(1), GAP));
    }
}
