//! One class of a port: what waits in it, and what holds it back.

use weft_packet::Packet;
use weft_transport::CreditPorts;
use weft_units::Stream;

use super::rules::FirstRules;
use crate::engine::fetch::fetch_numbered;
use crate::engine::link::Profile;
use crate::engine::pool::{NO_PACKET, PacketIndex, Pool};
use crate::engine::scheduler::{TokenBucket, Tokens};
use crate::engine::shared_buffer::OWN;

/// A packet that waits, or has just done so. Its `arrive` says since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub index: PacketIndex,
    /// Bytes on the wire.
    pub wire_bytes: u16,
    /// How long it takes to send, in ps.
    pub service_ps: u64,
    pub beside: Beside,
}

/// Facts that some ports keep of a packet that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    /// Backlog found, as in [`Found::backlog_ps`](crate::engine::admission::Found::backlog_ps).
    pub found_ps: u64,
    /// How long its class had been paused before it came, in ps, or before the queue pair that sent
    /// it could have done so.
    pub paused_before_ps: u64,
    /// The port by which it came to a switch whose ports share memory, or [`OWN`].
    pub came_by: u16,
}

impl Beside {
    /// Facts of a packet at a port that keeps none.
    pub const NOTHING: Self = Self { found_ps: 0, paused_before_ps: 0, came_by: OWN };
}

/// One class: what nearly every packet needs of it. What few do is in [`Rare`], and what it goes by
/// in [`PortRules`](super::PortRules). It has the size of a cache line, and its port begins with
/// one: in a large fabric each counts.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ClassQueue {
    /// Head of the waiting packets, a list that is threaded through them as that of a link is: a
    /// place of its own for each would be a cold line more.
    head: PacketIndex,
    tail: PacketIndex,
    len: u32,
    /// Whether the node behind the link told it to pause.
    is_paused: bool,
    /// How long they take to send, in ps.
    pub waiting_ps: u64,
    /// When the first of them may leave, in ps; `u64::MAX` if none waits.
    pub ready_at: u64,
    /// Token bucket that holds the class back.
    pub bucket: Option<Box<TokenBucket>>,
    /// Packets of the class, if the port counts them: those that it took, their bytes, and the most
    /// that ever waited.
    packets: u64,
    bytes: u64,
    largest_backlog_bytes: u64,
}

/// State of a class that few packets need: one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Rare {
    /// Random stream of the class, if it marks packets by chance.
    pub stream: Option<Stream>,
    /// Packets that got a congestion mark in it.
    pub marked: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Data packets that it cut to their headers.
    pub trimmed: u64,
}

/// Totals of a class of a port: arrivals, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassTotals {
    /// Packets that it took.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes that ever waited in it.
    pub largest_backlog_bytes: u64,
    /// Packets that got a congestion mark in it.
    pub marked: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Data packets that it cut to their headers.
    pub trimmed: u64,
}

impl ClassQueue {
    /// One in which nothing waits.
    pub const EMPTY: Self = Self {
        head: NO_PACKET,
        tail: NO_PACKET,
        len: 0,
        is_paused: false,
        waiting_ps: 0,
        ready_at: u64::MAX,
        bucket: None,
        packets: 0,
        bytes: 0,
        largest_backlog_bytes: 0,
    };

    /// The class of credits: no more leave than their share of the link.
    pub fn of_credits(rules: &CreditPorts, profile: &Profile) -> Self {
        Self { bucket: Some(Box::new(TokenBucket::new(*rules, profile))), ..Self::EMPTY }
    }

    /// It took a packet that found so many bytes.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn note(&mut self, wire_bytes: u16, found_bytes: u64) {
        self.packets += 1;
        self.bytes += u64::from(wire_bytes);
        self.largest_backlog_bytes = self.largest_backlog_bytes.max(found_bytes + u64::from(wire_bytes));
    }

    /// Totals of the class: arrivals, and what became of them.
    pub const fn totals(&self, rare: &Rare) -> ClassTotals {
        let Self { packets, bytes, largest_backlog_bytes, .. } = *self;
        let Rare { marked, dropped, trimmed, .. } = *rare;
        ClassTotals { packets, bytes, largest_backlog_bytes, marked, dropped, trimmed }
    }

    /// Asks for what is needed when the first of what waits leaves, or one more comes, if anything
    /// waits.
    #[inline]
    pub fn fetch_waiting(&self, pool: &Pool) {
        if self.head == NO_PACKET {
            return;
        }
        pool.warm(self.head);
        pool.warm(self.tail);
    }

    /// Asks for the packet behind the first one, if there is any.
    #[inline]
    pub fn fetch_second(&self, pool: &Pool) {
        if self.head != self.tail {
            pool.warm(pool[self.head].next);
        }
    }

    /// How many packets wait.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// When a packet of this size may leave, in ps, if it is the first.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn may_leave_at(&self, wire_bytes: u16) -> u64 {
        if self.is_paused {
            return u64::MAX;
        }
        self.bucket.as_ref().map_or(0, |bucket| bucket.ready_at(wire_bytes))
    }

    /// Whether a packet that finds nothing of its class queued or in service is taken and not
    /// marked.
    #[inline]
    pub const fn takes_alone(&self, service_ps: u64, rules: &FirstRules) -> bool {
        self.ready_at == u64::MAX && service_ps <= rules.idle_takes_ps
    }

    /// Whether a packet may leave now, if it is the first: then it does.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn lets_go(&mut self, now: u64, wire_bytes: u16) -> bool {
        self.bucket.as_mut().is_none_or(|bucket| bucket.take_if_ready(now, wire_bytes))
    }

    /// Whether it is told to pause.
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// It pauses from now on, or goes on.
    pub fn set_paused(&mut self, paused: bool, packets: &[Packet]) {
        self.is_paused = paused;
        self.find_ready(packets);
    }

    /// The size on the wire of the first packet, if there is one.
    #[inline]
    pub fn first_bytes(&self, packets: &[Packet]) -> Option<u16> {
        packets.get(self.head as usize).map(|packet| packet.wire_bytes)
    }

    /// Puts a packet behind the others.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn push(&mut self, index: PacketIndex, (wire_bytes, service_ps): (u16, u64), packets: &mut [Packet]) {
        if self.ready_at == u64::MAX {
            self.ready_at = self.may_leave_at(wire_bytes);
        }
        self.waiting_ps += service_ps;
        self.len += 1;
        let tail = std::mem::replace(&mut self.tail, index);
        match packets.get_mut(tail as usize) {
            Some(ahead) => ahead.next = index,
            None => self.head = index,
        }
    }

    /// The first packet leaves, if there is one. Returns its size on the wire, and how long it
    /// takes to send by this profile.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn pop(
        &mut self,
        now: u64,
        packets: &[Packet],
        profile: &Profile,
    ) -> Option<(PacketIndex, u16, u64)> {
        let index = self.head;
        let first = packets.get(index as usize)?;
        let (wire_bytes, service_ps) = (first.wire_bytes, profile.service_ps(first.wire_bytes));
        self.waiting_ps -= service_ps;
        self.len -= 1;
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now, wire_bytes);
        }
        if index == self.tail {
            (self.head, self.tail, self.ready_at) = (NO_PACKET, NO_PACKET, u64::MAX);
        } else {
            self.head = first.next;
            // It is needed when the transmitter is free again, and whoever put it there did so long
            // ago.
            fetch_numbered(packets, self.head as usize);
            // Of what nothing holds back the size does not matter: it is not looked at.
            self.find_ready(packets);
        }
        Some((index, wire_bytes, service_ps))
    }

    /// A packet leaves that is the first, and finds the transmitter free at `free_at`: when, in ps,
    /// and what the bucket had.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn leave(&mut self, free_at: u64, wire_bytes: u16) -> (u64, Tokens) {
        let Some(bucket) = &mut self.bucket else { return (free_at, Tokens::default()) };
        let tokens = bucket.tokens();
        (bucket.take_from(free_at, wire_bytes), tokens)
    }

    /// A packet that left comes back to its place before the others: this is what the bucket had.
    pub fn put_back(&mut self, index: PacketIndex, service_ps: u64, tokens: Tokens, packets: &mut [Packet]) {
        if let Some(bucket) = &mut self.bucket {
            bucket.set_tokens(tokens);
        }
        self.waiting_ps += service_ps;
        self.len += 1;
        packets[index as usize].next = self.head;
        if self.tail == NO_PACKET {
            self.tail = index;
        }
        self.head = index;
        self.find_ready(packets);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn find_ready(&mut self, packets: &[Packet]) {
        self.ready_at = if self.head == NO_PACKET {
            u64::MAX
        } else if self.bucket.is_none() {
            if self.is_paused { u64::MAX } else { 0 }
        } else {
            self.may_leave_at(self.first_bytes(packets).unwrap_or(0))
        };
    }

    /// The packets that wait, in order.
    fn members(&self, packets: &[Packet]) -> Vec<PacketIndex> {
        let next = |index: &PacketIndex| (*index != self.tail).then(|| packets[*index as usize].next);
        std::iter::successors(Some(self.head).filter(|&head| head != NO_PACKET), next).collect()
    }

    /// The link has this profile from now on.
    pub fn follow(&mut self, profile: &Profile, packets: &[Packet]) {
        let service = |index: PacketIndex| profile.service_ps(packets[index as usize].wire_bytes);
        self.waiting_ps = self.members(packets).into_iter().map(service).sum();
        if let Some(bucket) = &mut self.bucket {
            bucket.follow(profile);
        }
        self.find_ready(packets);
    }

    /// Takes out all that waits: it is lost.
    pub fn clear(&mut self, packets: &[Packet]) -> Vec<PacketIndex> {
        let members = self.members(packets);
        (self.head, self.tail, self.len) = (NO_PACKET, NO_PACKET, 0);
        (self.waiting_ps, self.ready_at) = (0, u64::MAX);
        members
    }

    /// Time that the class adds to the drain of the port: held-back packets go at their own pace,
    /// and nobody waits for them.
    #[inline]
    pub const fn drains_ps(&self) -> u64 {
        if self.bucket.is_none() { self.waiting_ps } else { 0 }
    }
}
