//! Tests of the kernel's own algorithms: DCTCP's queue, the timeout after losses, MPTCP, BBR, many
//! hosts.

#![allow(clippy::unwrap_used)]

mod world;

use weft_linux_hosts::Protocol;
use weft_linux_hosts::codec::{Body, Mptcp, Packet, TcpOption};
use weft_units::{Rate, Span, Time};
use world::{Fabric, MPTCP_PORT, World, flow, kernel};

/// All options of all packets, each of which is understood and written again as it was.
fn options(trace: &[(u64, usize, Vec<u8>)]) -> Vec<TcpOption> {
    let options_of = |(_, _, bytes): &(u64, usize, Vec<u8>)| {
        let packet = Packet::decode(bytes).unwrap();
        assert_eq!(packet.encode().as_ref(), Ok(bytes));
        let Body::Tcp(tcp, _) = packet.body else { panic!("not TCP: {packet:?}") };
        tcp.options
    };
    trace.iter().flat_map(options_of).collect()
}

#[test]
fn dctcp_keeps_the_queue_about_k_and_loses_nothing() {
    let Some(image) = kernel() else { return };
    let k = 30_000;
    let fabric = Fabric { mark_from_bytes: k, ..Fabric::new(3, Rate::from_gbps(1), Span::from_us(20)) };
    let mut world = World::start(fabric, &fabric.setup(image, "dctcp", 1)).unwrap();
    let flows = [0, 1].map(|host| (flow(host as u64, host, 2, 10_000_000, "dctcp"), Time::ZERO));
    world.run_flows(&flows).unwrap();

    // After slow start: from a quarter to three quarters of the run.
    let end = world.flows.iter().filter_map(|f| f.last).min().unwrap().as_ps();
    let steady = |at: Time| (end / 4..end / 4 * 3).contains(&at.as_ps());
    let mut seen: Vec<u64> =
        world.queue.iter().filter(|(at, to, _)| *to == 2 && steady(*at)).map(|q| q.2).collect();
    seen.sort_unstable();
    let (low, median, high) = (seen[seen.len() / 20], seen[seen.len() / 2], seen[seen.len() / 20 * 19]);
    println!("queue in bytes with K = {k}: 5 % {low}, median {median}, 95 % {high}; {} marks", world.marks);
    assert!((k / 2..=k * 3 / 2).contains(&median), "half to one and a half of K: {median}");
    assert!(low > 0, "the link never runs dry");
    assert_eq!(world.drops, 0);
    let echoed: u64 = world.flows.iter().map(|f| f.marks).sum();
    assert!(echoed > 0 && echoed <= world.marks, "the senders know of {echoed} marks of {}", world.marks);
}

#[test]
fn an_incast_that_loses_its_tail_waits_for_the_kernels_timeout_of_200_ms() {
    let Some(image) = kernel() else { return };
    let fabric = Fabric { limit_bytes: 30_000, ..Fabric::new(17, Rate::from_gbps(1), Span::from_us(5)) };
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    let flows: Vec<_> = (1..17).map(|h| (flow(h - 1, h as usize, 0, 20_000, "cubic"), Time::ZERO)).collect();
    world.run_flows(&flows).unwrap();

    let slow: Vec<f64> =
        world.flows.iter().map(|f| f.fct().as_us() / 1_000.0).filter(|ms| *ms > 100.0).collect();
    println!("{} drops; FCT in ms beyond 100: {slow:.1?}", world.drops);
    assert!(world.drops > 0 && !slow.is_empty());
    assert!(slow.iter().all(|ms| *ms > 200.0), "the least timeout is 200 ms: {slow:?}");
    assert!(world.flows.iter().all(|f| f.bytes == 20_000));
    let options = options(&world.trace);
    assert!(options.iter().any(|o| matches!(o, TcpOption::Sack(_))), "losses are told by SACK");
    assert!(options.iter().any(|o| matches!(o, TcpOption::Timestamps { .. })));
    assert!(!options.iter().any(|o| matches!(o, TcpOption::Other { .. })), "each has a name");
}

#[test]
fn bbr_and_mptcp_come_to_their_end() {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(2, Rate::from_bps(100_000_000), Span::from_us(50));
    let mut world = World::start(fabric, &fabric.setup(image, "bbr", 1)).unwrap();
    let mut multipath = flow(1, 1, 0, 1_000_000, "cubic");
    (multipath.protocol, multipath.port) = (Protocol::Mptcp, MPTCP_PORT);
    world.run_flows(&[(flow(0, 0, 1, 1_000_000, "bbr"), Time::ZERO), (multipath, Time::ZERO)]).unwrap();
    assert!(world.flows.iter().all(|f| f.bytes == 1_000_000 && f.failed.is_none()), "{:?}", world.flows);
    let options = options(&world.trace);
    let is_data =
        |option: &TcpOption| matches!(option, TcpOption::Mptcp(Mptcp::Data { mapping: Some(_), .. }));
    assert!(options.iter().any(|o| matches!(o, TcpOption::Mptcp(Mptcp::Capable(_)))), "no MP_CAPABLE");
    assert!(options.iter().filter(|o| is_data(o)).count() > 100, "MPTCP fell back");
}

#[test]
fn one_kernel_has_256_hosts() {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(256, Rate::from_gbps(10), Span::from_us(1));
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    let flows: Vec<_> =
        (0..128).map(|h| (flow(h, h as usize, 255 - h as usize, 100_000, "cubic"), Time::ZERO)).collect();
    world.run_flows(&flows).unwrap();
    assert!(world.flows.iter().all(|f| f.bytes == 100_000));
}

#[test]
fn a_flow_that_nobody_takes_fails_by_itself() {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(2, Rate::from_gbps(1), Span::from_us(5));
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    let mut closed_port = flow(0, 0, 1, 1_000, "cubic");
    closed_port.port = 9;
    let unknown = flow(1, 0, 1, 1_000, "nonsense");
    let good = flow(2, 0, 1, 1_000, "cubic");
    world.run_flows(&[closed_port, unknown, good].map(|f| (f, Time::ZERO))).unwrap();
    assert_eq!(world.flows[0].failed.as_deref(), Some("connection: Connection refused"));
    assert_eq!(world.flows[1].failed.as_deref(), Some("nonsense: No such file or directory"));
    assert_eq!(world.flows[2].bytes, 1_000);
}
