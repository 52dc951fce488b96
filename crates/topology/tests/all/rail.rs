//! Rail-optimised fabrics: which card is at which leaf, by how many switches cards reach each
//! other, and what is refused.

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

#[test]
fn in_two_planes_a_card_has_a_port_of_half_its_rate_to_a_leaf_of_each_and_no_way_from_one_to_the_other() {
    let topology = topology(&format!("{SMALL}\nplanes = 2\nhost_rate = '800Gbps'"));
    // A rack is a card: the first switch chooses the plane.
    assert_eq!((topology.hosts, topology.racks(), topology.switches), (12, 12, 12 + 2 * (6 + 2)));
    let names = [12, 23, 24, 30, 36, 38].map(|node: usize| topology.names[node].as_str());
    assert_eq!(names, ["nic0", "nic11", "leaf0", "leaf6", "spine0", "spine2"]);
    let links = |node: usize| {
        &topology.links[topology.first_link[node] as usize..topology.first_link[node + 1] as usize]
    };
    // nic4 is card 1 of server 1: rail 1 of the first group, leaf 1 of the first plane and of the
    // second, which is leaf 7.
    let [host, first, second] = links(16) else { panic!("{:?}", links(16)) };
    assert_eq!([host, first, second].map(|link| link.to.0), [4, 24 + 1, 24 + 7]);
    assert_eq!(
        [host, first, second].map(|link| link.condition.rate.as_bps() / 1_000_000_000),
        [800, 400, 400]
    );
    let planes = |node: usize| -> Vec<u32> { links(node).iter().map(|link| link.to.0).collect() };
    assert_eq!(planes(24 + 1), [12 + 1, 12 + 4, 36, 37], "leaf 1 of the first plane");
    assert_eq!(planes(24 + 7), [12 + 1, 12 + 4, 38, 39], "leaf 1 of the second");
    let routes = Routes::at_start(&topology);
    assert_eq!(routes.routes_to(&topology, 4, 1), 2, "over the rail's leaf, in each plane");
    assert_eq!(routes.routes_to(&topology, 4, 0), 4, "over two spines in each plane");
}

#[test]
fn one_plane_is_the_fabric_without_planes() {
    let [with, without] = ["planes = 1", ""].map(|key| topology(&format!("{SMALL}\n{key}")));
    assert_eq!((with.names, with.links.len()), (without.names, without.links.len()));
}

#[test]
fn planes_that_do_not_divide_a_card_are_refused() {
    assert_eq!(refusal("planes = 0"), "fabric.planes = 0: allowed is at least 1");
    assert_eq!(
        refusal("planes = 7\nhost_rate = '400Gbps'"),
        "fabric.planes = 7: allowed is a divisor of fabric.host_rate = 400Gbps, in bit/s"
    );
}
