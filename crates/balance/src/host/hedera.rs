//! Hedera: a central controller asks for the large flows, works out what they need, and places them
//! on paths with room (Al-Fares et al., NSDI 2010).
//!
//! The controller runs on a host of the fabric. Every `interval` it sends a poll to every host. A
//! host answers with its large flows: those that sent at least `large` of its cable's rate since
//! the poll before. `control_delay` after the poll the controller estimates demands ([`demands`]),
//! places the flows ([`placement`]), and sends each host the paths of its flows. All other flows,
//! and large ones without a place, go by ECMP. All of it is packets, those to the controller's own
//! host too: they go by its leaf.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{FlowId, HostId, Kind, Packet, Route};
use weft_units::{Rate, Span, Time};

use crate::registry::Parameters;
use crate::{FabricFacts, HostContext, HostHooks, HostInfo, HostScheme, Message, ParameterError};

mod demands;
mod placement;

use demands::Demand;
use placement::{Annealing, Wish};

/// Parameters of Hedera.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time from one poll to the next. A run that is shorter is ECMP. Source: 5s on the paper's
    /// testbed, from memory.
    pub interval: Span,
    /// Time from a poll until the paths leave the controller: for the answers, the computation and
    /// the installation. Less than `interval`, and at least a round trip. Source: a choice, the
    /// order of a rule's installation in a switch.
    pub control_delay: Span,
    /// Share of its host's cable from which a flow is large, above 0 to 1. Source: 10 % in the
    /// paper, from memory.
    pub large: f64,
    /// How large flows are placed. Source: the paper has both.
    pub placement: Placement,
    /// Steps of simulated annealing. Source: 1000 in the paper, from memory.
    pub steps: u32,
    /// The host that the controller runs on. Source: a choice; the paper has a machine of its own
    /// beside the fabric.
    pub controller: u16,
}

/// How large flows are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Each flow on the first path with room; it stays there while it is large.
    #[default]
    FirstFit,
    /// All flows anew, by simulated annealing.
    Annealing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            interval: Span::from_s(5),
            control_delay: Span::from_ms(10),
            large: 0.1,
            placement: Placement::default(),
            steps: 1_000,
            controller: 0,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if self.interval.is_zero() {
            return refuse("interval", "0".to_owned(), "more than 0, as in \"100ms\"");
        }
        if self.control_delay >= self.interval {
            return refuse("control_delay", self.control_delay.to_string(), "less than interval");
        }
        if !(self.large > 0.0 && self.large <= 1.0) {
            return refuse("large", self.large.to_string(), "above 0 to 1");
        }
        if !(1..=1_000_000).contains(&self.steps) {
            return refuse("steps", self.steps.to_string(), "1 to 1000000");
        }
        Ok(())
    }

    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if u32::from(self.controller) >= fabric.hosts() {
            return refuse("controller", self.controller.to_string(), "a host of the fabric, from 0");
        }
        if self.control_delay < fabric.base_rtt() {
            return refuse(
                "control_delay",
                self.control_delay.to_string(),
                "at least the fabric's round trip",
            );
        }
        Ok(())
    }
}

/// Kinds of messages.
mod tag {
    pub const POLL: u32 = 1;
    pub const REPORT: u32 = 2;
    pub const PATHS: u32 = 3;
}

/// Timers of the controller.
mod timer {
    pub const POLL: u32 = 0;
    pub const PLACE: u32 = 1;
}

/// Ethernet, IP and TCP headers of a message.
const HEADER_BYTES: u16 = 58;
/// A five-tuple and a counter, or a five-tuple and a path.
const ENTRY_BYTES: u16 = 24;
/// Entries in a frame of 1,500 bytes.
const ENTRIES_PER_MESSAGE: usize = 60;
/// No path was set.
const NO_LABEL: u16 = u16::MAX;

/// A live flow that this host sends.
#[derive(Debug, Clone, Copy)]
struct Sending {
    flow: FlowId,
    dst: HostId,
    bytes: u64,
    label: u16,
}

/// Hedera at one host.
#[derive(Debug, Clone)]
pub struct Hedera {
    params: Params,
    rack: u16,
    rate: Rate,
    /// Flows of this host, in places that are used again.
    sending: Vec<Option<Sending>>,
    free: Vec<u32>,
    polled: Time,
    controller: Option<Box<Controller>>,
    counts: Counts,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    messages: u64,
    message_bytes: u64,
    large: u64,
    placed: u64,
    moved: u64,
}

/// State of the controller.
#[derive(Debug, Clone, Default)]
struct Controller {
    /// Large flows of this round, by number: source and destination.
    reported: BTreeMap<u32, (HostId, HostId)>,
    /// The path of each large flow that has one.
    placed: BTreeMap<u32, u16>,
    annealing: Annealing,
}

/// One flow at one end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    /// One more than its place at the sending host; 0 before its first data.
    place: u32,
}

impl Hedera {
    fn place_of(&mut self, flow: &mut Flow, packet: &Packet) -> &mut Option<Sending> {
        if flow.place == 0 {
            let sending = Sending { flow: packet.flow, dst: packet.dst, bytes: 0, label: NO_LABEL };
            let place = self.free.pop().unwrap_or(self.sending.len() as u32);
            if place as usize == self.sending.len() {
                self.sending.push(None);
            }
            self.sending[place as usize] = Some(sending);
            flow.place = place + 1;
        }
        &mut self.sending[flow.place as usize - 1]
    }

    fn send<C: HostContext + ?Sized>(&mut self, cx: &mut C, peer: HostId, tag: u32, entries: &[[u32; 2]]) {
        let message = Message {
            peer,
            wire_bytes: HEADER_BYTES + ENTRY_BYTES * entries.len() as u16,
            entropy: u32::from(peer.0),
            tag,
            stamp: cx.now(),
            contents: (!entries.is_empty()).then(|| Arc::from(entries.concat())),
            ..Message::default()
        };
        self.counts.messages += 1;
        self.counts.message_bytes += u64::from(message.wire_bytes);
        cx.send(message);
    }

    /// Answers a poll: the flows that were large since the poll before.
    fn report<C: HostContext + ?Sized>(&mut self, cx: &mut C, controller: HostId) {
        let elapsed = cx.now().since(self.polled);
        self.polled = cx.now();
        // Bits, at `large` of the rate for as long.
        let least_bits = self.params.large * self.rate.as_bps() as f64 * elapsed.as_ps() as f64 / 1e12;
        let mut large: Vec<[u32; 2]> = Vec::new();
        for sending in self.sending.iter_mut().flatten() {
            let bits = std::mem::take(&mut sending.bytes) as f64 * 8.0;
            if bits >= least_bits && bits > 0.0 {
                large.push([sending.flow.0, u32::from(sending.dst.0)]);
            }
        }
        for entries in large.chunks(ENTRIES_PER_MESSAGE) {
            self.send(cx, controller, tag::REPORT, entries);
        }
    }

    /// Takes the paths that the controller chose. A flow that ended meanwhile has none to take.
    fn take_paths(&mut self, entries: &[u32]) {
        for entry in entries.chunks_exact(2) {
            let (number, label) = (entry[0], entry[1] as u16);
            let flow = self.sending.iter_mut().flatten().find(|sending| sending.flow.0 == number);
            if let Some(sending) = flow {
                self.counts.moved += u64::from(sending.label != label);
                sending.label = label;
            }
        }
    }

    /// The controller polls everybody.
    fn poll<C: HostContext + ?Sized>(&mut self, cx: &mut C, controller: &mut Controller) {
        controller.reported.clear();
        for host in 0..cx.hosts() {
            self.send(cx, HostId(host as u16), tag::POLL, &[]);
        }
        cx.set_host_timer(self.params.control_delay, timer::PLACE);
        cx.set_host_timer(self.params.interval, timer::POLL);
    }

    /// The controller places what was reported.
    fn place<C: HostContext + ?Sized>(&mut self, cx: &mut C, controller: &mut Controller) {
        let numbers: Vec<u32> = controller.reported.keys().copied().collect();
        let ends: Vec<(HostId, HostId)> = controller.reported.values().copied().collect();
        let mut demands: Vec<Demand> = ends.iter().map(|(src, dst)| Demand::between(src.0, dst.0)).collect();
        demands::estimate(&mut demands);
        let wish = |index: usize| Wish {
            dst: ends[index].1.0,
            bps: demands[index].share * self.rate.as_bps() as f64,
            paths: paths(cx, ends[index]),
            placed: controller.placed.get(&numbers[index]).copied(),
        };
        let wishes: Vec<Wish> = (0..numbers.len()).map(wish).collect();
        let labels = match self.params.placement {
            Placement::FirstFit => placement::first_fit(&wishes),
            Placement::Annealing => controller.annealing.search(&wishes, self.params.steps, cx.random()),
        };
        self.counts.large += numbers.len() as u64;
        self.counts.placed += labels.iter().flatten().count() as u64;
        let mut news: BTreeMap<HostId, Vec<[u32; 2]>> = BTreeMap::new();
        let mut placed = BTreeMap::new();
        for ((&number, (src, _)), label) in numbers.iter().zip(&ends).zip(labels) {
            let Some(label) = label else { continue };
            if controller.placed.get(&number) != Some(&label) {
                news.entry(*src).or_default().push([number, u32::from(label)]);
            }
            placed.insert(number, label);
        }
        controller.placed = placed;
        for (host, entries) in news {
            for entries in entries.chunks(ENTRIES_PER_MESSAGE) {
                self.send(cx, host, tag::PATHS, entries);
            }
        }
    }

    /// Lets the controller act, if it is here.
    fn with_controller<C: HostContext + ?Sized>(
        &mut self,
        cx: &mut C,
        act: impl FnOnce(&mut Self, &mut C, &mut Controller),
    ) {
        if let Some(mut controller) = self.controller.take() {
            act(self, cx, &mut controller);
            self.controller = Some(controller);
        }
    }
}

/// The paths between two hosts, by label, from the controller's map. None within a rack.
fn paths<C: HostContext + ?Sized>(cx: &C, (src, dst): (HostId, HostId)) -> Vec<Vec<placement::Link>> {
    let (from, to) = (cx.rack_of(src), cx.rack_of(dst));
    if from == to {
        return Vec::new();
    }
    let links = |label| {
        let path = cx.path(from, to, label);
        path.into_iter().map(|(number, rate)| placement::Link { number, bps: rate.as_bps() as f64 }).collect()
    };
    (0..cx.routes_between(from, to)).map(links).collect()
}

impl HostScheme for Hedera {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        let controls = info.host.0 == params.controller;
        Self {
            params: params.clone(),
            rack: info.rack,
            rate: info.rate,
            sending: Vec::new(),
            free: Vec::new(),
            polled: Time::ZERO,
            controller: controls.then(|| Box::new(Controller::default())),
            counts: Counts::default(),
        }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, pinned: true, traces: false }
    }

    fn start<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        if self.controller.is_some() {
            cx.set_host_timer(self.params.interval, timer::POLL);
        }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        if packet.kind != Kind::Data || cx.rack_of(packet.dst) == self.rack {
            return;
        }
        let wire_bytes = packet.wire_bytes;
        if let Some(sending) = self.place_of(flow, packet) {
            sending.bytes += u64::from(wire_bytes);
            if sending.label != NO_LABEL {
                packet.route = Route::label(sending.label);
            }
        }
    }

    fn finished<C: HostContext + ?Sized>(&mut self, _cx: &mut C, flow: &mut Flow) {
        if flow.place > 0 {
            self.sending[flow.place as usize - 1] = None;
            self.free.push(flow.place - 1);
            flow.place = 0;
        }
    }

    fn message<C: HostContext + ?Sized>(&mut self, cx: &mut C, message: Message) {
        let entries = message.contents.as_deref().unwrap_or_default();
        match message.tag {
            tag::POLL => self.report(cx, message.peer),
            tag::PATHS => self.take_paths(entries),
            tag::REPORT => {
                if let Some(controller) = &mut self.controller {
                    for entry in entries.chunks_exact(2) {
                        controller.reported.insert(entry[0], (message.peer, HostId(entry[1] as u16)));
                    }
                }
            }
            _ => {}
        }
    }

    fn host_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        match token {
            timer::POLL => self.with_controller(cx, Self::poll),
            _ => self.with_controller(cx, Self::place),
        }
    }

    /// A flow's five-tuple, counter and path at its host; the same of every large flow at the
    /// controller.
    fn state_bytes(&self) -> u64 {
        let controller = self.controller.as_ref();
        let kept = self.sending.len() + controller.map_or(0, |it| it.reported.len() + it.placed.len());
        kept as u64 * u64::from(ENTRY_BYTES)
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("messages", self.counts.messages);
        count("message_bytes", self.counts.message_bytes);
        count("large_flows", self.counts.large);
        count("large_flows_placed", self.counts.placed);
        count("paths_set", self.counts.moved);
    }
}

#[cfg(test)]
mod tests;
