//! One host of MEET: votes, reports, views, probes, flowlets, and the change of proxies.

use super::wire::Entry;
use crate::testing::{FakeHost, HOSTS_PER_RACK, packet, with};

use super::*;

/// Hosts 0 to 15 are the rack; 16 paths lead to each other rack, so that path `16 (r - 1) + label`
/// leads to rack `r`.
const ROUTES: u16 = 16;
const PROXY: HostId = HostId(0);
const MEMBER: HostId = HostId(3);
const FAR: HostId = HostId(HOSTS_PER_RACK);

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A host of MEET and its world.
struct World {
    scheme: Meet,
    host: FakeHost,
}

impl World {
    fn new(host: HostId, params: &Params) -> Self {
        Self { scheme: Meet::new(params, &FakeHost::info_of(host, 1)), host: FakeHost::new(ROUTES, 1) }
    }

    fn at(&mut self, at_us: u64) -> &mut Self {
        self.host.now = us(at_us);
        self
    }

    /// A packet of data of a flow to a host, as it leaves.
    fn send_to(&mut self, flow: &mut Flow, dst: HostId) -> Packet {
        let mut sent = with(packet(1), |sent| sent.dst = dst);
        self.scheme.on_send(&mut self.host, flow, &mut sent);
        sent
    }

    fn send(&mut self, flow: &mut Flow) -> u16 {
        label(&self.send_to(flow, FAR))
    }

    /// An acknowledgement from rack 1 of a packet that went by a path at `sent_us`.
    fn acknowledge(&mut self, path: u16, sent_us: u64) {
        let ack = with(packet(1), |ack| {
            ack.kind = PacketKind::Ack;
            (ack.src, ack.dst, ack.sent) = (FAR, PROXY, us(sent_us));
            PathNote { path, ..PathNote::default() }.write(ack);
        });
        self.scheme.on_receive(&mut self.host, &mut Flow::default(), ack);
    }

    fn timer(&mut self, token: u32) -> Vec<Message> {
        self.host.messages.clear();
        self.scheme.host_timer(&mut self.host, token);
        std::mem::take(&mut self.host.messages)
    }

    fn update(&mut self) -> Vec<Message> {
        self.timer(UPDATE)
    }

    fn probe(&mut self) -> Vec<Message> {
        self.timer(PROBE)
    }

    /// A message comes in.
    fn message(&mut self, message: Message) {
        self.scheme.message(&mut self.host, message);
    }

    fn view(&mut self, from: HostId, number: u32, term: u32, entries: &[(u32, f32, u32)]) {
        self.message(message(Kind::View, from, number, term, entries));
    }

    /// The far host sends a probe back, which was sent at `sent_us`.
    fn answer(&mut self, probe: &Message) {
        self.message(Message { tag: Kind::Answer.tag(u32::from(probed(probe))), ..probe.clone() });
    }
}

fn message(kind: Kind, peer: HostId, number: u32, term: u32, entries: &[(u32, f32, u32)]) -> Message {
    let entries: Vec<_> =
        entries.iter().map(|&(path, value, packets)| Entry { path, value, packets }).collect();
    let [contents] = wire::encode(&entries).try_into().expect("one packet");
    Message { peer, number, tag: kind.tag(term), contents: Some(contents), ..Message::default() }
}

/// The label of a packet's route.
fn label(packet: &Packet) -> u16 {
    let mut route = packet.route;
    route.next_hop(usize::from(u16::MAX - 1)).expect("a route") as u16
}

fn probed(probe: &Message) -> u16 {
    let mut route = probe.route;
    route.next_hop(usize::from(u16::MAX - 1)).expect("a route") as u16
}

fn told(message: &Message) -> Vec<(u32, f32, u32)> {
    let contents = message.contents.as_deref().expect("contents");
    wire::decode(contents).map(|entry| (entry.path, entry.value, entry.packets)).collect()
}

fn kind(message: &Message) -> (Kind, u32) {
    Kind::read(message.tag).expect("a message of MEET")
}

fn count(scheme: &Meet, name: &str) -> u64 {
    let mut found = None;
    scheme.counters(&mut |counter, value| found = if counter == name { Some(value) } else { found });
    found.expect("a counter")
}

#[test]
fn votes_since_the_last_report_go_to_the_proxy() {
    let mut world = World::new(MEMBER, &Params::default());
    // K is 60 us. By path 5 of rack 1: 70 us and 61 us, (10^3 + 1^3) = 1,001; by path 2: 50 us,
    // nothing.
    world.at(70).acknowledge(5, 0);
    world.at(100).acknowledge(5, 39);
    world.acknowledge(2, 50);
    world.acknowledge(99, 0);
    let sent = world.update();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].peer, kind(&sent[0])), (PROXY, (Kind::Report, 0)));
    assert_eq!(told(&sent[0]), [(2, 0.0, 1), (5, 1_001.0, 2)]);
    // 54 of headers, 8 of range, 4 of bitmap, 8 for each of two paths.
    assert_eq!((sent[0].wire_bytes, count(&world.scheme, "report_bytes")), (82, 82));
    assert_eq!(count(&world.scheme, "report_path_bytes"), 16);
    assert_eq!(world.update(), [], "nothing is new");
}

#[test]
fn the_proxy_tells_every_other_host_the_mean_of_all_votes() {
    let mut world = World::new(PROXY, &Params::default());
    world.at(100).acknowledge(5, 30); // 10^3
    world.message(message(Kind::Report, MEMBER, 1, 0, &[(5, 2_000.0, 1), (9, 0.0, 4)]));
    world.message(message(Kind::Report, HostId(15), 1, 0, &[(5, 0.0, 2)]));
    let sent = world.update();
    assert_eq!(sent.iter().map(|view| view.peer.0).collect::<Vec<_>>(), (1..16).collect::<Vec<_>>());
    // Path 5: (1,000 + 2,000 + 0) / (1 + 1 + 2) = 750.
    assert!(
        sent.iter().all(|view| kind(view) == (Kind::View, 0) && told(view) == [(5, 750.0, 4), (9, 0.0, 4)])
    );
    assert_eq!(world.scheme.knowledge.worth(5, 1.0).to_bits(), 750f32.to_bits(), "it sees its own view");
    assert_eq!(count(&world.scheme, "reports"), 0, "it reports to nobody");
}

#[test]
fn a_view_is_told_even_if_it_is_empty() {
    let mut world = World::new(PROXY, &Params::default());
    let sent = world.update();
    assert_eq!((sent.len(), sent[0].wire_bytes, told(&sent[0])), (15, 64, vec![]));
}

#[test]
fn a_new_flowlet_takes_the_least_congested_path_of_the_view_and_no_other_packet_does() {
    let mut world = World::new(MEMBER, &Params::default());
    let all_but =
        |idle: u32| (0..16).map(|path| (path, if path == idle { 0.0 } else { 9.0 }, 1)).collect::<Vec<_>>();
    let mut flow = Flow::default();
    world.at(10).view(PROXY, 1, 0, &all_but(7));
    assert_eq!(world.send(&mut flow), 7);
    world.at(20).view(PROXY, 2, 0, &all_but(4));
    // 500 us of pause do not end a flowlet.
    assert_eq!(world.at(510).send(&mut flow), 7);
    assert_eq!(world.at(1_011).send(&mut flow), 4, "501 us do");
    assert_eq!((count(&world.scheme, "flowlets"), count(&world.scheme, "reroutes")), (2, 1));
}

#[test]
fn the_path_is_written_for_the_far_edge_which_sends_acknowledgements_back_by_it() {
    let mut world = World::new(MEMBER, &Params::default());
    let sent = world.send_to(&mut Flow::default(), FAR);
    assert_eq!(PathNote::read(&sent), Some(PathNote { path: label(&sent), ..PathNote::default() }));
    let mut end = Flow::default();
    let mut far = World::new(PROXY, &Params::default());
    far.scheme.on_receive(&mut far.host, &mut end, with(sent, |sent| sent.src = FAR));
    let mut acknowledge = |routes: u16, far: &mut World| {
        far.host.routes = routes;
        let mut ack = with(packet(1), |ack| ack.kind = PacketKind::Ack);
        far.scheme.on_send(&mut far.host, &mut end, &mut ack);
        ack
    };
    let ack = acknowledge(ROUTES, &mut far);
    assert_eq!((label(&ack), PathNote::read(&ack)), (label(&sent), PathNote::read(&sent)));
    assert_eq!(acknowledge(ROUTES, &mut far).route, Route::ANY, "nothing to tell: as the switches like");
    assert_eq!(count(&far.scheme, "flowlets"), 0, "acknowledgements are no flowlets");
    assert_eq!(far.scheme.destinations[1].live, 0, "nor flows");
}

#[test]
fn three_paths_are_probed_where_flows_go_and_nowhere_else() {
    let mut world = World::new(MEMBER, &Params::default());
    assert_eq!(world.probe(), [], "no flows");
    let mut flow = Flow::default();
    world.send_to(&mut flow, HostId(HOSTS_PER_RACK * 2 + 5));
    world.send_to(&mut flow, HostId(HOSTS_PER_RACK * 2 + 5));
    let probes = world.probe();
    let labels: std::collections::BTreeSet<_> = probes.iter().map(probed).collect();
    assert_eq!((probes.len(), labels.len()), (3, 3));
    for probe in &probes {
        assert_eq!((probe.peer, probe.wire_bytes), (HostId(HOSTS_PER_RACK * 2 + 5), 64));
        assert_eq!(kind(probe), (Kind::Probe, u32::from(probed(probe))));
    }
    assert_eq!(count(&world.scheme, "probe_bytes"), 192);
    world.scheme.finished(&mut world.host, &mut flow);
    assert_eq!(world.probe(), [], "the flow is done");
}

#[test]
fn the_probed_paths_are_the_least_by_the_view_the_best_of_the_last_round_and_an_uncovered_one() {
    let mut world = World::new(MEMBER, &Params::default());
    let mut flow = Flow::default();
    world.send(&mut flow);
    // The first round: nothing is known, and all answer; one within K, the others 40 us above it.
    let first = world.probe();
    world.at(50).answer(&first[1]);
    world.at(100).answer(&first[0]);
    world.answer(&first[2]);
    let best = probed(&first[1]);
    // The view covers all paths but one, and of two that were not probed finds one least congested.
    let mut others = (0..ROUTES).filter(|label| first.iter().all(|probe| probed(probe) != *label));
    let (least, uncovered) = (others.next().expect("13 others"), others.next().expect("13 others"));
    let value = |path: u32| if path == u32::from(least) { 0.0 } else { 9.0 };
    let covered = (0..16).filter(|&path| path != u32::from(uncovered));
    world.at(400).view(PROXY, 2, 0, &covered.map(|path| (path, value(path), 1)).collect::<Vec<_>>());
    let second: Vec<_> = world.at(500).probe().iter().map(probed).collect();
    assert_eq!(second, [least, best, uncovered]);
}

#[test]
fn a_probe_goes_back_by_the_route_with_its_number() {
    let mut world = World::new(MEMBER, &Params::default());
    let probe = Message {
        peer: FAR,
        wire_bytes: 64,
        route: Route::label(9),
        entropy: 77,
        tag: Kind::Probe.tag(9),
        number: 4,
        stamp: us(3),
        ..Message::default()
    };
    world.at(20).message(probe.clone());
    assert_eq!(world.host.messages, [Message { tag: Kind::Answer.tag(9), ..probe.clone() }]);
    world.host.messages.clear();
    world.host.routes = 9;
    world.message(probe);
    assert_eq!(world.host.messages[0].route, Route::ANY, "there is no such route back");
}

#[test]
fn flows_take_the_best_answer_and_answers_are_votes() {
    let mut world = World::new(MEMBER, &Params::default());
    let mut flow = Flow::default();
    world.send(&mut flow);
    let probes = world.probe();
    // 100 us, then 65 us: sent at 0 and answered at 100; the other one's stamp says 35.
    world.at(100).answer(&probes[0]);
    world.answer(&Message { stamp: us(35), ..probes[1].clone() });
    assert_eq!(world.send(&mut Flow::default()), probed(&probes[1]));
    let report = world.update();
    let mut votes = [(u32::from(probed(&probes[0])), 64_000.0, 1), (u32::from(probed(&probes[1])), 125.0, 1)];
    votes.sort_by_key(|&(path, ..)| path);
    assert_eq!(told(&report[0]), votes);
}

#[test]
fn a_lost_probe_marks_its_path_as_failed_and_a_late_answer_clears_it() {
    let mut world = World::new(MEMBER, &Params::default());
    let mut flow = Flow::default();
    world.send(&mut flow);
    let probes = world.probe();
    world.at(50).answer(&probes[0]);
    world.answer(&probes[1]);
    let lost = probed(&probes[2]);
    world.at(500).probe();
    assert!(world.scheme.knowledge.has_failed(usize::from(lost)));
    assert_eq!(count(&world.scheme, "failures"), 1);
    let report = world.update();
    assert!(told(&report[0]).contains(&(u32::from(lost), f32::INFINITY, 0)));
    for _ in 0..200 {
        assert_ne!(world.send(&mut Flow::default()), lost, "nothing takes it");
    }
    world.at(600).answer(&probes[2]);
    assert!(!world.scheme.knowledge.has_failed(usize::from(lost)));
}

#[test]
fn a_failure_that_the_view_tells_is_avoided() {
    let mut world = World::new(MEMBER, &Params::default());
    let failed: Vec<_> = (0..15).map(|path| (path, f32::INFINITY, 0)).collect();
    world.at(10).view(PROXY, 1, 0, &failed);
    assert_eq!(world.send(&mut Flow::default()), 15);
    // All failed: any is as good as any other, and nothing stops.
    world.view(PROXY, 2, 0, &(0..16).map(|path| (path, f32::INFINITY, 0)).collect::<Vec<_>>());
    assert!(world.send(&mut Flow::default()) < 16);
}

#[test]
fn with_the_proxy_probing_other_hosts_do_not_and_it_probes_what_they_report() {
    let params = Params { prober: Prober::Proxy, ..Params::default() };
    let mut member = World::new(MEMBER, &params);
    member.send(&mut Flow::default());
    assert_eq!(member.probe(), []);
    let mut proxy = World::new(PROXY, &params);
    assert_eq!(proxy.probe(), []);
    // Path 16 is the first one to rack 2.
    proxy.message(message(Kind::Report, MEMBER, 1, 0, &[(16, 0.0, 4)]));
    let probes = proxy.at(100).probe();
    assert!(
        probes.len() == 3 && probes.iter().all(|probe| probe.peer == HostId(HOSTS_PER_RACK * 2)),
        "{probes:?}"
    );
    for probe in &probes {
        proxy.at(150).answer(probe);
    }
    // Its own probes keep nothing alive: after the window of 1 ms nobody reported anything of that
    // rack.
    proxy.at(1_000);
    assert_eq!(proxy.probe().len(), 3);
    assert_eq!(proxy.at(1_001).probe(), []);
}

#[test]
fn a_proxy_of_old_times_believes_the_new_one_about_failures() {
    let params = Params { prober: Prober::Proxy, ..Params::default() };
    let mut world = World::new(PROXY, &params);
    world.send(&mut Flow::default());
    let probes = world.probe();
    world.at(50).answer(&probes[0]);
    world.at(500).probe();
    let lost = probed(&probes[1]);
    assert!(world.scheme.knowledge.has_failed(usize::from(lost)));
    world.at(900).view(HostId(1), 1, 1, &[(u32::from(lost), 0.0, 1)]);
    assert!(!world.scheme.knowledge.has_failed(usize::from(lost)));
}

#[test]
fn without_a_view_for_three_updates_reports_go_to_the_next_host() {
    let mut world = World::new(MEMBER, &Params::default());
    world.at(100).view(PROXY, 1, 0, &[]);
    world.at(1_600).acknowledge(5, 1_500);
    assert_eq!(world.update()[0].peer, PROXY);
    world.at(1_601).acknowledge(5, 1_500);
    let report = world.update();
    assert_eq!((report[0].peer, kind(&report[0])), (HostId(1), (Kind::Report, 1)));
    // Its first view ends the gap.
    world.at(2_100).view(HostId(1), 1, 1, &[(5, 0.0, 1)]);
    assert_eq!((count(&world.scheme, "proxy_changes"), count(&world.scheme, "proxy_gap_ns")), (1, 2_000_000));
    // And the old one, back with its old term, is not listened to.
    world.at(2_200).view(PROXY, 9, 0, &[(5, 777.0, 1)]);
    assert_eq!(world.scheme.knowledge.worth(5, 1.0).to_bits(), 0);
}

#[test]
fn a_report_of_a_new_term_makes_its_receiver_the_proxy() {
    let mut world = World::new(HostId(1), &Params::default());
    world.at(2_000).message(message(Kind::Report, MEMBER, 1, 1, &[(5, 8.0, 2)]));
    let views = world.update();
    assert_eq!((views.len(), kind(&views[0]), told(&views[0])), (15, (Kind::View, 1), vec![(5, 4.0, 2)]));
    // The old proxy hears that and steps down.
    let mut old = World::new(PROXY, &Params::default());
    old.message(Message { peer: HostId(1), ..views[0].clone() });
    assert_eq!(old.update().len(), 1, "a first report to the new proxy, no views");
}

#[test]
fn a_host_without_a_view_sees_what_it_found_itself() {
    let mut world = World::new(MEMBER, &Params::default());
    world.at(10).view(PROXY, 1, 0, &(0..16).map(|path| (path, 0.0, 1)).collect::<Vec<_>>());
    world.at(1_010).acknowledge(5, 910);
    world.update();
    assert_eq!(world.scheme.knowledge.worth(5, 1.0).to_bits(), 0, "a view of 1 ms ago still counts");
    world.at(1_011).acknowledge(5, 911);
    world.update();
    assert_eq!(world.scheme.knowledge.worth(5, 1.0).to_bits(), 64_000f32.to_bits());
    assert!(!world.scheme.knowledge.is_covered(4), "what the old view said is out of date");
}

#[test]
fn hosts_update_and_probe_at_a_phase_of_their_own() {
    let phase = |seed| {
        let mut world = World {
            scheme: World::new(MEMBER, &Params::default()).scheme,
            host: FakeHost::new(ROUTES, seed),
        };
        world.scheme.start(&mut world.host);
        let [(update, UPDATE), (probe, PROBE)] = world.host.host_timers[..] else { panic!("two timers") };
        assert_eq!(update, probe, "with equal intervals probes go with the reports");
        update
    };
    let phases: std::collections::BTreeSet<_> = (0..50).map(phase).collect();
    assert_eq!(phases.len(), 50);
    assert!(phases.iter().all(|&phase| phase < us(500)));
}

#[test]
fn without_alternative_paths_and_within_a_rack_nothing_happens() {
    let info = HostInfo { routes: &[1; 8], ..FakeHost::info(1) };
    let mut world = World { scheme: Meet::new(&Params::default(), &info), host: FakeHost::new(1, 1) };
    world.scheme.start(&mut world.host);
    assert_eq!(world.host.host_timers, []);
    assert_eq!(world.send_to(&mut Flow::default(), FAR).route, Route::ANY);
    let mut world = World::new(MEMBER, &Params::default());
    let sent = world.send_to(&mut Flow::default(), HostId(4));
    assert_eq!((sent.route, sent.scheme), (Route::ANY, 0));
    assert_eq!(world.probe(), []);
}

/// MEET §3.2: the view has the paths that packets of the rack took. MEET §3.4: a flowlet takes a
/// path "based on current perception".
#[test]
fn a_flowlet_takes_or_avoids_paths_without_data_as_the_reading_says() {
    type Case<'a> = (NoData, &'a [(u32, f32, u32)], fn(u16) -> bool);
    // By label to rack 1: no congestion on 5, congestion on 6 and 7, no data of the others.
    let idle_and_not = [(5, 0.0, 3), (6, 8.0, 1), (7, 1_000.0, 1)];
    let congested = [(6, 8.0, 1), (7, 1_000.0, 1)];
    let cases: [Case<'_>; 8] = [
        (NoData::AfterIdle, &idle_and_not, |label| label == 5),
        (NoData::AfterIdle, &congested, |label| !(6..8).contains(&label)),
        (NoData::Best, &idle_and_not, |label| !(6..8).contains(&label)),
        (NoData::Best, &congested, |label| !(6..8).contains(&label)),
        (NoData::Mean, &idle_and_not, |label| label == 5),
        (NoData::Mean, &congested, |label| label == 6),
        (NoData::Worst, &idle_and_not, |label| label == 5),
        (NoData::Worst, &congested, |label| label == 6),
    ];
    for (no_data, view, allowed) in cases {
        let mut world = World::new(MEMBER, &Params { no_data, ..Params::default() });
        world.at(10).view(PROXY, 1, 0, view);
        let mut taken: Vec<u16> = (0..64).map(|_| world.send(&mut Flow::default())).collect();
        assert!(taken.iter().all(|&label| allowed(label)), "{no_data:?}: {taken:?}");
        taken.sort_unstable();
        taken.dedup();
        // Of 14 equal ones, 64 flowlets take more than four.
        let one = (0..ROUTES).filter(|&label| allowed(label)).count() == 1;
        assert_eq!(taken.len() == 1, one, "{no_data:?}: {taken:?}");
    }
}

#[test]
fn the_first_probe_goes_where_the_reading_says_that_congestion_is_least() {
    // With data of one congested path only, it is probed first, or last of all.
    for (no_data, first) in [(NoData::Worst, true), (NoData::AfterIdle, false), (NoData::Best, false)] {
        let mut world = World::new(MEMBER, &Params { no_data, ..Params::default() });
        world.at(10).view(PROXY, 1, 0, &[(6, 8.0, 1)]);
        world.send(&mut Flow::default());
        let labels: Vec<u16> = world.probe().iter().map(probed).collect();
        assert_eq!(labels.contains(&6), first, "{no_data:?}: {labels:?}");
    }
}

/// MEET §3.1: a round trip is "affected by network congestion, number of hops, and network stack
/// delay of end hosts".
#[test]
fn a_wait_at_the_own_host_is_part_of_a_round_trip_or_left_out() {
    // K is 60 us. 32 ticks of 131.072 ns are 4.194 us: (70 - 60)^3, or (70 - 4.194 - 60)^3.
    for (own_queue, votes) in [(OwnQueue::Counts, 1_000.0), (OwnQueue::LeftOut, 195.7f32)] {
        let mut world = World::new(MEMBER, &Params { own_queue, ..Params::default() });
        world.host.own_wait = PathNote::TICK * 32;
        world.at(10);
        let sent = world.send_to(&mut Flow::default(), FAR);
        // What the receiving host copies.
        let (note, mut echo) = (PathNote::read(&sent).expect("a note"), Echo::default());
        echo.note(&sent);
        let ack = with(packet(1), |ack| {
            ack.kind = PacketKind::Ack;
            (ack.src, ack.dst, ack.sent) = (FAR, MEMBER, us(10));
            echo.stamp(ack);
        });
        world.at(80);
        world.scheme.on_receive(&mut world.host, &mut Flow::default(), ack);
        let told = told(&world.update()[0]);
        assert_eq!((told[0].0, told[0].2), (u32::from(note.path), 1), "{own_queue:?}");
        assert!((told[0].1 - votes).abs() < 0.1, "{own_queue:?}: {told:?}");
    }
}

#[test]
fn a_probe_is_stamped_when_it_is_sent_or_when_it_goes_onto_the_cable() {
    for (own_queue, stamp_us) in [(OwnQueue::Counts, 500), (OwnQueue::LeftOut, 507)] {
        let mut world = World::new(MEMBER, &Params { own_queue, ..Params::default() });
        world.send(&mut Flow::default());
        world.host.own_wait = Span::from_us(7);
        let probes = world.at(500).probe();
        assert!(probes.len() == 3 && probes.iter().all(|probe| probe.stamp == us(stamp_us)), "{own_queue:?}");
    }
}
