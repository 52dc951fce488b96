//! A spec as text, before it means anything: TOML, changes from the command line, and where each
//! key stands.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Value;
use weft_balance::SchemeSpec;
use weft_topology::FabricSpec;
use weft_transport::TransportsSpec;
use weft_units::Mistake;

use super::carried::Owners;
use super::decode::decode;
use super::defaults::by_default;
use super::error::SpecError;
use super::hints::hinted;
use super::path::{KeyPath, Step, insert, reaches};
use super::place::{line_of, syntax_error};
use super::python_class;
use super::schema;
use super::variant::{Named, Part, Variant};
use crate::linux::HostsSpec;

/// A spec and what changes it: everything that a run is made from.
#[derive(Debug, Clone)]
pub struct SpecSource {
    /// TOML text.
    pub text: String,
    /// Name of the spec in messages: a file's name, or "spec".
    pub origin: String,
    /// The folder that relative paths in the spec start from.
    pub base_dir: PathBuf,
    /// Changes, in order: a key as in `fabric.fault.0.at`, and a value in TOML or as a bare string.
    pub overrides: Vec<(String, String)>,
    /// The seed, in place of `run.seed`.
    pub seed: Option<u64>,
    /// Variant that replaces the spec's transport, load balancer, or both. Its own parameters win
    /// over changes.
    pub variant: Option<Variant>,
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
            variant: None,
        }
    }

    /// Changes one key of the spec.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.overrides.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Sets the variant of the spec.
    #[must_use]
    pub fn with_variant(mut self, variant: Variant) -> Self {
        self.variant = Some(variant);
        self
    }

    /// Sets the seed of the spec.
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
    /// For which transport each key of the transport was written.
    owners: Owners,
    /// Keys that a transport in the place of another did not keep.
    pub notes: Vec<String>,
    /// Keys of the transport that stand beside its name where it was named as a variant.
    pub asked: Vec<String>,
}

/// Who gave a key its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giver {
    Default,
    Text,
    Override,
    Variant,
    Seed,
}

impl Giver {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Text => "spec file",
            Self::Override => "--set",
            Self::Variant => "--schemes",
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
        let table: toml::Table = source
            .text
            .parse()
            .map_err(|error: toml::de::Error| syntax_error(&source.text, &source.origin, &error))?;
        let written = Value::Table(table);
        let mut document = Self {
            source,
            value: written.clone(),
            written,
            overridden: Vec::new(),
            has_class: false,
            owners: Owners::default(),
            notes: Vec::new(),
            asked: Vec::new(),
        };
        document.open_short_forms()?;
        document.owners = Owners::of_table(document.transport());
        python_class::rebase(&mut document.value, &source.base_dir);
        let parts = source.variant.as_ref().map(|one| one.parts.as_slice()).unwrap_or_default();
        // A transport comes last: it keeps what changes write, too.
        for part in parts.iter().filter(|part| part.named != Named::Transport) {
            document.enter(part)?;
        }
        for (key, value) in &source.overrides {
            document.set(key, value)?;
            python_class::rebase(&mut document.value, &source.base_dir);
        }
        // Again: what a variant says of itself is not to be changed for all.
        for part in parts {
            document.enter(part)?;
        }
        document.settle_transport(parts)?;
        document.set_seed()?;
        document.has_class = python_class::write_out(&mut document.value);
        Ok(document)
    }

    /// Tables that are written by a name, as in `scheme = "letflow:gap=100us"`, become tables.
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

    fn transport(&self) -> Option<&Value> {
        self.value.get(Named::Transport.table())
    }

    /// Puts what has a name in its place.
    fn enter(&mut self, part: &Part) -> Result<(), SpecError> {
        self.check_replaced(part)?;
        if part.named == Named::Transport {
            if let Some(Value::Array(tables)) = self.transport() {
                let several = tables.len();
                self.notes.push(format!("{} takes the place of {several} tables [[transport]]", part.name));
                self.owners = Owners::default();
            }
            self.asked = part.parameters.iter().map(|(key, _)| key.clone()).collect();
            self.owners.named(&part.name, &self.asked);
        }
        if part.named == Named::Scheme {
            self.notes.extend(self.left_behind(part));
        }
        self.value.as_table_mut().into_iter().for_each(|root| part.enter(root));
        Ok(())
    }

    /// Says that a load balancer has a key, too, that the spec gives to the one in whose place it
    /// comes.
    fn left_behind(&self, part: &Part) -> Option<String> {
        let tag = part.named.tag();
        let own = self.value.get(part.named.table())?.as_table()?;
        let name = own.get(tag).map_or(Some(by_default(part.named)), Value::as_str)?;
        let variants = schema::variants(&KeyPath(vec![Step::Key(part.named.table().to_owned())]));
        let variant =
            variants.into_iter().find(|one| one["properties"][tag]["const"] == part.name.as_str())?;
        let is_given = |key: &str| part.parameters.iter().any(|(given, _)| given == key);
        let mut keys = own.iter().filter(|(key, _)| *key != tag && !is_given(key));
        let (key, value) = keys.find(|(key, _)| !variant["properties"][key.as_str()].is_null())?;
        let given = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let like = format!("{}:{key}={given}", part.name);
        (name != part.name).then(|| {
            format!("`{key}` is for {name}; {} keeps its own unless it is named, as in {like}", part.name)
        })
    }

    /// Refuses a key of a table that is to go if the table cannot have it: nobody would ever hear
    /// of it.
    fn check_replaced(&self, part: &Part) -> Result<(), SpecError> {
        let (table, tag) = (part.named.table(), part.named.tag());
        let Some(Value::Table(own)) = self.value.get(table) else { return Ok(()) };
        let name = own.get(tag).map_or(Some(by_default(part.named)), Value::as_str);
        let Some(name) = name else { return Ok(()) };
        let is_open =
            part.named == Named::Scheme && (name == "python" || python_class::named(name).is_some());
        if name == part.name || part.named == Named::Transport || is_open {
            return Ok(());
        }
        std::iter::once(tag)
            .chain(own.keys().map(String::as_str))
            .try_for_each(|key| self.check_key(part.named, name, key))
    }

    /// Refuses a key that what has this name does not have, and a name that there is not.
    fn check_key(&self, named: Named, name: &str, key: &str) -> Result<(), SpecError> {
        let path = KeyPath(vec![Step::Key(named.table().to_owned()), Step::Key(key.to_owned())]);
        let Some(value) = path.get(&self.value) else { return Ok(()) };
        let table = [(key, value.clone()), (named.tag(), Value::String(name.to_owned()))];
        let table: toml::Table = table.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let alone = Value::Table([(named.table().to_owned(), table.into())].into_iter().collect());
        match decode::<Tables>(&alone) {
            Err(misfit) if misfit.path == path && (misfit.known.is_some() || key == named.tag()) => {
                let (path, mistake) = hinted(misfit, &alone);
                // Whoever replaces the table did not write it.
                let giver = if self.overridden.contains(&path) { Giver::Override } else { Giver::Text };
                Err(self.error_by(giver, &path, mistake))
            }
            _ => Ok(()),
        }
    }

    /// Takes out of the transport what it does not keep, if a variant or a change named it.
    fn settle_transport(&mut self, parts: &[Part]) -> Result<(), SpecError> {
        let is_variant = parts.iter().any(|part| part.named == Named::Transport);
        let tag =
            [Step::Key(Named::Transport.table().to_owned()), Step::Key(Named::Transport.tag().to_owned())];
        let is_set = |path: &[Step]| self.overridden.iter().any(|set| set.0 == path);
        // `transport.name` alone names the one transport of a run: what is set beside it is meant
        // for that.
        let (is_variant, is_named) = (is_variant || is_set(&tag[..1]), is_set(&tag));
        if !is_variant && !is_named {
            return Ok(());
        }
        if let Some((key, owner)) = self.owners.mistake() {
            self.check_key(Named::Transport, owner, key)?;
        }
        let Some(Value::Table(table)) = self.value.get_mut(Named::Transport.table()) else { return Ok(()) };
        let notes = self.owners.settle(table, !is_variant);
        self.notes.extend(notes);
        Ok(())
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
            self.enter(&part)?;
            self.overridden.push(path);
            return Ok(());
        }
        insert(&mut self.value, &path, parse_value(text)).map_err(|reason| {
            let mistake = Mistake::at(key, format!("={text}: {reason}")).found(text);
            SpecError::from(mistake).from_origin(Giver::Override.name())
        })?;
        match path.0.as_slice() {
            [Step::Key(table)] if table == Named::Transport.table() => {
                self.owners = Owners::of_table(self.transport());
                let own = self.transport().and_then(Value::as_table);
                self.asked = own.map(|own| own.keys().cloned().collect()).unwrap_or_default();
            }
            [Step::Key(table), Step::Key(key), ..] if table == Named::Transport.table() => {
                self.owners.changed(self.value.get(table), key);
            }
            _ => {}
        }
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
        if self.has_class && ["scheme.file", "scheme.class"].contains(&path.to_string().as_str()) {
            return self.giver(&scheme_name());
        }
        if self.source.seed.is_some() && *path == seed_path() {
            return Giver::Seed;
        }
        if self.source.variant.as_ref().is_some_and(|variant| gives(variant, path)) {
            return Giver::Variant;
        }
        let touched = |change: &KeyPath| path.is_within(change) || change.is_within(path);
        if self.overridden.iter().any(touched) {
            return Giver::Override;
        }
        if reaches(&self.written, &path.0) { Giver::Text } else { Giver::Default }
    }

    /// An error at `path` (or at the nearest table around it), with the place it was written at.
    pub fn error_at(&self, path: &KeyPath, mistake: Mistake) -> SpecError {
        self.error_by(self.giver(path), path, mistake)
    }

    fn error_by(&self, giver: Giver, path: &KeyPath, mistake: Mistake) -> SpecError {
        match giver {
            Giver::Override | Giver::Variant | Giver::Seed => {
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
        let mut mistake = mistake.into();
        let path_of =
            |mistake: &Mistake| mistake.path.as_deref().and_then(KeyPath::parse).unwrap_or_default();
        let is_default = |mistake: &Mistake| self.giver(&path_of(mistake)) == Giver::Default;
        // Of two keys that do not fit together the one that somebody gave is the mistake.
        if let Some(other) = mistake.or.take()
            && is_default(&mistake)
            && !is_default(&other)
        {
            mistake = *other;
        }
        self.error_at(&path_of(&mistake), mistake)
    }
}

/// The tables that a variant takes the place of.
#[derive(Debug, Deserialize)]
#[allow(dead_code)] // Read for its mistakes.
struct Tables {
    transport: Option<TransportsSpec>,
    scheme: Option<SchemeSpec>,
    hosts: Option<HostsSpec>,
    fabric: Option<FabricSpec>,
}

/// Whether a variant says what stands at `path`.
fn gives(variant: &Variant, path: &KeyPath) -> bool {
    let [Step::Key(table), Step::Key(key), ..] = path.0.as_slice() else { return false };
    let mut own = variant.parts.iter().filter(|part| part.named.table() == table);
    let is_first = |own: &str| own.split('.').next() == Some(key.as_str());
    own.any(|part| key == part.named.tag() || part.parameters.iter().any(|(own, _)| is_first(own)))
}

fn seed_path() -> KeyPath {
    KeyPath(vec![Step::Key("run".to_owned()), Step::Key("seed".to_owned())])
}

fn scheme_name() -> KeyPath {
    KeyPath(vec![Step::Key("scheme".to_owned()), Step::Key("name".to_owned())])
}

/// A seed that no spec can hold.
pub fn seed_error(found: &dyn std::fmt::Display) -> SpecError {
    let allowed = format!("0 to {}", i64::MAX);
    let mistake = Mistake::at("run.seed", format!(" is {found}: allowed is {allowed}"));
    SpecError::from(mistake.found(found.to_string()).allowed(allowed)).from_origin(Giver::Seed.name())
}

/// The value that `text` stands for: TOML if it is that, else a bare string.
pub(crate) fn parse_value(text: &str) -> Value {
    let as_toml = format!("value = {text}").parse::<toml::Table>().ok();
    let alone = as_toml.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    alone.unwrap_or_else(|| Value::String(text.to_owned()))
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
        assert_eq!(line("scheme.name"), None);
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
            ..SpecSource::from_text("[scheme]\nname = \"my.py:Least\"\ngap = \"3us\"\n")
        };
        let document = Document::parse(&source).unwrap();
        let at = |key: &str| KeyPath::parse(key).unwrap();
        let found = |key: &str| at(key).get(&document.value).unwrap().to_string();
        assert_eq!(
            (found("scheme.name"), found("scheme.file")),
            ("\"python\"".to_owned(), "\"/specs/my.py\"".to_owned())
        );
        assert_eq!(document.giver(&at("scheme.file")), Giver::Text);
        assert_eq!(document.giver(&at("scheme.class")), Giver::Text);
        let changed = source.with("scheme.name", "/other.py:Most");
        let document = Document::parse(&changed).unwrap();
        assert_eq!(document.giver(&at("scheme.class")), Giver::Override);
        assert_eq!(document.giver(&at("scheme.gap")), Giver::Text);
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
