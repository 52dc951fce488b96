//! A host's RDMA card (RNIC): it asks its queue pairs for packets, in turn.
//!
//! A queue pair is the sending end of a flow whose transport is pulled
//! ([`weft_transport::Protocol::is_rnic_scheduled`]). It puts nothing into the host's queue by
//! itself: when the cable can take a packet, the card asks the queue pair whose turn it is, and
//! this one sends one packet, or says before when it need not be asked again (its rate or its
//! window holds it back). So a host has no endless FIFO: of data that is pulled one packet waits at
//! its cable at most, behind that which is being sent. What the receiving ends at the host answer
//! is queued there at once, and so goes before data that has yet to be asked for.
//!
//! Queue pairs take turns packet by packet (round robin). Where the host's port has several
//! classes, those of each class take turns among themselves (a [`Lane`]), and which class sends is
//! up to the port's own scheduler: for that, each has one packet ready. Whether a class may put a
//! packet there is asked in one place, [`HostPort::gate`].
//!
//! A packet costs one event. Nothing is allocated for it, and nothing is searched, but for queue
//! pairs that wait for a time: they are in a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use weft_transport::{Multipath, Protocol, Pull, Transports};
use weft_units::Time;

use super::nic::HostPort;
use super::outbox::HostOutbox;
use super::qp_stalls::QpStalls;
use super::{Host, HostCall, RunPlan};
use crate::engine::fetch::fetch;

/// Whether a packet of a class may go to the host's port now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// Not before this time, which is later than now: ask again then.
    Until(Time),
    /// The class is stopped: [`Host::pull`] is called when it no longer is.
    Shut,
}

/// Where a queue pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It has nothing to send, or waits for its transport.
    Idle,
    /// It waits for its turn.
    Queued,
    /// It waits for a time.
    Paced,
}

/// State of a queue pair at a host's card.
#[derive(Debug, Clone, Copy)]
pub struct QueuePair {
    /// Where it is.
    pub turn: Turn,
    /// Whether its transport has said that it may be asked.
    pub is_ready: bool,
    /// Whether its transport is pulled at all.
    pub is_rnic_scheduled: bool,
    /// The class of its packets at the host's port.
    pub lane: u8,
    /// It takes its turn because an acknowledgement came.
    pub is_ack_clocked: bool,
}

impl QueuePair {
    /// Queue pair of a flow that is not pulled, or has not begun.
    pub const IDLE: Self =
        Self { turn: Turn::Idle, is_ready: false, is_rnic_scheduled: false, lane: 0, is_ack_clocked: false };
}

/// The queue pairs of one class, by the host's numbers for flows that it sends.
#[derive(Debug, Default)]
struct Lane {
    turns: VecDeque<u32>,
    /// When the last packet of the class will have left the cable, where that is known beforehand.
    left_at: Time,
}

/// The card of one host.
#[derive(Debug)]
pub struct Rnic {
    lanes: Vec<Lane>,
    /// Queue pairs that wait for a time.
    paced: BinaryHeap<Reverse<(Time, u32)>>,
    /// The earliest event that is pending for it.
    wakes_at: Time,
    /// How long pauses stop queue pairs, where the cable may be told to pause.
    stops: Option<Box<QpStalls>>,
}

impl Rnic {
    /// One that has nothing to do. `may_pause` says whether its cable may be told to pause.
    pub fn new(may_pause: bool) -> Self {
        let stops = may_pause.then(Box::default);
        Self { lanes: Vec::new(), paced: BinaryHeap::new(), wakes_at: Time::NEVER, stops }
    }

    /// Asks for what tells who is next.
    #[inline]
    pub fn fetch(&self) {
        self.lanes.iter().next_back().into_iter().for_each(fetch);
        self.paced.peek().into_iter().for_each(fetch);
    }

    /// Queue pairs that are asked next, perhaps: of each class, and of those that wait for a time.
    #[inline]
    pub fn next(&self) -> impl Iterator<Item = u32> {
        let queued = self.lanes.iter().filter_map(|lane| lane.turns.front().copied());
        queued.chain(self.paced.peek().map(|Reverse((_, number))| *number))
    }

    /// A queue pair takes its turn behind those of its class.
    fn push(&mut self, lane: u8, number: u32, nic: &HostPort<'_, '_>) {
        let lane = usize::from(lane);
        if let Some(stops) = &mut self.stops {
            stops.begin(number, nic.paused_ps(lane));
        }
        self.push_begun(lane, number);
    }

    /// Queues a queue pair that is let go by its window, while its class is stopped, and by its
    /// rate only at this time.
    #[cold]
    fn push_stopped(&mut self, lane: u8, number: u32, held_until: Time, nic: &HostPort<'_, '_>) {
        let lane = usize::from(lane);
        if let Some(stops) = &mut self.stops {
            stops.begin(number, nic.paused_ps(lane) + held_until.since(nic.now()).as_ps());
        }
        self.push_begun(lane, number);
    }

    fn push_begun(&mut self, lane: usize, number: u32) {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        self.lanes[lane].turns.push_back(number);
    }

    /// Whether a class, whose port may be told to pause, is stopped.
    fn is_stopped(&self, lane: u8, nic: &HostPort<'_, '_>) -> bool {
        let left_at = || self.lanes.get(usize::from(lane)).map_or(Time::ZERO, |lane| lane.left_at);
        self.stops.is_some() && nic.gate(usize::from(lane), left_at()) == Gate::Shut
    }

    /// The next queue pair whose time has come.
    fn due(&mut self, now: Time) -> Option<u32> {
        let Reverse((at, number)) = *self.paced.peek()?;
        if at > now {
            return None;
        }
        self.paced.pop();
        Some(number)
    }

    /// Whether an event that is due now is the one that counts.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.wakes_at == now;
        if is_due {
            self.wakes_at = Time::NEVER;
        }
        is_due
    }
}

impl<T: Transports> Host<T> {
    /// The transport of a queue pair has been called: if it may be asked now, it takes its turn.
    pub(super) fn take_turn(&mut self, plan: &RunPlan<'_, T>, number: u32, here: &mut HostCall<'_, '_, '_>) {
        let Some(sender) = self.senders.get(number) else { return };
        let pair = &mut sender.end.pair;
        if !std::mem::take(&mut pair.is_ready) || pair.turn != Turn::Idle {
            return;
        }
        pair.turn = Turn::Queued;
        pair.is_ack_clocked = here.common.is_ack_clocked;
        let card = &mut self.rest.rnic;
        if card.is_stopped(pair.lane, &here.nic) {
            let lane = pair.lane;
            let held_until = plan.of(&sender.end).sender_held_until(&sender.state, here.nic.now());
            card.push_stopped(lane, number, held_until, &here.nic);
        } else {
            card.push(pair.lane, number, &here.nic);
        }
        self.pull(plan, here);
    }

    /// The card's own event is due.
    pub fn wake_card(&mut self, plan: &RunPlan<'_, T>, here: &mut HostCall<'_, '_, '_>) {
        if self.rest.rnic.is_due(here.nic.now()) {
            self.pull(plan, here);
        }
    }

    /// Asks queue pairs for packets, as far as the cable takes them.
    pub fn pull(&mut self, plan: &RunPlan<'_, T>, here: &mut HostCall<'_, '_, '_>) {
        let now = here.nic.now();
        while let Some(number) = self.rest.rnic.due(now) {
            if let Some(sender) = self.senders.get(number) {
                sender.end.pair.turn = Turn::Queued;
                self.rest.rnic.push(sender.end.pair.lane, number, &here.nic);
            }
        }
        let mut next = self.rest.rnic.paced.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        for lane in 0..self.rest.rnic.lanes.len() {
            while !self.rest.rnic.lanes[lane].turns.is_empty() {
                match here.nic.gate(lane, self.rest.rnic.lanes[lane].left_at) {
                    Gate::Open => next = next.min(self.ask_next(plan, lane, here)),
                    Gate::Until(at) => {
                        next = next.min(at);
                        break;
                    }
                    Gate::Shut => break,
                }
            }
        }
        let card = &mut self.rest.rnic;
        if next < card.wakes_at {
            card.wakes_at = next;
            here.nic.set_card_timer(next);
        }
    }

    /// Asks the next queue pair of a class. Returns when one is to be asked that waits for a time.
    fn ask_next(&mut self, plan: &RunPlan<'_, T>, lane: usize, here: &mut HostCall<'_, '_, '_>) -> Time {
        let Some(number) = self.rest.rnic.lanes[lane].turns.pop_front() else { return Time::NEVER };
        // One that has ended since has no turn.
        let Some(sender) = self.senders.get(number) else { return Time::NEVER };
        let protocol = plan.of(&sender.end);
        if let Some(stops) = &mut self.rest.rnic.stops {
            let (paused_ps, left_ps) = (here.nic.paused_ps(lane), here.nic.paused_when_data_left_ps(lane));
            here.nic.set_stopped_ps(Some(stops.end(lane, number, paused_ps, left_ps)));
        }
        here.common.is_ack_clocked = std::mem::take(&mut sender.end.pair.is_ack_clocked);
        let mut out = HostOutbox { end: &mut sender.end, rest: &mut self.rest, here };
        let pull = protocol.sender_pull(&mut sender.state, &mut out);
        here.common.is_ack_clocked = false;
        let pair = &mut sender.end.pair;
        pair.is_ready = false;
        let (has_sent, again) = match pull {
            Pull::Sent(at) => (true, at),
            Pull::NotBefore(at) => (false, at),
        };
        let now = here.nic.now();
        if let Some(stops) = &mut self.rest.rnic.stops {
            here.nic.set_stopped_ps(None);
            stops.asked(lane, number, has_sent);
        }
        if has_sent {
            self.rest.rnic.lanes[lane].left_at = here.nic.leaves_at(here.common.sizes.full_bytes);
        }
        debug_assert!(has_sent || again > now, "asked again and again at one instant");
        if again == Time::NEVER {
            pair.turn = Turn::Idle;
            return Time::NEVER;
        }
        if again <= now {
            self.rest.rnic.push(lane as u8, number, &here.nic);
            return Time::NEVER;
        }
        pair.turn = Turn::Paced;
        self.rest.rnic.paced.push(Reverse((again, number)));
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_pairs_that_wait_come_by_time_then_by_number_and_only_when_due() {
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        let mut card = Rnic::new(false);
        for (time, number) in [(at(3), 1), (at(2), 9), (at(2), 4), (at(8), 0)] {
            card.paced.push(Reverse((time, number)));
        }
        assert_eq!(card.due(at(1)), None);
        let due: Vec<u32> = std::iter::from_fn(|| card.due(at(3))).collect();
        assert_eq!(due, [4, 9, 1]);
    }

    #[test]
    fn an_event_that_was_overtaken_by_an_earlier_one_counts_no_more() {
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        let mut card = Rnic { wakes_at: at(2), ..Rnic::new(false) };
        assert!(!card.is_due(at(1)));
        assert!(card.is_due(at(2)) && !card.is_due(at(2)));
        assert_eq!(card.wakes_at, Time::NEVER);
    }
}
