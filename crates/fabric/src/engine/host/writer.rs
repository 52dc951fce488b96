//! The application of a flow, which writes it in pieces.

use weft_traffic::{Write, Writes};
use weft_transport::{FlowSize, Written};
use weft_units::Span;

/// Bytes of a flow that an application has yet to write, in segments: only whole ones are of use to
/// a transport.
pub struct Writer {
    writes: Writes,
    next: Option<Write>,
    mss: u64,
    size: FlowSize,
    size_bytes: u64,
}

impl Writer {
    /// Nothing of a flow of this size is written so far.
    pub fn new(mut writes: Writes, mss: u16, size: FlowSize, size_bytes: u64) -> Self {
        let next = writes.next();
        Self { writes, next, mss: u64::from(mss), size, size_bytes }
    }

    /// Segments that are whole with so many bytes.
    const fn segments(&self, bytes: u64) -> u32 {
        if bytes >= self.size_bytes { self.size.segments } else { (bytes / self.mss) as u32 }
    }

    /// Writes what is to be written by this time after the flow's start. How much of the flow is
    /// written then.
    pub fn write_until(&mut self, after: Span) -> Written {
        let mut bytes = 0;
        while let Some(write) = self.next.filter(|write| write.after <= after) {
            bytes = write.bytes;
            self.next = self.writes.next();
        }
        Written { segments: self.segments(bytes), is_all: bytes >= self.size_bytes }
    }

    /// When the next segment becomes whole, after the flow's start; nothing if all are written.
    pub fn next_after(&mut self, written: Written) -> Option<Span> {
        loop {
            let write = self.next?;
            if self.segments(write.bytes) > written.segments {
                return Some(write.after);
            }
            self.next = self.writes.next();
        }
    }
}
