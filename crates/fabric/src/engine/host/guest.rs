//! A flow of guests, as its ends see it from outside: by the packets that pass their cables.
//!
//! What a kernel thinks is not known here. Why it sends a segment again is inferred: after a silence that is longer than anything
//! else but a timeout, the retransmission timer has expired, and until everything that was sent by then is acknowledged, what is
//! sent again belongs to that. Anything else is fast recovery, probes for a lost tail among it.

use weft_packet::{FlowId, Kind, Packet, PacketFlags};
use weft_transport::{Resend, SenderStats, Transports};
use weft_units::{Span, Time};

use super::closing::Closing;
use super::intake::Intake;
use super::log::Completion;
use super::outbox::FlowEnd;
use super::{Here, Host, Plan, Receiver, ReceiverRecord, Resent, SenderRecord, Side, TimedOut};
use crate::engine::deliveries::kind_of;
use crate::engine::guests::Frame;

/// The sending end of a flow.
struct Sending {
    end: FlowEnd,
    stats: SenderStats,
    /// The first byte that was never sent, and the first that is not acknowledged.
    next: u64,
    acknowledged: u64,
    /// What is sent again below belongs to a timeout, or to a fast recovery.
    timed_out_below: u64,
    recovers_below: u64,
    /// When it last sent something, or heard of the other end.
    active: Time,
    has_asked: bool,
    all_acknowledged: Option<Time>,
}

/// A call about a flow at one of its guests: the host, and all that can be reached there.
pub struct At<'c, 'a, T: Transports> {
    /// The host.
    pub host: &'c mut Host<T>,
    /// The plan of the run.
    pub plan: &'c Plan<'a, T>,
    /// The way to the fabric.
    pub here: Here<'c, 'c, 'a>,
}

/// What is known of a flow at its guests. An end is there with its first packet, and until the run is over: what a guest still had
/// to send when its flow ended counts as well.
pub struct GuestFlow {
    flow: FlowId,
    quiet: Span,
    sender: Option<Sending>,
    receiver: Option<Receiver<Intake>>,
    /// How many bytes the receiver has acknowledged.
    told: u64,
    /// What the receiver echoes of when data was sent.
    stamp: Time,
    /// Its sending end is done.
    is_over: bool,
    /// How its end at a simulated host closes the connection.
    closing: Option<Box<Closing>>,
}

impl GuestFlow {
    /// Nothing of it has been seen. Its timers take longer than `quiet`.
    pub const fn new(flow: FlowId, quiet: Span) -> Self {
        let stamp = Time::ZERO;
        Self { flow, quiet, sender: None, receiver: None, told: 0, stamp, is_over: false, closing: None }
    }

    fn sender<T: Transports>(&mut self, at: &At<'_, '_, T>) -> &mut Sending {
        let flow = self.flow;
        self.sender.get_or_insert_with(|| Sending {
            end: at.plan.end(flow, Side::Sender, &at.host.edge.scheme),
            stats: SenderStats::default(),
            next: 0,
            acknowledged: 0,
            timed_out_below: 0,
            recovers_below: 0,
            active: at.plan.flows[flow.index()].start,
            has_asked: false,
            all_acknowledged: None,
        })
    }

    fn receiver<T: Transports>(&mut self, at: &At<'_, '_, T>) -> &mut Receiver<Intake> {
        let flow = self.flow;
        self.receiver.get_or_insert_with(|| {
            let end = at.plan.end(flow, Side::Receiver, &at.host.edge.scheme);
            Receiver::new(end, Intake::default(), at.plan.flows[flow.index()].start)
        })
    }

    fn end<T: Transports>(&mut self, side: Side, at: &At<'_, '_, T>) -> &mut FlowEnd {
        match side {
            Side::Sender => &mut self.sender(at).end,
            Side::Receiver => &mut self.receiver(at).end,
        }
    }

    /// Which end is at the host that sent a packet, or gets it.
    fn side<T: Transports>(&self, at_source: bool, packet: &Packet, at: &At<'_, '_, T>) -> Side {
        let from_source = packet.src == at.plan.flows[self.flow.index()].src;
        if from_source == at_source { Side::Sender } else { Side::Receiver }
    }

    /// One of its hosts begins to send a packet: the fields that its end gives it, and what its edge scheme does with it.
    pub fn sends<T: Transports>(&mut self, packet: &mut Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (now, side, stamp) = (at.here.nic.now(), self.side(true, packet, at), self.stamp);
        let echoes = matches!(packet.kind, Kind::Ack | Kind::SynAck) && side == Side::Receiver;
        packet.sent = if echoes { stamp } else { now };
        self.told = self.told.max(frame.acknowledged);
        let end = self.end(side, at);
        packet.entropy = frame.entropy.unwrap_or_else(|| end.first.entropy());
        packet.flags = packet.flags.with(end.first.class());
        if side == Side::Sender {
            self.note_sent(packet, frame, at);
        }
        if at.here.common.hooks.sending {
            let end = self.end(side, at);
            at.host.edge.route(&mut end.first, packet, &mut at.here);
        }
    }

    fn note_sent<T: Transports>(&mut self, packet: &mut Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (now, flow, quiet) = (at.here.nic.now(), self.flow, self.quiet);
        let sender = self.sender(at);
        let silence = now.since(sender.active);
        let asks_again = packet.kind == Kind::Syn && std::mem::replace(&mut sender.has_asked, true);
        let sends_again = !frame.payload.is_empty() && frame.payload.start < sender.next;
        let expired = asks_again || sends_again && silence >= quiet;
        if expired {
            sender.stats.timeouts += 1;
            sender.stats.timed_out += silence;
            sender.timed_out_below = sender.next;
            at.host.log.timeouts.push(TimedOut { flow, at: now, sum: sender.stats.timed_out });
            if at.here.common.hooks.sending {
                at.host.edge.timed_out(&mut sender.end.first, &mut at.here);
            }
        }
        if !frame.payload.is_empty() {
            sender.stats.segments_sent += 1;
        }
        if sends_again {
            packet.flags.set(PacketFlags::RETRANSMISSION);
            sender.stats.retransmissions += 1;
            let cause = sender.cause(frame.payload.start);
            at.host.log.resent.push(Resent { flow, segment: packet.seq, sent: now, cause });
        }
        sender.next = sender.next.max(frame.payload.end);
        sender.active = now;
    }

    /// A packet comes to the edge scheme of one of its hosts: what is passed on now, in order.
    pub fn passes<T: Transports>(&mut self, packet: Packet, at: &mut At<'_, '_, T>) -> Vec<Packet> {
        let side = self.side(false, &packet, at);
        let end = self.end(side, at);
        at.host.edge.receive(&mut end.first, packet, &mut at.here)
    }

    /// The edge scheme's timer for one of its ends is due: what is passed on now, in order.
    pub fn edge_timer<T: Transports>(&mut self, side: Side, at: &mut At<'_, '_, T>) -> Vec<Packet> {
        let end = &mut self.end(side, at).first;
        let is_due = end.edge_timer_is_due(at.here.nic.now());
        if is_due { at.host.edge.flow_timer(end, &mut at.here) } else { Vec::new() }
    }

    /// A packet comes to one of its hosts.
    pub fn receives<T: Transports>(&mut self, packet: &Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        if self.side(false, packet, at) == Side::Receiver {
            match packet.kind {
                Kind::Data => self.note_data(packet, frame, at),
                Kind::Syn => self.stamp = packet.sent,
                _ => {}
            }
            return;
        }
        let (size, now) = (at.plan.flows[self.flow.index()].size_bytes, at.here.nic.now());
        self.sender(at).note_acknowledgement(packet, frame, size, now);
    }

    fn note_data<T: Transports>(&mut self, packet: &Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (now, traffic) = (at.here.nic.now(), &at.plan.flows[self.flow.index()]);
        if let Some(paths) = at.host.log.paths.as_mut().filter(|_| at.here.common.counts_paths) {
            paths.note(at.here.common.topology, packet, traffic, at.plan.header_bytes(traffic));
        }
        // RFC 7323 §4.3: not what came beyond a hole, and of what one acknowledgement is for the first.
        if frame.payload.start <= self.told {
            self.stamp = packet.sent;
        }
        let receiver = self.receiver(at);
        receiver.note_path(packet, now);
        let intake = &mut receiver.state;
        intake.stats.marked += u32::from(packet.flags.has(PacketFlags::CE));
        let new = intake.take(&frame.payload, packet.flags.has(PacketFlags::RETRANSMISSION), now);
        at.host.log.closed_bytes[kind_of(traffic)] += new;
        if receiver.complete.is_none() && !traffic.background && intake.expected >= traffic.size_bytes {
            let stall = intake.stats.stalls.by_reordering_until(now);
            let parts = receiver.followed.complete(Some(packet), now, stall);
            receiver.complete = Some(Completion { at: now, by_timer: false, parts });
            at.here.common.delivered += 1;
        }
    }

    /// A packet of the guest came to the simulated host at the other end, whose transport has taken it.
    pub fn closes<T: Transports>(&mut self, packet: &Packet, frame: &Frame, at: &mut At<'_, '_, T>) {
        let (flow, side) = (self.flow, self.side(false, packet, at));
        let closing = self.closing.get_or_insert_with(|| {
            Box::new(Closing::new(at.plan.end(flow, side, &at.host.edge.scheme), side))
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
            if at.here.common.hooks.sending {
                at.host.edge.finished(&mut sender.end.first, &mut at.here);
            }
        }
        true
    }

    /// The run is over: what its sending end leaves behind.
    pub fn note_sender<T: Transports>(&self, host: &mut Host<T>) {
        if let Some(sender) = &self.sender {
            let (acknowledged, stats) = (sender.all_acknowledged, sender.stats);
            host.log.sent.push(SenderRecord { flow: self.flow, acknowledged, stats });
        }
    }

    /// The run is over: what its receiving end leaves behind.
    pub fn note_receiver<T: Transports>(&self, host: &mut Host<T>) {
        if let Some(receiver) = &self.receiver {
            host.log.received.push(ReceiverRecord {
                flow: self.flow,
                delivered: receiver.complete,
                stats: receiver.state.stats,
                path_changes: receiver.path_changes,
                wait_ps: receiver.wait_ps,
            });
        }
    }
}

impl Sending {
    /// Why the byte is sent again.
    fn cause(&mut self, byte: u64) -> Resend {
        if byte < self.timed_out_below {
            return Resend::Timeout;
        }
        if byte >= self.recovers_below {
            self.stats.fast_recoveries += 1;
            self.recovers_below = self.next;
        }
        Resend::FastRecovery
    }

    fn note_acknowledgement(&mut self, packet: &Packet, frame: &Frame, size: u64, now: Time) {
        self.active = now;
        self.stats.marked_acks += u32::from(packet.flags.has(PacketFlags::ECE));
        let outstanding = self.next > self.acknowledged;
        if frame.acknowledged > self.acknowledged {
            self.acknowledged = frame.acknowledged;
        } else if packet.kind == Kind::Ack && outstanding && frame.acknowledged == self.acknowledged {
            self.stats.duplicate_acks += 1;
        }
        if size > 0 && self.acknowledged >= size {
            self.all_acknowledged.get_or_insert(now);
        }
    }
}
