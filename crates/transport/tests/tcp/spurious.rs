//! Reductions that are taken back since nothing was lost: Eifel and F-RTO, by hand, in a world
//! where a packet takes 20 us each way.

use std::ops::Range;

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::tcp::DctcpConfig;
use weft_transport::{Protocol, Tcp};
use weft_units::{Bytes, Rate, Span, Time};

use crate::world::{DROP, Fate, PASS, World, at_us, by_time, dctcp, losing, segments};

/// The first copies of these segments are late.
fn late(segments: Range<u32>, by: Span) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        let hit = packet.kind == Kind::Data && before == 0 && segments.contains(&packet.seq);
        Fate { late_by: if hit { by } else { Span::ZERO }, ..PASS }
    }
}

/// The window when this segment was sent first.
fn window_at(world: &World, segment: u32) -> f64 {
    let sent = world.sent(Kind::Data).find(|sent| sent.packet.seq == segment).unwrap().at;
    world.trace.iter().rev().find(|step| step.at <= sent).unwrap().cwnd
}

/// A flow of 1,000 segments over a cable of 10 Gbit/s, of which some are overtaken.
fn overtaken(tcp: &Tcp, segments_late: Range<u32>, by: Span) -> World<'_> {
    World::new(tcp, segments(1_000), late(segments_late, by)).with_cable(Rate::from_gbps(10)).run(20_000)
}

#[test]
fn an_acknowledgement_that_answers_the_first_copy_takes_the_recovery_back() {
    // Segment 30 is 30 us late. It is sent again about 40 us after it was sent first, and arrives
    // before that copy: the acknowledgement echoes a time before anything was sent again (RFC 3522
    // §3.2).
    let after = |eifel| {
        let tcp = by_time(20, |config| config.eifel = eifel);
        let world = overtaken(&tcp, 30..31, Span::from_us(30));
        assert_eq!(world.retransmitted().len(), 1, "{:?}", world.retransmitted());
        assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 1);
        window_at(&world, 120)
    };
    let (with, without) = (after(true), after(false));
    assert!(with >= 30.0 && without < 0.6 * with, "{with} {without}");
}

#[test]
fn time_stamps_that_count_in_steps_tell_no_more_than_that() {
    // All of it happens within one tick of 1 ms.
    let after = |tick| {
        let tcp = by_time(20, |config| (config.eifel, config.timestamp_tick) = (true, tick));
        window_at(&overtaken(&tcp, 30..31, Span::from_us(30)), 120)
    };
    assert!(after(Span::from_ms(1)) < 0.6 * after(Span::ZERO), "{}", after(Span::from_ms(1)));
    assert!((after(Span::from_ns(100)) - after(Span::ZERO)).abs() < f64::EPSILON);
}

#[test]
fn what_was_taken_for_lost_with_a_late_segment_is_not_sent_again() {
    // Forty segments in a row are late: the first acknowledgements that skip them find all of them
    // lost. As soon as one of the first copies is answered, the others are in the network after
    // all.
    let again = |eifel| {
        let tcp = by_time(80, |config| (config.eifel, config.prr) = (eifel, true));
        let world = overtaken(&tcp, 100..140, Span::from_us(60));
        assert_eq!(world.completed.len(), 1);
        world.retransmitted().len()
    };
    assert!(again(true) < again(false), "{} {}", again(true), again(false));
}

#[test]
fn a_loss_is_no_reason_to_take_anything_back() {
    let window = |taking_back| {
        let tcp = by_time(20, |config| (config.eifel, config.frto) = (taking_back, taking_back));
        World::new(&tcp, segments(1_000), losing(&[30, 33, 34])).run(10_000).trace.last().unwrap().cwnd
    };
    assert!((window(true) - window(false)).abs() < f64::EPSILON);
}

/// A flow whose path holds everything from 40 us on back until 6 ms, which is longer than the
/// timeout of 5 ms.
fn held_up(frto: bool) -> (Vec<(Time, u32)>, f64) {
    let tcp = by_time(20, |config| config.frto = frto);
    let path = |packet: &Packet, _: u32| {
        let held = packet.kind == Kind::Data && packet.sent >= at_us(40) && packet.sent < at_us(6_000);
        Fate { late_by: if held { at_us(6_000).since(packet.sent) } else { Span::ZERO }, ..PASS }
    };
    let world = World::new(&tcp, segments(400), path).run(20_000);
    assert_eq!(world.completed.len(), 1);
    (world.retransmitted(), window_at(&world, 200))
}

#[test]
fn a_timeout_that_was_in_vain_sends_one_segment_again() {
    // RFC 5682 §3.1: the acknowledgement of segment 20 lets two new segments go, and that of 21,
    // which was sent once, tells that the timeout was in vain.
    let (again, window) = held_up(true);
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(again[0].1, 20);
    // As before the timeout.
    assert!(window >= 40.0, "{window}");
    let (again, window) = held_up(false);
    assert!(again.len() > 1, "{again:?}");
    assert!(window < 40.0, "{window}");
}

#[test]
fn two_new_segments_go_out_between_a_timeout_and_what_is_lost() {
    // All of the second window is lost. The copy of segment 20 is acknowledged, 60 and 61 are new,
    // and tell of the hole: then the rest is sent again.
    let lost: Vec<u32> = (20..60).collect();
    let sent_after = |frto: bool| {
        let tcp = by_time(20, |config| config.frto = frto);
        let world = World::new(&tcp, segments(400), losing(&lost)).run(20_000);
        let timeout = world.retransmitted()[0].0;
        assert_eq!(tcp.sender_stats(&world.sender).timeouts, 1);
        let after = world.sent(Kind::Data).filter(|sent| sent.at >= timeout).map(|sent| sent.packet.seq);
        (after.take(5).collect::<Vec<u32>>(), world.trace.last().unwrap().cwnd)
    };
    assert_eq!(sent_after(true).0, [20, 60, 61, 21, 22]);
    assert_eq!(sent_after(false).0, [20, 21, 22, 23, 24]);
}

#[test]
fn without_new_segments_a_timeout_is_followed_by_what_may_be_lost() {
    // The flow ends with what is lost: nothing new can be sent.
    let tcp = by_time(20, |config| config.frto = true);
    let lost: Vec<u32> = (20..30).collect();
    let world = World::new(&tcp, segments(30), losing(&lost)).run(20_000);
    let sent: Vec<u32> = world.retransmitted().iter().map(|again| again.1).collect();
    assert_eq!(sent, (20..30).collect::<Vec<u32>>());
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 1);
}

#[test]
fn the_receivers_window_may_leave_no_room_for_new_segments() {
    let tcp = by_time(20, |config| (config.frto, config.max_window) = (true, Some(Bytes::new(20 * 1_460))));
    let lost: Vec<u32> = (20..40).collect();
    let world = World::new(&tcp, segments(400), losing(&lost)).run(20_000);
    // The acknowledgement of 20 makes room for one segment.
    let timeout = world.retransmitted()[0].0;
    let after = world.sent(Kind::Data).filter(|sent| sent.at >= timeout).map(|sent| sent.packet.seq);
    assert_eq!(after.take(4).collect::<Vec<u32>>(), [20, 40, 21, 22]);
}

#[test]
fn a_loss_while_the_window_shrinks_for_a_mark_shrinks_it_no_further() {
    // Segment 0 is marked, 20 is lost, of one window: alpha is 1 at first, so that a mark halves
    // it.
    let path = |packet: &Packet, before: u32| match (packet.kind, packet.seq, before) {
        (Kind::Data, 0, 0) => Fate { marked: true, ..PASS },
        (Kind::Data, 20, 0) => DROP,
        _ => PASS,
    };
    let tcp = dctcp(|config: &mut DctcpConfig| {
        (config.sack, config.rack, config.initial_window, config.prr) = (true, true, 40, true);
    });
    let world = World::new(&tcp, segments(400), path).with_cable(Rate::from_gbps(10)).run(20_000);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.fast_recoveries, stats.timeouts, stats.retransmissions), (1, 0, 1));
    let end = world.trace.iter().find(|step| step.at > at_us(250)).unwrap();
    assert!(end.cwnd >= 19.0, "{}", end.cwnd);
}

#[test]
fn a_mark_says_that_there_was_congestion_whatever_was_late() {
    let after = |marked: bool| {
        let tcp = dctcp(|config: &mut DctcpConfig| {
            (config.sack, config.rack, config.initial_window) = (true, true, 20);
            (config.prr, config.eifel) = (true, true);
        });
        let mut delays = late(30..31, Span::from_us(30));
        // The mark comes with what tells of the hole.
        let path = move |packet: &Packet, before: u32| {
            let mark = marked && packet.kind == Kind::Data && (31..50).contains(&packet.seq);
            Fate { marked: mark, ..delays(packet, before) }
        };
        let world = World::new(&tcp, segments(1_000), path).with_cable(Rate::from_gbps(10)).run(20_000);
        assert!(world.sent(Kind::Ack).any(|sent| sent.packet.flags.has(PacketFlags::ECE)) == marked);
        window_at(&world, 120)
    };
    assert!(after(true) < 0.7 * after(false), "{} {}", after(true), after(false));
}

#[test]
fn a_recovery_in_which_nothing_could_be_sent_again_yet_is_taken_back_when_what_was_late_arrives() {
    // The first segment is marked: the window shrinks over a round trip, and leaves no room for
    // what is taken for lost when 11 to 13 have overtaken 9 and 10. At 50 us the first of these is
    // told of: neither was lost. The other is not sent again, then, and is told of at 100 us.
    let again = |eifel| {
        let tcp = dctcp(|config: &mut DctcpConfig| {
            (config.sack, config.rack, config.prr, config.initial_window) = (true, true, true, 14);
            (config.eifel, config.whole_numbers) = (eifel, true);
        });
        let path = |packet: &Packet, before: u32| {
            let is_first = packet.kind == Kind::Data && before == 0;
            let late = match packet.seq {
                9 if is_first => 10,
                10 if is_first => 60,
                _ => 0,
            };
            Fate { late_by: Span::from_us(late), marked: is_first && packet.seq == 0, ..PASS }
        };
        let world = World::new(&tcp, segments(40), path).run(10_000);
        assert_eq!(tcp.sender_stats(&world.sender).fast_recoveries, 1);
        world.retransmitted()
    };
    assert_eq!(again(true), []);
    assert_eq!(again(false), [(at_us(80), 10)]);
}
