//! Result of a run, in memory.

use std::path::PathBuf;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use weft_lab::{Outcome, RunError};

use crate::error::{guarded, output_error, run_error};

/// Result of a run, in memory.
#[pyclass(frozen, module = "weft._core")]
pub struct RunResult {
    outcome: Outcome,
}

impl From<Outcome> for RunResult {
    fn from(outcome: Outcome) -> Self {
        Self { outcome }
    }
}

#[pymethods]
impl RunResult {
    /// `summary.json` as text.
    #[getter]
    fn summary(&self) -> PyResult<String> {
        self.outcome.summary.to_json().map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// `spec.toml`, fully resolved, as text.
    #[getter]
    fn spec(&self) -> &str {
        &self.outcome.spec
    }

    /// The table with this name, one of `catalog("tables")`. Raises `ValueError` for any other.
    ///
    /// Raises `OSError` for a temporary file that cannot be read.
    #[pyo3(signature = (name: "str") -> "Table")]
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        guarded(|| match py.detach(|| self.outcome.table(name)) {
            Ok(table) => Ok(Table::from(table)),
            Err(RunError::Spec(error)) => Err(PyValueError::new_err(error.to_string())),
            Err(error) => Err(run_error(&error)),
        })
    }

    /// Write the result directory, to a temporary sibling first. Raises `OSError`.
    #[pyo3(signature = (directory: "str", *, force: "bool" = false) -> "None")]
    fn write(&self, py: Python<'_>, directory: PathBuf, force: bool) -> PyResult<()> {
        guarded(move || {
            let written = py.detach(move || self.outcome.write(&directory, force));
            written.map_err(|error| output_error(&error))
        })
    }

    fn __repr__(&self) -> String {
        let summary = &self.outcome.summary;
        format!("RunResult({}, seed {}, {} flows)", summary.scheme, summary.seed, summary.all.flows)
    }
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

/// A table in Arrow form, that Polars, pyarrow, pandas and `DuckDB` take over without copying.
#[pyclass(frozen, module = "weft._core")]
pub struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The table through the Arrow C stream interface.
    ///
    /// A requested schema is not followed, as the interface allows.
    #[pyo3(signature = (requested_schema: "object | None" = None) -> "object")]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows, {} columns)", self.batch.num_rows(), self.batch.num_columns())
    }
}
