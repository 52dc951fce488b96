//! A table of flowlets, as switches keep it: of fixed size, indexed by a hash, without the
//! five-tuple.
//!
//! As in hardware, no entry is ever full: flows that meet in one share it, each keeps the other's
//! flowlet alive, and they follow one port as long as it leads to both their destinations. An entry
//! keeps its port after the flowlet has ended, as the place where the flow was last.
//! Acknowledgements and every other packet count alike.

use weft_packet::Packet;
use weft_units::{Purpose, Span, Stream, Time, mix64};

use crate::flowlet::{Pauses, Timer};
use crate::registry::check_table_size;
use crate::{NextHops, ParameterError, PortId, SwitchInfo};

/// The table, with the rule that ends flowlets.
#[derive(Debug, Clone)]
pub struct Flowlets<P = Timer> {
    /// When the entry's last packet passed, by [`Pauses::stamp`], above; one more than its port in
    /// the low 16 bits. Zero was never used, so memory that no flow touches is never written.
    entries: Box<[u64]>,
    mask: u64,
    seed: u64,
    pauses: P,
}

/// A packet's entry.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    index: usize,
    stamp: u64,
    /// The port that the entry's last packet took.
    pub last: Option<PortId>,
    /// Whether its flowlet goes on.
    pub alive: bool,
}

impl Slot {
    /// The port of the flowlet that goes on, if one does.
    #[inline]
    pub fn current(self) -> Option<PortId> {
        self.last.filter(|_| self.alive)
    }
}

impl Flowlets<Timer> {
    /// Decision for a packet that passes now, in words: `chooses` says what a new flowlet does with
    /// its next hops.
    pub fn explain(&self, now: Time, packet: &Packet, hops: &NextHops<'_>, chooses: &str) -> String {
        let slot = self.find(now, packet);
        let ports = format!("{chooses} {} ports", hops.ports.len());
        let limit = Self::span(self.pauses.limit());
        let Some(last) = slot.last else { return format!("no flowlet yet, {ports}") };
        let pause = Self::span(slot.stamp.wrapping_sub(self.entries[slot.index] >> Self::PORT_BITS));
        if !slot.alive {
            return format!("gap {pause} > {limit}, {ports}");
        }
        if hops.index_of(last).is_none() {
            return format!("gap {pause} <= {limit}, but its port is no next hop any more, {ports}");
        }
        format!("gap {pause} <= {limit}, the flowlet stays on its port")
    }

    /// So many ticks as they are told: to a tenth of a microsecond, long ones to a whole one.
    fn span(ticks: u64) -> String {
        let us = Span::from_ps(ticks << Timer::TICK_BITS).as_us();
        if us < 100.0 { format!("{us:.1} µs") } else { format!("{us:.0} µs") }
    }
}

impl<P: Pauses> Flowlets<P> {
    const PORT_BITS: u32 = 16;

    /// An empty table of `entries` entries, a power of two.
    pub fn new(entries: u32, pauses: P, info: &SwitchInfo<'_>) -> Self {
        Self {
            entries: vec![0; entries as usize].into_boxed_slice(),
            mask: u64::from(entries) - 1,
            seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
            pauses,
        }
    }

    /// The entry of a packet that passes now.
    #[inline]
    pub fn find(&self, now: Time, packet: &Packet) -> Slot {
        let index = (mix64(self.seed ^ u64::from(packet.entropy)) & self.mask) as usize;
        let (entry, stamp) = (self.entries[index], self.pauses.stamp(now));
        let last = ((entry & 0xffff) as u16).checked_sub(1).map(PortId);
        let alive = last.is_some() && self.pauses.goes_on(entry >> Self::PORT_BITS, stamp);
        Slot { index, stamp, last, alive }
    }

    /// The packet of this entry takes `port`.
    #[inline]
    pub fn pass(&mut self, slot: Slot, port: PortId) {
        self.entries[slot.index] = slot.stamp << Self::PORT_BITS | (u64::from(port.0) + 1);
    }

    /// Registers that a controller writes into the switch for it: see
    /// [`SwitchScheme::registers`](crate::SwitchScheme::registers).
    pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("hash_seed", 0, self.seed);
        set("entries", 0, self.entries.len() as u64);
        set("pause_limit", 0, self.pauses.limit());
    }

    /// Eight bytes an entry: a time stamp of 48 bits and a port of 16.
    pub fn state_bytes(&self) -> u64 {
        self.entries.len() as u64 * 8
    }
}

/// Refuses a table or a gap that cannot be meant. `allowed` says what a gap may be.
///
/// # Errors
/// The parameter, `entries` or `gap`.
pub fn validate(entries: u32, gap: Span, allowed: &'static str) -> Result<(), ParameterError> {
    if gap.is_zero() {
        return Err(ParameterError { key: "gap", found: gap.to_string(), allowed });
    }
    check_table_size(entries)
}

#[cfg(test)]
mod tests {
    use crate::testing::{FakeSwitch, packet};

    use super::*;

    const GAP: Span = Span::from_us(500);

    #[test]
    fn an_unused_entry_is_no_flowlet_at_the_beginning_of_time() {
        let mut table = Flowlets::new(16, Timer::new(GAP), &FakeSwitch::new(2, 1).info(0, 0, 1));
        let slot = table.find(Time::ZERO, &packet(1));
        assert_eq!((slot.last, slot.alive, slot.current()), (None, false, None));
        table.pass(slot, PortId(0));
        let slot = table.find(Time::ZERO, &packet(1));
        assert_eq!((slot.last, slot.alive, slot.current()), (Some(PortId(0)), true, Some(PortId(0))));
    }

    #[test]
    fn an_entry_keeps_its_port_after_the_flowlet() {
        let mut table = Flowlets::new(1, Timer::new(GAP), &FakeSwitch::new(2, 1).info(0, 0, 1));
        table.pass(table.find(Time::ZERO, &packet(1)), PortId(7));
        let slot = table.find(Time::ZERO + Span::from_ms(5), &packet(2));
        assert_eq!((slot.last, slot.current()), (Some(PortId(7)), None), "whichever flow it was");
        assert_eq!(table.state_bytes(), 8);
    }

    #[test]
    fn tables_and_gaps_that_cannot_be_meant_are_refused() {
        let key = |entries, gap| validate(entries, gap, "more").map_err(|error| error.key);
        assert_eq!(key(1_000, GAP), Err("entries"));
        assert_eq!(key(0, GAP), Err("entries"));
        assert_eq!(key(1 << 25, GAP), Err("entries"));
        assert_eq!(key(16, Span::ZERO), Err("gap"));
        assert_eq!(key(1, GAP), Ok(()));
    }
}
