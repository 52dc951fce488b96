//! How traffic reacted to faults: whether it moved away, by packets that came by other paths, and
//! whether it came back.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_fabric::{ArrivedInPhase, DegradedLink, Hit, OfferedBytes, Results};
use weft_topology::FaultSpan;
use weft_units::Time;

use super::blame::{Blame, takes_packets};

/// Who still took a path by chance, in proportion as before, would go on without it for so many
/// mean intervals in one of 22,000 cases.
const LEFT_AFTER: f64 = 10.0;

/// How traffic reacted to a fault that takes packets.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Reaction {
    /// Flows of which it took packets on the way to their receivers.
    pub hit_flows: u64,
    /// Number of these flows that sent a packet by another path after the last one that met the
    /// fault, while it lasted: one that arrived then. Neither a flow that is silent, as in a
    /// retransmission timeout, nor one that spreads is among them.
    pub moved_flows: u64,
    /// When the last of these sent the first such packet; null if none did.
    pub moved_away_us: Option<f64>,
    /// Flows among the hit ones that spread over it and other paths: a packet by another path,
    /// which arrived while the fault lasted, was sent between the first and the last packet that
    /// met it, and it did not go on by other paths alone for ten times the mean time between
    /// packets that met it.
    pub spread_flows: u64,
    /// Packets that the fault took of these flows.
    pub spread_lost_packets: u64,
    /// And packets of these flows that were sent and arrived while it lasted.
    pub spread_arrived_packets: u64,
    /// When the last packet of these flows that met the fault was sent; null if none spreads.
    pub spread_until_us: Option<f64>,
    /// When a link of the fault was first used after it ended; null if it did not end, or none was.
    pub used_again_us: Option<f64>,
}

/// Summary of links that a fault slowed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowedSummary {
    /// When the queue of one of them was last longer, by more than two full packets, than those of
    /// all links that could have been taken in its place; null if it never was.
    pub crowded_until_us: Option<f64>,
    /// Bytes that these other links were given since then, or since the fault began, while it
    /// lasted: without any, traffic did not move away, but ceased.
    pub others_since_bytes: u64,
    /// The slowed links' share of the bytes that they and those links were given before the fault;
    /// null if there were none.
    pub share_before: Option<f64>,
    /// And while it lasted.
    pub share_during: Option<f64>,
    /// And after it ended; null if it did not, too.
    pub share_after: Option<f64>,
}

impl SlowedSummary {
    pub(super) fn of(seen: &DegradedLink) -> Self {
        let share = |given: OfferedBytes| {
            let all = given.all.as_u64();
            (all > 0).then(|| given.slowed.as_u64() as f64 / all as f64)
        };
        Self {
            crowded_until_us: seen.crowded_until.map(Time::as_us),
            others_since_bytes: seen.others_since.as_u64(),
            share_before: share(seen.before),
            share_during: share(seen.during),
            share_after: share(seen.after),
        }
    }
}

/// How traffic reacted to each of these faults; none of those that take no packets, or have no
/// links in this fabric.
pub(super) fn reactions(
    spans: &[FaultSpan],
    blame: &mut Blame<'_>,
    results: &Results,
) -> Vec<Option<Reaction>> {
    let mut met: BTreeMap<(u32, u32), Met> = BTreeMap::new();
    for hit in &results.hits {
        let Some(charge) = blame.of_hit(hit) else { continue };
        let met = met.entry((charge.fault, hit.flow)).or_insert_with(|| Met::none(hit));
        met.lost_packets += hit.lost_packets;
        met.passed_packets += hit.passed_packets;
        met.first_sent = hit.first_sent.min(met.first_sent);
        met.last_sent = hit.last_sent.max(met.last_sent);
    }
    let arrivals: Vec<&[ArrivedInPhase]> =
        results.arrivals.chunk_by(|one, next| one.phase == next.phase).collect();
    let reaction = |(fault, span): (u32, &FaultSpan)| {
        if !takes_packets(span) || span.links.is_empty() {
            return None;
        }
        let mut found = Reaction { used_again_us: used_again(span, blame, results), ..Reaction::default() };
        let hit = met.range((fault, 0)..=(fault, u32::MAX)).filter(|(_, met)| met.lost_packets > 0);
        for (&(_, flow), met) in hit {
            found.add(met, &arrived_within(flow, span, blame, &arrivals));
        }
        Some(found)
    };
    (0..).zip(spans).map(reaction).collect()
}

/// Packets of a flow that met a fault.
struct Met {
    lost_packets: u64,
    passed_packets: u64,
    first_sent: Time,
    last_sent: Time,
}

impl Met {
    /// No packet yet; the times are those of this hit.
    const fn none(hit: &Hit) -> Self {
        Self { lost_packets: 0, passed_packets: 0, first_sent: hit.first_sent, last_sent: hit.last_sent }
    }

    /// Whether the flow used other paths and the fault by turns, as far as can be seen, by its
    /// packets that arrived while the fault lasted (packets that passed a lossy link are among
    /// these). Not if it left at last: it went on by other paths for [`LEFT_AFTER`] times the mean
    /// time between packets that met the fault.
    fn is_spread(&self, arrived: &[ArrivedInPhase]) -> bool {
        let packets: u64 = arrived.iter().map(|one| one.packets).sum();
        let is_between = |one: &ArrivedInPhase| one.is_any_between(self.first_sent, self.last_sent);
        let met = self.lost_packets + self.passed_packets;
        let between_us = self.last_sent.since(self.first_sent).as_us() / met.saturating_sub(1).max(1) as f64;
        let went_on = arrived.iter().map(|one| one.last_sent).max();
        let has_left = went_on.is_some_and(|last| {
            last > self.last_sent && last.since(self.last_sent).as_us() > LEFT_AFTER * between_us
        });
        packets > self.passed_packets && arrived.iter().any(is_between) && !has_left
    }
}

impl Reaction {
    /// Adds a flow that met the fault and lost packets to it; these of its packets arrived while
    /// the fault lasted.
    fn add(&mut self, met: &Met, arrived: &[ArrivedInPhase]) {
        let latest = |known: &mut Option<f64>, at: Time| {
            *known = Some(known.map_or(at.as_us(), |last| last.max(at.as_us())));
        };
        self.hit_flows += 1;
        if met.is_spread(arrived) {
            self.spread_flows += 1;
            self.spread_lost_packets += met.lost_packets;
            self.spread_arrived_packets += arrived.iter().map(|one| one.packets).sum::<u64>();
            latest(&mut self.spread_until_us, met.last_sent);
        } else if let Some(at) = arrived.iter().find_map(|one| one.first_after(met.last_sent)) {
            // What is sent later than the last packet that met the fault took another path.
            self.moved_flows += 1;
            latest(&mut self.moved_away_us, at);
        }
    }
}

/// Packets of a flow that arrived while a fault lasted, by phase.
fn arrived_within(
    flow: u32,
    span: &FaultSpan,
    blame: &Blame<'_>,
    arrivals: &[&[ArrivedInPhase]],
) -> Vec<ArrivedInPhase> {
    let lasts = |phase: u32| {
        let begin = blame.begin_of(phase);
        span.from <= begin && span.until.is_none_or(|until| begin < until)
    };
    let phases = arrivals.iter().filter(|own| lasts(own[0].phase));
    phases.filter_map(|own| own.binary_search_by_key(&flow, |one| one.flow).ok().map(|at| own[at])).collect()
}

fn used_again(span: &FaultSpan, blame: &Blame<'_>, results: &Results) -> Option<f64> {
    let until = span.until?;
    let mine = results
        .first_uses
        .iter()
        .filter(|one| span.links.contains(&one.link) && blame.begin_of(one.phase) >= until);
    mine.map(|one| one.at).min().map(Time::as_us)
}
