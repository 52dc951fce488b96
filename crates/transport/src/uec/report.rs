//! Fields of an acknowledgement beside the next packet in order: 16 bytes of it.

use weft_packet::{Packet, SackBlock};

/// The fields of a PDS `ACK_CC` that a fabric needs (Ultra Ethernet 1.0 §3.5.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Report {
    /// The first packet of the bitmap, from the next one in order on.
    pub base: u16,
    /// Which of 64 packets have come, the first one in the lowest bit.
    pub bits: u64,
    /// The packet that made the acknowledgement, from the next one in order on; negative if it is
    /// in order.
    pub trigger: i16,
    /// Bytes on the wire that have come, each packet once; modulo 2^32.
    pub received: u32,
}

impl Report {
    /// As an acknowledgement carries it.
    pub const fn blocks(self) -> [SackBlock; Packet::SACK_BLOCKS] {
        let offsets = (self.base as u32) << 16 | self.trigger as u16 as u32;
        let [a, b] = [self.bits as u32, (self.bits >> 32) as u32];
        [block(a), block(b), block(offsets), block(self.received)]
    }

    /// Reads the fields of an acknowledgement.
    pub fn read(packet: &Packet) -> Self {
        let [a, b, offsets, received] = packet.sack_blocks().map(word);
        Self {
            base: (offsets >> 16) as u16,
            bits: u64::from(a) | u64::from(b) << 32,
            trigger: (offsets as u16).cast_signed(),
            received,
        }
    }
}

const fn block(word: u32) -> SackBlock {
    SackBlock { first: (word >> 16) as u16, count: word as u16 }
}

fn word(block: SackBlock) -> u32 {
    u32::from(block.first) << 16 | u32::from(block.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_wire() {
        for bits in [0, 1, 1 << 63, 0x0123_4567_89ab_cdef] {
            for (base, trigger, received) in
                [(0, -1, 0), (u16::MAX, i16::MAX, u32::MAX), (5, i16::MIN, 70_000)]
            {
                let report = Report { base, bits, trigger, received };
                let mut packet = Packet::default();
                packet.set_sack_blocks(report.blocks());
                assert_eq!(Report::read(&packet), report);
            }
        }
    }
}
