//! A world for tests: hosts at one switch, each by a cable of the same rate and delay. Its clock is
//! the order of its own events; everything else is the guest's.
#![allow(dead_code, clippy::unwrap_used)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use weft_linux_hosts::codec::mark_congestion;
use weft_linux_hosts::{
    Card, Connection, Error, Flow, FlowOptions, Guest, Host, HostAddress, Listener, Machine, Protocol,
    Report, Sent, Setup, TcpInfo,
};
use weft_units::{Rate, Span, Time};

/// Properties of the switch and its cables.
#[derive(Debug, Clone, Copy)]
pub struct Fabric {
    pub hosts: usize,
    pub rate: Rate,
    /// Delay of one cable.
    pub delay: Span,
    /// Bytes of IP packets that wait for one port, at most.
    pub limit_bytes: u64,
    /// A packet that finds this many bytes waiting is marked, if it may be.
    pub mark_from_bytes: u64,
    pub segmentation: bool,
}

impl Fabric {
    pub fn new(hosts: usize, rate: Rate, delay: Span) -> Self {
        Self { hosts, rate, delay, limit_bytes: u64::MAX, mark_from_bytes: u64::MAX, segmentation: true }
    }

    pub fn card(&self) -> Card {
        // A packet crosses two cables before anybody feels it.
        let lookahead = self.delay + self.delay;
        Card { segmentation: self.segmentation, ..Card::ethernet(self.rate, lookahead) }
    }

    pub fn setup(&self, image: PathBuf, control: &str, seed: u64) -> Setup {
        let settings = vec![("net/ipv4/tcp_no_metrics_save".to_owned(), "1".to_owned())];
        let host = |number| Host {
            address: HostAddress { address: address(number), prefix_bits: 8 },
            card: self.card(),
            settings: settings.clone(),
        };
        let listener =
            |(host, (port, protocol))| Listener { host, port, protocol, control: control.to_owned() };
        let ports = [(PORT, Protocol::Tcp), (MPTCP_PORT, Protocol::Mptcp)];
        Setup {
            image,
            hosts: (0..self.hosts).map(host).collect(),
            listeners: (0..self.hosts)
                .flat_map(|host| ports.map(|port| (host, port)))
                .map(listener)
                .collect(),
            seed,
            memory_mib: 512,
            patience: Duration::from_secs(60),
            log: None,
        }
    }
}

pub const PORT: u16 = 5_000;
pub const MPTCP_PORT: u16 = 5_001;

pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + host as u32)
}

pub fn flow(id: u64, host: usize, to: usize, bytes: u64, control: &str) -> Flow {
    let control = control.to_owned();
    Flow { id, host, to: address(to), port: PORT, bytes, protocol: Protocol::Tcp, control }
}

/// The kernel, or `None` and a word why a test does nothing. `.ci/run` insists on it.
pub fn kernel() -> Option<PathBuf> {
    match weft_linux_hosts::find() {
        Ok(image) => Some(image),
        Err(error) if std::env::var_os("WEFT_NEEDS_LINUX_HOSTS").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A packet on its way to the switch.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    from: usize,
    packet: Vec<u8>,
}

/// An output of the switch.
#[derive(Debug, Clone, Default)]
struct Port {
    busy_until: Time,
    /// Packets that wait or are being sent: when the last bit leaves, and bytes of the IP packet.
    waiting: std::collections::VecDeque<(Time, u64)>,
    bytes: u64,
}

/// How a flow came out.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub started: Option<Time>,
    pub sport: u16,
    pub connected: Option<Time>,
    pub last: Option<Time>,
    pub bytes: u64,
    pub retransmits: u64,
    pub marks: u64,
    pub failed: Option<String>,
}

impl Outcome {
    pub fn fct(&self) -> Span {
        self.last.unwrap().since(self.started.unwrap())
    }
}

pub struct World<G> {
    pub guest: G,
    pub fabric: Fabric,
    pub drops: u64,
    pub marks: u64,
    pub packets: u64,
    /// Each packet that a host sent, in order: when and which host, then its bytes.
    pub trace: Vec<(u64, usize, Vec<u8>)>,
    /// Bytes that each packet found waiting at its output.
    pub queue: Vec<(Time, usize, u64)>,
    pub flows: Vec<Outcome>,
    /// Counters of the kernel for flows of TCP, in the order in which they ended.
    pub infos: Vec<TcpInfo>,
    /// Reports that are not of the beginning or end of a flow.
    pub others: Vec<(Time, Report)>,
    ports: Vec<Port>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    reached: Time,
}

impl World<Machine> {
    pub fn start(fabric: Fabric, setup: &Setup) -> Result<Self, Error> {
        Ok(Self::around(Machine::start(setup)?, fabric))
    }

    pub fn run_flows(&mut self, flows: &[(Flow, Time)]) -> Result<(), Error> {
        self.run_flows_with(flows, &FlowOptions::default())
    }

    pub fn run_flows_with(&mut self, flows: &[(Flow, Time)], options: &FlowOptions) -> Result<(), Error> {
        self.flows = vec![Outcome::default(); flows.len()];
        for (flow, at) in flows {
            self.guest.start_flow_with(flow, options, *at)?;
        }
        let longest = Time::ZERO + Span::from_s(100);
        while !self.is_done() && self.reached < longest {
            self.step(longest)?;
            self.take_reports(flows);
        }
        assert!(self.is_done(), "not all flows are done: {:?}", self.flows);
        Ok(())
    }

    pub fn samples(&self) -> impl Iterator<Item = (Time, &Connection)> {
        self.others.iter().filter_map(|(at, report)| match report {
            Report::Sample(sample) => Some((*at, sample)),
            _ => None,
        })
    }

    fn is_done(&self) -> bool {
        self.flows.iter().all(|f| f.failed.is_some() || (f.connected.is_some() && f.last.is_some()))
    }

    fn take_reports(&mut self, flows: &[(Flow, Time)]) {
        let reports: Vec<_> = self.guest.reports().collect();
        for (at, report) in reports {
            match report {
                Report::Started { id, port, at } => {
                    let outcome = &mut self.flows[id as usize];
                    (outcome.started, outcome.sport) = (Some(at), port);
                }
                Report::Closed { id, connected, info, .. } => {
                    let outcome = &mut self.flows[id as usize];
                    outcome.connected = Some(connected);
                    if let Some(info) = info {
                        (outcome.retransmits, outcome.marks) = (info.retransmits, info.delivered_ce);
                        self.infos.push(*info);
                    }
                }
                Report::Received(r) => {
                    let is_it = |(o, (f, _)): (&Outcome, &(Flow, Time))| {
                        o.sport == r.from_port && address(f.host) == r.from && f.to == address(r.host)
                    };
                    let id = self.flows.iter().zip(flows).position(is_it).unwrap();
                    (self.flows[id].last, self.flows[id].bytes) = (Some(r.last), r.bytes);
                }
                Report::Failed { id, what } => self.flows[id as usize].failed = Some(what),
                other => self.others.push((at, other)),
            }
        }
    }
}

impl<G: Guest> World<G> {
    pub fn around(guest: G, fabric: Fabric) -> Self {
        Self {
            guest,
            fabric,
            drops: 0,
            marks: 0,
            packets: 0,
            trace: Vec::new(),
            queue: Vec::new(),
            flows: Vec::new(),
            infos: Vec::new(),
            others: Vec::new(),
            ports: vec![Port::default(); fabric.hosts],
            arrivals: BinaryHeap::new(),
            reached: Time::ZERO,
        }
    }

    /// Steps until so much time has passed.
    pub fn run_for(&mut self, span: Span) -> Result<(), Error> {
        let until = self.reached + span;
        while self.reached < until {
            self.step(until)?;
        }
        Ok(())
    }

    /// Lets the guest go on as far as is known, then works off what is certain to come next at the
    /// switch.
    pub fn step(&mut self, longest: Time) -> Result<(), Error> {
        let delay = self.fabric.delay;
        // What is at the switch at t is felt by a host after t and the delay of its cable.
        let known = self.arrivals.peek().map_or(longest, |Reverse(a)| a.at + delay);
        let mut sent = Vec::new();
        self.reached = self.guest.advance(known.min(longest), &mut sent)?;
        for Sent { host, begins, packet } in sent {
            self.packets += 1;
            self.trace.push((begins.as_ps(), host, packet.clone()));
            let at = begins + self.fabric.card().service(packet.len()) + delay;
            self.arrivals.push(Reverse(Arrival { at, from: host, packet }));
        }
        // What is sent from now on comes to the switch no earlier than this.
        let certain = self.reached + delay;
        while self.arrivals.peek().is_some_and(|Reverse(a)| a.at < certain) {
            if let Some(Reverse(arrival)) = self.arrivals.pop() {
                self.at_switch(arrival)?;
            }
        }
        Ok(())
    }

    fn at_switch(&mut self, Arrival { at, mut packet, .. }: Arrival) -> Result<(), Error> {
        let to = u32::from_be_bytes(packet[16..20].try_into().unwrap()).wrapping_sub(0x0a00_0001) as usize;
        let Some(port) = self.ports.get_mut(to) else { return Ok(()) };
        while port.waiting.front().is_some_and(|(until, _)| *until <= at) {
            port.bytes -= port.waiting.pop_front().unwrap().1;
        }
        let bytes = packet.len() as u64;
        self.queue.push((at, to, port.bytes));
        if port.bytes + bytes > self.fabric.limit_bytes {
            self.drops += 1;
            return Ok(());
        }
        if port.bytes >= self.fabric.mark_from_bytes && mark_congestion(&mut packet) {
            self.marks += 1;
        }
        port.busy_until = port.busy_until.max(at) + self.fabric.card().service(packet.len());
        port.waiting.push_back((port.busy_until, bytes));
        port.bytes += bytes;
        self.guest.deliver(to, &packet, port.busy_until + self.fabric.delay)
    }
}
