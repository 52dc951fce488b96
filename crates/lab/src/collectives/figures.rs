//! The rows of collectives, and what a summary says of them.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_traffic::{Collective, CollectiveKind, Flow, GraphNode, Point, Schedule};
use weft_units::Time;

use super::critical::CriticalLink;
use super::timeline::Timeline;
use crate::results::collective_rows::{CollectiveRow, CriticalRow};
use crate::results::stats::{Sample, Statistics};

/// When the ranks of a collective began and ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    first_entry: Option<Time>,
    last_entry: Option<Time>,
    /// When the first rank was done, if all are.
    first_end: Option<Time>,
    /// When the last was, and which.
    last_end: Option<(Time, u16)>,
    /// Flow or computation that was there last, and which point of it.
    pub last: Option<(u32, Point)>,
    flows: u64,
    flow_bytes: u64,
    unfinished: u64,
    never_started: u64,
}

/// By rank of a collective, while its flows come by.
#[derive(Debug, Clone, Copy, Default)]
struct RankEnd {
    /// The flow that it got last.
    received: Option<(Time, u32)>,
    /// The flow of its own that was acknowledged last.
    acknowledged: Option<(Time, u32)>,
}

/// A row a collective, and when each was done.
pub(crate) fn collective_rows(
    schedule: &Schedule,
    timeline: &Timeline<'_>,
    flows: &[Flow],
) -> (Vec<CollectiveRow>, Vec<Ends>) {
    let mut ranks: Vec<BTreeMap<u16, RankEnd>> = vec![BTreeMap::new(); schedule.collectives.len()];
    let mut ends: Vec<Ends> = vec![Ends::default(); schedule.collectives.len()];
    for (number, (flow, role)) in (0..).zip(flows.iter().zip(&schedule.roles)) {
        let Some(collective) = role.collective.map(|collective| collective as usize) else { continue };
        let known = timeline.flow(number);
        let later = |before: Option<(Time, u32)>, at: Option<Time>| before.max(at.map(|at| (at, number)));
        let to = ranks[collective].entry(flow.dst.0).or_default();
        to.received = later(to.received, known.delivered);
        let from = ranks[collective].entry(flow.src.0).or_default();
        from.acknowledged = later(from.acknowledged, known.acknowledged);
        let step = schedule.collectives[collective].step.map(|step| step as usize);
        for place in [Some(collective), step].into_iter().flatten() {
            ends[place].flows += 1;
            ends[place].flow_bytes += flow.size_bytes;
            ends[place].unfinished += u64::from(known.start.is_some() && known.delivered.is_none());
            ends[place].never_started += u64::from(known.start.is_none());
        }
    }
    let mut rows = Vec::with_capacity(ends.len());
    for (number, (collective, (ranks, ends))) in
        (0..).zip(schedule.collectives.iter().zip(ranks.iter().zip(&mut ends)))
    {
        ends.note_entries(collective, timeline);
        let computes =
            matches!(collective.kind, CollectiveKind::Step | CollectiveKind::File | CollectiveKind::Pipeline);
        if computes {
            ends.note_exits(collective, timeline);
        } else {
            ends.note_ranks(collective, ranks, timeline);
        }
        rows.push(ends.row(number, collective));
    }
    (rows, ends)
}

impl Ends {
    fn note_entries(&mut self, collective: &Collective, timeline: &Timeline<'_>) {
        let entries: Vec<Option<Time>> =
            collective.entries.iter().map(|&entry| timeline.there(entry)).collect();
        self.first_entry = entries.iter().flatten().min().copied();
        self.last_entry =
            entries.iter().copied().collect::<Option<Vec<Time>>>().and_then(|all| all.into_iter().max());
    }

    /// Ranks are done when they have computed everything.
    fn note_exits(&mut self, collective: &Collective, timeline: &Timeline<'_>) {
        let exit = |(&place, host): (&GraphNode, &weft_packet::HostId)| {
            let node = match place {
                GraphNode::Flow(node) | GraphNode::Computation(node) => Some((node, Point::Done)),
                GraphNode::At(_) => None,
            };
            timeline.there(place).map(|at| (at, host.0, node))
        };
        self.end_with(collective.exits.iter().zip(collective.hosts.iter()).map(exit));
    }

    /// Ranks are done when they have what they are to have; one that gets nothing, when all that it
    /// sent is acknowledged.
    fn note_ranks(
        &mut self,
        collective: &Collective,
        ranks: &BTreeMap<u16, RankEnd>,
        timeline: &Timeline<'_>,
    ) {
        if self.unfinished + self.never_started > 0 {
            return;
        }
        let end = |(host, &entry): (&weft_packet::HostId, &GraphNode)| {
            let rank = ranks.get(&host.0).copied().unwrap_or_default();
            let received = rank.received.map(|(at, flow)| (at, host.0, Some((flow, Point::Received))));
            let sent = || rank.acknowledged.map(|(at, flow)| (at, host.0, Some((flow, Point::Acknowledged))));
            received.or_else(sent).or_else(|| timeline.there(entry).map(|at| (at, host.0, None)))
        };
        self.end_with(collective.hosts.iter().zip(&collective.entries).map(end));
    }

    fn end_with(&mut self, ranks: impl Iterator<Item = Option<(Time, u16, Option<(u32, Point)>)>>) {
        let Some(ranks) = ranks.collect::<Option<Vec<_>>>() else { return };
        self.first_end = ranks.iter().map(|rank| rank.0).min();
        // Of several that are done at one instant, the one with the lowest number.
        let last = ranks.into_iter().max_by_key(|&(at, host, _)| (at, std::cmp::Reverse(host)));
        self.last_end = last.map(|(at, host, _)| (at, host));
        self.last = last.and_then(|(_, _, node)| node);
    }

    fn row(&self, number: u32, collective: &Collective) -> CollectiveRow {
        let end = self.last_end.map(|(at, _)| at);
        let took = self.first_entry.zip(end).map(|(start, end)| end.since(start));
        let completion_us = took.map(weft_units::Span::as_us);
        let bus = |us: f64| {
            let bytes = collective.size_bytes? as f64 * collective.bus_factor?;
            // Bits a microsecond are megabits a second.
            (us > 0.0).then(|| bytes * 8.0 / us)
        };
        CollectiveRow {
            collective: number,
            label: collective.label.clone(),
            kind: collective.kind.name(),
            algorithm: Some(collective.algorithm).filter(|name| !name.is_empty()),
            iteration: collective.iteration,
            step: collective.step,
            ranks: collective.hosts.len() as u32,
            size_bytes: collective.size_bytes,
            flows: self.flows,
            flow_bytes: self.flow_bytes,
            unfinished: self.unfinished,
            never_started: self.never_started,
            start_us: self.first_entry.map(Time::as_us),
            entry_spread_us: self
                .first_entry
                .zip(self.last_entry)
                .map(|(first, last)| last.since(first).as_us()),
            end_us: end.map(Time::as_us),
            completion_us,
            bus_bandwidth_mbps: completion_us.and_then(bus),
            slowest_host: self.last_end.map(|(_, host)| host),
            straggler_us: self.first_end.zip(end).map(|(first, last)| last.since(first).as_us()),
        }
    }
}

/// The contents of a schedule's file, as they were read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScheduleRead {
    /// Ranks, each of which is at a host.
    pub ranks: u32,
    /// Messages: flows, with those of collectives that the file has.
    pub messages: u64,
    /// Payload of all messages.
    pub bytes: u64,
    /// The start of the first message if the network took no time.
    pub first_start_us: f64,
    /// The start of the last one, likewise.
    pub last_start_us: f64,
}

/// Collectives that are alike, over all iterations: those of one label, kind and algorithm, and
/// outside of jobs and files also of one size and as many ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollectiveSummary {
    /// Label of the collective in the spec.
    pub label: String,
    /// Kind of collective, as in `collectives.parquet`.
    pub kind: &'static str,
    /// How it goes; null if there is no choice.
    pub algorithm: Option<&'static str>,
    /// The label of the job or file that it is part of; left out if it is part of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// How many ranks take part; null if that differs.
    pub ranks: Option<u32>,
    /// Payload at every rank, as NCCL counts it; null if that differs or means nothing.
    pub size_bytes: Option<u64>,
    /// The contents of the file, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<ScheduleRead>,
    /// How many there are.
    pub count: u64,
    /// How many of them did not finish.
    pub unfinished: u64,
    /// Their completion times.
    pub completion_us: Statistics,
    /// The longest of them; null if one did not finish.
    pub longest_us: Option<f64>,
    /// Lower bound of `longest_us`, if one did not finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_at_least_us: Option<f64>,
    /// Their bandwidth on the bus, on average; null without a convention for it, and if one did not
    /// finish.
    pub bus_bandwidth_mbps: Option<f64>,
    /// From when the first rank was done until the last was, on average; null if one did not
    /// finish.
    pub straggler_us: Option<f64>,
    /// Where the time went on their critical paths; left out if none finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalSummary>,
}

/// The time on critical paths, on average over the collectives that finished, in microseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CriticalSummary {
    /// Flows on a path.
    pub flows: f64,
    /// Compute time of hosts.
    pub compute_us: f64,
    /// Until flows could begin, whatever was there.
    pub waiting_us: f64,
    /// Serialisation, propagation and the fixed delays of nodes.
    pub transmission_us: f64,
    /// In queues of hosts.
    pub host_us: f64,
    /// In queues of edge switches, on the way up.
    pub leaf_us: f64,
    /// In queues of all other switches.
    pub spine_us: f64,
    /// In queues of the links to receivers.
    pub last_us: f64,
    /// In reordering buffers, and for last segments that were late.
    pub reordering_us: f64,
    /// Until retransmission timers expired.
    pub timeouts_us: f64,
    /// Until senders were allowed to send.
    pub window_us: f64,
    /// Until ports that had to pause could go on; left out without lossless classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_us: Option<f64>,
    /// Until senders knew that everything had arrived.
    pub acknowledgement_us: f64,
    /// The flow that lost the most time, beyond transmission and computation.
    pub worst_flow: Option<u32>,
    /// Source and destination of that flow.
    pub worst_hosts: Option<(u16, u16)>,
    /// How much it lost.
    pub worst_us: f64,
    /// The longest part of that: its name as `late_by` in `critical_path.parquet`.
    pub worst_late_by: Option<&'static str>,
    /// How long that part is.
    pub worst_late_us: Option<f64>,
    /// Where that was, as `late_at`.
    pub worst_late_at: Option<String>,
}

/// The first and the last start of the messages of a schedule's file, if the network took no time.
pub(crate) fn file_starts(schedule: &Schedule, flows: &[Flow]) -> Option<(Time, Time)> {
    let file = schedule.collectives.iter().position(|one| one.kind == CollectiveKind::File)? as u32;
    let is_of_file = |number: u32| number == file || schedule.collectives[number as usize].step == Some(file);
    let starts = flows.iter().zip(&schedule.roles);
    let starts =
        starts.filter(|(_, role)| role.collective.is_some_and(is_of_file)).map(|(flow, _)| flow.start);
    Some((starts.clone().min()?, starts.max()?))
}

/// Tells collectives apart that are not alike: label, kind, algorithm, and outside of jobs and
/// files size and ranks.
type Alike<'r> = (&'r str, &'static str, Option<&'static str>, Option<(Option<u64>, u32)>);

/// Summary of collectives, in the order of their first ones; `starts` are those of a file. One that
/// had not finished at `end` has taken at least the time since it began; one that had not begun,
/// whatever time.
pub(crate) fn told(
    rows: &[CollectiveRow],
    critical: &[CriticalLink],
    starts: Option<(Time, Time)>,
    end: Time,
) -> Vec<CollectiveSummary> {
    let mut groups: Vec<Vec<&CollectiveRow>> = Vec::new();
    let mut places: BTreeMap<Alike<'_>, usize> = BTreeMap::new();
    for row in rows {
        let shape = row.step.is_none().then_some((row.size_bytes, row.ranks));
        let place = *places.entry((&row.label, row.kind, row.algorithm, shape)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(row);
    }
    let mut paths: BTreeMap<u32, Vec<&CriticalLink>> = BTreeMap::new();
    for link in critical {
        paths.entry(link.row.collective).or_default().push(link);
    }
    let whole = |row: &CollectiveRow| row.step.and_then(|step| Some(rows.get(step as usize)?.label.clone()));
    let summary = |rows: Vec<&CollectiveRow>| {
        let first = rows[0];
        let is_file = first.kind == CollectiveKind::File.name();
        let read = starts.filter(|_| is_file).map(|(first_start, last_start)| ScheduleRead {
            ranks: first.ranks,
            messages: first.flows,
            bytes: first.flow_bytes,
            first_start_us: first_start.as_us(),
            last_start_us: last_start.as_us(),
        });
        let known = |column: fn(&CollectiveRow) -> Option<f64>| -> Vec<f64> {
            rows.iter().filter_map(|row| column(row)).collect()
        };
        let open = rows.iter().filter(|row| row.completion_us.is_none());
        let open: Vec<f64> =
            open.map(|row| row.start_us.map_or(0.0, |start| (end.as_us() - start).max(0.0))).collect();
        let mean = |values: Vec<f64>| Statistics::of(values).mean.filter(|_| open.is_empty());
        let took = Sample::at_least(known(|row| row.completion_us), &open);
        let longest = took.at(1.0);
        let own: Vec<&Vec<&CriticalLink>> =
            rows.iter().filter_map(|row| paths.get(&row.collective)).collect();
        CollectiveSummary {
            label: first.label.clone(),
            kind: first.kind,
            algorithm: first.algorithm,
            part_of: whole(first),
            ranks: Some(first.ranks).filter(|ranks| rows.iter().all(|row| row.ranks == *ranks)),
            size_bytes: first.size_bytes.filter(|size| rows.iter().all(|row| row.size_bytes == Some(*size))),
            read,
            count: rows.len() as u64,
            unfinished: open.len() as u64,
            completion_us: Statistics::between(&took),
            longest_us: longest.value,
            longest_at_least_us: longest.at_least,
            bus_bandwidth_mbps: mean(known(|row| row.bus_bandwidth_mbps)),
            straggler_us: mean(known(|row| row.straggler_us)),
            critical_path: (!own.is_empty()).then(|| CriticalSummary::of(&own)),
        }
    };
    groups.into_iter().map(summary).collect()
}

impl CriticalSummary {
    fn of(paths: &[&Vec<&CriticalLink>]) -> Self {
        let count = paths.len() as f64;
        let links = || paths.iter().flat_map(|path| path.iter());
        let rows = || links().map(|link| &link.row);
        let mean = |column: fn(&CriticalRow) -> f64| rows().map(column).sum::<f64>() / count;
        let lost = |row: &CriticalRow| {
            row.host_us
                + row.leaf_us
                + row.spine_us
                + row.last_us
                + row.reordering_us
                + row.timeouts_us
                + row.window_us
                + row.pause_us.unwrap_or_default()
        };
        let flows = links().filter(|link| link.row.flow.is_some());
        let worst = flows.clone().max_by(|one, other| {
            lost(&one.row).total_cmp(&lost(&other.row)).then(other.row.flow.cmp(&one.row.flow))
        });
        let worst = worst.filter(|link| lost(&link.row) > 0.0);
        Self {
            flows: flows.count() as f64 / count,
            compute_us: mean(|row| row.compute_us),
            waiting_us: mean(|row| row.waiting_us),
            transmission_us: mean(|row| row.transmission_us),
            host_us: mean(|row| row.host_us),
            leaf_us: mean(|row| row.leaf_us),
            spine_us: mean(|row| row.spine_us),
            last_us: mean(|row| row.last_us),
            reordering_us: mean(|row| row.reordering_us),
            timeouts_us: mean(|row| row.timeouts_us),
            window_us: mean(|row| row.window_us),
            pause_us: rows()
                .any(|row| row.pause_us.is_some())
                .then(|| mean(|row| row.pause_us.unwrap_or_default())),
            acknowledgement_us: mean(|row| row.acknowledgement_us),
            worst_flow: worst.and_then(|link| link.row.flow),
            worst_hosts: worst.and_then(|link| Some((link.row.src, link.row.dst?))),
            worst_us: worst.map_or(0.0, |link| lost(&link.row)),
            worst_late_by: worst.map(|link| link.lost.by),
            worst_late_us: worst.map(|link| link.lost.us),
            worst_late_at: worst.and_then(|link| link.lost.at.clone()),
        }
    }
}
