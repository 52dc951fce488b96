//! CLOVE: the virtual switch steers flowlets over plain ECMP by the source port of the
//! encapsulation, towards paths whose packets come without marks (Katta et al., `HotNets` 2016 and
//! `CoNEXT` 2017).
//!
//! **Discovery.** Switches hash the outer source port (`packet.entropy`). Traceroutes with random
//! entropies show which one leads over which path; of the distinct paths, those are kept that share
//! the fewest links (`discovery.rs`).
//!
//! **Choosing.** Each flowlet takes one path: at random (edge-flowlet), or in weighted round robin
//! (ECN). Until the first discovery is back, packets keep their own entropy, as under ECMP.
//!
//! **Weights.** The far edge sees marks in the outer header and tells the path at most once a relay
//! interval, in the outer header of packets that go back (`relay.rs`). The weight of a path that is
//! told of is cut by a third, and the others share what was cut (`paths.rs`).
//!
//! The rules are the same wherever they run (`rules.rs`): here at a host, as in the papers. With
//! `at = "leaf"` the switch of a rack runs them for all of its hosts: [`crate::switch::clove`].
//!
//! The variant that reads utilisation from in-band telemetry (CLOVE-INT) needs switches that write
//! it, and is not here.

use std::collections::BTreeMap;

use weft_packet::{HostId, Packet};
use weft_units::{Span, Stream, Time};

use crate::{HostContext, HostHooks, HostInfo, HostScheme, Message};

mod destination;
mod discovery;
mod header;
mod params;
mod paths;
mod relay;
mod rules;
#[cfg(test)]
mod tests;

pub use discovery::Probe;
pub use params::{At, Choice, GuestMarks, Mode, Params, Scope, SpacedBy, Spread, Steers};
pub use rules::{CloveNode, Rules, Steered};

/// CLOVE at one host.
#[derive(Debug)]
pub struct Clove {
    rack: u16,
    base_rtts: Box<[Span]>,
    /// The number of a rack or host as a destination, as [`Params::scope`] says.
    index: BTreeMap<u16, u16>,
    /// The number of a host that sends here.
    senders: BTreeMap<HostId, u16>,
    rules: Rules,
}

/// One flow at one end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    destination: Number,
    /// Number of the other end's host, in the marks that arrive.
    sender: Number,
    steered: Steered,
}

/// Number of the other end in the rules: looked up once a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number(u16);

impl Default for Number {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Number {
    const UNKNOWN: Self = Self(u16::MAX);
    /// In the own rack: there is nothing to choose.
    const NEAR: Self = Self(u16::MAX - 1);

    fn index(self) -> Option<usize> {
        (self.0 < Self::NEAR.0).then_some(usize::from(self.0))
    }
}

/// Kind of a message; the other half of its tag is the destination's number.
const TRACE: u32 = 1 << 16;
const REACHED: u32 = 2 << 16;

/// The host as the rules see it.
struct AtHost<'a, C: ?Sized>(&'a mut C);

impl<C: HostContext + ?Sized> CloveNode for AtHost<'_, C> {
    #[inline]
    fn now(&self) -> Time {
        self.0.now()
    }

    #[inline]
    fn random(&mut self) -> &mut Stream {
        self.0.random()
    }

    fn may_discover(&self, rack: u16) -> bool {
        self.0.routes_to_rack(rack) > 1
    }

    fn ask(&mut self, destination: usize, peer: HostId, probe: Probe) {
        self.0.send(Message {
            peer,
            wire_bytes: Rules::PROBE_BYTES,
            entropy: probe.entropy,
            tag: TRACE | destination as u32,
            number: probe.number,
            stamp: self.0.now(),
            hop_limit: probe.hop_limit,
            ..Message::default()
        });
    }

    fn wake(&mut self, delay: Span, token: u32) {
        self.0.set_host_timer(delay, token);
    }
}

impl Clove {
    /// The destination of a flow's packets to `peer`; none within the rack.
    #[inline]
    fn destination_of<C: HostContext + ?Sized>(
        &mut self,
        cx: &C,
        flow: &mut Flow,
        peer: HostId,
    ) -> Option<usize> {
        if flow.destination == Number::UNKNOWN {
            flow.destination = self.look_up(cx, peer);
        }
        flow.destination.index()
    }

    #[cold]
    fn look_up<C: HostContext + ?Sized>(&mut self, cx: &C, peer: HostId) -> Number {
        let rack = cx.rack_of(peer);
        if rack == self.rack {
            return Number::NEAR;
        }
        let key = match self.rules.params.scope {
            Scope::Rack => rack,
            Scope::Host => peer.0,
        };
        let (rules, base_rtt) = (&mut self.rules, self.base_rtts[usize::from(rack)]);
        let number = *self.index.entry(key).or_insert_with(|| {
            let index = rules.add_destination(rack, base_rtt);
            if rules.params.steers == Steers::Routes {
                let routes = u32::from(cx.routes_to_rack(rack)).min(rules.params.paths);
                rules.destinations[index].know_routes(routes);
            }
            index as u16
        });
        // The most recent flow's: it is the likeliest to be there still.
        self.rules.destinations[usize::from(number)].peer = peer;
        Number(number)
    }

    /// The sender of packets of a flow from `peer`.
    #[inline]
    fn sender_of<C: HostContext + ?Sized>(&mut self, cx: &C, flow: &mut Flow, peer: HostId) -> usize {
        if flow.sender == Number::UNKNOWN {
            let (rules, base_rtt) = (&mut self.rules, self.base_rtts[usize::from(cx.rack_of(peer))]);
            flow.sender =
                Number(*self.senders.entry(peer).or_insert_with(|| rules.add_sender(base_rtt) as u16));
        }
        usize::from(flow.sender.0)
    }
}

impl HostScheme for Clove {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        Self {
            rack: info.rack,
            base_rtts: info.base_rtts.into(),
            index: BTreeMap::new(),
            senders: BTreeMap::new(),
            rules: Rules::new(params),
        }
    }

    fn hooks(params: &Params) -> HostHooks {
        let pinned = params.steers == Steers::Routes;
        // Answers to traces come in by `on_receive`'s hook.
        HostHooks { on_send: true, on_receive: true, traces: !pinned, pinned }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let Some(index) = self.destination_of(cx, flow, packet.dst) else { return };
        let path = self.rules.steer(&mut AtHost(cx), &mut flow.steered, index, packet);
        if self.rules.params.mode == Mode::Ecn {
            let sender = self.sender_of(cx, flow, packet.dst);
            self.rules.encapsulate(cx.now(), path, sender, packet);
        }
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, mut packet: Packet) {
        if self.rules.params.mode == Mode::Ecn {
            let told = self.rules.decapsulate(&mut packet);
            if let Some(path) = told.marked_on {
                let sender = self.sender_of(cx, flow, packet.src);
                self.rules.note_mark(sender, path);
            }
            if told.is_of_paths()
                && let Some(index) = self.destination_of(cx, flow, packet.src)
            {
                self.rules.hear(cx.now(), index, told, &mut packet);
            }
        }
        cx.deliver(packet);
    }

    fn message<C: HostContext + ?Sized>(&mut self, cx: &mut C, message: Message) {
        if message.tag & TRACE != 0 && message.expired.is_none() {
            // A trace that reached its end: the answer is a "port unreachable" of the same size
            // (RFC 792).
            self.rules.note_answer();
            cx.send(Message {
                wire_bytes: Message::EXPIRED_BYTES,
                tag: REACHED | (message.tag & u32::from(u16::MAX)),
                hop_limit: 0,
                marked: false,
                contents: None,
                ..message
            });
            return;
        }
        let index = usize::from(message.tag as u16);
        self.rules.answered(&mut AtHost(cx), index, message.number, message.expired);
    }

    fn host_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        self.rules.timer(&mut AtHost(cx), token);
    }

    fn state_bytes(&self) -> u64 {
        self.rules.state_bytes()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.rules.counters(count);
    }
}
