//! A port with several classes: queues, each with its admission, and a scheduler.
//!
//! Which class sends next is not known before the transmitter is free, so what waits goes into
//! service one by one (`service.rs`): at once, or late, where nobody looks. A class may be held
//! back by a token bucket: so are the credits of a transport that has any. They go first once the
//! bucket has enough for one, and all else takes the rest of the link.

use std::collections::VecDeque;
use std::sync::Arc;

use weft_packet::Packet;
use weft_topology::{ClassSpec, LinkSpec, Marking, Scheduling};
use weft_transport::CreditPorts;
use weft_units::{Span, Time};

use super::admission::Red;
use super::drops::DropCause;
use super::host::Gate;
use super::link::{Finishing, Profile};
use super::network::Network;
use super::scheduler::{Rounds, Scheduler};

mod ahead;
mod backlog;
mod class;
mod classes;
mod leaving;
mod offer;
mod open;
mod pausing;
mod planned;
mod rules;
mod service;

pub use class::ClassTotals;
use class::{Beside, ClassQueue, Rare, Waiting};
use classes::Classes;
use pausing::Pausing;
pub use pausing::{PauseFrame, PauseTotals};
use planned::{Ahead, Planned};
use rules::{KnownRules, MOST, Origin, PortRules};

/// One port, apart from its [`Link`], whose list holds what is in service or on the wire. What
/// nearly every packet needs of it is the first line, and one line for each class, which follow.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ScheduledPort {
    /// One for all ports whose classes hold and admit the same.
    rules: Arc<PortRules>,
    /// State that few packets need, by class.
    rare: Box<[Rare]>,
    /// When the transmitter is free, in ps.
    free_at: u64,
    /// When something that waits goes into service next, if nothing else comes, in ps; `u64::MAX`
    /// if nothing waits.
    serves_at: u64,
    /// Bytes that wait, in all classes.
    waiting_bytes: u64,
    /// The size of the packet that went into service last.
    serving_bytes: u16,
    /// In which classes something waits, one bit each: those where nothing does are not even looked
    /// at.
    waits: u16,
    /// Whether nobody watches it, and what it sends arrives, in this part.
    is_plain: bool,
    /// Whether, with strict priority too, a packet may pass it by without waiting.
    is_quick: bool,
    /// Whether, moreover, it may say late what it sends: see `service.rs`.
    is_late: bool,
    /// Whether, what it sends goes to other parts, it may say at the end of the window what it
    /// sent: see `leaving.rs`.
    leaves: bool,
    /// Whether, then, it is among those that have something to say.
    is_listed: bool,
    /// Whether priority is strict.
    is_strict: bool,
    /// Whether each of its own classes counts what comes to it.
    is_counted: bool,
    /// Whether there is more to do for a packet that goes onto the link at once: it is counted, or
    /// leaves.
    has_more: bool,
    /// Whether it keeps something beside each packet that waits.
    keeps_beside: bool,
    /// Whether there may be something ahead of its time.
    has_ahead: bool,
    /// Where its own classes begin: before them are those of pauses and of credits.
    first_own: u8,
    /// Class of the packets that were put on the link before their time.
    ahead_class: u8,
    classes: Classes,
    /// Packets that were put on the link before their time, by a port that is late: all of one
    /// class, in order. The time of some of them may have come since.
    ahead: Planned,
    /// The earliest event that is pending for this port, in ps; `u64::MAX` if there is none.
    wakes_at: u64,
    aside: Box<Aside>,
}

/// State that few ports need.
#[derive(Debug)]
struct Aside {
    scheduler: Scheduler,
    /// The most bytes that were queued since somebody last asked.
    peak_bytes: u64,
    /// Pauses that the node behind the link requested; none if nobody pauses.
    pausing: Option<Box<Pausing>>,
    /// By class, what is kept beside the packets that wait, in their order; empty if nothing is.
    beside: Box<[VecDeque<Beside>]>,
    finishing: Finishing,
}

impl ScheduledPort {
    /// The port of a link: the classes that the topology gives it, or one, behind classes of pauses
    /// and of credits, if there are any. `largest` is what the largest packet takes on the wire, in
    /// bytes.
    fn new(
        spec: &LinkSpec,
        has_pauses: bool,
        credits: Option<&CreditPorts>,
        largest: u64,
        run: (u64, u32, &Profile),
        known: &mut KnownRules,
    ) -> Self {
        let (seed, link, profile) = run;
        let origin = Origin::new(spec, has_pauses, credits.map(|rules| rules.queue), profile);
        let rules = known.of(origin, profile);
        let first_own = usize::from(has_pauses) + usize::from(credits.is_some());
        let own = (0u64..).zip(rules.own()).map(|(number, class)| {
            let draws = matches!(class.queue.marking, Marking::Red { .. } | Marking::Leaving { .. });
            let entity = number << 32 | u64::from(link);
            Rare { stream: draws.then(|| Red::stream(seed, entity)), ..Rare::default() }
        });
        let rare: Box<[Rare]> = std::iter::repeat_with(Rare::default).take(first_own).chain(own).collect();
        debug_assert!(rare.len() <= MOST, "one bit each");
        let of_pauses = has_pauses.then_some(ClassQueue::EMPTY);
        let of_credits = credits.map(|rules| ClassQueue::of_credits(rules, profile));
        let own = rules.own().iter().map(|_| ClassQueue::EMPTY);
        let classes = Classes::new(of_pauses.into_iter().chain(of_credits).chain(own));
        let scheduler = match spec.classes.as_deref() {
            Some(spec) if spec.scheduling == Scheduling::Weighted => {
                let quantum = |class: &ClassSpec| u64::from(class.weight) * largest;
                Scheduler::weighted(first_own, Rounds::new(spec.classes.iter().map(quantum).collect()))
            }
            _ => Scheduler::STRICT,
        };
        let pausing = has_pauses.then(|| Box::new(Pausing::new(rules.own().len())));
        Self {
            rules,
            rare,
            free_at: 0,
            serves_at: u64::MAX,
            waiting_bytes: 0,
            serving_bytes: 0,
            waits: 0,
            is_plain: false,
            is_quick: false,
            is_late: false,
            leaves: false,
            is_listed: false,
            is_strict: scheduler.is_strict(),
            is_counted: spec.classes.is_some(),
            has_more: spec.classes.is_some(),
            keeps_beside: false,
            has_ahead: false,
            first_own: first_own as u8,
            ahead_class: 0,
            classes,
            ahead: Planned::new(),
            wakes_at: u64::MAX,
            aside: Box::new(Aside {
                scheduler,
                peak_bytes: 0,
                pausing,
                beside: Box::default(),
                finishing: Finishing::default(),
            }),
        }
    }

    /// Whether it keeps something beside each packet that waits, from now on: before the first one.
    fn keep_beside(&mut self, keeps: bool) {
        self.keeps_beside = keeps;
        let classes = if keeps { self.rare.len() } else { 0 };
        self.aside.beside = std::iter::repeat_with(VecDeque::new).take(classes).collect();
    }

    /// How many packets are on the link ahead of their time.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn count_ahead(&mut self, now: u64) -> usize {
        if !self.has_ahead {
            return 0;
        }
        let count = self.ahead.count(now);
        self.has_ahead = count > 0;
        count
    }

    /// Sends a packet of this class and size that comes now at once, if that is how it is at a port
    /// that nobody watches: the port is free, and what waits there is held back. False if it is not
    /// sent.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn passes(&mut self, class: usize, now: u64, (wire_bytes, service_ps): (u16, u64)) -> bool {
        // As `is_free` has it, one by one: that is fewer instructions.
        if self.free_at > now || self.serves_at <= now || !self.is_quick {
            return false;
        }
        let Some(queue) = self.classes.get_mut(class) else { return false };
        if !queue.takes_alone(service_ps, self.rules.first(class)) || !queue.lets_go(now, wire_bytes) {
            return false;
        }
        self.begin_service(now, wire_bytes, service_ps);
        self.serves_at = self.serves_at.max(self.free_at);
        true
    }

    /// Where its own classes begin.
    #[inline]
    const fn first_own(&self) -> usize {
        self.first_own as usize
    }

    /// Whether each of its own classes counts what comes to it.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    const fn counts(&self) -> bool {
        self.is_counted
    }

    /// Counts a packet that a class took, behind so many bytes, if it counts.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn note(&mut self, class: usize, wire_bytes: u16, found_bytes: u64) {
        if self.counts()
            && let Some(queue) = self.classes.get_mut(class)
        {
            queue.note(wire_bytes, found_bytes);
        }
    }

    /// Lets a packet wait in its class, and finds out whether that changes when the port sends
    /// next.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn push(&mut self, class: usize, waiting: Waiting, packets: &mut [Packet], now: u64) {
        let Waiting { index, wire_bytes, service_ps, beside } = waiting;
        let queue = &mut self.classes[class];
        queue.push(index, (wire_bytes, service_ps), packets);
        let ready_at = queue.ready_at;
        if self.keeps_beside {
            self.aside.beside[class].push_back(beside);
        }
        self.waits |= 1 << class;
        self.waiting_bytes += u64::from(wire_bytes);
        self.serves_at = self.serves_at.min(ready_at.max(self.free_at).max(now));
    }

    /// Takes the first packet of a class into service.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn take(&mut self, class: usize, now: u64, packets: &[Packet], profile: &Profile) -> Option<Waiting> {
        let queue = &mut self.classes[class];
        let (index, wire_bytes, service_ps) = queue.pop(now, packets, profile)?;
        if queue.len() == 0 {
            self.waits &= !(1 << class);
            if !self.is_strict {
                self.aside.scheduler.emptied(class);
            }
        }
        let beside = if self.keeps_beside { self.aside.beside[class].pop_front() } else { None };
        self.waiting_bytes -= u64::from(wire_bytes);
        self.begin_service(now, wire_bytes, service_ps);
        Some(Waiting { index, wire_bytes, service_ps, beside: beside.unwrap_or(Beside::NOTHING) })
    }

    /// A packet that was on the link before its time waits again, before all others of its class.
    fn put_back(&mut self, ahead: &Ahead, packets: &mut [Packet]) {
        let Ahead { wire_bytes, service_ps, free_at, .. } = *ahead;
        let class = usize::from(self.ahead_class);
        self.classes[class].put_back(ahead.index, service_ps, ahead.tokens, packets);
        debug_assert!(!self.keeps_beside, "the port is late");
        self.waits |= 1 << class;
        self.waiting_bytes += u64::from(wire_bytes);
        // What is in service is another packet again. How large it is, is asked where rates change:
        // not here.
        (self.free_at, self.serving_bytes) = (free_at, u16::MAX);
    }

    /// A packet goes into service.
    #[inline]
    const fn begin_service(&mut self, now: u64, wire_bytes: u16, service_ps: u64) {
        self.serving_bytes = wire_bytes;
        self.free_at = now + service_ps;
    }

    /// The class that sends next, if any may send now.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn next_class(&mut self, now: u64, packets: &[Packet], overhead_bytes: u64) -> Option<usize> {
        if self.is_strict {
            return self.waiting_classes().find(|&class| self.classes[class].ready_at <= now);
        }
        self.next_turn(now, packets, overhead_bytes)
    }

    #[inline(never)]
    fn next_turn(&mut self, now: u64, packets: &[Packet], overhead_bytes: u64) -> Option<usize> {
        let classes = &self.classes;
        self.aside.scheduler.next(self.rare.len(), |class| {
            let first = classes[class].first_bytes(packets).filter(|_| classes[class].ready_at <= now)?;
            Some(u64::from(first) + overhead_bytes)
        })
    }

    /// The classes in which something waits, in order.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn waiting_classes(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.waits;
        std::iter::from_fn(move || {
            let class = left.trailing_zeros() as usize;
            let some = left != 0;
            left &= left.wrapping_sub(1);
            some.then_some(class)
        })
    }

    /// Whether a packet that comes now finds the transmitter free, and nothing that is to be sent
    /// now. What became free at this very instant, and is to be sent, comes first: its event is the
    /// last of the instant.
    #[inline]
    const fn is_free(&self, now: u64) -> bool {
        self.free_at <= now && self.serves_at > now
    }

    /// The next moment when this port may send something that waits, in ps, or `u64::MAX`.
    #[inline]
    fn next_service(&self) -> u64 {
        let ready = self.waiting_classes().map(|class| self.classes[class].ready_at).fold(u64::MAX, u64::min);
        if ready == u64::MAX { u64::MAX } else { ready.max(self.free_at) }
    }

    /// How long that takes to send, in ps, that waits and is not held back.
    fn drains_ps(&self) -> u64 {
        self.classes.iter().map(ClassQueue::drains_ps).sum()
    }

    /// Time that the packet in service still takes, in ps.
    const fn rest_ps(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }

    /// Which of the port's own classes holds a packet; none if it is one of pauses or credits.
    pub fn own_class_of(&self, packet: &Packet) -> Option<u8> {
        self.rules.class_of(packet).checked_sub(self.first_own()).map(|own| own as u8)
    }

    /// The link has this profile from now on.
    fn follow(&mut self, profile: &Profile, packets: &[Packet]) {
        self.rules = self.rules.follow(profile);
        self.classes.iter_mut().for_each(|queue| queue.follow(profile, packets));
    }

    /// Totals of its own classes.
    fn own_totals(&self) -> impl Iterator<Item = ClassTotals> {
        let all = self.classes.iter().zip(&self.rare).map(|(queue, rare)| queue.totals(rare));
        all.skip(self.first_own())
    }

    /// Packets that got a congestion mark in any of its classes.
    pub fn marked(&self) -> u64 {
        self.rare.iter().map(|rare| rare.marked).sum()
    }
}

impl Network<'_> {
    /// The class of a link's port that a packet belongs to; 0 where it has one.
    pub(super) fn class_of(&self, link: u32, packet: &Packet) -> usize {
        let port = self.state.scheduled.get(link as usize).and_then(Option::as_ref);
        port.map_or(0, |port| port.rules.class_of(packet))
    }

    /// Whether a packet of this class that is asked for when there is room may come to a link's
    /// port: if none of the class waits. None where the port has one queue.
    pub(super) fn class_gate(&self, link: u32, class: usize) -> Option<Gate> {
        let port = self.state.scheduled.get(link as usize).and_then(Option::as_ref)?;
        let queue = port.classes.get(class)?;
        if queue.len() == 0 {
            return Some(Gate::Open);
        }
        // It waits for the transmitter, or for what holds its class back.
        let at = Time::from_ps(port.free_at.max(queue.ready_at));
        if at == Time::NEVER {
            return Some(Gate::Shut);
        }
        // What goes into service at this very instant does so behind all else that happens then:
        // nobody would ask again.
        Some(Gate::Until(at.max(self.now + Span::from_ps(1))))
    }

    /// Whether credits have queues of their own.
    pub(super) const fn has_credit_ports(&self) -> bool {
        self.has_credits
    }

    /// Which of a port's own classes this is; none if it is one of pauses or credits.
    pub(super) fn own_class(&self, link: u32, class: usize) -> Option<u8> {
        let port = self.state.scheduled.get(link as usize).and_then(Option::as_ref)?;
        class.checked_sub(port.first_own()).map(|own| own as u8)
    }

    /// Totals of each own class of a port, if it counts them.
    pub(super) fn class_totals(&self, link: usize) -> impl Iterator<Item = (u8, ClassTotals)> + use<'_> {
        let port = self.state.scheduled.get(link).and_then(Option::as_ref).filter(|port| port.counts());
        (0..).zip(port.into_iter().flat_map(ScheduledPort::own_totals))
    }

    /// How long each own class of a port was paused until now, by the link to blame.
    pub(super) fn pause_totals(&mut self, link: usize) -> Vec<((u8, u32), PauseTotals)> {
        let now = self.now;
        let port = self.state.scheduled.get_mut(link).and_then(Option::as_mut);
        port.and_then(|port| port.aside.pausing.as_mut()).map_or_else(Vec::new, |pausing| pausing.totals(now))
    }

    /// Whether a port has several classes.
    pub(super) fn is_scheduled(&self, link: u32) -> bool {
        self.state.scheduled.get(link as usize).is_some_and(Option::is_some)
    }

    /// The link changed its rate or delay: what waits follows the new ones.
    pub(super) fn requeue(&mut self, link: u32) {
        let profile = &self.state.profiles[self.state.links[link as usize].profile];
        let Some(port) = self.state.scheduled[link as usize].as_mut() else { return };
        port.follow(profile, self.pool.packets());
        self.settle_port(link);
    }

    /// The link went down: what waits is lost.
    pub(super) fn lose_queued(&mut self, link: u32) {
        let profile = &self.state.profiles[self.state.links[link as usize].profile];
        let Some(port) = self.state.scheduled.get_mut(link as usize).and_then(Option::as_mut) else {
            return;
        };
        let packets = self.pool.packets();
        let mut lost = Vec::new();
        for (class, queue) in port.classes.iter_mut().enumerate() {
            let mut beside =
                port.aside.beside.get_mut(class).map(std::mem::take).unwrap_or_default().into_iter();
            lost.extend(queue.clear(packets).into_iter().map(|index| (class, index, beside.next())));
            port.aside.scheduler.emptied(class);
        }
        port.follow(profile, packets);
        (port.waiting_bytes, port.serving_bytes, port.free_at) = (0, 0, self.now.as_ps());
        (port.waits, port.serves_at) = (0, u64::MAX);
        if let Some(pausing) = &mut port.aside.pausing {
            pausing.lose();
        }
        for (class, index, beside) in lost {
            let came_by = beside.unwrap_or(Beside::NOTHING).came_by;
            self.release(link, class, came_by, self.pool[index].wire_bytes);
            self.drop_at(link, DropCause::Down, index);
        }
    }
}

#[cfg(test)]
mod tests;
