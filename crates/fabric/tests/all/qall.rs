//! Effects of QALL on real traffic on small fabrics.

use std::sync::{Arc, Mutex};

use crate::common::{Run, counter, fabric, flow, link_named, mean_fct_us};
use weft_balance::switch::qall::{Params, Qall};
use weft_balance::{
    AnySwitchScheme, ExternalScheme, NextHops, PortId, Queued, SwitchContext, SwitchInfo, SwitchScheme,
};
use weft_fabric::Results;
use weft_packet::Packet;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Bytes, Span};

const TCP: &str = "name = 'tcp'";

/// Sixteen hosts, and a way over spine 1 that has a tenth of the rate. Queues fill to the brim:
/// nobody marks.
fn unequal() -> Fabric {
    fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
         [switch_queue]\nbuffer = '100packets'\nmark = 'never'\n\
         [[fault]]\nlink = 'leaf0-spine1'\nrate = '1Gbps'",
    )
}

fn flows_between_racks(count: u64, every_us: u64, size_bytes: u64) -> Vec<Flow> {
    (0..count)
        .map(|index| flow(index * every_us, (index % 8) as u16, 8 + (index % 8) as u16, size_bytes))
        .collect()
}

/// The share of leaf 0's bytes on the slow uplink.
fn slow_share(fabric: &Fabric, results: &Results) -> f64 {
    let [fast, slow] =
        ["leaf0>spine0", "leaf0>spine1"].map(|name| results.links[link_named(fabric, name)].bytes as f64);
    slow / (fast + slow)
}

/// Clones 10 ms apart carry what a queue of 1.2 ms was long ago. Ports that were full then are left
/// idle, and the others are full by now.
#[test]
fn stale_queue_behaviour_decides_worse_than_fresh_on_an_asymmetric_fabric() {
    let (fabric, flows) = (unequal(), flows_between_racks(400, 60, 100_000));
    let run = |update: &str| {
        let scheme =
            format!("name = 'qall'\nupdate = '{update}'\nrecirculation = '1us'\ntime_constant = '1ms'");
        let results = Run::new(&fabric, TCP, &scheme).flows(&flows);
        let age = counter(&results, "state_age_ns") / counter(&results, "decisions");
        (slow_share(&fabric, &results), mean_fct_us(&results, &flows), age)
    };
    let (fresh, stale, never) = (run("50us"), run("10ms"), run("1000s"));
    let found = format!("share of the slow path, mean FCT in us, age in ns: {fresh:?}, {stale:?}, {never:?}");
    assert!(fresh.1 * 1.5 < stale.1 && stale.1 * 1.5 < never.1, "{found}");
    assert!(fresh.0 < stale.0 && stale.0 < never.0, "{found}");
    assert!(fresh.2 * 10 < stale.2 && never.2 == 0, "{found}");
}

/// QALL eqs. 12 and 13 are no part of this: with short intervals, they rate a full queue as less
/// congested than one that is a third full.
#[test]
fn the_product_and_the_linear_fit_move_load_off_the_slow_path() {
    let (fabric, flows) = (unequal(), flows_between_racks(400, 60, 100_000));
    let share = |scheme: &str| slow_share(&fabric, &Run::new(&fabric, TCP, scheme).flows(&flows));
    let random = share("name = 'rps'");
    for scheme in ["name = 'qall'", "name = 'qall-poly'\nform = 'linear'"] {
        let found =
            share(&format!("{scheme}\nupdate = '50us'\nrecirculation = '1us'\ntime_constant = '1ms'"));
        assert!(
            found * 2.0 < random,
            "{scheme}: {found:.3} of the bytes on the slow path, {random:.3} at random"
        );
    }
}

#[test]
fn a_burst_stays_together_by_the_flowlet_and_not_by_the_packet() {
    let fabric = fabric(crate::common::SMALL);
    let flows = [flow(0, 0, 2, 300_000), flow(0, 1, 3, 300_000)];
    let run = |granularity: &str| {
        let scheme = format!("name = 'qall'\ngranularity = '{granularity}'");
        let results = Run::new(&fabric, TCP, &scheme).flows(&flows);
        let changes: u32 = results.flows.iter().map(|flow| flow.path_changes).sum();
        (changes, counter(&results, "decisions"))
    };
    let (changes, decisions) = run("flowlet");
    // A decision for each flow at its leaf, and one for its acknowledgements at the other. A spine
    // has no choice.
    assert_eq!((changes, decisions), (0, 4));
    let (changes, _) = run("packet");
    assert!(
        changes > 100,
        "{changes} changes of path: of 410 packets half follow one that went the other way"
    );
}

#[test]
fn clones_come_back_after_the_recirculation_and_take_no_bytes_of_links() {
    let fabric = fabric(crate::common::SMALL);
    let flows = [flow(0, 0, 2, 3_000_000)];
    let results =
        Run::new(&fabric, TCP, "name = 'qall'\nupdate = '20us'\nrecirculation = '7us'").flows(&flows);
    let [clones, bytes, delay] =
        ["clones", "clone_bytes", "decision_delay_ns"].map(|name| counter(&results, name));
    assert!(clones > 100, "{clones} clones in 2.4 ms and more");
    assert_eq!((bytes, delay % 7_000, results.packets.control_bytes), (clones * 10, 0, 0));
    assert!(delay <= clones * 7_000 && delay * 10 > clones * 7_000 * 9, "{delay} ns for {clones} clones");
}

#[test]
fn one_path_leaves_nothing_to_decide() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 2");
    let flows = [flow(0, 0, 2, 300_000), flow(0, 3, 1, 300_000)];
    let qall = Run::new(&fabric, TCP, "name = 'qall'").flows(&flows);
    assert_eq!(counter(&qall, "decisions"), 0);
    assert_eq!(qall.flows, Run::new(&fabric, TCP, "name = 'ecmp'").flows(&flows).flows);
}

/// Knowledge of leaf 0 of its four uplinks, and its decisions.
#[derive(Default)]
struct Ledger {
    /// The weights of the last decision.
    weights: [u64; 4],
    /// Packets of each uplink before these weights were first used.
    before: [u64; 4],
    /// Packets of each uplink.
    chosen: [u64; 4],
}

/// QALL at a switch, and a ledger of it.
struct Watched {
    scheme: Qall,
    ledger: Option<Arc<Mutex<Ledger>>>,
}

impl ExternalScheme for Watched {
    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        let index = self.scheme.choose(cx, packet, hops);
        // Told here in place of by the hook: no packet is refused, so each is queued right after
        // the choice.
        let port = hops.ports[index];
        let queued = Queued {
            port,
            leaves: cx.now() + cx.drain_time(port),
            found_bytes: cx.backlog_bytes(port),
            sent_before: cx.bytes_sent(port),
        };
        self.scheme.on_enqueued(cx, packet, queued);
        if let Some(ledger) = &self.ledger {
            let mut ledger = ledger.lock().expect("one thread");
            let weights = [0, 1, 2, 3].map(|hop: usize| self.scheme.weight(PortId(hops.ports[hop].0)));
            if weights != ledger.weights {
                (ledger.weights, ledger.before) = (weights, ledger.chosen);
            }
            ledger.chosen[index] += 1;
        }
        index
    }
}

/// Four ways of different rates. `T_b` is 3 ms and the run ends before 6 ms, so each uplink sends
/// one clone: from the last of them on, weights stay as they are, and every packet that leaf 0 puts
/// on its uplinks is a draw by these weights.
#[test]
fn shares_of_links_are_in_proportion_to_the_weights_that_are_held() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 16\n\
         [switch_queue]\nbuffer = 'unlimited'\nmark = 'never'\n\
         [[fault]]\nlink = 'leaf0-spine1'\nrate = '1Gbps'\n\
         [[fault]]\nlink = 'leaf0-spine2'\nrate = '2Gbps'\n\
         [[fault]]\nlink = 'leaf0-spine3'\nrate = '4Gbps'",
    );
    let flows: Vec<Flow> = (0..16).map(|host| flow(0, host, 16 + host, 100_000_000)).collect();
    let params = Params {
        update: Span::from_ms(3),
        recirculation: Span::from_us(1),
        time_constant: Span::from_us(100),
        full_queue: Bytes::from_kb(100),
        ..Params::default()
    };
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut make = |info: &SwitchInfo<'_>| {
        let ledger = (info.rack == Some(0)).then(|| Arc::clone(&ledger));
        AnySwitchScheme::External(Box::new(Watched { scheme: Qall::new(&params, info), ledger }))
    };
    let run = Run { time_limit: Span::from_us(5_900), ..Run::new(&fabric, TCP, "name = 'ecmp'") };
    let (results, _) = run.with_external(&flows, Some(&mut make));
    let ledger = ledger.lock().expect("one thread");
    // On the links: what each of them was given since the weights are what they are, taken or
    // dropped.
    let counts = [0, 1, 2, 3].map(|spine| {
        let link = &results.links[link_named(&fabric, &format!("leaf0>spine{spine}"))];
        (link.packets + link.dropped - ledger.before[spine]) as f64
    });
    let (packets, total) = (counts.iter().sum::<f64>(), ledger.weights.iter().sum::<u64>() as f64);
    let found = format!("{counts:?} for weights {:?}", ledger.weights);
    let least = ledger.weights.iter().min().expect("four weights");
    assert!(ledger.weights.iter().any(|weight| weight * 10 > least * 15), "weights differ: {found}");
    assert!(packets > 1_000.0, "{found}");
    let chi: f64 = counts
        .iter()
        .zip(ledger.weights)
        .map(|(count, weight)| {
            let expected = packets * weight as f64 / total;
            (count - expected).powi(2) / expected
        })
        .sum();
    // 16.27 is the 0.1 % point with 3 degrees of freedom.
    assert!(chi < 16.27, "chi-square {chi}: {found}");
    // And the test could tell: equal shares are far off.
    let even: f64 = counts.iter().map(|count| (count - packets / 4.0).powi(2) / (packets / 4.0)).sum();
    assert!(even > 16.27, "chi-square {even} for equal shares: {found}");
}

/// With a `T_b` of next to nothing, every packet that leaves the queue of a port to a switch is
/// cloned. Packets that were still queued when the link failed never leave.
#[test]
fn packets_that_a_failing_link_loses_in_its_queue_are_never_heard_of() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\nfabric_rate = '1Gbps'\n\
         [switch_queue]\nbuffer = 'unlimited'\nmark = 'never'\n\
         [[fault]]\nlink = 'leaf0-spine1'\nat = '2ms'\ndown = true",
    );
    let flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 8 + host, 1_000_000)).collect();
    let scheme = "name = 'qall'\nupdate = '1ps'\nrecirculation = '1us'\ntime_constant = '1ms'";
    let results = Run::new(&fabric, TCP, scheme).flows(&flows);
    let (mut left, mut lost) = (0, 0);
    for (leaf, spine) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for name in [format!("leaf{leaf}>spine{spine}"), format!("spine{spine}>leaf{leaf}")] {
            let link = &results.links[link_named(&fabric, &name)];
            left += link.packets - link.dropped;
            lost += link.dropped;
        }
    }
    let cloned = counter(&results, "clones") + counter(&results, "clones_lost");
    let found = format!("{cloned} cloned, {left} left their queues, {lost} were lost");
    assert!(lost > 50, "the queue was long when the link failed: {found}");
    // The last packet of each of eight ports may not be settled; of the lost ones, one of each
    // direction was in service and one on the wire of a microsecond: those had left the queue.
    assert!(cloned <= left + 4 && left <= cloned + 8, "{found}");
}

/// Packets of a switch that is a program wait for the program, not for the cable: intervals that
/// were stretched to a hundredth of the rate would begin before the run when the rate comes back.
#[test]
fn a_cable_that_slows_at_a_software_switch_leaves_every_interval_after_the_change() {
    let fabric = fabric(
        "kind = 'graph'\nfile = '../../data/fabrics/mixed-speeds.toml'\n\
         [software_switch]\nforwarding_rate = '3Mpps'\nforwarding_per_byte = '500ps'\nport_rate = '700Kpps'\n\
         [switch_queue]\nbuffer = '8KB'\nmark = '5KB'\n\
         [[fault]]\nshare = 0.5\nat = '20us'\nuntil = '90us'\nrate = '100Mbps'\ndelay = '7us'",
    );
    let hosts = fabric.topology.hosts as u16;
    let flows = [flow(6, 22736 % hosts, (22736 % hosts + 1 + 1338 % (hosts - 1)) % hosts, 13_141)];
    let scheme = "name = 'qall-poly'\nform = 'poly3'\ngranularity = 'flowlet'\ngap = '5us'\nupdate = '1ns'";
    let results = Run::new(&fabric, TCP, scheme).flows(&flows);
    assert!(results.flows[0].delivered.is_some());
}
