//! Structure of a fabric, before anything moves: the `[fabric]` table of a spec, the nodes, cables,
//! queues and faults that it describes, the routes through them, and the completion times that no
//! run can beat.
//!
//! Nothing here knows of packets in flight, schemes or transports. The engine reads a [`Topology`]
//! and never changes it.
//!
//! Invariant: a fabric does not change during a run.

mod fat_tree;
mod graph;
mod ideal;
mod leaf_spine;
mod partitioning;
mod plan;
mod pooled;
mod rail;
mod routes;
pub mod spec;
mod topology;

pub use graph::GraphFile;
pub use ideal::{FlowPackets, Ideal};
pub use partitioning::{NotPartitionable, PartitionNodes, PartitionRequest, Partitioning};
pub use pooled::{NotPooled, POOL, pooled};
pub use routes::{LinkKnowledge, RouteEntry, Routes};
pub use spec::{Fabric, FabricError, FabricInfo, FabricSpec, fabrics};
pub use topology::{
    ClassSorting, ClassSpec, ClassesSpec, Condition, FaultEvent, FaultSpan, Limit, LinkSpec, Marking, NodeId,
    PauseRules, QueueSpec, Scheduling, SharedBufferRules, SoftwareSwitch, Threshold, Tier, Topology, Xoff,
};
