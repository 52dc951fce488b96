//! Behaviour of Linux beyond the RFCs that all follow: probes for a lost tail, windows that shrink
//! over a round trip and grow back, and more. Each by hand, in a world where a packet takes 20 us
//! each way.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::tcp::{DctcpConfig, TcpConfig};
use weft_transport::{Protocol, Tcp};
use weft_units::{Bytes, Rate, Span, Time};

use crate::world::{
    DROP, Fate, PASS, RTT, World, at_us, by_time, dctcp, losing, marking, passes, reno, segments,
};

#[test]
fn the_lost_tail_of_a_flow_is_probed_for_after_two_round_trips_and_some_more() {
    // The second window is 40 to 59; nothing tells of its last two. The last acknowledgement, of
    // 57, comes at 80 us, with a smoothed round trip of 40 us: 80 + 2 x 40 + 15.
    let probing = |config: &mut TcpConfig| {
        (config.tail_loss_probe, config.probe_wait) = (true, Span::from_us(15));
        config.abc_limit = 1;
    };
    let tcp = by_time(40, probing);
    let world = World::new(&tcp, segments(60), losing(&[58, 59])).run(10_000);
    let probe = at_us(175);
    // The probe is the last segment. That it arrived tells that the one before it is lost.
    assert_eq!(world.retransmitted(), [(probe, 59), (probe + RTT, 58)]);
    let stats = tcp.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 1));
    // Without it, the timer has to tell.
    let without = by_time(40, |_| {});
    let world = World::new(&without, segments(60), losing(&[58, 59])).run(10_000);
    assert!(world.retransmitted()[0].0 > at_us(5_000));
}

/// When segments were sent again, by what a probe for the last one told, and timeouts.
fn repaired_by_a_probe(
    tcp: &Tcp,
    count: u32,
    path: impl FnMut(&Packet, u32) -> Fate,
) -> (Vec<(Span, u32)>, u32) {
    let world = World::new(tcp, segments(count), path).run(10_000);
    let again = world.retransmitted();
    let since_probe = again.iter().map(|&(at, segment)| (at.since(again[0].0), segment)).collect();
    (since_probe, tcp.sender_stats(&world.sender).timeouts)
}

#[test]
fn no_probe_is_sent_while_what_was_overtaken_is_waited_for() {
    // The second of two tells at 40 us that the first may be lost: it is sent again a quarter of
    // the round trip and 1 ms later. The probe would have been due at 180 us.
    let tcp = by_time(10, |config| {
        (config.handshake, config.tail_loss_probe) = (true, true);
        (config.probe_wait, config.rack_wait) = (Span::from_us(60), Span::from_us(1_000));
    });
    let world = World::new(&tcp, segments(2), losing(&[0])).run(2_000);
    assert_eq!(world.retransmitted(), [(at_us(40 + 40 + 10 + 1_000), 0)]);
}

#[test]
fn a_probe_that_is_faster_than_the_data_was_tells_of_a_loss_if_the_handshake_was_as_fast() {
    // The data waits 30 us in a queue, which the probe finds empty: without a handshake its answer
    // may be that of the first copy, which was late, since none was as fast.
    let path = |packet: &Packet, before: u32| match (packet.kind, before) {
        (Kind::Data, 0) if packet.seq >= 8 => DROP,
        (Kind::Data, 0) => Fate { late_by: Span::from_us(30), ..PASS },
        _ => PASS,
    };
    let found = |handshake| {
        let tcp = by_time(10, |config| (config.handshake, config.tail_loss_probe) = (handshake, true));
        repaired_by_a_probe(&tcp, 10, path)
    };
    assert_eq!(found(true), (vec![(Span::ZERO, 9), (RTT, 8)], 0));
    assert_eq!(found(false).1, 1);
}

#[test]
fn a_probe_tells_of_a_loss_though_its_answer_echoes_what_waited_for_its_acknowledgement() {
    // Of 0 to 6 that arrive, 6 waits for another one: the answer to the probe, 8, acknowledges it,
    // and echoes when it was sent. It is the last that the answer tells of, so its round trip
    // counts: 7, which was sent with it, has a quarter of the least round trip more.
    let found = |of_sacked| {
        let tcp = by_time(10, |config| {
            (config.tail_loss_probe, config.ack_every, config.rack_echo_of_sacked) = (true, 2, of_sacked);
        });
        repaired_by_a_probe(&tcp, 9, losing(&[7, 8]))
    };
    assert_eq!(found(false), (vec![(Span::ZERO, 8), (RTT + RTT / 4, 7)], 0));
    assert_eq!(found(true).1, 1);
}

#[test]
fn a_probe_where_one_segment_is_out_waits_for_an_acknowledgement_that_may_be_delayed() {
    let tcp = by_time(10, |config| {
        (config.tail_loss_probe, config.probe_wait_for_one) = (true, Span::from_us(700));
    });
    let world = World::new(&tcp, segments(11), losing(&[10])).run(1_000);
    // The last segment leaves at 40 us, with a smoothed round trip of 40 us.
    assert_eq!(world.retransmitted(), [(at_us(40 + 80 + 700), 10)]);
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn a_probe_is_new_data_where_there_is_some_and_never_later_than_the_timeout() {
    // All of the first window is lost but the window is full: the receiver's has room, so the probe
    // is segment 4. There is no sample yet: it is sent when the first timeout would be due.
    let probing = |config: &mut TcpConfig| config.tail_loss_probe = true;
    let tcp = by_time(4, probing);
    let lost = |packet: &Packet, before: u32| {
        if packet.kind == Kind::Data && before == 0 && packet.seq < 4 { DROP } else { PASS }
    };
    let world = World::new(&tcp, segments(20), lost).run(1_000);
    assert_eq!(world.new_data()[4], (at_us(10_000), 4));
    assert_eq!(tcp.sender_stats(&world.sender).timeouts, 0);
}

#[test]
fn what_a_probe_repaired_was_a_loss_and_halves_the_window() {
    // The last segment that the receiver's window allows is lost: the probe repairs it, and the
    // next acknowledgement beyond tells that there was a loss.
    let tcp = by_time(20, |config| {
        config.tail_loss_probe = true;
        config.max_window = Some(Bytes::new(20 * 1_460));
    });
    let world = World::new(&tcp, segments(200), losing(&[19])).run(10_000);
    let [(probe, 19)] = world.retransmitted()[..] else { panic!("{:?}", world.retransmitted()) };
    let after =
        world.trace.iter().filter(|step| step.at > probe).map(|step| step.cwnd).fold(f64::MAX, f64::min);
    // The acknowledgement that tells of it opens the window by one at most.
    assert!((10.0..=11.0).contains(&after), "{after}");
}

#[test]
fn the_least_timeout_may_be_beyond_the_round_trip() {
    let lost: Vec<u32> = (10..20).collect();
    let timeout = |beyond| {
        let tcp = by_time(10, |config| config.min_rto_beyond_rtt = beyond);
        let world = World::new(&tcp, segments(20), losing(&lost)).run(1_000);
        world.retransmitted()[0].0
    };
    // The last acknowledgement of the first window came at 40 us; one round trip of 40 us is known
    // by then.
    assert_eq!(timeout(false), at_us(40 + 5_000));
    assert_eq!(timeout(true), at_us(40 + 5_000 + 40));
}

/// With ticks of 1 ms a timer expires with the one after its time.
fn ticking(config: &mut TcpConfig) {
    config.timer_tick = Span::from_ms(1);
}

#[test]
fn timers_expire_with_ticks() {
    // As above, but the probe that would be due at 175 us comes with tick 2: it waits for less than
    // a tick, from within the first one.
    let tcp = by_time(40, |config| {
        (config.tail_loss_probe, config.abc_limit) = (true, 1);
        ticking(config);
    });
    let world = World::new(&tcp, segments(60), losing(&[58, 59])).run(10_000);
    assert_eq!(world.retransmitted(), [(at_us(2_000), 59), (at_us(2_000) + RTT, 58)]);
    // The timeout of 5 ms, set at 40 us, comes with tick 6.
    let lost: Vec<u32> = (10..20).collect();
    let tcp = by_time(10, ticking);
    let world = World::new(&tcp, segments(20), losing(&lost)).run(1_000);
    assert_eq!(world.retransmitted()[0], (at_us(6_000), 10));
    // So does one of a sender that counts; and a SYN is sent again after its 5 ms and a tick.
    let world_of = |tcp: &Tcp, lost: Kind| {
        let path = move |packet: &Packet, before: u32| {
            if packet.kind == lost && before == 0 && packet.seq == 0 { DROP } else { PASS }
        };
        World::new(tcp, segments(1), path).run(1_000).done
    };
    let tcp = reno(|config| (config.handshake, config.timer_tick) = (true, Span::from_ms(1)));
    assert_eq!(world_of(&tcp, Kind::Syn), Some(at_us(6_000) + RTT + RTT));
    assert_eq!(world_of(&tcp, Kind::Data), Some(at_us(6_000) + RTT));
}

#[test]
fn what_was_overtaken_is_lost_with_the_tick_after_its_time() {
    // 18 is lost, and 19 tells of it at 80 us, with a reordering window of a quarter of the round
    // trip.
    let tcp = by_time(10, |config| {
        (config.abc_limit, config.rack_adaptive) = (1, false);
        ticking(config);
    });
    let world = World::new(&tcp, segments(20), losing(&[18])).run(1_000);
    assert_eq!(world.retransmitted(), [(at_us(2_000), 18)]);
    let exact = by_time(10, |config| (config.abc_limit, config.rack_adaptive) = (1, false));
    let world = World::new(&exact, segments(20), losing(&[18])).run(1_000);
    assert_eq!(world.retransmitted(), [(at_us(90), 18)]);
}

#[test]
fn a_delayed_acknowledgement_comes_with_a_tick() {
    let tcp = reno(|config| {
        (config.ack_every, config.timer_tick) = (2, Span::from_ms(1));
        config.max_window = Some(Bytes::new(1_460));
    });
    let world = World::new(&tcp, segments(2), passes).run(1_000);
    // It waits for 1 ms from 20 us on.
    assert_eq!(world.done, Some(at_us(2_000 + 20 + 40)));
}

/// Segments that each acknowledgement of one round trip lets go, after a loss of the first in a
/// window of 40.
fn sent_in_recovery(prr: bool) -> Vec<usize> {
    let tcp = by_time(40, |config| (config.prr, config.limited_transmit) = (prr, true));
    // The acknowledgements come one after the other.
    let spread = |packet: &Packet, before: u32| {
        let nth = u64::from(packet.seq);
        let late_by =
            if packet.kind == Kind::Data && packet.seq < 40 { Span::from_ns(100 * nth) } else { Span::ZERO };
        Fate { dropped: packet.kind == Kind::Data && packet.seq == 0 && before == 0, late_by, ..PASS }
    };
    let world = World::new(&tcp, segments(400), spread).run(10_000);
    let recovery = world.retransmitted()[0].0;
    let ends = recovery + RTT;
    let mut by_ack: Vec<(Time, usize)> = Vec::new();
    for sent in world.sent(Kind::Data).filter(|sent| sent.at >= recovery && sent.at < ends) {
        match by_ack.last_mut() {
            Some((at, count)) if *at == sent.at => *count += 1,
            _ => by_ack.push((sent.at, 1)),
        }
    }
    by_ack.into_iter().map(|(_, count)| count).collect()
}

#[test]
fn a_window_may_shrink_over_a_round_trip() {
    // RFC 6937: 37 acknowledgements of recovery, one segment for every second of them; at once, as
    // RFC 5681 has it, the first 19 let nothing go.
    let (over, at_once) = (sent_in_recovery(true), sent_in_recovery(false));
    assert!(over.iter().all(|&count| count == 1), "{over:?}");
    assert!((18..=20).contains(&over.iter().sum::<usize>()), "{over:?}");
    assert!(at_once.iter().sum::<usize>().abs_diff(over.iter().sum()) <= 2, "{at_once:?}");
}

/// Segments that are sent again and when, if the first `lost` of 20 are lost, which were sent at
/// once after the handshake, at 40 us.
fn sent_again(lost: u32, prr: bool) -> Vec<(Time, usize)> {
    let lost: Vec<u32> = (0..lost).collect();
    let tcp = by_time(20, |config| (config.handshake, config.prr) = (true, prr));
    let world = World::new(&tcp, segments(20), losing(&lost)).run(10_000);
    let mut by_time: Vec<(Time, usize)> = Vec::new();
    for (at, _) in world.retransmitted() {
        match by_time.last_mut() {
            Some((last, count)) if *last == at => *count += 1,
            _ => by_time.push((at, 1)),
        }
    }
    by_time
}

#[test]
fn where_most_of_a_window_is_lost_recovery_begins_with_as_many_as_arrived() {
    // 16 to 19 arrive. The third of them tells that the others are lost: one for it, and one for
    // the fourth. Then two for each that arrives.
    assert_eq!(sent_again(16, true)[..3], [(at_us(80), 2), (at_us(120), 4), (at_us(160), 8)]);
    // RFC 5681 has a window of ten at once, less the one that is in the network; the fourth that
    // arrives makes room for it.
    assert_eq!(sent_again(16, false)[0], (at_us(80), 10));
}

#[test]
fn recovery_that_the_timer_begins_sends_one_segment_first() {
    // 18 and 19 are too few to tell at once: the others have a quarter of a round trip more.
    assert_eq!(sent_again(18, true)[..3], [(at_us(90), 1), (at_us(130), 2), (at_us(170), 4)]);
    assert_eq!(sent_again(18, false)[0], (at_us(90), 10));
}

#[test]
fn a_window_that_shrinks_for_a_mark_ends_where_it_would_have_been_at_once() {
    let marked = |prr| {
        let tcp = dctcp(|config: &mut DctcpConfig| {
            (config.sack, config.rack, config.initial_window, config.prr) = (true, true, 40, prr);
        });
        let world = World::new(&tcp, segments(1_000), marking(&[0])).run(100_000);
        let mark = world.trace.iter().position(|step| step.cwnd < 40.0).unwrap();
        // One round trip later.
        let later = world.trace.iter().find(|step| step.at > world.trace[mark].at + RTT).unwrap();
        later.cwnd
    };
    assert!((marked(true) - marked(false)).abs() <= 1.0, "{} {}", marked(true), marked(false));
}

#[test]
fn a_window_is_given_back_when_all_that_was_sent_again_was_in_vain() {
    // 30 is 60 us late: sent again, and the receiver tells that it came twice.
    let late = |packet: &Packet, before: u32| {
        let hit = packet.kind == Kind::Data && packet.seq == 30 && before == 0;
        Fate { late_by: if hit { Span::from_us(60) } else { Span::ZERO }, ..PASS }
    };
    let least = |undo| {
        let tcp = by_time(20, |config| config.undo = undo);
        let world = World::new(&tcp, segments(1_000), late).with_cable(Rate::from_gbps(10)).run(10_000);
        assert_eq!(world.retransmitted().len(), 1, "{:?}", world.retransmitted());
        let told = world.sent(Kind::Ack).find(|sent| sent.packet.flags.has(PacketFlags::RETRANSMISSION));
        let heard = told.unwrap().at + Span::from_us(20);
        world.trace.iter().find(|step| step.at >= heard && step.sent_new).unwrap().cwnd
    };
    assert!(least(true) >= 2.0 * least(false) - 2.0, "{} {}", least(true), least(false));
    assert!(least(true) >= 21.0);
}

#[test]
fn a_window_is_not_given_back_for_a_loss() {
    let window = |undo| {
        let tcp = by_time(20, |config| config.undo = undo);
        World::new(&tcp, segments(1_000), losing(&[30])).run(10_000).trace.last().unwrap().cwnd
    };
    assert!((window(true) - window(false)).abs() < f64::EPSILON);
}

#[test]
fn rules_that_need_losses_by_time_say_so() {
    let refused = |change: &dyn Fn(&mut TcpConfig)| {
        let mut config = TcpConfig::default();
        change(&mut config);
        config.build().unwrap_err().to_string()
    };
    for (key, message) in [
        ("tail_loss_probe", refused(&|config| config.tail_loss_probe = true)),
        ("prr", refused(&|config| config.prr = true)),
        ("undo", refused(&|config| config.undo = true)),
        ("eifel", refused(&|config| config.eifel = true)),
        ("frto", refused(&|config| config.frto = true)),
        ("fin", refused(&|config| config.fin = true)),
        ("pacing", refused(&|config| config.pacing = true)),
        ("small_queue", refused(&|config| config.small_queue = Span::from_ms(1))),
    ] {
        assert!(message.contains(key) && message.contains("unless rack is true"), "{message}");
    }
}
