//! What the table of flows has only in some runs, by their fabric and transports.

use weft_fabric::{Blocked, FlowRecord, Results};
use weft_packet::FlowId;
use weft_topology::Topology;
use weft_transport::{TransportSpec, TransportsSpec};

use super::rows::FlowRow;

/// What one run has of it.
pub struct SomeRuns<'r> {
    /// How long pauses kept data from leaving ports, by flow, where any was; none if nobody pauses.
    blocked: Option<&'r [(FlowId, Blocked)]>,
    /// Whether a class of a port trims.
    trims: bool,
    /// Of each transport, whether it is one of RDMA.
    are_rdma: Vec<bool>,
}

impl<'r> SomeRuns<'r> {
    /// Of a run of these transports on this fabric.
    pub fn of(topology: &Topology, transport: &TransportsSpec, results: &'r Results) -> Self {
        let pauses = topology.memory.is_some_and(|memory| memory.pause.is_some());
        let classes = topology.links.iter().filter_map(|link| link.classes.as_ref());
        Self {
            blocked: pauses.then_some(&results.blocked),
            trims: classes.flat_map(|classes| &classes.classes).any(|class| class.trim_bytes.is_some()),
            are_rdma: transport.all().map(TransportSpec::is_pulled).collect(),
        }
    }

    /// Fills in all of it, whatever a row says.
    pub fn fill_example(&self, row: &mut FlowRow) {
        let rdma = self.are_rdma.iter().position(|is_rdma| *is_rdma);
        self.fill(row, &FlowRecord::default(), rdma.unwrap_or_default());
        row.spent_pause_us = self.blocked.map(|_| 0.0);
    }

    /// Fills in what a row has of it, by the record of its flow and the number of its transport.
    pub fn fill(&self, row: &mut FlowRow, record: &FlowRecord, transport: usize) {
        if let Some(all) = self.blocked {
            let place = all.binary_search_by_key(&row.id, |(flow, _)| flow.0);
            let blocked = place.map_or_else(|_| Blocked::default(), |place| all[place].1);
            row.spent_pause_us = record.delivered.map(|_| record.spent.pause.as_us());
            row.blocked_us = Some(blocked.blocked.as_us());
            row.blocked_innocently_us = Some(blocked.innocently.as_us());
        }
        // One transport alone has every number.
        let is_rdma = self.are_rdma.get(transport).or(self.are_rdma.first()).copied().unwrap_or_default();
        row.nacks = is_rdma.then_some(record.sender.nacks);
        row.cnps = is_rdma.then_some(record.sender.cnps);
        row.trimmed_segments = self.trims.then_some(record.trimmed);
    }
}
