//! Fingerprints: a hash of the flows table of a handful of specs.
//!
//! A pass proves that no result moved, on this machine or another. It does not prove that results are right. A change
//! that moves one on purpose says so in CHANGELOG.md and writes the new hash here.

mod common;

use common::{run, small};
use weft_lab::fingerprint;

/// What to call it, what it changes in the small run, and its hash.
type Pinned = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const PINNED: [Pinned; 9] = [
    ("ecmp", &[("balancer.name", "ecmp")], "c482a4801afb9824"),
    (
        "wcmp, a slow link",
        &[("balancer.name", "wcmp"), ("fabric.fault", "[{ link = 'leaf0-spine1', rate = '1Gbps' }]")],
        "68ba9c5d245bafd6",
    ),
    ("rps", &[("balancer.name", "rps")], "a06018eb3603cf86"),
    ("drb", &[("balancer.name", "drb")], "8da91892c657b3fb"),
    ("letflow", &[("balancer.name", "letflow"), ("balancer.gap", "50us")], "7ef4667b94e46f5b"),
    (
        "drill, SACK, loss",
        &[
            ("balancer.name", "drill"),
            ("transport.name", "tcp"),
            ("transport.sack", "true"),
            ("fabric.fault", "[{ share = 0.5, loss = 0.01 }]"),
        ],
        "3b072556fd39d6ea",
    ),
    ("presto", &[("balancer.name", "presto")], "86ab0f9fe984467e"),
    (
        "a link that fails and returns",
        &[
            ("balancer.name", "ecmp"),
            ("fabric.fault", "[{ link = 'leaf0-spine1', at = '1ms', until = '9ms', down = true }]"),
            ("fabric.reroute_after", "2ms"),
        ],
        "47d1b86117214ebd",
    ),
    (
        "a fat-tree, handshakes, packets counted",
        &[
            (
                "fabric",
                "{ kind = 'fat-tree', k = 4, switch_queue = { buffer = '60packets', mark = '20packets' } }",
            ),
            ("transport.handshake", "true"),
        ],
        "1436ea8d7edbb003",
    ),
];

#[test]
fn the_flows_of_pinned_specs_have_not_moved() {
    let moved: Vec<String> = PINNED
        .iter()
        .filter_map(|(name, changes, pinned)| {
            let found = fingerprint(&run(&small(changes)).flows);
            (found != *pinned).then(|| format!("{name}: {found}, pinned {pinned}"))
        })
        .collect();
    assert!(moved.is_empty(), "results moved:\n{}", moved.join("\n"));
}
