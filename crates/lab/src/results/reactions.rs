//! How traffic reacted to faults: whether it moved away, by packets that came by other paths, and whether it came back.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_fabric::{ArrivedInPhase, DegradedLink, OfferedBytes, Results};
use weft_topology::FaultSpan;
use weft_units::Time;

use super::blame::{Blame, takes_packets};

/// How traffic reacted to a fault that takes packets.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Reaction {
    /// Flows of which it took packets on the way to their receivers.
    pub hit_flows: u64,
    /// Of these, flows that sent a packet by another path after the last one that met the fault, while it lasted: one that arrived then.
    /// A flow that is silent, as in a retransmission timeout, is not among them.
    pub moved_flows: u64,
    /// When the last of these sent the first such packet; null if none did.
    pub moved_away_us: Option<f64>,
    /// When a link of the fault was first used after it ended; null if it did not end, or none was.
    pub used_again_us: Option<f64>,
}

/// What became of links that a fault slowed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowedSummary {
    /// When the queue of one of them was last longer, by more than two full packets, than those of all links that could have been taken in
    /// its place; null if it never was.
    pub crowded_until_us: Option<f64>,
    /// Bytes that these other links were given since then, or since the fault began, while it lasted: without any, traffic did not move
    /// away, but ceased.
    pub others_since_bytes: u64,
    /// The slowed links' share of the bytes that they and those links were given before the fault; null if there were none.
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

/// How traffic reacted to each of these faults; none of those that take no packets, or have no links in this fabric.
pub(super) fn reactions(
    spans: &[FaultSpan],
    blame: &mut Blame<'_>,
    results: &Results,
) -> Vec<Option<Reaction>> {
    // By fault and flow: whether any packet was lost, and when the last one that met the fault was sent.
    let mut met: BTreeMap<(u32, u32), (bool, Time)> = BTreeMap::new();
    for hit in &results.hits {
        let Some(charge) = blame.of_hit(hit) else { continue };
        let (is_lost, last_sent) = met.entry((charge.fault, hit.flow)).or_insert((false, hit.last_sent));
        *is_lost |= hit.is_lost;
        *last_sent = hit.last_sent.max(*last_sent);
    }
    let arrivals: Vec<&[ArrivedInPhase]> =
        results.arrivals.chunk_by(|one, next| one.phase == next.phase).collect();
    let reaction = |(fault, span): (u32, &FaultSpan)| {
        if !takes_packets(span) || span.links.is_empty() {
            return None;
        }
        let mut found = Reaction { used_again_us: used_again(span, blame, results), ..Reaction::default() };
        let hit = met.range((fault, 0)..=(fault, u32::MAX)).filter(|(_, (is_lost, _))| *is_lost);
        for (&(_, flow), &(_, last_sent)) in hit {
            found.hit_flows += 1;
            if let Some(at) = moved_at(flow, last_sent, span, blame, &arrivals) {
                found.moved_flows += 1;
                found.moved_away_us =
                    Some(found.moved_away_us.map_or(at.as_us(), |last| last.max(at.as_us())));
            }
        }
        Some(found)
    };
    (0..).zip(spans).map(reaction).collect()
}

/// When a flow first sent a packet that arrived while a fault lasted, after the last one that met it. What is sent later than that meets
/// the fault no more, so it took another path.
fn moved_at(
    flow: u32,
    last_sent: Time,
    span: &FaultSpan,
    blame: &Blame<'_>,
    arrivals: &[&[ArrivedInPhase]],
) -> Option<Time> {
    let lasts = |phase: u32| {
        let begin = blame.begin_of(phase);
        span.from <= begin && span.until.is_none_or(|until| begin < until)
    };
    let phases = arrivals.iter().filter(|own| lasts(own[0].phase));
    let mut own =
        phases.filter_map(|own| own.binary_search_by_key(&flow, |one| one.flow).ok().map(|at| own[at]));
    own.find_map(|arrived| arrived.first_after(last_sent))
}

fn used_again(span: &FaultSpan, blame: &Blame<'_>, results: &Results) -> Option<f64> {
    let until = span.until?;
    let mine = results
        .first_uses
        .iter()
        .filter(|one| span.links.contains(&one.link) && blame.begin_of(one.phase) >= until);
    mine.map(|one| one.at).min().map(Time::as_us)
}
