//! Round-trip times and retransmission timeouts, against tables by hand.

use weft_packet::{Kind, Packet};
use weft_transport::Protocol;
use weft_transport::tcp::TcpConfig;
use weft_units::{Span, Time};

use crate::world::{DROP, Fate, PASS, RTT, World, at_us, losing, segments};

#[test]
fn srtt_and_rttvar_follow_rfc_6298_by_hand() {
    // One segment per round; extra delays make samples of 40, 80, 40, 120 us.
    let config =
        TcpConfig { initial_window: 1, initial_ssthresh: Some(2), max_window: None, ..TcpConfig::default() };
    let config = TcpConfig { max_window: Some(config.mss), ..config };
    let tcp = config.build().unwrap();
    let extra = [0u64, 40, 0, 80];
    let path = |packet: &Packet, _| {
        let late = if packet.kind == Kind::Data { extra[packet.seq as usize] } else { 0 };
        Fate { late_by: Span::from_us(late), ..PASS }
    };
    // RTTVAR' = 3/4 RTTVAR + 1/4 |SRTT - R|, then SRTT' = 7/8 SRTT + 1/8 R; in ns.
    let table = [(40_000, 20_000), (45_000, 25_000), (44_375, 20_000), (53_828, 33_906)];
    for (count, (srtt, rttvar)) in (1u32..).zip(table) {
        let world = World::new(&tcp, segments(count), path).run(100);
        let (found_srtt, found_rttvar) = world.sender.round_trip();
        assert_eq!(
            (found_srtt.as_ps() / 1_000, found_rttvar.as_ps() / 1_000),
            (srtt, rttvar),
            "sample {count}"
        );
    }
}

#[test]
fn the_loss_of_the_last_segment_waits_for_the_timer_and_backoff_doubles() {
    let tcp = TcpConfig::default().build().unwrap();
    let path = |packet: &Packet, before| {
        let dropped = packet.kind == Kind::Data && packet.seq == 9 && before < 4;
        Fate { dropped, ..PASS }
    };
    let world = World::new(&tcp, segments(10), path).run(1_000);
    // SRTT + 4 RTTVAR is 100 us or so: the smallest timeout, 5 ms, counts from the last
    // acknowledgement at 40 us.
    let at: Vec<_> =
        world.retransmitted().into_iter().map(|(at, segment)| (at.as_ps() / 1_000_000, segment)).collect();
    assert_eq!(at, [(5_040, 9), (15_040, 9), (35_040, 9), (75_040, 9)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 4);
    assert_eq!(world.completed, [at_us(75_060)]);
}

#[test]
fn a_timeout_above_the_smallest_is_srtt_and_four_rttvar() {
    let config = TcpConfig { min_rto: Span::from_us(1), ..TcpConfig::default() };
    let tcp = config.build().unwrap();
    let world = World::new(&tcp, segments(2), losing(&[1])).run(1_000);
    // One sample of 40 us: RTO = 40 + 4 x 20 us.
    assert_eq!(world.retransmitted(), [(at_us(160), 1)]);
}

#[test]
fn without_a_sample_the_initial_timeout_counts_and_the_largest_bounds_the_backoff() {
    let config = TcpConfig { max_rto: Span::from_ms(25), ..TcpConfig::default() };
    let tcp = config.build().unwrap();
    let path = |packet: &Packet, before| {
        if packet.kind == Kind::Data && before < 4 { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(1), path).run(1_000);
    let at: Vec<_> = world.retransmitted().into_iter().map(|(at, _)| at.as_ps() / 1_000_000_000).collect();
    assert_eq!(at, [10, 30, 55, 80]);
}

#[test]
fn after_a_timeout_slow_start_begins_at_one_and_sends_everything_again() {
    let tcp = TcpConfig::default().build().unwrap();
    let path = |packet: &Packet, before| {
        if packet.kind == Kind::Data && before == 0 && packet.seq < 10 { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(40), path).run(10_000);
    let rounds = |round: u64| {
        let at = at_us(10_000) + RTT * round;
        world.sent(Kind::Data).filter(|sent| sent.at == at).count()
    };
    // The threshold is 10 / 2 = 5: 1, 2, 4, then 5 and linear.
    assert_eq!([rounds(0), rounds(1), rounds(2)], [1, 2, 4]);
    assert!((5..=6).contains(&rounds(3)), "{}", rounds(3));
    assert_eq!(tcp.sender_stats(&world.sender).retransmissions, 10);
}

#[test]
fn an_acknowledgement_of_new_data_ends_the_backoff() {
    // Segment 0 needs two timeouts, 10 + 20 ms; later segment 9 one of 5 ms, not of 4 x 5.
    let config = TcpConfig { initial_window: 1, ..TcpConfig::default() };
    let tcp = config.build().unwrap();
    let path = |packet: &Packet, before| {
        let lost = (packet.seq == 0 && before < 2) || (packet.seq == 9 && before < 1);
        if packet.kind == Kind::Data && lost { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(10), path).run(1_000);
    let again = world.retransmitted();
    assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), [0, 0, 9]);
    let last_ack = world.trace.iter().rev().find(|step| step.at < again[2].0).unwrap().at;
    assert_eq!(again[2].0.since(last_ack), Span::from_ms(5));
    assert!(world.done > Some(Time::ZERO));
}

#[test]
fn only_the_first_timeout_of_a_segment_lowers_the_threshold() {
    // Ten outstanding: 5. The second timeout finds one outstanding and leaves it.
    let tcp = TcpConfig::default().build().unwrap();
    let path = |packet: &Packet, before| {
        let lost = packet.seq < 10 && before == 0 || packet.seq == 0 && before == 1;
        if packet.kind == Kind::Data && lost { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(40), path).run(1_000);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 2);
    assert!((world.sender.slow_start_threshold() - 5.0).abs() < 1e-9);
}
