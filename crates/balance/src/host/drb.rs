//! DRB: digit-reversal bouncing. Packets go over all paths in turn, in an order whose neighbours
//! part as early as they can (Cao et al., `CoNEXT` 2013).
//!
//! The paths to a destination are numbered by the choices on the way up, as the digits of a
//! mixed-radix number. If the last choice varied fastest, consecutive packets would share their
//! first links. DRB reverses the digits: the choice at the source's edge switch varies fastest, so
//! that two consecutive packets leave it by different ports, and a run of packets fills the
//! switches above evenly. An explicit [`Route`] is written in that order already: a switch with n
//! choices takes `label % n` and passes on `label / n`, so its first digit is the edge switch's
//! choice. Counting the label up by one is digit reversal:
//!
//! ```text
//! label  0  1  2  3  4  5      2 choices at the edge switch, 3 at the next
//! edge   0  1  0  1  0  1      label % 2
//! next   0  0  1  1  2  2      label / 2
//! ```
//!
//! The first label is drawn at random, so that hosts do not march in step. Every packet counts,
//! acknowledgements too. The receiver's resequencing is not modelled here: reordered packets reach
//! the transport as they come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Packet, Route};

use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme};

/// Parameters of DRB.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Packets that take turns together: `rack`, all packets of a host to one rack; `flow`, the
    /// packets of each flow by themselves. Source: one counter for each destination in DRB; a
    /// public port has both and defaults to `flow`.
    pub turns: Turns,
}

/// Packets that take turns together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// All packets of a host to one rack: the hosts of a rack are reached by the same paths.
    #[default]
    Rack,
    /// The packets of each flow.
    Flow,
}

impl Parameters for Params {}

/// Where a turn has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
struct Turn(u16);

impl Default for Turn {
    fn default() -> Self {
        Self::NOT_BEGUN
    }
}

impl Turn {
    const NOT_BEGUN: Self = Self(u16::MAX);

    /// The next label below `routes`. The first is random; past the last one (or when there are
    /// fewer than before) it begins from 0 again.
    #[inline]
    fn next<C: HostContext + ?Sized>(&mut self, cx: &mut C, routes: u16) -> u16 {
        let label = match *self {
            Self::NOT_BEGUN => cx.random().below(u32::from(routes)) as u16,
            Self(label) if label < routes => label,
            Self(_) => 0,
        };
        self.0 = label + 1;
        label
    }
}

/// DRB at one host.
#[derive(Debug, Clone)]
pub struct Drb {
    turns: Turns,
    /// By rack; empty if flows take their own turns.
    racks: Box<[Turn]>,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    turn: Turn,
}

impl HostScheme for Drb {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        let racks = if params.turns == Turns::Rack { usize::from(info.racks) } else { 0 };
        Self { turns: params.turns, racks: vec![Turn::NOT_BEGUN; racks].into_boxed_slice() }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, ..HostHooks::default() }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let routes = cx.routes_to(packet.dst);
        if routes < 2 {
            return;
        }
        let turn = match self.turns {
            Turns::Rack => &mut self.racks[usize::from(cx.rack_of(packet.dst))],
            Turns::Flow => &mut flow.turn,
        };
        packet.route = Route::label(turn.next(cx, routes));
    }

    /// Two bytes a rack.
    fn state_bytes(&self) -> u64 {
        self.racks.len() as u64 * 2
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weft_packet::HostId;

    use crate::testing::{FakeHost, HOSTS_PER_RACK, packet, with};

    use super::*;

    fn drb(turns: Turns) -> Drb {
        Drb::new(&Params { turns }, &FakeHost::info(1))
    }

    /// The choices of a packet at two switches with this many next hops each.
    fn digits(scheme: &mut Drb, host: &mut FakeHost, flow: &mut Flow, choices: [usize; 2]) -> [usize; 2] {
        let mut sent = packet(1);
        scheme.on_send(host, flow, &mut sent);
        choices.map(|n| sent.route.next_hop(n).expect("a route is set"))
    }

    #[test]
    fn every_path_once_a_cycle_and_neighbours_part_at_the_edge_switch() {
        for choices in [[4, 3], [2, 8], [8, 1]] {
            let routes = choices[0] * choices[1];
            let (mut scheme, mut host) = (drb(Turns::Rack), FakeHost::new(routes as u16, 9));
            let paths: Vec<_> = (0..routes * 3)
                .map(|_| digits(&mut scheme, &mut host, &mut Flow::default(), choices))
                .collect();
            for cycle in paths.chunks(routes) {
                assert_eq!(cycle.iter().collect::<BTreeSet<_>>().len(), routes, "{choices:?}");
            }
            assert!(paths.windows(2).all(|pair| pair[0][0] != pair[1][0]), "{choices:?}");
        }
    }

    #[test]
    fn hosts_start_anywhere() {
        let first =
            |seed| digits(&mut drb(Turns::Rack), &mut FakeHost::new(12, seed), &mut Flow::default(), [4, 3]);
        assert_eq!((0..400).map(first).collect::<BTreeSet<_>>().len(), 12);
    }

    #[test]
    fn a_turn_is_shared_by_rack_or_kept_by_flow() {
        // Three flows take one packet each, four times: by rack the labels run on, by flow each
        // flow's own do.
        let labels = |turns| {
            let (mut scheme, mut host) = (drb(turns), FakeHost::new(8, 1));
            let mut flows: [Flow; 3] = Default::default();
            (0..12).map(|n| digits(&mut scheme, &mut host, &mut flows[n % 3], [8, 1])[0]).collect::<Vec<_>>()
        };
        assert!(labels(Turns::Rack).windows(2).all(|pair| pair[1] == (pair[0] + 1) % 8));
        assert!(labels(Turns::Flow).windows(4).all(|four| four[3] == (four[0] + 1) % 8));
    }

    #[test]
    fn racks_take_separate_turns_and_the_own_rack_needs_none() {
        let (mut scheme, mut host) = (drb(Turns::Rack), FakeHost::new(8, 1));
        let mut send = |dst: u16| {
            let mut sent = with(packet(1), |sent| sent.dst = HostId(dst));
            scheme.on_send(&mut host, &mut Flow::default(), &mut sent);
            sent.route.next_hop(8)
        };
        let (first, _, third) = (send(HOSTS_PER_RACK), send(HOSTS_PER_RACK * 2), send(HOSTS_PER_RACK + 3));
        assert_eq!(third, first.map(|label| (label + 1) % 8), "another host of the rack takes the next turn");
        assert_eq!(send(3), None);
    }

    #[test]
    fn fewer_routes_than_before_are_all_used() {
        let (mut scheme, mut host) = (drb(Turns::Rack), FakeHost::new(12, 1));
        for _ in 0..12 {
            digits(&mut scheme, &mut host, &mut Flow::default(), [12, 1]);
        }
        host.routes = 3;
        let seen: BTreeSet<_> =
            (0..3).map(|_| digits(&mut scheme, &mut host, &mut Flow::default(), [3, 1])).collect();
        assert_eq!(seen.len(), 3);
    }
}
