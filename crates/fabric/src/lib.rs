//! Links, switches, hosts and the event core that moves packets through a fabric.
//!
//! Invariant: each node has its own state, and nodes interact by packets alone.
//! Code of a host gets a `HostPort`, code of a scheme gets a view of its node, and neither gets the
//! network.

mod engine;

pub use engine::identities;
pub use engine::{
    ArrivedInPhase, Blocked, CaptureOf, Captured, Choice, ClassOfLink, ClassTotals, Cooperation, CwndSample,
    Data, Decision, DegradedLink, Delivery, Drop, DropCause, DropSite, Ending, ExternalHostError,
    ExternalHosts, ExternalPacket, FctBreakdown, FirstUse, FlowNow, FlowRecord, FlowRecords, FlowTrace,
    Frame, HEAD_BYTES, Hit, HostCpuSpec, InputError, LinkDrops, LinkNow, LinkSample, LinkTotals, MOST_ROWS,
    MemoryError, MemoryUse, Observation, OfferedBytes, PREFETCH_FROM, PacketCounts, PacketNow, PathTotal,
    PauseOfLink, PauseTotals, PausedLink, Progress, RateChange, Results, Retransmissions, SHARE_FROM,
    Samples, SchemeCounter, SharedBufferSample, SharedBufferUse, Sharing, Simulation, SimulationInput,
    SinglePartition, Snapshot, Spool, Status, ThreadHook, base_rtt, check_memories, check_parameters,
    cost_of_a_window,
};
