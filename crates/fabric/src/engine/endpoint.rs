//! The two ends of the flows that are active, and their way out.

use weft_balance::EdgeFlow;
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_transport::{Outbox, Outgoing, Resend};
use weft_units::{Rate, Span, Stream, Time};

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

    /// The flow that it is an end of.
    pub const fn flow(&self) -> FlowId {
        self.flow
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

/// What a transport's end can do: its way out.
pub struct HostOutbox<'s, 'a> {
    /// Links and packets.
    pub network: &'s mut Network<'a>,
    /// The hosts.
    pub hosts: &'s mut Hosts<'a>,
    /// The end that acts.
    pub end: &'s mut End,
}

impl Outbox for HostOutbox<'_, '_> {
    #[inline]
    fn now(&self) -> Time {
        self.network.now
    }

    #[inline]
    fn send(&mut self, outgoing: Outgoing) {
        let mut packet = Packet::default();
        packet.sent = outgoing.sent;
        packet.flow = self.end.flow;
        packet.seq = outgoing.seq;
        packet.entropy = self.end.entropy;
        packet.src = self.end.host;
        packet.dst = self.end.peer;
        packet.wire_bytes = outgoing.wire_bytes;
        packet.kind = outgoing.kind;
        packet.flags = outgoing.flags.with(self.end.class);
        if packet.kind == Kind::Ack {
            packet.set_sack_blocks(outgoing.sack);
        }
        if self.hosts.steers() {
            self.hosts.route(self.end, &mut packet, self.network);
        }
        self.network.send(packet);
    }

    #[cold]
    fn sends_again(&mut self, segment: u32, cause: Resend) {
        self.sends_again_stamped(segment, self.network.now, cause);
    }

    #[cold]
    fn sends_again_stamped(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.network.copies.note_resend(self.end.flow, segment, sent, cause);
    }

    fn link_rate(&self) -> Rate {
        self.network.rate(self.end.host.index())
    }

    #[inline]
    fn wake_at(&mut self, at: Time) {
        self.end.deadline = at;
        self.end.arm(self.network);
    }

    fn random(&mut self) -> &mut Stream {
        self.hosts.transport_stream(self.end.host)
    }

    fn timed_out(&mut self) {
        if self.hosts.steers() {
            self.hosts.timed_out(self.end, self.network);
        }
    }
}
