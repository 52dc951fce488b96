//! The packets that links send, one by one, for links that somebody asks for.

use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags, SackBlock};
use weft_units::Time;

use super::external_hosts::Frame;
use super::pool::{PacketIndex, Pool};

/// So many bytes of a packet are kept: all headers.
pub const HEAD_BYTES: usize = 128;

/// Which packets somebody asks for.
#[derive(Debug, Clone, Copy)]
pub struct CaptureOf<'a> {
    /// The links. Those whose port has several queues send nothing that is noted.
    pub links: &'a [u32],
    /// Packets of these flows only; none: all packets, those of schemes as well.
    pub flows: Option<&'a [u32]>,
    /// So many packets at most, the first ones queued.
    pub most: usize,
}

/// A packet that a link sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// When its first bit left.
    pub at: Time,
    /// The link.
    pub link: u32,
    /// Flow of the packet; of no meaning for packets of schemes.
    pub flow: FlowId,
    /// The host that sent it.
    pub src: HostId,
    /// The host that it goes to.
    pub dst: HostId,
    /// Kind of the packet.
    pub kind: Kind,
    /// Segment of the packet, or the next one that is expected.
    pub segment: u32,
    /// Bytes that it takes on a link.
    pub wire_bytes: u16,
    /// Flags of the packet, with the mark of this queue.
    pub flags: PacketFlags,
    /// SACK blocks of an acknowledgement; empty ones mean nothing.
    pub sack: [SackBlock; Packet::SACK_BLOCKS],
    /// The first [`HEAD_BYTES`] of what it stands for, and its length, if its host is not
    /// simulated: as its host sent it, without marks of queues.
    pub head: Option<(Vec<u8>, usize)>,
}

/// Capture of the packets that some links send. They have one queue each.
pub struct Capture {
    /// By link.
    asked: Vec<bool>,
    /// In order; none: all packets.
    flows: Option<Vec<u32>>,
    /// In the order in which they were queued: of one link, that in which they are sent.
    packets: Vec<Captured>,
    most: usize,
    beyond: u64,
}

impl Capture {
    /// Nothing was sent so far by any of the links, of which there are `count`.
    pub fn new(of: CaptureOf<'_>, count: usize) -> Self {
        let mut asked = vec![false; count];
        for &link in of.links {
            if let Some(asked) = asked.get_mut(link as usize) {
                *asked = true;
            }
        }
        let flows = of.flows.map(|flows| {
            let mut flows = flows.to_vec();
            flows.sort_unstable();
            flows
        });
        Self { asked, flows, packets: Vec::new(), most: of.most, beyond: 0 }
    }

    /// Whether the packet is one of the flows; those of schemes belong to none.
    fn is_asked(&self, packet: &Packet) -> bool {
        let is_own =
            |flows: &Vec<u32>| !packet.kind.is_of_scheme() && flows.binary_search(&packet.flow.0).is_ok();
        self.flows.as_ref().is_none_or(is_own)
    }

    /// The links.
    pub fn links(&self) -> impl Iterator<Item = usize> + '_ {
        self.asked.iter().enumerate().filter_map(|(link, &asked)| asked.then_some(link))
    }

    /// A link takes a packet, whose first bit leaves then.
    pub fn note(&mut self, link: u32, at: Time, index: PacketIndex, pool: &Pool) {
        let packet = &pool[index];
        if !self.asked[link as usize] || !self.is_asked(packet) {
            return;
        }
        if self.packets.len() == self.most {
            self.beyond += 1;
            return;
        }
        let head = pool
            .frame(index)
            .map(|Frame { bytes, .. }| (bytes[..bytes.len().min(HEAD_BYTES)].to_vec(), bytes.len()));
        self.packets.push(Captured {
            at,
            link,
            flow: packet.flow,
            src: packet.src,
            dst: packet.dst,
            kind: packet.kind,
            segment: packet.seq,
            wire_bytes: packet.wire_bytes,
            flags: packet.flags,
            sack: if packet.kind == Kind::Ack { packet.sack_blocks() } else { Default::default() },
            head,
        });
    }

    /// Captured packets, by time and link, and how many packets more than were to be kept.
    pub fn into_packets(mut self) -> (Vec<Captured>, u64) {
        self.packets.sort_by_key(|captured| (captured.at, captured.link));
        (self.packets, self.beyond)
    }
}
