//! The records of all flows, read again page by page.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use weft_traffic::Flow;

use super::page::Arrivals;
use super::{Extent, PAGE, coded};
use crate::engine::results::FlowRecord;

/// Where records of flows go that are over, until the run is: a file, or memory. It begins empty.
pub trait Spool: Read + Write + Seek + Send {}

impl<S: Read + Write + Seek + Send> Spool for S {}

/// The records of all flows, in the order of the traffic: an iterator over some of them at a time.
pub struct FlowRecords {
    /// How many flows there are.
    pub(super) flows: usize,
    /// Where each page is.
    pub(super) pages: std::vec::IntoIter<Extent>,
    /// The flow that comes next.
    pub(super) next: usize,
    pub(super) spool: Box<dyn Spool>,
    /// Counts of receivers after their page was written.
    pub(super) late: BTreeMap<usize, Late>,
    /// Why pages could not be written.
    pub(super) failure: Option<io::Error>,
}

/// Late counts of a flow's receiver.
pub struct Late {
    pub arrivals: Arrivals,
    pub flow: Flow,
    /// Payload of a full packet.
    pub payload_bytes: u64,
}

impl FlowRecords {
    fn page(&mut self, (first, length): Extent) -> io::Result<Vec<FlowRecord>> {
        let mut bytes = vec![0; length];
        self.spool.seek(SeekFrom::Start(first))?;
        self.spool.read_exact(&mut bytes)?;
        let mut left = bytes.as_slice();
        let mut records = Vec::with_capacity(PAGE);
        for number in self.next..self.flows.min(self.next + PAGE) {
            let mut record = coded::read(&mut left).ok_or(io::ErrorKind::UnexpectedEof)?;
            if let Some(Late { arrivals, flow, payload_bytes }) = self.late.get(&number) {
                arrivals.add_to(&mut record, flow, *payload_bytes);
            }
            records.push(record);
        }
        self.next += records.len();
        Ok(records)
    }
}

impl Iterator for FlowRecords {
    type Item = io::Result<Vec<FlowRecord>>;

    /// The records of the next flows.
    ///
    /// # Errors
    /// What the system says of the spool, now or when it was written to. Nothing comes behind an
    /// error.
    fn next(&mut self) -> Option<Self::Item> {
        let page = match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.pages.next().map(|extent| self.page(extent))?,
        };
        if page.is_err() {
            self.pages = Vec::new().into_iter();
        }
        Some(page)
    }
}
