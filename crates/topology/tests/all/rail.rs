//! Rail-optimised fabrics: which card is at which leaf, by how many switches cards reach each other, and what is refused.

use std::path::Path;

use weft_topology::{FabricSpec, Routes, Topology};
use weft_units::Rate;

fn topology(keys: &str) -> Topology {
    let spec: FabricSpec = toml::from_str(&format!("kind = 'rail'\n{keys}")).unwrap();
    spec.build(1, Path::new(".")).unwrap().topology
}

fn refusal(keys: &str) -> String {
    let spec: FabricSpec = toml::from_str(&format!("kind = 'rail'\n{keys}")).unwrap();
    spec.build(1, Path::new(".")).unwrap_err().to_string()
}

const SMALL: &str = "servers = 4\ngpus = 3\nservers_per_group = 2\nspines = 2";

#[test]
fn card_i_of_each_server_of_a_group_is_at_the_leaf_of_rail_i() {
    let topology = topology(SMALL);
    assert_eq!((topology.hosts, topology.racks()), (12, 6));
    // Server by server: servers 0 and 1 at leaves 0 to 2, servers 2 and 3 at leaves 3 to 5.
    assert_eq!(topology.rack_of_host, [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    assert_eq!(
        topology.names[12..],
        ["leaf0", "leaf1", "leaf2", "leaf3", "leaf4", "leaf5", "spine0", "spine1"]
    );
    // leaf4: the second cards of servers 2 and 3, then the spines.
    let ports = topology.first_link[16] as usize..topology.first_link[17] as usize;
    let ends: Vec<u32> = topology.links[ports].iter().map(|link| link.to.0).collect();
    assert_eq!(ends, [7, 10, 18, 19]);
}

#[test]
fn cards_of_one_rail_reach_each_other_by_one_switch_and_others_by_a_spine() {
    let topology = topology(SMALL);
    let routes = Routes::at_start(&topology);
    let ways = |from: usize, to: usize| {
        let racks = [from, to].map(|host| usize::from(topology.rack_of_host[host]));
        (racks[0] != racks[1]).then(|| routes.routes_to(&topology, racks[0], racks[1]))
    };
    assert_eq!(ways(0, 3), None, "card 0 of servers 0 and 1");
    // Two GPUs of one server: NVLink is not simulated.
    assert_eq!(ways(0, 1), Some(2));
    assert_eq!(ways(0, 6), Some(2), "card 0 of servers in two groups");
}

#[test]
fn the_default_is_sixteen_servers_of_eight_cards_of_400_gbit_a_second() {
    let topology = topology("");
    assert_eq!((topology.hosts, topology.racks(), topology.switches), (128, 8, 16));
    assert!(topology.links.iter().all(|link| link.condition.rate == Rate::from_gbps(400)));
    let fast = self::topology("host_rate = '800Gbps'\nfabric_rate = '800Gbps'");
    assert_eq!(fast.links[0].condition.rate, Rate::from_gbps(800));
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    for (keys, words) in [
        ("servers = 0", "fabric.servers"),
        ("gpus = 0", "fabric.gpus"),
        ("spines = 0", "fabric.spines"),
        ("servers = 6\nservers_per_group = 4", "fabric.servers_per_group = 4"),
        ("servers = 6\nservers_per_group = 0", "fabric.servers_per_group"),
        ("servers = 4000000000\ngpus = 8", "fabric.servers"),
    ] {
        let said = refusal(keys);
        assert!(said.contains(words), "{keys}: {said}");
    }
    assert!(refusal("servers = 6\nservers_per_group = 4").contains("a divisor of fabric.servers = 6"));
}
