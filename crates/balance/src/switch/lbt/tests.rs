//! LBT's decision, against tables worked out by hand.

use weft_packet::PacketFlags;
use weft_units::{Rate, Time};

use crate::testing::{FakeSwitch, Group, packet, with};

use super::*;

fn lbt(params: &Params, ports: usize) -> Lbt {
    Lbt::new(params, &FakeSwitch::new(ports, 1).info(0, 0, 1))
}

/// Thresholds of 10,000 and 20,000 B.
fn small() -> Params {
    Params { least: Bytes::new(10_000), ratio: 2, ..Params::default() }
}

fn best_effort(entropy: u32) -> Packet {
    with(packet(entropy), |packet| packet.flags = PacketFlags::of_class(Class::BestEffort))
}

fn port(scheme: &mut Lbt, switch: &mut FakeSwitch, group: &Group, mut packet: Packet) -> u16 {
    group.ports[scheme.choose(switch, &mut packet, &group.hops())].0
}

/// A flow that has just become long, on the port that it then uses.
fn long_flow(scheme: &mut Lbt, switch: &mut FakeSwitch, group: &Group, entropy: u32) -> u16 {
    let mut last = 0;
    // 67 packets of 1,500 B are 100,500 B.
    for _ in 0..67 {
        last = port(scheme, switch, group, packet(entropy));
    }
    last
}

/// Moves the clock to the timer, which goes off.
fn refresh(scheme: &mut Lbt, switch: &mut FakeSwitch) {
    let (at, token) = switch.timers.pop().expect("a timer is always set");
    switch.now = at;
    scheme.on_timer(switch, token);
}

#[test]
fn a_short_flow_takes_the_shortest_queue_and_stays_there_whatever_comes() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    switch.backlogs = vec![3_000, 1_500, 40, 9_000];
    assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), 2);
    switch.backlogs = vec![0, 0, 300_000, 0];
    for _ in 1..66 {
        assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), 2, "99,000 B at most: still short");
    }
    assert_ne!(port(&mut scheme, &mut switch, &group, packet(2)), 2, "another flow chooses for itself");
}

#[test]
fn queues_are_those_that_a_packet_of_its_class_would_stand_in() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    switch.backlogs = vec![3_000, 1_500, 40, 9_000];
    switch.ahead.insert(Class::Short, vec![3_000, 0, 40, 9_000]);
    switch.ahead.insert(Class::BestEffort, vec![0, 0, 0, 1_500]);
    let short = |packet: &mut Packet| packet.flags = PacketFlags::of_class(Class::Short);
    assert_eq!(port(&mut scheme, &mut switch, &group, with(packet(1), short)), 1, "the shortest");
    assert_eq!(port(&mut scheme, &mut switch, &group, best_effort(2)), 3, "the longest below the threshold");
}

#[test]
fn a_flow_is_long_with_the_packet_that_passes_the_limit() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    let first = port(&mut scheme, &mut switch, &group, packet(1));
    switch.backlogs = vec![50_000; 4];
    switch.backlogs[usize::from(first ^ 1)] = 5_000;
    for _ in 1..66 {
        assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), first);
    }
    assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), first ^ 1, "the 67th: 100,500 B");
    assert_eq!(scheme.counts.moves, [1, 0]);
}

#[test]
fn long_and_best_effort_flows_go_where_the_table_says() {
    // Queues, then the ports of a long flow (below 10,000 B) and of a best-effort flow (below
    // 20,000 B), both on port 0.
    let table = [
        ([9_999, 0, 5_000, 9_999], 0, 0),         // below both: they stay
        ([10_000, 0, 5_000, 9_999], 3, 0),        // Q1 is reached: to the longest below it
        ([20_000, 19_999, 5_000, 10_000], 2, 1),  // Q2 too: each to the longest below its own
        ([20_000, 19_999, 30_000, 10_000], 2, 1), // none below Q1: to the longest of all
        ([20_000, 25_000, 30_000, 40_000], 3, 3), // none below either
        ([90_000, 90_000, 30_000, 90_000], 0, 0), // of equally long ones, its own
    ];
    for (backlogs, long, effort) in table {
        let (mut scheme, mut switch) = (lbt(&small(), 4), FakeSwitch::new(4, 1));
        let (only, group) = (Group::of([0]), Group::of(0..4));
        long_flow(&mut scheme, &mut switch, &only, 1);
        port(&mut scheme, &mut switch, &only, best_effort(2));
        switch.backlogs = backlogs.to_vec();
        assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), long, "long, {backlogs:?}");
        assert_eq!(port(&mut scheme, &mut switch, &group, best_effort(2)), effort, "effort, {backlogs:?}");
    }
}

/// LBT §4.1 says that a flow is "rerouted" when its queue is above Q1, beside LBT Alg. 1 "for per
/// packet".
#[test]
fn a_long_flow_moves_at_its_threshold_or_chooses_the_longest_queue_below_it_for_each_packet() {
    // Queues, then the ports of a long flow (below 10,000 B) and of a best-effort flow (below
    // 20,000 B), both on port 0, by LBT §4.1 and by LBT Alg. 1.
    let table = [
        // No queue has reached a threshold: it stays, or joins the longest.
        ([1_000, 0, 5_000, 9_999], [0, 0], [3, 3]),
        ([0, 0, 0, 15_000], [0, 0], [0, 3]),
        // Q1 is reached: both readings take the longest below it.
        ([10_000, 0, 5_000, 9_999], [3, 0], [3, 0]),
        // None is below either: the longest of all.
        ([20_000, 25_000, 30_000, 40_000], [3, 3], [3, 3]),
        // Of equally long ones, its own.
        ([5_000, 5_000, 0, 5_000], [0, 0], [0, 0]),
    ];
    for (backlogs, by_section, by_algorithm) in table {
        for (long_choice, expected) in
            [(LongChoice::AtThreshold, by_section), (LongChoice::Packet, by_algorithm)]
        {
            let params = Params { long_choice, ..small() };
            let (mut scheme, mut switch) = (lbt(&params, 4), FakeSwitch::new(4, 1));
            let (only, group) = (Group::of([0]), Group::of(0..4));
            long_flow(&mut scheme, &mut switch, &only, 1);
            port(&mut scheme, &mut switch, &only, best_effort(2));
            switch.backlogs = backlogs.to_vec();
            let found = [packet(1), best_effort(2)].map(|sent| port(&mut scheme, &mut switch, &group, sent));
            assert_eq!(found, expected, "{long_choice:?}, {backlogs:?}");
        }
    }
}

/// LBT §4.2: "the transmission granularity of the short flows", beside LBT Alg. 1 "for per packet".
#[test]
fn a_short_flow_chooses_once_or_for_each_packet() {
    for (short_choice, expected) in [(ShortChoice::Flow, [2, 2, 2]), (ShortChoice::Packet, [2, 3, 3])] {
        let params = Params { short_choice, ..small() };
        let (mut scheme, mut switch, group) = (lbt(&params, 4), FakeSwitch::new(4, 1), Group::of(0..4));
        // The second packet finds a shorter queue; the third, one as short as its own.
        let queues = [[3_000, 1_500, 40, 9_000], [3_000, 1_500, 1_540, 900], [900, 900, 900, 900]];
        let found = queues.map(|backlogs| {
            switch.backlogs = backlogs.to_vec();
            port(&mut scheme, &mut switch, &group, packet(1))
        });
        assert_eq!(found, expected, "{short_choice:?}");
    }
}

#[test]
fn acknowledgements_choose_as_short_flows_do() {
    let params = Params { short_choice: ShortChoice::Packet, ..small() };
    let (mut scheme, mut switch, group) = (lbt(&params, 4), FakeSwitch::new(4, 1), Group::of(0..4));
    for shortest in [2, 0, 3] {
        switch.backlogs = vec![900; 4];
        switch.backlogs[usize::from(shortest)] = 0;
        let ack = with(packet(1), |ack| (ack.kind, ack.wire_bytes) = (Kind::Ack, 40));
        assert_eq!(port(&mut scheme, &mut switch, &group, ack), shortest);
    }
}

#[test]
fn a_best_effort_flow_is_one_from_its_first_packet_and_takes_no_short_queue() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    switch.backlogs = vec![0, 15_000, 9_000, 25_000];
    assert_eq!(port(&mut scheme, &mut switch, &group, best_effort(1)), 1);
}

#[test]
fn of_all_that_is_said_of_a_flow_best_effort_alone_counts() {
    for class in Class::ALL {
        let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
        switch.backlogs = vec![0, 15_000, 9_000, 25_000];
        let first = with(packet(1), |packet| packet.flags = PacketFlags::of_class(class));
        let shortest_or_fullest = u16::from(class == Class::BestEffort);
        assert_eq!(port(&mut scheme, &mut switch, &group, first), shortest_or_fullest, "{class:?}");
    }
}

#[test]
fn acknowledgements_stay_on_a_port_and_never_become_long() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    let ack = with(best_effort(1), |ack| (ack.kind, ack.wire_bytes) = (Kind::Ack, 40));
    switch.backlogs = vec![900, 900, 0, 900];
    for count in 0..5_000 {
        assert_eq!(port(&mut scheme, &mut switch, &group, ack), 2, "acknowledgement {count}");
        switch.backlogs = vec![0, 0, 99_000, 0];
    }
    assert_eq!((scheme.load.flows, scheme.load.bytes), ([0; 3], [0; 3]));
}

#[test]
fn a_period_is_measured_by_class() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    scheme.start(&mut switch);
    long_flow(&mut scheme, &mut switch, &group, 1);
    for entropy in [2, 2, 3] {
        port(&mut scheme, &mut switch, &group, packet(entropy));
    }
    port(&mut scheme, &mut switch, &group, best_effort(4));
    // The long flow was short for 66 packets; it counts once, as what it became.
    assert_eq!(scheme.load.flows, [2, 1, 1]);
    assert_eq!(scheme.load.bytes, [69 * 1_500, 1_500, 1_500]);
    refresh(&mut scheme, &mut switch);
    assert_eq!((scheme.load.flows, scheme.load.bytes), ([0; 3], [0; 3]));
    port(&mut scheme, &mut switch, &group, packet(1));
    assert_eq!((scheme.load.flows, scheme.load.bytes), ([0, 1, 0], [0, 1_500, 0]));
    assert_eq!(switch.now, Time::ZERO + Span::from_us(500));
    assert_eq!(switch.timers, [(Time::ZERO + Span::from_us(1_000), 0)]);
}

#[test]
fn thresholds_follow_the_measured_load_up_and_down() {
    let (mut scheme, mut switch, group) =
        (lbt(&Params::default(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    scheme.start(&mut switch);
    assert_eq!(scheme.thresholds, [4_500, 9_000]);
    // Nine short flows and one long: 0.4 of four paths for the long one, which carry 250,000 B in a
    // period.
    for packets in [100, 200, 400] {
        (0..9).for_each(|flow| _ = port(&mut scheme, &mut switch, &group, packet(10 + flow)));
        if scheme.counts.refreshes == 0 {
            long_flow(&mut scheme, &mut switch, &group, 1);
            refresh(&mut scheme, &mut switch);
            (0..9).for_each(|flow| _ = port(&mut scheme, &mut switch, &group, packet(20 + flow)));
        }
        (0..packets).for_each(|_| _ = port(&mut scheme, &mut switch, &group, packet(1)));
        refresh(&mut scheme, &mut switch);
        // Q1 = bytes / 0.4 - 625,000: -250,000, 125,000 and 875,000, which is above the most.
        let expected = [(100, [4_500, 9_000]), (200, [125_000, 250_000]), (400, [384_000, 384_000])];
        let (_, thresholds) = expected.into_iter().find(|row| row.0 == packets).expect("a row for each");
        assert_eq!(scheme.thresholds, thresholds, "{packets} packets");
    }
    refresh(&mut scheme, &mut switch);
    assert_eq!(scheme.thresholds, [4_500, 9_000], "a silent period");
}

#[test]
fn paths_that_are_down_or_slow_raise_the_thresholds() {
    let q1 = |change: fn(&mut FakeSwitch)| {
        let (mut scheme, mut switch, group) =
            (lbt(&Params::default(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
        change(&mut switch);
        scheme.start(&mut switch);
        scheme.load = Tally { flows: [9, 1, 0], bytes: [13_500, 300_000, 0] };
        port(&mut scheme, &mut switch, &group, packet(1));
        scheme.load = Tally { flows: [9, 1, 0], bytes: [13_500, 300_000, 0] };
        refresh(&mut scheme, &mut switch);
        scheme.thresholds[0]
    };
    // 300,000 B over 0.4 paths of 625,000 B, over 0.3 of them, and over 0.4 of 562,500 B.
    assert_eq!(q1(|_| {}), 125_000);
    assert_eq!(q1(|switch| switch.up[3] = false), 375_000);
    assert_eq!(q1(|switch| switch.rates[0] = Rate::from_gbps(6)), 187_500);
}

#[test]
fn with_every_path_down_the_thresholds_stay() {
    let (mut scheme, mut switch) = (lbt(&small(), 4), FakeSwitch::new(4, 1));
    scheme.start(&mut switch);
    switch.up = vec![false; 4];
    refresh(&mut scheme, &mut switch);
    assert_eq!(scheme.thresholds, [10_000, 20_000]);
}

#[test]
fn a_flow_that_was_silent_for_long_is_a_new_one() {
    let params = Params { forget: Span::from_ms(1), ..small() };
    let (mut scheme, mut switch, group) = (lbt(&params, 4), FakeSwitch::new(4, 1), Group::of(0..4));
    scheme.start(&mut switch);
    let old = long_flow(&mut scheme, &mut switch, &group, 1);
    switch.backlogs = vec![50_000; 4];
    switch.backlogs[usize::from(old ^ 1)] = 0;
    (0..3).for_each(|_| refresh(&mut scheme, &mut switch));
    assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), old ^ 1, "short again: the shortest queue");
    assert_eq!(scheme.load.flows, [1, 0, 0]);
}

#[test]
fn a_port_that_failed_is_left_and_does_not_draw_its_flows_back() {
    let (mut scheme, mut switch, all) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    let gone = port(&mut scheme, &mut switch, &all, packet(1));
    let rest = Group::of((0..4).filter(|&port| port != gone));
    let other = port(&mut scheme, &mut switch, &rest, packet(1));
    assert_ne!(other, gone);
    assert_eq!(port(&mut scheme, &mut switch, &all, packet(1)), other);
}

#[test]
fn flows_that_share_an_entry_are_one_flow() {
    let params = Params { entries: 1, ..small() };
    let (mut scheme, mut switch, group) = (lbt(&params, 4), FakeSwitch::new(4, 1), Group::of(0..4));
    let first = port(&mut scheme, &mut switch, &group, packet(1));
    switch.backlogs[usize::from(first)] = 5_000;
    assert!((2..60).all(|flow| port(&mut scheme, &mut switch, &group, packet(flow)) == first));
    assert_eq!((scheme.load.flows, scheme.state_bytes()), ([1, 0, 0], 60));
}

#[test]
fn a_switch_with_one_way_sets_no_timer() {
    let (mut scheme, mut switch) = (lbt(&small(), 1), FakeSwitch::new(1, 1));
    scheme.start(&mut switch);
    assert_eq!(switch.timers, []);
}

#[test]
fn only_ports_away_from_the_hosts_are_measured() {
    let mut switch = FakeSwitch::new(4, 1);
    switch.peers[0] = Peer::Host(weft_packet::HostId(0));
    switch.peers[3] = Peer::Switch { switch: 9, tier: 0 };
    assert_eq!(*uplinks(&switch.info(0, 0, 1)), [PortId(1), PortId(2)]);
    // At the top no switch is further away: every switch counts.
    assert_eq!(*uplinks(&switch.info(0, 2, 1)), [PortId(1), PortId(2), PortId(3)]);
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let refused = |change: fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.validate().expect_err("it cannot be meant").to_string()
    };
    assert_eq!(refused(|params| params.refresh = Span::ZERO), "refresh is 0ps: longer than nothing");
    assert_eq!(
        refused(|params| params.short_fct = Some(Span::ZERO)),
        "short_fct is 0ps: longer than nothing"
    );
    assert_eq!(refused(|params| params.most = Bytes::new(1)), "most is 1B: at least `least`");
    assert_eq!(refused(|params| params.ratio = 0), "ratio is 0: 1 to 1000");
    assert_eq!(refused(|params| params.forget = Span::from_us(1)), "forget is 1us: at least `refresh`");
    assert_eq!(refused(|params| params.entries = 3), "entries is 3: a power of two, 1 to 16777216");
}

#[test]
fn what_is_explained_is_what_is_chosen_next() {
    let (mut scheme, mut switch, group) = (lbt(&small(), 4), FakeSwitch::new(4, 1), Group::of(0..4));
    let explain = |scheme: &Lbt, switch: &FakeSwitch, packet: Packet| {
        scheme.explain(switch, &packet, &group.hops()).expect("a reason")
    };
    assert_eq!(explain(&scheme, &switch, packet(1)), "a short flow takes the shortest queue");
    let first = port(&mut scheme, &mut switch, &group, packet(1));
    assert_eq!(explain(&scheme, &switch, packet(1)), "a short flow stays on its port");
    let last = long_flow(&mut scheme, &mut switch, &group, 1);
    assert_eq!(last, first);
    switch.backlogs[usize::from(last)] = 9_000;
    assert_eq!(
        explain(&scheme, &switch, packet(1)),
        "a long flow stays: its queue of 9000 B is below the threshold of 10000 B"
    );
    assert_eq!(port(&mut scheme, &mut switch, &group, packet(1)), last);
    switch.backlogs[usize::from(last)] = 11_000;
    assert_eq!(
        explain(&scheme, &switch, packet(1)),
        "a long flow takes the longest queue below the threshold of 10000 B, else the longest"
    );
    assert_ne!(port(&mut scheme, &mut switch, &group, packet(1)), last);
}
