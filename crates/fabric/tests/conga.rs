//! CONGA on small fabrics: congestion that only the far end of a path sees.

mod common;

use common::{Run, fabric, fct, flow, link_named};
use weft_fabric::{Fabric, Results};
use weft_traffic::Flow;
use weft_units::Span;

const DCTCP: &str = r#"name = "dctcp""#;
const ECMP: &str = r#"name = "ecmp""#;
const CONGA: &str = r#"name = "conga""#;

const TWO_SPINES: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 32\nhost_rate = '1Gbps'\nreroute_after = '1ms'\n";

/// Flows of 60 KB (0.5 ms at a host's rate) from rack 0 to rack 1 for so long, one each `every_ns`.
fn load(duration_us: u64, every_ns: u64) -> Vec<Flow> {
    let count = duration_us * 1_000 / every_ns;
    let one = |index: u64| Flow {
        start: weft_units::Time::ZERO + Span::from_ns(index * every_ns),
        ..flow(0, (index % 32) as u16, 32 + (index * 5 % 32) as u16, 60_000)
    };
    (0..count).map(one).collect()
}

/// Bytes that left leaf 0 towards each spine.
fn uplink_bytes(fabric: &Fabric, results: &Results) -> [f64; 2] {
    ["leaf0>spine0", "leaf0>spine1"].map(|name| results.links[link_named(fabric, name)].bytes as f64)
}

fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

fn mean_fct_us(results: &Results, flows: &[Flow]) -> f64 {
    (0..flows.len()).map(|index| fct(results, flows, index).as_us()).sum::<f64>() / flows.len() as f64
}

/// Over spine 1 half the capacity is left, behind the spine: both uplinks look alike from leaf 0. Flows offer
/// 9.6 Gbit/s. Equal use of both paths would be two to one; with eight levels, equals at random, it comes out nearer to
/// five to three.
#[test]
fn the_half_path_gets_clearly_less_load_though_only_its_far_end_is_slow() {
    let fabric = fabric(&format!("{TWO_SPINES}[[fault]]\nlink = 'spine1>leaf1'\nrate = '5Gbps'"));
    let flows = load(40_000, 50_000);
    let ratio = |balancer| {
        let results = Run::new(&fabric, DCTCP, balancer).flows(&flows);
        let [whole, half] = uplink_bytes(&fabric, &results);
        (whole / half, mean_fct_us(&results, &flows))
    };
    let ((ecmp, ecmp_fct), (conga, conga_fct)) = (ratio(ECMP), ratio(CONGA));
    assert!((0.85..1.18).contains(&ecmp), "ECMP: {ecmp:.2} to 1");
    assert!((1.5..2.2).contains(&conga), "CONGA: {conga:.2} to 1");
    assert!(conga_fct < 0.9 * ecmp_fct, "mean FCT {conga_fct:.0} us, with ECMP {ecmp_fct:.0} us");
}

/// Two milliseconds after the far link fell to a tenth, little takes it. (Feedback needs a round trip and tau, well
/// below that.)
#[test]
fn flowlets_leave_a_path_whose_far_link_becomes_slow() {
    let fault = "[[fault]]\nlink = 'spine1>leaf1'\nat = '10ms'\nrate = '1Gbps'";
    let slowing = fabric(&format!("{TWO_SPINES}{fault}"));
    let bytes_by = |duration_us| {
        let results = Run::new(&slowing, DCTCP, CONGA).flows(&load(duration_us, 80_000));
        uplink_bytes(&slowing, &results)
    };
    let (before, after) = (bytes_by(12_000), bytes_by(40_000));
    let [whole, slow] = [after[0] - before[0], after[1] - before[1]];
    let share = slow / (whole + slow);
    assert!(share < 0.2, "{share:.3} over the slow path");
}

/// What fails beyond the next switch is for routing to find out: until then (1 ms) packets are lost, and from then on no
/// flow is given to it.
#[test]
fn a_far_link_that_fails_is_left_when_routing_knows() {
    let fault = "[[fault]]\nlink = 'spine1-leaf1'\nat = '10ms'\ndown = true";
    let failing = fabric(&format!("{TWO_SPINES}{fault}"));
    let flows = load(30_000, 80_000);
    let results = Run::new(&failing, DCTCP, CONGA).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    let [_, dead] = uplink_bytes(&failing, &results);
    // 11 ms of half of 6 Gbit/s and headers are 4.3 MB.
    assert!(dead < 5_000_000.0, "{dead} bytes towards the dead link");
}

#[test]
fn on_a_symmetric_fabric_it_is_no_worse_than_ecmp_and_splits_evenly() {
    let fabric = fabric(TWO_SPINES);
    let flows = load(40_000, 50_000);
    let [ecmp, conga] = [ECMP, CONGA].map(|balancer| Run::new(&fabric, DCTCP, balancer).flows(&flows));
    let [first, second] = uplink_bytes(&fabric, &conga);
    assert!((first / second - 1.0).abs() < 0.1, "{first} and {second} bytes");
    let [ecmp_fct, conga_fct] = [&ecmp, &conga].map(|results| mean_fct_us(results, &flows));
    assert!(conga_fct < 1.02 * ecmp_fct, "mean FCT {conga_fct:.0} us, with ECMP {ecmp_fct:.0} us");
    assert!(counter(&conga, "reports") > 0);
}

#[test]
fn conga_flow_moves_no_flow_that_keeps_sending() {
    let fabric = fabric(TWO_SPINES);
    let flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 32 + host, 2_000_000)).collect();
    let results = Run::new(&fabric, DCTCP, "name = 'conga'\ngap = '13ms'").flows(&flows);
    assert_eq!(results.flows.iter().map(|flow| flow.path_changes).sum::<u32>(), 0);
    let [first, second] = uplink_bytes(&fabric, &results);
    assert!(first > 0.0 && second > 0.0);
}

/// On three tiers edge switches choose by what comes back, aggregation switches hash.
#[test]
fn on_a_fat_tree_every_flow_completes_and_leaves_report() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4");
    let flows: Vec<Flow> = (0..200)
        .map(|index| flow(index * 10, (index % 16) as u16, ((index + 5) % 16) as u16, 30_000))
        .collect();
    let results = Run::new(&fabric, DCTCP, CONGA).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    assert!(counter(&results, "reports") > 1_000);
}

/// One path leaves nothing to choose.
#[test]
fn with_one_spine_it_is_ecmp() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 32");
    let flows = load(2_000, 80_000);
    let [ecmp, conga] = [ECMP, CONGA].map(|balancer| Run::new(&fabric, DCTCP, balancer).flows(&flows));
    assert_eq!(ecmp.flows, conga.flows);
    assert_eq!(ecmp.links, conga.links);
}
