//! Extras that only few links need: limits in packets, RED, random loss, blackholes, being down,
//! and a list of queued packets.

use std::collections::VecDeque;

use weft_packet::{Kind, Packet};
use weft_topology::{Condition, LinkSpec};
use weft_units::{Purpose, Rate, Stream, mix64};

use super::admission::{Red, Rules, Verdict};
use super::link::{Finishing, Profile};

/// Extras of one link, beyond its profile. Those of a link with a limit in packets are one cache
/// line.
#[derive(Debug)]
pub struct Special {
    /// Queued packets that have not departed, if anything reads them.
    queue: VecDeque<Queued>,
    rules: Rules,
    red: Option<Box<Red>>,
    is_up: bool,
    keeps_queue: bool,
    /// Extras of a link that loses packets, or may, or whose backlog is sampled, or of which the
    /// packet in service is told apart.
    rare: Option<Box<Rare>>,
}

/// Extras that hardly any link has.
#[derive(Debug)]
struct Rare {
    wire: Wire,
    meter: Option<Meter>,
    /// When the last packet that the list has lost departed, in ps.
    left_ps: u64,
    finishing: Finishing,
}

/// A wire that loses packets.
#[derive(Debug)]
struct Wire {
    loss: f64,
    /// Flows whose hash is below this vanish.
    blackhole_below: u64,
    hash_seed: u64,
    stream: Stream,
}

/// Meter of a queue for samples.
#[derive(Debug)]
struct Meter {
    /// The most bytes that were queued since somebody last asked.
    peak_bytes: u64,
    /// The bytes of the packets in the list, the one in service whole. Counted only where the drain
    /// time does not tell: where packets take more on the wire than their own bytes, or the rate
    /// changes.
    listed_bytes: Option<u64>,
}

/// Whether somebody asks for the peaks of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peaks {
    /// Every link keeps the peak of its queue.
    Kept,
    /// Nobody asks.
    NotKept,
}

/// A packet in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// When it was queued, in ps.
    pub since_ps: u64,
    /// When it departs, in ps.
    pub depart_ps: u64,
    /// Bytes on the wire.
    pub wire_bytes: u16,
    /// Whether it will arrive.
    pub arrives: bool,
}

/// Facts of a run that all its links have to know.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts {
    /// Whether samples are taken.
    pub peaks: Peaks,
    /// The seed.
    pub seed: u64,
    /// Whether packets take more of the link than their own bytes.
    pub has_overhead: bool,
    /// Whether a packet takes a least time, however small it is: the drain time of a queue
    /// then says nothing of its bytes.
    pub has_least_service: bool,
    /// Whether a scheme tells the packet in service from those that wait.
    pub needs_waiting_bytes: bool,
}

impl Special {
    /// Extras of `link`, or `None` if its profile says all. `changes` tells that its condition will
    /// change: then queued packets must be known, to be scheduled anew.
    pub fn of(link: u32, spec: &LinkSpec, changes: bool, run: RunFacts) -> Option<Self> {
        let rules = Rules::new(&spec.queue);
        let is_sampled = run.peaks == Peaks::Kept;
        let is_listed = is_sampled && (changes || run.has_overhead);
        let keeps_queue =
            changes || is_listed || run.has_least_service || run.needs_waiting_bytes || rules.count_packets();
        let condition = &spec.condition;
        let is_lossy = condition.loss > 0.0 || condition.blackhole > 0.0;
        if condition.up && !is_lossy && rules.is_empty() && !keeps_queue && !is_sampled {
            return None;
        }
        let meter = Meter { peak_bytes: 0, listed_bytes: is_listed.then_some(0) };
        let mut special = Self {
            queue: VecDeque::new(),
            rules,
            red: Red::of(&spec.queue, run.seed, u64::from(link)),
            is_up: true,
            keeps_queue,
            rare: (is_lossy || changes || is_sampled || run.needs_waiting_bytes).then(|| {
                let wire = Wire::new(link, run.seed);
                let meter = is_sampled.then_some(meter);
                Box::new(Rare { wire, meter, left_ps: 0, finishing: Finishing::default() })
            }),
        };
        special.set_condition(condition);
        Some(special)
    }

    /// The link is in this condition from now on.
    pub fn set_condition(&mut self, condition: &Condition) {
        self.is_up = condition.up;
        if let Some(rare) = &mut self.rare {
            rare.wire.loss = condition.loss;
            rare.wire.blackhole_below = (condition.blackhole * 2f64.powi(64)) as u64;
        }
    }

    #[inline]
    fn meter(&mut self) -> Option<&mut Meter> {
        self.rare.as_mut().and_then(|rare| rare.meter.as_mut())
    }

    /// Everything that was queued is lost.
    pub fn clear(&mut self) {
        self.queue.clear();
        if let Some(Meter { listed_bytes: Some(bytes), .. }) = self.meter() {
            *bytes = 0;
        }
    }

    /// Notes a packet that was just queued, and how long the queue takes to drain with it.
    #[inline]
    pub fn push(&mut self, queued: Queued, profile: &Profile) {
        if self.keeps_queue {
            self.queue.push_back(queued);
        }
        if self.rare.is_some() {
            self.measure(&queued, profile);
        }
    }

    fn measure(&mut self, queued: &Queued, profile: &Profile) {
        let Some(meter) = self.meter() else { return };
        if let Some(bytes) = &mut meter.listed_bytes {
            *bytes += u64::from(queued.wire_bytes);
        }
        let bytes = self.backlog_bytes(queued.since_ps, queued.depart_ps - queued.since_ps, profile);
        if let Some(meter) = self.meter() {
            meter.peak_bytes = meter.peak_bytes.max(bytes);
        }
    }

    /// Bytes that are queued now, with what is left of the packet in service: all that takes
    /// `backlog_ps` to send.
    pub fn backlog_bytes(&mut self, now_ps: u64, backlog_ps: u64, profile: &Profile) -> u64 {
        let in_service = self.queue(now_ps).front().copied();
        let listed = self.meter().and_then(|meter| meter.listed_bytes);
        match (listed, in_service) {
            (Some(listed), Some(first)) => {
                listed - u64::from(first.wire_bytes) + self.unsent_of(&first, now_ps, profile)
            }
            (Some(_), None) => 0,
            (None, _) => profile.bytes_in(backlog_ps),
        }
    }

    /// Bytes of the packet in service that are to be sent yet.
    fn unsent_of(&self, first: &Queued, now_ps: u64, profile: &Profile) -> u64 {
        let finishing = self.rare.as_ref().map_or_else(Finishing::default, |rare| rare.finishing);
        finishing.unsent(first.depart_ps, now_ps, profile).min(u64::from(first.wire_bytes))
    }

    /// Bytes that are queued now, with what is left of the packet in service, where the queue is
    /// kept: the same whether or not somebody samples it.
    pub fn unsent_bytes(&mut self, now_ps: u64, profile: &Profile) -> u64 {
        let Some(first) = self.queue(now_ps).front().copied() else { return 0 };
        let behind = self.queue.iter().skip(1).map(|queued| u64::from(queued.wire_bytes));
        behind.sum::<u64>() + self.unsent_of(&first, now_ps, profile)
    }

    /// The link had this rate until now. Returns from when on it sends at another one, in ps.
    pub fn change_rate(&mut self, now_ps: u64, rate: Rate) -> u64 {
        let until_ps = self.queue(now_ps).front().map_or(now_ps, |first| first.depart_ps);
        self.rare.as_mut().map_or(now_ps, |rare| rare.finishing.change(now_ps, until_ps, rate))
    }

    /// How long what waits behind the packet in service takes to send, in ps, if everything has
    /// left at `busy_until`. Nothing where the queue is not kept. As on ports with classes, a
    /// packet that leaves at this instant is in service still, whether or not the list has it yet:
    /// what waited behind it does so, and what came to an empty queue goes into service at once.
    #[inline]
    pub fn waiting_ps(&self, now_ps: u64, busy_until: u64) -> u64 {
        let Some(at) = self.queue.iter().position(|queued| queued.depart_ps > now_ps) else { return 0 };
        let before_ps = match at.checked_sub(1) {
            Some(before) => self.queue[before].depart_ps,
            None => self.rare.as_ref().map_or(0, |rare| rare.left_ps),
        };
        let next = self.queue[at];
        let waits = before_ps == now_ps && next.since_ps < now_ps;
        busy_until - if waits { now_ps } else { next.depart_ps }
    }

    /// The most bytes that were queued since this was last asked; `backlog_bytes` are queued now.
    pub fn take_peak(&mut self, backlog_bytes: u64) -> u64 {
        self.meter().map_or(backlog_bytes, |meter| std::mem::replace(&mut meter.peak_bytes, backlog_bytes))
    }

    /// Packets queued at `now_ps`, from the packet in service on. Empty unless the queue is kept.
    #[inline]
    pub fn queue(&mut self, now_ps: u64) -> &mut VecDeque<Queued> {
        while let Some(first) = self.queue.front().copied().filter(|queued| queued.depart_ps <= now_ps) {
            self.queue.pop_front();
            let Some(rare) = &mut self.rare else { continue };
            rare.left_ps = first.depart_ps;
            if let Some(Meter { listed_bytes: Some(bytes), .. }) = &mut rare.meter {
                *bytes -= u64::from(first.wire_bytes);
            }
        }
        if self.queue.is_empty() {
            self.queue.clear(); // begins anew at the ring's first place, which is still warm
        }
        &mut self.queue
    }

    /// Verdict on a packet that the thresholds let through.
    #[inline]
    pub fn judge(&mut self, packet: &Packet, now_ps: u64, backlog_bytes: impl FnOnce() -> u64) -> Verdict {
        if !self.is_up {
            return Verdict::Drop;
        }
        let packets = self.queue(now_ps).len() as u32;
        self.rules.judge(packet, packets, backlog_bytes, self.red.as_deref_mut().map(Red::parts))
    }

    /// Whether the link works.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether the wire loses a packet: at random, or because its flow falls into a blackhole.
    /// Pauses pass: hardware repeats them for as long as they hold (IEEE 802.1Qbb), and here they
    /// are sent once.
    #[inline]
    pub fn vanishes(&mut self, packet: &Packet) -> bool {
        self.rare.as_mut().is_some_and(|rare| packet.kind != Kind::Pause && rare.wire.loses(packet))
    }

    /// Whether the wire loses packets now, or swallows flows.
    pub fn loses(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.wire.loss > 0.0 || rare.wire.blackhole_below > 0)
    }

    /// Whether a packet's flow falls into a blackhole of the link.
    pub fn swallows(&self, packet: &Packet) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.wire.swallows(packet))
    }
}

impl Wire {
    fn new(link: u32, seed: u64) -> Self {
        let stream = Stream::new(seed, Purpose::Loss, u64::from(link));
        Self { loss: 0.0, blackhole_below: 0, hash_seed: stream.clone().next_u64(), stream }
    }

    fn swallows(&self, packet: &Packet) -> bool {
        mix64(self.hash_seed ^ u64::from(packet.entropy)) < self.blackhole_below
    }

    fn loses(&mut self, packet: &Packet) -> bool {
        self.swallows(packet) || (self.loss > 0.0 && self.stream.unit() < self.loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_limit_in_packets_needs_is_one_cache_line() {
        assert!(size_of::<Special>() <= 64);
    }
}
