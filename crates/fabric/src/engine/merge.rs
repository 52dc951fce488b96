//! What hosts and ports noted, each for itself, made into one record a flow when the run is over.

use std::collections::BTreeMap;

use weft_packet::FlowId;
use weft_topology::{FlowPackets, Ideal};
use weft_transport::{Protocol, ReceiverStats, Transports};
use weft_units::{Span, Time};

use super::copies::{Copies, Dropped};
use super::host::{HostLog, Plan, ReceiverRecord, Resent, SenderRecord, TimedOut};
use super::results::{FlowRecord, arrived};

/// The records of all flows, in the order of the traffic. `ideal_fct` is of the fabric at its best.
pub fn flow_records<T: Transports>(
    plan: &Plan<'_, T>,
    mut ideal_fct: Ideal,
    logs: Vec<HostLog>,
    dropped: &[Dropped],
) -> Vec<FlowRecord> {
    let mut records = Vec::with_capacity(plan.flows.len());
    for flow in plan.flows {
        let ideal =
            if flow.background { Span::ZERO } else { ideal(plan.transport(flow), &mut ideal_fct, flow) };
        records.push(FlowRecord { ideal, ..FlowRecord::default() });
    }
    let mut timeouts: BTreeMap<FlowId, Vec<TimedOut>> = BTreeMap::new();
    let (mut received, mut resent) = (Vec::new(), Vec::new());
    for mut log in logs {
        log.sent.iter().for_each(|row| note_sender(&mut records, row));
        for timeout in log.timeouts.drain(..) {
            timeouts.entry(timeout.flow).or_default().push(timeout);
        }
        resent.append(&mut log.resent);
        received.append(&mut log.received);
    }
    for row in &received {
        let (flow, timeouts) = (&plan.flows[row.flow.index()], timeouts.get(&row.flow));
        let record = &mut records[row.flow.index()];
        note_receiver(record, row, flow.start, timeouts.map_or(&[], Vec::as_slice));
        record.delivered_bytes = arrived(&record.receiver, flow, plan.payload_bytes(flow));
    }
    note_copies(&mut records, &resent, dropped);
    records
}

fn ideal(protocol: &impl Protocol, ideal_fct: &mut Ideal, flow: &weft_traffic::Flow) -> Span {
    let size = protocol.flow_size(flow.size_bytes);
    let packets = FlowPackets {
        full_bytes: protocol.segment_wire_bytes(size, 0),
        full_count: size.segments - 1,
        last_bytes: protocol.segment_wire_bytes(size, size.segments - 1),
    };
    // A flow that no path can carry has no completion time to compare with.
    ideal_fct.fct(flow.src, flow.dst, packets, protocol.handshake_wire_bytes()).unwrap_or_default()
}

fn note_sender(records: &mut [FlowRecord], row: &SenderRecord) {
    let record = &mut records[row.flow.index()];
    record.acknowledged = row.acknowledged;
    record.sender = row.stats;
}

/// `timeouts` are those of the flow, by time.
fn note_receiver(record: &mut FlowRecord, row: &ReceiverRecord, start: Time, timeouts: &[TimedOut]) {
    add(&mut record.receiver, &row.stats);
    record.path_changes += row.path_changes;
    for (sum, wait) in record.wait_ps.iter_mut().zip(row.wait_ps) {
        *sum += wait;
    }
    if let Some(complete) = row.delivered {
        record.delivered = Some(complete.at);
        // At one instant packets come before timers of senders, and those before timers of receivers.
        let before = |timeout: &&TimedOut| {
            timeout.at < complete.at || (complete.by_timer && timeout.at == complete.at)
        };
        let timed_out = timeouts.iter().take_while(before).last().map_or(Span::ZERO, |timeout| timeout.sum);
        record.spent = complete.parts.spent(complete.at.since(start), timed_out, record.ideal);
    }
}

/// Adds what the end of a flow counted that was opened once more.
fn add(sum: &mut ReceiverStats, more: &ReceiverStats) {
    let ReceiverStats {
        segments_received,
        out_of_order,
        duplicates,
        marked,
        credits_sent,
        reselections,
        stalls,
    } = *more;
    sum.segments_received += segments_received;
    sum.out_of_order += out_of_order;
    sum.duplicates += duplicates;
    sum.marked += marked;
    sum.credits_sent += credits_sent;
    sum.reselections += reselections;
    sum.stalls = sum.stalls.and(stalls);
}

fn note_copies(records: &mut [FlowRecord], resent: &[Resent], dropped: &[Dropped]) {
    let flows = records.len();
    let mut copies = Copies::default();
    for resent in resent {
        copies.note_resend(resent);
    }
    for dropped in dropped {
        copies.note_drop(dropped, |flow| records[flow.index() % flows].acknowledged);
    }
    // Subflows are numbered beyond the flows.
    for (flow, dropped, retransmissions) in copies.settle() {
        let record = &mut records[flow.index() % flows];
        record.dropped += dropped;
        record.retransmissions += retransmissions;
    }
}
