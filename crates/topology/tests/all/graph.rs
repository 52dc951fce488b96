//! Fabrics from graph files: the examples, every mistake, and random graphs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use weft_topology::{Fabric, FabricError, FabricSpec, LinkKnowledge, Routes, Topology};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/fabrics")
}

fn built(spec: &str, base_dir: &Path) -> Result<Fabric, FabricError> {
    toml::from_str::<FabricSpec>(spec).unwrap().build(1, base_dir)
}

/// Fabric of a graph file with this text. Each caller has a file of its own.
fn graph(name: &str, text: &str) -> Result<Fabric, FabricError> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = format!("{name}.toml");
    std::fs::write(dir.join(&file), text).unwrap();
    built(&format!("kind = 'graph'\nfile = '{file}'"), dir)
}

fn message(name: &str, text: &str) -> String {
    graph(name, text).unwrap_err().to_string()
}

#[test]
fn a_graph_of_a_leaf_spine_is_that_leaf_spine() {
    let listed = built("kind = 'graph'\nfile = 'leaf-spine-4x2.toml'", &examples()).unwrap();
    let keys = "leaves = 4\nspines = 2\nhosts_per_leaf = 4\nlinks_per_pair = 2\nfabric_rate = '40Gbps'";
    let generated = built(&format!("kind = 'leaf-spine'\n{keys}"), Path::new(".")).unwrap();
    assert_eq!(listed.topology, generated.topology);
    assert_eq!(listed.shape(), generated.shape());
}

#[test]
fn every_example_is_a_fabric_without_warnings() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(examples()).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let fabric = built(&format!("kind = 'graph'\nfile = {:?}", file.to_str().unwrap()), Path::new("."));
        assert_eq!(fabric.unwrap().warnings, [""; 0], "{file:?}");
    }
}

const NODES: &str = "hosts = ['h0', 'h1']\nswitches = ['s0', 's1']\nrate = '10Gbps'\ndelay = '1us'\n";

#[test]
fn ports_to_hosts_come_first_whatever_the_order_of_the_file() {
    let links = "[[link]]\nfrom = 's0'\nto = 's1'\n[[link]]\nfrom = 's0'\nto = 'h0'\n[[link]]\nfrom = 'h1'\nto = 's1'";
    let topology = graph("ports", &format!("{NODES}{links}")).unwrap().topology;
    let ends: Vec<u32> = topology.links.iter().map(|link| link.to.0).collect();
    assert_eq!(ends, [2, 3, 0, 3, 1, 2]);
}

#[test]
fn a_wrong_file_is_named_with_the_place() {
    let missing =
        built("kind = 'graph'\nfile = 'no-such-file.toml'", Path::new(".")).unwrap_err().to_string();
    assert!(missing.starts_with("fabric.file: no-such-file.toml: "), "{missing}");
    let unknown_key =
        message("unknown-key", &format!("{NODES}[[link]]\nfrom = 'h0'\nto = 's0'\nspeed = '1Gbps'"));
    assert!(unknown_key.contains("line 8") && unknown_key.contains("`speed`"), "{unknown_key}");
    let wrong_node = message("wrong-node", "hosts = [3]\nswitches = []");
    assert!(wrong_node.contains("{ prefix = \"host\", count = 16 }"), "{wrong_node}");
    let wrong_end = message("wrong-end", &format!("{NODES}[[link]]\nfrom = 3\nto = 's0'"));
    assert!(wrong_end.contains("a name, or a list of names"), "{wrong_end}");
}

#[test]
fn wrong_nodes_are_refused() {
    let said = message("bad-name", "hosts = ['a-b']\nswitches = ['s']");
    assert_eq!(said, "bad-name.toml: hosts = \"a-b\": allowed is a name of letters, digits and underscores");
    let said = message("no-hosts", "hosts = []\nswitches = ['s']");
    assert_eq!(said, "no-hosts.toml: hosts = 0: allowed is at least 1");
    let said = message("twice", "hosts = ['a', { prefix = 'x', count = 3 }]\nswitches = ['x1']");
    assert_eq!(said, "twice.toml: the name \"x1\" is given to two nodes: each needs its own");
    let said = message("many", "hosts = [{ prefix = 'h', count = 4000000000 }]\nswitches = ['s']");
    assert!(said.contains("4000000000 hosts: at most 65536 are possible"), "{said}");
}

#[test]
fn wrong_links_are_refused() {
    let with = |name: &str, links: &str| message(name, &format!("{NODES}{links}"));
    let said = with("unknown", "[[link]]\nfrom = 'h0'\nto = 's7'");
    assert_eq!(
        said,
        "unknown.toml: link[0].to names \"s7\", and there is no such node; there are h0, h1, s0, s1"
    );
    let said = with("hosts", "[[link]]\nfrom = 'h0'\nto = 'h1'");
    assert_eq!(said, "hosts.toml: a cable connects h0 to h1: a host connects to a switch");
    let said = with("self", "[[link]]\nfrom = 's0'\nto = 's0'");
    assert_eq!(said, "self.toml: a cable connects s0 to s0: both ends are one node");
    let said =
        with("two-cables", "[[link]]\nfrom = 'h0'\nto = ['s0', 's1']\n[[link]]\nfrom = 'h1'\nto = 's0'");
    assert_eq!(said, "two-cables.toml: host h0 has 2 cables: a host has exactly one, to a switch");
    let said = with("no-cable", "[[link]]\nfrom = 'h0'\nto = 's0'");
    assert_eq!(said, "no-cable.toml: host h1 has 0 cables: a host has exactly one, to a switch");
    let said = with("apart", "[[link]]\nfrom = 'h0'\nto = 's0'\n[[link]]\nfrom = 'h1'\nto = 's1'");
    assert_eq!(said, "apart.toml: the fabric is not connected: no cables lead from h0 to h1");
    let said = with("none", "[[link]]\nfrom = 'h0'\nto = 's0'\ncount = 0");
    assert_eq!(said, "none.toml: link[0].count = 0: allowed is at least 1");
    let said = with("nobody", "[[link]]\nfrom = []\nto = 's0'");
    assert_eq!(said, "nobody.toml: link[0].from = []: allowed is at least one name");
    let said = with("slow", "[[link]]\nfrom = 'h0'\nto = 's0'\nrate = '0bps'");
    assert_eq!(said, "slow.toml: link[0].rate = 0bps: allowed is 1Mbps to 100Tbps");
    let said =
        message("no-rate", "hosts = ['h']\nswitches = ['s']\n[[link]]\nfrom = 'h'\nto = 's'\ndelay = '1us'");
    assert_eq!(
        said,
        "no-rate.toml: link[0].rate is missing: neither the link nor the file's \"rate\" says it"
    );
    let said = with(
        "ports",
        "[[link]]\nfrom = 's0'\nto = 's1'\ncount = 40000\n[[link]]\nfrom = ['h0', 'h1']\nto = 's0'",
    );
    assert!(said.contains("40002 ports at one switch: at most 32767"), "{said}");
    let said = with("cables", "[[link]]\nfrom = 's0'\nto = 's1'\ncount = 4294967295");
    assert!(said.contains("4294967295 cables: at most 4194304"), "{said}");
}

/// Follows every choice of the tables; each hop must be new. Says whether every choice arrives.
fn walk(
    topology: &Topology,
    routes: &Routes,
    switch: u32,
    rack: usize,
    path: &mut Vec<u32>,
) -> Result<bool, String> {
    if switch == topology.switch_of_rack[rack] {
        return Ok(true);
    }
    if path.contains(&switch) {
        return Err(format!("a loop at switch {switch} after {path:?}"));
    }
    let links: Vec<u32> = routes.next_links(topology, switch as usize, rack).collect();
    let ends: BTreeSet<u32> = links.iter().map(|&link| topology.links[link as usize].to.0).collect();
    let mut arrives = !ends.is_empty();
    path.push(switch);
    for end in ends {
        arrives &= walk(topology, routes, end - topology.hosts as u32, rack, path)?;
    }
    path.pop();
    Ok(arrives)
}

/// Whether every choice at every switch leads to every rack; an error if some choice leads in a
/// circle.
fn all_arrive(topology: &Topology, routes: &Routes) -> Result<bool, String> {
    let mut all = true;
    for rack in 0..topology.racks() {
        for switch in 0..topology.switches as u32 {
            all &= walk(topology, routes, switch, rack, &mut Vec::new())?;
        }
    }
    Ok(all)
}

/// The text of a graph: where each host lives, cables between switches, and perhaps a chain through
/// all switches, without which few graphs are connected.
fn graph_text(switches: u32, chained: bool, homes: &[u32], cables: &[(u32, u32, u32)]) -> String {
    let cable = |from: &str, to: &str, count: u32| {
        format!("[[link]]\nfrom = '{from}'\nto = '{to}'\ncount = {count}\n")
    };
    let mut parts = vec![format!(
        "hosts = [{{ prefix = 'h', count = {} }}]\nswitches = [{{ prefix = 's', count = {switches} }}]\n\
         rate = '10Gbps'\ndelay = '1us'\n",
        homes.len()
    )];
    let hosts = homes.iter().enumerate();
    parts.extend(hosts.map(|(host, home)| cable(&format!("h{host}"), &format!("s{}", home % switches), 1)));
    for (a, b, count) in cables.iter().map(|(a, b, count)| (a % switches, b % switches, *count)) {
        if a != b {
            parts.push(cable(&format!("s{a}"), &format!("s{b}"), count));
        }
    }
    let chain = (1..switches).filter(|_| chained);
    parts.extend(chain.map(|switch| cable(&format!("s{}", switch - 1), &format!("s{switch}"), 1)));
    parts.concat()
}

fn homes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0u32..9, 1..7)
}

fn cables() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    prop::collection::vec((0u32..9, 0u32..9, 1u32..3), 0..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_graphs_are_refused_or_every_choice_leads_to_its_rack(
        switches in 1u32..9, chained in any::<bool>(), homes in homes(), cables in cables(),
    ) {
        match graph("random", &graph_text(switches, chained, &homes, &cables)) {
            Ok(fabric) => {
                let routes = Routes::at_start(&fabric.topology);
                prop_assert_eq!(all_arrive(&fabric.topology, &routes), Ok(true));
            }
            Err(FabricError::InFile { error, .. }) => {
                prop_assert!(!chained && matches!(*error, FabricError::Disconnected { .. }), "{error}");
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn no_choice_makes_a_loop_while_only_some_know_of_failures(
        switches in 1u32..9,
        homes in homes(),
        cables in cables(),
        known in prop::collection::vec(prop::bool::weighted(0.8), 1..64),
        local in prop::collection::vec(prop::bool::weighted(0.8), 1..64),
    ) {
        let topology = graph("unknown-failures", &graph_text(switches, true, &homes, &cables)).unwrap().topology;
        let each_link = |up: &[bool]| up.iter().copied().cycle().take(topology.links.len()).collect::<Vec<bool>>();
        let routes = Routes::compute(
            &topology,
            &LinkKnowledge { up: each_link(&known), ..LinkKnowledge::at_start(&topology) },
            &each_link(&local),
        );
        prop_assert!(all_arrive(&topology, &routes).is_ok(), "{:?}", all_arrive(&topology, &routes));
    }
}
