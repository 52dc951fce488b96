//! Rules of flowcut switching, each by hand, and order over paths of random delays.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weft_packet::HostId;

use super::*;
use crate::testing::{FakeSwitch, Group, HOSTS_PER_RACK, packet, with};

/// A sender's leaf with four uplinks, of rack 0.
struct World {
    scheme: Flowcut,
    switch: FakeSwitch,
}

fn data(seq: u32) -> Packet {
    with(packet(7), |packet| packet.seq = seq)
}

/// All segments before this one have come.
fn ack(seq: u32) -> Packet {
    with(packet(7), |ack| {
        (ack.kind, ack.seq) = (Kind::Ack, seq);
        (ack.src, ack.dst) = (HostId(HOSTS_PER_RACK), HostId(0));
    })
}

impl World {
    fn new(params: &Params) -> Self {
        assert_eq!(params.validate(), Ok(()));
        let mut switch = FakeSwitch::new(4, 1);
        switch.now = Time::ZERO + Span::from_us(100);
        let scheme = Flowcut::new(params, &switch.info(0, 0, 1));
        Self { scheme, switch }
    }

    fn choose(&mut self, mut sent: Packet) -> usize {
        self.scheme.choose(&mut self.switch, &mut sent, &Group::of(0..4).hops())
    }

    /// A packet comes from a host: the port that it takes, or none if it waits.
    fn send(&mut self, seq: u32) -> Option<usize> {
        let mut sent = data(seq);
        let arrival = self.scheme.on_arrival(&mut self.switch, &mut sent, PortId(0));
        self.switch.settle(Some((arrival, sent)));
        (arrival == Arrival::Forward).then(|| self.choose(sent))
    }

    /// An acknowledgement comes; the ports of what was let go with it.
    fn hear(&mut self, seq: u32) -> Vec<usize> {
        self.switch.gone.clear();
        let mut ack = ack(seq);
        let arrival = self.scheme.on_arrival(&mut self.switch, &mut ack, PortId(1));
        assert_eq!(arrival, Arrival::Forward);
        self.switch.settle(Some((arrival, ack)));
        self.take_released()
    }

    /// Routes the released packets.
    fn take_released(&mut self) -> Vec<usize> {
        let gone = std::mem::take(&mut self.switch.gone);
        gone.into_iter()
            .filter(|packet| packet.kind == Kind::Data)
            .map(|packet| self.choose(packet))
            .collect()
    }

    fn wait(&mut self, us: u64) {
        self.switch.now += Span::from_us(us);
    }

    fn leaf(&self) -> &Leaf {
        self.scheme.leaf.as_ref().expect("a leaf")
    }

    /// Another flow's round trip of so long.
    fn learn_rtt(&mut self, us: u64) {
        let other = |mut packet: Packet| {
            packet.entropy = 99;
            packet
        };
        self.choose(other(data(0)));
        self.choose(other(data(1)));
        self.wait(us);
        for seq in [1, 2] {
            self.scheme.on_arrival(&mut self.switch, &mut other(ack(seq)), PortId(1));
        }
    }
}

#[test]
fn a_flow_stays_on_its_port_while_anything_is_under_way_and_then_takes_the_least_loaded() {
    let mut world = World::new(&Params::default());
    world.switch.backlogs = vec![9, 9, 0, 9];
    assert_eq!(world.send(0), Some(2));
    world.switch.backlogs = vec![9, 0, 90_000, 9];
    assert_eq!(world.send(1), Some(2));
    world.hear(1);
    assert_eq!(world.send(2), Some(2), "segment 1 is under way");
    world.hear(3);
    assert_eq!(world.send(3), Some(1));
    assert_eq!(world.leaf().counts.flowcuts, 2);
}

#[test]
fn ports_that_are_equal_get_equal_shares() {
    let mut world = World::new(&Params::default());
    let mut taken = BTreeSet::new();
    for seq in 0..100 {
        taken.insert(world.send(seq));
        world.hear(seq + 1);
    }
    assert_eq!(taken.len(), 4);
}

#[test]
fn a_congested_flow_waits_at_the_leaf_until_all_of_it_is_acknowledged_and_moves_on() {
    let mut world = World::new(&Params { alpha: 1.0, least: Bytes::new(3_000), ..Params::default() });
    world.learn_rtt(10);
    world.switch.backlogs = vec![0, 9, 9, 9];
    assert_eq!([world.send(0), world.send(1), world.send(2)], [Some(0); 3]);
    world.wait(31);
    assert!(world.hear(1).is_empty(), "31 us are more than three times 10: it drains");
    world.switch.backlogs = vec![90_000, 9, 9, 0];
    assert_eq!([world.send(3), world.send(4)], [None, None]);
    // What is sent again goes by the old port: the drain waits for it.
    assert_eq!(world.send(1), Some(0));
    world.hear(2);
    assert_eq!(world.send(5), None);
    assert_eq!(world.hear(3), [3, 3, 3], "all that waited, by the port that is best now");
    assert_eq!(world.send(6), Some(3));
    let counts = &world.leaf().counts;
    assert_eq!((counts.drains, counts.held, counts.given_up), (1, 3, 0));
}

#[test]
fn a_flow_is_not_drained_below_the_ratio_nor_before_it_has_sent_enough() {
    let drains = |rtt_us, least| {
        let mut world = World::new(&Params { alpha: 1.0, least: Bytes::new(least), ..Params::default() });
        world.learn_rtt(10);
        (0..3).for_each(|seq| {
            world.send(seq);
        });
        world.wait(rtt_us);
        world.hear(1);
        world.leaf().counts.drains
    };
    assert_eq!([drains(30, 4_500), drains(31, 4_500), drains(31, 4_501)], [0, 1, 0]);
}

#[test]
fn the_average_forgets_by_its_weight() {
    let mut world = World::new(&Params { alpha: 0.5, least: Bytes::ZERO, ratio: 100.0, ..Params::default() });
    world.send(0);
    world.send(1);
    world.wait(10);
    world.hear(1);
    world.send(2);
    world.wait(30);
    world.hear(2);
    // Segment 1 was no probe: there was one. Segment 2 is, and not acknowledged yet.
    world.send(3);
    world.wait(10);
    world.hear(3);
    let flow = world.leaf().flows.look(Key::sent(&data(0))).expect("segment 3 is under way");
    // 10 us, and 40 us by half.
    assert!((flow.average_ps - 25e6).abs() < 1.0, "{}", flow.average_ps);
}

#[test]
fn a_segment_that_is_sent_again_tells_no_round_trip() {
    let mut world = World::new(&Params { alpha: 1.0, least: Bytes::ZERO, ..Params::default() });
    world.learn_rtt(10);
    world.send(0);
    world.send(1);
    world.wait(500);
    world.send(0);
    world.hear(1);
    assert_eq!(world.leaf().counts.drains, 0);
}

#[test]
fn a_drain_that_lasts_too_long_is_given_up_and_the_flow_stays() {
    let params = Params { alpha: 1.0, least: Bytes::ZERO, forget: Span::from_us(500), ..Params::default() };
    let mut world = World::new(&params);
    world.learn_rtt(10);
    world.switch.backlogs = vec![0, 9, 9, 9];
    world.send(0);
    world.send(1);
    world.wait(50);
    world.hear(1);
    world.switch.backlogs = vec![9, 0, 0, 0];
    assert_eq!(world.send(2), None);
    let token = world.switch.next_timer().expect("a timer");
    world.switch.gone.clear();
    world.scheme.on_timer(&mut world.switch, token);
    world.switch.settle(None);
    assert_eq!(world.take_released(), [0]);
    assert_eq!(world.leaf().counts.given_up, 1);
}

#[test]
fn a_flow_of_which_nothing_came_for_long_begins_anew() {
    let mut world = World::new(&Params::default());
    world.switch.backlogs = vec![0, 9, 9, 9];
    world.send(0);
    world.switch.backlogs = vec![9, 0, 9, 9];
    world.wait(10_000);
    assert_eq!(world.send(1), Some(0));
    world.wait(10_001);
    assert_eq!(world.send(2), Some(1));
}

#[test]
fn acknowledgements_and_switches_above_go_by_ecmp() {
    let mut world = World::new(&Params::default());
    let sent = with(packet(7), |ack| ack.kind = Kind::Ack);
    let mut same = sent;
    let expected = world.scheme.ecmp.choose(&mut world.switch, &mut same, &Group::of(0..4).hops());
    assert_eq!(world.choose(sent), expected);
    world.switch.rack = None;
    world.scheme = Flowcut::new(&Params::default(), &world.switch.info(0, 1, 1));
    world.switch.backlogs = vec![0; 4];
    world.switch.backlogs[expected] = 9_000;
    assert_eq!(world.choose(packet(7)), expected);
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |params: Params| params.validate().map_err(|error| error.key);
    assert_eq!(key(Params { ratio: 1.0, ..Params::default() }), Err("ratio"));
    assert_eq!(key(Params { ratio: f64::INFINITY, ..Params::default() }), Err("ratio"));
    assert_eq!(key(Params { alpha: 0.0, ..Params::default() }), Err("alpha"));
    assert_eq!(key(Params { forget: Span::ZERO, ..Params::default() }), Err("forget"));
}

/// A flow from its sender over the leaf and four paths to its receiver and back. Paths keep order,
/// and lose what they are told to.
struct Trip {
    world: World,
    events: BTreeMap<(Time, u64), Event>,
    number: u64,
    last: [Time; 5],
    /// Segments that came, in order, and up to where all has.
    came: BTreeSet<u32>,
    acknowledged: u32,
    window: u32,
    sent: u32,
    segments: u32,
    /// The numbers of departures, as they arrived.
    arrivals: Vec<u64>,
    departures: u64,
    delays: Vec<u64>,
    lost: BTreeSet<u64>,
}

enum Event {
    Arrive(u64, Packet),
    Acknowledge(u32),
    SendAgain(u32),
}

impl Trip {
    fn put(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.number), event);
        self.number += 1;
    }

    fn travel(&mut self, way: usize, event: Event) {
        let delay = Span::from_us(self.delays[self.number as usize % self.delays.len()]);
        self.last[way] = self.last[way].max(self.world.switch.now + delay);
        self.put(self.last[way], event);
    }

    /// A packet leaves the leaf by a port.
    fn depart(&mut self, port: usize, packet: Packet) {
        let departure = self.departures;
        self.departures += 1;
        if self.lost.contains(&departure) {
            let at = self.world.switch.now + Span::from_us(700);
            self.put(at, Event::SendAgain(packet.seq));
        } else {
            self.travel(port, Event::Arrive(departure, packet));
        }
    }

    fn send(&mut self, seq: u32) {
        if let Some(port) = self.world.send(seq) {
            self.depart(port, data(seq));
        }
    }

    fn run(&mut self) {
        loop {
            while self.sent < self.segments.min(self.acknowledged + self.window) {
                self.sent += 1;
                self.world.wait(1);
                self.send(self.sent - 1);
            }
            let Some(((at, _), event)) = self.events.pop_first() else { return };
            self.world.switch.now = self.world.switch.now.max(at);
            match event {
                Event::Arrive(departure, packet) => {
                    self.arrivals.push(departure);
                    self.came.insert(packet.seq);
                    let all = (0..=self.segments).find(|seq| !self.came.contains(seq)).unwrap_or_default();
                    self.travel(4, Event::Acknowledge(all));
                }
                Event::SendAgain(seq) => self.send(seq),
                Event::Acknowledge(seq) => {
                    self.acknowledged = self.acknowledged.max(seq);
                    let waiting: Vec<Packet> = self.world.switch.held.values().flatten().copied().collect();
                    let ports = self.world.hear(seq);
                    for (port, packet) in ports.into_iter().zip(waiting) {
                        self.depart(port, packet);
                    }
                }
            }
        }
    }
}

proptest! {
    /// No packet of a flow overtakes another, whatever paths differ by, and also where some are
    /// lost; and the flow ends.
    #[test]
    fn a_flow_is_never_reordered(
        delays in proptest::collection::vec(1u64..200, 3..50),
        window in 1u32..30,
        segments in 1u32..150,
        lost in proptest::collection::btree_set(0u64..150, 0..12),
        ratio in 1.05f64..4.0,
        alpha in 0.05f64..1.0,
    ) {
        let params = Params { ratio, alpha, least: Bytes::ZERO, forget: Span::from_ms(100) };
        let mut trip = Trip {
            world: World::new(&params),
            events: BTreeMap::new(),
            number: 0,
            last: [Time::ZERO; 5],
            came: BTreeSet::new(),
            acknowledged: 0,
            window,
            sent: 0,
            segments,
            arrivals: Vec::new(),
            departures: 0,
            delays,
            lost,
        };
        trip.run();
        prop_assert!(trip.arrivals.is_sorted(), "{:?}", trip.arrivals);
        prop_assert_eq!(trip.acknowledged, segments);
        prop_assert!(trip.world.switch.held.is_empty());
    }
}
