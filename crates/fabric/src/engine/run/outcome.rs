//! The end of a simulation: what it leaves behind.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use weft_balance::SwitchScheme;
use weft_packet::FlowId;
use weft_topology::{LinkSpec, Routes, Topology};
use weft_traffic::Flow;
use weft_transport::{Multipath, Protocol, ReceiverOf, SenderOf, Transports};
use weft_units::Time;

use super::balance::Balance;
use super::crew::locked;
use super::{Engine, inner};
use crate::engine::arrivals::{Arrivals, ArrivedInPhase};
use crate::engine::capture::Capture;
use crate::engine::group::Group;
use crate::engine::host::{Host, HostLog, Plan, Receiver, Sender};
use crate::engine::identities;
use crate::engine::losses::Losses;
use crate::engine::mail::Outbox;
use crate::engine::network::{Network, PacketCounts};

use crate::engine::paths::{PathMeter, PathTotal};
use crate::engine::pause::Blocked;
use crate::engine::records::{FlowRecords, Spool, Sums};
use crate::engine::results::{
    ClassOfLink, Cooperation, LinkTotals, MemoryUse, PauseOfLink, Results, SchemeCounter, SwitchMemoryUse,
};
use crate::engine::sampler::Samples;
use crate::engine::simulation::Ending;
use crate::engine::slowed::Slowed;
use crate::engine::tracer::Tracer;

impl<T: Transports> Engine<'_, T> {
    /// Keeps the records of flows that are over here.
    pub fn spool_to(&mut self, spool: Box<dyn Spool>) {
        self.records.spool_to(spool);
    }

    /// Takes in records whenever so many flows have ended.
    pub const fn take_in_every(&mut self, flows: usize) {
        self.take_in_every = flows;
    }

    /// Whether they can no longer be kept there.
    pub const fn has_failed(&self) -> bool {
        self.records.has_failed()
    }

    /// What the run leaves behind, finished or not: the records of flows apart.
    pub fn finish(mut self) -> (Results, FlowRecords) {
        if self.days.is_some() {
            self.take_in_mail();
        }
        if let Some(group) = self.groups.first_mut().map(inner) {
            group.close_guests(&self.plan);
        }
        let end = self.now();
        self.groups_mut().for_each(|group| group.network.catch_up(end, true));
        let samples = self.last_samples(end);
        let slowed = self.last_of_slowed(end);
        let cooperation = self.cooperation();
        let pauses = self.pauses(end);
        let (memories, blocked) = (self.memories(), self.blocked());
        let Self { topology, groups, plan, places, timers, windows, mut records, deadlock, ending, .. } =
            self;
        let mut groups: Vec<Group<'_, T>> = groups
            .into_iter()
            .map(|group| group.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let memory = memory(&groups);
        let mut counters = Counters::default();
        count_schemes(&groups, &mut counters);
        let state_bytes = state_bytes(&groups);
        let links = links(&mut groups, &places, end);
        let classes = classes(&groups, &places);
        let packets = packet_counts(&groups);
        let in_flight = groups.iter().map(|group| group.network.in_flight()).sum();
        let timers = timers + groups.iter().map(|group| group.timers).sum::<u64>();
        let has_credit_ports = groups.iter().any(|group| group.network.has_credit_ports());
        let largest_packet_bytes = groups.first().map_or(0, |group| group.common.sizes.full_bytes);
        let tables = groups.first().map(|group| Arc::clone(&group.network.tables));
        let (mut logs, mut dropped): (Vec<HostLog>, _) = (Vec::new(), Vec::new());
        let mut captured = Vec::new();
        let (mut observations, mut tracers) = (Vec::new(), Vec::new());
        let (mut losses, mut rate_changes) = (Vec::new(), Vec::new());
        for group in groups {
            let Group { hosts, mut network, .. } = group;
            logs.extend(hosts.into_iter().map(|host| host.into_log(&plan)));
            dropped.append(&mut network.dropped);
            rate_changes.append(&mut network.rate_changes);
            captured.extend(network.capture.take().map(Capture::into_packets));
            // Whoever observes has one group.
            observations.append(&mut network.observations());
            tracers.extend(network.tracer.take());
            losses.extend(network.losses.take().map(|losses| *losses));
        }
        let arrivals = arrivals_of(&mut logs);
        let (losses, mut hits, first_uses) = Losses::together(losses.into_iter());
        // Subflows are numbered beyond the flows.
        for hit in &mut hits {
            hit.flow %= plan.flows.len().max(1) as u32;
        }
        // The sort is stable: of changes at one link and instant, the last one holds.
        rate_changes.sort_by_key(|change| (change.link, change.at));
        let paths = tables.map(|tables| paths(&mut logs, topology, &tables.routes)).unwrap_or_default();
        let strays = logs.iter().map(|log| log.stray_credits).sum();
        records.take_in(&plan, end, logs.iter_mut(), dropped.into_iter());
        drop(logs);
        if has_credit_ports {
            count_credits(&mut counters, &plan, &records.sums, &packets, strays);
        }
        if plan.transports.all().any(Protocol::is_pulled) {
            count_answers(&mut counters, &records.sums);
        }
        for (name, value) in state_bytes {
            counters.count(name, value);
        }
        let results = Results {
            flows: Vec::new(),
            links,
            rate_changes,
            samples: samples.unwrap_or_default(),
            observations,
            captured: captured.pop().unwrap_or_default(),
            windows: windows.map(|windows| windows.seen).unwrap_or_default(),
            paths,
            traces: Tracer::into_traces(tracers),
            losses,
            hits,
            arrivals,
            first_uses,
            classes,
            pauses,
            blocked,
            memories,
            deadlock,
            slowed,
            largest_packet_bytes,
            scheme: counters.0,
            packets,
            in_flight,
            events: packets.hops + timers,
            end,
            memory,
            cooperation,
        };
        if ending.is_some_and(|ending| ending != Ending::Broken) {
            identities::check(topology, &results);
        }
        (results, records.finish(&plan))
    }

    fn cooperation(&self) -> Cooperation {
        let alone = Cooperation { groups: 1, threads: 1, ..Cooperation::default() };
        self.days.as_ref().map_or(alone, |days| Cooperation {
            groups: self.groups.len(),
            threads: days.outboxes.len(),
            windows: days.windows,
            crossings: days.outboxes.iter().map(Outbox::sent).sum(),
            sharing: days.balance.as_ref().map(Balance::sharing),
        })
    }

    /// Which links were paused, because of which, and how long.
    fn pauses(&mut self, end: Time) -> Vec<PauseOfLink> {
        self.groups_mut().for_each(|group| group.network.now = end);
        let (groups, places) = (&mut self.groups, &self.places);
        let of_link = |(number, &(group, link)): (u32, &(u32, u32))| {
            let totals = inner(&mut groups[group as usize]).network.pause_totals(link as usize);
            totals.into_iter().map(move |((class, blamed), totals)| PauseOfLink {
                link: number,
                class,
                blamed,
                totals,
            })
        };
        (0..).zip(places).flat_map(of_link).collect()
    }

    /// How long pauses kept data of flows from leaving ports.
    fn blocked(&mut self) -> Vec<(FlowId, Blocked)> {
        let mut sums: BTreeMap<FlowId, Blocked> = BTreeMap::new();
        let flows = self.plan.flows.len();
        for memories in self.groups_mut().filter_map(|group| group.network.memories.as_ref()) {
            for (flow, one) in &memories.by_flow {
                // Subflows are numbered beyond all flows.
                let sum = sums.entry(FlowId((flow.index() % flows) as u32)).or_default();
                sum.blocked += one.blocked;
                sum.innocently += one.innocently;
            }
        }
        sums.into_iter().collect()
    }

    /// How full the memory of each switch was.
    fn memories(&mut self) -> Vec<SwitchMemoryUse> {
        let mut found: Vec<SwitchMemoryUse> = Vec::new();
        for group in self.groups_mut() {
            let Some(memories) = &group.network.memories else { continue };
            let switches = group.network.site.switches().iter().zip(&memories.switches);
            found.extend(
                switches.map(|(&switch, memory)| SwitchMemoryUse { switch, largest_bytes: memory.peak() }),
            );
        }
        found.sort_unstable_by_key(|memory| memory.switch);
        found
    }

    fn last_of_slowed(&mut self, end: Time) -> Vec<Slowed> {
        let Some(watch) = self.slowed.take() else { return Vec::new() };
        self.groups_mut().for_each(|group| group.network.now = end);
        let (groups, places) = (&self.groups, &self.places);
        watch.finish(end, &mut |link| {
            let (group, link) = places[link as usize];
            locked(&groups[group as usize]).network.given_and_waiting(link as usize)
        })
    }

    fn last_samples(&mut self, end: Time) -> Option<Samples> {
        let mut sampler = self.sampler.take()?;
        sampler.deliveries.sum_up(&self.plan, self.groups.iter_mut().flat_map(|group| &inner(group).hosts));
        self.groups_mut().for_each(|group| group.network.now = end);
        self.note_memories(&mut sampler, end);
        let (groups, places) = (&mut self.groups, &self.places);
        Some(sampler.finish(end, &mut |link| {
            let (group, link) = places[link];
            inner(&mut groups[group as usize]).network.look(link as usize)
        }))
    }
}

/// What schemes counted: those of switches in the order of the fabric, then those of hosts.
fn count_schemes<T: Transports>(groups: &[Group<'_, T>], counters: &mut Counters) {
    let mut count = |name: &'static str, value: u64| counters.count(name, value);
    let of_group = |group: &'_ Group<'_, T>| -> Vec<(u32, usize)> {
        group.network.site.switches().iter().copied().zip(0..).collect()
    };
    let mut switches: Vec<(u32, usize, usize)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        switches.extend(of_group(group).into_iter().map(|(switch, place)| (switch, number, place)));
    }
    switches.sort_unstable();
    for (_, group, place) in switches {
        groups[group].network.schemes[place].counters(&mut count);
    }
    hosts(groups).for_each(|host| host.scheme().counters(&mut count));
}

fn hosts<'g, 'a, T: Transports>(
    groups: &'g [Group<'a, T>],
) -> impl Iterator<Item = &'g Host<T>> + use<'g, 'a, T> {
    groups.iter().flat_map(|group| &group.hosts)
}

/// The most state that any node keeps.
fn state_bytes<T: Transports>(groups: &[Group<'_, T>]) -> [(&'static str, u64); 2] {
    let switches = groups.iter().flat_map(|group| &group.network.schemes);
    let per_switch = switches.map(SwitchScheme::state_bytes).max();
    let per_host = hosts(groups).map(|host| host.scheme().state_bytes()).max();
    [
        ("state_bytes_per_switch", per_switch.unwrap_or_default()),
        ("state_bytes_per_host", per_host.unwrap_or_default()),
    ]
}

fn memory<T: Transports>(groups: &[Group<'_, T>]) -> MemoryUse {
    let ends = size_of::<Option<Sender<SenderOf<T>>>>() + size_of::<Option<Receiver<ReceiverOf<T>>>>();
    MemoryUse {
        fabric: groups.iter().map(|group| group.network.memory_bytes()).sum(),
        // What the topology says of it and its way back, and its group and number there.
        per_link: size_of::<LinkSpec>()
            + size_of::<u32>()
            + size_of::<(u32, u32)>()
            + Network::BYTES_PER_LINK,
        per_active_flow: ends,
        peak_active_flows: hosts(groups).map(Host::peak_flows).sum(),
        // A number at each of its hosts, and a place there.
        per_flow: size_of::<Flow>() + 4 * size_of::<u32>(),
    }
}

/// The packets of flows that faults hit, by phase and flow.
fn arrivals_of(logs: &mut [HostLog]) -> Vec<ArrivedInPhase> {
    let arrived = logs.iter_mut().filter_map(|log| log.arrivals.take());
    let mut arrivals: Vec<ArrivedInPhase> =
        arrived.flat_map(|arrivals| Arrivals::finish(*arrivals)).collect();
    arrivals.sort_unstable_by_key(|one| (one.phase, one.flow));
    arrivals
}

fn packet_counts<T: Transports>(groups: &[Group<'_, T>]) -> PacketCounts {
    let mut sum = PacketCounts::default();
    for group in groups {
        sum.add(&group.network.counts);
    }
    sum
}

/// What each link did, in the order of the fabric: of each, its group and its number there.
fn links<T: Transports>(groups: &mut [Group<'_, T>], places: &[(u32, u32)], end: Time) -> Vec<LinkTotals> {
    let total = |&(group, link): &(u32, u32)| {
        let network = &mut groups[group as usize].network;
        let backlog_bytes = network.unsent_bytes(link as usize, end);
        let (state, drops) = (&network.state.links[link as usize], network.drops(link as usize));
        LinkTotals {
            packets: state.packets,
            bytes: state.bytes,
            dropped: drops.dropped,
            marked: drops.marked,
            credits_dropped: drops.credits,
            never_sent_bytes: drops.never_sent_bytes,
            backlog_bytes,
        }
    };
    places.iter().map(total).collect()
}

/// What came to each class of the ports that have several, in the order of the fabric.
fn classes<T: Transports>(groups: &[Group<'_, T>], places: &[(u32, u32)]) -> Vec<ClassOfLink> {
    let of_link = |(number, &(group, link)): (u32, &(u32, u32))| {
        let totals = groups[group as usize].network.class_totals(link as usize);
        totals.map(move |(class, totals)| ClassOfLink { link: number, class, totals })
    };
    (0..).zip(places).flat_map(of_link).collect()
}

/// What was counted, by name, in the order in which names came up.
#[derive(Default)]
struct Counters(Vec<SchemeCounter>);

impl Counters {
    fn count(&mut self, name: &'static str, value: u64) {
        match self.0.iter_mut().find(|entry| entry.name == name) {
            Some(counter) => counter.value += value,
            None => self.0.push(SchemeCounter { name: name.to_owned(), value }),
        }
    }
}

/// Credits sent, dropped on the way, and come in vain: their sender had nothing to send, or its flow had ended.
fn count_credits<T: Transports>(
    counters: &mut Counters,
    plan: &Plan<'_, T>,
    sums: &Sums,
    packets: &PacketCounts,
    strays: u64,
) {
    counters.count("credits_sent", sums.credits_sent);
    counters.count("credits_dropped", packets.credits_dropped);
    counters.count("credits_wasted", sums.wasted_credits + strays);
    if plan.transports.all().any(|transport| transport.five_tuples().apart() > 1) {
        counters.count("path_reselections", sums.reselections);
    }
}

/// What the receivers of RDMA transports sent beside acknowledgements, and which segments they did without.
fn count_answers(counters: &mut Counters, sums: &Sums) {
    counters.count("nacks_sent", sums.nacks_sent);
    counters.count("cnps_sent", sums.cnps_sent);
    counters.count("segments_refused", sums.refused);
    counters.count("segments_trimmed", sums.trimmed);
}

/// What each path carried, as the hosts at its ends counted it; empty unless asked for.
fn paths(logs: &mut [HostLog], topology: &Topology, routes: &Routes) -> Vec<PathTotal> {
    let meters = logs.iter_mut().filter_map(|log| log.paths.take());
    let together = meters.reduce(|mut sum: PathMeter, meter| {
        sum.absorb(meter);
        sum
    });
    together.map(|paths| paths.into_totals(topology, routes)).unwrap_or_default()
}
