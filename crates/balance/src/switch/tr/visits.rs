//! Short flows, counted on every uplink that one of their packets took within a round trip: the
//! letter of TR §Counting the number of short flows.

use std::collections::VecDeque;
use std::ops::Range;

use weft_units::{Span, Time};

use crate::{Peer, PortId};

/// A packet of a short flow took an uplink.
#[derive(Debug, Clone, Copy)]
struct Visit {
    at: Time,
    slot: u32,
    /// The round of its flow's entry: visits of an earlier one are void.
    round: u32,
    port: u16,
}

/// Who took which uplink within a round trip.
#[derive(Debug, Clone)]
pub(super) struct Visits {
    /// The ports from the first uplink to the last.
    uplinks: Range<usize>,
    /// By flow entry and one of these ports: its packets there that are no older than a round trip.
    live: Box<[u32]>,
    /// By flow entry.
    rounds: Box<[u32]>,
    /// The oldest first.
    recent: VecDeque<Visit>,
}

impl Visits {
    /// None, of so many flow entries. `peers`: what is at the far end of each port.
    pub fn new(entries: usize, peers: &[Peer]) -> Self {
        let is_uplink = |peer: &Peer| matches!(peer, Peer::Switch { .. });
        let first = peers.iter().position(is_uplink).unwrap_or_default();
        let uplinks = first..peers.iter().rposition(is_uplink).map_or(first, |last| last + 1);
        Self {
            live: vec![0; entries * uplinks.len()].into_boxed_slice(),
            uplinks,
            rounds: vec![0; entries].into_boxed_slice(),
            recent: VecDeque::new(),
        }
    }

    /// Where the count of an entry and a port is.
    #[inline]
    const fn place(&self, slot: usize, port: usize) -> usize {
        slot * (self.uplinks.end - self.uplinks.start) + (port - self.uplinks.start)
    }

    /// A packet of a short flow takes a port.
    pub fn visit(&mut self, slot: usize, port: PortId, at: Time, shorts: &mut [u32]) {
        let place = self.place(slot, port.index());
        let live = &mut self.live[place];
        shorts[port.index()] += u32::from(*live == 0);
        *live += 1;
        self.recent.push_back(Visit { at, slot: slot as u32, round: self.rounds[slot], port: port.0 });
    }

    /// The flow of an entry is long, or another one takes the entry: it counts nowhere any more.
    pub fn void(&mut self, slot: usize, shorts: &mut [u32]) {
        let from = self.place(slot, self.uplinks.start);
        let shorts = &mut shorts[self.uplinks.clone()];
        for (live, shorts) in self.live[from..].iter_mut().zip(shorts) {
            *shorts -= u32::from(*live > 0);
            *live = 0;
        }
        self.rounds[slot] = self.rounds[slot].wrapping_add(1);
    }

    /// A flow stops counting on each port that no packet of it took for longer than an RTT. When
    /// the next one may.
    pub fn retire(&mut self, now: Time, rtt: Span, shorts: &mut [u32]) -> Time {
        while let Some(&Visit { at, slot, round, port }) = self.recent.front() {
            let until = at.saturating_add(rtt);
            if now <= until {
                return until;
            }
            self.recent.pop_front();
            let (slot, port) = (slot as usize, usize::from(port));
            if self.rounds[slot] == round {
                let place = self.place(slot, port);
                let live = &mut self.live[place];
                *live -= 1;
                shorts[port] -= u32::from(*live == 0);
            }
        }
        Time::NEVER
    }

    /// Whether some flow may count somewhere.
    pub fn are_some(&self) -> bool {
        !self.recent.is_empty()
    }

    /// A time of four bytes for each flow and port, which is what hardware would keep in place of a
    /// list.
    pub fn state_bytes(&self) -> u64 {
        self.live.len() as u64 * 4
    }
}
