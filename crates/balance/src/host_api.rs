//! Interface of a scheme at a host's edge (its virtual switch).

use std::sync::Arc;

use weft_packet::{HostId, Packet, Route};
use weft_units::{Rate, Span, Stream, Time};

/// Configuration of a scheme at its host before the first packet: the addressing plan, and what an
/// operator measured once on the idle fabric.
#[derive(Debug, Clone)]
pub struct HostInfo<'a> {
    /// The host.
    pub host: HostId,
    /// Rack of the host: the number of its edge switch, from 0.
    pub rack: u16,
    /// How many racks the fabric has.
    pub racks: u16,
    /// The hosts of its rack, itself among them, in ascending order.
    pub rack_hosts: &'a [HostId],
    /// The first host of each rack.
    pub first_hosts: &'a [HostId],
    /// The rate of its cable.
    pub rate: Rate,
    /// By rack: how many explicit routes lead there (see [`HostContext::routes_to_rack`]) when the
    /// run begins.
    pub routes: &'a [u16],
    /// By rack: how long a full-size packet and its acknowledgement take there and back when
    /// nothing else moves, stack delays included.
    pub base_rtts: &'a [Span],
    /// The seed of the run.
    pub seed: u64,
}

/// A packet of a scheme's own, from its host to the scheme at another. It takes bytes, queues and
/// time like any other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Where it goes to; at the far end, where it came from. Not the host itself.
    pub peer: HostId,
    /// Bytes on the wire, all headers included, and `contents` too.
    pub wire_bytes: u16,
    /// The explicit route, if it has one.
    pub route: Route,
    /// Entropy that ECMP hashes.
    pub entropy: u32,
    /// Field that the scheme writes: the kind of the message, and whatever else fits.
    pub tag: u32,
    /// Field that the scheme writes: a number.
    pub number: u32,
    /// Field that the scheme writes: a time, mostly of sending.
    pub stamp: Time,
    /// Whether queues may mark it. At the far end, whether one did.
    pub marked: bool,
    /// The switch with this number on the way, from 1, does not pass it on but sends it back with
    /// [`Message::expired`], as routers do when a TTL expires; 0 for none. Only with
    /// [`HostHooks::traces`].
    pub hop_limit: u8,
    /// Where its hop limit expired.
    pub expired: Option<Expired>,
    /// Contents that do not fit into the fields. Dropped with the packet.
    pub contents: Option<Arc<[u32]>>,
}

impl Message {
    /// Bytes on the wire of the answer to a packet whose hop limit expired: the least Ethernet
    /// frame that holds an IP header, an ICMP header and the first 28 bytes of the packet (RFC
    /// 792).
    pub const EXPIRED_BYTES: u16 = 18 + 20 + 8 + 28;
}

/// Where a hop limit expired, as a router's answer tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// The switch.
    pub switch: u32,
    /// The port by which the packet had come in: its interface's address.
    pub port: u16,
}

/// The host around a scheme.
pub trait HostContext {
    /// The time now.
    fn now(&self) -> Time;

    /// The rack of a host (the edge knows the addressing plan).
    fn rack_of(&self, host: HostId) -> u16;

    /// How many explicit routes lead to a rack: labels 0 up to this number are distinct paths. 1 to
    /// its own. It changes when the fabric does, unless the scheme asked for [`HostHooks::pinned`].
    fn routes_to_rack(&self, rack: u16) -> u16;

    /// How many explicit routes lead to a host. 1 within a rack.
    fn routes_to(&self, host: HostId) -> u16 {
        self.routes_to_rack(self.rack_of(host))
    }

    /// How many hosts the fabric has: their numbers begin at 0.
    fn hosts(&self) -> u32;

    /// How many explicit routes lead from one rack to another, as an operator's map has it.
    fn routes_between(&self, from: u16, to: u16) -> u16;

    /// The links between switches that an explicit route takes, each with its number and its rate
    /// when the run began, as an operator's map has it. For central controllers: it takes a walk
    /// through the fabric's tables. Empty within a rack.
    fn path(&self, from: u16, to: u16, label: u16) -> Vec<(u32, Rate)>;

    /// Bytes of headers in the wire size of every packet of a transport; what is left is payload. A
    /// world where packets have no headers need not say so.
    fn header_bytes(&self) -> u16 {
        0
    }

    /// How long a packet that the host sends now waits in the host's own queue before it goes onto
    /// its cable. A world without such a queue need not say so.
    fn own_wait(&self) -> Span {
        Span::ZERO
    }

    /// The host's own random stream.
    fn random(&mut self) -> &mut Stream;

    /// Hands a packet that came in to the transport. Only during [`HostScheme::on_receive`] and
    /// [`HostScheme::flow_timer`].
    fn deliver(&mut self, packet: Packet);

    /// Asks for [`HostScheme::flow_timer`] of the flow at hand after `delay`. One a flow is kept:
    /// the last one asked for. Only in calls about a flow.
    fn set_flow_timer(&mut self, delay: Span);

    /// Queues a packet of the scheme's own at the host. [`HostScheme::message`] gets it at the far
    /// end.
    fn send(&mut self, message: Message);

    /// Asks for [`HostScheme::host_timer`] with this token after `delay`. Timers are not taken
    /// back: a scheme that has changed its mind ignores the call.
    fn set_host_timer(&mut self, delay: Span, token: u32);
}

/// Which optional calls a scheme wants, and what it wants of the switches. What it does not ask for
/// costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools)] // Each is a wish of its own.
pub struct HostHooks {
    /// [`HostScheme::on_send`], for every packet that a transport sends; [`HostScheme::timed_out`]
    /// and [`HostScheme::finished`]; and the host's own calls: [`HostScheme::start`] and
    /// [`HostScheme::host_timer`].
    pub on_send: bool,
    /// [`HostScheme::on_receive`], for every packet that reaches the host; the scheme must then
    /// deliver it. And [`HostScheme::message`].
    pub on_receive: bool,
    /// Explicit routes mean the same paths throughout the run, as rules that were installed once:
    /// over every link that works at some time. A packet whose route leads over a link that is down
    /// is dropped there. Otherwise routes count the next hops that routing allows at the moment,
    /// and a failure renumbers them.
    pub pinned: bool,
    /// Switches answer packets whose [`Message::hop_limit`] expires.
    pub traces: bool,
}

/// A load balancer at hosts: one value a host, and one `Flow` a flow and end.
pub trait HostScheme: Sized {
    /// Parameters of the scheme, as the spec gives them.
    type Params;
    /// State of a flow at one end. All schemes' flows share the room of the largest: at most 72
    /// bytes.
    type Flow: Default;

    /// The scheme at one host.
    fn new(params: &Self::Params, info: &HostInfo<'_>) -> Self;

    /// Hooks that the scheme subscribes to, with these parameters.
    fn hooks(params: &Self::Params) -> HostHooks;

    /// The run begins: time to set timers and to send.
    fn start<C: HostContext + ?Sized>(&mut self, _cx: &mut C) {}

    /// A packet of `flow` is about to leave the host: the scheme may set its route, entropy and
    /// header bits.
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Self::Flow, packet: &mut Packet);

    /// A packet of `flow` reached the host: to be delivered now or later, in whatever order.
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, _flow: &mut Self::Flow, packet: Packet) {
        cx.deliver(packet);
    }

    /// The retransmission timer of `flow`, which this host sends, expired. The retransmission comes
    /// next.
    fn timed_out<C: HostContext + ?Sized>(&mut self, _cx: &mut C, _flow: &mut Self::Flow) {}

    /// Everything that this host had to send of `flow` is acknowledged. Nothing more comes of it.
    fn finished<C: HostContext + ?Sized>(&mut self, _cx: &mut C, _flow: &mut Self::Flow) {}

    /// The timer of `flow` is due.
    fn flow_timer<C: HostContext + ?Sized>(&mut self, _cx: &mut C, _flow: &mut Self::Flow) {}

    /// A packet of the scheme's own reached the host: from the scheme at another host, or back from
    /// a switch.
    fn message<C: HostContext + ?Sized>(&mut self, _cx: &mut C, _message: Message) {}

    /// A timer of the host is due.
    fn host_timer<C: HostContext + ?Sized>(&mut self, _cx: &mut C, _token: u32) {}

    /// Packets of `flow` that the scheme holds back now.
    fn held(_flow: &Self::Flow) -> usize {
        0
    }

    /// Bytes of state that it keeps at this host, flows aside.
    fn state_bytes(&self) -> u64;

    /// Bytes of memory that tables of this host take from the beginning, as those by rack and path
    /// do: a fabric of many hosts is refused if there is no room for them. 0 if they are small.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// Counters of the scheme, by name, for the results.
    fn counters(&self, _count: &mut dyn FnMut(&'static str, u64)) {}
}
