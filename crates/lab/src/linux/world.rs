//! Kernels with their hosts, as the engine sees external hosts.

use std::time::Duration;

use weft_balance::{SchemeSpec, SwitchHooks};
use weft_fabric::{ExternalHostError, ExternalHosts, ExternalPacket, Frame};
use weft_linux_hosts::codec::mark_congestion;
use weft_linux_hosts::{
    Card, Error, Flow as KernelsFlow, FlowOptions, Host, HostAddress, Knob, Listener, Machine, Protocol,
    Report, Sent, Setup,
};
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_topology::{Fabric, LinkSpec, Topology};
use weft_traffic::Flow;
use weft_transport::mptcp::MptcpEcn;
use weft_transport::{EcnMode, Segmentation, TransportSpec, TransportsSpec};
use weft_units::{Bytes, Purpose, Span, Stream, Time, mix64};

use super::connections::Connection;
use super::flows::{KernelFlow, KernelWindow, subflow_row};
use super::identity::kernel;
use super::kernels::{Kernels, deal};
use super::multipath::Multipath;
use super::programs::{KnownProgram, Programs};
use super::sessions::{PORT, Sessions, Sizes, address_of, host_of};
use super::simulated::SimulatedPeer;
use super::spec::{CongestionControl, LinuxSpec};
use crate::packets::full_packet;
use crate::results::rows::SubflowRow;
use crate::spec::Spec;

/// Bytes of IPv4 and TCP headers without options.
pub(crate) const HEADERS: u16 = 40;
/// Bytes of the time stamps in every packet of a connection (RFC 7323, with what pads them).
const TIMESTAMPS: u16 = 12;
/// Bytes of the kernel's DSS option in a segment with data, until the other end has sent data, too
/// (RFC 8684 §3.3: 4 of head, 4 of acknowledgement, 14 of mapping, what pads them).
const DSS: u16 = 24;
/// Bytes of the header around a packet, where a load balancer needs one: four bytes of the scheme's
/// bits, two of the route, two of what it is.
const OVERLAY: u64 = 8;
/// The least retransmission timeout of the kernel, if nobody sets it.
const LEAST_TIMEOUT: Span = Span::from_ms(200);
/// How long a kernel may think about one step.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that a flow without an end is set to send.
const ENDLESS: u64 = 1 << 50;

/// Results of Linux hosts beyond those of the fabric.
#[derive(Debug, Default)]
pub(crate) struct KernelResults {
    /// Statistics of the kernel on each flow, by number.
    pub flows: Vec<Option<KernelFlow>>,
    /// Statistics of the kernel on subflows.
    pub subflows: Vec<SubflowRow>,
    /// Packets to nobody.
    pub foreign: u64,
    /// Results of each program.
    pub programs: Vec<KnownProgram>,
    /// Connections of programs.
    pub connections: Vec<Connection>,
    /// The windows of flows over time, where that was asked for.
    pub windows: Vec<KernelWindow>,
    /// The fingerprint of the kernel.
    pub fingerprint: Option<String>,
    /// CPU seconds that the kernel and the processes in it took since it was ready.
    pub cpu_s: f64,
}

/// The Linux hosts of a run.
pub(crate) struct LinuxHosts<'a> {
    kernels: Kernels,
    flows: &'a [Flow],
    control: CongestionControl,
    protocol: Protocol,
    options: FlowOptions,
    /// Options of flows to simulated hosts.
    whole_segments: FlowOptions,
    /// The flows whose windows are looked at, and how often.
    windows_of: Option<(&'a [u32], Span)>,
    windows: Vec<KernelWindow>,
    least_timeout: Span,
    sessions: Sessions,
    programs: Programs,
    boot_cpu_s: f64,
    known: Vec<Option<KernelFlow>>,
    ended: Vec<FlowId>,
    sent: Vec<(HostId, Sent)>,
    /// Hosts of the fabric.
    fabric: usize,
    felt_after: Span,
}

impl<'a> LinuxHosts<'a> {
    /// Starts the kernels with these hosts of the fabric's.
    ///
    /// # Errors
    /// There is no kernel, or one does not start.
    pub fn start(
        linux: &LinuxSpec,
        spec: &Spec,
        Fabric { topology, faults, .. }: &Fabric,
        flows: &'a [Flow],
        hosts: &[HostId],
        windows_of: Option<(&'a [u32], Span)>,
    ) -> Result<Self, Error> {
        let image = weft_linux_hosts::find()?;
        let control = linux.congestion_control.unwrap_or_else(|| usual_control(&spec.transport));
        let (mss, header) = segmentation(&spec.transport);
        let around = header - HEADERS + overlay(linux, &spec.scheme).as_u64() as u16;
        let card = |host: &LinkSpec| Card {
            overhead_bytes: u32::from(around + topology.overhead_bytes),
            min_bytes: 0,
            mtu: u32::from(mss + HEADERS),
            ring: linux.ring,
            segmentation: linux.segmentation_offload,
            receive_ring: linux.receive_ring,
            receive_offload: linux.receive_offload,
            interrupt_delay: linux.interrupt_delay,
            interrupt_packets: linux.interrupt_packets,
            cpu_per_packet: linux.cpu_per_packet,
            cpu_per_byte: linux.cpu_per_byte,
            ..Card::ethernet(host.condition.rate, Span::from_ps(1))
        };
        // A fault may make a cable shorter or faster than it is at first.
        let (felt_after, lookahead) = lookaheads(&topology.at_its_best(faults), hosts, card);
        let sysctl = settings(linux, &spec.transport)?;
        let host = |host: &HostId| Host {
            address: HostAddress { address: address_of(*host), prefix_bits: 8 },
            card: Card { lookahead, ..card(&topology.links[host.index()]) },
            settings: sysctl.clone(),
        };
        let subflows = subflows(&spec.transport);
        let protocol = if subflows.is_some() { Protocol::Mptcp } else { Protocol::Tcp };
        let listener = |host| Listener { host, port: PORT, protocol, control: control.name().to_owned() };
        let start = |(kernel, hosts): (usize, &Vec<HostId>)| {
            Machine::start(&Setup {
                image: image.clone(),
                hosts: hosts.iter().map(host).collect(),
                listeners: (0..hosts.len()).map(listener).collect(),
                // Each draws for itself.
                seed: if kernel == 0 { spec.run.seed } else { mix64(spec.run.seed ^ kernel as u64) },
                memory_mib: 1_024,
                patience: PATIENCE,
                log: None,
            })
        };
        let dealt = deal(hosts, &topology.rack_of_host, linux.kernels_for(hosts.len()));
        let machines = dealt.iter().enumerate().map(start).collect::<Result<Vec<_>, Error>>()?;
        let stamped = !sysctl.iter().any(|(path, value)| path == "net/ipv4/tcp_timestamps" && value == "0");
        let hash_key = Stream::new(spec.run.seed, Purpose::FlowHash, 0).next_u64();
        let stamps = if stamped { TIMESTAMPS } else { 0 };
        let payload = mss - stamps - if subflows.is_some() { DSS } else { 0 };
        let mut kernels = Kernels::new(machines, dealt, topology.hosts, lookahead);
        let programs = Programs::new(&spec.traffic.program);
        programs.start(&mut kernels)?;
        let boot_cpu_s = kernels.cpu_s();
        let is_linux = (0..topology.hosts).map(|host| kernels.has(HostId(host as u16))).collect();
        let Segmentation { mss: own, header: own_header } = full_packet(&spec.transport);
        let manner = SimulatedPeer::new(&spec.transport, (own, own_header), spec.run.seed);
        let options = linux.of_flows()?;
        let multipath = subflows.map(|most| Multipath::new(flows.len(), usize::from(most)));
        Ok(Self {
            kernels,
            flows,
            control,
            protocol,
            // Simulated hosts count segments: what is no whole one waits until it is, or until the
            // flow is over.
            whole_segments: options.clone().set("cork", 1)?,
            options,
            windows_of,
            windows: Vec::new(),
            least_timeout: linux.kernel.get("min_rto_ms").map_or(LEAST_TIMEOUT, |&ms| Span::from_ms(ms)),
            sessions: Sessions::new(is_linux, Sizes { around, payload }, manner, hash_key, multipath),
            programs,
            boot_cpu_s,
            known: vec![None; flows.len()],
            ended: Vec::new(),
            sent: Vec::new(),
            fabric: topology.hosts,
            felt_after,
        })
    }

    /// Results of Linux hosts at the end of the run.
    pub fn finish(mut self) -> KernelResults {
        let cpu_s = (self.kernels.cpu_s() - self.boot_cpu_s).max(0.0);
        self.kernels.stop();
        let subflows = self.subflows();
        KernelResults {
            flows: self.known,
            subflows,
            foreign: self.sessions.foreign,
            programs: self.programs.into_all(),
            connections: self.sessions.into_others(),
            windows: self.windows,
            fingerprint: kernel(),
            cpu_s,
        }
    }

    /// Counters of the kernel for each subflow that has sent something, by flow and subflow.
    fn subflows(&self) -> Vec<SubflowRow> {
        let mut rows = Vec::new();
        for (number, (traffic, known)) in (0..).zip(self.flows.iter().zip(&self.known)) {
            let mut mine: Vec<SubflowRow> = known
                .iter()
                .flat_map(|known| &known.subflows)
                .filter_map(|subflow| {
                    let ends = ((traffic.src, subflow.port), (traffic.dst, subflow.to_port));
                    let place = self.sessions.flow(ends.0, ends.1)?.index() / self.flows.len();
                    Some(subflow_row(number, place as u16, subflow))
                })
                .collect();
            mine.sort_by_key(|row| row.subflow);
            rows.extend(mine);
        }
        rows
    }

    fn take_reports(&mut self) {
        for (kernel, at, report) in self.kernels.take_reports() {
            self.take_report(kernel, at, report);
        }
    }

    fn take_report(&mut self, kernel: usize, at: Time, report: Report) {
        match report {
            Report::Started { id, port, .. } => {
                let Some((flow, traffic)) = self.numbered(id) else { return };
                self.known[flow.index()].get_or_insert_default().port = port;
                self.sessions.expect((traffic.src, port), traffic.dst, flow, traffic.size_bytes);
            }
            Report::Closed { id, connected, closed, info } => {
                let Some((flow, _)) = self.numbered(id) else { return };
                self.ended.push(flow);
                if let Some(known) = &mut self.known[flow.index()] {
                    (known.connected, known.closed, known.info) = (Some(connected), Some(closed), info);
                }
            }
            Report::Received(received) => {
                let from = host_of(received.from, self.fabric).map(|host| (host, received.from_port));
                let Some(to) = self.kernels.host(kernel, received.host) else { return };
                let to = (to, received.port);
                let flow = from.and_then(|from| self.sessions.flow(from, to));
                if let Some(known) = flow.and_then(|flow| self.known[flow.index()].as_mut()) {
                    known.read = Some(received.last);
                }
            }
            Report::Failed { id, what } => {
                let Some((flow, _)) = self.numbered(id) else { return };
                self.ended.push(flow);
                self.known[flow.index()].get_or_insert_default().failed = Some(what);
            }
            Report::Sample(sample) => {
                let Some((flow, _)) = self.numbered(sample.id) else { return };
                self.windows.push(KernelWindow { at, flow, info: sample.info });
            }
            // It counts those that it only tried to open, too.
            Report::Multipath { id, fell_back, .. } => {
                let Some((flow, _)) = self.numbered(id) else { return };
                self.known[flow.index()].get_or_insert_default().fell_back = Some(fell_back);
            }
            Report::Subflow(subflow) => {
                let Some((flow, _)) = self.numbered(subflow.id) else { return };
                self.known[flow.index()].get_or_insert_default().subflows.push(subflow);
            }
            // The machine itself sees to `Ready` and `Error`.
            other => self.programs.take(at, other),
        }
    }

    /// The flow with this number, if there is one: a kernel may say anything.
    fn numbered(&self, id: u64) -> Option<(FlowId, &'a Flow)> {
        let flow = self.flows.get(usize::try_from(id).ok()?)?;
        Some((FlowId(id as u32), flow))
    }
}

impl ExternalHosts for LinuxHosts<'_> {
    fn has(&self, host: HostId) -> bool {
        self.kernels.has(host)
    }

    fn felt_after(&self) -> Span {
        self.felt_after
    }

    fn start_flow(&mut self, flow: FlowId, at: Time) -> Result<(), ExternalHostError> {
        let traffic = &self.flows[flow.index()];
        let bytes = if traffic.background { ENDLESS } else { traffic.size_bytes };
        let options = if self.has(traffic.dst) { &self.options } else { &self.whole_segments };
        // An MPTCP flow has no window of its own.
        let has_window = self.protocol == Protocol::Tcp;
        let sampled = self.windows_of.filter(|(flows, _)| has_window && flows.contains(&flow.0));
        let sampled = sampled.map(|(_, every)| options.clone().sample_every(every)).transpose()?;
        let options = sampled.as_ref().unwrap_or(options);
        let flow = KernelsFlow {
            id: u64::from(flow.0),
            host: 0,
            to: address_of(traffic.dst),
            port: PORT,
            bytes,
            protocol: self.protocol,
            control: self.control.name().to_owned(),
        };
        // The kernel and its number there are told by the sender.
        Ok(self.kernels.start_flow(traffic.src, flow, options, at)?)
    }

    fn deliver(&mut self, packet: &Packet, mut bytes: Vec<u8>, at: Time) -> Result<(), ExternalHostError> {
        if packet.flags.has(PacketFlags::CE) {
            mark_congestion(&mut bytes);
        }
        self.sessions.note_delivery(packet);
        Ok(self.kernels.deliver(packet.dst, &bytes, at)?)
    }

    fn frame(&mut self, packet: &Packet, at: Time) -> Result<Frame, ExternalHostError> {
        let (flow, from) = (packet.flow, packet.src);
        let traffic = &self.flows[flow.index()];
        if packet.kind == Kind::Syn && from == traffic.src && !self.sessions.is_open(flow) {
            let port = self.sessions.open_simulated(from, packet.dst, flow, traffic.size_bytes);
            self.known[flow.index()].get_or_insert_default().port = port;
        }
        let frame = self.sessions.write(packet, at);
        let wrong = || format!("a packet of simulated host {} is of no connection: {packet:?}", from.0);
        Ok(frame.ok_or_else(wrong)?)
    }

    fn reaches_simulated(&mut self, packet: &Packet, frame: &Frame, at: Time) {
        self.sessions.reaches_simulated(packet, frame, at);
    }

    fn next_event(&self) -> Option<Time> {
        self.kernels.next_event()
    }

    fn advance(&mut self, until: Time, sent: &mut Vec<ExternalPacket>) -> Result<Time, ExternalHostError> {
        let mut raw = std::mem::take(&mut self.sent);
        let reached = self.kernels.advance(until, &mut raw)?;
        // First: they say by which ports flows begin.
        self.take_reports();
        for (from, packet) in raw.drain(..) {
            sent.extend(self.sessions.read(from, packet));
        }
        if let Some(misfit) = self.sessions.misfit.take() {
            return Err(misfit.into());
        }
        self.sent = raw;
        Ok(reached)
    }

    fn take_ended(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.ended)
    }

    fn least_timeout(&self) -> Span {
        self.least_timeout
    }

    fn is_busy(&self) -> bool {
        self.programs.are_busy()
    }

    fn last_start(&self) -> Time {
        self.programs.last_start()
    }
}

/// How long what the card of one of these hosts begins to send is felt by no switch, and by no
/// other of them.
fn lookaheads(topology: &Topology, hosts: &[HostId], card: impl Fn(&LinkSpec) -> Card) -> (Span, Span) {
    let crossing = |link: usize| {
        let link = &topology.links[link];
        link.condition.delay + card(link).service(usize::from(HEADERS))
    };
    let least = |link: &dyn Fn(usize) -> usize| {
        hosts.iter().map(|host| crossing(link(host.index()))).min().unwrap_or_default()
    };
    // The first links are those away from hosts.
    let up = least(&|host| host);
    let down = least(&|host| topology.link_to_host[host] as usize);
    // A kernel counts whole nanoseconds.
    (up, (up + down).max(Span::from_ns(1)))
}

fn usual_control(transport: &TransportsSpec) -> CongestionControl {
    let of_marks = match transport {
        TransportsSpec::One(TransportSpec::Dctcp(_)) => true,
        TransportsSpec::One(TransportSpec::Mptcp(config)) => config.ecn == MptcpEcn::Dctcp,
        _ => false,
    };
    if of_marks { CongestionControl::Dctcp } else { CongestionControl::Cubic }
}

/// How many subflows a flow has, with MPTCP.
fn subflows(transport: &TransportsSpec) -> Option<u8> {
    match transport {
        TransportsSpec::One(TransportSpec::Mptcp(config)) => Some(config.subflows),
        _ => None,
    }
}

/// Payload and headers of a full packet: those of the transport, but that options are one of the
/// payload to the kernel: time stamps, and what MPTCP says in each segment.
fn segmentation(transport: &TransportsSpec) -> (u16, u16) {
    let Segmentation { mss, header } = full_packet(transport);
    let options = match transport {
        TransportsSpec::One(TransportSpec::Tcp(config)) => config.profile.timestamps(),
        TransportsSpec::One(TransportSpec::Dctcp(config)) => config.profile.timestamps(),
        TransportsSpec::One(TransportSpec::Mptcp(config)) => config.dss_option,
        _ => Bytes::ZERO,
    };
    let options = (options.as_u64() as u16).min(header.saturating_sub(HEADERS));
    (mss + options, header - options)
}

/// Header that the load balancer adds to each packet.
fn overlay(linux: &LinuxSpec, scheme: &SchemeSpec) -> Bytes {
    let adds = scheme.switch_hooks() != SwitchHooks::NONE || scheme.host_hooks().on_send;
    linux.overlay.unwrap_or_else(|| Bytes::new(if adds { OVERLAY } else { 0 }))
}

/// Settings of each host: first those of the transport, then those of the spec itself.
fn settings(linux: &LinuxSpec, transport: &TransportsSpec) -> Result<Vec<(String, String)>, Error> {
    // A run's flows know nothing of those before them, as simulated ones.
    let mut set = vec![("net/ipv4/tcp_no_metrics_save".to_owned(), "1".to_owned())];
    let is_classic = match transport {
        TransportsSpec::One(TransportSpec::Tcp(config)) => config.ecn == EcnMode::Classic,
        TransportsSpec::One(TransportSpec::Mptcp(config)) => config.ecn == MptcpEcn::Classic,
        _ => false,
    };
    if is_classic {
        set.push(("net/ipv4/tcp_ecn".to_owned(), "1".to_owned()));
    }
    if let Some(subflows) = subflows(transport) {
        set.push(Knob::named("mptcp_subflows")?.setting(u64::from(subflows))?);
    }
    set.extend(linux.settings()?);
    Ok(set)
}
