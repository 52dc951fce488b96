//! Conservative parallel simulation: within a synchronization window each partition works
//! independently, and what it sends to other partitions arrives in a later window.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use weft_packet::Packet;
use weft_topology::FaultEvent;
use weft_transport::Transports;
use weft_units::{Span, Time};

use super::Engine;
use super::balance::Balance;
use super::workers::{Inbox, Window, WorkerPool};
use crate::engine::event_set::EventKey;
use crate::engine::partition::Partition;
use crate::engine::partition::{OutgoingBatches, PacketExtras};

/// The synchronization windows of a run with several partitions.
pub(super) struct SyncWindows {
    /// Length of a window: the lookahead.
    pub length: Span,
    /// By partition: packets that were sent to it and that it has not taken in.
    pub inboxes: Vec<Inbox>,
    /// By thread: packets that its partitions sent in this window.
    pub outgoing: Vec<OutgoingBatches>,
    /// After a window with fewer events than this, one thread works alone.
    pub share_from: u64,
    /// Windows until now.
    pub windows: u64,
    /// Counts how well more threads would share the windows, if that is asked.
    pub balance: Option<Balance>,
}

/// The outcome of a stretch of work.
struct Work {
    /// Events that were processed.
    done: u64,
    /// Whether nothing is left before the limit.
    is_over: bool,
}

impl SyncWindows {
    /// Windows of the given length for these numbers of partitions and threads; at least 1 each.
    pub fn new(length: Span, partitions: usize, threads: usize, share_from: u64) -> Self {
        Self {
            length,
            inboxes: (0..partitions).map(|_| Inbox::new(threads)).collect(),
            outgoing: (0..threads).map(|_| OutgoingBatches::new(partitions)).collect(),
            share_from,
            windows: 0,
            balance: None,
        }
    }

    /// Adds a count of how well this many threads would share the windows, if it is asked.
    pub fn balanced_over(self, threads: Option<NonZeroUsize>) -> Self {
        let balance = threads.map(|threads| Balance::new(threads.get(), self.share_from));
        Self { balance, ..self }
    }
}

impl<T: Transports> Engine<'_, T> {
    /// Lets the partitions work up to the limit, or for about `budget` events. Returns the number
    /// of events.
    pub(super) fn work_by_window(&mut self, limit: (Time, EventKey), budget: u64) -> u64 {
        let mut work = Work { done: 0, is_over: false };
        while work.done < budget && !work.is_over {
            let limit = limit.min((self.last_instant.saturating_add(Span::from_ps(1)), EventKey::FIRST));
            let next = self.take_in_sent();
            let Some(next) = next.filter(|&next| (next, EventKey::FIRST) < limit) else { break };
            // A sender learns in a later window what its receiver has: so the last flow does not
            // end in a window at whose start a receiver still waits.
            let more = if self.delivered() < self.finite || self.finite == 0 {
                self.work_apart(next, limit, budget - work.done)
            } else {
                self.work_in_order(next, limit)
            };
            work = Work { done: work.done + more.done, ..more };
        }
        work.done
    }

    /// Flows whose receivers have all bytes.
    fn delivered(&mut self) -> usize {
        self.partitions_mut().map(|partition| partition.common.delivered).sum()
    }

    /// Gives partitions the packets that were sent to them. Returns when the next event is due, or
    /// a time before that.
    pub(super) fn take_in_sent(&mut self) -> Option<Time> {
        let sync_windows = self.sync_windows.as_ref()?;
        let mut first: Option<Time> = None;
        for (partition, inbox) in self.partitions.iter_mut().zip(&sync_windows.inboxes) {
            let partition = super::inner(partition);
            inbox.empty(|batch| partition.put(batch));
            first = [first, partition.next_time()].into_iter().flatten().min();
        }
        first
    }

    /// Partitions work independently, window after window, on all threads, as long as the run
    /// certainly goes on.
    fn work_apart(&mut self, next: Time, limit: (Time, EventKey), budget: u64) -> Work {
        let mut work = Work { done: 0, is_over: true };
        let Some(sync_windows) = &mut self.sync_windows else { return work };
        let finite = if self.finite == 0 { usize::MAX } else { self.finite };
        let SyncWindows { inboxes, outgoing, length, share_from, windows, balance } = sync_windows;
        let (threads, share_from, mut before) = (outgoing.len(), *share_from, *share_from);
        let around = self.around;
        let board = WorkerPool::new(&self.partitions, inboxes, &self.plan, outgoing.len());
        let mut lead = |outgoing: &mut OutgoingBatches| {
            let mut next = Some(next);
            while let Some(begin) = next.filter(|&next| (next, EventKey::FIRST) < limit) {
                let window = Window::at(*windows, begin, *length, limit);
                // One window has about as many events as the one before.
                let shares = threads > 1 && before >= share_from;
                let report = if shares {
                    board.lead(window, outgoing)
                } else {
                    board.lead_alone(window, outgoing, balance.as_mut())
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
        if let Some((own, others)) = outgoing.split_first_mut() {
            std::thread::scope(|scope| {
                for (outgoing, thread) in others.iter_mut().zip(1..) {
                    let board = &board;
                    scope.spawn(move || match around {
                        Some(around) => around(&mut || board.follow(thread, outgoing)),
                        None => board.follow(thread, outgoing),
                    });
                }
                lead(own);
                board.dismiss();
            });
        }
        work
    }

    /// All partitions work up to the end of a window, event by event in the one order, so that the
    /// run can end at an instant.
    fn work_in_order(&mut self, next: Time, limit: (Time, EventKey)) -> Work {
        let mut work = Work { done: 0, is_over: true };
        let Some(sync_windows) = &mut self.sync_windows else { return work };
        sync_windows.windows += 1;
        let last = limit;
        let Window { begin, mut limit, .. } =
            Window::at(sync_windows.windows, next, sync_windows.length, limit);
        work.is_over = limit == last;
        self.partitions_mut().for_each(|partition| partition.network.events.turn_to(begin));
        loop {
            let nexts = self.partitions_mut().enumerate();
            let first = nexts.filter_map(|(number, partition)| Some((partition.peek()?, number))).min();
            let Some((_, number)) = first.filter(|(event, _)| *event < limit) else { break };
            let (Some(sync_windows), partition) =
                (&mut self.sync_windows, super::inner(&mut self.partitions[number]))
            else {
                break;
            };
            let before = partition.finished;
            work.done += partition.work(&self.plan, limit, 1, &mut sync_windows.outgoing[0]);
            let (finished, now) = (partition.finished, partition.network.now);
            if finished > before && self.is_done() {
                self.last_instant = now;
                limit = limit.min((now.saturating_add(Span::from_ps(1)), EventKey::FIRST));
            }
        }
        let (Some(sync_windows), partitions) = (&mut self.sync_windows, self.partitions.iter_mut()) else {
            return work;
        };
        for partition in partitions.map(super::inner) {
            partition.with_outgoing(Some(&mut sync_windows.outgoing[0]), |partition| partition.close(limit));
        }
        self.carry();
        work
    }

    /// Takes back what was sent over a link that changes its condition, by arrival.
    pub(super) fn recall(&mut self, fault: &FaultEvent) -> Vec<(Packet, Option<PacketExtras>)> {
        self.partitions_mut().flat_map(|partition| partition.take_back(fault.link)).collect()
    }

    /// Delivers the first thread's outgoing batches to their partitions.
    pub(super) fn carry(&mut self) {
        let Some(sync_windows) = &mut self.sync_windows else { return };
        let partitions: &mut [Mutex<Partition<'_, T>>] = &mut self.partitions;
        sync_windows.outgoing[0].take_earliest_ps();
        sync_windows.outgoing[0].send(|part, batch| super::inner(&mut partitions[part as usize]).put(batch));
    }
}
