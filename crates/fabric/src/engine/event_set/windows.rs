//! Events of a part of the fabric, window by window.

use super::{Event, EventKey, EventSet, SLOTS};
use crate::engine::partition::Numbers;
use weft_units::{Span, Time};

impl EventSet {
    /// Makes the wheel cover this, at least. Before the first event.
    pub fn cover(&mut self, horizon: Span) {
        let width = (horizon.as_ps() / (SLOTS as u64 - 2) + 1).next_power_of_two();
        self.shift = self.shift.max(width.trailing_zeros());
        self.find_stop();
    }

    /// Numbers of the links in the fabric.
    #[inline]
    pub const fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// One more link by which packets come from elsewhere: see [`Numbers::add`].
    pub fn add_link(&mut self, number: u32) {
        self.numbers.add(number);
    }

    /// The port of this link has something to post at the end of the window in which this time is,
    /// or of a later one.
    #[inline]
    pub fn list_leaving(&mut self, link: u32, at: u64) {
        self.leaving.push(link);
        self.leaves_at = self.leaves_at.min(at);
    }

    /// Takes out the links that were listed.
    pub fn take_leaving(&mut self) -> Vec<u32> {
        self.leaves_at = u64::MAX;
        std::mem::take(&mut self.leaving)
    }

    /// A port that was listed sends next at this time.
    pub fn leaves_again(&mut self, at: u64) {
        self.leaves_at = self.leaves_at.min(at);
    }

    /// Puts those back that have more.
    pub fn put_leaving(&mut self, links: Vec<u32>) {
        self.leaving = links;
    }

    /// Nothing happens before this time: what arrives soon after it is within the wheel.
    #[inline]
    pub fn turn_to(&mut self, at: Time) {
        if self.next == self.batch.len() {
            self.loaded = self.loaded.max((at.as_ps() >> self.shift).saturating_sub(1));
        }
    }

    /// Brings those of the batch into order whose time and rank are the same: some timers. They are
    /// rare.
    pub(super) fn sort_alike(&mut self) {
        let mut from = 0;
        while let Some(at) = self.batch[from..].windows(2).position(|pair| pair[0].is_like(pair[1])) {
            from += at;
            let first = self.batch[from];
            let count = self.batch[from..].iter().take_while(|event| event.is_like(first)).count();
            let mut batch = std::mem::take(&mut self.batch);
            batch[from..from + count].sort_unstable_by_key(|&event| self.rank(event));
            self.batch = batch;
            from += count;
        }
    }

    /// Sort key of the events of a batch.
    fn rank(&self, event: Event) -> (u64, EventKey) {
        (event.time(), self.key_of(event.number()))
    }
}
