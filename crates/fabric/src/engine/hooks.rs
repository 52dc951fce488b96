//! Who is shown the packets that switches queue: the scheme, the observer and the tracer, if they
//! want to.

use weft_balance::{Ports, Queued};
use weft_packet::Kind;
use weft_topology::Tier;
use weft_units::{Span, Time};

use super::network::Network;
use super::observer::{Observation, Observer};
use super::pool::PacketIndex;
use super::tracer::Tracer;

/// Whether a switch's port in this tier is one of these.
#[inline]
pub(super) const fn is_among(tier: u8, ports: Ports) -> bool {
    match ports {
        Ports::None => false,
        Ports::ToSwitches => tier != Tier::Last as u8,
        Ports::All => true,
    }
}

impl Network<'_> {
    /// Whether somebody wants to see what the queue of a switch's port in this tier takes.
    #[inline]
    pub(super) const fn watches(&self, tier: u8) -> bool {
        is_among(tier, self.watched_ports)
    }

    /// Watches the queues of switches' ports from now on, over windows of this length.
    /// `max_wire_bytes` is the largest packet.
    pub fn observe(&mut self, window: Span, max_wire_bytes: u16) {
        self.watched_ports = Ports::All;
        let buffers = self.map.specs().map(|spec| spec.buffer(max_wire_bytes));
        self.observer = Some(Observer::new(window, buffers));
    }

    /// Watches the packets of some flows from now on.
    pub fn trace(&mut self, tracer: Tracer) {
        self.watched_ports = Ports::All;
        self.tracer = Some(tracer);
    }

    /// A port with one queue took a packet, which found a backlog of `backlog_ps`, and counts it
    /// already.
    pub(super) fn notify_enqueued(&mut self, link: u32, index: PacketIndex, backlog_ps: u64) {
        self.trace_offered(link, index);
        let sent_before = self.state.links[link as usize].bytes - u64::from(self.pool[index].wire_bytes);
        let leaves = Time::from_ps(self.now.as_ps().saturating_add(backlog_ps));
        self.notify(link, index, leaves, sent_before, backlog_ps);
    }

    /// A port with several classes sends a packet now, which found a backlog of `found_ps` when it
    /// came.
    pub(super) fn notify_service(&mut self, link: u32, index: PacketIndex, sent_before: u64, found_ps: u64) {
        if self.pool[index].kind != Kind::Control {
            self.notify(link, index, self.now, sent_before, found_ps);
        }
    }

    fn notify(&mut self, link: u32, index: PacketIndex, leaves: Time, sent_before: u64, found_ps: u64) {
        let Some((switch, port)) = self.map.port_of(link) else { return };
        let found_bytes = self.state.profiles[self.state.links[link as usize].profile].bytes_in(found_ps);
        let queued = Queued { port, leaves, found_bytes, sent_before };
        if let Some(observer) = &mut self.observer {
            observer.note(link, &queued, self.pool[index].wire_bytes);
        }
        // What a scheme would write into a pause would make another pause of it.
        let is_pause = self.pool[index].kind == Kind::Pause;
        if is_among(self.state.links[link as usize].tier, self.hooks.on_enqueued) && !is_pause {
            self.notify_scheme(switch, index, queued);
        }
    }

    /// Shows the tracer a packet that a switch put into a queue, or wanted to.
    pub(super) fn trace_offered(&mut self, link: u32, index: PacketIndex) {
        if let Some(tracer) = self.tracer.as_mut().filter(|_| link as usize >= self.map.hosts().len()) {
            tracer.note(&self.pool[index], self.map.number(link), self.now);
        }
    }

    /// Observations of ports; empty unless asked for.
    pub fn observations(&mut self) -> Vec<Observation> {
        let observer = self.observer.take();
        observer.map(|observer| observer.into_observations(self.now)).unwrap_or_default()
    }
}
