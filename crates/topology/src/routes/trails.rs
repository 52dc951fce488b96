//! The way that a packet took, from the choices that switches noted in it.

use weft_packet::Packet;

use super::{RouteEntry, Routes};
use crate::Topology;

impl Routes {
    /// The links from one rack's edge switch to another's that a packet took which has this trail:
    /// see [`Packet::note_choice`]. None if it has too many choices to tell, or if they lead
    /// nowhere by these tables.
    ///
    /// Where a table has one port, a packet takes it without a choice; where it has several, the
    /// trail says which. So it is told right by the tables that were in force.
    pub fn way(
        &self,
        topology: &Topology,
        (src_rack, dst_rack): (usize, usize),
        trail: u16,
    ) -> Option<Vec<u32>> {
        let (mut switch, end) = (topology.switch_of_rack[src_rack], topology.switch_of_rack[dst_rack]);
        let mut choices = choices(topology, trail)?.into_iter();
        let mut way = Vec::new();
        while switch != end {
            let port = match self.entry(switch as usize, dst_rack) {
                RouteEntry::None => return None,
                RouteEntry::Port(port) => u32::from(port.0),
                // The tables of the run may have had another group there: any port of the switch
                // may be meant.
                RouteEntry::Group(_) => choices.next()?,
            };
            let node = topology.hosts + switch as usize;
            let link = topology.first_link[node] + port;
            let far = topology.links[link as usize].to.0;
            let is_on_the_way = link < topology.first_link[node + 1] && way.len() < topology.switches;
            switch = far.checked_sub(topology.hosts as u32).filter(|_| is_on_the_way)?;
            way.push(link);
        }
        choices.next().is_none().then_some(way)
    }
}

/// The ports that switches chose, in the order of the way.
fn choices(topology: &Topology, trail: u16) -> Option<Vec<u32>> {
    if trail == Packet::LONG_TRAIL {
        return None;
    }
    let (base, mut left) = (topology.trail_base(), u32::from(trail));
    let mut choices = Vec::new();
    while left > 0 {
        choices.push((left % base).checked_sub(1)?);
        left /= base;
    }
    choices.reverse();
    Some(choices)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_packet::{PortId, Route};

    use super::*;
    use crate::{Fabric, FabricSpec};

    fn fabric(text: &str) -> Fabric {
        let spec: FabricSpec = toml::from_str(text).unwrap();
        spec.build(1, Path::new(".")).unwrap()
    }

    #[test]
    fn every_way_between_racks_is_told_by_its_trail() {
        for text in [
            "kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\nlinks_per_pair = 2",
            "kind = 'fat-tree'\nk = 4",
            "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1",
        ] {
            let topology = fabric(text).topology;
            let (routes, racks) = (Routes::at_start(&topology), topology.racks());
            for (from, to) in (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to))) {
                for label in 0..routes.routes_to(&topology, from, to) {
                    let way = routes.path(&topology, from, to, Route::label(label as u16));
                    let mut packet = Packet::default();
                    for &link in &way {
                        let node = topology.links[link as usize].from.0 as usize;
                        let port = PortId((link - topology.first_link[node]) as u16);
                        if let RouteEntry::Group(_) = routes.entry(node - topology.hosts, to) {
                            packet.note_choice(port, topology.trail_base());
                        }
                    }
                    assert_eq!(routes.way(&topology, (from, to), packet.trail), Some(way));
                }
            }
        }
    }

    #[test]
    fn a_trail_that_leads_nowhere_is_told_of_none() {
        let topology = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2").topology;
        let routes = Routes::at_start(&topology);
        let base = topology.trail_base() as u16;
        // No choice; two of them; that of a port which leads to a host; what stands for too many.
        for trail in [0, 4 * base + 3, 1, base, Packet::LONG_TRAIL] {
            assert_eq!(routes.way(&topology, (0, 1), trail), None, "{trail}");
        }
        assert!(routes.way(&topology, (0, 1), 3).is_some() && routes.way(&topology, (1, 1), 0).is_some());
    }
}
