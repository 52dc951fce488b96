//! The hosts: their virtual switches with the edge schemes, and their random streams.

use weft_balance::{
    BalancerSpec, EdgeContext, EdgeFlow, EdgeHooks, EdgeScheme, FabricFacts, HostInfo, Message,
};
use weft_packet::{HostId, Packet, Route};
use weft_topology::{FaultEvent, FlowPackets, Ideal, Routes, Topology};
use weft_transport::{FlowSize, Protocol};
use weft_units::{Purpose, Rate, Span, Stream, Time};

use super::endpoint::End;
use super::event_set::EventKey;
use super::network::Network;

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
    /// Where edge schemes leave what they want done.
    deeds: Deeds,
}

/// What an edge scheme did in one call: done when the call is over.
#[derive(Default)]
struct Deeds {
    delivered: Vec<Packet>,
    flow_timer: Option<Span>,
    messages: Vec<Message>,
    host_timers: Vec<(Span, u32)>,
}

impl Deeds {
    /// Whether the host has something to do.
    #[inline]
    fn concern_host(&self) -> bool {
        !self.messages.is_empty() || !self.host_timers.is_empty()
    }
}

/// The packet sizes of a transport, as far as hosts care.
#[derive(Debug, Clone, Copy)]
pub struct PacketSizes {
    /// Bytes of headers in every packet.
    pub header_bytes: u16,
    /// Bytes on the wire of a full-size packet.
    pub full_bytes: u16,
}

impl PacketSizes {
    /// Those of this transport.
    pub fn of(protocol: &impl Protocol) -> Self {
        let two_segments = FlowSize { segments: 2, last_payload: 1 };
        Self {
            header_bytes: protocol.segment_wire_bytes(two_segments, 1) - two_segments.last_payload,
            full_bytes: protocol.segment_wire_bytes(two_segments, 0),
        }
    }

    /// Bytes of payload in a full-size packet.
    pub fn payload_bytes(self) -> u64 {
        u64::from(self.full_bytes - self.header_bytes)
    }
}

/// What the parameters of an edge scheme must go with.
pub fn fabric_facts(topology: &Topology, faults: &[FaultEvent], sizes: PacketSizes) -> FabricFacts {
    let best = topology.at_its_best(faults);
    let (routes, racks) = (Routes::at_start(&best), topology.racks());
    let most = routes.most_routes(topology);
    let rtts = base_rtts(topology, faults, &hosts_by_rack(topology), sizes);
    let between_racks = rtts.iter().enumerate().filter(|(pair, _)| pair % racks != pair / racks);
    FabricFacts {
        hosts: topology.hosts as u32,
        base_rtt: between_racks.map(|(_, &rtt)| rtt).max().unwrap_or_default(),
        routes: most.min(Route::LABELS) as u16,
    }
}

/// The hosts of each rack, in ascending order.
fn hosts_by_rack(topology: &Topology) -> Vec<Vec<HostId>> {
    let mut racks = vec![Vec::new(); topology.racks()];
    for (host, &rack) in topology.rack_of_host.iter().enumerate() {
        racks[usize::from(rack)].push(HostId(host as u16));
    }
    racks
}

impl<'a> Hosts<'a> {
    /// Hosts whose edge schemes are `balancer`, or none if it lives at switches.
    pub fn new(
        network: &Network<'a>,
        faults: &[FaultEvent],
        balancer: &BalancerSpec,
        hooks: EdgeHooks,
        sizes: PacketSizes,
        seed: u64,
    ) -> Self {
        let topology = network.topology;
        let streams = |purpose| (0..topology.hosts).map(move |host| Stream::new(seed, purpose, host as u64));
        let mut hosts = Self {
            topology,
            schemes: Vec::new(),
            hooks,
            header_bytes: sizes.header_bytes,
            edge_streams: streams(Purpose::EdgeBalancer).collect(),
            transport_streams: streams(Purpose::Transport).collect(),
            routes: Vec::new(),
            deeds: Deeds::default(),
        };
        hosts.schemes = if hooks.sending {
            hosts.learn_routes(network);
            hosts.edge_schemes(faults, balancer, sizes, seed)
        } else {
            (0..topology.hosts).map(|_| EdgeScheme::None).collect()
        };
        hosts
    }

    fn edge_schemes(
        &self,
        faults: &[FaultEvent],
        balancer: &BalancerSpec,
        sizes: PacketSizes,
        seed: u64,
    ) -> Vec<EdgeScheme> {
        let (topology, racks) = (self.topology, self.topology.racks());
        let rack_hosts = hosts_by_rack(topology);
        let first_hosts: Vec<HostId> =
            rack_hosts.iter().map(|hosts| hosts.first().copied().unwrap_or_default()).collect();
        let base_rtts = base_rtts(topology, faults, &rack_hosts, sizes);
        let scheme = |host: usize| {
            let rack = usize::from(topology.rack_of_host[host]);
            let towards = rack * racks..(rack + 1) * racks;
            balancer.edge_scheme(&HostInfo {
                host: HostId(host as u16),
                rack: rack as u16,
                racks: racks as u16,
                rack_hosts: &rack_hosts[rack],
                first_hosts: &first_hosts,
                // A host has one cable, and hosts are the first nodes: the link's number is the host's.
                rate: topology.links[host].condition.rate,
                routes: &self.routes[towards.clone()],
                base_rtts: &base_rtts[towards],
                seed,
            })
        };
        (0..topology.hosts).map(scheme).collect()
    }

    /// Counts the explicit routes anew: at the beginning, and after the fabric changed.
    pub fn learn_routes(&mut self, network: &Network<'_>) {
        if !self.hooks.sending {
            return;
        }
        let (routes, racks) = (network.explicit_routes(), self.topology.racks());
        let pairs = (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to)));
        self.routes = pairs
            .map(|(from, to)| routes.routes_to(self.topology, from, to).min(Route::LABELS) as u16)
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

    /// The transport's random stream of a host.
    pub fn transport_stream(&mut self, host: HostId) -> &mut Stream {
        &mut self.transport_streams[host.index()]
    }

    /// Whether packets that go out pass through the edge scheme.
    #[inline]
    pub const fn steers(&self) -> bool {
        self.hooks.sending
    }

    /// Whether packets that come in pass through the edge scheme.
    #[inline]
    pub const fn intercepts(&self) -> bool {
        self.hooks.receiving
    }

    /// Lets every edge scheme begin.
    pub fn start_schemes(&mut self, network: &mut Network<'_>) {
        if self.hooks.sending {
            for host in 0..self.topology.hosts {
                self.with_host(HostId(host as u16), network, |scheme, view| scheme.start(view));
            }
        }
    }

    /// A packet for `end` came in: what is delivered now, in order. To be given back with [`Hosts::recycle`].
    pub fn receive(&mut self, end: &mut End, packet: Packet, network: &mut Network<'_>) -> Vec<Packet> {
        self.with_flow(end, network, |scheme, view, flow| scheme.receiving(view, flow, packet));
        std::mem::take(&mut self.deeds.delivered)
    }

    /// The timer of the edge scheme for `end` is due: what is delivered now, in order.
    pub fn flow_timer(&mut self, end: &mut End, network: &mut Network<'_>) -> Vec<Packet> {
        self.with_flow(end, network, |scheme, view, flow| scheme.flow_timer(view, flow));
        std::mem::take(&mut self.deeds.delivered)
    }

    /// Takes an emptied list of packets back for reuse.
    pub fn recycle(&mut self, mut delivered: Vec<Packet>) {
        delivered.clear();
        self.deeds.delivered = delivered;
    }

    /// Lets the edge scheme set the route of a packet that goes out.
    pub fn route(&mut self, end: &mut End, packet: &mut Packet, network: &mut Network<'_>) {
        self.with_flow(end, network, |scheme, view, flow| scheme.sending(view, flow, packet));
        debug_assert!(self.deeds.delivered.is_empty(), "nothing is delivered while sending");
    }

    /// A retransmission timer of `end` expired.
    pub fn timed_out(&mut self, end: &mut End, network: &mut Network<'_>) {
        self.with_flow(end, network, |scheme, view, flow| scheme.timed_out(view, flow));
    }

    /// The sending end of a flow is done.
    pub fn finished(&mut self, end: &mut End, network: &mut Network<'_>) {
        if self.hooks.sending {
            self.with_flow(end, network, |scheme, view, flow| scheme.finished(view, flow));
        }
    }

    /// A packet of an edge scheme reached its host.
    pub fn message(&mut self, packet: &Packet, network: &mut Network<'_>) {
        let message = network.message_of(packet);
        let host = packet.dst;
        self.with_host(host, network, |scheme, view| scheme.message(view, message));
    }

    /// A timer of the edge scheme of a host is due.
    pub fn host_timer(&mut self, host: HostId, token: u32, network: &mut Network<'_>) {
        self.with_host(host, network, |scheme, view| scheme.host_timer(view, token));
    }

    /// Calls the edge scheme of the host of `end` about its flow.
    fn with_flow(
        &mut self,
        end: &mut End,
        network: &mut Network<'_>,
        call: impl FnOnce(&mut EdgeScheme, &mut EdgeView<'_>, &mut EdgeFlow),
    ) {
        let host = end.host();
        let (scheme, mut view) = self.view(host, network);
        call(scheme, &mut view, end.edge());
        if let Some(delay) = self.deeds.flow_timer.take() {
            end.set_edge_timer(delay, network);
        }
        if self.deeds.concern_host() {
            self.do_deeds(host, network);
        }
    }

    /// Calls the edge scheme of a host.
    fn with_host(
        &mut self,
        host: HostId,
        network: &mut Network<'_>,
        call: impl FnOnce(&mut EdgeScheme, &mut EdgeView<'_>),
    ) {
        let (scheme, mut view) = self.view(host, network);
        call(scheme, &mut view);
        debug_assert!(
            self.deeds.delivered.is_empty() && self.deeds.flow_timer.is_none(),
            "no flow is at hand"
        );
        self.do_deeds(host, network);
    }

    #[inline]
    fn view<'v>(&'v mut self, host: HostId, network: &'v Network<'_>) -> (&'v mut EdgeScheme, EdgeView<'v>) {
        let view = EdgeView {
            now: network.now,
            tables: network.explicit_routes(),
            topology: self.topology,
            routes: &self.routes,
            rack: self.topology.rack_of_host[host.index()],
            header_bytes: self.header_bytes,
            stream: &mut self.edge_streams[host.index()],
            deeds: &mut self.deeds,
        };
        (&mut self.schemes[host.index()], view)
    }

    /// Sends the messages and sets the timers that a scheme asked for.
    #[cold]
    fn do_deeds(&mut self, host: HostId, network: &mut Network<'_>) {
        for (delay, token) in self.deeds.host_timers.drain(..) {
            let at = network.now.saturating_add(delay);
            network.events.push_timer(at, EventKey::host_timer(host.0, token));
        }
        for message in self.deeds.messages.drain(..) {
            network.send_message(host, message);
        }
    }
}

/// By pair of racks, `[from x racks + to]`: the time there and back of a full-size packet and its acknowledgement, between
/// the first hosts of the racks (the first two hosts of one rack), when nothing else moves and all links are at their
/// best. Zero where no path leads, or no second host is.
fn base_rtts(
    topology: &Topology,
    faults: &[FaultEvent],
    rack_hosts: &[Vec<HostId>],
    sizes: PacketSizes,
) -> Vec<Span> {
    let mut ideal = Ideal::new(topology.at_its_best(faults));
    let alone = |bytes| FlowPackets { full_bytes: bytes, full_count: 0, last_bytes: bytes };
    let mut rtt = |from: usize, to: usize| {
        let src = *rack_hosts[from].first()?;
        let dst = *rack_hosts[to].get(usize::from(from == to))?;
        let there = ideal.fct(src, dst, alone(sizes.full_bytes), None)?;
        Some(there + ideal.fct(dst, src, alone(sizes.header_bytes), None)?)
    };
    let racks = rack_hosts.len();
    let pairs = (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to)));
    pairs.map(|(from, to)| rtt(from, to).unwrap_or_default()).collect()
}

/// A host as its edge scheme sees it.
struct EdgeView<'a> {
    now: Time,
    topology: &'a Topology,
    /// What explicit routes go by.
    tables: &'a Routes,
    routes: &'a [u16],
    rack: u16,
    header_bytes: u16,
    stream: &'a mut Stream,
    deeds: &'a mut Deeds,
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
    fn routes_to_rack(&self, rack: u16) -> u16 {
        self.routes_between(self.rack, rack)
    }

    fn hosts(&self) -> u32 {
        self.topology.hosts as u32
    }

    fn routes_between(&self, from: u16, to: u16) -> u16 {
        let pair = usize::from(from) * self.topology.racks() + usize::from(to);
        self.routes.get(pair).copied().unwrap_or(1)
    }

    fn path(&self, from: u16, to: u16, label: u16) -> Vec<(u32, Rate)> {
        let links = self.tables.path(self.topology, usize::from(from), usize::from(to), Route::label(label));
        links.into_iter().map(|link| (link, self.topology.links[link as usize].condition.rate)).collect()
    }

    fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    fn random(&mut self) -> &mut Stream {
        self.stream
    }

    fn deliver(&mut self, packet: Packet) {
        self.deeds.delivered.push(packet);
    }

    fn set_flow_timer(&mut self, delay: Span) {
        self.deeds.flow_timer = Some(delay);
    }

    fn send(&mut self, message: Message) {
        self.deeds.messages.push(message);
    }

    fn set_host_timer(&mut self, delay: Span, token: u32) {
        self.deeds.host_timers.push((delay, token));
    }
}
