//! Occasional queries on links and on the network: no packet makes any.

use weft_balance::AnySwitchScheme;
use weft_units::{Bytes, PicosPerByte, Rate, Time};

use super::{LinkDrops, Network};
use crate::engine::degraded_links::Found;
use crate::engine::link::Link;
use crate::engine::scheduled_port::ScheduledPort;

/// State of a link for samples.
#[derive(Debug, Clone, Copy)]
pub struct LinkLook {
    /// Bytes that it was given to send.
    pub bytes: u64,
    /// Drops of packets.
    pub drops: LinkDrops,
    /// Bytes that are queued now, and the most since somebody last looked.
    pub backlogs: (u64, u64),
    /// How long the classes of its port have been paused so far, together, in ps.
    pub paused_ps: u64,
}

impl Network<'_> {
    /// The rate of a link now.
    pub fn rate(&self, link: usize) -> Rate {
        self.state.profiles[self.state.links[link].profile].rate
    }

    /// How long a byte takes on a link now.
    pub fn pace(&self, link: u32) -> PicosPerByte {
        self.state.profiles[self.state.links[link as usize].profile].pace()
    }

    /// When all that a link has been given will have left, if nothing about it changes.
    pub fn free_at(&self, link: u32) -> Time {
        self.sent_at(link, self.link_free_at(link))
    }

    /// When all that a link has been given will have left, whatever the CPU was given to send.
    pub fn link_free_at(&self, link: u32) -> Time {
        let (now, state) = (self.now.as_ps(), &self.state.links[link as usize]);
        let Some(port) = self.state.scheduled.get(link as usize).and_then(Option::as_ref) else {
            return Time::from_ps(state.busy_until.max(now));
        };
        let profile = &self.state.profiles[state.profile];
        self.now.saturating_add(profile.pace().service_of(Bytes::new(port.backlog_bytes(now, profile))))
    }

    /// State of a link for samples.
    pub fn look(&mut self, link: usize) -> LinkLook {
        LinkLook {
            bytes: self.state.links[link].bytes,
            drops: self.drops(link),
            backlogs: self.take_backlogs(link),
            paused_ps: self.paused_ps(link),
        }
    }

    /// Bytes that a link was given to send so far, and those that wait there now.
    pub fn given_and_waiting(&self, link: usize) -> Found {
        Found { bytes: self.state.links[link].bytes, backlog_bytes: self.backlog_at(link, self.now) }
    }

    /// The backlogs of a link: bytes that are queued now, with what is left of the packet in
    /// service, and the most that were queued since this was last asked.
    pub fn take_backlogs(&mut self, link: usize) -> (u64, u64) {
        let bytes = self.backlog_bytes(link);
        if let Some(port) = self.state.scheduled.get_mut(link).and_then(Option::as_mut) {
            return (bytes, port.take_peak(bytes));
        }
        (bytes, self.state.specials[self.state.links[link].special as usize].take_peak(bytes))
    }

    /// Bytes that are queued now, with what is left of the packet in service, on a link that has
    /// rules of its own: as those do that are sampled, or will change.
    pub fn backlog_bytes(&mut self, link: usize) -> u64 {
        let (now, state) = (self.now.as_ps(), &self.state.links[link]);
        let profile = &self.state.profiles[state.profile];
        match self.state.scheduled.get(link).and_then(Option::as_ref) {
            Some(port) => port.backlog_bytes(now, profile),
            None => {
                self.state.specials[state.special as usize].backlog_bytes(now, state.backlog_ps(now), profile)
            }
        }
    }

    /// Bytes that a link was given and has not sent at this time, whatever kind of port it has: the
    /// same whether or not somebody looks at it. By then nothing happens any more. Overhead on the
    /// wire counts as bytes, so the bytes that the link was given are a bound.
    pub fn unsent_bytes(&mut self, link: usize, at: Time) -> u64 {
        let (at, state) = (at.as_ps(), &self.state.links[link]);
        let profile = &self.state.profiles[state.profile];
        let unsent = match self.state.scheduled.get(link).and_then(Option::as_ref) {
            Some(port) => port.unsent_bytes(at, profile),
            None if self.changes[link] || profile.has_least_service() => {
                self.state.specials[state.special as usize].unsent_bytes(at, profile)
            }
            None => profile.bytes_in(state.backlog_ps(at)),
        };
        unsent.min(state.bytes - self.drops(link).never_sent_bytes)
    }

    /// Bytes that are queued on a link at this time, with what is left of the packet in service,
    /// whatever kind of port it has.
    pub fn backlog_at(&self, link: usize, at: Time) -> u64 {
        let (at, state) = (at.as_ps(), &self.state.links[link]);
        let profile = &self.state.profiles[state.profile];
        match self.state.scheduled.get(link).and_then(Option::as_ref) {
            Some(port) => port.backlog_bytes(at, profile),
            None => profile.bytes_in(state.backlog_ps(at)),
        }
    }

    /// Whether no packet is on a link, and none is being sent that the wire will lose.
    pub fn is_empty(&self) -> bool {
        let now = self.now.as_ps();
        let is_idle = |link: &Link| link.backlog_ps(now) == 0;
        self.pool.len() == 0 && self.state.links.iter().all(is_idle)
    }

    /// Drops on a link.
    pub fn drops(&self, link: usize) -> LinkDrops {
        let port = self.state.scheduled.get(link).and_then(Option::as_ref);
        let own = self.drops[link];
        LinkDrops { marked: own.marked + port.map_or(0, ScheduledPort::marked), ..own }
    }

    /// Packets that are on links, or held back at switches, now.
    pub fn in_flight(&self) -> u64 {
        self.pool.len() as u64
    }

    /// Bytes of memory that links, ports, packets, events and tables take.
    pub fn memory_bytes(&self) -> usize {
        self.state.links.capacity() * size_of::<Link>()
            + self.drops.capacity() * size_of::<LinkDrops>()
            + self.state.scheduled.capacity() * size_of::<ScheduledPort>()
            + self.pool.memory_bytes()
            + self.hold_queues.memory_bytes()
            + self.events.memory_bytes()
            + self.routes.memory_bytes()
            + self.schemes.capacity() * size_of::<AnySwitchScheme>()
            + self.schemes.iter().map(AnySwitchScheme::state_bytes).sum::<u64>() as usize
    }
}
