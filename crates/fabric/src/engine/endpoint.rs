//! The two ends of the flows that are active, and their way out.

use weft_balance::EdgeFlow;
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_transport::{Outbox, Outgoing, Resend};
use weft_units::{Rate, Span, Stream, Time, mix64};

use super::event_set::{EventKey, EventKind};
use super::hosts::Hosts;
use super::network::Network;

/// What both ends of a flow have, apart from their transport's state.
pub struct End {
    flow: FlowId,
    host: HostId,
    peer: HostId,
    entropy: u32,
    class: PacketFlags,
    /// The event of this end's timer, and of its edge scheme's timer.
    timer: EventKind,
    edge_timer: EventKind,
    /// When the transport wants to be woken, and the earliest event that is pending for it.
    deadline: Time,
    pending: Time,
    edge_deadline: Time,
    edge: EdgeFlow,
}

impl End {
    /// The sending end of a flow.
    pub fn sender(
        flow: FlowId,
        host: HostId,
        peer: HostId,
        entropy: u32,
        class: PacketFlags,
        edge: EdgeFlow,
    ) -> Self {
        Self {
            flow,
            host,
            peer,
            entropy,
            class,
            timer: EventKind::Sender,
            edge_timer: EventKind::EdgeSender,
            deadline: Time::NEVER,
            pending: Time::NEVER,
            edge_deadline: Time::NEVER,
            edge,
        }
    }

    /// The receiving end of the same flow.
    pub fn receiver(
        flow: FlowId,
        host: HostId,
        peer: HostId,
        entropy: u32,
        class: PacketFlags,
        edge: EdgeFlow,
    ) -> Self {
        let end = Self::sender(flow, host, peer, entropy, class, edge);
        Self { timer: EventKind::Receiver, edge_timer: EventKind::EdgeReceiver, ..end }
    }

    /// A timer event at `now`: whether the transport is to be woken. If the deadline has moved on, so does the event.
    pub fn timer_is_due(&mut self, now: Time, network: &mut Network<'_>) -> bool {
        if now != self.pending {
            return false;
        }
        self.pending = Time::NEVER;
        if self.deadline <= now {
            self.deadline = Time::NEVER;
            return true;
        }
        self.arm(network);
        false
    }

    /// The end of another subflow of the same flow, with a five-tuple of its own. It has no timer: that is the flow's.
    fn of_subflow(&self, flow: FlowId, subflow: u32, edge: EdgeFlow) -> Self {
        let key = u64::from(subflow) << 32 | u64::from(self.entropy);
        Self {
            flow,
            entropy: (mix64(key) >> 32) as u32,
            deadline: Time::NEVER,
            pending: Time::NEVER,
            edge_deadline: Time::NEVER,
            edge,
            ..*self
        }
    }

    /// The host that it lives on.
    pub const fn host(&self) -> HostId {
        self.host
    }

    /// What the host's edge scheme keeps of the flow.
    pub const fn edge(&mut self) -> &mut EdgeFlow {
        &mut self.edge
    }

    /// Arms the edge scheme's timer, in place of what it was before.
    pub fn set_edge_timer(&mut self, delay: Span, network: &mut Network<'_>) {
        self.edge_deadline = network.now + delay;
        network.events.push_timer(self.edge_deadline, EventKey::new(self.edge_timer, self.flow.0));
    }

    /// A timer event at `now`: whether the edge scheme is to be woken.
    pub fn edge_timer_is_due(&mut self, now: Time) -> bool {
        let due = now == self.edge_deadline;
        if due {
            self.edge_deadline = Time::NEVER;
        }
        due
    }

    /// Makes sure that an event is pending no later than the deadline.
    #[inline]
    fn arm(&mut self, network: &mut Network<'_>) {
        if self.deadline < self.pending {
            self.pending = self.deadline;
            network.events.push_timer(self.deadline, EventKey::new(self.timer, self.flow.0));
        }
    }
}

/// One end of a flow at its host: that of its only five-tuple, or those of all subflows.
pub struct Ends {
    /// The end of the first subflow, with the flow's own number and the transport's timer.
    pub first: End,
    /// The ends of the other subflows, each `step` on from the number of the one before.
    others: Vec<End>,
    step: u32,
    /// The entropies of the ports of the first one, its own first; empty if that is the only one.
    ports: Box<[u32]>,
}

impl Ends {
    /// The ends of a flow with so many subflows, the number of each being `step` on from that of the one before.
    pub fn new(first: End, subflows: u32, step: u32, edge: impl Fn() -> EdgeFlow) -> Self {
        let number = |subflow: u32| FlowId(first.flow.0 + subflow * step);
        let others =
            (1..subflows).map(|subflow| first.of_subflow(number(subflow), subflow, edge())).collect();
        Self { first, others, step, ports: Box::default() }
    }

    /// The same ends with these ports, if there are several.
    pub fn with_ports(self, ports: Box<[u32]>) -> Self {
        Self { ports, ..self }
    }

    /// The number of the flow.
    pub const fn flow(&self) -> FlowId {
        self.first.flow
    }

    /// Every end.
    pub fn all(&mut self) -> impl Iterator<Item = &mut End> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// The end with this number, which one of them has.
    pub fn numbered(&mut self, flow: FlowId) -> &mut End {
        self.of(self.subflow_of(flow))
    }

    fn of(&mut self, subflow: u8) -> &mut End {
        match usize::from(subflow).checked_sub(1).and_then(|other| self.others.get_mut(other)) {
            Some(end) => end,
            None => &mut self.first,
        }
    }

    fn subflow_of(&self, flow: FlowId) -> u8 {
        ((flow.0 - self.first.flow.0) / self.step) as u8
    }
}

/// What a transport's end can do: its way out.
pub struct HostOutbox<'s, 'a> {
    /// Links and packets.
    pub network: &'s mut Network<'a>,
    /// The hosts.
    pub hosts: &'s mut Hosts<'a>,
    /// The end that acts.
    pub end: &'s mut Ends,
}

/// Sends a packet from an end, with this entropy.
#[inline(always)]
#[allow(clippy::inline_always)]
fn send_from(
    end: &mut End,
    entropy: u32,
    network: &mut Network<'_>,
    hosts: &mut Hosts<'_>,
    outgoing: Outgoing,
) {
    let mut packet = Packet::default();
    packet.sent = outgoing.sent;
    packet.flow = end.flow;
    packet.seq = outgoing.seq;
    packet.entropy = entropy;
    packet.src = end.host;
    packet.dst = end.peer;
    packet.wire_bytes = outgoing.wire_bytes;
    packet.kind = outgoing.kind;
    packet.flags = outgoing.flags.with(end.class);
    if packet.kind == Kind::Ack {
        packet.set_sack_blocks(outgoing.sack);
    }
    if hosts.steers() {
        return send_steered(end, network, hosts, packet);
    }
    network.send(packet);
}

/// Sends a packet by way of the edge scheme. Apart, so that other packets are built where they are kept.
#[inline(never)]
fn send_steered(end: &mut End, network: &mut Network<'_>, hosts: &mut Hosts<'_>, mut packet: Packet) {
    hosts.route(end, &mut packet, network);
    network.send(packet);
}

impl Outbox for HostOutbox<'_, '_> {
    #[inline]
    fn now(&self) -> Time {
        self.network.now
    }

    #[inline]
    fn send(&mut self, outgoing: Outgoing) {
        let entropy = self.end.first.entropy;
        send_from(&mut self.end.first, entropy, self.network, self.hosts, outgoing);
    }

    fn ports(&self) -> u8 {
        self.end.ports.len().max(1) as u8
    }

    fn port_of(&self, packet: &Packet) -> u8 {
        self.end.ports.iter().position(|&entropy| entropy == packet.entropy).unwrap_or_default() as u8
    }

    fn send_by(&mut self, port: u8, outgoing: Outgoing) {
        let entropy = self.end.ports.get(usize::from(port)).copied();
        let entropy = entropy.unwrap_or(self.end.first.entropy);
        send_from(&mut self.end.first, entropy, self.network, self.hosts, outgoing);
    }

    fn send_on(&mut self, subflow: u8, segment: u32, outgoing: Outgoing) {
        let end = self.end.of(subflow);
        if outgoing.kind == Kind::Data {
            self.network.mappings.note(end.flow, outgoing.seq, segment);
        }
        send_from(end, end.entropy, self.network, self.hosts, outgoing);
    }

    fn mapping(&self, packet: &Packet) -> (u8, u32) {
        let data = packet.kind == Kind::Data;
        (self.end.subflow_of(packet.flow), if data { self.network.mappings.segment_of(packet) } else { 0 })
    }

    #[cold]
    fn sends_again(&mut self, segment: u32, cause: Resend) {
        self.sends_again_stamped(segment, self.network.now, cause);
    }

    #[cold]
    fn sends_again_stamped(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.network.copies.note_resend(self.end.flow(), segment, sent, cause);
    }

    #[cold]
    fn sends_again_on(&mut self, subflow: u8, segment: u32, cause: Resend) {
        let flow = self.end.of(subflow).flow;
        self.network.copies.note_resend(flow, segment, self.network.now, cause);
    }

    fn link_rate(&self) -> Rate {
        self.network.rate(self.end.first.host.index())
    }

    #[inline]
    fn wake_at(&mut self, at: Time) {
        self.end.first.deadline = at;
        self.end.first.arm(self.network);
    }

    fn random(&mut self) -> &mut Stream {
        self.hosts.transport_stream(self.end.first.host)
    }

    fn timed_out(&mut self) {
        self.timed_out_on(0);
    }

    fn timed_out_on(&mut self, subflow: u8) {
        if self.hosts.steers() {
            self.hosts.timed_out(self.end.of(subflow), self.network);
        }
    }
}
