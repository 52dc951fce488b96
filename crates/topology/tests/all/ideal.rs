//! Ideal completion times against a store-and-forward simulation of a handful of lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use proptest::prelude::*;
use weft_packet::HostId;
use weft_topology::{FabricSpec, FaultEvent, FlowPackets, Ideal, Topology};
use weft_units::{Bytes, Rate, Span, Time};

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

/// When the last of `packets` (bytes, path) has arrived, all ready at 0 in this order.
fn simulated(topology: &Topology, packets: &[(u16, Vec<usize>)]) -> Span {
    let mut busy = vec![0u64; topology.links.len()];
    let mut waiting: BinaryHeap<_> = (0..packets.len()).map(|packet| Reverse((0, packet, 0))).collect();
    let mut last = 0;
    while let Some(Reverse((at, packet, stage))) = waiting.pop() {
        let (bytes, path) = &packets[packet];
        let Some(&link) = path.get(stage) else {
            last = last.max(at);
            continue;
        };
        busy[link] = busy[link].max(at) + service(topology, link, *bytes);
        let delay = topology.links[link].condition.delay.as_ps();
        waiting.push(Reverse((busy[link] + delay, packet, stage + 1)));
    }
    Span::from_ps(last)
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

/// A k = 4 fat-tree, whose links have these rates and delays in turn.
fn fat_tree(drawn: &[(u64, u64)]) -> Topology {
    let spec: FabricSpec = toml::from_str("kind = 'fat-tree'\nk = 4").unwrap();
    let mut topology = spec.build(1, Path::new(".")).unwrap().topology;
    conditions(&mut topology, drawn);
    topology
}

/// That a link fails in mid-run.
fn failure(topology: &Topology, link: usize) -> FaultEvent {
    let mut condition = topology.links[link].condition;
    condition.up = false;
    FaultEvent { at: Time::from_ps(1), link: link as u32, condition }
}

/// The links of a walk that a packet takes from host to host if each switch sends it on by chance,
/// and sooner or later where it is nearer.
fn walk(topology: &Topology, src: u16, dst: u16, choices: &[prop::sample::Index]) -> Vec<usize> {
    let routes = weft_topology::Routes::at_start(topology);
    let rack = usize::from(topology.rack_of_host[usize::from(dst)]);
    let mut path = vec![usize::from(src)];
    let mut choices = choices.iter();
    loop {
        let switch = topology.links[*path.last().unwrap()].to.0 as usize - topology.hosts;
        if topology.switch_of_rack[rack] as usize == switch {
            path.push(topology.link_to_host[usize::from(dst)] as usize);
            return path;
        }
        let node = topology.hosts + switch;
        let ports = topology.first_link[node] as usize..topology.first_link[node + 1] as usize;
        let between: Vec<usize> =
            ports.filter(|&link| topology.links[link].to.0 as usize >= topology.hosts).collect();
        let nearer = || routes.next_links(topology, switch, rack).next().unwrap() as usize;
        path.push(choices.next().map_or_else(nearer, |choice| between[choice.index(between.len())]));
    }
}

#[test]
fn a_detour_that_a_failure_opens_bounds_the_ideal() {
    // Two hops through spine0 at 100 Mbit/s in each rack; spine0 fails. The way round through rack
    // 2 and two faster spines is longer.
    let toml = "kind = 'leaf-spine'\nleaves = 3\nspines = 3\nhosts_per_leaf = 1";
    let mut topology = toml::from_str::<FabricSpec>(toml).unwrap().build(1, Path::new(".")).unwrap().topology;
    for (from, to) in [("leaf0", "spine1"), ("leaf1", "spine2"), ("leaf2", "spine0")] {
        for (from, to) in [(from, to), (to, from)] {
            let link = link(&topology, from, to);
            topology.links[link].condition.up = false;
        }
    }
    for (from, to) in [("leaf0", "spine0"), ("spine0", "leaf1")] {
        let link = link(&topology, from, to);
        topology.links[link].condition.rate = Rate::from_bps(100_000_000);
    }
    let packets = FlowPackets { full_bytes: 1_500, full_count: 9, last_bytes: 1_500 };
    let detour = ["host0", "leaf0", "spine2", "leaf2", "spine1", "leaf1", "host1"];
    let detour: Vec<usize> = detour.windows(2).map(|ends| link(&topology, ends[0], ends[1])).collect();
    let taken = simulated(&topology, &train(packets, |_| detour.clone()));
    let faults = [failure(&topology, link(&topology, "leaf0", "spine0"))];
    let fct = |mut ideal: Ideal| ideal.fct(HostId(0), HostId(1), packets, None).unwrap();
    let (shortest, any) = (fct(ideal(&topology)), fct(Ideal::over_faults(&topology, &faults)));
    assert!(shortest > taken, "the shortest path is slower: {shortest}, {taken}");
    // The least delay is that of the shortest path, two hops less; each hop may round by a
    // picosecond.
    let least = taken - Span::from_us(2);
    assert!(any <= least && least - any <= Span::from_ps(4), "{any}, {least}");
}

#[test]
fn failures_change_no_ideal_where_the_shortest_paths_are_the_fastest() {
    let packets = |full_count| FlowPackets { full_bytes: 1_500, full_count, last_bytes: 700 };
    for topology in [two_racks(4), fat_tree(&[(10_000, 1_000)]), fat_tree(&[(40_000, 0)])] {
        let faults = [failure(&topology, topology.links.len() - 1)];
        let [mut shortest, mut any] = [ideal(&topology), Ideal::over_faults(&topology, &faults)];
        for dst in 1..topology.hosts as u16 {
            for full_count in [0, 1, 7, 100] {
                let [shortest, any] = [&mut shortest, &mut any]
                    .map(|ideal| ideal.fct(HostId(0), HostId(dst), packets(full_count), Some((40, 40))));
                assert_eq!(any, shortest, "to host {dst}, {full_count} packets");
            }
        }
    }
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
    fn no_mixture_of_detours_beats_the_ideal_over_failures(
        drawn in prop::collection::vec((10u64..100_000, 0u64..20_000), 96),
        kinds in 1usize..97,
        src in 0u16..16,
        dst in 0u16..16,
        walks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..12), 1..5),
        packets in packets(),
    ) {
        prop_assume!(src != dst);
        let topology = fat_tree(&drawn[..kinds]);
        let walks: Vec<Vec<usize>> = walks.iter().map(|choices| walk(&topology, src, dst, choices)).collect();
        let taken = simulated(&topology, &train(packets, |number| walks[number % walks.len()].clone()));
        let faults = [failure(&topology, topology.hosts)];
        let bound = Ideal::over_faults(&topology, &faults).fct(HostId(src), HostId(dst), packets, None).unwrap();
        prop_assert!(bound <= taken, "{bound} > {taken}");
    }

    #[test]
    fn fast_fabrics_are_exact_over_many_paths(spines in 2usize..5, full_count in 4u32..40, last_bytes in 40u16..1_500) {
        let topology = two_racks(spines);
        let packets = FlowPackets { full_bytes: 1_500, full_count, last_bytes };
        let expected = simulated(&topology, &train(packets, |_| path(&topology, 0)));
        prop_assert_eq!(fct(&topology, 0, 2, packets), expected);
    }
}
