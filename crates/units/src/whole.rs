//! Whole numbers of a spec in a range of their own, told by that one range whatever is wrong.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// Reads a whole number in `range`.
///
/// # Errors
/// Anything else: "a whole number from 1 to 64" was expected.
pub fn whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
    range: RangeInclusive<u32>,
) -> Result<u32, D::Error> {
    deserializer.deserialize_any(Whole(range))
}

struct Whole(RangeInclusive<u32>);

impl Visitor<'_> for Whole {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.0.start(), self.0.end())
    }

    fn visit_i64<E: Error>(self, found: i64) -> Result<u32, E> {
        let fitting = u32::try_from(found).ok().filter(|number| self.0.contains(number));
        fitting.ok_or_else(|| E::invalid_value(Unexpected::Signed(found), &self))
    }

    fn visit_u64<E: Error>(self, found: u64) -> Result<u32, E> {
        let fitting = u32::try_from(found).ok().filter(|number| self.0.contains(number));
        fitting.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(found), &self))
    }
}
