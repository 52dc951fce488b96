//! A port with several classes: queues, each with its admission, and a scheduler.
//!
//! Which class sends next is not known before the transmitter is free, so a port that has something waiting needs one
//! event more a packet. A class may be held back by a token bucket: so are the credits of a transport that has any. They
//! go first once the bucket has enough for one, and all else takes the rest of the link.

use std::collections::VecDeque;

use weft_packet::{Kind, Packet};
use weft_topology::{ClassSpec, LinkSpec, Scheduling};
use weft_transport::CreditPorts;
use weft_units::{Rate, Time};

use super::admission::{Admission, Found, Verdict};
use super::event_set::{EventKey, EventKind};
use super::link::{Link, Profile};
use super::network::{Network, mark};
use super::pool::{NO_PACKET, PacketIndex, Pool};
use super::scheduler::{Rounds, Scheduler, TokenBucket};
use super::special::Special;

/// A packet that waits. Its `arrive` says since when.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    index: PacketIndex,
    /// What it found: see [`Found::backlog_ps`].
    found_ps: u64,
}

/// One class.
#[derive(Debug)]
struct ClassQueue {
    waiting: VecDeque<Waiting>,
    /// How long they take to send, in ps.
    waiting_ps: u64,
    admission: Admission,
    /// What holds it back.
    bucket: Option<TokenBucket>,
}

impl ClassQueue {
    const fn new(admission: Admission) -> Self {
        Self { waiting: VecDeque::new(), waiting_ps: 0, admission, bucket: None }
    }

    /// The class of credits: few wait, none is marked, and no more leave than their share of the link.
    fn of_credits(rules: &CreditPorts) -> Self {
        let bucket = Some(TokenBucket::new(*rules));
        Self { bucket, ..Self::new(Admission::Waiting(rules.queue)) }
    }

    /// When its first packet may leave, in ps; none if nothing waits.
    fn ready_at(&self, profile: &Profile, pool: &Pool) -> Option<u64> {
        let first = self.waiting.front()?;
        let ready = |bucket: &TokenBucket| bucket.ready_at(profile, pool[first.index].wire_bytes);
        Some(self.bucket.as_ref().map_or(0, ready))
    }

    /// What it adds to the drain time of the port: what is held back goes at its own pace, and nobody waits for it.
    const fn drains_ps(&self) -> u64 {
        if self.bucket.is_none() { self.waiting_ps } else { 0 }
    }
}

/// Which class a packet belongs to.
#[derive(Debug)]
struct Sorting {
    /// Whether the first class is that of credits.
    has_credits: bool,
    /// The class of the other packets by that of their flow; at last those of schemes.
    class_of: [u8; 5],
}

impl Sorting {
    fn class_of(&self, packet: &Packet) -> usize {
        let class = match packet.kind {
            Kind::Credit if self.has_credits => return 0,
            kind if kind.is_of_scheme() => self.class_of[4],
            _ => self.class_of[packet.flags.class() as usize],
        };
        usize::from(class) + usize::from(self.has_credits)
    }
}

/// One port, apart from its [`Link`], whose list holds what is in service or on the wire.
#[derive(Debug)]
pub struct ScheduledPort {
    classes: Box<[ClassQueue]>,
    scheduler: Scheduler,
    sorting: Sorting,
    /// When the transmitter is free, in ps.
    free_at: u64,
    /// The earliest event that is pending for this port, in ps; `u64::MAX` if there is none.
    wakes_at: u64,
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
    fn new(spec: &LinkSpec, credits: Option<&CreditPorts>, largest: u64, run: (u64, u32, Rate)) -> Self {
        let (seed, link, rate) = run;
        let one = [ClassSpec { queue: spec.queue, weight: 1 }];
        let (specs, scheduling, class_of) = match spec.classes.as_deref() {
            Some(spec) => (spec.classes.as_slice(), spec.scheduling, spec.class_of),
            None => (one.as_slice(), Scheduling::Strict, [0; 5]),
        };
        let own = specs.iter().zip(0u64..).map(|(class, number)| {
            ClassQueue::new(Admission::own(class.queue, rate, seed, number << 32 | u64::from(link)))
        });
        let classes: Box<[ClassQueue]> = credits.map(ClassQueue::of_credits).into_iter().chain(own).collect();
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
            wakes_at: u64::MAX,
            waiting_bytes: 0,
            serving_bytes: 0,
            peak_bytes: 0,
        }
    }

    /// Takes the first packet of a class, which must have one.
    fn take(&mut self, class: usize, profile: &Profile, now: u64, pool: &Pool) -> Option<Waiting> {
        let queue = &mut self.classes[class];
        let taken = queue.waiting.pop_front()?;
        let wire_bytes = pool[taken.index].wire_bytes;
        let service = profile.service_ps(wire_bytes);
        queue.waiting_ps -= service;
        if let Some(bucket) = &mut queue.bucket {
            bucket.take(profile, now, wire_bytes);
        }
        if queue.waiting.is_empty() {
            self.scheduler.emptied(class);
        }
        self.waiting_bytes -= u64::from(wire_bytes);
        self.serving_bytes = wire_bytes;
        self.free_at = now + service;
        Some(taken)
    }

    /// The next moment when this port may send something, in ps, or `u64::MAX`.
    fn next_service(&self, profile: &Profile, pool: &Pool) -> u64 {
        let ready = self.classes.iter().filter_map(|queue| queue.ready_at(profile, pool)).min();
        ready.map_or(u64::MAX, |ready| self.free_at.max(ready))
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
            bucket.ready_behind(profile, now, before, packet.wire_bytes).saturating_sub(now)
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
            let run = (self.seed, self.site.number(link), self.rate(link as usize));
            let has_several = credits.is_some() || spec.classes.is_some();
            has_several.then(|| Box::new(ScheduledPort::new(spec, credits, largest, run)))
        };
        self.scheduled = self.site.specs().zip(0u32..).map(port).collect();
        for (link, port) in self.links.iter_mut().zip(&self.scheduled) {
            link.is_special |= port.is_some();
        }
    }

    /// Whether credits have queues of their own.
    pub(super) const fn has_credit_ports(&self) -> bool {
        self.has_credits
    }

    /// Whether a port has several classes.
    pub(super) fn is_scheduled(&self, link: u32) -> bool {
        self.scheduled.get(link as usize).is_some_and(Option::is_some)
    }

    /// A packet comes to a port: into the queue of its class, or dropped.
    pub(super) fn offer(&mut self, link: u32, index: PacketIndex) {
        let (now, at) = (self.now.as_ps(), link as usize);
        let state = &mut self.links[at];
        let profile = &self.profiles[state.profile];
        let (Some(port), packet) = (self.scheduled[at].as_deref_mut(), &mut self.pool[index]) else { return };
        let class = port.sorting.class_of(packet);
        let (rest_ps, service) = (port.rest_ps(now), profile.service_ps(packet.wire_bytes));
        let queue = &mut port.classes[class];
        let waiting = queue.waiting.len() as u32;
        let backlog_ps = rest_ps + queue.waiting_ps;
        let found = Found { backlog_ps, packets: waiting + u32::from(rest_ps > 0), waiting };
        let is_up = self.specials.get(state.special as usize).is_none_or(Special::is_up);
        let judge = |admission: &mut Admission| {
            admission.judge(packet, service, found, || profile.bytes_in(backlog_ps))
        };
        match if is_up { judge(&mut queue.admission) } else { Verdict::Drop } {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[at]),
            Verdict::Take => {}
        }
        state.bytes += u64::from(packet.wire_bytes);
        state.packets += 1;
        packet.arrive = self.now;
        if packet.kind.is_of_scheme() {
            self.counts.control_bytes += u64::from(packet.wire_bytes);
        }
        queue.waiting.push_back(Waiting { index, found_ps: backlog_ps });
        queue.waiting_ps += service;
        port.waiting_bytes += u64::from(packet.wire_bytes);
        port.peak_bytes = port.peak_bytes.max(port.backlog_bytes(now, profile));
        // What became free at this very instant is served by the event that is pending for it.
        let is_free = port.free_at <= now && port.wakes_at != now;
        self.trace_offered(link, index);
        if is_free {
            self.serve(link);
        } else {
            self.settle(link);
        }
    }

    /// The event of a port is due.
    pub fn wake_port(&mut self, link: u32) {
        let now = self.now.as_ps();
        let Some(port) = self.scheduled[link as usize].as_deref_mut() else { return };
        if port.wakes_at != now {
            return;
        }
        port.wakes_at = u64::MAX;
        if port.free_at > now {
            self.settle(link);
        } else {
            self.serve(link);
        }
    }

    /// The transmitter is free: sends what may go next, if anything.
    fn serve(&mut self, link: u32) {
        let (now, at) = (self.now.as_ps(), link as usize);
        let state = &self.links[at];
        let profile = &self.profiles[state.profile];
        let Some(port) = self.scheduled[at].as_deref_mut() else { return };
        let (classes, pool, overhead) = (&port.classes, &self.pool, u64::from(self.topology.overhead_bytes));
        let ready = |class: usize| {
            let queue = &classes[class];
            queue.ready_at(profile, pool).filter(|&ready| ready <= now)?;
            queue.waiting.front().map(|first| u64::from(pool[first.index].wire_bytes) + overhead)
        };
        let next = port.scheduler.next(classes.len(), ready);
        let sent_before = state.bytes - port.waiting_bytes;
        let Some(taken) = next.and_then(|class| port.take(class, profile, now, &self.pool)) else {
            return self.settle(link);
        };
        let arrive = port.free_at + profile.delay_ps;
        let packet = &mut self.pool[taken.index];
        if packet.kind == Kind::Data {
            packet.add_wait_ps(state.tier as usize, now - packet.arrive.as_ps());
        }
        if self.sees(self.links[link as usize].tier) {
            self.tell_of_service(link, taken.index, sent_before, taken.found_ps);
        }
        let special = self.specials.get_mut(self.links[at].special as usize);
        if special.is_some_and(|special| special.vanishes(&self.pool[taken.index])) {
            self.drop_at(link, taken.index);
        } else {
            self.put_on_wire(link, taken.index, arrive);
        }
        self.settle(link);
    }

    /// A packet goes behind those that are on the wire.
    pub(super) fn put_on_wire(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        if let Ok(arrive) = self.post(link, index, arrive) {
            self.put_on_list(link, index, arrive);
        }
    }

    /// The same for one that stays in this part.
    pub(super) fn put_on_list(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let state = &mut self.links[link as usize];
        if state.tail == NO_PACKET {
            self.pool[index].arrive = Time::from_ps(arrive);
            (state.head, state.tail, state.head_arrive) = (index, index, arrive);
            self.events.push_link(state, link);
        } else {
            // After a shorter delay came into force, the packet ahead may still be further away: FIFO holds.
            let ahead = &mut self.pool[state.tail];
            ahead.next = index;
            let arrive = arrive.max(ahead.arrive.as_ps());
            self.pool[index].arrive = Time::from_ps(arrive);
            state.tail = index;
        }
    }

    /// Brings up to date what others read of the port, and makes sure that it wakes when it may send again.
    fn settle(&mut self, link: u32) {
        let now = self.now.as_ps();
        let state: &mut Link = &mut self.links[link as usize];
        let Some(port) = self.scheduled[link as usize].as_deref_mut() else { return };
        // Credits that cut in later delay the data behind them: nobody can know that yet.
        let drains = port.classes.iter().map(ClassQueue::drains_ps).sum::<u64>();
        state.busy_until = port.free_at.max(now) + drains;
        let profile = &self.profiles[state.profile];
        let next = port.next_service(profile, &self.pool).max(now);
        if next < port.wakes_at {
            port.wakes_at = next;
            self.events.push_timer(Time::from_ps(next), EventKey::new(EventKind::Port, link));
        }
    }

    /// The link changed its rate or delay: what waits follows the new ones.
    pub(super) fn requeue(&mut self, link: u32) {
        let profile = &self.profiles[self.links[link as usize].profile];
        let Some(port) = self.scheduled[link as usize].as_deref_mut() else { return };
        for queue in &mut port.classes {
            let service = |waiting: &Waiting| profile.service_ps(self.pool[waiting.index].wire_bytes);
            queue.waiting_ps = queue.waiting.iter().map(service).sum();
            queue.admission.set_rate(profile.rate);
        }
        self.settle(link);
    }

    /// The link went down: what waits is lost.
    pub(super) fn lose_queued(&mut self, link: u32) {
        let Some(port) = self.scheduled.get_mut(link as usize).and_then(Option::as_deref_mut) else { return };
        let mut lost = Vec::new();
        for (class, queue) in port.classes.iter_mut().enumerate() {
            lost.extend(queue.waiting.drain(..));
            queue.waiting_ps = 0;
            port.scheduler.emptied(class);
        }
        (port.waiting_bytes, port.serving_bytes, port.free_at) = (0, 0, self.now.as_ps());
        for waiting in lost {
            self.drop_at(link, waiting.index);
        }
    }
}

#[cfg(test)]
mod tests;
