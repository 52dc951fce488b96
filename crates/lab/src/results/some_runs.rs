//! Columns of the table of flows that only some runs, or some flows, have, by the fabric and the
//! transports.

use weft_fabric::{Blocked, FlowRecord, Results};
use weft_packet::FlowId;
use weft_topology::Topology;
use weft_transport::{Counted, TransportSpec, TransportsSpec};
use weft_units::Time;

use super::rows::FlowRow;
use crate::linux::KernelFlow;

/// Optional columns of one run.
pub struct SomeRuns<'r> {
    /// How long pauses kept data from leaving ports, by flow, where any was; none if nobody pauses.
    blocked: Option<&'r [(FlowId, Blocked)]>,
    /// Whether a class of a port trims.
    trims: bool,
    /// Counters of each transport.
    counted: Vec<Counted>,
}

impl<'r> SomeRuns<'r> {
    /// Optional columns of a run of these transports on this fabric.
    pub fn of(topology: &Topology, transport: &TransportsSpec, results: &'r Results) -> Self {
        let pauses = topology.shared_buffer.is_some_and(|memory| memory.pause.is_some());
        let classes = topology.links.iter().filter_map(|link| link.classes.as_ref());
        Self {
            blocked: pauses.then_some(&results.blocked),
            trims: classes.flat_map(|classes| &classes.classes).any(|class| class.trim_bytes.is_some()),
            counted: transport.all().map(TransportSpec::counted).collect(),
        }
    }

    /// Fills in all of it, whatever a row says.
    pub fn fill_example(&self, row: &mut FlowRow) {
        self.fill(row, &FlowRecord::default(), 0);
        row.fct_pause_us = self.blocked.map(|_| 0.0);
        let any = |of: fn(&Counted) -> bool| self.counted.iter().any(of).then_some(0);
        (row.nacks, row.cnps) = (any(|counted| counted.nacks), any(|counted| counted.cnps));
    }

    /// Fills in what a row has of it, by the record of its flow and the number of its transport.
    pub fn fill(&self, row: &mut FlowRow, record: &FlowRecord, transport: usize) {
        if let Some(all) = self.blocked {
            let place = all.binary_search_by_key(&row.id, |(flow, _)| flow.0);
            let blocked = place.map_or_else(|_| Blocked::default(), |place| all[place].1);
            row.fct_pause_us = record.delivered.map(|_| record.fct_breakdown.pause.as_us());
            row.blocked_us = Some(blocked.blocked.as_us());
            row.blocked_innocently_us = Some(blocked.innocently.as_us());
        }
        // One transport alone has every number.
        let counted = self.counted.get(transport).or(self.counted.first()).copied().unwrap_or_default();
        row.fast_recoveries = counted.fast_recoveries.then_some(record.sender.fast_recoveries);
        row.duplicate_acks = counted.duplicate_acks.then_some(record.sender.duplicate_acks);
        row.marked_acks = counted.marked_acks.then_some(record.sender.marked_acks);
        row.nacks = counted.nacks.then_some(record.sender.nacks);
        row.cnps = counted.cnps.then_some(record.sender.cnps);
        row.trimmed_segments = self.trims.then_some(record.trimmed);
    }
}

/// A row with all that the table of flows has only in some runs, and has in this one, but for what
/// [`SomeRuns`] knows.
pub fn example(labels: &[String], kernel: &[Option<KernelFlow>], transport: &TransportsSpec) -> FlowRow {
    let mut row = FlowRow { transport: labels.first().cloned(), ..FlowRow::default() };
    if !kernel.is_empty() {
        let is_multipath = matches!(transport, TransportsSpec::One(TransportSpec::Mptcp(_)));
        KernelFlow::whole(is_multipath).fill(Time::ZERO, &mut row);
    }
    row
}
