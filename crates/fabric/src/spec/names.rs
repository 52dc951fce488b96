//! Names in messages: which one was meant, and which there are.

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

/// The first few of `names`, separated by commas, and how many more there are.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let shown = names.join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
