//! The work queue: which thread works on which partition in a window.
//!
//! A window is over when all of its partitions are done, whoever did them: a thread that sleeps is
//! not waited for, unless it has taken a partition. Each thread takes the partitions of its own
//! share first, and then those that are left of the others'.
//!
//! A window takes some microseconds, and what one core wrote another sees after a tenth of one. So
//! all that a thread is told stands in one place of its own, where what it says stands, too.

#[cfg(test)]
use loom::sync::Mutex;
#[cfg(test)]
use loom::sync::atomic::{AtomicU64, AtomicUsize};
use std::ops::Range;
#[cfg(not(test))]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
#[cfg(not(test))]
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// In cache lines of its own: what one thread writes does not take from another what it looks at.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<V>(pub V);

/// The share of one thread, and what it and the leading thread tell each other.
#[derive(Debug)]
struct Share<W, R> {
    /// The window's number in the upper half; in the lower half the next partition that no thread
    /// has taken.
    next: AtomicU64,
    partitions: Range<usize>,
    window: Mutex<W>,
    report: Mutex<R>,
}

/// Says which window goes on, or that the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSignal(u32);

impl WindowSignal {
    /// Before the first window.
    pub const NONE: Self = Self(0);
    const OVER: u32 = 1 << 31;

    /// There will be no more windows.
    pub const fn is_over(self) -> bool {
        self.0 == Self::OVER
    }
}

impl<W: Copy, R: Copy> Share<W, R> {
    const WINDOW_SHIFT: u32 = 32;
    /// Beyond the last partition of any share.
    const NOTHING: u64 = 1 << 31;

    fn call(&self) -> WindowSignal {
        WindowSignal((self.next.load(Ordering::Acquire) >> Self::WINDOW_SHIFT) as u32)
    }

    fn take(&self) -> Option<usize> {
        // Most looks find that nothing is left: then the line stays where it is. Who is late to see
        // that a window has begun leaves its partitions to those who are not.
        if self.next.load(Ordering::Relaxed) as u32 as usize >= self.partitions.len() {
            return None;
        }
        let place = self.next.fetch_add(1, Ordering::AcqRel) as u32 as usize;
        (place < self.partitions.len()).then(|| self.partitions.start + place)
    }
}

/// Partitions to work on, by thread. `W` describes a window, `R` reports on it.
#[derive(Debug)]
pub struct WorkQueue<W, R> {
    shares: Vec<Apart<Share<W, R>>>,
    partitions: usize,
    /// Windows that have begun. Only the leading thread reads it.
    begun: Apart<AtomicU64>,
    /// Partitions done, over all windows.
    done: Apart<AtomicUsize>,
}

impl<W: Copy, R: Copy> WorkQueue<W, R> {
    /// Before the first window; `window` is of no meaning. `nothing` is what came of nothing.
    pub fn new(partitions: usize, threads: usize, window: W, nothing: R) -> Self {
        let first = |thread: usize| thread * partitions / threads;
        let share = |thread| {
            Apart(Share {
                next: AtomicU64::new(Share::<W, R>::NOTHING),
                partitions: first(thread)..first(thread + 1),
                window: Mutex::new(window),
                report: Mutex::new(nothing),
            })
        };
        Self {
            shares: (0..threads).map(share).collect(),
            partitions,
            begun: Apart(AtomicU64::new(0)),
            done: Apart(AtomicUsize::new(0)),
        }
    }

    /// Begins a window: the one before is over.
    pub fn begin(&self, window: W) {
        let number = self.begun.0.load(Ordering::Relaxed) + 1;
        self.begun.0.store(number, Ordering::Relaxed);
        // Signals repeat only after 2^31 windows, for which no thread sleeps; `NONE` never comes
        // again.
        let call = number % u64::from(WindowSignal::OVER - 1) + 1;
        // The others first: the first share is that of the one who leads.
        for Apart(share) in self.shares.iter().rev() {
            *share.window.lock().unwrap_or_else(PoisonError::into_inner) = window;
            // Who takes one of these sees the window.
            share.next.swap(call << Share::<W, R>::WINDOW_SHIFT, Ordering::AcqRel);
        }
    }

    /// Takes a partition that nobody has, if there is one: it is of the window that goes on, which
    /// cannot end before the partition is done. `from` is where to look first, and then where to
    /// look again: at the beginning the thread's own number.
    pub fn take(&self, thread: usize, from: &mut usize) -> Option<usize> {
        while *from < thread + self.shares.len() {
            if let Some(partition) = self.shares[*from % self.shares.len()].0.take() {
                return Some(partition);
            }
            *from += 1;
        }
        None
    }

    /// Work of the window that goes on. Only for who has just taken a partition, with this place to
    /// look.
    pub fn window(&self, from: usize) -> W {
        *self.shares[from % self.shares.len()].0.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many partitions are done, of those that a thread took, and `add` says what came of them.
    pub fn finish(&self, thread: usize, partitions: usize, add: impl FnOnce(&mut R)) {
        add(&mut self.shares[thread].0.report.lock().unwrap_or_else(PoisonError::into_inner));
        self.done.0.fetch_add(partitions, Ordering::Release);
    }

    /// Whether all partitions are done in this window. What was done to them is seen by who asks:
    /// the one who leads.
    pub fn are_done(&self) -> bool {
        let due = self.begun.0.load(Ordering::Relaxed) as usize * self.partitions;
        self.done.0.load(Ordering::Acquire) == due
    }

    /// Hands out what came of the window that is over, thread by thread, and leaves `nothing` in
    /// place of it.
    pub fn take_reports(&self, nothing: R, mut take: impl FnMut(R)) {
        for Apart(share) in &self.shares {
            take(std::mem::replace(
                &mut *share.report.lock().unwrap_or_else(PoisonError::into_inner),
                nothing,
            ));
        }
    }

    /// Which window this thread has been told of.
    pub fn call(&self, thread: usize) -> WindowSignal {
        self.shares[thread].0.call()
    }

    /// There will be no more windows.
    pub fn end(&self) {
        for Apart(share) in &self.shares {
            let over = u64::from(WindowSignal::OVER) << Share::<W, R>::WINDOW_SHIFT;
            share.next.store(over | Share::<W, R>::NOTHING, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Seen;
    use loom::thread;

    use super::*;

    const PARTITIONS: usize = 2;

    /// The queue of two threads; by partition, the windows in which it was worked on, as digits.
    struct World {
        queue: WorkQueue<u64, usize>,
        worked: [Seen; PARTITIONS],
    }

    impl World {
        fn work(&self, thread: usize) {
            let (mut from, mut taken, mut window) = (thread, 0, None);
            while let Some(partition) = self.queue.take(thread, &mut from) {
                let window = *window.get_or_insert_with(|| self.queue.window(from));
                // Not ordered by itself: what the next one sees of it is the work of the queue.
                let before = self.worked[partition].load(Ordering::Relaxed);
                self.worked[partition].store(before * 10 + window, Ordering::Relaxed);
                taken += 1;
            }
            if taken > 0 {
                self.queue.finish(thread, taken, |report| *report += taken);
            }
        }
    }

    /// In every interleaving of two threads, with at most three interruptions: each partition is
    /// worked on once in each window, after it was worked on in the window before, and the window
    /// does not end earlier; and what came of it is told once.
    #[test]
    fn each_group_has_one_turn_in_each_window() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let queue = WorkQueue::new(PARTITIONS, 2, 0, 0);
            let world = Arc::new(World { queue, worked: [Seen::new(0), Seen::new(0)] });
            let other = Arc::clone(&world);
            // It comes when it likes, even before a window begins, or as one ends.
            let follower = thread::spawn(move || (0..2).for_each(|_| other.work(1)));
            for (window, expected) in [(1, 1), (2, 12)] {
                world.queue.begin(window);
                world.work(0);
                while !world.queue.are_done() {
                    // The model may show an old count for ever, but not to who adds to it.
                    world.queue.finish(0, 0, |_| ());
                    thread::yield_now();
                }
                for partition in &world.worked {
                    assert_eq!(partition.load(Ordering::Relaxed), expected, "after window {window}");
                }
                let mut told = 0;
                world.queue.take_reports(0, |report| told += report);
                assert_eq!(told, PARTITIONS, "after window {window}");
            }
            follower.join().expect("the other thread");
        });
    }

    /// Whoever is told of a window sees another one than before, and sees the end.
    #[test]
    fn a_call_is_another_in_each_window_and_the_last_is_over() {
        loom::model(|| {
            let queue: WorkQueue<u64, usize> = WorkQueue::new(2, 2, 0, 0);
            let mut calls = vec![queue.call(1)];
            assert_eq!(calls[0], WindowSignal::NONE);
            for window in 1..4 {
                queue.begin(window);
                calls.push(queue.call(1));
            }
            queue.begun.0.store(u64::from(WindowSignal::OVER) - 3, Ordering::Relaxed);
            for window in 4..8 {
                queue.begin(window);
                calls.push(queue.call(1));
            }
            assert!(calls.windows(2).all(|pair| pair[0] != pair[1]));
            assert!(calls[1..].iter().all(|&call| call != WindowSignal::NONE && !call.is_over()));
            queue.end();
            assert!(queue.call(1).is_over());
        });
    }
}
