//! From a spec to an outcome: build the fabric, generate the traffic, simulate, measure.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use thiserror::Error;
use weft_balance::{AnySwitchScheme, SwitchInfo};
use weft_fabric::{
    CaptureOf, Ending, ExternalHostError, FlowRecords, InputError, PREFETCH_FROM, Progress, Results,
    SHARE_FROM, Simulation, SimulationInput, Status, check_parameters, identities,
};
use weft_packet::Class;
use weft_topology::{Fabric, FaultEvent, NotPooled, Topology};
use weft_traffic::{Flow, Traffic};
use weft_units::{Bytes, Mistake, Span, Time};

use crate::application::check_application;
use crate::clock::{OtherThreads, Stopwatch};
use crate::collectives::{FlowTimes, check_collectives, collectives};
use crate::cores::{Cores, Decision, Tuning, decide};
use crate::doubts::Doubts;
use crate::external_scheme::ExternalSchemeFactory;
use crate::linux::{
    KernelFlow, KernelResults, KnownProgram, LinuxHosts, kernel_warnings, missing_on_this_machine, uncoupled,
};
use crate::memory::of_machine;
use crate::outcome::{Outcome, PacketBalance};
use crate::results::collective_rows::{CollectiveRow, CriticalRow};
use crate::results::identities::of_summary;
use crate::results::invalid::invalid;
use crate::results::lossless::Lossless;
use crate::results::phases::{Phases, divided_at};
use crate::results::port_rows::{
    ClassRow, PauseRow, SharedBufferRow, class_rows, pause_rows, shared_buffer_rows,
};
use crate::results::rows::{
    ConnectionRow, CounterRow, DeliveryRow, FlowRow, LinkRow, PathRow, ProgramRow, SampleRow, SubflowRow,
    TraceRow,
};
use crate::results::some_runs::{SomeRuns, example};
use crate::results::spread::Spread;
use crate::results::stored::{Stored, Writing, spool};
use crate::results::summary::Summary;
use crate::results::table::{Row, with_columns};
use crate::results::tally::Figures;
use crate::rows::{
    counter_rows, delivery_rows, flow_rows, link_names, link_rows, path_rows, sample_rows, trace_rows,
};
use crate::spec::{
    Resolved, Spec, SpecError, SpecSource, blamed, check_graph_file, in_graph_file, in_traffic_file,
};
use crate::steady::Trend;
use crate::totals::totals;
use crate::warnings::{coarser_samples, late_faults, paths_alike, transport_warnings};
use crate::window::{Window, ending};

/// A run that did not come to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The spec has a mistake.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The observer stopped it.
    #[error("the run was stopped")]
    Stopped,
    /// A result table could not be made; a defect of Weft.
    #[error("a result table could not be made: {0}")]
    Table(#[from] ArrowError),
    /// Results of flows could not be kept in the directory for temporary files.
    #[error("results cannot be kept in {folder} (TMPDIR): {error}", folder = std::env::temp_dir().display(), error = .0)]
    Temporary(#[from] io::Error),
    /// The Linux hosts did not start, or are gone. There are no results.
    #[error("{0}")]
    ExternalHosts(ExternalHostError),
    /// Likewise, when the table of flows was written there.
    #[error("results cannot be kept in {folder} (TMPDIR): {error}", folder = std::env::temp_dir().display(), error = .0)]
    TemporaryTable(#[from] ParquetError),
}

/// How far a run is, and what it took so far.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// How far it is.
    pub progress: Progress,
    /// CPU seconds so far.
    pub cpu_s: f64,
}

/// Is told about five times a second how far a run is, and may stop it.
pub type Observer<'a> = &'a mut dyn FnMut(&Report) -> ControlFlow<()>;

/// A spec that was found good: its fabric and its traffic.
#[derive(Debug)]
pub struct Prepared {
    /// The spec.
    pub resolved: Resolved,
    /// The fabric.
    pub fabric: Fabric,
    /// The traffic.
    pub traffic: Traffic,
    /// The fabric that ideal completion times are of, and how it changes, where the run has another
    /// in its place: a pooled one.
    ideal_of: Option<(Topology, Vec<FaultEvent>)>,
    /// Which flows are measured; none if all are.
    window: Option<Window>,
    /// When faults begin and end.
    divided_at: Vec<Time>,
}

/// Cost of the event loop: without reading the spec, building the fabric, generating the traffic,
/// and the results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Elapsed {
    pub cpu_s: f64,
    pub wall_s: f64,
}

/// Instruments of a run beyond those that every run has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Watch<'w> {
    /// Ports, over windows of this length.
    pub observe_every: Option<Span>,
    /// Packets that links send.
    pub capture: Option<CaptureOf<'w>>,
    /// The congestion windows of these flows, every so often.
    pub windows_of: Option<(&'w [u32], Span)>,
}

/// Results of the event loop.
pub(crate) struct Simulated {
    /// Counters of the engine.
    pub results: Results,
    /// Records of each flow.
    pub records: FlowRecords,
    /// Cost of the event loop.
    pub elapsed: Elapsed,
    /// Results of Linux hosts; nothing without.
    pub kernel: KernelResults,
    /// Whether the time limit ended it.
    pub cut_off: bool,
}

/// Events between two looks at the clock: some milliseconds.
const CHUNK_EVENTS: u64 = 20_000;
/// Events between two looks at the clock with Linux hosts, which take most of the time.
const CHUNK_EVENTS_OF_EXTERNAL_HOSTS: u64 = 1_000;
/// Events between two looks at the clock for each of several threads, which begin and end with a
/// chunk: that takes some ten microseconds.
const CHUNK_EVENTS_OF_THREAD: u64 = 200_000;
/// Time between two reports to the observer.
const REPORT_EVERY: Duration = Duration::from_millis(200);

impl Prepared {
    /// Reads a spec, builds its fabric and generates its traffic. What passes here can be run.
    ///
    /// # Errors
    /// The first mistake in the spec.
    pub fn new(source: &SpecSource) -> Result<Self, SpecError> {
        Self::read(source).map_err(|error| blamed(source, error, |text| Self::read(text).err()))
    }

    fn read(source: &SpecSource) -> Result<Self, SpecError> {
        let resolved = Resolved::new(source)?;
        let spec = &resolved.spec;
        // Files are absolute by now.
        let base_dir = Path::new("");
        check_graph_file(&spec.fabric, base_dir)?;
        let fabric = spec.fabric.build(spec.run.seed, base_dir);
        let wrong_fabric = |error| in_graph_file(error).unwrap_or_else(|error| resolved.error(error));
        let mut fabric = fabric.map_err(wrong_fabric)?;
        let warnings = transport_warnings(&spec.transport, &spec.scheme, &fabric);
        fabric.warnings.extend(warnings);
        fabric.warnings.extend(paths_alike(&spec.run, &fabric));
        fabric.warnings.extend(resolved.notes.iter().cloned());
        // The shape is that of the fabric before any fault, so that a fault never moves the
        // traffic.
        let traffic = spec.traffic.generate_over(&spec.carriers(), &fabric.shape(), spec.run.seed, base_dir);
        let wrong_traffic = |error| in_traffic_file(error).unwrap_or_else(|error| resolved.error(error));
        let traffic = traffic.map_err(wrong_traffic)?;
        let held = spec.fabric.check_flows_are_held(&classes_of(&traffic.flows));
        held.map_err(|error| resolved.error(error))?;
        if let Some(linux) = spec.hosts.linux() {
            linux.hosts(spec, &fabric.shape()).map_err(|error| resolved.error(error))?;
        }
        check_application(spec).map_err(|error| resolved.error(error))?;
        check_collectives(spec).map_err(|error| resolved.error(error))?;
        let window = Window::of(&spec.run, &traffic.flows).map_err(|error| resolved.error(error))?;
        let ideal_of = if spec.scheme.pools_fabric() {
            Some(pool(&mut fabric).map_err(|error| resolved.error(error))?)
        } else {
            None
        };
        let divided_at = divided_at(&fabric.spans);
        let prepared = Self { resolved, fabric, traffic, ideal_of, window, divided_at };
        let Spec { transport, scheme, .. } = &prepared.resolved.spec;
        let Fabric { topology, faults, .. } = &prepared.fabric;
        check_parameters(transport, scheme, topology, faults)
            .map_err(|error| prepared.resolved.error(error))?;
        Ok(prepared)
    }

    /// The answer of `weft explain`: `{"spec", "origins", "toml", "result_toml", "spec_hash",
    /// "version", "warnings", "missing", "cores"}`. `missing` is what this machine lacks for a run
    /// of it, null if nothing; `cores` is how a run works on these, `{"threads", "partitions",
    /// "reason", "text"}`; null without any.
    ///
    /// # Errors
    /// None in practice: every spec can be written as JSON.
    pub fn explain(&self, cores: Option<Cores>) -> Result<serde_json::Value, SpecError> {
        let mut json = self.resolved.to_json()?;
        json["warnings"] = self.fabric.warnings.as_slice().into();
        json["missing"] = missing_on_this_machine(&self.resolved.spec).into();
        json["cores"] = cores.map(|cores| self.decision(cores).to_json()).into();
        Ok(json)
    }

    /// On how many threads a run on these cores works, in how many partitions, and why.
    pub fn decision(&self, cores: Cores) -> Decision {
        self.decision_for(cores, &self.input(None))
    }

    /// Division of the work for an input that may be watched, or have an external scheme.
    fn decision_for(&self, cores: Cores, input: &SimulationInput<'_>) -> Decision {
        decide(self.resolved.spec.run.threads, cores, input)
    }

    /// Runs to the end, on these cores; results do not depend on them. `external` takes the place
    /// of the spec's load balancer.
    ///
    /// # Errors
    /// A transport that the spec got wrong, or an observer that stopped the run.
    pub fn run(
        &self,
        observer: Observer<'_>,
        external: Option<ExternalSchemeFactory<'_>>,
        cores: Cores,
    ) -> Result<Outcome, RunError> {
        let mut external = external;
        let simulated = self.simulate(observer, external.as_mut(), Watch::default(), cores)?;
        let name = external.as_ref().map(|external| external.name.as_str());
        self.outcome(simulated, name)
    }

    /// Runs to the end: what the engine counted, of each flow apart, and what the event loop took.
    pub(crate) fn simulate(
        &self,
        observer: Observer<'_>,
        external: Option<&mut ExternalSchemeFactory<'_>>,
        watch: Watch<'_>,
        cores: Cores,
    ) -> Result<Simulated, RunError> {
        if external.is_none() {
            self.refuse_outside()?;
        }
        let mut external_hosts = self.linux_hosts(watch.windows_of)?;
        let has_external_hosts = external_hosts.is_some();
        let mut make =
            external.map(|external| |info: &SwitchInfo<'_>| AnySwitchScheme::External((external.make)(info)));
        let input = self.input(make.as_mut().map(|make| make as _));
        let Decision { partitions, threads, .. } = self.decision_for(cores, &input);
        let Tuning { share_from, prefetch_from, balance_of } = cores.tuning();
        let others = OtherThreads::default();
        let around = |work: &mut dyn FnMut()| others.measure(work);
        let input = SimulationInput {
            observe_every: watch.observe_every,
            capture: watch.capture,
            windows_of: watch.windows_of,
            external_hosts: external_hosts.as_mut().map(|hosts| hosts as _),
            partitions,
            threads,
            share_from,
            prefetch_from,
            balance_of,
            around: Some(&around),
            ..input
        };
        let wrong = |error: InputError| self.resolved.error(error);
        let mut simulation = Simulation::new(input).map_err(wrong)?;
        simulation.spool_to(Box::new(spool()));
        let chunk = match threads {
            _ if has_external_hosts => CHUNK_EVENTS_OF_EXTERNAL_HOSTS,
            1 => CHUNK_EVENTS,
            _ => CHUNK_EVENTS_OF_THREAD * threads as u64,
        };
        let watch = Stopwatch::start();
        let cpu_s = || watch.cpu_s() + others.cpu_s();
        let mut next_report = Instant::now() + REPORT_EVERY;
        let status = loop {
            let status = simulation.advance(chunk);
            if status != Status::Running || simulation.has_failed() {
                break status;
            }
            if Instant::now() < next_report {
                continue;
            }
            let report = Report { progress: simulation.progress(), cpu_s: cpu_s() };
            if observer(&report).is_break() {
                return Err(RunError::Stopped);
            }
            next_report = Instant::now() + REPORT_EVERY;
        };
        let report = Report { progress: simulation.progress(), cpu_s: cpu_s() };
        if observer(&report).is_break() {
            return Err(RunError::Stopped);
        }
        let mut elapsed = Elapsed { cpu_s: cpu_s(), wall_s: watch.wall_s() };
        if let Some(failure) = simulation.take_external_failure() {
            return Err(RunError::ExternalHosts(failure));
        }
        let (results, records) = simulation.finish();
        let kernel = external_hosts.map(LinuxHosts::finish).unwrap_or_default();
        elapsed.cpu_s += kernel.cpu_s;
        let cut_off = status == Status::Finished(Ending::TimeLimit);
        Ok(Simulated { results, records, elapsed, kernel, cut_off })
    }

    /// The Linux hosts, started, if the spec has any.
    fn linux_hosts<'a>(
        &'a self,
        windows_of: Option<(&'a [u32], Span)>,
    ) -> Result<Option<LinuxHosts<'a>>, RunError> {
        let spec = &self.resolved.spec;
        let Some(linux) = spec.hosts.linux() else { return Ok(None) };
        let hosts = linux.hosts(spec, &self.fabric.shape()).map_err(|error| self.resolved.error(error))?;
        let started = LinuxHosts::start(linux, spec, &self.fabric, &self.traffic.flows, &hosts, windows_of);
        started.map(Some).map_err(|error| RunError::ExternalHosts(Box::new(error)))
    }

    /// Input of the engine: the whole fabric, for one thread.
    pub(crate) fn input<'a>(
        &'a self,
        external_scheme: Option<&'a mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme>,
    ) -> SimulationInput<'a> {
        let spec = &self.resolved.spec;
        SimulationInput {
            topology: &self.fabric.topology,
            faults: &self.fabric.faults,
            ideal_of: self.ideal_of.as_ref().map(|(topology, faults)| (topology, faults.as_slice())),
            reroute_after: self.fabric.reroute_after,
            flows: &self.traffic.flows,
            application: self.traffic.application,
            dependencies: self.traffic.schedule.as_ref().map(|schedule| &schedule.dependencies),
            transport: &spec.transport,
            scheme: &spec.scheme,
            has_external_hosts: !spec.hosts.is_simulated(),
            machine: spec.hosts.machine(),
            external_hosts: None,
            capture: None,
            windows_of: None,
            external_scheme,
            seed: spec.run.seed,
            time_limit: spec.run.time_limit,
            sample_every: spec.run.sample_every,
            observe_every: None,
            partitions: 1,
            threads: 1,
            share_from: SHARE_FROM,
            balance_of: None,
            prefetch_from: PREFETCH_FROM,
            around: None,
            memory: of_machine(),
            phases: (!self.fabric.spans.is_empty()).then_some(&self.divided_at),
            spans: &self.fabric.spans,
            paths_of: spec.run.paths_of.map(Bytes::as_u64),
            trace_flows: spec.run.trace_flows.map(usize::from).zip(spec.run.sample_every),
        }
    }

    /// The table of flows, and what it amounts to; the records go through memory in parts.
    fn flows(
        &self,
        records: FlowRecords,
        kernel: &[Option<KernelFlow>],
        results: &Results,
    ) -> Result<(Stored, Figures, Trend, Phases<'_>, FlowTimes, Doubts), RunError> {
        let (spec, end) = (&self.resolved.spec, results.end);
        let labels = spec.transport.labels();
        let some_runs = SomeRuns::of(&self.fabric.topology, &spec.transport, results);
        let mut figures = Figures::new(self.traffic.flows.len(), &spec.run.size_ranges());
        let window = self.window.as_ref();
        let schedule = self.traffic.schedule.as_ref();
        let mut example = FlowRow {
            measured: window.map(|_| true),
            collective: schedule.map(|_| 0),
            collective_step: schedule.map(|_| 0),
            ..example(&labels, kernel, &spec.transport)
        };
        some_runs.fill_example(&mut example);
        let schema = FlowRow::table(&[example])?.schema();
        let mut table = Writing::new(Arc::clone(&schema))?;
        let mut trend = Trend::over(self.measured_flows());
        let mut phases = Phases::new(&self.fabric.spans, &self.divided_at);
        let (mut seen, mut doubts) = (FlowTimes::default(), Doubts::default());
        let mut first = 0;
        for records in records {
            let records = records?;
            let flows = &self.traffic.flows[first..];
            if let Some(schedule) = schedule {
                seen.take(schedule, flows, &records, end);
            }
            let mut rows = flow_rows(&self.traffic, window, &labels, kernel, first, &records, end);
            for ((flow, record), row) in flows.iter().zip(&records).zip(&mut rows) {
                if cfg!(debug_assertions) && self.resolved.spec.hosts.is_simulated() {
                    let wrong = identities::of_flow(flow, record, end, self.ideal_of.is_none());
                    assert!(wrong.is_empty(), "books of flow {} do not agree: {}", row.id, wrong.join("; "));
                }
                some_runs.fill(row, record, flow.transport.into());
                phases.add(record.start(flow), row, end);
                figures.add(row, end);
                trend.add(row, end);
                doubts.add(row, &self.fabric.topology, results);
            }
            first += rows.len();
            table.write(&with_columns(&FlowRow::table(&rows)?, &schema)?)?;
        }
        Ok((table.finish()?, figures, trend, phases, seen, doubts))
    }

    /// How many flows averages are over, finished or not.
    fn measured_flows(&self) -> usize {
        let flows = &self.traffic.flows;
        self.window.as_ref().map_or_else(|| ending(flows), |window| window.measured(flows))
    }

    pub(crate) fn outcome(&self, simulated: Simulated, external: Option<&str>) -> Result<Outcome, RunError> {
        let Simulated { results, records, elapsed, kernel, cut_off } = simulated;
        let (spec, results) = (&self.resolved.spec, &results);
        let (flows, figures, trend, phases, seen, doubts) = self.flows(records, &kernel.flows, results)?;
        let (collectives, critical, of_collectives) =
            collectives(&self.traffic, &self.fabric, seen, results.end);
        let links = link_rows(&self.fabric.topology, results);
        let names = link_names(&self.fabric.topology);
        let samples = sample_rows(&self.fabric.topology, &names, results);
        let paths = path_rows(&results.paths, results.end);
        let traces = trace_rows(&names, &results.traces, results.end);
        let counters = counter_rows(&results.scheme);
        let totals = totals(results, self.traffic.flows.len(), elapsed);
        let scheme = external.unwrap_or_else(|| spec.scheme.name());
        let mut text = self.resolved.toml.clone();
        if external.is_some() && spec.scheme.python_class().is_none() {
            text.insert_str(
                0,
                &format!("# Run with the external scheme {scheme}, not with the one below.\n"),
            );
        }
        let (seed, hash) = (spec.run.seed, &self.resolved.hash);
        let mut summary = Summary::new(scheme, seed, hash, &figures, totals);
        summary.paths = Spread::of(&paths);
        summary.time_limit_us = (cut_off && figures.is_open()).then(|| spec.run.time_limit.as_us());
        let of_faults = phases.told(&self.fabric.topology, results)?;
        (summary.faults, summary.phases) = (of_faults.of_faults, of_faults.of_phases);
        summary.collectives = of_collectives;
        summary.lossless = Lossless::of(&self.fabric.topology, &names, results);
        summary.warnings.clone_from(&self.fabric.warnings);
        summary.warnings.extend(summary.lossless.as_ref().and_then(Lossless::warning));
        summary.warnings.extend(trend.warning());
        summary.warnings.extend(coarser_samples(spec.run.sample_every, results.samples.every));
        let scheme = external.is_none().then_some(&spec.scheme);
        summary.warnings.extend(doubts.warnings(scheme, &spec.transport, &self.fabric));
        summary.warnings.extend(late_faults(&self.fabric.spans, results.end));
        summary.warnings.extend(uncoupled(spec));
        summary.warnings.extend(kernel_warnings(&kernel.flows, kernel.foreign));
        summary.kernel = kernel.fingerprint;
        let finished = (ending(&self.traffic.flows), figures.finished());
        if cfg!(debug_assertions) {
            let wrong = of_summary(&summary, (finished.0 as u64, finished.1), &of_faults.drops);
            assert!(wrong.is_empty(), "books of the summary do not agree: {}", wrong.join("; "));
        }
        let cut_off_by = cut_off.then_some(spec.run.time_limit);
        summary.invalid = invalid(&results.packets, finished, results.end, cut_off_by);
        summary.incomplete = kernel.programs.iter().filter_map(KnownProgram::failure).collect();
        let programs: Vec<ProgramRow> = kernel.programs.iter().map(KnownProgram::row).collect();
        let connections = (0..).zip(&kernel.connections).flat_map(|(number, one)| one.rows(number));
        let connections: Vec<ConnectionRow> = connections.collect();
        Ok(Outcome {
            spec: text,
            summary,
            flows,
            links: LinkRow::table(&links)?,
            samples: SampleRow::table(&samples)?,
            deliveries: DeliveryRow::table(&delivery_rows(results))?,
            paths: PathRow::table(&paths)?,
            traces: TraceRow::table(&traces)?,
            scheme: CounterRow::table(&counters)?,
            programs: ProgramRow::table(&programs)?,
            connections: ConnectionRow::table(&connections)?,
            subflows: SubflowRow::table(&kernel.subflows)?,
            faults: of_faults.faults,
            phases: of_faults.phases,
            drops: of_faults.drops,
            collectives: CollectiveRow::table(&collectives)?,
            critical_path: CriticalRow::table(&critical)?,
            classes: ClassRow::table(&class_rows(&names, results))?,
            pauses: PauseRow::table(&pause_rows(&self.fabric.topology, &names, results))?,
            shared_buffers: SharedBufferRow::table(&shared_buffer_rows(&self.fabric.topology, results))?,
            packets: PacketBalance {
                sent: results.packets.sent,
                delivered: results.packets.delivered,
                dropped: results.packets.dropped,
                in_flight: results.in_flight,
            },
        })
    }
}

/// The classes of these flows, each once, in their order.
fn classes_of(flows: &[Flow]) -> Vec<Class> {
    let found = flows.iter().fold(0u8, |found, flow| found | 1 << flow.class as u8);
    Class::ALL.into_iter().filter(|&class| found >> class as u8 & 1 == 1).collect()
}

/// Puts the pooled fabric in the place of a fabric; returns that fabric and how it changes.
fn pool(fabric: &mut Fabric) -> Result<(Topology, Vec<FaultEvent>), Mistake> {
    let allowed = "a fabric that can be pooled, or kind = \"path\"";
    let refuse = |error: NotPooled| Mistake::at("scheme.kind", format!(" is \"pooled\": {error}"));
    let pooled = fabric.pooled().map_err(|error| refuse(error).found("pooled").allowed(allowed))?;
    let real = std::mem::replace(fabric, pooled);
    Ok((real.topology, real.faults))
}
