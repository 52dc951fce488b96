//! The second kind of port: beside its data queue it has a small queue of credits, which leave at no more than their
//! share of the link.
//!
//! Which queue sends next is not known before the transmitter is free, so a port that has something waiting needs one
//! event more a packet. A credit goes first once the token bucket has enough for it; data takes the rest of the link.
//!
//! The bucket is exact in time: it is kept as the moment when it will be full again ("virtual scheduling", ITU-T I.371),
//! in whole picoseconds. A credit takes so much of it as fills in the time that a credit and the frame that it calls for
//! take on the link, each rounded up to a picosecond.

use weft_packet::Kind;
use weft_transport::CreditPorts;
use weft_units::Time;

use super::event_set::{EventKey, EventKind};
use super::link::Profile;
use super::network::{Network, mark};
use super::pool::{NO_PACKET, PacketIndex, Pool};
use super::special::{Admission, Special};

/// Packets that wait, chained through their `next`. While it waits, a packet's `arrive` says since when.
#[derive(Debug, Clone)]
struct Queue {
    head: PacketIndex,
    tail: PacketIndex,
    packets: u32,
}

impl Queue {
    const fn new() -> Self {
        Self { head: NO_PACKET, tail: NO_PACKET, packets: 0 }
    }

    fn push(&mut self, pool: &mut Pool, index: PacketIndex) {
        if self.packets == 0 {
            self.head = index;
        } else {
            pool[self.tail].next = index;
        }
        self.tail = index;
        self.packets += 1;
    }

    /// Takes the first packet. There must be one.
    fn pop(&mut self, pool: &Pool) -> PacketIndex {
        let index = self.head;
        self.head = pool[index].next;
        self.packets -= 1;
        index
    }

    const fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

/// One port, apart from its [`super::link::Link`], whose list holds what is in service or on the wire.
#[derive(Debug, Clone)]
pub struct CreditPort {
    data: Queue,
    credits: Queue,
    /// How long the data queue takes to send, in ps.
    data_ps: u64,
    /// When the transmitter is free, in ps.
    free_at: u64,
    /// When the token bucket is full again, in ps.
    full_at: u64,
    /// The earliest event that is pending for this port, in ps; `u64::MAX` if there is none.
    wakes_at: u64,
}

impl CreditPort {
    const fn new() -> Self {
        Self {
            data: Queue::new(),
            credits: Queue::new(),
            data_ps: 0,
            free_at: 0,
            full_at: 0,
            wakes_at: u64::MAX,
        }
    }

    /// When the bucket has enough for a credit of `wire_bytes`, in ps.
    fn ready_at(&self, rules: &CreditPorts, profile: &Profile, wire_bytes: u16) -> u64 {
        // Tokens are what the bucket holds less what fills until `full_at`.
        let spare = u64::from(rules.burst_bytes.saturating_sub(wire_bytes));
        self.full_at.saturating_sub(fill_ps(rules, profile, spare))
    }

    /// Takes a credit's tokens out of the bucket.
    fn take_tokens(&mut self, rules: &CreditPorts, profile: &Profile, now: u64, wire_bytes: u16) {
        self.full_at = self.full_at.max(now) + fill_ps(rules, profile, u64::from(wire_bytes));
    }

    /// The next moment when this port may send something, in ps, or `u64::MAX`.
    fn next_service(&self, rules: &CreditPorts, profile: &Profile, pool: &Pool) -> u64 {
        let ready = if !self.data.is_empty() {
            0
        } else if self.credits.is_empty() {
            return u64::MAX;
        } else {
            self.ready_at(rules, profile, pool[self.credits.head].wire_bytes)
        };
        self.free_at.max(ready)
    }
}

/// How long the tokens for `credit_bytes` of credits take to fill, in ps: credits and the frames that they call for
/// share the link (MaxPass section III.A: 84 / (84 + 1538)).
fn fill_ps(rules: &CreditPorts, profile: &Profile, credit_bytes: u64) -> u64 {
    let pair = profile.service_ps(rules.credit_bytes) + profile.service_ps(rules.frame_bytes);
    let scaled = u128::from(pair) * u128::from(credit_bytes);
    scaled.div_ceil(u128::from(rules.credit_bytes)) as u64
}

impl Network<'_> {
    /// Gives every port a credit queue. Before the first packet.
    pub fn open_credit_ports(&mut self, rules: CreditPorts) {
        self.credit_rules = rules;
        self.credit_ports = vec![CreditPort::new(); self.links.len()];
        for link in &mut self.links {
            link.is_special = true;
        }
    }

    /// Whether ports are of the second kind.
    pub(super) const fn has_credit_ports(&self) -> bool {
        !self.credit_ports.is_empty()
    }

    /// A packet comes to a port: into one of its queues, or dropped.
    pub(super) fn offer(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let at = link as usize;
        let is_credit = self.pool[index].kind == Kind::Credit;
        let admitted = if is_credit { self.admits_credit(link) } else { self.admits_data(link, index) };
        if !admitted {
            return self.drop_at(link, index);
        }
        let (port, packet) = (&mut self.credit_ports[at], &mut self.pool[index]);
        let state = &mut self.links[at];
        state.bytes += u64::from(packet.wire_bytes);
        state.packets += 1;
        packet.arrive = self.now;
        if packet.kind.is_of_scheme() {
            self.counts.control_bytes += u64::from(packet.wire_bytes);
        }
        if is_credit {
            port.credits.push(&mut self.pool, index);
        } else {
            port.data_ps += self.profiles[state.profile].service_ps(packet.wire_bytes);
            port.data.push(&mut self.pool, index);
        }
        let backlog = port.free_at.saturating_sub(now) + port.data_ps;
        if let Some(special) = self.specials.get_mut(state.special as usize) {
            special.note_peak(|| self.profiles[state.profile].bytes_in(backlog));
        }
        // What became free at this very instant is served by the event that is pending for it.
        if port.free_at <= now && port.wakes_at != now {
            self.serve(link);
        } else {
            self.settle(link);
        }
    }

    fn admits_credit(&mut self, link: u32) -> bool {
        let state = &self.links[link as usize];
        let is_up = self.specials.get(state.special as usize).is_none_or(Special::is_up);
        is_up && self.credit_ports[link as usize].credits.packets < self.credit_rules.queue
    }

    /// Whether the data queue takes a packet, which is marked if the queue's rules say so.
    fn admits_data(&mut self, link: u32, index: PacketIndex) -> bool {
        let (state, port) = (&self.links[link as usize], &self.credit_ports[link as usize]);
        let profile = &self.profiles[state.profile];
        let packet = &mut self.pool[index];
        let backlog = state.backlog_ps(self.now.as_ps());
        if backlog + profile.service_ps(packet.wire_bytes) > profile.limit_ps {
            return false;
        }
        let drops = &mut self.drops[link as usize];
        if backlog > profile.mark_ps {
            mark(packet, drops);
        }
        let Some(special) = self.specials.get_mut(state.special as usize) else { return true };
        let in_service = u32::from(port.free_at > self.now.as_ps());
        let found = special.judge(packet, port.data.packets + in_service, || profile.bytes_in(backlog));
        if found == Admission::QueueMarked {
            mark(packet, drops);
        }
        found != Admission::Drop
    }

    /// The event of a port is due.
    pub fn wake_port(&mut self, link: u32) {
        let now = self.now.as_ps();
        let port = &mut self.credit_ports[link as usize];
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
        let now = self.now.as_ps();
        let (state, port) = (&self.links[link as usize], &mut self.credit_ports[link as usize]);
        let (rules, profile) = (&self.credit_rules, &self.profiles[state.profile]);
        let credit = (!port.credits.is_empty()).then(|| self.pool[port.credits.head].wire_bytes);
        let ready = credit.filter(|&bytes| port.ready_at(rules, profile, bytes) <= now);
        let index = if let Some(bytes) = ready {
            port.take_tokens(rules, profile, now, bytes);
            port.credits.pop(&self.pool)
        } else if port.data.is_empty() {
            return self.settle(link);
        } else {
            let index = port.data.pop(&self.pool);
            let packet = &mut self.pool[index];
            port.data_ps -= profile.service_ps(packet.wire_bytes);
            if packet.kind == Kind::Data {
                packet.add_wait_ps(state.tier as usize, now - packet.arrive.as_ps());
            }
            index
        };
        let packet = &self.pool[index];
        port.free_at = now + profile.service_ps(packet.wire_bytes);
        let arrive = port.free_at + profile.delay_ps;
        let special = self.specials.get_mut(state.special as usize);
        if special.is_some_and(|special| special.vanishes(packet)) {
            self.drop_at(link, index);
        } else {
            self.put_on_wire(link, index, arrive);
        }
        self.settle(link);
    }

    /// A packet goes behind those that are on the wire.
    fn put_on_wire(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let state = &mut self.links[link as usize];
        if state.tail == NO_PACKET {
            self.pool[index].arrive = Time::from_ps(arrive);
            (state.head, state.tail, state.head_arrive) = (index, index, arrive);
            self.events.push_link(&mut self.links, link);
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
        let (state, port) = (&mut self.links[link as usize], &mut self.credit_ports[link as usize]);
        // Credits that cut in later delay the data behind them: nobody can know that yet.
        state.busy_until = port.free_at.max(now) + port.data_ps;
        let profile = &self.profiles[state.profile];
        let next = port.next_service(&self.credit_rules, profile, &self.pool).max(now);
        if next < port.wakes_at {
            port.wakes_at = next;
            self.events.push_timer(Time::from_ps(next), EventKey::new(EventKind::Port, link));
        }
    }

    /// The link changed its rate or delay: what waits follows the new ones.
    pub(super) fn requeue(&mut self, link: u32) {
        let (state, port) = (&self.links[link as usize], &mut self.credit_ports[link as usize]);
        let profile = &self.profiles[state.profile];
        let waiting = chained(&self.pool, &port.data);
        port.data_ps = waiting.iter().map(|&index| profile.service_ps(self.pool[index].wire_bytes)).sum();
        self.settle(link);
    }

    /// The link went down: what waits is lost.
    pub(super) fn lose_queued(&mut self, link: u32) {
        if !self.has_credit_ports() {
            return;
        }
        let port = &mut self.credit_ports[link as usize];
        let mut waiting = chained(&self.pool, &port.data);
        waiting.extend(chained(&self.pool, &port.credits));
        (port.data, port.credits, port.data_ps) = (Queue::new(), Queue::new(), 0);
        port.free_at = self.now.as_ps();
        for index in waiting {
            self.drop_at(link, index);
        }
    }
}

fn chained(pool: &Pool, queue: &Queue) -> Vec<PacketIndex> {
    let next = |&index: &PacketIndex| Some(pool[index].next);
    let first = (!queue.is_empty()).then_some(queue.head);
    std::iter::successors(first, next).take(queue.packets as usize).collect()
}

#[cfg(test)]
mod tests;
