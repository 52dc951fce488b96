//! Congestion metrics: measured at links, noted and reported by leaves.

use weft_units::{Rate, Time};

use super::params::{Falls, MetricLimit, Params, ReportsFirst};
use crate::PortId;

/// X, and the number of the period in which it was brought up to date.
pub type Register = (f64, u64);

/// The discounting rate estimators of a switch's ports (§3.2). Register X grows by each packet's
/// bytes, and falls by the factor 1 - alpha each `t_dre`; then X is about rate times tau, tau =
/// `t_dre` / alpha. It is brought up to date when it is read or written, which gives the values
/// that a periodic sweep would.
#[derive(Debug, Clone)]
pub struct Dre {
    registers: Box<[Register]>,
    /// (1 - alpha)^k for k = 0, 1, ...; beyond the end it is as good as zero.
    decay: Box<[f64]>,
    period_ps: u64,
    /// Levels times 8 bits over tau in seconds: times X over the rate in bit/s, a metric.
    scale: f64,
    top: u8,
}

impl Dre {
    /// Idle ports.
    pub fn new(params: &Params, ports: usize) -> Self {
        let Params { t_dre, alpha, metric_bits, .. } = *params;
        let powers = std::iter::successors(Some(1.0), |power| Some(power * (1.0 - alpha)));
        let levels = 1u16 << metric_bits;
        Self {
            registers: vec![(0.0, 0); ports].into_boxed_slice(),
            decay: powers.take_while(|&power| power > 1e-7).collect(),
            period_ps: t_dre.as_ps(),
            scale: f64::from(levels) * 8.0 * alpha * 1e12 / t_dre.as_ps() as f64,
            top: match params.metric_limit {
                MetricLimit::Bits => (levels - 1) as u8,
                MetricLimit::None => u8::MAX,
            },
        }
    }

    /// A packet goes onto the link.
    #[inline]
    pub fn add(&mut self, port: PortId, now: Time, wire_bytes: u16) {
        self.update(port, now);
        self.registers[port.index()].0 += f64::from(wire_bytes);
    }

    /// X / (C tau) in steps of 2^-Q, rounded down, at most the largest that Q bits hold (§3.2), or
    /// a byte if there is no limit.
    #[inline]
    pub fn metric(&mut self, port: PortId, now: Time, capacity: Rate) -> u8 {
        self.update(port, now);
        self.level(self.registers[port.index()], capacity)
    }

    /// A port's register as it is.
    pub fn register(&self, port: PortId) -> Register {
        self.registers[port.index()]
    }

    /// The metric that a register has at a time, if nothing more comes.
    pub fn metric_of(&self, mut register: Register, then: Time, capacity: Rate) -> u8 {
        self.decay(&mut register, then);
        self.level(register, capacity)
    }

    #[inline]
    fn level(&self, (x, _): Register, capacity: Rate) -> u8 {
        let level = x * self.scale / capacity.as_bps() as f64;
        (level as u32).min(u32::from(self.top)) as u8
    }

    #[inline]
    fn update(&mut self, port: PortId, now: Time) {
        let mut register = self.registers[port.index()];
        self.decay(&mut register, now);
        self.registers[port.index()] = register;
    }

    #[inline]
    fn decay(&self, (x, last): &mut Register, now: Time) {
        let period = now.as_ps() / self.period_ps;
        if period != *last {
            *x *= self.decay.get((period - *last) as usize).copied().unwrap_or(0.0);
            *last = period;
        }
    }

    /// Eight bytes a port: hardware needs no number of the period.
    pub fn state_bytes(&self) -> u64 {
        self.registers.len() as u64 * 8
    }
}

/// A table of metrics by rack and `LBTag`, which age (§3.3).
///
/// An entry holds the time of its last renewal in ticks of 1,024 ps, then eight bits for the last
/// value reported, then eight for the metric.
#[derive(Debug, Clone)]
struct Metrics {
    entries: Box<[u64]>,
    tags: usize,
    aging: u64,
    levels: u64,
    falls: Falls,
}

impl Metrics {
    const TICK_BITS: u32 = 10;
    const TIME_SHIFT: u32 = 16;
    const REPORTED_SHIFT: u32 = 8;

    fn new(racks: u16, tags: usize, params: &Params) -> Self {
        Self {
            entries: vec![0; usize::from(racks) * tags].into_boxed_slice(),
            tags,
            aging: params.aging.as_ps() >> Self::TICK_BITS,
            levels: 1 << params.metric_bits,
            falls: params.falls,
        }
    }

    /// The entry, if the table has a place for the tag.
    #[inline]
    fn entry(&mut self, rack: u16, tag: u8) -> Option<&mut u64> {
        let tag = usize::from(tag);
        (tag < self.tags).then(|| &mut self.entries[usize::from(rack) * self.tags + tag])
    }

    fn age(entry: u64, now: Time) -> u64 {
        (now.as_ps() >> Self::TICK_BITS).saturating_sub(entry >> Self::TIME_SHIFT)
    }

    /// The metric, aged: whole until `aging` after its renewal, then zero at once, or a level less
    /// each 2^-Q of `aging`, so that what Q bits hold is zero after twice that.
    #[inline]
    fn aged(&self, rack: u16, tag: u8, now: Time) -> u8 {
        let entry = self.entries[usize::from(rack) * self.tags + usize::from(tag)];
        let metric = entry as u8;
        let age = Self::age(entry, now);
        if metric == 0 || age <= self.aging {
            return metric;
        }
        if self.falls == Falls::AtOnce {
            return 0;
        }
        let lost = (age - self.aging).saturating_mul(self.levels) / self.aging;
        u64::from(metric).saturating_sub(lost) as u8
    }
}

/// Congestion-To-Leaf: what far leaves report of the paths from this leaf's uplinks.
#[derive(Debug, Clone)]
pub struct ToLeaf(Metrics);

impl ToLeaf {
    /// Nothing is known: all paths are idle.
    pub fn new(racks: u16, tags: usize, params: &Params) -> Self {
        Self(Metrics::new(racks, tags, params))
    }

    /// The leaf of `rack` reports the metric of the path from the uplink `tag`.
    #[inline]
    pub fn set(&mut self, rack: u16, tag: u8, metric: u8, now: Time) {
        if let Some(entry) = self.0.entry(rack, tag) {
            *entry = now.as_ps() >> Metrics::TICK_BITS << Metrics::TIME_SHIFT | u64::from(metric);
        }
    }

    /// The metric of the path from the uplink `tag`, which this leaf has, to `rack`.
    #[inline]
    pub fn get(&self, rack: u16, tag: u8, now: Time) -> u8 {
        self.0.aged(rack, tag, now)
    }

    /// Eight bytes an entry.
    pub fn state_bytes(&self) -> u64 {
        self.0.entries.len() as u64 * 8
    }
}

/// Congestion-From-Leaf: what packets collected on their paths to this leaf, to be reported to the
/// leaves that they came from.
#[derive(Debug, Clone)]
pub struct FromLeaf {
    metrics: Metrics,
    first: ReportsFirst,
    rows: Box<[Row]>,
}

/// Reports due to one leaf: a bit for each tag.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    known: u64,
    /// Differs from what was last reported, or never was; or was renewed since.
    changed: u64,
    /// The tag whose turn it is.
    next: u8,
}

impl FromLeaf {
    /// Nothing has come yet.
    pub fn new(racks: u16, tags: usize, params: &Params) -> Self {
        Self {
            metrics: Metrics::new(racks, tags, params),
            first: params.reports_first,
            rows: vec![Row::default(); usize::from(racks)].into_boxed_slice(),
        }
    }

    /// A packet from `rack`, by the uplink `tag` there, collected this metric. A tag beyond the
    /// table is not noted.
    #[inline]
    pub fn note(&mut self, rack: u16, tag: u8, metric: u8, now: Time) {
        let Some(entry) = self.metrics.entry(rack, tag) else { return };
        let reported = *entry >> Metrics::REPORTED_SHIFT & 0xff;
        let time = now.as_ps() >> Metrics::TICK_BITS;
        *entry = time << Metrics::TIME_SHIFT | reported << Metrics::REPORTED_SHIFT | u64::from(metric);
        let (row, bit) = (&mut self.rows[usize::from(rack)], 1 << tag);
        let changed =
            self.first == ReportsFirst::Renewed || row.known & bit == 0 || u64::from(metric) != reported;
        row.known |= bit;
        row.changed = row.changed & !bit | if changed { bit } else { 0 };
    }

    /// Next report to `rack`: the next tag in turn among those that changed, else among all that
    /// are known (§3.3).
    #[inline]
    pub fn report(&mut self, rack: u16, now: Time) -> Option<(u8, u8)> {
        if self.metrics.falls == Falls::AtOnce {
            self.forget_old(rack, now);
        }
        let row = &mut self.rows[usize::from(rack)];
        let among = if row.changed == 0 { row.known } else { row.changed };
        if among == 0 {
            return None;
        }
        let ahead = among.rotate_right(row.next.into()).trailing_zeros() as u8;
        let tag = (row.next + ahead) % 64;
        row.next = (tag + 1) % 64;
        row.changed &= !(1 << tag);
        let metric = self.metrics.aged(rack, tag, now);
        if let Some(entry) = self.metrics.entry(rack, tag) {
            *entry =
                *entry & !(0xff << Metrics::REPORTED_SHIFT) | u64::from(metric) << Metrics::REPORTED_SHIFT;
        }
        Some((tag, metric))
    }

    /// Stops reports of metrics that fall to zero at once: the leaf that they are for knows as well
    /// how old they are.
    fn forget_old(&mut self, rack: u16, now: Time) {
        let row = &mut self.rows[usize::from(rack)];
        let mut rest = row.known;
        while rest != 0 {
            let tag = rest.trailing_zeros() as usize;
            let entry = self.metrics.entries[usize::from(rack) * self.metrics.tags + tag];
            if Metrics::age(entry, now) > self.metrics.aging {
                row.known &= !(1 << tag);
                row.changed &= !(1 << tag);
            }
            rest &= rest - 1;
        }
    }

    /// Eight bytes an entry, and three words a rack.
    pub fn state_bytes(&self) -> u64 {
        self.metrics.entries.len() as u64 * 8 + self.rows.len() as u64 * 17
    }
}
