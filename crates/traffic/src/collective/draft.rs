//! A graph of flows and computations while it is made.

use weft_packet::{Class, HostId};
use weft_units::{Span, Time};

/// A flow or a computation of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Op(pub(crate) u32);

impl Op {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Point of a flow or a computation for which others wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Point {
    /// The flow started: its source knows. Of a computation that takes turns: its turn has come,
    /// and its host knows.
    Started = 0,
    /// Everything is acknowledged: the flow's source knows.
    Acknowledged = 1,
    /// Everything has arrived in order: the flow's destination knows.
    Received = 2,
    /// The computation is done: its host knows.
    Done = 3,
}

impl Point {
    pub(crate) const ALL: [Self; 4] = [Self::Started, Self::Acknowledged, Self::Received, Self::Done];
}

/// Dependency on a point of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct After {
    pub op: Op,
    pub point: Point,
}

/// The collective, of those of a draft, and the step in it that a flow belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The number of the collective; none if the flow is of no collective.
    pub collective: Option<u32>,
    /// The step of its algorithm, from 0.
    pub step: u32,
}

impl Role {
    /// Role in no collective.
    pub const NONE: Self = Self { collective: None, step: 0 };
}

/// Draft of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowDraft {
    pub src: HostId,
    pub dst: HostId,
    pub size_bytes: u64,
    pub class: Class,
    pub transport: u8,
    pub role: Role,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Flow(FlowDraft),
    Computation(HostId),
}

/// A flow or a computation, without what it waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub kind: Kind,
    /// It does not begin before, whatever it waits for.
    pub not_before: Time,
    /// A computation takes so long; a flow is computed for so long before it starts.
    pub takes: Span,
    /// The processor of its host that takes it, if computations take turns there.
    pub processor: Option<u32>,
    /// It begins when so many of those that it waits for are there: all, unless it says fewer.
    pub needs: Option<u32>,
    /// The line of a file that it stands in, or the message that it is; 0 if it stands in none.
    pub line: u32,
}

/// Kind of the parts of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WrittenIn {
    #[default]
    Lines,
    Messages,
    /// Operations of a schedule in GOAL's binary form.
    Operations,
}

/// A graph under way. What is put in is numbered in that order.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub nodes: Vec<Node>,
    /// Who waits for what.
    pub edges: Vec<(Op, After)>,
    /// Unit that the numbers of lines count.
    pub written_in: WrittenIn,
}

impl Draft {
    /// Puts in a flow that starts after a computation of so long.
    pub fn flow(&mut self, flow: FlowDraft, takes: Span) -> Op {
        self.put(Kind::Flow(flow), Time::ZERO, takes)
    }

    /// Puts in a computation.
    pub fn computation(&mut self, host: HostId, takes: Span) -> Op {
        self.put(Kind::Computation(host), Time::ZERO, takes)
    }

    /// Puts in what is there at this time.
    pub fn at(&mut self, host: HostId, time: Time) -> Op {
        self.put(Kind::Computation(host), time, Span::ZERO)
    }

    /// Puts in something.
    pub fn put(&mut self, kind: Kind, not_before: Time, takes: Span) -> Op {
        self.nodes.push(Node { kind, not_before, takes, processor: None, needs: None, line: 0 });
        Op(self.nodes.len() as u32 - 1)
    }

    /// `op` waits for this.
    pub fn after(&mut self, op: Op, waits_for: Op, point: Point) {
        let node = &self.nodes[waits_for.index()];
        let point = match node.kind {
            Kind::Computation(_) if point == Point::Started && node.processor.is_some() => point,
            Kind::Computation(_) => Point::Done,
            Kind::Flow(_) => point,
        };
        self.edges.push((op, After { op: waits_for, point }));
    }

    /// A computation that takes so long once all these are there.
    pub fn join(&mut self, host: HostId, takes: Span, all: impl IntoIterator<Item = (Op, Point)>) -> Op {
        let join = self.computation(host, takes);
        for (op, point) in all {
            self.after(join, op, point);
        }
        join
    }

    /// The host that knows of a point.
    pub fn knows(&self, after: After) -> HostId {
        match (self.nodes[after.op.index()].kind, after.point) {
            (Kind::Computation(host), _) => host,
            (Kind::Flow(flow), Point::Received) => flow.dst,
            (Kind::Flow(flow), _) => flow.src,
        }
    }

    /// The host at which a flow starts, or a computation is done.
    pub fn host(&self, op: Op) -> HostId {
        match self.nodes[op.index()].kind {
            Kind::Computation(host) => host,
            Kind::Flow(flow) => flow.src,
        }
    }

    /// How a message names it.
    pub fn name(&self, op: Op) -> String {
        let node = &self.nodes[op.index()];
        let part = match self.written_in {
            WrittenIn::Lines => "line",
            WrittenIn::Messages => "message",
            WrittenIn::Operations => "operation",
        };
        let line = if node.line > 0 { format!(" ({part} {})", node.line) } else { String::new() };
        match node.kind {
            Kind::Computation(host) => format!("the computation at host {}{line}", host.0),
            Kind::Flow(flow) => format!("the flow {}->{}{line}", flow.src.0, flow.dst.0),
        }
    }
}
