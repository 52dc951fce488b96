//! The tables of runs whose fabric has faults, column by column, as those in [`super::rows`];
//! without faults they are empty.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::table::{Cell, Column, Row, Table, table};

table! {
    /// A fault of the spec and a link that it hits.
    FaultRow is "faults", "a fault of the spec and a link that it hits";

    /// place in the spec, from 0
    fault: u32, "";
    /// `from>to`, as in `links.parquet`; of a scheme that runs on another fabric, as the oracle
    /// does, the link of the real one
    link: String, "";
    /// when it begins
    from_us: f64, "µs";
    /// when it ends
    until_us: Option<f64>, "µs", null "it lasts as long as the run";
    /// whether the link is down
    down: Option<bool>, "", null "the fault does not say";
    /// the rate that is left
    rate_bps: Option<u64>, "bit/s", null "unchanged";
    /// delay beyond the link's own
    delay_us: Option<f64>, "µs", null "unchanged";
    /// share of packets that are lost
    loss: Option<f64>, "", null "unchanged";
    /// share of flows that vanish
    blackhole: Option<f64>, "", null "unchanged";
    /// packets that were lost at the link while the fault lasted, but for those that another fault
    /// of the link is charged with
    lost_packets: u64, "";
    /// when the last of them was lost
    last_lost_us: Option<f64>, "µs", null "none was";
    /// packets that a switch had no way for because the link was down
    unroutable_packets: u64, "";
}

table! {
    /// A stretch of the run between two changes of its faults.
    PhaseRow is "phases", "a stretch of the run between two changes of its faults";

    /// number, from 0, in order of time
    phase: u32, "";
    /// `before` the first fault, `during` one or several, `after` one and with none in force; a
    /// fault that lasts as long as the run is not counted here, unless there is no other
    name: &'static str, "";
    /// when it begins
    from_us: f64, "µs";
    /// when it ends
    until_us: f64, "µs";
    /// faults in force
    faults: u32, "";
    /// flows that start in it and count in statistics: the same for every scheme
    flows: u64, "";
    /// of these, flows that did not finish; flows that never began are in no stretch
    unfinished: u64, "";
    /// their mean completion time
    mean_fct_us: Option<f64>, "µs", null "none finished, or unfinished ones leave it open";
    /// the median
    p50_fct_us: Option<f64>, "µs", null "none finished, or unfinished ones leave it open";
    /// the 99th percentile
    p99_fct_us: Option<f64>, "µs", null "none finished, or unfinished ones leave it open";
    /// their mean slowdown
    mean_slowdown: Option<f64>, "", null "none finished, or unfinished ones leave it open";
    /// the 99th percentile of it
    p99_slowdown: Option<f64>, "", null "none finished, or unfinished ones leave it open";
    /// segments that these flows sent again
    retransmissions: u64, "";
    /// their retransmission timeouts
    timeouts: u64, "";
    /// packets, of whatever flow, that were lost in the stretch
    lost_packets: u64, "";
}

table! {
    /// Packets lost at one place for one reason in one stretch of the run.
    DropRow is "drops", "a place where packets were lost, a reason, and a stretch of the run";

    /// the stretch, as in `phases.parquet`
    phase: u32, "";
    /// a link, as in `links.parquet`, or a node
    place: String, "";
    /// `down`: queued or on the wire when the link failed, or sent on it later; `no-route`: a
    /// switch knew no way; `loss`, `blackhole`: the fault took it; `queue`: the queue was full, or
    /// RED dropped it; `input`: what waits for the node itself was full; `shared-buffer`: the
    /// memory that the ports of its switch share had no room; `headroom`: it came after a pause,
    /// and there was no headroom left
    cause: &'static str, "";
    /// the fault that they are charged to, as in `faults.parquet`; each packet is charged to one
    /// fault at most
    fault: Option<u32>, "", null "no fault is to blame";
    /// how many
    packets: u64, "";
    /// when the first was lost
    first_us: f64, "µs";
    /// when the last was lost
    last_us: f64, "µs";
}
