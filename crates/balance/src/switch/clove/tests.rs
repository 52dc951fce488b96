//! CLOVE at a leaf: what it finds, what it puts around packets, and what the whole rack knows of
//! one host's marks.

use weft_packet::PacketFlags;

use crate::host::clove::{At, GuestMarks};
use crate::testing::{FakeSwitch, Group, HOSTS_PER_RACK, packet, with};
use crate::{AnyHostScheme, AnySwitchScheme, HostHooks, Peer, SchemeSpec};

use super::*;

fn params() -> Params {
    Params { at: At::Leaf, ..Params::default() }
}

struct Node {
    scheme: CloveLeaf,
    switch: FakeSwitch,
}

/// Two leaves, of racks 0 and 1, under some spines. Port `s` of a leaf leads to spine `s`, port `l`
/// of a spine to leaf `l`.
struct World {
    leaves: [Node; 2],
    spines: Vec<Node>,
    /// Spines at which every packet of a switch is lost.
    holes: Vec<usize>,
    /// The packets of switches that leaves sent.
    sent: Vec<(PortId, Packet)>,
}

impl World {
    fn new(params: &Params, spines: u16) -> Self {
        let leaf = |rack| {
            let mut switch = FakeSwitch::new(usize::from(spines), 1 + u64::from(rack));
            switch.rack = Some(rack);
            Node { scheme: CloveLeaf::new(params, &switch.info(rack.into(), 0, 1)), switch }
        };
        let spine = |spine| {
            let mut switch = FakeSwitch::new(2, 1);
            switch.rack = None;
            switch.peers = (0..2).map(|leaf| Peer::Switch { switch: leaf, tier: 0 }).collect();
            Node { scheme: CloveLeaf::new(params, &switch.info(100 + u32::from(spine), 1, 1)), switch }
        };
        Self {
            leaves: [leaf(0), leaf(1)],
            spines: (0..spines).map(spine).collect(),
            holes: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// A world in which both leaves know all paths, at 1 ms.
    fn discovered(params: &Params, spines: u16) -> Self {
        let mut world = Self::new(params, spines);
        world.send(0, data(5));
        world.send(1, turned(data(6)));
        world.settle();
        assert_eq!(world.counts("paths"), [u64::from(spines); 2]);
        world.at(1_000);
        world
    }

    fn at(&mut self, us: u64) -> &mut Self {
        for node in self.leaves.iter_mut().chain(&mut self.spines) {
            node.switch.now = Time::ZERO + Span::from_us(us);
        }
        self
    }

    /// A packet leaves its rack: how, and by which spine.
    fn send(&mut self, leaf: usize, mut packet: Packet) -> (Packet, usize) {
        let ports = 0..self.spines.len() as u16;
        let group = Group { rack: 1 - leaf as u16, ..Group::of(ports) };
        let Node { scheme, switch } = &mut self.leaves[leaf];
        let place = scheme.choose(switch, &mut packet, &group.hops());
        (packet, place)
    }

    /// It reaches the other rack, marked or not: what the host gets.
    fn receive(&mut self, leaf: usize, mut packet: Packet, spine: usize, ce: bool) -> Packet {
        packet.flags = packet.flags.with_if(PacketFlags::CE, ce);
        let Node { scheme, switch } = &mut self.spines[spine];
        assert_eq!(scheme.on_arrival(switch, &mut packet, PortId(1 - leaf as u16)), Arrival::Forward);
        let Node { scheme, switch } = &mut self.leaves[leaf];
        assert_eq!(scheme.on_arrival(switch, &mut packet, PortId(spine as u16)), Arrival::Forward);
        packet
    }

    /// A packet of this host of rack 0 with this entropy, marked if it takes a spine in
    /// `congested`, and an acknowledgement to `hears`: the spine, and what the guest gets.
    fn round(&mut self, host: u16, entropy: u32, congested: &[usize], hears: u16) -> (usize, Packet) {
        let (sent, spine) = self.send(0, with(data(entropy), |sent| sent.src = HostId(host)));
        let got = self.receive(1, sent, spine, congested.contains(&spine));
        let ack = with(turned(data(1_000)), |ack| {
            (ack.kind, ack.dst) = (Kind::Ack, HostId(hears));
            ack.flags = PacketFlags::default().with_if(PacketFlags::ECE, got.flags.has(PacketFlags::CE));
        });
        let (ack, back) = self.send(1, ack);
        (spine, self.receive(0, ack, back, false))
    }

    /// Delivers the packets of switches and their answers, until nothing is under way.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for leaf in 0..2 {
                for (port, packet) in std::mem::take(&mut self.leaves[leaf].switch.outbox) {
                    moved = true;
                    self.sent.push((port, packet));
                    if !self.holes.contains(&port.index()) {
                        self.pass_spine(port.index(), packet, leaf);
                    }
                }
            }
            for spine in 0..self.spines.len() {
                for (port, packet) in std::mem::take(&mut self.spines[spine].switch.outbox) {
                    moved = true;
                    self.reach_leaf(port.index(), packet, spine);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn pass_spine(&mut self, spine: usize, mut packet: Packet, from: usize) {
        let Node { scheme, switch } = &mut self.spines[spine];
        if scheme.on_arrival(switch, &mut packet, PortId(from as u16)) == Arrival::Pass {
            self.reach_leaf(usize::from(packet.dst.0 / HOSTS_PER_RACK), packet, spine);
        }
    }

    fn reach_leaf(&mut self, leaf: usize, mut packet: Packet, spine: usize) {
        let Node { scheme, switch } = &mut self.leaves[leaf];
        assert_eq!(scheme.on_arrival(switch, &mut packet, PortId(spine as u16)), Arrival::Consume);
    }

    /// Lets the timers of leaf 0 go off up to this time, and what they cause arrive at once.
    fn run_timers(&mut self, until_us: u64) {
        let until = Time::ZERO + Span::from_us(until_us);
        while self.leaves[0].switch.timers.iter().any(|&(at, _)| at <= until) {
            let Node { scheme, switch } = &mut self.leaves[0];
            let token = switch.next_timer().expect("one is due");
            scheme.on_timer(switch, token);
            self.settle();
        }
        self.at(until_us);
    }

    /// By leaf.
    fn counts(&self, name: &str) -> [u64; 2] {
        [0, 1].map(|leaf| {
            let mut found = None;
            self.leaves[leaf].scheme.counters(&mut |counter, value| {
                if counter == name {
                    found = Some(value);
                }
            });
            found.expect("a counter")
        })
    }

    /// The entropies that leaf 0 knows, and the spine that each leads over.
    fn known(&mut self) -> Vec<(u32, usize)> {
        let Node { scheme, .. } = &self.leaves[0];
        let leaf = scheme.leaf.as_ref().expect("a leaf");
        let group = Group::of(0..self.spines.len() as u16);
        let list = leaf.rules.destinations[0].paths.list().iter();
        list.map(|path| (path.entropy, scheme.ecmp.hash_choice(path.entropy, &group.hops()).unwrap()))
            .collect()
    }
}

/// From host 0 to host 16, of a guest that knows ECN.
fn data(entropy: u32) -> Packet {
    with(packet(entropy), |sent| sent.flags = PacketFlags::ECT)
}

/// The other way.
fn turned(packet: Packet) -> Packet {
    with(packet, |packet| (packet.src, packet.dst) = (packet.dst, packet.src))
}

#[test]
fn the_first_packet_of_a_rack_begins_its_discovery_and_keeps_its_own_entropy() {
    let mut world = World::new(&params(), 4);
    let (sent, spine) = world.send(0, data(77));
    assert_eq!((sent.entropy, sent.flags), (77, PacketFlags::ECT));
    let outbox = world.leaves[0].switch.outbox.clone();
    assert_eq!(outbox.len(), 64);
    let group = Group::of(0..4);
    for (port, probe) in &outbox {
        let own = world.leaves[0].scheme.ecmp.hash_choice(probe.entropy, &group.hops());
        assert_eq!(Some(port.index()), own, "it leaves as a packet with its entropy does");
        assert_eq!(Word::read(probe), Some(Word::Probe { left: 1 }), "the spine is the first to be asked");
        assert_eq!((probe.src, probe.dst, probe.wire_bytes), (HostId(0), HostId(16), 64));
    }
    // Not another one for another host of the rack.
    world.send(0, with(data(78), |sent| sent.src = HostId(3)));
    assert_eq!((world.leaves[0].switch.outbox.len(), world.counts("traces")), (64, [64, 0]));
    // Its own entropy is what it is hashed by.
    assert_eq!(world.leaves[0].scheme.ecmp.hash_choice(77, &group.hops()), Some(spine));
}

/// A probe to the spine, one to the far leaf, and one that is for that leaf: three for each
/// entropy, 64 bytes, and an answer to each.
#[test]
fn a_discovery_finds_one_entropy_for_each_spine() {
    let mut world = World::discovered(&params(), 4);
    assert_eq!(world.counts("traces"), [64 * 3; 2]);
    assert_eq!(world.counts("trace_bytes"), [64 * 3 * 64; 2]);
    assert_eq!(world.counts("trace_answers"), [64; 2]);
    assert_eq!(world.counts("lost_traces"), [0; 2]);
    let mut spines: Vec<usize> = world.known().into_iter().map(|(_, spine)| spine).collect();
    spines.sort_unstable();
    assert_eq!(spines, [0, 1, 2, 3]);
    let answers = world.sent.iter().filter(|(_, sent)| sent.wire_bytes == 74).count();
    assert_eq!(answers, 2 * 64 * 2, "two of a leaf for each of the other's traces; the third is the spine's");
}

#[test]
fn flowlets_of_all_hosts_take_turns_together_and_spines_hash_what_they_were_given() {
    let mut world = World::discovered(&params(), 4);
    let mut taken = [0; 4];
    for host in 0..16 {
        let (sent, spine) = world.send(0, with(data(host.into()), |sent| sent.src = HostId(host)));
        taken[spine] += 1;
        assert!(world.known().contains(&(sent.entropy, spine)), "host {host}");
        // Above, it is ECMP by that entropy.
        let (Node { scheme, switch }, group) = (&mut world.spines[spine], Group::of(0..2));
        let hashed = scheme.ecmp.hash_choice(sent.entropy, &group.hops());
        assert_eq!(Some(scheme.choose(switch, &mut sent.clone(), &group.hops())), hashed);
    }
    assert_eq!(taken, [4; 4]);
}

#[test]
fn a_flowlet_stays_on_its_path_until_a_pause_longer_than_the_gap() {
    let mut world = World::discovered(&Params { gap: Some(Span::from_us(50)), ..params() }, 2);
    let spines = [1_000, 1_050, 1_100, 1_151, 1_201, 1_252].map(|us| world.at(us).send(0, data(1)).1);
    let (first, other) = (spines[0], 1 - spines[0]);
    assert_eq!(spines, [first, first, first, other, other, first]);
    // What leaves without a choice of its leaf is another rack's, and goes by its own entropy.
    let stranger = with(data(9), |sent| sent.src = HostId(5 * HOSTS_PER_RACK));
    let (sent, _) = world.send(0, stranger);
    assert_eq!((sent.entropy, sent.scheme), (9, 0));
}

/// Weights as in the host's own test, in ninths and twenty-sevenths: (1, 1): the first. (2/3, 4/3):
/// the second twice, the first. (4/9, 14/9): the second four times, the first. Each flowlet is
/// another host's, and what tells of marks goes to a host that never sent.
#[test]
fn all_hosts_of_the_rack_turn_away_from_what_one_hosts_marks_told_of() {
    let mut world = World::discovered(&Params { cut: 1.0 / 3.0, ..params() }, 2);
    let congested = world.known()[0].1;
    let expected = [true, false, false, true, false, false, false, false, true, false, false, false];
    let taken = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(|step: u16| {
        world.at(2_000 + 81 * u64::from(step)).round(step, 100 + u32::from(step), &[congested], 15).0
            == congested
    });
    assert_eq!(taken, expected);
    assert_eq!((world.counts("cuts"), world.counts("relays")), ([3, 0], [0, 3]));
    assert_eq!(world.counts("paths"), [2, 2], "a congested path stays known");
}

#[test]
fn a_guest_sees_its_own_marks_and_none_that_it_did_not_ask_for() {
    let ce = PacketFlags::ECT.with(PacketFlags::CE);
    // What a host sent, whether a queue above the leaf marks it, what the far host gets, and
    // whether the path is told of.
    for (guest, marks, expected, tells) in [
        (PacketFlags::ECT, false, PacketFlags::ECT, false),
        (PacketFlags::ECT, true, ce, true),
        (PacketFlags::default(), true, PacketFlags::default(), true),
        // Marked on the way to the leaf: that is no mark of the path.
        (ce, false, ce, false),
    ] {
        let mut world = World::discovered(&params(), 2);
        let (sent, spine) = world.send(0, with(data(1), |sent| sent.flags = guest));
        assert_eq!(sent.flags, PacketFlags::ECT, "the outer header can be marked, and is not yet");
        let got = world.receive(1, sent, spine, marks);
        assert_eq!((got.flags, got.scheme), (expected, 0), "{guest:?}, {marks}");
        world.send(1, turned(data(2)));
        assert_eq!(world.counts("relays"), [0, u64::from(tells)], "{guest:?}, {marks}");
    }
}

#[test]
fn echoes_are_hidden_while_some_path_is_not_congested_if_so_asked() {
    for (guest_marks, congested, seen) in [
        (GuestMarks::Pass, &[0][..], true),
        (GuestMarks::AllCongested, &[0], false),
        (GuestMarks::AllCongested, &[0, 1], true),
    ] {
        let mut world = World::discovered(&Params { guest_marks, ..params() }, 2);
        // Two flows, one on each path.
        let mut echoes = Vec::new();
        for step in 0..20 {
            let (spine, ack) = world.at(2_000 + 10 * step).round(0, 1 + step as u32 % 2, congested, 0);
            if congested.contains(&spine) && step >= 4 {
                echoes.push(ack.flags.has(PacketFlags::ECE));
            }
        }
        assert!(
            echoes.len() >= 8 && echoes.iter().all(|&echo| echo == seen),
            "{guest_marks:?}, {congested:?}"
        );
    }
}

#[test]
fn by_chance_no_header_is_touched() {
    let params = Params { mode: Mode::EdgeFlowlet, ..params() };
    let mut world = World::discovered(&params, 4);
    let (sent, spine) = world.send(0, packet(1));
    assert_eq!((sent.scheme, sent.flags), (0, PacketFlags::default()));
    assert!(world.known().contains(&(sent.entropy, spine)));
    assert!(!CloveLeaf::hooks(&params).on_arrival.has(Kind::Data));
}

#[test]
fn a_spine_that_answers_no_more_is_asked_three_times_and_then_left() {
    let mut world = World::discovered(&params(), 4);
    world.send(0, data(1));
    world.holes = vec![2];
    // The time of the next discovery comes at 500 ms, and the next packet begins it.
    world.run_timers(600_000);
    assert_eq!(world.counts("discoveries"), [1, 1]);
    world.send(0, data(1));
    world.settle();
    assert_eq!(world.counts("discoveries"), [2, 1]);
    let lost = world.sent.len();
    world.run_timers(605_999);
    assert_eq!(world.counts("paths"), [4, 4], "answers may come still");
    world.run_timers(606_000);
    assert_eq!(world.counts("paths"), [3, 4]);
    let again = world.sent[lost..].iter().filter(|(port, _)| port.index() == 2).count() as u64;
    assert_eq!(world.counts("lost_traces"), [again / 2, 0], "each was asked again twice");
    assert!(world.known().iter().all(|&(_, spine)| spine != 2));
}

#[test]
fn flows_that_meet_in_an_entry_have_their_flowlets_together() {
    let spines = |entries| {
        let mut world = World::discovered(&Params { entries, ..params() }, 2);
        [1, 2, 3, 4].map(|entropy| world.send(0, data(entropy)).1)
    };
    let alone = spines(1 << 16);
    assert_eq!(alone, [alone[0], 1 - alone[0], alone[0], 1 - alone[0]]);
    let shared = spines(1);
    assert_eq!(shared, [shared[0]; 4]);
}

#[test]
fn what_neighbours_never_asked_changes_nothing() {
    let mut world = World::discovered(&params(), 2);
    let before = (world.counts("traces"), world.counts("paths"));
    for scheme in [0, 1 << 30, 1 << 30 | 1, 1 << 30 | 9, 2 << 30, 3 << 30] {
        for dst in [0, 5 * HOSTS_PER_RACK] {
            let mut stray = with(Packet::control(scheme), |stray| {
                (stray.src, stray.dst, stray.seq) = (HostId(7 * HOSTS_PER_RACK), HostId(dst), u32::MAX);
            });
            let Node { scheme, switch } = &mut world.leaves[0];
            scheme.on_arrival(switch, &mut stray, PortId(1));
        }
    }
    assert_eq!((world.counts("traces"), world.counts("paths")), before);
}

#[test]
fn what_is_explained_is_what_is_chosen_next() {
    let mut world = World::new(&Params { gap: Some(Span::from_us(50)), ..params() }, 2);
    let explain = |world: &World, entropy| {
        let (Node { scheme, switch }, group) = (&world.leaves[0], Group::of(0..2));
        scheme.explain(switch, &data(entropy), &group.hops()).expect("a reason")
    };
    assert!(explain(&world, 1).starts_with("no path is known yet"));
    world.send(0, data(1));
    assert!(explain(&world, 1).starts_with("the flowlet began before any path was known"));
    assert!(explain(&world, 2).starts_with("a new flowlet, and no path is known"));
    world.settle();
    assert!(explain(&world, 2).starts_with("a new flowlet: the path whose turn it is"));
    world.send(0, data(2));
    assert!(explain(&world, 2).starts_with("the flowlet goes on"));
    assert!(explain(world.at(51), 2).starts_with("a new flowlet"));
}

/// The spec says where it runs: at one of the two places, never at both.
#[test]
fn at_the_leaf_hosts_do_nothing_and_at_the_host_switches_do_nothing() {
    let spec = |at: &str| -> SchemeSpec {
        serde_json::from_value(serde_json::json!({ "name": "clove", "at": at })).expect("the form is right")
    };
    let info = crate::testing::FakeHost::info(1);
    let switch = FakeSwitch::new(2, 1);
    let (leaf, host) = (spec("leaf"), spec("host"));
    assert_eq!((leaf.name(), leaf.asks_for_base_rtts()), ("clove", true));
    assert!(matches!(leaf.switch_scheme(&switch.info(0, 0, 1)), AnySwitchScheme::CloveLeaf(_)));
    assert!(matches!(leaf.host_scheme(&info), AnyHostScheme::None));
    assert_eq!((leaf.host_hooks(), leaf.switch_hooks()), (HostHooks::default(), CloveLeaf::hooks(&params())));
    assert_eq!((host.name(), host.asks_for_base_rtts()), ("clove", false));
    assert!(matches!(host.switch_scheme(&switch.info(0, 0, 1)), AnySwitchScheme::Ecmp(_)));
    assert!(matches!(host.host_scheme(&info), AnyHostScheme::Clove(_)));
    assert_eq!(host.switch_hooks(), SwitchHooks::NONE);
    assert!(host.host_hooks().traces);
}

/// 64 KiB entries of 16 bytes, 4 bytes for each of 8 racks; two paths of two links; the marks of a
/// leaf that sent nothing marked.
#[test]
fn state_is_what_the_page_says() {
    let world = World::discovered(&params(), 2);
    let paths = 16 + 2 * (30 + 2 * 6) + 2;
    assert_eq!(world.leaves[0].scheme.state_bytes(), 65_536 * 16 + 8 * 4 + paths + 16);
    assert_eq!(world.spines[0].scheme.state_bytes(), 0);
}
