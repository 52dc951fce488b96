//! A kernel with its hosts, as a world drives it.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use weft_units::Time;

use crate::agent::{self, Flow, HostAddress, Listener};
use crate::card::Card;
use crate::clock::{EPOCH_NS, from_ns, from_ps, to_ns};
use crate::error::{Error, Fault};
use crate::guest::{Guest, Sent};
use crate::kernel::{self, Kernel};
use crate::knobs::FlowOptions;
use crate::link::{Link, Trouble};
use crate::process::Socket;
use crate::program::Program;
use crate::report::{self, Report};
use crate::wire::{Message, Record, parse_records};

/// The hosts of one kernel, at most.
pub const MAX_HOSTS: usize = 256;

/// One host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Address of the host.
    pub address: HostAddress,
    /// Card of the host.
    pub card: Card,
    /// Settings of the host, in this order: a file below `/proc/sys` of its namespace, e.g.
    /// `("net/ipv4/tcp_sack", "0")`, or whatever [`Knob::setting`](crate::Knob::setting) gives.
    pub settings: Vec<(String, String)>,
}

/// Setup of a kernel and its hosts.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The kernel's file; see [`find`](crate::find).
    pub image: PathBuf,
    /// 1 to 256 hosts, each with a network namespace of its own.
    pub hosts: Vec<Host>,
    /// Where flows may arrive.
    pub listeners: Vec<Listener>,
    /// All that is random in the kernel comes from it: ports, sequence numbers, hashes.
    pub seed: u64,
    /// Memory in MiB. It is taken as it is used; the kernel's limits for sockets depend on it.
    pub memory_mib: u32,
    /// How long a step may take on the wall clock before the kernel is said to hang.
    pub patience: Duration,
    /// Where the kernel's log is kept. Without, it is gone at the end; errors show its last lines
    /// in any case.
    pub log: Option<PathBuf>,
}

/// Input that waits to be handed over: in order of time, then of being delivered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Input {
    at_ns: u64,
    number: u64,
    what: What,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Packet { card: usize, bytes: Vec<u8> },
    Line(String),
}

impl What {
    fn bytes(&self) -> usize {
        match self {
            Self::Packet { bytes, .. } => bytes.len(),
            Self::Line(line) => line.len(),
        }
    }
}

/// A running kernel with its hosts.
///
/// The thread that starts it must outlive it: the system ends a kernel with the thread that started
/// it.
#[derive(Debug)]
pub struct Machine {
    running: Option<(Kernel, Link)>,
    cards: Vec<CardState>,
    inputs: BinaryHeap<Reverse<Input>>,
    delivered: u64,
    reached_ns: u64,
    next_ns: u64,
    patience: Duration,
    message: Message,
    reports: VecDeque<(Time, Report)>,
    /// Bytes of output that each program may still report.
    rooms: BTreeMap<u64, u64>,
    steps: u64,
}

#[derive(Debug, Clone, Copy)]
struct CardState {
    card: Card,
    /// When the last packet that it sends is over, by the kernel's clock.
    sends_until_ps: u64,
}

impl Machine {
    /// Starts a kernel and makes its hosts. The run begins when it returns; booting takes no time
    /// of it.
    ///
    /// # Errors
    /// A setup that cannot be, or a kernel that does not start or is not ready in time.
    pub fn start(setup: &Setup) -> Result<Self, Error> {
        if setup.hosts.is_empty() || setup.hosts.len() > MAX_HOSTS {
            return Err(Error::Hosts { found: setup.hosts.len() });
        }
        setup.hosts.iter().try_for_each(|host| host.card.check())?;
        let lines = first_lines(setup)?;
        let parameters = parameters(setup)?;

        let (near, far) = Socket::pair().map_err(Error::Link)?;
        let link = Link::new(near, setup.patience).map_err(Error::Link)?;
        let options =
            kernel::Options { memory_mib: setup.memory_mib, seed: setup.seed, parameters: &parameters };
        let kernel = Kernel::start(&setup.image, far, &options, setup.log.as_deref())?;
        let card = |host: &Host| CardState { card: host.card, sends_until_ps: EPOCH_NS * 1_000 };
        let mut machine = Self {
            running: Some((kernel, link)),
            cards: setup.hosts.iter().map(card).collect(),
            inputs: BinaryHeap::new(),
            delivered: 0,
            reached_ns: 0,
            next_ns: 0,
            patience: setup.patience,
            message: Message::new(),
            reports: VecDeque::new(),
            rooms: BTreeMap::new(),
            steps: 0,
        };
        machine.boot(lines)?;
        Ok(machine)
    }

    fn boot(&mut self, lines: Vec<String>) -> Result<(), Error> {
        for (number, state) in self.cards.iter().enumerate() {
            self.message.card(number, &state.card);
        }
        let Self { running, message, cards, .. } = self;
        let Some((_, link)) = running else { return Err(Error::Gone) };
        let greeted = link.greet(message.setup(cards.len()));
        self.next_ns = greeted.map_err(|trouble| self.fail(trouble))?;
        for line in lines {
            self.push(0, What::Line(line));
        }
        self.advance(Time::ZERO, &mut Vec::new())?;
        match self.reports.pop_front() {
            Some((_, Report::Ready)) if self.reports.is_empty() => Ok(()),
            _ => Err(self.fail(Trouble::Fault(Fault::NotReady))),
        }
    }

    /// A flow begins at `at`.
    ///
    /// # Errors
    /// No such host, an instant that has passed, or a name of a congestion control that is none.
    pub fn start_flow(&mut self, flow: &Flow, at: Time) -> Result<(), Error> {
        self.start_flow_with(flow, &FlowOptions::default(), at)
    }

    /// A flow begins at `at`, with options of its own.
    ///
    /// # Errors
    /// As [`Machine::start_flow`].
    pub fn start_flow_with(&mut self, flow: &Flow, options: &FlowOptions, at: Time) -> Result<(), Error> {
        let at_ns = self.check_instant(flow.host, 0, at)?;
        self.push(at_ns, What::Line(agent::flow_line(flow, options)?));
        Ok(())
    }

    /// A program begins at `at`. Its output comes as [`Report::Output`], its end as
    /// [`Report::Ended`].
    ///
    /// # Errors
    /// No such host, an instant that has passed, a number that another program has, or words that
    /// cannot be told: one with a zero in it, more than 512, more than 4,000 bytes in all, or a
    /// folder that is no full path.
    pub fn start_program(&mut self, program: &Program, at: Time) -> Result<(), Error> {
        let at_ns = self.check_instant(program.host, 0, at)?;
        let line = agent::program_line(program)?;
        if self.rooms.insert(program.id, program.output_limit_bytes).is_some() {
            return Err(Error::ProgramTwice { id: program.id });
        }
        self.push(at_ns, What::Line(line));
        Ok(())
    }

    /// A program and all that it has started get a signal at `at`, e.g. 15; nothing happens if it
    /// is not running then.
    ///
    /// # Errors
    /// An instant that has passed.
    pub fn signal_program(&mut self, program: u64, signal: u8, at: Time) -> Result<(), Error> {
        let at_ns = self.check_instant(0, 0, at)?;
        self.push(at_ns, What::Line(agent::signal_line(program, signal)));
        Ok(())
    }

    /// Takes the reports of the agent since the last call, each with its instant.
    pub fn reports(&mut self) -> impl Iterator<Item = (Time, Report)> + '_ {
        self.reports.drain(..)
    }

    /// Ends the kernel. Dropping it does the same.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// The number of the kernel's process and of the group of all its processes; `None` when it is
    /// gone.
    pub fn process(&self) -> Option<u32> {
        self.running.as_ref().map(|(kernel, _)| kernel.process())
    }

    /// CPU seconds that the kernel has taken, and the processes of its hosts that there are now. 0
    /// when it is gone, or where the system does not say.
    pub fn cpu_s(&self) -> f64 {
        self.running.as_ref().map_or(0.0, |(kernel, _)| kernel.cpu_s())
    }

    /// How many times Weft and the kernel have exchanged messages: what a run costs beside the
    /// kernel's own work.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn push(&mut self, at_ns: u64, what: What) {
        self.delivered += 1;
        self.inputs.push(Reverse(Input { at_ns, number: self.delivered, what }));
    }

    fn check_instant(&self, host: usize, bytes: usize, at: Time) -> Result<u64, Error> {
        let refuse = |why| Err(Error::Undeliverable { host, bytes, at, why });
        if host >= self.cards.len() {
            return refuse("there is no such host");
        }
        let at_ns = to_ns(at);
        if at_ns < self.reached_ns { refuse("the host has passed that instant") } else { Ok(at_ns) }
    }

    /// Fills the message with what comes before `until_ns`; returns the instant until which the
    /// kernel may run with that.
    fn fill_message(&mut self, until_ns: u64) -> u64 {
        self.message.clear();
        while let Some(Reverse(first)) = self.inputs.peek() {
            if first.at_ns >= until_ns {
                break;
            }
            if !self.message.has_room_for(first.what.bytes()) {
                return first.at_ns;
            }
            if let Some(Reverse(input)) = self.inputs.pop() {
                match input.what {
                    What::Packet { card, bytes } => self.message.packet(card, input.at_ns, &bytes),
                    What::Line(line) => self.message.text(input.at_ns, &line),
                }
            }
        }
        until_ns
    }

    /// Lets the kernel run what is before `until_ns` with the message; returns its next event.
    fn exchange(&mut self, until_ns: u64, sent: &mut Vec<Sent>) -> Result<u64, Error> {
        self.steps += 1;
        let Self { running, cards, reports, rooms, message, reached_ns, .. } = self;
        let Some((_, link)) = running else { return Err(Error::Gone) };
        let mut intake = Intake { cards, reports, rooms, sent, began_ns: *reached_ns };
        let result = link.step(message.run(until_ns), |body| intake.take(body));
        result.map_err(|trouble| self.fail(trouble))
    }

    /// Ends the kernel and makes one message of what went wrong.
    fn fail(&mut self, trouble: Trouble) -> Error {
        let at = from_ns(self.reached_ns).unwrap_or(Time::ZERO);
        let Some((mut kernel, _)) = self.running.take() else { return Error::Gone };
        let status = kernel.end();
        let log = kernel.log_end();
        match trouble {
            Trouble::Closed => Error::Ended { at, status, log },
            Trouble::Late => Error::Hangs { at, seconds: self.patience.as_secs(), log },
            Trouble::Fault(fault) => Error::Broken { at, fault, log },
        }
    }

    /// The agent's own word that nothing goes on, if it said so.
    fn agent_error(&mut self) -> Option<Error> {
        let (at, what) = self.reports.iter().find_map(|(at, report)| match report {
            Report::Error(what) => Some((*at, what.clone())),
            _ => None,
        })?;
        self.running = None;
        Some(Error::Agent { at, what })
    }
}

impl Guest for Machine {
    fn next_event(&self) -> Option<Time> {
        let input = self.inputs.peek().map_or(u64::MAX, |Reverse(input)| input.at_ns);
        from_ns(self.next_ns.min(input).max(self.reached_ns))
    }

    fn deliver(&mut self, host: usize, packet: &[u8], at: Time) -> Result<(), Error> {
        let at_ns = self.check_instant(host, packet.len(), at)?;
        if packet.is_empty() || packet.len() > self.cards[host].card.mtu as usize {
            let why = "it is empty, or longer than the card's MTU";
            return Err(Error::Undeliverable { host, bytes: packet.len(), at, why });
        }
        self.push(at_ns, What::Packet { card: host, bytes: packet.to_vec() });
        Ok(())
    }

    fn advance(&mut self, until: Time, sent: &mut Vec<Sent>) -> Result<Time, Error> {
        let until_ns = to_ns(until);
        while self.reached_ns < until_ns {
            let input_ns = self.inputs.peek().map_or(u64::MAX, |Reverse(input)| input.at_ns);
            if self.next_ns.min(input_ns) >= until_ns {
                self.reached_ns = until_ns;
                break;
            }
            let bound_ns = self.fill_message(until_ns);
            let first_new = sent.len();
            let next_ns = self.exchange(bound_ns, sent)?;
            let stop_ns = sent[first_new..].iter().map(|s| stop_after(s, &self.cards)).min();
            let reached_ns = bound_ns.min(stop_ns.unwrap_or(u64::MAX));
            if next_ns < reached_ns {
                return Err(self.fail(Fault::Time { next_ns, until_ns: reached_ns }.into()));
            }
            (self.next_ns, self.reached_ns) = (next_ns, reached_ns);
            if let Some(error) = self.agent_error() {
                return Err(error);
            }
            if stop_ns.is_some() {
                break;
            }
        }
        let reached = from_ns(self.reached_ns).unwrap_or(Time::ZERO);
        Ok(reached.min(until))
    }
}

/// Where the kernel stops because of a packet, as `card_xmit` of `weft_cards.c` reckons.
fn stop_after(sent: &Sent, cards: &[CardState]) -> u64 {
    EPOCH_NS + sent.begins.as_ps() / 1_000 + cards[sent.host].card.lookahead_ns()
}

/// Takes the records of a step.
struct Intake<'a> {
    cards: &'a mut [CardState],
    reports: &'a mut VecDeque<(Time, Report)>,
    rooms: &'a mut BTreeMap<u64, u64>,
    sent: &'a mut Vec<Sent>,
    began_ns: u64,
}

impl Intake<'_> {
    fn take(&mut self, body: &[u8]) -> Result<(), Fault> {
        for record in parse_records(body) {
            match record? {
                Record::Packet { card, begins_ps, bytes } => self.take_packet(card, begins_ps, bytes)?,
                Record::Text { at_ns, line } => {
                    let report = report::parse_report(line)?;
                    if let Report::Output { program, bytes, .. } = &report {
                        self.take_output(*program, bytes.len() as u64)?;
                    }
                    self.reports.push_back((from_ns(at_ns).unwrap_or(Time::ZERO), report));
                }
            }
        }
        Ok(())
    }

    /// No more output is kept than was to be.
    fn take_output(&mut self, program: u64, bytes: u64) -> Result<(), Fault> {
        let room = self.rooms.get_mut(&program).ok_or(Fault::Output(program))?;
        *room = room.checked_sub(bytes).ok_or(Fault::Output(program))?;
        Ok(())
    }

    fn take_packet(&mut self, card: usize, begins_ps: u64, bytes: &[u8]) -> Result<(), Fault> {
        let state = self.cards.get_mut(card).ok_or(Fault::NoSuchCard(card))?;
        if bytes.is_empty() || bytes.len() > state.card.mtu as usize {
            return Err(Fault::PacketLength { card, bytes: bytes.len() });
        }
        let wrong_time = Fault::PacketTime { card, begins_ps };
        if begins_ps < state.sends_until_ps || begins_ps < self.began_ns.saturating_mul(1_000) {
            return Err(wrong_time);
        }
        let ends_ps =
            begins_ps.checked_add(state.card.service(bytes.len()).as_ps()).ok_or(wrong_time.clone())?;
        let begins = from_ps(begins_ps).ok_or(wrong_time)?;
        state.sends_until_ps = ends_ps;
        self.sent.push(Sent { host: card, begins, packet: bytes.to_vec() });
        Ok(())
    }
}

/// Lines for the agent before the run: hosts, their settings, listeners.
fn first_lines(setup: &Setup) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for (number, host) in setup.hosts.iter().enumerate() {
        lines.push(agent::host_line(number, &host.address)?);
        for (path, value) in &host.settings {
            if agent::parameter(path, value).is_none() {
                lines.push(agent::set_line(number, path, value)?);
            }
        }
    }
    for listener in &setup.listeners {
        if listener.host >= setup.hosts.len() {
            return Err(Error::Untellable { what: format!("a listener at host {}", listener.host) });
        }
        lines.push(agent::listen_line(listener)?);
    }
    lines.push("ready".to_owned());
    Ok(lines)
}

/// Parameters of the kernel's command line: those that any host has, and none has another value of.
fn parameters(setup: &Setup) -> Result<Vec<String>, Error> {
    let settings = setup.hosts.iter().flat_map(|host| &host.settings);
    let mut all: BTreeMap<&str, String> = BTreeMap::new();
    for (path, value) in settings {
        let Some(parameter) = agent::parameter(path, value).transpose()? else { continue };
        match all.entry(path.as_str()) {
            Entry::Vacant(first) => drop(first.insert(parameter)),
            Entry::Occupied(one) if *one.get() == parameter => {}
            Entry::Occupied(one) => {
                return Err(Error::Disagree { one: one.get().clone(), other: parameter });
            }
        }
    }
    Ok(all.into_values().collect())
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
