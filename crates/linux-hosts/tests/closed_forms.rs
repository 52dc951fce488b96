//! The kernel's TCP over simulated links does what headers, rates and delays say.

#![allow(clippy::unwrap_used)]

mod world;

use weft_units::{Rate, Span, Time};
use world::{Fabric, World, flow, kernel};

/// Bytes of IP and TCP headers: with the options of a SYN, and with time stamps.
const SYN: usize = 60;
const HEADERS: usize = 52;
const SEGMENT: u64 = 1_448;

/// How far a run may be from what is said by hand.
const TOLERANCE: f64 = 0.001;

fn assert_close(what: &str, found: f64, by_hand: f64) {
    println!("{what}: {found:.3}, by hand {by_hand:.3}");
    assert!((found / by_hand - 1.0).abs() < TOLERANCE, "{what}: {found}, by hand {by_hand}");
}

#[test]
fn a_short_flow_takes_a_handshake_and_its_bytes() {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(2, Rate::from_bps(100_000_000), Span::from_us(50));
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    world.run_flows(&[(flow(0, 0, 1, 20_000, "cubic"), Time::ZERO)]).unwrap();

    let card = fabric.card();
    let way = |bytes| (card.service(bytes) + fabric.delay) * 2;
    // SYN there, SYN back, then the last acknowledgement of the handshake and thirteen full
    // segments, ten of which may be sent at once; these take longer than the first acknowledgement
    // needs, so nothing ever waits for a window. The last segment has what is left, and is stored
    // and forwarded once more behind a full one.
    let rest = (20_000 - 13 * SEGMENT) as usize;
    let by_hand = way(SYN) * 2
        + card.service(HEADERS)
        + card.service(HEADERS + SEGMENT as usize) * 13
        + card.service(HEADERS + SEGMENT as usize).max(card.service(HEADERS + rest))
        + fabric.delay * 2
        + card.service(HEADERS + rest);
    assert_close("FCT of 20 KB in us", world.flows[0].fct().as_us(), by_hand.as_us());
    assert_eq!((world.flows[0].bytes, world.flows[0].retransmits), (20_000, 0));
}

#[test]
fn a_long_flow_gets_the_rate_less_its_headers() {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(2, Rate::from_bps(100_000_000), Span::from_us(50));
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    world.run_flows(&[(flow(0, 0, 1, 10_000_000, "cubic"), Time::ZERO)]).unwrap();

    let wire = HEADERS as f64 + SEGMENT as f64 + 38.0;
    let found = 10_000_000.0 * 8.0 / world.flows[0].fct().as_us();
    assert_close("throughput of 10 MB in Mbit/s", found, 100.0 * SEGMENT as f64 / wire);
}
