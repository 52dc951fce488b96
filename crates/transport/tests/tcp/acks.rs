//! When the receiver acknowledges, and what it says.

use weft_packet::{Kind, Packet};
use weft_transport::Protocol;
use weft_units::{Bytes, Span, Time};

use crate::world::{DROP, LATENCY, PASS, RTT, World, at_us, losing, reno, segments};

#[test]
fn every_second_segment_is_acknowledged_and_the_last_at_once() {
    let tcp = reno(|config| config.ack_every = 2);
    let world = World::new(&tcp, segments(7), |_, _| PASS).run(1_000);
    let acks: Vec<_> = world.sent(Kind::Ack).map(|sent| (sent.at, sent.packet.seq)).collect();
    assert_eq!(acks, [2, 4, 6, 7].map(|seq| (Time::ZERO + LATENCY, seq)));
}

#[test]
fn the_first_segments_are_acknowledged_at_once_if_told_so() {
    let tcp = reno(|config| (config.ack_every, config.quick_acks) = (2, 3));
    let world = World::new(&tcp, segments(8), |_, _| PASS).run(1_000);
    let acks: Vec<_> = world.sent(Kind::Ack).map(|sent| sent.packet.seq).collect();
    assert_eq!(acks, [1, 2, 3, 5, 7, 8]);
}

#[test]
fn a_segment_alone_waits_for_the_delayed_acknowledgement_timer() {
    let tcp = reno(|config| {
        config.ack_every = 2;
        config.max_window = Some(Bytes::new(1_460));
    });
    let world = World::new(&tcp, segments(4), |_, _| PASS).run(1_000);
    // Three rounds of 40 us and 1 ms; the last segment is not delayed.
    assert_eq!(world.completed, [at_us(3 * 1_040 + 20)]);
    assert_eq!(world.done, Some(at_us(3 * 1_040 + 40)));
    // The sender's round-trip time has the wait in it.
    assert!(world.sender.round_trip().0 > Span::from_us(800));
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn a_delayed_acknowledgement_echoes_the_first_segment_that_it_answers() {
    let tcp = reno(|config| {
        config.ack_every = 2;
        config.initial_window = 3;
    });
    let world = World::new(&tcp, segments(20), |_, _| PASS).run(1_000);
    // Segment 2 was sent at 0, segment 3 at 40 us; acknowledgement 4 answers both.
    let ack = world.sent(Kind::Ack).find(|sent| sent.packet.seq == 4).unwrap();
    assert_eq!((ack.at, ack.packet.sent), (Time::ZERO + RTT + LATENCY, Time::ZERO));
}

#[test]
fn a_hole_is_told_at_once_and_so_is_its_end_however_acknowledgements_are_delayed() {
    let tcp = reno(|config| config.ack_every = 4);
    let world = World::new(&tcp, segments(10), losing(&[3])).run(1_000);
    let acks: Vec<_> = world.sent(Kind::Ack).map(|sent| sent.packet.seq).collect();
    // 0 to 2 wait; 4 flushes them; 5 to 9 repeat; the retransmission releases all.
    assert_eq!(acks, [3, 3, 3, 3, 3, 3, 10]);
    let stats = tcp.receiver_stats(&world.receiver);
    assert_eq!((stats.out_of_order, stats.duplicates), (6, 0));
}

#[test]
fn sack_blocks_tell_what_arrived_and_only_if_on() {
    for on in [true, false] {
        let tcp = reno(|config| config.sack = on);
        let world = World::new(&tcp, segments(10), losing(&[2, 5])).run(1_000);
        let blocks: Vec<Vec<(u16, u16)>> = world
            .sent(Kind::Ack)
            .take(8)
            .map(|sent| {
                let blocks = sent.packet.sack_blocks().into_iter().filter(|block| block.count > 0);
                blocks.map(|block| (block.first, block.count)).collect()
            })
            .collect();
        // Of 2: 3 | 3, 4 | 6, 3-4 | 6-7, 3-4 | ..., counted from the acknowledgement.
        let told = [
            vec![],
            vec![],
            vec![(1, 1)],
            vec![(1, 2)],
            vec![(4, 1), (1, 2)],
            vec![(4, 2), (1, 2)],
            vec![(4, 3), (1, 2)],
            vec![(4, 4), (1, 2)],
        ];
        assert_eq!(blocks, if on { told.to_vec() } else { vec![vec![]; 8] });
    }
}

#[test]
fn a_lost_last_acknowledgement_costs_a_timeout_but_completes_once() {
    let tcp = reno(|_| {});
    let path = |packet: &Packet, before| {
        if packet.kind == Kind::Ack && packet.seq == 10 && before < 2 { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(10), path).run(1_000);
    assert_eq!(world.completed, [Time::ZERO + LATENCY]);
    assert_eq!(tcp.receiver_stats(&world.receiver).duplicates, 2);
    assert_eq!(world.done, Some(at_us(40 + 5_000 + 10_000 + 40)));
}
