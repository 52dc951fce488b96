//! The decision against tables worked out by hand.

use weft_packet::{Class, HostId, PacketFlags};
use weft_units::Bytes;

use crate::registry::Parameters;
use crate::testing::{FakeSwitch, Group, HOSTS_PER_RACK, RACKS, packet, with};

use super::*;

mod readings;

/// Parameters of the tables below; how the readings of TR's text decide differently is in
/// `readings`.
fn tables() -> Params {
    Params {
        rtt: Rtt::Is(Span::from_us(200)),
        believe: Believe::For(Span::from_us(200)),
        counted: Counted::Last,
        tnl: Tnl::WithPacket,
        last_uplink: LastUplink::Always,
        ..Params::default()
    }
}

/// A leaf of rack 0 with four uplinks of 10 Gbit/s: 1,500 bytes take 1.2 us.
struct World {
    scheme: Tr,
    switch: FakeSwitch,
    group: Group,
}

impl World {
    fn new(params: &Params) -> Self {
        let switch = FakeSwitch::new(4, 1);
        Self { scheme: Tr::new(params, &switch.info(0, 0, 1)), switch, group: Group::of(0..4) }
    }

    fn with_delays(delays_us: [u64; 4]) -> Self {
        Self::with_delays_and(delays_us, &tables())
    }

    fn with_delays_and(delays_us: [u64; 4], params: &Params) -> Self {
        let mut switch = FakeSwitch::new(4, 1);
        switch.delays = delays_us.map(Span::from_us).to_vec();
        let scheme = Tr::new(params, &switch.info(0, 0, 1));
        Self { scheme, switch, group: Group::of(0..4) }
    }

    /// The port that a packet of this flow and size takes now.
    fn send(&mut self, flow: u32, bytes: u16) -> u16 {
        let mut packet = with(packet(flow), |packet| packet.wire_bytes = bytes);
        self.group.ports[self.scheme.choose(&mut self.switch, &mut packet, &self.group.hops())].0
    }

    fn wait_ns(&mut self, ns: u64) {
        self.switch.now += Span::from_ns(ns);
    }

    /// An acknowledgement from rack 1 that says `code` comes in by `port`; what the host gets.
    fn ack(&mut self, port: u16, code: u32) -> Packet {
        let mut ack = with(packet(1), |packet| {
            (packet.kind, packet.src, packet.dst) = (Kind::Ack, HostId(HOSTS_PER_RACK), HostId(0));
            packet.scheme = code;
        });
        assert_eq!(self.scheme.on_arrival(&mut self.switch, &mut ack, PortId(port)), Arrival::Forward);
        ack
    }

    /// How long a packet would need to a rack by a port.
    fn time_to_next_leaf_of(&mut self, packet: &Packet, rack: u16, port: u16) -> Span {
        let queue = self.switch.drain_time_for(PortId(port), packet);
        let ways = self.scheme.ways.to(rack, self.switch.now, packet.wire_bytes);
        queue + ways.time_beyond_queue(PortId(port))
    }

    /// Time of a full-size packet to rack 1 by a port.
    fn time_to_next_leaf_ns(&mut self, port: u16) -> u64 {
        self.time_to_next_leaf_of(&packet(1), 1, port).as_ps() / 1_000
    }

    /// A short flow's packet, by a port that has the only empty queue.
    fn send_by(&mut self, flow: u32, port: u16) {
        self.switch.backlogs = (0..4).map(|other| if other == port { 0 } else { 90_000 }).collect();
        assert_eq!(self.send(flow, 1_500), port);
        self.switch.backlogs = vec![0; 4];
    }

    fn shorts(&self) -> &[u32] {
        self.scheme.flows.active_shorts()
    }
}

/// The spine of the test world: ports to the leaves 0 to 3, at 1 us and 10 Gbit/s.
fn spine() -> (Tr, FakeSwitch) {
    let mut switch = FakeSwitch::new(4, 1);
    switch.rack = None;
    switch.peers = (0..4).map(|leaf| Peer::Switch { switch: leaf, tier: 0 }).collect();
    (Tr::new(&tables(), &switch.info(100, 1, 1)), switch)
}

#[test]
fn the_time_to_the_next_leaf_is_equation_1() {
    let mut world = World::new(&tables());
    // Idle: two cables of 1 us, and 1,500 bytes sent twice.
    assert_eq!(world.time_to_next_leaf_ns(0), 2_000 + 2 * 1_200);
    // 15,000 bytes queued here: 12 us.
    world.switch.backlogs[0] = 15_000;
    assert_eq!(world.time_to_next_leaf_ns(0), 2_000 + 2 * 1_200 + 12_000);
    // Code 4 of 32 steps in 375,000 bytes is 46,875 bytes at the spine: 37.5 us.
    world.ack(0, 4);
    assert_eq!(world.time_to_next_leaf_ns(0), 2_000 + 2 * 1_200 + 12_000 + 37_500);
    assert_eq!(world.time_to_next_leaf_ns(1), 2_000 + 2 * 1_200, "another spine");
    // The spine says that its cable to rack 1 has 7 us and 1 Gbit/s: 12 us a packet.
    let mut reach = Word::reach(1, Span::from_us(7), Rate::from_gbps(1));
    world.scheme.on_arrival(&mut world.switch, &mut reach, PortId(1));
    assert_eq!(world.time_to_next_leaf_ns(1), 1_000 + 7_000 + 1_200 + 12_000);
    world.ack(1, 4);
    assert_eq!(world.time_to_next_leaf_ns(1), 1_000 + 7_000 + 1_200 + 12_000 + 375_000);
}

#[test]
fn both_queues_are_those_of_the_packets_class() {
    let short = |packet: &mut Packet| packet.flags = PacketFlags::of_class(Class::Short);
    let mut world = World::new(&tables());
    world.switch.backlogs[0] = 15_000;
    world.switch.ahead.insert(Class::Short, vec![1_500; 4]);
    let short_data = with(packet(1), short);
    assert_eq!(world.time_to_next_leaf_of(&short_data, 1, 0), Span::from_ns(2_000 + 2 * 1_200 + 1_200));
    assert_eq!(world.time_to_next_leaf_ns(0), 2_000 + 2 * 1_200 + 12_000, "the others wait longer");
    // The spine says what data of that class would stand behind: 46,875 bytes are code 4, 375,000
    // more than 31 can say.
    let (mut scheme, mut spine) = spine();
    spine.backlogs = vec![375_000; 4];
    spine.ahead.insert(Class::Short, vec![46_875; 4]);
    for (change, code) in [(short as fn(&mut Packet), 4), (|_| {}, 31)] {
        let mut ack = with(packet(1), |packet| {
            change(packet);
            packet.kind = Kind::Ack;
        });
        scheme.on_arrival(&mut spine, &mut ack, PortId(2));
        assert_eq!(ack.scheme, code);
    }
}

#[test]
fn what_a_spine_said_is_believed_for_so_long_and_no_longer() {
    let mut world = World::new(&Params { believe: Believe::For(Span::from_us(50)), ..tables() });
    let idle = world.time_to_next_leaf_ns(2);
    world.ack(2, 31);
    world.wait_ns(50_000);
    assert_eq!(world.time_to_next_leaf_ns(2), idle + 290_625, "31 of 32 steps of 300 us");
    world.wait_ns(1);
    assert_eq!(world.time_to_next_leaf_ns(2), idle);
}

#[test]
fn the_leaf_restores_the_bits_before_the_host_sees_them() {
    let mut world = World::new(&tables());
    assert_eq!(world.ack(3, 17).scheme, 0);
    assert_eq!(world.ack(3, 0).scheme, 0);
}

#[test]
fn a_spine_writes_the_queue_towards_the_leaf_that_acknowledges() {
    let (mut scheme, mut switch) = spine();
    let mut code = |bytes| {
        switch.backlogs[2] = bytes;
        let mut ack = with(packet(1), |packet| packet.kind = Kind::Ack);
        scheme.on_arrival(&mut switch, &mut ack, PortId(2));
        ack.scheme
    };
    // A step is 375,000 / 32 = 11,718.75 bytes.
    for (bytes, expected) in [(0, 0), (11_718, 0), (11_719, 1), (23_437, 1), (23_438, 2), (374_999, 31)] {
        assert_eq!(code(bytes), expected, "{bytes} bytes");
    }
    assert_eq!(code(10_000_000), 31, "a longer queue than the buffer that was agreed on");
    let mut data = packet(1);
    scheme.on_arrival(&mut switch, &mut data, PortId(2));
    assert_eq!(data.scheme, 0, "data carries nothing");
}

#[test]
fn leaves_learn_the_far_cables_from_packets() {
    let (mut scheme, mut switch) = spine();
    switch.delays[3] = Span::from_us(9);
    scheme = Tr { ports: Tr::new(&tables(), &switch.info(100, 1, 1)).ports, ..scheme };
    let here = |rack| Word::Here.packet(rack);
    assert_eq!(scheme.on_arrival(&mut switch, &mut here(0), PortId(0)), Arrival::Consume);
    assert!(switch.outbox.is_empty(), "nobody else is known");
    scheme.on_arrival(&mut switch, &mut here(1), PortId(3));
    let sent: Vec<_> = switch.outbox.iter().map(|(port, sent)| (port.0, sent.scheme, sent.seq)).collect();
    let reach = |rack| u32::from(Word::Reach as u16) << 16 | rack;
    assert_eq!(sent, [(0, reach(1), 9_000_000), (3, reach(0), 1_000_000)]);
    // At a leaf, on its port 2.
    let mut world = World::new(&tables());
    let mut packet = switch.outbox[0].1;
    world.scheme.on_arrival(&mut world.switch, &mut packet, PortId(2));
    assert_eq!(world.time_to_next_leaf_ns(2), 1_000 + 9_000 + 2 * 1_200);
}

#[test]
fn a_leaf_says_where_its_rack_is_on_every_uplink() {
    let mut world = World::new(&tables());
    world.switch.peers[1] = Peer::Host(HostId(0));
    world.scheme = Tr::new(&tables(), &world.switch.info(0, 0, 1));
    world.scheme.start(&mut world.switch);
    assert_eq!(world.switch.outbox.iter().map(|(port, _)| port.0).collect::<Vec<_>>(), [0, 2, 3]);
}

/// Uplinks of 5, 1, 9, 1 us: times to the next leaf of 2 d + 2.4 us.
#[test]
fn a_short_flow_takes_the_earliest_of_those_that_cannot_overtake() {
    let mut world = World::with_delays([5, 1, 9, 1]);
    // 1 and 3 are alike, at 4.4 us.
    let first = world.send(1, 1_500);
    assert!([1, 3].contains(&first));
    let other = if first == 1 { 3 } else { 1 };
    world.switch.backlogs[usize::from(first)] = 1_500;
    // At once after it: the other one would tie with the last packet, so this one follows it at 5.6
    // us.
    assert_eq!(world.send(1, 1_500), first);
    assert_eq!(world.send(2, 1_500), other, "another flow is free");
    // Both have 19.2 us queued now, so 23.6 us; port 0 is at 12.4 us, port 2 at 20.4 us; 5.6 us was
    // the last.
    world.switch.backlogs[usize::from(first)] = 24_000;
    world.switch.backlogs[usize::from(other)] = 24_000;
    assert_eq!(world.send(1, 1_500), 0);
    // 12.4 us is the last: 1 and 3 at 4.4 us would overtake, 2 at 20.4 us is earlier than 0 at 44.4
    // us.
    world.switch.backlogs = vec![40_000, 0, 0, 0];
    assert_eq!(world.send(1, 1_500), 2);
    // 20.4 us is the last: the short ways are excluded for 16 us, until they are no earlier.
    world.wait_ns(16_000);
    assert_eq!(world.send(1, 1_500), 2, "4.4 us + 16 us would tie");
    world.wait_ns(16_001);
    assert!([1, 3].contains(&world.send(1, 1_500)), "later than the last, and the earliest");
}

#[test]
fn a_small_packet_does_not_pass_the_large_one_before_it() {
    let mut world = World::new(&tables());
    let first = world.send(1, 1_500);
    world.switch.backlogs[usize::from(first)] = 1_400;
    world.wait_ns(80);
    // 100 bytes on an idle uplink: 80 + 2,000 + 160 ns, before the 4,400 ns of the first.
    assert_eq!(world.send(1, 100), first);
    assert_eq!(world.scheme.flows.last(slot(&world.scheme, 1)).tnl, Time::from_ps(4_400_000));
}

fn slot(scheme: &Tr, flow: u32) -> usize {
    scheme.flows.clone().arrive(Time::ZERO, &packet(flow)).0
}

#[test]
fn without_its_port_and_with_faster_ways_only_a_flow_overtakes_by_least() {
    let mut world = World::with_delays([5, 1, 9, 3]);
    world.switch.backlogs = vec![40_000, 40_000, 0, 40_000];
    assert_eq!(world.send(1, 1_500), 2);
    world.switch.backlogs = vec![0; 4];
    world.group = Group::of([0, 1, 3]);
    assert_eq!(world.send(1, 1_500), 0);
    assert_eq!(world.scheme.empty_sets, 1);
}

#[test]
fn a_long_flow_takes_the_uplink_with_the_fewest_active_short_flows() {
    let params = Params { long_after: Bytes::new(3_000), ..tables() };
    let mut world = World::new(&params);
    // Make flow 9 long: its third packet is above 3,000 bytes.
    for _ in 0..3 {
        world.send(9, 1_500);
    }
    assert_eq!(world.scheme.flows.active_shorts().iter().sum::<u32>(), 0, "9 is long");
    world.wait_ns(100_000);
    // One short flow each on the ports 0, 1 and 3, and two on 1.
    for (flow, port) in [(1, 0), (2, 1), (3, 1), (4, 3)] {
        world.switch.backlogs = (0..4).map(|other| if other == port { 0 } else { 9_000 }).collect();
        assert_eq!(world.send(flow, 1_500), port);
    }
    assert_eq!(world.scheme.flows.active_shorts(), [1, 2, 0, 1]);
    world.switch.backlogs = vec![0, 0, 90_000, 0];
    assert_eq!(world.send(9, 1_500), 2, "longest queue, no short flow");
    // A short flow joins 2: now 0, 2 and 3 have one, and 9 could only follow itself or overtake.
    assert_eq!(world.send(9, 1_500), 2);
    world.wait_ns(200_000);
    assert_eq!(world.scheme.flows.active_shorts(), [1, 2, 0, 1]);
    // 200 us is not longer than an RTT; a nanosecond more is, and all ports are alike but for the
    // time.
    world.switch.backlogs = vec![9_000, 9_000, 9_000, 0];
    world.wait_ns(1);
    assert_eq!(world.send(9, 1_500), 3);
    assert_eq!(world.scheme.flows.active_shorts(), [0; 4]);
}

#[test]
fn short_flows_count_once_leave_when_quiet_or_long_and_come_back() {
    let params = Params { long_after: Bytes::new(6_000), ..tables() };
    let mut world = World::new(&params);
    let total = |world: &World| world.scheme.flows.active_shorts().iter().sum::<u32>();
    world.send(1, 1_500);
    world.send(1, 1_500);
    assert_eq!(total(&world), 1, "one flow, two packets");
    world.wait_ns(150_000);
    world.send(2, 1_500);
    assert_eq!(total(&world), 2);
    world.wait_ns(60_000);
    world.send(2, 1_500);
    assert_eq!(total(&world), 1, "1 has been quiet for 210 us");
    world.send(1, 1_500);
    assert_eq!(total(&world), 2, "1 is back, with 4,500 bytes");
    world.send(1, 1_500);
    assert_eq!(total(&world), 2, "6,000 bytes are not more than 6,000");
    world.send(1, 1_500);
    assert_eq!(total(&world), 1, "1 is long");
    world.wait_ns(500_000);
    world.send(1, 1_500);
    assert_eq!(total(&world), 0, "and stays long after a pause; 2 is quiet");
}

#[test]
fn acknowledgements_are_kept_in_order_and_count_nowhere() {
    let mut world = World::new(&Params { long_after: Bytes::new(100), ..tables() });
    for _ in 0..10 {
        let mut ack = with(packet(1), |packet| (packet.kind, packet.wire_bytes) = (Kind::Ack, 64));
        let hops = world.group.hops();
        let index = world.scheme.choose(&mut world.switch, &mut ack, &hops);
        world.switch.backlogs[index] += 64;
    }
    assert_eq!(world.scheme.flows.active_shorts(), [0; 4]);
    assert!(!world.scheme.flows.arrive(world.switch.now, &with(packet(1), |p| p.kind = Kind::Ack)).2);
}

#[test]
fn flows_that_meet_in_an_entry_share_it_until_one_is_quiet() {
    let mut world = World::new(&Params { entries: 1, long_after: Bytes::new(3_000), ..tables() });
    world.send(1, 1_500);
    world.send(2, 1_500);
    assert_eq!(world.scheme.flows.shared(), 1);
    assert!(world.scheme.flows.clone().arrive(world.switch.now, &packet(2)).2, "their bytes add up");
    world.wait_ns(200_001);
    world.send(2, 1_500);
    assert_eq!(world.scheme.flows.shared(), 1, "the entry is 2's now");
    assert!(!world.scheme.flows.clone().arrive(world.switch.now, &packet(2)).2);
}

#[test]
fn a_connection_request_starts_its_flow_anew() {
    let mut world = World::new(&Params { long_after: Bytes::new(2_000), ..tables() });
    world.send(1, 1_500);
    world.send(1, 1_500);
    let mut syn = with(packet(1), |packet| (packet.kind, packet.wire_bytes) = (Kind::Syn, 64));
    assert!(!world.scheme.flows.arrive(world.switch.now, &syn).2);
    syn.kind = Kind::Data;
    assert!(!world.scheme.flows.arrive(world.switch.now, &syn).2);
}

#[test]
fn only_the_leaf_of_the_sender_decides() {
    let (mut spine, mut switch) = spine();
    let group = Group::of(0..4);
    let first = spine.choose(&mut switch, &mut packet(1), &group.hops());
    switch.backlogs[first] = 375_000;
    assert_eq!(spine.choose(&mut switch, &mut packet(1), &group.hops()), first, "a flow stays on its hash");
    assert_eq!(spine.state_bytes(), 4 * 20, "a spine keeps no table");
    let mut transit = World::new(&tables());
    let mut foreign = with(packet(1), |packet| packet.src = HostId(3 * HOSTS_PER_RACK));
    let hops = transit.group.hops();
    let first = transit.scheme.choose(&mut transit.switch, &mut foreign, &hops);
    transit.switch.backlogs[first] = 375_000;
    assert_eq!(transit.scheme.choose(&mut transit.switch, &mut foreign, &hops), first);
}

#[test]
fn state_is_what_the_page_says() {
    let params = Params { entries: 1 << 10, ..tables() };
    assert_eq!(World::new(&params).scheme.state_bytes(), 1_024 * 32 + 4 * u64::from(RACKS) * 24 + 4 * 20);
}

#[test]
fn equal_uplinks_take_turns() {
    let mut world = World::new(&tables());
    let mut counts = [0; 4];
    for _ in 0..40 {
        counts[usize::from(world.send(1, 1_500))] += 1;
        world.wait_ns(10_000);
    }
    assert_eq!(counts, [10; 4]);
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let refused = |params: Params| params.validate().unwrap_err().key;
    let good = tables;
    assert_eq!(refused(Params { long_after: Bytes::ZERO, ..good() }), "long_after");
    assert_eq!(refused(Params { rtt: Rtt::Is(Span::ZERO), ..good() }), "rtt");
    assert_eq!(refused(Params { believe: Believe::For(Span::ZERO), ..good() }), "believe");
    assert_eq!(refused(Params { spine_buffer: Bytes::ZERO, ..good() }), "spine_buffer");
    assert_eq!(refused(Params { code_bits: 0, ..good() }), "code_bits");
    assert_eq!(refused(Params { slack: Gap::Is(Span::from_s(2)), ..good() }), "slack");
    assert_eq!(refused(Params { margin: Gap::Is(Span::from_s(2)), ..good() }), "margin");
    assert_eq!(refused(Params { code_bits: 17, ..good() }), "code_bits");
    assert_eq!(refused(Params { entries: 3, ..good() }), "entries");
}

#[test]
fn what_is_explained_is_what_is_chosen_next() {
    let mut world = World::with_delays([1, 1, 1, 1]);
    let explain = |world: &World, flow| {
        world.scheme.explain(&world.switch, &packet(flow), &world.group.hops()).expect("a reason")
    };
    assert_eq!(explain(&world, 1), "the uplink by which it is at the next leaf first");
    let first = world.send(1, 1_500);
    world.switch.backlogs = vec![60_000; 4];
    world.switch.backlogs[usize::from(first)] = 150_000;
    world.send(1, 1_500);
    world.switch.backlogs = vec![0; 4];
    let said = explain(&world, 1);
    assert!(said.starts_with(
        "the uplink by which it is at the next leaf first, but not before the flow's last packet"
    ));
    assert!(explain(&world, 2).ends_with("first"), "another flow has nothing ahead");
    world.scheme.margin = Span::from_us(2);
    assert!(explain(&world, 1).contains("first, but more than 2us behind the flow's last packet"));
    assert!(explain(&world, 2).ends_with("first"), "with nothing to be behind");
    world.scheme.margin = Span::ZERO;
    for _ in 0..67 {
        world.send(3, 1_500);
    }
    assert!(explain(&world, 3).starts_with("a long flow: the uplink with the fewest active short flows"));
}
