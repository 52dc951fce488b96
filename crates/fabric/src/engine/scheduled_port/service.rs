//! Service at a port with several classes.
//!
//! What a port sends, and when, follows from what comes to it, and is worked out one packet after
//! the other. Where somebody looks at the port, or where the packet may be lost or go to another
//! part, that is done at the instant: the port has an event then. Elsewhere it is done **late**:
//! when the next packet comes to the port, or when all that was on the link has arrived. Nothing
//! that waits can arrive before what is on the link already, so it is soon enough, and takes no
//! event.
//!
//! What waits at a port that is late, and all of it is of one class, is on its link **ahead** of
//! its time: credits that wait for their tokens, or data behind data. It is known when each goes if
//! nothing of another class comes. If that comes first, what is not in service is taken back, and
//! waits in queues, as does what comes after it, until these are empty or nothing is on the link.
//!
//! What goes into service at an instant is worked out behind all other events of the instant, late
//! or not.

use weft_packet::{Kind, Packet};
use weft_units::Time;

use super::planned::Ahead;
use super::{ScheduledPort, Waiting};
use crate::engine::event_set::{EventKey, EventKind, EventSet};
use crate::engine::link::{Link, PortKind, Profile};
use crate::engine::network::{Network, PacketCounts, mark};
use crate::engine::pool::{Kept, NO_PACKET, PacketIndex, note_blocked, units_of};
use crate::engine::scheduler::TokenBucket;

/// A port, with all that it needs to send.
pub(super) struct Outlet<'n> {
    pub link: u32,
    pub state: &'n mut Link,
    pub port: &'n mut ScheduledPort,
    pub profile: &'n Profile,
    /// Packets of the pool, and how long each was blocked.
    pub packets: &'n mut [Packet],
    pub blocked: &'n mut Vec<Kept>,
    pub events: &'n mut EventSet,
    /// Bytes of a packet on the wire beside its own.
    pub overhead_bytes: u64,
}

/// The [`Outlet`] of a link, if its port has several classes. A macro, for it borrows the network
/// field by field.
macro_rules! outlet {
    ($network:ident, $link:expr) => {{
        let at = $link as usize;
        let state = &mut $network.state.links[at];
        let profile = &$network.state.profiles[state.profile];
        let (packets, blocked) = $network.pool.parts();
        match $network.state.scheduled.get_mut(at) {
            Some(Some(port)) => Some(Outlet {
                link: $link,
                state,
                port,
                profile,
                packets,
                blocked,
                events: &mut $network.events,
                overhead_bytes: u64::from($network.topology.overhead_bytes),
            }),
            _ => None,
        }
    }};
}
pub(super) use outlet;

impl Outlet<'_> {
    /// Sends what goes into service before `until`, in ps, at a port that nobody watches.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn send_before(&mut self, until: u64) {
        while self.port.serves_at < until {
            let start = self.port.serves_at;
            let Some(class) = self.port.next_class(start, self.packets, self.overhead_bytes) else {
                break;
            };
            let Some(taken) = self.port.take(class, start, self.packets, self.profile) else { break };
            if !self.port.is_quick && self.port.aside.pausing.is_some() {
                self.note_blocked(class, &taken, start);
            }
            let packet = &mut self.packets[taken.index as usize];
            note_wait(self.state, packet, packet.arrive, start);
            self.mark_leaving(class, taken.index);
            self.put_on_link(taken.index);
            self.port.serves_at = self.port.next_service();
        }
    }

    /// A packet that waited in this class has just gone into service: it may get a mark by what it
    /// left behind.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn mark_leaving(&mut self, class: usize, index: PacketIndex) {
        let (waiting_ps, rules) = (self.port.classes[class].waiting_ps, &self.port.rules);
        if waiting_ps >= rules.first(class).marks_from_ps
            && let (Some(curve), Some(rare)) = (&rules.class(class).leaving, self.port.rare.get_mut(class))
            && let Some(stream) = &mut rare.stream
            && curve.hits(self.profile.bytes_in(waiting_ps), stream)
            && mark(&mut self.packets[index as usize])
        {
            rare.marked += 1;
        }
    }

    /// Notes how long pauses kept a packet from leaving that goes into service at this time, in ps.
    #[cold]
    pub fn note_blocked(&mut self, class: usize, taken: &Waiting, now: u64) {
        let own = class.checked_sub(self.port.first_own());
        let (Some(pausing), Some(own)) = (&mut self.port.aside.pausing, own) else { return };
        let paused_ps = pausing.leaves(own, taken.index, now);
        let units = units_of(paused_ps - taken.beside.paused_before_ps);
        note_blocked(self.blocked, taken.index, self.state.tier, units);
    }

    /// The packet that has just gone into service goes behind those that are on the link.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn put_on_link(&mut self, index: PacketIndex) {
        if self.port.leaves {
            return self.put_on_way(index, self.port.free_at + self.profile.delay_ps);
        }
        self.put_on_wire(index);
    }

    /// Puts a packet that has just gone into service on the link, if it arrives in this part.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn put_on_wire(&mut self, index: PacketIndex) {
        debug_assert!(!self.port.leaves, "through the exchange");
        let arrive = self.port.free_at + self.profile.delay_ps;
        put_behind::<true>(self.state, self.packets, self.events, (self.link, index, arrive));
    }

    /// Brings up to date what others read of the port, and when it sends next.
    pub fn settle(&mut self, now: u64) {
        self.port.serves_at = self.port.next_service().max(now);
        self.arm(now);
    }

    /// Makes sure that what waits is sent in time, and that others read so.
    pub fn arm(&mut self, now: u64) {
        if self.port.is_late || self.port.leaves {
            return self.arm_late();
        }
        // Credits that cut in later delay the data behind them: nobody can know that yet.
        self.state.busy_until = self.port.free_at.max(now) + self.port.drains_ps();
        self.wake_in_time();
    }

    /// Arms a port that is late, where nobody reads anything: nothing is to be done while something
    /// is on the link.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn arm_late(&mut self) {
        if self.port.leaves {
            return self.list();
        }
        if self.state.head == NO_PACKET && self.port.serves_at != u64::MAX {
            self.send_all_ahead();
            if self.state.head == NO_PACKET {
                self.wake_in_time();
            }
        }
        let has_more = self.port.serves_at != u64::MAX;
        self.state.port = if has_more { PortKind::Waiting } else { PortKind::Scheduled };
    }

    /// Has an event pending for when the port sends next.
    fn wake_in_time(&mut self) {
        let next = self.port.serves_at;
        if next < self.port.wakes_at {
            self.port.wakes_at = next;
            self.events.push_timer(Time::from_ps(next), EventKey::new(EventKind::Port, self.link));
        }
    }

    /// Puts what waits on the link before its time, where nothing is there, as long as what is next
    /// is of the first class.
    #[inline(never)]
    fn send_all_ahead(&mut self) {
        self.port.ahead.clear();
        self.port.ahead_class = 0;
        loop {
            let port = &mut *self.port;
            let (begins_at, free_at) = (port.serves_at, port.free_at);
            let Some(queue) = port.classes.get(0).filter(|queue| queue.ready_at <= begins_at) else {
                return;
            };
            let Some(tokens) = queue.bucket.as_deref().map(TokenBucket::tokens) else { return };
            let Some(taken) = port.take(0, begins_at, self.packets, self.profile) else { return };
            let Waiting { index, wire_bytes, service_ps, .. } = taken;
            port.serves_at = port.next_service();
            let (since, behind) = (self.packets[index as usize].arrive, self.state.tail);
            self.put_ahead(Ahead {
                begins_at,
                since,
                service_ps,
                free_at,
                tokens,
                index,
                behind,
                wire_bytes,
            });
        }
    }

    /// Puts a packet on the link before its time.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn put_ahead(&mut self, ahead: Ahead) {
        let Ahead { begins_at, since, service_ps, index, wire_bytes, .. } = ahead;
        self.port.begin_service(begins_at, wire_bytes, service_ps);
        note_wait(self.state, &mut self.packets[index as usize], since, begins_at);
        self.port.ahead.push(ahead);
        self.port.has_ahead = true;
        // Of a port that is late all arrives in this part.
        self.put_on_wire(index);
    }
}

impl Network<'_> {
    /// Takes back what was put on the link before its time, and is not in service yet: at least one
    /// packet.
    pub(super) fn take_back(&mut self, link: u32) {
        let Some(Outlet { state, port, packets, .. }) = outlet!(self, link) else { return };
        let Some(&Ahead { begins_at, index, behind, .. }) = port.ahead.first() else { return };
        port.has_ahead = false;
        while let Some(ahead) = port.ahead.pop() {
            let packet = &mut packets[ahead.index as usize];
            if packet.kind == Kind::Data {
                packet.change_wait_ps(state.tier as usize, ahead.begins_at - ahead.since.as_ps(), 0);
            }
            packet.arrive = ahead.since;
            port.put_back(&ahead, packets);
        }
        port.serves_at = begins_at;
        state.port = PortKind::Waiting;
        if state.head == index {
            (state.head, state.tail) = (NO_PACKET, NO_PACKET);
            self.events.take_back_link(&mut self.state.links, link);
        } else {
            state.tail = behind;
        }
    }

    /// All that was on a link has arrived, and packets wait at its port, which is late.
    #[inline(never)]
    pub(in crate::engine) fn send_late(&mut self, link: u32) {
        let now = self.now.as_ps();
        if let Some(mut outlet) = outlet!(self, link) {
            outlet.send_before(now);
            outlet.arm_late();
        }
    }

    /// Works out what ports that are late have sent by now, this instant included or not: whoever
    /// reads what they marked asks for it.
    pub(in crate::engine) fn catch_up(&mut self, now: Time, inclusive: bool) {
        let until = now.as_ps() + u64::from(inclusive);
        for link in 0..self.state.scheduled.len() as u32 {
            if let Some(mut outlet) = outlet!(self, link)
                && outlet.port.is_late
            {
                outlet.send_before(until);
                outlet.arm_late();
            }
        }
    }

    /// The event of a port is due.
    #[inline(never)]
    pub fn wake_port(&mut self, link: u32) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        if outlet.port.wakes_at != now {
            return;
        }
        outlet.port.wakes_at = u64::MAX;
        if outlet.port.is_plain {
            outlet.send_before(now + 1);
        } else if outlet.port.serves_at <= now {
            return self.serve_watched(link);
        }
        outlet.arm(now);
    }

    /// The transmitter is free, and classes that take turns have something: sends what may go next.
    #[inline(never)]
    pub(super) fn serve_by_turns(&mut self, link: u32) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        outlet.port.serves_at = outlet.port.next_service().max(now);
        if !outlet.port.is_plain {
            return self.serve_watched(link);
        }
        outlet.send_before(now + 1);
        outlet.arm(now);
    }

    /// The transmitter of a port is free that somebody watches: sends what may go next, if
    /// anything.
    #[inline(never)]
    pub(super) fn serve_watched(&mut self, link: u32) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        let sent_before = outlet.state.bytes - outlet.port.waiting_bytes;
        let Some(class) = outlet.port.next_class(now, outlet.packets, outlet.overhead_bytes) else {
            return outlet.settle(now);
        };
        let Some(taken) = outlet.port.take(class, now, outlet.packets, outlet.profile) else {
            return outlet.settle(now);
        };
        if outlet.port.aside.pausing.is_some() {
            outlet.note_blocked(class, &taken, now);
        }
        let packet = &mut outlet.packets[taken.index as usize];
        note_wait(outlet.state, packet, packet.arrive, now);
        outlet.mark_leaving(class, taken.index);
        self.release(link, class, taken.beside.came_by, taken.wire_bytes);
        self.send_off_watched(link, taken, sent_before, false);
    }

    /// A packet went into service, where somebody wants to see that, the wire may lose it, or lead
    /// to another part. `comes` tells that it came to the port just now.
    #[inline(never)]
    pub(super) fn send_off_watched(&mut self, link: u32, taken: Waiting, sent_before: u64, comes: bool) {
        let (index, at) = (taken.index, link as usize);
        if comes {
            self.trace_offered(link, index);
        }
        if self.watches(self.state.links[at].tier) {
            self.notify_service(link, index, sent_before, taken.beside.found_ps);
        }
        self.note_passing(link, index);
        let state = &self.state.links[at];
        let free_at = self.state.scheduled[at].as_ref().map_or(0, |port| port.free_at);
        let arrive = free_at + self.state.profiles[state.profile].delay_ps;
        let special = self.state.specials.get_mut(state.special as usize);
        if special.is_some_and(|special| special.vanishes(&self.pool[index])) {
            self.lose_on_wire(link, index);
        } else {
            self.put_on_wire(link, index, arrive);
        }
        self.settle_port(link);
    }

    /// A packet goes behind those that are on the wire.
    pub(in crate::engine) fn put_on_wire(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        if let Ok(arrive) = self.send_out(link, index, arrive) {
            self.put_on_list(link, index, arrive);
        }
    }

    /// Puts a packet that stays in this part behind those on the wire.
    #[inline]
    pub(in crate::engine) fn put_on_list(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let state = &mut self.state.links[link as usize];
        put_behind::<false>(state, self.pool.packets(), &mut self.events, (link, index, arrive));
    }

    /// Puts a packet behind those on the wire, if it arrives behind them by itself.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(in crate::engine) fn put_on_list_in_order(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let state = &mut self.state.links[link as usize];
        put_behind::<true>(state, self.pool.packets(), &mut self.events, (link, index, arrive));
    }

    /// See [`Outlet::settle`].
    pub(super) fn settle_port(&mut self, link: u32) {
        let now = self.now.as_ps();
        if let Some(mut outlet) = outlet!(self, link) {
            outlet.settle(now);
        }
    }
}

/// A packet that waited since then goes into service at this time, in ps.
#[inline(always)]
#[allow(clippy::inline_always)]
fn note_wait(state: &Link, packet: &mut Packet, since: Time, begins_at: u64) {
    if packet.kind == Kind::Data {
        packet.add_wait_ps(state.tier as usize, begins_at - since.as_ps());
    }
}

/// Counts a packet that a port took. `FAR` says whether it may belong to a scheme.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn count<const FAR: bool>(state: &mut Link, packet: &Packet, counts: &mut PacketCounts) {
    state.bytes += u64::from(packet.wire_bytes);
    state.packets += 1;
    debug_assert!(FAR || !packet.kind.is_of_scheme(), "such packets are sorted out");
    if FAR && packet.kind.is_of_scheme() {
        counts.control_bytes += u64::from(packet.wire_bytes);
    }
}

/// A packet goes behind those that are on a link's wire, to arrive at this time or, behind another
/// one, later. `IN_ORDER` says that it comes to that by itself, for the link's delay does not
/// change: then the one ahead is written to, and nobody waits until it is there.
#[inline(always)]
#[allow(clippy::inline_always)]
fn put_behind<const IN_ORDER: bool>(
    state: &mut Link,
    packets: &mut [Packet],
    events: &mut EventSet,
    (link, index, arrive): (u32, PacketIndex, u64),
) {
    let tail = std::mem::replace(&mut state.tail, index);
    if tail == NO_PACKET {
        packets[index as usize].arrive = Time::from_ps(arrive);
        (state.head, state.head_arrive) = (index, arrive);
        events.push_link(state, link);
    } else {
        // After a shorter delay came into force, the packet ahead may still be further away: FIFO
        // holds.
        let ahead = &mut packets[tail as usize];
        ahead.next = index;
        debug_assert!(
            !IN_ORDER || ahead.arrive.as_ps() <= arrive,
            "packets arrive in the order in which they were sent"
        );
        let arrive = if IN_ORDER { arrive } else { arrive.max(ahead.arrive.as_ps()) };
        packets[index as usize].arrive = Time::from_ps(arrive);
    }
}
