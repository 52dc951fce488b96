//! Packets of one flow over many paths: sprayed by hosts, which hear what became of them, and by
//! switches.

use crate::common::{Run, counter, fabric, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::Span;

/// A sender that bears packets out of order, and acknowledges each: what marks and losses do is
/// left to see.
const DCTCP: &str = "name = 'dctcp'\nsack = true\nrack = true\n";

/// Two leaves of 8 hosts, 8 spines: hosts 0 to 7 send, 8 to 15 receive. A host's own queue does not
/// mark.
const FABRIC: &str =
    "kind = 'leaf-spine'\nleaves = 2\nspines = 8\nhosts_per_leaf = 8\nhost_queue = { mark = 'never' }\n";

/// Eight flows of 4 MB, one from each host, at once.
fn pairs() -> Vec<Flow> {
    (0..8).map(|host| flow(0, host, 8 + host, 4_000_000)).collect()
}

/// Bytes that leaf 0 sent to each spine.
fn uplinks(fabric: &Fabric, results: &Results) -> Vec<f64> {
    let bytes = |spine: usize| results.links[link_named(fabric, &format!("leaf0>spine{spine}"))].bytes as f64;
    (0..8).map(bytes).collect()
}

fn slowest_us(results: &Results) -> f64 {
    let fcts = results.flows.iter().map(|record| record.delivered.unwrap().as_ps() as f64 / 1e6);
    fcts.fold(0.0, f64::max)
}

#[test]
fn one_flow_fills_all_uplinks_evenly() {
    let fabric = fabric(FABRIC);
    // 2,740 packets over eight uplinks are 342 each: drawn, to four standard deviations of 17; in
    // turn over 65,536 entropies that eight buckets of a hash share, the same.
    for (scheme, off) in [
        ("name = 'oblivious'", 0.2),
        ("name = 'oblivious'\norder = 'permutation'", 0.2),
        ("name = 'bitmap'\nentropies = 4096", 0.2),
        ("name = 'ofan'", 0.004),
        ("name = 'ar'\ngrades = 1", 0.2),
    ] {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&[flow(0, 0, 8, 4_000_000)]);
        let bytes = uplinks(&fabric, &results);
        let mean = bytes.iter().sum::<f64>() / 8.0;
        assert!(bytes.iter().all(|&one| (one / mean - 1.0).abs() < off), "{scheme}: {bytes:?}");
    }
}

#[test]
fn who_hears_of_marks_leaves_a_slow_path_to_what_it_carries() {
    let fabric = fabric(&format!("{FABRIC}[[fault]]\nlink = 'leaf0-spine3'\nrate = '1Gbps'\n"));
    let run = |scheme: &str| Run::new(&fabric, DCTCP, scheme).flows(&pairs());
    let share = |results: &Results| {
        let bytes = uplinks(&fabric, results);
        bytes[3] / bytes.iter().sum::<f64>()
    };
    let oblivious = run("name = 'oblivious'");
    assert!((share(&oblivious) - 1.0 / 8.0).abs() < 0.01, "an eighth: {}", share(&oblivious));
    for scheme in ["name = 'reps'", "name = 'bitmap'"] {
        let results = run(scheme);
        // 1 of 71 Gbit/s, and what is tried again and again.
        assert!(share(&results) < 0.08, "{scheme}: {}", share(&results));
        assert!(slowest_us(&results) < slowest_us(&oblivious), "{scheme}");
    }
    // The leaf itself sees the queue.
    let adaptive = run("name = 'ar'");
    assert!(share(&adaptive) < 0.08, "ar: {}", share(&adaptive));
}

#[test]
fn a_frozen_flow_draws_less_and_loses_less_than_one_that_sprays() {
    // Routing never learns of it: one of eight paths is a hole from 1 ms on. For half a millisecond
    // all are, so that every flow has a timeout.
    let outage =
        |spine| format!("[[fault]]\nlink = 'leaf0>spine{spine}'\nat = '1ms'\nuntil = '1500us'\nloss = 1.0\n");
    let text = format!(
        "{FABRIC}reroute_after = '1s'\n[[fault]]\nlink = 'spine3-leaf1'\nat = '1ms'\ndown = true\n{}",
        (0..8).map(outage).collect::<String>()
    );
    let fabric = fabric(&text);
    let flows = pairs();
    let run = |scheme: &str| {
        let time_limit = Span::from_s(2);
        Run { time_limit, ..Run::new(&fabric, DCTCP, scheme) }.flows(&flows)
    };
    let (never, frozen) = (run("name = 'reps'\nfreeze = 'never'"), run("name = 'reps'\nfreeze_for = '2s'"));
    let counts = |results: &Results| ["freezes", "drawn"].map(|name| counter(results, name));
    let ([no_freezes, drawn], [freezes, drawn_frozen]) = (counts(&never), counts(&frozen));
    assert_eq!((no_freezes, freezes), (0, 8), "each flow once: {:?}", frozen.scheme);
    assert!(drawn_frozen < drawn, "{drawn_frozen} and {drawn}");
    let oblivious = run("name = 'oblivious'");
    let lost = |results: &Results| results.packets.dropped;
    assert!(lost(&frozen) < lost(&oblivious), "{} and {}", lost(&frozen), lost(&oblivious));
    assert!(frozen.flows.iter().all(|record| record.delivered.is_some()));
}

#[test]
fn with_rotation_each_way_down_gets_as_much_as_the_others() {
    // Hosts of racks 0 and 1 send to rack 2: over each spine as many packets, but for the last
    // round of each pointer.
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 8\n");
    let flows: Vec<Flow> = (0..16).map(|host| flow(0, host, 16 + host % 8, 300_000)).collect();
    let results = Run::new(&fabric, DCTCP, "name = 'ofan'").flows(&flows);
    let packets: Vec<u64> = (0..4)
        .map(|spine| results.links[link_named(&fabric, &format!("spine{spine}>leaf2"))].packets)
        .collect();
    let (least, most) = (packets.iter().min().unwrap(), packets.iter().max().unwrap());
    assert!(most - least <= 4, "two leaves, two pointers each: {packets:?}");
    assert!(*least > 700, "{packets:?}");
}

#[test]
fn flowlets_of_adaptive_routing_keep_a_bursty_flow_in_order() {
    // One flow alone, at a host's rate: no pause is longer than the gap, so it stays where it
    // began.
    let fabric = fabric(FABRIC);
    let run = |scheme: &str| Run::new(&fabric, DCTCP, scheme).flows(&[flow(0, 0, 8, 4_000_000)]);
    let flowlets = run("name = 'ar'\nmode = 'flowlet'\ngap = '500us'");
    assert_eq!((flowlets.flows[0].path_changes, counter(&flowlets, "flowlet_moves")), (0, 0));
    assert!(run("name = 'ar'").flows[0].path_changes > 1_000);
}
