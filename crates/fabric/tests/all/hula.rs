//! HULA on small fabrics: probes find what is used and what is gone.

use crate::common::{Run, counter, fabric, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Span, Time};

const DCTCP: &str = r#"name = "dctcp""#;
const HULA: &str = r#"name = "hula""#;

/// Routing never learns of faults within these runs.
const TWO_SPINES: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 32\n\
                          host_rate = '1Gbps'\nreroute_after = '1s'\n";

/// Flows of 60 KB from rack 0 to rack 1 between two times, one each 100 us: 4.8 Gbit/s.
fn load(from_us: u64, to_us: u64) -> Vec<Flow> {
    let one = |index: u64| Flow {
        start: Time::ZERO + Span::from_us(from_us + index * 100),
        ..flow(0, (index % 32) as u16, 32 + (index * 5 % 32) as u16, 60_000)
    };
    (0..(to_us - from_us) / 100).map(one).collect()
}

/// Bytes that left leaf 0 towards each spine.
fn uplink_bytes(fabric: &Fabric, results: &Results) -> [f64; 2] {
    ["leaf0>spine0", "leaf0>spine1"].map(|name| results.links[link_named(fabric, name)].bytes as f64)
}

#[test]
fn a_path_that_is_slow_at_its_far_end_gets_little() {
    let fabric = fabric(&format!("{TWO_SPINES}[[fault]]\nlink = 'spine1>leaf1'\nrate = '1Gbps'"));
    let share = |scheme| {
        let [whole, slow] = uplink_bytes(&fabric, &Run::new(&fabric, DCTCP, scheme).flows(&load(0, 40_000)));
        slow / (whole + slow)
    };
    let (ecmp, hula) = (share(r#"name = "ecmp""#), share(HULA));
    assert!(ecmp > 0.4, "ECMP: {ecmp:.3}");
    assert!(hula < 0.25, "HULA: {hula:.3}");
}

/// The last probe over the dead link was at most an interval old; after `t_fail` it is no reason
/// any more, and the next probe over the other spine is taken: 800 us at most. Flows that begin
/// later all lose nothing.
#[test]
fn new_flows_avoid_a_failed_far_link_within_t_fail_and_an_interval() {
    let fault = "[[fault]]\nlink = 'spine1-leaf1'\nat = '10ms'\ndown = true";
    let failing = fabric(&format!("{TWO_SPINES}{fault}"));
    let (mut flows, late) = (load(0, 10_000), load(10_800, 30_000));
    let first_late = flows.len();
    flows.extend(late);
    let timeouts = |scheme| {
        let results = Run::new(&failing, DCTCP, scheme).flows(&flows);
        let late = &results.flows[first_late..];
        (late.iter().filter(|flow| flow.sender.timeouts > 0).count(), results)
    };
    let (hula, results) = timeouts(HULA);
    assert_eq!(hula, 0, "no late flow waits");
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    // Up to the failure both spines were in use.
    assert!(uplink_bytes(&failing, &results).iter().all(|&bytes| bytes > 500_000.0));
}

#[test]
fn on_a_fat_tree_every_flow_completes_and_probes_are_counted() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4");
    let flows: Vec<Flow> = (0..400)
        .map(|index| flow(index * 20, (index % 16) as u16, ((index * 7 + 5) % 16) as u16, 30_000))
        .collect();
    let flows: Vec<Flow> = flows.into_iter().filter(|flow| flow.src != flow.dst).collect();
    let results = Run::new(&fabric, DCTCP, HULA).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    assert_eq!(results.packets.control_bytes, counter(&results, "probes") * 64);
    // Every edge switch's probes reach the other seven: at least eight sources times (2 up + 7
    // down) an interval.
    let intervals = (results.end.as_us() / 200.0) as u64;
    let probes = counter(&results, "probes");
    assert!(probes >= (intervals - 2) * 8 * 9, "{probes} probes in {intervals} intervals");
    // At most: each edge switch to 2, each of these to 1 beside it and 2 above, each of 4 cores to
    // 3 pods, each of 12 arrivals there to 2 edge switches: 2 + 6 + 12 + 24.
    assert!(probes <= (intervals + 2) * 8 * 44, "{probes} probes in {intervals} intervals");
    let (all, hashed) = (counter(&results, "flowlets"), counter(&results, "flowlets_by_hash"));
    assert!(hashed * 4 < all, "{hashed} of {all} flowlets by hash: probes were late");
}

/// Parallel links and one path: nothing loops, nothing is chosen that is not there.
#[test]
fn probes_end_on_fabrics_with_parallel_links_and_with_one_path() {
    for (text, most_an_interval) in [
        // Each leaf sends 4, each is passed on by 2 ports at most.
        ("kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nlinks_per_pair = 2", 2 * 12),
        ("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4", 2 * 2),
    ] {
        let fabric = fabric(text);
        let flows: Vec<Flow> =
            (0..100).map(|index| flow(index * 50, (index % 4) as u16, 4, 10_000)).collect();
        let flows: Vec<Flow> = flows.into_iter().filter(|flow| flow.src.0 < 4).collect();
        let results = Run::new(&fabric, DCTCP, HULA).flows(&flows);
        assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
        let intervals = (results.end.as_us() / 200.0) as u64;
        let probes = counter(&results, "probes");
        assert!(
            probes > 0 && probes <= (intervals + 2) * most_an_interval,
            "{probes} in {intervals}: {text}"
        );
    }
}
