//! Fat-trees: counts, paths and their numbers, names, and what traffic is told of them.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use weft_packet::HostId;
use weft_topology::{Fabric, FabricSpec, FlowPackets, Ideal, RouteEntry, Routes, Tier, Topology};
use weft_units::{Bytes, Rate, Span};

fn fabric(keys: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(&format!("kind = 'fat-tree'\n{keys}")).unwrap();
    spec.build(1, Path::new(".")).unwrap()
}

/// The lengths, in switches crossed, of all paths that the tables allow.
fn lengths(
    topology: &Topology,
    routes: &Routes,
    from: u32,
    rack: usize,
    so_far: usize,
    found: &mut BTreeSet<usize>,
) {
    if from == topology.switch_of_rack[rack] {
        found.insert(so_far);
        return;
    }
    let links: Vec<u32> = routes.next_links(topology, from as usize, rack).collect();
    assert!(!links.is_empty() && so_far < 10, "lost at {}", topology.names[topology.hosts + from as usize]);
    for link in links {
        let next = topology.links[link as usize].to.0 - topology.hosts as u32;
        lengths(topology, routes, next, rack, so_far + 1, found);
    }
}

#[test]
fn counts_follow_from_k() {
    for (k, hosts, edges, cores) in [(2, 2, 2, 1), (4, 16, 8, 4), (8, 128, 32, 16)] {
        let topology = fabric(&format!("k = {k}")).topology;
        assert_eq!((topology.hosts, topology.racks()), (hosts, edges), "k = {k}");
        assert_eq!(topology.switches, 2 * edges + cores, "k = {k}");
        let switch_ports = topology.first_link[hosts..].windows(2).map(|pair| pair[1] - pair[0]);
        assert!(switch_ports.into_iter().all(|ports| ports == k), "every switch has k ports");
    }
    assert_eq!(fabric("k = 4\nhosts_per_edge = 6").topology.hosts, 48, "oversubscribed");
}

#[test]
fn fewer_cores_are_shared_out_evenly_over_the_aggregation_switches() {
    // The large fabric of MaxPass §IV: 8 cores, 32 aggregation and 32 edge switches, 256 hosts, 8
    // paths.
    let fabric = fabric("k = 8\nhosts_per_edge = 8\ncores = 8");
    let topology = &fabric.topology;
    assert_eq!((topology.hosts, topology.racks(), topology.switches), (256, 32, 72));
    let up = |name: &str, tier: &str| {
        let node = topology.names.iter().position(|found| found == name).unwrap();
        let links = topology.first_link[node]..topology.first_link[node + 1];
        let far = links.map(|link| topology.names[topology.links[link as usize].to.0 as usize].clone());
        far.filter(|far| far.starts_with(tier)).collect::<Vec<_>>()
    };
    assert_eq!(up("agg0", "core"), ["core0", "core1"]);
    assert_eq!(up("agg7", "core"), ["core6", "core7"]);
    assert_eq!(up("core6", "agg"), (0..8).map(|pod| format!("agg{}", 4 * pod + 3)).collect::<Vec<_>>());
    let routes = Routes::at_start(topology);
    assert_eq!([routes.routes_to(topology, 0, 1), routes.routes_to(topology, 0, 31)], [4, 8]);
    // 32 aggregation switches with two uplinks each are half as many as the edges' four.
    assert_eq!(fabric.shape().bisection_rate, Rate::from_gbps(320));
}

#[test]
fn a_number_of_cores_that_cannot_be_shared_out_is_refused() {
    for cores in [0, 3, 20] {
        let spec: FabricSpec = toml::from_str(&format!("kind = 'fat-tree'\nk = 8\ncores = {cores}")).unwrap();
        let message = spec.build(1, Path::new(".")).unwrap_err().to_string();
        assert!(
            message.contains("fabric.cores") && message.contains("a multiple of k/2, 4 to 16"),
            "{message}"
        );
    }
}

#[test]
fn all_racks_reach_each_other_over_paths_of_one_length() {
    let topology = fabric("k = 4").topology;
    let routes = Routes::at_start(&topology);
    for src in 0..8 {
        for dst in (0..8).filter(|dst| *dst != src) {
            let mut found = BTreeSet::new();
            lengths(&topology, &routes, topology.switch_of_rack[src], dst, 0, &mut found);
            let expected = if src / 2 == dst / 2 { 2 } else { 4 };
            assert_eq!(found, BTreeSet::from([expected]), "rack {src} to rack {dst}");
        }
    }
}

#[test]
fn routes_are_one_a_core_between_pods_and_one_an_aggregation_switch_within() {
    let topology = fabric("k = 8").topology;
    let routes = Routes::at_start(&topology);
    assert_eq!(routes.routes_to(&topology, 0, 31), 4 * 4);
    assert_eq!(routes.routes_to(&topology, 0, 3), 4);
    assert_eq!(routes.routes_to(&topology, 5, 5), 1);
}

#[test]
fn tiers_rates_and_delays_stand_where_the_spec_says() {
    let keys = "k = 4\nhost_rate = '10Gbps'\nfabric_rate = '40Gbps'\ncore_rate = '100Gbps'\n\
                host_delay = '1us'\nfabric_delay = '2us'\ncore_delay = '5us'";
    let topology = fabric(keys).topology;
    for link in &topology.links {
        let ends = [link.from, link.to]
            .map(|node| topology.names[node.0 as usize].trim_end_matches(char::is_numeric));
        let (tier, gbps, us) = match ends {
            ["host", "edge"] => (Tier::Host, 10, 1),
            ["edge", "host"] => (Tier::Last, 10, 1),
            ["edge", "agg"] => (Tier::Leaf, 40, 2),
            ["agg", "edge"] => (Tier::Spine, 40, 2),
            ["agg", "core"] | ["core", "agg"] => (Tier::Spine, 100, 5),
            _ => panic!("{ends:?}"),
        };
        let condition = &link.condition;
        assert_eq!(
            (link.tier, condition.rate, condition.delay),
            (tier, Rate::from_gbps(gbps), Span::from_us(us))
        );
    }
    assert_eq!(topology.tier_of_switch[0], 0);
    assert_eq!(topology.tier_of_switch[8], 1);
    assert_eq!(topology.tier_of_switch[16], 2);
}

#[test]
fn the_bisection_is_that_of_the_narrowest_layer() {
    let whole = fabric("k = 4").shape();
    assert_eq!(whole.bisection_rate, Rate::from_gbps(16 * 10 / 2));
    assert_eq!(whole.rack_uplink_rate, [Rate::from_gbps(20); 8]);
    let slow_core = fabric("k = 4\ncore_rate = '5Gbps'").shape();
    assert_eq!(slow_core.bisection_rate, Rate::from_gbps(16 * 5 / 2));
}

#[test]
fn a_lost_core_costs_its_aggregation_switches_weight() {
    let fabric = fabric("k = 4\ncore_rate = '4Gbps'\n[[fault]]\nlink = 'agg0-core1'\ndown = true");
    let topology = &fabric.topology;
    let routes = Routes::at_start(topology);
    // From edge0 (ports: two hosts, agg0, agg1) to another pod: half of agg0's cores are left.
    let RouteEntry::Group(group) = routes.entry(0, 7) else { panic!("no group") };
    let (ports, weights) = routes.group(group);
    assert_eq!((ports.len(), weights), (2, [4_000, 8_000].as_slice()));
    let RouteEntry::Group(group) = routes.entry(1, 0) else { panic!("no group") };
    assert_eq!(routes.group(group).1, [10_000, 10_000], "within the pod nothing changes");
    assert!(matches!(routes.entry(8, 7), RouteEntry::Port(_)), "agg0 has one core left");
}

#[test]
fn a_lost_core_cable_costs_no_weight_while_the_rest_carries_what_an_edge_sends() {
    // (fabric, lost cable, from edge0 to another pod, from agg0): one edge's cable of 10 Gbit/s is
    // narrower than what is left.
    let cases = [
        ("k = 4", "agg0-core1", vec![10_000, 10_000], None),
        ("k = 8", "agg0-core1", vec![10_000; 4], Some(vec![10_000; 3])),
        (
            "k = 8\ncore_rate = '2.5Gbps'",
            "agg0-core1",
            vec![7_500, 10_000, 10_000, 10_000],
            Some(vec![2_500; 3]),
        ),
    ];
    for (tree, lost, of_edge, of_agg) in cases {
        let fabric = fabric(&format!("{tree}\n[[fault]]\nlink = '{lost}'\ndown = true"));
        let (topology, routes) = (&fabric.topology, Routes::at_start(&fabric.topology));
        let weights = |switch: usize| match routes.entry(switch, topology.racks() - 1) {
            RouteEntry::Group(group) => Some(routes.group(group).1.to_vec()),
            _ => None,
        };
        assert_eq!(weights(0), Some(of_edge), "{tree}");
        assert_eq!(weights(topology.racks()), of_agg, "{tree}: agg0 leaves the lost cable out");
    }
}

#[test]
fn a_fabric_of_512_racks_and_1280_switches_has_256_routes_between_pods() {
    let topology = fabric("k = 32").topology;
    assert_eq!((topology.racks(), topology.switches, topology.hosts), (512, 1_280, 8_192));
    let routes = Routes::at_start(&topology);
    assert_eq!(routes.routes_to(&topology, 0, 511), 256);
}

/// The best time of a lone packet over all paths from a switch to a rack.
fn best(topology: &Topology, routes: &Routes, from: u32, rack: usize, bytes: u64) -> u64 {
    if from == topology.switch_of_rack[rack] {
        return 0;
    }
    let through = |link: u32| {
        let spec = &topology.links[link as usize];
        let condition = &spec.condition;
        let hop = condition.rate.service(Bytes::new(bytes)).as_ps() + condition.delay.as_ps();
        hop + best(topology, routes, spec.to.0 - topology.hosts as u32, rack, bytes)
    };
    routes.next_links(topology, from as usize, rack).map(through).min().unwrap()
}

proptest! {
    #[test]
    fn a_lone_packet_is_ideal_over_the_best_of_all_paths(
        drawn in prop::collection::vec((10u64..100_000, 0u64..20_000), 96),
        kinds in 1usize..97,
        bytes in 40u16..1_500,
        src in 0u16..16,
        dst in 0u16..16,
    ) {
        prop_assume!(src != dst);
        let mut topology = fabric("k = 4").topology;
        for (link, &(mbps, ns)) in topology.links.iter_mut().zip(drawn[..kinds].iter().cycle()) {
            link.condition.rate = Rate::from_bps(mbps * 1_000_000);
            link.condition.delay = Span::from_ns(ns);
        }
        let routes = Routes::at_start(&topology);
        let [src_rack, dst_rack] = [src, dst].map(|host| usize::from(topology.rack_of_host[usize::from(host)]));
        let ends = [u32::from(src), topology.link_to_host[usize::from(dst)]];
        let at_ends: u64 = ends
            .map(|link| topology.links[link as usize].condition)
            .map(|c| c.rate.service(Bytes::new(bytes.into())).as_ps() + c.delay.as_ps())
            .iter()
            .sum();
        let between = best(&topology, &routes, topology.switch_of_rack[src_rack], dst_rack, bytes.into());
        let packets = FlowPackets { full_bytes: bytes, full_count: 0, last_bytes: bytes };
        let ideal = Ideal::new(topology).fct(HostId(src), HostId(dst), packets, None);
        prop_assert_eq!(ideal, Some(Span::from_ps(at_ends + between)));
    }
}
