//! The books of a memory, by hand and for whatever comes and goes.

use proptest::prelude::*;
use weft_topology::{Limit, Marking, QueueSpec};
use weft_units::{Bytes, Span};

use super::*;

fn class(lossless: bool) -> ClassSpec {
    let queue = QueueSpec { limit: Limit::Unlimited, marking: Marking::Never };
    ClassSpec { lossless, ..ClassSpec::plain(queue, 1) }
}

fn rules(bytes: u64, xoff: Option<Xoff>) -> SharedBufferRules {
    let pause = xoff.map(|xoff| PauseRules {
        xoff,
        hysteresis: 2_000,
        response: None,
        headroom: None,
        look_every: Span::from_ms(1),
    });
    SharedBufferRules { bytes, alpha: 1.0, reserve: 0, pause }
}

const fn at(came_by: u16, port: u16, class: u8) -> BufferAccount {
    BufferAccount { came_by, port, class, held_in: None }
}

#[test]
fn one_queue_holds_half_and_two_a_third_each_with_an_alpha_of_one() {
    // Choudhury and Hahne, eq. 3: each of n queues gets alpha B / (1 + alpha n).
    let mut memory = SharedBuffer::new(&rules(90_000, None), &[class(false)], &[0; 4]);
    let mut fill = |port: u16| -> u64 {
        (0..1_000).take_while(|_| memory.admit(at(3, port, 0), 100) == Admitted::Taken).count() as u64 * 100
    };
    assert_eq!(fill(0), 45_000);
    assert_eq!(fill(1), 22_500, "half of what is left");
    for _ in 0..150 {
        assert!(!memory.release(at(3, 0, 0), 100));
    }
    while memory.admit(at(3, 1, 0), 100) == Admitted::Taken {}
    assert_eq!([memory.egress[0], memory.egress[1]], [30_000, 30_000]);
    assert_eq!(memory.free(), 30_000);
}

#[test]
fn a_reserve_is_there_when_nothing_else_is() {
    let with_reserve = ClassSpec { reserve: Some(Bytes::new(1_000)), ..class(false) };
    let mut memory = SharedBuffer::new(&rules(10_000, None), &[class(false), with_reserve], &[0; 2]);
    assert_eq!(memory.shared, 8_000);
    let greedy = ClassSpec { alpha: Some(1_000.0), ..class(false) };
    let mut greedy = SharedBuffer::new(&rules(10_000, None), &[greedy, with_reserve], &[0; 2]);
    while greedy.admit(at(0, 0, 0), 100) == Admitted::Taken {}
    assert!(greedy.free() < 100);
    assert_eq!(greedy.admit(at(0, 1, 1), 1_000), Admitted::Taken);
    assert_eq!(greedy.admit(at(0, 1, 1), 100), Admitted::NoRoom);
    assert_eq!(memory.admit(at(0, 1, 1), 1_000), Admitted::Taken);
    assert_eq!(memory.free(), 8_000, "a reserve is not of the shared part");
}

#[test]
fn a_lossless_class_pauses_at_xoff_fills_its_headroom_and_goes_on_below() {
    let mut memory =
        SharedBuffer::new(&rules(100_000, Some(Xoff::Bytes(10_000))), &[class(true)], &[5_000; 3]);
    for _ in 0..10 {
        assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::Taken);
    }
    assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::TakenAndPaused);
    assert_eq!(memory.paused().collect::<Vec<_>>(), [(0, 0)]);
    assert_eq!([memory.blamed(0, 0), memory.blamed(1, 0)], [Some(2), None]);
    for _ in 0..4 {
        assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::Taken);
    }
    assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::NoHeadroom);
    assert_eq!(memory.admit(at(1, 2, 0), 1_000), Admitted::Taken, "another port is another account");
    // Five of headroom, and two of hysteresis.
    let released: Vec<bool> = (0..7).map(|_| memory.release(at(0, 2, 0), 1_000)).collect();
    assert_eq!(released, [false, false, false, false, false, false, true]);
    assert_eq!(memory.paused().count(), 0);
    assert_eq!(memory.held, 9_000);
}

#[test]
fn packets_of_the_switch_itself_are_taken_in_a_lossless_class_however_full_it_is() {
    let mut memory = SharedBuffer::new(
        &rules(20_000, Some(Xoff::Bytes(50_000))),
        &[class(true), class(false)],
        &[4_000; 2],
    );
    while memory.admit(at(0, 1, 0), 1_000) == Admitted::Taken && memory.free() > 0 {}
    assert_eq!(memory.free(), 0);
    assert_eq!(memory.admit(at(OWN, 1, 1), 100), Admitted::NoRoom);
    assert_eq!(memory.admit(at(OWN, 1, 0), 100), Admitted::Taken);
    assert_eq!(memory.admit(at(0, 1, 0), 1_000), Admitted::TakenAndPaused, "headroom is there all the same");
    assert!(!memory.release(at(OWN, 1, 0), 100));
    assert_eq!((memory.free(), memory.used), (0, memory.shared));
}

#[test]
fn what_never_leaves_keeps_a_port_paused_and_what_may_leave_does_not() {
    let mut memory =
        SharedBuffer::new(&rules(100_000, Some(Xoff::Bytes(4_000))), &[class(true)], &[5_000; 3]);
    for port in [1, 1, 1, 2, 2] {
        memory.admit(at(0, port, 0), 1_000);
    }
    let stuck = |ports: &[u16]| memory.stuck(0, 0, |port| ports.contains(&port));
    assert_eq!([stuck(&[1]), stuck(&[2]), stuck(&[1, 2])], [3_000, 2_000, 5_000]);
    assert!(memory.stays_paused(0, 0, stuck(&[1]), 3_000), "three are more than XON");
    assert!(!memory.stays_paused(0, 0, stuck(&[2]), 2_000));
    assert!(!memory.stays_paused(0, 0, 0, 0));
}

const fn in_queue(queue: u32, at: BufferAccount) -> BufferAccount {
    BufferAccount { held_in: Some(queue), ..at }
}

#[test]
fn a_queue_of_the_scheme_is_one_more_queue_without_a_reserve_and_what_moves_is_not_asked_again() {
    let with_reserve = ClassSpec { reserve: Some(Bytes::new(1_000)), ..class(false) };
    let mut memory = SharedBuffer::new(&rules(93_000, None), &[with_reserve], &[0; 3]);
    assert_eq!(memory.free(), 90_000);
    let (held, other, port) = (in_queue(4, at(0, 2, 0)), in_queue(0, at(1, 2, 0)), at(0, 2, 0));
    let fill = |memory: &mut SharedBuffer, at: BufferAccount| {
        (0..1_000).take_while(|_| memory.admit(at, 100) == Admitted::Taken).count() as u64 * 100
    };
    assert_eq!(fill(&mut memory, held), 45_000, "half of what is there, with an alpha of one");
    assert_eq!(fill(&mut memory, other), 22_500, "half of what is left");
    assert_eq!(fill(&mut memory, port), 1_000 + 11_300, "the reserve, and half of what is left then");
    assert_eq!(memory.held, 45_000 + 22_500 + 12_300);
    // The port's queue is as long as it may be: what was held moves there all the same, and nothing
    // else does.
    for _ in 0..450 {
        memory.moves(held, port, 100);
    }
    assert_eq!(memory.admit(port, 100), Admitted::NoRoom);
    assert_eq!([memory.queued(held), memory.queued(port), memory.held], [0, 57_300, 79_800]);
    assert_eq!(memory.used, 79_800 - 1_000);
    for (place, bytes) in [(port, 57_300), (other, 22_500)] {
        (0..bytes / 100).for_each(|_| assert!(!memory.release(place, 100)));
    }
    assert_eq!([memory.held, memory.used], [0, 0]);
}

#[test]
fn what_is_held_back_pauses_the_port_by_which_it_came_until_it_has_left_the_switch() {
    let mut memory =
        SharedBuffer::new(&rules(100_000, Some(Xoff::Bytes(4_000))), &[class(true)], &[5_000; 3]);
    let open = in_queue(0, at(0, OPEN, 0));
    for _ in 0..4 {
        assert_eq!(memory.admit(open, 1_000), Admitted::Taken);
    }
    assert_eq!(memory.blamed(0, 0), None, "nobody knows yet where it will go");
    assert_eq!(memory.admit(in_queue(0, at(0, 2, 0)), 1_000), Admitted::TakenAndPaused);
    assert_eq!(memory.blamed(0, 0), Some(2));
    assert_eq!(memory.stuck(0, 0, |_| true), 1_000, "what may still go anywhere is not stuck");
    for _ in 0..4 {
        memory.moves(open, at(0, 1, 0), 1_000);
    }
    assert_eq!((memory.blamed(0, 0), memory.paused().count(), memory.held), (Some(1), 1, 5_000));
    // One of headroom, and two of hysteresis.
    let released: Vec<bool> = (0..4).map(|_| memory.release(at(0, 1, 0), 1_000)).collect();
    assert_eq!(released, [false, false, true, false]);
    assert!(!memory.release(in_queue(0, at(0, 2, 0)), 1_000));
    assert_eq!([memory.held, memory.used], [0, 0]);
}

proptest! {
    #[test]
    fn books_are_even_whatever_comes_and_goes(
        steps in proptest::collection::vec((0u16..4, 0u16..4, 0u8..3, 64u64..4_200, 0u8..4), 1..400),
        share in 0.05f64..4.0,
        reserve in 0u64..3_000,
    ) {
        let classes = [class(true), class(false), ClassSpec { reserve: Some(Bytes::new(reserve)), ..class(true) }];
        let mut memory = SharedBuffer::new(&rules(120_000, Some(Xoff::Share(share))), &classes, &[6_000; 4]);
        let mut waiting: Vec<(BufferAccount, u64)> = Vec::new();
        let (mut paused, mut told) = (std::collections::BTreeSet::new(), 0u64);
        for (came_by, port, class, bytes, does) in steps {
            if does == 0 && !waiting.is_empty() {
                let (place, bytes) = waiting.remove(0);
                if memory.release(place, bytes) {
                    prop_assert!(paused.remove(&(place.came_by, place.class)), "only who is paused goes on");
                }
            } else if let Some((place, bytes)) =
                waiting.iter_mut().find(|(place, _)| does == 1 && place.held_in.is_some())
            {
                let goes_to = BufferAccount { held_in: None, port, ..*place };
                memory.moves(*place, goes_to, *bytes);
                *place = goes_to;
            } else {
                let held_in = (does == 2).then_some(u32::from(port));
                let way = if held_in.is_some() && class == 0 { OPEN } else { port };
                let place = BufferAccount { held_in, ..at(came_by, way, class) };
                let admitted = memory.admit(place, bytes);
                if admitted == Admitted::TakenAndPaused {
                    told += 1;
                    prop_assert!(paused.insert((came_by, class)), "nobody is told twice");
                }
                if matches!(admitted, Admitted::Taken | Admitted::TakenAndPaused) {
                    waiting.push((place, bytes));
                }
            }
            prop_assert!(memory.used <= memory.shared);
            prop_assert_eq!(memory.held, waiting.iter().map(|(_, bytes)| bytes).sum::<u64>());
            let queued: u64 = memory.egress.iter().sum();
            prop_assert_eq!(queued + memory.held_back.iter().sum::<u64>(), memory.held);
            prop_assert_eq!(memory.paused().collect::<std::collections::BTreeSet<_>>(), paused.clone());
        }
        for (place, bytes) in waiting {
            if memory.release(place, bytes) {
                paused.remove(&(place.came_by, place.class));
            }
        }
        prop_assert_eq!((memory.held, memory.used), (0, 0));
        prop_assert!(paused.is_empty(), "an empty memory pauses nobody: {told}");
        prop_assert!(memory.crossing.iter().all(|bytes| *bytes == 0));
    }
}
