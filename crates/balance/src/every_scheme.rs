//! Properties that every registered scheme must have.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weft_packet::{HostId, Kind, Route};
use weft_units::Span;

use crate::testing::{FakeHost, FakeSwitch, Group, HOSTS_PER_RACK, RACKS, packet, with};
use crate::{AnyHostFlow, Arrival, Order, PortId, SchemeSpec, schemes};

const PORTS: usize = 12;

/// Every scheme with its default parameters, and those that may run elsewhere there, too.
fn specs() -> Vec<SchemeSpec> {
    let spec = |spec| serde_json::from_value(spec).expect("a registered name");
    let at_leaves = serde_json::json!({ "name": "clove", "at": "leaf" });
    let all = schemes().iter().map(|info| serde_json::json!({ "name": info.name }));
    all.chain([at_leaves]).map(spec).collect()
}

/// One packet at a switch: who sends it, what the queues hold then, which ports are up, and how
/// long after the last.
#[derive(Debug, Clone)]
struct Step {
    flow: u32,
    rack: u16,
    up: [bool; PORTS],
    weights: [u32; PORTS],
    backlogs: [u64; PORTS],
    pause_us: u64,
}

impl Step {
    /// The ports that are up; at least two.
    fn group(&self) -> Group {
        let live = |&port: &u16| port < 2 || self.up[usize::from(port)];
        let group = Group::of((0..PORTS as u16).filter(live));
        let weights = group.ports.iter().map(|port| self.weights[port.index()]).collect();
        Group { weights, rack: self.rack, ..group }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let words = (0u32..20, 0..RACKS, 0u64..2_000);
    let arrays = (
        any::<[bool; PORTS]>(),
        proptest::array::uniform12(prop_oneof![1u32..100_000, Just(u32::MAX)]),
        proptest::array::uniform12(prop_oneof![Just(0u64), 0..400_000u64]),
    );
    (words, arrays).prop_map(|((flow, rack, pause_us), (up, weights, backlogs))| Step {
        flow,
        rack,
        up,
        weights,
        backlogs,
        pause_us,
    })
}

/// The ports that a scheme takes for these steps.
fn choices(spec: &SchemeSpec, steps: &[Step], seed: u64) -> Vec<usize> {
    let mut switch = FakeSwitch::new(PORTS, seed);
    let mut scheme = spec.switch_scheme(&switch.info(3, 0, seed));
    let choice = |step: &Step| {
        switch.now += Span::from_us(step.pause_us);
        switch.backlogs = step.backlogs.to_vec();
        let (mut sent, group) = (packet(step.flow), step.group());
        let index = scheme.choose(&mut switch, &mut sent, &group.hops());
        assert!(index < group.ports.len(), "{} chose {index} of {}", spec.name(), group.ports.len());
        let port = group.ports[index];
        let taken = switch.take(port, &sent);
        scheme.on_enqueued(&mut switch, &mut sent, taken);
        port.index()
    };
    steps.iter().map(choice).collect()
}

/// Route and header bits that a host scheme gives to each packet to these hosts.
fn labels(spec: &SchemeSpec, steps: &[(u16, u16)], seed: u64) -> Vec<(Route, u32)> {
    let mut host = FakeHost::new(1, seed);
    let mut scheme = spec.host_scheme(&FakeHost::info(seed));
    let mut flows: Vec<AnyHostFlow> = (0..RACKS * HOSTS_PER_RACK).map(|_| scheme.new_flow()).collect();
    let mut label = |&(dst, routes): &(u16, u16)| {
        host.routes = routes;
        let mut sent = with(packet(u32::from(dst)), |sent| sent.dst = HostId(dst));
        scheme.on_send(&mut host, &mut flows[usize::from(dst)], &mut sent);
        sent
    };
    let mut checked = |step| {
        let sent = label(step);
        let mut rest = sent.route;
        if rest.next_hop(usize::from(step.1)).is_some() {
            assert_eq!(rest, Route::label(0), "{}: a label beyond the routes", spec.name());
        }
        (sent.route, sent.scheme)
    };
    steps.iter().map(&mut checked).collect()
}

proptest! {
    #[test]
    fn a_choice_is_a_live_port_and_a_seed_repeats_it(steps in proptest::collection::vec(step(), 1..60), seed: u64) {
        for spec in specs() {
            prop_assert_eq!(choices(&spec, &steps, seed), choices(&spec, &steps, seed), "{}", spec.name());
        }
    }

    #[test]
    fn a_label_is_a_route_and_a_seed_repeats_it(
        steps in proptest::collection::vec((0..RACKS * HOSTS_PER_RACK, 1u16..70), 1..200),
        seed: u64,
    ) {
        for spec in specs() {
            prop_assert_eq!(labels(&spec, &steps, seed), labels(&spec, &steps, seed), "{}", spec.name());
        }
    }

    #[test]
    fn an_edge_delivers_every_packet_once(order in Just((0..120u32).collect::<Vec<_>>()).prop_shuffle(), seed: u64) {
        for spec in specs() {
            // Sent in order by one host, received in any order by another.
            let (mut host, mut sender) = (FakeHost::new(4, seed), spec.host_scheme(&FakeHost::info(seed)));
            let (mut out, mut packets) = (sender.new_flow(), Vec::new());
            for seq in 0..order.len() as u32 {
                let mut sent = with(packet(1), |sent| sent.seq = seq);
                sender.on_send(&mut host, &mut out, &mut sent);
                packets.push(sent);
            }
            let mut receiver = spec.host_scheme(&FakeHost::info(seed));
            let mut flow = receiver.new_flow();
            for &index in &order {
                host.now += Span::from_us(1);
                receiver.on_receive(&mut host, &mut flow, packets[index as usize]);
            }
            while host.advance_to_timer() {
                receiver.flow_timer(&mut host, &mut flow);
            }
            prop_assert_eq!(flow.held(), 0, "{} keeps packets for ever", spec.name());
            let mut seqs = host.delivered_seqs();
            seqs.sort_unstable();
            prop_assert_eq!(seqs, (0..120).collect::<Vec<_>>(), "{}", spec.name());
        }
    }
}

/// A packet that comes to a leaf: whether from the fabric, what it is, whose, and with which bits
/// of a scheme.
fn arrival() -> impl Strategy<Value = (bool, bool, u32, u32, u32, u64)> {
    (any::<bool>(), any::<bool>(), 0u32..6, 0u32..40, any::<u32>(), 0u64..60)
}

proptest! {
    /// Whatever comes, and whatever a neighbour may have written on it: each packet of a transport
    /// goes on once, at last when all timers of the next second are over.
    #[test]
    fn a_switch_keeps_no_packet_for_ever(steps in proptest::collection::vec(arrival(), 1..200), seed: u64) {
        for spec in specs() {
            let mut switch = FakeSwitch::new(PORTS, seed);
            let mut scheme = spec.switch_scheme(&switch.info(0, 0, seed));
            let hooks = spec.switch_hooks();
            let mut come = 0;
            for &(from_fabric, is_ack, flow, seq, bits, pause_us) in &steps {
                switch.now += Span::from_us(pause_us);
                let mut came = with(packet(flow), |came| {
                    came.seq = seq;
                    came.kind = if is_ack { Kind::Ack } else { Kind::Data };
                    if from_fabric {
                        (came.src, came.dst, came.scheme) = (came.dst, came.src, bits);
                    }
                });
                if !from_fabric && came.kind == Kind::Data {
                    scheme.choose(&mut switch, &mut came.clone(), &Group::of(0..PORTS as u16).hops());
                }
                let arrival = if hooks.on_arrival.has(came.kind) {
                    scheme.on_arrival(&mut switch, &mut came, PortId(3))
                } else {
                    Arrival::Forward
                };
                prop_assert_ne!(arrival, Arrival::Consume, "{} ends a packet of a transport", spec.name());
                switch.settle(Some((arrival, came)));
                come += 1;
            }
            let end = switch.now + Span::from_s(1);
            while let Some(token) = switch.next_timer().filter(|_| switch.now < end) {
                scheme.on_timer(&mut switch, token);
                switch.settle(None);
            }
            prop_assert!(switch.held.is_empty(), "{} keeps packets for ever", spec.name());
            prop_assert_eq!(switch.gone.len(), come, "{}", spec.name());
        }
    }
}

#[test]
fn default_parameters_are_valid_and_survive_json() {
    for spec in specs() {
        assert_eq!(spec.validate(), Ok(()), "{}", spec.name());
        let text = serde_json::to_string(&spec).expect("a spec is plain data");
        assert_eq!(serde_json::from_str::<SchemeSpec>(&text).expect(&text), spec);
    }
}

#[test]
fn an_unknown_parameter_is_refused_by_every_scheme() {
    for spec in specs() {
        let text = format!(r#"{{"name": "{}", "no_such_parameter": 1}}"#, spec.name());
        assert!(serde_json::from_str::<SchemeSpec>(&text).is_err(), "{text} was taken");
    }
}

/// On how many ways a scheme sends so many packets of one flow, one straight after the other, while
/// the queue that each joins fills.
fn ways_of_a_train(spec: &SchemeSpec, packets: u32) -> usize {
    let (mut switch, group) = (FakeSwitch::new(PORTS, 1), Group::of(0..PORTS as u16));
    let (mut host, mut sender_scheme) = (FakeHost::new(1, 1), spec.host_scheme(&FakeHost::info(1)));
    let (mut flow, mut scheme) = (sender_scheme.new_flow(), spec.switch_scheme(&switch.info(3, 0, 1)));
    let mut ways = BTreeSet::new();
    host.routes = PORTS as u16;
    for seq in 0..packets {
        let mut sent = with(packet(1), |sent| sent.seq = seq);
        sender_scheme.on_send(&mut host, &mut flow, &mut sent);
        let port = scheme.choose(&mut switch, &mut sent, &group.hops());
        switch.backlogs[port] += 1_500;
        // A route is taken where there is one; the port, where the entropy or the scheme says it.
        ways.insert((format!("{:?}", sent.route), port));
    }
    ways.len()
}

#[test]
fn a_scheme_does_to_the_order_of_a_flow_what_the_registry_says() {
    let by_flowlet = [
        serde_json::json!({ "name": "ar", "mode": "flowlet" }),
        serde_json::json!({ "name": "qall", "granularity": "flowlet" }),
        serde_json::json!({ "name": "qall-poly", "granularity": "flowlet" }),
    ];
    let by_flowlet = by_flowlet.map(|spec| serde_json::from_value(spec).expect("a registered name"));
    // What a reference takes, the engine chooses for it.
    for spec in specs().into_iter().chain(by_flowlet).filter(|spec| !spec.is_reference()) {
        let ways = ways_of_a_train(&spec, 120);
        let allowed = match spec.order().expect("a registered name") {
            Order::Keeps => 1..=1,
            // Presto's cells are 44 packets.
            Order::Moves => 1..=3,
            Order::Sprays => PORTS / 2..=120,
        };
        assert!(allowed.contains(&ways), "{} sends a train on {ways} ways", spec.name());
    }
}

#[test]
fn no_port_stays_idle_when_flows_are_many_and_queues_fill() {
    for spec in specs() {
        let (mut switch, group) = (FakeSwitch::new(PORTS, 1), Group::of(0..PORTS as u16));
        let mut scheme = spec.switch_scheme(&switch.info(3, 0, 1));
        for flow in 0..2_000 {
            switch.now += Span::from_us(1);
            let port = scheme.choose(&mut switch, &mut packet(flow), &group.hops());
            switch.backlogs[port] += 1_500;
        }
        assert!(!switch.backlogs.contains(&0), "{}: {:?}", spec.name(), switch.backlogs);
    }
}

#[test]
fn a_flow_at_the_edge_fits_where_its_end_is_kept() {
    // Every active flow has room for the largest, whatever the scheme.
    assert!(size_of::<AnyHostFlow>() <= 80, "{}", size_of::<AnyHostFlow>());
}
