//! CONGA: flowlets take the uplink whose path is least congested, which the far leaf reports
//! (Alizadeh et al., SIGCOMM 2014). For fabrics of two tiers.
//!
//! Every link has a rate estimator. A packet that leaves its leaf carries the number of its uplink
//! and collects the worst metric of the links that it crosses. The far leaf notes it, and reports
//! it on packets that go the other way. A new flowlet takes the uplink with the least maximum of
//! its own metric and the one reported for its path.
//!
//! A switch that is not the leaf of a packet's sender only raises the metric, and chooses as ECMP
//! does (§3: the spines hash).

use weft_packet::{Kinds, Packet};

use self::header::Header;
use self::metrics::{Dre, FromLeaf, Register, ToLeaf};
use super::ecmp::Ecmp;
use super::flowlets::Flowlets;
use super::past::Past;
use crate::acknowledgements::Aside;
use crate::flowlet::Chosen;
use crate::{
    Arrival, NextHops, Peer, PortId, Ports, Queued, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme,
};

mod header;
mod metrics;
mod params;
#[cfg(test)]
mod tests;

pub use self::params::Params;
use self::params::{Collects, Ties};

/// CONGA at one switch.
#[derive(Debug, Clone)]
pub struct Conga {
    aside: Aside,
    ecmp: Ecmp,
    dre: Dre,
    collects: Collects,
    /// Past values of registers, if decisions use them.
    past: Option<Box<Past<Register>>>,
    /// The `LBTag` of each port: its number among the ports to switches; `NO_TAG` for a port to a
    /// host.
    tags: Box<[u8]>,
    leaf: Option<LeafState>,
}

/// State that only a leaf has.
#[derive(Debug, Clone)]
struct LeafState {
    rack: u16,
    flowlets: Flowlets<Chosen>,
    to: ToLeaf,
    from: FromLeaf,
    ties: Ties,
    /// The metrics of the next hops of one decision.
    candidates: Box<[u8]>,
    decisions: u64,
    moves: u64,
    reports: u64,
}

const NO_TAG: u8 = u8::MAX;

impl LeafState {
    /// Room for this many uplinks even at a leaf with fewer: others may have more. The paper's
    /// field has room for 16.
    const MIN_TAGS: usize = 16;

    fn new(rack: u16, uplinks: usize, params: &Params, info: &SwitchInfo<'_>) -> Self {
        let tags = uplinks.next_power_of_two().clamp(Self::MIN_TAGS, Header::TAGS);
        Self {
            rack,
            flowlets: Flowlets::new(params.entries, Chosen::new(params.detection, params.gap), info),
            to: ToLeaf::new(info.racks, tags, params),
            from: FromLeaf::new(info.racks, tags, params),
            ties: params.ties,
            candidates: vec![0; info.port_rates.len()].into_boxed_slice(),
            decisions: 0,
            moves: 0,
            reports: 0,
        }
    }

    /// The place of a new flowlet: the least `candidates`; among equals where the flow was last,
    /// else any (§3.5).
    fn decide<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, hops: usize, last: Option<usize>) -> usize {
        let candidates = &self.candidates[..hops];
        let best = candidates.iter().copied().min().unwrap_or(0);
        if let Some(last) = last.filter(|&last| candidates[last] == best) {
            return last;
        }
        let equals = candidates.iter().map(|&metric| u32::from(metric == best)).sum();
        let draw = match self.ties {
            Ties::Even => cx.random().below(equals),
            Ties::FirstTwice => cx.random().below(equals + 1).saturating_sub(1),
        } as usize;
        let nth = candidates.iter().enumerate().filter(|&(_, &metric)| metric == best).nth(draw);
        nth.map_or(0, |(index, _)| index)
    }
}

impl Conga {
    /// The metric of each next hop (§3.5): the worse of what its own link and what the far leaf
    /// says.
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

impl SwitchScheme for Conga {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks {
        on_arrival: Kinds::ALL,
        on_arrival_by: Ports::ToSwitches,
        on_enqueued: Ports::ToSwitches,
        ..SwitchHooks::NONE
    };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let mut uplinks = 0;
        let tag = |peer: &Peer| match peer {
            Peer::Host(_) => NO_TAG,
            Peer::Switch { .. } => {
                uplinks += 1;
                // More than the field has room for are refused with the spec, and share tags in a
                // world that does not ask.
                ((uplinks - 1) % Header::TAGS) as u8
            }
        };
        let tags = info.port_peers.iter().map(tag).collect();
        Self {
            aside: Aside::new(params.acknowledgements, info),
            ecmp: Ecmp::new(&super::ecmp::Params::default(), info),
            dre: Dre::new(params, info.port_rates.len()),
            collects: params.collects,
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
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        _: PortId,
    ) -> Arrival {
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

    /// On every link between switches: counts the packet, and raises what it collects (§3.2, §3.3).
    /// At the leaf of the sender, the header begins.
    #[inline]
    fn on_enqueued<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &mut Packet, queued: Queued) {
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
            if self.collects == Collects::BehindUplink {
                packet.scheme = header.0;
                return;
            }
        }
        header.raise(self.dre.metric(port, now, cx.rate(port)));
        packet.scheme = header.0;
    }

    /// Bytes of the metrics brought to the decision: one for each port.
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
