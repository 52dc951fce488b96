//! Wire format of MEET's packets.
//!
//! Probes and answers are the least Ethernet frames. A report or a view takes for each path that it
//! has news of the paper's 8 bytes, a float and an integer. Which paths these are, a bitmap says:
//!
//! ```text
//! Ethernet 18, IP 20, UDP 8 | kind and term 4, number 4 | first path 4, paths 4
//!                           | bitmap 4 x ceil(paths / 32) | 8 a path
//! ```
//!
//! What does not fit into a full-size packet is cut into several, each of which is read by itself.

use std::sync::Arc;

/// Kind of a message: the low eight bits of its tag. The bits above are the label of a probe's
/// path, or a proxy's term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A probe; above it, its label.
    Probe = 1,
    /// The answer to a probe; above it, the same label.
    Answer = 2,
    /// From a host to its proxy; above it, the term.
    Report = 3,
    /// From the proxy to a host; above it, the term.
    View = 4,
}

impl Kind {
    const BITS: u32 = 8;
    /// The highest term.
    pub const MAX_TERM: u32 = u32::MAX >> Self::BITS;

    /// The tag of a message of this kind.
    pub const fn tag(self, rest: u32) -> u32 {
        self as u32 | rest << Self::BITS
    }

    /// The kind and the rest of a tag.
    pub const fn read(tag: u32) -> Option<(Self, u32)> {
        let kind = match tag & 0xff {
            1 => Self::Probe,
            2 => Self::Answer,
            3 => Self::Report,
            4 => Self::View,
            _ => return None,
        };
        Some((kind, tag >> Self::BITS))
    }
}

/// Bytes of a probe and of its answer: the least Ethernet frame holds it. Source: open in MEET.
pub const PROBE_BYTES: u16 = 64;
/// Bytes of a path's two numbers (MEET §3.5).
pub const PATH_BYTES: usize = 8;
/// Ethernet, IP and UDP, and this protocol's kind, term and number.
const HEADER_BYTES: usize = 18 + 20 + 8 + 8;
/// A full-size packet.
const MAX_BYTES: usize = 1_500;
const WORD_BYTES: usize = 4;
const MAX_WORDS: usize = (MAX_BYTES - HEADER_BYTES) / WORD_BYTES;
/// First path, number of paths.
const RANGE_WORDS: usize = 2;

/// Entry of one path in a report or a view. In a report, `value` is `C_total` and `packets` is
/// `P_total`; in a view, `value` is their quotient. A path that failed has an infinite value and no
/// packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The path, counted over all racks.
    pub path: u32,
    /// Congestion, in us^3.
    pub value: f32,
    /// How many packets it comes from.
    pub packets: u32,
}

impl Entry {
    /// That probes of a path did not come back.
    pub const fn failed(path: u32) -> Self {
        Self { path, value: f32::INFINITY, packets: 0 }
    }

    /// Whether it says that.
    pub const fn has_failed(&self) -> bool {
        self.packets == 0 && self.value == f32::INFINITY
    }
}

/// Bytes on the wire of a report or view with these contents.
pub fn wire_bytes(part: &[u32]) -> u16 {
    (HEADER_BYTES + part.len() * WORD_BYTES).max(usize::from(PROBE_BYTES)) as u16
}

/// Contents of a report or view, packet by packet; at least one, even if there is nothing to tell.
/// Entries are in ascending order of their paths.
pub fn encode(entries: &[Entry]) -> Vec<Arc<[u32]>> {
    let mut parts = Vec::with_capacity(1);
    let mut rest = entries;
    loop {
        let (now, later) = rest.split_at(fitting(rest));
        parts.push(part(now));
        rest = later;
        if rest.is_empty() {
            return parts;
        }
    }
}

/// How many paths lie from the first entry to the last one.
fn range(entries: &[Entry]) -> usize {
    match entries {
        [] => 0,
        [first, ..] => (entries[entries.len() - 1].path - first.path) as usize + 1,
    }
}

/// Words that these entries take.
fn words(entries: &[Entry]) -> usize {
    RANGE_WORDS + range(entries).div_ceil(32) + entries.len() * PATH_BYTES / WORD_BYTES
}

/// How many of the first entries fit into one packet. One always does.
fn fitting(entries: &[Entry]) -> usize {
    (2..=entries.len())
        .take_while(|&count| words(&entries[..count]) <= MAX_WORDS)
        .last()
        .unwrap_or(entries.len().min(1))
}

fn part(entries: &[Entry]) -> Arc<[u32]> {
    let first = entries.first().map_or(0, |entry| entry.path);
    let range = range(entries);
    let mut words = Vec::with_capacity(words(entries));
    words.extend([first, range as u32]);
    words.resize(RANGE_WORDS + range.div_ceil(32), 0);
    for entry in entries {
        let bit = (entry.path - first) as usize;
        words[RANGE_WORDS + bit / 32] |= 1 << (bit % 32);
        words.extend([entry.value.to_bits(), entry.packets]);
    }
    words.into()
}

/// The entries of one packet.
pub fn decode(part: &[u32]) -> impl Iterator<Item = Entry> {
    let (first, range) = match part {
        [first, range, ..] => (*first, *range),
        _ => (0, 0),
    };
    let body = part.get(RANGE_WORDS..).unwrap_or_default();
    let (bitmap, numbers) = body.split_at((range as usize).div_ceil(32).min(body.len()));
    let told =
        move |bit: &u32| bitmap.get(*bit as usize / 32).is_some_and(|word| word >> (bit % 32) & 1 == 1);
    (0..range).filter(told).zip(numbers.chunks_exact(2)).map(move |(bit, numbers)| Entry {
        path: first + bit,
        value: f32::from_bits(numbers[0]),
        packets: numbers[1],
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(paths: impl IntoIterator<Item = u32>) -> Vec<Entry> {
        paths.into_iter().map(|path| Entry { path, value: path as f32 * 0.5, packets: path + 1 }).collect()
    }

    #[test]
    fn a_tag_survives_the_wire_and_a_stranger_is_none() {
        for kind in [Kind::Probe, Kind::Answer, Kind::Report, Kind::View] {
            for rest in [0, 7, u32::from(u16::MAX), Kind::MAX_TERM] {
                assert_eq!(Kind::read(kind.tag(rest)), Some((kind, rest)));
            }
        }
        assert_eq!((Kind::read(0), Kind::read(5)), (None, None));
    }

    #[test]
    fn the_overhead_of_a_host_is_the_papers_40_mbit_and_framing_adds_a_seventh() {
        // MEET §3.5: 64 paths of 8 bytes every 100 us are 512 bytes, "around 40 Mbps": 40.96.
        let parts = encode(&entries(0..64));
        assert_eq!(parts.len(), 1);
        let mbps = |bytes: usize| bytes as f64 * 8.0 / 100.0;
        assert!((mbps(64 * PATH_BYTES) - 40.96).abs() < 1e-9);
        // Around them 54 bytes of headers, 8 for the range and 8 for its bitmap: 582.
        assert_eq!(wire_bytes(&parts[0]), 512 + 54 + 8 + 8);
        assert!((mbps(usize::from(wire_bytes(&parts[0]))) - 46.56).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_tell_takes_the_least_frame() {
        let parts = encode(&[]);
        assert_eq!((parts.len(), wire_bytes(&parts[0])), (1, 64));
        assert_eq!(decode(&parts[0]).count(), 0);
        assert_eq!(decode(&[]).count(), 0);
    }

    #[test]
    fn a_report_beyond_a_full_size_packet_is_several() {
        // 1,446 bytes are 361 words. n paths in a row take 2 for the range, ceil(n / 32) and 2 n:
        // 176 take 2 + 6 + 352 = 360, and one more would be two too many. It alone takes 2 + 1 + 2.
        for (paths, sizes) in [(175, vec![1_486]), (176, vec![1_494]), (177, vec![1_494, 74])] {
            let parts = encode(&entries(0..paths));
            assert_eq!(parts.iter().map(|part| wire_bytes(part)).collect::<Vec<_>>(), sizes, "{paths} paths");
        }
    }

    proptest! {
        #[test]
        fn entries_survive_the_wire_and_no_packet_is_too_big(paths in proptest::collection::btree_set(0u32..100_000, 0..600)) {
            let sent = entries(paths);
            let parts = encode(&sent);
            prop_assert!(parts.iter().all(|part| usize::from(wire_bytes(part)) <= MAX_BYTES));
            let read: Vec<_> = parts.iter().flat_map(|part| decode(part)).collect();
            prop_assert_eq!(read, sent);
        }
    }
}
