//! Interface of every transport to the world that hosts it.

use weft_packet::Packet;
use weft_units::{PicosPerByte, Span, Time};

use crate::{ArrivedPacket, Outbox, Ports};

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

/// How much of a flow its application has written: what there is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Number of written segments, all of them whole.
    pub segments: u32,
    /// Whether that is all of it.
    pub is_all: bool,
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

/// Answer of a sender to a request for a packet. See [`Protocol::is_rnic_scheduled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// It sent one packet of data, and wants to be asked again at its next turn, but not before
    /// this time; [`Time::NEVER`]: not before it says so ([`Outbox::ready`]).
    Sent(Time),
    /// It sent nothing, and wants to be asked no earlier than at this time, which is later than
    /// now; [`Time::NEVER`]: not before it says so ([`Outbox::ready`]).
    NotBefore(Time),
}

/// Counters of a sender.
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
    /// Negative acknowledgements that came.
    pub nacks: u32,
    /// Congestion notifications that came.
    pub cnps: u32,
    /// How long the timers ran that made the timeouts, together; each to a microsecond.
    pub timed_out: Span,
}

/// Counters of a transport's ends that not every transport has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each says of one number whether it is kept")]
pub struct Counted {
    /// [`SenderStats::fast_recoveries`].
    pub fast_recoveries: bool,
    /// [`SenderStats::duplicate_acks`].
    pub duplicate_acks: bool,
    /// [`SenderStats::marked_acks`].
    pub marked_acks: bool,
    /// [`SenderStats::nacks`].
    pub nacks: bool,
    /// [`SenderStats::cnps`].
    pub cnps: bool,
}

/// The window of a sender, and what it goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowState {
    /// Congestion window, in segments.
    pub cwnd: f64,
    /// Slow start threshold, in segments; infinite as long as nothing set one.
    pub ssthresh: f64,
    /// Segments sent and not acknowledged cumulatively.
    pub outstanding: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Span,
}

/// Counters of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverStats {
    /// Segments that arrived, in whatever order and however often, kept or not.
    pub segments_received: u64,
    /// Segments that arrived before one that was sent earlier in sequence (a hole in front of
    /// them): some of `segments_received`.
    pub out_of_order: u32,
    /// Segments that had arrived before: the retransmission was spurious, or the acknowledgement
    /// was lost.
    pub duplicates: u32,
    /// Segments that arrived and have no payload: a FIN. Counted once, in `segments_received`, too;
    /// copies of it are duplicates.
    pub without_payload: u32,
    /// Segments that arrived with a congestion mark.
    pub marked: u32,
    /// Segments that came behind a hole to a receiver that holds none of these: it refused them,
    /// and waits for another copy. They count in `segments_received` and `out_of_order`, too.
    pub refused: u32,
    /// Segments that arrived without their payload, which a full queue had cut off; not counted in
    /// `segments_received`.
    pub trimmed: u32,
    /// Negative acknowledgements sent.
    pub nacks_sent: u32,
    /// Congestion notifications sent.
    pub cnps_sent: u32,
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
    /// Stalls of two subflows together; where they overlap, the time counts twice.
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

/// Requirements of a credit transport on every port, hosts' included: beside the data queue a small
/// queue of credits, which leave at no more than their share of the link and before data. A credit
/// that finds the queue full is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreditPorts {
    /// Bytes of a credit on the wire, on average; not zero.
    pub credit_bytes: u16,
    /// Bytes on the wire of the largest frame that a credit calls for. Credits get the share
    /// `credit_bytes` / (`credit_bytes` + `frame_bytes`) of a link.
    pub frame_bytes: u16,
    /// Credits that the queue holds; at least 1.
    pub queue: u32,
    /// Bytes of credits that may leave back to back after a pause: what the token bucket holds; at
    /// least one credit.
    pub burst_bytes: u16,
}

/// How a transport cuts flows into segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// Payload bytes of a full segment, at least 1.
    pub mss: u16,
    /// Bytes that a segment has on the wire beside its payload.
    pub header: u16,
}

impl Segmentation {
    /// Bytes on the wire of segment `segment` of a flow of this size.
    pub const fn wire_bytes(self, size: FlowSize, segment: u32) -> u16 {
        let payload = if segment.saturating_add(1) == size.segments { size.last_payload } else { self.mss };
        payload + self.header
    }
}

/// The five-tuples of a transport's flows. Each takes a path of its own, as far as the load
/// balancer has it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FiveTuples {
    /// One.
    One,
    /// So many, at least 1, which both ends know from the beginning; only chance tells their paths
    /// apart. To load balancers each is a flow of its own.
    Subflows(u8),
    /// At most so many, at least 1, which lead over paths that no other one takes; 255 stands for
    /// all that there are. The sender works them out and names them in its request. Where hosts do
    /// not know how switches choose, there is one.
    Apart(u8),
}

impl FiveTuples {
    /// How many are subflows; 1 if none are.
    pub const fn subflows(self) -> u8 {
        if let Self::Subflows(count) = self { count } else { 1 }
    }

    /// How many are to lead over paths apart, at most; 1 if none are.
    pub const fn apart(self) -> u8 {
        if let Self::Apart(most) = self { most } else { 1 }
    }
}

/// Parameters of a fabric that an operator knows and configures at hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFabric {
    /// How long a full-size packet and its answer take there and back between the hosts that are
    /// furthest apart, when nothing else moves.
    pub base_rtt: Span,
    /// How long a byte takes on the fastest cable of a host.
    pub pace: PicosPerByte,
    /// Whether queues of switches cut packets that find no room.
    pub trims: bool,
}

/// How a transport needs packets' ways to be chosen to work as it is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathRequirement {
    /// Any will do.
    #[default]
    Any,
    /// Packets of a flow arrive in the order in which they were sent.
    InOrder,
    /// Packets of a flow take many paths at once.
    Many,
    /// Switches choose by what they hash: the transport chooses paths by that.
    Hashed,
}

/// Requirements of a transport on the fabric and on its load balancer. Without, it works worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requirements {
    /// Requirement on the load balancer.
    pub ways: PathRequirement,
    /// That queues of switches cut packets that find no room, or lose none.
    pub trimming: bool,
}

/// A transport: what its flows and packets are like, and the state of their two ends. The
/// configuration is shared by all flows; the ends are small and plain. How the ends behave is
/// [`SinglePath`] or [`Multipath`].
pub trait Protocol: Send + Sync {
    /// One per flow that is sending.
    type Sender: Send;
    /// One per flow that is receiving.
    type Receiver: Send;

    /// How it cuts flows into segments.
    fn segmentation(&self) -> Segmentation;

    /// Cuts a flow of `bytes` into segments.
    fn flow_size(&self, bytes: u64) -> FlowSize {
        FlowSize::of(bytes, self.segmentation().mss)
    }

    /// Bytes on the wire of segment `segment` of a flow of this size.
    fn segment_wire_bytes(&self, size: FlowSize, segment: u32) -> u16 {
        self.segmentation().wire_bytes(size, segment)
    }

    /// Whether a flow begins with a handshake, and the sizes of its two packets on the wire. For
    /// the ideal FCT.
    fn handshake_wire_bytes(&self) -> Option<(u16, u16)>;

    /// Whether its senders ask when what waits at their host has left it ([`Outbox::free_at`]).
    fn asks_when_free(&self) -> bool {
        false
    }

    /// Whether its senders put no data into their host's queue, but are asked for one packet after
    /// the other, in turn with those of other flows, whenever the host's cable can take one: as the
    /// queue pairs of an RDMA card (RNIC) are. Data is then sent in [`SinglePath::sender_pull`]
    /// alone.
    #[inline]
    fn is_rnic_scheduled(&self) -> bool {
        false
    }

    /// Whether it goes by what an operator knows of the fabric and configures: then
    /// [`Self::configure`] is said before the first sender is made.
    fn needs_fabric(&self) -> bool {
        false
    }

    /// Configures the transport with the fabric's known parameters.
    fn configure(&mut self, known: KnownFabric) {
        let _ = known;
    }

    /// Requirements on the fabric and on its load balancer.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// Whether its ends act upon congestion marks (ECN).
    fn uses_ecn(&self) -> bool {
        true
    }

    /// Requirements on ports beyond a queue for data, if the transport sends credits.
    fn credit_ports(&self) -> Option<CreditPorts> {
        None
    }

    /// Whether a flow may come to its senders in pieces, as an application writes it.
    fn takes_writes(&self) -> bool {
        false
    }

    /// Only so much of the flow is written when it starts. Said before that, and of transports that
    /// take writes alone.
    fn limit(&self, sender: &mut Self::Sender, written: Written) {
        let _ = (sender, written);
    }

    /// A sender for a flow of this size, not yet started.
    fn sender(&self, size: FlowSize) -> Self::Sender;

    /// A receiver for a flow of this size.
    fn receiver(&self, size: FlowSize) -> Self::Receiver;

    /// A receiver for a flow of this size that has everything, if that is all that needs to be
    /// known of one to answer what comes late. `None`: such receivers must be kept.
    fn finished_receiver(&self, size: FlowSize) -> Option<Self::Receiver> {
        let _ = size;
        None
    }

    /// Counters of the ends beyond those that every transport has. Any other counter is 0.
    fn counted(&self) -> Counted;

    /// Counters of the sender so far.
    fn sender_stats(&self, sender: &Self::Sender) -> SenderStats;

    /// Counters of the receiver so far.
    fn receiver_stats(&self, receiver: &Self::Receiver) -> ReceiverStats;

    /// Tells what a sending end keeps elsewhere in memory, and needs for what comes next: it is
    /// asked for before that.
    fn prefetch_sender(&self, sender: &Self::Sender, tell: impl FnMut(*const u8)) {
        let _ = (sender, tell);
    }

    /// Until when the rate of a sender that is pulled holds back what its window lets it send; now,
    /// if it does not. It is not changed by being asked.
    fn sender_held_until(&self, sender: &Self::Sender, now: Time) -> Time {
        let _ = sender;
        now
    }

    /// The window of a sender, if it has one of its own.
    fn window(&self, sender: &Self::Sender) -> Option<WindowState> {
        let _ = sender;
        None
    }
}

/// How the two ends of a flow with one five-tuple behave. Whatever hosts any transport hosts it
/// too, as [`Multipath`].
///
/// Its ends cannot name a second five-tuple:
///
/// ```compile_fail,E0599
/// fn start(out: &mut impl weft_transport::Outbox) {
///     out.by(1).wake_at(weft_units::Time::ZERO);
/// }
/// ```
pub trait SinglePath: Protocol {
    /// The flow starts now.
    fn start(&self, sender: &mut Self::Sender, out: &mut impl Outbox);

    /// So much of the flow is written by now. Said of transports that take writes alone
    /// ([`Protocol::takes_writes`]).
    fn sender_writes(&self, sender: &mut Self::Sender, written: Written, out: &mut impl Outbox) {
        let _ = (sender, written, out);
    }

    /// The host's cable can take a packet of data, and it is this sender's turn
    /// ([`Protocol::is_rnic_scheduled`]): it sends one at most.
    fn sender_pull(&self, sender: &mut Self::Sender, out: &mut impl Outbox) -> Pull {
        let _ = (sender, out);
        Pull::NotBefore(Time::NEVER)
    }

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
}

/// How the two ends of a flow with several five-tuples behave; and so, any transport as the world
/// sees it that hosts it.
pub trait Multipath: Protocol {
    /// The five-tuples of a flow.
    fn five_tuples(&self) -> FiveTuples;

    /// The flow starts now.
    fn start(&self, sender: &mut Self::Sender, out: &mut impl Ports);

    /// So much of the flow is written by now. Said of transports that take writes alone
    /// ([`Protocol::takes_writes`]).
    fn sender_writes(&self, sender: &mut Self::Sender, written: Written, out: &mut impl Ports) {
        let _ = (sender, written, out);
    }

    /// As [`SinglePath::sender_pull`].
    fn sender_pull(&self, sender: &mut Self::Sender, out: &mut impl Ports) -> Pull {
        let _ = (sender, out);
        Pull::NotBefore(Time::NEVER)
    }

    /// A packet reached the sender.
    fn sender_receives(
        &self,
        sender: &mut Self::Sender,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> SenderState;

    /// The sender's timer is due.
    fn sender_wakes(&self, sender: &mut Self::Sender, out: &mut impl Ports) -> SenderState;

    /// A packet reached the receiver.
    fn receiver_receives(
        &self,
        receiver: &mut Self::Receiver,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> Delivery;

    /// The receiver's timer is due.
    fn receiver_wakes(&self, receiver: &mut Self::Receiver, out: &mut impl Ports) -> Delivery;
}

impl<P: SinglePath> Multipath for P {
    #[inline]
    fn five_tuples(&self) -> FiveTuples {
        FiveTuples::One
    }

    #[inline]
    fn start(&self, sender: &mut P::Sender, out: &mut impl Ports) {
        SinglePath::start(self, sender, out);
    }

    fn sender_writes(&self, sender: &mut P::Sender, written: Written, out: &mut impl Ports) {
        SinglePath::sender_writes(self, sender, written, out);
    }

    #[inline]
    fn sender_pull(&self, sender: &mut P::Sender, out: &mut impl Ports) -> Pull {
        SinglePath::sender_pull(self, sender, out)
    }

    #[inline]
    fn sender_receives(
        &self,
        sender: &mut P::Sender,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> SenderState {
        SinglePath::sender_receives(self, sender, arrived.packet, out)
    }

    #[inline]
    fn sender_wakes(&self, sender: &mut P::Sender, out: &mut impl Ports) -> SenderState {
        SinglePath::sender_wakes(self, sender, out)
    }

    #[inline]
    fn receiver_receives(
        &self,
        receiver: &mut P::Receiver,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> Delivery {
        SinglePath::receiver_receives(self, receiver, arrived.packet, out)
    }

    #[inline]
    fn receiver_wakes(&self, receiver: &mut P::Receiver, out: &mut impl Ports) -> Delivery {
        SinglePath::receiver_wakes(self, receiver, out)
    }
}
