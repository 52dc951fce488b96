use weft_packet::HostId;

use crate::testing::{FakeSwitch, Group, packet, with};

use super::*;

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn hula(switch: &FakeSwitch, tier: u8) -> Hula {
    Hula::new(&Params { entries: 1 << 10, ..Params::default() }, &switch.info(1, tier, 1))
}

/// A switch of tier 1: ports 0 and 1 to edge switches 10 and 11, port 2 again to 10, ports 3 and 4
/// to cores 20 and 21.
fn aggregation() -> FakeSwitch {
    let mut switch = FakeSwitch::new(5, 1);
    switch.rack = None;
    switch.peers = [(10, 0), (11, 0), (10, 0), (20, 2), (21, 2)]
        .map(|(switch, tier)| Peer::Switch { switch, tier })
        .to_vec();
    switch
}

fn probe_in(scheme: &mut Hula, switch: &mut FakeSwitch, port: u16, utilisation: u8) -> Vec<(u16, Probe)> {
    let mut packet = Probe { rack: 1, utilisation }.packet();
    assert_eq!(scheme.on_arrival(switch, &mut packet, PortId(port)), Arrival::Consume);
    switch.outbox.drain(..).map(|(port, sent)| (port.0, Probe::read(&sent))).collect()
}

/// 10 Gbit/s for 400 us are 500,000 B. In half of tau half is left.
#[test]
fn utilisation_is_what_the_estimator_holds_of_capacity_times_tau() {
    let (tau, rate) = (Span::from_us(400), Rate::from_gbps(10));
    let mut link = Utilisation::default();
    (0..5).for_each(|_| link.add(at(1_000), tau, 50_000));
    assert_eq!(link.level(at(1_000), tau, rate), 127, "250,000 of 500,000 B");
    assert_eq!(link.level(at(1_200), tau, rate), 63);
    assert_eq!(link.level(at(1_200), tau, Rate::from_gbps(5)), 127);
    link.add(at(1_200), tau, 25_000);
    assert_eq!(link.level(at(1_200), tau, rate), 76, "125,000 + 25,000 B");
    assert_eq!(link.level(at(1_600), tau, rate), 0, "after tau nothing is left");
    (0..20).for_each(|_| link.add(at(1_600), tau, 60_000));
    assert_eq!(link.level(at(1_600), tau, rate), 255);
}

#[test]
fn probes_from_below_go_everywhere_and_probes_from_above_only_down_and_none_goes_back() {
    let mut switch = aggregation();
    let ports = |port, switch: &mut FakeSwitch| -> Vec<u16> {
        probe_in(&mut hula(switch, 1), switch, port, 9).into_iter().map(|(port, _)| port).collect()
    };
    assert_eq!(ports(0, &mut switch), [1, 3, 4], "from edge switch 10: not by port 2 either");
    assert_eq!(ports(3, &mut switch), [0, 1, 2]);
    switch.up[1] = false;
    assert_eq!(ports(3, &mut switch), [0, 2], "a dead port carries none");
    assert_eq!(ports(1, &mut switch), [0u16; 0], "nor is one of use that came by it");
}

/// | probe | by port | says | own link | best then |
/// |---|---|---|---|---|
/// | 1 | 3 | 100 | 0 | port 3, 100 |
/// | 2 | 4 | 100 | 0 | port 3: equal is no better |
/// | 3 | 4 | 50 | 127 | port 3: the own link counts |
/// | 4 | 3 | 200 | 0 | port 3, 200: its own news, though worse |
/// | 5 | 4 | 50 | 127 | port 4, 127 |
#[test]
fn the_best_next_hop_follows_the_table() {
    let mut switch = aggregation();
    let mut scheme = hula(&switch, 1);
    switch.now = at(10);
    let mut step = |scheme: &mut Hula, port, utilisation| {
        let sent = probe_in(scheme, &mut switch, port, utilisation);
        sent.first().map(|&(_, probe)| (scheme.best[1].port.0, probe.utilisation))
    };
    assert_eq!(step(&mut scheme, 3, 100), Some((3, 100)));
    assert_eq!(step(&mut scheme, 4, 100), None);
    (0..5).for_each(|_| scheme.links[4].add(at(10), Span::from_us(400), 50_000));
    assert_eq!(step(&mut scheme, 4, 50), None);
    assert_eq!(step(&mut scheme, 3, 200), Some((3, 200)));
    assert_eq!(step(&mut scheme, 4, 50), Some((4, 127)));
}

/// QALL Table II: on `BMv2` what is known of a queue is what a clone brought.
#[test]
fn a_probe_is_held_against_a_utilisation_as_old_as_the_age() {
    for (age_us, expected) in [(0, 127), (100, 50)] {
        let mut switch = aggregation();
        let params = Params { age: Span::from_us(age_us), ..Params::default() };
        let mut scheme = Hula::new(&params, &switch.info(1, 1, 1));
        switch.now = at(1_000);
        for _ in 0..5 {
            let mut sent = with(packet(1), |sent| sent.wire_bytes = 50_000);
            let queued = switch.take(PortId(4), &sent);
            scheme.on_enqueued(&mut switch, &mut sent, queued);
        }
        // 250,000 of 500,000 B at once, which nothing told of 100 us ago.
        let mut passed_on = |now_us| {
            switch.now = at(now_us);
            probe_in(&mut scheme, &mut switch, 4, 50).first().map(|&(_, probe)| probe.utilisation)
        };
        assert_eq!(passed_on(1_000), Some(expected), "age {age_us} us");
        if age_us > 0 {
            // 100 us later as it was then; 300 us later an eighth of tau less each 50 us.
            assert_eq!([1_100, 1_300].map(passed_on), [Some(127), Some(63)]);
        }
    }
}

#[test]
fn a_next_hop_that_is_not_confirmed_gives_way_to_any_other() {
    let mut switch = aggregation();
    let mut scheme = hula(&switch, 1);
    probe_in(&mut scheme, &mut switch, 3, 10);
    switch.now = at(600);
    assert!(probe_in(&mut scheme, &mut switch, 4, 90).is_empty(), "until t_fail it is the best");
    switch.now = at(601);
    assert!(!probe_in(&mut scheme, &mut switch, 4, 90).is_empty());
    assert_eq!((scheme.best[1].port, scheme.best[1].utilisation), (PortId(4), 90));
}

#[test]
fn new_flowlets_follow_the_best_next_hop_and_hash_without_one() {
    let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
    let mut scheme = hula(&switch, 0);
    let by_hash: Vec<_> =
        (0..100).map(|flow| scheme.choose(&mut switch, &mut packet(flow), &group.hops())).collect();
    assert!((0..4).all(|port| by_hash.contains(&port)), "no probe has come");
    probe_in(&mut scheme, &mut switch, 2, 10);
    switch.now = at(100);
    assert_eq!(scheme.choose(&mut switch, &mut packet(0), &group.hops()), by_hash[0], "a flowlet goes on");
    switch.now = at(250);
    assert!((0..100).all(|flow| scheme.choose(&mut switch, &mut packet(flow), &group.hops()) == 2));
    switch.now = at(5_000);
    let expected = scheme.ecmp.hash(packet(0).entropy);
    let index = scheme.choose(&mut switch, &mut packet(0), &group.hops());
    assert_eq!(index as u64, (u64::from(expected) * 4) >> 32, "what is not confirmed is not followed");
}

#[test]
fn an_edge_switch_probes_upwards_once_an_interval_and_ignores_its_own_probes() {
    let mut switch = FakeSwitch::new(3, 1);
    switch.rack = Some(1);
    switch.peers[0] = Peer::Host(HostId(16));
    let mut scheme = hula(&switch, 0);
    scheme.start(&mut switch);
    let (due, token) = switch.timers[0];
    assert!(due < at(200));
    switch.now = due;
    scheme.on_timer(&mut switch, token);
    let sent: Vec<_> =
        switch.outbox.drain(..).map(|(port, sent)| (port.0, sent.wire_bytes, Probe::read(&sent))).collect();
    let probe = Probe { rack: 1, utilisation: 0 };
    assert_eq!(sent, [(1, 64, probe), (2, 64, probe)]);
    assert_eq!(switch.timers[1].0, due + Span::from_us(200));
    assert!(probe_in(&mut scheme, &mut switch, 1, 0).is_empty());
    assert!(scheme.best[1].confirmed.is_none());
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |change: fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.validate().map_err(|error| error.key)
    };
    assert_eq!(key(|_| ()), Ok(()));
    assert_eq!(key(|params| params.interval = Span::ZERO), Err("interval"));
    assert_eq!(key(|params| params.tau = Span::ZERO), Err("tau"));
    assert_eq!(key(|params| params.t_fail = Span::from_us(199)), Err("t_fail"));
    assert_eq!(key(|params| params.gap = Span::ZERO), Err("gap"));
    assert_eq!(key(|params| params.entries = 3), Err("entries"));
}
