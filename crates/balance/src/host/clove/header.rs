//! Encapsulation of a packet: the path it takes, and the marks that its sender reports.

use weft_packet::Packet;

/// A path of one edge to one destination: a slot in its table, and which of the paths that were
/// there one after the other. So an echo that is late does not hit the successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathId(u16);

impl PathId {
    const SLOT_BITS: u32 = 6;
    const GENERATIONS: u8 = 16;
    const BITS: u32 = 10;

    /// Most slots of a table.
    pub const SLOTS: usize = 1 << Self::SLOT_BITS;

    /// The path in `slot`, below [`Self::SLOTS`]; generations count modulo 16.
    pub const fn new(slot: usize, generation: u8) -> Self {
        debug_assert!(slot < Self::SLOTS);
        Self(slot as u16 | ((generation % Self::GENERATIONS) as u16) << Self::SLOT_BITS)
    }

    /// Slot of the path.
    #[inline]
    pub const fn slot(self) -> usize {
        self.0 as usize % Self::SLOTS
    }

    #[inline]
    const fn of_bits(bits: u32) -> Self {
        Self(bits as u16 & ((1 << Self::BITS) - 1))
    }
}

/// 24 of the header bits that a scheme owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The path that the packet takes, as its sender numbers it.
    pub path: Option<PathId>,
    /// Whether the guest's own packet inside says that its transport understands ECN. Reported with
    /// `path`.
    pub guest_ect: bool,
    /// Whether it was marked before it was encapsulated. Reported with `path`.
    pub guest_ce: bool,
    /// A path of the receiving host on which a packet got a mark on its way here.
    pub marked: Option<PathId>,
}

impl Header {
    const PATH: u32 = 1 << 30;
    const GUEST_ECT: u32 = 1 << 29;
    const MARKED: u32 = 1 << 28;
    const GUEST_CE: u32 = 1 << 27;
    const MARKED_SHIFT: u32 = PathId::BITS;

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, packet: &mut Packet) {
        let path = self.path.map_or(0, |path| u32::from(path.0) | Self::PATH);
        let marked = self.marked.map_or(0, |path| u32::from(path.0) << Self::MARKED_SHIFT | Self::MARKED);
        let guest_ect = if self.guest_ect { Self::GUEST_ECT } else { 0 };
        let guest_ce = if self.guest_ce { Self::GUEST_CE } else { 0 };
        packet.scheme = path | marked | guest_ect | guest_ce;
    }

    /// Takes it out of a packet.
    #[inline]
    pub fn take(packet: &mut Packet) -> Self {
        let bits = std::mem::take(&mut packet.scheme);
        Self {
            path: (bits & Self::PATH != 0).then_some(PathId::of_bits(bits)),
            guest_ect: bits & Self::GUEST_ECT != 0,
            guest_ce: bits & Self::GUEST_CE != 0,
            marked: (bits & Self::MARKED != 0).then_some(PathId::of_bits(bits >> Self::MARKED_SHIFT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::packet;

    use super::*;

    #[test]
    fn a_header_survives_the_wire_and_is_gone_behind_it() {
        let ids = [None, Some(PathId::new(0, 0)), Some(PathId::new(63, 15)), Some(PathId::new(5, 16))];
        for path in ids {
            for marked in ids {
                for (guest_ect, guest_ce) in [(false, false), (true, false), (true, true), (false, true)] {
                    let (mut sent, header) = (packet(1), Header { path, guest_ect, guest_ce, marked });
                    header.write(&mut sent);
                    assert_eq!(Header::take(&mut sent), header);
                    assert_eq!(sent.scheme, 0);
                }
            }
        }
    }

    #[test]
    fn successors_in_a_slot_differ_for_sixteen_generations() {
        let id = |generation| PathId::new(9, generation);
        assert!((1..16).all(|generation| id(generation) != id(0) && id(generation).slot() == 9));
        assert_eq!(id(16), id(0));
    }
}
