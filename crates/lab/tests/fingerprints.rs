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
    ("ecmp", &[("balancer.name", "ecmp")], "e80c3f67e6b30047"),
    (
        "wcmp, a slow link",
        &[("balancer.name", "wcmp"), ("fabric.fault", "[{ link = 'leaf0-spine1', rate = '1Gbps' }]")],
        "6b00e87a486d44e8",
    ),
    ("rps", &[("balancer.name", "rps")], "5421029d9116acee"),
    ("drb", &[("balancer.name", "drb")], "1ccaa671b5e536c9"),
    ("letflow", &[("balancer.name", "letflow"), ("balancer.gap", "50us")], "75a2cd1b9678fe8c"),
    (
        "drill, SACK, loss",
        &[
            ("balancer.name", "drill"),
            ("transport.name", "tcp"),
            ("transport.sack", "true"),
            ("fabric.fault", "[{ share = 0.5, loss = 0.01 }]"),
        ],
        "57d358306bf62016",
    ),
    ("presto", &[("balancer.name", "presto")], "1d0aaa2bf5f347fa"),
    (
        "a link that fails and returns",
        &[
            ("balancer.name", "ecmp"),
            ("fabric.fault", "[{ link = 'leaf0-spine1', at = '1ms', until = '9ms', down = true }]"),
            ("fabric.reroute_after", "2ms"),
        ],
        "018119fb94de148b",
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
        "b84dd99f2b2922ac",
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
