//! Several threads that work day by day on the same groups.
//!
//! One thread leads: it says how far to work, works itself, and waits until all groups are done. Each thread takes the groups of its
//! own share first, which stay in its cache, and then those that are left of the others': so a thread whose core is
//! taken away holds up the group that it works on, and no other. What is sent goes into the slot of the group that it is
//! for, and is found there when the next day begins. Who worked on what leaves no trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use weft_transport::Transports;
use weft_units::{Span, Time};

use super::balance::Balance;
use super::turns::{Apart, Call, Turns};
use crate::engine::event_set::EventKey;
use crate::engine::group::Group;
use crate::engine::host::Plan;
use crate::engine::mail::{Bag, Outbox};

/// How often a thread looks before it lets others have its core, where each has one.
const SPINS: u32 = 2_000;

/// What others sent to a group: by thread, a bag for windows with even numbers and one for the others. So what was sent in the window
/// before is not mixed with what is sent in this one already: of one link the second may come from another thread, and is behind
/// the first.
#[derive(Debug, Default)]
pub struct Slot(Vec<Apart<[Sent; 2]>>);

/// A bag, and whether anything is in it.
#[derive(Debug, Default)]
struct Sent {
    used: AtomicBool,
    bag: Mutex<Bag>,
}

impl Slot {
    /// Empty, for so many threads.
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Apart::default()).collect())
    }

    /// Takes in what a thread sent in the window with this number.
    fn put(&self, thread: usize, window: u64, bag: &mut Bag) {
        let sent = &self.0[thread].0[(window % 2) as usize];
        locked(&sent.bag).append(bag);
        sent.used.store(true, Ordering::Release);
    }

    /// Hands out what was sent in the window before the one with this number.
    fn empty_for(&self, window: u64, mut take: impl FnMut(&mut Bag)) {
        let before = ((window + 1) % 2) as usize;
        self.0.iter().for_each(|Apart(sent)| sent[before].empty(&mut take));
    }

    /// Hands out what is there, when no window goes on: then it was sent in one window.
    pub fn empty(&self, mut take: impl FnMut(&mut Bag)) {
        self.0.iter().flat_map(|Apart(sent)| sent).for_each(|sent| sent.empty(&mut take));
    }
}

impl Sent {
    fn empty(&self, take: &mut impl FnMut(&mut Bag)) {
        if self.used.load(Ordering::Acquire) {
            let mut bag = locked(&self.bag);
            self.used.store(false, Ordering::Relaxed);
            take(&mut bag);
        }
    }
}

/// A lock, whoever panicked while he held it: that panic ends the run anyway.
pub fn locked<V>(lock: &Mutex<V>) -> MutexGuard<'_, V> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far to work: all from the beginning of a day that comes before the limit, which lies on this day or just behind it.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The windows of a run are numbered.
    pub number: u64,
    pub begin: Time,
    pub limit: (Time, EventKey),
}

impl Window {
    /// The window with this number: the day on which this time is, as far as the limit. A day is so long.
    pub fn of_day(number: u64, time: Time, length: Span, limit: (Time, EventKey)) -> Self {
        let day = time.as_ps() / length.as_ps();
        let begin = Time::from_ps(day * length.as_ps());
        Self { number, begin, limit: limit.min((begin.saturating_add(length), EventKey::FIRST)) }
    }
}

/// What came of a window, or of a share of it.
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
    /// Of nobody.
    const NONE: Self = Self { done: 0, delivered: 0, next: None };

    /// Adds another one.
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.delivered += other.delivered;
        self.next = [self.next, other.next].into_iter().flatten().min();
    }
}

/// What the threads of a run share while they work.
pub struct Board<'r, 'a, T: Transports> {
    groups: &'r [Mutex<Group<'a, T>>],
    slots: &'r [Slot],
    plan: &'r Plan<'a, T>,
    turns: Turns<Window, Report>,
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

impl<'r, 'a, T: Transports> Board<'r, 'a, T> {
    /// For so many threads.
    pub fn new(
        groups: &'r [Mutex<Group<'a, T>>],
        slots: &'r [Slot],
        plan: &'r Plan<'a, T>,
        threads: usize,
    ) -> Self {
        let none = Window { number: 0, begin: Time::ZERO, limit: (Time::ZERO, EventKey::FIRST) };
        Self {
            groups,
            slots,
            plan,
            turns: Turns::new(groups.len(), threads, none, Report::NONE),
            // Where there are fewer cores than threads, whoever looks holds up whom it waits for.
            spins: if available_parallelism().is_ok_and(|cores| cores.get() >= threads) { SPINS } else { 0 },
            failed: AtomicBool::new(false),
        }
    }

    /// The leader does all of a window himself: there is too little to do.
    pub fn lead_alone(
        &self,
        window: Window,
        outbox: &mut Outbox,
        mut balance: Option<&mut Balance>,
    ) -> Report {
        let _alarm = Alarm(&self.failed);
        let mut sum = Report::NONE;
        for group in 0..self.groups.len() {
            let report = self.work_on(group, window, outbox);
            if let Some(balance) = &mut balance {
                balance.note(report.done);
            }
            sum.add(report);
        }
        if let Some(balance) = balance {
            balance.end_window();
        }
        sum.add(self.send(0, window.number, outbox));
        sum
    }

    /// The leader's turn: all groups work up to the end of a window. Others who sleep are not waited for.
    ///
    /// # Panics
    /// If another thread did.
    pub fn lead(&self, window: Window, outbox: &mut Outbox) -> Report {
        let _alarm = Alarm(&self.failed);
        self.turns.begin(window);
        self.work(0, outbox);
        self.wait(|| self.turns.are_done());
        let mut sum = Report::NONE;
        self.turns.take_reports(Report::NONE, |report| sum.add(report));
        sum
    }

    /// Lets the others go.
    pub fn dismiss(&self) {
        self.turns.end();
    }

    /// Follows the leader until he lets go.
    pub fn follow(&self, thread: usize, outbox: &mut Outbox) {
        let _alarm = Alarm(&self.failed);
        let mut seen = Call::NONE;
        loop {
            self.wait(|| self.turns.call(thread) != seen);
            seen = self.turns.call(thread);
            if seen.is_over() {
                return;
            }
            self.work(thread, outbox);
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

    /// Works on groups until none is left: first on those of this thread's share, then on those of others.
    fn work(&self, thread: usize, outbox: &mut Outbox) {
        let (mut sum, mut groups) = (Report::NONE, 0);
        let (mut window, mut from) = (None, thread);
        while let Some(group) = self.turns.take(thread, &mut from) {
            let window = *window.get_or_insert_with(|| self.turns.window(from));
            sum.add(self.work_on(group, window, outbox));
            groups += 1;
        }
        let Some(window) = window else { return };
        sum.add(self.send(thread, window.number, outbox));
        self.turns.finish(thread, groups, |report| report.add(sum));
    }

    /// Puts what a thread posted in a window into the slots of the groups that it is for. Says when the first of it arrives.
    fn send(&self, thread: usize, window: u64, outbox: &mut Outbox) -> Report {
        let earliest = outbox.take_earliest_ps();
        outbox.send(|part, bag| self.slots[part as usize].put(thread, window, bag));
        Report { next: (earliest < u64::MAX).then(|| Time::from_ps(earliest)), ..Report::NONE }
    }

    fn work_on(&self, number: usize, window: Window, outbox: &mut Outbox) -> Report {
        let mut group = locked(&self.groups[number]);
        group.network.events.turn_to(window.begin);
        self.slots[number].empty_for(window.number, |bag| group.put(bag));
        let done = group.work(self.plan, window.limit, u64::MAX, outbox);
        Report { done, delivered: group.common.delivered, next: group.next_time() }
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::Packet;

    use super::*;

    fn arrivals(window: impl Fn(&mut dyn FnMut(&mut Bag))) -> Vec<u64> {
        let mut found = Vec::new();
        window(&mut |bag| bag.empty(|packet, _, _| found.push(packet.arrive.as_ps())));
        found
    }

    /// The group that sent it was another thread's in the window before, and that thread was faster now.
    #[test]
    fn what_was_sent_in_this_window_already_waits_for_the_next() {
        let slot = Slot::new(2);
        let send = |thread, window, at| {
            let mut bag = Bag::default();
            let mut packet = Packet::default();
            packet.arrive = Time::from_ps(at);
            bag.push(&packet);
            slot.put(thread, window, &mut bag);
        };
        send(1, 4, 10);
        send(0, 5, 20);
        assert_eq!(arrivals(|take| slot.empty_for(5, take)), [10]);
        send(1, 6, 30);
        assert_eq!(arrivals(|take| slot.empty_for(6, take)), [20]);
        assert_eq!(arrivals(|take| slot.empty(take)), [30]);
        assert!(arrivals(|take| slot.empty(take)).is_empty());
    }
}
