//! The flags of a packet, and the class of its flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Class of a flow as its application declares it, or the IEEE 802.1Q traffic class that carries
/// it: the names are the numbers 0 to 7 of these. Schemes may read the declared class where their
/// paper allows it; `tc4` to `tc7` declare nothing, and schemes take them as [`Class::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Class {
    /// Nothing is said: by size alone.
    #[default]
    Unknown = 0,
    /// Latency matters.
    Short = 1,
    /// Throughput matters.
    Long = 2,
    /// Neither matters.
    BestEffort = 3,
    /// Traffic class 4.
    Tc4 = 4,
    /// Traffic class 5.
    Tc5 = 5,
    /// Traffic class 6.
    Tc6 = 6,
    /// Traffic class 7.
    Tc7 = 7,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Unknown,
        Self::Short,
        Self::Long,
        Self::BestEffort,
        Self::Tc4,
        Self::Tc5,
        Self::Tc6,
        Self::Tc7,
    ];

    /// The class with this number, taken modulo eight.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[bits as usize % Self::COUNT]
    }

    /// The name in specs and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Short => "short",
            Self::Long => "long",
            Self::BestEffort => "best-effort",
            Self::Tc4 => "tc4",
            Self::Tc5 => "tc5",
            Self::Tc6 => "tc6",
            Self::Tc7 => "tc7",
        }
    }
}

/// The class of a flow, as specs and traces write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClassName {
    /// Nothing is said of the flow.
    Unknown,
    /// Latency matters.
    Short,
    /// Throughput matters.
    Long,
    /// Neither matters.
    BestEffort,
    /// Traffic class 4: nothing is said but where its packets wait.
    Tc4,
    /// Traffic class 5.
    Tc5,
    /// Traffic class 6.
    Tc6,
    /// Traffic class 7.
    Tc7,
}

impl From<ClassName> for Class {
    fn from(name: ClassName) -> Self {
        match name {
            ClassName::Unknown => Self::Unknown,
            ClassName::Short => Self::Short,
            ClassName::Long => Self::Long,
            ClassName::BestEffort => Self::BestEffort,
            ClassName::Tc4 => Self::Tc4,
            ClassName::Tc5 => Self::Tc5,
            ClassName::Tc6 => Self::Tc6,
            ClassName::Tc7 => Self::Tc7,
        }
    }
}

/// One bit each; [`PacketFlags::CLASS_SHIFT`] and above hold the flow's [`Class`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct PacketFlags(u8);

impl PacketFlags {
    /// The transport understands ECN (RFC 3168).
    pub const ECT: Self = Self(1);
    /// Congestion experienced: set by a queue.
    pub const CE: Self = Self(1 << 1);
    /// ECN echo, on what goes to the sender of a flow: see
    /// [`Packet::is_echo`](crate::Packet::is_echo).
    pub const ECE: Self = Self(1 << 2);
    /// Congestion window reduced, or what else a transport says to the receiver of a flow in its
    /// place. It is the bit of [`Self::ECE`]: a packet goes one way or the other.
    pub const CWR: Self = Self::ECE;
    /// This segment was sent before. On an acknowledgement: the segment that caused it had arrived
    /// before (D-SACK, RFC 2883, which says so in the first SACK block).
    pub const RETRANSMISSION: Self = Self(1 << 3);
    /// The last segment of its flow.
    pub const LAST: Self = Self(1 << 4);
    const CLASS_SHIFT: u32 = 5;

    /// No flag, and this class.
    #[inline]
    pub const fn of_class(class: Class) -> Self {
        Self((class as u8) << Self::CLASS_SHIFT)
    }

    /// Whether every flag of `flags` is set.
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags and those of `flags`.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// These flags, and `flags` too if `condition` holds.
    #[inline]
    #[must_use]
    pub const fn with_if(self, flags: Self, condition: bool) -> Self {
        Self(self.0 | (flags.0 * condition as u8))
    }

    /// These flags but those of `flags`.
    #[inline]
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// Sets `flags`.
    #[inline]
    pub fn set(&mut self, flags: Self) {
        self.0 |= flags.0;
    }

    /// The flow's class.
    #[inline]
    pub const fn class(self) -> Class {
        Class::from_bits(self.0 >> Self::CLASS_SHIFT)
    }

    /// All of them.
    #[inline]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_class_share_a_byte_without_touching() {
        let single = [
            PacketFlags::ECT,
            PacketFlags::CE,
            PacketFlags::ECE,
            PacketFlags::RETRANSMISSION,
            PacketFlags::LAST,
        ];
        for (number, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!((class as usize, Class::from_bits(number as u8)), (number, class), "in their order");
            for set in 0..1 << single.len() {
                let is_set = |bit: usize| set >> bit & 1 == 1;
                let chosen = (0..single.len()).filter(|&bit| is_set(bit));
                let flags = chosen.fold(PacketFlags::of_class(class), |flags, bit| flags.with(single[bit]));
                assert_eq!(flags.class(), class);
                for (bit, &flag) in single.iter().enumerate() {
                    assert_eq!(flags.has(flag), is_set(bit));
                    assert_eq!(flags.without(flag).with_if(flag, is_set(bit)), flags);
                }
            }
        }
        assert_eq!(PacketFlags::default().class(), Class::Unknown);
    }
}
