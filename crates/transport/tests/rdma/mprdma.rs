//! MP-RDMA: a window over paths, and what becomes of losses.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weft_packet::{Kind, Packet};
use weft_transport::mprdma::MpRdmaConfig;
use weft_transport::{KnownFabric, MpRdma, Protocol};
use weft_units::{Rate, Span, Time};

use crate::world::{Fate, LATENCY, World, full, losing, marking, passing};

const PACKET: Span = Span::from_ps((1_024 + 70) * 80);

/// The world's round trip is that of the fabric.
fn mprdma(change: impl FnOnce(&mut MpRdmaConfig)) -> MpRdma {
    let mut config = MpRdmaConfig::default();
    change(&mut config);
    let mut mprdma = config.build().unwrap();
    let pace = Rate::from_gbps(100).ps_per_byte();
    mprdma.configure(KnownFabric { base_rtt: LATENCY + LATENCY + PACKET, pace, trims: false });
    mprdma
}

#[test]
fn an_idle_path_is_filled_from_the_first_packet_on() {
    let mprdma = mprdma(|_| ());
    let world = World::new(&mprdma, full(3_000), passing).run(50_000);
    assert_eq!(world.completed, [Time::ZERO + PACKET.saturating_mul(3_000) + LATENCY]);
    let stats = mprdma.sender_stats(&world.sender);
    assert_eq!((stats.timeouts, stats.nacks, stats.fast_recoveries), (0, 0, 0));
}

/// With a share q of marked packets, a window W grows by (1 - q) / W and shrinks by q / 2 a packet:
/// it stands at 2 (1 - q) / q.
#[test]
fn a_window_stands_where_growth_and_marks_are_even() {
    for every in [5u32, 10, 20, 40] {
        let mut came = 0u32;
        let path = |packet: &Packet, _| {
            came += u32::from(packet.kind == Kind::Data);
            let is_marked = packet.kind == Kind::Data && came.is_multiple_of(every);
            if is_marked { Fate::Mark } else { Fate::Pass }
        };
        let mprdma = mprdma(|config| config.initial_window = Some(10));
        let world =
            World::new(&mprdma, weft_transport::FlowSize::endless(1_024), path).run_until(Span::from_ms(20));
        let expected = 2.0 * f64::from(every - 1);
        let found = mprdma.window(&world.sender).unwrap().cwnd;
        println!("one of {every} marked: a window of {found:.2}, {expected:.0} by the closed form");
        assert!((found - expected).abs() < 1.0, "{found} where {expected} is the balance");
    }
}

#[test]
fn marks_alone_leave_one_packet() {
    let mprdma = mprdma(|_| ());
    let world = World::new(&mprdma, full(300), marking).run(50_000);
    assert!(world.done.is_some());
    assert!((mprdma.window(&world.sender).unwrap().cwnd - 1.0).abs() < 1e-9);
}

/// A lost packet is not missed before the bitmap is full: the packets of its 64 slots come, the
/// next one is refused.
#[test]
fn a_lost_packet_is_sent_again_when_the_bitmap_is_full() {
    let mprdma = mprdma(|config| config.probe = 0.0);
    let world = World::new(&mprdma, full(1_000), losing(&[100])).run(20_000);
    let nack = world.sent(Kind::Nack).next().unwrap();
    // Packet 164 is the first that is refused.
    assert_eq!(nack.at, Time::ZERO + PACKET.saturating_mul(165) + LATENCY);
    assert_eq!(nack.packet.seq, 100);
    let resent = world.sent(Kind::Data).filter(|sent| sent.packet.seq == 100).nth(1).unwrap();
    let heard = nack.at + LATENCY;
    assert!(resent.at >= heard && resent.at.since(heard) <= PACKET);
    let stats = mprdma.sender_stats(&world.sender);
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));
}

/// The last packets of a flow fill no bitmap: they are sent once more, for there is nothing new,
/// and no timeout is needed.
#[test]
fn last_packets_that_are_lost_need_no_timeout() {
    let mprdma = mprdma(|_| ());
    for lost in [vec![199], vec![198, 199], vec![150, 199]] {
        let world = World::new(&mprdma, full(200), losing(&lost)).run(20_000);
        let stats = mprdma.sender_stats(&world.sender);
        assert_eq!((world.completed.len(), stats.timeouts), (1, 0), "{lost:?} lost");
    }
}

/// With no acknowledgement left to call for anything, the timeout is what there is.
#[test]
fn a_whole_flow_that_is_lost_waits_for_the_timeout() {
    let mprdma = mprdma(|_| ());
    let world = World::new(&mprdma, full(3), losing(&[0, 1, 2])).run(1_000);
    let stats = mprdma.sender_stats(&world.sender);
    assert_eq!(stats.timeouts, 1);
    let again = world.sent(Kind::Data).nth(3).unwrap();
    assert_eq!(again.at, Time::ZERO + Span::from_us(320));
}

/// Four paths, one of them slower by 10 us. Beyond `delta` packets behind, nothing is called for by
/// it any more: nearly everything goes by the other three.
#[test]
fn a_path_that_is_far_behind_is_given_up() {
    let share = |delta: u32| {
        let path = |packet: &Packet, _| {
            let is_slow = packet.kind == Kind::Data && packet.entropy == 0;
            if is_slow { Fate::LateBy(Span::from_us(10)) } else { Fate::Pass }
        };
        let mprdma = mprdma(|config| {
            (config.paths, config.delta, config.bitmap) = (4, delta, 4_096);
            config.initial_window = Some(120);
        });
        let world = World::new(&mprdma, full(20_000), path).run(400_000);
        let mut by_path = BTreeMap::<u32, u32>::new();
        for sent in world.sent(Kind::Data).filter(|sent| sent.at > Time::ZERO + Span::from_us(300)) {
            *by_path.entry(sent.packet.entropy).or_default() += 1;
        }
        let total: u32 = by_path.values().sum();
        f64::from(by_path.get(&0).copied().unwrap_or_default()) / f64::from(total)
    };
    // 10 us are 114 packets of the cable.
    let (near, far) = (share(32), share(4_000));
    println!("the slow path carries {near:.4} with delta 32, {far:.4} with 4,000");
    assert!(near < 0.01, "{near}");
    assert!(far > 0.05, "{far}");
}

#[test]
fn what_makes_no_sense_is_refused_by_key() {
    let refused = |change: fn(&mut MpRdmaConfig)| {
        let mut config = MpRdmaConfig::default();
        change(&mut config);
        config.build().unwrap_err().to_string()
    };
    assert_eq!(refused(|config| config.delta = 65), "delta is 65; allowed: 1 to bitmap, 64");
    assert_eq!(refused(|config| config.bitmap = 0), "bitmap is 0; allowed: 1 to 16384");
    assert_eq!(refused(|config| config.paths = 65_537), "paths is 65537; allowed: 1 to 65536");
    assert_eq!(refused(|config| config.probe = 1.5), "probe is 1.5; allowed: 0 to 1");
    assert_eq!(refused(|config| config.min_window = 0.5), "min_window is 0.5; allowed: 1 to 1048576");
    assert_eq!(
        refused(|config| config.burst_after = 0.0),
        "burst_after is 0; allowed: above 0, at most 1000000"
    );
    assert_eq!(refused(|config| config.loss_cut = 1.0), "loss_cut is 1; allowed: 0 or more, below 1");
    assert_eq!(refused(|config| config.rto = Span::ZERO), "rto is 0ps; allowed: 1us or more");
    assert_eq!(
        refused(|config| config.initial_window = Some(0)),
        "initial_window is 0; allowed: 1 to 1048576"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever is lost, late or marked, in both directions: everything comes, and each byte counts
    /// once.
    #[test]
    fn everything_comes_whatever_the_paths_do(
        fates in prop::collection::vec(0u8..16, 1..900),
        packets in 1u32..400,
        (bitmap, delta) in (1u32..100).prop_flat_map(|bitmap| (Just(bitmap), 1..=bitmap)),
        (window, burst) in (1u32..200, 1u32..5),
        early in any::<bool>(),
        cuts in (0u32..9, 0u32..9),
    ) {
        let mprdma = mprdma(|config| {
            (config.bitmap, config.delta, config.burst) = (bitmap, delta, burst);
            (config.initial_window, config.early_retransmission) = (Some(window), early);
            (config.loss_cut, config.timeout_cut) = (f64::from(cuts.0) / 9.0, f64::from(cuts.1) / 9.0);
        });
        let mut number = 0;
        let path = |packet: &Packet, before| {
            number += 1;
            match fates.get(number).copied().unwrap_or(9) {
                0 | 1 if before < 3 => Fate::Drop,
                2 if packet.kind == Kind::Data && before < 3 => Fate::Trim,
                3 => Fate::LateBy(Span::from_us(7)),
                4 => Fate::LateBy(Span::from_us(150)),
                5 | 6 if packet.kind == Kind::Data => Fate::Mark,
                _ => Fate::Pass,
            }
        };
        let world = World::new(&mprdma, full(packets), path).run(400_000);
        prop_assert!(world.done.is_some());
        prop_assert_eq!(world.completed.len(), 1);
        let stats = mprdma.receiver_stats(&world.receiver);
        prop_assert_eq!(stats.segments_received, u64::from(packets + stats.duplicates + stats.refused));
        prop_assert!(u64::from(stats.out_of_order) < stats.segments_received);
    }
}
