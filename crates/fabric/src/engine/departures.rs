//! Who is shown the packets that switches are about to queue: the scheme, the observer and the tracer, if they want to.

use weft_units::Span;

use super::network::Network;
use super::observer::{Observation, Observer, Offered};
use super::pool::PacketIndex;
use super::tracer::{FlowTrace, Tracer};

impl Network<'_> {
    /// Watches the queues of switches' ports from now on, over windows of this length. `max_wire_bytes` is the largest
    /// packet.
    pub fn observe(&mut self, window: Span, max_wire_bytes: u16) {
        self.departures_are_seen = true;
        let buffers = self.topology.links.iter().map(|link| link.queue.buffer(max_wire_bytes));
        self.observer = Some(Observer::new(window, buffers));
    }

    /// Watches the packets of some flows from now on.
    pub fn trace(&mut self, tracer: Tracer) {
        self.departures_are_seen = true;
        self.tracer = Some(tracer);
    }

    /// What was traced; empty unless asked for.
    pub fn traces(&mut self) -> Vec<FlowTrace> {
        self.tracer.take().map(Tracer::into_traces).unwrap_or_default()
    }

    /// Shows a packet that is about to be queued on a switch's port to whoever wants to see it.
    pub(super) fn departing(&mut self, switch: usize, port: u32, index: PacketIndex) {
        if let Some(tracer) = &mut self.tracer {
            let link = self.topology.first_link[self.topology.hosts + switch] + port;
            tracer.note(&self.pool[index], link, self.now);
        }
        if self.observer.is_some() {
            self.note_departure(self.topology.first_link[self.topology.hosts + switch] + port, index);
        }
        if self.hooks.departing {
            self.tell_of_departure(switch, port, index);
        }
    }

    #[cold]
    fn note_departure(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let backlog_ps = self.links[link as usize].backlog_ps(now);
        let packet = Offered {
            sent_before: self.links[link as usize].bytes,
            leaves: now.saturating_add(backlog_ps),
            found_bytes: self.backlog_bytes(link as usize),
            wire_bytes: self.pool[index].wire_bytes,
        };
        if let Some(observer) = &mut self.observer {
            observer.offer(link, packet);
        }
    }

    /// What was observed; empty unless asked for.
    pub fn observations(&mut self) -> Vec<Observation> {
        let (links, end) = (&self.links, self.now);
        let observer = self.observer.take();
        let seen =
            observer.map(|observer| observer.into_observations(end, |link| links[link as usize].bytes));
        seen.unwrap_or_default()
    }
}
