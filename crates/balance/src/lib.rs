//! Load balancers, one file a scheme, written against a small vocabulary and no simulator.
//!
//! A scheme sees the clock, the packet's header, its own node's ports, its own state and its own
//! random stream. What it learns of the rest of the fabric, a packet brought it. The worlds that
//! host schemes implement [`SwitchContext`] and [`HostContext`].
//!
//! Invariant: a scheme acts on its own node and on the packet at hand, through its context.

pub mod acknowledgements;
#[cfg(test)]
mod every_scheme;
pub mod flowlet;
pub mod host;
mod host_api;
pub mod model;
mod python_class;
pub mod recording;
pub mod reference;
mod registry;
pub mod switch;
mod switch_api;
pub mod testing;

pub use host_api::{Expired, HostContext, HostHooks, HostInfo, HostScheme, Message};
pub use python_class::PythonClass;
pub use registry::{
    AnyHostFlow, AnyHostScheme, AnySwitchScheme, ExternalScheme, FabricFacts, FlowletRule, Order,
    ParameterError, SchemeInfo, SchemeSpec, schemes,
};
pub use switch_api::{
    Arrival, NextHops, Ports, Queued, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme,
};
pub use weft_packet::{Peer, PortId};
