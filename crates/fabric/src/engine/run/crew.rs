//! Several threads that work day by day on the same groups.
//!
//! One thread leads: it says how far to work, works itself, and waits until the others are done. Each thread begins with its own
//! share of the groups, which stay in its cache, and then helps with those of others. What is sent goes into the slot
//! of the group that it is for, and is found there when the next day begins: so nobody waits for anybody in between, and
//! who worked on what leaves no trace.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_transport::Transports;
use weft_units::{Span, Time};

use crate::engine::event_set::EventKey;
use crate::engine::group::Group;
use crate::engine::host::Plan;
use crate::engine::mail::{Bag, Outbox};

/// How often a thread looks before it lets others have its core.
const SPINS: u32 = 2_000;

/// What others sent to a group: a bag by thread.
#[derive(Debug, Default)]
pub struct Slot(Vec<(AtomicBool, Mutex<Bag>)>);

impl Slot {
    /// Empty, for so many threads.
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| (AtomicBool::new(false), Mutex::default())).collect())
    }

    /// Takes in what a thread sent.
    fn put(&self, thread: usize, bag: &mut Bag) {
        let (used, own) = &self.0[thread];
        locked(own).append(bag);
        used.store(true, Ordering::Release);
    }

    /// Hands out what is there.
    pub fn empty(&self, mut take: impl FnMut(&mut Bag)) {
        for (used, bag) in &self.0 {
            if used.load(Ordering::Acquire) {
                let mut bag = locked(bag);
                used.store(false, Ordering::Relaxed);
                take(&mut bag);
            }
        }
    }
}

/// A lock, whoever panicked while he held it: that panic ends the run anyway.
pub fn locked<V>(lock: &Mutex<V>) -> MutexGuard<'_, V> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far to work: all that comes before the limit, which lies on this day or just behind it.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub day: u64,
    pub limit: (Time, EventKey),
}

impl Window {
    /// The day on which this time is, as far as the limit. A day is so long.
    pub fn of_day(time: Time, length: Span, limit: (Time, EventKey)) -> Self {
        let day = time.as_ps() / length.as_ps();
        let tomorrow = Time::from_ps((day + 1).saturating_mul(length.as_ps()));
        Self { day, limit: limit.min((tomorrow, EventKey::FIRST)) }
    }
}

/// What threads report at the end of a window.
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
    pub const NONE: Self = Self { done: 0, delivered: 0, next: None };

    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.done += other.done;
        self.delivered += other.delivered;
        self.next = [self.next, other.next].into_iter().flatten().min();
    }
}

/// A thread's own place on the board, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    /// How many of its share have been taken.
    taken: AtomicUsize,
    report: Mutex<Option<Report>>,
}

/// What the threads of a run share while they work.
pub struct Board<'r, 'a, T: Transports> {
    pub groups: &'r [Mutex<Group<'a, T>>],
    pub slots: &'r [Slot],
    pub plan: &'r Plan<'a, T>,
    window: Mutex<Option<Window>>,
    /// How many windows have begun.
    begun: AtomicU64,
    /// How many of the others have not done their work in this window.
    working: AtomicUsize,
    /// Somebody panicked.
    failed: AtomicBool,
    places: Vec<Place>,
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
        Self {
            groups,
            slots,
            plan,
            window: Mutex::new(None),
            begun: AtomicU64::new(0),
            working: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            places: (0..threads).map(|_| Place::default()).collect(),
        }
    }

    /// The leader's turn: all groups work up to the end of a window.
    ///
    /// # Panics
    /// If another thread did.
    pub fn lead(&self, window: Window, outbox: &mut Outbox) -> Report {
        let _alarm = Alarm(&self.failed);
        for place in &self.places {
            place.taken.store(0, Ordering::Relaxed);
        }
        self.working.store(self.places.len() - 1, Ordering::Relaxed);
        *locked(&self.window) = Some(window);
        self.begun.fetch_add(1, Ordering::Release);
        let mut sum = self.work(0, window, outbox);
        self.wait(|| self.working.load(Ordering::Acquire) == 0);
        for place in &self.places[1..] {
            sum.add(locked(&place.report).take().unwrap_or(Report::NONE));
        }
        sum
    }

    /// Lets the others go.
    pub fn dismiss(&self) {
        *locked(&self.window) = None;
        self.begun.fetch_add(1, Ordering::Release);
    }

    /// Follows the leader until he lets go.
    pub fn follow(&self, thread: usize, outbox: &mut Outbox) {
        let _alarm = Alarm(&self.failed);
        let mut seen = 0;
        loop {
            self.wait(|| self.begun.load(Ordering::Acquire) > seen);
            seen += 1;
            let Some(window) = *locked(&self.window) else { return };
            let report = self.work(thread, window, outbox);
            *locked(&self.places[thread].report) = Some(report);
            self.working.fetch_sub(1, Ordering::Release);
        }
    }

    fn wait(&self, is_over: impl Fn() -> bool) {
        let mut spins = 0;
        while !is_over() {
            assert!(!self.failed.load(Ordering::Acquire), "a thread of the run panicked");
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Works on groups until none is left: first on those of this thread's share, then on those of others.
    fn work(&self, thread: usize, window: Window, outbox: &mut Outbox) -> Report {
        let threads = self.places.len();
        let mut sum = Report::NONE;
        for owner in (thread..threads).chain(0..thread) {
            let share = |thread: usize| thread * self.groups.len() / threads;
            let (first, end) = (share(owner), share(owner + 1));
            loop {
                let group = first + self.places[owner].taken.fetch_add(1, Ordering::Relaxed);
                if group >= end {
                    break;
                }
                sum.add(self.work_on(group, window, outbox));
            }
        }
        let earliest = outbox.take_earliest_ps();
        sum.add(Report { next: (earliest < u64::MAX).then(|| Time::from_ps(earliest)), ..Report::NONE });
        outbox.send(|part, bag| self.slots[part as usize].put(thread, bag));
        sum
    }

    fn work_on(&self, number: usize, window: Window, outbox: &mut Outbox) -> Report {
        let mut group = locked(&self.groups[number]);
        self.slots[number].empty(|bag| group.put(bag));
        let mut done = 0;
        if group.next_time().is_some_and(|next| (next, EventKey::FIRST) < window.limit) {
            group.begin_day(window.day);
            done = group.work(self.plan, window.limit, u64::MAX, outbox);
        }
        Report { done, delivered: group.common.delivered, next: group.next_time() }
    }
}
