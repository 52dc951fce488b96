//! The packets that links send, one by one: what a capture at a host or a link would show, of any
//! kind of host.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use weft_fabric::{CaptureOf, Captured, HEAD_BYTES};
use weft_linux_hosts::codec::{Body, Ecn, Flags, Ipv4, Packet as IpPacket, Tcp, TcpOption, mark_congestion};
use weft_linux_hosts::pcapng::{Direction, Trace};
use weft_packet::{Kind, PacketFlags, SackBlock};
use weft_topology::Topology;
use weft_transport::{Protocol, Segmentation, TransportSpec, Transports, TransportsSpec, Visitor};
use weft_units::Mistake;

use crate::cores::Cores;
use crate::linux::{FIRST_PORT, HEADERS, PORT, PORTS, address_of};
use crate::results::rows::PacketRow;
use crate::results::table::Row;
use crate::run::{Observer, Prepared, RunError, Simulated, Watch};
use crate::spec::{SpecError, nearest};
use crate::warnings::has_credit_ports;

/// Name for the cables of all hosts, in the direction away from them.
const ALL_HOSTS: &str = "hosts";

/// Which packets are listed.
#[derive(Debug, Clone, Copy)]
pub struct PacketsOf<'a> {
    /// Where they are seen: links by their names; hosts and switches, which stand for all links
    /// from and to them; or "hosts", the cables of all hosts away from them. With `flows`, none
    /// stands for every link.
    pub at: &'a [String],
    /// Flows to include, by number; none: all packets.
    pub flows: Option<&'a [u32]>,
    /// So many at most, the first ones queued.
    pub most: usize,
}

impl Prepared {
    /// Runs to the end and returns packets that links send, by time.
    ///
    /// # Errors
    /// A name or a number that none has, a port with several queues, or as [`Prepared::run`].
    pub fn packets(&self, observer: Observer<'_>, of: PacketsOf<'_>) -> Result<RecordBatch, RunError> {
        let captured = self.capture(observer, of)?;
        let rows: Vec<_> = captured.iter().map(|packet| row(&self.fabric.topology, packet)).collect();
        Ok(PacketRow::table(&rows)?)
    }

    /// Captured packets as a pcapng file, to be opened in Wireshark: one interface per link that
    /// sends any. Packets of Linux hosts are what their kernel sent; those of simulated hosts are
    /// written as IPv4 and TCP with the same fields. What has no place in TCP (credits, packets of
    /// load balancers, RDMA) is left out. 128 bytes of each packet are kept.
    ///
    /// # Errors
    /// As [`Self::packets`].
    pub fn pcapng(&self, observer: Observer<'_>, of: PacketsOf<'_>) -> Result<Vec<u8>, RunError> {
        let captured = self.capture(observer, of)?;
        let mut trace = Trace::new(Vec::new())?;
        let mut interfaces = BTreeMap::new();
        for link in captured.iter().map(|packet| packet.link).collect::<BTreeSet<_>>() {
            let name = self.fabric.topology.link_name(link);
            interfaces.insert(link, trace.interface(&name, Some(HEAD_BYTES as u32))?);
        }
        let mss = u64::from(full_packet(&self.resolved.spec.transport).mss);
        let pulled: Vec<bool> =
            self.resolved.spec.transport.all().map(TransportSpec::is_rnic_scheduled).collect();
        let flows = &self.traffic.flows;
        let is_rdma = |packet: &&Captured| {
            let flow = flows.get(packet.flow.index() % flows.len().max(1));
            flow.and_then(|flow| pulled.get(usize::from(flow.transport))).copied().unwrap_or_default()
        };
        for packet in captured.iter().filter(|packet| packet.head.is_some() || !is_rdma(packet)) {
            if let (Some((head, length)), Some(&interface)) =
                (as_ip(packet, mss), interfaces.get(&packet.link))
            {
                trace.head(interface, packet.at, Direction::Out, &head, length)?;
            }
        }
        Ok(trace.finish()?)
    }

    /// Captures the packets that links send.
    fn capture(&self, observer: Observer<'_>, of: PacketsOf<'_>) -> Result<Vec<Captured>, RunError> {
        let PacketsOf { at, flows, most } = of;
        let topology = &self.fabric.topology;
        self.check_flows(flows.unwrap_or_default())?;
        let mut links = BTreeSet::new();
        if at.is_empty() && flows.is_some() {
            links.extend(0..topology.links.len() as u32);
        }
        for name in at {
            links.extend(links_named(topology, name)?);
        }
        let has_credits = has_credit_ports(&self.resolved.spec.transport);
        let has_several = |link: u32| has_credits || topology.links[link as usize].classes.is_some();
        if let Some(&link) = links.iter().find(|&&link| has_several(link)) {
            let name = topology.link_name(link);
            let sentence = format!("{name} has several queues: its packets cannot be listed");
            return Err(SpecError::new(sentence).into());
        }
        let asked: Vec<u32> = links.iter().copied().collect();
        let capture = CaptureOf { links: &asked, flows, most };
        let watch = Watch { capture: Some(capture), ..Watch::default() };
        let Simulated { results, .. } =
            self.simulate(observer, None, watch, Cores::UpTo(NonZeroUsize::MIN))?;
        Ok(results.captured.0)
    }
}

/// Asks how flows are cut into packets.
struct AskSegmentation;

impl Visitor for AskSegmentation {
    type Output = Segmentation;

    fn visit<T: Transports + 'static>(self, transports: T) -> Segmentation {
        transports.numbered(0).segmentation()
    }
}

/// How simulated hosts cut flows into packets, with the first transport of the run. Its parameters
/// were found good.
pub(crate) fn full_packet(transports: &TransportsSpec) -> Segmentation {
    transports.with_transports(AskSegmentation).unwrap_or(Segmentation { mss: 1, header: HEADERS })
}

/// The first bytes of a packet and its length; none if it has no place in TCP.
fn as_ip(packet: &Captured, mss: u64) -> Option<(Vec<u8>, usize)> {
    if let Some((head, length)) = &packet.head {
        let mut head = head.clone();
        if packet.flags.has(PacketFlags::CE) {
            mark_congestion(&mut head);
        }
        return Some((head, *length));
    }
    let flag = |flag: PacketFlags, bits: Flags| if packet.flags.has(flag) { bits } else { Flags::default() };
    let sequence = 1u32.wrapping_add((u64::from(packet.segment) * mss) as u32);
    let (forward, flags, sequence, acknowledgement) = match packet.kind {
        Kind::Syn => (true, Flags::SYN, 0, 0),
        Kind::SynAck => (false, Flags::SYN | Flags::ACK, 0, 1),
        Kind::Data => (true, Flags::ACK | flag(PacketFlags::CWR, Flags::CWR), sequence, 1),
        Kind::SenderAck => (true, Flags::ACK, sequence, 1),
        Kind::Ack => (false, Flags::ACK | flag(PacketFlags::ECE, Flags::ECE), 1, sequence),
        _ => return None,
    };
    let own = FIRST_PORT + (packet.flow.0 % u32::from(PORTS)) as u16;
    let (source_port, destination_port) = if forward { (own, PORT) } else { (PORT, own) };
    let block = |block: &SackBlock| {
        let first = acknowledgement.wrapping_add((u64::from(block.first) * mss) as u32);
        (first, first.wrapping_add((u64::from(block.count) * mss) as u32))
    };
    let sack: Vec<(u32, u32)> = packet.sack.iter().filter(|block| block.count > 0).map(block).collect();
    let options = if sack.is_empty() {
        Vec::new()
    } else {
        vec![TcpOption::NoOperation, TcpOption::NoOperation, TcpOption::Sack(sack)]
    };
    let ip = Ipv4 {
        ecn: match packet.flags {
            flags if flags.has(PacketFlags::CE) => Ecn::Congestion,
            flags if flags.has(PacketFlags::ECT) => Ecn::Capable0,
            _ => Ecn::NotCapable,
        },
        ..Ipv4::new(address_of(packet.src), address_of(packet.dst))
    };
    let tcp = Tcp {
        source_port,
        destination_port,
        sequence,
        acknowledgement,
        flags,
        window: u16::MAX,
        urgent: 0,
        options,
    };
    let payload = vec![0; usize::from(packet.wire_bytes).saturating_sub(HEADERS.into())];
    let payload = if packet.kind == Kind::Data { payload.as_slice() } else { &[] };
    let bytes = IpPacket { ip, body: Body::Tcp(tcp, payload) }.encode().ok()?;
    let length = bytes.len();
    Some((bytes, length))
}

/// The links that a name stands for.
fn links_named(topology: &Topology, name: &str) -> Result<Vec<u32>, SpecError> {
    let all = || 0..topology.links.len() as u32;
    if name == ALL_HOSTS {
        // A host has one cable, and hosts are the first nodes.
        return Ok((0..topology.hosts as u32).collect());
    }
    if let Some(link) = all().find(|&link| topology.link_name(link) == name) {
        return Ok(vec![link]);
    }
    if let Some(node) = topology.names.iter().position(|known| known == name) {
        let touches = |link: &u32| {
            let spec = &topology.links[*link as usize];
            [spec.from, spec.to].iter().any(|end| end.0 as usize == node)
        };
        return Ok(all().filter(touches).collect());
    }
    let names: Vec<String> =
        topology.names.iter().cloned().chain(all().map(|link| topology.link_name(link))).collect();
    let near = nearest(name, names.iter().map(String::as_str));
    let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let allowed =
        "a host, a switch or a link, as in host0, leaf0 or leaf0>spine1, or hosts for the cables of all";
    let sentence = format!("there is no node or link {name:?}: allowed is {allowed}{hint}");
    Err(SpecError::from(Mistake::new(sentence).found(name).allowed(allowed)))
}

/// Whether it tells of congestion marks. Data of a host that is not simulated may, too: its own
/// header says so.
fn is_echo(packet: &Captured) -> bool {
    match (packet.kind, &packet.head) {
        (Kind::Data, Some((head, _))) => tcp_flags(head).contains(Flags::ECE),
        (kind, _) => kind.is_for_sender() && packet.flags.has(PacketFlags::ECE),
    }
}

/// The flags of an IP packet that begins with these bytes, if it is of TCP.
fn tcp_flags(head: &[u8]) -> Flags {
    /// RFC 791 §3.1: where the protocol stands, and its number.
    const PROTOCOL: (usize, u8) = (9, 6);
    /// RFC 9293 §3.1.
    const FLAGS: usize = 13;
    let begin = head.first().map_or(0, |first| usize::from(first & 15) * 4);
    let is_tcp = head.get(PROTOCOL.0) == Some(&PROTOCOL.1);
    let bits = head.get(begin + FLAGS).filter(|_| is_tcp);
    bits.and_then(|&bits| Flags::from_bits(bits.into())).unwrap_or_default()
}

fn row(topology: &Topology, packet: &Captured) -> PacketRow {
    PacketRow {
        time_us: packet.at.as_us(),
        link: topology.link_name(packet.link),
        flow: packet.flow.0,
        src: packet.src.0,
        dst: packet.dst.0,
        kind: packet.kind.name(),
        segment: packet.segment,
        bytes: packet.wire_bytes,
        ecn_capable: packet.flags.has(PacketFlags::ECT),
        marked: packet.flags.has(PacketFlags::CE),
        echo: is_echo(packet),
        retransmission: packet.flags.has(PacketFlags::RETRANSMISSION),
    }
}
