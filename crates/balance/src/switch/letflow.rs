//! LetFlow: a flow may change its path after a pause, and then takes any (Vanini et al., NSDI
//! 2017).
//!
//! A flowlet is a burst of a flow's packets with no pause longer than `gap` between them. The
//! packets of a flowlet follow its first one; the first one takes a next hop at random. Flowlets
//! grow long on fast paths and are cut short on congested ones: that alone moves traffic to where
//! there is room.
//!
//! As in hardware, a switch keeps a table of fixed size, indexed by a hash of the five-tuple and
//! without the tuple itself. Flows that meet in an entry share it: each keeps the other's flowlet
//! alive, and they follow one port as long as it leads to both their destinations. A port that is
//! no next hop (it failed, or another flow left it in the entry) ends the flowlet. Acknowledgements
//! and every other packet count alike, unless they go by ECMP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::Span;

use super::flowlets::{self, Flowlets};
use crate::acknowledgements::{Acknowledgements, Aside};
use crate::flowlet::Timer;
use crate::registry::{FlowletRule, Parameters};
use crate::{NextHops, ParameterError, SwitchContext, SwitchInfo, SwitchScheme};

/// Parameters of LetFlow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The longest pause inside a flowlet (time). A pause of exactly this length does not end it.
    /// Source: 500 us in TR (which cites LetFlow) and MEET; a public port to 100 Gbit/s uses 100
    /// us.
    pub gap: Span,
    /// Entries of a switch's flowlet table: a power of two, 1 to 16,777,216. Source: 64K entries in
    /// CONGA's leaf switches (recalled, not checked against the paper); a public ns-3 port has no
    /// limit.
    pub entries: u32,
    /// Which way acknowledgements, NACKs and CNPs take: `balanced`, as the scheme chooses for every
    /// packet; `ecmp`, by the hash of their five-tuple. Source: a choice; the authors' ns-3 code of
    /// ConWeave has all its load balancers steer data only, and hashes the rest.
    pub acknowledgements: Acknowledgements,
}

impl Default for Params {
    fn default() -> Self {
        Self { gap: Span::from_us(500), entries: 1 << 16, acknowledgements: Acknowledgements::Balanced }
    }
}

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        Some(FlowletRule { gap: self.gap, is_blind: true })
    }

    fn validate(&self) -> Result<(), ParameterError> {
        flowlets::validate(self.entries, self.gap, "longer than nothing (for a choice a packet, use rps)")
    }
}

/// LetFlow at one switch.
#[derive(Debug, Clone)]
pub struct LetFlow {
    aside: Aside,
    flowlets: Flowlets,
    decisions: u64,
}

impl SwitchScheme for LetFlow {
    type Params = Params;

    const LOOKS_AT_QUEUES: bool = false;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        Self {
            aside: Aside::new(params.acknowledgements, info),
            flowlets: Flowlets::new(params.entries, Timer::new(params.gap), info),
            decisions: 0,
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        if let Some(hop) = self.aside.hop(packet, hops) {
            return hop;
        }
        let slot = self.flowlets.find(cx.now(), packet);
        let index = slot.current().and_then(|port| hops.index_of(port)).unwrap_or_else(|| {
            self.decisions += 1;
            cx.random().below(hops.ports.len() as u32) as usize
        });
        self.flowlets.pass(slot, hops.ports[index]);
        index
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let aside = self.aside.explain(cx, packet, hops);
        aside.or_else(|| Some(self.flowlets.explain(cx.now(), packet, hops, "draws one of")))
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        self.flowlets.registers(set);
        self.aside.registers(set);
    }

    fn state_bytes(&self) -> u64 {
        self.flowlets.state_bytes()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("flowlets", self.decisions);
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Time;

    use crate::testing::{CHI_SQUARE_7, FakeSwitch, Group, chi_square, packet};

    use super::*;

    const GAP: Span = Span::from_us(500);

    fn letflow(entries: u32) -> LetFlow {
        LetFlow::new(&Params { gap: GAP, entries, ..Params::default() }, &FakeSwitch::new(8, 1).info(0, 0, 1))
    }

    #[test]
    fn a_flow_stays_while_its_pauses_are_no_longer_than_the_gap() {
        // Starts in different places of a tick: exactly `gap` always stays, two ticks more never
        // do.
        for start in [0, 1, 512, 1_023, 987_654_321] {
            let (mut scheme, mut switch, group) = (letflow(1 << 10), FakeSwitch::new(8, 1), Group::of(0..8));
            switch.now = Time::from_ps(start);
            let first = scheme.choose(&mut switch, &mut packet(1), &group.hops());
            for _ in 0..200 {
                switch.now += GAP;
                assert_eq!(scheme.choose(&mut switch, &mut packet(1), &group.hops()), first);
            }
            assert_eq!(scheme.decisions, 1);
            switch.now += GAP + Span::from_ps(2 * 1_024);
            scheme.choose(&mut switch, &mut packet(1), &group.hops());
            assert_eq!(scheme.decisions, 2);
        }
    }

    #[test]
    fn each_flowlet_chooses_anew_and_evenly() {
        let (mut scheme, mut switch, group) = (letflow(1 << 10), FakeSwitch::new(8, 1), Group::of(0..8));
        let mut counts = [0; 8];
        for _ in 0..80_000 {
            switch.now += GAP * 2;
            counts[scheme.choose(&mut switch, &mut packet(1), &group.hops())] += 1;
        }
        let chi = chi_square(&counts, &[1; 8]);
        assert!(chi < CHI_SQUARE_7, "chi-square {chi}: {counts:?}");
    }

    #[test]
    fn a_flowlet_is_bound_to_a_port_not_to_a_place_in_the_group() {
        let (mut scheme, mut switch, all) = (letflow(1 << 10), FakeSwitch::new(8, 1), Group::of(0..8));
        let port = all.ports[scheme.choose(&mut switch, &mut packet(1), &all.hops())];
        let some = Group::of((0..8).filter(|&p| p == port.0 || p % 2 == 1));
        let index = scheme.choose(&mut switch, &mut packet(1), &some.hops());
        assert_eq!(some.ports[index], port, "another port failed: the flowlet stays");
        let others = Group::of((0..8).filter(|&p| p != port.0));
        let moved = others.ports[scheme.choose(&mut switch, &mut packet(1), &others.hops())];
        assert_eq!(scheme.decisions, 2, "its own port failed: a new flowlet");
        let back = all.ports[scheme.choose(&mut switch, &mut packet(1), &all.hops())];
        assert_eq!(back, moved, "the port that came back does not draw the flowlet");
    }

    #[test]
    fn flows_that_share_an_entry_share_the_flowlet() {
        let (mut scheme, mut switch, group) = (letflow(1), FakeSwitch::new(8, 1), Group::of(0..8));
        let first = scheme.choose(&mut switch, &mut packet(1), &group.hops());
        for flow in 2..50 {
            assert_eq!(scheme.choose(&mut switch, &mut packet(flow), &group.hops()), first);
        }
        assert_eq!((scheme.decisions, scheme.state_bytes()), (1, 8));
    }

    #[test]
    fn a_table_that_is_no_power_of_two_is_refused() {
        let refused = Params { entries: 1_000, ..Params::default() }.validate().unwrap_err();
        assert_eq!(refused.to_string(), "entries is 1000: a power of two, 1 to 16777216");
        assert_eq!(Params { gap: Span::ZERO, ..Params::default() }.validate().unwrap_err().key, "gap");
    }
}
