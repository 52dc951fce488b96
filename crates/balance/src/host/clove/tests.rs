//! CLOVE at a host: discovery, flowlets, marks there and back, and what guests see of them.

use weft_packet::{Kind, PacketFlags};

use crate::testing::{CHI_SQUARE_3, FakeHost, HOSTS_PER_RACK, chi_square, packet, with};
use crate::{Expired, ParameterError};

use super::header::Header;
use super::*;

mod choices;

/// The base round trip of the test world between racks.
const RTT_US: u64 = 40;
const FAR: HostId = HostId(HOSTS_PER_RACK);

/// One host, and a fabric that answers traces.
struct World {
    scheme: Clove,
    host: FakeHost,
    /// The paths that exist: which one an entropy takes is its remainder.
    paths: Vec<Vec<Expired>>,
    /// Paths by their places in `paths` on which nothing arrives.
    holes: Vec<usize>,
    sent: Vec<Message>,
}

impl World {
    fn new(params: &Params, paths: u32) -> Self {
        let host = FakeHost::new(paths as u16, 7);
        let path =
            |spine| vec![Expired { switch: 100 + spine, port: 0 }, Expired { switch: 1, port: spine as u16 }];
        Self {
            scheme: Clove::new(params, &FakeHost::info(1)),
            host,
            paths: (0..paths).map(path).collect(),
            holes: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn at(&mut self, us: u64) -> &mut Self {
        self.host.now = Time::ZERO + Span::from_us(us);
        self
    }

    fn path_of(&self, entropy: u32) -> usize {
        entropy as usize % self.paths.len()
    }

    /// Sends a packet that is ready, and says how it leaves.
    fn send(&mut self, flow: &mut Flow, mut packet: Packet) -> Packet {
        self.scheme.on_send(&mut self.host, flow, &mut packet);
        packet
    }

    /// Receives a packet, and says what the guest gets.
    fn receive(&mut self, flow: &mut Flow, packet: Packet) -> Packet {
        self.scheme.on_receive(&mut self.host, flow, packet);
        self.host.delivered.pop().expect("every packet is delivered")
    }

    /// Answers everything that was asked, until nothing more is.
    fn answer_all(&mut self) {
        while !self.host.messages.is_empty() {
            for probe in std::mem::take(&mut self.host.messages) {
                let path = self.path_of(probe.entropy);
                let expired = self.paths[path].get(usize::from(probe.hop_limit) - 2).copied();
                let tag = if expired.is_some() { probe.tag } else { REACHED | probe.tag & 0xffff };
                self.sent.push(probe.clone());
                if !self.holes.contains(&path) {
                    self.scheme.message(&mut self.host, Message { tag, expired, hop_limit: 0, ..probe });
                }
            }
        }
    }

    /// Lets the timers of the host go off, up to this time.
    fn run_timers(&mut self, until_us: u64) {
        let until = Time::ZERO + Span::from_us(until_us);
        while let Some(next) = (0..self.host.host_timers.len())
            .min_by_key(|&index| self.host.host_timers[index].0)
            .filter(|&index| self.host.host_timers[index].0 <= until)
        {
            let (at, token) = self.host.host_timers.remove(next);
            self.host.now = at;
            self.scheme.host_timer(&mut self.host, token);
            self.answer_all();
        }
        self.host.now = until;
    }

    /// A world that has discovered all paths, at 1 ms.
    fn discovered(params: &Params, paths: u32) -> Self {
        let mut world = Self::new(params, paths);
        world.send(&mut Flow::default(), data(5));
        world.answer_all();
        assert_eq!(world.known(), paths as usize);
        world.at(1_000);
        world
    }

    fn known(&self) -> usize {
        self.scheme.rules.destinations.first().map_or(0, |there| there.paths.list().len())
    }

    fn count(&self, name: &str) -> u64 {
        let mut found = None;
        self.scheme.counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.expect("a counter")
    }
}

fn data(entropy: u32) -> Packet {
    with(packet(entropy), |sent| sent.flags = PacketFlags::ECT)
}

/// A packet as the other end gets it.
fn turned(packet: Packet, ce: bool) -> Packet {
    with(packet, |packet| {
        (packet.src, packet.dst) = (FAR, HostId(0));
        packet.flags = packet.flags.with_if(PacketFlags::CE, ce);
    })
}

fn mode(mode: Mode) -> Params {
    Params { mode, ..Params::default() }
}

#[test]
fn the_first_packet_begins_a_discovery_and_keeps_its_own_entropy() {
    let mut world = World::new(&Params::default(), 4);
    let mut flow = Flow::default();
    let sent = world.send(&mut flow, data(77));
    assert_eq!((sent.entropy, world.count("discoveries")), (77, 1));
    let probes = &world.host.messages;
    assert_eq!(probes.len(), 64);
    assert!(probes.iter().all(|probe| (probe.hop_limit, probe.wire_bytes, probe.peer) == (2, 64, FAR)));
    // A second packet, and another flow, do not begin another one.
    world.send(&mut flow, data(77));
    world.send(&mut Flow::default(), data(78));
    assert_eq!((world.host.messages.len(), world.count("traces")), (64, 64));
}

#[test]
fn a_discovery_asks_each_entropy_over_each_hop_once_and_counts_its_bytes() {
    let world = World::discovered(&Params::default(), 4);
    // Two switches behind the first one, and the receiving host.
    assert_eq!((world.count("traces"), world.count("trace_bytes")), (64 * 3, 64 * 3 * 64));
    assert_eq!((world.count("paths"), world.count("lost_traces")), (4, 0));
    let limits: Vec<usize> =
        (2..=5).map(|limit| world.sent.iter().filter(|probe| probe.hop_limit == limit).count()).collect();
    assert_eq!(limits, [64, 64, 64, 0]);
}

#[test]
fn a_flow_that_goes_on_stays_on_its_hash_and_its_next_flowlet_takes_a_path() {
    let mut world = World::new(&Params::default(), 4);
    let mut flow = Flow::default();
    world.send(&mut flow, data(77));
    world.answer_all();
    assert_eq!(world.at(2 * RTT_US).send(&mut flow, data(77)).entropy, 77, "no pause yet");
    let sent = world.at(4 * RTT_US + 1).send(&mut flow, data(77));
    let known: Vec<u32> =
        world.scheme.rules.destinations[0].paths.list().iter().map(|path| path.entropy).collect();
    assert!(known.contains(&sent.entropy));
}

#[test]
fn a_flowlet_ends_after_a_pause_longer_than_the_gap() {
    let mut world = World::discovered(&Params { gap: Some(Span::from_us(50)), ..Params::default() }, 2);
    let mut flow = Flow::default();
    // With two equal weights, turns alternate: every flowlet changes its path.
    let path = |world: &mut World, flow: &mut Flow, us| {
        let sent = world.at(us).send(flow, data(1));
        world.path_of(sent.entropy)
    };
    let paths = [1_000, 1_050, 1_100, 1_151, 1_201, 1_252].map(|us| path(&mut world, &mut flow, us));
    let (first, other) = (paths[0], 1 - paths[0]);
    assert_eq!(paths, [first, first, first, other, other, first]);
    assert_eq!((world.count("flowlets"), world.count("reroutes")), (4, 2), "one before, and three");
}

#[test]
fn in_ecn_mode_flowlets_take_equal_turns_and_in_edge_flowlet_mode_chance() {
    let counts = |params| {
        let mut world = World::discovered(&params, 4);
        let mut counts = [0u64; 4];
        for _ in 0..4_000 {
            let sent = world.send(&mut Flow::default(), data(1));
            counts[world.path_of(sent.entropy)] += 1;
        }
        counts
    };
    assert_eq!(counts(mode(Mode::Ecn)), [1_000; 4]);
    let chance = counts(mode(Mode::EdgeFlowlet));
    let chi = chi_square(&chance, &[1; 4]);
    assert!(chi < CHI_SQUARE_3 && chance != [1_000; 4], "chi-square {chi}: {chance:?}");
}

#[test]
fn edge_flowlet_mode_touches_no_header() {
    let mut world = World::discovered(&mode(Mode::EdgeFlowlet), 4);
    let sent = world.send(&mut Flow::default(), packet(1));
    assert_eq!((sent.scheme, sent.flags), (0, PacketFlags::default()));
    let marked = turned(data(1), true);
    assert!(world.receive(&mut Flow::default(), marked).flags.has(PacketFlags::CE));
}

#[test]
fn marks_are_asked_of_every_packet_and_kept_from_guests_that_know_none() {
    for (guest, ect) in [(data(1), true), (packet(1), false)] {
        let (mut sender, mut receiver) =
            (World::discovered(&Params::default(), 2), World::new(&Params::default(), 2));
        let sent = sender.send(&mut Flow::default(), guest);
        assert!(sent.flags.has(PacketFlags::ECT), "the outer header can be marked");
        let got = receiver.receive(&mut Flow::default(), turned(sent, true));
        let seen = [PacketFlags::ECT, PacketFlags::CE].map(|flag| got.flags.has(flag));
        assert_eq!((seen, got.scheme), ([ect, ect], 0));
    }
    // Before anything is known no path can be told of, and the guest's packet is as it would be
    // without CLOVE.
    let mut new = World::new(&Params::default(), 2);
    assert!(!new.send(&mut Flow::default(), packet(1)).flags.has(PacketFlags::ECT));
}

/// Two hosts and one flow between them: data one way, acknowledgements the other.
struct Pair {
    sender: World,
    receiver: World,
    out: Flow,
    back: Flow,
}

impl Pair {
    fn new(params: &Params, paths: u32) -> Self {
        Self {
            sender: World::discovered(params, paths),
            receiver: World::new(params, paths),
            out: Flow::default(),
            back: Flow::default(),
        }
    }

    /// A data packet that is marked if it takes a path in `congested`, and its acknowledgement: the
    /// path, and what the guest at the sender gets.
    fn round(&mut self, us: u64, congested: &[usize]) -> (usize, Packet) {
        let sent = self.sender.at(us).send(&mut self.out, data(1));
        let path = self.sender.path_of(sent.entropy);
        let arrived = turned(sent, congested.contains(&path));
        let got = self.receiver.at(us).receive(&mut self.back, arrived);
        let ack = with(data(2), |ack| {
            ack.kind = Kind::Ack;
            ack.flags = PacketFlags::default().with_if(PacketFlags::ECE, got.flags.has(PacketFlags::CE));
        });
        let ack = self.receiver.send(&mut self.back, ack);
        (path, self.sender.receive(&mut self.out, turned(ack, false)))
    }
}

#[test]
fn a_mark_comes_back_by_the_far_edge_and_moves_flowlets_away() {
    // Flowlets 81 us apart: longer than the gap of 80 us and the relay interval of 20 us.
    let mut pair = Pair::new(&Params { cut: 1.0 / 3.0, ..Params::default() }, 2);
    let first = pair.sender.scheme.rules.destinations[0].paths.list()[0].entropy;
    let congested = pair.sender.path_of(first);
    // Worked by hand, in ninths and twenty-sevenths: weights (first, second), and turns until the
    // first one's next. (1, 1): first. (2/3, 4/3): second twice, first. (4/9, 14/9): second four
    // times, first. (8/27, 46/27): second.
    let expected = [true, false, false, true, false, false, false, false, true, false, false, false];
    let taken: Vec<bool> =
        (0..12).map(|step| pair.round(2_000 + 81 * step, &[congested]).0 == congested).collect();
    assert_eq!(taken, expected);
    assert_eq!((pair.sender.count("cuts"), pair.receiver.count("relays")), (3, 3));
    assert_eq!(pair.sender.known(), 2, "a congested path stays known");
}

#[test]
fn reports_and_cuts_are_spaced_by_the_relay_interval() {
    // One flowlet, a packet each 2 us, all marked: 20 us between reports, or between cuts alone.
    for (spaced_by, reports) in [(SpacedBy::BothEnds, 10), (SpacedBy::Sender, 100)] {
        let mut pair = Pair::new(&Params { spaced_by, ..Params::default() }, 2);
        for step in 0..100 {
            pair.round(2_000 + 2 * step, &[0, 1]);
        }
        assert_eq!((pair.receiver.count("relays"), pair.sender.count("cuts")), (reports, 10));
    }
}

#[test]
fn a_far_rack_has_many_edges_but_a_path_is_cut_once_an_interval() {
    let mut world = World::discovered(&Params::default(), 2);
    let id = world.scheme.rules.destinations[0].paths.list()[0].id;
    for host in 0..4 {
        let told = with(turned(data(1), false), |told| {
            told.src = HostId(HOSTS_PER_RACK + host);
            Header { marked: Some(id), ..Header::default() }.write(told);
        });
        world.receive(&mut Flow::default(), told);
    }
    assert_eq!(world.count("cuts"), 1);
}

#[test]
fn a_guest_gets_echoes_while_every_path_is_congested_if_so_asked() {
    let hiding = Params { guest_marks: GuestMarks::AllCongested, ..Params::default() };
    for (params, congested, hidden) in
        [(hiding.clone(), &[0][..], true), (hiding, &[0, 1][..], false), (Params::default(), &[0][..], false)]
    {
        let mut pair = Pair::new(&params, 2);
        // Both paths in turn, as two flows would: by 2 x 20 us after its report a path is
        // congested.
        let mut other = Flow::default();
        let mut seen = Vec::new();
        for step in 0..20 {
            let (path, ack) = pair.round(2_000 + 10 * step, congested);
            std::mem::swap(&mut pair.out, &mut other);
            if congested.contains(&path) && step >= 4 {
                seen.push(ack.flags.has(PacketFlags::ECE));
            }
        }
        assert!(seen.len() >= 8);
        assert!(seen.iter().all(|&seen| seen != hidden), "{:?}, {congested:?}: {seen:?}", params.guest_marks);
        assert_eq!(pair.sender.count("hidden_marks") > 0, params.guest_marks == GuestMarks::AllCongested);
    }
}

#[test]
fn the_far_edge_answers_a_trace_that_reaches_it() {
    let mut world = World::new(&Params::default(), 2);
    let probe = Message {
        peer: FAR,
        wire_bytes: 64,
        entropy: 9,
        tag: TRACE | 3,
        number: 42,
        hop_limit: 1,
        ..Message::default()
    };
    world.scheme.message(&mut world.host, probe.clone());
    let expected = Message { wire_bytes: Message::EXPIRED_BYTES, tag: REACHED | 3, hop_limit: 0, ..probe };
    assert_eq!(world.host.messages, [expected]);
    // Answers to questions that nobody asked change nothing.
    world.scheme.message(&mut world.host, Message { tag: REACHED | 9, ..Message::default() });
    world.scheme.message(
        &mut world.host,
        Message { tag: TRACE, expired: Some(Expired { switch: 1, port: 1 }), ..Message::default() },
    );
    assert_eq!(world.host.messages.len(), 1);
}

#[test]
fn the_next_discovery_comes_when_it_is_due_and_only_if_packets_went_there() {
    let mut world = World::discovered(&Params::default(), 4);
    world.send(&mut Flow::default(), data(1));
    world.run_timers(499_999);
    assert_eq!(world.count("discoveries"), 1);
    world.run_timers(500_001);
    assert_eq!(world.count("discoveries"), 2);
    let entropies: Vec<u32> =
        world.scheme.rules.destinations[0].paths.list().iter().map(|path| path.entropy).collect();
    let second: Vec<u32> = world.sent[64 * 3..].iter().map(|probe| probe.entropy).collect();
    assert!(entropies.iter().all(|entropy| second.contains(entropy)), "those in use are traced again");
    world.run_timers(3_000_000);
    assert_eq!(world.count("discoveries"), 2, "nobody went there since");
    world.send(&mut Flow::default(), data(1));
    assert_eq!(world.count("discoveries"), 3, "the next packet begins one at once");
}

#[test]
fn a_path_that_answers_no_more_is_left_at_once_and_looked_for_soon_then_seldom() {
    let mut world = World::discovered(&Params::default(), 4);
    let mut flow = Flow::default();
    let hole = world.send(&mut flow, data(1)).entropy;
    world.holes = vec![world.path_of(hole)];
    // Discovery at 500 ms, answers missed after 2, 4 and 6 ms: then it is over.
    world.run_timers(505_999);
    assert_eq!(world.known(), 4);
    // Every packet 20 us after the one before: the flowlet does not end.
    world.run_timers(506_000);
    flow.steered.flowlets.begins(world.host.now, Span::MAX);
    assert_eq!(world.known(), 3);
    assert!(world.count("lost_traces") > 0);
    let sent = world.send(&mut flow, data(1));
    assert!(!world.holes.contains(&world.path_of(sent.entropy)));
    // Lost again and again, each discovery of 6 ms: the next ones begin 2, 4, 8 ... ms later. While
    // packets go there.
    let mut begun = Vec::new();
    for us in (506_000..700_000).step_by(500) {
        world.run_timers(us);
        world.send(&mut Flow::default(), data(1));
        if world.count("discoveries") > begun.len() as u64 + 2 {
            begun.push((us - 506_000).div_ceil(1_000));
        }
    }
    assert_eq!(begun, [2, 2 + 6 + 4, 12 + 6 + 8, 26 + 6 + 16, 48 + 6 + 32, 86 + 6 + 64]);
    // When the path works again, it is found, and the pace is the old one.
    world.holes.clear();
    world.run_timers(2_000_000);
    assert_eq!((world.known(), world.count("lost_traces") > 0), (4, true));
}

#[test]
fn if_no_path_answers_packets_go_by_their_own_entropy() {
    let mut world = World::discovered(&Params::default(), 2);
    world.holes = vec![0, 1];
    let mut flow = Flow::default();
    world.send(&mut flow, data(1));
    world.run_timers(506_000);
    assert_eq!(world.known(), 0);
    assert_eq!(world.send(&mut flow, data(1)).entropy, 1);
}

#[test]
fn where_there_is_no_choice_nothing_is_sent_and_nothing_changed() {
    let mut world = World::new(&Params::default(), 1);
    let sent = world.send(&mut Flow::default(), data(1));
    assert_eq!((sent.entropy, sent.flags, sent.scheme), (1, PacketFlags::ECT, 0));
    let near = world.send(&mut Flow::default(), with(data(1), |near| near.dst = HostId(3)));
    assert_eq!((near.entropy, near.scheme), (1, 0));
    assert_eq!((world.host.messages.len(), world.host.host_timers.len()), (0, 0));
    assert_eq!(world.count("destinations"), 1, "the own rack is none");
}

#[test]
fn a_table_is_for_a_rack_or_for_a_host() {
    for (scope, tables) in [(Scope::Rack, 2), (Scope::Host, 5)] {
        let mut world = World::new(&Params { scope, ..Params::default() }, 2);
        for dst in [16, 17, 18, 32, 33, 16] {
            world.send(&mut Flow::default(), with(data(1), |sent| sent.dst = HostId(dst)));
        }
        assert_eq!((world.count("destinations"), world.count("discoveries")), (tables, tables));
    }
}

#[test]
fn bad_parameters_are_refused_in_a_spec() {
    let text = r#"{"name": "clove", "gap": "0us"}"#;
    let spec: crate::SchemeSpec = serde_json::from_str(text).expect("the form is right");
    let expected =
        ParameterError { key: "gap", found: Span::ZERO.to_string(), allowed: "longer than nothing" };
    assert_eq!(spec.validate(), Err(expected));
}

#[test]
fn a_flow_takes_as_little_room_as_the_page_says() {
    assert_eq!(size_of::<Flow>(), 24);
}
