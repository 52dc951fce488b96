//! The equal-cost paths between two edge switches, folded: switches from which the rest of the way
//! looks the same count as one. A fabric of equal cables folds to one switch a hop, however wide it
//! is.
//!
//! A fabric of thousands of racks has millions of pairs of them, and few that look different. So
//! what pairs have in common is found once: the switches before a hop, the hop that they take to
//! all racks for which their tables say the same, and what that folds to.

use std::collections::BTreeMap;

use weft_units::Rate;

use super::{Hop, Train};
use crate::{LinkSpec, RouteEntry, Routes, Topology};

/// All equal-cost paths from one edge switch to another, hop by hop; no hops within a rack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Between {
    stages: Vec<Stage>,
    /// The hops of the stages before the first one with a choice.
    ordered_hops: Vec<Hop>,
}

/// The links of all paths at the same hop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stage {
    /// How many there are.
    links: u64,
    /// The rate of the fastest.
    fastest: Rate,
    /// For each kind of switch before this hop, its distinct links and the kind of switch behind
    /// each.
    kinds: Vec<Vec<(Hop, u32)>>,
}

impl Between {
    fn new(stages: Vec<Stage>) -> Self {
        let ordered_hops =
            stages.iter().take_while(|stage| stage.links == 1).map(|stage| stage.kinds[0][0].0).collect();
        Self { stages, ordered_hops }
    }

    /// When the last packet of a train has arrived, in picoseconds, that crosses all these hops and
    /// then `last`.
    pub(super) fn cross(&self, mut train: Train, last: &Hop) -> u64 {
        for hop in &self.ordered_hops {
            train.cross(hop);
        }
        let choices = self.choices();
        if choices.is_empty() {
            train.cross(last);
            return train.last;
        }
        for stage in choices {
            train.spread(stage.links, stage.fastest);
        }
        train.first_full = train.first_full.saturating_add(self.latency(train.full_bytes));
        train.last = train.last.saturating_add(self.latency(train.last_bytes));
        train.finish(last)
    }

    /// The hops from the first one with a choice on.
    fn choices(&self) -> &[Stage] {
        &self.stages[self.ordered_hops.len()..]
    }

    /// Picoseconds that a lone packet takes over [`Self::choices`] on the path that is best for its
    /// size.
    fn latency(&self, bytes: u64) -> u64 {
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

/// Values by number: equal ones have one.
#[derive(Debug, Clone)]
struct Numbered<T> {
    values: Vec<T>,
    numbers: BTreeMap<T, u32>,
}

impl<T: Ord + Clone> Numbered<T> {
    const fn new() -> Self {
        Self { values: Vec::new(), numbers: BTreeMap::new() }
    }

    fn number(&mut self, value: T) -> u32 {
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        number
    }
}

/// The switches before a hop.
#[derive(Debug, Clone, Default)]
struct HopSwitches {
    /// In order.
    switches: Vec<u32>,
    /// By what their tables say, the step that they take.
    steps: BTreeMap<Vec<RouteEntry>, Option<u32>>,
    /// How often somebody asked for it.
    asked: usize,
    /// By rack, the step to it, once that was asked for often; else empty.
    by_rack: Vec<Option<u32>>,
}

/// The links that the switches of a place take, and where these lead.
#[derive(Debug, Clone)]
struct Step {
    /// Links of each switch in turn: the kind of hop, and the place of the switch behind it among
    /// those of `next`.
    links: Vec<Vec<(u32, u32)>>,
    /// The place that follows.
    next: u32,
}

/// Finds the paths between racks.
#[derive(Debug, Clone)]
pub(super) struct Finder {
    /// By link, the switch behind it, of no meaning for links to hosts, and what kind of hop it is.
    ends: Vec<(u32, u32)>,
    /// The kinds of hops, in order.
    hops: Vec<Hop>,
    places: Vec<HopSwitches>,
    place_numbers: BTreeMap<Vec<u32>, u32>,
    steps: Vec<Step>,
    /// The kinds of a place's switches, by what is behind them.
    labels: Numbered<Vec<u32>>,
    stages: Numbered<Stage>,
    /// By step and by the label of what it leads to: the stage, and the label of the place before
    /// it.
    folds: BTreeMap<(u32, u32), (u32, u32)>,
    /// Kinds of paths found so far, by their stages.
    found: BTreeMap<Vec<u32>, u32>,
    kinds: Vec<Between>,
}

impl Finder {
    pub(super) fn new(topology: &Topology) -> Self {
        let mut hops: Vec<Hop> = topology.links.iter().map(Hop::of).collect();
        hops.sort_unstable();
        hops.dedup();
        let end = |link: &LinkSpec| {
            let hop = hops.partition_point(|hop| *hop < Hop::of(link));
            (link.to.0.wrapping_sub(topology.hosts as u32), hop as u32)
        };
        let ends = topology.links.iter().map(end).collect();
        Self {
            ends,
            hops,
            places: Vec::new(),
            place_numbers: BTreeMap::new(),
            steps: Vec::new(),
            labels: Numbered::new(),
            stages: Numbered::new(),
            folds: BTreeMap::new(),
            found: BTreeMap::new(),
            kinds: Vec::new(),
        }
    }

    /// The paths of this kind.
    pub(super) fn kind(&self, number: u32) -> &Between {
        &self.kinds[number as usize]
    }

    /// Kind of the paths from one rack to another; `None` if there are none.
    pub(super) fn find(
        &mut self,
        topology: &Topology,
        routes: &Routes,
        src_rack: usize,
        dst_rack: usize,
    ) -> Option<u32> {
        let [start, end] = [src_rack, dst_rack].map(|rack| topology.switch_of_rack[rack]);
        let mut place = self.place(vec![start]);
        let mut way = Vec::new();
        // Each hop leads nearer to the destination, so no switch is in two places.
        while self.places[place as usize].switches != [end] {
            let step = self.step(topology, routes, place, dst_rack)?;
            way.push(step);
            place = self.steps[step as usize].next;
        }
        // The destination is of kind 0. From there back to the source, a hop at a time.
        let mut label = self.labels.number(vec![0]);
        let mut stages = Vec::with_capacity(way.len());
        for &step in way.iter().rev() {
            let (stage, before) = self.fold(step, label);
            stages.push(stage);
            label = before;
        }
        stages.reverse();
        let next = self.kinds.len() as u32;
        let number = *self.found.entry(stages).or_insert_with_key(|stages| {
            let whole = stages.iter().map(|&stage| self.stages.values[stage as usize].clone()).collect();
            self.kinds.push(Between::new(whole));
            next
        });
        Some(number)
    }

    fn place(&mut self, switches: Vec<u32>) -> u32 {
        if let Some(&known) = self.place_numbers.get(&switches) {
            return known;
        }
        let next = self.places.len() as u32;
        self.place_numbers.insert(switches.clone(), next);
        self.places.push(HopSwitches { switches, ..HopSwitches::default() });
        next
    }

    /// The step from a place on the way to a rack; none if no way leads there.
    fn step(&mut self, topology: &Topology, routes: &Routes, place: u32, rack: usize) -> Option<u32> {
        let own = &mut self.places[place as usize];
        if let Some(&step) = own.by_rack.get(rack) {
            return step;
        }
        own.asked += 1;
        // A table takes as long as to ask for each rack once: where that is done anyway.
        let racks = topology.switch_of_rack.len();
        if own.asked > 1 && own.asked * 4 > racks {
            let by_rack = (0..racks).map(|rack| self.step_by_tables(topology, routes, place, rack)).collect();
            self.places[place as usize].by_rack = by_rack;
            return self.step(topology, routes, place, rack);
        }
        self.step_by_tables(topology, routes, place, rack)
    }

    fn step_by_tables(
        &mut self,
        topology: &Topology,
        routes: &Routes,
        place: u32,
        rack: usize,
    ) -> Option<u32> {
        let own = &self.places[place as usize];
        let says: Vec<RouteEntry> =
            own.switches.iter().map(|&switch| routes.entry(switch as usize, rack)).collect();
        if let Some(&known) = own.steps.get(&says) {
            return known;
        }
        let links = |&switch: &u32| -> Vec<(u32, u32)> {
            // Where they lead, and what kind of hop they are.
            routes.next_links(topology, switch as usize, rack).map(|link| self.ends[link as usize]).collect()
        };
        let mut links: Vec<Vec<(u32, u32)>> = own.switches.iter().map(links).collect();
        let mut behind: Vec<u32> = links.iter().flatten().map(|&(end, _)| end).collect();
        behind.sort_unstable();
        behind.dedup();
        let step = (!behind.is_empty()).then(|| {
            for (end, hop) in links.iter_mut().flatten() {
                let at = behind.partition_point(|switch| switch < end) as u32;
                (*end, *hop) = (*hop, at);
            }
            let next = self.place(behind);
            self.steps.push(Step { links, next });
            self.steps.len() as u32 - 1
        });
        self.places[place as usize].steps.insert(says, step);
        step
    }

    /// A step, given the label of the place behind it: the stage, and the label of the place before
    /// it.
    fn fold(&mut self, step: u32, behind: u32) -> (u32, u32) {
        if let Some(&known) = self.folds.get(&(step, behind)) {
            return known;
        }
        let (links, kinds) = (&self.steps[step as usize].links, &self.labels.values[behind as usize]);
        let mut stage = Stage {
            links: links.iter().map(Vec::len).sum::<usize>() as u64,
            fastest: Rate::default(),
            kinds: Vec::new(),
        };
        // Hops by their number, which is their order.
        let mut numbers: BTreeMap<Vec<(u32, u32)>, u32> = BTreeMap::new();
        let mut label = Vec::with_capacity(links.len());
        for own in links {
            let mut signature: Vec<(u32, u32)> =
                own.iter().map(|&(hop, at)| (hop, kinds[at as usize])).collect();
            signature.sort_unstable();
            signature.dedup();
            let next = stage.kinds.len() as u32;
            let number = *numbers.entry(signature).or_insert_with_key(|signature| {
                let ways: Vec<_> =
                    signature.iter().map(|&(hop, kind)| (self.hops[hop as usize], kind)).collect();
                stage.fastest = ways.iter().map(|(hop, _)| hop.rate).fold(stage.fastest, Rate::max);
                stage.kinds.push(ways);
                next
            });
            label.push(number);
        }
        let found = (self.stages.number(stage), self.labels.number(label));
        self.folds.insert((step, behind), found);
        found
    }
}
