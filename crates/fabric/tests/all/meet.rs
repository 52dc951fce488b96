//! MEET: racks that pool what they measure, and probe, find slow and broken paths, and outlive
//! their proxy.
use crate::common::{Run, counter, fabric, flow, link_named, mean_fct_us};
use weft_fabric::{Results, Simulation, SimulationInput, Status};
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Span, Time};

/// `T_update` and `T_probe`.
const T_US: u64 = 500;
const SENDERS: u16 = 8;
/// Bytes of each flow: less than a host's buffer for a path of 1 Gbit/s, more than a packet.
const SIZE: u64 = 20_000;
const MEET: &str = "name = 'meet'";
const ECMP: &str = "name = 'ecmp'";
const DCTCP: &str = "name = 'dctcp'";

/// Two leaves of eight hosts, four spines, 10 Gbit/s; hosts 0 to 7 send to hosts 8 to 15. Routing
/// learns of no fault in time.
fn world(faults: &str) -> Fabric {
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\nreroute_after = '1s'\n{faults}"
    ))
}

/// A fault of the cable between leaf 0 and spine 1.
fn fault(effect: &str) -> Fabric {
    world(&format!("[[fault]]\nlink = 'leaf0-spine1'\n{effect}\n"))
}

/// From each of these hosts a flow each 100 us until `until_us`: 1.6 Gbit/s a host, so that eight
/// of them load the four uplinks to a third.
fn traffic(senders: std::ops::Range<u16>, until_us: u64) -> Vec<Flow> {
    let starts = (0..until_us).step_by(100);
    let each = |start: u64| {
        senders.clone().map(move |host| flow(start + 10 * u64::from(host), host, SENDERS + host, SIZE))
    };
    let mut flows: Vec<_> = starts.flat_map(each).collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

fn up_bytes(fabric: &Fabric, results: &Results, spine: u16) -> u64 {
    results.links[link_named(fabric, &format!("leaf0>spine{spine}"))].bytes
}

/// The share of the bytes that leaf 0 sends to spine 1, of flows that start from `from_us` on. Up
/// to then, a run without these flows is the same.
fn share_from(fabric: &Fabric, flows: &[Flow], from_us: u64) -> f64 {
    let from = Time::ZERO + Span::from_us(from_us);
    let before: Vec<_> = flows.iter().filter(|flow| flow.start < from).copied().collect();
    let run = Run::new(fabric, DCTCP, MEET);
    let (all, before) = (run.flows(flows), run.flows(&before));
    let sent = |spine| up_bytes(fabric, &all, spine).saturating_sub(up_bytes(fabric, &before, spine)) as f64;
    sent(1) / (0..4).map(sent).sum::<f64>()
}

fn is_from(flow: &Flow, from_us: u64) -> bool {
    flow.start >= Time::ZERO + Span::from_us(from_us)
}

#[test]
fn a_path_that_was_cut_to_a_tenth_is_left_within_three_updates() {
    // A vote waits at most T for its report, and the report at most T for the view; probes find the
    // queue within T. So new flowlets know of the cut after 3 T. From then on the slow path cannot
    // carry more than its 1 Gbit/s, 8 % of the 12.8 that are offered, without a queue that every
    // probe and vote sees: below half of its equal share of 25 %.
    let cut_us = 4_000;
    let fabric = fault("at = '4ms'\nrate = '1Gbps'");
    let share = share_from(&fabric, &traffic(0..SENDERS, 12_000), cut_us + 3 * T_US);
    assert!(share < 0.125, "{share}");
    // Before, it carries its quarter; were flowlets independent, 80 flowlets a T would make that
    // give or take a few percent.
    let whole = world("");
    let share = share_from(&whole, &traffic(0..SENDERS, 12_000), cut_us + 3 * T_US);
    assert!((0.15..0.35).contains(&share), "{share}");
}

#[test]
fn a_path_that_came_back_is_used_again_after_three_updates() {
    // While it is down, probes mark it as failed, so that it is uncovered and every host with flows
    // probes it each T. It is found within T and a round trip, and the view tells it to the rack
    // within 2 T more. Then it is as good as any.
    let flows = traffic(0..SENDERS, 16_000);
    let fabric = fault("at = '2ms'\nuntil = '8ms'\ndown = true");
    let share = share_from(&fabric, &flows, 8_000 + 3 * T_US);
    assert!((0.15..0.35).contains(&share), "{share}");
}

#[test]
fn a_blackhole_is_found_by_probes_and_no_flow_falls_into_it_after_ten_updates() {
    // Votes from before the failure are out of the view after the window and the two updates of
    // reporting and telling, 4 T. Then the path is uncovered: it is probed within T, known as
    // failed within another, reported within T and told within T: 8 T. Ten, to allow for a round or
    // two in which nobody has a flow.
    let flows = traffic(0..SENDERS, 12_000);
    let fabric = fault("at = '2ms'\nblackhole = 1.0");
    let results = Run::new(&fabric, DCTCP, MEET).flows(&flows);
    assert!(counter(&results, "failures") > 0);
    let (mut early, mut late) = (0, 0);
    for (record, flow) in results.flows.iter().zip(&flows) {
        assert!(record.delivered.is_some(), "a timeout is a pause, and the next flowlet takes another path");
        *(if is_from(flow, 2_000 + 10 * T_US) { &mut late } else { &mut early }) += record.sender.timeouts;
    }
    assert!(early > 0, "it was a hole");
    assert_eq!(late, 0, "flows that fell into it later; {early} did before");
    // With ECMP a quarter of all flows never ends.
    let ecmp = Run { time_limit: Span::from_ms(100), ..Run::new(&fabric, DCTCP, ECMP) }.flows(&flows);
    assert!(ecmp.flows.iter().filter(|record| record.delivered.is_none()).count() > flows.len() / 10);
}

#[test]
fn without_its_proxy_the_rack_elects_the_next_host_and_flows_hardly_notice() {
    // Host 0 is the proxy of rack 0. Its cable fails at 4 ms; the flows are those of the other
    // seven hosts.
    let flows = traffic(1..SENDERS, 16_000);
    for cut in ["", "[[fault]]\nlink = 'leaf0-spine1'\nrate = '1Gbps'\n"] {
        let mut losses = [0.0; 5];
        let (whole, dead) =
            (world(cut), world(&format!("{cut}[[fault]]\nlink = 'host0-leaf0'\nat = '4ms'\ndown = true\n")));
        for (loss, seed) in losses.iter_mut().zip(1..) {
            let healthy = Run { seed, ..Run::new(&whole, DCTCP, MEET) }.flows(&flows);
            let broken = Run { seed, ..Run::new(&dead, DCTCP, MEET) }.flows(&flows);
            assert_eq!(counter(&healthy, "proxy_changes"), 0);
            assert_eq!(
                counter(&broken, "proxy_changes"),
                7,
                "hosts 1 to 7 have the same new proxy, rack 1 its old one"
            );
            // From the last view of the old proxy to the first one of the new: the timeout of 3 T,
            // up to T until a host looks at its clock, and up to T until the new proxy tells its
            // view; on the way less than T.
            let gap = Span::from_ns(counter(&broken, "proxy_gap_ns") / 7);
            assert!(gap > Span::from_us(3 * T_US) && gap < Span::from_us(6 * T_US), "{gap}");
            *loss = mean_fct_us(&broken, &flows) - mean_fct_us(&healthy, &flows);
        }
        // In the gap hosts go by their own votes and probes. What that costs is no more than what a
        // seed makes of the same flows: the mean of the differences is below the half-width of its
        // own 95 % interval, with Student's t of five.
        let mean = losses.iter().sum::<f64>() / 5.0;
        let variance = losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / 4.0;
        assert!(mean < 2.776 * (variance / 5.0).sqrt(), "us more in each seed: {losses:?}");
    }
}

#[test]
fn a_proxy_that_comes_back_follows_the_new_one() {
    let flows = traffic(1..SENDERS, 12_000);
    let fabric = world("[[fault]]\nlink = 'host0-leaf0'\nat = '2ms'\nuntil = '8ms'\ndown = true\n");
    let results = Run::new(&fabric, DCTCP, MEET).flows(&flows);
    // Hosts 1 to 7 changed once, and host 0 when the new proxy's view reached it; nobody changed
    // back.
    assert_eq!(counter(&results, "proxy_changes"), 8);
}

#[test]
fn probes_and_rack_messages_are_charged_to_the_links_they_pass() {
    let fabric = world("");
    let results = Run::new(&fabric, DCTCP, MEET).flows(&traffic(0..SENDERS, 4_000));
    // A probe passes four links, and so does its answer; reports and views pass two. Some are under
    // way when the run ends.
    let probes = 4 * counter(&results, "probe_bytes");
    let rack = 2 * (counter(&results, "report_bytes") + counter(&results, "view_bytes"));
    assert!(probes > 0 && rack > 0);
    let charged = results.packets.control_bytes;
    assert!(charged <= probes + rack, "{charged} of {probes} and {rack}");
    assert!(charged > (probes + rack) * 9 / 10, "{charged} of {probes} and {rack}");
}

#[test]
fn either_prober_spreads_flows_and_finishes_them() {
    for scheme in [MEET, "name = 'meet'\nprober = 'proxy'"] {
        let fabric = world("");
        let results = Run::new(&fabric, DCTCP, scheme).flows(&traffic(0..SENDERS, 4_000));
        let bytes: Vec<_> = (0..4).map(|spine| up_bytes(&fabric, &results, spine)).collect();
        let all: u64 = bytes.iter().sum();
        // The equal share is 25 %.
        assert!(bytes.iter().all(|&bytes| bytes * 10 > all), "{scheme}: {bytes:?}");
        assert!(results.flows.iter().all(|record| record.acknowledged.is_some()), "{scheme}");
        assert!(counter(&results, "probes") > 0, "{scheme}");
    }
}

/// Mistake in parameters on a fabric, if any, and whether the flow ends nevertheless.
fn verdict(fabric: &Fabric, parameters: &str) -> (Option<String>, bool) {
    let scheme = crate::common::scheme_spec(&format!("{MEET}\n{parameters}"));
    let transport = crate::common::transports(DCTCP);
    let flows = [flow(0, 0, fabric.topology.hosts as u16 - 1, SIZE)];
    let input = SimulationInput {
        topology: &fabric.topology,
        faults: &fabric.faults,
        ideal_of: None,
        reroute_after: fabric.reroute_after,
        flows: &flows,
        application: None,
        dependencies: None,
        transport: &transport,
        scheme: &scheme,
        external_scheme: None,
        has_external_hosts: false,
        machine: None,
        capture: None,
        windows_of: None,
        external_hosts: None,
        seed: 1,
        time_limit: Span::from_ms(100),
        partitions: 1,
        threads: 1,
        share_from: weft_fabric::SHARE_FROM,
        balance_of: None,
        prefetch_from: weft_fabric::PREFETCH_FROM,
        around: None,
        memory: None,
        sample_every: None,
        observe_every: None,
        paths_of: None,
        phases: None,
        spans: &[],
        trace_flows: None,
    };
    let error = input.check().err().map(|error| error.to_string());
    let mut simulation = Simulation::new(input).unwrap();
    while simulation.advance(1 << 20) == Status::Running {}
    (error, simulation.into_results().flows[0].delivered.is_some())
}

#[test]
fn what_does_not_fit_the_fabric_is_refused_by_name_and_one_path_is_nothing_to_balance() {
    let fabric = world("");
    assert_eq!(verdict(&fabric, ""), (None, true));
    for (key, parameters) in
        [("k is 5us", "k = '5us'"), ("update is 5us", "update = '5us'"), ("probe is 5us", "probe = '5us'")]
    {
        let (error, ended) = verdict(&fabric, parameters);
        let error = error.unwrap();
        assert!(error.starts_with(&format!("scheme.{key}")) && error.contains("base round trip"), "{error}");
        assert!(ended);
    }
    let one_path = crate::common::fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 2");
    assert_eq!(verdict(&one_path, "k = '5us'"), (None, true));
    let one_rack = crate::common::fabric("kind = 'leaf-spine'\nleaves = 1\nspines = 2\nhosts_per_leaf = 2");
    assert_eq!(verdict(&one_rack, ""), (None, true));
}
