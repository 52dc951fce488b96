//! Hosts with a CPU: their CPU against M/D/1, interrupts and joined segments by hand, and what a
//! full ring drops.

use crate::common::{Run, done_as, fabric, flow};
use weft_fabric::HostCpuSpec;
use weft_packet::{Class, HostId};
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Purpose, Span, Stream, Time};

/// An acknowledgement of a byte: next to nothing where a byte counts.
const TCP: &str = "name = \"tcp\"\nack_size = \"1B\"";
const ECMP: &str = r#"name = "ecmp""#;
const PLAIN: HostCpuSpec = HostCpuSpec {
    receive_ring: 0,
    receive_offload: false,
    interrupt_delay: Span::ZERO,
    interrupt_packets: 0,
    cpu_per_packet: Span::ZERO,
    cpu_per_byte: Span::ZERO,
};

/// Two hosts, and links that take next to no time.
fn fast() -> Fabric {
    fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nhost_rate = '10Tbps'\nfabric_rate = '10Tbps'\n\
         host_delay = '1ns'\nfabric_delay = '1ns'\n[switch_queue]\nbuffer = 'unlimited'",
    )
}

fn run<'a>(fabric: &'a Fabric, transport: &'a str, machine: HostCpuSpec) -> Run<'a> {
    Run { machine: Some(machine), ..Run::new(fabric, transport, ECMP) }
}

/// A span in nanoseconds, rounded down.
fn ns(span: Span) -> u64 {
    span.as_ps() / 1_000
}

#[test]
fn a_packet_waits_for_the_cpu_of_its_sender_an_interrupt_and_the_cpu_of_its_receiver_by_hand() {
    let fabric = fast();
    let machine = HostCpuSpec {
        interrupt_delay: Span::from_us(20),
        cpu_per_packet: Span::from_us(1),
        cpu_per_byte: Span::from_ns(1),
        ..PLAIN
    };
    let flows = [flow(1, 0, 1, 1_460)];
    let results = run(&fabric, TCP, machine).flows(&flows);
    let [delivered, acknowledged] =
        [results.flows[0].delivered, results.flows[0].acknowledged].map(Option::unwrap);
    // 2.5 us at each CPU for 1,500 bytes; four links of 1 ns, each with 1.2 ns for the packet.
    assert_eq!(ns(delivered.since(flows[0].start)), 2_500 + 20_000 + 2_500 + 8);
    // 1,001 ns at each CPU for a byte; the links take 4 ns.
    assert_eq!(ns(acknowledged.since(delivered)), 1_001 + 20_000 + 1_001 + 4);
}

/// Packets that a host sends wait for its CPU as in an M/D/1 queue; the receiver gets them no
/// faster than its own CPU works.
#[test]
fn the_cpu_of_a_host_is_an_m_d_1_queue_of_what_it_sends() {
    let fabric = fast();
    let service_us = 12.0;
    let machine = HostCpuSpec { cpu_per_byte: Span::from_ns(8), ..PLAIN };
    for (load, packets) in [(0.3, 200_000), (0.6, 300_000), (0.8, 800_000)] {
        let mut stream = Stream::new(11, Purpose::Arrivals, 0);
        let mut at_us = 0.0;
        let mut next = |_| {
            at_us += stream.exponential(service_us / load);
            Flow {
                start: Time::from_ps((at_us * 1e6) as u64),
                src: HostId(0),
                dst: HostId(1),
                size_bytes: 1_460,
                class: Class::Unknown,
                background: false,
                transport: 0,
            }
        };
        let flows: Vec<Flow> = (0..packets).map(&mut next).collect();
        let results = run(&fabric, TCP, machine).flows(&flows);
        let took = results
            .flows
            .iter()
            .zip(&flows)
            .map(|(record, flow)| record.delivered.unwrap().since(flow.start));
        let mean_us = took.map(Span::as_us).sum::<f64>() / f64::from(packets) - 2.0 * service_us;
        let theory_us = load * service_us / (2.0 * (1.0 - load));
        let error = (mean_us / theory_us - 1.0).abs();
        assert!(error < 0.025, "load {load}: {mean_us:.3} us, theory says {theory_us:.3} us");
    }
}

/// Acknowledgements of a burst of so many segments of 1,500 bytes that arrives at once.
fn acknowledgements(segments: u32, machine: HostCpuSpec) -> u64 {
    let fabric = fast();
    let transport = format!("{TCP}\ninitial_window = {segments}");
    let flows = [flow(1, 0, 1, u64::from(segments) * 1_460)];
    let results = run(&fabric, &transport, machine).flows(&flows);
    assert!(results.flows[0].acknowledged.is_some());
    results.packets.sent - u64::from(segments)
}

#[test]
fn segments_that_are_taken_together_are_acknowledged_once_by_hand() {
    let moderated = HostCpuSpec { interrupt_delay: Span::from_us(20), ..PLAIN };
    let joining = HostCpuSpec { receive_offload: true, ..moderated };
    assert_eq!(acknowledgements(10, moderated), 10, "moderation alone joins nothing");
    assert_eq!(acknowledgements(10, joining), 1);
    assert_eq!(acknowledgements(43, joining), 1, "43 of 1,500 bytes are 64,500");
    assert_eq!(acknowledgements(45, joining), 2, "no more than 65,535 bytes are joined");
    assert_eq!(acknowledgements(130, joining), 5, "64 packets are taken at once: 43 + 21, the same, and 2");
    let by_fours = HostCpuSpec { interrupt_packets: 4, ..joining };
    assert_eq!(acknowledgements(10, by_fours), 3, "4, 4, and 2 when the delay is over");
}

#[test]
fn segments_of_one_flow_are_joined_though_those_of_another_come_between() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\nhost_rate = '10Gbps'\nfabric_rate = '100Gbps'",
    );
    let machine = HostCpuSpec { receive_offload: true, interrupt_delay: Span::from_us(100), ..PLAIN };
    let flows = [flow(1, 0, 2, 14_600), flow(1, 1, 2, 14_600)];
    let results = run(&fabric, TCP, machine).flows(&flows);
    assert_eq!(results.packets.sent, 22, "an acknowledgement each");
}

#[test]
fn a_full_ring_drops_what_comes_and_every_drop_is_counted() {
    let fabric = fast();
    let machine = HostCpuSpec { receive_ring: 4, interrupt_delay: Span::from_us(20), ..PLAIN };
    let flows = [flow(1, 0, 1, 14_600)];
    let results = run(&fabric, TCP, machine).flows(&flows);
    assert_eq!((results.packets.input_dropped, results.flows[0].dropped), (6, 6), "ten come at once");
    assert!(results.flows[0].acknowledged.is_some(), "they are sent again");
}

#[test]
fn hosts_that_take_no_time_are_those_without_a_cpu() {
    let fabric = fast();
    let flows = [flow(1, 0, 1, 200_000), flow(2, 1, 0, 100_000)];
    let plain = Run::new(&fabric, TCP, ECMP).flows(&flows);
    assert_eq!(run(&fabric, TCP, HostCpuSpec { receive_offload: true, ..PLAIN }).flows(&flows), plain);
}

#[test]
fn groups_and_threads_change_nothing_where_hosts_take_time() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 2");
    let flows: Vec<Flow> =
        (0..40).map(|n| flow(u64::from(n) * 3, n % 8, (n % 8 + 1 + n % 7) % 8, 40_000)).collect();
    let machine = HostCpuSpec {
        receive_ring: 20,
        receive_offload: true,
        interrupt_delay: Span::from_us(9),
        interrupt_packets: 5,
        cpu_per_packet: Span::from_ns(700),
        cpu_per_byte: Span::from_ps(300),
    };
    for transport in
        ["name = 'dctcp'", "name = 'mptcp'\nsubflows = 3", "name = 'expresspass'", "name = 'maxpass'"]
    {
        for scheme in [ECMP, r#"name = "presto""#, "name = \"clove\"\ngap = '20us'"] {
            let one = Run {
                machine: Some(machine),
                sample_every: Some(Span::from_us(20)),
                time_limit: Span::from_ms(50),
                ..Run::new(&fabric, transport, scheme)
            };
            let results = one.flows(&flows);
            let again = Run { partitions: 4, threads: 2, ..one }.flows(&flows);
            assert!(again.cooperation.partitions > 1, "{scheme}: it was to be cut");
            assert_eq!(done_as(again, &results), results, "{transport}, {scheme}");
        }
    }
}

/// Segmentation offload and delayed acknowledgements of simulated hosts, end to end: 45 segments
/// are handed over at once, leave one after the other at the rate of the cable, and every second
/// one is acknowledged.
#[test]
fn a_burst_of_64_kilobytes_leaves_at_line_rate_and_is_acknowledged_by_twos() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1");
    let transport = "name = 'tcp'\nsack = true\nrack = true\nsegmentation_offload = '65700B'\ninitial_window = 45\nack_every = 2";
    let flows = [flow(1, 0, 1, 45 * 1_460)];
    let results = Run::new(&fabric, transport, ECMP).flows(&flows);
    let took = results.flows[0].delivered.unwrap().since(flows[0].start);
    assert_eq!(took, results.flows[0].ideal, "45 packets and three more services, on four cables");
    assert_eq!(results.packets.sent, 45 + 22 + 1);
}
