//! Queues against theory: M/D/1, fair shares of a bottleneck, DCTCP's threshold.

use crate::common::{Run, fabric, flow};
use weft_packet::{Class, HostId};
use weft_topology::Tier;
use weft_traffic::Flow;
use weft_units::{Purpose, Span, Stream, Time};

const TCP: &str = r#"name = "tcp""#;
const ECMP: &str = r#"name = "ecmp""#;

/// Poisson arrivals of single packets at a link with fixed service time S wait rho S / (2 (1 -
/// rho)) on average (Pollaczek-Khinchine). The NIC is a thousand times faster, so that arrivals
/// stay Poisson.
#[test]
fn the_mean_wait_of_an_m_d_1_queue_is_within_two_percent() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nhost_rate = '1Tbps'\nfabric_rate = '1Gbps'\n\
         host_delay = '1ns'\nfabric_delay = '1ns'\n[switch_queue]\nbuffer = 'unlimited'",
    );
    let service_us = 1_500.0 * 8.0 / 1e3;
    for (load, packets) in [(0.3, 300_000), (0.6, 400_000), (0.8, 1_000_000)] {
        let mut stream = Stream::new(11, Purpose::Arrivals, 0);
        let mut at = 0.0;
        let flows: Vec<Flow> = (0..packets)
            .map(|_| {
                at += stream.exponential(service_us / load);
                Flow {
                    start: Time::from_ps((at * 1e6) as u64),
                    src: HostId(0),
                    dst: HostId(1),
                    size_bytes: 1_460,
                    class: Class::Unknown,
                    background: false,
                    transport: 0,
                }
            })
            .collect();
        let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
        let wait: u64 = results.flows.iter().map(|flow| flow.wait_ps[Tier::Leaf as usize]).sum();
        let mean_us = wait as f64 / f64::from(packets) / 1e6;
        let theory_us = load * service_us / (2.0 * (1.0 - load));
        let error = (mean_us / theory_us - 1.0).abs();
        assert!(error < 0.02, "load {load}: {mean_us:.3} us, theory says {theory_us:.3} us");
    }
}

/// Long flows into one host share its link: all of it is used, and evenly. TCP meets random early
/// detection here: behind a full drop-tail queue, flows of equal round-trip time lock each other
/// out (Floyd and Jacobson 1992, "On traffic phase effects"), in a simulator without jitter even
/// for good.
#[test]
fn long_flows_share_a_bottleneck_fully_and_fairly() {
    const RED: &str =
        "[switch_queue]\nbuffer = '1MB'\nred = { min = '50KB', max = '500KB', probability = 0.02 }";
    for (transport, queue) in [(r#"name = "dctcp""#, ""), (TCP, RED)] {
        let leaf_spine = "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\nhost_delay = '5us'\nfabric_delay = '5us'\n";
        let fabric = fabric(&format!("{leaf_spine}{queue}"));
        let flows: Vec<Flow> = (0..8).map(|host| Flow { background: true, ..flow(0, host, 15, 1) }).collect();
        let run = Run { time_limit: Span::from_ms(400), ..Run::new(&fabric, transport, ECMP) };
        let results = run.flows(&flows);
        let rates: Vec<f64> =
            results.flows.iter().map(|flow| flow.receiver.segments_received as f64).collect();
        let jain =
            rates.iter().sum::<f64>().powi(2) / (8.0 * rates.iter().map(|rate| rate * rate).sum::<f64>());
        assert!(jain >= 0.95, "{transport}: Jain {jain:.3} of {rates:?}");
        let last_hop = fabric.topology.link_to_host[15] as usize;
        let used = results.links[last_hop].bytes as f64 * 8.0 / 10e9 / 0.4;
        assert!(used > 0.95, "{transport}: {used:.3} of the bottleneck is used");
    }
}

/// DCTCP holds the queue around its threshold K: the mean wait at the bottleneck is near K / rate,
/// and the queue never comes near the buffer (RFC 8257 §1; Alizadeh et al. 2010, §3.3: it
/// oscillates below K plus one packet a flow).
#[test]
fn dctcp_keeps_the_queue_around_its_threshold() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_delay = '5us'\nfabric_delay = '5us'\n\
         [switch_queue]\nbuffer = '1MB'\nmark = '97500B'",
    );
    let flows: Vec<Flow> = (0..4).map(|host| Flow { background: true, ..flow(0, host, 7, 1) }).collect();
    let run = Run { time_limit: Span::from_ms(200), ..Run::new(&fabric, r#"name = "dctcp""#, ECMP) };
    let results = run.flows(&flows);
    let packets: u64 = results.flows.iter().map(|flow| flow.receiver.segments_received).sum();
    let wait: u64 = results.flows.iter().map(|flow| flow.wait_ps[Tier::Last as usize]).sum();
    let mean_bytes = wait as f64 / packets as f64 / 800.0;
    assert!((50_000.0..130_000.0).contains(&mean_bytes), "mean backlog {mean_bytes:.0} bytes, K is 97500");
    assert_eq!(results.packets.dropped, 0, "the queue overflowed");
}
