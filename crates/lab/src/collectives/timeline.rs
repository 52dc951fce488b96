//! When everything was there that something waited for: worked out from what was measured of flows,
//! as their hosts did while the run went on.

use std::collections::BTreeMap;

use weft_fabric::{FctBreakdown, FlowRecord};
use weft_traffic::{Dependencies, Flow, GraphNode, Point, Schedule};
use weft_units::{Span, Time};

use super::taken::Taken;

/// Times of one flow that the timeline needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// When it started; none if it did not.
    pub start: Option<Time>,
    /// When its receiver had everything.
    pub delivered: Option<Time>,
    /// When its sender knew.
    pub acknowledged: Option<Time>,
    /// Where its time went.
    pub fct_breakdown: FctBreakdown,
}

/// The flows of a run, as its records come by.
#[derive(Debug, Default)]
pub(crate) struct FlowTimes(Vec<Known>);

impl FlowTimes {
    /// Takes in the records of the next flows, with those.
    pub fn take(&mut self, schedule: &Schedule, flows: &[Flow], records: &[FlowRecord], end: Time) {
        for (flow, record) in flows.iter().zip(records) {
            let start = record.begun(flow, schedule.dependencies.waits(self.0.len() as u32), end);
            let FlowRecord { delivered, acknowledged, fct_breakdown, .. } = *record;
            self.0.push(Known { start, delivered, acknowledged, fct_breakdown });
        }
    }
}

/// Event that let another one begin: a flow or computation, at one of its points, and when that was
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided {
    pub by: u32,
    pub point: Point,
    pub at: Time,
}

/// When each flow and computation began and was there.
#[derive(Debug)]
pub(crate) struct Timeline<'s> {
    pub dependencies: &'s Dependencies,
    flows: Vec<Known>,
    /// By computation: when it was done.
    done: Vec<Option<Time>>,
    /// By node: what let it begin, if it waited for anything and that came.
    decided: Vec<Option<Decided>>,
    /// Computations that waited for their turn: the one before.
    called: BTreeMap<u32, Decided>,
}

impl<'s> Timeline<'s> {
    /// Computes the timeline of these flows.
    pub fn new(dependencies: &'s Dependencies, seen: FlowTimes) -> Self {
        let nodes = dependencies.nodes() as usize;
        let computations = nodes - dependencies.flows() as usize;
        let (done, decided) = (vec![None; computations], vec![None; nodes]);
        let mut timeline = Self { dependencies, flows: seen.0, done, decided, called: BTreeMap::new() };
        if dependencies.takes_turns() {
            let taken = Taken::of(dependencies, &timeline.flows);
            (timeline.done, timeline.called) = (taken.done, taken.called);
        }
        timeline.work_out();
        timeline
    }

    /// Follows what is there from one to the next, by time as far as needed: of several that are
    /// waited for, the last that is needed decides; of several at one instant, the one with the
    /// lowest number.
    fn work_out(&mut self) {
        let nodes = self.dependencies.nodes();
        let mut arrivals: Vec<Vec<Decided>> = vec![Vec::new(); nodes as usize];
        // So many have not said yet when they are there: all but computations are known from the
        // beginning.
        let mut missing = vec![0u32; nodes as usize];
        for node in self.dependencies.flows()..nodes {
            for (_, next) in self.dependencies.all_dependents(node) {
                missing[next as usize] += 1;
            }
        }
        let is_ready = |&node: &u32| missing[node as usize] == 0;
        let mut ready: Vec<u32> = (self.dependencies.flows()..nodes).filter(is_ready).collect();
        for flow in 0..self.dependencies.flows() {
            self.tell(flow, &mut arrivals);
        }
        while let Some(node) = ready.pop() {
            self.decide(node, &mut arrivals);
            self.tell(node, &mut arrivals);
            for (_, next) in self.dependencies.all_dependents(node) {
                missing[next as usize] -= 1;
                if missing[next as usize] == 0 && !self.dependencies.is_flow(next) {
                    ready.push(next);
                }
            }
        }
        for flow in 0..self.dependencies.flows() {
            self.decide(flow, &mut arrivals);
        }
    }

    /// Tells all that wait for this one.
    fn tell(&self, node: u32, arrivals: &mut [Vec<Decided>]) {
        for (point, next) in self.dependencies.all_dependents(node) {
            if let Some(at) = self.at(node, point) {
                arrivals[next as usize].push(Decided { by: node, point, at });
            }
        }
    }

    /// Finds the event that let this node begin, and when a computation was done by it.
    fn decide(&mut self, node: u32, arrivals: &mut [Vec<Decided>]) {
        let needs = self.dependencies.needs(node) as usize;
        let mut there = std::mem::take(&mut arrivals[node as usize]);
        there.sort_by_key(|decided| (decided.at, std::cmp::Reverse(decided.by)));
        self.decided[node as usize] = needs.checked_sub(1).and_then(|last| there.get(last).copied());
        let ready = match self.decided[node as usize] {
            None if needs > 0 => return,
            None => Time::ZERO,
            Some(decided) => decided.at,
        };
        if self.dependencies.processor(node).is_some() {
            // When it was done is known; and if its processor had something else to do, that
            // decided.
            let called = self.called.get(&node).copied();
            self.decided[node as usize] = called.or(self.decided[node as usize]);
        } else if let Some(computation) = node.checked_sub(self.dependencies.flows()) {
            self.done[computation as usize] = Some(self.dependencies.due(node, ready));
        }
    }

    /// When a point of a flow or a computation was there.
    pub fn at(&self, node: u32, point: Point) -> Option<Time> {
        let Some(flow) = self.flows.get(node as usize) else {
            let done = self.done[(node - self.dependencies.flows()) as usize];
            let takes = if point == Point::Started { self.dependencies.takes(node) } else { Span::ZERO };
            return done.map(|done| Time::from_ps(done.as_ps() - takes.as_ps()));
        };
        match point {
            Point::Started | Point::Done => flow.start,
            Point::Acknowledged => flow.acknowledged,
            Point::Received => flow.delivered,
        }
    }

    /// When what is in this place was there: of a flow, when it had arrived.
    pub fn there(&self, place: GraphNode) -> Option<Time> {
        match place {
            GraphNode::At(time) => Some(time),
            GraphNode::Flow(node) | GraphNode::Computation(node) => self.at(node, Point::Received),
        }
    }

    /// Event that let this node begin.
    pub fn decided(&self, node: u32) -> Option<Decided> {
        self.decided[node as usize]
    }

    /// A flow.
    pub fn flow(&self, flow: u32) -> &Known {
        &self.flows[flow as usize]
    }

    /// How long it took once it could begin: waiting for its time, then computing.
    pub fn took(&self, node: u32, ready: Time) -> (Span, Span) {
        (self.dependencies.not_before(node).since(ready), self.dependencies.takes(node))
    }
}
