//! Where all links are up, whether every top-tier switch has one way to each rack, told without the
//! tables of all switches: those take longer than all else of a cut.

use super::Components;
use crate::Topology;

impl Components {
    /// Whether it follows from the distances within components that every top-tier switch has one
    /// way to each rack, straight into the rack's component. It has one port to each component.
    /// Another way to the rack leads through another component, to another top-tier switch and from
    /// there into the rack's component: at least two links more, but it may come in nearer to the
    /// rack. So where no entry into a component is two links nearer to a rack than another one,
    /// straight is the one way. Where this is false, it may still be. All links are up.
    pub(super) fn are_nearest_straight(&self, topology: &Topology) -> bool {
        let mut highest = (topology.hosts..self.of_node.len()).filter(|&node| self.is_loose(node));
        let has_one_port_each = |node: usize| {
            let components =
                topology.links[topology.ports_of(node)].iter().map(|link| self.of_node[link.to.0 as usize]);
            components.eq(0..self.count)
        };
        highest.all(has_one_port_each) && self.entries_are_alike(topology)
    }

    /// Whether of no component an entry is two links nearer to one of its racks than another one.
    fn entries_are_alike(&self, topology: &Topology) -> bool {
        let mut distance = vec![u32::MAX; self.of_node.len()];
        let mut reached = Vec::new();
        topology.switch_of_rack.iter().all(|&switch| {
            let is_alike = self.is_entered_alike(topology, switch, &mut distance, &mut reached);
            reached.drain(..).for_each(|node: usize| distance[node] = u32::MAX);
            is_alike
        })
    }

    /// Whether no entry into its component is two links nearer to this switch than another one. All
    /// are found, since hosts have one cable: the switches of a component hang together without
    /// them. All distances are [`u32::MAX`] before, and those that were found are of the nodes in
    /// `reached`.
    fn is_entered_alike(
        &self,
        topology: &Topology,
        switch: u32,
        distance: &mut [u32],
        reached: &mut Vec<usize>,
    ) -> bool {
        let start = topology.hosts + switch as usize;
        distance[start] = 0;
        reached.push(start);
        let (mut next, mut nearest) = (0, u32::MAX);
        while let Some(&node) = reached.get(next) {
            next += 1;
            for link in &topology.links[topology.ports_of(node)] {
                let to = link.to.0 as usize;
                if self.is_loose(to) {
                    // Nodes come in the order of their distance, so the first entry is the nearest.
                    nearest = nearest.min(distance[node]);
                    if distance[node] >= nearest + 2 {
                        return false;
                    }
                } else if to >= topology.hosts && distance[to] == u32::MAX {
                    distance[to] = distance[node] + 1;
                    reached.push(to);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::{FabricSpec, Routes};

    /// Whether paths are straight by the distances of a fabric, and by its tables.
    fn told(keys: &str) -> (bool, bool) {
        let spec: FabricSpec = toml::from_str(keys).unwrap();
        told_of(&spec.build(1, Path::new(".")).unwrap().topology)
    }

    fn told_of(topology: &Topology) -> (bool, bool) {
        let components = Components::below_highest(topology).unwrap();
        let routes = Routes::at_start(topology);
        let mut highest =
            (topology.hosts..components.of_node.len()).filter(|&node| components.is_loose(node));
        let is_straight = highest.all(|node| components.is_straight(topology, &routes, node));
        (components.are_nearest_straight(topology), is_straight)
    }

    #[test]
    fn regular_fabrics_are_known_by_their_distances() {
        for keys in [
            "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2",
            "kind = 'fat-tree'\nk = 4",
            "kind = 'fat-tree'\nk = 6",
        ] {
            assert_eq!(told(keys), (true, true), "{keys}");
        }
        let parallel = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 1\nlinks_per_pair = 2";
        assert_eq!(told(parallel), (false, false));
    }

    /// Cables at random in layers, and between switches of one layer, so that components are
    /// entered at several places, some far from a rack: as the bits of these numbers say.
    fn layers(leaves: u64, aggregations: u64, up: u64, across: u64) -> String {
        let mut links = String::new();
        let mut link = |from: String, to: String| {
            writeln!(links, "[[link]]\nfrom = '{from}'\nto = '{to}'").unwrap();
        };
        for leaf in 0..leaves {
            link(format!("host{leaf}"), format!("leaf{leaf}"));
            link(format!("leaf{leaf}"), format!("agg{}", leaf % aggregations));
        }
        for bit in (0..leaves * aggregations).filter(|bit| up >> bit & 1 == 1) {
            let (leaf, agg) = (bit / aggregations, bit % aggregations);
            if agg != leaf % aggregations {
                link(format!("leaf{leaf}"), format!("agg{agg}"));
            }
        }
        for core in 0..2 {
            for agg in (0..aggregations).filter(|agg| across >> (core * aggregations + agg) & 1 == 1) {
                link(format!("agg{agg}"), format!("core{core}"));
            }
        }
        for agg in (1..aggregations).filter(|agg| across >> (2 * aggregations + agg) & 1 == 1) {
            link(format!("agg{}", agg - 1), format!("agg{agg}"));
        }
        let counted = |prefix: &str, count: u64| format!("{{ prefix = '{prefix}', count = {count} }}");
        let switches = [("leaf", leaves), ("agg", aggregations), ("core", 2)];
        let switches = switches.map(|(prefix, count)| counted(prefix, count)).join(", ");
        format!(
            "hosts = [{}]\nswitches = [{switches}]\nrate = '10Gbps'\ndelay = '1us'\n{links}",
            counted("host", leaves)
        )
    }

    proptest! {
        #[test]
        fn what_distances_call_straight_is_straight(
            leaves in 2u64..5, aggregations in 2u64..6, up: u64, across: u64,
        ) {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("g.toml"), layers(leaves, aggregations, up, across)).unwrap();
            let spec: FabricSpec = toml::from_str("kind = 'graph'\nfile = 'g.toml'").unwrap();
            let Ok(fabric) = spec.build(1, folder.path()) else { return Ok(()) };
            let (nearest, straight) = told_of(&fabric.topology);
            prop_assert!(straight || !nearest);
        }
    }
}
