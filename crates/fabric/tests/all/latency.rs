//! Latency of a packet through an idle fabric, to the picosecond.

use crate::common::{Run, fabric, fct, flow};
use weft_units::Span;

const TCP: &str = r#"name = "tcp""#;
const ECMP: &str = r#"name = "ecmp""#;

/// 1,500 bytes at 10 Gbit/s.
const FULL: Span = Span::from_ns(1_200);

#[test]
fn a_lone_packet_over_a_leaf_spine_takes_exactly_four_links() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nhost_delay = '3us'\nfabric_delay = '5us'",
    );
    let flows = [flow(7, 0, 5, 1_460)];
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    assert_eq!(fct(&results, &flows, 0), FULL * 4 + Span::from_us(3 + 5 + 5 + 3));
    assert_eq!(results.flows[0].ideal, fct(&results, &flows, 0));
}

#[test]
fn a_lone_packet_within_a_rack_takes_exactly_two_links() {
    let fabric =
        fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_delay = '3us'");
    let flows = [flow(0, 0, 1, 1)];
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    assert_eq!(fct(&results, &flows, 0), Span::from_ps(41 * 800) * 2 + Span::from_us(6));
}

#[test]
fn stack_and_switch_delays_are_paid_at_every_host_and_switch() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nhost_delay = '1us'\nfabric_delay = '1us'\n\
         stack_delay = '10us'\nswitch_delay = '500ns'",
    );
    let flows = [flow(0, 0, 1, 1_460)];
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    let expected = FULL * 4 + Span::from_us(4) + Span::from_us(20) + Span::from_ns(1_500);
    assert_eq!(fct(&results, &flows, 0), expected);
}

#[test]
fn a_lone_packet_between_pods_of_a_fat_tree_takes_exactly_six_links() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4\nhost_delay = '1us'\nfabric_delay = '2us'");
    let last = fabric.topology.hosts as u16 - 1;
    let flows = [flow(0, 0, last, 1_460)];
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    assert_eq!(fct(&results, &flows, 0), FULL * 6 + Span::from_us(1 + 2 * 4 + 1));
}

#[test]
fn mixed_rates_are_stored_and_forwarded_at_each_rate() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_rate = '25Gbps'\nfabric_rate = '100Gbps'\n\
         host_delay = '1us'\nfabric_delay = '1us'\noverhead = '20B'",
    );
    let flows = [flow(0, 0, 3, 1_460)];
    let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
    let expected = Span::from_ps(1_520 * 320) * 2 + Span::from_ps(1_520 * 80) * 2 + Span::from_us(4);
    assert_eq!(fct(&results, &flows, 0), expected);
}

/// Slow start in closed form: windows of 10, 20, 40 … segments, one round trip apart, until a
/// window takes longer to send than a round trip; the pipe is never full here, so every round
/// starts with the first acknowledgement of the round before.
#[test]
fn a_lone_flow_takes_the_rounds_of_slow_start() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nhost_delay = '50us'\nfabric_delay = '50us'",
    );
    // One way: 4 x 50 us and four services; back the same with acknowledgements of 40 bytes.
    let ack = Span::from_ps(40 * 800);
    let round_trip = FULL * 4 + ack * 4 + Span::from_us(400);
    let one_way = FULL * 4 + Span::from_us(200);
    for (segments, rounds, last_window) in [(10, 0, 10), (30, 1, 20), (70, 2, 40), (150, 3, 80), (100, 3, 30)]
    {
        let flows = [flow(0, 0, 1, segments * 1_460)];
        let results = Run::new(&fabric, TCP, ECMP).flows(&flows);
        let expected = round_trip * rounds + one_way + FULL * (last_window - 1);
        assert_eq!(fct(&results, &flows, 0), expected, "{segments} segments");
        assert_eq!(results.flows[0].sender.retransmissions, 0);
    }
}
