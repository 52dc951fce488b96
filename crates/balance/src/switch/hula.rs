//! HULA: every switch sends a new flowlet to the next hop that probes found least used (Katta et
//! al., SOSR 2016).
//!
//! Every edge switch sends probes up, at an interval. A probe carries the rack that it came from
//! and the utilisation of the busiest link on the way *back* to there. A switch keeps, for each
//! rack, the next hop with the least, and passes the probe on with that; so each switch knows its
//! best next hop, and none knows paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Kinds, Packet};
use weft_units::{Rate, Span, Time};

use super::ecmp::Ecmp;
use super::flowlets::{self, Flowlets};
use super::past::{self, Past};
use crate::flowlet::Timer;
use crate::registry::{FlowletRule, Parameters};
use crate::{
    Arrival, NextHops, ParameterError, Peer, PortId, Ports, Queued, SwitchContext, SwitchHooks, SwitchInfo,
    SwitchScheme,
};

#[cfg(test)]
mod tests;

/// Parameters of HULA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How often each edge switch sends probes (time). Source: 200 us in the paper's evaluation
    /// (recalled, not checked against the paper).
    pub interval: Span,
    /// Time constant of the link utilisation estimator (time). Source: twice the probe interval, as
    /// in public HULA code for P4 switches.
    pub tau: Span,
    /// A next hop that no probe confirmed for so long is taken for failed (time), at least
    /// `interval`. Source: the paper asks for a few missed probes; three intervals.
    pub t_fail: Span,
    /// The longest pause inside a flowlet (time). Source: 100 us in the paper's evaluation
    /// (recalled, not checked against the paper).
    pub gap: Span,
    /// Entries of a switch's flowlet table: a power of two, 1 to 16,777,216. Source: none is given;
    /// 64K as for CONGA.
    pub entries: u32,
    /// How old the utilisation of a switch's own links is that probes are held against (time): 0
    /// for what it is now, at most 100ms. Source: 0 as in HULA; 615 us on `BMv2` for what a clone
    /// brings, in QALL, Table II. The 2.4 to 8.6 ms that it has for HULA are the time of probes,
    /// which are packets here, too.
    pub age: Span,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            interval: Span::from_us(200),
            tau: Span::from_us(400),
            t_fail: Span::from_us(600),
            gap: Span::from_us(100),
            entries: 1 << 16,
            age: Span::ZERO,
        }
    }
}

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        Some(FlowletRule::informed(self.gap))
    }

    fn validate(&self) -> Result<(), ParameterError> {
        let refuse =
            |key, found: Span, allowed| Err(ParameterError { key, found: found.to_string(), allowed });
        if self.interval < Span::from_us(1) {
            return refuse("interval", self.interval, "1us or more");
        }
        if self.tau.is_zero() {
            return refuse("tau", self.tau, "longer than nothing");
        }
        if self.t_fail < self.interval {
            return refuse("t_fail", self.t_fail, "interval or more");
        }
        past::validate(self.age)?;
        flowlets::validate(self.entries, self.gap, "longer than nothing")
    }
}

/// A probe's fields, in the 32 bits that a scheme has in a packet: the rack in the low 24, the
/// utilisation in the high 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probe {
    rack: u16,
    utilisation: u8,
}

impl Probe {
    fn packet(self) -> Packet {
        Packet::control(u32::from(self.utilisation) << 24 | u32::from(self.rack))
    }

    fn read(packet: &Packet) -> Self {
        Self { rack: packet.scheme as u16, utilisation: (packet.scheme >> 24) as u8 }
    }
}

/// The utilisation estimator of one link: U = D + U (1 - dt / tau) for a packet of D bytes, dt
/// after the last one.
#[derive(Debug, Clone, Copy, Default)]
struct Utilisation {
    bytes: f64,
    at: Time,
}

impl Utilisation {
    #[inline]
    fn decayed(self, now: Time, tau: Span) -> f64 {
        let idle = now.since(self.at).as_ps() as f64 / tau.as_ps() as f64;
        self.bytes * (1.0 - idle).max(0.0)
    }

    #[inline]
    fn add(&mut self, now: Time, tau: Span, wire_bytes: u16) {
        *self = Self { bytes: self.decayed(now, tau) + f64::from(wire_bytes), at: now };
    }

    /// U / (C tau) in 255ths, rounded down, at most 255.
    #[inline]
    fn level(self, now: Time, tau: Span, capacity: Rate) -> u8 {
        let full = capacity.as_bps() as f64 * tau.as_ps() as f64 / 8e12;
        (self.decayed(now, tau) / full * 255.0).min(255.0) as u8
    }
}

/// The best next hop to a rack.
#[derive(Debug, Clone, Copy)]
struct Best {
    port: PortId,
    utilisation: u8,
    /// When a probe last confirmed it; `None` before the first.
    confirmed: Option<Time>,
}

impl Best {
    const NONE: Self = Self { port: PortId(0), utilisation: 0, confirmed: None };

    #[inline]
    fn is_fresh(&self, now: Time, t_fail: Span) -> bool {
        self.confirmed.is_some_and(|at| now.since(at) <= t_fail)
    }
}

/// HULA at one switch.
#[derive(Debug, Clone)]
pub struct Hula {
    ecmp: Ecmp,
    interval: Span,
    tau: Span,
    t_fail: Span,
    rack: Option<u16>,
    tier: u8,
    peers: Box<[Peer]>,
    links: Box<[Utilisation]>,
    /// Past utilisation of links, if probes are compared with it.
    past: Option<Box<Past<Utilisation>>>,
    /// By rack.
    best: Box<[Best]>,
    flowlets: Flowlets,
    decisions: u64,
    by_hash: u64,
    probes: u64,
}

impl Hula {
    /// A packet goes onto a link.
    #[inline]
    fn add(&mut self, now: Time, port: PortId, wire_bytes: u16) {
        let link = &mut self.links[port.index()];
        link.add(now, self.tau, wire_bytes);
        if let Some(past) = &mut self.past {
            past.note(port, now, *link);
        }
    }

    /// How much a link is used, as far as is known where probes come in.
    fn level(&mut self, now: Time, port: PortId, capacity: Rate) -> u8 {
        let (then, link) = match &mut self.past {
            None => (now, self.links[port.index()]),
            Some(past) => {
                let (then, link) = past.look(port, now);
                (then, link.map_or(Utilisation::default(), |(_, link)| link))
            }
        };
        link.level(then, self.tau, capacity)
    }

    /// Sends a probe by every port to a switch that `wanted` picks by number and tier.
    fn probe<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        probe: Probe,
        wanted: impl Fn(u32, u8) -> bool,
    ) {
        let now = cx.now();
        for port in 0..self.peers.len() {
            let Peer::Switch { switch, tier } = self.peers[port] else { continue };
            let id = PortId(port as u16);
            if wanted(switch, tier) && cx.is_up(id) {
                self.add(now, id, Packet::LEAST_WIRE_BYTES);
                self.probes += 1;
                cx.send(id, probe.packet());
            }
        }
    }

    /// Notes what a probe says. `None` if it changes nothing: it tells of a path that is not the
    /// best.
    fn learn<C: SwitchContext + ?Sized>(&mut self, cx: &C, probe: Probe, port: PortId) -> Option<u8> {
        let now = cx.now();
        let link = self.level(now, port, cx.rate(port));
        let utilisation = probe.utilisation.max(link);
        let best = self.best.get_mut(usize::from(probe.rack))?;
        let better = utilisation < best.utilisation || !best.is_fresh(now, self.t_fail);
        if !better && port != best.port {
            return None;
        }
        *best = Best { port, utilisation, confirmed: Some(now) };
        Some(utilisation)
    }
}

impl SwitchScheme for Hula {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks {
        on_arrival: Kinds::of(&[Kind::Control]),
        on_arrival_by: Ports::ToSwitches,
        on_enqueued: Ports::ToSwitches,
        timers: true,
    };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        Self {
            ecmp: Ecmp::new(&super::ecmp::Params::default(), info),
            interval: params.interval,
            tau: params.tau,
            t_fail: params.t_fail,
            rack: info.rack,
            tier: info.tier,
            peers: info.port_peers.into(),
            links: vec![Utilisation::default(); info.port_rates.len()].into_boxed_slice(),
            past: Past::new(params.age, info.port_rates.len()),
            best: vec![Best::NONE; usize::from(info.racks)].into_boxed_slice(),
            flowlets: Flowlets::new(params.entries, Timer::new(params.gap), info),
            decisions: 0,
            by_hash: 0,
            probes: 0,
        }
    }

    /// Edge switches begin to probe at different times within the first interval.
    fn start<C: SwitchContext + ?Sized>(&mut self, cx: &mut C) {
        if self.rack.is_some() {
            let phase = cx.random().unit();
            cx.set_timer(Span::from_ps((self.interval.as_ps() as f64 * phase) as u64), 0);
        }
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let flowlet = self.flowlets.explain(cx.now(), packet, hops, "takes the best of");
        let best = self.best.get(usize::from(hops.rack)).filter(|best| best.is_fresh(cx.now(), self.t_fail));
        Some(match best {
            Some(best) => {
                let (port, percent) = (best.port.0, u32::from(best.utilisation) * 100 / 255);
                format!("{flowlet}; probes say port {port}, {percent} % used")
            }
            None => format!("{flowlet}; no fresh probe, so by hash"),
        })
    }

    fn on_timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        if let Some(rack) = self.rack {
            let mine = self.tier;
            self.probe(cx, Probe { rack, utilisation: 0 }, |_, tier| tier > mine);
            cx.set_timer(self.interval, token);
        }
    }

    /// A probe from below goes on to all neighbours, one from above only to those below; never
    /// back. What comes in by a port that cannot send is of no use: data would have to go that way.
    #[inline]
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        port: PortId,
    ) -> Arrival {
        if packet.kind != Kind::Control {
            return Arrival::Forward;
        }
        let probe = Probe::read(packet);
        let Peer::Switch { switch: from, tier: its } = self.peers[port.index()] else {
            return Arrival::Consume;
        };
        if self.rack == Some(probe.rack) || !cx.is_up(port) {
            return Arrival::Consume;
        }
        if let Some(utilisation) = self.learn(cx, probe, port) {
            let mine = self.tier;
            self.probe(cx, Probe { utilisation, ..probe }, |switch, tier| {
                switch != from && (tier < mine || (tier > mine && its < mine))
            });
        }
        Arrival::Consume
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let now = cx.now();
        let slot = self.flowlets.find(now, packet);
        let current = slot.current().and_then(|port| hops.index_of(port));
        let index = current.unwrap_or_else(|| {
            self.decisions += 1;
            let best = self.best.get(usize::from(hops.rack)).copied().unwrap_or(Best::NONE);
            let known = best.is_fresh(now, self.t_fail).then(|| hops.index_of(best.port)).flatten();
            known.unwrap_or_else(|| {
                self.by_hash += 1;
                self.ecmp.choose(cx, packet, hops)
            })
        });
        self.flowlets.pass(slot, hops.ports[index]);
        index
    }

    #[inline]
    fn on_enqueued<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &mut Packet, queued: Queued) {
        self.add(cx.now(), queued.port, packet.wire_bytes);
    }

    /// Eight bytes a flowlet entry; port, utilisation and time, nine, for each rack; twelve a port,
    /// and one for a utilisation that is brought to where probes come in.
    fn state_bytes(&self) -> u64 {
        let of_port = 12 + u64::from(self.past.is_some());
        self.flowlets.state_bytes() + self.best.len() as u64 * 9 + self.links.len() as u64 * of_port
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("flowlets", self.decisions);
        count("flowlets_by_hash", self.by_hash);
        count("probes", self.probes);
    }
}
