//! The equal-cost paths between two edge switches, folded: switches from which the rest of the way looks the same
//! count as one. A fabric of equal cables folds to one switch a hop, however wide it is.

use std::collections::BTreeMap;

use weft_units::Rate;

use super::Hop;
use crate::topology::{Routes, Topology};

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
    /// The paths between two racks; `None` if there are none.
    pub(super) fn find(
        topology: &Topology,
        routes: &Routes,
        src_rack: usize,
        dst_rack: usize,
    ) -> Option<Self> {
        let levels = levels(topology, routes, src_rack, dst_rack)?;
        // The destination is of kind 0. From there back to the source, a hop at a time.
        let mut kind_behind = BTreeMap::from([(topology.switch_of_rack[dst_rack], 0u32)]);
        let mut stages = Vec::with_capacity(levels.len());
        for level in levels.iter().rev() {
            let (stage, kind_of_switch) = folded(topology, level, &kind_behind);
            stages.push(stage);
            kind_behind = kind_of_switch;
        }
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

/// A switch and the links that it may send on.
type Forks = Vec<(u32, Vec<u32>)>;

/// The switches before each hop, by number.
fn levels(topology: &Topology, routes: &Routes, src_rack: usize, dst_rack: usize) -> Option<Vec<Forks>> {
    let [start, end] = [src_rack, dst_rack].map(|rack| topology.switch_of_rack[rack]);
    let mut levels: Vec<Forks> = Vec::new();
    let mut level = vec![start];
    while level != [end] {
        let fork = |&switch: &u32| (switch, routes.next_links(topology, switch as usize, dst_rack).collect());
        let forks: Forks = level.iter().map(fork).collect();
        level = forks.iter().flat_map(|(_, links)| links).map(|&link| far_end(topology, link)).collect();
        level.sort_unstable();
        level.dedup();
        if level.is_empty() {
            return None;
        }
        levels.push(forks);
    }
    Some(levels)
}

fn far_end(topology: &Topology, link: u32) -> u32 {
    topology.links[link as usize].to.0 - topology.hosts as u32
}

/// One hop, given the kinds of the switches behind it; and the kinds of the switches before it.
fn folded(
    topology: &Topology,
    level: &Forks,
    kind_behind: &BTreeMap<u32, u32>,
) -> (Stage, BTreeMap<u32, u32>) {
    let mut stage = Stage { links: 0, fastest: Rate::default(), kinds: Vec::new() };
    let mut numbers: BTreeMap<Vec<(Hop, u32)>, u32> = BTreeMap::new();
    let mut kind_of_switch = BTreeMap::new();
    for (switch, links) in level {
        let mut signature: Vec<(Hop, u32)> = links
            .iter()
            .map(|&link| (Hop::of(&topology.links[link as usize]), kind_behind[&far_end(topology, link)]))
            .collect();
        signature.sort_unstable();
        signature.dedup();
        stage.links += links.len() as u64;
        let rates = signature.iter().map(|(hop, _)| hop.rate);
        stage.fastest = rates.fold(stage.fastest, Rate::max);
        let next = stage.kinds.len() as u32;
        let number = *numbers.entry(signature.clone()).or_insert(next);
        if number == next {
            stage.kinds.push(signature);
        }
        kind_of_switch.insert(*switch, number);
    }
    (stage, kind_of_switch)
}
