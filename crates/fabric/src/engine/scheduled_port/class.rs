//! One class of a port: what waits in it, what it admits, and what holds it back.

use std::sync::Arc;

use weft_packet::{Kind, Packet};
use weft_topology::ClassSorting;
use weft_transport::CreditPorts;

use super::ScheduledPort;
use crate::engine::admission::{Admission, Red};
use crate::engine::fetch::fetch;
use crate::engine::link::Profile;
use crate::engine::memory::OWN;
use crate::engine::pool::{NO_PACKET, PacketIndex, Pool};
use crate::engine::scheduler::{TokenBucket, Tokens};

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

/// What some ports keep of a packet that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    /// What it found: see [`Found::backlog_ps`](crate::engine::admission::Found::backlog_ps).
    pub found_ps: u64,
    /// How long its class had been paused before it came, in ps.
    pub paused_before_ps: u64,
    /// The port by which it came to a switch whose ports share memory, or [`OWN`].
    pub came_by: u16,
}

impl Beside {
    /// Of a port that keeps nothing.
    pub const NOTHING: Self = Self { found_ps: 0, paused_before_ps: 0, came_by: OWN };
}

impl ClassTotals {
    /// It took a packet that found so many bytes.
    pub(super) fn note(&mut self, wire_bytes: u16, found_bytes: u64) {
        self.packets += 1;
        self.bytes += u64::from(wire_bytes);
        self.largest_backlog_bytes = self.largest_backlog_bytes.max(found_bytes + u64::from(wire_bytes));
    }
}

/// One class: what nearly every packet needs comes first, what few do is elsewhere. In a large fabric each cache line counts.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ClassQueue {
    /// What waits is a list, threaded through the packets as that of a link is: a place of its own for each would be a cold line more.
    head: PacketIndex,
    tail: PacketIndex,
    len: u32,
    /// Whether the node behind the link told it to pause.
    is_paused: bool,
    /// How long they take to send, in ps.
    pub waiting_ps: u64,
    /// When the first of them may leave, in ps; `u64::MAX` if none waits.
    pub ready_at: u64,
    /// What holds it back.
    pub bucket: Option<Box<TokenBucket>>,
    /// What marks packets that leave.
    pub leaving: Option<Box<Red>>,
    /// A packet that leaves less than this behind, in ps, gets no mark by it.
    pub marks_from_ps: u64,
    /// A packet that takes no longer than this to send, in ps, is taken and not marked where nothing is queued.
    idle_takes_ps: u64,
    pub admission: Admission,
    /// What came to it.
    pub totals: ClassTotals,
}

/// What came to a class of a port, and what became of it. What is counted of every packet comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
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
    /// So many bytes at its beginning are what nearly every packet needs.
    pub const HOT_BYTES: usize = 2 * 64;

    pub const fn new(admission: Admission) -> Self {
        let idle_takes_ps = admission.idle_takes_ps();
        let totals =
            ClassTotals { packets: 0, bytes: 0, largest_backlog_bytes: 0, marked: 0, dropped: 0, trimmed: 0 };
        Self {
            head: NO_PACKET,
            tail: NO_PACKET,
            len: 0,
            is_paused: false,
            waiting_ps: 0,
            ready_at: u64::MAX,
            bucket: None,
            leaving: None,
            marks_from_ps: u64::MAX,
            idle_takes_ps,
            admission,
            totals,
        }
    }

    /// The same, with what marks packets that leave.
    pub fn marking_leaving(mut self, red: Option<Box<Red>>, profile: &Profile) -> Self {
        self.leaving = red;
        self.find_marks(profile);
        self
    }

    /// Finds out what has to be left behind for a mark, in time of this profile.
    fn find_marks(&mut self, profile: &Profile) {
        self.marks_from_ps = self.leaving.as_ref().map_or(u64::MAX, |red| {
            let marks = |ps: u64| red.may_hit(profile.bytes_in(ps));
            // The most significant bit first: the largest time at which it does not.
            let bits = (0..u64::BITS - 1).rev().map(|bit| 1 << bit);
            let longest = bits.fold(0, |ps, bit| if marks(ps | bit) { ps } else { ps | bit });
            if marks(0) { 0 } else { longest + 1 }
        });
    }

    /// The class of credits: few wait, none is marked, and no more leave than their share of the link.
    pub fn of_credits(rules: &CreditPorts, profile: &Profile) -> Self {
        let bucket = Some(Box::new(TokenBucket::new(*rules, profile)));
        Self { bucket, ..Self::new(Admission::Waiting(rules.queue)) }
    }

    /// Asks for what is needed when the first of what waits leaves, or one more comes, if anything waits.
    #[inline]
    pub fn fetch_waiting(&self, pool: &Pool) {
        if self.head == NO_PACKET {
            return;
        }
        pool.warm(self.head);
        pool.warm(self.tail);
        if let Some(red) = self.leaving.as_deref().filter(|_| self.waiting_ps >= self.marks_from_ps) {
            fetch(red);
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

    /// Whether a packet that finds nothing of its class queued or in service is taken and not marked.
    #[inline]
    pub const fn takes_alone(&self, service_ps: u64) -> bool {
        self.ready_at == u64::MAX && service_ps <= self.idle_takes_ps
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

    /// The first packet leaves, if there is one. Returns its size on the wire, and how long it takes to send by this profile.
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
            // Of what nothing holds back the size does not matter: it is not looked at.
            self.find_ready(packets);
        }
        Some((index, wire_bytes, service_ps))
    }

    /// A packet leaves that is the first, and finds the transmitter free at `free_at`: when, in ps, and what the bucket had.
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
        self.admission.set_rate(profile.drain);
        self.idle_takes_ps = self.admission.idle_takes_ps();
        self.find_marks(profile);
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

    /// What it adds to the drain time of the port: what is held back goes at its own pace, and nobody waits for it.
    #[inline]
    pub const fn drains_ps(&self) -> u64 {
        if self.bucket.is_none() { self.waiting_ps } else { 0 }
    }
}

impl ScheduledPort {
    /// Packets that got a congestion mark in any of its classes.
    pub fn marked(&self) -> u64 {
        self.classes.iter().map(|queue| queue.totals.marked).sum()
    }
}

/// The [`Sorting`]s of a network's ports: few, for nearly all ports have the same classes.
#[derive(Default)]
pub(super) struct Sortings {
    known: Vec<((bool, bool, ClassSorting), Arc<Sorting>)>,
}

impl Sortings {
    /// See [`Sorting::new`].
    pub fn of(&mut self, has_pauses: bool, has_credits: bool, sorting: ClassSorting) -> Arc<Sorting> {
        let key = (has_pauses, has_credits, sorting);
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == key) {
            return Arc::clone(known);
        }
        let new = Arc::new(Sorting::new(has_pauses, has_credits, sorting));
        self.known.push((key, Arc::clone(&new)));
        new
    }
}

/// Which class a packet belongs to.
#[derive(Debug)]
pub(super) struct Sorting {
    /// By the kind of the packet and the class of its flow.
    classes: [u8; Self::PLACES],
}

impl Sorting {
    const PLACES: usize = 64;

    /// Where there are pauses or credits, they are the first classes; the port's own ones follow.
    fn new(has_pauses: bool, has_credits: bool, sorting: ClassSorting) -> Self {
        let before = u8::from(has_pauses) + u8::from(has_credits);
        let mut classes = [0; Self::PLACES];
        for kind in Kind::ALL {
            for flow in 0..4 {
                classes[Self::place(kind, flow)] = match kind {
                    Kind::Pause if has_pauses => 0,
                    Kind::Credit if has_credits => u8::from(has_pauses),
                    _ => before + Self::own(kind, flow, sorting),
                };
            }
        }
        Self { classes }
    }

    /// Which of the port's own classes holds packets of this kind, of flows of this class.
    fn own(kind: Kind, flow: usize, sorting: ClassSorting) -> u8 {
        let with_flow = sorting.of_flows[flow];
        match kind {
            Kind::Control | Kind::Message | Kind::Pause => sorting.schemes,
            Kind::Ack | Kind::Nack => sorting.acks.unwrap_or(with_flow),
            Kind::Cnp => sorting.notifications.unwrap_or(with_flow),
            Kind::Trimmed => sorting.trimmed.unwrap_or(with_flow),
            Kind::Data | Kind::Syn | Kind::SynAck | Kind::Credit | Kind::CreditRequest | Kind::CreditStop => {
                with_flow
            }
        }
    }

    #[inline]
    const fn place(kind: Kind, flow: usize) -> usize {
        (kind as usize * 4 + flow) % Self::PLACES
    }

    #[inline]
    pub fn class_of(&self, packet: &Packet) -> usize {
        usize::from(self.classes[Self::place(packet.kind, packet.flags.class_bits() as usize)])
    }
}
