//! The event core: one event a packet-hop.

mod active;
mod admission;
mod copies;
mod deliveries;
mod departures;
mod endpoint;
mod event_set;
mod faults;
mod hosts;
mod link;
mod mappings;
mod messages;
mod network;
mod observer;
mod paths;
mod pool;
mod ports;
mod results;
mod sampler;
mod scheduled_port;
mod scheduler;
mod simulation;
mod special;
mod spent;
mod switch;
mod tracer;

pub use deliveries::Delivery;
pub use network::{LinkDrops, PacketCounts};
pub use observer::Observation;
pub use paths::PathTotal;
pub use results::{FlowRecord, LinkTotals, MemoryUse, Results, Retransmissions, SchemeCounter};
pub use sampler::{LinkSample, MOST_ROWS, Samples};
pub use simulation::{Ending, Progress, Simulation, SimulationInput, Status};
pub use spent::Spent;
pub use tracer::FlowTrace;
