//! Why segments were sent again: what became of the copies of segments that were dropped or sent
//! more than once.
//!
//! A retransmission is needed if every earlier copy of its segment was dropped. No end of a flow
//! can know that. Each place where packets are dropped notes it, each host notes what it sends
//! again, and when the flow is over the notes are held against each other.

use std::collections::BTreeMap;

use weft_packet::{FlowId, Packet};
use weft_transport::Resend;
use weft_units::Time;

use super::host::RetransmissionCauses;
use super::results::Retransmissions;

/// A data packet that was dropped.
#[derive(Debug, Clone, Copy)]
pub struct Dropped {
    /// The flow, or the subflow by its number.
    flow: FlowId,
    copy: Copy,
    /// When.
    at: Time,
    /// Whether its header went on.
    pub is_trimmed: bool,
}

impl Dropped {
    /// This packet was dropped now.
    pub const fn new(packet: &Packet, now: Time) -> Self {
        let copy = Copy { segment: packet.seq, sent: packet.sent };
        Self { flow: packet.flow, copy, at: now, is_trimmed: false }
    }

    /// This packet was cut to its header now: that copy of the segment does not arrive.
    pub const fn trimmed(packet: &Packet, now: Time) -> Self {
        Self { is_trimmed: true, ..Self::new(packet, now) }
    }

    /// The flow, where there are so many.
    pub const fn flow_of(&self, flows: usize) -> FlowId {
        FlowId((self.flow.index() % flows) as u32)
    }
}

/// One copy of a segment: no segment is sent twice at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Copy {
    segment: u32,
    sent: Time,
}

/// The drops and retransmissions of all flows that go on. Flows without either take no place.
pub struct Copies {
    /// How many flows there are: subflows are numbered beyond them.
    flows: usize,
    /// By flow, and then by the number of the subflow.
    noted: BTreeMap<(u32, u32), FlowCopies>,
}

#[derive(Default)]
struct FlowCopies {
    dropped: Vec<(Copy, Time)>,
    resent: Vec<(Copy, Resend)>,
}

impl Copies {
    /// Nothing was noted of so many flows.
    pub const fn new(flows: usize) -> Self {
        Self { flows, noted: BTreeMap::new() }
    }

    /// Takes in a drop.
    pub fn note_drop(&mut self, dropped: &Dropped) {
        self.of(dropped.flow).dropped.push((dropped.copy, dropped.at));
    }

    /// Takes in a segment that was sent again.
    pub fn note_resend(&mut self, resent: &RetransmissionCauses) {
        let copy = Copy { segment: resent.segment, sent: resent.sent };
        self.of(resent.flow).resent.push((copy, resent.cause));
    }

    fn of(&mut self, flow: FlowId) -> &mut FlowCopies {
        let (flow, subflow) = (flow.index() % self.flows, flow.index() / self.flows);
        self.noted.entry((flow as u32, subflow as u32)).or_default()
    }

    /// The flows of which something was noted.
    pub fn flows(&self) -> Vec<FlowId> {
        let mut flows: Vec<FlowId> = self.noted.keys().map(|&(flow, _)| FlowId(flow)).collect();
        flows.dedup();
        flows
    }

    /// Forgets the copies of a flow, and says what came of them: data packets dropped until the
    /// flow was over, if it was, and retransmissions by reason. What is still on its way counts as
    /// not dropped. None if nothing was noted.
    pub fn settle(&mut self, flow: FlowId, over: Option<Time>) -> Option<(u32, Retransmissions)> {
        if self.noted.is_empty() {
            return None;
        }
        let mut sum: Option<(u32, Retransmissions)> = None;
        while let Some((&key, _)) = self.noted.range((flow.0, 0)..=(flow.0, u32::MAX)).next() {
            let (dropped, retransmissions) = self.noted.remove(&key).unwrap_or_default().settle(over);
            let (all_dropped, all) = sum.get_or_insert_default();
            *all_dropped += dropped;
            *all += retransmissions;
        }
        sum
    }
}

impl FlowCopies {
    fn settle(mut self, over: Option<Time>) -> (u32, Retransmissions) {
        self.dropped.retain(|&(_, at)| over.is_none_or(|over| at <= over));
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
        self.dropped.partition_point(|&(dropped, _)| dropped < copy)
            - self.dropped.partition_point(|&(dropped, _)| dropped < first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(3);
    const FLOWS: usize = 10;

    fn drop(copies: &mut Copies, flow: FlowId, segment: u32, sent_us: u64) {
        let mut packet = Packet::default();
        (packet.flow, packet.seq, packet.sent) = (flow, segment, at(sent_us));
        copies.note_drop(&Dropped::new(&packet, at(sent_us + 1)));
    }

    fn resend(copies: &mut Copies, flow: FlowId, segment: u32, sent_us: u64, cause: Resend) {
        copies.note_resend(&RetransmissionCauses { flow, segment, sent: at(sent_us), cause });
    }

    fn at(us: u64) -> Time {
        Time::from_ps(us * 1_000_000)
    }

    fn counts(after_loss: u32, after_reordering: u32, after_timeout: u32) -> Retransmissions {
        Retransmissions { after_loss, after_reordering, after_timeout }
    }

    #[test]
    fn a_retransmission_is_needed_only_if_every_earlier_copy_was_dropped() {
        let mut copies = Copies::new(FLOWS);
        // Segment 5: both copies lost, the third is needed; a fourth is not, since the third is not
        // dropped.
        drop(&mut copies, FLOW, 5, 1);
        resend(&mut copies, FLOW, 5, 10, Resend::FastRecovery);
        drop(&mut copies, FLOW, 5, 10);
        resend(&mut copies, FLOW, 5, 20, Resend::Timeout);
        resend(&mut copies, FLOW, 5, 30, Resend::Timeout);
        // Segment 6 was late, not lost. Segment 7 was late, and its copy was dropped: it was not
        // needed all the same.
        resend(&mut copies, FLOW, 6, 11, Resend::FastRecovery);
        resend(&mut copies, FLOW, 7, 12, Resend::FastRecovery);
        drop(&mut copies, FLOW, 7, 12);
        resend(&mut copies, FLOW, 7, 31, Resend::Timeout);
        assert_eq!(copies.settle(FLOW, None), Some((3, counts(2, 2, 2))));
    }

    #[test]
    fn a_copy_that_is_dropped_after_the_next_was_sent_counts_by_when_it_was_sent() {
        let mut copies = Copies::new(FLOWS);
        resend(&mut copies, FLOW, 0, 10, Resend::Timeout);
        drop(&mut copies, FLOW, 0, 1);
        assert_eq!(copies.settle(FLOW, None), Some((1, counts(1, 0, 0))));
    }

    #[test]
    fn flows_are_kept_apart_and_what_is_dropped_after_a_flow_is_no_concern_of_it() {
        let mut copies = Copies::new(FLOWS);
        drop(&mut copies, FLOW, 0, 1);
        resend(&mut copies, FlowId(4), 0, 9, Resend::FastRecovery);
        drop(&mut copies, FlowId(9), 0, 99);
        drop(&mut copies, FlowId(9), 1, 100);
        assert_eq!(copies.flows(), [FLOW, FlowId(4), FlowId(9)]);
        assert_eq!(copies.settle(FLOW, Some(at(2))), Some((1, counts(0, 0, 0))), "at its last instant");
        assert_eq!(copies.settle(FlowId(4), None), Some((0, counts(0, 1, 0))));
        assert_eq!(copies.settle(FlowId(9), Some(at(100))), Some((1, counts(0, 0, 0))));
        assert_eq!((copies.settle(FlowId(9), None), copies.flows()), (None, Vec::new()), "it is forgotten");
    }

    #[test]
    fn the_copies_of_subflows_are_told_apart_and_count_for_their_flow() {
        let mut copies = Copies::new(FLOWS);
        // The same segment of the flow itself and of its first subflow: what one lost, the other
        // did not.
        drop(&mut copies, FLOW, 0, 1);
        resend(&mut copies, FlowId(3 + FLOWS as u32), 0, 9, Resend::FastRecovery);
        assert_eq!(copies.flows(), [FLOW]);
        assert_eq!(copies.settle(FLOW, None), Some((1, counts(0, 1, 0))));
    }
}
