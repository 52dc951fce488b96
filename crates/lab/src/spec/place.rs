//! Where in the text of a spec, or of another file of TOML, something is written.

use std::path::Path;

use toml::de::{DeTable, DeValue};
use weft_topology::FabricError;
use weft_traffic::TrafficError;
use weft_units::{Mistake, read_regular_file};

use super::document::{Giver, SpecSource};
use super::error::SpecError;
use super::path::{KeyPath, Step};

/// The line of the longest part of `path` that the text has.
pub(super) fn line_of(source: &SpecSource, path: &KeyPath) -> Option<usize> {
    let root = DeTable::parse(&source.text).ok()?;
    let mut place = None;
    let mut node: Option<&DeValue<'_>> = None;
    for step in &path.0 {
        let table = match (node, step) {
            (None, _) => Some(root.get_ref()),
            (Some(DeValue::Table(table)), _) => Some(table),
            _ => None,
        };
        node = match (table, node, step) {
            (Some(table), _, Step::Key(key)) => {
                let entry = table.iter().find(|(name, _)| name.get_ref() == key);
                place = entry.map(|(name, _)| name.span().start).or(place);
                entry.map(|(_, value)| value.get_ref())
            }
            (_, Some(DeValue::Array(array)), Step::Index(index)) => {
                let item = array.get(*index);
                place = item.map(|item| item.span().start).or(place);
                item.map(toml::Spanned::get_ref)
            }
            _ => None,
        };
        if node.is_none() {
            break;
        }
    }
    place.map(|place| line_at(&source.text, place))
}

/// A mistake in the file of a fabric that has one, with its line; any other is given back.
pub(crate) fn in_graph_file(error: FabricError) -> Result<SpecError, FabricError> {
    let FabricError::InFile { path, key, error } = error else { return Err(error) };
    let line = || {
        let text = read_regular_file(Path::new(&path)).ok()?;
        line_of(&SpecSource::from_text(text), &KeyPath::parse(&key?)?)
    };
    let line = line();
    Ok(SpecError { line, ..SpecError::from(Mistake::from(*error)).from_origin(path) })
}

/// A mistake in a file that traffic names, with its line if it has lines; any other is given back.
pub(crate) fn in_traffic_file(error: TrafficError) -> Result<SpecError, TrafficError> {
    let (file, line, found, allowed, sentence) = match &error {
        TrafficError::BadLine { file, line, found, allowed } => {
            (file, Some(*line), found, allowed, format!("found {found}: allowed is {allowed}"))
        }
        TrafficError::BadFile { file, found, allowed } => {
            (file, None, found, allowed, format!("found {found}: allowed is {allowed}"))
        }
        TrafficError::BadMessage { file, message, offset, found, allowed } => {
            let place = format!("message {message} at byte {offset}");
            (file, None, found, allowed, format!("{place}: found {found}: allowed is {allowed}"))
        }
        _ => return Err(error),
    };
    let mistake = Mistake::new(sentence).found(found).allowed(allowed);
    Ok(SpecError { line, ..SpecError::from(mistake).from_origin(file) })
}

pub(super) fn syntax_error(text: &str, origin: &str, error: &toml::de::Error) -> SpecError {
    let line = error.span().map(|span| line_at(text, span.start));
    let reason = error.message().replace('\n', ", ");
    let mistake = Mistake::new(format!("not valid TOML: {reason}"));
    SpecError { line, ..SpecError::from(mistake).from_origin(origin) }
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.split(|&byte| byte == b'\n').count()
}

/// The error of a spec, blamed on whoever made it. A mistake that a change is blamed for, because
/// it lies around the key that was changed, is the text's own if the text alone has it, too: `read`
/// says what is wrong with that.
pub(crate) fn blamed(
    source: &SpecSource,
    error: SpecError,
    read: impl FnOnce(&SpecSource) -> Option<SpecError>,
) -> SpecError {
    let path = error.mistake.path.as_deref().and_then(KeyPath::parse).unwrap_or_default();
    let sets = |(key, _): &(String, String)| KeyPath::parse(key).is_some_and(|key| path.is_within(&key));
    if error.origin.as_deref() != Some(Giver::Override.name()) || source.overrides.iter().any(sets) {
        return error;
    }
    let text = SpecSource { overrides: Vec::new(), ..source.clone() };
    read(&text).filter(|of_text| of_text.mistake == error.mistake).unwrap_or(error)
}
