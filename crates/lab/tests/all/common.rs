//! A small run that every test can afford.

use std::ops::ControlFlow;

use weft_lab::{Cores, Outcome, Prepared, SpecSource};

/// Four racks of four hosts, forty short flows: milliseconds of CPU time.
pub const SMALL: &str = "
[fabric]
kind = \"leaf-spine\"
leaves = 4
spines = 2
hosts_per_leaf = 4

[traffic]
workload = \"web-search\"
load = 0.5
flows = 40
";

/// The small run, with changes.
pub fn small(changes: &[(&str, &str)]) -> SpecSource {
    changes.iter().fold(SpecSource::from_text(SMALL), |source, (key, value)| source.with(key, value))
}

/// Runs a spec that is good to its end.
pub fn run(source: &SpecSource) -> Outcome {
    run_on(source, Cores::All)
}

/// Runs the spec on these cores.
pub fn run_on(source: &SpecSource, cores: Cores) -> Outcome {
    let prepared = Prepared::new(source).unwrap_or_else(|error| panic!("{error}"));
    prepared.run(&mut |_| ControlFlow::Continue(()), None, cores).unwrap_or_else(|error| panic!("{error}"))
}
