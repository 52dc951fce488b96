//! Which uplink a packet takes, when it is known how soon it would be at the next leaf by each: TR
//! Alg. 1.
//!
//! A packet mostly finds an idle uplink to an idle spine before it has looked at all: nothing can
//! be sooner, so the look ends there.

use weft_units::{Span, Time};

use super::flows::Last;
use crate::PortId;

/// The uplinks of a packet.
#[derive(Clone, Copy)]
pub(super) struct Uplinks<'a, F> {
    /// In the order of the look over them: equal ones take turns.
    pub first: &'a [PortId],
    /// Those that come behind these.
    pub before: &'a [PortId],
    /// When the packet would be at the next leaf by one of them, from now on.
    pub takes: F,
    /// None takes less.
    pub least: Span,
    /// Whether the flow's last one is always admissible.
    pub follows_last: bool,
    /// So much earlier than the flow's last packet overtakes not yet.
    pub slack: Span,
    /// So much later than the flow's last packet overtakes still.
    pub margin: Span,
}

/// Result of a look at the uplinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub port: PortId,
    /// When the packet is at the next leaf.
    pub at: Time,
    /// How many uplinks would have overtaken. If all: none was left.
    pub excluded: usize,
}

impl<F: Fn(PortId) -> Span + Copy> Uplinks<'_, F> {
    /// All of them, in the order of the look.
    fn all(&self) -> impl Iterator<Item = PortId> + use<'_, F> {
        self.first.iter().chain(self.before).copied()
    }

    /// The uplink of a packet that is at the next leaf first, as one of a short flow wants.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn soonest(self, now: Time, last: Last) -> Choice {
        let (mut soonest, mut best) = (Span::MAX, self.first[0]);
        'look: for ports in [self.first, self.before] {
            for &port in ports {
                let takes = (self.takes)(port);
                if takes < soonest {
                    (soonest, best) = (takes, port);
                    if takes <= self.least {
                        break 'look;
                    }
                }
            }
        }
        let at = now.saturating_add(soonest);
        if at.saturating_add(self.slack) > last.bar(self.margin) {
            return Choice { port: best, at, excluded: 0 };
        }
        self.behind(now, last, |_| 0)
    }

    /// The uplink with the fewest active short flows, of which `shorts` says how many each port
    /// has, as a packet of a long flow wants; of those with equally few the soonest.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn fewest_shorts(self, now: Time, last: Last, shorts: &[u32]) -> Choice {
        if now.saturating_add(self.least + self.slack) <= last.bar(self.margin) {
            return self.behind(now, last, |port| shorts[port.index()]);
        }
        let (mut fewest, mut soonest, mut best) = (u32::MAX, Span::MAX, self.first[0]);
        'look: for ports in [self.first, self.before] {
            for &port in ports {
                let of_port = shorts[port.index()];
                if of_port > fewest {
                    continue;
                }
                let takes = (self.takes)(port);
                if of_port < fewest || takes < soonest {
                    (fewest, soonest, best) = (of_port, takes, port);
                    if of_port == 0 && takes <= self.least {
                        break 'look;
                    }
                }
            }
        }
        Choice { port: best, at: now.saturating_add(soonest), excluded: 0 }
    }

    /// Choice where the packet may not take all uplinks: it stays behind the last one of its flow.
    #[cold]
    fn behind(self, now: Time, last: Last, shorts: impl Fn(PortId) -> u32) -> Choice {
        let (until_last, until_bar) = (last.tnl.since(now), last.bar(self.margin).since(now));
        let (mut least, mut best, mut excluded) = ((u32::MAX, Span::MAX), self.first[0], 0);
        for port in self.all() {
            let mut takes = (self.takes)(port);
            // What comes at the last one's time or before would overtake, or too close behind it.
            if takes + self.slack <= until_bar {
                if last.port != Some(port) || !self.follows_last {
                    excluded += 1;
                    continue;
                }
                // Two queues, each first in first out: behind the last packet, whatever the
                // estimate says.
                takes = takes.max(until_last);
            }
            // TR Alg. 1: a long flow looks at the number of short flows first; a short one at the
            // time alone.
            let found = (shorts(port), takes);
            if found < least {
                (least, best) = (found, port);
            }
        }
        if excluded == self.first.len() + self.before.len() {
            return self.latest(now, excluded);
        }
        Choice { port: best, at: now.saturating_add(least.1), excluded }
    }

    /// The uplink that would have the packet at the next leaf last: where no uplink is left, the
    /// one that overtakes by least.
    fn latest(self, now: Time, excluded: usize) -> Choice {
        let (mut latest, mut best) = (Span::ZERO, self.first[0]);
        for port in self.all() {
            let takes = (self.takes)(port);
            if takes > latest {
                (latest, best) = (takes, port);
            }
        }
        Choice { port: best, at: now.saturating_add(latest), excluded }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// TR Alg. 1 as it stands: every uplink is looked at.
    fn plain(
        ports: &[PortId],
        takes: &[Span],
        now: Time,
        (last, follows_last, slack, margin): (Last, bool, Span, Span),
        shorts: Option<&[u32]>,
    ) -> Choice {
        let bar = if last.port.is_some() { last.tnl + margin } else { last.tnl };
        let overtakes = |takes: Span| now + takes + slack <= bar;
        let behind_last = |port: PortId| {
            let takes = takes[port.index()];
            let follows = overtakes(takes) && follows_last && last.port == Some(port);
            (port, if follows { takes.max(last.tnl.since(now)) } else { takes }, overtakes(takes) && !follows)
        };
        let looked_at: Vec<_> = ports.iter().map(|&port| behind_last(port)).collect();
        let excluded = looked_at.iter().filter(|&&(.., excluded)| excluded).count();
        let allowed = looked_at.iter().filter(|&&(.., excluded)| !excluded);
        // Of equal ones, the first.
        let best = allowed.min_by_key(|&&(port, takes, _)| (shorts.map_or(0, |of| of[port.index()]), takes));
        let latest = looked_at.iter().rev().max_by_key(|&&(_, takes, _)| takes);
        let &(port, takes, _) = best.or(latest).expect("an uplink");
        Choice { port, at: now + takes, excluded }
    }

    proptest! {
        #[test]
        fn a_look_that_ends_early_finds_what_a_look_at_all_uplinks_finds(
            takes in prop::collection::vec(3u64..8, 5),
            shorts in prop::collection::vec(0u32..3, 5),
            least in 1u64..4,
            turn in 0usize..5,
            (tnl, last_port) in (90u64..112, prop::option::of(0u16..5)),
            (long, follows_last) in any::<(bool, bool)>(),
            (slack, margin) in (0u64..3, 0u64..3),
        ) {
            let takes: Vec<_> = takes.into_iter().map(Span::from_ps).collect();
            let ports: Vec<_> = (0..5).map(PortId).collect();
            let (now, last) = (Time::from_ps(100), Last { tnl: Time::from_ps(tnl), port: last_port.map(PortId) });
            let (before, first) = ports.split_at(turn);
            let [least, slack, margin] = [least, slack, margin].map(Span::from_ps);
            let takes_by = |port: PortId| takes[port.index()];
            let uplinks = Uplinks { first, before, takes: takes_by, least, follows_last, slack, margin };
            let choice = if long { uplinks.fewest_shorts(now, last, &shorts) } else { uplinks.soonest(now, last) };
            let in_turn: Vec<_> = first.iter().chain(before).copied().collect();
            let readings = (last, follows_last, slack, margin);
            prop_assert_eq!(choice, plain(&in_turn, &takes, now, readings, long.then_some(&shorts)));
        }
    }
}
