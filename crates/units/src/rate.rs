//! Link rates, and the time that bytes take at them.

use crate::quantity::{Quantity, text_form};
use crate::{Bytes, Span};

const RATE: Quantity = Quantity {
    name: "rate",
    example: "10Gbps",
    units: &[
        ("Tbps", 1_000_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("Kbps", 1_000),
        ("bps", 1),
    ],
};

/// A rate in bits per second. Text form: `"10Gbps"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rate(u64);

impl Rate {
    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// `gbps` gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time that one byte takes. `self` must not be zero.
    pub const fn ps_per_byte(self) -> PicosPerByte {
        PicosPerByte::of(self)
    }

    /// The time that `bytes` take, rounded up to a picosecond; [`Span::MAX`] if that is longer than
    /// any run. `self` must not be zero.
    pub const fn service(self, bytes: Bytes) -> Span {
        self.ps_per_byte().service_of(bytes)
    }
}

text_form!(Rate, RATE, "Rate", r"^[0-9]+(\.[0-9]+)? *(Tbps|Gbps|Mbps|Kbps|bps)$");

/// Picoseconds per byte, with 16 binary places: exact at every rate that divides 8 Tbit/s x 2^16,
/// else rounded up by less than 2^-16 ps a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct PicosPerByte(u64);

impl PicosPerByte {
    /// Bytes that take no time.
    pub const ZERO: Self = Self(0);
    const FRACTION_BITS: u32 = 16;
    const ROUND_UP: u64 = (1 << Self::FRACTION_BITS) - 1;
    const PS_BITS_PER_S: u128 = 8_000_000_000_000;

    const fn of(rate: Rate) -> Self {
        let scaled = Self::PS_BITS_PER_S << Self::FRACTION_BITS;
        Self(scaled.div_ceil(rate.0 as u128) as u64)
    }

    /// Picoseconds per byte times 2^16, for a clock outside of Weft that must round as this one
    /// does.
    pub const fn as_scaled(self) -> u64 {
        self.0
    }

    /// The time that `bytes` take, rounded up to a picosecond; [`Span::MAX`] if that is longer than
    /// any run. Unlike [`Rate::service`], it divides nothing.
    #[inline]
    pub const fn service_of(self, bytes: Bytes) -> Span {
        let scaled = bytes.as_u64() as u128 * self.0 as u128;
        let ps = (scaled + Self::ROUND_UP as u128) >> Self::FRACTION_BITS;
        Span::from_ps(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }

    /// The time that the bytes of one packet take, rounded up to a picosecond. No overflow from 1
    /// Mbit/s on.
    #[inline]
    pub const fn service(self, packet_bytes: u16) -> Span {
        Span::from_ps((packet_bytes as u64 * self.0 + Self::ROUND_UP) >> Self::FRACTION_BITS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn service_is_exact_at_the_usual_rates() {
        for (gbps, ps) in [(1, 8_000), (10, 800), (25, 320), (40, 200), (100, 80), (400, 20), (800, 10)] {
            assert_eq!(Rate::from_gbps(gbps).service(Bytes::new(1)), Span::from_ps(ps));
            assert_eq!(Rate::from_gbps(gbps).service(Bytes::new(1_500)), Span::from_ps(ps * 1_500));
        }
    }

    #[test]
    fn a_large_size_at_a_low_rate_takes_as_long_as_it_takes() {
        assert_eq!(Rate::from_bps(1_000_000).service(Bytes::new(1_000_000_000)), Span::from_s(8_000));
        assert_eq!(Rate::from_bps(1).service(Bytes::new(u64::MAX)), Span::MAX);
        assert_eq!(Rate::from_bps(1_000_000).ps_per_byte().service(u16::MAX), Span::from_us(8 * 65_535));
    }

    proptest! {
        #[test]
        fn service_is_never_early_and_at_most_a_picosecond_late(bps in 1_000_000u64..2_000_000_000_000, bytes in 1u64..10_000) {
            let exact = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(bps));
            let service = u128::from(Rate::from_bps(bps).service(Bytes::new(bytes)).as_ps());
            prop_assert!(service == exact || service == exact + 1);
        }

        #[test]
        fn rates_survive_their_text_form(bps in 1u64..u64::MAX) {
            prop_assert_eq!(Rate::from_bps(bps).to_string().parse(), Ok(Rate::from_bps(bps)));
        }
    }
}
