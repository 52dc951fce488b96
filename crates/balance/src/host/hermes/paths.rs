//! Paths of a host: their estimates, their classes (Hermes Alg. 1), and the choice among them
//! (Hermes Alg. 2).

use weft_units::{Span, Stream, Time};

use super::failures::Losses;
use super::meter::{Decay, Meter, power};
use super::params::{Params, Prefers, Thresholds};

/// How a path looks (Hermes Alg. 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A short round trip and few marks.
    Good,
    /// Neither good nor bad, or nothing is known.
    Grey,
    /// A long round trip and many marks.
    Bad,
    /// A blackhole, or drops at random.
    Failed,
}

/// The rules that class paths, from the parameters.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    ecn: bool,
    ecn_threshold: f64,
    delta_rtt_ps: f64,
    delta_ecn: f64,
    aging_ps: u64,
    /// Round trip that old estimates tend to, if it is not midway between the thresholds.
    aged_ps: Option<f64>,
    prefers: Prefers,
    leaves_for_bad: bool,
    window: Span,
    retransmitted: f64,
    failed_for: Span,
}

impl Rules {
    pub fn new(params: &Params) -> Self {
        Self {
            ecn: params.ecn,
            ecn_threshold: params.ecn_threshold,
            delta_rtt_ps: params.delta_rtt().as_ps() as f64,
            delta_ecn: params.delta_ecn,
            aging_ps: params.aging.as_ps(),
            aged_ps: params.aged_rtt.map(|aged| aged.as_ps() as f64),
            prefers: params.prefers,
            leaves_for_bad: params.leaves_for_bad,
            window: params.window,
            retransmitted: params.retransmitted,
            failed_for: params.failed_for,
        }
    }

    /// Hermes Alg. 1 lines 2 to 7.
    #[inline]
    fn class(&self, state: State, limits: Thresholds) -> Class {
        let few = !self.ecn || state.ecn < self.ecn_threshold;
        let many = !self.ecn || state.ecn > self.ecn_threshold;
        if few && state.rtt_ps < limits.low.as_ps() as f64 {
            Class::Good
        } else if many && state.rtt_ps > limits.high.as_ps() as f64 {
            Class::Bad
        } else {
            Class::Grey
        }
    }

    /// Whether a path is notably better than another one: by more than both deltas (§3.2).
    fn notably_better(&self, new: State, old: State) -> bool {
        old.rtt_ps - new.rtt_ps > self.delta_rtt_ps && (!self.ecn || old.ecn - new.ecn > self.delta_ecn)
    }
}

/// A path as it looks at a time.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Round trip, in picoseconds.
    rtt_ps: f64,
    /// Share of marked packets.
    ecn: f64,
}

/// One path to one rack.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    measured: State,
    /// When a measure last came, if ever.
    renewed: Option<Time>,
    meter: Meter,
    losses: Losses,
    failed_until: Time,
}

impl Path {
    /// Weight of the last estimate beside a new round trip. Source: the authors' simulator.
    const SMOOTH_RTT: f64 = 0.5;
    /// Weight of the last share of marks beside a new packet: DCTCP's 1 - g.
    const SMOOTH_ECN: f64 = 15.0 / 16.0;
    /// Factor on the weight of an estimate each time `aging` passes. Source: the authors'
    /// simulator.
    const KEPT: f64 = 0.99;

    /// Nothing is known of it.
    pub fn new() -> Self {
        Self {
            measured: State { rtt_ps: 0.0, ecn: 0.0 },
            renewed: None,
            meter: Meter::default(),
            losses: Losses::default(),
            failed_until: Time::ZERO,
        }
    }

    /// Weight of an estimate: 1 when it is new, 0 if there is none.
    #[inline]
    fn weight(&self, rules: &Rules, now: Time) -> f64 {
        self.renewed.map_or(0.0, |renewed| {
            let age = now.since(renewed).as_ps();
            if age < rules.aging_ps { 1.0 } else { power(Self::KEPT, age / rules.aging_ps) }
        })
    }

    /// A packet took it and this round trip, and was marked or not. What is old counts less beside
    /// it.
    #[inline]
    pub fn learn(&mut self, rules: &Rules, now: Time, rtt: Span, marked: bool) {
        let weight = self.weight(rules, now);
        let blend = |old: f64, new: f64, kept: f64| new + (old - new) * kept * weight;
        self.measured = State {
            rtt_ps: blend(self.measured.rtt_ps, rtt.as_ps() as f64, Self::SMOOTH_RTT),
            ecn: blend(self.measured.ecn, f64::from(u8::from(marked)), Self::SMOOTH_ECN),
        };
        self.renewed = Some(now);
    }

    /// State of the path, drawn towards grey as it ages: midway between the thresholds, if nothing
    /// else is given, no marks.
    fn state(&self, rules: &Rules, limits: Thresholds, now: Time) -> State {
        let weight = self.weight(rules, now);
        let middle = rules.aged_ps.unwrap_or_else(|| (limits.low + limits.high).as_ps() as f64 / 2.0);
        State { rtt_ps: middle + (self.measured.rtt_ps - middle) * weight, ecn: self.measured.ecn * weight }
    }

    /// Hermes Alg. 1, without what is known of one pair of hosts alone.
    pub fn class(&self, rules: &Rules, limits: Thresholds, now: Time) -> Class {
        if self.drops(now) { Class::Failed } else { rules.class(self.state(rules, limits, now), limits) }
    }

    /// Whether it is bad now. Cheap where it is not: a path that was not bad when it was measured
    /// is not by aging.
    #[inline]
    pub fn is_bad(&self, rules: &Rules, limits: Thresholds, now: Time) -> bool {
        rules.class(self.measured, limits) == Class::Bad && self.class(rules, limits, now) == Class::Bad
    }

    /// Whether it drops at random (Hermes Alg. 1 line 8, second half).
    #[inline]
    pub fn drops(&self, now: Time) -> bool {
        now < self.failed_until
    }

    /// A packet goes out by it, perhaps again. True if the path is found to drop at random: too
    /// much was sent again in the window that is over, and it is not bad (§3.1). What is sent again
    /// while it is bad was lost to congestion: at the end of the window that may be over.
    #[inline]
    pub fn send(&mut self, rules: &Rules, limits: Thresholds, now: Time, again: bool) -> bool {
        let found = self.losses.is_over(now) && self.judge(rules, limits, now);
        self.losses.count(again && !self.is_bad(rules, limits, now));
        found
    }

    fn judge(&mut self, rules: &Rules, limits: Thresholds, now: Time) -> bool {
        let lossy = self.losses.renew(now, rules.window, rules.retransmitted);
        let found = lossy && rules.class(self.state(rules, limits, now), limits) != Class::Bad;
        if found {
            self.failed_until = now.saturating_add(rules.failed_for);
        }
        found
    }

    /// A flow timed out on it.
    pub fn time_out(&mut self) {
        self.losses.count_timeout();
    }

    /// So many bytes went out by it.
    #[inline]
    pub fn meter(&mut self, decay: &Decay, period: u64, bytes: u16) {
        self.meter.add(decay, period, bytes);
    }

    /// Bytes in the estimator of all outgoing packets of the path.
    pub fn held(&self, decay: &Decay, period: u64) -> f64 {
        self.meter.read(decay, period)
    }
}

/// Inputs of a choice among the paths to one rack.
pub struct Chooser<'a> {
    pub rules: &'a Rules,
    pub limits: Thresholds,
    pub decay: &'a Decay,
    pub now: Time,
    pub paths: &'a [Path],
    /// How many flows of the host each has; empty where that does not matter.
    pub flows: &'a [u32],
}

impl Chooser<'_> {
    /// A class of round trips, and the last one, which has no end. Source: the authors' simulator.
    const LEVEL_PS: f64 = 10e6;
    const LAST_LEVEL: f64 = 4.0;

    /// For a new flow, one that timed out, or one whose path failed (Hermes Alg. 2 lines 3 to 12):
    /// the preferred good path, else the grey one, else any that has not failed, and how that
    /// looked. `None` if all failed.
    pub fn place(&self, swallows: impl Fn(u16) -> bool, random: &mut Stream) -> Option<(u16, Class)> {
        let (mut good, mut grey, mut bad) = (Pick::default(), Pick::default(), Pick::default());
        for (label, path, rank) in self.offers() {
            match self.class(label, path, &swallows) {
                Class::Good => good.offer(label, rank, random),
                Class::Grey => grey.offer(label, rank, random),
                // One is as likely as any other.
                Class::Bad => bad.offer(label, 0.0, random),
                Class::Failed => {}
            }
        }
        let classed = |pick: Pick, class| pick.label.map(|label| (label, class));
        classed(good, Class::Good).or(classed(grey, Class::Grey)).or(classed(bad, Class::Bad))
    }

    /// For a flow that may leave its bad path (Hermes Alg. 2 lines 14 to 23): the preferred good
    /// path, else the grey one, of those that are notably better; else perhaps the first bad one of
    /// them. `None` if there is none.
    pub fn leave(&self, from: u16, swallows: impl Fn(u16) -> bool, random: &mut Stream) -> Option<u16> {
        let here = self.paths[usize::from(from)].state(self.rules, self.limits, self.now);
        let (mut good, mut grey, mut bad) = (Pick::default(), Pick::default(), None);
        for (label, path, rank) in self.offers() {
            if !self.rules.notably_better(path.state(self.rules, self.limits, self.now), here) {
                continue;
            }
            match self.class(label, path, &swallows) {
                Class::Good => good.offer(label, rank, random),
                Class::Grey => grey.offer(label, rank, random),
                Class::Bad if self.rules.leaves_for_bad => bad = bad.or(Some(label)),
                Class::Bad | Class::Failed => {}
            }
        }
        good.label.or(grey.label).or(bad)
    }

    /// Hermes Alg. 1, for a pair of hosts.
    fn class(&self, label: u16, path: &Path, swallows: impl Fn(u16) -> bool) -> Class {
        if swallows(label) { Class::Failed } else { path.class(self.rules, self.limits, self.now) }
    }

    /// The paths with their labels and what is to be least.
    fn offers(&self) -> impl Iterator<Item = (u16, &Path, f64)> {
        let period = self.decay.period(self.now);
        (0..).zip(self.paths).map(move |(label, path)| {
            let rank = match self.rules.prefers {
                Prefers::LeastRate => path.meter.read(self.decay, period),
                Prefers::FewestFlows => self.fewness(label, path),
            };
            (label, path, rank)
        })
    }

    /// First the class of the round trip, above `T_RTT_low`, then the number of flows: both are
    /// exact in one number.
    fn fewness(&self, label: u16, path: &Path) -> f64 {
        let above = path.state(self.rules, self.limits, self.now).rtt_ps - self.limits.low.as_ps() as f64;
        let level = ((above / Self::LEVEL_PS).ceil() - 1.0).clamp(0.0, Self::LAST_LEVEL);
        let flows = self.flows.get(usize::from(label)).copied().unwrap_or_default();
        level * 4_294_967_296.0 + f64::from(flows)
    }
}

/// The least of what is offered, each of several equal ones as likely as the others.
#[derive(Debug, Clone, Copy, Default)]
struct Pick {
    label: Option<u16>,
    rank: f64,
    equals: u32,
}

impl Pick {
    fn offer(&mut self, label: u16, rank: f64, random: &mut Stream) {
        if self.label.is_none() || rank < self.rank {
            *self = Self { label: Some(label), rank, equals: 1 };
        } else if rank <= self.rank {
            self.equals += 1;
            if random.below(self.equals) == 0 {
                self.label = Some(label);
            }
        }
    }
}

#[cfg(test)]
mod tests;
