//! Collectives on a ring: every rank sends to the next one alone.

use weft_units::Rate;

use super::draft::{Op, Point};
use super::exchange::{Exchange, part, reduction};

/// Ring collective: an all-gather, a reduce-scatter, or both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    /// Payload at every rank; at least a byte for every rank and chunk.
    pub bytes: u64,
    /// Pieces that a rank's part is cut into: each goes around by itself.
    pub chunks: usize,
    /// Steps in which ranks add up what arrives: N - 1 in a reduce-scatter and an all-reduce, none
    /// in an all-gather.
    pub reduces: usize,
    /// And all steps: N - 1, or twice as many in an all-reduce.
    pub steps: usize,
    pub reduction_rate: Option<Rate>,
}

impl Ring {
    /// In step `s` rank `r` sends the part `r - s` (modulo the number of ranks) to rank `r + 1`,
    /// once that part has come to it in the step before and, while they reduce, was added to its
    /// own.
    pub fn put(&self, exchange: &mut Exchange<'_>) {
        let ranks = exchange.ranks();
        let mut before: Vec<Op> = Vec::new();
        for step in 0..self.steps {
            let mut sent = Vec::with_capacity(ranks * self.chunks);
            for rank in 0..ranks {
                // `reduces` of all-gather is 0: the part of step 0 is its own.
                let whole = part(self.bytes, ranks, (rank + self.steps * ranks - step) % ranks);
                for chunk in 0..self.chunks {
                    let bytes = part(whole, self.chunks, chunk);
                    let adds = step > 0 && step <= self.reduces;
                    let takes = reduction(self.reduction_rate.filter(|_| adds), bytes);
                    let to = (rank, (rank + 1) % ranks);
                    let op = if step == 0 {
                        exchange.send_first(to, bytes, step, takes)
                    } else {
                        let op = exchange.send(to, bytes, step, takes);
                        let previous = (rank + ranks - 1) % ranks;
                        exchange.draft.after(op, before[previous * self.chunks + chunk], Point::Received);
                        op
                    };
                    // A part that comes from elsewhere is added to its own: that has to be there.
                    if step > 0 && step <= self.reduces {
                        exchange.draft.after(op, exchange.entry(rank), Point::Done);
                    }
                    sent.push(op);
                }
            }
            before = sent;
        }
    }
}
