//! What the far edge tells of the packets that it saw arrive: by which path, and whether a queue marked them.
//!
//! The sending edge numbers its paths as it likes and writes the number into the header of each data packet. The far edge
//! copies it, with the congestion mark, into the next acknowledgement of the flow. The time stamp comes back in the
//! transport's own option ([`Packet::sent`], RFC 7323), so that the round trip belongs to the path that is named: if
//! one acknowledgement answers several packets, both tell of the first.

use weft_packet::{Packet, PacketFlags};

/// 18 of the header bits that a scheme owns: a path's number, its mark, and whether there is anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathNote {
    /// The path, as the edge that sends by it numbers it.
    pub path: u16,
    /// Whether a queue marked a packet.
    pub marked: bool,
}

impl PathNote {
    const PRESENT: u32 = 1 << 16;
    const MARKED: u32 = 1 << 17;

    /// Header bits that it takes.
    pub const BITS: u32 = 18;

    /// Writes it into a packet's header.
    #[inline]
    pub fn write(self, packet: &mut Packet) {
        packet.scheme = u32::from(self.path) | Self::PRESENT | if self.marked { Self::MARKED } else { 0 };
    }

    /// Reads it, if there is one.
    #[inline]
    pub fn read(packet: &Packet) -> Option<Self> {
        let bits = packet.scheme;
        (bits & Self::PRESENT != 0).then_some(Self { path: bits as u16, marked: bits & Self::MARKED != 0 })
    }
}

/// The receiving end of a flow: what its next acknowledgement will tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Echo {
    pending: Option<PathNote>,
}

impl Echo {
    /// A packet of the flow arrived.
    #[inline]
    pub fn note(&mut self, packet: &Packet) {
        let Some(arrived) = PathNote::read(packet) else { return };
        let marked = packet.flags.has(PacketFlags::CE);
        let pending = self.pending.get_or_insert(PathNote { marked: false, ..arrived });
        // Only a mark of the path that is named: of another it would tell a lie.
        pending.marked |= marked && pending.path == arrived.path;
    }

    /// An acknowledgement of the flow leaves.
    #[inline]
    pub fn stamp(&mut self, packet: &mut Packet) {
        if let Some(note) = self.pending.take() {
            note.write(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{packet, with};

    use super::*;

    fn arrival(path: u16, ce: bool) -> Packet {
        with(packet(1), |packet| {
            PathNote { path, marked: false }.write(packet);
            packet.flags = packet.flags.with_if(PacketFlags::CE, ce);
        })
    }

    fn told(echo: &mut Echo) -> Option<PathNote> {
        PathNote::read(&with(packet(1), |ack| echo.stamp(ack)))
    }

    #[test]
    fn a_note_survives_the_header_and_an_untouched_header_has_none() {
        for note in [PathNote { path: 0, marked: false }, PathNote { path: u16::MAX, marked: true }] {
            assert_eq!(PathNote::read(&with(packet(1), |packet| note.write(packet))), Some(note));
        }
        assert_eq!(PathNote::read(&packet(1)), None);
    }

    #[test]
    fn an_acknowledgement_tells_of_the_first_packet_since_the_last_one() {
        let mut echo = Echo::default();
        assert_eq!(told(&mut echo), None);
        echo.note(&arrival(3, false));
        echo.note(&arrival(3, true));
        echo.note(&arrival(5, true));
        assert_eq!(told(&mut echo), Some(PathNote { path: 3, marked: true }));
        assert_eq!(told(&mut echo), None, "told once");
        echo.note(&arrival(5, false));
        echo.note(&arrival(3, true));
        assert_eq!(told(&mut echo), Some(PathNote { path: 5, marked: false }));
    }
}
