//! The worker pool: threads that work on the same partitions, window by window.
//!
//! One thread leads: it says how far to work, works itself, and waits until all partitions are
//! done. Each thread takes the partitions of its own share first, which stay in its cache, and then
//! those that are left of the others': so a thread whose core is taken away holds up the partition
//! that it works on, and no other. What is sent goes into the inbox of the partition that it is
//! for, and is found there when the next window begins. Who worked on what leaves no trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use weft_transport::Transports;
use weft_units::{Span, Time};

use super::balance::Balance;
use super::work_queue::{Apart, WindowSignal, WorkQueue};
use crate::engine::event_set::EventKey;
use crate::engine::host::RunPlan;
use crate::engine::partition::Partition;
use crate::engine::partition::{Batch, OutgoingBatches};

/// How often a thread looks before it lets others have its core, where each has one.
const SPINS: u32 = 2_000;

/// Batches for one partition: by sending thread, one for windows with even numbers and one for the
/// others. So what was sent in the window before is not mixed with what is sent in this one
/// already: of one link the second may come from another thread, and is behind the first.
#[derive(Debug, Default)]
pub struct Inbox(Vec<Apart<[Sent; 2]>>);

/// A batch, and whether it holds packets.
#[derive(Debug, Default)]
struct Sent {
    used: AtomicBool,
    batch: Mutex<Batch>,
}

impl Inbox {
    /// Empty, for so many threads.
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Apart::default()).collect())
    }

    /// Takes in what a thread sent in the window with this number.
    fn put(&self, thread: usize, window: u64, batch: &mut Batch) {
        let sent = &self.0[thread].0[(window % 2) as usize];
        locked(&sent.batch).append(batch);
        sent.used.store(true, Ordering::Release);
    }

    /// Hands out what was sent in the window before the one with this number.
    fn empty_for(&self, window: u64, mut take: impl FnMut(&mut Batch)) {
        let before = ((window + 1) % 2) as usize;
        self.0.iter().for_each(|Apart(sent)| sent[before].empty(&mut take));
    }

    /// Hands out what is there, when no window goes on: then it was sent in one window.
    pub fn empty(&self, mut take: impl FnMut(&mut Batch)) {
        self.0.iter().flat_map(|Apart(sent)| sent).for_each(|sent| sent.empty(&mut take));
    }
}

impl Sent {
    fn empty(&self, take: &mut impl FnMut(&mut Batch)) {
        if self.used.load(Ordering::Acquire) {
            let mut batch = locked(&self.batch);
            self.used.store(false, Ordering::Relaxed);
            take(&mut batch);
        }
    }
}

/// A lock, whoever panicked while he held it: that panic ends the run anyway.
pub fn locked<V>(lock: &Mutex<V>) -> MutexGuard<'_, V> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A synchronization window: the events from `begin` to `limit`, which lies in this window or at
/// its end.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The windows of a run are numbered.
    pub number: u64,
    pub begin: Time,
    pub limit: (Time, EventKey),
}

impl Window {
    /// The window that contains `time`, cut off at `limit`.
    pub fn at(number: u64, time: Time, length: Span, limit: (Time, EventKey)) -> Self {
        let window = time.as_ps() / length.as_ps();
        let begin = Time::from_ps(window * length.as_ps());
        Self { number, begin, limit: limit.min((begin.saturating_add(length), EventKey::FIRST)) }
    }
}

/// The outcome of a window, or of one thread's share of it.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// Events that were done.
    pub done: u64,
    /// Flows of which receivers have everything.
    pub delivered: usize,
    /// When the next event is due, or a time before that; none if nothing will ever happen.
    pub next: Option<Time>,
}

impl Report {
    /// The report of a share without partitions.
    const NONE: Self = Self { done: 0, delivered: 0, next: None };

    /// Adds another one.
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.delivered += other.delivered;
        self.next = [self.next, other.next].into_iter().flatten().min();
    }
}

/// State that the threads of a run share while they work.
pub struct WorkerPool<'r, 'a, T: Transports> {
    partitions: &'r [Mutex<Partition<'a, T>>],
    inboxes: &'r [Inbox],
    plan: &'r RunPlan<'a, T>,
    queue: WorkQueue<Window, Report>,
    /// How often a thread looks before it lets others have its core.
    spins: u32,
    /// Somebody panicked.
    failed: AtomicBool,
}

/// Says that a thread is gone, when it goes by a panic.
struct Alarm<'b>(&'b AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

impl<'r, 'a, T: Transports> WorkerPool<'r, 'a, T> {
    /// For so many threads.
    pub fn new(
        partitions: &'r [Mutex<Partition<'a, T>>],
        inboxes: &'r [Inbox],
        plan: &'r RunPlan<'a, T>,
        threads: usize,
    ) -> Self {
        let none = Window { number: 0, begin: Time::ZERO, limit: (Time::ZERO, EventKey::FIRST) };
        Self {
            partitions,
            inboxes,
            plan,
            queue: WorkQueue::new(partitions.len(), threads, none, Report::NONE),
            // Where there are fewer cores than threads, whoever looks holds up whom it waits for.
            spins: if available_parallelism().is_ok_and(|cores| cores.get() >= threads) { SPINS } else { 0 },
            failed: AtomicBool::new(false),
        }
    }

    /// The leader does all of a window himself: there is too little to do.
    pub fn lead_alone(
        &self,
        window: Window,
        outgoing: &mut OutgoingBatches,
        mut balance: Option<&mut Balance>,
    ) -> Report {
        let _alarm = Alarm(&self.failed);
        let mut sum = Report::NONE;
        for partition in 0..self.partitions.len() {
            let report = self.work_on(partition, window, outgoing);
            if let Some(balance) = &mut balance {
                balance.note(report.done);
            }
            sum.add(report);
        }
        if let Some(balance) = balance {
            balance.end_window();
        }
        sum.add(self.send(0, window.number, outgoing));
        sum
    }

    /// The leader's turn: all partitions work up to the end of a window. Others who sleep are not
    /// waited for.
    ///
    /// # Panics
    /// If another thread did.
    pub fn lead(&self, window: Window, outgoing: &mut OutgoingBatches) -> Report {
        let _alarm = Alarm(&self.failed);
        self.queue.begin(window);
        self.work(0, outgoing);
        self.wait(|| self.queue.are_done());
        let mut sum = Report::NONE;
        self.queue.take_reports(Report::NONE, |report| sum.add(report));
        sum
    }

    /// Lets the others go.
    pub fn dismiss(&self) {
        self.queue.end();
    }

    /// Follows the leader until he lets go.
    pub fn follow(&self, thread: usize, outgoing: &mut OutgoingBatches) {
        let _alarm = Alarm(&self.failed);
        let mut seen = WindowSignal::NONE;
        loop {
            self.wait(|| self.queue.call(thread) != seen);
            seen = self.queue.call(thread);
            if seen.is_over() {
                return;
            }
            self.work(thread, outgoing);
        }
    }

    fn wait(&self, is_over: impl Fn() -> bool) {
        let mut spins = 0;
        while !is_over() {
            assert!(!self.failed.load(Ordering::Acquire), "a thread of the run panicked");
            spins += 1;
            if spins < self.spins { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Works on partitions until none is left: first on those of this thread's share, then on those
    /// of others.
    fn work(&self, thread: usize, outgoing: &mut OutgoingBatches) {
        let (mut sum, mut partitions) = (Report::NONE, 0);
        let (mut window, mut from) = (None, thread);
        while let Some(partition) = self.queue.take(thread, &mut from) {
            let window = *window.get_or_insert_with(|| self.queue.window(from));
            sum.add(self.work_on(partition, window, outgoing));
            partitions += 1;
        }
        let Some(window) = window else { return };
        sum.add(self.send(thread, window.number, outgoing));
        self.queue.finish(thread, partitions, |report| report.add(sum));
    }

    /// Puts what a thread sent in a window into the inboxes of its partitions. Reports when the
    /// first packet arrives.
    fn send(&self, thread: usize, window: u64, outgoing: &mut OutgoingBatches) -> Report {
        let earliest = outgoing.take_earliest_ps();
        outgoing.send(|part, batch| self.inboxes[part as usize].put(thread, window, batch));
        Report { next: (earliest < u64::MAX).then(|| Time::from_ps(earliest)), ..Report::NONE }
    }

    fn work_on(&self, number: usize, window: Window, outgoing: &mut OutgoingBatches) -> Report {
        let mut partition = locked(&self.partitions[number]);
        partition.network.events.turn_to(window.begin);
        self.inboxes[number].empty_for(window.number, |batch| partition.put(batch));
        let done = partition.work(self.plan, window.limit, u64::MAX, outgoing);
        Report { done, delivered: partition.common.delivered, next: partition.next_time() }
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::Packet;

    use super::*;

    fn arrivals(window: impl Fn(&mut dyn FnMut(&mut Batch))) -> Vec<u64> {
        let mut found = Vec::new();
        window(&mut |batch| batch.empty(|packet, _, _| found.push(packet.arrive.as_ps())));
        found
    }

    /// The partition that sent it was another thread's in the window before, and that thread was
    /// faster now.
    #[test]
    fn what_was_sent_in_this_window_already_waits_for_the_next() {
        let inbox = Inbox::new(2);
        let send = |thread, window, at| {
            let mut batch = Batch::default();
            let mut packet = Packet::default();
            packet.arrive = Time::from_ps(at);
            batch.push(&packet);
            inbox.put(thread, window, &mut batch);
        };
        send(1, 4, 10);
        send(0, 5, 20);
        assert_eq!(arrivals(|take| inbox.empty_for(5, take)), [10]);
        send(1, 6, 30);
        assert_eq!(arrivals(|take| inbox.empty_for(6, take)), [20]);
        assert_eq!(arrivals(|take| inbox.empty(take)), [30]);
        assert!(arrivals(|take| inbox.empty(take)).is_empty());
    }
}
