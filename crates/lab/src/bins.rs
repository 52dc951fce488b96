//! Ranges of flow sizes by which a run reports: those of the papers, by name, and those that a spec
//! writes out.

use std::collections::BTreeMap;

use serde::Deserialize;
use weft_units::Bytes;

use crate::spec::{SpecError, nearest};

/// The sets of the papers.
const FILE: &str = include_str!("../../../data/bins.toml");

/// Ranges of sizes that are reported together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinSet {
    /// Name of the workload, as in "tr".
    pub name: String,
    /// Title of the workload, in a line.
    pub title: String,
    /// The paper and its section.
    pub source: String,
    /// The ranges, smallest first. They may overlap.
    pub ranges: Vec<SizeRange>,
}

/// Flows of `from` to `up_to` bytes, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeRange {
    /// Label of the range, as in "< 100 KB".
    pub label: String,
    /// The smallest size.
    pub from: u64,
    /// The largest size; `u64::MAX` if there is none.
    pub up_to: u64,
}

impl SizeRange {
    /// Whether it holds the same flows, by whatever name.
    const fn is_as(&self, other: &Self) -> bool {
        self.from == other.from && self.up_to == other.up_to
    }

    /// Whether a flow of this size belongs.
    pub const fn contains(&self, size_bytes: u64) -> bool {
        self.from <= size_bytes && size_bytes <= self.up_to
    }
}

/// A table of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    title: String,
    source: String,
    ranges: Vec<Range>,
}

/// A range as the file writes it: at most one bound on either side.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(deny_unknown_fields, default)]
struct Range {
    from: Option<Bytes>,
    above: Option<Bytes>,
    below: Option<Bytes>,
    up_to: Option<Bytes>,
}

impl Range {
    fn size_range(self) -> SizeRange {
        let from = self.from.map(Bytes::as_u64).or(self.above.map(|bytes| bytes.as_u64() + 1));
        let up_to =
            self.up_to.map(Bytes::as_u64).or(self.below.map(|bytes| bytes.as_u64().saturating_sub(1)));
        SizeRange { label: self.label(), from: from.unwrap_or(0), up_to: up_to.unwrap_or(u64::MAX) }
    }

    /// "< 100 KB", "> 10 MB", "100 KB - 1 MB": that a bound between two ranges belongs to one of
    /// them stands in the docs.
    fn label(self) -> String {
        let low = self.from.or(self.above).filter(|low| low.as_u64() > 0);
        match (low, self.below.or(self.up_to)) {
            (None, None) => "all sizes".to_owned(),
            (None, Some(high)) if self.below.is_some() => format!("< {}", spaced(high)),
            (None, Some(high)) => format!("≤ {}", spaced(high)),
            (Some(low), None) if self.above.is_some() => format!("> {}", spaced(low)),
            (Some(low), None) => format!("≥ {}", spaced(low)),
            (Some(low), Some(high)) => format!("{} - {}", spaced(low), spaced(high)),
        }
    }
}

/// "100 KB": a number as large as can be read at a glance, and its unit.
fn spaced(bytes: Bytes) -> String {
    let value = bytes.as_u64();
    let units = [("GB", 1_000_000_000_u64), ("MB", 1_000_000), ("KB", 1_000)];
    units.into_iter().find(|(_, scale)| value >= *scale).map_or_else(
        || format!("{value} B"),
        |(unit, scale)| format!("{} {unit}", value as f64 / scale as f64),
    )
}

/// Every set, by name.
///
/// # Errors
/// A file that is not as it should be: a defect of Weft.
pub fn bin_sets() -> Result<Vec<BinSet>, SpecError> {
    let sets: BTreeMap<String, Set> =
        toml::from_str(FILE).map_err(|error| SpecError::new(format!("data/bins.toml: {error}")))?;
    let set = |(name, set): (String, Set)| BinSet {
        name,
        title: set.title,
        source: set.source,
        ranges: set.ranges.into_iter().map(Range::size_range).collect(),
    };
    Ok(sets.into_iter().map(set).collect())
}

/// The groups of sizes that every summary has, by name: small, medium and large flows.
pub fn groups() -> [(&'static str, SizeRange); 3] {
    let (small, large) = (Bytes::new(100_000), Bytes::new(10_000_000));
    [
        ("small", Range { below: Some(small), ..Range::default() }),
        ("medium", Range { from: Some(small), up_to: Some(large), ..Range::default() }),
        ("large", Range { above: Some(large), ..Range::default() }),
    ]
    .map(|(name, range)| (name, range.size_range()))
}

/// The ranges that `text` asks for: the name of a set, or ranges as in "0-100KB,100KB-1MB,1MB-",
/// each from its first size, included, to its second, not included.
///
/// # Errors
/// What is wrong with it, and what is allowed; to be put behind the key.
pub fn parse_bins(text: &str) -> Result<Vec<SizeRange>, String> {
    let sets = bin_sets().map_err(|error| error.to_string())?;
    if let Some(set) = sets.iter().find(|set| set.name == text) {
        return Ok(set.ranges.clone());
    }
    let looks_like_ranges = text.contains(',') || text.starts_with(|first: char| first.is_ascii_digit());
    if looks_like_ranges {
        let ranges = text.split(',').map(parse_range).collect::<Result<Vec<_>, _>>()?;
        let mut others = ranges.iter().enumerate();
        let twice = others.find(|(place, range)| ranges[..*place].iter().any(|before| before.is_as(range)));
        return twice.map_or(Ok(ranges.clone()), |(_, range)| {
            Err(format!(" has the range {} twice; allowed are ranges that differ", range.label))
        });
    }
    let names = sets.iter().map(|set| set.name.as_str());
    let hint =
        nearest(text, names.clone()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let known = names.collect::<Vec<_>>().join(", ");
    Err(format!(" is {text:?}: allowed are {known}, or ranges as in \"0-100KB,100KB-1MB,1MB-\"{hint}"))
}

fn parse_range(text: &str) -> Result<SizeRange, String> {
    let text = text.trim();
    let bad = |reason: &str| {
        format!(" has {text:?}: {reason}; allowed are sizes as in \"0-100KB\", or \"1MB-\" without an end")
    };
    let (from, below) = text.split_once('-').ok_or_else(|| bad("a range needs a \"-\""))?;
    let size = |part: &str| match part.trim() {
        "" => Ok(None),
        "0" => Ok(Some(Bytes::new(0))),
        part => part.parse::<Bytes>().map(Some).map_err(|error| bad(&error.to_string())),
    };
    let (from, below) = (size(from)?, size(below)?);
    let from = from.ok_or_else(|| bad("it begins nowhere"))?;
    if below.is_some_and(|below| below <= from) {
        return Err(bad("it is empty"));
    }
    Ok(Range { from: Some(from), below, ..Range::default() }.size_range())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, u64, u64)> {
        parse_bins(text).unwrap().into_iter().map(|range| (range.label, range.from, range.up_to)).collect()
    }

    /// TR: (0, 100KB], (100KB, 1MB], (1MB, ). MaxPass: 0-10 KB, 10-100 KB, 100 KB-1 MB, 1 MB and
    /// more.
    #[test]
    fn the_sets_have_the_bounds_of_their_papers() {
        let expected = [
            ("≤ 100 KB", 1, 100_000),
            ("100 KB - 1 MB", 100_001, 1_000_000),
            ("> 1 MB", 1_000_001, u64::MAX),
        ];
        assert_eq!(shown("tr"), expected.map(|(label, from, up_to)| (label.to_owned(), from, up_to)));
        let expected = [
            ("< 10 KB", 0, 9_999),
            ("10 KB - 100 KB", 10_000, 99_999),
            ("100 KB - 1 MB", 100_000, 999_999),
            ("≥ 1 MB", 1_000_000, u64::MAX),
        ];
        assert_eq!(shown("maxpass"), expected.map(|(label, from, up_to)| (label.to_owned(), from, up_to)));
        assert_eq!(shown("meet-enterprise")[2], ("< 3.2 KB".to_owned(), 0, 3_199));
        for set in bin_sets().unwrap() {
            assert!(!set.title.is_empty() && !set.source.is_empty() && !set.ranges.is_empty(), "{set:?}");
        }
    }

    #[test]
    fn the_groups_of_a_summary_take_every_size_once() {
        let labels = groups().map(|(name, range)| (name, range.label));
        let expected = [("small", "< 100 KB"), ("medium", "100 KB - 10 MB"), ("large", "> 10 MB")];
        assert_eq!(labels, expected.map(|(name, label)| (name, label.to_owned())));
        let [(_, small), (_, medium), (_, large)] = groups();
        assert_eq!((small.from, small.up_to + 1, medium.up_to + 1), (0, medium.from, large.from));
        assert_eq!(large.up_to, u64::MAX);
    }

    #[test]
    fn ranges_that_touch_share_no_size() {
        let ranges = parse_bins("0-100KB, 100KB-1MB,1MB-").unwrap();
        for (size, bin) in [(0, 0), (99_999, 0), (100_000, 1), (999_999, 1), (1_000_000, 2), (u64::MAX, 2)] {
            let holders: Vec<usize> = (0..3).filter(|&index| ranges[index].contains(size)).collect();
            assert_eq!(holders, [bin], "{size}");
        }
    }

    #[test]
    fn a_mistake_is_answered_with_what_is_allowed() {
        let cases = [
            ("trr", "did you mean \"tr\"?"),
            ("nothing", "allowed are lbt, maxpass, meet"),
            ("0-100", "the unit is missing"),
            ("0-100KB,7", "a range needs a \"-\""),
            ("100KB-100KB", "it is empty"),
            ("0-1KB,-2KB", "it begins nowhere"),
            ("0-1KB,", "a range needs"),
            ("0-1KB,1KB-,0B-1000B", "has the range < 1 KB twice"),
            ("", "allowed are lbt"),
        ];
        for (text, expected) in cases {
            let found = parse_bins(text).unwrap_err();
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }
}
