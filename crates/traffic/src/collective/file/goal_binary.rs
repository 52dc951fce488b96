//! Schedules in GOAL's binary form, which `txt2bin` makes of the text, and which `LogGOPSim` and
//! ATLAHS map into memory. No document describes it; it is as `Parser.hpp` of `LogGOPSim` (commit
//! 76451de) writes it, and that of HTSIM for ATLAHS: little-endian, without gaps.
//!
//! - u64 4223; u32 ranks; u8 and u8, the highest cpu and nic; then for each rank twice u64: where
//!   its part begins and ends, from byte 8 on.
//! - A part: u32 operations; u32 how many of them require nothing, and as many u32, which; the
//!   operations; then u32s, which operations wait.
//! - An operation, 39 bytes: u32 how many it requires; u8 what it is (1 send, 2 recv, 3 calc); u32
//!   the other rank; u64 bytes, or nanoseconds; u32 tag; u8 cpu; u8 nic; u32 and u32, how many wait
//!   for its end, and from where on they stand among the u32s behind the operations; u32 and u32,
//!   the same of those that wait for its beginning.
//!
//! What follows from the rest is passed over: how many an operation requires, and which require
//! nothing. `LogGOPSim` counts the first down in the file itself, if it is told to.

use super::goal::{Operation, Program, Requirement, What, any_tag, from_any};
use super::lines::Mistake;
use super::{Graph, goal};
use crate::{MAX_FLOW_BYTES, TrafficError};

/// Magic number at the begin of such a file.
const COOKIE: u64 = 4_223;
/// Length of the magic number in bytes, which offsets do not count.
const COOKIE_BYTES: usize = 8;
/// Bytes of the head behind these, and of the place of each rank's part.
const HEAD: usize = 6;
const PLACE: usize = 16;
/// Bytes of an operation.
const OPERATION: usize = 39;
/// Any rank, or any tag.
const ANY: u32 = u32::MAX;

/// Whether a file is in this form.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    Fields(bytes).u64() == Some(COOKIE)
}

/// Reads a schedule into a graph.
pub(super) fn read(file: &str, bytes: &[u8], graph: &mut Graph<'_, '_, '_>) -> Result<(), TrafficError> {
    let bad = |(found, allowed): Mistake| TrafficError::BadFile { file: file.to_owned(), found, allowed };
    let body = &bytes[COOKIE_BYTES..];
    let mut head = Fields(body);
    let ranks = head.u32().filter(|&ranks| ranks <= u32::from(u16::MAX) + 1);
    let ranks = ranks.and_then(|ranks| head.skip(2).map(|()| ranks as usize));
    let ranks = ranks.ok_or_else(|| bad(cut("the head", body.len())))?;
    let mut program = Program::default();
    // Parts follow each other without gaps, the first behind the table of all parts.
    let mut first = Some(HEAD + ranks * PLACE);
    for rank in 0..ranks {
        let part = head.u64().zip(head.u64()).and_then(|(begin, end)| {
            let (begin, end) = (usize::try_from(begin).ok()?, usize::try_from(end).ok()?);
            (first.replace(end) == Some(begin)).then(|| body.get(begin..end))?
        });
        let part = part.ok_or_else(|| bad(cut(&format!("rank {rank}"), body.len())))?;
        take_part(&mut program, rank, ranks, part).map_err(bad)?;
    }
    let behind = first.and_then(|end| body.len().checked_sub(end)).unwrap_or(0);
    if behind > 0 {
        let found = format!("{behind} bytes behind the last rank");
        return Err(bad((found, "a file that ends with the last rank".to_owned())));
    }
    if program.operations.is_empty() {
        return Err(bad(("no operation".to_owned(), goal::FORMS.to_owned())));
    }
    graph.set_ranks(ranks, file)?;
    program
        .put(graph)
        .map_err(|(number, (found, allowed))| bad((format!("operation {number}: {found}"), allowed)))
}

/// Mistake for a part that is not whole.
fn cut(what: &str, bytes: usize) -> Mistake {
    (format!("{what} that is not whole, in {} bytes", bytes + COOKIE_BYTES), goal::FORMS.to_owned())
}

/// Takes what a rank does.
fn take_part(program: &mut Program, rank: usize, ranks: usize, part: &[u8]) -> Result<(), Mistake> {
    let whole = || cut(&format!("rank {rank}"), part.len());
    let mut fields = Fields(part);
    let (count, roots) = fields.u32().zip(fields.u32()).ok_or_else(whole)?;
    fields.0 = u32s(fields.0, 0, roots).and_then(|roots| fields.0.get(roots.len()..)).ok_or_else(whole)?;
    let behind = (count as usize).checked_mul(OPERATION).and_then(|bytes| fields.0.get(bytes..));
    let behind = behind.ok_or_else(whole)?;
    let (first, before) = (program.operations.len(), program.requirements.len());
    for place in 0..count as usize {
        let number = first + place + 1;
        let told =
            |(found, allowed): Mistake| (format!("operation {number}, of rank {rank}: {found}"), allowed);
        let one = Fields(fields.0).operation().ok_or_else(whole)?;
        fields.skip(OPERATION).ok_or_else(whole)?;
        let what = one.what(rank, ranks).map_err(told)?;
        program.operations.push(Operation { line: number, rank, what });
        for ((waiting, from), begun) in [(one.for_its_end, false), (one.for_its_beginning, true)] {
            let waiting = u32s(behind, from, waiting).ok_or_else(whole)?;
            // Each of them stands there once.
            if program.requirements.len() - before + waiting.len() / 4 > behind.len() / 4 {
                return Err(whole());
            }
            for other in waiting.chunks_exact(4) {
                let other = Fields(other).u32().filter(|&other| other < count).ok_or_else(|| {
                    told(("an operation that waits and is not there".to_owned(), format!("one of {count}")))
                })?;
                let what = first + other as usize;
                program.requirements.push(Requirement { what, requires: first + place, begun });
            }
        }
    }
    let waiting = (program.requirements.len() - before) * 4;
    if waiting == behind.len() { Ok(()) } else { Err(whole()) }
}

/// The bytes of so many u32s, from this one on.
fn u32s(bytes: &[u8], from: u32, count: u32) -> Option<&[u8]> {
    if count == 0 {
        return Some(&[]);
    }
    let from = usize::try_from(u64::from(from) * 4).ok()?;
    let length = usize::try_from(u64::from(count) * 4).ok()?;
    bytes.get(from..from.checked_add(length)?)
}

/// An operation as it stands in the file.
struct Raw {
    kind: u8,
    peer: u32,
    size: u64,
    tag: u32,
    cpu: u8,
    /// How many wait, and from where on they stand.
    for_its_end: (u32, u32),
    for_its_beginning: (u32, u32),
}

impl Raw {
    /// Operation that the record encodes, if that can be.
    fn what(&self, rank: usize, ranks: usize) -> Result<What, Mistake> {
        let cpu = self.cpu;
        if self.kind == 3 {
            let ns = Some(self.size).filter(|&ns| ns <= u64::MAX / 1_000_000);
            let ns = ns.ok_or_else(|| (format!("calc {}", self.size), "fewer nanoseconds".to_owned()))?;
            return Ok(What::Calc { ns, cpu });
        }
        if self.kind != 1 && self.kind != 2 {
            return Err((format!("type {}", self.kind), "1 (send), 2 (recv) or 3 (calc)".to_owned()));
        }
        if self.kind == 2 && self.peer == ANY {
            return Err(from_any());
        }
        if self.tag == ANY {
            return Err(any_tag());
        }
        let (peer, bytes, tag) = (self.peer as usize, self.size, self.tag);
        if peer == rank || peer >= ranks {
            return Err((format!("rank {peer}"), format!("another rank than its own, 0 to {}", ranks - 1)));
        }
        if bytes > MAX_FLOW_BYTES {
            return Err((format!("{bytes} bytes"), format!("0 to {MAX_FLOW_BYTES}")));
        }
        Ok(match self.kind {
            1 => What::Send { bytes, to: peer, tag, cpu },
            _ => What::Recv { bytes, from: peer, tag, cpu },
        })
    }
}

/// Rest of a file, from which fields are taken one after the other; `None` where it ends.
#[derive(Clone, Copy)]
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn operation(mut self) -> Option<Raw> {
        self.skip(4)?;
        let (kind, peer, size, tag) = (self.u8()?, self.u32()?, self.u64()?, self.u32()?);
        let (cpu, _nic) = (self.u8()?, self.u8()?);
        let for_its_end = (self.u32()?, self.u32()?);
        let for_its_beginning = (self.u32()?, self.u32()?);
        Some(Raw { kind, peer, size, tag, cpu, for_its_end, for_its_beginning })
    }
}
