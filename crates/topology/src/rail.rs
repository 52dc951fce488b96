//! Rail-optimised leaf-spine fabrics: the i-th cards of a group of servers are at one leaf, their
//! rail's. In several planes, a card has a port to a leaf of each.

use weft_units::{Rate, Span};

use super::leaf_spine::numbered;
use super::plan::{Cable, Census, Plan, check_count, check_delay, check_rate};
use crate::spec::{FabricError, RailSpec};

/// The names of its tiers, of one plane and of several.
const TIERS: &[&str] = &["host-leaf", "leaf-spine"];
const TIERS_OF_PLANES: &[&str] = &["host-nic", "nic-leaf", "leaf-spine"];

/// How many there are of what, checked.
struct Counts {
    hosts: u32,
    planes: u32,
    servers_per_group: u32,
    /// Leaves of one plane.
    leaves: u32,
}

/// Hosts `host0`, … are cards, server by server: card i of server s is host s × gpus + i. Then
/// `leaf0`, …, plane by plane, in it group by group and in that rail by rail; then `spine0`, …,
/// plane by plane. A leaf's ports: its cards in the order of their servers, then spine by spine,
/// parallel cables side by side. With several planes, `nic0`, … stand before the leaves, one a
/// card: its host, then plane by plane.
pub(crate) fn plan(spec: &RailSpec) -> Result<Plan, FabricError> {
    let counts = counts(spec)?;
    check_rate("fabric.host_rate", spec.host_rate)?;
    check_rate("fabric.fabric_rate", spec.fabric_rate)?;
    check_delay("fabric.host_delay", spec.host_delay)?;
    check_delay("fabric.fabric_delay", spec.fabric_delay)?;
    let Counts { hosts, planes, leaves, .. } = counts;
    let nics = if planes > 1 { hosts } else { 0 };

    let mut cables = Vec::new();
    if planes > 1 {
        cables.extend((0..hosts).map(|host| Cable {
            a: host,
            b: hosts + host,
            rate: spec.host_rate,
            delay: Span::ZERO,
            tier: 0,
        }));
    }
    let first_leaf = hosts + nics;
    let first_spine = first_leaf + planes * leaves;
    let (port_rate, card_tier) = (port_rate(spec, planes)?, u8::from(planes > 1));
    for plane in 0..planes {
        cables.extend((0..hosts).map(|host| {
            let (server, rail) = (host / spec.gpus, host % spec.gpus);
            let leaf = plane * leaves + server / counts.servers_per_group * spec.gpus + rail;
            Cable {
                a: nics + host,
                b: first_leaf + leaf,
                rate: port_rate,
                delay: spec.host_delay,
                tier: card_tier,
            }
        }));
    }
    for leaf in 0..planes * leaves {
        for spine in 0..spec.spines {
            let (a, b) = (first_leaf + leaf, first_spine + leaf / leaves * spec.spines + spine);
            let (rate, delay, tier) = (spec.fabric_rate, spec.fabric_delay, card_tier + 1);
            cables.extend((0..spec.links_per_pair).map(|_| Cable { a, b, rate, delay, tier }));
        }
    }
    let mut switches = numbered("nic", nics);
    switches.extend(numbered("leaf", planes * leaves));
    switches.extend(numbered("spine", planes * spec.spines));
    let tiers = if planes > 1 { TIERS_OF_PLANES } else { TIERS };
    Ok(Plan { hosts: numbered("host", hosts), switches, cables, tiers })
}

/// The rate of a card's port to one plane.
fn port_rate(spec: &RailSpec, planes: u32) -> Result<Rate, FabricError> {
    let (whole, planes) = (spec.host_rate.as_bps(), u64::from(planes));
    if !whole.is_multiple_of(planes) {
        let allowed = format!("a divisor of fabric.host_rate = {}, in bit/s", spec.host_rate);
        return Err(FabricError::bad("fabric.planes", &planes, allowed));
    }
    let rate = Rate::from_bps(whole / planes);
    check_rate("fabric.host_rate divided by fabric.planes", rate)?;
    Ok(rate)
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

/// Checks that each number is one that can be, and that they are not too large together.
fn counts(spec: &RailSpec) -> Result<Counts, FabricError> {
    let planes = spec.planes.unwrap_or(1);
    for (key, count) in [
        ("fabric.servers", spec.servers),
        ("fabric.gpus", spec.gpus),
        ("fabric.planes", planes),
        ("fabric.spines", spec.spines),
        ("fabric.links_per_pair", spec.links_per_pair),
    ] {
        check_count(key, count)?;
    }
    let servers_per_group = servers_per_group(spec)?;
    let [servers, gpus, spines, per_pair, per_group, of_planes] =
        [spec.servers, spec.gpus, spec.spines, spec.links_per_pair, servers_per_group, planes].map(u64::from);
    let hosts = servers.saturating_mul(gpus);
    let leaves = (servers / per_group).saturating_mul(gpus);
    let uplinks = spines.saturating_mul(per_pair);
    let nics = if planes > 1 { hosts } else { 0 };
    let of_a_plane = leaves.saturating_add(spines);
    let cables_of_a_plane = hosts.saturating_add(leaves.saturating_mul(uplinks));
    Census {
        hosts,
        switches: nics.saturating_add(of_planes.saturating_mul(of_a_plane)),
        racks: if planes > 1 { hosts } else { leaves },
        cables: nics.saturating_add(of_planes.saturating_mul(cables_of_a_plane)),
        ports: per_group.saturating_add(uplinks).max(leaves.saturating_mul(per_pair)).max(of_planes + 1),
        keys: "fabric.servers, fabric.gpus, fabric.servers_per_group, fabric.planes, fabric.spines or fabric.links_per_pair",
    }
    .check()?;
    Ok(Counts { hosts: hosts as u32, planes, servers_per_group, leaves: leaves as u32 })
}
