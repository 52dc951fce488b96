//! Timers in the timing wheel: those that are due before the wheel has gone round once.
//!
//! Such a timer has a place, whose number no link has: slots and the batch hold both. Ports that wait until they may send
//! again wake by it, and the clocks of those who pace packets.

use weft_units::Time;

use super::EventKey;

/// Places have numbers from here on; links have smaller ones.
pub(super) const FIRST: u32 = 1 << 31;

/// The end of the list of free places.
const NONE: u32 = u32::MAX;

/// When a place is not in use.
const FREE: u64 = u64::MAX;

/// A timer in the wheel.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// When it is due, in ps, or [`FREE`].
    at: u64,
    key: EventKey,
    /// The number that follows in the same slot of the wheel; of a free place, the free place behind it.
    next: u32,
}

/// The timers in the wheel. Places that are free are used again, the last one first.
#[derive(Debug)]
pub(super) struct NearTimers {
    places: Vec<Place>,
    free: u32,
}

impl NearTimers {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: NONE }
    }

    /// Takes a timer in, for a slot whose first number is `next`. Returns its own number, which is first there now.
    #[inline]
    pub(super) fn insert(&mut self, at: u64, key: EventKey, next: u32) -> u32 {
        let place = Place { at, key, next };
        let number = self.free;
        if let Some(free) = self.places.get_mut(number.wrapping_sub(FIRST) as usize) {
            self.free = std::mem::replace(free, place).next;
            return number;
        }
        self.places.push(place);
        FIRST + (self.places.len() - 1) as u32
    }

    /// Takes a timer out that is in no slot.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> EventKey {
        let place = &mut self.places[(number - FIRST) as usize];
        let key = place.key;
        (place.at, place.next) = (FREE, self.free);
        self.free = number;
        key
    }

    /// When a timer is due, in ps, and what follows it in its slot.
    #[inline]
    pub(super) fn entry(&self, number: u32) -> (u64, u32) {
        let place = &self.places[(number - FIRST) as usize];
        (place.at, place.next)
    }

    /// The key of a timer.
    pub(super) fn key(&self, number: u32) -> EventKey {
        self.places[(number - FIRST) as usize].key
    }

    /// Lets this follow a timer in its slot.
    pub(super) fn chain(&mut self, number: u32, next: u32) {
        self.places[(number - FIRST) as usize].next = next;
    }

    /// When the first one is due. Slow: looks at all of them.
    pub(super) fn first(&self) -> Option<Time> {
        let first = self.places.iter().map(|place| place.at).min();
        first.filter(|&at| at != FREE).map(Time::from_ps)
    }

    /// Bytes of memory that they take.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }
}
