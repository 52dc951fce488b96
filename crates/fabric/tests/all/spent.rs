//! Where flows' time went: the parts are the completion time, and each is what happened.
use crate::common::{Run, SMALL, fabric, fct, flow};
use weft_fabric::{Results, Spent};
use weft_traffic::Flow;
use weft_units::Span;

/// Flows of all sizes between the racks, close enough to meet.
fn busy() -> Vec<Flow> {
    (0..40).map(|n| flow(30 * n, (n % 2) as u16, (2 + n / 2 % 2) as u16, 1_000 + n * n * 400)).collect()
}

fn sum(spent: &Spent) -> Span {
    let rest = spent.transmission + spent.reordering + spent.timeouts + spent.window;
    rest + spent.waits.into_iter().sum::<Span>()
}

fn assert_whole(results: &Results, flows: &[Flow]) {
    for (index, record) in results.flows.iter().enumerate() {
        assert_eq!(sum(&record.spent), fct(results, flows, index), "flow {index}");
        assert!(record.spent.transmission >= record.ideal, "flow {index}");
    }
}

#[test]
fn the_parts_are_the_completion_time_with_every_kind_of_scheme_and_transport() {
    let slow = "[[fault]]\nlink = \"leaf0-spine0\"\nrate = \"2Gbps\"\nloss = 0.002\n";
    let fabric = fabric(&format!("{SMALL}\n{slow}"));
    let flows = busy();
    let transports = [
        "name = \"dctcp\"",
        "name = \"tcp\"\nhandshake = true\nsack = true",
        "name = \"tcp\"\nack_every = 2\nack_timeout = \"100us\"",
    ];
    for transport in transports {
        for balancer in ["ecmp", "rps", "drb", "presto", "letflow"] {
            let results = Run::new(&fabric, transport, &format!("name = \"{balancer}\"")).flows(&flows);
            assert_whole(&results, &flows);
        }
    }
}

#[test]
fn the_parts_are_the_completion_time_with_subflows_and_with_credits() {
    let fabric = fabric(SMALL);
    let flows = busy();
    for transport in ["name = \"mptcp\"", "name = \"expresspass\"", "name = \"maxpass\""] {
        let run = Run::new(&fabric, transport, "name = \"ecmp\"\nhash = \"symmetric\"");
        assert_whole(&run.flows(&flows), &flows);
    }
}

#[test]
fn a_flow_alone_takes_its_ideal_time_and_waits_for_its_window() {
    let fabric = fabric(SMALL);
    for size in [1_000, 14_600, 500_000] {
        let flows = [flow(5, 0, 2, size)];
        let results = Run::new(&fabric, "name = \"tcp\"", "name = \"ecmp\"").flows(&flows);
        let record = &results.flows[0];
        assert!(record.spent.transmission >= record.ideal);
        assert_eq!((record.spent.reordering, record.spent.timeouts), (Span::ZERO, Span::ZERO));
        let elsewhere = record.spent.transmission + record.spent.window;
        // It meets nobody, and what it waits behind itself is serialisation.
        assert_eq!(elsewhere, fct(&results, &flows, 0), "{:?}", record.spent);
    }
}

#[test]
fn what_two_senders_wait_for_each_other_is_at_the_last_hop() {
    let fabric = fabric(SMALL);
    // Ten packets each, at once, from both hosts of a rack to one of the other, over one path or two: they meet at its link.
    let flows = [flow(0, 0, 2, 14_600), flow(0, 1, 2, 14_600)];
    let results = Run::new(&fabric, "name = \"dctcp\"", "name = \"drb\"").flows(&flows);
    for record in &results.flows {
        let [host, leaf, spine, last] = record.spent.waits;
        // Packets keep their waits in steps of 256 ps.
        assert!(host < Span::from_ns(1) && record.spent.window.is_zero(), "{:?}", record.spent);
        assert!(last > (leaf + spine) * 3, "{:?}", record.spent);
    }
}

#[test]
fn a_packet_that_is_lost_waits_for_its_timer_and_for_nothing_else() {
    let down = |spine| format!("[[fault]]\nlink = \"leaf0-spine{spine}\"\nuntil = \"1ms\"\nloss = 1.0\n");
    let fabric = fabric(&format!("{SMALL}\n{}{}", down(0), down(1)));
    let flows = [flow(0, 0, 2, 1_000)];
    let results =
        Run::new(&fabric, "name = \"tcp\"\ninitial_rto = \"10ms\"", "name = \"ecmp\"").flows(&flows);
    let spent = results.flows[0].spent;
    assert_eq!((spent.timeouts, spent.transmission), (Span::from_ms(10), results.flows[0].ideal));
    assert_eq!(sum(&spent), spent.timeouts + spent.transmission);
}

#[test]
fn a_last_packet_that_took_the_slow_path_is_late() {
    // Ten packets in turn over two paths, one of which is 50 us longer: the last one on it is waited for.
    let fabric = fabric(&format!("{SMALL}\n[[fault]]\nlink = \"leaf0-spine0\"\ndelay = \"50us\"\n"));
    let flows = [flow(0, 0, 2, 14_600)];
    let run = Run::new(&fabric, "name = \"tcp\"\ndup_ack_threshold = 50", "name = \"drb\"");
    let record = &run.flows(&flows).flows[0];
    assert_eq!(record.receiver.stalls.by_loss, Span::ZERO);
    assert!(record.receiver.stalls.by_reordering >= Span::from_us(40), "{:?}", record.receiver);
}
