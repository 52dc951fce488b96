//! Ideal completion times against a store-and-forward simulation of a handful of lines.

use std::path::Path;

use proptest::prelude::*;
use weft_packet::HostId;
use weft_topology::{FabricSpec, Topology};
use weft_topology::{FlowPackets, Ideal};
use weft_units::{Bytes, Rate, Span};

/// Two racks of two hosts, and some spines. Nodes: 4 hosts, 2 leaves, then spines.
fn two_racks(spines: usize) -> Topology {
    let toml = format!("kind = 'leaf-spine'\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 2");
    let spec: FabricSpec = toml::from_str(&toml).unwrap();
    spec.build(1, Path::new(".")).unwrap().topology
}

fn link(topology: &Topology, from: &str, to: &str) -> usize {
    let name = |node: u32| topology.names[node as usize].as_str();
    topology.links.iter().position(|link| name(link.from.0) == from && name(link.to.0) == to).unwrap()
}

fn ideal(topology: &Topology) -> Ideal {
    Ideal::new(topology.clone())
}

fn fct(topology: &Topology, src: u16, dst: u16, packets: FlowPackets) -> Span {
    ideal(topology).fct(HostId(src), HostId(dst), packets, None).unwrap()
}

fn service(topology: &Topology, link: usize, bytes: u16) -> u64 {
    let bytes = u64::from(bytes) + u64::from(topology.overhead_bytes);
    topology.links[link].condition.rate.service(Bytes::new(bytes)).as_ps()
}

/// When the last of `packets` (bytes, path) has arrived, all ready at 0 in this order. Paths have equal lengths.
fn simulated(topology: &Topology, packets: &[(u16, Vec<usize>)]) -> Span {
    let mut arrivals: Vec<u64> = vec![0; packets.len()];
    for stage in 0..packets[0].1.len() {
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|&packet| (arrivals[packet], packet));
        let mut busy = vec![0u64; topology.links.len()];
        for packet in order {
            let link = packets[packet].1[stage];
            busy[link] = busy[link].max(arrivals[packet]) + service(topology, link, packets[packet].0);
            arrivals[packet] = busy[link] + topology.links[link].condition.delay.as_ps();
        }
    }
    Span::from_ps(arrivals.into_iter().max().unwrap())
}

/// From host0 in rack 0 to host2 in rack 1 through a spine.
fn path(topology: &Topology, spine: usize) -> Vec<usize> {
    let spine = format!("spine{spine}");
    [("host0", "leaf0"), ("leaf0", &spine), (&spine, "leaf1"), ("leaf1", "host2")]
        .map(|(from, to)| link(topology, from, to))
        .to_vec()
}

fn train(packets: FlowPackets, paths: impl Fn(usize) -> Vec<usize>) -> Vec<(u16, Vec<usize>)> {
    let count = packets.full_count as usize;
    let bytes = |number| if number < count { packets.full_bytes } else { packets.last_bytes };
    (0..=count).map(|number| (bytes(number), paths(number))).collect()
}

fn conditions(topology: &mut Topology, drawn: &[(u64, u64)]) {
    for (link, &(mbps, ns)) in topology.links.iter_mut().zip(drawn.iter().cycle()) {
        link.condition.rate = Rate::from_bps(mbps * 1_000_000);
        link.condition.delay = Span::from_ns(ns);
    }
}

fn packets() -> impl Strategy<Value = FlowPackets> {
    (40u16..=1_500, 0u32..40, 1u16..=1_000).prop_map(|(full_bytes, full_count, share)| FlowPackets {
        full_bytes,
        full_count,
        last_bytes: 40 + (u32::from(full_bytes - 40) * u32::from(share) / 1_000) as u16,
    })
}

#[test]
fn a_flow_at_equal_rates_takes_its_transmission_and_one_packet_a_hop() {
    let topology = two_racks(4);
    let packets = FlowPackets { full_bytes: 1_500, full_count: 9, last_bytes: 1_500 };
    // Ten packets at 1.2 us each, three more hops of one packet, four delays of 1 us.
    assert_eq!(fct(&topology, 0, 2, packets), Span::from_ns(10 * 1_200 + 3 * 1_200 + 4_000));
    assert_eq!(fct(&topology, 0, 1, packets), Span::from_ns(10 * 1_200 + 1_200 + 2_000), "within a rack");
}

#[test]
fn a_handshake_takes_a_round_trip_of_its_own_packets() {
    let mut topology = two_racks(4);
    topology.overhead_bytes = 20;
    let packets = FlowPackets { full_bytes: 1_500, full_count: 0, last_bytes: 1_480 };
    let time = ideal(&topology).fct(HostId(0), HostId(2), packets, Some((40, 60))).unwrap();
    // Four hops at 0.8 ns a byte, for 60, 80 and 1,500 bytes, and three times four delays.
    assert_eq!(time, Span::from_ps(4 * 800 * (60 + 80 + 1_500)) + Span::from_us(12));
}

#[test]
fn a_flow_to_its_own_host_takes_no_time() {
    let packets = FlowPackets { full_bytes: 1_500, full_count: 9, last_bytes: 1_500 };
    assert_eq!(fct(&two_racks(1), 1, 1, packets), Span::ZERO);
}

#[test]
fn no_path_has_no_ideal() {
    let mut topology = two_racks(1);
    let down = link(&topology, "spine0", "leaf1");
    topology.links[down].condition.up = false;
    let packets = FlowPackets { full_bytes: 1_500, full_count: 9, last_bytes: 1_500 };
    assert_eq!(ideal(&topology).fct(HostId(0), HostId(2), packets, None), None);
    assert!(ideal(&topology).fct(HostId(0), HostId(1), packets, None).is_some());
}

#[test]
fn spraying_over_slow_spines_comes_within_a_packet_of_the_ideal() {
    // Four spines of 10 Gbit/s carry what a host of 40 Gbit/s sends, packet by packet in turn.
    let mut topology = two_racks(4);
    for link in &mut topology.links {
        let host = link.from.0 < 4 || link.to.0 < 4;
        link.condition.rate = Rate::from_gbps(if host { 40 } else { 10 });
    }
    for full_count in 1..40 {
        let packets = FlowPackets { full_bytes: 1_500, full_count, last_bytes: 1_500 };
        let sprayed = simulated(&topology, &train(packets, |number| path(&topology, number % 4)));
        let bound = fct(&topology, 0, 2, packets);
        let packet = Span::from_ns(1_200);
        assert!(bound <= sprayed && sprayed < bound + packet, "{full_count}: {bound}, {sprayed}");
    }
}

proptest! {
    #[test]
    fn a_single_path_is_exact_at_any_rates(
        drawn in prop::collection::vec((10u64..100_000, 0u64..20_000), 13), overhead in 0u16..30, packets in packets(),
    ) {
        let mut topology = two_racks(1);
        conditions(&mut topology, &drawn);
        topology.overhead_bytes = overhead;
        let expected = simulated(&topology, &train(packets, |_| path(&topology, 0)));
        prop_assert_eq!(fct(&topology, 0, 2, packets), expected);
    }

    #[test]
    fn a_lone_packet_is_exact_over_the_best_of_many_paths(
        drawn in prop::collection::vec((10u64..100_000, 0u64..20_000), 13), spines in 1usize..6, bytes in 40u16..1_500,
    ) {
        let mut topology = two_racks(spines);
        conditions(&mut topology, &drawn);
        let packets = FlowPackets { full_bytes: bytes, full_count: 0, last_bytes: bytes };
        let over = |spine| simulated(&topology, &train(packets, |_| path(&topology, spine)));
        prop_assert_eq!(fct(&topology, 0, 2, packets), (0..spines).map(over).min().unwrap());
    }

    #[test]
    fn no_spraying_beats_the_ideal(
        drawn in prop::collection::vec((10u64..100_000, 0u64..20_000), 13),
        equal in any::<bool>(),
        spines in 1usize..5,
        choices in prop::collection::vec(any::<prop::sample::Index>(), 41),
        packets in packets(),
    ) {
        let mut topology = two_racks(spines);
        conditions(&mut topology, if equal { &drawn[..1] } else { &drawn });
        let sprayed = simulated(&topology, &train(packets, |n| path(&topology, choices[n].index(spines))));
        let bound = fct(&topology, 0, 2, packets);
        prop_assert!(bound <= sprayed, "{bound} > {sprayed}");
    }

    #[test]
    fn fast_fabrics_are_exact_over_many_paths(spines in 2usize..5, full_count in 4u32..40, last_bytes in 40u16..1_500) {
        let topology = two_racks(spines);
        let packets = FlowPackets { full_bytes: 1_500, full_count, last_bytes };
        let expected = simulated(&topology, &train(packets, |_| path(&topology, 0)));
        prop_assert_eq!(fct(&topology, 0, 2, packets), expected);
    }
}
