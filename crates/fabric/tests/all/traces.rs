//! Which links the traced flows took.
use std::collections::BTreeMap;

use crate::common::{Run, SMALL, fabric, flow};
use weft_units::Span;

/// Packets by flow and name of the link.
fn traced(scheme: &str, count: usize) -> BTreeMap<(u32, String), u32> {
    let fabric = fabric(SMALL);
    let mut run = Run::new(&fabric, "name = \"dctcp\"", scheme);
    run.trace_flows = Some((count, Span::from_us(20)));
    let flows = [flow(0, 0, 2, 146_000), flow(3, 1, 3, 1_000), flow(5, 0, 1, 29_200)];
    let results = run.flows(&flows);
    let mut found = BTreeMap::new();
    for row in &results.traces {
        let name = fabric.topology.link_name(row.link);
        *found.entry((row.flow, name)).or_default() += row.packets;
    }
    assert!(results.traces.is_sorted_by_key(|row| (row.at, row.flow, row.link)));
    found
}

#[test]
fn a_flow_that_is_dealt_out_is_traced_on_both_paths_and_one_within_a_rack_on_the_last_link_alone() {
    // 100 packets in turn over two paths; 20 packets to the neighbour. The small flow is the third
    // largest.
    let expected = [
        ((0, "leaf0>spine0"), 50),
        ((0, "leaf0>spine1"), 50),
        ((0, "leaf1>host2"), 100),
        ((0, "spine0>leaf1"), 50),
        ((0, "spine1>leaf1"), 50),
        ((2, "leaf0>host1"), 20),
    ];
    let expected = expected.map(|((flow, link), packets)| ((flow, link.to_owned()), packets));
    assert_eq!(traced("name = \"drb\"", 2), BTreeMap::from(expected));
}

#[test]
fn flows_are_the_same_with_and_without() {
    let fabric = fabric(SMALL);
    let flows = [flow(0, 0, 2, 146_000), flow(3, 1, 2, 100_000)];
    let mut run = Run::new(&fabric, "name = \"dctcp\"", "name = \"drill\"");
    let plain = run.flows(&flows);
    assert!(plain.traces.is_empty());
    run.trace_flows = Some((2, Span::from_us(20)));
    let traced = run.flows(&flows);
    assert_eq!(traced.flows, plain.flows);
    assert!(!traced.traces.is_empty());
}
