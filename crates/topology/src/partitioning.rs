//! A fabric cut into partitions, so that one partition's work over a stretch of time needs nothing
//! of the others'.
//!
//! Any fabric can be cut between its racks. What the engine assumes of partitions is checked in
//! `sound.rs`, whatever the fabric's shape:
//!
//! - each node, and each link, is in one partition: a link in that of the node that sends on it;
//! - a host is in the partition of its switch, so what a switch sends to a host stays in its
//!   partition;
//! - the hosts of a partition have neighbouring numbers;
//! - a packet takes at least the lookahead from one partition to another, on whatever link and in
//!   whatever condition;
//! - so does what a receiver got until its sender knows.
//!
//! Where the top-tier switches join what would fall apart without them (leaves with their hosts,
//! pods of a fat-tree), the cut goes through these: a path crosses least there. A top-tier switch
//! that has one way to each rack only passes packets on, so each partition has its own ports of it,
//! and a path crosses once. A top-tier switch that chooses, or whose scheme looks at packets on
//! their way, belongs to one partition as a whole, and a path crosses up to twice.

mod components;
mod nearest;
mod sound;

use std::ops::Range;

use thiserror::Error;
use weft_units::Span;

use self::components::Components;
use crate::{FaultEvent, RouteEntry, Routes, Topology};

/// Some nodes and the links that they send on, as the fabric numbers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionNodes {
    /// Hosts of the partition.
    pub hosts: Range<u32>,
    /// Switches of the partition, ascending; without top-tier switches, if they were split.
    pub switches: Vec<u32>,
    /// Links on which its nodes send, and on which split top-tier switches send to it, ascending.
    pub links: Vec<u32>,
}

/// A fabric in partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitioning {
    /// The partitions, by their hosts.
    pub partitions: Vec<PartitionNodes>,
    /// The top-tier switches, if they were split: the last ones.
    pub split: Range<u32>,
    /// How long nothing that a partition does can reach another one: the least propagation delay
    /// between partitions, in whatever condition links ever are; and no longer than it takes from a
    /// host to any other.
    pub lookahead: Span,
}

/// How to cut a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRequest {
    /// Whether top-tier switches may be split: nothing looks at packets there.
    pub may_split: bool,
    /// Into how many partitions at most; at least 1.
    pub most: usize,
}

/// Why a fabric stays in one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotPartitionable {
    /// There is nothing to cut.
    #[error("all hosts are at one switch")]
    OneComponent,
    /// The hosts of a partition have other hosts between them.
    #[error("hosts that belong together do not have neighbouring numbers")]
    ScatteredHosts,
    /// A packet may take no time from one partition to another.
    #[error("a link between partitions, or to hosts, has no delay")]
    NoDelay,
}

impl Partitioning {
    /// Cuts a fabric.
    ///
    /// # Errors
    /// Why it cannot be cut.
    pub fn of(
        topology: &Topology,
        faults: &[FaultEvent],
        cut: PartitionRequest,
    ) -> Result<Self, NotPartitionable> {
        if cut.most < 2 {
            return Err(NotPartitionable::OneComponent);
        }
        let delays = least_delays(topology, faults);
        let components = Components::of(topology, &delays)?;
        let is_split = cut.may_split && components.can_be_split(topology, faults);
        let of_node = components.partitions(cut.most);
        let owner = |link: &crate::LinkSpec| {
            let goes_down = is_split && components.is_loose(link.from.0 as usize);
            of_node[if goes_down { link.to.0 } else { link.from.0 } as usize]
        };
        let owners: Vec<u32> = topology.links.iter().map(owner).collect();
        let switches = topology.switches as u32;
        // They are split only where they are the last ones.
        let first = (topology.hosts..of_node.len()).position(|node| components.is_loose(node));
        let split = if is_split { first.unwrap_or_default() as u32..switches } else { switches..switches };
        let partitions = partitions(topology, &of_node, &owners, &split);
        let found = Self { partitions, split, lookahead: components.lookahead(topology, &delays) };
        debug_assert_eq!(found.unsound(topology, &delays), None);
        Ok(found)
    }
}

impl Components {
    /// Whether every top-tier switch has one way to each rack, straight into the rack's component,
    /// for the whole run.
    fn can_be_split(&self, topology: &Topology, faults: &[FaultEvent]) -> bool {
        let touches = |link: usize| {
            let spec = &topology.links[link];
            [spec.from, spec.to].into_iter().any(|node| self.is_loose(node.0 as usize))
        };
        let stays = topology.links.iter().all(|link| link.condition.up)
            // Where a link is down, even the top-tier switches may know several ways around.
            && faults.iter().all(|fault| fault.condition.up && !touches(fault.link as usize));
        let mut switches = topology.hosts..topology.hosts + topology.switches;
        // So that a partition's links are in the order of its nodes.
        let are_last = switches.clone().is_sorted_by_key(|node| self.is_loose(node));
        if !self.hang_below_highest || !stays || !are_last {
            return false;
        }
        if self.are_nearest_straight(topology) {
            return true;
        }
        let routes = Routes::at_start(topology);
        switches.all(|node| !self.is_loose(node) || self.is_straight(topology, &routes, node))
    }

    /// Whether a top-tier switch has one port for each rack, which leads into the rack's component;
    /// and ports in the order of components.
    fn is_straight(&self, topology: &Topology, routes: &Routes, node: usize) -> bool {
        let ports = &topology.links[topology.ports_of(node)];
        let leads_to = |port: usize| self.of_node[ports[port].to.0 as usize];
        let leads_straight = |rack: usize| match routes.entry(node - topology.hosts, rack) {
            RouteEntry::Port(port) => {
                leads_to(port.index())
                    == self.of_node[topology.hosts + topology.switch_of_rack[rack] as usize]
            }
            RouteEntry::Group(_) | RouteEntry::None => false,
        };
        (0..ports.len()).is_sorted_by_key(leads_to) && (0..topology.racks()).all(leads_straight)
    }
}

fn partitions(
    topology: &Topology,
    of_node: &[u32],
    owners: &[u32],
    split: &Range<u32>,
) -> Vec<PartitionNodes> {
    let count = of_node.iter().max().map_or(0, |&last| last as usize + 1);
    let mut partitions = vec![PartitionNodes { hosts: 0..0, switches: Vec::new(), links: Vec::new() }; count];
    for (link, &owner) in owners.iter().enumerate() {
        partitions[owner as usize].links.push(link as u32);
    }
    for (node, &partition) in of_node.iter().enumerate() {
        let partition = &mut partitions[partition as usize];
        match node.checked_sub(topology.hosts) {
            Some(switch) if split.contains(&(switch as u32)) => {}
            Some(switch) => partition.switches.push(switch as u32),
            None if partition.hosts.is_empty() => partition.hosts = node as u32..node as u32 + 1,
            None => partition.hosts.end = node as u32 + 1,
        }
    }
    partitions
}

/// By link, the least propagation delay that it ever has.
fn least_delays(topology: &Topology, faults: &[FaultEvent]) -> Vec<Span> {
    let mut delays: Vec<Span> = topology.links.iter().map(|link| link.condition.delay).collect();
    for fault in faults {
        let delay = &mut delays[fault.link as usize];
        *delay = fault.condition.delay.min(*delay);
    }
    delays
}
