//! The event core: one event a packet-hop.

mod admission;
mod arrivals;
mod capture;
mod connections;
mod cwnd;
mod deadlock;
mod degraded_links;
mod deliveries;
mod drops;
mod event_set;
mod external_hosts;
mod faults;
mod fct_breakdown;
mod fetch;
mod follow;
mod hold;
mod hooks;
mod host;
mod host_cpu;
pub mod identities;
mod link;
mod messages;
mod network;
mod observer;
mod oracle;
mod partition;
mod paths;
mod pause;
mod pool;
mod ports;
mod prefetch;
mod records;
mod results;
mod retransmission_causes;
mod run;
mod sampler;
mod scheduled_port;
mod scheduler;
mod shared_buffer;
mod simulation;
mod software_switch;
mod special;
mod switch;
mod tables;
mod tracer;

pub use arrivals::ArrivedInPhase;
pub use capture::{CaptureOf, Captured, HEAD_BYTES};
pub use cwnd::CwndSample;
pub use deadlock::PausedLink;
pub use degraded_links::{DegradedLink, OfferedBytes};
pub use deliveries::Delivery;
pub use drops::{Drop, DropCause, DropSite, FirstUse, Hit};
pub use external_hosts::{Data, ExternalHostError, ExternalHosts, ExternalPacket, Frame};
pub use fct_breakdown::FctBreakdown;
pub use follow::{Choice, Decision};
pub use host_cpu::HostCpuSpec;
pub use network::{LinkDrops, PacketCounts};
pub use observer::Observation;
pub use paths::PathTotal;
pub use pause::{Blocked, MemoryError, check_memories};
pub use records::{FlowRecords, Spool};
pub use results::{
    ClassOfLink, Cooperation, FlowRecord, LinkTotals, MemoryUse, PauseOfLink, RateChange, Results,
    Retransmissions, SchemeCounter, SharedBufferUse, Sharing,
};
pub use run::{FlowNow, LinkNow, PacketNow, Snapshot, cost_of_a_window};
pub use sampler::{LinkSample, MOST_ROWS, Samples, SharedBufferSample};
pub use scheduled_port::{ClassTotals, PauseTotals};
pub use simulation::{
    Ending, InputError, PREFETCH_FROM, Progress, SHARE_FROM, Simulation, SimulationInput, SinglePartition,
    Status, ThreadHook, base_rtt, check_parameters,
};
pub use tracer::FlowTrace;
