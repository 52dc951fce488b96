//! `summary.json`: a run in one object.

use serde::Serialize;

use super::bin::Bin;
use super::lossless::Lossless;
use super::phases::{FaultSummary, PhaseSummary};
use super::spread::Spread;
use super::tally::Figures;
use crate::collectives::CollectiveSummary;

/// A run in one object. Times are in microseconds of simulated time unless the name says otherwise.
///
/// Background flows, and those outside the window of measurement, are part of no figure but those
/// of the whole fabric (`packet_hops`, `dropped_packets`, `overhead_bytes`, `events`). An
/// unfinished flow has a completion time between the time that has passed (at least its ideal) and
/// infinity: a mean or a percentile that depends on it is null, and `at_least` has its lower bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The load balancer's name.
    pub scheme: String,
    /// Label of the run in tables and figures: the scheme's name, unless a comparison names it
    /// otherwise.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// All flows but background ones.
    #[serde(flatten)]
    pub all: Bin,
    /// Flows of less than 100 KB, as are the next two in the [groups](crate::bins::groups) of
    /// sizes.
    pub small: Bin,
    /// Flows of 100 KB to 10 MB.
    pub medium: Bin,
    /// Flows of more than 10 MB.
    pub large: Bin,
    /// The ranges of sizes that the spec asks for, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<LabelledBin>,
    /// Flows by class, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassBin>,
    /// How evenly flows are spread over the paths, if the spec asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Spread>,
    /// The spec's `run.time_limit`, if it ended the run before all flows had finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_us: Option<f64>,
    /// Flows that never end, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Flows that ran outside the window of measurement, if the spec asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<Unmeasured>,
    /// Faults of the fabric, and the packets lost into each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultSummary>,
    /// Flows by whether they start before, during or after faults, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSummary>,
    /// Pauses of ports and occupancy of buffers, if ports of switches share memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossless: Option<Lossless>,
    /// Collectives, by what the spec calls them, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<CollectiveSummary>,
    /// Sums over the packets of all flows but background ones.
    #[serde(flatten)]
    pub packets: Packets,
    /// How long a data packet that arrived waited in queues, on average, by where it waited.
    pub wait_us: Waits,
    /// Time and traffic of the run as a whole.
    #[serde(flatten)]
    pub totals: Totals,
    /// Warnings on settings that the spec probably does not mean.
    pub warnings: Vec<String>,
    /// Why the results are incomplete, if they are: each program that failed, in a sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
    /// Why the results answer nothing, if they do not: most packets found no route, or no flow of
    /// finite size finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    /// The version of Weft.
    pub version: &'static str,
    /// The version of the results: see [`crate::RESULTS_VERSION`].
    pub results_version: &'static str,
    /// The hash of the resolved spec and the files that it names.
    pub spec_hash: String,
    /// The fingerprint of the kernel of Linux hosts; left out without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// A range of sizes that the spec asks for, and its flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelledBin {
    /// Label of the range, as in "< 100 KB".
    pub label: String,
    /// The smallest size in it.
    pub from_bytes: u64,
    /// The largest size in it; null if there is none.
    pub up_to_bytes: Option<u64>,
    /// Statistics of its flows.
    #[serde(flatten)]
    pub bin: Bin,
}

/// A class, and its flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassBin {
    /// As in `flows.parquet`.
    pub class: &'static str,
    /// Statistics of its flows.
    #[serde(flatten)]
    pub bin: Bin,
}

/// Packets of flows, in sums over the flows; null without flows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Packets {
    /// Segments sent again.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Segments that reached a receiver's transport behind a hole.
    pub out_of_order_packets: Option<u64>,
    /// Segments that reached a receiver, in whatever order and however often, kept or not.
    pub data_packets: Option<u64>,
    /// `out_of_order_packets` / `data_packets`; null without data packets.
    pub out_of_order_share: Option<f64>,
    /// Segments that had arrived before.
    pub duplicate_segments: Option<u64>,
}

/// Flows that never end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Background {
    /// How many there are.
    pub flows: u64,
    /// How many of them never began.
    pub never_started: u64,
    /// Payload that they delivered, each byte once.
    pub delivered_bytes: u64,
    /// Goodput of each flow, on average, from its start to the end of the run.
    pub goodput_mbps: Option<f64>,
    /// How evenly they shared: Jain's index of these goodputs, 1 if all are equal, 1 / flows if one
    /// has everything; null if all are 0.
    pub fairness: Option<f64>,
    /// Packets of these flows.
    #[serde(flatten)]
    pub packets: Packets,
}

/// Flows that started before the warm-up ended, or after the window of measurement. They loaded the
/// fabric and are in no average.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Unmeasured {
    /// How many there are.
    pub flows: u64,
    /// How many of them began and did not finish.
    pub unfinished: u64,
    /// How many of them never began.
    pub never_started: u64,
}

/// Mean waiting times of a data packet; null without data packets.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Waits {
    /// At the sending host.
    pub host: Option<f64>,
    /// At the edge switch, on the way up.
    pub leaf: Option<f64>,
    /// At all other switches.
    pub spine: Option<f64>,
    /// At the last switch, on the link to the receiver.
    pub last: Option<f64>,
}

/// Time and traffic of a run, as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Totals {
    /// Packets that reached the far end of a link, each link counted.
    pub packet_hops: u64,
    /// Packets dropped, anywhere and for whatever reason.
    pub dropped_packets: u64,
    /// Dropped packets that a switch had no next hop for: they are in no link's count.
    pub unroutable_packets: u64,
    /// And packets that found the input queue of a software switch full: in no link's count either.
    pub input_dropped_packets: u64,
    /// Events that the core handled, but for those of ports with several classes: how many these
    /// are depends on how the work is cut.
    pub events: u64,
    /// Simulated time from 0 to the end of the run.
    pub simulated_us: f64,
    /// Length of an interval of `samples.parquet` and `deliveries.parquet`; null if nobody asked
    /// for samples.
    pub sample_interval_us: Option<f64>,
    /// CPU seconds of the event loop: without reading the spec, building the fabric, generating the
    /// traffic, and writing the results.
    pub cpu_s: f64,
    /// Seconds on the wall clock, as for `cpu_s`.
    pub wall_s: f64,
    /// `packet_hops` / `cpu_s`; null if that is too short to be measured.
    pub packet_hops_per_cpu_s: Option<f64>,
    /// Bytes that links were given to send, each link counted.
    pub link_bytes: u64,
    /// Bytes on links that belong to the scheme's own packets.
    pub overhead_bytes: u64,
    /// Bytes that the simulation held at its peak: fabric, packets, flows.
    pub memory_bytes: u64,
    /// The most that the scheme keeps at any switch, in bytes.
    pub state_bytes_per_switch: u64,
    /// The most that the scheme keeps at any host, in bytes.
    pub state_bytes_per_host: u64,
}

impl Summary {
    /// The summary of these flows.
    pub fn new(scheme: &str, seed: u64, spec_hash: &str, figures: &Figures, totals: Totals) -> Self {
        let [small, medium, large] = figures.groups();
        Self {
            scheme: scheme.to_owned(),
            label: scheme.to_owned(),
            seed,
            all: figures.all(),
            small,
            medium,
            large,
            bins: figures.labelled(),
            classes: figures.classes(),
            paths: None,
            time_limit_us: None,
            background: figures.background(),
            unmeasured: figures.unmeasured(),
            faults: Vec::new(),
            phases: Vec::new(),
            lossless: None,
            collectives: Vec::new(),
            packets: figures.totals().packets(),
            wait_us: figures.waits(),
            totals,
            warnings: Vec::new(),
            incomplete: Vec::new(),
            invalid: Vec::new(),
            version: crate::VERSION,
            results_version: crate::RESULTS_VERSION,
            spec_hash: spec_hash.to_owned(),
            kernel: None,
        }
    }

    /// The text of `summary.json`. Numbers that are not finite become null.
    ///
    /// # Errors
    /// None in practice: every field has a JSON form.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bins::parse_bins;
    use crate::results::rows::FlowRow;

    fn flow(size_bytes: u64, fct_us: Option<f64>) -> FlowRow {
        let slowdown = fct_us.map(|fct| fct / 2.0);
        FlowRow {
            start_us: Some(0.0),
            size_bytes,
            fct_us,
            slowdown,
            ideal_fct_us: Some(2.0),
            segments_received: 4,
            wait_leaf_us: 6.0,
            ..FlowRow::default()
        }
    }

    fn summary(rows: &[FlowRow]) -> serde_json::Value {
        let figures = Figures::of(rows, &parse_bins("lbt").unwrap());
        let summary = Summary::new("ecmp", 7, "hash", &figures, Totals::default());
        serde_json::from_str(&summary.to_json().unwrap()).unwrap()
    }

    #[test]
    fn flows_fall_into_bins_by_size_with_both_bounds_in_the_middle() {
        let sizes = [99_999, 100_000, 10_000_000, 10_000_001];
        let rows = sizes.map(|size| flow(size, Some(4.0)));
        let found = summary(&rows);
        let counts = ["small", "medium", "large"].map(|bin| found[bin]["flows"].as_u64());
        assert_eq!(counts, [Some(1), Some(2), Some(1)]);
        assert_eq!(found["flows"], 4);
    }

    #[test]
    fn the_ranges_that_are_asked_for_have_their_label_their_bounds_and_their_flows() {
        let found = summary(&[99_999, 100_000, 7_000_000].map(|size| flow(size, Some(4.0))));
        let short = &found["bins"][0];
        assert_eq!(
            (&short["label"], &short["up_to_bytes"], &short["flows"]),
            (&"< 100 KB".into(), &99_999.into(), &1.into())
        );
        let long = &found["bins"][1];
        assert_eq!((&long["from_bytes"], &long["flows"]), (&100_000.into(), &2.into()));
        assert!(long["up_to_bytes"].is_null() && long["fct_us"]["mean"] == 4.0);
    }

    #[test]
    fn background_flows_have_a_goodput_of_their_own() {
        let endless = |mbps| FlowRow {
            background: true,
            delivered_bytes: 500,
            goodput_mbps: Some(mbps),
            retransmissions: 3,
            out_of_order_packets: 1,
            ..flow(0, None)
        };
        let found = summary(&[endless(1.0), endless(3.0)]);
        let expected = serde_json::json!({
            "flows": 2, "never_started": 0, "delivered_bytes": 1_000, "goodput_mbps": 2.0, "fairness": 0.8, "retransmissions": 6,
            "timeouts": 0, "out_of_order_packets": 2, "data_packets": 8, "out_of_order_share": 0.25, "duplicate_segments": 0,
        });
        assert_eq!(found["background"], expected);
        assert!(found["goodput_mbps"]["mean"].is_null());
    }

    #[test]
    fn of_no_flow_nothing_is_counted() {
        let found = summary(&[FlowRow { background: true, retransmissions: 3, ..flow(0, None) }]);
        for key in
            ["retransmissions", "timeouts", "out_of_order_packets", "data_packets", "duplicate_segments"]
        {
            assert!(found[key].is_null(), "{key}: {}", found[key]);
        }
        assert!(found["resent"]["after_loss"].is_null() && found["duplicate_acks"]["total"].is_null());
        let found = summary(&[flow(1, Some(4.0))]);
        assert_eq!((&found["retransmissions"], &found["resent"]["after_loss"]), (&0.into(), &0.into()));
        assert!(found["large"]["resent"]["after_loss"].is_null(), "there is no such flow");
    }

    #[test]
    fn unfinished_flows_are_known_by_the_time_that_has_passed() {
        let found = summary(&[flow(1, Some(4.0)), flow(1, None)]);
        assert_eq!(found["unfinished"], 1);
        assert!(found["fct_us"]["mean"].is_null() && found["slowdown"]["mean"].is_null());
        assert_eq!(found["fct_us"]["at_least"]["mean"], 52.0);
        assert_eq!(found["slowdown"]["at_least"]["mean"], 26.0);
        assert_eq!(found["ideal_fct_us"]["mean"], 2.0);
        assert!(
            found["large"]["fct_us"]["p99"].is_null() && found["large"]["fct_us"].get("at_least").is_none()
        );
        let all = summary(&[flow(1, Some(4.0))]);
        assert!(all["fct_us"].get("at_least").is_none() && all["goodput_mbps"].get("at_most").is_none());
    }

    #[test]
    fn a_flow_finished_or_began_or_never_did() {
        let never = FlowRow { start_us: None, ..flow(1, None) };
        let found = summary(&[flow(1, Some(4.0)), flow(1, None), never.clone(), never]);
        let counts = ["flows", "unfinished", "never_started"].map(|key| found[key].as_u64());
        assert_eq!(counts, [Some(4), Some(1), Some(2)]);
        assert_eq!((&found["small"]["unfinished"], &found["small"]["never_started"]), (&1.into(), &2.into()));
    }

    #[test]
    fn no_flow_takes_less_than_its_ideal_whether_it_began_or_not() {
        let late = FlowRow { start_us: Some(99.9), ..flow(1, None) };
        let never = FlowRow { start_us: None, ..flow(1, None) };
        for open in [late, never] {
            let found = summary(&[flow(1, Some(4.0)), open]);
            assert_eq!(found["fct_us"]["at_least"]["mean"], 3.0);
            assert_eq!(found["slowdown"]["at_least"]["mean"], 1.5);
        }
    }

    #[test]
    fn background_flows_count_nowhere() {
        let background = FlowRow { background: true, retransmissions: 9, ..flow(1, Some(1.0)) };
        let found = summary(&[background]);
        assert_eq!(found["flows"], 0);
        assert!(found["retransmissions"].is_null());
        assert!(found["fct_us"]["mean"].is_null() && found["out_of_order_share"].is_null());
    }

    #[test]
    fn flows_outside_the_window_are_counted_apart_and_are_in_no_figure() {
        let outside = |fct_us| FlowRow {
            measured: Some(false),
            retransmissions: 9,
            wait_leaf_us: 1e9,
            ..flow(1, fct_us)
        };
        let inside = FlowRow { measured: Some(true), ..flow(1, Some(4.0)) };
        let found = summary(&[outside(Some(100.0)), inside.clone(), outside(None)]);
        let alone = summary(&[inside]);
        assert_eq!(found["unmeasured"], serde_json::json!({"flows": 2, "unfinished": 1, "never_started": 0}));
        assert_eq!(alone["unmeasured"], serde_json::json!({"flows": 0, "unfinished": 0, "never_started": 0}));
        let rest = |of: &serde_json::Value| {
            let mut of = of.clone();
            of.as_object_mut().unwrap().remove("unmeasured");
            of
        };
        assert_eq!(rest(&found), rest(&alone));
        assert!(
            summary(&[flow(1, None)]).get("unmeasured").is_none(),
            "without a window there is no word of it"
        );
    }

    #[test]
    fn waits_are_means_per_data_packet() {
        assert_eq!(summary(&[flow(1, None), flow(1, None)])["wait_us"]["leaf"], 1.5);
    }
}
