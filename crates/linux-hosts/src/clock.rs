//! A kernel's clock and the run's. A kernel counts nanoseconds since its own start and has booted
//! long before the run begins; a run counts picoseconds.

use weft_units::Time;

/// The kernel's instant at which the run begins. Booting takes some ms of its time, and always the
/// same.
pub(crate) const EPOCH_NS: u64 = 1_000_000_000;

/// The last instant that a kernel is told; its own signed clock ends at 2^63.
pub(crate) const LAST_NS: u64 = u64::MAX / 1_000;

/// The kernel's instant for the run's, rounded up to its next nanosecond.
pub(crate) fn to_ns(at: Time) -> u64 {
    (at.as_ps().div_ceil(1_000) + EPOCH_NS).min(LAST_NS)
}

/// The run's instant for the kernel's; `None` before the run, or beyond its end.
pub(crate) fn from_ns(ns: u64) -> Option<Time> {
    ns.checked_sub(EPOCH_NS)?.checked_mul(1_000).map(Time::from_ps)
}

/// The run's instant for the kernel's in picoseconds; `None` before the run.
pub(crate) fn from_ps(ps: u64) -> Option<Time> {
    ps.checked_sub(EPOCH_NS * 1_000).map(Time::from_ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_clocks_agree_and_round_up_to_the_coarser_one() {
        assert_eq!(to_ns(Time::ZERO), EPOCH_NS);
        assert_eq!(to_ns(Time::from_ps(1)), EPOCH_NS + 1);
        assert_eq!(from_ns(EPOCH_NS + 7), Some(Time::from_ps(7_000)));
        assert_eq!(from_ns(EPOCH_NS - 1), None);
        assert_eq!(from_ns(u64::MAX), None);
        assert_eq!(from_ps(EPOCH_NS * 1_000 + 7), Some(Time::from_ps(7)));
        assert_eq!(to_ns(Time::NEVER), LAST_NS);
    }
}
