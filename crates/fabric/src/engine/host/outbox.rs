//! One end of a flow at its host, and its transport's way out.

use std::sync::Arc;

use weft_balance::EdgeFlow;
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_transport::{Outbox, Outgoing, Resend};
use weft_units::{Rate, Span, Stream, Time, mix64};

use super::edge::Edge;
use super::log::{HostLog, Resent};
use super::nic::Nic;
use super::{Here, Side};
use crate::engine::event_set::EventKind;

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
    /// An end of a flow between this host and its peer.
    pub const fn new(
        flow: FlowId,
        side: Side,
        (host, peer): (HostId, HostId),
        entropy: u32,
        class: PacketFlags,
        edge: EdgeFlow,
    ) -> Self {
        let (timer, edge_timer) = match side {
            Side::Sender => (EventKind::Sender, EventKind::EdgeSender),
            Side::Receiver => (EventKind::Receiver, EventKind::EdgeReceiver),
        };
        Self {
            flow,
            host,
            peer,
            entropy,
            class,
            timer,
            edge_timer,
            deadline: Time::NEVER,
            pending: Time::NEVER,
            edge_deadline: Time::NEVER,
            edge,
        }
    }

    /// A timer event now: whether the transport is to be woken. If the deadline has moved on, so does the event.
    pub fn timer_is_due(&mut self, nic: &mut Nic<'_, '_>) -> bool {
        let now = nic.now();
        if now != self.pending {
            return false;
        }
        self.pending = Time::NEVER;
        if self.deadline <= now {
            self.deadline = Time::NEVER;
            return true;
        }
        self.arm(nic);
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

    /// What the host's edge scheme keeps of the flow.
    pub const fn edge(&mut self) -> &mut EdgeFlow {
        &mut self.edge
    }

    /// Arms the edge scheme's timer, in place of what it was before.
    pub fn set_edge_timer(&mut self, delay: Span, nic: &mut Nic<'_, '_>) {
        self.edge_deadline = nic.now() + delay;
        nic.set_flow_timer(self.edge_deadline, self.edge_timer, self.flow);
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
    fn arm(&mut self, nic: &mut Nic<'_, '_>) {
        if self.deadline < self.pending {
            self.pending = self.deadline;
            nic.set_flow_timer(self.deadline, self.timer, self.flow);
        }
    }
}

/// One end of a flow at its host: that of its only five-tuple, or those of all subflows.
pub struct FlowEnd {
    /// The end of the first subflow, with the flow's own number and the transport's timer.
    pub first: End,
    /// The number of its transport.
    pub transport: u8,
    /// The ends of the other subflows, each `step` on from the number of the one before.
    others: Vec<End>,
    step: u32,
    /// The entropies of the ports of the first one, its own first; empty if that is the only one.
    ports: Box<[u32]>,
    /// By subflow and its segment: the segment of the flow, as the options of the packets that arrived said.
    carried: Vec<Vec<u32>>,
}

impl FlowEnd {
    /// The ends of a flow over this transport with so many subflows, the number of each being `step` on from that of the one before.
    pub fn new(first: End, transport: u8, (subflows, step): (u32, u32), edge: impl Fn() -> EdgeFlow) -> Self {
        let number = |subflow: u32| FlowId(first.flow.0 + subflow * step);
        let others =
            (1..subflows).map(|subflow| first.of_subflow(number(subflow), subflow, edge())).collect();
        let carried = if subflows > 1 { vec![Vec::new(); subflows as usize] } else { Vec::new() };
        Self { first, transport, others, step, ports: Box::default(), carried }
    }

    /// The flow has these ports from now on.
    pub fn set_ports(&mut self, ports: Box<[u32]>) {
        self.ports = ports;
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

    /// Reads the option of a data packet of a subflow. All copies of a segment say the same (RFC 8684 §3.3.1).
    #[cold]
    pub fn note_option(&mut self, packet: &Packet, option: u32) {
        let subflow = usize::from(self.subflow_of(packet.flow));
        if let Some(carried) = self.carried.get_mut(subflow) {
            let segment = packet.seq as usize;
            carried.resize(carried.len().max(segment + 1), 0);
            carried[segment] = option;
        }
    }

    /// What the option of a data packet said that has arrived.
    fn option_of(&self, packet: &Packet) -> u32 {
        let carried = self.carried.get(usize::from(self.subflow_of(packet.flow)));
        carried.and_then(|carried| carried.get(packet.seq as usize)).copied().unwrap_or(packet.seq)
    }

    /// Packets that the edge scheme holds back now.
    pub fn held(&self) -> usize {
        self.others.iter().chain(std::iter::once(&self.first)).map(|end| end.edge.held()).sum()
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
pub struct HostOutbox<'s, 'h, 'n, 'a> {
    /// The end that acts.
    pub end: &'s mut FlowEnd,
    /// The edge scheme of its host.
    pub edge: &'s mut Edge,
    /// The transport's random stream of its host.
    pub stream: &'s mut Stream,
    /// What its host notes.
    pub log: &'s mut HostLog,
    /// The way to the fabric.
    pub here: &'s mut Here<'h, 'n, 'a>,
}

/// A packet of an end, with this entropy.
#[inline(always)]
#[allow(clippy::inline_always)]
fn packet_of(end: &End, entropy: u32, outgoing: Outgoing) -> Packet {
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
    packet
}

impl HostOutbox<'_, '_, '_, '_> {
    /// Sends a packet of the first five-tuple, with this entropy.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn send_first(&mut self, entropy: u32, outgoing: Outgoing) {
        if self.here.common.writes_more {
            return self.send_with(0, entropy, outgoing, None);
        }
        // Built where it is kept.
        self.here.nic.send(packet_of(&self.end.first, entropy, outgoing));
    }

    /// Sends a packet with all that it may carry beyond its transport's fields, by way of the edge scheme if there is one.
    #[inline(never)]
    fn send_with(&mut self, subflow: u8, entropy: u32, outgoing: Outgoing, option: Option<u32>) {
        let end = self.end.of(subflow);
        let mut packet = packet_of(end, entropy, outgoing);
        if self.here.common.hooks.sending {
            self.edge.route(end, &mut packet, self.here);
        }
        if let Some(option) = option {
            self.here.nic.send_with_option(packet, option);
        } else if packet.kind == Kind::CreditRequest && !self.end.ports.is_empty() {
            self.here.nic.send_with_contents(packet, Arc::from(&*self.end.ports));
        } else {
            self.here.nic.send(packet);
        }
    }

    fn note_resend(&mut self, flow: FlowId, segment: u32, sent: Time, cause: Resend) {
        self.log.resent.push(Resent { flow, segment, sent, cause });
    }
}

impl Outbox for HostOutbox<'_, '_, '_, '_> {
    #[inline]
    fn now(&self) -> Time {
        self.here.nic.now()
    }

    #[inline]
    fn send(&mut self, outgoing: Outgoing) {
        let entropy = self.end.first.entropy;
        self.send_first(entropy, outgoing);
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
        self.send_first(entropy, outgoing);
    }

    fn send_on(&mut self, subflow: u8, segment: u32, outgoing: Outgoing) {
        let entropy = self.end.of(subflow).entropy;
        let option = (outgoing.kind == Kind::Data).then_some(segment);
        self.send_with(subflow, entropy, outgoing, option);
    }

    fn mapping(&self, packet: &Packet) -> (u8, u32) {
        let segment = if packet.kind == Kind::Data { self.end.option_of(packet) } else { 0 };
        (self.end.subflow_of(packet.flow), segment)
    }

    #[cold]
    fn sends_again(&mut self, segment: u32, cause: Resend) {
        self.note_resend(self.end.flow(), segment, self.here.nic.now(), cause);
    }

    #[cold]
    fn sends_again_stamped(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.note_resend(self.end.flow(), segment, sent, cause);
    }

    #[cold]
    fn sends_again_on(&mut self, subflow: u8, segment: u32, cause: Resend) {
        let flow = self.end.of(subflow).flow;
        self.note_resend(flow, segment, self.here.nic.now(), cause);
    }

    fn link_rate(&self) -> Rate {
        self.here.nic.rate()
    }

    #[inline]
    fn wake_at(&mut self, at: Time) {
        self.end.first.deadline = at;
        self.end.first.arm(&mut self.here.nic);
    }

    fn random(&mut self) -> &mut Stream {
        self.stream
    }

    fn timed_out(&mut self) {
        self.timed_out_on(0);
    }

    fn timed_out_on(&mut self, subflow: u8) {
        if self.here.common.hooks.sending {
            self.edge.timed_out(self.end.of(subflow), self.here);
        }
    }
}
