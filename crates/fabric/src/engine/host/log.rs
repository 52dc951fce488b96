//! Measurements of a host: kept apart from every other host's, and taken in from time to time.

use weft_packet::{FlowId, Kind, Packet};
use weft_topology::Topology;
use weft_transport::{Protocol, ReceiverOf, ReceiverStats, Resend, SenderOf, SenderStats, Transports};
use weft_units::{Span, Time};

use super::{Receiver, RunPlan, Sender};
use crate::engine::arrivals::Arrivals;
use crate::engine::deliveries::{KINDS, kind_of};
use crate::engine::drops::goes_to_receiver;
use crate::engine::fct_breakdown::Parts;
use crate::engine::paths::PathMeter;
use crate::engine::results::arrived;

/// The log of one host.
#[derive(Default)]
pub struct HostLog {
    /// Sending ends that are over, in the order in which they ended; in the end, those that are
    /// not, too.
    pub sent: Vec<SenderRecord>,
    /// Flows of the host that waited for others, and when they started.
    pub started: Vec<(FlowId, Time)>,
    /// Receiving ends, in the same way. A flow may have several rows: their numbers add up.
    pub received: Vec<ReceiverRecord>,
    /// Each retransmission timer of its flows that expired, by time.
    pub timeouts: Vec<TimedOut>,
    /// Each segment that it sent again.
    pub resent: Vec<RetransmissionCauses>,
    /// Arrivals at the host over each path, if asked for.
    pub paths: Option<PathMeter>,
    /// Arrivals at the host while faults took packets elsewhere, if any do.
    pub arrivals: Option<Box<Arrivals>>,
    /// Credits that reached it after their flow had ended.
    pub stray_credits: u64,
    /// Payload that its receiving ends that are closed got, by kind of flow.
    pub closed_bytes: [u64; KINDS],
}

impl HostLog {
    /// A packet reached the receiver of its flow, where somebody asks for that.
    #[cold]
    #[inline(never)]
    pub fn note_arrival<T: Transports>(
        &mut self,
        plan: &RunPlan<'_, T>,
        packet: &Packet,
        topology: &Topology,
        now: Time,
    ) {
        if packet.kind == Kind::Data
            && let Some(paths) = &mut self.paths
        {
            let flow = plan.traffic(packet.flow);
            paths.note(topology, packet, flow, plan.header_bytes(flow));
        }
        if goes_to_receiver(packet)
            && let Some(arrivals) = &mut self.arrivals
        {
            arrivals.note((packet.flow.index() % plan.flows.len()) as u32, packet.sent, now);
        }
    }

    /// A sending end is over, or the run is.
    pub fn note_sender<T: Transports>(
        &mut self,
        plan: &RunPlan<'_, T>,
        sender: &Sender<SenderOf<T>>,
        acknowledged: Option<Time>,
    ) {
        let stats = plan.of(&sender.end).sender_stats(&sender.state);
        self.sent.push(SenderRecord { flow: sender.end.flow(), acknowledged, stats });
    }

    /// A receiving end is closed, or the run is over.
    pub fn note_receiver<T: Transports>(
        &mut self,
        plan: &RunPlan<'_, T>,
        receiver: &Receiver<ReceiverOf<T>>,
    ) {
        let flow = receiver.end.flow();
        let stats = plan.of(&receiver.end).receiver_stats(&receiver.state);
        let traffic = &plan.flows[flow.index()];
        self.closed_bytes[kind_of(traffic)] += arrived(&stats, traffic, plan.payload_bytes(traffic));
        self.received.push(ReceiverRecord {
            flow,
            delivered: receiver.complete,
            stats,
            path_changes: receiver.path_changes,
            wait_ps: receiver.wait_ps,
        });
    }
}

/// Record of the sending end of a flow.
#[derive(Debug, Clone, Copy)]
pub struct SenderRecord {
    /// The flow.
    pub flow: FlowId,
    /// When the last acknowledgement came, if it did.
    pub acknowledged: Option<Time>,
    /// Counts of the sender.
    pub stats: SenderStats,
}

/// Record of the receiving end of a flow.
#[derive(Debug, Clone, Copy)]
pub struct ReceiverRecord {
    /// The flow.
    pub flow: FlowId,
    /// When it had the last byte in order, if it ever had.
    pub delivered: Option<Completion>,
    /// Counts of the receiver.
    pub stats: ReceiverStats,
    /// How often a data packet came over another path than the one before.
    pub path_changes: u32,
    /// How long data packets waited in queues, summed by [`crate::Tier`], in ps.
    pub wait_ps: [u64; 4],
}

/// How a receiving end came to have everything.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// When.
    pub at: Time,
    /// Whether a timer let go what was held, and no packet.
    pub by_timer: bool,
    /// Where the time until then went, as far as this end knows.
    pub parts: Parts,
    /// From when on this end knows: the flow's start, or, if that is known at its source alone,
    /// when its first packet was sent.
    pub since: Time,
}

/// A retransmission timer expired.
#[derive(Debug, Clone, Copy)]
pub struct TimedOut {
    /// The flow.
    pub flow: FlowId,
    /// When.
    pub at: Time,
    /// How long the flow's timers ran that expired so far, this one included.
    pub sum: Span,
}

/// A segment was sent again.
#[derive(Debug, Clone, Copy)]
pub struct RetransmissionCauses {
    /// The flow, or the subflow by its number.
    pub flow: FlowId,
    /// The segment.
    pub segment: u32,
    /// Time at which the copy was sent, as it says.
    pub sent: Time,
    /// Why.
    pub cause: Resend,
}
