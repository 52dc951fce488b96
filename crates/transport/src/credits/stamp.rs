//! The time stamp of a credit, which carries its number too; data echoes it.
//!
//! The low 12 bits of the picoseconds are the number modulo 4,096, so the time is exact to 4.1 ns. A packet has room for
//! one such field, as it has for a segment's number.

use weft_units::Time;

/// Numbers are counted modulo this.
pub const NUMBERS: u64 = 1 << 12;

/// The stamp of credit `number`, sent `now`.
pub const fn of(now: Time, number: u64) -> Time {
    Time::from_ps(now.as_ps() & !(NUMBERS - 1) | number & (NUMBERS - 1))
}

/// When the credit was sent, to 4.1 ns: never later than it was.
pub const fn time(stamp: Time) -> Time {
    Time::from_ps(stamp.as_ps() & !(NUMBERS - 1))
}

/// How many credits were sent from number `expected` up to the one with this stamp, which is not counted; `None` if it was
/// sent before, which is to say that it comes late. Up to 2,047 in a row may be missing.
pub const fn ahead(stamp: Time, expected: u64) -> Option<u64> {
    let distance = stamp.as_ps().wrapping_sub(expected) & (NUMBERS - 1);
    if distance < NUMBERS / 2 { Some(distance) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_tells_the_number_and_the_time() {
        let now = Time::from_ps(123_456_789);
        for number in [0, 1, 4_095, 4_096, 1_000_000] {
            let stamp = of(now, number);
            assert_eq!(ahead(stamp, number), Some(0));
            assert_eq!(ahead(stamp, number.saturating_sub(3)), Some(number.min(3)));
            assert_eq!(ahead(stamp, number + 1), None, "late");
            assert!(time(stamp) <= now && now.since(time(stamp)).as_ps() < NUMBERS);
        }
    }
}
