//! Time and traffic of a run, as a whole.

use weft_fabric::Results;
use weft_units::Span;

use crate::results::summary::Totals;
use crate::run::Elapsed;

/// Totals of a run with so many flows.
pub(crate) fn totals(results: &Results, flows: usize, elapsed: Elapsed) -> Totals {
    let Elapsed { cpu_s, wall_s } = elapsed;
    Totals {
        packet_hops: results.packets.hops,
        dropped_packets: results.packets.dropped - results.packets.credits_dropped,
        unroutable_packets: results.packets.unroutable,
        input_dropped_packets: results.packets.input_dropped,
        events: results.events,
        simulated_us: results.end.as_us(),
        sample_interval_us: results.samples.every.map(Span::as_us),
        cpu_s,
        wall_s,
        packet_hops_per_cpu_s: (cpu_s > 0.0).then(|| results.packets.hops as f64 / cpu_s),
        link_bytes: results.links.iter().map(|link| link.bytes).sum(),
        overhead_bytes: results.packets.control_bytes,
        memory_bytes: memory_bytes(results, flows),
        state_bytes_per_switch: scheme_counter(results, "state_bytes_per_switch"),
        state_bytes_per_host: scheme_counter(results, "state_bytes_per_host"),
    }
}

/// Counter of the scheme under this name; 0 if it has none.
pub(crate) fn scheme_counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

/// Bytes that the simulation held at its peak.
pub(crate) fn memory_bytes(results: &Results, flows: usize) -> u64 {
    let memory = &results.memory;
    (memory.fabric + memory.per_active_flow * memory.peak_active_flows + memory.per_flow * flows) as u64
}
