//! Fast retransmit and fast recovery, with and without SACK.

use weft_packet::{Kind, Packet};
use weft_transport::tcp::TcpConfig;
use weft_transport::{Protocol, Tcp};
use weft_units::{Span, Time};

use crate::world::{Fate, LATENCY, PASS, RTT, World, at_us, losing, segments};

fn reno() -> Tcp {
    TcpConfig::default().build().unwrap()
}

fn sack() -> Tcp {
    TcpConfig { sack: true, ..TcpConfig::default() }.build().unwrap()
}

#[test]
fn two_duplicate_acknowledgements_are_not_a_loss() {
    // Segment 4 arrives behind 5 and 6: two duplicates, then the hole is filled.
    for tcp in [reno(), sack()] {
        let late = |packet: &Packet, _| {
            let late = packet.kind == Kind::Data && (packet.seq == 4 || packet.seq > 6);
            Fate { late_by: if late { Span::from_us(1) } else { Span::ZERO }, ..PASS }
        };
        let world = World::new(&tcp, segments(10), late).run(1_000);
        let stats = tcp.sender_stats(&world.sender);
        assert_eq!((stats.duplicate_acks, stats.retransmissions, stats.fast_recoveries), (2, 0, 0));
        assert_eq!(tcp.receiver_stats(&world.receiver).out_of_order, 2);
    }
}

#[test]
fn the_third_duplicate_acknowledgement_retransmits_at_once() {
    for tcp in [reno(), sack()] {
        // 4, 5, 6, 7 of which 4 is lost: the duplicates are those of 5, 6 and 7.
        let world = World::new(&tcp, segments(8), losing(&[4])).run(1_000);
        let stats = tcp.sender_stats(&world.sender);
        assert_eq!(world.retransmitted(), [(Time::ZERO + RTT, 4)]);
        assert_eq!((stats.duplicate_acks, stats.fast_recoveries, stats.timeouts), (3, 1, 0));
        assert_eq!(world.completed, [Time::ZERO + RTT + LATENCY]);
        // One fewer: only the timer helps.
        let world = World::new(&tcp, segments(7), losing(&[4])).run(1_000);
        assert_eq!(tcp.sender_stats(&world.sender).timeouts, 1);
    }
}

#[test]
fn the_threshold_is_what_the_configuration_says() {
    let tcp = TcpConfig { dup_ack_threshold: 5, ..TcpConfig::default() }.build().unwrap();
    for (count, timeouts) in [(9, 1), (10, 0)] {
        let world = World::new(&tcp, segments(count), losing(&[4])).run(1_000);
        assert_eq!(tcp.sender_stats(&world.sender).timeouts, timeouts);
    }
}

#[test]
fn newreno_repairs_k_losses_in_a_window_in_k_round_trips_without_timeout() {
    let tcp = reno();
    for k in 1..=6u32 {
        let lost: Vec<u32> = (0..k).map(|i| 1 + 2 * i).collect();
        let world = World::new(&tcp, segments(200), losing(&lost)).run(10_000);
        let expected: Vec<_> =
            (1u64..).zip(&lost).map(|(i, &segment)| (Time::ZERO + RTT * i, segment)).collect();
        assert_eq!(world.retransmitted(), expected);
        let stats = tcp.sender_stats(&world.sender);
        assert_eq!((stats.retransmissions, stats.fast_recoveries, stats.timeouts), (k, 1, 0));
    }
}

#[test]
fn sack_repairs_the_same_losses_in_one_round_trip() {
    let tcp = TcpConfig { sack: true, initial_window: 40, ..TcpConfig::default() }.build().unwrap();
    let lost = [1, 3, 5, 7, 9, 11];
    let world = World::new(&tcp, segments(200), losing(&lost)).run(10_000);
    let expected = lost.map(|segment| (Time::ZERO + RTT, segment));
    assert_eq!(world.retransmitted(), expected);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));
    assert_eq!(tcp.receiver_stats(&world.receiver).duplicates, 0);
}

#[test]
fn sack_repairs_the_loss_of_a_retransmission_by_timeout_and_resends_nothing_that_arrived() {
    let tcp = sack();
    let path = |packet: &Packet, before| {
        let dropped = packet.kind == Kind::Data && packet.seq == 4 && before < 2;
        Fate { dropped, ..PASS }
    };
    let world = World::new(&tcp, segments(60), path).run(10_000);
    assert_eq!(world.retransmitted().iter().map(|sent| sent.1).collect::<Vec<_>>(), [4, 4]);
    assert_eq!(tcp.receiver_stats(&world.receiver).duplicates, 0);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 1);
}

#[test]
fn limited_transmit_sends_new_segments_on_the_first_two_duplicates_only_if_on() {
    // A window of four that loses its first: three duplicates. Without limited transmit nothing new goes out before
    // the third; with it, segments 4 and 5 do, and the window stays.
    for (on, sack) in [(true, false), (false, false), (true, true), (false, true)] {
        let config = TcpConfig { initial_window: 4, limited_transmit: on, sack, ..TcpConfig::default() };
        let tcp = config.build().unwrap();
        let spread = |packet: &Packet, before| {
            let dropped = packet.kind == Kind::Data && packet.seq == 0 && before == 0;
            let late_by =
                if packet.kind == Kind::Data { Span::from_ns(u64::from(packet.seq)) } else { Span::ZERO };
            Fate { dropped, late_by, ..PASS }
        };
        let world = World::new(&tcp, segments(100), spread).run(10_000);
        let third = Time::ZERO + RTT + Span::from_ns(3);
        let early: Vec<u32> = world
            .sent(Kind::Data)
            .filter(|s| s.at > Time::ZERO && s.at < third)
            .map(|s| s.packet.seq)
            .collect();
        assert_eq!(early, if on { vec![4, 5] } else { vec![] });
        assert_eq!(world.retransmitted()[0], (third, 0));
        // What it sent does not count as outstanding when the window is halved: 4 / 2, not 6 / 2.
        let at_third = world.trace.iter().find(|step| step.at == third).unwrap();
        let inflated = if sack { 2.0 } else { 5.0 };
        assert!((at_third.cwnd - inflated).abs() < 1e-9, "{}", at_third.cwnd);
    }
}

#[test]
fn the_window_is_half_of_what_was_outstanding_after_recovery() {
    // 40 outstanding, one lost: ssthresh 20, and the window is there when recovery ends.
    for sack in [false, true] {
        let config = TcpConfig { initial_window: 40, sack, ..TcpConfig::default() };
        let tcp = config.build().unwrap();
        let world = World::new(&tcp, segments(1_000), losing(&[0])).run(10_000);
        let cwnd = world.trace.iter().rfind(|step| step.at == Time::ZERO + RTT * 2).unwrap().cwnd;
        assert!((20.0..21.0).contains(&cwnd), "{cwnd}");
        assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 1);
    }
}

#[test]
fn retransmissions_in_vain_do_not_start_another_recovery() {
    // Everything is delayed past the timeout once: go-back-N sends segments that arrived, the duplicates that they
    // cause are at or below recover.
    let tcp = reno();
    let slow = |packet: &Packet, before| {
        let late = packet.kind == Kind::Data && before == 0 && packet.seq < 10;
        Fate { late_by: if late { Span::from_ms(11) } else { Span::ZERO }, ..PASS }
    };
    let world = World::new(&tcp, segments(100), slow).run(10_000);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.fast_recoveries), (1, 0));
    assert!(world.done < Some(at_us(20_000)));
}
