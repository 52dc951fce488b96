use crate::testing::{FakeHost, GivenFacts, HOSTS_PER_RACK, packet, with};

use super::*;

const SECOND: Span = Span::from_s(1);

fn params() -> Params {
    Params { interval: SECOND, ..Params::default() }
}

fn host(number: u16, params: &Params) -> (Hedera, FakeHost) {
    (Hedera::new(params, &FakeHost::info_of(HostId(number), 1)), FakeHost::new(4, 1))
}

/// Sends `bytes` of flow `number` to host `dst` in one packet's clothes; the packet as it left.
fn send(
    scheme: &mut Hedera,
    world: &mut FakeHost,
    flow: &mut Flow,
    number: u32,
    dst: u16,
    packets: u32,
) -> Packet {
    let mut sent = with(packet(number), |it| (it.flow, it.dst) = (FlowId(number), HostId(dst)));
    for _ in 0..packets {
        scheme.on_send(world, flow, &mut sent);
    }
    sent
}

fn contents(message: &Message) -> Vec<u32> {
    message.contents.as_deref().unwrap_or_default().to_vec()
}

fn message(peer: u16, tag: u32, entries: &[u32]) -> Message {
    let contents = (!entries.is_empty()).then(|| Arc::from(entries));
    Message { peer: HostId(peer), tag, contents, ..Message::default() }
}

#[test]
fn a_host_reports_the_flows_that_took_a_tenth_of_its_cable_since_the_last_poll() {
    let (mut scheme, mut world) = host(3, &params());
    let mut flows = [Flow::default(); 3];
    // A tenth of 10 Gbit/s for 1 ms is 125,000 bytes: 84 packets of 1,500 bytes are enough, 83 are
    // not.
    for (number, packets) in [(0, 84), (1, 83), (2, 200)] {
        let dst = if number == 2 { 1 } else { HOSTS_PER_RACK };
        send(&mut scheme, &mut world, &mut flows[number as usize], number, dst, packets);
    }
    world.now = Time::ZERO + Span::from_ms(1);
    scheme.message(&mut world, message(0, tag::POLL, &[]));
    let [report] = world.messages.as_slice() else { panic!("{:?}", world.messages) };
    assert_eq!(
        (report.peer, report.tag, contents(report)),
        (HostId(0), tag::REPORT, vec![0, 16]),
        "not within the rack"
    );
    assert_eq!(report.wire_bytes, HEADER_BYTES + ENTRY_BYTES);
    world.now += Span::from_ms(1);
    scheme.message(&mut world, message(0, tag::POLL, &[]));
    assert_eq!(world.messages.len(), 1, "counted from the poll before");
}

#[test]
fn a_flow_takes_the_path_that_it_is_told_until_it_ends() {
    let (mut scheme, mut world) = host(3, &params());
    let (mut flow, mut other) = (Flow::default(), Flow::default());
    assert_eq!(send(&mut scheme, &mut world, &mut flow, 7, 16, 1).route, Route::ANY);
    scheme.message(&mut world, message(0, tag::PATHS, &[7, 2, 99, 1]));
    assert_eq!(send(&mut scheme, &mut world, &mut flow, 7, 16, 1).route, Route::label(2));
    scheme.finished(&mut world, &mut flow);
    assert_eq!(
        send(&mut scheme, &mut world, &mut other, 8, 16, 1).route,
        Route::ANY,
        "the place is used again, clean"
    );
    assert_eq!(scheme.sending.len(), 1);
}

#[test]
fn the_controller_polls_everybody_and_parts_flows_that_need_a_whole_cable() {
    for placement in [Placement::FirstFit, Placement::Annealing] {
        let (mut scheme, mut world) = host(0, &Params { placement, ..params() });
        scheme.start(&mut world);
        assert_eq!(world.host_timers, [(Time::ZERO + SECOND, timer::POLL)]);
        world.now = Time::ZERO + SECOND;
        scheme.host_timer(&mut world, timer::POLL);
        assert_eq!(world.messages.len(), 128, "all hosts");
        assert!(world.messages.iter().all(|poll| (poll.tag, poll.wire_bytes) == (tag::POLL, HEADER_BYTES)));
        assert!(world.host_timers.contains(&(world.now + params().control_delay, timer::PLACE)));
        world.messages.clear();
        // Three flows from three hosts of rack 0 to three hosts of rack 1, each alone at both ends:
        // a cable each.
        for src in 1..4 {
            scheme.message(&mut world, message(src, tag::REPORT, &[u32::from(src), u32::from(16 + src)]));
        }
        scheme.host_timer(&mut world, timer::PLACE);
        let mut labels: Vec<u32> = world.messages.iter().map(|paths| contents(paths)[1]).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!((world.messages.len(), labels.len()), (3, 3), "{placement:?}: a path each");
        // Next round the same flows: nothing is news.
        world.messages.clear();
        if placement == Placement::FirstFit {
            for src in 1..4 {
                scheme.message(&mut world, message(src, tag::REPORT, &[u32::from(src), u32::from(16 + src)]));
            }
            scheme.host_timer(&mut world, timer::PLACE);
            assert_eq!(world.messages, []);
        }
    }
}

#[test]
fn a_long_report_is_several_packets() {
    let (mut scheme, mut world) = host(3, &params());
    let mut flows = [Flow::default(); 130];
    for (number, flow) in (0..).zip(&mut flows) {
        send(&mut scheme, &mut world, flow, number, 16, 1);
    }
    world.now = Time::ZERO + Span::from_us(1);
    scheme.message(&mut world, message(0, tag::POLL, &[]));
    let sizes: Vec<usize> = world.messages.iter().map(|report| contents(report).len() / 2).collect();
    assert_eq!(sizes, [60, 60, 10]);
    assert!(world.messages.iter().all(|report| report.wire_bytes <= 1_500));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let refused = |params: Params| params.validate().map_err(|error| error.key);
    assert_eq!(refused(Params { interval: Span::ZERO, ..params() }), Err("interval"));
    assert_eq!(refused(Params { control_delay: SECOND, ..params() }), Err("control_delay"));
    assert_eq!(refused(Params { large: 0.0, ..params() }), Err("large"));
    assert_eq!(refused(Params { large: f64::NAN, ..params() }), Err("large"));
    assert_eq!(refused(Params { steps: 0, ..params() }), Err("steps"));
    let fabric = GivenFacts { base_rtt: Span::from_us(40), hosts: 128, routes: 8 };
    let fits = |params: Params| params.fits(&fabric).map_err(|error| error.key);
    assert_eq!(fits(params()), Ok(()));
    assert_eq!(fits(Params { controller: 128, ..params() }), Err("controller"));
    assert_eq!(fits(Params { control_delay: Span::from_us(39), ..params() }), Err("control_delay"));
}
