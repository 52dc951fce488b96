//! A simulation: what it depends on, how far it is, and what it leaves behind.

use std::num::NonZeroUsize;

use thiserror::Error;
use weft_balance::{AnySwitchScheme, FabricFacts, ParameterError, SchemeSpec, SwitchHooks, SwitchInfo};
use weft_topology::{FaultEvent, FaultSpan, NotPartitionable, PartitionRequest, Partitioning, Topology};
use weft_traffic::{Application, Dependencies, Flow};
use weft_transport::{Transports, TransportsError, TransportsSpec, Visitor};
use weft_units::{Mistake, Span, Time};

use super::capture::CaptureOf;
use super::external_hosts::{ExternalHostError, ExternalHosts};
use super::follow::Decision;
use super::host::{Facts, PacketSizes};
use super::host_cpu::HostCpuSpec;
use super::pause::{MemoryError, check_memories};
use super::records::{FlowRecords, Spool};
use super::results::Results;
use super::run::{Engine, Snapshot};

/// Everything that a run depends on.
pub struct SimulationInput<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// How its links change, by time.
    pub faults: &'a [FaultEvent],
    /// The fabric whose ideal completion times are those of the flows, and how it changes, if that
    /// is not `topology`.
    pub ideal_of: Option<(&'a Topology, &'a [FaultEvent])>,
    /// How long other switches need to learn that a link failed or came back.
    pub reroute_after: Span,
    /// The traffic, by start.
    pub flows: &'a [Flow],
    /// How the applications of flows write, if not all at once; their transports must take that.
    /// Flows that wait for others are there as a whole when they start.
    pub application: Option<Application>,
    /// Dependencies of flows, if there are any; such flows are between simulated hosts.
    pub dependencies: Option<&'a Dependencies>,
    /// Transports of the flows.
    pub transport: &'a TransportsSpec,
    /// The load balancer.
    pub scheme: &'a SchemeSpec,
    /// The hosts that are not simulated here, if there are any.
    pub external_hosts: Option<&'a mut dyn ExternalHosts>,
    /// Whether there are such hosts, be they given yet or not: how a run is cut is known before
    /// they are started.
    pub has_external_hosts: bool,
    /// Cards and CPUs of simulated hosts, if they take time.
    pub machine: Option<HostCpuSpec>,
    /// Makes the scheme of each switch in place of `scheme`, for external schemes.
    pub external_scheme: Option<&'a mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme>,
    /// The seed.
    pub seed: u64,
    /// Simulated time that is allowed after the last flow started.
    pub time_limit: Span,
    /// Into how many partitions the fabric may be cut; at most so many as it has pieces that stay
    /// together. With 1 it stays whole. Results do not depend on it.
    pub partitions: usize,
    /// How many threads work on the partitions; at least 1. Results do not depend on it.
    pub threads: usize,
    /// Threads share the work of a window if there were at least so many events in the one before:
    /// below, sharing costs more than it saves. Results do not depend on it.
    pub share_from: u64,
    /// Where one thread works on several partitions: count how well so many would share the
    /// windows.
    pub balance_of: Option<NonZeroUsize>,
    /// With so many links in the fabric, what events need of memory is asked for before it is their
    /// turn: usually [`PREFETCH_FROM`]. No result depends on it.
    pub prefetch_from: usize,
    /// Hook that each thread but the caller's calls with its work, which must be called once: to
    /// measure what it takes.
    pub around: Option<ThreadHook<'a>>,
    /// Bytes of memory that the load balancer's state at hosts may take; none if nobody knows.
    pub memory: Option<u64>,
    /// How often to look at all links and receivers; not zero.
    pub sample_every: Option<Span>,
    /// Watch the queues of switches' ports over windows of this length; not zero.
    pub observe_every: Option<Span>,
    /// Note packets that links send.
    pub capture: Option<CaptureOf<'a>>,
    /// Look at the congestion windows of these flows, each at every such interval since its start;
    /// not zero.
    pub windows_of: Option<(&'a [u32], Span)>,
    /// Count what flows of at least so many bytes deliver over each path.
    pub paths_of: Option<u64>,
    /// Count where packets are lost and why, by the phases into which these instants divide the
    /// run; in order.
    pub phases: Option<&'a [Time]>,
    /// Faults to be watched, if they slow links in mid-run.
    pub spans: &'a [FaultSpan],
    /// Note which links the so many largest flows take, by intervals of this length; not zero.
    pub trace_flows: Option<(usize, Span)>,
}

/// With so many links a fabric is far larger than the caches: see
/// [`SimulationInput::prefetch_from`].
pub const PREFETCH_FROM: usize = 8_192;

/// The least events in a window from which on sharing them pays: see
/// [`SimulationInput::share_from`].
pub const SHARE_FROM: u64 = 128;

/// Calls what it is given, once, and may look at a clock before and after.
pub type ThreadHook<'a> = &'a (dyn Fn(&mut dyn FnMut()) + Sync);

/// Why a run works on the whole fabric at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SinglePartition {
    /// One partition, or less, was asked for.
    #[error("one partition was asked for")]
    OneRequested,
    /// The effects of an external scheme are not known, nor where it may be called.
    #[error("an external scheme works on the whole fabric")]
    ExternalScheme,
    /// It reads the queues of all switches, which partitions could not show each other at any
    /// instant.
    #[error("the oracle sees the whole fabric")]
    Oracle,
    /// Ports are observed, or what links send, in one order for the whole fabric.
    #[error("an observer of ports or links sees the whole fabric")]
    Observed,
    /// Hosts that are not simulated have one clock.
    #[error("hosts that are real kernels see the whole fabric")]
    ExternalHosts,
    /// The fabric cannot be cut.
    #[error(transparent)]
    NotPartitionable(#[from] NotPartitionable),
}

/// An input that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InputError {
    /// A parameter of a transport, or transports that cannot be in one run.
    #[error(transparent)]
    Transport(#[from] TransportsError),
    /// A parameter of the load balancer.
    #[error("scheme.{0}")]
    Scheme(ParameterError),
    /// Memory of switches that cannot do what it is to do.
    #[error(transparent)]
    SharedBufferRules(#[from] MemoryError),
    /// Hosts keep more than memory has.
    #[error(
        "the load balancer keeps {:.1} GB of tables at {hosts} hosts, and this machine has {:.1} GB of memory: fewer hosts or \
         racks need less",
        *needed as f64 / 1e9, *memory as f64 / 1e9
    )]
    Memory {
        /// Bytes at all hosts together.
        needed: u64,
        /// Hosts.
        hosts: usize,
        /// Bytes that there are.
        memory: u64,
    },
}

/// Asks for the sizes of packets.
struct AskSizes;

impl Visitor for AskSizes {
    type Output = PacketSizes;

    fn visit<T: Transports + 'static>(self, transports: T) -> PacketSizes {
        PacketSizes::of_all(&transports)
    }
}

/// Begins a simulation.
struct Begin<'a>(SimulationInput<'a>);

impl<'a> Visitor for Begin<'a> {
    type Output = Result<Simulation<'a>, InputError>;

    fn visit<T: Transports + 'static>(self, transports: T) -> Self::Output {
        Ok(Simulation(Box::new(Engine::new(transports, self.0)?)))
    }
}

impl From<InputError> for Mistake {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Transport(error) => Self::from(error),
            InputError::Scheme(error) => Self::from(error).within("scheme"),
            InputError::SharedBufferRules(error) => {
                let said = error.to_string();
                Self::at(error.key(), said.strip_prefix(error.key()).unwrap_or(&said))
            }
            InputError::Memory { .. } => Self::at("scheme.name", format!(": {error}")),
        }
    }
}

/// Refuses parameters of transports, and of a load balancer at switches or at hosts, that cannot be
/// meant on this fabric.
///
/// # Errors
/// The first such parameter.
pub fn check_parameters(
    transports: &TransportsSpec,
    scheme: &SchemeSpec,
    topology: &Topology,
    faults: &[FaultEvent],
) -> Result<(), InputError> {
    let sizes = transports.with_transports(AskSizes)?;
    check_memories(topology, faults, sizes.full_bytes)?;
    scheme.fits(&Facts::new(topology, faults, sizes)).map_err(InputError::Scheme)
}

/// The longest round trip of the idle fabric between two racks, of the largest packet of these
/// transports; zero if there are no two.
///
/// # Errors
/// As [`check_parameters`].
pub fn base_rtt(
    transports: &TransportsSpec,
    topology: &Topology,
    faults: &[FaultEvent],
) -> Result<Span, InputError> {
    let sizes = transports.with_transports(AskSizes)?;
    Ok(Facts::new(topology, faults, sizes).base_rtt())
}

impl SimulationInput<'_> {
    /// The parts in which the run works: of each, a partition.
    ///
    /// # Errors
    /// Why the fabric stays whole.
    pub(super) fn partitioning(&self) -> Result<Partitioning, SinglePartition> {
        self.partitioning_into(self.partitions)
    }

    /// The parts in which the run would work in as many partitions as it can.
    ///
    /// # Errors
    /// Why it can work in one only.
    pub fn finest_partitioning(&self) -> Result<Partitioning, SinglePartition> {
        self.partitioning_into(usize::MAX)
    }

    /// Here alone is decided whether a run may work in partitions.
    fn partitioning_into(&self, partitions: usize) -> Result<Partitioning, SinglePartition> {
        if self.external_scheme.is_some() || self.scheme.python_class().is_some() {
            return Err(SinglePartition::ExternalScheme);
        }
        if self.scheme.sees_everything() {
            return Err(SinglePartition::Oracle);
        }
        if self.has_external_hosts || self.external_hosts.is_some() {
            return Err(SinglePartition::ExternalHosts);
        }
        if self.observe_every.is_some() || self.capture.is_some() {
            return Err(SinglePartition::Observed);
        }
        if partitions < 2 {
            return Err(SinglePartition::OneRequested);
        }
        let hooks = (self.scheme.switch_hooks(), self.scheme.host_hooks());
        // A switch that is a program has one process for all ports.
        let has_process = self.topology.software.is_some_and(|software| software.has_process());
        let shares = self.topology.shared_buffer.is_some();
        let looks = hooks.0 != SwitchHooks::NONE || hooks.1.traces || has_process || shares;
        Ok(Partitioning::of(
            self.topology,
            self.faults,
            PartitionRequest { may_split: !looks, most: partitions },
        )?)
    }

    /// Refuses parameters that cannot be meant on this fabric; those of a load balancer from
    /// outside are not known.
    ///
    /// # Errors
    /// The first such parameter.
    pub fn check(&self) -> Result<(), InputError> {
        if self.external_hosts.is_some() {
            return Ok(self.transport.validate()?);
        }
        check_parameters(self.transport, self.scheme, self.topology, self.faults)
    }
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every flow that can end has ended.
    AllDone,
    /// The time allowed is over.
    TimeLimit,
    /// Nothing will ever happen again.
    Idle,
    /// The hosts that are not simulated here are gone: see [`Simulation::take_external_failure`].
    Broken,
    /// Paused links wait for each other in a circle: see [`Results::deadlock`].
    Deadlock,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is more to do.
    Running,
    /// All is done up to the time that was asked for, and there is more to do after it.
    Reached,
    /// It is over.
    Finished(Ending),
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// When the last flow starts.
    pub last_start: Time,
    /// Flows that have ended.
    pub flows_finished: usize,
    /// Flows that can end.
    pub flows_total: usize,
    /// Packet-hops so far.
    pub packet_hops: u64,
}

/// Methods of an engine, whatever its transport is. Asked once in many events.
trait Runs {
    fn advance(&mut self, until: Time, max_events: u64) -> Status;
    fn look(&mut self, at: Time, seen: &mut Snapshot);
    fn follow(&mut self, flow: Option<u32>);
    fn take_decisions(&mut self) -> Vec<Decision>;
    fn progress(&self) -> Progress;
    fn spool_to(&mut self, spool: Box<dyn Spool>);
    fn take_in_every(&mut self, flows: usize);
    fn has_failed(&self) -> bool;
    fn take_external_failure(&mut self) -> Option<ExternalHostError>;
    fn finish(self: Box<Self>) -> (Results, FlowRecords);
}

impl<T: Transports> Runs for Engine<'_, T> {
    fn advance(&mut self, until: Time, max_events: u64) -> Status {
        Engine::advance(self, until, max_events)
    }

    fn look(&mut self, at: Time, seen: &mut Snapshot) {
        Engine::look(self, at, seen);
    }

    fn follow(&mut self, flow: Option<u32>) {
        Engine::follow(self, flow);
    }

    fn take_decisions(&mut self) -> Vec<Decision> {
        Engine::take_decisions(self)
    }

    fn progress(&self) -> Progress {
        Engine::progress(self)
    }

    fn spool_to(&mut self, spool: Box<dyn Spool>) {
        Engine::spool_to(self, spool);
    }

    fn take_in_every(&mut self, flows: usize) {
        Engine::take_in_every(self, flows);
    }

    fn has_failed(&self) -> bool {
        Engine::has_failed(self)
    }

    fn take_external_failure(&mut self) -> Option<ExternalHostError> {
        Engine::take_external_failure(self)
    }

    fn finish(self: Box<Self>) -> (Results, FlowRecords) {
        Engine::finish(*self)
    }
}

/// A run, from its first event to its last.
pub struct Simulation<'a>(Box<dyn Runs + 'a>);

impl<'a> Simulation<'a> {
    /// A run that has not begun.
    ///
    /// # Errors
    /// A parameter of the transport that makes no sense, or state of the load balancer that memory
    /// does not hold.
    pub fn new(input: SimulationInput<'a>) -> Result<Self, InputError> {
        let transport = input.transport;
        transport.with_transports(Begin(input))?
    }

    /// Processes up to `max_events` events.
    pub fn advance(&mut self, max_events: u64) -> Status {
        self.0.advance(Time::NEVER, max_events)
    }

    /// Processes what happens up to `until`, that instant included, but no more than `max_events`
    /// events, or somewhat more. In what steps a run advances changes no result.
    pub fn advance_to(&mut self, until: Time, max_events: u64) -> Status {
        self.0.advance(until, max_events)
    }

    /// Looks at links, packets and flows as they are at `at`: a time up to which the run has
    /// advanced, and not beyond what happens next. It changes nothing. What receivers got is known
    /// of all flows only if [`Self::take_in_every`] was told not to look before the end.
    pub fn look(&mut self, at: Time, seen: &mut Snapshot) {
        self.0.look(at, seen);
    }

    /// Notes from now on why packets of this flow, acknowledgements included, go where they go; of
    /// none, stops that. A run that is cut into partitions notes what its first partition decides.
    pub fn follow(&mut self, flow: Option<u32>) {
        self.0.follow(flow);
    }

    /// Takes the decisions since the last call, by time.
    pub fn take_decisions(&mut self) -> Vec<Decision> {
        self.0.take_decisions()
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }

    /// Keeps the records of flows that are over here until the run is. To be called before the run
    /// begins; without it, they are kept in memory, in some tens of bytes each.
    pub fn spool_to(&mut self, spool: Box<dyn Spool>) {
        self.0.spool_to(spool);
    }

    /// Looks for what hosts noted whenever so many flows have ended since, once in an
    /// [`advance`](Self::advance): by default some thousand, and more in a large fabric. Results do
    /// not depend on it.
    pub fn take_in_every(&mut self, flows: usize) {
        self.0.take_in_every(flows);
    }

    /// Whether the spool took no more: records stay in memory from then on, and
    /// [`Simulation::finish`] says why.
    pub fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    /// Why the hosts that are not simulated here are gone, if they are. What the run leaves behind
    /// is then incomplete.
    pub fn take_external_failure(&mut self) -> Option<ExternalHostError> {
        self.0.take_external_failure()
    }

    /// Results of the run, finished or not, and apart from them the records of its flows.
    /// [`Results::flows`] is empty.
    pub fn finish(self) -> (Results, FlowRecords) {
        self.0.finish()
    }

    /// Results of the run, finished or not, with the records of all flows in memory.
    ///
    /// # Panics
    /// If a spool failed that was given.
    pub fn into_results(self) -> Results {
        let (mut results, records) = self.finish();
        results.flows = records.flat_map(|page| page.expect("memory takes and gives")).collect();
        results
    }
}
