//! Sizes of RDMA packets on the wire.

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::Time;

use crate::{FlowSize, Outgoing, Segmentation};

/// On data: the receiver is to answer at once (the AckReq bit of the BTH). The bit of a flag that
/// only windows of TCP need.
pub(crate) const ACK_REQUEST: PacketFlags = PacketFlags::CWR;

/// Sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    /// Payload of a full packet.
    pub mtu: u16,
    /// Headers of a data packet.
    pub header: u16,
    /// An acknowledgement.
    pub ack: u16,
    /// A negative one.
    pub nack: u16,
    /// A congestion notification; 0 where there is none.
    pub cnp: u16,
}

impl Wire {
    /// How flows are cut.
    pub const fn segmentation(&self) -> Segmentation {
        Segmentation { mss: self.mtu, header: self.header }
    }

    /// Bytes of data packet `segment` of a flow on the wire.
    pub const fn data_bytes(&self, size: FlowSize, segment: u32) -> u16 {
        self.segmentation().wire_bytes(size, segment)
    }

    /// Data packet `segment` of a flow, sent now.
    pub fn data(&self, size: FlowSize, segment: u32, flags: PacketFlags, now: Time) -> Outgoing {
        let is_last = segment.saturating_add(1) == size.segments;
        Outgoing {
            kind: Kind::Data,
            flags: flags.with_if(PacketFlags::LAST, is_last),
            seq: segment,
            wire_bytes: self.data_bytes(size, segment),
            sent: now,
            sack: [SackBlock::default(); Packet::SACK_BLOCKS],
        }
    }

    /// An answer to a packet: an acknowledgement, a negative one or a congestion notification. What
    /// was marked is echoed. Answers are ECN-capable, too, as all packets of RoCEv2 are (IBTA Annex
    /// A17 §17.9.3): queues that mark early do not drop them.
    pub fn answer(&self, kind: Kind, seq: u32, to: &Packet, is_marked: bool) -> Outgoing {
        Outgoing {
            kind,
            flags: PacketFlags::ECT.with_if(PacketFlags::ECE, is_marked),
            seq,
            wire_bytes: match kind {
                Kind::Cnp => self.cnp,
                Kind::Nack => self.nack,
                _ => self.ack,
            },
            sent: to.sent,
            sack: [SackBlock::default(); Packet::SACK_BLOCKS],
        }
    }
}
