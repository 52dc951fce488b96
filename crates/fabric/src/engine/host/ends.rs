//! One host's ends of flows: those that are open, in places that are used again.

use crate::engine::fetch::{fetch, fetch_all};

/// The end has not been needed yet.
const NOT_YET: u32 = u32::MAX;
/// The end was open, and is no more.
const CLOSED: u32 = u32::MAX - 1;

/// What an end that is opened was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It has not been needed so far.
    NotYet,
    /// It was open, and was closed.
    Closed,
}

/// The ends of one direction at one host, by the host's own numbers for its flows: see [`super::Directory`].
#[derive(Debug)]
pub struct Ends<E> {
    /// The place of each, [`NOT_YET`] or [`CLOSED`].
    places: Vec<u32>,
    open: Vec<Option<E>>,
    free: Vec<u32>,
}

impl<E> Ends<E> {
    /// Room for so many, none of them open.
    pub fn new(count: usize) -> Self {
        Self { places: vec![NOT_YET; count], open: Vec::new(), free: Vec::new() }
    }

    /// The end with this number; if it is not open, it is opened as `make` says.
    #[inline]
    pub fn get_or_open(&mut self, number: u32, make: impl FnOnce(Before) -> E) -> &mut E {
        let known = self.places[number as usize];
        // Neither NOT_YET nor CLOSED is a place: there are fewer flows than that.
        let place = if (known as usize) < self.open.len() { known } else { self.open(number, make) };
        self.open[place as usize].as_mut().expect("a place that is known holds an open end")
    }

    /// Opens the end with this number, which is not open. Returns its place.
    #[cold]
    #[inline(never)]
    fn open(&mut self, number: u32, make: impl FnOnce(Before) -> E) -> u32 {
        let before = if self.places[number as usize] == CLOSED { Before::Closed } else { Before::NotYet };
        let end = Some(make(before));
        let place = if let Some(place) = self.free.pop() {
            self.open[place as usize] = end;
            place
        } else {
            self.open.push(end);
            (self.open.len() - 1) as u32
        };
        self.places[number as usize] = place;
        place
    }

    /// Closes the end with this number, if it is open.
    pub fn close(&mut self, number: u32) -> Option<E> {
        let place = self.places[number as usize];
        let end = self.open.get_mut(place as usize)?.take();
        self.places[number as usize] = CLOSED;
        self.free.push(place);
        end
    }

    /// The end with this number, if it is open.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut E> {
        // Neither NOT_YET nor CLOSED is a place: there are fewer flows than that.
        self.open.get_mut(self.places[number as usize] as usize)?.as_mut()
    }

    /// Asks for what says where the end with this number is.
    #[inline]
    pub fn fetch_place(&self, number: u32) {
        if let Some(place) = self.places.get(number as usize) {
            fetch(place);
        }
    }

    /// Asks for the end with this number, if it is open.
    #[inline]
    pub fn fetch_end(&self, number: u32) {
        let place = self.places.get(number as usize);
        if let Some(end) = place.and_then(|&place| self.open.get(place as usize)) {
            fetch_all(end);
        }
    }

    /// The ends that are open, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.open.iter().flatten()
    }

    /// Most ends that were open at one time.
    pub const fn peak(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_there_from_its_opening_to_its_close_and_its_place_is_used_again() {
        let mut ends = Ends::new(3);
        assert_eq!(ends.get(1), None);
        assert_eq!(*ends.get_or_open(1, |before| (before, 'a')), (Before::NotYet, 'a'));
        ends.get_or_open(2, |before| (before, 'c'));
        assert_eq!(*ends.get_or_open(1, |before| (before, 'z')), (Before::NotYet, 'a'), "it is open");
        assert_eq!(ends.close(1), Some((Before::NotYet, 'a')));
        assert_eq!(ends.get(1), None);
        assert_eq!(ends.close(1), None);
        ends.get_or_open(0, |before| (before, 'd'));
        assert_eq!((ends.open.len(), ends.iter().count()), (2, 2), "one place serves two");
        assert_eq!(*ends.get_or_open(1, |before| (before, 'e')), (Before::Closed, 'e'));
    }
}
