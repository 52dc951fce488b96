//! Links, switches, hosts and the event core that moves packets through a fabric.
//!
//! The rule of this room: each node has a state of its own, and between nodes there are packets.
//! Code of a host gets a `Nic`, code of a scheme gets a view of its node, and neither is ever
//! handed the network.

mod engine;

pub use engine::identities;
pub use engine::{
    ArrivedInPhase, Blocked, CaptureOf, Captured, Cause, Choice, ClassOfLink, ClassTotals, Cooperation, Data,
    Decision, Delivery, Ending, FirstUse, FlowNow, FlowRecord, FlowRecords, FlowTrace, Frame, Given,
    GuestError, GuestHosts, GuestPacket, HEAD_BYTES, Hit, HostMachine, InputError, LOOK_AHEAD_FROM,
    LinkDrops, LinkNow, LinkSample, LinkTotals, Loss, MOST_ROWS, MemoryError, MemorySample, MemoryUse,
    Observation, PacketCounts, PacketNow, PathTotal, PauseOfLink, PauseTotals, PausedLink, Place, Progress,
    RateChange, Results, Retransmissions, SHARE_FROM, Samples, SchemeCounter, Sharing, Simulation,
    SimulationInput, SinglePartition, Slowed, Snapshot, Spent, Spool, Status, SwitchMemoryUse, ThreadHook,
    WindowSample, base_rtt, check_memories, check_parameters, cost_of_a_window,
};
