//! The critical path of a collective: from what ended last back to what it waited for, one flow
//! after the other.

use std::cell::OnceCell;

use weft_fabric::FctBreakdown;
use weft_packet::HostId;
use weft_topology::{Fabric, LinkKnowledge, Routes, Tier, Topology};
use weft_traffic::{Collective, Flow, GraphNode, Point, Schedule};
use weft_units::{Span, Time};

use super::figures::Ends;
use super::timeline::Timeline;
use crate::results::collective_rows::CriticalRow;

/// A link of a critical path, and the part of its flow's time that cost most in the network.
pub(super) struct CriticalLink {
    pub row: CriticalRow,
    pub lost: LostPart,
}

/// The longest part of a flow's time but for transmission, the acknowledgement path and whatever
/// its host did before.
pub(super) struct LostPart {
    /// Name of the part, as in `late_by`.
    pub by: &'static str,
    pub us: f64,
    /// Where that was, as in `late_at`.
    pub at: Option<String>,
}

/// Point of a flow for which the next one waited.
#[derive(Debug, Clone, Copy)]
struct Reached {
    node: u32,
    point: Point,
}

/// A link of the chain, as it is found: the last comes first.
struct Link {
    flow: Option<u32>,
    host: u16,
    ready: Time,
    waiting: Span,
    compute: Span,
    start: Time,
    until: Point,
    end: Time,
}

/// The paths of all collectives that came to an end: `ends` are theirs.
pub(super) fn critical_paths(
    schedule: &Schedule,
    timeline: &Timeline<'_>,
    ends: &[Ends],
    (flows, fabric): (&[Flow], &Fabric),
) -> Vec<CriticalLink> {
    let places = LatePlaces::new(fabric);
    let mut rows = Vec::new();
    for (number, (collective, ends)) in schedule.collectives.iter().zip(ends).enumerate() {
        let Some(last) = ends.last else { continue };
        let mut links = chain(collective, timeline, last, flows);
        links.reverse();
        let row = |(place, link): (u32, &Link)| {
            let collective = number as u32;
            row(collective, place, link, timeline, (flows, &places))
        };
        rows.extend((0..).zip(&links).map(row));
    }
    rows
}

/// Back from what was there last.
fn chain(collective: &Collective, timeline: &Timeline<'_>, last: (u32, Point), flows: &[Flow]) -> Vec<Link> {
    let dependencies = timeline.dependencies;
    let is_entry = |node: u32| collective.entries.contains(&GraphNode::Computation(node));
    let mut links: Vec<Link> = Vec::new();
    let mut at = Some(Reached { node: last.0, point: last.1 });
    while let Some(Reached { node, point }) = at.take() {
        if is_entry(node) {
            break;
        }
        let Some(end) = timeline.at(node, point) else { break };
        let is_flow = dependencies.is_flow(node);
        let host = dependencies.host(node).map_or_else(|| flows[node as usize].src.0, |host| host.0);
        // Computations one after the other, back to the flow that they waited for, are one link.
        let (mut waiting, mut compute) = (Span::ZERO, Span::ZERO);
        let (mut from, mut until) = (node, point);
        let ready = loop {
            let decided = timeline.decided(from);
            let there = decided.map(|decided| decided.at);
            let begin = there.unwrap_or_else(|| dependencies.not_before(from));
            let (waits, takes) = timeline.took(from, begin);
            // What waits for the turn of a computation does not wait for its end.
            let has_begun = until == Point::Started && !dependencies.is_flow(from);
            let takes = if has_begun { Span::ZERO } else { takes };
            compute += takes;
            waiting += waits;
            let ready = if decided.is_some() { begin } else { begin_of(timeline, from) };
            let Some(decided) = decided.filter(|decided| waits.is_zero() && !is_entry(decided.by)) else {
                break ready;
            };
            if dependencies.is_flow(decided.by) {
                at = Some(Reached { node: decided.by, point: decided.point });
                break ready;
            }
            (from, until) = (decided.by, decided.point);
        };
        let start = if is_flow { timeline.at(node, Point::Started) } else { Some(end) };
        links.push(Link {
            flow: is_flow.then_some(node),
            host,
            ready,
            waiting,
            compute,
            start: start.unwrap_or(end),
            until: point,
            end,
        });
    }
    // A join takes no time: it is no link.
    links.retain(|link| link.flow.is_some() || link.end > link.ready);
    links
}

/// When something that waits for nothing may begin: a flow is there when it starts, so what is
/// computed before comes off.
fn begin_of(timeline: &Timeline<'_>, node: u32) -> Time {
    let takes = timeline.dependencies.takes(node);
    let there = if timeline.dependencies.is_flow(node) { Point::Started } else { Point::Done };
    timeline
        .at(node, there)
        .map_or(Time::ZERO, |at| Time::from_ps(at.since(Time::ZERO).as_ps().saturating_sub(takes.as_ps())))
}

fn row(
    collective: u32,
    place: u32,
    link: &Link,
    timeline: &Timeline<'_>,
    (flows, places): (&[Flow], &LatePlaces<'_>),
) -> CriticalLink {
    let flow = link.flow.map(|flow| &flows[flow as usize]);
    let known = link.flow.map(|flow| timeline.flow(flow)).filter(|_| link.until != Point::Started);
    let us = Span::as_us;
    let breakdown = known.map(|known| known.fct_breakdown).unwrap_or_default();
    let of_last = known
        .filter(|_| link.until == Point::Acknowledged)
        .map_or(Span::ZERO, |known| link.end.since(known.delivered.unwrap_or(link.end)));
    let acknowledgement = breakdown.acknowledgement + of_last;
    let waits = |tier: Tier| breakdown.waits[tier as usize];
    let lost = [
        ("host queue", waits(Tier::Host)),
        ("leaf queue", waits(Tier::Leaf)),
        ("spine queue", waits(Tier::Spine)),
        ("last queue", waits(Tier::Last)),
        ("reordering", breakdown.reordering),
        ("timeouts", breakdown.timeouts),
        ("window", breakdown.window),
        ("pause", breakdown.pause),
    ];
    let before = [("computation", link.compute), ("waiting", link.waiting)];
    let (late_by, _) = longest(before.into_iter().chain(lost).chain([("acknowledgement", acknowledgement)]));
    let (lost_by, lost) = longest(lost.into_iter());
    let at = |by| places.of(by, link.host, flow, &breakdown);
    let row = CriticalRow {
        collective,
        link: place,
        flow: link.flow,
        src: link.host,
        dst: flow.map(|flow| flow.dst.0),
        ready_us: link.ready.as_us(),
        waiting_us: us(link.waiting),
        compute_us: us(link.compute),
        start_us: link.start.as_us(),
        transmission_us: us(breakdown.transmission),
        host_us: us(waits(Tier::Host)),
        leaf_us: us(waits(Tier::Leaf)),
        spine_us: us(waits(Tier::Spine)),
        last_us: us(waits(Tier::Last)),
        reordering_us: us(breakdown.reordering),
        timeouts_us: us(breakdown.timeouts),
        window_us: us(breakdown.window),
        pause_us: places.may_pause.then(|| us(breakdown.pause)),
        acknowledgement_us: us(acknowledgement),
        end_us: link.end.as_us(),
        late_by,
        late_at: at(late_by),
    };
    CriticalLink { row, lost: LostPart { by: lost_by, us: us(lost), at: at(lost_by) } }
}

/// Longest part; of equal ones, the first; `nothing` if all take no time.
fn longest(parts: impl DoubleEndedIterator<Item = (&'static str, Span)>) -> (&'static str, Span) {
    let longest = parts.rev().max_by_key(|(_, span)| *span).filter(|(_, span)| !span.is_zero());
    longest.unwrap_or(("nothing", Span::ZERO))
}

/// The queues of each tier, as `late_by` has them.
const QUEUES: [&str; 4] = ["host queue", "leaf queue", "spine queue", "last queue"];

/// Names of places.
struct LatePlaces<'f> {
    fabric: &'f Fabric,
    topology: &'f Topology,
    /// Whether ports may have to pause.
    may_pause: bool,
    /// By host: the link from it, and the link to it.
    cables: Vec<(Option<u32>, Option<u32>)>,
    /// The tables at the beginning of the run and, if that may differ, at its end; once somebody
    /// asks.
    routes: OnceCell<Vec<Routes>>,
}

impl<'f> LatePlaces<'f> {
    fn new(fabric: &'f Fabric) -> Self {
        let topology = &fabric.topology;
        let mut cables = vec![(None, None); topology.hosts];
        for (number, link) in (0..).zip(&topology.links) {
            if let Some(cable) = cables.get_mut(link.from.0 as usize) {
                cable.0 = Some(number);
            }
            if let Some(cable) = cables.get_mut(link.to.0 as usize) {
                cable.1 = Some(number);
            }
        }
        let may_pause = topology.shared_buffer.is_some_and(|memory| memory.pause.is_some());
        Self { fabric, topology, may_pause, cables, routes: OnceCell::new() }
    }

    /// Where something is that made a flow late: the queue of a host or the last one are links that
    /// are known. In those between, it is the link at which the packet waited longest, or that was
    /// paused longest while it did, of all that were followed; in fabrics of more tiers the links
    /// of its way that are no leaf's. Where its way is not known, that is the switch at which they
    /// begin, or nothing.
    fn of(&self, late_by: &str, host: u16, flow: Option<&Flow>, breakdown: &FctBreakdown) -> Option<String> {
        let name = |link: Option<u32>| link.map(|link| self.topology.link_name(link));
        let node = |node: usize| self.topology.names.get(node).cloned();
        let dst = flow.map(|flow| usize::from(flow.dst.0));
        let between = |tier: Tier, trail: u16| self.links_between(flow?, tier, trail);
        let is_paused = late_by == "pause";
        let [up, across] = if is_paused { [breakdown.paused_trail; 2] } else { breakdown.trails };
        let late_by = match late_by {
            "pause" => QUEUES[usize::from(breakdown.paused_tier)],
            other => other,
        };
        match late_by {
            "computation" | "waiting" | "window" | "timeouts" => node(usize::from(host)),
            "host queue" => name(self.cables[usize::from(host)].0),
            "last queue" => name(dst.and_then(|dst| self.cables[dst].1)),
            "leaf queue" => between(Tier::Leaf, up).or_else(|| {
                let cable = self.cables[usize::from(host)].0?;
                node(self.topology.links[cable as usize].to.0 as usize)
            }),
            "spine queue" => between(Tier::Spine, across),
            "reordering" => dst.and_then(node),
            _ => None,
        }
    }

    /// The links of a tier on the way of a packet of this flow with this trail.
    fn links_between(&self, flow: &Flow, tier: Tier, trail: u16) -> Option<String> {
        let rack = |host: HostId| usize::from(self.topology.rack_of_host[host.index()]);
        let racks = (rack(flow.src), rack(flow.dst));
        let way = self.routes().iter().find_map(|routes| routes.way(self.topology, racks, trail))?;
        let of_tier = way.into_iter().filter(|&link| self.topology.links[link as usize].tier == tier);
        let names: Vec<String> = of_tier.map(|link| self.topology.link_name(link)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn routes(&self) -> &[Routes] {
        self.routes.get_or_init(|| {
            let at_start = LinkKnowledge::at_start(self.topology);
            let mut at_end = at_start.clone();
            for fault in &self.fabric.faults {
                at_end.up[fault.link as usize] = fault.condition.up;
            }
            let is_same = at_end.up == at_start.up;
            let known = std::iter::once(at_start).chain((!is_same).then_some(at_end));
            known.map(|known| Routes::compute(self.topology, &known, &known.up)).collect()
        })
    }
}
