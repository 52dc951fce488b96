//! Effects of LBT on real traffic: who stays, who moves, and who yields.

use crate::common::{Run, fabric, fct, flow, link_named};
use weft_fabric::Results;
use weft_packet::Class;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::Span;

const DCTCP: &str = r#"name = "dctcp""#;

/// Two racks of eight hosts, four ways between them, two hosts for each way.
const FOUR_WAYS: &str = r#"
    kind = "leaf-spine"
    leaves = 2
    spines = 4
    hosts_per_leaf = 8
"#;

fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

/// Flows from rack 0 to rack 1, each pair of hosts in turn.
fn flows_between_racks(count: u64, apart_us: u64, size_bytes: u64) -> Vec<Flow> {
    let pair = |index| (index % 8) as u16;
    (0..count).map(|index| flow(index * apart_us, pair(index), 8 + pair(index), size_bytes)).collect()
}

fn uplink_bytes(fabric: &Fabric, results: &Results) -> [u64; 4] {
    [0, 1, 2, 3].map(|spine| results.links[link_named(fabric, &format!("leaf0>spine{spine}"))].bytes)
}

#[test]
fn short_flows_keep_their_path_among_long_ones_that_do_not() {
    let fabric = fabric(FOUR_WAYS);
    let mut flows = flows_between_racks(8, 0, 4_000_000);
    flows.extend(
        (0..100).map(|index| flow(500 + index * 20, (index % 8) as u16, 8 + (index * 3 % 8) as u16, 60_000)),
    );
    let results = Run::new(&fabric, DCTCP, r#"name = "lbt""#).flows(&flows);
    for (record, flow) in results.flows.iter().zip(&flows) {
        if flow.size_bytes == 60_000 {
            assert_eq!((record.path_changes, record.receiver.out_of_order), (0, 0), "a short flow moved");
        }
    }
    // Eight hosts send twice what four ways carry, so queues are above thresholds, and who is not
    // in the longest one leaves.
    let moved = results.flows[..8].iter().filter(|record| record.path_changes > 0).count();
    assert!(moved > 0 && counter(&results, "long_moves") > 0, "{moved} of 8 long flows moved");
}

#[test]
fn a_long_flow_below_its_threshold_stays() {
    let fabric = fabric(FOUR_WAYS);
    // One flow at a time, at the rate of its uplink: no queue reaches three packets.
    let results = Run::new(&fabric, DCTCP, r#"name = "lbt""#).flows(&flows_between_racks(1, 0, 4_000_000));
    assert_eq!((results.flows[0].path_changes, counter(&results, "long_moves")), (0, 0));
    // 4 MB and headers take 3,288 us at 10 Gbit/s: six whole periods of 500 us, at one of the
    // switches at least.
    assert!(counter(&results, "refreshes") >= 6);
}

#[test]
fn long_flows_use_every_path_when_thresholds_are_low_and_gather_when_they_are_high() {
    let fabric = fabric(FOUR_WAYS);
    // A third of what the four ways carry: three flows, none of which needs more than a path.
    let flows: Vec<Flow> = flows_between_racks(3, 0, 4_000_000);
    let largest_share = |scheme| {
        let bytes = uplink_bytes(&fabric, &Run::new(&fabric, DCTCP, scheme).flows(&flows));
        *bytes.iter().max().unwrap() as f64 / bytes.iter().sum::<u64>() as f64
    };
    let low = largest_share(r#"name = "lbt""#);
    let high = largest_share("name = 'lbt'\nleast = '384KB'\nlong_after = '0B'");
    // A third of the bytes is a path for each flow, two thirds are a path for two of them: half
    // lies between.
    assert!(
        low < 0.5 && high > 0.5,
        "largest share of a path: {low:.2} with low thresholds, {high:.2} with high"
    );
}

/// The mix that LBT §1 describes: many short flows, and most bytes in few long ones.
fn mix(short_apart_us: u64, long_apart_us: u64) -> Vec<Flow> {
    let mut flows = flows_between_racks(20_000 / short_apart_us, short_apart_us, 20_000);
    flows.extend(flows_between_racks(20_000 / long_apart_us, long_apart_us, 2_000_000));
    flows.sort_by_key(|flow| flow.start);
    flows
}

#[test]
fn thresholds_rise_more_often_the_higher_the_load() {
    let fabric = fabric(FOUR_WAYS);
    let raised = |flows: &[Flow]| {
        let results = Run::new(&fabric, DCTCP, r#"name = "lbt""#).flows(flows);
        counter(&results, "refreshes_raised") as f64 / counter(&results, "refreshes") as f64
    };
    // The same mix at the lowest, the middle and the highest load of LBT §6: 0.1, 0.4 and 0.7 of
    // what the four ways carry. 20 KB and a tenth of 2 MB in 44 us are 40 Gbit/s.
    let [light, middle, heavy] = [mix(440, 4_400), mix(110, 1_100), mix(63, 630)].map(|flows| raised(&flows));
    assert!(light < middle && middle < heavy, "{light:.3}, {middle:.3}, {heavy:.3}");
}

/// Mean completion time (us) of three long flows beside three that are endless, of this class.
fn beside(fabric: &Fabric, scheme: &str, class: Class) -> f64 {
    let endless = |index| Flow { background: true, class, ..flow(0, index, 8 + index, 1) };
    let mut flows: Vec<Flow> = flows_between_racks(3, 0, 8_000_000);
    flows.extend((3..6).map(endless));
    let time_limit = Span::from_ms(60);
    let took = |seed| {
        let results = Run { seed, time_limit, ..Run::new(fabric, DCTCP, scheme) }.flows(&flows);
        (0..3).map(|index| fct(&results, &flows, index).as_us()).sum::<f64>() / 3.0
    };
    (1..=4).map(took).sum::<f64>() / 4.0
}

#[test]
fn best_effort_flows_yield_to_long_ones_if_their_threshold_is_above_the_marking_point() {
    let fabric = fabric(FOUR_WAYS);
    // DCTCP lets a queue of N flows grow to K and N packets (Alizadeh et al., SIGCOMM 2010, §3.3):
    // 97.5 KB and six times 1.5 KB. 24 is the least ratio that puts Q2 above that, as Q1 is at
    // least 4.5 KB.
    let high = "name = 'lbt'\nratio = 24";
    let equal = beside(&fabric, high, Class::Unknown);
    let yielding = beside(&fabric, high, Class::BestEffort);
    // At the rate of a host, 8 MB take 6,575 us with headers; if six flows share four ways evenly,
    // half as long again. Who is yielded to is nearer to the first.
    let (alone, shared) = (6_575.0, 1.5 * 6_575.0);
    assert!(
        yielding < equal && yielding < f64::midpoint(alone, shared),
        "{yielding:.0} us, {equal:.0} us beside long flows"
    );
}

/// The finding of docs/schemes/lbt.md: who has the higher threshold stays, and who has the lower
/// one is pushed away.
#[test]
fn a_best_effort_threshold_below_the_marking_point_makes_long_flows_yield() {
    let fabric = fabric(FOUR_WAYS);
    let low = r#"name = "lbt""#;
    let equal = beside(&fabric, low, Class::Unknown);
    let pushed = beside(&fabric, low, Class::BestEffort);
    assert!(pushed > equal, "{pushed:.0} us, {equal:.0} us beside long flows");
}
