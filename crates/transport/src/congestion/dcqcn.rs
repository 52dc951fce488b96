//! DCQCN: the rate of a sender that is told of congestion by notifications (Zhu et al., SIGCOMM
//! 2015).
//!
//! A flow begins at the rate of its cable. A notification (CNP) cuts the rate by half of `alpha`,
//! which says how often there are notifications; a timer and a counter of bytes raise it again, in
//! three phases (fast recovery, additive and hyper increase).
//!
//! Nothing of this needs an event of its own: what timers would have done until now is done when
//! the next packet is to be sent or a notification comes, in the order in which they would have
//! expired.
//!
//! Cards that are sold do two things otherwise than the paper, which [`Reaction::Periodic`] stands
//! for: `alpha` is updated every period whether a notification came or not, and the rate is cut at
//! most once every `decrease_interval`. And the target stays where it was if nothing was raised
//! since the last cut.

use weft_units::{PicosPerByte, Span, Time};

/// When a notification is acted upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// At once (DCQCN §3.1, Fig. 7).
    AtOnce,
    /// At the next end of a period; `alpha` has periods of its own.
    Periodic {
        /// From one possible cut to the next.
        decrease_interval: Span,
    },
}

/// Checked parameters, for all flows. Rates in bit/s.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub reaction: Reaction,
    /// How much one notification counts in `alpha`.
    pub g: f64,
    /// `alpha` falls if none came for so long.
    pub alpha_timer: Span,
    pub rate_timer: Span,
    /// Zero: bytes are not counted.
    pub byte_counter: u64,
    /// Increases that are fast recovery.
    pub fast_recovery: u32,
    pub ai: f64,
    pub hai: f64,
    pub min_rate: f64,
}

/// The rate of one flow. As long as no notification came it is that of the cable, and nothing is
/// kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dcqcn {
    limited: Option<Box<Limited>>,
}

/// A rate that was cut.
#[derive(Debug, Clone)]
struct Limited {
    /// Rate of the cable, in bit/s.
    line: f64,
    rate: f64,
    target: f64,
    alpha: f64,
    /// When `alpha` is updated next, when the rate may be cut next, and when the timer raises it
    /// next.
    alpha_at: Time,
    check_at: Time,
    raise_at: Time,
    /// Expired timers and full counters since the last cut.
    timers: u32,
    counters: u32,
    /// Bytes towards the next full counter.
    bytes: u64,
    /// Notifications since `alpha` was updated last, and since the rate might have been cut last.
    is_told: bool,
    is_to_cut: bool,
    has_raised: bool,
    /// When the last packet began to be sent, and its size on the wire.
    last: (Time, u16),
}

/// The rate of a cable, in bit/s.
pub(crate) fn line_rate(pace: PicosPerByte) -> f64 {
    // Exact for all rates that a fabric has: 2^20 bytes are timed to a picosecond.
    const BYTES: u64 = 1 << 20;
    BYTES as f64 * 8e12 / pace.service_of(weft_units::Bytes::new(BYTES)).as_ps() as f64
}

/// `base` to the power of `count`, by multiplications alone: the same on every machine.
fn power(mut base: f64, mut count: u64) -> f64 {
    let mut product = 1.0;
    while count > 0 {
        if count & 1 == 1 {
            product *= base;
        }
        base *= base;
        count >>= 1;
    }
    product
}

/// How many periods end at `next` and later, until `now`.
const fn periods(next: Time, now: Time, period: Span) -> u64 {
    match now.checked_since(next) {
        Some(since) => since.as_ps() / period.as_ps() + 1,
        None => 0,
    }
}

impl Dcqcn {
    /// The rate now, in bit/s; none as long as it is that of the cable.
    #[cfg(test)]
    fn rate(&mut self, rules: &Rules, now: Time) -> Option<f64> {
        let limited = self.limited.as_mut()?;
        limited.catch_up(rules, now);
        Some(limited.rate)
    }

    /// When the next packet may be sent: as long after the last one as that takes at the rate now.
    #[inline]
    pub fn gate(&mut self, rules: &Rules, now: Time) -> Time {
        match &mut self.limited {
            Some(limited) => limited.gate(rules, now),
            None => now,
        }
    }

    /// [`Self::gate`] for observers, without a change: two steps round differently from one.
    #[cold]
    pub fn gate_seen(&self, rules: &Rules, now: Time) -> Time {
        self.clone().gate(rules, now)
    }

    /// A packet is sent now.
    #[inline]
    pub fn sent(&mut self, rules: &Rules, wire_bytes: u16, now: Time) {
        if let Some(limited) = &mut self.limited {
            limited.sent(rules, wire_bytes, now);
        }
    }

    /// A notification came to a flow whose cable has this pace.
    pub fn notified(&mut self, rules: &Rules, pace: PicosPerByte, now: Time) {
        let limited = self.limited.get_or_insert_with(|| Box::new(Limited::new(rules, pace, now)));
        limited.catch_up(rules, now);
        match rules.reaction {
            Reaction::AtOnce => {
                limited.cut(rules, now);
                limited.alpha = (1.0 - rules.g) * limited.alpha + rules.g;
                limited.alpha_at = now + rules.alpha_timer;
            }
            Reaction::Periodic { .. } => (limited.is_told, limited.is_to_cut) = (true, true),
        }
    }

    /// `alpha`, 1 as long as no notification came.
    #[cfg(test)]
    fn alpha(&self) -> f64 {
        self.limited.as_ref().map_or(1.0, |limited| limited.alpha)
    }
}

impl Limited {
    fn new(rules: &Rules, pace: PicosPerByte, now: Time) -> Self {
        let line = line_rate(pace);
        let check_at = match rules.reaction {
            Reaction::AtOnce => Time::NEVER,
            Reaction::Periodic { decrease_interval } => now + decrease_interval,
        };
        Self {
            line,
            rate: line,
            target: line,
            alpha: 1.0,
            alpha_at: now + rules.alpha_timer,
            check_at,
            raise_at: Time::NEVER,
            timers: 0,
            counters: 0,
            bytes: 0,
            is_told: false,
            is_to_cut: false,
            has_raised: true,
            last: (Time::ZERO, 0),
        }
    }

    fn gate(&mut self, rules: &Rules, now: Time) -> Time {
        self.catch_up(rules, now);
        if self.rate >= self.line {
            return now;
        }
        let (begun, bytes) = self.last;
        begun.saturating_add(Span::from_ps((f64::from(bytes) * 8e12 / self.rate) as u64))
    }

    fn sent(&mut self, rules: &Rules, wire_bytes: u16, now: Time) {
        self.last = (now, wire_bytes);
        if rules.byte_counter == 0 || self.raise_at == Time::NEVER {
            return;
        }
        self.bytes += u64::from(wire_bytes);
        while self.bytes >= rules.byte_counter {
            self.bytes -= rules.byte_counter;
            self.raise(rules);
            self.counters = self.counters.saturating_add(1);
        }
    }

    /// Does what timers would have done until now.
    fn catch_up(&mut self, rules: &Rules, now: Time) {
        loop {
            let cut_at = if self.is_to_cut { self.check_at } else { Time::NEVER };
            let at = cut_at.min(self.raise_at);
            if at > now {
                break;
            }
            self.update_alpha(rules, at);
            if at == cut_at {
                self.is_to_cut = false;
                self.cut(rules, at);
            } else if self.rate >= self.line {
                // Nothing is left to raise: the stages go on.
                let periods = periods(at, now, rules.rate_timer);
                self.timers = self.timers.saturating_add(periods.min(u64::from(u32::MAX)) as u32);
                self.raise_at = at.saturating_add(rules.rate_timer.saturating_mul(periods));
            } else {
                self.raise(rules);
                self.timers = self.timers.saturating_add(1);
                self.raise_at = at + rules.rate_timer;
            }
        }
        self.update_alpha(rules, now);
        if let Reaction::Periodic { decrease_interval } = rules.reaction {
            let periods = periods(self.check_at, now, decrease_interval);
            self.check_at = self.check_at.saturating_add(decrease_interval.saturating_mul(periods));
        }
    }

    /// The updates of `alpha` that are due until then (DCQCN Eq. 1 and 2).
    fn update_alpha(&mut self, rules: &Rules, until: Time) {
        let mut periods = periods(self.alpha_at, until, rules.alpha_timer);
        if periods == 0 {
            return;
        }
        self.alpha_at = self.alpha_at.saturating_add(rules.alpha_timer.saturating_mul(periods));
        if std::mem::take(&mut self.is_told) {
            self.alpha = (1.0 - rules.g) * self.alpha + rules.g;
            periods -= 1;
        }
        self.alpha *= power(1.0 - rules.g, periods);
    }

    /// Cuts the rate (DCQCN Eq. 1), and begins to raise it anew.
    fn cut(&mut self, rules: &Rules, now: Time) {
        if rules.reaction == Reaction::AtOnce || self.has_raised {
            self.target = self.rate;
        }
        self.has_raised = false;
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(rules.min_rate.min(self.line));
        (self.timers, self.counters, self.bytes) = (0, 0, 0);
        self.raise_at = now + rules.rate_timer;
    }

    /// A timer expired or a counter is full (DCQCN fig. 7).
    fn raise(&mut self, rules: &Rules) {
        let (most, least) = match rules.byte_counter {
            0 => (self.timers, self.timers),
            _ => (self.timers.max(self.counters), self.timers.min(self.counters)),
        };
        if least > rules.fast_recovery {
            self.target += rules.hai;
        } else if most >= rules.fast_recovery {
            self.target += rules.ai;
        }
        self.target = self.target.min(self.line);
        self.rate = f64::midpoint(self.rate, self.target);
        // Halves never arrive: within a millionth they have.
        if self.rate > self.line * (1.0 - 1e-6) {
            self.rate = self.line;
        }
        self.has_raised = true;
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Rate;

    use super::*;

    const GBPS: f64 = 1e9;

    fn paper() -> Rules {
        Rules {
            reaction: Reaction::AtOnce,
            g: 1.0 / 256.0,
            alpha_timer: Span::from_us(55),
            rate_timer: Span::from_us(55),
            byte_counter: 10_000_000,
            fast_recovery: 5,
            ai: 0.04 * GBPS,
            hai: 0.1 * GBPS,
            min_rate: 0.1 * GBPS,
        }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn pace() -> PicosPerByte {
        Rate::from_gbps(40).ps_per_byte()
    }

    /// The rate in Gbit/s.
    fn rate(dcqcn: &mut Dcqcn, rules: &Rules, us: u64) -> f64 {
        dcqcn.rate(rules, at(us)).map_or(40.0, |rate| rate / GBPS)
    }

    #[test]
    fn the_rates_of_cables_are_exact() {
        for gbps in [1, 10, 40, 100, 400, 800] {
            let line = line_rate(Rate::from_gbps(gbps).ps_per_byte());
            assert!((line / GBPS / gbps as f64 - 1.0).abs() < 1e-6, "{line}");
        }
    }

    #[test]
    fn a_flow_begins_at_the_rate_of_its_cable_and_the_first_notification_halves_it() {
        let (rules, mut dcqcn) = (paper(), Dcqcn::default());
        dcqcn.sent(&rules, 1_000, at(1));
        assert_eq!((dcqcn.gate(&rules, at(1)), dcqcn.rate(&rules, at(1))), (at(1), None));
        dcqcn.notified(&rules, pace(), at(10));
        assert!((rate(&mut dcqcn, &rules, 10) - 20.0).abs() < 1e-9);
        dcqcn.sent(&rules, 1_000, at(10));
        // 8,000 bits at 20 Gbit/s.
        assert_eq!(dcqcn.gate(&rules, at(10)), at(10) + Span::from_ns(400));
    }

    #[test]
    fn five_timers_are_fast_recovery_and_the_others_add_40_mbps_each() {
        let (rules, mut dcqcn) = (paper(), Dcqcn::default());
        dcqcn.notified(&rules, pace(), at(0));
        // A second one: alpha is 1 still, for (1 - g) + g = 1.
        dcqcn.notified(&rules, pace(), at(10));
        assert!((rate(&mut dcqcn, &rules, 64) - 10.0).abs() < 1e-9);
        let expected = [15.0, 17.5, 18.75, 19.375, 19.6875];
        for (number, expected) in (1..).zip(expected) {
            let found = rate(&mut dcqcn, &rules, 10 + 55 * number);
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        }
        // Then the target grows from 20 by 0.04 each time; without bytes there is no hyper
        // increase.
        let (mut target, mut expected) = (20.0, 19.6875);
        for number in 6..12 {
            target += 0.04;
            expected = f64::midpoint(expected, target);
            let found = rate(&mut dcqcn, &rules, 10 + 55 * number);
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        }
    }

    #[test]
    fn timers_and_counters_beyond_fast_recovery_are_hyper_increase() {
        let rules = Rules { byte_counter: 1_000, ..paper() };
        let mut dcqcn = Dcqcn::default();
        dcqcn.notified(&rules, pace(), at(0));
        dcqcn.notified(&rules, pace(), at(0));
        for _ in 0..6 {
            dcqcn.sent(&rules, 1_000, at(1));
        }
        let target = |dcqcn: &Dcqcn| dcqcn.limited.as_ref().unwrap().target / GBPS;
        // The sixth counter, after five of fast recovery, is additive.
        assert!((target(&dcqcn) - 20.04).abs() < 1e-9);
        dcqcn.notified(&rules, pace(), at(2));
        let before = target(&dcqcn);
        for _ in 0..7 {
            dcqcn.sent(&rules, 1_000, at(3));
        }
        assert!((target(&dcqcn) - before - 0.08).abs() < 1e-9, "two counters beyond the five");
        rate(&mut dcqcn, &rules, 2 + 55 * 6);
        assert!((target(&dcqcn) - before - 0.08 - 6.0 * 0.04).abs() < 1e-9, "six timers, all additive");
        rate(&mut dcqcn, &rules, 2 + 55 * 7);
        assert!((target(&dcqcn) - before - 0.08 - 0.24 - 0.1).abs() < 1e-9, "the seventh is hyper increase");
    }

    #[test]
    fn alpha_falls_by_g_a_period_without_notifications_and_late_is_as_good_as_in_time() {
        let (rules, mut late) = (paper(), Dcqcn::default());
        late.notified(&rules, pace(), at(0));
        let mut early = late.clone();
        for us in 0..=1_000 {
            early.rate(&rules, at(us));
        }
        late.rate(&rules, at(1_000));
        // 18 whole periods of 55 us.
        let expected = (0..18).fold(1.0, |alpha, _| alpha * (1.0 - rules.g));
        assert!((late.alpha() - expected).abs() < 1e-12 && (early.alpha() - expected).abs() < 1e-12);
        assert!((rate(&mut late, &rules, 1_000) - rate(&mut early, &rules, 1_000)).abs() < 1e-9);
    }

    #[test]
    fn with_periods_a_rate_is_cut_once_each_and_its_target_stays_until_something_was_raised() {
        let reaction = Reaction::Periodic { decrease_interval: Span::from_us(4) };
        let rules = Rules {
            reaction,
            alpha_timer: Span::from_us(1),
            rate_timer: Span::from_us(300),
            byte_counter: 0,
            fast_recovery: 1,
            ..paper()
        };
        let mut dcqcn = Dcqcn::default();
        for ns in [0, 200, 500] {
            dcqcn.notified(&rules, pace(), Time::ZERO + Span::from_ns(ns));
        }
        assert!((rate(&mut dcqcn, &rules, 3) - 40.0).abs() < 1e-9, "not before the period is over");
        // Alpha after four updates, the first of which was told: 1 x 1, then three times (1 - g).
        let alpha = power(1.0 - rules.g, 3);
        let expected = 40.0 * (1.0 - alpha / 2.0);
        assert!((rate(&mut dcqcn, &rules, 4) - expected).abs() < 1e-9);
        assert!((rate(&mut dcqcn, &rules, 9) - expected).abs() < 1e-9, "no notification, no cut");
        dcqcn.notified(&rules, pace(), at(9));
        let lower = rate(&mut dcqcn, &rules, 12);
        assert!(lower < expected);
        // The target is still that of before the first cut: 40, to which fast recovery goes
        // halfway.
        assert!((rate(&mut dcqcn, &rules, 12 + 300) - f64::midpoint(lower, 40.0)).abs() < 1e-9);
    }
}
