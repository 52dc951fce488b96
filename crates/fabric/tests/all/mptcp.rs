//! MPTCP in a fabric: it fills disjoint paths, survives the loss of one, and its subflows are
//! five-tuples of their own.
use crate::common::{Run, fabric, fct, flow, link_named};
use weft_units::Span;

/// Two spines at half the rate of a host: one path is half of what a flow can take.
const HALVES: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nhost_rate = \"10Gbps\"\n\
                      fabric_rate = \"5Gbps\"\n";
const MPTCP: &str = "name = \"mptcp\"\necn = \"dctcp\"\nsack = true";

#[test]
fn a_flow_fills_both_of_two_disjoint_paths() {
    let fabric = fabric(HALVES);
    let flows = [flow(0, 0, 1, 20_000_000)];
    // At seed 1 as at 127 of 128, eight subflows are not all on one path.
    let results = Run::new(&fabric, MPTCP, "name = \"ecmp\"").flows(&flows);
    let took = fct(&results, &flows, 0).as_s();
    for spine in ["leaf0>spine0", "leaf0>spine1"] {
        let sent = results.links[link_named(&fabric, spine)].bytes as f64 * 8.0;
        let load = sent / (5e9 * took);
        assert!(load > 0.85 && load <= 1.0, "{spine}: {load}");
    }
    // One TCP has one path: half of it.
    let alone = Run::new(&fabric, "name = \"dctcp\"", "name = \"ecmp\"").flows(&flows);
    assert!(fct(&alone, &flows, 0).as_s() > 1.6 * took);
}

#[test]
fn a_path_that_dies_without_a_word_loses_no_data() {
    for spine in [0, 1] {
        let fault = format!("[[fault]]\nlink = \"leaf0-spine{spine}\"\nat = \"5ms\"\nblackhole = 1.0\n");
        let fabric = fabric(&format!("{HALVES}{fault}"));
        let flows = [flow(0, 0, 1, 20_000_000)];
        let run = Run { time_limit: Span::from_s(5), ..Run::new(&fabric, MPTCP, "name = \"ecmp\"") };
        let results = run.flows(&flows);
        let record = &results.flows[0];
        assert_eq!(record.delivered_bytes, 20_000_000);
        assert!(record.delivered.is_some() && record.sender.timeouts > 0);
        // What was under way is sent again after the least timeout, and the rest takes one path: 5
        // ms, 5 ms, and 27 ms.
        assert!(fct(&results, &flows, 0) < Span::from_ms(60));
    }
}

#[test]
fn a_path_that_is_dead_from_the_start_does_not_hold_up_a_flow_that_begins_on_it() {
    for spine in [0, 1] {
        let fault = format!("[[fault]]\nlink = \"leaf0-spine{spine}\"\nat = \"0s\"\nblackhole = 1.0\n");
        let fabric = fabric(&format!("{HALVES}{fault}"));
        // Flows of less than the first window, which no second subflow has a part in unless the
        // first is dead. That all 16 begin on one spine happens once in 32,768 times.
        let flows: Vec<_> = (0..16).map(|_| flow(0, 0, 1, 10_000)).collect();
        let run = Run { time_limit: Span::from_s(5), ..Run::new(&fabric, MPTCP, "name = \"ecmp\"") };
        let results = run.flows(&flows);
        assert!(results.flows.iter().all(|record| record.delivered_bytes == 10_000));
        let held_up = results.flows.iter().filter(|record| record.sender.timeouts > 0).count();
        assert!(held_up > 0 && held_up < 16, "{held_up} began on it");
        // TCP does not get by.
        let alone = Run { transport: "name = \"dctcp\"", ..run }.flows(&flows);
        assert!(alone.flows.iter().any(|record| record.delivered.is_none()));
    }
}

#[test]
fn a_flow_of_one_subflow_arrives_whole() {
    let fabric = fabric(HALVES);
    let flows: Vec<_> = (0..4).map(|index| flow(index * 10, 0, 1, 300_000)).collect();
    let results = Run::new(&fabric, "name = \"mptcp\"\nsubflows = 1", "name = \"ecmp\"").flows(&flows);
    for record in &results.flows {
        assert!(record.delivered.is_some() && record.delivered_bytes == 300_000);
    }
}

#[test]
fn a_reordering_buffer_hides_no_bytes_of_a_finished_flow() {
    // One path loses a packet in fifty: what subflows time out on is sent on others, too, while
    // what came behind it waits.
    let fault = "[[fault]]\nlink = \"leaf0-spine1\"\nat = \"0s\"\nloss = 0.02\n";
    let fabric = fabric(&format!("{HALVES}{fault}"));
    for hold in ["20us", "2ms", "20ms"] {
        let transport = format!("{MPTCP}\nreorder_hold = \"{hold}\"");
        let flows: Vec<_> = (0..20).map(|index| flow(index * 500, 0, 1, 300_000)).collect();
        let results = Run::new(&fabric, &transport, "name = \"ecmp\"").flows(&flows);
        for record in &results.flows {
            assert!(record.delivered.is_some());
            assert_eq!(record.delivered_bytes, 300_000, "held for up to {hold}");
        }
    }
}
