//! Which way acknowledgements take: the scheme's, like all packets, or that of ECMP.
//!
//! They have no payload, and follow each other as their data arrived: where a scheme remembers what
//! it chose, or counts what passes, they are part of that unless they go by themselves. A switch
//! reads in the header what a packet is: TCP's flags and length, or the opcode of RDMA.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Kinds, Packet};

use crate::switch::ecmp::{self, Ecmp};
use crate::{NextHops, SwitchContext, SwitchInfo, SwitchScheme};

/// Which way acknowledgements, complaints and notifications take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgements {
    /// The scheme's: they are packets like others.
    #[default]
    Balanced,
    /// The path of ECMP: the scheme never sees them.
    Ecmp,
}

/// Packet kinds that answer data and carry no payload.
const ANSWERS: Kinds = Kinds::of(&[Kind::Ack, Kind::SynAck, Kind::Nack, Kind::Cnp]);

impl Acknowledgements {
    /// The packets that a scheme leaves to ECMP.
    pub const fn by_ecmp(self) -> Kinds {
        match self {
            Self::Balanced => Kinds::NONE,
            Self::Ecmp => ANSWERS,
        }
    }
}

/// ECMP for the packets that a scheme leaves to it.
#[derive(Debug, Clone)]
pub struct Aside {
    kinds: Kinds,
    ecmp: Ecmp,
}

impl Aside {
    /// ECMP at one switch.
    pub fn new(acknowledgements: Acknowledgements, info: &SwitchInfo<'_>) -> Self {
        Self { kinds: acknowledgements.by_ecmp(), ecmp: Ecmp::new(&ecmp::Params::default(), info) }
    }

    /// The next hop of a packet that the scheme does not choose for.
    #[inline]
    pub fn hop(&self, packet: &Packet, hops: &NextHops<'_>) -> Option<usize> {
        if self.kinds.has(packet.kind) { self.ecmp.hash_choice(packet.entropy, hops) } else { None }
    }

    /// Why such a packet goes as it does.
    pub fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        if self.kinds.has(packet.kind) { self.ecmp.explain(cx, packet, hops) } else { None }
    }

    /// Registers that a controller writes into the switch for it: see [`SwitchScheme::registers`].
    pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("acknowledges_by_ecmp", 0, u64::from(!self.kinds.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use crate::SchemeSpec;
    use crate::testing::{FakeSwitch, Group, packet, with};

    use super::*;

    /// The schemes that have the parameter, with and without it: two at one switch of eight ports.
    fn schemes(name: &str, world: &FakeSwitch) -> [crate::AnySwitchScheme; 2] {
        ["balanced", "ecmp"].map(|which| {
            let spec = serde_json::json!({ "name": name, "acknowledgements": which });
            let spec: SchemeSpec = serde_json::from_value(spec).expect("a valid spec");
            spec.switch_scheme(&world.info(0, 0, 1))
        })
    }

    const NAMES: [&str; 3] = ["drill", "letflow", "conga"];

    /// Where packets of this kind go, one for each of 64 flows, each a flowlet of its own.
    fn ports(scheme: &mut crate::AnySwitchScheme, world: &mut FakeSwitch, kind: Kind) -> Vec<usize> {
        let group = Group::of(0..8);
        let choose = |flow: u32| {
            world.now += Span::from_ms(20);
            scheme.choose(world, &mut with(packet(flow), |packet| packet.kind = kind), &group.hops())
        };
        (0..64).map(choose).collect()
    }

    #[test]
    fn answers_take_the_port_of_their_hash_and_data_does_not() {
        let mut world = FakeSwitch::new(8, 1);
        // Port 5 is empty, and the hash knows nothing of it.
        world.backlogs = vec![90_000; 8];
        world.backlogs[5] = 0;
        let ecmp = Ecmp::new(&ecmp::Params::default(), &world.info(0, 0, 1));
        let group = Group::of(0..8);
        let hashed: Vec<usize> = (0..64)
            .map(|flow| ecmp.hash_choice(packet(flow).entropy, &group.hops()).expect("a hash"))
            .collect();
        for name in NAMES {
            let [_, mut scheme] = schemes(name, &world);
            for kind in [Kind::Ack, Kind::SynAck, Kind::Nack, Kind::Cnp] {
                assert_eq!(ports(&mut scheme, &mut world, kind), hashed, "{name}: {kind:?}");
            }
            for kind in [Kind::Data, Kind::Syn, Kind::Trimmed] {
                assert_ne!(ports(&mut scheme, &mut world, kind), hashed, "{name}: {kind:?}");
            }
        }
        let [_, mut drill] = schemes("drill", &world);
        let data = ports(&mut drill, &mut world, Kind::Data);
        assert!(data[40..].iter().all(|&port| port == 5), "the empty port is found and kept: {data:?}");
        assert!(ports(&mut drill, &mut world, Kind::Ack).iter().any(|&port| port != 5));
    }

    #[test]
    fn what_goes_by_ecmp_draws_nothing_and_leaves_no_trace_in_the_scheme() {
        for name in NAMES {
            let mut alone = FakeSwitch::new(8, 1);
            let [_, mut scheme] = schemes(name, &alone);
            let expected = [0; 2].map(|_| ports(&mut scheme, &mut alone, Kind::Data));
            let mut mixed = FakeSwitch::new(8, 1);
            let [_, mut scheme] = schemes(name, &mixed);
            let first = ports(&mut scheme, &mut mixed, Kind::Data);
            let now = mixed.now;
            ports(&mut scheme, &mut mixed, Kind::Ack);
            mixed.now = now;
            assert_eq!([first, ports(&mut scheme, &mut mixed, Kind::Data)], expected, "{name}");
        }
    }

    #[test]
    fn by_default_an_answer_is_a_packet_like_others() {
        for name in NAMES {
            let worlds = [(); 2].map(|()| FakeSwitch::new(8, 1));
            let [data, acks] = [Kind::Data, Kind::Ack].map(|kind| {
                let mut world = worlds[0].clone();
                let [mut scheme, _] = schemes(name, &world);
                ports(&mut scheme, &mut world, kind)
            });
            assert_eq!(data, acks, "{name}");
            let spec: SchemeSpec =
                serde_json::from_value(serde_json::json!({ "name": name })).expect("a valid spec");
            assert_eq!(serde_json::to_value(spec).expect("plain data")["acknowledgements"], "balanced");
        }
    }
}
