//! Equal-cost shortest paths, as each switch's table from destination rack to next hops.

use weft_balance::PortId;

/// What a switch's table says for a rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteEntry {
    /// No way leads there.
    None,
    /// One port.
    Port(PortId),
    /// Several: a group number, for [`Routes::group`].
    Group(u32),
}

/// The tables of all switches.
#[derive(Debug, Clone, PartialEq)]
pub struct Routes {
    racks: usize,
    /// `[switch x racks + rack]`: a port if below 2^15; a group of that switch less 2^15; or 0xffff for none.
    table: Vec<u16>,
    /// First group of each switch.
    group_base: Vec<u32>,
    /// First member and number of members of each group.
    groups: Vec<(u32, u32)>,
    ports: Vec<PortId>,
    weights: Vec<u32>,
}

impl Routes {
    const NONE: u16 = u16::MAX;
    const GROUP: u16 = 1 << 15;

    /// What `switch` does with packets for `rack`.
    #[inline]
    pub fn entry(&self, switch: usize, rack: usize) -> RouteEntry {
        match self.table[switch * self.racks + rack] {
            Self::NONE => RouteEntry::None,
            port if port < Self::GROUP => RouteEntry::Port(PortId(port)),
            group => RouteEntry::Group(self.group_base[switch] + u32::from(group - Self::GROUP)),
        }
    }

    /// The ports of a group, ascending, and the weight of each: Mbit/s towards the rack, at least 1.
    #[inline]
    pub fn group(&self, group: u32) -> (&[PortId], &[u32]) {
        let (first, count) = self.groups[group as usize];
        let members = first as usize..(first + count) as usize;
        (&self.ports[members.clone()], &self.weights[members])
    }
}
