//! RPS: random packet spraying. Every packet takes one of its next hops, each as likely as the
//! others (Dixit et al., INFOCOM 2013).
//!
//! It keeps no state and reads no queue. It evens out load on a symmetric fabric and reorders on
//! any other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;

use crate::registry::Parameters;
use crate::{NextHops, SwitchContext, SwitchInfo, SwitchScheme};

/// RPS has no parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

impl Parameters for Params {}

/// RPS at one switch.
#[derive(Debug, Clone)]
pub struct Rps;

impl SwitchScheme for Rps {
    type Params = Params;

    const LOOKS_AT_QUEUES: bool = false;

    fn new(_: &Params, _: &SwitchInfo<'_>) -> Self {
        Self
    }

    #[inline]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        _: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        cx.random().below(hops.ports.len() as u32) as usize
    }

    fn explain(&self, _: &dyn SwitchContext, _: &Packet, hops: &NextHops<'_>) -> Option<String> {
        Some(format!("every packet draws one of {} ports", hops.ports.len()))
    }

    fn state_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{CHI_SQUARE_7, FakeSwitch, Group, chi_square, packet};

    use super::*;

    #[test]
    fn the_packets_of_one_flow_spread_evenly_and_in_no_order() {
        let (mut switch, group) = (FakeSwitch::new(8, 5), Group::of(0..8));
        let (mut singles, mut repeats, mut last) = ([0; 8], 0, 0);
        for _ in 0..80_000 {
            let port = Rps.choose(&mut switch, &mut packet(1), &group.hops());
            singles[port] += 1;
            repeats += u64::from(port == last);
            last = port;
        }
        let chi = chi_square(&singles, &[1; 8]);
        assert!(chi < CHI_SQUARE_7, "chi-square {chi}: {singles:?}");
        // A packet follows its predecessor with probability 1/8: 10,000 of 80,000, standard
        // deviation 94.
        assert!((9_700..10_300).contains(&repeats), "{repeats} packets took the port of the one before");
    }
}
