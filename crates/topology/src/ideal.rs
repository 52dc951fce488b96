//! How fast a flow could be at best: store and forward, alone in the fabric, everything ready to be
//! sent.

mod between;
mod rerouted;

use std::sync::Arc;

use between::Finder;
use rerouted::Rerouted;
use weft_packet::HostId;
use weft_units::{Bytes, Rate, Span};

use super::{FaultEvent, LinkSpec, Routes, Topology};

/// Packets of a flow: `full_count` packets of `full_bytes`, and then one of `last_bytes`, which is
/// not larger. Bytes on the wire, all headers included, without the fabric's overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPackets {
    /// Bytes of every packet but the last.
    pub full_bytes: u16,
    /// Number of packets but the last.
    pub full_count: u32,
    /// Bytes of the last packet.
    pub last_bytes: u16,
}

/// Ideal completion times over the equal-cost paths of a fabric.
///
/// The ideal is a lower bound: whatever a scheme does, a flow that sends its packets in order over
/// these paths takes at least as long, so a slowdown is never below 1. Where failures change routes
/// in mid-run it is one for every path to which they lead: see `rerouted`. Where they do not, it is
/// exact for a lone packet; for a flow with one path, at any rates; and for a flow over several
/// paths as long as its own two host links are the slowest of its way, but for the less than one
/// packet by which a short last packet can overtake a full one on another path.
///
/// Why it is a lower bound. Take the *k* links that carry the flow's *i*-th hop in any equal-cost
/// path. Some link of them forwards at least a k-th of the *n* full packets, rounded up. The first
/// of these cannot be there sooner than an unhindered packet; the last one leaves that link (n/k,
/// rounded up, less one) services later than an unhindered packet, and needs at least the
/// unhindered time for the rest. So the full packets have all arrived no sooner than an unhindered
/// one and the largest such wait among all hops. The last packet leaves the host's own link behind
/// all others, and cannot be at the last switch sooner than unhindered from there. On the last link
/// either it comes behind all full packets, and leaves one service after both the last of them and
/// its own arrival; or a full packet comes behind it, and then the last link has all services to
/// do, one after the other, from the first arrival on. The smaller of the two holds in either case.
/// Where a flow has one path, packets stay in order, and the wait at each link is known exactly: a
/// packet departs one service after it arrived or after its predecessor departed.
#[derive(Debug, Clone)]
pub struct Ideal {
    topology: Topology,
    routes: Arc<Routes>,
    /// Kind of the paths between the edge switches of two racks: `[from][to]`, a row for each rack
    /// asked for so far.
    of_pair: Vec<Box<[PairKind]>>,
    finder: Finder,
    /// Where failures change routes in mid-run.
    rerouted: Option<Rerouted>,
}

impl Ideal {
    /// Ideal times in this fabric, in the conditions that `topology` gives each link.
    pub fn new(topology: Topology) -> Self {
        let routes = Arc::new(Routes::at_start(&topology));
        let finder = Finder::new(&topology);
        let of_pair = vec![Box::default(); topology.racks()];
        Self { topology, routes, of_pair, finder, rerouted: None }
    }

    /// Ideal times in this fabric, whose links change so: each link at its best, over every path to
    /// which failures lead.
    pub fn over_faults(topology: &Topology, faults: &[FaultEvent]) -> Self {
        Self::new(topology.at_its_best(faults)).rerouted_by(topology, faults)
    }

    /// Ideal times of the same fabric, over every path to which these failures lead: if a link of
    /// `topology`, which this is at its best, fails or returns, packets may go where no shortest
    /// path leads, and arrive sooner.
    #[must_use]
    pub fn rerouted_by(mut self, topology: &Topology, faults: &[FaultEvent]) -> Self {
        let reroutes =
            |fault: &FaultEvent| fault.condition.up != topology.links[fault.link as usize].condition.up;
        self.rerouted = faults.iter().any(reroutes).then(Rerouted::default);
        self
    }

    /// The tables of all switches in these conditions.
    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// The time from the flow's start until its receiver has every byte. With a `handshake`, the
    /// bytes on the wire of the SYN and the SYN-ACK, the first packet leaves when the SYN-ACK has
    /// arrived. `None` if no path leads there.
    pub fn fct(
        &mut self,
        src: HostId,
        dst: HostId,
        packets: FlowPackets,
        handshake: Option<(u16, u16)>,
    ) -> Option<Span> {
        let alone = |bytes| FlowPackets { full_bytes: bytes, full_count: 0, last_bytes: bytes };
        let setup = match handshake {
            None => 0,
            Some((syn, syn_ack)) => {
                let there = self.one_way(src, dst, alone(syn))?;
                there.saturating_add(self.one_way(dst, src, alone(syn_ack))?)
            }
        };
        Some(Span::from_ps(setup.saturating_add(self.one_way(src, dst, packets)?)))
    }

    /// Picoseconds until all packets have arrived.
    fn one_way(&mut self, src: HostId, dst: HostId, packets: FlowPackets) -> Option<u64> {
        if src == dst {
            return Some(0);
        }
        let racks = [src, dst].map(|host| self.topology.rack_of_host[host.index()]);
        let kind = self.between(racks[0], racks[1])?;
        let topology = &self.topology;
        // A host has one port, and hosts come first: the link from a host has the host's number.
        let first = Hop::of(&topology.links[src.index()]);
        let last = Hop::of(&topology.links[topology.link_to_host[dst.index()] as usize]);
        let mut train = Train::new(packets, u64::from(topology.overhead_bytes));
        train.cross(&first);
        let by_tables = self.finder.kind(kind).cross(train, &last);
        let Some(rerouted) = self.rerouted.as_mut().filter(|_| racks[0] != racks[1]) else {
            return Some(by_tables);
        };
        rerouted.cross(topology, racks[0], racks[1], &mut train);
        Some(by_tables.min(train.finish(&last)))
    }

    fn between(&mut self, src_rack: u16, dst_rack: u16) -> Option<u32> {
        let (src, dst) = (usize::from(src_rack), usize::from(dst_rack));
        let row = &mut self.of_pair[src];
        if row.is_empty() {
            *row = vec![PairKind::Unknown; self.topology.racks()].into();
        }
        match row[dst] {
            PairKind::Known(kind) => Some(kind),
            PairKind::Apart => None,
            PairKind::Unknown => {
                let kind = self.finder.find(&self.topology, &self.routes, src, dst);
                row[dst] = kind.map_or(PairKind::Apart, PairKind::Known);
                kind
            }
        }
    }
}

/// Kind of the paths from one rack to another.
#[derive(Debug, Clone, Copy)]
enum PairKind {
    /// Nobody asked yet.
    Unknown,
    /// No path leads there.
    Apart,
    /// The paths are of this kind.
    Known(u32),
}

/// A link, as a lone packet sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hop {
    rate: Rate,
    delay: Span,
}

impl Hop {
    fn of(link: &LinkSpec) -> Self {
        Self { rate: link.condition.rate, delay: link.condition.delay }
    }

    /// Picoseconds.
    fn service(&self, bytes: u64) -> u64 {
        self.rate.service(Bytes::new(bytes)).as_ps()
    }
}

/// A flow's packets on their way. Times in picoseconds since the first one was ready.
#[derive(Debug, Clone, Copy)]
struct Train {
    /// Number of full packets.
    count: u64,
    full_bytes: u64,
    last_bytes: u64,
    /// When the first full packet arrives.
    first_full: u64,
    /// How much later the last full packet arrives.
    lag: u64,
    /// When the last packet arrives.
    last: u64,
}

impl Train {
    /// All packets are ready at their host.
    fn new(packets: FlowPackets, overhead: u64) -> Self {
        Self {
            count: u64::from(packets.full_count),
            full_bytes: u64::from(packets.full_bytes) + overhead,
            last_bytes: u64::from(packets.last_bytes) + overhead,
            first_full: 0,
            lag: 0,
            last: 0,
        }
    }

    /// All packets cross one link, in order.
    fn cross(&mut self, hop: &Hop) {
        let delay = hop.delay.as_ps();
        if self.count > 0 {
            self.spread(1, hop.rate);
            self.first_full = self.first_full.saturating_add(hop.service(self.full_bytes));
            self.last = self.last.max(self.first_full.saturating_add(self.lag));
            self.first_full = self.first_full.saturating_add(delay);
        }
        self.last = self.last.saturating_add(hop.service(self.last_bytes)).saturating_add(delay);
    }

    /// The full packets wait for each other at a hop with this many links.
    fn spread(&mut self, links: u64, fastest: Rate) {
        let behind = self.count.saturating_sub(1) / links.max(1);
        let service = fastest.service(Bytes::new(self.full_bytes)).as_ps();
        self.lag = self.lag.max(behind.saturating_mul(service));
    }

    /// All packets cross the last link, perhaps not in order: when the last one has arrived.
    fn finish(mut self, hop: &Hop) -> u64 {
        let delay = hop.delay.as_ps();
        let (full, last) = (hop.service(self.full_bytes), hop.service(self.last_bytes));
        if self.count == 0 {
            return self.last.saturating_add(last).saturating_add(delay);
        }
        let first_arrival = self.first_full.min(self.last);
        self.spread(1, hop.rate);
        let fulls_gone = self.first_full.saturating_add(full).saturating_add(self.lag);
        let in_order = fulls_gone.max(self.last).saturating_add(last);
        let all_services = full.saturating_mul(self.count).saturating_add(last);
        let overtaken =
            first_arrival.saturating_add(all_services).max(fulls_gone).max(self.last.saturating_add(full));
        in_order.min(overtaken).saturating_add(delay)
    }
}
