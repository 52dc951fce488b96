//! Packets that a sender has yet to send or to send again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet};

use crate::tcp::segments::SegmentSet;
use crate::{FlowSize, Written};

/// News in an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// Packets that have come and were not known to.
    pub newly: u32,
    /// Whether the first packet that is missing is another one than before.
    pub has_advanced: bool,
    /// Whether this answer began a recovery.
    pub begins_recovery: bool,
}

/// Packets that a recovery sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resends {
    /// Packets that are missing while a later one has come, each once.
    #[default]
    Missing,
    /// Everything from the first packet that is missing on but what is known to have come, once a
    /// recovery, which ends when the receiver holds nothing.
    Onwards,
}

/// The packets of a flow at its sender.
#[derive(Debug, Clone)]
pub(crate) struct Outgo {
    pub size: FlowSize,
    resends: Resends,
    /// The packets below are written.
    available: u32,
    /// The next packet that was never sent.
    pub next: u32,
    /// The receiver has everything below.
    pub acked: u32,
    /// Packets beyond that have come; exists for flows that saw a hole.
    arrived: Option<Box<SegmentSet>>,
    /// In a recovery, the first packet that was not sent when it began; else 0.
    recovers_until: u32,
    /// The packets below were sent again, as far as they had to be. With [`Resends::Onwards`] the
    /// packet to send next, new or not, unless that is known to have come.
    resend_from: u32,
    /// The first packet that is missing is to be sent again, though nothing is known of later ones.
    must_resend: bool,
    /// Whether what is sent again is sent so because of a timeout.
    pub has_timed_out: bool,
    pub retransmissions: u32,
    recoveries: u32,
}

impl Outgo {
    /// A flow of this size of which nothing was sent.
    pub const fn new(size: FlowSize) -> Self {
        Self {
            size,
            resends: Resends::Missing,
            available: size.segments,
            next: 0,
            acked: 0,
            arrived: None,
            recovers_until: 0,
            resend_from: 0,
            must_resend: false,
            has_timed_out: false,
            retransmissions: 0,
            recoveries: 0,
        }
    }

    /// Sets the packets that are sent again.
    pub fn with(mut self, resends: Resends) -> Self {
        self.resends = resends;
        self
    }

    /// So much of the flow is written.
    pub const fn limit(&mut self, written: Written) {
        self.available = if written.is_all { self.size.segments } else { written.segments };
    }

    /// Whether everything has come.
    pub const fn is_done(&self) -> bool {
        self.acked == self.size.segments
    }

    /// Whether there is a packet that was never sent.
    #[inline]
    pub const fn has_new(&self) -> bool {
        self.next < self.available
    }

    /// How many packets were sent and are not acknowledged cumulatively.
    #[inline]
    pub const fn span(&self) -> u32 {
        self.next - self.acked
    }

    /// How many packets were sent and are not known to have come.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.span() - self.arrived.as_ref().map_or(0, |arrived| arrived.len())
    }

    /// Times that a recovery began.
    pub const fn recoveries(&self) -> u32 {
        self.recoveries
    }

    /// The packet that is to be sent again next, if any is.
    #[inline]
    pub fn resend(&self) -> Option<u32> {
        if self.recovers_until == 0 && self.resends == Resends::Missing { None } else { self.find_resend() }
    }

    #[inline(never)]
    fn find_resend(&self) -> Option<u32> {
        if self.resends == Resends::Onwards {
            let from = self.resend_from.max(self.acked);
            let first = self.arrived.as_ref().map_or(from, |arrived| arrived.next_absent(from));
            return (first < self.next).then_some(first);
        }
        if self.must_resend && self.acked < self.next {
            return Some(self.acked);
        }
        let arrived = self.arrived.as_ref()?;
        // It is lost if a later one has come (IRN §3.1).
        let first = arrived.next_absent(self.resend_from.max(self.acked));
        (first < arrived.end()).then_some(first)
    }

    /// The next packet is sent that never was: [`Self::resend`] had named none.
    #[inline]
    pub fn sent_new(&mut self) {
        self.next += 1;
        if self.resends == Resends::Onwards {
            self.resend_from = self.next;
        }
    }

    /// A packet is sent again: [`Self::resend`] had named it.
    pub fn resent(&mut self, segment: u32) {
        self.must_resend &= segment != self.acked;
        self.resend_from = segment + 1;
        self.retransmissions += 1;
    }

    /// Takes an answer: what is in order, and, of a negative one, which packet came behind a hole.
    #[inline]
    pub fn take(&mut self, answer: &Packet) -> Progress {
        let mut progress = Progress::default();
        let known = self.arrived.as_ref().map_or(0, |arrived| arrived.len());
        if answer.seq > self.acked && answer.seq <= self.next {
            progress.has_advanced = true;
            progress.newly = answer.seq - self.acked;
            self.acked = answer.seq;
            self.must_resend = false;
            if self.arrived.is_some() {
                progress.newly -= self.advance(known);
            }
            if self.acked >= self.recovers_until {
                self.recovers_until = 0;
            }
        }
        if answer.kind == Kind::Nack {
            self.take_early(answer, &mut progress);
        }
        if self.resends == Resends::Onwards {
            self.rewind(answer.kind, &mut progress);
        }
        progress
    }

    /// The first complaint since the receiver last held nothing, or since everything was
    /// acknowledged that had been sent by then, has the sender go back.
    fn rewind(&mut self, kind: Kind, progress: &mut Progress) {
        if kind == Kind::Ack {
            self.recovers_until = 0;
        } else if self.recovers_until == 0 {
            self.recovers_until = self.resend_from.max(self.acked);
            self.resend_from = self.acked;
            self.has_timed_out = false;
            self.recoveries += 1;
            progress.begins_recovery = true;
        }
    }

    /// Forgets the packets that are in order, and returns how many of them were known to have come.
    #[cold]
    fn advance(&mut self, known: u32) -> u32 {
        let Some(arrived) = &mut self.arrived else { return 0 };
        arrived.advance(self.acked);
        known - arrived.len()
    }

    #[cold]
    fn take_early(&mut self, answer: &Packet, progress: &mut Progress) {
        let Some(block) = answer.sack_blocks().into_iter().find(|block| block.count > 0) else { return };
        let early = answer.seq.saturating_add(u32::from(block.first));
        if early < self.acked || early >= self.next {
            return;
        }
        let acked = self.acked;
        let arrived = self.arrived.get_or_insert_with(|| Box::new(SegmentSet::new(acked)));
        arrived.advance(acked);
        progress.newly += u32::from(arrived.insert(early));
        if self.recovers_until == 0 && early > acked && self.resends == Resends::Missing {
            self.recovers_until = self.next;
            self.resend_from = self.resend_from.max(acked);
            self.has_timed_out = false;
            self.recoveries += 1;
            progress.begins_recovery = true;
        }
    }

    /// No answer came in time: what is missing is sent again, the first packet in any case.
    #[cold]
    pub fn time_out(&mut self) {
        self.recovers_until = self.next;
        (self.resend_from, self.must_resend) = (self.acked, true);
        self.has_timed_out = true;
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::SackBlock;

    use super::*;

    /// A flow of ten packets, all sent.
    fn sent() -> Outgo {
        Outgo { next: 10, ..Outgo::new(FlowSize { segments: 10, last_payload: 1 }) }
    }

    fn nack(expected: u32, early: u32) -> Packet {
        let mut packet = Packet::default();
        (packet.kind, packet.seq) = (Kind::Nack, expected);
        let mut blocks = [SackBlock::default(); Packet::SACK_BLOCKS];
        blocks[0] = SackBlock { first: (early - expected) as u16, count: 1 };
        packet.set_sack_blocks(blocks);
        packet
    }

    fn ack(expected: u32) -> Packet {
        let mut packet = Packet::default();
        (packet.kind, packet.seq) = (Kind::Ack, expected);
        packet
    }

    #[test]
    fn each_hole_before_a_packet_that_came_is_sent_again_once() {
        let mut outgo = sent();
        assert_eq!(outgo.take(&ack(2)), Progress { newly: 2, has_advanced: true, begins_recovery: false });
        assert_eq!(outgo.resend(), None);
        let progress = outgo.take(&nack(2, 4));
        assert_eq!((progress.newly, progress.begins_recovery, outgo.in_flight()), (1, true, 7));
        assert_eq!(outgo.resend(), Some(2));
        outgo.resent(2);
        assert_eq!(outgo.resend(), Some(3));
        outgo.resent(3);
        assert_eq!(outgo.resend(), None, "of what lies beyond nothing is known");
        assert!(!outgo.take(&nack(2, 6)).begins_recovery, "it goes on");
        assert_eq!(outgo.resend(), Some(5));
        outgo.resent(5);
        assert_eq!(outgo.resend(), None);
        // 2 came: 2 to 4 are in order now, 4 was known.
        let progress = outgo.take(&ack(3));
        assert_eq!((progress.newly, outgo.resend()), (1, None));
        assert_eq!(outgo.take(&ack(5)).newly, 1, "3, for 4 was known");
        assert_eq!(outgo.take(&ack(10)).newly, 4, "5, 7, 8, 9: 6 was known");
        assert!(outgo.is_done());
        assert_eq!((outgo.retransmissions, outgo.recoveries()), (3, 1));
    }

    #[test]
    fn onwards_everything_is_sent_again_but_what_is_known_to_have_come() {
        let mut outgo = Outgo::new(FlowSize { segments: 12, last_payload: 1 }).with(Resends::Onwards);
        for _ in 0..10 {
            assert_eq!(outgo.resend(), None);
            outgo.sent_new();
        }
        assert!(!outgo.take(&ack(2)).begins_recovery);
        assert_eq!(outgo.resend(), None);
        assert!(outgo.take(&nack(2, 4)).begins_recovery);
        let again = |outgo: &mut Outgo, most: usize| -> Vec<u32> {
            (0..most).map_while(|_| outgo.resend().inspect(|&segment| outgo.resent(segment))).collect()
        };
        assert_eq!(again(&mut outgo, 3), [2, 3, 5], "nothing says that 5 is missing");
        // 2 was late, and there is still a hole: the receiver complains, and the sender goes on.
        let mut still = nack(3, 3);
        still.set_sack_blocks([SackBlock::default(); Packet::SACK_BLOCKS]);
        assert!(!outgo.take(&still).begins_recovery);
        assert_eq!(again(&mut outgo, 1), [6]);
        // 3 was late, too: no hole any more, and what was begun goes on from where the receiver is.
        outgo.take(&ack(8));
        assert_eq!(again(&mut outgo, 1), [8]);
        // So the next complaint has the sender go back once more.
        assert!(outgo.take(&nack(8, 9)).begins_recovery);
        assert_eq!(again(&mut outgo, 9), [8], "9 has come");
        outgo.sent_new();
        assert_eq!((outgo.next, outgo.resend()), (11, None));
        outgo.time_out();
        assert_eq!(again(&mut outgo, 9), [8, 10]);
        outgo.take(&ack(11));
        outgo.sent_new();
        outgo.take(&ack(12));
        assert!(outgo.is_done());
        assert_eq!((outgo.retransmissions, outgo.recoveries()), (8, 2));
    }

    #[test]
    fn a_timeout_sends_the_first_again_and_the_holes_once_more() {
        let mut outgo = sent();
        outgo.take(&nack(0, 2));
        outgo.resent(0);
        outgo.resent(1);
        outgo.time_out();
        assert_eq!(outgo.resend(), Some(0));
        outgo.resent(0);
        assert_eq!(outgo.resend(), Some(1));
        outgo.resent(1);
        assert_eq!(outgo.resend(), None);
        let mut silent = sent();
        silent.time_out();
        assert_eq!(silent.resend(), Some(0));
        silent.resent(0);
        assert_eq!(silent.resend(), None, "one packet probes");
        assert!(!silent.take(&ack(10)).begins_recovery && silent.is_done());
    }

    #[test]
    fn answers_of_what_was_never_sent_are_ignored() {
        let mut outgo = Outgo { next: 3, ..sent() };
        assert_eq!(outgo.take(&ack(7)), Progress::default());
        assert_eq!(outgo.take(&nack(0, 7)), Progress::default());
        assert_eq!(outgo.resend(), None);
    }
}
