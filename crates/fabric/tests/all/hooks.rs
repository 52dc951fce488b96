//! A scheme is shown what it asks for, and nothing else.

use std::sync::{Arc, Mutex};

use crate::common::{Run, SMALL, fabric, flow};
use weft_balance::{
    Arrival, ExternalSwitch, NextHops, PortId, Ports, Queued, SwitchContext, SwitchHooks, SwitchInfo,
    SwitchScheme,
};
use weft_packet::{Kind, Kinds, Packet, Peer};

/// What a scheme was shown at a switch: whether the port leads to a host, and the kind.
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

impl ExternalSwitch for Spectator {
    fn hooks(&self) -> SwitchHooks {
        self.hooks
    }

    fn choose(&mut self, _: &mut dyn SwitchContext, _: &mut Packet, _: &NextHops<'_>) -> usize {
        0
    }

    fn arriving(&mut self, _: &mut dyn SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
        let seen = (self.leads_to_host[port.index()], packet.kind);
        self.shown.lock().expect("one thread").arrived.push(seen);
        Arrival::Forward
    }

    fn queued(&mut self, _: &mut dyn SwitchContext, packet: &mut Packet, queued: Queued) {
        let seen = (self.leads_to_host[queued.port.index()], packet.kind);
        self.shown.lock().expect("one thread").queued.push(seen);
    }
}

/// What schemes with these hooks are shown of a flow of three packets from rack to rack, under DCTCP.
fn shown(hooks: SwitchHooks) -> Shown {
    let (fabric, shown) = (fabric(SMALL), Arc::<Mutex<Shown>>::default());
    let mut make = |info: &SwitchInfo<'_>| {
        let leads_to_host = info.port_peers.iter().map(|peer| matches!(peer, Peer::Host(_))).collect();
        SwitchScheme::External(Box::new(Spectator { hooks, leads_to_host, shown: Arc::clone(&shown) }))
    };
    let run = Run::new(&fabric, "name = 'dctcp'", "name = 'ecmp'");
    run.with_external(&[flow(0, 0, 2, 4_380)], Some(&mut make));
    let mut shown = shown.lock().expect("one thread");
    std::mem::take(&mut *shown)
}

fn count(seen: &[(bool, Kind)], at_host_port: bool, kind: Kind) -> usize {
    seen.iter().filter(|&&one| one == (at_host_port, kind)).count()
}

/// Each packet comes in by a host's port once, at the first leaf, and by switches' ports twice; it is queued for switches
/// twice, and for its host once.
#[test]
fn a_scheme_that_wants_all_sees_each_packet_at_each_switch() {
    let all = shown(SwitchHooks {
        arriving: Kinds::ALL,
        arriving_by: Ports::All,
        queued: Ports::All,
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
        arriving: Kinds::of(&[Kind::Ack]),
        arriving_by: Ports::ToSwitches,
        queued: Ports::ToSwitches,
        timers: false,
    });
    assert!(!some.arrived.is_empty() && some.arrived.iter().all(|&seen| seen == (false, Kind::Ack)));
    assert!(!some.queued.is_empty() && some.queued.iter().all(|seen| !seen.0));
    assert!(count(&some.queued, false, Kind::Data) > 0);
    let none = shown(SwitchHooks::NONE);
    assert!(none.arrived.is_empty() && none.queued.is_empty());
}
