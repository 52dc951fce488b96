//! When computations that took turns were done: worked out as their hosts did it while the run went
//! on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use weft_packet::HostId;
use weft_traffic::{Dependencies, Point, ProcessorQueue, Turn};
use weft_units::Time;

use super::timeline::{Decided, Known};

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Arrival at a host of the news of a point of a flow. Before all others of its instant.
    Told(u32, Point),
    /// An event of a computation, or of a flow that waited, by number.
    Ready(u32),
}

/// Results of computations.
pub(super) struct Taken<'s> {
    dependencies: &'s Dependencies,
    flows: &'s [Known],
    /// By computation: when it was done.
    pub done: Vec<Option<Time>>,
    /// By computation that waited for its turn: the one before, which was done then.
    pub called: BTreeMap<u32, Decided>,
    /// By node: how many were missing before it could begin.
    missing: Vec<u32>,
    pending: BinaryHeap<Reverse<(Time, Event)>>,
    turns: BTreeMap<(HostId, u32), ProcessorQueue>,
}

impl<'s> Taken<'s> {
    /// Computes when the computations that depend on these flows were done.
    pub fn of(dependencies: &'s Dependencies, flows: &'s [Known]) -> Self {
        let computations = (dependencies.nodes() - dependencies.flows()) as usize;
        let mut taken = Self {
            dependencies,
            flows,
            done: vec![None; computations],
            called: BTreeMap::new(),
            missing: (0..dependencies.nodes()).map(|node| dependencies.needs(node)).collect(),
            pending: BinaryHeap::new(),
            turns: BTreeMap::new(),
        };
        for (flow, known) in (0..).zip(flows) {
            // One that waited starts when its turn comes below: what it waited for may be of the
            // same instant.
            let start = known.start.filter(|_| !dependencies.waits(flow));
            let points = [
                (start, Point::Started),
                (known.acknowledged, Point::Acknowledged),
                (known.delivered, Point::Received),
            ];
            for (at, point) in points {
                taken.pending.extend(at.map(|at| Reverse((at, Event::Told(flow, point)))));
            }
        }
        for &node in dependencies.begins() {
            taken.pending.push(Reverse((dependencies.first_event(node, Time::ZERO), Event::Ready(node))));
        }
        while let Some(Reverse((now, event))) = taken.pending.pop() {
            match event {
                Event::Told(flow, point) => taken.reach(flow, point, now),
                Event::Ready(node) => taken.ready(node, now),
            }
        }
        taken
    }

    fn ready(&mut self, node: u32, now: Time) {
        let Some(host) = self.dependencies.host(node) else {
            if self.flows[node as usize].start.is_some() {
                self.reach(node, Point::Started, now);
            }
            return;
        };
        let processor = self.dependencies.processor(node);
        let turns = processor.map(|number| self.turns.entry((host, number)).or_default());
        match turns.map_or(Turn::Done(None), |turns| turns.take(node)) {
            Turn::Waits => {}
            Turn::Begins => self.begin(node, now),
            Turn::Done(next) => {
                self.done[(node - self.dependencies.flows()) as usize] = Some(now);
                self.reach(node, Point::Done, now);
                if let Some(next) = next {
                    self.called.insert(next, Decided { by: node, point: Point::Done, at: now });
                    self.begin(next, now);
                }
            }
        }
    }

    fn begin(&mut self, node: u32, now: Time) {
        let done = now.saturating_add(self.dependencies.takes(node));
        self.pending.push(Reverse((done, Event::Ready(node))));
        self.reach(node, Point::Started, now);
    }

    fn reach(&mut self, node: u32, point: Point, now: Time) {
        for next in self.dependencies.dependents(node, point) {
            let missing = &mut self.missing[next as usize];
            if *missing == 1 {
                self.pending.push(Reverse((self.dependencies.first_event(next, now), Event::Ready(next))));
            }
            *missing = missing.saturating_sub(1);
        }
    }
}
