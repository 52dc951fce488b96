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
    ("ecmp", &[("balancer.name", "ecmp")], "5c5975906078265d"),
    (
        "wcmp, a slow link",
        &[("balancer.name", "wcmp"), ("fabric.fault", "[{ link = 'leaf0-spine1', rate = '1Gbps' }]")],
        "8c8f5e60d37f5992",
    ),
    ("rps", &[("balancer.name", "rps")], "d9a8b9b86c3cbfdd"),
    ("drb", &[("balancer.name", "drb")], "dd7aad7be77c82c3"),
    ("letflow", &[("balancer.name", "letflow"), ("balancer.gap", "50us")], "c90bc69d465e95e8"),
    (
        "drill, SACK, loss",
        &[
            ("balancer.name", "drill"),
            ("transport.name", "tcp"),
            ("transport.sack", "true"),
            ("fabric.fault", "[{ share = 0.5, loss = 0.01 }]"),
        ],
        "0c7d28c1ab527532",
    ),
    ("presto", &[("balancer.name", "presto")], "52d0cdf87848e0e5"),
    (
        "a link that fails and returns",
        &[
            ("balancer.name", "ecmp"),
            ("fabric.fault", "[{ link = 'leaf0-spine1', at = '1ms', until = '9ms', down = true }]"),
            ("fabric.reroute_after", "2ms"),
        ],
        "5811aea54ca6c694",
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
        "8577d95c824721c7",
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
