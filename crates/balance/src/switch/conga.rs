//! CONGA: flowlets take the uplink whose path is least congested, which the far leaf reports (Alizadeh et al., SIGCOMM
//! 2014). For fabrics of two tiers.
//!
//! Every link has a rate estimator. A packet that leaves its leaf carries the number of its uplink and collects the worst
//! metric of the links that it crosses. The far leaf notes it, and reports it on packets that go the other way. A new
//! flowlet takes the uplink with the least maximum of its own metric and the one reported for its path.
//!
//! A switch that is not the leaf of a packet's sender only raises the metric, and chooses as ECMP does (§3: the spines
//! hash).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kinds, Packet};
use weft_units::Span;

use self::header::Header;
use self::metrics::{Dre, FromLeaf, Register, ToLeaf};
use super::acknowledgements::{Acknowledgements, Aside};
use super::ecmp::Ecmp;
use super::flowlets::{self, Flowlets};
use super::past::{self, Past};
use crate::flowlet::{Chosen, Detection};
use crate::registry::Parameters;
use crate::{
    Arrival, FabricFacts, NextHops, ParameterError, Peer, PortId, Ports, Queued, SwitchBalancer,
    SwitchContext, SwitchHooks, SwitchInfo,
};

mod header;
mod metrics;
#[cfg(test)]
mod tests;

/// Parameters of CONGA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How often the rate estimators decay (time). Source: the paper gives only their time constant `t_dre / alpha`,
    /// 160 us (§3.6); 20 us and an eighth, which is a shift in hardware, make 160 us.
    pub t_dre: Span,
    /// The share that a rate estimator loses each `t_dre`: 0.001 to 1. Source: as for `t_dre`; a public ns-3 port uses
    /// 0.2.
    pub alpha: f64,
    /// Bits of a congestion metric, Q: 1 to 8. Source: 3 (§3.6).
    pub metric_bits: u8,
    /// A pause that ends a flowlet (time); 13ms makes CONGA-Flow, which hardly ever moves a flow. Source: 500 us (§3.6),
    /// 13 ms for CONGA-Flow (§5).
    pub gap: Span,
    /// How pauses are noticed: `age-bit`, at one to two gaps; `timer`, at exactly one. Source: age bits (§3.4).
    pub detection: Detection,
    /// Entries of a leaf's flowlet table: a power of two, 1 to 16,777,216. Source: 64K (§3.4).
    pub entries: u32,
    /// A metric that was not renewed for so long begins to fall to zero (time). Source: 10 ms as the paper's example
    /// (§3.3).
    pub aging: Span,
    /// How old the metrics of its own uplinks are that a leaf's decisions go by (time): 0 for what they are now, at most
    /// 100ms. Source: 0 as in CONGA, whose leaf measures its uplinks where it decides; 615 us on `BMv2` for what a clone
    /// brings, in QALL, Table II. The 19.8 ms and more that it has for CONGA are the wait for reports, which come by packets here,
    /// too.
    pub age: Span,
    /// Which way acknowledgements, NACKs and CNPs take: `balanced`, as the scheme chooses for every packet; `ecmp`, by the hash of their
    /// five-tuple. Source: a choice; the authors' ns-3 code of ConWeave has all its load balancers steer data only, and
    /// hashes the rest.
    pub acknowledgements: Acknowledgements,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            t_dre: Span::from_us(20),
            alpha: 0.125,
            metric_bits: 3,
            gap: Span::from_us(500),
            detection: Detection::AgeBit,
            entries: 1 << 16,
            aging: Span::from_ms(10),
            age: Span::ZERO,
            acknowledgements: Acknowledgements::Balanced,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if self.t_dre.is_zero() {
            return refuse("t_dre", self.t_dre.to_string(), "longer than nothing");
        }
        if !(0.001..=1.0).contains(&self.alpha) {
            return refuse("alpha", self.alpha.to_string(), "0.001 to 1");
        }
        if !(1..=8).contains(&self.metric_bits) {
            return refuse("metric_bits", self.metric_bits.to_string(), "1 to 8");
        }
        if self.aging < Span::from_us(1) {
            return refuse("aging", self.aging.to_string(), "1us or more");
        }
        past::validate(self.age)?;
        flowlets::validate(self.entries, self.gap, "longer than nothing")
    }

    /// Two uplinks of one tag would be taken for one path.
    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        if fabric.uplinks() as usize > Header::TAGS {
            let found = format!("conga at leaves of up to {} uplinks", fabric.uplinks());
            let allowed = "at most 64, which the header's `LBTag` tells apart";
            return Err(ParameterError { key: "name", found, allowed });
        }
        Ok(())
    }
}

/// CONGA at one switch.
#[derive(Debug, Clone)]
pub struct Conga {
    aside: Aside,
    ecmp: Ecmp,
    dre: Dre,
    /// What registers were, if that is what decisions go by.
    past: Option<Box<Past<Register>>>,
    /// The `LBTag` of each port: its number among the ports to switches; `NO_TAG` for a port to a host.
    tags: Box<[u8]>,
    leaf: Option<LeafState>,
}

/// What only a leaf has.
#[derive(Debug, Clone)]
struct LeafState {
    rack: u16,
    flowlets: Flowlets<Chosen>,
    to: ToLeaf,
    from: FromLeaf,
    /// The metrics of the next hops of one decision.
    candidates: Box<[u8]>,
    decisions: u64,
    moves: u64,
    reports: u64,
}

const NO_TAG: u8 = u8::MAX;

impl LeafState {
    /// Room for this many uplinks even at a leaf with fewer: others may have more. The paper's field has room for 16.
    const MIN_TAGS: usize = 16;

    fn new(rack: u16, uplinks: usize, params: &Params, info: &SwitchInfo<'_>) -> Self {
        let tags = uplinks.next_power_of_two().clamp(Self::MIN_TAGS, Header::TAGS);
        Self {
            rack,
            flowlets: Flowlets::new(params.entries, Chosen::new(params.detection, params.gap), info),
            to: ToLeaf::new(info.racks, tags, params.aging, params.metric_bits),
            from: FromLeaf::new(info.racks, tags, params.aging, params.metric_bits),
            candidates: vec![0; info.port_rates.len()].into_boxed_slice(),
            decisions: 0,
            moves: 0,
            reports: 0,
        }
    }

    /// The place of a new flowlet: the least `candidates`; among equals where the flow was last, else any (§3.5).
    fn decide<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, hops: usize, last: Option<usize>) -> usize {
        let candidates = &self.candidates[..hops];
        let best = candidates.iter().copied().min().unwrap_or(0);
        if let Some(last) = last.filter(|&last| candidates[last] == best) {
            return last;
        }
        let ties = candidates.iter().map(|&metric| u32::from(metric == best)).sum();
        let draw = cx.random().below(ties) as usize;
        let nth = candidates.iter().enumerate().filter(|&(_, &metric)| metric == best).nth(draw);
        nth.map_or(0, |(index, _)| index)
    }
}

impl Conga {
    /// The metric of each next hop (§3.5): the worse of what its own link and what the far leaf says.
    fn rate_candidates<C: SwitchContext + ?Sized>(&mut self, cx: &C, hops: &NextHops<'_>) {
        let Some(leaf) = &mut self.leaf else { return };
        let now = cx.now();
        for (candidate, &port) in leaf.candidates.iter_mut().zip(hops.ports) {
            let local = match &mut self.past {
                None => self.dre.metric(port, now, cx.rate(port)),
                Some(past) => {
                    let (then, register) = past.look(port, now);
                    register.map_or(0, |(_, register)| self.dre.metric_of(register, then, cx.rate(port)))
                }
            };
            let tag = self.tags[port.index()];
            let remote = if tag == NO_TAG { 0 } else { leaf.to.get(hops.rack, tag, now) };
            *candidate = local.max(remote);
        }
    }
}

impl SwitchBalancer for Conga {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks {
        arriving: Kinds::ALL,
        arriving_by: Ports::ToSwitches,
        queued: Ports::ToSwitches,
        ..SwitchHooks::NONE
    };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let mut uplinks = 0;
        let tag = |peer: &Peer| match peer {
            Peer::Host(_) => NO_TAG,
            Peer::Switch { .. } => {
                uplinks += 1;
                // More than the field has room for are refused with the spec, and share tags in a world that does not ask.
                ((uplinks - 1) % Header::TAGS) as u8
            }
        };
        let tags = info.port_peers.iter().map(tag).collect();
        Self {
            aside: Aside::new(params.acknowledgements, info),
            ecmp: Ecmp::new(&super::ecmp::Params::default(), info),
            dre: Dre::new(params.t_dre, params.alpha, params.metric_bits, info.port_rates.len()),
            past: Past::new(params.age, info.port_rates.len()),
            tags,
            leaf: info.rack.map(|rack| LeafState::new(rack, uplinks, params, info)),
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
        let source = cx.rack_of(packet.src);
        let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.rack == source) else {
            return self.ecmp.choose(cx, packet, hops);
        };
        let slot = leaf.flowlets.find(cx.now(), packet);
        let last = slot.last.and_then(|port| hops.index_of(port));
        if let Some(index) = last.filter(|_| slot.alive) {
            leaf.flowlets.pass(slot, hops.ports[index]);
            return index;
        }
        self.rate_candidates(cx, hops);
        let Some(leaf) = &mut self.leaf else { return 0 };
        let index = leaf.decide(cx, hops.ports.len(), last);
        leaf.decisions += 1;
        leaf.moves += u64::from(slot.last.is_some() && last != Some(index));
        leaf.flowlets.pass(slot, hops.ports[index]);
        index
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        if let Some(reason) = self.aside.explain(cx, packet, hops) {
            return Some(reason);
        }
        let Some(leaf) = self.leaf.as_ref().filter(|leaf| leaf.rack == cx.rack_of(packet.src)) else {
            return self.ecmp.explain(cx, packet, hops);
        };
        if leaf.flowlets.find(cx.now(), packet).current().is_some_and(|port| hops.index_of(port).is_some()) {
            return Some("the flowlet goes on and stays on its port".to_owned());
        }
        Some(
            "a new flowlet: the uplink whose path is least congested by the own link and the far leaf"
                .to_owned(),
        )
    }

    /// At the leaf of the receiver: notes what the packet collected, and what it reports (§3.3).
    #[inline]
    fn arriving<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &mut Packet, _: PortId) -> Arrival {
        let Some(leaf) = self.leaf.as_mut() else { return Arrival::Forward };
        if packet.scheme != 0 && cx.rack_of(packet.dst) == leaf.rack {
            let (header, source, now) = (Header(packet.scheme), cx.rack_of(packet.src), cx.now());
            if let Some((tag, congestion)) = header.path() {
                leaf.from.note(source, tag, congestion, now);
            }
            if let Some((tag, metric)) = header.feedback() {
                leaf.to.set(source, tag, metric, now);
            }
            packet.scheme = 0;
        }
        Arrival::Forward
    }

    /// On every link between switches: counts the packet, and raises what it collects (§3.2, §3.3). At the leaf of the
    /// sender, the header begins.
    #[inline]
    fn queued<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &mut Packet, queued: Queued) {
        let port = queued.port;
        let tag = self.tags[port.index()];
        if tag == NO_TAG {
            return;
        }
        let now = cx.now();
        self.dre.add(port, now, packet.wire_bytes);
        if let Some(past) = &mut self.past {
            past.note(port, now, self.dre.register(port));
        }
        let mut header = Header(packet.scheme);
        if let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.src)) {
            let report = leaf.from.report(cx.rack_of(packet.dst), now);
            leaf.reports += u64::from(report.is_some());
            header = Header::new(tag, report);
        }
        header.raise(self.dre.metric(port, now, cx.rate(port)));
        packet.scheme = header.0;
    }

    /// What a metric of each port takes that is brought to the decision: a byte.
    fn state_bytes(&self) -> u64 {
        let leaf = self
            .leaf
            .as_ref()
            .map_or(0, |leaf| leaf.flowlets.state_bytes() + leaf.to.state_bytes() + leaf.from.state_bytes());
        let past = self.past.as_ref().map_or(0, |past| past.ports() as u64);
        self.dre.state_bytes() + leaf + past
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        if let Some(leaf) = &self.leaf {
            count("flowlets", leaf.decisions);
            count("flowlet_moves", leaf.moves);
            count("reports", leaf.reports);
        }
    }
}
