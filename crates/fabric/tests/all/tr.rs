//! TR on small fabrics: order over unequal paths, and what it does under load.

use crate::common::{Run, fabric, flow, link_named};
use weft_fabric::{FlowRecord, Results};
use weft_packet::HostId;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::mix64;

const DCTCP: &str = r#"name = "dctcp""#;
/// The readings under which a prediction that lacks nothing keeps the order of all packets.
const TR: &str = "name = 'tr'\ntnl = 'with-packet'\nlast_uplink = 'always'\ncounted = 'last'\nrtt = '200us'\nbelieve = '200us'";
/// As its text has it.
const BY_THE_LETTER: &str = r#"name = "tr""#;
const RPS: &str = r#"name = "rps""#;
const DRILL: &str = r#"name = "drill""#;

/// The paper's two leaves (TR §Design motivation) with four spines, half of them bad: 10 Gbit/s,
/// and good paths of 200 us there and back. A bad path takes `ratio` times that: its cables between
/// leaves and spine are longer.
fn paper(ratio: f64) -> Fabric {
    let extra_us = 200.0 * (ratio - 1.0) / 4.0;
    let fault =
        |link: &str| format!("[[fault]]\nlink = '{link}'\ndelay = '{}ns'\n", (extra_us * 1e3).round() as u64);
    let bad: String = ["leaf0-spine1", "leaf1-spine1", "leaf0-spine3", "leaf1-spine3"].map(fault).concat();
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_delay = '25us'\n\
         fabric_delay = '25us'\n{bad}"
    ))
}

fn sum(results: &Results, of: impl Fn(&FlowRecord) -> u32) -> u64 {
    results.flows.iter().map(|flow| u64::from(of(flow))).sum()
}

fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

fn reordered(results: &Results) -> u64 {
    sum(results, |flow| flow.receiver.out_of_order)
}

fn bytes_on(fabric: &Fabric, results: &Results, names: &[&str]) -> u64 {
    names.iter().map(|name| results.links[link_named(fabric, name)].bytes).sum()
}

#[test]
fn a_lone_flow_over_unequal_paths_arrives_in_order_where_rps_reorders() {
    for ratio in [1.5, 2.0, 2.5, 3.0, 3.5] {
        let fabric = paper(ratio);
        for (size, start) in [(20_000, 0), (99_000, 0), (3_000_000, 0), (3_000_077, 1_000)] {
            let flows = [flow(start, 0, 4, size)];
            let tr = Run::new(&fabric, DCTCP, TR).flows(&flows);
            assert!(tr.flows[0].delivered.is_some());
            let seen = (reordered(&tr), sum(&tr, |flow| flow.sender.retransmissions));
            assert_eq!(seen, (0, 0), "ratio {ratio}, {size} bytes");
            if size > 20_000 {
                let rps = Run::new(&fabric, DCTCP, RPS).flows(&flows);
                assert!(reordered(&rps) > 0, "ratio {ratio}, {size} bytes: {}", reordered(&rps));
            }
        }
    }
}

#[test]
fn a_lone_flow_uses_every_equal_path_in_order() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2");
    for size in [3_000_000, 3_000_077, 1_461] {
        let results = Run::new(&fabric, DCTCP, TR).flows(&[flow(0, 0, 2, size)]);
        assert_eq!(reordered(&results), 0, "{size} bytes");
        if size > 10_000 {
            for spine in 0..4 {
                let bytes = bytes_on(&fabric, &results, &[&format!("leaf0>spine{spine}")]);
                // More than the packets of 64 bytes by which switches learn the cables: data.
                assert!(bytes > 1_500, "{bytes} bytes by spine {spine}");
            }
        }
    }
}

#[test]
fn short_flows_keep_to_the_good_paths() {
    let fabric = paper(2.5);
    let flows: Vec<Flow> =
        (0..40).map(|i| flow(200 * i, (i % 4) as u16, 4 + (i % 4) as u16, 50_000)).collect();
    let results = Run::new(&fabric, DCTCP, TR).flows(&flows);
    let bad = bytes_on(&fabric, &results, &["leaf0>spine1", "leaf0>spine3"]);
    let good = bytes_on(&fabric, &results, &["leaf0>spine0", "leaf0>spine2"]);
    // What remains are the packets by which switches learn the cables, of 64 bytes: none of data.
    assert!(bad < 1_500, "{bad} bytes on bad paths, {good} on good ones");
    assert_eq!(reordered(&results), 0);
}

/// Long flows go where no short one is: also to bad paths, which short flows leave alone (TR §Basic
/// insight).
#[test]
fn long_flows_leave_the_good_paths_to_short_ones() {
    let fabric = paper(1.5);
    let mut flows = vec![flow(0, 0, 4, 20_000_000)];
    flows.extend((0..400).map(|i| flow(1_000 + 30 * i, 1 + (i % 3) as u16, 5 + (i % 3) as u16, 20_000)));
    let bad = |flows: &[Flow]| {
        let results = Run::new(&fabric, DCTCP, TR).flows(flows);
        bytes_on(&fabric, &results, &["leaf0>spine1", "leaf0>spine3"])
    };
    let alone = bad(&flows[..1]);
    let mixed = bad(&flows);
    assert!(mixed > alone, "on bad paths: {alone} bytes of a long flow alone, {mixed} beside short flows");
}

/// Six hosts a leaf, and flows between all racks at random: one in five of 800 KB, the others of 30
/// KB.
fn mixed(gap_us: u64, leaves: u64) -> Vec<Flow> {
    let hosts = 6 * leaves;
    let one = |index: u64| {
        let draw = mix64(index);
        let src = draw % hosts;
        let dst = (src / 6 * 6 + 6 + (draw >> 32) % (hosts - 6)) % hosts;
        flow(gap_us * index, src as u16, dst as u16, if index.is_multiple_of(5) { 800_000 } else { 30_000 })
    };
    (0..600).map(one).collect()
}

/// This many leaves and four spines, two of them further away if `unequal`.
fn fabric_of(leaves: u64, unequal: bool) -> Fabric {
    let further = |leaf| {
        ["spine1", "spine3"]
            .map(|spine| format!("[[fault]]\nlink = 'leaf{leaf}-{spine}'\ndelay = '20us'\n"))
            .concat()
    };
    let faults: String = (0..leaves).filter(|_| unequal).map(further).collect();
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = {leaves}\nspines = 4\nhosts_per_leaf = 6\n\
         [switch_queue]\nbuffer = '2MB'\n{faults}"
    ))
}

/// Arrivals out of order in a thousand.
fn per_mille(fabric: &Fabric, flows: &[Flow], scheme: &str) -> f64 {
    let results = Run::new(fabric, DCTCP, scheme).flows(flows);
    assert_eq!(results.packets.dropped, 0, "what is out of order was overtaken, not lost");
    let arrived: u64 = results.flows.iter().map(|flow| flow.receiver.segments_received).sum();
    1_000.0 * reordered(&results) as f64 / arrived as f64
}

fn reordered_per_mille(leaves: u64, unequal: bool, gap_us: u64, scheme: &str) -> f64 {
    per_mille(&fabric_of(leaves, unequal), &mixed(gap_us, leaves), scheme)
}

/// Two leaves of equal rates fill no spine's queue: all that a prediction needs is known, and it is
/// exact (as in TR §Micro-Benchmark, where nothing is sent again).
#[test]
fn between_two_leaves_nothing_arrives_out_of_order_at_any_load() {
    for unequal in [false, true] {
        for gap_us in [63, 38, 27] {
            let reordered = reordered_per_mille(2, unequal, gap_us, TR);
            assert!(reordered <= 0.0, "unequal {unequal}, gap {gap_us} us: {reordered} of a thousand");
        }
    }
    assert!(reordered_per_mille(2, true, 38, RPS) > 0.0);
}

/// By TR eq. 1 as printed the last, smaller packet of a flow may pass the one before it: one
/// duplicate acknowledgement, and nothing is sent again (TR §Micro-Benchmark: "its retransmission
/// ratio is always 0").
#[test]
fn by_the_letter_nothing_is_sent_again_between_two_leaves() {
    for unequal in [false, true] {
        for gap_us in [63, 38, 27] {
            let results = Run::new(&fabric_of(2, unequal), DCTCP, BY_THE_LETTER).flows(&mixed(gap_us, 2));
            let again = sum(&results, |flow| flow.sender.retransmissions);
            assert_eq!((again, results.packets.dropped), (0, 0), "unequal {unequal}, gap {gap_us} us");
            let most = results.flows.iter().map(|flow| flow.receiver.out_of_order).max();
            assert!(most <= Some(1), "unequal {unequal}, gap {gap_us} us: {most:?} of a flow");
        }
    }
}

/// A spine that one leaf feeds has no queue, with however many others behind it: as between two
/// leaves.
#[test]
fn from_one_leaf_to_three_nothing_arrives_out_of_order() {
    for unequal in [false, true] {
        let fabric = fabric_of(4, unequal);
        // 30 %, 70 % and all of what the uplinks carry.
        for gap_us in [92, 39, 27] {
            let from_first = |flow: Flow| Flow { src: HostId(flow.src.0 % 6), ..flow };
            let flows: Vec<Flow> =
                mixed(gap_us, 4).into_iter().map(from_first).filter(|flow| flow.dst.0 >= 6).collect();
            let reordered = per_mille(&fabric, &flows, TR);
            assert!(reordered <= 0.0, "unequal {unequal}, gap {gap_us} us: {reordered} of a thousand");
        }
    }
}

/// From three leaves on, others fill the spines' queues after they reported: order is no longer
/// sure. Loads of 30 % and 70 % of the uplinks.
///
/// Over equal cables packets overtake where queues differ. DRILL sees the queues of its own leaf,
/// as TR does, but neither keeps to an order nor hears of the spines; RPS sees nothing. So TR must
/// reorder less than both.
///
/// Delays that TR knows add nothing to its errors, which are those of queues; under RPS on equal
/// cables all queues make errors, the leaf's as well as the spine's. So TR over unequal cables must
/// reorder less than RPS over equal ones.
#[test]
fn between_four_leaves_less_arrives_out_of_order_than_by_schemes_that_know_less() {
    for gap_us in [32, 14] {
        let [tr, drill, rps] = [TR, DRILL, RPS].map(|scheme| reordered_per_mille(4, false, gap_us, scheme));
        assert!(
            tr < drill && tr < rps,
            "gap {gap_us} us: TR {tr:.1}, DRILL {drill:.1}, RPS {rps:.1} of a thousand"
        );
        let unequal = reordered_per_mille(4, true, gap_us, TR);
        assert!(
            unequal < rps,
            "gap {gap_us} us: TR over unequal cables {unequal:.1}, RPS over equal ones {rps:.1} of a thousand"
        );
    }
}

#[test]
fn a_failed_uplink_ends_no_flow() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nreroute_after = '200us'\n\
         [[fault]]\nlink = 'leaf0-spine1'\nat = '1ms'\ndown = true",
    );
    let flows = [flow(0, 0, 2, 5_000_000), flow(10, 1, 3, 5_000_000)];
    let results = Run::new(&fabric, DCTCP, TR).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
}

#[test]
fn with_one_path_and_in_a_fat_tree_tr_is_harmless() {
    for text in [
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 8",
        "kind = 'fat-tree'\nk = 4\nhosts_per_edge = 4",
    ] {
        let fabric = fabric(text);
        let hosts = fabric.topology.hosts as u16;
        let flows: Vec<Flow> =
            (0..60).map(|i| flow(i * 5, (i % 8) as u16, hosts - 1 - (i % 8) as u16, 60_000)).collect();
        let results = Run::new(&fabric, DCTCP, TR).flows(&flows);
        assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
        assert_eq!(counter(&results, "empty_sets"), 0);
    }
}

/// 64 bytes for each leaf at each spine, and for each of the other leaves that the spine then tells
/// each of.
#[test]
fn learning_the_cables_takes_as_many_packets_as_the_page_says() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 5\nspines = 3\nhosts_per_leaf = 1");
    let results = Run::new(&fabric, DCTCP, TR).flows(&[flow(100, 0, 1, 1_000)]);
    assert_eq!(results.packets.control_bytes, 64 * (5 * 3 + 5 * 4 * 3));
}
