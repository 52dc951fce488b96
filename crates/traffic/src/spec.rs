//! The `[traffic]` table of a spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span, whole_number};

use crate::{
    ApplicationSpec, ClassSpec, CollectiveSpec, DeadlineSpec, HostRange, IncastSpec, JobSpec, LoadOf,
    LongLivedSpec, MAX_FLOW_BYTES, Pairs, ProgramSpec, ScheduleSpec, TrafficError,
};

/// Which bytes go where, and when: random flows or a trace, and beside them incasts, long-lived
/// flows and programs.
///
/// There are random flows if `workload`, `size`, `size_scale`, `load` or, without a trace, `flows`
/// is given, and if there is nothing else: neither a trace nor incasts, long-lived flows or
/// programs. They arrive as one Poisson process over the whole fabric: gaps between arrivals are
/// exponential with the mean `mean size / offered bytes per second`, the first gap starts at 0.
/// Each flow gets its size from the workload and its ends from `pairs`, independently of all
/// others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrafficSpec {
    /// Where the sizes of random flows come from: the name of a built-in distribution, as in
    /// `"web-search"`, or a CSV file (its name ends in `.csv`, relative to the spec) with the
    /// columns `size_bytes,cumulative_probability`, linear between rows. Default, if there are
    /// random flows: `"web-search"`, or none if there is a `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// In place of `workload`: the size of every random flow, 1 B to 1 TB of payload, as in
    /// `"64KB"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// A factor on the sizes of random flows, above 0: a size that is drawn is multiplied by it,
    /// rounded to the nearest byte, and at least one byte. The load stays what it says: arrivals
    /// follow the scaled mean. Classes, deadlines and bins go by scaled sizes. Incasts, which have
    /// a size of their own, are not scaled, and a trace cannot be. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_scale: Option<f64>,
    /// Load of random flows: payload bytes per second as a share of the capacity that `load_of`
    /// names, above 0, at most 1. It counts payload alone; headers, acknowledgements and
    /// retransmissions come on top, so that a link is busier than the load says by the share of
    /// headers. The arrival rate is the offered bytes per second divided by the exact mean of the
    /// workload. A load is refused if it exceeds what the senders' links, the receivers' links or
    /// the uplinks of their racks carry, each taken together. Incasts and long-lived flows come on
    /// top. Default, if there are random flows: 0.6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The capacity that `load` is a share of. Default `"leaf-uplinks"`.
    pub load_of: LoadOf,
    /// How many random flows there are, or how many rows of the trace are taken. Default: as many
    /// as start within `duration`; without it 2000 random flows, and all rows. With both, whichever
    /// ends first.
    #[serde(deserialize_with = "read_flows", skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// No random flow, row of the trace or incast starts at or after this time. Default: no such
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Who sends to whom, for random flows and for long-lived flows without `src` and `dst`.
    /// Default `"between-racks"`.
    pub pairs: Pairs,
    /// The hosts that send if `pairs` is `"group-to-group"`: numbers and ranges, as in `[0, 4,
    /// "8-15"]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<HostRange>>,
    /// The hosts that receive if `pairs` is `"group-to-group"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destinations: Option<Vec<HostRange>>,
    /// In place of `sources` and `destinations`: so many hosts, drawn once from the seed, send to
    /// all the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_sources: Option<u16>,
    /// In place of random flows: a CSV file (relative to the spec) with a flow a row, sorted by
    /// time. Its first line names the columns: `start_us` (microseconds, up to six decimal places),
    /// `src`, `dst` (hosts), `size_bytes` (payload, 1 to 10^12) and, if wanted, `class` (`unknown`,
    /// `short`, `long`, `best-effort`, `tc4` to `tc7`, or empty) and `transport` (the label of one
    /// of several, or empty). Other columns are ignored, and so are empty lines and lines that
    /// begin with `#`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// How flows get their class.
    pub classes: ClassSpec,
    /// By when flows should be done: for the share that misses its deadline. Default: there are no
    /// deadlines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<DeadlineSpec>,
    /// Applications that write their flows in pieces, with pauses between. Default: all of a flow
    /// is there when it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationSpec>,
    /// Requests that many hosts answer at once, beside the rest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incast: Vec<IncastSpec>,
    /// Flows that never end, beside the rest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub long_lived: Vec<LongLivedSpec>,
    /// Flows that wait for each other, from a file: a connection matrix of htsim, a GOAL schedule,
    /// or Chakra's traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
    /// Collectives, beside the rest or alone: flows that wait for each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collective: Vec<CollectiveSpec>,
    /// Training jobs, beside the rest or alone: steps of computations and collectives, each on
    /// hosts of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub job: Vec<JobSpec>,
    /// Programs that run on Linux hosts, beside flows or alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<ProgramSpec>,
}

/// A number of flows; a spec that asks for none says so by leaving the key out.
fn read_flows<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    whole_number(deserializer, 1..=u32::MAX).map(Some)
}

impl TrafficSpec {
    /// Where the sizes of random flows come from, unless the spec says it.
    pub const DEFAULT_WORKLOAD: &str = "web-search";
    /// Default load of random flows.
    pub const DEFAULT_LOAD: f64 = 0.6;
    /// How many random flows there are, unless the spec says when they end.
    pub const DEFAULT_FLOWS: u32 = 2_000;

    /// Writes out the defaults of random flows, if there are any.
    #[must_use]
    pub fn resolved(&self) -> Self {
        let mut spec = self.clone();
        if !spec.asks_for_random_flows() {
            return spec;
        }
        if !spec.has_random_flows() {
            spec.workload = Some(Self::DEFAULT_WORKLOAD.to_owned());
        }
        spec.load = spec.load.or(Some(Self::DEFAULT_LOAD));
        if spec.flows.is_none() && spec.duration.is_none() {
            spec.flows = Some(Self::DEFAULT_FLOWS);
        }
        spec
    }

    /// Whether a key asks for random flows, or there would be nothing else.
    fn asks_for_random_flows(&self) -> bool {
        if self.trace.is_some() {
            return false;
        }
        let is_asked = self.has_random_flows()
            || self.size_scale.is_some()
            || self.load.is_some()
            || self.flows.is_some();
        let is_alone = self.incast.is_empty() && self.long_lived.is_empty() && self.program.is_empty();
        is_asked || (is_alone && !self.has_collectives())
    }

    /// Whether there are random flows.
    pub(crate) fn has_random_flows(&self) -> bool {
        self.workload.is_some() || self.size.is_some()
    }

    /// Whether there are flows that wait for others.
    pub const fn has_collectives(&self) -> bool {
        !self.collective.is_empty() || !self.job.is_empty() || self.schedule.is_some()
    }

    /// The key of what makes them.
    pub const fn collectives_key(&self) -> &'static str {
        match (self.collective.is_empty(), self.job.is_empty()) {
            (false, _) => "traffic.collective",
            (true, false) => "traffic.job",
            (true, true) => "traffic.schedule",
        }
    }

    /// Which keys stand together, as far as that needs no fabric.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        self.check_exclusions()?;
        self.classes.check()?;
        self.deadlines.as_ref().map_or(Ok(()), DeadlineSpec::check)?;
        self.application.as_ref().map_or(Ok(()), ApplicationSpec::check)?;
        if self.duration == Some(Span::ZERO) {
            return Err(TrafficError::bad_value("traffic.duration", Span::ZERO, "more than 0"));
        }
        if self.has_random_flows() && self.flows.is_none() && self.duration.is_none() {
            return Err(TrafficError::missing(
                "traffic.flows",
                "random flows need it, or traffic.duration, to end",
            ));
        }
        if let Some(scale) = self.size_scale.filter(|scale| !(scale.is_finite() && *scale > 0.0)) {
            return Err(TrafficError::bad_value("traffic.size_scale", scale, "a factor above 0, as in 0.5"));
        }
        let is_needed = self.load.is_some() || self.flows.is_some();
        if is_needed && !self.has_random_flows() && self.trace.is_none() {
            let key = if self.load.is_some() { "traffic.load" } else { "traffic.flows" };
            return Err(TrafficError::missing(
                "traffic.workload",
                format!("{key} needs it, as in \"web-search\""),
            ));
        }
        if !self.has_random_flows()
            && self.trace.is_none()
            && self.incast.is_empty()
            && self.long_lived.is_empty()
            && self.program.is_empty()
            && !self.has_collectives()
        {
            let reason = "give traffic.workload (or size) with traffic.load, traffic.trace, or a table of \
                          traffic.incast, traffic.long_lived, traffic.collective, traffic.job, traffic.schedule or traffic.program";
            return Err(TrafficError::NoFlows { reason: reason.to_owned() });
        }
        self.check_scale_is_used()?;
        self.check_application_is_used()?;
        self.check_groups_are_used()
    }

    /// A factor on sizes that nothing is drawn from is a mistake.
    fn check_scale_is_used(&self) -> Result<(), TrafficError> {
        if self.size_scale.is_none() || self.has_random_flows() {
            return Ok(());
        }
        let reason = "traffic.size_scale is of use to random flows alone";
        Err(TrafficError::missing("traffic.workload", reason))
    }

    /// Pauses that no flow has are a mistake.
    fn check_application_is_used(&self) -> Result<(), TrafficError> {
        let has_flows_that_end = self.has_random_flows() || self.trace.is_some() || !self.incast.is_empty();
        if self.application.is_some() && self.has_collectives() {
            let reason = "flows that wait for others are there as a whole when they start";
            return Err(TrafficError::conflict("traffic.application", self.collectives_key(), reason));
        }
        if self.application.is_none() || has_flows_that_end {
            return Ok(());
        }
        let reason = "traffic.application is of use to flows that end alone";
        Err(TrafficError::missing("traffic.workload", reason))
    }

    /// Whether a pair is drawn by `pairs` at all.
    pub(crate) fn draws_pairs(&self) -> bool {
        self.has_random_flows() || self.long_lived.iter().any(LongLivedSpec::draws_pairs)
    }

    /// Groups of hosts that nothing is drawn from are a mistake, not to be passed over.
    fn check_groups_are_used(&self) -> Result<(), TrafficError> {
        let groups = [
            ("traffic.sources", self.sources.is_some()),
            ("traffic.destinations", self.destinations.is_some()),
            ("traffic.random_sources", self.random_sources.is_some()),
        ];
        match groups.into_iter().find(|(_, given)| *given) {
            Some((key, _)) if !self.draws_pairs() => {
                let reason = format!(
                    "{key} is of use to random flows, or to long-lived ones without src and dst, alone"
                );
                Err(TrafficError::missing("traffic.workload", reason))
            }
            _ => Ok(()),
        }
    }

    fn check_exclusions(&self) -> Result<(), TrafficError> {
        if self.workload.is_some() && self.size.is_some() {
            let reason = "each says how large random flows are";
            return Err(TrafficError::conflict("traffic.workload", "traffic.size", reason));
        }
        let random = [
            ("traffic.workload", self.workload.is_some()),
            ("traffic.size", self.size.is_some()),
            ("traffic.load", self.load.is_some()),
            // Scaled sizes at the trace's own times would be another load, which nobody asked for
            // by a number.
            ("traffic.size_scale", self.size_scale.is_some()),
        ];
        if let (Some(_), Some((key, _))) = (&self.trace, random.into_iter().find(|(_, given)| *given)) {
            let reason = "a trace takes the place of random flows";
            return Err(TrafficError::conflict("traffic.trace", key, reason));
        }
        Ok(())
    }
}

/// A flow has 1 B to 1 TB.
pub(crate) fn check_size(key: impl Into<String>, size: Bytes) -> Result<(), TrafficError> {
    if (1..=MAX_FLOW_BYTES).contains(&size.as_u64()) {
        return Ok(());
    }
    Err(TrafficError::bad_value(key, size, "1 B to 1 TB"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{message, spec};

    const FULL: &str = "
        workload = 'web-search'
        size_scale = 0.25
        load = 0.6
        load_of = 'host-links'
        flows = 2000
        duration = '10ms'
        pairs = 'group-to-group'
        sources = ['0-3', 9]
        destinations = ['4-8']
        [application]
        write = '64KB'
        pause = '500us'
        pause_distribution = 'exponential'
        [classes]
        best_effort = 0.1
        short_below = '100KB'
        [[incast]]
        senders = 8
        size = '20KB'
        load = 0.02
        [[long_lived]]
        src = 0
        dst = 9
        class = 'best-effort'";

    #[test]
    fn what_is_written_back_reads_as_the_same_spec() {
        for text in [FULL, "", "trace = 'flows.csv'", "size = '64KB'\nload = 1.0\npairs = 'permutation'"] {
            let written = toml::to_string(&spec(text)).unwrap();
            assert_eq!(spec(&written), spec(text), "{written}");
        }
    }

    #[test]
    fn defaults_are_written_out() {
        let written = toml::to_string(&spec("size = '1KB'")).unwrap();
        for line in ["load_of = \"leaf-uplinks\"", "pairs = \"between-racks\"", "best_effort = 0.0"] {
            assert!(written.contains(line), "{written}");
        }
    }

    #[test]
    fn every_key_is_described_in_the_schema() {
        let schema = serde_json::to_value(schemars::schema_for!(TrafficSpec)).unwrap();
        let tables = [
            "/properties",
            "/$defs/ApplicationSpec/properties",
            "/$defs/IncastSpec/properties",
            "/$defs/LongLivedSpec/properties",
            "/$defs/ProgramSpec/properties",
        ];
        for table in tables {
            for (key, value) in schema.pointer(table).unwrap().as_object().unwrap() {
                assert!(value.get("description").is_some(), "{table}/{key} has no description");
            }
        }
        assert_eq!(schema["additionalProperties"], false);
    }

    const BESIDE: [&str; 3] = [
        "[[incast]]\nsenders = 2\nsize = '1KB'",
        "[[long_lived]]\nsrc = 0\ndst = 9",
        "[[program]]\nhost = 0\ncommand = 'true'",
    ];

    #[test]
    fn each_key_of_random_flows_alone_gives_the_others_their_defaults() {
        let keys = [
            "workload = 'hadoop'",
            "size = '1KB'",
            "size_scale = 0.5",
            "load = 0.3",
            "flows = 7",
            "load = 0.6",
        ];
        for key in keys {
            for beside in ["", BESIDE[0], BESIDE[1], BESIDE[2]] {
                let written = spec(&format!("{key}\n{beside}"));
                let resolved = written.resolved();
                let sizes = (resolved.workload.as_deref(), resolved.size);
                let expected = match written.size {
                    Some(size) => (None, Some(size)),
                    None => (Some(written.workload.as_deref().unwrap_or("web-search")), None),
                };
                assert_eq!(sizes, expected, "{key} {beside}");
                assert_eq!(resolved.load, written.load.or(Some(0.6)), "{key} {beside}");
                assert_eq!(resolved.flows, written.flows.or(Some(2_000)), "{key} {beside}");
                assert_eq!(resolved.resolved(), resolved, "{key} {beside}");
            }
        }
    }

    #[test]
    fn what_ends_random_flows_takes_no_default_beside_it() {
        let until = spec("duration = '1ms'").resolved();
        assert_eq!((until.flows, until.load), (None, Some(0.6)));
        let both = "duration = '1ms'\nflows = 3";
        assert_eq!(spec(both).resolved().flows, Some(3));
    }

    #[test]
    fn there_are_random_flows_if_there_is_nothing_else() {
        for text in [
            "",
            "pairs = 'anywhere'",
            "load_of = 'host-links'",
            "incast = []",
            "[classes]\nbest_effort = 0.1",
        ] {
            assert!(spec(text).resolved().has_random_flows(), "{text}");
        }
    }

    #[test]
    fn other_traffic_alone_stays_alone() {
        let shared = "duration = '1ms'\npairs = 'anywhere'\nload_of = 'host-links'\n";
        for beside in BESIDE {
            for text in [beside.to_owned(), format!("{shared}{beside}")] {
                assert_eq!(spec(&text).resolved(), spec(&text), "{text}");
            }
        }
        // A trace ends by the same keys, and excludes those of random flows with a message.
        for text in ["trace = 'x.csv'", "trace = 'x.csv'\nflows = 5", "trace = 'x.csv'\nload = 0.5"] {
            assert_eq!(spec(text).resolved(), spec(text), "{text}");
        }
    }

    #[test]
    fn unknown_keys_and_values_are_refused_with_what_is_allowed() {
        let refused = |text: &str| toml::from_str::<TrafficSpec>(text).unwrap_err().to_string();
        assert!(refused("workloat = 'x'").contains("unknown field `workloat`, expected one of `workload`"));
        assert!(refused("pairs = 'between'").contains("`between-racks`"));
        assert!(refused("[[incast]]\nsenders = 1").contains("missing field `size`"));
        assert!(refused("duration = 5").contains("a time with its unit"));
        for flows in ["0", "-5", "4294967296", "'few'"] {
            let said = refused(&format!("flows = {flows}"));
            assert!(said.contains("expected a whole number from 1 to 4294967295"), "{said}");
        }
    }

    #[test]
    fn keys_that_do_not_fit_together_are_named() {
        let cases = [
            ("", "there is no flow: give traffic.workload"),
            ("duration = '1ms'", "there is no flow"),
            ("load = 0.5", "traffic.workload is missing: traffic.load needs it"),
            ("flows = 5", "traffic.workload is missing: traffic.flows needs it"),
            (
                "size = '1KB'\nload = 0.5",
                "traffic.flows is missing: random flows need it, or traffic.duration",
            ),
            ("size = '1KB'\nflows = 5", "traffic.load is missing"),
            ("size = '1KB'\nload = 0.5\nduration = '0us'", "traffic.duration = 0ps: allowed is more than 0"),
            ("size = '0B'\nload = 0.5\nflows = 5", "traffic.size = 0B: allowed is 1 B to 1 TB"),
            ("size = '1KB'\nworkload = 'hadoop'", "traffic.workload and traffic.size exclude"),
            ("trace = 'x.csv'\nsize = '1KB'", "traffic.trace and traffic.size exclude"),
            (
                "trace = 'x.csv'\nsources = [0]",
                "traffic.workload is missing: traffic.sources is of use to random flows",
            ),
            ("trace = 'x.csv'\nload = 0.5", "traffic.trace and traffic.load exclude"),
            ("trace = 'x.csv'\nsize_scale = 0.5", "traffic.trace and traffic.size_scale exclude"),
            (
                "size_scale = 2.0\n[[incast]]\nsenders = 2\nsize = '1KB'\nload = 0.1",
                "traffic.workload is missing: traffic.size_scale is of use to random flows alone",
            ),
            (
                "size = '1KB'\nload = 0.5\nflows = 5\nsize_scale = 0.0",
                "traffic.size_scale = 0: allowed is a factor",
            ),
            (
                "size = '1KB'\nload = 0.5\nflows = 5\nsize_scale = -1",
                "traffic.size_scale = -1: allowed is a factor",
            ),
            (
                "size = '1KB'\nload = 0.5\nflows = 5\nsize_scale = nan",
                "traffic.size_scale = NaN: allowed is a factor",
            ),
            ("size = '1KB'\nload = 0.5\nflows = 5\nsize_scale = 1e-4", "a mean of 0.1 bytes"),
            (
                "size = '1GB'\nload = 0.5\nflows = 5\nsize_scale = 1e4",
                "traffic.size_scale = 10000: allowed is a factor that leaves",
            ),
            ("trace = 'no-such-file.csv'", "traffic.trace: cannot read \"./no-such-file.csv\""),
            ("workload = 'no-such-file.csv'\nload = 0.5\nflows = 1", "traffic.workload: cannot read"),
            ("workload = 'websearch'\nload = 0.5\nflows = 1", "did you mean \"web-search\"?"),
        ];
        for (text, expected) in cases {
            assert!(message(text).contains(expected), "{text:?}: {}", message(text));
        }
    }
}
