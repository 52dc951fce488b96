//! Timers in the timing wheel: what is due before the wheel has gone round once.
//!
//! Each has a place, whose number no link has: slots and the batch hold both. Ports that wait until
//! they may send again wake by it, and the clocks of those who pace packets.

use weft_units::Time;

use super::{Event, EventKey};
use crate::engine::fetch::fetch;

/// Places have numbers from here on; links have smaller ones.
pub(super) const FIRST: u32 = 1 << 31;

/// The end of the list of free places.
const NONE: u32 = u32::MAX;

/// When a place is not in use.
const FREE: u64 = u64::MAX;

/// A timer.
#[derive(Debug, Clone, Copy)]
struct TimerEntry {
    /// When it is due, in ps, or [`FREE`].
    at: u64,
    key: EventKey,
    /// The number that follows in the same slot of the wheel; of a free place, the free place
    /// behind it.
    next: u32,
}

/// The timers in the wheel. Places that are free are used again, the last one first.
#[derive(Debug)]
pub(super) struct Near {
    places: Vec<TimerEntry>,
    free: u32,
}

impl Near {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: NONE }
    }

    /// Takes a timer in, for a slot whose first number is `next`. Returns its own number, which is
    /// first there now.
    #[inline]
    pub(super) fn insert(&mut self, at: u64, key: EventKey, next: u32) -> u32 {
        let place = TimerEntry { at, key, next };
        let number = self.free;
        if let Some(free) = self.places.get_mut(number.wrapping_sub(FIRST) as usize) {
            self.free = std::mem::replace(free, place).next;
            return number;
        }
        self.places.push(place);
        FIRST + (self.places.len() - 1) as u32
    }

    /// Takes out what is in no slot.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> EventKey {
        let place = &mut self.places[(number - FIRST) as usize];
        (place.at, place.next) = (FREE, self.free);
        self.free = number;
        place.key
    }

    /// The key of the timer that is here, if one can be.
    #[inline]
    pub(super) fn timer(&self, number: u32) -> Option<EventKey> {
        self.places.get(number.wrapping_sub(FIRST) as usize).map(|place| place.key)
    }

    /// Asks for what is here, if anything can be.
    #[inline]
    pub(super) fn fetch(&self, number: u32) {
        self.places.get(number.wrapping_sub(FIRST) as usize).into_iter().for_each(fetch);
    }

    /// When it is due, in ps, and what follows it in its slot.
    #[inline]
    pub(super) fn entry(&self, number: u32) -> (u64, u32) {
        let place = &self.places[(number - FIRST) as usize];
        (place.at, place.next)
    }

    /// Takes it out of its slot, as what is to be sorted, and says what follows it there.
    #[inline]
    pub(super) fn take_in_turn(&mut self, number: u32) -> (Event, u32) {
        let place = &mut self.places[(number - FIRST) as usize];
        let event = Event::new(place.at, place.key.rank(), number);
        (event, std::mem::replace(&mut place.next, NONE))
    }

    /// Key of the timer with this number.
    pub(super) fn key(&self, number: u32) -> EventKey {
        self.places[(number - FIRST) as usize].key
    }

    /// Lets this follow it in its slot.
    pub(super) fn chain(&mut self, number: u32, next: u32) {
        self.places[(number - FIRST) as usize].next = next;
    }

    /// When the first timer is due. Slow: looks at all places.
    pub(super) fn first_timer(&self) -> Option<Time> {
        self.places.iter().map(|place| place.at).min().filter(|&at| at != FREE).map(Time::from_ps)
    }

    /// Bytes of memory that they take.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<TimerEntry>()
    }
}
