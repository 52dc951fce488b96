//! Where packets are lost, why and when, and which flows faults take them from: only if asked for,
//! as for runs whose fabric has faults.
//!
//! Nothing of it is touched but where a packet is dropped, or goes onto a link that is down, loses
//! packets or changes at some time. Credits, whose loss is how a receiver learns of congestion, are
//! not among them.

use std::collections::BTreeMap;

use weft_packet::{Kind, Packet};
use weft_units::Time;

/// Why a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The queue was full, or RED dropped it.
    Queue,
    /// The link was down: the packet was queued or on the wire when it failed, or came later.
    Down,
    /// The wire lost it at random.
    Loss,
    /// The flow of the packet falls into a blackhole of the link.
    Blackhole,
    /// A switch had no way to its destination.
    NoRoute,
    /// The queue of packets that wait for the node itself was full.
    Input,
    /// The memory that the ports of its switch share had no room for its class.
    SharedBuffer,
    /// It came after a pause, and the headroom was full.
    Headroom,
}

impl DropCause {
    /// All causes.
    pub const ALL: [Self; 8] = [
        Self::Queue,
        Self::Down,
        Self::Loss,
        Self::Blackhole,
        Self::NoRoute,
        Self::Input,
        Self::SharedBuffer,
        Self::Headroom,
    ];

    /// Name of the cause in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Down => "down",
            Self::Loss => "loss",
            Self::Blackhole => "blackhole",
            Self::NoRoute => "no-route",
            Self::Input => "input",
            Self::SharedBuffer => "shared-buffer",
            Self::Headroom => "headroom",
        }
    }
}

/// Where a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropSite {
    /// At a link, as the topology numbers them.
    Link(u32),
    /// At a node, likewise: on no link's account.
    Node(u32),
}

/// Packets lost at one place for one reason in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop {
    /// The phase: how many of the instants that divide the run were over, or at hand.
    pub phase: u32,
    /// Where.
    pub place: DropSite,
    /// Why.
    pub cause: DropCause,
    /// The rack that no way led to, if that is why.
    pub towards: Option<u16>,
    /// How many.
    pub packets: u64,
    /// When the first of them was lost.
    pub first: Time,
    /// When the last of them was.
    pub last: Time,
}

/// Packets of a flow, on the way to its receiver, that came to a place where the link was down,
/// lost packets or swallowed flows, or where no way led on, in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// As in [`Drop`].
    pub phase: u32,
    /// As in [`Drop`].
    pub place: DropSite,
    /// As in [`Drop`].
    pub towards: Option<u16>,
    /// The flow, or a subflow by its number.
    pub flow: u32,
    /// Packets among them that were lost.
    pub lost_packets: u64,
    /// Packets among them that passed: the wire neither lost nor swallowed them.
    pub passed_packets: u64,
    /// When its sender sent the first of them, by the time of sending.
    pub first_sent: Time,
    /// When its sender sent the last of them.
    pub last_sent: Time,
}

impl Hit {
    /// Takes in packets of the same flow at the same place.
    fn add(&mut self, other: &Self) {
        self.lost_packets += other.lost_packets;
        self.passed_packets += other.passed_packets;
        self.first_sent = self.first_sent.min(other.first_sent);
        self.last_sent = self.last_sent.max(other.last_sent);
    }
}

/// The first packet of any flow, on the way to its receiver, that went onto a link which changes at
/// some time, in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstUse {
    /// As in [`Drop`].
    pub phase: u32,
    /// The link, as the topology numbers them.
    pub link: u32,
    /// When.
    pub at: Time,
}

/// Whether a packet is on the way to the receiver of a flow, so that its way says where that flow
/// goes.
pub const fn goes_to_receiver(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Data | Kind::Syn | Kind::CreditRequest) && packet.flow.connection().is_none()
}

type Key = (u32, DropSite, DropCause, Option<u16>);

/// Phase, place, rack and flow.
type Met = (u32, DropSite, Option<u16>, u32);

/// Drops so far.
#[derive(Debug)]
pub struct Losses {
    /// The instants that divide the run into phases, in order.
    divided_at: Vec<Time>,
    found: BTreeMap<Key, Drop>,
    hits: BTreeMap<Met, Hit>,
    /// By phase and link.
    first_uses: BTreeMap<(u32, u32), Time>,
}

impl Losses {
    /// Nothing yet, of a run that these instants divide; they are in order.
    pub fn new(divided_at: &[Time]) -> Self {
        Self {
            divided_at: divided_at.to_vec(),
            found: BTreeMap::new(),
            hits: BTreeMap::new(),
            first_uses: BTreeMap::new(),
        }
    }

    fn phase(&self, now: Time) -> u32 {
        self.divided_at.partition_point(|at| *at <= now) as u32
    }

    /// A packet is lost now. `towards` is the rack that no way leads to, if that is why.
    pub fn note(
        &mut self,
        place: DropSite,
        cause: DropCause,
        towards: Option<u16>,
        packet: &Packet,
        now: Time,
    ) {
        let phase = self.phase(now);
        self.add(&Drop { phase, place, cause, towards, packets: 1, first: now, last: now });
        let by_fault =
            matches!(cause, DropCause::Down | DropCause::Loss | DropCause::Blackhole | DropCause::NoRoute);
        if by_fault && goes_to_receiver(packet) {
            let hit = self.hit((phase, place, towards, packet.flow.0), packet.sent);
            hit.lost_packets += 1;
            // The wire takes a packet that went onto it in the same instant.
            if matches!(cause, DropCause::Loss | DropCause::Blackhole) {
                hit.passed_packets = hit.passed_packets.saturating_sub(1);
            }
        }
    }

    /// A packet goes onto a link that changes at some time, or loses packets: `loses` says whether
    /// it does now.
    pub fn note_passing(&mut self, link: u32, loses: bool, packet: &Packet, now: Time) {
        if !goes_to_receiver(packet) {
            return;
        }
        let phase = self.phase(now);
        self.first_uses.entry((phase, link)).or_insert(now);
        if loses {
            self.hit((phase, DropSite::Link(link), None, packet.flow.0), packet.sent).passed_packets += 1;
        }
    }

    /// The hits of a flow at a place, to which a packet sent then belongs.
    fn hit(&mut self, key: Met, sent: Time) -> &mut Hit {
        let (phase, place, towards, flow) = key;
        let none = Hit {
            phase,
            place,
            towards,
            flow,
            lost_packets: 0,
            passed_packets: 0,
            first_sent: sent,
            last_sent: sent,
        };
        let hit = self.hits.entry(key).or_insert(none);
        hit.first_sent = hit.first_sent.min(sent);
        hit.last_sent = hit.last_sent.max(sent);
        hit
    }

    fn add(&mut self, loss: &Drop) {
        let known = self.found.entry((loss.phase, loss.place, loss.cause, loss.towards));
        known
            .and_modify(|known| {
                known.packets += loss.packets;
                known.first = known.first.min(loss.first);
                known.last = known.last.max(loss.last);
            })
            .or_insert(*loss);
    }

    /// All that several parts of a fabric lost, by phase, place and cause; whom it hit, by phase,
    /// place and flow; and the first uses of links, by phase and link.
    pub fn together(parts: impl Iterator<Item = Self>) -> (Vec<Drop>, Vec<Hit>, Vec<FirstUse>) {
        let mut sum = Self::new(&[]);
        for part in parts {
            part.found.values().for_each(|loss| sum.add(loss));
            for (key, hit) in part.hits {
                sum.hits.entry(key).and_modify(|known| known.add(&hit)).or_insert(hit);
            }
            // A link is of one part.
            sum.first_uses.extend(part.first_uses);
        }
        let first_use = |((phase, link), at)| FirstUse { phase, link, at };
        (
            sum.found.into_values().collect(),
            sum.hits.into_values().collect(),
            sum.first_uses.into_iter().map(first_use).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use super::*;

    #[test]
    fn parts_are_added_up_by_phase_place_and_cause() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let part = |notes: &[(u32, u64)]| {
            let mut losses = Losses::new(&[at(10), at(20)]);
            for &(link, us) in notes {
                let mut packet = Packet::default();
                packet.sent = at(us - 5);
                losses.note(DropSite::Link(link), DropCause::Down, None, &packet, at(us));
                losses.note_passing(9, false, &packet, at(us + 1));
            }
            losses
        };
        let (found, hits, first_uses) =
            Losses::together([part(&[(3, 9), (3, 10), (3, 25)]), part(&[(3, 19), (1, 12)])].into_iter());
        let hits: Vec<_> = hits.iter().map(|hit| (hit.phase, hit.place, hit.last_sent)).collect();
        assert_eq!(
            hits,
            [
                (0, DropSite::Link(3), at(4)),
                (1, DropSite::Link(1), at(7)),
                (1, DropSite::Link(3), at(14)),
                (2, DropSite::Link(3), at(20)),
            ]
        );
        let uses: Vec<_> = first_uses.iter().map(|one| (one.phase, one.link)).collect();
        assert_eq!(uses, [(1, 9), (2, 9)], "an instant that divides belongs to what follows");
        let brief: Vec<_> =
            found.iter().map(|loss| (loss.phase, loss.place, loss.packets, loss.first, loss.last)).collect();
        assert_eq!(
            brief,
            [
                (0, DropSite::Link(3), 1, at(9), at(9)),
                (1, DropSite::Link(1), 1, at(12), at(12)),
                (1, DropSite::Link(3), 2, at(10), at(19)),
                (2, DropSite::Link(3), 1, at(25), at(25)),
            ],
            "an instant that divides belongs to what follows"
        );
    }
}
