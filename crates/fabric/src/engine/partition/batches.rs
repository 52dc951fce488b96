//! Packets on their way from one partition of the fabric to another.
//!
//! A packet's arrival is known when it is queued, so it is sent at once. At its destination the
//! link by which it comes has a list of its own, where it waits until its time comes as any packet
//! on a link does. Time is cut into windows as long as the least delay between partitions: what is
//! sent in one window arrives in a later one.

use std::sync::Arc;

use crate::engine::fetch::fetch_numbered;
use crate::engine::pool::Kept;
use weft_packet::Packet;

/// Data that travels with a packet outside its 64 bytes.
#[derive(Debug, Clone, Default)]
pub struct PacketExtras {
    /// The option word.
    pub option: u32,
    /// The contents of a message.
    pub contents: Option<Arc<[u32]>>,
    /// How long pauses held it.
    pub kept: Kept,
}

/// Packets for one partition. `arrive` is the time of arrival; `next` is the link by which it
/// comes, as the fabric numbers it.
#[derive(Debug, Default)]
pub struct Batch {
    packets: Vec<Packet>,
    /// Extras of few packets: the packet's place, ascending.
    extras: Vec<(u32, PacketExtras)>,
}

impl Batch {
    /// Puts a packet in.
    #[inline]
    pub fn push(&mut self, packet: &Packet) {
        // What is written next was read last in the window before.
        fetch_numbered(&self.packets, self.packets.len() + Self::AHEAD);
        self.packets.push(*packet);
    }

    /// These extras belong to the packet that is pushed next.
    #[cold]
    fn push_extras(&mut self, extras: PacketExtras) {
        self.extras.push((self.packets.len() as u32, extras));
    }

    /// Whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How many packets are in it.
    pub const fn len(&self) -> usize {
        self.packets.len()
    }

    /// A packet is announced this many places before its turn.
    pub const AHEAD: usize = 8;

    /// Empties the batch: hands out each packet with its extras, in order. If no packet has extras,
    /// it also hands out the packet [`Self::AHEAD`] places later, to prefetch for it.
    #[inline]
    pub fn empty(&mut self, mut take: impl FnMut(&Packet, Option<PacketExtras>, Option<&Packet>)) {
        if self.extras.is_empty() {
            let packets = self.packets.iter().enumerate();
            packets.for_each(|(place, packet)| take(packet, None, self.packets.get(place + Self::AHEAD)));
        } else {
            let mut extras = self.extras.drain(..).peekable();
            for (place, packet) in (0u32..).zip(&self.packets) {
                let own = extras.next_if(|of| of.0 == place);
                take(packet, own.map(|of| of.1), None);
            }
        }
        self.packets.clear();
    }

    /// Moves all packets of another batch to the end of this one.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        let before = self.packets.len() as u32;
        self.packets.append(&mut other.packets);
        self.extras.extend(other.extras.drain(..).map(|(place, extras)| (place + before, extras)));
    }
}

/// Packets that leave the partitions of one thread: a batch for each destination partition.
#[derive(Debug, Default)]
pub struct OutgoingBatches {
    batches: Vec<Batch>,
    /// The partitions whose batch holds packets.
    used: Vec<u32>,
    /// Arrival of the first packet since [`Self::take_earliest_ps`] was called, in ps.
    earliest_ps: u64,
    /// Packets that have been handed out.
    sent: u64,
}

impl OutgoingBatches {
    /// Empty batches for this many partitions.
    pub fn new(partitions: usize) -> Self {
        Self {
            batches: (0..partitions).map(|_| Batch::default()).collect(),
            used: Vec::new(),
            earliest_ps: u64::MAX,
            sent: 0,
        }
    }

    /// Adds a packet for a partition.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn push(&mut self, partition: u32, packet: &Packet) {
        let batch = &mut self.batches[partition as usize];
        if batch.is_empty() {
            self.used.push(partition);
        }
        self.earliest_ps = self.earliest_ps.min(packet.arrive.as_ps());
        batch.push(packet);
    }

    /// These extras belong to the packet that is pushed next for a partition.
    #[cold]
    pub fn put_extras(&mut self, partition: u32, extras: PacketExtras) {
        self.batches[partition as usize].push_extras(extras);
    }

    /// Arrival of the first packet since the last call, in ps; `u64::MAX` if there is none.
    pub const fn take_earliest_ps(&mut self) -> u64 {
        std::mem::replace(&mut self.earliest_ps, u64::MAX)
    }

    /// Hands out the batch of each partition that has one. `deliver` must empty it.
    pub fn send(&mut self, mut deliver: impl FnMut(u32, &mut Batch)) {
        for partition in self.used.drain(..) {
            let batch = &mut self.batches[partition as usize];
            self.sent += batch.len() as u64;
            deliver(partition, batch);
        }
    }

    /// How many packets have been handed out.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests;
