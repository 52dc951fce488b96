//! From a spec's text to a spec in which every value is written out, and back to who gave each
//! value.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use toml::Value;
use weft_traffic::schedule_files;
use weft_units::{Mistake, read_regular_bytes};

use super::carried::{Condition, conditions};
use super::decode::decode;
use super::defaults::complete;
use super::document::{Document, SpecSource};
use super::error::SpecError;
use super::hints::hinted;
use super::model::{RunSpec, Spec};
use super::path::{KeyPath, Step, children};
use super::schema::SchemaTrail;
use super::threads::Threads;
use crate::code::check_code;
use crate::linux::of_machine;

/// A spec with every default written out.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The spec.
    pub spec: Spec,
    /// The spec as TOML, ready to be run again. Its first lines name the version and the hash.
    pub toml: String,
    /// Resolved spec without the keys on which no result depends, such as the number of threads:
    /// the hash is of this text.
    pub result_toml: String,
    /// 128 bits of the SHA-256 of the spec and of the files that it names, in hexadecimal; with
    /// Linux hosts also of their kernel, and of the files of their programs. It does not depend on
    /// where those files are.
    pub hash: String,
    /// Keys that a transport in the place of the spec's did not keep, each in a sentence.
    pub notes: Vec<String>,
    /// Under which conditions its transport competes with others; none with several transports.
    pub conditions: Vec<Condition>,
    pub(crate) source: SpecSource,
}

/// One value of a resolved spec.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Origin {
    /// The key, as in `fabric.fault[0].at`.
    pub key: String,
    /// Value of the key.
    pub value: serde_json::Value,
    /// Who gave it: "default", "spec file", "--set" or "--seed".
    pub origin: &'static str,
    /// Meaning of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
}

impl Resolved {
    /// Reads a spec, makes its changes, and writes every default out.
    ///
    /// # Errors
    /// The first mistake. Fabric and traffic are only checked as far as their types go:
    /// [`crate::Prepared::new`] checks the rest.
    pub fn new(source: &SpecSource) -> Result<Self, SpecError> {
        let mut document = Document::parse(source)?;
        check_tables(&document)?;
        complete(&mut document.value);
        let files = rebase(&mut document.value, &source.base_dir);
        let mut spec: Spec = decode(&document.value).map_err(|misfit| {
            let (path, mistake) = hinted(misfit, &document.value);
            document.error_at(&path, mistake)
        })?;
        check_code(&spec).map_err(|mistake| document.error(mistake))?;
        spec.fabric = spec.fabric.resolved();
        spec.traffic = spec.traffic.resolved();
        let read = spec.scheme.load().map_err(|error| Mistake::from(error).within("scheme"));
        read.and_then(|()| spec.check()).map_err(|mistake| document.error(mistake))?;
        let body = toml::to_string(&spec).map_err(|error| unwritable(&error))?;
        let bare = bare(&spec);
        let bare_value = Value::try_from(&bare).map_err(|error| unwritable(&error))?;
        let bare_body = toml::to_string(&bare).map_err(|error| unwritable(&error))?;
        let hash = hash(&bare_value, &files, &of_machine(&spec));
        let headed = |body: &str| format!("# Weft {}, spec {hash}\n\n{body}", crate::VERSION);
        let (toml, result_toml) = (headed(&body), headed(&bare_body));
        let conditions = conditions(&spec.transport, &document.asked);
        let notes = document.notes;
        Ok(Self { spec, toml, result_toml, hash, notes, conditions, source: source.clone() })
    }

    /// Every value, in the order of the TOML.
    ///
    /// # Errors
    /// None in practice: what was read once can be read again.
    pub fn origins(&self) -> Result<Vec<Origin>, SpecError> {
        let mut document = Document::parse(&self.source)?;
        complete(&mut document.value);
        let value = Value::try_from(&self.spec).map_err(|error| unwritable(&error))?;
        Ok(origins(&value, &document))
    }

    /// The error that a mistake is, with the place of its key.
    pub(crate) fn error(&self, mistake: impl Into<Mistake>) -> SpecError {
        match Document::parse(&self.source) {
            Ok(document) => document.error(mistake),
            Err(error) => error,
        }
    }

    /// `{"spec", "origins", "notes", "conditions", "toml", "result_toml", "spec_hash", "version",
    /// "results_version"}`.
    pub(crate) fn to_json(&self) -> Result<serde_json::Value, SpecError> {
        let spec = serde_json::to_value(&self.spec).map_err(|error| unwritable(&error))?;
        Ok(serde_json::json!({
            "spec": spec,
            "origins": self.origins()?,
            "notes": self.notes,
            "conditions": self.conditions,
            "toml": self.toml,
            "result_toml": self.result_toml,
            "spec_hash": self.hash,
            "version": crate::VERSION,
            "results_version": crate::RESULTS_VERSION,
        }))
    }
}

/// Identity of the runs of a valid spec, seed by seed: `{"result_toml", "spec_hash", "seed",
/// "threads"}`.
///
/// # Errors
/// A mistake in the text. Fabric and traffic are not made.
pub fn address(source: &SpecSource) -> Result<serde_json::Value, SpecError> {
    let Resolved { spec, result_toml, hash, .. } = Resolved::new(source)?;
    let threads = match spec.run.threads {
        Threads::Automatic => serde_json::Value::Null,
        given @ Threads::Fixed(_) => serde_json::to_value(given).map_err(|error| unwritable(&error))?,
    };
    Ok(serde_json::json!({
        "result_toml": result_toml, "spec_hash": hash, "seed": spec.run.seed, "threads": threads,
    }))
}

/// Part of a spec on which its results depend.
fn bare(spec: &Spec) -> Spec {
    let run = RunSpec { threads: Threads::Automatic, ..spec.run.clone() };
    Spec { run, ..spec.clone() }
}

fn unwritable(error: &dyn std::fmt::Display) -> SpecError {
    SpecError::new(format!("the resolved spec cannot be written: {error}"))
}

/// Every table of a spec must be one: enums that are told apart by a key would read lists, too.
fn check_tables(document: &Document<'_>) -> Result<(), SpecError> {
    for name in ["run", "fabric", "hosts", "traffic", "transport", "scheme"] {
        let found = match document.value.get(name) {
            None | Some(Value::Table(_)) => continue,
            // Several transports are a list of tables.
            Some(Value::Array(items)) if name == "transport" && items.iter().all(Value::is_table) => continue,
            Some(Value::Array(_)) => "a list".to_owned(),
            Some(Value::String(text)) => format!("{text:?}"),
            Some(other) => other.to_string(),
        };
        let path = KeyPath(vec![Step::Key(name.to_owned())]);
        let allowed = format!("a table, as in [{name}]");
        let mistake =
            Mistake::at(name, format!(" = {found}: expected {allowed}")).found(found).allowed(allowed);
        return Err(document.error_at(&path, mistake));
    }
    Ok(())
}

/// The keys that name files. A workload is one if its name ends in ".csv".
const FILE_KEYS: [&[&str]; 5] = [
    &["traffic", "workload"],
    &["traffic", "trace"],
    &["traffic", "schedule", "file"],
    &["fabric", "file"],
    &["scheme", "file"],
];

/// The text at a key that names a file.
fn named<'v>(value: &'v mut Value, key: &[&str]) -> Option<&'v mut String> {
    match key.iter().try_fold(value, |value, key| value.get_mut(key))? {
        Value::String(name) => Some(name),
        _ => None,
    }
}

/// Makes the files that a spec names absolute, and lists them.
fn rebase(value: &mut Value, base_dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for key in FILE_KEYS {
        let Some(name) = named(value, key) else { continue };
        if key[1] == "workload" && Path::new(&*name).extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let path = base_dir.join(&*name);
        let path = std::path::absolute(&path).unwrap_or(path);
        *name = path.to_string_lossy().into_owned();
        files.push(path);
    }
    files
}

/// The hash of a spec in which each file stands for its content, and of what of this machine
/// decides its results.
fn hash(value: &Value, files: &[PathBuf], of_machine: &[String]) -> String {
    let mut portable = value.clone();
    for key in FILE_KEYS {
        // A schedule may be several files.
        if let Some(name) = named(&mut portable, key)
            && files.iter().any(|file| file.as_os_str() == name.as_str())
            && let Ok(contents) = schedule_files(Path::new(&*name))
                .iter()
                .map(|file| read_regular_bytes(file))
                .collect::<std::io::Result<Vec<Vec<u8>>>>()
            && !contents.is_empty()
        {
            *name = hex(&Sha256::digest(contents.concat()));
        }
    }
    let all = [&[portable.to_string()], of_machine].concat().join("\n");
    hex(&Sha256::digest(all)[..16])
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn origins(value: &Value, document: &Document<'_>) -> Vec<Origin> {
    let mut found = Vec::new();
    collect(value, &KeyPath::default(), &mut SchemaTrail::root(), &mut |path, leaf, trail| {
        found.push(Origin {
            key: path.to_string(),
            value: serde_json::to_value(leaf).unwrap_or_default(),
            origin: document.giver(path).name(),
            doc: trail.description(),
        });
    });
    found
}

/// Visits every leaf below `node`, which `path` and `trail` lead to. A list without tables in it is
/// a leaf.
fn collect(
    node: &Value,
    path: &KeyPath,
    trail: &mut SchemaTrail,
    visit: &mut dyn FnMut(&KeyPath, &Value, &SchemaTrail),
) {
    let is_leaf = match node {
        Value::Array(items) => !items.iter().any(Value::is_table),
        other => !other.is_table(),
    };
    if is_leaf {
        return visit(path, node, trail);
    }
    let fitting = trail.fitting(node);
    for step in children(node) {
        let Some(child) = KeyPath(vec![step.clone()]).get(node) else { continue };
        trail.below(&fitting, &step, |trail| collect(child, &path.join(step.clone()), trail, visit));
    }
}
