//! Packets: headers, flags and the fields that schemes carry on the wire.
//!
//! A packet is one cache line. It stays where it was created until it is delivered or dropped;
//! links pass its index on, never its bytes.
//!
//! Invariant: a packet holds bits; schemes and transports define their meaning.

mod flags;
mod flow;
mod header;
mod kind;
mod place;

pub use flags::{Class, ClassName, PacketFlags};
pub use flow::FlowId;
pub use header::{MessageBody, Packet, Route, SackBlock};
pub use kind::{Kind, Kinds};
pub use place::{HostId, Peer, PortId};
