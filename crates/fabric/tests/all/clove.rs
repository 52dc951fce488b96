//! CLOVE on small fabrics: what discoveries find and cost, a slow path, a failed link, and fabrics
//! without a choice.

use crate::common::{Run, counter, fabric, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Span, Time};

const DCTCP: &str = r#"name = "dctcp""#;
const CLOVE: &str = r#"name = "clove""#;
const EDGE_FLOWLET: &str = "name = 'clove'\nmode = 'edge-flowlet'";

fn bytes_on(fabric: &Fabric, results: &Results, link: &str) -> u64 {
    results.links[link_named(fabric, link)].bytes
}

fn all_delivered(results: &Results) -> bool {
    results.flows.iter().all(|flow| flow.delivered.is_some())
}

/// With n equally likely paths, 64 random entropies miss one with a probability below n (1 -
/// 1/n)^64: 4e-8 for 4 paths, 0.0016 for 8. A fat-tree of 4 ports has 4 paths between pods and 2
/// within one. Two tables a pair of hosts.
#[test]
fn a_discovery_finds_every_path_of_leaf_spine_and_fat_tree() {
    let leaf_spine = |spines: u32, parallel: u32| {
        format!(
            "kind = 'leaf-spine'\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 2\nlinks_per_pair = {parallel}"
        )
    };
    for (text, dst, paths) in [
        (leaf_spine(2, 1), 2, 2),
        (leaf_spine(4, 1), 2, 4),
        // Two cables up and two down, chosen by themselves.
        (leaf_spine(1, 2), 2, 4),
        (leaf_spine(8, 1), 2, 8),
        ("kind = 'fat-tree'\nk = 4".to_owned(), 15, 4),
        ("kind = 'fat-tree'\nk = 4".to_owned(), 2, 2),
    ] {
        let fabric = fabric(&text);
        for scheme in [CLOVE, EDGE_FLOWLET] {
            for seed in 1..=5 {
                // One packet; traces go on after it, within 1 ms.
                let flows = [flow(0, 0, dst, 1_000), flow(1_000, 0, dst, 1_000)];
                let results = Run { seed, ..Run::new(&fabric, DCTCP, scheme) }.flows(&flows);
                let found = ["destinations", "paths", "lost_traces"].map(|name| counter(&results, name));
                assert_eq!(found, [2, 2 * paths, 0], "{text}, {scheme}, seed {seed}");
            }
        }
    }
}

/// A trace on leaf-spine asks the spine, the far leaf, and the far host: 64 bytes over 2, 3 and 4
/// links, and answers of 74 bytes over as many back.
#[test]
fn traces_are_charged_to_the_links_that_they_take() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2");
    let flows = [flow(0, 0, 2, 1_000), flow(1_000, 0, 2, 1_000)];
    let ecmp = Run::new(&fabric, DCTCP, "name = 'ecmp'").flows(&flows);
    let clove = Run::new(&fabric, DCTCP, CLOVE).flows(&flows);
    let discovery = 64 * (2 + 3 + 4) * (64 + 74);
    assert_eq!((ecmp.packets.control_bytes, clove.packets.control_bytes), (0, 2 * discovery));
    assert_eq!((counter(&clove, "traces"), counter(&clove, "trace_bytes")), (2 * 64 * 3, 2 * 64 * 3 * 64));
    let bytes = |results: &Results| results.links.iter().map(|link| link.bytes).sum::<u64>();
    assert_eq!(bytes(&clove), bytes(&ecmp) + 2 * discovery, "the guests' packets are as large as before");
}

/// Flows of 100 KB, 0.4 ms apart: 2 Gbit/s.
fn steady(count: u64) -> Vec<Flow> {
    (0..count).map(|index| flow(1_000 + 400 * index, 0, 2, 100_000)).collect()
}

/// Two paths, one of them cut from 10 to 1 Gbit/s behind its spine. A flow of 69 segments on it
/// sends 10 at once, and then two for each that is acknowledged, one each 12 us. So its queue has
/// 20 segments (30 KB, the mark) when 30 are sent, and the sender knows of it 240 us later: 10
/// segments at least come marked, 12 us apart, which is more than the relay interval (half of a
/// base round trip of 13 us). Ten cuts leave the weight 0.67^10 = 0.018 of 2: a turn in 110. So of
/// 100 flows at most 3 take the slow path: one by its own hash, one by its turn, one later; 104 KB
/// each with headers. A host's traces by one spine are some 16 KB.
#[test]
fn ecn_mode_leaves_a_slow_path_after_a_few_relay_intervals_and_chance_does_not() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nmark = '30KB'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'",
    );
    let slow = |scheme| {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&steady(100));
        assert!(all_delivered(&results));
        let bytes = ["spine0", "spine1"].map(|spine| bytes_on(&fabric, &results, &format!("leaf0>{spine}")));
        bytes[1] as f64 / 100_000.0
    };
    let (ecn, chance) = (slow(CLOVE), slow(EDGE_FLOWLET));
    assert!(ecn < 3.4, "{ecn} flows' bytes");
    // 100 draws of one in two: five standard deviations are 25.
    assert!(chance > 25.0, "{chance} flows' bytes");
}

/// The slow path of the test before is repaired at 20 ms, and the other one is never marked: no cut
/// gives the repaired path its weight back. By a turn in 110, at most 2 of 200 flows take it after
/// the first two, instead of 90.
#[test]
fn a_repaired_path_stays_unused_until_marks_on_others_give_it_weight() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nmark = '30KB'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'\nuntil = '20ms'",
    );
    let results = Run::new(&fabric, DCTCP, CLOVE).flows(&steady(200));
    let flows = bytes_on(&fabric, &results, "leaf0>spine1") as f64 / 100_000.0;
    assert!(flows < 4.4, "{flows} flows' bytes");
}

/// Routing never learns of the failure at 2 ms: what is sent towards spine 1 is lost there. The
/// next discovery begins by 1 + 5 ms, its traces into the hole are given up after three times 0.5
/// ms, and from then on no flow takes it.
#[test]
fn after_a_failure_and_the_next_discovery_no_packet_goes_into_the_hole() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\nreroute_after = '10s'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nat = '2ms'\ndown = true",
    );
    let flows: Vec<Flow> = (0..300).map(|index| flow(100 * index, 0, 2, 20_000)).collect();
    let knows = Time::ZERO + Span::from_us(2_000 + 5_000 + 2_000);
    for mode in ["ecn", "edge-flowlet"] {
        let scheme = format!("name = 'clove'\nmode = '{mode}'\nrediscover = '5ms'\ntrace_timeout = '500us'");
        let results = Run::new(&fabric, DCTCP, &scheme).flows(&flows);
        assert!(all_delivered(&results), "retransmissions take another path");
        let suffered = |from: Time, to: Time| {
            let hit = |index: &usize| {
                let record = &results.flows[*index];
                flows[*index].start >= from
                    && flows[*index].start < to
                    && record.sender.timeouts + record.sender.retransmissions > 0
            };
            (0..flows.len()).filter(hit).count()
        };
        assert!(suffered(Time::ZERO + Span::from_ms(2), knows) > 0, "{mode}: the failure is felt");
        assert_eq!(suffered(knows, Time::ZERO + Span::from_ms(100)), 0, "{mode}");
        // Each end keeps the three paths that are left. The fault takes both directions.
        assert_eq!((counter(&results, "paths"), counter(&results, "destinations")), (6, 2), "{mode}");
    }
}

/// Routing learns after 1 ms, and hashes over the switches that are left: other entropies lead over
/// other paths then.
#[test]
fn after_routing_converged_a_discovery_finds_the_paths_that_are_left() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\nreroute_after = '1ms'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nat = '2ms'\ndown = true",
    );
    let flows: Vec<Flow> = (0..200).map(|index| flow(100 * index, 0, 2, 20_000)).collect();
    let scheme = "name = 'clove'\nrediscover = '5ms'\ntrace_timeout = '500us'";
    let results = Run::new(&fabric, DCTCP, scheme).flows(&flows);
    assert!(all_delivered(&results));
    assert_eq!((counter(&results, "paths"), counter(&results, "lost_traces")), (6, 0));
    for spine in [0, 2, 3] {
        assert!(
            bytes_on(&fabric, &results, &format!("leaf0>spine{spine}")) > 200_000,
            "spine {spine} is used"
        );
    }
}

/// Where no packet has a choice, CLOVE is ECMP to the last byte: it asks nothing, and changes
/// nothing.
#[test]
fn without_a_choice_nothing_is_traced_and_flows_end_as_under_ecmp() {
    let one_spine = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4");
    let one_rack = fabric("kind = 'leaf-spine'\nleaves = 1\nspines = 2\nhosts_per_leaf = 8");
    let flows: Vec<Flow> = (0..40).map(|i| flow(i * 5, (i % 4) as u16, 4 + (i % 3) as u16, 60_000)).collect();
    for fabric in [one_spine, one_rack] {
        let ecmp = Run::new(&fabric, DCTCP, "name = 'ecmp'").flows(&flows);
        for scheme in [CLOVE, EDGE_FLOWLET] {
            let clove = Run::new(&fabric, DCTCP, scheme).flows(&flows);
            assert_eq!((&clove.flows, clove.packets), (&ecmp.flows, ecmp.packets), "{scheme}");
        }
    }
}

/// An external host without ECN: outer headers are marked, weights are cut, and the external host
/// sees nothing of it.
#[test]
fn external_hosts_without_ecn_are_steered_by_marks_that_they_never_see() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nmark = '30KB'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'",
    );
    let results = Run::new(&fabric, "name = 'tcp'", CLOVE).flows(&steady(40));
    assert!(counter(&results, "cuts") > 0);
    assert!(results.flows.iter().all(|flow| flow.receiver.marked == 0 && flow.sender.marked_acks == 0));
}

/// One of the first two flowlets that have a choice takes the slow path: a flow of 2 MB, with no
/// pause of 1 ms before it loses something. DCTCP that is told of marks keeps the queue near the
/// mark of 30 KB and far from the limit of 375 KB. DCTCP that is not doubles its window until the
/// queue overflows, for the other path has no marks to make all congested; then its timeout begins
/// a flowlet that may take the other path.
#[test]
fn dctcp_without_its_marks_fills_the_slow_path_until_it_drops() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [switch_queue]\nmark = '30KB'\nbuffer = '375KB'\n[[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'",
    );
    let mut flows = vec![flow(0, 0, 2, 1_000)];
    flows.extend((1..=2).map(|index| flow(30_000 * index, 0, 2, 2_000_000)));
    let dropped = |external_marks| {
        let scheme = format!("name = 'clove'\ngap = '1ms'\nguest_marks = '{external_marks}'");
        let results = Run::new(&fabric, DCTCP, &scheme).flows(&flows);
        assert!(all_delivered(&results));
        assert!(
            bytes_on(&fabric, &results, "leaf0>spine1") > 375_000,
            "{external_marks}: a flow takes the slow path"
        );
        (results.packets.dropped > 0, counter(&results, "hidden_marks") > 0)
    };
    assert_eq!((dropped("pass"), dropped("all-congested")), ((false, false), (true, true)));
}

/// Marks are told at most once a relay interval for each path and pair of hosts: 2 paths, and 50 us
/// between reports of one.
#[test]
fn relays_are_no_more_than_the_interval_allows() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nmark = '15KB'\n\
         [[fault]]\nlink = 'leaf1-spine0'\nrate = '1Gbps'\n[[fault]]\nlink = 'leaf1-spine1'\nrate = '1Gbps'",
    );
    let results = Run::new(&fabric, DCTCP, "name = 'clove'\nrelay = '50us'")
        .flows(&[flow(0, 0, 2, 1_000), flow(1_000, 0, 2, 5_000_000)]);
    let relays = counter(&results, "relays");
    let took = results.end.since(Time::ZERO + Span::from_ms(1));
    let most = 2 * (took.as_ps() / Span::from_us(50).as_ps() + 1);
    assert!(relays > 10 && relays <= most, "{relays} of at most {most}");
    assert!(counter(&results, "cuts") <= relays);
}
