//! From a draft to traffic: everything gets its number and its earliest time, or is refused.
//!
//! Earliest times are those of a network that takes no time: what has to be computed first is all
//! that they count. They order flows, and found on the way is what nobody can satisfy. Computations
//! that take turns take them here, too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use weft_packet::HostId;
use weft_units::{Span, Time};

use super::GraphNode;
use super::dependencies::{Dependencies, MAX_NODES, Waiting};
use super::draft::{After, Draft, Kind, Node, Op, Point, Role};
use super::processor_queue::{ProcessorQueue, Turn};
use crate::{Flow, TrafficError};

/// Flows with names in a message at most.
const NAMED: usize = 8;

/// A draft in order.
#[derive(Debug)]
pub(crate) struct Ordered {
    /// All flows, by start: those that were there before come first among those of one instant.
    pub flows: Vec<Flow>,
    /// By flow.
    pub roles: Vec<Role>,
    /// Dependencies of the flows and computations.
    pub dependencies: Dependencies,
    /// Where each of the draft's is.
    pub places: Vec<GraphNode>,
}

/// Earliest times of the nodes of a draft.
struct Earliest {
    /// When it starts or is done at the earliest; none if it never can.
    at: Vec<Option<Time>>,
    /// Whether that is when it is, since it waits for nothing that is not known beforehand.
    is_known: Vec<bool>,
}

/// A walk through a draft, by time.
struct Walk<'d> {
    draft: &'d Draft,
    /// By node: how many are missing before it begins.
    left: Vec<u32>,
    /// By node: what waits for it, and for which point of it.
    dependents: Vec<Vec<(Op, Point)>>,
    /// Events under way.
    pending: BinaryHeap<Reverse<(Time, Op)>>,
    turns: BTreeMap<(HostId, u32), ProcessorQueue>,
    /// By node: when it starts or is done.
    at: Vec<Option<Time>>,
}

impl<'d> Walk<'d> {
    /// At the beginning.
    fn new(draft: &'d Draft, waits_for: &[Vec<Op>]) -> Self {
        let count = draft.nodes.len();
        let ops = (0..count as u32).map(Op);
        let mut dependents = vec![Vec::new(); count];
        for &(op, after) in &draft.edges {
            dependents[after.op.index()].push((op, after.point));
        }
        let left: Vec<u32> = ops.clone().map(|op| draft.needs(op, waits_for)).collect();
        let begins: Vec<Op> = ops.filter(|op| left[op.index()] == 0).collect();
        let (pending, turns, at) = (BinaryHeap::new(), BTreeMap::new(), vec![None; count]);
        let mut walk = Self { draft, left, dependents, pending, turns, at };
        for op in begins {
            walk.is_ready(op, Time::ZERO);
        }
        walk
    }

    fn walk(mut self) -> Vec<Option<Time>> {
        while let Some(Reverse((time, op))) = self.pending.pop() {
            let processor = self.draft.nodes[op.index()].processor;
            let turns = processor.map(|processor| self.turns.entry((self.draft.host(op), processor)));
            match turns.map_or(Turn::Done(None), |turns| turns.or_default().take(op.0)) {
                Turn::Waits => {}
                Turn::Begins => self.begin(op, time),
                Turn::Done(next) => {
                    self.at[op.index()] = Some(time);
                    // A flow is there when it starts: the network takes no time.
                    self.tell(op, time, |point| point != Point::Started || processor.is_none());
                    if let Some(next) = next {
                        self.begin(Op(next), time);
                    }
                }
            }
        }
        self.at
    }

    /// The turn of a computation has come.
    fn begin(&mut self, op: Op, time: Time) {
        let done = time.saturating_add(self.draft.nodes[op.index()].takes);
        self.pending.push(Reverse((done, op)));
        self.tell(op, time, |point| point == Point::Started);
    }

    /// Notes that everything is there for which the operation waits.
    fn is_ready(&mut self, op: Op, ready: Time) {
        let node = &self.draft.nodes[op.index()];
        let takes = if node.processor.is_some() { Span::ZERO } else { node.takes };
        let first = ready.max(node.not_before).saturating_add(takes);
        self.pending.push(Reverse((first, op)));
    }

    /// These points of it are there.
    fn tell(&mut self, op: Op, time: Time, points: impl Fn(Point) -> bool) {
        for (next, point) in std::mem::take(&mut self.dependents[op.index()]) {
            if !points(point) {
                // The other of its two events is told later.
                self.dependents[op.index()].push((next, point));
                continue;
            }
            let left = &mut self.left[next.index()];
            let is_last = *left == 1;
            // What is there beyond what is needed changes nothing.
            *left = left.saturating_sub(1);
            if is_last {
                self.is_ready(next, time);
            }
        }
    }
}

impl Draft {
    /// Puts these flows and those of `others` in order. `file` is where they are from, for
    /// messages.
    pub(crate) fn ordered(self, others: Vec<Flow>, file: &str) -> Result<Ordered, TrafficError> {
        if self.nodes.len() as u64 + others.len() as u64 >= MAX_NODES {
            return Err(TrafficError::too_many_flows("traffic", self.nodes.len() as f64));
        }
        self.check_local(file)?;
        let waits_for = self.waits_for();
        let earliest = self.earliest(&waits_for);
        if let Some(stuck) = earliest.at.iter().position(Option::is_none) {
            return Err(self.refuse(Op(stuck as u32), &waits_for, &earliest.at, file));
        }
        Ok(self.numbered(others, &earliest))
    }

    /// Refuses what a flow's source cannot know.
    fn check_local(&self, file: &str) -> Result<(), TrafficError> {
        let stranger = |edge: &&(Op, After)| self.knows(edge.1) != self.host(edge.0);
        let Some(&(op, after)) = self.edges.iter().find(stranger) else { return Ok(()) };
        let host = self.host(op).0;
        let found = format!(
            "{} waits for {}, of which host {host} knows nothing",
            self.name(op),
            self.name(after.op)
        );
        let allowed = format!("to wait for flows that end at host {host}, or that it sends");
        Err(TrafficError::BadFile { file: file.to_owned(), found, allowed })
    }

    /// By node: what it waits for.
    fn waits_for(&self) -> Vec<Vec<Op>> {
        let mut waits_for = vec![Vec::new(); self.nodes.len()];
        for &(op, after) in &self.edges {
            waits_for[op.index()].push(after.op);
        }
        waits_for
    }

    fn needs(&self, op: Op, waits_for: &[Vec<Op>]) -> u32 {
        self.nodes[op.index()].needs.unwrap_or(waits_for[op.index()].len() as u32)
    }

    /// Earliest times, by time: what waits for several is there with the last that it needs.
    fn earliest(&self, waits_for: &[Vec<Op>]) -> Earliest {
        let at = Walk::new(self, waits_for).walk();
        Earliest { is_known: self.known(waits_for, &at), at }
    }

    /// Computations that wait for nothing but such computations, and take no turns: nothing that
    /// happens moves them. Those that are needed stand before those that need them, if they were
    /// put in so; others count as not known, which changes no result.
    fn known(&self, waits_for: &[Vec<Op>], at: &[Option<Time>]) -> Vec<bool> {
        let mut known = vec![false; self.nodes.len()];
        for (op, node) in self.nodes.iter().enumerate() {
            let all = waits_for[op].len() as u32 == self.needs(Op(op as u32), waits_for);
            known[op] = at[op].is_some()
                && all
                && matches!(node.kind, Kind::Computation(_))
                && node.processor.is_none()
                && waits_for[op].iter().all(|op| known[op.index()]);
        }
        known
    }

    /// Why this never begins.
    fn refuse(&self, stuck: Op, waits_for: &[Vec<Op>], at: &[Option<Time>], file: &str) -> TrafficError {
        let mut chain = vec![stuck];
        loop {
            let op = chain[chain.len() - 1];
            let waits = &waits_for[op.index()];
            let Some(&next) = waits.iter().find(|next| at[next.index()].is_none()) else {
                let found = format!(
                    "{} waits for {} flows, and {} are said to lead to it",
                    self.name(op),
                    self.needs(op, waits_for),
                    waits.len()
                );
                let allowed = "a count of no more flows than those that lead to it".to_owned();
                return TrafficError::BadFile { file: file.to_owned(), found, allowed };
            };
            if let Some(first) = chain.iter().position(|&before| before == next) {
                return self.refuse_cycle(&chain[first..], file);
            }
            chain.push(next);
        }
    }

    fn refuse_cycle(&self, cycle: &[Op], file: &str) -> TrafficError {
        let mut names: Vec<String> = cycle.iter().take(NAMED).map(|&op| self.name(op)).collect();
        if cycle.len() > NAMED {
            names.push(format!("{} more", cycle.len() - NAMED));
        }
        names.push(self.name(cycle[0]));
        let found = format!("a cycle, in which each waits for the next: {}", names.join(", "));
        let allowed = "dependencies without a cycle".to_owned();
        TrafficError::BadFile { file: file.to_owned(), found, allowed }
    }

    /// Everything with its final number.
    fn numbered(self, others: Vec<Flow>, earliest: &Earliest) -> Ordered {
        let start = |op: usize| earliest.at[op].unwrap_or(Time::NEVER);
        let mut flows: Vec<(Flow, Option<usize>)> = others.into_iter().map(|flow| (flow, None)).collect();
        for (op, node) in self.nodes.iter().enumerate() {
            if let Kind::Flow(draft) = node.kind {
                let flow = Flow {
                    start: start(op),
                    size_bytes: draft.size_bytes,
                    src: draft.src,
                    dst: draft.dst,
                    class: draft.class,
                    background: false,
                    transport: draft.transport,
                };
                flows.push((flow, Some(op)));
            }
        }
        flows.sort_by_key(|(flow, _)| flow.start);
        let mut places = vec![GraphNode::At(Time::ZERO); self.nodes.len()];
        for (number, (_, op)) in (0..).zip(&flows) {
            if let Some(op) = *op {
                places[op] = GraphNode::Flow(number);
            }
        }
        let mut next = flows.len() as u32;
        for (op, node) in self.nodes.iter().enumerate() {
            if matches!(node.kind, Kind::Computation(_)) {
                if earliest.is_known[op] {
                    places[op] = GraphNode::At(start(op));
                } else {
                    places[op] = GraphNode::Computation(next);
                    next += 1;
                }
            }
        }
        let dependencies = self.dependencies(&flows, &places, next as usize);
        let role = |(_, op): &(Flow, Option<usize>)| match op.map(|op| self.nodes[op].kind) {
            Some(Kind::Flow(flow)) => flow.role,
            _ => Role::NONE,
        };
        Ordered {
            roles: flows.iter().map(role).collect(),
            flows: flows.into_iter().map(|(flow, _)| flow).collect(),
            dependencies,
            places,
        }
    }

    fn dependencies(
        &self,
        flows: &[(Flow, Option<usize>)],
        places: &[GraphNode],
        count: usize,
    ) -> Dependencies {
        let blank =
            Waiting { host: HostId(0), needs: 0, not_before: Time::ZERO, takes: Span::ZERO, processor: None };
        let mut nodes = vec![blank; count];
        for (node, (flow, _)) in nodes.iter_mut().zip(flows) {
            *node = Waiting { host: flow.src, not_before: flow.start, ..blank };
        }
        let number = |op: Op| match places[op.index()] {
            GraphNode::Flow(number) | GraphNode::Computation(number) => Some(number),
            GraphNode::At(_) => None,
        };
        for (op, node) in (0..).map(Op).zip(&self.nodes) {
            if let Some(number) = number(op) {
                let Node { not_before, takes, processor, .. } = *node;
                nodes[number as usize] =
                    Waiting { host: self.host(op), needs: 0, not_before, takes, processor };
            }
        }
        let mut edges: Vec<(u32, Point, u32)> = Vec::with_capacity(self.edges.len());
        for &(op, after) in &self.edges {
            let Some(to) = number(op) else { continue };
            let node = &mut nodes[to as usize];
            match places[after.op.index()] {
                // It is known beforehand when that is.
                GraphNode::At(time) => node.not_before = node.not_before.max(time),
                GraphNode::Flow(from) | GraphNode::Computation(from) => {
                    node.needs += 1;
                    edges.push((from, after.point, to));
                }
            }
        }
        for (op, node) in (0..).map(Op).zip(&self.nodes) {
            if let (Some(number), Some(needs)) = (number(op), node.needs) {
                nodes[number as usize].needs = needs;
            }
        }
        Dependencies::new(flows.len(), &nodes, &edges)
    }
}
