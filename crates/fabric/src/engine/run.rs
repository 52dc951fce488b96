//! The engine of a simulation: flows start, packets move, flows end.
//!
//! The fabric is one partition, or several that work window by window: see [`super::partition`].
//! What concerns the whole fabric at an instant (a fault, what is learned of it, a sample) stands
//! in an agenda, and the partitions work up to it.

mod balance;
mod begin;
mod deadlock;
mod outcome;
mod snapshot;
mod windows;
mod work_queue;
mod workers;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};

use weft_packet::FlowId;
use weft_topology::{FaultEvent, Routes, Topology};
use weft_traffic::Flow;
use weft_transport::Transports;
use weft_units::{Span, Time};

use super::cwnd::Windows;
use super::deadlock::PausedLink;
use super::degraded_links::DegradedLinkWatch;
use super::event_set::{EventKey, EventKind};
use super::external_hosts::{ExternalEnds, ExternalHostError};
use super::host::{Host, RunPlan, route_counts};
use super::partition::Partition;
use super::records::Records;
use super::retransmission_causes::Dropped;
use super::sampler::{Quiescence, Sampler};
use super::shared_buffer::SharedBuffer;
use super::simulation::{Ending, Progress, Status, ThreadHook};
use super::tables::Knowledge;
pub use balance::cost_of_a_window;
pub use snapshot::{FlowNow, LinkNow, PacketNow, Snapshot};
use windows::SyncWindows;
use workers::locked;

/// A run over one transport or several, from its first event to its last.
pub struct Engine<'a, T: Transports> {
    topology: &'a Topology,
    partitions: Vec<Mutex<Partition<'a, T>>>,
    /// How the partitions work together; none if there is one partition.
    sync_windows: Option<SyncWindows>,
    plan: RunPlan<'a, T>,
    /// Events that concern the whole fabric.
    agenda: BinaryHeap<Reverse<(Time, EventKey)>>,
    knowledge: Knowledge,
    pinned: Option<Arc<Routes>>,
    faults: &'a [FaultEvent],
    reroute_after: Span,
    finite: usize,
    /// Whether external hosts began with something that the run waits for, besides flows.
    waits_for_external: bool,
    /// Nothing happens after this instant: the time limit, or when the last flow that can end has
    /// ended.
    last_instant: Time,
    ending: Option<Ending>,
    /// The links of a circle of pauses, which has ended the run.
    deadlock: Vec<PausedLink>,
    /// Items of the agenda that were seen to.
    timers: u64,
    sampler: Option<Sampler<'a>>,
    windows: Option<Windows<'a>>,
    slowed: Option<DegradedLinkWatch>,
    /// By link of the fabric: its partition, and its number there.
    places: Vec<(u32, u32)>,
    /// Measures what further threads take.
    around: Option<ThreadHook<'a>>,
    records: Records,
    /// Flows that had ended when records were last taken in.
    taken_in: usize,
    /// Flows that end between two times at which records are taken in.
    take_in_every: usize,
}

/// The look at links that faults slowed, behind all others of its instant.
const SLOWED: EventKey = EventKey::new(EventKind::Sample, u32::MAX);

/// Value in a lock that nobody else can reach.
fn inner<V>(lock: &mut Mutex<V>) -> &mut V {
    lock.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, T: Transports> Engine<'a, T> {
    /// Processes what happens up to `until`, that instant included, but no more than `max_events`
    /// events, or somewhat more.
    pub fn advance(&mut self, until: Time, max_events: u64) -> Status {
        if let Some(ending) = self.ending {
            return Status::Finished(ending);
        }
        let mut left = max_events;
        loop {
            let last = self.last_instant.min(until);
            let item = self.agenda.peek().map(|item| item.0).filter(|&(at, _)| at <= last);
            let behind = (last.saturating_add(Span::from_ps(1)), EventKey::FIRST);
            left = left.saturating_sub(self.work(item.unwrap_or(behind), left));
            if self.external_failure().is_some() {
                self.ending = Some(Ending::Broken);
                return Status::Finished(Ending::Broken);
            }
            if left == 0 {
                self.take_in();
                return Status::Running;
            }
            // The run may have ended before its next item.
            match item.filter(|&(at, _)| at <= self.last_instant) {
                Some((at, key)) => {
                    self.agenda.pop();
                    left -= 1;
                    self.see_to(at, key);
                    if let Some(ending) = self.ending {
                        return Status::Finished(ending);
                    }
                }
                None if self.last_instant <= until || self.rests() => return self.end(),
                None => return Status::Reached,
            }
        }
    }

    /// Whether nothing will ever happen again.
    fn rests(&mut self) -> bool {
        self.agenda.is_empty() && self.partitions_mut().all(|partition| partition.is_idle())
    }

    /// Lets the partitions work up to here, or for so many events. Returns how many it did.
    fn work(&mut self, limit: (Time, EventKey), budget: u64) -> u64 {
        if self.sync_windows.is_some() {
            return self.work_by_window(limit, budget);
        }
        let Some(partition) = self.partitions.first_mut().map(inner) else { return 0 };
        let done = if partition.external.is_some() {
            partition.advance_with_external(&self.plan, limit, budget)
        } else {
            partition.network.events.set_limit(limit.0, limit.1);
            partition.advance(&self.plan, budget)
        };
        if self.is_done() {
            self.last_instant = self.now();
        }
        done
    }

    /// Takes in what hosts and ports noted of flows, if that is much.
    fn take_in(&mut self) {
        let finished: usize = self.partitions_mut().map(|partition| partition.finished).sum();
        if finished - self.taken_in < self.take_in_every {
            return;
        }
        self.taken_in = finished;
        let now = self.now();
        let dropped =
            self.partitions_mut().flat_map(|partition| std::mem::take(&mut partition.network.dropped));
        let dropped: Vec<Dropped> = dropped.collect();
        let hosts = self.partitions.iter_mut().flat_map(|partition| &mut inner(partition).hosts);
        self.records.take_in(&self.plan, now, hosts.map(Host::log_mut), dropped.into_iter());
    }

    /// The run is over: because every flow has ended, or else because nothing is left, or for lack
    /// of time.
    #[cold]
    fn end(&mut self) -> Status {
        let ending = if self.is_done() {
            Ending::AllDone
        } else if self.rests() {
            Ending::Idle
        } else {
            let last = self.last_instant;
            self.partitions_mut().for_each(|partition| partition.network.now = last);
            Ending::TimeLimit
        };
        self.ending = Some(ending);
        Status::Finished(ending)
    }

    fn partitions_mut(&mut self) -> impl Iterator<Item = &mut Partition<'a, T>> {
        self.partitions.iter_mut().map(inner)
    }

    /// Whether every flow that can end has ended, and what else the run waits for. Never, where
    /// there is neither.
    fn is_done(&mut self) -> bool {
        let finite = self.finite;
        let is_busy = |partition: &mut Partition<'a, T>| {
            partition.external.as_ref().is_some_and(|external| external.is_busy())
        };
        (finite > 0 || self.waits_for_external)
            && self.partitions_mut().map(|partition| partition.finished).sum::<usize>() == finite
            && !self.partitions_mut().any(is_busy)
    }

    /// Why the external hosts are gone, if they are: then nothing goes on.
    fn external_failure(&mut self) -> Option<&mut ExternalEnds<'a>> {
        let external = self.partitions.first_mut().map(inner)?.external.as_deref_mut()?;
        external.failure().is_some().then_some(external)
    }

    /// Takes the reason why the external hosts are gone, if they are.
    pub fn take_external_failure(&mut self) -> Option<ExternalHostError> {
        self.external_failure()?.take_failure()
    }

    /// The latest time that any partition has reached.
    fn now(&mut self) -> Time {
        self.partitions_mut().map(|partition| partition.network.now).max().unwrap_or(Time::ZERO)
    }

    /// Something that concerns the whole fabric is due.
    #[cold]
    fn see_to(&mut self, at: Time, key: EventKey) {
        if self.sync_windows.is_some() {
            self.take_in_sent();
        }
        if key == SLOWED {
            return self.look_at_slowed(at);
        }
        self.timers += 1;
        self.partitions_mut().for_each(|partition| partition.network.now = at);
        let number = key.entity();
        match key.kind() {
            EventKind::Fault => {
                let fault = &self.faults[number as usize];
                self.change(fault);
                self.knowledge.see(fault);
                let learned = at.saturating_add(self.reroute_after);
                self.agenda.push(Reverse((learned, EventKey::new(EventKind::Reroute, number))));
                self.routes_changed(number);
            }
            EventKind::Reroute => {
                self.knowledge.learn(&self.faults[number as usize]);
                self.routes_changed(number);
            }
            EventKind::Deadlock => self.look_for_deadlock(at),
            // The first look of all is at links and receivers, others at the window of one flow
            // each.
            _ => match number.checked_sub(1) {
                None => self.sample(at),
                Some(place) => self.look_at_window(at, place),
            },
        }
    }

    /// A link changes its condition. What was sent over it to another partition comes back first,
    /// and is sent again.
    fn change(&mut self, fault: &FaultEvent) {
        let (partition, link) = self.places[fault.link as usize];
        let sent = self.recall(fault);
        let Some(partition) = self.partitions.get_mut(partition as usize).map(inner) else { return };
        let outgoing = self.sync_windows.as_mut().map(|sync_windows| &mut sync_windows.outgoing[0]);
        partition.with_outgoing(outgoing, |partition| partition.network.change(link, fault.condition, sent));
        self.carry();
    }

    fn sample(&mut self, at: Time) {
        let Some(mut sampler) = self.sampler.take() else { return };
        self.note_memories(&mut sampler, at);
        sampler
            .deliveries
            .sum_up(&self.plan, self.partitions.iter_mut().flat_map(|partition| &inner(partition).hosts));
        let partitions = || self.partitions.iter().map(|partition| locked(partition));
        let rests =
            partitions().all(|partition| partition.network.is_empty() && !partition.network.any_pauses());
        let timers = partitions().filter_map(|partition| partition.network.events.next_timer()).min();
        let next = timers.into_iter().chain(self.agenda.peek().map(|item| item.0.0)).min();
        let (partitions, places) = (&mut self.partitions, &self.places);
        let rest = if rests { Quiescence::Until(next) } else { Quiescence::None };
        let again = sampler.look(at, rest, &mut |link| {
            let (partition, link) = places[link];
            inner(&mut partitions[partition as usize]).network.look(link as usize)
        });
        self.sampler = Some(sampler);
        self.agenda.push(Reverse((again, EventKey::new(EventKind::Sample, 0))));
    }

    /// Tells how full the shared buffers of switches are.
    fn note_memories(&mut self, sampler: &mut Sampler<'_>, at: Time) {
        if self.topology.shared_buffer.is_none() {
            return;
        }
        let mut found: Vec<(u32, (u64, u64))> = Vec::new();
        for partition in self.partitions_mut() {
            let network = &mut partition.network;
            let Some(shared_buffers) = &mut network.shared_buffers else { continue };
            let switches = network.map.switches().iter().copied();
            found.extend(switches.zip(shared_buffers.switches.iter_mut().map(SharedBuffer::take_peak)));
        }
        found.sort_unstable();
        for (switch, (held, largest)) in found {
            sampler.note_memory(at, switch, held, largest);
        }
    }

    /// Looks at links that faults slowed: no event of the run, and none that keeps it from its end.
    fn look_at_slowed(&mut self, at: Time) {
        if self.rests() {
            return;
        }
        self.partitions_mut().for_each(|partition| partition.network.now = at);
        let Some(watch) = &mut self.slowed else { return };
        let (partitions, places) = (&self.partitions, &self.places);
        let again = watch.look(at, &mut |link| {
            let (partition, link) = places[link as usize];
            locked(&partitions[partition as usize]).network.given_and_waiting(link as usize)
        });
        self.agenda.extend(again.map(|again| Reverse((again, SLOWED))));
    }

    /// Looks at the window of the flow at this place of those that were asked for.
    fn look_at_window(&mut self, at: Time, place: u32) {
        let (partitions, plan) = (&mut self.partitions, &self.plan);
        let Some(windows) = &mut self.windows else { return };
        let flow = FlowId(windows.flows[place as usize]);
        let found = partitions.iter_mut().map(inner).find_map(|partition| partition.window(plan, flow));
        if let Some(again) = windows.note(place as usize, at, found) {
            self.agenda.push(Reverse((again, EventKey::new(EventKind::Sample, place + 1))));
        }
    }

    /// Recomputes the routes, once for all faults of one instant: with the last of them.
    fn routes_changed(&mut self, fault: u32) {
        let fault = fault as usize;
        if self.faults.get(fault + 1).is_some_and(|next| next.at == self.faults[fault].at) {
            return;
        }
        let tables = self.knowledge.tables(self.topology, self.pinned.clone());
        let asks = self.partitions_mut().any(|partition| partition.common.hooks.on_send);
        let counts: Option<Arc<[u16]>> = asks.then(|| route_counts(self.topology, tables.explicit()).into());
        for partition in self.partitions_mut() {
            partition.network.set_tables(Arc::clone(&tables));
            if let Some(counts) = &counts {
                partition.common.routes = Arc::clone(counts);
            }
        }
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        let partitions = || self.partitions.iter().map(locked);
        Progress {
            now: partitions().map(|partition| partition.network.now).max().unwrap_or(Time::ZERO),
            last_start: last_start(self.plan.flows),
            flows_finished: partitions().map(|partition| partition.finished).sum(),
            flows_total: self.finite,
            packet_hops: partitions().map(|partition| partition.network.counts.hops).sum(),
        }
    }
}

fn last_start(flows: &[Flow]) -> Time {
    flows.last().map_or(Time::ZERO, |flow| flow.start)
}
