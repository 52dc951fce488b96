//! The small networks that tests share, and one way to run them.
use std::path::Path;

use proptest::prelude::ProptestConfig;
use weft_balance::{AnySwitchScheme, SchemeSpec, SwitchInfo};
use weft_fabric::{Ending, HostCpuSpec, Results, Simulation, SimulationInput, Status};
use weft_packet::{Class, HostId};
use weft_topology::{Fabric, FabricSpec};
use weft_traffic::{Application, Flow};
use weft_transport::{TransportSpec, TransportsSpec};
use weft_units::{Span, Time};

/// Two leaves, two spines, two hosts a leaf: the smallest fabric with a choice.
pub const SMALL: &str = r#"
    kind = "leaf-spine"
    leaves = 2
    spines = 2
    hosts_per_leaf = 2
"#;

pub fn fabric(text: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(text).unwrap();
    spec.build(1, Path::new(".")).unwrap()
}

pub fn transport(text: &str) -> TransportSpec {
    toml::from_str(text).unwrap()
}

/// A transport, or several: tables `[[transport]]`.
pub fn transports(text: &str) -> TransportsSpec {
    if text.contains("[[transport]]") {
        return text.parse::<toml::Table>().unwrap()["transport"].clone().try_into().unwrap();
    }
    transport(text).into()
}

pub fn scheme_spec(text: &str) -> SchemeSpec {
    toml::from_str(text).unwrap()
}

pub fn flow(start_us: u64, src: u16, dst: u16, size_bytes: u64) -> Flow {
    Flow {
        start: Time::ZERO + Span::from_us(start_us),
        src: HostId(src),
        dst: HostId(dst),
        size_bytes,
        class: Class::Unknown,
        background: false,
        transport: 0,
    }
}

/// Makes the scheme of each switch.
pub type Make<'a> = &'a mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme;

/// A run that must not lose count of a packet.
pub struct Run<'a> {
    pub fabric: &'a Fabric,
    pub transport: &'a str,
    pub scheme: &'a str,
    pub seed: u64,
    pub time_limit: Span,
    pub sample_every: Option<Span>,
    pub observe_every: Option<Span>,
    pub paths_of: Option<u64>,
    pub trace_flows: Option<(usize, Span)>,
    pub machine: Option<HostCpuSpec>,
    pub application: Option<Application>,
    /// Into how many partitions the fabric may be cut, and how many threads work on them.
    pub partitions: usize,
    pub threads: usize,
    /// After how many events the records of flows are taken in that ended meanwhile; none for the
    /// usual.
    pub take_in_after: Option<u64>,
}

impl<'a> Run<'a> {
    pub fn new(fabric: &'a Fabric, transport: &'a str, scheme: &'a str) -> Self {
        Self {
            fabric,
            transport,
            scheme,
            seed: 1,
            time_limit: Span::from_s(10),
            sample_every: None,
            observe_every: None,
            paths_of: None,
            trace_flows: None,
            machine: None,
            application: None,
            partitions: 1,
            threads: 1,
            take_in_after: None,
        }
    }

    pub fn flows(&self, flows: &[Flow]) -> Results {
        self.ending(flows).0
    }

    pub fn ending(&self, flows: &[Flow]) -> (Results, Ending) {
        self.with_external(flows, None)
    }

    /// The run with schemes of switches that the test makes, if it does.
    pub fn with_external(&self, flows: &[Flow], external: Option<Make<'_>>) -> (Results, Ending) {
        let mut make = external.map(|make| move |info: &SwitchInfo<'_>| make(info));
        let (transport, scheme) = (transports(self.transport), scheme_spec(self.scheme));
        let external = make.as_mut().map(|make| make as Make<'_>);
        let input = SimulationInput { external_scheme: external, ..self.input(flows, &transport, &scheme) };
        let mut simulation = Simulation::new(input).unwrap();
        if self.take_in_after.is_some() {
            simulation.take_in_every(1);
        }
        let ending = loop {
            let events = self.take_in_after.unwrap_or(1 << 20);
            if let Status::Finished(ending) = simulation.advance(events) {
                break ending;
            }
        };
        let results = simulation.into_results();
        (results, ending)
    }

    /// Input of the engine for these flows, this transport and this scheme.
    pub fn input<'s>(
        &'s self,
        flows: &'s [Flow],
        transport: &'s TransportsSpec,
        scheme: &'s SchemeSpec,
    ) -> SimulationInput<'s> {
        SimulationInput {
            topology: &self.fabric.topology,
            faults: &self.fabric.faults,
            ideal_of: None,
            reroute_after: self.fabric.reroute_after,
            flows,
            application: self.application,
            dependencies: None,
            transport,
            scheme,
            external_scheme: None,
            has_external_hosts: false,
            machine: self.machine,
            capture: None,
            windows_of: None,
            external_hosts: None,
            seed: self.seed,
            time_limit: self.time_limit,
            partitions: self.partitions,
            threads: self.threads,
            share_from: 0,
            balance_of: None,
            // Looking ahead moves no result, nor do partitions.
            prefetch_from: if self.partitions > 1 { 0 } else { usize::MAX },
            around: None,
            memory: None,
            sample_every: self.sample_every,
            observe_every: self.observe_every,
            paths_of: self.paths_of,
            phases: Some(&[]),
            spans: &self.fabric.spans,
            trace_flows: self.trace_flows,
        }
    }
}

/// Completion time at the receiver.
pub fn fct(results: &Results, flows: &[Flow], index: usize) -> Span {
    results.flows[index].delivered.unwrap().since(flows[index].start)
}

/// The number of the link with this name, as in "leaf0>spine1".
pub fn link_named(fabric: &Fabric, name: &str) -> usize {
    (0..fabric.topology.links.len()).find(|&link| fabric.topology.link_name(link as u32) == name).unwrap()
}

/// Mean completion time at the receivers.
pub fn mean_fct_us(results: &Results, flows: &[Flow]) -> f64 {
    (0..flows.len()).map(|index| fct(results, flows, index).as_us()).sum::<f64>() / flows.len() as f64
}

/// The scheme's counter of this name, which it must have.
pub fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).unwrap().value
}

/// So many cases of a property, or as many as `PROPTEST_CASES` says.
pub fn cases(everyday: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(everyday),
    }
}

/// Results of a run, without how it was done: memory, partitions and threads are as in `other`.
pub fn done_as(results: Results, other: &Results) -> Results {
    Results { memory: other.memory, cooperation: other.cooperation, ..results }
}
