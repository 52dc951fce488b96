//! Active probing: three paths to a rack at a time, and what became of them (MEET §3.3).

use weft_packet::HostId;
use weft_units::{Span, Stream, Time};

use super::knowledge::{is_fresh, least};

/// Probes to a rack in a round (MEET §3.3).
pub const PROBES: usize = 3;

/// One probe.
#[derive(Debug, Clone, Copy, Default)]
struct Probe {
    label: u16,
    /// The congestion value of its round trip, in us^3, once it came back.
    answer: Option<f32>,
}

/// The probes that were sent to a rack at one time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    number: u32,
    at: Time,
    sent: u8,
    probes: [Probe; PROBES],
}

impl Round {
    /// With probes on these paths, of which there are at most three.
    pub fn new(number: u32, at: Time, labels: &Labels) -> Self {
        let mut round = Self { number, at, ..Self::default() };
        for (probe, &label) in round.probes.iter_mut().zip(labels.as_slice()) {
            *probe = Probe { label, answer: None };
            round.sent += 1;
        }
        round
    }

    fn probes(&self) -> &[Probe] {
        &self.probes[..usize::from(self.sent)]
    }

    /// A probe of this round came back.
    fn answer(&mut self, label: u16, congestion: f32) {
        let sent = usize::from(self.sent);
        for probe in self.probes[..sent].iter_mut().filter(|probe| probe.label == label) {
            probe.answer = Some(congestion);
        }
    }

    fn has_answers(&self) -> bool {
        self.probes().iter().any(|probe| probe.answer.is_some())
    }

    /// The answer with the least congestion, of paths that have not failed since; among equals a
    /// random one.
    fn best(&self, random: &mut Stream, failed: impl Fn(u16) -> bool) -> Option<u16> {
        let answers = self.probes().iter().filter_map(|probe| Some((probe.label, probe.answer?)));
        least(random, answers.filter(|&(label, _)| !failed(label)))
    }
}

/// Up to three different labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Labels {
    labels: [u16; PROBES],
    count: usize,
}

impl Labels {
    /// Those chosen so far.
    pub fn as_slice(&self) -> &[u16] {
        &self.labels[..self.count]
    }

    /// One more, if it is new and there is room.
    pub fn add(&mut self, label: Option<u16>) {
        if let Some(label) = label.filter(|label| !self.as_slice().contains(label))
            && let Some(place) = self.labels.get_mut(self.count)
        {
            *place = label;
            self.count += 1;
        }
    }
}

/// A rack that flows of this host go to, or went to.
#[derive(Debug, Clone, Copy)]
pub struct Destination {
    /// Flows of this host to it that are not finished.
    pub live: u32,
    /// The host there that answers probes: where the last flow went.
    pub peer: HostId,
    /// The probes under way, or the last ones.
    current: Round,
    /// The last round before it of which anything came back.
    last: Round,
}

impl Destination {
    /// A rack that nothing was sent to yet.
    pub fn new(peer: HostId) -> Self {
        Self { live: 0, peer, current: Round::default(), last: Round::default() }
    }

    /// The round of this number begins.
    pub const fn begin(&mut self, round: Round) {
        self.current = round;
    }

    /// A probe of the round with this number came back.
    pub fn answer(&mut self, number: u32, label: u16, congestion: f32) {
        if self.current.number == number {
            self.current.answer(label, congestion);
        }
    }

    /// Ends the round: the labels whose probes were lost. If nothing at all came back, that says
    /// more about the far host than about three different paths: then none counts as lost, and
    /// `stand_in` is to answer next time.
    pub fn end(&mut self, stand_in: HostId) -> Labels {
        let mut lost = Labels::default();
        let ended = std::mem::take(&mut self.current);
        if ended.has_answers() {
            ended
                .probes()
                .iter()
                .filter(|probe| probe.answer.is_none())
                .for_each(|probe| lost.add(Some(probe.label)));
            self.last = ended;
        } else if ended.sent > 0 {
            self.peer = stand_in;
        }
        lost
    }

    /// The best answer to this round, or to the one before it as long as there is none; not if it
    /// is older than `life`.
    pub fn best(
        &self,
        random: &mut Stream,
        now: Time,
        life: Span,
        failed: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let round = if self.current.has_answers() { &self.current } else { &self.last };
        if is_fresh(round.at, now, life) { round.best(random, failed) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Purpose;

    use super::*;

    const LIFE: Span = Span::from_us(1_000);
    const FAR: HostId = HostId(16);
    const NONE: [u16; 0] = [];

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn labels(labels: &[u16]) -> Labels {
        let mut chosen = Labels::default();
        for &label in labels {
            chosen.add(Some(label));
        }
        chosen
    }

    fn random() -> Stream {
        Stream::new(1, Purpose::HostScheme, 0)
    }

    fn best(rack: &Destination, us: u64) -> Option<u16> {
        rack.best(&mut random(), at(us), LIFE, |_| false)
    }

    #[test]
    fn three_different_labels_and_no_more() {
        assert_eq!(labels(&[4, 4, 2, 4]).as_slice(), [4, 2]);
        assert_eq!(labels(&[4, 3, 2, 1]).as_slice(), [4, 3, 2]);
    }

    #[test]
    fn the_best_answer_counts_until_the_next_round_has_one() {
        let mut rack = Destination::new(FAR);
        assert_eq!(best(&rack, 0), None);
        rack.begin(Round::new(1, at(0), &labels(&[5, 6, 7])));
        assert_eq!(best(&rack, 10), None, "nothing came back yet");
        rack.answer(1, 6, 8.0);
        assert_eq!(best(&rack, 50), Some(6));
        rack.answer(1, 5, 9.0);
        rack.answer(1, 7, 1.0);
        assert_eq!(best(&rack, 60), Some(7));
        assert_eq!(rack.end(FAR).as_slice(), NONE);
        rack.begin(Round::new(2, at(500), &labels(&[1, 2, 3])));
        assert_eq!(best(&rack, 510), Some(7), "of the round before");
        rack.answer(1, 1, 0.0);
        assert_eq!(best(&rack, 520), Some(7), "an answer of another round");
        rack.answer(2, 3, 50.0);
        assert_eq!(best(&rack, 550), Some(3), "newer, though worse");
        assert_eq!((best(&rack, 1_500), best(&rack, 1_501)), (Some(3), None), "and not for ever");
    }

    #[test]
    fn a_path_that_failed_since_is_not_the_best() {
        let mut rack = Destination::new(FAR);
        rack.begin(Round::new(1, at(0), &labels(&[5, 6])));
        rack.answer(1, 5, 0.0);
        rack.answer(1, 6, 9.0);
        assert_eq!(rack.best(&mut random(), at(9), LIFE, |label| label == 5), Some(6));
        assert_eq!(rack.best(&mut random(), at(9), LIFE, |_| true), None);
    }

    #[test]
    fn equally_good_answers_are_all_used() {
        let mut rack = Destination::new(FAR);
        rack.begin(Round::new(1, at(0), &labels(&[5, 6, 7])));
        for (label, congestion) in [(5, 0.0), (6, 0.0), (7, 1.0)] {
            rack.answer(1, label, congestion);
        }
        let mut random = random();
        let used: std::collections::BTreeSet<_> =
            (0..64).filter_map(|_| rack.best(&mut random, at(9), LIFE, |_| false)).collect();
        assert_eq!(used.into_iter().collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn a_probe_that_does_not_come_back_is_lost_unless_none_did() {
        let mut rack = Destination::new(HostId(20));
        rack.begin(Round::new(1, at(0), &labels(&[5, 6, 7])));
        rack.answer(1, 6, 0.0);
        assert_eq!(rack.end(FAR).as_slice(), [5, 7]);
        assert_eq!(rack.peer, HostId(20));
        rack.begin(Round::new(2, at(500), &labels(&[5, 6, 7])));
        assert_eq!(rack.end(FAR).as_slice(), NONE);
        assert_eq!(rack.peer, FAR, "somebody else is asked");
        assert_eq!(best(&rack, 600), Some(6), "the last answers still count");
        rack.peer = HostId(20);
        assert_eq!(rack.end(FAR).as_slice(), NONE, "no round was under way");
        assert_eq!(rack.peer, HostId(20));
    }
}
