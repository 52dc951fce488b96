//! Applications that write their flows in pieces: closed forms, and what pauses must not change.

use proptest::prelude::*;
use weft_fabric::Results;
use weft_traffic::{Application, ApplicationSpec, Flow, PauseDistribution};
use weft_units::{Bytes, Span};

use crate::common::{Run, SMALL, done_as, fabric, flow};

const ECMP: &str = "name = 'ecmp'";
const TRANSPORTS: [&str; 6] = [
    "name = 'tcp'",
    "name = 'tcp'\nsack = true\nack_every = 2",
    "name = 'tcp'\nsack = true\nrack = true\ntail_loss_probe = true",
    "name = 'dctcp'\nhandshake = true",
    "name = 'tcp'\nprofile = 'linux'\nmin_rto = '5ms'\ninitial_rto = '10ms'",
    "name = 'mptcp'\nsubflows = 2",
];

fn writing(write: u64, pause_us: u64, pause_distribution: PauseDistribution) -> Application {
    let spec =
        ApplicationSpec { write: Bytes::new(write), pause: Span::from_us(pause_us), pause_distribution };
    Application::new(spec, 1)
}

fn took(results: &Results, flows: &[Flow], number: usize) -> Span {
    results.flows[number].delivered.expect("it ended").since(flows[number].start)
}

/// A lone flow whose pieces fit the window and take less than a pause completes, to a picosecond,
/// in all pauses and the time of its last piece; the ideal completion time is the same.
#[test]
fn a_lone_flow_takes_all_pauses_and_the_transmission_of_its_last_piece() {
    let fabric = fabric(SMALL);
    let segment = 1_460;
    // The last piece has four segments of ten, and half a segment.
    let flows = [flow(3, 0, 2, 34 * segment + segment / 2)];
    let last_alone = [flow(3, 0, 2, 4 * segment + segment / 2)];
    for transport in ["name = 'tcp'", "name = 'dctcp'", "name = 'tcp'\nsack = true\nrack = true"] {
        let alone = Run::new(&fabric, transport, ECMP).flows(&last_alone);
        for pause_us in [200, 5_000, 900_000] {
            let application = Some(writing(10 * segment, pause_us, PauseDistribution::Fixed));
            let results = Run { application, ..Run::new(&fabric, transport, ECMP) }.flows(&flows);
            let expected = Span::from_us(3 * pause_us) + took(&alone, &last_alone, 0);
            assert_eq!(took(&results, &flows, 0), expected, "{transport}, {pause_us} us");
            assert_eq!(results.flows[0].ideal, expected, "{transport}, {pause_us} us");
            let stats = results.flows[0].sender;
            assert_eq!(
                (stats.segments_sent, stats.retransmissions, stats.timeouts),
                (35, 0, 0),
                "{transport}"
            );
        }
    }
}

/// A write in which no segment is whole waits for the next write; of a write that ends within one,
/// the rest does.
#[test]
fn only_whole_segments_leave_and_the_last_one() {
    let fabric = fabric(SMALL);
    let flows = [flow(0, 0, 2, 4_000)];
    // 1,000 bytes after 0, 50, 100, 150 us: segments are whole after 50 and 100 us, and the end is
    // there after 150.
    let application = Some(writing(1_000, 50, PauseDistribution::Fixed));
    let results = Run { application, ..Run::new(&fabric, "name = 'tcp'", ECMP) }.flows(&flows);
    let last = [flow(0, 0, 2, 4_000 - 2 * 1_460)];
    let alone = Run::new(&fabric, "name = 'tcp'", ECMP).flows(&last);
    assert_eq!(took(&results, &flows, 0), Span::from_us(150) + took(&alone, &last, 0));
}

#[test]
fn one_write_that_has_it_all_changes_nothing() {
    let fabric = fabric(SMALL);
    let flows: Vec<Flow> = (0..6).map(|i| flow(i, (i % 2) as u16, 2 + (i % 2) as u16, 150_000)).collect();
    for transport in TRANSPORTS {
        let plain = Run::new(&fabric, transport, ECMP).flows(&flows);
        let application = Some(writing(150_000, 100, PauseDistribution::Exponential));
        let written = Run { application, ..Run::new(&fabric, transport, ECMP) }.flows(&flows);
        assert_eq!(done_as(written, &plain), plain, "{transport}");
    }
}

/// Flowlets are what pauses are for: without them a flow alone is one, with them it has one for
/// each piece.
#[test]
fn pauses_make_flowlets() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 2");
    let flows = [flow(0, 0, 2, 1_000_000)];
    let letflow = "name = 'letflow'\ngap = '500us'";
    let flowlets = |application| {
        let results = Run { application, ..Run::new(&fabric, "name = 'dctcp'", letflow) }.flows(&flows);
        results.flows[0].path_changes
    };
    assert_eq!(flowlets(None), 0);
    // Fifty pieces, of which a quarter keeps its path.
    let changes = flowlets(Some(writing(20_000, 1_000, PauseDistribution::Fixed)));
    assert!((20..50).contains(&changes), "{changes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_flow_is_faster_than_its_pauses_allow_and_threads_change_nothing(
        sizes in prop::collection::vec(1u64..400_000, 1..6),
        write in 1_000u64..100_000,
        pause_us in 1u64..2_000,
        drawn in any::<bool>(),
        transport in prop::sample::select(TRANSPORTS.to_vec()),
        buffer in prop::sample::select(vec!["8packets", "1MB"]),
    ) {
        let fabric = fabric(&format!("{SMALL}\n[switch_queue]\nbuffer = '{buffer}'"));
        let flows: Vec<Flow> = (0..).zip(&sizes).map(|(i, &size)| flow(i, (i % 2) as u16, 2 + (i % 2) as u16, size)).collect();
        let distribution = if drawn { PauseDistribution::Exponential } else { PauseDistribution::Fixed };
        let writing = writing(write, pause_us, distribution);
        let application = Some(writing);
        let one = Run { application, ..Run::new(&fabric, transport, "name = 'letflow'") };
        let results = one.flows(&flows);
        for (number, (record, flow)) in results.flows.iter().zip(&flows).enumerate() {
            let took = took(&results, &flows, number);
            prop_assert!(took >= record.ideal, "{took} and {}", record.ideal);
            let pauses = writing.writes(number as u32, flow.size_bytes).last().unwrap().after;
            prop_assert!(record.ideal >= pauses);
        }
        let again = Run { partitions: 2, threads: 2, ..one }.flows(&flows);
        prop_assert_eq!(done_as(again, &results), results);
    }
}
