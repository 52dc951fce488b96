//! Collectives: flows that wait for other flows, and for computations at their hosts.
//!
//! A collective is written once, as a graph of flows and computations ([`draft`]), by its algorithm
//! or by a file; from the graph follow the flows of the traffic, with their earliest starts, and
//! what each waits for ([`order`]). What a flow waits for, its source knows: a flow that ended
//! there, or one that began there, or a computation there.

mod all_to_all;
mod binomial;
mod dependencies;
mod draft;
mod exchange;
mod file;
mod halving;
mod job;
mod known;
mod make;
mod moe;
mod order;
mod pipeline;
mod popularity;
mod processor_queue;
mod ranks;
mod ring;
mod spec;
mod step;
mod tree;

use std::sync::Arc;

use weft_packet::HostId;
use weft_units::Time;

#[cfg(test)]
mod tests;

pub use dependencies::Dependencies;
pub use draft::{Point, Role};
pub(crate) use exchange::Builder;
pub use file::{ScheduleSpec, StartUnit, schedule_files};
pub use job::JobSpec;
pub(crate) use make::World;
pub use processor_queue::{ProcessorQueue, Turn};
pub use spec::{
    AllGatherSpec, AllReduceAlgorithm, AllReduceSpec, AllToAllSpec, CollectiveSpec, GatherAlgorithm, MoeSpec,
    PipelineSchedule, PipelineSpec, Placement, ReduceScatterSpec,
};

/// Where something of a graph is in the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphNode {
    /// The flow with this number.
    Flow(u32),
    /// The computation with this number among [`Dependencies`].
    Computation(u32),
    /// It waits for nothing that is not known beforehand: it is there at this time.
    At(Time),
}

/// Kind of a [`Collective`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectiveKind {
    /// Every rank gets the sum of what all have.
    AllReduce,
    /// Every rank gets what all have.
    AllGather,
    /// Every rank gets a part of the sum.
    ReduceScatter,
    /// Every rank has something for each other one.
    AllToAll,
    /// Every rank gets what one of them has.
    Broadcast,
    /// One rank gets the sum of what all have.
    Reduce,
    /// No rank goes on before all have come.
    Barrier,
    /// Tokens go to experts and come back.
    Moe,
    /// Microbatches pass through stages and back.
    Pipeline,
    /// A step of a training job.
    Step,
    /// Schedule from a file.
    File,
}

impl CollectiveKind {
    /// As specs and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Barrier => "barrier",
            Self::Moe => "moe",
            Self::Pipeline => "pipeline",
            Self::Step => "step",
            Self::File => "file",
        }
    }
}

/// One collective of the traffic, or one step of a job, once.
#[derive(Debug, Clone, PartialEq)]
pub struct Collective {
    /// The table of the spec that asks for it, as in `collective[0]`, or what its table calls it.
    pub label: String,
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// Algorithm of the collective; empty if it has no choice of one.
    pub algorithm: &'static str,
    /// How often the same came before.
    pub iteration: u32,
    /// The step of a job that it is part of, by number.
    pub step: Option<u32>,
    /// Payload at every rank, as NCCL counts it, in bytes; none where that means nothing.
    pub size_bytes: Option<u64>,
    /// Bytes on the bus of every rank by the byte of `size_bytes`, by the convention of NCCL's
    /// tests; none where there is none.
    pub bus_factor: Option<f64>,
    /// The hosts, by rank.
    pub hosts: Arc<[HostId]>,
    /// By rank: when it may begin.
    pub entries: Vec<GraphNode>,
    /// By rank: when it has all that it is to have, and all that it sent is acknowledged.
    pub exits: Vec<GraphNode>,
}

/// The collectives of some traffic, and what its flows wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Dependencies of the flows.
    pub dependencies: Dependencies,
    /// The collectives: a step of a job comes before what is in it.
    pub collectives: Vec<Collective>,
    /// By flow: the collective that it is of.
    pub roles: Vec<Role>,
}
