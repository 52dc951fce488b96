//! ExpressPass.

use std::collections::VecDeque;

use weft_packet::Kind;
use weft_transport::expresspass::{ExpressPassConfig, Receiver};
use weft_transport::{ExpressPass, FlowSize, Protocol, SenderState, SinglePath, TransportSpec};
use weft_units::{Span, Time};

use crate::world::{World, packet};

fn protocol() -> ExpressPass {
    ExpressPassConfig::default().build().unwrap()
}

/// Credits that a receiver sends in 2 ms if the ones that `dropped` names get lost and data answers
/// the others after 20 us.
fn credits_in_2_ms(dropped: impl Fn(u64) -> bool) -> u64 {
    let protocol = protocol();
    let mut world = World::new();
    let mut receiver: Receiver = protocol.receiver(FlowSize::endless(1_460));
    protocol.receiver_receives(&mut receiver, &packet(Kind::CreditRequest, 0, Time::ZERO), &mut world);
    let mut answers: VecDeque<(Time, Time)> = VecDeque::new();
    let (mut credits, mut segment) = (0, 0);
    while world.now < Time::ZERO + Span::from_ms(2) {
        for (_, credit) in world.sent.split_off(0) {
            assert_eq!((credit.kind, credit.wire_bytes, credit.seq), (Kind::Credit, 84, segment));
            assert_eq!(credit.sent, world.now, "its stamp is when it was sent");
            if !dropped(credits) {
                answers.push_back((world.now + Span::from_us(20), credit.sent));
            }
            credits += 1;
        }
        match answers.front() {
            Some(&(at, stamp)) if at <= world.timer => {
                world.now = at;
                answers.pop_front();
                protocol.receiver_receives(&mut receiver, &packet(Kind::Data, segment, stamp), &mut world);
                segment += 1;
            }
            _ => {
                world.now = world.timer;
                protocol.receiver_wakes(&mut receiver, &mut world);
            }
        }
    }
    let sent = protocol.receiver_stats(&receiver).credits_sent;
    assert_eq!(sent, credits + world.sent.len() as u64);
    sent
}

#[test]
fn a_receiver_sees_from_the_numbers_that_data_echoes_which_credits_were_dropped() {
    // One credit in 1,297.6 ns is the highest rate; a flow that loses none goes up to a tenth more.
    let highest = 2e6 / 1_297.6;
    let (all, most, half) = (
        credits_in_2_ms(|_| false),
        credits_in_2_ms(|number| number % 20 == 0),
        credits_in_2_ms(|number| number % 2 == 0),
    );
    assert!(all as f64 > 0.95 * highest && all as f64 <= 1.11 * highest, "{all}");
    // A loss below the target changes nothing but in round trips of few credits; one above it slows
    // the receiver down, to a credit or so each round trip, which are 100.
    assert!(most > all / 2, "{most} of {all}");
    assert!(half < all / 4 && half > 90, "{half} of {all}");
}

#[test]
fn a_sender_sends_one_segment_a_credit_and_stops_behind_the_last() {
    let protocol = protocol();
    let mut world = World::new();
    let mut sender = protocol.sender(FlowSize::of(3 * 1_460 - 60, 1_460));
    protocol.start(&mut sender, &mut world);
    assert_eq!(world.kinds(), [(Kind::CreditRequest, 0)]);
    let credit = |number: u64| packet(Kind::Credit, 0, Time::from_ps(number));
    for number in 0..2 {
        protocol.sender_receives(&mut sender, &credit(number), &mut world);
        assert_eq!(world.sent[0].1.sent, credit(number).sent, "the credit's stamp is echoed");
        assert_eq!(world.sent[0].1.wire_bytes, 1_538);
        assert_eq!(world.kinds(), [(Kind::Data, number as u32)]);
    }
    protocol.sender_receives(&mut sender, &credit(2), &mut world);
    assert_eq!(world.sent[0].1.wire_bytes, 1_478);
    assert_eq!(world.kinds(), [(Kind::Data, 2), (Kind::CreditStop, 0)]);
    // Credits that were on their way are wasted.
    protocol.sender_receives(&mut sender, &credit(3), &mut world);
    assert_eq!((world.kinds(), protocol.sender_stats(&sender).wasted_credits), (vec![], 1));
    let answer = packet(Kind::Ack, 3, Time::ZERO);
    assert_eq!(protocol.sender_receives(&mut sender, &answer, &mut world), SenderState::Done);
    assert_eq!(world.timer, Time::NEVER);
}

#[test]
fn requests_and_stops_that_nobody_answers_are_repeated_and_what_is_missing_is_sent_again() {
    let protocol = protocol();
    let mut world = World::new();
    let mut sender = protocol.sender(FlowSize::of(2 * 1_460, 1_460));
    protocol.start(&mut sender, &mut world);
    for wait_us in [100, 200, 400] {
        assert_eq!(world.timer.since(world.now), Span::from_us(wait_us));
        world.now = world.timer;
        protocol.sender_wakes(&mut sender, &mut world);
    }
    assert_eq!(world.kinds(), [(Kind::CreditRequest, 0); 4]);
    let credit = |seq| packet(Kind::Credit, seq, Time::ZERO);
    for _ in 0..2 {
        protocol.sender_receives(&mut sender, &credit(0), &mut world);
    }
    assert_eq!(world.kinds(), [(Kind::Data, 0), (Kind::Data, 1), (Kind::CreditStop, 0)]);
    assert_eq!(world.timer.since(world.now), Span::from_ms(2));
    world.now = world.timer;
    protocol.sender_wakes(&mut sender, &mut world);
    assert_eq!(world.kinds(), [(Kind::CreditStop, 0)]);
    // The receiver lacks segment 1.
    protocol.sender_receives(&mut sender, &packet(Kind::Ack, 1, Time::ZERO), &mut world);
    assert_eq!(world.kinds(), [(Kind::CreditRequest, 1)]);
    protocol.sender_receives(&mut sender, &credit(1), &mut world);
    assert_eq!(world.kinds(), [(Kind::Data, 1), (Kind::CreditStop, 1)]);
    let stats = protocol.sender_stats(&sender);
    assert_eq!((stats.retransmissions, stats.timeouts, stats.segments_sent), (1, 4, 3));
}

#[test]
fn parameters_that_make_no_sense_are_named_with_what_is_allowed() {
    let cases = [
        ("credit_queue = 0", "credit_queue is 0; allowed: 1 credit or more"),
        ("credit_size = '0B'", "credit_size is 0B; allowed: 1B to 9000B"),
        ("credit_spread = '84B'", "credit_spread is 84B; allowed: 0B to 83B"),
        ("credit_burst = '80B'", "credit_burst is 80B; allowed: 84B to 65535B"),
        ("mss = '0B'", "mss is 0B; allowed: 1B to 32767B"),
        ("initial_rate = 0.0", "initial_rate is 0; allowed: above 0, at most 1"),
        ("w_init = 0.6", "w_init is 0.6; allowed: w_min to w_max, 0.01 to 0.5"),
        ("target_loss = 1.0", "target_loss is 1; allowed: 0 to less than 1"),
        ("jitter = -0.1", "jitter is -0.1; allowed: 0 to less than 1"),
        ("retransmit_timeout = '0s'", "retransmit_timeout is 0ps; allowed: more than 0s"),
    ];
    for (line, expected) in cases {
        let spec: TransportSpec = toml::from_str(&format!("name = 'expresspass'\n{line}")).unwrap();
        assert_eq!(spec.validate().unwrap_err().to_string(), expected);
    }
}
