//! Named random streams: each entity draws from its own, derived from (seed, purpose, entity), so
//! that what one entity draws never moves what another one sees.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Purpose of a stream. The number is part of every result: never renumber, only append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Flow arrival times.
    Arrivals = 1,
    /// Flow sizes.
    Sizes = 2,
    /// Sources and destinations.
    Pairs = 3,
    /// Flow classes.
    Classes = 4,
    /// A flow's five-tuple hash.
    FlowHash = 5,
    /// A switch's ECMP hash seed.
    SwitchHash = 6,
    /// A switch scheme's draws.
    SwitchScheme = 7,
    /// A host scheme's draws.
    HostScheme = 8,
    /// Which links are degraded.
    Degradation = 9,
    /// Which packets a lossy link drops.
    Loss = 10,
    /// Random early detection.
    Red = 11,
    /// A transport's draws.
    Transport = 12,
    /// Incast requests.
    Incast = 13,
    /// Deadlines of flows.
    Deadlines = 14,
    /// Pauses of the application of a flow.
    Pauses = 15,
    /// Which hosts take part in a collective or a job, and in what order.
    Placement = 32,
    /// Which experts tokens go to.
    Experts = 33,
}

/// A stream of random numbers that only its owner draws from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

/// Scrambles 64 bits: the finaliser of `SplitMix64`. Every output bit depends on every input bit.
#[inline]
pub const fn mix64(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of `entity` for `purpose` in the run with this `seed`.
    pub fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        let key = mix64(mix64(mix64(seed) ^ purpose as u64) ^ entity);
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number from 0 to `bound - 1`. Lemire's multiply-shift on 32 bits: its bias is below
    /// `bound` / 2^32.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from [0, 1), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// An exponential variate with this mean. The logarithm is `libm`'s: a platform's own may
    /// differ in the last bit.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Shuffles `items`: every order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_and_entity() {
        let first = |seed, purpose, entity| Stream::new(seed, purpose, entity).next_u64();
        let base = first(1, Purpose::Sizes, 0);
        assert_eq!(base, first(1, Purpose::Sizes, 0));
        for other in [first(2, Purpose::Sizes, 0), first(1, Purpose::Pairs, 0), first(1, Purpose::Sizes, 1)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut stream = Stream::new(7, Purpose::Pairs, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        // Chi-square with 5 degrees of freedom: 20.5 is the 0.1 % point.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 20.5, "chi-square {chi}");
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut stream = Stream::new(7, Purpose::Arrivals, 0);
        let mean = (0..100_000).map(|_| stream.exponential(3.0)).sum::<f64>() / 100_000.0;
        assert!((mean - 3.0).abs() < 0.05, "mean {mean}");
    }
}
