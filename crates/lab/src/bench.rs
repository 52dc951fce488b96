//! How fast the core is, and what it holds: one run of a known size.

mod memory;

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Serialize;
use weft_fabric::Results;
use weft_topology::{Tier, Topology};

use crate::cores::Cores;
use crate::memory::peak_resident;
use crate::run::{Observer, Prepared, RunError, Watch};
use crate::spec::{SpecError, SpecSource};
use crate::totals::{memory_bytes, scheme_counter};

pub use memory::{Memory, memory};

/// Results of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bench {
    /// Hosts in the fabric.
    pub hosts: u32,
    /// The fabric in words: leaves, spines, hosts per leaf.
    pub fabric: String,
    /// The load balancer.
    pub scheme: String,
    /// The transport.
    pub transport: String,
    /// Flows that were run.
    pub flows: u64,
    /// Most flows that were active at one time.
    pub active_flows: u64,
    /// Packets that reached the far end of a link, each link counted.
    pub packet_hops: u64,
    /// Events that the core handled, but for those of ports with several classes.
    pub events: u64,
    /// CPU seconds of the event loop.
    pub cpu_s: f64,
    /// Seconds of the event loop on the wall clock.
    pub wall_s: f64,
    /// `packet_hops` / `cpu_s`.
    pub packet_hops_per_cpu_s: Option<f64>,
    /// Bytes that the simulation held at its peak, worked out from its structures.
    pub memory_bytes: u64,
    /// Bytes of the fabric (links, tables, events, packets, schemes) per host.
    pub memory_bytes_per_host: u64,
    /// Bytes of both ends of an active flow.
    pub memory_bytes_per_active_flow: u64,
    /// Packets, data or not, that a rack's switch or its hosts' schemes chose a way for: those that
    /// were given to the links from racks to spines.
    pub decisions: u64,
    /// The most that the scheme keeps at any switch, in bytes.
    pub state_bytes_per_switch: u64,
    /// The most that the scheme keeps at any host, in bytes.
    pub state_bytes_per_host: u64,
    /// The most memory that the process ever held, from Linux; null elsewhere.
    pub peak_rss_bytes: Option<u64>,
    /// Threads that worked; no more than there are partitions.
    pub threads: usize,
    /// Groups of nodes; 1 if the fabric was whole.
    pub partitions: usize,
    /// How often all partitions worked up to an instant without each other; 0 with one partition.
    pub windows: u64,
    /// Packets that went from one partition to another.
    pub crossings: u64,
    /// Events of the busiest of the threads that this run was to be as if there were, window by
    /// window; null if there were none.
    pub busiest_events: Option<u64>,
    /// How many windows those would have shared.
    pub shared_windows: Option<u64>,
    /// The build that was measured: `release` or `development`.
    pub build: &'static str,
    /// A fingerprint of all tables, in hexadecimal.
    pub result: String,
}

/// Subject of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Hosts in the fabric.
    pub hosts: u32,
    /// The load balancer.
    pub scheme: &'a str,
    /// The transport.
    pub transport: &'a str,
    /// The seed.
    pub seed: u64,
    /// Threads to work on, 1 to 1,024.
    pub threads: u64,
    /// Work on one thread, as if there were so many, and count how well these would share the work.
    pub predict: bool,
}

/// The shape of the fabric of a benchmark: racks as large as in a two to one oversubscribed fabric
/// with as many spines as half a rack has hosts, all links at 10 Gbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    leaves: u32,
    spines: u32,
    hosts_per_leaf: u32,
}

impl Shape {
    /// 128 hosts: 8 leaves of 16 hosts, 8 spines. 1,024 hosts: 32 leaves of 32 hosts, 16 spines.
    /// 8,192 hosts: 64 leaves of 128 hosts, 64 spines.
    fn of(hosts: u32) -> Result<Self, SpecError> {
        let side =
            (1..=7).map(|power| 1u32 << power).filter(|side| side * side <= hosts.saturating_mul(2)).max();
        let side = side.unwrap_or(2);
        let leaves = hosts / side;
        if hosts > 65_536 || leaves < 2 || leaves * side != hosts {
            let message = format!(
                "hosts is {hosts}: allowed are multiples of {side} from 4 to 65536, as in 128, 1024 or 8192"
            );
            return Err(SpecError::new(message));
        }
        Ok(Self { leaves, spines: side / 2, hosts_per_leaf: side })
    }

    /// A spec with this fabric and these keys of its traffic, over DCTCP.
    fn spec(self, traffic: &str) -> SpecSource {
        let Self { leaves, spines, hosts_per_leaf } = self;
        SpecSource::from_text(format!(
            "[fabric]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts_per_leaf}\n\
             [traffic]\n{traffic}\n\
             [transport]\nname = \"dctcp\"\n"
        ))
    }
}

/// The spec of a benchmark: web search at a load of 0.6, DCTCP, eight flows a host, so that most of
/// the run is busy, but at least 2,000 and at most 32,768.
///
/// # Errors
/// A number of hosts that no such fabric has.
fn bench_spec(hosts: u32, scheme: &str, seed: u64) -> Result<SpecSource, SpecError> {
    let flows = hosts.saturating_mul(8).clamp(2_000, 32_768);
    let traffic = format!("workload = \"web-search\"\nload = 0.6\nflows = {flows}");
    Ok(Shape::of(hosts)?.spec(&traffic).with("scheme.name", scheme).with_seed(seed))
}

/// Runs the benchmark with so many hosts, over any transport.
///
/// # Errors
/// A number of hosts that no fabric has or of threads that no run has, an unknown scheme or
/// transport, or an observer that stopped it.
pub fn bench(subject: Subject<'_>, observer: Observer<'_>) -> Result<Bench, RunError> {
    let Subject { hosts, scheme, transport, seed, threads, predict } = subject;
    let source = bench_spec(hosts, scheme, seed)?.with("transport.name", transport);
    let prepared = Prepared::new(&source.with("run.threads", &threads.to_string()))?;
    let cores = usize::try_from(threads)
        .ok()
        .and_then(NonZeroUsize::new)
        .filter(|_| predict)
        .map_or(Cores::All, Cores::Predict);
    let simulated = prepared.simulate(observer, None, Watch::default(), cores)?;
    let (results, elapsed) = (&simulated.results, simulated.elapsed);
    let sharing = results.cooperation.sharing;
    let Shape { leaves, spines, hosts_per_leaf } = Shape::of(hosts)?;
    let flows = prepared.traffic.flows.len();
    Ok(Bench {
        hosts,
        fabric: format!("{leaves} leaves x {spines} spines x {hosts_per_leaf} hosts"),
        scheme: scheme.to_owned(),
        transport: transport.to_owned(),
        flows: flows as u64,
        active_flows: results.memory.peak_active_flows as u64,
        packet_hops: results.packets.hops,
        events: results.events,
        cpu_s: elapsed.cpu_s,
        wall_s: elapsed.wall_s,
        packet_hops_per_cpu_s: (elapsed.cpu_s > 0.0).then(|| results.packets.hops as f64 / elapsed.cpu_s),
        memory_bytes: memory_bytes(results, flows),
        memory_bytes_per_host: results.memory.fabric as u64 / u64::from(hosts),
        memory_bytes_per_active_flow: results.memory.per_active_flow as u64,
        decisions: decisions(&prepared.fabric.topology, results),
        state_bytes_per_switch: scheme_counter(results, "state_bytes_per_switch"),
        state_bytes_per_host: scheme_counter(results, "state_bytes_per_host"),
        peak_rss_bytes: peak_resident(),
        threads: results.cooperation.threads,
        partitions: results.cooperation.partitions,
        windows: results.cooperation.windows,
        crossings: results.cooperation.crossings,
        busiest_events: sharing.map(|sharing| sharing.busiest_events),
        shared_windows: sharing.map(|sharing| sharing.windows),
        build: crate::BUILD,
        // Last, for it takes what was simulated.
        result: prepared.outcome(simulated, None)?.fingerprint()?,
    })
}

/// Time in which two threads begin and end an empty window together.
pub fn window_of_two_threads() -> Duration {
    weft_fabric::cost_of_a_window(2)
}

fn decisions(topology: &Topology, results: &Results) -> u64 {
    let links = topology.links.iter().zip(&results.links);
    links.filter(|(link, _)| link.tier == Tier::Leaf).map(|(_, totals)| totals.packets).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_usual_sizes_have_the_documented_shapes() {
        for (hosts, shape) in [(128, (8, 8, 16)), (1_024, (32, 16, 32)), (8_192, (64, 64, 128))] {
            let Shape { leaves, spines, hosts_per_leaf } = Shape::of(hosts).unwrap();
            assert_eq!((leaves, spines, hosts_per_leaf), shape);
        }
    }

    #[test]
    fn a_size_that_no_fabric_has_is_refused_with_what_is_allowed() {
        for hosts in [0, 1, 3, 129, 70_000, u32::MAX] {
            let message = Shape::of(hosts).unwrap_err().to_string();
            assert!(message.contains(&hosts.to_string()) && message.contains("multiples"), "{message}");
        }
    }
}
