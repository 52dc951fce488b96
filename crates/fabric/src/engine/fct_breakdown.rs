//! Where a flow's time went, from its start until its receiver had the last byte.
//!
//! One of the flow's data packets is *followed* at a time: the first one that is sent after the one
//! before has arrived. While a packet is followed, the flow's time is what that packet goes
//! through: queues, by tier, and the way itself. Between the arrival of one and the sending of the
//! next, the flow waits at its sender. The packet that completes the flow is always the last one of
//! these, so the parts add up to the completion time.

use weft_packet::Packet;
use weft_topology::Tier;
use weft_units::{Span, Time};

/// The parts of a flow's completion time; together they are the completion time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FctBreakdown {
    /// Serialisation, propagation and the fixed delays of nodes; at least the ideal completion
    /// time, without pauses.
    pub transmission: Span,
    /// In queues, by [`crate::Tier`], behind other flows.
    pub waits: [Span; 4],
    /// In a reordering buffer, and behind a late segment at the end.
    pub reordering: Span,
    /// Until a retransmission timer expired.
    pub timeouts: Span,
    /// Until an acknowledgement came that let the sender go on at once: its way back, in queues
    /// too, and the receiver's delay.
    pub acknowledgement: Span,
    /// Until the sender was allowed to send, and had something to: for the handshake, its own pace,
    /// recovery from losses, and applications that pause.
    pub window: Span,
    /// Until ports that had to pause could go on: in a queue, or at an RDMA card whose cable was
    /// paused.
    pub pause: Span,
    /// Where the packet was that a pause kept longest of those that were followed: in a queue of
    /// this [`crate::Tier`].
    pub paused_tier: u8,
    /// Path record of that packet, as in [`FctBreakdown::trails`].
    pub paused_trail: u16,
    /// By which ways those of the packets that were followed went that waited longest in queues of
    /// edge switches on the way up, and of all other switches: see
    /// [`weft_packet::Packet::note_choice`]. 0 for none, or without a choice.
    pub trails: [u16; 2],
}

/// The tiers of [`FctBreakdown::trails`]: of the others it is known which link they are.
const OF_TRAILS: [Tier; 2] = [Tier::Leaf, Tier::Spine];

/// The packet that waited longest in queues of a tier, of those that were followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Longest {
    /// In units of 2^8 ps, as packets have it.
    wait: u32,
    trail: u16,
}

impl LongestPause {
    fn note(&mut self, packet: &Packet, Paused { before, tiers: [host, others @ ..] }: Paused) {
        for (tier, paused) in (0..).zip([before.saturating_add(host)].into_iter().chain(others)) {
            if paused > self.paused {
                *self = Self { paused, trail: packet.trail, tier };
            }
        }
    }
}

impl Longest {
    fn note(&mut self, packet: &Packet, tier: Tier) {
        let wait = (packet.wait_ps(tier as usize) >> 8) as u32;
        if wait > self.wait {
            *self = Self { wait, trail: packet.trail };
        }
    }
}

/// The packet that a pause kept longest, of those that were followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LongestPause {
    /// In units of 2^8 ps.
    paused: u32,
    trail: u16,
    tier: u8,
}

/// How long pauses kept a data packet, in units of 2^8 ps, as packets have their waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paused {
    /// Before it was sent: its queue pair was stopped.
    pub before: u32,
    /// In queues, by [`crate::Tier`]: of its waits.
    pub tiers: [u32; 4],
}

/// Parts of the time of followed packets, in picoseconds: all that the receiving end knows of
/// [`FctBreakdown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    waits: [u64; 4],
    held: u64,
    /// The time that nothing was under way, before packets that are ack-clocked, and before all
    /// others.
    acknowledgement: u64,
    idle: u64,
    /// Part of their waits, and of the time that nothing was under way, that pauses caused: it is
    /// not counted there.
    paused: u64,
    /// By tier, as [`OF_TRAILS`].
    longest: [Longest; 2],
    longest_pause: LongestPause,
}

/// The packets of a flow that are followed, as the receiving end sees them.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct FollowedPackets {
    /// When the packet that was followed last arrived, and the one before it; at first the flow's
    /// start.
    until: Time,
    before: Time,
    start: Time,
    /// Parts of the time until then.
    parts: Parts,
    parts_before: Parts,
}

impl Parts {
    /// Adds the time from `from` until a packet was sent, and what it went through until `now`.
    fn add(&mut self, packet: &Packet, paused: Paused, from: Time, now: Time) {
        let idle = packet.sent.since(from).as_ps();
        let stopped = (u64::from(paused.before) << 8).min(idle);
        let reason = if packet.is_ack_clocked() { &mut self.acknowledgement } else { &mut self.idle };
        *reason += idle - stopped;
        self.paused += stopped;
        self.held += now.since(packet.arrived_at(now)).as_ps();
        for (tier, sum) in self.waits.iter_mut().enumerate() {
            let wait = packet.wait_ps(tier);
            let stopped = (u64::from(paused.tiers[tier]) << 8).min(wait);
            *sum += wait - stopped;
            self.paused += stopped;
        }
        self.longest_pause.note(packet, paused);
        for (longest, tier) in self.longest.iter_mut().zip(OF_TRAILS) {
            longest.note(packet, tier);
        }
    }

    /// The parts, scaled to a part of the time.
    fn scaled(&self, part: Span, whole: Span) -> Self {
        let whole = u128::from(whole.as_ps().max(1));
        let scale = |value: u64| (u128::from(value) * u128::from(part.as_ps()) / whole) as u64;
        Self {
            waits: self.waits.map(scale),
            held: scale(self.held),
            acknowledgement: scale(self.acknowledgement),
            idle: scale(self.idle),
            paused: scale(self.paused),
            ..*self
        }
    }
}

impl FollowedPackets {
    /// So many bytes at its beginning are what every packet needs.
    pub const HOT_BYTES: usize = size_of::<Time>();

    /// Nothing was sent so far.
    pub const fn new(start: Time) -> Self {
        let longest = [Longest { wait: 0, trail: 0 }; 2];
        let longest_pause = LongestPause { paused: 0, trail: 0, tier: 0 };
        let parts =
            Parts { waits: [0; 4], held: 0, acknowledgement: 0, idle: 0, paused: 0, longest, longest_pause };
        Self { start, until: start, before: start, parts, parts_before: parts }
    }

    /// A data packet comes to the receiver's transport. How long pauses kept it is asked if it is
    /// followed.
    #[inline]
    pub fn note(&mut self, packet: &Packet, now: Time, paused: impl FnOnce() -> Paused) {
        if packet.sent >= self.until {
            self.follow(packet, paused(), now);
        }
    }

    fn follow(&mut self, packet: &Packet, paused: Paused, now: Time) {
        (self.parts_before, self.before) = (self.parts, self.until);
        self.parts.add(packet, paused, self.until, now);
        self.until = now;
    }

    /// The flow is complete. `last` is the packet that completed it, unless a timer did; `stall` is
    /// how long it was the only one to be waited for, if it was late, and `paused` how long pauses
    /// kept it. Returns the parts, and from when on they are told.
    pub fn complete(
        mut self,
        last: Option<&Packet>,
        now: Time,
        stall: Span,
        paused: impl FnOnce() -> Paused,
    ) -> (Parts, Time) {
        match last {
            // It was followed, or came out of a buffer with one that was.
            _ if self.until == now => {}
            Some(packet) => self.end_with(packet, paused(), now),
            None => self.parts.held += now.since(self.until).as_ps(),
        }
        if let Some(packet) = last {
            self.parts.call_late(packet, stall.as_ps());
        }
        (self.parts, self.start)
    }

    /// The packet that completes the flow takes the place of the one that was followed while it was
    /// on its way.
    fn end_with(&mut self, packet: &Packet, paused: Paused, now: Time) {
        let (mut parts, mut from) = (self.parts_before, self.before);
        // The first packet to come of a flow that waited for others may not be the first that was
        // sent.
        self.start = self.start.min(packet.sent);
        if packet.sent < from {
            // Sent before the last two: what came before it is taken for even.
            parts = parts.scaled(packet.sent.since(self.start), from.since(self.start));
            from = packet.sent;
        }
        parts.add(packet, paused, from, now);
        self.parts = parts;
    }
}

impl Parts {
    /// With so much more time at the beginning, in which nothing was under way.
    pub const fn after(mut self, more: Span) -> Self {
        self.idle += more.as_ps();
        self
    }

    /// Moves `stall`, the part of a late packet's waits that others did not need, to `held`.
    fn call_late(&mut self, packet: &Packet, stall: u64) {
        let own: [u64; 4] = std::array::from_fn(|tier| packet.wait_ps(tier).min(self.waits[tier]));
        let mut late = own;
        take(&mut late, stall);
        for tier in 0..4 {
            let cut = own[tier] - late[tier];
            self.waits[tier] -= cut;
            self.held += cut;
        }
    }

    /// The parts of `total`, the flow's completion time; `timed_out` is how long the sender's
    /// timers ran that expired before its end.
    pub fn breakdown(mut self, total: Span, timed_out: Span, ideal: Span) -> FctBreakdown {
        // A timer that expires makes its sender send, so the time before ack-clocked packets comes
        // last.
        let mut timeouts = timed_out.as_ps().min(self.idle + self.acknowledgement);
        let of_idle = timeouts.min(self.idle);
        self.idle -= of_idle;
        self.acknowledgement -= timeouts - of_idle;
        let waited = self.waits.iter().sum::<u64>();
        let rest = self.held + self.acknowledgement + self.idle + self.paused + timeouts;
        let transmission = total.as_ps().saturating_sub(waited + rest);
        // A flow's packets wait behind its own: that is the flow's serialisation. It happens at the
        // host first.
        let mut missing = ideal.as_ps().saturating_sub(transmission);
        let [host, fabric @ ..] = &mut self.waits;
        for parts in [std::slice::from_mut(host), fabric] {
            missing -= take(parts, missing);
        }
        let mut sender = [self.acknowledgement, self.idle];
        missing -= take(&mut sender, missing);
        [self.acknowledgement, self.idle] = sender;
        for part in [&mut self.held, &mut timeouts, &mut self.paused] {
            missing -= take(std::slice::from_mut(part), missing);
        }
        let rest = self.held + self.acknowledgement + self.idle + self.paused + timeouts;
        let rest = rest + self.waits.iter().sum::<u64>();
        FctBreakdown {
            transmission: Span::from_ps(total.as_ps().saturating_sub(rest)),
            waits: self.waits.map(Span::from_ps),
            reordering: Span::from_ps(self.held),
            timeouts: Span::from_ps(timeouts),
            acknowledgement: Span::from_ps(self.acknowledgement),
            window: Span::from_ps(self.idle),
            trails: self.longest.map(|longest| longest.trail),
            pause: Span::from_ps(self.paused),
            paused_tier: self.longest_pause.tier,
            paused_trail: self.longest_pause.trail,
        }
    }
}

/// Takes `amount` off `parts`, from each in proportion, as far as it is there. Returns how much was
/// taken.
fn take(parts: &mut [u64], amount: u64) -> u64 {
    let sum = parts.iter().sum::<u64>();
    let amount = amount.min(sum);
    if amount == 0 {
        return 0;
    }
    let (wanted, mut taken) = (u128::from(amount), 0);
    for part in parts.iter_mut() {
        let cut = (u128::from(*part) * wanted / u128::from(sum)) as u64;
        *part -= cut;
        taken += cut;
    }
    // What rounding left over: less than a picosecond a part.
    for part in parts {
        let cut = (amount - taken).min(*part);
        *part -= cut;
        taken += cut;
    }
    amount
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: u64 = 1 << 20;

    /// A packet that is sent at one time, arrives at another, and waits by tier in between. Units
    /// of 2^20 ps, which packets hold without rounding.
    fn packet(sent: u64, arrive: u64, waits: [u64; 4]) -> Packet {
        let mut packet = Packet::default();
        (packet.sent, packet.arrive) = (at(sent), at(arrive));
        for (tier, wait) in waits.into_iter().enumerate() {
            packet.add_wait_ps(tier, wait * US);
        }
        packet
    }

    fn at(us: u64) -> Time {
        Time::from_ps(us * US)
    }

    fn span(us: u64) -> Span {
        Span::from_ps(us * US)
    }

    /// The packets arrive in this order; the last one completes the flow.
    fn breakdown(packets: &[Packet], stall: u64, timed_out: u64, ideal: u64) -> [u64; 8] {
        let mut followed = FollowedPackets::new(at(0));
        for packet in packets {
            followed.note(packet, packet.arrive, Paused::default);
        }
        let last = packets.last().unwrap();
        let (parts, _) = followed.complete(Some(last), last.arrive, span(stall), Paused::default);
        let found = parts.breakdown(last.arrive.since(at(0)), span(timed_out), span(ideal));
        let [host, leaf, spine, end] = found.waits;
        [found.transmission, host, leaf, spine, end, found.reordering, found.timeouts, found.window]
            .map(|part| part.as_ps() / US)
    }

    #[test]
    fn one_packet_spends_its_time_where_it_was() {
        assert_eq!(breakdown(&[packet(0, 20, [1, 2, 3, 4])], 0, 0, 10), [10, 1, 2, 3, 4, 0, 0, 0]);
    }

    #[test]
    fn the_time_between_two_packets_is_the_windows() {
        // Sent at 0 and, when its acknowledgement is there, at 30.
        let packets = [packet(0, 20, [0, 8, 0, 0]), packet(30, 45, [0, 0, 0, 5])];
        assert_eq!(breakdown(&packets, 0, 0, 12), [22, 0, 8, 0, 5, 0, 0, 10]);
    }

    #[test]
    fn the_time_before_an_ack_clocked_packet_is_the_acknowledgements() {
        let parts = |is_ack_clocked, timed_out, ideal| {
            let mut second = packet(30, 45, [0; 4]);
            second.set_ack_clocked(is_ack_clocked);
            let third = packet(52, 62, [0; 4]);
            let mut followed = FollowedPackets::new(at(0));
            for packet in [packet(0, 20, [0; 4]), second, third] {
                followed.note(&packet, packet.arrive, Paused::default);
            }
            let (parts, _) = followed.complete(Some(&third), third.arrive, Span::ZERO, Paused::default);
            let found = parts.breakdown(span(62), span(timed_out), span(ideal));
            let sum = found.transmission + found.acknowledgement + found.window + found.timeouts;
            assert_eq!(sum, span(62));
            [found.acknowledgement, found.window, found.timeouts].map(|part| part.as_ps() / US)
        };
        // 20 to 30 and 45 to 52 nothing was under way.
        assert_eq!(parts(false, 0, 9), [0, 17, 0]);
        assert_eq!(parts(true, 0, 9), [10, 7, 0]);
        assert_eq!(parts(true, 5, 9), [10, 2, 5]);
        assert_eq!(parts(true, 9, 9), [8, 0, 9]);
        assert_eq!(parts(true, 0, 62), [0, 0, 0], "what the flow needs anyway");
    }

    #[test]
    fn a_timer_that_expired_is_taken_out_of_the_time_that_nothing_was_under_way() {
        let packets = [packet(0, 10, [0; 4]), packet(500, 510, [0; 4])];
        assert_eq!(breakdown(&packets, 0, 400, 10), [20, 0, 0, 0, 0, 0, 400, 90]);
        assert_eq!(breakdown(&packets, 0, 900, 10), [20, 0, 0, 0, 0, 0, 490, 0], "no more than there is");
    }

    #[test]
    fn the_packet_that_completes_the_flow_takes_the_place_of_the_one_that_was_followed() {
        // Two packets at once: the first is followed, the second arrives last, behind it and 6 more
        // at the last hop.
        let packets = [packet(0, 10, [0; 4]), packet(0, 17, [1, 0, 0, 6])];
        assert_eq!(breakdown(&packets, 0, 0, 5), [10, 1, 0, 0, 6, 0, 0, 0]);
    }

    #[test]
    fn the_way_is_told_of_the_packet_that_waited_longest_and_was_followed() {
        let mut followed = FollowedPackets::new(at(0));
        for (trail, mut packet) in [
            (3, packet(0, 10, [9, 1, 0, 0])),
            (5, packet(10, 20, [0, 4, 2, 9])),
            // It was sent before the one before arrived.
            (6, packet(12, 30, [0, 8, 8, 0])),
            (4, packet(20, 40, [0, 2, 3, 0])),
        ] {
            packet.trail = trail;
            followed.note(&packet, packet.arrive, Paused::default);
        }
        let (parts, _) = followed.complete(None, at(40), Span::ZERO, Paused::default);
        assert_eq!(parts.breakdown(span(40), Span::ZERO, span(1)).trails, [5, 4]);
    }

    #[test]
    fn pauses_are_taken_out_of_waits_and_of_the_time_that_nothing_was_under_way() {
        let units = |us: u64| ((us * US) >> 8) as u32;
        let mut followed = FollowedPackets::new(at(0));
        // Its queue pair was stopped for 30 before it sent, and it waited 20 at the edge switch, 15
        // of them because of a pause.
        let paused = Paused { before: units(30), tiers: [0, units(15), 0, 0] };
        let mut first = packet(50, 80, [0, 20, 0, 0]);
        first.trail = 7;
        followed.note(&first, first.arrive, || paused);
        // More than there was of either: the pause began while the packet before was under way.
        let paused = Paused { before: units(30), tiers: [units(9), 0, 0, 0] };
        let last = packet(90, 100, [4, 0, 0, 0]);
        followed.note(&last, last.arrive, || paused);
        let (parts, _) = followed.complete(Some(&last), last.arrive, Span::ZERO, || unreachable!());
        let found = parts.breakdown(span(100), Span::ZERO, span(10));
        assert_eq!((found.pause, found.window), (span(30 + 15 + 10 + 4), span(20)));
        assert_eq!((found.waits, found.transmission), ([0, 5, 0, 0].map(span), span(16)));
        assert_eq!((found.paused_tier, found.paused_trail), (Tier::Host as u8, 0), "30 and 9 at its host");
    }

    #[test]
    fn a_flow_that_waits_behind_itself_is_serialised() {
        // Four packets of one service time, alone: 3 + 1 + 10. They wait for each other at the
        // host.
        let packets: Vec<Packet> = (0..4).map(|n| packet(0, 11 + n, [n, 0, 0, 0])).collect();
        assert_eq!(breakdown(&packets, 0, 0, 14), [14, 0, 0, 0, 0, 0, 0, 0]);
        // With another flow's packet between each two, half of the time is the other's.
        let packets: Vec<Packet> = (0..4).map(|n| packet(0, 11 + 2 * n, [2 * n, 0, 0, 0])).collect();
        assert_eq!(breakdown(&packets, 0, 0, 14), [14, 3, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_late_packet_stalls_for_as_long_as_it_alone_was_missing() {
        // The first packet takes a busy path; the second arrives at 13 and waits for it until 40.
        let packets = [packet(1, 13, [0; 4]), packet(0, 40, [0, 10, 20, 0])];
        // 3 of the 30 are no stall: one from the leaf, two from the spine.
        assert_eq!(breakdown(&packets, 27, 0, 5), [10, 0, 1, 2, 0, 27, 0, 0]);
    }

    #[test]
    fn what_a_packet_waits_in_a_reordering_buffer_is_reordering() {
        let mut followed = FollowedPackets::new(at(0));
        let early = packet(0, 10, [0; 4]);
        followed.note(&early, at(25), Paused::default);
        let complete = |last, now| followed.complete(last, now, Span::ZERO, Paused::default).0;
        let found = complete(Some(&early), at(25)).breakdown(span(25), Span::ZERO, span(10));
        assert_eq!((found.transmission, found.reordering), (span(10), span(15)));
        let found = complete(None, at(40)).breakdown(span(40), Span::ZERO, span(10));
        assert_eq!(found.reordering, span(30), "a timer let it go");
    }

    proptest! {
        #[test]
        fn the_parts_are_the_whole_and_transmission_is_at_least_the_ideal(
            packets in prop::collection::vec(
                (0u64..100, 1u64..30, prop::array::uniform4(0u64..40)), 1..30),
            paused in prop::collection::vec(prop::array::uniform5(0u32..200_000), 30),
            stall in 0u64..200,
            timed_out in 0u64..300,
            share in 0.0f64..1.0,
        ) {
            let mut packets: Vec<Packet> = packets
                .into_iter()
                .map(|(sent, way, waits)| {
                    let mut packet = packet(sent, sent + way + waits.iter().sum::<u64>(), [0; 4]);
                    packet.set_ack_clocked(way % 2 == 0);
                    (0..4).for_each(|tier| packet.add_wait_ps(tier, waits[tier] * US));
                    packet
                })
                .collect();
            packets.sort_by_key(|packet| packet.arrive);
            let mut followed = FollowedPackets::new(at(0));
            let paused = |place: usize| {
                let [before, tiers @ ..] = paused[place];
                Paused { before, tiers }
            };
            for (place, packet) in packets.iter().enumerate() {
                followed.note(packet, packet.arrive, || paused(place));
            }
            let last = packets.last().unwrap();
            let total = last.arrive.since(at(0));
            let ideal = Span::from_ps((total.as_ps() as f64 * share) as u64);
            let of_last = || paused(packets.len() - 1);
            let (parts, _) = followed.complete(Some(last), last.arrive, span(stall), of_last);
            let found = parts.breakdown(total, span(timed_out), ideal);
            let rest = found.reordering + found.timeouts + found.acknowledgement + found.window + found.pause;
            let waits = found.waits.into_iter().sum::<Span>();
            prop_assert_eq!(found.transmission + waits + rest, total);
            prop_assert!(found.transmission >= ideal);
        }
    }
}
