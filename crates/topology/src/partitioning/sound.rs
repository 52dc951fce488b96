//! Assumptions of the engine on the partitions of a fabric.

use weft_units::Span;

use super::Partitioning;
use crate::Topology;

impl Partitioning {
    /// The engine's assumption that does not hold, on a fabric whose links take at least so long;
    /// none if all does.
    pub(super) fn unsound(&self, topology: &Topology, delays: &[Span]) -> Option<String> {
        let (Some(nodes), Some(owners)) = (self.parts_of_nodes(topology), self.owners(topology)) else {
            return Some("each node and link is in one partition".to_owned());
        };
        let name = |node: usize| &topology.names[node];
        let hosts = self.partitions.iter().flat_map(|partition| partition.hosts.clone());
        if !hosts.eq(0..topology.hosts as u32) {
            return Some("hosts are in the order of partitions, and each partition has some".to_owned());
        }
        if topology.switch_of_rack.iter().any(|switch| self.split.contains(switch)) {
            return Some("a switch with hosts is in one partition".to_owned());
        }
        for (link, spec) in topology.links.iter().enumerate() {
            let (from, to, owner) = (spec.from.0 as usize, spec.to.0 as usize, owners[link]);
            // A switch that was split is in no partition: each has the ports that lead to it.
            let sends = nodes[from].or(nodes[to]);
            if sends != Some(owner) {
                return Some(format!("{} sends on its links in its partition", name(from)));
            }
            if to < topology.hosts && nodes[to] != Some(owner) {
                return Some(format!("{} is in the partition of its switch", name(to)));
            }
            if nodes[to] != Some(owner) && delays[link] < self.lookahead {
                return Some(format!("{} takes the lookahead", topology.link_name(link as u32)));
            }
        }
        for switch in self.split.clone() {
            let ports = &owners[topology.ports_of(topology.hosts + switch as usize)];
            if !ports.is_sorted() {
                return Some(format!(
                    "the ports of {} that lead to a partition are neighbours",
                    name(topology.hosts + switch as usize)
                ));
            }
        }
        (self.lookahead.is_zero()).then(|| "partitions work by themselves for a while".to_owned())
    }

    /// By node, its partition; none for switches that were split. None if that is not one
    /// partition.
    fn parts_of_nodes(&self, topology: &Topology) -> Option<Vec<Option<u32>>> {
        let mut partitions = vec![None; topology.hosts + topology.switches];
        for (number, partition) in (0..).zip(&self.partitions) {
            let switches = partition.switches.iter().map(|&switch| topology.hosts + switch as usize);
            for node in partition.hosts.clone().map(|host| host as usize).chain(switches) {
                if partitions[node].replace(number).is_some() {
                    return None;
                }
            }
        }
        let is_split = |node: usize| {
            node.checked_sub(topology.hosts).is_some_and(|switch| self.split.contains(&(switch as u32)))
        };
        (0..partitions.len()).all(|node| partitions[node].is_none() == is_split(node)).then_some(partitions)
    }

    /// By link, its partition. None if that is not one.
    fn owners(&self, topology: &Topology) -> Option<Vec<u32>> {
        let mut owners = vec![u32::MAX; topology.links.len()];
        for (number, partition) in (0..).zip(&self.partitions) {
            for &link in &partition.links {
                if std::mem::replace(&mut owners[link as usize], number) != u32::MAX {
                    return None;
                }
            }
        }
        (!owners.contains(&u32::MAX)).then_some(owners)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{PartitionNodes, PartitionRequest, least_delays};
    use super::*;
    use crate::FabricSpec;

    fn leaf_spine() -> Topology {
        let text = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_delay = '1us'";
        let spec: FabricSpec = toml::from_str(text).unwrap();
        spec.build(1, Path::new(".")).unwrap().topology
    }

    /// Violated assumption when the partitions of a leaf-spine are changed so.
    fn told(may_split: bool, change: impl FnOnce(&mut Partitioning)) -> Option<String> {
        let topology = leaf_spine();
        let mut partitioning =
            Partitioning::of(&topology, &[], PartitionRequest { may_split, most: 2 }).unwrap();
        change(&mut partitioning);
        partitioning.unsound(&topology, &least_delays(&topology, &[]))
    }

    #[test]
    fn each_assumption_of_the_engine_is_looked_at() {
        let moved = |partitioning: &mut Partitioning, link: u32| {
            let from = usize::from(!partitioning.partitions[0].links.contains(&link));
            partitioning.partitions[from].links.retain(|&other| other != link);
            let to = &mut partitioning.partitions[1 - from].links;
            to.push(link);
            to.sort_unstable();
        };
        assert_eq!(told(true, |_| ()), None);
        assert_eq!(told(false, |_| ()), None);
        let wrong = [
            told(true, |partitioning| partitioning.partitions[0].links.truncate(1)),
            told(true, |partitioning| partitioning.partitions[0].switches.push(2)),
            told(true, |partitioning| partitioning.partitions.reverse()),
            told(true, |partitioning| partitioning.lookahead = Span::from_s(1)),
            told(true, |partitioning| partitioning.lookahead = Span::ZERO),
            // A host's cable, what a leaf sends to a host, and what a spine that was split sends to
            // a leaf.
            told(true, |partitioning| moved(partitioning, 0)),
            told(true, |partitioning| moved(partitioning, 4)),
            told(true, |partitioning| moved(partitioning, 12)),
            told(false, |partitioning| partitioning.split = 2..4),
        ];
        assert!(wrong.iter().all(Option::is_some), "{wrong:?}");
    }

    /// Each host by itself, and the switch with one of them.
    #[test]
    fn hosts_in_another_part_than_their_switch_are_no_parts() {
        let topology = leaf_spine();
        let of_hosts = |hosts: std::ops::Range<u32>, switches: Vec<u32>| {
            let nodes = hosts.clone().chain(switches.iter().map(|switch| 4 + switch));
            let links = nodes.flat_map(|node| topology.ports_of(node as usize)).map(|link| link as u32);
            PartitionNodes { links: links.collect(), hosts, switches }
        };
        let partitions = vec![of_hosts(0..1, vec![0, 2]), of_hosts(1..4, vec![1, 3])];
        let partitioning = Partitioning { partitions, split: 4..4, lookahead: Span::from_ns(1) };
        let told = partitioning.unsound(&topology, &least_delays(&topology, &[]));
        assert_eq!(told.as_deref(), Some("host1 is in the partition of its switch"));
    }
}
