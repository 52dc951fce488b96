//! Selective repeat below a cap.

use proptest::prelude::*;
use weft_packet::{Kind, Packet};
use weft_transport::irn::IrnConfig;
use weft_transport::{Irn, KnownFabric, Protocol, RdmaProfile, Resends};
use weft_units::{Bytes, Rate, Span, Time};

use crate::world::{Fate, LATENCY, World, full, losing, passing};

fn irn(change: impl FnOnce(&mut IrnConfig)) -> Irn {
    let mut config = IrnConfig::default();
    change(&mut config);
    config.build().unwrap()
}

const PACKET: Span = Span::from_ps(1_086 * 80);

#[test]
fn the_cap_is_what_the_longest_round_trip_holds_unless_it_is_given() {
    let mut irn = irn(|_| ());
    assert!(irn.needs_fabric());
    // IRN §4.1: 24 us at 40 Gbit/s are 120 KB, about 110 packets of 1 KB with headers; the last one
    // in part.
    let pace = Rate::from_gbps(40).ps_per_byte();
    irn.configure(KnownFabric { base_rtt: Span::from_us(24), pace, trims: false });
    assert!((irn.window(&irn.sender(full(1))).unwrap().cwnd - 111.0).abs() < 1e-9);
    assert!(!super::irn::irn(|config| config.bdp_cap = Some(Bytes::new(5_000))).needs_fabric());
}

#[test]
fn only_what_was_lost_is_sent_again() {
    let irn = irn(|_| ());
    let world = World::new(&irn, full(300), losing(&[2, 5, 6])).run(10_000);
    let segments = world.segments();
    let mut again = segments.clone();
    let mut seen = std::collections::BTreeSet::new();
    again.retain(|&segment| !seen.insert(segment));
    assert_eq!(again, [2, 5, 6]);
    // 2 is known to be lost when 3 came: four packets and two latencies from the beginning.
    let resent = world.sent(Kind::Data).filter(|sent| sent.packet.seq == 2).nth(1).unwrap();
    let heard = Time::ZERO + PACKET.saturating_mul(4) + LATENCY + LATENCY;
    assert!(resent.at >= heard && resent.at.since(heard) < PACKET);
    let stats = irn.sender_stats(&world.sender);
    assert_eq!((stats.retransmissions, stats.fast_recoveries, stats.timeouts), (3, 1, 0));
    let stats = irn.receiver_stats(&world.receiver);
    assert_eq!((stats.segments_received, stats.duplicates, stats.refused), (300, 0, 0));
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timer() {
    let path = |packet: &Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 2 && before < 2 { Fate::Drop } else { Fate::Pass }
    };
    let irn = irn(|_| ());
    let world = World::new(&irn, full(50), path).run(10_000);
    let stats = irn.sender_stats(&world.sender);
    assert_eq!((stats.retransmissions, stats.timeouts), (2, 1));
    assert_eq!(stats.timed_out, Span::from_us(100), "one packet is missing: RTO_low");
}

#[test]
fn a_flow_of_few_packets_has_the_short_timeout_and_one_of_many_the_long_one() {
    let lost_first = |packet: &Packet, before| {
        if packet.kind == Kind::Data && before == 0 { Fate::Drop } else { Fate::Pass }
    };
    for (packets, us) in [(1, 100), (2, 100), (3, 320), (9, 320)] {
        let irn = irn(|_| ());
        let world = World::new(&irn, full(packets), lost_first).run(10_000);
        let at: Vec<Time> = world.sent(Kind::Data).map(|sent| sent.at).collect();
        let (last, again) = (at[packets as usize - 1], at[packets as usize]);
        assert_eq!(again.since(last), Span::from_us(us), "{packets} packets");
        assert!(world.done.is_some());
    }
}

/// How many packets beyond the first missing one are out, at most, as the receiver's answers tell
/// the sender.
fn most_in_flight(world: &World<'_, Irn>) -> u32 {
    let mut answers: Vec<(Time, u32)> = world
        .log
        .iter()
        .filter(|sent| matches!(sent.packet.kind, Kind::Ack | Kind::Nack))
        .map(|sent| (sent.at + LATENCY, sent.packet.seq))
        .collect();
    answers.sort_unstable();
    let (mut acked, mut next, mut most, mut place) = (0, 0, 0, 0);
    for sent in world.sent(Kind::Data) {
        while place < answers.len() && answers[place].0 <= sent.at {
            acked = acked.max(answers[place].1);
            place += 1;
        }
        next = next.max(sent.packet.seq + 1);
        most = most.max(next - acked);
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is lost or late: no more than the cap is out, everything comes, and each byte
    /// counts once.
    #[test]
    fn never_more_than_the_cap_is_in_flight(
        fates in prop::collection::vec(0u8..12, 1..400),
        cap in 1u32..60,
        packets in 1u32..200,
        ack_every in 1u16..5,
        resends in prop::sample::select(vec![Resends::Missing, Resends::Onwards]),
        nack_us in 0u64..6,
    ) {
        let irn = irn(|config| {
            config.resends = resends;
            config.nack_interval = Span::from_us(nack_us);
            config.bdp_cap = Some(Bytes::new(u64::from(cap) * 1_086));
            config.ack_every = ack_every;
        });
        let mut number = 0;
        let path = |_: &Packet, before| {
            number += 1;
            match fates.get(number).copied().unwrap_or(0) {
                0 if before < 3 => Fate::Drop,
                1 => Fate::LateBy(Span::from_us(7)),
                2 => Fate::LateBy(Span::from_us(40)),
                _ => Fate::Pass,
            }
        };
        let world = World::new(&irn, full(packets), path).run(200_000);
        prop_assert!(world.done.is_some());
        prop_assert_eq!(world.completed.len(), 1);
        prop_assert!(most_in_flight(&world) <= cap);
        let stats = irn.receiver_stats(&world.receiver);
        prop_assert_eq!(stats.segments_received - u64::from(stats.duplicates), u64::from(packets));
    }
}

#[test]
fn an_idle_path_is_filled_without_a_pause_if_the_cap_holds_it() {
    let mut irn = irn(|_| ());
    let (base_rtt, pace) = (LATENCY + LATENCY + PACKET.saturating_mul(2), Rate::from_gbps(100).ps_per_byte());
    irn.configure(KnownFabric { base_rtt, pace, trims: false });
    let world = World::new(&irn, full(1_000), passing).run(20_000);
    assert_eq!(world.completed, [Time::ZERO + PACKET.saturating_mul(1_000) + LATENCY]);
}

/// In the simulator of ConWeave a complaint slows its sender, marked or not.
#[test]
fn complaints_count_as_notifications_where_that_is_asked_for() {
    let with = |nack_notifies| {
        irn(|config| *config = IrnConfig { nack_notifies, ..IrnConfig::of(RdmaProfile::ConweaveNs3) })
    };
    let cnps =
        |irn: &Irn| irn.sender_stats(&World::new(irn, full(100), losing(&[20])).run(10_000).sender).cnps;
    assert_eq!(cnps(&with(false)), 0);
    assert!(cnps(&with(true)) > 0);
}

/// A packet that is overtaken is sent again in any case. By the paper that is all; in the simulator
/// of ConWeave so is all that is under way when its sender hears of it, but what it knows to have
/// come.
#[test]
fn what_is_overtaken_costs_one_packet_or_all_that_are_under_way() {
    let late = |packet: &Packet, before| {
        if packet.kind == Kind::Data && packet.seq == 20 && before == 0 {
            Fate::LateBy(Span::from_ns(200))
        } else {
            Fate::Pass
        }
    };
    let segments = |resends| {
        let irn = irn(|config| config.resends = resends);
        World::new(&irn, full(300), late).run(10_000).segments()
    };
    let once = segments(Resends::Missing);
    let turn = once.iter().position(|&segment| segment == 20).unwrap();
    let again = turn + 1 + once[turn + 1..].iter().position(|&segment| segment == 20).unwrap();
    assert_eq!(once.len(), 301);
    // 21 and 22 overtake it within 200 ns. Its sender hears of 21 when it has sent all before
    // `again`, and goes back.
    let all = segments(Resends::Onwards);
    assert_eq!(all[..=again], once[..=again]);
    assert_eq!(all[again + 1], 23, "21 and 22 are known to have come");
    assert_eq!(all.len() - 300, again - 20 - 2, "all that was under way but those two");
}
