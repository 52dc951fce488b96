//! Past states of ports, for a switch whose decisions do not see its queues, but what was brought
//! from there.
//!
//! On `BMv2`, queues are seen where packets leave them, and decisions are taken where packets
//! enter; from one to the other go clones of packets through recirculation (QALL §IV). What
//! decisions know is then as old as that takes. Here it is exactly so old: what else clones do, as
//! to come only when a packet leaves, [`super::qall`] has.

use std::collections::VecDeque;

use weft_units::{Span, Time};

use crate::{ParameterError, PortId, SwitchContext};

/// The longest age that is kept: notes of so long are a note for each packet.
const OLDEST: Span = Span::from_ms(100);

/// Refuses an age that takes more memory than a switch of a simulation should.
pub fn validate(age: Span) -> Result<(), ParameterError> {
    if age <= OLDEST {
        return Ok(());
    }
    Err(ParameterError { key: "age", found: age.to_string(), allowed: "at most 100ms" })
}

/// Notes on ports, as far back as decisions look.
#[derive(Debug, Clone)]
pub struct Past<T> {
    age: Span,
    /// By port, with the times: the oldest is the last one that is no younger than `age`, or the
    /// first of all.
    notes: Box<[VecDeque<(Time, T)>]>,
}

impl<T: Copy> Past<T> {
    /// Notes on this many ports, for decisions that look so far back. None for no age.
    pub fn new(age: Span, ports: usize) -> Option<Box<Self>> {
        let notes = || vec![VecDeque::new(); ports].into_boxed_slice();
        (!age.is_zero()).then(|| Box::new(Self { age, notes: notes() }))
    }

    /// From now on, this is so of a port.
    pub fn note(&mut self, port: PortId, now: Time, value: T) {
        let notes = &mut self.notes[port.index()];
        match notes.back_mut() {
            Some(last) if last.0 == now => last.1 = value,
            _ => notes.push_back((now, value)),
        }
        forget(notes, now, self.age);
    }

    /// The time that decisions look at, and what had last been noted of a port by then, with the
    /// time of the note; none if that was nothing yet.
    pub fn look(&mut self, port: PortId, now: Time) -> (Time, Option<(Time, T)>) {
        let notes = &mut self.notes[port.index()];
        forget(notes, now, self.age);
        let then = Time::from_ps(now.as_ps().saturating_sub(self.age.as_ps()));
        (then, notes.front().copied().filter(|&(at, _)| at.saturating_add(self.age) <= now))
    }

    /// How many ports there are.
    pub fn ports(&self) -> usize {
        self.notes.len()
    }
}

/// Drops notes that no decision looks at any more: those behind which another one is old enough.
fn forget<T>(notes: &mut VecDeque<(Time, T)>, now: Time, age: Span) {
    while notes.get(1).is_some_and(|&(at, _)| at.saturating_add(age) <= now) {
        notes.pop_front();
    }
}

/// A queue, from a time on: nothing more comes, or it is noted anew.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    bytes: u64,
    drained: Time,
}

impl Queue {
    /// All that is queued on a port now.
    pub fn of<C: SwitchContext + ?Sized>(cx: &C, port: PortId) -> Self {
        let drained = cx.now().saturating_add(cx.drain_time(port));
        Self { bytes: cx.backlog_bytes(port), drained }
    }

    /// Bytes left in the queue at `then`, if it was noted at `noted` before.
    fn left(self, noted: Time, then: Time) -> u64 {
        let (left, all) = (self.drained.since(then).as_ps(), self.drained.since(noted).as_ps());
        if all == 0 {
            return 0;
        }
        (u128::from(self.bytes) * u128::from(left) / u128::from(all)) as u64
    }
}

impl Past<Queue> {
    /// Bytes that were queued on a port when decisions look at it.
    pub fn bytes(&mut self, port: PortId, now: Time) -> u64 {
        let (then, queue) = self.look(port, now);
        queue.map_or(0, |(noted, queue)| queue.left(noted, then))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::FakeSwitch;

    use super::*;

    const PORT: PortId = PortId(1);

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_decision_sees_what_had_been_noted_when_it_looks() {
        let mut past = Past::new(Span::from_us(100), 2).expect("an age");
        let seen = |past: &mut Past<char>, now| past.look(PORT, us(now)).1.map(|(_, value)| value);
        past.note(PORT, us(10), 'a');
        past.note(PORT, us(30), 'b');
        past.note(PORT, us(30), 'c');
        let early = [30, 109, 110, 129, 130].map(|now| seen(&mut past, now));
        assert_eq!(early, [None, None, Some('a'), Some('a'), Some('c')], "of two notes of a time, the last");
        past.note(PORT, us(170), 'd');
        let late = [170, 269, 270, 9_999].map(|now| seen(&mut past, now));
        assert_eq!(late, [Some('c'), Some('c'), Some('d'), Some('d')]);
        assert_eq!(past.look(PortId(0), us(999)), (us(899), None), "nothing was noted of another port");
        assert!(Past::<char>::new(Span::ZERO, 2).is_none());
    }

    #[test]
    fn no_more_is_kept_than_decisions_may_look_at() {
        let mut past = Past::new(Span::from_us(100), 2).expect("an age");
        (0..10_000).for_each(|step| past.note(PORT, us(step * 10), step));
        // Those of the last 100 us, and the one before.
        assert_eq!(past.notes[1].len(), 11);
    }

    /// 15,000 B at 10 Gbit/s drain in 12 us.
    #[test]
    fn a_queue_of_a_while_ago_has_drained_to_what_it_was_then() {
        let (mut switch, mut past) =
            (FakeSwitch::new(2, 1), Past::new(Span::from_us(100), 2).expect("an age"));
        switch.now = us(1_000);
        switch.backlogs[1] = 15_000;
        past.note(PORT, switch.now, Queue::of(&switch, PORT));
        let mut seen = |now| past.bytes(PORT, us(now));
        assert_eq!(
            [1_000, 1_099, 1_100, 1_104, 1_106, 1_112, 2_000].map(&mut seen),
            [0, 0, 15_000, 10_000, 7_500, 0, 0]
        );
    }

    #[test]
    fn an_age_beyond_what_is_kept_is_refused() {
        assert_eq!(validate(Span::from_ms(100)), Ok(()));
        let refused = validate(Span::from_ms(101)).expect_err("too long").to_string();
        assert_eq!(refused, "age is 101ms: at most 100ms");
    }
}
