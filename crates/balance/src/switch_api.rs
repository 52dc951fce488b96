//! Interface of a scheme at a switch.

use weft_packet::{HostId, Kinds, Packet, Peer, PortId};
use weft_units::{Bytes, Rate, Span, Stream, Time};

/// The next hops that routing allows for a packet: equally short, and not known to be down.
#[derive(Debug, Clone, Copy)]
pub struct NextHops<'a> {
    /// The ports, at least two, in ascending order.
    pub ports: &'a [PortId],
    /// For each port the capacity that routing knows behind it towards the destination, in Mbit/s
    /// (at least 1).
    pub weights: &'a [u32],
    /// The rack that the packet goes to: the number of its edge switch, from 0.
    pub rack: u16,
}

impl NextHops<'_> {
    /// Where `port` is in `ports`, or `None` if it is no next hop (any more). Ports of one group
    /// are mostly neighbours, so the first look is at the place where it then is.
    #[inline]
    pub fn index_of(&self, port: PortId) -> Option<usize> {
        let guess = usize::from(port.0.wrapping_sub(self.ports[0].0));
        if self.ports.get(guess) == Some(&port) {
            return Some(guess);
        }
        self.ports.binary_search(&port).ok()
    }
}

/// Configuration of a scheme at its switch before the first packet.
#[derive(Debug, Clone)]
pub struct SwitchInfo<'a> {
    /// The switch's number in the fabric, from 0.
    pub switch: u32,
    /// Hops from the nearest host, from 0: an edge switch is of tier 0.
    pub tier: u8,
    /// The seed of the run.
    pub seed: u64,
    /// The rate of each port.
    pub port_rates: &'a [Rate],
    /// The propagation delay of each port's cable, with the processing at its far end.
    pub port_delays: &'a [Span],
    /// Limit of each port's output queue, the packet in service included, or `None` if it has no
    /// limit. A limit in packets is given as so many of full size.
    pub port_buffers: &'a [Option<Bytes>],
    /// Node at the far end of each port's cable.
    pub port_peers: &'a [Peer],
    /// The rack that hangs at this switch, if it is an edge switch.
    pub rack: Option<u16>,
    /// How many racks the fabric has.
    pub racks: u16,
    /// By rack: how long a full-size packet and its acknowledgement take there and back from a host
    /// of the own rack when nothing else moves, stack delays included, as an operator measured it
    /// once. Empty at a switch without a rack, and unless the parameters of the scheme ask for it,
    /// or it is external.
    pub base_rtts: &'a [Span],
}

/// The switch around a scheme.
pub trait SwitchContext {
    /// The time now.
    fn now(&self) -> Time;

    /// How long the port needs to send what is queued on it, the packet in service included: all of
    /// its classes, if it has several, but for credits, which wait for their tokens.
    fn drain_time(&self, port: PortId) -> Span;

    /// Bytes that are sent in [`Self::drain_time`].
    fn backlog_bytes(&self, port: PortId) -> u64;

    /// How long it is until the port would send this packet, if it were queued now and nothing else
    /// came. On a port with one queue that is [`Self::drain_time`]. With strict priority it is what
    /// waits in the packet's class and those before it; with weights, what waits in its class, and
    /// of each other class as much as is sent meanwhile. A credit goes behind other credits, when
    /// its tokens are there.
    fn drain_time_for(&self, port: PortId, _packet: &Packet) -> Span {
        self.drain_time(port)
    }

    /// Bytes that the port would send before this packet, the rest of the packet in service
    /// included: the queue that it would stand in, whatever the classes. On a port with one queue
    /// that is [`Self::backlog_bytes`].
    fn backlog_bytes_for(&self, port: PortId, _packet: &Packet) -> u64 {
        self.backlog_bytes(port)
    }

    /// Bytes that wait before this packet, without the rest of the packet in service. For schemes
    /// that [tell the two apart](SwitchScheme::needs_waiting_bytes).
    fn waiting_bytes_for(&self, port: PortId, packet: &Packet) -> u64;

    /// The port's rate now.
    fn rate(&self, port: PortId) -> Rate;

    /// Bytes that the port was given to send since the run began.
    fn bytes_sent(&self, port: PortId) -> u64;

    /// Whether the port's cable works, as the switch sees it by itself.
    fn is_up(&self, port: PortId) -> bool;

    /// The rack of a host (switches know the addressing plan).
    fn rack_of(&self, host: HostId) -> u16;

    /// The switch's own random stream.
    fn random(&mut self) -> &mut Stream;

    /// Sends a packet of the scheme's own ([`Kind::Control`](weft_packet::Kind::Control)) out of a
    /// port. It takes bytes, queues and time like any other; at the next switch,
    /// [`SwitchScheme::on_arrival`] gets it.
    fn send(&mut self, port: PortId, packet: Packet);

    /// Asks for [`SwitchScheme::on_timer`] with this token after `delay`. Timers are not taken
    /// back: a scheme that has changed its mind ignores the call.
    fn set_timer(&mut self, delay: Span, token: u32);

    /// The packets that [`Arrival::Hold`] put into the queue with this number go on, in the order
    /// in which they came: to the ports that lead to their destinations, as if they came now, but
    /// that [`SwitchScheme::on_arrival`] saw them already. During [`SwitchScheme::on_arrival`] they
    /// follow the packet at hand.
    fn release(&mut self, queue: u32);

    /// Bytes of packets that are held back in the switch's memory now, in all queues.
    fn held_bytes(&self) -> u64;
}

/// A packet that a port's queue took: see [`SwitchScheme::on_enqueued`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// The port.
    pub port: PortId,
    /// When it leaves the queue for the wire, first bit first.
    pub leaves: Time,
    /// Bytes that it found queued, with what was left of the packet in service.
    pub found_bytes: u64,
    /// Bytes that the port had been given to send before it.
    pub sent_before: u64,
}

/// Ports of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Ports {
    /// None.
    #[default]
    None,
    /// Those that lead to other switches.
    ToSwitches,
    /// All, those to hosts included.
    All,
}

/// Which optional calls a scheme wants. What it does not ask for costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchHooks {
    /// [`SwitchScheme::on_arrival`], for packets of these kinds that the switch receives. One who
    /// sends packets of its own wants [`Kind::Control`](weft_packet::Kind::Control): what nobody
    /// asks for is forwarded.
    pub on_arrival: Kinds,
    /// By which ports they come in that [`SwitchScheme::on_arrival`] is called for.
    pub on_arrival_by: Ports,
    /// [`SwitchScheme::on_enqueued`], for every packet of hosts that the queue of one of these
    /// ports takes.
    pub on_enqueued: Ports,
    /// [`SwitchScheme::start`] and [`SwitchScheme::on_timer`] do something also at a switch that
    /// passes every packet on by the one way that there is.
    pub timers: bool,
}

impl SwitchHooks {
    /// None of them.
    pub const NONE: Self =
        Self { on_arrival: Kinds::NONE, on_arrival_by: Ports::None, on_enqueued: Ports::None, timers: false };

    /// Hooks that either of the two wants.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            on_arrival: self.on_arrival.or(other.on_arrival),
            on_arrival_by: self.on_arrival_by.max(other.on_arrival_by),
            on_enqueued: self.on_enqueued.max(other.on_enqueued),
            timers: self.timers || other.timers,
        }
    }
}

/// Next step for a packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It goes on to its destination. A packet that a neighbour's scheme sent ends here all the
    /// same.
    Forward,
    /// It was for the switch: it ends here.
    Consume,
    /// It goes on to its destination, also if a scheme sent it: the scheme of the edge switch there
    /// must consume it.
    Pass,
    /// It waits in the switch's memory, in the queue with this number, for
    /// [`SwitchContext::release`]. A scheme numbers its queues from 0, and uses a number again. Not
    /// for packets that a scheme sent. Where ports share memory, it may find no room there: then it
    /// is lost, and the scheme is not told.
    Hold(u32),
}

/// A load balancer at a switch: one value a switch.
pub trait SwitchScheme: Sized {
    /// Parameters of the scheme, as the spec gives them.
    type Params;

    /// The optional calls that it wants, whatever its parameters.
    const HOOKS: SwitchHooks = SwitchHooks::NONE;

    /// The optional calls that it wants with these parameters: [`Self::HOOKS`] unless it says
    /// otherwise.
    fn hooks(_params: &Self::Params) -> SwitchHooks {
        Self::HOOKS
    }

    /// Whether it ever asks how long the queues of ports are: [`SwitchContext::drain_time`] and its
    /// neighbours. For one that does not, ports with several classes need not say at once what they
    /// send.
    const LOOKS_AT_QUEUES: bool = true;

    /// Whether it asks for what waits without the packet in service:
    /// [`SwitchContext::waiting_bytes_for`]. Ports with one queue keep a list of what is queued
    /// then.
    fn needs_waiting_bytes(&self) -> bool {
        false
    }

    /// Whether [`Self::hash_choice`] knows every choice: then it is asked in place of
    /// [`Self::choose`], which takes more.
    const IS_STATELESS_HASH: bool = false;

    /// The scheme at one switch.
    fn new(params: &Self::Params, info: &SwitchInfo<'_>) -> Self;

    /// Which of `hops.ports` the packet takes: an index into it, below `hops.ports.len()`.
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize;

    /// The run begins: time to set timers.
    fn start<C: SwitchContext + ?Sized>(&mut self, _cx: &mut C) {}

    /// A packet of a kind that [`Self::HOOKS`] names came in by `port`, which is one of those. It
    /// may be changed, held back, or end here.
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        _cx: &mut C,
        _packet: &mut Packet,
        _port: PortId,
    ) -> Arrival {
        Arrival::Forward
    }

    /// A timer is due.
    fn on_timer<C: SwitchContext + ?Sized>(&mut self, _cx: &mut C, _token: u32) {}

    /// The queue of a port that [`Self::HOOKS`] names took a packet of a host, chosen or not: it
    /// will leave, whether or not the wire loses it. What the queue refuses is never told of. The
    /// packet's header may be changed still.
    ///
    /// The call comes as soon as it is known when the packet leaves. On a port with one queue that
    /// is when the packet is queued; it leaves later, if at all, if the port changes meanwhile, of
    /// which [`Self::on_port_change`] tells. On a port with several classes it is when the packet
    /// goes into service.
    fn on_enqueued<C: SwitchContext + ?Sized>(&mut self, _cx: &mut C, _packet: &mut Packet, _queued: Queued) {
    }

    /// A port's cable went down or came back, or its rate or delay is another one from now on. The
    /// context shows what the port is now, and what is queued on it is already on its new schedule,
    /// or lost.
    fn on_port_change<C: SwitchContext + ?Sized>(&mut self, _cx: &mut C, _port: PortId) {}

    /// Which of `hops.ports` every packet with this entropy takes, if that is all that its choice
    /// depends on: what a host that knows the hash and its parameters can work out by itself.
    fn hash_choice(&self, _entropy: u32, _hops: &NextHops<'_>) -> Option<usize> {
        None
    }

    /// Why it will choose as it does for this packet, for people who follow a flow: the rule that
    /// decides, with its figures, in a few words. Asked just before [`Self::choose`], and only
    /// then; it changes nothing.
    fn explain(&self, _cx: &dyn SwitchContext, _packet: &Packet, _hops: &NextHops<'_>) -> Option<String> {
        None
    }

    /// The numbers that a controller writes into the switch for it: name, place if there are
    /// several of a name, value. They stay until a timer, a neighbour's packet or a change of a
    /// port makes them other ones.
    fn registers(&self, _set: &mut dyn FnMut(&'static str, u32, u64)) {}

    /// Bytes of state that hardware would keep for it in this switch.
    fn state_bytes(&self) -> u64;

    /// Counters of the scheme, by name, for the results.
    fn counters(&self, _count: &mut dyn FnMut(&'static str, u64)) {}
}

#[cfg(test)]
mod tests {
    use crate::testing::Group;

    use super::*;

    #[test]
    fn a_port_is_found_at_its_index_with_and_without_holes_in_the_group() {
        for group in [Group::of([4, 5, 6, 7]), Group::of([0, 3, 4, 9, 65_535])] {
            for (index, &port) in group.ports.iter().enumerate() {
                assert_eq!(group.hops().index_of(port), Some(index));
            }
            for absent in [1, 8, 10, 65_534].map(PortId) {
                assert_eq!(group.hops().index_of(absent), None);
            }
        }
    }
}
