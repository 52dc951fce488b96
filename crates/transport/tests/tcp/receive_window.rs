//! The receive window that grows as in Linux, by hand, in a world where a packet takes 20 us each
//! way and any number at once.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::Tcp;
use weft_transport::tcp::TcpConfig;
use weft_units::{Bytes, Span, Time};

use crate::world::{Fate, World, at_us, losing, passes, reno, segments};

const MSS: u64 = 1_460;

/// A sender whose own window does not matter, and a receiver that offers 20 segments at first.
fn offering(change: impl FnOnce(&mut TcpConfig)) -> Tcp {
    reno(|config| {
        (config.sack, config.rack, config.initial_window) = (true, true, 2_000);
        config.receive_window = Bytes::new(20 * MSS + 7);
        change(config);
    })
}

/// How many new segments leave at each instant.
fn new_segments(tcp: &Tcp, fate: impl FnMut(&Packet, u32) -> Fate) -> Vec<(Time, usize)> {
    let world = World::new(tcp, segments(600), fate).run(10_000);
    let mut counts: Vec<(Time, usize)> = Vec::new();
    let data = world.sent(Kind::Data).filter(|sent| !sent.packet.flags.has(PacketFlags::RETRANSMISSION));
    for sent in data {
        match counts.last_mut() {
            Some((at, count)) if *at == sent.at => *count += 1,
            _ => counts.push((sent.at, 1)),
        }
    }
    counts
}

#[test]
fn the_window_grows_to_twice_what_is_read_in_a_round_and_more_as_the_rounds_grow() {
    // The first 20 are read at 20 us, each acknowledged with 20 more. At 60 us a round of 20 us,
    // one way, is over, and with segment 20 it is 21 segments where 10 were taken for the round
    // before: room for 2 x 21 + 16 = 58 and 2 x (58 x 11 / 10) = 126 more. The window grows by two
    // with each of segments 21 to 39: from 20 to 58, beyond segment 39.
    let counts = new_segments(&offering(|_| ()), passes);
    assert_eq!(counts[..3], [(at_us(0), 20), (at_us(40), 20), (at_us(80), 58)]);
}

#[test]
fn it_grows_no_further_than_it_may() {
    let most = Bytes::new(30 * MSS);
    let counts = new_segments(&offering(|config| config.receive_window_most = most), passes);
    assert_eq!(counts[..3], [(at_us(0), 20), (at_us(40), 20), (at_us(80), 30)]);
    assert!(counts[3..].iter().all(|&(_, count)| count <= 30), "{counts:?}");
}

#[test]
fn a_round_is_a_tick_of_time_stamps_unless_a_whole_window_arrives_sooner() {
    // Segment 20 is the last of a window after segment 0, 40 us later: a round is over.
    let ticking = offering(|config| config.timestamp_tick = Span::from_ms(1));
    assert_eq!(new_segments(&ticking, passes)[2], (at_us(80), 58));
}

#[test]
fn what_makes_the_window_grow_is_acknowledged_at_once() {
    // Two segments an acknowledgement, 20 and 20 of them; with segment 20 the round is over, and 21
    // to 39 make the window grow.
    let tcp = offering(|config| config.ack_every = 2);
    let world = World::new(&tcp, segments(40), passes).run(10_000);
    let acks: Vec<_> = world.sent(Kind::Ack).map(|sent| sent.packet.seq).collect();
    let every_second = (1..=10).map(|number| 2 * number);
    assert_eq!(acks, every_second.chain(22..=40).collect::<Vec<_>>());
}

#[test]
fn nothing_new_is_sent_beyond_a_hole_until_it_is_filled() {
    // The first segment is sent again at 40 us and arrives at 60.
    let counts = new_segments(&offering(|_| ()), losing(&[0]));
    assert_eq!((counts[0], counts[1].0), ((at_us(0), 20), at_us(80)));
    // What waits beyond it takes room, but never any that was offered: 20 still end at segment 20.
    let tcp = offering(|_| ());
    let world = World::new(&tcp, segments(600), losing(&[0])).run(10_000);
    let edges: Vec<_> = world
        .sent(Kind::Ack)
        .take(20)
        .map(|sent| sent.packet.seq + u32::from(sent.packet.receive_window()))
        .collect();
    assert_eq!(edges[..19], [20; 19]);
    assert_eq!(edges[19], 40);
}

#[test]
fn a_receiver_without_it_takes_whatever_comes() {
    let counts = new_segments(&offering(|config| config.receive_window = Bytes::new(0)), passes);
    assert_eq!(counts, [(at_us(0), 600)]);
}

#[test]
fn windows_of_less_than_a_segment_or_without_losses_by_time_are_refused() {
    let refused = |change: fn(&mut TcpConfig)| {
        let mut config =
            TcpConfig { sack: true, rack: true, receive_window: Bytes::from_kb(64), ..TcpConfig::default() };
        change(&mut config);
        config.build().unwrap_err().to_string()
    };
    let message = refused(|config| config.rack = false);
    assert!(message.contains("receive_window") && message.contains("unless rack is true"), "{message}");
    let message = refused(|config| config.receive_window = Bytes::new(1_459));
    assert!(message.contains("receive_window is 1459B; allowed: 0B, or the mss"), "{message}");
    let message = refused(|config| config.receive_window_most = Bytes::from_kb(63));
    assert!(
        message.contains("receive_window_most is 63KB; allowed: receive_window, 64KB, or more"),
        "{message}"
    );
}
