//! One class of a port: what waits in it, what it admits, and what holds it back.

use std::collections::VecDeque;
use std::sync::Arc;

use weft_packet::{Kind, Packet};
use weft_topology::ClassSorting;
use weft_transport::CreditPorts;

use super::ScheduledPort;
use crate::engine::admission::{Admission, Red};
use crate::engine::fetch::fetch_first;
use crate::engine::link::Profile;
use crate::engine::pool::PacketIndex;
use crate::engine::scheduler::{TokenBucket, Tokens};

/// A packet that waits. Its `arrive` says since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub index: PacketIndex,
    /// Bytes on the wire.
    pub wire_bytes: u16,
    /// How long it takes to send, in ps.
    pub service_ps: u64,
    /// What it found: see [`Found::backlog_ps`](crate::engine::admission::Found::backlog_ps).
    pub found_ps: u64,
    /// The port by which it came to a switch whose ports share memory, or [`OWN`](crate::engine::memory::OWN).
    pub came_by: u16,
    /// How long its class had been paused before it came, in ps.
    pub paused_before_ps: u64,
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
    waiting: VecDeque<Waiting>,
    /// How long they take to send, in ps.
    pub waiting_ps: u64,
    /// When the first of them may leave, in ps; `u64::MAX` if none waits.
    pub ready_at: u64,
    /// What holds it back.
    pub bucket: Option<Box<TokenBucket>>,
    /// What marks packets that leave.
    pub leaving: Option<Box<Red>>,
    pub admission: Admission,
    /// A packet that takes no longer than this to send, in ps, is taken and not marked where nothing is queued.
    idle_takes_ps: u64,
    /// Whether the node behind the link told it to pause.
    is_paused: bool,
    /// What came to it.
    pub totals: ClassTotals,
}

/// What came to a class of a port, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassTotals {
    /// Packets that it took.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Packets that got a congestion mark in it.
    pub marked: u64,
    /// Data packets that it cut to their headers.
    pub trimmed: u64,
    /// The most bytes that ever waited in it.
    pub largest_backlog_bytes: u64,
}

impl ClassQueue {
    pub const fn new(admission: Admission) -> Self {
        let idle_takes_ps = admission.idle_takes_ps();
        let waiting = VecDeque::new();
        let totals =
            ClassTotals { packets: 0, bytes: 0, dropped: 0, marked: 0, trimmed: 0, largest_backlog_bytes: 0 };
        let ready_at = u64::MAX;
        let (bucket, is_paused, leaving) = (None, false, None);
        Self {
            waiting,
            waiting_ps: 0,
            ready_at,
            bucket,
            leaving,
            admission,
            idle_takes_ps,
            is_paused,
            totals,
        }
    }

    /// The same, with what marks packets that leave.
    pub fn marking_leaving(mut self, red: Option<Box<Red>>) -> Self {
        self.leaving = red;
        self
    }

    /// The class of credits: few wait, none is marked, and no more leave than their share of the link.
    pub fn of_credits(rules: &CreditPorts, profile: &Profile) -> Self {
        let bucket = Some(Box::new(TokenBucket::new(*rules, profile)));
        Self { bucket, ..Self::new(Admission::Waiting(rules.queue)) }
    }

    /// Asks for the first of what waits.
    #[inline]
    pub fn fetch_waiting(&self) {
        if let Some(first) = self.waiting.front() {
            fetch_first(first, 2 * size_of::<Waiting>());
        }
    }

    /// How many packets wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
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
    pub fn set_paused(&mut self, paused: bool) {
        self.is_paused = paused;
        self.find_ready();
    }

    /// The first packet.
    pub fn first(&self) -> Option<Waiting> {
        self.waiting.front().copied()
    }

    /// Puts a packet behind the others.
    #[inline]
    pub fn push(&mut self, waiting: Waiting) {
        if self.ready_at == u64::MAX {
            self.ready_at = self.may_leave_at(waiting.wire_bytes);
        }
        self.waiting_ps += waiting.service_ps;
        self.waiting.push_back(waiting);
    }

    /// The first packet leaves, if there is one.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn pop(&mut self, now: u64) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.waiting_ps -= first.service_ps;
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now, first.wire_bytes);
        }
        self.find_ready();
        Some(first)
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
    pub fn put_back(&mut self, waiting: Waiting, tokens: Tokens) {
        if let Some(bucket) = &mut self.bucket {
            bucket.set_tokens(tokens);
        }
        self.waiting_ps += waiting.service_ps;
        self.waiting.push_front(waiting);
        self.find_ready();
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn find_ready(&mut self) {
        self.ready_at = match self.waiting.front() {
            Some(first) => self.may_leave_at(first.wire_bytes),
            None => u64::MAX,
        };
    }

    /// The link has this profile from now on.
    pub fn follow(&mut self, profile: &Profile) {
        self.waiting_ps = 0;
        for waiting in &mut self.waiting {
            waiting.service_ps = profile.service_ps(waiting.wire_bytes);
            self.waiting_ps += waiting.service_ps;
        }
        self.admission.set_rate(profile.drain);
        self.idle_takes_ps = self.admission.idle_takes_ps();
        if let Some(bucket) = &mut self.bucket {
            bucket.follow(profile);
        }
        self.find_ready();
    }

    /// Takes out all that waits: it is lost.
    pub fn clear(&mut self) -> impl Iterator<Item = Waiting> {
        (self.waiting_ps, self.ready_at) = (0, u64::MAX);
        std::mem::take(&mut self.waiting).into_iter()
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
