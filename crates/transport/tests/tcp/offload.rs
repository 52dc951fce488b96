//! Segmentation offload of senders that count acknowledgements.

use weft_packet::{Kind, Packet};
use weft_transport::tcp::TcpConfig;
use weft_transport::{Protocol, Tcp};
use weft_units::{Bytes, Rate, Span, Time};

use crate::world::{DROP, Fate, LATENCY, PASS, World, passes, segments};

/// A TCP with a window of so many segments, which does not grow beyond slow start's one, and this
/// offload.
fn tcp(window: u32, offload: u64, sack: bool) -> Tcp {
    let config = TcpConfig {
        sack,
        initial_window: window,
        initial_ssthresh: Some(window),
        segmentation_offload: Bytes::new(offload),
        ..TcpConfig::default()
    };
    config.build().unwrap()
}

/// When each data segment was handed over for the first time.
fn handed_over(world: &World<'_>) -> Vec<Time> {
    let mut seen = 0;
    let new = |sent: &&crate::world::Sent| {
        let is_new = sent.packet.seq >= seen;
        seen = seen.max(sent.packet.seq + 1);
        is_new
    };
    world.sent(Kind::Data).filter(new).map(|sent| sent.at).collect()
}

/// 45 segments of 1,460 bytes are 65,700. They are handed over at once, and the last of them
/// arrives when all have left, one after the other at the rate of the cable: 45 services of 1.2 us
/// at 10 Gbit/s, and the way.
#[test]
fn a_burst_of_64_kilobytes_leaves_at_line_rate() {
    let rate = Rate::from_gbps(10);
    for sack in [false, true] {
        let tcp = tcp(45, 65_700, sack);
        let world = World::new(&tcp, segments(45), passes).with_cable(rate).run(1_000);
        assert_eq!(handed_over(&world), [Time::ZERO; 45], "sack {sack}");
        let all = rate.ps_per_byte().service(1_500) * 45;
        assert_eq!(world.completed, [Time::ZERO + all + LATENCY], "sack {sack}");
    }
}

#[test]
fn segments_are_handed_over_in_bursts_of_what_the_card_takes() {
    for sack in [false, true] {
        // Of a window of 200 there are four bursts of 45; the 20 that are left wait for more.
        let tcp = tcp(200, 65_700, sack);
        let world = World::new(&tcp, segments(1_000), passes).run(100_000);
        let handed = handed_over(&world);
        assert_eq!(handed.iter().filter(|at| **at == Time::ZERO).count(), 180, "sack {sack}");
        assert_eq!((handed.len(), world.completed.len()), (1_000, 1), "sack {sack}");
    }
}

/// With acknowledgements half a microsecond apart a sender without offload sends one segment for
/// each; one with offload waits until a third of its window is free: bursts of ten, of which 27 are
/// the 270 segments beyond the first window of 30.
#[test]
fn a_burst_waits_until_a_third_of_the_window_is_free() {
    let spread = |packet: &Packet, _: u32| match packet.kind {
        Kind::Data => Fate { late_by: Span::from_ns(500 * u64::from(packet.seq)), ..PASS },
        _ => PASS,
    };
    for sack in [false, true] {
        let bursts = |offload: u64| {
            let tcp = tcp(30, offload, sack);
            let mut times = handed_over(&World::new(&tcp, segments(300), spread).run(100_000));
            times.dedup();
            times.len()
        };
        assert!(bursts(0) > 250, "sack {sack}: {}", bursts(0));
        assert!((26..=34).contains(&bursts(65_700)), "sack {sack}: {}", bursts(65_700));
    }
}

/// Whatever is lost, a sender that waits for a burst comes to its end, without a timeout where
/// acknowledgements tell of the loss.
#[test]
fn losses_are_mended_as_without() {
    for sack in [false, true] {
        for lost in [0, 1, 17, 44, 45, 46, 89, 120, 298] {
            let tcp = tcp(60, 65_700, sack);
            let path = |packet: &Packet, before: u32| {
                if packet.kind == Kind::Data && packet.seq == lost && before == 0 { DROP } else { PASS }
            };
            let world = World::new(&tcp, segments(300), path).run(100_000);
            assert_eq!(world.completed.len(), 1, "sack {sack}, {lost} lost");
            let stats = tcp.sender_stats(&world.sender);
            // Of the last but one, one acknowledgement tells.
            let expected = if lost == 298 { (1, 1) } else { (1, 0) };
            assert_eq!((stats.retransmissions, stats.timeouts), expected, "sack {sack}, {lost} lost");
        }
    }
}
