//! The packet and its fields.

use weft_units::Time;

use crate::{FlowId, HostId, Kind, PacketFlags, PortId};

/// An explicit route: the choices to make at the switches ahead, as the digits of one number. A
/// switch with n next hops takes the one numbered `label % n` and passes on `label / n`. Any label
/// is a valid route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Route(u16);

impl Default for Route {
    fn default() -> Self {
        Self::ANY
    }
}

impl Route {
    /// No route is prescribed: the switches choose.
    pub const ANY: Self = Self(u16::MAX);
    /// One more than the largest label.
    pub const LABELS: u32 = u16::MAX as u32;

    /// The route with this label, which must be below [`Route::LABELS`].
    #[inline]
    pub const fn label(label: u16) -> Self {
        debug_assert!(label < u16::MAX);
        Self(label)
    }

    /// Path label, if this is an explicit route.
    pub const fn as_label(self) -> Option<u16> {
        if self.0 == Self::ANY.0 { None } else { Some(self.0) }
    }

    /// Takes the next digit: which of `choices` next hops to take. `None` if no route is
    /// prescribed.
    #[inline]
    pub fn next_hop(&mut self, choices: usize) -> Option<usize> {
        if *self == Self::ANY {
            return None;
        }
        let choices = choices as u16;
        let digit = self.0 % choices;
        self.0 /= choices;
        Some(digit as usize)
    }
}

/// Segments `first .. first + count` beyond the cumulative acknowledgement have arrived (RFC 2018).
/// Empty if `count` is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct SackBlock {
    // In this order a block lies in memory as the word that a packet has of it.
    /// Segments in the block.
    pub count: u16,
    /// Segments from the cumulative acknowledgement to the block.
    pub first: u16,
}

impl SackBlock {
    /// A receive window: segments beyond the cumulative acknowledgement that may be sent. An
    /// acknowledgement that offers one has it in place of its last block. It is an empty block, so
    /// whoever reads blocks passes over it.
    pub const fn of_window(segments: u16) -> Self {
        Self { first: segments, count: 0 }
    }
}

/// A packet, in 64 bytes.
///
/// `seq` counts segments: on [`Kind::Data`] the segment's number in its flow, on [`Kind::Ack`] the
/// number of the next segment that the receiver waits for. A transport cuts a flow into segments of
/// one MSS, the last one shorter.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// When it reaches the far end of the link that it is on. Written by the fabric. At the host
    /// that got it: [`Packet::arrived_at`].
    pub arrive: Time,
    /// When its transport sent it; on an acknowledgement, the `sent` of the packet that caused it
    /// (RFC 7323).
    pub sent: Time,
    /// The packet behind it on the same link. Written by the fabric.
    pub next: u32,
    /// The flow that it belongs to; of no meaning on [`Kind::Control`] and [`Kind::Message`].
    pub flow: FlowId,
    /// Segment number, or next expected segment.
    pub seq: u32,
    /// Hash of the five-tuple (or flow label) that ECMP hashes further. A scheme at the edge may
    /// change it.
    pub entropy: u32,
    /// The scheme's own header bits.
    pub scheme: u32,
    /// The host that sent it.
    pub src: HostId,
    /// The host that it goes to.
    pub dst: HostId,
    /// Bytes that it takes on a link, all headers included.
    pub wire_bytes: u16,
    /// The explicit route, if it has one.
    pub route: Route,
    /// Kind of the packet.
    pub kind: Kind,
    /// ECN, retransmission, last segment, class.
    pub flags: PacketFlags,
    /// The choices that switches made for it, as one number: see [`Packet::note_choice`]. Written
    /// by the fabric.
    pub trail: u16,
    body: Body,
}

/// The last 16 bytes: data packets collect waiting times, acknowledgements carry SACK blocks,
/// messages what follows.
#[derive(Debug, Clone, Copy, Default)]
#[repr(transparent)]
struct Body([u32; 4]);

impl Packet {
    /// Kind and class of the flow as one number below 128: eight times the kind, and the class.
    /// Both are of one word, which is turned around: that is fewer instructions than to put them
    /// together.
    #[inline]
    pub const fn kind_and_class(&self) -> u8 {
        (u16::from_le_bytes([self.kind as u8, self.flags.bits()]).rotate_left(3) & 127) as u8
    }

    /// Whether it tells its sender of congestion marks: [`PacketFlags::ECE`] on a packet that goes
    /// to the sender of its flow.
    #[inline]
    pub const fn is_echo(&self) -> bool {
        self.kind.is_for_sender() && self.flags.has(PacketFlags::ECE)
    }

    /// Notes of a data packet that reached its host that the next segment of its flow follows at
    /// once, and was joined to it. There is no bit left for that, so its arrival is turned around:
    /// no packet arrives later than it is read. After a quarter of what a [`Time`] can tell, 53
    /// days, nothing is joined any more.
    pub fn join(&mut self) {
        if self.arrive.as_ps() <= u64::MAX / 4 {
            self.arrive = Time::from_ps(!self.arrive.as_ps());
        }
    }

    /// Whether the next segment was joined to a packet that its host reads now.
    #[inline]
    pub fn is_joined(&self, now: Time) -> bool {
        self.arrive > now
    }

    /// When a packet that its host reads now had reached it.
    #[inline]
    pub fn arrived_at(&self, now: Time) -> Time {
        if self.is_joined(now) { Time::from_ps(!self.arrive.as_ps()) } else { self.arrive }
    }

    /// How many SACK blocks fit in an acknowledgement: four, as without the time stamp option (RFC
    /// 2018 §3).
    pub const SACK_BLOCKS: usize = 4;
    /// Waiting times are kept in units of 2^8 ps, in 31 bits: up to 0.55 s a tier. The lowest bit
    /// of a word is no time: of the first word it is [`Packet::is_ack_clocked`].
    const WAIT_SHIFT: u32 = 8;
    const MOST_WAIT: u64 = (u32::MAX - 1) as u64;
    /// The least that Ethernet carries.
    pub const LEAST_WIRE_BYTES: u16 = 64;

    /// A scheme's own packet, of the least size, with these header bits.
    pub fn control(scheme: u32) -> Self {
        Self { kind: Kind::Control, wire_bytes: Self::LEAST_WIRE_BYTES, scheme, ..Self::default() }
    }

    /// The trail of more choices than 16 bits tell apart.
    pub const LONG_TRAIL: u16 = u16::MAX;

    /// Notes in its trail that a switch chose `port`. `base` is the same for all packets of a
    /// fabric: one more than the most ports that any of its switches has.
    ///
    /// A trail is a number to this base, with a digit a choice; no digit is 0. So between two
    /// hosts, and as long as routes stay, equal trails mean equal paths, but for
    /// [`Packet::LONG_TRAIL`]: that is where all ends that does not fit. With one choice on the way
    /// everything fits, with two choices switches may have 254 ports, with three 39, with four 14.
    #[inline]
    pub fn note_choice(&mut self, port: PortId, base: u32) {
        let longer = u64::from(self.trail) * u64::from(base) + u64::from(port.0) + 1;
        self.trail = longer.min(u64::from(Self::LONG_TRAIL)) as u16;
    }

    /// Adds to the time that it waited in queues of `tier` (0 to 3).
    #[inline]
    pub fn add_wait_ps(&mut self, tier: usize, ps: u64) {
        let wait = &mut self.body.0[tier & 3];
        *wait = (u64::from(*wait) + (ps >> Self::WAIT_SHIFT << 1)).min(Self::MOST_WAIT) as u32;
    }

    /// Corrects the time that it waited in queues of `tier` (0 to 3): `from_ps`, which was added
    /// before, becomes `to_ps`.
    pub fn change_wait_ps(&mut self, tier: usize, from_ps: u64, to_ps: u64) {
        let wait = &mut self.body.0[tier & 3];
        *wait = wait.saturating_sub((from_ps >> Self::WAIT_SHIFT << 1).min(Self::MOST_WAIT) as u32);
        self.add_wait_ps(tier, to_ps);
    }

    /// How long it waited in queues of `tier` (0 to 3), in picoseconds, to 256 ps a hop.
    #[inline]
    pub const fn wait_ps(&self, tier: usize) -> u64 {
        ((self.body.0[tier & 3] >> 1) as u64) << Self::WAIT_SHIFT
    }

    /// Notes of a data packet that has waited nowhere so far whether it is ack-clocked: its sender
    /// could send it because an acknowledgement came, and did so at once.
    #[inline]
    pub const fn set_ack_clocked(&mut self, is_ack_clocked: bool) {
        self.body.0[0] = is_ack_clocked as u32;
    }

    /// Whether a data packet is ack-clocked.
    #[inline]
    pub const fn is_ack_clocked(&self) -> bool {
        self.body.0[0] & 1 == 1
    }

    /// The SACK blocks of an acknowledgement; empty ones mean nothing.
    pub fn sack_blocks(&self) -> [SackBlock; Self::SACK_BLOCKS] {
        self.body.0.map(|word| SackBlock { first: (word >> 16) as u16, count: word as u16 })
    }

    /// The window that an acknowledgement offers ([`SackBlock::of_window`]), in segments; 0 if it
    /// offers none.
    pub fn receive_window(&self) -> u16 {
        match self.sack_blocks() {
            [.., SackBlock { first, count: 0 }] => first,
            _ => 0,
        }
    }

    /// Writes the SACK blocks of an acknowledgement.
    pub fn set_sack_blocks(&mut self, blocks: [SackBlock; Self::SACK_BLOCKS]) {
        self.body.0 = blocks.map(|block| u32::from(block.first) << 16 | u32::from(block.count));
    }
}

/// Body of a [`Kind::Message`], beside the fields that all packets have. A [`Kind::CreditRequest`]
/// may have contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageBody {
    /// Switches that it may still pass, itself counted; 0 for no limit.
    pub hop_limit: u8,
    /// The switch and its port where the hop limit expired.
    pub expired: Option<(u32, u16)>,
    /// Where its contents are kept: any number, or `None`.
    pub contents: Option<u32>,
}

impl Packet {
    const EXPIRED: u32 = 1 << 8;
    const HAS_CONTENTS: u32 = 1 << 9;
    const PORT_SHIFT: u32 = 16;

    /// Where the contents of a packet that may have any are kept.
    pub fn contents(&self) -> Option<u32> {
        matches!(self.kind, Kind::Message | Kind::CreditRequest)
            .then(|| self.message_body().contents)
            .flatten()
    }

    /// Reads the body of a message.
    pub fn message_body(&self) -> MessageBody {
        let [word, switch, contents, _] = self.body.0;
        MessageBody {
            hop_limit: word as u8,
            expired: (word & Self::EXPIRED != 0).then_some((switch, (word >> Self::PORT_SHIFT) as u16)),
            contents: (word & Self::HAS_CONTENTS != 0).then_some(contents),
        }
    }

    /// Writes the body of a message.
    pub fn set_message_body(&mut self, body: MessageBody) {
        let (switch, port) = body.expired.unwrap_or_default();
        let flags = if body.expired.is_some() { Self::EXPIRED } else { 0 }
            | if body.contents.is_some() { Self::HAS_CONTENTS } else { 0 };
        let word = u32::from(body.hop_limit) | flags | u32::from(port) << Self::PORT_SHIFT;
        self.body.0 = [word, switch, body.contents.unwrap_or_default(), 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn a_message_body_survives_the_wire() {
        for expired in [None, Some((0, 0)), Some((u32::MAX, u16::MAX))] {
            for contents in [None, Some(0), Some(u32::MAX)] {
                for hop_limit in [0, 1, 255] {
                    let body = MessageBody { hop_limit, expired, contents };
                    let mut packet = Packet::default();
                    packet.set_message_body(body);
                    assert_eq!(packet.message_body(), body);
                }
            }
        }
    }

    fn trail(ports: &[u16], base: u32) -> u16 {
        let mut packet = Packet::default();
        for &port in ports {
            packet.note_choice(PortId(port), base);
        }
        packet.trail
    }

    #[test]
    fn trails_of_all_paths_differ_up_to_the_bounds_and_say_so_beyond() {
        // Ports and choices: as many as fit, and the two that once met (base 61: 61 x 1 + 1 = 62,
        // one choice of port 61).
        for (ports, choices) in [(65_534u16, 1), (254, 2), (39, 3), (14, 4), (128, 2)] {
            let base = u32::from(ports) + 1;
            let mut seen = vec![false; usize::from(Packet::LONG_TRAIL)];
            let mut paths = vec![0u16];
            for _ in 0..choices {
                let longer = |&trail: &u16| {
                    (0..ports).map(move |port| {
                        let mut packet = Packet { trail, ..Packet::default() };
                        packet.note_choice(PortId(port), base);
                        packet.trail
                    })
                };
                paths = paths.iter().flat_map(longer).collect();
                for &trail in &paths {
                    assert!(trail < Packet::LONG_TRAIL, "{ports} ports, {choices} choices");
                    assert!(!std::mem::replace(&mut seen[usize::from(trail)], true), "two paths are {trail}");
                }
            }
        }
        assert_ne!(trail(&[0, 0], 129), trail(&[61], 129));
        assert_eq!(trail(&[39, 39, 39], 41), Packet::LONG_TRAIL);
        assert_eq!(trail(&[39, 39, 39, 0], 41), Packet::LONG_TRAIL, "and so it stays");
    }

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(size_of::<Packet>(), 64);
        assert_eq!(align_of::<Packet>(), 64);
    }

    #[test]
    fn a_route_is_read_digit_by_digit() {
        // Three choices at the first switch, four at the second: label 7 = 1 + 3 x 2.
        let mut route = Route::label(7);
        assert_eq!(route.next_hop(3), Some(1));
        assert_eq!(route.next_hop(4), Some(2));
        assert_eq!(route.next_hop(5), Some(0));
        let mut free = Route::ANY;
        assert_eq!(free.next_hop(3), None);
    }

    #[test]
    fn kind_and_class_are_one_number_whatever_else_is_flagged() {
        let mut packet = Packet::default();
        for kind in Kind::ALL {
            for class in Class::ALL {
                packet.kind = kind;
                packet.flags = PacketFlags::of_class(class).with(PacketFlags::CE).with(PacketFlags::LAST);
                assert_eq!(packet.kind_and_class(), kind as u8 * 8 + class as u8);
            }
        }
    }

    #[test]
    fn an_echo_and_a_reduced_window_are_told_apart_by_the_way_that_a_packet_goes() {
        for kind in Kind::ALL {
            let mut packet = Packet { kind, ..Packet::default() };
            assert!(!packet.is_echo());
            packet.flags.set(PacketFlags::ECE);
            assert_eq!(packet.is_echo(), kind.is_for_sender());
        }
    }

    #[test]
    fn a_packet_that_is_joined_knows_when_it_arrived() {
        let last = u64::MAX / 4;
        for arrive in [0, 1, 1_000_000, last, last + 1, u64::MAX - 1].map(Time::from_ps) {
            for now in [arrive, Time::from_ps(arrive.as_ps().saturating_add(5))] {
                let mut packet = Packet { arrive, ..Packet::default() };
                assert_eq!((packet.is_joined(now), packet.arrived_at(now)), (false, arrive));
                packet.join();
                assert_eq!(packet.arrived_at(now), arrive);
                assert_eq!(packet.is_joined(now), arrive.as_ps() <= last);
            }
        }
    }

    #[test]
    fn sack_blocks_survive_the_wire() {
        let blocks =
            [(1, 2), (9, 65_535), (0, 0), (65_535, 1)].map(|(first, count)| SackBlock { count, first });
        let mut packet = Packet::default();
        packet.set_sack_blocks(blocks);
        assert_eq!(packet.sack_blocks(), blocks);
    }

    #[test]
    fn a_window_is_no_block() {
        let mut packet = Packet::default();
        assert_eq!(packet.receive_window(), 0);
        packet.set_sack_blocks(
            [(1, 2), (9, 3), (0, 0), (7, 1)].map(|(first, count)| SackBlock { count, first }),
        );
        assert_eq!(packet.receive_window(), 0, "four blocks leave no room");
        let blocks = [SackBlock { first: 4, count: 5 }, SackBlock::default(), SackBlock::default()];
        let [a, b, c] = blocks;
        packet.set_sack_blocks([a, b, c, SackBlock::of_window(65_535)]);
        assert_eq!(packet.receive_window(), 65_535);
        let told: Vec<_> = packet.sack_blocks().into_iter().filter(|block| block.count > 0).collect();
        assert_eq!(told, blocks[..1]);
    }

    #[test]
    fn a_wait_that_turns_out_otherwise_is_booked_as_if_it_had_been_known() {
        let mut packet = Packet::default();
        packet.add_wait_ps(2, 300_001);
        packet.add_wait_ps(2, 500_002);
        packet.change_wait_ps(2, 500_002, 70_003);
        let mut known = Packet::default();
        known.add_wait_ps(2, 300_001);
        known.add_wait_ps(2, 70_003);
        assert_eq!(packet.wait_ps(2), known.wait_ps(2));
    }

    #[test]
    fn waits_add_up_by_tier_and_saturate() {
        let mut packet = Packet::default();
        packet.add_wait_ps(1, 256_000);
        packet.add_wait_ps(1, 256_000);
        packet.add_wait_ps(2, u64::MAX);
        packet.add_wait_ps(2, u64::MAX);
        assert_eq!([0, 1, 3].map(|tier| packet.wait_ps(tier)), [0, 512_000, 0]);
        assert_eq!(packet.wait_ps(2), u64::from(u32::MAX >> 1) << 8);
    }

    #[test]
    fn waits_and_the_note_of_an_ack_clocked_packet_do_not_touch() {
        for is_ack_clocked in [false, true] {
            let mut packet = Packet::default();
            packet.set_ack_clocked(is_ack_clocked);
            packet.add_wait_ps(0, 500_000);
            packet.add_wait_ps(0, 300_001);
            packet.change_wait_ps(0, 300_001, 256);
            packet.add_wait_ps(1, 768);
            assert_eq!(packet.is_ack_clocked(), is_ack_clocked);
            assert_eq!([0, 1].map(|tier| packet.wait_ps(tier)), [(500_000 >> 8 << 8) + 256, 768]);
        }
    }
}
