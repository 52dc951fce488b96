//! Why segments were sent again: what became of the copies of segments that were dropped or sent more than once.
//!
//! A retransmission is needed if every earlier copy of its segment was dropped. No end of a flow can know that; the world
//! can. It keeps a note of each drop and each retransmission of the flows that are active, and asks when a flow ends.

use std::collections::BTreeMap;

use weft_packet::{FlowId, Packet};
use weft_transport::Resend;
use weft_units::Time;

use super::results::Retransmissions;

/// One copy of a segment: no segment is sent twice at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Copy {
    segment: u32,
    sent: Time,
}

/// The drops and retransmissions of the flows that are active. Flows without either take no place.
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
    /// A data packet was dropped.
    pub fn note_drop(&mut self, packet: &Packet) {
        let copy = Copy { segment: packet.seq, sent: packet.sent };
        self.flows.entry(packet.flow.0).or_default().dropped.push(copy);
    }

    /// A segment is sent again.
    pub fn note_resend(&mut self, flow: FlowId, segment: u32, sent: Time, cause: Resend) {
        self.flows.entry(flow.0).or_default().resent.push((Copy { segment, sent }, cause));
    }

    /// What came of the flow's copies, which are forgotten: data packets dropped, and retransmissions by reason. What is
    /// still on its way counts as not dropped.
    pub fn settle(&mut self, flow: FlowId) -> (u32, Retransmissions) {
        self.flows.remove(&flow.0).map(FlowCopies::settle).unwrap_or_default()
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

    fn drop(copies: &mut Copies, segment: u32, sent_us: u64) {
        let mut packet = Packet::default();
        (packet.flow, packet.seq, packet.sent) = (FLOW, segment, at(sent_us));
        copies.note_drop(&packet);
    }

    fn resend(copies: &mut Copies, segment: u32, sent_us: u64, cause: Resend) {
        copies.note_resend(FLOW, segment, at(sent_us), cause);
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
        drop(&mut copies, 5, 1);
        resend(&mut copies, 5, 10, Resend::FastRecovery);
        drop(&mut copies, 5, 10);
        resend(&mut copies, 5, 20, Resend::Timeout);
        resend(&mut copies, 5, 30, Resend::Timeout);
        // Segment 6 was late, not lost. Segment 7 was late, and its copy was dropped: it was not needed all the same.
        resend(&mut copies, 6, 11, Resend::FastRecovery);
        resend(&mut copies, 7, 12, Resend::FastRecovery);
        drop(&mut copies, 7, 12);
        resend(&mut copies, 7, 31, Resend::Timeout);
        assert_eq!(copies.settle(FLOW), (3, counts(2, 2, 2)));
        assert_eq!(copies.settle(FLOW), (0, counts(0, 0, 0)), "what is settled is forgotten");
    }

    #[test]
    fn a_copy_that_is_dropped_after_the_next_was_sent_counts_by_when_it_was_sent() {
        let mut copies = Copies::default();
        resend(&mut copies, 0, 10, Resend::Timeout);
        drop(&mut copies, 0, 1);
        assert_eq!(copies.settle(FLOW), (1, counts(1, 0, 0)));
    }

    #[test]
    fn flows_are_kept_apart() {
        let mut copies = Copies::default();
        drop(&mut copies, 0, 1);
        copies.note_resend(FlowId(4), 0, at(9), Resend::FastRecovery);
        assert_eq!(copies.settle(FlowId(4)), (0, counts(0, 1, 0)));
        assert_eq!(copies.settle(FLOW), (1, counts(0, 0, 0)));
    }
}
