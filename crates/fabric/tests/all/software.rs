//! Switches that are programs: their process against M/D/1 over all ports together, their ports
//! against M/D/1 each, and what a full input queue drops.

use crate::common::{Run, done_as, fabric, flow, link_named};
use weft_packet::{Class, HostId};
use weft_topology::{Fabric, Tier};
use weft_traffic::Flow;
use weft_units::{Purpose, Span, Stream, Time};

/// An acknowledgement of a byte: next to nothing where a byte counts.
const TCP: &str = "name = \"tcp\"\nack_size = \"1B\"";
const ECMP: &str = r#"name = "ecmp""#;
/// A packet of 1,500 bytes takes as long at the process and at the port of these switches.
const SERVICE_US: f64 = 12.0;
const PROCESS: &str = "forwarding_per_byte = '8ns'\ninput_queue = 1000000";
/// The nearest whole rate, and how long it takes.
const PORT: &str = "port_rate = '80000pps'";
const PORT_US: f64 = 12.5;

/// Two racks of four hosts, whose links are so fast that nothing waits for them.
fn fast(software: &str) -> Fabric {
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\nhost_rate = '10Tbps'\nfabric_rate = '10Tbps'\n\
         host_delay = '1ns'\nfabric_delay = '1ns'\n[switch_queue]\nbuffer = 'unlimited'\n[software_switch]\n{software}"
    ))
}

/// Packets of 1,500 bytes at Poisson instants, by turns from each of so many hosts of the first
/// rack to the second, so many microseconds apart in the mean.
fn poisson(packets: u32, hosts: u16, apart_us: f64) -> Vec<Flow> {
    let mut stream = Stream::new(11, Purpose::Arrivals, 0);
    let mut at_us = 0.0;
    let mut next = |number: u32| {
        at_us += stream.exponential(apart_us);
        let host = (number % u32::from(hosts)) as u16;
        Flow {
            start: Time::from_ps((at_us * 1e6) as u64),
            src: HostId(host),
            dst: HostId(4 + host),
            size_bytes: 1_460,
            class: Class::Unknown,
            background: false,
            transport: 0,
        }
    };
    (0..packets).map(&mut next).collect()
}

/// The mean wait of packets at the first switch, and what M/D/1 has (Pollaczek-Khinchine).
fn assert_m_d_1(fabric: &Fabric, hosts: u16, service_us: f64) {
    for (load, packets) in [(0.3, 200_000), (0.6, 300_000), (0.8, 800_000)] {
        let flows = poisson(packets, hosts, service_us / load);
        let results = Run::new(fabric, TCP, ECMP).flows(&flows);
        let wait = |tier: Tier| results.flows.iter().map(|flow| flow.wait_ps[tier as usize]).sum::<u64>();
        let mean_us = wait(Tier::Leaf) as f64 / f64::from(packets) / 1e6;
        let theory_us = load * service_us / (2.0 * (1.0 - load));
        let error = (mean_us / theory_us - 1.0).abs();
        assert!(error < 0.025, "load {load}: {mean_us:.3} us, theory says {theory_us:.3} us");
        // Who waited there comes to the next switch no sooner than that has worked on the one
        // before.
        assert!(wait(Tier::Last) < wait(Tier::Leaf) / 50, "packets queue where they were told apart before");
    }
}

#[test]
fn the_process_of_a_switch_is_an_m_d_1_queue_of_what_all_ports_bring() {
    assert_m_d_1(&fast(PROCESS), 4, SERVICE_US);
}

#[test]
fn a_port_with_a_rate_in_packets_is_an_m_d_1_queue_of_its_own() {
    assert_m_d_1(&fast(PORT), 1, PORT_US);
}

#[test]
fn the_first_packet_of_each_of_four_ports_waits_for_those_before_it_by_hand() {
    let fabric = fast("forwarding_rate = '100Kpps'");
    let flows: Vec<Flow> = (0..4).map(|host| flow(1, host, 4 + host, 1_460)).collect();
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    let waits: Vec<u64> =
        results.flows.iter().map(|flow| flow.wait_ps[Tier::Leaf as usize].div_ceil(1_000_000)).collect();
    assert_eq!(waits, [0, 10, 20, 30], "in the order of the ports");
    let first = results.flows[0].delivered.unwrap().since(flows[0].start);
    // Three switches work on it for 10 us each; four links take 5 ns in all.
    assert_eq!(first.as_ps() / 1_000, 30_008, "{first}");
}

#[test]
fn a_full_input_queue_drops_what_comes_and_every_drop_is_counted() {
    let fabric = fast("forwarding_rate = '100Kpps'\ninput_queue = 3");
    let flows: Vec<Flow> = (0..4).map(|host| flow(1, host, 4 + host, 1_460)).collect();
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    assert_eq!(results.packets.input_dropped, 1, "one of four finds three before it");
    let dropped: Vec<u32> = results.flows.iter().map(|flow| flow.dropped).collect();
    assert_eq!(dropped, [0, 0, 0, 1]);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()), "it is sent again");
}

/// Four packets come at once. If it were decided then where they go, all queues would be empty, and
/// chance alone would spread them.
#[test]
fn where_a_packet_goes_is_decided_when_the_process_is_through_with_it() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n[software_switch]\n\
         forwarding_rate = '1Mpps'\nport_rate = '10Kpps'",
    );
    let uplinks = ["leaf0>spine0", "leaf0>spine1"].map(|name| link_named(&fabric, name));
    let flows: Vec<Flow> = (0..4).map(|host| flow(1, host, 4 + host, 1_460)).collect();
    for seed in 1..=20 {
        let run = Run { seed, ..Run::new(&fabric, TCP, "name = \"drill\"\nd = 2\nm = 2") };
        let results = run.flows(&flows);
        assert_eq!(uplinks.map(|link| results.links[link].packets), [2, 2], "seed {seed}");
    }
}

#[test]
fn groups_and_threads_change_nothing_where_a_process_forwards() {
    const SMALL: &str = "kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\n[switch_queue]\nbuffer = '16packets'\n\
                         [software_switch]\nforwarding_rate = '1Mpps'\ninput_queue = 12\nport_rate = '600Kpps'\n";
    for scheme in [ECMP, r#"name = "drill""#, "name = \"conga\"\ngap = '20us'"] {
        for fault in ["", "[[fault]]\nlink = 'leaf0-spine1'\nat = '50us'\nuntil = '400us'\ndown = true\n"] {
            let fabric = fabric(&format!("{SMALL}{fault}"));
            let flows: Vec<Flow> =
                (0..40).map(|n| flow(u64::from(n) * 3, n % 8, (n * 3 + 1 + n % 8) % 8, 40_000)).collect();
            let flows: Vec<Flow> = flows.into_iter().filter(|flow| flow.src != flow.dst).collect();
            let run = Run {
                sample_every: Some(Span::from_us(20)),
                ..Run::new(&fabric, r#"name = "dctcp""#, scheme)
            };
            let results = run.flows(&flows);
            assert!(results.packets.input_dropped > 0, "{scheme}: the process is the bottleneck");
            for (partitions, threads) in [(2, 1), (4, 2)] {
                let again = Run { partitions, threads, ..run }.flows(&flows);
                assert!(again.cooperation.partitions > 1, "{scheme}: it was to be cut");
                assert_eq!(done_as(again, &results), results, "{scheme} in {partitions} partitions");
            }
        }
    }
}
