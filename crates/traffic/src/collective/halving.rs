//! Recursive halving and doubling: partners are half of the ranks away, then a quarter, and so on.
//! Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH,
//! 2005, §4.

use weft_units::{Rate, Span};

use super::draft::{Op, Point};
use super::exchange::{Exchange, part, reduction};

/// Recursive halving, recursive doubling, or both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Halving {
    /// Payload at every rank; at least a byte for every rank and chunk.
    pub bytes: u64,
    /// Pieces of each message, each of which goes on by itself.
    pub chunks: usize,
    /// Whether ranks halve what they have and add up what arrives.
    pub halves: bool,
    /// Whether they double what they have, afterwards.
    pub doubles: bool,
    pub reduction_rate: Option<Rate>,
}

/// A step: how far away the partner is, and whether what comes is added up.
#[derive(Debug, Clone, Copy)]
struct Step {
    distance: usize,
    adds: bool,
}

impl Halving {
    /// The number of ranks is a power of two.
    pub fn put(&self, exchange: &mut Exchange<'_>) {
        let distances = (0..exchange.ranks().trailing_zeros()).map(|step| 1 << step);
        let down =
            distances.clone().rev().filter(|_| self.halves).map(|distance| Step { distance, adds: true });
        let up = distances.filter(|_| self.doubles).map(|distance| Step { distance, adds: false });
        let steps: Vec<Step> = down.chain(up).collect();
        for chunk in 0..self.chunks {
            self.put_chunk(exchange, &steps, part(self.bytes, self.chunks, chunk));
        }
    }

    /// In each step a rank sends to its partner once it has all that came before. Halving, that is
    /// the half of its range with which the partner goes on; doubling, all that it has.
    fn put_chunk(&self, exchange: &mut Exchange<'_>, steps: &[Step], bytes: u64) {
        let ranks = exchange.ranks();
        // The step before, and what each rank sent in it.
        let mut before: Option<(Step, Vec<(Op, u64)>)> = None;
        for (number, &step) in steps.iter().enumerate() {
            let mut sent = Vec::with_capacity(ranks);
            for rank in 0..ranks {
                let partner = rank ^ step.distance;
                let first = if step.adds { partner } else { rank } & !(step.distance - 1);
                let size = (first..first + step.distance).map(|at| part(bytes, ranks, at)).sum();
                let Some((last, sent_before)) = &before else {
                    sent.push((exchange.send_first((rank, partner), size, number, Span::ZERO), size));
                    continue;
                };
                let (came, came_bytes) = sent_before[rank ^ last.distance];
                let takes = reduction(self.reduction_rate.filter(|_| last.adds), came_bytes);
                let op = exchange.send((rank, partner), size, number, takes);
                exchange.draft.after(op, came, Point::Received);
                // What it sent before waited for what had come before that.
                exchange.draft.after(op, sent_before[rank].0, Point::Started);
                sent.push((op, size));
            }
            before = Some((step, sent));
        }
    }
}
