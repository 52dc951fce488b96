//! CLOVE: the virtual switch steers flowlets over plain ECMP by the source port of the encapsulation, towards paths
//! whose packets come without marks (Katta et al., `HotNets` 2016 and `CoNEXT` 2017).
//!
//! **Discovery.** Switches hash the outer source port (`packet.entropy`). Traceroutes with random entropies show which
//! one leads over which path; of the distinct paths, those are kept that share the fewest links (`discovery.rs`).
//!
//! **Choosing.** Each flowlet takes one path: at random (edge-flowlet), or in weighted round robin (ECN). Until the
//! first discovery is back, packets keep their own entropy, as under ECMP.
//!
//! **Weights.** The far edge sees marks in the outer header and tells the path at most once a relay interval, in the
//! outer header of packets that go back (`relay.rs`). The weight of a path that is told of is cut by a third, and the
//! others share what was cut (`paths.rs`).
//!
//! The variant that reads utilisation from in-band telemetry (CLOVE-INT) needs switches that write it, and is not here.

use std::collections::BTreeMap;

use weft_packet::{HostId, Kind, Packet, PacketFlags};
use weft_units::Span;

use crate::flowlet::FlowletClock;
use crate::{EdgeBalancer, EdgeContext, EdgeHooks, HostInfo, Message};

mod destination;
mod discovery;
mod header;
mod params;
mod paths;
mod relay;
#[cfg(test)]
mod tests;

use destination::{Destination, Tick};
use discovery::Probe;
use header::{Header, PathId};
pub use params::{GuestMarks, Mode, Params, Scope, Spread};
use relay::Marks;

/// CLOVE at one host.
#[derive(Debug)]
pub struct Clove {
    params: Params,
    rack: u16,
    base_rtts: Box<[Span]>,
    /// Where in `destinations` a rack or host is, as [`Params::scope`] says.
    index: BTreeMap<u16, u16>,
    destinations: Vec<Destination>,
    /// Where in `marks` a host that sends here is.
    senders: BTreeMap<HostId, u16>,
    marks: Vec<Marks>,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    flowlets: u64,
    reroutes: u64,
    traces: u64,
    trace_bytes: u64,
    answers: u64,
    lost_traces: u64,
    discoveries: u64,
    relays: u64,
    cuts: u64,
    hidden_marks: u64,
}

/// One flow at one end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    destination: Place,
    /// Of the other end's host, in the marks that arrive.
    sender: Place,
    /// The path of the flowlet, and where it was in the list.
    path: Option<PathId>,
    guess: u8,
    flowlets: FlowletClock,
}

/// Where the other end is in a table of its host: looked up once a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u16);

impl Default for Place {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Place {
    const UNKNOWN: Self = Self(u16::MAX);
    /// In the own rack: there is nothing to choose.
    const NEAR: Self = Self(u16::MAX - 1);

    fn index(self) -> Option<usize> {
        (self.0 < Self::NEAR.0).then_some(usize::from(self.0))
    }
}

/// What a message is; the other half of its tag is the destination's number.
const TRACE: u32 = 1 << 16;
const REACHED: u32 = 2 << 16;

impl Clove {
    /// Bytes of a probe: the least Ethernet frame.
    const PROBE_BYTES: u16 = 64;

    /// The destination of a flow's packets to `peer`; none within the rack.
    #[inline]
    fn destination_of<C: EdgeContext + ?Sized>(
        &mut self,
        cx: &C,
        flow: &mut Flow,
        peer: HostId,
    ) -> Option<usize> {
        if flow.destination == Place::UNKNOWN {
            flow.destination = self.look_up(peer, cx.rack_of(peer));
        }
        flow.destination.index()
    }

    #[cold]
    fn look_up(&mut self, peer: HostId, rack: u16) -> Place {
        if rack == self.rack {
            return Place::NEAR;
        }
        let key = match self.params.scope {
            Scope::Rack => rack,
            Scope::Host => peer.0,
        };
        let next = self.destinations.len() as u16;
        let index = *self.index.entry(key).or_insert(next);
        if index == next {
            let base_rtt = self.base_rtts[usize::from(rack)];
            self.destinations.push(Destination::new(rack, base_rtt, &self.params));
        }
        // The most recent flow's: it is the likeliest to be there still.
        self.destinations[usize::from(index)].peer = peer;
        Place(index)
    }

    /// The marks on packets of a flow from `peer`.
    #[inline]
    fn marks_of<C: EdgeContext + ?Sized>(&mut self, cx: &C, flow: &mut Flow, peer: HostId) -> &mut Marks {
        if flow.sender == Place::UNKNOWN {
            let next = self.marks.len() as u16;
            let index = *self.senders.entry(peer).or_insert(next);
            if index == next {
                let base_rtt = self.base_rtts[usize::from(cx.rack_of(peer))];
                self.marks.push(Marks::new(self.params.relay_interval(base_rtt)));
            }
            flow.sender = Place(index);
        }
        &mut self.marks[usize::from(flow.sender.0)]
    }

    /// Where in the destination's list the path of the next packet is. None before anything is known.
    #[inline]
    fn steer<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, index: usize) -> Option<usize> {
        let destination = &mut self.destinations[index];
        let now = cx.now();
        if !flow.flowlets.begins(now, destination.gap) {
            // A flowlet that began before anything was known stays where its hash leads.
            let id = flow.path?;
            if let Some(place) = destination.paths.place_of(id, usize::from(flow.guess)) {
                flow.guess = place as u8;
                return Some(place);
            }
            // The path is gone: no pause to wait for.
        }
        self.counts.flowlets += 1;
        let place = match self.params.mode {
            Mode::EdgeFlowlet => match destination.paths.list().len() as u32 {
                0 => None,
                count => Some(cx.random().below(count) as usize),
            },
            Mode::Ecn => destination.paths.next_turn(),
        };
        let path = place.map(|place| destination.paths.list()[place].id);
        self.counts.reroutes += u64::from(flow.path.is_some() && path != flow.path);
        flow.path = path;
        flow.guess = place? as u8;
        place
    }

    /// Begins to look for paths.
    #[cold]
    fn discover<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, index: usize) {
        let destination = &mut self.destinations[index];
        if cx.routes_to_rack(destination.rack) < 2 {
            return destination.sleep();
        }
        self.counts.discoveries += 1;
        let probes = destination.begin_discovery(cx.random(), &self.params);
        self.ask(cx, index, &probes);
        self.wake_later(cx, index, self.params.trace_timeout);
    }

    fn ask<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, index: usize, probes: &[Probe]) {
        for probe in probes {
            self.counts.traces += 1;
            self.counts.trace_bytes += u64::from(Self::PROBE_BYTES);
            cx.send(Message {
                peer: self.destinations[index].peer,
                wire_bytes: Self::PROBE_BYTES,
                entropy: probe.entropy,
                tag: TRACE | index as u32,
                number: probe.number,
                stamp: cx.now(),
                hop_limit: probe.hop_limit,
                ..Message::default()
            });
        }
    }

    /// Sets the one timer of a destination that counts.
    fn wake_later<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, index: usize, delay: Span) {
        let epoch = self.destinations[index].next_epoch();
        cx.set_host_timer(delay, index as u32 | u32::from(epoch) << 16);
    }

    /// Takes over what a discovery that is over has found, and sets the time of the next one.
    fn conclude<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, index: usize) {
        if let Some((lost, next)) = self.destinations[index].end_discovery(&self.params) {
            self.counts.lost_traces += lost as u64;
            self.wake_later(cx, index, next);
        }
    }

    /// Takes the encapsulation off a packet of a flow.
    #[inline]
    fn decapsulate<C: EdgeContext + ?Sized>(&mut self, cx: &C, flow: &mut Flow, packet: &mut Packet) {
        let header = Header::take(packet);
        if let Some(path) = header.path {
            if packet.flags.has(PacketFlags::CE) {
                self.marks_of(cx, flow, packet.src).note(path);
            }
            if !header.guest_ect {
                packet.flags = packet.flags.without(PacketFlags::ECT.with(PacketFlags::CE));
            }
        }
        let echoes = self.params.guest_marks == GuestMarks::AllCongested
            && packet.kind == Kind::Ack
            && packet.flags.has(PacketFlags::ECE);
        if header.marked.is_none() && !echoes {
            return;
        }
        let Some(index) = self.destination_of(cx, flow, packet.src) else { return };
        let Destination { paths, rule, .. } = &mut self.destinations[index];
        if let Some(id) = header.marked {
            self.counts.cuts += u64::from(paths.reported(id, cx.now(), rule));
        }
        if echoes && !paths.all_congested(cx.now(), rule) {
            packet.flags = packet.flags.without(PacketFlags::ECE);
            self.counts.hidden_marks += 1;
        }
    }
}

impl EdgeBalancer for Clove {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        Self {
            params: params.clone(),
            rack: info.rack,
            base_rtts: info.base_rtts.into(),
            index: BTreeMap::new(),
            destinations: Vec::new(),
            senders: BTreeMap::new(),
            marks: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn hooks(_: &Params) -> EdgeHooks {
        // Answers to traces come in by `receiving`'s hook.
        EdgeHooks { sending: true, receiving: true, traces: true, pinned: false }
    }

    #[inline]
    fn sending<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let Some(index) = self.destination_of(cx, flow, packet.dst) else { return };
        if self.destinations[index].note_packet() {
            self.discover(cx, index);
        }
        let place = self.steer(cx, flow, index);
        let path = place.map(|place| &self.destinations[index].paths.list()[place]);
        if let Some(path) = path {
            packet.entropy = path.entropy;
        }
        if self.params.mode == Mode::Ecn {
            let path = path.map(|path| path.id);
            let marked = self.marks_of(cx, flow, packet.dst).tell(cx.now());
            self.counts.relays += u64::from(marked.is_some());
            let guest_ect = path.is_some() && packet.flags.has(PacketFlags::ECT);
            Header { path, guest_ect, marked }.write(packet);
            packet.flags = packet.flags.with_if(PacketFlags::ECT, path.is_some());
        }
    }

    #[inline]
    fn receiving<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, mut packet: Packet) {
        if self.params.mode == Mode::Ecn {
            self.decapsulate(cx, flow, &mut packet);
        }
        cx.deliver(packet);
    }

    fn message<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, message: Message) {
        if message.tag & TRACE != 0 && message.expired.is_none() {
            // A trace that reached its end: the answer is a "port unreachable" of the same size (RFC 792).
            self.counts.answers += 1;
            cx.send(Message {
                wire_bytes: Message::EXPIRED_BYTES,
                tag: REACHED | (message.tag & u32::from(u16::MAX)),
                hop_limit: 0,
                marked: false,
                contents: None,
                ..message
            });
            return;
        }
        let index = usize::from(message.tag as u16);
        let Some(discovery) = self.destinations.get_mut(index).and_then(|there| there.discovery.as_mut())
        else {
            return;
        };
        let next = discovery.answer(message.number, message.expired);
        if discovery.is_over() {
            self.conclude(cx, index);
        } else if let Some(probe) = next {
            self.ask(cx, index, &[probe]);
        }
    }

    fn host_timer<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        let index = usize::from(token as u16);
        match self.destinations[index].tick((token >> 16) as u16) {
            Tick::Void => {}
            Tick::Rediscover => self.discover(cx, index),
            Tick::Over => self.conclude(cx, index),
            Tick::AskAgain(probes) => {
                self.ask(cx, index, &probes);
                self.wake_later(cx, index, self.params.trace_timeout);
            }
        }
    }

    fn state_bytes(&self) -> u64 {
        let destinations: u64 = self.destinations.iter().map(Destination::state_bytes).sum();
        destinations + self.marks.iter().map(Marks::state_bytes).sum::<u64>()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let counts = &self.counts;
        count("flowlets", counts.flowlets);
        count("reroutes", counts.reroutes);
        count("discoveries", counts.discoveries);
        count("traces", counts.traces);
        count("trace_bytes", counts.trace_bytes);
        count("trace_answers", counts.answers);
        count("lost_traces", counts.lost_traces);
        count("destinations", self.destinations.len() as u64);
        count("paths", self.destinations.iter().map(|there| there.paths.list().len() as u64).sum());
        count("relays", counts.relays);
        count("cuts", counts.cuts);
        count("hidden_marks", counts.hidden_marks);
    }
}
