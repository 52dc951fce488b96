//! Why segments are sent again: the reasons that a run reports are what happened.
use crate::common::{Run, SMALL, fabric, flow};
use weft_fabric::{Results, Retransmissions};
use weft_traffic::Flow;

/// Both hosts of one rack send to one host of the other: the last link is the bottleneck, and
/// drops.
fn incast() -> Vec<Flow> {
    (0..12).map(|index| flow(10 * index, (index % 2) as u16, 2, 300_000)).collect()
}

fn small_buffers() -> String {
    format!("{SMALL}\n[switch_queue]\nbuffer = \"15KB\"\nmark = \"never\"\n")
}

fn total(results: &Results) -> Retransmissions {
    let mut total = Retransmissions::default();
    for record in &results.flows {
        let found = record.retransmissions;
        assert_eq!(
            found.after_loss + found.after_reordering + found.after_timeout,
            record.sender.retransmissions,
            "every retransmission has one reason"
        );
        // A drop is made good by a retransmission, and what is sent in vain arrives twice unless it
        // is dropped or late.
        assert!(record.delivered.is_some() && found.after_loss <= record.dropped);
        assert!(record.receiver.duplicates <= record.sender.retransmissions - found.after_loss);
        total.after_loss += found.after_loss;
        total.after_reordering += found.after_reordering;
        total.after_timeout += found.after_timeout;
    }
    total
}

#[test]
fn in_fast_recovery_on_one_path_nothing_is_sent_in_vain() {
    // NewReno without SACK: on a path that keeps order, an acknowledgement that stops at a segment
    // means that it was lost.
    let fabric = fabric(&small_buffers());
    let run = Run::new(&fabric, "name = \"tcp\"\nsack = false", "name = \"ecmp\"");
    let found = total(&run.flows(&incast()));
    assert!(found.after_loss > 0, "the buffers are small enough to drop");
    assert_eq!(found.after_reordering, 0);
}

#[test]
fn where_nothing_is_dropped_spraying_over_unequal_paths_resends_for_reordering_alone() {
    // The paths differ by 400 us a round trip and buffers hold everything: TR, Design motivation.
    let fault = "[[fault]]\nlink = \"leaf0-spine0\"\ndelay = \"200us\"\n";
    let fabric = fabric(&format!("{SMALL}\n[switch_queue]\nbuffer = \"unlimited\"\n{fault}"));
    let flows: Vec<Flow> = (0..4).map(|index| flow(100 * index, 0, 2, 300_000)).collect();
    let transport = "name = \"dctcp\"\nmin_rto = \"100ms\"\ninitial_rto = \"100ms\"";
    let sprayed = Run::new(&fabric, transport, "name = \"rps\"").flows(&flows);
    let found = total(&sprayed);
    assert_eq!((found.after_loss, found.after_timeout), (0, 0));
    assert!(found.after_reordering > 0);
    assert!(sprayed.flows.iter().all(|record| record.dropped == 0));
    let hashed = total(&Run::new(&fabric, transport, "name = \"ecmp\"").flows(&flows));
    assert_eq!(hashed, Retransmissions::default(), "a flow on one path is not reordered");
}

#[test]
fn the_drops_of_flows_are_those_of_the_links() {
    let fabric = fabric(&small_buffers());
    let results = Run::new(&fabric, "name = \"tcp\"", "name = \"rps\"").flows(&incast());
    total(&results);
    let of_flows: u64 = results.flows.iter().map(|record| u64::from(record.dropped)).sum();
    // Acknowledgements go the other way, where queues are empty: only data is dropped, some of it
    // after its flow ended.
    assert!(of_flows > 0 && of_flows <= results.packets.dropped);
    let of_segments: u64 = results.flows.iter().map(|record| record.sender.segments_sent).sum();
    let arrived: u64 = results.flows.iter().map(|record| record.receiver.segments_received).sum();
    assert!(arrived + of_flows <= of_segments);
}

#[test]
fn what_arrived_is_counted_once_in_bytes() {
    let fabric = fabric(&small_buffers());
    let flows = incast();
    let results = Run::new(&fabric, "name = \"tcp\"", "name = \"rps\"").flows(&flows);
    for (flow, record) in flows.iter().zip(&results.flows) {
        assert_eq!(record.delivered_bytes, flow.size_bytes);
    }
    // A flow that never ends: the link is full after slow start, so it delivers between half and
    // all of what fits.
    let endless = Flow { background: true, size_bytes: 0, ..flow(0, 0, 2, 0) };
    let last = flow(5_000, 1, 3, 1_000);
    let results = Run::new(&fabric, "name = \"tcp\"", "name = \"ecmp\"").flows(&[endless, last]);
    let fits = results.end.as_us() * 10_000.0 / 8.0;
    let delivered = results.flows[0].delivered_bytes as f64;
    assert!(delivered > fits / 2.0 && delivered < fits, "{delivered} of {fits}");
}
