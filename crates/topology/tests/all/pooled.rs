//! Fabrics with one queue between the racks.

use std::path::Path;

use weft_topology::{
    Condition, Fabric, FabricSpec, FlowPackets, Ideal, Limit, Marking, NotPooled, POOL, Routes, Threshold,
    Tier, Topology,
};
use weft_units::{Rate, Span, Time};

const SMALL: &str = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 2\n\
                     [switch_queue]\nbuffer = '100KB'\nmark = '30KB'\n";

fn fabric(text: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(text).unwrap();
    spec.build(1, Path::new(".")).unwrap()
}

fn link(topology: &Topology, name: &str) -> usize {
    (0..topology.links.len()).find(|&link| topology.link_name(link as u32) == name).unwrap()
}

fn condition(topology: &Topology, name: &str) -> Condition {
    topology.links[link(topology, name)].condition
}

#[test]
fn each_rack_has_one_link_up_and_one_down_with_the_rates_of_all_and_all_else_stays() {
    let real = fabric(SMALL);
    let pooled = real.pooled().unwrap();
    let (before, after) = (&real.topology, &pooled.topology);
    assert_eq!((after.hosts, after.racks(), after.switches), (6, 3, 4));
    assert_eq!(after.rack_of_host, before.rack_of_host);
    assert_eq!(after.tier_of_switch, [0, 0, 0, 1]);
    assert_eq!(after.names.last().unwrap(), POOL);
    let own = condition(before, "leaf0>spine0.0");
    for name in ["leaf0>pool", "pool>leaf2"] {
        let expected = Condition { rate: Rate::from_bps(4 * own.rate.as_bps()), ..own };
        assert_eq!(condition(after, name), expected, "{name}");
        let queue = after.links[link(after, name)].queue;
        assert_eq!(queue.limit, Limit::AtMost(Threshold::Bytes(400_000)));
        assert_eq!(queue.marking, Marking::Step(Threshold::Bytes(120_000)));
    }
    for host in 0..6 {
        assert_eq!(after.links[host].condition, before.links[host].condition);
        let (down, was) = (after.link_to_host[host] as usize, before.link_to_host[host] as usize);
        assert_eq!(after.links[down].condition, before.links[was].condition);
        assert_eq!(after.links[down].tier, Tier::Last);
        assert_eq!(
            after.names[after.links[host].to.0 as usize],
            before.names[before.links[host].to.0 as usize]
        );
    }
    for (number, spec) in (0u32..).zip(&after.links) {
        assert_eq!(after.reverse[after.reverse[number as usize] as usize], number);
        assert!(
            (after.first_link[spec.from.0 as usize]..after.first_link[spec.from.0 as usize + 1])
                .contains(&number)
        );
    }
    assert_eq!(Routes::at_start(after).most_routes(after), 1, "there is nothing to choose");
}

#[test]
fn what_happens_to_a_cable_happens_to_its_share_of_the_link() {
    let pooled = fabric(&format!(
        "{SMALL}\
         [[fault]]\nlink = 'leaf0-spine0'\nat = '1ms'\nuntil = '3ms'\ndown = true\n\
         [[fault]]\nlink = 'leaf0>spine1.0'\nat = '2ms'\nrate = '1Gbps'\n\
         [[fault]]\nlink = 'leaf1-spine1'\nloss = 0.5\n\
         [[fault]]\nlink = 'host5-leaf2'\nat = '1ms'\nrate = '3Gbps'\n"
    ))
    .pooled()
    .unwrap();
    let topology = &pooled.topology;
    let at = |name: &str, ms: u64| {
        let link = link(topology, name) as u32;
        let until = Time::ZERO + Span::from_ms(ms);
        let mut changes = pooled.faults.iter().filter(|fault| fault.link == link && fault.at <= until);
        changes.next_back().map_or(topology.links[link as usize].condition, |fault| fault.condition)
    };
    // Four cables of 10 Gbit/s.
    let gbps = |name| [0, 1, 2, 3].map(|ms| at(name, ms).rate.as_bps() / 1_000_000_000);
    assert_eq!(gbps("leaf0>pool"), [40, 20, 11, 31]);
    assert_eq!(gbps("pool>leaf0"), [40, 20, 20, 40]);
    // Another cable of the rack loses nothing: no packet has to be lost.
    assert!(condition(topology, "leaf1>pool").loss.abs() < 1e-12);
    assert_eq!(at("host5>leaf2", 1).rate, Rate::from_gbps(3));
    let mut times: Vec<_> = pooled.faults.iter().map(|fault| (fault.at, fault.link)).collect();
    assert!(times.is_sorted());
    times.dedup();
    assert_eq!(times.len(), pooled.faults.len(), "one change of a link at a time");
}

#[test]
fn a_rack_without_any_cable_that_works_is_cut_off() {
    let pooled = fabric(&format!(
        "{SMALL}[[fault]]\nlink = 'leaf0-spine0'\ndown = true\n[[fault]]\nlink = 'leaf0-spine1'\ndown = true"
    ));
    let pooled = pooled.pooled().unwrap();
    assert!(!condition(&pooled.topology, "leaf0>pool").up && condition(&pooled.topology, "leaf1>pool").up);
}

#[test]
fn it_is_never_slower_than_the_fabric_alone() {
    for text in
        [SMALL, "kind = 'fat-tree'\nk = 4", "kind = 'leaf-spine'\nleaves = 2\nspines = 5\nhosts_per_leaf = 9"]
    {
        let real = fabric(text);
        let pooled = real.pooled().unwrap();
        let (mut slow, mut fast) = (Ideal::new(real.topology.clone()), Ideal::new(pooled.topology));
        let last = real.topology.hosts as u16 - 1;
        for full in [0, 1, 7, 1_000] {
            let packets = FlowPackets { full_bytes: 1_500, full_count: full, last_bytes: 700 };
            let time = |ideal: &mut Ideal| {
                ideal.fct(weft_packet::HostId(0), weft_packet::HostId(last), packets, None).unwrap()
            };
            assert!(time(&mut fast) <= time(&mut slow), "{text}: {full} packets");
        }
    }
}

#[test]
fn a_fabric_that_would_be_slower_pooled_is_refused() {
    let alone = fabric("kind = 'leaf-spine'\nleaves = 1\nspines = 2\nhosts_per_leaf = 2");
    assert_eq!(alone.pooled().unwrap_err(), NotPooled::OneRack);
    let wide =
        fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 200\nhosts_per_leaf = 2\nfabric_rate = '1Tbps'");
    assert_eq!(wide.pooled().unwrap_err(), NotPooled::TooFast);
}
