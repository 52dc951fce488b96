//! A network before its first packet.

use std::sync::Arc;

use weft_balance::{AnySwitchScheme, HostHooks, Ports, SwitchHooks, SwitchInfo};
use weft_packet::{Kind, Kinds};
use weft_topology::FaultEvent;
#[cfg(test)]
use weft_topology::{Routes, Topology};
use weft_units::{Purpose, Span, Stream, Time};

use super::{LinkDrops, Network, PacketCounts, PortStates};
use crate::engine::capture::{Capture, CaptureOf};
use crate::engine::drops::Losses;
use crate::engine::event_set::EventSet;
use crate::engine::hold::HoldQueues;
use crate::engine::link::{Link, PortKind, Profiles};
use crate::engine::partition::Numbers;
use crate::engine::partition::OutgoingBatches;
use crate::engine::partition::PartitionMap;
use crate::engine::partition::{Destinations, Exchange, STAYS};
use crate::engine::pause::SharedBuffers;
use crate::engine::pool::Pool;
use crate::engine::software_switch::{STOPS_ALL, SoftwareSwitches};
use crate::engine::special::Peaks;
use crate::engine::switch::{SwitchActions, switch_schemes};
use crate::engine::tables::Tables;

/// Hooks of switches that answer traces.
const TRACES: SwitchHooks =
    SwitchHooks { on_arrival: Kinds::of(&[Kind::Message]), on_arrival_by: Ports::All, ..SwitchHooks::NONE };

/// Facts that the networks of all parts have in common.
#[derive(Debug, Clone, Copy)]
pub struct NetworkFacts<'f> {
    /// How links change.
    pub faults: &'f [FaultEvent],
    /// The seed.
    pub seed: u64,
    /// Whether somebody asks for the peaks of queues.
    pub peaks: Peaks,
    /// The largest packet.
    pub max_wire_bytes: u16,
    /// The round trips between racks, if the scheme asks for them: see
    /// [`switch_schemes`](crate::engine::switch::switch_schemes).
    pub base_rtts: &'f [Span],
    /// Whether the oracle chooses paths. Then it is all of a fabric.
    pub has_oracle: bool,
    /// Hooks of the scheme.
    pub hooks: (SwitchHooks, HostHooks),
    /// The instants that divide the run into phases, if losses are to be counted by phase.
    pub phases: Option<&'f [Time]>,
    /// Whether the fabric is so large that what events need is asked for beforehand.
    pub looks_ahead: bool,
}

/// So many events are to be in one slot of the timing wheel of a fabric that looks ahead, when all
/// links are busy: enough that memory can be asked for many of them at once, and few enough to be
/// sorted.
const EVENTS_IN_A_CROWD: f64 = 64.0;

impl<'a> Network<'a> {
    /// An idle network. `scheme` makes the scheme of each switch.
    pub fn new(
        map: PartitionMap<'a>,
        tables: Arc<Tables>,
        facts: NetworkFacts<'_>,
        scheme: &mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme,
    ) -> Self {
        let NetworkFacts {
            faults,
            seed,
            peaks,
            max_wire_bytes,
            base_rtts,
            has_oracle,
            hooks,
            phases,
            looks_ahead,
        } = facts;
        let (hooks, host_hooks) = hooks;
        let topology = map.fabric;
        let mut changes = vec![false; map.link_count()];
        for link in faults.iter().filter_map(|fault| map.link(fault.link)) {
            changes[link as usize] = true;
        }
        let schemes = switch_schemes(topology, map.switches(), seed, max_wire_bytes, base_rtts, scheme);
        let streams =
            map.switches().iter().map(|&switch| Stream::new(seed, Purpose::SwitchScheme, switch.into()));
        let hooks = schemes.iter().fold(hooks, |hooks, scheme| hooks.or(scheme.external_hooks()));
        let traced = if host_hooks.traces { TRACES } else { SwitchHooks::NONE };
        let scheme_hooks = hooks.or(traced);
        let inputs = SoftwareSwitches::of(topology, map.switches().len());
        let shared_buffers = SharedBuffers::of(&map, faults, max_wire_bytes);
        let stops = if inputs.is_some() || shared_buffers.is_some() { STOPS_ALL } else { SwitchHooks::NONE };
        let mut network = Self {
            now: Time::ZERO,
            events: EventSet::new(0, Numbers::default()),
            state: PortStates {
                are_looked_at: has_oracle || schemes.iter().any(AnySwitchScheme::looks_at_queues),
                needs_waiting_bytes: schemes.iter().any(AnySwitchScheme::needs_waiting_bytes),
                chooses_apart: has_oracle,
                links: Vec::with_capacity(map.link_count()),
                profiles: Profiles::default(),
                scheduled: Vec::new(),
                specials: Vec::new(),
                local_up: map.specs().map(|spec| spec.condition.up).collect(),
            },
            has_credits: false,
            drops: vec![LinkDrops::default(); map.link_count()],
            pool: Pool::default(),
            topology,
            routes: map.rows(&tables.routes),
            schemes,
            hooks: scheme_hooks.or(stops),
            scheme_hooks,
            inputs: inputs.map(Box::new),
            shared_buffers: shared_buffers.map(Box::new),
            host_cpus: None,
            traces: host_hooks.traces,
            pinned: tables.pinned.as_deref().map(|routes| map.rows(routes)),
            tables,
            watched_ports: hooks.on_enqueued,
            observer: None,
            capture: None,
            tracer: None,
            follow: None,
            oracle: None,
            actions: SwitchActions::default(),
            hold_queues: HoldQueues::default(),
            streams: streams.collect(),
            changes,
            rate_changes: Vec::new(),
            peaks,
            seed,
            max_wire_bytes,
            losses: phases.map(|phases| Box::new(Losses::new(phases))),
            dropped: Vec::new(),
            trail_base: topology.trail_base(),
            map,
            exchange: None,
            counts: PacketCounts::default(),
        };
        for link in 0..network.map.link_count() as u32 {
            let map = &network.map;
            let far_end = map.leads_to(link);
            let spec = map.spec(link);
            network.state.links.push(Link::idle(far_end, 0, spec.tier as u8));
            network.install(link);
            network.apply_condition(link, spec.condition);
        }
        let horizon = network.state.profiles.iter().map(|profile| profile.transit(max_wire_bytes)).max();
        network.events = EventSet::new(horizon.unwrap_or_default().as_ps(), network.map.numbers());
        if looks_ahead {
            network.events.prefetch(network.crowd_ps(max_wire_bytes));
        }
        network.open_ports(None);
        if has_oracle {
            network.ask_oracle();
        }
        network
    }

    /// How long it takes at most until so many packets have arrived here, in ps.
    fn crowd_ps(&self, max_wire_bytes: u16) -> u64 {
        let service_ps = |link: &Link| self.state.profiles[link.profile].service_ps(max_wire_bytes).max(1);
        let arrivals_a_ps: f64 = self.state.links.iter().map(|link| 1.0 / service_ps(link) as f64).sum();
        (EVENTS_IN_A_CROWD / arrivals_a_ps) as u64
    }

    /// Notes from now on packets that links send. Ports with several classes send in an order of
    /// their own and are left out.
    pub fn capture(&mut self, of: CaptureOf<'_>) {
        let capture = Capture::new(of, self.map.link_count());
        for link in capture.links() {
            self.state.links[link].add_kind(PortKind::Special);
        }
        self.capture = Some(capture);
    }

    /// Makes it the part with this number of a fabric that is cut.
    pub fn join(&mut self, own: u32, destinations: Arc<Destinations>) {
        let latest = |link: u32| if self.map.may_leave(link) { 0 } else { STAYS };
        let latest: Vec<u64> = (0..self.map.link_count() as u32).map(latest).collect();
        for (link, &latest) in self.state.links.iter_mut().zip(&latest) {
            if latest != STAYS {
                link.add_kind(PortKind::Leaving);
            }
        }
        self.exchange = Some(Exchange { own, destinations, latest, outgoing: OutgoingBatches::default() });
        let entries: Vec<_> = self.map.entries().collect();
        for (number, far_end) in entries {
            self.add_entry(number, far_end);
        }
    }

    /// An idle network that is all of a fabric.
    #[cfg(test)]
    pub fn of_all(
        topology: &'a Topology,
        faults: &[FaultEvent],
        seed: u64,
        peaks: Peaks,
        max_wire_bytes: u16,
        hooks: (SwitchHooks, HostHooks),
        scheme: &mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme,
    ) -> Self {
        let pinned = hooks.1.pinned.then(|| Arc::new(Routes::at_start(&topology.at_its_best(faults))));
        let tables = crate::engine::tables::Knowledge::at_start(topology).tables(topology, pinned);
        let facts = NetworkFacts {
            faults,
            seed,
            peaks,
            max_wire_bytes,
            base_rtts: &[],
            has_oracle: false,
            hooks,
            phases: None,
            looks_ahead: false,
        };
        Self::new(PartitionMap::whole(topology), tables, facts, scheme)
    }
}
