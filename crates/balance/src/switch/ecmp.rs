//! ECMP: a flow stays on the path that a hash of its five-tuple picks (RFC 2992).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Purpose, Stream, mix64};

use crate::registry::Parameters;
use crate::{NextHops, SwitchBalancer, SwitchContext, SwitchInfo};

/// Parameters of ECMP.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How switches hash: `per-switch` gives each its own seed; `shared` gives all switches of a tier the same one,
    /// so that both directions of a flow take the same path (symmetric). Source: vendors ship per-switch seeds against
    /// hash polarisation; MaxPass assumes shared ones.
    pub hash: HashSeed,
}

/// Whose seed a switch hashes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashSeed {
    /// Each switch has its own.
    #[default]
    PerSwitch,
    /// All switches of a tier have the same.
    Shared,
}

/// ECMP at one switch.
#[derive(Debug, Clone)]
pub struct Ecmp {
    seed: u64,
}

impl Ecmp {
    /// The hash of a packet at this switch: the same for every packet of a flow and direction.
    #[inline]
    pub fn hash(&self, packet: &Packet) -> u32 {
        (mix64(self.seed ^ u64::from(packet.entropy)) >> 32) as u32
    }
}

impl Parameters for Params {}

impl SwitchBalancer for Ecmp {
    type Params = Params;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let entity = match params.hash {
            HashSeed::PerSwitch => u64::from(info.switch),
            HashSeed::Shared => u64::MAX - u64::from(info.tier),
        };
        Self { seed: Stream::new(info.seed, Purpose::SwitchHash, entity).next_u64() }
    }

    #[inline]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        _: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        ((u64::from(self.hash(packet)) * hops.ports.len() as u64) >> 32) as usize
    }

    fn state_bytes(&self) -> u64 {
        0
    }
}
