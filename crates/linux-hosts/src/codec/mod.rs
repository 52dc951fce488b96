//! IPv4 and TCP, bytes to fields and back: what a world that is not made of bytes needs to
//! understand a host's packets, and to answer them.
//!
//! [`Packet::decode`] takes any bytes and checks lengths and check sums. What it takes comes out of
//! [`Packet::encode`] byte by byte, with all that was reserved or unknown. The libraries that read
//! TCP do not know the options of MPTCP; hence this one.
//!
//! What a scheme needs that TCP/IP does not carry (CONGA's metrics, TR's bits, path tags) has no
//! place here: it belongs into a header around the packet, which costs its own bytes.

mod checksum;
mod error;
mod ipv4;
mod mptcp;
mod options;
mod tcp;

pub use error::CodecError;
pub use ipv4::{Ecn, Ipv4, mark_congestion};
pub use mptcp::{Mapping, MpCapable, MpJoin, Mptcp, Sequence};
pub use options::TcpOption;
pub use tcp::{Flags, Tcp};

/// An IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The IP header.
    pub ip: Ipv4,
    /// Payload of the packet.
    pub body: Body<'a>,
}

/// Payload of an IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// A TCP segment with its payload.
    Tcp(Tcp, &'a [u8]),
    /// Another protocol, or a fragment, as it is.
    Other {
        /// The protocol's number.
        protocol: u8,
        /// All bytes after the IP header.
        bytes: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// Reads an IP packet: the whole of `bytes`.
    ///
    /// # Errors
    /// A length that does not fit, a wrong check sum, or a TCP option that its kind does not allow.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let (ip, protocol, rest) = Ipv4::decode(bytes)?;
        let body = if protocol == tcp::PROTOCOL && !ip.is_fragment() {
            let (tcp, payload) = Tcp::decode(&ip, rest)?;
            Body::Tcp(tcp, payload)
        } else {
            Body::Other { protocol, bytes: rest }
        };
        Ok(Self { ip, body })
    }

    /// Writes it, with its lengths and check sums.
    ///
    /// # Errors
    /// Options that do not fit their header, or more than 65,535 bytes.
    pub fn encode(&self) -> Result<Vec<u8>, CodecError> {
        let mut bytes = Vec::with_capacity(1_500);
        self.ip.encode(&mut bytes)?;
        let header = bytes.len();
        let protocol = match &self.body {
            Body::Tcp(..) if self.ip.is_fragment() => return Err(CodecError::Fragment),
            Body::Tcp(segment, payload) => {
                segment.encode(&self.ip, payload, &mut bytes)?;
                tcp::PROTOCOL
            }
            Body::Other { protocol, bytes: rest } => {
                bytes.extend_from_slice(rest);
                *protocol
            }
        };
        ipv4::finish(&mut bytes, header, protocol)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
