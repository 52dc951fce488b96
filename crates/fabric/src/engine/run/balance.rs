//! How well several threads would share the windows of a run that one thread works on.

use std::time::{Duration, Instant};

use super::work_queue::{WindowSignal, WorkQueue};
use crate::engine::results::Sharing;

/// Work of the busiest of several threads, window by window, if all events took the same time.
#[derive(Debug)]
pub struct Balance {
    threads: usize,
    share_from: u64,
    /// Events of each partition in the window that goes on.
    partitions: Vec<u64>,
    /// Outcome of the windows before.
    sharing: Sharing,
    /// Events of the window before.
    before: u64,
}

impl Balance {
    /// Balance of so many threads, at least one, that share a window if there were at least
    /// `share_from` events in the one before.
    pub const fn new(threads: usize, share_from: u64) -> Self {
        let sharing = Sharing { busiest_events: 0, windows: 0 };
        Self { threads, share_from, partitions: Vec::new(), sharing, before: share_from }
    }

    /// The next partition did so many events in this window.
    pub fn note(&mut self, events: u64) {
        self.partitions.push(events);
    }

    /// The window is over.
    pub fn end_window(&mut self) {
        let all: u64 = self.partitions.iter().sum();
        if self.before >= self.share_from {
            self.sharing.windows += 1;
            self.sharing.busiest_events += busiest(&self.partitions, self.threads);
        } else {
            self.sharing.busiest_events += all;
        }
        self.before = all;
        self.partitions.clear();
    }

    /// How the threads would have shared all windows until now.
    pub const fn sharing(&self) -> Sharing {
        self.sharing
    }
}

/// How much the busiest thread does, if each takes the partitions of its own share first and then
/// those that are left of the others': see [`WorkQueue`].
fn busiest(partitions: &[u64], threads: usize) -> u64 {
    let first = |thread: usize| thread * partitions.len() / threads;
    let mut left: Vec<_> = (0..threads).map(|thread| first(thread)..first(thread + 1)).collect();
    let mut done = vec![0; threads];
    for _ in partitions {
        let thread = (0..threads).min_by_key(|&thread| done[thread]).unwrap_or(0);
        let next = (thread..thread + threads).find_map(|share| left[share % threads].next());
        done[thread] += next.map_or(0, |partition| partitions[partition]);
    }
    done.into_iter().max().unwrap_or(0)
}

/// Time that so many threads, at least one, take to begin a window together and to end it when
/// there is nothing to do: until the last one has come. Measured now, and right on cores that
/// nobody else uses.
pub fn cost_of_a_window(threads: usize) -> Duration {
    const WINDOWS: u32 = 100_000;
    let queue = WorkQueue::new(threads, threads, (), ());
    // Each takes the one partition of its own share: who took those of others would not wait for
    // anybody.
    let work = |thread: usize| {
        let taken = queue.take(thread, &mut { thread }).into_iter().count();
        queue.finish(thread, taken, |()| ());
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let (queue, work) = (&queue, &work);
            scope.spawn(move || {
                let mut seen = WindowSignal::NONE;
                while !seen.is_over() {
                    let call = queue.call(thread);
                    if call == seen {
                        std::hint::spin_loop();
                    } else if !call.is_over() {
                        work(thread);
                    }
                    seen = call;
                }
            });
        }
        let begin = Instant::now();
        for _ in 0..WINDOWS {
            queue.begin(());
            work(0);
            while !queue.are_done() {
                std::hint::spin_loop();
            }
            queue.take_reports((), |()| ());
        }
        let elapsed = begin.elapsed() / WINDOWS;
        queue.end();
        elapsed
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_groups_are_shared_evenly_and_one_large_group_is_not_shared() {
        assert_eq!(busiest(&[10; 8], 4), 20);
        assert_eq!(busiest(&[10; 8], 1), 80);
        assert_eq!(
            busiest(&[70, 1, 1, 1], 2),
            70,
            "who has done his own share takes what is left of the other's"
        );
        assert_eq!(busiest(&[5, 5], 4), 5, "two partitions are no work for four");
    }

    #[test]
    fn a_window_after_one_with_little_to_do_is_not_shared() {
        let mut balance = Balance::new(2, 10);
        for window in [[5, 4], [6, 6], [6, 6]] {
            for events in window {
                balance.note(events);
            }
            balance.end_window();
        }
        // The first is shared, the second follows on nine events, the third on twelve.
        assert_eq!(balance.sharing(), Sharing { busiest_events: 5 + 12 + 6, windows: 2 });
    }

    proptest! {
        #[test]
        fn the_busiest_does_at_least_its_part_and_at_most_one_group_more(
            partitions in prop::collection::vec(0u64..100, 1..40),
            threads in 1usize..10,
        ) {
            let found = busiest(&partitions, threads);
            let (all, most): (u64, u64) = (partitions.iter().sum(), partitions.iter().copied().max().unwrap_or(0));
            let part = all.div_ceil(threads as u64);
            prop_assert!(found >= part.max(most) && found <= part + most, "{found}");
        }
    }
}
