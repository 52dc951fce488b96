//! The result tables, column by column. Field names are column names; units are in them.
//!
//! This is the only place that says which tables and columns there are: the files, the guide
//! (`docs/results.md`) and Python ask for it. The order is that of the columns in the file. Text is
//! Markdown, with links as from the guide's page.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use weft_units::Time;

use super::collective_rows::{CollectiveRow, CriticalRow};
use super::fault_rows::{DropRow, FaultRow, PhaseRow};
use super::port_rows::{ClassRow, PauseRow, SharedBufferRow};
use super::table::{Cell, Column, Row, Table, table};

/// Every table that a result directory has, in the order in which they are written.
pub const TABLES: [&Table; 18] = [
    FlowRow::TABLE,
    LinkRow::TABLE,
    SampleRow::TABLE,
    DeliveryRow::TABLE,
    PathRow::TABLE,
    TraceRow::TABLE,
    CounterRow::TABLE,
    ProgramRow::TABLE,
    ConnectionRow::TABLE,
    SubflowRow::TABLE,
    FaultRow::TABLE,
    PhaseRow::TABLE,
    DropRow::TABLE,
    ClassRow::TABLE,
    PauseRow::TABLE,
    SharedBufferRow::TABLE,
    CollectiveRow::TABLE,
    CriticalRow::TABLE,
];

table! {
    /// A flow. Times are in microseconds of simulated time.
    FlowRow is "flows", "a flow";

    /// number in the traffic, from 0, in order of start
    id: u32, "";
    /// the host that sends
    src: u16, "";
    /// the host that receives
    dst: u16, "";
    /// payload; 0 for a long-lived flow
    size_bytes: u64, "B";
    /// `unknown`, `short`, `long`, `best-effort`, `tc4` to `tc7`
    class: &'static str, "";
    /// long-lived: never finishes, counts in no statistic
    background: bool, "";
    /// starts after the warm-up and within the window; if not, it counts in no statistic
    measured: Option<bool>, "", only "with [`run.warmup` or `run.measure`](model.md#warm-up-and-steady-state)";
    /// when the source has the first byte
    start_us: Option<f64>, "µs", null "it never began: the run ended before, or what it waits for did not come";
    /// from the start until the receiver has the last byte in order
    fct_us: Option<f64>, "µs", null "unfinished";
    /// from the start until the sender has the last acknowledgement
    sender_fct_us: Option<f64>, "µs", null "that did not happen";
    /// [ideal FCT](model.md#ideal-fct-and-slowdown)
    ideal_fct_us: Option<f64>, "µs", null "background, or no path leads there";
    /// `fct_us / ideal_fct_us`, at least 1
    slowdown: Option<f64>, "", null "unfinished, or without an ideal";
    /// data segments, retransmissions and FINs (`transport.fin`) included
    segments_sent: u64, "";
    /// data segments and FINs that arrived, however often, kept or not
    segments_received: u64, "";
    /// segments sent again
    retransmissions: u32, "";
    /// retransmission timeouts, of the handshake too
    timeouts: u32, "";
    /// entries into fast recovery
    fast_recoveries: Option<u32>, "", null "its transport has none, or does not count them";
    /// [segments that arrived behind a hole](model.md#what-is-counted-exactly)
    out_of_order_packets: u32, "";
    /// segments that had arrived before
    duplicate_segments: u32, "";
    /// acknowledgements that repeated the last one while data was outstanding
    duplicate_acks: Option<u32>, "", null "its transport has none, or does not count them";
    /// acknowledgements with the congestion echo
    marked_acks: Option<u32>, "", null "its transport does not count them";
    /// data packets that came by another path than the one before
    path_changes: u32, "";
    /// time that its delivered data packets waited in queues of hosts, together
    wait_host_us: f64, "µs";
    /// the same in queues of edge switches, on the way up
    wait_leaf_us: f64, "µs";
    /// the same in queues of all other switches
    wait_spine_us: f64, "µs";
    /// the same in the queue of the link to the receiver
    wait_last_us: f64, "µs";
    /// [why segments were sent again](model.md#why-segments-are-sent-again): every earlier copy was
    /// dropped
    retransmissions_after_loss: u32, "";
    /// likewise: in vain in fast recovery, the segment was late
    retransmissions_after_reordering: u32, "";
    /// likewise: in vain after a timeout; these three together are `retransmissions`
    retransmissions_after_timeout: u32, "";
    /// its data packets that were dropped or lost anywhere while it was active
    dropped_segments: u32, "";
    /// payload that arrived, each byte once; of an unfinished flow to a segment
    delivered_bytes: u64, "B";
    /// `delivered_bytes × 8 / fct_us`; of a long-lived flow, over the time from its start to the
    /// end of the run
    goodput_mbps: Option<f64>, "Mbit/s", null "unfinished";
    /// by when it should be done, from its start, if the [traffic has
    /// deadlines](traffic.md#deadlines)
    deadline_us: Option<f64>, "µs", null "it has none";
    /// done later, or not done when the run ended after the deadline
    deadline_missed: Option<bool>, "", null "without a deadline, or unfinished when the run ended before it";
    /// [where the completion time went](model.md#where-a-flows-time-goes): serialisation,
    /// propagation and the fixed delays of nodes
    fct_transmission_us: Option<f64>, "µs", null "unfinished";
    /// likewise: in the queue of its host, behind other flows
    fct_host_us: Option<f64>, "µs", null "unfinished";
    /// likewise: in queues of edge switches, on the way up
    fct_leaf_us: Option<f64>, "µs", null "unfinished";
    /// likewise: in queues of all other switches
    fct_spine_us: Option<f64>, "µs", null "unfinished";
    /// likewise: in the queue of the link to the receiver
    fct_last_us: Option<f64>, "µs", null "unfinished";
    /// likewise: in a reordering buffer, and for the last segment when it was late
    fct_reordering_us: Option<f64>, "µs", null "unfinished";
    /// likewise: until retransmission timers expired
    fct_timeouts_us: Option<f64>, "µs", null "unfinished";
    /// likewise: until an acknowledgement came that let the sender send at once; if the sender is a
    /// [Linux host](linux-hosts.md) it is in `fct_window_us`
    fct_acknowledgement_us: Option<f64>, "µs", null "unfinished";
    /// likewise: until the sender was allowed to send for any other reason; these nine, and
    /// `fct_pause_us`, together are `fct_us`
    fct_window_us: Option<f64>, "µs", null "unfinished";
    /// how long the receiver's transport held data behind a segment that was late
    stalled_by_reordering_us: f64, "µs";
    /// how long it held data behind a segment that came as a retransmission
    stalled_by_loss_us: f64, "µs";
    /// how long the retransmission timers ran that expired, those of the handshake too
    timed_out_us: f64, "µs";
    /// likewise: until ports that had to pause could go on, in queues and at RDMA cards
    fct_pause_us: Option<f64>, "µs", null "unfinished", only "with [lossless classes](lossless.md)";
    /// how long pauses kept its data packets from leaving ports; of packets that waited at one time
    /// each counts, and of those that an RDMA card holds back the next one
    blocked_us: Option<f64>, "µs", only "with [lossless classes](lossless.md)";
    /// of this, packets that then went another way than the one because of which their class was
    /// paused: head-of-line blocking
    blocked_innocently_us: Option<f64>, "µs", only "with [lossless classes](lossless.md)";
    /// NACKs that came to its sender until it had the last acknowledgement
    nacks: Option<u32>, "", null "its transport has none", only "with [RDMA transports](rdma.md)";
    /// likewise: congestion notifications (CNPs), or acknowledgements that stand for them
    cnps: Option<u32>, "", null "its transport has none", only "with [RDMA transports](rdma.md)";
    /// its data packets that switches cut to their headers; those until then are in
    /// `dropped_segments`, too
    trimmed_segments: Option<u32>, "", only "with [classes that trim](lossless.md#trimming)";
    /// label of the transport that carried it
    transport: Option<String>, "", only "with [several transports](transport.md#several-transports-in-one-run)";
    /// the [collective](collectives.md) that it is of, as in `collectives.parquet`
    collective: Option<u32>, "", null "it is of none", only "with collectives";
    /// the step of the collective's algorithm, from 0
    collective_step: Option<u32>, "", null "it is of no collective", only "with collectives";
    /// by the kernel's clock, from the start until the connection was there
    kernel_connected_us: Option<f64>, "µs", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// by the kernel's clock, from the start until the application at the receiver read the last
    /// byte
    kernel_fct_us: Option<f64>, "µs", null "the receiver is no Linux host, or has not read it all", only "with [Linux hosts](linux-hosts.md)";
    /// by the kernel's clock, from the start until the sender's socket was done
    kernel_closed_us: Option<f64>, "µs", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// what the sender's kernel counted (`tcp_info`), with MPTCP over all subflows: segments sent
    /// again
    kernel_retransmissions: Option<u64>, "", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: segments delivered with a congestion mark
    kernel_marked: Option<u64>, "", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: duplicates that the receiver told of
    kernel_dsacks: Option<u64>, "", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: times that it saw reordering
    kernel_reorderings: Option<u64>, "", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: smoothed round-trip time at the end
    kernel_rtt_us: Option<u64>, "µs", null "the sender is no Linux host, or is not done, or had several subflows", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: the least round-trip time
    kernel_rtt_min_us: Option<u64>, "µs", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: the retransmission timeout at the end
    kernel_rto_us: Option<u64>, "µs", null "the sender is no Linux host, or is not done, or had several subflows", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: the congestion window at the end, in segments; with MPTCP the sum
    kernel_cwnd: Option<u64>, "", null "the sender is no Linux host, or is not done", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: the slow start threshold at the end, in segments
    kernel_ssthresh: Option<u64>, "", null "the sender is no Linux host, or is not done, or had several subflows", only "with [Linux hosts](linux-hosts.md)";
    /// likewise: payload of a full segment
    kernel_mss_bytes: Option<u64>, "B", null "the sender is no Linux host, or is not done, or had several subflows", only "with [Linux hosts](linux-hosts.md)";
    /// subflows that it had when it was done
    kernel_subflows: Option<u32>, "", null "the sender is not done", only "with [MPTCP of Linux hosts](linux-hosts.md#mptcp)";
    /// it was an ordinary TCP connection after all
    kernel_fell_back: Option<bool>, "", null "the sender is not done", only "with [MPTCP of Linux hosts](linux-hosts.md#mptcp)";
    /// the flow's port at its sender
    kernel_port: Option<u16>, "", null "no end is a Linux host, or it has not begun", only "with [Linux hosts](linux-hosts.md)";
}

impl FlowRow {
    /// Whether the flow began, and its receiver does not have everything.
    pub const fn is_unfinished(&self) -> bool {
        self.start_us.is_some() && self.fct_us.is_none()
    }

    /// How long before the `end` of the run the flow began; zero if it never did.
    pub fn age_us(&self, end: Time) -> f64 {
        self.start_us.map_or(0.0, |start| (end.as_us() - start).max(0.0))
    }

    /// The least completion time of an unfinished flow of this age: no flow takes less than in an
    /// empty fabric.
    pub fn least_fct_us(&self, age_us: f64) -> f64 {
        age_us.max(self.ideal_fct_us.unwrap_or_default())
    }
}

table! {
    /// One direction of a cable.
    LinkRow is "links", "a link (one direction of a cable)";

    /// name, as in `leaf0>spine1`, with `.0`, `.1` and so on for parallel cables; a fault takes it
    /// as its `link`
    link: String, "";
    /// the node that sends
    from: String, "";
    /// the node that receives
    to: String, "";
    /// `host`, `leaf`, `spine`, `last`: [the tiers of waits](model.md#what-is-counted-exactly)
    tier: &'static str, "";
    /// rate when the run began
    rate_bps: u64, "bit/s";
    /// propagation, stack and switch delay when the run began
    delay_us: f64, "µs";
    /// what its queue holds at most; a limit in packets counts packets of full size
    buffer_bytes: Option<u64>, "B", null "there is no limit";
    /// packets that it was given to send, what random loss or a blackhole took then included; not
    /// what the queue refused
    packets: u64, "";
    /// their bytes
    bytes: u64, "B";
    /// refused by the queue, lost on the wire, or caught by a failure. A packet for which a switch
    /// has no next hop left is in the run's `dropped_packets`, and in no link's.
    dropped_packets: u64, "";
    /// packets that got CE in this queue
    marked_packets: u64, "";
    /// the bytes that it has sent, × 8, over the mean rate × simulated time: at most 1. Of `bytes`
    /// are left out those that waited when the run ended, or when the link went down
    utilisation: f64, "";
}

table! {
    /// A link in an interval in which it was not idle, or paused.
    SampleRow<'a> is "samples", "a link and an interval in which it was not idle, or paused", asked by "run.sample_every";

    /// end of the interval
    time_us: f64, "µs";
    /// its length
    interval_us: f64, "µs";
    /// as in `links.parquet`
    link: &'a str, "";
    /// as in `links.parquet`
    tier: &'static str, "";
    /// mean rate in the interval: a fault may have changed it
    rate_bps: u64, "bit/s";
    /// left the queue in the interval, with headers; of a packet in service, what has left
    sent_bytes: u64, "B";
    /// `sent_bytes × 8 / (rate_bps × interval_us)`; a byte more than 1 is rounding
    utilisation: f64, "";
    /// in the queue at the end, with what is left of the packet in service
    backlog_bytes: u64, "B";
    /// the most that was in the queue at any instant of the interval
    largest_backlog_bytes: u64, "B";
    /// in the interval; as in `links.parquet`
    dropped_packets: u32, "";
    /// in the interval; as in `links.parquet`
    marked_packets: u32, "";
    /// how long its port was told to pause in the interval, over its classes: of those that were at
    /// one time each counts, as in `pauses.parquet`
    paused_us: Option<f64>, "µs", only "with [lossless classes](lossless.md#pauses)";
}

table! {
    /// Payload of one kind of flow that a receiver got in an interval, if any.
    DeliveryRow is "deliveries", "a receiver, class and interval in which payload arrived", asked by "run.sample_every";

    /// end of the interval
    time_us: f64, "µs";
    /// its length
    interval_us: f64, "µs";
    /// the receiver
    host: u16, "";
    /// class of the flows, as in `flows.parquet`
    class: &'static str, "";
    /// whether they are long-lived flows
    background: bool, "";
    /// payload that arrived for the first time: neither headers nor copies. While a flow goes on,
    /// its last segment counts as a full one.
    payload_bytes: u64, "B";
}

table! {
    /// A path from one rack to another.
    PathRow is "paths", "a path from one rack to another", asked by "run.paths_of";

    /// of the senders
    src_rack: u16, "";
    /// of the receivers
    dst_rack: u16, "";
    /// a number among the paths of these racks; its order means nothing
    path: u32, "";
    /// payload that arrived by it, however often
    carried_bytes: u64, "B";
    /// the same over the simulated time
    throughput_mbps: f64, "Mbit/s";
}

table! {
    /// Bytes of a traced flow on one link in one interval.
    TraceRow<'a> is "traces", "a traced flow, a link that it took and an interval", asked by "run.trace_flows";

    /// end of the interval
    time_us: f64, "µs";
    /// its length
    interval_us: f64, "µs";
    /// its `id` in `flows.parquet`
    flow: u32, "";
    /// as in `links.parquet`; links of switches only, since a host has one cable
    link: &'a str, "";
    /// data packets that were queued there in the interval, or dropped for want of room
    packets: u32, "";
}

table! {
    /// The congestion window of a flow at an instant. Segments of Linux hosts are those of the
    /// kernel.
    WindowRow is "windows", "a flow and an instant";

    /// when
    time_us: f64, "µs";
    /// its `id` in `flows.parquet`
    flow: u32, "";
    /// congestion window
    cwnd: f64, "segments";
    /// slow-start threshold
    ssthresh: Option<f64>, "segments", null "nothing has set one";
    /// sent and not acknowledged
    outstanding: u32, "segments";
    /// smoothed round-trip time
    rtt_us: Option<f64>, "µs", null "no sample yet";
}

table! {
    /// A packet that a link sent, as a capture there would show it.
    PacketRow is "packets", "a packet that a link sent";

    /// when its first bit left
    time_us: f64, "µs";
    /// as in `links.parquet`
    link: String, "";
    /// its flow's `id` in `flows.parquet`; of no meaning for what load balancers send
    flow: u32, "";
    /// the host that sent it
    src: u16, "";
    /// the host that it goes to
    dst: u16, "";
    /// `data`, `ack`, `syn`, `syn-ack`, `credit`, `credit-request`, `credit-stop`, `control`,
    /// `message`, `nack`, `cnp`, `trimmed`
    kind: &'static str, "";
    /// its segment; of an acknowledgement the next one that is expected
    segment: u32, "";
    /// what it takes on a link
    bytes: u16, "B";
    /// its transport understands ECN
    ecn_capable: bool, "";
    /// it has met congestion, in this queue or before
    marked: bool, "";
    /// it echoes a mark
    echo: bool, "";
    /// its segment was sent before
    retransmission: bool, "";
}

table! {
    /// A counter of the scheme.
    CounterRow is "scheme", "a counter of the load balancer";

    /// `state_bytes_per_switch` and `state_bytes_per_host` are the most that any node keeps; the
    /// others are what the scheme counts. A scheme's page says which it has.
    name: String, "";
    /// the count, summed over all nodes
    value: u64, "";
}

table! {
    /// A program on a Linux host.
    ProgramRow is "programs", "a program of the traffic", asked by "traffic.program";

    /// number in the spec, from 0
    program: u32, "";
    /// the host that it ran on
    host: u16, "";
    /// as the spec has it
    command: String, "";
    /// the run did not wait for it
    serves: bool, "";
    /// when it was started
    start_us: f64, "µs";
    /// when it ended
    end_us: Option<f64>, "µs", null "it ran when the run was over";
    /// `exited`, `killed`, `stopped` (at the end that the spec says), `not started`, `serves` or
    /// `unfinished`
    outcome: &'static str, "";
    /// its exit code
    exit_code: Option<u16>, "", null "it did not exit by itself";
    /// the signal that ended it
    signal: Option<u16>, "", null "none did";
    /// it did not do what it was to do: the results are incomplete
    failed: bool, "";
    /// what it wrote to standard output; bytes that are no UTF-8 are replaced
    output: String, "";
    /// the same of standard error
    errors: String, "";
    /// what it wrote to both beyond 1 MiB, which is not kept
    left_out_bytes: u64, "B";
}

table! {
    /// One direction of a connection of programs: packets of Linux hosts that belong to no flow.
    ConnectionRow is "connections", "a direction of a connection of programs", asked by "traffic.program";

    /// number of the connection, from 0, in order of its first packet; both directions have it
    connection: u32, "";
    /// `tcp`, `udp`, `icmp`, or the protocol's number
    protocol: String, "";
    /// the host that sends
    src: u16, "";
    /// the host that receives
    dst: u16, "";
    /// its port; 0 if the protocol has none, and for fragments
    src_port: u16, "";
    /// likewise of the receiver
    dst_port: u16, "";
    /// when its first packet left the host
    first_us: f64, "µs";
    /// when its last packet left the host
    last_us: f64, "µs";
    /// packets that left the host
    packets_sent: u64, "";
    /// their bytes with all headers
    sent_bytes: u64, "B";
    /// packets that reached the other host
    packets_received: u64, "";
    /// their bytes with all headers
    received_bytes: u64, "B";
    /// packets that reached it with a congestion mark
    packets_marked: u64, "";
}

table! {
    /// A subflow of an MPTCP flow of Linux hosts, as its sender's kernel counted it (`tcp_info`)
    /// when the flow was done.
    SubflowRow is "subflows", "a subflow of a flow whose sender is done", asked by "transport.name";

    /// its `id` in `flows.parquet`
    flow: u32, "";
    /// number of the subflow, from 0; the first one has the flow's own hash
    subflow: u16, "";
    /// its port at the sender
    src_port: u16, "";
    /// its port at the receiver
    dst_port: u16, "";
    /// segments that left, those without data too
    segments_sent: u64, "";
    /// payload that left, with what was sent again
    sent_bytes: u64, "B";
    /// payload that was acknowledged; SYN and FIN count as one byte each
    acknowledged_bytes: u64, "B";
    /// segments sent again
    retransmissions: u64, "";
    /// segments delivered with a congestion mark
    marked: u64, "";
    /// duplicates that the receiver told of
    dsacks: u64, "";
    /// times that it saw reordering
    reorderings: u64, "";
    /// smoothed round-trip time
    rtt_us: u64, "µs";
    /// the least round-trip time
    rtt_min_us: u64, "µs";
    /// retransmission timeout
    rto_us: u64, "µs";
    /// congestion window, in segments
    cwnd: u64, "";
    /// slow start threshold, in segments
    ssthresh: u64, "";
    /// payload of a full segment
    mss_bytes: u64, "B";
}

table! {
    /// A port of a switch to a switch in a window of time in which a packet left its queue. No
    /// result directory has it: it is what `weft fit` fits.
    ObservationRow is "observations", "a port of a switch to a switch, and a window in which a packet left its queue";

    /// end of the window
    time_us: f64, "µs";
    /// the port's link
    link: String, "";
    /// `leaf` or `spine`
    tier: &'static str, "";
    /// packets that left the queue
    packets: u64, "";
    /// their bytes
    bytes: u64, "B";
    /// their bytes as a share of what the link can send in a window
    traffic: f64, "";
    /// what the last of them found queued, as a share of what the queue holds
    occupancy: Option<f64>, "", null "there is no limit";
    /// the same, the mean over all of them
    mean_occupancy: Option<f64>, "", null "there is no limit";
    /// from the packet before until the last of them left the queue, as a share of the time
    /// constant, at most 1
    interval: f64, "";
    /// the mean over all of them, as a share of the time constant, at most 1
    mean_interval: f64, "";
}

#[cfg(test)]
mod tests;
