//! What a fabric and its flows take in memory, and what setting up takes: measured in a process of its own.

use std::num::NonZeroUsize;

use serde::Serialize;
use weft_fabric::Simulation;

use super::Shape;
use crate::clock::Stopwatch;
use crate::cores::Cores;
use crate::run::{Observer, Prepared, RunError};
use crate::spec::{SpecError, SpecSource};

/// What the memory of a fabric, and of flows on it, was measured to be. Resident memory is asked from Linux; where there is none, it
/// is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Hosts in the fabric.
    pub hosts: u32,
    /// Links in the fabric: each direction of a cable is one.
    pub links: u64,
    /// The load balancer.
    pub scheme: String,
    /// The transport.
    pub transport: String,
    /// CPU seconds from the spec to the first event: fabric, routes, hosts, schemes.
    pub setup_cpu_s: f64,
    /// Resident bytes that setting up added to the process.
    pub setup_bytes: Option<u64>,
    /// `setup_bytes` without those of links, per host: hosts with their schemes, switches with theirs, tables, names.
    pub bytes_per_host: Option<u64>,
    /// Bytes of a link, worked out from its structures.
    pub bytes_per_link: u64,
    /// Bytes of both ends of an active flow, worked out from their structures.
    pub bytes_per_active_flow: u64,
    /// Flows of 1 KB in the longer one of two runs.
    pub flows: u32,
    /// By how much the peak of resident memory grows from the shorter to the longer run, for each flow more. About as many are
    /// active at a time in both.
    pub bytes_per_finished_flow: Option<u64>,
    /// The most resident memory that the process ever had: that of the longer run.
    pub peak_rss_bytes: Option<u64>,
}

/// Flows in the shorter run: so many that the first of them are long over when the last one starts.
const FEW: u32 = 100_000;
/// The load of the flows at 128 hosts. In a larger fabric as many flows start in a second.
const LOAD: f64 = 0.6;
/// Links up from all leaves with 128 hosts.
const UPLINKS: f64 = 64.0;

/// Measures memory with so many hosts. Only the first measurement of a process is right: later ones find memory that is in use again.
///
/// # Errors
/// A number of hosts that no fabric has, an unknown scheme or transport, fewer than 200,000 flows, or an observer that stopped it.
pub fn memory(
    hosts: u32,
    scheme: &str,
    transport: &str,
    flows: u32,
    seed: u64,
    observer: Observer<'_>,
) -> Result<Memory, RunError> {
    if flows < 2 * FEW {
        let message = format!("flows is {flows}: allowed are {} or more", 2 * FEW);
        return Err(SpecError::new(message).into());
    }
    let spec = |flows| spec(hosts, scheme, transport, flows, seed);
    let (before, watch) = (resident("VmRSS"), Stopwatch::start());
    let prepared = Prepared::new(&spec(1)?)?;
    let simulation =
        Simulation::new(prepared.input(None, None)).map_err(|error| prepared.resolved.error(error))?;
    let setup_cpu_s = watch.cpu_s();
    let setup_bytes = resident("VmRSS").zip(before).map(|(after, before)| after.saturating_sub(before));
    let memory = simulation.into_results().memory;
    let links = prepared.fabric.topology.links.len() as u64;
    drop(prepared);
    let bytes_per_link = memory.per_link as u64;
    let mut peak_with = |flows| {
        let prepared = Prepared::new(&spec(flows)?)?;
        prepared.run(observer, None, Cores::UpTo(NonZeroUsize::MIN))?;
        Ok::<_, RunError>(resident("VmHWM"))
    };
    let (few, many) = (peak_with(FEW)?, peak_with(flows)?);
    let of_hosts = |bytes: u64| bytes.saturating_sub(links * bytes_per_link) / u64::from(hosts);
    Ok(Memory {
        hosts,
        links,
        scheme: scheme.to_owned(),
        transport: transport.to_owned(),
        setup_cpu_s,
        setup_bytes,
        bytes_per_host: setup_bytes.map(of_hosts),
        bytes_per_link,
        bytes_per_active_flow: memory.per_active_flow as u64,
        flows,
        bytes_per_finished_flow: many
            .zip(few)
            .map(|(many, few)| many.saturating_sub(few) / u64::from(flows - FEW)),
        peak_rss_bytes: many,
    })
}

/// Flows of 1 KB, as many a second on every fabric.
fn spec(hosts: u32, scheme: &str, transport: &str, flows: u32, seed: u64) -> Result<SpecSource, RunError> {
    let shape = Shape::of(hosts)?;
    let load = (LOAD * UPLINKS / (f64::from(shape.leaves) * f64::from(shape.spines))).min(LOAD);
    let source = shape.spec(&format!("size = \"1KB\"\nload = {load}\nflows = {flows}"));
    Ok(source.with("balancer.name", scheme).with("transport.name", transport).with_seed(seed))
}

/// A line of what Linux says of this process' memory, in bytes.
pub(super) fn resident(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}
