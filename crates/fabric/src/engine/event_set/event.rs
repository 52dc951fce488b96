//! An event of a slot, as one word to sort by.

/// An event of the slot that is being worked on. All that orders events is one word, which is
/// compared at once: the time, then the rank of the key
/// ([`EventKey::rank`](super::EventKey::rank)). The number of the link or timer is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event(u128);

impl Event {
    #[inline]
    pub(super) const fn new(time: u64, rank: u32, number: u32) -> Self {
        Self((time as u128) << 64 | (rank as u128) << 32 | number as u128)
    }

    /// The last 32 bits of its time, before its rank.
    #[inline]
    pub(super) const fn low_word(self) -> u64 {
        (self.0 >> 32) as u64
    }

    /// When it is due, in ps.
    #[inline]
    pub(super) const fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The number of its link, or, beyond those, of a timer.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// Whether its time and rank are those of another: only their keys, or what came first, can
    /// tell which of them is first.
    #[inline]
    pub(super) const fn is_like(self, other: Self) -> bool {
        (self.0 ^ other.0) >> 32 == 0
    }
}
