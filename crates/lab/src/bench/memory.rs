//! Memory of a fabric and its flows, and the cost of setting up: measured in a process of its own.

use std::num::NonZeroUsize;

use serde::Serialize;
use weft_fabric::{MemoryUse, Simulation};

use super::Shape;
use crate::clock::Stopwatch;
use crate::cores::Cores;
use crate::memory::{peak_resident, resident};
use crate::run::{Observer, Prepared, RunError};
use crate::spec::{SpecError, SpecSource};

/// Measured memory of a fabric and of the flows on it. Resident memory is asked from Linux; where
/// there is none, it is null.
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
    /// `setup_bytes` without those of links, per host: hosts with their schemes, switches with
    /// theirs, tables, names.
    pub bytes_per_host: Option<u64>,
    /// Bytes of a link, worked out from its structures.
    pub bytes_per_link: u64,
    /// Bytes of both ends of an active flow, worked out from their structures.
    pub bytes_per_active_flow: u64,
    /// Flows of 1 KB in the longer one of two runs; 0 if there was none.
    pub flows: u32,
    /// By how much the peak of resident memory grows from the shorter to the longer run, for each
    /// flow more. About as many are active at a time in both. Null without runs.
    pub bytes_per_finished_flow: Option<u64>,
    /// The most resident memory that the process ever had: that of the longer run, or of setting
    /// up.
    pub peak_rss_bytes: Option<u64>,
}

/// Flows in the shorter run: so many that the first of them are long over when the last one starts,
/// and a host's last flows are not its first ones.
fn few(hosts: u32) -> u32 {
    hosts.saturating_mul(4).max(100_000)
}

/// Hosts of a fabric that is set up before the one that is measured, for what any takes: code that
/// is read, and small tables.
const WARM_UP: u32 = 16;
/// The load of the flows at 128 hosts. In a larger fabric as many flows start in a second.
const LOAD: f64 = 0.6;
/// Links up from all leaves with 128 hosts.
const UPLINKS: f64 = 64.0;

/// Measures memory with so many hosts. Only the first measurement of a process is right: later ones
/// find memory that is in use again. With 0 flows only setting up is measured.
///
/// # Errors
/// A number of hosts that no fabric has, an unknown scheme or transport, too few flows, or an
/// observer that stopped it.
pub fn memory(
    hosts: u32,
    scheme: &str,
    transport: &str,
    flows: u32,
    seed: u64,
    observer: Observer<'_>,
) -> Result<Memory, RunError> {
    let few = few(hosts);
    if flows > 0 && flows < 2 * few {
        let message = format!("flows is {flows}: with {hosts} hosts, allowed are 0 and {} or more", 2 * few);
        return Err(SpecError::new(message).into());
    }
    let spec = |hosts, flows| spec(hosts, scheme, transport, flows, seed);
    set_up(&spec(WARM_UP, 1)?)?;
    let (setup, use_of) = set_up(&spec(hosts, 1)?)?;
    let bytes_per_link = use_of.per_link as u64;
    let mut peak_with = |flows| {
        Prepared::new(&spec(hosts, flows)?)?.run(observer, None, Cores::UpTo(NonZeroUsize::MIN))?;
        Ok::<_, RunError>(peak_resident())
    };
    let (first, second) = if flows > 0 { (peak_with(few)?, peak_with(flows)?) } else { (None, None) };
    let of_hosts = |bytes: u64| bytes.saturating_sub(setup.links * bytes_per_link) / u64::from(hosts);
    let of_flows = |(second, first): (u64, u64)| second.saturating_sub(first) / u64::from(flows - few);
    Ok(Memory {
        hosts,
        links: setup.links,
        scheme: scheme.to_owned(),
        transport: transport.to_owned(),
        setup_cpu_s: setup.cpu_s,
        setup_bytes: setup.bytes,
        bytes_per_host: setup.bytes.map(of_hosts),
        bytes_per_link,
        bytes_per_active_flow: use_of.per_active_flow as u64,
        flows,
        bytes_per_finished_flow: second.zip(first).map(of_flows),
        peak_rss_bytes: peak_resident(),
    })
}

/// Cost of setting up.
struct SetUp {
    cpu_s: f64,
    bytes: Option<u64>,
    links: u64,
}

/// Sets a run up, and does not run it.
fn set_up(spec: &SpecSource) -> Result<(SetUp, MemoryUse), RunError> {
    let (before, watch) = (resident(), Stopwatch::start());
    let prepared = Prepared::new(spec)?;
    let simulation = Simulation::new(prepared.input(None)).map_err(|error| prepared.resolved.error(error))?;
    let cpu_s = watch.cpu_s();
    let bytes = resident().zip(before).map(|(after, before)| after.saturating_sub(before));
    let links = prepared.fabric.topology.links.len() as u64;
    Ok((SetUp { cpu_s, bytes, links }, simulation.finish().0.memory))
}

/// Flows of 1 KB, as many a second on every fabric.
fn spec(hosts: u32, scheme: &str, transport: &str, flows: u32, seed: u64) -> Result<SpecSource, RunError> {
    let shape = Shape::of(hosts)?;
    let load = (LOAD * UPLINKS / (f64::from(shape.leaves) * f64::from(shape.spines))).min(LOAD);
    let source = shape.spec(&format!("size = \"1KB\"\nload = {load}\nflows = {flows}"));
    Ok(source.with("scheme.name", scheme).with("transport.name", transport).with_seed(seed))
}
