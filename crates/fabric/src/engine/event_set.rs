//! The event set: what happens next.
//!
//! Arrivals on a link are in order, so only the packet at a link's head is here: at most one entry
//! a link, in a timing wheel threaded through the links themselves. Timers that are due before it
//! has gone round are in it, too. Timers further away, and the rare head beyond the wheel, are in a
//! binary heap.
//!
//! Order is total: by time, then by [`EventKey`] (links before timers, each by number). It is part
//! of every result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_units::{Span, Time};

use super::link::Link;
use super::partition::Numbers;
use super::pool::Pool;

mod crowd;
mod event;
mod key;
mod near;
mod windows;

pub use event::Event;
pub use key::{EventKey, EventKind};

/// The next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The packet at the head of this link reaches the far end. Whoever looks the link up finds out
    /// for nothing when that is; whether others are behind it in its slot ([`Link::wheel_next`]):
    /// then it is not yet its turn, and the slot is to be sorted; and whether there is no link of
    /// this number: then it is that of a timer ([`EventSet::take_due`]).
    Arrival(u32),
    /// All of a slot, to be sorted ([`EventSet::sort`]): this is the first of its list.
    Slot(u32),
    /// Anything else, and when.
    Timer(Time, EventKey),
}

/// No link.
pub const NONE: u32 = u32::MAX;
const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;
/// So many events of one slot are worth a look at what they will need.
const CROWD: usize = 4;

/// The pending events. Pushing and popping a link's head is O(1) while a slot holds few; timers are
/// O(log timers).
pub struct EventSet {
    /// Log2 of a slot's width in picoseconds.
    shift: u32,
    /// First link of each slot's list; the lists go on in [`Link::wheel_next`].
    slots: Box<[u32; SLOTS]>,
    /// Which slots are not empty.
    occupied: [u64; WORDS],
    /// Number of the slot (since time zero) whose events are in `batch`. Slots in the wheel are
    /// later, and fewer than `SLOTS` later.
    loaded: u64,
    /// Events of the loaded slot, sorted; those before `next` are done.
    batch: Vec<Event>,
    next: usize,
    /// Room to sort a crowd in.
    sorting: crowd::Sorting,
    heap: BinaryHeap<Reverse<(u64, EventKey)>>,
    /// Nothing from here on is taken out.
    limit: (u64, EventKey),
    /// The least time of the heap and the limit: an arrival before it comes first. And the slot of
    /// that time.
    stop: u64,
    stop_slot: u64,
    /// The fabric's numbers of links, which order events.
    numbers: Numbers,
    /// Whether slots are so wide that it is worth while to look ahead.
    looks_ahead: bool,
    /// Entry of the slot behind the loaded one that was prefetched last.
    ahead: u32,
    /// The timers in the wheel.
    near: near::Near,
    /// The links whose ports have something to post at the end of the window, and when that is, in
    /// ps, or before.
    leaving: Vec<u32>,
    leaves_at: u64,
}

impl EventSet {
    /// An empty set that is fast for events up to `horizon_ps` ahead.
    pub fn new(horizon_ps: u64, numbers: Numbers) -> Self {
        let width = (horizon_ps / (SLOTS as u64 - 1) + 1).next_power_of_two();
        Self {
            shift: width.trailing_zeros(),
            slots: Box::new([NONE; SLOTS]),
            occupied: [0; WORDS],
            loaded: 0,
            batch: Vec::with_capacity(64),
            next: 0,
            sorting: crowd::Sorting::default(),
            heap: BinaryHeap::new(),
            limit: (u64::MAX, EventKey::LAST),
            stop: u64::MAX,
            stop_slot: u64::MAX >> width.trailing_zeros(),
            numbers,
            looks_ahead: false,
            ahead: NONE,
            near: near::Near::new(),
            leaving: Vec::new(),
            leaves_at: u64::MAX,
        }
    }

    /// Adds a timer.
    #[inline]
    pub fn push_timer(&mut self, at: Time, key: EventKey) {
        let time = at.as_ps();
        let slot = time >> self.shift;
        if slot.wrapping_sub(self.loaded).wrapping_sub(1) < SLOTS as u64 - 1 {
            let number = self.near.insert(time, key, self.slots[slot as usize % SLOTS]);
            self.put_first(slot, number);
        } else {
            self.push_far_timer(time, key);
        }
    }

    /// Adds a timer that is due beyond the wheel, or in the slot that is being worked on.
    #[inline(never)]
    fn push_far_timer(&mut self, time: u64, key: EventKey) {
        self.heap.push(Reverse((time, key)));
        self.stop_at(self.stop.min(time));
    }

    /// The timer with this number, which [`Self::take`] gave, and when it is due: it is taken out.
    /// None if others are behind it in its slot: then that is to be sorted.
    #[inline]
    pub fn take_due(&mut self, number: u32) -> Option<(Time, EventKey)> {
        let (time, next) = self.near.entry(number);
        (next == NONE).then(|| (Time::from_ps(time), self.near.remove(number)))
    }

    /// Takes out nothing from this instant and key on, until there is another limit.
    pub fn set_limit(&mut self, at: Time, key: EventKey) {
        self.limit = (at.as_ps(), key);
        self.find_stop();
    }

    /// Takes out nothing after this instant.
    pub fn end_at(&mut self, at: Time) {
        self.set_limit(at.saturating_add(Span::from_ps(1)), EventKey::new(EventKind::Arrival, 0));
    }

    fn find_stop(&mut self) {
        let timer = self.heap.peek().map_or(u64::MAX, |top| top.0.0);
        self.stop_at(timer.min(self.limit.0));
    }

    const fn stop_at(&mut self, stop: u64) {
        (self.stop, self.stop_slot) = (stop, stop >> self.shift);
    }

    /// Adds the link with this number, whose head arrives at `entry.head_arrive`, which must not be
    /// in the past.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn push_link(&mut self, entry: &mut Link, link: u32) {
        let time = entry.head_arrive;
        let slot = time >> self.shift;
        let ahead = slot.wrapping_sub(self.loaded);
        if ahead.wrapping_sub(1) < SLOTS as u64 - 1 {
            entry.wheel_next = self.put_first(slot, link);
        } else {
            entry.wheel_next = NONE;
            self.push_link_elsewhere(time, slot, link);
        }
    }

    /// Puts a link or a timer first into a slot of the wheel. Returns what was first before.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn put_first(&mut self, slot: u64, number: u32) -> u32 {
        let index = slot as usize % SLOTS;
        self.occupied[index / 64] |= 1 << (index % 64);
        std::mem::replace(&mut self.slots[index], number)
    }

    /// The loaded slot or before: into the batch. Beyond the wheel: into the heap.
    #[cold]
    fn push_link_elsewhere(&mut self, time: u64, slot: u64, link: u32) {
        if slot > self.loaded {
            self.push_far_timer(time, EventKey::new(EventKind::Arrival, self.number_of(link)));
            return;
        }
        let event = Event::new(time, self.number_of(link), link);
        let at = self.batch[self.next..].partition_point(|&other| other < event);
        self.batch.insert(self.next + at, event);
    }

    /// Takes the next event, if there is one before the limit, or the slot that it is in. Inlined
    /// by force, once a transport: as a call it takes more instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn take<const LOOK_AHEAD: bool>(&mut self, links: &[Link]) -> Option<Next> {
        if let Some(&event) = self.batch.get(self.next) {
            if event.time() >= self.stop {
                return self.take_first(Some(event));
            }
            self.next += 1;
            if LOOK_AHEAD {
                self.walk(links);
            }
            return Some(Next::Arrival(event.number()));
        }
        match self.next_slot() {
            Some(slot) if slot < self.stop_slot => Some(Next::Arrival(self.take_slot(slot))),
            slot => self.take_at_stop(slot),
        }
    }

    /// Takes what the wheel has no earlier slot for than this, which is no earlier than that of the
    /// heap and the limit.
    #[cold]
    fn take_at_stop(&mut self, slot: Option<u64>) -> Option<Next> {
        match slot.filter(|&slot| slot == self.stop_slot) {
            Some(slot) => Some(Next::Slot(self.take_slot(slot))),
            None => self.take_first(None),
        }
    }

    /// Takes out the next slot that holds something. Returns the first of its list.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn take_slot(&mut self, slot: u64) -> u32 {
        let index = slot as usize % SLOTS;
        self.clear_occupied(index);
        self.loaded = slot;
        std::mem::replace(&mut self.slots[index], NONE)
    }

    /// When the next timer is due; none if no timer is pending.
    pub fn next_timer(&self) -> Option<Time> {
        let far = self.heap.peek().map(|top| Time::from_ps(top.0.0));
        [far, self.near.first_timer()].into_iter().flatten().min()
    }

    /// Takes whatever comes first, if that is before the limit: `arrival`, which is the batch's
    /// next, or what the heap has.
    #[cold]
    fn take_first(&mut self, arrival: Option<Event>) -> Option<Next> {
        // Most often a window ends, and nothing of its last instant is in it: what is in the batch
        // comes at the stop or later.
        if self.stop == self.limit.0 && self.limit.1 == EventKey::FIRST {
            return None;
        }
        let of_batch = arrival.map(|event| (event.time(), self.key_of(event.number())));
        let of_heap = self.heap.peek().map(|top| top.0);
        let first = [of_batch, of_heap].into_iter().flatten().min();
        let (time, key) = first.filter(|first| *first < self.limit)?;
        if let Some(event) = arrival.filter(|_| of_batch == first) {
            self.next += 1;
            return Some(Next::Arrival(event.number()));
        }
        self.heap.pop();
        let next = self.what(time, key);
        self.find_stop();
        if self.next == self.batch.len() {
            // Nothing is pending up to this time: what is pushed from now on for its slot belongs
            // to the batch.
            self.loaded = self.loaded.max(time >> self.shift);
        }
        Some(next)
    }

    /// The next event's time and key, whatever the limit; none if nothing is pending.
    pub fn peek(&mut self, links: &mut [Link], pool: &Pool) -> Option<(Time, EventKey)> {
        let other = self.heap.peek().map(|top| top.0);
        if self.next == self.batch.len() {
            let before = |slot: &u64| other.is_none_or(|(time, _)| slot << self.shift <= time);
            if let Some(slot) = self.next_slot().filter(before) {
                let first = self.take_slot(slot);
                self.sort(links, first, pool);
            }
        }
        let arrival = self.batch.get(self.next);
        let arrival = arrival.map(|event| (event.time(), self.key_of(event.number())));
        [arrival, other].into_iter().flatten().min().map(|(time, key)| (Time::from_ps(time), key))
    }

    /// Event of an entry of the heap.
    fn what(&self, time: u64, key: EventKey) -> Next {
        match key.kind() {
            EventKind::Arrival => Next::Arrival(self.numbers.here(key.entity())),
            _ => Next::Timer(Time::from_ps(time), key),
        }
    }

    /// The key of what the batch holds by this number.
    fn key_of(&self, number: u32) -> EventKey {
        if number >= near::FIRST {
            self.near.key(number)
        } else {
            EventKey::new(EventKind::Arrival, self.number_of(number))
        }
    }

    /// The fabric's number of a link.
    fn number_of(&self, link: u32) -> u32 {
        self.numbers.of(link)
    }

    /// The time of the next event, or of the slot of the wheel that it is in; none if nothing is
    /// pending. The limit is none of it.
    pub fn next_time(&self) -> Option<Time> {
        let wheel = match self.batch.get(self.next) {
            Some(event) => event.time(),
            None => self.next_slot().map_or(u64::MAX, |slot| slot << self.shift),
        };
        let timer = self.heap.peek().map_or(u64::MAX, |top| top.0.0);
        let next = wheel.min(timer).min(self.leaves_at);
        (next < u64::MAX).then(|| Time::from_ps(next))
    }

    /// The first slot after the loaded one that holds something.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        let from = (self.loaded + 1) as usize % SLOTS;
        let word = self.occupied[from / 64] >> (from % 64);
        if word != 0 {
            return Some(self.loaded + 1 + u64::from(word.trailing_zeros()));
        }
        // Around the wheel, the low bits of the first word last. Nearly always it is the next word.
        let word = from / 64;
        let later = (1..=WORDS).map(|step| (word + step) % WORDS).find(|&word| self.occupied[word] != 0)?;
        let index = later * 64 + self.occupied[later].trailing_zeros() as usize;
        Some(self.loaded + 1 + ((index + SLOTS - from) % SLOTS) as u64)
    }

    /// Brings what a slot's list has from `first` on into order, to be taken out one by one, and
    /// asks for the packets that arrive. Not inlined: where slots hold one event nearly always, the
    /// loop over events is the shorter.
    #[inline(never)]
    pub fn sort(&mut self, links: &mut [Link], first: u32, pool: &Pool) {
        self.batch.clear();
        self.next = 0;
        let (mut number, mut has_others) = (first, false);
        while number != NONE {
            let (event, next) = if let Some(link) = links.get_mut(number as usize) {
                pool.warm(link.head);
                let event = Event::new(link.head_arrive, self.number_of(number), number);
                (event, std::mem::replace(&mut link.wheel_next, NONE))
            } else {
                has_others = true;
                self.near.take_in_turn(number)
            };
            self.batch.push(event);
            number = next;
        }
        match self.batch.as_mut_slice() {
            // Most often there are two.
            [one, other] => {
                if other < one {
                    std::mem::swap(one, other);
                }
            }
            batch if batch.len() < crowd::SORTED_BY_WORD => batch.sort_unstable(),
            _ => self.sort_by_word(),
        }
        if has_others {
            self.sort_alike();
        }
    }

    /// The time of a link, or of a timer, and what follows it in its slot.
    #[inline]
    fn entry(&self, links: &[Link], number: u32) -> (u64, u32) {
        match links.get(number as usize) {
            Some(link) => (link.head_arrive, link.wheel_next),
            None => self.near.entry(number),
        }
    }

    #[inline]
    fn clear_occupied(&mut self, index: usize) {
        self.occupied[index / 64] &= !(1 << (index % 64));
    }

    /// Takes a link out again that is likely to be in the wheel: looks at what its slot holds.
    pub fn take_back_link(&mut self, links: &mut [Link], link: u32) {
        let index = (links[link as usize].head_arrive >> self.shift) as usize % SLOTS;
        let follower = links[link as usize].wheel_next;
        if self.slots[index] == link {
            self.slots[index] = follower;
            if follower == NONE {
                self.clear_occupied(index);
            }
            return;
        }
        let mut before = self.slots[index];
        while before != NONE {
            let next = self.entry(links, before).1;
            if next == link {
                return self.chain(links, before, follower);
            }
            before = next;
        }
        self.remove_link(links, link);
    }

    /// Lets this follow a link or a timer in its slot.
    fn chain(&mut self, links: &mut [Link], number: u32, next: u32) {
        match links.get_mut(number as usize) {
            Some(link) => link.wheel_next = next,
            None => self.near.chain(number, next),
        }
    }

    /// Takes a link out again, wherever it is. Slow: for faults.
    pub fn remove_link(&mut self, links: &mut [Link], link: u32) {
        let key = EventKey::new(EventKind::Arrival, self.number_of(link));
        self.heap.retain(|entry| entry.0.1 != key);
        self.find_stop();
        if let Some(at) = self.batch[self.next..].iter().position(|event| event.number() == link) {
            self.batch.remove(self.next + at);
        }
        let time = links[link as usize].head_arrive;
        let index = (time >> self.shift) as usize % SLOTS;
        let mut members = Vec::new();
        let mut member = self.slots[index];
        while member != NONE {
            members.push(member);
            member = self.entry(links, member).1;
        }
        members.retain(|&member| member != link);
        self.slots[index] = NONE;
        for &member in members.iter().rev() {
            let next = std::mem::replace(&mut self.slots[index], member);
            self.chain(links, member, next);
        }
        if members.is_empty() {
            self.clear_occupied(index);
        }
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let vectors = self.batch.capacity() * 16 + self.heap.capacity() * 16 + self.near.memory_bytes();
        size_of::<Self>() + SLOTS * 4 + vectors + self.numbers.memory_bytes()
    }
}

#[cfg(test)]
mod documented;

#[cfg(test)]
mod tests;
