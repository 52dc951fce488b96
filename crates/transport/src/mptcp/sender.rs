//! The sending end: a TCP sender for each subflow, and who carries what.

use std::collections::VecDeque;

use weft_packet::{Kind, PacketFlags};
use weft_units::{PicosPerByte, Span, Stream, Time};

use super::data::Data;
use super::{Mptcp, Scheduler, take_data_ack};
use crate::congestion::{Coupled, Growth, SubflowWindow};
use crate::{
    ArrivedPacket, FlowSize, Outbox, Outgoing, Ports, Protocol, Resend, SenderState, SenderStats, SinglePath,
    Written, tcp,
};

/// The sending end of a flow.
#[derive(Debug, Clone)]
pub struct Sender {
    subflows: Vec<Subflow>,
    data: Data,
    /// How many of the subflows are in use, at least one.
    open: u8,
}

#[derive(Debug, Clone)]
struct Subflow {
    tcp: tcp::Sender,
    /// The flow's segment that each of its own carries, from `base` on.
    carried: VecDeque<u32>,
    base: u32,
    deadline: Time,
    losses: Losses,
}

/// Where a subflow reduced its window, in segments acknowledged by then.
#[derive(Debug, Clone, Default)]
struct Losses {
    known: tcp::Reductions,
    last: u32,
    before: u32,
}

impl Losses {
    /// Notes a reduction, if there was one. What follows with nothing acknowledged in between
    /// belongs to it.
    fn note(&mut self, reductions: tcp::Reductions, acknowledged: u32) {
        if reductions != self.known {
            self.known = reductions;
            if acknowledged > self.last {
                (self.before, self.last) = (self.last, acknowledged);
            }
        }
    }

    /// Segments acknowledged since the last reduction, or between the last two if they are more.
    fn distance(&self, acknowledged: u32) -> u32 {
        (acknowledged - self.last).max(self.last - self.before)
    }
}

impl Sender {
    pub(super) fn new(mptcp: &Mptcp, size: FlowSize) -> Self {
        let subflow = || Subflow {
            tcp: mptcp.tcp.sender(size),
            carried: VecDeque::new(),
            base: 0,
            deadline: Time::NEVER,
            losses: Losses::default(),
        };
        Self {
            subflows: (0..mptcp.subflows).map(|_| subflow()).collect(),
            data: Data::new(size, mptcp.subflows),
            open: 1,
        }
    }

    /// The application has written so much.
    pub(super) const fn limit(&mut self, written: Written) {
        self.data.written = written.segments;
    }

    pub(super) fn start(&mut self, mptcp: &Mptcp, out: &mut impl Ports) {
        self.with(mptcp, 0, out, |tcp, out| mptcp.tcp.start(tcp, out));
    }

    pub(super) fn receives(
        &mut self,
        mptcp: &Mptcp,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> SenderState {
        let (index, mut packet) = (arrived.port, *arrived.packet);
        if packet.kind == Kind::Ack {
            self.data.acknowledge(take_data_ack(&mut packet));
            if self.data.is_delivered() {
                out.wake_at(Time::NEVER);
                return SenderState::Done;
            }
        }
        let control = Coupled { alone: &mptcp.tcp.control, growth: self.growth(mptcp, index) };
        self.with(mptcp, index, out, |tcp, out| {
            tcp.receives(&mptcp.tcp, &control, &packet, out);
        });
        if self.open < mptcp.subflows && self.data.acknowledged() >= mptcp.join_after {
            self.open = mptcp.subflows;
            self.push(mptcp, out);
        }
        SenderState::Open
    }

    /// The timers of subflows are due.
    pub(super) fn wakes(&mut self, mptcp: &Mptcp, out: &mut impl Ports) -> SenderState {
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            if subflow.deadline > out.now() {
                continue;
            }
            subflow.deadline = Time::NEVER;
            let timeouts = subflow.tcp.stats().timeouts;
            self.with(mptcp, index as u8, out, |tcp, out| {
                mptcp.tcp.sender_wakes(tcp, out);
            });
            if self.subflows[index].tcp.stats().timeouts > timeouts {
                // Whatever path it is on may be dead, and the flow may have no other one yet.
                self.open = mptcp.subflows.min(self.open + 1);
                self.reinject(index as u8);
                self.push(mptcp, out);
            }
        }
        SenderState::Open
    }

    /// Lets other subflows send the outstanding segments of a subflow that timed out; each segment
    /// once per series of timeouts.
    fn reinject(&mut self, index: u8) {
        let subflow = &self.subflows[usize::from(index)];
        if subflow.tcp.timeouts_in_a_row() != 1 {
            return;
        }
        self.data.give_back(index, subflow.carried.iter().copied());
    }

    /// Lets every subflow in use that has room take what there is to take.
    pub(super) fn push(&mut self, mptcp: &Mptcp, out: &mut impl Ports) {
        let mut order: Vec<u8> = (0..self.open).collect();
        if mptcp.scheduler == Scheduler::LowestRtt {
            // Those that were never measured come last.
            let round_trip = |index: &u8| self.subflows[usize::from(*index)].round_trip();
            order.sort_by_key(|index| round_trip(index).unwrap_or(Span::MAX));
        }
        for index in order {
            if self.data.available(index) > 0 {
                self.with(mptcp, index, out, |tcp, out| tcp.resume(&mptcp.tcp, out));
            }
        }
    }

    /// How a subflow's window grows in congestion avoidance, as all of them stand.
    fn growth(&self, mptcp: &Mptcp, index: u8) -> Growth {
        let own = self.subflows.get(usize::from(index)).filter(|subflow| subflow.tcp.avoids_congestion());
        let own = own.and_then(Subflow::share);
        Growth::new(mptcp.coupling, own, self.subflows.iter().filter_map(Subflow::share))
    }

    /// Lets a subflow act, with all that it may take at hand.
    fn with<O: Ports>(
        &mut self,
        mptcp: &Mptcp,
        index: u8,
        out: &mut O,
        act: impl FnOnce(&mut tcp::Sender, &mut SubflowOutbox<'_, O>),
    ) {
        let Self { subflows, data, .. } = self;
        let Some(Subflow { tcp, carried, base, deadline, losses }) = subflows.get_mut(usize::from(index))
        else {
            return;
        };
        tcp.supply(data.available(index));
        act(tcp, &mut SubflowOutbox { mptcp, out, index, data, carried, base: *base, deadline });
        let acknowledged = tcp.acknowledged();
        losses.note(tcp.reductions(), acknowledged);
        carried.drain(..(acknowledged - *base) as usize);
        *base = acknowledged;
        out.wake_at(self.subflows.iter().map(|subflow| subflow.deadline).min().unwrap_or(Time::NEVER));
    }

    pub(super) fn stats(&self) -> SenderStats {
        let mut sum = SenderStats::default();
        for subflow in &self.subflows {
            let stats = subflow.tcp.stats();
            sum.segments_sent += stats.segments_sent;
            sum.retransmissions += stats.retransmissions;
            sum.timeouts += stats.timeouts;
            sum.fast_recoveries += stats.fast_recoveries;
            sum.duplicate_acks += stats.duplicate_acks;
            sum.marked_acks += stats.marked_acks;
            sum.timed_out += stats.timed_out;
        }
        sum
    }
}

/// Values that may be traced.
impl Sender {
    /// Congestion window of each subflow, in segments.
    pub fn congestion_windows(&self) -> impl Iterator<Item = f64> {
        self.subflows.iter().map(|subflow| subflow.tcp.congestion_window())
    }
}

impl Subflow {
    /// Smoothed round-trip time of the subflow, once it has carried data and has a sample.
    fn round_trip(&self) -> Option<Span> {
        let round_trip = self.tcp.round_trip().0;
        (!round_trip.is_zero() && self.tcp.carries()).then_some(round_trip)
    }

    /// The subflow's part in the coupling, once it has a round-trip time.
    fn share(&self) -> Option<SubflowWindow> {
        let rtt_s = self.round_trip()?.as_s();
        let between_losses = self.losses.distance(self.base);
        Some(SubflowWindow { cwnd: self.tcp.uninflated_window(), rtt_s, between_losses })
    }
}

/// The way out of a subflow's sender.
struct SubflowOutbox<'a, O> {
    mptcp: &'a Mptcp,
    out: &'a mut O,
    index: u8,
    data: &'a mut Data,
    carried: &'a mut VecDeque<u32>,
    base: u32,
    deadline: &'a mut Time,
}

impl<O: Ports> Outbox for SubflowOutbox<'_, O> {
    fn now(&self) -> Time {
        self.out.now()
    }

    fn send(&mut self, mut packet: Outgoing) {
        if packet.kind != Kind::Data {
            return self.out.by(self.index).send(packet);
        }
        let place = (packet.seq - self.base) as usize;
        if place == self.carried.len() {
            self.carried.push_back(self.data.take(self.index));
        }
        let segment = self.carried[place];
        packet.wire_bytes = self.mptcp.tcp.segment_wire_bytes(self.data.size(), segment);
        let last = segment.saturating_add(1) == self.data.size().segments;
        packet.flags = packet.flags.without(PacketFlags::LAST).with_if(PacketFlags::LAST, last);
        self.out.send_mapped(self.index, segment, packet);
    }

    fn note_retransmission(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.out.by(self.index).note_retransmission(segment, sent, cause);
    }

    fn wake_at(&mut self, at: Time) {
        *self.deadline = at;
    }

    fn link_pace(&self) -> PicosPerByte {
        self.out.link_pace()
    }

    fn free_at(&self) -> Time {
        self.out.free_at()
    }

    fn random(&mut self) -> &mut Stream {
        self.out.random()
    }

    fn timed_out(&mut self) {
        self.out.by(self.index).timed_out();
    }
}
