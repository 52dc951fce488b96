//! Transports that tolerate reordering, under packet spraying: nothing is sent in vain, and losses
//! are still repaired without a timeout.
use crate::common::{Run, SMALL, fabric, flow};
use weft_fabric::{FlowRecord, Results};
use weft_traffic::Flow;

/// Two flows, one after the other, between racks over two paths that differ by up to 20 us a round
/// trip; one of the paths loses this share of its packets.
fn sprayed(transport: &str, loss: f64) -> Results {
    let fault = format!("[[fault]]\nlink = \"leaf0-spine0\"\ndelay = \"10us\"\nloss = {loss:?}\n");
    let fabric = fabric(&format!("{SMALL}\n[switch_queue]\nbuffer = \"unlimited\"\n{fault}"));
    let flows: Vec<Flow> = (0..2).map(|index| flow(20_000 * index, 0, 2, 3_000_000)).collect();
    let timers = "min_rto = \"10ms\"\ninitial_rto = \"10ms\"\ninitial_ssthresh = 24";
    let transport = format!("{transport}\n{timers}");
    let results = Run::new(&fabric, &transport, "name = \"rps\"").flows(&flows);
    assert!(results.flows.iter().all(|record| record.delivered.is_some()));
    results
}

fn sum(results: &Results, what: impl Fn(&FlowRecord) -> u32) -> u32 {
    results.flows.iter().map(what).sum()
}

const COUNTING: &str = "name = \"tcp\"\nsack = true";
/// The shortest round trip has 8 us of propagation alone, so the window is over 32 us: more than
/// the paths differ.
const TOLERANT: &str = "name = \"tcp\"\nsack = true\nrack = true\nrack_adaptive = false\nrack_window = 4.0";
const BUFFERED: &str = "name = \"tcp\"\nsack = true\nreorder_hold = \"60us\"";

#[test]
fn spraying_makes_a_counting_sender_resend_in_vain_and_a_tolerant_one_not() {
    let counting = sprayed(COUNTING, 0.0);
    assert!(sum(&counting, |record| record.retransmissions.after_reordering) > 0);
    for transport in [TOLERANT, BUFFERED] {
        let results = sprayed(transport, 0.0);
        let resent = sum(&results, |record| record.sender.retransmissions);
        let recoveries = sum(&results, |record| record.sender.fast_recoveries);
        assert_eq!((resent, recoveries), (0, 0), "{transport}");
        assert!(sum(&results, |record| record.path_changes) > 0, "it was sprayed");
    }
}

#[test]
fn losses_are_repaired_without_a_timeout_by_tolerant_transports() {
    // Some 8 of 4,110 segments are lost. Only the loss of a flow's end, or of a retransmission, can
    // need the timer: some 2 % of seeds.
    for transport in [TOLERANT, BUFFERED] {
        let results = sprayed(transport, 0.004);
        assert!(
            sum(&results, |record| record.retransmissions.after_loss) > 0,
            "{transport}: nothing was lost"
        );
        assert_eq!(sum(&results, |record| record.sender.timeouts), 0, "{transport}");
        assert_eq!(sum(&results, |record| record.retransmissions.after_reordering), 0, "{transport}");
    }
}
