//! From Rust errors to Python exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use weft_lab::RunError;
use weft_lab::results::output::OutputError;

create_exception!(
    weft._core,
    SpecError,
    PyException,
    "A spec with a mistake. The message names the key, what was found and what is allowed; the attributes have its parts."
);

/// Gives the class its attributes, for errors that are raised in Python, too.
pub fn add_parts(class: &Bound<'_, PyType>) -> PyResult<()> {
    ["path", "found", "allowed", "nearest", "origin", "line"]
        .iter()
        .try_for_each(|name| class.setattr(*name, class.py().None()))
}

/// The exception of a mistake in a spec.
pub fn spec_error(error: &weft_lab::SpecError) -> PyErr {
    let raised = SpecError::new_err(error.to_string());
    let filled = Python::attach(|py| {
        let value = raised.value(py);
        let mistake = &error.mistake;
        let parts = [
            ("path", &mistake.path),
            ("found", &mistake.found),
            ("allowed", &mistake.allowed),
            ("nearest", &mistake.nearest),
            ("origin", &error.origin),
        ];
        parts.into_iter().try_for_each(|(name, part)| value.setattr(name, part.as_deref()))?;
        value.setattr("line", error.line)
    });
    filled.err().unwrap_or(raised)
}

/// The exception of a run that did not come to its end.
pub fn run_error(error: &RunError) -> PyErr {
    match error {
        RunError::Spec(error) => spec_error(error),
        RunError::Temporary(_) | RunError::TemporaryTable(_) => match number_of(error) {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        RunError::ExternalHosts(_) => PyOSError::new_err(error.to_string()),
        RunError::Stopped | RunError::Table(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

/// The system's number of an error, if one of those that it follows from is the system's.
fn number_of(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref::<std::io::Error>()?.raw_os_error())
}

/// The `OSError` of results that could not be written, with its number where the system gave one.
pub fn output_error(error: &OutputError) -> PyErr {
    /// EEXIST, the same on every system that Weft runs on.
    const EXISTS: i32 = 17;
    match error {
        OutputError::Exists { path } | OutputError::NotReplaced { path, .. } => {
            PyOSError::new_err((EXISTS, error.to_string(), path.display().to_string()))
        }
        OutputError::Io { path, source } => match source.raw_os_error() {
            Some(number) => {
                let text = source.to_string();
                let reason = text.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, reason, path.display().to_string()))
            }
            None => PyOSError::new_err(error.to_string()),
        },
    }
}

/// Calls `body`; a panic, which is a defect of Weft, becomes a `RuntimeError` and crosses no
/// border.
pub fn guarded<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(defect(panic.as_ref())))
}

fn defect(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("a defect of Weft, not of the spec: {text}"))
}
