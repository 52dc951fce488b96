//! A spec as text, before it means anything: TOML, changes from the command line, and where each key stands.

use std::path::PathBuf;

use toml::Value;
use toml::de::{DeTable, DeValue};
use weft_units::Mistake;

use super::contender::{Contender, Named, Part};
use super::error::SpecError;
use super::path::{KeyPath, Step};
use super::python_class;

/// A spec and what changes it: everything that a run is made from.
#[derive(Debug, Clone)]
pub struct SpecSource {
    /// TOML text.
    pub text: String,
    /// What messages call it: a file's name, or "spec".
    pub origin: String,
    /// The folder that relative paths in the spec start from.
    pub base_dir: PathBuf,
    /// Changes, in order: a key as in `fabric.fault.0.at`, and a value in TOML or as a bare string.
    pub overrides: Vec<(String, String)>,
    /// The seed, in place of `run.seed`.
    pub seed: Option<u64>,
    /// What stands in place of the spec's transport, load balancer, or both. Its own parameters win over changes.
    pub contender: Option<Contender>,
}

impl SpecSource {
    /// A spec from TOML text, without changes; relative paths start from the current folder.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            origin: "spec".to_owned(),
            base_dir: PathBuf::from("."),
            overrides: Vec::new(),
            seed: None,
            contender: None,
        }
    }

    /// The same spec with one key changed.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.overrides.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The same spec with this contender.
    #[must_use]
    pub fn with_contender(mut self, contender: Contender) -> Self {
        self.contender = Some(contender);
        self
    }

    /// The same spec with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

/// A parsed spec with all changes made.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    source: &'a SpecSource,
    /// As in the text.
    written: Value,
    /// With every change made.
    pub value: Value,
    overridden: Vec<KeyPath>,
    /// Whether the name of the load balancer is written out as a file and a class.
    has_class: bool,
}

/// Who gave a key its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giver {
    Default,
    Text,
    Override,
    Contender,
    Seed,
}

impl Giver {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Text => "spec file",
            Self::Override => "--set",
            Self::Contender => "--schemes",
            Self::Seed => "--seed",
        }
    }
}

impl<'a> Document<'a> {
    /// Parses the text and makes the changes.
    ///
    /// # Errors
    /// Text that is not TOML, or a change that does not fit.
    pub fn parse(source: &'a SpecSource) -> Result<Self, SpecError> {
        let table: toml::Table =
            source.text.parse().map_err(|error: toml::de::Error| syntax_error(source, &error))?;
        let written = Value::Table(table);
        let mut document =
            Self { source, value: written.clone(), written, overridden: Vec::new(), has_class: false };
        document.open_short_forms()?;
        python_class::rebase(&mut document.value, &source.base_dir);
        document.enter(source.contender.as_ref());
        for (key, value) in &source.overrides {
            document.set(key, value)?;
            python_class::rebase(&mut document.value, &source.base_dir);
        }
        // Again: what a contender says of itself is not to be changed for all.
        document.enter(source.contender.as_ref());
        document.set_seed()?;
        document.has_class = python_class::write_out(&mut document.value);
        Ok(document)
    }

    /// Tables that are written by a name, as in `balancer = "letflow:gap=100us"`, become tables.
    fn open_short_forms(&mut self) -> Result<(), SpecError> {
        for (table, value) in self.value.as_table_mut().into_iter().flatten() {
            let (Some(named), Value::String(text)) = (Named::of_table(table), &value) else { continue };
            let part = Part::parse(named, text).map_err(|error| {
                let path = KeyPath(vec![Step::Key(table.clone())]);
                SpecError { line: line_of(self.source, &path), ..error.from_origin(&self.source.origin) }
            })?;
            part.fill(value);
        }
        Ok(())
    }

    /// Puts the parts of a contender in their places.
    fn enter(&mut self, contender: Option<&Contender>) {
        let Some(root) = self.value.as_table_mut() else { return };
        contender.iter().flat_map(|contender| &contender.parts).for_each(|part| part.enter(root));
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), SpecError> {
        let Some(path) = KeyPath::parse(key) else {
            let allowed = "write one as in fabric.leaves or fabric.fault.0.at";
            let mistake =
                Mistake::at(key, format!("={text}: {key:?} is not a key; {allowed}")).allowed(allowed);
            return Err(SpecError::from(mistake).from_origin(Giver::Override.name()));
        };
        if let (Some(named), Value::String(text)) = (Named::of_table(key), parse_value(text)) {
            let part =
                Part::parse(named, &text).map_err(|error| error.from_origin(Giver::Override.name()))?;
            self.value.as_table_mut().into_iter().for_each(|root| part.enter(root));
            self.overridden.push(path);
            return Ok(());
        }
        insert(&mut self.value, &path, parse_value(text)).map_err(|reason| {
            let mistake = Mistake::at(key, format!("={text}: {reason}")).found(text);
            SpecError::from(mistake).from_origin(Giver::Override.name())
        })?;
        self.overridden.push(path);
        Ok(())
    }

    fn set_seed(&mut self) -> Result<(), SpecError> {
        let Some(seed) = self.source.seed else { return Ok(()) };
        let Ok(seed) = i64::try_from(seed) else {
            return Err(seed_error(&seed));
        };
        insert(&mut self.value, &seed_path(), Value::Integer(seed)).map_err(SpecError::new)
    }

    /// Who gave `path` its value.
    pub fn giver(&self, path: &KeyPath) -> Giver {
        if self.has_class && ["balancer.file", "balancer.class"].contains(&path.to_string().as_str()) {
            return self.giver(&balancer_name());
        }
        if self.source.seed.is_some() && *path == seed_path() {
            return Giver::Seed;
        }
        if self.source.contender.as_ref().is_some_and(|contender| gives(contender, path)) {
            return Giver::Contender;
        }
        let touched = |change: &KeyPath| path.is_within(change) || change.is_within(path);
        if self.overridden.iter().any(touched) {
            return Giver::Override;
        }
        if reaches(&self.written, &path.0) { Giver::Text } else { Giver::Default }
    }

    /// An error at `path` (or at the nearest table around it), with the place it was written at.
    pub fn error_at(&self, path: &KeyPath, mistake: Mistake) -> SpecError {
        match self.giver(path) {
            giver @ (Giver::Override | Giver::Contender | Giver::Seed) => {
                SpecError::from(mistake).from_origin(giver.name())
            }
            Giver::Text | Giver::Default => {
                let line = line_of(self.source, path);
                SpecError { line, ..SpecError::from(mistake).from_origin(&self.source.origin) }
            }
        }
    }

    /// The error that a mistake is, with the place of its key.
    pub fn error(&self, mistake: impl Into<Mistake>) -> SpecError {
        let mistake = mistake.into();
        let path = mistake.path.as_deref().and_then(KeyPath::parse).unwrap_or_default();
        self.error_at(&path, mistake)
    }
}

/// Whether a contender says what stands at `path`.
fn gives(contender: &Contender, path: &KeyPath) -> bool {
    let [Step::Key(table), Step::Key(key), ..] = path.0.as_slice() else { return false };
    let mut own = contender.parts.iter().filter(|part| part.named.table() == table);
    let is_first = |own: &str| own.split('.').next() == Some(key.as_str());
    own.any(|part| key == part.named.tag() || part.parameters.iter().any(|(own, _)| is_first(own)))
}

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

fn seed_path() -> KeyPath {
    KeyPath(vec![Step::Key("run".to_owned()), Step::Key("seed".to_owned())])
}

fn balancer_name() -> KeyPath {
    KeyPath(vec![Step::Key("balancer".to_owned()), Step::Key("name".to_owned())])
}

/// A seed that no spec can hold.
pub fn seed_error(found: &dyn std::fmt::Display) -> SpecError {
    let allowed = format!("0 to {}", i64::MAX);
    let mistake = Mistake::at("run.seed", format!(" is {found}: allowed is {allowed}"));
    SpecError::from(mistake.found(found.to_string()).allowed(allowed)).from_origin(Giver::Seed.name())
}

pub(super) fn syntax_error(source: &SpecSource, error: &toml::de::Error) -> SpecError {
    let line = error.span().map(|span| line_at(&source.text, span.start));
    let reason = error.message().replace('\n', ", ");
    let mistake = Mistake::new(format!("not valid TOML: {reason}"));
    SpecError { line, ..SpecError::from(mistake).from_origin(&source.origin) }
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.split(|&byte| byte == b'\n').count()
}

/// The value that `text` stands for: TOML if it is that, else a bare string.
pub(crate) fn parse_value(text: &str) -> Value {
    let as_toml = format!("value = {text}").parse::<toml::Table>().ok();
    let alone = as_toml.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    alone.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Writes `value` at `path`, with the tables that lead there.
fn insert(root: &mut Value, path: &KeyPath, value: Value) -> Result<(), String> {
    let mut node = root;
    for (depth, step) in path.0.iter().enumerate() {
        let here = KeyPath(path.0[..depth].to_vec());
        node = match (node, step) {
            (Value::Table(table), Step::Key(key)) => {
                let next = path.0.get(depth + 1);
                table.entry(key.clone()).or_insert_with(|| empty_for(next))
            }
            (Value::Array(array), Step::Index(index)) => {
                let length = array.len();
                if *index > length {
                    return Err(format!("{here} has {length} entries; the next one is {here}[{length}]"));
                }
                if *index == length {
                    array.push(empty_for(path.0.get(depth + 1)));
                }
                &mut array[*index]
            }
            (Value::Array(_), Step::Key(key)) => {
                return Err(format!(
                    "{here} is a list: write the entry's number before {key:?}, as in {here}.0.{key}"
                ));
            }
            (Value::Table(_), Step::Index(index)) => {
                return Err(format!("{here} is a table: it has no entry {index}"));
            }
            (other, _) => {
                return Err(format!("{here} is {other}, not a table: nothing can be set within it"));
            }
        };
    }
    *node = value;
    Ok(())
}

fn empty_for(next: Option<&Step>) -> Value {
    match next {
        Some(Step::Index(_)) => Value::Array(Vec::new()),
        _ => Value::Table(toml::Table::new()),
    }
}

/// Whether the text decides the value at `steps`: it has it, or something that is not a table on the way.
fn reaches(root: &Value, steps: &[Step]) -> bool {
    let mut node = root;
    for step in steps {
        let next = match (node, step) {
            (Value::Table(table), Step::Key(key)) => table.get(key),
            (Value::Array(array), Step::Index(index)) => array.get(*index),
            _ => return true,
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[run]\nseed = 3\n\n[[fabric.fault]]\nlink = \"a\"\nat = \"1s\"\n";

    fn changed(key: &str, value: &str) -> Result<String, String> {
        let source = SpecSource::from_text(TEXT).with(key, value);
        let document = Document::parse(&source).map_err(|error| error.to_string())?;
        let path = KeyPath::parse(key).unwrap();
        Ok(path.get(&document.value).unwrap().to_string())
    }

    #[test]
    fn a_change_is_toml_or_a_bare_string() {
        assert_eq!(changed("traffic.load", "0.6"), Ok("0.6".to_owned()));
        assert_eq!(changed("fabric.host_rate", "10Gbps"), Ok("\"10Gbps\"".to_owned()));
        assert_eq!(changed("fabric.fault.0.at", "2s"), Ok("\"2s\"".to_owned()));
        assert_eq!(
            changed("fabric.fault[1].link", "x = 1\ny = 2"),
            Ok("\"\"\"\nx = 1\ny = 2\"\"\"".to_owned())
        );
    }

    #[test]
    fn a_change_that_does_not_fit_says_why() {
        let message = |key, value| changed(key, value).unwrap_err();
        assert!(
            message("run.seed.x", "1").contains("run.seed is 3, not a table"),
            "{}",
            message("run.seed.x", "1")
        );
        assert!(message("fabric.fault.at", "1").contains("fabric.fault is a list"));
        assert!(message("fabric.fault.7.at", "1").contains("fabric.fault has 1 entries"));
        assert!(message("run.0", "1").contains("run is a table"));
    }

    #[test]
    fn errors_carry_the_line_of_the_key_or_of_the_table_around_it() {
        let source = SpecSource::from_text(TEXT).with("traffic.load", "1");
        let document = Document::parse(&source).unwrap();
        let line = |key| document.error_at(&KeyPath::parse(key).unwrap(), Mistake::new("m")).line;
        assert_eq!(line("run.seed"), Some(2));
        assert_eq!(line("fabric.fault[0].at"), Some(6));
        assert_eq!(line("run.missing"), Some(1));
        assert_eq!(line("balancer.name"), None);
        let error = document.error_at(&KeyPath::parse("traffic.load").unwrap(), Mistake::new("m"));
        assert_eq!(error.to_string(), "--set: m");
    }

    #[test]
    fn every_key_knows_who_gave_it_its_value() {
        let source = SpecSource::from_text(TEXT).with("traffic.load", "1").with_seed(9);
        let document = Document::parse(&source).unwrap();
        let giver = |key| document.giver(&KeyPath::parse(key).unwrap());
        assert_eq!(giver("run.seed"), Giver::Seed);
        assert_eq!(giver("traffic.load"), Giver::Override);
        assert_eq!(giver("fabric.fault[0].at"), Giver::Text);
        assert_eq!(giver("fabric.fault[0].link.deeper"), Giver::Text, "a short form decides all below it");
        assert_eq!(giver("fabric.fault[0].until"), Giver::Default);
    }

    #[test]
    fn a_class_in_a_file_of_python_is_given_by_who_gave_its_name() {
        let source = SpecSource {
            base_dir: "/specs".into(),
            ..SpecSource::from_text("[balancer]\nname = \"my.py:Least\"\ngap = \"3us\"\n")
        };
        let document = Document::parse(&source).unwrap();
        let at = |key: &str| KeyPath::parse(key).unwrap();
        let found = |key: &str| at(key).get(&document.value).unwrap().to_string();
        assert_eq!(
            (found("balancer.name"), found("balancer.file")),
            ("\"python\"".to_owned(), "\"/specs/my.py\"".to_owned())
        );
        assert_eq!(document.giver(&at("balancer.file")), Giver::Text);
        assert_eq!(document.giver(&at("balancer.class")), Giver::Text);
        let changed = source.with("balancer.name", "/other.py:Most");
        let document = Document::parse(&changed).unwrap();
        assert_eq!(document.giver(&at("balancer.class")), Giver::Override);
        assert_eq!(document.giver(&at("balancer.gap")), Giver::Text);
    }

    #[test]
    fn broken_toml_names_its_line() {
        let source = SpecSource::from_text("[run]\nseed = = 3\n");
        let error = Document::parse(&source).unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(!error.to_string().contains('\n'), "{error}");
    }

    #[test]
    fn a_seed_beyond_toml_is_refused() {
        let source = SpecSource::from_text("").with_seed(u64::MAX);
        assert!(
            Document::parse(&source).unwrap_err().to_string().contains("run.seed is 18446744073709551615")
        );
    }
}
