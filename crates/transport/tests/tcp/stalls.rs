//! How long a receiver held data behind a hole, and how long timers ran, by hand.

use weft_packet::{Kind, Packet};
use weft_transport::Protocol;
use weft_units::{Span, Time};

use crate::world::{DROP, Fate, LATENCY, PASS, RTT, World, at_us, losing, reno, segments};

/// These segments take longer, the first time.
fn late(delays_us: &'static [(u32, u64)]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        let found = delays_us.iter().find(|(segment, _)| packet.seq == *segment);
        match found {
            Some((_, us)) if packet.kind == Kind::Data && before == 0 => {
                Fate { late_by: Span::from_us(*us), ..PASS }
            }
            _ => PASS,
        }
    }
}

#[test]
fn a_late_segment_stalls_the_receiver_until_it_arrives() {
    for sack in [false, true] {
        // 2 of 10 arrives 9 us after all others; the threshold is out of reach.
        let tcp = reno(|config| (config.dup_ack_threshold, config.sack) = (20, sack));
        let world = World::new(&tcp, segments(10), late(&[(2, 9)])).run(1_000);
        let stalls = tcp.receiver_stats(&world.receiver).stalls;
        assert_eq!((stalls.by_reordering, stalls.by_loss), (Span::from_us(9), Span::ZERO));
        assert_eq!(stalls.by_reordering_until(world.completed[0]), Span::from_us(9));
        assert_eq!(stalls.by_reordering_until(world.completed[0] + Span::from_us(1)), Span::ZERO);
    }
}

#[test]
fn two_holes_stall_one_after_the_other() {
    // 2 arrives 3 us late and 5 another 4 us later: the receiver waits for one of them all the time
    // from the first on.
    let tcp = reno(|config| config.dup_ack_threshold = 20);
    let world = World::new(&tcp, segments(10), late(&[(2, 3), (5, 7)])).run(1_000);
    assert_eq!(tcp.receiver_stats(&world.receiver).stalls.by_reordering, Span::from_us(7));
}

#[test]
fn a_lost_segment_stalls_until_its_retransmission_and_that_is_no_reordering() {
    let tcp = reno(|_| ());
    // Duplicates at 40 us send it again: it is there at 60 us, the others were at 20 us.
    let world = World::new(&tcp, segments(8), losing(&[4])).run(1_000);
    let stalls = tcp.receiver_stats(&world.receiver).stalls;
    assert_eq!((stalls.by_reordering, stalls.by_loss), (Span::ZERO, RTT));
    assert_eq!(stalls.by_reordering_until(world.completed[0]), Span::ZERO);
    assert_eq!(tcp.sender_stats(&world.sender).timed_out, Span::ZERO);
}

#[test]
fn timers_that_expired_are_added_up_with_their_backoff() {
    let tcp = reno(|_| ());
    let path = |packet: &Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 9 && before < 3 { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(10), path).run(1_000);
    // 5, 10 and 20 ms, from the last acknowledgement at 40 us on.
    assert_eq!(world.completed, [at_us(35_060)]);
    assert_eq!(tcp.sender_stats(&world.sender).timed_out, Span::from_ms(35));
    let world = World::new(&tcp, segments(10), |_: &Packet, _| PASS).run(1_000);
    assert_eq!(tcp.sender_stats(&world.sender).timed_out, Span::ZERO);
    assert_eq!(world.completed, [Time::ZERO + LATENCY]);
}
