//! A flow of external hosts, as its ends see it from outside: by the packets that pass their
//! cables. It has one connection, or several (MPTCP).
//!
//! What a kernel thinks is not known here. Why it sends a segment again is inferred: after a
//! silence that is longer than anything else but a timeout, the retransmission timer has expired,
//! and until everything that was sent by then is acknowledged, what is sent again belongs to that.
//! Anything else is fast recovery, probes for a lost tail among it.

use weft_packet::{FlowId, Kind, Packet, PacketFlags};
use weft_transport::{Resend, SenderStats, Transports};
use weft_units::{Span, Time};

use super::closing::Closing;
use super::intake::Arrivals;
use super::log::Completion;
use super::outbox::{End, FlowEnd};
use super::{
    Host, HostCall, Receiver, ReceiverRecord, RetransmissionCauses, RunPlan, SenderRecord, Side, TimedOut,
};
use crate::engine::deliveries::kind_of;
use crate::engine::external_hosts::Frame;
use crate::engine::fct_breakdown::Paused;

/// The sending end of a flow.
struct Sending {
    end: FlowEnd,
    stats: SenderStats,
    /// Connections of the end: one, or by subflow.
    ways: Vec<SendingWay>,
    all_acknowledged: Option<Time>,
}

/// The sending end of a connection.
struct SendingWay {
    /// The first byte that was never sent, and the first that is not acknowledged.
    next: u64,
    acknowledged: u64,
    /// Byte below which retransmissions belong to a timeout, or to a fast recovery.
    timed_out_below: u64,
    recovers_below: u64,
    /// When it last sent something, or heard of the other end.
    active: Time,
    has_asked: bool,
}

/// Fields that the receiving end of a connection echoes.
#[derive(Clone, Copy)]
struct Echo {
    /// How many bytes it has acknowledged.
    told: u64,
    /// When data was sent.
    stamp: Time,
}

/// A call about a flow at one of its external hosts: the host, and all that can be reached there.
pub struct At<'c, 'a, T: Transports> {
    /// The host.
    pub host: &'c mut Host<T>,
    /// The plan of the run.
    pub plan: &'c RunPlan<'a, T>,
    /// The way to the fabric.
    pub here: HostCall<'c, 'c, 'a>,
}

/// State of a flow at its external hosts. An end is there with its first packet, and until the run
/// is over: packets that an external host still had to send when its flow ended count as well.
pub struct ExternalFlow {
    flow: FlowId,
    quiet: Span,
    sender: Option<Sending>,
    receiver: Option<Receiver<Arrivals>>,
    /// Fields that the receiver echoes, by subflow.
    echoes: Vec<Echo>,
    /// Whether the sending end is done.
    is_over: bool,
    /// How its end at a simulated host closes the connection.
    closing: Option<Box<Closing>>,
}

impl ExternalFlow {
    /// Nothing of it has been seen. Its timers take longer than `quiet`.
    pub const fn new(flow: FlowId, quiet: Span) -> Self {
        let echoes = Vec::new();
        Self { flow, quiet, sender: None, receiver: None, echoes, is_over: false, closing: None }
    }

    fn sender<T: Transports>(&mut self, at: &At<'_, '_, T>) -> &mut Sending {
        let flow = self.flow;
        self.sender.get_or_insert_with(|| Sending {
            end: at.plan.end(flow, Side::Sender, &at.host.rest.virtual_switch.scheme),
            stats: SenderStats::default(),
            ways: vec![SendingWay::new(at.plan.flows[flow.index()].start)],
            all_acknowledged: None,
        })
    }

    fn echo(&mut self, subflow: usize) -> &mut Echo {
        let count = self.echoes.len().max(subflow + 1);
        self.echoes.resize(count, Echo { told: 0, stamp: Time::ZERO });
        &mut self.echoes[subflow]
    }

    fn receiver<T: Transports>(&mut self, at: &At<'_, '_, T>) -> &mut Receiver<Arrivals> {
        let flow = self.flow;
        self.receiver.get_or_insert_with(|| {
            let end = at.plan.end(flow, Side::Receiver, &at.host.rest.virtual_switch.scheme);
            Receiver::new(end, Arrivals::default(), at.plan.flows[flow.index()].start)
        })
    }

    /// The end of the flow or subflow with this number.
    fn end<T: Transports>(&mut self, (side, flow): (Side, FlowId), at: &At<'_, '_, T>) -> &mut End {
        let end = match side {
            Side::Sender => &mut self.sender(at).end,
            Side::Receiver => &mut self.receiver(at).end,
        };
        end.numbered(flow)
    }

    /// Which end is at the host that sent a packet, or gets it.
    fn side<T: Transports>(&self, at_source: bool, packet: &Packet, at: &At<'_, '_, T>) -> Side {
        let from_source = packet.src == at.plan.flows[self.flow.index()].src;
        if from_source == at_source { Side::Sender } else { Side::Receiver }
    }

    /// One of its hosts begins to send a packet: the fields that its end gives it, and what its
    /// host scheme does with it.
    pub fn sends<T: Transports>(&mut self, packet: &mut Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (now, side) = (at.here.nic.now(), self.side(true, packet, at));
        let echoes = matches!(packet.kind, Kind::Ack | Kind::SynAck) && side == Side::Receiver;
        let echo = self.echo(at.plan.subflow(packet.flow));
        packet.sent = if echoes { echo.stamp } else { now };
        echo.told = echo.told.max(frame.acknowledged);
        let end = self.end((side, packet.flow), at);
        packet.entropy = frame.entropy.unwrap_or_else(|| end.entropy());
        packet.flags = packet.flags.with(end.class());
        if side == Side::Sender {
            self.note_sent(packet, frame, at);
        }
        if at.here.common.hooks.on_send {
            let end = self.end((side, packet.flow), at);
            at.host.rest.virtual_switch.route(end, packet, &mut at.here);
        }
    }

    fn note_sent<T: Transports>(&mut self, packet: &mut Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (now, flow, quiet) = (at.here.nic.now(), self.flow, self.quiet);
        let subflow = at.plan.subflow(packet.flow);
        let sender = self.sender(at);
        let (end, stats, way) = sender.way(subflow, now);
        let silence = now.since(way.active);
        let asks_again = packet.kind == Kind::Syn && std::mem::replace(&mut way.has_asked, true);
        let sends_again = !frame.payload.is_empty() && frame.payload.start < way.next;
        let expired = asks_again || sends_again && silence >= quiet;
        if expired {
            stats.timeouts += 1;
            stats.timed_out += silence;
            way.timed_out_below = way.next;
            at.host.rest.log.timeouts.push(TimedOut { flow, at: now, sum: stats.timed_out });
            if at.here.common.hooks.on_send {
                at.host.rest.virtual_switch.timed_out(end.numbered(packet.flow), &mut at.here);
            }
        }
        if !frame.payload.is_empty() {
            stats.segments_sent += 1;
        }
        if sends_again {
            packet.flags.set(PacketFlags::RETRANSMISSION);
            stats.retransmissions += 1;
            let cause = way.cause(frame.payload.start, stats);
            at.host.rest.log.resent.push(RetransmissionCauses {
                flow: packet.flow,
                segment: packet.seq,
                sent: now,
                cause,
            });
        }
        way.next = way.next.max(frame.payload.end);
        way.active = now;
    }

    /// A packet comes to the host scheme of one of its hosts: what is passed on now, in order.
    pub fn passes<T: Transports>(&mut self, packet: Packet, at: &mut At<'_, '_, T>) -> Vec<Packet> {
        let side = self.side(false, &packet, at);
        let end = self.end((side, packet.flow), at);
        at.host.rest.virtual_switch.receive(end, packet, &mut at.here)
    }

    /// The host scheme's timer for one of its ends is due: what is passed on now, in order.
    pub fn flow_scheme_timer<T: Transports>(
        &mut self,
        of: (Side, FlowId),
        at: &mut At<'_, '_, T>,
    ) -> Vec<Packet> {
        let end = self.end(of, at);
        let is_due = end.flow_scheme_timer_is_due(at.here.nic.now());
        if is_due { at.host.rest.virtual_switch.flow_timer(end, &mut at.here) } else { Vec::new() }
    }

    /// A packet comes to one of its hosts.
    pub fn receives<T: Transports>(&mut self, packet: &Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        if self.side(false, packet, at) == Side::Receiver {
            match packet.kind {
                Kind::Data => self.note_data(packet, frame, at),
                Kind::Syn => self.echo(at.plan.subflow(packet.flow)).stamp = packet.sent,
                _ => {}
            }
            return;
        }
        let (size, now) = (at.plan.flows[self.flow.index()].size_bytes, at.here.nic.now());
        let subflow = at.plan.subflow(packet.flow);
        self.sender(at).note_acknowledgement(subflow, packet, frame, size, now);
    }

    fn note_data<T: Transports>(&mut self, packet: &Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (now, traffic) = (at.here.nic.now(), &at.plan.flows[self.flow.index()]);
        if at.here.common.counts_arrivals {
            at.host.rest.log.note_arrival(at.plan, packet, at.here.common.topology, now);
        }
        // RFC 7323 §4.3: not what came beyond a hole, and of what one acknowledgement is for the
        // first.
        let subflow = at.plan.subflow(packet.flow);
        let echo = self.echo(subflow);
        if frame.payload.start <= echo.told {
            echo.stamp = packet.sent;
        }
        let receiver = self.receiver(at);
        receiver.note_path(packet, now, Paused::default);
        let arrivals = &mut receiver.state;
        arrivals.flow.stats.marked += u32::from(packet.flags.has(PacketFlags::CE));
        let new = arrivals.take(subflow, frame, packet.flags.has(PacketFlags::RETRANSMISSION), now);
        at.host.rest.log.closed_bytes[kind_of(traffic)] += new;
        if receiver.complete.is_none() && !traffic.background && arrivals.flow.expected >= traffic.size_bytes
        {
            let stall = arrivals.stats().stalls.by_reordering_until(now);
            let (parts, since) = receiver.followed.complete(Some(packet), now, stall, Paused::default);
            receiver.complete = Some(Completion { at: now, by_timer: false, parts, since });
            at.here.common.delivered += 1;
        }
    }

    /// A packet of the external host came to the simulated host at the other end, whose transport
    /// has taken it.
    pub fn closes<T: Transports>(&mut self, packet: &Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (flow, side) = (self.flow, self.side(false, packet, at));
        let closing = self.closing.get_or_insert_with(|| {
            Box::new(Closing::new(at.plan.end(flow, side, &at.host.rest.virtual_switch.scheme), side))
        });
        let size = at.plan.flows[flow.index()].size_bytes;
        if closing.answers(frame, size) {
            closing.answer(packet, at);
        }
    }

    /// The sending end is done inside. Returns whether it was not before.
    pub fn finish<T: Transports>(&mut self, at: &mut At<'_, '_, T>) -> bool {
        if std::mem::replace(&mut self.is_over, true) {
            return false;
        }
        if let Some(sender) = &mut self.sender {
            sender.all_acknowledged.get_or_insert(at.here.nic.now());
            if at.here.common.hooks.on_send {
                for end in sender.end.all() {
                    at.host.rest.virtual_switch.finished(end, &mut at.here);
                }
            }
        }
        true
    }

    /// The run is over: what its sending end leaves behind.
    pub fn note_sender<T: Transports>(&self, host: &mut Host<T>) {
        if let Some(sender) = &self.sender {
            let (acknowledged, stats) = (sender.all_acknowledged, sender.stats);
            host.rest.log.sent.push(SenderRecord { flow: self.flow, acknowledged, stats });
        }
    }

    /// The run is over: what its receiving end leaves behind.
    pub fn note_receiver<T: Transports>(&self, host: &mut Host<T>) {
        if let Some(receiver) = &self.receiver {
            host.rest.log.received.push(ReceiverRecord {
                flow: self.flow,
                delivered: receiver.complete,
                stats: receiver.state.stats(),
                path_changes: receiver.path_changes,
                wait_ps: receiver.wait_ps,
            });
        }
    }
}

impl Sending {
    /// A connection of the flow, which began now if it is new, with the end of the flow and what is
    /// counted there.
    fn way(&mut self, subflow: usize, now: Time) -> (&mut FlowEnd, &mut SenderStats, &mut SendingWay) {
        self.ways.resize_with(self.ways.len().max(subflow + 1), || SendingWay::new(now));
        (&mut self.end, &mut self.stats, &mut self.ways[subflow])
    }

    fn note_acknowledgement(&mut self, subflow: usize, packet: &Packet, frame: &Frame, size: u64, now: Time) {
        let (_, stats, way) = self.way(subflow, now);
        way.note_acknowledgement(packet, frame, stats, now);
        let of_flow = frame.data.as_ref().map_or(Some(frame.acknowledged), |data| data.acknowledged);
        if size > 0 && of_flow.is_some_and(|acknowledged| acknowledged >= size) {
            self.all_acknowledged.get_or_insert(now);
        }
    }
}

impl SendingWay {
    /// Nothing was sent so far.
    const fn new(active: Time) -> Self {
        Self { next: 0, acknowledged: 0, timed_out_below: 0, recovers_below: 0, active, has_asked: false }
    }

    /// Why the byte is sent again.
    const fn cause(&mut self, byte: u64, stats: &mut SenderStats) -> Resend {
        if byte < self.timed_out_below {
            return Resend::Timeout;
        }
        if byte >= self.recovers_below {
            stats.fast_recoveries += 1;
            self.recovers_below = self.next;
        }
        Resend::FastRecovery
    }

    fn note_acknowledgement(&mut self, packet: &Packet, frame: &Frame, stats: &mut SenderStats, now: Time) {
        self.active = now;
        stats.marked_acks += u32::from(packet.is_echo());
        let outstanding = self.next > self.acknowledged;
        if frame.acknowledged > self.acknowledged {
            self.acknowledged = frame.acknowledged;
        } else if packet.kind == Kind::Ack && outstanding && frame.acknowledged == self.acknowledged {
            stats.duplicate_acks += 1;
        }
    }
}
