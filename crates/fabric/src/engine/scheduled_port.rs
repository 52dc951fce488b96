//! A port with several classes: queues, each with its admission, and a scheduler.
//!
//! Which class sends next is not known before the transmitter is free, so a port that has something waiting needs one
//! event more a packet. A class may be held back by a token bucket: so are the credits of a transport that has any. They
//! go first once the bucket has enough for one, and all else takes the rest of the link.

use weft_packet::{Kind, Packet};
use weft_topology::{ClassSpec, LinkSpec, Scheduling};
use weft_transport::CreditPorts;
use weft_units::Time;

use super::admission::{Admission, Found, Verdict};
use super::departures::is_among;
use super::event_set::{EventKey, EventKind, EventSet};
use super::link::{Link, NO_SPECIAL, Profile};
use super::network::{Network, PacketCounts, mark};
use super::pool::{NO_PACKET, PacketIndex, Pool};
use super::scheduler::{Rounds, Scheduler};
use super::special::{Peaks, Special};

mod class;

use class::{ClassQueue, Sorting, Waiting};

/// One port, apart from its [`Link`], whose list holds what is in service or on the wire.
#[derive(Debug)]
pub struct ScheduledPort {
    classes: Box<[ClassQueue]>,
    scheduler: Scheduler,
    sorting: Sorting,
    /// When the transmitter is free, in ps.
    free_at: u64,
    /// Whether nobody watches it, and what it sends arrives, in this part.
    is_plain: bool,
    /// The earliest event that is pending for this port, in ps; `u64::MAX` if there is none.
    wakes_at: u64,
    /// How long that takes to send, in ps, that waits and is not held back.
    drains_ps: u64,
    /// Bytes that wait, in all classes.
    waiting_bytes: u64,
    /// The size of the packet that went into service last.
    serving_bytes: u16,
    /// The most bytes that were queued since somebody last asked.
    peak_bytes: u64,
}

impl ScheduledPort {
    /// The port of a link: the classes that the topology gives it, or one, behind a class of credits, if there are any.
    /// `largest` is what the largest packet takes on the wire, in bytes.
    fn new(spec: &LinkSpec, credits: Option<&CreditPorts>, largest: u64, run: (u64, u32, &Profile)) -> Self {
        let (seed, link, profile) = run;
        let one = [ClassSpec { queue: spec.queue, weight: 1 }];
        let (specs, scheduling, class_of) = match spec.classes.as_deref() {
            Some(spec) => (spec.classes.as_slice(), spec.scheduling, spec.class_of),
            None => (one.as_slice(), Scheduling::Strict, [0; 5]),
        };
        let own = specs.iter().zip(0u64..).map(|(class, number)| {
            ClassQueue::new(Admission::own(class.queue, profile.rate, seed, number << 32 | u64::from(link)))
        });
        let of_credits = credits.map(|rules| ClassQueue::of_credits(rules, profile));
        let classes: Box<[ClassQueue]> = of_credits.into_iter().chain(own).collect();
        let scheduler = match scheduling {
            Scheduling::Strict => Scheduler::STRICT,
            Scheduling::Weighted => {
                let quanta = specs.iter().map(|class| u64::from(class.weight) * largest).collect();
                Scheduler::weighted(classes.len() - specs.len(), Rounds::new(quanta))
            }
        };
        Self {
            classes,
            scheduler,
            sorting: Sorting { has_credits: credits.is_some(), class_of },
            free_at: 0,
            is_plain: false,
            wakes_at: u64::MAX,
            drains_ps: 0,
            waiting_bytes: 0,
            serving_bytes: 0,
            peak_bytes: 0,
        }
    }

    /// Lets a packet wait in its class.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn push(&mut self, class: usize, waiting: Waiting, wire_bytes: u16, service_ps: u64) {
        let queue = &mut self.classes[class];
        queue.push(waiting, wire_bytes, service_ps);
        if queue.bucket.is_none() {
            self.drains_ps += service_ps;
        }
        self.waiting_bytes += u64::from(wire_bytes);
    }

    /// Takes the first packet of a class, which must have one, into service.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn take(&mut self, class: usize, profile: &Profile, now: u64, pool: &Pool) -> Option<Waiting> {
        let queue = &mut self.classes[class];
        let taken = queue.first()?;
        let wire_bytes = pool[taken.index].wire_bytes;
        let service_ps = profile.service_ps(wire_bytes);
        queue.pop(now, (wire_bytes, service_ps), pool);
        if queue.bucket.is_none() {
            self.drains_ps -= service_ps;
        }
        if queue.ready_at == u64::MAX {
            self.scheduler.emptied(class);
        }
        self.waiting_bytes -= u64::from(wire_bytes);
        self.begin_service(now, wire_bytes, service_ps);
        Some(taken)
    }

    /// A packet goes into service.
    #[inline]
    const fn begin_service(&mut self, now: u64, wire_bytes: u16, service_ps: u64) {
        self.serving_bytes = wire_bytes;
        self.free_at = now + service_ps;
    }

    /// The class that sends next, if any may send now.
    #[inline]
    fn next_class(&mut self, now: u64, pool: &Pool, overhead_bytes: u64) -> Option<usize> {
        let classes = &self.classes;
        if self.scheduler.is_strict() {
            return classes.iter().position(|queue| queue.ready_at <= now);
        }
        self.scheduler.next(classes.len(), |class| {
            let first = classes[class].first().filter(|_| classes[class].ready_at <= now)?;
            Some(u64::from(pool[first.index].wire_bytes) + overhead_bytes)
        })
    }

    /// Whether a packet that comes now to the free port may go into service without waiting, ahead of all that waits: that is
    /// held back, since nothing else waits at a free port.
    #[inline]
    fn sends_at_once(&self, class: usize, wire_bytes: u16, now: u64) -> bool {
        let queue = &self.classes[class];
        queue.len() == 0 && self.scheduler.is_strict() && queue.may_leave_at(wire_bytes) <= now
    }

    /// Whether nothing is queued, in any class, nothing in service, and no turns to be kept.
    #[inline]
    const fn is_idle(&self, now: u64) -> bool {
        self.waiting_bytes == 0 && self.free_at <= now && self.scheduler.is_strict()
    }

    /// The next moment when this port may send something that waits, in ps, or `u64::MAX`.
    #[inline]
    fn next_service(&self) -> u64 {
        let ready = self.classes.iter().map(|queue| queue.ready_at).fold(u64::MAX, u64::min);
        if ready == u64::MAX { u64::MAX } else { ready.max(self.free_at) }
    }

    /// What is left of the packet in service, in ps.
    const fn rest_ps(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }

    /// Bytes that are queued now in all classes, with what is left of the packet in service.
    pub fn backlog_bytes(&self, now: u64, profile: &Profile) -> u64 {
        // At a rate that is another one by now, what is left may seem to be more.
        self.waiting_bytes + profile.bytes_in(self.rest_ps(now)).min(u64::from(self.serving_bytes))
    }

    /// The most bytes that were queued since this was last asked; `backlog_bytes` are queued now.
    pub const fn take_peak(&mut self, backlog_bytes: u64) -> u64 {
        std::mem::replace(&mut self.peak_bytes, backlog_bytes)
    }

    /// How long all that takes to send, in ps, that would be sent before a packet that comes now, if nothing else comes.
    pub fn ahead_of_ps(&self, packet: &Packet, now: u64) -> u64 {
        let own = self.sorting.class_of(packet);
        // What is held back goes at its own pace, and only its own class waits for it.
        let waiting = |class: usize| {
            let queue = &self.classes[class];
            if class == own { queue.waiting_ps } else { queue.drains_ps() }
        };
        self.rest_ps(now).saturating_add(self.scheduler.ahead_of(own, waiting))
    }

    /// How long it is until a packet that comes now would be sent, in ps, if nothing else comes.
    pub fn wait_of_ps(&self, packet: &Packet, now: u64, profile: &Profile) -> u64 {
        let queue = &self.classes[self.sorting.class_of(packet)];
        let held = queue.bucket.as_ref().map_or(0, |bucket| {
            let before = profile.bytes_in(queue.waiting_ps);
            bucket.ready_behind(now, before, packet.wire_bytes).saturating_sub(now)
        });
        self.ahead_of_ps(packet, now).max(held)
    }
}

impl Network<'_> {
    /// Gives every port a credit queue. Before the first packet.
    pub fn open_credit_ports(&mut self, rules: &CreditPorts) {
        self.has_credits = true;
        self.open_ports(Some(rules));
    }

    /// Gives ports their classes, if they have several. Before the first packet.
    pub(super) fn open_ports(&mut self, credits: Option<&CreditPorts>) {
        let topology = self.topology;
        if credits.is_none() && self.site.specs().all(|spec| spec.classes.is_none()) {
            return;
        }
        let largest = u64::from(self.max_wire_bytes) + u64::from(topology.overhead_bytes);
        let port = |(spec, link): (&LinkSpec, u32)| {
            let profile = &self.state.profiles[self.state.links[link as usize].profile];
            let run = (self.seed, self.site.number(link), profile);
            let has_several = credits.is_some() || spec.classes.is_some();
            has_several.then(|| Box::new(ScheduledPort::new(spec, credits, largest, run)))
        };
        self.state.scheduled = self.site.specs().zip(0u32..).map(port).collect();
        for (link, port) in self.state.links.iter_mut().zip(&self.state.scheduled) {
            link.is_special |= port.is_some();
        }
    }

    /// Finds the ports that nobody watches. Before the first packet, when all are known that do.
    pub(super) fn find_plain_ports(&mut self) {
        for (link, port) in self.state.links.iter().zip(&mut self.state.scheduled) {
            if let Some(port) = port {
                let is_watched = link.special != NO_SPECIAL || is_among(link.tier, self.seen);
                port.is_plain = !is_watched && self.office.is_none();
            }
        }
    }

    /// Whether credits have queues of their own.
    pub(super) const fn has_credit_ports(&self) -> bool {
        self.has_credits
    }

    /// Whether a port has several classes.
    pub(super) fn is_scheduled(&self, link: u32) -> bool {
        self.state.scheduled.get(link as usize).is_some_and(Option::is_some)
    }

    /// A packet comes to a port: into service, into the queue of its class, or dropped.
    #[inline(never)]
    pub(super) fn offer(&mut self, link: u32, index: PacketIndex) {
        let (now, at) = (self.now.as_ps(), link as usize);
        let state = &mut self.state.links[at];
        let profile = &self.state.profiles[state.profile];
        let (Some(port), packet) = (self.state.scheduled[at].as_deref_mut(), &mut self.pool[index]) else {
            return;
        };
        let is_plain = port.is_plain;
        let (class, wire_bytes) = (port.sorting.class_of(packet), packet.wire_bytes);
        let (rest_ps, service) = (port.rest_ps(now), profile.service_ps(wire_bytes));
        let is_idle = is_plain && port.is_idle(now);
        let queue = &mut port.classes[class];
        // What comes to an idle port goes at once, unless it needs tokens that are not there.
        if is_idle && queue.passes_idle(wire_bytes, service, now) {
            queue.spend(now, wire_bytes);
            port.begin_service(now, wire_bytes, service);
            state.busy_until = port.free_at;
            let arrive = port.free_at + profile.delay_ps;
            count(state, packet, &mut self.counts);
            return put_behind(state, &mut self.pool, &mut self.events, (link, index, arrive));
        }
        let waiting = queue.len() as u32;
        let backlog_ps = rest_ps + queue.waiting_ps;
        let found = Found { backlog_ps, packets: waiting + u32::from(rest_ps > 0), waiting };
        let is_up = is_plain || self.specials.get(state.special as usize).is_none_or(Special::is_up);
        let judge = |admission: &mut Admission| {
            admission.judge(packet, service, found, || profile.bytes_in(backlog_ps))
        };
        match if is_up { judge(&mut queue.admission) } else { Verdict::Drop } {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[at]),
            Verdict::Take => {}
        }
        count(state, packet, &mut self.counts);
        if !is_plain && self.peaks == Peaks::Kept {
            let bytes = port.backlog_bytes(now, profile) + u64::from(wire_bytes);
            port.peak_bytes = port.peak_bytes.max(bytes);
        }
        let entering = Waiting { index, found_ps: backlog_ps };
        // What became free at this very instant is served by the event that is pending for it.
        let is_free = port.free_at <= now && port.wakes_at != now;
        if is_free && port.sends_at_once(class, wire_bytes, now) {
            port.classes[class].spend(now, wire_bytes);
            port.begin_service(now, wire_bytes, service);
            if !is_plain {
                let sent_before = state.bytes - port.waiting_bytes - u64::from(wire_bytes);
                return self.send_off_watched(link, entering, sent_before, true);
            }
            let arrive = port.free_at + profile.delay_ps;
            put_behind(state, &mut self.pool, &mut self.events, (link, index, arrive));
            return settle(state, port, &mut self.events, (link, now));
        }
        packet.arrive = self.now;
        port.push(class, entering, wire_bytes, service);
        // With strict priority it is held back, as all that waits at a free port; where classes take turns, it may be its turn.
        if !is_free || port.scheduler.is_strict() {
            settle(state, port, &mut self.events, (link, now));
            if !is_plain {
                self.trace_offered(link, index);
            }
        } else {
            self.trace_offered(link, index);
            self.serve_by_turns(link);
        }
    }

    /// The event of a port is due.
    #[inline(never)]
    pub fn wake_port(&mut self, link: u32) {
        let (now, at) = (self.now.as_ps(), link as usize);
        let Some(port) = self.state.scheduled[at].as_deref_mut() else { return };
        if port.wakes_at != now {
            return;
        }
        port.wakes_at = u64::MAX;
        if port.free_at > now {
            settle(&mut self.state.links[at], port, &mut self.events, (link, now));
        } else {
            self.serve(link);
        }
    }

    #[inline(never)]
    fn serve_by_turns(&mut self, link: u32) {
        self.serve(link);
    }

    /// The transmitter is free: sends what may go next, if anything.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn serve(&mut self, link: u32) {
        let (now, at) = (self.now.as_ps(), link as usize);
        let state = &mut self.state.links[at];
        let profile = &self.state.profiles[state.profile];
        let Some(port) = self.state.scheduled[at].as_deref_mut() else { return };
        let sent_before = state.bytes - port.waiting_bytes;
        let next = port.next_class(now, &self.pool, u64::from(self.topology.overhead_bytes));
        let Some(taken) = next.and_then(|class| port.take(class, profile, now, &self.pool)) else {
            return settle(state, port, &mut self.events, (link, now));
        };
        let packet = &mut self.pool[taken.index];
        if packet.kind == Kind::Data {
            packet.add_wait_ps(state.tier as usize, now - packet.arrive.as_ps());
        }
        if !port.is_plain {
            return self.send_off_watched(link, taken, sent_before, false);
        }
        let arrive = port.free_at + profile.delay_ps;
        put_behind(state, &mut self.pool, &mut self.events, (link, taken.index, arrive));
        settle(state, port, &mut self.events, (link, now));
    }

    /// A packet went into service, where somebody wants to see that, the wire may lose it, or lead to another part. `comes` tells
    /// that it came to the port just now.
    #[inline(never)]
    fn send_off_watched(&mut self, link: u32, taken: Waiting, sent_before: u64, comes: bool) {
        let (index, at) = (taken.index, link as usize);
        if comes {
            self.trace_offered(link, index);
        }
        if self.sees(self.state.links[at].tier) {
            self.tell_of_service(link, index, sent_before, taken.found_ps);
        }
        let state = &self.state.links[at];
        let free_at = self.state.scheduled[at].as_deref().map_or(0, |port| port.free_at);
        let arrive = free_at + self.state.profiles[state.profile].delay_ps;
        let special = self.specials.get_mut(state.special as usize);
        if special.is_some_and(|special| special.vanishes(&self.pool[index])) {
            self.drop_at(link, index);
        } else {
            self.put_on_wire(link, index, arrive);
        }
        self.settle_port(link);
    }

    /// A packet goes behind those that are on the wire.
    pub(super) fn put_on_wire(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        if let Ok(arrive) = self.post(link, index, arrive) {
            self.put_on_list(link, index, arrive);
        }
    }

    /// The same for one that stays in this part.
    #[inline]
    pub(super) fn put_on_list(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let state = &mut self.state.links[link as usize];
        put_behind(state, &mut self.pool, &mut self.events, (link, index, arrive));
    }

    /// See [`settle`].
    fn settle_port(&mut self, link: u32) {
        let (now, at) = (self.now.as_ps(), link as usize);
        if let Some(port) = self.state.scheduled[at].as_deref_mut() {
            settle(&mut self.state.links[at], port, &mut self.events, (link, now));
        }
    }

    /// The link changed its rate or delay: what waits follows the new ones.
    pub(super) fn requeue(&mut self, link: u32) {
        let profile = &self.state.profiles[self.state.links[link as usize].profile];
        let Some(port) = self.state.scheduled[link as usize].as_deref_mut() else { return };
        port.classes.iter_mut().for_each(|queue| queue.follow(profile, &self.pool));
        port.drains_ps = port.classes.iter().map(ClassQueue::drains_ps).sum();
        self.settle_port(link);
    }

    /// The link went down: what waits is lost.
    pub(super) fn lose_queued(&mut self, link: u32) {
        let profile = &self.state.profiles[self.state.links[link as usize].profile];
        let Some(port) = self.state.scheduled.get_mut(link as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        let mut lost = Vec::new();
        for (class, queue) in port.classes.iter_mut().enumerate() {
            lost.extend(queue.clear());
            queue.follow(profile, &self.pool);
            port.scheduler.emptied(class);
        }
        (port.waiting_bytes, port.serving_bytes, port.free_at) = (0, 0, self.now.as_ps());
        port.drains_ps = 0;
        for waiting in lost {
            self.drop_at(link, waiting.index);
        }
    }
}

/// Counts a packet that a port took.
#[inline(always)]
#[allow(clippy::inline_always)]
fn count(state: &mut Link, packet: &Packet, counts: &mut PacketCounts) {
    state.bytes += u64::from(packet.wire_bytes);
    state.packets += 1;
    if packet.kind.is_of_scheme() {
        counts.control_bytes += u64::from(packet.wire_bytes);
    }
}

/// A packet goes behind those that are on a link's wire, to arrive at this time or, behind another one, later.
#[inline(always)]
#[allow(clippy::inline_always)]
fn put_behind(
    state: &mut Link,
    pool: &mut Pool,
    events: &mut EventSet,
    (link, index, arrive): (u32, PacketIndex, u64),
) {
    let tail = std::mem::replace(&mut state.tail, index);
    if tail == NO_PACKET {
        pool[index].arrive = Time::from_ps(arrive);
        (state.head, state.head_arrive) = (index, arrive);
        events.push_link(state, link);
    } else {
        // After a shorter delay came into force, the packet ahead may still be further away: FIFO holds.
        let ahead = &mut pool[tail];
        ahead.next = index;
        let arrive = arrive.max(ahead.arrive.as_ps());
        pool[index].arrive = Time::from_ps(arrive);
    }
}

/// Brings up to date what others read of a port, and makes sure that it wakes when it may send again.
#[inline(always)]
#[allow(clippy::inline_always)]
fn settle(state: &mut Link, port: &mut ScheduledPort, events: &mut EventSet, (link, now): (u32, u64)) {
    // Credits that cut in later delay the data behind them: nobody can know that yet.
    state.busy_until = port.free_at.max(now) + port.drains_ps;
    if port.waiting_bytes == 0 {
        return;
    }
    let next = port.next_service().max(now);
    if next < port.wakes_at {
        port.wakes_at = next;
        events.push_timer(Time::from_ps(next), EventKey::new(EventKind::Port, link));
    }
}

#[cfg(test)]
mod tests;
