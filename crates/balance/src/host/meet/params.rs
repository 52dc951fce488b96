//! Parameters of MEET.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Span;

use crate::ParameterError;
use crate::registry::{FabricFacts, FlowletRule, Parameters};

/// Parameters of MEET.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// K: the round trip up to which a packet met no congestion (time), on every path alike. Not
    /// below the base round trip of the fabric. Default: absent, then `k_above` beyond the base
    /// round trip to each rack. Source: 60 us at a base round trip of 40 us in MEET §4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<Span>,
    /// Without `k`: how far K lies above the base round trip (time). Source: 20 us in MEET §3.5.
    pub k_above: Span,
    /// `T_update`: how often a host reports to its proxy, and the proxy tells its view (time). Not
    /// below the base round trip. Source: 500 us in MEET §4; tens of round trips in §3.5.
    pub update: Span,
    /// `T_probe`: how often probes are sent (time). Not below the base round trip. Source: equal to
    /// `T_update` in MEET §3.5.
    pub probe: Span,
    /// The proxy's sliding window: older reports do not count (time). At least `update`. Source:
    /// open in MEET §3.2; two updates, so that every host's latest report is in it whatever its
    /// phase.
    pub window: Span,
    /// The longest pause inside a flowlet (time). Source: 500 us in MEET §4.
    pub gap: Span,
    /// Who probes: `host`, each host for its own flows; `proxy`, the proxy for all of the rack.
    /// Source: MEET §3.3 details the hosts, §1 names the proxy.
    pub prober: Prober,
    /// Value of a path of which the view has no data: `after-idle`, more than a path without
    /// congestion, less than one with any; `best`, as one without congestion; `mean`, the mean of
    /// the paths to its rack that there is data of, or as `after-idle` if there is none; `worst`,
    /// more than any that did not fail. Source: open in MEET §3.2 and §3.3; the default is the
    /// choice of this project.
    pub no_data: NoData,
    /// Whether the wait in the sending host's own queue is part of a round trip: `counts`, or
    /// `left-out`, as if packets were stamped when they go onto the cable. Source: MEET §3.1 has
    /// the "network stack delay of end hosts" among what a round trip has, and no stamps of its
    /// own; that wait says nothing of a path.
    pub own_queue: OwnQueue,
    /// Without a view for this long, the next host of the rack is the proxy (time). At least two
    /// updates. Source: beyond the paper; three updates, so that one lost view changes nothing.
    pub proxy_timeout: Span,
}

/// Value of a path without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoData {
    /// A little more than a path without congestion.
    #[default]
    AfterIdle,
    /// As a path without congestion.
    Best,
    /// The mean of those with data.
    Mean,
    /// More than all that did not fail.
    Worst,
}

/// Whether the wait in the sending host's own queue is part of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OwnQueue {
    /// It is.
    #[default]
    Counts,
    /// It is not.
    LeftOut,
}

/// Who probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prober {
    /// Each host, to the racks that its own flows go to.
    #[default]
    Host,
    /// The proxy, to the racks that flows of its rack go to.
    Proxy,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            k: None,
            k_above: Span::from_us(20),
            update: Span::from_us(500),
            probe: Span::from_us(500),
            window: Span::from_us(1_000),
            gap: Span::from_us(500),
            prober: Prober::Host,
            no_data: NoData::AfterIdle,
            own_queue: OwnQueue::Counts,
            proxy_timeout: Span::from_us(1_500),
        }
    }
}

impl Params {
    /// K on the paths to a rack with this base round trip (MEET §3.5).
    pub fn k_for(&self, base_rtt: Span) -> Span {
        self.k.unwrap_or(base_rtt + self.k_above)
    }
}

/// An error unless `found` is at least `least`.
fn at_least(
    key: &'static str,
    found: Span,
    least: Span,
    allowed: &'static str,
) -> Result<(), ParameterError> {
    if found >= least {
        return Ok(());
    }
    Err(ParameterError { key, found: found.to_string(), allowed })
}

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        Some(FlowletRule::informed(self.gap))
    }

    fn validate(&self) -> Result<(), ParameterError> {
        let least = Span::from_ps(1);
        at_least("update", self.update, least, "longer than nothing")?;
        at_least("probe", self.probe, least, "longer than nothing")?;
        at_least("window", self.window, self.update, "at least `update`")?;
        at_least(
            "proxy_timeout",
            self.proxy_timeout,
            self.update.saturating_mul(2),
            "at least twice `update`",
        )
    }

    /// Where there is never a choice, nothing of MEET runs, so that every value goes.
    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        if fabric.routes() < 2 {
            return Ok(());
        }
        let base = fabric.base_rtt();
        let allowed = "at least the base round trip between racks of this fabric";
        self.k.map_or(Ok(()), |k| at_least("k", k, base, allowed))?;
        at_least("update", self.update, base, allowed)?;
        at_least("probe", self.probe, base, allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::GivenFacts;

    fn refused(change: impl FnOnce(&mut Params)) -> Option<&'static str> {
        let mut params = Params::default();
        change(&mut params);
        let fabric = GivenFacts { base_rtt: Span::from_us(40), routes: 8, hosts: 128 };
        params.validate().and_then(|()| params.fits(&fabric)).err().map(|error| error.key)
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        assert_eq!(refused(|_| ()), None);
        assert_eq!(refused(|params| params.update = Span::ZERO), Some("update"));
        assert_eq!(refused(|params| params.probe = Span::ZERO), Some("probe"));
        assert_eq!(refused(|params| params.window = Span::from_us(499)), Some("window"));
        assert_eq!(refused(|params| params.proxy_timeout = Span::from_us(999)), Some("proxy_timeout"));
        // Against a base round trip of 40 us:
        assert_eq!(refused(|params| params.k = Some(Span::from_us(39))), Some("k"));
        assert_eq!(refused(|params| params.k = Some(Span::from_us(40))), None);
        assert_eq!(refused(|params| params.update = Span::from_us(39)), Some("update"));
        assert_eq!(refused(|params| params.probe = Span::from_us(39)), Some("probe"));
        assert_eq!(refused(|params| params.probe = Span::from_us(40)), None);
    }

    #[test]
    fn without_a_choice_of_paths_every_value_fits() {
        let params = Params { k: Some(Span::from_ps(1)), ..Params::default() };
        assert_eq!(params.fits(&GivenFacts { base_rtt: Span::from_us(40), routes: 1, hosts: 128 }), Ok(()));
    }

    #[test]
    fn k_is_20_us_above_the_base_round_trip_or_what_is_said() {
        assert_eq!(Params::default().k_for(Span::from_us(40)), Span::from_us(60));
        let fixed = Params { k: Some(Span::from_us(90)), ..Params::default() };
        assert_eq!(fixed.k_for(Span::from_us(40)), Span::from_us(90));
    }
}
