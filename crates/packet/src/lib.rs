//! Packets: headers, flags and the fields that schemes carry on the wire.
//!
//! A packet is one cache line. It stays where it was created until it is delivered or dropped; links pass its
//! index on, never its bytes.

mod header;
mod place;

pub use header::{Class, FlowId, Kind, MessageBody, Packet, PacketFlags, Route, SackBlock};
pub use place::{HostId, Peer, PortId};
