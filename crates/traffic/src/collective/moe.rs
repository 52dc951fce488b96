//! A mixture of experts: tokens go to the ranks of their experts, and come back.

use weft_units::{Purpose, Span, Stream};

use super::all_to_all::AllToAll;
use super::draft::{Op, Point};
use super::exchange::Exchange;
use super::popularity::Popularity;

/// A layer of experts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Experts {
    /// Tokens of every rank, at least one; the last may be shorter.
    pub bytes: u64,
    pub token_bytes: u64,
    pub popularity: Popularity,
    /// How many experts a token goes to, at most as many as there are.
    pub top_k: usize,
    /// Compute time of an expert for a token.
    pub compute: Span,
    pub parallel: Option<usize>,
}

impl Experts {
    /// Tokens of a rank.
    pub const fn tokens(&self) -> u64 {
        self.bytes.div_ceil(self.token_bytes)
    }

    /// Tokens that go from each rank to each, drawn token by token: its experts differ, and are
    /// drawn by their popularity.
    fn routed(&self, ranks: usize, random: &mut Stream) -> Vec<Vec<u64>> {
        let weights = self.popularity.weights(random);
        let sums = Sums::new(&weights);
        let mut routed = vec![vec![0; ranks]; ranks];
        let mut chosen = Vec::with_capacity(self.top_k);
        for row in &mut routed {
            for _ in 0..self.tokens() {
                chosen.clear();
                while chosen.len() < self.top_k {
                    let expert = sums.draw_without(&weights, &chosen, random);
                    chosen.push(expert);
                    row[expert % ranks] += 1;
                }
            }
        }
        routed
    }

    /// Tokens go out, a rank computes for all that came to it, its own among them, and they go
    /// back. Drawn from this entity's stream.
    pub fn put(&self, exchange: &mut Exchange<'_>, seed: u64, entity: u64) {
        let ranks = exchange.ranks();
        let mut random = Stream::new(seed, Purpose::Experts, entity);
        let routed = self.routed(ranks, &mut random);
        let bytes = |from: usize, to: usize| routed[from][to] * self.token_bytes;
        let dispatch = AllToAll { bytes: &bytes, parallel: self.parallel, first: None, step: 0 };
        let got = dispatch.put(exchange);
        let computed: Vec<Op> = (0..ranks)
            .map(|rank| {
                let tokens: u64 = routed.iter().map(|row| row[rank]).sum();
                let all = got[rank].iter().map(|&op| (op, Point::Received));
                let entry = (exchange.entry(rank), Point::Done);
                let op = exchange.draft.join(
                    exchange.host(rank),
                    self.compute.saturating_mul(tokens),
                    all.chain([entry]).collect::<Vec<_>>(),
                );
                exchange.end_with(rank, op);
                op
            })
            .collect();
        let back = |from: usize, to: usize| bytes(to, from);
        let combine = AllToAll { bytes: &back, parallel: self.parallel, first: Some(&computed), step: 1 };
        combine.put(exchange);
    }
}

/// Sums of weights, to draw by.
struct Sums(Vec<f64>);

impl Sums {
    fn new(weights: &[f64]) -> Self {
        let mut sum = 0.0;
        let add = |weight: &f64| {
            sum += weight;
            sum
        };
        Self(weights.iter().map(add).collect())
    }

    /// One that is not among `chosen`, each in proportion to its weight; there is one.
    fn draw_without(&self, weights: &[f64], chosen: &[usize], random: &mut Stream) -> usize {
        // Few tries are enough unless those that are chosen have nearly all of the weight.
        for _ in 0..8 {
            let drawn = self.draw(random);
            if !chosen.contains(&drawn) {
                return drawn;
            }
        }
        let mut left: Vec<f64> = weights.to_vec();
        for &expert in chosen {
            left[expert] = 0.0;
        }
        let drawn = Self::new(&left).draw(random);
        if !chosen.contains(&drawn) {
            return drawn;
        }
        // Rounding at the upper end.
        (0..weights.len()).find(|expert| !chosen.contains(expert)).unwrap_or(drawn)
    }

    fn draw(&self, random: &mut Stream) -> usize {
        let all = self.0.last().copied().unwrap_or(0.0);
        let at = random.unit() * all;
        self.0.partition_point(|&sum| sum <= at).min(self.0.len() - 1)
    }
}
