//! Every rank has something for the others.

use weft_units::Span;

use super::draft::{Op, Point};
use super::exchange::Exchange;

/// Bytes that each rank has for each other one, by sender and receiver; nothing goes from a rank to
/// itself.
pub(crate) struct AllToAll<'b> {
    pub bytes: &'b dyn Fn(usize, usize) -> u64,
    /// How many a rank sends to at a time; none: all at once.
    pub parallel: Option<usize>,
    /// First operation of each rank in the exchange, in place of its entry: nothing if it begins
    /// with that.
    pub first: Option<&'b [Op]>,
    pub step: usize,
}

impl AllToAll<'_> {
    /// Rank r sends to r + 1, r + 2, and so on: no two begin with one receiver. Returns what was
    /// sent, by rank that gets it.
    pub fn put(&self, exchange: &mut Exchange<'_>) -> Vec<Vec<Op>> {
        let ranks = exchange.ranks();
        let mut got = vec![Vec::new(); ranks];
        for rank in 0..ranks {
            let mut sent: Vec<Op> = Vec::with_capacity(ranks - 1);
            for to in (1..ranks).map(|distance| (rank + distance) % ranks) {
                let bytes = (self.bytes)(rank, to);
                if bytes == 0 {
                    continue;
                }
                let op = exchange.send((rank, to), bytes, self.step, Span::ZERO);
                let first = self.first.map_or_else(|| exchange.entry(rank), |first| first[rank]);
                exchange.draft.after(op, first, Point::Done);
                let before = self.parallel.and_then(|parallel| sent.len().checked_sub(parallel));
                if let Some(before) = before {
                    exchange.draft.after(op, sent[before], Point::Acknowledged);
                }
                sent.push(op);
                got[to].push(op);
            }
        }
        got
    }
}
