//! A partition of the fabric while a run goes on: its links, switches and hosts, and all that one
//! window of it needs.

mod batches;
mod exchange;
mod intake;
mod map;
mod numbers;
mod starts;

use std::collections::BTreeMap;

use weft_packet::{FlowId, HostId, Kind, Packet};
use weft_transport::{Protocol, Transports, WindowState, Written};
use weft_units::{Span, Time};

use super::event_set::{EventKey, EventKind, Next};
use super::external_hosts::ExternalEnds;
use super::host::{Host, HostCall, HostPort, HostShared, RunPlan, Side, Writer};
use super::network::{ArrivalOutcome, Network};
use super::pool::PacketIndex;
use super::prefetch::Sorted;
pub use batches::{Batch, OutgoingBatches, PacketExtras};
pub use exchange::{Destinations, Exchange, STAYS};
pub use map::PartitionMap;
pub use numbers::Numbers;
pub use starts::Starts;

/// A partition of the fabric, with its hosts.
pub struct Partition<'a, T: Transports> {
    pub network: Network<'a>,
    pub hosts: Vec<Host<T>>,
    pub common: HostShared<'a>,
    starts: Starts,
    next_start: usize,
    /// Writers of flows that started here and that applications have yet to write, by flow.
    writers: BTreeMap<u32, Writer>,
    /// Flows that ended here.
    pub finished: usize,
    /// With that many flows ended here the run is over: where this is the only partition.
    pub last: usize,
    /// Events that were no packet's arrival.
    pub timers: u64,
    /// The hosts that are not simulated here.
    pub external: Option<Box<ExternalEnds<'a>>>,
    /// Whether the last window had an event for every other link, or more.
    is_busy: bool,
    /// Whether any transport is asked by cards of hosts.
    pub(super) has_cards: bool,
    /// Room for the events of a crowded slot.
    pub(super) sorted: Sorted,
}

/// One host and what a call there can reach.
macro_rules! at_host {
    ($partition:ident, $plan:ident, $host:expr, |$node:ident, $here:ident| $call:expr) => {{
        let host = $host;
        let place = $partition.network.map.cable(host) as usize;
        let $here = &mut HostCall {
            nic: HostPort::new(&mut $partition.network, host),
            common: &mut $partition.common,
        };
        let $node = &mut $partition.hosts[place];
        $call
    }};
}

impl<'a, T: Transports> Partition<'a, T> {
    /// A partition in which nothing has happened yet.
    pub fn new(
        network: Network<'a>,
        hosts: Vec<Host<T>>,
        common: HostShared<'a>,
        starts: Starts,
        last: usize,
    ) -> Self {
        Self {
            network,
            hosts,
            common,
            starts,
            next_start: 0,
            writers: BTreeMap::new(),
            finished: 0,
            last,
            timers: 0,
            external: None,
            is_busy: false,
            has_cards: false,
            sorted: Sorted::default(),
        }
    }

    /// Lets schemes begin, and arms the first events.
    pub fn prepare(&mut self, plan: &RunPlan<'a, T>) {
        self.has_cards = plan.transports.all().any(Protocol::is_rnic_scheduled);
        let asks = plan
            .transports
            .all()
            .any(|transport| transport.asks_when_free() || transport.is_rnic_scheduled());
        self.network.find_late_ports(asks || self.external.is_some());
        self.network.start_schemes();
        if self.common.hooks.on_send {
            for host in self.network.map.hosts() {
                at_host!(self, plan, HostId(host as u16), |host, here| host.start_scheme(here));
            }
        }
        self.arm_next_start(plan);
        self.arm_computations(plan);
    }

    /// The window of a flow that is sending here.
    pub fn window(&mut self, plan: &RunPlan<'a, T>, flow: FlowId) -> Option<WindowState> {
        let host = plan.traffic(flow).src;
        let is_here = self.network.map.hosts().contains(&u32::from(host.0));
        let place = is_here.then(|| self.network.map.cable(host) as usize)?;
        self.hosts[place].window(plan, flow)
    }

    /// Works up to `budget` events before the limit of the event set. Returns how many it did.
    pub fn advance(&mut self, plan: &RunPlan<'a, T>, budget: u64) -> u64 {
        if self.network.events.looks_ahead() {
            self.advance_and_look::<true>(plan, budget)
        } else {
            self.advance_and_look::<false>(plan, budget)
        }
    }

    /// Works up to `budget` events, with or without prefetch. By itself it compiles to less than
    /// inside its caller; without prefetch, nothing of that is in it.
    #[inline(never)]
    fn advance_and_look<const AHEAD: bool>(&mut self, plan: &RunPlan<'a, T>, budget: u64) -> u64 {
        let mut left = budget;
        while left > 0 {
            let Some(next) = self.network.events.take::<AHEAD>(&self.network.state.links) else { break };
            match next {
                Next::Arrival(number) => match self.network.arrive(number) {
                    ArrivalOutcome::AtHost(index) => self.receive(plan, index),
                    ArrivalOutcome::Gone => {}
                    ArrivalOutcome::NotAlone => {
                        self.sort::<AHEAD>(plan, number);
                        continue;
                    }
                    ArrivalOutcome::NoLink => {
                        if !self.see_to(plan, number) {
                            self.sort::<AHEAD>(plan, number);
                            continue;
                        }
                    }
                },
                Next::Slot(first) => {
                    self.sort::<AHEAD>(plan, first);
                    continue;
                }
                Next::Timer(time, key) => {
                    self.network.now = time;
                    self.timer(plan, key);
                }
            }
            left -= 1;
        }
        budget - left
    }

    /// Sorts the events of a slot, and looks at what they will need if they are many.
    fn sort<const AHEAD: bool>(&mut self, plan: &RunPlan<'a, T>, first: u32) {
        let (state, pool) = (&mut self.network.state, &self.network.pool);
        self.network.events.sort(&mut state.links, first, pool);
        if AHEAD {
            self.network.events.begin_walk(&state.links);
            self.prefetch(plan);
        }
    }

    /// Works up to the limit; packets for other partitions go into `outgoing`. Returns the number
    /// of events.
    pub fn work(
        &mut self,
        plan: &RunPlan<'a, T>,
        limit: (Time, EventKey),
        budget: u64,
        outgoing: &mut OutgoingBatches,
    ) -> u64 {
        self.network.events.set_limit(limit.0, limit.1);
        if self.is_busy && self.network.events.looks_ahead() {
            self.look_at_ports();
        }
        let done = self.with_outgoing(Some(outgoing), |partition| {
            let done = partition.advance(plan, budget);
            if done < budget {
                partition.close(limit);
            }
            done
        });
        self.is_busy = done > self.network.map.link_count() as u64 / 2;
        done
    }

    /// The time of what comes next here, or one before it; none if nothing will ever come.
    pub fn next_time(&self) -> Option<Time> {
        self.network.events.next_time()
    }

    /// The next event here in the window that has begun, whatever the limit.
    pub fn peek(&mut self) -> Option<(Time, EventKey)> {
        self.network.events.peek(&mut self.network.state.links, &self.network.pool)
    }

    /// Whether nothing will ever happen here again.
    pub fn is_idle(&self) -> bool {
        self.next_time().is_none() && self.external.as_ref().is_none_or(|external| external.is_idle())
    }

    /// A packet reached its host.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn receive(&mut self, plan: &RunPlan<'a, T>, index: PacketIndex) {
        let stops = self.common.stops;
        if stops.is_empty() || !stops.has(self.network.pool[index].kind) {
            self.receive_unread(plan, index);
        } else {
            self.receive_or_read(plan, index);
        }
    }

    #[inline(never)]
    fn receive_unread(&mut self, plan: &RunPlan<'a, T>, index: PacketIndex) {
        self.take(plan, index);
    }

    #[inline(never)]
    fn receive_or_read(&mut self, plan: &RunPlan<'a, T>, index: PacketIndex) {
        if self.network.pool[index].kind == Kind::Pause {
            return self.network.pause_host(index);
        }
        if self.network.host_cpus.is_some() && !self.passes_cpu(plan, index) {
            return self.network.arrive_at_machine(index);
        }
        self.take_or_read(plan, index);
    }

    /// Whether a packet that arrived is for the host's RDMA card, which takes none of its CPU.
    fn passes_cpu(&self, plan: &RunPlan<'a, T>, index: PacketIndex) -> bool {
        let packet = &self.network.pool[index];
        let is_of_flow = !packet.kind.is_of_scheme() && packet.flow.connection().is_none();
        is_of_flow && plan.transport(plan.traffic(packet.flow)).is_rnic_scheduled()
    }

    /// A packet that the CPU of a host worked on comes to its transports, and the CPU goes on.
    fn take_worked(&mut self, plan: &RunPlan<'a, T>, host: u32) {
        let batch = self.network.end_work(host);
        for &index in &batch {
            self.take_or_read(plan, index);
        }
        self.network.begin_next(host, batch);
    }

    fn take_or_read(&mut self, plan: &RunPlan<'a, T>, index: PacketIndex) {
        self.network.note_paused(index);
        if self.common.reads.has(self.network.pool[index].kind) {
            self.read(plan, index);
        } else {
            self.take(plan, index);
        }
        self.network.forget_paused();
    }

    /// A packet that reached its host comes to its transport.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn take(&mut self, plan: &RunPlan<'a, T>, index: PacketIndex) {
        let packet = self.network.consume(index);
        if at_host!(self, plan, packet.dst, |host, here| host.deliver(plan, &packet, here)) {
            self.flow_ended();
        }
    }

    /// A packet comes to its transport where packets may bring more than their transport's fields,
    /// or are shown to edge schemes.
    #[inline(never)]
    fn read(&mut self, plan: &RunPlan<'a, T>, index: PacketIndex) {
        let option = self.network.pool.option(index);
        if self.external.is_some() {
            let frame = self.network.pool.take_frame(index);
            let packet = self.network.consume(index);
            if self.external.as_ref().is_some_and(|external| external.receives(&packet)) {
                return self.receive_at_external(plan, packet, frame);
            }
            if let Some(frame) = frame {
                return self.receive_from_external(plan, packet, option, &frame);
            }
            return self.read_at_host(plan, packet, option);
        }
        let packet = self.network.consume(index);
        self.read_at_host(plan, packet, option);
    }

    /// A host reads a packet.
    pub(super) fn read_at_host(&mut self, plan: &RunPlan<'a, T>, packet: Packet, option: u32) {
        if at_host!(self, plan, packet.dst, |host, here| host.read(plan, packet, option, here)) {
            self.flow_ended();
        }
    }

    /// A flow ended. With the last one ends the run: what else happens at this instant still does.
    #[cold]
    pub(super) fn flow_ended(&mut self) {
        self.finished += 1;
        self.end_if_over();
    }

    /// The run ends now, if nothing goes on that it waits for.
    pub(super) fn end_if_over(&mut self) {
        if self.finished == self.last && self.external.as_ref().is_none_or(|external| !external.is_busy()) {
            self.network.events.end_at(self.network.now);
        }
    }

    /// A timer of the wheel is due; or false, if it is not alone in its slot. Not inlined: where
    /// there is none, the loop over events is the shorter.
    #[inline(never)]
    fn see_to(&mut self, plan: &RunPlan<'a, T>, number: u32) -> bool {
        let Some((time, key)) = self.network.events.take_due(number) else { return false };
        self.network.now = time;
        self.timer(plan, key);
        true
    }

    #[cold]
    fn timer(&mut self, plan: &RunPlan<'a, T>, key: EventKey) {
        let (kind, entity) = (key.kind(), key.entity());
        if kind == EventKind::Port {
            // Not counted: how many there are depends on who looks at ports, and on the
            // partitioning.
            return self.network.wake_port(entity);
        }
        if kind == EventKind::Pause {
            return self.obey_pause(plan, entity);
        }
        self.timers += 1;
        let flow = FlowId(entity);
        let ended = match kind {
            EventKind::Sender => {
                let host = plan.host(flow, Side::Sender);
                at_host!(self, plan, host, |host, here| host.wake_sender(plan, flow, here))
            }
            EventKind::Receiver => {
                let host = plan.host(flow, Side::Receiver);
                at_host!(self, plan, host, |host, here| host.wake_receiver(plan, flow, here));
                false
            }
            EventKind::SenderSchemeTimer | EventKind::ReceiverSchemeTimer => {
                let side = if kind == EventKind::SenderSchemeTimer { Side::Sender } else { Side::Receiver };
                if flow.connection().is_some() {
                    return self.connection_scheme_timer(side, flow);
                }
                let host = plan.host(flow, side);
                !self.external_scheme_timer(plan, side, flow)
                    && at_host!(self, plan, host, |host, here| host.flow_scheme_timer(plan, side, flow, here))
            }
            EventKind::Host if let Some(host) = key.machine() => {
                if entity == 0 {
                    self.network.interrupt_is_due(host);
                } else {
                    self.take_worked(plan, host);
                }
                false
            }
            EventKind::Host => {
                let host = HostId(key.node() as u16);
                at_host!(self, plan, host, |host, here| host.scheme_timer(entity, here));
                false
            }
            EventKind::FlowStart => {
                self.start_flow(plan, flow);
                false
            }
            EventKind::Switch if let Some(switch) = key.machine() => {
                self.network.forward_first(switch);
                false
            }
            EventKind::Switch => {
                self.network.wake_scheme(key.node() as usize, entity);
                false
            }
            EventKind::Card => {
                let host = HostId(entity as u16);
                at_host!(self, plan, host, |host, here| host.wake_card(plan, here));
                false
            }
            EventKind::Guest => {
                self.external_sends(plan, entity);
                false
            }
            EventKind::Ready => {
                self.begin_waiting(plan, flow);
                false
            }
            // Whole runs see to these: see `Agenda`.
            EventKind::Arrival
            | EventKind::Fault
            | EventKind::Reroute
            | EventKind::Sample
            | EventKind::Deadlock
            | EventKind::Port
            | EventKind::Pause => false,
        };
        if ended {
            self.flow_ended();
        }
    }

    /// A port obeys what it was told. That of a host may take packets again that its card has.
    fn obey_pause(&mut self, plan: &RunPlan<'a, T>, link: u32) {
        self.network.obey(link);
        let hosts = self.network.map.hosts();
        if (link as usize) < hosts.len() {
            let host = HostId((hosts.start + link) as u16);
            at_host!(self, plan, host, |host, here| host.pull(plan, here));
        }
    }

    /// A flow starts, or the application of one that did writes more.
    fn start_flow(&mut self, plan: &RunPlan<'a, T>, flow: FlowId) {
        if let Some(writer) = self.writers.remove(&flow.0) {
            return self.write(plan, flow, writer);
        }
        self.next_start += 1;
        self.arm_next_start(plan);
        if self.start_external_flow(plan, flow) {
            return;
        }
        let mut writer = plan.writer(flow);
        let written = writer.as_mut().map(|writer| writer.write_until(Span::ZERO));
        let host = plan.flows[flow.index()].src;
        at_host!(self, plan, host, |host, here| host.start_flow(plan, flow, written, here));
        if let Some((writer, written)) = writer.zip(written) {
            self.await_write(plan, flow, writer, written);
        }
    }

    /// A flow starts that waited for others, or a computation is done, or ready for its turn.
    fn begin_waiting(&mut self, plan: &RunPlan<'a, T>, node: FlowId) {
        if let Some(host) = plan.dependencies.and_then(|dependencies| dependencies.host(node.0)) {
            return at_host!(self, plan, host, |host, here| host.compute(plan, node, here));
        }
        let host = plan.flows[node.index()].src;
        at_host!(self, plan, host, |host, here| host.start_flow(plan, node, None, here));
    }

    /// The application of a flow writes.
    #[cold]
    fn write(&mut self, plan: &RunPlan<'a, T>, flow: FlowId, mut writer: Writer) {
        let traffic = &plan.flows[flow.index()];
        let written = writer.write_until(self.network.now.since(traffic.start));
        let host = traffic.src;
        at_host!(self, plan, host, |host, here| host.write(plan, flow, written, here));
        self.await_write(plan, flow, writer, written);
    }

    /// The application of a flow, of which so much is written, pauses, if there is more to write.
    /// The event is that of the flow's start, which has been.
    fn await_write(&mut self, plan: &RunPlan<'a, T>, flow: FlowId, mut writer: Writer, written: Written) {
        if let Some(after) = writer.next_after(written) {
            let at = plan.flows[flow.index()].start.saturating_add(after);
            self.network.events.push_timer(at, EventKey::new(EventKind::FlowStart, flow.0));
            self.writers.insert(flow.0, writer);
        }
    }

    /// Computations of its hosts that wait for nothing.
    fn arm_computations(&mut self, plan: &RunPlan<'a, T>) {
        let Some(dependencies) = plan.dependencies else { return };
        let hosts = self.network.map.hosts();
        for &node in dependencies.begins() {
            if dependencies.host(node).is_some_and(|host| hosts.contains(&u32::from(host.0))) {
                let at = dependencies.first_event(node, Time::ZERO);
                self.network.events.push_timer(at, EventKey::new(EventKind::Ready, node));
            }
        }
    }

    fn arm_next_start(&mut self, plan: &RunPlan<'a, T>) {
        if let Some(next) = self.starts.get(self.next_start, plan.flows.len()) {
            let at = plan.flows[next as usize].start;
            self.network.events.push_timer(at, EventKey::new(EventKind::FlowStart, next));
        }
    }
}
