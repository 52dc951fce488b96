//! Ofan: destination-based rotation in switches. Packets to one destination take all ways in turn
//! (McClure et al., "Load balancing for AI training workloads", arXiv 2507.21372 v2).
//!
//! A round robin over ports alone fills uplinks evenly, and yet may send all packets to one rack
//! over one spine, where they meet again. So a switch keeps a pointer for each destination, and for
//! packets of each size by themselves: data and what is small. An edge switch has one for each
//! other edge switch; a switch above has one for each pod, for the racks of a pod share the
//! switches that they are reached by. Each pointer begins anywhere and has an order of its own,
//! lest pointers march in step.
//!
//! The order of a pointer is `start + n x stride`, where the stride has no divisor in common with
//! the number of ports: of the orders of n ports, n x phi(n) are such.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::Bytes;

use crate::registry::Parameters;
use crate::{NextHops, ParameterError, Peer, SwitchContext, SwitchInfo, SwitchScheme};

/// Parameters of Ofan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Packets of fewer bytes have pointers of their own (size); with 0B all packets share one.
    /// Source: §7.3: two classes, data and acknowledgements, which are 4,158 and 64 bytes there;
    /// what is between them is open.
    pub small: Bytes,
    /// Whose pointers are one, above edge switches: `pod`, those of all racks of a pod; `rack`,
    /// none. Source: §7.2, for each pod.
    pub merge: Merge,
}

/// Whose pointers are one, above edge switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// One set for as many racks, by number, as the switch has edge switches below it.
    #[default]
    Pod,
    /// None: each rack has its own.
    Rack,
}

impl Default for Params {
    fn default() -> Self {
        Self { small: Bytes::new(128), merge: Merge::Pod }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if self.small.as_u64() > u16::MAX.into() {
            let found = format!("{}B", self.small.as_u64());
            return Err(ParameterError { key: "small", found, allowed: "at most 65535B" });
        }
        Ok(())
    }
}

/// Where the packets to one destination go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pointer {
    /// The place in the group that the next packet takes.
    place: u16,
    /// How far it moves then.
    stride: u16,
    /// For a group of so many ports; 0 before the first packet.
    ports: u16,
}

impl Pointer {
    /// The place whose turn it is.
    #[inline]
    fn next<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, ports: u16) -> u16 {
        if self.ports != ports {
            *self = Self::begin(cx, ports);
        }
        let place = self.place;
        let next = u32::from(place) + u32::from(self.stride);
        self.place = if next >= u32::from(ports) { (next - u32::from(ports)) as u16 } else { next as u16 };
        place
    }

    /// Begins anywhere, in any order.
    #[cold]
    fn begin<C: SwitchContext + ?Sized>(cx: &mut C, ports: u16) -> Self {
        let place = cx.random().below(ports.into()) as u16;
        let strides = (1..ports).filter(|&stride| gcd(stride, ports) == 1);
        let draw = cx.random().below(strides.clone().count().max(1) as u32) as usize;
        Self { place, stride: strides.clone().nth(draw).unwrap_or_default(), ports }
    }
}

const fn gcd(mut a: u16, mut b: u16) -> u16 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Ofan at one switch.
#[derive(Debug, Clone)]
pub struct Ofan {
    small: u16,
    /// Racks that share a pointer.
    racks: u16,
    /// By destination, those of small packets and of others.
    pointers: Box<[[Pointer; 2]]>,
}

impl SwitchScheme for Ofan {
    type Params = Params;

    const LOOKS_AT_QUEUES: bool = false;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let racks = if params.merge == Merge::Pod { edge_switches_below(info).max(1) } else { 1 };
        let pointers = usize::from(info.racks).div_ceil(racks.into());
        Self {
            small: params.small.as_u64() as u16,
            racks,
            pointers: vec![[Pointer::default(); 2]; pointers].into_boxed_slice(),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let destination = usize::from(hops.rack / self.racks);
        let class = usize::from(packet.wire_bytes >= self.small);
        self.pointers[destination][class].next(cx, hops.ports.len() as u16).into()
    }

    fn explain(&self, _: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let class = usize::from(packet.wire_bytes >= self.small);
        let pointer = self.pointers[usize::from(hops.rack / self.racks)][class];
        let ports = hops.ports.len();
        if usize::from(pointer.ports) != ports {
            return Some(format!("the first to its destination, draws where to begin among {ports} ports"));
        }
        Some(format!("the next in turn to its destination: next hop {} of {ports}", pointer.place))
    }

    /// Six bytes a pointer.
    fn state_bytes(&self) -> u64 {
        self.pointers.len() as u64 * 2 * 6
    }
}

/// How many edge switches hang at a switch; none at an edge switch.
fn edge_switches_below(info: &SwitchInfo<'_>) -> u16 {
    let mut below: Vec<u32> = info
        .port_peers
        .iter()
        .filter_map(|peer| match *peer {
            Peer::Switch { switch, tier: 0 } if info.tier > 0 => Some(switch),
            _ => None,
        })
        .collect();
    below.sort_unstable();
    below.dedup();
    below.len() as u16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::PortId;
    use crate::testing::{FakeSwitch, Group, packet, with};

    use super::*;

    fn to(rack: u16, ports: std::ops::Range<u16>) -> Group {
        Group { rack, ..Group::of(ports) }
    }

    fn choose(ofan: &mut Ofan, switch: &mut FakeSwitch, group: &Group) -> usize {
        ofan.choose(switch, &mut packet(1), &group.hops())
    }

    #[test]
    fn packets_to_a_rack_take_every_port_once_a_round_whatever_goes_to_others() {
        for ports in [2u16, 3, 5, 6, 8, 12] {
            let mut switch = FakeSwitch::new(12, 9);
            let mut ofan = Ofan::new(&Params::default(), &switch.info(0, 0, 1));
            let (one, other) = (to(1, 0..ports), to(2, 0..ports));
            let taken: Vec<usize> = (0..usize::from(ports) * 6)
                .map(|step| {
                    if step % 3 == 0 {
                        choose(&mut ofan, &mut switch, &other);
                    }
                    choose(&mut ofan, &mut switch, &one)
                })
                .collect();
            for round in taken.chunks(ports.into()) {
                assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), usize::from(ports), "{taken:?}");
            }
        }
    }

    #[test]
    fn pointers_begin_anywhere_and_have_orders_of_their_own() {
        let rounds: BTreeSet<Vec<usize>> = (0..200)
            .map(|seed| {
                let mut switch = FakeSwitch::new(8, seed);
                let mut ofan = Ofan::new(&Params::default(), &switch.info(0, 0, 1));
                (0..8).map(|_| choose(&mut ofan, &mut switch, &to(1, 0..8))).collect()
            })
            .collect();
        // Eight places to begin at, strides of 1, 3, 5 and 7.
        assert_eq!(rounds.len(), 32);
    }

    #[test]
    fn small_packets_have_turns_of_their_own() {
        let order = |small| {
            let mut switch = FakeSwitch::new(8, 3);
            let mut ofan = Ofan::new(&Params { small, ..Params::default() }, &switch.info(0, 0, 1));
            let group = to(1, 0..8);
            let mut data = Vec::new();
            for _ in 0..8 {
                data.push(choose(&mut ofan, &mut switch, &group));
                ofan.choose(&mut switch, &mut with(packet(1), |ack| ack.wire_bytes = 64), &group.hops());
            }
            data.into_iter().collect::<BTreeSet<_>>().len()
        };
        assert_eq!(order(Bytes::new(128)), 8, "acknowledgements take no turn of data");
        assert!(order(Bytes::ZERO) < 8, "they do if they share a pointer");
    }

    /// At a switch above two edge switches racks 2 and 3 are a pod, and share turns; at an edge
    /// switch they do not.
    #[test]
    fn racks_of_a_pod_share_a_pointer_above_edge_switches() {
        let share_with = |seed, tier: u8, merge| {
            let mut switch = FakeSwitch::new(8, seed);
            switch.peers = (0..8)
                .map(|port| Peer::Switch {
                    switch: port,
                    tier: if port < 2 { tier.saturating_sub(1) } else { tier + 1 },
                })
                .collect();
            let mut ofan = Ofan::new(&Params { merge, ..Params::default() }, &switch.info(0, tier, 1));
            let taken: BTreeSet<usize> =
                (0..6).map(|step| choose(&mut ofan, &mut switch, &to(2 + step % 2, 2..8))).collect();
            taken.len() == 6
        };
        let shares = |tier, merge| (0..40).all(|seed| share_with(seed, tier, merge));
        assert!(shares(1, Merge::Pod));
        // Two pointers of three turns each, drawn apart, mostly meet somewhere.
        assert!(!shares(0, Merge::Pod) && !shares(1, Merge::Rack));
    }

    #[test]
    fn a_port_fewer_or_more_begins_a_new_round_over_those_that_are() {
        let mut switch = FakeSwitch::new(8, 5);
        let mut ofan = Ofan::new(&Params::default(), &switch.info(0, 0, 1));
        (0..5).for_each(|_| {
            choose(&mut ofan, &mut switch, &to(1, 0..8));
        });
        let fewer = Group::of([0, 1, 2, 4, 5, 6, 7]);
        let taken: BTreeSet<PortId> =
            (0..7).map(|_| fewer.ports[choose(&mut ofan, &mut switch, &fewer)]).collect();
        assert_eq!(taken.len(), 7);
    }

    #[test]
    fn a_size_that_no_packet_has_is_refused() {
        let refused = Params { small: Bytes::from_kb(100), ..Params::default() }.validate().unwrap_err();
        assert_eq!(refused.to_string(), "small is 100000B: at most 65535B");
    }
}
