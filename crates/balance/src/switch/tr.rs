//! TR: a packet takes only ways on which it cannot overtake its flow's last packet (Zhang et al., J
//! Cloud Comp 2021).
//!
//! The source leaf predicts for each uplink when the packet would reach the destination leaf (the
//! "time to next leaf"): its own queue, both cables, and the spine's queue towards that leaf, which
//! acknowledgements that come back through the spine report in 5 bits. Uplinks that would be
//! earlier than the flow's last packet are out. Of the others, a short flow takes the earliest; a
//! long one that with the fewest active short flows.
//!
//! Only the leaf that the sender hangs at decides so. All other switches hash flows as ECMP does.

mod choice;
mod flows;
mod params;
mod path_estimates;
#[cfg(test)]
mod tests;
mod visits;

use weft_packet::{FlowId, Kind, Kinds, Packet};
use weft_units::{Rate, Span, Time};

use self::choice::Uplinks;
use self::flows::{Flows, Last};
pub use self::params::{Believe, Counted, Gap, LastUplink, Params, Rtt, SpineQueue, Tnl};
use self::path_estimates::PathEstimates;
use super::ecmp::{self, Ecmp};
use crate::{Arrival, NextHops, Peer, PortId, Ports, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme};

/// Kind of a switch's own packets, in the high half of [`Packet::scheme`]; the low half is a rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
enum Word {
    /// From a leaf: this rack is at my end of the cable.
    Here = 1,
    /// From a spine: my cable to this rack has this delay and rate.
    Reach = 2,
}

impl Word {
    fn of(packet: &Packet) -> Option<Self> {
        [Self::Here, Self::Reach].into_iter().find(|&word| word as u32 == packet.scheme >> 16)
    }

    fn packet(self, rack: u16) -> Packet {
        Packet::control(u32::from(self as u16) << 16 | u32::from(rack))
    }

    /// A [`Word::Reach`]: 64 bits of delay in ps, 32 of rate in Mbit/s.
    fn reach(rack: u16, delay: Span, rate: Rate) -> Packet {
        let mut packet = Self::Reach.packet(rack);
        packet.seq = delay.as_ps() as u32;
        packet.flow = FlowId((delay.as_ps() >> 32) as u32);
        packet.entropy = (rate.as_bps() / 1_000_000) as u32;
        packet
    }
}

/// A port and its cable.
#[derive(Debug, Clone, Copy)]
struct Near {
    delay: Span,
    rate: Rate,
    peer: Peer,
    /// At a spine: the rack at the far end, once it has said so.
    rack: Option<u16>,
}

/// TR at one switch.
#[derive(Debug, Clone)]
pub struct Tr {
    ports: Box<[Near]>,
    /// The rack of a leaf; all else is for leaves only.
    rack: Option<u16>,
    ways: PathEstimates,
    flows: Flows,
    believe: Span,
    /// Whether a flow's last uplink is always admissible.
    follows_last: bool,
    /// So much earlier than its flow's last packet, a packet overtakes not yet.
    slack: Span,
    /// A packet that is later than its flow's last one by no more than this overtakes, too.
    margin: Span,
    /// Bytes that the codes divide, and how many bits they have.
    spine_buffer: u64,
    code_bits: u8,
    /// Where the next look over the uplinks begins: equal ones take turns.
    turn: u32,
    ecmp: Ecmp,
    excluded: u64,
    empty_sets: u64,
    reroutes: u64,
}

impl Tr {
    /// The code of a queue: its length in steps of a 2^bits-th of the buffer, rounded down (TR §TNL
    /// calculation).
    #[inline]
    fn code(&self, backlog_bytes: u64) -> u32 {
        // As most are.
        if backlog_bytes == 0 {
            return 0;
        }
        let steps = u64::from(u32::MAX >> (32 - self.code_bits));
        ((backlog_bytes << self.code_bits) / self.spine_buffer).min(steps) as u32
    }

    /// The place among the next hops of the uplink of a packet whose sender hangs here, the uplink,
    /// and when the packet would be at the next leaf by it (TR Alg. 1). `long` says whether its
    /// flow is long.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn uplink<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &C,
        packet: &Packet,
        hops: &NextHops<'_>,
        last: Last,
        long: bool,
    ) -> (usize, PortId, Time) {
        // Equal ones take turns.
        let begin = (self.turn % hops.ports.len() as u32) as usize;
        self.turn = self.turn.wrapping_add(1);
        let (now, port) = (cx.now(), hops.ports[begin]);
        // Mostly nothing can be better than the first.
        if let Some((beyond, least)) = self.ways.by(port, hops.rack, now, packet.wire_bytes) {
            let takes = cx.drain_time_for(port, packet) + beyond;
            let at = now.saturating_add(takes);
            let is_best = takes <= least && at.saturating_add(self.slack) > last.bar(self.margin);
            if is_best && !(long && self.flows.active_shorts()[port.index()] > 0) {
                return (begin, port, at);
            }
        }
        let (port, at) = self.look(cx, packet, hops, (last, long), begin);
        (hops.index_of(port).unwrap_or_default(), port, at)
    }

    /// Best uplink and time, by a look at the uplinks from the one at `begin` on.
    #[inline(never)]
    fn look<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &C,
        packet: &Packet,
        hops: &NextHops<'_>,
        (last, long): (Last, bool),
        begin: usize,
    ) -> (PortId, Time) {
        let now = cx.now();
        let ways = self.ways.to(hops.rack, now, packet.wire_bytes);
        let (before, first) = hops.ports.split_at(begin);
        let uplinks = Uplinks {
            first,
            before,
            takes: move |port| cx.drain_time_for(port, packet) + ways.time_beyond_queue(port),
            least: ways.least(),
            follows_last: self.follows_last,
            slack: self.slack,
            margin: self.margin,
        };
        // Where no short flow is active, all uplinks have equally many.
        let choice = if long && self.flows.has_active_shorts() {
            uplinks.fewest_shorts(now, last, self.flows.active_shorts())
        } else {
            uplinks.soonest(now, last)
        };
        if choice.excluded > 0 {
            self.excluded += choice.excluded as u64;
            self.empty_sets += u64::from(choice.excluded == hops.ports.len());
        }
        (choice.port, choice.at)
    }

    /// A leaf said that its rack is behind `port` of this spine: everyone who must know learns what
    /// the cables are.
    fn meet<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, rack: u16, port: PortId) {
        self.ports[port.index()].rack = Some(rack);
        let new = self.ports[port.index()];
        for (other, known) in self.ports.iter().enumerate() {
            let other = PortId(other as u16);
            match known.rack {
                Some(known_rack) if other != port && known_rack != rack => {
                    cx.send(other, Word::reach(rack, new.delay, new.rate));
                    cx.send(port, Word::reach(known_rack, known.delay, known.rate));
                }
                _ => {}
            }
        }
    }

    /// A spine said how it reaches a rack.
    fn learn(&mut self, packet: &Packet, rack: u16, port: PortId) {
        let rate = Rate::from_bps(u64::from(packet.entropy.max(1)) * 1_000_000);
        let far = Span::from_ps(u64::from(packet.flow.0) << 32 | u64::from(packet.seq));
        self.ways.learn(rack, port, self.ports[port.index()].delay, far, rate);
    }

    /// A packet of a neighbour's TR.
    #[cold]
    fn hear<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &Packet, port: PortId) {
        let rack = packet.scheme as u16;
        match (Word::of(packet), self.rack) {
            (Some(Word::Here), None) => self.meet(cx, rack, port),
            (Some(Word::Reach), Some(_)) => self.learn(packet, rack, port),
            _ => {}
        }
    }

    /// An acknowledgement passes: spines write into it, the leaf of its receiver reads and restores
    /// it.
    #[inline]
    fn acknowledgement<C: SwitchContext + ?Sized>(&mut self, cx: &C, packet: &mut Packet, port: PortId) {
        match self.rack {
            // The port that the acknowledgement came in by is the one that the data takes, in the
            // same class.
            None => {
                if matches!(self.ports[port.index()].peer, Peer::Switch { tier: 0, .. }) {
                    packet.scheme = self.code(cx.backlog_bytes_for(port, packet));
                }
            }
            // From a switch: of what hosts send, a leaf asks for nothing.
            Some(own) if own == cx.rack_of(packet.dst) => {
                let until = cx.now().saturating_add(self.believe);
                self.ways.hear(cx.rack_of(packet.src), port, packet.scheme & 0xffff, until);
                packet.scheme = 0;
            }
            _ => {}
        }
    }
}

impl SwitchScheme for Tr {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks {
        on_arrival: Kinds::of(&[Kind::Ack, Kind::SynAck, Kind::Control]),
        on_arrival_by: Ports::ToSwitches,
        timers: true,
        ..SwitchHooks::NONE
    };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let near = |port: usize| {
            // A dead cable may have no rate at all.
            let rate = Rate::from_bps(info.port_rates[port].as_bps().max(1_000_000));
            let (delay, peer) = (info.port_delays[port], info.port_peers[port]);
            Near { delay, rate, peer, rack: None }
        };
        let ports: Box<[Near]> = (0..info.port_rates.len()).map(near).collect();
        let leaf = info.rack.is_some();
        let racks = if leaf { info.racks } else { 0 };
        let rtt = params.rtt.at(info);
        let ways = PathEstimates::new(params, &ports, racks);
        let span = |gap: Gap| match gap {
            Gap::Is(span) => span,
            Gap::Step => ways.longest_step(&ports),
        };
        let (slack, margin) = (span(params.slack), span(params.margin));
        Self {
            ways,
            flows: Flows::new(params, rtt, info, if leaf { params.entries as usize } else { 0 }),
            ports,
            rack: info.rack,
            believe: params.believe.after(rtt),
            follows_last: params.last_uplink == LastUplink::Always,
            slack,
            margin,
            spine_buffer: params.spine_buffer.as_u64(),
            code_bits: params.code_bits,
            turn: 0,
            ecmp: Ecmp::new(&ecmp::Params::default(), info),
            excluded: 0,
            empty_sets: 0,
            reroutes: 0,
        }
    }

    fn start<C: SwitchContext + ?Sized>(&mut self, cx: &mut C) {
        let Some(rack) = self.rack else { return };
        for (port, near) in self.ports.iter().enumerate() {
            if matches!(near.peer, Peer::Switch { .. }) {
                cx.send(PortId(port as u16), Word::Here.packet(rack));
            }
        }
    }

    #[inline]
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        port: PortId,
    ) -> Arrival {
        match packet.kind {
            Kind::Ack | Kind::SynAck => self.acknowledgement(cx, packet, port),
            Kind::Control => {
                self.hear(cx, packet, port);
                return Arrival::Consume;
            }
            _ => {}
        }
        Arrival::Forward
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        if self.rack != Some(cx.rack_of(packet.src)) {
            return self.ecmp.choose(cx, packet, hops);
        }
        let now = cx.now();
        let (slot, last, long) = self.flows.arrive(now, packet);
        let (place, port, at) = self.uplink(cx, packet, hops, last, long);
        self.reroutes += u64::from(last.port.is_some_and(|last| last != port));
        self.flows.leave(slot, now, port, at, matches!(packet.kind, Kind::Data | Kind::Syn) && !long);
        place
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        if self.rack != Some(cx.rack_of(packet.src)) {
            return self.ecmp.explain(cx, packet, hops);
        }
        let now = cx.now();
        let (last, long) = self.flows.expect(now, packet);
        let rule = if long {
            "a long flow: the uplink with the fewest active short flows"
        } else {
            "the uplink by which it is at the next leaf first"
        };
        let ahead = last.tnl.since(now);
        let behind = if last.bar(self.margin) <= now {
            String::new()
        } else if self.margin.is_zero() {
            format!(", but not before the flow's last packet, which is there in {ahead}")
        } else {
            let margin = self.margin;
            format!(", but more than {margin} behind the flow's last packet, which is there in {ahead}")
        };
        Some(format!("{rule}{behind}"))
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        self.ecmp.registers(set);
        set("is_leaf", 0, u64::from(self.rack.is_some()));
        set("rack", 0, self.rack.unwrap_or_default().into());
        // For ever is what no clock reaches: so that a program may add it to the time.
        set("believe_ps", 0, self.believe.as_ps().min(u64::MAX >> 1));
        set("spine_buffer", 0, self.spine_buffer);
        set("code_bits", 0, self.code_bits.into());
        set("follows_last", 0, u64::from(self.follows_last));
        set("slack_ps", 0, self.slack.as_ps());
        set("margin_ps", 0, self.margin.as_ps());
        self.flows.registers(set);
        self.ways.registers(set);
    }

    /// Bytes of [`Flows`]; a delay, a rate, a code and a time (24 bytes) by rack and port; by port
    /// a counter, and the delay and the rate of the cable (4 and 16 bytes).
    fn state_bytes(&self) -> u64 {
        self.flows.state_bytes() + self.ways.len() as u64 * 24 + self.ports.len() as u64 * 20
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("reroutes", self.reroutes);
        count("excluded_uplinks", self.excluded);
        count("empty_sets", self.empty_sets);
        count("shared_entries", self.flows.shared());
    }
}
