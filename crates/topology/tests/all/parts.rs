//! Fabrics cut into parts: what is in which, and what keeps a fabric whole.

use std::path::Path;

use proptest::prelude::*;
use weft_topology::{Cut, Fabric, FabricSpec, Parts, Whole};
use weft_units::Span;

fn fabric(keys: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(keys).unwrap();
    spec.build(1, Path::new(".")).unwrap()
}

fn cut(fabric: &Fabric, may_split: bool) -> Result<Parts, Whole> {
    cut_into(fabric, may_split, usize::MAX)
}

fn cut_into(fabric: &Fabric, may_split: bool, most: usize) -> Result<Parts, Whole> {
    Parts::of(&fabric.topology, &fabric.faults, Cut { may_split, most })
}

/// Every link is in one part; so are hosts, in order, and switches that were not split.
fn assert_whole(fabric: &Fabric, parts: &Parts) {
    let topology = &fabric.topology;
    let mut links: Vec<u32> = parts.parts.iter().flat_map(|part| part.links.clone()).collect();
    links.sort_unstable();
    assert!(links.into_iter().eq(0..topology.links.len() as u32), "every link is in one part");
    let hosts = parts.parts.iter().flat_map(|part| part.hosts.clone());
    assert!(hosts.eq(0..topology.hosts as u32), "hosts are in the order of parts");
    let mut switches: Vec<u32> = parts.parts.iter().flat_map(|part| part.switches.clone()).collect();
    switches.sort_unstable();
    assert!(
        switches.into_iter().eq((0..topology.switches as u32).filter(|switch| !parts.split.contains(switch)))
    );
    for part in &parts.parts {
        assert!(part.links.is_sorted() && part.switches.is_sorted() && !part.hosts.is_empty());
    }
}

#[test]
fn a_leaf_has_its_hosts_and_the_ports_of_spines_that_lead_to_it() {
    let fabric =
        fabric("kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nfabric_delay = '700ns'");
    let parts = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &parts);
    assert_eq!((parts.parts.len(), parts.split.clone(), parts.lookahead), (3, 3..5, Span::from_ns(700)));
    let names: Vec<_> = parts.parts[1].links.iter().map(|&link| fabric.topology.link_name(link)).collect();
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
        let parts = cut(&fabric, may_split).unwrap_or_else(|why| panic!("{keys}: {why}"));
        assert_whole(&fabric, &parts);
        assert_eq!((parts.parts.len(), parts.split.is_empty()), (3, true), "{keys}");
        let switches: Vec<_> = parts.parts.iter().map(|part| part.switches.clone()).collect();
        assert_eq!(switches, [vec![0, 3], vec![1, 4], vec![2]], "{keys}: spines go by turns");
    }
}

#[test]
fn a_pod_of_a_fat_tree_is_a_part() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4\nhost_delay = '1us'\ncore_delay = '5us'");
    let parts = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &parts);
    assert_eq!((parts.parts.len(), parts.split.clone(), parts.lookahead), (4, 16..20, Span::from_us(2)));
    assert_eq!(parts.parts[2].hosts, 8..12);
    // Per pod: 4 hosts, 2 edge and 2 aggregation switches with 4 ports each, and a port of each of 4 cores.
    assert!(parts.parts.iter().all(|part| part.links.len() == 4 + 16 + 4));
}

#[test]
fn a_link_that_fails_below_the_highest_switches_gives_them_other_ways() {
    let keys = "kind = 'fat-tree'\nk = 4\n[[fault]]\nlink = 'edge0-agg0'\nat = '1ms'\ndown = true";
    let fabric = fabric(keys);
    let parts = cut(&fabric, true).unwrap();
    assert_whole(&fabric, &parts);
    assert!(parts.split.is_empty());
    assert!(parts.parts.iter().all(|part| part.switches.len() == 4 + 1), "cores go by turns");
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
    assert_eq!(cut(&fabric(one), true), Err(Whole::OnePiece));
    let now = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nfabric_delay = '0ps'";
    assert_eq!(cut(&fabric(now), true), Err(Whole::NoDelay));
}

proptest! {
    #[test]
    fn every_link_and_host_is_in_one_part(leaves in 2u32..6, spines in 1u32..5, hosts in 1u32..5, pairs in 1u32..3, most in 2usize..8, may_split: bool) {
        let keys = format!(
            "kind = 'leaf-spine'\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\nlinks_per_pair = {pairs}"
        );
        let fabric = fabric(&keys);
        let parts = cut_into(&fabric, may_split, most).unwrap();
        assert_whole(&fabric, &parts);
        prop_assert_eq!(!parts.split.is_empty(), may_split && pairs == 1);
        prop_assert_eq!(parts.parts.len(), most.min(leaves as usize));
    }
}
