//! The far edge: marks that arrived, until they are told to the edge that sent.

use weft_units::{Span, Time};

use super::header::PathId;

/// The marks on the paths of one sending host. Each path's are told at most once an interval: the
/// outer header of packets that go back has room for one path.
#[derive(Debug, Clone)]
pub struct Marks {
    interval: Span,
    slots: Vec<Slot>,
    /// A bit for each slot with a mark that is not told yet.
    waiting: u64,
    /// The slot whose turn is next.
    turn: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    path: PathId,
    /// When its mark was last told.
    told: Option<Time>,
}

impl Marks {
    /// None yet; each path is told at most once an `interval`.
    pub const fn new(interval: Span) -> Self {
        Self { interval, slots: Vec::new(), waiting: 0, turn: 0 }
    }

    /// A packet came by `path`, marked.
    pub fn note(&mut self, path: PathId) {
        let index = path.slot();
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        let slot = &mut self.slots[index];
        if slot.path != path {
            *slot = Slot { path, told: None };
        }
        self.waiting |= 1 << index;
    }

    /// A packet goes back: the path that it tells of, if there is one to tell. Paths take turns.
    #[inline]
    pub fn tell(&mut self, now: Time) -> Option<PathId> {
        if self.waiting == 0 {
            return None;
        }
        let mut rest = self.waiting.rotate_right(self.turn);
        while rest != 0 {
            let index = (self.turn + rest.trailing_zeros()) % u64::BITS;
            let slot = &mut self.slots[index as usize];
            if slot.told.is_none_or(|told| now.since(told) >= self.interval) {
                slot.told = Some(now);
                self.waiting &= !(1 << index);
                self.turn = (index + 1) % u64::BITS;
                return Some(slot.path);
            }
            rest &= rest - 1;
        }
        None
    }

    /// Bytes that a virtual switch would keep for it.
    pub const fn state_bytes(&self) -> u64 {
        16 + self.slots.len() as u64 * 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn path(slot: usize) -> PathId {
        PathId::new(slot, 0)
    }

    #[test]
    fn a_path_is_told_at_once_and_then_once_an_interval() {
        let mut marks = Marks::new(Span::from_us(10));
        assert_eq!(marks.tell(us(0)), None, "nothing is marked");
        // Marks every microsecond from 5 us on, and a packet back after each.
        let told: Vec<u64> = (5..40)
            .filter(|&at| {
                marks.note(path(3));
                marks.tell(us(at)).is_some()
            })
            .collect();
        assert_eq!(told, [5, 15, 25, 35]);
    }

    #[test]
    fn a_mark_within_the_interval_is_told_when_it_is_over_and_once() {
        let mut marks = Marks::new(Span::from_us(10));
        marks.note(path(0));
        assert_eq!(marks.tell(us(0)), Some(path(0)));
        marks.note(path(0));
        assert_eq!([9, 10, 20].map(|at| marks.tell(us(at))), [None, Some(path(0)), None]);
    }

    #[test]
    fn paths_take_turns_and_wait_for_their_own_intervals_only() {
        let mut marks = Marks::new(Span::from_us(10));
        for slot in [2, 63, 7] {
            marks.note(path(slot));
        }
        assert_eq!(
            [0, 1, 2, 3].map(|at| marks.tell(us(at))),
            [Some(path(2)), Some(path(7)), Some(path(63)), None]
        );
        // The turn is slot 0's. Slot 2 is due at 10, slot 7 at 11, slot 63 at 12.
        for slot in [63, 7, 2] {
            marks.note(path(slot));
        }
        let told = [9, 10, 11, 12, 13].map(|at| marks.tell(us(at)));
        assert_eq!(told, [None, Some(path(2)), Some(path(7)), Some(path(63)), None]);
    }

    #[test]
    fn a_new_path_in_a_slot_does_not_wait_for_the_old_ones_interval() {
        let mut marks = Marks::new(Span::from_us(10));
        marks.note(PathId::new(4, 1));
        assert_eq!(marks.tell(us(0)), Some(PathId::new(4, 1)));
        marks.note(PathId::new(4, 2));
        assert_eq!(marks.tell(us(1)), Some(PathId::new(4, 2)));
    }
}
