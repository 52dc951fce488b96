//! The records of flows: what hosts and ports noted, each for itself, put together while the run
//! goes on.
//!
//! A record is final when the flow's sender has everything acknowledged and its receiver was
//! closed. Records stand in pages, by the numbers of their flows; a page of final ones is written
//! to a [`Spool`] and forgotten, so that memory follows the flows that are active, not those that
//! there were. What a receiver counts that is opened once more after its record was final is kept
//! beside, and added when the page is read.

mod coded;
mod page;
mod pages;

use std::collections::BTreeMap;
use std::io::{self, Cursor, SeekFrom};

use weft_packet::FlowId;
use weft_topology::{FlowPackets, Ideal};
use weft_transport::{Protocol, Transports};
use weft_units::{Span, Time};

use super::host::{HostLog, ReceiverRecord, RunPlan};
use super::retransmission_causes::{Copies, Dropped};
use page::{Arrivals, OpenRecord, Page};
use pages::Late;

pub use pages::{FlowRecords, Spool};

/// Flows in a page.
const PAGE: usize = 1_024;

/// Where a page was written: the first byte, and how many.
type Extent = (u64, usize);

/// The records of all flows, as far as they are known.
pub struct Records {
    /// Ideal completion times on the intact fabric.
    ideal: Ideal,
    /// The pages that are open, by number.
    open: BTreeMap<usize, Page>,
    /// Written pages, by number of the page.
    written: Vec<Option<Extent>>,
    spool: Box<dyn Spool>,
    /// Bytes in the spool.
    length: u64,
    /// Why the spool takes no more.
    failure: Option<io::Error>,
    /// Counts of receivers after their record was final.
    late: BTreeMap<usize, Arrivals>,
    copies: Copies,
    /// Flows whose last acknowledgement came, and when; at that instant more may have happened.
    over: Vec<(Time, FlowId)>,
    /// Sums of counts of flows' ends that have no column of their own.
    pub sums: Sums,
}

/// Sums over all flows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    pub credits_sent: u64,
    pub wasted_credits: u64,
    pub reselections: u64,
    pub nacks_sent: u64,
    pub cnps_sent: u64,
    pub refused: u64,
    pub trimmed: u64,
}

impl Records {
    /// Nothing is known of any of so many flows. `ideal` is of the fabric at its best.
    pub fn new(flows: usize, ideal: Ideal) -> Self {
        Self {
            ideal,
            open: BTreeMap::new(),
            written: vec![None; flows.div_ceil(PAGE)],
            spool: Box::new(Cursor::new(Vec::new())),
            length: 0,
            failure: None,
            late: BTreeMap::new(),
            copies: Copies::new(flows),
            over: Vec::new(),
            sums: Sums::default(),
        }
    }

    /// Writes to this from now on. Nothing was written so far.
    pub fn spool_to(&mut self, spool: Box<dyn Spool>) {
        self.spool = spool;
    }

    /// Whether pages can no longer be written.
    pub const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes in what hosts and ports noted. By `now` nothing more happens at an earlier time.
    pub fn take_in<'l, T: Transports>(
        &mut self,
        plan: &RunPlan<'_, T>,
        now: Time,
        logs: impl Iterator<Item = &'l mut HostLog>,
        dropped: impl Iterator<Item = Dropped>,
    ) {
        let mut logs: Vec<&mut HostLog> = logs.collect();
        for log in &mut logs {
            for (flow, at) in log.started.drain(..) {
                self.change(plan, flow, |record| record.note_start(at));
            }
            for timeout in log.timeouts.drain(..) {
                self.change(plan, timeout.flow, |record| record.note_timeout(timeout));
            }
            for row in log.sent.drain(..) {
                self.sums.wasted_credits += row.stats.wasted_credits;
                self.over.extend(row.acknowledged.map(|at| (at, row.flow)));
                self.change(plan, row.flow, |record| record.note_sender(&row));
            }
            log.resent.drain(..).for_each(|resent| self.copies.note_resend(&resent));
        }
        // A receiver is asked what its sender's timers took until then: so these come first, of all
        // hosts.
        for log in logs {
            log.received.drain(..).for_each(|row| self.note_receiver(plan, &row));
        }
        for dropped in dropped {
            let flow = dropped.flow_of(plan.flows.len());
            if dropped.is_trimmed && !self.change(plan, flow, OpenRecord::note_trimmed) {
                self.late.entry(flow.index()).or_default().trimmed += 1;
            }
            if self.may_change(flow) {
                self.copies.note_drop(&dropped);
            }
        }
        self.settle(plan, now);
    }

    fn note_receiver<T: Transports>(&mut self, plan: &RunPlan<'_, T>, row: &ReceiverRecord) {
        self.sums.credits_sent += row.stats.credits_sent;
        self.sums.reselections += u64::from(row.stats.reselections);
        self.sums.nacks_sent += u64::from(row.stats.nacks_sent);
        self.sums.cnps_sent += u64::from(row.stats.cnps_sent);
        self.sums.refused += u64::from(row.stats.refused);
        self.sums.trimmed += u64::from(row.stats.trimmed);
        let flow = &plan.flows[row.flow.index()];
        let payload_bytes = plan.payload_bytes(flow);
        if !self.change(plan, row.flow, |record| record.note_receiver(row, flow, payload_bytes)) {
            self.late.entry(row.flow.index()).or_default().add(row);
        }
    }

    /// Changes the record of a flow, if it is not final; returns whether it was not.
    fn change<T: Transports>(
        &mut self,
        plan: &RunPlan<'_, T>,
        flow: FlowId,
        change: impl FnOnce(&mut OpenRecord),
    ) -> bool {
        let (number, place) = (flow.index() / PAGE, flow.index() % PAGE);
        if self.written[number].is_some() {
            return false;
        }
        let ideal = || ideal_fct(plan, &mut self.ideal, flow);
        page_of(&mut self.open, plan, number).change(place, ideal, change)
    }

    /// Whether the drop of a packet of this flow may still count.
    fn may_change(&self, flow: FlowId) -> bool {
        let number = flow.index() / PAGE;
        let page = self.open.get(&number);
        self.written[number].is_none() && page.is_none_or(|page| page.may_change(flow.index() % PAGE))
    }

    /// Ends with the flows that were over before now, and writes the pages in which nothing goes
    /// on.
    fn settle<T: Transports>(&mut self, plan: &RunPlan<'_, T>, now: Time) {
        let mut over = std::mem::take(&mut self.over);
        over.retain(|&(at, flow)| {
            let waits = at >= now;
            if !waits {
                self.settle_flow(plan, flow, Some(at));
            }
            waits
        });
        self.over = over;
        let done: Vec<usize> =
            self.open.iter().filter(|(_, page)| page.is_final()).map(|(&number, _)| number).collect();
        for number in done {
            self.write(plan, number);
        }
    }

    /// Nothing that happens from now on counts for the flow's sender, which was over then, if it
    /// was.
    fn settle_flow<T: Transports>(&mut self, plan: &RunPlan<'_, T>, flow: FlowId, over: Option<Time>) {
        let copies = self.copies.settle(flow, over);
        self.change(plan, flow, |record| record.settle(copies));
    }

    /// Writes a page and forgets it. One that cannot be written stays.
    fn write<T: Transports>(&mut self, plan: &RunPlan<'_, T>, number: usize) {
        if self.failure.is_some() {
            return;
        }
        let ideal = |place: usize| ideal_fct(plan, &mut self.ideal, FlowId((number * PAGE + place) as u32));
        let bytes = page_of(&mut self.open, plan, number).coded(ideal);
        let written =
            self.spool.seek(SeekFrom::Start(self.length)).and_then(|_| self.spool.write_all(&bytes));
        match written {
            Ok(()) => {
                self.written[number] = Some((self.length, bytes.len()));
                self.length += bytes.len() as u64;
                self.open.remove(&number);
            }
            Err(error) => self.failure = Some(error),
        }
    }

    /// The run is over, and all that was noted was taken in: the records in the order of the flows.
    pub fn finish<T: Transports>(mut self, plan: &RunPlan<'_, T>) -> FlowRecords {
        for (at, flow) in std::mem::take(&mut self.over) {
            self.settle_flow(plan, flow, Some(at));
        }
        for flow in self.copies.flows() {
            self.settle_flow(plan, flow, None);
        }
        for number in 0..self.written.len() {
            if self.written[number].is_none() {
                self.write(plan, number);
            }
        }
        let late = |(number, arrivals): (usize, Arrivals)| {
            let flow = plan.flows[number];
            (number, Late { arrivals, flow, payload_bytes: plan.payload_bytes(&flow) })
        };
        FlowRecords {
            flows: plan.flows.len(),
            pages: self.written.into_iter().flatten().collect::<Vec<_>>().into_iter(),
            next: 0,
            spool: self.spool,
            late: self.late.into_iter().map(late).collect(),
            failure: self.failure,
        }
    }
}

/// The page of this number, which was not written.
fn page_of<'p, T: Transports>(
    open: &'p mut BTreeMap<usize, Page>,
    plan: &RunPlan<'_, T>,
    number: usize,
) -> &'p mut Page {
    open.entry(number).or_insert_with(|| Page::new(PAGE.min(plan.flows.len() - number * PAGE)))
}

/// The least completion time of a flow, in a fabric at its best; zero for one that has none.
///
/// Of a flow that is written in pieces, what is written from a time on cannot arrive sooner than it
/// would alone from then on: the latest of these ends is a bound, since it holds for each.
fn ideal_fct<T: Transports>(plan: &RunPlan<'_, T>, ideal: &mut Ideal, number: FlowId) -> Span {
    let flow = &plan.flows[number.index()];
    if flow.background {
        return Span::ZERO;
    }
    let protocol = plan.transport(flow);
    let size = protocol.flow_size(flow.size_bytes);
    let from = |segment: u32| FlowPackets {
        full_bytes: protocol.segment_wire_bytes(size, segment),
        full_count: size.segments - segment - 1,
        last_bytes: protocol.segment_wire_bytes(size, size.segments - 1),
    };
    // A flow that no path can carry has no completion time to compare with.
    let handshake = protocol.handshake_wire_bytes();
    let whole = ideal.fct(flow.src, flow.dst, from(0), handshake).unwrap_or_default();
    let Some(mut writer) = plan.writer(number).filter(|_| !whole.is_zero()) else { return whole };
    let (mut least, mut written) = (whole, writer.write_until(Span::ZERO));
    while let Some(after) = writer.next_after(written) {
        let rest = ideal.fct(flow.src, flow.dst, from(written.segments), None).unwrap_or_default();
        least = least.max(Span::from_ps(after.as_ps().saturating_add(rest.as_ps())));
        written = writer.write_until(after);
    }
    least
}
