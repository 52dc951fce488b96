//! A host's virtual switch: its host scheme, what the scheme sees, and what becomes of what it
//! does.

use weft_balance::{AnyHostFlow, AnyHostScheme, HostContext, Message};
use weft_packet::{HostId, Packet, Route};
use weft_units::{Rate, Span, Stream, Time};

use super::HostCall;
use super::nic::HostPort;
use super::outbox::End;
use weft_topology::{Routes, Topology};

/// The host scheme of a host, with its random stream.
pub struct VirtualSwitch {
    /// The scheme.
    pub scheme: AnyHostScheme,
    /// Random stream of the scheme.
    pub stream: Stream,
}

/// Actions of a host scheme in one call: done when the call is over.
#[derive(Default)]
pub struct HostActions {
    delivered: Vec<Packet>,
    flow_timer: Option<Span>,
    messages: Vec<Message>,
    host_timers: Vec<(Span, u32)>,
}

impl HostActions {
    /// Whether the host has something to do.
    #[inline]
    fn concern_host(&self) -> bool {
        !self.messages.is_empty() || !self.host_timers.is_empty()
    }

    /// Takes an emptied list of packets back for reuse.
    pub fn recycle(&mut self, mut delivered: Vec<Packet>) {
        delivered.clear();
        self.delivered = delivered;
    }
}

impl VirtualSwitch {
    /// Lets the scheme begin.
    pub fn start(&mut self, here: &mut HostCall<'_, '_, '_>) {
        self.with_host(here, |scheme, view| scheme.start(view));
    }

    /// A packet for `end` came in: what is delivered now, in order. To be given back with
    /// [`HostActions::recycle`].
    pub fn receive(&mut self, end: &mut End, packet: Packet, here: &mut HostCall<'_, '_, '_>) -> Vec<Packet> {
        self.with_flow(end, here, |scheme, view, flow| scheme.on_receive(view, flow, packet));
        std::mem::take(&mut here.common.actions.delivered)
    }

    /// The scheme's timer for `end` is due: what is delivered now, in order. To be given back with
    /// [`HostActions::recycle`].
    pub fn flow_timer(&mut self, end: &mut End, here: &mut HostCall<'_, '_, '_>) -> Vec<Packet> {
        self.with_flow(end, here, |scheme, view, flow| scheme.flow_timer(view, flow));
        std::mem::take(&mut here.common.actions.delivered)
    }

    /// Lets the scheme set the route of a packet that goes out.
    pub fn route(&mut self, end: &mut End, packet: &mut Packet, here: &mut HostCall<'_, '_, '_>) {
        self.with_flow(end, here, |scheme, view, flow| scheme.on_send(view, flow, packet));
        debug_assert!(here.common.actions.delivered.is_empty(), "nothing is delivered while sending");
        here.nic.note_label(packet);
    }

    /// A retransmission timer of `end` expired.
    pub fn timed_out(&mut self, end: &mut End, here: &mut HostCall<'_, '_, '_>) {
        self.with_flow(end, here, |scheme, view, flow| scheme.timed_out(view, flow));
    }

    /// The sending end of a flow is done.
    pub fn finished(&mut self, end: &mut End, here: &mut HostCall<'_, '_, '_>) {
        self.with_flow(end, here, |scheme, view, flow| scheme.finished(view, flow));
    }

    /// A packet of a host scheme reached the host.
    pub fn message(&mut self, packet: &Packet, here: &mut HostCall<'_, '_, '_>) {
        let message = here.nic.message_of(packet);
        self.with_host(here, |scheme, view| scheme.message(view, message));
    }

    /// A timer of the scheme is due.
    pub fn host_timer(&mut self, token: u32, here: &mut HostCall<'_, '_, '_>) {
        self.with_host(here, |scheme, view| scheme.host_timer(view, token));
    }

    /// Calls the scheme about a flow.
    fn with_flow(
        &mut self,
        end: &mut End,
        here: &mut HostCall<'_, '_, '_>,
        call: impl FnOnce(&mut AnyHostScheme, &mut HostView<'_>, &mut AnyHostFlow),
    ) {
        let (scheme, mut view) = self.view(here);
        call(scheme, &mut view, end.scheme());
        if let Some(delay) = here.common.actions.flow_timer.take() {
            end.set_flow_scheme_timer(delay, &mut here.nic);
        }
        if here.common.actions.concern_host() {
            apply_actions(here);
        }
    }

    /// Calls the scheme about its host.
    fn with_host(
        &mut self,
        here: &mut HostCall<'_, '_, '_>,
        call: impl FnOnce(&mut AnyHostScheme, &mut HostView<'_>),
    ) {
        let (scheme, mut view) = self.view(here);
        call(scheme, &mut view);
        debug_assert!(
            here.common.actions.delivered.is_empty() && here.common.actions.flow_timer.is_none(),
            "no flow is at hand"
        );
        apply_actions(here);
    }

    #[inline]
    fn view<'v>(&'v mut self, here: &'v mut HostCall<'_, '_, '_>) -> (&'v mut AnyHostScheme, HostView<'v>) {
        let view = HostView {
            now: here.nic.now(),
            tables: here.nic.map(),
            own_queue: &here.nic,
            topology: here.common.topology,
            routes: &here.common.routes,
            rack: here.common.topology.rack_of_host[here.nic.host().index()],
            header_bytes: here.common.sizes.header_bytes,
            stream: &mut self.stream,
            actions: &mut here.common.actions,
        };
        (&mut self.scheme, view)
    }
}

/// Sends the messages and sets the timers that a scheme asked for.
#[cold]
fn apply_actions(here: &mut HostCall<'_, '_, '_>) {
    let now = here.nic.now();
    for (delay, token) in here.common.actions.host_timers.drain(..) {
        here.nic.set_host_timer(now.saturating_add(delay), token);
    }
    for message in here.common.actions.messages.drain(..) {
        here.nic.send_message(message);
    }
}

/// A host's own queue: asked for by few schemes, so that it is not looked at for the others.
trait OwnQueue {
    /// When all that waits in it now has left it.
    fn free_at(&self) -> Time;
}

impl OwnQueue for HostPort<'_, '_> {
    fn free_at(&self) -> Time {
        HostPort::free_at(self)
    }
}

/// A host as its host scheme sees it.
pub struct HostView<'a> {
    now: Time,
    own_queue: &'a dyn OwnQueue,
    topology: &'a Topology,
    /// Tables that explicit routes follow.
    tables: &'a Routes,
    /// How many there are from rack to rack, `[from x racks + to]`.
    routes: &'a [u16],
    rack: u16,
    header_bytes: u16,
    stream: &'a mut Stream,
    actions: &'a mut HostActions,
}

impl HostContext for HostView<'_> {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn rack_of(&self, host: HostId) -> u16 {
        self.topology.rack_of_host[host.index()]
    }

    #[inline]
    fn routes_to_rack(&self, rack: u16) -> u16 {
        self.routes_between(self.rack, rack)
    }

    fn hosts(&self) -> u32 {
        self.topology.hosts as u32
    }

    fn routes_between(&self, from: u16, to: u16) -> u16 {
        let pair = usize::from(from) * self.topology.racks() + usize::from(to);
        self.routes.get(pair).copied().unwrap_or(1)
    }

    fn path(&self, from: u16, to: u16, label: u16) -> Vec<(u32, Rate)> {
        let links = self.tables.path(self.topology, usize::from(from), usize::from(to), Route::label(label));
        links.into_iter().map(|link| (link, self.topology.links[link as usize].condition.rate)).collect()
    }

    fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    fn own_wait(&self) -> Span {
        self.own_queue.free_at().since(self.now)
    }

    fn random(&mut self) -> &mut Stream {
        self.stream
    }

    fn deliver(&mut self, packet: Packet) {
        self.actions.delivered.push(packet);
    }

    fn set_flow_timer(&mut self, delay: Span) {
        self.actions.flow_timer = Some(delay);
    }

    fn send(&mut self, message: Message) {
        self.actions.messages.push(message);
    }

    fn set_host_timer(&mut self, delay: Span, token: u32) {
        self.actions.host_timers.push((delay, token));
    }
}
