//! Effects of each scheme on real traffic on small fabrics.

use crate::common::{Run, fabric, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::Span;

const DCTCP: &str = r#"name = "dctcp""#;

/// Two leaves, two spines; the way over spine1 takes 70 us longer, more than a flowcell of 64 KB at
/// 10 Gbit/s (52 us).
fn unequal_delays() -> Fabric {
    fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
         [[fault]]\nlink = 'leaf0-spine1'\ndelay = '70us'",
    )
}

/// Flows from rack 0 to rack 1, each pair of hosts in turn, 20 us apart.
fn flows_between_racks(count: u64, size_bytes: u64) -> Vec<Flow> {
    (0..count).map(|index| flow(index * 20, (index % 4) as u16, 4 + (index % 4) as u16, size_bytes)).collect()
}

fn sum(results: &Results, of: impl Fn(&weft_fabric::FlowRecord) -> u64) -> u64 {
    results.flows.iter().map(of).sum()
}

/// Bytes that left leaf 0 towards each spine.
fn uplink_bytes(fabric: &Fabric, results: &Results) -> [u64; 2] {
    ["leaf0>spine0", "leaf0>spine1"].map(|name| results.links[link_named(fabric, name)].bytes)
}

#[test]
fn rps_over_unequal_delays_retransmits_for_nothing_and_ecmp_does_not() {
    let fabric = unequal_delays();
    let flows = flows_between_racks(4, 500_000);
    let rps = Run::new(&fabric, DCTCP, r#"name = "rps""#).flows(&flows);
    assert_eq!(rps.packets.dropped, 0);
    // Segments are 1.2 us apart, and the slow path is 70 us behind: the first one on the fast path
    // after one on the slow path overtakes it. Among ten segments at random (the first window)
    // there is none in 11 of 1,024 cases, so every flow of hundreds sees it.
    assert!(rps.flows.iter().all(|flow| flow.receiver.out_of_order > 0));
    let again = sum(&rps, |flow| flow.sender.retransmissions.into());
    assert!(again > 0);
    assert_eq!(sum(&rps, |flow| flow.receiver.duplicates.into()), again, "what was sent again had arrived");
    let ecmp = Run::new(&fabric, DCTCP, r#"name = "ecmp""#).flows(&flows);
    assert_eq!(sum(&ecmp, |flow| flow.receiver.out_of_order.into()), 0);
    assert_eq!(sum(&ecmp, |flow| flow.sender.retransmissions.into()), 0);
    assert_eq!(sum(&ecmp, |flow| flow.path_changes.into()), 0);
}

/// A path of a tenth of the rate: ECMP keeps sending half of the flows there, LetFlow's flowlets
/// drift away, since a flow on the slow path pauses more often than one on the fast path (LetFlow
/// §2).
#[test]
fn letflow_shifts_load_to_the_faster_path() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
         [[fault]]\nlink = 'leaf0-spine1'\nrate = '1Gbps'",
    );
    let flows: Vec<Flow> =
        (0..400).map(|index| flow(index * 40, (index % 8) as u16, 8 + (index % 8) as u16, 60_000)).collect();
    let share = |scheme| {
        let [fast, slow] = uplink_bytes(&fabric, &Run::new(&fabric, DCTCP, scheme).flows(&flows));
        slow as f64 / (fast + slow) as f64
    };
    let ecmp = share(r#"name = "ecmp""#);
    let letflow = share("name = 'letflow'\ngap = '50us'");
    // A hash gives each path half of 400 flows, to four standard deviations of 2.5 %. What is below
    // no hash explains.
    assert!((0.4..0.6).contains(&ecmp), "share of the slow path: ECMP {ecmp:.3}");
    assert!(letflow < 0.4, "share of the slow path: LetFlow {letflow:.3}");
}

#[test]
fn drb_splits_packets_evenly_and_drill_evens_queues() {
    let fabric = fabric(crate::common::SMALL);
    let flows = [flow(0, 0, 2, 3_000_000), flow(0, 1, 3, 3_000_000)];
    let bytes = |scheme| {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&flows);
        assert_eq!(sum(&results, |flow| flow.sender.retransmissions.into()), 0);
        uplink_bytes(&fabric, &results)
    };
    // Each of the two hosts takes both ways in turn, with 2,055 full packets and a shorter last
    // one: one more on one way each, at most.
    let [first, second] = bytes(r#"name = "drb""#);
    assert!(first.abs_diff(second) <= 2 * 1_500, "DRB: {first} and {second} bytes");
    // If queues are equal, DRILL draws: 4,110 draws of one in two have a standard deviation of 32.
    // Longer queues only make it more even. Four of them, to either side:
    let [first, second] = bytes(r#"name = "drill""#);
    assert!(first.abs_diff(second) <= 2 * 4 * 32 * 1_500, "DRILL: {first} and {second} bytes");
}

#[test]
fn presto_changes_paths_once_a_flowcell() {
    let fabric = fabric(crate::common::SMALL);
    let flows = [flow(0, 0, 2, 44 * 1_460 * 10)];
    let results = Run::new(&fabric, DCTCP, r#"name = "presto""#).flows(&flows);
    assert_eq!(results.flows[0].path_changes, 9, "ten cells of 44 segments, on two paths in turn");
}

#[test]
fn presto_with_its_reordering_edge_hides_what_the_paths_reorder() {
    let fabric = unequal_delays();
    let flows = flows_between_racks(1, 5_000_000);
    let duplicates = |scheme| {
        sum(&Run::new(&fabric, DCTCP, scheme).flows(&flows), |flow| flow.sender.duplicate_acks.into())
    };
    let plain = duplicates("name = 'presto'\nreorder = false");
    let reordering = duplicates(r#"name = "presto""#);
    // 5 MB are 78 cells. A cell on the fast path that follows one on the slow path at the rate of
    // the host arrives before the other's last segment: every one of its 44 segments is a duplicate
    // acknowledgement. Two such pairs at least.
    assert!(plain >= 2 * 44, "{plain} duplicate acknowledgements without the buffer");
    assert!(reordering < plain, "{reordering} with the buffer, {plain} without");
}

#[test]
fn wcmp_sends_a_flow_share_in_proportion_to_capacity() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
         [[fault]]\nlink = 'leaf0-spine1'\nrate = '2500Mbps'",
    );
    let flows: Vec<Flow> =
        (0..2_000).map(|index| flow(index * 5, (index % 8) as u16, 8 + (index % 8) as u16, 1_000)).collect();
    let [fast, slow] = uplink_bytes(&fabric, &Run::new(&fabric, DCTCP, r#"name = "wcmp""#).flows(&flows));
    let share = slow as f64 / (fast + slow) as f64;
    // A fifth of the flows; 2,000 draws have a standard deviation of 0.9 %.
    assert!((share - 0.2).abs() < 0.03, "{share:.3} on the path with a fifth of the capacity");
}

/// With one hash seed a tier, both directions of a flow cross the same switches.
#[test]
fn shared_ecmp_hashes_take_acknowledgements_back_over_the_same_links() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4");
    let flows = [flow(0, 0, 15, 3_000)];
    for seed in 1..=20 {
        let run = Run { seed, ..Run::new(&fabric, DCTCP, "name = 'ecmp'\nhash = 'shared'") };
        let results = run.flows(&flows);
        for (link, totals) in results.links.iter().enumerate() {
            let back = results.links[fabric.topology.reverse[link] as usize];
            assert_eq!(totals.packets, back.packets, "{}", fabric.topology.link_name(link as u32));
        }
    }
}

/// A long flow's path is its hash's for as long as it lives, and the time limit ends the run.
#[test]
fn a_run_with_only_endless_flows_ends_at_its_time_limit() {
    let fabric = fabric(crate::common::SMALL);
    let flows = [Flow { background: true, ..flow(0, 0, 2, 1) }];
    let run = Run { time_limit: Span::from_ms(5), ..Run::new(&fabric, DCTCP, r#"name = "ecmp""#) };
    let (results, ending) = run.ending(&flows);
    assert_eq!(ending, weft_fabric::Ending::TimeLimit);
    assert_eq!(results.end.as_ps(), Span::from_ms(5).as_ps());
    // 10 Gbit/s for 5 ms are 4,166 segments. The first window of ten is acknowledged after 13 us
    // and what it takes to send one, and each acknowledgement lets two more go, so that the host's
    // cable is never idle after two such rounds.
    let received = results.flows[0].receiver.segments_received;
    assert!((4_166 - 2 * 13..=4_166).contains(&received), "{received} segments");
}
