//! Interface between an end of a flow and the world that hosts it.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::{PicosPerByte, Stream, Time};

/// A packet as an endpoint hands it over. The world adds who sends to whom, the five-tuple hash and
/// the flow's class.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// Kind of the packet.
    pub kind: Kind,
    /// ECT, ECE, CWR, retransmission, last segment. The class is added by the world.
    pub flags: PacketFlags,
    /// Segment number, or next expected segment.
    pub seq: u32,
    /// Bytes on the wire, all headers included.
    pub wire_bytes: u16,
    /// Now on data, or the time stamp of the credit that it answers; the echoed time stamp on
    /// acknowledgements.
    pub sent: Time,
    /// SACK blocks of an acknowledgement; all zero if there are none.
    pub sack: [SackBlock; Packet::SACK_BLOCKS],
}

/// Cause of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// Acknowledgements told of later segments, not of this one.
    FastRecovery,
    /// No acknowledgement came in time; also all that is sent again on the way back up.
    Timeout,
}

/// Actions of an end of a flow with one five-tuple.
pub trait Outbox {
    /// The time now.
    fn now(&self) -> Time;

    /// How long a byte takes on the host's own cable.
    fn link_pace(&self) -> PicosPerByte;

    /// When all that waits in the host's queue now has left it: what was sent last has by then, if
    /// faults do not change the host's cable meanwhile.
    fn free_at(&self) -> Time;

    /// The endpoint's own random stream.
    fn random(&mut self) -> &mut Stream;

    /// Queues a packet at the endpoint's host.
    fn send(&mut self, packet: Outgoing);

    /// Queues a packet that answers the one that came last: beside its own fields it brings
    /// [`Outgoing::sack`] whatever its kind. What became of the other packet is told by the host's
    /// load balancer, which has seen it, too.
    fn send_ack(&mut self, packet: Outgoing) {
        self.send(packet);
    }

    /// Sends a packet by one of the flow's paths: numbers that switches hash with its five-tuple,
    /// as they do a UDP source port. 0 is the flow's own. Where a load balancer at hosts chooses
    /// each packet's way, it does so in place of the transport: all paths are 0.
    fn send_by_path(&mut self, path: u16, packet: Outgoing) {
        let _ = path;
        self.send(packet);
    }

    /// As [`Self::answer`], by one of the flow's paths.
    fn send_ack_by_path(&mut self, path: u16, packet: Outgoing) {
        let _ = path;
        self.send_ack(packet);
    }

    /// The path by which a packet of the other end was sent.
    fn path_of(&self, packet: &Packet) -> u16 {
        let _ = packet;
        0
    }

    /// Says that a sender that is pulled
    /// ([`Protocol::is_rnic_scheduled`](crate::Protocol::is_rnic_scheduled)) has something to send,
    /// though it was not to be asked before it said so. Cheap, and of no effect where it waits for
    /// its turn or its time anyway.
    fn request_turn(&mut self) {}

    /// Says that the data segment that is sent next, with this [`Outgoing::sent`], was sent before.
    /// Said of all retransmissions of data, so that the world can tell the needed ones from those
    /// in vain.
    fn note_retransmission(&mut self, segment: u32, sent: Time, cause: Resend) {
        let _ = (segment, sent, cause);
    }

    /// Asks for the endpoint's timer at `at`, in place of what was asked before; [`Time::NEVER`]
    /// disarms it. Cheap: a field is written, no event moves.
    fn wake_at(&mut self, at: Time);

    /// Tells the host that a retransmission timer expired, before what follows from it is sent. A
    /// host that does not care need not listen.
    fn timed_out(&mut self) {}
}

/// Actions of an end of a flow with several five-tuples. Each has a number, its port. What it does
/// as an [`Outbox`] it does by port 0, which is the flow's own. The timer is the flow's: there is
/// one for all ports.
pub trait Ports: Outbox {
    /// How many the flow has: as many as there are, at most those of
    /// [`FiveTuples`](crate::FiveTuples).
    fn ports(&self) -> u8;

    /// The way out by one of them.
    fn by(&mut self, port: u8) -> impl Outbox;

    /// Sends data by one of them, which carries under its own number this segment of the flow: the
    /// packet brings both ([`ArrivedPacket::segment`]).
    fn send_mapped(&mut self, port: u8, segment: u32, packet: Outgoing);
}

/// A packet that reached an end of a flow, which may have several five-tuples.
#[derive(Debug, Clone, Copy)]
pub struct ArrivedPacket<'p> {
    /// The packet.
    pub packet: &'p Packet,
    /// The port by which it came.
    pub port: u8,
    /// The segment of the flow that it carries, if it is data: that of [`Ports::send_mapped`], or
    /// else its own number.
    pub segment: u32,
}

impl<'p> ArrivedPacket<'p> {
    /// A packet of the flow's own five-tuple, under its own number.
    #[inline]
    pub const fn alone(packet: &'p Packet) -> Self {
        Self { packet, port: 0, segment: packet.seq }
    }
}
