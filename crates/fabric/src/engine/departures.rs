//! Who is shown the packets that switches queue: the scheme, the observer and the tracer, if they want to.

use weft_balance::{PortId, Queued};
use weft_packet::Kind;
use weft_units::{Span, Time};

use super::network::Network;
use super::observer::{Observation, Observer};
use super::pool::PacketIndex;
use super::tracer::Tracer;

impl Network<'_> {
    /// Watches the queues of switches' ports from now on, over windows of this length. `max_wire_bytes` is the largest
    /// packet.
    pub fn observe(&mut self, window: Span, max_wire_bytes: u16) {
        self.departures_are_seen = true;
        let buffers = self.site.specs().map(|spec| spec.buffer(max_wire_bytes));
        self.observer = Some(Observer::new(window, buffers));
    }

    /// Watches the packets of some flows from now on.
    pub fn trace(&mut self, tracer: Tracer) {
        self.departures_are_seen = true;
        self.tracer = Some(tracer);
    }

    /// A port with one queue took a packet, which found a backlog of `backlog_ps`, and counts it already.
    pub(super) fn tell_of_queued(&mut self, link: u32, index: PacketIndex, backlog_ps: u64) {
        self.trace_offered(link, index);
        let sent_before = self.links[link as usize].bytes - u64::from(self.pool[index].wire_bytes);
        let leaves = Time::from_ps(self.now.as_ps().saturating_add(backlog_ps));
        self.show(link, index, leaves, sent_before, backlog_ps);
    }

    /// A port with several classes sends a packet now, which found a backlog of `found_ps` when it came.
    pub(super) fn tell_of_service(&mut self, link: u32, index: PacketIndex, sent_before: u64, found_ps: u64) {
        if self.pool[index].kind != Kind::Control {
            self.show(link, index, self.now, sent_before, found_ps);
        }
    }

    fn show(&mut self, link: u32, index: PacketIndex, leaves: Time, sent_before: u64, found_ps: u64) {
        let Some((switch, port)) = self.site.port_of(link) else { return };
        let port = PortId(port);
        let found_bytes = self.profiles[self.links[link as usize].profile].bytes_in(found_ps);
        let queued = Queued { port, leaves, found_bytes, sent_before };
        if let Some(observer) = &mut self.observer {
            observer.note(link, &queued, self.pool[index].wire_bytes);
        }
        if self.hooks.queued {
            self.tell_scheme(switch, index, queued);
        }
    }

    /// Shows the tracer a packet that a switch put into a queue, or wanted to.
    pub(super) fn trace_offered(&mut self, link: u32, index: PacketIndex) {
        if let Some(tracer) = self.tracer.as_mut().filter(|_| link as usize >= self.site.hosts().len()) {
            tracer.note(&self.pool[index], self.site.number(link), self.now);
        }
    }

    /// What was observed; empty unless asked for.
    pub fn observations(&mut self) -> Vec<Observation> {
        let observer = self.observer.take();
        observer.map(|observer| observer.into_observations(self.now)).unwrap_or_default()
    }
}
