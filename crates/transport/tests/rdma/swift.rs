//! Swift: the delay about its target, windows below one packet.

use weft_packet::{Kind, Packet};
use weft_transport::swift::SwiftConfig;
use weft_transport::{Protocol, SwiftTransport};
use weft_units::{Span, Time};

use crate::world::{Fate, LATENCY, World, full, losing, passing};

fn swift(change: impl FnOnce(&mut SwiftConfig)) -> SwiftTransport {
    let mut config = SwiftConfig::default();
    change(&mut config);
    config.build().unwrap()
}

const PACKET: Span = Span::from_ps(1_086 * 80);

#[test]
fn the_first_window_leaves_at_once_and_each_packet_is_answered() {
    let swift = swift(|_| ());
    let world = World::new(&swift, full(12), passing).run(1_000);
    let at: Vec<Time> = world.sent(Kind::Data).map(|sent| sent.at).collect();
    assert_eq!(at[9], Time::ZERO + PACKET.saturating_mul(9));
    assert_eq!(at[10], Time::ZERO + PACKET + LATENCY + LATENCY, "when the first answer comes");
    assert_eq!(world.sent(Kind::Ack).count(), 12);
}

#[test]
fn the_window_grows_by_a_packet_a_round_trip_below_the_target() {
    let swift = swift(|_| ());
    let world = World::new(&swift, full(110), passing).run(10_000);
    // Each answer adds 1 / window.
    let expected = (0..110).fold(10.0, |window: f64, _| window + 1.0 / window);
    let found = swift.window(&world.sender).unwrap().cwnd;
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

/// A bottleneck of a tenth of the cable behind which packets queue: the delay comes to the target,
/// and the bottleneck stays busy.
#[test]
fn the_delay_comes_to_the_target_and_the_bottleneck_stays_busy() {
    let swift = swift(|config| (config.scaling_range, config.hops) = (Span::ZERO, 0));
    let (mut free_at, mut leaves, mut delays) = (Time::ZERO, Time::ZERO, Vec::new());
    let service = PACKET.saturating_mul(10);
    let path = |packet: &Packet, _| {
        if packet.kind != Kind::Data {
            return Fate::Pass;
        }
        leaves = (leaves + PACKET).max(packet.sent + PACKET);
        free_at = free_at.max(leaves) + service;
        let late = free_at.since(leaves);
        delays.push((packet.sent, late + PACKET + LATENCY + LATENCY));
        Fate::LateBy(late)
    };
    let packets = 6_000;
    let world = World::new(&swift, full(packets), path).run(100_000);
    let end = world.completed[0];
    drop(world);
    let settled = delays
        .iter()
        .filter(|(at, _)| at.since(Time::ZERO) > Span::from_ms(1))
        .map(|(_, delay)| delay.as_us());
    let (sum, count) = settled.fold((0.0, 0.0), |(sum, count), delay| (sum + delay, count + 1.0));
    let mean = sum / count;
    assert!((16.0..22.0).contains(&mean), "the target is 20 us, the mean delay {mean}");
    let least = service.saturating_mul(packets.into());
    assert!(end.as_us() < 1.03 * least.as_us(), "{} us of {} us", end.as_us(), least.as_us());
}

#[test]
fn a_window_of_a_quarter_packet_sends_one_each_four_round_trips() {
    let swift = swift(|config| {
        (config.initial_window, config.max_window) = (0.25, 1.0);
        // Nothing grows.
        config.ai = 1e-12;
    });
    let world = World::new(&swift, full(5), passing).run(1_000);
    let at: Vec<Time> = world.sent(Kind::Data).map(|sent| sent.at).collect();
    let round = PACKET + LATENCY + LATENCY;
    for pair in at.windows(2).skip(1) {
        let gap = pair[1].since(pair[0]).as_ps();
        assert!(gap.abs_diff(4 * round.as_ps()) < 1_000, "{gap} ps");
    }
}

#[test]
fn what_is_lost_halves_the_window_and_is_sent_again_alone() {
    let swift = swift(|_| ());
    let world = World::new(&swift, full(60), losing(&[20])).run(10_000);
    let stats = swift.sender_stats(&world.sender);
    assert_eq!((stats.retransmissions, stats.fast_recoveries, stats.timeouts), (1, 1, 0));
    let untouched = World::new(&swift, full(60), passing).run(10_000);
    let window = |world: &World<'_, SwiftTransport>| swift.window(&world.sender).unwrap().cwnd;
    assert!(window(&world) < 0.75 * window(&untouched));
}

#[test]
fn what_makes_no_sense_is_refused_by_key() {
    let refused = |change: fn(&mut SwiftConfig)| {
        let mut config = SwiftConfig::default();
        change(&mut config);
        config.build().unwrap_err().to_string()
    };
    assert_eq!(refused(|config| config.max_mdf = 1.0), "max_mdf is 1; allowed: above 0, below 1");
    assert_eq!(
        refused(|config| config.scaling_most = 0.05),
        "scaling_most is 0.05; allowed: more than scaling_least, 0.1"
    );
    assert_eq!(
        refused(|config| config.initial_window = 5_000.0),
        "initial_window is 5000; allowed: min_window to max_window, 0.001 to 1000"
    );
}
