//! Received packets of a flow, and the time for which early ones were held.

use weft_packet::{Packet, PacketFlags};
use weft_units::{Span, Time};

use crate::tcp::segments::SegmentSet;
use crate::{Delivery, FlowSize, ReceiverStats, Stalls};

/// Outcome of an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// It was the next one in order.
    InOrder,
    /// One before it is missing.
    Early,
    /// It had come before.
    Again,
}

/// The packets of a flow that have come.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    /// The next packet in order.
    pub expected: u32,
    segments: u32,
    received: u32,
    out_of_order: u32,
    duplicates: u32,
    marked: u32,
    /// Packets beyond a hole; exists for flows that saw one.
    beyond: Option<Box<Beyond>>,
}

#[derive(Debug, Clone)]
struct Beyond {
    held: SegmentSet,
    /// Since when the next packet in order has kept others waiting.
    since: Time,
    stalls: Stalls,
}

impl Intake {
    /// Nothing yet of a flow of this size.
    pub const fn new(size: FlowSize) -> Self {
        Self {
            expected: 0,
            segments: size.segments,
            received: 0,
            out_of_order: 0,
            duplicates: 0,
            marked: 0,
            beyond: None,
        }
    }

    /// Everything of it.
    pub fn finished(size: FlowSize) -> Self {
        Self { expected: size.segments, ..Self::new(size) }
    }

    /// Whether everything has come.
    #[inline]
    pub const fn is_complete(&self) -> bool {
        self.expected == self.segments
    }

    /// How many packets are held beyond a hole.
    #[inline]
    pub fn held(&self) -> u32 {
        self.beyond.as_ref().map_or(0, |beyond| beyond.held.len())
    }

    /// Whether a packet is missing that others have overtaken, and has been for `patience` or
    /// longer.
    #[inline]
    pub fn has_hole(&self, now: Time, patience: impl FnOnce() -> Span) -> bool {
        let beyond = self.beyond.as_ref().filter(|beyond| beyond.held.len() > 0);
        beyond.is_some_and(|beyond| now.since(beyond.since) >= patience())
    }

    /// Whether a packet has come.
    pub fn has(&self, segment: u32) -> bool {
        segment < self.expected || self.beyond.as_ref().is_some_and(|beyond| beyond.held.contains(segment))
    }

    /// Takes a data packet.
    #[inline]
    pub fn take(&mut self, packet: &Packet, now: Time) -> Came {
        self.received = self.received.saturating_add(1);
        self.marked += u32::from(packet.flags.has(PacketFlags::CE));
        if packet.seq == self.expected && self.held() == 0 {
            self.expected += 1;
            return Came::InOrder;
        }
        self.take_with_hole(packet, now)
    }

    /// Takes a data packet; says whether it makes the flow complete.
    #[inline]
    pub fn deliver(&mut self, packet: &Packet, now: Time) -> Delivery {
        let before = self.expected;
        self.take(packet, now);
        if self.is_complete() && self.expected > before { Delivery::Complete } else { Delivery::Ongoing }
    }

    #[inline(never)]
    fn take_with_hole(&mut self, packet: &Packet, now: Time) -> Came {
        let (segment, expected) = (packet.seq, self.expected);
        if segment < expected || segment >= self.segments {
            self.duplicates += 1;
            return Came::Again;
        }
        let new = || Beyond { held: SegmentSet::new(expected), since: now, stalls: Stalls::default() };
        let beyond = self.beyond.get_or_insert_with(|| Box::new(new()));
        if segment == expected {
            beyond.end_stall(packet.flags.has(PacketFlags::RETRANSMISSION), now);
            self.expected = beyond.held.next_absent(segment + 1);
            beyond.held.advance(self.expected);
            return Came::InOrder;
        }
        if beyond.held.len() == 0 {
            beyond.held.advance(expected);
            beyond.since = now;
        }
        if beyond.held.insert(segment) {
            self.out_of_order += 1;
            Came::Early
        } else {
            self.duplicates += 1;
            Came::Again
        }
    }

    /// Which of the 64 packets from `base` on have come, one bit each, the first one the lowest.
    pub fn bits(&self, base: u32) -> u64 {
        below(base, self.expected) | self.beyond.as_ref().map_or(0, |beyond| beyond.held.window(base))
    }

    /// Counters of the receiver.
    pub fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            segments_received: u64::from(self.received),
            out_of_order: self.out_of_order,
            duplicates: self.duplicates,
            marked: self.marked,
            stalls: self.beyond.as_ref().map(|beyond| beyond.stalls).unwrap_or_default(),
            ..ReceiverStats::default()
        }
    }
}

/// The bits of those of 64 packets from `base` on that are below `end`.
const fn below(base: u32, end: u32) -> u64 {
    match end.saturating_sub(base) {
        0 => 0,
        count if count >= 64 => u64::MAX,
        count => (1 << count) - 1,
    }
}

impl Beyond {
    /// The packet that was waited for came: late, or because it was sent again.
    fn end_stall(&mut self, is_again: bool, now: Time) {
        let took = now.since(self.since);
        self.since = now;
        self.stalls.last_by_reordering = if is_again { Span::ZERO } else { took };
        self.stalls.last_end = now;
        if is_again {
            self.stalls.by_loss += took;
        } else {
            self.stalls.by_reordering += took;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(segment: u32, is_again: bool) -> Packet {
        let mut packet = Packet::default();
        packet.seq = segment;
        packet.flags = packet.flags.with_if(PacketFlags::RETRANSMISSION, is_again);
        packet
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn packets_beyond_a_hole_are_kept_and_let_go_together_when_it_fills() {
        let mut intake = Intake::new(FlowSize { segments: 6, last_payload: 1 });
        let came = |intake: &mut Intake, us, segment, again| intake.take(&packet(segment, again), at(us));
        assert_eq!(came(&mut intake, 0, 0, false), Came::InOrder);
        assert_eq!(came(&mut intake, 1, 2, false), Came::Early);
        assert_eq!(came(&mut intake, 2, 4, false), Came::Early);
        assert_eq!(came(&mut intake, 3, 2, true), Came::Again);
        assert_eq!((intake.expected, intake.held(), intake.bits(0)), (1, 2, 0b1_0101));
        assert_eq!(intake.bits(3), 0b10);
        assert_eq!(came(&mut intake, 6, 1, true), Came::InOrder);
        assert_eq!((intake.expected, intake.held()), (3, 1));
        assert_eq!(came(&mut intake, 8, 3, false), Came::InOrder);
        assert_eq!((intake.expected, intake.held(), intake.has(4), intake.has(5)), (5, 0, true, false));
        assert_eq!(came(&mut intake, 9, 5, false), Came::InOrder);
        assert!(intake.is_complete());
        let stats = intake.stats();
        assert_eq!((stats.segments_received, stats.out_of_order, stats.duplicates), (7, 2, 1));
        assert_eq!(stats.stalls.by_loss, Span::from_us(5), "behind packet 1, from 1 to 6");
        assert_eq!(stats.stalls.by_reordering, Span::from_us(2), "behind packet 3, from 6 to 8");
    }
}
