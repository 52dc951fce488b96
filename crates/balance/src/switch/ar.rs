//! Adaptive routing by queue: each packet, or each flowlet, takes a port of the least grade of
//! queue, any of those. It is what switches for training clusters ship: NVIDIA's adaptive routing,
//! Broadcom's and Cisco's dynamic load balancing.
//!
//! A port's grade says in which band its queue lies: below a first threshold, below twice that,
//! below four times that, or above. Ports of one grade are equal, and one of them is drawn: bands
//! keep all packets of an instant from running to the one queue that is shortest by a byte.
//! Flowlets stay where they are until a pause, and leave then only for a port that is better by
//! some grades.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Bytes, Span};

use super::flowlets::{self, Flowlets};
use crate::flowlet::Timer;
use crate::registry::{FlowletRule, Parameters};
use crate::{NextHops, Order, ParameterError, PortId, SwitchContext, SwitchInfo, SwitchScheme};

#[cfg(test)]
mod tests;

/// Parameters of adaptive routing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Unit of choice: `packet`, each packet; `flowlet`, the first packet of each flowlet. Source:
    /// both modes of dynamic load balancing in Junos and `uet-htsim` (`-ar_granularity`); NVIDIA's
    /// adaptive routing of RoCE is by packet.
    pub mode: Mode,
    /// Grades of queues: 1 to 16; 1 makes all ports equal, 0 compares queues by the byte. Source: 4
    /// in `uet-htsim` (`quantized_queuesize`), which McClure et al., arXiv 2507.21372, Table 2,
    /// take for Spectrum-X; Junos has 8 quality bands.
    pub grades: u8,
    /// The first threshold, as a share of what a port's queue holds: above 0 to 1. Each threshold
    /// is twice the one below. Source: 5 %, 10 % and 20 % in `uet-htsim` and in McClure et al.
    pub first: f64,
    /// Queue size of which the first threshold is a share (size). Default: the limit of each port's
    /// queue, or 1 MB where that has no limit. Source: `uet-htsim` takes the queue's limit.
    pub full: Option<Bytes>,
    /// With flowlets: a pause that is longer ends one (time). Source: Junos' inactivity interval,
    /// 16 us unless set (recalled); `uet-htsim` has 10 us (`-ar_sticky_delta`).
    pub gap: Span,
    /// With flowlets: by how many grades another port must be better for a new flowlet to leave the
    /// flow's last one: 0 to 16; 0 leaves it for any port of the least grade. Source: `uet-htsim`
    /// leaves only for a better port.
    pub sticky: u8,
    /// With flowlets: by how many grades another port must be better for a flowlet to be moved in
    /// its middle: 1 to 16, or 0 for never. Source: reactive path rebalancing in Junos, which is
    /// off unless asked for.
    pub rebalance: u8,
    /// With flowlets: entries of a switch's table, a power of two, 1 to 16,777,216. Source: 64K as
    /// in CONGA's leaf switches; `uet-htsim` has no limit.
    pub entries: u32,
}

/// Unit of choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each packet.
    #[default]
    Packet,
    /// The first packet of each flowlet.
    Flowlet,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            mode: Mode::Packet,
            grades: 4,
            first: 0.05,
            full: None,
            gap: Span::from_us(16),
            sticky: 1,
            rebalance: 0,
            entries: 1 << 16,
        }
    }
}

/// More grades than any switch has.
const MOST_GRADES: u8 = 16;
/// Size of a queue without limit.
const UNLIMITED: Bytes = Bytes::from_kb(1_000);

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        (self.mode == Mode::Flowlet).then(|| FlowletRule::informed(self.gap))
    }

    fn order(&self, usual: Order) -> Order {
        if self.mode == Mode::Flowlet { Order::Moves } else { usual }
    }

    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        for (key, found) in [("grades", self.grades), ("sticky", self.sticky), ("rebalance", self.rebalance)]
        {
            if found > MOST_GRADES {
                return refuse(key, found.to_string(), "0 to 16");
            }
        }
        if !(self.first > 0.0 && self.first <= 1.0) {
            return refuse("first", self.first.to_string(), "above 0 to 1");
        }
        if self.full.is_some_and(Bytes::is_zero) {
            return refuse("full", "0B".to_owned(), "more than nothing");
        }
        flowlets::validate(
            self.entries,
            self.gap,
            "longer than nothing (for a choice a packet, use mode=packet)",
        )
    }
}

/// How queues are graded.
#[derive(Debug, Clone)]
struct Grades {
    count: u8,
    /// The first threshold of each port, in bytes; at least 1.
    first: Box<[u64]>,
}

impl Grades {
    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let first = |buffer: &Option<Bytes>| {
            let full = params.full.or(*buffer).unwrap_or(UNLIMITED);
            ((full.as_u64() as f64 * params.first) as u64).max(1)
        };
        Self { count: params.grades, first: info.port_buffers.iter().map(first).collect() }
    }

    /// In which band a queue of so many bytes lies; the bytes themselves if there are no bands.
    #[inline]
    fn grade(&self, port: PortId, bytes: u64) -> u64 {
        if self.count == 0 {
            return bytes;
        }
        // first x 2^n <= bytes for n thresholds more than none.
        let passed = u64::from((bytes / self.first[port.index()]).checked_ilog2().map_or(0, |log| log + 1));
        passed.min(u64::from(self.count) - 1)
    }

    #[inline]
    fn of<C: SwitchContext + ?Sized>(&self, cx: &C, port: PortId, packet: &Packet) -> u64 {
        self.grade(port, cx.backlog_bytes_for(port, packet))
    }
}

/// Adaptive routing at one switch.
#[derive(Debug, Clone)]
pub struct Ar {
    grades: Grades,
    /// The grades of the next hops of one decision.
    candidates: Box<[u64]>,
    flowlets: Option<Sticky>,
}

/// State for flowlets.
#[derive(Debug, Clone)]
struct Sticky {
    table: Flowlets,
    stays_within: u64,
    rebalance: u64,
    decisions: u64,
    moves: u64,
    rebalanced: u64,
}

impl Ar {
    /// The least grade among the next hops.
    #[inline]
    fn rate<C: SwitchContext + ?Sized>(&mut self, cx: &C, packet: &Packet, hops: &NextHops<'_>) -> u64 {
        let mut least = u64::MAX;
        for (candidate, &port) in self.candidates.iter_mut().zip(hops.ports) {
            *candidate = self.grades.of(cx, port, packet);
            least = least.min(*candidate);
        }
        least
    }

    /// One of the next hops of this grade.
    #[inline]
    fn draw<C: SwitchContext + ?Sized>(&self, cx: &mut C, least: u64, hops: usize) -> usize {
        let equal = |&&grade: &&u64| grade == least;
        let candidates = &self.candidates[..hops];
        let count = candidates.iter().filter(equal).count() as u32;
        let draw = if count > 1 { cx.random().below(count) as usize } else { 0 };
        let nth = candidates.iter().enumerate().filter(|(_, grade)| **grade == least).nth(draw);
        nth.map_or(0, |(index, _)| index)
    }

    fn choose_for_flowlet<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let Some(Sticky { table, stays_within, rebalance, .. }) = &self.flowlets else { return 0 };
        let (slot, stays_within, rebalance) = (table.find(cx.now(), packet), *stays_within, *rebalance);
        let last = slot.last.and_then(|port| hops.index_of(port));
        let goes_on = last.filter(|_| slot.alive);
        let index = match goes_on {
            Some(index) if rebalance == 0 => index,
            _ => {
                let least = self.rate(cx, packet, hops);
                // Of a bad port it is left for the least, and of one that is good enough for none.
                let apart = if goes_on.is_some() { rebalance } else { stays_within };
                let stays =
                    |index: &usize| apart > 0 && self.candidates[*index] < least.saturating_add(apart);
                last.filter(stays).unwrap_or_else(|| self.draw(cx, least, hops.ports.len()))
            }
        };
        if let Some(flowlets) = &mut self.flowlets {
            let moved = slot.last.is_some() && last != Some(index);
            flowlets.decisions += u64::from(goes_on.is_none());
            flowlets.moves += u64::from(moved && goes_on.is_none());
            flowlets.rebalanced += u64::from(moved && goes_on.is_some());
            flowlets.table.pass(slot, hops.ports[index]);
        }
        index
    }
}

impl SwitchScheme for Ar {
    type Params = Params;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let sticky = || Sticky {
            table: Flowlets::new(params.entries, Timer::new(params.gap), info),
            stays_within: params.sticky.into(),
            rebalance: params.rebalance.into(),
            decisions: 0,
            moves: 0,
            rebalanced: 0,
        };
        Self {
            grades: Grades::new(params, info),
            candidates: vec![0; info.port_rates.len()].into_boxed_slice(),
            flowlets: (params.mode == Mode::Flowlet).then(sticky),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        if self.flowlets.is_some() {
            return self.choose_for_flowlet(cx, packet, hops);
        }
        let least = self.rate(cx, packet, hops);
        self.draw(cx, least, hops.ports.len())
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        if let Some(Sticky { table, .. }) = &self.flowlets
            && table.find(cx.now(), packet).current().is_some_and(|port| hops.index_of(port).is_some())
        {
            return Some("the flowlet goes on and stays on its port, unless that is much worse".to_owned());
        }
        let grades = hops.ports.iter().map(|&port| self.grades.of(cx, port, packet));
        let least = grades.clone().min()?;
        let equal = grades.filter(|&grade| grade == least).count();
        let what = if self.grades.count == 0 { "the shortest queue" } else { "the least grade" };
        Some(format!("{what}, {least}: one of {equal} of {} ports", hops.ports.len()))
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("grades", 0, self.grades.count.into());
        for (port, &first) in self.grades.first.iter().enumerate() {
            set("first_threshold", port as u32, first);
        }
        if let Some(Sticky { table, stays_within, rebalance, .. }) = &self.flowlets {
            table.registers(set);
            set("sticky", 0, *stays_within);
            set("rebalance", 0, *rebalance);
        }
    }

    /// The table of flowlets; thresholds do not change.
    fn state_bytes(&self) -> u64 {
        self.flowlets.as_ref().map_or(0, |own| own.table.state_bytes())
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        if let Some(Sticky { decisions, moves, rebalanced, .. }) = &self.flowlets {
            count("flowlets", *decisions);
            count("flowlet_moves", *moves);
            count("rebalanced", *rebalanced);
        }
    }
}
