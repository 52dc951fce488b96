//! Rail-optimised leaf-spine fabrics: the i-th cards of a group of servers are at one leaf, their rail's.

use super::leaf_spine::numbered;
use super::plan::{Cable, Census, Plan, check_count, check_delay, check_rate};
use crate::spec::{FabricError, RailSpec};

/// The names of its tiers.
pub(crate) const TIERS: &[&str] = &["host-leaf", "leaf-spine"];

/// Hosts `host0`, … are cards, server by server: card i of server s is host s × gpus + i. Then `leaf0`, …, group by group and in it
/// rail by rail; then `spine0`, …. A leaf's ports: its hosts in the order of their servers, then spine by spine, parallel cables side by
/// side.
pub(crate) fn plan(spec: &RailSpec) -> Result<Plan, FabricError> {
    for (key, count) in [
        ("fabric.servers", spec.servers),
        ("fabric.gpus", spec.gpus),
        ("fabric.spines", spec.spines),
        ("fabric.links_per_pair", spec.links_per_pair),
    ] {
        check_count(key, count)?;
    }
    let per_group = servers_per_group(spec)?;
    check_rate("fabric.host_rate", spec.host_rate)?;
    check_rate("fabric.fabric_rate", spec.fabric_rate)?;
    check_delay("fabric.host_delay", spec.host_delay)?;
    check_delay("fabric.fabric_delay", spec.fabric_delay)?;
    let leaves = census(spec, per_group)?;

    let hosts = spec.servers * spec.gpus;
    let host_cable = |host: u32| {
        let (server, rail) = (host / spec.gpus, host % spec.gpus);
        let b = hosts + server / per_group * spec.gpus + rail;
        Cable { a: host, b, rate: spec.host_rate, delay: spec.host_delay, tier: 0 }
    };
    let fabric_cable = |leaf: u32, spine: u32| {
        let (a, b) = (hosts + leaf, hosts + leaves + spine);
        Cable { a, b, rate: spec.fabric_rate, delay: spec.fabric_delay, tier: 1 }
    };
    let mut cables: Vec<Cable> = (0..hosts).map(host_cable).collect();
    for leaf in 0..leaves {
        for spine in 0..spec.spines {
            cables.extend((0..spec.links_per_pair).map(|_| fabric_cable(leaf, spine)));
        }
    }
    let mut switches = numbered("leaf", leaves);
    switches.extend(numbered("spine", spec.spines));
    Ok(Plan { hosts: numbered("host", hosts), switches, cables, tiers: TIERS })
}

/// Servers whose cards share leaves.
fn servers_per_group(spec: &RailSpec) -> Result<u32, FabricError> {
    let Some(per_group) = spec.servers_per_group else { return Ok(spec.servers) };
    check_count("fabric.servers_per_group", per_group)?;
    if spec.servers.is_multiple_of(per_group) {
        Ok(per_group)
    } else {
        let allowed = format!("a divisor of fabric.servers = {}", spec.servers);
        Err(FabricError::bad("fabric.servers_per_group", &per_group, allowed))
    }
}

/// Checks that the numbers are not too large; returns how many leaves there are.
fn census(spec: &RailSpec, per_group: u32) -> Result<u32, FabricError> {
    let [servers, gpus, spines, per_pair, per_group] =
        [spec.servers, spec.gpus, spec.spines, spec.links_per_pair, per_group].map(u64::from);
    let hosts = servers.saturating_mul(gpus);
    let leaves = (servers / per_group).saturating_mul(gpus);
    let uplinks = spines.saturating_mul(per_pair);
    Census {
        hosts,
        switches: leaves.saturating_add(spines),
        racks: leaves,
        cables: hosts.saturating_add(leaves.saturating_mul(uplinks)),
        ports: per_group.saturating_add(uplinks).max(leaves.saturating_mul(per_pair)),
        keys: "fabric.servers, fabric.gpus, fabric.servers_per_group, fabric.spines or fabric.links_per_pair",
    }
    .check()?;
    Ok(leaves as u32)
}
