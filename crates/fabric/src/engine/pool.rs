//! The packets that are in the fabric: each stays in one place until it leaves.

use std::sync::Arc;

use weft_packet::Packet;
use weft_topology::Tier;

use super::external_hosts::Frame;
use super::fct_breakdown::Paused;
use super::fetch::{fetch, fetch_numbered};

/// A packet's place in the [`Pool`].
pub type PacketIndex = u32;

/// No packet.
pub const NO_PACKET: PacketIndex = u32::MAX;

/// How long pauses kept a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// From leaving the last port, in units of 2^8 ps.
    pub last: u32,
    /// On its way so far.
    pub on_way: Paused,
}

/// Packets by index, with the free places in a stack: the last one freed is the first one used
/// again, and still warm.
///
/// What does not fit into a packet's 64 bytes lies here beside it: an option word of some packets,
/// and the contents of others, whose place the packet names.
#[derive(Default)]
pub struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketIndex>,
    /// By packet, as far as any had one.
    options: Vec<u32>,
    contents: Contents,
    /// The bytes that packets of external hosts stand for, by packet, as far as any had some.
    frames: Vec<Option<Box<Frame>>>,
    /// By packet, as far as any was.
    blocked: Vec<Kept>,
}

impl Pool {
    /// Puts a packet in.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketIndex {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        self.packets[index as usize] = packet;
        index
    }

    /// One more place.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> PacketIndex {
        self.packets.push(Packet::default());
        (self.packets.len() - 1) as PacketIndex
    }

    /// Takes a packet out.
    #[inline]
    pub fn remove(&mut self, index: PacketIndex) -> Packet {
        self.free.push(index);
        self.packets[index as usize]
    }

    /// The place of a packet is free.
    #[inline]
    pub fn free(&mut self, index: PacketIndex) {
        self.free.push(index);
    }

    /// The packets by index, and what is in free places: who needs one more than once looks up once
    /// where they are.
    #[inline]
    pub fn packets(&mut self) -> &mut [Packet] {
        &mut self.packets
    }

    /// The packets by index, and how long each was blocked: see [`Self::take_blocked`].
    #[inline]
    pub fn parts(&mut self) -> (&mut [Packet], &mut Vec<Kept>) {
        (&mut self.packets, &mut self.blocked)
    }

    /// How long a pause kept a packet from leaving the last port, in units of 2^8 ps; from now on
    /// not at all.
    pub fn take_blocked(&mut self, index: PacketIndex) -> u32 {
        self.blocked.get_mut(index as usize).map_or(0, |kept| std::mem::take(&mut kept.last))
    }

    /// How long pauses kept a packet so far.
    pub fn kept(&self, index: PacketIndex) -> Kept {
        self.blocked.get(index as usize).copied().unwrap_or_default()
    }

    /// So long pauses kept a packet so far.
    pub fn set_kept(&mut self, index: PacketIndex, kept: Kept) {
        set_kept(&mut self.blocked, index, kept);
    }

    /// Whether any packet was ever blocked.
    pub fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Gives a packet its option word.
    pub fn set_option(&mut self, index: PacketIndex, option: u32) {
        let index = index as usize;
        self.options.resize(self.options.len().max(index + 1), 0);
        self.options[index] = option;
    }

    /// The option word that a packet was given. Of no meaning if it was given none.
    pub fn option(&self, index: PacketIndex) -> u32 {
        self.options.get(index as usize).copied().unwrap_or_default()
    }

    /// Whether any packet was ever given an option word.
    pub fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Gives a packet the bytes that it stands for.
    pub fn set_frame(&mut self, index: PacketIndex, frame: Frame) {
        let index = index as usize;
        self.frames.resize_with(self.frames.len().max(index + 1), || None);
        self.frames[index] = Some(Box::new(frame));
    }

    /// The bytes that a packet stands for, if it is one of an external host.
    pub fn frame(&self, index: PacketIndex) -> Option<&Frame> {
        self.frames.get(index as usize)?.as_deref()
    }

    /// Takes the bytes that a packet stands for, if it is one of an external host.
    pub fn take_frame(&mut self, index: PacketIndex) -> Option<Frame> {
        self.frames.get_mut(index as usize)?.take().map(|frame| *frame)
    }

    /// Contents that packets carry beside their 64 bytes.
    pub const fn contents(&mut self) -> &mut Contents {
        &mut self.contents
    }

    /// Fetches a packet that will be asked for soon, if there is one: nothing waits for it now.
    #[inline]
    pub fn warm(&self, index: PacketIndex) {
        if let Some(packet) = self.packets.get(index as usize) {
            fetch(packet);
        }
    }

    /// Fetches the place that is used next but so many, if there is one that is free.
    #[inline]
    pub fn warm_free(&self, behind: usize) {
        if let Some(&index) = self.free.iter().rev().nth(behind) {
            fetch_numbered(&self.packets, index as usize);
        }
    }

    /// How many packets are in it.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Packet>()
            + self.free.capacity() * size_of::<PacketIndex>()
            + self.options.capacity() * size_of::<u32>()
            + self.blocked.capacity() * size_of::<Kept>()
    }
}

/// A time in ps in units of 2^8 ps.
pub fn units_of(ps: u64) -> u32 {
    u32::try_from(ps >> 8).unwrap_or(u32::MAX)
}

/// See [`Pool::set_kept`].
pub fn set_kept(blocked: &mut Vec<Kept>, index: PacketIndex, kept: Kept) {
    let index = index as usize;
    if let Some(known) = blocked.get_mut(index) {
        *known = kept;
    } else if kept != Kept::default() {
        blocked.resize(index + 1, Kept::default());
        blocked[index] = kept;
    }
}

/// A pause kept a packet from leaving a port, of a link of this tier, for so long, in units of 2^8
/// ps. What its queue pair was stopped before it came is of that, if the port is its host's.
pub fn note_blocked(blocked: &mut Vec<Kept>, index: PacketIndex, tier: u8, units: u32) {
    let mut kept = blocked.get(index as usize).copied().unwrap_or_default();
    let waited = if tier == Tier::Host as u8 { units.saturating_sub(kept.on_way.before) } else { units };
    kept.last = units;
    let sum = &mut kept.on_way.tiers[usize::from(tier) & 3];
    *sum = sum.saturating_add(waited);
    set_kept(blocked, index, kept);
}

/// The contents of packets that are under way, in places that are used again. A packet holds the
/// number of its place.
#[derive(Default)]
pub struct Contents {
    places: Vec<Option<Arc<[u32]>>>,
    free: Vec<u32>,
}

impl Contents {
    /// Keeps what a packet carries, while it is under way.
    pub fn keep(&mut self, contents: Arc<[u32]>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(contents);
            return place;
        }
        self.places.push(Some(contents));
        (self.places.len() - 1) as u32
    }

    /// Takes out what a packet carried, when it has arrived or is lost. `None` for a packet without
    /// contents.
    pub fn take(&mut self, packet: &Packet) -> Option<Arc<[u32]>> {
        let place = packet.contents()?;
        self.free.push(place);
        self.places[place as usize].take()
    }

    /// Packets under way that carry something.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl std::ops::Index<PacketIndex> for Pool {
    type Output = Packet;
    #[inline]
    fn index(&self, index: PacketIndex) -> &Packet {
        &self.packets[index as usize]
    }
}

impl std::ops::IndexMut<PacketIndex> for Pool {
    #[inline]
    fn index_mut(&mut self, index: PacketIndex) -> &mut Packet {
        &mut self.packets[index as usize]
    }
}
