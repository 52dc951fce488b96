//! Marks: DCTCP's estimate and reaction, the echo at the receiver, and classic ECN.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::tcp::EcnMode;
use weft_transport::{Protocol, Tcp};
use weft_units::{Bytes, Time};

use crate::world::{Fate, LATENCY, PASS, RTT, World, dctcp, losing, marking, reno, segments};

/// The values that a quantity went through, repetitions left out.
fn history(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut history: Vec<f64> = values.collect();
    history.dedup();
    history
}

#[test]
fn alpha_and_the_reduction_follow_rfc_8257_by_hand() {
    let tcp = dctcp(|config| {
        config.g = 0.25;
        config.max_window = Some(Bytes::new(10 * 1_460));
    });
    let world = World::new(&tcp, segments(60), marking(&[11, 12, 13, 14, 15])).run(10_000);
    // Windows: segment 0 | 1 to 10 | 11 to 20 | 21 and on. Marked shares 0, 0, 5/10, 0:
    // 3/4, 9/16, 27/64 + 1/8 = 35/64, 105/256.
    let alpha = history(world.trace.iter().map(|step| step.alpha));
    assert_eq!(alpha[..5], [1.0, 0.75, 0.5625, 0.546_875, 0.410_156_25]);
    // The first marked acknowledgement cuts with the alpha of the window before: 10 (1 - 9/32).
    let cwnd = history(world.trace.iter().map(|step| step.cwnd));
    assert_eq!(cwnd[..2], [10.0, 7.187_5]);
    // Then congestion avoidance from there: one segment of 7.19.
    assert!((cwnd[2] - (7.187_5 + 1.0 / 7.187_5)).abs() < 1e-12);
    assert_eq!(tcp.sender_stats(&world.sender).marked_acks, 5);
    assert_eq!(tcp.receiver_stats(&world.receiver).marked, 5);
}

#[test]
fn the_window_is_cut_once_per_window_and_does_not_grow_in_between() {
    let tcp = dctcp(|config| config.initial_window = 40);
    let all = |_: &_, _| Fate { marked: true, ..PASS };
    let world = World::new(&tcp, segments(200), all).run(10_000);
    // Everything is marked: alpha stays 1, every window halves, down to two segments.
    assert_eq!(history(world.trace.iter().map(|step| step.cwnd)), [40.0, 20.0, 10.0, 5.0, 2.5, 2.0]);
    for (round, cwnd) in (1u64..).zip([20.0, 10.0, 5.0]) {
        let cut = world.trace.iter().find(|step| step.cwnd <= cwnd).unwrap();
        assert_eq!(cut.at, Time::ZERO + RTT * round);
    }
}

#[test]
fn without_marks_dctcp_is_reno() {
    let lost = [30, 32, 90];
    let marked = dctcp(|_| {});
    let plain = reno(|_| {});
    let run = |tcp| World::new(tcp, segments(300), losing(&lost)).run(10_000);
    let (a, b) = (run(&marked), run(&plain));
    assert_eq!(a.completed, b.completed);
    assert_eq!(a.retransmitted(), b.retransmitted());
    assert_eq!(tcp_windows(&a), tcp_windows(&b));
}

fn tcp_windows(world: &World) -> Vec<(Time, f64)> {
    world.trace.iter().map(|step| (step.at, step.cwnd)).collect()
}

#[test]
fn a_change_of_marks_flushes_what_is_pending_with_the_old_echo() {
    let tcp = dctcp(|config| config.ack_every = 2);
    let world = World::new(&tcp, segments(10), marking(&[3, 4, 5])).run(1_000);
    let acks: Vec<_> = world
        .sent(Kind::Ack)
        .map(|sent| (sent.packet.seq, sent.packet.flags.has(PacketFlags::ECE)))
        .collect();
    // 2 is pending when 3 comes marked: 3 without echo, then 4 with; back at 6 nothing is pending.
    let expected = [(2, false), (3, false), (4, true), (6, true), (7, false), (9, false), (10, false)];
    assert_eq!(acks, expected);
}

#[test]
fn only_data_is_ecn_capable_and_only_if_marks_are_answered() {
    let ect = |tcp: Tcp, kind| {
        let world = World::new(&tcp, segments(30), losing(&[3])).run(1_000);
        let capable: Vec<bool> =
            world.sent(kind).map(|sent| sent.packet.flags.has(PacketFlags::ECT)).collect();
        (capable.iter().filter(|&&capable| capable).count(), capable.len())
    };
    assert_eq!(ect(dctcp(|_| {}), Kind::Data), (31, 31));
    assert_eq!(ect(dctcp(|_| {}), Kind::Ack).0, 0);
    assert_eq!(ect(reno(|_| {}), Kind::Data), (0, 31));
    // Classic: all but the retransmission (RFC 3168 §6.1.5).
    assert_eq!(ect(reno(|config| config.ecn = EcnMode::Classic), Kind::Data), (30, 31));
}

#[test]
fn classic_ecn_echoes_until_cwr_and_halves_once() {
    let tcp = reno(|config| {
        config.ecn = EcnMode::Classic;
        config.initial_window = 40;
    });
    let world = World::new(&tcp, segments(60), marking(&[0])).run(10_000);
    assert_eq!(history(world.trace.iter().map(|step| step.cwnd))[..2], [40.0, 20.0]);
    // The first new segment after the cut is 40: it alone says CWR, and ends the echo.
    let cwr = world.sent(Kind::Data).filter(|sent| sent.packet.flags.has(PacketFlags::CWR));
    assert_eq!(cwr.map(|sent| sent.packet.seq).collect::<Vec<_>>(), [40]);
    let echoes = world.sent(Kind::Ack).filter(|sent| sent.packet.flags.has(PacketFlags::ECE));
    assert_eq!(echoes.map(|sent| sent.packet.seq).collect::<Vec<_>>(), (1..=40).collect::<Vec<_>>());
}

#[test]
fn a_loss_halves_even_when_few_segments_are_marked() {
    // Alpha is near 0: a mark alone would cut next to nothing.
    let tcp = dctcp(|config| {
        config.initial_alpha = 0.0;
        config.initial_window = 40;
    });
    let world = World::new(&tcp, segments(400), losing(&[0])).run(10_000);
    let after = world.trace.iter().rfind(|step| step.at == Time::ZERO + RTT * 2).unwrap();
    assert!((20.0..21.0).contains(&after.cwnd), "{}", after.cwnd);
    assert_eq!(world.sent(Kind::Ack).next().map(|sent| sent.at), Some(Time::ZERO + LATENCY));
}

#[test]
fn marks_do_not_cut_again_in_the_window_of_a_loss() {
    // Ten segments are lost; what is sent again is marked. The way back is 1, 2, 4 all the same.
    let tcp = dctcp(|_| {});
    let path = |packet: &Packet, before| Fate {
        dropped: packet.kind == Kind::Data && packet.seq < 10 && before == 0,
        marked: true,
        ..PASS
    };
    let world = World::new(&tcp, segments(40), path).run(10_000);
    let timeout = world.retransmitted()[0].0;
    let in_round = |round| world.sent(Kind::Data).filter(|sent| sent.at == timeout + RTT * round).count();
    assert_eq!([0, 1, 2].map(in_round), [1, 2, 4]);
}

#[test]
fn a_mark_never_raises_the_window() {
    let tcp = dctcp(|config| config.initial_window = 1);
    let all = |_: &_, _| Fate { marked: true, ..PASS };
    let world = World::new(&tcp, segments(10), all).run(10_000);
    assert_eq!(history(world.trace.iter().map(|step| step.cwnd)), [1.0]);
}

#[test]
fn a_timeout_ends_the_time_without_growth_that_a_mark_began() {
    let tcp = dctcp(|_| {});
    let path = |packet: &Packet, before| Fate {
        dropped: packet.kind == Kind::Data && (1..10).contains(&packet.seq) && before == 0,
        marked: packet.seq == 0,
        ..PASS
    };
    let world = World::new(&tcp, segments(40), path).run(10_000);
    let timeout = world.retransmitted()[0].0;
    let in_round = |round| world.sent(Kind::Data).filter(|sent| sent.at == timeout + RTT * round).count();
    assert_eq!([0, 1, 2].map(in_round), [1, 2, 4]);
}
