//! The end of a simulation: what it leaves behind.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use weft_balance::AnySwitchScheme;
use weft_packet::FlowId;
use weft_topology::{LinkSpec, Routes, Topology};
use weft_traffic::Flow;
use weft_transport::{Multipath, Protocol, ReceiverOf, SenderOf, Transports};
use weft_units::Time;

use super::balance::Balance;
use super::workers::locked;
use super::{Engine, inner};
use crate::engine::arrivals::{Arrivals, ArrivedInPhase};
use crate::engine::capture::Capture;
use crate::engine::drops::Losses;
use crate::engine::host::{Host, HostLog, Receiver, RunPlan, Sender};
use crate::engine::identities;
use crate::engine::network::{Network, PacketCounts};
use crate::engine::partition::OutgoingBatches;
use crate::engine::partition::Partition;

use crate::engine::degraded_links::DegradedLink;
use crate::engine::paths::{PathMeter, PathTotal};
use crate::engine::pause::Blocked;
use crate::engine::records::{FlowRecords, Spool, Sums};
use crate::engine::results::{
    ClassOfLink, Cooperation, LinkTotals, MemoryUse, PauseOfLink, Results, SchemeCounter, SharedBufferUse,
};
use crate::engine::sampler::Samples;
use crate::engine::simulation::Ending;
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

    /// Results of the run, finished or not: the records of flows apart.
    pub fn finish(mut self) -> (Results, FlowRecords) {
        if self.sync_windows.is_some() {
            self.take_in_sent();
        }
        if let Some(partition) = self.partitions.first_mut().map(inner) {
            partition.close_external(&self.plan);
        }
        let end = self.now();
        self.partitions_mut().for_each(|partition| partition.network.catch_up(end, true));
        let samples = self.last_samples(end);
        let slowed = self.last_of_slowed(end);
        let cooperation = self.cooperation();
        let pauses = self.pauses(end);
        let (shared_buffers, blocked) = (self.shared_buffers(), self.blocked());
        let Self {
            topology, partitions, plan, places, timers, windows, mut records, deadlock, ending, ..
        } = self;
        let mut partitions: Vec<Partition<'_, T>> = partitions
            .into_iter()
            .map(|partition| partition.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let memory = memory(&partitions);
        let mut counters = Counters::default();
        count_schemes(&partitions, &mut counters);
        let state_bytes = state_bytes(&partitions);
        let links = links(&mut partitions, &places, end);
        let classes = classes(&partitions, &places);
        let packets = packet_counts(&partitions);
        let in_flight = partitions.iter().map(|partition| partition.network.in_flight()).sum();
        let timers = timers + partitions.iter().map(|partition| partition.timers).sum::<u64>();
        let has_credit_ports = partitions.iter().any(|partition| partition.network.has_credit_ports());
        let largest_packet_bytes =
            partitions.first().map_or(0, |partition| partition.common.sizes.full_bytes);
        let tables = partitions.first().map(|partition| Arc::clone(&partition.network.tables));
        let (mut logs, mut dropped): (Vec<HostLog>, _) = (Vec::new(), Vec::new());
        let mut captured = Vec::new();
        let (mut observations, mut tracers) = (Vec::new(), Vec::new());
        let (mut losses, mut rate_changes) = (Vec::new(), Vec::new());
        for partition in partitions {
            let Partition { hosts, mut network, .. } = partition;
            logs.extend(hosts.into_iter().map(|host| host.into_log(&plan)));
            dropped.append(&mut network.dropped);
            rate_changes.append(&mut network.rate_changes);
            captured.extend(network.capture.take().map(Capture::into_packets));
            // Whoever observes has one partition.
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
        if plan.transports.all().any(Protocol::is_rnic_scheduled) {
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
            shared_buffers,
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
        let alone = Cooperation { partitions: 1, threads: 1, ..Cooperation::default() };
        self.sync_windows.as_ref().map_or(alone, |sync_windows| Cooperation {
            partitions: self.partitions.len(),
            threads: sync_windows.outgoing.len(),
            windows: sync_windows.windows,
            crossings: sync_windows.outgoing.iter().map(OutgoingBatches::sent).sum(),
            sharing: sync_windows.balance.as_ref().map(Balance::sharing),
        })
    }

    /// Which links were paused, because of which, and how long.
    fn pauses(&mut self, end: Time) -> Vec<PauseOfLink> {
        self.partitions_mut().for_each(|partition| partition.network.now = end);
        let (partitions, places) = (&mut self.partitions, &self.places);
        let of_link = |(number, &(partition, link)): (u32, &(u32, u32))| {
            let totals = inner(&mut partitions[partition as usize]).network.pause_totals(link as usize);
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
        for shared_buffers in
            self.partitions_mut().filter_map(|partition| partition.network.shared_buffers.as_ref())
        {
            for (flow, one) in &shared_buffers.by_flow {
                // Subflows are numbered beyond all flows.
                let sum = sums.entry(FlowId((flow.index() % flows) as u32)).or_default();
                sum.blocked += one.blocked;
                sum.innocently += one.innocently;
            }
        }
        sums.into_iter().collect()
    }

    /// How full the memory of each switch was.
    fn shared_buffers(&mut self) -> Vec<SharedBufferUse> {
        let mut found: Vec<SharedBufferUse> = Vec::new();
        for partition in self.partitions_mut() {
            let Some(shared_buffers) = &partition.network.shared_buffers else { continue };
            let switches = partition.network.map.switches().iter().zip(&shared_buffers.switches);
            found.extend(
                switches.map(|(&switch, memory)| SharedBufferUse { switch, largest_bytes: memory.peak() }),
            );
        }
        found.sort_unstable_by_key(|memory| memory.switch);
        found
    }

    fn last_of_slowed(&mut self, end: Time) -> Vec<DegradedLink> {
        let Some(watch) = self.slowed.take() else { return Vec::new() };
        self.partitions_mut().for_each(|partition| partition.network.now = end);
        let (partitions, places) = (&self.partitions, &self.places);
        watch.finish(end, &mut |link| {
            let (partition, link) = places[link as usize];
            locked(&partitions[partition as usize]).network.given_and_waiting(link as usize)
        })
    }

    fn last_samples(&mut self, end: Time) -> Option<Samples> {
        let mut sampler = self.sampler.take()?;
        sampler
            .deliveries
            .sum_up(&self.plan, self.partitions.iter_mut().flat_map(|partition| &inner(partition).hosts));
        self.partitions_mut().for_each(|partition| partition.network.now = end);
        self.note_memories(&mut sampler, end);
        let (partitions, places) = (&mut self.partitions, &self.places);
        Some(sampler.finish(end, &mut |link| {
            let (partition, link) = places[link];
            inner(&mut partitions[partition as usize]).network.look(link as usize)
        }))
    }
}

/// Counters of schemes: those of switches in the order of the fabric, then those of hosts.
fn count_schemes<T: Transports>(partitions: &[Partition<'_, T>], counters: &mut Counters) {
    let mut count = |name: &'static str, value: u64| counters.count(name, value);
    let of_partition = |partition: &'_ Partition<'_, T>| -> Vec<(u32, usize)> {
        partition.network.map.switches().iter().copied().zip(0..).collect()
    };
    let mut switches: Vec<(u32, usize, usize)> = Vec::new();
    for (number, partition) in partitions.iter().enumerate() {
        switches.extend(of_partition(partition).into_iter().map(|(switch, place)| (switch, number, place)));
    }
    switches.sort_unstable();
    for (_, partition, place) in switches {
        partitions[partition].network.schemes[place].counters(&mut count);
    }
    hosts(partitions).for_each(|host| host.scheme().counters(&mut count));
}

fn hosts<'g, 'a, T: Transports>(
    partitions: &'g [Partition<'a, T>],
) -> impl Iterator<Item = &'g Host<T>> + use<'g, 'a, T> {
    partitions.iter().flat_map(|partition| &partition.hosts)
}

/// The most state that any node keeps.
fn state_bytes<T: Transports>(partitions: &[Partition<'_, T>]) -> [(&'static str, u64); 2] {
    let switches = partitions.iter().flat_map(|partition| &partition.network.schemes);
    let per_switch = switches.map(AnySwitchScheme::state_bytes).max();
    let per_host = hosts(partitions).map(|host| host.scheme().state_bytes()).max();
    [
        ("state_bytes_per_switch", per_switch.unwrap_or_default()),
        ("state_bytes_per_host", per_host.unwrap_or_default()),
    ]
}

fn memory<T: Transports>(partitions: &[Partition<'_, T>]) -> MemoryUse {
    let ends = size_of::<Option<Sender<SenderOf<T>>>>() + size_of::<Option<Receiver<ReceiverOf<T>>>>();
    MemoryUse {
        fabric: partitions.iter().map(|partition| partition.network.memory_bytes()).sum(),
        // What the topology says of it and its way back, and its partition and number there.
        per_link: size_of::<LinkSpec>()
            + size_of::<u32>()
            + size_of::<(u32, u32)>()
            + Network::BYTES_PER_LINK,
        per_active_flow: ends,
        peak_active_flows: hosts(partitions).map(Host::peak_flows).sum(),
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

fn packet_counts<T: Transports>(partitions: &[Partition<'_, T>]) -> PacketCounts {
    let mut sum = PacketCounts::default();
    for partition in partitions {
        sum.add(&partition.network.counts);
    }
    sum
}

/// Results of each link, in the order of the fabric: of each, its partition and its number there.
fn links<T: Transports>(
    partitions: &mut [Partition<'_, T>],
    places: &[(u32, u32)],
    end: Time,
) -> Vec<LinkTotals> {
    let total = |&(partition, link): &(u32, u32)| {
        let network = &mut partitions[partition as usize].network;
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

/// Totals of each class of the ports that have several, in the order of the fabric.
fn classes<T: Transports>(partitions: &[Partition<'_, T>], places: &[(u32, u32)]) -> Vec<ClassOfLink> {
    let of_link = |(number, &(partition, link)): (u32, &(u32, u32))| {
        let totals = partitions[partition as usize].network.class_totals(link as usize);
        totals.map(move |(class, totals)| ClassOfLink { link: number, class, totals })
    };
    (0..).zip(places).flat_map(of_link).collect()
}

/// Counters by name, in the order in which names came up.
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

/// Credits sent, dropped on the way, and come in vain: their sender had nothing to send, or its
/// flow had ended.
fn count_credits<T: Transports>(
    counters: &mut Counters,
    plan: &RunPlan<'_, T>,
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

/// Counts answers of RDMA receivers (NACKs, CNPs) and segments that they did without.
fn count_answers(counters: &mut Counters, sums: &Sums) {
    counters.count("nacks_sent", sums.nacks_sent);
    counters.count("cnps_sent", sums.cnps_sent);
    counters.count("segments_refused", sums.refused);
    counters.count("segments_trimmed", sums.trimmed);
}

/// Traffic of each path, as the hosts at its ends counted it; empty unless asked for.
fn paths(logs: &mut [HostLog], topology: &Topology, routes: &Routes) -> Vec<PathTotal> {
    let meters = logs.iter_mut().filter_map(|log| log.paths.take());
    let together = meters.reduce(|mut sum: PathMeter, meter| {
        sum.absorb(meter);
        sum
    });
    together.map(|paths| paths.into_totals(topology, routes)).unwrap_or_default()
}
