//! Proven properties of the oracle, on fabrics for which they are proven; and that its sight is
//! exact there.

use proptest::prelude::*;
use weft_balance::schemes;
use weft_fabric::{Results, SimulationInput, SinglePartition};
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::Span;

use crate::common::{Run, done_as, fabric, fct, flow, link_named, scheme_spec, transports};

const DCTCP: &str = "name = 'dctcp'";
const ORACLE: &str = "name = 'oracle'";

/// The sum of completion times, in ps.
fn total(results: &Results, flows: &[Flow]) -> u64 {
    (0..flows.len()).map(|index| fct(results, flows, index).as_ps()).sum()
}

fn run(fabric: &Fabric, scheme: &str, flows: &[Flow]) -> Results {
    Run::new(fabric, DCTCP, scheme).flows(flows)
}

/// Flows of one packet of one size, from the hosts of one rack to a host each of other racks:
/// nothing that a scheme does comes back to the senders, and packets meet at the uplinks of that
/// rack alone.
fn single_packets() -> impl Strategy<Value = Vec<Flow>> {
    let starts = proptest::collection::vec((0u64..12, 0u16..8), 4..24);
    starts.prop_map(|starts| {
        let flows = starts.into_iter().zip(8u16..);
        let mut flows: Vec<Flow> = flows.map(|((at, src), dst)| flow(at, src, dst, 1_400)).collect();
        flows.sort_by_key(|flow| flow.start);
        flows
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// docs/schemes/oracle.md, "Proven": with packets of one size at uplinks of one rate, the k-th
    /// packet to leave leaves no later than under any scheme; and one pipe with their rates
    /// together is no later than that.
    #[test]
    fn without_feedback_no_scheme_is_ahead_of_the_oracle_nor_the_oracle_of_one_queue(
        flows in single_packets(),
        spines in 2u32..6,
    ) {
        let fabric = fabric(&format!(
            "kind = 'leaf-spine'\nleaves = 4\nspines = {spines}\nhosts_per_leaf = 8\nfabric_rate = '2Gbps'"
        ));
        let oracle = total(&run(&fabric, ORACLE, &flows), &flows);
        let pooled = fabric.pooled().unwrap();
        let one_queue = total(&run(&pooled, "name = 'oracle'\nkind = 'pooled'", &flows), &flows);
        prop_assert!(one_queue <= oracle, "one queue {one_queue}, oracle {oracle}");
        for scheme in schemes().iter().filter(|info| info.place != "reference") {
            let other = total(&run(&fabric, &format!("name = '{}'", scheme.name), &flows), &flows);
            prop_assert!(oracle <= other, "{}: {other}, oracle {oracle}", scheme.name);
        }
    }

    /// Whatever the transport makes of it: no flow is faster than alone in an empty fabric.
    #[test]
    fn no_flow_is_faster_than_ideal(
        sizes in proptest::collection::vec((0u64..60, 0u16..4, 4u16..12, 1u64..200_000), 1..20),
        buffer in prop_oneof![Just("20KB"), Just("300KB")],
    ) {
        let fabric = fabric(&format!(
            "kind = 'leaf-spine'\nleaves = 3\nspines = 3\nhosts_per_leaf = 4\nfabric_rate = '5Gbps'\n\
             [switch_queue]\nbuffer = '{buffer}'\nmark = '15KB'"
        ));
        let mut flows: Vec<Flow> = sizes.into_iter().map(|(at, src, dst, size)| flow(at, src, dst, size)).collect();
        flows.sort_by_key(|flow| flow.start);
        let results = run(&fabric, ORACLE, &flows);
        for (index, record) in results.flows.iter().enumerate() {
            prop_assert!(fct(&results, &flows, index) >= record.ideal, "flow {index}");
        }
    }
}

/// One cable from the second spine to the receivers' rack is a tenth as fast: only there would a
/// packet wait, where its own switch does not see it. Each path gets what it carries.
#[test]
fn it_sees_a_queue_that_no_switch_on_this_side_sees() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
         [[fault]]\nlink = 'spine1>leaf1'\nrate = '1Gbps'",
    );
    let flows: Vec<Flow> = (0..4).map(|host| flow(0, host, 4 + host, 2_000_000)).collect();
    let slow = |scheme| {
        let results = run(&fabric, scheme, &flows);
        let [fast, slow] =
            ["spine0>leaf1", "spine1>leaf1"].map(|name| results.links[link_named(&fabric, name)].bytes);
        slow as f64 / (fast + slow) as f64
    };
    let oracle = slow(ORACLE);
    // Less than its share of the rate while the other queue is empty, and never more.
    assert!(
        (0.06..1.0 / 11.0 + 0.005).contains(&oracle),
        "{oracle} of the bytes over a path of a tenth of the rate"
    );
    assert!(slow("name = 'drill'") > 0.2, "DRILL sees its own queues alone");
}

/// Predictions come true between two tiers, so that a packet never overtakes one of full size that
/// was sent before it; and those that the last, shorter one overtakes, the edge holds.
#[test]
fn the_transport_sees_segments_in_order() {
    let fabric =
        fabric("kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 8\nfabric_rate = '10Gbps'");
    let flows: Vec<Flow> =
        (0..16).map(|host| flow(u64::from(host) * 3, host, (host + 8) % 24, 300_001)).collect();
    let results = run(&fabric, ORACLE, &flows);
    assert_eq!(results.packets.dropped, 0);
    let counters: Vec<_> = results.scheme.iter().map(|counter| (&counter.name, counter.value)).collect();
    let late: Vec<_> = results.flows.iter().map(|flow| flow.receiver.out_of_order).collect();
    assert_eq!(late.iter().sum::<u32>(), 0, "{late:?} {counters:?}");
    assert_eq!(results.flows.iter().map(|flow| flow.sender.retransmissions).sum::<u32>(), 0);
    assert!(results.flows.iter().any(|flow| flow.path_changes > 50), "it does not stay on a path");
}

#[test]
fn it_leaves_what_is_down_alone_at_once() {
    let fabric = fabric(
        "kind = 'fat-tree'\nk = 4\nreroute_after = '10ms'\n[[fault]]\nlink = 'agg0-core0'\nat = '50us'\ndown = true",
    );
    let flows: Vec<Flow> = (0..4).map(|host| flow(0, host, 12 + host, 1_000_000)).collect();
    let results = run(&fabric, ORACLE, &flows);
    let lost: u64 = ["agg0>core0", "core0>agg0"]
        .map(|name| results.links[link_named(&fabric, name)].dropped)
        .iter()
        .sum();
    let elsewhere = results.packets.dropped - lost;
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    // What was on the cable when it went down, or on its way to a core that had no other cable.
    let elsewhere = elsewhere - results.packets.unroutable;
    assert!(lost < 100 && elsewhere == 0, "{lost} lost, {elsewhere} elsewhere");
}

#[test]
fn it_works_on_the_whole_fabric_and_says_so() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 2");
    let flows: Vec<Flow> = (0..8).map(|host| flow(u64::from(host), host, (host + 2) % 8, 50_000)).collect();
    let (transport, oracle, ecmp) = (transports(DCTCP), scheme_spec(ORACLE), scheme_spec("name = 'ecmp'"));
    let alone = Run::new(&fabric, DCTCP, ORACLE);
    let input = SimulationInput { partitions: 4, ..alone.input(&flows, &transport, &oracle) };
    assert_eq!(input.finest_partitioning().err(), Some(SinglePartition::Oracle));
    assert!(SimulationInput { scheme: &ecmp, ..input }.finest_partitioning().is_ok());
    let whole = alone.flows(&flows);
    let asked = Run { partitions: 4, threads: 2, ..Run::new(&fabric, DCTCP, ORACLE) }.flows(&flows);
    assert!(done_as(asked, &whole) == whole, "asking for partitions moves nothing");
}

#[test]
fn classes_and_credits_are_ports_like_others_to_it() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 3\nhosts_per_leaf = 4\n[switch_queue]\nbuffer = '60KB'\nmark = '15KB'",
    );
    let flows: Vec<Flow> = (0..4).map(|host| flow(0, host, 4 + host, 400_000)).collect();
    for transport in ["name = 'expresspass'", "name = 'maxpass'", "name = 'mptcp'\nsubflows = 3"] {
        let run = Run { time_limit: Span::from_s(1), ..Run::new(&fabric, transport, ORACLE) };
        let results = run.flows(&flows);
        assert!(results.flows.iter().all(|flow| flow.delivered.is_some()), "{transport}");
    }
}
