//! Oblivious spraying: every packet takes another entropy, whatever becomes of those before it
//! (Dixit et al., INFOCOM 2013, for packets that a switch sprays; Ultra Ethernet and REPS call it
//! oblivious where the host does).
//!
//! The host knows no paths: it writes a number into the header that switches hash, and trusts that
//! many numbers find all paths. With `order = "permutation"` all numbers come once before any comes
//! again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet};

use super::entropy::{self, Entropies, EntropyFeedback, EntropyNote, Permutation};
use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

/// Parameters of oblivious spraying.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How many entropies a flow has: a power of two, 1 to 65,536. Source: REPS, §2.2: the values
    /// of a UDP source port; `uet-htsim` has 64 unless told otherwise (`-paths`).
    pub entropies: u32,
    /// How they follow each other: `random`, each drawn by itself; `permutation`, all of them once
    /// in an order that is drawn anew for each round. Source: OPS in REPS, §2.2, draws them;
    /// `uet-htsim` has permutations.
    pub order: Order,
}

/// How entropies follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each is drawn by itself.
    #[default]
    Random,
    /// All of them once, then all of them in another order.
    Permutation,
}

impl Default for Params {
    fn default() -> Self {
        Self { entropies: Entropies::ALL, order: Order::Random }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        entropy::check(self.entropies, Entropies::ALL, "a power of two, 1 to 65536")
    }
}

/// Oblivious spraying at one host.
#[derive(Debug, Clone)]
pub struct Oblivious {
    entropies: Entropies,
    order: Order,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    turns: Permutation,
}

impl HostScheme for Oblivious {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo<'_>) -> Self {
        Self { entropies: Entropies::new(params.entropies), order: params.order }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, ..HostHooks::default() }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        if packet.kind != Kind::Data && !entropy::is_acknowledgement(packet.kind) {
            return;
        }
        let entropy = match self.order {
            Order::Random => self.entropies.draw(cx),
            Order::Permutation => flow.turns.next(cx, self.entropies),
        };
        EntropyNote { entropy, fate: EntropyFeedback::Good }.write(packet);
    }

    /// Nothing beside the flows.
    fn state_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::SwitchScheme;
    use crate::switch::ecmp::{self, Ecmp};
    use crate::testing::{CHI_SQUARE_7, FakeHost, FakeSwitch, Group, chi_square, packet, with};

    use super::*;

    /// Which of eight ports ECMP takes for each of so many packets of a flow.
    fn ports(params: &Params, flow: u32, packets: usize) -> Vec<usize> {
        let (mut scheme, mut host) = (Oblivious::new(params, &FakeHost::info(1)), FakeHost::new(1, 1));
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let mut ecmp = Ecmp::new(&ecmp::Params::default(), &switch.info(0, 0, 1));
        let mut state = Flow::default();
        let mut port = || {
            let mut sent = with(packet(flow), |sent| scheme.on_send(&mut host, &mut state, sent));
            ecmp.choose(&mut switch, &mut sent, &group.hops())
        };
        (0..packets).map(|_| port()).collect()
    }

    fn counts(ports: &[usize]) -> [u64; 8] {
        ports.iter().fold([0; 8], |mut counts, &port| {
            counts[port] += 1;
            counts
        })
    }

    #[test]
    fn one_flow_covers_all_paths_evenly() {
        for order in [Order::Random, Order::Permutation] {
            let counts = counts(&ports(&Params { order, ..Params::default() }, 77, 80_000));
            let chi = chi_square(&counts, &[1; 8]);
            assert!(chi < CHI_SQUARE_7, "{order:?}: chi-square {chi}: {counts:?}");
        }
    }

    /// 64 numbers are hashed onto eight ports once and for all, and some port gets more of them
    /// than others.
    #[test]
    fn few_entropies_repeat_what_the_hash_makes_of_them() {
        let params = Params { entropies: 64, order: Order::Permutation };
        let ports = ports(&params, 77, 6_400);
        let rounds: Vec<_> = ports.chunks(64).map(counts).collect();
        assert!(rounds.iter().all(|round| round == &rounds[0]), "every round is the same by ports");
        assert!(rounds[0].iter().any(|&count| count != 8), "and hardly ever even: {:?}", rounds[0]);
    }

    #[test]
    fn acknowledgements_are_sprayed_and_handshakes_and_credits_are_not() {
        let mut scheme = Oblivious::new(&Params::default(), &FakeHost::info(1));
        let (mut host, mut flow) = (FakeHost::new(1, 1), Flow::default());
        let mut is_sprayed = |kind| {
            let entropies = (0..20).map(|_| {
                let sent = with(packet(5), |sent| {
                    sent.kind = kind;
                    scheme.on_send(&mut host, &mut flow, sent);
                });
                sent.entropy
            });
            entropies.collect::<std::collections::BTreeSet<_>>().len() > 1
        };
        for kind in Kind::ALL {
            assert_eq!(is_sprayed(kind), matches!(kind, Kind::Data | Kind::Ack | Kind::Nack), "{kind:?}");
        }
    }

    #[test]
    fn a_number_of_entropies_that_is_no_power_of_two_is_refused() {
        let refused = Params { entropies: 48, ..Params::default() }.validate().unwrap_err();
        assert_eq!(refused.to_string(), "entropies is 48: a power of two, 1 to 65536");
    }
}
