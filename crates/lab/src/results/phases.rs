//! Effects of faults on a run: flows by the stretches of time between their changes, and packets by
//! where they were lost.
//!
//! A flow belongs to the stretch in which it starts, so a stretch has the same flows under every
//! scheme.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use serde::Serialize;
use weft_fabric::{Drop, DropCause, DropSite, Results};
use weft_topology::{FaultSpan, Topology};
use weft_units::{Rate, Span, Time};

use super::blame::{Blame, Charge};
use super::fault_rows::{DropRow, FaultRow, PhaseRow};
use super::reactions::{Reaction, SlowedSummary, reactions};
use super::rows::FlowRow;
use super::stats::{Sample, Statistics};
use super::table::Row;

/// A fault in a summary. What it does not say is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultSummary {
    /// The links that it hits.
    pub links: Vec<String>,
    /// When it begins.
    pub from_us: f64,
    /// When it ends; null for never.
    pub until_us: Option<f64>,
    /// Whether they are down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// The rate that is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Delay beyond their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<f64>,
    /// Share of packets that they lose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Share of flows that they swallow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blackhole: Option<f64>,
    /// Packets that were lost at these links while it lasted, but for those that another fault of
    /// the same link is charged with.
    pub lost_packets: u64,
    /// When the last of them was lost; null if none was.
    pub last_lost_us: Option<f64>,
    /// Packets that switches had no way for because these links were down.
    pub unroutable_packets: u64,
    /// When the last of them was dropped; null if none was.
    pub last_unroutable_us: Option<f64>,
    /// Reaction of traffic to a fault that takes packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Reaction>,
    /// Summary of a fault that slows links in mid-run and loses nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowed: Option<SlowedSummary>,
}

/// Flows that start before, during or after faults, and packets lost then.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// `before` the first fault, `during` one or several, `after` one and with none in force.
    pub phase: &'static str,
    /// How long that was in all.
    pub simulated_us: f64,
    /// Flows that start then, but for background ones and those outside the window of measurement.
    pub flows: u64,
    /// Number of these flows that did not finish.
    pub unfinished: u64,
    /// Their completion times.
    pub fct_us: Statistics,
    /// Their slowdowns.
    pub slowdown: Statistics,
    /// Segments that they sent again.
    pub retransmissions: u64,
    /// Their retransmission timeouts.
    pub timeouts: u64,
    /// Packets, of whatever flow, that were lost then, by reason.
    pub lost: Lost,
}

/// Packets lost, by reason, as the table `drops` calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Lost {
    /// The queue was full.
    pub queue: u64,
    /// The link was down.
    pub down: u64,
    /// The wire lost them.
    pub loss: u64,
    /// Their flows vanished.
    pub blackhole: u64,
    /// No way led on.
    pub no_route: u64,
    /// A node's own queue was full.
    pub input: u64,
    /// The memory that the ports of a switch share had no room.
    pub shared_buffer: u64,
    /// The headroom of a lossless class was full.
    pub headroom: u64,
}

impl Lost {
    /// By reason, as the table of drops calls it.
    pub(super) fn by_cause(mut self) -> [(&'static str, u64); 8] {
        DropCause::ALL.map(|cause| (cause.name(), *self.of(cause)))
    }

    const fn of(&mut self, cause: DropCause) -> &mut u64 {
        match cause {
            DropCause::Queue => &mut self.queue,
            DropCause::Down => &mut self.down,
            DropCause::Loss => &mut self.loss,
            DropCause::Blackhole => &mut self.blackhole,
            DropCause::NoRoute => &mut self.no_route,
            DropCause::Input => &mut self.input,
            DropCause::SharedBuffer => &mut self.shared_buffer,
            DropCause::Headroom => &mut self.headroom,
        }
    }
}

/// The instants at which faults begin or end, after the start of the run: they divide it.
pub fn divided_at(spans: &[FaultSpan]) -> Vec<Time> {
    let ends = spans.iter().flat_map(|span| [Some(span.from), span.until]).flatten();
    let inner: BTreeSet<Time> = ends.filter(|at| *at > Time::ZERO).collect();
    inner.into_iter().collect()
}

/// Flows by the stretch in which they start.
#[derive(Debug, Clone)]
pub struct Phases<'a> {
    spans: &'a [FaultSpan],
    divided_at: &'a [Time],
    /// One a stretch; none without faults.
    tallies: Vec<Tally>,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    flows: u64,
    unfinished: u64,
    fct_us: Vec<f64>,
    slowdown: Vec<f64>,
    /// Lower bounds of both, of flows that did not finish.
    least_fct_us: Vec<f64>,
    least_slowdown: Vec<f64>,
    retransmissions: u64,
    timeouts: u64,
}

/// A stretch of the run.
struct Stretch {
    from: Time,
    until: Time,
    faults: u32,
    name: &'static str,
}

/// The tables and what the summary says.
pub struct Told {
    /// A row a fault and link.
    pub faults: RecordBatch,
    /// A row a stretch.
    pub phases: RecordBatch,
    /// A row a place, reason and stretch.
    pub drops: RecordBatch,
    /// The faults, in the order of the spec.
    pub of_faults: Vec<FaultSummary>,
    /// Phases before, during and after faults, as far as they exist.
    pub of_phases: Vec<PhaseSummary>,
}

impl<'a> Phases<'a> {
    /// No flow yet; the run is divided as [`divided_at`] says of these faults.
    pub fn new(spans: &'a [FaultSpan], divided_at: &'a [Time]) -> Self {
        let stretches = if spans.is_empty() { 0 } else { divided_at.len() + 1 };
        Self { spans, divided_at, tallies: vec![Tally::default(); stretches] }
    }

    /// Adds a flow that starts then, of a run that ends at `end`; one that never began is in no
    /// stretch.
    pub fn add(&mut self, start: Time, row: &FlowRow, end: Time) {
        let place = self.divided_at.partition_point(|at| *at <= start);
        if row.background || row.measured == Some(false) || row.start_us.is_none() {
            return;
        }
        if let Some(tally) = self.tallies.get_mut(place) {
            tally.add(row, row.age_us(end));
        }
    }

    /// Reports the effects of faults on the run: its losses are by stretch.
    ///
    /// # Errors
    /// A table that could not be made; a defect of Weft.
    pub fn told(self, topology: &Topology, results: &Results) -> Result<Told, ArrowError> {
        let mut blame = Blame::new(topology, self.spans, self.divided_at);
        let charged: Vec<(&Drop, Option<Charge>)> =
            results.losses.iter().map(|loss| (loss, blame.of_loss(loss))).collect();
        let stretches = self.stretches(results.end);
        let lost = |phase: usize| results.losses.iter().filter(move |loss| loss.phase as usize == phase);
        let drops = drop_rows(topology, &charged);
        let rows = (0..).zip(&stretches).zip(&self.tallies).map(|((phase, stretch), tally)| {
            phase_row(phase, stretch, tally, lost(phase as usize).map(|loss| loss.packets).sum())
        });
        let phases: Vec<PhaseRow> = rows.collect();
        let faults = (0..).zip(self.spans).flat_map(|(number, span)| fault_rows(number, span, &charged));
        let faults: Vec<FaultRow> = faults.collect();
        let reactions = reactions(self.spans, &mut blame, results);
        let summary = |name: &'static str| {
            let mine: Vec<usize> =
                (0..stretches.len()).filter(|&phase| stretches[phase].name == name).collect();
            (!mine.is_empty()).then(|| {
                let mut sum = Tally::default();
                let mut by_cause = Lost::default();
                for &phase in &mine {
                    sum.take_in(&self.tallies[phase]);
                    lost(phase).for_each(|loss| *by_cause.of(loss.cause) += loss.packets);
                }
                let took =
                    mine.iter().map(|&phase| stretches[phase].until.since(stretches[phase].from).as_us());
                sum.summary(name, took.sum(), by_cause)
            })
        };
        Ok(Told {
            faults: FaultRow::table(&faults)?,
            phases: PhaseRow::table(&phases)?,
            drops: DropRow::table(&drops)?,
            of_faults: (0..)
                .zip(self.spans)
                .zip(reactions)
                .map(|((number, span), reaction)| FaultSummary {
                    slowed: results.slowed.iter().find(|seen| seen.fault == number).map(SlowedSummary::of),
                    reaction,
                    ..fault_summary(number, span, &charged)
                })
                .collect(),
            of_phases: ["before", "during", "after"].into_iter().filter_map(summary).collect(),
        })
    }

    /// Those that began before the run ended. A fault that lasts as long as the run is part of its
    /// fabric: others begin and end before, during and after it.
    fn stretches(&self, end: Time) -> Vec<Stretch> {
        let lasts = |span: &FaultSpan| span.from == Time::ZERO && span.until.is_none_or(|until| until >= end);
        let changing: Vec<&FaultSpan> =
            self.spans.iter().filter(|span| !lasts(span) && span.from <= end).collect();
        let begins = std::iter::once(Time::ZERO).chain(self.divided_at.iter().copied());
        let ends = self.divided_at.iter().copied().chain([end]);
        let stretch = |(from, until): (Time, Time)| {
            let is_in_force =
                |span: &FaultSpan| span.from <= from && span.until.is_none_or(|ends| from < ends);
            let faults = self.spans.iter().filter(|span| is_in_force(span)).count() as u32;
            let lasts = changing.is_empty() && faults > 0;
            let name = if lasts || changing.iter().any(|span| is_in_force(span)) {
                "during"
            } else if changing.iter().any(|span| span.until.is_some_and(|ends| ends <= from)) {
                "after"
            } else {
                "before"
            };
            Stretch { from, until: until.min(end), faults, name }
        };
        let begun = begins.zip(ends).take(self.tallies.len()).take_while(|(from, _)| *from <= end);
        begun.map(stretch).collect()
    }
}

/// Number of these drops that were charged to a fault, and when the last was lost.
fn sum<'c>(mine: impl Iterator<Item = &'c Drop>) -> (u64, Option<f64>) {
    let (packets, last) =
        mine.fold((0, None), |(packets, last), loss| (packets + loss.packets, last.max(Some(loss.last))));
    (packets, last.map(Time::as_us))
}

/// Losses with the fault and the link that they are charged to.
type Charged<'c> = [(&'c Drop, Option<Charge>)];

/// The losses that a fault is charged with, at this link or all of its links: those with a way on,
/// or without.
fn own<'c>(
    charged: &'c Charged<'c>,
    fault: u32,
    link: Option<u32>,
    has_way: bool,
) -> impl Iterator<Item = &'c Drop> {
    let is_own = move |charge: Charge| charge.fault == fault && link.is_none_or(|link| charge.link == link);
    let mine = charged.iter().filter(move |(_, charge)| charge.is_some_and(is_own)).map(|(loss, _)| *loss);
    mine.filter(move |loss| (loss.cause != DropCause::NoRoute) == has_way)
}

fn fault_rows(number: u32, span: &FaultSpan, charged: &Charged<'_>) -> Vec<FaultRow> {
    let row = |(place, name): (usize, &String)| {
        let link = span.links.get(place).copied();
        let of = |has_way| link.map_or((0, None), |link| sum(own(charged, number, Some(link), has_way)));
        let ((lost_packets, last_lost_us), (unroutable_packets, _)) = (of(true), of(false));
        FaultRow {
            fault: number,
            link: name.clone(),
            from_us: span.from.as_us(),
            until_us: span.until.map(Time::as_us),
            down: span.down,
            rate_bps: span.rate.map(Rate::as_bps),
            delay_us: span.delay.map(Span::as_us),
            loss: span.loss,
            blackhole: span.blackhole,
            lost_packets,
            last_lost_us,
            unroutable_packets,
        }
    };
    span.names.iter().enumerate().map(row).collect()
}

fn fault_summary(number: u32, span: &FaultSpan, charged: &Charged<'_>) -> FaultSummary {
    let (lost_packets, last_lost_us) = sum(own(charged, number, None, true));
    let (unroutable_packets, last_unroutable_us) = sum(own(charged, number, None, false));
    FaultSummary {
        links: span.names.clone(),
        from_us: span.from.as_us(),
        until_us: span.until.map(Time::as_us),
        down: span.down,
        rate_bps: span.rate.map(Rate::as_bps),
        delay_us: span.delay.map(Span::as_us),
        loss: span.loss,
        blackhole: span.blackhole,
        lost_packets,
        last_lost_us,
        unroutable_packets,
        last_unroutable_us,
        reaction: None,
        slowed: None,
    }
}

impl Tally {
    fn add(&mut self, row: &FlowRow, age_us: f64) {
        self.flows += 1;
        self.unfinished += u64::from(row.fct_us.is_none());
        self.fct_us.extend(row.fct_us);
        self.slowdown.extend(row.slowdown);
        if row.fct_us.is_none() {
            let least_us = row.least_fct_us(age_us);
            self.least_fct_us.push(least_us);
            self.least_slowdown.extend(row.ideal_fct_us.map(|ideal| least_us / ideal));
        }
        self.retransmissions += u64::from(row.retransmissions);
        self.timeouts += u64::from(row.timeouts);
    }

    fn take_in(&mut self, other: &Self) {
        self.flows += other.flows;
        self.unfinished += other.unfinished;
        self.fct_us.extend(&other.fct_us);
        self.slowdown.extend(&other.slowdown);
        self.least_fct_us.extend(&other.least_fct_us);
        self.least_slowdown.extend(&other.least_slowdown);
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
    }

    /// Statistics of completion times, and of slowdowns.
    fn statistics(&self) -> [Statistics; 2] {
        [(&self.fct_us, &self.least_fct_us), (&self.slowdown, &self.least_slowdown)]
            .map(|(known, bounds)| Statistics::between(&Sample::at_least(known.clone(), bounds)))
    }

    fn summary(self, phase: &'static str, simulated_us: f64, lost: Lost) -> PhaseSummary {
        let [fct_us, slowdown] = self.statistics();
        PhaseSummary {
            phase,
            simulated_us,
            flows: self.flows,
            unfinished: self.unfinished,
            fct_us,
            slowdown,
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            lost,
        }
    }
}

fn phase_row(phase: u32, stretch: &Stretch, tally: &Tally, lost_packets: u64) -> PhaseRow {
    let [fct, slowdown] = tally.statistics();
    PhaseRow {
        phase,
        name: stretch.name,
        from_us: stretch.from.as_us(),
        until_us: stretch.until.as_us(),
        faults: stretch.faults,
        flows: tally.flows,
        unfinished: tally.unfinished,
        mean_fct_us: fct.mean,
        p50_fct_us: fct.p50,
        p99_fct_us: fct.p99,
        mean_slowdown: slowdown.mean,
        p99_slowdown: slowdown.p99,
        retransmissions: tally.retransmissions,
        timeouts: tally.timeouts,
        lost_packets,
    }
}

/// A row a place, reason, stretch and fault: racks that no way led to are not told apart.
fn drop_rows(topology: &Topology, charged: &Charged<'_>) -> Vec<DropRow> {
    let mut rows: Vec<DropRow> = Vec::new();
    for &(loss, charge) in charged {
        let row = DropRow {
            phase: loss.phase,
            place: match loss.place {
                DropSite::Link(link) => topology.link_name(link),
                DropSite::Node(node) => topology.names[node as usize].clone(),
            },
            cause: loss.cause.name(),
            fault: charge.map(|charge| charge.fault),
            packets: loss.packets,
            first_us: loss.first.as_us(),
            last_us: loss.last.as_us(),
        };
        // They are in order of stretch, place and cause.
        let is_like = |known: &DropRow| {
            (known.phase, known.cause) == (row.phase, row.cause) && known.place == row.place
        };
        let mut alike = rows.iter_mut().rev().take_while(|known| is_like(known));
        match alike.find(|known| known.fault == row.fault) {
            Some(known) => {
                known.packets += row.packets;
                known.first_us = known.first_us.min(row.first_us);
                known.last_us = known.last_us.max(row.last_us);
            }
            None => rows.push(row),
        }
    }
    rows
}
