//! FlowBender and PLB: flows that are marked leave for another hash.
use crate::common::{Run, fabric, flow, link_named};
use weft_fabric::Results;
use weft_traffic::Flow;

/// Two leaves of 8 hosts, 8 spines: hosts 0 to 7 send, 8 to 15 receive. A host's own queue does not
/// mark: no other path would help there.
const FABRIC: &str =
    "kind = 'leaf-spine'\nleaves = 2\nspines = 8\nhosts_per_leaf = 8\nhost_queue = { mark = 'never' }\n";
const DCTCP: &str = "name = 'dctcp'";

/// Eight flows of 8 MB, one from each host, at once.
fn pairs() -> Vec<Flow> {
    (0..8).map(|host| flow(0, host, 8 + host, 8_000_000)).collect()
}

fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

fn mean_fct_us(results: &Results) -> f64 {
    let fcts = results.flows.iter().map(|record| record.delivered.unwrap().as_ps() as f64 / 1e6);
    fcts.sum::<f64>() / results.flows.len() as f64
}

#[test]
fn flows_that_share_a_hash_part_and_finish_sooner() {
    // Eight flows hash onto eight uplinks of their hosts' rate: some meet, whatever the seed, but
    // in 0.24 % of all draws (8!/8^8). A flow that meets another is marked, and moves until it is
    // alone or as good as alone.
    let fabric = fabric(FABRIC);
    let run = |scheme, seed| Run { seed, ..Run::new(&fabric, DCTCP, scheme) }.flows(&pairs());
    let (mut ecmp, mut moving) = (0.0, 0.0);
    for seed in 1..=5 {
        ecmp += mean_fct_us(&run("name = 'ecmp'", seed));
        let results = run("name = 'flowbender'", seed);
        assert!(counter(&results, "moves_by_marks") > 0, "seed {seed}");
        moving += mean_fct_us(&results);
    }
    assert!(moving < ecmp, "{moving} against {ecmp} with ECMP");
}

#[test]
fn plb_leaves_a_path_that_stays_congested_and_bears_what_dctcp_settles() {
    // Two flows on a link settle at about sqrt(2 / W) of marked segments (DCTCP, SIGCOMM 2010,
    // §3.3), and a window W of some 40 makes that 0.2: never twelve rounds in a row above a half.
    let fair = fabric(FABRIC);
    let results = Run::new(&fair, DCTCP, "name = 'plb'").flows(&pairs());
    assert_eq!(counter(&results, "rehashes_forced"), 0);
    // 64 flows over a fast and a slow path: some 32 on the slow one, whose least windows together
    // hold the queue at the threshold of 65 packets. Everything there is marked, for 32 x 500 KB at
    // 1 Gbit/s: 128 ms. A round is some 0.8 ms long then, and twelve of them are 10 ms.
    let slow = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\nhost_queue = { mark = 'never' }\n\
                [[fault]]\nlink = 'leaf0>spine1'\nrate = '1Gbps'\n";
    let flows: Vec<Flow> = (0..64).map(|index| flow(0, index % 8, 8 + index / 8, 500_000)).collect();
    let slow = fabric(slow);
    let ecmp = Run::new(&slow, DCTCP, "name = 'ecmp'").flows(&flows);
    let plb = Run::new(&slow, DCTCP, "name = 'plb'").flows(&flows);
    assert!(counter(&plb, "rehashes_forced") > 0);
    assert!(mean_fct_us(&plb) < mean_fct_us(&ecmp));
}

#[test]
fn a_flow_that_is_alone_never_moves() {
    let fabric = fabric(FABRIC);
    for (scheme, moves) in [("name = 'flowbender'", "moves_by_marks"), ("name = 'plb'", "rehashes_forced")] {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&[flow(0, 0, 8, 8_000_000)]);
        assert_eq!((counter(&results, moves), results.flows[0].path_changes), (0, 0), "{scheme}");
    }
}

#[test]
fn a_flow_into_a_dead_link_leaves_it_after_its_timeout() {
    // Routing never learns of the failure: only the edge can help.
    let text = |spine| {
        format!(
            "{FABRIC}reroute_after = '1s'\n[[fault]]\nlink = 'spine{spine}-leaf1'\nat = '1ms'\ndown = true\n"
        )
    };
    for scheme in ["name = 'flowbender'", "name = 'plb'"] {
        let whole = fabric(FABRIC);
        let flows = [flow(0, 0, 8, 8_000_000)];
        let healthy = Run::new(&whole, DCTCP, scheme).flows(&flows);
        let used = |results: &Results, spine: usize| {
            results.links[link_named(&whole, &format!("leaf0>spine{spine}"))].bytes > 8_000_000
        };
        let spine = (0..8).find(|&spine| used(&healthy, spine)).unwrap();
        let broken = fabric(&text(spine));
        let results = Run::new(&broken, DCTCP, scheme).flows(&flows);
        assert!(results.flows[0].delivered.is_some(), "{scheme}");
        assert!(results.flows[0].sender.timeouts >= 1, "{scheme}: the failure cost a timeout");
        let ecmp =
            Run { time_limit: weft_units::Span::from_ms(500), ..Run::new(&broken, DCTCP, "name = 'ecmp'") };
        assert!(ecmp.flows(&flows).flows[0].delivered.is_none(), "a hash leads into the hole for ever");
    }
}
