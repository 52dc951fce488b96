//! One end of a flow at its host, and its transport's way out.

mod ports;

use std::sync::Arc;

use weft_balance::AnyHostFlow;
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_transport::{ArrivedPacket, FiveTuples, Outbox, Outgoing, Resend};
use weft_units::{PicosPerByte, Span, Stream, Time, mix64};

use super::extra_ports::ExtraPorts;
use super::log::RetransmissionCauses;
use super::nic::HostPort;
use super::rnic::QueuePair;
use super::{HostCall, HostCold, Side};
use crate::engine::event_set::EventKind;
use crate::engine::fetch::fetch;

/// State that both ends of a flow have, apart from their transport's state.
pub struct End {
    flow: FlowId,
    host: HostId,
    peer: HostId,
    entropy: u32,
    class: PacketFlags,
    /// The event of this end's timer, and of its host scheme's timer.
    timer: EventKind,
    flow_scheme_timer: EventKind,
    /// When the transport wants to be woken, and the earliest event that is pending for it.
    deadline: Time,
    pending: Time,
    /// State of the host scheme for this end; nothing where there is none.
    scheme: Option<Box<SchemeAtEnd>>,
}

/// State of a host's scheme for one end.
struct SchemeAtEnd {
    /// State that the scheme keeps of the flow.
    flow: AnyHostFlow,
    /// When it wants to be woken.
    deadline: Time,
}

impl SchemeAtEnd {
    /// At the beginning; nothing where there is no scheme.
    fn new(flow: AnyHostFlow) -> Option<Box<Self>> {
        let some = |flow| Box::new(Self { flow, deadline: Time::NEVER });
        (!matches!(flow, AnyHostFlow::None)).then(|| some(flow))
    }
}

impl End {
    /// An end of a flow between this host and its peer.
    pub fn new(
        flow: FlowId,
        side: Side,
        (host, peer): (HostId, HostId),
        entropy: u32,
        class: PacketFlags,
        scheme: AnyHostFlow,
    ) -> Self {
        let (timer, flow_scheme_timer) = match side {
            Side::Sender => (EventKind::Sender, EventKind::SenderSchemeTimer),
            Side::Receiver => (EventKind::Receiver, EventKind::ReceiverSchemeTimer),
        };
        Self {
            flow,
            host,
            peer,
            entropy,
            class,
            timer,
            flow_scheme_timer,
            deadline: Time::NEVER,
            pending: Time::NEVER,
            scheme: SchemeAtEnd::new(scheme),
        }
    }

    /// A timer event now: whether the transport is to be woken. If the deadline has moved on, so
    /// does the event.
    pub fn timer_is_due(&mut self, nic: &mut HostPort<'_, '_>) -> bool {
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

    /// The end of another five-tuple of the same flow. It has no timer: that is the flow's.
    fn beside(&self, flow: FlowId, entropy: u32, scheme: AnyHostFlow) -> Self {
        Self {
            flow,
            entropy,
            deadline: Time::NEVER,
            pending: Time::NEVER,
            scheme: SchemeAtEnd::new(scheme),
            ..*self
        }
    }

    /// Entropy of the five-tuple.
    pub const fn entropy(&self) -> u32 {
        self.entropy
    }

    /// The class of its packets.
    pub const fn class(&self) -> PacketFlags {
        self.class
    }

    /// Asks for what its host scheme has of it.
    #[inline]
    pub fn fetch_edge(&self) {
        self.scheme.as_deref().into_iter().for_each(fetch);
    }

    fn at_edge(&mut self) -> &mut SchemeAtEnd {
        self.scheme
            .get_or_insert_with(|| Box::new(SchemeAtEnd { flow: AnyHostFlow::None, deadline: Time::NEVER }))
    }

    /// State that the host scheme keeps of the flow.
    pub fn scheme(&mut self) -> &mut AnyHostFlow {
        &mut self.at_edge().flow
    }

    /// Arms the host scheme's timer, in place of what it was before.
    pub fn set_flow_scheme_timer(&mut self, delay: Span, nic: &mut HostPort<'_, '_>) {
        let deadline = nic.now() + delay;
        self.at_edge().deadline = deadline;
        nic.set_flow_timer(deadline, self.flow_scheme_timer, self.flow);
    }

    /// A timer event at `now`: whether the host scheme is to be woken.
    pub fn flow_scheme_timer_is_due(&mut self, now: Time) -> bool {
        let Some(scheme) = self.scheme.as_mut().filter(|scheme| scheme.deadline == now) else { return false };
        scheme.deadline = Time::NEVER;
        true
    }

    /// Packets that the host scheme holds back now.
    fn held(&self) -> usize {
        self.scheme.as_ref().map_or(0, |scheme| scheme.flow.held())
    }

    /// Makes sure that an event is pending no later than the deadline.
    #[inline]
    fn arm(&mut self, nic: &mut HostPort<'_, '_>) {
        if self.deadline < self.pending {
            self.pending = self.deadline;
            nic.set_flow_timer(self.deadline, self.timer, self.flow);
        }
    }
}

/// How packets tell by which five-tuple of their flow they came.
#[derive(Clone, Copy)]
enum FiveTupleDemux {
    /// Each has a flow number of its own, so much on from that of the one before.
    ByNumber { step: u32 },
    /// By their entropies.
    ByEntropy,
}

/// One end of a flow at its host: those of all its five-tuples, by port. One cache line, without
/// those of the other ports.
pub struct FlowEnd {
    /// End of port 0, with the flow's own number and the transport's timer.
    pub first: End,
    /// The number of its transport.
    pub transport: u8,
    /// State of the queue pair at the host's RDMA card, if it sends.
    pub pair: QueuePair,
    told: FiveTupleDemux,
    /// The other ports, if there are any.
    more: Option<Box<ExtraPorts>>,
}

impl FlowEnd {
    /// The end of a flow over this transport, with one five-tuple.
    pub const fn new(first: End, transport: u8) -> Self {
        Self { first, transport, pair: QueuePair::IDLE, told: FiveTupleDemux::ByEntropy, more: None }
    }

    /// The flow has so many subflows, the number of each being `step` on from that of the one
    /// before.
    pub fn set_subflows(&mut self, count: u8, step: u32, scheme: impl Fn() -> AnyHostFlow) {
        let first = &self.first;
        let subflow = |port: u32| {
            let key = u64::from(port) << 32 | u64::from(first.entropy);
            first.beside(FlowId(first.flow.0 + port * step), (mix64(key) >> 32) as u32, scheme())
        };
        let others = (1..u32::from(count)).map(subflow).collect();
        let carried = vec![Vec::new(); usize::from(count)];
        self.more = (count > 1).then(|| Box::new(ExtraPorts::numbered(others, carried)));
        self.told = FiveTupleDemux::ByNumber { step };
    }

    /// The flow's ports have these entropies, its own first. No scheme at hosts sees them, other
    /// than the first.
    pub fn set_entropies(&mut self, entropies: &[u32]) {
        let port = |&entropy: &u32| self.first.beside(self.first.flow, entropy, AnyHostFlow::None);
        let others: Vec<End> = entropies.iter().skip(1).map(port).collect();
        if self.more.is_some() || !others.is_empty() {
            let more = self.more.get_or_insert_default();
            more.name(others);
        }
    }

    /// The ends of the ports but for the first.
    fn others(&self) -> &[End] {
        self.more.as_ref().map_or(&[], |more| &more.others)
    }

    /// The entropies by which ports are told apart, the flow's own first; nothing if it has one, or
    /// is told otherwise.
    fn entropies(&self) -> Option<Arc<[u32]>> {
        let named = matches!(self.told, FiveTupleDemux::ByEntropy) && !self.others().is_empty();
        let ends = std::iter::once(&self.first).chain(self.others());
        named.then(|| ends.map(|end| end.entropy).collect())
    }

    /// The number of the flow.
    pub const fn flow(&self) -> FlowId {
        self.first.flow
    }

    /// Every end.
    pub fn all(&mut self) -> impl Iterator<Item = &mut End> {
        let others = self.more.iter_mut().flat_map(|more| &mut more.others);
        std::iter::once(&mut self.first).chain(others)
    }

    /// The end with this number, which one of them has.
    pub fn numbered(&mut self, flow: FlowId) -> &mut End {
        self.of(self.port_numbered(flow))
    }

    /// Reads the option of a data packet of a subflow. All copies of a segment say the same (RFC
    /// 8684 §3.3.1).
    #[cold]
    pub fn note_option(&mut self, packet: &Packet, option: u32) {
        let port = usize::from(self.port_numbered(packet.flow));
        if let Some(carried) = self.more.as_mut().and_then(|more| more.carried.get_mut(port)) {
            let segment = packet.seq as usize;
            carried.resize(carried.len().max(segment + 1), 0);
            carried[segment] = option;
        }
    }

    /// Facts on a packet that arrived for a transport with these five-tuples.
    #[inline]
    pub fn arrived<'p>(&self, packet: &'p Packet, five_tuples: FiveTuples) -> ArrivedPacket<'p> {
        if five_tuples == FiveTuples::One { ArrivedPacket::alone(packet) } else { self.arrived_by(packet) }
    }

    #[inline]
    fn arrived_by<'p>(&self, packet: &'p Packet) -> ArrivedPacket<'p> {
        match self.told {
            FiveTupleDemux::ByNumber { .. } => self.arrived_numbered(packet),
            FiveTupleDemux::ByEntropy => {
                ArrivedPacket { port: self.port_with(packet.entropy), ..ArrivedPacket::alone(packet) }
            }
        }
    }

    /// The port with this entropy; the first one if none has it.
    #[inline]
    fn port_with(&self, entropy: u32) -> u8 {
        self.more.as_ref().map_or(0, |more| more.port_with(entropy))
    }

    fn arrived_numbered<'p>(&self, packet: &'p Packet) -> ArrivedPacket<'p> {
        let port = self.port_numbered(packet.flow);
        let carried = self.more.as_ref().and_then(|more| more.carried.get(usize::from(port)));
        let option = carried.filter(|_| packet.kind == Kind::Data);
        let segment = option.and_then(|carried| carried.get(packet.seq as usize)).copied();
        ArrivedPacket { packet, port, segment: segment.unwrap_or(packet.seq) }
    }

    /// Packets that the host scheme holds back now.
    pub fn held(&self) -> usize {
        self.others().iter().chain(std::iter::once(&self.first)).map(End::held).sum()
    }

    fn of(&mut self, port: u8) -> &mut End {
        // Of the first port that is no place at all.
        let other = usize::from(port).wrapping_sub(1);
        match self.more.as_mut().and_then(|more| more.others.get_mut(other)) {
            Some(end) => end,
            None => &mut self.first,
        }
    }

    /// The port whose five-tuple has this flow number.
    fn port_numbered(&self, flow: FlowId) -> u8 {
        match self.told {
            FiveTupleDemux::ByNumber { step } => ((flow.0 - self.first.flow.0) / step) as u8,
            FiveTupleDemux::ByEntropy => 0,
        }
    }
}

/// Outbox of a transport's end: all that it can do.
pub struct HostOutbox<'s, 'h, 'n, 'a> {
    /// The end that acts.
    pub end: &'s mut FlowEnd,
    /// Fields of the host that few packets need, so that they are not even looked up.
    pub rest: &'s mut Box<HostCold>,
    /// The way to the fabric.
    pub here: &'s mut HostCall<'h, 'n, 'a>,
}

/// A packet of an end. `is_ack_clocked` counts for data.
#[inline(always)]
#[allow(clippy::inline_always)]
fn packet_of(end: &End, outgoing: Outgoing, is_ack_clocked: bool) -> Packet {
    let mut packet = Packet::default();
    packet.sent = outgoing.sent;
    packet.flow = end.flow;
    packet.seq = outgoing.seq;
    packet.entropy = end.entropy;
    packet.src = end.host;
    packet.dst = end.peer;
    packet.wire_bytes = outgoing.wire_bytes;
    packet.kind = outgoing.kind;
    packet.flags = outgoing.flags.with(end.class);
    match packet.kind {
        Kind::Data => packet.set_ack_clocked(is_ack_clocked),
        Kind::Ack => packet.set_sack_blocks(outgoing.sack),
        _ => {}
    }
    packet
}

impl HostOutbox<'_, '_, '_, '_> {
    /// Sends a packet by a port with all that it may carry beyond its transport's fields, by way of
    /// the host scheme if there is one.
    #[inline(never)]
    fn send_by(&mut self, port: u8, outgoing: Outgoing, option: Option<u32>) {
        let end = self.end.of(port);
        let mut packet = packet_of(end, outgoing, self.here.common.is_ack_clocked);
        if self.here.common.hooks.on_send {
            self.rest.virtual_switch.route(end, &mut packet, self.here);
        }
        if let Some(option) = option {
            self.here.nic.send_with_option(packet, option);
        } else if let Some(entropies) = self.named_by(&packet) {
            self.here.nic.send_with_contents(packet, entropies);
        } else {
            self.send_past_edge(packet);
        }
    }

    /// Gives a packet its path, where no host scheme chooses paths. Both ends of a flow have one
    /// five-tuple, so that what they make of it by a path is the same.
    fn set_path(&mut self, path: u16, packet: &mut Packet) {
        packet.entropy ^= u32::from(path);
        self.here.nic.note_label(packet);
    }

    /// Sends a packet that the host scheme has seen: an RDMA card takes none of the host's CPU.
    fn send_past_edge(&mut self, packet: Packet) {
        if self.end.pair.is_rnic_scheduled {
            self.here.nic.send(packet);
        } else {
            self.here.nic.send_apart(packet);
        }
    }

    /// The entropies of the flow's ports, if the packet is to name them.
    fn named_by(&self, packet: &Packet) -> Option<Arc<[u32]>> {
        if packet.kind == Kind::CreditRequest { self.end.entropies() } else { None }
    }

    fn note_resend(&mut self, port: u8, segment: u32, sent: Time, cause: Resend) {
        let flow = self.end.of(port).flow;
        self.rest.log.resent.push(RetransmissionCauses { flow, segment, sent, cause });
    }

    fn note_timeout(&mut self, port: u8) {
        if self.here.common.hooks.on_send {
            self.rest.virtual_switch.timed_out(self.end.of(port), self.here);
        }
    }
}

impl Outbox for HostOutbox<'_, '_, '_, '_> {
    #[inline]
    fn now(&self) -> Time {
        self.here.nic.now()
    }

    fn link_pace(&self) -> PicosPerByte {
        self.here.nic.pace()
    }

    fn free_at(&self) -> Time {
        self.here.nic.free_at()
    }

    fn random(&mut self) -> &mut Stream {
        &mut self.rest.stream
    }

    /// A call, and all of it in one: see [`HostPort::send`].
    #[inline(never)]
    fn send(&mut self, outgoing: Outgoing) {
        if self.here.common.sends_apart {
            return self.send_by(0, outgoing, None);
        }
        let packet = packet_of(&self.end.first, outgoing, self.here.common.is_ack_clocked);
        self.here.nic.send(packet);
    }

    /// Whoever answers so is an RDMA card.
    fn send_ack(&mut self, outgoing: Outgoing) {
        let end = &mut self.end.first;
        let mut packet = packet_of(end, outgoing, false);
        packet.set_sack_blocks(outgoing.sack);
        if self.here.common.hooks.on_send {
            self.rest.virtual_switch.route(end, &mut packet, self.here);
        }
        self.here.nic.send(packet);
    }

    fn send_by_path(&mut self, path: u16, outgoing: Outgoing) {
        if self.here.common.hooks.on_send {
            return self.send_by(0, outgoing, None);
        }
        let mut packet = packet_of(&self.end.first, outgoing, self.here.common.is_ack_clocked);
        self.set_path(path, &mut packet);
        self.send_past_edge(packet);
    }

    fn send_ack_by_path(&mut self, path: u16, outgoing: Outgoing) {
        if self.here.common.hooks.on_send {
            return self.send_ack(outgoing);
        }
        let mut packet = packet_of(&self.end.first, outgoing, false);
        packet.set_sack_blocks(outgoing.sack);
        self.set_path(path, &mut packet);
        self.here.nic.send(packet);
    }

    #[inline]
    fn path_of(&self, packet: &Packet) -> u16 {
        if self.here.common.hooks.on_send { 0 } else { (packet.entropy ^ self.end.first.entropy) as u16 }
    }

    #[inline]
    fn request_turn(&mut self) {
        self.end.pair.is_ready = true;
    }

    #[cold]
    fn note_retransmission(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.note_resend(0, segment, sent, cause);
    }

    #[inline]
    fn wake_at(&mut self, at: Time) {
        self.end.first.deadline = at;
        self.end.first.arm(&mut self.here.nic);
    }

    fn timed_out(&mut self) {
        self.note_timeout(0);
    }
}
