//! Faults: which links they hit, and the state of each over time.

use std::path::Path;

use weft_topology::{Condition, Fabric, FabricSpec, Topology};
use weft_units::{Rate, Span, Time};

const SMALL: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 2\n";

fn seeded(seed: u64, faults: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(&format!("{SMALL}{faults}")).unwrap();
    spec.build(seed, Path::new(".")).unwrap()
}

fn fabric(faults: &str) -> Fabric {
    seeded(1, faults)
}

fn message(faults: &str) -> String {
    let spec: FabricSpec = toml::from_str(&format!("{SMALL}{faults}")).unwrap();
    spec.build(1, Path::new(".")).unwrap_err().to_string()
}

/// The names of the links that are down at the start.
fn down(topology: &Topology) -> Vec<String> {
    let links = (0..topology.links.len() as u32).filter(|&link| !topology.links[link as usize].condition.up);
    links.map(|link| topology.link_name(link)).collect()
}

fn condition(topology: &Topology, name: &str) -> Condition {
    let link = (0..topology.links.len() as u32).find(|&link| topology.link_name(link) == name);
    topology.links[link.unwrap() as usize].condition
}

#[test]
fn a_name_means_both_directions_or_one_and_all_parallel_cables_or_one() {
    let hit = |name: &str| down(&fabric(&format!("[[fault]]\nlink = '{name}'\ndown = true")).topology);
    assert_eq!(hit("leaf0-spine1"), ["leaf0>spine1.0", "leaf0>spine1.1", "spine1>leaf0.0", "spine1>leaf0.1"]);
    assert_eq!(hit("leaf0>spine1"), ["leaf0>spine1.0", "leaf0>spine1.1"]);
    assert_eq!(hit("leaf0-spine1.1"), ["leaf0>spine1.1", "spine1>leaf0.1"]);
    assert_eq!(hit("spine1>leaf0.0"), ["spine1>leaf0.0"]);
    assert_eq!(hit("host3-leaf1"), ["host3>leaf1", "leaf1>host3"]);
}

#[test]
fn every_link_name_is_the_name_of_that_link_in_a_fault() {
    let topology = fabric("").topology;
    for link in 0..topology.links.len() as u32 {
        let name = topology.link_name(link);
        let hit = fabric(&format!("[[fault]]\nlink = '{name}'\ndown = true")).topology;
        assert_eq!(down(&hit), [name]);
    }
}

#[test]
fn each_effect_changes_its_own_property_and_no_other() {
    let healthy = condition(&fabric("").topology, "leaf0>spine0.0");
    let with = |effect: &str| {
        let fault = format!("[[fault]]\nlink = 'leaf0-spine0'\n{effect}");
        condition(&fabric(&fault).topology, "leaf0>spine0.0")
    };
    assert_eq!(with("rate = '1Gbps'"), Condition { rate: Rate::from_gbps(1), ..healthy });
    assert_eq!(with("delay = '10us'"), Condition { delay: Span::from_us(11), ..healthy });
    assert_eq!(with("loss = 0.25"), Condition { loss: 0.25, ..healthy });
    assert_eq!(with("blackhole = 0.5"), Condition { blackhole: 0.5, ..healthy });
    assert_eq!(with("down = true"), Condition { up: false, ..healthy });
}

#[test]
fn a_share_is_that_many_cables_drawn_by_the_seed() {
    // Eight cables between leaves and spines, four to hosts.
    let hit = |seed, keys: &str| down(&seeded(seed, &format!("[[fault]]\n{keys}\ndown = true")).topology);
    assert_eq!(hit(1, "share = 0.2").len(), 2 * 2, "0.2 x 8 = 1.6, rounded, both directions");
    assert_eq!(hit(1, "share = 1.0\ntier = 'leaf-spine'").len(), 16);
    assert_eq!(hit(1, "share = 0.5\ntier = 'host-leaf'").len(), 2 * 2);
    assert!(hit(1, "share = 1.0").iter().all(|name| !name.contains("host")));
    assert_eq!(hit(3, "share = 0.5"), hit(3, "share = 0.5"));
    assert!((0..10).any(|seed| hit(seed, "share = 0.5") != hit(10, "share = 0.5")), "the seed matters");
}

#[test]
fn a_fault_with_an_end_gives_the_state_back() {
    let fabric = fabric("[[fault]]\nlink = 'leaf0>spine0.0'\nat = '2ms'\nuntil = '5ms'\nrate = '1Gbps'");
    let healthy = condition(&fabric.topology, "leaf0>spine0.0");
    assert_eq!(healthy.rate, Rate::from_gbps(10), "not yet");
    let events: Vec<(Time, Condition)> = fabric.faults.iter().map(|e| (e.at, e.condition)).collect();
    let slow = Condition { rate: Rate::from_gbps(1), ..healthy };
    let ms = |ms| Time::ZERO + Span::from_ms(ms);
    assert_eq!(events, [(ms(2), slow), (ms(5), healthy)]);
}

#[test]
fn overlapping_faults_compose_in_the_order_of_the_list() {
    let link = "link = 'leaf0>spine0.0'";
    let fabric = fabric(&format!(
        "[[fault]]\n{link}\nrate = '5Gbps'\nuntil = '4ms'\n\
         [[fault]]\n{link}\nat = '1ms'\nuntil = '3ms'\nrate = '1Gbps'\nloss = 0.1\n\
         [[fault]]\n{link}\nat = '2ms'\nuntil = '6ms'\nloss = 0.5\n"
    ));
    assert_eq!(condition(&fabric.topology, "leaf0>spine0.0").rate, Rate::from_gbps(5));
    let summary = |e: &weft_topology::FaultEvent| {
        (e.at.as_us() as u64, e.condition.rate.as_bps() / 1_000_000_000, e.condition.loss)
    };
    let events: Vec<_> = fabric.faults.iter().map(summary).collect();
    assert_eq!(
        events,
        [(1_000, 1, 0.1), (2_000, 1, 0.5), (3_000, 5, 0.5), (4_000, 10, 0.5), (6_000, 10, 0.0)]
    );
}

#[test]
fn events_are_sorted_by_time_and_link() {
    let fabric = fabric(
        "[[fault]]\nshare = 1.0\nat = '3ms'\ndown = true\n[[fault]]\nlink = 'leaf0-spine0'\nat = '1ms'\nloss = 0.1",
    );
    let order: Vec<(Time, u32)> = fabric.faults.iter().map(|event| (event.at, event.link)).collect();
    assert_eq!(order.len(), 4 + 16);
    assert!(order.is_sorted());
}

#[test]
fn faults_change_no_traffic() {
    assert_eq!(fabric("[[fault]]\nshare = 0.5\nrate = '1Gbps'").shape(), fabric("").shape());
}

#[test]
fn what_is_probably_not_meant_is_said() {
    let warnings = |faults: &str| fabric(faults).warnings;
    assert_eq!(warnings("[[fault]]\nlink = 'leaf0-spine0'\ndown = true"), [""; 0]);
    let said = warnings("[[fault]]\nshare = 0.01\ndown = true");
    assert_eq!(said, ["fabric.fault[0]: its share rounds to no cable at all"]);
    let said = warnings("[[fault]]\nlink = 'leaf0-spine0'\nrate = '40Gbps'");
    assert_eq!(said, ["fabric.fault[0].rate = 40Gbps is more than a link has without the fault"]);
    let said = warnings("[[fault]]\nlink = 'leaf0>host1'\ndown = true");
    assert_eq!(said, ["with the links that are down at the start, host0 does not reach host1"]);
    let said = warnings("[[fault]]\nlink = 'host1>leaf0'\ndown = true");
    assert_eq!(said, ["with the links that are down at the start, host1 does not reach host0"]);
}

#[test]
fn wrong_links_are_refused_with_what_there_is() {
    let of_link = |name: &str| message(&format!("[[fault]]\nlink = '{name}'\ndown = true"));
    let said = of_link("leaf0-spine7");
    assert!(said.starts_with("fabric.fault[0].link names \"spine7\", and there is no such node"), "{said}");
    assert!(said.contains("did you mean \"spine"), "{said}");
    assert_eq!(
        of_link("leaf0-leaf1"),
        "fabric.fault[0].link = \"leaf0-leaf1\": no such cable; leaf0 has cables to host0, host1, spine0, spine1"
    );
    assert!(of_link("leaf0-spine1.2").contains("allowed is a number from .0 to .1"));
    for malformed in ["leaf0", "leaf0-spine1.x", ""] {
        let said = of_link(malformed);
        assert!(said.contains("\"leaf0>spine1\" for one"), "{said}");
    }
    let said = message("[[fault]]\nshare = 0.5\ntier = 'leafspine'\ndown = true");
    assert!(
        said.contains("no such tier (did you mean \"leaf-spine\"?); there are host-leaf, leaf-spine"),
        "{said}"
    );
}

#[test]
fn wrong_values_are_refused_with_what_is_allowed() {
    let with = |keys: &str| message(&format!("[[fault]]\nlink = 'leaf0-spine0'\n{keys}"));
    for (keys, expected) in [
        ("loss = -0.1", "fabric.fault[0].loss = -0.1: allowed is a number from 0 to 1"),
        ("blackhole = nan", "fabric.fault[0].blackhole = NaN: allowed is a number from 0 to 1"),
        ("rate = '0bps'", "fabric.fault[0].rate = 0bps: allowed is 1Mbps to 100Tbps"),
        ("delay = '11s'", "fabric.fault[0].delay = 11s: allowed is at most 10s"),
        (
            "down = true\nat = '2ms'\nuntil = '2ms'",
            "fabric.fault[0].until = 2ms: allowed is later than fabric.fault[0].at, which is 2ms",
        ),
        ("down = true\nat = '18000000s'", "fabric.fault[0].at = 18000000s: allowed is at most 1000000s"),
        (
            "share = 0.5\ndown = true",
            "fabric.fault[0].link and fabric.fault[0].share exclude each other: a fault names its links in one way",
        ),
        (
            "tier = 'leaf-spine'\ndown = true",
            "fabric.fault[0].link and fabric.fault[0].tier exclude each other: a tier is what a share is taken of",
        ),
        (
            "",
            "fabric.fault[0].rate is missing: a fault has an effect: one of `rate`, `delay`, `loss`, `down` and \
             `blackhole`",
        ),
    ] {
        assert_eq!(with(keys), expected);
    }
    let said = message("[[fault]]\nshare = 1.5\ndown = true");
    assert_eq!(said, "fabric.fault[0].share = 1.5: allowed is a number from 0 to 1");
    let said = message("[[fault]]\ndown = true");
    assert!(said.starts_with("fabric.fault[0].link is missing"), "{said}");
}
