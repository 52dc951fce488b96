//! Description of the nodes, cables and flows that the page draws.

use serde_json::{Value, json};
use weft_topology::Topology;
use weft_traffic::Flow;

/// The fabric: nodes (hosts first) with the tier of switches and the rack of hosts, and links in
/// both directions.
pub fn fabric(topology: &Topology) -> Value {
    let links = (0..topology.links.len()).map(|number| {
        let link = &topology.links[number];
        json!({
            "name": topology.link_name(number as u32),
            "from": link.from.0,
            "to": link.to.0,
            "tier": link.tier as u8,
            "rate": link.condition.rate.as_bps(),
            "delay": link.condition.delay.as_ps(),
            "up": link.condition.up,
            "reverse": topology.reverse[number],
            "buffer": link.queue.buffer(1_500).map(weft_units::Bytes::as_u64),
        })
    });
    json!({
        "hosts": topology.hosts,
        "names": topology.names,
        "racks": topology.rack_of_host,
        "edges": topology.switch_of_rack,
        "tiers": topology.tier_of_switch,
        "links": links.collect::<Vec<_>>(),
    })
}

/// The flows by number: `[start in ps, source, destination, bytes, 1 if it never ends]`.
pub fn flows(flows: &[Flow]) -> Value {
    let flow = |flow: &Flow| {
        json!([flow.start.as_ps(), flow.src.0, flow.dst.0, flow.size_bytes, u8::from(flow.background)])
    };
    flows.iter().map(flow).collect()
}
