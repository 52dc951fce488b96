//! How much waits at a port, and how long that takes.

use weft_packet::Packet;
use weft_units::Rate;

use super::ScheduledPort;
use crate::engine::link::Profile;

impl ScheduledPort {
    /// Bytes that wait now in all classes, and until when what is in service is, in ps.
    fn waiting_and_serving(&self, now: u64) -> (u64, u64) {
        let mut ahead = self.ahead.iter().filter(|ahead| ahead.begins_at >= now).peekable();
        let serves_until = ahead.peek().map_or(self.free_at, |first| first.free_at);
        (self.waiting_bytes + ahead.map(|ahead| u64::from(ahead.wire_bytes)).sum::<u64>(), serves_until)
    }

    /// Bytes that are queued now in all classes, with what is left of the packet in service.
    pub fn backlog_bytes(&self, now: u64, profile: &Profile) -> u64 {
        let (waiting, until) = self.waiting_and_serving(now);
        // What is ahead of its time is not what is in service.
        let most = if until == self.free_at { self.serving_bytes } else { u16::MAX };
        waiting + self.aside.finishing.unsent(until, now, profile).min(u64::from(most))
    }

    /// Queued bytes of all classes; overhead of the packet in service on the wire counts as bytes:
    /// so the number is the same whether or not somebody watches the port.
    pub fn unsent_bytes(&self, now: u64, profile: &Profile) -> u64 {
        let (waiting, until) = self.waiting_and_serving(now);
        waiting + self.aside.finishing.unsent(until, now, profile)
    }

    /// The link had this rate until now. Returns from when on it sends at another one, in ps.
    pub fn change_rate(&mut self, now: u64, rate: Rate) -> u64 {
        self.aside.finishing.change(now, self.free_at, rate)
    }

    /// The most bytes that were queued since this was last asked; `backlog_bytes` are queued now.
    pub const fn take_peak(&mut self, backlog_bytes: u64) -> u64 {
        std::mem::replace(&mut self.aside.peak_bytes, backlog_bytes)
    }

    /// How long all that takes to send, in ps, that would be sent before a packet that comes now,
    /// if nothing else comes.
    pub fn ahead_of_ps(&self, packet: &Packet, now: u64) -> u64 {
        let own = self.rules.class_of(packet);
        // What is held back goes at its own pace, and only its own class waits for it.
        let waiting = |class: usize| {
            let queue = &self.classes[class];
            if class == own { queue.waiting_ps } else { queue.drains_ps() }
        };
        self.rest_ps(now).saturating_add(self.aside.scheduler.ahead_of(own, waiting))
    }

    /// Time in ps to send all that waits before a packet that comes now, without the one in
    /// service.
    pub fn waiting_before_ps(&self, packet: &Packet, now: u64) -> u64 {
        self.ahead_of_ps(packet, now).saturating_sub(self.rest_ps(now))
    }

    /// How long it is until a packet that comes now would be sent, in ps, if nothing else comes.
    pub fn wait_of_ps(&self, packet: &Packet, now: u64, profile: &Profile) -> u64 {
        let queue = &self.classes[self.rules.class_of(packet)];
        let held = queue.bucket.as_ref().map_or(0, |bucket| {
            let before = profile.bytes_in(queue.waiting_ps);
            bucket.ready_behind(now, before, packet.wire_bytes).saturating_sub(now)
        });
        self.ahead_of_ps(packet, now).max(held)
    }
}
