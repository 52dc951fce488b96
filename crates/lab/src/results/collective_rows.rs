//! The tables of runs with collectives, column by column, as those in [`super::rows`]; without
//! collectives they are empty.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::table::{Cell, Column, Row, Table, table};

table! {
    /// A collective, or a step of a job.
    CollectiveRow is "collectives", "a collective or a step of a job, each time that it comes";

    /// number, from 0
    collective: u32, "";
    /// what the spec calls it
    label: String, "";
    /// `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `broadcast`, `reduce`,
    /// `barrier`, `moe`, `pipeline`, `step` or `file`
    kind: &'static str, "";
    /// how it goes
    algorithm: Option<&'static str>, "", null "there is no choice";
    /// how often the same came before
    iteration: u32, "";
    /// the `collective` of the step that it is part of
    step: Option<u32>, "", null "it is part of none";
    /// hosts that take part
    ranks: u32, "";
    /// payload at every rank, as NCCL counts it
    size_bytes: Option<u64>, "B", null "that means nothing";
    /// flows in it; of a step also those of its collectives
    flows: u64, "";
    /// their payload
    flow_bytes: u64, "B";
    /// of these flows, those that began and did not finish
    unfinished: u64, "";
    /// of these flows, those that never began
    never_started: u64, "";
    /// when the first rank could begin
    start_us: Option<f64>, "µs", null "none could";
    /// from then until the last rank could begin
    entry_spread_us: Option<f64>, "µs", null "one could not";
    /// when the last rank had everything; of a `step`, a `pipeline` and a `file`, when it had
    /// computed everything, too
    end_us: Option<f64>, "µs", null "unfinished";
    /// `end_us - start_us`
    completion_us: Option<f64>, "µs", null "unfinished";
    /// `size_bytes` by `completion_us`, times what the [convention of NCCL's
    /// tests](collectives.md#bus-bandwidth) has for its kind
    bus_bandwidth_mbps: Option<f64>, "Mbit/s", null "unfinished, or there is no such convention";
    /// the host of the rank that was done last
    slowest_host: Option<u16>, "", null "unfinished";
    /// from when the first rank was done until the last was
    straggler_us: Option<f64>, "µs", null "unfinished";
}

table! {
    /// A flow on the critical path of a collective, or what was computed at its end.
    CriticalRow is "critical_path", "a flow that a collective waited for, one after the other, in order of time";

    /// as in `collectives.parquet`
    collective: u32, "";
    /// place on the path, from 0
    link: u32, "";
    /// its `id` in `flows.parquet`
    flow: Option<u32>, "", null "what is computed after the last flow";
    /// the host that sends, or computes
    src: u16, "";
    /// the host that receives
    dst: Option<u16>, "", null "as `flow`";
    /// when what it waited for was there: the end of the flow before it
    ready_us: f64, "µs";
    /// until it could begin, whatever was there
    waiting_us: f64, "µs";
    /// what its host computed before it started
    compute_us: f64, "µs";
    /// its start
    start_us: f64, "µs";
    /// serialisation, propagation and the fixed delays of nodes; these eight, `pause_us`, and part
    /// of `acknowledgement_us`, as `fct_*_us` in `flows.parquet`. They are 0 where the next flow
    /// waited for the start of this one alone.
    transmission_us: f64, "µs";
    /// in the queue of its host
    host_us: f64, "µs";
    /// in queues of edge switches, on the way up
    leaf_us: f64, "µs";
    /// in queues of all other switches
    spine_us: f64, "µs";
    /// in the queue of the link to the receiver
    last_us: f64, "µs";
    /// in a reordering buffer, and for the last segment when it was late
    reordering_us: f64, "µs";
    /// until retransmission timers expired
    timeouts_us: f64, "µs";
    /// until the sender was allowed to send
    window_us: f64, "µs";
    /// until ports that had to pause could go on
    pause_us: Option<f64>, "µs", only "with [lossless classes](lossless.md)";
    /// as `fct_acknowledgement_us`, and from the arrival of everything until the sender knew, if
    /// the next flow waited for that
    acknowledgement_us: f64, "µs";
    /// when what came next could go on
    end_us: f64, "µs";
    /// what made it late most of all, beyond transmission: `computation`, `waiting`, `host queue`,
    /// `leaf queue`, `spine queue`, `last queue`, `reordering`, `timeouts`, `window`, `pause`,
    /// `acknowledgement`, or `nothing`
    late_by: &'static str, "";
    /// where that was: a link as in `links.parquet`, or a node
    late_at: Option<String>, "", null "it was nowhere";
}
