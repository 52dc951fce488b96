//! Numbers with units, for parameters of schemes that are written in Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weft_units::{Bytes, Rate, Span};

use crate::error::SpecError;

/// Read a number with a unit as in a spec, such as "50us".
///
/// Returns a "time" in picoseconds, a "size" in bytes, a "rate" in bits per second.
/// Raises `SpecError` for what is none.
#[pyfunction]
#[pyo3(signature = (text: "str", kind: "str") -> "int")]
pub fn quantity(text: &str, kind: &str) -> PyResult<u64> {
    let read = match kind {
        "time" => text.parse::<Span>().map(Span::as_ps),
        "size" => text.parse::<Bytes>().map(Bytes::as_u64),
        "rate" => text.parse::<Rate>().map(Rate::as_bps),
        _ => return Err(PyValueError::new_err(format!("kind is {kind:?}: allowed is time, size, rate"))),
    };
    read.map_err(|error| SpecError::new_err(error.to_string()))
}
