//! Fat-trees of k-port switches: Al-Fares et al., SIGCOMM 2008, §3.

use super::leaf_spine::numbered;
use super::plan::{Cable, Census, Plan, check_count, check_delay, check_rate};
use crate::spec::{FabricError, FatTreeSpec};

/// The names of its tiers.
pub(crate) const TIERS: &[&str] = &["host-edge", "edge-agg", "agg-core"];

/// Hosts `host0`, … in the order of their edge switches; then `edge0`, … and `agg0`, …, pod by pod;
/// then `core0`, …. Every aggregation switch has a cable to equally many cores, k/2 unless there
/// are fewer: with n of them, core c has one to aggregation switch c / n of every pod.
///
/// Ports: of an edge switch its hosts, then the aggregation switches of its pod; of an aggregation
/// switch the edge switches of its pod, then its cores; of a core pod by pod.
pub(crate) fn plan(spec: &FatTreeSpec) -> Result<Plan, FabricError> {
    if spec.k == 0 || !spec.k.is_multiple_of(2) {
        return Err(FabricError::bad("fabric.k", &spec.k, "an even number, at least 2"));
    }
    let half = spec.k / 2;
    let per_edge = spec.hosts_per_edge.unwrap_or(half);
    let per_agg = cores_per_agg(spec, half)?;
    let core_rate = spec.core_rate.unwrap_or(spec.fabric_rate);
    let core_delay = spec.core_delay.unwrap_or(spec.fabric_delay);
    check_count("fabric.hosts_per_edge", per_edge)?;
    check_rate("fabric.host_rate", spec.host_rate)?;
    check_rate("fabric.fabric_rate", spec.fabric_rate)?;
    check_rate("fabric.core_rate", core_rate)?;
    check_delay("fabric.host_delay", spec.host_delay)?;
    check_delay("fabric.fabric_delay", spec.fabric_delay)?;
    check_delay("fabric.core_delay", core_delay)?;
    census(spec.k.into(), per_edge.into(), per_agg.into()).check()?;

    let edges = spec.k * half;
    let hosts = edges * per_edge;
    let (first_agg, first_core) = (hosts + edges, hosts + 2 * edges);
    let mut cables = Vec::new();
    for host in 0..hosts {
        let b = hosts + host / per_edge;
        cables.push(Cable { a: host, b, rate: spec.host_rate, delay: spec.host_delay, tier: 0 });
    }
    for edge in 0..edges {
        let pod = edge / half;
        cables.extend((0..half).map(|agg| Cable {
            a: hosts + edge,
            b: first_agg + pod * half + agg,
            rate: spec.fabric_rate,
            delay: spec.fabric_delay,
            tier: 1,
        }));
    }
    for agg in 0..edges {
        let place = agg % half;
        cables.extend((0..per_agg).map(|core| Cable {
            a: first_agg + agg,
            b: first_core + place * per_agg + core,
            rate: core_rate,
            delay: core_delay,
            tier: 2,
        }));
    }
    let mut switches = numbered("edge", edges);
    switches.extend(numbered("agg", edges));
    switches.extend(numbered("core", half * per_agg));
    Ok(Plan { hosts: numbered("host", hosts), switches, cables, tiers: TIERS })
}

/// How many cores each aggregation switch has a cable to.
fn cores_per_agg(spec: &FatTreeSpec, half: u32) -> Result<u32, FabricError> {
    let Some(cores) = spec.cores else { return Ok(half) };
    let fits = cores > 0 && cores.is_multiple_of(half) && cores / half <= half;
    let allowed = format!("a multiple of k/2, {half} to {}", u64::from(half) * u64::from(half));
    if fits { Ok(cores / half) } else { Err(FabricError::bad("fabric.cores", &cores, allowed)) }
}

fn census(k: u64, per_edge: u64, per_agg: u64) -> Census {
    let half = k / 2;
    let edges = k.saturating_mul(half);
    let hosts = edges.saturating_mul(per_edge);
    let uplinks = edges.saturating_mul(half);
    Census {
        hosts,
        switches: edges.saturating_mul(2).saturating_add(half.saturating_mul(per_agg)),
        racks: edges,
        cables: hosts.saturating_add(uplinks).saturating_add(edges.saturating_mul(per_agg)),
        ports: k.max(per_edge.saturating_add(half)),
        keys: "fabric.k or fabric.hosts_per_edge",
    }
}
