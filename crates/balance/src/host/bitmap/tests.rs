//! Rules of the bitmap, checked by hand.

use std::collections::BTreeSet;

use super::entropy::tests::ack;
use super::*;
use crate::testing::{FakeHost, packet, with};

struct World {
    scheme: Bitmap,
    host: FakeHost,
    flow: Flow,
    next: u32,
}

impl World {
    fn new(params: &Params) -> Self {
        assert_eq!(params.validate(), Ok(()));
        let (scheme, host) = (Bitmap::new(params, &FakeHost::info(1)), FakeHost::new(4, 1));
        Self { scheme, host, flow: Flow::default(), next: 0 }
    }

    /// Sends the next segment, and says by which entropy.
    fn send(&mut self) -> u16 {
        let seq = self.next;
        self.next += 1;
        self.send_segment(seq, false)
    }

    fn send_segment(&mut self, seq: u32, again: bool) -> u16 {
        let sent = with(packet(1), |sent| {
            sent.seq = seq;
            sent.flags = sent.flags.with_if(PacketFlags::RETRANSMISSION, again);
            self.scheme.on_send(&mut self.host, &mut self.flow, sent);
        });
        EntropyNote::read(&sent).expect("every data packet has an entropy").entropy
    }

    fn hear(&mut self, seq: u32, entropy: u16, fate: EntropyFeedback) {
        self.scheme.on_receive(&mut self.host, &mut self.flow, ack(seq, entropy, fate));
    }

    fn points(&self, entropy: u16) -> u8 {
        self.flow.sender.as_ref().expect("something was sent").points[usize::from(entropy)]
    }

    fn round(&mut self, packets: usize) -> Vec<u16> {
        (0..packets).map(|_| self.send()).collect()
    }
}

#[test]
fn without_points_every_entropy_comes_once_a_round() {
    let mut world = World::new(&Params { entropies: 8, ..Params::default() });
    for _ in 0..5 {
        let round: BTreeSet<_> = world.round(8).into_iter().collect();
        assert_eq!(round.len(), 8);
    }
}

#[test]
fn a_marked_entropy_is_passed_over_once_and_a_trimmed_one_four_times() {
    for (fate, points) in [(EntropyFeedback::Marked, 1), (EntropyFeedback::Trimmed, 4)] {
        let mut world = World::new(&Params { entropies: 8, ..Params::default() });
        world.round(8);
        world.hear(8, 3, fate);
        assert_eq!(world.points(3), points);
        // A round without the entropy has seven packets, and takes a point off; none where it was
        // the last of a round and the first of the next, for one packet takes one point off.
        let without = 7 * usize::from(points);
        let sent = world.round(2 * without + 8);
        assert!(!sent[..without].contains(&3), "{fate:?}: {sent:?}");
        assert!(sent[without..].contains(&3), "{fate:?}: it is tried again: {sent:?}");
    }
}

#[test]
fn points_end_at_the_most_and_a_good_packet_takes_none_off() {
    let mut world = World::new(&Params { entropies: 8, most: 6, ..Params::default() });
    world.send();
    for _ in 0..3 {
        world.hear(0, 5, EntropyFeedback::Trimmed);
    }
    world.hear(0, 5, EntropyFeedback::Good);
    assert_eq!(world.points(5), 6);
}

#[test]
fn a_timeout_counts_against_the_entropy_that_the_segment_had() {
    let mut world = World::new(&Params { entropies: 64, ..Params::default() });
    let entropies = world.round(10);
    world.hear(4, entropies[3], EntropyFeedback::Good);
    world.scheme.timed_out(&mut world.host, &mut world.flow);
    let again = world.send_segment(4, true);
    assert_eq!((world.points(entropies[4]), world.scheme.counts.timeouts), (15, 1));
    assert_ne!(again, entropies[4]);
    // The next timeout of the same segment is the other entropy's.
    world.scheme.timed_out(&mut world.host, &mut world.flow);
    world.send_segment(4, true);
    assert_eq!((world.points(again), world.scheme.counts.timeouts), (15, 2));
    // A negative acknowledgement of a later segment acknowledges nothing.
    let nack = with(ack(9, entropies[9], EntropyFeedback::Trimmed), |nack| nack.kind = Kind::Nack);
    world.scheme.on_receive(&mut world.host, &mut world.flow, nack);
    // A segment that is sent again without a timeout says nothing of its path.
    world.send_segment(5, true);
    assert_eq!((world.points(entropies[5]), world.scheme.counts.timeouts), (0, 2));
}

#[test]
fn if_all_entropies_have_points_packets_still_go() {
    let mut world = World::new(&Params { entropies: 4, ..Params::default() });
    world.send();
    for entropy in 0..4 {
        world.hear(0, entropy, EntropyFeedback::Trimmed);
    }
    // Sixteen points against all of them: a packet takes one off, until one has none.
    let sent = world.round(12);
    assert_eq!(sent.len(), 12);
    let left: u32 = (0..4).map(|entropy| u32::from(world.points(entropy))).sum();
    assert!(left <= 4, "{left} points left");
}

#[test]
fn what_is_acknowledged_is_forgotten() {
    let mut outstanding = Outstanding::default();
    (5..9).for_each(|segment| outstanding.sent(segment, segment as u16));
    outstanding.acknowledged(7);
    assert_eq!(
        [5, 6, 7, 8, 9].map(|segment| outstanding.entropy_of(segment)),
        [None, None, Some(7), Some(8), None]
    );
    outstanding.acknowledged(3);
    outstanding.acknowledged(100);
    assert_eq!(outstanding.entropies.len(), 0);
    outstanding.sent(100, 1);
    assert_eq!(outstanding.entropy_of(100), Some(1));
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |params: Params| params.validate().map_err(|error| error.key);
    assert_eq!(key(Params { entropies: 8_192, ..Params::default() }), Err("entropies"));
    assert_eq!(key(Params { most: 0, ..Params::default() }), Err("most"));
}
