//! Hosts that live in a time of their own: real kernels. The engine sees of them what it sees of
//! any host, packets at its cable; what is behind is not its business.
//!
//! The fabric and the external hosts take turns. What an external host begins to send is felt at a
//! switch no earlier than its cable's delay and the least packet later, so the fabric may be that
//! far ahead; and the external hosts may go on until the next event of the fabric, for before it
//! nothing arrives at them. A host scheme works on each packet that its host sends, in the order
//! of all events, so there the fabric is never ahead.

use std::error::Error;
use std::ops::Range;

use weft_packet::{FlowId, HostId, Kind, Packet};
use weft_transport::Transports;
use weft_units::{Span, Time};

use super::event_set::{EventKey, EventKind};
use super::host::{At, ExternalConnections, ExternalFlow, HostCall, HostPort, RunPlan, Side};
use super::partition::Partition;

/// Why external hosts do not go on.
pub type ExternalHostError = Box<dyn Error + Send + Sync>;

/// A packet that a host's card sent, as bytes, and its fields that ends of flows count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// The packet as the host wrote it.
    pub bytes: Vec<u8>,
    /// The bytes of the flow that it carries, from 0; empty if it carries none.
    pub payload: Range<u64>,
    /// How many bytes of the flow it acknowledges.
    pub acknowledged: u64,
    /// Place of the data in the flow, if its connection is one of several that carry the flow
    /// (MPTCP). Then `payload` and `acknowledged` count bytes of the connection, and the packet has
    /// the number of the subflow.
    pub data: Option<Data>,
    /// The hash of its five-tuple, where it is not that of its flow.
    pub entropy: Option<u32>,
    /// Whether its host sends no more of its connection (FIN).
    pub ends: bool,
}

/// Place of a subflow's packet in the data of its flow (RFC 8684 §3.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Data {
    /// The bytes of the flow that it carries; empty if it carries none.
    pub payload: Range<u64>,
    /// How many bytes of the flow it acknowledges, if it says so.
    pub acknowledged: Option<u64>,
}

/// A packet that an external host begins to send.
#[derive(Debug, Clone)]
pub struct ExternalPacket {
    /// When its first bit leaves the host. From one host, no packet begins before the one before it
    /// has left.
    pub begins: Time,
    /// Fields for switches: flow or connection, ends, kind, segment, size, marks. The engine sets
    /// the others.
    pub packet: Packet,
    /// The packet itself.
    pub frame: Frame,
}

/// Hosts in a time of their own. At first they have run nothing; what they run begins at
/// [`Time::ZERO`].
pub trait ExternalHosts: Send {
    /// Whether this host is one of them.
    fn has(&self, host: HostId) -> bool;

    /// Least time after which a switch notices a packet that any of them begins to send; at least 1
    /// ps.
    fn felt_after(&self) -> Span;

    /// A flow from one of them starts at `at`, which they have not reached.
    ///
    /// # Errors
    /// They are gone.
    fn start_flow(&mut self, flow: FlowId, at: Time) -> Result<(), ExternalHostError>;

    /// A packet reaches one of them at `at`, which they have not reached, with the marks of
    /// `packet`.
    ///
    /// # Errors
    /// They are gone.
    fn deliver(&mut self, packet: &Packet, bytes: Vec<u8>, at: Time) -> Result<(), ExternalHostError>;

    /// Frame of a simulated host's packet for one of them, which it reaches at `at`. One with the
    /// number of the segment after the last acknowledges the end of the flow, too, and is the end
    /// of the data that this side sends.
    ///
    /// # Errors
    /// It is of no connection.
    fn frame(&mut self, packet: &Packet, at: Time) -> Result<Frame, ExternalHostError>;

    /// A packet of one of them reaches a simulated host at `at`.
    fn reaches_simulated(&mut self, packet: &Packet, frame: &Frame, at: Time);

    /// When something happens inside next, if ever.
    fn next_event(&self) -> Option<Time>;

    /// Runs what is before `until`, or less if what is sent may be felt before; returns the instant
    /// before which everything has run, and appends what was sent.
    ///
    /// # Errors
    /// They are gone.
    fn advance(&mut self, until: Time, sent: &mut Vec<ExternalPacket>) -> Result<Time, ExternalHostError>;

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

/// The external hosts of a run, and what is on its way between them and the fabric.
pub struct ExternalEnds<'a> {
    hosts: &'a mut dyn ExternalHosts,
    /// How far the fabric may be ahead.
    ahead: Span,
    /// Everything before has run inside.
    reached: Time,
    /// After such a silence a timer has expired: less than the least timeout, more than anything
    /// else.
    quiet: Span,
    /// The flows that begin or end at external hosts, by number.
    flows: Vec<Option<Box<ExternalFlow>>>,
    /// Packets that a card begins to send later than now.
    waiting: Places<ExternalPacket>,
    /// Frames of packets that a host scheme has now: [`Packet::next`] names the place.
    pub(super) inside: Places<Frame>,
    /// Connections that belong to no flow.
    pub(super) connections: ExternalConnections,
    sent: Vec<ExternalPacket>,
    failure: Option<ExternalHostError>,
}

impl<'a> ExternalEnds<'a> {
    /// These, before the run; `lockstep` where a host scheme sees each packet.
    pub fn new(hosts: &'a mut dyn ExternalHosts, flows: usize, lockstep: bool) -> Self {
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
            connections: ExternalConnections::default(),
            sent: Vec::new(),
            failure: None,
        }
    }

    /// Whether a packet is one for an external host. What schemes send to each other is not.
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
    pub const fn failure(&self) -> Option<&ExternalHostError> {
        self.failure.as_ref()
    }

    /// Takes the reason why they are gone, if they are.
    pub const fn take_failure(&mut self) -> Option<ExternalHostError> {
        self.failure.take()
    }

    fn note(&mut self, result: Result<(), ExternalHostError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    pub(super) fn deliver(&mut self, packet: &Packet, frame: Frame, at: Time) {
        let delivered = self.hosts.deliver(packet, frame.bytes, at);
        self.note(delivered);
    }

    /// Lets them go on until then, or less. What they send comes in the order in which it begins.
    fn advance(&mut self, until: Time) -> Vec<ExternalPacket> {
        let mut sent = std::mem::take(&mut self.sent);
        match self.hosts.advance(until, &mut sent) {
            Ok(reached) => self.reached = reached,
            Err(error) => self.note(Err(error)),
        }
        sent.sort_by_key(|sent| (sent.begins, sent.packet.src));
        sent
    }
}

/// A call about a flow of external hosts at one of its hosts.
macro_rules! at_external {
    ($partition:ident, $external:ident, $plan:expr, $host:expr, $flow:expr, |$state:ident, $at:ident| $call:expr) => {{
        let host = $host;
        let place = $partition.network.map.cable(host) as usize;
        let here =
            HostCall { nic: HostPort::new(&mut $partition.network, host), common: &mut $partition.common };
        let $at = &mut At { host: &mut $partition.hosts[place], plan: $plan, here };
        let (number, quiet) = ($plan.whole($flow), $external.quiet);
        let $state =
            $external.flows[number.index()].get_or_insert_with(|| Box::new(ExternalFlow::new(number, quiet)));
        $call
    }};
}

impl<'a, T: Transports> Partition<'a, T> {
    /// Works up to `limit`, or some `budget` events, with the external hosts. Returns how many
    /// events of the fabric that were.
    pub fn advance_with_external(
        &mut self,
        plan: &RunPlan<'a, T>,
        limit: (Time, EventKey),
        budget: u64,
    ) -> u64 {
        let mut done = 0;
        while done < budget {
            let Some(external) = &self.external else { break };
            let horizon = (external.reached.saturating_add(external.ahead), EventKey::FIRST);
            let (at, key) = limit.min(horizon);
            self.network.events.set_limit(at, key);
            done += self.advance(plan, budget - done);
            if done >= budget || self.is_over() {
                break;
            }
            let next = self.peek().map_or(Time::NEVER, |(at, _)| at).min(limit.0);
            let Some(external) = self.external.as_deref_mut() else { break };
            if limit <= horizon && external.reached >= limit.0 {
                break;
            }
            let was_busy = external.is_busy();
            let sent = external.advance(next);
            let ended = external.hosts.take_ended();
            let rests = was_busy && !external.is_busy();
            self.take_sent(plan, sent);
            for flow in ended {
                self.external_flow_ended(plan, flow);
            }
            if rests {
                self.end_if_over();
            }
        }
        done
    }

    /// Whether the run is: with its last flow, or because the external hosts are gone.
    fn is_over(&self) -> bool {
        self.external.as_ref().is_none_or(|external| {
            external.failure.is_some() || self.finished == self.last && !external.is_busy()
        })
    }

    /// Takes what external hosts begin to send. It waits for its time; but if the fabric is ahead
    /// of that, it is sent as of then.
    fn take_sent(&mut self, plan: &RunPlan<'a, T>, mut sent: Vec<ExternalPacket>) {
        for packet in sent.drain(..) {
            let at = packet.begins;
            if at < self.network.now {
                // Not so far ahead that it could have felt it.
                let now = std::mem::replace(&mut self.network.now, at);
                self.send_external(plan, packet);
                self.network.now = now;
            } else if let Some(external) = &mut self.external {
                let place = external.waiting.put(packet);
                self.network.events.push_timer(at, EventKey::new(EventKind::Guest, place));
            }
        }
        if let Some(external) = &mut self.external {
            external.sent = sent;
        }
    }

    /// A packet that has waited for its time is due.
    pub fn external_sends(&mut self, plan: &RunPlan<'a, T>, place: u32) {
        let waiting = self.external.as_mut().and_then(|external| external.waiting.take(place));
        if let Some(external) = waiting {
            self.send_external(plan, external);
        }
    }

    fn send_external(&mut self, plan: &RunPlan<'a, T>, external: ExternalPacket) {
        if external.packet.flow.connection().is_some() {
            return self.send_of_connection(external);
        }
        let ExternalPacket { mut packet, frame, .. } = external;
        let Some(external) = self.external.as_deref_mut() else { return };
        at_external!(self, external, plan, packet.src, packet.flow, |flow, at| {
            flow.sends(&mut packet, &frame, at);
            at.here.nic.send_frame(packet, frame);
        });
    }

    /// A flow that begins at an external host starts. Returns whether it does.
    pub fn start_external_flow(&mut self, plan: &RunPlan<'a, T>, flow: FlowId) -> bool {
        let traffic = plan.flows[flow.index()];
        let Some(external) = self.external.as_deref_mut().filter(|external| external.has(traffic.src)) else {
            return false;
        };
        let started = external.hosts.start_flow(flow, traffic.start);
        external.note(started);
        true
    }

    /// A packet reached an external host: by way of the host scheme, if there is one that wants to
    /// see it.
    pub fn receive_at_external(&mut self, plan: &RunPlan<'a, T>, mut packet: Packet, frame: Option<Frame>) {
        let Some(external) = self.external.as_deref_mut() else { return };
        if packet.flow.connection().is_some() {
            return frame.map_or((), |frame| self.receive_of_connection(packet, frame));
        }
        let now = self.network.now;
        let frame = match frame.map_or_else(|| external.hosts.frame(&packet, now), Ok) {
            Ok(frame) => frame,
            Err(error) => return external.note(Err(error)),
        };
        if self.common.hooks.on_receive {
            packet.next = external.inside.put(frame);
            let passed = at_external!(self, external, plan, packet.dst, packet.flow, |flow, at| flow
                .passes(packet, at));
            return self.deliver_to_external(plan, passed);
        }
        at_external!(self, external, plan, packet.dst, packet.flow, |flow, at| {
            flow.receives(&packet, &frame, at);
        });
        external.deliver(&packet, frame, self.network.now);
    }

    /// A packet of an external host reached a simulated host: its transport takes it, and the host
    /// answers the end of a connection.
    pub fn receive_from_external(
        &mut self,
        plan: &RunPlan<'a, T>,
        packet: Packet,
        option: u32,
        frame: &Frame,
    ) {
        let Some(external) = self.external.as_deref_mut().filter(|_| packet.flow.connection().is_none())
        else {
            return;
        };
        external.hosts.reaches_simulated(&packet, frame, self.network.now);
        let of_source = packet.src == plan.host(packet.flow, Side::Sender);
        // What a sender acknowledges is the end of the connection, of which transports here know
        // nothing.
        if !(of_source && packet.kind == Kind::Ack) {
            self.read_at_host(plan, packet, option);
        }
        let Some(external) = self.external.as_deref_mut() else { return };
        at_external!(self, external, plan, packet.dst, packet.flow, |flow, at| flow
            .closes(&packet, frame, at));
    }

    /// The host scheme passed on these.
    fn deliver_to_external(&mut self, plan: &RunPlan<'a, T>, passed: Vec<Packet>) {
        let Some(external) = self.external.as_deref_mut() else { return };
        for packet in &passed {
            let Some(frame) = external.inside.take(packet.next) else { continue };
            at_external!(self, external, plan, packet.dst, packet.flow, |flow, at| {
                flow.receives(packet, &frame, at);
            });
            external.deliver(packet, frame, self.network.now);
        }
        self.common.actions.recycle(passed);
    }

    /// The host scheme's timer for one end of a flow of external hosts is due. Returns whether it
    /// is one.
    pub fn external_scheme_timer(&mut self, plan: &RunPlan<'a, T>, side: Side, flow: FlowId) -> bool {
        let at = plan.host(flow, side);
        let Some(external) = self.external.as_deref_mut().filter(|external| external.has(at)) else {
            return false;
        };
        let passed = at_external!(self, external, plan, at, flow, |state, at| state
            .flow_scheme_timer((side, flow), at));
        self.deliver_to_external(plan, passed);
        true
    }

    /// The sending end of a flow is done inside.
    fn external_flow_ended(&mut self, plan: &RunPlan<'a, T>, flow: FlowId) {
        let Some(external) = self.external.as_deref_mut() else { return };
        let src = plan.host(flow, Side::Sender);
        if at_external!(self, external, plan, src, flow, |state, at| state.finish(at)) {
            self.flow_ended();
        }
    }

    /// The run is over: what is known of flows.
    pub fn close_external(&mut self, plan: &RunPlan<'a, T>) {
        let Some(external) = self.external.as_deref_mut() else { return };
        for (number, state) in external.flows.iter_mut().enumerate() {
            let Some(state) = state.take() else { continue };
            let host = |side| self.network.map.cable(plan.host(FlowId(number as u32), side)) as usize;
            let (src, dst) = (host(Side::Sender), host(Side::Receiver));
            state.note_sender(&mut self.hosts[src]);
            state.note_receiver(&mut self.hosts[dst]);
        }
    }
}
