//! A scheme is shown what it asks for, and nothing else.

use std::sync::{Arc, Mutex};

use crate::common::{Run, SMALL, fabric, flow};
use crate::holder::{Does, Holder};
use weft_balance::{
    AnySwitchScheme, Arrival, ExternalScheme, NextHops, PortId, Ports, Queued, SwitchContext, SwitchHooks,
    SwitchInfo,
};
use weft_fabric::Results;
use weft_packet::{Kind, Kinds, Packet, Peer};
use weft_units::Span;

/// Hook call that a scheme got at a switch: whether the port leads to a host, and the kind.
#[derive(Default)]
struct Shown {
    arrived: Vec<(bool, Kind)>,
    queued: Vec<(bool, Kind)>,
}

/// Takes the first way, and notes what it is shown.
struct Spectator {
    hooks: SwitchHooks,
    leads_to_host: Vec<bool>,
    shown: Arc<Mutex<Shown>>,
}

impl ExternalScheme for Spectator {
    fn hooks(&self) -> SwitchHooks {
        self.hooks
    }

    fn choose(&mut self, _: &mut dyn SwitchContext, _: &mut Packet, _: &NextHops<'_>) -> usize {
        0
    }

    fn on_arrival(&mut self, _: &mut dyn SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
        let seen = (self.leads_to_host[port.index()], packet.kind);
        self.shown.lock().expect("one thread").arrived.push(seen);
        Arrival::Forward
    }

    fn on_enqueued(&mut self, _: &mut dyn SwitchContext, packet: &mut Packet, queued: Queued) {
        let seen = (self.leads_to_host[queued.port.index()], packet.kind);
        self.shown.lock().expect("one thread").queued.push(seen);
    }
}

/// Packets that schemes with these hooks are shown of a flow of three from rack to rack, under
/// DCTCP.
fn shown(hooks: SwitchHooks) -> Shown {
    let (fabric, shown) = (fabric(SMALL), Arc::<Mutex<Shown>>::default());
    let mut make = |info: &SwitchInfo<'_>| {
        let leads_to_host = info.port_peers.iter().map(|peer| matches!(peer, Peer::Host(_))).collect();
        AnySwitchScheme::External(Box::new(Spectator { hooks, leads_to_host, shown: Arc::clone(&shown) }))
    };
    let run = Run::new(&fabric, "name = 'dctcp'", "name = 'ecmp'");
    run.with_external(&[flow(0, 0, 2, 4_380)], Some(&mut make));
    let mut shown = shown.lock().expect("one thread");
    std::mem::take(&mut *shown)
}

fn count(seen: &[(bool, Kind)], at_host_port: bool, kind: Kind) -> usize {
    seen.iter().filter(|&&one| one == (at_host_port, kind)).count()
}

/// Each packet comes in by a host's port once, at the first leaf, and by switches' ports twice; it
/// is queued for switches twice, and for its host once.
#[test]
fn a_scheme_that_wants_all_sees_each_packet_at_each_switch() {
    let all = shown(SwitchHooks {
        on_arrival: Kinds::ALL,
        on_arrival_by: Ports::All,
        on_enqueued: Ports::All,
        timers: false,
    });
    for kind in [Kind::Data, Kind::Ack] {
        let packets = count(&all.arrived, true, kind);
        assert!(packets >= 3, "{packets} of {kind:?}");
        assert_eq!(count(&all.arrived, false, kind), 2 * packets);
        assert_eq!((count(&all.queued, true, kind), count(&all.queued, false, kind)), (packets, 2 * packets));
    }
}

#[test]
fn a_scheme_sees_only_the_kinds_and_ports_that_it_names() {
    let some = shown(SwitchHooks {
        on_arrival: Kinds::of(&[Kind::Ack]),
        on_arrival_by: Ports::ToSwitches,
        on_enqueued: Ports::ToSwitches,
        timers: false,
    });
    assert!(!some.arrived.is_empty() && some.arrived.iter().all(|&seen| seen == (false, Kind::Ack)));
    assert!(!some.queued.is_empty() && some.queued.iter().all(|seen| !seen.0));
    assert!(count(&some.queued, false, Kind::Data) > 0);
    let none = shown(SwitchHooks::NONE);
    assert!(none.arrived.is_empty() && none.queued.is_empty());
}

/// A flow of five segments, held at its last leaf; for 5 ms at most.
fn held(does: Does, lets_go: bool) -> Results {
    let fabric = fabric(SMALL);
    let holder = Holder { does, lets_go: lets_go.then_some([Span::from_us(50); 2]) };
    let mut make = |info: &SwitchInfo<'_>| holder.scheme(info);
    let run = Run { time_limit: Span::from_ms(5), ..Run::new(&fabric, "name = 'dctcp'", "name = 'ecmp'") };
    run.with_external(&[flow(0, 0, 2, 5 * 1_460)], Some(&mut make)).0
}

#[test]
fn packets_that_are_held_go_on_in_their_order_and_have_waited_at_the_last_link() {
    let results = held(|_, _| Arrival::Hold(0), true);
    let record = &results.flows[0];
    assert!(record.delivered.is_some());
    assert_eq!((record.receiver.out_of_order, record.receiver.segments_received), (0, 5));
    // All of them come within the first 50 us, and wait for its end.
    let waited = record.wait_ps[3] / 5;
    assert!((10_000_000..50_000_000).contains(&waited), "{waited} ps each");
}

#[test]
fn what_is_let_go_with_a_packet_follows_it() {
    // Segment 1 waits for segment 2, which leaves first: one segment is out of order, and no other.
    let does: Does = |cx, packet| match packet.seq {
        1 => Arrival::Hold(7),
        2 => {
            assert_eq!(cx.held_bytes(), 1_500);
            cx.release(7);
            Arrival::Forward
        }
        _ => {
            assert_eq!(cx.held_bytes(), 0);
            Arrival::Forward
        }
    };
    let results = held(does, false);
    assert_eq!((results.flows[0].receiver.out_of_order, results.flows[0].receiver.segments_received), (1, 5));
}

#[test]
fn a_packet_that_joins_a_queue_that_is_let_go_is_the_last_of_it() {
    let does: Does = |cx, packet| {
        if packet.seq == 2 {
            cx.release(0);
        }
        if packet.seq <= 2 { Arrival::Hold(0) } else { Arrival::Forward }
    };
    let results = held(does, false);
    assert_eq!((results.flows[0].receiver.out_of_order, results.flows[0].receiver.segments_received), (0, 5));
}

#[test]
fn what_is_held_at_the_end_is_in_flight() {
    let results = held(|_, _| Arrival::Hold(3), false);
    assert!(results.flows[0].delivered.is_none());
    assert!(results.in_flight >= 5, "{} with what was sent again", results.in_flight);
}
