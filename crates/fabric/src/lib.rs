//! Links, switches, hosts and the event core that moves packets through a fabric.

mod engine;

pub use engine::{
    Delivery, Ending, FlowRecord, FlowTrace, InputError, LinkDrops, LinkSample, LinkTotals, MOST_ROWS,
    MemoryUse, Observation, PacketCounts, PathTotal, Progress, Results, Retransmissions, Samples,
    SchemeCounter, Simulation, SimulationInput, Spent, Status,
};
