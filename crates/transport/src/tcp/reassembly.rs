//! Segments that arrived beyond a hole, and the SACK blocks that tell of them (RFC 2018).

use weft_packet::{Packet, SackBlock};
use weft_units::{Span, Time};

use super::segments::SegmentSet;
use crate::Stalls;

/// Segments held beyond the next one in order. Exists only for flows that saw a hole.
#[derive(Debug, Clone)]
pub(super) struct Reassembly {
    held: SegmentSet,
    /// A segment of each block that was reported last, the latest first; [`NONE`] if there are
    /// fewer.
    recent: [u32; Packet::SACK_BLOCKS],
    /// Since when the next segment in order has kept others waiting.
    stalled_since: Time,
    stalls: Stalls,
    /// Segments are acknowledged at once as long as fewer than this came: one came twice.
    pub quick_before: u32,
}

const NONE: u32 = u32::MAX;

impl Reassembly {
    /// Nothing is held at or above `expected`.
    pub fn new(expected: u32) -> Self {
        Self {
            held: SegmentSet::new(expected),
            recent: [NONE; Packet::SACK_BLOCKS],
            stalled_since: Time::ZERO,
            stalls: Stalls::default(),
            quick_before: 0,
        }
    }

    /// Moves the beginning up to `expected` after a time without holes: a new one opens now.
    pub fn restart(&mut self, expected: u32, now: Time) {
        self.held.advance(expected);
        self.stalled_since = now;
    }

    /// The segment that was waited for arrived: late, or because it was sent again.
    pub fn end_stall(&mut self, sent_again: bool, now: Time) {
        let took = now.since(self.stalled_since);
        self.stalled_since = now;
        self.stalls.last_by_reordering = if sent_again { Span::ZERO } else { took };
        self.stalls.last_end = now;
        if sent_again {
            self.stalls.by_loss += took;
        } else {
            self.stalls.by_reordering += took;
        }
    }

    /// How long data was held so far.
    pub const fn stalls(&self) -> Stalls {
        self.stalls
    }

    /// Holds `segment`. False if it was held before.
    pub fn hold(&mut self, segment: u32) -> bool {
        if !self.held.insert(segment) {
            return false;
        }
        let (start, end) = self.block(segment);
        // What was let go since, and what the new segment joined, need no block of their own.
        let is_apart = |&other: &u32| self.held.contains(other) && !(start..end).contains(&other);
        let mut kept = self.recent.into_iter().filter(is_apart);
        let mut recent = [NONE; Packet::SACK_BLOCKS];
        recent[0] = segment;
        recent[1..].fill_with(|| kept.next().unwrap_or(NONE));
        self.recent = recent;
        true
    }

    /// Whether a segment that is not held is next to one of so many blocks that were reported last,
    /// or fewer are known.
    pub fn joins_block_of(&self, blocks: usize, segment: u32) -> bool {
        let known = || self.recent.iter().copied().filter(|&other| self.held.contains(other));
        let joins = |other: u32| {
            let (start, end) = self.block(other);
            segment + 1 == start || segment == end
        };
        known().count() < blocks || known().take(blocks).any(joins)
    }

    /// `segment` is the one that was waited for: what is in order now is let go. Returns the next
    /// one to wait for.
    pub fn fill(&mut self, segment: u32) -> u32 {
        let expected = self.held.next_absent(segment + 1);
        self.held.advance(expected);
        expected
    }

    /// How many segments are held.
    pub const fn len(&self) -> u32 {
        self.held.len()
    }

    /// The blocks for an acknowledgement of `expected`: first the one with the segment that arrived
    /// last, then those reported most recently (RFC 2018 §4). Blocks further away than 16 bits can
    /// say are left out.
    pub fn blocks(&self, expected: u32) -> [SackBlock; Packet::SACK_BLOCKS] {
        let mut blocks = [SackBlock::default(); Packet::SACK_BLOCKS];
        let known = self.recent.into_iter().filter(|&segment| self.held.contains(segment));
        let near = known.filter_map(|segment| {
            let (start, end) = self.block(segment);
            let first = u16::try_from(start - expected).ok()?;
            let count = (end - start).min(u32::from(u16::MAX)) as u16;
            Some(SackBlock { count, first })
        });
        for (slot, block) in blocks.iter_mut().zip(near) {
            *slot = block;
        }
        blocks
    }

    /// The unbroken run around `segment`, which must be held.
    fn block(&self, segment: u32) -> (u32, u32) {
        (self.held.run_start(segment), self.held.next_absent(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(reassembly: &Reassembly, expected: u32) -> Vec<(u16, u16)> {
        let blocks = reassembly.blocks(expected).into_iter().filter(|block| block.count > 0);
        blocks.map(|block| (block.first, block.count)).collect()
    }

    #[test]
    fn the_block_of_the_latest_segment_comes_first_then_the_most_recent_ones() {
        // RFC 2018 §4, example 3: holes at 0, 2, 4, 6; then 4 arrives and joins two blocks.
        let mut reassembly = Reassembly::new(0);
        assert!([1, 3, 5, 7].into_iter().all(|segment| reassembly.hold(segment)));
        assert_eq!(pairs(&reassembly, 0), [(7, 1), (5, 1), (3, 1), (1, 1)]);
        assert!(reassembly.hold(4));
        assert_eq!(pairs(&reassembly, 0), [(3, 3), (7, 1), (1, 1)]);
        assert!(!reassembly.hold(4));
    }

    #[test]
    fn blocks_that_were_let_go_make_room_for_older_ones() {
        let mut reassembly = Reassembly::new(0);
        assert!([9, 7, 5, 1].into_iter().all(|segment| reassembly.hold(segment)));
        assert_eq!(reassembly.fill(0), 2);
        assert!(reassembly.hold(3));
        assert_eq!(pairs(&reassembly, 2), [(1, 1), (3, 1), (5, 1), (7, 1)]);
    }

    #[test]
    fn filling_a_hole_lets_go_the_run_behind_it_and_its_block() {
        let mut reassembly = Reassembly::new(0);
        assert!([1, 2, 4].into_iter().all(|segment| reassembly.hold(segment)));
        assert_eq!(reassembly.fill(0), 3);
        assert_eq!((reassembly.len(), pairs(&reassembly, 3)), (1, vec![(1, 1)]));
        assert_eq!(reassembly.fill(3), 5);
        assert_eq!((reassembly.len(), pairs(&reassembly, 5)), (0, vec![]));
    }
}
