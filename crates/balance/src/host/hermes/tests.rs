//! Decisions of a host, one by one. To every rack: 16 paths, 40 us idle, so 60 and 160 us; 10
//! Gbit/s.

use weft_packet::{PacketFlags, Route};
use weft_units::{Bytes, Span};

use super::*;
use crate::testing::{FakeHost, HOSTS_PER_RACK, packet, with};

mod choices;

const FAR: HostId = HostId(HOSTS_PER_RACK);

/// A flow may leave after 10 packets and always tries to.
fn params() -> Params {
    Params { reroute_after: Bytes::new(15_000), reroute_probability: 1.0, ..Params::default() }
}

fn world(params: &Params) -> (Hermes, FakeHost) {
    (Hermes::new(params, &FakeHost::info(1)), FakeHost::new(16, 1))
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

/// Makes the host certain of a path to rack 1.
fn know(hermes: &mut Hermes, host: &FakeHost, path: u16, rtt_us: u64, marked: bool) {
    for _ in 0..200 {
        hermes.learn(host.now, Finding { rack: 1, path, rtt: us(rtt_us), marked });
    }
}

/// Paths 0 to 15 as they look to the host: bad, but for the ones named.
fn all_bad_but(hermes: &mut Hermes, host: &FakeHost, good: &[u16]) {
    for path in 0..16 {
        let (rtt, marked) = if good.contains(&path) { (40, false) } else { (400, true) };
        know(hermes, host, path, rtt, marked);
    }
}

/// The path that the next packet takes.
fn sent(hermes: &mut Hermes, host: &mut FakeHost, flow: &mut Flow, seq: u32, flags: PacketFlags) -> u16 {
    let mut out = with(packet(1), |packet| (packet.seq, packet.flags) = (seq, flags));
    hermes.on_send(host, flow, &mut out);
    let note = PathNote::read(&out).expect("a path is named");
    assert_eq!(out.route, Route::label(note.path));
    note.path
}

fn next(hermes: &mut Hermes, host: &mut FakeHost, flow: &mut Flow) -> u16 {
    let seq = flow.next;
    sent(hermes, host, flow, seq, PacketFlags::default())
}

fn counted(hermes: &Hermes, name: &str) -> u64 {
    let mut found = None;
    hermes.counters(&mut |counter, value| {
        if counter == name {
            found = Some(value);
        }
    });
    found.expect(name)
}

/// A flow on path 5, which is bad, that has sent so many packets by it, one each `gap_us`; path 9
/// is good.
fn on_a_bad_path(params: &Params, packets: u32, gap_us: u64) -> (Hermes, FakeHost, Flow) {
    let (mut hermes, mut host) = world(params);
    let mut flow = Flow::default();
    all_bad_but(&mut hermes, &host, &[5]);
    for _ in 0..packets {
        assert_eq!(next(&mut hermes, &mut host, &mut flow), 5);
        host.now += us(gap_us);
    }
    all_bad_but(&mut hermes, &host, &[9]);
    (hermes, host, flow)
}

#[test]
fn a_flow_that_meets_every_condition_leaves_a_bad_path() {
    let (mut hermes, mut host, mut flow) = on_a_bad_path(&params(), 11, 100);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 9);
    assert_eq!((counted(&hermes, "reroutes"), counted(&hermes, "escapes")), (1, 0));
}

#[test]
fn a_flow_that_sent_s_or_less_by_its_path_stays() {
    // 15,000 bytes are S, not above it; the packet after counts.
    let (mut hermes, mut host, mut flow) = on_a_bad_path(&params(), 10, 100);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 5);
    host.now += us(100);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 9);
    // By the new path it has sent little: it does not go back when that turns bad at once.
    all_bad_but(&mut hermes, &host, &[5]);
    host.now += us(100);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 9);
}

#[test]
fn a_flow_that_sends_at_r_or_faster_stays_until_it_is_slower() {
    // R is 3 Gbit/s: the estimator holds 3e9 x 150 us / 8 = 56,250 bytes. 100 packets at once are
    // 150,000.
    let (mut hermes, mut host, mut flow) = on_a_bad_path(&params(), 100, 0);
    host.now += us(100);
    assert!(hermes.slow_below - 56_250.0 < 1e-6 && 56_250.0 - hermes.slow_below < 1e-6);
    // After three periods of 30 us: 76,800; after five: 50,000 and what was sent meanwhile.
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 5);
    host.now += us(60);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 9);
}

#[test]
fn a_flow_on_a_grey_path_stays() {
    let (mut hermes, mut host, mut flow) = on_a_bad_path(&params(), 11, 100);
    know(&mut hermes, &host, 5, 150, true);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 5);
}

#[test]
fn a_flow_stays_if_no_path_is_better_by_both_deltas() {
    for (rtt, marked, path) in [(330, false, 5), (310, true, 5), (310, false, 9)] {
        let (mut hermes, mut host, mut flow) = on_a_bad_path(&params(), 11, 100);
        know(&mut hermes, &host, 9, rtt, marked);
        assert_eq!(next(&mut hermes, &mut host, &mut flow), path, "{rtt} us, marked: {marked}");
    }
}

#[test]
fn a_flow_tries_once_a_gap_and_as_often_as_the_probability_says() {
    let sometimes = Params { reroute_probability: 0.5, ..params() };
    let (mut hermes, mut host, mut flow) = on_a_bad_path(&sometimes, 11, 100);
    // Within the gap after a try there is none: at the same instant it stays where the first try
    // left it.
    let first = next(&mut hermes, &mut host, &mut flow);
    assert!((0..50).all(|_| next(&mut hermes, &mut host, &mut flow) == first));
    let left = |seed| {
        let (mut hermes, _, mut flow) = on_a_bad_path(&sometimes, 11, 100);
        let mut host = FakeHost::new(16, seed);
        host.now += us(1_100);
        next(&mut hermes, &mut host, &mut flow) == 9
    };
    // 100 of 200, to four standard deviations.
    let count = (0..200).filter(|&seed| left(seed)).count();
    assert!((72..=128).contains(&count), "{count} of 200");
}

#[test]
fn every_packet_of_a_flow_takes_its_path_while_nothing_is_wrong() {
    let (mut hermes, mut host) = world(&Params::default());
    let mut flow = Flow::default();
    let first = next(&mut hermes, &mut host, &mut flow);
    for _ in 0..1_000 {
        host.now += us(3);
        assert_eq!(next(&mut hermes, &mut host, &mut flow), first);
    }
    assert_eq!((counted(&hermes, "placed_grey"), counted(&hermes, "placed_good")), (1, 0));
}

#[test]
fn new_flows_go_where_the_host_sends_least() {
    let (mut hermes, mut host) = world(&Params::default());
    all_bad_but(&mut hermes, &host, &[2, 7, 11]);
    let mut labels: Vec<u16> = (0..3).map(|_| next(&mut hermes, &mut host, &mut Flow::default())).collect();
    labels.sort_unstable();
    assert_eq!(labels, [2, 7, 11]);
    assert_eq!(counted(&hermes, "placed_good"), 3);
}

#[test]
fn a_timeout_places_the_flow_anew_and_the_third_fails_the_path_for_the_pair() {
    let (mut hermes, mut host) = world(&Params::default());
    all_bad_but(&mut hermes, &host, &[4]);
    let mut flow = Flow::default();
    for timeouts in 1..=3 {
        assert_eq!(next(&mut hermes, &mut host, &mut flow), 4, "the only good one still");
        hermes.timed_out(&mut host, &mut flow);
        assert_eq!(counted(&hermes, "blackholes"), u64::from(timeouts == 3));
    }
    assert_ne!(next(&mut hermes, &mut host, &mut flow), 4);
    assert_eq!(counted(&hermes, "escapes"), 1);
    // Another flow of the pair avoids it too, one to another host does not.
    assert_ne!(next(&mut hermes, &mut host, &mut Flow::default()), 4);
    let mut other = with(packet(1), |packet| packet.dst = HostId(FAR.0 + 1));
    hermes.on_send(&mut host, &mut Flow::default(), &mut other);
    assert_eq!(other.route, Route::label(4));
}

#[test]
fn an_acknowledgement_by_the_path_stops_the_count_of_timeouts() {
    let (mut hermes, mut host) = world(&Params::default());
    all_bad_but(&mut hermes, &host, &[4]);
    let mut flow = Flow::default();
    for _ in 0..5 {
        assert_eq!(next(&mut hermes, &mut host, &mut flow), 4);
        hermes.timed_out(&mut host, &mut flow);
        let ack = with(packet(1), |ack| {
            (ack.kind, ack.src, ack.sent) = (Kind::Ack, FAR, host.now);
            PathNote { path: 4, ..PathNote::default() }.write(ack);
        });
        hermes.on_receive(&mut host, &mut flow, ack);
    }
    assert_eq!(counted(&hermes, "blackholes"), 0);
}

#[test]
fn when_all_paths_have_failed_a_flow_stays() {
    let (mut hermes, mut host) = world(&Params::default());
    for path in 0..16 {
        for _ in 0..3 {
            hermes.blackholes.timed_out(FAR, path, host.now, 3, us(1_000));
        }
    }
    let mut flow = Flow::default();
    let first = next(&mut hermes, &mut host, &mut flow);
    assert!((0..50).all(|_| next(&mut hermes, &mut host, &mut flow) == first));
}

/// 200 packets by path 5 within 10 ms, of which these are sent again: whether it is found to drop
/// at random.
fn found_to_drop(
    again: impl Fn(u32) -> bool,
    change: impl Fn(&mut Hermes, &mut FakeHost, &mut Flow),
) -> bool {
    let (mut hermes, mut host) = world(&Params::default());
    all_bad_but(&mut hermes, &host, &[5]);
    let mut flow = Flow { next: 1_000, ..Flow::default() };
    next(&mut hermes, &mut host, &mut flow);
    change(&mut hermes, &mut host, &mut flow);
    for index in 0..200 {
        host.now += us(49);
        let (seq, flags) = if again(index) {
            (flow.next - 1, PacketFlags::RETRANSMISSION)
        } else {
            (flow.next, PacketFlags::default())
        };
        sent(&mut hermes, &mut host, &mut flow, seq, flags);
    }
    host.now += us(200);
    know(&mut hermes, &host, 5, 40, false);
    // The packet that ends the window still goes out; the one after it leaves, if the path has
    // failed.
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 5);
    let found = counted(&hermes, "random_drops") == 1;
    assert_eq!(next(&mut hermes, &mut host, &mut flow) != 5, found);
    found
}

#[test]
fn over_one_percent_of_retransmissions_fails_a_path_and_the_flow_leaves_it() {
    let nothing = |_: &mut Hermes, _: &mut FakeHost, _: &mut Flow| {};
    assert!(found_to_drop(|index| index % 50 == 20, nothing), "2 %");
    assert!(!found_to_drop(|index| index == 20, nothing), "0.5 %");
    let timeout = |hermes: &mut Hermes, host: &mut FakeHost, flow: &mut Flow| hermes.timed_out(host, flow);
    assert!(!found_to_drop(|_| false, timeout), "one timeout of 201 packets");
}

/// Segments 0 to 9 went by another path, 10 to 19 by this one. The recovery that 5 begins ends with
/// 19.
#[test]
fn the_first_recovery_after_a_move_belongs_to_the_path_before() {
    let mut flow = Flow { next: 10, ..Flow::default() };
    flow.take(3, Time::ZERO);
    flow.next = 20;
    let mut repeats = |seq, next| {
        flow.next = next;
        flow.repeats(&with(packet(1), |out| (out.seq, out.flags) = (seq, PacketFlags::RETRANSMISSION)))
    };
    let recovery = [(5, 20), (6, 22), (15, 23), (19, 25)].map(|(seq, next)| repeats(seq, next));
    assert_eq!(recovery, [false; 4]);
    assert!(repeats(20, 30) && repeats(25, 31), "the next ones are this path's");
    assert!(!repeats(9, 32));
    assert!(repeats(20, 33), "only once");
    assert!(!flow.repeats(&with(packet(1), |out| out.seq = 40)), "sent for the first time");
}

#[test]
fn acknowledgements_tell_of_the_path_that_they_name_and_go_back_by_it() {
    let (mut hermes, mut host) = world(&Params::default());
    let mut flow = Flow::default();
    // Received: data by path 6, marked.
    let data = with(packet(1), |data| {
        data.src = FAR;
        data.flags.set(PacketFlags::CE);
        PathNote { path: 6, ..PathNote::default() }.write(data);
    });
    hermes.on_receive(&mut host, &mut flow, data);
    let mut ack = with(packet(1), |ack| ack.kind = Kind::Ack);
    hermes.on_send(&mut host, &mut flow, &mut ack);
    assert_eq!(PathNote::read(&ack), Some(PathNote { path: 6, marked: true, ..PathNote::default() }));
    assert_eq!(ack.route, Route::label(6));
    // Sent: the acknowledgement comes 300 us after the data of path 6, then others.
    host.now += us(300);
    let echo = with(packet(1), |ack| {
        (ack.kind, ack.src) = (Kind::Ack, FAR);
        PathNote { path: 6, marked: true, ..PathNote::default() }.write(ack);
    });
    let class = |hermes: &Hermes, path: usize, host: &FakeHost| {
        hermes.paths[path].class(&hermes.rules, hermes.racks[1].limits, host.now)
    };
    hermes.on_receive(&mut host, &mut flow, echo);
    assert_eq!((class(&hermes, 6, &host), class(&hermes, 7, &host)), (Class::Bad, Class::Grey));
    assert_eq!(host.delivered.len(), 2);
}

#[test]
fn one_host_a_rack_probes_two_random_paths_and_the_best_to_every_other_rack() {
    let info = |host| Hermes::new(&Params::default(), &FakeHost::info_of(HostId(host), 1));
    assert!(info(1).agent.is_none(), "one agent a rack");
    let (mut hermes, mut host) = world(&Params::default());
    hermes.start(&mut host);
    let [(first, token::PROBE)] = host.host_timers[..] else { panic!("one timer") };
    assert!(first < Time::ZERO + us(500));
    host.now = first;
    hermes.host_timer(&mut host, token::PROBE);
    let probes = std::mem::take(&mut host.messages);
    assert_eq!(probes.len(), 7 * 2);
    assert!(probes.iter().all(|probe| probe.marked && probe.wire_bytes == 64));
    // Rack 3 answers; the second of its paths is faster, and marked.
    host.now += us(80);
    let to_rack_3: Vec<_> = probes.iter().filter(|probe| probe.peer == HostId(48)).collect();
    for (delay, probe) in [(0, to_rack_3[1]), (30, to_rack_3[0])] {
        host.now += us(delay);
        let met = Message { peer: HostId(0), marked: delay == 0, ..probe.clone() };
        let back = Message {
            peer: HostId(48),
            marked: false,
            ..answer(&met, Route::label(met.number as u16), met.stamp)
        };
        assert_eq!(back.route, probe.route);
        hermes.message(&mut host, back);
    }
    let known = |path: &Message| hermes.paths[2 * 16 + path.number as usize];
    assert_eq!(known(to_rack_3[1]).class(&hermes.rules, hermes.racks[3].limits, host.now), Class::Grey);
    // The rack is told, one packet a host, and a host that is told knows as much.
    hermes.host_timer(&mut host, token::REPORT);
    let reports = std::mem::take(&mut host.messages);
    assert_eq!(reports.len(), 15);
    let mut other = info(1);
    other.message(&mut host, Message { peer: HostId(0), ..reports[0].clone() });
    for path in 0..16 {
        let [a, b] = [&hermes, &other].map(|hermes| hermes.paths[2 * 16 + path]);
        let limits = hermes.racks[3].limits;
        assert_eq!(a.class(&hermes.rules, limits, host.now), b.class(&other.rules, limits, host.now));
    }
    // Next time the faster path is probed again, with two others.
    hermes.host_timer(&mut host, token::PROBE);
    let again: Vec<_> = host.messages.iter().filter(|probe| probe.peer == HostId(48)).collect();
    assert_eq!(again.len(), 3);
    assert!(again.iter().any(|probe| probe.number == to_rack_3[1].number));
    assert_eq!(host.messages.len(), 6 * 2 + 3, "racks that did not answer have no best path");
    assert_eq!((counted(&hermes, "probes"), counted(&hermes, "reports")), (29, 15));
    assert_eq!(counted(&hermes, "report_bytes"), 15 * 64);
}

#[test]
fn a_probe_is_answered_by_its_path_with_its_mark_and_time() {
    let (mut hermes, mut host) = world(&Params::default());
    let probe =
        Message { peer: FAR, number: 11, stamp: Time::ZERO + us(7), marked: true, ..Message::default() };
    hermes.message(&mut host, probe);
    let [back] = &host.messages[..] else { panic!("one answer") };
    assert_eq!((back.peer, back.route, back.number), (FAR, Route::label(11), 11));
    assert_eq!((back.stamp, back.marked), (Time::ZERO + us(7), false));
    assert_eq!(MessageKind::of(back.tag), MessageKind::Answer { marked: true });
    assert_eq!(counted(&hermes, "probe_bytes"), 64);
}

#[test]
fn without_a_choice_nothing_is_touched_kept_or_sent() {
    let routes = [1; 8];
    let info = HostInfo { routes: &routes, ..FakeHost::info(1) };
    let (mut hermes, mut host) = (Hermes::new(&Params::default(), &info), FakeHost::new(1, 1));
    hermes.start(&mut host);
    let mut out = packet(1);
    hermes.on_send(&mut host, &mut Flow::default(), &mut out);
    assert_eq!((out.route, out.scheme), (Route::ANY, 0));
    assert!(hermes.paths.is_empty() && host.host_timers.is_empty());
    hermes.timed_out(&mut host, &mut Flow { path: Some(0), ..Flow::default() });
}

#[test]
fn state_takes_what_the_page_says() {
    assert_eq!((size_of::<Path>(), size_of::<Rack>(), size_of::<Flow>()), (72, 24, 64));
}
