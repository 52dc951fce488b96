//! Which links have ports with several classes, and which of these nobody watches: before the first
//! packet.

use weft_topology::LinkSpec;
use weft_transport::CreditPorts;
use weft_units::Span;

use super::ScheduledPort;
use super::rules::KnownRules;
use crate::engine::hooks::is_among;
use crate::engine::link::{NO_SPECIAL, PortKind, Profile};
use crate::engine::network::Network;
use crate::engine::partition::STAYS;

impl Network<'_> {
    /// Gives every port a credit queue. Before the first packet.
    pub fn open_credit_ports(&mut self, rules: &CreditPorts) {
        self.has_credits = true;
        self.open_ports(Some(rules));
        // A credit may be on a link before it has its tokens.
        let longest = |profile: &Profile| {
            let tokens_ps = profile.service_ps(rules.credit_bytes) + profile.service_ps(rules.frame_bytes);
            // A large credit needs more than that, up to twice as much. Usually a frame takes so
            // much longer than a credit that it makes up for it; not where all take the same.
            let more = if profile.has_least_service() { 2 } else { 1 };
            profile.transit(self.max_wire_bytes) + Span::from_ps(more * tokens_ps)
        };
        let horizon = self.state.profiles.iter().map(longest).max();
        self.events.cover(horizon.unwrap_or_default());
    }

    /// Gives ports their classes, if they have several. Before the first packet.
    pub(in crate::engine) fn open_ports(&mut self, credits: Option<&CreditPorts>) {
        let topology = self.topology;
        let has_memory = topology.shared_buffer.is_some();
        let has_pauses = topology.shared_buffer.is_some_and(|memory| memory.pause.is_some());
        if credits.is_none() && !has_pauses && self.map.specs().all(|spec| spec.classes.is_none()) {
            return;
        }
        let largest = u64::from(self.max_wire_bytes) + u64::from(topology.overhead_bytes);
        let mut known = KnownRules::default();
        let port = |(spec, link): (&LinkSpec, u32)| {
            let profile = &self.state.profiles[self.state.links[link as usize].profile];
            let run = (self.seed, self.map.number(link), profile);
            let has_several = credits.is_some() || has_pauses || spec.classes.is_some();
            has_several.then(|| {
                let mut port = ScheduledPort::new(spec, has_pauses, credits, largest, run, &mut known);
                port.keep_beside(has_pauses || has_memory);
                port
            })
        };
        self.state.scheduled = self.map.specs().zip(0u32..).map(port).collect();
        self.state.chooses_apart = self.state.are_looked_at;
        for (link, port) in self.state.links.iter_mut().zip(&self.state.scheduled) {
            if port.is_some() {
                link.add_kind(PortKind::Scheduled);
            }
        }
    }

    /// Finds the ports that nobody watches. Before the first packet, when all are known that do.
    /// `hosts_look` tells that hosts look at their own: they are not simulated here, or a transport
    /// asks when what waits there has left.
    pub(in crate::engine) fn find_late_ports(&mut self, hosts_look: bool) {
        self.find_late(hosts_look);
        // What these ports send comes through the exchange to this partition, too.
        let leaves = |port: &Option<ScheduledPort>| port.as_ref().is_some_and(|port| port.leaves);
        let leaving: Vec<u32> =
            (0..).zip(&self.state.scheduled).filter(|(_, port)| leaves(port)).map(|(link, _)| link).collect();
        for link in leaving {
            let far_end = self.state.links[link as usize].far_end();
            self.add_entry(self.map.number(link), far_end);
        }
    }

    fn find_late(&mut self, hosts_look: bool) {
        let latest = self.exchange.as_ref().map(|exchange| &exchange.latest);
        let stays = |link: usize| latest.is_none_or(|latest| latest[link] == STAYS);
        let first_port = self.map.hosts().len();
        let has_memories = self.shared_buffers.is_some();
        for (at, (link, port)) in self.state.links.iter().zip(&mut self.state.scheduled).enumerate() {
            if let Some(port) = port {
                let is_watched = link.special != NO_SPECIAL || is_among(link.tier, self.watched_ports);
                // What waits at a switch with shared buffer gives it back at the instant.
                let has_memory = has_memories && at >= first_port;
                port.keep_beside(is_watched || has_memory || port.aside.pausing.is_some());
                let is_unseen = !is_watched && !has_memory;
                port.is_plain = is_unseen && stays(at);
                let is_simple = port.aside.pausing.is_none() && port.is_strict;
                port.is_quick = is_unseen && is_simple && (stays(at) || !self.state.are_looked_at);
                port.leaves = port.is_quick && !stays(at);
                port.has_more = port.leaves || port.is_counted;
                // What external hosts send at an instant comes behind what ports send then, which a
                // port that is late does not know.
                let is_looked_at = if at < first_port { hosts_look } else { self.state.are_looked_at };
                port.is_late = port.is_plain && is_simple && !is_looked_at;
            }
        }
    }
}
