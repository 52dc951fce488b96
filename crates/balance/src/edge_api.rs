//! What a scheme at a host's edge (its virtual switch) sees and does.

use weft_packet::{HostId, Packet};
use weft_units::{Span, Stream, Time};

/// What a scheme knows of its host before the first packet.
#[derive(Debug, Clone)]
pub struct HostInfo {
    /// The host.
    pub host: HostId,
    /// Its rack: the number of its edge switch, from 0.
    pub rack: u16,
    /// How many racks the fabric has.
    pub racks: u16,
    /// The seed of the run.
    pub seed: u64,
}

/// The host around a scheme.
pub trait EdgeContext {
    /// The time now.
    fn now(&self) -> Time;

    /// The rack of a host (the edge knows the addressing plan).
    fn rack_of(&self, host: HostId) -> u16;

    /// How many explicit routes lead to a host: labels 0 up to this number are distinct paths. 1 within a rack.
    fn routes_to(&self, host: HostId) -> u16;

    /// Bytes of headers in the wire size of every packet of a transport; what is left is payload. A world where
    /// packets have no headers need not say so.
    fn header_bytes(&self) -> u16 {
        0
    }

    /// The host's own random stream.
    fn random(&mut self) -> &mut Stream;

    /// Hands a packet that came in to the transport. Only during [`EdgeBalancer::receiving`] and
    /// [`EdgeBalancer::flow_timer`].
    fn deliver(&mut self, packet: Packet);

    /// Asks for [`EdgeBalancer::flow_timer`] of the flow at hand after `delay`. One a flow is kept: the last one asked for.
    fn set_flow_timer(&mut self, delay: Span);
}

/// Which optional calls a scheme wants. What it does not ask for costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EdgeHooks {
    /// [`EdgeBalancer::sending`], for every packet that a transport sends.
    pub sending: bool,
    /// [`EdgeBalancer::receiving`], for every packet that reaches the host; the scheme must then deliver it.
    pub receiving: bool,
}

/// A load balancer at the edge: one value a host, and one `Flow` a flow and end.
pub trait EdgeBalancer: Sized {
    /// Its parameters, as the spec gives them.
    type Params;
    /// What it keeps of a flow at one end.
    type Flow: Default;

    /// The scheme at one host.
    fn new(params: &Self::Params, info: &HostInfo) -> Self;

    /// The optional calls that it wants, with these parameters.
    fn hooks(params: &Self::Params) -> EdgeHooks;

    /// A packet of `flow` is about to leave the host: the scheme may set its route or entropy.
    fn sending<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Self::Flow, packet: &mut Packet);

    /// A packet of `flow` reached the host: to be delivered now or later, in whatever order.
    fn receiving<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, _flow: &mut Self::Flow, packet: Packet) {
        cx.deliver(packet);
    }

    /// The timer of `flow` is due.
    fn flow_timer<C: EdgeContext + ?Sized>(&mut self, _cx: &mut C, _flow: &mut Self::Flow) {}

    /// Packets of `flow` that the scheme holds back now.
    fn held(_flow: &Self::Flow) -> usize {
        0
    }

    /// Bytes of state that it keeps at this host, flows aside.
    fn state_bytes(&self) -> u64;

    /// Its own counters, by name, for the results.
    fn counters(&self, _count: &mut dyn FnMut(&'static str, u64)) {}
}
