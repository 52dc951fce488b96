//! Results of a run.

use weft_packet::FlowId;
use weft_traffic::Flow;
use weft_transport::{ReceiverStats, SenderStats};
use weft_units::{Rate, Span, Time};

use super::arrivals::ArrivedInPhase;
use super::capture::Captured;
use super::cwnd::CwndSample;
use super::deadlock::PausedLink;
use super::degraded_links::DegradedLink;
use super::drops::{Drop, FirstUse, Hit};
use super::fct_breakdown::FctBreakdown;
use super::network::PacketCounts;
use super::observer::Observation;
use super::paths::PathTotal;
use super::pause::Blocked;
use super::sampler::Samples;
use super::scheduled_port::{ClassTotals, PauseTotals};
use super::tracer::FlowTrace;

/// One flow, when the run is over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowRecord {
    /// When it started, if it waited for others and they let it.
    pub started: Option<Time>,
    /// When the receiver had the last byte in order.
    pub delivered: Option<Time>,
    /// When the sender had the last acknowledgement.
    pub acknowledged: Option<Time>,
    /// The least completion time that an empty fabric allows; zero for a background flow.
    pub ideal: Span,
    /// Payload that reached the receiver, each byte once, to a segment.
    pub delivered_bytes: u64,
    /// Data packets that were dropped or lost anywhere, until the sender had the last
    /// acknowledgement.
    pub dropped: u32,
    /// Data packets of the flow that switches cut to their headers.
    pub trimmed: u32,
    /// Why its segments were sent again.
    pub retransmissions: Retransmissions,
    /// Counts of the sender.
    pub sender: SenderStats,
    /// Counts of the receiver.
    pub receiver: ReceiverStats,
    /// How often a data packet arrived over another path than the one before.
    pub path_changes: u32,
    /// How long the delivered data packets waited in queues, summed by [`crate::Tier`], in ps.
    pub wait_ps: [u64; 4],
    /// Where the time until `delivered` went; all zero if that did not happen.
    pub fct_breakdown: FctBreakdown,
}

impl FlowRecord {
    /// When this flow started; of one that waits for others and did not start, when it might have
    /// at the earliest.
    pub fn start(&self, flow: &Flow) -> Time {
        self.started.unwrap_or(flow.start)
    }

    /// When this flow started, in a run that ended at `end`; none if it never did: what it `waits`
    /// for did not come, or the run was over before.
    pub fn begun(&self, flow: &Flow, waits: bool, end: Time) -> Option<Time> {
        if waits { self.started } else { Some(flow.start).filter(|&start| start <= end) }
    }
}

/// Segments that a flow sent again, by reason. Together they are [`SenderStats::retransmissions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retransmissions {
    /// Needed: every earlier copy of the segment was dropped.
    pub after_loss: u32,
    /// In vain, in fast recovery: the segment was late, not lost, and duplicate acknowledgements
    /// told otherwise.
    pub after_reordering: u32,
    /// In vain, after a timeout: the segment was late, or had arrived behind one that was lost.
    pub after_timeout: u32,
}

impl std::ops::AddAssign for Retransmissions {
    fn add_assign(&mut self, other: Self) {
        self.after_loss += other.after_loss;
        self.after_reordering += other.after_reordering;
        self.after_timeout += other.after_timeout;
    }
}

/// Payload that arrived, each byte once, to a segment: full ones have `payload_bytes`.
pub fn arrived(receiver: &ReceiverStats, flow: &Flow, payload_bytes: u64) -> u64 {
    let ReceiverStats { duplicates, without_payload, refused, .. } = *receiver;
    let segments = receiver.segments_received
        - [duplicates, without_payload, refused].map(u64::from).into_iter().sum::<u64>();
    let most = if flow.background { u64::MAX } else { flow.size_bytes };
    segments.saturating_mul(payload_bytes).min(most)
}

/// One link, when the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkTotals {
    /// Packets that it was given to send.
    pub packets: u64,
    /// Bytes that it was given to send.
    pub bytes: u64,
    /// Packets dropped: the queue was full, the link down, or the wire lost them.
    pub dropped: u64,
    /// Packets that got a congestion mark here.
    pub marked: u64,
    /// Credits dropped here: not counted in `dropped`.
    pub credits_dropped: u64,
    /// Bytes that it was given to send and never sent: they waited when the link went down.
    pub never_sent_bytes: u64,
    /// Bytes that it was given to send and had not sent when the run ended.
    pub backlog_bytes: u64,
}

impl LinkTotals {
    /// Bytes that it has sent.
    pub const fn sent_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.never_sent_bytes + self.backlog_bytes)
    }
}

/// A link sends at another rate: the packet in service when a fault changes the rate is sent to its
/// end at the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateChange {
    /// The link, as the topology numbers them.
    pub link: u32,
    /// From when on.
    pub at: Time,
    /// The rate.
    pub rate: Rate,
}

/// Packets that came to one class of the port of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassOfLink {
    /// The link, as the topology numbers them.
    pub link: u32,
    /// The class, by its place at the port.
    pub class: u8,
    /// Totals of the class.
    pub totals: ClassTotals,
}

/// How long one class of the port of a link was paused because of one link behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseOfLink {
    /// The link, as the topology numbers them.
    pub link: u32,
    /// The class, by its place at the port.
    pub class: u8,
    /// The link for which most of what had come by `link` waited, when the pause was asked for.
    pub blamed: u32,
    /// How often and how long.
    pub totals: PauseTotals,
}

/// The memory of a switch whose ports share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedBufferUse {
    /// The switch, as the topology numbers them.
    pub switch: u32,
    /// The most bytes that ever waited in it.
    pub largest_bytes: u64,
}

/// A number that a scheme counted, summed over all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemeCounter {
    /// Name of the counter.
    pub name: String,
    /// How many.
    pub value: u64,
}

/// Memory that the simulation took, in bytes, worked out from its own structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryUse {
    /// Links, tables, events, packets, schemes.
    pub fabric: usize,
    /// One link, without its packets: what it is and what it does.
    pub per_link: usize,
    /// Both ends of one active flow, without what loss recovery and reassembly allocate meanwhile.
    pub per_active_flow: usize,
    /// Most flows that were active at one time.
    pub peak_active_flows: usize,
    /// The row of one flow, active or not.
    pub per_flow: usize,
}

/// How partitions worked together. Like memory, it says how the run was done and not what came of
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cooperation {
    /// Into how many partitions the fabric was cut; 1 if it stayed whole.
    pub partitions: usize,
    /// How many threads worked on them.
    pub threads: usize,
    /// How often the partitions worked up to an instant without each other; 0 with one partition.
    pub windows: u64,
    /// Packets that went from one partition to another.
    pub crossings: u64,
    /// How so many threads as [`super::SimulationInput::balance_of`] says would have shared the
    /// windows; none if nobody asked, or there is one partition.
    pub sharing: Option<Sharing>,
}

/// How threads would have shared the windows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sharing {
    /// Events of the busiest of them, window by window.
    pub busiest_events: u64,
    /// Windows that they would have shared.
    pub windows: u64,
}

/// Results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// One record a flow, in the order of the traffic; none if they were handed out apart.
    pub flows: Vec<FlowRecord>,
    /// One entry a link, as the topology numbers them.
    pub links: Vec<LinkTotals>,
    /// From when on links sent at other rates than at the start, by link and time.
    pub rate_changes: Vec<RateChange>,
    /// Looks at links and receivers over time; empty unless asked for.
    pub samples: Samples,
    /// Observations of switches' ports in windows of time; empty unless asked for.
    pub observations: Vec<Observation>,
    /// Captured packets of links, by time and link, and how many packets more there were than were
    /// to be kept; empty unless asked for.
    pub captured: (Vec<Captured>, u64),
    /// The congestion windows of flows over time; empty unless asked for.
    pub windows: Vec<CwndSample>,
    /// Traffic of each path; empty unless asked for.
    pub paths: Vec<PathTotal>,
    /// Which links traced flows took; empty unless asked for.
    pub traces: Vec<FlowTrace>,
    /// Where packets were lost, by phase, place and cause; empty unless asked for.
    pub losses: Vec<Drop>,
    /// Which flows came to places where faults take packets, by phase, place and flow; empty unless
    /// asked for. Subflows have rows of their own.
    pub hits: Vec<Hit>,
    /// Arrivals of flows while faults took packets, by phase and flow; empty unless there are such
    /// faults.
    pub arrivals: Vec<ArrivedInPhase>,
    /// When links that change were first used, by phase and link; empty unless asked for.
    pub first_uses: Vec<FirstUse>,
    /// Packets that came to each class of each port that has classes of its own; by link and class.
    pub classes: Vec<ClassOfLink>,
    /// Which links were paused, because of which, and how long; by link, class and blame. Empty
    /// where nobody pauses.
    pub pauses: Vec<PauseOfLink>,
    /// How long pauses kept data of flows from leaving ports, by flow, where any was.
    pub blocked: Vec<(FlowId, Blocked)>,
    /// How full the memory of each switch was; empty where ports do not share any.
    pub shared_buffers: Vec<SharedBufferUse>,
    /// The links on which nothing would ever have moved again, each because of the next one and the
    /// last because of the first; empty unless the run ended by that.
    pub deadlock: Vec<PausedLink>,
    /// Outcome for links that faults slowed in mid-run; empty unless asked for.
    pub slowed: Vec<DegradedLink>,
    /// The largest packet on the wire, in bytes.
    pub largest_packet_bytes: u16,
    /// Counters of the scheme, of credits (`credits_sent`, `credits_dropped`, `credits_wasted`) if
    /// the transport has any, of answers by RDMA receivers (`nacks_sent`, `cnps_sent`) and segments
    /// that they did without (`segments_refused`, `segments_trimmed`) where it is pulled, and
    /// `state_bytes_per_switch` and `state_bytes_per_host`: the most that any node keeps.
    pub scheme: Vec<SchemeCounter>,
    /// Packets in the whole fabric.
    pub packets: PacketCounts,
    /// Packets that were on links when the run ended.
    pub in_flight: u64,
    /// Events processed.
    pub events: u64,
    /// When the run ended.
    pub end: Time,
    /// Memory.
    pub memory: MemoryUse,
    /// How partitions worked together.
    pub cooperation: Cooperation,
}

impl Results {
    /// The mean rate at which a link could send in this time, if it began the run with the rate
    /// `first`.
    pub fn mean_rate(&self, link: u32, first: Rate, from: Time, to: Time) -> Rate {
        let begin = self.rate_changes.partition_point(|change| change.link < link);
        let (mut rate, mut since, mut sum) = (first, from, 0u128);
        let part = |rate: Rate, since: Time, until: Time| {
            u128::from(rate.as_bps()) * u128::from(until.as_ps().saturating_sub(since.as_ps()))
        };
        for change in self.rate_changes[begin..].iter().take_while(|change| change.link == link) {
            let at = change.at.clamp(from, to);
            sum += part(rate, since, at);
            (rate, since) = (change.rate, at);
        }
        sum += part(rate, since, to);
        let length = u128::from(to.as_ps().saturating_sub(from.as_ps()));
        sum.checked_div(length).map_or(rate, |mean| Rate::from_bps(mean as u64))
    }
}
