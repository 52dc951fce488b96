//! QALL: egress ports at random, in proportion to how idle their own queues say they are (Liu et al., IEEE TNSM 2024).
//!
//! A port's queue behaviour is its occupancy L, its dequeue interval T and its trend V. It is measured where packets
//! leave the queue; decisions are taken where they enter the switch. From one to the other goes a clone of a packet, at
//! most one in `T_b` for a port, through recirculation, which takes time. A decision knows what clones brought, and
//! nothing else.
//!
//! The world tells when a packet will leave the queue at the moment it is queued. So a clone is worked out then, and kept
//! until it would have come through recirculation: after the packet left, and `recirculation` later. No decision reads it
//! before.

mod egress;
mod index;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Bytes, Purpose, Rate, Span, Stream, mix64};

use self::egress::{Common, NEVER, Offered, Port};
use self::index::{Form, Index};
use super::letflow::Entry;
use crate::registry::Parameters;
use crate::{NextHops, ParameterError, Peer, PortId, SwitchBalancer, SwitchContext, SwitchHooks, SwitchInfo};

/// Parameters of QALL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// What is chosen for: every `packet` (QALL-Pkt) or every `flowlet` (QALL-Flowlet). Source: QALL, Algorithm 1; the
    /// default is what the paper finds best.
    pub granularity: Granularity,
    /// `T_inter`: the longest pause inside a flowlet (time), with `granularity = "flowlet"`. Source: 10 ms in QALL, section
    /// IV-B, which says the order of the end-to-end delay.
    pub gap: Span,
    /// Entries of a switch's flowlet table, with `granularity = "flowlet"`: a power of two, 1 to 16,777,216. Source: not
    /// in QALL; as `letflow`.
    pub entries: u32,
    /// `T_b`: a port's queue behaviour is sent to the decision by a packet that leaves the queue longer than this after
    /// the last such packet (time). Source: 1 ms in QALL, section IV-E; from 10 us to 100 ms in its Fig. 19.
    pub update: Span,
    /// From a clone's leaving the queue until decisions read it (time). Source: 0.615 ms on `BMv2` in QALL, Table II.
    pub recirculation: Span,
    /// The congestion index: `product` (equation 4), `linear`, `poly2`, `poly3` (equations 11 to 13) or
    /// `poly3-from-eq10`, in which a coefficient that equation 13 gives as 188 is 1887. Source: QALL, sections IV-C and V.
    pub form: Form,
    /// Whole coefficients in place of the published ones: 3 for `linear` (1, L, T), 6 for `poly2` (and L², LT, T²), 10
    /// for `poly3` (and L³, L²T, LT², T³), each from -1,000,000 to 1,000,000; or none. L and T are from 0 to 1. Source:
    /// QALL, section VII-A, which fits anew for each traffic.
    pub coefficients: Vec<i32>,
    /// V of a queue that grows, from `falling` to 255. Source: 2 in QALL, section IV-C.
    pub rising: u8,
    /// V of a queue that shrinks, from 1. Source: 1 in QALL, section IV-C.
    pub falling: u8,
    /// tau: a longer dequeue interval counts as this (time); up to 1,048,576 ticks. Source: 10 ms in QALL, section IV-C,
    /// which says the order of the end-to-end delay.
    pub time_constant: Span,
    /// What dequeue intervals are counted in (time): whole ticks, rounded down. Source: 1 us in QALL, section IV-C.
    pub tick: Span,
    /// The queue that counts as full at ports whose buffer has no limit (size). Source: not in QALL; the default is the
    /// order of 250 full-size packets.
    pub full_queue: Bytes,
    /// The smallest weight of a port, in percent of the largest: 0 to 100. Source: none in QALL, so 0; see the scheme's
    /// page for what a weight of zero does to a port.
    pub floor_percent: u8,
}

/// What is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Every packet.
    #[default]
    Packet,
    /// Every flowlet.
    Flowlet,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            granularity: Granularity::Packet,
            gap: Span::from_ms(10),
            entries: 1 << 16,
            update: Span::from_ms(1),
            recirculation: Span::from_us(615),
            form: Form::Product,
            coefficients: Vec::new(),
            rising: 2,
            falling: 1,
            time_constant: Span::from_ms(10),
            tick: Span::from_us(1),
            full_queue: Bytes::from_kb(375),
            floor_percent: 0,
        }
    }
}

/// The most ticks in the time constant.
const MAX_TAU_TICKS: u64 = 1 << 20;
/// The largest coefficient, and the smallest with its sign changed.
const MAX_COEFFICIENT: u32 = 1_000_000;

impl Params {
    /// tau in ticks.
    fn tau_ticks(&self) -> u64 {
        self.time_constant.as_ps() / self.tick.as_ps().max(1)
    }
}

fn refuse(key: &'static str, found: &dyn ToString, allowed: &'static str) -> Result<(), ParameterError> {
    Err(ParameterError { key, found: found.to_string(), allowed })
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if self.gap.is_zero() {
            return refuse(
                "gap",
                &self.gap,
                "longer than nothing (for a choice a packet: granularity = \"packet\")",
            );
        }
        if !self.entries.is_power_of_two() || self.entries > 1 << 24 {
            return refuse("entries", &self.entries, "a power of two, 1 to 16777216");
        }
        if self.update.is_zero() {
            return refuse("update", &self.update, "longer than nothing");
        }
        if !self.coefficients.is_empty() && self.coefficients.len() != self.form.terms() {
            let allowed = "none, or 3 values for linear, 6 for poly2, 10 for poly3";
            return refuse("coefficients", &format!("an array of {}", self.coefficients.len()), allowed);
        }
        if let Some(value) = self.coefficients.iter().find(|value| value.unsigned_abs() > MAX_COEFFICIENT) {
            return refuse("coefficients", value, "from -1000000 to 1000000 each");
        }
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
        if self.tick.is_zero() {
            return refuse("tick", &self.tick, "longer than nothing");
        }
        if !(1..=MAX_TAU_TICKS).contains(&self.tau_ticks()) {
            return refuse("time_constant", &self.time_constant, "1 to 1048576 times `tick`");
        }
        if self.full_queue == Bytes::ZERO {
            return refuse("full_queue", &self.full_queue, "more than nothing");
        }
        if self.floor_percent > 100 {
            return refuse("floor_percent", &self.floor_percent, "0 to 100");
        }
        Ok(())
    }
}

/// Bytes of a clone. qall Fig. 6.
const CLONE_BYTES: u64 = 10;
/// Clones of one port under way at once: what is reserved at least and at most.
const UNDER_WAY: std::ops::RangeInclusive<u64> = 16..=1_024;

/// QALL at one switch.
#[derive(Debug, Clone)]
pub struct Qall {
    ports: Box<[Port]>,
    common: Common,
    /// The flowlet table; empty if every packet is chosen for.
    entries: Box<[u64]>,
    mask: u64,
    seed: u64,
    gap_ticks: u64,
    decisions: u64,
    uninformed: u64,
    state_age: u64,
}

/// A whole number below `bound`, at least 1: Lemire's multiply-shift on 64 bits.
#[inline]
fn below(random: &mut Stream, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Bytes that a port to another switch holds; 0 for a port to a host, which is no choice of anybody's.
fn watched_bytes(params: &Params, info: &SwitchInfo<'_>, port: usize) -> u64 {
    match info.port_peers[port] {
        Peer::Host(_) => 0,
        Peer::Switch { .. } => info.port_buffers[port].unwrap_or(params.full_queue).as_u64().max(1),
    }
}

/// How many clones of a port can be under way: those of the packets in the queue and those in recirculation.
fn clones_under_way(params: &Params, full: u64, rate: Rate) -> u64 {
    let time = rate.service(Bytes::new(full)).as_ps().saturating_add(params.recirculation.as_ps());
    (time / params.update.as_ps().max(1)).saturating_add(2).clamp(*UNDER_WAY.start(), *UNDER_WAY.end())
}

impl Qall {
    /// qall Alg. 2: the grid of weights, and a draw in it.
    #[inline]
    fn draw<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, hops: &NextHops<'_>) -> usize {
        let now = cx.now().as_ps();
        let mut total = 0;
        for &port in hops.ports {
            let state = &mut self.ports[port.index()];
            if now >= state.wake {
                state.refresh(now, cx.bytes_sent(port), &mut self.common);
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

impl SwitchBalancer for Qall {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks { arriving: false, departing: true };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let common = Common {
            index: Box::new(Index::new(
                params.form,
                &params.coefficients,
                params.tau_ticks(),
                params.rising,
                params.falling,
                params.floor_percent,
            )),
            update: params.update.as_ps(),
            recirculation: params.recirculation.as_ps(),
            tick: params.tick.as_ps(),
            clones: 0,
            clones_lost: 0,
            decision_delay: 0,
        };
        let port = |port| {
            let full = watched_bytes(params, info, port);
            Port::new(full, clones_under_way(params, full, info.port_rates[port]), &common)
        };
        let entries = if params.granularity == Granularity::Flowlet { params.entries as usize } else { 0 };
        Self {
            ports: (0..info.port_peers.len()).map(port).collect(),
            common,
            entries: vec![0; entries].into_boxed_slice(),
            mask: (entries as u64).wrapping_sub(1),
            seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
            gap_ticks: Entry::gap_ticks(params.gap),
            decisions: 0,
            uninformed: 0,
            state_age: 0,
        }
    }

    /// qall Alg. 1.
    #[inline]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        if self.entries.is_empty() {
            return self.draw(cx, hops);
        }
        // qall Alg. 1 lines 11 to 20.
        let now = cx.now();
        let slot = (mix64(self.seed ^ u64::from(packet.entropy)) & self.mask) as usize;
        let current = Entry(self.entries[slot]).port(now, self.gap_ticks);
        let index = match current.and_then(|port| hops.index_of(port)) {
            Some(index) => index,
            None => self.draw(cx, hops),
        };
        self.entries[slot] = Entry::new(now, hops.ports[index]).0;
        index
    }

    #[inline]
    fn departing<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, _: &mut Packet, port: PortId) {
        let state = &mut self.ports[port.index()];
        if state.full == 0 {
            return;
        }
        let (now, sent_before) = (cx.now().as_ps(), cx.bytes_sent(port));
        if now >= state.wake {
            state.refresh(now, sent_before, &mut self.common);
        }
        state.settle(sent_before, &mut self.common);
        let leaves = now.saturating_add(cx.drain_time(port).as_ps());
        let backlog = if leaves == now { 0 } else { cx.backlog_bytes(port) };
        state.offer(Offered { sent_before, leaves, backlog }, &self.common);
    }

    /// For each port to a switch, at the decision 16 bits of L, 48 of T and 8 of V, as in a clone, and at the queue two
    /// times of 48 bits, the last occupancy of 16 and the trend of 8; eight bytes an entry of the flowlet table.
    fn state_bytes(&self) -> u64 {
        const PER_PORT: u64 = 9 + 15;
        let ports = self.ports.iter().filter(|port| port.full > 0).count() as u64;
        ports * PER_PORT + self.entries.len() as u64 * 8
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
