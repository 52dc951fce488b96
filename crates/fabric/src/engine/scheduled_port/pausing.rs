//! Pauses that the node behind a link requested of its port: which classes pause, from when on, and
//! for how long they have so far.

use std::collections::{BTreeMap, VecDeque};

use weft_units::{Span, Time};

use super::service::{Outlet, outlet};
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::network::Network;
use crate::engine::pool::{NO_PACKET, PacketIndex};

/// A pause, or its end, as a frame told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseFrame {
    /// Which of the port's own classes.
    pub class: u8,
    /// Whether it is to pause; or else to go on.
    pub pauses: bool,
    /// The link, as the fabric numbers it, for which most of that waits because of which it is to
    /// pause.
    pub blamed: u32,
}

/// How long one class of a port was paused because of one link behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PauseTotals {
    /// How often.
    pub pauses: u64,
    /// How long, together.
    pub paused: Span,
    /// The longest one.
    pub longest: Span,
    /// When the first one began.
    pub first: Time,
    /// When the last one ended, or the run.
    pub last: Time,
}

/// A class that pauses now.
#[derive(Debug, Clone, Copy)]
struct Pause {
    since: Time,
    blamed: u32,
}

/// The pauses of one port.
#[derive(Debug)]
pub struct Pausing {
    /// Pause frames that are not yet obeyed, by the time at which they will be, in ps.
    told: VecDeque<(u64, PauseFrame)>,
    now: Box<[Option<Pause>]>,
    /// How long each class was paused, without the pause that goes on, in ps.
    paused_ps: Box<[u64]>,
    /// Packet that a host's card put into each class, of which one at most waits, and how long the
    /// class had been paused when the last one went into service, in ps.
    pulled: Box<[(PacketIndex, u64)]>,
    /// By own class and the link that is to blame.
    totals: BTreeMap<(u8, u32), PauseTotals>,
}

impl Pausing {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            told: VecDeque::new(),
            now: vec![None; classes].into(),
            paused_ps: vec![0; classes].into(),
            pulled: vec![(NO_PACKET, 0); classes].into(),
            totals: BTreeMap::new(),
        }
    }

    /// Takes the next pause frame to obey now.
    fn next(&mut self, now: u64) -> Option<PauseFrame> {
        let due = self.told.front().is_some_and(|(at, _)| *at <= now);
        if due { self.told.pop_front().map(|(_, frame)| frame) } else { None }
    }

    /// How long a class has been paused so far, in ps.
    pub fn paused_ps(&self, class: usize, now: u64) -> u64 {
        let current = self.now.get(class).copied().flatten();
        let going_on = current.map_or(0, |pause| now.saturating_sub(pause.since.as_ps()));
        self.paused_ps.get(class).copied().unwrap_or_default() + going_on
    }

    /// A packet that a queue pair of the host's card sends waits in a class.
    pub fn pulled_waits(&mut self, class: usize, index: PacketIndex) {
        if let Some((waits, _)) = self.pulled.get_mut(class) {
            *waits = index;
        }
    }

    /// All that waited was lost.
    pub fn lose(&mut self) {
        self.pulled.iter_mut().for_each(|(waits, _)| *waits = NO_PACKET);
    }

    /// A packet that waited in a class goes into service. Returns how long the class has been
    /// paused so far, in ps.
    pub fn leaves(&mut self, class: usize, index: PacketIndex, now: u64) -> u64 {
        let paused_ps = self.paused_ps(class, now);
        if let Some(pulled) = self.pulled.get_mut(class).filter(|(waits, _)| *waits == index) {
            *pulled = (NO_PACKET, paused_ps);
        }
        paused_ps
    }

    /// How long all classes have been paused so far, together, in ps.
    fn all_paused_ps(&self, now: u64) -> u64 {
        (0..self.now.len()).map(|class| self.paused_ps(class, now)).sum()
    }

    /// Books what a class obeys.
    fn note(&mut self, frame: PauseFrame, now: Time) {
        let Some(pause) = self.now.get_mut(usize::from(frame.class)) else { return };
        match (*pause, frame.pauses) {
            (None, true) => *pause = Some(Pause { since: now, blamed: frame.blamed }),
            (Some(ended), false) => {
                *pause = None;
                self.book(frame.class, ended, now);
            }
            _ => {}
        }
    }

    fn book(&mut self, class: u8, Pause { since, blamed }: Pause, now: Time) {
        let paused = now.since(since);
        self.paused_ps[usize::from(class)] += paused.as_ps();
        let totals = self
            .totals
            .entry((class, blamed))
            .or_insert(PauseTotals { first: since, ..PauseTotals::default() });
        totals.pauses += 1;
        totals.paused += paused;
        totals.longest = totals.longest.max(paused);
        totals.last = now;
    }

    /// How long each class was paused, by the link to blame; what is paused yet is so until now.
    pub fn totals(&mut self, now: Time) -> Vec<((u8, u32), PauseTotals)> {
        for class in 0..self.now.len() {
            if let Some(pause) = self.now[class].take() {
                self.book(class as u8, pause, now);
            }
        }
        std::mem::take(&mut self.totals).into_iter().collect()
    }
}

impl Network<'_> {
    /// How long the classes of a link's port have been paused so far, together, in ps.
    pub(in crate::engine) fn paused_ps(&self, link: usize) -> u64 {
        let port = self.state.scheduled.get(link).and_then(Option::as_ref);
        let pausing = port.and_then(|port| port.aside.pausing.as_ref());
        pausing.map_or(0, |pausing| pausing.all_paused_ps(self.now.as_ps()))
    }

    /// Pauses of a link's port, and which of its own classes this one is.
    fn pausing_of(&self, link: u32, class: usize) -> Option<(&Pausing, usize)> {
        let port = self.state.scheduled.get(link as usize).and_then(Option::as_ref)?;
        port.aside.pausing.as_deref().zip(class.checked_sub(port.first_own()))
    }

    /// How long a class of a link's port has been paused so far, in ps.
    pub(in crate::engine) fn class_paused_ps(&self, link: u32, class: usize) -> u64 {
        let of_class = self.pausing_of(link, class);
        of_class.map_or(0, |(pausing, own)| pausing.paused_ps(own, self.now.as_ps()))
    }

    /// How long a class of a link's port had been paused when data of a queue pair that had waited
    /// there left last, in ps.
    pub(in crate::engine) fn paused_when_data_left_ps(&self, link: u32, class: usize) -> u64 {
        let of_class = self.pausing_of(link, class);
        of_class.and_then(|(pausing, own)| Some(pausing.pulled.get(own)?.1)).unwrap_or_default()
    }

    /// Whether a class of any port pauses now.
    pub(in crate::engine) fn any_pauses(&self) -> bool {
        let mut pausing =
            self.state.scheduled.iter().flatten().filter_map(|port| port.aside.pausing.as_ref());
        pausing.any(|pausing| pausing.now.iter().any(Option::is_some))
    }

    /// The port of a link is told to pause a class, or that the class may go on: it obeys after the
    /// time that it takes for it.
    pub(in crate::engine) fn tell_port(&mut self, link: u32, frame: PauseFrame) {
        let state = &self.state.links[link as usize];
        let rate = self.state.profiles[state.profile].rate;
        let rules = self.topology.shared_buffer.and_then(|memory| memory.pause);
        let response = rules.map_or(Span::ZERO, |rules| rules.response_of(rate));
        let Some(Outlet { port, .. }) = outlet!(self, link) else { return };
        let Some(pausing) = &mut port.aside.pausing else { return };
        let mut at = self.now.saturating_add(response);
        // At a rate that is another one by now, what was told first may be obeyed later: order
        // holds.
        if let Some((last, _)) = pausing.told.back() {
            at = at.max(Time::from_ps(*last));
        }
        pausing.told.push_back((at.as_ps(), frame));
        self.events.push_timer(at, EventKey::new(EventKind::Pause, link));
    }

    /// A port obeys what it was told, as far as it is time.
    pub(in crate::engine) fn obey(&mut self, link: u32) {
        let now = self.now;
        let Some(mut outlet) = outlet!(self, link) else { return };
        let port = &mut *outlet.port;
        let first_own = port.first_own();
        let Some(pausing) = &mut port.aside.pausing else { return };
        while let Some(frame) = pausing.next(now.as_ps()) {
            if let Some(queue) = port.classes.get_mut(first_own + usize::from(frame.class)) {
                queue.set_paused(frame.pauses, outlet.packets);
                pausing.note(frame, now);
            }
        }
        port.serves_at = port.next_service().max(now.as_ps());
        if !port.is_free(now.as_ps()) && port.free_at <= now.as_ps() {
            // What may go on goes now: this is behind all other events of the instant.
            if !port.is_plain {
                return self.serve_watched(link);
            }
            outlet.send_before(now.as_ps() + 1);
        }
        outlet.arm(now.as_ps());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_card_sent_tells_until_when_it_waited() {
        let mut pausing = Pausing::new(1);
        let frame = |pauses| PauseFrame { class: 0, pauses, blamed: 7 };
        let at = |us| Time::ZERO + Span::from_us(us);
        let us = |us| Span::from_us(us).as_ps();
        pausing.pulled_waits(0, 3);
        pausing.note(frame(true), at(0));
        assert_eq!(pausing.leaves(0, 2, us(1)), us(1), "one of TCP, before it");
        assert_eq!(pausing.pulled[0], (3, 0));
        assert_eq!(pausing.leaves(0, 3, us(2)), us(2));
        assert_eq!(pausing.leaves(0, 4, us(5)), us(5), "one of TCP, behind it");
        assert_eq!(pausing.pulled[0], (NO_PACKET, us(2)));
        pausing.pulled_waits(0, 9);
        pausing.lose();
        pausing.leaves(0, 9, us(6));
        assert_eq!(pausing.pulled[0].1, us(2), "another packet in the same place");
    }

    #[test]
    fn pauses_are_booked_by_who_is_to_blame_and_what_repeats_them_is_not() {
        let mut pausing = Pausing::new(2);
        let at = |us| Time::ZERO + Span::from_us(us);
        let frame = |class, pauses, blamed| PauseFrame { class, pauses, blamed };
        for (us, frame) in [
            (1, frame(0, true, 7)),
            (2, frame(0, true, 8)),
            (4, frame(0, false, 8)),
            (5, frame(0, false, 8)),
            (6, frame(0, true, 7)),
            (7, frame(1, true, 9)),
            (8, frame(0, false, 7)),
        ] {
            pausing.note(frame, at(us));
        }
        let us = Span::from_us;
        let of = |pauses, paused, longest, first, last| PauseTotals {
            pauses,
            paused: us(paused),
            longest: us(longest),
            first: at(first),
            last: at(last),
        };
        assert_eq!(pausing.totals(at(10)), [((0, 7), of(2, 5, 3, 1, 8)), ((1, 9), of(1, 3, 3, 7, 10))]);
    }
}
