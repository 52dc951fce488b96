//! Whose a packet is.

/// A flow: its number in the traffic, from 0, in order of start. Or a connection that is no flow,
/// of a program at a host that is not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct FlowId(pub u32);

impl FlowId {
    /// No flow has this number, nor a subflow: there are no more than a hundred million flows, with
    /// eight subflows each.
    const CONNECTIONS: u32 = 1 << 31;

    /// As an index into per-flow arrays.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The connection with this number, below 2^31.
    pub const fn of_connection(number: u32) -> Self {
        Self(Self::CONNECTIONS | number)
    }

    /// The number of a connection that is no flow.
    pub const fn connection(self) -> Option<u32> {
        if self.0 & Self::CONNECTIONS == 0 { None } else { Some(self.0 & !Self::CONNECTIONS) }
    }
}
