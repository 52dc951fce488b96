//! MPTCP between two endpoints in a small world: one flow, several subflows.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod world;

use proptest::prelude::*;
use weft_packet::Kind;
use weft_transport::mptcp::{Coupling, MptcpConfig, MptcpEcn, Scheduler};
use weft_transport::tcp::TcpConfig;
use weft_transport::{FlowSize, Mptcp, Protocol, TransportSpec};
use weft_units::{Bytes, Span, Time};
use world::{LATENCY, Path, World};

const RTT: Span = Span::from_us(100);

fn mptcp(change: impl FnOnce(&mut MptcpConfig)) -> Mptcp {
    let mut config = MptcpConfig { sack: true, ..MptcpConfig::default() };
    change(&mut config);
    config.build().unwrap()
}

fn segments(count: u32) -> FlowSize {
    FlowSize { segments: count, last_payload: 100 }
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

const END: Time = Time::from_ps(60_000_000_000_000);

fn clear<'a>() -> Path<'a> {
    Box::new(|_, _, _| Some(Span::ZERO))
}

/// Loses so many packets of ten thousand.
fn losing<'a>(share: u32) -> Path<'a> {
    Box::new(move |_, _, stream| (stream.below(10_000) >= share).then_some(Span::ZERO))
}

#[test]
fn other_subflows_join_with_the_first_acknowledgement_and_share_the_rest() {
    let tcp = mptcp(|config| config.subflows = 4);
    let world = World::new(&tcp, segments(200), 1, clear()).run_until(END);
    assert!(world.done && world.completed == 1);
    let first = |subflow: u8| world.data().find(|sent| sent.subflow == subflow).unwrap().at;
    assert_eq!([0, 1, 2, 3].map(first), [Time::ZERO, at(100), at(100), at(100)]);
    // Each segment of the flow is carried once.
    let mut carried: Vec<u32> = world.data().map(|sent| sent.segment).collect();
    carried.sort_unstable();
    assert_eq!(carried, (0..200).collect::<Vec<_>>());
}

#[test]
fn join_after_keeps_short_flows_on_one_subflow() {
    // 30 segments of 1,440 bytes are less than 50 KB, 200 are more: the others join at the 35th
    // segment.
    let tcp = mptcp(|config| config.join_after = Bytes::from_kb(50));
    let used = |count| {
        let world = World::new(&tcp, segments(count), 1, clear()).run_until(END);
        assert!(world.done);
        let mut used: Vec<u8> = world.data().map(|sent| sent.subflow).collect();
        used.sort_unstable();
        used.dedup();
        used.len()
    };
    assert_eq!((used(30), used(200)), (1, 8));
}

#[test]
fn one_subflow_is_tcp() {
    // The same packets at the same times, apart from their sizes.
    let tcp = TcpConfig { sack: true, ..TcpConfig::default() }.build().unwrap();
    let alone = mptcp(|config| config.subflows = 1);
    let size = segments(3_000);
    let expected = World::new(&tcp, size, 7, losing(50)).run_until(END);
    let world = World::new(&alone, size, 7, losing(50)).run_until(END);
    let of = |sent: &world::Sent| (sent.at, sent.packet.kind, sent.packet.seq);
    assert!(world.done && tcp.sender_stats(&expected.sender).retransmissions > 0);
    assert_eq!(world.log.iter().map(of).collect::<Vec<_>>(), expected.log.iter().map(of).collect::<Vec<_>>());
}

#[test]
fn the_options_take_their_bytes_from_the_payload_of_data_and_add_to_acknowledgements() {
    let tcp = mptcp(|_| ());
    let world = World::new(&tcp, segments(2), 1, clear()).run_until(END);
    let sizes: Vec<_> = world.log.iter().map(|sent| (sent.packet.kind, sent.packet.wire_bytes)).collect();
    assert_eq!(sizes[..3], [(Kind::Data, 1_500), (Kind::Data, 160), (Kind::Ack, 48)]);
    assert_eq!(mptcp(|_| ()).flow_size(1_441), FlowSize { segments: 2, last_payload: 1 });
}

#[test]
fn what_a_dead_path_holds_is_sent_on_the_others_after_its_timeout() {
    // Subflow 0 is dead from 1 ms on: what it has outstanding goes over subflow 1 when it times
    // out, 5 ms later.
    let path: Path = Box::new(|now, subflow, _| (subflow != 0 || now < at(1_000)).then_some(Span::ZERO));
    let tcp = mptcp(|config| (config.subflows, config.max_window) = (2, Some(Bytes::from_kb(30))));
    let world = World::new(&tcp, segments(3_000), 1, path).run_until(END);
    assert!(world.done && world.completed == 1);
    let lost: Vec<u32> =
        world.data().filter(|s| s.subflow == 0 && s.at >= at(1_000)).map(|s| s.segment).collect();
    assert!(!lost.is_empty());
    for segment in lost {
        assert!(world.data().any(|sent| sent.subflow == 1 && sent.segment == segment), "{segment}");
    }
    let last = world.data().last().unwrap().at;
    assert!(last < END, "{}", last.as_us());
}

#[test]
fn a_flow_whose_first_path_is_dead_from_the_start_goes_on_by_others() {
    // Paths 0 and 1 are dead. Subflow 0 times out after 10 ms (initial_rto) or 5 ms (syn_timeout)
    // and opens subflow 1, which does likewise; the third works. The second timeout of subflow 0,
    // 20 or 10 ms after its first, opens another one.
    for (handshake, first_ms) in [(false, 10), (true, 5)] {
        let path: Path = Box::new(|_, subflow, _| (subflow > 1).then_some(Span::ZERO));
        let tcp = mptcp(|config| (config.subflows, config.handshake) = (4, handshake));
        let world = World::new(&tcp, segments(500), 1, path).run_until(END);
        assert!(world.done && world.completed == 1);
        let opened = |subflow: u8| world.log.iter().find(|sent| sent.subflow == subflow).unwrap().at;
        assert_eq!([0, 1, 2].map(opened), [0, first_ms, 2 * first_ms].map(|ms| at(1_000 * ms)));
        // From then on it is 500 segments in slow start: no more than ten round trips.
        let last = world.log.last().unwrap().at;
        assert!(last < opened(2) + RTT * 10, "{}", last.as_us());
    }
}

#[test]
fn what_a_timeout_gives_back_goes_to_the_subflow_with_the_shortest_round_trip_if_asked() {
    // Subflow 1 dies at 5 ms; 0 has a round trip of 300 us, 2 of 100 us. All windows are full of
    // what is under way, so the first segment given back goes to whoever has room at that instant:
    // the flow ended by then, but for these.
    let first_to_carry = |scheduler| {
        let path: Path = Box::new(|now, subflow, _| {
            (subflow != 1 || now < at(5_000)).then_some(Span::from_us(if subflow == 0 { 200 } else { 0 }))
        });
        let tcp = mptcp(|config| {
            (config.subflows, config.scheduler) = (3, scheduler);
            config.max_window = Some(Bytes::from_kb(30));
        });
        let world = World::new(&tcp, segments(2_600), 1, path).run_until(END);
        assert!(world.done);
        let lost = world.data().find(|sent| sent.subflow == 1 && sent.at >= at(5_000)).unwrap();
        let again = world.data().find(|sent| sent.segment == lost.segment && sent.subflow != 1).unwrap();
        assert!(world.data().all(|sent| sent.at < lost.at + Span::from_ms(3) || sent.at >= again.at));
        again.subflow
    };
    assert_eq!([Scheduler::ByNumber, Scheduler::LowestRtt].map(first_to_carry), [0, 2]);
}

#[test]
fn two_subflows_that_see_what_one_tcp_sees_take_together_what_it_takes() {
    // RFC 6356 goal 2, where a path's loss does not depend on who sends: 1 of 500 packets, over
    // some 2,000 losses a run, which tell a rate to 1.1 % and the ratio of two to 1.6 %.
    let tcp = TcpConfig { sack: true, ..TcpConfig::default() }.build().unwrap();
    let end = at(5_000_000);
    let endless = FlowSize::endless(1_440);
    let alone = World::new(&tcp, endless, 3, losing(20)).run_until(end);
    let one = tcp.receiver_stats(&alone.receiver).segments_received as f64;
    let take = |coupling| {
        let two = mptcp(|config| (config.subflows, config.coupling) = (2, coupling));
        let world = World::new(&two, endless, 3, losing(20)).run_until(end);
        two.receiver_stats(&world.receiver).segments_received as f64 / one
    };
    let [lia, olia, uncoupled] = [Coupling::Lia, Coupling::Olia, Coupling::None].map(take);
    assert!((0.9..1.1).contains(&lia), "{lia} of one TCP");
    assert!((0.9..1.1).contains(&olia), "{olia} of one TCP");
    assert!((1.8..2.2).contains(&uncoupled), "{uncoupled} of one TCP");
}

#[test]
fn parameters_that_make_no_sense_are_named_with_what_is_allowed() {
    let spec: TransportSpec = toml::from_str("name = \"mptcp\"\ndss_option = \"2KB\"").unwrap();
    let said = spec.validate().unwrap_err().to_string();
    assert_eq!(said, "dss_option is 2KB; allowed: less than the mss, 1460B");
    for subflows in [0, 65] {
        let said = MptcpConfig { subflows, ..MptcpConfig::default() }.build().unwrap_err().to_string();
        assert_eq!(said, format!("subflows is {subflows}; allowed: 1 to 64"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn everything_arrives_once_whatever_happens_on_the_way(
        subflows in 1u8..9, count in 1u32..400, [sack, handshake, lowest_rtt, dctcp] in any::<[bool; 4]>(),
        (hold_us, hold_segments) in (prop::sample::select(vec![0u64, 0, 20, 300]), 1u32..40),
        coupling in prop::sample::select(vec![Coupling::None, Coupling::Lia, Coupling::Olia]),
        ack_every in 1u16..3, join_kb in 0u64..100, (loss, late) in (0u32..4_000, 0u32..5_000),
        dead_subflow in 0u8..9, dead_from in 0u64..3_000, seed: u64,
    ) {
        let config = MptcpConfig {
            subflows,
            join_after: Bytes::from_kb(join_kb),
            coupling,
            scheduler: if lowest_rtt { Scheduler::LowestRtt } else { Scheduler::ByNumber },
            ecn: if dctcp { MptcpEcn::Dctcp } else { MptcpEcn::Off },
            sack,
            handshake,
            ack_every,
            reorder_hold: Span::from_us(hold_us),
            reorder_segments: hold_segments,
            max_window: Some(Bytes::from_kb(200)),
            ..MptcpConfig::default()
        };
        let tcp = config.build().unwrap();
        let path: Path = Box::new(move |now, subflow, stream| {
            // Any one may die, if there is another.
            let dead = subflows > 1 && subflow == dead_subflow && now >= at(dead_from);
            let lost = stream.below(10_000) < loss;
            let late = if stream.below(10_000) < late { u64::from(stream.below(100_000)) } else { 0 };
            (!dead && !lost).then_some(Span::from_ns(late))
        });
        let world = World::new(&tcp, segments(count), seed, path).run_until(Time::NEVER);
        prop_assert!(world.done && world.completed == 1);
        let (sent, received) = (tcp.sender_stats(&world.sender), tcp.receiver_stats(&world.receiver));
        prop_assert_eq!(sent.segments_sent, world.data().count() as u64);
        prop_assert_eq!(received.segments_received, u64::from(received.duplicates) + u64::from(count));
        // A segment of a subflow carries the same segment of the flow in every copy.
        let mut carries = std::collections::BTreeMap::new();
        for sent in world.data() {
            let known = *carries.entry((sent.subflow, sent.packet.seq)).or_insert(sent.segment);
            prop_assert_eq!(known, sent.segment);
        }
    }
}

#[test]
fn a_segment_in_the_reordering_buffer_has_not_arrived_until_it_is_passed_up() {
    // The first of two segments is lost on subflow 0; the second waits 2 ms for it, then goes up,
    // and the flow completes when the first is sent again after its timeout of 10 ms (initial_rto),
    // with both counted.
    let tcp = mptcp(|config| (config.subflows, config.reorder_hold) = (2, Span::from_ms(2)));
    let mut first = true;
    let path: Path = Box::new(|_, _, _| (!std::mem::take(&mut first)).then_some(Span::ZERO));
    let world = World::new(&tcp, segments(2), 1, path).run_until(END);
    let acks: Vec<_> = world.log.iter().filter(|sent| sent.packet.kind == Kind::Ack).collect();
    assert_eq!(acks[0].at, Time::ZERO + LATENCY + Span::from_ms(2));
    assert!(world.done && world.completed == 1);
    let received = tcp.receiver_stats(&world.receiver);
    assert_eq!(received.segments_received - u64::from(received.duplicates), 2);
}

#[test]
fn the_last_acknowledgement_is_not_delayed() {
    let tcp = mptcp(|config| (config.subflows, config.ack_every) = (2, 4));
    let world = World::new(&tcp, segments(1), 1, clear()).run_until(END);
    let last = world.log.last().unwrap();
    assert_eq!((last.packet.kind, last.at, world.done), (Kind::Ack, Time::ZERO + LATENCY, true));
    assert_eq!(LATENCY * 2, RTT);
}
