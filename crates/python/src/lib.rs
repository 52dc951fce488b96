//! `weft._core`: specs, runs and tables for Python.
//!
//! The signatures here, with their types and doc comments, are what `python/weft/_core.pyi` is
//! written from.
//!
//! Long work releases the interpreter. No panic crosses: it becomes a `RuntimeError`. Mistakes in a
//! spec are [`error::SpecError`], each with one message.
//!
//! Invariant: facts about specs, schemes and tables come from the crates below, never from here.

mod error;
mod planning;
mod progress;
mod result;
mod scheme;
mod units;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weft_balance::{ExternalScheme, SwitchInfo};
use weft_lab::bench::Subject;
use weft_lab::congestion::interval;
use weft_lab::observe::Windows;
use weft_lab::packets::PacketsOf;
use weft_lab::run::Observer;
use weft_lab::{
    Cores, ExternalSchemeFactory, Prepared, Report, RunError, SpecSource, Variant, check_variants,
};

use error::{SpecError, guarded, run_error, spec_error};
use planning::{address, refuse_code};
use progress::{Failure, Progress, tell};
use result::{RunResult, Table};
use scheme::{PythonScheme, Racks};
use units::quantity;

/// Where Rust's memory is from, not Python's. A large fabric waits for memory, a part of that for
/// the translation of addresses: this allocator asks for huge pages wherever the system gives them
/// to those who ask. See the guide's page on speed.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pairs of key and value, as given to `--set`.
type Overrides = Vec<(String, String)>;

fn source(
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
) -> PyResult<SpecSource> {
    let seed = seed.map(|seed| seed.extract::<u64>().map_err(|_| spec_error(&weft_lab::seed_error(&seed))));
    let variant = variant.map(|text| Variant::parse(text).map_err(|error| spec_error(&error)));
    let (seed, variant) = (seed.transpose()?, variant.transpose()?);
    Ok(SpecSource { text: spec, origin, base_dir, overrides, seed, variant })
}

/// Read variants, as on the command line of `weft compare`.
///
/// Returns JSON text `[{"label", "slug", "parts": {table: text}}]`. Each is a text and whether
/// it is only the label of an external one. None, and two of one name, are refused.
#[pyfunction]
#[pyo3(signature = (texts: "collections.abc.Sequence[tuple[str, bool]]") -> "str")]
fn variants(texts: Vec<(String, bool)>) -> PyResult<String> {
    let read = |(text, outside): (String, bool)| {
        if outside { Ok(Variant::outside(text)) } else { Variant::parse(&text) }
    };
    let read = texts.into_iter().map(read).collect::<Result<Vec<_>, _>>().and_then(|variants| {
        check_variants(&variants)?;
        Ok(variants)
    });
    let read = read.map_err(|error| spec_error(&error))?;
    let entries = read.iter().map(|variant| {
        let parts = variant.parts.iter().map(|part| (part.named.table().to_owned(), part.text().into()));
        let parts: serde_json::Map<String, serde_json::Value> = parts.collect();
        serde_json::json!({ "label": variant.label, "slug": variant.slug, "parts": parts })
    });
    Ok(entries.collect::<serde_json::Value>().to_string())
}

/// Resolve a spec (TOML text).
///
/// JSON text `{"spec", "origins": [{"key", "value", "origin", "doc"}], "notes", "conditions":
/// [{"quantity", "key", "value", "asked"}], "toml", "result_toml", "spec_hash", "missing",
/// "cores"}`. `origin` is what error messages call the text, such as a file name. Raises
/// `SpecError` for a mistake in the spec. `variant` stands in place of the spec's transport, load
/// balancer, or both. What passes can be run, unless `missing` says what this machine lacks for it.
/// `notes` say what a transport in the place of the spec's did not keep of its keys, `conditions`
/// under which it competes with others. `result_toml` is the spec without what no result depends
/// on. With `jobs`, `cores` says on how many threads a run on so many cores works, and why:
/// `{"threads", "partitions", "reason", "text"}`; it is null without.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    origin: "str" = "spec".to_owned(), variant: "str | None" = None, jobs: "int | None" = None,
) -> "str")]
#[allow(clippy::too_many_arguments)]
fn resolve(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
    jobs: Option<NonZeroUsize>,
) -> PyResult<String> {
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    guarded(|| {
        let cores = jobs.map(Cores::UpTo);
        let resolved = py.detach(|| Prepared::new(&source).and_then(|prepared| prepared.explain(cores)));
        resolved.map(|json| json.to_string()).map_err(|error| spec_error(&error))
    })
}

/// Run a spec (TOML text). Releases the GIL.
///
/// `jobs` is on how many cores at most it works: at least 1, all that there are unless told.
/// Results do not depend on it. `progress` is called about five times a second; an exception that
/// it raises ends the run and is raised here. So does one that a load balancer in Python raises,
/// `python_scheme` or the spec's, or a signal such as Ctrl-C. The rest is as for `resolve`.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    progress: "collections.abc.Callable[[Progress], None] | None" = None, python_scheme: "object | None" = None,
    origin: "str" = "spec".to_owned(), variant: "str | None" = None, jobs: "int | None" = None,
) -> "RunResult")]
#[allow(clippy::too_many_arguments)]
fn run(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
    python_scheme: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
    jobs: Option<NonZeroUsize>,
) -> PyResult<RunResult> {
    let cores = jobs.map_or(Cores::All, Cores::UpTo);
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    let given = python_scheme.map(|scheme| PythonScheme::new(&scheme)).transpose()?;
    let progress = progress.map(Bound::unbind);
    let failure = Failure::default();
    let outcome = guarded(|| {
        py.detach(|| {
            let prepared = Prepared::new(&source)?;
            let mut observer = |report: &Report| tell(report, progress.as_ref(), &failure);
            let of_spec =
                || prepared.resolved.spec.scheme.python_class().map(PythonScheme::of_class).transpose();
            let scheme = match given.map_or_else(of_spec, |given| Ok(Some(given))) {
                Ok(scheme) => scheme,
                Err(error) => {
                    failure.set(error);
                    return Err(RunError::Stopped);
                }
            };
            let Some((name, scheme)) = scheme else {
                return prepared.run(&mut observer, None, cores);
            };
            let racks: Racks = prepared.fabric.topology.rack_of_host.as_slice().into();
            let mut make = |info: &SwitchInfo<'_>| -> Box<dyn ExternalScheme> {
                Box::new(scheme.at(info, &racks, &failure))
            };
            prepared.run(&mut observer, Some(ExternalSchemeFactory { name, make: &mut make }), cores)
        })
        .map_err(|error: RunError| run_error(&error))
    });
    match failure.get(py) {
        Some(error) => Err(error),
        None => outcome.map(RunResult::from),
    }
}

/// Does a run without the GIL. An exception that `progress` raises, or a signal, ends it and is
/// raised here.
fn watched<R: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    run: impl FnOnce(weft_lab::run::Observer<'_>) -> Result<R, RunError> + Send,
) -> PyResult<R> {
    let progress = progress.map(Bound::unbind);
    let failure = Failure::default();
    let done = guarded(|| {
        py.detach(|| run(&mut |report: &Report| tell(report, progress.as_ref(), &failure)))
            .map_err(|error| run_error(&error))
    });
    failure.get(py).map_or(done, Err)
}

/// Run a spec (TOML text) and return one row per window of time and port between switches.
///
/// Columns: `time_us` (the end of the window), `link`, `tier`, `packets`, `bytes`, `traffic` (what
/// left the queue, as a share of what the rate allows), `occupancy` and `mean_occupancy` (what the
/// last packet, or each of them, found queued, as a share of the buffer; null without a limit),
/// `interval` and `mean_interval` (since the packet before, as a share of `time_constant`, at most
/// 1). Both times are texts with a unit, such as "1ms". The rest is as for `run`.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    progress: "collections.abc.Callable[[Progress], None] | None" = None, origin: "str" = "spec".to_owned(),
    window: "str", time_constant: "str",
) -> "Table")]
#[allow(clippy::too_many_arguments)]
fn observe(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
    origin: String,
    window: &str,
    time_constant: &str,
) -> PyResult<Table> {
    let source = source(spec, base_dir, overrides, seed, origin, None)?;
    let windows = Windows::parse(window, time_constant).map_err(|error| spec_error(&error))?;
    let observed = watched(py, progress, |observer| Prepared::new(&source)?.observe(observer, windows));
    observed.map(Table::from)
}

/// Run a spec (TOML text) and return the first `most` packets of some links, one row each, by time.
///
/// `at` names links, or hosts and switches, which stand for all links from and to them, or is
/// "hosts" for the cables of all hosts; `flows` are numbers of flows whose packets alone are
/// wanted, and without any name in `at` every link is meant. Columns: `time_us`, `link`, `flow`,
/// `src`, `dst`, `kind`, `segment`, `bytes`, `ecn_capable`, `marked`, `echo`, `retransmission`. The
/// rest is as for `run`.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    progress: "collections.abc.Callable[[Progress], None] | None" = None, origin: "str" = "spec".to_owned(),
    variant: "str | None" = None, at: "collections.abc.Sequence[str]", flows: "collections.abc.Sequence[int] | None" = None,
    most: "int",
) -> "Table")]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // A list comes from Python as a whole.
fn packets(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
    at: Vec<String>,
    flows: Option<Vec<u32>>,
    most: usize,
) -> PyResult<Table> {
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    let of = PacketsOf { at: &at, flows: flows.as_deref(), most };
    let listed = watched(py, progress, |observer| Prepared::new(&source)?.packets(observer, of));
    listed.map(Table::from)
}

/// Run a spec (TOML text) and return congestion windows, one row per flow and instant, by time.
///
/// `flows` are numbers as in the table of flows; each is looked at every `every` since its start, a
/// text with a unit such as "100us", as long as its sender has not everything acknowledged.
/// Columns: `time_us`, `flow`, `cwnd` and `ssthresh` (segments; null: nothing has set one),
/// `outstanding` (segments sent and not acknowledged), `rtt_us` (smoothed; null: no sample yet).
/// The rest is as for `run`.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    progress: "collections.abc.Callable[[Progress], None] | None" = None, origin: "str" = "spec".to_owned(),
    variant: "str | None" = None, flows: "collections.abc.Sequence[int]", every: "str",
) -> "Table")]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // A list comes from Python as a whole.
fn congestion_windows(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
    flows: Vec<u32>,
    every: &str,
) -> PyResult<Table> {
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    let every = interval(every).map_err(|error| spec_error(&error))?;
    let seen =
        watched(py, progress, |observer| Prepared::new(&source)?.congestion_windows(observer, &flows, every));
    seen.map(Table::from)
}

/// Run a spec (TOML text) and return the first `most` packets of some links as a pcapng file.
///
/// An interface is a link that sent any, and 128 bytes of each packet are kept. The rest is as for
/// `packets`.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    progress: "collections.abc.Callable[[Progress], None] | None" = None, origin: "str" = "spec".to_owned(),
    variant: "str | None" = None, at: "collections.abc.Sequence[str]", flows: "collections.abc.Sequence[int] | None" = None,
    most: "int",
) -> "bytes")]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // A list comes from Python as a whole.
fn pcapng<'py>(
    py: Python<'py>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'py, PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
    origin: String,
    variant: Option<&str>,
    at: Vec<String>,
    flows: Option<Vec<u32>>,
    most: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    let of = PacketsOf { at: &at, flows: flows.as_deref(), most };
    let file = watched(py, progress, |observer| Prepared::new(&source)?.pcapng(observer, of));
    Ok(PyBytes::new(py, &file?))
}

/// Run a spec (TOML text) and return each call of the load balancer at every switch.
///
/// JSON text `{"scheme", "rack_of_host", "switches": [{"switch", "tier", "ports",
/// "neighbour_tiers", "calls", "beyond"}]}`: the calls of a switch end with its decision number
/// `most`, and `beyond` says how many came behind it. The rest is as for `run`.
#[pyfunction]
#[pyo3(signature = (
    spec: "str", *, base_dir: "str" = PathBuf::from("."),
    overrides: "collections.abc.Sequence[tuple[str, str]]" = Vec::new(), seed: "int | None" = None,
    progress: "collections.abc.Callable[[Progress], None] | None" = None, origin: "str" = "spec".to_owned(),
    variant: "str | None" = None, most: "int",
) -> "str")]
#[allow(clippy::too_many_arguments)]
fn record(
    py: Python<'_>,
    spec: String,
    base_dir: PathBuf,
    overrides: Overrides,
    seed: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
    origin: String,
    variant: Option<&str>,
    most: usize,
) -> PyResult<String> {
    let source = source(spec, base_dir, overrides, seed, origin, variant)?;
    let recorded = watched(py, progress, |observer| Prepared::new(&source)?.record(observer, most));
    let text = serde_json::to_string(&recorded?);
    text.map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}

/// Rewrite old names of keys in a spec (TOML text) to the names of today, and change nothing else.
///
/// Raises `SpecError` for text that is no TOML; `origin` is what the message calls it.
#[pyfunction]
#[pyo3(signature = (spec: "str", *, origin: "str" = "spec") -> "str")]
fn convert(spec: &str, origin: &str) -> PyResult<String> {
    guarded(|| weft_lab::convert(spec, origin).map_err(|error| spec_error(&error)))
}

/// The JSON Schema of the whole spec, as text.
#[pyfunction]
#[pyo3(signature = () -> "str")]
fn schema() -> PyResult<String> {
    guarded(|| Ok(weft_lab::schema().to_string()))
}

/// List everything of one kind as JSON text.
///
/// Kinds: "schemes", "transports", "workloads", "fabrics", "presets", "models", "bins", "groups",
/// "tables". Each entry: `{"name", "title", "source", "parameters": [{"key", "type", "unit",
/// "default", "doc", "source"}]}`, and what else is known of its kind: of a table `"columns":
/// [{"name", "type", "unit", "null", "only", "doc"}]` and `"asked_by"`; `only` says with what the
/// table has a column that is not always there.
#[pyfunction]
#[pyo3(signature = (kind: "str") -> "str")]
fn catalog(kind: &str) -> PyResult<String> {
    guarded(|| weft_lab::catalog(kind).map(|list| list.to_string()).map_err(|error| spec_error(&error)))
}

/// Work out an analytic model from its inputs, pairs of key and value.
///
/// Raises `SpecError` for a mistake in them. JSON text `{"model", "inputs", "quantities":
/// [{"key", "equation", "symbol", "meaning", "unit", "value"}], "conclusions": [str]}`; the value
/// of what is infinite is null.
#[pyfunction]
#[pyo3(signature = (name: "str", inputs: "collections.abc.Sequence[tuple[str, str]]" = Overrides::new()) -> "str")]
fn model(name: &str, inputs: Overrides) -> PyResult<String> {
    guarded(|| {
        let worked = weft_lab::work_out(name, inputs);
        worked.map(|json| json.to_string()).map_err(|error| spec_error(&error))
    })
}

/// Measure the speed of the core on a fabric of `hosts` hosts, on so many threads: 1 to 1024.
///
/// With `predict` on one thread, in the partitions that so many would work on: then it counts how
/// well they would share the work.
///
/// JSON text `{"hosts", "fabric", "scheme", "transport", "flows", "active_flows", "packet_hops",
/// "events", "cpu_s", "wall_s", "packet_hops_per_cpu_s", "memory_bytes", "memory_bytes_per_host",
/// "memory_bytes_per_active_flow", "peak_rss_bytes", "threads", "partitions", "windows",
/// "crossings", "busiest_events", "shared_windows", "result"}`; `result` is a fingerprint of all
/// tables; events of the busiest thread and windows that are shared are null without `predict`, and
/// in a fabric that stays whole.
#[pyfunction]
#[pyo3(
    name = "bench",
    signature = (hosts: "int", scheme: "str", *, transport: "str" = "dctcp", seed: "int" = 1, threads: "int" = 1, predict: "bool" = false) -> "str"
)]
fn measure(
    py: Python<'_>,
    hosts: u32,
    scheme: &str,
    transport: &str,
    seed: u64,
    threads: u64,
    predict: bool,
) -> PyResult<String> {
    let subject = Subject { hosts, scheme, transport, seed, threads, predict };
    measured(py, |observer| Ok(serde_json::to_string(&weft_lab::bench::bench(subject, observer)?)))
}

/// Measure the memory of a fabric of `hosts` hosts and its flows.
///
/// It takes a short run, and one of `flows` flows of 1 KB. With 0 flows only setting up is
/// measured. Right in a process that did nothing else. JSON text `{"hosts", "links", "scheme",
/// "transport", "setup_cpu_s", "setup_bytes", "bytes_per_host", "bytes_per_link",
/// "bytes_per_active_flow", "flows", "bytes_per_finished_flow", "peak_rss_bytes"}`; null where it
/// is resident memory and the system is not Linux, and where nothing was run.
#[pyfunction]
#[pyo3(
    name = "bench_memory",
    signature = (
        hosts: "int", scheme: "str", *, transport: "str" = "dctcp", flows: "int" = 1_000_000, seed: "int" = 1
    ) -> "str"
)]
fn measure_memory(
    py: Python<'_>,
    hosts: u32,
    scheme: &str,
    transport: &str,
    flows: u32,
    seed: u64,
) -> PyResult<String> {
    measured(py, |observer| {
        let memory = weft_lab::bench::memory(hosts, scheme, transport, flows, seed, observer)?;
        Ok(serde_json::to_string(&memory))
    })
}

/// Result of a measurement as JSON text. Releases the GIL.
fn measured(
    py: Python<'_>,
    measure: impl FnOnce(Observer<'_>) -> Result<serde_json::Result<String>, RunError> + Send,
) -> PyResult<String> {
    let failure = Failure::default();
    let measured = guarded(|| {
        let mut observer = |report: &Report| tell(report, None, &failure);
        py.detach(|| measure(&mut observer)).map_err(|error| run_error(&error))
    });
    if let Some(error) = failure.get(py) {
        return Err(error);
    }
    measured?.map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}

/// Measure the seconds that two threads take to begin and end an empty window together.
///
/// Measured now, and right on two cores that nobody else uses.
#[pyfunction]
#[pyo3(signature = () -> "float")]
fn bench_window(py: Python<'_>) -> f64 {
    py.detach(|| weft_lab::bench::window_of_two_threads().as_secs_f64())
}

/// The version of the core, such as "0.1.0".
#[pyfunction]
#[pyo3(signature = () -> "str")]
fn version() -> &'static str {
    weft_lab::VERSION
}

/// The version of the results: a hash of all that decides what a run gives.
#[pyfunction]
#[pyo3(signature = () -> "str")]
fn results_version() -> &'static str {
    weft_lab::RESULTS_VERSION
}

/// The build of the core: "release" (optimised as a whole) or "development" (with assertions).
#[pyfunction]
#[pyo3(signature = () -> "str")]
fn build() -> &'static str {
    weft_lab::BUILD
}

/// The Rust core: everything that is true about specs, schemes and runs.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        Progress, RunResult, SpecError, Table, address, bench_window, build, catalog, congestion_windows,
        convert, measure, measure_memory, model, observe, packets, pcapng, quantity, record, refuse_code,
        resolve, results_version, run, schema, variants, version,
    };

    /// Gives errors that are raised in Python their parts, too.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::error::add_parts(&module.py().get_type::<SpecError>())
    }
}
