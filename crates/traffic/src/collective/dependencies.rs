//! Dependencies of flows, as hosts know them: on which flows and computations, and on which of
//! their points.
//!
//! Everything here is local to a host. A flow waits for what its source can know: a flow that ended
//! there, one that began there, or a computation there. Nothing else can be written: see
//! [`super::order`].

use std::collections::BTreeMap;

use weft_packet::HostId;
use weft_units::{Span, Time};

use super::draft::Point;

/// Bits of a dependent's number; the rest say which point it waits for.
const NODE_BITS: u32 = 30;

/// More flows and computations than that do not fit.
pub(crate) const MAX_NODES: u64 = 1 << NODE_BITS;

/// Dependencies of flows and computations. They are numbered together: flows as in the traffic, and
/// computations behind them.
///
/// Of each there is what it waits for as a count, and what waits for it as a list: a host counts
/// down, and looks at nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependencies {
    flows: u32,
    /// By node: how many of those that it waits for have to be there before it begins; 0 if it
    /// waits for none.
    needs: Vec<u32>,
    /// By node: it does not begin before this, and then takes so long.
    times: Vec<(Time, Span)>,
    /// By node, and one more: where its dependents begin.
    first: Vec<u32>,
    /// Dependents, node after node: the point in the upper bits.
    dependents: Vec<u32>,
    /// By node: its number among those of its host.
    numbers: Vec<u32>,
    /// The hosts of the computations.
    hosts: Vec<HostId>,
    /// How many nodes are at each host.
    counts: Vec<u32>,
    /// Computations that wait for nothing.
    begins: Vec<u32>,
    /// By computation, the processor that takes it, by its number at the host; empty if none takes
    /// turns.
    processors: Vec<Option<u32>>,
    /// By host: how many processors it has.
    processor_counts: Vec<u32>,
}

/// A node as [`Dependencies::new`] takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub host: HostId,
    pub needs: u32,
    pub not_before: Time,
    pub takes: Span,
    /// The processor of the host, by any number, if it takes turns there.
    pub processor: Option<u32>,
}

impl Dependencies {
    /// Builds the dependencies of these nodes, the first of which are flows; `edges` list (node,
    /// its point, the node that waits).
    pub(crate) fn new(flows: usize, nodes: &[Waiting], edges: &[(u32, Point, u32)]) -> Self {
        let mut counts = vec![0u32; nodes.iter().map(|node| node.host.index() + 1).max().unwrap_or(0)];
        let mut number = |node: &Waiting| {
            let count = &mut counts[node.host.index()];
            *count += 1;
            *count - 1
        };
        let numbers = nodes.iter().map(&mut number).collect();
        let mut first = vec![0u32; nodes.len() + 1];
        for (from, ..) in edges {
            first[*from as usize + 1] += 1;
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut next = first.clone();
        let mut dependents = vec![0; edges.len()];
        for &(from, point, to) in edges {
            let place = &mut next[from as usize];
            dependents[*place as usize] = (point as u32) << NODE_BITS | to;
            *place += 1;
        }
        let (processors, processor_counts) = processors(&nodes[flows..], counts.len());
        let begins = (0u32..).zip(nodes).skip(flows).filter(|(_, node)| node.needs == 0);
        Self {
            begins: begins.map(|(number, _)| number).collect(),
            processors,
            processor_counts,
            flows: flows as u32,
            needs: nodes.iter().map(|node| node.needs).collect(),
            times: nodes.iter().map(|node| (node.not_before, node.takes)).collect(),
            first,
            dependents,
            numbers,
            hosts: nodes[flows..].iter().map(|node| node.host).collect(),
            counts,
        }
    }

    /// Flows and computations.
    pub fn nodes(&self) -> u32 {
        self.needs.len() as u32
    }

    /// How many of them are flows: those come first.
    pub const fn flows(&self) -> u32 {
        self.flows
    }

    /// Whether this is a flow.
    pub const fn is_flow(&self, node: u32) -> bool {
        node < self.flows
    }

    /// How many of those that it waits for have to be there before it begins; 0 if it begins by
    /// itself.
    pub fn needs(&self, node: u32) -> u32 {
        self.needs[node as usize]
    }

    /// Whether it waits for anything.
    pub fn waits(&self, node: u32) -> bool {
        self.needs[node as usize] > 0
    }

    /// How long it takes: a computation until it is done, a flow until it starts.
    pub fn takes(&self, node: u32) -> Span {
        self.times[node as usize].1
    }

    /// When it begins at the earliest, whatever it waits for.
    pub fn not_before(&self, node: u32) -> Time {
        self.times[node as usize].0
    }

    /// When the first event of one is, if what it waited for was there at `ready`: of a computation
    /// that takes turns, when it is ready; of others, when they are done, or start.
    pub fn first_event(&self, node: u32, ready: Time) -> Time {
        if self.processor(node).is_some() { ready.max(self.not_before(node)) } else { self.due(node, ready) }
    }

    /// When a computation is done that takes no turns, or a flow starts, if what it waited for was
    /// there at `ready`.
    pub fn due(&self, node: u32, ready: Time) -> Time {
        let (not_before, takes) = self.times[node as usize];
        ready.max(not_before).saturating_add(takes)
    }

    /// Number of the node among those of its host.
    pub fn number(&self, node: u32) -> u32 {
        self.numbers[node as usize]
    }

    /// How many there are at a host.
    pub fn count(&self, host: HostId) -> usize {
        self.counts.get(host.index()).map_or(0, |&count| count as usize)
    }

    /// The host of a computation; none of a flow.
    pub fn host(&self, node: u32) -> Option<HostId> {
        self.hosts.get((node.checked_sub(self.flows)?) as usize).copied()
    }

    /// The computations that wait for nothing, by number: their first event is at a time that is
    /// known.
    pub fn begins(&self) -> &[u32] {
        &self.begins
    }

    /// Whether any computation takes turns.
    pub const fn takes_turns(&self) -> bool {
        !self.processors.is_empty()
    }

    /// The processor that takes a computation, by its number at the host; none if it takes no
    /// turns.
    pub fn processor(&self, node: u32) -> Option<u32> {
        *self.processors.get(node.checked_sub(self.flows)? as usize)?
    }

    /// How many processors a host has that computations take turns on.
    pub fn processors(&self, host: HostId) -> usize {
        self.processor_counts.get(host.index()).map_or(0, |&count| count as usize)
    }

    /// Nodes that wait for this point of a node.
    pub fn dependents(&self, node: u32, point: Point) -> impl Iterator<Item = u32> {
        self.all_dependents(node).filter(move |(at, _)| *at == point).map(|(_, node)| node)
    }

    /// Nodes that wait for a node, and for which point of it.
    pub fn all_dependents(&self, node: u32) -> impl Iterator<Item = (Point, u32)> {
        let range = self.first[node as usize] as usize..self.first[node as usize + 1] as usize;
        let one =
            |&packed: &u32| (Point::ALL[(packed >> NODE_BITS) as usize], packed & ((1 << NODE_BITS) - 1));
        self.dependents[range].iter().map(one)
    }
}

/// By computation, the number of its processor among those of its host, and how many each of so
/// many hosts has; nothing if none has any.
fn processors(computations: &[Waiting], hosts: usize) -> (Vec<Option<u32>>, Vec<u32>) {
    if computations.iter().all(|node| node.processor.is_none()) {
        return Default::default();
    }
    let mut counts = vec![0; hosts];
    let mut known = BTreeMap::new();
    let mut number = |node: &Waiting| {
        let count = &mut counts[node.host.index()];
        Some(*known.entry((node.host, node.processor?)).or_insert_with(|| {
            *count += 1;
            *count - 1
        }))
    };
    let numbers = computations.iter().map(&mut number).collect();
    (numbers, counts)
}
