//! A simulation: flows start, packets move, flows end.

mod flows;
mod outcome;

use weft_balance::{BalancerSpec, EdgeHooks, ParameterError, SwitchHooks, SwitchInfo, SwitchScheme};
use weft_packet::{FlowId, HostId, Kind, Packet};
use weft_topology::{FaultEvent, FlowPackets, Ideal, Topology};
use weft_traffic::Flow;
use weft_transport::{Delivery, FlowSize, Protocol, SenderState};
use weft_units::{Purpose, Span, Stream, Time};

use super::active::{Active, NOT_ACTIVE};
use super::endpoint::HostOutbox;
use super::event_set::{EventKey, EventKind, Next};
use super::hosts::{Hosts, PacketSizes, fabric_facts};
use super::mappings::Mappings;
use super::network::Network;
use super::paths::PathMeter;
use super::results::FlowRecord;
use super::sampler::Sampler;
use super::special::Peaks;
use super::tracer::Tracer;

/// Everything that a run depends on.
pub struct SimulationInput<'a, P> {
    /// The fabric.
    pub topology: &'a Topology,
    /// How its links change, by time.
    pub faults: &'a [FaultEvent],
    /// How long other switches need to learn that a link failed or came back.
    pub reroute_after: Span,
    /// The traffic, by start.
    pub flows: &'a [Flow],
    /// The transport.
    pub protocol: P,
    /// The load balancer.
    pub balancer: &'a BalancerSpec,
    /// Makes the scheme of each switch in place of `balancer`, for schemes from outside.
    pub external: Option<&'a mut dyn FnMut(&SwitchInfo<'_>) -> SwitchScheme>,
    /// The seed.
    pub seed: u64,
    /// Simulated time that is allowed after the last flow started.
    pub time_limit: Span,
    /// How often to look at all links and receivers; not zero.
    pub sample_every: Option<Span>,
    /// Watch the queues of switches' ports over windows of this length; not zero.
    pub observe_every: Option<Span>,
    /// Count what flows of at least so many bytes deliver over each path.
    pub paths_of: Option<u64>,
    /// Note which links the so many largest flows take, by intervals of this length; not zero.
    pub trace_flows: Option<(usize, Span)>,
}

impl<P: Protocol> SimulationInput<'_, P> {
    /// Refuses parameters of the load balancer that cannot be meant on this fabric.
    ///
    /// # Errors
    /// The first such parameter.
    pub fn check(&self) -> Result<(), ParameterError> {
        if self.external.is_some() || !self.balancer.edge_hooks().sending {
            return Ok(());
        }
        self.balancer.fits(&fabric_facts(self.topology, self.faults, PacketSizes::of(&self.protocol)))
    }
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every flow that can end has ended.
    AllDone,
    /// The time allowed is over.
    TimeLimit,
    /// Nothing will ever happen again.
    Idle,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is more to do.
    Running,
    /// It is over.
    Finished(Ending),
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// When the last flow starts.
    pub last_start: Time,
    /// Flows that have ended.
    pub flows_finished: usize,
    /// Flows that can end.
    pub flows_total: usize,
    /// Packet-hops so far.
    pub packet_hops: u64,
}

/// A run, from its first event to its last.
pub struct Simulation<'a, P: Protocol> {
    protocol: P,
    network: Network<'a>,
    hosts: Hosts<'a>,
    topology: &'a Topology,
    flows: &'a [Flow],
    faults: &'a [FaultEvent],
    reroute_after: Span,
    active: Active<P>,
    /// The place of each flow among the active ones, then those of second subflows, and so on.
    place: Vec<u32>,
    records: Vec<FlowRecord>,
    next_flow: usize,
    finished: usize,
    finite: usize,
    /// Every flow that can end has ended.
    all_done: bool,
    deadline: Time,
    events: u64,
    /// Credits that reached their sender after its flow had ended.
    stray_credits: u64,
    hash_key: u64,
    sampler: Option<Sampler<'a>>,
    paths: Option<PathMeter>,
    sizes: PacketSizes,
}

impl<'a, P: Protocol> Simulation<'a, P> {
    /// A run that has not begun.
    pub fn new(input: SimulationInput<'a, P>) -> Self {
        let SimulationInput { topology, balancer, seed, .. } = input;
        let (hooks, edge_hooks) = match input.external {
            Some(_) => (SwitchHooks::default(), EdgeHooks::default()),
            None => (balancer.switch_hooks(), balancer.edge_hooks()),
        };
        let mut own = |info: &SwitchInfo<'_>| balancer.switch_scheme(info);
        let scheme = input.external.unwrap_or(&mut own);
        let sizes = PacketSizes::of(&input.protocol);
        let peaks = input.sample_every.map_or(Peaks::NotKept, |_| Peaks::Kept);
        let hooks = (hooks, edge_hooks);
        let mut network = Network::new(topology, input.faults, seed, peaks, sizes.full_bytes, hooks, scheme);
        let subflows = input.protocol.subflows() as usize;
        if subflows > 1 {
            network.mappings = Mappings::new(input.flows.len() * subflows);
        }
        if let Some(rules) = input.protocol.credit_ports() {
            network.open_credit_ports(&rules);
        }
        if let Some(window) = input.observe_every {
            network.observe(window, sizes.full_bytes);
        }
        if let Some((count, every)) = input.trace_flows {
            network.trace(Tracer::new(count, input.flows, every));
        }
        let hosts = Hosts::new(&network, input.faults, balancer, edge_hooks, sizes, seed);
        let last_start = input.flows.last().map_or(Time::ZERO, |flow| flow.start);
        let mut simulation = Self {
            network,
            hosts,
            topology,
            flows: input.flows,
            faults: input.faults,
            reroute_after: input.reroute_after,
            active: Active::default(),
            place: vec![NOT_ACTIVE; input.flows.len() * subflows],
            protocol: input.protocol,
            records: Vec::with_capacity(input.flows.len()),
            next_flow: 0,
            finished: 0,
            finite: input.flows.iter().filter(|flow| !flow.background).count(),
            all_done: false,
            deadline: last_start.saturating_add(input.time_limit),
            events: 0,
            stray_credits: 0,
            sampler: input.sample_every.map(|every| Sampler::new(every, topology, input.flows, sizes)),
            paths: input.paths_of.map(|from_bytes| PathMeter::new(from_bytes, sizes.header_bytes)),
            sizes,
            hash_key: Stream::new(seed, Purpose::FlowHash, 0).next_u64(),
        };
        simulation.prepare();
        simulation
    }

    /// Works out every flow's ideal completion time, and arms the first events.
    fn prepare(&mut self) {
        let mut ideal_fct = Ideal::new(self.topology.at_its_best(self.faults));
        for flow in self.flows {
            let ideal = if flow.background { Span::ZERO } else { self.ideal(&mut ideal_fct, flow) };
            self.records.push(FlowRecord { ideal, ..FlowRecord::default() });
        }
        self.network.start_schemes();
        self.hosts.start_schemes(&mut self.network);
        for (index, fault) in self.faults.iter().enumerate() {
            self.network.events.push_timer(fault.at, EventKey::new(EventKind::Fault, index as u32));
        }
        self.sample();
        if let Some(flow) = self.flows.first() {
            self.network.events.push_timer(flow.start, EventKey::new(EventKind::FlowStart, 0));
        }
    }

    fn ideal(&self, ideal_fct: &mut Ideal, flow: &Flow) -> Span {
        let size = self.protocol.flow_size(flow.size_bytes);
        let packets = FlowPackets {
            full_bytes: self.protocol.segment_wire_bytes(size, 0),
            full_count: size.segments - 1,
            last_bytes: self.protocol.segment_wire_bytes(size, size.segments - 1),
        };
        let ideal = ideal_fct.fct(flow.src, flow.dst, packets, self.protocol.handshake_wire_bytes());
        // A flow that no path can carry has no completion time to compare with.
        ideal.unwrap_or_default()
    }

    fn size(&self, flow: &Flow) -> FlowSize {
        if flow.background {
            FlowSize { segments: FlowSize::ENDLESS, last_payload: 1 }
        } else {
            self.protocol.flow_size(flow.size_bytes)
        }
    }

    /// Processes up to `max_events` events. By itself it compiles to less than inside its caller.
    #[inline(never)]
    pub fn advance(&mut self, max_events: u64) -> Status {
        for _ in 0..max_events {
            if self.all_done {
                return Status::Finished(Ending::AllDone);
            }
            let Some((time, event)) = self.network.events.pop(&mut self.network.links) else {
                return Status::Finished(Ending::Idle);
            };
            if time > self.deadline {
                self.network.now = self.deadline;
                // Whatever was popped is after the end: nobody will miss it.
                self.deadline = Time::ZERO;
                return Status::Finished(Ending::TimeLimit);
            }
            debug_assert!(time >= self.network.now, "time goes on");
            self.network.now = time;
            self.events += 1;
            match event {
                Next::Arrival(link) => {
                    if let Some(index) = self.network.arrive(link) {
                        let packet = self.network.consume(index);
                        self.receive(packet);
                    }
                }
                Next::Timer(key) => self.timer(key),
            }
        }
        Status::Running
    }

    #[cold]
    fn timer(&mut self, key: EventKey) {
        let now = self.network.now;
        let (kind, entity) = (key.kind(), key.entity());
        match kind {
            EventKind::Arrival => {}
            EventKind::Fault => {
                self.network.apply_fault(&self.faults[entity as usize]);
                let learned = now.saturating_add(self.reroute_after);
                self.network.events.push_timer(learned, EventKey::new(EventKind::Reroute, entity));
                self.routes_changed(entity);
            }
            EventKind::Reroute => {
                self.network.learn_fault(&self.faults[entity as usize]);
                self.routes_changed(entity);
            }
            EventKind::FlowStart => self.start_flow(),
            EventKind::Sender => self.wake_sender(entity),
            EventKind::Receiver => self.wake_receiver(entity),
            EventKind::EdgeSender | EventKind::EdgeReceiver => self.edge_timer(kind, entity),
            EventKind::Sample => self.sample(),
            EventKind::Switch => self.network.wake_scheme(key.node() as usize, entity),
            EventKind::Port => self.network.wake_port(entity),
            EventKind::Host => self.hosts.host_timer(HostId(key.node() as u16), entity, &mut self.network),
        }
    }

    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.deliveries.sum_up(&self.protocol, &self.active);
            let again = sampler.look(&mut self.network);
            self.network.events.push_timer(again, EventKey::new(EventKind::Sample, 0));
        }
    }

    /// Recomputes the routes, once for all faults of one instant: with the last of them.
    fn routes_changed(&mut self, fault: u32) {
        let fault = fault as usize;
        if self.faults.get(fault + 1).is_none_or(|next| next.at != self.faults[fault].at) {
            self.network.recompute_routes();
            self.hosts.learn_routes(&self.network);
        }
    }

    /// A packet reached a host.
    #[inline]
    fn receive(&mut self, packet: Packet) {
        if self.hosts.intercepts() && packet.kind == Kind::Message {
            self.hosts.message(&packet, &mut self.network);
            return;
        }
        let place = self.place[packet.flow.index()];
        if place == NOT_ACTIVE {
            return self.stray(&packet);
        }
        if self.hosts.intercepts() {
            self.intercept(place, packet);
        } else if is_for_sender(&packet) {
            self.deliver_to_sender(place, &packet);
        } else {
            self.deliver_to_receiver(place, &packet);
        }
    }

    /// A packet reached its host after its flow had ended.
    #[cold]
    fn stray(&mut self, packet: &Packet) {
        self.stray_credits += u64::from(packet.kind == Kind::Credit);
    }

    /// Passes a packet through the edge scheme.
    fn intercept(&mut self, place: u32, packet: Packet) {
        let Some(end) = self.active.end(place, is_for_sender(&packet), packet.flow) else { return };
        let delivered = self.hosts.receive(end, packet, &mut self.network);
        self.deliver_all(place, delivered);
    }

    fn deliver_all(&mut self, place: u32, delivered: Vec<Packet>) {
        for packet in &delivered {
            if is_for_sender(packet) {
                self.deliver_to_sender(place, packet);
            } else {
                self.deliver_to_receiver(place, packet);
            }
        }
        self.hosts.recycle(delivered);
    }

    #[inline]
    fn deliver_to_sender(&mut self, place: u32, packet: &Packet) {
        let Some(sender) = &mut self.active.sender[place as usize] else { return };
        let mut out = HostOutbox { network: &mut self.network, hosts: &mut self.hosts, end: &mut sender.end };
        let state = self.protocol.sender_receives(&mut sender.state, packet, &mut out);
        if state == SenderState::Done {
            let flow = sender.end.flow();
            self.finish(flow, place);
        }
    }

    #[inline]
    fn deliver_to_receiver(&mut self, place: u32, packet: &Packet) {
        let Some(receiver) = &mut self.active.receiver[place as usize] else { return };
        if packet.kind == Kind::Data {
            receiver.note_path(packet, self.network.now);
            if let Some(paths) = &mut self.paths {
                paths.note(self.topology, packet, &self.flows[receiver.end.flow().index()]);
            }
        }
        let mut out =
            HostOutbox { network: &mut self.network, hosts: &mut self.hosts, end: &mut receiver.end };
        let delivery = self.protocol.receiver_receives(&mut receiver.state, packet, &mut out);
        if delivery == Delivery::Complete {
            let flow = receiver.end.flow();
            self.complete(flow, place, Some(packet));
        }
    }

    fn wake_sender(&mut self, flow: u32) {
        let place = self.place[flow as usize];
        let Some(Some(sender)) = self.active.sender.get_mut(place as usize) else { return };
        if !sender.end.first.timer_is_due(self.network.now, &mut self.network) {
            return;
        }
        let mut out = HostOutbox { network: &mut self.network, hosts: &mut self.hosts, end: &mut sender.end };
        if self.protocol.sender_wakes(&mut sender.state, &mut out) == SenderState::Done {
            self.finish(FlowId(flow), place);
        }
    }

    fn wake_receiver(&mut self, flow: u32) {
        let place = self.place[flow as usize];
        let Some(Some(receiver)) = self.active.receiver.get_mut(place as usize) else { return };
        if !receiver.end.first.timer_is_due(self.network.now, &mut self.network) {
            return;
        }
        let mut out =
            HostOutbox { network: &mut self.network, hosts: &mut self.hosts, end: &mut receiver.end };
        if self.protocol.receiver_wakes(&mut receiver.state, &mut out) == Delivery::Complete {
            self.complete(FlowId(flow), place, None);
        }
    }

    /// The receiver has the last byte: with `last`, or because a timer let go what was held.
    #[cold]
    fn complete(&mut self, flow: FlowId, place: u32, last: Option<&Packet>) {
        let (now, record) = (self.network.now, &mut self.records[flow.index()]);
        record.delivered = Some(now);
        let ends = (&self.active.sender[place as usize], &self.active.receiver[place as usize]);
        if let (Some(sender), Some(receiver)) = ends {
            let stall = self.protocol.receiver_stats(&receiver.state).stalls.by_reordering_until(now);
            let timed_out = self.protocol.sender_stats(&sender.state).timed_out;
            record.spent = receiver.followed.spent(last, now, stall, timed_out, record.ideal);
        }
    }

    fn edge_timer(&mut self, kind: EventKind, flow: u32) {
        let place = self.place[flow as usize];
        let Some(end) = self.active.end(place, kind == EventKind::EdgeSender, FlowId(flow)) else { return };
        if !end.edge_timer_is_due(self.network.now) {
            return;
        }
        let delivered = self.hosts.flow_timer(end, &mut self.network);
        self.deliver_all(place, delivered);
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        Progress {
            now: self.network.now,
            last_start: self.flows.last().map_or(Time::ZERO, |flow| flow.start),
            flows_finished: self.finished,
            flows_total: self.finite,
            packet_hops: self.network.counts.hops,
        }
    }
}

/// Whether a packet is for the flow's sender.
#[inline]
fn is_for_sender(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Ack | Kind::SynAck | Kind::Credit)
}
