//! Functions that a planner of runs needs beside `resolve`.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error::{guarded, spec_error};
use crate::{Overrides, source};

/// Work out the address of a run whose spec was found right with another seed.
///
/// JSON text `{"result_toml", "spec_hash", "seed", "threads"}`, as in the answer of `resolve`;
/// `threads` is null unless the spec says it. Fabric and traffic are not made, so that it takes a
/// fraction of the time.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    origin: "str" = "spec".to_owned(), variant: "str | None" = None,
) -> "str")]
pub fn address(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
) -> PyResult<String> {
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    guarded(|| {
        let found = py.detach(|| weft_lab::address(&source));
        found.map(|json| json.to_string()).map_err(|error| spec_error(&error))
    })
}

/// From now on reject every spec that runs code.
///
/// Code is a load balancer in Python, Linux hosts, and programs on them.
#[pyfunction]
#[pyo3(signature = () -> "None")]
pub fn refuse_code() {
    weft_lab::refuse_code();
}
