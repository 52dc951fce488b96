//! Readings of what the paper leaves open: cases that its text describes, in which they decide
//! differently.

use super::*;

/// Interpretation that TR's text supports best, by section: "one RTT", "the jth output queue" and
/// an entry that acknowledgements update (§Counting), no exception, no slack and no margin (Alg.
/// 1), propagation and queues alone, and that queue which the packet will wait in (eq. 1).
#[test]
fn the_defaults_are_what_the_text_supports_best() {
    let Params { rtt, believe, counted, tnl, last_uplink, slack, margin, spine_queue, .. } =
        Params::default();
    assert_eq!((rtt, believe, counted), (Rtt::Fabric, Believe::Forever, Counted::Each));
    assert_eq!(
        (last_uplink, slack, margin),
        (LastUplink::AsOthers, Gap::Is(Span::ZERO), Gap::Is(Span::ZERO))
    );
    assert_eq!((tnl, spine_queue), (Tnl::WithoutPacket, SpineQueue::ByRack));
}

/// A leaf whose own round trips are these, by rack.
fn with_round_trips(params: &Params, rtts_us: [u64; RACKS as usize]) -> World {
    let mut world = World::new(params);
    world.switch.base_rtts = rtts_us.map(Span::from_us).to_vec();
    world.scheme = Tr::new(params, &world.switch.info(0, 0, 1));
    world
}

/// TR §Counting: a short flow is inactive when no packet came for "one RTT".
#[test]
fn a_round_trip_is_a_time_or_the_longest_of_the_idle_fabric_to_another_rack() {
    for (rtt, quiet_us) in [(Rtt::Is(Span::from_us(200)), 200), (Rtt::Fabric, 70)] {
        // The own rack's does not count.
        let mut world = with_round_trips(&Params { rtt, ..tables() }, [500, 40, 70, 40, 40, 40, 40, 40]);
        world.send(1, 1_500);
        world.wait_ns(quiet_us * 1_000);
        world.send(2, 1_500);
        assert_eq!(world.shorts().iter().sum::<u32>(), 2, "{rtt}: not longer than it");
        world.wait_ns(1);
        world.send(2, 1_500);
        assert_eq!(world.shorts().iter().sum::<u32>(), 1, "{rtt}: 1 is inactive");
    }
}

#[test]
fn only_the_fabrics_round_trip_is_asked_for_and_without_one_it_is_the_papers() {
    let fabric = Params { rtt: Rtt::Fabric, ..tables() };
    assert_eq!([&tables(), &fabric].map(Parameters::asks_for_base_rtts), [false, true]);
    let mut switch = FakeSwitch::new(4, 1);
    switch.base_rtts.clear();
    assert_eq!(Rtt::Fabric.at(&switch.info(0, 0, 1)), Span::from_us(200));
    // One rack: nothing to choose.
    switch.base_rtts = vec![Span::from_us(20)];
    assert_eq!(Rtt::Fabric.at(&switch.info(0, 0, 1)), Span::from_us(200));
}

#[test]
fn a_report_holds_for_a_time_for_a_round_trip_or_for_ever() {
    let cases = [
        (Believe::For(Span::from_us(50)), Some(50_000)),
        (Believe::Rtt, Some(40_000)),
        (Believe::Forever, None),
    ];
    for (believe, holds_ns) in cases {
        let mut world = World::new(&Params { rtt: Rtt::Fabric, believe, ..tables() });
        let idle = world.time_to_next_leaf_ns(2);
        world.ack(2, 1);
        // A step of 32 in 375,000 bytes is 9.375 us.
        let believed = idle + 9_375;
        world.wait_ns(holds_ns.unwrap_or(3_600_000_000_000));
        assert_eq!(world.time_to_next_leaf_ns(2), believed, "{believe}");
        world.wait_ns(1);
        let after = if holds_ns.is_some() { idle } else { believed };
        assert_eq!(world.time_to_next_leaf_ns(2), after, "{believe}");
        world.ack(2, 0);
        assert_eq!(world.time_to_next_leaf_ns(2), idle, "{believe}: the next report");
    }
}

/// TR §Counting: "it has been a long time since the last packet arrived at the jth output queue".
#[test]
fn a_flow_counts_on_its_last_uplink_or_on_each_that_it_took_within_a_round_trip() {
    for (counted, expected) in [(Counted::Last, [0, 1, 0, 0]), (Counted::Each, [1, 1, 0, 0])] {
        let mut world = World::new(&Params { counted, ..tables() });
        world.send_by(1, 0);
        world.wait_ns(150_000);
        world.send_by(1, 1);
        assert_eq!(world.shorts(), expected, "{counted:?}");
        // It has not been on 0 for longer than an RTT, but on 1.
        world.wait_ns(50_001);
        world.send_by(2, 3);
        assert_eq!(world.shorts(), [0, 1, 0, 1], "{counted:?}");
        // On the same one again: still once.
        world.send_by(1, 1);
        assert_eq!(world.shorts(), [0, 1, 0, 1], "{counted:?}");
        world.wait_ns(200_001);
        world.send_by(3, 2);
        assert_eq!(world.shorts(), [0, 0, 1, 0], "{counted:?}: all others are quiet");
    }
}

/// TR Alg. 1: a long flow looks for the fewest short flows.
#[test]
fn a_long_flow_avoids_what_a_short_flow_left_if_it_still_counts_there() {
    for (counted, expected) in [(Counted::Last, 0), (Counted::Each, 2)] {
        let mut world = World::new(&Params { counted, long_after: Bytes::new(6_000), ..tables() });
        for _ in 0..5 {
            world.send(9, 1_500);
            world.wait_ns(10_000);
        }
        // A short flow was on 0 and is on 1; another is on 3.
        world.send_by(1, 0);
        world.wait_ns(10_000);
        world.send_by(1, 1);
        world.wait_ns(10_000);
        world.send_by(2, 3);
        // The queue of 2 is the longest.
        world.switch.backlogs = vec![0, 0, 9_000, 0];
        world.wait_ns(10_000);
        assert_eq!(world.send(9, 1_500), expected, "{counted:?}");
    }
}

#[test]
fn a_flow_that_becomes_long_or_begins_anew_counts_nowhere() {
    let params = Params { counted: Counted::Each, long_after: Bytes::new(3_000), ..tables() };
    let mut world = World::new(&params);
    world.send_by(1, 0);
    world.wait_ns(10_000);
    world.send_by(1, 1);
    assert_eq!(world.shorts(), [1, 1, 0, 0]);
    world.wait_ns(10_000);
    world.send_by(1, 2);
    assert_eq!(world.shorts(), [0; 4], "4,500 bytes are more than 3,000");
    // Another flow takes the port meanwhile: the old visits expire and take nothing from it.
    world.send_by(2, 0);
    world.wait_ns(190_000);
    world.send_by(2, 0);
    world.wait_ns(100_000);
    world.send_by(3, 3);
    assert_eq!(world.shorts(), [1, 0, 0, 1]);
    let mut syn = with(packet(2), |packet| (packet.kind, packet.wire_bytes) = (Kind::Syn, 64));
    world.switch.backlogs = vec![90_000, 90_000, 0, 90_000];
    world.scheme.choose(&mut world.switch, &mut syn, &world.group.hops());
    assert_eq!(world.shorts(), [0, 0, 1, 1], "2 begins anew");
    let state = |counted| World::new(&Params { counted, entries: 8, ..tables() }).scheme.state_bytes();
    assert_eq!(state(Counted::Each) - state(Counted::Last), 8 * 4 * 4, "a time for each flow and uplink");
}

/// TR eq. 1 as it is printed; TR §Basic insight: "the time at which it reaches the next leaf
/// switch".
#[test]
fn a_small_packet_passes_a_large_one_if_the_packet_itself_does_not_count() {
    for (tnl, passes) in [(Tnl::WithPacket, false), (Tnl::WithoutPacket, true)] {
        let mut world = World::new(&Params { tnl, ..tables() });
        let of_cables = if passes { 2_000 } else { 2_000 + 2 * 1_200 };
        assert_eq!(world.time_to_next_leaf_ns(0), of_cables, "{tnl:?}");
        // A spine's rate counts for its queue in both.
        let mut reach = Word::reach(1, Span::from_us(1), Rate::from_gbps(1));
        world.scheme.on_arrival(&mut world.switch, &mut reach, PortId(3));
        world.ack(3, 1);
        let service = if passes { 0 } else { 1_200 + 12_000 };
        assert_eq!(world.time_to_next_leaf_ns(3), 2_000 + 93_750 + service, "{tnl:?}");
        let first = world.send(1, 1_500);
        world.switch.backlogs[usize::from(first)] = 1_400;
        world.wait_ns(80);
        // 100 bytes on an idle uplink: there at 80 + 2,000 + 160 ns, before the 4,400 ns of the
        // first.
        assert_eq!(world.send(1, 100) != first, passes, "{tnl:?}");
    }
}

/// TR Alg. 1: only uplinks with a larger TNL than the last packet's. A report that the spine's
/// queue is gone makes the flow's own look as if it overtook.
#[test]
fn a_packet_follows_its_flows_last_one_always_or_only_if_it_would_be_later() {
    for (last_uplink, expected) in [(LastUplink::Always, 1), (LastUplink::AsOthers, 2)] {
        let mut world = World::with_delays_and([9, 1, 25, 9], &Params { last_uplink, ..tables() });
        // A step of 9.375 us: by 1, 2,000 + 2,400 + 9,375 = 13,775 ns, and by 0 and 3, 20,400 ns.
        world.ack(1, 1);
        assert_eq!(world.send(1, 1_500), 1);
        world.ack(1, 0);
        // 4,400 ns by 1 now. 0 and 3 have 48 us queued: 68,400 ns. 2 has 52,400 ns.
        world.switch.backlogs = vec![60_000, 0, 0, 60_000];
        assert_eq!(world.send(1, 1_500), expected, "{last_uplink:?}");
        assert_eq!(world.scheme.empty_sets, 0, "{last_uplink:?}");
    }
}

#[test]
fn without_an_exception_the_set_may_be_empty() {
    for (last_uplink, empty) in [(LastUplink::Always, 0), (LastUplink::AsOthers, 1)] {
        let mut world = World::with_delays_and([1, 1, 2, 1], &Params { last_uplink, ..tables() });
        for port in [0, 1, 3] {
            world.ack(port, 1);
        }
        world.ack(2, 1);
        // All have the step of 9.375 us; 2 is the furthest. The flow follows what is queued to 2.
        world.switch.backlogs = vec![9_000, 9_000, 0, 9_000];
        assert_eq!(world.send(1, 1_500), 2);
        (0..4).for_each(|port| _ = world.ack(port, 0));
        world.switch.backlogs = vec![0; 4];
        // By 2 still the latest of all, which overtakes by least: both readings stay, for different
        // reasons.
        assert_eq!(world.send(1, 1_500), 2, "{last_uplink:?}");
        assert_eq!(world.scheme.empty_sets, empty, "{last_uplink:?}");
    }
}

/// TR §Counting: one entry for each output queue has "the obtained queue length of spine switch
/// corresponding to the current output queue".
#[test]
fn a_report_counts_for_the_rack_that_it_came_from_or_for_all() {
    for (spine_queue, elsewhere) in [(SpineQueue::ByRack, 0), (SpineQueue::ByUplink, 9_375)] {
        let mut world = World::new(&Params { spine_queue, ..tables() });
        world.ack(0, 1);
        let time = |world: &mut World, rack, port| {
            world.time_to_next_leaf_of(&packet(1), rack, port).as_ps() / 1_000 - 4_400
        };
        assert_eq!(time(&mut world, 1, 0), 9_375, "{spine_queue:?}");
        assert_eq!(time(&mut world, 2, 0), elsewhere, "{spine_queue:?}");
        assert_eq!(time(&mut world, 2, 1), 0, "{spine_queue:?}: another spine");
        // A short flow to rack 2 avoids that uplink, or takes its turn there.
        world.group.rack = 2;
        let mut taken = [false; 4];
        for _ in 0..8 {
            taken[usize::from(world.send(1, 1_500))] = true;
            world.wait_ns(5_000);
        }
        assert_eq!(taken[0], elsewhere == 0, "{spine_queue:?}");
        // It is no longer believed after 200 us, in either.
        world.wait_ns(200_000);
        assert_eq!(time(&mut world, 2, 0), 0, "{spine_queue:?}");
    }
}

/// TR Alg. 1 compares times as they are. A report that is a step lower than the last makes the
/// flow's own uplink look as if it overtook, unless a step is not told apart.
#[test]
fn with_slack_a_packet_may_be_predicted_earlier_than_the_last_by_so_much_and_no_more() {
    // A step at 10 Gbit/s: 375,000 / 32 bytes are 9.375 us.
    let step = Span::from_ns(9_375);
    let cases =
        [(Gap::Is(Span::ZERO), 2), (Gap::Is(step), 2), (Gap::Is(step + Span::from_ps(1)), 1), (Gap::Step, 2)];
    for (slack, expected) in cases {
        let params = Params { last_uplink: LastUplink::AsOthers, slack, ..tables() };
        let mut world = World::with_delays_and([9, 1, 25, 9], &params);
        world.ack(1, 1);
        // 13,775 ns by 1.
        assert_eq!(world.send(1, 1_500), 1);
        world.ack(1, 0);
        // 4,400 ns by 1: earlier by just a step. By 0 and 3 68,400 ns, by 2 52,400 ns.
        world.switch.backlogs = vec![60_000, 0, 0, 60_000];
        assert_eq!(world.send(1, 1_500), expected, "{slack}");
    }
    // A nanosecond later it is earlier by less than a step.
    let params = Params { last_uplink: LastUplink::AsOthers, slack: Gap::Step, ..tables() };
    let mut world = World::with_delays_and([9, 1, 25, 9], &params);
    world.ack(1, 1);
    assert_eq!(world.send(1, 1_500), 1);
    world.ack(1, 0);
    world.switch.backlogs = vec![60_000, 0, 0, 60_000];
    world.wait_ns(1);
    assert_eq!(world.send(1, 1_500), 1);
    // The slowest uplink's step is the longest.
    let mut switch = FakeSwitch::new(4, 1);
    switch.rates[2] = Rate::from_gbps(1);
    assert_eq!(Tr::new(&params, &switch.info(0, 0, 1)).slack, Span::from_ns(93_750));
}

/// TR Alg. 1 takes a larger TNL, by however little. With a margin, what is just behind the last
/// packet overtakes, too.
#[test]
fn with_a_margin_a_packet_is_behind_the_last_by_more_than_that_or_overtakes() {
    let us = |us: f64| Gap::Is(Span::from_ps((us * 1e6) as u64));
    // The last packet is there at 4.4 us, this one at 5.6, 6.8, 16.4 or 52.4 us. A step is 9.375
    // us.
    let cases = [
        (us(0.0), 0, 0, LastUplink::AsOthers),
        (us(1.199_999), 0, 0, LastUplink::AsOthers),
        (us(1.2), 1, 1, LastUplink::AsOthers),
        (us(2.4), 2, 2, LastUplink::AsOthers),
        (Gap::Step, 2, 2, LastUplink::AsOthers),
        // None is left: the latest.
        (us(48.0), 3, 4, LastUplink::AsOthers),
        // Behind it in the same two queues, by whatever.
        (Gap::Step, 0, 1, LastUplink::Always),
    ];
    for long_after in [Bytes::from_kb(100), Bytes::new(1)] {
        for (margin, expected, excluded, last_uplink) in cases {
            let params = Params { long_after, last_uplink, margin, ..tables() };
            let mut world = World::new(&params);
            assert_eq!(world.send(1, 1_500), 0);
            world.switch.backlogs = vec![1_500, 3_000, 15_000, 60_000];
            assert_eq!(world.send(1, 1_500), expected, "{margin}, long after {long_after}");
            assert_eq!(world.scheme.excluded, excluded, "{margin}, long after {long_after}");
            // What is remembered is the packet's own time, with no margin.
            let own = [5_600, 6_800, 16_400, 52_400][usize::from(expected)];
            let (last, _) = world.scheme.flows.expect(world.switch.now, &packet(1));
            assert_eq!(last.tnl, Time::ZERO + Span::from_ns(own), "{margin}");
        }
    }
    // As much slack takes it back.
    let mut world = World::new(&Params {
        margin: us(5.0),
        slack: us(5.0),
        last_uplink: LastUplink::AsOthers,
        ..tables()
    });
    assert_eq!(world.send(1, 1_500), 0);
    world.switch.backlogs = vec![1_500, 3_000, 15_000, 60_000];
    assert_eq!(world.send(1, 1_500), 0);
}

/// There is nothing before it, however early in the run it is.
#[test]
fn a_flows_first_packet_has_no_margin_to_keep() {
    let mut world = World::new(&Params { margin: Gap::Is(Span::from_s(1)), ..tables() });
    world.switch.backlogs = vec![3_000, 3_000, 0, 3_000];
    assert_eq!(world.send(1, 1_500), 2);
    assert_eq!((world.scheme.excluded, world.scheme.empty_sets), (0, 0));
}

/// TR Alg. 1 has no rule for an empty set, and by eq. 1 needs none while no report comes: what is
/// queued before the next packet on the flow's own uplink is more. With the packet's own
/// transmission, a small packet behind a large one would find none.
#[test]
fn by_the_letter_a_small_packet_may_follow_the_large_one_before_it() {
    for (tnl, empty) in [(Tnl::WithoutPacket, 0), (Tnl::WithPacket, 1)] {
        let mut world = World::new(&Params { tnl, ..Params::default() });
        world.group = Group::of([2]);
        assert_eq!(world.send(1, 1_500), 2);
        world.switch.backlogs[2] = 1_500;
        assert_eq!(world.send(1, 100), 2);
        assert_eq!(world.scheme.empty_sets, empty, "{tnl:?}");
    }
}
