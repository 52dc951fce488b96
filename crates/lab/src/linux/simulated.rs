//! How a simulated host speaks with a Linux host: its packets as segments of TCP, made at the cable
//! of the Linux host.
//!
//! Weft's transports count segments and keep no connection; what TCP needs beside that is here:
//! sequence numbers, ports, time stamps, what the handshake agrees on, FIN. It is what the
//! simulated host would know when it sent the packet, and nothing of it changes what the packet
//! cost on its way.

use weft_fabric::Frame;
use weft_linux_hosts::codec::{Body, Ecn, Flags, Ipv4, Packet as IpPacket, Tcp, TcpOption};
use weft_packet::{FlowId, Kind, Packet, PacketFlags, SackBlock};
use weft_transport::{EcnMode, TransportSpec, TransportsSpec};
use weft_units::{Bytes, Span, Time, mix64};

use super::sessions::address_of;

/// How far the windows of simulated hosts are shifted that take whatever comes: the most that there
/// is (RFC 7323 §2.3).
const LARGEST_SCALE: u8 = 14;
/// Window scale of simulated hosts that offer a window, as Linux has it for buffers of 6 MiB.
const SCALE: u8 = 7;
/// Blocks that fit beside time stamps.
const BLOCKS: usize = 3;

/// Properties of simulated hosts, as a Linux host sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedPeer {
    /// Payload of a full packet.
    pub payload: u16,
    /// Bytes of headers in each packet.
    pub header: u16,
    /// Whether they take part in ECN.
    pub has_ecn: bool,
    /// Whether they tell what has come beyond a hole.
    pub has_sack: bool,
    /// Whether their acknowledgements offer a window.
    pub has_window: bool,
    /// Seed of the first sequence numbers.
    pub seed: u64,
}

impl SimulatedPeer {
    /// Properties that follow from the transport, whose packets have this payload and header.
    pub fn new(transport: &TransportsSpec, (payload, header): (u16, u16), seed: u64) -> Self {
        let (has_ecn, has_sack, window) = match transport {
            TransportsSpec::One(TransportSpec::Dctcp(config)) => (true, config.sack, config.receive_window),
            TransportsSpec::One(TransportSpec::Tcp(config)) => {
                (config.ecn == EcnMode::Classic, config.sack, config.receive_window)
            }
            _ => (false, false, Bytes::new(0)),
        };
        Self { payload, header, has_ecn, has_sack, has_window: window.as_u64() > 0, seed }
    }

    const fn scale(&self) -> u8 {
        if self.has_window { SCALE } else { LARGEST_SCALE }
    }

    /// Window in the header of an acknowledgement.
    fn window(&self, acknowledgement: &Packet) -> u16 {
        if !self.has_window {
            return u16::MAX;
        }
        let bytes = u32::from(acknowledgement.receive_window()) * u32::from(self.payload);
        u16::try_from(bytes >> SCALE).unwrap_or(u16::MAX)
    }
}

/// State of a connection at its simulated end.
#[derive(Debug)]
pub(super) struct SimulatedEnd {
    /// First sequence number of this end: that of its SYN.
    initial: u32,
    /// The next sequence number of the Linux host after its SYN.
    kernels: Option<u32>,
    /// Options in the SYN of the Linux host.
    offered: Vec<TcpOption>,
    offers_ecn: bool,
    /// Clock of the Linux host: time stamps, each with the instant from which it holds.
    stamps: Vec<(Time, u32)>,
}

/// A segment of TCP, and what of it counts.
pub(super) struct Segment {
    sequence: u32,
    acknowledgement: u32,
    flags: Flags,
    window: u16,
    options: Vec<TcpOption>,
    counts: Frame,
}

impl SimulatedEnd {
    /// State of a flow of which nothing has been heard.
    pub fn new(manner: &SimulatedPeer, flow: FlowId) -> Self {
        let initial = mix64(mix64(manner.seed) ^ flow.index() as u64) as u32;
        Self { initial, kernels: None, offered: Vec::new(), offers_ecn: false, stamps: Vec::new() }
    }

    /// The sequence number of the first byte that it sends.
    pub const fn first_byte(&self) -> u32 {
        self.initial.wrapping_add(1)
    }

    /// The Linux host sends this.
    pub fn hears(&mut self, tcp: &Tcp) {
        if tcp.flags.contains(Flags::SYN) {
            self.kernels = Some(tcp.sequence.wrapping_add(1));
            self.offered.clone_from(&tcp.options);
            self.offers_ecn = tcp.flags.contains(Flags::ECE);
        }
    }

    /// From then on, this is what the clock of the Linux host said last.
    pub fn note_stamp(&mut self, tcp: &Tcp, at: Time) {
        let said = tcp.options.iter().find_map(|option| match option {
            TcpOption::Timestamps { value, .. } => Some(*value),
            _ => None,
        });
        if let Some(value) = said.filter(|value| self.stamps.last().is_none_or(|last| last.1 != *value)) {
            self.stamps.push((at, value));
        }
    }

    /// Time stamp of the Linux host's clock at `at`.
    fn stamp(&self, at: Time) -> u32 {
        let later = self.stamps.partition_point(|&(from, _)| from <= at);
        self.stamps.get(later.saturating_sub(1)).map_or(0, |&(_, value)| value)
    }

    fn stamps(&self, packet: &Packet, own: Time) -> TcpOption {
        let value = (own.as_ps() / Span::from_ms(1).as_ps()) as u32;
        TcpOption::Timestamps { value: value.wrapping_add(1), echo: self.stamp(packet.sent) }
    }

    /// The window that a segment of the Linux host offers, in bytes.
    pub fn window(&self, tcp: &Tcp) -> u32 {
        let scale = self.offered.iter().find_map(|option| match option {
            TcpOption::WindowScale(scale) => Some(*scale),
            _ => None,
        });
        // RFC 7323 §2.3.
        u32::from(tcp.window) << scale.unwrap_or(0).min(LARGEST_SCALE)
    }

    fn offers(&self, matches: impl Fn(&TcpOption) -> bool) -> bool {
        self.offered.iter().any(matches)
    }

    /// A packet of the end that sends the flow.
    pub fn of_sender(&self, manner: &SimulatedPeer, packet: &Packet, size: u64) -> Option<Segment> {
        let first = self.first_byte();
        let stamps = self.stamps(packet, packet.sent);
        if packet.kind == Kind::Syn {
            let asks = if manner.has_ecn { Flags::ECE | Flags::CWR } else { Flags::default() };
            let options = [
                Some(TcpOption::MaximumSegment(manner.payload + 12)),
                manner.has_sack.then_some(TcpOption::SackPermitted),
                Some(stamps),
                Some(TcpOption::NoOperation),
                Some(TcpOption::WindowScale(manner.scale())),
            ];
            return Some(Segment {
                sequence: self.initial,
                acknowledgement: 0,
                flags: Flags::SYN | asks,
                window: u16::MAX,
                options: padded(options.into_iter().flatten().collect()),
                counts: Frame::default(),
            });
        }
        let kernels = self.kernels?;
        let mut segment = Segment {
            sequence: first,
            acknowledgement: kernels,
            flags: Flags::ACK,
            window: u16::MAX,
            options: padded(vec![stamps]),
            counts: Frame::default(),
        };
        match packet.kind {
            Kind::Data => {
                let payload = u64::from(packet.wire_bytes.checked_sub(manner.header)?);
                // A FIN of its own comes after all bytes.
                let begin =
                    if payload == 0 { size } else { u64::from(packet.seq) * u64::from(manner.payload) };
                let end = begin + payload;
                segment.sequence = first.wrapping_add(begin as u32);
                segment.counts.payload = begin..end;
                if packet.flags.has(PacketFlags::LAST) {
                    segment.flags = segment.flags | Flags::PSH | Flags::FIN;
                    segment.counts.ends = true;
                }
                if packet.flags.has(PacketFlags::CWR) {
                    segment.flags = segment.flags | Flags::CWR;
                }
            }
            // The end of the handshake.
            Kind::SenderAck if packet.seq == 0 => {}
            // After its own FIN. That of the Linux host may not be there: it is answered when it
            // is.
            Kind::SenderAck => segment.sequence = first.wrapping_add(size as u32).wrapping_add(1),
            // After its own FIN, and that of the Linux host.
            Kind::Ack => {
                segment.sequence = first.wrapping_add(size as u32).wrapping_add(1);
                segment.acknowledgement = kernels.wrapping_add(1);
            }
            _ => return None,
        }
        Some(segment)
    }

    /// A packet of the end that receives the flow, whose first byte has the number `first`; it
    /// arrives at `at`.
    pub fn of_receiver(
        &self,
        manner: &SimulatedPeer,
        packet: &Packet,
        first: u32,
        size: u64,
        at: Time,
    ) -> Option<Segment> {
        let stamps = self.stamps(packet, at);
        let mut segment = Segment {
            sequence: self.first_byte(),
            acknowledgement: first,
            flags: Flags::ACK,
            window: u16::MAX,
            options: Vec::new(),
            counts: Frame::default(),
        };
        if packet.kind == Kind::SynAck {
            let echo = if manner.has_ecn && self.offers_ecn { Flags::ECE } else { Flags::default() };
            segment.sequence = self.initial;
            segment.flags = Flags::SYN | Flags::ACK | echo;
            segment.options = padded(self.accepted(manner, stamps));
            return Some(segment);
        }
        if packet.kind != Kind::Ack {
            return None;
        }
        let byte = |number: u64| {
            let byte = number * u64::from(manner.payload);
            if size == 0 { byte } else { byte.min(size) }
        };
        let acknowledged = byte(u64::from(packet.seq));
        segment.window = manner.window(packet);
        segment.counts.acknowledged = acknowledged;
        segment.acknowledgement = first.wrapping_add(acknowledged as u32);
        if packet.flags.has(PacketFlags::ECE) {
            segment.flags = segment.flags | Flags::ECE;
        }
        if size > 0 && u64::from(packet.seq) > size.div_ceil(u64::from(manner.payload)) {
            // The number after the last segment is that of the FIN.
            segment.acknowledgement = segment.acknowledgement.wrapping_add(1);
            segment.flags = segment.flags | Flags::FIN;
            segment.counts.ends = true;
        }
        let number = |block: &SackBlock| {
            let begin = u64::from(packet.seq) + u64::from(block.first);
            let [begin, end] = [begin, begin + u64::from(block.count)].map(|number| byte(number) as u32);
            (first.wrapping_add(begin), first.wrapping_add(end))
        };
        let blocks = packet.sack_blocks();
        let told: Vec<_> = blocks.iter().filter(|block| block.count > 0).take(BLOCKS).map(number).collect();
        segment.options.push(stamps);
        if !told.is_empty() && self.offers(|option| *option == TcpOption::SackPermitted) {
            segment.options.push(TcpOption::Sack(told));
        }
        segment.options = padded(segment.options);
        Some(segment)
    }

    /// Options of the SYN that are accepted.
    fn accepted(&self, manner: &SimulatedPeer, stamps: TcpOption) -> Vec<TcpOption> {
        let mut options = vec![TcpOption::MaximumSegment(manner.payload + 12)];
        if manner.has_sack && self.offers(|option| *option == TcpOption::SackPermitted) {
            options.push(TcpOption::SackPermitted);
        }
        if self.offers(|option| matches!(option, TcpOption::Timestamps { .. })) {
            options.push(stamps);
        }
        if self.offers(|option| matches!(option, TcpOption::WindowScale(_))) {
            options.push(TcpOption::NoOperation);
            options.push(TcpOption::WindowScale(manner.scale()));
        }
        options
    }
}

/// Whole words.
fn padded(options: Vec<TcpOption>) -> Vec<TcpOption> {
    let bytes = |option: &TcpOption| match option {
        TcpOption::NoOperation => 1,
        TcpOption::SackPermitted => 2,
        TcpOption::WindowScale(_) => 3,
        TcpOption::MaximumSegment(_) => 4,
        TcpOption::Timestamps { .. } => 10,
        TcpOption::Sack(blocks) => 2 + 8 * blocks.len(),
        _ => 0,
    };
    let missing = options.iter().map(bytes).sum::<usize>().wrapping_neg() % 4;
    std::iter::repeat_n(TcpOption::NoOperation, missing).chain(options).collect()
}

impl Segment {
    /// As bytes, for the packet that it is, between these ports.
    pub fn into_frame(self, packet: &Packet, (source_port, destination_port): (u16, u16)) -> Option<Frame> {
        let Self { sequence, acknowledgement, flags, window, options, counts } = self;
        let ecn = if packet.flags.has(PacketFlags::ECT) { Ecn::Capable0 } else { Ecn::NotCapable };
        let ip = Ipv4 { ecn, ..Ipv4::new(address_of(packet.src), address_of(packet.dst)) };
        let tcp = Tcp {
            source_port,
            destination_port,
            sequence,
            acknowledgement,
            flags,
            window,
            urgent: 0,
            options,
        };
        let payload = vec![0; usize::try_from(counts.payload.end - counts.payload.start).ok()?];
        let bytes = IpPacket { ip, body: Body::Tcp(tcp, &payload) }.encode().ok()?;
        Some(Frame { bytes, ..counts })
    }
}
