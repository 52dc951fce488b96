//! Flow sizes, arrivals, pairs, incast and traces: which bytes are to go where, and when.
//!
//! A [`TrafficSpec`] is the `[traffic]` table of a spec. [`TrafficSpec::generate`] turns it, a seed
//! and the [`FabricShape`] into [`Traffic`], a sorted list of flows. The result depends on these
//! three and on nothing else: every scheme sees the same flows at the same times.
//!
//! Arrival times, sizes, pairs and classes are drawn from separate random streams, one draw a flow,
//! so that another choice of pairs leaves times and sizes as they were.
//!
//! Invariant: flows follow from the traffic's spec, the seed and the fabric's shape; schemes,
//! transports and faults do not move them.

mod application;
mod carriers;
mod catalog;
mod classes;
mod collective;
mod deadlines;
mod distribution;
mod error;
mod flow;
mod generate;
mod hosts;
mod incast;
mod load;
mod long_lived;
mod pairs;
mod program;
mod shape;
mod spec;
mod trace;

pub use application::{Application, ApplicationSpec, PauseDistribution, Write, Writes};
pub use carriers::{Carrier, ClassTransports};
pub use catalog::{WorkloadInfo, workloads};
pub use classes::ClassSpec;
pub use collective::{
    AllGatherSpec, AllReduceAlgorithm, AllReduceSpec, AllToAllSpec, Collective, CollectiveKind,
    CollectiveSpec, Dependencies, GatherAlgorithm, GraphNode, JobSpec, MoeSpec, PipelineSchedule,
    PipelineSpec, Placement, Point, ProcessorQueue, ReduceScatterSpec, Role, Schedule, ScheduleSpec,
    StartUnit, Turn, schedule_files,
};
pub use deadlines::DeadlineSpec;
pub use distribution::Distribution;
pub use error::TrafficError;
pub use flow::{Flow, Traffic, WorkloadUsed};
pub use hosts::{HostRange, hosts_in};
pub use incast::IncastSpec;
pub use load::{LoadOf, OfferedLoad};
pub use long_lived::LongLivedSpec;
pub use pairs::Pairs;
pub use program::ProgramSpec;
pub use shape::FabricShape;
pub use spec::TrafficSpec;
pub use trace::write_trace;
pub use weft_packet::ClassName;

/// The largest flow, in bytes: 1 TB, so that segments are counted in 32 bits.
pub const MAX_FLOW_BYTES: u64 = 1_000_000_000_000;

/// The most flows that one run may have: a hundred million, 2.4 GB of memory.
pub const MAX_FLOWS: u64 = 100_000_000;

#[cfg(test)]
mod fixtures;
