//! Leaf-spine fabrics: every leaf has a cable, or several, to every spine.

use super::plan::{Cable, Census, Plan, check_count, check_delay, check_rate};
use crate::spec::{FabricError, LeafSpineSpec};

/// The names of its tiers.
pub(crate) const TIERS: &[&str] = &["host-leaf", "leaf-spine"];

/// `prefix` followed by 0, 1, 2, …
pub(crate) fn numbered(prefix: &str, count: u32) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

/// Hosts `host0`, … in the order of their leaves; then `leaf0`, …; then `spine0`, …. A leaf's
/// ports: its hosts, then spine by spine, parallel cables side by side.
pub(crate) fn plan(spec: &LeafSpineSpec) -> Result<Plan, FabricError> {
    for (key, count) in [
        ("fabric.leaves", spec.leaves),
        ("fabric.spines", spec.spines),
        ("fabric.hosts_per_leaf", spec.hosts_per_leaf),
        ("fabric.links_per_pair", spec.links_per_pair),
    ] {
        check_count(key, count)?;
    }
    check_rate("fabric.host_rate", spec.host_rate)?;
    check_rate("fabric.fabric_rate", spec.fabric_rate)?;
    check_delay("fabric.host_delay", spec.host_delay)?;
    check_delay("fabric.fabric_delay", spec.fabric_delay)?;
    census(spec).check()?;

    let hosts = spec.leaves * spec.hosts_per_leaf;
    let host_cable = |host: u32| {
        let b = hosts + host / spec.hosts_per_leaf;
        Cable { a: host, b, rate: spec.host_rate, delay: spec.host_delay, tier: 0 }
    };
    let fabric_cable = |leaf: u32, spine: u32| {
        let (a, b) = (hosts + leaf, hosts + spec.leaves + spine);
        Cable { a, b, rate: spec.fabric_rate, delay: spec.fabric_delay, tier: 1 }
    };
    let mut cables: Vec<Cable> = (0..hosts).map(host_cable).collect();
    for leaf in 0..spec.leaves {
        for spine in 0..spec.spines {
            cables.extend((0..spec.links_per_pair).map(|_| fabric_cable(leaf, spine)));
        }
    }
    let mut switches = numbered("leaf", spec.leaves);
    switches.extend(numbered("spine", spec.spines));
    Ok(Plan { hosts: numbered("host", hosts), switches, cables, tiers: TIERS })
}

fn census(spec: &LeafSpineSpec) -> Census {
    let [leaves, spines, per_leaf, per_pair] =
        [spec.leaves, spec.spines, spec.hosts_per_leaf, spec.links_per_pair].map(u64::from);
    let hosts = leaves.saturating_mul(per_leaf);
    let uplinks = spines.saturating_mul(per_pair);
    Census {
        hosts,
        switches: leaves + spines,
        racks: leaves,
        cables: hosts.saturating_add(leaves.saturating_mul(uplinks)),
        ports: per_leaf.saturating_add(uplinks).max(leaves.saturating_mul(per_pair)),
        keys: "fabric.leaves, fabric.spines, fabric.hosts_per_leaf or fabric.links_per_pair",
    }
}
