//! The flow table of a leaf, and how many active short flows each uplink has.

use weft_packet::{Kind, Packet};
use weft_units::{Purpose, Span, Stream, Time, mix64};

use super::visits::Visits;
use super::{Counted, Params};
use crate::{PortId, SwitchInfo};

/// No entry: the end of the list of active short flows.
const NONE: u32 = u32::MAX;

/// A flow, in 32 bytes. An entry that was never used is zero, so memory that no flow touches is
/// never written.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// When its last packet reaches the next leaf, as predicted, and when that packet passed here.
    tnl: Time,
    seen: Time,
    /// Bytes so far, at most all that fit.
    sent: u32,
    /// Neighbours in the list of active short flows; of no meaning unless `counted`.
    older: u32,
    newer: u32,
    /// One more than its last packet's port; zero before its first.
    port: u16,
    /// Bits of its hash that are not the entry's number.
    tag: u8,
    /// Whether it counts as an active short flow on its port.
    counted: bool,
}

/// Where and when the last packet of a flow went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Last {
    pub tnl: Time,
    pub port: Option<PortId>,
}

impl Last {
    /// Latest time at the next leaf at which a packet overtakes, if it must be later than the
    /// flow's last packet by more than `margin`. A flow's first packet overtakes nothing.
    #[inline]
    pub fn bar(self, margin: Span) -> Time {
        if self.port.is_some() { self.tnl.saturating_add(margin) } else { self.tnl }
    }
}

impl Flow {
    /// Where and when its last packet went.
    #[inline]
    fn last(&self) -> Last {
        Last { tnl: self.tnl, port: (self.port != 0).then(|| PortId(self.port - 1)) }
    }
}

/// The flow table of a leaf. Active short flows are in a list, the one that has been quiet longest
/// first, so that a flow stops counting on time without a timer of its own.
#[derive(Debug, Clone)]
pub(super) struct Flows {
    table: Box<[Flow]>,
    shorts: Box<[u32]>,
    oldest: u32,
    newest: u32,
    /// In place of that list, if a flow counts on each uplink that it took.
    visits: Option<Box<Visits>>,
    /// Up to and including this time no flow stops counting for being quiet.
    none_retires_until: Time,
    seed: u64,
    rtt: Span,
    long_after: u64,
    shared: u64,
}

impl Flows {
    /// A table with this many entries: a power of two, or none.
    pub fn new(params: &Params, rtt: Span, info: &SwitchInfo<'_>, entries: usize) -> Self {
        let ports = info.port_rates.len();
        let visits = || Box::new(Visits::new(entries, info.port_peers));
        Self {
            table: vec![Flow::default(); entries].into_boxed_slice(),
            shorts: vec![0; ports].into_boxed_slice(),
            oldest: NONE,
            newest: NONE,
            visits: (params.counted == Counted::Each).then(visits),
            none_retires_until: Time::NEVER,
            seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
            rtt,
            long_after: params.long_after.as_u64(),
            shared: 0,
        }
    }

    /// A packet arrived: its flow's entry, with the packet's bytes counted, where the entry's last
    /// packet went, and whether the flow is long. Flows that have become inactive stop counting
    /// first (TR §Counting the number of short flows).
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn arrive(&mut self, now: Time, packet: &Packet) -> (usize, Last, bool) {
        if now > self.none_retires_until {
            self.retire(now);
        }
        let (slot, tag) = self.place(packet);
        let flow = &self.table[slot];
        if flow.port == 0 || flow.tag != tag || packet.kind == Kind::Syn {
            self.take_entry(slot, tag, now);
        }
        let flow = &mut self.table[slot];
        let last = flow.last();
        if is_answer(packet.kind) {
            return (slot, last, false);
        }
        flow.sent = flow.sent.saturating_add(packet.wire_bytes.into());
        let long = u64::from(flow.sent) > self.long_after;
        if long && flow.counted {
            self.stop_counting(slot);
        }
        (slot, last, long)
    }

    /// A packet's entry, and the bits of its flow's hash that are not the entry's number.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn place(&self, packet: &Packet) -> (usize, u8) {
        let hash = mix64(self.seed ^ u64::from(packet.entropy));
        ((hash as usize) & (self.table.len() - 1), (hash >> 56) as u8)
    }

    /// Forecast of [`Self::arrive`] for a packet: where its entry's last packet went, and whether
    /// its flow is long.
    pub fn expect(&self, now: Time, packet: &Packet) -> (Last, bool) {
        let (slot, tag) = self.place(packet);
        let mut flow = self.table[slot];
        let begins = flow.port == 0 || flow.tag != tag || packet.kind == Kind::Syn;
        if begins && !self.is_shared(&flow, tag, now) {
            flow = Flow::default();
        }
        let is_data = !is_answer(packet.kind);
        let sent = flow.sent.saturating_add(packet.wire_bytes.into());
        (flow.last(), is_data && u64::from(sent) > self.long_after)
    }

    /// Whether the entry is that of another flow that is still active.
    fn is_shared(&self, flow: &Flow, tag: u8, now: Time) -> bool {
        flow.port != 0 && flow.tag != tag && now.since(flow.seen) <= self.rtt
    }

    /// A flow begins, or meets another one in its entry.
    #[cold]
    fn take_entry(&mut self, slot: usize, tag: u8, now: Time) {
        if self.is_shared(&self.table[slot], tag, now) {
            // The two share the entry, and keep behind each other.
            self.shared += 1;
        } else {
            self.stop_counting(slot);
            self.table[slot] = Flow { tag, ..Flow::default() };
        }
    }

    /// Where and when the entry's last packet went.
    #[cfg(test)]
    pub fn last(&self, slot: usize) -> Last {
        self.table[slot].last()
    }

    /// The packet goes by `port` and is to reach the next leaf at `tnl`. `counts`: it is data of a
    /// short flow, which from now on is one of that port's active short flows, and of no other's
    /// unless flows count on each uplink.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn leave(&mut self, slot: usize, now: Time, port: PortId, tnl: Time, counts: bool) {
        let flow = &mut self.table[slot];
        if counts || flow.counted {
            return self.leave_counted(slot, now, port, tnl, counts);
        }
        (flow.tnl, flow.seen, flow.port) = (tnl, now, port.0 + 1);
    }

    /// [`Self::leave`] for an entry that counts, or does from now on.
    #[inline(never)]
    fn leave_counted(&mut self, slot: usize, now: Time, port: PortId, tnl: Time, counts: bool) {
        if self.visits.is_none() {
            self.stop_counting(slot);
        }
        let flow = &mut self.table[slot];
        (flow.tnl, flow.seen, flow.port) = (tnl, now, port.0 + 1);
        match &mut self.visits {
            None => self.start_counting(slot),
            Some(visits) if counts => {
                flow.counted = true;
                visits.visit(slot, port, now, &mut self.shorts);
                self.none_retires_until = self.none_retires_until.min(now.saturating_add(self.rtt));
            }
            Some(_) => {}
        }
    }

    /// By port, its active short flows (TR §Counting: ns).
    #[inline]
    pub fn active_shorts(&self) -> &[u32] {
        &self.shorts
    }

    /// Whether there are any.
    #[inline]
    pub fn has_active_shorts(&self) -> bool {
        self.oldest != NONE || self.visits.as_ref().is_some_and(|visits| visits.are_some())
    }

    /// Registers that a controller writes into the switch: see
    /// [`SwitchScheme::registers`](crate::SwitchScheme::registers).
    pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("entries", 0, self.table.len() as u64);
        set("rtt_ps", 0, self.rtt.as_ps());
        set("long_after", 0, self.long_after);
        set("counts_each_uplink", 0, u64::from(self.visits.is_some()));
    }

    /// Packets that met another active flow in their entry.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// 32 bytes an entry, and what flows that count on each uplink need besides.
    pub fn state_bytes(&self) -> u64 {
        let visits = self.visits.as_ref().map_or(0, |visits| visits.state_bytes());
        self.table.len() as u64 * size_of::<Flow>() as u64 + visits
    }

    /// Flows without a packet for longer than an RTT stop counting.
    #[inline(never)]
    fn retire(&mut self, now: Time) {
        if let Some(visits) = &mut self.visits {
            self.none_retires_until = visits.retire(now, self.rtt, &mut self.shorts);
            return;
        }
        self.none_retires_until = loop {
            if self.oldest == NONE {
                break Time::NEVER;
            }
            let until = self.table[self.oldest as usize].seen.saturating_add(self.rtt);
            if now <= until {
                break until;
            }
            self.stop_counting(self.oldest as usize);
        };
    }

    /// Puts the flow at the end of the list and counts it on its port.
    #[inline]
    fn start_counting(&mut self, slot: usize) {
        let before = std::mem::replace(&mut self.newest, slot as u32);
        let flow = &mut self.table[slot];
        // Those that are in the list already have been quiet for longer.
        self.none_retires_until = self.none_retires_until.min(flow.seen.saturating_add(self.rtt));
        (flow.counted, flow.older, flow.newer) = (true, before, NONE);
        self.shorts[usize::from(flow.port) - 1] += 1;
        match before {
            NONE => self.oldest = slot as u32,
            before => self.table[before as usize].newer = slot as u32,
        }
    }

    /// Takes the flow out of the list, if it is in it, and off its port's count, or off those of
    /// all ports.
    #[inline(never)]
    fn stop_counting(&mut self, slot: usize) {
        let flow = self.table[slot];
        if !flow.counted {
            return;
        }
        self.table[slot].counted = false;
        if let Some(visits) = &mut self.visits {
            return visits.void(slot, &mut self.shorts);
        }
        self.shorts[usize::from(flow.port) - 1] -= 1;
        match flow.older {
            NONE => self.oldest = flow.newer,
            older => self.table[older as usize].newer = flow.newer,
        }
        match flow.newer {
            NONE => self.newest = flow.older,
            newer => self.table[newer as usize].older = flow.older,
        }
    }
}

/// Whether a packet of this kind tells a sender what came: it is routed as one of a short flow, and
/// is no data sent.
#[inline]
const fn is_answer(kind: Kind) -> bool {
    matches!(kind, Kind::Ack | Kind::SynAck | Kind::Nack | Kind::Cnp)
}
