//! Where packets are lost, why and when: only if asked for, as for runs whose fabric has faults.
//!
//! Nothing of it is touched but where a packet is dropped. Credits, whose loss is how a receiver learns of congestion, are not among them.

use std::collections::BTreeMap;

use weft_units::Time;

/// Why a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The queue was full, or RED dropped it.
    Queue,
    /// The link was down: the packet was queued or on the wire when it failed, or came later.
    Down,
    /// The wire lost it at random.
    Loss,
    /// Its flow falls into a blackhole of the link.
    Blackhole,
    /// A switch had no way to its destination.
    NoRoute,
    /// What waits for the node itself was full.
    Input,
    /// The memory that the ports of its switch share had no room for its class.
    Memory,
    /// It came after a pause, and the headroom was full.
    Headroom,
}

impl Cause {
    /// What tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Down => "down",
            Self::Loss => "loss",
            Self::Blackhole => "blackhole",
            Self::NoRoute => "no-route",
            Self::Input => "input",
            Self::Memory => "memory",
            Self::Headroom => "headroom",
        }
    }
}

/// Where a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// At a link, as the topology numbers them.
    Link(u32),
    /// At a node, likewise: on no link's account.
    Node(u32),
}

/// Packets lost at one place for one reason in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The phase: how many of the instants that divide the run were over, or at hand.
    pub phase: u32,
    /// Where.
    pub place: Place,
    /// Why.
    pub cause: Cause,
    /// How many.
    pub packets: u64,
    /// When the first of them was lost.
    pub first: Time,
    /// When the last of them was.
    pub last: Time,
}

type Key = (u32, Place, Cause);

/// What was lost so far.
#[derive(Debug)]
pub struct Losses {
    /// The instants that divide the run into phases, in order.
    divided_at: Vec<Time>,
    found: BTreeMap<Key, Loss>,
}

impl Losses {
    /// Nothing yet, of a run that these instants divide; they are in order.
    pub fn new(divided_at: &[Time]) -> Self {
        Self { divided_at: divided_at.to_vec(), found: BTreeMap::new() }
    }

    /// A packet is lost now.
    pub fn note(&mut self, place: Place, cause: Cause, now: Time) {
        let phase = self.divided_at.partition_point(|at| *at <= now) as u32;
        self.add(&Loss { phase, place, cause, packets: 1, first: now, last: now });
    }

    fn add(&mut self, loss: &Loss) {
        let known = self.found.entry((loss.phase, loss.place, loss.cause));
        known
            .and_modify(|known| {
                known.packets += loss.packets;
                known.first = known.first.min(loss.first);
                known.last = known.last.max(loss.last);
            })
            .or_insert(*loss);
    }

    /// All that several parts of a fabric lost, by phase, place and cause.
    pub fn together(parts: impl Iterator<Item = Self>) -> Vec<Loss> {
        let mut sum = Self::new(&[]);
        for part in parts {
            part.found.values().for_each(|loss| sum.add(loss));
        }
        sum.found.into_values().collect()
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
                losses.note(Place::Link(link), Cause::Down, at(us));
            }
            losses
        };
        let found =
            Losses::together([part(&[(3, 9), (3, 10), (3, 25)]), part(&[(3, 19), (1, 12)])].into_iter());
        let brief: Vec<_> =
            found.iter().map(|loss| (loss.phase, loss.place, loss.packets, loss.first, loss.last)).collect();
        assert_eq!(
            brief,
            [
                (0, Place::Link(3), 1, at(9), at(9)),
                (1, Place::Link(1), 1, at(12), at(12)),
                (1, Place::Link(3), 2, at(10), at(19)),
                (2, Place::Link(3), 1, at(25), at(25)),
            ],
            "an instant that divides belongs to what follows"
        );
    }
}
