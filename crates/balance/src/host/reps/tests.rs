//! Rules of REPS, checked by hand and for random sequences.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::entropy::tests::ack;
use super::*;
use crate::testing::{FakeHost, packet, with};

struct World {
    scheme: Reps,
    host: FakeHost,
    flow: Flow,
}

impl World {
    fn new(params: &Params) -> Self {
        assert_eq!(params.validate(), Ok(()));
        let (scheme, mut host) = (Reps::new(params, &FakeHost::info(1)), FakeHost::new(4, 1));
        host.now = Time::ZERO + Span::from_us(100);
        Self { scheme, host, flow: Flow::default() }
    }

    fn send(&mut self) -> u16 {
        let sent = with(packet(1), |sent| self.scheme.on_send(&mut self.host, &mut self.flow, sent));
        EntropyNote::read(&sent).expect("every data packet has an entropy").entropy
    }

    fn hear(&mut self, entropy: u16, fate: EntropyFeedback) {
        self.hear_after(entropy, fate, Span::from_us(40));
    }

    fn hear_after(&mut self, entropy: u16, fate: EntropyFeedback, rtt: Span) {
        let sent = Time::from_ps(self.host.now.as_ps() - rtt.as_ps());
        let ack = with(ack(1, entropy, fate), |ack| ack.sent = sent);
        self.scheme.on_receive(&mut self.host, &mut self.flow, ack);
    }

    fn time_out(&mut self) {
        self.scheme.timed_out(&mut self.host, &mut self.flow);
    }

    fn counts(&self) -> [u64; 4] {
        let Counts { recycled, reused, drawn, freezes } = self.scheme.counts;
        [recycled, reused, drawn, freezes]
    }
}

#[test]
fn good_entropies_are_used_again_once_oldest_first_and_others_are_forgotten() {
    let mut world = World::new(&Params::default());
    for entropy in [11, 12, 13] {
        world.hear(entropy, EntropyFeedback::Good);
    }
    world.hear(14, EntropyFeedback::Marked);
    world.hear(15, EntropyFeedback::Trimmed);
    world.hear(16, EntropyFeedback::Good);
    assert_eq!([(); 4].map(|()| world.send()), [11, 12, 13, 16]);
    assert_eq!(world.counts(), [4, 0, 0, 0]);
    world.send();
    assert_eq!(world.counts(), [4, 0, 1, 0], "there is none left: one is drawn");
}

#[test]
fn a_full_buffer_forgets_its_oldest() {
    let mut world = World::new(&Params { buffer: 4, ..Params::default() });
    (1..=6).for_each(|entropy| world.hear(entropy, EntropyFeedback::Good));
    assert_eq!([(); 4].map(|()| world.send()), [3, 4, 5, 6]);
    // Written over while some are fresh: 7 and 8 come behind 6.
    world.hear(7, EntropyFeedback::Good);
    world.hear(8, EntropyFeedback::Good);
    assert_eq!([(); 2].map(|()| world.send()), [7, 8]);
    assert_eq!(world.counts(), [6, 0, 0, 0]);
}

#[test]
fn a_flow_begins_as_oblivious_spraying_does() {
    let mut world = World::new(&Params::default());
    let drawn: BTreeSet<_> = (0..1_000).map(|_| world.send()).collect();
    assert!(drawn.len() > 980, "{} of 1,000 differ", drawn.len());
}

#[test]
fn frozen_it_takes_fresh_ones_first_and_then_used_ones_in_turn() {
    let mut world = World::new(&Params { buffer: 4, ..Params::default() });
    (1..=3).for_each(|entropy| world.hear(entropy, EntropyFeedback::Good));
    assert_eq!(world.send(), 1);
    world.time_out();
    assert_eq!([(); 2].map(|()| world.send()), [2, 3]);
    assert_eq!([(); 5].map(|()| world.send()), [1, 2, 3, 1, 2]);
    world.hear(9, EntropyFeedback::Good);
    assert_eq!(world.send(), 9, "a fresh one goes first");
    assert_eq!([(); 2].map(|()| world.send()), [3, 9]);
    assert_eq!(world.counts(), [4, 7, 0, 1]);
}

#[test]
fn a_freeze_ends_with_its_time_and_some_packets_explore() {
    let params = Params { explore: 4, explore_every: 2, ..Params::default() };
    let mut world = World::new(&params);
    world.time_out();
    world.host.now += params.freeze_for;
    (1..=4).for_each(|entropy| world.hear(entropy, EntropyFeedback::Good));
    assert_eq!(world.send(), 1, "at its very end it is frozen still");
    world.host.now += Span::from_ps(1);
    // Of four packets the second and the last explore.
    assert_eq!(world.send(), 2);
    world.send();
    assert_eq!(world.counts(), [2, 0, 1, 1]);
    world.time_out();
    assert_eq!(world.counts()[3], 1, "while it explores, a timeout freezes nothing");
    assert_eq!(world.send(), 3);
    world.send();
    assert_eq!(world.counts(), [3, 0, 2, 1]);
    world.time_out();
    assert_eq!(world.counts()[3], 2);
    world.time_out();
    assert_eq!(world.counts()[3], 2, "it is frozen");
}

#[test]
fn only_a_quiet_timeout_is_a_failure_if_that_is_asked() {
    let params = Params { freeze: Freeze::QuietTimeouts, ..Params::default() };
    let freezes = |rtt_us, later_us| {
        let mut world = World::new(&params);
        world.host.now += Span::from_ms(5);
        world.send();
        world.hear_after(1, EntropyFeedback::Marked, Span::from_us(rtt_us));
        world.host.now += Span::from_us(later_us);
        world.time_out();
        world.counts()[3]
    };
    // 40 us when idle, and twice that is short.
    assert_eq!([freezes(40, 900), freezes(80, 900), freezes(81, 900)], [1, 1, 0]);
    assert_eq!(freezes(500, 2_100), 1, "that was long ago");
    let mut never = World::new(&Params { freeze: Freeze::Never, ..Params::default() });
    never.time_out();
    assert_eq!(never.counts()[3], 0);
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |params: Params| params.validate().map_err(|error| error.key);
    assert_eq!(key(Params { buffer: 0, ..Params::default() }), Err("buffer"));
    assert_eq!(key(Params { buffer: 9, ..Params::default() }), Err("buffer"));
    assert_eq!(key(Params { quiet: 0.5, ..Params::default() }), Err("quiet"));
    assert_eq!(key(Params { look_back: Span::ZERO, ..Params::default() }), Err("look_back"));
    assert_eq!(key(Params { explore_every: 0, ..Params::default() }), Err("explore_every"));
    assert_eq!(key(Params { entropies: 3, ..Params::default() }), Err("entropies"));
}

/// Next event of a flow.
#[derive(Debug, Clone)]
enum Step {
    Send,
    Hear(u16, EntropyFeedback),
    TimeOut,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![3 => Just(EntropyFeedback::Good), 1 => Just(EntropyFeedback::Marked), 1 => Just(EntropyFeedback::Trimmed)];
    prop_oneof![
        6 => Just(Step::Send),
        4 => (0u16..50, fate).prop_map(|(entropy, fate)| Step::Hear(entropy, fate)),
        1 => Just(Step::TimeOut),
        1 => (0u64..4_000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// §3.2: no entropy is drawn that could lead to the failure. What is sent while the flow is
    /// frozen came back good before, as long as anything did.
    #[test]
    fn while_it_is_frozen_only_proven_entropies_are_used(
        steps in proptest::collection::vec(step(), 1..300),
        buffer in 1u8..9,
    ) {
        let mut world = World::new(&Params { buffer, ..Params::default() });
        let mut proven = BTreeSet::new();
        for step in steps {
            match step {
                Step::Send => {
                    let drawn = world.scheme.counts.drawn;
                    let entropy = world.send();
                    if world.flow.is_frozen() && !proven.is_empty() {
                        prop_assert!(proven.contains(&entropy), "{entropy} is not of {proven:?}");
                        prop_assert_eq!(world.scheme.counts.drawn, drawn);
                    }
                }
                Step::Hear(entropy, fate) => {
                    world.hear(entropy, fate);
                    if fate == EntropyFeedback::Good {
                        proven.insert(entropy);
                    }
                }
                Step::TimeOut => world.time_out(),
                Step::Wait(us) => world.host.now += Span::from_us(us),
            }
        }
    }

    /// The ring against a queue of what was kept and not used: at most so many, the oldest lost.
    #[test]
    fn a_ring_is_a_queue_that_forgets_its_oldest(
        steps in proptest::collection::vec(prop_oneof![Just(None), (0u16..100).prop_map(Some)], 1..200),
        size in 1u8..9,
    ) {
        let (mut ring, mut queue) = (Ring::default(), std::collections::VecDeque::new());
        for step in steps {
            let Some(entropy) = step else {
                prop_assert_eq!(ring.take(size), queue.pop_front());
                continue;
            };
            ring.keep(entropy, size);
            queue.push_back(entropy);
            if queue.len() > usize::from(size) {
                queue.pop_front();
            }
        }
    }
}
