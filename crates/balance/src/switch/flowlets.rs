//! A table of flowlets, as switches keep it: of fixed size, indexed by a hash, without the five-tuple.
//!
//! Flows that meet in an entry share it: each keeps the other's flowlet alive. An entry keeps its port after the flowlet
//! has ended, as the place where the flow was last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Purpose, Span, Stream, Time, mix64};

use crate::{ParameterError, PortId, SwitchInfo};

/// How a switch notices that a flow has paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// An age bit: set once a gap for every entry, cleared by each packet; an entry whose bit is still set when it is to
    /// be set again has no flowlet any more. Pauses of one to two gaps are noticed.
    #[default]
    AgeBit,
    /// A time stamp: every pause longer than the gap is noticed.
    Timer,
}

/// The table.
#[derive(Debug, Clone)]
pub struct Flowlets {
    /// When the entry's last packet passed, by [`Self::stamp`], above; one more than its port in the low 16 bits. Zero
    /// was never used, so memory that no flow touches is never written.
    entries: Box<[u64]>,
    mask: u64,
    seed: u64,
    detection: Detection,
    gap_ps: u64,
    /// Stamps may differ by this much inside a flowlet.
    limit: u64,
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

impl Flowlets {
    const PORT_BITS: u32 = 16;
    /// Time stamps count 1,024 ps.
    const TICK_BITS: u32 = 10;

    /// An empty table of `entries` entries, a power of two.
    pub fn new(entries: u32, gap: Span, detection: Detection, info: &SwitchInfo<'_>) -> Self {
        let gap_ps = gap.as_ps();
        Self {
            entries: vec![0; entries as usize].into_boxed_slice(),
            mask: u64::from(entries) - 1,
            seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
            detection,
            gap_ps,
            limit: match detection {
                // Touched in one interval, the age bit is set at its end, and found set at the end of the next.
                Detection::AgeBit => 1,
                Detection::Timer => gap_ps.div_ceil(1 << Self::TICK_BITS),
            },
        }
    }

    /// Refuses a table or a gap that cannot be meant.
    ///
    /// # Errors
    /// The parameter, `entries` or `gap`.
    pub fn validate(entries: u32, gap: Span) -> Result<(), ParameterError> {
        if gap.is_zero() {
            let allowed = "longer than nothing";
            return Err(ParameterError { key: "gap", found: gap.to_string(), allowed });
        }
        if !entries.is_power_of_two() || entries > 1 << 24 {
            let allowed = "a power of two, 1 to 16777216";
            return Err(ParameterError { key: "entries", found: entries.to_string(), allowed });
        }
        Ok(())
    }

    #[inline]
    fn stamp(&self, now: Time) -> u64 {
        match self.detection {
            Detection::AgeBit => now.as_ps() / self.gap_ps,
            Detection::Timer => now.as_ps() >> Self::TICK_BITS,
        }
    }

    /// The entry of a packet that passes now.
    #[inline]
    pub fn find(&self, now: Time, packet: &Packet) -> Slot {
        let index = (mix64(self.seed ^ u64::from(packet.entropy)) & self.mask) as usize;
        let (entry, stamp) = (self.entries[index], self.stamp(now));
        let last = ((entry & 0xffff) as u16).checked_sub(1).map(PortId);
        let idle = stamp.wrapping_sub(entry >> Self::PORT_BITS);
        Slot { index, stamp, last, alive: last.is_some() && idle <= self.limit }
    }

    /// The packet of this entry takes `port`.
    #[inline]
    pub fn pass(&mut self, slot: Slot, port: PortId) {
        self.entries[slot.index] = slot.stamp << Self::PORT_BITS | (u64::from(port.0) + 1);
    }

    /// Eight bytes an entry.
    pub fn state_bytes(&self) -> u64 {
        self.entries.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{FakeSwitch, packet};

    use super::*;

    const GAP: Span = Span::from_us(500);

    /// Whether a flowlet lives on after a packet at `first` and a pause (both in us).
    fn alive(detection: Detection, first: u64, pause: u64) -> bool {
        let mut table = Flowlets::new(16, GAP, detection, &FakeSwitch::new(2, 1).info(0, 0, 1));
        let start = Time::ZERO + Span::from_us(first);
        let slot = table.find(start, &packet(1));
        assert!(!slot.alive && slot.last.is_none(), "an unused entry is no flowlet");
        table.pass(slot, PortId(0));
        table.find(start + Span::from_us(pause), &packet(1)).alive
    }

    /// The age bits are set at 500, 1,000, 1,500 us: an entry touched at 0 dies at 1,000, one touched at 499 too.
    #[test]
    fn an_age_bit_notices_pauses_of_one_to_two_gaps() {
        let dies = |first, pause| !alive(Detection::AgeBit, first, pause);
        assert!(!dies(0, 999) && dies(0, 1_000));
        assert!(!dies(499, 500) && dies(499, 501));
        assert!(!dies(500, 999) && dies(500, 1_000));
    }

    #[test]
    fn a_timer_notices_every_pause_longer_than_the_gap() {
        for first in [0, 1, 250, 499, 500] {
            assert!(alive(Detection::Timer, first, 500) && !alive(Detection::Timer, first, 501));
        }
    }

    #[test]
    fn an_entry_keeps_its_port_after_the_flowlet() {
        let mut table = Flowlets::new(1, GAP, Detection::Timer, &FakeSwitch::new(2, 1).info(0, 0, 1));
        table.pass(table.find(Time::ZERO, &packet(1)), PortId(7));
        let slot = table.find(Time::ZERO + Span::from_ms(5), &packet(2));
        assert_eq!((slot.last, slot.alive), (Some(PortId(7)), false), "whichever flow it was");
        assert_eq!(table.state_bytes(), 8);
    }

    #[test]
    fn tables_and_gaps_that_cannot_be_meant_are_refused() {
        assert_eq!(Flowlets::validate(1_000, GAP).unwrap_err().key, "entries");
        assert_eq!(Flowlets::validate(0, GAP).unwrap_err().key, "entries");
        assert_eq!(Flowlets::validate(16, Span::ZERO).unwrap_err().key, "gap");
        assert_eq!(Flowlets::validate(1, GAP), Ok(()));
    }
}
