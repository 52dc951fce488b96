//! Messages of records on the link to a kernel. This is the only place that knows their bytes; its
//! other half is `linux-hosts/kernel/weft.h`.
//!
//! A kernel is a guest and may be broken. [`parse_message`] takes any bytes and checks each length,
//! kind and number before it is used.

use crate::card::Card;
use crate::error::Fault;

/// Version on which both sides must agree; the kernel sends its own in its first message.
pub(crate) const VERSION: u64 = 2;
/// Bytes of a message's head.
pub(crate) const HEAD: usize = 16;
/// Bytes of records in one message, at most.
pub(crate) const BATCH: usize = 256 * 1024;
/// Bytes of an IP packet, at most.
pub(crate) const MAX_PACKET: usize = 65_535;
/// Bytes of a line to or from the agent, at most.
pub(crate) const MAX_TEXT: usize = 4_096;

const HELLO: u32 = 1;
const WAIT: u32 = 2;
const MORE: u32 = 3;
const SETUP: u32 = 16;
const RUN: u32 = 17;

const PACKET: u16 = 1;
const TEXT: u16 = 2;
const CARD: u16 = 3;

/// The kind of a message from a kernel, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first message: the version that the kernel speaks.
    Hello { version: u64 },
    /// Nothing is left to do before `next_ns`: it waits.
    Wait { next_ns: u64 },
    /// Records only; the kernel goes on.
    More,
}

/// The head of a message from a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// Bytes of the records that follow; no more than [`BATCH`].
    pub(crate) bytes: usize,
}

/// Record that a kernel hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Card `card` begins to send this packet at `begins_ps`.
    Packet { card: usize, begins_ps: u64, bytes: &'a [u8] },
    /// A line of the agent.
    Text { at_ns: u64, line: &'a [u8] },
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Reads the head of a message.
///
/// # Errors
/// An unknown kind, or more bytes of records than a message may have.
pub(crate) fn parse_head(head: &[u8; HEAD]) -> Result<Head, Fault> {
    let (kind, bytes, time) = (u32_at(head, 0), u32_at(head, 4) as usize, u64_at(head, 8));
    let kind = match kind {
        HELLO => Kind::Hello { version: time },
        WAIT => Kind::Wait { next_ns: time },
        MORE => Kind::More,
        _ => return Err(Fault::MessageKind(kind)),
    };
    if bytes > BATCH {
        return Err(Fault::MessageLength(bytes));
    }
    Ok(Head { kind, bytes })
}

/// The records of one message, one after the other; ends after the first that is wrong.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
}

/// The records in `bytes`, the body of a message.
pub(crate) fn parse_records(bytes: &[u8]) -> Records<'_> {
    Records { rest: bytes }
}

impl<'a> Records<'a> {
    fn next_record(&mut self) -> Result<Record<'a>, Fault> {
        if self.rest.len() < HEAD {
            return Err(Fault::RecordCutOff);
        }
        let (head, body) = self.rest.split_at(HEAD);
        let (kind, card, bytes, time) =
            (u16_at(head, 0), u16_at(head, 2) as usize, u32_at(head, 4) as usize, u64_at(head, 8));
        let padded = bytes.checked_next_multiple_of(8).filter(|padded| *padded <= body.len());
        let Some(padded) = padded else { return Err(Fault::RecordCutOff) };
        self.rest = &body[padded..];
        let bytes = &body[..bytes];
        match kind {
            PACKET if bytes.len() <= MAX_PACKET => Ok(Record::Packet { card, begins_ps: time, bytes }),
            TEXT if bytes.len() <= MAX_TEXT => Ok(Record::Text { at_ns: time, line: bytes }),
            PACKET | TEXT => Err(Fault::RecordLength(bytes.len())),
            _ => Err(Fault::RecordKind(kind)),
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.next_record();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

/// A message to a kernel, as it is put together.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; HEAD] }
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(HEAD);
    }

    /// Whether a record of `bytes` bytes still fits.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes.next_multiple_of(8) <= BATCH
    }

    fn record(&mut self, kind: u16, card: usize, time: u64, body: &[u8]) {
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend((card as u16).to_le_bytes());
        self.bytes.extend((body.len() as u32).to_le_bytes());
        self.bytes.extend(time.to_le_bytes());
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// The last bit of `packet` reaches `card` at `at_ns`.
    pub(crate) fn packet(&mut self, card: usize, at_ns: u64, packet: &[u8]) {
        self.record(PACKET, card, at_ns, packet);
    }

    /// The agent reads `line` at `at_ns`.
    pub(crate) fn text(&mut self, at_ns: u64, line: &str) {
        self.record(TEXT, 0, at_ns, line.as_bytes());
    }

    /// Writes the properties of card `number`.
    pub(crate) fn card(&mut self, number: usize, card: &Card) {
        let mut body = Vec::with_capacity(72);
        for field in [
            card.byte_ps_scaled(),
            card.lookahead_ns(),
            card.interrupt_ns(),
            card.cpu_per_packet.as_ps(),
            card.cpu_per_byte.as_ps(),
        ] {
            body.extend(field.to_le_bytes());
        }
        for field in [
            card.overhead_bytes,
            card.min_bytes,
            card.mtu,
            card.ring,
            u32::from(card.segmentation),
            card.receive_ring,
            u32::from(card.receive_offload),
            card.interrupt_packets,
        ] {
            body.extend(field.to_le_bytes());
        }
        self.record(CARD, number, 0, &body);
    }

    fn finish(&mut self, kind: u32, time: u64) -> &[u8] {
        let bytes = (self.bytes.len() - HEAD) as u32;
        self.bytes[0..4].copy_from_slice(&kind.to_le_bytes());
        self.bytes[4..8].copy_from_slice(&bytes.to_le_bytes());
        self.bytes[8..16].copy_from_slice(&time.to_le_bytes());
        &self.bytes
    }

    /// The whole message: how many cards there are.
    pub(crate) fn setup(&mut self, cards: usize) -> &[u8] {
        self.finish(SETUP, cards as u64)
    }

    /// The whole message: run what is before `until_ns`.
    pub(crate) fn run(&mut self, until_ns: u64) -> &[u8] {
        self.finish(RUN, until_ns)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
