//! The flags of a packet, and the class of its flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the application says of a flow. Schemes may read it where their paper allows it.
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
}

impl Class {
    const ALL: [Self; 4] = [Self::Unknown, Self::Short, Self::Long, Self::BestEffort];

    /// The class with this number, taken modulo four.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[(bits & 3) as usize]
    }

    /// The name in specs and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Short => "short",
            Self::Long => "long",
            Self::BestEffort => "best-effort",
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
}

impl From<ClassName> for Class {
    fn from(name: ClassName) -> Self {
        match name {
            ClassName::Unknown => Self::Unknown,
            ClassName::Short => Self::Short,
            ClassName::Long => Self::Long,
            ClassName::BestEffort => Self::BestEffort,
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
    /// ECN echo, on acknowledgements.
    pub const ECE: Self = Self(1 << 2);
    /// On data, at the host that got it: the next segment of its flow follows at once, and was joined to it. Acknowledgements have
    /// [`Self::ECE`] in its place.
    pub const JOINED: Self = Self::ECE;
    /// Congestion window reduced, on data.
    pub const CWR: Self = Self(1 << 3);
    /// This segment was sent before. On an acknowledgement: the segment that caused it had arrived before (D-SACK, RFC
    /// 2883, which says so in the first SACK block).
    pub const RETRANSMISSION: Self = Self(1 << 4);
    /// The last segment of its flow.
    pub const LAST: Self = Self(1 << 5);
    const CLASS_SHIFT: u32 = 6;

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

    /// The number of the flow's class, below four.
    #[inline]
    pub const fn class_bits(self) -> u8 {
        (self.0 >> Self::CLASS_SHIFT) & 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_class_share_a_byte_without_touching() {
        let mut flags = PacketFlags::of_class(Class::BestEffort).with(PacketFlags::ECT);
        flags.set(PacketFlags::CE);
        assert!(flags.has(PacketFlags::ECT) && flags.has(PacketFlags::CE) && !flags.has(PacketFlags::ECE));
        assert_eq!(flags.class(), Class::BestEffort);
        let cleared = flags.without(PacketFlags::CE.with(PacketFlags::ECE));
        assert_eq!(cleared, PacketFlags::of_class(Class::BestEffort).with(PacketFlags::ECT));
        assert_eq!(PacketFlags::default().class(), Class::Unknown);
    }
}
