//! Operations on the parameters of every scheme: checks, by themselves and on a fabric, and reading
//! their files.

use thiserror::Error;
use weft_units::{Mistake, Span};

use super::Order;

/// A parameter with a value that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} is {found}: {allowed}")]
pub struct ParameterError {
    /// The parameter.
    pub key: &'static str,
    /// Rejected value.
    pub found: String,
    /// Allowed values.
    pub allowed: &'static str,
}

impl From<ParameterError> for Mistake {
    fn from(error: ParameterError) -> Self {
        let ParameterError { key, found, allowed } = error;
        Self::at(key, format!(" is {found}: {allowed}")).found(found).allowed(allowed)
    }
}

/// Refuses a table of flows or flowlets that is no power of two, or too large.
pub(crate) fn check_table_size(entries: u32) -> Result<(), ParameterError> {
    if entries.is_power_of_two() && entries <= 1 << 24 {
        return Ok(());
    }
    let allowed = "a power of two, 1 to 16777216";
    Err(ParameterError { key: "entries", found: entries.to_string(), allowed })
}

/// How a scheme that moves flows between flowlets tells these apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletRule {
    /// The pause of a flow that ends a flowlet.
    pub gap: Span,
    /// Whether chance alone chooses paths: a flow of one flowlet is treated as under ECMP.
    pub is_blind: bool,
}

impl FlowletRule {
    /// For a scheme that knows something of paths.
    pub(crate) const fn informed(gap: Span) -> Self {
        Self { gap, is_blind: false }
    }
}

/// Operations on every scheme's `Params`.
pub(crate) trait Parameters {
    /// Refuses values that cannot be meant.
    fn validate(&self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// Reads the files that parameters name, whose paths are absolute by now.
    fn load(&mut self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// Whether switches must be told [`crate::SwitchInfo::base_rtts`], which takes a walk over all
    /// pairs of racks.
    fn asks_for_base_rtts(&self) -> bool {
        false
    }

    /// Whether a scheme of the edge runs at switches with these values, at those where hosts hang,
    /// and not at hosts.
    fn runs_at_switches(&self) -> bool {
        false
    }

    /// Effect of the scheme on the order of a flow with these values; `usual` applies unless they
    /// say otherwise.
    fn order(&self, usual: Order) -> Order {
        usual
    }

    /// How the scheme tells flowlets apart with these values, where this is the round trip of the
    /// idle fabric; none if nothing moves between flowlets.
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        None
    }

    /// Refuses values that cannot be meant on this fabric.
    fn fits(&self, _fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        Ok(())
    }
}

/// Facts of the fabric that a scheme's parameters must fit. Costly ones are computed on demand.
pub trait FabricFacts {
    /// How many hosts there are.
    fn hosts(&self) -> u32;

    /// How many ports to other switches the edge switch has that has most.
    fn uplinks(&self) -> u32;

    /// The longest round trip of the idle fabric between two racks: see
    /// [`crate::HostInfo::base_rtts`]. Zero if there are no two.
    fn base_rtt(&self) -> Span;

    /// The most explicit routes that lead from one rack to another. 1 if there is never a choice.
    fn routes(&self) -> u16;
}
