//! Sizes in whole bytes.

use std::ops::{Add, AddAssign};

use crate::quantity::{Quantity, text_form};

const SIZE: Quantity = Quantity {
    name: "size",
    example: "375KB",
    units: &[
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("B", 1),
    ],
};

/// A size in bytes. Text form: `"375KB"` (a thousand) or `"64KiB"` (1,024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kb` thousand bytes.
    pub const fn from_kb(kb: u64) -> Self {
        Self(kb * 1_000)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

text_form!(Bytes, SIZE, "Size", r"^[0-9]+(\.[0-9]+)? *(GB|MB|KB|GiB|MiB|KiB|B)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_and_powers_of_two_are_told_apart() {
        assert_eq!("64KB".parse(), Ok(Bytes::new(64_000)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!(Bytes::new(65_536).to_string(), "64KiB");
        assert_eq!(Bytes::new(97_500).to_string(), "97500B");
    }

    #[test]
    fn a_number_without_quotes_is_refused_with_an_example() {
        let message = serde_json::from_str::<Bytes>("5").unwrap_err().to_string();
        assert!(message.contains("a size with its unit, as in \"375KB\""), "{message}");
    }
}
