//! Knowledge of QALL, its age, and its use.

use weft_units::{Rate, Time};

use super::*;
use crate::testing::{FakeSwitch, Group, chi_square, packet, with};

const FULL: u64 = 375_000;

/// `T_b` 100 us, recirculation 10 us, tau 1,000 us.
fn params() -> Params {
    Params {
        update: Span::from_us(100),
        recirculation: Span::from_us(10),
        time_constant: Span::from_ms(1),
        ..Params::default()
    }
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Four ports, and the scheme on them.
struct World {
    switch: FakeSwitch,
    scheme: Qall,
}

impl World {
    fn new(params: &Params) -> Self {
        assert_eq!(params.validate(), Ok(()));
        let mut switch = FakeSwitch::new(4, 1);
        // A byte is 1 ns: 1,000 bytes drain in 1 us.
        switch.rates = vec![Rate::from_gbps(8); 4];
        let scheme = Qall::new(params, &switch.info(0, 0, 1));
        Self { switch, scheme }
    }

    /// A packet of 1,000 bytes is queued behind `backlog` bytes.
    fn queue(&mut self, at: Time, port: u16, backlog: u64) {
        self.switch.now = at;
        self.switch.backlogs[usize::from(port)] = backlog;
        let mut sent = with(packet(1), |packet| packet.wire_bytes = 1_000);
        let taken = self.switch.take(PortId(port), &sent);
        self.scheme.on_enqueued(&mut self.switch, &mut sent, taken);
    }

    /// The weights that a decision at this time goes by.
    fn weights(&mut self, at: Time) -> [u64; 4] {
        self.switch.now = at;
        self.scheme.choose(&mut self.switch, &mut packet(1), &Group::of(0..4).hops());
        [0, 1, 2, 3].map(|port| self.scheme.ports[port].weight)
    }

    fn choose(&mut self, group: &Group) -> usize {
        self.scheme.choose(&mut self.switch, &mut packet(1), &group.hops())
    }

    fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.scheme.counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.expect("a counter of QALL")
    }
}

/// `C_max` of `params()`.
const MAX: u64 = 1_024 * 1_000 * 2;

#[test]
fn a_clone_counts_from_its_leaving_the_queue_and_recirculation_on_and_not_before() {
    let mut world = World::new(&params());
    // Found half of the buffer: leaves the queue at 200 + 187.5 us, and is known of 10 us later.
    world.queue(us(200), 1, FULL / 2);
    let known = us(397) + Span::from_ns(500);
    assert_eq!(world.weights(Time::from_ps(known.as_ps() - 1)), [MAX; 4]);
    // The interval since the beginning of time is 387.5 us, so 387 ticks; from an empty queue to
    // this one is a rise.
    assert_eq!(world.weights(known), [MAX, MAX - 512 * (1_000 - 387) * 2, MAX, MAX]);
    assert_eq!((world.counter("clones"), world.counter("clone_bytes")), (1, 10));
    assert_eq!(world.counter("decision_delay_ns"), 10_000);
}

#[test]
fn the_interval_is_that_between_departures_from_the_queue() {
    let mut world = World::new(&params());
    world.queue(us(150), 0, 0);
    // Queued 30 us later behind 75,000 bytes: leaves at 255 us, 105 us after the one before. It
    // found a rise.
    world.queue(us(180), 0, 75_000);
    let weight = MAX - 204 * (1_000 - 105) * 2;
    assert_eq!(world.weights(us(265))[0], weight);
    // Another one 60 us later, behind less: leaves at 275 us. Too soon for a clone.
    world.queue(us(240), 0, 35_000);
    assert_eq!(world.weights(us(350))[0], weight);
    // At 400 us behind 20,000: leaves at 420, after 145 us, and the queue fell.
    world.queue(us(400), 0, 20_000);
    assert_eq!(world.weights(us(430))[0], MAX - 54 * (1_000 - 145));
    assert_eq!(world.counter("clones"), 3);
}

#[test]
fn a_pause_of_exactly_t_b_brings_no_clone() {
    let mut world = World::new(&params());
    world.queue(us(100), 0, 0);
    world.queue(us(101), 0, 0);
    world.queue(us(201), 0, 0);
    world.queue(us(202), 0, 0);
    world.weights(us(1_000));
    // 100 us after the beginning is not longer than T_b; 101 is; 201 is 100 after that; 202 is 101.
    assert_eq!(world.counter("clones"), 2);
}

#[test]
fn an_unchanged_queue_keeps_its_trend() {
    let mut world = World::new(&params());
    for (at, backlog) in [(100, 10_000), (200, 40_000), (400, 40_000)] {
        world.queue(us(at), 0, backlog);
    }
    // The last departure is 200 us after the one before.
    assert_eq!(world.weights(us(450))[0], MAX - 109 * (1_000 - 200) * 2);
}

#[test]
fn shares_of_ports_are_in_proportion_to_their_weights() {
    let mut world = World::new(&Params { time_constant: Span::from_s(1), ..params() });
    for (port, backlog) in [(0, 0), (1, 75_000), (2, 150_000), (3, 300_000)] {
        world.queue(us(200), port, backlog);
    }
    let weights = world.weights(us(3_000));
    assert!(weights.is_sorted_by(|a, b| a > b), "{weights:?}");
    let mut counts = [0; 4];
    for _ in 0..200_000 {
        counts[world.choose(&Group::of(0..4))] += 1;
    }
    let chi = chi_square(&counts, &weights.map(|weight| (weight / 1_000) as u32));
    assert!(chi < crate::testing::CHI_SQUARE_3, "chi-square {chi}: {counts:?} for {weights:?}");
    assert_eq!(world.counter("decisions"), 200_001);
    assert_eq!(world.counter("uninformed_decisions"), 0);
}

#[test]
fn weights_of_ports_outside_the_group_do_not_count() {
    let mut world = World::new(&params());
    world.queue(us(200), 0, FULL / 2);
    world.weights(us(1_000));
    let group = Group::of([0, 2]);
    let [mut half, mut whole] = [0; 2];
    for _ in 0..60_000 {
        match world.choose(&group) {
            0 => half += 1,
            _ => whole += 1,
        }
    }
    let weights = [0, 2].map(|port| (world.scheme.ports[port].weight / 100) as u32);
    // 10.83 is the 0.1 % point with 1 degree of freedom.
    let chi = chi_square(&[half, whole], &weights);
    assert!(chi < 10.83, "chi-square {chi}: {half} and {whole} for {weights:?}");
}

#[test]
fn with_no_weight_at_all_every_port_is_as_good() {
    let mut world = World::new(&Params { tick: Span::from_ms(1), ..params() });
    for port in 0..4 {
        // A full queue, left less than a tick after the packet before it.
        world.queue(us(200), port, 300_000);
        world.queue(us(400), port, FULL);
    }
    assert_eq!(world.weights(us(10_000)), [0; 4]);
    let mut counts = [0; 4];
    for _ in 0..40_000 {
        counts[world.choose(&Group::of(0..4))] += 1;
    }
    let chi = chi_square(&counts, &[1; 4]);
    assert!(chi < crate::testing::CHI_SQUARE_3, "chi-square {chi}: {counts:?}");
}

#[test]
fn a_flowlet_keeps_its_port_whatever_the_queues_become() {
    let gap = Span::from_us(500);
    let mut world = World::new(&Params { granularity: Granularity::Flowlet, gap, entries: 64, ..params() });
    let group = Group::of(0..4);
    let first = world.choose(&group);
    for step in 1..100 {
        world.queue(us(step * 400), first as u16, FULL);
        assert_eq!(world.choose(&group), first);
    }
    assert_eq!(world.counter("decisions"), 1);
    world.switch.now += gap * 2;
    let second = world.choose(&group);
    assert_eq!(world.counter("decisions"), 2, "a pause ends it");
    world.choose(&Group::of((0..4).filter(|&port| usize::from(port) != second)));
    assert_eq!(world.counter("decisions"), 3, "its own port failed: a new flowlet");
}

#[test]
fn clones_beyond_the_room_are_lost_and_counted() {
    let mut world =
        World::new(&Params { update: Span::from_us(1), recirculation: Span::from_s(1), ..params() });
    for step in 1..=1_100 {
        world.queue(us(step * 2), 0, 0);
    }
    world.queue(us(3_000), 0, 0);
    assert_eq!((world.counter("clones"), world.counter("clones_lost")), (1_024, 77));
    assert_eq!(world.counter("decision_delay_ns"), 0, "none has come back yet");
}

#[test]
fn ports_to_hosts_are_not_watched_and_take_no_state() {
    let mut switch = FakeSwitch::new(4, 1);
    switch.peers[0] = Peer::Host(weft_packet::HostId(0));
    switch.buffers[1] = None;
    let scheme = Qall::new(&params(), &switch.info(0, 0, 1));
    assert_eq!([0, 1, 2].map(|port| scheme.ports[port].full), [0, 375_000, 375_000]);
    assert_eq!(scheme.state_bytes(), 3 * 24);
}

/// A packet leaves the queue every 200 us, and the one at 300 us is 50 us away when the port
/// changes.
fn world_before_a_change() -> World {
    let mut world = World::new(&Params { update: Span::from_ns(1), ..params() });
    world.queue(us(100), 0, 0);
    world.queue(us(200), 0, 100_000);
    world.queue(us(200), 0, 101_000);
    world.switch.now = us(250);
    world.weights(us(250));
    assert_eq!(world.counter("clones"), 3);
    world
}

/// The port drains at this rate from 250 us on, 52,000 bytes being queued.
fn change(world: &mut World, rate: Rate) {
    world.switch.now = us(250);
    world.switch.rates[0] = rate;
    world.switch.backlogs[0] = 52_000;
    world.scheme.on_port_change(&mut world.switch, PortId(0));
}

#[test]
fn clones_of_packets_in_the_queue_follow_a_change_of_the_ports_rate() {
    // 50,000 bytes are ahead of the first packet at 250 us: 100 us at half the rate, 25 us at twice
    // of it. The second one follows after the 1,000 bytes of the first.
    for (rate, first_us, gap_ns) in [(4, 350, 2_000), (16, 275, 500)] {
        let mut world = world_before_a_change();
        change(&mut world, Rate::from_gbps(rate));
        let port = |world: &World| world.scheme.ports[0].clone();
        let first = us(first_us + 10);
        world.weights(Time::from_ps(first.as_ps() - 1));
        assert_eq!(port(&world).measured, us(100).as_ps());
        // Found 273 of 1,024 parts of the buffer, and left the given time after the packet at 100
        // us; the queue grew.
        assert_eq!(world.weights(first)[0], MAX - 273 * (1_000 - (first_us - 100)) * 2);
        assert_eq!(port(&world).measured, us(first_us).as_ps());
        let second = us(first_us).as_ps() + gap_ns * 1_000;
        world.weights(Time::from_ps(second) + Span::from_us(10));
        assert_eq!(port(&world).measured, second);
        assert_eq!(world.scheme.ports[0].weight, MAX - 275 * (1_000 - gap_ns / 1_000) * 2);
        // The next packet finds the queue empty at 400 us: its interval counts from where the
        // second one left.
        world.queue(us(400), 0, 0);
        world.weights(us(500));
        assert_eq!(port(&world).measured, us(400).as_ps());
    }
}

#[test]
fn clones_of_packets_that_a_failing_link_lost_never_come() {
    let mut world = world_before_a_change();
    world.switch.up[0] = false;
    world.switch.rates[0] = Rate::from_gbps(8);
    world.scheme.on_port_change(&mut world.switch, PortId(0));
    let before = world.weights(us(250));
    assert_eq!(world.weights(us(10_000)), before);
    assert_eq!(world.counter("clones"), 1, "that of the packet at 100 us");
    world.switch.up[0] = true;
    world.scheme.on_port_change(&mut world.switch, PortId(0));
    // Back at work, the next clone's interval is no longer than the time since the failure.
    world.queue(us(20_000), 0, 0);
    world.weights(us(20_010));
    assert_eq!((world.counter("clones"), world.scheme.ports[0].measured), (2, us(20_000).as_ps()));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let refused = |change: fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.validate().unwrap_err().to_string()
    };
    assert_eq!(refused(|p| p.update = Span::ZERO), "update is 0ps: longer than nothing");
    assert_eq!(
        refused(|p| p.rising = 0),
        "rising is 0: at least `falling`: a queue that grows is the more congested"
    );
    for (key, change) in [
        ("gap", (|p| p.gap = Span::ZERO) as fn(&mut Params)),
        ("entries", |p| p.entries = 1_000),
        ("falling", |p| p.falling = 0),
        ("tick", |p| p.tick = Span::ZERO),
        ("time_constant", |p| p.time_constant = Span::from_ns(999)),
        ("time_constant", |p| p.tick = Span::from_ps(1)),
        ("full_queue", |p| p.full_queue = Bytes::ZERO),
        ("floor_percent", |p| p.floor_percent = 101),
    ] {
        assert!(refused(change).starts_with(key), "{key}");
    }
}
