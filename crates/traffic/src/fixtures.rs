//! The small fabric that the tests share.

use weft_units::Rate;

use crate::{FabricShape, Traffic, TrafficError, TrafficSpec};

/// Four racks of four hosts at 10 Gbit/s, two uplinks of 10 Gbit/s each: oversubscribed 2:1.
pub fn leaf_spine() -> FabricShape {
    racks(4, 4, 20)
}

/// `racks` racks of `hosts` hosts at 10 Gbit/s, each with `uplink_gbps` of uplinks.
pub fn racks(racks: u16, hosts: u16, uplink_gbps: u64) -> FabricShape {
    FabricShape {
        rack_of_host: (0..racks * hosts).map(|host| host / hosts).collect(),
        host_rate: vec![Rate::from_gbps(10); usize::from(racks * hosts)],
        rack_uplink_rate: vec![Rate::from_gbps(uplink_gbps); usize::from(racks)],
        bisection_rate: Rate::from_gbps(uplink_gbps * u64::from(racks) / 2),
    }
}

/// The spec that is written so in TOML.
pub fn spec(text: &str) -> TrafficSpec {
    toml::from_str(text).unwrap()
}

/// The traffic of this spec on [`leaf_spine`], with seed 1.
pub fn generate(text: &str) -> Result<Traffic, TrafficError> {
    spec(text).generate(&leaf_spine(), 1, std::path::Path::new("."))
}

/// Message about this spec on [`leaf_spine`].
pub fn message(text: &str) -> String {
    generate(text).map(|traffic| traffic.flows.len()).unwrap_err().to_string()
}
