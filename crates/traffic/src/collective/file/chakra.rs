//! Execution traces of `MLCommons` Chakra, one for each rank, as protobuf or as JSON: what is sent,
//! and after what. `schema/protobuf/et_def.proto`.
//!
//! Which fields of a node are read, passed over and rejected is in `chakra_node.rs`. Computations
//! of a rank take turns, in the order in which they become ready, and of those that do at one
//! instant by id; what is sent goes on beside them. Operations of the CPU (`is_cpu_op`) and those
//! on memory have turns of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weft_packet::HostId;
use weft_units::Span;

use super::chakra_node::{CollType, Node, NodeType};
use super::lines::Mistake;
use super::{Carried, Graph};
use crate::collective::CollectiveKind;
use crate::collective::binomial::Binomial;
use crate::collective::draft::{Op, Point};
use crate::collective::exchange::Name;
use crate::collective::known::{AllReduce, Half};
use crate::collective::spec::GatherAlgorithm;
use crate::{MAX_FLOW_BYTES, TrafficError};

/// Placeholder for the number of a rank in the name of a file.
pub(crate) const RANK: &str = "{rank}";

/// Ranks at most.
const MAX_RANKS: usize = 1 << 16;

/// A node of a rank.
type At = (usize, usize);

/// A collective: of each rank that takes part, its node, in the order of ranks.
#[derive(Debug, Default)]
struct Together {
    parts: Vec<At>,
}

/// The traces of all ranks.
struct Traces {
    file: String,
    ranks: Vec<Vec<Node>>,
    /// By rank: which node has an id.
    by_id: Vec<BTreeMap<u64, usize>>,
}

/// The ranks that have a file, if the name has a place for their number.
pub(crate) fn ranks_of(file: &Path) -> BTreeSet<usize> {
    let (mut folder, mut parts) = (PathBuf::new(), file.components());
    // The first part with a place for the number: what is beside it says which numbers there are.
    let part = loop {
        match parts.next() {
            Some(part) if part.as_os_str().to_str().is_some_and(|part| part.contains(RANK)) => break part,
            Some(part) => folder.push(part),
            None => return BTreeSet::new(),
        }
    };
    let part = part.as_os_str().to_str().unwrap_or_default();
    let (before, _) = part.split_once(RANK).unwrap_or_default();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let digits = name.strip_prefix(before)?;
        let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
        let rank = digits[..end].parse::<usize>().ok().filter(|rank| *rank < MAX_RANKS)?;
        Path::new(&file_of(file.to_str()?, rank)).exists().then_some(rank)
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
    std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(number).collect()
}

/// The file of a rank.
pub(crate) fn file_of(file: &str, rank: usize) -> String {
    file.replace(RANK, &rank.to_string())
}

/// Reads traces into a graph; `nodes` reads the file of a rank.
pub(crate) fn read(
    file: &str,
    base_dir: &Path,
    nodes: &impl Fn(&str) -> Result<Vec<Node>, TrafficError>,
    graph: &mut Graph<'_, '_, '_>,
) -> Result<(), TrafficError> {
    if !file.contains(RANK) {
        let allowed = format!("a name with {RANK} in it: there is a trace for each rank");
        return Err(TrafficError::bad_value("traffic.schedule.file", format!("{file:?}"), allowed));
    }
    let there = ranks_of(&base_dir.join(file));
    let count = there.last().map_or(0, |last| last + 1);
    if let Some(missing) = (0..count).find(|rank| !there.contains(rank)) {
        let found =
            format!("{} for rank {}, and no {}", file_of(file, count - 1), count - 1, file_of(file, missing));
        let allowed = format!("a trace for each rank, {missing} among them");
        return Err(TrafficError::BadFile { file: file.to_owned(), found, allowed });
    }
    // A rank of which there is no file is told by the reader.
    let ranks = (0..count.max(1)).map(|rank| nodes(&file_of(file, rank))).collect::<Result<Vec<_>, _>>()?;
    graph.set_ranks(count, file)?;
    Traces::new(file, ranks)?.put(graph)
}

impl Traces {
    fn new(file: &str, ranks: Vec<Vec<Node>>) -> Result<Self, TrafficError> {
        let by_id = vec![BTreeMap::new(); ranks.len()];
        let mut traces = Self { file: file.to_owned(), ranks, by_id };
        for rank in 0..traces.ranks.len() {
            for place in 0..traces.ranks[rank].len() {
                let id = traces.ranks[rank][place].id;
                if traces.by_id[rank].insert(id, place).is_some() {
                    // Protocol buffers do not write a 0.
                    let of_none = if id == 0 { ", which is what a node without an id has" } else { "" };
                    let found = format!("the id {id} again{of_none}");
                    return Err(
                        traces.bad((rank, place), (found, "an id of its own for each node".to_owned()))
                    );
                }
            }
        }
        Ok(traces)
    }

    fn bad(&self, (rank, place): At, (found, allowed): Mistake) -> TrafficError {
        let node = &self.ranks[rank][place];
        let found = format!("node {}: {found}", node.id);
        node.stands.bad(&self.file.replace(RANK, &rank.to_string()), (found, allowed))
    }

    fn all(&self) -> impl Iterator<Item = (At, &Node)> {
        let of = |(rank, nodes): (usize, &'_ Vec<Node>)| (0..nodes.len()).map(move |place| (rank, place));
        let all = self.ranks.iter().enumerate().flat_map(of);
        all.map(|at| (at, &self.ranks[at.0][at.1]))
    }

    fn put(&self, graph: &mut Graph<'_, '_, '_>) -> Result<(), TrafficError> {
        let sends = self.sends()?;
        let mut flows: BTreeMap<At, Op> = BTreeMap::new();
        for &(send, (from, to), bytes) in &sends.all {
            let line = self.ranks[send.0][send.1].stands.number();
            let carried = Carried { ends: (from, to), bytes, not_before: weft_units::Time::ZERO, line };
            flows.insert(send, graph.flow(carried, Span::ZERO));
        }
        // Of each node: what waits for others, and what others wait for.
        let mut begins: BTreeMap<At, Op> = BTreeMap::new();
        let mut ends: BTreeMap<At, (Op, Point)> = BTreeMap::new();
        // By id: of those that are ready at one instant, the one with the lowest comes first.
        let by_id = |(rank, ids): (usize, &BTreeMap<u64, usize>)| -> Vec<At> {
            ids.values().map(|&place| (rank, place)).collect()
        };
        for at in self.by_id.iter().enumerate().flat_map(by_id) {
            let node = &self.ranks[at.0][at.1];
            let host = graph.host(at.0);
            let line = node.stands.number();
            let begin = match (flows.get(&at), node.kind) {
                (Some(&flow), _) => flow,
                (None, NodeType::Computation(processor)) => {
                    graph.turn(host, node.takes(), line, processor as u32)
                }
                (None, _) => graph.computation(host, Span::ZERO, line),
            };
            graph.after(begin, graph.begin(at.0), Point::Done);
            begins.insert(at, begin);
            let end = match (flows.get(&at), sends.of_recv.get(&at)) {
                (Some(&flow), _) => (flow, Point::Acknowledged),
                (None, Some(send)) => {
                    let done = graph.computation(host, Span::ZERO, line);
                    graph.after(done, begin, Point::Done);
                    graph.after(done, flows[send], Point::Received);
                    (done, Point::Done)
                }
                (None, None) => (begin, Point::Done),
            };
            ends.insert(at, end);
        }
        for together in self.collectives()?.into_values() {
            self.put_collective(graph, &together, &begins, &mut ends)?;
        }
        for (at, node) in self.all() {
            for dependency in &node.waits_for {
                let Some(&place) = self.by_id[at.0].get(dependency) else {
                    let found = format!("it depends on node {dependency}, which is nowhere");
                    return Err(self.bad(at, (found, "a node of the same rank".to_owned())));
                };
                let (op, point) = ends[&(at.0, place)];
                graph.after(begins[&at], op, point);
            }
            if let (op, Point::Done) = ends[&at] {
                graph.end_with(at.0, op);
            }
        }
        Ok(())
    }

    /// A collective begins at a rank with its node there, and is the end of it.
    fn put_collective(
        &self,
        graph: &mut Graph<'_, '_, '_>,
        together: &Together,
        begins: &BTreeMap<At, Op>,
        ends: &mut BTreeMap<At, (Op, Point)>,
    ) -> Result<(), TrafficError> {
        let first = together.parts[0];
        let Some((kind, bytes)) = self.ranks[first.0][first.1].collective else { return Ok(()) };
        for &part in &together.parts {
            let other = &self.ranks[part.0][part.1];
            if other.collective != Some((kind, bytes)) {
                let found = format!("another collective than rank {} has in its place", first.0);
                return Err(self.bad(part, (found, format!("{kind:?} of {bytes} B at all of its ranks"))));
            }
        }
        let ranks = together.parts.len();
        if ranks < 2 {
            return Err(
                self.bad(first, ("a collective of one rank".to_owned(), "at least 2 ranks".to_owned()))
            );
        }
        // An all-gather says what each rank contributes, all others what each rank has in the
        // beginning (ASTRA-sim, `Ring.cc`; Chakra's converter adds up the tensors that go in).
        let bytes = if kind == CollType::AllGather { bytes * ranks as u64 } else { bytes };
        // A byte for every message is the least.
        let bytes = bytes.max(2 * ranks as u64);
        let hosts: Arc<[HostId]> = together.parts.iter().map(|part| graph.host(part.0)).collect();
        let entries: Vec<Op> = together.parts.iter().map(|part| begins[part]).collect();
        let exits =
            graph.known(kind, bytes, (&hosts, &entries)).map_err(|mistake| self.bad(first, mistake))?;
        for (&part, exit) in together.parts.iter().zip(exits) {
            ends.insert(part, (exit, Point::Done));
        }
        Ok(())
    }

    /// The collectives, by the name of their group and their place in it: at each rank the n-th of
    /// a group is the same one.
    fn collectives(&self) -> Result<BTreeMap<(&str, usize), Together>, TrafficError> {
        let mut counts: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut all: BTreeMap<(&str, usize), Together> = BTreeMap::new();
        for (at, node) in self.all() {
            if node.kind != NodeType::Collective {
                continue;
            }
            let count = counts.entry((at.0, &node.group)).or_insert(0);
            all.entry((&node.group, *count)).or_default().parts.push(at);
            *count += 1;
        }
        let mut most: BTreeMap<&str, usize> =
            all.iter().rev().map(|((group, _), together)| (*group, together.parts.len())).collect();
        // Without a group it is of all ranks.
        most.insert("", self.ranks.len());
        for ((group, number), together) in &all {
            if together.parts.len() < most[group] {
                let found = format!(
                    "collective {number} of group {group:?} at {} of {} ranks",
                    together.parts.len(),
                    most[group]
                );
                return Err(self.bad(together.parts[0], (found, "as many of them at each rank".to_owned())));
            }
        }
        Ok(all)
    }

    /// Sends, and the receiving node of each: the n-th send to a rank with a tag is for the n-th
    /// there from this rank with this tag.
    fn sends(&self) -> Result<Sends, TrafficError> {
        let ranks = self.ranks.len() as u64;
        let mut sends = Sends::default();
        let mut open: BTreeMap<(u64, u64, u64), Vec<At>> = BTreeMap::new();
        for (at, node) in self.all() {
            let peer = |peer: Option<u64>, name: &str| {
                let allowed = || format!("{name}, another rank, 0 to {}", ranks - 1);
                let peer = peer.ok_or_else(|| self.bad(at, (format!("no {name}"), allowed())))?;
                if peer < ranks && peer != at.0 as u64 {
                    return Ok(peer);
                }
                Err(self.bad(at, (format!("{name} {peer}"), allowed())))
            };
            let own = match node.kind {
                NodeType::Send => ("comm_src", node.from),
                NodeType::Recv => ("comm_dst", node.to),
                _ => continue,
            };
            if let (name, Some(rank)) = own
                && rank != at.0 as u64
            {
                let found = format!("{name} {rank} in the trace of rank {}", at.0);
                return Err(self.bad(at, (found, format!("{name} {}, or none", at.0))));
            }
            if node.kind == NodeType::Send {
                let to = peer(node.to, "comm_dst")?;
                let Some(bytes) = node.bytes.filter(|bytes| *bytes <= MAX_FLOW_BYTES) else {
                    let allowed = format!("comm_size, 0 to {MAX_FLOW_BYTES}");
                    return Err(self.bad(at, ("no size that can be".to_owned(), allowed)));
                };
                open.entry((at.0 as u64, to, node.tag)).or_default().push(at);
                sends.all.push((at, (at.0, to as usize), bytes.max(1)));
            }
        }
        let mut taken: BTreeMap<(u64, u64, u64), usize> = BTreeMap::new();
        for (at, node) in self.all() {
            if node.kind != NodeType::Recv {
                continue;
            }
            let allowed = "a COMM_SEND_NODE at that rank to this one with the same tag";
            let from = node.from.filter(|&from| from < ranks);
            let key = from.map(|from| (from, at.0 as u64, node.tag));
            let place = key.map(|key| {
                let taken = taken.entry(key).or_insert(0);
                *taken += 1;
                (key, *taken - 1)
            });
            let send = place.and_then(|(key, place)| open.get(&key)?.get(place).copied());
            let Some(send) = send else {
                let found = format!(
                    "it receives from rank {:?} what nothing is sent for",
                    node.from.unwrap_or_default()
                );
                return Err(self.bad(at, (found, allowed.to_owned())));
            };
            let sent = self.ranks[send.0][send.1].bytes;
            if node.bytes.is_some() && node.bytes != sent {
                let found = format!("comm_size {} of a receive", node.bytes.unwrap_or_default());
                let sent = sent.unwrap_or_default();
                let name = format!("node {} of rank {}", self.ranks[send.0][send.1].id, send.0);
                return Err(self.bad(at, (found, format!("{sent}, as {name} sends"))));
            }
            sends.of_recv.insert(at, send);
        }
        let is_taken = |(key, sent): (&(u64, u64, u64), &Vec<At>)| {
            let count = taken.get(key).copied().unwrap_or(0);
            sent.get(count).copied()
        };
        match open.iter().find_map(is_taken) {
            None => Ok(sends),
            Some(send) => {
                let allowed = "a COMM_RECV_NODE at that rank from this one with the same tag";
                Err(self.bad(send, ("it sends what nothing receives".to_owned(), allowed.to_owned())))
            }
        }
    }
}

/// Sends of a trace.
#[derive(Default)]
struct Sends {
    /// The node, the two ranks, and how many bytes.
    all: Vec<(At, (usize, usize), u64)>,
    /// By receiving node: the sending one.
    of_recv: BTreeMap<At, At>,
}

impl Graph<'_, '_, '_> {
    /// Puts in a collective that libraries have.
    fn known(
        &mut self,
        kind: CollType,
        bytes: u64,
        ranks: (&Arc<[HostId]>, &[Op]),
    ) -> Result<Vec<Op>, Mistake> {
        let algorithm = self.spec.algorithm;
        let (carriage, row) = (self.carriage, self.number);
        let name = |kind: CollectiveKind, algorithm| Name {
            label: kind.name().to_owned(),
            kind,
            algorithm,
            iteration: 0,
            step: Some(row),
        };
        let half = |adds| {
            let algorithm = GatherAlgorithm::Ring;
            Half { bytes, algorithm, chunks: 1, adds, reduction_rate: None }
        };
        let builder = &mut *self.builder;
        Ok(match kind {
            CollType::AllReduce => {
                let what = AllReduce { bytes, algorithm, chunks: 1, reduction_rate: None };
                if !what.fits(ranks.0.len()) {
                    let found = format!("an all-reduce of {} ranks by halving and doubling", ranks.0.len());
                    return Err((found, "a power of two, or another traffic.schedule.algorithm".to_owned()));
                }
                builder.all_reduce(name(CollectiveKind::AllReduce, what.name()), what, carriage, ranks)
            }
            CollType::AllGather => {
                builder.half(name(CollectiveKind::AllGather, "ring"), half(false), carriage, ranks)
            }
            CollType::ReduceScatter => {
                builder.half(name(CollectiveKind::ReduceScatter, "ring"), half(true), carriage, ranks)
            }
            CollType::AllToAll => {
                builder.all_to_all(name(CollectiveKind::AllToAll, ""), bytes, None, carriage, ranks)
            }
            CollType::Broadcast | CollType::Reduce => {
                let reduces = kind == CollType::Reduce;
                let kind = if reduces { CollectiveKind::Reduce } else { CollectiveKind::Broadcast };
                builder.binomial(name(kind, "binomial"), Binomial { bytes, reduces }, carriage, ranks)
            }
            CollType::Barrier => builder.barrier(name(CollectiveKind::Barrier, "tree"), carriage, ranks),
        })
    }
}
