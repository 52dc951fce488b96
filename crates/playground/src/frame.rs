//! A look at a run as plain numbers, which a page reads without decoding.

use weft_fabric::{FlowNow, LinkNow, PacketNow, Snapshot};
use weft_traffic::Flow;
use weft_units::Time;

/// Numbers of a link: bytes queued, rate in bit/s, 1 if it works, bytes sent, packets dropped,
/// packets marked.
pub const LINK_NUMBERS: usize = 6;
/// Numbers of a packet: link, flow, kind, segment, bytes, 1 if marked, ps until its last bit leaves
/// the queue, and until it arrives.
pub const PACKET_NUMBERS: usize = 8;
/// Numbers of a flow: when it was done in ps since it started or -1, bytes that arrived, ps that
/// its packets waited in queues of hosts, of leaves, of spines and at the last hop, packets that
/// arrived, those out of order, path changes, and segments sent again.
pub const FLOW_NUMBERS: usize = 10;

/// The numbers of one look.
#[derive(Debug, Default)]
pub struct Frame {
    /// [`LINK_NUMBERS`] a link.
    pub links: Vec<f64>,
    /// [`PACKET_NUMBERS`] a packet.
    pub packets: Vec<f64>,
    /// [`FLOW_NUMBERS`] a flow.
    pub flows: Vec<f64>,
}

impl Frame {
    /// Takes the numbers of what was seen at this time.
    pub fn fill(&mut self, seen: &Snapshot, flows: &[Flow], at: Time) {
        let Self { links, packets, flows: rows } = self;
        links.clear();
        links.extend(seen.links.iter().flat_map(link));
        packets.clear();
        packets.extend(seen.packets.iter().flat_map(|seen| packet(seen, flows.len(), at)));
        rows.clear();
        rows.extend(seen.flows.iter().zip(flows).flat_map(|(now, traffic)| flow(now, traffic)));
    }
}

fn link(link: &LinkNow) -> [f64; LINK_NUMBERS] {
    let rate = link.rate.as_bps() as f64;
    let [queued, bytes, dropped, marked] =
        [link.backlog_bytes, link.bytes, link.dropped, link.marked].map(|number| number as f64);
    [queued, rate, f64::from(u8::from(link.is_up)), bytes, dropped, marked]
}

fn packet(packet: &PacketNow, flows: usize, at: Time) -> [f64; PACKET_NUMBERS] {
    let until = |time: Time| time.as_ps() as f64 - at.as_ps() as f64;
    [
        f64::from(packet.link),
        // Subflows are numbered beyond the flows.
        (packet.flow as usize % flows.max(1)) as f64,
        f64::from(packet.kind as u8),
        f64::from(packet.segment),
        f64::from(packet.wire_bytes),
        f64::from(u8::from(packet.is_marked)),
        until(packet.leaves),
        until(packet.arrives),
    ]
}

fn flow(now: &FlowNow, traffic: &Flow) -> [f64; FLOW_NUMBERS] {
    let took = now.delivered.map_or(-1.0, |done| done.since(traffic.start).as_ps() as f64);
    let [host, leaf, spine, last] = now.wait_ps.map(|ps| ps as f64);
    let [bytes, arrived, behind, moved, resent] =
        [now.delivered_bytes, now.arrived, now.out_of_order, now.path_changes, now.resent]
            .map(|number| number as f64);
    [took, bytes, host, leaf, spine, last, arrived, behind, moved, resent]
}
