//! A collective while its flows are put in, rank by rank.

use std::sync::Arc;

use weft_packet::{Class, HostId};
use weft_units::{Rate, Span};

use super::draft::{Draft, FlowDraft, Op, Point, Role};
use super::{Collective, CollectiveKind, GraphNode};
use crate::ClassSpec;
use crate::carriers::Carriers;

/// Class and transport of the flows of a collective.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carriage {
    /// Their class; none if it follows from their size.
    pub class: Option<Class>,
    /// Their transport; none if it follows from their class.
    pub transport: Option<u8>,
}

/// Builder of a graph and the collectives in it.
pub(crate) struct Builder<'b, 'c> {
    pub draft: Draft,
    pub collectives: Vec<CollectiveDraft>,
    pub classes: &'b ClassSpec,
    pub carriers: &'b mut Carriers<'c>,
}

/// A [`Collective`] before everything has its number.
#[derive(Debug)]
pub(crate) struct CollectiveDraft {
    pub name: Name,
    pub size_bytes: Option<u64>,
    pub bus_factor: Option<f64>,
    pub hosts: Arc<[HostId]>,
    pub entries: Vec<Op>,
    pub exits: Vec<Op>,
}

/// Name of a collective.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub label: String,
    pub kind: CollectiveKind,
    pub algorithm: &'static str,
    pub iteration: u32,
    pub step: Option<u32>,
}

impl CollectiveDraft {
    /// With everything in its place.
    pub fn placed(self, places: &[GraphNode]) -> Collective {
        let placed = |ops: Vec<Op>| ops.into_iter().map(|op| places[op.index()]).collect();
        Collective {
            label: self.name.label,
            kind: self.name.kind,
            algorithm: self.name.algorithm,
            iteration: self.name.iteration,
            step: self.name.step,
            size_bytes: self.size_bytes,
            bus_factor: self.bus_factor,
            hosts: self.hosts,
            entries: placed(self.entries),
            exits: placed(self.exits),
        }
    }
}

impl Builder<'_, '_> {
    /// Puts in a collective of these ranks, each of which begins with its entry. Returns the exits.
    pub fn exchange(
        &mut self,
        name: Name,
        (size_bytes, bus_factor): (Option<u64>, Option<f64>),
        carriage: Carriage,
        (hosts, entries): (&Arc<[HostId]>, &[Op]),
        put: impl FnOnce(&mut Exchange<'_>),
    ) -> Vec<Op> {
        let number = self.collectives.len() as u32;
        let carriers =
            Class::ALL.map(|class| carriage.transport.unwrap_or_else(|| self.carriers.of_class(class)));
        let mut exchange = Exchange {
            draft: &mut self.draft,
            hosts: Arc::clone(hosts),
            entries: entries.to_vec(),
            number,
            class: carriage.class,
            classes: self.classes,
            carriers,
            touched: vec![Vec::new(); hosts.len()],
        };
        put(&mut exchange);
        let exits = exchange.exits();
        self.collectives.push(CollectiveDraft {
            name,
            size_bytes,
            bus_factor,
            hosts: Arc::clone(hosts),
            entries: entries.to_vec(),
            exits: exits.clone(),
        });
        exits
    }
}

/// A collective under way.
pub(crate) struct Exchange<'d> {
    pub draft: &'d mut Draft,
    hosts: Arc<[HostId]>,
    entries: Vec<Op>,
    number: u32,
    class: Option<Class>,
    classes: &'d ClassSpec,
    carriers: [u8; Class::COUNT],
    /// By rank: what it sends and gets.
    touched: Vec<Vec<(Op, Point)>>,
}

impl Exchange<'_> {
    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.hosts.len()
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> HostId {
        self.hosts[rank]
    }

    /// First operation of a rank.
    pub fn entry(&self, rank: usize) -> Op {
        self.entries[rank]
    }

    /// Rank `from` sends to another one. It waits for what it is told to, and for nothing else.
    pub fn send(&mut self, (from, to): (usize, usize), bytes: u64, step: usize, takes: Span) -> Op {
        let class = self.class.unwrap_or_else(|| self.classes.by_size(bytes));
        let role = Role { collective: Some(self.number), step: step as u32 };
        let flow = FlowDraft {
            src: self.hosts[from],
            dst: self.hosts[to],
            size_bytes: bytes,
            class,
            transport: self.carriers[class as usize],
            role,
        };
        let op = self.draft.flow(flow, takes);
        self.touched[from].push((op, Point::Acknowledged));
        self.touched[to].push((op, Point::Received));
        op
    }

    /// Sends from one rank to another once the sender may begin.
    pub fn send_first(&mut self, ranks: (usize, usize), bytes: u64, step: usize, takes: Span) -> Op {
        let op = self.send(ranks, bytes, step, takes);
        self.draft.after(op, self.entries[ranks.0], Point::Done);
        op
    }

    /// Adds an operation that a rank receives in the collective to its end.
    pub fn end_with(&mut self, rank: usize, op: Op) {
        self.touched[rank].push((op, Point::Done));
    }

    /// By rank: the end.
    fn exits(self) -> Vec<Op> {
        let Self { draft, hosts, entries, touched, .. } = self;
        let exit = |((host, entry), touched): ((&HostId, Op), Vec<(Op, Point)>)| {
            draft.join(*host, Span::ZERO, touched.into_iter().chain([(entry, Point::Done)]))
        };
        hosts.iter().zip(entries).zip(touched).map(exit).collect()
    }
}

/// The part with this number of so many that some bytes are cut into: as even as can be.
pub(crate) const fn part(bytes: u64, parts: usize, number: usize) -> u64 {
    let (parts, number) = (parts as u64, number as u64);
    bytes / parts + (number < bytes % parts) as u64
}

/// How long it takes to add up so many bytes.
pub(crate) fn reduction(rate: Option<Rate>, bytes: u64) -> Span {
    rate.map_or(Span::ZERO, |rate| {
        let ps = u128::from(bytes) * 8 * 1_000_000_000_000 / u128::from(rate.as_bps().max(1));
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    })
}
