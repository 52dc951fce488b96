//! The two ends of the flows that are active, and the hosts that they live on.

use weft_balance::{EdgeContext, EdgeFlow, EdgeHooks, EdgeScheme};
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags, Route};
use weft_transport::{Outbox, Outgoing};
use weft_units::{Span, Stream, Time};

use super::event_set::{EventKey, EventKind};
use super::network::Network;
use crate::topology::Topology;

/// What both ends of a flow have, apart from their transport's state.
pub struct End {
    flow: FlowId,
    host: HostId,
    peer: HostId,
    entropy: u32,
    class: PacketFlags,
    /// The event of this end's timer, and of its edge scheme's timer.
    timer: EventKind,
    edge_timer: EventKind,
    /// When the transport wants to be woken, and the earliest event that is pending for it.
    deadline: Time,
    pending: Time,
    edge_deadline: Time,
    edge: EdgeFlow,
}

impl End {
    /// The sending end of a flow.
    pub fn sender(
        flow: FlowId,
        host: HostId,
        peer: HostId,
        entropy: u32,
        class: PacketFlags,
        edge: EdgeFlow,
    ) -> Self {
        Self {
            flow,
            host,
            peer,
            entropy,
            class,
            timer: EventKind::Sender,
            edge_timer: EventKind::EdgeSender,
            deadline: Time::NEVER,
            pending: Time::NEVER,
            edge_deadline: Time::NEVER,
            edge,
        }
    }

    /// The receiving end of the same flow.
    pub fn receiver(
        flow: FlowId,
        host: HostId,
        peer: HostId,
        entropy: u32,
        class: PacketFlags,
        edge: EdgeFlow,
    ) -> Self {
        let end = Self::sender(flow, host, peer, entropy, class, edge);
        Self { timer: EventKind::Receiver, edge_timer: EventKind::EdgeReceiver, ..end }
    }

    /// A timer event at `now`: whether the transport is to be woken. If the deadline has moved on, so does the event.
    pub fn timer_is_due(&mut self, now: Time, network: &mut Network<'_>) -> bool {
        if now != self.pending {
            return false;
        }
        self.pending = Time::NEVER;
        if self.deadline <= now {
            self.deadline = Time::NEVER;
            return true;
        }
        self.arm(network);
        false
    }

    /// A timer event at `now`: whether the edge scheme is to be woken.
    pub fn edge_timer_is_due(&mut self, now: Time) -> bool {
        let due = now == self.edge_deadline;
        if due {
            self.edge_deadline = Time::NEVER;
        }
        due
    }

    /// Makes sure that an event is pending no later than the deadline.
    #[inline]
    fn arm(&mut self, network: &mut Network<'_>) {
        if self.deadline < self.pending {
            self.pending = self.deadline;
            network.events.push_timer(self.deadline, EventKey::new(self.timer, self.flow.0));
        }
    }
}

/// The hosts' virtual switches and random streams.
pub struct Hosts<'a> {
    topology: &'a Topology,
    schemes: Vec<EdgeScheme>,
    hooks: EdgeHooks,
    header_bytes: u16,
    edge_streams: Vec<Stream>,
    transport_streams: Vec<Stream>,
    /// Explicit routes from rack to rack, `[from x racks + to]`; empty unless an edge scheme sends.
    routes: Vec<u16>,
    /// Packets that an edge scheme delivers.
    inbox: Vec<Packet>,
}

impl<'a> Hosts<'a> {
    /// Hosts with these edge schemes.
    pub fn new(
        topology: &'a Topology,
        schemes: Vec<EdgeScheme>,
        hooks: EdgeHooks,
        header_bytes: u16,
        edge_streams: Vec<Stream>,
        transport_streams: Vec<Stream>,
    ) -> Self {
        let (routes, inbox) = (Vec::new(), Vec::new());
        Self { topology, schemes, hooks, header_bytes, edge_streams, transport_streams, routes, inbox }
    }

    /// Counts the explicit routes anew: at the beginning, and after the fabric changed.
    pub fn learn_routes(&mut self, network: &Network<'_>) {
        if !self.hooks.sending {
            return;
        }
        let racks = self.topology.racks();
        let pairs = (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to)));
        self.routes = pairs
            .map(|(from, to)| network.routes.routes_to(self.topology, from, to).min(Route::LABELS) as u16)
            .collect();
    }

    /// The edge scheme of a host.
    pub fn scheme(&self, host: HostId) -> &EdgeScheme {
        &self.schemes[host.index()]
    }

    /// All edge schemes.
    pub fn schemes(&self) -> &[EdgeScheme] {
        &self.schemes
    }

    /// Whether packets that come in pass through the edge scheme.
    #[inline]
    pub const fn intercepts(&self) -> bool {
        self.hooks.receiving
    }

    /// A packet for `end` came in: what is delivered now, in order. To be given back with [`Hosts::recycle`].
    pub fn receive(&mut self, end: &mut End, packet: Packet, network: &mut Network<'_>) -> Vec<Packet> {
        self.with_edge(end, network, |scheme, view, flow| scheme.receiving(view, flow, packet))
    }

    /// The timer of the edge scheme for `end` is due: what is delivered now, in order.
    pub fn flow_timer(&mut self, end: &mut End, network: &mut Network<'_>) -> Vec<Packet> {
        self.with_edge(end, network, |scheme, view, flow| scheme.flow_timer(view, flow))
    }

    /// Takes an emptied list of packets back for reuse.
    pub fn recycle(&mut self, mut delivered: Vec<Packet>) {
        delivered.clear();
        self.inbox = delivered;
    }

    fn with_edge(
        &mut self,
        end: &mut End,
        network: &mut Network<'_>,
        call: impl FnOnce(&mut EdgeScheme, &mut EdgeView<'_>, &mut EdgeFlow),
    ) -> Vec<Packet> {
        let mut delivered = std::mem::take(&mut self.inbox);
        let mut flow = std::mem::take(&mut end.edge);
        let host = end.host.index();
        let mut view = EdgeView {
            now: network.now,
            topology: self.topology,
            routes: &self.routes,
            rack: self.topology.rack_of_host[host],
            header_bytes: self.header_bytes,
            stream: &mut self.edge_streams[host],
            delivered: &mut delivered,
            flow_timer: None,
        };
        call(&mut self.schemes[host], &mut view, &mut flow);
        let timer = view.flow_timer;
        end.edge = flow;
        set_flow_timer(end, timer, network);
        delivered
    }

    /// Lets the edge scheme set the route of a packet that goes out.
    fn route(&mut self, end: &mut End, packet: &mut Packet, network: &mut Network<'_>) {
        let delivered = self.with_edge(end, network, |scheme, view, flow| scheme.sending(view, flow, packet));
        debug_assert!(delivered.is_empty(), "nothing is delivered while sending");
        self.recycle(delivered);
    }
}

fn set_flow_timer(end: &mut End, delay: Option<Span>, network: &mut Network<'_>) {
    if let Some(delay) = delay {
        end.edge_deadline = network.now + delay;
        network.events.push_timer(end.edge_deadline, EventKey::new(end.edge_timer, end.flow.0));
    }
}

/// A host as its edge scheme sees it.
struct EdgeView<'a> {
    now: Time,
    topology: &'a Topology,
    routes: &'a [u16],
    rack: u16,
    header_bytes: u16,
    stream: &'a mut Stream,
    delivered: &'a mut Vec<Packet>,
    flow_timer: Option<Span>,
}

impl EdgeContext for EdgeView<'_> {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn rack_of(&self, host: HostId) -> u16 {
        self.topology.rack_of_host[host.index()]
    }

    #[inline]
    fn routes_to(&self, host: HostId) -> u16 {
        let pair = usize::from(self.rack) * self.topology.racks() + usize::from(self.rack_of(host));
        self.routes.get(pair).copied().unwrap_or(1)
    }

    fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    fn random(&mut self) -> &mut Stream {
        self.stream
    }

    fn deliver(&mut self, packet: Packet) {
        self.delivered.push(packet);
    }

    fn set_flow_timer(&mut self, delay: Span) {
        self.flow_timer = Some(delay);
    }
}

/// What a transport's end can do: its way out.
pub struct HostOutbox<'s, 'a> {
    /// Links and packets.
    pub network: &'s mut Network<'a>,
    /// The hosts.
    pub hosts: &'s mut Hosts<'a>,
    /// The end that acts.
    pub end: &'s mut End,
}

impl Outbox for HostOutbox<'_, '_> {
    #[inline]
    fn now(&self) -> Time {
        self.network.now
    }

    #[inline]
    fn send(&mut self, outgoing: Outgoing) {
        let mut packet = Packet::default();
        packet.sent = outgoing.sent;
        packet.flow = self.end.flow;
        packet.seq = outgoing.seq;
        packet.entropy = self.end.entropy;
        packet.src = self.end.host;
        packet.dst = self.end.peer;
        packet.wire_bytes = outgoing.wire_bytes;
        packet.kind = outgoing.kind;
        packet.flags = outgoing.flags.with(self.end.class);
        if packet.kind == Kind::Ack {
            packet.set_sack_blocks(outgoing.sack);
        }
        if self.hosts.hooks.sending {
            self.hosts.route(self.end, &mut packet, self.network);
        }
        self.network.send(packet);
    }

    #[inline]
    fn wake_at(&mut self, at: Time) {
        self.end.deadline = at;
        self.end.arm(self.network);
    }

    fn random(&mut self) -> &mut Stream {
        &mut self.hosts.transport_streams[self.end.host.index()]
    }
}
