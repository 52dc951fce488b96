//! A scheme at one switch with all that it was told, looked at, drew and answered written down:
//! what another implementation of the scheme must be given to decide the same, and what it must
//! then decide.
//!
//! A [`Recorder`] stands in the place of the scheme, and the scheme sees the world through it. So
//! recording costs nothing where nobody asked for it, and the scheme decides as it does without.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use weft_packet::{HostId, Kind, Packet};
use weft_units::{Rate, Span, Stream, Time};

use crate::{AnySwitchScheme, Arrival, ExternalScheme, NextHops, PortId, Queued, SwitchContext, SwitchHooks};

/// Fields of a packet that a scheme may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Header {
    /// Kind of the packet, in lower case, such as `synack`.
    pub kind: String,
    /// Hash of the five-tuple.
    pub entropy: u32,
    /// The host that sent it, and its rack.
    pub src: u16,
    /// As `src`.
    pub src_rack: u16,
    /// The host that it goes to, and its rack.
    pub dst: u16,
    /// As `dst`.
    pub dst_rack: u16,
    /// Bytes on a link.
    pub wire_bytes: u16,
    /// Class of the flow, by the application.
    pub class: &'static str,
    /// The scheme's own header bits.
    pub scheme: u32,
}

impl Header {
    fn of(cx: &dyn SwitchContext, packet: &Packet) -> Self {
        // What a switch sends to its neighbour comes from no host and goes to none.
        let rack = |host| if packet.kind == Kind::Control { 0 } else { cx.rack_of(host) };
        Self {
            kind: format!("{:?}", packet.kind).to_lowercase(),
            entropy: packet.entropy,
            src: packet.src.0,
            src_rack: rack(packet.src),
            dst: packet.dst.0,
            dst_rack: rack(packet.dst),
            wire_bytes: packet.wire_bytes,
            class: packet.flags.class().name(),
            scheme: packet.scheme,
        }
    }
}

/// A look at a port's queue, as long as it was for the packet at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Look {
    /// The port.
    pub port: u16,
    /// Bytes that it would send first.
    pub bytes: u64,
    /// How long it would take for them, in ps.
    pub drain_ps: u64,
}

/// A number that a controller writes into the switch: which one, its place if there are several,
/// and its value.
pub type Register = (&'static str, u32, u64);

/// A call to a scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Call {
    /// Registers that are other ones from now on.
    Registers {
        /// When, in ps.
        at_ps: u64,
        /// Those that changed, or all at the beginning.
        registers: Vec<Register>,
    },
    /// A packet had several next hops.
    Choose {
        /// When, in ps.
        at_ps: u64,
        /// The packet before the call.
        packet: Header,
        /// The ports, in ascending order.
        ports: Vec<u16>,
        /// The queues of all these, if the scheme looked at one: those that it looked at first, in
        /// that order.
        looks: Vec<Look>,
        /// The 64 bits of each draw.
        draws: Vec<u64>,
        /// The port that it chose.
        port: u16,
    },
    /// A packet came in.
    OnArrival {
        /// When, in ps.
        at_ps: u64,
        /// The packet before the call.
        packet: Header,
        /// The port by which it came in.
        port: u16,
        /// The queues that the scheme looked at.
        looks: Vec<Look>,
        /// The scheme's header bits after the call.
        scheme_after: u32,
    },
    /// A queue took a packet.
    OnEnqueued {
        /// When, in ps.
        at_ps: u64,
        /// The packet.
        packet: Header,
        /// The port.
        port: u16,
        /// When it leaves the queue, in ps.
        leaves_ps: u64,
        /// Bytes that it found queued.
        found_bytes: u64,
    },
    /// A port went down, came back, or has another rate or delay.
    OnPortChange {
        /// When, in ps.
        at_ps: u64,
        /// The port.
        port: u16,
    },
}

/// Recorded calls at one switch, shared with the [`Recorder`] there.
#[derive(Debug, Clone)]
pub struct Log {
    calls: Arc<Mutex<Calls>>,
}

#[derive(Debug)]
struct Calls {
    kept: Vec<Call>,
    /// How many more `Choose` are kept; all calls end with the last of them.
    left: usize,
    /// Decisions that were not kept.
    beyond: u64,
}

impl Log {
    /// An empty one, that ends with the `most`-th decision.
    pub fn new(most: usize) -> Self {
        Self { calls: Arc::new(Mutex::new(Calls { kept: Vec::new(), left: most, beyond: 0 })) }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, call: Call) {
        let mut calls = self.lock();
        let decides = matches!(call, Call::Choose { .. });
        if calls.left == 0 {
            calls.beyond += u64::from(decides);
            return;
        }
        calls.left -= usize::from(decides);
        calls.kept.push(call);
    }

    /// All calls in their order, and how many decisions came behind them.
    pub fn take(&self) -> (Vec<Call>, u64) {
        let mut calls = self.lock();
        (std::mem::take(&mut calls.kept), calls.beyond)
    }
}

/// The world as a recorded scheme sees it.
struct RecordingContext<'a> {
    world: &'a mut dyn SwitchContext,
    looks: RefCell<Vec<Look>>,
}

impl<'a> RecordingContext<'a> {
    fn new(world: &'a mut dyn SwitchContext) -> Self {
        Self { world, looks: RefCell::new(Vec::new()) }
    }

    fn look(&self, port: PortId, bytes: u64, drain: Span) {
        let mut looks = self.looks.borrow_mut();
        if looks.iter().all(|look| look.port != port.0) {
            looks.push(Look { port: port.0, bytes, drain_ps: drain.as_ps() });
        }
    }

    fn into_looks(self) -> Vec<Look> {
        self.looks.into_inner()
    }
}

impl SwitchContext for RecordingContext<'_> {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn drain_time(&self, port: PortId) -> Span {
        let drain = self.world.drain_time(port);
        self.look(port, self.world.backlog_bytes(port), drain);
        drain
    }

    fn backlog_bytes(&self, port: PortId) -> u64 {
        let bytes = self.world.backlog_bytes(port);
        self.look(port, bytes, self.world.drain_time(port));
        bytes
    }

    fn drain_time_for(&self, port: PortId, packet: &Packet) -> Span {
        let drain = self.world.drain_time_for(port, packet);
        self.look(port, self.world.backlog_bytes_for(port, packet), drain);
        drain
    }

    fn backlog_bytes_for(&self, port: PortId, packet: &Packet) -> u64 {
        let bytes = self.world.backlog_bytes_for(port, packet);
        self.look(port, bytes, self.world.drain_time_for(port, packet));
        bytes
    }

    fn waiting_bytes_for(&self, port: PortId, packet: &Packet) -> u64 {
        let bytes = self.world.waiting_bytes_for(port, packet);
        self.look(port, bytes, self.world.drain_time_for(port, packet));
        bytes
    }

    fn rate(&self, port: PortId) -> Rate {
        self.world.rate(port)
    }

    fn bytes_sent(&self, port: PortId) -> u64 {
        self.world.bytes_sent(port)
    }

    fn is_up(&self, port: PortId) -> bool {
        self.world.is_up(port)
    }

    fn rack_of(&self, host: HostId) -> u16 {
        self.world.rack_of(host)
    }

    fn random(&mut self) -> &mut Stream {
        self.world.random()
    }

    fn send(&mut self, port: PortId, packet: Packet) {
        self.world.send(port, packet);
    }

    fn set_timer(&mut self, delay: Span, token: u32) {
        self.world.set_timer(delay, token);
    }

    fn release(&mut self, queue: u32) {
        self.world.release(queue);
    }

    fn held_bytes(&self) -> u64 {
        self.world.held_bytes()
    }
}

/// More draws than a scheme makes in one call; DRILL may sample 16.
const MOST_DRAWS: usize = 64;

/// Values drawn from a stream that was `before`.
fn draws(mut before: Stream, after: &Stream) -> Vec<u64> {
    let mut draws = Vec::new();
    while before != *after && draws.len() < MOST_DRAWS {
        draws.push(before.next_u64());
    }
    draws
}

/// A scheme at one switch, and the log of it.
pub struct Recorder {
    scheme: AnySwitchScheme,
    hooks: SwitchHooks,
    log: Log,
    registers: Vec<Register>,
}

impl Recorder {
    /// Records this scheme, which wants these calls.
    pub fn new(scheme: AnySwitchScheme, hooks: SwitchHooks, log: Log) -> Self {
        let mut recorder = Self { scheme, hooks, log, registers: Vec::new() };
        recorder.note_settings(Time::ZERO);
        recorder
    }

    /// Writes down which registers are other ones than before.
    fn note_settings(&mut self, now: Time) {
        let mut registers = Vec::new();
        self.scheme.registers(&mut |name, place, value| registers.push((name, place, value)));
        let changed: Vec<Register> =
            registers.iter().filter(|register| !self.registers.contains(register)).copied().collect();
        self.registers = registers;
        if !changed.is_empty() {
            self.log.push(Call::Registers { at_ps: now.as_ps(), registers: changed });
        }
    }
}

impl ExternalScheme for Recorder {
    fn hooks(&self) -> SwitchHooks {
        self.hooks
    }

    fn needs_waiting_bytes(&self) -> bool {
        self.scheme.needs_waiting_bytes()
    }

    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        let (at_ps, header) = (cx.now().as_ps(), Header::of(cx, packet));
        let before = cx.random().clone();
        let mut seen = RecordingContext::new(cx);
        let index = self.scheme.choose(&mut seen, packet, hops);
        let draws = draws(before, seen.random());
        if !seen.looks.borrow().is_empty() {
            // A scheme may end its look early; another implementation need not end it there.
            for &port in hops.ports {
                seen.drain_time_for(port, packet);
            }
        }
        self.log.push(Call::Choose {
            at_ps,
            packet: header,
            ports: hops.ports.iter().map(|port| port.0).collect(),
            looks: seen.into_looks(),
            draws,
            port: hops.ports[index].0,
        });
        index
    }

    fn start(&mut self, cx: &mut dyn SwitchContext) {
        self.scheme.start(&mut RecordingContext::new(cx));
    }

    fn on_arrival(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
        let (now, header) = (cx.now(), Header::of(cx, packet));
        let mut seen = RecordingContext::new(cx);
        let arrival = self.scheme.on_arrival(&mut seen, packet, port);
        let looks = seen.into_looks();
        if header.kind == "control" {
            // What it said is in the registers now.
            self.note_settings(now);
        } else {
            let scheme_after = packet.scheme;
            let at_ps = now.as_ps();
            self.log.push(Call::OnArrival { at_ps, packet: header, port: port.0, looks, scheme_after });
        }
        arrival
    }

    fn on_timer(&mut self, cx: &mut dyn SwitchContext, token: u32) {
        let now = cx.now();
        self.scheme.on_timer(&mut RecordingContext::new(cx), token);
        self.note_settings(now);
    }

    fn on_enqueued(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, queued: Queued) {
        self.log.push(Call::OnEnqueued {
            at_ps: cx.now().as_ps(),
            packet: Header::of(cx, packet),
            port: queued.port.0,
            leaves_ps: queued.leaves.as_ps(),
            found_bytes: queued.found_bytes,
        });
        self.scheme.on_enqueued(&mut RecordingContext::new(cx), packet, queued);
    }

    fn on_port_change(&mut self, cx: &mut dyn SwitchContext, port: PortId) {
        let now = cx.now();
        self.log.push(Call::OnPortChange { at_ps: now.as_ps(), port: port.0 });
        self.scheme.on_port_change(&mut RecordingContext::new(cx), port);
        self.note_settings(now);
    }

    fn state_bytes(&self) -> u64 {
        self.scheme.state_bytes()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.scheme.counters(count);
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeSpec;
    use crate::testing::{FakeSwitch, Group, packet};

    use super::*;

    fn spec(name: &str) -> SchemeSpec {
        serde_json::from_value(serde_json::json!({ "name": name })).expect("a registered name")
    }

    /// Decides for 100 packets of ten flows by ports 2 to 6, and says which ports these took.
    fn decide(scheme: &mut dyn FnMut(&mut FakeSwitch, &mut Packet, &NextHops<'_>) -> usize) -> Vec<u16> {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(2..7));
        let port = |step: u64| {
            switch.now += Span::from_us(step % 7 * 300);
            switch.backlogs = (0..8).map(|port| (step * 31 + port * 7) % 5 * 1_500).collect();
            let index = scheme(&mut switch, &mut packet(step as u32 % 10), &group.hops());
            group.ports[index].0
        };
        (0..100).map(port).collect()
    }

    #[test]
    fn a_recorded_scheme_decides_as_it_does_without_and_every_decision_is_in_the_log() {
        for name in ["ecmp", "letflow", "drill", "tr", "qall", "lbt"] {
            let (spec, world) = (spec(name), FakeSwitch::new(8, 1));
            let mut plain = spec.switch_scheme(&world.info(0, 0, 1));
            let log = Log::new(1_000);
            let scheme = spec.switch_scheme(&world.info(0, 0, 1));
            let mut recorder = Recorder::new(scheme, spec.switch_hooks(), log.clone());
            let without = decide(&mut |cx, packet, hops| plain.choose(cx, packet, hops));
            let with = decide(&mut |cx, packet, hops| recorder.choose(cx, packet, hops));
            assert_eq!(with, without, "{name}");
            let (calls, beyond) = log.take();
            let logged: Vec<u16> = calls
                .iter()
                .filter_map(|call| if let Call::Choose { port, .. } = call { Some(*port) } else { None })
                .collect();
            assert_eq!((logged, beyond), (without, 0), "{name}");
            let Call::Registers { at_ps: 0, registers } = &calls[0] else { panic!("{name}: {:?}", calls[0]) };
            let is_seed =
                |&(register, place, value): &Register| (register, place) == ("hash_seed", 0) && value != 0;
            // One that draws a packet's port looks at no hash.
            assert_eq!(registers.iter().any(is_seed), !["drill", "qall"].contains(&name), "{name}");
        }
    }

    #[test]
    fn what_was_drawn_and_looked_at_is_what_the_decision_follows_from() {
        let (spec, world, log) = (spec("drill"), FakeSwitch::new(8, 1), Log::new(1_000));
        let scheme = spec.switch_scheme(&world.info(0, 0, 1));
        let mut recorder = Recorder::new(scheme, spec.switch_hooks(), log.clone());
        decide(&mut |cx, packet, hops| recorder.choose(cx, packet, hops));
        let mut remembered = None;
        for call in log.take().0 {
            let Call::Choose { ports, looks, draws, port, .. } = call else { continue };
            let [a, b] = draws[..] else { panic!("two draws: {draws:?}") };
            let below = |draw: u64, bound: u64| (((draw >> 32) * bound) >> 32) as usize;
            let (a, b) = (below(a, 5), below(b, 4));
            let sampled = [a, b + usize::from(a <= b)].map(|index| ports[index]);
            let mut order: Vec<u16> = remembered.into_iter().chain(sampled).collect();
            let seen: Vec<u16> = looks.iter().map(|look| look.port).collect();
            let bytes = |port: u16| looks.iter().find(|look| look.port == port).map(|look| look.bytes);
            let shortest = order.iter().copied().min_by_key(|&port| bytes(port));
            assert_eq!(Some(port), shortest);
            order.dedup();
            assert!(order.iter().all(|port| seen.contains(port)), "{order:?} of {seen:?}");
            remembered = Some(port);
        }
    }

    #[test]
    fn a_log_ends_with_the_last_decision_that_was_asked_for_and_counts_the_others() {
        let (spec, world, log) = (spec("ecmp"), FakeSwitch::new(8, 1), Log::new(30));
        let scheme = spec.switch_scheme(&world.info(0, 0, 1));
        let mut recorder = Recorder::new(scheme, spec.switch_hooks(), log.clone());
        decide(&mut |cx, packet, hops| recorder.choose(cx, packet, hops));
        let (calls, beyond) = log.take();
        assert_eq!((calls.len(), beyond), (1 + 30, 70), "the registers, 30 decisions");
    }
}
