//! Where packets leave the queue: what is measured there, and how it comes back to the decision
//! (QALL Alg. 1 line 22, QALL Alg. 3 lines 1 to 8).

use weft_units::{Bytes, Rate};

use super::index::{Index, ONE};
use crate::Queued;

/// A port's queue behaviour on its way to the decision (QALL Fig. 6).
#[derive(Debug, Clone, Copy, Default)]
struct QueueInfo {
    /// When the packet left the queue, in ps.
    measured: u64,
    /// The dequeue interval, in ps.
    interval: u64,
    /// Bytes that the port had sent before the packet.
    sent_before: u64,
    /// The occupancy, in parts of [`ONE`].
    occupancy: u16,
    rising: bool,
}

/// Never, in ps.
pub const NEVER: u64 = u64::MAX;

/// A port whose rate is another one from now on, or whose cable went down or came back.
#[derive(Debug, Clone, Copy)]
pub struct Changed {
    /// Now, in ps.
    pub now: u64,
    /// The rate.
    pub rate: Rate,
    /// Bytes that the port had been given to send.
    pub sent: u64,
    /// When everything that is queued will have been sent, in ps.
    pub drained: u64,
    /// Whether the cable works. What was queued when it went down is lost.
    pub is_up: bool,
}

impl Changed {
    /// When a packet that is not in service yet leaves the queue, if so many bytes were sent before
    /// it: itself and what is behind it go at the new rate.
    fn leaves(&self, sent_before: u64) -> u64 {
        let from_here = self.rate.service(Bytes::new(self.sent.saturating_sub(sent_before)));
        self.drained.saturating_sub(from_here.as_ps()).max(self.now)
    }
}

/// A port to another switch: the registers of both pipelines, and the clones between them.
#[derive(Debug, Clone)]
pub struct Port {
    /// W, from the last clone that came.
    pub weight: u64,
    /// When something may come, in ps.
    pub wake: u64,
    /// When the packet of that last clone left the queue, in ps; [`NEVER`] before the first.
    pub measured: u64,
    /// A full queue in bytes; 0 for a port that is not watched.
    pub full: u64,
    /// The rate that leaving times were worked out with.
    rate: Rate,
    /// When the last packet left the queue, or will, in ps.
    last_leaves: u64,
    /// Bytes that the port had sent before that packet.
    last_sent_before: u64,
    /// When the last packet that was cloned left it, in ps.
    last_clone: u64,
    /// Bytes that the last packet found queued.
    last_backlog: u64,
    rising: bool,
    /// The clones under way: a ring.
    ring: Box<[QueueInfo]>,
    head: usize,
    under_way: usize,
}

/// State that all ports of a switch share.
#[derive(Debug, Clone)]
pub struct EgressShared {
    /// Boxed: it is looked at for clones only.
    pub index: Box<Index>,
    /// `T_b`, in ps.
    pub update: u64,
    /// From leaving the queue to the decision, in ps.
    pub recirculation: u64,
    /// The unit of intervals, in ps.
    pub tick: u64,
    /// Clones made.
    pub clones: u64,
    /// Packets that should have been cloned and found no room.
    pub clones_lost: u64,
    /// The delays of all clones that came back, summed up, in ps.
    pub decision_delay: u64,
}

impl EgressShared {
    /// Registers that a controller writes into the switch: see
    /// [`SwitchScheme::registers`](crate::SwitchScheme::registers).
    pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("update_ps", 0, self.update);
        set("recirculation_ps", 0, self.recirculation);
        set("tick_ps", 0, self.tick);
        self.index.registers(set);
    }
}

impl Port {
    /// An idle port whose queue holds `full` bytes, with room for so many clones.
    pub fn new(full: u64, rate: Rate, under_way: u64, common: &EgressShared) -> Self {
        let places = if full == 0 { 0 } else { under_way as usize };
        Self {
            // Registers begin at zero: no queue, so no congestion.
            weight: common.index.weight(0, 0, false),
            wake: NEVER,
            measured: NEVER,
            full,
            rate,
            last_leaves: 0,
            last_sent_before: 0,
            last_clone: 0,
            last_backlog: 0,
            rising: false,
            ring: vec![QueueInfo::default(); places].into_boxed_slice(),
            head: 0,
            under_way: 0,
        }
    }

    /// QALL Alg. 3, at the end of the queue: a packet leaves it, or will.
    #[inline]
    pub fn leave(&mut self, packet: &Queued, common: &mut EgressShared) {
        // V is what made the occupancy what it is: while nothing changes, the last change.
        if packet.found_bytes != self.last_backlog {
            self.rising = packet.found_bytes > self.last_backlog;
        }
        self.last_backlog = packet.found_bytes;
        let leaves = packet.leaves.as_ps();
        let interval = leaves.saturating_sub(self.last_leaves);
        self.last_leaves = leaves;
        self.last_sent_before = packet.sent_before;
        // QALL Alg. 3 lines 3 to 8.
        if leaves.saturating_sub(self.last_clone) > common.update {
            self.last_clone = leaves;
            self.send_clone(packet, interval, common);
        }
    }

    fn send_clone(&mut self, packet: &Queued, interval: u64, common: &mut EgressShared) {
        if self.under_way == self.ring.len() {
            common.clones_lost += 1;
            return;
        }
        common.clones += 1;
        let slot = (self.head + self.under_way) % self.ring.len();
        self.ring[slot] = QueueInfo {
            measured: self.last_leaves,
            interval,
            sent_before: packet.sent_before,
            occupancy: (packet.found_bytes.saturating_mul(ONE) / self.full).min(ONE) as u16,
            rising: self.rising,
        };
        self.under_way += 1;
        self.wake = self.wake.min(self.last_leaves.saturating_add(common.recirculation));
    }

    /// Takes in what came by now. QALL Alg. 1 lines 1 to 3.
    #[cold]
    pub fn refresh(&mut self, now: u64, common: &mut EgressShared) {
        self.wake = NEVER;
        while self.under_way > 0 {
            let clone = self.ring[self.head];
            let due = clone.measured.saturating_add(common.recirculation);
            if due > now {
                self.wake = due;
                return;
            }
            common.decision_delay += due - clone.measured;
            // QALL eqs. 4 to 6. The weight changes with the registers only, so it is worked out
            // here and not for each packet.
            let ticks = clone.interval / common.tick;
            self.weight = common.index.weight(u64::from(clone.occupancy), ticks, clone.rising);
            self.measured = clone.measured;
            self.head = (self.head + 1) % self.ring.len();
            self.under_way -= 1;
        }
    }

    /// The port is not what it was: packets that are still queued leave at other times, or never.
    /// Clones are worked out anew for as far as they were made for such packets; which packets are
    /// cloned was decided when they were queued.
    #[cold]
    pub fn reschedule(&mut self, changed: Changed, common: &mut EgressShared) {
        let still_queued = |leaves: u64| leaves > changed.now;
        for place in 0..self.under_way {
            let slot = (self.head + place) % self.ring.len();
            let clone = &mut self.ring[slot];
            if !still_queued(clone.measured) {
                continue;
            }
            if !changed.is_up {
                // Clones are in the order of their packets: this one and those behind it were never
                // made.
                common.clones -= (self.under_way - place) as u64;
                self.under_way = place;
                break;
            }
            let (leaves, ahead_leaves) = (changed.leaves(clone.sent_before), clone.measured - clone.interval);
            clone.interval = if still_queued(ahead_leaves) {
                // How long the packet ahead will be in service: all of it at the new rate. It
                // leaves after now, also where a switch's program and not the rate is what it waits
                // for.
                let stretched = u128::from(clone.interval) * u128::from(self.rate.as_bps());
                let stretched = (stretched / u128::from(changed.rate.as_bps().max(1))) as u64;
                stretched.min(leaves.saturating_sub(changed.now))
            } else {
                leaves - ahead_leaves
            };
            if self.last_clone == clone.measured {
                self.last_clone = leaves;
            }
            clone.measured = leaves;
        }
        if still_queued(self.last_leaves) {
            self.last_leaves =
                if changed.is_up { changed.leaves(self.last_sent_before) } else { changed.now };
        }
        if !changed.is_up {
            self.last_clone = self.last_clone.min(changed.now);
        }
        self.rate = changed.rate;
        self.wake = match self.under_way {
            0 => NEVER,
            _ => self.ring[self.head].measured.saturating_add(common.recirculation),
        };
    }
}
