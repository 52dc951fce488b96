//! CLOVE at leaves: what a leaf finds and what that costs, and what a rack gains by knowing
//! together.

use crate::common::{Run, counter, fabric, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Span, Time};

const DCTCP: &str = r#"name = "dctcp""#;
const AT_LEAF: &str = "name = 'clove'\nat = 'leaf'";
const AT_HOST: &str = "name = 'clove'";

fn bytes_on(fabric: &Fabric, results: &Results, link: &str) -> u64 {
    results.links[link_named(fabric, link)].bytes
}

/// One table for each of the two racks, whoever of their hosts sends; paths as in the host's test.
#[test]
fn a_leaf_finds_every_path_of_leaf_spine_and_fat_tree_once_for_its_rack() {
    let leaf_spine = |spines: u32, parallel: u32| {
        format!(
            "kind = 'leaf-spine'\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 2\nlinks_per_pair = {parallel}"
        )
    };
    for (text, pairs, paths) in [
        (leaf_spine(2, 1), [(0, 2), (1, 3)], 2),
        (leaf_spine(4, 1), [(0, 2), (1, 3)], 4),
        // Two cables up and two down, chosen by themselves.
        (leaf_spine(1, 2), [(0, 2), (1, 3)], 4),
        (leaf_spine(8, 1), [(0, 2), (1, 3)], 8),
        ("kind = 'fat-tree'\nk = 4".to_owned(), [(0, 15), (1, 14)], 4),
        ("kind = 'fat-tree'\nk = 4".to_owned(), [(0, 2), (1, 3)], 2),
    ] {
        let fabric = fabric(&text);
        for mode in ["ecn", "edge-flowlet"] {
            let scheme = format!("{AT_LEAF}\nmode = '{mode}'");
            for seed in 1..=5 {
                // Traces go on after the first packets, within 1 ms.
                let flows = [0, 1_000].map(|us| pairs.map(|(src, dst)| flow(us, src, dst, 1_000))).concat();
                let results = Run { seed, ..Run::new(&fabric, DCTCP, &scheme) }.flows(&flows);
                let found = ["destinations", "paths", "lost_traces"].map(|name| counter(&results, name));
                assert_eq!(found, [2, 2 * paths, 0], "{text}, {mode}, seed {seed}");
            }
        }
    }
}

/// A trace asks the spine, the far leaf, and for the far leaf: 64 bytes over 1, 2 and 2 links, and
/// answers of 74 bytes over as many back. The external hosts' packets are as large as before.
#[test]
fn traces_of_leaves_are_charged_to_the_links_that_they_take() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2");
    let flows = [flow(0, 0, 2, 1_000), flow(0, 1, 3, 1_000), flow(1_000, 0, 2, 1_000)];
    let ecmp = Run::new(&fabric, DCTCP, "name = 'ecmp'").flows(&flows);
    let clove = Run::new(&fabric, DCTCP, AT_LEAF).flows(&flows);
    let discovery = 64 * (1 + 2 + 2) * (64 + 74);
    assert_eq!((ecmp.packets.control_bytes, clove.packets.control_bytes), (0, 2 * discovery));
    assert_eq!((counter(&clove, "traces"), counter(&clove, "trace_bytes")), (2 * 64 * 3, 2 * 64 * 3 * 64));
    let bytes = |results: &Results| results.links.iter().map(|link| link.bytes).sum::<u64>();
    assert_eq!(bytes(&clove), bytes(&ecmp) + 2 * discovery);
}

/// The fabric and the reckoning of
/// `ecn_mode_leaves_a_slow_path_after_a_few_relay_intervals_and_chance_does_not`, but eight hosts
/// send in turn. The leaf takes the slow path as one host does: for at most 3 of the 100 flows.
/// Each host by itself takes it for one of the first two flows after its discovery: 8 of them.
#[test]
fn the_rack_leaves_a_slow_path_when_one_host_met_it() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n[switch_queue]\nmark = '30KB'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'",
    );
    let flows: Vec<Flow> = (0..100)
        .map(|index| flow(1_000 + 400 * index, (index % 8) as u16, 8 + (index % 8) as u16, 100_000))
        .collect();
    let slow = |scheme| {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&flows);
        assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
        bytes_on(&fabric, &results, "leaf0>spine1") as f64 / 100_000.0
    };
    let (leaf, host) = (slow(AT_LEAF), slow(AT_HOST));
    assert!(leaf < 3.4, "{leaf} flows' bytes");
    assert!(host > 7.9, "{host} flows' bytes");
    let chance = slow("name = 'clove'\nat = 'leaf'\nmode = 'edge-flowlet'");
    assert!(chance > 25.0, "{chance} flows' bytes");
}

/// Two flows by two paths to one host: the queue at its cable marks, and no other. The far leaf has
/// taken the encapsulation off by then, so that is the external hosts' own affair; a host's virtual
/// switch takes it for a mark of the path.
#[test]
fn marks_behind_the_far_leaf_say_nothing_of_paths() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nmark = '30KB'",
    );
    let flows = [
        flow(0, 0, 2, 1_000),
        flow(0, 1, 2, 1_000),
        flow(1_000, 0, 2, 2_000_000),
        flow(1_000, 1, 2, 2_000_000),
    ];
    let run = |scheme: &str| {
        let results = Run::new(&fabric, DCTCP, &format!("{scheme}\ngap = '100ms'")).flows(&flows);
        let marked: u64 = results.flows.iter().map(|flow| u64::from(flow.receiver.marked)).sum();
        let spread = ["spine0", "spine1"].map(|spine| bytes_on(&fabric, &results, &format!("leaf0>{spine}")));
        (marked > 0, counter(&results, "cuts"), spread.iter().all(|&bytes| bytes > 2_000_000))
    };
    assert_eq!(run(AT_LEAF), (true, 0, true));
    let (marked, cuts, _) = run(AT_HOST);
    assert!(marked && cuts > 0);
}

/// As with hosts: what is sent towards spine 1 is lost from 2 ms on. The next discovery is due 5 ms
/// after the first, begins with the next flow, and gives up after three times 0.5 ms.
#[test]
fn after_a_failure_and_the_next_discovery_the_rack_sends_nothing_into_the_hole() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\nreroute_after = '10s'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nat = '2ms'\ndown = true",
    );
    let flows: Vec<Flow> =
        (0..300).map(|index| flow(100 * index, (index % 2) as u16, 2 + (index % 2) as u16, 20_000)).collect();
    let scheme = format!("{AT_LEAF}\nrediscover = '5ms'\ntrace_timeout = '500us'");
    let results = Run::new(&fabric, DCTCP, &scheme).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()), "retransmissions take another path");
    let knows = Time::ZERO + Span::from_us(2_000 + 5_000 + 2_000 + 100);
    let suffered = |from: Time, to: Time| {
        let hit = |index: &usize| {
            let record = &results.flows[*index];
            flows[*index].start >= from
                && flows[*index].start < to
                && record.sender.timeouts + record.sender.retransmissions > 0
        };
        (0..flows.len()).filter(hit).count()
    };
    assert!(suffered(Time::ZERO + Span::from_ms(2), knows) > 0, "the failure is felt");
    assert_eq!(suffered(knows, Time::ZERO + Span::from_ms(100)), 0);
    // Each leaf keeps the three paths that are left. The fault takes both directions.
    assert_eq!((counter(&results, "paths"), counter(&results, "destinations")), (6, 2));
}

/// Where no packet has a choice, it is ECMP to the last byte.
#[test]
fn without_a_choice_leaves_trace_nothing_and_flows_end_as_under_ecmp() {
    let one_spine = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4");
    let one_rack = fabric("kind = 'leaf-spine'\nleaves = 1\nspines = 2\nhosts_per_leaf = 8");
    let flows: Vec<Flow> = (0..40).map(|i| flow(i * 5, (i % 4) as u16, 4 + (i % 3) as u16, 60_000)).collect();
    for fabric in [one_spine, one_rack] {
        let ecmp = Run::new(&fabric, DCTCP, "name = 'ecmp'").flows(&flows);
        let clove = Run::new(&fabric, DCTCP, AT_LEAF).flows(&flows);
        assert_eq!((&clove.flows, clove.packets), (&ecmp.flows, ecmp.packets));
    }
}

/// Outer headers are marked, weights are cut, and an external host without ECN sees nothing of it.
#[test]
fn external_hosts_without_ecn_are_steered_by_leaves_by_marks_that_they_never_see() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nmark = '30KB'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'",
    );
    let flows: Vec<Flow> =
        (0..40).map(|index| flow(1_000 + 400 * index, (index % 2) as u16, 2, 100_000)).collect();
    let results = Run::new(&fabric, "name = 'tcp'", AT_LEAF).flows(&flows);
    assert!(counter(&results, "cuts") > 0);
    assert!(results.flows.iter().all(|flow| flow.receiver.marked == 0 && flow.sender.marked_acks == 0));
}
