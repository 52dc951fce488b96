//! LBT: three classes of flows, and two queue lengths that say when two of them move (Wang et al.,
//! JNCA 2023).
//!
//! A short flow takes the shortest queue with its first packet and stays there. A flow is long once
//! it has sent `long_after`; best-effort flows say so in every packet. Both are sent packet by
//! packet: on the port where the last packet went as long as its queue is below the flow's
//! threshold, else to the longest queue below it, else to the longest of all (LBT §4.2, LBT Alg.
//! 1). So they gather on few ports and leave the others to short flows, the more the higher the
//! threshold. Every `refresh`, the thresholds follow from what the switch sent in that time: see
//! [`model::lbt`](crate::model::lbt).
//!
//! LBT Alg. 1, as it is printed, looks at all queues for each packet of each class. That is a
//! reading of its own for long flows, and one for short flows: see [`Params::long_choice`] and
//! [`Params::short_choice`].
//!
//! A switch keeps a table of fixed size, indexed by a hash of the five-tuple and without the tuple
//! itself. Flows that meet in an entry are one flow to it. Acknowledgements and connection requests
//! are short flows that never become long, and do not count as load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Class, Kind, Packet};
use weft_units::{Bytes, Purpose, Span, Stream, mix64};

use crate::model::lbt::{Bounds, ClassLoad, Load, Model};
use crate::registry::{Parameters, check_table_size};
use crate::{NextHops, ParameterError, Peer, PortId, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme};

/// Parameters of LBT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// A flow that has sent more than this is long (size, with headers). Source: 100 KB in LBT §5,
    /// of payload.
    pub long_after: Bytes,
    /// How often the thresholds are computed, from the load since the last time (time): `t`.
    /// Source: 500 us in LBT §4.2.
    pub refresh: Span,
    /// The largest window of a sender (size): `W`. Source: 64 KB in LBT Table 1. Only used with
    /// `short_fct`.
    pub window: Bytes,
    /// First window of slow start (size): `m`. Source: not defined in LBT; one segment of 1,500 B
    /// without 40 B of headers. Only used with `short_fct`.
    pub segment: Bytes,
    /// `E[FCT_s]` as a fixed target (time). Default: none. Then it is the mean that LBT eq. 3 gives
    /// at the measured load, which is the only reading with which thresholds grow with load.
    /// Source: not defined in LBT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_fct: Option<Span>,
    /// When a long or best-effort flow chooses: `at-threshold`, when the queue of its port has
    /// reached its threshold; `packet`, for each packet the longest queue below the threshold.
    /// Source: LBT §4.1, §4.2 have the first; LBT Alg. 1, as printed, the second.
    pub long_choice: LongChoice,
    /// When a short flow chooses the shortest queue: `flow`, with its first packet; `packet`, with
    /// each. Source: LBT §1, §3 and §4.2 have the first; LBT Alg. 1, as printed, the second.
    pub short_choice: ShortChoice,
    /// The smallest threshold of long flows (size), in place of a smaller or negative one. Source:
    /// not in LBT; three packets, so that a flow that moves overtakes fewer than the three that
    /// make a fast retransmit (RFC 5681).
    pub least: Bytes,
    /// The largest threshold (size), in place of a larger or infinite one. Source: not in LBT; its
    /// buffer of 256 packets.
    pub most: Bytes,
    /// The threshold of best-effort flows is at least this many times that of long flows: 1 to
    /// 1,000. Source: LBT §5 says only that it is set bigger; 2 is the least whole number that
    /// makes it so. The page of LBT shows what it changes.
    pub ratio: u16,
    /// A flow that was silent for this long is a new one (time). Source: not in LBT; above the
    /// least retransmission timeout of 10 ms of datacenter transports.
    pub forget: Span,
    /// Entries of a switch's flow table: a power of two, 1 to 16,777,216. Source: not in LBT; as in
    /// `letflow`.
    pub entries: u32,
}

/// When a long or best-effort flow chooses its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LongChoice {
    /// When the queue of its port has reached its threshold.
    #[default]
    AtThreshold,
    /// With each packet.
    Packet,
}

/// When a short flow chooses its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShortChoice {
    /// With its first packet.
    #[default]
    Flow,
    /// With each packet.
    Packet,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            long_after: Bytes::from_kb(100),
            refresh: Span::from_us(500),
            window: Bytes::new(65_536),
            segment: Bytes::new(1_460),
            short_fct: None,
            long_choice: LongChoice::AtThreshold,
            short_choice: ShortChoice::Flow,
            least: Bytes::new(4_500),
            most: Bytes::new(384_000),
            ratio: 2,
            forget: Span::from_ms(20),
            entries: 1 << 16,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let check = |wrong: bool, key, found: &dyn ToString, allowed| {
            if wrong { Err(ParameterError { key, found: found.to_string(), allowed }) } else { Ok(()) }
        };
        let longer = "longer than nothing";
        let positive = "larger than nothing";
        check(self.refresh.is_zero(), "refresh", &self.refresh, longer)?;
        check(self.window.is_zero(), "window", &self.window, positive)?;
        check(self.segment.is_zero(), "segment", &self.segment, positive)?;
        let fct = self.short_fct.unwrap_or(Span::MAX);
        check(fct.is_zero(), "short_fct", &fct, longer)?;
        check(self.most < self.least, "most", &self.most, "at least `least`")?;
        check(!(1..=1_000).contains(&self.ratio), "ratio", &self.ratio, "1 to 1000")?;
        check(self.forget < self.refresh, "forget", &self.forget, "at least `refresh`")?;
        check_table_size(self.entries)
    }
}

/// Table entry of a flow. An entry that was never used is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The period in which its last packet passed.
    period: u32,
    /// Bytes of data that it sent.
    bytes: u32,
    /// One more than its port; zero if the entry is unused.
    port: u32,
}

impl Entry {
    const BYTES: u64 = 12;

    fn port(self) -> Option<PortId> {
        self.port.checked_sub(1).map(|port| PortId(port as u16))
    }
}

/// LBT at one switch.
#[derive(Debug, Clone)]
pub struct Lbt {
    /// Entries as three numbers each, so that a table that no flow touches is never written.
    entries: Box<[[u32; 3]]>,
    mask: u64,
    seed: u64,
    long_after: u32,
    /// Periods of silence after which a flow is a new one.
    forget: u32,
    long_choice: LongChoice,
    short_choice: ShortChoice,
    refresh: Span,
    /// The ports whose load counts: those away from the hosts.
    uplinks: Box<[PortId]>,
    /// The model without its paths and their rate.
    model: Model,
    bounds: Bounds,
    /// The number of the period, from 0.
    period: u32,
    load: Tally,
    /// The thresholds of long and of best-effort flows (bytes).
    thresholds: [u64; 2],
    counts: Counts,
}

/// Flows and bytes of this period: of short, long and best-effort flows.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    flows: [u32; 3],
    bytes: [u64; 3],
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    moves: [u64; 2],
    overflows: u64,
    refreshes: u64,
    raised: u64,
}

/// The places of the classes in a [`Tally`].
const SHORT: usize = 0;
const LONG: usize = 1;
const BEST_EFFORT: usize = 2;

impl Tally {
    fn class(&self, class: usize) -> ClassLoad {
        ClassLoad { flows: self.flows[class].into(), bytes: self.bytes[class] as f64 }
    }

    fn load(&self) -> Load {
        Load { short: self.class(SHORT), long: self.class(LONG), best_effort: self.class(BEST_EFFORT) }
    }
}

/// The ports towards switches further from the hosts; those towards any switch if there is none.
fn uplinks(info: &SwitchInfo<'_>) -> Box<[PortId]> {
    let towards = |least: u8| -> Box<[PortId]> {
        let is_one = |peer: &Peer| matches!(peer, Peer::Switch { tier, .. } if *tier >= least);
        let ports = info.port_peers.iter().enumerate().filter(|(_, peer)| is_one(peer));
        ports.map(|(port, _)| PortId(port as u16)).collect()
    };
    let up = towards(info.tier.saturating_add(1));
    if up.is_empty() { towards(0) } else { up }
}

/// The index of the shortest queue. Of equally short ones, the first from a random place on, so
/// that switches that start empty do not all begin at one spine; `current` before any other.
fn shortest<C: SwitchContext + ?Sized>(
    cx: &mut C,
    packet: &Packet,
    hops: &NextHops<'_>,
    current: Option<usize>,
) -> usize {
    let count = hops.ports.len();
    let start = cx.random().below(count as u32) as usize;
    let places = current.into_iter().chain(start..count).chain(0..start);
    places.min_by_key(|&index| cx.backlog_bytes_for(hops.ports[index], packet)).unwrap_or(0)
}

/// Where a packet goes that chooses, and whether no queue is below the threshold.
///
/// The longest queue below the threshold, else the longest (LBT Alg. 1). Of equally long ones, the
/// first from a random place on; `current` before any other.
fn longest<C: SwitchContext + ?Sized>(
    cx: &mut C,
    packet: &Packet,
    hops: &NextHops<'_>,
    current: Option<usize>,
    threshold: u64,
) -> (usize, bool) {
    let count = hops.ports.len();
    let start = cx.random().below(count as u32) as usize;
    let mut within: Option<(u64, usize)> = None;
    let mut any: Option<(u64, usize)> = None;
    for index in current.into_iter().chain(start..count).chain(0..start) {
        let backlog = cx.backlog_bytes_for(hops.ports[index], packet);
        if backlog < threshold && within.is_none_or(|(best, _)| backlog > best) {
            within = Some((backlog, index));
        }
        if any.is_none_or(|(best, _)| backlog > best) {
            any = Some((backlog, index));
        }
    }
    (within.or(any).map_or(start, |(_, index)| index), within.is_none())
}

impl Lbt {
    /// The flow's entry, empty if it was silent for too long.
    #[inline]
    fn entry(&self, place: usize) -> Entry {
        let [period, bytes, port] = self.entries[place];
        if port == 0 || self.period.wrapping_sub(period) > self.forget {
            return Entry { period: self.period, bytes: 0, port: 0 };
        }
        Entry { period, bytes, port }
    }

    /// The class of a flow that has sent these bytes: best effort is known beforehand; long is what
    /// has sent more than 100 KB (LBT §5).
    #[inline]
    fn class(&self, bytes: u32, packet: &Packet) -> usize {
        match packet.flags.class() {
            Class::BestEffort => BEST_EFFORT,
            _ if bytes > self.long_after => LONG,
            _ => SHORT,
        }
    }

    /// Where a packet's flow has its entry.
    #[inline]
    fn place(&self, packet: &Packet) -> usize {
        (mix64(self.seed ^ u64::from(packet.entropy)) & self.mask) as usize
    }

    /// Counts a data packet to its flow and to the load, and says of which class it is.
    #[inline]
    fn count(&mut self, entry: &mut Entry, packet: &Packet) -> usize {
        let before = entry.bytes;
        entry.bytes = before.saturating_add(packet.wire_bytes.into());
        let class = self.class(entry.bytes, packet);
        let is_first = before == 0 || entry.period != self.period;
        self.load.flows[class] += u32::from(is_first);
        if !is_first && class == LONG && before <= self.long_after {
            // Counted as short before, in this period.
            self.load.flows[SHORT] = self.load.flows[SHORT].saturating_sub(1);
            self.load.flows[LONG] += 1;
        }
        self.load.bytes[class] += u64::from(packet.wire_bytes);
        class
    }

    /// Where a packet of a long or best-effort flow goes (LBT §4.2).
    #[inline]
    fn under_threshold<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &Packet,
        hops: &NextHops<'_>,
        current: Option<usize>,
        class: usize,
    ) -> usize {
        let threshold = self.thresholds[class - LONG];
        if self.long_choice == LongChoice::AtThreshold
            && let Some(index) = current
            && cx.backlog_bytes_for(hops.ports[index], packet) < threshold
        {
            return index;
        }
        let (index, overflow) = longest(cx, packet, hops, current, threshold);
        self.counts.overflows += u64::from(overflow);
        self.counts.moves[class - LONG] += u64::from(current.is_some_and(|current| current != index));
        index
    }
}

impl SwitchScheme for Lbt {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks { timers: true, ..SwitchHooks::NONE };

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let bounds =
            Bounds { least: params.least.as_u64(), most: params.most.as_u64(), ratio: params.ratio.into() };
        Self {
            entries: vec![[0; 3]; params.entries as usize].into_boxed_slice(),
            mask: u64::from(params.entries) - 1,
            seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
            long_after: u32::try_from(params.long_after.as_u64()).unwrap_or(u32::MAX),
            forget: u32::try_from(params.forget.as_ps().div_ceil(params.refresh.as_ps())).unwrap_or(u32::MAX),
            long_choice: params.long_choice,
            short_choice: params.short_choice,
            refresh: params.refresh,
            uplinks: uplinks(info),
            model: Model {
                paths: 0.0,
                rate: 0.0,
                period_s: params.refresh.as_s(),
                window_bytes: params.window.as_u64() as f64,
                segment_bytes: params.segment.as_u64() as f64,
                short_fct_s: params.short_fct.map(Span::as_s),
            },
            bounds,
            period: 0,
            load: Tally::default(),
            // As after a period without load.
            thresholds: [bounds.least, bounds.least.saturating_mul(bounds.ratio).min(bounds.most)],
            counts: Counts::default(),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        let place = self.place(packet);
        let mut entry = self.entry(place);
        let current = entry.port().and_then(|port| hops.index_of(port));
        let class = if packet.kind == Kind::Data { self.count(&mut entry, packet) } else { SHORT };
        let index = match (class, current) {
            (SHORT, Some(index)) if self.short_choice == ShortChoice::Flow => index,
            (SHORT, _) => shortest(cx, packet, hops, current),
            _ => self.under_threshold(cx, packet, hops, current, class),
        };
        self.entries[place] = [self.period, entry.bytes, u32::from(hops.ports[index].0) + 1];
        index
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let entry = self.entry(self.place(packet));
        let current = entry.port().filter(|&port| hops.index_of(port).is_some());
        let is_data = packet.kind == Kind::Data;
        let class = if is_data {
            self.class(entry.bytes.saturating_add(packet.wire_bytes.into()), packet)
        } else {
            SHORT
        };
        if class == SHORT {
            let stays = current.is_some() && self.short_choice == ShortChoice::Flow;
            let rule = if stays { "stays on its port" } else { "takes the shortest queue" };
            return Some(format!("a short flow {rule}"));
        }
        let (whose, threshold) = (["long", "best-effort"][class - LONG], self.thresholds[class - LONG]);
        let backlog =
            current.map(|port| cx.backlog_bytes_for(port, packet)).filter(|backlog| *backlog < threshold);
        Some(match backlog {
            Some(backlog) if self.long_choice == LongChoice::AtThreshold => {
                format!(
                    "a {whose} flow stays: its queue of {backlog} B is below the threshold of {threshold} B"
                )
            }
            _ => format!(
                "a {whose} flow takes the longest queue below the threshold of {threshold} B, else the longest"
            ),
        })
    }

    /// A switch with one way at most has nothing to measure for.
    fn start<C: SwitchContext + ?Sized>(&mut self, cx: &mut C) {
        if self.uplinks.len() > 1 {
            cx.set_timer(self.refresh, 0);
        }
    }

    /// A period is over: thresholds from its load (LBT §4.1).
    fn on_timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        cx.set_timer(self.refresh, token);
        let live = self.uplinks.iter().filter(|&&port| cx.is_up(port));
        let (paths, bps) = live
            .fold((0u32, 0u128), |(paths, bps), &port| (paths + 1, bps + u128::from(cx.rate(port).as_bps())));
        if bps > 0 {
            let rate = bps as f64 / 8.0 / f64::from(paths);
            let model = Model { paths: paths.into(), rate, ..self.model };
            self.thresholds = self.bounds.apply(model.thresholds(&self.load.load()));
        }
        self.counts.refreshes += 1;
        self.counts.raised += u64::from(self.thresholds[0] > self.bounds.least);
        self.load = Tally::default();
        self.period = self.period.wrapping_add(1);
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("hash_seed", 0, self.seed);
        set("entries", 0, self.entries.len() as u64);
        set("long_after", 0, self.long_after.into());
        set("forget", 0, self.forget.into());
        set("is_long_by_packet", 0, u64::from(self.long_choice == LongChoice::Packet));
        set("is_short_by_packet", 0, u64::from(self.short_choice == ShortChoice::Packet));
        set("period", 0, self.period.into());
        set("threshold", 0, self.thresholds[0]);
        set("threshold", 1, self.thresholds[1]);
    }

    /// Twelve bytes an entry; three counts of 4 bytes and three of 8; two thresholds of 4 bytes,
    /// and the period.
    fn state_bytes(&self) -> u64 {
        self.entries.len() as u64 * Entry::BYTES + 48
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("long_moves", self.counts.moves[0]);
        count("best_effort_moves", self.counts.moves[1]);
        count("overflows", self.counts.overflows);
        count("refreshes", self.counts.refreshes);
        count("refreshes_raised", self.counts.raised);
    }
}

#[cfg(test)]
mod tests;
