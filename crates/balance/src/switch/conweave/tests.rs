//! Rules of ConWeave, each checked by hand; order is checked in `order.rs`.

use std::collections::BTreeSet;

use weft_packet::{HostId, PacketFlags};
use weft_units::{Span, Time};

use super::header::{Epoch, Opcode};
use super::*;
use crate::Peer;
use crate::registry::Parameters;
use crate::testing::{FakeSwitch, GivenFacts, Group, HOSTS_PER_RACK, packet, with};

mod order;

const UPLINKS: u16 = 4;
/// From leaf to leaf and back, when idle: 40 us from host to host, of which 20 are the hosts'.
const BASE_US: u64 = 20;

/// The leaf of a rack: four uplinks, and behind them a port for each of two hosts.
fn leaf(params: &Params, rack: u16) -> (ConWeave, FakeSwitch) {
    assert_eq!(params.validate(), Ok(()));
    let mut switch = FakeSwitch::new(usize::from(UPLINKS) + 2, 1 + u64::from(rack));
    switch.rack = Some(rack);
    switch.base_rtts = (0..8).map(|other| Span::from_us(if other == rack { 20 } else { 40 })).collect();
    for host in 0..2 {
        switch.peers[usize::from(UPLINKS + host)] = Peer::Host(HostId(rack * HOSTS_PER_RACK + host));
    }
    switch.now = Time::ZERO + Span::from_us(1_000);
    let scheme = ConWeave::new(params, &switch.info(rack.into(), 0, 1));
    (scheme, switch)
}

/// A source leaf of rack 0, with what it sends to rack 1.
struct Sender {
    scheme: ConWeave,
    switch: FakeSwitch,
}

impl Sender {
    fn new(params: &Params) -> Self {
        let (scheme, switch) = leaf(params, 0);
        Self { scheme, switch }
    }

    /// The next packet of a flow: its uplink and header.
    fn send(&mut self, flow: u32) -> (usize, Header) {
        let mut sent = packet(flow);
        let hop = self.scheme.choose(&mut self.switch, &mut sent, &Group::of(0..UPLINKS).hops());
        assert_eq!(sent.wire_bytes, packet(flow).wire_bytes + 4, "the two times cost four bytes");
        (hop, Header::read(&sent).expect("a header"))
    }

    fn hear(&mut self, flow: u32, header: Header) {
        let mut answer = header.answer(&packet(flow));
        answer.kind = Kind::Control;
        let arrival = self.scheme.on_arrival(&mut self.switch, &mut answer, PortId(0));
        assert_eq!(arrival, Arrival::Consume);
    }

    fn reply(&mut self, flow: u32, epoch: Epoch, is_full: bool) {
        self.hear(flow, Header { opcode: Opcode::Reply, epoch, rerouted: is_full, ..Header::default() });
    }

    fn wait(&mut self, us: u64) {
        self.switch.now += Span::from_us(us);
    }

    fn counts(&self) -> &source::Counts {
        &self.scheme.leaf.as_ref().expect("a leaf").source.counts
    }
}

/// A destination leaf of rack 1, with what comes to it from rack 0.
struct Receiver {
    scheme: ConWeave,
    switch: FakeSwitch,
}

impl Receiver {
    fn new(params: &Params) -> Self {
        let (scheme, switch) = leaf(params, 1);
        Self { scheme, switch }
    }

    fn take(&mut self, seq: u32, header: Header, change: impl FnOnce(&mut Packet)) -> Arrival {
        let mut came = with(packet(7), |packet| {
            (packet.seq, packet.scheme) = (seq, header.bits());
            change(packet);
        });
        let arrival = self.scheme.on_arrival(&mut self.switch, &mut came, PortId(2));
        self.switch.settle(Some((arrival, came)));
        arrival
    }

    fn data(&mut self, seq: u32, header: Header) -> Arrival {
        self.take(seq, header, |_| {})
    }

    fn gone(&self) -> Vec<u32> {
        self.switch.gone.iter().map(|packet| packet.seq).collect()
    }

    /// News to the source leaf since the last call: opcodes and paths.
    fn told(&mut self) -> Vec<(Opcode, u8)> {
        let told = self.switch.outbox.drain(..).map(|(port, packet)| {
            assert_eq!((port, packet.dst, packet.wire_bytes), (PortId(2), HostId(0), 64));
            let header = Header::read(&packet).expect("a header");
            (header.opcode, header.path)
        });
        told.collect()
    }

    fn at(&mut self, us: u64) {
        self.switch.now = Time::ZERO + Span::from_us(us);
    }

    fn fire(&mut self) {
        let token = self.switch.next_timer().expect("a timer");
        self.scheme.on_timer(&mut self.switch, token);
        self.switch.settle(None);
    }

    fn counts(&self) -> &destination::Counts {
        &self.scheme.leaf.as_ref().expect("a leaf").destination.counts
    }
}

fn old(stamp_us: u16) -> Header {
    Header { epoch: Epoch::default().next(), stamp: header::Stamp(stamp_us), ..Header::default() }
}

fn tail(stamp_us: u16) -> Header {
    Header { tail: true, ..old(stamp_us) }
}

fn rerouted(tail_us: u16) -> Header {
    Header { rerouted: true, path: 1, ..old(tail_us) }
}

#[test]
fn each_epoch_asks_once_and_an_answer_in_time_begins_the_next_on_the_same_path() {
    let mut sender = Sender::new(&Params::default());
    let (first, header) = sender.send(7);
    assert_eq!((header.opcode, header.rerouted, header.tail), (Opcode::Request, false, false));
    assert_eq!(sender.send(7).1.opcode, Opcode::None);
    // 20 us between the leaves and 4 more are in time.
    sender.wait(BASE_US + 4);
    sender.reply(7, header.epoch, false);
    let (second, next) = sender.send(7);
    assert_eq!((second, next.opcode, next.epoch), (first, Opcode::Request, header.epoch.next()));
    assert_eq!((sender.counts().epochs, sender.counts().replies_in_time), (2, 1));
}

#[test]
fn after_a_late_answer_one_packet_is_the_tail_and_those_behind_it_take_another_path() {
    let mut sender = Sender::new(&Params { samples: 16, ..Params::default() });
    let (from, request) = sender.send(7);
    sender.wait(BASE_US + 4);
    assert_eq!(sender.send(7).0, from, "not yet late");
    sender.wait(1);
    let (by, last) = sender.send(7);
    assert_eq!((by, last.tail, last.rerouted, last.epoch), (from, true, false, request.epoch));
    let left = last.stamp;
    // The answer comes too late to change anything.
    sender.reply(7, request.epoch, false);
    for _ in 0..5 {
        sender.wait(30);
        let (to, header) = sender.send(7);
        assert_ne!(to, from);
        assert_eq!((header.rerouted, header.tail, header.stamp), (true, false, left));
    }
    // Condition (iii): no second move before the far leaf is clear.
    assert_eq!(sender.counts().reroutes, 1);
    sender.hear(7, Header { opcode: Opcode::Clear, epoch: request.epoch, ..Header::default() });
    let (_, next) = sender.send(7);
    assert_eq!((next.opcode, next.rerouted, next.epoch), (Opcode::Request, false, request.epoch.next()));
}

#[test]
fn answers_of_other_epochs_say_nothing() {
    let mut sender = Sender::new(&Params::default());
    let (_, request) = sender.send(7);
    sender.reply(7, request.epoch.next(), false);
    sender.hear(7, Header { opcode: Opcode::Clear, epoch: request.epoch, ..Header::default() });
    assert_eq!(sender.send(7).1.opcode, Opcode::None, "neither settles an epoch that waits for its reply");
    sender.reply(8, request.epoch, false);
    assert_eq!(sender.counts().replies_in_time, 0, "nor does an answer to another connection");
}

#[test]
fn a_path_that_was_marked_is_not_taken_for_its_time_and_with_all_marked_nothing_moves() {
    let params = Params { samples: 16, ..Params::default() };
    let mut sender = Sender::new(&params);
    let (from, _) = sender.send(7);
    sender.wait(BASE_US + 5);
    for path in 0..UPLINKS as u8 {
        sender.hear(7, Header { opcode: Opcode::Notify, path, ..Header::default() });
    }
    let (by, header) = sender.send(7);
    assert_eq!((by, header.tail), (from, false), "rerouting is aborted");
    assert_eq!((sender.counts().aborted, sender.counts().reroutes), (1, 0));
    sender.wait(8);
    assert!(sender.send(7).1.tail, "8 us later they are free");
    // Marks of paths to this rack say nothing of those to another.
    sender.hear(7, Header { opcode: Opcode::Notify, path: 0, ..Header::default() });
    let source = &sender.scheme.leaf.as_ref().expect("a leaf").source;
    assert!(source.is_busy(1, 0, sender.switch.now) && !source.is_busy(2, 0, sender.switch.now));
}

#[test]
fn a_connection_that_the_far_leaf_has_no_queue_for_is_not_moved_until_it_has() {
    let mut sender = Sender::new(&Params { when_full: WhenFull::Refuse, samples: 16, ..Params::default() });
    let (_, request) = sender.send(7);
    sender.reply(7, request.epoch, true);
    let (_, request) = sender.send(7);
    sender.wait(BASE_US + 5);
    assert!(!sender.send(7).1.tail, "the last answer refused");
    sender.reply(7, request.epoch, false);
    assert!(sender.send(7).1.tail, "this one came late, and does not");
}

#[test]
fn a_pause_begins_anew_without_waiting_for_word() {
    let mut sender = Sender::new(&Params { samples: 16, ..Params::default() });
    let (_, request) = sender.send(7);
    sender.wait(BASE_US + 5);
    assert!(sender.send(7).1.tail);
    assert!(sender.send(7).1.rerouted);
    sender.wait(300);
    assert!(sender.send(7).1.rerouted, "a pause of exactly that is none");
    sender.wait(301);
    let (_, next) = sender.send(7);
    assert_eq!((next.opcode, next.rerouted, next.epoch), (Opcode::Request, false, request.epoch.next()));
}

#[test]
fn a_port_that_failed_begins_an_epoch_on_another() {
    let mut sender = Sender::new(&Params::default());
    let (from, request) = sender.send(7);
    let left = Group::of((0..UPLINKS).filter(|&port| usize::from(port) != from));
    let mut sent = packet(7);
    let hop = sender.scheme.choose(&mut sender.switch, &mut sent, &left.hops());
    assert_ne!(left.ports[hop].index(), from);
    let header = Header::read(&sent).expect("a header");
    assert_eq!((header.opcode, header.epoch), (Opcode::Request, request.epoch.next()));
}

#[test]
fn what_is_no_data_or_has_no_place_in_the_table_goes_by_ecmp_without_a_header() {
    let mut sender = Sender::new(&Params { entries: 1, ..Params::default() });
    sender.send(7);
    let hops = Group::of(0..UPLINKS);
    let mut plain = |sent: Packet| {
        let mut after = sent;
        let hop = sender.scheme.choose(&mut sender.switch, &mut after, &hops.hops());
        assert_eq!((after.scheme, after.wire_bytes), (0, sent.wire_bytes));
        assert_eq!(hop, sender.scheme.ecmp.choose(&mut sender.switch, &mut after, &hops.hops()));
    };
    plain(packet(8));
    plain(with(packet(7), |ack| ack.kind = Kind::Ack));
    assert_eq!(sender.counts().unlisted, 1);
}

#[test]
fn new_connections_take_all_paths_and_keep_theirs() {
    let mut sender = Sender::new(&Params::default());
    let hops: Vec<usize> = (0..200).map(|flow| sender.send(flow).0).collect();
    assert_eq!(hops.iter().collect::<BTreeSet<_>>().len(), usize::from(UPLINKS));
    for flow in 0..200 {
        let (hop, header) = sender.send(flow);
        assert_eq!((hop, usize::from(header.path)), (hops[flow as usize], hop));
    }
}

#[test]
fn above_the_leaves_a_path_says_the_way_if_there_are_several() {
    let params = Params { above: 3, ..Params::default() };
    let mut switch = FakeSwitch::new(3, 1);
    switch.rack = None;
    let mut above = ConWeave::new(&params, &switch.info(9, 1, 1));
    let group = Group::of(0..3);
    for path in 0..12u8 {
        let header = Header { path, ..Header::default() };
        let mut sent = with(packet(7), |sent| sent.scheme = header.bits());
        assert_eq!(above.choose(&mut switch, &mut sent, &group.hops()), usize::from(path % 3));
    }
    // Answers of leaves go on, and so do packets without a header: by their hash.
    let mut answer = Header::default().answer(&packet(7));
    answer.kind = Kind::Control;
    assert_eq!(above.on_arrival(&mut switch, &mut answer, PortId(0)), Arrival::Pass);
    let (mut ack, mut same) = (with(packet(7), |ack| ack.kind = Kind::Ack), packet(7));
    let hop = above.choose(&mut switch, &mut ack, &group.hops());
    assert_eq!(hop, above.ecmp.choose(&mut switch, &mut same, &group.hops()));
}

#[test]
fn the_destination_answers_requests_and_tells_of_marks() {
    let mut receiver = Receiver::new(&Params::default());
    let request = Header { opcode: Opcode::Request, path: 3, ..old(0) };
    let marked = |packet: &mut Packet| packet.flags.set(PacketFlags::CE);
    assert_eq!(receiver.take(0, request, marked), Arrival::Forward);
    assert_eq!(receiver.told(), [(Opcode::Notify, 3), (Opcode::Reply, 0)]);
    assert_eq!(receiver.data(1, old(1)), Arrival::Forward);
    assert_eq!(receiver.told(), []);
    assert_eq!(receiver.switch.gone[0].scheme, 0, "hosts see no header");
    assert_eq!(receiver.switch.gone[0].wire_bytes, packet(7).wire_bytes - 4, "nor its bytes");
}

#[test]
fn what_comes_by_the_new_path_waits_for_the_tail_and_follows_it() {
    let mut receiver = Receiver::new(&Params::default());
    receiver.data(0, old(0));
    assert_eq!(receiver.data(3, rerouted(20)), Arrival::Hold(0));
    receiver.data(1, old(10));
    receiver.data(4, rerouted(20));
    assert_eq!(receiver.gone(), [0, 1]);
    receiver.data(2, tail(20));
    assert_eq!(receiver.gone(), [0, 1, 2, 3, 4]);
    assert_eq!(receiver.told(), [(Opcode::Clear, 0)]);
    assert_eq!(receiver.data(5, rerouted(20)), Arrival::Forward, "nothing is missing any more");
    assert_eq!((receiver.counts().held, receiver.counts().clears), (2, 1));
}

#[test]
fn a_tail_that_comes_first_holds_nothing() {
    let mut receiver = Receiver::new(&Params::default());
    receiver.data(0, tail(0));
    receiver.data(1, rerouted(0));
    assert_eq!((receiver.gone(), receiver.told()), (vec![0, 1], vec![(Opcode::Clear, 0)]));
}

#[test]
fn a_lost_tail_is_waited_for_as_long_as_it_left_behind_the_last_one_and_16_us_more() {
    let mut receiver = Receiver::new(&Params::default());
    // It left at 100 and came at 1,000; the TAIL left 50 us behind it.
    receiver.at(1_000);
    receiver.data(0, old(100));
    receiver.at(1_010);
    receiver.data(2, rerouted(150));
    receiver.fire();
    assert_eq!(receiver.switch.now, Time::ZERO + Span::from_us(1_000 + 50 + 16));
    assert_eq!((receiver.gone(), receiver.told()), (vec![0, 2], vec![(Opcode::Clear, 0)]));
    assert_eq!(receiver.counts().resumed_by_timer, 1);
    // The TAIL was late, not lost: it goes on, and nobody is told twice.
    receiver.data(1, tail(150));
    assert_eq!((receiver.gone(), receiver.told()), (vec![0, 2, 1], vec![]));
}

#[test]
fn packets_of_the_old_path_put_off_the_end_of_the_wait() {
    let mut receiver = Receiver::new(&Params::default());
    receiver.at(1_000);
    receiver.data(0, old(100));
    receiver.data(3, rerouted(150));
    // 40 us later comes one that left at 120: the path has become slower.
    receiver.at(1_040);
    receiver.data(1, old(120));
    receiver.fire();
    assert_eq!(receiver.gone(), [0, 1], "the first timer sets the next one");
    receiver.fire();
    assert_eq!(receiver.switch.now, Time::ZERO + Span::from_us(1_040 + 30 + 16));
    assert_eq!(receiver.gone(), [0, 1, 3]);
}

#[test]
fn without_a_packet_of_the_old_path_the_wait_is_the_default_and_ends_sooner_if_one_comes() {
    let mut receiver = Receiver::new(&Params::default());
    receiver.at(1_000);
    receiver.data(3, rerouted(150));
    assert_eq!(receiver.switch.timers, [(Time::ZERO + Span::from_us(1_200), 0)]);
    receiver.at(1_020);
    receiver.data(0, old(140));
    receiver.fire();
    assert_eq!(receiver.switch.now, Time::ZERO + Span::from_us(1_020 + 10 + 16));
    assert_eq!(receiver.gone(), [0, 3]);
    receiver.fire();
    assert_eq!(receiver.counts().resumed_by_timer, 1, "the other timer is over");
}

#[test]
fn with_all_queues_of_a_port_taken_packets_pass_and_answers_say_so_if_asked() {
    for (when_full, is_told) in [(WhenFull::Pass, false), (WhenFull::Refuse, true)] {
        let mut receiver = Receiver::new(&Params { queues: 1, when_full, ..Params::default() });
        receiver.data(1, rerouted(0));
        let other = |packet: &mut Packet| packet.entropy = 8;
        assert_eq!(receiver.take(1, rerouted(0), other), Arrival::Forward);
        assert_eq!(receiver.counts().passed_out_of_order, 1);
        // Another host's port has its own.
        let neighbour = |packet: &mut Packet| (packet.entropy, packet.dst) = (9, HostId(HOSTS_PER_RACK + 1));
        assert_eq!(receiver.take(1, rerouted(0), neighbour), Arrival::Hold(1));
        let request = Header { opcode: Opcode::Request, ..old(0) };
        receiver.take(0, request, |packet| packet.entropy = 10);
        let (_, reply) = receiver.switch.outbox.pop().expect("an answer");
        assert_eq!(Header::read(&reply).map(|header| header.rerouted), Some(is_told));
        receiver.data(0, tail(0));
        assert_eq!(receiver.take(1, rerouted(0), other), Arrival::Hold(0), "free again");
    }
}

#[test]
fn a_new_epoch_lets_go_what_the_old_one_held_and_late_packets_pass() {
    let mut receiver = Receiver::new(&Params::default());
    receiver.data(0, old(0));
    receiver.data(2, rerouted(10));
    let next = Header { epoch: old(0).epoch.next(), ..old(20) };
    receiver.data(3, next);
    assert_eq!(receiver.gone(), [0, 2, 3], "in this order");
    assert!(receiver.switch.held.is_empty());
    assert_eq!(receiver.data(1, tail(10)), Arrival::Forward);
    assert_eq!(receiver.told(), [], "an epoch that is over is not cleared");
    // The new epoch is as new epochs are.
    assert!(matches!(receiver.data(5, Header { rerouted: true, ..next }), Arrival::Hold(_)));
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |params: Params| params.validate().map_err(|error| error.key);
    assert_eq!(key(Params { samples: 0, ..Params::default() }), Err("samples"));
    assert_eq!(key(Params { queues: 0, ..Params::default() }), Err("queues"));
    assert_eq!(key(Params { above: 17, ..Params::default() }), Err("above"));
    assert_eq!(key(Params { inactive: Span::ZERO, ..Params::default() }), Err("inactive"));
    assert_eq!(key(Params { resume_default: Span::from_ms(33), ..Params::default() }), Err("resume_default"));
    assert_eq!(key(Params { entries: 3, ..Params::default() }), Err("entries"));
    let facts = GivenFacts { base_rtt: Span::from_us(40), hosts: 128, routes: 64 };
    assert_eq!(Params { above: 4, ..Params::default() }.fits(&facts), Ok(()));
    let refused = Params { above: 5, ..Params::default() }.fits(&facts).unwrap_err();
    assert_eq!(refused.key, "above");
}
