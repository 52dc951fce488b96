//! Which bytes of a flow have come.

use std::ops::Range;

use weft_transport::ReceiverStats;
use weft_units::{Span, Time};

use crate::engine::external_hosts::Frame;

/// Arrived data of a flow, over one connection or several.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// The bytes of the flow.
    pub flow: Intake,
    /// Arrived bytes of each connection, if there are several: by subflow.
    subflows: Vec<Intake>,
}

impl Arrivals {
    /// A packet came at `now` by this subflow; returns how many bytes are new to the flow.
    pub fn take(&mut self, subflow: usize, frame: &Frame, sent_again: bool, now: Time) -> u64 {
        let Some(data) = &frame.data else { return self.flow.take(&frame.payload, sent_again, now) };
        self.subflows.resize_with(self.subflows.len().max(subflow + 1), Intake::default);
        self.subflows[subflow].take(&frame.payload, sent_again, now);
        self.flow.take(&data.payload, sent_again, now)
    }

    /// Counts of the receiver: late packets are late in their subflow, new bytes new to the flow.
    pub fn stats(&self) -> ReceiverStats {
        let sum = |sum: ReceiverStats, subflow: &Intake| ReceiverStats {
            out_of_order: sum.out_of_order + subflow.stats.out_of_order,
            stalls: sum.stalls.and(subflow.stats.stalls),
            ..sum
        };
        let Some((first, others)) = self.subflows.split_first() else { return self.flow.stats };
        let ReceiverStats { out_of_order, stalls, .. } = first.stats;
        others.iter().fold(ReceiverStats { out_of_order, stalls, ..self.flow.stats }, sum)
    }
}

/// Bytes in order at a receiver, and those beyond.
#[derive(Debug, Default)]
pub struct Intake {
    /// Bytes in order.
    pub expected: u64,
    /// Bytes that came beyond them, in ranges apart from each other, in order.
    held: Vec<Range<u64>>,
    /// Since when the next byte has kept others waiting.
    stalled_since: Time,
    /// Counts of the receiver.
    pub stats: ReceiverStats,
}

impl Intake {
    /// Takes bytes at `now`; returns how many of them are new.
    pub fn take(&mut self, bytes: &Range<u64>, sent_again: bool, now: Time) -> u64 {
        self.stats.segments_received += 1;
        let bytes = bytes.start.max(self.expected)..bytes.end;
        let has_gap = bytes.start > self.expected;
        if has_gap && self.held.is_empty() {
            self.stalled_since = now;
        }
        let was_waiting = !self.held.is_empty();
        let new = self.hold(bytes);
        if new == 0 {
            self.stats.duplicates += 1;
        } else if has_gap {
            self.stats.out_of_order += 1;
        } else {
            self.expected = self.held.remove(0).end;
            if was_waiting {
                self.end_stall(sent_again, now);
            }
        }
        new
    }

    /// Adds bytes to what is held; returns how many were not there.
    fn hold(&mut self, bytes: Range<u64>) -> u64 {
        if bytes.is_empty() {
            return 0;
        }
        let from = self.held.partition_point(|held| held.end < bytes.start);
        let to = self.held.partition_point(|held| held.start <= bytes.end);
        let touched = &self.held[from..to];
        let before: u64 = touched.iter().map(|held| held.end - held.start).sum();
        let joined = touched.iter().fold(bytes, |all, held| all.start.min(held.start)..all.end.max(held.end));
        let after = joined.end - joined.start;
        self.held.splice(from..to, [joined]);
        after - before
    }

    /// Ends a stall as the missing bytes come: late, or because they were sent again.
    fn end_stall(&mut self, sent_again: bool, now: Time) {
        let took = now.since(self.stalled_since);
        self.stalled_since = now;
        let stalls = &mut self.stats.stalls;
        stalls.last_by_reordering = if sent_again { Span::ZERO } else { took };
        stalls.last_end = now;
        if sent_again {
            stalls.by_loss += took;
        } else {
            stalls.by_reordering += took;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::external_hosts::Data;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_hole_is_counted_once_and_what_fills_it_says_how_long_it_was_there() {
        let mut intake = Intake::default();
        assert_eq!(intake.take(&(0..10), false, at(1)), 10);
        assert_eq!(intake.take(&(20..30), false, at(2)), 10);
        assert_eq!(intake.take(&(30..40), false, at(3)), 10);
        assert_eq!(intake.take(&(20..30), true, at(4)), 0);
        assert_eq!((intake.stats.out_of_order, intake.stats.duplicates), (2, 1));
        assert_eq!(intake.take(&(10..20), true, at(7)), 10);
        assert_eq!((intake.expected, intake.held.len()), (40, 0));
        assert_eq!(
            (intake.stats.stalls.by_loss, intake.stats.stalls.by_reordering),
            (Span::from_us(5), Span::ZERO)
        );
        assert_eq!(intake.take(&(35..50), false, at(8)), 10, "what overlaps counts once");
    }

    #[test]
    fn late_is_what_is_late_within_its_subflow_and_new_what_is_new_to_the_flow() {
        let mut arrivals = Arrivals::default();
        let mut take = |subflow, own: Range<u64>, of_flow: Range<u64>, now| {
            let data = Some(Data { payload: of_flow, acknowledged: None });
            arrivals.take(subflow, &Frame { payload: own, data, ..Frame::default() }, false, at(now))
        };
        assert_eq!(take(0, 0..10, 0..10, 1), 10);
        assert_eq!(take(1, 0..10, 20..30, 2), 10, "in order by its subflow, ahead in the flow");
        assert_eq!(take(1, 20..30, 40..50, 3), 10, "behind a hole of its subflow");
        assert_eq!(take(0, 10..20, 20..30, 4), 0, "what another subflow has brought");
        assert_eq!(take(1, 10..20, 10..20, 6), 10);
        let stats = arrivals.stats();
        assert_eq!((arrivals.flow.expected, stats.segments_received), (30, 5));
        assert_eq!((stats.out_of_order, stats.duplicates), (1, 1));
        assert_eq!(stats.stalls.by_reordering, Span::from_us(3));
    }

    proptest! {
        #[test]
        fn each_byte_is_new_once_in_whatever_order_segments_come(
            mut order in Just((0..40u64).chain(5..25).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut intake = Intake::default();
            let sum: u64 = order.drain(..).map(|n| intake.take(&(n * 7..n * 7 + 7), false, at(n))).sum();
            prop_assert_eq!((sum, intake.expected, intake.held.len()), (280, 280, 0));
            prop_assert_eq!(intake.stats.duplicates, 20);
        }
    }
}
