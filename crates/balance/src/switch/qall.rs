//! QALL: egress ports at random, in proportion to how idle their own queues say they are (Liu et
//! al., IEEE TNSM 2024).
//!
//! A port's queue behaviour is its occupancy L, its dequeue interval T and its trend V. It is
//! measured where packets leave the queue; decisions are taken where they enter the switch. From
//! one to the other goes a clone of a packet, at most one in `T_b` for a port, through
//! recirculation, which takes time. A decision knows what clones brought, and nothing else.
//!
//! The world tells when a packet will leave the queue at the moment it is queued. So a clone is
//! worked out then, and kept until it would have come through recirculation: after the packet left,
//! and `recirculation` later. No decision reads it before.

mod egress;
pub(super) mod index;
pub(super) mod params;
pub(super) mod polynomial;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Bytes, Rate, Span, Stream};

use self::egress::{Changed, EgressShared, NEVER, Port};
use self::index::{Formula, Index};
use self::params::{Granularity, Shared, refuse, with_shared_parameters};
use super::flowlets::{Flowlets, Slot};
use crate::flowlet::Timer;
use crate::registry::{FlowletRule, Parameters};
use crate::{
    NextHops, Order, ParameterError, Peer, PortId, Ports, Queued, SwitchContext, SwitchHooks, SwitchInfo,
    SwitchScheme,
};

with_shared_parameters! {
    /// Parameters of QALL.
    {
        /// V of a queue that grows, from `falling` to 255. Source: 2 in QALL §IV-C.
        rising: u8 = 2,
        /// V of a queue that shrinks, from 1. Source: 1 in QALL §IV-C.
        falling: u8 = 1,
    }
}

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        self.shared().flowlets()
    }

    fn order(&self, usual: Order) -> Order {
        self.shared().order(usual)
    }

    fn validate(&self) -> Result<(), ParameterError> {
        if self.falling == 0 {
            return refuse("falling", &self.falling, "1 to 255");
        }
        if self.rising < self.falling {
            return refuse(
                "rising",
                &self.rising,
                "at least `falling`: a queue that grows is the more congested",
            );
        }
        self.shared().validate()
    }
}

/// Bytes of a clone. QALL Fig. 6.
const CLONE_BYTES: u64 = 10;
/// Clones of one port under way at once: what is reserved at least and at most.
const UNDER_WAY: std::ops::RangeInclusive<u64> = 16..=1_024;

/// QALL at one switch.
#[derive(Debug, Clone)]
pub struct Qall {
    ports: Box<[Port]>,
    common: EgressShared,
    /// The flowlet table, unless every packet is chosen for.
    flowlets: Option<Flowlets>,
    decisions: u64,
    uninformed: u64,
    state_age: u64,
}

/// A whole number below `bound`, at least 1: Lemire's multiply-shift on 64 bits.
#[inline]
fn below(random: &mut Stream, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Bytes that a port to another switch holds; 0 for a port to a host, which is no choice of
/// anybody's.
fn watched_bytes(params: &Shared, info: &SwitchInfo<'_>, port: usize) -> u64 {
    match info.port_peers[port] {
        Peer::Host(_) => 0,
        Peer::Switch { .. } => info.port_buffers[port].unwrap_or(params.full_queue).as_u64().max(1),
    }
}

/// How many clones of a port can be under way: those of the packets in the queue and those in
/// recirculation.
fn clones_under_way(params: &Shared, full: u64, rate: Rate) -> u64 {
    let time = rate.service(Bytes::new(full)).as_ps().saturating_add(params.recirculation.as_ps());
    (time / params.update.as_ps().max(1)).saturating_add(2).clamp(*UNDER_WAY.start(), *UNDER_WAY.end())
}

impl Qall {
    /// QALL at one switch, with this congestion index.
    pub(super) fn with_formula(formula: Formula, params: &Shared, info: &SwitchInfo<'_>) -> Self {
        let common = EgressShared {
            index: Box::new(Index::new(formula, params.tau_ticks(), params.floor_percent)),
            update: params.update.as_ps(),
            recirculation: params.recirculation.as_ps(),
            tick: params.tick.as_ps(),
            clones: 0,
            clones_lost: 0,
            decision_delay: 0,
        };
        let port = |port| {
            let full = watched_bytes(params, info, port);
            let rate = info.port_rates[port];
            Port::new(full, rate, clones_under_way(params, full, rate), &common)
        };
        let table = || Flowlets::new(params.entries, Timer::new(params.gap), info);
        Self {
            ports: (0..info.port_peers.len()).map(port).collect(),
            common,
            flowlets: (params.granularity == Granularity::Flowlet).then(table),
            decisions: 0,
            uninformed: 0,
            state_age: 0,
        }
    }

    /// W of a port, as decisions know it: the last clone that came, if a decision looked since.
    pub fn weight(&self, port: PortId) -> u64 {
        self.ports[port.index()].weight
    }

    /// QALL Alg. 2 lines 1 to 5: the grid of weights, and a draw in it.
    #[inline]
    fn draw<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, hops: &NextHops<'_>) -> usize {
        let now = cx.now().as_ps();
        let mut total = 0;
        for &port in hops.ports {
            let state = &mut self.ports[port.index()];
            if now >= state.wake {
                state.refresh(now, &mut self.common);
            }
            total += state.weight;
        }
        let index = if total == 0 {
            // Every port is as congested as can be: no grid is left to draw from.
            cx.random().below(hops.ports.len() as u32) as usize
        } else {
            let mut grid = below(cx.random(), total);
            let mut index = 0;
            // The draw is below the sum, so it ends within the group.
            while let weight = self.ports[hops.ports[index].index()].weight
                && grid >= weight
            {
                grid -= weight;
                index += 1;
            }
            index
        };
        self.decisions += 1;
        match self.ports[hops.ports[index].index()].measured {
            NEVER => self.uninformed += 1,
            measured => self.state_age += now - measured,
        }
        index
    }
}

impl SwitchScheme for Qall {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks { on_enqueued: Ports::ToSwitches, ..SwitchHooks::NONE };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let &Params { rising, falling, .. } = params;
        Self::with_formula(Formula::Product { rising, falling }, &params.shared(), info)
    }

    /// QALL Alg. 1 lines 5 to 10 (routing has found the ports), for flowlets lines 11 to 20
    /// besides.
    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let now = cx.now();
        let Some(slot) = self.flowlets.as_ref().map(|table| table.find(now, packet)) else {
            return self.draw(cx, hops);
        };
        // QALL Alg. 1 lines 11 to 20.
        let current = slot.current().and_then(|port| hops.index_of(port));
        let index = current.unwrap_or_else(|| self.draw(cx, hops));
        if let Some(table) = &mut self.flowlets {
            table.pass(slot, hops.ports[index]);
        }
        index
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let draws = "draws a port, the likelier the idler its queue has been";
        let slot = self.flowlets.as_ref().map(|table| table.find(cx.now(), packet));
        let stays = slot.and_then(Slot::current).is_some_and(|port| hops.index_of(port).is_some());
        Some(if stays { "the flowlet goes on and stays on its port".to_owned() } else { draws.to_owned() })
    }

    #[inline]
    fn on_enqueued<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, _: &mut Packet, queued: Queued) {
        let state = &mut self.ports[queued.port.index()];
        if state.full == 0 {
            return;
        }
        let now = cx.now().as_ps();
        if now >= state.wake {
            state.refresh(now, &mut self.common);
        }
        state.leave(&queued, &mut self.common);
    }

    fn on_port_change<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, port: PortId) {
        let state = &mut self.ports[port.index()];
        if state.full == 0 {
            return;
        }
        let now = cx.now().as_ps();
        if now >= state.wake {
            state.refresh(now, &mut self.common);
        }
        let changed = Changed {
            now,
            rate: cx.rate(port),
            sent: cx.bytes_sent(port),
            drained: now.saturating_add(cx.drain_time(port).as_ps()),
            is_up: cx.is_up(port),
        };
        state.reschedule(changed, &mut self.common);
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        self.common.registers(set);
        for (port, state) in self.ports.iter().enumerate() {
            set("full", port as u32, state.full);
        }
        set("is_by_flowlet", 0, u64::from(self.flowlets.is_some()));
        if let Some(table) = &self.flowlets {
            table.registers(set);
        }
    }

    /// For each port to a switch, at the decision 16 bits of L, 48 of T and 8 of V, as in a clone,
    /// and at the queue two times of 48 bits, the last occupancy of 16 and the trend of 8; eight
    /// bytes an entry of the flowlet table.
    fn state_bytes(&self) -> u64 {
        const PER_PORT: u64 = 9 + 15;
        let ports = self.ports.iter().filter(|port| port.full > 0).count() as u64;
        ports * PER_PORT + self.flowlets.as_ref().map_or(0, Flowlets::state_bytes)
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("decisions", self.decisions);
        count("uninformed_decisions", self.uninformed);
        count("state_age_ns", self.state_age / 1_000);
        count("clones", self.common.clones);
        count("clone_bytes", self.common.clones * CLONE_BYTES);
        count("clones_lost", self.common.clones_lost);
        count("decision_delay_ns", self.common.decision_delay / 1_000);
    }
}
