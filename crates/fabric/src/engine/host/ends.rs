//! One host's ends of flows: those that are open, in places that are used again.

use crate::engine::fetch::{fetch, fetch_first};

/// The end has not been needed yet.
const NOT_YET: u32 = u32::MAX;
/// The end was open, and is no more.
const CLOSED: u32 = u32::MAX - 1;

/// State of an end before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It has not been needed so far.
    NotYet,
    /// It was open, and was closed.
    Closed,
}

/// The ends of one direction at one host, by the host's own numbers for its flows: see
/// [`super::Directory`]. What every packet needs comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Ends<E> {
    /// The place of each, [`NOT_YET`] or [`CLOSED`].
    places: Box<[u32]>,
    /// Those that are open, without gaps.
    open: Vec<E>,
    /// Their numbers.
    numbers: Vec<u32>,
    peak: usize,
}

impl<E> Ends<E> {
    /// Room for so many, none of them open.
    pub fn new(count: usize) -> Self {
        Self { places: vec![NOT_YET; count].into(), open: Vec::new(), numbers: Vec::new(), peak: 0 }
    }

    /// The place of the end with this number, if it is open: it holds until one is closed.
    #[inline]
    pub fn place(&self, number: u32) -> Option<usize> {
        // Neither NOT_YET nor CLOSED is a place: there are fewer flows than that.
        let place = self.places[number as usize] as usize;
        (place < self.open.len()).then_some(place)
    }

    /// The end at this place, which was told.
    #[inline]
    pub fn at(&mut self, place: usize) -> &mut E {
        &mut self.open[place]
    }

    /// Opens the end with this number, which is not open, as `make` says. Returns its place.
    pub fn open(&mut self, number: u32, make: impl FnOnce(Before) -> E) -> usize {
        let before = if self.places[number as usize] == CLOSED { Before::Closed } else { Before::NotYet };
        let place = self.open.len();
        self.open.push(make(before));
        self.numbers.push(number);
        self.places[number as usize] = place as u32;
        self.peak = self.peak.max(self.open.len());
        place
    }

    /// Closes the end with this number, if it is open. The last one takes its place.
    pub fn close(&mut self, number: u32) -> Option<E> {
        let place = self.place(number)?;
        let end = self.open.swap_remove(place);
        self.numbers.swap_remove(place);
        if let Some(&moved) = self.numbers.get(place) {
            self.places[moved as usize] = place as u32;
        }
        self.places[number as usize] = CLOSED;
        Some(end)
    }

    /// The end with this number, if it is open.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut E> {
        // Neither NOT_YET nor CLOSED is a place: there are fewer flows than that.
        self.open.get_mut(self.places[number as usize] as usize)
    }

    /// The end with this number, if it is open.
    #[inline]
    pub fn look(&self, number: u32) -> Option<&E> {
        self.open.get(*self.places.get(number as usize)? as usize)
    }

    /// Asks for what says where the end with this number is.
    #[inline]
    pub fn fetch_place(&self, number: u32) {
        if let Some(place) = self.places.get(number as usize) {
            fetch(place);
        }
    }

    /// Asks for the first bytes of the end with this number, if it is open.
    #[inline]
    pub fn fetch_end(&self, number: u32, bytes: usize) {
        let place = self.places.get(number as usize);
        if let Some(end) = place.and_then(|&place| self.open.get(place as usize)) {
            fetch_first(end, bytes);
        }
    }

    /// The ends that are open, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.open.iter()
    }

    /// Most ends that were open at one time.
    pub const fn peak(&self) -> usize {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_there_from_its_opening_to_its_close_and_closing_leaves_no_gap() {
        let mut ends = Ends::new(4);
        let name = |ends: &mut Ends<(Before, char)>, number| ends.get(number).map(|end| end.1);
        assert_eq!((name(&mut ends, 1), ends.place(1)), (None, None));
        for (number, name) in [(1, 'a'), (2, 'c'), (3, 'd')] {
            ends.open(number, |before| (before, name));
        }
        assert_eq!(name(&mut ends, 1), Some('a'));
        assert_eq!(ends.close(1), Some((Before::NotYet, 'a')));
        assert_eq!((ends.place(1), ends.close(1)), (None, None));
        assert_eq!([1, 2, 3].map(|number| name(&mut ends, number)), [None, Some('c'), Some('d')]);
        assert_eq!((ends.open.len(), ends.iter().count(), ends.peak()), (2, 2, 3));
        let place = ends.open(1, |before| (before, 'e'));
        assert_eq!(*ends.at(place), (Before::Closed, 'e'));
        assert_eq!(ends.close(3), Some((Before::NotYet, 'd')));
        assert_eq!([1, 2, 3].map(|number| name(&mut ends, number)), [Some('e'), Some('c'), None]);
        assert_eq!(ends.peak(), 3);
    }
}
