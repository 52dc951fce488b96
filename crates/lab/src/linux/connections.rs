//! Traffic of programs: packets that belong to no flow of the traffic.
//!
//! To the fabric each belongs to a connection: what has the same protocol and the same two ends,
//! address and port, in either direction. Its packets are hashed by these, as switches do.

use std::collections::BTreeMap;

use weft_fabric::{ExternalPacket, Frame};
use weft_linux_hosts::Sent;
use weft_linux_hosts::codec::{Body, Flags, Ipv4, Packet as IpPacket, Tcp};
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_units::{Time, mix64};

use super::numbering::Numbering;
use super::sessions::{End, Sizes, ecn_flags, flags_of, host_of, kind_of, sack_blocks};
use crate::results::rows::ConnectionRow;

/// Protocols by their number in IP, and their names.
const TCP: u8 = 6;
const UDP: u8 = 17;
const NAMES: [(u8, &str); 3] = [(1, "icmp"), (TCP, "tcp"), (UDP, "udp")];

/// Key of a connection: the protocol and the two ends, the lower one first.
type Ends = (u8, End, End);

/// One direction of a connection, and what went over it.
#[derive(Debug)]
struct Direction {
    /// Where its packets come from, host and port.
    from: End,
    /// Where they go.
    to: End,
    /// When the first and the last of them began.
    began: Option<(Time, Time)>,
    /// Packets that its host sent, and their bytes on a link.
    sent: (u64, u64),
    /// Packets that arrived, and their bytes.
    received: (u64, u64),
    /// Packets that arrived with a congestion mark.
    marked: u64,
    numbers: Numbering,
    /// Up to here everything was sent before: bytes of TCP, packets of others.
    next: u64,
}

impl Direction {
    fn new(from: End, to: End) -> Self {
        Self {
            from,
            to,
            began: None,
            sent: (0, 0),
            received: (0, 0),
            marked: 0,
            numbers: Numbering::default(),
            next: 0,
        }
    }
}

/// A connection of programs.
#[derive(Debug)]
pub(crate) struct Connection {
    protocol: u8,
    entropy: u32,
    /// Direction from the host that sent first, and the opposite one.
    directions: [Direction; 2],
}

impl Connection {
    /// The name of its protocol, or its number.
    fn protocol(&self) -> String {
        let name = NAMES.iter().find(|(number, _)| *number == self.protocol);
        name.map_or_else(|| self.protocol.to_string(), |(_, name)| (*name).to_owned())
    }

    fn direction(&self, from: HostId) -> usize {
        usize::from(self.directions[0].from.0 != from)
    }

    /// A row a direction in which anything was sent.
    pub fn rows(&self, number: u32) -> impl Iterator<Item = ConnectionRow> {
        self.directions.iter().filter_map(move |direction| {
            let (first, last) = direction.began?;
            Some(ConnectionRow {
                connection: number,
                protocol: self.protocol(),
                src: direction.from.0.0,
                dst: direction.to.0.0,
                src_port: direction.from.1,
                dst_port: direction.to.1,
                first_us: first.as_us(),
                last_us: last.as_us(),
                packets_sent: direction.sent.0,
                sent_bytes: direction.sent.1,
                packets_received: direction.received.0,
                received_bytes: direction.received.1,
                packets_marked: direction.marked,
            })
        })
    }
}

/// The connections of a run, in the order in which they began.
#[derive(Debug)]
pub(super) struct Connections {
    hosts: usize,
    sizes: Sizes,
    hash_key: u64,
    by_ends: BTreeMap<Ends, u32>,
    all: Vec<Connection>,
}

impl Connections {
    /// None so far; `hash_key` makes numbers of five-tuples.
    pub fn new(hosts: usize, sizes: Sizes, hash_key: u64) -> Self {
        Self { hosts, sizes, hash_key, by_ends: BTreeMap::new(), all: Vec::new() }
    }

    /// Translates a packet of a host for the fabric. None if it goes to no host, is not from where
    /// it says, or is no IP packet.
    pub fn read(&mut self, from: HostId, sent: Sent) -> Option<ExternalPacket> {
        let (ip, protocol, rest) = Ipv4::decode(&sent.packet).ok()?;
        let to = host_of(ip.destination, self.hosts)?;
        if host_of(ip.source, self.hosts) != Some(from) || from == to {
            return None;
        }
        let wire_bytes = u16::try_from(sent.packet.len()).ok()?.checked_add(self.sizes.around)?;
        let (source, destination) = ports(&ip, protocol, rest);
        let (here, there) = ((from, source), (to, destination));
        let number = self.numbered(protocol, here, there)?;
        let tcp = match IpPacket::decode(&sent.packet) {
            Ok(IpPacket { body: Body::Tcp(tcp, payload), .. }) => Some((tcp, payload)),
            _ => None,
        };
        let mut packet = Packet::default();
        (packet.flow, packet.src, packet.dst) = (FlowId::of_connection(number), from, to);
        packet.wire_bytes = wire_bytes;
        let connection = &mut self.all[number as usize];
        let place = connection.direction(from);
        let ends = if let Some((tcp, payload)) = &tcp {
            fill_segment(&mut packet, connection, place, (&ip, tcp, payload), self.sizes.payload);
            tcp.flags.contains(Flags::FIN) || tcp.flags.contains(Flags::RST)
        } else {
            fill_datagram(&mut packet, &mut connection.directions[place], &ip);
            false
        };
        let direction = &mut connection.directions[place];
        direction.sent.0 += 1;
        direction.sent.1 += u64::from(wire_bytes);
        direction.began = Some((direction.began.map_or(sent.begins, |(first, _)| first), sent.begins));
        let entropy = Some(connection.entropy);
        let frame = Frame { bytes: sent.packet, entropy, ends, ..Frame::default() };
        Some(ExternalPacket { begins: sent.begins, packet, frame })
    }

    /// A packet of a connection arrived.
    pub fn note_delivery(&mut self, packet: &Packet) {
        let number = packet.flow.connection().map(|number| number as usize);
        let Some(connection) = number.and_then(|number| self.all.get_mut(number)) else { return };
        let place = connection.direction(packet.src);
        let direction = &mut connection.directions[place];
        direction.received.0 += 1;
        direction.received.1 += u64::from(packet.wire_bytes);
        direction.marked += u64::from(packet.flags.has(PacketFlags::CE));
    }

    /// All of them.
    pub fn into_all(self) -> Vec<Connection> {
        self.all
    }

    /// The number of the connection between two ends: there from now on.
    fn numbered(&mut self, protocol: u8, here: End, there: End) -> Option<u32> {
        let (low, high) = (here.min(there), here.max(there));
        if let Some(&number) = self.by_ends.get(&(protocol, low, high)) {
            return Some(number);
        }
        let number = u32::try_from(self.all.len()).ok().filter(|number| number >> 31 == 0)?;
        self.by_ends.insert((protocol, low, high), number);
        let word = |end: End| u64::from(end.0.0) << 16 | u64::from(end.1);
        let hashed = mix64(self.hash_key ^ (word(low) << 32 | word(high)));
        let entropy = (mix64(hashed ^ u64::from(protocol)) >> 32) as u32;
        let directions = [Direction::new(here, there), Direction::new(there, here)];
        self.all.push(Connection { protocol, entropy, directions });
        Some(number)
    }
}

/// The ports of a packet; 0 and 0 if its protocol has none. A fragment has none, as only the first
/// of its packet would have any.
fn ports(ip: &Ipv4, protocol: u8, rest: &[u8]) -> (u16, u16) {
    match rest {
        [a, b, c, d, ..] if matches!(protocol, TCP | UDP) && !ip.is_fragment() => {
            (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
        }
        _ => (0, 0),
    }
}

/// The fields of a segment of TCP, as those of a flow's.
fn fill_segment(
    packet: &mut Packet,
    connection: &mut Connection,
    place: usize,
    (ip, tcp, payload): (&Ipv4, &Tcp, &[u8]),
    full: u16,
) {
    packet.kind = kind_of(tcp, payload);
    packet.flags = flags_of(ip, tcp, packet.kind);
    let segment = |byte: u64| (byte / u64::from(full)) as u32;
    let direction = &mut connection.directions[place];
    if tcp.flags.contains(Flags::SYN) {
        direction.numbers.begin(tcp.sequence.wrapping_add(1));
        return;
    }
    if !direction.numbers.has_begun() {
        direction.numbers.begin(tcp.sequence);
    }
    if packet.kind == Kind::Data {
        let first = direction.numbers.byte(tcp.sequence).unwrap_or_default();
        packet.seq = segment(first);
        let again = first < direction.next;
        direction.next = direction.next.max(first + payload.len() as u64);
        packet.flags = packet
            .flags
            .with_if(PacketFlags::RETRANSMISSION, again)
            .with_if(PacketFlags::LAST, tcp.flags.contains(Flags::FIN));
        return;
    }
    let other = &mut connection.directions[1 - place];
    let acknowledged = other.numbers.byte(tcp.acknowledgement).unwrap_or_default();
    packet.seq = segment(acknowledged + u64::from(full) - 1);
    packet.set_sack_blocks(sack_blocks(tcp, &mut other.numbers, (acknowledged, 0), full));
}

/// The fields of any other packet: each is one more.
fn fill_datagram(packet: &mut Packet, direction: &mut Direction, ip: &Ipv4) {
    packet.kind = Kind::Data;
    packet.flags = ecn_flags(ip);
    packet.seq = direction.next as u32;
    direction.next += 1;
}
