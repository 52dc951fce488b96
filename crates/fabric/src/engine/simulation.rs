//! A simulation: what it depends on, how far it is, and what it leaves behind.

use thiserror::Error;
use weft_balance::{BalancerSpec, ParameterError, SwitchInfo, SwitchScheme};
use weft_topology::{FaultEvent, Topology};
use weft_traffic::Flow;
use weft_transport::{ParamError, Protocol, TransportSpec};
use weft_units::{Mistake, Span, Time};

use super::host::{Facts, PacketSizes};
use super::results::Results;
use super::run::Engine;

/// Everything that a run depends on.
pub struct SimulationInput<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// How its links change, by time.
    pub faults: &'a [FaultEvent],
    /// How long other switches need to learn that a link failed or came back.
    pub reroute_after: Span,
    /// The traffic, by start.
    pub flows: &'a [Flow],
    /// The transport.
    pub transport: &'a TransportSpec,
    /// The load balancer.
    pub balancer: &'a BalancerSpec,
    /// Makes the scheme of each switch in place of `balancer`, for schemes from outside.
    pub external: Option<&'a mut dyn FnMut(&SwitchInfo<'_>) -> SwitchScheme>,
    /// The seed.
    pub seed: u64,
    /// Simulated time that is allowed after the last flow started.
    pub time_limit: Span,
    /// How often to look at all links and receivers; not zero.
    pub sample_every: Option<Span>,
    /// Watch the queues of switches' ports over windows of this length; not zero.
    pub observe_every: Option<Span>,
    /// Count what flows of at least so many bytes deliver over each path.
    pub paths_of: Option<u64>,
    /// Note which links the so many largest flows take, by intervals of this length; not zero.
    pub trace_flows: Option<(usize, Span)>,
}

/// An input that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InputError {
    /// A parameter of the transport.
    #[error("transport.{0}")]
    Transport(ParamError),
    /// A parameter of the load balancer.
    #[error("balancer.{0}")]
    Balancer(ParameterError),
}

/// Runs `$call` with the transport that a spec names: once for each that there is, so that none pays for the others.
macro_rules! with_protocol {
    ($spec:expr, |$protocol:ident| $call:expr) => {
        match $spec {
            TransportSpec::Tcp(config) => config.build().map(|$protocol| $call),
            TransportSpec::Dctcp(config) => config.build().map(|$protocol| $call),
            TransportSpec::ExpressPass(config) => config.build().map(|$protocol| $call),
            TransportSpec::Mptcp(config) => config.build().map(|$protocol| $call),
            TransportSpec::MaxPass(config) => config.build().map(|$protocol| $call),
        }
        .map_err(InputError::Transport)
    };
}

impl From<InputError> for Mistake {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Transport(error) => Self::from(error).within("transport"),
            InputError::Balancer(error) => Self::from(error).within("balancer"),
        }
    }
}

/// Refuses parameters of a transport, and of a load balancer at switches or at hosts, that cannot be meant on this fabric.
///
/// # Errors
/// The first such parameter.
pub fn check_parameters(
    transport: &TransportSpec,
    balancer: &BalancerSpec,
    topology: &Topology,
    faults: &[FaultEvent],
) -> Result<(), InputError> {
    let sizes = with_protocol!(transport, |protocol| PacketSizes::of(&protocol))?;
    balancer.fits(&Facts { topology, faults, sizes }).map_err(InputError::Balancer)
}

impl SimulationInput<'_> {
    /// Refuses parameters that cannot be meant on this fabric; those of a load balancer from outside are not known.
    ///
    /// # Errors
    /// The first such parameter.
    pub fn check(&self) -> Result<(), InputError> {
        if self.external.is_some() {
            return with_protocol!(self.transport, |protocol| drop(protocol));
        }
        check_parameters(self.transport, self.balancer, self.topology, self.faults)
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
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is more to do.
    Running,
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

/// What an engine does, whatever its transport is. Asked once in many events.
trait Runs {
    fn advance(&mut self, max_events: u64) -> Status;
    fn progress(&self) -> Progress;
    fn into_results(self: Box<Self>) -> Results;
}

impl<P: Protocol> Runs for Engine<'_, P> {
    fn advance(&mut self, max_events: u64) -> Status {
        Engine::advance(self, max_events)
    }

    fn progress(&self) -> Progress {
        Engine::progress(self)
    }

    fn into_results(self: Box<Self>) -> Results {
        Engine::into_results(*self)
    }
}

/// A run, from its first event to its last.
pub struct Simulation<'a>(Box<dyn Runs + 'a>);

impl<'a> Simulation<'a> {
    /// A run that has not begun.
    ///
    /// # Errors
    /// A parameter of the transport that makes no sense.
    pub fn new(input: SimulationInput<'a>) -> Result<Self, InputError> {
        let transport = input.transport;
        with_protocol!(transport, |protocol| Self(Box::new(Engine::new(protocol, input))))
    }

    /// Processes up to `max_events` events.
    pub fn advance(&mut self, max_events: u64) -> Status {
        self.0.advance(max_events)
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }

    /// What the run leaves behind, finished or not.
    pub fn into_results(self) -> Results {
        self.0.into_results()
    }
}
