//! Computations that one processor takes, one after the other.

use std::collections::VecDeque;

/// A processor: it takes what is ready for it in the order in which that became ready, one at a
/// time, each to its end.
///
/// Each computation has two events: when it is ready, and when the processor is through with it.
/// Whoever follows them (a host while a run goes on, and what works out afterwards when everything
/// was there) asks at each of them, so that all have the same order: of those that become ready at
/// one instant, the one with the lowest number comes first.
#[derive(Debug, Clone, Default)]
pub struct ProcessorQueue {
    /// Computation in progress.
    at_work: Option<u32>,
    /// Computations that are ready and wait for their turn.
    ready: VecDeque<u32>,
}

/// Outcome of an event of a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It was ready, and begins at once.
    Begins,
    /// It was ready, and waits until it is called.
    Waits,
    /// The processor is through with it. The next one, if there is one, begins.
    Done(Option<u32>),
}

impl ProcessorQueue {
    /// An event of the computation with this number.
    pub fn take(&mut self, node: u32) -> Turn {
        if self.at_work == Some(node) {
            self.at_work = self.ready.pop_front();
            return Turn::Done(self.at_work);
        }
        if self.at_work.is_some() {
            self.ready.push_back(node);
            return Turn::Waits;
        }
        self.at_work = Some(node);
        Turn::Begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_takes_what_is_ready_in_that_order_and_one_at_a_time() {
        let mut turns = ProcessorQueue::default();
        assert_eq!(turns.take(7), Turn::Begins);
        assert_eq!((turns.take(9), turns.take(3)), (Turn::Waits, Turn::Waits));
        assert_eq!(turns.take(7), Turn::Done(Some(9)));
        assert_eq!(turns.take(4), Turn::Waits);
        assert_eq!(turns.take(9), Turn::Done(Some(3)));
        assert_eq!(turns.take(3), Turn::Done(Some(4)));
        assert_eq!(turns.take(4), Turn::Done(None));
        assert_eq!(turns.take(5), Turn::Begins);
    }
}
