//! The rows of the result tables. Field names are column names; units are in them.

/// A flow: a row of `flows.parquet`. Times are in microseconds of simulated time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowRow {
    /// Number in the traffic, from 0, in order of start.
    pub id: u32,
    /// The host that sends.
    pub src: u16,
    /// The host that receives.
    pub dst: u16,
    /// Payload; 0 for a background flow, which has no end.
    pub size_bytes: u64,
    /// What the application says of it: "unknown", "short", "long", "best-effort".
    pub class: &'static str,
    /// Long-lived: it never finishes, and counts in no statistic.
    pub background: bool,
    /// When the sender has the first byte to send.
    pub start_us: f64,
    /// From the start until the receiver has the last byte in order; none if that did not happen.
    pub fct_us: Option<f64>,
    /// From the start until the sender has the last acknowledgement; none if that did not happen.
    pub sender_fct_us: Option<f64>,
    /// The completion time in an empty fabric; none for a background flow.
    pub ideal_fct_us: Option<f64>,
    /// `fct_us` / `ideal_fct_us`; none if unfinished.
    pub slowdown: Option<f64>,
    /// By when it should be done, from the start; none if it has no deadline.
    pub deadline_us: Option<f64>,
    /// Whether it was not: done later, or not done when the run ended after its deadline. None without a deadline, and if
    /// the run ended before it.
    pub deadline_missed: Option<bool>,
    /// Payload that reached the receiver, each byte once; of an unfinished flow to a segment.
    pub delivered_bytes: u64,
    /// `delivered_bytes` over `fct_us`; of a background flow, over the time from its start to the end of the run. None if
    /// unfinished.
    pub goodput_mbps: Option<f64>,
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments that reached the receiver, in whatever order and however often.
    pub segments_received: u64,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Of these, those that were needed: every earlier copy of the segment was dropped.
    pub retransmissions_after_loss: u32,
    /// Of these, those in vain in fast recovery: the segment was late, not lost.
    pub retransmissions_after_reordering: u32,
    /// Of these, those in vain after a timeout.
    pub retransmissions_after_timeout: u32,
    /// Its data packets that were dropped or lost anywhere while it was active.
    pub dropped_segments: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Entries into fast recovery.
    pub fast_recoveries: u32,
    /// Segments that reached the receiver's transport behind a hole.
    pub out_of_order_packets: u32,
    /// Segments that had arrived before.
    pub duplicate_segments: u32,
    /// Acknowledgements that repeated the last one while data was outstanding.
    pub duplicate_acks: u32,
    /// Acknowledgements that carried the congestion echo.
    pub marked_acks: u32,
    /// How often a data packet arrived by another path than the one before it.
    pub path_changes: u32,
    /// Time that its delivered data packets waited at hosts, together.
    pub wait_host_us: f64,
    /// Time that they waited at edge switches, on the way up.
    pub wait_leaf_us: f64,
    /// Time that they waited at all other switches.
    pub wait_spine_us: f64,
    /// Time that they waited at the last switch, on the link to the receiver.
    pub wait_last_us: f64,
    /// Of `fct_us`, the time for serialisation, propagation and the fixed delays of nodes. None if unfinished, as are the
    /// following seven, which together with it are `fct_us`.
    pub spent_transmission_us: Option<f64>,
    /// In the queue of its host, behind other flows.
    pub spent_host_us: Option<f64>,
    /// In queues of edge switches, on the way up.
    pub spent_leaf_us: Option<f64>,
    /// In queues of all other switches.
    pub spent_spine_us: Option<f64>,
    /// In the queue of the link to the receiver.
    pub spent_last_us: Option<f64>,
    /// In a reordering buffer, and for the last segment when it was late.
    pub spent_reordering_us: Option<f64>,
    /// Until retransmission timers expired.
    pub spent_timeouts_us: Option<f64>,
    /// Until the sender was allowed to send.
    pub spent_window_us: Option<f64>,
    /// How long the receiver held data behind segments that were late.
    pub stalled_by_reordering_us: f64,
    /// How long it held data behind segments that came as retransmissions.
    pub stalled_by_loss_us: f64,
    /// How long the retransmission timers ran that expired.
    pub timed_out_us: f64,
}

/// One direction of a cable: a row of `links.parquet`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkRow {
    /// Its name, as faults use it.
    pub link: String,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Where it stands: "host", "leaf", "spine", "last".
    pub tier: &'static str,
    /// Its rate when the run began.
    pub rate_bps: u64,
    /// Its propagation delay, with the far node's processing, when the run began.
    pub delay_us: f64,
    /// What its queue holds at most: a limit in packets counts packets of full size. None: no limit.
    pub buffer_bytes: Option<u64>,
    /// Packets that it carried.
    pub packets: u64,
    /// Bytes that it carried.
    pub bytes: u64,
    /// Packets dropped at its queue or on the wire.
    pub dropped_packets: u64,
    /// Packets that its queue marked.
    pub marked_packets: u64,
    /// Share of the simulated time in which it was sending, at `rate_bps`.
    pub utilisation: f64,
}

/// A link in an interval in which it was not idle: a row of `samples.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRow<'a> {
    /// The end of the interval.
    pub time_us: f64,
    /// Its length: that of all others, but for the last one of a run.
    pub interval_us: f64,
    /// The link's name.
    pub link: &'a str,
    /// Where it stands: "host", "leaf", "spine", "last".
    pub tier: &'static str,
    /// Its rate at the end of the interval.
    pub rate_bps: u64,
    /// Bytes that left its queue in the interval.
    pub sent_bytes: u64,
    /// `sent_bytes` x 8 / (`rate_bps` x `interval_us`).
    pub utilisation: f64,
    /// Bytes in its queue at the end of it.
    pub backlog_bytes: u64,
    /// The most that was in its queue at any instant of it.
    pub largest_backlog_bytes: u64,
    /// Packets dropped at its queue or on the wire in the interval.
    pub dropped_packets: u32,
    /// Packets that its queue marked in the interval.
    pub marked_packets: u32,
}

/// What a receiver got of one kind of flow in an interval, if anything: a row of `deliveries.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRow {
    /// The end of the interval.
    pub time_us: f64,
    /// Its length: that of all others, but for the last one of a run.
    pub interval_us: f64,
    /// The receiver.
    pub host: u16,
    /// The class of the flows: "unknown", "short", "long", "best-effort".
    pub class: &'static str,
    /// Whether they are background flows.
    pub background: bool,
    /// Payload that arrived for the first time.
    pub payload_bytes: u64,
}

/// A port of a switch to a switch in a window of time in which a packet left its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationRow {
    /// The end of the window.
    pub time_us: f64,
    /// The port's link.
    pub link: String,
    /// Where it stands: "leaf" or "spine".
    pub tier: &'static str,
    /// Packets that left the queue.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes as a share of what the link can send in a window.
    pub traffic: f64,
    /// What the last of them found queued, as a share of what the queue holds; none if it has no limit.
    pub occupancy: Option<f64>,
    /// The same, the mean over all of them.
    pub mean_occupancy: Option<f64>,
    /// From the packet before until the last of them left the queue, as a share of the time constant, at most 1.
    pub interval: f64,
    /// The mean over all of them, as a share of the time constant, at most 1.
    pub mean_interval: f64,
}

/// What a traced flow put on one link in one interval: a row of `traces.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceRow<'a> {
    /// The end of the interval.
    pub time_us: f64,
    /// Its length.
    pub interval_us: f64,
    /// The flow's number.
    pub flow: u32,
    /// The link's name.
    pub link: &'a str,
    /// Data packets that were queued there, or dropped for want of room.
    pub packets: u32,
}

/// A path from one rack to another: a row of `paths.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub struct PathRow {
    /// The rack of the senders.
    pub src_rack: u16,
    /// The rack of the receivers.
    pub dst_rack: u16,
    /// Number of the path among those of these racks, from 0, in no order that means anything.
    pub path: u32,
    /// Payload that arrived over it, however often.
    pub carried_bytes: u64,
    /// The same over the simulated time.
    pub throughput_mbps: f64,
}

/// A counter of the scheme: a row of `scheme.parquet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRow {
    /// Its name.
    pub name: String,
    /// Its value, summed over all switches or hosts.
    pub value: u64,
}
