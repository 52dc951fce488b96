//! Components of a fabric that stay together in any cut.

use weft_units::Span;

use super::NotPartitionable;
use crate::{LinkSpec, Topology};

/// Components that stay together: a rack with its hosts, or more.
#[derive(Debug)]
pub(super) struct Components {
    /// By node, its component. Components that have hosts come first, by their first hosts. Numbers
    /// from `count` on are loose: switches that may be in any partition.
    pub of_node: Vec<u32>,
    /// How many components have hosts.
    pub count: u32,
    /// Whether each component hangs together without the top-tier switches, and these are all that
    /// is loose.
    pub hang_below_highest: bool,
}

impl Components {
    /// Components of a fabric whose links take at least so long: two or more, none of which reaches
    /// another one at once.
    pub fn of(topology: &Topology, delays: &[Span]) -> Result<Self, NotPartitionable> {
        if topology.racks() < 2 {
            return Err(NotPartitionable::OneComponent);
        }
        let are_apart =
            |components: &Self| components.count > 1 && !components.lookahead(topology, delays).is_zero();
        let below =
            Self::below_highest(topology).map(|components| components.with_hosts_between(topology.hosts));
        if let Some(components) = below.filter(are_apart) {
            return Ok(components);
        }
        let racks = Self::of_racks(topology, delays);
        if racks.count < 2 {
            return Err(NotPartitionable::NoDelay);
        }
        let racks = racks.with_hosts_between(topology.hosts);
        match racks.count {
            0 | 1 => Err(NotPartitionable::ScatteredHosts),
            _ if are_apart(&racks) => Ok(racks),
            _ => Err(NotPartitionable::NoDelay),
        }
    }

    /// Components that hang together without the top-tier switches, where these have no hosts.
    pub fn below_highest(topology: &Topology) -> Option<Self> {
        let highest = topology.tier_of_switch.iter().copied().max().filter(|&tier| tier > 0)?;
        let is_highest = |node: u32| {
            let switch = (node as usize).checked_sub(topology.hosts);
            switch.is_some_and(|switch| topology.tier_of_switch[switch] == highest)
        };
        let components =
            Self::held_by(topology, |_, link| !is_highest(link.from.0) && !is_highest(link.to.0));
        Some(Self { hang_below_highest: true, ..components })
    }

    /// Racks; those between which a packet may take no time are one component.
    fn of_racks(topology: &Topology, delays: &[Span]) -> Self {
        let is_host = |node: u32| (node as usize) < topology.hosts;
        Self::held_by(topology, |number, link| {
            let cable = [number, topology.reverse[number] as usize];
            is_host(link.from.0) || is_host(link.to.0) || cable.iter().any(|&link| delays[link].is_zero())
        })
    }

    /// Components that hang together by the links that hold, each of which does in both directions.
    fn held_by(topology: &Topology, holds: impl Fn(usize, &LinkSpec) -> bool) -> Self {
        let nodes = topology.hosts + topology.switches;
        let (mut of_node, mut found, mut count) = (vec![u32::MAX; nodes], 0, 0);
        let mut reached = Vec::new();
        // Hosts are the first nodes, so components are in the order of their first hosts.
        for start in 0..nodes {
            if of_node[start] != u32::MAX {
                continue;
            }
            reached.push(start);
            while let Some(node) = reached.pop() {
                if std::mem::replace(&mut of_node[node], found) != u32::MAX {
                    continue;
                }
                let held = topology.ports_of(node).filter(|&link| holds(link, &topology.links[link]));
                let behind = held.map(|link| topology.links[link].to.0 as usize);
                reached.extend(behind.filter(|&node| of_node[node] == u32::MAX));
            }
            found += 1;
            if start < topology.hosts {
                count = found;
            }
        }
        Self { of_node, count, hang_below_highest: false }
    }

    /// Joins components: those that have hosts of each other between theirs are one.
    fn with_hosts_between(self, hosts: usize) -> Self {
        if self.of_node[..hosts].is_sorted() {
            return self;
        }
        let (mut first, mut last) = (vec![usize::MAX; self.count as usize], vec![0; self.count as usize]);
        for (host, &component) in self.of_node[..hosts].iter().enumerate() {
            first[component as usize] = host.min(first[component as usize]);
            last[component as usize] = host;
        }
        let (mut joined, mut end) = (Vec::with_capacity(first.len()), 0);
        for (first, last) in first.into_iter().zip(last) {
            let begins = joined.last().map_or(0, |&component: &u32| component + u32::from(first > end));
            joined.push(begins);
            end = end.max(last);
        }
        let count = joined.last().map_or(0, |last| last + 1);
        let of_node = self.of_node.into_iter().map(|component| match joined.get(component as usize) {
            Some(&joined) => joined,
            None => component - joined.len() as u32 + count,
        });
        Self { of_node: of_node.collect(), count, hang_below_highest: false }
    }

    /// Whether a node may be in any partition.
    pub fn is_loose(&self, node: usize) -> bool {
        self.of_node[node] >= self.count
    }

    /// By node, its partition: about as many neighbouring components each. Loose switches, in their
    /// order, go by turns.
    pub fn partitions(&self, most: usize) -> Vec<u32> {
        let components = self.count as usize;
        let count = most.min(components);
        let loose = self.of_node.iter().max().map_or(0, |&last| last as usize + 1 - components);
        let partition = |&component: &u32| match (component as usize).checked_sub(components) {
            Some(turn) => (turn * count / loose) as u32,
            None => (component as usize * count / components) as u32,
        };
        self.of_node.iter().map(partition).collect()
    }

    /// How long nothing that a component does can reach another one, and no longer than it takes
    /// from a host to any other.
    pub fn lookahead(&self, topology: &Topology, delays: &[Span]) -> Span {
        let least = |of: &dyn Fn(&LinkSpec) -> bool| {
            let links = topology.links.iter().zip(delays).filter(|(link, _)| of(link));
            links.map(|(_, &delay)| delay).min().unwrap_or_default()
        };
        let crosses =
            |link: &LinkSpec| self.of_node[link.from.0 as usize] != self.of_node[link.to.0 as usize];
        let is_host = |node: u32| (node as usize) < topology.hosts;
        let of_host = least(&|link| is_host(link.from.0) || is_host(link.to.0));
        least(&crosses).min(of_host + of_host)
    }
}
