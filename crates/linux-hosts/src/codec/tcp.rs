//! The TCP header, RFC 9293 §3.1.

use std::ops::BitOr;

use super::checksum::{fold, sum};
use super::error::CodecError;
use super::ipv4::Ipv4;
use super::options::{TcpOption, decode_options, encode_options};

/// TCP's number in an IP header.
pub(super) const PROTOCOL: u8 = 6;
const SHORTEST: usize = 20;

/// The control bits of a segment, with the reserved ones: 12 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x001);
    /// Sequence numbers begin.
    pub const SYN: Self = Self(0x002);
    /// The connection is reset.
    pub const RST: Self = Self(0x004);
    /// The receiver is to hand over what it has.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgement counts.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x020);
    /// Congestion was echoed, RFC 3168 §6.1.
    pub const ECE: Self = Self(0x040);
    /// The congestion window was reduced, RFC 3168 §6.1.
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN, RFC 9768.
    pub const AE: Self = Self(0x100);

    /// All twelve bits, as they are in a header.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The flags of twelve bits; `None` if there are more.
    pub const fn from_bits(bits: u16) -> Option<Self> {
        if bits >> 12 == 0 { Some(Self(bits)) } else { None }
    }

    /// Whether all of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fields of a TCP header. Its length and check sum follow from the packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tcp {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number of the first byte.
    pub sequence: u32,
    /// The next sequence number that is expected.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// The receive window, as it is in the header: not scaled.
    pub window: u16,
    /// The urgent pointer.
    pub urgent: u16,
    /// Options, in order, with what pads them: whole words, 40 bytes at most.
    pub options: Vec<TcpOption>,
}

impl Tcp {
    /// The header and the payload.
    pub(super) fn decode<'a>(ip: &Ipv4, segment: &'a [u8]) -> Result<(Self, &'a [u8]), CodecError> {
        if segment.len() < SHORTEST {
            return Err(CodecError::TooShort(segment.len()));
        }
        let length = usize::from(segment[12] >> 4) * 4;
        if length < SHORTEST || length > segment.len() {
            return Err(CodecError::HeaderLength(length));
        }
        let u16_at = |at| u16::from_be_bytes([segment[at], segment[at + 1]]);
        let u32_at =
            |at| u32::from_be_bytes([segment[at], segment[at + 1], segment[at + 2], segment[at + 3]]);
        let checksum = u16_at(16);
        let right = fold(ip.pseudo_sum(PROTOCOL, segment.len()) + sum(segment) - u32::from(checksum));
        // The two zeros of ones' complement are one.
        if checksum != right && (checksum, right) != (u16::MAX, 0) {
            return Err(CodecError::TcpChecksum);
        }
        let flags = Flags(u16_at(12) & 0xfff);
        let tcp = Self {
            source_port: u16_at(0),
            destination_port: u16_at(2),
            sequence: u32_at(4),
            acknowledgement: u32_at(8),
            flags,
            window: u16_at(14),
            urgent: u16_at(18),
            options: decode_options(&segment[SHORTEST..length])?,
        };
        Ok((tcp, &segment[length..]))
    }

    /// Appends the header and the payload.
    pub(super) fn encode(&self, ip: &Ipv4, payload: &[u8], to: &mut Vec<u8>) -> Result<(), CodecError> {
        let options = encode_options(&self.options)?;
        let begin = to.len();
        to.extend(self.source_port.to_be_bytes());
        to.extend(self.destination_port.to_be_bytes());
        to.extend(self.sequence.to_be_bytes());
        to.extend(self.acknowledgement.to_be_bytes());
        let words = ((SHORTEST + options.len()) / 4) as u16;
        to.extend((words << 12 | self.flags.bits()).to_be_bytes());
        to.extend(self.window.to_be_bytes());
        to.extend([0, 0]);
        to.extend(self.urgent.to_be_bytes());
        to.extend(options);
        to.extend(payload);
        let segment = &mut to[begin..];
        // Linux writes the other of the two zeros (CSUM_MANGLED_0).
        let checksum = match fold(ip.pseudo_sum(PROTOCOL, segment.len()) + sum(segment)) {
            0 => u16::MAX,
            checksum => checksum,
        };
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }
}
