//! The event set: what happens next.
//!
//! Arrivals on a link are in order, so only the packet at a link's head is here: at most one entry a link, in a timing
//! wheel threaded through the links themselves. Timers, and the rare head that is further away than the wheel
//! reaches, are in a binary heap.
//!
//! Order is total: by time, then by [`EventKey`] (links before timers, each by number). It is part of every result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_units::{Span, Time};

use super::link::Link;
use super::mail::Posted;
use super::pool::PacketIndex;

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
    /// Before any other of its instant.
    pub const FIRST: Self = Self(0);
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
    /// This packet, which was sent in another part, reaches the far end of this link, as the fabric numbers it.
    Mail(PacketIndex, u32),
    /// Anything else.
    Timer(EventKey),
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
    /// What comes by mail, sorted; what is before `next_mail` is done.
    mail: Vec<Posted>,
    next_mail: usize,
    /// Nothing from here on is taken out.
    limit: (u64, EventKey),
    /// The least time of the heap, the mail and the limit: an arrival before it comes first.
    stop: u64,
    /// The same without the mail.
    stop_but_mail: u64,
    /// The fabric's numbers of links, which order events; empty where links have no others.
    numbers: Vec<u32>,
}

impl EventSet {
    /// An empty set that is fast for events up to `horizon_ps` ahead. `numbers` are the fabric's numbers of links; empty where they
    /// have no others.
    pub fn new(horizon_ps: u64, numbers: Vec<u32>) -> Self {
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
            mail: Vec::new(),
            next_mail: 0,
            limit: (u64::MAX, EventKey(u64::MAX)),
            stop: u64::MAX,
            stop_but_mail: u64::MAX,
            numbers,
        }
    }

    /// Adds a timer.
    pub fn push_timer(&mut self, at: Time, key: EventKey) {
        self.heap.push(Reverse((at.as_ps(), key)));
        self.stop = self.stop.min(at.as_ps());
        self.stop_but_mail = self.stop_but_mail.min(at.as_ps());
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

    /// Adds what came by mail, and hands back what room it had for the mail before. All of that has been taken out.
    pub fn post(&mut self, mail: &mut Vec<Posted>) {
        debug_assert_eq!(self.next_mail, self.mail.len(), "mail of a window is taken out in that window");
        std::mem::swap(&mut self.mail, mail);
        self.next_mail = 0;
        // Stable: what comes by one link at one instant stays in the order in which it was sent.
        self.mail.sort_by_key(|&(time, link, _)| (time, link));
        self.find_stop();
    }

    /// Takes back the mail that has not been taken out, in order of time.
    pub fn take_back_mail(&mut self) -> Vec<Posted> {
        let left = self.mail.drain(self.next_mail..).collect();
        self.find_stop();
        left
    }

    fn find_stop(&mut self) {
        let timer = self.heap.peek().map_or(u64::MAX, |top| top.0.0);
        let mail = self.mail.get(self.next_mail).map_or(u64::MAX, |mail| mail.0);
        self.stop_but_mail = timer.min(self.limit.0);
        self.stop = mail.min(self.stop_but_mail);
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
            self.push_timer(Time::from_ps(time), EventKey::new(EventKind::Arrival, self.number_of(link)));
            return;
        }
        let rest = &self.batch[self.next..];
        let at = self.next + rest.partition_point(|&event| event < (time, link));
        self.batch.insert(at, (time, link));
    }

    /// Takes the next event, if there is one before the limit. Inlined by force, once a transport: as a call it takes more
    /// instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn pop(&mut self, links: &mut [Link]) -> Option<(Time, Next)> {
        loop {
            if let Some(&(time, link)) = self.batch.get(self.next) {
                if time < self.stop {
                    self.next += 1;
                    return Some((Time::from_ps(time), Next::Arrival(link)));
                }
                return self.pop_first(Some((time, link)));
            }
            let slot = match self.next_slot() {
                Some(slot) if self.stop >= slot << self.shift => slot,
                _ => return self.pop_first(None),
            };
            let index = slot as usize % SLOTS;
            let link = std::mem::replace(&mut self.slots[index], NONE);
            self.clear_occupied(index);
            self.loaded = slot;
            let entry = &links[link as usize];
            if entry.wheel_next == NONE && entry.head_arrive < self.stop {
                return Some((Time::from_ps(entry.head_arrive), Next::Arrival(link)));
            }
            self.load(links, link);
        }
    }

    /// When the next timer is due; none if no timer is pending.
    pub fn next_timer(&self) -> Option<Time> {
        self.heap.peek().map(|top| Time::from_ps(top.0.0))
    }

    /// Takes whatever comes first, if that is before the limit: `arrival`, which is the batch's next, mail, or a timer.
    #[inline(never)]
    fn pop_first(&mut self, arrival: Option<(u64, u32)>) -> Option<(Time, Next)> {
        let others = arrival.map_or(self.stop_but_mail, |(time, _)| time.min(self.stop_but_mail));
        if let Some(&(time, link, index)) = self.mail.get(self.next_mail)
            && time < others
        {
            self.next_mail += 1;
            let next = self.mail.get(self.next_mail).map_or(u64::MAX, |mail| mail.0);
            self.stop = next.min(self.stop_but_mail);
            if arrival.is_none() {
                self.loaded = self.loaded.max(time >> self.shift);
            }
            return Some((Time::from_ps(time), Next::Mail(index, link)));
        }
        self.pop_first_of_several(arrival)
    }

    /// The same where several may be at one instant, or a timer or the limit is first.
    #[cold]
    fn pop_first_of_several(&mut self, arrival: Option<(u64, u32)>) -> Option<(Time, Next)> {
        let by_link = |link| EventKey::new(EventKind::Arrival, link);
        let of_batch = arrival.map(|(time, link)| (time, by_link(self.number_of(link))));
        let of_mail = self.mail.get(self.next_mail).map(|&(time, link, _)| (time, by_link(link)));
        let of_heap = self.heap.peek().map(|top| top.0);
        let first = [of_batch, of_mail, of_heap].into_iter().flatten().min();
        let (time, key) = first.filter(|first| *first < self.limit)?;
        if let Some((_, link)) = arrival.filter(|_| of_batch == first) {
            self.next += 1;
            return Some((Time::from_ps(time), Next::Arrival(link)));
        }
        let next = if of_mail == first {
            self.next_mail += 1;
            let (_, link, index) = self.mail[self.next_mail - 1];
            Next::Mail(index, link)
        } else {
            self.heap.pop();
            self.what(key)
        };
        self.find_stop();
        if self.next == self.batch.len() {
            // Nothing is pending up to this time: what is pushed from now on for its slot belongs to the batch.
            self.loaded = self.loaded.max(time >> self.shift);
        }
        Some((Time::from_ps(time), next))
    }

    /// The next event's time and key, whatever the limit; none if nothing is pending.
    pub fn peek(&mut self, links: &[Link]) -> Option<(Time, EventKey)> {
        let mail = self
            .mail
            .get(self.next_mail)
            .map(|&(time, link, _)| (time, EventKey::new(EventKind::Arrival, link)));
        let timer = self.heap.peek().map(|top| top.0);
        let other = [mail, timer].into_iter().flatten().min();
        if self.next == self.batch.len() {
            let before = |slot: &u64| other.is_none_or(|(time, _)| slot << self.shift <= time);
            if let Some(slot) = self.next_slot().filter(before) {
                let index = slot as usize % SLOTS;
                let link = std::mem::replace(&mut self.slots[index], NONE);
                self.clear_occupied(index);
                self.loaded = slot;
                self.load(links, link);
            }
        }
        let arrival = self.batch.get(self.next);
        let arrival =
            arrival.map(|&(time, link)| (time, EventKey::new(EventKind::Arrival, self.number_of(link))));
        [arrival, other].into_iter().flatten().min().map(|(time, key)| (Time::from_ps(time), key))
    }

    /// What an entry of the heap stands for.
    fn what(&self, key: EventKey) -> Next {
        match key.kind() {
            EventKind::Arrival => {
                let place = self.numbers.binary_search(&key.entity()).map(|place| place as u32);
                Next::Arrival(if self.numbers.is_empty() { key.entity() } else { place.unwrap_or(NONE) })
            }
            _ => Next::Timer(key),
        }
    }

    /// The fabric's number of a link.
    fn number_of(&self, link: u32) -> u32 {
        self.numbers.get(link as usize).copied().unwrap_or(link)
    }

    /// The time of the next event, or of the slot of the wheel that it is in; none if nothing is pending. The limit is none of it.
    pub fn next_time(&self) -> Option<Time> {
        let batch = self.batch.get(self.next).map(|event| event.0);
        let wheel = if batch.is_some() { batch } else { self.next_slot().map(|slot| slot << self.shift) };
        let mail = self.mail.get(self.next_mail).map(|mail| mail.0);
        let timer = self.heap.peek().map(|top| top.0.0);
        [wheel, mail, timer].into_iter().flatten().min().map(Time::from_ps)
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
        let key = EventKey::new(EventKind::Arrival, self.number_of(link));
        self.heap.retain(|entry| entry.0.1 != key);
        self.find_stop();
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
        let mut events = EventSet::new(1_000, Vec::new());
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
            Next::Mail(place, _) => EventKey::new(EventKind::Arrival, 1_000 + place),
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
            let mut events = EventSet::new(horizon, Vec::new());
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

        /// In windows, with mail from elsewhere, events come out in the one order, and none of a later window.
        #[test]
        fn windows_hold_their_events_in_order(
            width in 50u64..5_000,
            horizon in 1u64..20_000,
            windows in prop::collection::vec(
                prop::collection::vec((0u32..20, 0u64..15_000, 0u8..3), 0..12), 1..60),
        ) {
            // Links have every other number of the fabric, so that mail comes between them.
            let mut links = links(20);
            let mut events = EventSet::new(horizon, (0..20).map(|link| 2 * link).collect());
            let mut expected = std::collections::BTreeSet::new();
            let mut under_way = Vec::new();
            for (window, steps) in windows.iter().enumerate() {
                let (begin, end) = (window as u64 * width, (window as u64 + 1) * width);
                events.set_limit(Time::from_ps(begin), EventKey(0));
                prop_assert_eq!(events.pop(&mut links), None, "the window before is done");
                for &(number, delay, kind) in steps {
                    let at = begin + delay;
                    let arrival = EventKey::new(EventKind::Arrival, 2 * number);
                    match kind {
                        0 if !expected.iter().any(|entry: &(u64, EventKey)| entry.1 == arrival) => {
                            links[number as usize].head_arrive = at;
                            events.push_link(&mut links[number as usize], number);
                            expected.insert((at, arrival));
                        }
                        1 => {
                            let key = EventKey::new(EventKind::Sender, number);
                            if expected.insert((at, key)) {
                                events.push_timer(Time::from_ps(at), key);
                            }
                        }
                        _ => under_way.push((at, 2 * number + 1, number)),
                    }
                }
                under_way.sort_unstable();
                under_way.dedup_by_key(|mail: &mut Posted| (mail.0, mail.1));
                let due = under_way.partition_point(|mail| mail.0 < end);
                let mut mail: Vec<Posted> = under_way.drain(..due).collect();
                expected.extend(mail.iter().map(|mail| (mail.0, EventKey::new(EventKind::Arrival, mail.1))));
                events.post(&mut mail);
                events.set_limit(Time::from_ps(end), EventKey(0));
                while let Some((time, next)) = events.pop(&mut links) {
                    let key = match next {
                        Next::Arrival(link) => EventKey::new(EventKind::Arrival, 2 * link),
                        Next::Mail(_, link) => EventKey::new(EventKind::Arrival, link),
                        Next::Timer(key) => key,
                    };
                    prop_assert!(time.as_ps() < end);
                    prop_assert_eq!(Some((time.as_ps(), key)), expected.pop_first());
                }
                prop_assert!(expected.first().is_none_or(|event| event.0 >= end));
                prop_assert!(events.next_time().is_none_or(|time| time.as_ps() <= expected.first().map_or(0, |event| event.0)));
            }
        }
    }
}
