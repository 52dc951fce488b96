//! A link while the run goes on: its output queue and its wire are one list of packets.
//!
//! A FIFO link with a fixed rate knows when a packet departs the moment it is queued, so there is
//! no event for it, and the backlog at any instant is the time until everything queued has left.

use std::collections::BTreeMap;
use std::ops::Index;

use weft_topology::{Condition, LinkSpec, Topology};
use weft_units::{PicosPerByte, Rate, Span};

use super::admission::Thresholds;
use super::pool::{NO_PACKET, PacketIndex};

/// The special rules of a link that has none.
pub const NO_SPECIAL: u32 = u32::MAX;

/// One direction of a cable: 64 bytes.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Link {
    /// When everything queued has left, in ps.
    pub busy_until: u64,
    /// When the packet at the head arrives at the far end, in ps. Of no meaning while there is
    /// none.
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
    /// The fields of its [`FarEnd`], which would not fit as one.
    far_switch: u32,
    far_first: u32,
    far_rack: u16,
    /// Where it stands: a [`crate::Tier`] as a number.
    pub tier: u8,
    /// Kind of the port that feeds the link.
    pub port: PortKind,
    /// Which [`Profile`] it has.
    pub profile: u32,
    /// Which [`super::special::Special`] it has.
    pub special: u32,
}

/// Kind of a link's port, beyond one queue that its profile describes. Of several kinds the last
/// one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PortKind {
    /// No more than that.
    Plain,
    /// Packets that it sends may leave this part: see [`super::partition`].
    Leaving,
    /// It has rules of its own, or is captured: see [`super::special::Special`].
    Special,
    /// It has several classes: see [`super::scheduled_port::ScheduledPort`].
    Scheduled,
    /// Several classes, and nobody needs to know at once when some of the waiting packets are sent.
    Waiting,
}

/// Far end of a link: facts on a switch that a packet that arrives there needs at once.
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
    /// No rack: the switch has no hosts.
    pub const NO_RACK: u16 = u16::MAX;
    /// A host.
    pub const AT_HOST: Self = Self { switch: Self::HOST, first_link: 0, rack: 0 };
}

impl Link {
    /// An empty link.
    pub const fn idle(far_end: FarEnd, profile: u32, tier: u8) -> Self {
        Self {
            busy_until: 0,
            head_arrive: 0,
            bytes: 0,
            packets: 0,
            head: NO_PACKET,
            tail: NO_PACKET,
            wheel_next: u32::MAX,
            far_switch: far_end.switch,
            far_first: far_end.first_link,
            far_rack: far_end.rack,
            tier,
            port: PortKind::Plain,
            profile,
            special: NO_SPECIAL,
        }
    }

    /// Makes its port one of this kind, too.
    pub fn add_kind(&mut self, kind: PortKind) {
        self.port = self.port.max(kind);
    }

    /// Where it leads.
    #[inline]
    pub const fn far_end(&self) -> FarEnd {
        FarEnd { switch: self.far_switch, first_link: self.far_first, rack: self.far_rack }
    }

    /// Whether it leads to a host.
    #[inline]
    pub const fn leads_to_host(&self) -> bool {
        self.far_switch == FarEnd::HOST
    }

    /// The time until everything queued has left, in ps.
    #[inline]
    pub const fn backlog_ps(&self, now_ps: u64) -> u64 {
        self.busy_until.saturating_sub(now_ps)
    }
}

/// Properties that links have in common: few differ, so all profiles stay in the nearest cache.
/// Each packet needs the first line; the next profile is found by a shift.
#[derive(Debug, Clone)]
#[repr(C, align(128))]
pub struct Profile {
    ps_per_byte: PicosPerByte,
    /// The time that preamble and gap take, in ps.
    overhead_ps: u64,
    /// Propagation, in ps.
    pub delay_ps: u64,
    /// Limit and marks of the queue, in bytes. Of no meaning on a port with several queues.
    pub thresholds: Thresholds,
    bytes_per_ps: f64,
    /// The rate of the wire.
    pub rate: Rate,
    /// The rate at which full packets leave the queue: by it, a time is so many bytes that wait.
    pub drain: Rate,
    /// Least time of a packet at the port, in ps; 0 on a port that is no more than a queue that
    /// this describes.
    least_ps: u64,
}

/// The rate of packets of 1,500 bytes that take so long each, in ps.
fn rate_of_packets(least_ps: u64) -> Rate {
    const BITS_PS: u128 = 8 * 1_500 * 1_000_000_000_000;
    let bps = BITS_PS.checked_div(u128::from(least_ps)).and_then(|bps| u64::try_from(bps).ok());
    Rate::from_bps(bps.unwrap_or(u64::MAX))
}

/// Key that tells one profile of a fabric from another: rate in bit/s, delay and least service in
/// ps, thresholds.
type ProfileKey = (u64, u64, u64, Thresholds);

/// The profiles that links of a fabric have or had.
#[derive(Debug, Default)]
pub struct Profiles {
    all: Vec<Profile>,
    numbers: BTreeMap<ProfileKey, u32>,
}

impl Profiles {
    /// The number of a profile that is there from now on, if it was not before.
    pub fn number_of(&mut self, profile: Profile) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(profile.key()).or_insert(next);
        if number == next {
            self.all.push(profile);
        }
        number
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, Profile> {
        self.all.iter()
    }
}

impl Index<u32> for Profiles {
    type Output = Profile;

    #[inline]
    fn index(&self, number: u32) -> &Profile {
        &self.all[number as usize]
    }
}

impl Profile {
    const fn key(&self) -> ProfileKey {
        (self.rate.as_bps(), self.delay_ps, self.least_ps, self.thresholds)
    }

    /// The profile of a link of this fabric in this condition.
    pub fn new(spec: &LinkSpec, condition: &Condition, topology: &Topology) -> Self {
        let ps_per_byte = condition.rate.ps_per_byte();
        let least_ps = topology.least_service(spec).as_ps();
        let drain = condition.rate.min(rate_of_packets(least_ps));
        Self {
            ps_per_byte,
            overhead_ps: ps_per_byte.service(topology.overhead_bytes).as_ps(),
            least_ps,
            delay_ps: condition.delay.as_ps(),
            thresholds: Thresholds::new(&spec.queue, drain),
            bytes_per_ps: drain.as_bps() as f64 / 8e12,
            drain,
            rate: condition.rate,
        }
    }

    /// How long a packet of `wire_bytes` is in service, in ps.
    #[inline]
    pub fn service_ps(&self, wire_bytes: u16) -> u64 {
        self.wire_ps(wire_bytes).max(self.least_ps)
    }

    /// How long it is on the wire, in ps: its service on a port where nothing else takes time.
    #[inline]
    pub const fn wire_ps(&self, wire_bytes: u16) -> u64 {
        self.ps_per_byte.service(wire_bytes).as_ps() + self.overhead_ps
    }

    /// Whether a packet takes some time of the port, whatever its size.
    pub const fn has_least_service(&self) -> bool {
        self.least_ps > 0
    }

    /// How long a byte takes, exactly.
    #[inline]
    pub const fn pace(&self) -> PicosPerByte {
        self.ps_per_byte
    }

    /// How long one byte is in service, in ps: rounded up where that is no whole number.
    pub const fn byte_ps(&self) -> u64 {
        self.ps_per_byte.service(1).as_ps()
    }

    /// How many bytes leave in `ps`, to the nearest one.
    #[inline]
    pub fn bytes_in(&self, ps: u64) -> u64 {
        // Most queues that somebody looks at are empty, and the conversions are dear.
        if ps == 0 {
            return 0;
        }
        (ps as f64 * self.bytes_per_ps + 0.5) as u64
    }

    /// The longest that a packet of `wire_bytes` is on the link without waiting.
    pub fn transit(&self, wire_bytes: u16) -> Span {
        Span::from_ps(self.service_ps(wire_bytes) + self.delay_ps)
    }
}

/// The packet that was in service when its link changed its rate: it is sent to its end at the old
/// one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finishing {
    /// When it has been sent, in ps.
    until_ps: u64,
    rate: Rate,
}

impl Finishing {
    /// The link had this rate until now, and a packet is in service until `until_ps`, if that is
    /// later. Returns from when on the link sends at the new rate, in ps.
    pub const fn change(&mut self, now_ps: u64, until_ps: u64, rate: Rate) -> u64 {
        if until_ps <= now_ps {
            return now_ps;
        }
        // It may have been in service at an earlier change already.
        if self.until_ps != until_ps {
            *self = Self { until_ps, rate };
        }
        until_ps
    }

    /// How many bytes of the packet that is in service until `until_ps` are to be sent yet, to the
    /// nearest one: what a port takes beyond the time on the wire comes first.
    pub fn unsent(&self, until_ps: u64, now_ps: u64, profile: &Profile) -> u64 {
        let rate = if self.until_ps == until_ps { self.rate } else { profile.rate };
        (until_ps.saturating_sub(now_ps) as f64 * (rate.as_bps() as f64 / 8e12) + 0.5) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_one_cache_line() {
        assert_eq!(size_of::<Link>(), 64);
    }
    #[test]
    fn more_conditions_than_16_bits_can_count_keep_their_own_rates() {
        let spec: weft_topology::FabricSpec = toml::from_str("kind = 'leaf-spine'").expect("a fabric");
        let fabric = spec.build(1, std::path::Path::new(".")).expect("a fabric");
        let link = &fabric.topology.links[0];
        let mut profiles = Profiles::default();
        let rate = |number: u32| Rate::from_bps(1_000_000 + u64::from(number));
        for number in 0..70_000 {
            let condition = Condition { rate: rate(number), ..link.condition };
            assert_eq!(profiles.number_of(Profile::new(link, &condition, &fabric.topology)), number);
        }
        assert!((0..70_000).all(|number| profiles[number].rate == rate(number)));
        let again = Condition { rate: rate(66_000), ..link.condition };
        assert_eq!(
            profiles.number_of(Profile::new(link, &again, &fabric.topology)),
            66_000,
            "equal ones are one"
        );
        assert_eq!(profiles.iter().count(), 70_000);
    }
}
