//! Flowcut switching: a flow may change its path when nothing of it is under way, and is made to
//! when its path is congested (Bonato et al., IEEE Transactions on Networking 2026, arXiv
//! 2506.21406).
//!
//! A flowcut is what a flow sends from one moment at which nothing of it is under way to the next.
//! Its first packet takes the least loaded port, and all others follow: so nothing is ever
//! overtaken, whatever paths differ by. The leaf of the sender counts what is under way by the
//! acknowledgements that come back through it. When the flow's round trips have become long, new
//! packets of it wait at the leaf until all that is under way has been acknowledged: then a new
//! flowcut begins.
//!
//! It is for transports whose acknowledgements say up to where all has come. Other packets than
//! data go by ECMP, and so does everything at switches that are not the sender's leaf.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Kinds, Packet};
use weft_units::{Bytes, Span, Time};

use super::connections::{Connections, Key};
use super::ecmp::{self, Ecmp};
use crate::registry::Parameters;
use crate::{
    Arrival, NextHops, ParameterError, PortId, Ports, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme,
};

#[cfg(test)]
mod tests;

/// Parameters of Flowcut switching.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// A flow is drained when its round trips, averaged, are so many times the least to that rack:
    /// above 1. Source: 3 in the scripts for fat-trees of the paper's artifact (`-rtt_ratio`); 6 in
    /// those for Dragonfly.
    pub ratio: f64,
    /// Weight of a new round trip in the average: 0.001 to 1. Source: 0.12 in the artifact's code
    /// for fat-trees (`exp_avg_alpha`); 0.7 in its scripts for Dragonfly.
    pub alpha: f64,
    /// Bytes that a flowcut has sent before it may be drained (size). Source: 20 KB in the
    /// artifact's code for Dragonfly (`hr_router`).
    pub least: Bytes,
    /// A flow of which no packet came for so long is forgotten, and a drain that lasts so long is
    /// given up (time). Source: a guess: far above any round trip; the paper's table forgets a flow
    /// with its last acknowledgement only.
    pub forget: Span,
}

impl Default for Params {
    fn default() -> Self {
        Self { ratio: 3.0, alpha: 0.12, least: Bytes::from_kb(20), forget: Span::from_ms(10) }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if !(self.ratio > 1.0 && self.ratio.is_finite()) {
            return refuse("ratio", self.ratio.to_string(), "above 1");
        }
        if !(0.001..=1.0).contains(&self.alpha) {
            return refuse("alpha", self.alpha.to_string(), "0.001 to 1");
        }
        if self.forget < Span::from_us(1) {
            return refuse("forget", self.forget.to_string(), "1us or more");
        }
        Ok(())
    }
}

/// State of a flow at a leaf while any of its packets is under way.
#[derive(Debug, Clone, Copy, Default)]
struct FlowcutState {
    /// Port of the flow; `None` before its first packet.
    port: Option<PortId>,
    /// The segment after the highest that was sent.
    next: u32,
    bytes: u64,
    /// When its last packet came.
    last: Time,
    /// A segment that was sent once, and when: its acknowledgement is a round trip.
    probe: Option<(u32, Time)>,
    /// The average round trip, in ps; 0 before the first.
    average_ps: f64,
    /// Where its new packets wait while it is drained.
    queue: Option<u32>,
}

/// Where packets of a flow wait.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    key: Key,
    /// When the drain is given up.
    until: Time,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    flowcuts: u64,
    drains: u64,
    given_up: u64,
    held: u64,
    most_held_bytes: u64,
}

/// Flowcut switching at one switch.
#[derive(Debug, Clone)]
pub struct Flowcut {
    ecmp: Ecmp,
    leaf: Option<Box<Leaf>>,
}

/// State that only a leaf has.
#[derive(Debug, Clone)]
struct Leaf {
    rack: u16,
    params: Params,
    flows: Connections<FlowcutState>,
    /// The least round trip to each rack, in ps.
    least_rtts: Box<[u64]>,
    queues: Vec<Option<Waiting>>,
    free: Vec<u32>,
    counts: Counts,
}

impl Leaf {
    fn new(rack: u16, params: &Params, info: &SwitchInfo<'_>) -> Self {
        Self {
            rack,
            params: params.clone(),
            flows: Connections::new(usize::MAX),
            least_rtts: vec![u64::MAX; info.racks.into()].into_boxed_slice(),
            queues: Vec::new(),
            free: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The way of a data packet of a host of this rack.
    fn send<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &Packet, hops: &NextHops<'_>) -> usize {
        let (now, forget) = (cx.now(), self.params.forget);
        let is_dead = |flow: &FlowcutState| flow.queue.is_none() && now.since(flow.last) > forget;
        // There is always room.
        let Some(flow) = self.flows.entry(Key::sent(packet), is_dead) else { return 0 };
        if is_dead(flow) {
            *flow = FlowcutState::default();
        }
        flow.last = now;
        flow.bytes += u64::from(packet.wire_bytes);
        if packet.seq >= flow.next {
            flow.next = packet.seq + 1;
            flow.probe.get_or_insert((packet.seq, now));
        } else if flow.probe.is_some_and(|(probe, _)| packet.seq <= probe) {
            // Sent again at or before it: its acknowledgement tells no round trip.
            flow.probe = None;
        }
        if let Some(index) = flow.port.and_then(|port| hops.index_of(port)) {
            return index;
        }
        let index = least_loaded(cx, packet, hops);
        self.counts.flowcuts += 1;
        flow.port = Some(hops.ports[index]);
        index
    }

    /// A data packet came from a host of this rack: it waits if its flow is drained, unless it is
    /// one that is sent again, which the drain waits for itself.
    fn pass<C: SwitchContext + ?Sized>(&mut self, cx: &C, packet: &Packet) -> Arrival {
        let Some(flow) = self.flows.get(Key::sent(packet)) else { return Arrival::Forward };
        match flow.queue {
            Some(queue) if packet.seq >= flow.next => {
                flow.last = cx.now();
                self.counts.held += 1;
                let held = cx.held_bytes() + u64::from(packet.wire_bytes);
                self.counts.most_held_bytes = self.counts.most_held_bytes.max(held);
                Arrival::Hold(queue)
            }
            _ => Arrival::Forward,
        }
    }

    /// An acknowledgement for a host of this rack.
    fn acknowledge<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &Packet) {
        let (now, key) = (cx.now(), Key::answered(packet));
        let Some(flow) = self.flows.get(key) else { return };
        if packet.seq >= flow.next {
            // Nothing is under way: the flowcut is over.
            if let Some(queue) = flow.queue {
                self.queues[queue as usize] = None;
                self.free.push(queue);
                cx.release(queue);
            }
            self.flows.remove(key);
            return;
        }
        let Some((_, sent)) = flow.probe.filter(|&(probe, _)| packet.seq > probe) else { return };
        flow.probe = None;
        let rtt = now.since(sent).as_ps();
        let least = &mut self.least_rtts[usize::from(cx.rack_of(packet.src))];
        *least = (*least).min(rtt);
        let weight = if flow.average_ps > 0.0 { self.params.alpha } else { 1.0 };
        flow.average_ps += weight * (rtt as f64 - flow.average_ps);
        let is_congested = flow.average_ps > self.params.ratio * *least as f64;
        if is_congested && flow.queue.is_none() && flow.bytes >= self.params.least.as_u64() {
            let waiting = Waiting { key, until: now.saturating_add(self.params.forget) };
            let queue = self.free.pop().unwrap_or_else(|| {
                self.queues.push(None);
                self.queues.len() as u32 - 1
            });
            self.queues[queue as usize] = Some(waiting);
            flow.queue = Some(queue);
            self.counts.drains += 1;
            cx.set_timer(self.params.forget, queue);
        }
    }

    /// A drain lasts too long: the flow stays where it is.
    fn give_up<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, queue: u32) {
        let place = self.queues.get_mut(queue as usize).filter(|place| {
            // Another drain may wait there by now.
            place.is_some_and(|waiting| waiting.until <= cx.now())
        });
        let Some(waiting) = place.and_then(Option::take) else { return };
        self.free.push(queue);
        self.counts.given_up += 1;
        if let Some(flow) = self.flows.get(waiting.key) {
            flow.queue = None;
            flow.bytes = 0;
            flow.average_ps = 0.0;
        }
        cx.release(queue);
    }
}

/// The next hop that would send the packet first; of several, one that is drawn.
fn least_loaded<C: SwitchContext + ?Sized>(cx: &mut C, packet: &Packet, hops: &NextHops<'_>) -> usize {
    let wait = |cx: &C, index: usize| cx.drain_time_for(hops.ports[index], packet);
    let mut best = (0, wait(cx, 0), 1);
    for index in 1..hops.ports.len() {
        let this = wait(cx, index);
        if this < best.1 {
            best = (index, this, 1);
        } else if this == best.1 {
            best.2 += 1;
            // Each of the equal ones ends up chosen with the same chance.
            if cx.random().below(best.2) == 0 {
                best.0 = index;
            }
        }
    }
    best.0
}

impl SwitchScheme for Flowcut {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks {
        on_arrival: Kinds::of(&[Kind::Data, Kind::Ack]),
        on_arrival_by: Ports::All,
        ..SwitchHooks::NONE
    };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        Self {
            ecmp: Ecmp::new(&ecmp::Params::default(), info),
            leaf: info.rack.map(|rack| Box::new(Leaf::new(rack, params, info))),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        match self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.src)) {
            Some(leaf) if packet.kind == Kind::Data => leaf.send(cx, packet, hops),
            _ => self.ecmp.choose(cx, packet, hops),
        }
    }

    #[inline]
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        _: PortId,
    ) -> Arrival {
        let Some(leaf) = &mut self.leaf else { return Arrival::Forward };
        let is_to_here = cx.rack_of(packet.dst) == leaf.rack;
        match packet.kind {
            Kind::Data if !is_to_here => leaf.pass(cx, packet),
            Kind::Ack if is_to_here => {
                leaf.acknowledge(cx, packet);
                Arrival::Forward
            }
            _ => Arrival::Forward,
        }
    }

    fn on_timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        if let Some(leaf) = &mut self.leaf {
            leaf.give_up(cx, token);
        }
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let leaf = self.leaf.as_ref().filter(|leaf| leaf.rack == cx.rack_of(packet.src));
        let Some(leaf) = leaf.filter(|_| packet.kind == Kind::Data) else {
            return self.ecmp.explain(cx, packet, hops);
        };
        Some(match leaf.flows.look(Key::sent(packet)).and_then(|flow| flow.port) {
            Some(_) => "something of the flow is under way: it stays on its port".to_owned(),
            None => "nothing of the flow is under way: the port that would send it first".to_owned(),
        })
    }

    fn state_bytes(&self) -> u64 {
        self.leaf.as_ref().map_or(0, |leaf| leaf.flows.state_bytes() + leaf.least_rtts.len() as u64 * 8)
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let Some(leaf) = &self.leaf else { return };
        count("flowcuts", leaf.counts.flowcuts);
        count("drains", leaf.counts.drains);
        count("drains_given_up", leaf.counts.given_up);
        count("held_packets", leaf.counts.held);
        count("most_held_bytes", leaf.counts.most_held_bytes);
    }
}
