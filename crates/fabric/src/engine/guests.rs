//! Hosts that live in a time of their own: real kernels. The engine sees of them what it sees of
//! any host, packets at its cable; what is behind is not its business.
//!
//! The fabric and the guests take queue. What a guest begins to send is felt at a switch no earlier
//! than its cable's delay and the least packet later, so the fabric may be that far ahead; and the
//! guests may go on until the next event of the fabric, for before it nothing arrives at them. An
//! edge scheme works on each packet that its host sends, in the order of all events, so there the
//! fabric is never ahead.

use std::error::Error;
use std::ops::Range;

use weft_packet::{FlowId, HostId, Kind, Packet};
use weft_transport::Transports;
use weft_units::{Span, Time};

use super::event_set::{EventKey, EventKind};
use super::host::{At, GuestConnections, GuestFlow, Here, Nic, Plan, Side};
use super::partition::Partition;

/// Why guests do not go on.
pub type GuestError = Box<dyn Error + Send + Sync>;

/// What a host's card sent, as bytes, and what of it ends of flows count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// The packet as the host wrote it.
    pub bytes: Vec<u8>,
    /// The bytes of the flow that it carries, from 0; empty if it carries none.
    pub payload: Range<u64>,
    /// How many bytes of the flow it acknowledges.
    pub acknowledged: u64,
    /// What that is of the flow, if its connection is one of several that carry the flow (MPTCP).
    /// Then `payload` and `acknowledged` count bytes of the connection, and the packet has the
    /// number of the subflow.
    pub data: Option<Data>,
    /// The hash of its five-tuple, where it is not that of its flow.
    pub entropy: Option<u32>,
    /// Whether its host sends no more of its connection (FIN).
    pub ends: bool,
}

/// What a packet of a subflow is to the flow (RFC 8684 §3.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Data {
    /// The bytes of the flow that it carries; empty if it carries none.
    pub payload: Range<u64>,
    /// How many bytes of the flow it acknowledges, if it says so.
    pub acknowledged: Option<u64>,
}

/// A packet that a guest begins to send.
#[derive(Debug, Clone)]
pub struct GuestPacket {
    /// When its first bit leaves the host. From one host, no packet begins before the one before it
    /// has left.
    pub begins: Time,
    /// Its fields for switches: flow or connection, ends, kind, segment, size, marks. The engine
    /// sets the others.
    pub packet: Packet,
    /// The packet itself.
    pub frame: Frame,
}

/// Hosts in a time of their own. At first they have run nothing; what they run begins at
/// [`Time::ZERO`].
pub trait GuestHosts: Send {
    /// Whether this host is one of them.
    fn has(&self, host: HostId) -> bool;

    /// What any of them begins to send is felt by a switch no earlier than this much later; at
    /// least 1 ps.
    fn felt_after(&self) -> Span;

    /// A flow from one of them starts at `at`, which they have not reached.
    ///
    /// # Errors
    /// They are gone.
    fn start_flow(&mut self, flow: FlowId, at: Time) -> Result<(), GuestError>;

    /// A packet reaches one of them at `at`, which they have not reached, with the marks of
    /// `packet`.
    ///
    /// # Errors
    /// They are gone.
    fn deliver(&mut self, packet: &Packet, bytes: Vec<u8>, at: Time) -> Result<(), GuestError>;

    /// What a packet of a simulated host is to one of them, which it reaches at `at`. One with the
    /// number of the segment after the last acknowledges the end of the flow, too, and is the end
    /// of what this side sends.
    ///
    /// # Errors
    /// It is of no connection.
    fn frame(&mut self, packet: &Packet, at: Time) -> Result<Frame, GuestError>;

    /// A packet of one of them reaches a simulated host at `at`.
    fn reaches_simulated(&mut self, packet: &Packet, frame: &Frame, at: Time);

    /// When something happens inside next, if ever.
    fn next_event(&self) -> Option<Time>;

    /// Runs what is before `until`, or less if what is sent may be felt before; returns the instant
    /// before which everything has run, and appends what was sent.
    ///
    /// # Errors
    /// They are gone.
    fn advance(&mut self, until: Time, sent: &mut Vec<GuestPacket>) -> Result<Time, GuestError>;

    /// Whether something goes on inside that the run is to wait for, beside flows.
    fn is_busy(&self) -> bool {
        false
    }

    /// When the last of that begins.
    fn last_start(&self) -> Time {
        Time::ZERO
    }

    /// The flows whose sending ends are done since this was last asked.
    fn take_ended(&mut self) -> Vec<FlowId>;

    /// The least time after which a sender that hears nothing sends again.
    fn least_timeout(&self) -> Span;
}

/// Values in places that are used again.
pub(super) struct Places<V> {
    places: Vec<Option<V>>,
    free: Vec<u32>,
}

impl<V> Places<V> {
    const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn put(&mut self, value: V) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(value);
            return place;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    pub(super) fn take(&mut self, place: u32) -> Option<V> {
        let value = self.places.get_mut(place as usize)?.take();
        if value.is_some() {
            self.free.push(place);
        }
        value
    }
}

/// The guests of a run, and what is on its way between them and the fabric.
pub struct Guests<'a> {
    hosts: &'a mut dyn GuestHosts,
    /// How far the fabric may be ahead.
    ahead: Span,
    /// Everything before has run inside.
    reached: Time,
    /// After such a silence a timer has expired: less than the least timeout, more than anything
    /// else.
    quiet: Span,
    /// The flows that begin or end at guests, by number.
    flows: Vec<Option<Box<GuestFlow>>>,
    /// What a card begins to send later than now.
    waiting: Places<GuestPacket>,
    /// What packets are that an edge scheme has now: [`Packet::next`] names the place.
    pub(super) inside: Places<Frame>,
    /// What belongs to no flow.
    pub(super) connections: GuestConnections,
    sent: Vec<GuestPacket>,
    failure: Option<GuestError>,
}

impl<'a> Guests<'a> {
    /// These, before the run; `lockstep` where an edge scheme sees each packet.
    pub fn new(hosts: &'a mut dyn GuestHosts, flows: usize, lockstep: bool) -> Self {
        let instant = Span::from_ps(1);
        let quiet = Span::from_ps(hosts.least_timeout().as_ps() / 4 * 3);
        let ahead = if lockstep { instant } else { hosts.felt_after().max(instant) };
        Self {
            hosts,
            ahead,
            reached: Time::ZERO,
            quiet,
            flows: (0..flows).map(|_| None).collect(),
            waiting: Places::new(),
            inside: Places::new(),
            connections: GuestConnections::default(),
            sent: Vec::new(),
            failure: None,
        }
    }

    /// Whether a packet is one for a guest. What schemes send to each other is not.
    #[inline]
    pub fn receives(&self, packet: &Packet) -> bool {
        !packet.kind.is_of_scheme() && self.hosts.has(packet.dst)
    }

    /// Whether this host is one of them.
    pub fn has(&self, host: HostId) -> bool {
        self.hosts.has(host)
    }

    /// Whether something goes on inside that the run is to wait for, beside flows.
    pub fn is_busy(&self) -> bool {
        self.hosts.is_busy()
    }

    /// Whether nothing will ever happen inside again.
    pub fn is_idle(&self) -> bool {
        self.hosts.next_event().is_none()
    }

    /// Why they are gone, if they are.
    pub const fn failure(&self) -> Option<&GuestError> {
        self.failure.as_ref()
    }

    /// The same, for good.
    pub const fn take_failure(&mut self) -> Option<GuestError> {
        self.failure.take()
    }

    fn note(&mut self, result: Result<(), GuestError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    pub(super) fn deliver(&mut self, packet: &Packet, frame: Frame, at: Time) {
        let delivered = self.hosts.deliver(packet, frame.bytes, at);
        self.note(delivered);
    }

    /// Lets them go on until then, or less. What they send comes in the order in which it begins.
    fn advance(&mut self, until: Time) -> Vec<GuestPacket> {
        let mut sent = std::mem::take(&mut self.sent);
        match self.hosts.advance(until, &mut sent) {
            Ok(reached) => self.reached = reached,
            Err(error) => self.note(Err(error)),
        }
        sent.sort_by_key(|sent| (sent.begins, sent.packet.src));
        sent
    }
}

/// A call about a flow of guests at one of its hosts.
macro_rules! at_guest {
    ($partition:ident, $guests:ident, $plan:expr, $host:expr, $flow:expr, |$state:ident, $at:ident| $call:expr) => {{
        let host = $host;
        let place = $partition.network.map.cable(host) as usize;
        let here = Here { nic: Nic::new(&mut $partition.network, host), common: &mut $partition.common };
        let $at = &mut At { host: &mut $partition.hosts[place], plan: $plan, here };
        let (number, quiet) = ($plan.whole($flow), $guests.quiet);
        let $state =
            $guests.flows[number.index()].get_or_insert_with(|| Box::new(GuestFlow::new(number, quiet)));
        $call
    }};
}

impl<'a, T: Transports> Partition<'a, T> {
    /// Works up to `limit`, or some `budget` events, with the guests. Returns how many events of
    /// the fabric that were.
    pub fn advance_with_guests(&mut self, plan: &Plan<'a, T>, limit: (Time, EventKey), budget: u64) -> u64 {
        let mut done = 0;
        while done < budget {
            let Some(guests) = &self.guests else { break };
            let horizon = (guests.reached.saturating_add(guests.ahead), EventKey::FIRST);
            let (at, key) = limit.min(horizon);
            self.network.events.set_limit(at, key);
            done += self.advance(plan, budget - done);
            if done >= budget || self.is_over() {
                break;
            }
            let next = self.peek().map_or(Time::NEVER, |(at, _)| at).min(limit.0);
            let Some(guests) = self.guests.as_deref_mut() else { break };
            if limit <= horizon && guests.reached >= limit.0 {
                break;
            }
            let was_busy = guests.is_busy();
            let sent = guests.advance(next);
            let ended = guests.hosts.take_ended();
            let rests = was_busy && !guests.is_busy();
            self.take_sent(plan, sent);
            for flow in ended {
                self.guest_flow_ended(plan, flow);
            }
            if rests {
                self.end_if_over();
            }
        }
        done
    }

    /// Whether the run is: with its last flow, or because the guests are gone.
    fn is_over(&self) -> bool {
        self.guests
            .as_ref()
            .is_none_or(|guests| guests.failure.is_some() || self.finished == self.last && !guests.is_busy())
    }

    /// Takes what guests begin to send. It waits for its time; but if the fabric is ahead of that,
    /// it is sent as of then.
    fn take_sent(&mut self, plan: &Plan<'a, T>, mut sent: Vec<GuestPacket>) {
        for guest in sent.drain(..) {
            let at = guest.begins;
            if at < self.network.now {
                // Not so far ahead that it could have felt it.
                let now = std::mem::replace(&mut self.network.now, at);
                self.send_guest(plan, guest);
                self.network.now = now;
            } else if let Some(guests) = &mut self.guests {
                let place = guests.waiting.put(guest);
                self.network.events.push_timer(at, EventKey::new(EventKind::Guest, place));
            }
        }
        if let Some(guests) = &mut self.guests {
            guests.sent = sent;
        }
    }

    /// A packet that has waited for its time is due.
    pub fn guest_sends(&mut self, plan: &Plan<'a, T>, place: u32) {
        let waiting = self.guests.as_mut().and_then(|guests| guests.waiting.take(place));
        if let Some(guest) = waiting {
            self.send_guest(plan, guest);
        }
    }

    fn send_guest(&mut self, plan: &Plan<'a, T>, guest: GuestPacket) {
        if guest.packet.flow.connection().is_some() {
            return self.send_of_connection(guest);
        }
        let GuestPacket { mut packet, frame, .. } = guest;
        let Some(guests) = self.guests.as_deref_mut() else { return };
        at_guest!(self, guests, plan, packet.src, packet.flow, |flow, at| {
            flow.sends(&mut packet, &frame, at);
            at.here.nic.send_frame(packet, frame);
        });
    }

    /// A flow that begins at a guest starts. Returns whether it does.
    pub fn start_guest_flow(&mut self, plan: &Plan<'a, T>, flow: FlowId) -> bool {
        let traffic = plan.flows[flow.index()];
        let Some(guests) = self.guests.as_deref_mut().filter(|guests| guests.has(traffic.src)) else {
            return false;
        };
        let started = guests.hosts.start_flow(flow, traffic.start);
        guests.note(started);
        true
    }

    /// A packet reached a guest: by way of the edge scheme, if there is one that wants to see it.
    pub fn receive_at_guest(&mut self, plan: &Plan<'a, T>, mut packet: Packet, frame: Option<Frame>) {
        let Some(guests) = self.guests.as_deref_mut() else { return };
        if packet.flow.connection().is_some() {
            return frame.map_or((), |frame| self.receive_of_connection(packet, frame));
        }
        let now = self.network.now;
        let frame = match frame.map_or_else(|| guests.hosts.frame(&packet, now), Ok) {
            Ok(frame) => frame,
            Err(error) => return guests.note(Err(error)),
        };
        if self.common.hooks.receiving {
            packet.next = guests.inside.put(frame);
            let passed =
                at_guest!(self, guests, plan, packet.dst, packet.flow, |flow, at| flow.passes(packet, at));
            return self.deliver_to_guest(plan, passed);
        }
        at_guest!(self, guests, plan, packet.dst, packet.flow, |flow, at| {
            flow.receives(&packet, &frame, at);
        });
        guests.deliver(&packet, frame, self.network.now);
    }

    /// A packet of a guest reached a simulated host: its transport takes it, and the host answers
    /// the end of a connection.
    pub fn receive_from_guest(&mut self, plan: &Plan<'a, T>, packet: Packet, option: u32, frame: &Frame) {
        let Some(guests) = self.guests.as_deref_mut().filter(|_| packet.flow.connection().is_none()) else {
            return;
        };
        guests.hosts.reaches_simulated(&packet, frame, self.network.now);
        let of_source = packet.src == plan.host(packet.flow, Side::Sender);
        // What a sender acknowledges is the end of the connection, of which transports here know
        // nothing.
        if !(of_source && packet.kind == Kind::Ack) {
            self.read_at_host(plan, packet, option);
        }
        let Some(guests) = self.guests.as_deref_mut() else { return };
        at_guest!(self, guests, plan, packet.dst, packet.flow, |flow, at| flow.closes(&packet, frame, at));
    }

    /// The edge scheme passed on these.
    fn deliver_to_guest(&mut self, plan: &Plan<'a, T>, passed: Vec<Packet>) {
        let Some(guests) = self.guests.as_deref_mut() else { return };
        for packet in &passed {
            let Some(frame) = guests.inside.take(packet.next) else { continue };
            at_guest!(self, guests, plan, packet.dst, packet.flow, |flow, at| {
                flow.receives(packet, &frame, at);
            });
            guests.deliver(packet, frame, self.network.now);
        }
        self.common.deeds.recycle(passed);
    }

    /// The edge scheme's timer for one end of a flow of guests is due. Returns whether it is one.
    pub fn guest_edge_timer(&mut self, plan: &Plan<'a, T>, side: Side, flow: FlowId) -> bool {
        let at = plan.host(flow, side);
        let Some(guests) = self.guests.as_deref_mut().filter(|guests| guests.has(at)) else { return false };
        let passed = at_guest!(self, guests, plan, at, flow, |state, at| state.edge_timer((side, flow), at));
        self.deliver_to_guest(plan, passed);
        true
    }

    /// The sending end of a flow is done inside.
    fn guest_flow_ended(&mut self, plan: &Plan<'a, T>, flow: FlowId) {
        let Some(guests) = self.guests.as_deref_mut() else { return };
        let src = plan.host(flow, Side::Sender);
        if at_guest!(self, guests, plan, src, flow, |state, at| state.finish(at)) {
            self.flow_ended();
        }
    }

    /// The run is over: what is known of flows.
    pub fn close_guests(&mut self, plan: &Plan<'a, T>) {
        let Some(guests) = self.guests.as_deref_mut() else { return };
        for (number, state) in guests.flows.iter_mut().enumerate() {
            let Some(state) = state.take() else { continue };
            let host = |side| self.network.map.cable(plan.host(FlowId(number as u32), side)) as usize;
            let (src, dst) = (host(Side::Sender), host(Side::Receiver));
            state.note_sender(&mut self.hosts[src]);
            state.note_receiver(&mut self.hosts[dst]);
        }
    }
}
