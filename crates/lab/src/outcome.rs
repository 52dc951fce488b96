//! Outcome of a run: its tables by name, a short name for all of them, and its directory.

use std::path::Path;

use arrow_array::RecordBatch;

use crate::results::collective_rows::{CollectiveRow, CriticalRow};
use crate::results::fault_rows::{DropRow, FaultRow, PhaseRow};
use crate::results::fingerprint::{combined, fingerprint};
use crate::results::output::{Content, OutputError, SPEC, SUMMARY, file_of, write_directory};
use crate::results::parquet::to_parquet;
use crate::results::port_rows::{ClassRow, PauseRow, SharedBufferRow};
use crate::results::rows::{
    ConnectionRow, CounterRow, DeliveryRow, FlowRow, LinkRow, PathRow, ProgramRow, SampleRow, SubflowRow,
    TABLES, TraceRow,
};
use crate::results::stored::Stored;
use crate::results::summary::Summary;
use crate::results::table::Row;
use crate::run::RunError;
use crate::spec::SpecError;

/// Outcome of a run, in memory.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The resolved spec, as TOML.
    pub spec: String,
    /// The run in one object.
    pub summary: Summary,
    /// A row a flow: as many as there may be, they are not in memory.
    pub flows: Stored,
    /// A row a link.
    pub links: RecordBatch,
    /// A row a link and interval in which it was not idle; empty unless the spec asks for samples.
    pub samples: RecordBatch,
    /// A row a receiver, kind of flow and interval in which something arrived; empty unless the
    /// spec asks for samples.
    pub deliveries: RecordBatch,
    /// A row a path; empty unless the spec asks for them.
    pub paths: RecordBatch,
    /// A row a traced flow, link and interval; empty unless the spec asks for them.
    pub traces: RecordBatch,
    /// A row a counter of the scheme.
    pub scheme: RecordBatch,
    /// A row a program; empty without.
    pub programs: RecordBatch,
    /// A row a direction of a connection of programs; empty without.
    pub connections: RecordBatch,
    /// A row a subflow of a flow of Linux hosts; empty without MPTCP.
    pub subflows: RecordBatch,
    /// A row a fault and link that it hits; empty without, as are the next two.
    pub faults: RecordBatch,
    /// A row a stretch of the run between two changes of its faults.
    pub phases: RecordBatch,
    /// A row a place where packets were lost, a reason and a stretch.
    pub drops: RecordBatch,
    /// A row a link whose port has classes, and class; empty without.
    pub classes: RecordBatch,
    /// A row a link that was paused, class and blame; empty without.
    pub pauses: RecordBatch,
    /// A row a switch whose ports share memory, and interval; empty without, and unless the spec
    /// asks for samples.
    pub shared_buffers: RecordBatch,
    /// A row a collective, each time that it comes; empty without, as is the next one.
    pub collectives: RecordBatch,
    /// A row a flow on the critical path of a collective.
    pub critical_path: RecordBatch,
    /// Packets in the whole fabric, and how many were on links at the end.
    pub packets: PacketBalance,
}

/// Where every packet went: `sent` = `delivered` + `dropped` + `in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketBalance {
    /// Put into a host's queue.
    pub sent: u64,
    /// Taken out at a host.
    pub delivered: u64,
    /// Dropped or lost anywhere.
    pub dropped: u64,
    /// On links and in queues when the run ended.
    pub in_flight: u64,
}

impl Outcome {
    /// Tables by name, in the order of [`TABLES`], without that of flows, which is the first.
    fn other_tables(&self) -> [(&'static str, &RecordBatch); TABLES.len() - 1] {
        [
            (LinkRow::TABLE.name, &self.links),
            (SampleRow::TABLE.name, &self.samples),
            (DeliveryRow::TABLE.name, &self.deliveries),
            (PathRow::TABLE.name, &self.paths),
            (TraceRow::TABLE.name, &self.traces),
            (CounterRow::TABLE.name, &self.scheme),
            (ProgramRow::TABLE.name, &self.programs),
            (ConnectionRow::TABLE.name, &self.connections),
            (SubflowRow::TABLE.name, &self.subflows),
            (FaultRow::TABLE.name, &self.faults),
            (PhaseRow::TABLE.name, &self.phases),
            (DropRow::TABLE.name, &self.drops),
            (ClassRow::TABLE.name, &self.classes),
            (PauseRow::TABLE.name, &self.pauses),
            (SharedBufferRow::TABLE.name, &self.shared_buffers),
            (CollectiveRow::TABLE.name, &self.collectives),
            (CriticalRow::TABLE.name, &self.critical_path),
        ]
    }

    /// A short name for the content of all its tables: see [`crate::fingerprint`]. Those of
    /// programs, subflows and collectives count only where there are any, so that a run without has
    /// the name that it had before there were such tables; those of faults do not, since all that
    /// they say but places and reasons of drops follows from the others.
    ///
    /// # Errors
    /// A temporary file that cannot be read.
    pub fn fingerprint(&self) -> Result<String, RunError> {
        let late = [
            ProgramRow::TABLE.name,
            ConnectionRow::TABLE.name,
            SubflowRow::TABLE.name,
            PauseRow::TABLE.name,
            SharedBufferRow::TABLE.name,
            CollectiveRow::TABLE.name,
            CriticalRow::TABLE.name,
        ];
        // What came to classes follows from links and flows likewise.
        let derived = [FaultRow::TABLE.name, PhaseRow::TABLE.name, DropRow::TABLE.name, ClassRow::TABLE.name];
        let is_told = |(name, table): &(&str, &RecordBatch)| {
            !derived.contains(name) && (table.num_rows() > 0 || !late.contains(name))
        };
        let others = self.other_tables().into_iter().filter(is_told).map(|(_, table)| fingerprint(table));
        Ok(combined([fingerprint(&self.flows.read()?)].into_iter().chain(others)))
    }

    /// The table with this name, in memory.
    ///
    /// # Errors
    /// A name that none has, and the message names those that there are; or a temporary file that
    /// cannot be read.
    pub fn table(&self, name: &str) -> Result<RecordBatch, RunError> {
        if name == FlowRow::TABLE.name {
            return Ok(self.flows.read()?);
        }
        let found = self.other_tables().into_iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, table)| table.clone()).ok_or_else(|| {
            let known = TABLES.map(|table| table.name);
            let near = crate::spec::nearest(name, known);
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            SpecError::new(format!("there is no table {name:?}: allowed are {}{hint}", known.join(", ")))
        });
        Ok(found?)
    }

    /// Writes the result directory: complete or not at all.
    ///
    /// # Errors
    /// As [`write_directory`].
    pub fn write(&self, directory: &Path, force: bool) -> Result<(), OutputError> {
        let other = |error: Box<dyn std::error::Error + Send + Sync>| OutputError::Io {
            path: directory.to_owned(),
            source: std::io::Error::other(error),
        };
        let mut others = Vec::new();
        for (name, table) in self.other_tables() {
            others.push((file_of(name), to_parquet(table).map_err(|error| other(Box::new(error)))?));
        }
        let summary = self.summary.to_json().map_err(|error| other(Box::new(error)))?;
        let flows = file_of(FlowRow::TABLE.name);
        let (spec, summary) = (self.spec.as_bytes(), summary.as_bytes());
        let others: Vec<(&str, &[u8])> = others.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
        let mut files: Vec<(&str, &dyn Content)> = vec![(SPEC, &spec), (&flows, &self.flows)];
        files.extend(others.iter().map(|(name, bytes)| (*name, bytes as &dyn Content)));
        files.push((SUMMARY, &summary));
        write_directory(directory, force, &files)
    }
}
