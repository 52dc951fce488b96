//! The engine of a simulation: flows start, packets move, flows end.

mod outcome;

use weft_balance::{EdgeHooks, SwitchHooks, SwitchInfo};
use weft_packet::{FlowId, HostId};
use weft_topology::FaultEvent;
use weft_traffic::Flow;
use weft_transport::{FiveTuples, Multipath, Protocol, Transports};
use weft_units::{Purpose, Span, Stream, Time};

use super::event_set::{EventKey, EventKind, Next};
use super::host::{
    Common, Deeds, Directory, Edge, Here, Host, HostLog, Nic, PacketSizes, Plan, Side, edge_schemes,
    route_counts,
};
use super::network::Network;
use super::paths::PathMeter;
use super::pool::PacketIndex;
use super::ports::SwitchConfigs;
use super::sampler::Sampler;
use super::simulation::{Ending, Progress, SimulationInput, Status};
use super::special::Peaks;
use super::switch::switch_schemes;
use super::tracer::Tracer;

/// A run over one transport or several, from its first event to its last.
pub struct Engine<'a, T: Transports> {
    network: Network<'a>,
    hosts: Vec<Host<T>>,
    plan: Plan<'a, T>,
    common: Common<'a>,
    faults: &'a [FaultEvent],
    reroute_after: Span,
    next_flow: usize,
    finished: usize,
    finite: usize,
    /// Nothing happens after this instant: the time limit, or when the last flow that can end has ended.
    last_instant: Time,
    ending: Option<Ending>,
    /// Events that were no packet's arrival.
    timers: u64,
    sampler: Option<Sampler<'a>>,
}

/// One host and what a call there can reach.
macro_rules! at_host {
    ($engine:ident, $host:expr, |$node:ident, $plan:ident, $here:ident| $call:expr) => {{
        let ($plan, host) = (&$engine.plan, $host);
        let $here = &mut Here { nic: Nic::new(&mut $engine.network, host), common: &mut $engine.common };
        let $node = &mut $engine.hosts[host.index()];
        $call
    }};
}

impl<'a, T: Transports> Engine<'a, T> {
    /// A run that has not begun.
    pub fn new(transports: T, input: SimulationInput<'a>) -> Self {
        let SimulationInput { topology, balancer, seed, faults, flows, .. } = input;
        let is_external = input.external.is_some();
        let (hooks, edge_hooks) = if is_external {
            (SwitchHooks::default(), EdgeHooks::default())
        } else {
            (balancer.switch_hooks(), balancer.edge_hooks())
        };
        let mut own = |info: &SwitchInfo<'_>| balancer.switch_scheme(info);
        let sizes = PacketSizes::of_all(&transports);
        let most = |of: fn(FiveTuples) -> u8| {
            transports.all().map(|transport| of(transport.five_tuples())).max().unwrap_or(1)
        };
        let (subflows, apart) = (most(FiveTuples::subflows), most(FiveTuples::apart));
        // What a scheme from outside does is not known beforehand.
        let switches = if apart > 1 && !is_external {
            SwitchConfigs::new(switch_schemes(topology, seed, sizes.full_bytes, &mut own))
        } else {
            SwitchConfigs::default()
        };
        let scheme = input.external.unwrap_or(&mut own);
        let peaks = input.sample_every.map_or(Peaks::NotKept, |_| Peaks::Kept);
        let mut network =
            Network::new(topology, faults, seed, peaks, sizes.full_bytes, (hooks, edge_hooks), scheme);
        if let Some(rules) = transports.all().find_map(Protocol::credit_ports) {
            network.open_credit_ports(&rules);
        }
        if let Some(window) = input.observe_every {
            network.observe(window, sizes.full_bytes);
        }
        if let Some((count, every)) = input.trace_flows {
            network.trace(Tracer::new(count, flows, every));
        }
        let common = Common {
            topology,
            sizes,
            hooks: edge_hooks,
            reads_more: edge_hooks.receiving || subflows > 1 || apart > 1,
            counts_paths: input.paths_of.is_some(),
            routes: if edge_hooks.sending {
                route_counts(topology, network.explicit_routes())
            } else {
                Vec::new()
            },
            deeds: Deeds::default(),
        };
        let plan = Plan {
            transports,
            flows,
            directory: Directory::new(topology.hosts, flows, usize::from(subflows)),
            hash_key: Stream::new(seed, Purpose::FlowHash, 0).next_u64(),
            switches,
        };
        let paths = input.paths_of.map(PathMeter::new);
        let schemes = edge_schemes(topology, faults, balancer, edge_hooks, (sizes, &common.routes), seed);
        let hosts = schemes.into_iter().enumerate().map(|(host, scheme)| {
            let stream = |purpose| Stream::new(seed, purpose, host as u64);
            let edge = Edge { scheme, stream: stream(Purpose::EdgeBalancer) };
            let log = HostLog { paths: paths.clone(), ..HostLog::default() };
            Host::new(HostId(host as u16), &plan.directory, edge, stream(Purpose::Transport), log)
        });
        let mut engine = Self {
            hosts: hosts.collect(),
            network,
            common,
            faults,
            reroute_after: input.reroute_after,
            next_flow: 0,
            finished: 0,
            finite: flows.iter().filter(|flow| !flow.background).count(),
            last_instant: last_start(flows).saturating_add(input.time_limit),
            ending: None,
            timers: 0,
            sampler: input.sample_every.map(|every| Sampler::new(every, topology, flows)),
            plan,
        };
        engine.prepare();
        engine
    }

    /// Lets schemes begin, and arms the first events.
    fn prepare(&mut self) {
        self.network.start_schemes();
        if self.common.hooks.sending {
            for host in 0..self.hosts.len() {
                at_host!(self, HostId(host as u16), |host, _plan, here| host.start_scheme(here));
            }
        }
        for (index, fault) in self.faults.iter().enumerate() {
            self.network.events.push_timer(fault.at, EventKey::new(EventKind::Fault, index as u32));
        }
        if let Some(flow) = self.plan.flows.first() {
            self.network.events.push_timer(flow.start, EventKey::new(EventKind::FlowStart, 0));
        }
        self.sample();
    }

    /// Processes up to `max_events` events. By itself it compiles to less than inside its caller.
    #[inline(never)]
    pub fn advance(&mut self, max_events: u64) -> Status {
        if let Some(ending) = self.ending {
            return Status::Finished(ending);
        }
        for _ in 0..max_events {
            let Some((time, event)) = self.network.events.pop(&mut self.network.links) else {
                return self.end(Ending::Idle);
            };
            if time > self.last_instant {
                return self.end(Ending::TimeLimit);
            }
            debug_assert!(time >= self.network.now, "time goes on");
            self.network.now = time;
            match event {
                Next::Arrival(link) => {
                    if let Some(index) = self.network.arrive(link) {
                        self.receive(index);
                    }
                }
                Next::Timer(key) => self.timer(key),
            }
        }
        Status::Running
    }

    /// The run is over: because every flow has ended, or else for this reason.
    #[cold]
    fn end(&mut self, otherwise: Ending) -> Status {
        let ending = if self.is_done() { Ending::AllDone } else { otherwise };
        if ending == Ending::TimeLimit {
            self.network.now = self.last_instant;
        }
        self.ending = Some(ending);
        Status::Finished(ending)
    }

    /// Whether every flow that can end has ended. Never, where none can.
    const fn is_done(&self) -> bool {
        self.finite > 0 && self.finished == self.finite
    }

    /// A packet reached its host.
    #[inline]
    fn receive(&mut self, index: PacketIndex) {
        if self.common.reads_more {
            return self.read(index);
        }
        let packet = self.network.consume(index);
        if at_host!(self, packet.dst, |host, plan, here| host.deliver(plan, &packet, here)) {
            self.flow_ended();
        }
    }

    /// The same, where packets may bring more than their transport's fields, or are shown to edge schemes.
    #[inline(never)]
    fn read(&mut self, index: PacketIndex) {
        let option = self.network.pool.option(index);
        let packet = self.network.consume(index);
        if at_host!(self, packet.dst, |host, plan, here| host.read(plan, packet, option, here)) {
            self.flow_ended();
        }
    }

    /// A flow ended. With the last one ends the run: what else happens at this instant still does.
    #[cold]
    fn flow_ended(&mut self) {
        self.finished += 1;
        if self.is_done() {
            self.last_instant = self.network.now;
        }
    }

    #[cold]
    fn timer(&mut self, key: EventKey) {
        self.timers += 1;
        let now = self.network.now;
        let (kind, entity) = (key.kind(), key.entity());
        let flow = FlowId(entity);
        let ended = match kind {
            EventKind::Sender => {
                let host = self.plan.host(flow, Side::Sender);
                at_host!(self, host, |host, plan, here| host.wake_sender(plan, flow, here))
            }
            EventKind::Receiver => {
                let host = self.plan.host(flow, Side::Receiver);
                at_host!(self, host, |host, plan, here| host.wake_receiver(plan, flow, here));
                false
            }
            EventKind::EdgeSender | EventKind::EdgeReceiver => {
                let side = if kind == EventKind::EdgeSender { Side::Sender } else { Side::Receiver };
                let host = self.plan.host(flow, side);
                at_host!(self, host, |host, plan, here| host.edge_timer(plan, side, flow, here))
            }
            EventKind::Host => {
                let host = HostId(key.node() as u16);
                at_host!(self, host, |host, _plan, here| host.scheme_timer(entity, here));
                false
            }
            EventKind::Arrival => false,
            EventKind::Fault => {
                self.network.apply_fault(&self.faults[entity as usize]);
                let learned = now.saturating_add(self.reroute_after);
                self.network.events.push_timer(learned, EventKey::new(EventKind::Reroute, entity));
                self.routes_changed(entity);
                false
            }
            EventKind::Reroute => {
                self.network.learn_fault(&self.faults[entity as usize]);
                self.routes_changed(entity);
                false
            }
            EventKind::FlowStart => {
                self.start_flow();
                false
            }
            EventKind::Sample => {
                self.sample();
                false
            }
            EventKind::Switch => {
                self.network.wake_scheme(key.node() as usize, entity);
                false
            }
            EventKind::Port => {
                self.network.wake_port(entity);
                false
            }
        };
        if ended {
            self.flow_ended();
        }
    }

    /// The next flow starts.
    fn start_flow(&mut self) {
        let flow = FlowId(self.next_flow as u32);
        self.next_flow += 1;
        if let Some(next) = self.plan.flows.get(self.next_flow) {
            let key = EventKey::new(EventKind::FlowStart, self.next_flow as u32);
            self.network.events.push_timer(next.start, key);
        }
        let host = self.plan.flows[flow.index()].src;
        at_host!(self, host, |host, plan, here| host.start_flow(plan, flow, here));
    }

    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.deliveries.sum_up(&self.plan, &self.hosts);
            let again = sampler.look(&mut self.network);
            self.network.events.push_timer(again, EventKey::new(EventKind::Sample, 0));
        }
    }

    /// Recomputes the routes, once for all faults of one instant: with the last of them.
    fn routes_changed(&mut self, fault: u32) {
        let fault = fault as usize;
        if self.faults.get(fault + 1).is_none_or(|next| next.at != self.faults[fault].at) {
            self.network.recompute_routes();
            if self.common.hooks.sending {
                self.common.routes = route_counts(self.common.topology, self.network.explicit_routes());
            }
        }
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        Progress {
            now: self.network.now,
            last_start: last_start(self.plan.flows),
            flows_finished: self.finished,
            flows_total: self.finite,
            packet_hops: self.network.counts.hops,
        }
    }
}

fn last_start(flows: &[Flow]) -> Time {
    flows.last().map_or(Time::ZERO, |flow| flow.start)
}
