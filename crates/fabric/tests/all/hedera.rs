//! Hedera: two elephants on one path part when the controller has spoken, and not before.
use crate::common::{Run, fabric, flow, link_named};
use weft_fabric::Results;
use weft_traffic::Flow;
use weft_units::Span;

const HEDERA: &str = "name = 'hedera'\ninterval = '2ms'\ncontrol_delay = '100us'\ncontroller = 3\n";

fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

/// Elephants from the first two hosts of rack 0 to two others in `peers`.
fn elephants(peers: [u16; 2]) -> Vec<Flow> {
    vec![flow(0, 0, peers[0], 20_000_000), flow(0, 1, peers[1], 20_000_000)]
}

/// The first seed for which ECMP sends both over one uplink of the first leaf.
fn colliding_seed(run: impl Fn(u64) -> Results, uplinks: &[usize]) -> u64 {
    let collide = |seed: &u64| {
        let results = run(*seed);
        uplinks.iter().any(|&link| results.links[link].bytes > 40_000_000)
    };
    (1..100).find(collide).unwrap()
}

#[test]
fn colliding_elephants_part_after_a_poll_and_the_control_delay() {
    let leaf_spine = "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n";
    let fat_tree = "kind = 'fat-tree'\nk = 4\n";
    for (text, peers, uplinks) in [
        (leaf_spine, [4, 5], ["leaf0>spine0", "leaf0>spine1", "leaf0>spine2", "leaf0>spine3"].as_slice()),
        (fat_tree, [12, 14], ["edge0>agg0", "edge0>agg1"].as_slice()),
    ] {
        let fabric = fabric(text);
        let flows = elephants(peers);
        let uplinks: Vec<usize> = uplinks.iter().map(|name| link_named(&fabric, name)).collect();
        let run = |scheme, seed| Run { seed, ..Run::new(&fabric, "name = 'dctcp'", scheme) }.flows(&flows);
        let seed = colliding_seed(|seed| run("name = 'ecmp'", seed), &uplinks);
        let (ecmp, hedera) = (run("name = 'ecmp'", seed), run(HEDERA, seed));
        // Together on one link of 10 Gbit/s they take 33 ms; apart from 2.1 ms on, at least 8
        // Gbit/s each even with the recovery from a move, less than 24 ms.
        for (slow, fast) in ecmp.flows.iter().zip(&hedera.flows) {
            let [slow, fast] = [slow, fast].map(|record| record.delivered.unwrap().as_ps() / 1_000_000);
            assert!(fast < 24_000 && slow > 28_000, "{fast} us against {slow} us on {text}");
        }
        assert!(counter(&hedera, "paths_set") >= 1);
        let short =
            Run { seed, time_limit: Span::from_us(2_050), ..Run::new(&fabric, "name = 'dctcp'", HEDERA) };
        assert_eq!(counter(&short.flows(&flows), "paths_set"), 0, "nothing is known yet");
    }
}

#[test]
fn polls_reports_and_paths_take_bytes_on_links() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n");
    let results = Run::new(&fabric, "name = 'dctcp'", HEDERA).flows(&elephants([4, 5]));
    let bytes = counter(&results, "message_bytes");
    assert!(bytes > 0);
    // Within the rack a message takes two links, to the other rack four.
    let on_links = results.packets.control_bytes;
    assert!(on_links >= 2 * bytes && on_links <= 4 * bytes, "{on_links} for {bytes}");
}
