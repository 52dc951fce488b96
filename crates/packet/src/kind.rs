//! What a packet is.

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// A segment with payload.
    #[default]
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// A connection request.
    Syn,
    /// The answer to a connection request.
    SynAck,
    /// A receiver's permission to send one data packet. It waits in the credit queues of ports, not among data.
    Credit,
    /// A sender asks its receiver for credits.
    CreditRequest,
    /// A sender needs no more credits.
    CreditStop,
    /// A switch scheme's own packet: it ends at the next switch.
    Control,
    /// An edge scheme's own packet: it is forwarded like any other, and ends at the edge scheme of its destination.
    Message,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Ack,
        Self::Syn,
        Self::SynAck,
        Self::Credit,
        Self::CreditRequest,
        Self::CreditStop,
        Self::Control,
        Self::Message,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Syn => "syn",
            Self::SynAck => "syn-ack",
            Self::Credit => "credit",
            Self::CreditRequest => "credit-request",
            Self::CreditStop => "credit-stop",
            Self::Control => "control",
            Self::Message => "message",
        }
    }

    /// Whether it belongs to a scheme, not to a transport.
    #[inline]
    pub const fn is_of_scheme(self) -> bool {
        self as u8 >= Self::Control as u8
    }
}

/// A set of kinds of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u16);

impl Kinds {
    /// No packet.
    pub const NONE: Self = Self(0);
    /// Every packet.
    pub const ALL: Self = Self(u16::MAX);

    /// These.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut set, mut place) = (0, 0);
        while place < kinds.len() {
            set |= 1 << kinds[place] as u8;
            place += 1;
        }
        Self(set)
    }

    /// What is in either of the two.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether packets of this kind are in it.
    #[inline]
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 != 0
    }

    /// Whether it is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
