//! Recovery with selective acknowledgements (RFC 6675).

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::{Protocol, Tcp};
use weft_units::{Span, Time};

use crate::world::{Fate, PASS, RTT, World, losing, reno, segments};

fn sack(initial_window: u32) -> Tcp {
    reno(|config| (config.sack, config.initial_window) = (true, initial_window))
}

/// Drops the first two transmissions of each of these segments.
fn losing_twice(lost: &[u32]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        let dropped = packet.kind == Kind::Data && lost.contains(&packet.seq) && before < 2;
        Fate { dropped, ..PASS }
    }
}

#[test]
fn sack_repairs_the_same_losses_in_one_round_trip() {
    let tcp = sack(40);
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
    let tcp = sack(10);
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
fn the_round_that_finds_the_loss_sends_half_the_window_whatever_was_lost() {
    // 40 outstanding: two segments by limited transmit, then retransmissions and new ones as pipe
    // falls below 20.
    for lost in 1..=8u32 {
        let tcp = sack(40);
        let segments_lost: Vec<u32> = (0..lost).collect();
        let world = World::new(&tcp, segments(1_000), losing(&segments_lost)).run(10_000);
        let round = world.sent(Kind::Data).filter(|sent| sent.at == Time::ZERO + RTT);
        assert_eq!(round.count(), 20, "{lost} lost");
        let expected: Vec<_> = segments_lost.iter().map(|&segment| (Time::ZERO + RTT, segment)).collect();
        assert_eq!(world.retransmitted(), expected);
    }
}

#[test]
fn a_hole_near_the_end_is_filled_when_there_is_nothing_new_to_send() {
    // One segment beyond 8 arrived, not three: rule 3 of NextSeg.
    let tcp = sack(10);
    let world = World::new(&tcp, segments(10), losing(&[0, 8])).run(1_000);
    assert_eq!(world.retransmitted(), [0, 8].map(|segment| (Time::ZERO + RTT, segment)));
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn the_way_back_after_a_timeout_leaves_out_what_arrived() {
    let tcp = sack(10);
    let world = World::new(&tcp, segments(10), losing_twice(&[0, 2, 4, 6])).run(1_000);
    let again = world.retransmitted();
    let timeout = again.iter().rfind(|sent| sent.1 == 0).unwrap().0;
    let way_back: Vec<_> = again.into_iter().filter(|sent| sent.0 >= timeout).collect();
    let expected = [(0, 0), (1, 2), (1, 4), (2, 6)].map(|(round, segment)| (timeout + RTT * round, segment));
    assert_eq!(way_back, expected);
    assert_eq!(tcp.receiver_stats(&world.receiver).duplicates, 0);
}

#[test]
fn after_a_timeout_what_arrived_beyond_a_hole_makes_room() {
    // On the way back the window of two holds 1 and 9; 9 arrives first, so that one more may go.
    let tcp = sack(10);
    let mut lose = losing_twice(&[0, 1, 9]);
    let path = |packet: &Packet, before| {
        let late = packet.kind == Kind::Data && packet.seq == 1 && before == 2;
        Fate { late_by: if late { Span::from_us(5) } else { Span::ZERO }, ..lose(packet, before) }
    };
    let world = World::new(&tcp, segments(1_000), path).run(10_000);
    let timeout = world.retransmitted().iter().rfind(|sent| sent.1 == 0).unwrap().0;
    let new = world
        .sent(Kind::Data)
        .filter(|sent| sent.at == timeout + RTT * 2 && !sent.packet.flags.has(PacketFlags::RETRANSMISSION));
    assert_eq!(new.count(), 1);
}

#[test]
fn three_segments_told_by_one_acknowledgement_start_recovery() {
    // The acknowledgements of 1 and 2 are lost: the one of 3 tells of all three (IsLost, RFC 6675
    // §5 step 1).
    let tcp = sack(4);
    let path = |packet: &Packet, before| {
        let data = packet.kind == Kind::Data && packet.seq == 0 && before == 0;
        let ack = packet.kind == Kind::Ack && packet.seq == 0 && before < 2;
        Fate { dropped: data || ack, ..PASS }
    };
    let world = World::new(&tcp, segments(4), path).run(1_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT, 0)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}
