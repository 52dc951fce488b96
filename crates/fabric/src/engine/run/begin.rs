//! The beginning of a simulation: partitions, hosts, and what is due first.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

use weft_balance::{AnyHostScheme, AnySwitchScheme, SwitchInfo};
use weft_packet::{HostId, Kind, Kinds};
use weft_topology::{FaultEvent, Ideal, Partitioning, Routes, SharedBufferRules, Topology};
use weft_traffic::{Application, Dependencies, Flow};
use weft_transport::{FiveTuples, KnownFabric, Multipath, Protocol, Transports};
use weft_units::{Purpose, Rate, Span, Stream, Time};

use super::windows::SyncWindows;
use super::{Engine, SLOWED, inner, last_start};
use crate::engine::arrivals::Arrivals;
use crate::engine::capture::CaptureOf;
use crate::engine::cwnd::Windows;
use crate::engine::degraded_links::DegradedLinkWatch;
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::external_hosts::{ExternalEnds, ExternalHosts};
use crate::engine::host::{
    Directory, Facts, Host, HostActions, HostLog, HostShared, PacketSizes, RunPlan, VirtualSwitch, Waiting,
    host_schemes, route_counts,
};
use crate::engine::host_cpu::{HostCpuSpec, HostCpus};
use crate::engine::network::{Network, NetworkFacts};
use crate::engine::partition::Destinations;
use crate::engine::partition::PartitionMap;
use crate::engine::partition::{Partition, Starts};
use crate::engine::paths::PathMeter;
use crate::engine::ports::SwitchConfigs;
use crate::engine::records::Records;
use crate::engine::sampler::Sampler;
use crate::engine::simulation::{InputError, SimulationInput};
use crate::engine::special::Peaks;
use crate::engine::switch::switch_schemes;
use crate::engine::tables::{Knowledge, Tables};
use crate::engine::tracer::Tracer;

/// The least number of flows that end before what hosts noted of them is looked for: it takes a
/// look at every host.
const TAKE_IN_EVERY: usize = 4_096;

/// So many windows the wheel of a partition covers at least: nearly all that comes first by a link
/// is due before that.
const WINDOWS_IN_WHEEL: u64 = 2;

/// Facts that all hosts know before the run begins.
fn plan<'a, T: Transports>(
    transports: T,
    (flows, application, dependencies): (&'a [Flow], Option<Application>, Option<&'a Dependencies>),
    topology: &Topology,
    subflows: u8,
    seed: u64,
    switches: SwitchConfigs,
) -> RunPlan<'a, T> {
    let directory = Directory::new(topology.hosts, flows, usize::from(subflows));
    let hash_key = Stream::new(seed, Purpose::FlowHash, 0).next_u64();
    RunPlan { transports, flows, application, dependencies, directory, hash_key, switches }
}

/// Gives the first partition the hosts that are not simulated.
fn lodge<'a, T: Transports>(
    external: Option<&'a mut dyn ExternalHosts>,
    partitions: &mut [Mutex<Partition<'a, T>>],
    flows: usize,
    lockstep: bool,
) {
    if let (Some(hosts), Some(partition)) = (external, partitions.first_mut()) {
        inner(partition).external = Some(Box::new(ExternalEnds::new(hosts, flows, lockstep)));
    }
}

/// How switches are configured, if hosts know it: by schemes that no packet meets.
fn known_switches(
    is_known: bool,
    topology: &Topology,
    seed: u64,
    max_wire_bytes: u16,
    base_rtts: &[Span],
    make: &mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme,
) -> SwitchConfigs {
    if !is_known {
        return SwitchConfigs::default();
    }
    let all: Vec<u32> = (0..topology.switches as u32).collect();
    SwitchConfigs::new(switch_schemes(topology, &all, seed, max_wire_bytes, base_rtts, make))
}

impl<'a, T: Transports> Engine<'a, T> {
    /// A run that has not begun.
    ///
    /// # Errors
    /// State at hosts that memory does not hold.
    #[allow(clippy::too_many_lines, reason = "each line gives a part of the run what it needs")]
    pub fn new(mut transports: T, input: SimulationInput<'a>) -> Result<Self, InputError> {
        let SimulationInput { topology, scheme, seed, faults, flows, .. } = input;
        let (is_external, has_external_hosts) =
            (input.external_scheme.is_some(), input.external_hosts.is_some());
        let has_oracle = !is_external && scheme.sees_everything();
        let machine = input.machine.filter(|machine| !machine.takes_no_time());
        let (waits_for_external, last_start) = waits(input.external_hosts.as_deref(), flows);
        let own_hooks = (scheme.switch_hooks(), scheme.host_hooks());
        let hooks @ (_, host_hooks) = if is_external { Default::default() } else { own_hooks };
        let mut own = |info: &SwitchInfo<'_>| scheme.switch_scheme(info);
        let sizes @ PacketSizes { full_bytes: max_wire_bytes, .. } = PacketSizes::of_all(&transports);
        let facts = Facts::new(topology, faults, sizes);
        let base_rtts = facts.base_rtts_if(is_external || scheme.asks_for_base_rtts());
        tell_fabric(&mut transports, &facts);
        let (subflows, apart) = five_tuples(&transports);
        // The effects of an external scheme are not known beforehand.
        let is_known = apart > 1 && !is_external;
        let switches = known_switches(is_known, topology, seed, max_wire_bytes, base_rtts, &mut own);
        let partitioning = input.partitioning().ok();
        let make_scheme = input.external_scheme.unwrap_or(&mut own);
        let peaks = input.sample_every.map_or(Peaks::NotKept, |_| Peaks::Kept);
        let knowledge = Knowledge::at_start(topology);
        let pinned = host_hooks.pinned.then(|| facts.routes_at_best());
        let tables = tables_at_start(&knowledge, &facts, pinned.clone());
        let routes = routes_for_hosts(topology, &tables, host_hooks.on_send);
        let reads = kinds_read(host_hooks.on_receive || has_external_hosts, subflows > 1, apart > 1);
        let arrivals = Arrivals::of(input.spans, input.phases);
        let counts_arrivals = input.paths_of.is_some() || arrivals.is_some();
        let common = || HostShared {
            topology,
            sizes,
            hooks: host_hooks,
            reads,
            stops: kinds_that_stop(reads, machine.is_some(), topology.shared_buffer),
            sends_apart: host_hooks.on_send || machine.is_some(),
            counts_arrivals,
            routes: Arc::clone(&routes),
            actions: HostActions::default(),
            delivered: 0,
            is_ack_clocked: false,
        };
        let traffic = (flows, input.application, input.dependencies);
        let plan = plan(transports, traffic, topology, subflows, seed, switches);
        let schemes = host_schemes(&facts, scheme, host_hooks, &routes, seed, input.memory)?;
        let finite = flows.iter().filter(|flow| !flow.background).count();
        let mut maker = Maker {
            plan: &plan,
            facts: NetworkFacts {
                faults,
                seed,
                peaks,
                max_wire_bytes,
                base_rtts,
                has_oracle,
                hooks,
                phases: input.phases,
                looks_ahead: topology.links.len() >= input.prefetch_from,
            },
            tables,
            partitioning: partitioning.as_ref().map(|partitioning| {
                (Arc::new(Destinations::new(topology, partitioning)), partitioning.lookahead)
            }),
            common: &common,
            host_schemes: schemes.into_iter(),
            switch_scheme: make_scheme,
            paths: input.paths_of.map(PathMeter::new),
            arrivals,
            observe_every: input.observe_every,
            capture: input.capture,
            trace_flows: input.trace_flows,
            machine,
            last: if finite > 0 || waits_for_external { finite } else { usize::MAX },
            waiting: waiting(input.dependencies, flows, topology.hosts).into_iter(),
        };
        let maps = maps(topology, partitioning.as_ref());
        let places = places(topology, &maps);
        let mut partitions = maker.partitions(maps);
        let lockstep = host_hooks.on_send || host_hooks.on_receive;
        lodge(input.external_hosts, &mut partitions, flows.len(), lockstep);
        let threads = input.threads.clamp(1, partitions.len());
        let lookahead = partitioning.map(|partitioning| partitioning.lookahead);
        let sync_windows =
            lookahead.map(|window| SyncWindows::new(window, partitions.len(), threads, input.share_from));
        let mut engine = Self {
            topology,
            partitions,
            sync_windows: sync_windows.map(|sync_windows| sync_windows.balanced_over(input.balance_of)),
            plan,
            agenda: std::collections::BinaryHeap::new(),
            knowledge,
            pinned,
            faults,
            reroute_after: input.reroute_after,
            finite,
            waits_for_external,
            last_instant: last_start.saturating_add(input.time_limit),
            ending: None,
            deadlock: Vec::new(),
            timers: 0,
            sampler: input.sample_every.map(|every| Sampler::new(every, topology, flows)),
            windows: input.windows_of.map(|(flows, every)| Windows::new(flows, every)),
            slowed: DegradedLinkWatch::of(input.spans, topology, sizes.full_bytes),
            places,
            around: input.around,
            records: Records::new(flows.len(), ideal(input.ideal_of, facts)),
            taken_in: 0,
            take_in_every: TAKE_IN_EVERY.max(topology.hosts / 4),
        };
        engine.prepare();
        Ok(engine)
    }

    /// Lets schemes begin, and arms the first events.
    fn prepare(&mut self) {
        for partition in self.partitions.iter_mut().map(inner) {
            let outgoing = self.sync_windows.as_mut().map(|sync_windows| &mut sync_windows.outgoing[0]);
            partition.with_outgoing(outgoing, |partition| partition.prepare(&self.plan));
        }
        self.carry();
        for (index, fault) in self.faults.iter().enumerate() {
            self.agenda.push(Reverse((fault.at, EventKey::new(EventKind::Fault, index as u32))));
        }
        if let Some(windows) = &self.windows {
            for (number, &flow) in (1..).zip(windows.flows) {
                let first = self.plan.flows[flow as usize].start.saturating_add(windows.every);
                self.agenda.push(Reverse((first, EventKey::new(EventKind::Sample, number))));
            }
        }
        let first = self.slowed.as_ref().and_then(DegradedLinkWatch::first);
        self.agenda.extend(first.map(|first| Reverse((first, SLOWED))));
        self.sample(Time::ZERO);
        self.look_for_deadlock_from(Time::ZERO);
    }
}

/// The tables that a run begins with. Where nothing ever changes they are those of the fabric at
/// its best, and found already.
fn tables_at_start(knowledge: &Knowledge, facts: &Facts<'_>, pinned: Option<Arc<Routes>>) -> Arc<Tables> {
    if facts.faults.is_empty() {
        let routes = Routes::clone(&facts.routes_at_best());
        return Arc::new(Tables { routes, pinned });
    }
    knowledge.tables(facts.topology, pinned)
}

/// How many explicit routes there are from rack to rack, if hosts ask; else nothing.
fn routes_for_hosts(topology: &Topology, tables: &Tables, hosts_ask: bool) -> Arc<[u16]> {
    if hosts_ask { route_counts(topology, tables.explicit()).into() } else { Arc::default() }
}

/// Whether the run waits for external hosts, besides flows, and when the last begins of all that it
/// waits for.
fn waits(external: Option<&dyn ExternalHosts>, flows: &[Flow]) -> (bool, Time) {
    let begins = external.map_or(Time::ZERO, ExternalHosts::last_start);
    (external.is_some_and(ExternalHosts::is_busy), begins.max(last_start(flows)))
}

/// Tells transports that go by it what an operator knows of the fabric.
fn tell_fabric(transports: &mut impl Transports, facts: &Facts<'_>) {
    if !transports.all().any(Protocol::needs_fabric) {
        return;
    }
    let cables = &facts.topology.links[..facts.topology.hosts];
    let fastest = cables.iter().map(|link| link.condition.rate).max().filter(|rate| !rate.is_zero());
    let pace = fastest.unwrap_or(Rate::from_gbps(1)).ps_per_byte();
    let known = KnownFabric { base_rtt: facts.longest_rtt(), pace, trims: facts.topology.trims() };
    for transport in transports.all_mut().filter(|transport| transport.needs_fabric()) {
        transport.configure(known);
    }
}

/// The most subflows that flows have, and the most five-tuples that lead over paths apart.
fn five_tuples(transports: &impl Transports) -> (u8, u8) {
    let most = |of: fn(FiveTuples) -> u8| {
        transports.all().map(|transport| of(transport.five_tuples())).max().unwrap_or(1)
    };
    (most(FiveTuples::subflows), most(FiveTuples::apart))
}

/// Packets that are not simply for their transport: those that are read, pauses and data that they
/// may have kept, and all where the CPU of hosts takes time.
fn kinds_that_stop(reads: Kinds, has_machines: bool, memory: Option<SharedBufferRules>) -> Kinds {
    let may_pause = memory.is_some_and(|memory| memory.pause.is_some());
    let pauses = if may_pause { Kinds::of(&[Kind::Pause, Kind::Data]) } else { Kinds::NONE };
    if has_machines { Kinds::ALL } else { reads.or(pauses) }
}

/// The packets that hosts read more of than their transport's fields: all, or what brings more. Of
/// subflows data says which segment it carries, and paths apart are named in a request.
fn kinds_read(all: bool, subflows: bool, apart: bool) -> Kinds {
    let read = [
        (all, Kinds::ALL),
        (subflows, Kinds::of(&[Kind::Data, Kind::Message])),
        (apart, Kinds::of(&[Kind::CreditRequest, Kind::Message])),
    ];
    read.into_iter().filter(|(is_so, _)| *is_so).fold(Kinds::NONE, |kinds, (_, more)| kinds.or(more))
}

/// Ideal completion times: of the fabric that is asked for, or of this one.
fn ideal(asked: Option<(&Topology, &[FaultEvent])>, facts: Facts<'_>) -> Ideal {
    asked.map_or_else(|| facts.into_ideal(), |(topology, faults)| Ideal::over_faults(topology, faults))
}

/// The map of the whole fabric, or of each partition.
fn maps<'a>(topology: &'a Topology, partitioning: Option<&Partitioning>) -> Vec<PartitionMap<'a>> {
    match partitioning {
        None => vec![PartitionMap::whole(topology)],
        Some(partitioning) => partitioning
            .partitions
            .iter()
            .map(|partition| PartitionMap::of_partition(topology, partition, partitioning.split.clone()))
            .collect(),
    }
}

/// By link of the fabric: its partition, and its number there.
fn places(topology: &Topology, maps: &[PartitionMap<'_>]) -> Vec<(u32, u32)> {
    let mut places = vec![(0, 0); topology.links.len()];
    for (number, map) in (0..).zip(maps) {
        for link in 0..map.link_count() as u32 {
            places[map.number(link) as usize] = (number, link);
        }
    }
    places
}

/// Makes partitions, in the order of their hosts.
struct Maker<'m, 'a, T: Transports> {
    plan: &'m RunPlan<'a, T>,
    facts: NetworkFacts<'m>,
    tables: Arc<Tables>,
    /// Which partition has which nodes, and the lookahead; none if there is one partition.
    partitioning: Option<(Arc<Destinations>, Span)>,
    common: &'m dyn Fn() -> HostShared<'a>,
    /// Schemes of the hosts that have none yet.
    host_schemes: std::vec::IntoIter<AnyHostScheme>,
    switch_scheme: &'m mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme,
    paths: Option<PathMeter>,
    arrivals: Option<Arrivals>,
    observe_every: Option<Span>,
    capture: Option<CaptureOf<'a>>,
    trace_flows: Option<(usize, Span)>,
    machine: Option<HostCpuSpec>,
    /// With so many flows ended the run is over, where there is one partition.
    last: usize,
    /// Dependencies of the hosts that have not been made yet; nothing if none has any.
    waiting: std::vec::IntoIter<Waiting>,
}

/// By host: what its flows and computations wait for; nothing if none does.
fn waiting(dependencies: Option<&Dependencies>, flows: &[Flow], hosts: usize) -> Vec<Waiting> {
    let source = |flow: u32| flows[flow as usize].src;
    dependencies.map(|dependencies| Waiting::at_hosts(dependencies, source, hosts)).unwrap_or_default()
}

impl<'a, T: Transports> Maker<'_, 'a, T> {
    /// By partition.
    fn partitions(&mut self, maps: Vec<PartitionMap<'a>>) -> Vec<Mutex<Partition<'a, T>>> {
        (0..).zip(maps).map(|(number, map)| Mutex::new(self.partition(number, map))).collect()
    }

    fn partition(&mut self, number: u32, map: PartitionMap<'a>) -> Partition<'a, T> {
        let flows = self.plan.flows;
        let hosts = map.hosts();
        let dependencies = self.plan.dependencies;
        let is_all = self.partitioning.is_none() && dependencies.is_none();
        let starts = if is_all { Starts::All } else { Starts::of_hosts(flows, dependencies, &hosts) };
        let may_pause = map.fabric.shared_buffer.is_some_and(|memory| memory.pause.is_some());
        let hosts = hosts.map(|host| self.host(host, may_pause)).collect();
        let last = if self.partitioning.is_none() { self.last } else { usize::MAX };
        Partition::new(self.network(number, map), hosts, (self.common)(), starts, last)
    }

    fn host(&mut self, number: u32, may_pause: bool) -> Host<T> {
        let stream = |purpose| Stream::new(self.facts.seed, purpose, u64::from(number));
        let scheme = self.host_schemes.next().unwrap_or(AnyHostScheme::None);
        let virtual_switch = VirtualSwitch { scheme, stream: stream(Purpose::HostScheme) };
        let arrivals = self.arrivals.clone().map(Box::new);
        let log = HostLog { paths: self.paths.clone(), arrivals, ..HostLog::default() };
        let waiting = self.waiting.next();
        let (host, transport) = (HostId(number as u16), stream(Purpose::Transport));
        Host::new(host, &self.plan.directory, virtual_switch, transport, log, waiting, may_pause)
    }

    fn network(&mut self, number: u32, map: PartitionMap<'a>) -> Network<'a> {
        let mut network = Network::new(map, Arc::clone(&self.tables), self.facts, self.switch_scheme);
        if let Some(rules) = self.plan.transports.all().find_map(Protocol::credit_ports) {
            network.open_credit_ports(&rules);
        }
        if let Some((destinations, window)) = &self.partitioning {
            network.events.cover(window.saturating_mul(WINDOWS_IN_WHEEL));
            network.join(number, Arc::clone(destinations));
        }
        if let Some(window) = self.observe_every {
            network.observe(window, self.facts.max_wire_bytes);
        }
        if let Some(of) = self.capture {
            network.capture(of);
        }
        let hosts = network.map.hosts().len();
        network.host_cpus = self.machine.map(|machine| Box::new(HostCpus::new(machine, hosts)));
        if let Some((count, every)) = self.trace_flows {
            network.trace(Tracer::new(count, self.plan.flows, every));
        }
        network
    }
}
