//! CLOVE's rules, wherever they run: at a host, for itself, or at a leaf, for all hosts of its
//! rack.
//!
//! The place has its own ways to know which destination a packet goes to and who sent it; here
//! destinations and senders are numbers that the place was given for them.

use weft_packet::{HostId, Kind, Kinds, Packet, PacketFlags, Route};
use weft_units::{Span, Stream, Time};

use super::destination::{Destination, Tick};
use super::discovery::Probe;
use super::header::{Header, PathId};
use super::params::{Choice, GuestMarks, Mode, Params, Steers};
use super::relay::Marks;
use crate::Expired;
use crate::flowlet::FlowletClock;

/// Where the rules run.
pub trait CloveNode {
    /// The time now.
    fn now(&self) -> Time;

    /// The node's own random stream.
    fn random(&mut self) -> &mut Stream;

    /// Whether a discovery to a rack may begin now: if there is more than one way there, and it is
    /// known here.
    fn may_discover(&self, rack: u16) -> bool;

    /// Sends a probe towards a host of the destination with this number.
    fn ask(&mut self, destination: usize, peer: HostId, probe: Probe);

    /// Asks for [`Rules::on_timer`] with this token after `delay`.
    fn wake(&mut self, delay: Span, token: u32);
}

/// Knowledge of destinations and senders.
#[derive(Debug)]
pub struct Rules {
    /// The parameters.
    pub params: Params,
    /// Where packets go to, by number.
    pub destinations: Vec<Destination>,
    /// The marks on packets that came from a sender, by the sender's number.
    marks: Vec<Marks>,
    /// Packet kinds that keep their own entropy.
    by_ecmp: Kinds,
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

/// State of a flow that is steered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Steered {
    /// The path of the flowlet, and where it was in the list.
    path: Option<PathId>,
    guess: u8,
    /// When its packets passed.
    pub flowlets: FlowletClock,
}

/// Contents of a packet's encapsulation.
#[derive(Debug, Clone, Copy)]
pub struct OverlayHeader {
    /// The path that the packet took, if it got a mark there: to be told to whoever sent it.
    pub marked_on: Option<PathId>,
    /// A path of this edge on which a packet got a mark.
    tells: Option<PathId>,
    /// It echoes a mark to a guest that gets only some.
    echoes: bool,
}

impl OverlayHeader {
    /// Whether it is about the paths to where it came from.
    pub const fn is_of_paths(self) -> bool {
        self.tells.is_some() || self.echoes
    }
}

impl Rules {
    /// Bytes of a probe: the least Ethernet frame.
    pub const PROBE_BYTES: u16 = Packet::LEAST_WIRE_BYTES;

    /// Nothing is known.
    pub fn new(params: &Params) -> Self {
        Self {
            params: params.clone(),
            destinations: Vec::new(),
            marks: Vec::new(),
            by_ecmp: params.acknowledgements.by_ecmp(),
            counts: Counts::default(),
        }
    }

    /// The number of a new destination in this rack, so far away.
    pub fn add_destination(&mut self, rack: u16, base_rtt: Span) -> usize {
        self.destinations.push(Destination::new(rack, base_rtt, &self.params));
        self.destinations.len() - 1
    }

    /// The number of a new sender, so far away.
    pub fn add_sender(&mut self, base_rtt: Span) -> usize {
        self.marks.push(Marks::new(self.params.report_interval(base_rtt)));
        self.marks.len() - 1
    }

    /// A far edge answered a probe that reached it.
    pub fn note_answer(&mut self) {
        self.counts.answers += 1;
    }

    /// Steers a packet to a destination, to which a discovery begins if it is time: the path that
    /// it takes. None before anything is known, and for what ECMP is to carry; then it keeps its
    /// own entropy.
    #[inline]
    pub fn steer(
        &mut self,
        at: &mut impl CloveNode,
        flow: &mut Steered,
        index: usize,
        packet: &mut Packet,
    ) -> Option<PathId> {
        if self.by_ecmp.has(packet.kind) {
            return None;
        }
        if self.destinations[index].note_packet() {
            self.discover(at, index);
        }
        let place = self.turn(at, flow, index)?;
        let path = &self.destinations[index].paths.list()[place];
        match self.params.steers {
            Steers::Entropy => packet.entropy = path.entropy,
            Steers::Routes => packet.route = Route::label(path.entropy as u16),
        }
        Some(path.id)
    }

    /// Where in the destination's list the path of the next packet is. None before anything is
    /// known.
    #[inline]
    fn turn(&mut self, at: &mut impl CloveNode, flow: &mut Steered, index: usize) -> Option<usize> {
        let destination = &mut self.destinations[index];
        if !flow.flowlets.begins(at.now(), destination.gap) {
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
                count => Some(at.random().below(count) as usize),
            },
            Mode::Ecn => match self.params.choice {
                Choice::InTurn => destination.paths.next_turn(),
                Choice::AtRandom => destination.paths.draw(at.random()),
            },
        };
        let path = place.map(|place| destination.paths.list()[place].id);
        self.counts.reroutes += u64::from(flow.path.is_some() && path != flow.path);
        flow.path = path;
        flow.guess = place? as u8;
        place
    }

    /// Puts the encapsulation around a packet that takes `path`, with what there is to tell the
    /// sender at the far end.
    #[inline]
    pub fn encapsulate(&mut self, now: Time, path: Option<PathId>, sender: usize, packet: &mut Packet) {
        let marked = self.marks[sender].tell(now);
        self.counts.relays += u64::from(marked.is_some());
        let guest = |flag| path.is_some() && packet.flags.has(flag);
        let header =
            Header { path, guest_ect: guest(PacketFlags::ECT), guest_ce: guest(PacketFlags::CE), marked };
        header.write(packet);
        if path.is_some() {
            packet.flags = packet.flags.without(PacketFlags::CE).with(PacketFlags::ECT);
        }
    }

    /// Takes the encapsulation off a packet.
    #[inline]
    pub fn decapsulate(&self, packet: &mut Packet) -> OverlayHeader {
        let header = Header::take(packet);
        let is_marked = packet.flags.has(PacketFlags::CE);
        if header.path.is_some() {
            if !header.guest_ect {
                packet.flags = packet.flags.without(PacketFlags::ECT.with(PacketFlags::CE));
            }
            packet.flags = packet.flags.with_if(PacketFlags::CE, header.guest_ce);
        }
        let echoes = self.params.guest_marks == GuestMarks::AllCongested
            && packet.kind == Kind::Ack
            && packet.flags.has(PacketFlags::ECE);
        OverlayHeader { marked_on: header.path.filter(|_| is_marked), tells: header.marked, echoes }
    }

    /// A packet of a sender came marked by this path.
    #[inline]
    pub fn note_mark(&mut self, sender: usize, path: PathId) {
        self.marks[sender].note(path);
    }

    /// A packet came from a destination and said something of the paths there: weights change, and
    /// its guest sees an echo only if it is to.
    #[inline]
    pub fn hear(&mut self, now: Time, index: usize, told: OverlayHeader, packet: &mut Packet) {
        let Destination { paths, rule, .. } = &mut self.destinations[index];
        if let Some(id) = told.tells {
            self.counts.cuts += u64::from(paths.reported(id, now, rule));
        }
        if told.echoes && !paths.all_congested(now, rule) {
            packet.flags = packet.flags.without(PacketFlags::ECE);
            self.counts.hidden_marks += 1;
        }
    }

    /// A probe with this number was answered: where its hop limit expired, or by the receiving
    /// host.
    pub fn answered(&mut self, at: &mut impl CloveNode, index: usize, number: u32, expired: Option<Expired>) {
        let there = self.destinations.get_mut(index);
        let Some(discovery) = there.and_then(|there| there.discovery.as_mut()) else { return };
        let next = discovery.answer(number, expired);
        if discovery.is_over() {
            self.conclude(at, index);
        } else if let Some(probe) = next {
            self.ask(at, index, &[probe]);
        }
    }

    /// A timer is due.
    pub fn timer(&mut self, at: &mut impl CloveNode, token: u32) {
        let index = usize::from(token as u16);
        match self.destinations[index].tick((token >> 16) as u16) {
            Tick::Void => {}
            Tick::Rediscover => self.discover(at, index),
            Tick::Over => self.conclude(at, index),
            Tick::AskAgain(probes) => {
                self.ask(at, index, &probes);
                self.wake_later(at, index, self.params.trace_timeout);
            }
        }
    }

    /// Begins to look for paths.
    #[cold]
    fn discover(&mut self, at: &mut impl CloveNode, index: usize) {
        let destination = &mut self.destinations[index];
        if !at.may_discover(destination.rack) {
            return destination.sleep();
        }
        self.counts.discoveries += 1;
        let probes = destination.begin_discovery(at.random(), &self.params);
        self.ask(at, index, &probes);
        self.wake_later(at, index, self.params.trace_timeout);
    }

    fn ask(&mut self, at: &mut impl CloveNode, index: usize, probes: &[Probe]) {
        let peer = self.destinations[index].peer;
        for &probe in probes {
            self.counts.traces += 1;
            self.counts.trace_bytes += u64::from(Self::PROBE_BYTES);
            at.ask(index, peer, probe);
        }
    }

    /// Sets the one timer of a destination that counts.
    fn wake_later(&mut self, at: &mut impl CloveNode, index: usize, delay: Span) {
        let epoch = self.destinations[index].next_epoch();
        at.wake(delay, index as u32 | u32::from(epoch) << 16);
    }

    /// Takes over what a discovery that is over has found, and sets the time of the next one.
    fn conclude(&mut self, at: &mut impl CloveNode, index: usize) {
        if let Some((lost, next)) = self.destinations[index].end_discovery(&self.params) {
            self.counts.lost_traces += lost as u64;
            self.wake_later(at, index, next);
        }
    }

    /// Whether a packet that comes now is of a flowlet that began before, and which path that has.
    pub fn goes_on(&self, now: Time, flow: &Steered, index: usize) -> Option<Option<PathId>> {
        let there = &self.destinations[index];
        let is_within = flow.flowlets.pause(now).is_some_and(|pause| pause <= there.gap);
        let is_known = flow.path.is_none_or(|id| there.paths.place_of(id, usize::from(flow.guess)).is_some());
        (is_within && is_known).then_some(flow.path)
    }

    /// Bytes that it would keep.
    pub fn state_bytes(&self) -> u64 {
        let destinations: u64 = self.destinations.iter().map(Destination::state_bytes).sum();
        destinations + self.marks.iter().map(Marks::state_bytes).sum::<u64>()
    }

    /// Counters of the rules, by name.
    pub fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
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
