//! How Python follows a run, and how it ends one.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use weft_lab::Report;

/// How far a run has come. Read-only.
#[pyclass(frozen, get_all, module = "weft._core")]
pub struct Progress {
    /// Simulated time so far, in microseconds.
    simulated_us: f64,
    /// Simulated time when the last flow starts, in microseconds: a lower bound of the end.
    end_hint_us: f64,
    /// Flows that have ended.
    flows_finished: usize,
    /// Flows that can end.
    flows_total: usize,
    /// Packets that reached the far end of a link, each link counted.
    packet_hops: u64,
    /// CPU time of the run so far, in seconds.
    cpu_s: f64,
}

impl From<&Report> for Progress {
    fn from(report: &Report) -> Self {
        let progress = &report.progress;
        Self {
            simulated_us: progress.now.as_us(),
            end_hint_us: progress.last_start.as_us(),
            flows_finished: progress.flows_finished,
            flows_total: progress.flows_total,
            packet_hops: progress.packet_hops,
            cpu_s: report.cpu_s,
        }
    }
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!(
            "Progress({} of {} flows, {:.0} us)",
            self.flows_finished, self.flows_total, self.simulated_us
        )
    }
}

/// The first exception that Python code raised during a run: it ends the run. Clones share it.
#[derive(Clone, Default)]
pub struct Failure(Arc<OnceLock<PyErr>>);

impl Failure {
    /// Keeps the first exception.
    pub fn set(&self, error: PyErr) {
        // A later exception follows from a run that is to end anyway.
        let _ = self.0.set(error);
    }

    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// The exception, if there is one.
    pub fn get(&self, py: Python<'_>) -> Option<PyErr> {
        self.0.get().map(|error| error.clone_ref(py))
    }
}

/// Looks after signals (Ctrl-C) and tells `callback` how far the run is. Attaches to the
/// interpreter meanwhile.
pub fn tell(report: &Report, callback: Option<&Py<PyAny>>, failure: &Failure) -> ControlFlow<()> {
    if !failure.is_set() {
        let told = Python::attach(|py| {
            py.check_signals()?;
            match callback {
                Some(callback) => callback.call1(py, (Progress::from(report),)).map(drop),
                None => Ok(()),
            }
        });
        if let Err(error) = told {
            failure.set(error);
        }
    }
    if failure.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
