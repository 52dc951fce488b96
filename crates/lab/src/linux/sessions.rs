//! Which flow a packet of the kernel belongs to, and which bytes of it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use weft_fabric::{ExternalPacket, Frame};
use weft_linux_hosts::Sent;
use weft_linux_hosts::codec::{Body, Ecn, Flags, Ipv4, Packet as IpPacket, Tcp, TcpOption};
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags, SackBlock};
use weft_units::Time;

use super::simulated::{SimulatedEnd, SimulatedPeer};

use super::connections::{Connection, Connections};
use super::multipath::Multipath;
use super::numbering::Numbering;

/// The first address; hosts follow in their order.
const FIRST: u32 = 0x0a00_0001;

/// Where flows arrive.
pub(crate) const PORT: u16 = 5_000;

/// The first port that simulated hosts begin flows from, and how many there are.
pub(crate) const FIRST_PORT: u16 = 10_000;
pub(crate) const PORTS: u16 = 50_000;

/// The address of a host.
pub(crate) fn address_of(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST + u32::from(host.0))
}

/// The host with this address, where there are so many.
pub(super) fn host_of(address: Ipv4Addr, hosts: usize) -> Option<HostId> {
    let number = address.to_bits().checked_sub(FIRST)?;
    ((number as usize) < hosts).then_some(HostId(number as u16))
}

/// One end of a connection: host and port.
pub(super) type End = (HostId, u16);

/// A connection that carries one flow, or is one of its subflows, from where it begins to the other
/// end.
#[derive(Debug)]
struct Session {
    flow: FlowId,
    /// Size in bytes; 0 if it is not known: of a flow without end, and of a subflow.
    size: u64,
    /// The first is that of the flow's first byte.
    numbers: Numbering,
    /// State of the connection at a simulated host, if one of its ends is there.
    simulated: Option<SimulatedEnd>,
}

impl Session {
    /// As many bytes of the flow as there are: FIN takes a number, too.
    fn cut(&self, byte: u64) -> u64 {
        if self.size == 0 { byte } else { byte.min(self.size) }
    }
}

/// Sizes of packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes on the wire beside the IP packet.
    pub around: u16,
    /// Payload of a full packet.
    pub payload: u16,
}

impl Sizes {
    /// Whether these bytes of a flow of `size` bytes are a whole segment, or none.
    const fn fits(self, bytes: &Range<u64>, size: u64) -> bool {
        let payload = self.payload as u64;
        let length = bytes.end - bytes.start;
        length == 0 || bytes.start.is_multiple_of(payload) && (length == payload || bytes.end == size)
    }
}

/// The connections of a run.
#[derive(Debug)]
pub(super) struct Sessions {
    /// By host: whether it is a Linux host.
    is_linux: Vec<bool>,
    sizes: Sizes,
    /// Properties of simulated hosts.
    manner: SimulatedPeer,
    by_ends: BTreeMap<(End, End), Session>,
    /// Flows that have been started and sent nothing yet, with their sizes.
    expected: BTreeMap<(End, End), (FlowId, u64)>,
    /// State that joins several connections into one flow, with MPTCP.
    multipath: Option<Multipath>,
    /// The connections of flows with an end at a simulated host.
    mixed: BTreeMap<FlowId, (End, End)>,
    /// By simulated and Linux host: how many connections were opened from the one to the other.
    opened: BTreeMap<(HostId, HostId), u16>,
    /// Connections that belong to no flow.
    others: Connections,
    /// Packets to nobody: they go nowhere.
    pub foreign: u64,
    /// Description of data from a Linux host to a simulated host that is no whole segment of its
    /// flow.
    pub misfit: Option<String>,
}

impl Sessions {
    pub fn new(
        is_linux: Vec<bool>,
        sizes: Sizes,
        manner: SimulatedPeer,
        hash_key: u64,
        multipath: Option<Multipath>,
    ) -> Self {
        let hosts = is_linux.len();
        Self {
            is_linux,
            sizes,
            manner,
            by_ends: BTreeMap::new(),
            expected: BTreeMap::new(),
            multipath,
            mixed: BTreeMap::new(),
            opened: BTreeMap::new(),
            others: Connections::new(hosts, sizes, hash_key),
            foreign: 0,
            misfit: None,
        }
    }

    /// A flow begins by this port of its host, which its kernel chose.
    pub fn expect(&mut self, from: End, to: HostId, flow: FlowId, size: u64) {
        self.expected.insert((from, (to, PORT)), (flow, size));
    }

    /// A packet that belongs to no flow arrived.
    pub fn note_delivery(&mut self, packet: &Packet) {
        self.others.note_delivery(packet);
    }

    /// Connections that belonged to no flow.
    pub fn into_others(self) -> Vec<Connection> {
        self.others.into_all()
    }

    /// A connection begins, if a flow is expected there, or if its SYN joins one.
    fn open(&mut self, from: End, to: End, syn: &Tcp) {
        if let Some((flow, size)) = self.expected.remove(&(from, to)) {
            let mut own = size;
            if let Some(multipath) = &mut self.multipath {
                multipath.begin(flow, from.0, size);
                own = 0;
            }
            let simulated = (!self.is_linux[to.0.index()]).then(|| SimulatedEnd::new(&self.manner, flow));
            if simulated.is_some() {
                self.mixed.insert(flow, (from, to));
            }
            let numbers = Numbering::default();
            self.by_ends.insert((from, to), Session { flow, size: own, numbers, simulated });
        } else if let Some(multipath) = &mut self.multipath
            && let Some(flow) = multipath.joins(syn, from.0, to.0)
        {
            let numbers = Numbering::default();
            self.by_ends.insert((from, to), Session { flow, size: 0, numbers, simulated: None });
        }
    }

    /// A simulated host opens a connection to a Linux host. Returns its port.
    pub fn open_simulated(&mut self, from: HostId, to: HostId, flow: FlowId, size: u64) -> u16 {
        let opened = self.opened.entry((from, to)).or_default();
        let ends = ((from, FIRST_PORT + *opened), (to, PORT));
        *opened = (*opened + 1) % PORTS;
        let simulated = SimulatedEnd::new(&self.manner, flow);
        let mut numbers = Numbering::default();
        numbers.begin(simulated.first_byte());
        // One that had this port before is long over.
        let session = Session { flow, size, numbers, simulated: Some(simulated) };
        if let Some(before) = self.by_ends.insert(ends, session) {
            self.mixed.remove(&before.flow);
        }
        self.mixed.insert(flow, ends);
        ends.0.1
    }

    /// Whether a flow with an end at a simulated host has a connection.
    pub fn is_open(&self, flow: FlowId) -> bool {
        self.mixed.contains_key(&flow)
    }

    /// Translates a packet of a simulated host for the Linux host that it reaches at `at`.
    pub fn write(&mut self, packet: &Packet, at: Time) -> Option<Frame> {
        let (source, destination) = *self.mixed.get(&packet.flow)?;
        let Session { numbers, size, simulated, .. } = self.by_ends.get_mut(&(source, destination))?;
        let (end, manner) = (simulated.as_mut()?, &self.manner);
        let segment = if packet.src == source.0 {
            end.of_sender(manner, packet, *size)?
        } else {
            end.of_receiver(manner, packet, numbers.first()?, *size, at)?
        };
        let ports = if packet.src == source.0 { (source, destination) } else { (destination, source) };
        segment.into_frame(packet, (ports.0.1, ports.1.1))
    }

    /// A packet of a Linux host reaches a simulated host at `at`.
    pub fn reaches_simulated(&mut self, packet: &Packet, frame: &Frame, at: Time) {
        let Some(ends) = self.mixed.get(&packet.flow) else { return };
        let Some(end) = self.by_ends.get_mut(ends).and_then(|session| session.simulated.as_mut()) else {
            return;
        };
        // A receiver echoes by when data was sent; a sender, what has reached it.
        if packet.dst == ends.0.0
            && let Ok(IpPacket { body: Body::Tcp(tcp, _), .. }) = IpPacket::decode(&frame.bytes)
        {
            end.note_stamp(&tcp, at);
        }
    }

    /// The flow that came from one end to another.
    pub fn flow(&self, from: End, to: End) -> Option<FlowId> {
        self.by_ends.get(&(from, to)).map(|session| session.flow)
    }

    /// Translates a packet of a host for the fabric. None, and counted, for one that goes to none
    /// of its hosts.
    pub fn read(&mut self, from: HostId, sent: Sent) -> Option<ExternalPacket> {
        let to = sent.packet.get(16..20).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        let to = to.and_then(|bytes| host_of(bytes.into(), self.is_linux.len()));
        let Some((packet, frame)) = self.understand(from, &sent.packet, sent.begins) else {
            // Simulated hosts have flows and nothing else.
            let goes = to.is_some_and(|to| self.is_linux[to.index()]);
            let other = if goes { self.others.read(from, sent) } else { None };
            self.foreign += u64::from(other.is_none());
            return other;
        };
        let frame = Frame { bytes: sent.packet, ..frame };
        Some(ExternalPacket { begins: sent.begins, packet, frame })
    }

    fn understand(&mut self, from: HostId, bytes: &[u8], begins: Time) -> Option<(Packet, Frame)> {
        let IpPacket { ip, body: Body::Tcp(tcp, payload) } = IpPacket::decode(bytes).ok()? else {
            return None;
        };
        let to = host_of(ip.destination, self.is_linux.len())?;
        if host_of(ip.source, self.is_linux.len()) != Some(from) || from == to {
            return None;
        }
        let (here, there) = ((from, tcp.source_port), (to, tcp.destination_port));
        let asks = tcp.flags.contains(Flags::SYN) && !tcp.flags.contains(Flags::ACK);
        if asks && !self.by_ends.contains_key(&(here, there)) {
            self.open(here, there, &tcp);
        }
        let is_forward = self.by_ends.contains_key(&(here, there));
        let ends = if is_forward { (here, there) } else { (there, here) };
        let sizes = self.sizes;
        let session = self.by_ends.get_mut(&ends)?;

        if let Some(end) = &mut session.simulated {
            end.hears(&tcp);
            if is_forward {
                end.note_stamp(&tcp, begins);
            }
        }
        let mut frame = Frame { ends: tcp.flags.contains(Flags::FIN), ..Frame::default() };
        let mut packet = Packet::default();
        (packet.flow, packet.src, packet.dst) = (session.flow, from, to);
        packet.kind = kind_of(&tcp, payload);
        packet.wire_bytes = u16::try_from(bytes.len()).ok()?.checked_add(sizes.around)?;
        packet.flags = flags_of(&ip, &tcp, packet.kind);
        let segment = |byte: u64| (byte / u64::from(sizes.payload)) as u32;
        if is_forward {
            if tcp.flags.contains(Flags::SYN) {
                session.numbers.begin(tcp.sequence.wrapping_add(1));
                return Some((packet, frame));
            }
            let first = session.numbers.byte(tcp.sequence)?;
            let end = first.checked_add(payload.len() as u64)?;
            packet.seq = segment(first);
            frame.payload = first..session.cut(end).max(first);
            let mut is_last = !payload.is_empty() && end == session.size;
            if let Some(multipath) = &mut self.multipath {
                let data = multipath.carried(session.flow, &tcp, &frame.payload);
                is_last = multipath.is_end(session.flow, &data.payload);
                frame.data = Some(data);
            }
            packet.flags = packet.flags.with_if(PacketFlags::LAST, is_last);
            if session.simulated.is_some() && !sizes.fits(&frame.payload, session.size) {
                let (flow, bytes) = (session.flow.0, &frame.payload);
                self.misfit.get_or_insert(format!(
                    "host {} sends bytes {} to {} of flow {flow} to a simulated host, which takes whole segments of {} bytes",
                    from.0, bytes.start, bytes.end, sizes.payload
                ));
            }
            return Some((packet, frame));
        }
        if packet.kind == Kind::SynAck {
            if let Some(multipath) = &mut self.multipath {
                multipath.acknowledged(session.flow, from, &tcp, 0);
            }
            return Some((packet, frame));
        }
        let acknowledged = session.numbers.byte(tcp.acknowledgement).map_or(0, |byte| session.cut(byte));
        packet.seq = segment(acknowledged + u64::from(sizes.payload) - 1);
        if packet.kind == Kind::Ack {
            let mut blocks =
                sack_blocks(&tcp, &mut session.numbers, (acknowledged, session.size), sizes.payload);
            if let (Some(end), [.., last @ SackBlock { count: 0, .. }]) = (&session.simulated, &mut blocks) {
                let window = end.window(&tcp) / u32::from(sizes.payload);
                *last = SackBlock::of_window(u16::try_from(window).unwrap_or(u16::MAX));
            }
            packet.set_sack_blocks(blocks);
        }
        frame.acknowledged = acknowledged;
        if let Some(multipath) = &mut self.multipath {
            frame.data = Some(multipath.acknowledged(session.flow, from, &tcp, acknowledged));
        }
        Some((packet, frame))
    }
}

pub(super) const fn kind_of(tcp: &Tcp, payload: &[u8]) -> Kind {
    if tcp.flags.contains(Flags::SYN) {
        return if tcp.flags.contains(Flags::ACK) { Kind::SynAck } else { Kind::Syn };
    }
    if payload.is_empty() { Kind::Ack } else { Kind::Data }
}

pub(super) fn flags_of(ip: &Ipv4, tcp: &Tcp, kind: Kind) -> PacketFlags {
    let flags = ecn_flags(ip);
    match kind {
        Kind::Data => flags.with_if(PacketFlags::CWR, tcp.flags.contains(Flags::CWR)),
        Kind::Ack => flags.with_if(PacketFlags::ECE, tcp.flags.contains(Flags::ECE)),
        // On a SYN and its answer ECE and CWR only say who understands them (RFC 3168 §6.1.1).
        _ => flags,
    }
}

/// Congestion flags of an IP header.
pub(super) fn ecn_flags(ip: &Ipv4) -> PacketFlags {
    PacketFlags::default()
        .with_if(PacketFlags::ECT, ip.ecn != Ecn::NotCapable)
        .with_if(PacketFlags::CE, ip.ecn == Ecn::Congestion)
}

/// The SACK blocks in segments beyond the acknowledgement; those below it (D-SACK) are left out. A
/// FIN is the segment after the last one: `size` is that of the flow, or 0 where it is not known.
pub(super) fn sack_blocks(
    tcp: &Tcp,
    numbers: &mut Numbering,
    (acknowledged, size): (u64, u64),
    payload: u16,
) -> [SackBlock; Packet::SACK_BLOCKS] {
    let mut blocks = [SackBlock::default(); Packet::SACK_BLOCKS];
    let told = tcp.options.iter().find_map(|option| match option {
        TcpOption::Sack(blocks) => Some(blocks),
        _ => None,
    });
    let payload = u64::from(payload);
    let near = told.into_iter().flatten().filter_map(|&(first, end)| {
        let (first, end) = (numbers.byte(first)?, numbers.byte(end)?);
        let (beyond, until) = (first.checked_sub(acknowledged)?, end.checked_sub(acknowledged)?);
        let is_fin_alone = size > 0 && first == size;
        let first = if is_fin_alone { beyond.div_ceil(payload) } else { beyond / payload };
        let has_fin = size > 0 && end > size;
        let end = if has_fin { (until - 1).div_ceil(payload) + 1 } else { until.div_ceil(payload) };
        Some(SackBlock {
            first: u16::try_from(first).ok()?,
            count: u16::try_from(end.checked_sub(first)?).ok()?,
        })
    });
    for (slot, block) in blocks.iter_mut().zip(near) {
        *slot = block;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fin_that_is_told_of_is_the_segment_after_the_last_one_and_not_the_last() {
        // 2,500 bytes are segments 0 to 2 of 1,000; the FIN is the byte after them.
        let told = |first: u32, end: u32, size| {
            let (mut numbers, sack) = (Numbering::default(), TcpOption::Sack(vec![(first, end)]));
            numbers.begin(0);
            let tcp = Tcp {
                source_port: PORT,
                destination_port: PORT,
                sequence: 0,
                acknowledgement: 1_000,
                flags: Flags::ACK,
                window: u16::MAX,
                urgent: 0,
                options: vec![sack],
            };
            let [SackBlock { first, count }, ..] = sack_blocks(&tcp, &mut numbers, (1_000, size), 1_000);
            (first, count)
        };
        assert_eq!(told(2_000, 2_500, 2_500), (1, 1));
        assert_eq!(told(2_500, 2_501, 2_500), (2, 1), "the FIN alone");
        assert_eq!(told(2_000, 2_501, 2_500), (1, 2), "the last segment and the FIN");
        // Whole segments alone.
        assert_eq!(told(3_000, 3_001, 3_000), (2, 1));
        assert_eq!(told(2_000, 3_001, 3_000), (1, 2));
        assert_eq!(told(2_000, 3_000, 0), (1, 1), "the size is not known");
    }
}
