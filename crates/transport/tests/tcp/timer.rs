//! The one timer of a TCP that finds losses by time, what it takes for round-trip times, and what a
//! timeout leaves: as Linux has it, by hand, in a world where a packet takes 20 us each way.

use weft_packet::{Kind, Packet};
use weft_transport::tcp::TcpConfig;
use weft_transport::{Protocol, Tcp};
use weft_units::{Rate, Span};

use crate::world::{DROP, Fate, PASS, World, at_us, by_time, losing, segments};

/// Losses that only a timeout tells of.
fn never_by_time(window: u32, change: impl FnOnce(&mut TcpConfig)) -> Tcp {
    by_time(window, |config| {
        (config.rack_adaptive, config.rack_window) = (false, 100.0);
        change(config);
    })
}

/// Drops so many copies of a segment, for each pair of both.
fn losing_copies(lost: &[(u32, u32)]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        let is_lost = |&(segment, copies): &(u32, u32)| packet.seq == segment && before < copies;
        Fate { dropped: packet.kind == Kind::Data && lost.iter().any(is_lost), ..PASS }
    }
}

#[test]
fn no_timeout_comes_while_what_was_overtaken_is_waited_for() {
    // The second of two tells at 80 us that the first may be lost: a quarter of the round trip and
    // 6 ms later it is. The least timeout is 5 ms.
    let tcp = by_time(10, |config| {
        (config.handshake, config.rack_wait) = (true, Span::from_us(6_000));
    });
    let world = World::new(&tcp, segments(2), losing(&[0])).run(2_000);
    assert_eq!(world.retransmitted(), [(at_us(40 + 40 + 10 + 6_000), 0)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn after_the_timer_was_for_something_else_a_timeout_counts_from_when_the_first_segment_was_sent() {
    // At 80 us the timer is set for the two that are overtaken; the third that overtakes tells that
    // they are lost. Both are sent again, and the first of them arrives, which is told at 120 us.
    // The other is lost again: its timeout counts from 80 us.
    let tcp = by_time(5, |config| {
        (config.handshake, config.rack_wait) = (true, Span::from_us(1_000));
    });
    let world = World::new(&tcp, segments(5), losing_copies(&[(0, 1), (1, 2)])).run(2_000);
    assert_eq!(world.retransmitted(), [(at_us(80), 0), (at_us(80), 1), (at_us(80 + 5_000), 1)]);
}

/// The window after a timeout at 210 us, when four segments are out that were sent at 120 and 140
/// us: the last round trip was of 100 us, so that they are not late yet, but for the first.
fn after_a_timeout(keeps: bool) -> f64 {
    let tcp = never_by_time(2, |config| {
        (config.handshake, config.timeout_keeps_network) = (true, keeps);
        (config.min_rto, config.initial_rto, config.max_rto) =
            (Span::from_us(1), Span::from_us(90), Span::from_us(90));
        config.syn_timeout = Span::from_us(90);
    });
    let path = |packet: &Packet, before: u32| {
        let is_late = packet.kind == Kind::Data && packet.seq == 1 && before == 0;
        let late_by = if is_late { Span::from_us(60) } else { Span::ZERO };
        Fate { late_by, dropped: packet.kind == Kind::Data && packet.seq >= 4, ..PASS }
    };
    let world = World::new(&tcp, segments(400), path).run_until(at_us(220));
    assert_eq!(world.retransmitted(), [(at_us(210), 4)]);
    world.sender.congestion_window()
}

#[test]
fn after_a_timeout_the_window_is_one_segment_or_one_more_than_is_in_the_network() {
    assert_eq!((after_a_timeout(false), after_a_timeout(true)), (1.0, 4.0));
}

#[test]
fn in_slow_start_only_what_was_not_known_to_have_arrived_counts() {
    // The first of ten is lost twice. When the timer expires all others have arrived: the next
    // answer is for all ten, and news of one. The window is two segments then, not eleven.
    let tcp = by_time(10, |config| config.abc_limit = u32::MAX);
    let world = World::new(&tcp, segments(10), losing_copies(&[(0, 2)])).run(1_000);
    assert_eq!((world.sender.congestion_window(), tcp.sender_stats(&world.sender).timeouts), (2.0, 1));
}

#[test]
fn a_path_that_reorders_lets_the_window_grow_by_what_arrives_beyond_a_hole() {
    // The first segment is overtaken by nine, so that the path is known to reorder; its own arrival
    // is news of one segment. Of the second window the first is lost, and ten overtake it.
    let window = |grows| {
        let tcp = never_by_time(10, |config| {
            (config.abc_limit, config.grow_beyond_holes) = (u32::MAX, grows);
        });
        let path = |packet: &Packet, before: u32| {
            let is_data = packet.kind == Kind::Data && before == 0;
            let late_by = if is_data && packet.seq == 0 { Span::from_us(1) } else { Span::ZERO };
            Fate { late_by, dropped: is_data && packet.seq == 10, ..PASS }
        };
        World::new(&tcp, segments(1_000), path).run_until(at_us(85)).sender.congestion_window()
    };
    assert_eq!((window(false), window(true)), (11.0, 21.0));
}

#[test]
fn slow_start_goes_no_further_than_its_threshold_however_much_is_acknowledged() {
    // Eight at once, of which two fit below the threshold of 12; the other six are half a window.
    let tcp = by_time(10, |config| {
        (config.abc_limit, config.ack_every, config.initial_ssthresh) = (u32::MAX, 8, Some(12));
    });
    let world = World::new(&tcp, segments(1_000), |_, _| PASS).run_until(at_us(45));
    assert_eq!((world.sender.congestion_window(), world.sender.slow_start_threshold()), (12.5, 12.0));
}

#[test]
fn what_is_lost_again_after_a_timeout_begins_a_recovery() {
    // All ten are lost at first. After the timeout the first is mended, and allows two more, of
    // which the first is lost once more: the second tells.
    let tcp = by_time(10, |config| config.rack_echo_of_sacked = false);
    let lost: Vec<_> = (0..10).map(|segment| (segment, if segment == 1 { 2 } else { 1 })).collect();
    let world = World::new(&tcp, segments(10), losing_copies(&lost)).run(2_000);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.fast_recoveries), (1, 1));
}

#[test]
fn what_arrives_beyond_a_hole_shows_a_round_trip_and_puts_a_timeout_off_if_the_hole_was_sent_later() {
    // The first of two is lost twice, and sent again at 5,040 us. The other takes 6 ms more, and
    // tells nothing of the first then, but of the path.
    let path = |packet: &Packet, before: u32| match (packet.kind, packet.seq, before) {
        (Kind::Data, 0, 0 | 1) => DROP,
        (Kind::Data, 1, 0) => Fate { late_by: Span::from_us(6_000), ..PASS },
        _ => PASS,
    };
    let tcp = by_time(2, |config| config.handshake = true);
    let world = World::new(&tcp, segments(2), path).run(1_000);
    // 40 us of the handshake, then 6,040 us.
    let (smoothed, deviation) = (40.0 + 6_000.0 / 8.0, 20.0 * 0.75 + 6_000.0 / 4.0);
    let timeout = smoothed + 4.0 * deviation;
    let again: Vec<_> = world.retransmitted().iter().map(|&(at, segment)| (at.as_us(), segment)).collect();
    assert_eq!(again, [(5_040.0, 0), (40.0 + 6_040.0 + timeout, 0)]);
}

#[test]
fn the_timeout_has_the_largest_deviation_of_a_round_trip_and_falls_by_a_quarter_of_what_is_too_much() {
    // A segment a round trip: 40 us, 140 us, and 40 us from then on.
    let tcp = by_time(1, |config| {
        (config.handshake, config.min_rto_beyond_rtt, config.min_rto) = (true, true, Span::from_us(20));
        config.max_window = Some(config.mss);
    });
    let path = |packet: &Packet, _: u32| {
        let slow = packet.kind == Kind::Data && packet.seq == 1;
        Fate { late_by: if slow { Span::from_us(100) } else { Span::ZERO }, ..PASS }
    };
    let beyond = |count| {
        let world = World::new(&tcp, segments(count), path).run(1_000);
        4.0 * world.sender.round_trip().1.as_us()
    };
    // Twice the handshake's round trip at first. A deviation of 0 leaves 60 us, which is less; the
    // next one adds 100 less a quarter of that.
    let first = 80.0;
    let rose = 60.0 + 100.0 - 15.0;
    assert!((beyond(1) - first).abs() < 0.01, "{}", beyond(1));
    assert!((beyond(2) - rose).abs() < 0.01, "{}", beyond(2));
    // A short one takes at most a quarter of the difference away, and only in the next round.
    assert!(beyond(3) <= rose && beyond(3) > 0.7 * rose, "{}", beyond(3));
    assert!(beyond(8) < beyond(3));
}

#[test]
fn what_was_lost_in_a_recovery_beyond_its_end_is_mended_by_another() {
    // The first of ten is lost, and 11, which leaves before that is known: the recovery ends when
    // both have arrived. 13 leaves in it, and is lost, too: it is known and sent again before the
    // end.
    let tcp = by_time(10, |_| {});
    let world =
        World::new(&tcp, segments(40), losing(&[0, 11, 13])).with_cable(Rate::from_gbps(10)).run(2_000);
    let again: Vec<_> = world.retransmitted().into_iter().map(|(_, segment)| segment).collect();
    assert_eq!(again, [0, 11, 13]);
    assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 2);
}
