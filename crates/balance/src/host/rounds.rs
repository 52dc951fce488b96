//! A flow's round trips at its sender, counted by sequence numbers: a round ends when a segment is
//! acknowledged that was sent after the round before had ended.

use weft_packet::{Kind, Packet, PacketFlags};

/// How much of a round was marked: in acknowledgements, and in the segments that they acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Round {
    /// Acknowledgements.
    pub acks: u32,
    /// Acknowledgements with a congestion echo.
    pub marked_acks: u32,
    /// Segments that were acknowledged for the first time.
    pub segments: u32,
    /// Segments acknowledged for the first time with a congestion echo.
    pub marked_segments: u32,
}

/// The rounds of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rounds {
    /// The segment after the highest that was sent.
    next: u32,
    /// The first segment that is not acknowledged.
    acknowledged: u32,
    /// The round ends when a segment from here on is acknowledged.
    end: u32,
    round: Round,
}

impl Rounds {
    /// A data packet leaves the sender.
    #[inline]
    pub fn sent(&mut self, packet: &Packet) {
        self.next = self.next.max(packet.seq + 1);
    }

    /// An acknowledgement reached the sender. The round, if it is over with this one.
    #[inline]
    pub fn acknowledged(&mut self, packet: &Packet) -> Option<Round> {
        debug_assert_eq!(packet.kind, Kind::Ack);
        let marked = packet.flags.has(PacketFlags::ECE);
        let segments = packet.seq.saturating_sub(self.acknowledged);
        self.acknowledged += segments;
        self.round.acks += 1;
        self.round.marked_acks += u32::from(marked);
        self.round.segments += segments;
        self.round.marked_segments += if marked { segments } else { 0 };
        if packet.seq <= self.end {
            return None;
        }
        self.end = self.next;
        Some(std::mem::take(&mut self.round))
    }

    /// Whether everything that was sent is acknowledged.
    #[inline]
    pub const fn is_idle(&self) -> bool {
        self.acknowledged == self.next
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::testing::{packet, with};

    use super::*;

    /// The acknowledgement of all segments below `seq`.
    pub fn ack(seq: u32, marked: bool) -> Packet {
        with(packet(1), |ack| {
            (ack.kind, ack.seq) = (Kind::Ack, seq);
            ack.flags = ack.flags.with_if(PacketFlags::ECE, marked);
        })
    }

    /// The segment with this number.
    pub fn segment(seq: u32) -> Packet {
        with(packet(1), |data| data.seq = seq)
    }

    #[test]
    fn a_round_ends_with_the_first_segment_that_was_sent_after_the_last_end() {
        let mut rounds = Rounds::default();
        // Ten segments leave; the acknowledgement of the first ends round 0 (of one), and 10
        // becomes the next end.
        (0..10).for_each(|seq| rounds.sent(&segment(seq)));
        let first = rounds.acknowledged(&ack(1, false)).expect("the first acknowledgement ends a round");
        assert_eq!(first, Round { acks: 1, marked_acks: 0, segments: 1, marked_segments: 0 });
        (10..20).for_each(|seq| rounds.sent(&segment(seq)));
        assert_eq!(rounds.acknowledged(&ack(4, true)), None);
        assert_eq!(rounds.acknowledged(&ack(4, true)), None, "a duplicate acknowledges nothing");
        assert_eq!(rounds.acknowledged(&ack(10, false)), None);
        let second = rounds.acknowledged(&ack(12, true)).expect("segment 10 was sent after the end");
        assert_eq!(second, Round { acks: 4, marked_acks: 3, segments: 11, marked_segments: 5 });
        assert!(!rounds.is_idle());
        assert_eq!(rounds.acknowledged(&ack(20, false)), None);
        assert!(rounds.is_idle());
    }

    #[test]
    fn a_retransmission_moves_nothing_back() {
        let mut rounds = Rounds::default();
        (0..5).for_each(|seq| rounds.sent(&segment(seq)));
        rounds.acknowledged(&ack(5, false));
        rounds.sent(&segment(2));
        assert!(rounds.is_idle());
        assert_eq!(rounds.acknowledged(&ack(3, true)), None, "old");
        assert!(rounds.is_idle());
    }
}
