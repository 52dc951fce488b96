//! Transports that send credits know no time but those of their spec.
use crate::common::{Run, fabric, flow};
use weft_fabric::Results;
use weft_traffic::Flow;
use weft_units::{Span, Time};

const SYMMETRIC: &str = "name = 'ecmp'\nhash = 'symmetric'";
const SCALE: u64 = 10;

/// Flows that meet at hosts and in the fabric, `scale` times later.
fn flows(scale: u64) -> Vec<Flow> {
    let at = |n: u64| Time::ZERO + Span::from_ps((n * 7_654_321 + 1_234) * scale);
    let size = |n: u64| 1_000 + n * n * 700;
    (0..30)
        .map(|n| Flow { start: at(n), ..flow(0, (n % 2) as u16, (2 + n / 2 % 2) as u16, size(n)) })
        .collect()
}

/// A run with all rates divided by `scale`, and all times multiplied by it.
fn run(fabric_text: &str, transport: &str, scale: u64) -> Results {
    let (host, spines, slow) = (10_000 / scale, 5_000 / scale, 2_000 / scale);
    let delays = format!("host_delay = '{}ps'\nfabric_delay = '{}ps'", 1_000_003 * scale, 1_500_001 * scale);
    let fault = format!(
        "[[fault]]\nlink = 'leaf0-spine0'\nat = '{}ns'\nuntil = '{}ns'\nrate = '{slow}Mbps'\nloss = 0.01",
        100_001 * scale,
        900_007 * scale
    );
    let built = fabric(&format!(
        "{fabric_text}\nhost_rate = '{host}Mbps'\nfabric_rate = '{spines}Mbps'\n{delays}\nreroute_after = '{scale}ms'\n{fault}\n"
    ));
    let timeouts = format!("retransmit_timeout = '{}us'\nstop_timeout = '{}us'", 100 * scale, 2_000 * scale);
    let transport = format!("{transport}\n{timeouts}\n");
    let run = Run { time_limit: Span::from_s(scale), ..Run::new(&built, &transport, SYMMETRIC) };
    run.flows(&flows(scale))
}

/// Results of a run on its flows and links, with times divided by `scale`.
fn told(results: &Results, scale: u64) -> (Vec<[Option<u64>; 4]>, Vec<[u64; 4]>) {
    let exact = |at: Option<Time>| {
        at.map(|at| {
            assert_eq!(at.as_ps() % scale, 0, "{at:?} is no multiple of the scale");
            at.as_ps() / scale
        })
    };
    let flows = results.flows.iter().map(|flow| {
        let (again, received) = (flow.sender.retransmissions, flow.receiver.segments_received);
        [exact(flow.delivered), exact(flow.acknowledged), Some(u64::from(again)), Some(received)]
    });
    let links = results.links.iter();
    let links = links.map(|link| [link.bytes, link.packets, link.credits_dropped, link.dropped]);
    (flows.collect(), links.collect())
}

#[test]
fn with_credits_a_tenth_of_all_rates_takes_ten_times_as_long_to_the_picosecond() {
    let fabrics = [
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2",
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 2",
    ];
    let transports = [
        "name = 'expresspass'",
        "name = 'expresspass'\ncredit_spread = '8B'\nmss = '1441B'\ncredit_burst = '300B'",
        "name = 'expresspass'\ndecrease = 'as-printed'\njitter = 0.0\ncredit_size = '79B'",
        "name = 'maxpass'",
        "name = 'maxpass'\ncredit_spread = '11B'\nkeep = 1\nreselect_after = 2\njitter = 0.3",
        "name = 'maxpass'\nfeedback = 'expresspass'\nkeep = 3\ninitial_rate = 0.3",
    ];
    for fabric in fabrics {
        for transport in transports {
            let (fast, slow) = (run(fabric, transport, 1), run(fabric, transport, SCALE));
            assert!(fast.packets.credits_dropped > 0, "credits compete with {transport}");
            assert_eq!(told(&fast, 1), told(&slow, SCALE), "{fabric}\n{transport}");
        }
    }
}
