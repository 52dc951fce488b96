//! From a TOML value to a type, with one message a person can act on when it does not fit.

use serde::de::DeserializeOwned;
use toml::Value;
use weft_units::Mistake;

use super::error::{did_you_mean, nearest};
use super::path::{KeyPath, Step, children};
use super::value::{Fault, Node};

/// Mismatch between a value and its type, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The key, or the table that lacks one.
    pub path: KeyPath,
    /// If the key is none: those that its table has.
    pub known: Option<&'static [&'static str]>,
    pub mistake: Box<Mistake>,
}

/// Reads `value` as a `T`.
pub(crate) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Misfit> {
    attempt(value).map_err(|(path, fault)| {
        let path = blame::<T>(value, path, &fault);
        explain(value, path, &fault)
    })
}

fn attempt<T: DeserializeOwned>(value: &Value) -> Result<T, (KeyPath, Fault)> {
    serde_path_to_error::deserialize(Node(value))
        .map_err(|error| (key_path(error.path()), error.into_inner()))
}

fn key_path(path: &serde_path_to_error::Path) -> KeyPath {
    use serde_path_to_error::Segment;
    let steps = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(Step::Key(key.clone())),
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    KeyPath(steps.collect())
}

/// Serde loses its way inside enums that are told apart by a key. So ask: without which entry is
/// the error another one? That entry holds the mistake.
fn blame<T: DeserializeOwned>(value: &Value, mut path: KeyPath, fault: &Fault) -> KeyPath {
    // What is missing is in no entry, but the table that lacks it may be one.
    let passes: &[bool] = if matches!(fault, Fault::MissingField(_)) { &[false] } else { &[false, true] };
    while let Some(node) = path.get(value) {
        let suspects: Vec<Step> =
            children(node).into_iter().filter(|step| may_hold(node, step, fault)).collect();
        let culprit = passes.iter().find_map(|&may_be_required| {
            suspects
                .iter()
                .find(|step| clears::<T>(value, &path.join((*step).clone()), fault, may_be_required))
        });
        match culprit {
            Some(step) => path = path.join(step.clone()),
            None => break,
        }
    }
    path
}

/// Whether the child at `step` can be the reason: an unknown name is a text that is found as it
/// stands.
fn may_hold(node: &Value, step: &Step, fault: &Fault) -> bool {
    let child = KeyPath(vec![step.clone()]);
    let is_tag = matches!(step, Step::Key(key) if TAGS.contains(&key.as_str()));
    match (fault, child.get(node)) {
        (Fault::UnknownVariant { found, .. }, Some(Value::String(text))) => text == found,
        (Fault::UnknownVariant { .. }, Some(Value::Table(_) | Value::Array(_))) => true,
        (Fault::UnknownVariant { .. }, _) => false,
        _ => !is_tag,
    }
}

/// The keys that tell variants apart.
const TAGS: [&str; 2] = ["name", "kind"];

/// Whether the error goes away, or becomes another one, without the entry at `path`.
fn clears<T: DeserializeOwned>(value: &Value, path: &KeyPath, fault: &Fault, may_be_required: bool) -> bool {
    let Some(without) = path.removed_from(value) else { return false };
    match attempt::<T>(&without) {
        Ok(_) => true,
        Err((_, Fault::MissingField(_))) => may_be_required,
        Err((_, other)) => other != *fault,
    }
}

fn explain(value: &Value, mut path: KeyPath, fault: &Fault) -> Misfit {
    let mistake = match fault {
        Fault::UnknownField { found, known } => {
            let is_key = path.last_key() == Some(found);
            if !is_key || path.get(value).is_some_and(|node| node.get(found).is_some()) {
                path = path.join(Step::Key(found.clone()));
            }
            let near: Vec<_> = nearest(found, known.iter().copied()).map(str::to_owned).into_iter().collect();
            let mistake = Box::new(unknown_key(&path, "", known, &near));
            return Misfit { path, known: Some(known), mistake };
        }
        Fault::UnknownVariant { found, known } => {
            let near = nearest(found, known.iter().copied());
            let allowed = known.join(", ");
            let said = format!(" = {found:?} is not known; allowed: {allowed}{}", did_you_mean(near));
            Mistake::at(path.to_string(), said).found(found).allowed(allowed).nearest(near)
        }
        Fault::MissingField(field) => {
            Mistake::at(path.join(Step::Key((*field).to_owned())).to_string(), " is missing")
        }
        Fault::Unfitting(expected) => {
            let expected = plain(expected);
            unfitting(value, &path, &format!("expected {expected}")).allowed(expected)
        }
        Fault::Refused { said, allowed } => unfitting(value, &path, said).allowed(allowed),
        Fault::Said(text) => unfitting(value, &path, text),
    };
    Misfit { path, known: None, mistake: Box::new(mistake) }
}

/// A key that its table does not have: whose it would be, as in " of ecmp", which it has, and which
/// may be meant.
pub(super) fn unknown_key(path: &KeyPath, whose: &str, known: &[&str], near: &[String]) -> Mistake {
    let allowed = if known.is_empty() { "no keys".to_owned() } else { known.join(", ") };
    let said = format!(" is not a key{whose}; allowed here: {allowed}{}", did_you_mean(near));
    let mistake = Mistake::at(path.to_string(), said).allowed(allowed).nearest(near.first());
    mistake.found(path.last_key().unwrap_or_default())
}

/// A value that its type refuses, for this reason.
fn unfitting(value: &Value, path: &KeyPath, reason: &str) -> Mistake {
    match path.get(value).filter(|_| !path.0.is_empty()).map(shown) {
        // The reason of a quantity quotes it.
        Some(found) if reason.starts_with(&found) => {
            Mistake::at(path.to_string(), format!(": {reason}")).found(found)
        }
        Some(found) => Mistake::at(path.to_string(), format!(" = {found}: {reason}")).found(found),
        None => Mistake::new(reason),
    }
}

/// A value in one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        // With line breaks escaped, which TOML need not do.
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// Plain words for serde's name of a type.
fn plain(expected: &str) -> String {
    match expected {
        "f64" | "f32" => "a number".to_owned(),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "variant identifier" => "a name, in quotes".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => {
            "a table".to_owned()
        }
        other if other.starts_with("nonzero ") => "a whole number, 1 or more".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use weft_units::{Rate, Span};

    use super::*;

    #[test]
    fn a_value_with_a_line_break_is_told_in_one_line() {
        assert_eq!(shown(&Value::String("a\nb".to_owned())), "\"a\\nb\"");
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        scheme: Scheme,
        #[serde(default)]
        rates: Vec<Rate>,
        #[serde(default)]
        load: f64,
        #[serde(default)]
        nested: BTreeMap<String, Span>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "name", rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Scheme {
        LetFlow(Params),
        Conga(Params),
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Params {
        gap: Span,
        #[serde(default)]
        ways: u16,
        #[serde(default)]
        mode: Option<Mode>,
        #[serde(default)]
        faults: Vec<Fault>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Fault {
        link: String,
        #[serde(default)]
        loss: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Mode {
        PerPacket,
    }

    fn message(text: &str) -> String {
        let value = Value::Table(text.parse().unwrap());
        let message = decode::<Outer>(&value).unwrap_err().mistake.to_string();
        assert!(!message.contains('\n'));
        message
    }

    #[test]
    fn every_kind_of_mistake_names_key_value_and_what_is_allowed() {
        let table = [
            (
                "scheme = { name = 'letflow', gap = '1us' }",
                "scheme.name = \"letflow\" is not known; allowed: let-flow, conga; did you mean \"let-flow\"?",
            ),
            (
                "scheme = { name = 'conga', gapp = '1us', gap = '1us' }",
                "scheme.gapp is not a key; allowed here: gap, ways, mode, faults; did you mean \"gap\"?",
            ),
            ("scheme = { name = 'conga' }", "scheme.gap is missing"),
            (
                "scheme = { name = 'conga', gap = '1us', ways = 70000 }",
                "scheme.ways = 70000: expected a whole number from 0 to 65535",
            ),
            (
                "scheme = { name = 'conga', gap = '1us', ways = -1 }",
                "scheme.ways = -1: expected a whole number from 0 to 65535",
            ),
            (
                "scheme = { name = 'conga', gap = '1us', mode = 'perpacket' }",
                "scheme.mode = \"perpacket\" is not known; allowed: per-packet; did you mean \"per-packet\"?",
            ),
            ("load = 'x'\nscheme = { name = 'conga', gap = '1us' }", "load = \"x\": expected a number"),
            (
                "lod = 1\nscheme = { name = 'conga', gap = '1us' }",
                "lod is not a key; allowed here: scheme, rates, load, nested; did you mean \"load\"?",
            ),
            ("load = 1", "scheme is missing"),
            ("scheme = 3", "scheme = 3: expected a table"),
        ];
        for (text, expected) in table {
            assert_eq!(message(text), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_deep_behind_a_tag_are_found_where_they_are() {
        let conga =
            |faults: &str| message(&format!("scheme = {{ name = 'conga', gap = '1us', faults = {faults} }}"));
        let unknown = conga("[{ link = 'a' }, { link = 'b', los = 1 }]");
        assert_eq!(
            unknown,
            "scheme.faults[1].los is not a key; allowed here: link, loss; did you mean \"loss\"?"
        );
        assert_eq!(conga("[{ link = 'a' }, { loss = 1 }]"), "scheme.faults[1].link is missing");
        assert_eq!(conga("[{ link = 5 }]"), "scheme.faults[0].link = 5: expected a string");
        assert_eq!(conga("3"), "scheme.faults = 3: expected a list");
    }

    #[test]
    fn a_bad_quantity_is_found_behind_a_tag_and_in_a_list() {
        let gap = message("scheme = { name = 'conga', gap = '500' }");
        assert!(gap.starts_with("scheme.gap: \"500\" is not a time: the unit is missing"), "{gap}");
        let number = message("scheme = { name = 'conga', gap = 500 }");
        assert_eq!(number, "scheme.gap = 500: expected a time with its unit, as in \"4us\"");
        let rate = message("rates = ['1Gbps', '1 gbps']\nscheme = { name = 'conga', gap = '1us' }");
        assert!(rate.starts_with("rates[1]: \"1 gbps\" is not a rate"), "{rate}");
        let nested = message("nested = { a = '1us', b = '1' }\nscheme = { name = 'conga', gap = '1us' }");
        assert!(nested.starts_with("nested.b: \"1\" is not a time"), "{nested}");
    }
}
