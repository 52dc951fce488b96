//! Fields of an acknowledgement beside the next packet in order: the packet that it answers, and
//! the outcome for that packet.

use weft_packet::{Packet, SackBlock};

/// Fields of an acknowledgement about the packet that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AckDetail {
    /// Number of that packet (SACK in MP-RDMA's header).
    pub packet: u32,
    /// Whether it was sent again (`ReTx`): then it may be far behind others, whatever its path.
    pub is_again: bool,
    /// Whether it had come before.
    pub had_come: bool,
}

impl AckDetail {
    const AGAIN: u16 = 1;
    const HAD_COME: u16 = 1 << 1;

    /// As an answer carries it.
    pub const fn blocks(self) -> [SackBlock; Packet::SACK_BLOCKS] {
        let number = SackBlock { first: (self.packet >> 16) as u16, count: self.packet as u16 };
        let again = if self.is_again { Self::AGAIN } else { 0 };
        let had_come = if self.had_come { Self::HAD_COME } else { 0 };
        let none = SackBlock { first: 0, count: 0 };
        [number, SackBlock { first: again | had_come, count: 0 }, none, none]
    }

    /// Reads the fields of an acknowledgement.
    #[inline]
    pub fn read(packet: &Packet) -> Self {
        let [number, bits, ..] = packet.sack_blocks();
        Self {
            packet: u32::from(number.first) << 16 | u32::from(number.count),
            is_again: bits.first & Self::AGAIN != 0,
            had_come: bits.first & Self::HAD_COME != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_survives_the_wire() {
        for packet in [0, 1, 65_536, u32::MAX] {
            for (is_again, had_come) in [(false, false), (true, false), (false, true), (true, true)] {
                let detail = AckDetail { packet, is_again, had_come };
                let mut answer = Packet::default();
                answer.set_sack_blocks(detail.blocks());
                assert_eq!(AckDetail::read(&answer), detail);
            }
        }
    }
}
