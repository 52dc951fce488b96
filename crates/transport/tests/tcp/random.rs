//! Any loss, reordering, duplication and marking: everything arrives once, and the counts add up.

use proptest::prelude::*;
use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::{Protocol, Tcp, TransportSpec};
use weft_units::{Purpose, Rate, Span, Stream};

use crate::world::{Fate, PASS, World, segments};

/// Every combination of transport, SACK, RACK, reordering buffer, delayed acknowledgements, limited
/// transmit, handshake, and what Linux has beyond.
fn any_tcp() -> impl Strategy<Value = Tcp> {
    any::<bool>().prop_flat_map(any_tcp_with)
}

fn any_tcp_with(sack: bool) -> impl Strategy<Value = Tcp> {
    let name =
        prop::sample::select(vec!["name = \"tcp\"", "name = \"tcp\"\necn = \"classic\"", "name = \"dctcp\""]);
    (name, any::<[bool; 6]>(), any::<[bool; 7]>(), 1..=2u8, 1..40u32).prop_map(
        move |(
            name,
            [limited, handshake, rack, adaptive, hold, compress],
            beyond,
            ack_every,
            initial_window,
        )| {
            let [probe, prr, undo, offload, small, wait, fin] = beyond.map(|is_on| is_on && rack && sack);
            let hold = if hold { 30 } else { 0 };
            let text = format!(
                "{name}\nsack = {sack}\nlimited_transmit = {limited}\nhandshake = {handshake}\n\
                 ack_every = {ack_every}\ninitial_window = {initial_window}\nmax_window = \"292KB\"\n\
                 rack = {}\nrack_adaptive = {adaptive}\nreorder_hold = \"{hold}us\"\nreorder_segments = 5\n\
                 tail_loss_probe = {probe}\nprr = {prr}\nundo = {undo}\nsegmentation_offload = \"{}B\"\n\
                 small_queue = \"{}us\"\nrack_wait = \"{}us\"\ncompressed_acks = {}\n\
                 timer_tick = \"{}us\"\nfin = {fin}",
                rack && sack,
                if offload { 20_000 } else { 0 },
                if small { 50 } else { 0 },
                if wait { 100 } else { 0 },
                if compress && sack { 3 } else { 0 },
                if compress { 70 } else { 0 },
            );
            match toml::from_str(&text).unwrap() {
                TransportSpec::Tcp(config) => config.build().unwrap(),
                TransportSpec::Dctcp(config) => config.build().unwrap(),
                other => panic!("{} is no TCP", other.name()),
            }
        },
    )
}

/// Shares of packets, in percent, that suffer each fate.
#[derive(Debug, Clone, Copy)]
struct Weather {
    loss: u32,
    late: u32,
    copied: u32,
    marked: u32,
    seed: u64,
}

fn any_weather() -> impl Strategy<Value = Weather> {
    // Mild weather is more common: it finds other faults than storms do.
    let share = |most: u32| prop_oneof![Just(0), 1..=3u32, 0..=most];
    (share(60), share(50), share(30), share(100), any::<u64>())
        .prop_map(|(loss, late, copied, marked, seed)| Weather { loss, late, copied, marked, seed })
}

impl Weather {
    fn path(self) -> impl FnMut(&Packet, u32) -> Fate {
        let mut stream = Stream::new(self.seed, Purpose::Loss, 0);
        move |_, _| {
            let mut happens = |percent| stream.below(100) < percent;
            let (dropped, marked) = (happens(self.loss), happens(self.marked));
            let (late, copies) = (happens(self.late), u32::from(happens(self.copied)));
            let late_by = if late { Span::from_ns(u64::from(stream.below(100_000))) } else { Span::ZERO };
            Fate { dropped, marked, late_by, copies }
        }
    }
}

/// Segments that fit in the receive window of [`any_tcp`].
const MAX_WINDOW: u32 = 200;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn everything_arrives_once_whatever_happens_on_the_way(
        tcp in any_tcp(), weather in any_weather(), count in 1u32..400,
    ) {
        let mut arriving = 0;
        let mut path = weather.path();
        let world = World::new(&tcp, segments(count), |packet, before| {
            let fate = path(packet, before);
            if packet.kind == Kind::Data && !fate.dropped {
                arriving += 1 + u64::from(fate.copies);
            }
            fate
        })
        .with_cable(Rate::from_gbps(10))
        .run(1_000_000);
        let (sent, received) = (tcp.sender_stats(&world.sender), tcp.receiver_stats(&world.receiver));
        let (done, outstanding) = (world.done, world.sender.outstanding());
        prop_assert_eq!(world.completed.len(), 1);
        prop_assert!(done.is_some() && outstanding == 0);
        // Conservation: sent, lost and copied add up to received; received less duplicates is the
        // flow.
        prop_assert_eq!(sent.segments_sent, world.sent(Kind::Data).count() as u64);
        // One may be a FIN.
        let fin = u64::from(world.sent(Kind::Data).any(|sent| sent.packet.seq == count));
        prop_assert_eq!(sent.segments_sent, u64::from(count) + fin + u64::from(sent.retransmissions));
        let whole = u64::from(count) + u64::from(received.without_payload);
        prop_assert_eq!(u64::from(received.duplicates) + whole, received.segments_received);
        prop_assert!(received.out_of_order < count);
        drop(world);
        prop_assert_eq!(received.segments_received, arriving);
    }

    #[test]
    fn new_segments_are_sent_only_within_the_window(
        (sack, tcp) in any::<bool>().prop_flat_map(|sack| (Just(sack), any_tcp_with(sack))),
        weather in any_weather(), count in 1u32..400,
    ) {
        let world = World::new(&tcp, segments(count), weather.path()).run(1_000_000);
        // With SACK, what arrived beyond a hole makes room: only the receive window bounds the
        // rest.
        let threshold = 3;
        for step in &world.trace {
            prop_assert!(step.cwnd >= 1.0 && step.outstanding <= MAX_WINDOW);
            let within = step.outstanding <= step.cwnd as u32 + threshold;
            prop_assert!(within || !step.sent_new || sack);
            prop_assert!((0.0..=1.0).contains(&step.alpha));
        }
    }

    #[test]
    fn without_loss_and_reordering_nothing_is_out_of_order_or_sent_twice(
        tcp in any_tcp(), marked in 0u32..=100, seed: u64, count in 1u32..2_000,
    ) {
        let weather = Weather { loss: 0, late: 0, copied: 0, marked, seed };
        let world = World::new(&tcp, segments(count), weather.path()).run(1_000_000);
        let (sent, received) = (tcp.sender_stats(&world.sender), tcp.receiver_stats(&world.receiver));
        prop_assert_eq!((sent.retransmissions, sent.timeouts, sent.duplicate_acks), (0, 0, 0));
        prop_assert_eq!((received.out_of_order, received.duplicates), (0, 0));
        prop_assert_eq!(received.segments_received, u64::from(count) + u64::from(received.without_payload));
    }

    #[test]
    fn the_same_weather_gives_the_same_packets(tcp in any_tcp(), weather in any_weather()) {
        let run = || {
            let world = World::new(&tcp, segments(100), weather.path()).run(1_000_000);
            world.log.iter().map(|sent| (sent.at, sent.packet.kind, sent.packet.seq)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn any_pattern_of_first_losses_is_repaired(
        tcp in any_tcp(), lost in prop::collection::vec(any::<bool>(), 1..200),
    ) {
        let path = |packet: &Packet, _| {
            let again = packet.flags.has(PacketFlags::RETRANSMISSION);
            Fate { dropped: packet.kind == Kind::Data && !again && lost.get(packet.seq as usize) == Some(&true), ..PASS }
        };
        let world = World::new(&tcp, segments(lost.len() as u32), path).run(1_000_000);
        let missing = lost.iter().filter(|&&lost| lost).count() as u64;
        prop_assert_eq!(world.completed.len(), 1);
        prop_assert!(u64::from(tcp.sender_stats(&world.sender).retransmissions) >= missing);
    }
}
