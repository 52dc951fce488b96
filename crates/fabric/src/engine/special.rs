//! What only few links need: limits in packets, RED, random loss, blackholes, being down.

use std::collections::VecDeque;

use weft_packet::{Packet, PacketFlags};
use weft_topology::{Condition, Limit, LinkSpec, Marking, Threshold};
use weft_units::{Purpose, Stream, mix64};

/// What becomes of a packet that is offered to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is queued as the profile says.
    Queue,
    /// It is queued with a congestion mark.
    QueueMarked,
    /// It is queued and sent, and never arrives.
    LoseOnWire,
    /// It is not queued.
    Drop,
}

/// The rules of one link beyond its profile. What a link with a limit in packets needs is one cache line.
#[derive(Debug)]
pub struct Special {
    /// What is queued and has not departed, if anything asks for it.
    queue: VecDeque<Queued>,
    packet_limit: u32,
    packet_mark: u32,
    up: bool,
    keeps_queue: bool,
    /// Of a link that has or had such rules.
    rare: Option<Box<Rare>>,
}

/// The rules that hardly any link has, and what they remember: RED, peaks, and a wire that loses packets.
#[derive(Debug)]
struct Rare {
    loss: f64,
    /// Flows whose hash is below this vanish.
    blackhole_below: u64,
    hash_seed: u64,
    red: Option<Red>,
    /// The most bytes that were queued since somebody last asked.
    peak_bytes: u64,
    loss_stream: Stream,
    red_stream: Stream,
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

/// Random early detection.
#[derive(Debug, Clone, Copy)]
struct Red {
    min_bytes: f64,
    max_bytes: f64,
    probability: f64,
}

impl Special {
    /// The rules of `link`, or `None` if its profile says all. `changes` tells that its condition will change: then what is
    /// queued must be known, to be scheduled anew.
    pub fn of(
        link: u32,
        spec: &LinkSpec,
        condition: &Condition,
        changes: bool,
        peaks: Peaks,
        seed: u64,
    ) -> Option<Self> {
        let packet_limit = match spec.queue.limit {
            Limit::AtMost(Threshold::Packets(packets)) => packets,
            _ => u32::MAX,
        };
        let packet_mark = match spec.queue.marking {
            Marking::Step(Threshold::Packets(packets)) => packets,
            _ => u32::MAX,
        };
        let red = match spec.queue.marking {
            Marking::Red { min, max, probability } => {
                Some(Red { min_bytes: min as f64, max_bytes: max as f64, probability })
            }
            _ => None,
        };
        let keeps_queue = changes || packet_limit != u32::MAX || packet_mark != u32::MAX;
        let is_lossy = condition.loss > 0.0 || condition.blackhole > 0.0;
        if condition.up && !is_lossy && red.is_none() && !keeps_queue && peaks == Peaks::NotKept {
            return None;
        }
        let loss_stream = Stream::new(seed, Purpose::Loss, u64::from(link));
        let rare = (is_lossy || red.is_some() || peaks == Peaks::Kept).then(|| {
            Box::new(Rare {
                loss: condition.loss,
                blackhole_below: (condition.blackhole * 2f64.powi(64)) as u64,
                hash_seed: loss_stream.clone().next_u64(),
                red,
                peak_bytes: 0,
                loss_stream,
                red_stream: Stream::new(seed, Purpose::Red, u64::from(link)),
            })
        });
        Some(Self { queue: VecDeque::new(), packet_limit, packet_mark, up: condition.up, keeps_queue, rare })
    }

    /// Takes over what was queued and drawn under the rules before.
    pub fn continue_from(&mut self, earlier: Self) {
        self.queue = earlier.queue;
        let Some(earlier) = earlier.rare else { return };
        self.rare = Some(match self.rare.take() {
            Some(own) => Box::new(Rare {
                loss: own.loss,
                blackhole_below: own.blackhole_below,
                red: own.red,
                ..*earlier
            }),
            None => Box::new(Rare { loss: 0.0, blackhole_below: 0, ..*earlier }),
        });
    }

    /// Whether the link works.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Notes a packet that was just queued, and how many bytes the queue holds with it.
    #[inline]
    pub fn push(&mut self, queued: Queued, backlog_bytes: impl FnOnce() -> u64) {
        self.note_peak(backlog_bytes);
        if self.keeps_queue {
            self.queue.push_back(queued);
        }
    }

    /// The queue holds so many bytes now.
    #[inline]
    pub fn note_peak(&mut self, backlog_bytes: impl FnOnce() -> u64) {
        if let Some(rare) = &mut self.rare {
            rare.peak_bytes = rare.peak_bytes.max(backlog_bytes());
        }
    }

    /// The most bytes that were queued since this was last asked; `backlog_bytes` are queued now.
    pub fn take_peak(&mut self, backlog_bytes: u64) -> u64 {
        self.rare
            .as_mut()
            .map_or(backlog_bytes, |rare| std::mem::replace(&mut rare.peak_bytes, backlog_bytes))
    }

    /// What is queued at `now_ps`, from the packet in service on. Empty unless the queue is kept.
    #[inline]
    pub fn queue(&mut self, now_ps: u64) -> &mut VecDeque<Queued> {
        while self.queue.front().is_some_and(|queued| queued.depart_ps <= now_ps) {
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            self.queue.clear(); // begins anew at the ring's first place, which is still warm
        }
        &mut self.queue
    }

    /// What becomes of `packet`, which finds `backlog_bytes` queued.
    #[inline]
    pub fn admit(&mut self, packet: &Packet, now_ps: u64, backlog_bytes: impl FnOnce() -> u64) -> Admission {
        let backlog_packets = self.queue(now_ps).len() as u32;
        match self.judge(packet, backlog_packets, backlog_bytes) {
            Admission::Drop => Admission::Drop,
            _ if self.vanishes(packet) => Admission::LoseOnWire,
            admission => admission,
        }
    }

    /// Whether the queue takes a packet that finds this backlog, with or without a mark; says nothing of the wire.
    #[inline]
    pub fn judge(
        &mut self,
        packet: &Packet,
        backlog_packets: u32,
        backlog_bytes: impl FnOnce() -> u64,
    ) -> Admission {
        if !self.up || backlog_packets >= self.packet_limit {
            return Admission::Drop;
        }
        let red = self.rare.as_mut().is_some_and(|rare| rare.red_hits(backlog_bytes()));
        if red && !packet.flags.has(PacketFlags::ECT) {
            return Admission::Drop;
        }
        if red || backlog_packets > self.packet_mark { Admission::QueueMarked } else { Admission::Queue }
    }

    /// Whether the wire loses a packet: at random, or because its flow falls into a blackhole.
    #[inline]
    pub fn vanishes(&mut self, packet: &Packet) -> bool {
        self.rare.as_mut().is_some_and(|rare| rare.vanishes(packet))
    }
}

impl Rare {
    /// Whether RED picks a packet that finds this backlog.
    fn red_hits(&mut self, backlog_bytes: u64) -> bool {
        let Some(red) = self.red else { return false };
        let backlog = backlog_bytes as f64;
        if backlog < red.min_bytes {
            return false;
        }
        let share = (backlog - red.min_bytes) / (red.max_bytes - red.min_bytes);
        backlog >= red.max_bytes || self.red_stream.unit() < share * red.probability
    }

    fn vanishes(&mut self, packet: &Packet) -> bool {
        let flow = mix64(self.hash_seed ^ u64::from(packet.entropy));
        flow < self.blackhole_below || (self.loss > 0.0 && self.loss_stream.unit() < self.loss)
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
