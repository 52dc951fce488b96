//! One class of a port: what waits in it, what it admits, and what holds it back.

use std::collections::VecDeque;

use weft_packet::{Kind, Packet};
use weft_transport::CreditPorts;

use crate::engine::admission::Admission;
use crate::engine::link::Profile;
use crate::engine::pool::{PacketIndex, Pool};
use crate::engine::scheduler::TokenBucket;

/// A packet that waits. Its `arrive` says since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub index: PacketIndex,
    /// What it found: see [`Found::backlog_ps`](crate::engine::admission::Found::backlog_ps).
    pub found_ps: u64,
}

/// One class.
#[derive(Debug)]
pub(super) struct ClassQueue {
    waiting: VecDeque<Waiting>,
    /// How long they take to send, in ps.
    pub waiting_ps: u64,
    /// When the first of them may leave, in ps; `u64::MAX` if none waits.
    pub ready_at: u64,
    pub admission: Admission,
    /// A packet that takes no longer than this to send, in ps, is taken and not marked where nothing is queued.
    idle_takes_ps: u64,
    /// What holds it back.
    pub bucket: Option<TokenBucket>,
}

impl ClassQueue {
    pub const fn new(admission: Admission) -> Self {
        let idle_takes_ps = admission.idle_takes_ps();
        let waiting = VecDeque::new();
        Self { waiting, waiting_ps: 0, ready_at: u64::MAX, admission, idle_takes_ps, bucket: None }
    }

    /// The class of credits: few wait, none is marked, and no more leave than their share of the link.
    pub fn of_credits(rules: &CreditPorts, profile: &Profile) -> Self {
        let bucket = Some(TokenBucket::new(*rules, profile));
        Self { bucket, ..Self::new(Admission::Waiting(rules.queue)) }
    }

    /// How many packets wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// When a packet of this size may leave, in ps, if it is the first.
    #[inline]
    pub fn may_leave_at(&self, wire_bytes: u16) -> u64 {
        self.bucket.as_ref().map_or(0, |bucket| bucket.ready_at(wire_bytes))
    }

    /// Whether a packet that finds its port idle is taken, and may leave.
    #[inline]
    pub fn passes_idle(&self, wire_bytes: u16, service_ps: u64, now: u64) -> bool {
        service_ps <= self.idle_takes_ps && self.may_leave_at(wire_bytes) <= now
    }

    /// The first packet.
    pub fn first(&self) -> Option<Waiting> {
        self.waiting.front().copied()
    }

    /// Puts a packet behind the others.
    #[inline]
    pub fn push(&mut self, waiting: Waiting, wire_bytes: u16, service_ps: u64) {
        if self.waiting.is_empty() {
            self.ready_at = self.may_leave_at(wire_bytes);
        }
        self.waiting.push_back(waiting);
        self.waiting_ps += service_ps;
    }

    /// The first packet leaves, which has this size and takes so long to send.
    #[inline]
    pub fn pop(&mut self, now: u64, (wire_bytes, service_ps): (u16, u64), pool: &Pool) {
        self.waiting.pop_front();
        self.waiting_ps -= service_ps;
        self.spend(now, wire_bytes);
        self.find_ready(pool);
    }

    /// A packet of this size leaves.
    #[inline]
    pub fn spend(&mut self, now: u64, wire_bytes: u16) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now, wire_bytes);
        }
    }

    #[inline]
    fn find_ready(&mut self, pool: &Pool) {
        let first = self.waiting.front();
        self.ready_at = first.map_or(u64::MAX, |first| self.may_leave_at(pool[first.index].wire_bytes));
    }

    /// The link has this profile from now on.
    pub fn follow(&mut self, profile: &Profile, pool: &Pool) {
        let service = |waiting: &Waiting| profile.service_ps(pool[waiting.index].wire_bytes);
        self.waiting_ps = self.waiting.iter().map(service).sum();
        self.admission.set_rate(profile.rate);
        self.idle_takes_ps = self.admission.idle_takes_ps();
        if let Some(bucket) = &mut self.bucket {
            bucket.follow(profile);
        }
        self.find_ready(pool);
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

/// Which class a packet belongs to.
#[derive(Debug)]
pub(super) struct Sorting {
    /// Whether the first class is that of credits.
    pub has_credits: bool,
    /// The class of the other packets by that of their flow; at last those of schemes.
    pub class_of: [u8; 5],
}

impl Sorting {
    #[inline]
    pub fn class_of(&self, packet: &Packet) -> usize {
        let class = match packet.kind {
            Kind::Credit if self.has_credits => return 0,
            kind if kind.is_of_scheme() => self.class_of[4],
            _ => self.class_of[packet.flags.class() as usize],
        };
        usize::from(class) + usize::from(self.has_credits)
    }
}
