//! Who works on which group in a window.
//!
//! A window is over when all of its groups are done, whoever did them: a thread that sleeps is not waited for, unless it has taken
//! a group. Each thread takes the groups of its own share first, and then those that are left of the others'.

#[cfg(test)]
use loom::sync::Mutex;
#[cfg(test)]
use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::ops::Range;
#[cfg(not(test))]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
#[cfg(not(test))]
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// The groups of one thread's share that nobody has taken yet: the number of the window above, of the next group below. In cache
/// lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Share {
    next: AtomicU64,
    groups: Range<usize>,
}

impl Share {
    const WINDOW_SHIFT: u32 = 32;
    /// Beyond the last group of any share.
    const NOTHING: u64 = 1 << 31;

    fn take(&self) -> Option<usize> {
        let place = self.next.fetch_add(1, Ordering::AcqRel) as u32 as usize;
        (place < self.groups.len()).then(|| self.groups.start + place)
    }
}

/// The turns of the threads of a run. `W` says what to do in a window.
#[derive(Debug)]
pub struct Turns<W> {
    shares: Vec<Share>,
    groups: usize,
    window: Mutex<W>,
    /// How many windows have begun.
    begun: AtomicU64,
    /// How many groups are done in this window.
    done: AtomicUsize,
    is_over: AtomicBool,
}

impl<W: Copy> Turns<W> {
    /// Before the first window; `window` is of no meaning.
    pub fn new(groups: usize, threads: usize, window: W) -> Self {
        let first = |thread: usize| thread * groups / threads;
        let share =
            |thread| Share { next: AtomicU64::new(Share::NOTHING), groups: first(thread)..first(thread + 1) };
        Self {
            shares: (0..threads).map(share).collect(),
            groups,
            window: Mutex::new(window),
            begun: AtomicU64::new(0),
            done: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Begins a window: the one before is over.
    pub fn begin(&self, window: W) {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) = window;
        self.done.store(0, Ordering::Relaxed);
        let number = self.begun.load(Ordering::Relaxed) + 1;
        for share in &self.shares {
            // Who takes one of these sees the window and that nothing is done.
            share.next.swap(number << Share::WINDOW_SHIFT, Ordering::AcqRel);
        }
        self.begun.store(number, Ordering::Release);
    }

    /// Takes a group that nobody has, if there is one: it is of the window that goes on, which cannot end before the group is
    /// done. `from` is where to look first, and then where to look again: at the beginning the thread's own number.
    pub fn take(&self, thread: usize, from: &mut usize) -> Option<usize> {
        while *from < thread + self.shares.len() {
            if let Some(group) = self.shares[*from % self.shares.len()].take() {
                return Some(group);
            }
            *from += 1;
        }
        None
    }

    /// What to do in the window that goes on. Only for who has taken a group.
    pub fn window(&self) -> W {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many groups are done, of those that a thread took.
    pub fn finish(&self, groups: usize) {
        self.done.fetch_add(groups, Ordering::Release);
    }

    /// Whether all groups are done in this window. What was done to them is seen by who asks.
    pub fn are_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.groups
    }

    /// How many windows have begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// There will be no more windows.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether there will be no more windows.
    pub fn are_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Seen;
    use loom::thread;

    use super::*;

    const GROUPS: usize = 2;

    /// The turns of two threads, and for each group the windows in which it was worked on, as digits.
    struct World {
        turns: Turns<u64>,
        worked: [Seen; GROUPS],
    }

    impl World {
        fn work(&self, thread: usize) {
            let (mut from, mut taken, mut window) = (thread, 0, None);
            while let Some(group) = self.turns.take(thread, &mut from) {
                let window = *window.get_or_insert_with(|| self.turns.window());
                // Not ordered by itself: what the next one sees of it is the work of the turns.
                let before = self.worked[group].load(Ordering::Relaxed);
                self.worked[group].store(before * 10 + window, Ordering::Relaxed);
                taken += 1;
            }
            if taken > 0 {
                self.turns.finish(taken);
            }
        }
    }

    /// In every order in which two threads can come to their turns, with at most three interruptions: each group is worked on once in each window, after it was
    /// worked on in the window before, and the window does not end earlier.
    #[test]
    fn each_group_has_one_turn_in_each_window() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let turns = Turns::new(GROUPS, 2, 0);
            let world = Arc::new(World { turns, worked: [Seen::new(0), Seen::new(0)] });
            let other = Arc::clone(&world);
            // It comes when it likes, even before a window begins, or as one ends.
            let follower = thread::spawn(move || (0..2).for_each(|_| other.work(1)));
            for (window, expected) in [(1, 1), (2, 12)] {
                world.turns.begin(window);
                world.work(0);
                while !world.turns.are_done() {
                    // The model may show an old count for ever, but not to who adds to it.
                    world.turns.finish(0);
                    thread::yield_now();
                }
                for group in &world.worked {
                    assert_eq!(group.load(Ordering::Relaxed), expected, "after window {window}");
                }
            }
            follower.join().expect("the other thread");
        });
    }
}
