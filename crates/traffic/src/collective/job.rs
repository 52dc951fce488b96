//! The tables `[[traffic.job]]` of a spec: training steps.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::HostId;
use weft_units::{Bytes, Rate, Span, Time};

use super::exchange::{Builder, Carriage};
use super::known::AllReduce;
use super::make::World;
use super::popularity::Popularity;
use super::ranks::{Asked, ranks};
use super::spec::{AllReduceAlgorithm, PipelineSchedule, Placement};
use super::step::Step;
use crate::{ClassName, HostRange, MAX_FLOW_BYTES, MAX_FLOWS, TrafficError};

const fn one() -> u32 {
    1
}

/// A training job: steps, one after the other, of ranks that are parallel by data, tensors, stages
/// and experts.
///
/// Rank numbers count tensors first, then data, then stages. In a step a rank computes its
/// microbatches forward and backward; in between its tensor group adds up (`tensor_size`), its
/// experts exchange tokens (`expert_size`), and stages send each other activations and their
/// gradients. With the last microbatch the data-parallel ranks add up gradients, bucket by bucket,
/// while they go on computing. The step ends at a rank when it has all of it, and has computed the
/// `optimizer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Label of the job in results. Default: by its place, as in `job[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The hosts that take part, as in `[0, "8-15"]`. Default: all that no job before has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<HostRange>>,
    /// How many of them take part, at least 2: the first ones, or as many as are drawn. Default:
    /// all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u16>,
    /// Which host becomes which rank. Default `"in-order"`.
    #[serde(default)]
    pub placement: Placement,
    /// When the first step begins. Default 0.
    #[serde(default)]
    pub start: Span,
    /// How many steps there are, at least 1. Default 1.
    #[serde(default = "one")]
    pub steps: u32,
    /// Ranks that share each layer. Default 1.
    #[serde(default = "one")]
    pub tensor: u32,
    /// Stages that layers are cut into. `tensor` times `pipeline` divides the number of ranks; what
    /// remains is parallel by data. Default 1.
    #[serde(default = "one")]
    pub pipeline: u32,
    /// Microbatches of a step, at least 1. Default 1.
    #[serde(default = "one")]
    pub microbatches: u32,
    /// In what order a stage computes them. Default `"1f1b"`.
    #[serde(default)]
    pub schedule: PipelineSchedule,
    /// Compute time of a rank for a microbatch on its way forward. Default 0.
    #[serde(default)]
    pub forward: Span,
    /// And on its way back. Default 0.
    #[serde(default)]
    pub backward: Span,
    /// Compute time of a rank at the end of a step. Default 0.
    #[serde(default)]
    pub optimizer: Span,
    /// Bytes that a rank sends to the next stage for a microbatch, and gets back: needed with a
    /// `pipeline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Bytes>,
    /// Payload at every rank that a tensor group adds up for a microbatch, forward and backward:
    /// needed with `tensor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_size: Option<Bytes>,
    /// Payload at every rank that goes to experts at the other data-parallel ranks for a
    /// microbatch, and comes back; the same backward. Default: there are no experts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_size: Option<Bytes>,
    /// How many experts a layer has, 1 to 65536; expert e is at data-parallel rank e modulo the
    /// number of these. Default: one a rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<u32>,
    /// How uneven experts are: the n-th most popular one gets a share of `expert_size` in
    /// proportion to n to the power of minus this (Zipf), 0 to 10. Which is the n-th is drawn anew
    /// for each stage and microbatch. Default 0, even. Source: that of a collective of kind `moe`,
    /// without its tokens: shares are exact.
    #[serde(default)]
    pub skew: f64,
    /// Gradients of every rank that data-parallel ranks add up in a step: needed if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient: Option<Bytes>,
    /// Buckets of gradients, each added up as soon as that part of the last microbatch is computed,
    /// one after the other. 1 to 1024, default 1.
    #[serde(default = "one")]
    pub buckets: u32,
    /// How all-reduces go. Default `"ring"`.
    #[serde(default)]
    pub algorithm: AllReduceAlgorithm,
    /// Pieces that each message of an all-reduce is cut into. 1 to 1024, default 1.
    #[serde(default = "one")]
    pub chunks: u32,
    /// How much payload a host adds up in a second. Default: it takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction_rate: Option<Rate>,
    /// The class of the flows. Default: by size, if `traffic.classes.short_below` is given, else
    /// `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// The label of the transport that carries the flows. Default: as `traffic.classes.transport`
    /// says for their class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// A job that has passed its checks.
pub(crate) struct Job<'s> {
    pub spec: &'s JobSpec,
    pub label: String,
    pub hosts: Arc<[HostId]>,
    pub carriage: Carriage,
    /// Ranks that are parallel by data.
    pub data: usize,
    /// How popular experts are; none if all ranks are alike.
    pub popularity: Option<Popularity>,
    /// Position among jobs, and the seed of the run: experts are drawn by them.
    pub index: usize,
    pub seed: u64,
}

impl Builder<'_, '_> {
    /// Puts in job number `index`. `free` are the hosts that no job has; those that it takes are so
    /// no longer.
    pub fn job(
        &mut self,
        index: usize,
        spec: &JobSpec,
        free: &mut Vec<u16>,
        world: World<'_>,
    ) -> Result<(), TrafficError> {
        let key = |name: &str| format!("traffic.job[{index}].{name}");
        let asked = Asked { hosts: spec.hosts.as_deref(), count: spec.count, placement: spec.placement };
        let hosts = ranks(asked, free, world.shape, &key, (world.seed, 2 << 32 | index as u64))?;
        free.retain(|&host| !hosts.contains(&HostId(host)));
        let data = spec.data(hosts.len(), &key)?;
        spec.check(data, &key)?;
        let flows = spec.flows(hosts.len(), data);
        if flows > MAX_FLOWS as f64 {
            return Err(TrafficError::too_many_flows(key("steps"), flows));
        }
        let carriage = self.carriage(spec.class, spec.transport.as_deref(), &key)?;
        let label = spec.label.clone().unwrap_or_else(|| format!("job[{index}]"));
        let popularity = Some(spec.popularity(data)).filter(|popularity| !popularity.is_even(data));
        let job = Job { spec, label, hosts, carriage, data, popularity, index, seed: world.seed };
        let begin = Time::ZERO.saturating_add(spec.start);
        let mut entries = job.hosts.iter().map(|&host| self.draft.at(host, begin)).collect();
        for step in 0..spec.steps {
            entries = Step::new(&job, step).put(self, entries);
        }
        Ok(())
    }
}

impl JobSpec {
    /// How all-reduces of so many bytes go.
    pub(crate) const fn all_reduce(&self, bytes: u64) -> AllReduce {
        AllReduce {
            bytes,
            algorithm: self.algorithm,
            chunks: self.chunks as usize,
            reduction_rate: self.reduction_rate,
        }
    }

    /// How popular experts are, of which each of so many ranks has one by default.
    fn popularity(&self, data: usize) -> Popularity {
        Popularity { experts: self.experts.map_or(data, |experts| experts as usize), skew: self.skew }
    }

    /// How many of so many ranks are parallel by data.
    fn data(&self, ranks: usize, key: &impl Fn(&str) -> String) -> Result<usize, TrafficError> {
        for (name, value) in [("tensor", self.tensor), ("pipeline", self.pipeline)] {
            if value == 0 {
                return Err(TrafficError::bad_value(key(name), 0, "at least 1"));
            }
        }
        let apart = self.tensor as usize * self.pipeline as usize;
        if apart <= ranks && ranks.is_multiple_of(apart) {
            return Ok(ranks / apart);
        }
        let name = if self.pipeline > 1 { "pipeline" } else { "tensor" };
        let found = format!(
            "{}, and tensor times pipeline is {apart}",
            if name == "tensor" { self.tensor } else { self.pipeline }
        );
        Err(TrafficError::bad_value(key(name), found, format!("what divides {ranks}, the number of ranks")))
    }

    fn check(&self, data: usize, key: &impl Fn(&str) -> String) -> Result<(), TrafficError> {
        for (name, value, most) in [
            ("steps", self.steps, u32::MAX),
            ("microbatches", self.microbatches, u32::MAX),
            ("buckets", self.buckets, 1_024),
            ("chunks", self.chunks, 1_024),
        ] {
            if !(1..=most).contains(&value) {
                let allowed = if most == u32::MAX { "at least 1".to_owned() } else { format!("1 to {most}") };
                return Err(TrafficError::bad_value(key(name), value, allowed));
            }
        }
        if let Some(rate) = self.reduction_rate.filter(|rate| rate.is_zero()) {
            return Err(TrafficError::bad_value(key("reduction_rate"), rate, "more than 0"));
        }
        let all_reduce = self.all_reduce(0);
        let tensor = self.tensor as usize;
        let buckets = u64::from(self.buckets);
        let sizes = [
            ("activation", self.activation, self.pipeline > 1, 1, "a pipeline"),
            ("tensor_size", self.tensor_size, tensor > 1, all_reduce.least_bytes(tensor), "tensor groups"),
            (
                "gradient",
                self.gradient,
                data > 1,
                buckets * all_reduce.least_bytes(data),
                "ranks that are parallel by data",
            ),
            ("expert_size", self.expert_size, data > 1, data as u64, "ranks that are parallel by data"),
        ];
        for (name, size, is_needed, least, by) in sizes {
            match size {
                None if is_needed && name != "expert_size" => {
                    return Err(TrafficError::missing(key(name), format!("it is needed with {by}")));
                }
                Some(size) if !is_needed => {
                    let allowed = format!("nothing: there is no {}", by.trim_start_matches("a "));
                    return Err(TrafficError::bad_value(key(name), size, allowed));
                }
                Some(size) if !(least..=MAX_FLOW_BYTES).contains(&size.as_u64()) => {
                    let allowed = format!("{least} B, a byte for every message, to 1 TB");
                    return Err(TrafficError::bad_value(key(name), size, allowed));
                }
                _ => {}
            }
        }
        self.check_experts(data, key)?;
        for ranks in [tensor, data].into_iter().filter(|ranks| *ranks > 1) {
            if !all_reduce.fits(ranks) {
                let allowed = format!(
                    "\"ring\", \"tree\" or \"double-tree\" for {ranks} ranks, which are no power of two"
                );
                return Err(TrafficError::bad_value(key("algorithm"), "\"halving-doubling\"", allowed));
            }
        }
        Ok(())
    }

    fn check_experts(&self, data: usize, key: &impl Fn(&str) -> String) -> Result<(), TrafficError> {
        self.popularity(data).check(key)?;
        if self.expert_size.is_some() {
            return Ok(());
        }
        let nothing = "nothing: there are no experts without expert_size";
        if let Some(experts) = self.experts {
            return Err(TrafficError::bad_value(key("experts"), experts, nothing));
        }
        if self.skew > 0.0 {
            return Err(TrafficError::bad_value(key("skew"), self.skew, nothing));
        }
        Ok(())
    }

    /// How many flows there are, at most.
    fn flows(&self, ranks: usize, data: usize) -> f64 {
        let microbatches = f64::from(self.microbatches);
        let chunks = f64::from(self.chunks);
        let by_microbatch = 4.0 + 4.0 * f64::from(self.tensor) * chunks + 4.0 * data as f64;
        let by_bucket = 2.0 * data as f64 * chunks;
        f64::from(self.steps)
            * ranks as f64
            * (microbatches * by_microbatch + f64::from(self.buckets) * by_bucket)
    }
}
