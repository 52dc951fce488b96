//! How popular experts are: Zipf's law, in an order that is drawn.

use weft_units::Stream;

use crate::TrafficError;

/// Experts at most.
const MAX_EXPERTS: usize = 65_536;

/// How popular the experts of a layer are. Expert e is at rank e modulo the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Popularity {
    /// How many experts there are.
    pub experts: usize,
    /// The exponent of Zipf's law, 0 if all are alike.
    pub skew: f64,
}

impl Popularity {
    /// Refuses what makes no sense.
    pub fn check(&self, key: &impl Fn(&str) -> String) -> Result<(), TrafficError> {
        if !(1..=MAX_EXPERTS).contains(&self.experts) {
            return Err(TrafficError::bad_value(key("experts"), self.experts, format!("1 to {MAX_EXPERTS}")));
        }
        if !(0.0..=10.0).contains(&self.skew) {
            return Err(TrafficError::bad_value(key("skew"), self.skew, "0 to 10"));
        }
        Ok(())
    }

    /// Whether each of so many ranks is as popular as any other.
    pub fn is_even(&self, ranks: usize) -> bool {
        self.skew == 0.0 && self.experts.is_multiple_of(ranks)
    }

    /// By expert, a number in proportion to its popularity. Which expert is the n-th most popular
    /// one is drawn.
    pub fn weights(&self, random: &mut Stream) -> Vec<f64> {
        let mut by_popularity: Vec<usize> = (0..self.experts).collect();
        random.shuffle(&mut by_popularity);
        let mut weights = vec![0.0; self.experts];
        for (place, expert) in by_popularity.into_iter().enumerate() {
            // `libm`'s: a platform's own may differ in the last bit.
            weights[expert] = libm::pow((place + 1) as f64, -self.skew);
        }
        weights
    }

    /// So many bytes, cut by the popularity of the experts that each rank has: to the byte, and
    /// nothing is lost.
    pub fn parts(&self, bytes: u64, ranks: usize, random: &mut Stream) -> Vec<u64> {
        let mut sums = vec![0.0; ranks];
        for (expert, weight) in self.weights(random).into_iter().enumerate() {
            sums[expert % ranks] += weight;
        }
        let mut sum = 0.0;
        for rank in &mut sums {
            sum += *rank;
            *rank = sum;
        }
        let mut before = 0;
        let part = |upto: f64| {
            let until = (bytes as f64 * (upto / sum)).round() as u64;
            until - std::mem::replace(&mut before, until)
        };
        sums.into_iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_units::Purpose;

    use super::*;

    fn stream(seed: u64) -> Stream {
        Stream::new(seed, Purpose::Experts, 0)
    }

    #[test]
    fn parts_are_those_of_zipf_in_an_order_that_is_drawn() {
        // 1, 1/2, 1/3 and 1/4 of 12/25.
        let popularity = Popularity { experts: 4, skew: 1.0 };
        let parts = popularity.parts(2_500, 4, &mut stream(1));
        let mut sorted = parts.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [300, 400, 600, 1_200]);
        assert!((2..20).any(|seed| popularity.parts(2_500, 4, &mut stream(seed)) != parts));
    }

    #[test]
    fn a_rank_gets_what_all_of_its_experts_get() {
        // Three experts at two ranks: two at the first one, all alike.
        let popularity = Popularity { experts: 3, skew: 0.0 };
        assert_eq!(popularity.parts(3_000, 2, &mut stream(1)), [2_000, 1_000]);
        assert!(!popularity.is_even(2) && popularity.is_even(3));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_part_is_a_byte_off(
            bytes in 0u64..=1_000_000_000_000,
            ranks in 1usize..40,
            experts in 1usize..200,
            skew in 0.0f64..10.0,
            seed in 0u64..100,
        ) {
            let popularity = Popularity { experts, skew };
            let parts = popularity.parts(bytes, ranks, &mut stream(seed));
            prop_assert_eq!(parts.iter().sum::<u64>(), bytes);
            let weights = popularity.weights(&mut stream(seed));
            let all: f64 = weights.iter().sum();
            for (rank, &part) in parts.iter().enumerate() {
                let share: f64 = weights.iter().skip(rank).step_by(ranks).sum::<f64>() / all;
                prop_assert!((part as f64 - share * bytes as f64).abs() < 1.01, "{part} and {share}");
            }
        }
    }
}
