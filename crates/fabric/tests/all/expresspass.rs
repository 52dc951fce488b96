//! ExpressPass: what the design promises, end to end.
use crate::common::{Run, counter, fabric, fct, flow};
use weft_fabric::Results;
use weft_traffic::Flow;
use weft_units::Span;

const SYMMETRIC: &str = "name = 'ecmp'\nhash = 'symmetric'";
const EXPRESSPASS: &str = "name = 'expresspass'";
/// Nine racks of eight hosts, all links of 10 Gbit/s.
const RACKS: &str = "kind = 'leaf-spine'\nleaves = 9\nspines = 4\nhosts_per_leaf = 8\nhost_rate = '10Gbps'\n\
                     fabric_rate = '10Gbps'\nhost_delay = '1us'\nfabric_delay = '1us'\n";
/// Picoseconds of a frame and of a credit on a link of 10 Gbit/s, and of both: the time between two
/// credits.
const FRAME: u64 = 1_538 * 800;
const PERIOD: u64 = FRAME + 84 * 800;

fn no_data_lost(results: &Results) {
    let lost: u64 = results.links.iter().map(|link| link.dropped).sum();
    assert_eq!(lost, 0);
    assert!(results.flows.iter().all(|record| record.sender.retransmissions == 0 && record.dropped == 0));
}

/// 64 hosts of eight racks send to the first host.
fn incast(size: u64) -> Vec<Flow> {
    (0..64).map(|sender| flow(0, 8 + sender, 0, size)).collect()
}

/// The longest that data queues can be at the port to the incast's receiver, in bytes.
///
/// Credits pass each port at one a period behind a burst of two. If the frames that they call for
/// come back after a time that varies by up to `spread`, no more than spread / period + 3 of them
/// can meet at the port back to back.
fn incast_bound() -> u64 {
    let frames = |spread: u64| 3 + spread.div_ceil(PERIOD);
    // A credit waits behind at most seven others and for its own tokens, and for a frame in
    // service.
    let credit_wait = 8 * PERIOD + FRAME;
    // At the sender's own port at most one frame of its burst is ahead.
    let sender = FRAME;
    let up = frames(credit_wait + sender) * FRAME;
    let down = frames(2 * credit_wait + sender + up) * FRAME;
    let requests = 64 * 84;
    frames(3 * credit_wait + sender + up + down) * 1_538 + requests
}

#[test]
fn an_incast_of_64_stays_below_the_bound_of_the_design_and_loses_no_data() {
    let bound = incast_bound();
    assert!(bound < 250 * 1_538, "the buffer of the authors' large-scale script holds it");
    let fabric = fabric(&format!("{RACKS}[switch_queue]\nbuffer = '{bound}B'\nmark = 'never'\n"));
    let flows = incast(60_000);
    let results = Run::new(&fabric, EXPRESSPASS, SYMMETRIC).flows(&flows);
    no_data_lost(&results);
    assert!(results.flows.iter().all(|record| record.delivered.is_some()));
    // The same buffer does not hold what TCP sends before it learns anything: 64 x 10 segments.
    let tcp = Run::new(&fabric, "name = 'tcp'", SYMMETRIC).flows(&flows);
    assert!(tcp.packets.dropped > 0);
}

#[test]
fn what_an_incast_drops_are_credits_and_every_credit_is_accounted_for() {
    let fabric = fabric(RACKS);
    let results = Run::new(&fabric, EXPRESSPASS, SYMMETRIC).flows(&incast(60_000));
    no_data_lost(&results);
    let [sent, dropped, wasted] =
        ["credits_sent", "credits_dropped", "credits_wasted"].map(|name| counter(&results, name));
    let used: u64 = results.flows.iter().map(|record| record.sender.segments_sent).sum();
    assert_eq!(dropped, results.links.iter().map(|link| link.credits_dropped).sum::<u64>());
    assert_eq!(dropped, results.packets.credits_dropped);
    // Half the rate each is 32 times too much in the first round trip alone.
    assert!(dropped > 64, "{dropped}");
    let pending = sent - dropped - wasted - used;
    assert!(pending <= results.in_flight, "{pending} of {sent} credits are nowhere");
}

#[test]
fn a_lone_flow_fills_94_percent_of_the_wire() {
    let fabric = fabric(RACKS);
    let took = |size: u64| {
        let flows = [flow(0, 8, 0, size)];
        let results = Run::new(&fabric, EXPRESSPASS, SYMMETRIC).flows(&flows);
        no_data_lost(&results);
        fct(&results, &flows, 0).as_ps() as f64
    };
    // Between two sizes, so that the start is not counted. 1,460 of 1,538 bytes are payload.
    let (short, long) = (1_460 * 5_000, 1_460 * 25_000);
    let share = 20_000.0 * FRAME as f64 / (took(long) - took(short));
    // Credits have 84 of 1,622 bytes: 94.82 % is left.
    assert!((0.94..=1_538.0 / 1_622.0 + 1e-3).contains(&share), "{share}");
}

/// Four endless flows of four racks to one host, for 40 ms: Jain's index of what they got, and the
/// share of the wire.
fn four_flows(transport: &str) -> (f64, f64) {
    let fabric = fabric(RACKS);
    let endless = |src| Flow { background: true, ..flow(0, src, 0, 0) };
    // The last flow ends the run after some thousand round trips.
    let mut flows: Vec<Flow> = [8, 16, 24, 32].map(endless).to_vec();
    flows.push(flow(40_000, 40, 48, 1_000));
    let results = Run::new(&fabric, transport, SYMMETRIC).flows(&flows);
    no_data_lost(&results);
    let bytes: Vec<f64> = results.flows[..4].iter().map(|record| record.delivered_bytes as f64).collect();
    let sum: f64 = bytes.iter().sum();
    let jain = sum * sum / (4.0 * bytes.iter().map(|each| each * each).sum::<f64>());
    (jain, sum * 1_538.0 / 1_460.0 / (results.end.as_us() * 1_250.0))
}

#[test]
fn flows_that_share_a_link_converge_to_equal_shares_of_all_of_it() {
    let (jain, share) = four_flows(EXPRESSPASS);
    assert!(jain > 0.95, "{jain}");
    assert!(share > 0.9, "{share} of the wire");
}

#[test]
fn a_decrease_as_printed_counts_a_loss_twice_and_leaves_part_of_the_link_idle() {
    let (jain, printed) = four_flows("name = 'expresspass'\ndecrease = 'as-printed'");
    let (_, measured) = four_flows(EXPRESSPASS);
    assert!(jain > 0.95 && printed < measured, "{jain}: {printed} against {measured}");
}

#[test]
fn what_faults_lose_is_sent_again() {
    let fault = "[[fault]]\nlink = 'leaf1>spine0'\nloss = 0.05\n[[fault]]\nlink = 'leaf1>spine1'\nloss = 0.05\n\
                 [[fault]]\nlink = 'spine2>leaf1'\nat = '50us'\nuntil = '300us'\ndown = true\n";
    let fabric = fabric(&format!("{RACKS}{fault}"));
    let flows: Vec<Flow> =
        (0..24).map(|index| flow(index, 8 + index as u16 % 8, index as u16 % 8, 200_000)).collect();
    let run = Run { time_limit: Span::from_ms(200), ..Run::new(&fabric, EXPRESSPASS, SYMMETRIC) };
    let results = run.flows(&flows);
    for (record, flow) in results.flows.iter().zip(&flows) {
        assert!(record.acknowledged.is_some());
        assert_eq!(record.delivered_bytes, flow.size_bytes);
        let reasons = record.retransmissions;
        assert_eq!(
            reasons.after_loss + reasons.after_reordering + reasons.after_timeout,
            record.sender.retransmissions
        );
    }
    assert!(results.flows.iter().map(|record| record.sender.retransmissions).sum::<u32>() > 0);
}

#[test]
fn a_short_flow_takes_a_round_trip_of_request_and_credit_more_than_its_transfer() {
    let fabric = fabric(RACKS);
    let flows = [flow(0, 8, 0, 1_000)];
    let results = Run::new(&fabric, EXPRESSPASS, SYMMETRIC).flows(&flows);
    // Alone, nothing waits: the ideal counts the request, the credit and the one packet.
    assert_eq!(fct(&results, &flows, 0), results.flows[0].ideal);
}
