//! Traffic of each path, counted where packets arrive: only if asked for.

use std::collections::BTreeMap;

use weft_packet::Packet;
use weft_topology::{Routes, Topology};
use weft_traffic::Flow;

/// Traffic to a rack from another one over one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathTotal {
    /// The rack of the senders.
    pub src_rack: u16,
    /// The rack of the receivers.
    pub dst_rack: u16,
    /// Payload, however often it arrived.
    pub bytes: u64,
}

/// The paths that packets took, by racks and trail.
#[derive(Debug, Clone)]
pub struct PathMeter {
    /// Flows of at least this size are counted, and those that never end.
    from_bytes: u64,
    bytes: BTreeMap<(u16, u16, u16), u64>,
}

impl PathMeter {
    /// Nothing so far.
    pub const fn new(from_bytes: u64) -> Self {
        Self { from_bytes, bytes: BTreeMap::new() }
    }

    /// A data packet of this flow arrived, with so many bytes of headers.
    pub fn note(&mut self, topology: &Topology, packet: &Packet, flow: &Flow, header_bytes: u16) {
        let rack = |host: weft_packet::HostId| topology.rack_of_host[host.index()];
        let (from, to) = (rack(packet.src), rack(packet.dst));
        if from != to && (flow.background || flow.size_bytes >= self.from_bytes) {
            let payload = packet.wire_bytes.saturating_sub(header_bytes);
            *self.bytes.entry((from, to, packet.trail)).or_default() += u64::from(payload);
        }
    }

    /// Adds what another host counted.
    pub fn absorb(&mut self, other: Self) {
        for (path, bytes) in other.bytes {
            *self.bytes.entry(path).or_default() += bytes;
        }
    }

    /// Every path between racks that sent anything, those that carried nothing included; by racks,
    /// in no other order that means anything. How many paths there are follows from the routes at
    /// the end of the run.
    pub fn into_totals(self, topology: &Topology, routes: &Routes) -> Vec<PathTotal> {
        let mut totals: Vec<PathTotal> = Vec::new();
        let mut pairs: Vec<(u16, u16)> = self.bytes.keys().map(|&(from, to, _)| (from, to)).collect();
        pairs.dedup();
        for (src_rack, dst_rack) in pairs {
            let used = self.bytes.range((src_rack, dst_rack, 0)..=(src_rack, dst_rack, u16::MAX));
            let before = totals.len();
            totals.extend(used.map(|(_, &bytes)| PathTotal { src_rack, dst_rack, bytes }));
            let (from, to) = (usize::from(src_rack), usize::from(dst_rack));
            let paths = routes.routes_to(topology, from, to) as usize;
            let unused = paths.saturating_sub(totals.len() - before);
            totals.extend((0..unused).map(|_| PathTotal { src_rack, dst_rack, bytes: 0 }));
        }
        totals
    }
}
