//! CLOVE at the leaf: [its rules](crate::host::clove), run by the switch for all hosts of its rack.
//!
//! The leaf of a packet's sender is the edge: it keeps the flowlets, finds the paths and weighs
//! them, and puts the encapsulation around what leaves the rack. Its own ports and those of all
//! switches above go by the hash of the entropy that it gave the flowlet. The leaf of the receiver
//! takes the encapsulation off, and tells marks to the other leaf in what goes back there. So what
//! one host's packets met, all hosts of the rack know.
//!
//! Hosts do nothing. Switches above answer probes whose hop limit expires, as a router does.

use weft_packet::{HostId, Kind, Kinds, Packet};
use weft_units::{Purpose, Span, Stream, Time, mix64};

use self::trace::Word;
use super::ecmp::{self, Ecmp};
use crate::host::clove::{CloveNode, Mode, Params, Probe, Rules, Steered};
use crate::{
    Arrival, Expired, NextHops, PortId, Ports, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme,
};

#[cfg(test)]
mod tests;
mod trace;

/// CLOVE at one switch.
#[derive(Debug)]
pub struct CloveLeaf {
    switch: u32,
    ecmp: Ecmp,
    leaf: Option<Box<Leaf>>,
}

/// State that only a leaf has.
#[derive(Debug)]
struct Leaf {
    rack: u16,
    base_rtts: Box<[Span]>,
    rules: Rules,
    /// By rack.
    numbers: Box<[Numbers]>,
    /// By number of a destination.
    ways: Vec<UplinkHash>,
    /// Flows by a hash of their five-tuple. Those that meet in an entry have their flowlets
    /// together.
    flows: Box<[Steered]>,
    seed: u64,
}

/// Numbers of a rack in the rules, as a destination and as a sender; [`Numbers::NONE`] before it
/// was one.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    destination: u16,
    sender: u16,
}

impl Numbers {
    const NONE: u16 = u16::MAX;
}

/// How probes of a discovery leave: as packets left when it began.
#[derive(Debug, Clone, Default)]
struct UplinkHash {
    /// The host in whose name they are sent, so that answers find back.
    own: HostId,
    rack: u16,
    ports: Box<[PortId]>,
    weights: Box<[u32]>,
}

impl UplinkHash {
    /// Uplink hash of this packet.
    fn of(packet: &Packet, hops: &NextHops<'_>) -> Self {
        Self { own: packet.src, rack: hops.rack, ports: hops.ports.into(), weights: hops.weights.into() }
    }

    /// The port by which a packet with this entropy leaves.
    fn port(&self, ecmp: &Ecmp, entropy: u32) -> Option<PortId> {
        let hops = NextHops { ports: &self.ports, weights: &self.weights, rack: self.rack };
        self.ports.get(ecmp.hash_choice(entropy, &hops)?).copied()
    }
}

/// The leaf as the rules see it.
struct AtLeaf<'a, C: ?Sized> {
    cx: &'a mut C,
    ecmp: &'a Ecmp,
    ways: &'a [UplinkHash],
    /// A packet is at hand, and with it the ports that lead where it goes. Without one the leaf
    /// does not know them.
    has_packet: bool,
}

impl<C: SwitchContext + ?Sized> CloveNode for AtLeaf<'_, C> {
    #[inline]
    fn now(&self) -> Time {
        self.cx.now()
    }

    #[inline]
    fn random(&mut self) -> &mut Stream {
        self.cx.random()
    }

    /// The next packet to that rack begins a discovery that is due.
    fn may_discover(&self, _rack: u16) -> bool {
        self.has_packet
    }

    fn ask(&mut self, destination: usize, peer: HostId, probe: Probe) {
        let ways = &self.ways[destination];
        if let Some(port) = ways.port(self.ecmp, probe.entropy) {
            self.cx.send(port, trace::probe(ways.own, peer, probe));
        }
    }

    fn wake(&mut self, delay: Span, token: u32) {
        self.cx.set_timer(delay, token);
    }
}

impl Leaf {
    fn new(rack: u16, params: &Params, info: &SwitchInfo<'_>) -> Self {
        let none = Numbers { destination: Numbers::NONE, sender: Numbers::NONE };
        Self {
            rack,
            base_rtts: info.base_rtts.into(),
            rules: Rules::new(params),
            numbers: vec![none; usize::from(info.racks)].into_boxed_slice(),
            ways: Vec::new(),
            flows: vec![Steered::default(); params.entries as usize].into_boxed_slice(),
            seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
        }
    }

    /// The base round trip to a rack.
    fn base_rtt(&self, rack: u16) -> Span {
        self.base_rtts.get(usize::from(rack)).copied().unwrap_or_default()
    }

    /// The number of a rack as a destination.
    #[inline]
    fn destination_of(&mut self, rack: u16) -> usize {
        match self.numbers[usize::from(rack)].destination {
            Numbers::NONE => self.add_destination(rack),
            number => usize::from(number),
        }
    }

    #[cold]
    fn add_destination(&mut self, rack: u16) -> usize {
        let number = self.rules.add_destination(rack, self.base_rtt(rack));
        self.ways.push(UplinkHash::default());
        self.numbers[usize::from(rack)].destination = number as u16;
        number
    }

    /// The number of a rack as a sender: its leaf.
    #[inline]
    fn sender_of(&mut self, rack: u16) -> usize {
        match self.numbers[usize::from(rack)].sender {
            Numbers::NONE => self.add_sender(rack),
            number => usize::from(number),
        }
    }

    #[cold]
    fn add_sender(&mut self, rack: u16) -> usize {
        let number = self.rules.add_sender(self.base_rtt(rack));
        self.numbers[usize::from(rack)].sender = number as u16;
        number
    }

    #[inline]
    fn slot(&self, packet: &Packet) -> usize {
        mix64(self.seed ^ u64::from(packet.entropy)) as usize & (self.flows.len() - 1)
    }

    /// A packet of the rack leaves for another: it is steered by its entropy, and encapsulated.
    #[inline]
    fn send<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        ecmp: &Ecmp,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) {
        let index = self.destination_of(hops.rack);
        if self.rules.destinations[index].is_asleep() {
            self.ways[index] = UplinkHash::of(packet, hops);
            self.rules.destinations[index].peer = packet.dst;
        }
        let slot = self.slot(packet);
        let mut at = AtLeaf { cx: &mut *cx, ecmp, ways: &self.ways, has_packet: true };
        let path = self.rules.steer(&mut at, &mut self.flows[slot], index, packet);
        if self.rules.params.mode == Mode::Ecn {
            let sender = self.sender_of(hops.rack);
            self.rules.encapsulate(cx.now(), path, sender, packet);
        }
    }

    /// A packet for a host of the rack came from another rack.
    #[inline]
    fn receive<C: SwitchContext + ?Sized>(&mut self, cx: &C, packet: &mut Packet) {
        let from = cx.rack_of(packet.src);
        if from == self.rack || self.rules.params.mode == Mode::EdgeFlowlet {
            return;
        }
        let told = self.rules.decapsulate(packet);
        if let Some(path) = told.marked_on {
            let sender = self.sender_of(from);
            self.rules.note_mark(sender, path);
        }
        if told.is_of_paths() {
            let index = self.destination_of(from);
            self.rules.hear(cx.now(), index, told, packet);
        }
    }

    /// A probe of this leaf was answered.
    fn answered<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        ecmp: &Ecmp,
        answer: &Packet,
        expired: Option<Expired>,
    ) {
        let index = usize::from(self.numbers[usize::from(cx.rack_of(answer.src))].destination);
        let mut at = AtLeaf { cx, ecmp, ways: &self.ways, has_packet: false };
        self.rules.answered(&mut at, index, answer.seq, expired);
    }

    /// Next step for a packet, in words.
    fn explain(&self, now: Time, packet: &Packet, rack: u16) -> &'static str {
        let index = usize::from(self.numbers[usize::from(rack)].destination);
        let Some(there) = self.rules.destinations.get(index) else {
            return "no path is known yet: the hash of its own five-tuple";
        };
        match (self.rules.goes_on(now, &self.flows[self.slot(packet)], index), self.rules.params.mode) {
            (Some(Some(_)), _) => "the flowlet goes on and stays on its path",
            (Some(None), _) => {
                "the flowlet began before any path was known, and stays where its own hash leads"
            }
            (None, _) if there.paths.list().is_empty() => {
                "a new flowlet, and no path is known: the hash of its own five-tuple"
            }
            (None, Mode::Ecn) => {
                "a new flowlet: the path whose turn it is, by weights that marks have shifted"
            }
            (None, Mode::EdgeFlowlet) => "a new flowlet: one of the known paths by chance",
        }
    }
}

impl CloveLeaf {
    /// A packet that a leaf sent: a probe, or the answer to one.
    #[cold]
    fn control<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        port: PortId,
    ) -> Arrival {
        let end = self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.dst));
        match (Word::read(packet), end) {
            (Some(Word::Probe { left: 0 | 1 }), _) => {
                let here = Expired { switch: self.switch, port: port.0 };
                cx.send(port, trace::answer(packet, Word::Expired(here)));
            }
            (Some(Word::Probe { .. }), Some(leaf)) => {
                leaf.rules.note_answer();
                cx.send(port, trace::answer(packet, Word::Reached));
            }
            (Some(Word::Probe { left }), None) => {
                Word::Probe { left: left - 1 }.write(packet);
                return Arrival::Pass;
            }
            (Some(Word::Expired(at)), Some(leaf)) => leaf.answered(cx, &self.ecmp, packet, Some(at)),
            (Some(Word::Reached), Some(leaf)) => leaf.answered(cx, &self.ecmp, packet, None),
            (Some(_), None) => return Arrival::Pass,
            (None, _) => {}
        }
        Arrival::Consume
    }
}

impl SwitchScheme for CloveLeaf {
    type Params = Params;

    const LOOKS_AT_QUEUES: bool = false;

    fn hooks(params: &Params) -> SwitchHooks {
        let arriving = match params.mode {
            Mode::Ecn => Kinds::ALL,
            // No packet is encapsulated.
            Mode::EdgeFlowlet => Kinds::of(&[Kind::Control]),
        };
        SwitchHooks { on_arrival: arriving, on_arrival_by: Ports::ToSwitches, ..SwitchHooks::NONE }
    }

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        Self {
            switch: info.switch,
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
        if let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.src)) {
            leaf.send(cx, &self.ecmp, packet, hops);
        }
        self.ecmp.choose(cx, packet, hops)
    }

    #[inline]
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        port: PortId,
    ) -> Arrival {
        if packet.kind == Kind::Control {
            return self.control(cx, packet, port);
        }
        if let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.dst)) {
            leaf.receive(cx, packet);
        }
        Arrival::Forward
    }

    fn on_timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        if let Some(leaf) = &mut self.leaf {
            let mut at = AtLeaf { cx, ecmp: &self.ecmp, ways: &leaf.ways, has_packet: false };
            leaf.rules.timer(&mut at, token);
        }
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        match self.leaf.as_ref().filter(|leaf| leaf.rack == cx.rack_of(packet.src)) {
            Some(leaf) => Some(leaf.explain(cx.now(), packet, hops.rack).to_owned()),
            None => self.ecmp.explain(cx, packet, hops),
        }
    }

    /// Bytes of the rules, 16 bytes for each entry of the table of flowlets, and two numbers for
    /// each rack.
    fn state_bytes(&self) -> u64 {
        self.leaf.as_ref().map_or(0, |leaf| {
            let tables = leaf.flows.len() * size_of::<Steered>() + leaf.numbers.len() * size_of::<Numbers>();
            leaf.rules.state_bytes() + tables as u64
        })
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        if let Some(leaf) = &self.leaf {
            leaf.rules.counters(count);
        }
    }
}
