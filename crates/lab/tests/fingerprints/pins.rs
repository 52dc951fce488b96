//! The pins: specs, and the hash of each of their tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::Deserialize;
use weft_lab::observe::Windows;
use weft_lab::results::rows::TABLES;
use weft_lab::{Cores, Outcome, Prepared, SpecSource, fingerprint};

use crate::common::{run, run_on, small};

/// The data file, as it stands.
pub struct Pins {
    /// The comment at its head.
    header: String,
    pub pins: Vec<Pin>,
}

#[derive(Deserialize)]
struct File {
    pin: Vec<Pin>,
}

/// A spec, and what its tables hash to.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub name: String,
    /// Changes to the small run, as in the command line's `--set`: `key=value`.
    pub set: Vec<String>,
    /// Windows and time constant of an observation, to pin the table `observations` too.
    pub observe: Option<[String; 2]>,
    /// The hash of each table, by name.
    #[serde(default)]
    pub tables: BTreeMap<String, String>,
}

/// The names of the tables that a run leaves behind, in the order of its files; but for those that
/// need a kernel.
pub fn tables() -> impl Iterator<Item = &'static str> {
    let of_kernels = ["programs", "connections", "subflows"];
    TABLES.into_iter().map(|table| table.name).filter(move |name| !of_kernels.contains(name))
}

/// The table of [`Prepared::observe`], which is in no result directory.
pub const OBSERVATIONS: &str = "observations";

impl Pins {
    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints/pins.toml")
    }

    pub fn read() -> Self {
        let text = fs::read_to_string(Self::path()).expect("the file of the pins");
        let File { pin: pins } = toml::from_str(&text).unwrap_or_else(|error| panic!("pins.toml: {error}"));
        let names: BTreeSet<&str> = pins.iter().map(|pin| pin.name.as_str()).collect();
        assert_eq!(names.len(), pins.len(), "two pins have one name");
        let header = text.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
        Self { header, pins }
    }

    /// Pins with the hashes of today.
    pub fn found(&self) -> Self {
        let pins = self.pins.iter().map(|pin| Pin { tables: pin.found(), ..pin.clone() });
        Self { header: self.header.clone(), pins: pins.collect() }
    }

    pub fn write(&self) {
        let mut text = self.header.clone();
        for pin in &self.pins {
            pin.append_to(&mut text);
        }
        fs::write(Self::path(), text).expect("the file of the pins");
    }
}

impl Pin {
    pub fn source(&self) -> SpecSource {
        let change = |change: &String| {
            let pair = change.split_once('=').unwrap_or_else(|| panic!("{}: {change}", self.name));
            (pair.0.to_owned(), pair.1.to_owned())
        };
        let changes: Vec<(String, String)> = self.set.iter().map(change).collect();
        small(&changes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>())
    }

    pub fn run(&self) -> Outcome {
        run(&self.source())
    }

    /// Whether its run works in partitions if it is asked to.
    pub fn works_in_groups(&self) -> bool {
        let prepared = Prepared::new(&self.source()).unwrap_or_else(|error| panic!("{error}"));
        prepared.decision(Cores::Exactly { partitions: 2, threads: NonZeroUsize::MIN }).partitions > 1
    }

    /// The hash of every table of its run.
    fn found(&self) -> BTreeMap<String, String> {
        self.found_on(Cores::All)
    }

    fn found_on(&self, cores: Cores) -> BTreeMap<String, String> {
        let outcome = run_on(&self.source(), cores);
        let hash = |name: &'static str| {
            let table = outcome.table(name).unwrap_or_else(|error| panic!("{error}"));
            (name.to_owned(), fingerprint(&table))
        };
        let mut found: BTreeMap<String, String> = tables().map(hash).collect();
        if let Some([window, time_constant]) = &self.observe {
            let windows = Windows::parse(window, time_constant).unwrap_or_else(|error| panic!("{error}"));
            let prepared = Prepared::new(&self.source()).unwrap_or_else(|error| panic!("{error}"));
            let seen = prepared.observe(&mut |_| ControlFlow::Continue(()), windows);
            let seen = seen.unwrap_or_else(|error| panic!("{error}"));
            found.insert(OBSERVATIONS.to_owned(), fingerprint(&seen));
        }
        found
    }

    /// A line for each table that is not as pinned, or has no pin.
    pub fn moved(&self, cores: Cores) -> Vec<String> {
        let found = self.found_on(cores);
        let names: BTreeSet<&String> = found.keys().chain(self.tables.keys()).collect();
        let differs = names.into_iter().filter(|name| found.get(*name) != self.tables.get(*name));
        let line = |name: &String| {
            let [found, pinned] =
                [&found, &self.tables].map(|of| of.get(name).map_or("nothing", String::as_str));
            format!("{}: {name}: {found}, pinned {pinned}", self.name)
        };
        differs.map(line).collect()
    }

    fn append_to(&self, text: &mut String) {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        write!(text, "\n[[pin]]\nname = {}\nset = [\n", quoted(&self.name)).expect("a text");
        for change in &self.set {
            writeln!(text, "    {},", quoted(change)).expect("a text");
        }
        text.push_str("]\n");
        if let Some([window, time_constant]) = &self.observe {
            writeln!(text, "observe = [{}, {}]", quoted(window), quoted(time_constant)).expect("a text");
        }
        for table in tables().chain([OBSERVATIONS]) {
            if let Some(hash) = self.tables.get(table) {
                writeln!(text, "tables.{table} = {}", quoted(hash)).expect("a text");
            }
        }
    }
}
