use thiserror::Error;

/// Why bytes are no packet, or a packet no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CodecError {
    /// Fewer bytes than a header has.
    #[error("{0} bytes are too few for a header")]
    TooShort(usize),
    /// Not IPv4.
    #[error("IP version {0}")]
    Version(u8),
    /// A header's own length is shorter than a header, or longer than the packet.
    #[error("a header of {0} bytes")]
    HeaderLength(usize),
    /// The IP header says another length than the packet has.
    #[error("a packet of {found} bytes that says {said}")]
    TotalLength {
        /// Length in the header.
        said: usize,
        /// Length of the packet.
        found: usize,
    },
    /// The IP header's check sum is wrong.
    #[error("a wrong check sum in the IP header")]
    IpChecksum,
    /// The TCP segment's check sum is wrong.
    #[error("a wrong check sum in the TCP segment")]
    TcpChecksum,
    /// A TCP option that its kind does not allow.
    #[error("TCP option {kind} with {bytes} bytes")]
    Option {
        /// Kind of the option.
        kind: u8,
        /// Length of the option, as far as there is one.
        bytes: usize,
    },
    /// Options that are not whole words, or more than 40 bytes.
    #[error("{0} bytes of options")]
    OptionsLength(usize),
    /// A field that has fewer bits than its value.
    #[error("{field} of {value}")]
    Field {
        /// The field.
        field: &'static str,
        /// The value.
        value: u32,
    },
    /// A TCP header in a fragment.
    #[error("a TCP segment in a fragment")]
    Fragment,
}
