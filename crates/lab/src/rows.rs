//! From what the engine counted to the rows of the result tables.

use weft_fabric::{Delivery, FlowRecord, FlowTrace, LinkSample, PathTotal, Results, SchemeCounter};
use weft_topology::{Tier, Topology};
use weft_traffic::{Flow, Schedule, Traffic};
use weft_units::{Bytes, Rate, Span, Time};

use crate::linux::KernelFlow;
use crate::results::rows::{CounterRow, DeliveryRow, FlowRow, LinkRow, PathRow, SampleRow, TraceRow};
use crate::window::Window;

/// A row a flow, in the order of the traffic: of those with these records, the first of which is of
/// flow `first`. `labels` are those of several transports, by number; none of one alone.
pub(crate) fn flow_rows(
    traffic: &Traffic,
    window: Option<&Window>,
    labels: &[String],
    kernel: &[Option<KernelFlow>],
    first: usize,
    records: &[FlowRecord],
    end: Time,
) -> Vec<FlowRow> {
    let numbered = (first..).zip(traffic.flows[first..].iter().zip(records));
    let deadline = |id: usize| traffic.deadlines.get(id).copied().flatten();
    let schedule = traffic.schedule.as_ref();
    let role = |schedule: &Schedule, id: usize| {
        let role = schedule.roles[id];
        role.collective.map(|collective| (role, collective))
    };
    let label = |flow: &Flow| labels.get(usize::from(flow.transport)).cloned();
    let rows = numbered.map(|(id, (flow, record))| {
        let waits = schedule.is_some_and(|schedule| schedule.dependencies.waits(id as u32));
        let known = (record, record.begun(flow, waits, end));
        let mut row = flow_row(id as u32, flow, label(flow), known, deadline(id), end);
        if let Some((role, collective)) = schedule.and_then(|schedule| role(schedule, id)) {
            (row.collective, row.collective_step) = (Some(collective), Some(role.step));
        }
        row.measured = window.map(|window| !flow.background && window.has(id));
        if let Some(known) = kernel.get(id).and_then(Option::as_ref) {
            known.fill(flow.start, &mut row);
        }
        row
    });
    rows.collect()
}

fn flow_row(
    id: u32,
    flow: &Flow,
    transport: Option<String>,
    (record, begun): (&FlowRecord, Option<Time>),
    deadline: Option<Span>,
    end: Time,
) -> FlowRow {
    let since_start = |time: Option<Time>| time.zip(begun).map(|(time, start)| time.since(start));
    let done_after = since_start(record.delivered);
    let fct_us = done_after.map(Span::as_us);
    let ideal_fct_us = (!record.ideal.is_zero()).then(|| record.ideal.as_us());
    let age = begun.map_or(Span::ZERO, |start| end.since(start));
    let took_us = if flow.background { Some(age.as_us()) } else { fct_us };
    let missed = |deadline: Span| match done_after {
        Some(took) => Some(took > deadline),
        None => (age > deadline).then_some(true),
    };
    let part_us = |part: Span| record.delivered.map(|_| part.as_us());
    let wait_us = record.wait_ps.map(|ps| Span::from_ps(ps).as_us());
    FlowRow {
        id,
        src: flow.src.0,
        dst: flow.dst.0,
        size_bytes: flow.size_bytes,
        class: flow.class.name(),
        background: flow.background,
        measured: None,
        start_us: begun.map(Time::as_us),
        fct_us,
        sender_fct_us: since_start(record.acknowledged).map(Span::as_us),
        ideal_fct_us,
        slowdown: fct_us.zip(ideal_fct_us).map(|(fct, ideal)| fct / ideal),
        deadline_us: deadline.map(Span::as_us),
        deadline_missed: deadline.and_then(missed),
        delivered_bytes: record.delivered_bytes,
        // Bits a microsecond are megabits a second.
        goodput_mbps: took_us.filter(|us| *us > 0.0).map(|us| record.delivered_bytes as f64 * 8.0 / us),
        segments_sent: record.sender.segments_sent,
        segments_received: record.receiver.segments_received,
        retransmissions: record.sender.retransmissions,
        retransmissions_after_loss: record.retransmissions.after_loss,
        retransmissions_after_reordering: record.retransmissions.after_reordering,
        retransmissions_after_timeout: record.retransmissions.after_timeout,
        dropped_segments: record.dropped,
        timeouts: record.sender.timeouts,
        fast_recoveries: None,
        out_of_order_packets: record.receiver.out_of_order,
        duplicate_segments: record.receiver.duplicates,
        duplicate_acks: None,
        marked_acks: None,
        path_changes: record.path_changes,
        wait_host_us: wait_us[Tier::Host as usize],
        wait_leaf_us: wait_us[Tier::Leaf as usize],
        wait_spine_us: wait_us[Tier::Spine as usize],
        wait_last_us: wait_us[Tier::Last as usize],
        fct_transmission_us: part_us(record.fct_breakdown.transmission),
        fct_host_us: part_us(record.fct_breakdown.waits[Tier::Host as usize]),
        fct_leaf_us: part_us(record.fct_breakdown.waits[Tier::Leaf as usize]),
        fct_spine_us: part_us(record.fct_breakdown.waits[Tier::Spine as usize]),
        fct_last_us: part_us(record.fct_breakdown.waits[Tier::Last as usize]),
        fct_reordering_us: part_us(record.fct_breakdown.reordering),
        fct_timeouts_us: part_us(record.fct_breakdown.timeouts),
        fct_acknowledgement_us: part_us(record.fct_breakdown.acknowledgement),
        fct_window_us: part_us(record.fct_breakdown.window),
        stalled_by_reordering_us: record.receiver.stalls.by_reordering.as_us(),
        stalled_by_loss_us: record.receiver.stalls.by_loss.as_us(),
        timed_out_us: record.sender.timed_out.as_us(),
        fct_pause_us: None,
        blocked_us: None,
        blocked_innocently_us: None,
        nacks: None,
        cnps: None,
        trimmed_segments: None,
        transport,
        collective: None,
        collective_step: None,
        kernel_connected_us: None,
        kernel_fct_us: None,
        kernel_closed_us: None,
        kernel_retransmissions: None,
        kernel_marked: None,
        kernel_dsacks: None,
        kernel_reorderings: None,
        kernel_rtt_us: None,
        kernel_rtt_min_us: None,
        kernel_rto_us: None,
        kernel_cwnd: None,
        kernel_ssthresh: None,
        kernel_mss_bytes: None,
        kernel_subflows: None,
        kernel_fell_back: None,
        kernel_port: None,
    }
}

/// A row a link, as the topology numbers them.
pub(crate) fn link_rows(topology: &Topology, results: &Results) -> Vec<LinkRow> {
    (0..topology.links.len()).map(|index| link_row(topology, index, results)).collect()
}

fn link_row(topology: &Topology, index: usize, results: &Results) -> LinkRow {
    let (link, totals) = (&topology.links[index], &results.links[index]);
    let name = |node: weft_topology::NodeId| topology.names[node.0 as usize].clone();
    LinkRow {
        link: topology.link_name(index as u32),
        from: name(link.from),
        to: name(link.to),
        tier: tier_name(link.tier),
        rate_bps: link.condition.rate.as_bps(),
        delay_us: link.condition.delay.as_us(),
        buffer_bytes: link.queue.buffer(results.largest_packet_bytes).map(Bytes::as_u64),
        packets: totals.packets,
        bytes: totals.bytes,
        dropped_packets: totals.dropped,
        marked_packets: totals.marked,
        utilisation: utilisation(
            totals.sent_bytes(),
            results.mean_rate(index as u32, link.condition.rate, Time::ZERO, results.end),
            results.end.since(Time::ZERO),
        ),
    }
}

/// The share of a link's capacity that these bytes take.
fn utilisation(bytes: u64, rate: Rate, time: Span) -> f64 {
    let capacity_bits = rate.as_bps() as f64 * time.as_s();
    if capacity_bits > 0.0 { bytes as f64 * 8.0 / capacity_bits } else { 0.0 }
}

/// The names of the links, as the topology numbers them.
pub(crate) fn link_names(topology: &Topology) -> Vec<String> {
    (0..topology.links.len()).map(|index| topology.link_name(index as u32)).collect()
}

/// The looks at links, by time and link.
pub(crate) fn sample_rows<'a>(
    topology: &Topology,
    names: &'a [String],
    results: &Results,
) -> Vec<SampleRow<'a>> {
    let pauses = topology.shared_buffer.is_some_and(|memory| memory.pause.is_some());
    let row = |sample: &LinkSample| {
        let interval = interval(sample.at, results);
        let link = &topology.links[sample.link as usize];
        let begin = Time::from_ps(sample.at.as_ps() - interval.as_ps());
        let rate = results.mean_rate(sample.link, link.condition.rate, begin, sample.at);
        SampleRow {
            time_us: sample.at.as_us(),
            interval_us: interval.as_us(),
            link: &names[sample.link as usize],
            tier: tier_name(link.tier),
            rate_bps: rate.as_bps(),
            sent_bytes: sample.sent_bytes,
            utilisation: utilisation(sample.sent_bytes, rate, interval),
            backlog_bytes: sample.backlog_bytes,
            largest_backlog_bytes: sample.largest_backlog_bytes,
            dropped_packets: sample.dropped,
            marked_packets: sample.marked,
            paused_us: pauses.then(|| sample.paused.as_us()),
        }
    };
    results.samples.links.iter().map(row).collect()
}

/// Payload that receivers got, by time and receiver.
pub(crate) fn delivery_rows(results: &Results) -> Vec<DeliveryRow> {
    let row = |delivery: &Delivery| DeliveryRow {
        time_us: delivery.at.as_us(),
        interval_us: interval(delivery.at, results).as_us(),
        host: delivery.host.0,
        class: delivery.class.name(),
        background: delivery.background,
        payload_bytes: delivery.payload_bytes,
    };
    results.samples.deliveries.iter().map(row).collect()
}

/// The length of the interval that ends at `at`. Only the end of the run cuts one short.
fn interval(at: Time, results: &Results) -> Span {
    let every = results.samples.every.unwrap_or_default().as_ps().max(1);
    match at.as_ps() % every {
        0 => Span::from_ps(every),
        rest => Span::from_ps(rest),
    }
}

/// Which links traced flows took, by time, flow and link. The host's own cable, which all of them
/// took, is not among them.
pub(crate) fn trace_rows<'a>(names: &'a [String], traces: &[FlowTrace], end: Time) -> Vec<TraceRow<'a>> {
    let row = |trace: &FlowTrace| {
        let late = if trace.at > end { trace.at.since(end) } else { Span::ZERO };
        TraceRow {
            time_us: trace.at.min(end).as_us(),
            interval_us: trace.interval.as_us() - late.as_us(),
            flow: trace.flow,
            link: &names[trace.link as usize],
            packets: trace.packets,
        }
    };
    traces.iter().map(row).collect()
}

/// Traffic of each path, by racks.
pub(crate) fn path_rows(paths: &[PathTotal], end: Time) -> Vec<PathRow> {
    let run_us = end.since(Time::ZERO).as_us();
    let mut rows: Vec<PathRow> = Vec::with_capacity(paths.len());
    for path in paths {
        let beside =
            rows.last().filter(|last| (last.src_rack, last.dst_rack) == (path.src_rack, path.dst_rack));
        rows.push(PathRow {
            src_rack: path.src_rack,
            dst_rack: path.dst_rack,
            path: beside.map_or(0, |last| last.path + 1),
            carried_bytes: path.bytes,
            // Bits a microsecond are megabits a second.
            throughput_mbps: if run_us > 0.0 { path.bytes as f64 * 8.0 / run_us } else { 0.0 },
        });
    }
    rows
}

pub(crate) const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Host => "host",
        Tier::Leaf => "leaf",
        Tier::Spine => "spine",
        Tier::Last => "last",
    }
}

/// The scheme's counters, in the order in which it gave them.
pub(crate) fn counter_rows(counters: &[SchemeCounter]) -> Vec<CounterRow> {
    counters.iter().map(|counter| CounterRow { name: counter.name.clone(), value: counter.value }).collect()
}
