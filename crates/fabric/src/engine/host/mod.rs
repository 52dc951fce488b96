//! A host: its ends of flows, its host scheme, its random streams and its log.
//!
//! A host knows the traffic that begins and ends at it, as its applications do, and the map of its
//! operator. Whatever else it learns came in a packet. It acts on the fabric through its
//! [`HostPort`] alone, which reaches no other node.
//!
//! A receiving end is opened by the first packet of its flow, and a sending end closes when
//! everything is acknowledged; no packet says so to the receiver. So a receiving end that has
//! everything stays for a while, as a socket does in TIME-WAIT (RFC 9293 §3.6), and answers what is
//! sent again. What comes later is answered by an end that is opened once more and has everything.

mod ahead;
mod closing;
mod connection;
mod ends;
mod external;
mod extra_ports;
mod facts;
mod flow;
mod intake;
mod log;
mod nic;
mod outbox;
mod plan;
mod qp_stalls;
mod rnic;
mod starting;
mod virtual_switch;
mod waiting;
mod writer;

use std::collections::VecDeque;
use std::sync::Arc;

use weft_balance::{AnyHostScheme, HostHooks};
use weft_packet::{FlowId, HostId, Kind, Kinds, Packet};
use weft_topology::Topology;
use weft_traffic::Point;
use weft_transport::{
    Delivery, Multipath, Protocol, ReceiverOf, SenderOf, SenderState, Transports, WindowState,
};
use weft_units::{Span, Stream, Time};

pub use connection::ExternalConnections;
pub use external::{At, ExternalFlow};
pub use facts::{Facts, PacketSizes, host_schemes, route_counts};
pub use flow::{Receiver, Sender, Side};
pub use log::{HostLog, ReceiverRecord, RetransmissionCauses, SenderRecord, TimedOut};
pub use nic::HostPort;
pub use plan::{Directory, RunPlan};
pub use rnic::Gate;
pub use virtual_switch::{HostActions, VirtualSwitch};
pub use waiting::Waiting;
pub use writer::Writer;

use crate::engine::fct_breakdown::Paused;
use ends::{Before, Ends};
use log::Completion;
use outbox::{FlowEnd, HostOutbox};
use rnic::Rnic;

/// How long a receiving end that has everything stays. What comes later is answered all the same.
const LINGER: Span = Span::from_ms(1);
/// State that all hosts have in common, and room for the actions of a host scheme.
pub struct HostShared<'a> {
    /// The addressing plan.
    pub topology: &'a Topology,
    /// The packets of the transport.
    pub sizes: PacketSizes,
    /// Hooks of the host scheme.
    pub hooks: HostHooks,
    /// Packets that come in and bring more than their transport's fields, or are shown to the host
    /// scheme scheme.
    pub reads: Kinds,
    /// Packets of `reads`, with those that stop at the host for another reason: pauses, and all
    /// that its CPU works on.
    pub stops: Kinds,
    /// Whether packets that hosts send are more than queued: the host scheme is to see them, or the
    /// CPU to work on them.
    pub sends_apart: bool,
    /// Whether hosts count what comes to them over each path, or while faults take packets.
    pub counts_arrivals: bool,
    /// Explicit routes from rack to rack, as the operator's map has them; empty unless an edge
    /// scheme asks.
    pub routes: Arc<[u16]>,
    /// Where a host scheme leaves what it wants done.
    pub actions: HostActions,
    /// Flows of which a receiver here has everything.
    pub delivered: usize,
    /// Whether an acknowledgement has just come: what its sender sends in this call is ack-clocked.
    pub is_ack_clocked: bool,
}

/// A call at one host: all that it can reach beside the host itself.
pub struct HostCall<'h, 'n, 'a> {
    /// The way to the fabric.
    pub nic: HostPort<'n, 'a>,
    /// State that all hosts have in common.
    pub common: &'h mut HostShared<'a>,
}

/// A host. What a packet needs of it is in one cache line: one for those that it sends, and one for
/// those that it receives.
#[repr(C, align(64))]
pub struct Host<T: Transports> {
    senders: Ends<Sender<SenderOf<T>>>,
    receivers: Ends<Receiver<ReceiverOf<T>>>,
    rest: Box<HostCold>,
}

/// State of a host that few packets need, those of RDMA cards first.
#[repr(C, align(64))]
struct HostCold {
    /// RDMA card of the host.
    rnic: Rnic,
    /// The transport's random stream.
    stream: Stream,
    virtual_switch: VirtualSwitch,
    /// Receiving ends that have everything, and until when they stay; by time.
    lingering: VecDeque<(Time, u32)>,
    /// Measurements of the host.
    log: HostLog,
    /// Dependencies of the host's flows and computations, if there are any.
    waiting: Option<Waiting>,
}

/// A transport's way out at one end of a flow.
macro_rules! outbox {
    ($host:ident, $end:expr, $here:expr) => {
        HostOutbox { end: &mut $end.end, rest: &mut $host.rest, here: $here }
    };
}

impl<T: Transports> Host<T> {
    /// A host of this number at the beginning. `may_pause` says whether its cable may be told to
    /// pause.
    pub fn new(
        host: HostId,
        directory: &Directory,
        virtual_switch: VirtualSwitch,
        stream: Stream,
        log: HostLog,
        waiting: Option<Waiting>,
        may_pause: bool,
    ) -> Self {
        let (sent, received) = directory.counts[host.index()];
        let (senders, receivers) = (Ends::new(sent), Ends::new(received));
        let rest = HostCold {
            rnic: Rnic::new(may_pause),
            stream,
            virtual_switch,
            lingering: VecDeque::new(),
            log,
            waiting,
        };
        Self { senders, receivers, rest: Box::new(rest) }
    }

    /// Lets its host scheme begin.
    pub fn start_scheme(&mut self, here: &mut HostCall<'_, '_, '_>) {
        self.rest.virtual_switch.start(here);
    }

    /// A timer of its host scheme is due.
    pub fn scheme_timer(&mut self, token: u32, here: &mut HostCall<'_, '_, '_>) {
        self.rest.virtual_switch.host_timer(token, here);
    }

    /// A packet reached the host, with this option word: reads what it brings beyond its
    /// transport's fields, and passes it through the host scheme. Returns whether one of the host's
    /// flows ended by it.
    pub fn read(
        &mut self,
        plan: &RunPlan<'_, T>,
        packet: Packet,
        option: u32,
        here: &mut HostCall<'_, '_, '_>,
    ) -> bool {
        let intercepts = here.common.hooks.on_receive;
        match packet.kind {
            Kind::Message => {
                if intercepts {
                    self.rest.virtual_switch.message(&packet, here);
                }
                return false;
            }
            Kind::Data => self.receiver(plan, &packet, here.nic.now()).end.note_option(&packet, option),
            Kind::CreditRequest => {
                if let Some(entropies) = here.nic.contents_of(&packet) {
                    self.receiver(plan, &packet, here.nic.now()).end.set_entropies(&entropies);
                }
            }
            _ => {}
        }
        if !intercepts {
            return self.deliver(plan, &packet, here);
        }
        let side = Side::of(&packet);
        if side == Side::Receiver {
            self.receiver(plan, &packet, here.nic.now());
        }
        let number = plan.directory.number(side, packet.flow);
        let Some(end) = end_of(side, &mut self.senders, &mut self.receivers, number) else {
            self.stray(&packet);
            return false;
        };
        let delivered = self.rest.virtual_switch.receive(end.numbered(packet.flow), packet, here);
        self.deliver_all(plan, delivered, here)
    }

    #[inline(never)]
    fn deliver_all(
        &mut self,
        plan: &RunPlan<'_, T>,
        delivered: Vec<Packet>,
        here: &mut HostCall<'_, '_, '_>,
    ) -> bool {
        let mut ended = false;
        for packet in &delivered {
            ended |= self.deliver(plan, packet, here);
        }
        here.common.actions.recycle(delivered);
        ended
    }

    /// A packet comes to its transport. Returns whether one of the host's flows ended by it.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller that counts, and that does little else.
    pub fn deliver(
        &mut self,
        plan: &RunPlan<'_, T>,
        packet: &Packet,
        here: &mut HostCall<'_, '_, '_>,
    ) -> bool {
        match Side::of(packet) {
            Side::Sender => self.deliver_to_sender(plan, packet, here),
            Side::Receiver => {
                self.deliver_to_receiver(plan, packet, here);
                false
            }
        }
    }

    /// A packet reached the host after its flow had ended there.
    #[cold]
    fn stray(&mut self, packet: &Packet) {
        self.rest.log.stray_credits += u64::from(packet.kind == Kind::Credit);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn deliver_to_sender(
        &mut self,
        plan: &RunPlan<'_, T>,
        packet: &Packet,
        here: &mut HostCall<'_, '_, '_>,
    ) -> bool {
        let number = plan.directory.number(Side::Sender, packet.flow);
        let Some(sender) = self.senders.get(number) else {
            self.stray(packet);
            return false;
        };
        let protocol = plan.of(&sender.end);
        let arrived = sender.end.arrived(packet, protocol.five_tuples());
        here.common.is_ack_clocked = packet.kind == Kind::Ack;
        let mut out = outbox!(self, sender, here);
        let state = protocol.sender_receives(&mut sender.state, arrived, &mut out);
        if protocol.is_rnic_scheduled() {
            self.take_turn(plan, number, here);
        }
        here.common.is_ack_clocked = false;
        state == SenderState::Done && self.finish(plan, number, here)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn deliver_to_receiver(
        &mut self,
        plan: &RunPlan<'_, T>,
        packet: &Packet,
        here: &mut HostCall<'_, '_, '_>,
    ) {
        let now = here.nic.now();
        if here.common.counts_arrivals {
            self.rest.log.note_arrival(plan, packet, here.common.topology, now);
        }
        if packet.kind == Kind::SenderAck {
            // It tells of what receivers do not have: no transport asks for it.
            return;
        }
        let number = plan.directory.number(Side::Receiver, packet.flow);
        let place = match self.receivers.place(number) {
            Some(place) => place,
            None => self.open_receiver(plan, (number, packet), now),
        };
        let receiver = self.receivers.at(place);
        if packet.kind == Kind::Data {
            receiver.note_path(packet, now, || here.nic.paused_on_way(packet));
        }
        let protocol = plan.of(&receiver.end);
        let arrived = receiver.end.arrived(packet, protocol.five_tuples());
        let mut out = outbox!(self, receiver, here);
        let delivery = protocol.receiver_receives(&mut receiver.state, arrived, &mut out);
        if delivery == Delivery::Complete {
            here.common.delivered += 1;
            self.complete(plan, number, Some(packet), here);
        }
    }

    /// The timer of a sending end is due. Returns whether the flow ended by it.
    pub fn wake_sender(
        &mut self,
        plan: &RunPlan<'_, T>,
        flow: FlowId,
        here: &mut HostCall<'_, '_, '_>,
    ) -> bool {
        let number = plan.directory.number(Side::Sender, flow);
        let Some(sender) = self.senders.get(number) else { return false };
        if !sender.end.first.timer_is_due(&mut here.nic) {
            return false;
        }
        let before = plan.of(&sender.end).sender_stats(&sender.state).timed_out;
        let protocol = plan.of(&sender.end);
        let mut out = outbox!(self, sender, here);
        let state = protocol.sender_wakes(&mut sender.state, &mut out);
        let sum = protocol.sender_stats(&sender.state).timed_out;
        if sum != before {
            self.rest.log.timeouts.push(TimedOut { flow, at: here.nic.now(), sum });
        }
        if protocol.is_rnic_scheduled() {
            self.take_turn(plan, number, here);
        }
        state == SenderState::Done && self.finish(plan, number, here)
    }

    /// The window of one of its flows, while it is sending.
    pub fn window(&mut self, plan: &RunPlan<'_, T>, flow: FlowId) -> Option<WindowState> {
        let sender = self.senders.get(plan.directory.number(Side::Sender, flow))?;
        plan.of(&sender.end).window(&sender.state)
    }

    /// The timer of a receiving end is due.
    pub fn wake_receiver(&mut self, plan: &RunPlan<'_, T>, flow: FlowId, here: &mut HostCall<'_, '_, '_>) {
        let number = plan.directory.number(Side::Receiver, flow);
        let Some(receiver) = self.receivers.get(number) else { return };
        if !receiver.end.first.timer_is_due(&mut here.nic) {
            return;
        }
        let protocol = plan.of(&receiver.end);
        let mut out = outbox!(self, receiver, here);
        if protocol.receiver_wakes(&mut receiver.state, &mut out) == Delivery::Complete {
            here.common.delivered += 1;
            self.complete(plan, number, None, here);
        }
    }

    /// The host scheme's timer for one end of a flow is due. Returns whether the flow ended by it.
    pub fn flow_scheme_timer(
        &mut self,
        plan: &RunPlan<'_, T>,
        side: Side,
        flow: FlowId,
        here: &mut HostCall<'_, '_, '_>,
    ) -> bool {
        let number = plan.directory.number(side, flow);
        let Some(end) = end_of(side, &mut self.senders, &mut self.receivers, number) else { return false };
        let end = end.numbered(flow);
        if !end.flow_scheme_timer_is_due(here.nic.now()) {
            return false;
        }
        let delivered = self.rest.virtual_switch.flow_timer(end, here);
        self.deliver_all(plan, delivered, here)
    }

    /// The receiving end of the flow of a packet: opened if it is not open.
    fn receiver(
        &mut self,
        plan: &RunPlan<'_, T>,
        packet: &Packet,
        now: Time,
    ) -> &mut Receiver<ReceiverOf<T>> {
        let number = plan.directory.number(Side::Receiver, packet.flow);
        let place = self.receivers.place(number);
        let place = place.unwrap_or_else(|| self.open_receiver(plan, (number, packet), now));
        self.receivers.at(place)
    }

    /// Opens the receiving end of the flow of a packet, by its number at its host. Returns its
    /// place.
    #[cold]
    #[inline(never)]
    fn open_receiver(&mut self, plan: &RunPlan<'_, T>, (number, packet): (u32, &Packet), now: Time) -> usize {
        let (lingering, scheme) = (&mut self.rest.lingering, &self.rest.virtual_switch.scheme);
        self.receivers.open(number, |before| {
            let flow = plan.whole(packet.flow);
            let (end, size) = (plan.end(flow, Side::Receiver, scheme), plan.size(flow));
            let protocol = plan.of(&end);
            // Only an end of which nothing needs to be kept was closed.
            let again = if before == Before::Closed { protocol.finished_receiver(size) } else { None };
            if again.is_some() {
                lingering.push_back((now + LINGER, number));
            }
            let state = again.unwrap_or_else(|| protocol.receiver(size));
            // When a flow started that waited for others is known at its source alone; what a
            // packet says of itself is not later.
            let start = plan.flows[flow.index()].start;
            let start = if plan.waits(flow) { start.max(packet.sent) } else { start };
            Receiver::new(end, state, start)
        })
    }

    /// The receiver has the last byte: with `last`, or because a timer let go what was held.
    #[cold]
    fn complete(
        &mut self,
        plan: &RunPlan<'_, T>,
        number: u32,
        last: Option<&Packet>,
        here: &mut HostCall<'_, '_, '_>,
    ) {
        let now = here.nic.now();
        let Some(receiver) = self.receivers.get(number) else { return };
        let protocol = plan.of(&receiver.end);
        let stall = protocol.receiver_stats(&receiver.state).stalls.by_reordering_until(now);
        let (parts, since) = receiver.followed.complete(last, now, stall, || {
            last.map_or_else(Paused::default, |packet| here.nic.paused_on_way(packet))
        });
        receiver.complete = Some(Completion { at: now, by_timer: last.is_none(), parts, since });
        let flow = receiver.end.flow();
        let size = plan.size(flow);
        if protocol.finished_receiver(size).is_some() {
            self.rest.lingering.push_back((now + LINGER, number));
        }
        self.forget_finished(plan, now);
        self.reach(plan, flow, Point::Received, here);
    }

    /// Closes the receiving ends that have had everything for long enough.
    fn forget_finished(&mut self, plan: &RunPlan<'_, T>, now: Time) {
        while let Some(&(_, number)) = self.rest.lingering.front().filter(|(until, _)| *until <= now) {
            self.rest.lingering.pop_front();
            let holds = self.receivers.get(number).is_some_and(|receiver| receiver.end.held() > 0);
            if holds {
                self.rest.lingering.push_back((now + LINGER, number));
            } else if let Some(receiver) = self.receivers.close(number) {
                self.rest.log.note_receiver(plan, &receiver);
            }
        }
    }

    /// Everything that the flow had to send is acknowledged. True: a flow ended.
    #[cold]
    fn finish(&mut self, plan: &RunPlan<'_, T>, number: u32, here: &mut HostCall<'_, '_, '_>) -> bool {
        let Some(mut sender) = self.senders.close(number) else { return false };
        if here.common.hooks.on_send {
            for end in sender.end.all() {
                self.rest.virtual_switch.finished(end, here);
            }
        }
        self.rest.log.note_sender(plan, &sender, Some(here.nic.now()));
        self.reach(plan, sender.end.flow(), Point::Acknowledged, here);
        true
    }

    /// Host scheme of the host.
    pub const fn scheme(&self) -> &AnyHostScheme {
        &self.rest.virtual_switch.scheme
    }

    /// Measurements of the host so far.
    pub const fn log(&self) -> &HostLog {
        &self.rest.log
    }

    /// Measurements of the host so far, to be taken in.
    pub const fn log_mut(&mut self) -> &mut HostLog {
        &mut self.rest.log
    }

    /// Sending ends of the host that are open.
    pub fn senders(&self) -> impl Iterator<Item = &Sender<SenderOf<T>>> {
        self.senders.iter()
    }

    /// Receiving ends of the host that are open.
    pub fn receivers(&self) -> impl Iterator<Item = &Receiver<ReceiverOf<T>>> {
        self.receivers.iter()
    }

    /// Most flows of which it had one end open at one time: of those that it sends and of those
    /// that it receives, the more.
    pub fn peak_flows(&self) -> usize {
        self.senders.peak().max(self.receivers.peak())
    }

    /// Measurements of the host, the flows that are still open included.
    pub fn into_log(mut self, plan: &RunPlan<'_, T>) -> HostLog {
        for sender in self.senders.iter() {
            self.rest.log.note_sender(plan, sender, None);
        }
        for receiver in self.receivers.iter() {
            self.rest.log.note_receiver(plan, receiver);
        }
        self.rest.log
    }
}

/// One end of a flow, if it is open.
fn end_of<'e, S, R>(
    side: Side,
    senders: &'e mut Ends<Sender<S>>,
    receivers: &'e mut Ends<Receiver<R>>,
    number: u32,
) -> Option<&'e mut FlowEnd> {
    match side {
        Side::Sender => senders.get(number).map(|sender| &mut sender.end),
        Side::Receiver => receivers.get(number).map(|receiver| &mut receiver.end),
    }
}
