//! The IPv4 header, RFC 791, with ECN, RFC 3168.

use std::net::Ipv4Addr;

use super::checksum::{fold, sum};
use super::error::CodecError;

const SHORTEST: usize = 20;
const LONGEST: usize = 60;

/// Explicit congestion notification, RFC 3168 §5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The transport does not take part.
    #[default]
    NotCapable,
    /// It takes part, ECT(1).
    Capable1,
    /// It takes part, ECT(0).
    Capable0,
    /// Congestion experienced.
    Congestion,
}

impl Ecn {
    const ALL: [Self; 4] = [Self::NotCapable, Self::Capable1, Self::Capable0, Self::Congestion];
}

/// The fields of an IPv4 header. Length, protocol and check sum follow from the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipv4 {
    /// Differentiated services, 6 bits.
    pub dscp: u8,
    /// Congestion.
    pub ecn: Ecn,
    /// Identification.
    pub identification: u16,
    /// The bits before the fragment's offset: 4 is reserved, 2 don't fragment, 1 more fragments.
    pub fragment_flags: u8,
    /// Where the fragment begins, in units of 8 bytes; 13 bits.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// The sender.
    pub source: Ipv4Addr,
    /// The receiver.
    pub destination: Ipv4Addr,
    /// Options as they are: whole words, 40 bytes at most.
    pub options: Vec<u8>,
}

impl Ipv4 {
    /// A header as a host of today makes it: 64 hops, never cut into fragments.
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self {
            dscp: 0,
            ecn: Ecn::NotCapable,
            identification: 0,
            fragment_flags: 2,
            fragment_offset: 0,
            ttl: 64,
            source,
            destination,
            options: Vec::new(),
        }
    }

    /// Whether the packet is a part of a larger one.
    pub const fn is_fragment(&self) -> bool {
        self.fragment_flags & 1 != 0 || self.fragment_offset != 0
    }

    /// The header, the protocol's number and the rest, whatever that is.
    ///
    /// # Errors
    /// A length that does not fit, another version, or a wrong check sum.
    pub fn decode(bytes: &[u8]) -> Result<(Self, u8, &[u8]), CodecError> {
        if bytes.len() < SHORTEST {
            return Err(CodecError::TooShort(bytes.len()));
        }
        if bytes[0] >> 4 != 4 {
            return Err(CodecError::Version(bytes[0] >> 4));
        }
        let length = usize::from(bytes[0] & 15) * 4;
        if length < SHORTEST || length > bytes.len() {
            return Err(CodecError::HeaderLength(length));
        }
        let said = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        if said != bytes.len() {
            return Err(CodecError::TotalLength { said, found: bytes.len() });
        }
        let (header, rest) = bytes.split_at(length);
        // A sum of ffff in the field, instead of 0, would pass a receiver, but no sender writes it.
        if stored(header, 10) != fold(sum(header) - u32::from(stored(header, 10))) {
            return Err(CodecError::IpChecksum);
        }
        let fragment = stored(header, 6);
        let ip = Self {
            dscp: header[1] >> 2,
            ecn: Ecn::ALL[usize::from(header[1] & 3)],
            identification: stored(header, 4),
            fragment_flags: (fragment >> 13) as u8,
            fragment_offset: fragment & 0x1fff,
            ttl: header[8],
            source: Ipv4Addr::new(header[12], header[13], header[14], header[15]),
            destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
            options: header[SHORTEST..].to_vec(),
        };
        Ok((ip, header[9], rest))
    }

    /// Appends the header; [`finish`] fills in what follows from the rest.
    pub(super) fn encode(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        let length = SHORTEST + self.options.len();
        if !length.is_multiple_of(4) || length > LONGEST {
            return Err(CodecError::OptionsLength(self.options.len()));
        }
        for (field, value, bits) in [
            ("DSCP", u32::from(self.dscp), 6),
            ("fragment flags", u32::from(self.fragment_flags), 3),
            ("fragment offset", u32::from(self.fragment_offset), 13),
        ] {
            if value >> bits != 0 {
                return Err(CodecError::Field { field, value });
            }
        }
        to.extend([0x40 | (length / 4) as u8, self.dscp << 2 | self.ecn as u8, 0, 0]);
        to.extend(self.identification.to_be_bytes());
        to.extend((u16::from(self.fragment_flags) << 13 | self.fragment_offset).to_be_bytes());
        to.extend([self.ttl, 0, 0, 0]);
        to.extend(self.source.octets());
        to.extend(self.destination.octets());
        to.extend(&self.options);
        Ok(())
    }

    /// Sum of this header for the TCP check sum (RFC 9293 §3.1), for `bytes` bytes of `protocol`.
    pub(super) fn pseudo_sum(&self, protocol: u8, bytes: usize) -> u32 {
        sum(&self.source.octets()) + sum(&self.destination.octets()) + u32::from(protocol) + bytes as u32
    }
}

fn stored(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Fills in length, protocol and check sum of a packet whose header has `header` bytes.
pub(super) fn finish(packet: &mut [u8], header: usize, protocol: u8) -> Result<(), CodecError> {
    let length = u16::try_from(packet.len())
        .map_err(|_| CodecError::TotalLength { said: usize::from(u16::MAX), found: packet.len() })?;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[9] = protocol;
    let checksum = fold(sum(&packet[..header]));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Marks the bytes of a sound packet: congestion experienced, if its transport takes part, and the
/// check sum anew (RFC 1624 eq. 3). Says whether it is marked now.
pub fn mark_congestion(packet: &mut [u8]) -> bool {
    if packet.len() < SHORTEST || packet[0] >> 4 != 4 || packet[1] & 3 == Ecn::NotCapable as u8 {
        return false;
    }
    let (old, checksum) = (stored(packet, 0), stored(packet, 10));
    packet[1] |= Ecn::Congestion as u8;
    let new = stored(packet, 0);
    let checksum = fold(u32::from(!checksum) + u32::from(!old) + u32::from(new));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    true
}
