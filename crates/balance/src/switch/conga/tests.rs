use proptest::prelude::*;
use weft_packet::HostId;
use weft_units::{Rate, Span, Time};

use crate::registry::Parameters;
use crate::testing::{FakeSwitch, Group, HOSTS_PER_RACK, RACKS, packet, with};

use super::params::{Falls, MetricLimit, ReportsFirst};
use super::*;

const GBPS_10: Rate = Rate::from_gbps(10);

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn conga(switch: &FakeSwitch, number: u32, tier: u8) -> Conga {
    Conga::new(&Params { entries: 1 << 10, ..Params::default() }, &switch.info(number, tier, 1))
}

fn dre(bits: u8, ports: usize) -> Dre {
    Dre::new(&Params { metric_bits: bits, ..Params::default() }, ports)
}

/// A packet from a host of one rack to a host of another.
fn between(from: u16, to: u16, entropy: u32) -> Packet {
    with(packet(entropy), |sent| {
        (sent.src, sent.dst) = (HostId(from * HOSTS_PER_RACK), HostId(to * HOSTS_PER_RACK));
    })
}

/// 10 Gbit/s times 160 us are 200,000 B, so a level of three bits is 25,000 B; each 20 us an eighth
/// goes.
#[test]
fn a_metric_is_the_register_over_capacity_times_tau_in_eighths() {
    let mut dre = self::dre(3, 2);
    let port = PortId(1);
    let mut metric_after = |bytes: u16, us| {
        dre.add(port, at(us), bytes);
        dre.metric(port, at(us), GBPS_10)
    };
    assert_eq!(metric_after(24_999, 0), 0);
    assert_eq!(metric_after(1, 0), 1);
    assert_eq!(metric_after(65_000, 19), 3, "90,000 B");
    assert_eq!(metric_after(60_000, 19), 6, "150,000 B");
    assert_eq!(metric_after(0, 20), 5, "131,250 B");
    assert_eq!(metric_after(0, 40), 4, "114,844 B");
    assert_eq!(metric_after(0, 59), 4, "still the same period");
    assert_eq!(metric_after(0, 200), 1, "150,000 B x 0.875^10 = 39,461 B");
    for _ in 0..10 {
        metric_after(65_000, 200);
    }
    assert_eq!(metric_after(0, 200), 7, "no more than three bits hold");
    assert_eq!(metric_after(0, 100_000), 0);
    assert_eq!(dre.metric(PortId(0), at(0), GBPS_10), 0, "the other port was idle");
}

#[test]
fn a_steady_load_settles_at_its_share_of_capacity() {
    // 5 of 10 Gbit/s: 12,500 B each 20 us. X settles at 12,500 / 0.125 = 100,000 B, just after an
    // addition.
    let mut dre = self::dre(8, 1);
    for period in 0..200 {
        dre.add(PortId(0), at(period * 20), 12_500);
    }
    assert_eq!(dre.metric(PortId(0), at(199 * 20), GBPS_10), 127);
    assert_eq!(
        dre.metric(PortId(0), at(199 * 20), Rate::from_gbps(20)),
        63,
        "half as much of twice the capacity"
    );
}

proptest! {
    #[test]
    fn bringing_a_register_up_to_date_late_is_a_periodic_sweep(
        steps in proptest::collection::vec((0u64..400, 64u16..9_000), 1..200),
    ) {
        let (mut dre, mut swept, mut now, mut last) = (self::dre(8, 1), 0.0, 0, 0);
        for (pause_us, bytes) in steps {
            now += pause_us;
            while last < now / 20 {
                swept *= 0.875;
                last += 1;
            }
            swept += f64::from(bytes);
            dre.add(PortId(0), at(now), bytes);
            let expected = (swept / 200_000.0 * 256.0).min(255.0);
            let metric = f64::from(dre.metric(PortId(0), at(now), GBPS_10));
            prop_assert!(metric <= expected + 1e-6 && metric > expected - 1.0 - 1e-6, "{metric} for {expected}");
        }
    }

    #[test]
    fn a_header_keeps_its_fields_apart(tag in 0u8..64, metrics: [u8; 3], feedback in 0u8..64) {
        let mut header = Header::new(tag, Some((feedback, metrics[0])));
        header.raise(metrics[1]);
        header.raise(metrics[2]);
        prop_assert_eq!(header.path(), Some((tag, metrics[1].max(metrics[2]))));
        prop_assert_eq!(header.feedback(), Some((feedback, metrics[0])));
        prop_assert_eq!(Header::new(tag, None).feedback(), None);
    }
}

/// Three bits and 10 ms: a level goes each 1.25 ms from 10 ms on. Ticks of about a nanosecond are
/// below a microsecond.
#[test]
fn a_metric_that_is_not_renewed_falls_to_zero() {
    let mut table = ToLeaf::new(RACKS, 16, &Params::default());
    table.set(3, 5, 6, at(1_000));
    for (age_us, expected) in
        [(0, 6), (10_000, 6), (11_249, 6), (11_251, 5), (13_751, 3), (17_501, 0), (99_000, 0)]
    {
        assert_eq!(table.get(3, 5, at(1_000 + age_us)), expected, "after {age_us} us");
    }
    table.set(3, 5, 2, at(100_000));
    assert_eq!((table.get(3, 5, at(100_000)), table.get(3, 4, at(100_000))), (2, 0));
}

#[test]
fn reports_go_round_and_prefer_what_changed() {
    let mut table = FromLeaf::new(RACKS, 16, &Params::default());
    assert_eq!(table.report(1, at(0)), None, "nothing came from there");
    for (tag, metric) in [(0, 0), (1, 4), (9, 7)] {
        table.note(1, tag, metric, at(0));
    }
    let mut reports = |count: usize| (0..count).filter_map(|_| table.report(1, at(1))).collect::<Vec<_>>();
    assert_eq!(reports(5), [(0, 0), (1, 4), (9, 7), (0, 0), (1, 4)]);
    table.note(1, 1, 5, at(1));
    table.note(1, 9, 7, at(1));
    let mut reports = |count: usize| (0..count).filter_map(|_| table.report(1, at(1))).collect::<Vec<_>>();
    assert_eq!(reports(3), [(1, 5), (9, 7), (0, 0)], "the changed one out of turn, then on from there");
    table.note(1, 0, 3, at(2));
    table.note(1, 0, 0, at(2));
    assert_eq!(table.report(1, at(2)), Some((1, 5)), "what changed back is not changed");
    table.note(1, 40, 1, at(2));
    assert_eq!(table.report(1, at(2)), Some((9, 7)), "a tag beyond the table is not noted");
    assert_eq!(table.report(2, at(2)), None);
}

/// 200,000 B are the capacity, in levels of 25,000 B: what is offered beyond it is told apart.
#[test]
fn a_metric_without_a_limit_tells_overload_from_a_full_link() {
    let params = Params { metric_limit: MetricLimit::None, ..Params::default() };
    let mut dre = Dre::new(&params, 1);
    let mut metric_after = |packets: usize| {
        (0..packets).for_each(|_| dre.add(PortId(0), at(0), 50_000));
        dre.metric(PortId(0), at(0), GBPS_10)
    };
    assert_eq!([metric_after(3), metric_after(1), metric_after(6)], [6, 8, 20]);
    assert_eq!(metric_after(200), 255, "as much as the header holds");
    assert_eq!(dre.metric(PortId(0), at(0), Rate::from_gbps(100)), 42, "of ten times the capacity a tenth");
}

#[test]
fn what_falls_at_once_is_whole_until_it_is_nothing_and_is_reported_no_more() {
    let params = Params { falls: Falls::AtOnce, ..Params::default() };
    let (mut to, mut from) = (ToLeaf::new(RACKS, 16, &params), FromLeaf::new(RACKS, 16, &params));
    to.set(3, 5, 6, at(1_000));
    let aged = [0, 10_000, 10_001, 99_000].map(|age_us| to.get(3, 5, at(1_000 + age_us)));
    assert_eq!(aged, [6, 6, 0, 0]);
    from.note(3, 5, 6, at(0));
    from.note(3, 7, 2, at(5_000));
    let mut reports = |us| [(); 3].map(|()| from.report(3, at(us)));
    assert_eq!(reports(10_000), [Some((5, 6)), Some((7, 2)), Some((5, 6))]);
    assert_eq!(reports(10_001), [Some((7, 2)); 3]);
    assert_eq!(reports(15_001), [None; 3]);
    from.note(3, 5, 0, at(20_000));
    assert_eq!(from.report(3, at(20_000)), Some((5, 0)), "until a packet comes by it again");
}

#[test]
fn reports_may_prefer_what_a_packet_came_by_since() {
    for (first, expected) in [(ReportsFirst::Changed, (0, 0)), (ReportsFirst::Renewed, (9, 7))] {
        let params = Params { reports_first: first, ..Params::default() };
        let mut table = FromLeaf::new(RACKS, 16, &params);
        for (tag, metric) in [(0, 0), (1, 4), (9, 7)] {
            table.note(1, tag, metric, at(0));
        }
        (0..3).for_each(|_| _ = table.report(1, at(1)));
        table.note(1, 9, 7, at(2));
        assert_eq!(table.report(1, at(3)), Some(expected), "{first:?}");
    }
}

/// The leaf's own uplink, 1, is loaded as much as the spine's downlink, 2: six levels and four.
#[test]
fn a_packet_may_leave_its_own_uplink_to_its_leaf() {
    for (collects, [at_leaf, at_spine]) in [(Collects::Path, [6, 6]), (Collects::BehindUplink, [0, 4])] {
        let here = FakeSwitch::new(4, 1);
        let mut middle = here.clone();
        middle.rack = None;
        let params = Params { collects, ..Params::default() };
        let [mut leaf, mut spine] = [(&here, 0, 0), (&middle, 9, 1)]
            .map(|(switch, number, tier)| Conga::new(&params, &switch.info(number, tier, 1)));
        (0..6).for_each(|_| leaf.dre.add(PortId(1), at(0), 25_000));
        (0..4).for_each(|_| spine.dre.add(PortId(2), at(0), 25_000));
        let (mut here, mut sent) = (here, between(0, 3, 1));
        let taken = here.take(PortId(1), &sent);
        leaf.on_enqueued(&mut here, &mut sent, taken);
        assert_eq!(Header(sent.scheme).path(), Some((1, at_leaf)), "{collects:?}");
        let taken = middle.take(PortId(2), &sent);
        spine.on_enqueued(&mut middle, &mut sent, taken);
        assert_eq!(Header(sent.scheme).path(), Some((1, at_spine)), "{collects:?}");
        assert_eq!(leaf.dre.metric(PortId(1), at(0), GBPS_10), 6, "which knows it where it decides");
    }
}

/// Ports 1 and 3 are equal, and better than the others: 1 is drawn two times of three.
#[test]
fn the_first_of_equals_may_be_twice_as_likely() {
    let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
    let params = Params { ties: Ties::FirstTwice, ..Params::default() };
    let mut scheme = Conga::new(&params, &switch.info(0, 0, 1));
    for tag in [0, 2] {
        scheme.leaf.as_mut().unwrap().to.set(1, tag, 3, at(0));
    }
    let mut counts = [0; 4];
    for flow in 0..3_000 {
        counts[scheme.choose(&mut switch, &mut between(0, 1, flow), &group.hops())] += 1;
    }
    // Four standard deviations are 103.
    assert!(counts[0] + counts[2] == 0 && (1_897..=2_103).contains(&counts[1]), "{counts:?}");
}

/// | port | own link | reported | worse of both |
/// |---|---|---|---|
/// | 0 | 2 | 5 | 5 |
/// | 1 | 4 | 1 | 4 |
/// | 2 | 0 | 7 | 7 |
/// | 3 | 3 | 4 | 4 |
#[test]
fn a_flowlet_takes_the_least_of_the_worse_of_both_metrics() {
    let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
    let mut scheme = conga(&switch, 0, 0);
    for (port, (own, reported)) in [(2, 5), (4, 1), (0, 7), (3, 4)].into_iter().enumerate() {
        scheme.dre.add(PortId(port as u16), at(0), own * 12_500);
        scheme.dre.add(PortId(port as u16), at(0), own * 12_500);
        scheme.leaf.as_mut().unwrap().to.set(1, port as u8, reported, at(0));
    }
    let elsewhere = Group { rack: 2, ..Group::of(0..4) };
    let port = scheme.clone().choose(&mut switch, &mut between(0, 2, 5_000), &elsewhere.hops());
    assert_eq!(port, 2, "what is reported of paths to one rack is nothing to another");
    let mut counts = [0; 4];
    for flow in 0..1_000 {
        counts[scheme.choose(&mut switch, &mut between(0, 1, flow), &group.hops())] += 1;
    }
    assert_eq!((counts[0], counts[2]), (0, 0));
    assert!(counts[1] > 350 && counts[3] > 350, "equals at random: {counts:?}");
}

/// QALL Table II: on `BMv2` a decision knows of a queue what a clone brought.
#[test]
fn a_leaf_goes_by_metrics_of_its_uplinks_as_old_as_its_age() {
    let group = Group::of(0..2);
    for (age_us, expected) in [(0, 1), (300, 0)] {
        let mut switch = FakeSwitch::new(2, 1);
        let params = Params { age: Span::from_us(age_us), ..Params::default() };
        let mut scheme = Conga::new(&params, &switch.info(0, 0, 1));
        // 100,000 B by each: four levels. First by 1, then by 0.
        let mut load = |switch: &mut FakeSwitch, now_us, port| {
            switch.now = at(now_us);
            for _ in 0..2 {
                let mut sent = with(between(0, 1, 1), |sent| sent.wire_bytes = 50_000);
                let queued = switch.take(PortId(port), &sent);
                scheme.on_enqueued(switch, &mut sent, queued);
            }
        };
        load(&mut switch, 0, 1);
        load(&mut switch, 400, 0);
        // Now 0 has four levels, and 1, 400 us later, none: an eighth goes twenty times. 300 us ago
        // 0 was idle, and 1 had two levels: 100,000 B x 0.875^5 = 51,291 B.
        let before = scheme.clone().choose(&mut switch, &mut between(0, 1, 7), &group.hops());
        assert_eq!(before, expected, "age {age_us} us");
        // 300 us later that is what is known with an age, and without one 0 has not a level more
        // than 1: any.
        switch.now = at(700);
        let after = scheme.choose(&mut switch, &mut between(0, 1, 7), &group.hops());
        assert!(age_us == 0 || after == 1, "age {age_us} us");
    }
}

#[test]
fn a_flow_moves_after_a_pause_and_only_to_a_strictly_better_port() {
    let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
    let mut scheme = conga(&switch, 0, 0);
    let mut choose = |scheme: &mut Conga, us| {
        switch.now = at(us);
        scheme.choose(&mut switch, &mut between(0, 1, 7), &group.hops())
    };
    let first = choose(&mut scheme, 0);
    for pause in 1..50 {
        assert_eq!(choose(&mut scheme, pause * 2_000), first, "all are equal");
    }
    let set =
        |scheme: &mut Conga, tag, metric| scheme.leaf.as_mut().unwrap().to.set(1, tag, metric, at(100_000));
    (0..4).for_each(|tag| set(&mut scheme, tag, 3));
    let better = (first + 1) % 4;
    choose(&mut scheme, 100_000);
    set(&mut scheme, better as u8, 2);
    assert_eq!(choose(&mut scheme, 100_400), first, "a flowlet goes on");
    assert_eq!(choose(&mut scheme, 101_500), better);
    assert_eq!(scheme.leaf.as_ref().unwrap().moves, 1);
}

/// Leaf 0 sends by uplink 1 over a loaded spine to leaf 3; what comes back tells leaf 0.
#[test]
fn what_a_packet_collected_comes_back_to_its_leaf_and_no_host_sees_it() {
    let here = FakeSwitch::new(4, 1);
    let (mut there, mut middle) = (here.clone(), here.clone());
    (there.rack, middle.rack) = (Some(3), None);
    there.peers[0] = Peer::Host(HostId(3 * HOSTS_PER_RACK));
    let (mut leaf, mut spine, mut far) = (conga(&here, 0, 0), conga(&middle, 9, 1), conga(&there, 3, 0));
    (0..6).for_each(|_| spine.dre.add(PortId(2), at(0), 25_000));

    let (mut here, mut sent) = (here, between(0, 3, 1));
    let taken = here.take(PortId(1), &sent);
    leaf.on_enqueued(&mut here, &mut sent, taken);
    assert_eq!(Header(sent.scheme).path(), Some((1, 0)));
    assert_eq!(spine.on_arrival(&mut middle, &mut sent, PortId(0)), Arrival::Forward);
    let taken = middle.take(PortId(2), &sent);
    spine.on_enqueued(&mut middle, &mut sent, taken);
    assert_eq!(Header(sent.scheme).path(), Some((1, 6)));
    assert_eq!(far.on_arrival(&mut there, &mut sent, PortId(3)), Arrival::Forward);
    assert_eq!(sent.scheme, 0);
    let taken = there.take(PortId(0), &sent);
    far.on_enqueued(&mut there, &mut sent, taken);
    assert_eq!(sent.scheme, 0, "nor does the port to the host begin a header");

    let mut back = between(3, 0, 2);
    let taken = there.take(PortId(2), &back);
    far.on_enqueued(&mut there, &mut back, taken);
    // The port to the host has no number: ports 1, 2, 3 are uplinks 0, 1, 2.
    assert_eq!(Header(back.scheme).path(), Some((1, 0)));
    assert_eq!(Header(back.scheme).feedback(), Some((1, 6)));
    leaf.on_arrival(&mut here, &mut back, PortId(1));
    let tables = &leaf.leaf.as_ref().unwrap().to;
    assert_eq!([0, 1, 2].map(|tag| tables.get(3, tag, at(1))), [0, 6, 0]);
}

#[test]
fn a_switch_that_is_not_the_senders_leaf_hashes() {
    let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
    let mut transit = conga(&switch, 0, 0);
    let mut ecmp = Ecmp::new(&super::super::ecmp::Params::default(), &switch.info(0, 0, 1));
    for flow in 0..100 {
        let mut passing = between(5, 1, flow);
        let expected = ecmp.choose(&mut switch, &mut passing, &group.hops());
        assert_eq!(transit.choose(&mut switch, &mut passing, &group.hops()), expected);
    }
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |change: fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.validate().map_err(|error| error.key)
    };
    assert_eq!(key(|_| ()), Ok(()));
    assert_eq!(key(|params| params.t_dre = Span::ZERO), Err("t_dre"));
    assert_eq!(key(|params| params.alpha = 0.0), Err("alpha"));
    assert_eq!(key(|params| params.alpha = f64::NAN), Err("alpha"));
    assert_eq!(key(|params| params.metric_bits = 9), Err("metric_bits"));
    assert_eq!(key(|params| params.aging = Span::ZERO), Err("aging"));
    assert_eq!(key(|params| params.gap = Span::ZERO), Err("gap"));
    assert_eq!(key(|params| params.entries = 3), Err("entries"));
}
