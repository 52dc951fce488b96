//! Common parts of transports that send credits: a sender that answers each credit with a segment,
//! and the pacing of credits with its feedback control.

pub(crate) mod alone;
pub(crate) mod config;
pub(crate) mod feedback;
pub(crate) mod outstanding;
pub(crate) mod pacer;
pub(crate) mod sender;

use weft_packet::{Kind, Packet, PacketFlags, SackBlock};
use weft_units::{Span, Time};

use crate::{CreditPorts, Outgoing, Segmentation};

/// Checked parameters that all flows share.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub mss: u16,
    pub header: u16,
    pub credit_bytes: u16,
    /// Credits are this much smaller or larger, at random.
    pub credit_spread: u16,
    pub queue: u32,
    pub burst_bytes: u16,
    /// Share of the highest rate.
    pub initial_rate: f64,
    pub feedback: feedback::Rules,
    /// Share of the time between two credits.
    pub jitter: f64,
    pub retransmit_timeout: Span,
    pub stop_timeout: Span,
}

impl Terms {
    /// A packet without payload.
    pub fn signal(&self, kind: Kind, seq: u32, sent: Time) -> Outgoing {
        Outgoing {
            kind,
            flags: PacketFlags::default(),
            seq,
            wire_bytes: self.credit_bytes,
            sent,
            sack: [SackBlock::default(); Packet::SACK_BLOCKS],
        }
    }

    /// Bytes on the wire of a full segment.
    pub const fn frame_bytes(&self) -> u16 {
        self.mss + self.header
    }

    /// How flows are cut.
    pub const fn segmentation(&self) -> Segmentation {
        Segmentation { mss: self.mss, header: self.header }
    }

    /// A request for credits and the smallest credit: no data leaves before them.
    pub const fn handshake_wire_bytes(&self) -> (u16, u16) {
        (self.credit_bytes, self.credit_bytes - self.credit_spread)
    }

    /// Credit queues that ports need.
    pub const fn credit_ports(&self) -> CreditPorts {
        CreditPorts {
            credit_bytes: self.credit_bytes,
            frame_bytes: self.frame_bytes(),
            queue: self.queue,
            burst_bytes: self.burst_bytes,
        }
    }
}
