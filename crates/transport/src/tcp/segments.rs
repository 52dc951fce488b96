//! A set of segments in a moving window: what a receiver holds beyond a hole, what a sender knows
//! to have arrived.

/// A set of segment numbers at or above a base, one bit each, in a ring of words that grows with
/// the window.
#[derive(Debug, Clone)]
pub(crate) struct SegmentSet {
    /// A power of two of words. Segment `s` is bit `s % 64` of word `(s / 64) % len`.
    words: Box<[u64]>,
    base: u32,
    len: u32,
    /// One past the highest segment that was ever inserted, at least `base`.
    end: u32,
}

const WORD: u32 = u64::BITS;

impl SegmentSet {
    /// Room for 256 segments before the ring grows.
    const INITIAL_WORDS: usize = 4;

    /// Nothing at or above `base`.
    pub fn new(base: u32) -> Self {
        Self { words: vec![0; Self::INITIAL_WORDS].into(), base, len: 0, end: base }
    }

    /// Adds `segment`, which must be at or above the base. False if it was in the set before.
    pub fn insert(&mut self, segment: u32) -> bool {
        self.insert_range(segment, segment + 1)
    }

    /// Adds `from .. to`, which must not be empty nor begin below the base. False if nothing was
    /// new.
    pub fn insert_range(&mut self, from: u32, to: u32) -> bool {
        debug_assert!(self.base <= from && from < to);
        while ((to - 1) / WORD - self.base / WORD) as usize >= self.words.len() {
            self.grow();
        }
        let before = self.len;
        let mut at = from;
        while at < to {
            let (word, bits, next) = Self::part(at, to);
            let slot = self.slot(word);
            self.len += (bits & !self.words[slot]).count_ones();
            self.words[slot] |= bits;
            at = next;
        }
        self.end = self.end.max(to);
        self.len > before
    }

    /// Moves the base up to `base` and forgets what is below it.
    pub fn advance(&mut self, base: u32) {
        if base >= self.end {
            if self.len > 0 {
                self.words.fill(0);
            }
            (self.base, self.end, self.len) = (base.max(self.base), base.max(self.end), 0);
            return;
        }
        while self.base < base {
            let (word, bits, next) = Self::part(self.base, base);
            let slot = self.slot(word);
            self.len -= (self.words[slot] & bits).count_ones();
            self.words[slot] &= !bits;
            self.base = next;
        }
    }

    /// How many segments are in the set.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// One past the highest segment in the set, or the base if it is empty.
    pub const fn end(&self) -> u32 {
        self.end
    }

    /// Whether `segment` is in the set.
    pub fn contains(&self, segment: u32) -> bool {
        segment >= self.base
            && segment < self.end
            && self.words[self.slot(segment / WORD)] >> (segment % WORD) & 1 == 1
    }

    /// Which of the 64 segments from `from` on are in the set, one bit each, the first one in the
    /// lowest.
    pub fn window(&self, from: u32) -> u64 {
        let (word, bit) = (from / WORD, from % WORD);
        let above = if bit == 0 { 0 } else { self.word(word + 1) << (WORD - bit) };
        self.word(word) >> bit | above
    }

    /// A word of segments: none of those that it has no room for is in the set.
    fn word(&self, word: u32) -> u64 {
        let is_within = (self.base / WORD..self.end.div_ceil(WORD)).contains(&word);
        if is_within { self.words[self.slot(word)] } else { 0 }
    }

    /// The first segment at or above `from` that is not in the set.
    pub fn next_absent(&self, from: u32) -> u32 {
        let mut at = from;
        while at < self.end {
            let ones = (self.words[self.slot(at / WORD)] >> (at % WORD)).trailing_ones();
            at += ones;
            if !at.is_multiple_of(WORD) || ones == 0 {
                break;
            }
        }
        at
    }

    /// The first segment of the unbroken run that ends with `segment`, which must be in the set.
    pub fn run_start(&self, segment: u32) -> u32 {
        let mut past = segment + 1;
        while past > self.base {
            let top = past - 1;
            let ones = (self.words[self.slot(top / WORD)] << (WORD - 1 - top % WORD)).leading_ones();
            past -= ones.min(past - self.base);
            if !past.is_multiple_of(WORD) || ones == 0 {
                break;
            }
        }
        past
    }

    /// How many segments of `from .. to` are in the set.
    pub fn count(&self, from: u32, to: u32) -> u32 {
        let (mut at, to) = (from.max(self.base), to.min(self.end));
        let mut count = 0;
        while at < to {
            let (word, bits, next) = Self::part(at, to);
            count += (self.words[self.slot(word)] & bits).count_ones();
            at = next;
        }
        count
    }

    /// The `n`-th highest segment in the set, from 1.
    pub fn nth_highest(&self, n: u32) -> Option<u32> {
        if n == 0 || n > self.len {
            return None;
        }
        let mut left = n;
        let mut word = (self.end - 1) / WORD;
        loop {
            let mut bits = self.words[self.slot(word)];
            if bits.count_ones() < left {
                left -= bits.count_ones();
                word -= 1;
                continue;
            }
            for _ in 1..left {
                bits &= !(1 << bits.ilog2());
            }
            return Some(word * WORD + bits.ilog2());
        }
    }

    /// The first word that `from .. to` touches, the bits that it touches there, and where the rest
    /// begins.
    const fn part(from: u32, to: u32) -> (u32, u64, u32) {
        let word = from / WORD;
        let bits = u64::MAX << (from % WORD);
        if (to - 1) / WORD == word {
            (word, bits & (u64::MAX >> (WORD - 1 - (to - 1) % WORD)), to)
        } else {
            (word, bits, (word + 1) * WORD)
        }
    }

    const fn slot(&self, word: u32) -> usize {
        word as usize & (self.words.len() - 1)
    }

    fn grow(&mut self) {
        let (first, old) = ((self.base / WORD) as usize, self.words.len());
        let mut words = vec![0; old * 2];
        for word in first..first + old {
            words[word & (old * 2 - 1)] = self.words[word & (old - 1)];
        }
        self.words = words.into();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn window(model: &BTreeSet<u32>, from: u32) -> u64 {
        (0..64).filter(|bit| model.contains(&(from + bit))).fold(0, |bits, bit| bits | 1 << bit)
    }

    /// Everything that the set can be asked, answered by a sorted set.
    fn agree(set: &SegmentSet, model: &BTreeSet<u32>, base: u32, probe: u32) {
        assert_eq!(set.len() as usize, model.len());
        assert_eq!(set.contains(probe), model.contains(&probe));
        let absent = (probe..probe + 100_000).find(|s| !model.contains(s)).unwrap();
        assert_eq!(set.next_absent(probe), absent);
        assert_eq!(set.window(probe), window(model, probe));
        let to = probe + 150;
        assert_eq!(set.count(probe, to) as usize, model.range(probe..to).count());
        for n in [1, 3, 70] {
            assert_eq!(set.nth_highest(n), model.iter().rev().nth(n as usize - 1).copied());
        }
        if model.contains(&probe) {
            let start = (base..=probe).rev().take_while(|s| model.contains(s)).last().unwrap();
            assert_eq!(set.run_start(probe), start);
        }
    }

    proptest! {
        #[test]
        fn it_is_a_set_however_the_window_moves_and_grows(
            start in 0u32..200,
            steps in prop::collection::vec((0u32..700, 0u32..90, any::<bool>()), 1..200),
        ) {
            let (mut set, mut model, mut base) = (SegmentSet::new(start), BTreeSet::new(), start);
            for (ahead, move_by, dense) in steps {
                let (from, to) = (base + ahead, base + ahead + if dense { 80 } else { 1 });
                let before = model.len();
                model.extend(from..to);
                prop_assert_eq!(set.insert_range(from, to), model.len() > before);
                agree(&set, &model, base, base + ahead);
                base += move_by;
                set.advance(base);
                model = model.split_off(&base);
                agree(&set, &model, base, base + ahead / 2);
                let below = base.saturating_sub(ahead / 10);
                prop_assert_eq!(set.window(below), window(&model, below));
            }
        }
    }

    #[test]
    fn a_jump_past_everything_empties_it() {
        let mut set = SegmentSet::new(0);
        set.insert(100);
        set.advance(5_000);
        assert_eq!((set.len(), set.end(), set.next_absent(5_000)), (0, 5_000, 5_000));
        assert!(set.insert(5_100) && set.contains(5_100) && !set.contains(100));
    }
}
