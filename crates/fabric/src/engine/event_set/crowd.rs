//! Slots that hold many events, in fabrics far larger than the caches: see
//! [`crate::engine::ahead`].

use super::{CROWD, Event, EventKey, EventKind, EventSet, NONE, SLOTS};
use crate::engine::fetch::fetch;
use crate::engine::link::Link;

/// From so many events on a slot is sorted by words of 64 bits.
pub(super) const SORTED_BY_WORD: usize = 16;

/// Room for the sort of a slot.
#[derive(Default)]
pub(super) struct Sorting {
    words: Vec<u64>,
    unsorted: Vec<Event>,
}

impl EventSet {
    /// Sorts the batch, which has just been loaded. Of what orders its events the time within the
    /// slot and the rank fit into one word, with the event's place below: such words are sorted in
    /// two thirds of the instructions.
    #[inline(never)]
    pub(super) fn sort_by_word(&mut self) {
        let (count, Sorting { words, unsorted }) = (self.batch.len(), &mut self.sorting);
        let place_bits = match u32::BITS.checked_sub(self.shift) {
            Some(bits) if count >> bits == 0 => bits,
            _ => return self.batch.sort_unstable(),
        };
        words.clear();
        words.extend((0..).zip(&self.batch).map(|(place, event)| event.low_word() << place_bits | place));
        words.sort_unstable();
        std::mem::swap(&mut self.batch, unsorted);
        self.batch.clear();
        let places = (1 << place_bits) - 1;
        self.batch.extend(words.iter().map(|word| unsorted[(word & places) as usize]));
    }

    /// Makes slots as wide as this at least, in ps, and says where many events are in one: for a
    /// fabric that is far larger than the caches. Before the first event.
    pub fn prefetch(&mut self, width_ps: u64) {
        self.shift = self.shift.max(width_ps.next_power_of_two().trailing_zeros());
        self.find_stop();
        self.looks_ahead = true;
    }

    /// Whether it does that.
    #[inline]
    pub const fn looks_ahead(&self) -> bool {
        self.looks_ahead
    }

    /// The events of the slot that has just been sorted, if they are so many that it is worth while
    /// to ask for what they will need.
    pub fn crowd(&self) -> Option<&[Event]> {
        (self.batch.len() >= CROWD).then_some(&self.batch)
    }

    /// The host whose RDMA card is to ask, if that is what the batch holds by this number.
    #[inline]
    pub fn card(&self, number: u32) -> Option<u32> {
        self.near.timer(number).filter(|key| key.kind() == EventKind::Card).map(EventKey::entity)
    }

    /// Begins to ask for what is in the slot behind the one that has just been sorted.
    pub fn begin_walk(&mut self, links: &[Link]) {
        self.ahead = self.slots[(self.loaded + 1) as usize % SLOTS];
        self.fetch_event(links, self.ahead);
    }

    /// Asks for a link, or a timer, if there is one with this number.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn fetch_event(&self, links: &[Link], number: u32) {
        match links.get(number as usize) {
            Some(link) => fetch(link),
            None => self.near.fetch(number),
        }
    }

    /// Asks for one more of that slot: the one before has come by now, and says which it is.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn walk(&mut self, links: &[Link]) {
        if self.ahead == NONE {
            return;
        }
        self.ahead = self.entry(links, self.ahead).1;
        self.fetch_event(links, self.ahead);
    }
}
