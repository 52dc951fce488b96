//! Fabrics cut into partitions: what is in which, and what keeps a fabric whole.

use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use weft_topology::{Fabric, FabricSpec, NotPartitionable, PartitionRequest, Partitioning};
use weft_units::Span;

use crate::any_graph::{any_graph, with_graph};

fn fabric(keys: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(keys).unwrap();
    spec.build(1, Path::new(".")).unwrap()
}

/// A graph of these hosts and switches, with cables of 1 us unless they say so.
fn graph(hosts: &str, switches: &str, links: &[(&str, &str, &str)]) -> Fabric {
    let tables = links.iter().map(|(from, to, more)| {
        let ends = [from, to].map(|end| end.replace(' ', "', '"));
        format!("[[link]]\nfrom = ['{}']\nto = ['{}']\n{more}\n", ends[0], ends[1])
    });
    let nodes = [hosts, switches].map(|nodes| format!("['{}']", nodes.replace(' ', "', '")));
    let text = format!(
        "hosts = {}\nswitches = {}\nrate = '10Gbps'\ndelay = '1us'\n{}",
        nodes[0],
        nodes[1],
        tables.collect::<String>()
    );
    with_graph("", &text).unwrap()
}

/// The hosts of each partition.
fn hosts(partitioning: &Partitioning) -> Vec<std::ops::Range<u32>> {
    partitioning.partitions.iter().map(|partition| partition.hosts.clone()).collect()
}

fn cut(fabric: &Fabric, may_split: bool) -> Result<Partitioning, NotPartitionable> {
    cut_into(fabric, may_split, usize::MAX)
}

fn cut_into(fabric: &Fabric, may_split: bool, most: usize) -> Result<Partitioning, NotPartitionable> {
    Partitioning::of(&fabric.topology, &fabric.faults, PartitionRequest { may_split, most })
}

/// Every link is in one partition; so are hosts, in order, and switches that were not split.
fn assert_whole(fabric: &Fabric, partitioning: &Partitioning) {
    let topology = &fabric.topology;
    let mut links: Vec<u32> =
        partitioning.partitions.iter().flat_map(|partition| partition.links.clone()).collect();
    links.sort_unstable();
    assert!(links.into_iter().eq(0..topology.links.len() as u32), "every link is in one partition");
    let hosts = partitioning.partitions.iter().flat_map(|partition| partition.hosts.clone());
    assert!(hosts.eq(0..topology.hosts as u32), "hosts are in the order of partitions");
    let mut switches: Vec<u32> =
        partitioning.partitions.iter().flat_map(|partition| partition.switches.clone()).collect();
    switches.sort_unstable();
    assert!(
        switches
            .into_iter()
            .eq((0..topology.switches as u32).filter(|switch| !partitioning.split.contains(switch)))
    );
    for partition in &partitioning.partitions {
        assert!(partition.links.is_sorted() && partition.switches.is_sorted() && !partition.hosts.is_empty());
    }
}

#[test]
fn a_leaf_has_its_hosts_and_the_ports_of_spines_that_lead_to_it() {
    let fabric =
        fabric("kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nfabric_delay = '700ns'");
    let partitioning = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &partitioning);
    assert_eq!(
        (partitioning.partitions.len(), partitioning.split.clone(), partitioning.lookahead),
        (3, 3..5, Span::from_ns(700))
    );
    let names: Vec<_> =
        partitioning.partitions[1].links.iter().map(|&link| fabric.topology.link_name(link)).collect();
    let from_hosts = ["host4>leaf1", "host5>leaf1", "host6>leaf1", "host7>leaf1"];
    let from_leaf =
        ["leaf1>host4", "leaf1>host5", "leaf1>host6", "leaf1>host7", "leaf1>spine0", "leaf1>spine1"];
    let from_spines = ["spine0>leaf1", "spine1>leaf1"];
    assert_eq!(names, [&from_hosts[..], &from_leaf, &from_spines].concat());
}

#[test]
fn spines_belong_to_one_part_where_they_choose_or_somebody_looks() {
    let straight = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 1\n";
    let parallel = format!("{straight}links_per_pair = 2");
    let failing = format!("{straight}[[fault]]\nlink = 'leaf0-spine1'\nat = '1ms'\ndown = true");
    let changing = format!("{straight}[[fault]]\nlink = 'leaf0-spine1'\nat = '1ms'\ndelay = '5us'");
    for (keys, may_split) in [(straight, false), (&parallel, true), (&failing, true), (&changing, true)] {
        let fabric = fabric(keys);
        let partitioning = cut(&fabric, may_split).unwrap_or_else(|why| panic!("{keys}: {why}"));
        assert_whole(&fabric, &partitioning);
        assert_eq!((partitioning.partitions.len(), partitioning.split.is_empty()), (3, true), "{keys}");
        let switches: Vec<_> =
            partitioning.partitions.iter().map(|partition| partition.switches.clone()).collect();
        assert_eq!(switches, [vec![0, 3], vec![1, 4], vec![2]], "{keys}: spines go by turns");
    }
}

#[test]
fn a_pod_of_a_fat_tree_is_a_part() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4\nhost_delay = '1us'\ncore_delay = '5us'");
    let partitioning = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &partitioning);
    assert_eq!(
        (partitioning.partitions.len(), partitioning.split.clone(), partitioning.lookahead),
        (4, 16..20, Span::from_us(2))
    );
    assert_eq!(partitioning.partitions[2].hosts, 8..12);
    // Per pod: 4 hosts, 2 edge and 2 aggregation switches with 4 ports each, and a port of each of
    // 4 cores.
    assert!(partitioning.partitions.iter().all(|partition| partition.links.len() == 4 + 16 + 4));
}

#[test]
fn a_link_that_fails_below_the_highest_switches_gives_them_other_ways() {
    let keys = "kind = 'fat-tree'\nk = 4\n[[fault]]\nlink = 'edge0-agg0'\nat = '1ms'\ndown = true";
    let fabric = fabric(keys);
    let partitioning = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &partitioning);
    assert!(partitioning.split.is_empty());
    assert!(
        partitioning.partitions.iter().all(|partition| partition.switches.len() == 4 + 1),
        "cores go by turns"
    );
}

#[test]
fn the_lookahead_is_the_least_delay_that_a_link_between_parts_ever_has() {
    let keys = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nhost_delay = '1us'\nfabric_delay = '2us'\n";
    let slow_at_first =
        format!("{keys}[[fault]]\ntier = 'leaf-spine'\nshare = 1.0\ndelay = '5us'\nuntil = '1ms'");
    for keys in [keys, &slow_at_first] {
        assert_eq!(cut(&fabric(keys), true).unwrap().lookahead, Span::from_us(2), "{keys}");
    }
    let near = keys.replace("'1us'", "'400ns'");
    let lookahead = cut(&fabric(&near), true).unwrap().lookahead;
    assert_eq!(lookahead, Span::from_ns(800), "an answer is there sooner than a packet crosses");
}

#[test]
fn what_cannot_be_cut_says_why() {
    let one = "kind = 'leaf-spine'\nleaves = 1\nspines = 2\nhosts_per_leaf = 4";
    assert_eq!(cut(&fabric(one), true), Err(NotPartitionable::OneComponent));
    let now = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nfabric_delay = '0ps'";
    assert_eq!(cut(&fabric(now), true), Err(NotPartitionable::NoDelay));
}

#[test]
fn a_switch_with_hosts_is_in_the_part_of_its_hosts_whatever_its_tier() {
    let star = graph("h0 h1 h2 h3", "s0", &[("h0 h1 h2 h3", "s0", "")]);
    let ring = graph(
        "h0 h1 h2 h3 h4 h5",
        "s0 s1 s2",
        &[
            ("h0 h1", "s0", ""),
            ("h2 h3", "s1", ""),
            ("h4 h5", "s2", ""),
            ("s0", "s1", ""),
            ("s1 s0", "s2", ""),
        ],
    );
    for may_split in [true, false] {
        assert_eq!(cut(&star, may_split), Err(NotPartitionable::OneComponent));
        let partitioning = cut(&ring, may_split).unwrap();
        assert_whole(&ring, &partitioning);
        assert_eq!(hosts(&partitioning), [0..2, 2..4, 4..6]);
        assert_eq!((partitioning.lookahead, partitioning.split.is_empty()), (Span::from_us(1), true));
    }
}

#[test]
fn racks_are_parts_where_the_highest_switches_do_not_hold_them_together() {
    // A spine between two leaves, and a switch behind the spine, which is the highest.
    let behind = graph(
        "h0 h1",
        "leaf0 leaf1 spine0 far0",
        &[("h0", "leaf0", ""), ("h1", "leaf1", ""), ("leaf0 leaf1", "spine0", ""), ("spine0", "far0", "")],
    );
    let partitioning = cut(&behind, true).unwrap();
    assert_whole(&behind, &partitioning);
    let switches: Vec<_> =
        partitioning.partitions.iter().map(|partition| partition.switches.clone()).collect();
    assert_eq!((hosts(&partitioning), switches), (vec![0..1, 1..2], vec![vec![0, 2], vec![1, 3]]));
}

#[test]
fn racks_whose_hosts_have_each_other_between_them_are_one_part() {
    let links =
        [("h0 h2", "s0", ""), ("h1", "s1", ""), ("h3", "s2", ""), ("s0 s1", "s2", ""), ("s0", "s1", "")];
    let partitioning = cut(&graph("h0 h1 h2 h3", "s0 s1 s2", &links), true).unwrap();
    assert_eq!(hosts(&partitioning), [0..3, 3..4]);
    let scattered =
        graph("h0 h1 h2 h3", "s0 s1", &[("h0 h1 h3", "s0", ""), ("h2", "s1", ""), ("s0", "s1", "")]);
    assert_eq!(cut(&scattered, true), Err(NotPartitionable::ScatteredHosts));
    let rail = |servers: u32| {
        fabric(&format!("kind = 'rail'\nservers = {servers}\nservers_per_group = 4\ngpus = 2\nspines = 2"))
    };
    assert_eq!(
        cut(&rail(4), true),
        Err(NotPartitionable::ScatteredHosts),
        "the cards of a server have a leaf each"
    );
    let groups = rail(12);
    let partitioning = cut(&groups, true).unwrap();
    assert_whole(&groups, &partitioning);
    assert_eq!(hosts(&partitioning), [0..8, 8..16, 16..24]);
}

#[test]
fn switches_between_which_a_packet_takes_no_time_are_in_one_part() {
    let near = "delay = '0us'";
    let links = |between: &'static str| {
        [
            ("h0", "leaf0", ""),
            ("h1", "leaf1", ""),
            ("h2", "leaf2", ""),
            ("leaf0 leaf1 leaf2", "spine0", ""),
            ("leaf0", "leaf1", between),
            ("leaf1 leaf2", "spine1", near),
        ]
    };
    let switches = "leaf0 leaf1 leaf2 spine0 spine1";
    let fabric = graph("h0 h1 h2", switches, &links(""));
    let partitioning = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &partitioning);
    assert_eq!(hosts(&partitioning), [0..1, 1..3]);
    assert_eq!(cut(&graph("h0 h1 h2", switches, &links(near)), true), Err(NotPartitionable::NoDelay));
}

/// Others are one rack, have scattered hosts, or racks that reach each other at once.
#[test]
fn most_graphs_are_cut() {
    let mut runner = TestRunner::deterministic();
    let is_cut = |_| {
        let text = any_graph().new_tree(&mut runner).unwrap().current();
        cut(&with_graph("", &text).unwrap(), true).is_ok()
    };
    assert!((0..200).map(is_cut).filter(|&is_cut| is_cut).count() > 100);
}

proptest! {
    #[test]
    fn every_link_and_host_is_in_one_part(leaves in 2u32..6, spines in 1u32..5, hosts in 1u32..5, pairs in 1u32..3, most in 2usize..8, may_split: bool) {
        let keys = format!(
            "kind = 'leaf-spine'\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\nlinks_per_pair = {pairs}"
        );
        let fabric = fabric(&keys);
        let partitioning = cut_into(&fabric, may_split, most).unwrap();
        assert_whole(&fabric, &partitioning);
        prop_assert_eq!(!partitioning.split.is_empty(), may_split && pairs == 1);
        prop_assert_eq!(partitioning.partitions.len(), most.min(leaves as usize));
    }

    /// The engine's assumptions on partitions are asserted where they are made.
    #[test]
    fn any_graph_that_is_cut_is_in_parts_that_the_engine_can_work_on(text in any_graph(), most in 2usize..9, may_split: bool) {
        let fabric = with_graph("", &text).unwrap();
        match cut_into(&fabric, may_split, most) {
            Ok(partitioning) => assert_whole(&fabric, &partitioning),
            Err(why) => prop_assert!(fabric.topology.racks() < 2 || why != NotPartitionable::OneComponent),
        }
    }
}
