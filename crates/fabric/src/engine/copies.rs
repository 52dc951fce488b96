//! Why segments were sent again: what became of the copies of segments that were dropped or sent more than once.
//!
//! A retransmission is needed if every earlier copy of its segment was dropped. No end of a flow can know that. Each place
//! where packets are dropped notes it, each host notes what it sends again, and when the run is over the notes are held
//! against each other.

use std::collections::BTreeMap;

use weft_packet::{FlowId, Packet};
use weft_transport::Resend;
use weft_units::Time;

use super::host::Resent;
use super::results::Retransmissions;

/// A data packet that was dropped.
#[derive(Debug, Clone, Copy)]
pub struct Dropped {
    /// The flow, or the subflow by its number.
    flow: FlowId,
    copy: Copy,
    /// When.
    at: Time,
}

impl Dropped {
    /// This packet was dropped now.
    pub const fn new(packet: &Packet, now: Time) -> Self {
        Self { flow: packet.flow, copy: Copy { segment: packet.seq, sent: packet.sent }, at: now }
    }
}

/// One copy of a segment: no segment is sent twice at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Copy {
    segment: u32,
    sent: Time,
}

/// The drops and retransmissions of all flows. Flows without either take no place.
#[derive(Default)]
pub struct Copies {
    flows: BTreeMap<u32, FlowCopies>,
}

#[derive(Default)]
struct FlowCopies {
    dropped: Vec<Copy>,
    resent: Vec<(Copy, Resend)>,
}

impl Copies {
    /// Takes in a drop, unless the flow was over by then: `over` says when a flow ended.
    pub fn note_drop(&mut self, dropped: &Dropped, over: impl Fn(FlowId) -> Option<Time>) {
        if over(dropped.flow).is_none_or(|over| dropped.at <= over) {
            self.flows.entry(dropped.flow.0).or_default().dropped.push(dropped.copy);
        }
    }

    /// Takes in a segment that was sent again.
    pub fn note_resend(&mut self, resent: &Resent) {
        let copy = Copy { segment: resent.segment, sent: resent.sent };
        self.flows.entry(resent.flow.0).or_default().resent.push((copy, resent.cause));
    }

    /// What came of each flow's copies, by flow: data packets dropped, and retransmissions by reason. What was still on its
    /// way counts as not dropped.
    pub fn settle(self) -> impl Iterator<Item = (FlowId, u32, Retransmissions)> {
        self.flows.into_iter().map(|(flow, copies)| {
            let (dropped, retransmissions) = copies.settle();
            (FlowId(flow), dropped, retransmissions)
        })
    }
}

impl FlowCopies {
    fn settle(mut self) -> (u32, Retransmissions) {
        self.dropped.sort_unstable();
        self.resent.sort_unstable_by_key(|(copy, _)| *copy);
        let mut counts = Retransmissions::default();
        let mut segment = None;
        let mut earlier = 0;
        for (copy, cause) in &self.resent {
            if segment.replace(copy.segment) != Some(copy.segment) {
                earlier = 0;
            }
            // The first copy was no retransmission.
            earlier += 1;
            if self.dropped_before(*copy) == earlier {
                counts.after_loss += 1;
            } else if *cause == Resend::FastRecovery {
                counts.after_reordering += 1;
            } else {
                counts.after_timeout += 1;
            }
        }
        (self.dropped.len() as u32, counts)
    }

    /// How many copies of the same segment that were sent before this one were dropped.
    fn dropped_before(&self, copy: Copy) -> usize {
        let first = Copy { sent: Time::ZERO, ..copy };
        self.dropped.partition_point(|&dropped| dropped < copy)
            - self.dropped.partition_point(|&dropped| dropped < first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(3);

    fn drop(copies: &mut Copies, flow: FlowId, segment: u32, sent_us: u64) {
        let mut packet = Packet::default();
        (packet.flow, packet.seq, packet.sent) = (flow, segment, at(sent_us));
        copies
            .note_drop(&Dropped::new(&packet, at(sent_us + 1)), |flow| (flow == FlowId(9)).then(|| at(100)));
    }

    fn resend(copies: &mut Copies, flow: FlowId, segment: u32, sent_us: u64, cause: Resend) {
        copies.note_resend(&Resent { flow, segment, sent: at(sent_us), cause });
    }

    fn at(us: u64) -> Time {
        Time::from_ps(us * 1_000_000)
    }

    fn counts(after_loss: u32, after_reordering: u32, after_timeout: u32) -> Retransmissions {
        Retransmissions { after_loss, after_reordering, after_timeout }
    }

    #[test]
    fn a_retransmission_is_needed_only_if_every_earlier_copy_was_dropped() {
        let mut copies = Copies::default();
        // Segment 5: both copies lost, the third is needed; a fourth is not, since the third is not dropped.
        drop(&mut copies, FLOW, 5, 1);
        resend(&mut copies, FLOW, 5, 10, Resend::FastRecovery);
        drop(&mut copies, FLOW, 5, 10);
        resend(&mut copies, FLOW, 5, 20, Resend::Timeout);
        resend(&mut copies, FLOW, 5, 30, Resend::Timeout);
        // Segment 6 was late, not lost. Segment 7 was late, and its copy was dropped: it was not needed all the same.
        resend(&mut copies, FLOW, 6, 11, Resend::FastRecovery);
        resend(&mut copies, FLOW, 7, 12, Resend::FastRecovery);
        drop(&mut copies, FLOW, 7, 12);
        resend(&mut copies, FLOW, 7, 31, Resend::Timeout);
        assert_eq!(copies.settle().collect::<Vec<_>>(), [(FLOW, 3, counts(2, 2, 2))]);
    }

    #[test]
    fn a_copy_that_is_dropped_after_the_next_was_sent_counts_by_when_it_was_sent() {
        let mut copies = Copies::default();
        resend(&mut copies, FLOW, 0, 10, Resend::Timeout);
        drop(&mut copies, FLOW, 0, 1);
        assert_eq!(copies.settle().collect::<Vec<_>>(), [(FLOW, 1, counts(1, 0, 0))]);
    }

    #[test]
    fn flows_are_kept_apart_and_what_is_dropped_after_a_flow_is_no_concern_of_it() {
        let mut copies = Copies::default();
        drop(&mut copies, FLOW, 0, 1);
        resend(&mut copies, FlowId(4), 0, 9, Resend::FastRecovery);
        drop(&mut copies, FlowId(9), 0, 99);
        drop(&mut copies, FlowId(9), 1, 100);
        let settled: Vec<_> = copies.settle().collect();
        assert_eq!(
            settled,
            [(FLOW, 1, counts(0, 0, 0)), (FlowId(4), 0, counts(0, 1, 0)), (FlowId(9), 1, counts(0, 0, 0))]
        );
    }
}
