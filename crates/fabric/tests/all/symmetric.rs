//! Symmetric ECMP: what comes back takes the cables of what it answers, in reverse.
use crate::common::{Run, fabric, flow};
use weft_fabric::Results;
use weft_topology::Fabric;

const TOPOLOGIES: [&str; 5] = [
    "kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\n",
    "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 3\n",
    "kind = 'leaf-spine'\nleaves = 2\nspines = 5\nhosts_per_leaf = 2\nlinks_per_pair = 4\n",
    "kind = 'fat-tree'\nk = 4\n",
    "kind = 'fat-tree'\nk = 6\n",
];

/// The links that a lone flow used, in both directions.
fn used(results: &Results) -> Vec<usize> {
    (0..results.links.len()).filter(|&link| results.links[link].packets > 0).collect()
}

/// On a shortest path no cable is used both ways by one direction of a flow, so the paths are each
/// other's reverse if and only if every link that is used has its reverse used.
fn retraces(fabric: &Fabric, used: &[usize]) -> bool {
    used.iter().all(|&link| used.contains(&(fabric.topology.reverse[link] as usize)))
}

/// Counts lone flows from the first host to the last one, which differ by the seed alone: how many
/// retrace their path, and over how many paths they went.
fn retracing(text: &str, transport: &str, hash: &str, flows: u64) -> (usize, usize) {
    let fabric = fabric(text);
    let scheme = format!("name = 'ecmp'\nhash = '{hash}'");
    let last = fabric.topology.hosts as u16 - 1;
    let mut paths = Vec::new();
    let mut symmetric = 0;
    for seed in 0..flows {
        let run = Run { seed, ..Run::new(&fabric, transport, &scheme) };
        let results = run.flows(&[flow(0, 0, last, 20_000)]);
        assert!(results.flows[0].delivered.is_some());
        let used = used(&results);
        symmetric += usize::from(retraces(&fabric, &used));
        paths.push(used);
    }
    paths.sort();
    paths.dedup();
    (symmetric, paths.len())
}

#[test]
fn data_retraces_the_path_of_its_credits_on_every_topology() {
    // Every up-link of a leaf leads to a path of its own; in a fat-tree every core switch does.
    for (text, paths) in TOPOLOGIES.into_iter().zip([4, 6, 20, 4, 9]) {
        // The chance that 12 flows a path leave one of 20 out is below 20 x exp(-12).
        let flows = 12 * paths as u64;
        assert_eq!(
            retracing(text, "name = 'expresspass'", "symmetric", flows),
            (flows as usize, paths),
            "{text}"
        );
    }
}

#[test]
fn other_hashes_do_not_retrace_everywhere() {
    // Of two paths chosen by two hashes, one in four is the same; three parallel cables need more
    // than tiers that agree.
    let (symmetric, _) = retracing(TOPOLOGIES[0], "name = 'tcp'", "per-switch", 40);
    assert!(symmetric < 25, "{symmetric}");
    let (symmetric, _) = retracing(TOPOLOGIES[1], "name = 'tcp'", "shared", 40);
    assert!(symmetric < 25, "{symmetric}");
}

#[test]
fn paths_stay_symmetric_when_a_spine_is_gone() {
    let down = |cable: String| format!("[[fault]]\nlink = '{cable}'\ndown = true\n");
    let single: String = (0..3).map(|leaf| down(format!("leaf{leaf}-spine1"))).collect();
    let parallel: String =
        (0..8).map(|cable| down(format!("leaf{}-spine1.{}", cable % 2, cable / 2))).collect();
    for (text, faults, paths) in [(TOPOLOGIES[0], single, 3), (TOPOLOGIES[2], parallel, 16)] {
        let (symmetric, found) =
            retracing(&format!("{text}{faults}"), "name = 'tcp'", "symmetric", 12 * paths);
        assert_eq!((symmetric as u64, found as u64), (12 * paths, paths));
    }
}
