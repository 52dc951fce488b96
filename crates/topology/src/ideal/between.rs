//! The equal-cost paths between two edge switches, folded: switches from which the rest of the way looks the same
//! count as one. A fabric of equal cables folds to one switch a hop, however wide it is.

use std::collections::BTreeMap;

use weft_units::Rate;

use super::Hop;
use crate::{LinkSpec, Routes, Topology};

/// All equal-cost paths from one edge switch to another, hop by hop; no hops within a rack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Between {
    stages: Vec<Stage>,
    /// The hops of the stages before the first one with a choice.
    ordered_hops: Vec<Hop>,
}

/// The links of all paths at the same hop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stage {
    /// How many there are.
    pub links: u64,
    /// The rate of the fastest.
    pub fastest: Rate,
    /// For each kind of switch before this hop, its distinct links and the kind of switch behind each.
    kinds: Vec<Vec<(Hop, u32)>>,
}

impl Between {
    /// The paths between two racks; `None` if there are none. Takes time in proportion to the links on them.
    pub(super) fn find(
        topology: &Topology,
        routes: &Routes,
        src_rack: usize,
        dst_rack: usize,
        marks: &mut Marks,
    ) -> Option<Self> {
        let levels = levels(topology, routes, src_rack, dst_rack, marks)?;
        // The destination is of kind 0. From there back to the source, a hop at a time.
        marks.kind[topology.switch_of_rack[dst_rack] as usize] = 0;
        let mut stages: Vec<Stage> = levels.iter().rev().map(|level| folded(level, marks)).collect();
        stages.reverse();
        let ordered_hops: Vec<Hop> =
            stages.iter().take_while(|stage| stage.links == 1).map(|stage| stage.kinds[0][0].0).collect();
        Some(Self { stages, ordered_hops })
    }

    /// The hops before the first one with a choice.
    pub(super) fn ordered_hops(&self) -> &[Hop] {
        &self.ordered_hops
    }

    /// The hops from the first one with a choice on.
    pub(super) fn choices(&self) -> &[Stage] {
        &self.stages[self.ordered_hops.len()..]
    }

    /// Picoseconds that a lone packet takes over [`Self::choices`] on the path that is best for its size.
    pub(super) fn latency(&self, bytes: u64) -> u64 {
        let mut behind = vec![0];
        for stage in self.choices().iter().rev() {
            let through = |&(hop, kind): &(Hop, u32)| {
                (hop.service(bytes) + hop.delay.as_ps()).saturating_add(behind[kind as usize])
            };
            let best = |links: &Vec<(Hop, u32)>| links.iter().map(through).min().unwrap_or(u64::MAX);
            behind = stage.kinds.iter().map(best).collect();
        }
        behind[0]
    }
}

/// A note on each switch, kept from search to search to spare the allocations, and what a search asks of links, in little room:
/// in a fabric of thousands of racks it asks of millions.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// By link, the switch behind it, of no meaning for links to hosts, and what kind of hop it is.
    ends: Vec<(u32, u32)>,
    /// The kinds of hops, in order.
    hops: Vec<Hop>,
    /// The search that saw it last.
    seen: Vec<u64>,
    /// The search under way.
    search: u64,
    /// Its kind, once the hop behind it is folded.
    kind: Vec<u32>,
}

impl Marks {
    pub(super) fn new(topology: &Topology) -> Self {
        let mut hops: Vec<Hop> = topology.links.iter().map(Hop::of).collect();
        hops.sort_unstable();
        hops.dedup();
        let end = |link: &LinkSpec| {
            let hop = hops.partition_point(|hop| *hop < Hop::of(link));
            (link.to.0.wrapping_sub(topology.hosts as u32), hop as u32)
        };
        let ends = topology.links.iter().map(end).collect();
        Self { ends, hops, seen: vec![0; topology.switches], search: 0, kind: vec![0; topology.switches] }
    }

    /// Whether this search sees the switch for the first time.
    fn first_seen(&mut self, switch: u32) -> bool {
        std::mem::replace(&mut self.seen[switch as usize], self.search) != self.search
    }
}

/// The switches before one hop, and the links that they may send on.
struct Level {
    /// Each switch and how many of `links` are its own.
    switches: Vec<(u32, u32)>,
    links: Vec<u32>,
}

/// The switches before each hop. Each hop leads nearer to the destination, so no switch is in two levels.
fn levels(
    topology: &Topology,
    routes: &Routes,
    src_rack: usize,
    dst_rack: usize,
    marks: &mut Marks,
) -> Option<Vec<Level>> {
    let [start, end] = [src_rack, dst_rack].map(|rack| topology.switch_of_rack[rack]);
    marks.search += 1;
    let mut levels = Vec::new();
    let mut switches = vec![start];
    while switches != [end] {
        let mut level = Level { switches: Vec::with_capacity(switches.len()), links: Vec::new() };
        let mut next = Vec::new();
        for &switch in &switches {
            let before = level.links.len();
            level.links.extend(routes.next_links(topology, switch as usize, dst_rack));
            level.switches.push((switch, (level.links.len() - before) as u32));
            for &link in &level.links[before..] {
                let (end, _) = marks.ends[link as usize];
                if marks.first_seen(end) {
                    next.push(end);
                }
            }
        }
        if next.is_empty() {
            return None;
        }
        levels.push(level);
        switches = next;
    }
    Some(levels)
}

/// One hop, given the kinds of the switches behind it; notes the kinds of the switches before it.
fn folded(level: &Level, marks: &mut Marks) -> Stage {
    let mut stage = Stage { links: level.links.len() as u64, fastest: Rate::default(), kinds: Vec::new() };
    // Hops by their number, which is their order.
    let mut numbers: BTreeMap<Vec<(u32, u32)>, u32> = BTreeMap::new();
    let mut signature: Vec<(u32, u32)> = Vec::new();
    let mut links = level.links.iter();
    for &(switch, count) in &level.switches {
        signature.clear();
        for &link in links.by_ref().take(count as usize) {
            let (end, hop) = marks.ends[link as usize];
            let way = (hop, marks.kind[end as usize]);
            if signature.last() != Some(&way) {
                signature.push(way);
            }
        }
        signature.sort_unstable();
        signature.dedup();
        let known = numbers.get(signature.as_slice()).copied();
        marks.kind[switch as usize] = known.unwrap_or_else(|| {
            let number = stage.kinds.len() as u32;
            numbers.insert(signature.clone(), number);
            let ways: Vec<_> =
                signature.iter().map(|&(hop, kind)| (marks.hops[hop as usize], kind)).collect();
            stage.fastest = ways.iter().map(|(hop, _)| hop.rate).fold(stage.fastest, Rate::max);
            stage.kinds.push(ways);
            number
        });
    }
    stage
}
