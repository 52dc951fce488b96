//! Several threads that work day by day on the same groups.
//!
//! One thread leads: it says how far to work, works itself, and waits until all groups are done. Each thread takes the groups of its
//! own share first, which stay in its cache, and then those that are left of the others': so a thread whose core is
//! taken away holds up the group that it works on, and no other. What is sent goes into the slot of the group that it is
//! for, and is found there when the next day begins. Who worked on what leaves no trace.

use std::ops::Range;
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

/// The groups of one thread's share that nobody has taken yet: the number of the window above, of the next group below. In cache
/// lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Share {
    next: AtomicU64,
    groups: Range<usize>,
}

impl Share {
    const NUMBER_SHIFT: u32 = 32;

    /// Offers all of it, in the window with this number.
    fn offer(&self, window: u64) {
        self.next.store(window << Self::NUMBER_SHIFT, Ordering::Release);
    }

    /// Takes a group. It is of the window that goes on, which cannot end before the group is done.
    fn take(&self) -> Option<usize> {
        let place = self.next.fetch_add(1, Ordering::AcqRel) as u32 as usize;
        (place < self.groups.len()).then(|| self.groups.start + place)
    }
}

/// What the threads of a run share while they work.
pub struct Board<'r, 'a, T: Transports> {
    groups: &'r [Mutex<Group<'a, T>>],
    slots: &'r [Slot],
    plan: &'r Plan<'a, T>,
    shares: Vec<Share>,
    /// The window that goes on.
    window: Mutex<Window>,
    /// How many windows have begun.
    begun: AtomicU64,
    /// How many groups are done in this window, and what came of it.
    finished: AtomicUsize,
    report: Mutex<Report>,
    /// There will be no more windows.
    is_over: AtomicBool,
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
        let first = |thread: usize| thread * groups.len() / threads;
        // Nothing is there to be taken before the first window.
        let share = |thread| Share {
            next: AtomicU64::new(u32::MAX.into()),
            groups: first(thread)..first(thread + 1),
        };
        Self {
            groups,
            slots,
            plan,
            shares: (0..threads).map(share).collect(),
            window: Mutex::new(Window { day: 0, limit: (Time::ZERO, EventKey::FIRST) }),
            begun: AtomicU64::new(0),
            finished: AtomicUsize::new(0),
            report: Mutex::new(Report::NONE),
            is_over: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    /// The leader does all of a window himself: there is too little to do.
    pub fn lead_alone(&self, window: Window, outbox: &mut Outbox) -> Report {
        let mut sum = Report::NONE;
        for group in 0..self.groups.len() {
            sum.add(self.work_on(group, window, outbox));
        }
        sum.add(self.send(0, outbox));
        sum
    }

    /// The leader's turn: all groups work up to the end of a window. Others who sleep are not waited for.
    ///
    /// # Panics
    /// If another thread did.
    pub fn lead(&self, window: Window, outbox: &mut Outbox) -> Report {
        let _alarm = Alarm(&self.failed);
        *locked(&self.window) = window;
        *locked(&self.report) = Report::NONE;
        self.finished.store(0, Ordering::Relaxed);
        let number = self.begun.load(Ordering::Relaxed) + 1;
        self.shares.iter().for_each(|share| share.offer(number));
        self.begun.store(number, Ordering::Release);
        self.work(0, outbox);
        self.wait(|| self.finished.load(Ordering::Acquire) == self.groups.len());
        *locked(&self.report)
    }

    /// Lets the others go.
    pub fn dismiss(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Follows the leader until he lets go.
    pub fn follow(&self, thread: usize, outbox: &mut Outbox) {
        let _alarm = Alarm(&self.failed);
        let mut seen = 0;
        loop {
            let begun = || self.begun.load(Ordering::Acquire);
            self.wait(|| begun() > seen || self.is_over.load(Ordering::Acquire));
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            seen = begun();
            self.work(thread, outbox);
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
    fn work(&self, thread: usize, outbox: &mut Outbox) {
        let (mut sum, mut groups) = (Report::NONE, 0);
        let mut window = None;
        for owner in (thread..self.shares.len()).chain(0..thread) {
            while let Some(group) = self.shares[owner].take() {
                // While a group is taken and not done the window stays.
                let window = *window.get_or_insert_with(|| *locked(&self.window));
                sum.add(self.work_on(group, window, outbox));
                groups += 1;
            }
        }
        if groups == 0 {
            return;
        }
        sum.add(self.send(thread, outbox));
        locked(&self.report).add(sum);
        self.finished.fetch_add(groups, Ordering::Release);
    }

    /// Puts what a thread posted into the slots of the groups that it is for. Says when the first of it arrives.
    fn send(&self, thread: usize, outbox: &mut Outbox) -> Report {
        let earliest = outbox.take_earliest_ps();
        outbox.send(|part, bag| self.slots[part as usize].put(thread, bag));
        Report { next: (earliest < u64::MAX).then(|| Time::from_ps(earliest)), ..Report::NONE }
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
