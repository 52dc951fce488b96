//! Tolerance of reordering: losses by time (RFC 8985), and the reordering buffer below TCP.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::{Protocol, Tcp};
use weft_units::{Span, Time};

use crate::world::{DROP, Fate, LATENCY, PASS, RTT, World, losing, reno, segments};

fn rack(window: u32) -> Tcp {
    reno(|config| (config.sack, config.rack, config.initial_window) = (true, true, window))
}

fn fixed(window: u32, round_trips: f64) -> Tcp {
    reno(|config| {
        (config.sack, config.rack, config.initial_window) = (true, true, window);
        (config.rack_adaptive, config.rack_window) = (false, round_trips);
    })
}

/// The first copy of this segment is late.
fn late(segment: u32, by: Span) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        let hit = packet.kind == Kind::Data && packet.seq == segment && before == 0;
        Fate { late_by: if hit { by } else { Span::ZERO }, ..PASS }
    }
}

#[test]
fn a_segment_that_any_number_overtakes_within_the_window_is_not_sent_again() {
    // 39 segments overtake; 9 us late is within a quarter of the round trip of 40 us.
    let path = || late(0, Span::from_us(9));
    let tcp = fixed(40, 0.25);
    let world = World::new(&tcp, segments(200), path()).run(10_000);
    assert_eq!(world.retransmitted(), []);
    assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 0);
    // Counting takes it for lost.
    let counting = reno(|config| (config.sack, config.initial_window) = (true, 40));
    let world = World::new(&counting, segments(200), path()).run(10_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT, 0)]);
}

#[test]
fn what_arrives_late_lengthens_the_wait_for_what_is_later_still() {
    // RFC 8985 §6.2 step 2: the round trip is that of what arrived last, 49 us, so 17 has until 59;
    // it comes at 52.
    let tcp = fixed(20, 0.25);
    let path = |packet: &Packet, before| {
        let late = match packet.seq {
            17 => 12,
            18 => 9,
            _ => 0,
        };
        let hit = packet.kind == Kind::Data && before == 0;
        Fate { late_by: if hit { Span::from_us(late) } else { Span::ZERO }, ..PASS }
    };
    assert_eq!(World::new(&tcp, segments(200), path).run(10_000).retransmitted(), []);
    // Alone it is sent again, at 50 us.
    let alone = World::new(&tcp, segments(200), late(17, Span::from_us(12))).run(10_000);
    assert_eq!(alone.retransmitted(), [(Time::ZERO + RTT + RTT / 4, 17)]);
}

#[test]
fn a_loss_is_repaired_one_reordering_window_after_something_later_arrived() {
    // All were sent at 0; what overtook arrived and was acknowledged at 40 us: 0 + rtt 40 + window
    // 10. The second loss is sent again as soon as half the window has left the network: with the
    // next round, at 80 us.
    let tcp = fixed(40, 0.25);
    let world = World::new(&tcp, segments(200), losing(&[0, 7])).run(10_000);
    let due = Time::ZERO + RTT + RTT / 4;
    assert_eq!(world.retransmitted(), [(due, 0), (Time::ZERO + RTT * 2, 7)]);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 1));
    assert_eq!(tcp.receiver_stats(&world.receiver).duplicates, 0);
}

#[test]
fn the_first_loss_is_found_at_once_by_three_sacked_segments_as_long_as_nothing_was_reordered() {
    // RFC 8985 §6.2 step 4: the window is zero if no reordering was seen and DupThresh segments are
    // SACKed.
    let tcp = rack(40);
    // Of the first window each comes a nanosecond behind the one before it.
    let path = |packet: &Packet, before| {
        let lost = packet.kind == Kind::Data && packet.seq == 0 && before == 0;
        let late_by = Span::from_ns(if packet.seq < 40 { packet.seq.into() } else { 0 });
        if lost { DROP } else { Fate { late_by, ..PASS } }
    };
    let world = World::new(&tcp, segments(200), path).run(10_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT + Span::from_ns(3), 0)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn with_fewer_than_three_sacked_the_window_is_a_quarter_of_the_round_trip() {
    // Two segments behind the loss at the end of a flow: counting would wait for the timeout.
    let tcp = rack(10);
    let world = World::new(&tcp, segments(10), losing(&[7])).run(1_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT + RTT / 4, 7)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn each_round_with_a_segment_sent_in_vain_widens_the_window_by_a_quarter() {
    // 18 is 5 us late, with one segment behind it: reordering is seen, nothing sent again. 30, of
    // the second round, is 15 us late: sent again after a quarter of 40 us, in vain. The D-SACK
    // makes it half, so 400 is waited for.
    let path = |packet: &Packet, before| {
        let late = match packet.seq {
            18 => 5,
            30 | 400 => 15,
            _ => 0,
        };
        let hit = packet.kind == Kind::Data && before == 0;
        Fate { late_by: if hit { Span::from_us(late) } else { Span::ZERO }, ..PASS }
    };
    let tcp = rack(20);
    let world = World::new(&tcp, segments(1_000), path).run(10_000);
    let again = Time::ZERO + RTT * 2 + RTT / 4;
    assert_eq!(world.retransmitted(), [(again, 30)]);
    let told: Vec<_> = world
        .sent(Kind::Ack)
        .filter(|sent| sent.packet.flags.has(PacketFlags::RETRANSMISSION))
        .map(|sent| sent.at)
        .collect();
    assert_eq!(told, [again + LATENCY], "the copy in vain is told of once");
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again_without_a_timeout() {
    // What is sent at the same time as the first retransmission arrives: the same rule, once more.
    let twice = |packet: &Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 4 && before < 2 { DROP } else { PASS }
    };
    let tcp = rack(20);
    let world = World::new(&tcp, segments(200), twice).run(10_000);
    let again: Vec<u32> = world.retransmitted().iter().map(|sent| sent.1).collect();
    assert_eq!((again, tcp.sender_stats(&world.sender).timeouts), (vec![4, 4], 0));
    // RFC 6675 needs the timer for it.
    let counting = reno(|config| (config.sack, config.initial_window) = (true, 20));
    let world = World::new(&counting, segments(200), twice).run(10_000);
    assert_eq!(counting.sender_stats(&world.sender).timeouts, 1);
}

#[test]
fn a_timeout_sends_what_did_not_arrive_and_nothing_else() {
    // The last three are lost: nothing later arrives, so only the timer can tell.
    let tcp = rack(10);
    let world = World::new(&tcp, segments(10), losing(&[7, 8, 9])).run(1_000);
    let again: Vec<u32> = world.retransmitted().iter().map(|sent| sent.1).collect();
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((again, stats.timeouts), (vec![7, 8, 9], 1));
    assert_eq!(tcp.receiver_stats(&world.receiver).duplicates, 0);
}

#[test]
fn a_loss_halves_the_window_once_a_round_trip() {
    let tcp = fixed(40, 0.25);
    let world = World::new(&tcp, segments(1_000), losing(&[0, 3, 9])).run(10_000);
    // 40 outstanding, of which none is acknowledged: half of them, whatever was lost.
    let least = world.trace.iter().map(|step| step.cwnd).fold(f64::INFINITY, f64::min);
    assert!((least - 20.0).abs() < 1e-9, "{least}");
    assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 1);
}

fn buffered(hold_us: u64, most: u32) -> Tcp {
    reno(|config| {
        config.initial_window = 20;
        (config.reorder_hold, config.reorder_segments) = (Span::from_us(hold_us), most);
    })
}

#[test]
fn the_buffer_hides_what_is_late_from_tcp() {
    let tcp = buffered(20, 64);
    let world = World::new(&tcp, segments(100), late(2, Span::from_us(15))).run(10_000);
    let (sender, receiver) = (tcp.sender_stats(&world.sender), tcp.receiver_stats(&world.receiver));
    assert_eq!((sender.duplicate_acks, sender.retransmissions, receiver.out_of_order), (0, 0, 0));
    assert_eq!(receiver.segments_received, 100);
}

#[test]
fn the_buffer_costs_a_loss_its_time_and_no_timeout() {
    let tcp = buffered(20, 64);
    let world = World::new(&tcp, segments(100), losing(&[2])).run(10_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT + Span::from_us(20), 2)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn a_buffer_that_is_full_passes_on_what_it_holds() {
    // 5 segments behind the gap, one too many for 4: given up at once.
    let tcp = buffered(20, 4);
    let world = World::new(&tcp, segments(100), losing(&[2])).run(10_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT, 2)]);
}

#[test]
fn the_buffer_and_delayed_acknowledgements_share_a_timer() {
    let tcp = reno(|config| {
        (config.ack_every, config.ack_timeout) = (4, Span::from_us(30));
        (config.initial_window, config.reorder_hold) = (7, Span::from_us(50));
    });
    // Segments 0 to 4 in order, 6 held behind 5, which is lost: the acknowledgement of 4 is delayed
    // by 30 us, 6 goes up after 50 us.
    let world = World::new(&tcp, segments(7), losing(&[5])).run(1_000);
    let acks: Vec<_> = world.sent(Kind::Ack).map(|sent| (sent.at, sent.packet.seq)).collect();
    let arrived = Time::ZERO + LATENCY;
    let expected = [(arrived, 4), (arrived + Span::from_us(30), 5), (arrived + Span::from_us(50), 5)];
    assert_eq!(acks[..3], expected);
}

#[test]
fn what_was_acknowledged_with_the_first_that_came_beyond_a_hole_was_not_late() {
    // The first of two waits for its acknowledgement when the third tells of a hole: one answer for
    // both. Nothing was reordered, so that three that overtake are a loss at once.
    let tcp = reno(|config| {
        (config.sack, config.rack, config.initial_window, config.ack_every) = (true, true, 6, 2);
    });
    let world = World::new(&tcp, segments(5), losing(&[1])).run(10_000);
    assert_eq!(world.retransmitted(), [(Time::ZERO + RTT, 1)]);
}
