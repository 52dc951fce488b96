//! Links that change their condition while packets are on them.

use std::sync::Arc;

use weft_packet::{Kind, Packet};
use weft_topology::{Condition, Tier};
use weft_units::Time;

use super::drops::DropCause;
use super::link::{PortKind, Profile};
use super::network::Network;
use super::partition::PacketExtras;
use super::pool::{NO_PACKET, PacketIndex};
use super::results::RateChange;
use super::special::{RunFacts, Special};
use super::tables::Tables;

impl Network<'_> {
    /// A link changes its condition. What is on it when it goes down is lost. When its rate or
    /// delay changes, the packet in service and those on the wire keep their schedule, and what is
    /// queued behind follows the new one, in order.
    ///
    /// `sent` is what left this partition by the link and has not arrived, by arrival.
    pub fn change(&mut self, link: u32, condition: Condition, sent: Vec<(Packet, Option<PacketExtras>)>) {
        self.recall(link, sent);
        self.note_rate(link, &condition);
        self.apply_condition(link, condition);
        self.send_again(link);
        let was_up = std::mem::replace(&mut self.state.local_up[link as usize], condition.up);
        if condition.up && !was_up {
            self.repeat_pauses(link);
        }
        self.tell_of_change(link);
    }

    /// A link is about to change its condition: notes from when on it sends at another rate, if it
    /// does.
    fn note_rate(&mut self, link: u32, condition: &Condition) {
        let (now, before, number) = (self.now.as_ps(), self.rate(link as usize), self.map.number(link));
        if !condition.up {
            // The packet in service is lost.
            let later = |change: &&mut RateChange| change.link == number && change.at > self.now;
            self.rate_changes.iter_mut().filter(later).for_each(|change| change.at = self.now);
        }
        if condition.rate == before {
            return;
        }
        let from = match self.state.scheduled.get_mut(link as usize).and_then(Option::as_mut) {
            _ if !condition.up => now,
            Some(port) => port.change_rate(now, before),
            None => {
                let special = self.state.links[link as usize].special as usize;
                self.state.specials.get_mut(special).map_or(now, |special| special.change_rate(now, before))
            }
        };
        self.rate_changes.push(RateChange { link: number, at: Time::from_ps(from), rate: condition.rate });
    }

    /// Other tables are in force from now on.
    pub fn set_tables(&mut self, tables: Arc<Tables>) {
        self.routes = self.map.rows(&tables.routes);
        self.tables = tables;
    }

    /// Puts a link into this condition.
    pub(super) fn apply_condition(&mut self, link: u32, condition: Condition) {
        let index = link as usize;
        let spec = self.map.spec(link);
        let profile = Profile::new(spec, &condition, self.topology);
        self.state.links[index].profile = self.state.profiles.number_of(profile);
        if let Some(special) = self.state.specials.get_mut(self.state.links[index].special as usize) {
            special.set_condition(&condition);
        }
        if !condition.up {
            self.lose_all(link);
        } else if self.is_scheduled(link) {
            self.requeue(link);
        } else if self.changes[index] {
            self.reschedule(link);
        }
    }

    /// Gives a link its special rules, if it has any: before the run.
    pub(super) fn install(&mut self, link: u32) {
        let index = link as usize;
        let (number, spec) = (self.map.number(link), self.map.spec(link));
        let has_least_service = !self.topology.least_service(spec).is_zero();
        let has_overhead = self.topology.overhead_bytes > 0 || has_least_service;
        let needs_waiting_bytes = self.state.needs_waiting_bytes && spec.tier != Tier::Host;
        let run = RunFacts {
            peaks: self.peaks,
            seed: self.seed,
            has_overhead,
            has_least_service,
            needs_waiting_bytes,
        };
        if has_least_service {
            // The shortest way through a port knows of none.
            self.state.links[index].add_kind(PortKind::Special);
        }
        if let Some(special) = Special::of(number, spec, self.changes[index], run) {
            let state = &mut self.state.links[index];
            state.special = self.state.specials.len() as u32;
            state.add_kind(PortKind::Special);
            self.state.specials.push(special);
        }
    }

    /// The link is down: what is queued or on the wire is lost.
    fn lose_all(&mut self, link: u32) {
        let now = self.now.as_ps();
        self.drops[link as usize].never_sent_bytes += self.unsent_bytes(link as usize, self.now);
        let members = self.take_members(link);
        let state = &mut self.state.links[link as usize];
        (state.head, state.tail, state.busy_until) = (NO_PACKET, NO_PACKET, now);
        self.state.specials[state.special as usize].clear();
        self.lose_queued(link);
        for index in members {
            self.drop_at(link, DropCause::Down, index);
        }
    }

    /// Works out again when the packets that are queued on a link depart and arrive, and so how
    /// long they wait.
    fn reschedule(&mut self, link: u32) {
        let now = self.now.as_ps();
        let members = self.take_members(link);
        let state = &mut self.state.links[link as usize];
        let profile = &self.state.profiles[state.profile];
        let queue = self.state.specials[state.special as usize].queue(now);
        let on_wire = members.len() - queue.iter().filter(|queued| queued.arrives).count();
        let mut waiting = members[on_wire..].iter();
        let mut earliest = on_wire.checked_sub(1).map_or(now, |last| self.pool[members[last]].arrive.as_ps());
        // When the packet ahead departs, and when it was to depart before the change.
        let mut ahead: Option<(u64, u64)> = None;
        for queued in queue {
            let expected = queued.depart_ps;
            queued.depart_ps =
                ahead.map_or(expected, |(departs, _)| departs + profile.service_ps(queued.wire_bytes));
            let arriving = if queued.arrives { waiting.next() } else { None };
            if let Some(&index) = arriving {
                let packet = &mut self.pool[index];
                earliest = earliest.max(queued.depart_ps + profile.delay_ps);
                packet.arrive = Time::from_ps(earliest);
                if let Some((departs, was_to_depart)) = ahead.filter(|_| packet.kind == Kind::Data) {
                    let [from, to] = [was_to_depart, departs].map(|start| start - queued.since_ps);
                    packet.change_wait_ps(state.tier as usize, from, to);
                }
            }
            ahead = Some((queued.depart_ps, expected));
        }
        state.busy_until = ahead.map_or(now, |(departs, _)| departs);
        if let Some(&head) = members.first() {
            state.head_arrive = self.pool[head].arrive.as_ps();
            self.events.push_link(state, link);
        }
    }

    /// The packets on a link, from the one that arrives first; the link's event is taken out.
    pub(super) fn take_members(&mut self, link: u32) -> Vec<PacketIndex> {
        let state = &self.state.links[link as usize];
        if state.head == NO_PACKET {
            return Vec::new();
        }
        let mut members = vec![state.head];
        while members.last() != Some(&state.tail) {
            members.push(self.pool[members[members.len() - 1]].next);
        }
        self.events.remove_link(&mut self.state.links, link);
        members
    }
}
