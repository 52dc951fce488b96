//! Faults in the spec: which links, when, and what happens to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Rate, Span, Time};

use super::FabricError;
use crate::plan::{check_delay, check_rate};
use crate::{Condition, FaultSpan, Topology};

/// The latest time that a spec can name: 11 days.
const MAX_TIME: Span = Span::from_s(1_000_000);

/// Links that are degraded from the start, or for some time. Faults of one link add up in the order
/// of the list: for each property the last one wins that is in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultTable {
    /// The cable, by the nodes at its ends: "leaf0-spine1" for both directions, "leaf0>spine1" for
    /// one. Where several run in parallel that means all of them, and "leaf0-spine1.0",
    /// "leaf0-spine1.1" and so on one. Default: absent; then `share` says which links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Instead of `link`: the share of cables, 0 to 1, chosen at random by the run's seed. Their
    /// number is this share of all, rounded. Both directions are affected. Default: absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// With `share`: of which cables. "host-leaf" or "leaf-spine"; in a fat-tree "host-edge",
    /// "edge-agg" or "agg-core"; in a graph "host-switch" or "switch-switch". Default: all between
    /// switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// When it begins. Default: 0ps, before the first packet; then all switches know of it from the
    /// start.
    #[serde(default)]
    pub at: Span,
    /// When it ends. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The rate that is left. Default: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Delay in addition to the link's own. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Probability that a packet is lost, 0 to 1. Default: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Whether the link is down: nothing passes, and switches route around it. Default: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// Share of flows, 0 to 1, whose packets all vanish on the link, unknown to routing. Default:
    /// unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blackhole: Option<f64>,
}

impl FaultTable {
    /// Refuses values that cannot be meant. `key` is the table's own.
    pub(super) fn check(&self, key: &str) -> Result<(), FabricError> {
        self.check_target(key)?;
        for (field, share) in [("share", self.share), ("loss", self.loss), ("blackhole", self.blackhole)] {
            if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
                return Err(FabricError::bad(format!("{key}.{field}"), &share, "a number from 0 to 1"));
            }
        }
        self.rate.map_or(Ok(()), |rate| check_rate(&format!("{key}.rate"), rate))?;
        self.delay.map_or(Ok(()), |delay| check_delay(&format!("{key}.delay"), delay))?;
        for (field, time) in [("at", Some(self.at)), ("until", self.until)] {
            if let Some(time) = time.filter(|time| *time > MAX_TIME) {
                return Err(FabricError::bad(format!("{key}.{field}"), &time, format!("at most {MAX_TIME}")));
            }
        }
        if let Some(until) = self.until.filter(|until| *until <= self.at) {
            let allowed = format!("later than {key}.at, which is {}", self.at);
            return Err(FabricError::bad(format!("{key}.until"), &until, allowed));
        }
        Ok(())
    }

    fn check_target(&self, key: &str) -> Result<(), FabricError> {
        let conflict = |field: &str, other: &str, reason: &str| FabricError::Conflict {
            key: format!("{key}.{field}"),
            other: format!("{key}.{other}"),
            reason: reason.to_owned(),
        };
        let missing = |field: &str, reason: &str| FabricError::Missing {
            key: format!("{key}.{field}"),
            reason: reason.to_owned(),
        };
        match (&self.link, self.share, &self.tier) {
            (Some(_), Some(_), _) => {
                return Err(conflict("link", "share", "a fault names its links in one way"));
            }
            (Some(_), _, Some(_)) => {
                return Err(conflict("link", "tier", "a tier is what a share is taken of"));
            }
            (None, None, _) => {
                return Err(missing("link", "a fault names its links by `link` or by `share`"));
            }
            _ => {}
        }
        let effects = [
            self.rate.is_some(),
            self.delay.is_some(),
            self.loss.is_some(),
            self.down.is_some(),
            self.blackhole.is_some(),
        ];
        if effects.contains(&true) {
            return Ok(());
        }
        Err(missing("rate", "a fault has an effect: one of `rate`, `delay`, `loss`, `down` and `blackhole`"))
    }

    /// Effect of the fault, its times and its links.
    pub(super) fn span(&self, links: &[u32], topology: &Topology) -> FaultSpan {
        FaultSpan {
            from: self.begins(),
            until: self.until.map(|_| self.ends()),
            names: links.iter().map(|&link| topology.link_name(link)).collect(),
            links: links.to_vec(),
            down: self.down,
            rate: self.rate,
            delay: self.delay,
            loss: self.loss,
            blackhole: self.blackhole,
        }
    }

    /// When it begins.
    pub(super) const fn begins(&self) -> Time {
        Time::from_ps(self.at.as_ps())
    }

    /// When it ends.
    pub(super) fn ends(&self) -> Time {
        self.until.map_or(Time::NEVER, |until| Time::from_ps(until.as_ps()))
    }

    /// `condition` with this fault in force; `nominal` is the link without any.
    pub(super) fn applied(&self, condition: Condition, nominal: &Condition) -> Condition {
        Condition {
            up: self.down.map_or(condition.up, |down| !down),
            rate: self.rate.unwrap_or(condition.rate),
            delay: self.delay.map_or(condition.delay, |extra| nominal.delay + extra),
            loss: self.loss.unwrap_or(condition.loss),
            blackhole: self.blackhole.unwrap_or(condition.blackhole),
        }
    }
}
