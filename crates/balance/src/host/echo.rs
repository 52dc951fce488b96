//! Report of the receiving host on arriving packets: their path, and whether a queue marked them.
//!
//! The sending host numbers its paths as it likes and writes the number into the header of each
//! data packet. The far edge copies it, with the congestion mark, into the next acknowledgement of
//! the flow. The time stamp comes back in the transport's own option ([`Packet::sent`], RFC 7323),
//! so that the round trip belongs to the path that is named: if one acknowledgement answers several
//! packets, both tell of the first.

use weft_packet::{Packet, PacketFlags};
use weft_units::Span;

/// The header bits that a scheme owns: a path's number, its mark, and whether there is anything in
/// 18 of them; in the others, for who wants to know, how long the packet waited at its own host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathNote {
    /// The path, as the edge that sends by it numbers it.
    pub path: u16,
    /// Whether a queue marked a packet.
    pub marked: bool,
    /// How long the packet waited at its own host, in [`Self::TICK`]s, at most
    /// [`Self::MOST_TICKS`].
    pub waited: u16,
}

impl PathNote {
    const PRESENT: u32 = 1 << 16;
    const MARKED: u32 = 1 << 17;

    /// Header bits that it takes, without the wait.
    pub const BITS: u32 = 18;

    /// Unit of a wait: 2^17 ps, about 131 ns.
    pub const TICK: Span = Span::from_ps(1 << 17);
    /// The longest wait, 2.1 ms: what is left of 32 bits.
    pub const MOST_TICKS: u16 = (1 << (32 - Self::BITS)) - 1;

    /// A wait in ticks, rounded down.
    #[inline]
    pub fn ticks(wait: Span) -> u16 {
        (wait.as_ps() / Self::TICK.as_ps()).min(Self::MOST_TICKS.into()) as u16
    }

    /// The wait.
    #[inline]
    pub const fn wait(self) -> Span {
        Span::from_ps(self.waited as u64 * Self::TICK.as_ps())
    }

    /// Writes it into a packet's header.
    #[inline]
    pub fn write(self, packet: &mut Packet) {
        let marked = if self.marked { Self::MARKED } else { 0 };
        packet.scheme = u32::from(self.path) | Self::PRESENT | marked | u32::from(self.waited) << Self::BITS;
    }

    /// Reads it, if there is one.
    #[inline]
    pub fn read(packet: &Packet) -> Option<Self> {
        let bits = packet.scheme;
        let note =
            Self { path: bits as u16, marked: bits & Self::MARKED != 0, waited: (bits >> Self::BITS) as u16 };
        (bits & Self::PRESENT != 0).then_some(note)
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
            PathNote { path, ..PathNote::default() }.write(packet);
            packet.flags = packet.flags.with_if(PacketFlags::CE, ce);
        })
    }

    fn told(echo: &mut Echo) -> Option<PathNote> {
        PathNote::read(&with(packet(1), |ack| echo.stamp(ack)))
    }

    #[test]
    fn a_note_survives_the_header_and_an_untouched_header_has_none() {
        for note in [
            PathNote::default(),
            PathNote { path: 0, marked: false, waited: 5 },
            PathNote { path: u16::MAX, marked: true, waited: PathNote::MOST_TICKS },
        ] {
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
        assert_eq!(told(&mut echo), Some(PathNote { path: 3, marked: true, waited: 0 }));
        assert_eq!(told(&mut echo), None, "told once");
        echo.note(&arrival(5, false));
        echo.note(&arrival(3, true));
        assert_eq!(told(&mut echo), Some(PathNote { path: 5, marked: false, waited: 0 }));
    }

    #[test]
    fn a_wait_is_counted_in_ticks_and_ends_at_the_most() {
        let waited = |wait| PathNote { waited: PathNote::ticks(wait), ..PathNote::default() }.wait();
        assert_eq!(waited(Span::from_ps((1 << 17) - 1)), Span::ZERO);
        assert_eq!(waited(Span::from_us(50)), PathNote::TICK * 381, "49.94 us");
        assert_eq!(waited(Span::from_s(1)), PathNote::TICK * 16_383, "2.15 ms");
    }
}
