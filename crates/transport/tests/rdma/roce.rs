//! Go-back-N, and when notifications are sent.

use weft_packet::{Kind, PacketFlags};
use weft_transport::roce::RoceConfig;
use weft_transport::{CnpBy, Protocol, RdmaProfile, Roce};
use weft_units::{Bytes, Span, Time};

use crate::world::{Fate, LATENCY, World, full, losing, marking, passing};

fn roce(change: impl FnOnce(&mut RoceConfig)) -> Roce {
    let mut config = RoceConfig::default();
    change(&mut config);
    config.build().unwrap()
}

/// A full packet on the cable of 100 Gbit/s.
const PACKET: Span = Span::from_ps(1_086 * 80);

#[test]
fn packets_leave_one_after_the_other_and_each_is_acknowledged() {
    let roce = roce(|_| ());
    let world = World::new(&roce, full(5), passing).run(100);
    assert_eq!(world.segments(), [0, 1, 2, 3, 4]);
    let acks: Vec<(u32, u16)> =
        world.sent(Kind::Ack).map(|sent| (sent.packet.seq, sent.packet.wire_bytes)).collect();
    assert_eq!(acks, [(1, 66), (2, 66), (3, 66), (4, 66), (5, 66)]);
    assert_eq!(world.completed, [Time::ZERO + PACKET.saturating_mul(5) + LATENCY]);
    assert_eq!(world.done, Some(world.completed[0] + LATENCY));
}

#[test]
fn the_sender_goes_back_to_exactly_the_packet_that_was_lost() {
    let roce = roce(|_| ());
    // 2 is lost. 3 arrives after four packets and one latency; the complaint takes another one:
    // then 10.1 us / 86.88 ns + 4 = 120 packets are out.
    let world = World::new(&roce, full(300), losing(&[2])).run(10_000);
    let segments = world.segments();
    let turn = segments.iter().position(|&segment| segment == 2).unwrap();
    let again = (turn + 1..segments.len()).find(|&place| segments[place] == 2).unwrap();
    let heard = LATENCY + LATENCY + PACKET.saturating_mul(4);
    assert_eq!(again as u64, heard.as_ps().div_ceil(PACKET.as_ps()), "at once when it hears of it");
    assert!(segments[..again].iter().copied().eq(0..again as u32));
    assert!(segments[again..].iter().copied().eq(2..300), "everything from there on, in order");
    let nacks: Vec<u32> = world.sent(Kind::Nack).map(|sent| sent.packet.seq).collect();
    assert_eq!(nacks, [2], "one complaint");
    let stats = roce.sender_stats(&world.sender);
    assert_eq!((stats.retransmissions, stats.nacks, stats.fast_recoveries), (again as u32 - 2, 1, 1));
    let stats = roce.receiver_stats(&world.receiver);
    assert_eq!((stats.refused, stats.duplicates), (again as u32 - 3, 0));
    assert_eq!(stats.segments_received, 300 + u64::from(stats.refused), "what is refused arrived, too");
    assert_eq!(stats.out_of_order, stats.refused);
}

#[test]
fn a_complaint_that_is_lost_is_made_again_or_the_timer_sees_to_it() {
    let path = |packet: &weft_packet::Packet, before| match packet.kind {
        Kind::Data if packet.seq == 2 && before == 0 => Fate::Drop,
        Kind::Nack if before == 0 => Fate::Drop,
        _ => Fate::Pass,
    };
    let once = roce(|config| config.timeout = Span::from_us(200));
    let world = World::new(&once, full(300), path).run(10_000);
    let stats = once.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.nacks), (1, 0));
    // The timer runs from the last answer, which was of packet 1.
    assert_eq!(stats.timed_out, Span::from_us(200));
    let repeated = roce(|config| {
        config.timeout = Span::from_us(200);
        config.nack_interval = Span::from_us(4);
    });
    let world = World::new(&repeated, full(300), path).run(10_000);
    let stats = repeated.sender_stats(&world.sender);
    assert_eq!(stats.timeouts, 0);
    assert!(stats.nacks >= 1);
}

#[test]
fn a_lost_last_packet_waits_for_the_timer() {
    let roce = roce(|config| config.timeout = Span::from_us(150));
    let world = World::new(&roce, full(4), losing(&[3])).run(100);
    assert_eq!(world.segments(), [0, 1, 2, 3, 3]);
    let last_ack = PACKET.saturating_mul(3) + LATENCY + LATENCY;
    let again = world.sent(Kind::Data).last().unwrap();
    assert_eq!(again.at, Time::ZERO + last_ack + Span::from_us(150), "from the last acknowledgement on");
    assert!(again.packet.flags.has(PacketFlags::RETRANSMISSION));
}

/// The timer begins anew with answers, not with packets (IBTA vol. 1 §9.7.6.1.3): a flow that has
/// much to send notices before its end that what it went back for was lost again.
#[test]
fn a_flow_that_goes_on_sending_times_out_as_well() {
    let path = |packet: &weft_packet::Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 2 && before < 2 { Fate::Drop } else { Fate::Pass }
    };
    let roce = roce(|config| config.timeout = Span::from_us(150));
    let world = World::new(&roce, full(10_000), path).run(100_000);
    let complaint = world.sent(Kind::Nack).next().unwrap().at + LATENCY;
    let third = world.sent(Kind::Data).filter(|sent| sent.packet.seq == 2).nth(2).unwrap();
    let late = third.at.since(complaint + Span::from_us(150));
    assert!(late < PACKET, "the cable is busy: {late}");
    assert_eq!(roce.sender_stats(&world.sender).timeouts, 1);
    assert!(world.done.is_some());
}

#[test]
fn a_lost_acknowledgement_costs_nothing_but_the_last_one() {
    let path = |packet: &weft_packet::Packet, before| {
        if packet.kind == Kind::Ack && before == 0 { Fate::Drop } else { Fate::Pass }
    };
    let roce = roce(|config| config.timeout = Span::from_us(150));
    let world = World::new(&roce, full(3), path).run(100);
    // Everything goes again, and each copy is acknowledged: the receiver has it all.
    assert_eq!(world.segments(), [0, 1, 2, 0, 1, 2]);
    assert_eq!((world.completed.len(), roce.receiver_stats(&world.receiver).duplicates), (1, 3));
    assert!(world.done.is_some());
}

#[test]
fn a_window_holds_back_what_goes_beyond_it_and_asks_for_an_answer() {
    let roce = roce(|config| {
        config.window = Some(Bytes::new(4 * 1_024));
        config.ack_every = 100;
    });
    let world = World::new(&roce, full(8), passing).run(1_000);
    let at: Vec<Time> = world.sent(Kind::Data).map(|sent| sent.at).collect();
    let round = PACKET.saturating_mul(4) + LATENCY + LATENCY;
    assert_eq!(at[4], Time::ZERO + round, "the fifth after the answer to the fourth");
    let acks: Vec<u32> = world.sent(Kind::Ack).map(|sent| sent.packet.seq).collect();
    assert_eq!(acks, [4, 8]);
}

#[test]
fn notifications_are_apart_by_their_interval_and_halve_the_rate_first() {
    let roce = roce(|_| ());
    let world = World::new(&roce, full(3_000), marking).run(20_000);
    let cnps: Vec<Time> = world.sent(Kind::Cnp).map(|sent| sent.at).collect();
    assert!(cnps.len() > 3);
    for pair in cnps.windows(2) {
        assert!(pair[1].since(pair[0]) >= Span::from_us(50), "N is 50 us");
    }
    // The first one is heard after a packet and two latencies: from then on packets are twice as
    // far apart.
    let heard = Time::ZERO + PACKET + LATENCY + LATENCY;
    let gaps: Vec<(Time, Span)> = {
        let at: Vec<Time> = world.sent(Kind::Data).map(|sent| sent.at).collect();
        at.windows(2).map(|pair| (pair[0], pair[1].since(pair[0]))).collect()
    };
    let before = gaps.iter().filter(|(at, _)| *at + PACKET < heard);
    assert!(before.into_iter().all(|(_, gap)| *gap == PACKET));
    let (_, gap) = gaps.iter().find(|(at, _)| *at > heard).unwrap();
    let half = PACKET.saturating_mul(2).as_ps();
    assert!(gap.as_ps().abs_diff(half) <= 1, "{} ps, not {half}", gap.as_ps());
    assert_eq!(roce.sender_stats(&world.sender).cnps as usize, cnps.len());
}

#[test]
fn where_marks_are_told_in_acknowledgements_there_is_no_packet_of_its_own() {
    let roce = roce(|config| *config = RoceConfig::of(RdmaProfile::ConweaveNs3));
    let world = World::new(&roce, full(500), marking).run(20_000);
    assert_eq!(world.sent(Kind::Cnp).count(), 0);
    assert!(world.sent(Kind::Ack).all(|sent| sent.packet.flags.has(PacketFlags::ECE)));
    assert_eq!(roce.sender_stats(&world.sender).cnps, 500);
    let off = super::roce::roce(|config| {
        config.dcqcn = false;
        config.cnp_by = CnpBy::Packet;
    });
    let world = World::new(&off, full(500), marking).run(20_000);
    assert_eq!(world.sent(Kind::Cnp).count(), 0, "nobody listens");
    assert_eq!(world.completed, [Time::ZERO + PACKET.saturating_mul(500) + LATENCY]);
}

#[test]
fn a_trimmed_packet_is_one_that_is_missing() {
    let path = |packet: &weft_packet::Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 1 && before == 0 { Fate::Trim } else { Fate::Pass }
    };
    let roce = roce(|_| ());
    let world = World::new(&roce, full(3), path).run(100);
    assert_eq!(world.segments(), [0, 1, 2, 1, 2]);
    let stats = roce.receiver_stats(&world.receiver);
    assert_eq!((stats.trimmed, stats.nacks_sent, stats.refused), (1, 1, 1));
}

#[test]
fn what_makes_no_sense_is_refused_by_key() {
    let refused = |change: fn(&mut RoceConfig)| {
        let mut config = RoceConfig::default();
        change(&mut config);
        config.build().unwrap_err().to_string()
    };
    assert_eq!(refused(|config| config.mtu = Bytes::new(0)), "mtu is 0B; allowed: 1B to 32767B");
    assert_eq!(refused(|config| config.g = 2.0), "g is 2; allowed: above 0, at most 1");
    assert_eq!(refused(|config| config.ack_every = 0), "ack_every is 0; allowed: 1 packet or more");
    assert_eq!(refused(|config| config.window = Some(Bytes::new(0))), "window is 0B; allowed: more than 0B");
    assert_eq!(refused(|config| config.timeout = Span::ZERO), "timeout is 0ps; allowed: 1us or more");
}
