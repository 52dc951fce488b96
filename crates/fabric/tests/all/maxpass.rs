//! MaxPass in a fabric: as many paths as ports, ExpressPass where there is one, and load that
//! spreads.
use crate::common::{Run, counter, fabric, fct, flow};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Purpose, Span, Stream};

const SYMMETRIC: &str = "name = 'ecmp'\nhash = 'symmetric'";
const FAT_TREE: &str = "kind = 'fat-tree'\nk = 4\nhost_rate = '10Gbps'\nfabric_rate = '10Gbps'\n";
/// Fabrics, with the number of paths between the racks of their first and their last host.
const TOPOLOGIES: [(&str, usize); 6] = [
    ("kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\n", 4),
    ("kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 3\n", 6),
    ("kind = 'leaf-spine'\nleaves = 2\nspines = 5\nhosts_per_leaf = 2\nlinks_per_pair = 4\n", 20),
    ("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\n", 1),
    ("kind = 'fat-tree'\nk = 4\n", 4),
    ("kind = 'fat-tree'\nk = 6\n", 9),
];

/// How many paths carried a lone flow's data, and whether every link that was used was used in both
/// directions: on a shortest path no cable is used both ways by one direction, so then data
/// retraced its credits.
fn paths_used(fabric: &Fabric, dst: u16, seed: u64, paths: u8, keep: u8) -> (usize, bool) {
    let transport = format!("name = 'maxpass'\npaths = {paths}\nkeep = {keep}");
    let run = Run { seed, paths_of: Some(0), ..Run::new(fabric, &transport, SYMMETRIC) };
    let results = run.flows(&[flow(0, 0, dst, 400_000)]);
    assert!(results.flows[0].acknowledged.is_some());
    assert_eq!(results.flows[0].sender.retransmissions, 0, "late is not lost");
    let used = |link: usize| results.links[link].packets > 0;
    let retraced =
        (0..results.links.len()).all(|link| used(link) == used(fabric.topology.reverse[link] as usize));
    let carried = results.paths.iter().filter(|path| path.bytes > 0).count();
    (carried.max(1), retraced)
}

#[test]
fn n_ports_lead_over_n_paths_and_data_retraces_its_credits_on_every_topology() {
    for (text, paths) in TOPOLOGIES {
        let fabric = fabric(text);
        let last = fabric.topology.hosts as u16 - 1;
        for seed in 0..6 {
            for wanted in [1, 2, 3, paths as u8, 200] {
                let expected = paths.min(usize::from(wanted));
                assert_eq!(
                    paths_used(&fabric, last, seed, wanted, wanted),
                    (expected, true),
                    "{wanted} of {text}"
                );
            }
        }
    }
}

#[test]
fn nearer_hosts_have_fewer_paths_and_flows_between_them_end_all_the_same() {
    let fabric = fabric(FAT_TREE);
    // Hosts 0 and 1 share an edge switch, 2 is in the same pod, 4 in another one.
    for (dst, paths) in [(1, 1), (2, 2), (4, 4)] {
        assert_eq!(paths_used(&fabric, dst, 1, 4, 4), (paths, true));
        assert!(paths_used(&fabric, dst, 1, 4, 2).1);
    }
}

/// Flows between hosts drawn at random, one every `gap_us`.
fn random_flows(hosts: u64, count: u64, gap_us: u64, size: u64) -> Vec<Flow> {
    let mut draw = Stream::new(7, Purpose::Transport, 0);
    (0..count)
        .map(|index| {
            let src = draw.below(hosts as u32) as u16;
            let dst = (src + 1 + draw.below(hosts as u32 - 1) as u16) % hosts as u16;
            flow(index * gap_us, src, dst, size)
        })
        .collect()
}

#[test]
fn with_one_path_and_the_same_control_it_is_expresspass_packet_for_packet() {
    let faults = "[[fault]]\nlink = 'edge0-agg0'\nloss = 0.02\n";
    for text in [FAT_TREE.to_owned(), format!("{FAT_TREE}{faults}")] {
        let fabric = fabric(&text);
        let mut flows = random_flows(16, 60, 10, 150_000);
        flows.extend((1..9).map(|src| flow(700, src, 0, 40_000)));
        for keys in ["", "\ncredit_spread = '8B'\ninitial_rate = 0.0625\ndecrease = 'as-printed'"] {
            let run = |transport: &str| {
                let transport = format!("{transport}{keys}");
                Run::new(&fabric, &transport, SYMMETRIC).flows(&flows)
            };
            let maxpass = run("name = 'maxpass'\npaths = 1\nkeep = 1\nfeedback = 'expresspass'");
            let expresspass = run("name = 'expresspass'");
            assert!(expresspass.packets.credits_dropped > 0, "the control is at work");
            // Everything but the memory that the simulator takes.
            assert_eq!(Results { memory: expresspass.memory, ..maxpass }, expresspass);
        }
    }
}

/// Data that core links carried up, in descending order.
fn core_loads(fabric: &Fabric, results: &Results) -> Vec<u64> {
    let is_up = |link: &usize| {
        let name = fabric.topology.link_name(*link as u32);
        name.split_once('>').is_some_and(|(from, to)| from.contains("agg") && to.contains("core"))
    };
    let mut loads: Vec<u64> =
        (0..results.links.len()).filter(is_up).map(|link| results.links[link].bytes).collect();
    loads.sort_unstable_by(|a, b| b.cmp(a));
    loads
}

#[test]
fn flows_that_collide_on_the_single_path_of_expresspass_spread_over_core_links_that_are_free() {
    let fabric = fabric(FAT_TREE);
    let flows = [flow(0, 0, 12, 20_000_000), flow(0, 1, 14, 20_000_000)];
    // At 10 Gbit/s a host's cable carries one of them in 16.9 ms, and 94.8 % of the wire are data.
    let alone = 20e6 * 1_538.0 / 1_460.0 / 1.25e9 / (1_538.0 / 1_622.0);
    let slower =
        |results: &Results| (0..2).map(|index| fct(results, &flows, index).as_s()).fold(0.0, f64::max);
    let mut collided = 0;
    for seed in 0..12 {
        let run = |transport: &str| Run { seed, ..Run::new(&fabric, transport, SYMMETRIC) }.flows(&flows);
        let expresspass = run("name = 'expresspass'");
        // The second link has the other direction's credits at most.
        if core_loads(&fabric, &expresspass)[1] > 20_000_000 / 8 {
            continue;
        }
        collided += 1;
        // One core link has all of the data: it takes the time of both, one after the other.
        assert!(slower(&expresspass) > 1.95 * alone);
        let maxpass = run("name = 'maxpass'");
        let loads = core_loads(&fabric, &maxpass);
        let all: u64 = loads.iter().sum();
        assert!(loads[1] > all / 8, "a second core link carries a good part: {loads:?}");
        assert!(slower(&maxpass) < slower(&expresspass), "{} s", slower(&maxpass));
    }
    // One seed in eight has both flows on one core link: both edge choices are the same, and both
    // choices after it.
    assert!(collided > 0, "no seed tells anything");
}

/// Spread of the loads of core links over their mean.
fn unevenness(fabric: &Fabric, results: &Results) -> f64 {
    let loads: Vec<f64> = core_loads(fabric, results).into_iter().map(|bytes| bytes as f64).collect();
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    (loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / loads.len() as f64).sqrt() / mean
}

#[test]
fn links_are_loaded_more_evenly_than_by_expresspass() {
    // MaxPass Fig. 11 and 12: the same flows, and the spread of what links carry.
    let fabric = fabric(FAT_TREE);
    let flows = random_flows(16, 150, 30, 500_000);
    for seed in 1..4 {
        let run = |transport: &str| Run { seed, ..Run::new(&fabric, transport, SYMMETRIC) }.flows(&flows);
        let (maxpass, expresspass) = (run("name = 'maxpass'"), run("name = 'expresspass'"));
        let (ours, theirs) = (unevenness(&fabric, &maxpass), unevenness(&fabric, &expresspass));
        assert!(ours < theirs, "{ours} against {theirs}");
    }
}

#[test]
fn paths_are_chosen_anew_under_lasting_congestion_and_not_by_a_lone_flow() {
    let fabric = fabric(FAT_TREE);
    let lone = Run::new(&fabric, "name = 'maxpass'", SYMMETRIC).flows(&[flow(0, 0, 12, 5_000_000)]);
    assert_eq!(counter(&lone, "path_reselections"), 0);
    // Four hosts send out of one pod, over one spine switch for each path's half: wherever else
    // they go, half of the way out is gone, so its credits go on being lost while flows keep to it.
    let fabric =
        crate::common::fabric(&format!("{FAT_TREE}[[fault]]\nlink = 'edge0-agg0'\nrate = '1Gbps'\n"));
    let flows: Vec<Flow> = (0..8).map(|index| flow(0, index % 2, 4 + index, 4_000_000)).collect();
    let incast = Run::new(&fabric, "name = 'maxpass'", SYMMETRIC).flows(&flows);
    assert!(counter(&incast, "path_reselections") > 0);
    assert!(incast.flows.iter().all(|record| record.acknowledged.is_some()));
}

#[test]
fn what_faults_lose_is_sent_again_over_whatever_path() {
    let faults = "[[fault]]\nlink = 'edge0-agg0'\nloss = 0.05\n\
                  [[fault]]\nlink = 'edge6-agg7'\nat = '200us'\nblackhole = 1.0\n";
    let fabric = fabric(&format!("{FAT_TREE}{faults}"));
    let flows: Vec<Flow> = (0..12).map(|index| flow(40 * index, index as u16 % 2, 12, 200_000)).collect();
    for transport in ["name = 'maxpass'", "name = 'maxpass'\nkeep = 4", "name = 'maxpass'\nsingle_below = 40"]
    {
        let run = Run { time_limit: Span::from_ms(400), ..Run::new(&fabric, transport, SYMMETRIC) };
        let results = run.flows(&flows);
        for (record, flow) in results.flows.iter().zip(&flows) {
            assert!(record.acknowledged.is_some(), "{transport}");
            assert_eq!(record.delivered_bytes, flow.size_bytes);
        }
        assert!(results.flows.iter().map(|record| record.sender.retransmissions).sum::<u32>() > 0);
    }
}
