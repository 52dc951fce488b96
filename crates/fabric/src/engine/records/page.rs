//! The records of some flows, while any of them may change.

use weft_traffic::Flow;
use weft_transport::ReceiverStats;
use weft_units::{Span, Time};

use super::coded;
use crate::engine::host::{ReceiverRecord, SenderRecord, TimedOut};
use crate::engine::results::{FlowRecord, Retransmissions, arrived};

/// The records of flows that are neighbours in the traffic.
///
/// A record that may change takes some hundred bytes, one that is final some fifty, and a flow that
/// has not begun next to nothing: so a page that waits for one of its flows costs little.
pub struct Page {
    slots: Vec<Slot>,
    /// The final records, one behind the other as they became final.
    done: Vec<u8>,
    /// How many are not final.
    left: usize,
}

enum Slot {
    /// Nobody noted anything.
    Unknown,
    Open(Box<OpenRecord>),
    /// Where it stands in `done`.
    Final {
        first: u32,
        length: u32,
    },
}

/// A record that may change.
#[derive(Default)]
pub struct OpenRecord {
    record: FlowRecord,
    /// Retransmission timers of the flow that expired, by time.
    timeouts: Vec<TimedOut>,
    /// Whether the sender is over, and nothing counts for it any more.
    is_settled: bool,
    /// Whether the receiver was closed.
    has_arrived: bool,
}

impl Page {
    /// So many flows of which nothing is known.
    pub fn new(flows: usize) -> Self {
        Self { slots: (0..flows).map(|_| Slot::Unknown).collect(), done: Vec::new(), left: flows }
    }

    /// Changes the record of the flow in this place, if it is not final; returns whether it was
    /// not. `ideal` is asked for the ideal completion time of a flow of which nothing was known.
    pub fn change(
        &mut self,
        place: usize,
        ideal: impl FnOnce() -> Span,
        change: impl FnOnce(&mut OpenRecord),
    ) -> bool {
        let slot = &mut self.slots[place];
        if let Slot::Unknown = slot {
            *slot = Slot::Open(Box::new(OpenRecord::new(ideal())));
        }
        let Slot::Open(open) = slot else { return false };
        change(open);
        if open.is_settled && open.has_arrived {
            let first = self.done.len();
            coded::write(&open.record, &mut self.done);
            *slot = Slot::Final { first: first as u32, length: (self.done.len() - first) as u32 };
            self.left -= 1;
        }
        true
    }

    /// Whether anything may still count for the sender of the flow in this place.
    pub fn may_change(&self, place: usize) -> bool {
        match &self.slots[place] {
            Slot::Unknown => true,
            Slot::Open(open) => !open.is_settled,
            Slot::Final { .. } => false,
        }
    }

    /// Whether all records are final.
    pub const fn is_final(&self) -> bool {
        self.left == 0
    }

    /// The records as bytes, as far as they are known. `ideal` is asked for the flows in places of
    /// which nothing is.
    pub fn coded(&self, mut ideal: impl FnMut(usize) -> Span) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.done.len());
        for (place, slot) in self.slots.iter().enumerate() {
            match slot {
                Slot::Unknown => coded::write(&OpenRecord::new(ideal(place)).record, &mut bytes),
                Slot::Open(open) => coded::write(&open.record, &mut bytes),
                &Slot::Final { first, length } => {
                    bytes.extend_from_slice(&self.done[first as usize..(first + length) as usize]);
                }
            }
        }
        bytes
    }
}

impl OpenRecord {
    fn new(ideal: Span) -> Self {
        Self { record: FlowRecord { ideal, ..FlowRecord::default() }, ..Self::default() }
    }

    /// The flow waited for others, and started.
    pub const fn note_start(&mut self, at: Time) {
        self.record.started = Some(at);
    }

    /// A switch cut a data packet of the flow to its header.
    pub const fn note_trimmed(&mut self) {
        self.record.trimmed += 1;
    }

    /// A retransmission timer of the flow expired.
    pub fn note_timeout(&mut self, timeout: TimedOut) {
        self.timeouts.push(timeout);
    }

    /// The sender is over, or the run is.
    pub const fn note_sender(&mut self, row: &SenderRecord) {
        self.record.acknowledged = row.acknowledged;
        self.record.sender = row.stats;
    }

    /// The receiver was closed, or the run is over. What expired before was noted.
    pub fn note_receiver(&mut self, row: &ReceiverRecord, flow: &Flow, payload_bytes: u64) {
        let record = &mut self.record;
        Arrivals::of(row).add_to(record, flow, payload_bytes);
        if let Some(complete) = row.delivered {
            record.delivered = Some(complete.at);
            // At one instant packets come before timers of senders, and those before timers of
            // receivers.
            let before = |timeout: &&TimedOut| {
                timeout.at < complete.at || (complete.by_timer && timeout.at == complete.at)
            };
            let timed_out = self.timeouts.iter().take_while(before).last();
            let timed_out = timed_out.map_or(Span::ZERO, |timeout| timeout.sum);
            let start = record.start(flow);
            let parts = complete.parts.after(complete.since.since(start));
            record.fct_breakdown = parts.breakdown(complete.at.since(start), timed_out, record.ideal);
        }
        self.has_arrived = true;
    }

    /// Nothing more counts for the sender. `copies` is what came of its copies, if anything did.
    pub fn settle(&mut self, copies: Option<(u32, Retransmissions)>) {
        if let Some((dropped, retransmissions)) = copies {
            self.record.dropped += dropped;
            self.record.retransmissions += retransmissions;
        }
        self.is_settled = true;
    }
}

/// Arrivals at a receiver, in numbers that add up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrivals {
    /// Packets that were cut on the way to it, after the record of its flow was final.
    pub trimmed: u32,
    stats: ReceiverStats,
    path_changes: u32,
    wait_ps: [u64; 4],
}

impl Arrivals {
    const fn of(row: &ReceiverRecord) -> Self {
        Self { trimmed: 0, stats: row.stats, path_changes: row.path_changes, wait_ps: row.wait_ps }
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
        record.trimmed += self.trimmed;
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
        without_payload,
        marked,
        refused,
        trimmed,
        nacks_sent,
        cnps_sent,
        credits_sent,
        reselections,
        stalls,
    } = *more;
    sum.segments_received += segments_received;
    sum.out_of_order += out_of_order;
    sum.duplicates += duplicates;
    sum.without_payload += without_payload;
    sum.marked += marked;
    sum.refused += refused;
    sum.trimmed += trimmed;
    sum.nacks_sent += nacks_sent;
    sum.cnps_sent += cnps_sent;
    sum.credits_sent += credits_sent;
    sum.reselections += reselections;
    sum.stalls = sum.stalls.and(stalls);
}

#[cfg(test)]
mod tests {
    use weft_packet::FlowId;
    use weft_transport::SenderStats;

    use super::*;
    use crate::engine::results::FlowRecord;

    const IDEAL: Span = Span::from_us(3);

    fn records(page: &Page) -> Vec<FlowRecord> {
        let bytes = page.coded(|place| Span::from_us(place as u64));
        let mut left = bytes.as_slice();
        std::iter::from_fn(|| coded::read(&mut left)).collect()
    }

    fn sender(timeouts: u32) -> SenderRecord {
        let stats = SenderStats { timeouts, ..SenderStats::default() };
        SenderRecord { flow: FlowId(0), acknowledged: None, stats }
    }

    fn close(record: &mut OpenRecord, timeouts: u32) {
        record.note_sender(&sender(timeouts));
        record.has_arrived = true;
        record.settle(None);
    }

    #[test]
    fn records_stand_in_the_order_of_flows_in_whatever_order_they_become_final() {
        let mut page = Page::new(4);
        assert!(page.change(2, || IDEAL, |record| close(record, 2)));
        assert!(page.change(1, || IDEAL, |record| record.note_sender(&sender(1))));
        assert!(page.change(0, || IDEAL, |record| close(record, 7)));
        let found = records(&page);
        assert_eq!(found.iter().map(|record| record.sender.timeouts).collect::<Vec<_>>(), [7, 1, 2, 0]);
        assert_eq!(
            found.iter().map(|record| record.ideal.as_ps()).collect::<Vec<_>>(),
            [3, 3, 3, 3].map(|us| us * 1_000_000)
        );
        assert!(!page.is_final() && page.may_change(1) && page.may_change(3) && !page.may_change(2));
    }

    #[test]
    fn a_final_record_takes_nothing_more_and_a_page_of_them_is_final() {
        let mut page = Page::new(2);
        for place in [1, 0] {
            assert!(!page.is_final());
            assert!(page.change(place, || IDEAL, |record| close(record, 5)));
            assert!(!page.change(place, || IDEAL, |record| close(record, 9)));
        }
        assert!(page.is_final());
        assert!(records(&page).iter().all(|record| record.sender.timeouts == 5));
    }
}
