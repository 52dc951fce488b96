//! The receiving end: a TCP receiver for each subflow, and the flow's segments put in order.

use weft_packet::Kind;
use weft_units::{PicosPerByte, Stream, Time};

use super::{DATA_ACK, Mptcp, data_ack};
use crate::tcp;
use crate::tcp::segments::SegmentSet;
use crate::{ArrivedPacket, Delivery, FlowSize, Outbox, Outgoing, Ports, Protocol, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    subflows: Vec<Subflow>,
    flow: InOrder,
}

#[derive(Debug, Clone)]
struct Subflow {
    tcp: tcp::Receiver,
    deadline: Time,
    /// Segments that wait in the subflow's reordering buffer: their numbers, and those of the flow.
    waiting: Vec<(u32, u32)>,
}

/// The flow's segments, as subflows pass them up.
#[derive(Debug, Clone)]
struct InOrder {
    segments: u32,
    /// The next segment in order.
    expected: u32,
    /// Segments that arrived beyond it.
    held: SegmentSet,
    duplicates: u32,
}

impl InOrder {
    /// Notes a segment of the flow. Returns whether it was the last one that was missing.
    fn take(&mut self, segment: u32) -> bool {
        if segment < self.expected || !self.held.insert(segment) {
            self.duplicates += 1;
            return false;
        }
        self.expected = self.held.next_absent(self.expected);
        self.held.advance(self.expected);
        self.expected == self.segments
    }
}

impl Receiver {
    pub(super) fn new(mptcp: &Mptcp, size: FlowSize) -> Self {
        // A subflow does not know how much of the flow it will carry.
        let endless = FlowSize { segments: FlowSize::ENDLESS, ..size };
        let tcp = mptcp.tcp.receiver(endless);
        let subflow = Subflow { tcp, deadline: Time::NEVER, waiting: Vec::new() };
        let flow = InOrder { segments: size.segments, expected: 0, held: SegmentSet::new(0), duplicates: 0 };
        Self { subflows: vec![subflow; usize::from(mptcp.subflows)], flow }
    }

    pub(super) fn receives(
        &mut self,
        mptcp: &Mptcp,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> Delivery {
        let ArrivedPacket { packet, port, segment } = arrived;
        let arriving = (packet.kind == Kind::Data).then_some((packet.seq, segment));
        self.with(mptcp, usize::from(port), arriving, out, |tcp, way| {
            tcp.receives_for(&mptcp.tcp, packet, way, SubflowOutbox::take);
        })
    }

    /// The timers of subflows are due.
    pub(super) fn wakes(&mut self, mptcp: &Mptcp, out: &mut impl Ports) -> Delivery {
        let mut delivery = Delivery::Ongoing;
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            if subflow.deadline > out.now() {
                continue;
            }
            subflow.deadline = Time::NEVER;
            let woken = self.with(mptcp, index, None, out, |tcp, way| {
                tcp.wakes_for(&mptcp.tcp, way, SubflowOutbox::take);
            });
            if woken == Delivery::Complete {
                delivery = woken;
            }
        }
        delivery
    }

    /// Lets a subflow act, for the segment that arrives if there is one.
    fn with<O: Ports>(
        &mut self,
        mptcp: &Mptcp,
        index: usize,
        arriving: Option<(u32, u32)>,
        out: &mut O,
        act: impl FnOnce(&mut tcp::Receiver, &mut SubflowOutbox<'_, O>),
    ) -> Delivery {
        let Self { subflows, flow } = self;
        let Some(Subflow { tcp, deadline, waiting }) = subflows.get_mut(index) else {
            return Delivery::Ongoing;
        };
        let mut way =
            SubflowOutbox { out, index: index as u8, flow, arriving, waiting, complete: false, deadline };
        act(tcp, &mut way);
        if way.complete {
            // The last acknowledgement of a flow is never delayed.
            tcp.acknowledge_pending(&mptcp.tcp, &mut way);
        }
        let complete = way.complete;
        way.waiting.extend(way.arriving);
        out.wake_at(self.subflows.iter().map(|subflow| subflow.deadline).min().unwrap_or(Time::NEVER));
        if complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        let mut sum = ReceiverStats::default();
        for subflow in &self.subflows {
            let stats = subflow.tcp.stats();
            sum.segments_received += stats.segments_received;
            sum.out_of_order += stats.out_of_order;
            sum.marked += stats.marked;
            sum.stalls = sum.stalls.and(stats.stalls);
        }
        ReceiverStats { duplicates: self.flow.duplicates, ..sum }
    }
}

/// The way out of a subflow's receiver, and up to its flow.
struct SubflowOutbox<'a, O> {
    out: &'a mut O,
    index: u8,
    flow: &'a mut InOrder,
    /// The segment that arrives and was not passed up yet: its number, and that of the flow's
    /// segment that it carries.
    arriving: Option<(u32, u32)>,
    waiting: &'a mut Vec<(u32, u32)>,
    /// Whether the flow's last segment was passed up.
    complete: bool,
    deadline: &'a mut Time,
}

impl<O> SubflowOutbox<'_, O> {
    /// The subflow passes up a segment: the one that arrives, or one that waited in the reordering
    /// buffer.
    fn take(&mut self, own: u32) {
        let waited = |waiting: &mut Vec<(u32, u32)>| {
            let place = waiting.iter().position(|&(waits, _)| waits == own)?;
            Some(waiting.swap_remove(place))
        };
        let arrived = self.arriving.take_if(|arriving| arriving.0 == own);
        if let Some((_, segment)) = arrived.or_else(|| waited(self.waiting)) {
            self.complete |= self.flow.take(segment);
        }
    }
}

impl<O: Ports> Outbox for SubflowOutbox<'_, O> {
    fn now(&self) -> Time {
        self.out.now()
    }

    fn send(&mut self, mut packet: Outgoing) {
        if packet.kind == Kind::Ack {
            packet.sack[DATA_ACK] = data_ack(self.flow.expected);
        }
        self.out.by(self.index).send(packet);
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
}
