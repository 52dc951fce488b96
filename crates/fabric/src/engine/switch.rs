//! Switches and their schemes: what a scheme sees, and what becomes of what it does.

use weft_balance::{AnySwitchScheme, Arrival, NextHops, PortId, Queued, SwitchContext, SwitchInfo};
use weft_packet::{HostId, Kind, Packet};
use weft_topology::Topology;
use weft_units::{Rate, Span, Stream, Time};

use super::event_set::EventKey;
use super::hold::HoldQueues;
use super::link::{FarEnd, Link, Profile};
use super::network::{Network, PortStates};
use super::pool::PacketIndex;
use super::scheduled_port::ScheduledPort;

/// By switch, the rack that hangs at it, or `u16::MAX` if none does.
pub fn racks_of_switches(topology: &Topology) -> Vec<u16> {
    let mut racks = vec![u16::MAX; topology.switches];
    for (rack, &switch) in topology.switch_of_rack.iter().enumerate() {
        racks[switch as usize] = rack as u16;
    }
    racks
}

/// The scheme of each of these switches, as `make` makes it. `max_wire_bytes` is the largest
/// packet; `base_rtts` are those of all pairs of racks, `[from x racks + to]`, or empty if nobody
/// asks.
pub fn switch_schemes(
    topology: &Topology,
    switches: &[u32],
    seed: u64,
    max_wire_bytes: u16,
    base_rtts: &[Span],
    make: &mut dyn FnMut(&SwitchInfo<'_>) -> AnySwitchScheme,
) -> Vec<AnySwitchScheme> {
    let racks = racks_of_switches(topology);
    let base_rtts_from = |rack: u16| {
        let (rack, racks) = (usize::from(rack), topology.racks());
        base_rtts.get(rack * racks..(rack + 1) * racks).unwrap_or_default()
    };
    switches
        .iter()
        .map(|&switch| {
            let (switch, rack) = (switch as usize, racks[switch as usize]);
            let node = topology.hosts + switch;
            let ports = topology.first_link[node] as usize..topology.first_link[node + 1] as usize;
            let ports = &topology.links[ports];
            make(&SwitchInfo {
                switch: switch as u32,
                tier: topology.tier_of_switch[switch],
                seed,
                port_rates: &ports.iter().map(|link| link.condition.rate).collect::<Vec<_>>(),
                port_delays: &ports.iter().map(|link| link.condition.delay).collect::<Vec<_>>(),
                port_buffers: &ports.iter().map(|link| link.buffer(max_wire_bytes)).collect::<Vec<_>>(),
                port_peers: &ports.iter().map(|link| topology.peer(link)).collect::<Vec<_>>(),
                rack: (rack != u16::MAX).then_some(rack),
                racks: topology.racks() as u16,
                base_rtts: base_rtts_from(rack),
            })
        })
        .collect()
}

/// A switch as its scheme sees it. `CLASSES` says whether any port of the network has several
/// classes: a scheme that asks for the queue of a packet pays for them only then.
struct SwitchView<'a, const CLASSES: bool> {
    now: Time,
    topology: &'a Topology,
    /// Ports of all switches; this one's begin at `first`.
    state: &'a PortStates,
    first: u32,
    /// Which one of all switches this is: few calls draw from its stream.
    switch: u32,
    streams: &'a mut Vec<Stream>,
    actions: &'a mut SwitchActions,
    hold_queues: &'a HoldQueues,
}

/// Actions of a scheme in one call: done when the call is over.
#[derive(Default)]
pub struct SwitchActions {
    packets: Vec<(PortId, Packet)>,
    timers: Vec<(Span, u32)>,
    /// Queues of held packets that go on.
    released: Vec<u32>,
    /// Whether there is anything: asked after each decision.
    any: bool,
}

impl SwitchActions {
    #[inline]
    const fn is_empty(&self) -> bool {
        !self.any
    }
}

impl<const CLASSES: bool> SwitchView<'_, CLASSES> {
    /// The link of a port.
    #[inline]
    const fn link_of(&self, port: PortId) -> usize {
        self.first as usize + port.index()
    }

    #[inline]
    fn link(&self, port: PortId) -> &Link {
        &self.state.links[self.link_of(port)]
    }

    #[inline]
    fn profile(&self, port: PortId) -> &Profile {
        &self.state.profiles[self.link(port).profile]
    }

    /// How long what waits behind the packet in service takes to send, in ps, on a port with one
    /// queue.
    fn waiting_ps(&self, port: PortId) -> u64 {
        let link = self.link(port);
        let special = self.state.specials.get(link.special as usize);
        debug_assert!(special.is_some(), "a scheme that tells the packet in service says so");
        special.map_or(0, |special| special.waiting_ps(self.now.as_ps(), link.busy_until))
    }

    /// The port, if it has several classes.
    #[inline]
    fn scheduled(&self, port: PortId) -> Option<&ScheduledPort> {
        if CLASSES { self.state.scheduled.get(self.link_of(port)).and_then(Option::as_ref) } else { None }
    }
}

impl<const CLASSES: bool> SwitchContext for SwitchView<'_, CLASSES> {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn drain_time(&self, port: PortId) -> Span {
        debug_assert!(self.state.are_looked_at, "a scheme that looks at queues says so");
        Span::from_ps(self.link(port).backlog_ps(self.now.as_ps()))
    }

    #[inline]
    fn backlog_bytes(&self, port: PortId) -> u64 {
        self.profile(port).bytes_in(self.drain_time(port).as_ps())
    }

    #[inline]
    fn drain_time_for(&self, port: PortId, packet: &Packet) -> Span {
        debug_assert!(self.state.are_looked_at, "a scheme that looks at queues says so");
        match self.scheduled(port) {
            Some(scheduled) => {
                Span::from_ps(scheduled.wait_of_ps(packet, self.now.as_ps(), self.profile(port)))
            }
            None => self.drain_time(port),
        }
    }

    #[inline]
    fn backlog_bytes_for(&self, port: PortId, packet: &Packet) -> u64 {
        debug_assert!(self.state.are_looked_at, "a scheme that looks at queues says so");
        match self.scheduled(port) {
            Some(scheduled) => self.profile(port).bytes_in(scheduled.ahead_of_ps(packet, self.now.as_ps())),
            None => self.backlog_bytes(port),
        }
    }

    #[inline]
    fn waiting_bytes_for(&self, port: PortId, packet: &Packet) -> u64 {
        match self.scheduled(port) {
            Some(scheduled) => {
                self.profile(port).bytes_in(scheduled.waiting_before_ps(packet, self.now.as_ps()))
            }
            None => self.profile(port).bytes_in(self.waiting_ps(port)),
        }
    }

    #[inline]
    fn rate(&self, port: PortId) -> Rate {
        self.profile(port).rate
    }

    #[inline]
    fn bytes_sent(&self, port: PortId) -> u64 {
        self.link(port).bytes
    }

    #[inline]
    fn is_up(&self, port: PortId) -> bool {
        self.state.local_up[self.link_of(port)]
    }

    #[inline]
    fn rack_of(&self, host: HostId) -> u16 {
        self.topology.rack_of_host[host.index()]
    }

    #[inline]
    fn random(&mut self) -> &mut Stream {
        &mut self.streams[self.switch as usize]
    }

    fn send(&mut self, port: PortId, packet: Packet) {
        self.actions.packets.push((port, packet));
        self.actions.any = true;
    }

    fn set_timer(&mut self, delay: Span, token: u32) {
        self.actions.timers.push((delay, token));
        self.actions.any = true;
    }

    fn release(&mut self, queue: u32) {
        self.actions.released.push(queue);
        self.actions.any = true;
    }

    fn held_bytes(&self) -> u64 {
        self.hold_queues.bytes(self.switch)
    }
}

/// Calls the scheme of a switch, whose ports begin at link `$first`, with a view of it. A macro,
/// for the view borrows the network field by field. What the scheme asked for is to be done
/// afterwards, by [`Network::apply_actions`].
macro_rules! call_scheme {
    ($network:expr, $switch:expr, $first:expr, |$scheme:ident, $view:ident, $pool:ident| $call:expr) => {
        call_scheme!($network, $switch, $first, true, |$scheme, $view, $pool| $call)
    };
    ($network:expr, $switch:expr, $first:expr, $classes:literal, |$scheme:ident, $view:ident, $pool:ident| $call:expr) => {{
        let mut view = SwitchView::<$classes> {
            now: $network.now,
            topology: $network.topology,
            state: &$network.state,
            first: $first as u32,
            switch: $switch as u32,
            streams: &mut $network.streams,
            actions: &mut $network.actions,
            hold_queues: &$network.hold_queues,
        };
        let ($scheme, $view, $pool) = (&mut $network.schemes[$switch], &mut view, &mut $network.pool);
        $call
    }};
}

impl Network<'_> {
    /// The links of a switch's ports.
    #[inline]
    pub(super) fn ports(&self, switch: usize) -> std::ops::Range<usize> {
        self.map.ports(switch)
    }

    /// Lets every scheme begin.
    pub fn start_schemes(&mut self) {
        for switch in 0..self.schemes.len() {
            let first = self.ports(switch).start;
            call_scheme!(self, switch, first, |scheme, view, _pool| scheme.start(view));
            self.apply_actions(switch);
        }
    }

    /// The port that a packet takes of a group: the one of its explicit route, or the one that the
    /// scheme chooses.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn next_hop(&mut self, at: FarEnd, group: u32, rack: u16, index: PacketIndex) -> PortId {
        let (switch, first) = (at.switch as usize, at.first_link as usize);
        let (ports, weights) = self.routes.group(group);
        let hops = NextHops { ports, weights, rack };
        let packet = &mut self.pool[index];
        let known = match packet.route.next_hop(ports.len()) {
            None if !self.state.chooses_apart => {
                // A call, with a view of the switch, is more than all that such a scheme does.
                self.schemes[switch].choose_by_five_tuple(packet.entropy, &hops)
            }
            prescribed => prescribed,
        };
        if let Some(choice) = known {
            let port = ports[choice];
            packet.note_choice(port, self.trail_base);
            return port;
        }
        let port = if self.state.chooses_apart {
            let choice = self.choose_apart(at, group, rack, index);
            self.routes.group(group).0[choice]
        } else {
            ports[call_scheme!(self, switch, first, false, |scheme, view, pool| scheme.choose(
                view,
                &mut pool[index],
                &hops
            ))]
        };
        self.pool[index].note_choice(port, self.trail_base);
        if !self.actions.is_empty() {
            self.apply_actions(switch);
        }
        port
    }

    /// Chooses a port for a packet, and notes why, where somebody follows its flow.
    #[inline(never)]
    fn choose_apart(&mut self, at: FarEnd, group: u32, rack: u16, index: PacketIndex) -> usize {
        if !self.follows(index) {
            return self.choose_unseen(at, group, rack, index);
        }
        let reason = self.explain_oracle(at, rack, index).or_else(|| self.explain(at, group, rack, index));
        let choice = self.choose_unseen(at, group, rack, index);
        self.note_choice(at, group, index, choice, reason);
        choice
    }

    /// Why the scheme of a switch chooses as it will, in its own words.
    fn explain(&mut self, at: FarEnd, group: u32, rack: u16, index: PacketIndex) -> Option<String> {
        let (ports, weights) = self.routes.group(group);
        let hops = NextHops { ports, weights, rack };
        let (switch, first) = (at.switch as usize, at.first_link as usize);
        call_scheme!(self, switch, first, true, |scheme, view, pool| scheme.explain(
            view,
            &pool[index],
            &hops
        ))
    }

    /// Choice of the oracle, if there is one that sees a way; or of the scheme, where ports have
    /// several classes.
    fn choose_unseen(&mut self, at: FarEnd, group: u32, rack: u16, index: PacketIndex) -> usize {
        if let Some(choice) = self.choose_as_oracle(at, rack, index) {
            return choice;
        }
        let (ports, weights) = self.routes.group(group);
        let hops = NextHops { ports, weights, rack };
        let (switch, first) = (at.switch as usize, at.first_link as usize);
        call_scheme!(self, switch, first, true, |scheme, view, pool| scheme.choose(
            view,
            &mut pool[index],
            &hops
        ))
    }

    /// A packet that may be shown around came in by `link`: see [`Self::enters`]. Where that is is
    /// looked up again, so that it stays in registers for packets that nobody is shown.
    #[inline(never)]
    pub(super) fn enters_by(&mut self, link: u32, index: PacketIndex) -> bool {
        let at = self.state.links[link as usize].far_end();
        self.enters(at, self.map.enters_by(link), index)
    }

    /// A packet that may be shown around came in by `port`: whether it is forwarded now. If not, it
    /// ends here, or waits until the switch has time for it.
    #[inline]
    pub(super) fn enters(&mut self, at: FarEnd, port: PortId, index: PacketIndex) -> bool {
        if self.inputs.is_some() {
            self.wait_at_input(at, port, index);
            return false;
        }
        if self.shared_buffers.is_some() {
            if !self.enters_memory(at, port, index) {
                return false;
            }
            if !self.scheme_wants_arrival(at, port, index) {
                return true;
            }
        }
        self.passes(at, port, index)
    }

    /// Shows a packet that came in by `port` to the scheme: whether it is forwarded now. If not, it
    /// ended here, or is held back, or has gone on with what followed it.
    pub(super) fn passes(&mut self, at: FarEnd, port: PortId, index: PacketIndex) -> bool {
        let (switch, first) = (at.switch as usize, at.first_link as usize);
        if self.traces && self.expires(switch, port.0, index) {
            self.consume(index);
            return false;
        }
        let is_control = self.pool[index].kind == Kind::Control;
        let arrival = if self.state.scheduled.is_empty() {
            call_scheme!(self, switch, first, false, |scheme, view, pool| scheme.on_arrival(
                view,
                &mut pool[index],
                port
            ))
        } else {
            call_scheme!(self, switch, first, true, |scheme, view, pool| scheme.on_arrival(
                view,
                &mut pool[index],
                port
            ))
        };
        let released = std::mem::take(&mut self.actions.released);
        if !self.actions.is_empty() {
            self.apply_actions(switch);
        }
        let goes_on = match arrival {
            Arrival::Forward => !is_control,
            Arrival::Pass => true,
            Arrival::Consume | Arrival::Hold(_) => false,
        };
        match arrival {
            Arrival::Hold(queue) if !is_control => self.hold(at, queue, index),
            _ if !goes_on => drop(self.consume(index)),
            _ => {}
        }
        if released.is_empty() {
            return goes_on;
        }
        if goes_on {
            self.forward_apart(at, index);
        }
        self.release_hold_queues(switch, released);
        false
    }

    /// Shows a packet that a port's queue took to the scheme of its switch.
    pub(super) fn notify_scheme(&mut self, switch: usize, index: PacketIndex, queued: Queued) {
        let first = self.ports(switch).start;
        call_scheme!(self, switch, first, |scheme, view, pool| scheme.on_enqueued(
            view,
            &mut pool[index],
            queued
        ));
        if !self.actions.is_empty() {
            self.apply_actions(switch);
        }
    }

    /// Tells the scheme at the near end of a link that the link's condition is another one.
    pub(super) fn tell_of_change(&mut self, link: u32) {
        let Some((switch, port)) = self.map.port_of(link) else { return };
        let first = self.ports(switch).start;
        call_scheme!(self, switch, first, |scheme, view, _pool| scheme.on_port_change(view, port));
        self.apply_actions(switch);
    }

    /// A timer of the scheme of a switch is due.
    pub fn wake_scheme(&mut self, switch: usize, token: u32) {
        let first = self.ports(switch).start;
        call_scheme!(self, switch, first, |scheme, view, _pool| scheme.on_timer(view, token));
        self.apply_actions(switch);
    }

    /// Sends the packets and sets the timers that a scheme asked for, and lets packets go that it
    /// held back.
    #[cold]
    fn apply_actions(&mut self, switch: usize) {
        let mut actions = std::mem::take(&mut self.actions);
        for (delay, token) in actions.timers.drain(..) {
            let at = self.now.saturating_add(delay);
            self.events.push_timer(at, EventKey::switch_timer(switch as u32, token));
        }
        let first = self.ports(switch).start;
        for (port, mut packet) in actions.packets.drain(..) {
            packet.kind = Kind::Control;
            self.send_control((first + port.index()) as u32, packet);
        }
        let released = std::mem::take(&mut actions.released);
        self.actions = SwitchActions { any: false, ..actions };
        self.release_hold_queues(switch, released);
    }
}
