//! Binary trees: Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast,
//! reduction and scan, 2009.

use weft_units::Rate;

use super::draft::{Op, Point};
use super::exchange::{Exchange, part, reduction};

/// Reduction up a tree, and broadcast down again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    /// Payload at every rank.
    pub bytes: u64,
    /// Pieces that go one behind the other.
    pub chunks: usize,
    /// Whether there are two trees, each for half of the bytes.
    pub is_double: bool,
    pub reduction_rate: Option<Rate>,
}

/// The parent of each rank in an in-order binary tree of so many: a rank whose number, from 1, ends
/// in h zeros is at height h. The one without a parent is the root.
pub(crate) fn parents(ranks: usize) -> Vec<Option<usize>> {
    let parent = |rank: usize| {
        // From 1, so that leaves are odd.
        let number = rank + 1;
        let low = number & number.wrapping_neg();
        // The parent of height h + 1 on the one side or the other; where that is beyond the last
        // rank, the next above it.
        let (mut at, mut low) = (number, low);
        loop {
            let up = (at ^ low) | (low << 1);
            if up <= ranks {
                return Some(up - 1);
            }
            // Going up to the left leaves the tree only at the root.
            at = up;
            low <<= 1;
            if low > ranks {
                return None;
            }
        }
    };
    (0..ranks).map(parent).collect()
}

impl Tree {
    /// A rank sends a chunk up once it came from all its children, and down once it came from its
    /// parent; the root sends it down once it came from all its children.
    pub fn put(&self, exchange: &mut Exchange<'_>) {
        let ranks = exchange.ranks();
        let tree = parents(ranks);
        if !self.is_double {
            return self.put_one(exchange, &tree, self.bytes);
        }
        // The second tree is the first one a rank on: leaves become inner ranks. Of an odd number
        // one stays a leaf.
        let shifted = |rank: usize| (rank + 1) % ranks;
        let mut other = vec![None; ranks];
        for (rank, parent) in tree.iter().enumerate() {
            other[shifted(rank)] = parent.map(shifted);
        }
        self.put_one(exchange, &tree, part(self.bytes, 2, 0));
        self.put_one(exchange, &other, part(self.bytes, 2, 1));
    }

    fn put_one(&self, exchange: &mut Exchange<'_>, parents: &[Option<usize>], bytes: u64) {
        let ranks = parents.len();
        let depth: Vec<usize> = (0..ranks).map(|rank| depth(parents, rank)).collect();
        let deepest = depth.iter().copied().max().unwrap_or(0);
        let mut children = vec![Vec::new(); ranks];
        for (rank, parent) in parents.iter().enumerate() {
            if let Some(parent) = *parent {
                children[parent].push(rank);
            }
        }
        // From the leaves up, and from the root down.
        let mut upwards: Vec<usize> = (0..ranks).collect();
        upwards.sort_by_key(|&rank| (std::cmp::Reverse(depth[rank]), rank));
        for chunk in 0..self.chunks {
            let bytes = part(bytes, self.chunks, chunk);
            let adds = reduction(self.reduction_rate, bytes);
            let mut up: Vec<Option<Op>> = vec![None; ranks];
            for &rank in &upwards {
                let Some(parent) = parents[rank] else { continue };
                let takes = adds.saturating_mul(children[rank].len() as u64);
                let op = exchange.send_first((rank, parent), bytes, deepest - depth[rank], takes);
                for child in children[rank].iter().filter_map(|&child| up[child]) {
                    exchange.draft.after(op, child, Point::Received);
                }
                up[rank] = Some(op);
            }
            let mut down: Vec<Option<Op>> = vec![None; ranks];
            for &rank in upwards.iter().rev() {
                for &child in &children[rank] {
                    let is_root = parents[rank].is_none();
                    let takes = if is_root {
                        adds.saturating_mul(children[rank].len() as u64)
                    } else {
                        weft_units::Span::ZERO
                    };
                    let step = deepest + depth[rank];
                    let op = if is_root {
                        exchange.send_first((rank, child), bytes, step, takes)
                    } else {
                        exchange.send((rank, child), bytes, step, takes)
                    };
                    let from_children =
                        children[rank].iter().filter_map(|&child| up[child]).filter(|_| is_root);
                    for before in from_children.chain(down[rank]) {
                        exchange.draft.after(op, before, Point::Received);
                    }
                    down[child] = Some(op);
                }
            }
        }
    }
}

/// How far a rank is from the root.
fn depth(parents: &[Option<usize>], rank: usize) -> usize {
    std::iter::successors(parents[rank], |&rank| parents[rank]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_one_root_reaches_all_is_binary_and_no_deeper_than_it_must() {
        for ranks in 2..200 {
            let tree = parents(ranks);
            assert_eq!(tree.iter().filter(|parent| parent.is_none()).count(), 1, "{ranks}");
            let deepest = (0..ranks).map(|rank| depth(&tree, rank)).max().unwrap();
            assert!(deepest <= ranks.ilog2() as usize, "{ranks}: {deepest}");
            for rank in 0..ranks {
                let children = tree.iter().filter(|&&parent| parent == Some(rank)).count();
                assert!(children <= 2, "{ranks}: rank {rank} has {children}");
                assert!(rank % 2 == 1 || children == 0, "{ranks}: even ranks are leaves");
            }
        }
    }
}
