//! WCMP: ECMP whose shares are in proportion to the capacity behind each next hop (Zhou et al.,
//! `EuroSys` 2014).
//!
//! Routing knows the capacity of each next hop towards a destination, failures further on included,
//! and gives it as `hops.weights`. The hash of a flow is a point on a line from 0 to the sum of the
//! weights; the flow takes the port in whose stretch the point lies:
//!
//! ```text
//! x = hash x sum(w) / 2^32          port i:  w_0 + … + w_(i-1)  <=  x  <  w_0 + … + w_i
//! ```
//!
//! A port's share is its weight to within 2^-32. The switches of the paper get there by entering a
//! port several times in a table, and reduce the weights until the tables fit: that approximation
//! is not modelled. With equal weights the choice is that of ECMP, flow by flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;

use super::ecmp::{self, Ecmp, HashSeed};
use crate::registry::{ParameterError, Parameters};
use crate::{NextHops, SwitchContext, SwitchInfo, SwitchScheme};

/// Parameters of WCMP.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How switches hash, as for ECMP: `per-switch` or `shared`. Source: WCMP changes the shares of
    /// ECMP, not its hash; vendors ship per-switch seeds.
    pub hash: HashSeed,
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if self.hash == HashSeed::Symmetric {
            // Weights differ by direction, so the paths would.
            let allowed = "per-switch or shared; symmetric is for ecmp";
            return Err(ParameterError { key: "hash", found: "symmetric".to_owned(), allowed });
        }
        Ok(())
    }
}

/// WCMP at one switch.
#[derive(Debug, Clone)]
pub struct Wcmp {
    ecmp: Ecmp,
}

/// The index of the stretch in which `point` lies, when stretches of these lengths lie end to end
/// from 0. `point` must be below their sum.
#[inline]
fn stretch(weights: &[u32], point: u64) -> usize {
    let mut end = 0;
    let mut index = 0;
    for &weight in weights {
        end += u64::from(weight);
        index += usize::from(point >= end);
    }
    index
}

impl SwitchScheme for Wcmp {
    type Params = Params;

    const LOOKS_AT_QUEUES: bool = false;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        Self { ecmp: Ecmp::new(&ecmp::Params { hash: params.hash }, info) }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        _: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let sum: u64 = hops.weights.iter().map(|&weight| u64::from(weight)).sum();
        let point = (u128::from(self.ecmp.hash(packet.entropy)) * u128::from(sum)) >> 32;
        stretch(hops.weights, point as u64)
    }

    fn explain(&self, _: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let hash = self.ecmp.hash(packet.entropy);
        Some(format!("the flow's hash {hash:08x} among next hops of {:?} Mbit/s", hops.weights))
    }

    /// Nothing of its own: the weights belong to routing.
    fn state_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{CHI_SQUARE_3, FakeSwitch, Group, chi_square, packet};

    use super::*;

    fn wcmp() -> Wcmp {
        Wcmp::new(&Params::default(), &FakeSwitch::new(8, 1).info(0, 0, 1))
    }

    fn port(scheme: &mut Wcmp, flow: u32, group: &Group) -> usize {
        scheme.choose(&mut FakeSwitch::new(8, 1), &mut packet(flow), &group.hops())
    }

    #[test]
    fn stretches_lie_end_to_end() {
        let points = [(0, 0), (2, 0), (3, 1), (4, 2), (8, 2)];
        for (point, index) in points {
            assert_eq!(stretch(&[3, 1, 5], point), index, "point {point}");
        }
        let largest = u64::from(u32::MAX);
        assert_eq!(stretch(&[u32::MAX; 3], largest * 3 - 1), 2);
    }

    #[test]
    fn flows_are_shared_out_by_weight() {
        let (mut scheme, group) = (wcmp(), Group::weighted(&[1_000, 10_000, 40_000, 9_000]));
        let mut counts = [0; 4];
        for flow in 0..120_000 {
            counts[port(&mut scheme, flow, &group)] += 1;
        }
        let chi = chi_square(&counts, &group.weights);
        assert!(chi < CHI_SQUARE_3, "chi-square {chi}: {counts:?}");
    }

    #[test]
    fn equal_weights_are_ecmp_and_a_flow_stays() {
        let group = Group::of(0..7);
        let mut ecmp = Ecmp::new(&ecmp::Params::default(), &FakeSwitch::new(8, 1).info(0, 0, 1));
        for flow in 0..2_000 {
            let expected = ecmp.choose(&mut FakeSwitch::new(8, 1), &mut packet(flow), &group.hops());
            assert_eq!([0; 2].map(|_| port(&mut wcmp(), flow, &group)), [expected; 2]);
        }
    }
}
