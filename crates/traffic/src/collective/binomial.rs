//! Broadcasts and reduces on a binomial tree: Thakur, Rabenseifner and Gropp, Optimization of
//! Collective Communication Operations in MPICH, 2005.

use weft_units::Span;

use super::draft::{Op, Point};
use super::exchange::Exchange;

/// Broadcast down a binomial tree, or reduction up. The first rank is its root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binomial {
    /// Payload at every rank.
    pub bytes: u64,
    /// Whether it goes up and is added up.
    pub reduces: bool,
}

impl Binomial {
    /// A rank whose number ends in h zeros has h children, 1, 2, 4 and so on behind it, as far as
    /// there are any. Down it sends to one child at a time, the farthest first: the next once that
    /// is acknowledged. Up it sends once it has come from all children.
    pub fn put(&self, exchange: &mut Exchange<'_>) {
        let ranks = exchange.ranks();
        let rounds = ranks.next_power_of_two().ilog2() as usize;
        // By number: what came down to it, or goes up from it.
        let mut own: Vec<Option<Op>> = vec![None; ranks];
        if self.reduces {
            // Children stand behind their parents.
            for number in (1..ranks).rev() {
                let zeros = number.trailing_zeros() as usize;
                let to = number & (number - 1);
                let op = exchange.send_first((number, to), self.bytes, zeros, Span::ZERO);
                for child in children(number, rounds, ranks).filter_map(|child| own[child]) {
                    exchange.draft.after(op, child, Point::Received);
                }
                own[number] = Some(op);
            }
            return;
        }
        for number in 0..ranks {
            let mut before: Option<Op> = None;
            for child in children(number, rounds, ranks) {
                let step = rounds - 1 - (child - number).ilog2() as usize;
                let ends = (number, child);
                let op = exchange.send_first(ends, self.bytes, step, Span::ZERO);
                if let Some(came) = own[number] {
                    exchange.draft.after(op, came, Point::Received);
                }
                if let Some(before) = before {
                    exchange.draft.after(op, before, Point::Acknowledged);
                }
                (before, own[child]) = (Some(op), Some(op));
            }
        }
    }
}

/// The children of a number in a tree of so many rounds and ranks, the farthest first.
fn children(number: usize, rounds: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let height = if number == 0 { rounds } else { number.trailing_zeros() as usize };
    (0..height).rev().map(move |bit| number + (1 << bit)).filter(move |&child| child < ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binomial_tree_reaches_each_rank_once_and_no_later_than_in_its_last_round() {
        for ranks in 2..200_usize {
            let rounds = ranks.next_power_of_two().ilog2() as usize;
            let mut came = vec![usize::MAX; ranks];
            came[0] = 0;
            for number in 0..ranks {
                // One child a round, from the round on in which it came.
                for (before, child) in children(number, rounds, ranks).enumerate() {
                    assert_eq!(came[child], usize::MAX, "{ranks}: {child} is reached twice");
                    came[child] = came[number] + before + 1;
                }
            }
            assert!(came.iter().all(|&round| round <= rounds), "{ranks}: {came:?}");
        }
    }
}
