//! Names in messages: which one was meant, and which there are.

use std::collections::BTreeMap;

use super::FabricError;

/// The error for a name that is not among `known`.
pub(crate) fn unknown_name<'a, I: Iterator<Item = &'a str>>(
    key: String,
    what: &'static str,
    found: &str,
    known: impl Fn() -> I,
) -> FabricError {
    FabricError::UnknownName {
        key,
        what,
        found: found.to_owned(),
        nearest: nearest(found, known()),
        known: listed(known()),
    }
}

/// The known name that is nearest to `found`, if it is near enough to be what was meant.
fn nearest<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    const NEAR: f64 = 0.6;
    let scored = known.map(|name| (strsim::normalized_damerau_levenshtein(found, name), name));
    let best = scored.filter(|(score, _)| *score >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| name.to_owned())
}

/// The first few of `names`, separated by commas, and how many more there are. Names that differ in
/// their number alone stand together, and three or more in a row become a range: "host0...host127,
/// leaf0...leaf7".
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = Vec::new();
    let mut more = 0;
    for run in runs(names) {
        match &run[..] {
            [first, _, .., last] if shown.len() < SHOWN => shown.push(format!("{first}...{last}")),
            short => {
                let room = short.len().min(SHOWN - shown.len());
                shown.extend(short[..room].iter().map(|&name| name.to_owned()));
                more += short.len() - room;
            }
        }
    }
    let shown = shown.join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Names with one stem and numbers that follow on each other, in runs; the stems as they first
/// appear.
fn runs<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut stems: Vec<BTreeMap<Option<u32>, &str>> = Vec::new();
    for name in names {
        let (stem, number) = parted(name);
        let place = *places.entry(stem).or_insert(stems.len());
        stems.resize_with(stems.len().max(place + 1), BTreeMap::new);
        stems[place].insert(number, name);
    }
    let mut found: Vec<Vec<&str>> = Vec::new();
    for stem in stems {
        let mut before = None;
        for (number, name) in stem {
            match found.last_mut() {
                Some(run) if before.is_some() && number == before => run.push(name),
                _ => found.push(vec![name]),
            }
            before = number.and_then(|number| number.checked_add(1));
        }
    }
    found
}

/// A name without the number at its end, and that number, if it is written as numbers are.
fn parted(name: &str) -> (&str, Option<u32>) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    match digits.parse() {
        Ok(number) if digits == "0" || !digits.starts_with('0') => (stem, Some(number)),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_shows_every_kind_of_them() {
        let numbered =
            |stem: &str, count: usize| (0..count).map(|n| format!("{stem}{n}")).collect::<Vec<_>>();
        let nodes = [numbered("host", 128), numbered("leaf", 8), numbered("spine", 2)].concat();
        let mut sorted = nodes.clone();
        sorted.sort();
        for nodes in [nodes, sorted] {
            let text = listed(nodes.iter().map(String::as_str));
            assert_eq!(text, "host0...host127, leaf0...leaf7, spine0, spine1");
        }
        assert_eq!(listed(["a1", "a2", "a3", "a5", "b", "a01"].into_iter()), "a1...a3, a5, b, a01");
        let many = ["a", "b", "c", "d", "e", "f", "g", "h0", "h1", "i0", "i1", "i2"];
        assert_eq!(listed(many.into_iter()), "a, b, c, d, e, f, g, h0 and 4 more");
        assert_eq!(listed(std::iter::empty()), "");
    }
}
