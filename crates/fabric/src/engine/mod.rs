//! The event core: one event a packet-hop.

mod admission;
mod ahead;
mod arrivals;
mod capture;
mod connections;
mod copies;
mod deadlock;
mod deliveries;
mod departures;
mod event_set;
mod faults;
mod fetch;
mod follow;
mod guests;
mod held;
mod host;
pub mod identities;
mod link;
mod losses;
mod machine;
mod memory;
mod messages;
mod network;
mod observer;
mod oracle;
mod partition;
mod paths;
mod pause;
mod pool;
mod ports;
mod records;
mod results;
mod run;
mod sampler;
mod scheduled_port;
mod scheduler;
mod simulation;
mod slowed;
mod software;
mod special;
mod spent;
mod switch;
mod tables;
mod tracer;
mod windows;

pub use arrivals::ArrivedInPhase;
pub use capture::{CaptureOf, Captured, HEAD_BYTES};
pub use deadlock::PausedLink;
pub use deliveries::Delivery;
pub use follow::{Choice, Decision};
pub use guests::{Data, Frame, GuestError, GuestHosts, GuestPacket};
pub use losses::{Cause, FirstUse, Hit, Loss, Place};
pub use machine::HostMachine;
pub use network::{LinkDrops, PacketCounts};
pub use observer::Observation;
pub use paths::PathTotal;
pub use pause::{Blocked, MemoryError, check_memories};
pub use records::{FlowRecords, Spool};
pub use results::{
    ClassOfLink, Cooperation, FlowRecord, LinkTotals, MemoryUse, PauseOfLink, RateChange, Results,
    Retransmissions, SchemeCounter, Sharing, SwitchMemoryUse,
};
pub use run::{FlowNow, LinkNow, PacketNow, Snapshot, cost_of_a_window};
pub use sampler::{LinkSample, MOST_ROWS, MemorySample, Samples};
pub use scheduled_port::{ClassTotals, PauseTotals};
pub use simulation::{
    Ending, InputError, LOOK_AHEAD_FROM, Progress, SHARE_FROM, Simulation, SimulationInput, SinglePartition,
    Status, ThreadHook, base_rtt, check_parameters,
};
pub use slowed::{Given, Slowed};
pub use spent::Spent;
pub use tracer::FlowTrace;
pub use windows::WindowSample;
