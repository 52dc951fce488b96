//! A fabric cut into parts, so that one part's work over a stretch of time needs nothing of the others'.
//!
//! Any fabric can be cut between its racks. What the engine assumes of parts is checked in `sound.rs`, whatever the fabric's shape:
//!
//! - each node, and each link, is in one part: a link in that of the node that sends on it;
//! - a host is in the part of its switch, so what a switch sends to a host stays in its part;
//! - the hosts of a part have neighbouring numbers;
//! - a packet takes at least the lookahead from one part to another, on whatever link and in whatever condition;
//! - so does what a receiver got until its sender knows.
//!
//! Where the highest switches join what would fall apart without them (leaves with their hosts, pods of a fat-tree), the cut goes through these:
//! a path crosses least there. A highest switch that has one way to each rack only passes packets on, so each part has its own
//! ports of it, and a path crosses once. A highest switch that chooses, or whose scheme looks at packets on their way, belongs to
//! one part as a whole, and a path crosses up to twice.

mod nearest;
mod pieces;
mod sound;

use std::ops::Range;

use thiserror::Error;
use weft_units::Span;

use self::pieces::Pieces;
use crate::{FaultEvent, RouteEntry, Routes, Topology};

/// Some nodes and the links that they send on, as the fabric numbers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its hosts.
    pub hosts: Range<u32>,
    /// Its switches, ascending; without highest switches, if they were split.
    pub switches: Vec<u32>,
    /// What its nodes send on, and what highest switches that were split send to it on, ascending.
    pub links: Vec<u32>,
}

/// A fabric in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The parts, by their hosts.
    pub parts: Vec<Part>,
    /// The highest switches, if they were split: the last ones.
    pub split: Range<u32>,
    /// How long nothing that a part does can reach another one: the least propagation delay between parts, in whatever condition
    /// links ever are; and no longer than it takes from a host to any other.
    pub lookahead: Span,
}

/// How to cut a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Whether highest switches may be split: nothing looks at packets there.
    pub may_split: bool,
    /// Into how many parts at most; at least 1.
    pub most: usize,
}

/// Why a fabric stays in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Whole {
    /// There is nothing to cut.
    #[error("all hosts are at one switch")]
    OnePiece,
    /// The hosts of a part have other hosts between them.
    #[error("hosts that belong together do not have neighbouring numbers")]
    ScatteredHosts,
    /// A packet may take no time from one part to another.
    #[error("a link between parts, or to hosts, has no delay")]
    NoDelay,
}

impl Parts {
    /// Cuts a fabric.
    ///
    /// # Errors
    /// Why it cannot be cut.
    pub fn of(topology: &Topology, faults: &[FaultEvent], cut: Cut) -> Result<Self, Whole> {
        if cut.most < 2 {
            return Err(Whole::OnePiece);
        }
        let delays = least_delays(topology, faults);
        let pieces = Pieces::of(topology, &delays)?;
        let is_split = cut.may_split && pieces.can_be_split(topology, faults);
        let of_node = pieces.parts(cut.most);
        let owner = |link: &crate::LinkSpec| {
            let goes_down = is_split && pieces.is_loose(link.from.0 as usize);
            of_node[if goes_down { link.to.0 } else { link.from.0 } as usize]
        };
        let owners: Vec<u32> = topology.links.iter().map(owner).collect();
        let switches = topology.switches as u32;
        // They are split only where they are the last ones.
        let first = (topology.hosts..of_node.len()).position(|node| pieces.is_loose(node));
        let split = if is_split { first.unwrap_or_default() as u32..switches } else { switches..switches };
        let parts = parts(topology, &of_node, &owners, &split);
        let found = Self { parts, split, lookahead: pieces.lookahead(topology, &delays) };
        debug_assert_eq!(found.unsound(topology, &delays), None);
        Ok(found)
    }
}

impl Pieces {
    /// Whether every highest switch has one way to each rack, straight into the rack's piece, for the whole run.
    fn can_be_split(&self, topology: &Topology, faults: &[FaultEvent]) -> bool {
        let touches = |link: usize| {
            let spec = &topology.links[link];
            [spec.from, spec.to].into_iter().any(|node| self.is_loose(node.0 as usize))
        };
        let stays = topology.links.iter().all(|link| link.condition.up)
            // Where a link is down, even the highest switches may know several ways around.
            && faults.iter().all(|fault| fault.condition.up && !touches(fault.link as usize));
        let mut switches = topology.hosts..topology.hosts + topology.switches;
        // So that a part's links are in the order of its nodes.
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

    /// Whether a highest switch has one port for each rack, which leads into the rack's piece; and ports in the order of pieces.
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

fn parts(topology: &Topology, of_node: &[u32], owners: &[u32], split: &Range<u32>) -> Vec<Part> {
    let count = of_node.iter().max().map_or(0, |&last| last as usize + 1);
    let mut parts = vec![Part { hosts: 0..0, switches: Vec::new(), links: Vec::new() }; count];
    for (link, &owner) in owners.iter().enumerate() {
        parts[owner as usize].links.push(link as u32);
    }
    for (node, &part) in of_node.iter().enumerate() {
        let part = &mut parts[part as usize];
        match node.checked_sub(topology.hosts) {
            Some(switch) if split.contains(&(switch as u32)) => {}
            Some(switch) => part.switches.push(switch as u32),
            None if part.hosts.is_empty() => part.hosts = node as u32..node as u32 + 1,
            None => part.hosts.end = node as u32 + 1,
        }
    }
    parts
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
