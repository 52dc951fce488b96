//! Packets on their way from one part of the fabric to another.
//!
//! A packet's arrival is known when it is queued, so it is posted at once. At its destination the link by which it comes has a list of its
//! own, where it waits until its time comes as any packet on a link does. Time is cut into days as long as the least delay between
//! parts: what is posted on one day arrives on a later one.

use std::sync::Arc;

use super::fetch::fetch_numbered;
use super::pool::Kept;
use weft_packet::Packet;

/// What travels beside a packet.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Its option word.
    pub option: u32,
    /// Its contents.
    pub contents: Option<Arc<[u32]>>,
    /// How long pauses kept it.
    pub kept: Kept,
}

/// Packets for one part. Each says when it arrives, and in place of the packet behind it the link that it comes by, as the fabric
/// numbers them.
#[derive(Debug, Default)]
pub struct Bag {
    packets: Vec<Packet>,
    /// What few packets have: by place, ascending.
    beside: Vec<(u32, Beside)>,
}

impl Bag {
    /// Puts a packet in.
    #[inline]
    pub fn push(&mut self, packet: &Packet) {
        // What is written next was read last in the window before.
        fetch_numbered(&self.packets, self.packets.len() + Self::AHEAD);
        self.packets.push(*packet);
    }

    /// This travels beside the packet that is put in next.
    #[cold]
    fn push_beside(&mut self, beside: Beside) {
        self.beside.push((self.packets.len() as u32, beside));
    }

    /// Whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How many packets are in it.
    pub const fn len(&self) -> usize {
        self.packets.len()
    }

    /// So many places before its turn a packet is told of.
    pub const AHEAD: usize = 8;

    /// Empties it, and hands out each packet with what travels beside it, in order; and, if it is there and nothing travels beside any, the
    /// one whose turn comes [`Self::AHEAD`] places later.
    #[inline]
    pub fn empty(&mut self, mut take: impl FnMut(&Packet, Option<Beside>, Option<&Packet>)) {
        if self.beside.is_empty() {
            let packets = self.packets.iter().enumerate();
            packets.for_each(|(place, packet)| take(packet, None, self.packets.get(place + Self::AHEAD)));
        } else {
            let mut beside = self.beside.drain(..).peekable();
            for (place, packet) in (0u32..).zip(&self.packets) {
                let own = beside.next_if(|of| of.0 == place);
                take(packet, own.map(|of| of.1), None);
            }
        }
        self.packets.clear();
    }

    /// Puts what is in another one behind what is in this one.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        let before = self.packets.len() as u32;
        self.packets.append(&mut other.packets);
        self.beside.extend(other.beside.drain(..).map(|(place, beside)| (place + before, beside)));
    }
}

/// What leaves a part, or several parts that are worked by one thread: a bag for each part.
#[derive(Debug, Default)]
pub struct Outbox {
    bags: Vec<Bag>,
    /// The parts for which there is something.
    used: Vec<u32>,
    /// When the first packet arrives that was posted since this was last asked, in ps.
    earliest_ps: u64,
    /// Packets that have been handed out.
    sent: u64,
}

impl Outbox {
    /// Nothing, for so many parts.
    pub fn new(parts: usize) -> Self {
        Self {
            bags: (0..parts).map(|_| Bag::default()).collect(),
            used: Vec::new(),
            earliest_ps: u64::MAX,
            sent: 0,
        }
    }

    /// Puts in a packet for a part.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn post(&mut self, part: u32, packet: &Packet) {
        let bag = &mut self.bags[part as usize];
        if bag.is_empty() {
            self.used.push(part);
        }
        self.earliest_ps = self.earliest_ps.min(packet.arrive.as_ps());
        bag.push(packet);
    }

    /// This travels beside the packet that is put in next for a part.
    #[cold]
    pub fn put_beside(&mut self, part: u32, beside: Beside) {
        self.bags[part as usize].push_beside(beside);
    }

    /// When the first packet arrives that was posted since this was last asked, in ps; `u64::MAX` if none was.
    pub const fn take_earliest_ps(&mut self) -> u64 {
        std::mem::replace(&mut self.earliest_ps, u64::MAX)
    }

    /// Hands out what is there for each part. What is taken of a bag is gone, and all of it is to be taken.
    pub fn send(&mut self, mut deliver: impl FnMut(u32, &mut Bag)) {
        for part in self.used.drain(..) {
            let bag = &mut self.bags[part as usize];
            self.sent += bag.len() as u64;
            deliver(part, bag);
        }
    }

    /// How many packets have been handed out.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests;
