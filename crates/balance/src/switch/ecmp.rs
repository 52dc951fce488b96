//! ECMP: a flow stays on the path that a hash of its five-tuple picks (RFC 2992).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Purpose, Stream, mix64};

use crate::registry::Parameters;
use crate::{NextHops, Peer, SwitchContext, SwitchInfo, SwitchScheme};

/// Parameters of ECMP.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How switches hash: `per-switch` gives each its own seed; `shared` gives all switches of a
    /// tier the same one; `symmetric` gives one to all switches that a tier of cables joins, so
    /// that both directions of a flow take the same cables, parallel ones included. Source: vendors
    /// ship per-switch seeds against hash polarisation; MaxPass assumes that all share one
    /// function, and that data retraces its credit's path.
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
    /// Cables between two tiers are chosen by the same seed from either end, and by the remainder
    /// of the hash.
    Symmetric,
}

/// ECMP at one switch.
#[derive(Debug, Clone)]
pub struct Ecmp {
    seed: u64,
    symmetric: Option<Box<Symmetric>>,
}

/// State to choose as the switch at the far end of the path does for the other direction.
#[derive(Debug, Clone)]
struct Symmetric {
    /// For each port, which of `seeds` chooses it: the tier of its cable's nearer end.
    cable_tier: Box<[u8]>,
    /// One for each tier up to this switch's own.
    seeds: Box<[u64]>,
}

impl Symmetric {
    fn new(info: &SwitchInfo<'_>) -> Self {
        let tier_of = |peer: &Peer| match *peer {
            Peer::Host(_) => 0,
            Peer::Switch { tier, .. } => tier.min(info.tier),
        };
        Self {
            cable_tier: info.port_peers.iter().map(tier_of).collect(),
            seeds: (0..=info.tier).map(|tier| shared_seed(info.seed, tier)).collect(),
        }
    }

    /// Which of the next hops to take. A leaf that takes cable `h mod (spines x p)` to a spine by p
    /// parallel cables each takes the one numbered `h mod p` of that spine's, and so does the spine
    /// on the way down, since p divides the number of a leaf's uplinks.
    #[inline(never)]
    fn choose(&self, entropy: u32, hops: &NextHops<'_>) -> usize {
        let seed = self.seeds[usize::from(self.cable_tier[hops.ports[0].index()])];
        (mix64(seed ^ u64::from(entropy)) >> 32) as usize % hops.ports.len()
    }
}

/// The seed that the switches of a tier have in common.
fn shared_seed(seed: u64, tier: u8) -> u64 {
    Stream::new(seed, Purpose::SwitchHash, u64::MAX - u64::from(tier)).next_u64()
}

impl Ecmp {
    /// The hash of a five-tuple at this switch.
    #[inline]
    pub fn hash(&self, entropy: u32) -> u32 {
        (mix64(self.seed ^ u64::from(entropy)) >> 32) as u32
    }

    /// Which of the next hops every packet with this entropy takes.
    #[inline]
    fn place(&self, entropy: u32, hops: &NextHops<'_>) -> usize {
        if let Some(symmetric) = &self.symmetric {
            return symmetric.choose(entropy, hops);
        }
        ((u64::from(self.hash(entropy)) * hops.ports.len() as u64) >> 32) as usize
    }
}

impl Parameters for Params {}

impl SwitchScheme for Ecmp {
    type Params = Params;

    const LOOKS_AT_QUEUES: bool = false;
    const IS_STATELESS_HASH: bool = true;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let own = || Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64();
        match params.hash {
            HashSeed::PerSwitch => Self { seed: own(), symmetric: None },
            HashSeed::Shared => Self { seed: shared_seed(info.seed, info.tier), symmetric: None },
            HashSeed::Symmetric => Self {
                seed: shared_seed(info.seed, info.tier),
                symmetric: Some(Box::new(Symmetric::new(info))),
            },
        }
    }

    #[inline]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        _: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        self.place(packet.entropy, hops)
    }

    #[inline]
    fn hash_choice(&self, entropy: u32, hops: &NextHops<'_>) -> Option<usize> {
        Some(self.place(entropy, hops))
    }

    fn explain(&self, _: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let place = self.place(packet.entropy, hops);
        let ports = hops.ports.len();
        Some(format!(
            "the flow's hash {:08x} falls on next hop {place} of {ports}, always",
            self.hash(packet.entropy)
        ))
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("hash_seed", 0, self.seed);
        set("is_symmetric", 0, u64::from(self.symmetric.is_some()));
    }

    fn state_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{CHI_SQUARE_7, FakeSwitch, Group, chi_square, packet, with};

    use super::*;

    fn ecmp(hash: HashSeed, switch: u32, tier: u8) -> Ecmp {
        Ecmp::new(&Params { hash }, &FakeSwitch::new(8, 1).info(switch, tier, 1))
    }

    fn ports(scheme: &mut Ecmp, flows: u32) -> Vec<usize> {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        (0..flows).map(|flow| scheme.choose(&mut switch, &mut packet(flow), &group.hops())).collect()
    }

    #[test]
    fn flows_spread_evenly_even_when_their_entropy_is_consecutive() {
        let mut counts = [0; 8];
        for port in ports(&mut ecmp(HashSeed::PerSwitch, 0, 0), 80_000) {
            counts[port] += 1;
        }
        let chi = chi_square(&counts, &[1; 8]);
        assert!(chi < CHI_SQUARE_7, "chi-square {chi}: {counts:?}");
    }

    #[test]
    fn a_flow_keeps_its_port_whatever_the_queues_and_the_time() {
        let (mut scheme, group) = (ecmp(HashSeed::PerSwitch, 0, 0), Group::of(0..8));
        let mut switch = FakeSwitch::new(8, 1);
        let first = scheme.choose(&mut switch, &mut packet(7), &group.hops());
        for step in 1..100u64 {
            switch.now = weft_units::Time::from_ps(step << 30);
            switch.backlogs[first] = step * 1_500;
            let mut later = with(packet(7), |later| (later.seq, later.wire_bytes) = (step as u32, 64));
            assert_eq!(scheme.choose(&mut switch, &mut later, &group.hops()), first);
        }
    }

    #[test]
    fn the_port_of_a_five_tuple_is_foretold_whatever_the_hash() {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        for hash in [HashSeed::PerSwitch, HashSeed::Shared, HashSeed::Symmetric] {
            let mut scheme = ecmp(hash, 3, 1);
            for flow in 0..64 {
                let mut packet = packet(flow);
                let foretold = scheme.hash_choice(packet.entropy, &group.hops());
                assert_eq!(foretold, Some(scheme.choose(&mut switch, &mut packet, &group.hops())));
            }
        }
    }

    #[test]
    fn a_shared_seed_is_shared_within_a_tier_and_no_further() {
        let [a, b, c] =
            [(3, 0), (9, 0), (3, 1)].map(|(s, tier)| ports(&mut ecmp(HashSeed::Shared, s, tier), 64));
        assert_eq!(a, b);
        assert_ne!(a, c, "two tiers with one hash would polarise");
    }

    #[test]
    fn per_switch_seeds_do_not_polarise() {
        // Of the flows that one switch puts on port 0, another must use every port.
        let [a, b] = [1, 2].map(|switch| ports(&mut ecmp(HashSeed::PerSwitch, switch, 0), 16_000));
        let mut counts = [0; 8];
        for (_, &port) in a.iter().zip(&b).filter(|&(&first, _)| first == 0) {
            counts[port] += 1;
        }
        let chi = chi_square(&counts, &[1; 8]);
        assert!(chi < CHI_SQUARE_7, "chi-square {chi}: {counts:?}");
    }
}
