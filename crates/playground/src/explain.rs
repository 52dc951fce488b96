//! A decision in words.

use serde_json::{Value, json};
use weft_fabric::{Choice, Decision};
use weft_topology::Topology;

/// A decision as the page shows it.
pub fn decision(decision: &Decision, topology: &Topology) -> Value {
    let (link, text, queues) = match &decision.choice {
        Choice::Link { link, reason, queues } => {
            let queues: Vec<Value> = queues
                .iter()
                .map(|&(link, bytes)| json!({ "link": link, "to": far_end(topology, link), "bytes": bytes }))
                .collect();
            (Some(*link), reason.clone(), queues)
        }
        Choice::Label { route, entropy, changed } => {
            (None, Some(label(*route, *entropy, *changed)), Vec::new())
        }
    };
    json!({
        "at": decision.at.as_ps(),
        "node": topology.names[decision.node as usize],
        "kind": decision.kind.name(),
        "segment": decision.segment,
        "link": link,
        "to": link.map(|link| far_end(topology, link)),
        "port": link.map(|link| link - topology.first_link[decision.node as usize]),
        "reason": text,
        "queues": queues,
    })
}

/// The name of the node that a link leads to.
fn far_end(topology: &Topology, link: u32) -> &str {
    &topology.names[topology.links[link as usize].to.0 as usize]
}

/// Label of the choice that a host wrote into a packet.
fn label(route: Option<u16>, entropy: u32, changed: bool) -> String {
    let what = match route {
        Some(route) => format!("path {route}"),
        None => format!("hash {entropy:08x}"),
    };
    if changed { format!("its host changes to {what}") } else { format!("its host writes {what}") }
}
