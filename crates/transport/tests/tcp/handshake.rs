//! SYN and SYN-ACK.

use weft_packet::{Kind, Packet};
use weft_transport::{Protocol, Tcp};
use weft_units::{Bytes, Time};

use crate::world::{DROP, LATENCY, PASS, RTT, World, at_us, reno, segments};

fn with_handshake() -> Tcp {
    reno(|config| {
        config.handshake = true;
        config.syn_size = Some(Bytes::new(60));
    })
}

#[test]
fn a_handshake_takes_one_round_trip_and_is_a_sample() {
    let tcp = with_handshake();
    let world = World::new(&tcp, segments(10), |_, _| PASS).run(1_000);
    assert_eq!(world.completed, [Time::ZERO + RTT + LATENCY]);
    assert_eq!(world.sender.round_trip().0, RTT);
    let sizes: [Vec<u16>; 2] =
        [Kind::Syn, Kind::SynAck].map(|kind| world.sent(kind).map(|sent| sent.packet.wire_bytes).collect());
    assert_eq!(sizes, [vec![60], vec![60]]);
    assert_eq!(tcp.handshake_wire_bytes(), Some((60, 60)));
    assert_eq!(reno(|_| {}).handshake_wire_bytes(), None);
}

#[test]
fn a_lost_syn_or_answer_is_repeated_with_backoff_and_the_window_starts_at_one() {
    for kind in [Kind::Syn, Kind::SynAck] {
        let tcp = with_handshake();
        let path = |packet: &Packet, before| if packet.kind == kind && before < 2 { DROP } else { PASS };
        let world = World::new(&tcp, segments(3), path).run(1_000);
        // 5 ms, then 10 ms.
        let syns: Vec<_> = world.sent(Kind::Syn).map(|sent| sent.at).collect();
        assert_eq!(syns, [at_us(0), at_us(5_000), at_us(15_000)]);
        // One segment, then two.
        assert_eq!(world.completed, [at_us(15_000) + RTT * 2 + LATENCY]);
        assert_eq!(tcp.sender_stats(&world.sender).timeouts, 2);
        assert_eq!(tcp.sender_stats(&world.sender).segments_sent, 3);
    }
}

#[test]
fn a_sender_that_acknowledges_ends_the_handshake_before_its_data_and_answers_the_fin_of_its_receiver() {
    let tcp = reno(|config| {
        (config.handshake, config.sender_acks) = (true, true);
        config.ack_size = Some(Bytes::new(52));
    });
    let world = World::new(&tcp, segments(3), |_, _| PASS).run(1_000);
    let acks: Vec<_> = world.sent(Kind::SenderAck).map(|sent| (sent.at, sent.packet.wire_bytes)).collect();
    // The SYN-ACK is here after a round trip, the last acknowledgement after two.
    assert_eq!(acks, [(Time::ZERO + RTT, 52), (Time::ZERO + RTT * 2, 52)]);
    assert_eq!(world.kinds_at(Time::ZERO + RTT), [Kind::SenderAck, Kind::Data, Kind::Data, Kind::Data]);
    assert_eq!(
        World::new(&with_handshake(), segments(3), |_, _| PASS).run(1_000).sent(Kind::SenderAck).count(),
        0
    );
}
