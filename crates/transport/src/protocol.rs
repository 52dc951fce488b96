//! What every transport is to the world that hosts it.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::{Rate, Span, Stream, Time};

/// A packet as an endpoint hands it over. The world adds who sends to whom, the five-tuple hash and the flow's class.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// What it is.
    pub kind: Kind,
    /// ECT, ECE, CWR, retransmission, last segment. The class is added by the world.
    pub flags: PacketFlags,
    /// Segment number, or next expected segment.
    pub seq: u32,
    /// Bytes on the wire, all headers included.
    pub wire_bytes: u16,
    /// Now on data, or the time stamp of the credit that it answers; the echoed time stamp on acknowledgements.
    pub sent: Time,
    /// SACK blocks of an acknowledgement; all zero if there are none.
    pub sack: [SackBlock; Packet::SACK_BLOCKS],
}

/// What made a sender send a segment again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// Acknowledgements told of later segments, not of this one.
    FastRecovery,
    /// No acknowledgement came in time; also all that is sent again on the way back up.
    Timeout,
}

/// What an endpoint can do to the world.
pub trait Outbox {
    /// The time now.
    fn now(&self) -> Time;

    /// Queues a packet at the endpoint's host.
    fn send(&mut self, packet: Outgoing);

    /// How many ports the flow has: five-tuples that take paths of their own, as many as there are, at most
    /// [`Protocol::ports`]. Port 0 is the flow's own.
    fn ports(&self) -> u8 {
        1
    }

    /// The port by which a packet came.
    fn port_of(&self, packet: &Packet) -> u8 {
        let _ = packet;
        0
    }

    /// As [`Outbox::send`], by one of the flow's ports.
    fn send_by(&mut self, port: u8, packet: Outgoing) {
        let _ = port;
        self.send(packet);
    }

    /// Says that the data segment that is sent next, at this instant, was sent before. Said of all retransmissions of data,
    /// so that the world can tell the needed ones from those in vain.
    fn sends_again(&mut self, segment: u32, cause: Resend) {
        let _ = (segment, cause);
    }

    /// As [`Outbox::sends_again`], for a segment whose [`Outgoing::sent`] is not the time now.
    fn sends_again_stamped(&mut self, segment: u32, sent: Time, cause: Resend) {
        let _ = (segment, sent, cause);
    }

    /// The rate of the host's own cable.
    fn link_rate(&self) -> Rate;

    /// As [`Outbox::send`], over a subflow: one of several five-tuples of the flow. `segment` is the segment of the flow that
    /// a data packet carries under its own number; the packet brings both.
    fn send_on(&mut self, subflow: u8, segment: u32, packet: Outgoing) {
        let _ = (subflow, segment);
        self.send(packet);
    }

    /// Over which subflow a packet came, and which segment of the flow it carries, if it is data.
    fn mapping(&self, packet: &Packet) -> (u8, u32) {
        (0, packet.seq)
    }

    /// As [`Outbox::sends_again`], of a segment of a subflow.
    fn sends_again_on(&mut self, subflow: u8, segment: u32, cause: Resend) {
        let _ = subflow;
        self.sends_again(segment, cause);
    }

    /// As [`Outbox::timed_out`], of a subflow.
    fn timed_out_on(&mut self, subflow: u8) {
        let _ = subflow;
        self.timed_out();
    }

    /// Asks for the endpoint's timer at `at`, in place of what was asked before; [`Time::NEVER`] disarms it. Cheap: a
    /// field is written, no event moves.
    fn wake_at(&mut self, at: Time);

    /// The endpoint's own random stream.
    fn random(&mut self) -> &mut Stream;

    /// Tells the host that a retransmission timer expired, before what follows from it is sent. A host that does not
    /// care need not listen.
    fn timed_out(&mut self) {}
}

/// How many segments a flow has, and how long the last one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSize {
    /// Number of segments; [`FlowSize::ENDLESS`] for a flow that never ends.
    pub segments: u32,
    /// Payload bytes of the last segment, 1 to MSS.
    pub last_payload: u16,
}

impl FlowSize {
    /// The segments of a flow that never ends.
    pub const ENDLESS: u32 = u32::MAX;

    /// Cuts `bytes` (at least 1) into segments of `mss` bytes (at least 1).
    pub const fn of(bytes: u64, mss: u16) -> Self {
        let segments = bytes.div_ceil(mss as u64);
        let last_payload = (bytes - (segments - 1) * mss as u64) as u16;
        Self { segments: segments as u32, last_payload }
    }

    /// A flow that never ends, in segments of `mss` bytes.
    pub const fn endless(mss: u16) -> Self {
        Self { segments: Self::ENDLESS, last_payload: mss }
    }
}

/// Whether a receiver has every byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Bytes are missing, or the flow was complete before.
    Ongoing,
    /// This packet completed the flow: the last byte is in order now.
    Complete,
}

/// Whether a sender has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderState {
    /// Something is unsent or unacknowledged.
    Open,
    /// Everything is acknowledged: the sender can be forgotten.
    Done,
}

/// What a sender counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderStats {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Retransmission timeouts, those of the handshake included.
    pub timeouts: u32,
    /// Entries into fast recovery.
    pub fast_recoveries: u32,
    /// Acknowledgements that repeated the last one while data was outstanding (RFC 5681 §2).
    pub duplicate_acks: u32,
    /// Acknowledgements that carried ECE.
    pub marked_acks: u32,
    /// Credits that found nothing to send.
    pub wasted_credits: u64,
    /// How long the timers ran that made the timeouts, together; each to a microsecond.
    pub timed_out: Span,
}

/// What a receiver counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverStats {
    /// Segments that arrived, in whatever order and however often.
    pub segments_received: u64,
    /// Segments that arrived before one that was sent earlier in sequence (a hole in front of them).
    pub out_of_order: u32,
    /// Segments that had arrived before: the retransmission was spurious, or the acknowledgement was lost.
    pub duplicates: u32,
    /// Segments that arrived with a congestion mark.
    pub marked: u32,
    /// Credits sent.
    pub credits_sent: u64,
    /// How often it gave up the paths that it used, to choose anew among all.
    pub reselections: u32,
    /// How long data was held behind a hole.
    pub stalls: Stalls,
}

/// How long a receiver held data behind a hole that a segment filled in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// Behind segments that were sent once, and late.
    pub by_reordering: Span,
    /// Behind segments that came as retransmissions.
    pub by_loss: Span,
    /// The last of these, if the segment was late; zero if it was a retransmission.
    pub last_by_reordering: Span,
    /// When the last of these ended.
    pub last_end: Time,
}

impl Stalls {
    /// Those of two subflows together; where they overlap, the time counts twice.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let last = if self.last_end >= other.last_end { self } else { other };
        Self {
            by_reordering: self.by_reordering + other.by_reordering,
            by_loss: self.by_loss + other.by_loss,
            ..last
        }
    }

    /// How long everything else waited for a late segment that arrives now; zero if none does.
    pub fn by_reordering_until(&self, now: Time) -> Span {
        if self.last_end == now { self.last_by_reordering } else { Span::ZERO }
    }
}

/// What a transport that sends credits needs of every port, hosts' included: beside the data queue a small queue of
/// credits, which leave at no more than their share of the link and before data. A credit that finds the queue full is
/// dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreditPorts {
    /// Bytes of a credit on the wire, on average; not zero.
    pub credit_bytes: u16,
    /// Bytes on the wire of the largest frame that a credit calls for. Credits get the share `credit_bytes` /
    /// (`credit_bytes` + `frame_bytes`) of a link.
    pub frame_bytes: u16,
    /// Credits that the queue holds; at least 1.
    pub queue: u32,
    /// Bytes of credits that may leave back to back after a pause: what the token bucket holds; at least one credit.
    pub burst_bytes: u16,
}

/// A transport: how its two ends behave. The configuration is shared by all flows; the ends are small and plain.
pub trait Protocol {
    /// One per flow that is sending.
    type Sender;
    /// One per flow that is receiving.
    type Receiver;

    /// How many five-tuples a flow may use at most: those of its subflows.
    fn subflows(&self) -> u32 {
        1
    }

    /// Cuts a flow of `bytes` into segments.
    fn flow_size(&self, bytes: u64) -> FlowSize;

    /// Bytes on the wire of segment `segment` of a flow of this size.
    fn segment_wire_bytes(&self, size: FlowSize, segment: u32) -> u16;

    /// Whether a flow begins with a handshake, and the sizes of its two packets on the wire. For the ideal FCT.
    fn handshake_wire_bytes(&self) -> Option<(u16, u16)>;

    /// How many paths of its own a flow wants at most, each by a port number that leads over no other's: 1 to 255, which
    /// stands for all that there are. There may be fewer. Where hosts do not know how switches choose, there is one.
    fn ports(&self) -> u8 {
        1
    }

    /// What it needs of ports beyond a queue for data, if it sends credits.
    fn credit_ports(&self) -> Option<CreditPorts> {
        None
    }

    /// A sender for a flow of this size, not yet started.
    fn sender(&self, size: FlowSize) -> Self::Sender;

    /// A receiver for a flow of this size.
    fn receiver(&self, size: FlowSize) -> Self::Receiver;

    /// A receiver for a flow of this size that has everything, if that is all that needs to be known of one to answer what
    /// comes late. `None`: such receivers must be kept.
    fn finished_receiver(&self, size: FlowSize) -> Option<Self::Receiver> {
        let _ = size;
        None
    }

    /// The flow starts now.
    fn start(&self, sender: &mut Self::Sender, out: &mut impl Outbox);

    /// A packet reached the sender.
    fn sender_receives(
        &self,
        sender: &mut Self::Sender,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> SenderState;

    /// The sender's timer is due.
    fn sender_wakes(&self, sender: &mut Self::Sender, out: &mut impl Outbox) -> SenderState;

    /// A packet reached the receiver.
    fn receiver_receives(
        &self,
        receiver: &mut Self::Receiver,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> Delivery;

    /// The receiver's timer is due.
    fn receiver_wakes(&self, receiver: &mut Self::Receiver, out: &mut impl Outbox) -> Delivery;

    /// What the sender counted so far.
    fn sender_stats(&self, sender: &Self::Sender) -> SenderStats;

    /// What the receiver counted so far.
    fn receiver_stats(&self, receiver: &Self::Receiver) -> ReceiverStats;
}
