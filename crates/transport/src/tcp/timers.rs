//! Tick of the timers of a host.

use weft_units::{Span, Time};

/// A timing wheel as Linux has it since 4.8: a timer is never early, up to a tick late, and what is
/// further ahead is counted more coarsely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wheel {
    tick: Span,
}

/// From so many ticks ahead on a timer of the first level is one of the second: `LVL_START(1)`.
/// Each level has as many times more.
const LEVEL_TICKS: u64 = 63;
/// So many times coarser is each level than the one before: `LVL_CLK_DIV`.
const COARSER: u64 = 8;
/// `LVL_DEPTH`, if a second has more than 100 ticks.
const LEVELS: u32 = 9;

impl Wheel {
    /// With ticks of this length; zero is exact.
    pub const fn new(tick: Span) -> Self {
        Self { tick }
    }

    /// When a timer expires that is set now, to wait so long.
    #[inline]
    pub fn due(self, now: Time, wait: Span) -> Time {
        if self.tick.is_zero() { now.saturating_add(wait) } else { self.due_by_ticks(now, wait) }
    }

    /// A wait in whole ticks, rounded up.
    pub const fn whole(self, wait: Span) -> Span {
        let tick = self.tick.as_ps();
        if tick == 0 { wait } else { Span::from_ps(wait.as_ps().div_ceil(tick).saturating_mul(tick)) }
    }

    /// `usecs_to_jiffies` rounds up, `calc_index` to the next step of the level.
    fn due_by_ticks(self, now: Time, wait: Span) -> Time {
        let tick = self.tick.as_ps();
        let ahead = wait.as_ps().div_ceil(tick);
        let mut step = 1;
        for _ in 1..LEVELS {
            if ahead >= LEVEL_TICKS * step {
                step *= COARSER;
            }
        }
        let ticks = (now.as_ps() / tick + ahead) / step + 1;
        Time::from_ps(ticks.saturating_mul(step).saturating_mul(tick))
    }
}

/// How much time a clock of such ticks shows between two instants, at least one; zero ticks are
/// exact.
pub(super) fn elapsed(tick: Span, from: Time, to: Time) -> Span {
    if tick.is_zero() {
        return to.since(from);
    }
    let ticks = |time: Time| time.as_ps() / tick.as_ps();
    tick.saturating_mul(ticks(to).saturating_sub(ticks(from)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: f64) -> Time {
        Time::from_ps((time * 1e9) as u64)
    }

    /// When timers of ticks of 1 ms expire that are set at this time, to wait so long.
    fn due(now: f64, wait: f64) -> Time {
        Wheel::new(Span::from_ms(1)).due(ms(now), ms(wait).since(Time::ZERO))
    }

    #[test]
    fn a_timer_is_a_tick_late_and_one_far_ahead_up_to_eight() {
        // 3 ticks after tick 0, and one more.
        assert_eq!(due(0.4, 2.3), ms(4.0));
        assert_eq!(due(0.0, 3.0), ms(4.0));
        assert_eq!(due(10.9, 40.0), ms(51.0));
        // 63 ticks ahead and more, the next multiple of 8; 504 and more, of 64.
        assert_eq!([due(0.0, 62.0), due(0.0, 63.0)], [ms(63.0), ms(64.0)]);
        assert_eq!([due(0.0, 200.5), due(3.0, 200.5), due(7.0, 201.0)], [ms(208.0), ms(208.0), ms(216.0)]);
        assert_eq!(
            [due(0.0, 503.0), due(0.0, 504.0), due(8.0, 1_000.0)],
            [ms(504.0), ms(512.0), ms(1_024.0)]
        );
    }

    #[test]
    fn without_ticks_it_is_exact_and_with_them_never_early() {
        let exact = Wheel::new(Span::ZERO);
        for (now, wait) in (0..2_000).map(|n| (f64::from(n) * 0.37, f64::from(n) * 0.73)) {
            let wanted = ms(now).saturating_add(ms(wait).since(Time::ZERO));
            assert_eq!(exact.due(ms(now), ms(wait).since(Time::ZERO)), wanted);
            let late = due(now, wait).since(wanted);
            let most = if wait < 62.0 { 2 } else { 2 + 64 * u64::from(wait > 502.0) + 8 };
            assert!(late > Span::ZERO && late <= Span::from_ms(most), "{now} {wait} {late:?}");
        }
        assert_eq!(Wheel::new(Span::from_ms(1)).due(ms(1.0), Span::from_ps(u64::MAX)), Time::NEVER);
    }
}
