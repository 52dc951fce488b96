//! What a receiver has of its flow.

use weft_packet::{Packet, PacketFlags};
use weft_units::{Span, Time};

use crate::tcp::segments::SegmentSet;
use crate::{Delivery, FlowSize, ReceiverStats};

/// The segments of a flow that have arrived.
#[derive(Debug, Clone)]
pub(crate) struct Assembly {
    /// The next segment in order.
    pub expected: u32,
    segments: u32,
    /// Segments beyond a hole; exists for flows that saw one.
    beyond: Option<Box<SegmentSet>>,
    /// Since when the hole at `expected` is known; of no meaning without one.
    hole_since: Time,
    received: u64,
    out_of_order: u32,
    duplicates: u32,
    marked: u32,
}

impl Assembly {
    /// Nothing yet of a flow of this size.
    pub const fn new(size: FlowSize) -> Self {
        Self {
            expected: 0,
            segments: size.segments,
            beyond: None,
            hole_since: Time::ZERO,
            received: 0,
            out_of_order: 0,
            duplicates: 0,
            marked: 0,
        }
    }

    /// Whether every segment has arrived.
    pub const fn is_complete(&self) -> bool {
        self.expected == self.segments
    }

    /// Whether a segment is missing that others have overtaken, and has been for `patience` or longer.
    #[inline]
    pub fn has_hole(&self, now: Time, patience: impl FnOnce() -> Span) -> bool {
        let has = self.beyond.as_ref().is_some_and(|beyond| beyond.len() > 0);
        has && now.since(self.hole_since) >= patience()
    }

    /// Takes a segment in.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller in each transport.
    pub fn take(&mut self, data: &Packet, now: Time) -> Delivery {
        self.received += 1;
        self.marked += u32::from(data.flags.has(PacketFlags::CE));
        let before = self.expected;
        if data.seq == self.expected {
            self.expected += 1;
            if let Some(beyond) = self.beyond.as_mut().filter(|beyond| beyond.len() > 0) {
                self.expected = beyond.next_absent(self.expected);
                beyond.advance(self.expected);
                self.hole_since = now;
            }
        } else {
            self.on_disorder(data.seq, now);
        }
        if self.is_complete() && self.expected > before { Delivery::Complete } else { Delivery::Ongoing }
    }

    #[cold]
    fn on_disorder(&mut self, segment: u32, now: Time) {
        let expected = self.expected;
        if segment < expected || segment >= self.segments {
            self.duplicates += 1;
            return;
        }
        let beyond = self.beyond.get_or_insert_with(|| Box::new(SegmentSet::new(expected)));
        if beyond.len() == 0 {
            beyond.advance(expected);
            self.hole_since = now;
        }
        if beyond.insert(segment) {
            self.out_of_order += 1;
        } else {
            self.duplicates += 1;
        }
    }

    /// What it counted.
    pub fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            segments_received: self.received,
            out_of_order: self.out_of_order,
            duplicates: self.duplicates,
            marked: self.marked,
            ..ReceiverStats::default()
        }
    }
}
