//! How senders of Linux hand segments over: small queues, bursts of what the card takes and of what
//! the application wrote, pacing.

use weft_packet::{Kind, Packet};
use weft_transport::Tcp;
use weft_transport::tcp::TcpConfig;
use weft_units::{Bytes, Rate, Span, Time};

use crate::world::{Fate, PASS, RTT, World, by_time, passes, segments};

/// A flow over a cable of 1 Gbit/s that nothing marks, drops or delays.
fn over_cable(tcp: &Tcp) -> World<'_> {
    World::new(tcp, segments(12_000), passes).with_cable(Rate::from_gbps(1)).run(200_000)
}

/// Bytes of payload that wait at the sender's cable, with each segment as it is sent.
fn waiting(change: impl FnOnce(&mut TcpConfig)) -> Vec<u64> {
    let tcp = by_time(10, change);
    let service = Rate::from_gbps(1).ps_per_byte().service(1_500);
    let mut free = Time::ZERO;
    let world = over_cable(&tcp);
    let waits = world.sent(Kind::Data).map(|sent| {
        free = free.max(sent.at) + service;
        free.since(sent.at).as_ps() / service.as_ps() * 1_460
    });
    waits.collect()
}

/// The most of it.
fn most_waiting(change: impl FnOnce(&mut TcpConfig)) -> u64 {
    waiting(change).into_iter().max().unwrap()
}

/// Payload bytes that 1 Gbit/s carries in a millisecond.
const MS_OF_CABLE: u64 = 125_000 * 1_460 / 1_500;

#[test]
fn a_small_queue_keeps_a_flow_out_of_its_own_hosts_queue() {
    let small = |config: &mut TcpConfig| config.small_queue = Span::from_ms(1);
    let near = |most: u64, expected: f64| {
        let expected = expected * MS_OF_CABLE as f64;
        assert!((most as f64 - expected).abs() < 0.06 * expected + 1_460.0, "{most}, not {expected}");
    };
    // Nothing else limits this flow, so without it the window goes on growing, and all of it waits
    // at the host.
    assert!(most_waiting(|_| {}) > 12_000 * 1_460 / 2);
    // In slow start the rate counts twice, and the window may be twice of what is out: 4 ms.
    near(most_waiting(small), 4.0);
    // After it the window is what is out, and counts 1.2 times.
    let avoiding = |config: &mut TcpConfig| config.initial_ssthresh = Some(10);
    near(most_waiting(|config| (small(config), avoiding(config)).1), 1.2);
    // What packets take beyond their payload counts as well: here each is a burst.
    let with_overhead = |config: &mut TcpConfig| config.small_queue_overhead = Bytes::new(1_460);
    near(most_waiting(|config| (small(config), avoiding(config), with_overhead(config)).2), 0.6);
    // And there is a limit to all.
    let most = |limit| most_waiting(|config| (small(config), config.small_queue_most = Bytes::new(limit)).1);
    assert_eq!(most(29_200), 29_200);
    assert_eq!(most(29_201), 29_200 + 1_460, "one is let in when there is room, however large it is");
}

#[test]
fn whole_bursts_count_once_what_they_take_beyond_their_payload() {
    let mean = |overhead| {
        let waiting = waiting(|config| {
            (config.small_queue, config.initial_ssthresh) = (Span::from_ms(1), Some(10));
            (config.segmentation_offload, config.small_queue_overhead) =
                (Bytes::new(14_600), Bytes::new(overhead));
        });
        waiting.iter().sum::<u64>() as f64 / waiting.len() as f64
    };
    // Ten segments count as 11, but for the few of the burst whose turn it is. If all counted as
    // two, half as much would wait.
    let share = mean(1_460) / mean(0);
    assert!((0.8..0.99).contains(&share), "{share}");
}

#[test]
fn a_small_queue_costs_no_throughput_and_windows_do_not_grow_that_are_not_used() {
    let tcp = by_time(10, |config| config.small_queue = Span::from_ms(1));
    let world = over_cable(&tcp);
    // The cable is never idle after the first round trips.
    let all = Rate::from_gbps(1).ps_per_byte().service(1_500) * 12_000;
    assert!(world.completed[0].since(Time::ZERO) < all + RTT * 4, "{}", world.completed[0].as_us());
    let mut most = 0;
    for step in &world.trace {
        most = most.max(step.outstanding);
        assert!(step.cwnd <= 2.0 * f64::from(most) + 1.0, "{} of {most}", step.cwnd);
    }
}

#[test]
fn segments_are_handed_over_in_bursts_of_what_the_card_takes() {
    // 45 segments of 1,460 bytes are 65,700: of a window of 200 there are 4 such bursts. The 20
    // segments that are left wait for more, for an acknowledgement may come at any time.
    let tcp = by_time(200, |config| config.segmentation_offload = Bytes::new(45 * 1_460));
    let world = World::new(&tcp, segments(1_000), passes).run(100_000);
    assert_eq!(world.new_data().iter().filter(|sent| sent.0 == Time::ZERO).count(), 180);
    assert_eq!(world.completed.len(), 1);
}

#[test]
fn a_burst_waits_until_a_third_of_the_window_is_free() {
    // With each acknowledgement of two segments a sender without offload sends three at once (slow
    // start); one with offload waits.
    let spread = |packet: &Packet, _: u32| Fate {
        late_by: if packet.kind == Kind::Data {
            Span::from_ns(500 * u64::from(packet.seq))
        } else {
            Span::ZERO
        },
        ..PASS
    };
    let bursts = |offload: u64| {
        let tcp = by_time(30, |config| {
            config.segmentation_offload = Bytes::new(offload);
            config.initial_ssthresh = Some(30);
        });
        let world = World::new(&tcp, segments(300), spread).run(100_000);
        let mut times: Vec<Time> = world.new_data().iter().map(|sent| sent.0).collect();
        times.dedup();
        times.len()
    };
    // 270 segments beyond the first window, ten at a time or one at a time.
    assert!(bursts(0) > 250, "{}", bursts(0));
    assert!((26..=34).contains(&bursts(65_700)), "{}", bursts(65_700));
}

/// In congestion avoidance a window a round trip, times 1.2: 20 segments in 40 us, so one in 40 /
/// 24 us. The first window is not paced.
#[test]
fn a_paced_flow_sends_a_segment_every_round_trip_by_1_2_windows() {
    let window = 20;
    let paced = |pacing: bool| {
        by_time(window, |config| {
            config.pacing = pacing;
            config.initial_ssthresh = Some(2);
            config.max_window = Some(Bytes::new(u64::from(window) * config.mss.as_u64()));
        })
    };
    let tcp = paced(true);
    let world = World::new(&tcp, segments(100), passes).run(1_000);
    let sent = world.new_data();
    assert_eq!(sent.len(), 100);
    // From the second round trip on: the first one has no smoothed round trip to go by.
    let gaps: Vec<u64> = sent[20..].windows(2).map(|pair| pair[1].0.since(pair[0].0).as_ps()).collect();
    let expected = RTT.as_ps() as f64 / 1.2 / f64::from(window);
    for gap in gaps {
        // Where acknowledgements are what it waits for, it may be longer; it is never shorter.
        assert!(gap as f64 > expected * 0.999, "{gap} ps, not {expected:.0}");
    }
    assert_eq!(
        sent[39].0.since(sent[20].0).as_ps().div_ceil(1_000),
        (expected * 19.0 / 1_000.0).ceil() as u64
    );
    let tcp = paced(false);
    let world = World::new(&tcp, segments(100), passes).run(1_000);
    let sent = world.new_data();
    assert_eq!(
        sent[39].0, sent[20].0,
        "without it, a window leaves at once where nothing spaces acknowledgements"
    );
}

/// The receiver offers 45 segments at first: what the application writes by then is in packets of
/// 22.
#[test]
fn bursts_are_at_most_half_of_the_window_that_the_receiver_offered_when_they_were_written() {
    let bursts = |write_ahead| {
        let tcp = by_time(10, |config| {
            config.mss = Bytes::new(1_448);
            (config.segmentation_offload, config.write_ahead) = (Bytes::new(65_215), write_ahead);
            (config.receive_window, config.abc_limit) = (Bytes::new(65_535), u32::MAX);
            config.small_queue_overhead = Bytes::new(768);
        });
        let world = World::new(&tcp, segments(400), passes).with_cable(Rate::from_gbps(1)).run(10_000);
        assert_eq!(world.completed.len(), 1);
        let mut ends: Vec<(Time, u32)> = Vec::new();
        for (at, segment) in world.new_data() {
            match ends.last_mut() {
                Some(last) if last.0 == at => last.1 = segment + 1,
                _ => ends.push((at, segment + 1)),
            }
        }
        ends.iter().map(|end| end.1).collect::<Vec<_>>()
    };
    // Where bursts of the kernel end at the beginning of such a flow, which is alone on a path of
    // this rate: 42 and 64 are ends of packets, 80 is that of the window.
    assert_eq!(bursts(true)[..9], [10, 14, 20, 26, 34, 42, 54, 64, 80]);
    assert_eq!(bursts(false)[..8], [10, 14, 20, 26, 34, 44, 45, 56]);
}
