//! Ultra Ethernet: trimming, selective acknowledgements, the window.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::uec::{UecConfig, UecProfile};
use weft_transport::{FlowSize, KnownFabric, Protocol, Uec};
use weft_units::{Bytes, Rate, Span, Time};

use crate::world::{Fate, LATENCY, World, passing};

/// Packets of 4,150 bytes, of which 64 are headers; the world's round trip is the base.
fn uec(change: impl FnOnce(&mut UecConfig)) -> Uec {
    let mut config = UecConfig::of(UecProfile::UetHtsim);
    change(&mut config);
    let mut uec = config.build().unwrap();
    let pace = Rate::from_gbps(100).ps_per_byte();
    uec.configure(KnownFabric { base_rtt: LATENCY + LATENCY + PACKET, pace, trims: true });
    uec
}

const PACKET: Span = Span::from_ps(4_150 * 80);

const fn full(count: u32) -> FlowSize {
    FlowSize { segments: count, last_payload: 4_086 }
}

/// Which packets were sent more than once, in that order.
fn again(world: &World<'_, Uec>) -> Vec<u32> {
    let mut seen = BTreeSet::new();
    world.segments().into_iter().filter(|&segment| !seen.insert(segment)).collect()
}

#[test]
fn an_idle_path_is_filled_from_the_first_packet_on() {
    let uec = uec(|_| ());
    let world = World::new(&uec, full(2_000), passing).run(50_000);
    assert_eq!(world.completed, [Time::ZERO + PACKET.saturating_mul(2_000) + LATENCY]);
    assert_eq!(again(&world), Vec::<u32>::new());
}

#[test]
fn four_full_packets_are_16_kib_and_have_one_answer() {
    let uec = uec(|_| ());
    let world = World::new(&uec, full(13), passing).run(1_000);
    let acks: Vec<u32> = world.sent(Kind::Ack).map(|sent| sent.packet.seq).collect();
    // The first packet, then each four, and the last one asks.
    assert_eq!(acks, [1, 5, 9, 13]);
}

#[test]
fn a_marked_packet_is_answered_at_once_and_its_mark_is_echoed() {
    let path = |packet: &Packet, _| {
        if packet.kind == Kind::Data && packet.seq == 2 { Fate::Mark } else { Fate::Pass }
    };
    let uec = uec(|_| ());
    let world = World::new(&uec, full(5), path).run(1_000);
    let answers: Vec<(u32, bool)> = world
        .sent(Kind::Ack)
        .map(|sent| (sent.packet.seq, sent.packet.flags.has(PacketFlags::ECE)))
        .collect();
    assert_eq!(answers, [(1, false), (3, true), (5, false)]);
}

#[test]
fn a_trimmed_packet_is_asked_for_at_once_and_nothing_else_is_sent_again() {
    let path = |packet: &Packet, before| {
        let is_trimmed = packet.kind == Kind::Data && before == 0 && [3, 7].contains(&packet.seq);
        if is_trimmed { Fate::Trim } else { Fate::Pass }
    };
    let uec = uec(|_| ());
    let world = World::new(&uec, full(200), path).run(10_000);
    assert_eq!(again(&world), [3, 7]);
    let nacks: Vec<u32> = world.sent(Kind::Nack).map(|sent| sent.packet.seq).collect();
    assert_eq!(nacks, [3, 7]);
    let resent = world.sent(Kind::Data).filter(|sent| sent.packet.seq == 3).nth(1).unwrap();
    let heard = Time::ZERO + PACKET.saturating_mul(4) + LATENCY + LATENCY;
    assert!(resent.at >= heard && resent.at.since(heard) < PACKET, "at its next turn");
    let stats = (uec.sender_stats(&world.sender), uec.receiver_stats(&world.receiver));
    assert_eq!((stats.0.retransmissions, stats.0.nacks, stats.0.timeouts), (2, 2, 0));
    assert_eq!((stats.1.trimmed, stats.1.nacks_sent, stats.1.segments_received), (2, 2, 200));
}

#[test]
fn what_vanishes_is_sent_again_alone_after_the_timeout() {
    let path = |packet: &Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 5 && before == 0 { Fate::Drop } else { Fate::Pass }
    };
    let uec = uec(|config| config.rto = Some(Span::from_us(80)));
    let world = World::new(&uec, full(100), path).run(10_000);
    assert_eq!(again(&world), [5]);
    let copies: Vec<Time> =
        world.sent(Kind::Data).filter(|sent| sent.packet.seq == 5).map(|sent| sent.at).collect();
    assert_eq!(copies[1], copies[0] + Span::from_us(80));
    assert_eq!(uec.sender_stats(&world.sender).timeouts, 1);
}

#[test]
fn marks_without_delay_leave_the_window_alone_and_delays_with_marks_shrink_it() {
    let uec = uec(|_| ());
    let marked = |late: Span| {
        let mut number = 0u32;
        move |packet: &Packet, _| {
            number += 1;
            match packet.kind {
                Kind::Data if late.is_zero() || number < 3 => Fate::Mark,
                Kind::Data => Fate::LateBy(late),
                _ => Fate::Pass,
            }
        }
    };
    let size = full(3_000);
    let window = |world: &World<'_, Uec>| uec.window(&world.sender).unwrap().cwnd;
    let first = uec.window(&uec.sender(size)).unwrap().cwnd;
    let calm = World::new(&uec, size, marked(Span::ZERO)).run(50_000);
    assert!((window(&calm) - first).abs() < 0.1, "{} of {first}", window(&calm));
    assert_eq!(calm.completed, [Time::ZERO + PACKET.saturating_mul(3_000) + LATENCY]);
}

#[test]
fn what_makes_no_sense_is_refused_by_key() {
    let refused = |change: fn(&mut UecConfig)| {
        let mut config = UecConfig::default();
        change(&mut config);
        config.build().unwrap_err().to_string()
    };
    assert_eq!(refused(|config| config.gamma = 0.0), "gamma is 0; allowed: above 0, at most 1");
    assert_eq!(refused(|config| config.mtu = Bytes::new(40_000)), "mtu is 40KB; allowed: 1B to 32767B");
    assert_eq!(refused(|config| config.rto = Some(Span::ZERO)), "rto is 0ps; allowed: 1us or more");
    assert_eq!(refused(|config| config.max_window = 0.0), "max_window is 0; allowed: above 0, at most 1000");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is trimmed, lost, late or marked: everything comes, each byte counts once, and no
    /// copy is sent without a reason.
    #[test]
    fn everything_comes_whatever_the_path_does(
        fates in prop::collection::vec(0u8..16, 1..600),
        packets in 1u32..250,
        ack_bytes in 1u64..40_000,
    ) {
        let uec = uec(|config| config.ack_bytes = Bytes::new(ack_bytes));
        let (mut number, mut harmed) = (0, 0u32);
        let path = |packet: &Packet, before| {
            number += 1;
            let fate = match fates.get(number).copied().unwrap_or(9) {
                0 if before < 3 => Fate::Drop,
                1 | 2 if before < 3 && packet.kind == Kind::Data => Fate::Trim,
                3 => Fate::LateBy(Span::from_us(7)),
                4 => Fate::LateBy(Span::from_us(150)),
                5 | 6 if packet.kind == Kind::Data => Fate::Mark,
                _ => Fate::Pass,
            };
            harmed += u32::from(matches!(fate, Fate::Drop | Fate::Trim | Fate::LateBy(_)));
            fate
        };
        let world = World::new(&uec, full(packets), path).run(200_000);
        prop_assert!(world.done.is_some());
        prop_assert_eq!(world.completed.len(), 1);
        let stats = uec.receiver_stats(&world.receiver);
        prop_assert_eq!(stats.segments_received - u64::from(stats.duplicates), u64::from(packets));
    }
}
