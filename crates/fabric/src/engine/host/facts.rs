//! Facts of a fabric before a run: packet sizes, round-trip times, and what host schemes learn of
//! their hosts.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use weft_balance::{AnyHostScheme, FabricFacts, HostHooks, HostInfo, SchemeSpec};
use weft_packet::{HostId, Route};
use weft_transport::{FlowSize, Protocol, Transports};
use weft_units::Span;

use crate::engine::simulation::InputError;
use weft_topology::{FaultEvent, FlowPackets, Ideal, Routes, Tier, Topology};

/// The packet sizes of a transport, as far as hosts care.
#[derive(Debug, Clone, Copy)]
pub struct PacketSizes {
    /// Bytes of headers in every packet.
    pub header_bytes: u16,
    /// Bytes on the wire of a full-size packet.
    pub full_bytes: u16,
}

impl PacketSizes {
    /// Packet sizes of this transport.
    pub fn of(protocol: &impl Protocol) -> Self {
        let two_segments = FlowSize { segments: 2, last_payload: 1 };
        Self {
            header_bytes: protocol.segment_wire_bytes(two_segments, 1) - two_segments.last_payload,
            full_bytes: protocol.segment_wire_bytes(two_segments, 0),
        }
    }

    /// Packet sizes of all transports of a run: the headers of the first one, and the largest
    /// packet of any.
    pub fn of_all(transports: &impl Transports) -> Self {
        let full_bytes = transports.all().map(|transport| Self::of(transport).full_bytes).max();
        let first = Self::of(transports.numbered(0));
        Self { full_bytes: full_bytes.unwrap_or(first.full_bytes), ..first }
    }

    /// Bytes of payload in a full-size packet.
    pub fn payload_bytes(self) -> u64 {
        u64::from(self.full_bytes - self.header_bytes)
    }
}

/// Facts of a fabric that parameters of schemes are checked against. Each is found when it is first
/// read, for the longest round trip takes a walk over all pairs of racks.
pub struct Facts<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// How its links change.
    pub faults: &'a [FaultEvent],
    /// Packet sizes of the transport.
    sizes: PacketSizes,
    /// Ideal times, found at first use: that takes searches from all racks, and a walk over all
    /// pairs of them.
    ideal: OnceCell<RefCell<Ideal>>,
    base_rtts: OnceCell<Vec<Span>>,
}

impl<'a> Facts<'a> {
    /// Facts of this fabric.
    pub const fn new(topology: &'a Topology, faults: &'a [FaultEvent], sizes: PacketSizes) -> Self {
        Self { topology, faults, sizes, ideal: OnceCell::new(), base_rtts: OnceCell::new() }
    }

    fn ideal(&self) -> &RefCell<Ideal> {
        self.ideal.get_or_init(|| RefCell::new(Ideal::new(self.topology.at_its_best(self.faults))))
    }

    /// Ideal completion times where all links are at their best, over every path to which failures
    /// lead.
    pub fn into_ideal(self) -> Ideal {
        let Self { topology, faults, ideal, .. } = self;
        let found = ideal.into_inner().map(RefCell::into_inner);
        found
            .map_or_else(|| Ideal::over_faults(topology, faults), |ideal| ideal.rerouted_by(topology, faults))
    }

    /// The tables of all switches where all links are at their best.
    pub fn routes_at_best(&self) -> Arc<Routes> {
        Arc::clone(self.ideal().borrow().routes())
    }

    /// By pair of racks, `[from x racks + to]`: the round trips of the idle fabric between their
    /// first hosts.
    pub fn base_rtts(&self) -> &[Span] {
        self.base_rtts.get_or_init(|| {
            base_rtts(&mut self.ideal().borrow_mut(), &hosts_by_rack(self.topology), self.sizes)
        })
    }

    /// The longest of these, of any two hosts.
    pub fn longest_rtt(&self) -> Span {
        self.base_rtts().iter().copied().max().unwrap_or_default()
    }

    /// Those by pair of racks, if they are asked for.
    pub fn base_rtts_if(&self, is_asked: bool) -> &[Span] {
        if is_asked { self.base_rtts() } else { &[] }
    }
}

impl FabricFacts for Facts<'_> {
    fn hosts(&self) -> u32 {
        self.topology.hosts as u32
    }

    fn uplinks(&self) -> u32 {
        let switches =
            self.topology.switch_of_rack.iter().map(|&switch| self.topology.hosts + switch as usize);
        let uplinks = |node: usize| {
            let ports = self.topology.first_link[node] as usize..self.topology.first_link[node + 1] as usize;
            self.topology.links[ports].iter().filter(|link| link.tier == Tier::Leaf).count()
        };
        switches.map(uplinks).max().unwrap_or_default() as u32
    }

    fn base_rtt(&self) -> Span {
        let racks = self.topology.racks();
        let rtts = self.base_rtts();
        let between_racks = rtts.iter().enumerate().filter(|(pair, _)| pair % racks != pair / racks);
        between_racks.map(|(_, &rtt)| rtt).max().unwrap_or_default()
    }

    fn routes(&self) -> u16 {
        self.routes_at_best().most_routes(self.topology).min(Route::LABELS) as u16
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

/// The host scheme of each host, or none if the load balancer lives at switches. `routes` are those
/// of [`route_counts`], `memory` is how many bytes there are for the tables of all hosts, if that
/// is known.
///
/// # Errors
/// Tables that take more.
pub fn host_schemes(
    facts: &Facts<'_>,
    scheme: &SchemeSpec,
    hooks: HostHooks,
    routes: &[u16],
    seed: u64,
    memory: Option<u64>,
) -> Result<Vec<AnyHostScheme>, InputError> {
    let topology = facts.topology;
    let hosts = topology.hosts;
    if !hooks.on_send {
        return Ok((0..hosts).map(|_| AnyHostScheme::None).collect());
    }
    let racks = topology.racks();
    let rack_hosts = hosts_by_rack(topology);
    let first_hosts: Vec<HostId> =
        rack_hosts.iter().map(|hosts| hosts.first().copied().unwrap_or_default()).collect();
    let scheme = |host: usize| {
        let rack = usize::from(topology.rack_of_host[host]);
        let towards = rack * racks..(rack + 1) * racks;
        scheme.host_scheme(&HostInfo {
            host: HostId(host as u16),
            rack: rack as u16,
            racks: racks as u16,
            rack_hosts: &rack_hosts[rack],
            first_hosts: &first_hosts,
            // A host has one cable, and hosts are the first nodes: the link's number is the host's.
            rate: topology.links[host].condition.rate,
            routes: &routes[towards.clone()],
            base_rtts: &facts.base_rtts()[towards],
            seed,
        })
    };
    if let Some(memory) = memory {
        // All hosts of a rack have the same routes, and so the same tables.
        let of_rack = |hosts: &Vec<HostId>| {
            let first = hosts.first().map_or(0, |host| scheme(host.index()).table_bytes());
            first.saturating_mul(hosts.len() as u64)
        };
        let needed = rack_hosts.iter().map(of_rack).fold(0, u64::saturating_add);
        if needed > memory {
            return Err(InputError::Memory { needed, hosts, memory });
        }
    }
    Ok((0..hosts).map(scheme).collect())
}

/// Explicit routes from rack to rack by these tables, `[from x racks + to]`.
pub fn route_counts(topology: &Topology, tables: &Routes) -> Vec<u16> {
    let racks = topology.racks();
    let pairs = (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to)));
    pairs.map(|(from, to)| tables.routes_to(topology, from, to).min(Route::LABELS) as u16).collect()
}

/// By pair of racks, `[from x racks + to]`: the time there and back of a full-size packet and its
/// acknowledgement, between the first hosts of the racks (the first two hosts of one rack), when
/// nothing else moves. Zero where no path leads, or no second host is.
fn base_rtts(ideal: &mut Ideal, rack_hosts: &[Vec<HostId>], sizes: PacketSizes) -> Vec<Span> {
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
