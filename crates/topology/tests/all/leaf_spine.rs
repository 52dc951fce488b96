//! Leaf-spine fabrics: shape, ports, and the routes that follow, before and after a failure.

use std::path::Path;

use weft_packet::PortId;
use weft_topology::{Fabric, FabricSpec, LinkKnowledge, RouteEntry, Routes, Tier};
use weft_units::{Rate, Span};

fn fabric(toml: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(toml).unwrap();
    spec.build(1, Path::new(".")).unwrap()
}

fn group(routes: &Routes, switch: usize, rack: usize) -> (Vec<u16>, Vec<u32>) {
    let RouteEntry::Group(group) = routes.entry(switch, rack) else {
        panic!("{:?} is not a group", routes.entry(switch, rack))
    };
    let (ports, weights) = routes.group(group);
    (ports.iter().map(|port| port.0).collect(), weights.to_vec())
}

const SMALL: &str = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nlinks_per_pair = 2";

#[test]
fn the_default_fabric_is_the_one_of_the_guide() {
    let topology = fabric("kind = 'leaf-spine'").topology;
    assert_eq!((topology.hosts, topology.switches, topology.racks()), (128, 16, 8));
    assert_eq!(topology.links.len(), 2 * (128 + 64));
    assert!(topology.links.iter().all(|link| link.condition.rate == Rate::from_gbps(10)));
}

#[test]
fn hosts_leaves_and_spines_are_wired_in_order() {
    let topology = fabric(SMALL).topology;
    let names: Vec<&str> = topology.names.iter().map(String::as_str).collect();
    assert_eq!(names[0..2], ["host0", "host1"]);
    assert_eq!(names[12..], ["leaf0", "leaf1", "leaf2", "spine0", "spine1"]);
    assert_eq!(topology.rack_of_host, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(topology.tier_of_switch, [0, 0, 0, 1, 1]);
    // leaf1: hosts 4 to 7, then two links to spine0, then two to spine1.
    let ports = topology.first_link[13] as usize..topology.first_link[14] as usize;
    let ends: Vec<u32> = topology.links[ports.clone()].iter().map(|link| link.to.0).collect();
    assert_eq!(ends, [4, 5, 6, 7, 15, 15, 16, 16]);
    let tiers: Vec<Tier> = topology.links[ports].iter().map(|link| link.tier).collect();
    assert_eq!((tiers[0], tiers[7]), (Tier::Last, Tier::Leaf));
    assert_eq!(topology.links[topology.first_link[15] as usize].tier, Tier::Spine);
    for (link, spec) in topology.links.iter().enumerate() {
        let back = &topology.links[topology.reverse[link] as usize];
        assert_eq!((spec.from, spec.to), (back.to, back.from));
        assert_eq!(topology.reverse[topology.reverse[link] as usize], link as u32);
    }
    for (host, &link) in topology.link_to_host.iter().enumerate() {
        assert_eq!(topology.links[link as usize].to.0, host as u32);
    }
}

#[test]
fn stack_and_switch_delays_are_added_where_they_are_spent() {
    let delays = "\nhost_delay = '1us'\nfabric_delay = '2us'\nstack_delay = '10us'\nswitch_delay = '100ns'";
    let topology = fabric(&format!("{SMALL}{delays}")).topology;
    for link in &topology.links {
        let expected = match link.tier {
            Tier::Host => 1_000 + 10_000 + 100,
            Tier::Last => 1_000 + 10_000,
            Tier::Leaf | Tier::Spine => 2_000 + 100,
        };
        assert_eq!(link.condition.delay, Span::from_ns(expected), "{:?}", link.tier);
    }
}

#[test]
fn a_leaf_has_every_parallel_uplink_in_its_groups_and_a_spine_every_downlink() {
    let routes = Routes::at_start(&fabric(SMALL).topology);
    assert_eq!(group(&routes, 0, 1), (vec![4, 5, 6, 7], vec![10_000; 4]));
    assert_eq!(group(&routes, 3, 1), (vec![2, 3], vec![10_000; 2]));
    assert_eq!(routes.entry(1, 1), RouteEntry::None, "hosts of its own rack are not routed");
}

#[test]
fn explicit_routes_are_the_product_of_choices() {
    let topology = fabric(SMALL).topology;
    let routes = Routes::at_start(&topology);
    assert_eq!(routes.routes_to(&topology, 0, 2), 4 * 2);
    assert_eq!(routes.routes_to(&topology, 1, 1), 1);
}

#[test]
fn weights_are_the_capacity_behind_a_port() {
    let mut topology = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1").topology;
    // spine1>leaf1 at 1 Gbit/s: what leaf0 sends through spine1 cannot be more. Nodes: 2 hosts, 2
    // leaves, 2 spines.
    let spine1_leaf1 = topology.first_link[5] as usize + 1;
    topology.links[spine1_leaf1].condition.rate = Rate::from_gbps(1);
    let routes = Routes::at_start(&topology);
    assert_eq!(group(&routes, 0, 1), (vec![1, 2], vec![10_000, 1_000]));
    assert_eq!(group(&routes, 1, 0), (vec![1, 2], vec![10_000, 10_000]), "the other way is whole");
    assert_eq!(routes.entry(3, 1), RouteEntry::Port(PortId(1)));
}

#[test]
fn parallel_cables_share_the_capacity_behind_their_next_hop() {
    // (the rates of leaf0's two cables to spine1, of spine1's two to leaf1, weights of leaf0's four
    // uplinks), in Gbit/s and Mbit/s where two cables of 10 Gbit/s lead through spine0. 0 is a lost
    // cable.
    let cases = [
        ([10, 10], [10, 10], vec![10_000, 10_000, 10_000, 10_000]),
        ([10, 10], [0, 10], vec![10_000, 10_000, 5_000, 5_000]),
        ([10, 10], [4, 10], vec![10_000, 10_000, 7_000, 7_000]),
        ([10, 30], [10, 0], vec![10_000, 10_000, 2_500, 7_500]),
        ([0, 10], [10, 0], vec![10_000, 10_000, 10_000]),
    ];
    for (up, down, expected) in cases {
        let mut topology =
            fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nlinks_per_pair = 2")
                .topology;
        // Nodes: 2 hosts, 2 leaves, 2 spines. Ports of a leaf: its host, two cables to spine0, two
        // to spine1.
        let [leaf0_spine1, spine1_leaf1] = [topology.first_link[2] + 3, topology.first_link[5] + 2];
        for (first, rates) in [(leaf0_spine1, up), (spine1_leaf1, down)] {
            for (link, gbps) in (first as usize..).zip(rates) {
                topology.links[link].condition.rate = Rate::from_gbps(gbps.max(1));
                topology.links[link].condition.up = gbps > 0;
                let back = topology.reverse[link] as usize;
                topology.links[back].condition.up = gbps > 0;
            }
        }
        let routes = Routes::at_start(&topology);
        assert_eq!(group(&routes, 0, 1).1, expected, "{up:?} up, {down:?} down");
    }
}

#[test]
fn a_switch_avoids_its_own_dead_port_before_the_others_know() {
    let topology = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 3\nhosts_per_leaf = 1").topology;
    let all = vec![true; topology.links.len()];
    let known = |up: &[bool]| LinkKnowledge { up: up.to_vec(), ..LinkKnowledge::at_start(&topology) };
    let mut local = all.clone();
    let leaf0_spine1 = topology.first_link[2] as usize + 2;
    let spine1_leaf0 = topology.reverse[leaf0_spine1] as usize;
    local[leaf0_spine1] = false;
    local[spine1_leaf0] = false;

    let before = Routes::compute(&topology, &known(&all), &local);
    assert_eq!(group(&before, 0, 1).0, [1, 3], "leaf0 knows");
    assert_eq!(group(&before, 1, 0).0, [1, 2, 3], "leaf1 does not, and spine1 has no other way");
    assert_eq!(before.entry(3, 0), RouteEntry::None);

    let after = Routes::compute(&topology, &known(&local), &local);
    assert_eq!(group(&after, 1, 0).0, [1, 3], "all know");
    assert_eq!(after.entry(3, 0), RouteEntry::Port(PortId(1)), "spine1 goes round through leaf1");

    let back = Routes::compute(&topology, &known(&local), &all);
    assert_eq!(group(&back, 0, 1).0, [1, 2, 3], "leaf0 sees its port come back");
    assert_eq!(group(&back, 1, 0).0, [1, 3], "leaf1 does not know yet");
}
