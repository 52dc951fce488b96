//! Which flow a packet of the kernel belongs to, and which bytes of it.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::ops::Range;

use weft_fabric::{Frame, GuestPacket};
use weft_linux_hosts::Sent;
use weft_linux_hosts::codec::{Body, Ecn, Flags, Ipv4, Packet as IpPacket, Tcp, TcpOption};
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags, SackBlock};

/// The first address; hosts follow in their order.
const FIRST: u32 = 0x0a00_0001;

/// Where flows arrive.
pub(crate) const PORT: u16 = 5_000;

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
type End = (HostId, u16);

/// A connection that carries one flow, from where it begins to the other end.
#[derive(Debug)]
struct Session {
    flow: FlowId,
    size: u64,
    /// The sequence number of the flow's first byte; none before the SYN.
    first: Option<u32>,
    /// The highest byte of the flow seen so far, sent or acknowledged: what the sequence number's 32 bits are counted from.
    near: u64,
}

impl Session {
    /// The byte of the flow with this sequence number.
    fn byte(&mut self, sequence: u32) -> Option<u64> {
        let offset = sequence.wrapping_sub(self.first?);
        let ahead = i64::from(offset.wrapping_sub(self.near as u32).cast_signed());
        let byte = self.near.checked_add_signed(ahead)?;
        self.near = self.near.max(byte);
        Some(byte)
    }

    /// As many bytes of the flow as there are: FIN takes a number, too.
    fn cut(&self, byte: u64) -> u64 {
        if self.size == 0 { byte } else { byte.min(self.size) }
    }
}

/// What packets are like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes on the wire beside the IP packet.
    pub around: u16,
    /// Payload of a full packet.
    pub payload: u16,
}

/// The connections of a run.
#[derive(Debug)]
pub(super) struct Sessions {
    hosts: usize,
    sizes: Sizes,
    by_ends: BTreeMap<(End, End), Session>,
    /// Flows that have been started and sent nothing yet, with their sizes: in the order of their starts, by host and host.
    expected: BTreeMap<(HostId, HostId), VecDeque<(FlowId, u64)>>,
    /// Packets that belong to no flow: they go nowhere.
    pub foreign: u64,
}

impl Sessions {
    pub fn new(hosts: usize, sizes: Sizes) -> Self {
        Self { hosts, sizes, by_ends: BTreeMap::new(), expected: BTreeMap::new(), foreign: 0 }
    }

    /// A flow starts between these hosts; the kernel chooses its port. Flows between two hosts begin in the order in which they
    /// were started, so the first SYN is of the first of them.
    pub fn expect(&mut self, from: HostId, to: HostId, flow: FlowId, size: u64) {
        self.expected.entry((from, to)).or_default().push_back((flow, size));
    }

    /// A connection begins, if a flow is expected there.
    fn open(&mut self, from: End, to: End) {
        if to.1 == PORT
            && let Some((flow, size)) = self.expected.get_mut(&(from.0, to.0)).and_then(VecDeque::pop_front)
        {
            self.by_ends.insert((from, to), Session { flow, size, first: None, near: 0 });
        }
    }

    /// The flow that came from one end to another.
    pub fn flow(&self, from: End, to: End) -> Option<FlowId> {
        self.by_ends.get(&(from, to)).map(|session| session.flow)
    }

    /// What a packet of a host is to the fabric. None, and counted, for one that belongs to no flow.
    pub fn read(&mut self, from: HostId, sent: Sent) -> Option<GuestPacket> {
        let read = self.understand(from, &sent.packet);
        let Some((packet, payload, acknowledged)) = read else {
            self.foreign += 1;
            return None;
        };
        let frame = Frame { bytes: sent.packet, payload, acknowledged, entropy: None };
        Some(GuestPacket { begins: sent.begins, packet, frame })
    }

    fn understand(&mut self, from: HostId, bytes: &[u8]) -> Option<(Packet, Range<u64>, u64)> {
        let IpPacket { ip, body: Body::Tcp(tcp, payload) } = IpPacket::decode(bytes).ok()? else {
            return None;
        };
        let to = host_of(ip.destination, self.hosts)?;
        if host_of(ip.source, self.hosts) != Some(from) || from == to {
            return None;
        }
        let (here, there) = ((from, tcp.source_port), (to, tcp.destination_port));
        let asks = tcp.flags.contains(Flags::SYN) && !tcp.flags.contains(Flags::ACK);
        if asks && !self.by_ends.contains_key(&(here, there)) {
            self.open(here, there);
        }
        let is_forward = self.by_ends.contains_key(&(here, there));
        let ends = if is_forward { (here, there) } else { (there, here) };
        let sizes = self.sizes;
        let session = self.by_ends.get_mut(&ends)?;

        let mut packet = Packet::default();
        (packet.flow, packet.src, packet.dst) = (session.flow, from, to);
        packet.kind = kind_of(&tcp, payload);
        packet.wire_bytes = u16::try_from(bytes.len()).ok()?.checked_add(sizes.around)?;
        packet.flags = flags_of(&ip, &tcp, packet.kind);
        let segment = |byte: u64| (byte / u64::from(sizes.payload)) as u32;
        if is_forward {
            if tcp.flags.contains(Flags::SYN) {
                session.first = Some(tcp.sequence.wrapping_add(1));
                return Some((packet, 0..0, 0));
            }
            let first = session.byte(tcp.sequence)?;
            let end = first.checked_add(payload.len() as u64)?;
            packet.seq = segment(first);
            packet.flags =
                packet.flags.with_if(PacketFlags::LAST, !payload.is_empty() && end == session.size);
            return Some((packet, first..session.cut(end).max(first), 0));
        }
        if packet.kind == Kind::SynAck {
            return Some((packet, 0..0, 0));
        }
        let acknowledged = session.byte(tcp.acknowledgement).map_or(0, |byte| session.cut(byte));
        packet.seq = segment(acknowledged + u64::from(sizes.payload) - 1);
        if packet.kind == Kind::Ack {
            packet.set_sack_blocks(sack_blocks(&tcp, session, acknowledged, sizes.payload));
        }
        Some((packet, 0..0, acknowledged))
    }
}

const fn kind_of(tcp: &Tcp, payload: &[u8]) -> Kind {
    if tcp.flags.contains(Flags::SYN) {
        return if tcp.flags.contains(Flags::ACK) { Kind::SynAck } else { Kind::Syn };
    }
    if payload.is_empty() { Kind::Ack } else { Kind::Data }
}

fn flags_of(ip: &Ipv4, tcp: &Tcp, kind: Kind) -> PacketFlags {
    // On a SYN and its answer ECE and CWR only say who understands them (RFC 3168 §6.1.1).
    let speaks = !matches!(kind, Kind::Syn | Kind::SynAck);
    PacketFlags::default()
        .with_if(PacketFlags::ECT, ip.ecn != Ecn::NotCapable)
        .with_if(PacketFlags::CE, ip.ecn == Ecn::Congestion)
        .with_if(PacketFlags::ECE, speaks && tcp.flags.contains(Flags::ECE))
        .with_if(PacketFlags::CWR, speaks && tcp.flags.contains(Flags::CWR))
}

/// The SACK blocks in segments beyond the acknowledgement; those below it (D-SACK) are left out.
fn sack_blocks(
    tcp: &Tcp,
    session: &mut Session,
    acknowledged: u64,
    payload: u16,
) -> [SackBlock; Packet::SACK_BLOCKS] {
    let mut blocks = [SackBlock::default(); Packet::SACK_BLOCKS];
    let told = tcp.options.iter().find_map(|option| match option {
        TcpOption::Sack(blocks) => Some(blocks),
        _ => None,
    });
    let payload = u64::from(payload);
    let near = told.into_iter().flatten().filter_map(|&(first, end)| {
        let (first, end) = (session.byte(first)?, session.byte(end)?);
        let first = first.checked_sub(acknowledged)? / payload;
        let end = end.checked_sub(acknowledged)?.div_ceil(payload);
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
