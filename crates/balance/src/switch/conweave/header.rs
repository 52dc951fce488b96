//! Header of packets between the leaves, and the packets that leaves send each other.

use weft_packet::Packet;
use weft_units::Time;

/// Purpose of a packet. Data packets have one too: `Request` asks for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opcode {
    /// Nothing but data.
    #[default]
    None,
    /// `RTT_REQUEST`: the far leaf is to answer at once.
    Request,
    /// `RTT_REPLY`: that answer.
    Reply,
    /// `CLEAR`: all packets of the old path have come, or are waited for no longer.
    Clear,
    /// `NOTIFY`: a packet came marked by this path.
    Notify,
}

impl Opcode {
    const ALL: [Self; 5] = [Self::None, Self::Request, Self::Reply, Self::Clear, Self::Notify];
}

/// The number of an epoch, modulo four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    /// The next one.
    pub const fn next(self) -> Self {
        Self((self.0 + 1) & 3)
    }

    /// Whether this one is the one before `other`.
    pub fn is_before(self, other: Self) -> bool {
        self.next() == other
    }
}

/// A time in whole microseconds, modulo 65,536.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp(pub u16);

impl Stamp {
    /// Time stamp of `now`.
    pub const fn of(now: Time) -> Self {
        Self((now.as_ps() / 1_000_000) as u16)
    }

    /// Microseconds from `earlier` to this one; 0 if it is not later, as far as 32 ms tell.
    pub const fn since_us(self, earlier: Self) -> u64 {
        let us = self.0.wrapping_sub(earlier.0);
        if us < 1 << 15 { us as u64 } else { 0 }
    }
}

/// The header's fields (§3.4, Fig. 10), in the 32 bits that a scheme has in a packet. The paper has
/// 47: two times of 16 bits, of which a packet needs one. One of the old path says when it left
/// itself; a rerouted one says when the TAIL did.
///
/// | bits | field |
/// |---|---|
/// | 0 to 7 | `PathID` |
/// | 8 to 10 | opcode |
/// | 11, 12 | epoch |
/// | 13 | REROUTED; on an `RTT_REPLY`: no queue is free |
/// | 14 | TAIL |
/// | 15 | there is a header |
/// | 16 to 31 | `TX_TSTAMP`, or `TAIL_TX_TSTAMP` on a rerouted packet |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The path, as the source leaf numbers it.
    pub path: u8,
    /// Purpose of the packet.
    pub opcode: Opcode,
    /// The epoch of its connection.
    pub epoch: Epoch,
    /// It went by the new path; on a reply: no queue is free for its connection.
    pub rerouted: bool,
    /// It is the last one of the old path.
    pub tail: bool,
    /// When it left the source leaf, or when the TAIL did.
    pub stamp: Stamp,
}

impl Header {
    /// Bytes that a data packet is longer by between leaves: the two times (§4.2.2). The rest is in
    /// bits that RDMA reserves.
    pub const BYTES: u16 = 4;

    const OPCODE: u32 = 8;
    const EPOCH: u32 = 11;
    const REROUTED: u32 = 1 << 13;
    const TAIL: u32 = 1 << 14;
    const VALID: u32 = 1 << 15;
    const STAMP: u32 = 16;

    /// As a packet has it.
    pub fn bits(self) -> u32 {
        u32::from(self.path)
            | (self.opcode as u32) << Self::OPCODE
            | u32::from(self.epoch.0) << Self::EPOCH
            | if self.rerouted { Self::REROUTED } else { 0 }
            | if self.tail { Self::TAIL } else { 0 }
            | Self::VALID
            | u32::from(self.stamp.0) << Self::STAMP
    }

    /// Reads the header of a packet, if it has one.
    pub fn read(packet: &Packet) -> Option<Self> {
        let bits = packet.scheme;
        let opcode = Opcode::ALL.get((bits >> Self::OPCODE & 7) as usize).copied()?;
        (bits & Self::VALID != 0).then_some(Self {
            path: bits as u8,
            opcode,
            epoch: Epoch((bits >> Self::EPOCH & 3) as u8),
            rerouted: bits & Self::REROUTED != 0,
            tail: bits & Self::TAIL != 0,
            stamp: Stamp((bits >> Self::STAMP) as u16),
        })
    }

    /// A packet that tells the source leaf of a connection this, on behalf of a data packet of it.
    pub fn answer(self, data: &Packet) -> Packet {
        let mut packet = Packet::control(self.bits());
        (packet.src, packet.dst, packet.entropy) = (data.dst, data.src, data.entropy);
        packet
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use crate::testing::{packet, with};

    use super::*;

    #[test]
    fn a_header_survives_the_wire_and_an_untouched_packet_has_none() {
        for opcode in Opcode::ALL {
            for (rerouted, tail) in [(false, false), (true, false), (false, true)] {
                for (path, stamp, epoch) in [(0, 0, 0), (255, u16::MAX, 3), (7, 300, 2)] {
                    let (epoch, stamp) = (Epoch(epoch), Stamp(stamp));
                    let header = Header { path, opcode, epoch, rerouted, tail, stamp };
                    let sent = with(packet(1), |packet| packet.scheme = header.bits());
                    assert_eq!(Header::read(&sent), Some(header));
                }
            }
        }
        assert_eq!(Header::read(&packet(1)), None);
    }

    #[test]
    fn epochs_go_round_and_know_who_was_before() {
        let mut epoch = Epoch::default();
        for _ in 0..9 {
            let next = epoch.next();
            assert!(epoch.is_before(next) && !next.is_before(epoch) && !epoch.is_before(epoch));
            epoch = next;
        }
    }

    #[test]
    fn times_go_round_every_65_ms_and_tell_up_to_32() {
        let at = |us| Stamp::of(Time::ZERO + Span::from_us(us));
        assert_eq!(at(70_000).since_us(at(60_000)), 10_000);
        assert_eq!(at(60_000).since_us(at(60_000)), 0);
        assert_eq!(at(59_999).since_us(at(60_000)), 0, "not later");
    }
}
