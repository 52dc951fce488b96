//! Several groups, day by day: on each day every group works by itself, and what it sends to others arrives on a later day.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use weft_packet::Packet;
use weft_topology::FaultEvent;
use weft_transport::Transports;
use weft_units::{Span, Time};

use super::Engine;
use super::balance::Balance;
use super::crew::{Board, Slot, Window};
use crate::engine::event_set::EventKey;
use crate::engine::group::Group;
use crate::engine::mail::{Beside, Outbox};

/// How the groups of a fabric that is cut work together.
pub(super) struct Days {
    /// How long they work without each other.
    pub length: Span,
    /// What was sent to each, and has not been taken in.
    pub slots: Vec<Slot>,
    /// One for each thread.
    pub outboxes: Vec<Outbox>,
    /// With fewer events in the window before, one thread works alone.
    pub share_from: u64,
    /// How many windows there were.
    pub windows: u64,
    /// How well more threads would share them, if somebody asks.
    pub balance: Option<Balance>,
}

/// What came of some work.
struct Work {
    /// Events that were done.
    done: u64,
    /// Whether nothing is left before the limit.
    is_over: bool,
}

impl Days {
    /// Of so many groups and threads, of which there is at least one.
    pub fn new(length: Span, groups: usize, threads: usize, share_from: u64) -> Self {
        Self {
            length,
            slots: (0..groups).map(|_| Slot::new(threads)).collect(),
            outboxes: (0..threads).map(|_| Outbox::new(groups)).collect(),
            share_from,
            windows: 0,
            balance: None,
        }
    }

    /// The same, counting how well so many threads would share the windows, if that is asked.
    pub fn balanced_over(self, threads: Option<NonZeroUsize>) -> Self {
        let balance = threads.map(|threads| Balance::new(threads.get(), self.share_from));
        Self { balance, ..self }
    }
}

impl<T: Transports> Engine<'_, T> {
    /// Lets the groups work up to here, or for so many events, or somewhat more. Returns how many it did.
    pub(super) fn work_by_day(&mut self, limit: (Time, EventKey), budget: u64) -> u64 {
        let mut work = Work { done: 0, is_over: false };
        while work.done < budget && !work.is_over {
            let limit = limit.min((self.last_instant.saturating_add(Span::from_ps(1)), EventKey::FIRST));
            let next = self.take_in_mail();
            let Some(next) = next.filter(|&next| (next, EventKey::FIRST) < limit) else { break };
            // What a receiver has got, its sender learns on a later day: so the last flow ends on none on which a receiver still
            // waits when it begins.
            let more = if self.delivered() < self.finite || self.finite == 0 {
                self.work_apart(next, limit, budget - work.done)
            } else {
                self.work_in_order(next, limit)
            };
            work = Work { done: work.done + more.done, ..more };
        }
        work.done
    }

    /// Flows of which receivers have everything.
    fn delivered(&mut self) -> usize {
        self.groups_mut().map(|group| group.common.delivered).sum()
    }

    /// Gives groups what was sent to them. Returns when the next event is due, or a time before that.
    pub(super) fn take_in_mail(&mut self) -> Option<Time> {
        let days = self.days.as_ref()?;
        let mut first: Option<Time> = None;
        for (group, slot) in self.groups.iter_mut().zip(&days.slots) {
            let group = super::inner(group);
            slot.empty(|bag| group.put(bag));
            first = [first, group.next_time()].into_iter().flatten().min();
        }
        first
    }

    /// Each group works by itself, day after day, on all threads: as long as it is certain that the run does not end.
    fn work_apart(&mut self, next: Time, limit: (Time, EventKey), budget: u64) -> Work {
        let mut work = Work { done: 0, is_over: true };
        let Some(days) = &mut self.days else { return work };
        let finite = if self.finite == 0 { usize::MAX } else { self.finite };
        let Days { slots, outboxes, length, share_from, windows, balance } = days;
        let (threads, share_from, mut before) = (outboxes.len(), *share_from, *share_from);
        let around = self.around;
        let board = Board::new(&self.groups, slots, &self.plan, outboxes.len());
        let mut lead = |outbox: &mut Outbox| {
            let mut next = Some(next);
            while let Some(begin) = next.filter(|&next| (next, EventKey::FIRST) < limit) {
                let window = Window::of_day(*windows, begin, *length, limit);
                // One window has about as many events as the one before.
                let shares = threads > 1 && before >= share_from;
                let report = if shares {
                    board.lead(window, outbox)
                } else {
                    board.lead_alone(window, outbox, balance.as_mut())
                };
                (before, work.done) = (report.done, work.done + report.done);
                *windows += 1;
                // What is left at the limit's own instant is not before it.
                work.is_over = window.limit == limit;
                if work.is_over || report.delivered >= finite || work.done >= budget {
                    return;
                }
                next = report.next;
            }
            work.is_over = true;
        };
        if let Some((own, others)) = outboxes.split_first_mut() {
            std::thread::scope(|scope| {
                for (outbox, thread) in others.iter_mut().zip(1..) {
                    let board = &board;
                    scope.spawn(move || match around {
                        Some(around) => around(&mut || board.follow(thread, outbox)),
                        None => board.follow(thread, outbox),
                    });
                }
                lead(own);
                board.dismiss();
            });
        }
        work
    }

    /// All groups work up to the end of a day, event by event in the one order, so that the run can end at an instant.
    fn work_in_order(&mut self, next: Time, limit: (Time, EventKey)) -> Work {
        let mut work = Work { done: 0, is_over: true };
        let Some(days) = &mut self.days else { return work };
        days.windows += 1;
        let last = limit;
        let Window { begin, mut limit, .. } = Window::of_day(days.windows, next, days.length, limit);
        work.is_over = limit == last;
        self.groups_mut().for_each(|group| group.network.events.turn_to(begin));
        loop {
            let nexts = self.groups_mut().enumerate();
            let first = nexts.filter_map(|(number, group)| Some((group.peek()?, number))).min();
            let Some((_, number)) = first.filter(|(event, _)| *event < limit) else { break };
            let (Some(days), group) = (&mut self.days, super::inner(&mut self.groups[number])) else { break };
            let before = group.finished;
            work.done += group.work(&self.plan, limit, 1, &mut days.outboxes[0]);
            let (finished, now) = (group.finished, group.network.now);
            if finished > before && self.is_done() {
                self.last_instant = now;
                limit = limit.min((now.saturating_add(Span::from_ps(1)), EventKey::FIRST));
            }
        }
        let (Some(days), groups) = (&mut self.days, self.groups.iter_mut()) else { return work };
        for group in groups.map(super::inner) {
            group.with_outbox(Some(&mut days.outboxes[0]), |group| group.close(limit));
        }
        self.carry();
        work
    }

    /// Takes back what was posted over a link that changes its condition, by arrival.
    pub(super) fn recall(&mut self, fault: &FaultEvent) -> Vec<(Packet, Option<Beside>)> {
        self.groups_mut().flat_map(|group| group.take_back(fault.link)).collect()
    }

    /// Brings what the first outbox holds to the groups that it is for.
    pub(super) fn carry(&mut self) {
        let Some(days) = &mut self.days else { return };
        let groups: &mut [Mutex<Group<'_, T>>] = &mut self.groups;
        days.outboxes[0].take_earliest_ps();
        days.outboxes[0].send(|part, bag| super::inner(&mut groups[part as usize]).put(bag));
    }
}
