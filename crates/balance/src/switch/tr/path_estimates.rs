//! Path estimates of a leaf to other racks: TR eq. 1 without the leaf's own queue.

use weft_units::{Bytes, PicosPerByte, Rate, Span, Time};

use super::{Near, Params, SpineQueue, Tnl};
use crate::{Peer, PortId};

/// Path estimate of a leaf by a port to a rack.
#[derive(Debug, Clone, Copy)]
struct PathEstimate {
    /// Delay of both cables together.
    delay: Span,
    /// Time per byte of this leaf's cable and the spine's: zero if a packet does not count itself.
    per_byte: [PicosPerByte; 2],
    /// The time that a step of the spine's code takes to drain.
    step: Span,
    /// The time that the spine's queue would have taken to drain when it was last heard of; nothing
    /// if that is no longer believed.
    queue: Span,
    /// When what was heard is no longer believed.
    until: Time,
}

impl PathEstimate {
    /// How long a packet of so many bytes is in service on both cables.
    #[inline]
    fn service(&self, wire_bytes: u16) -> Span {
        let [near, far] = self.per_byte;
        near.service(wire_bytes) + far.service(wire_bytes)
    }
}

/// Common values of the ways to a rack.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// The rates of both cables, if those of all ways are alike.
    per_byte: Option<[PicosPerByte; 2]>,
    /// The least delay of a way.
    least: Span,
    /// Not before this is anything that was heard no longer believed.
    forget_after: Time,
}

/// The ways of a leaf to all racks.
#[derive(Debug, Clone)]
pub(super) struct PathEstimates {
    ports: usize,
    /// By rack and port: both delays, and the spine's queue as far as it is believed. What a
    /// decision reads of each uplink.
    fixed: Box<[Span]>,
    /// By rack and port.
    all: Box<[PathEstimate]>,
    /// By rack.
    rows: Box<[Row]>,
    /// Which ports are uplinks.
    uplinks: Box<[PortId]>,
    /// The buffer that codes divide, and how many bits they have.
    spine_buffer: Bytes,
    code_bits: u8,
    /// Whether a packet counts itself: its time in service on both cables.
    counts_packet: bool,
    /// Whether what is heard of a spine counts for all racks.
    by_uplink: bool,
}

/// The ways to a rack, for a packet.
#[derive(Clone, Copy)]
pub(super) struct WaysOf<'a> {
    ways: &'a PathEstimates,
    fixed: &'a [Span],
    rack: usize,
    wire_bytes: u16,
    service: Option<Span>,
    /// No way takes less.
    least: Span,
}

impl WaysOf<'_> {
    /// How long the last byte of the packet takes to the destination leaf by a port, without what
    /// is queued before it here (TR eq. 1). The packet itself counts in both queues, unless [`Tnl`]
    /// says otherwise: it arrives when it has been sent, not when those before it have.
    #[inline]
    pub fn time_beyond_queue(self, port: PortId) -> Span {
        let service = self.service.unwrap_or_else(|| self.service_by(port));
        self.fixed[port.index()] + service
    }

    /// How long the packet is in service on both cables by a port.
    #[cold]
    fn service_by(self, port: PortId) -> Span {
        self.ways.all[self.rack * self.ways.ports + port.index()].service(self.wire_bytes)
    }

    /// No [`Self::time_beyond_queue`] is less.
    #[inline]
    pub const fn least(self) -> Span {
        self.least
    }
}

impl PathEstimates {
    /// To so many racks. Until a spine says otherwise, its cable is as that of the port.
    pub fn new(params: &Params, ports: &[Near], racks: u16) -> Self {
        let racks = usize::from(racks);
        let counts_packet = params.tnl == Tnl::WithPacket;
        let guess = |near: &Near| PathEstimate {
            delay: near.delay + near.delay,
            per_byte: [service_at(near.rate, counts_packet); 2],
            step: step(params.spine_buffer, params.code_bits, near.rate),
            queue: Span::ZERO,
            until: Time::ZERO,
        };
        let ways: Box<[PathEstimate]> = (0..racks).flat_map(|_| ports.iter().map(guess)).collect();
        let is_uplink = |port: &PortId| matches!(ports[port.index()].peer, Peer::Switch { .. });
        let mut new = Self {
            ports: ports.len(),
            fixed: ways.iter().map(|way| way.delay).collect(),
            all: ways,
            rows: vec![Row { per_byte: None, least: Span::ZERO, forget_after: Time::NEVER }; racks]
                .into_boxed_slice(),
            uplinks: (0..ports.len() as u16).map(PortId).filter(is_uplink).collect(),
            spine_buffer: params.spine_buffer,
            code_bits: params.code_bits,
            counts_packet,
            by_uplink: params.spine_queue == SpineQueue::ByUplink,
        };
        (0..racks).for_each(|rack| new.compare(rack));
        new
    }

    fn place(&self, rack: u16, port: PortId) -> Option<usize> {
        let place = usize::from(rack) * self.ports + port.index();
        (place < self.all.len()).then_some(place)
    }

    /// Finds out what the ways to a rack have in common.
    fn compare(&mut self, rack: usize) {
        let ways = &self.all[rack * self.ports..][..self.ports];
        let ways = self.uplinks.iter().map(|port| &ways[port.index()]);
        let row = &mut self.rows[rack];
        row.least = ways.clone().map(|way| way.delay).min().unwrap_or_default();
        let mut rates = ways.map(|way| way.per_byte);
        let first = rates.next();
        row.per_byte = first.filter(|&first| rates.all(|other| other == first));
    }

    /// A spine said how long its cable to a rack is, and how fast.
    pub fn learn(&mut self, rack: u16, port: PortId, near: Span, far: Span, rate: Rate) {
        let Some(place) = self.place(rack, port) else { return };
        let way = &mut self.all[place];
        (way.delay, way.per_byte[1]) = (near + far, service_at(rate, self.counts_packet));
        way.step = step(self.spine_buffer, self.code_bits, rate);
        self.fixed[place] = way.delay + way.queue;
        self.compare(usize::from(rack));
    }

    /// A spine's queue to a rack, or to any, had this code: that is believed up to and including
    /// `until`.
    #[inline]
    pub fn hear(&mut self, rack: u16, port: PortId, code: u32, until: Time) {
        if self.by_uplink {
            (0..self.rows.len() as u16).for_each(|rack| self.note(rack, port, code, until));
        } else {
            self.note(rack, port, code, until);
        }
    }

    #[inline]
    fn note(&mut self, rack: u16, port: PortId, code: u32, until: Time) {
        let Some(place) = self.place(rack, port) else { return };
        let way = &mut self.all[place];
        (way.queue, way.until) = (way.step * u64::from(code), until);
        self.fixed[place] = way.delay + way.queue;
        let row = &mut self.rows[usize::from(rack)];
        row.forget_after = row.forget_after.min(until);
    }

    /// Forgets values of the ways to a rack that are no longer believed.
    #[cold]
    fn forget(&mut self, rack: usize, now: Time) {
        let places = rack * self.ports..(rack + 1) * self.ports;
        let mut next = Time::NEVER;
        for (way, fixed) in self.all[places.clone()].iter_mut().zip(&mut self.fixed[places]) {
            if way.until < now {
                way.queue = Span::ZERO;
                *fixed = way.delay;
            } else {
                next = next.min(way.until);
            }
        }
        self.rows[rack].forget_after = next;
    }

    /// The ways to a rack for a packet of so many bytes that comes now.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn to(&mut self, rack: u16, now: Time, wire_bytes: u16) -> WaysOf<'_> {
        let rack = usize::from(rack);
        let row = self.rows[rack];
        if now > row.forget_after {
            self.forget(rack, now);
        }
        let service = row.per_byte.map(|[near, far]| near.service(wire_bytes) + far.service(wire_bytes));
        let least = row.least + service.unwrap_or_default();
        let fixed = &self.fixed[rack * self.ports..][..self.ports];
        WaysOf { ways: self, fixed, rack, wire_bytes, service, least }
    }

    /// By one port what [`WaysOf::time_beyond_queue`] says, and [`WaysOf::least`]: where that can
    /// be said at once, since the rates of all ways are alike, and nothing is to be forgotten.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn by(&self, port: PortId, rack: u16, now: Time, wire_bytes: u16) -> Option<(Span, Span)> {
        let rack = usize::from(rack);
        let row = &self.rows[rack];
        let [near, far] = row.per_byte.filter(|_| now <= row.forget_after)?;
        let service = near.service(wire_bytes) + far.service(wire_bytes);
        Some((self.fixed[rack * self.ports + port.index()] + service, row.least + service))
    }

    /// Registers that a controller writes into the switch: see
    /// [`SwitchScheme::registers`](crate::SwitchScheme::registers). Path estimates are in the order
    /// of racks, then ports.
    pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("ports", 0, self.ports as u64);
        set("is_by_uplink", 0, u64::from(self.by_uplink));
        for (place, way) in self.all.iter().enumerate() {
            let place = place as u32;
            set("way_delay_ps", place, way.delay.as_ps());
            set("way_step_ps", place, way.step.as_ps());
            set("way_near_per_byte", place, way.per_byte[0].as_scaled());
            set("way_far_per_byte", place, way.per_byte[1].as_scaled());
        }
    }

    /// Time in which a step of the code drains at the slowest of the leaf's own uplinks.
    pub fn longest_step(&self, ports: &[Near]) -> Span {
        let of = |port: &PortId| step(self.spine_buffer, self.code_bits, ports[port.index()].rate);
        self.uplinks.iter().map(of).max().unwrap_or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

/// Service time of a packet's byte at this rate, if a packet counts itself.
fn service_at(rate: Rate, counts_packet: bool) -> PicosPerByte {
    if counts_packet { rate.ps_per_byte() } else { PicosPerByte::ZERO }
}

/// The time that a step of the code takes at this rate. A code stands for that many steps: the
/// shortest queue that has it.
fn step(spine_buffer: Bytes, code_bits: u8, rate: Rate) -> Span {
    rate.service(spine_buffer) / (1 << code_bits)
}
