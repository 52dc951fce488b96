//! Fabrics, links, switches, hosts, failures, and the event core that moves packets through them.

pub mod topology;

pub use topology::{
    Condition, FaultEvent, Limit, LinkSpec, Marking, NodeId, QueueSpec, RouteEntry, Routes, Threshold, Tier, Topology,
};
