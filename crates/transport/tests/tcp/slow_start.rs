//! Windows without loss: rounds, growth and limits, against closed forms.

use weft_packet::{Kind, PacketFlags};
use weft_transport::tcp::TcpConfig;
use weft_transport::{FlowSize, Protocol};
use weft_units::{Bytes, Time};

use crate::world::{LATENCY, PASS, RTT, World, at_us, segments};

#[test]
fn a_lone_flow_takes_as_many_rounds_as_doubling_from_the_initial_window_needs() {
    let tcp = TcpConfig::default().build().unwrap();
    for count in [1, 9, 10, 11, 30, 31, 70, 71, 150, 151, 5_000] {
        // k rounds carry 10 (2^k - 1) segments.
        let rounds = (1u64..64).find(|k| 10 * ((1 << k) - 1) >= u64::from(count)).unwrap();
        let world = World::new(&tcp, segments(count), |_, _| PASS).run(100_000);
        assert_eq!(world.completed, [Time::ZERO + RTT * (rounds - 1) + LATENCY], "{count} segments");
        assert_eq!(world.done, Some(Time::ZERO + RTT * rounds));
        let (sender, receiver) = (tcp.sender_stats(&world.sender), tcp.receiver_stats(&world.receiver));
        assert_eq!((sender.segments_sent, sender.retransmissions), (u64::from(count), 0));
        assert_eq!(
            (receiver.segments_received, receiver.out_of_order, receiver.duplicates),
            (u64::from(count), 0, 0)
        );
    }
}

#[test]
fn sizes_on_the_wire_add_up_to_the_flow_and_its_headers() {
    let config = TcpConfig {
        mss: Bytes::new(1_400),
        header: Bytes::new(54),
        ack_size: Some(Bytes::new(60)),
        ..TcpConfig::default()
    };
    let tcp = config.build().unwrap();
    let size = tcp.flow_size(100_001);
    assert_eq!(size, FlowSize { segments: 72, last_payload: 601 });
    let world = World::new(&tcp, size, |_, _| PASS).run(10_000);
    let wire: u64 = world.sent(Kind::Data).map(|sent| u64::from(sent.packet.wire_bytes)).sum();
    assert_eq!(wire, 100_001 + 72 * 54);
    assert!(world.sent(Kind::Ack).all(|sent| sent.packet.wire_bytes == 60));
    for sent in world.sent(Kind::Data) {
        assert_eq!(sent.packet.wire_bytes, tcp.segment_wire_bytes(size, sent.packet.seq));
        assert_eq!(sent.packet.flags.has(PacketFlags::LAST), sent.packet.seq == 71);
    }
}

#[test]
fn congestion_avoidance_adds_one_segment_per_round() {
    let config = TcpConfig { initial_ssthresh: Some(10), ..TcpConfig::default() };
    let tcp = config.build().unwrap();
    let world = World::new(&tcp, segments(1_000), |_, _| PASS).run(10_000);
    for round in 1..10u64 {
        let sent = world.sent(Kind::Data).filter(|sent| sent.at == Time::ZERO + RTT * round).count() as u64;
        // W acknowledgements of 1/cwnd each add slightly less than one, since cwnd grows meanwhile.
        assert!((9 + round..=10 + round).contains(&sent), "round {round}: {sent}");
    }
}

#[test]
fn delayed_acknowledgements_slow_down_slow_start_but_not_congestion_avoidance() {
    // Five acknowledgements for ten segments: five more in slow start, not quite one in congestion
    // avoidance.
    let after_a_round = |ssthresh| {
        let config = TcpConfig { ack_every: 2, initial_ssthresh: ssthresh, ..TcpConfig::default() };
        let tcp = config.build().unwrap();
        let world = World::new(&tcp, segments(1_000), |_, _| PASS).run(10_000);
        world.trace.iter().rfind(|step| step.at == Time::ZERO + RTT).unwrap().cwnd
    };
    assert!((after_a_round(None) - 15.0).abs() < 1e-9);
    let linear = after_a_round(Some(10));
    assert!((10.9..11.0).contains(&linear), "{linear}");
}

#[test]
fn slow_start_may_count_all_segments_that_an_acknowledgement_covers() {
    let after_a_round = |limit| {
        let config = TcpConfig { ack_every: 4, initial_window: 8, abc_limit: limit, ..TcpConfig::default() };
        let tcp = config.build().unwrap();
        let world = World::new(&tcp, segments(1_000), |_, _| PASS).run(10_000);
        world.trace.iter().rfind(|step| step.at == Time::ZERO + RTT).unwrap().cwnd
    };
    // Two acknowledgements of four segments.
    for (limit, expected) in [(1, 10.0), (2, 12.0), (u32::MAX, 16.0)] {
        let found = after_a_round(limit);
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}, with {limit}");
    }
}

#[test]
fn the_receive_window_bounds_what_is_outstanding_and_the_window_itself() {
    let config = TcpConfig { max_window: Some(Bytes::new(16 * 1_460 + 7)), ..TcpConfig::default() };
    let tcp = config.build().unwrap();
    let world = World::new(&tcp, segments(500), |_, _| PASS).run(10_000);
    assert_eq!(world.trace.iter().map(|step| step.outstanding).max(), Some(16));
    assert!(world.trace.iter().all(|step| step.cwnd <= 16.0));
}

#[test]
fn a_flow_without_end_goes_on() {
    let config = TcpConfig { max_window: Some(Bytes::new(100 * 1_460)), ..TcpConfig::default() };
    let tcp = config.build().unwrap();
    let world = World::new(&tcp, FlowSize::endless(1_460), |_, _| PASS).run_until(at_us(4_000));
    assert!(world.completed.is_empty() && world.done.is_none());
    // 100 rounds of 40 us: 10 + 20 + 40 + 80, then 96 of 100.
    assert_eq!(tcp.sender_stats(&world.sender).segments_sent, 9_750);
    assert!(world.sent(Kind::Data).all(|sent| !sent.packet.flags.has(PacketFlags::LAST)));
}
