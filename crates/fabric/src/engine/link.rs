//! A link while the run goes on: its output queue and its wire are one list of packets.
//!
//! A FIFO link with a fixed rate knows when a packet departs the moment it is queued, so there is no event for it, and
//! the backlog at any instant is the time until everything queued has left.

use weft_topology::{Condition, Limit, LinkSpec, Marking, Threshold};
use weft_units::{Bytes, PicosPerByte, Rate, Span};

use super::pool::{NO_PACKET, PacketIndex};

/// The special rules of a link that has none.
pub const NO_SPECIAL: u32 = u32::MAX;

/// One direction of a cable: 64 bytes.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Link {
    /// When everything queued has left, in ps.
    pub busy_until: u64,
    /// When the packet at the head arrives at the far end, in ps. Of no meaning while there is none.
    pub head_arrive: u64,
    /// Bytes that it was given to send, since the run began.
    pub bytes: u64,
    /// Packets that it was given to send, since the run began.
    pub packets: u64,
    /// The packet that arrives next.
    pub head: PacketIndex,
    /// The packet queued last.
    pub tail: PacketIndex,
    /// The next link in the same slot of the timing wheel.
    pub wheel_next: u32,
    /// Where it leads.
    pub far_end: FarEnd,
    /// Which [`Profile`] it has.
    pub profile: u16,
    /// Where it stands: a [`crate::Tier`] as a number.
    pub tier: u8,
    /// Whether admission needs more than its profile: see [`Special`] and [`super::credit_port::CreditPort`].
    pub is_special: bool,
    /// Which [`Special`] it has.
    pub special: u32,
}

/// What a link leads to: what a packet that arrives there needs of a switch at once.
#[derive(Debug, Clone, Copy)]
pub struct FarEnd {
    /// The switch, or [`FarEnd::HOST`] if it is none.
    pub switch: u32,
    /// The switch's first link.
    pub first_link: u32,
    /// The switch's rack, or `u16::MAX` if it has no hosts.
    pub rack: u16,
}

impl FarEnd {
    /// No switch.
    pub const HOST: u32 = u32::MAX;
    /// A host.
    pub const AT_HOST: Self = Self { switch: Self::HOST, first_link: 0, rack: 0 };
}

impl Link {
    /// An empty link.
    pub const fn idle(far_end: FarEnd, profile: u16, tier: u8) -> Self {
        Self {
            busy_until: 0,
            head_arrive: 0,
            bytes: 0,
            packets: 0,
            head: NO_PACKET,
            tail: NO_PACKET,
            wheel_next: u32::MAX,
            far_end,
            profile,
            tier,
            is_special: false,
            special: NO_SPECIAL,
        }
    }

    /// The time until everything queued has left, in ps.
    #[inline]
    pub const fn backlog_ps(&self, now_ps: u64) -> u64 {
        self.busy_until.saturating_sub(now_ps)
    }
}

/// What links have in common: few differ, so all profiles stay in the nearest cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    ps_per_byte: PicosPerByte,
    /// The time that preamble and gap take, in ps.
    overhead_ps: u64,
    /// Propagation, in ps.
    pub delay_ps: u64,
    /// A packet that would make the backlog longer than this is dropped, in ps.
    pub limit_ps: u64,
    /// A packet that finds a longer backlog than this is marked, in ps.
    pub mark_ps: u64,
    bytes_per_ps: f64,
    /// The rate.
    pub rate: Rate,
}

impl Profile {
    /// The profile of a link in this condition.
    pub fn new(spec: &LinkSpec, condition: &Condition, overhead_bytes: u16) -> Self {
        let ps_per_byte = condition.rate.ps_per_byte();
        let ps = |bytes: u64| condition.rate.service(Bytes::new(bytes)).as_ps();
        Self {
            ps_per_byte,
            overhead_ps: ps_per_byte.service(overhead_bytes).as_ps(),
            delay_ps: condition.delay.as_ps(),
            limit_ps: match spec.queue.limit {
                Limit::AtMost(Threshold::Bytes(bytes)) => ps(bytes),
                _ => u64::MAX,
            },
            mark_ps: match spec.queue.marking {
                Marking::Step(Threshold::Bytes(bytes)) => ps(bytes),
                _ => u64::MAX,
            },
            bytes_per_ps: condition.rate.as_bps() as f64 / 8e12,
            rate: condition.rate,
        }
    }

    /// How long a packet of `wire_bytes` is in service, in ps.
    #[inline]
    pub const fn service_ps(&self, wire_bytes: u16) -> u64 {
        self.ps_per_byte.service(wire_bytes).as_ps() + self.overhead_ps
    }

    /// How many bytes leave in `ps`, to the nearest one.
    #[inline]
    pub fn bytes_in(&self, ps: u64) -> u64 {
        (ps as f64 * self.bytes_per_ps + 0.5) as u64
    }

    /// The longest that a packet of `wire_bytes` is on the link without waiting.
    pub fn transit(&self, wire_bytes: u16) -> Span {
        Span::from_ps(self.service_ps(wire_bytes) + self.delay_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_one_cache_line() {
        assert_eq!(size_of::<Link>(), 64);
    }
}
