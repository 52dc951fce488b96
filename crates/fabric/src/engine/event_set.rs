//! The event set: what happens next.
//!
//! Arrivals on a link are in order, so only the packet at a link's head is here: at most one entry a link, in a timing
//! wheel threaded through the links themselves. Timers, and the rare head that is further away than the wheel
//! reaches, are in a binary heap.
//!
//! Order is total: by time, then by [`EventKey`] (links before timers, each by number). It is part of every result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_units::Time;

use super::link::Link;

/// Who an event is for. The number orders events at the same instant: never renumber, only append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u64);

/// What an [`EventKey`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// The packet at the head of a link reaches the far end.
    Arrival = 0,
    /// A link changes its state.
    Fault = 1,
    /// The whole fabric has learned of a fault.
    Reroute = 2,
    /// The next flow starts.
    FlowStart = 3,
    /// A sender's timer.
    Sender = 4,
    /// A receiver's timer.
    Receiver = 5,
    /// An edge scheme's timer for a flow, at the sending end.
    EdgeSender = 6,
    /// An edge scheme's timer for a flow, at the receiving end.
    EdgeReceiver = 7,
    /// A timer of a switch's scheme.
    Switch = 8,
    /// A look at all links.
    Sample = 9,
    /// A timer of a host's scheme.
    Host = 10,
    /// A port of the second kind may send its next packet.
    Port = 11,
}

impl EventKind {
    const ALL: [Self; 12] = [
        Self::Arrival,
        Self::Fault,
        Self::Reroute,
        Self::FlowStart,
        Self::Sender,
        Self::Receiver,
        Self::EdgeSender,
        Self::EdgeReceiver,
        Self::Switch,
        Self::Sample,
        Self::Host,
        Self::Port,
    ];
}

impl EventKey {
    const KIND_SHIFT: u32 = 56;
    const NODE_SHIFT: u32 = 32;

    /// The event of this kind for the entity with this number.
    #[inline]
    pub const fn new(kind: EventKind, entity: u32) -> Self {
        Self((kind as u64) << Self::KIND_SHIFT | entity as u64)
    }

    /// The timer with this token of the scheme of a switch, which must be below 2^24.
    pub const fn switch_timer(switch: u32, token: u32) -> Self {
        let timer = Self::new(EventKind::Switch, token);
        Self(timer.0 | (switch as u64) << Self::NODE_SHIFT)
    }

    /// The timer with this token of the scheme of a host.
    pub const fn host_timer(host: u16, token: u32) -> Self {
        let timer = Self::new(EventKind::Host, token);
        Self(timer.0 | (host as u64) << Self::NODE_SHIFT)
    }

    /// Its kind.
    #[inline]
    pub const fn kind(self) -> EventKind {
        EventKind::ALL[(self.0 >> Self::KIND_SHIFT) as usize]
    }

    /// Its entity's number; a scheme's timer's token.
    #[inline]
    pub const fn entity(self) -> u32 {
        self.0 as u32
    }

    /// The switch or host of a scheme's timer.
    pub const fn node(self) -> u32 {
        (self.0 >> Self::NODE_SHIFT) as u32 & 0x00ff_ffff
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The packet at the head of this link reaches the far end.
    Arrival(u32),
    /// Anything else.
    Timer(EventKey),
}

impl Next {
    #[inline]
    fn of(key: EventKey) -> Self {
        if key.kind() == EventKind::Arrival { Self::Arrival(key.entity()) } else { Self::Timer(key) }
    }
}

/// No link.
const NONE: u32 = u32::MAX;
const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;

/// The pending events. Pushing and popping a link's head is O(1) while a slot holds few; timers are O(log timers).
pub struct EventSet {
    /// Log2 of a slot's width in picoseconds.
    shift: u32,
    /// First link of each slot's list; the lists go on in [`Link::wheel_next`].
    slots: Box<[u32; SLOTS]>,
    /// Which slots are not empty, and which words of that are not zero.
    occupied: [u64; WORDS],
    occupied_words: u64,
    /// Number of the slot (since time zero) whose events are in `batch`. Slots in the wheel are later, and fewer than
    /// `SLOTS` later.
    loaded: u64,
    /// Events of the loaded slot, sorted; those before `next` are done.
    batch: Vec<(u64, u32)>,
    next: usize,
    heap: BinaryHeap<Reverse<(u64, EventKey)>>,
    /// Time of the heap's top, or `u64::MAX`.
    heap_time: u64,
}

impl EventSet {
    /// An empty set that is fast for events up to `horizon_ps` ahead.
    pub fn new(horizon_ps: u64) -> Self {
        let width = (horizon_ps / (SLOTS as u64 - 1) + 1).next_power_of_two();
        Self {
            shift: width.trailing_zeros(),
            slots: Box::new([NONE; SLOTS]),
            occupied: [0; WORDS],
            occupied_words: 0,
            loaded: 0,
            batch: Vec::with_capacity(64),
            next: 0,
            heap: BinaryHeap::new(),
            heap_time: u64::MAX,
        }
    }

    /// Adds a timer.
    pub fn push_timer(&mut self, at: Time, key: EventKey) {
        self.heap.push(Reverse((at.as_ps(), key)));
        self.heap_time = self.heap_time.min(at.as_ps());
    }

    /// Adds the link with this number, whose head arrives at `entry.head_arrive`, which must not be in the past.
    #[inline]
    pub fn push_link(&mut self, entry: &mut Link, link: u32) {
        let time = entry.head_arrive;
        let slot = time >> self.shift;
        let ahead = slot.wrapping_sub(self.loaded);
        if ahead.wrapping_sub(1) < SLOTS as u64 - 1 {
            let index = slot as usize % SLOTS;
            entry.wheel_next = self.slots[index];
            self.slots[index] = link;
            self.occupied[index / 64] |= 1 << (index % 64);
            self.occupied_words |= 1 << (index / 64);
        } else {
            self.push_link_elsewhere(time, slot, link);
        }
    }

    /// The loaded slot or before: into the batch. Beyond the wheel: into the heap.
    #[cold]
    fn push_link_elsewhere(&mut self, time: u64, slot: u64, link: u32) {
        if slot > self.loaded {
            self.push_timer(Time::from_ps(time), EventKey::new(EventKind::Arrival, link));
            return;
        }
        let rest = &self.batch[self.next..];
        let at = self.next + rest.partition_point(|&event| event < (time, link));
        self.batch.insert(at, (time, link));
    }

    /// Takes the next event, if there is one. Inlined by force, once a transport: as a call it takes more instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn pop(&mut self, links: &mut [Link]) -> Option<(Time, Next)> {
        loop {
            if let Some(&(time, link)) = self.batch.get(self.next) {
                if time < self.heap_time || (time == self.heap_time && self.link_is_first(link)) {
                    self.next += 1;
                    return Some((Time::from_ps(time), Next::Arrival(link)));
                }
                return self.pop_heap();
            }
            let slot = match self.next_slot() {
                Some(slot) if self.heap_time >= slot << self.shift => slot,
                _ => return self.pop_heap(),
            };
            let index = slot as usize % SLOTS;
            let link = std::mem::replace(&mut self.slots[index], NONE);
            self.clear_occupied(index);
            self.loaded = slot;
            let entry = &links[link as usize];
            if entry.wheel_next == NONE && entry.head_arrive < self.heap_time {
                return Some((Time::from_ps(entry.head_arrive), Next::Arrival(link)));
            }
            self.load(links, link);
        }
    }

    /// When the next timer is due; none if no timer is pending.
    pub fn next_timer(&self) -> Option<Time> {
        (self.heap_time < u64::MAX).then_some(Time::from_ps(self.heap_time))
    }

    /// Whether an arrival on `link` comes before the heap's top at the same time.
    #[cold]
    fn link_is_first(&self, link: u32) -> bool {
        self.heap.peek().is_none_or(|top| EventKey::new(EventKind::Arrival, link) < top.0.1)
    }

    #[cold]
    fn pop_heap(&mut self) -> Option<(Time, Next)> {
        let Reverse((time, key)) = self.heap.pop()?;
        self.heap_time = self.heap.peek().map_or(u64::MAX, |top| top.0.0);
        if self.next == self.batch.len() {
            // Nothing is pending up to this time: what is pushed from now on for its slot belongs to the batch.
            self.loaded = self.loaded.max(time >> self.shift);
        }
        Some((Time::from_ps(time), Next::of(key)))
    }

    /// The first slot after the loaded one that holds something.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        let from = (self.loaded + 1) as usize % SLOTS;
        let word = self.occupied[from / 64] >> (from % 64);
        if word != 0 {
            return Some(self.loaded + 1 + u64::from(word.trailing_zeros()));
        }
        self.next_slot_in_later_words(from)
    }

    /// As [`Self::next_slot`], around the wheel, the low bits of the word of `from` last.
    fn next_slot_in_later_words(&self, from: usize) -> Option<u64> {
        if self.occupied_words == 0 {
            return None;
        }
        let word = from / 64;
        let rotated = self.occupied_words.rotate_right((word as u32 + 1) % 64);
        let found = (word + 1 + rotated.trailing_zeros() as usize) % WORDS;
        let index = found * 64 + self.occupied[found].trailing_zeros() as usize;
        Some(self.loaded + 1 + ((index + SLOTS - from) % SLOTS) as u64)
    }

    /// Moves the events of a slot's list into the batch, in order.
    #[inline]
    fn load(&mut self, links: &[Link], first: u32) {
        self.batch.clear();
        self.next = 0;
        let mut link = first;
        while link != NONE {
            let entry = &links[link as usize];
            self.batch.push((entry.head_arrive, link));
            link = entry.wheel_next;
        }
        self.batch.sort_unstable();
    }

    #[inline]
    fn clear_occupied(&mut self, index: usize) {
        let word = &mut self.occupied[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.occupied_words &= !(1 << (index / 64));
        }
    }

    /// Takes a link out again, wherever it is. Slow: for faults.
    pub fn remove_link(&mut self, links: &mut [Link], link: u32) {
        let key = EventKey::new(EventKind::Arrival, link);
        self.heap.retain(|entry| entry.0.1 != key);
        self.heap_time = self.heap.peek().map_or(u64::MAX, |top| top.0.0);
        if let Some(at) = self.batch[self.next..].iter().position(|&(_, queued)| queued == link) {
            self.batch.remove(self.next + at);
        }
        let index = (links[link as usize].head_arrive >> self.shift) as usize % SLOTS;
        let mut members = Vec::new();
        let mut member = self.slots[index];
        while member != NONE {
            members.push(member);
            member = links[member as usize].wheel_next;
        }
        members.retain(|&member| member != link);
        self.slots[index] = NONE;
        for &member in members.iter().rev() {
            links[member as usize].wheel_next = self.slots[index];
            self.slots[index] = member;
        }
        if members.is_empty() {
            self.clear_occupied(index);
        }
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + SLOTS * 4 + self.batch.capacity() * 16 + self.heap.capacity() * 16
    }
}

#[cfg(test)]
mod documented;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::link::FarEnd;
    use super::*;

    fn links(count: usize) -> Vec<Link> {
        (0..count).map(|_| Link::idle(FarEnd::AT_HOST, 0, 0)).collect()
    }

    #[test]
    fn a_key_says_whose_it_is() {
        let timer = EventKey::switch_timer(1_279, u32::MAX);
        assert_eq!((timer.kind(), timer.node(), timer.entity()), (EventKind::Switch, 1_279, u32::MAX));
        let start = EventKey::new(EventKind::FlowStart, u32::MAX);
        assert_eq!((start.kind(), start.node(), start.entity()), (EventKind::FlowStart, 0, u32::MAX));
    }

    #[test]
    fn links_come_before_timers_at_one_instant() {
        let mut links = links(2);
        let mut events = EventSet::new(1_000);
        events.push_timer(Time::from_ps(500), EventKey::new(EventKind::FlowStart, 0));
        for link in [1, 0] {
            links[link as usize].head_arrive = 500;
            events.push_link(&mut links[link as usize], link);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop(&mut links)).map(|(_, next)| next).collect();
        let start = EventKey::new(EventKind::FlowStart, 0);
        assert_eq!(order, [Next::Arrival(0), Next::Arrival(1), Next::Timer(start)]);
    }

    fn key_of(next: Next) -> EventKey {
        match next {
            Next::Arrival(link) => EventKey::new(EventKind::Arrival, link),
            Next::Timer(key) => key,
        }
    }

    proptest! {
        /// Whatever is pushed, taken out and pushed again while time goes on, events come out in the one order.
        #[test]
        fn events_come_out_in_order(
            horizon in 1u64..100_000,
            steps in prop::collection::vec((0u32..40, 0u64..300_000, any::<bool>(), 0u32..10), 1..400),
        ) {
            let mut links = links(40);
            let mut events = EventSet::new(horizon);
            let mut expected = std::collections::BTreeSet::new();
            let mut now = 0;
            for (index, (link, delay, timer, pops)) in steps.into_iter().enumerate() {
                let at = now + delay;
                let arrival = EventKey::new(EventKind::Arrival, link);
                let queued = expected.iter().find(|entry: &&(u64, EventKey)| entry.1 == arrival).copied();
                if timer {
                    let key = EventKey::new(EventKind::Sender, index as u32);
                    events.push_timer(Time::from_ps(at), key);
                    expected.insert((at, key));
                } else if let Some(entry) = queued {
                    events.remove_link(&mut links, link);
                    expected.remove(&entry);
                } else {
                    links[link as usize].head_arrive = at;
                    events.push_link(&mut links[link as usize], link);
                    expected.insert((at, arrival));
                }
                for _ in 0..pops {
                    let popped = events.pop(&mut links).map(|(time, next)| (time.as_ps(), key_of(next)));
                    prop_assert_eq!(popped, expected.pop_first());
                    now = popped.map_or(now, |event| event.0);
                }
            }
            while let Some(event) = expected.pop_first() {
                prop_assert_eq!(events.pop(&mut links).map(|(time, next)| (time.as_ps(), key_of(next))), Some(event));
            }
            prop_assert_eq!(events.pop(&mut links), None);
        }
    }
}
