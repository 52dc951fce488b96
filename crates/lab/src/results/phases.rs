//! What faults did to a run: flows by the stretches of time between their changes, and packets by where they were lost.
//!
//! A flow belongs to the stretch in which it starts, so a stretch has the same flows under every scheme.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use serde::Serialize;
use weft_fabric::{Cause, Given, Loss, Place, Results, Slowed};
use weft_topology::{FaultSpan, Topology};
use weft_units::{Rate, Span, Time};

use super::fault_rows::{DropRow, FaultRow, PhaseRow};
use super::rows::FlowRow;
use super::stats::Statistics;
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
    /// Packets that were lost at these links while it lasted, for whatever reason.
    pub lost_packets: u64,
    /// When the last of them was lost; null if none was.
    pub last_lost_us: Option<f64>,
    /// Packets that switches anywhere had no way for while it lasted.
    pub unroutable_packets: u64,
    /// When the last of them was dropped; null if none was.
    pub last_unroutable_us: Option<f64>,
    /// Of a fault that slows links in mid-run and loses nothing: what became of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowed: Option<SlowedSummary>,
}

/// What became of links that a fault slowed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowedSummary {
    /// When the queue of one of them was last longer, by more than two full packets, than those of all links that could have been taken in
    /// its place; null if it never was.
    pub crowded_until_us: Option<f64>,
    /// Their share of the bytes that they and those links were given before the fault; null if there were none.
    pub share_before: Option<f64>,
    /// And while it lasted.
    pub share_during: Option<f64>,
}

impl SlowedSummary {
    fn of(seen: &Slowed) -> Self {
        let share = |given: Given| {
            let all = given.all.as_u64();
            (all > 0).then(|| given.slowed.as_u64() as f64 / all as f64)
        };
        Self {
            crowded_until_us: seen.crowded_until.map(Time::as_us),
            share_before: share(seen.before),
            share_during: share(seen.during),
        }
    }
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
    /// Of these, flows that did not finish.
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
    pub memory: u64,
    /// The headroom of a lossless class was full.
    pub headroom: u64,
}

impl Lost {
    const fn of(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Queue => &mut self.queue,
            Cause::Down => &mut self.down,
            Cause::Loss => &mut self.loss,
            Cause::Blackhole => &mut self.blackhole,
            Cause::NoRoute => &mut self.no_route,
            Cause::Input => &mut self.input,
            Cause::Memory => &mut self.memory,
            Cause::Headroom => &mut self.headroom,
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
    /// Those of before, during and after that there are.
    pub of_phases: Vec<PhaseSummary>,
}

impl<'a> Phases<'a> {
    /// No flow yet; the run is divided as [`divided_at`] says of these faults.
    pub fn new(spans: &'a [FaultSpan], divided_at: &'a [Time]) -> Self {
        let stretches = if spans.is_empty() { 0 } else { divided_at.len() + 1 };
        Self { spans, divided_at, tallies: vec![Tally::default(); stretches] }
    }

    /// Adds a flow that starts then; one that never began is in no stretch.
    pub fn add(&mut self, start: Time, row: &FlowRow) {
        let place = self.divided_at.partition_point(|at| *at <= start);
        if row.background || row.measured == Some(false) || row.start_us.is_none() {
            return;
        }
        if let Some(tally) = self.tallies.get_mut(place) {
            tally.add(row);
        }
    }

    /// What became of the run: its losses are by stretch.
    ///
    /// # Errors
    /// A table that could not be made; a defect of Weft.
    pub fn told(self, topology: &Topology, results: &Results) -> Result<Told, ArrowError> {
        let Results { losses, slowed, end, .. } = results;
        let (losses, end) = (losses.as_slice(), *end);
        let stretches = self.stretches(end);
        let lost = |phase: usize| losses.iter().filter(move |loss| loss.phase as usize == phase);
        let drops: Vec<DropRow> = losses.iter().map(|loss| drop_row(topology, loss)).collect();
        let rows = (0..).zip(&stretches).zip(&self.tallies).map(|((phase, stretch), tally)| {
            phase_row(phase, stretch, tally, lost(phase as usize).map(|loss| loss.packets).sum())
        });
        let phases: Vec<PhaseRow> = rows.collect();
        let faults = (0..).zip(self.spans).flat_map(|(number, span)| self.fault_rows(number, span, losses));
        let faults: Vec<FaultRow> = faults.collect();
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
                .map(|(number, span)| FaultSummary {
                    slowed: slowed.iter().find(|seen| seen.fault == number).map(SlowedSummary::of),
                    ..self.fault_summary(span, losses)
                })
                .collect(),
            of_phases: ["before", "during", "after"].into_iter().filter_map(summary).collect(),
        })
    }

    /// Those that began before the run ended.
    fn stretches(&self, end: Time) -> Vec<Stretch> {
        let begins = std::iter::once(Time::ZERO).chain(self.divided_at.iter().copied());
        let ends = self.divided_at.iter().copied().chain([end]);
        let stretch = |(from, until): (Time, Time)| {
            let in_force = |span: &&FaultSpan| span.from <= from && span.until.is_none_or(|ends| from < ends);
            let faults = self.spans.iter().filter(in_force).count() as u32;
            let is_over = self.spans.iter().any(|span| span.until.is_some_and(|ends| ends <= from));
            let name = match (faults, is_over) {
                (1.., _) => "during",
                (0, true) => "after",
                (0, false) => "before",
            };
            Stretch { from, until: until.min(end), faults, name }
        };
        let begun = begins.zip(ends).take(self.tallies.len()).take_while(|(from, _)| *from <= end);
        begun.map(stretch).collect()
    }

    /// What was lost while a fault lasted at places that `belongs` chooses: how much, and when the last of it.
    fn lost(&self, span: &FaultSpan, losses: &[Loss], belongs: impl Fn(&Loss) -> bool) -> (u64, Option<f64>) {
        let starts =
            |phase: u32| (phase as usize).checked_sub(1).map_or(Time::ZERO, |before| self.divided_at[before]);
        let lasted = |loss: &&Loss| {
            let at = starts(loss.phase);
            span.from <= at && span.until.is_none_or(|until| at < until)
        };
        let mine: Vec<&Loss> = losses.iter().filter(lasted).filter(|loss| belongs(loss)).collect();
        let last = mine.iter().map(|loss| loss.last).max();
        (mine.iter().map(|loss| loss.packets).sum(), last.map(Time::as_us))
    }

    fn fault_rows(&self, number: u32, span: &FaultSpan, losses: &[Loss]) -> Vec<FaultRow> {
        let row = |(place, link): (usize, &String)| {
            let mine = span.links.get(place).copied().map(Place::Link);
            let (lost_packets, last_lost_us) = self.lost(span, losses, |loss| Some(loss.place) == mine);
            FaultRow {
                fault: number,
                link: link.clone(),
                from_us: span.from.as_us(),
                until_us: span.until.map(Time::as_us),
                down: span.down,
                rate_bps: span.rate.map(Rate::as_bps),
                delay_us: span.delay.map(Span::as_us),
                loss: span.loss,
                blackhole: span.blackhole,
                lost_packets,
                last_lost_us,
            }
        };
        span.names.iter().enumerate().map(row).collect()
    }

    fn fault_summary(&self, span: &FaultSpan, losses: &[Loss]) -> FaultSummary {
        let links: BTreeSet<Place> = span.links.iter().copied().map(Place::Link).collect();
        let (lost_packets, last_lost_us) = self.lost(span, losses, |loss| links.contains(&loss.place));
        let (unroutable_packets, last_unroutable_us) =
            self.lost(span, losses, |loss| loss.cause == Cause::NoRoute);
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
            slowed: None,
        }
    }
}

impl Tally {
    fn add(&mut self, row: &FlowRow) {
        self.flows += 1;
        self.unfinished += u64::from(row.fct_us.is_none());
        self.fct_us.extend(row.fct_us);
        self.slowdown.extend(row.slowdown);
        self.retransmissions += u64::from(row.retransmissions);
        self.timeouts += u64::from(row.timeouts);
    }

    fn take_in(&mut self, other: &Self) {
        self.flows += other.flows;
        self.unfinished += other.unfinished;
        self.fct_us.extend(&other.fct_us);
        self.slowdown.extend(&other.slowdown);
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
    }

    fn summary(self, phase: &'static str, simulated_us: f64, lost: Lost) -> PhaseSummary {
        PhaseSummary {
            phase,
            simulated_us,
            flows: self.flows,
            unfinished: self.unfinished,
            fct_us: Statistics::of(self.fct_us),
            slowdown: Statistics::of(self.slowdown),
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            lost,
        }
    }
}

fn phase_row(phase: u32, stretch: &Stretch, tally: &Tally, lost_packets: u64) -> PhaseRow {
    let (fct, slowdown) = (Statistics::of(tally.fct_us.clone()), Statistics::of(tally.slowdown.clone()));
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

fn drop_row(topology: &Topology, loss: &Loss) -> DropRow {
    DropRow {
        phase: loss.phase,
        place: match loss.place {
            Place::Link(link) => topology.link_name(link),
            Place::Node(node) => topology.names[node as usize].clone(),
        },
        cause: loss.cause.name(),
        packets: loss.packets,
        first_us: loss.first.as_us(),
        last_us: loss.last.as_us(),
    }
}
