//! Acknowledgements that a receiver leaves out while it tells of holes. A packet takes 20 us each
//! way, and each segment arrives 1 us after the one before.

use weft_packet::{Kind, Packet};
use weft_transport::Tcp;
use weft_transport::tcp::TcpConfig;
use weft_units::{Span, Time};

use crate::world::{DROP, Fate, LATENCY, PASS, World, at_us, dctcp, reno, segments};

const SLACK: Span = Span::from_ns(10_500);

/// A window of so many segments, sent at once. Receivers leave out so many acknowledgements, and
/// are later than need be by [`SLACK`].
fn compressing(window: u32, most: u16, change: impl FnOnce(&mut TcpConfig)) -> Tcp {
    reno(|config| {
        (config.sack, config.rack, config.initial_window) = (true, true, window);
        (config.compressed_acks, config.compression_slack) = (most, SLACK);
        change(config);
    })
}

/// Segments arrive one after the other, but for these, the first time.
fn one_by_one(lost: &[u32]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| match packet.kind {
        Kind::Data if before == 0 && lost.contains(&packet.seq) => DROP,
        Kind::Data if before == 0 => Fate { late_by: Span::from_us(packet.seq.into()), ..PASS },
        _ => PASS,
    }
}

/// When acknowledgements were sent before this time, in us since the first segment could arrive,
/// and how many segments they tell of beyond the hole.
fn told(world: &World<'_>, begin: Time, before_us: f64) -> Vec<(f64, u32)> {
    let acks = world.sent(Kind::Ack).map(|ack| {
        let blocks = ack.packet.sack_blocks();
        let since = (ack.at.as_ps() - (begin + LATENCY).as_ps()) as f64 / 1e6;
        (since, blocks.iter().map(|block| u32::from(block.count)).sum())
    });
    acks.filter(|told| told.0 < before_us).collect()
}

#[test]
fn three_are_sent_and_then_one_for_all_that_come_until_its_time() {
    // The fourth segment beyond the hole comes at 4 us. The first answers the handshake after 41
    // us, and a twentieth of that is 2.05 us; then there is the slack.
    let tcp = compressing(40, 44, |config| config.handshake = true);
    let world = World::new(&tcp, segments(40), one_by_one(&[0])).run(1_000);
    let expected = [(1.0, 1), (2.0, 2), (3.0, 3), (16.55, 16), (29.55, 29)];
    assert_eq!(told(&world, at_us(40), 40.0), expected);
    // Without a handshake the slack is all.
    let tcp = compressing(40, 44, |_| {});
    let world = World::new(&tcp, segments(40), one_by_one(&[0])).run(1_000);
    assert_eq!(told(&world, Time::ZERO, 20.0), [(1.0, 1), (2.0, 2), (3.0, 3), (14.5, 14)]);
    // A longer round trip counts up to a limit.
    let limited =
        |config: &mut TcpConfig| (config.handshake, config.compression_delay) = (true, Span::from_us(1));
    let tcp = compressing(40, 44, limited);
    let world = World::new(&tcp, segments(40), one_by_one(&[0])).run(1_000);
    assert_eq!(told(&world, at_us(40), 20.0), [(1.0, 1), (2.0, 2), (3.0, 3), (15.5, 15)]);
}

#[test]
fn no_more_are_left_out_than_may_be() {
    let tcp = compressing(40, 2, |_| {});
    let world = World::new(&tcp, segments(40), one_by_one(&[0])).run(1_000);
    let expected = [(1.0, 1), (2.0, 2), (3.0, 3), (6.0, 6), (9.0, 9), (12.0, 12)];
    assert_eq!(told(&world, Time::ZERO, 13.0), expected);
}

#[test]
fn what_was_left_out_is_told_before_there_is_a_third_block() {
    // 1, 3, 5 are told of at once. 7 is left out, and told as 9 comes; then 9 as 11 comes, and 12,
    // which joins it, later.
    let tcp = compressing(40, 44, |_| {});
    let world = World::new(&tcp, segments(13), one_by_one(&[0, 2, 4, 6, 8, 10])).run(1_000);
    let expected = [(1.0, 1), (3.0, 2), (5.0, 3), (9.0, 4), (11.0, 4)];
    assert_eq!(told(&world, Time::ZERO, 13.0), expected);
}

#[test]
fn the_end_of_a_hole_is_told_at_once_and_what_came_so_far_is_told_with_it() {
    // The first is late, and ends the hole while five wait to be told of.
    let late = |packet: &Packet, before: u32| match packet.kind {
        Kind::Data if before == 0 && packet.seq == 0 => Fate { late_by: Span::from_ns(8_500), ..PASS },
        Kind::Data => Fate { late_by: Span::from_us(packet.seq.into()), ..PASS },
        _ => PASS,
    };
    let tcp = compressing(40, 44, |config| config.rack_adaptive = false);
    let world = World::new(&tcp, segments(11), late).run(1_000);
    let acks: Vec<_> = world.sent(Kind::Ack).map(|ack| (ack.at, ack.packet.seq)).collect();
    let after = |ns: u64| Time::ZERO + LATENCY + Span::from_ns(ns);
    let expected = [(1_000, 0), (2_000, 0), (3_000, 0), (8_500, 9), (9_000, 10), (10_000, 11)];
    assert_eq!(acks, expected.map(|(ns, seq)| (after(ns), seq)));
}

#[test]
fn what_came_twice_is_told_at_once_and_so_are_the_next_segments() {
    // Segment 5 comes a second time, 1 ns after the first. That and the next three are told of at
    // once, as the first four of the flow are. Beside these three are sent for the hole: for 5, 9
    // and 10.
    let mut path = one_by_one(&[0]);
    let twice = move |packet: &Packet, before: u32| {
        let copies = u32::from(packet.kind == Kind::Data && packet.seq == 5 && before == 0);
        Fate { copies, ..path(packet, before) }
    };
    let tcp = compressing(40, 44, |config| config.quick_acks = 4);
    let world = World::new(&tcp, segments(40), twice).run(1_000);
    let expected = [1.0, 2.0, 3.0, 4.0, 5.0, 5.001, 6.0, 7.0, 8.0, 9.0, 10.0];
    let told: Vec<f64> = told(&world, Time::ZERO, 12.0).into_iter().map(|told| told.0).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_mark_is_told_at_once() {
    let tcp = dctcp(|config| {
        (config.sack, config.rack, config.initial_window) = (true, true, 40);
        (config.compressed_acks, config.compression_slack) = (44, SLACK);
    });
    let mut path = one_by_one(&[0]);
    let marking =
        move |packet: &Packet, before: u32| Fate { marked: packet.seq == 8, ..path(packet, before) };
    let world = World::new(&tcp, segments(40), marking).run(1_000);
    // The mark, and that the next has none.
    let expected = [(1.0, 1), (2.0, 2), (3.0, 3), (8.0, 8), (9.0, 9)];
    assert_eq!(told(&world, Time::ZERO, 15.0), expected);
}

#[test]
fn it_needs_sack() {
    let config = TcpConfig { compressed_acks: 44, ..TcpConfig::default() };
    let error = config.build().expect_err("no blocks to tell in").to_string();
    assert!(error.contains("compressed_acks") && error.contains("sack"), "{error}");
}

#[test]
fn all_arrives_whatever_is_left_out() {
    for lost in 0..40 {
        let tcp = compressing(10, 44, |config| (config.ack_every, config.quick_acks) = (2, 4));
        let lost_ones = [lost, lost + 3, 38];
        let world = World::new(&tcp, segments(40), one_by_one(&lost_ones)).run(10_000);
        assert_eq!((world.completed.len(), world.done.is_some()), (1, true), "{lost}");
    }
}

#[test]
fn a_segment_that_comes_when_one_is_due_is_told_of_at_once() {
    // The fourth beyond the hole comes at 4 us; it is told of 10 us later, when the fourteenth
    // comes.
    let tcp = compressing(20, 44, |config| config.compression_slack = Span::from_us(10));
    let world = World::new(&tcp, segments(20), one_by_one(&[0])).run(1_000);
    assert_eq!(told(&world, Time::ZERO, 16.0), [(1.0, 1), (2.0, 2), (3.0, 3), (14.0, 14)]);
}
