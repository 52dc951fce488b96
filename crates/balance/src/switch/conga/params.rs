//! The parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Span;

use super::super::{flowlets, past};
use super::header::Header;
use crate::acknowledgements::Acknowledgements;
use crate::flowlet::Detection;
use crate::registry::{FlowletRule, Parameters};
use crate::{FabricFacts, ParameterError};

/// Parameters of CONGA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How often the rate estimators decay (time). Source: the paper gives only their time constant
    /// `t_dre / alpha`, 160 us (§3.6); 20 us and an eighth, which is a shift in hardware, make 160
    /// us.
    pub t_dre: Span,
    /// The share that a rate estimator loses each `t_dre`: 0.001 to 1. Source: as for `t_dre`; a
    /// public ns-3 port uses 0.2.
    pub alpha: f64,
    /// Bits of a congestion metric, Q: 1 to 8. Source: 3 (§3.6).
    pub metric_bits: u8,
    /// Where a metric ends: `bits`, at the most that `metric_bits` hold; `none`, at 255, which a
    /// field of this program holds. Source: Q bits (§3.6); a public ns-3 port has no limit, so that
    /// an overloaded link differs from a full one.
    pub metric_limit: MetricLimit,
    /// Which links a packet collects metrics of: `path`, all that it crosses between leaves;
    /// `behind-uplink`, those behind the uplink that it left its leaf by. Source: every link of the
    /// path (§3.3); a public ns-3 port's leaf adds nothing, and measures its uplinks where it
    /// decides.
    pub collects: Collects,
    /// Which uplinks a leaf reports first: `changed`, those with another metric than the one last
    /// reported; `renewed`, those that a packet came by since. Source: changed metrics (§3.3); a
    /// public ns-3 port takes every packet for a change.
    pub reports_first: ReportsFirst,
    /// Draw among equal uplinks: `even`, each as likely as the others; `first-twice`, the first one
    /// twice as likely. Source: at random (§3.5); a public ns-3 port has the first of equals in its
    /// list twice.
    pub ties: Ties,
    /// A pause that ends a flowlet (time); 13ms makes CONGA-Flow, which hardly ever moves a flow.
    /// Source: 500 us (§3.6), 13 ms for CONGA-Flow (§5).
    pub gap: Span,
    /// How pauses are noticed: `age-bit`, at one to two gaps; `timer`, at exactly one. Source: age
    /// bits (§3.4).
    pub detection: Detection,
    /// Entries of a leaf's flowlet table: a power of two, 1 to 16,777,216. Source: 64K (§3.4).
    pub entries: u32,
    /// A metric that was not renewed for so long begins to fall to zero (time). Source: 10 ms as
    /// the paper's example (§3.3).
    pub aging: Span,
    /// How it falls: `gradually`, a level each 2^-Q of `aging`; `at-once`, and then it is not
    /// reported any more. Source: gradually (§3.3); a public ns-3 port looks each quarter of the
    /// time, and sets what is older to zero.
    pub falls: Falls,
    /// How old the metrics of its own uplinks are that a leaf's decisions go by (time): 0 for what
    /// they are now, at most 100ms. Source: 0 as in CONGA, whose leaf measures its uplinks where it
    /// decides; 615 us on `BMv2` for what a clone brings, in QALL, Table II. The 19.8 ms and more
    /// that it has for CONGA are the wait for reports, which come by packets here, too.
    pub age: Span,
    /// Which way acknowledgements, NACKs and CNPs take: `balanced`, as the scheme chooses for every
    /// packet; `ecmp`, by the hash of their five-tuple. Source: a choice; the authors' ns-3 code of
    /// ConWeave has all its load balancers steer data only, and hashes the rest.
    pub acknowledgements: Acknowledgements,
}

/// Where a metric ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetricLimit {
    /// At the most that its bits hold.
    #[default]
    Bits,
    /// Nowhere, but for the field's room.
    None,
}

/// Which links a packet collects metrics of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Collects {
    /// All that it crosses between leaves.
    #[default]
    Path,
    /// Those behind the uplink of its own leaf.
    BehindUplink,
}

/// Which uplinks are reported first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportsFirst {
    /// Those with another metric than was last reported.
    #[default]
    Changed,
    /// Those that a packet came by since they were last reported.
    Renewed,
}

/// Draw among equal uplinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Each is as likely as the others.
    #[default]
    Even,
    /// The first is twice as likely.
    FirstTwice,
}

/// How an old metric falls to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Falls {
    /// A level at a time.
    #[default]
    Gradually,
    /// At once.
    AtOnce,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            t_dre: Span::from_us(20),
            alpha: 0.125,
            metric_bits: 3,
            metric_limit: MetricLimit::Bits,
            collects: Collects::Path,
            reports_first: ReportsFirst::Changed,
            ties: Ties::Even,
            gap: Span::from_us(500),
            detection: Detection::AgeBit,
            entries: 1 << 16,
            aging: Span::from_ms(10),
            falls: Falls::Gradually,
            age: Span::ZERO,
            acknowledgements: Acknowledgements::Balanced,
        }
    }
}

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        Some(FlowletRule::informed(self.gap))
    }

    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if self.t_dre.is_zero() {
            return refuse("t_dre", self.t_dre.to_string(), "longer than nothing");
        }
        if !(0.001..=1.0).contains(&self.alpha) {
            return refuse("alpha", self.alpha.to_string(), "0.001 to 1");
        }
        if !(1..=8).contains(&self.metric_bits) {
            return refuse("metric_bits", self.metric_bits.to_string(), "1 to 8");
        }
        if self.aging < Span::from_us(1) {
            return refuse("aging", self.aging.to_string(), "1us or more");
        }
        past::validate(self.age)?;
        flowlets::validate(self.entries, self.gap, "longer than nothing")
    }

    /// Two uplinks of one tag would be taken for one path.
    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        if fabric.uplinks() as usize > Header::TAGS {
            let found = format!("conga at leaves of up to {} uplinks", fabric.uplinks());
            let allowed = "at most 64, which the header's `LBTag` tells apart";
            return Err(ParameterError { key: "name", found, allowed });
        }
        Ok(())
    }
}
