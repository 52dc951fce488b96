//! Hermes: comprehensive sensing, timely yet cautious rerouting (Zhang et al., SIGCOMM 2017).
//!
//! **Sensing** (§3.1). Acknowledgements bring round trips and marks of the paths that a host uses
//! (`paths.rs`), probes those of others (`probing.rs`). Timeouts and retransmissions tell of
//! blackholes and random drops (`failures.rs`). A path is good, grey, bad or failed (Hermes Alg.
//! 1).
//!
//! **Rerouting** (§3.2, Hermes Alg. 2). Every packet is an occasion. A new flow, one that timed out
//! and one whose path failed take the good path by which the host sends least, else the grey one,
//! else any that has not failed. A flow on a bad path leaves it only if it has sent more than S by
//! it, sends slower than R, and another path is better by more than both deltas.
//!
//! The paper's text was not at hand: sections and algorithms are cited from memory.

mod failures;
mod flow;
mod meter;
mod params;
mod paths;
mod probing;

use weft_packet::{HostId, Kind, Packet, Route};
use weft_units::{Rate, Time};

use self::failures::Blackholes;
use self::meter::Decay;
use self::paths::{Chooser, Class, Path, Rules};
use self::probing::{Agent, Finding, Kind as MessageKind, PROBE_BYTES, answer, mirrored, token};
use super::echo::PathNote;
use crate::acknowledgements::Acknowledgements;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, Message};

pub use self::flow::Flow;
pub use self::params::Params;
use self::params::{Measures, Prefers, RateOf, Thresholds};

/// Hermes at one host.
#[derive(Debug)]
pub struct Hermes {
    params: Params,
    rules: Rules,
    decay: Decay,
    /// Bytes in the estimator of a flow that sends at R.
    slow_below: f64,
    racks: Box<[Rack]>,
    /// The paths to all racks, rack by rack.
    paths: Box<[Path]>,
    /// How many flows each has; empty where that does not matter.
    flows: Box<[u32]>,
    blackholes: Blackholes,
    agent: Option<Box<Agent>>,
    counts: Counts,
}

/// The paths to one rack.
#[derive(Debug, Clone, Copy)]
struct Rack {
    first: u32,
    routes: u16,
    limits: Thresholds,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    placed: [u64; 3],
    reroutes: u64,
    escapes: u64,
    answers: u64,
    blackholes: u64,
    drops: u64,
}

impl Hermes {
    /// Routes to a rack that are known and still there.
    #[inline]
    fn routes<C: HostContext + ?Sized>(&self, cx: &C, rack: u16) -> u16 {
        self.racks[usize::from(rack)].routes.min(cx.routes_to_rack(rack))
    }

    #[inline]
    fn path_mut(&mut self, rack: u16, path: u16) -> Option<&mut Path> {
        let Rack { first, routes, .. } = self.racks[usize::from(rack)];
        (path < routes).then(|| &mut self.paths[first as usize + usize::from(path)])
    }

    /// Inputs of a choice among these routes.
    fn chooser(&self, rack: u16, routes: u16, now: Time) -> Chooser<'_> {
        let Rack { first, limits, .. } = self.racks[usize::from(rack)];
        let first = first as usize;
        let all = first..first + usize::from(routes);
        let (paths, flows) = (&self.paths[all.clone()], self.flows.get(all).unwrap_or_default());
        Chooser { rules: &self.rules, limits, decay: &self.decay, now, paths, flows }
    }

    /// A packet of another path took this long there and back.
    fn learn(&mut self, now: Time, finding: Finding) {
        let rules = self.rules;
        if let Some(path) = self.path_mut(finding.rack, finding.path) {
            path.learn(&rules, now, finding.rtt, finding.marked);
        }
    }

    /// A packet of data, or the request of a connection: Hermes Alg. 2.
    #[inline]
    fn send<C: HostContext + ?Sized>(
        &mut self,
        cx: &mut C,
        flow: &mut Flow,
        packet: &mut Packet,
        routes: u16,
    ) {
        let (now, rack) = (cx.now(), cx.rack_of(packet.dst));
        flow.dst = packet.dst;
        let path = match flow.path.filter(|&path| path < routes) {
            Some(path) if !flow.timed_out && !self.has_failed(rack, path, flow.dst, now) => {
                self.reconsider(cx, flow, (rack, path), routes)
            }
            _ => self.place(cx, flow, rack, routes),
        };
        self.account(flow, packet, (rack, path), now);
        packet.route = Route::label(path);
        PathNote { path, ..PathNote::default() }.write(packet);
    }

    #[inline]
    fn has_failed(&self, rack: u16, path: u16, dst: HostId, now: Time) -> bool {
        let first = self.racks[usize::from(rack)].first as usize;
        self.paths[first + usize::from(path)].drops(now) || self.blackholes.swallow(dst, path, now)
    }

    /// A path for a new flow, one that timed out, or one whose path failed. If all have failed a
    /// flow stays where it is.
    #[cold]
    fn place<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, rack: u16, routes: u16) -> u16 {
        let (now, dst) = (cx.now(), flow.dst);
        let swallows = |path| self.blackholes.swallow(dst, path, now);
        let placed = self.chooser(rack, routes, now).place(swallows, cx.random());
        let before = flow.path.filter(|&path| path < routes);
        let path = match placed {
            Some((path, class)) => {
                self.counts.placed[class as usize] += 1;
                path
            }
            None => before.unwrap_or_else(|| cx.random().below(u32::from(routes)) as u16),
        };
        if before != Some(path) {
            self.counts.escapes += u64::from(flow.path.is_some());
            self.take(flow, rack, path, now);
            if let Some(after) = self.params.forget_after {
                cx.set_flow_timer(after);
            }
        }
        flow.timed_out = false;
        path
    }

    /// A flow takes a path, and leaves the one that it has.
    fn take(&mut self, flow: &mut Flow, rack: u16, path: u16, now: Time) {
        self.release(flow, rack);
        if let Some(flows) = self.flows_mut(rack, path) {
            *flows += 1;
        }
        flow.take(path, now);
    }

    /// A flow has no path any more.
    fn release(&mut self, flow: &mut Flow, rack: u16) {
        if let Some(flows) = flow.path.take().and_then(|path| self.flows_mut(rack, path)) {
            *flows = flows.saturating_sub(1);
        }
    }

    fn flows_mut(&mut self, rack: u16, path: u16) -> Option<&mut u32> {
        let Rack { first, routes, .. } = self.racks[usize::from(rack)];
        if path < routes { self.flows.get_mut(first as usize + usize::from(path)) } else { None }
    }

    /// Whether a flow leaves its path, and for which (Hermes Alg. 2 lines 13 to 23).
    #[inline]
    fn reconsider<C: HostContext + ?Sized>(
        &mut self,
        cx: &mut C,
        flow: &mut Flow,
        (rack, path): (u16, u16),
        routes: u16,
    ) -> u16 {
        let now = cx.now();
        let Rack { first, limits, .. } = self.racks[usize::from(rack)];
        let here = &self.paths[first as usize + usize::from(path)];
        let bad = here.is_bad(&self.rules, limits, now);
        // Cautious: what little is left is not worth a move (S), nor is a path that gives the flow
        // its share (R).
        if !bad
            || flow.sent <= self.params.reroute_after.as_u64()
            || self.rate(flow, here, now) >= self.slow_below
            || now < flow.tried + self.params.retry_gap
        {
            return path;
        }
        flow.tried = now;
        if cx.random().unit() >= self.params.reroute_probability {
            return path;
        }
        let swallows = |label| self.blackholes.swallow(flow.dst, label, now);
        let Some(better) = self.chooser(rack, routes, now).leave(path, swallows, cx.random()) else {
            return path;
        };
        self.take(flow, rack, better, now);
        self.counts.reroutes += 1;
        better
    }

    /// The rate that is to be below R, as what its estimator holds.
    #[inline]
    fn rate(&self, flow: &Flow, path: &Path, now: Time) -> f64 {
        let period = self.decay.period(now);
        match self.params.reroute_rate {
            RateOf::Flow => flow.meter.read(&self.decay, period),
            RateOf::Path => path.held(&self.decay, period),
        }
    }

    /// The packet counts for its flow and its path.
    #[inline]
    fn account(&mut self, flow: &mut Flow, packet: &Packet, (rack, path): (u16, u16), now: Time) {
        let again = flow.repeats(packet);
        let period = self.decay.period(now);
        flow.meter.add(&self.decay, period, packet.wire_bytes);
        flow.sent += u64::from(packet.wire_bytes);
        if packet.kind == Kind::Data {
            flow.next = flow.next.max(packet.seq.saturating_add(1));
        }
        let Rack { first, limits, .. } = self.racks[usize::from(rack)];
        let path = &mut self.paths[first as usize + usize::from(path)];
        path.meter(&self.decay, period, packet.wire_bytes);
        self.counts.drops += u64::from(path.send(&self.rules, limits, now, again));
    }

    /// An acknowledgement goes back over the switches by which the data came, or as its hash leads.
    #[inline]
    fn acknowledge(&self, flow: &mut Flow, packet: &mut Packet, routes: u16) {
        flow.echo.stamp(packet);
        flow.path = PathNote::read(packet).map(|note| note.path).or(flow.path);
        if let Some(path) = flow.path {
            packet.route = self.way_back(path, routes);
        }
    }

    /// The route of what answers a packet that came by this path.
    #[inline]
    fn way_back(&self, path: u16, routes: u16) -> Route {
        match self.params.acknowledgements {
            Acknowledgements::Balanced => mirrored(path, routes),
            Acknowledgements::Ecmp => Route::ANY,
        }
    }

    /// An acknowledgement came: it tells of the path that it names.
    #[inline]
    fn acknowledged(&mut self, now: Time, rack: u16, flow: &mut Flow, packet: &Packet) {
        if let Some(note) = PathNote::read(packet) {
            let PathNote { path, marked, .. } = note;
            if flow.path == Some(path) {
                flow.heard = now;
            }
            self.blackholes.acknowledged(packet.src, path);
            let rtt = match self.params.measures {
                Measures::RoundTrip => now.since(packet.sent),
                Measures::OneWay => note.wait(),
            };
            self.learn(now, Finding { rack, path, rtt, marked });
        }
    }
}

impl HostScheme for Hermes {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        let mut first = 0;
        let rack = |rack: u16| {
            let routes = if rack == info.rack { 1 } else { info.routes[usize::from(rack)] };
            // Where there is no choice nothing is kept.
            let kept = if routes > 1 { u32::from(routes) } else { 0 };
            first += kept;
            let limits = params.thresholds(info.base_rtts[usize::from(rack)]);
            Rack { first: first - kept, routes: kept as u16, limits }
        };
        let racks: Box<[Rack]> = (0..info.racks).map(rack).collect();
        let decay = Decay::new(params.t_dre, params.alpha);
        let rate: Rate = info.rate;
        Self {
            rules: Rules::new(params),
            decay,
            slow_below: decay.bytes_at(rate, params.reroute_below),
            racks,
            paths: vec![Path::new(); first as usize].into_boxed_slice(),
            flows: match params.prefers {
                Prefers::LeastRate => Box::default(),
                Prefers::FewestFlows => vec![0; first as usize].into_boxed_slice(),
            },
            blackholes: Blackholes::default(),
            agent: Agent::new(params, info).map(Box::new),
            counts: Counts::default(),
            params: params.clone(),
        }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, pinned: true, traces: false }
    }

    fn start<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        if let Some(agent) = &self.agent {
            agent.start(cx);
        }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let routes = self.routes(cx, cx.rack_of(packet.dst));
        if routes < 2 {
            return;
        }
        match packet.kind {
            Kind::Data | Kind::Syn => self.send(cx, flow, packet, routes),
            _ => self.acknowledge(flow, packet, routes),
        }
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, mut packet: Packet) {
        match packet.kind {
            Kind::Data | Kind::Syn => {
                if self.params.measures == Measures::OneWay
                    && let Some(note) = PathNote::read(&packet)
                {
                    let waited = PathNote::ticks(cx.now().since(packet.sent));
                    PathNote { waited, ..note }.write(&mut packet);
                }
                flow.echo.note(&packet);
            }
            _ => self.acknowledged(cx.now(), cx.rack_of(packet.src), flow, &packet),
        }
        cx.deliver(packet);
    }

    /// Time to see whether an acknowledgement came.
    fn flow_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        let (Some(after), Some(_)) = (self.params.forget_after, flow.path) else { return };
        let silent = cx.now().since(flow.heard);
        if silent < after {
            return cx.set_flow_timer(after - silent);
        }
        let rack = cx.rack_of(flow.dst);
        self.release(flow, rack);
    }

    /// As long as a flow that is silent counts, one that is over does.
    fn finished<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        if self.flows.is_empty() {
            return;
        }
        let (rack, after) = (cx.rack_of(flow.dst), self.params.forget_after.unwrap_or_default());
        let Some(path) = flow.path.filter(|&path| path < self.racks[usize::from(rack)].routes) else {
            return;
        };
        let index = self.racks[usize::from(rack)].first + u32::from(path);
        if after.is_zero() {
            self.release(flow, rack);
        } else {
            flow.path = None;
            cx.set_host_timer(after, token::OVER + index);
        }
    }

    fn timed_out<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        let (now, rack) = (cx.now(), cx.rack_of(flow.dst));
        let Some(label) = flow.path else { return };
        let Some(path) = self.path_mut(rack, label) else { return };
        path.time_out();
        let (limit, hold) = (self.params.blackhole_timeouts, self.params.failed_for);
        self.counts.blackholes += u64::from(self.blackholes.timed_out(flow.dst, label, now, limit, hold));
        flow.timed_out = true;
        flow.forgive();
    }

    fn message<C: HostContext + ?Sized>(&mut self, cx: &mut C, message: Message) {
        let (now, rack) = (cx.now(), cx.rack_of(message.peer));
        match MessageKind::of(message.tag) {
            MessageKind::Probe => {
                self.counts.answers += 1;
                let route = self.way_back(message.number as u16, self.routes(cx, rack));
                // One way, the answer says how long the probe took.
                let stamp = match self.params.measures {
                    Measures::RoundTrip => message.stamp,
                    Measures::OneWay => Time::ZERO + now.since(message.stamp),
                };
                cx.send(answer(&message, route, stamp));
            }
            MessageKind::Answer { marked } => {
                let rtt = match self.params.measures {
                    Measures::RoundTrip => now.since(message.stamp),
                    Measures::OneWay => message.stamp.since(Time::ZERO),
                };
                let finding = Finding { rack, path: message.number as u16, rtt, marked };
                self.learn(now, finding);
                if let Some(agent) = &mut self.agent {
                    agent.note(finding);
                }
            }
            MessageKind::Report => {
                for finding in message.contents.iter().flat_map(|contents| Finding::read(contents)) {
                    self.learn(now, finding);
                }
            }
        }
    }

    fn host_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, timer: u32) {
        if let Some(over) = timer.checked_sub(token::OVER) {
            if let Some(flows) = self.flows.get_mut(over as usize) {
                *flows = flows.saturating_sub(1);
            }
            return;
        }
        match &mut self.agent {
            Some(agent) if timer == token::PROBE => agent.probe(cx),
            Some(agent) => agent.report(cx),
            None => {}
        }
    }

    fn state_bytes(&self) -> u64 {
        let agent = self.agent.as_ref().map_or(0, |agent| agent.state_bytes());
        self.table_bytes() + self.blackholes.state_bytes() + agent
    }

    fn table_bytes(&self) -> u64 {
        (size_of_val(&*self.paths) + size_of_val(&*self.racks) + size_of_val(&*self.flows)) as u64
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let sent = self.agent.as_ref().map(|agent| agent.counts).unwrap_or_default();
        count("probes", sent.probes);
        count("probe_answers", self.counts.answers);
        count("probe_bytes", (sent.probes + self.counts.answers) * u64::from(PROBE_BYTES));
        count("reports", sent.reports);
        count("report_bytes", sent.report_bytes);
        count("placed_good", self.counts.placed[Class::Good as usize]);
        count("placed_grey", self.counts.placed[Class::Grey as usize]);
        count("placed_bad", self.counts.placed[Class::Bad as usize]);
        count("reroutes", self.counts.reroutes);
        count("escapes", self.counts.escapes);
        count("blackholes", self.counts.blackholes);
        count("random_drops", self.counts.drops);
    }
}

#[cfg(test)]
mod tests;
