//! Flows of one range of sizes, in numbers: what papers show of short and of long flows.

use serde::Serialize;

use super::stats::Statistics;

/// The flows of one range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Bin {
    /// How many there are.
    pub flows: u64,
    /// How many of them began and did not finish.
    pub unfinished: u64,
    /// How many of them never began: the run ended before, or what they wait for did not come. The
    /// others finished.
    pub never_started: u64,
    /// Completion times: from the start until the receiver has the last byte in order.
    pub fct_us: Statistics,
    /// Completion times as multiples of the completion time in an empty fabric.
    pub slowdown: Statistics,
    /// Completion times that the same flows would have in an empty fabric.
    pub ideal_fct_us: Statistics,
    /// Payload over completion time.
    pub goodput_mbps: Goodput,
    /// Where the completion time of those that finished went, on average.
    pub fct_breakdown_us: FctBreakdownMeans,
    /// How long a data packet that arrived waited in the queues of switches, on average; null
    /// without data packets.
    pub queueing_us: Option<f64>,
    /// Segments sent again, by reason.
    pub resent: Resent,
    /// Duplicate acknowledgements.
    pub duplicate_acks: DuplicateAcks,
    /// Deadlines, if the traffic has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<Deadlines>,
}

/// Parts of a completion time, as means over the flows that finished. Null if none finished.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FctBreakdownMeans {
    /// Serialisation, propagation and the fixed delays of nodes.
    pub transmission: Option<f64>,
    /// In queues of hosts, behind other flows.
    pub host: Option<f64>,
    /// In queues of edge switches, on the way up.
    pub leaf: Option<f64>,
    /// In queues of all other switches.
    pub spine: Option<f64>,
    /// In the queue of the link to the receiver.
    pub last: Option<f64>,
    /// In reordering buffers, and for a last segment that was late.
    pub reordering: Option<f64>,
    /// Until retransmission timers expired.
    pub timeouts: Option<f64>,
    /// Until an acknowledgement came that let the sender send at once.
    pub acknowledgement: Option<f64>,
    /// Until the sender was allowed to send for any other reason.
    pub window: Option<f64>,
    /// Until ports that had to pause could go on; left out without lossless classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<f64>,
}

/// Goodput of flows in Mbit/s; null without flows, and where unfinished ones leave it open.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Goodput {
    /// The mean over flows.
    pub mean: Option<f64>,
    /// The slowest flow's.
    pub min: Option<f64>,
    /// The lower quartile.
    pub p25: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The upper quartile.
    pub p75: Option<f64>,
    /// The fastest flow's.
    pub max: Option<f64>,
    /// The sum over flows, whether they were active at one time or not.
    pub sum: Option<f64>,
    /// The payload of all of them over the time from the first start to the last completion.
    pub together: Option<f64>,
    /// Upper bounds of some that unfinished flows leave open; left out if all flows finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<GoodputBounds>,
}

/// Upper bounds of goodputs where some flows did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct GoodputBounds {
    /// The mean over flows.
    pub mean: Option<f64>,
    /// The sum over flows.
    pub sum: Option<f64>,
    /// The payload of all of them over the time from the first start to the end of the run.
    pub together: Option<f64>,
}

/// Segments sent again, by reason; null without flows. Shares are of all segments sent, and null if
/// there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Resent {
    /// Every earlier copy was dropped.
    pub after_loss: Option<u64>,
    /// In vain, in fast recovery: the segment was late.
    pub after_reordering: Option<u64>,
    /// In vain, after a timeout.
    pub after_timeout: Option<u64>,
    /// All three together, as a share.
    pub share: Option<f64>,
    /// `after_reordering`, as a share.
    pub reordering_share: Option<f64>,
}

/// Acknowledgements that repeated the last one while data was outstanding (RFC 5681 §2), of flows
/// whose transport counts them; null without any.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct DuplicateAcks {
    /// How many there were.
    pub total: Option<u64>,
    /// The share of flows with one or more.
    pub one_or_more: Option<f64>,
    /// The share of flows with three or more, which is TCP's threshold.
    pub three_or_more: Option<f64>,
}

/// Flows that had to be done by a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Deadlines {
    /// Flows with a deadline that was met or missed: not those that were still active, in time,
    /// when the run ended.
    pub flows: u64,
    /// How many missed it.
    pub missed: u64,
    /// `missed` / `flows`; null if no flow had one.
    pub missed_share: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::rows::FlowRow;
    use crate::results::tally::Figures;

    /// A flow of 1,000 bytes, 8,000 bits, that takes `fct_us`.
    fn flow(start_us: f64, fct_us: f64) -> FlowRow {
        FlowRow {
            start_us: Some(start_us),
            size_bytes: 1_000,
            delivered_bytes: 1_000,
            fct_us: Some(fct_us),
            goodput_mbps: Some(8_000.0 / fct_us),
            segments_sent: 5,
            segments_received: 4,
            ..FlowRow::default()
        }
    }

    fn bin(rows: &[FlowRow]) -> Bin {
        Figures::of(rows, &[]).all()
    }

    #[test]
    fn goodput_is_that_of_a_table_worked_out_by_hand() {
        // 800, 400, 200 and 100 Mbit/s; together 32,000 bits from 10 us to 90 us.
        let rows = [flow(10.0, 10.0), flow(10.0, 20.0), flow(20.0, 40.0), flow(10.0, 80.0)];
        let found = bin(&rows).goodput_mbps;
        let values =
            [found.mean, found.min, found.p25, found.p50, found.p75, found.max, found.sum, found.together];
        assert_eq!(values, [375.0, 100.0, 175.0, 300.0, 500.0, 800.0, 1_500.0, 400.0].map(Some));
        assert_eq!(bin(&[]).goodput_mbps, Goodput::default());
    }

    #[test]
    fn unfinished_flows_leave_goodput_between_zero_and_what_is_left() {
        // Two flows of 800 and 400 Mbit/s, and one that has not finished after the run's 100 us: 80
        // Mbit/s at most.
        let open = FlowRow { fct_us: None, goodput_mbps: None, delivered_bytes: 0, ..flow(0.0, 1.0) };
        let found = bin(&[flow(10.0, 10.0), flow(10.0, 20.0), open.clone()]).goodput_mbps;
        let bounds = found.at_most.unwrap();
        assert_eq!((found.mean, found.sum, found.together, found.max), (None, None, None, Some(800.0)));
        assert!(
            (bounds.sum.unwrap() - 1_280.0).abs() < 1e-9
                && (bounds.mean.unwrap() * 3.0 - 1_280.0).abs() < 1e-9
        );
        assert_eq!(bounds.together, Some(240.0), "24,000 bits from 0 to 100 us");
        assert_eq!(bin(&[open]).goodput_mbps.at_most.unwrap().sum, Some(80.0));
    }

    #[test]
    fn queueing_is_per_packet_and_leaves_the_hosts_own_queue_out() {
        let row = FlowRow {
            wait_host_us: 1e6,
            wait_leaf_us: 6.0,
            wait_spine_us: 1.0,
            wait_last_us: 1.0,
            ..flow(0.0, 1.0)
        };
        assert_eq!(bin(&[row.clone(), FlowRow { background: true, ..row }]).queueing_us, Some(2.0));
    }

    #[test]
    fn retransmissions_are_shares_of_the_segments_sent() {
        let row = FlowRow {
            retransmissions: 4,
            retransmissions_after_loss: 1,
            retransmissions_after_reordering: 2,
            retransmissions_after_timeout: 1,
            segments_sent: 20,
            ..flow(0.0, 1.0)
        };
        let found = bin(&[row]).resent;
        let counts = [found.after_loss, found.after_reordering, found.after_timeout];
        assert_eq!(counts, [1, 2, 1].map(Some));
        assert_eq!((found.share, found.reordering_share), (Some(0.2), Some(0.1)));
    }

    #[test]
    fn the_shares_of_flows_with_duplicates_count_flows() {
        // The last one has a transport that does not count them.
        let rows = [Some(0), Some(1), Some(2), Some(3), None]
            .map(|duplicate_acks| FlowRow { duplicate_acks, ..flow(0.0, 1.0) });
        let found = bin(&rows).duplicate_acks;
        assert_eq!((found.total, found.one_or_more, found.three_or_more), (Some(6), Some(0.75), Some(0.25)));
        assert_eq!(bin(&rows[4..]).duplicate_acks, DuplicateAcks::default());
    }

    #[test]
    fn deadlines_count_where_it_is_known_what_came_of_them() {
        assert_eq!(bin(&[flow(0.0, 1.0)]).deadlines, None);
        let rows = [Some(true), Some(false), Some(false), None].map(|deadline_missed| FlowRow {
            deadline_us: Some(5.0),
            deadline_missed,
            ..flow(0.0, 1.0)
        });
        let expected = Deadlines { flows: 3, missed: 1, missed_share: Some(1.0 / 3.0) };
        assert_eq!(bin(&rows).deadlines, Some(expected));
    }
}
