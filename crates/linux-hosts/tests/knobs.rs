//! Tests of the effect of each knob in the kernel.

#![allow(clippy::unwrap_used)]

mod world;

use std::path::PathBuf;

use weft_linux_hosts::{
    Connection, FlowOptions, KNOBS, Knob, KnobTarget, Machine, Protocol, Report, Setup, TcpInfo,
};
use weft_units::{Rate, Span, Time};
use world::{Fabric, MPTCP_PORT, World, flow, kernel};

fn fabric() -> Fabric {
    Fabric::new(2, Rate::from_gbps(1), Span::from_us(100))
}

fn with_settings(mut setup: Setup, settings: &[(&str, u64)]) -> Setup {
    for host in &mut setup.hosts {
        for (name, value) in settings {
            host.settings.push(Knob::named(name).unwrap().setting(*value).unwrap());
        }
    }
    setup
}

/// The fabric's hosts with these settings.
fn setup(image: PathBuf, control: &str, settings: &[(&str, u64)]) -> Setup {
    with_settings(fabric().setup(image, control, 1), settings)
}

#[test]
fn the_kernel_takes_the_least_and_the_most_of_each_setting() {
    let Some(image) = kernel() else { return };
    for most in [false, true] {
        let of_hosts = KNOBS.iter().filter(|knob| !matches!(knob.place, KnobTarget::Socket(_)));
        let settings: Vec<_> =
            of_hosts.map(|knob| (knob.name, if most { knob.most } else { knob.least })).collect();
        let mut machine = Machine::start(&setup(image.clone(), "dctcp", &settings)).unwrap();
        assert!(machine.process().is_some());
        machine.stop();
    }
}

#[test]
fn the_kernel_takes_the_least_and_the_most_of_each_option_of_a_flow() {
    let Some(image) = kernel() else { return };
    let of_flows = || KNOBS.iter().filter(|knob| matches!(knob.place, KnobTarget::Socket(_)));
    let mut world = World::start(fabric(), &setup(image, "cubic", &[])).unwrap();
    let options: Vec<_> = of_flows().flat_map(|knob| [(knob, knob.least), (knob, knob.most)]).collect();
    for (id, (knob, value)) in options.iter().enumerate() {
        let options = FlowOptions::default().set(knob.name, *value).unwrap();
        world.guest.start_flow_with(&flow(id as u64, 0, 1, 100, "cubic"), &options, Time::ZERO).unwrap();
    }
    world.run_for(Span::from_ms(50)).unwrap();
    let reports: Vec<Report> = world.guest.reports().map(|(_, report)| report).collect();
    assert!(!reports.iter().any(|report| matches!(report, Report::Failed { .. })), "{reports:?}");
    let started = reports.iter().filter(|report| matches!(report, Report::Started { .. })).count();
    assert_eq!(started, options.len());
}

/// Segments that are sent before the first data is acknowledged.
fn first_burst(image: PathBuf, settings: &[(&str, u64)]) -> usize {
    let mut world = World::start(fabric(), &setup(image, "cubic", settings)).unwrap();
    world.run_flows(&[(flow(0, 0, 1, 200_000, "cubic"), Time::ZERO)]).unwrap();
    let payload = |packet: &[u8]| packet.len() > 100;
    let first = world.trace.iter().find(|(_, host, p)| *host == 0 && payload(p)).unwrap().0;
    let round_trip = (fabric().delay * 4).as_ps();
    world.trace.iter().filter(|(at, host, p)| *host == 0 && payload(p) && *at < first + round_trip).count()
}

#[test]
fn the_initial_window_is_what_is_sent_at_first() {
    let Some(image) = kernel() else { return };
    assert_eq!(first_burst(image.clone(), &[]), 10);
    assert_eq!(first_burst(image.clone(), &[("initial_window", 3)]), 3);
    assert_eq!(first_burst(image, &[("initial_window", 25)]), 25);
}

/// The flow completion time in ms of the slowest of sixteen flows that come together.
fn slowest(image: PathBuf, settings: &[(&str, u64)]) -> f64 {
    let fabric = Fabric { limit_bytes: 30_000, ..Fabric::new(17, Rate::from_gbps(1), Span::from_us(5)) };
    let setup = with_settings(fabric.setup(image, "cubic", 1), settings);
    let mut world = World::start(fabric, &setup).unwrap();
    let flows: Vec<_> = (1..17).map(|h| (flow(h - 1, h as usize, 0, 20_000, "cubic"), Time::ZERO)).collect();
    world.run_flows(&flows).unwrap();
    assert!(world.drops > 0);
    world.flows.iter().map(|f| f.fct().as_us() / 1_000.0).fold(0.0, f64::max)
}

#[test]
fn the_least_timeout_is_what_a_lost_tail_waits_for() {
    let Some(image) = kernel() else { return };
    let (usual, short) = (slowest(image.clone(), &[]), slowest(image, &[("min_rto_ms", 10)]));
    assert!(usual > 200.0 && usual < 250.0, "{usual} ms with 200");
    assert!(short > 10.0 && short < 60.0, "{short} ms with 10");
}

#[test]
fn with_quick_acknowledgements_each_segment_has_its_own() {
    let Some(image) = kernel() else { return };
    let back = |settings: &[(&str, u64)]| {
        let mut world = World::start(fabric(), &setup(image.clone(), "cubic", settings)).unwrap();
        world.run_flows(&[(flow(0, 0, 1, 1_000_000, "cubic"), Time::ZERO)]).unwrap();
        world.trace.iter().filter(|(_, host, _)| *host == 1).count()
    };
    let (delayed, quick) = (back(&[]), back(&[("quick_ack", 1)]));
    // A megabyte is 691 segments.
    assert!(quick >= 691 && delayed < quick * 3 / 4, "{delayed} packets back; {quick} with quick_ack");
}

#[test]
fn ecn_is_asked_for_when_it_is_set_and_not_otherwise() {
    let Some(image) = kernel() else { return };
    let flags = |settings: &[(&str, u64)]| {
        let mut world = World::start(fabric(), &setup(image.clone(), "cubic", settings)).unwrap();
        world.run_flows(&[(flow(0, 0, 1, 1_000, "cubic"), Time::ZERO)]).unwrap();
        world.trace[0].2[33]
    };
    assert_eq!(flags(&[]), 0x02, "SYN");
    assert_eq!(flags(&[("ecn", 1)]), 0xc2, "SYN, ECE, CWR");
    assert_eq!(flags(&[("route_ecn", 1)]), 0xc2);
}

/// The counts of one of two flows that meet at a port, with marks from a backlog of 30,000 bytes
/// on.
fn counts(image: PathBuf, control: &str, settings: &[(&str, u64)]) -> TcpInfo {
    let fabric = Fabric { mark_from_bytes: 30_000, ..Fabric::new(3, Rate::from_gbps(1), Span::from_us(100)) };
    let setup = with_settings(fabric.setup(image, control, 1), settings);
    let mut world = World::start(fabric, &setup).unwrap();
    let flows = [0, 1].map(|host| (flow(host as u64, host, 2, 3_000_000, control), Time::ZERO));
    world.run_flows(&flows).unwrap();
    world.infos.remove(0)
}

#[test]
fn parameters_of_the_kernel_change_what_dctcp_does() {
    let Some(image) = kernel() else { return };
    let settings = [("dctcp_alpha_on_init", 0), ("dctcp_shift_g", 10)];
    let (usual, sluggish) = (counts(image.clone(), "dctcp", &[]), counts(image.clone(), "dctcp", &settings));
    assert!(usual.delivered_ce > 0);
    assert!(
        sluggish.delivered_ce > usual.delivered_ce * 2,
        "{} marks, {}",
        sluggish.delivered_ce,
        usual.delivered_ce
    );
    let mut disagree = setup(image, "dctcp", &settings);
    disagree.hosts[1].settings.push(Knob::named("dctcp_shift_g").unwrap().setting(3).unwrap());
    let error = Machine::start(&disagree).unwrap_err().to_string();
    assert!(error.contains("dctcp_shift_g=10 and tcp_dctcp.dctcp_shift_g=3"), "{error}");
}

#[test]
fn a_paced_flow_is_no_faster_than_it_may_be() {
    let Some(image) = kernel() else { return };
    let mut world = World::start(fabric(), &setup(image, "cubic", &[])).unwrap();
    let paced = FlowOptions::default().set("max_pacing_bytes_per_s", 12_500_000).unwrap();
    world.run_flows_with(&[(flow(0, 0, 1, 1_000_000, "cubic"), Time::ZERO)], &paced).unwrap();
    let ms = world.flows[0].fct().as_us() / 1_000.0;
    assert!(ms > 75.0 && ms < 90.0, "a megabyte at 12.5 MB/s takes {ms} ms");
}

#[test]
fn a_flow_tells_all_that_the_kernel_counted() {
    let Some(image) = kernel() else { return };
    let info = counts(image, "dctcp", &[]);
    assert_eq!(info.bytes_acked, 3_000_000 + 2, "SYN and FIN count");
    assert_eq!(info.bytes_sent, 3_000_000 + info.bytes_retransmitted);
    assert_eq!((info.retransmits, info.lost, info.unacked, info.not_sent_bytes), (0, 0, 0, 0));
    assert!(info.delivered >= 2_073 && info.segments_out >= info.delivered, "{info:?}");
    assert!(info.rtt_min_us >= 400 && info.rtt_us >= info.rtt_min_us, "four cables of 100 us: {info:?}");
    assert!(info.rto_us >= 200_000 && info.rtt_var_us > 0 && info.cwnd > 1 && info.ssthresh > 1, "{info:?}");
    assert!(info.pacing_rate > 0 && info.delivery_rate > 0 && info.peer_window_bytes > 0 && info.busy_us > 0);
    assert_eq!((info.mss, info.reordering, info.dsack_dups, info.reord_seen), (1_448, 3, 0, 0));
}

#[test]
fn samples_come_at_their_instants_and_change_no_packet() {
    let Some(image) = kernel() else { return };
    let run = |options: &FlowOptions| {
        let mut world = World::start(fabric(), &setup(image.clone(), "cubic", &[])).unwrap();
        world.run_flows_with(&[(flow(0, 0, 1, 2_000_000, "cubic"), Time::ZERO)], options).unwrap();
        world
    };
    let sampled = run(&FlowOptions::default().sample_every(Span::from_us(500)).unwrap());
    let instants: Vec<f64> = sampled.samples().map(|(at, _)| at.as_us()).collect();
    assert!(instants.len() > 20, "{instants:?}");
    let started = sampled.flows[0].started.unwrap().as_us();
    for (at, number) in instants.iter().zip(1..) {
        let late = at - started - 500.0 * f64::from(number);
        assert!((0.0..0.01).contains(&late), "sample {number} is {late} us late");
    }
    let windows: Vec<u64> = sampled.samples().map(|(_, sample)| sample.info.cwnd).collect();
    assert!(windows[0] >= 10 && windows.last() > windows.first(), "slow start grows it: {windows:?}");
    let port = sampled.flows[0].sport;
    assert!(sampled.samples().all(|(_, sample)| (sample.port, sample.to_port) == (port, world::PORT)));

    let plain = run(&FlowOptions::default());
    let sizes =
        |world: &World<Machine>| world.trace.iter().map(|(at, _, p)| (*at, p.len())).collect::<Vec<_>>();
    assert!(sizes(&plain) == sizes(&sampled), "what is looked at behaves otherwise");
}

/// The subflows of a flow of ten megabytes by MPTCP, and what was said of the flow.
fn subflows(image: PathBuf, settings: &[(&str, u64)]) -> (Vec<Connection>, Report, World<Machine>) {
    let mut world = World::start(fabric(), &setup(image, "cubic", settings)).unwrap();
    let mut multipath = flow(0, 0, 1, 3_000_000, "cubic");
    (multipath.protocol, multipath.port) = (Protocol::Mptcp, MPTCP_PORT);
    world.run_flows(&[(multipath, Time::ZERO)]).unwrap();
    let mut connections = Vec::new();
    let mut multipath = None;
    for (_, report) in &world.others {
        match report {
            Report::Subflow(connection) => connections.push(connection.clone()),
            Report::Multipath { .. } => multipath = Some(report.clone()),
            other => panic!("{other:?}"),
        }
    }
    (connections, multipath.unwrap(), world)
}

#[test]
fn mptcp_has_as_many_subflows_as_are_set_and_tells_of_each() {
    let Some(image) = kernel() else { return };
    let (one, report, _) = subflows(image.clone(), &[]);
    assert_eq!(one.len(), 1);
    assert_eq!(report, Report::Multipath { id: 0, subflows: 1, fell_back: false });
    assert_eq!((one[0].port > 0, one[0].to_port), (true, MPTCP_PORT));

    let (four, report, world) = subflows(image, &[("mptcp_subflows", 4)]);
    assert_eq!(report, Report::Multipath { id: 0, subflows: 4, fell_back: false });
    let mut ports: Vec<_> = four.iter().map(|subflow| (subflow.port, subflow.to_port)).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 4, "each has a port of its own: {ports:?}");
    assert!(ports.iter().all(|(_, to)| *to == MPTCP_PORT), "all go where the first one goes: {ports:?}");
    let syns = world.trace.iter().filter(|(_, _, packet)| packet[33] & 0x12 == 0x02);
    assert_eq!(
        syns.map(|(_, host, _)| *host).collect::<Vec<_>>(),
        [0; 4],
        "the sender opens them, once each"
    );
    let carried: Vec<u64> = four.iter().map(|subflow| subflow.info.bytes_acked).collect();
    assert!(carried.iter().all(|bytes| *bytes > 100_000), "all carry data: {carried:?}");
    assert!(carried.iter().sum::<u64>() >= 3_000_000);
    assert_eq!(world.flows[0].bytes, 3_000_000);
}
