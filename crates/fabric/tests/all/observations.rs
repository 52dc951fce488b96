//! Ports in windows of time, as they are observed for fits.

use crate::common::{Run, fabric, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Bytes, Rate, Span};

/// One way between two racks of four hosts, a quarter as fast as they are together: its queue is
/// never empty for long.
fn bottleneck() -> Fabric {
    fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n\
         [switch_queue]\nbuffer = '200packets'\nmark = 'never'",
    )
}

fn flows() -> Vec<Flow> {
    (0..4).map(|host| flow(0, host, 4 + host, 3_000_000)).collect()
}

fn run(fabric: &Fabric, scheme: &str, observe_every: Option<Span>) -> Results {
    Run { observe_every, ..Run::new(fabric, "name = 'tcp'", scheme) }.flows(&flows())
}

#[test]
fn observing_changes_nothing_but_what_is_observed() {
    let fabric = bottleneck();
    for scheme in ["name = 'ecmp'", "name = 'qall'"] {
        let plain = run(&fabric, scheme, None);
        let mut observed = run(&fabric, scheme, Some(Span::from_us(50)));
        assert!(plain.observations.is_empty() && !observed.observations.is_empty());
        observed.observations.clear();
        observed.memory = plain.memory;
        assert_eq!(observed, plain, "{scheme}");
    }
}

#[test]
fn a_busy_port_sends_at_its_rate_with_a_packet_every_service_time() {
    let fabric = bottleneck();
    let results = run(&fabric, "name = 'ecmp'", Some(Span::from_us(50)));
    let link = link_named(&fabric, "leaf0>spine0");
    let rate = Rate::from_gbps(10);
    let (mut busy, mut bytes) = (0, 0);
    for seen in results.observations.iter().filter(|seen| seen.link as usize == link) {
        bytes += seen.bytes;
        assert_eq!(seen.full, Some(Bytes::new(200 * 1_500)));
        assert!(seen.found_bytes <= 200 * 1_500 && seen.found_bytes_sum <= seen.packets * 200 * 1_500);
        // A window holds whole packets: at most one more than fits.
        let service = rate.service(Bytes::new(seen.bytes));
        assert!(service <= Span::from_us(50) + rate.service(Bytes::new(1_500)), "{seen:?}");
        // Packets that all found others queued follow each other without a pause: each interval is
        // a service time.
        if seen.found_bytes_sum >= seen.packets * 20_000 && seen.packets > 1 {
            busy += 1;
            assert_eq!(seen.interval, rate.service(Bytes::new(1_500)), "{seen:?}");
        }
    }
    let total = results.links[link].bytes;
    assert!(busy > 100, "{busy} windows of 9.6 ms with a queue");
    // The first packet has none before it, and the last window of 50 us, 42 packets, may not be
    // over.
    assert!(bytes < total && bytes + 43 * 1_500 >= total, "{bytes} of {total} bytes");
}

#[test]
fn one_seed_gives_the_same_observations_in_order_of_time_and_link() {
    let fabric = bottleneck();
    let seen = run(&fabric, "name = 'ecmp'", Some(Span::from_us(30))).observations;
    assert_eq!(seen, run(&fabric, "name = 'ecmp'", Some(Span::from_us(30))).observations);
    assert!(seen.is_sorted_by_key(|seen| (seen.at, seen.link)));
}
