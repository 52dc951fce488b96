//! Model of a spec, as types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_balance::SchemeSpec;
use weft_topology::FabricSpec;
use weft_traffic::{Carrier, TrafficSpec};
use weft_transport::TransportsSpec;
use weft_units::{Bytes, Mistake, Span};

use super::extent::Extent;
use super::threads::Threads;
use crate::bins::{SizeRange, parse_bins};
use crate::linux::{HostsSpec, check_programs};

/// One run: a fabric, the traffic on it, a transport and a load balancer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The run itself: its seed and when it ends.
    #[serde(default)]
    pub run: RunSpec,
    /// Hosts, switches, cables, queues and faults.
    pub fabric: FabricSpec,
    /// Which bytes go where, and when.
    pub traffic: TrafficSpec,
    /// Kind of hosts. Default: simulated.
    #[serde(default, skip_serializing_if = "HostsSpec::is_default")]
    pub hosts: HostsSpec,
    /// Transport that carries the bytes: a table for all flows, or tables `[[transport]]` that
    /// traffic names by label.
    #[serde(default)]
    pub transport: TransportsSpec,
    /// Scheme that chooses the paths. Default: ECMP.
    #[serde(default = "ecmp")]
    pub scheme: SchemeSpec,
}

/// The run itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSpec {
    /// Everything random follows from it: 0 to 2^63 - 1.
    pub seed: u64,
    /// Simulated time that the run may take after the last flow or program has started; it does not
    /// count from time 0. Long-lived flows start, too, and flows that wait for others count as if
    /// the network took no time. Flows that are not finished when the time is over stay unfinished:
    /// they are counted, and of means and percentiles that depend on them only bounds are known.
    pub time_limit: Span,
    /// How many threads work on the run: 1 to 1,024, or `"automatic"`, which is as many as there
    /// are cores for it, where that pays. No result depends on it: it is no part of the spec's
    /// hash, and the store of runs leaves it out.
    #[serde(skip_serializing_if = "Threads::is_automatic")]
    pub threads: Threads,
    /// How often to look at all links and receivers, for the tables `samples` and `deliveries`:
    /// what each link sent and held, what each receiver got. At least 10ns. Default: never; then it
    /// costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_every: Option<Span>,
    /// Count what flows of at least this size, and those that never end, deliver over each path
    /// from rack to rack, for the table `paths`: as in `"100KB"`, or `"0B"` for all. Default:
    /// nothing is counted; then it costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths_of: Option<Bytes>,
    /// Note which links the largest flows take, for the table `traces`: so many flows, 1 to 1,000,
    /// those that never end first. Needs `sample_every`, which gives the intervals. Default: none;
    /// then it costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_flows: Option<u16>,
    /// Ranges of flow sizes to report besides small, medium and large: those of a paper, by name
    /// (`weft bins` lists them), or ranges as in `"0-100KB,100KB-1MB,1MB-"`, each from its first
    /// size, included, to its second, not included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bins: Option<String>,
    /// The warm-up: flows that start before it ends run, and are part of no average. A time as in
    /// `"5ms"`, a number of flows as in `500`, or a share of the flows as in `0.2`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Extent>,
    /// How long flows are measured after the warm-up, in the same forms: those that start later
    /// run, and are part of no average. A time counts from the end of the warm-up; if that is a
    /// number or a share, from the start of the first flow that is measured. Default: to the last
    /// flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Extent>,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            seed: 1,
            time_limit: Span::from_s(10),
            threads: Threads::Automatic,
            sample_every: None,
            paths_of: None,
            trace_flows: None,
            bins: None,
            warmup: None,
            measure: None,
        }
    }
}

fn ecmp() -> SchemeSpec {
    SchemeSpec::Ecmp(weft_balance::switch::ecmp::Params::default())
}

impl RunSpec {
    /// The ranges that `bins` asks for; none without it. A spec that was checked has no others.
    pub(crate) fn size_ranges(&self) -> Vec<SizeRange> {
        self.bins.as_deref().and_then(|bins| parse_bins(bins).ok()).unwrap_or_default()
    }
}

impl Spec {
    /// Several transports, as traffic knows them; none for one alone.
    pub(crate) fn carriers(&self) -> Vec<Carrier> {
        let (labels, classes) = (self.transport.labels(), self.transport.classes());
        labels.into_iter().zip(classes).map(|(label, class)| Carrier { label, class }).collect()
    }

    /// Refuses values that the types allow and that cannot be meant.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        self.run.check()?;
        self.transport.validate().map_err(Mistake::from)?;
        self.scheme.validate().map_err(|error| Mistake::from(error).within("scheme"))?;
        self.hosts.check(self)?;
        check_programs(self)
    }
}

/// The shortest time between two looks at all links.
const LEAST_SAMPLE: Span = Span::from_ns(10);

impl RunSpec {
    fn check(&self) -> Result<(), Mistake> {
        let refuse = |key: &str, found: String, allowed: &str| {
            Err(Mistake::at(format!("run.{key}"), format!(" is {found}: allowed is {allowed}"))
                .found(found)
                .allowed(allowed))
        };
        if self.time_limit.is_zero() {
            return refuse("time_limit", "0".to_owned(), "more than 0, as in \"10s\"");
        }
        // All links are looked at each time: below this a run does hardly anything else.
        if let Some(every) = self.sample_every.filter(|every| *every < LEAST_SAMPLE) {
            let allowed = format!("at least {LEAST_SAMPLE}, as in \"100us\"; leave it out for never");
            return refuse("sample_every", every.to_string(), &allowed);
        }
        if let Some(count) = self.trace_flows {
            if !(1..=1_000).contains(&count) {
                return refuse("trace_flows", count.to_string(), "1 to 1000; leave it out for none");
            }
            if self.sample_every.is_none() {
                let reason = "needs run.sample_every: flows are traced by its intervals, as in \"100us\"";
                return Err(Mistake::at("run.trace_flows", format!(" {reason}")));
            }
        }
        let bins = self.bins.as_deref().map_or(Ok(Vec::new()), parse_bins);
        bins.map(drop)
            .map_err(|said| Mistake::at("run.bins", said).found(self.bins.clone().unwrap_or_default()))
    }
}
