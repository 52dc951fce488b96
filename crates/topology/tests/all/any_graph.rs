//! Any connected graph, as a file.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use weft_topology::{Fabric, FabricError, FabricSpec};

const RATES: [&str; 4] = ["10Gbps", "10Gbps", "1Gbps", "25Gbps"];
const DELAYS: [&str; 6] = ["1us", "1us", "1us", "300ns", "20us", "0ns"];

/// The fabric that these keys of a spec and this graph file describe. The file is one of this
/// test's.
pub fn with_graph(keys: &str, graph: &str) -> Result<Fabric, FabricError> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("{:?}.toml", std::thread::current().id());
    std::fs::write(folder.join(&name), graph).unwrap();
    let spec: FabricSpec = toml::from_str(&format!("kind = 'graph'\nfile = '{name}'\n{keys}")).unwrap();
    spec.build(1, folder)
}

/// How switches hang together.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Tree,
    Star,
    Chain,
    Ring,
    Mesh,
}

/// By cable between switches, its ends and how many there are side by side.
fn between(shape: Shape, tree: &[u8], further: Vec<(u8, u8, u8)>) -> Vec<(u8, u8, u8)> {
    let count = tree.len() as u8 + 1;
    let mut cables: Vec<(u8, u8, u8)> = match shape {
        Shape::Tree => (1..).zip(tree).map(|(switch, to)| (switch, to % switch, 1)).collect(),
        Shape::Star => (1..count).map(|switch| (switch, 0, 1)).collect(),
        Shape::Chain => (1..count).map(|switch| (switch, switch - 1, 1)).collect(),
        Shape::Ring => (0..count).map(|switch| (switch, (switch + 1) % count, 1)).collect(),
        Shape::Mesh => (1..count).flat_map(|a| (0..a).map(move |b| (a, b, 1))).collect(),
    };
    cables.extend(further.into_iter().map(|(a, b, side_by_side)| (a % count, b % count, side_by_side)));
    cables.retain(|(a, b, _)| a != b);
    cables
}

/// A connected graph: switches in some shape, further cables, several side by side, and hosts at
/// whichever switches, in the order of these or not.
pub fn any_graph() -> impl Strategy<Value = String> {
    let shape = prop::sample::select(vec![Shape::Tree, Shape::Star, Shape::Chain, Shape::Ring, Shape::Mesh]);
    let switches = (shape, prop::collection::vec(any::<u8>(), 0..7));
    let further = prop::collection::vec((any::<u8>(), any::<u8>(), 1u8..4), 0..6);
    let hosts = (prop::collection::vec(any::<u8>(), 2..12), prop::bool::weighted(0.8));
    let conditions = prop::collection::vec((0..RATES.len(), 0..DELAYS.len()), 1..6);
    (switches, further, hosts, conditions).prop_map(
        |((shape, tree), further, (mut at, in_order), conditions)| {
            let count = tree.len() as u8 + 1;
            at = at.iter().map(|switch| switch % count).collect();
            if in_order {
                at.sort_unstable();
            }
            let hosts = at.len();
            let of_hosts = at.iter().enumerate().map(|(host, at)| (format!("h{host}"), *at, 1));
            // A fabric of whose hosts one is reached at once stays whole.
            let at_host = |from: &str, delay: &'static str| {
                if from.starts_with('h') && delay == "0ns" { "1us" } else { delay }
            };
            let others = between(shape, &tree, further);
            let others = others.into_iter().map(|(from, to, count)| (format!("s{from}"), to, count));
            let mut text = format!(
                "hosts = [{{ prefix = 'h', count = {hosts} }}]\nswitches = [{{ prefix = 's', count = {count} }}]\n"
            );
            for ((from, to, count), (rate, delay)) in of_hosts.chain(others).zip(conditions.iter().cycle()) {
                let (rate, delay) = (RATES[*rate], at_host(&from, DELAYS[*delay]));
                writeln!(
                    text,
                    "[[link]]\nfrom = '{from}'\nto = 's{to}'\ncount = {count}\nrate = '{rate}'\ndelay = '{delay}'"
                )
                .unwrap();
            }
            text
        },
    )
}
