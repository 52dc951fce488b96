//! Fabric facts of a test, against which parameters are checked.

use weft_units::Span;

use crate::FabricFacts;

/// A fabric of which the test says what parameters may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenFacts {
    /// The longest round trip between two racks.
    pub base_rtt: Span,
    /// How many hosts there are.
    pub hosts: u32,
    /// The most explicit routes from one rack to another, each over an uplink of its own.
    pub routes: u16,
}

impl FabricFacts for GivenFacts {
    fn hosts(&self) -> u32 {
        self.hosts
    }

    fn uplinks(&self) -> u32 {
        self.routes.into()
    }

    fn base_rtt(&self) -> Span {
        self.base_rtt
    }

    fn routes(&self) -> u16 {
        self.routes
    }
}
