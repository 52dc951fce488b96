//! Differences between the authors' simulator and the paper, as it is recalled.

use super::*;

/// The class of a path to rack 1 now.
fn class(hermes: &Hermes, host: &FakeHost, path: usize) -> Class {
    hermes.paths[path].class(&hermes.rules, hermes.racks[1].limits, host.now)
}

/// How many flows the paths to rack 1 have, in all and by path 3.
fn flows(hermes: &Hermes) -> (u32, u32) {
    (hermes.flows[..16].iter().sum(), hermes.flows[3])
}

fn acknowledge(hermes: &mut Hermes, host: &mut FakeHost, flow: &mut Flow, path: u16) {
    let ack = with(packet(1), |ack| {
        (ack.kind, ack.src, ack.sent) = (Kind::Ack, FAR, host.now);
        PathNote { path, ..PathNote::default() }.write(ack);
    });
    hermes.on_receive(host, flow, ack);
}

#[test]
fn one_way_an_acknowledgement_says_how_long_its_data_took() {
    let params = Params { measures: Measures::OneWay, ecn: false, ..Params::default() };
    let (mut far, mut host) = world(&params);
    let mut flow = Flow::default();
    host.now += us(200);
    let data = with(packet(1), |data| {
        (data.src, data.sent) = (FAR, Time::ZERO + us(150));
        PathNote { path: 6, ..PathNote::default() }.write(data);
    });
    far.on_receive(&mut host, &mut flow, data);
    let mut ack = with(packet(1), |ack| ack.kind = Kind::Ack);
    far.on_send(&mut host, &mut flow, &mut ack);
    // 381 ticks of 131,072 ps.
    assert_eq!(PathNote::read(&ack).map(PathNote::wait), Some(Span::from_ps(381 << 17)));
    // However late it is back. Good is below 20 and 20 us, bad above 20 and 120.
    let (mut hermes, mut host) = world(&params);
    host.now += us(9_000);
    for (wait_us, expected) in [(39, Class::Good), (41, Class::Grey), (139, Class::Grey), (141, Class::Bad)] {
        let told = PathNote { path: 6, waited: PathNote::ticks(us(wait_us)) + 1, ..PathNote::default() };
        let ack = with(packet(1), |ack| {
            (ack.kind, ack.src) = (Kind::Ack, FAR);
            told.write(ack);
        });
        (0..99).for_each(|_| hermes.on_receive(&mut host, &mut Flow::default(), ack));
        assert_eq!(class(&hermes, &host, 6), expected, "{wait_us} us");
    }
}

#[test]
fn one_way_the_answer_to_a_probe_says_how_long_that_took() {
    let params = Params { measures: Measures::OneWay, ecn: false, ..Params::default() };
    let (mut far, mut host) = world(&params);
    host.now += us(37);
    far.message(&mut host, Message { peer: FAR, number: 6, stamp: Time::ZERO + us(7), ..Message::default() });
    let back = host.messages.pop().expect("an answer");
    assert_eq!(back.stamp, Time::ZERO + us(30));
    host.now += us(5_000);
    far.message(&mut host, back);
    assert_eq!(class(&far, &host, 6), Class::Good, "30 us, however long the answer took");
}

fn by_flows() -> Params {
    Params { prefers: Prefers::FewestFlows, forget_after: Some(us(1_000)), ..params() }
}

#[test]
fn new_flows_go_where_the_host_has_fewest() {
    let (mut hermes, mut host) = world(&by_flows());
    all_bad_but(&mut hermes, &host, &[2, 3, 11]);
    let mut kept: Vec<Flow> = (0..9).map(|_| Flow::default()).collect();
    for round in kept.chunks_mut(3) {
        let mut labels: Vec<u16> = round.iter_mut().map(|flow| next(&mut hermes, &mut host, flow)).collect();
        // However much these send.
        (0..50).for_each(|_| _ = next(&mut hermes, &mut host, &mut round[0]));
        labels.sort_unstable();
        assert_eq!(labels, [2, 3, 11]);
    }
    assert_eq!((flows(&hermes), hermes.table_bytes()), ((9, 3), 7 * 16 * (72 + 4) + 8 * 24));
}

#[test]
fn a_flow_that_moves_counts_for_its_new_path() {
    let params = Params { forget_after: None, ..by_flows() };
    let (mut hermes, mut host, mut flow) = on_a_bad_path(&params, 11, 100);
    all_bad_but(&mut hermes, &host, &[3]);
    assert_eq!((next(&mut hermes, &mut host, &mut flow), flows(&hermes)), (3, (1, 1)));
    hermes.finished(&mut host, &mut flow);
    assert_eq!((flows(&hermes), flow.path), ((0, 0), None));
}

#[test]
fn a_silent_flow_is_forgotten_and_placed_anew() {
    let (mut hermes, mut host) = world(&by_flows());
    all_bad_but(&mut hermes, &host, &[3]);
    let mut flow = Flow::default();
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 3);
    host.now += us(400);
    acknowledge(&mut hermes, &mut host, &mut flow, 3);
    host.now += us(300);
    acknowledge(&mut hermes, &mut host, &mut flow, 7);
    // Due 1,000 us after it took the path; heard of that at 400 us.
    for (due_us, counted) in [(1_000, (1, 1)), (1_400, (0, 0))] {
        assert!(host.advance_to_timer());
        assert_eq!(host.now, Time::ZERO + us(due_us));
        hermes.flow_timer(&mut host, &mut flow);
        assert_eq!(flows(&hermes), counted);
    }
    assert!(host.timer.is_none());
    all_bad_but(&mut hermes, &host, &[8]);
    assert_eq!(next(&mut hermes, &mut host, &mut flow), 8, "as a new one");
    assert_eq!((host.timer, counted(&hermes, "escapes")), (Some(host.now + us(1_000)), 0));
}

#[test]
fn a_flow_that_is_over_counts_as_long_as_a_silent_one() {
    let (mut hermes, mut host) = world(&by_flows());
    all_bad_but(&mut hermes, &host, &[3]);
    let mut flow = Flow::default();
    next(&mut hermes, &mut host, &mut flow);
    host.now += us(100);
    hermes.finished(&mut host, &mut flow);
    hermes.flow_timer(&mut host, &mut flow);
    assert_eq!(flows(&hermes), (1, 1));
    let over = host.next_host_timer().expect("a timer");
    assert_eq!(host.now, Time::ZERO + us(1_100));
    hermes.host_timer(&mut host, over);
    assert_eq!(flows(&hermes), (0, 0));
}

/// R is 3 Gbit/s, 56,250 bytes in the estimator: flow `a` sends little, and `b` 150,000 bytes by
/// the same path.
#[test]
fn the_rate_that_keeps_a_flow_may_be_that_of_all_by_its_path() {
    for (reroute_rate, taken) in [(RateOf::Flow, 9), (RateOf::Path, 5)] {
        let params = Params { reroute_rate, ..params() };
        let (mut hermes, mut host, mut flow) = on_a_bad_path(&params, 11, 100);
        let mut other = Flow { path: Some(5), tried: host.now, ..Flow::default() };
        (0..100).for_each(|_| _ = next(&mut hermes, &mut host, &mut other));
        assert_eq!(next(&mut hermes, &mut host, &mut flow), taken, "{reroute_rate:?}");
        host.now += us(300);
        assert_eq!(next(&mut hermes, &mut host, &mut flow), 9, "when they have stopped");
    }
}

#[test]
fn an_agent_may_probe_random_paths_alone() {
    let params = Params { probe_best: false, ..Params::default() };
    let (mut hermes, mut host) = world(&params);
    for _ in 0..3 {
        hermes.host_timer(&mut host, token::PROBE);
        let probes = std::mem::take(&mut host.messages);
        assert_eq!(probes.len(), 7 * 2);
        let met = Message { peer: HostId(0), ..probes[0].clone() };
        let back = answer(&met, Route::ANY, met.stamp);
        hermes.message(&mut host, Message { peer: FAR, ..back });
    }
}

#[test]
fn answers_by_ecmp_name_their_path_and_take_none() {
    let params = Params { acknowledgements: Acknowledgements::Ecmp, ..Params::default() };
    let (mut hermes, mut host) = world(&params);
    let mut flow = Flow::default();
    let data = with(packet(1), |data| {
        data.src = FAR;
        PathNote { path: 6, ..PathNote::default() }.write(data);
    });
    hermes.on_receive(&mut host, &mut flow, data);
    let mut ack = with(packet(1), |ack| ack.kind = Kind::Ack);
    hermes.on_send(&mut host, &mut flow, &mut ack);
    assert_eq!((ack.route, PathNote::read(&ack).map(|note| note.path)), (Route::ANY, Some(6)));
    hermes.message(&mut host, Message { peer: FAR, number: 6, ..Message::default() });
    assert_eq!((host.messages[0].route, host.messages[0].number), (Route::ANY, 6));
}
