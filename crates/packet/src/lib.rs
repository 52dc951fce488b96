//! Packets: headers, flags and the fields that schemes carry on the wire.
//!
//! A packet is one cache line. It stays where it was created until it is delivered or dropped; links pass its
//! index on, never its bytes.
//!
//! The rule of this room: one packet at a time; what its bits mean is for those who write them.

mod header;
mod place;

pub use header::{Class, FlowId, Kind, Kinds, MessageBody, Packet, PacketFlags, Route, SackBlock};
pub use place::{HostId, Peer, PortId};
