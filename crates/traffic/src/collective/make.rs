//! From the tables of a spec to a graph.

use std::sync::Arc;

use weft_packet::{Class, HostId};
use weft_units::{Bytes, Rate, Time};

use super::draft::{Draft, Op, Point};
use super::exchange::{Builder, Carriage, Name};
use super::known::{AllReduce, Half};
use super::moe::Experts;
use super::pipeline::Pipeline;
use super::popularity::Popularity;
use super::ranks::{Asked, ranks};
use super::spec::{AllReduceSpec, CollectiveSpec, Common, GatherAlgorithm, MoeSpec, PipelineSpec};
use super::{CollectiveKind, Schedule};
use crate::carriers::Carriers;
use crate::spec::check_size;
use crate::{ClassName, ClassSpec, FabricShape, Flow, MAX_FLOWS, TrafficError};

/// Pieces of a message at most.
const MAX_CHUNKS: u32 = 1_024;

/// Choices of an expert for a token at most: some seconds.
const MAX_DRAWS: f64 = 1e8;

/// Parameters of an all-reduce in the spec.
const fn all_reduce(spec: &AllReduceSpec) -> AllReduce {
    AllReduce {
        bytes: spec.size.as_u64(),
        algorithm: spec.algorithm,
        chunks: spec.chunks as usize,
        reduction_rate: spec.reduction_rate,
    }
}

/// Nothing, or at least 1.
pub(crate) fn not_none(parallel: Option<u32>, key: &str) -> Result<(), TrafficError> {
    if parallel == Some(0) { Err(TrafficError::bad_value(key, 0, "at least 1")) } else { Ok(()) }
}

/// A collective of a spec that has passed its checks.
struct Table<'s> {
    spec: &'s CollectiveSpec,
    common: Common<'s>,
    hosts: Arc<[HostId]>,
    label: String,
    carriage: Carriage,
    index: usize,
}

/// Facts of a fabric and a run that collectives need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World<'w> {
    pub shape: &'w FabricShape,
    pub seed: u64,
}

impl<'b, 'c> Builder<'b, 'c> {
    /// Nothing is put in so far.
    pub fn new(classes: &'b ClassSpec, carriers: &'b mut Carriers<'c>) -> Self {
        Self { draft: Draft::default(), collectives: Vec::new(), classes, carriers }
    }

    /// All flows, those of others among them, and what they wait for.
    pub fn finish(self, others: Vec<Flow>, file: &str) -> Result<(Vec<Flow>, Schedule), TrafficError> {
        let ordered = self.draft.ordered(others, file)?;
        let places = &ordered.places;
        let schedule = Schedule {
            dependencies: ordered.dependencies,
            collectives: self.collectives.into_iter().map(|draft| draft.placed(places)).collect(),
            roles: ordered.roles,
        };
        Ok((ordered.flows, schedule))
    }

    /// Class and transport of the flows of a table.
    pub fn carriage(
        &mut self,
        class: Option<ClassName>,
        transport: Option<&str>,
        key: &impl Fn(&str) -> String,
    ) -> Result<Carriage, TrafficError> {
        let number = |label: &str| {
            let bad = |allowed| TrafficError::bad_value(key("transport"), format!("{label:?}"), allowed);
            self.carriers.number(label).map_err(bad)
        };
        let transport = transport.map(number).transpose()?;
        Ok(Carriage { class: class.map(Class::from), transport })
    }

    /// Puts in table number `index`.
    pub fn collective(
        &mut self,
        index: usize,
        spec: &CollectiveSpec,
        world: World<'_>,
    ) -> Result<(), TrafficError> {
        let key = |name: &str| format!("traffic.collective[{index}].{name}");
        let common = spec.common();
        if common.iterations == 0 {
            return Err(TrafficError::bad_value(key("iterations"), 0, "at least 1"));
        }
        let asked = Asked { hosts: common.hosts, count: common.count, placement: common.placement };
        let all = world.shape.all_hosts();
        let hosts = ranks(asked, &all, world.shape, &key, (world.seed, index as u64))?;
        let carriage = self.carriage(common.class, common.transport, &key)?;
        let label = common.label.map_or_else(|| format!("collective[{index}]"), str::to_owned);
        let table = Table { spec, common, hosts, label, carriage, index };
        table.check(&key)?;
        let flows = table.flows() * f64::from(common.iterations);
        if flows > MAX_FLOWS as f64 {
            return Err(TrafficError::too_many_flows(key("iterations"), flows));
        }
        let begin = Time::ZERO.saturating_add(common.start);
        let mut entries: Vec<Op> = table.hosts.iter().map(|&host| self.draft.at(host, begin)).collect();
        for iteration in 0..common.iterations {
            let compute = |(&host, &entry): (&HostId, &Op)| {
                self.draft.join(host, common.compute, [(entry, Point::Done)])
            };
            let ready: Vec<Op> = table.hosts.iter().zip(&entries).map(compute).collect();
            entries = table.once(self, iteration, &ready, world.seed);
        }
        Ok(())
    }
}

impl Table<'_> {
    fn check(&self, key: &impl Fn(&str) -> String) -> Result<(), TrafficError> {
        let ranks = self.hosts.len() as u64;
        let at_least = |size: Bytes, least: u64, of: &str| {
            let is_fine = (least..=crate::MAX_FLOW_BYTES).contains(&size.as_u64());
            let allowed = || format!("{least} B, {of}, to 1 TB");
            if is_fine { Ok(()) } else { Err(TrafficError::bad_value(key("size"), size, allowed())) }
        };
        let by_chunk = |size: Bytes, chunks: u32, parts: u64| {
            if !(1..=MAX_CHUNKS).contains(&chunks) {
                return Err(TrafficError::bad_value(key("chunks"), chunks, format!("1 to {MAX_CHUNKS}")));
            }
            at_least(size, parts * u64::from(chunks), "a byte for every message")
        };
        let fits = |doubles: bool| {
            if !doubles || ranks.is_power_of_two() {
                return Ok(());
            }
            let allowed = "a number of ranks that is a power of two for \"halving-doubling\"";
            Err(TrafficError::bad_value(key("count"), ranks, allowed))
        };
        let not_zero = |rate: Option<Rate>| match rate {
            Some(rate) if rate.is_zero() => {
                Err(TrafficError::bad_value(key("reduction_rate"), rate, "more than 0"))
            }
            _ => Ok(()),
        };
        match self.spec {
            CollectiveSpec::AllReduce(spec) => {
                not_zero(spec.reduction_rate)?;
                let what = all_reduce(spec);
                if !what.fits(self.hosts.len()) {
                    fits(true)?;
                }
                by_chunk(
                    spec.size,
                    spec.chunks,
                    what.least_bytes(self.hosts.len()) / u64::from(spec.chunks.max(1)),
                )
            }
            CollectiveSpec::AllGather(spec) => {
                fits(spec.algorithm == GatherAlgorithm::HalvingDoubling)?;
                by_chunk(spec.size, spec.chunks, ranks)
            }
            CollectiveSpec::ReduceScatter(spec) => {
                not_zero(spec.reduction_rate)?;
                fits(spec.algorithm == GatherAlgorithm::HalvingDoubling)?;
                by_chunk(spec.size, spec.chunks, ranks)
            }
            CollectiveSpec::AllToAll(spec) => {
                not_none(spec.parallel, &key("parallel"))?;
                at_least(spec.size, ranks, "a byte for every rank")
            }
            CollectiveSpec::Moe(spec) => self.check_experts(spec, key),
            CollectiveSpec::Pipeline(spec) => self.check_stages(spec, key),
        }
    }

    fn check_experts(&self, spec: &MoeSpec, key: &impl Fn(&str) -> String) -> Result<(), TrafficError> {
        not_none(spec.parallel, &key("parallel"))?;
        check_size(key("size"), spec.size)?;
        check_size(key("token"), spec.token)?;
        let bad = |name: &str, found: String, allowed: String| {
            Err(TrafficError::bad_value(key(name), found, allowed))
        };
        if spec.token > spec.size {
            return bad("token", spec.token.to_string(), format!("at most size, which is {}", spec.size));
        }
        let experts = self.experts(spec);
        experts.popularity.check(key)?;
        let count = experts.popularity.experts;
        if !(1..=count).contains(&experts.top_k) {
            let allowed = format!("1 to {count}, the number of experts");
            return bad("top_k", spec.top_k.to_string(), allowed);
        }
        let draws = experts.tokens() as f64 * self.hosts.len() as f64 * experts.top_k as f64;
        if draws * f64::from(self.common.iterations) > MAX_DRAWS {
            let allowed = format!("a size, or tokens of a size, with at most {MAX_DRAWS} choices of experts");
            return bad("size", format!("{}, about {draws:.0} choices", spec.size), allowed);
        }
        let most = experts.tokens() as f64 * experts.top_k as f64 * experts.token_bytes as f64;
        if most > crate::MAX_FLOW_BYTES as f64 {
            return bad("size", spec.size.to_string(), "what makes no flow of more than 1 TB".to_owned());
        }
        Ok(())
    }

    fn check_stages(&self, spec: &PipelineSpec, key: &impl Fn(&str) -> String) -> Result<(), TrafficError> {
        check_size(key("size"), spec.size)?;
        let (ranks, stages) = (self.hosts.len(), self.stages(spec));
        if !(2..=ranks).contains(&stages) || !ranks.is_multiple_of(stages) {
            let allowed = format!("a number from 2 on that divides {ranks}, the number of ranks");
            return Err(TrafficError::bad_value(key("stages"), stages, allowed));
        }
        if spec.microbatches == 0 {
            return Err(TrafficError::bad_value(key("microbatches"), 0, "at least 1"));
        }
        Ok(())
    }

    /// How many flows there are in one iteration, at most.
    fn flows(&self) -> f64 {
        let ranks = self.hosts.len() as f64;
        match self.spec {
            CollectiveSpec::AllReduce(spec) => 2.0 * ranks * ranks * f64::from(spec.chunks),
            CollectiveSpec::AllGather(spec) => ranks * ranks * f64::from(spec.chunks),
            CollectiveSpec::ReduceScatter(spec) => ranks * ranks * f64::from(spec.chunks),
            CollectiveSpec::AllToAll(_) | CollectiveSpec::Moe(_) => 2.0 * ranks * ranks,
            // A flow and two computations for each microbatch and rank, there and back.
            CollectiveSpec::Pipeline(spec) => 4.0 * ranks * f64::from(spec.microbatches),
        }
    }

    fn stages(&self, spec: &PipelineSpec) -> usize {
        spec.stages.map_or(self.hosts.len(), |stages| stages as usize)
    }

    fn experts(&self, spec: &MoeSpec) -> Experts {
        Experts {
            bytes: spec.size.as_u64(),
            token_bytes: spec.token.as_u64(),
            popularity: Popularity {
                experts: spec.experts.map_or(self.hosts.len(), |experts| experts as usize),
                skew: spec.skew,
            },
            top_k: spec.top_k as usize,
            compute: spec.expert_compute,
            parallel: spec.parallel.map(|parallel| parallel as usize),
        }
    }

    /// Puts in one iteration, which begins with these. Returns its end, by rank.
    fn once(&self, builder: &mut Builder<'_, '_>, iteration: u32, entries: &[Op], seed: u64) -> Vec<Op> {
        let name =
            |kind, algorithm| Name { label: self.label.clone(), kind, algorithm, iteration, step: None };
        let ranks = (&self.hosts, entries);
        let carriage = self.carriage;
        match self.spec {
            CollectiveSpec::AllReduce(spec) => {
                let what = all_reduce(spec);
                builder.all_reduce(name(CollectiveKind::AllReduce, what.name()), what, carriage, ranks)
            }
            CollectiveSpec::AllGather(spec) => {
                let (bytes, chunks) = (spec.size.as_u64(), spec.chunks as usize);
                let half =
                    Half { bytes, chunks, algorithm: spec.algorithm, adds: false, reduction_rate: None };
                let name = name(CollectiveKind::AllGather, half.name());
                builder.half(name, half, carriage, ranks)
            }
            CollectiveSpec::ReduceScatter(spec) => {
                let (bytes, chunks) = (spec.size.as_u64(), spec.chunks as usize);
                let reduction_rate = spec.reduction_rate;
                let half = Half { bytes, chunks, algorithm: spec.algorithm, adds: true, reduction_rate };
                let name = name(CollectiveKind::ReduceScatter, half.name());
                builder.half(name, half, carriage, ranks)
            }
            CollectiveSpec::AllToAll(spec) => {
                let parallel = spec.parallel.map(|parallel| parallel as usize);
                let name = name(CollectiveKind::AllToAll, "");
                builder.all_to_all(name, spec.size.as_u64(), parallel, carriage, ranks)
            }
            CollectiveSpec::Moe(spec) => {
                let experts = self.experts(spec);
                let entity = (self.index as u64) << 32 | u64::from(iteration);
                let (name, bytes) = (name(CollectiveKind::Moe, ""), Some(experts.bytes));
                builder.exchange(name, (bytes, None), carriage, ranks, |exchange| {
                    experts.put(exchange, seed, entity);
                })
            }
            CollectiveSpec::Pipeline(spec) => {
                let pipeline = Pipeline {
                    bytes: spec.size.as_u64(),
                    stages: self.stages(spec),
                    microbatches: spec.microbatches as usize,
                    forward: spec.forward,
                    backward: spec.backward,
                    schedule: spec.schedule,
                };
                let name = name(CollectiveKind::Pipeline, spec.schedule.name());
                let bytes = Some(pipeline.bytes);
                builder.exchange(name, (bytes, None), carriage, ranks, |exchange| pipeline.put(exchange))
            }
        }
    }
}
