//! The records of some flows, while any of them may change.

use weft_traffic::Flow;
use weft_transport::ReceiverStats;
use weft_units::Span;

use super::coded;
use crate::engine::host::{ReceiverRecord, SenderRecord, TimedOut};
use crate::engine::results::{FlowRecord, Retransmissions, arrived};

/// The records of flows that are neighbours in the traffic.
pub struct Page {
    slots: Vec<Slot>,
    /// How many of them may change.
    open: usize,
}

struct Slot {
    record: FlowRecord,
    /// Whether the sender is over, and nothing counts for it any more.
    is_settled: bool,
    /// Whether the receiver was closed.
    has_arrived: bool,
}

impl Page {
    /// Flows with these ideal completion times, of which nothing else is known.
    pub fn new(ideals: impl Iterator<Item = Span>) -> Self {
        let slot = |ideal| Slot {
            record: FlowRecord { ideal, ..FlowRecord::default() },
            is_settled: false,
            has_arrived: false,
        };
        let slots: Vec<Slot> = ideals.map(slot).collect();
        Self { open: slots.len(), slots }
    }

    /// The sender of the flow in this place is over, or the run is.
    pub fn note_sender(&mut self, place: usize, row: &SenderRecord) {
        let record = &mut self.slots[place].record;
        record.acknowledged = row.acknowledged;
        record.sender = row.stats;
    }

    /// The receiver of the flow in this place was closed, or the run is over. `timeouts` are those of the flow, by time.
    pub fn note_receiver(
        &mut self,
        place: usize,
        row: &ReceiverRecord,
        flow: &Flow,
        payload_bytes: u64,
        timeouts: &[TimedOut],
    ) {
        let record = &mut self.slots[place].record;
        Arrivals::of(row).add_to(record, flow, payload_bytes);
        if let Some(complete) = row.delivered {
            record.delivered = Some(complete.at);
            // At one instant packets come before timers of senders, and those before timers of receivers.
            let before = |timeout: &&TimedOut| {
                timeout.at < complete.at || (complete.by_timer && timeout.at == complete.at)
            };
            let timed_out =
                timeouts.iter().take_while(before).last().map_or(Span::ZERO, |timeout| timeout.sum);
            record.spent = complete.parts.spent(complete.at.since(flow.start), timed_out, record.ideal);
        }
        self.change(place, |slot| slot.has_arrived = true);
    }

    /// Nothing more counts for the sender of the flow in this place. `copies` is what came of its copies, if anything did.
    pub fn settle(&mut self, place: usize, copies: Option<(u32, Retransmissions)>) {
        let record = &mut self.slots[place].record;
        if let Some((dropped, retransmissions)) = copies {
            record.dropped += dropped;
            record.retransmissions += retransmissions;
        }
        self.change(place, |slot| slot.is_settled = true);
    }

    fn change(&mut self, place: usize, change: impl FnOnce(&mut Slot)) {
        let slot = &mut self.slots[place];
        let was_open = slot.is_open();
        change(slot);
        self.open -= usize::from(was_open && !slot.is_open());
    }

    /// Whether anything may still count for the sender of the flow in this place.
    pub fn may_change(&self, place: usize) -> bool {
        !self.slots[place].is_settled
    }

    /// Whether the receiver of the flow in this place was closed.
    pub fn has_arrived(&self, place: usize) -> bool {
        self.slots[place].has_arrived
    }

    /// Whether none of the flows goes on.
    pub const fn is_quiet(&self) -> bool {
        self.open == 0
    }

    /// The records as bytes.
    pub fn coded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.slots.iter().for_each(|slot| coded::write(&slot.record, &mut bytes));
        bytes
    }
}

impl Slot {
    const fn is_open(&self) -> bool {
        !(self.is_settled && self.has_arrived)
    }
}

/// What arrived at a receiver, in numbers that add up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrivals {
    stats: ReceiverStats,
    path_changes: u32,
    wait_ps: [u64; 4],
}

impl Arrivals {
    fn of(row: &ReceiverRecord) -> Self {
        Self { stats: row.stats, path_changes: row.path_changes, wait_ps: row.wait_ps }
    }

    /// Adds what an end of the flow counted that was opened once more.
    pub fn add(&mut self, row: &ReceiverRecord) {
        add(&mut self.stats, &row.stats);
        self.path_changes += row.path_changes;
        add_waits(&mut self.wait_ps, &row.wait_ps);
    }

    /// Adds it to the record of its flow.
    pub fn add_to(&self, record: &mut FlowRecord, flow: &Flow, payload_bytes: u64) {
        add(&mut record.receiver, &self.stats);
        record.path_changes += self.path_changes;
        add_waits(&mut record.wait_ps, &self.wait_ps);
        record.delivered_bytes = arrived(&record.receiver, flow, payload_bytes);
    }
}

fn add_waits(sums: &mut [u64; 4], more: &[u64; 4]) {
    for (sum, wait) in sums.iter_mut().zip(more) {
        *sum += wait;
    }
}

fn add(sum: &mut ReceiverStats, more: &ReceiverStats) {
    let ReceiverStats {
        segments_received,
        out_of_order,
        duplicates,
        marked,
        credits_sent,
        reselections,
        stalls,
    } = *more;
    sum.segments_received += segments_received;
    sum.out_of_order += out_of_order;
    sum.duplicates += duplicates;
    sum.marked += marked;
    sum.credits_sent += credits_sent;
    sum.reselections += reselections;
    sum.stalls = sum.stalls.and(stalls);
}
