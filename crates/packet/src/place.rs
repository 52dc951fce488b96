//! Places in a fabric, as headers and switches name them.

/// A host: its number in the fabric, from 0. A fabric has at most 65,536 hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct HostId(pub u16);

impl HostId {
    /// As an index into per-host arrays.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A port of a switch: its number, from 0. The port's output queue and cable belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct PortId(pub u16);

impl PortId {
    /// As an index into per-port arrays.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Node at the far end of a cable, as a switch learns it from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A host.
    Host(HostId),
    /// A switch, by its number in the fabric.
    Switch {
        /// Number of the switch, from 0.
        switch: u32,
        /// Tier of the switch: hops from the nearest host, from 0.
        tier: u8,
    },
}
