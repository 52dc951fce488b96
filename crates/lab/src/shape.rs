//! What traffic needs to know of a fabric, read from its links.

use weft_fabric::{Tier, Topology};
use weft_traffic::FabricShape;
use weft_units::Rate;

/// The shape of a fabric. The bisection is half of what all racks together can send up: exact where everything above
/// the racks is at least as wide as their uplinks, as in leaf-spine fabrics and fat-trees.
pub(crate) fn shape(topology: &Topology) -> FabricShape {
    let ports = |node: usize| {
        let (first, end) = (topology.first_link[node] as usize, topology.first_link[node + 1] as usize);
        topology.links[first..end].iter()
    };
    let rate = |node: usize, tier: Tier| {
        let matching = ports(node).filter(|link| link.tier == tier);
        matching.map(|link| link.condition.rate.as_bps()).sum::<u64>()
    };
    let host_rate = (0..topology.hosts).map(|host| Rate::from_bps(rate(host, Tier::Host))).collect();
    let uplinks: Vec<u64> = topology
        .switch_of_rack
        .iter()
        .map(|&switch| rate(topology.hosts + switch as usize, Tier::Leaf))
        .collect();
    FabricShape {
        rack_of_host: topology.rack_of_host.clone(),
        host_rate,
        bisection_rate: Rate::from_bps(uplinks.iter().sum::<u64>() / 2),
        rack_uplink_rate: uplinks.into_iter().map(Rate::from_bps).collect(),
    }
}
