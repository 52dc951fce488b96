//! Kinds of packets.

/// Kind of a packet.
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
    /// A receiver's permission to send one data packet. It waits in the credit queues of ports, not
    /// among data.
    Credit,
    /// A sender asks its receiver for credits.
    CreditRequest,
    /// A sender needs no more credits.
    CreditStop,
    /// A switch scheme's own packet: it ends at the next switch.
    Control,
    /// A host scheme's own packet: it is forwarded like any other, and ends at the host scheme of
    /// its destination.
    Message,
    /// A receiver tells its sender that a data packet is missing: what to send again is up to the
    /// transport (go back to it, or send that one alone).
    Nack,
    /// A congestion notification packet: a receiver tells its sender that its packets come with
    /// congestion marks.
    Cnp,
    /// A data packet whose payload a full queue cut off. What is left is the header: its sequence
    /// number, entropy, marks and the scheme's bits.
    Trimmed,
    /// A port tells the port before to pause a class, or that it may go on: it ends at the next
    /// node (IEEE 802.1Qbb).
    Pause,
    /// A sender acknowledges without payload: what opens a connection, the third packet of its
    /// handshake, or what closes it.
    SenderAck,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Data,
        Self::Ack,
        Self::Syn,
        Self::SynAck,
        Self::Credit,
        Self::CreditRequest,
        Self::CreditStop,
        Self::Control,
        Self::Message,
        Self::Nack,
        Self::Cnp,
        Self::Trimmed,
        Self::Pause,
        Self::SenderAck,
    ];

    /// Name of the kind in tables.
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
            Self::Nack => "nack",
            Self::Cnp => "cnp",
            Self::Trimmed => "trimmed",
            Self::Pause => "pause",
            Self::SenderAck => "sender-ack",
        }
    }

    /// Whether it goes from the receiver of its flow to the sender.
    #[inline]
    pub const fn is_for_sender(self) -> bool {
        matches!(self, Self::Ack | Self::SynAck | Self::Credit | Self::Nack | Self::Cnp)
    }

    /// Whether it belongs to a scheme, not to a transport.
    #[inline]
    pub const fn is_of_scheme(self) -> bool {
        matches!(self, Self::Control | Self::Message)
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

    /// Kinds that are in either of the two.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_belongs_to_a_scheme_or_goes_one_of_two_ways() {
        let named = |belongs: fn(Kind) -> bool| -> Vec<_> {
            Kind::ALL.into_iter().filter(|&kind| belongs(kind)).map(Kind::name).collect()
        };
        assert_eq!(named(Kind::is_of_scheme), ["control", "message"]);
        assert_eq!(named(Kind::is_for_sender), ["ack", "syn-ack", "credit", "nack", "cnp"]);
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "the list is in the order of the numbers");
            assert!(Kinds::ALL.has(kind) && Kinds::of(&[kind]).has(kind));
        }
    }
}
