//! Fast retransmit and fast recovery.

use weft_packet::{Kind, Packet};
use weft_transport::{Protocol, Tcp};
use weft_units::{Bytes, Span, Time};

use crate::world::{Fate, LATENCY, PASS, RTT, World, at_us, losing, reno, segments};

fn both() -> [Tcp; 2] {
    [false, true].map(|sack| reno(|config| config.sack = sack))
}

#[test]
fn two_duplicate_acknowledgements_are_not_a_loss() {
    // Segment 4 arrives behind 5 and 6: two duplicates, then the hole is filled.
    for tcp in both() {
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
    for tcp in both() {
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
    let tcp = reno(|config| config.dup_ack_threshold = 5);
    for (count, timeouts) in [(9, 1), (10, 0)] {
        let world = World::new(&tcp, segments(count), losing(&[4])).run(1_000);
        assert_eq!(tcp.sender_stats(&world.sender).timeouts, timeouts);
    }
}

#[test]
fn newreno_repairs_k_losses_in_a_window_in_k_round_trips_without_timeout() {
    let tcp = reno(|_| {});
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
fn limited_transmit_sends_new_segments_on_the_first_two_duplicates_only_if_on() {
    // A window of four that loses its first: three duplicates. Without limited transmit nothing new
    // goes out before the third; with it, segments 4 and 5 do, and the window stays.
    for (on, sack) in [(true, false), (false, false), (true, true), (false, true)] {
        let tcp = reno(|config| {
            (config.initial_window, config.limited_transmit, config.sack) = (4, on, sack);
        });
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
        let tcp = reno(|config| (config.initial_window, config.sack) = (40, sack));
        let world = World::new(&tcp, segments(1_000), losing(&[0])).run(10_000);
        let cwnd = world.trace.iter().rfind(|step| step.at == Time::ZERO + RTT * 2).unwrap().cwnd;
        assert!((20.0..21.0).contains(&cwnd), "{cwnd}");
        assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 1);
    }
}

#[test]
fn retransmissions_in_vain_do_not_start_another_recovery() {
    // The first ten segments arrive 119 us after the timeout. By then 0 to 6 were sent again, and 7
    // to 9 are on their way: their duplicates say 10, which is recover, three times.
    let tcp = reno(|_| {});
    let slow = |packet: &Packet, before| {
        let late = packet.kind == Kind::Data && before == 0 && packet.seq < 10;
        Fate { late_by: if late { Span::from_us(10_099) } else { Span::ZERO }, ..PASS }
    };
    let world = World::new(&tcp, segments(100), slow).run(10_000);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.retransmissions, stats.fast_recoveries), (1, 10, 0));
    assert!(stats.duplicate_acks >= 10);
}

#[test]
fn duplicates_before_and_after_progress_do_not_add_up() {
    // 4 arrives behind 6, and 8 behind 10: two duplicates each.
    let tcp = reno(|config| config.initial_window = 20);
    let shuffled = |packet: &Packet, _| {
        let place = match packet.seq {
            4 => 65,
            8 => 105,
            seq => 10 * u64::from(seq),
        };
        Fate { late_by: Span::from_ns(if packet.kind == Kind::Data { place } else { 0 }), ..PASS }
    };
    let world = World::new(&tcp, segments(20), shuffled).run(1_000);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.duplicate_acks, stats.retransmissions), (4, 0));
}

#[test]
fn a_partial_acknowledgement_deflates_by_what_it_covers_and_adds_one_back() {
    let tcp = reno(|_| {});
    let world = World::new(&tcp, segments(100), losing(&[1, 3])).run(10_000);
    // At 40 us: cwnd 11, the third duplicate halves the 11 outstanding to 5.5 and adds 3, four more
    // make 12.5. At 80 us: four duplicates, then the acknowledgement of 1 and 2: less 2, plus 1.
    let round = world.trace.iter().filter(|step| step.at == Time::ZERO + RTT * 2);
    let cwnd: Vec<f64> = round.map(|step| step.cwnd).collect();
    assert_eq!(cwnd, [13.5, 14.5, 15.5, 16.5, 15.5]);
}

#[test]
fn the_window_after_recovery_is_no_more_than_one_above_what_is_outstanding() {
    // The receive window keeps new segments back, so nothing is outstanding at the full
    // acknowledgement.
    let tcp = reno(|config| {
        config.initial_window = 40;
        config.max_window = Some(Bytes::new(40 * 1_460));
    });
    let world = World::new(&tcp, segments(100), losing(&[0])).run(10_000);
    let after = world.trace.iter().find(|step| step.at == Time::ZERO + RTT * 2).unwrap();
    assert_eq!((after.cwnd, after.outstanding), (2.0, 2));
}

#[test]
fn only_the_first_partial_acknowledgement_restarts_the_timer() {
    // Ten holes take ten rounds; the timer of 200 us that the first partial acknowledgement set at
    // 80 us runs out.
    let tcp = reno(|config| {
        config.initial_window = 40;
        config.min_rto = Span::from_us(200);
    });
    let lost: Vec<u32> = (0..10).map(|i| 1 + 2 * i).collect();
    let world = World::new(&tcp, segments(300), losing(&lost)).run(10_000);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 1);
    let backwards =
        world.retransmitted().windows(2).find(|pair| pair[1].1 <= pair[0].1).map(|pair| pair[1].0);
    assert_eq!(backwards, Some(at_us(280)));
}
