//! Load: how many bytes per second are offered, and how many could be carried.
//!
//! [`TrafficSpec::load`](crate::TrafficSpec::load) and [`LoadOf`] define it; this file computes
//! what they say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pairs::PairPicker;
use crate::{FabricShape, TrafficError};

/// The capacity that `load` is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// The nominal uplink rates of every rack that holds a sender, summed. Only flows that leave
    /// their rack count: if a share x of the flows is expected to (1 for `between-racks`), all
    /// flows together offer load x capacity / x. So `load` is the mean utilisation of the uplinks
    /// by payload.
    #[default]
    LeafUplinks,
    /// The NIC rates of all hosts that may send, summed. All flows count. So `load` is the mean
    /// utilisation of the senders' links by payload.
    HostLinks,
    /// The rate across the middle of the fabric, in one direction. All flows count, whether they
    /// cross the middle or not. So `load` is the mean utilisation of the middle by payload if all
    /// sources are on one side of it and all destinations on the other.
    Bisection,
}

impl LoadOf {
    const fn name(self) -> &'static str {
        match self {
            Self::LeafUplinks => "leaf-uplinks",
            Self::HostLinks => "host-links",
            Self::Bisection => "bisection",
        }
    }
}

/// Offered load of the random flows, in payload bytes per second. Headers and acknowledgements come
/// on top.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OfferedLoad {
    /// All random flows together, in payload bytes per second.
    pub bytes_per_s: f64,
    /// Those that leave their rack, in payload bytes per second.
    pub cross_rack_bytes_per_s: f64,
    /// The mean rate of arrivals, in flows per second.
    pub flows_per_s: f64,
    /// The capacity that the load is a share of, in bit/s.
    pub capacity_bps: f64,
    /// The largest load that would be allowed.
    pub max_load: f64,
}

/// Something that carries the flows, and what it is offered at load 1.
struct Limit {
    what: &'static str,
    capacity_bps: f64,
    offered_bps: f64,
}

/// Offered load of flows of `mean_bytes` at `load`, or why that is too much.
pub(crate) fn offered(
    load: f64,
    load_of: LoadOf,
    pairs: &PairPicker,
    shape: &FabricShape,
    mean_bytes: f64,
) -> Result<OfferedLoad, TrafficError> {
    check_share("traffic.load", load)?;
    let (sources, destinations) = (pairs.sources(), pairs.destinations());
    let crossing = pairs.cross_rack_share(shape);
    let (capacity_bps, counted) = match load_of {
        LoadOf::LeafUplinks => (shape.uplink_bps(&sources), crossing),
        LoadOf::HostLinks => (shape.nic_bps(&sources), 1.0),
        LoadOf::Bisection => (shape.bisection_rate.as_bps() as f64, 1.0),
    };
    if capacity_bps == 0.0 || counted == 0.0 {
        let allowed = "\"host-links\", since no flow crosses what the load would be a share of";
        return Err(TrafficError::bad_value("traffic.load_of", load_of.name(), allowed));
    }
    let at_full_load = capacity_bps / counted;
    let limits = [
        Limit { what: "the reference's links", capacity_bps, offered_bps: at_full_load * counted },
        Limit {
            what: "the senders' links",
            capacity_bps: shape.nic_bps(&sources),
            offered_bps: at_full_load,
        },
        Limit {
            what: "the receivers' links",
            capacity_bps: shape.nic_bps(&destinations),
            offered_bps: at_full_load,
        },
        Limit {
            what: "the uplinks of the senders' racks",
            capacity_bps: shape.uplink_bps(&sources),
            offered_bps: at_full_load * crossing,
        },
        Limit {
            what: "the downlinks to the receivers' racks",
            capacity_bps: shape.uplink_bps(&destinations),
            offered_bps: at_full_load * crossing,
        },
    ];
    let max_load = check_limits("traffic.load", load, &limits)?;
    let bytes_per_s = load * at_full_load / 8.0;
    Ok(OfferedLoad {
        bytes_per_s,
        cross_rack_bytes_per_s: bytes_per_s * crossing,
        flows_per_s: bytes_per_s / mean_bytes,
        capacity_bps,
        max_load,
    })
}

/// A load is above 0; how far it may go, [`check_limits`] says.
pub(crate) fn check_share(key: &str, load: f64) -> Result<(), TrafficError> {
    if load.is_finite() && load > 0.0 {
        return Ok(());
    }
    Err(TrafficError::bad_value(key, load, "a share above 0, at most 1, as in 0.5"))
}

/// The largest load that overloads none of `limits`, or an error that says so if `load` is larger.
/// Each is judged as a whole: a single link may still get more than its share.
fn check_limits(key: &str, load: f64, limits: &[Limit]) -> Result<f64, TrafficError> {
    /// A load may be above the largest one by as much as rounding makes of it.
    const ROUNDING: f64 = 1.0 + 1e-9;
    let largest = |limit: &Limit| limit.capacity_bps / limit.offered_bps;
    let carrying = limits.iter().filter(|limit| limit.offered_bps > 0.0);
    let Some(tightest) = carrying.reduce(|a, b| if largest(b) < largest(a) { b } else { a }) else {
        return Ok(1.0);
    };
    let max_load = largest(tightest);
    if load <= max_load * ROUNDING {
        return Ok(max_load);
    }
    let gbps = |bps: f64| (bps / 1e6).round() / 1e3;
    let rounded_down = (max_load * ROUNDING * 1e4).floor() / 1e4;
    Err(TrafficError::Overload {
        key: key.to_owned(),
        load,
        offered_gbps: gbps(tightest.offered_bps * load),
        limit: tightest.what,
        limit_gbps: gbps(tightest.capacity_bps),
        max_load: if rounded_down > 0.0 { rounded_down } else { max_load },
    })
}

/// Checks an incast's load, a share of `capacity_bps` of receiving links.
pub(crate) fn check_incast_load(key: &str, load: f64, capacity_bps: f64) -> Result<(), TrafficError> {
    check_share(key, load)?;
    let limit = Limit { what: "the receivers' links", capacity_bps, offered_bps: capacity_bps };
    check_limits(key, load, &[limit]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{leaf_spine, racks, spec};

    const MEAN: f64 = 1e6;

    fn offer(load: f64, rest: &str, shape: &FabricShape) -> Result<OfferedLoad, TrafficError> {
        let spec = spec(rest);
        let pairs = PairPicker::new(&spec, shape, 1)?;
        offered(load, spec.load_of, &pairs, shape, MEAN)
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-12, "{value} is not {expected}");
    }

    /// 16 hosts at 10 Gbit/s, 4 racks with 20 Gbit/s up: 10 GB/s of uplinks, 20 GB/s of NICs.
    #[test]
    fn offered_bytes_are_load_times_the_reference() {
        let shape = leaf_spine();
        let uplinks = offer(0.5, "pairs = 'between-racks'", &shape).unwrap();
        assert_near(uplinks.bytes_per_s, 5e9);
        assert_near(uplinks.flows_per_s, 5e3);
        assert_near(uplinks.capacity_bps, 80e9);
        // Four fifths of the flows leave their rack; those make up the load.
        let anywhere = offer(0.5, "pairs = 'anywhere'", &shape).unwrap();
        assert_near(anywhere.bytes_per_s, 5e9 / 0.8);
        assert_near(anywhere.cross_rack_bytes_per_s, 5e9);
        let hosts = offer(0.25, "load_of = 'host-links'", &shape).unwrap();
        assert_near(hosts.bytes_per_s, 5e9);
        let middle = offer(0.5, "load_of = 'bisection'", &shape).unwrap();
        assert_near(middle.bytes_per_s, 2.5e9);
        // Two racks of senders have 40 Gbit/s up.
        let groups = "pairs = 'group-to-group'\nsources = ['0-5']\ndestinations = ['8-15']";
        assert_near(offer(0.5, groups, &shape).unwrap().bytes_per_s, 2.5e9);
    }

    #[test]
    fn more_than_the_fabric_carries_is_refused_with_the_largest_load() {
        let shape = leaf_spine();
        let message = |load, rest| offer(load, rest, &shape).unwrap_err().to_string();
        let hosts = message(0.6, "load_of = 'host-links'");
        assert_eq!(
            hosts,
            "traffic.load = 0.6 offers 96 Gbps, and the uplinks of the senders' racks carry 80 Gbps: the largest load is 0.5"
        );
        assert!(offer(0.5, "load_of = 'host-links'", &shape).is_ok());
        // With anywhere, a fifth stays in its rack: 80 / 0.8 of 160 Gbit/s.
        assert!(message(0.7, "load_of = 'host-links'\npairs = 'anywhere'").ends_with("is 0.625"));
        assert!(message(1.01, "").ends_with("the largest load is 1"));
        let few = "pairs = 'group-to-group'\nsources = [0]\ndestinations = ['8-15']";
        assert!(message(0.6, few).contains("the senders' links carry 10 Gbps: the largest load is 0.5"));
        let fan_in = "pairs = 'group-to-group'\nsources = ['0-3']\ndestinations = [8]";
        assert!(message(0.6, fan_in).contains("the receivers' links carry 10 Gbps: the largest load is 0.5"));
    }

    #[test]
    fn a_load_that_is_no_share_is_refused() {
        for load in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            let message = offer(load, "", &leaf_spine()).unwrap_err().to_string();
            assert!(
                message.contains(&format!("traffic.load = {load}: allowed is a share above 0")),
                "{message}"
            );
        }
    }

    #[test]
    fn a_reference_that_nothing_crosses_is_refused() {
        let local = "pairs = 'group-to-group'\nsources = [0]\ndestinations = [1]";
        for (rest, shape) in [(local, leaf_spine()), ("pairs = 'anywhere'", racks(1, 4, 0))] {
            let message = offer(0.5, rest, &shape).unwrap_err().to_string();
            assert!(
                message.contains("traffic.load_of = leaf-uplinks: allowed is \"host-links\""),
                "{message}"
            );
        }
    }
}
