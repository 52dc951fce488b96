//! The receiving end: a TCP receiver for each subflow, and the flow's segments put in order.

use weft_packet::{Kind, Packet};
use weft_units::{Rate, Stream, Time};

use super::{DATA_ACK, Mptcp, data_ack};
use crate::tcp;
use crate::tcp::segments::SegmentSet;
use crate::{Delivery, FlowSize, Outbox, Outgoing, Protocol, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    subflows: Vec<Subflow>,
    segments: u32,
    /// The flow's next segment in order.
    expected: u32,
    /// The flow's segments that arrived beyond it.
    held: SegmentSet,
    duplicates: u32,
}

#[derive(Debug, Clone)]
struct Subflow {
    tcp: tcp::Receiver,
    deadline: Time,
}

impl Receiver {
    pub(super) fn new(mptcp: &Mptcp, size: FlowSize) -> Self {
        // A subflow does not know how much of the flow it will carry.
        let endless = FlowSize { segments: FlowSize::ENDLESS, ..size };
        let subflow = Subflow { tcp: mptcp.tcp.receiver(endless), deadline: Time::NEVER };
        Self {
            subflows: vec![subflow; usize::from(mptcp.subflows)],
            segments: size.segments,
            expected: 0,
            held: SegmentSet::new(0),
            duplicates: 0,
        }
    }

    pub(super) fn receives(&mut self, mptcp: &Mptcp, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        let (index, segment) = out.mapping(packet);
        let complete = packet.kind == Kind::Data && self.take(segment);
        self.with(usize::from(index), out, |tcp, out| {
            mptcp.tcp.receiver_receives(tcp, packet, out);
            if complete {
                // The last acknowledgement of a flow is never delayed.
                mptcp.tcp.receiver_wakes(tcp, out);
            }
        });
        if complete { Delivery::Complete } else { Delivery::Ongoing }
    }

    /// The timers of subflows are due.
    pub(super) fn wakes(&mut self, mptcp: &Mptcp, out: &mut impl Outbox) {
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            if subflow.deadline <= out.now() {
                subflow.deadline = Time::NEVER;
                self.with(index, out, |tcp, out| {
                    mptcp.tcp.receiver_wakes(tcp, out);
                });
            }
        }
    }

    /// Notes that a segment of the flow arrived. Returns whether it was the last one that was missing.
    fn take(&mut self, segment: u32) -> bool {
        if segment < self.expected || !self.held.insert(segment) {
            self.duplicates += 1;
            return false;
        }
        self.expected = self.held.next_absent(self.expected);
        self.held.advance(self.expected);
        self.expected == self.segments
    }

    fn with<O: Outbox>(
        &mut self,
        index: usize,
        out: &mut O,
        act: impl FnOnce(&mut tcp::Receiver, &mut Way<'_, O>),
    ) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        let expected = self.expected;
        act(
            &mut subflow.tcp,
            &mut Way { out, index: index as u8, expected, deadline: &mut subflow.deadline },
        );
        out.wake_at(self.subflows.iter().map(|subflow| subflow.deadline).min().unwrap_or(Time::NEVER));
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
        ReceiverStats { duplicates: self.duplicates, ..sum }
    }
}

/// The way out of a subflow's receiver.
struct Way<'a, O> {
    out: &'a mut O,
    index: u8,
    expected: u32,
    deadline: &'a mut Time,
}

impl<O: Outbox> Outbox for Way<'_, O> {
    fn now(&self) -> Time {
        self.out.now()
    }

    fn send(&mut self, mut packet: Outgoing) {
        if packet.kind == Kind::Ack {
            packet.sack[DATA_ACK] = data_ack(self.expected);
        }
        self.out.send_on(self.index, 0, packet);
    }

    fn wake_at(&mut self, at: Time) {
        *self.deadline = at;
    }

    fn link_rate(&self) -> Rate {
        self.out.link_rate()
    }

    fn random(&mut self) -> &mut Stream {
        self.out.random()
    }
}
