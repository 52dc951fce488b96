//! Runs whose switches write down what their schemes were told, saw, drew and decided, for who
//! decides the same again.

use std::num::NonZeroUsize;

use serde::Serialize;
use weft_balance::recording::{Call, Log, Recorder};
use weft_balance::{ExternalScheme, SwitchInfo};

use crate::cores::Cores;
use crate::external_scheme::ExternalSchemeFactory;
use crate::run::{Observer, Prepared, RunError, Watch};

/// Recording of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// The scheme.
    pub scheme: &'static str,
    /// By host, its rack.
    pub rack_of_host: Vec<u16>,
    /// The switches.
    pub switches: Vec<RecordedSwitch>,
}

/// Recording of one switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedSwitch {
    /// Number of the switch in the fabric.
    pub switch: u32,
    /// Hops from the nearest host.
    pub tier: u8,
    /// How many ports it has.
    pub ports: u16,
    /// By port, whether a switch is at the far end, and of which tier.
    pub neighbour_tiers: Vec<Option<u8>>,
    /// The calls of its scheme, in their order.
    pub calls: Vec<Call>,
    /// Decisions behind the last of these.
    pub beyond: u64,
}

/// A switch before its calls are known.
fn facts(info: &SwitchInfo<'_>) -> RecordedSwitch {
    let tier_of = |peer: &weft_balance::Peer| match *peer {
        weft_balance::Peer::Host(_) => None,
        weft_balance::Peer::Switch { tier, .. } => Some(tier),
    };
    RecordedSwitch {
        switch: info.switch,
        tier: info.tier,
        ports: info.port_peers.len() as u16,
        neighbour_tiers: info.port_peers.iter().map(tier_of).collect(),
        calls: Vec::new(),
        beyond: 0,
    }
}

impl Prepared {
    /// Runs to the end with the spec's load balancer, and returns what it was told and decided at
    /// every switch: at each its first `most` decisions, and every call before the last of them.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    pub fn record(&self, observer: Observer<'_>, most: usize) -> Result<Recording, RunError> {
        self.refuse_outside()?;
        let scheme = &self.resolved.spec.scheme;
        let mut logs = Vec::new();
        let mut make = |info: &SwitchInfo<'_>| -> Box<dyn ExternalScheme> {
            let log = Log::new(most);
            logs.push((facts(info), log.clone()));
            Box::new(Recorder::new(scheme.switch_scheme(info), scheme.switch_hooks(), log))
        };
        let name = scheme.name().to_owned();
        let mut external = ExternalSchemeFactory { name, make: &mut make };
        self.simulate(observer, Some(&mut external), Watch::default(), Cores::UpTo(NonZeroUsize::MIN))?;
        let switches = logs.into_iter().map(|(facts, log)| {
            let (calls, beyond) = log.take();
            RecordedSwitch { calls, beyond, ..facts }
        });
        Ok(Recording {
            scheme: scheme.name(),
            rack_of_host: self.fabric.topology.rack_of_host.clone(),
            switches: switches.collect(),
        })
    }
}
