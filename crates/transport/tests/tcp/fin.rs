//! A flow whose data was all sent at once ends with a segment of its own, which has no payload. A
//! packet takes 20 us each way.

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::tcp::TcpConfig;
use weft_transport::{Protocol, Tcp};
use weft_units::Span;

use crate::world::{DROP, Fate, PASS, RTT, World, at_us, losing, reno, segments};

/// A window of ten segments.
fn ending(fin: bool, change: impl FnOnce(&mut TcpConfig)) -> Tcp {
    reno(|config| {
        (config.sack, config.rack, config.initial_window, config.fin) = (true, true, 10, fin);
        change(config);
    })
}

/// Number, bytes on the wire, and whether it is the last one, of each segment.
fn sent(world: &World<'_>) -> Vec<(u32, u16, bool)> {
    let data = world.sent(Kind::Data);
    data.map(|sent| (sent.packet.seq, sent.packet.wire_bytes, sent.packet.flags.has(PacketFlags::LAST)))
        .collect()
}

#[test]
fn what_the_first_window_holds_is_followed_by_a_fin_and_what_is_longer_has_it_in_its_last_segment() {
    let size = weft_transport::FlowSize { segments: 10, last_payload: 7 };
    let (with, without) = (ending(true, |_| {}), ending(false, |_| {}));
    let [ended, plain] = [&with, &without].map(|tcp| sent(&World::new(tcp, size, losing(&[])).run(1_000)));
    assert_eq!(plain.len(), 10);
    assert_eq!(plain[9], (9, 47, true));
    // The FIN goes beyond the window, which is full. All before it is as it was, but that it is not
    // the last.
    assert_eq!(ended[..9], plain[..9]);
    assert_eq!(ended[9..], [(9, 47, false), (10, 40, true)]);
    let longer = weft_transport::FlowSize { segments: 11, ..size };
    let world = World::new(&with, longer, losing(&[])).run(1_000);
    assert_eq!(sent(&world)[9..], [(9, 1_500, false), (10, 47, true)]);
}

#[test]
fn the_segment_with_the_fin_goes_with_the_one_before_whatever_the_window() {
    let when = |fin, size| {
        let tcp = ending(fin, |_| {});
        let world = World::new(&tcp, segments(size), losing(&[])).run(1_000);
        world.sent(Kind::Data).map(|sent| (sent.at, sent.packet.seq)).collect::<Vec<_>>()
    };
    let [with, without] = [true, false].map(|fin| when(fin, 11));
    assert_eq!(with[..10], without[..10]);
    assert_eq!((with[10], without[10]), ((at_us(0), 10), (at_us(40), 10)));
    // Two are left behind the first window: they are not the end by themselves.
    let longer = when(true, 12);
    assert_eq!(longer[9], (at_us(0), 9));
    assert!(longer[10].0 > at_us(0), "{longer:?}");
}

#[test]
fn a_fin_tells_that_the_only_segment_was_lost() {
    // The connection opens at 40 us. The FIN is told of at 80, and what was sent before it counts
    // as lost a quarter of the round trip later.
    let found = |fin| {
        let tcp = ending(fin, |config| config.handshake = true);
        let world = World::new(&tcp, segments(1), losing(&[0])).run(1_000);
        (world.retransmitted(), tcp.sender_stats(&world.sender).timeouts)
    };
    assert_eq!(found(true), (vec![(at_us(90), 0)], 0));
    let (again, timeouts) = found(false);
    assert!(again[0].0 > at_us(5_000) && timeouts == 1);
}

#[test]
fn a_fin_counts_as_a_segment_that_is_out_so_that_no_probe_waits_for_a_delayed_acknowledgement() {
    // All is lost at first: the probe is the FIN, after the first timeout would be due. It tells of
    // the one segment.
    let found = |fin| {
        let tcp = ending(fin, |config| {
            (config.handshake, config.tail_loss_probe) = (true, true);
            config.probe_wait_for_one = Span::from_us(1_000);
        });
        let all_at_first = |packet: &Packet, before: u32| {
            if packet.kind == Kind::Data && before == 0 { DROP } else { PASS }
        };
        World::new(&tcp, segments(1), all_at_first).run(1_000).retransmitted()
    };
    // The connection opens at 40 us with a round trip of 40. The answer to the probe tells of a
    // loss at once: the probe was sent later.
    assert_eq!(found(true), [(at_us(40 + 80), 1), (at_us(40 + 80) + RTT, 0)]);
    assert_eq!(found(false), [(at_us(40 + 80 + 1_000), 0)]);
}

#[test]
fn a_flow_is_done_when_its_data_is_whatever_becomes_of_the_fin() {
    let tcp = ending(true, |_| {});
    // One that is known to be lost goes once more with the last acknowledgement, and that is all.
    // Two that overtake are no loss before a quarter of a round trip.
    for (lost, done, again) in [
        (&[3][..], at_us(40), vec![]),
        (&[0, 3], at_us(90), vec![(at_us(50), 0), (at_us(90), 3)]),
        (&[2, 3], at_us(5_080), vec![(at_us(5_040), 2), (at_us(5_080), 3)]),
    ] {
        let world = World::new(&tcp, segments(3), losing(lost)).run(10_000);
        assert_eq!((world.done, world.retransmitted()), (Some(done), again));
        let stats = tcp.receiver_stats(&world.receiver);
        assert_eq!(stats.segments_received - u64::from(stats.without_payload), 3);
    }
    // One that comes late, or twice, is answered and changes nothing.
    let late = |packet: &Packet, _: u32| match (packet.kind, packet.seq) {
        (Kind::Data, 3) => Fate { late_by: Span::from_us(500), ..PASS },
        _ => PASS,
    };
    let world = World::new(&tcp, segments(3), late).run(10_000);
    assert_eq!(world.sent(Kind::Ack).map(|ack| ack.packet.seq).collect::<Vec<_>>(), [1, 2, 3, 3]);
    let stats = tcp.receiver_stats(&world.receiver);
    assert_eq!(
        (stats.segments_received, stats.without_payload, stats.duplicates, stats.out_of_order),
        (4, 1, 0, 0)
    );
}
