//! A fabric cut into parts, so that one part's work over a stretch of time needs nothing of the others'.
//!
//! The cut goes through the highest switches: what hangs together without them is a piece (a leaf with its hosts, a pod of a
//! fat-tree), and a part is one piece or several neighbours. A highest switch that has one way to each rack only passes packets
//! on, so each part has its own ports of it, and a path crosses once. A highest switch that chooses, or whose scheme looks
//! at packets on their way, belongs to one part as a whole, and a path crosses up to twice.

mod nearest;

use std::ops::Range;

use thiserror::Error;
use weft_units::Span;

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
    #[error("without its highest switches the fabric is still in one piece")]
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
        let pieces = Pieces::of(topology);
        if pieces.count < 2 || cut.most < 2 {
            return Err(Whole::OnePiece);
        }
        let is_split = cut.may_split && pieces.can_be_split(topology, faults);
        let of_node = pieces.parts(topology, cut.most)?;
        let owners = pieces.owners(topology, &of_node, is_split);
        let parts = parts(topology, &pieces, &of_node, &owners, is_split);
        let lookahead = lookahead(topology, faults, &pieces);
        if lookahead == Span::ZERO {
            return Err(Whole::NoDelay);
        }
        let switches = topology.switches as u32;
        // They are split only where they are the last ones.
        let first = topology.tier_of_switch.partition_point(|&tier| tier < pieces.highest) as u32;
        let split = if is_split { first..switches } else { switches..switches };
        Ok(Self { parts, split, lookahead })
    }

    /// How many parts a fabric can have: 1 if it cannot be cut.
    pub fn most(topology: &Topology) -> usize {
        Pieces::of(topology).count as usize
    }
}

/// The highest switches taken out: what hangs together.
struct Pieces {
    /// By node, its piece; [`Pieces::NONE`] for the highest switches.
    of_node: Vec<u32>,
    /// How many there are.
    count: u32,
    /// The tier of the highest switches.
    highest: u8,
}

impl Pieces {
    const NONE: u32 = u32::MAX;

    fn of(topology: &Topology) -> Self {
        let highest = topology.tier_of_switch.iter().copied().max().unwrap_or_default();
        let mut pieces = Self { of_node: vec![Self::NONE; topology.first_link.len() - 1], count: 0, highest };
        // Hosts come first, so pieces are in the order of their first hosts.
        for start in 0..topology.hosts {
            if pieces.of_node[start] != Self::NONE {
                continue;
            }
            let mut reached = vec![start];
            while let Some(node) = reached.pop() {
                if pieces.of_node[node] != Self::NONE || pieces.is_highest(topology, node) {
                    continue;
                }
                pieces.of_node[node] = pieces.count;
                let ports = topology.first_link[node] as usize..topology.first_link[node + 1] as usize;
                reached.extend(topology.links[ports].iter().map(|link| link.to.0 as usize));
            }
            pieces.count += 1;
        }
        pieces
    }

    fn is_highest(&self, topology: &Topology, node: usize) -> bool {
        node.checked_sub(topology.hosts).is_some_and(|switch| topology.tier_of_switch[switch] == self.highest)
    }

    /// Whether every highest switch has one way to each rack, straight into the rack's piece, for the whole run.
    fn can_be_split(&self, topology: &Topology, faults: &[FaultEvent]) -> bool {
        let touches = |link: usize| {
            let spec = &topology.links[link];
            [spec.from, spec.to].into_iter().any(|node| self.is_highest(topology, node.0 as usize))
        };
        let stays = topology.links.iter().all(|link| link.condition.up)
            // Where a link is down, even the highest switches may know several ways around.
            && faults.iter().all(|fault| fault.condition.up && !touches(fault.link as usize));
        // So that a part's links are in the order of its nodes.
        let is_last = topology.tier_of_switch.is_sorted_by_key(|&tier| tier == self.highest);
        let highest =
            (0..topology.switches).filter(|&switch| topology.tier_of_switch[switch] == self.highest);
        if !stays || !is_last {
            return false;
        }
        if self.are_nearest_straight(topology) {
            return true;
        }
        let routes = Routes::at_start(topology);
        highest.into_iter().all(|switch| self.is_straight(topology, &routes, switch))
    }

    /// Whether a highest switch has one port for each rack, which leads into the rack's piece; and ports in the order of pieces.
    fn is_straight(&self, topology: &Topology, routes: &Routes, switch: usize) -> bool {
        let node = topology.hosts + switch;
        let first = topology.first_link[node] as usize;
        let ports = &topology.links[first..topology.first_link[node + 1] as usize];
        let leads_to = |port: usize| self.of_node[ports[port].to.0 as usize];
        let leads_straight = |rack: usize| match routes.entry(switch, rack) {
            RouteEntry::Port(port) => {
                leads_to(port.index())
                    == self.of_node[topology.hosts + topology.switch_of_rack[rack] as usize]
            }
            RouteEntry::Group(_) | RouteEntry::None => false,
        };
        (0..ports.len()).is_sorted_by_key(leads_to) && (0..topology.racks()).all(leads_straight)
    }

    /// By node, its part: about as many neighbouring pieces each. The highest switches, in their order, go by turns.
    fn parts(&self, topology: &Topology, most: usize) -> Result<Vec<u32>, Whole> {
        let count = most.min(self.count as usize);
        if !self.of_node[..topology.hosts].is_sorted() {
            return Err(Whole::ScatteredHosts);
        }
        let highest = self.of_node.iter().filter(|&&piece| piece == Self::NONE).count();
        let mut turns = (0..highest).map(|turn| (turn * count / highest) as u32);
        let part = |&piece: &u32| match piece {
            Self::NONE => turns.next().unwrap_or_default(),
            piece => (piece as usize * count / self.count as usize) as u32,
        };
        Ok(self.of_node.iter().map(part).collect())
    }

    /// By link, the part that sends on it.
    fn owners(&self, topology: &Topology, of_node: &[u32], is_split: bool) -> Vec<u32> {
        let owner = |link: &crate::LinkSpec| {
            let goes_down = is_split && self.is_highest(topology, link.from.0 as usize);
            of_node[if goes_down { link.to.0 } else { link.from.0 } as usize]
        };
        topology.links.iter().map(owner).collect()
    }
}

fn parts(topology: &Topology, pieces: &Pieces, of_node: &[u32], owners: &[u32], is_split: bool) -> Vec<Part> {
    let count = of_node.iter().max().map_or(0, |&last| last as usize + 1);
    let mut parts = vec![Part { hosts: 0..0, switches: Vec::new(), links: Vec::new() }; count];
    for (link, &owner) in owners.iter().enumerate() {
        parts[owner as usize].links.push(link as u32);
    }
    for (node, &part) in of_node.iter().enumerate() {
        let part = &mut parts[part as usize];
        match node.checked_sub(topology.hosts) {
            Some(_) if is_split && pieces.is_highest(topology, node) => {}
            Some(switch) => part.switches.push(switch as u32),
            None if part.hosts.is_empty() => part.hosts = node as u32..node as u32 + 1,
            None => part.hosts.end = node as u32 + 1,
        }
    }
    parts
}

fn lookahead(topology: &Topology, faults: &[FaultEvent], pieces: &Pieces) -> Span {
    let least = |of: &dyn Fn(usize) -> bool| {
        let at_start = topology.links.iter().enumerate().map(|(link, spec)| (link, spec.condition.delay));
        let later = faults.iter().map(|fault| (fault.link as usize, fault.condition.delay));
        at_start.chain(later).filter(|&(link, _)| of(link)).map(|(_, delay)| delay).min().unwrap_or_default()
    };
    let ends = |link: usize| [topology.links[link].from, topology.links[link].to].map(|node| node.0 as usize);
    let may_cross = least(&|link| ends(link).iter().any(|&node| pieces.is_highest(topology, node)));
    let of_host = least(&|link| ends(link).iter().any(|&node| node < topology.hosts));
    may_cross.min(of_host + of_host)
}
