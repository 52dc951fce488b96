//! When what senders sent reached their receivers, phase by phase: only in runs whose fabric has
//! faults that take packets. With what the faults took ([`super::drops`]) it says whether a flow
//! goes another way by now, or is silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_topology::FaultSpan;
use weft_units::Time;

/// Packets of a flow that were sent and arrived within one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivedInPhase {
    /// The phase, as in [`super::Drop`].
    pub phase: u32,
    /// The flow.
    pub flow: u32,
    /// How many.
    pub packets: u64,
    /// When the first packet that arrived was sent, and the last.
    pub first_sent: Time,
    /// See there.
    pub last_sent: Time,
    /// The longest time between two of them, by when they were sent.
    pub silence: (Time, Time),
}

impl ArrivedInPhase {
    /// When the first of these packets was sent that was sent after `last`; none if none was. Where
    /// others went on all the while, `last` itself.
    pub fn first_after(&self, last: Time) -> Option<Time> {
        let (from, until) = self.silence;
        if last < self.first_sent {
            Some(self.first_sent)
        } else if last >= self.last_sent {
            None
        } else if from <= last && last < until {
            Some(until)
        } else {
            Some(last)
        }
    }

    /// Whether one of these packets was certainly sent between these times. One that hides between
    /// two others which were sent closer together than the longest silence may be missed.
    pub fn is_any_between(&self, from: Time, until: Time) -> bool {
        let (quiet_from, quiet_until) = self.silence;
        let is_among = |sent: Time| from < sent && sent < until;
        let are_known = [self.first_sent, self.last_sent, quiet_from, quiet_until].into_iter().any(is_among);
        let surrounds = self.first_sent <= from && until <= self.last_sent;
        are_known || surrounds && quiet_until.since(quiet_from) < until.since(from)
    }

    fn add(&mut self, sent: Time) {
        self.packets += 1;
        if sent > self.last_sent {
            let (from, until) = self.silence;
            if sent.since(self.last_sent) > until.since(from) {
                self.silence = (self.last_sent, sent);
            }
            self.last_sent = sent;
        } else if sent < self.first_sent {
            self.first_sent = sent;
        }
    }
}

/// Packets that come to one host.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// The instants that divide the run into phases, in order.
    divided_at: Arc<[Time]>,
    /// By phase: whether a fault is in force that takes packets.
    are_watched: Arc<[bool]>,
    /// The phase now, and of its flows what arrived.
    phase: usize,
    now: BTreeMap<u32, ArrivedInPhase>,
    before: Vec<ArrivedInPhase>,
}

impl Arrivals {
    /// Nothing yet, of a run that these instants divide; none if no fault ever takes packets.
    pub fn of(spans: &[FaultSpan], divided_at: Option<&[Time]>) -> Option<Self> {
        let divided_at = divided_at?;
        let takes = |span: &FaultSpan| {
            span.down == Some(true) || span.loss.unwrap_or(0.0) > 0.0 || span.blackhole.unwrap_or(0.0) > 0.0
        };
        let is_watched = |start: Time| {
            spans
                .iter()
                .any(|span| takes(span) && span.from <= start && span.until.is_none_or(|until| start < until))
        };
        let are_watched: Vec<bool> =
            std::iter::once(Time::ZERO).chain(divided_at.iter().copied()).map(is_watched).collect();
        are_watched.contains(&true).then(|| Self {
            divided_at: divided_at.into(),
            are_watched: are_watched.into(),
            phase: 0,
            now: BTreeMap::new(),
            before: Vec::new(),
        })
    }

    /// A packet of a flow that was sent then arrives now.
    pub fn note(&mut self, flow: u32, sent: Time, now: Time) {
        while self.divided_at.get(self.phase).is_some_and(|end| *end <= now) {
            self.before.extend(std::mem::take(&mut self.now).into_values());
            self.phase += 1;
        }
        let began = self.phase.checked_sub(1).map_or(Time::ZERO, |before| self.divided_at[before]);
        if !self.are_watched[self.phase] || sent < began {
            return;
        }
        let phase = self.phase as u32;
        let new = ArrivedInPhase {
            phase,
            flow,
            packets: 1,
            first_sent: sent,
            last_sent: sent,
            silence: (sent, sent),
        };
        self.now.entry(flow).and_modify(|known| known.add(sent)).or_insert(new);
    }

    /// All that came, by phase and flow.
    pub fn finish(self) -> impl Iterator<Item = ArrivedInPhase> {
        self.before.into_iter().chain(self.now.into_values())
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn down(from: u64, until: u64) -> FaultSpan {
        FaultSpan {
            names: Vec::new(),
            links: Vec::new(),
            from: at(from),
            until: Some(at(until)),
            down: Some(true),
            rate: None,
            delay: None,
            loss: None,
            blackhole: None,
        }
    }

    #[test]
    fn only_phases_in_which_a_fault_takes_packets_are_watched_and_what_crosses_their_borders_is_not() {
        let divided_at = [at(10), at(20)];
        let mut arrivals = Arrivals::of(&[down(10, 20)], Some(&divided_at)).unwrap();
        for (sent, now) in [(5, 6), (9, 11), (12, 13), (19, 20), (25, 26)] {
            arrivals.note(3, at(sent), at(now));
        }
        let found: Vec<_> =
            arrivals.finish().map(|one| (one.phase, one.flow, one.first_sent, one.last_sent)).collect();
        assert_eq!(found, [(1, 3, at(12), at(12))]);
        let slow = FaultSpan { down: None, delay: Some(Span::from_us(1)), ..down(10, 20) };
        assert!(Arrivals::of(&[slow], Some(&divided_at)).is_none());
    }

    #[test]
    fn the_first_packet_after_an_instant_is_known_at_the_ends_and_after_the_longest_silence() {
        let mut arrivals = Arrivals::of(&[down(0, 99)], Some(&[at(99)])).unwrap();
        for sent in [10, 12, 40, 41] {
            arrivals.note(0, at(sent), at(sent + 1));
        }
        let found = arrivals.finish().next().unwrap();
        let after = |last| found.first_after(at(last));
        assert_eq!([after(3), after(9)], [Some(at(10)); 2]);
        assert_eq!([after(12), after(30)], [Some(at(40)); 2], "the silence");
        assert_eq!(after(11), Some(at(11)), "others went on");
        assert_eq!([after(41), after(50)], [None; 2]);
    }
}
