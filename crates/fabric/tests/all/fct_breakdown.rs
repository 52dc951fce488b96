//! Where flows' time went: the parts are the completion time, and each is what happened.
use crate::common::{Run, SMALL, fabric, fct, flow};
use weft_fabric::{FctBreakdown, Results};
use weft_traffic::Flow;
use weft_units::Span;

/// Flows of all sizes between the racks, close enough to meet.
fn busy() -> Vec<Flow> {
    (0..40).map(|n| flow(30 * n, (n % 2) as u16, (2 + n / 2 % 2) as u16, 1_000 + n * n * 400)).collect()
}

fn sum(breakdown: &FctBreakdown) -> Span {
    let rest = breakdown.transmission
        + breakdown.reordering
        + breakdown.timeouts
        + breakdown.acknowledgement
        + breakdown.window;
    rest + breakdown.waits.into_iter().sum::<Span>()
}

fn assert_whole(results: &Results, flows: &[Flow]) {
    for (index, record) in results.flows.iter().enumerate() {
        assert_eq!(sum(&record.fct_breakdown), fct(results, flows, index), "flow {index}");
        assert!(record.fct_breakdown.transmission >= record.ideal, "flow {index}");
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
        for scheme in ["ecmp", "rps", "drb", "presto", "letflow"] {
            let results = Run::new(&fabric, transport, &format!("name = \"{scheme}\"")).flows(&flows);
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
        assert!(record.fct_breakdown.transmission >= record.ideal);
        assert_eq!(
            (record.fct_breakdown.reordering, record.fct_breakdown.timeouts),
            (Span::ZERO, Span::ZERO)
        );
        let elsewhere = record.fct_breakdown.transmission
            + record.fct_breakdown.acknowledgement
            + record.fct_breakdown.window;
        // It meets nobody, and what it waits behind itself is serialisation.
        assert_eq!(elsewhere, fct(&results, &flows, 0), "{:?}", record.fct_breakdown);
    }
}

#[test]
fn acknowledgements_that_wait_behind_data_are_a_part_of_their_own() {
    let fabric = fabric(SMALL);
    // Twelve packets in two windows, four and eight: alone, and while the receiver's host has some
    // hundred packets of its own to send.
    let small = flow(300, 0, 2, 17_520);
    let of_small = |flows: &[Flow], index: usize| {
        let results = Run::new(&fabric, "name = \"tcp\"\ninitial_window = 4", "name = \"ecmp\"").flows(flows);
        assert_whole(&results, flows);
        (results.flows[index].fct_breakdown, fct(&results, flows, index))
    };
    let (alone, took_alone) = of_small(std::slice::from_ref(&small), 0);
    let (breakdown, took) = of_small(&[flow(0, 2, 1, 2_000_000), small], 1);
    assert!(!alone.acknowledgement.is_zero(), "{alone:?}");
    assert_eq!((alone.window, breakdown.window, breakdown.timeouts), (Span::ZERO, Span::ZERO, Span::ZERO));
    let more = breakdown.acknowledgement - alone.acknowledgement;
    assert!(
        more > Span::from_us(50) && more * 10 > (took - took_alone) * 9,
        "{more} of {took}: {breakdown:?}"
    );
}

#[test]
fn what_two_senders_wait_for_each_other_is_at_the_last_hop() {
    let fabric = fabric(SMALL);
    // Ten packets each, at once, from both hosts of a rack to one of the other, over one path or
    // two: they meet at its link.
    let flows = [flow(0, 0, 2, 14_600), flow(0, 1, 2, 14_600)];
    let results = Run::new(&fabric, "name = \"dctcp\"", "name = \"drb\"").flows(&flows);
    for record in &results.flows {
        let [host, leaf, spine, last] = record.fct_breakdown.waits;
        // Packets keep their waits in steps of 256 ps.
        assert!(
            host < Span::from_ns(1) && record.fct_breakdown.window.is_zero(),
            "{:?}",
            record.fct_breakdown
        );
        assert!(last > (leaf + spine) * 3, "{:?}", record.fct_breakdown);
    }
}

#[test]
fn a_packet_that_is_lost_waits_for_its_timer_and_for_nothing_else() {
    let down = |spine| format!("[[fault]]\nlink = \"leaf0-spine{spine}\"\nuntil = \"1ms\"\nloss = 1.0\n");
    let fabric = fabric(&format!("{SMALL}\n{}{}", down(0), down(1)));
    let flows = [flow(0, 0, 2, 1_000)];
    let results =
        Run::new(&fabric, "name = \"tcp\"\ninitial_rto = \"10ms\"", "name = \"ecmp\"").flows(&flows);
    let breakdown = results.flows[0].fct_breakdown;
    assert_eq!((breakdown.timeouts, breakdown.transmission), (Span::from_ms(10), results.flows[0].ideal));
    assert_eq!(sum(&breakdown), breakdown.timeouts + breakdown.transmission);
}

#[test]
fn a_last_packet_that_took_the_slow_path_is_late() {
    // Ten packets in turn over two paths, one of which is 50 us longer: the last one on it is
    // waited for.
    let fabric = fabric(&format!("{SMALL}\n[[fault]]\nlink = \"leaf0-spine0\"\ndelay = \"50us\"\n"));
    let flows = [flow(0, 0, 2, 14_600)];
    let run = Run::new(&fabric, "name = \"tcp\"\ndup_ack_threshold = 50", "name = \"drb\"");
    let record = &run.flows(&flows).flows[0];
    assert_eq!(record.receiver.stalls.by_loss, Span::ZERO);
    assert!(record.receiver.stalls.by_reordering >= Span::from_us(40), "{:?}", record.receiver);
}

/// A host's link that is slow at first, with 15 KB over it: ten full packets of 1,500 bytes and one
/// of 440, all of one window.
fn over_a_link_that_changes(fault: &str) -> (Vec<Flow>, Results) {
    let fabric = fabric(&format!("{SMALL}\n[[fault]]\nlink = \"host0>leaf0\"\n{fault}\n"));
    let flows = vec![flow(0, 0, 2, 15_000)];
    let tcp = "name = \"tcp\"\ninitial_window = 16";
    let results = Run::new(&fabric, tcp, "name = \"ecmp\"").flows(&flows);
    (flows, results)
}

#[test]
fn waits_at_a_link_that_speeds_up_are_those_that_packets_had() {
    let (flows, results) = over_a_link_that_changes("until = \"1ms\"\nrate = \"10Mbps\"");
    assert_whole(&results, &flows);
    // The first packet is in service until 1,200 us; those behind it follow at 1.2 us each.
    let record = &results.flows[0];
    let waits: u64 = (0..10u64).map(|ahead| 1_200_000_000 + ahead * 1_200_000).sum();
    // Packets keep their waits in steps of 256 ps.
    assert!(record.wait_ps[0].abs_diff(waits) < 10 * 256, "{} ps of {waits}", record.wait_ps[0]);
    assert!(record.wait_ps.iter().all(|&wait| wait / 10 <= fct(&results, &flows, 0).as_ps()));
}

#[test]
fn waits_at_a_link_that_slows_down_are_those_that_packets_had() {
    let (flows, results) = over_a_link_that_changes("at = \"2us\"\nrate = \"1Gbps\"");
    assert_whole(&results, &flows);
    // Two packets are out or in service by 2 us: at 2.4 us, the others go at 12 us each.
    let waits: u64 = 1_200_000 + (0..9u64).map(|ahead| 2_400_000 + ahead * 12_000_000).sum::<u64>();
    let found = results.flows[0].wait_ps[0];
    assert!(found.abs_diff(waits) < 10 * 256, "{found} ps of {waits}");
}

#[test]
fn the_parts_are_the_completion_time_when_links_change_under_full_queues() {
    let change = |n: usize| {
        let (link, rate) = (["leaf0-spine0", "leaf0-spine1", "leaf1-host2"][n % 3], [1, 40, 3][n / 3 % 3]);
        let (at, until) = (n * 37, n * 37 + 60);
        format!(
            "[[fault]]\nlink = \"{link}\"\nat = \"{at}us\"\nuntil = \"{until}us\"\nrate = \"{rate}Gbps\"\n"
        )
    };
    let changes = (1..40).map(change).collect::<Vec<_>>().concat();
    let fabric = fabric(&format!("{SMALL}\n{changes}"));
    let flows = busy();
    for transport in ["name = \"dctcp\"", "name = \"tcp\"\nsack = true", "name = \"expresspass\""] {
        let results = Run::new(&fabric, transport, "name = \"rps\"").flows(&flows);
        assert_whole(&results, &flows);
        for (index, record) in results.flows.iter().enumerate() {
            let took = fct(&results, &flows, index);
            assert!(record.fct_breakdown.waits.iter().all(|&wait| wait <= took), "flow {index}");
        }
    }
}
