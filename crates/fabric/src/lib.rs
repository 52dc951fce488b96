//! Fabrics, links, switches, hosts, failures, and the event core that moves packets through them.

mod engine;
pub mod spec;
pub mod topology;

pub use engine::{
    Delivery, Ending, FlowRecord, FlowTrace, LinkDrops, LinkSample, LinkTotals, MOST_ROWS, MemoryUse,
    Observation, PacketCounts, PathTotal, Progress, Results, Retransmissions, Samples, SchemeCounter,
    Simulation, SimulationInput, Spent, Status,
};
pub use spec::{Fabric, FabricError, FabricInfo, FabricSpec, fabrics};
pub use topology::{
    Condition, FaultEvent, FlowPackets, Ideal, Limit, LinkKnowledge, LinkSpec, Marking, NodeId, QueueSpec,
    RouteEntry, Routes, Threshold, Tier, Topology,
};
