//! NSCC: the window of an Ultra Ethernet sender, by what marks and delays together tell.
//!
//! An acknowledgement falls into one of four quadrants (Ultra Ethernet 1.0 §3.6.13, and its public
//! simulator): not marked and below the target delay, the window grows in proportion to what is
//! left to the target; not marked and above it, by the same for all flows (fair increase); marked
//! and below, it stays, and only paths change; marked and above, it shrinks. Increases are added up
//! and applied some packets at a time. A path on which nothing waits lets the window grow fast.
//! When a trimmed packet or a very long delay tells that far less got through than was sent, the
//! window becomes what got through (quick adapt).
//!
//! Sizes are bytes on the wire, times picoseconds.

use weft_units::{Span, Time};

use crate::KnownFabric;

/// Parameters of NSCC that a spec sets.
#[derive(Debug, Clone)]
pub(crate) struct Params {
    /// The round trip that flows reckon with; none: the longest of the idle fabric.
    pub base_rtt: Option<Span>,
    /// None: three quarters of the base round trip.
    pub target_delay: Option<Span>,
    /// In full payloads.
    pub proportional: f64,
    pub fair: f64,
    pub eta: f64,
    /// Fast increase, as a share of acknowledged bytes.
    pub fast: f64,
    pub fast_below: Span,
    /// The strongest decrease, as a share of what the delay exceeds the target by.
    pub gamma: f64,
    /// Gain of the mean delay.
    pub gain: f64,
    /// Quick adapt asks for less than this part of the largest window, as a power of two.
    pub gate: u32,
    /// Largest and first window, in bandwidth-delay products.
    pub max_window: f64,
    pub initial_window: Option<f64>,
    /// None: 15 us and six base round trips.
    pub rto: Option<Span>,
}

/// Constants that follow from the parameters and the fabric, for all flows.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The base round trip, and the target of the delay beyond it, in ps.
    pub rtt: f64,
    pub target: f64,
    bytes_per_ps: f64,
    /// Proportional increase, in bytes^2 a byte and ps.
    alpha: f64,
    fair: f64,
    eta: f64,
    fast: f64,
    fast_below: f64,
    gamma: f64,
    gain: f64,
    gate: f64,
    max_window: f64,
    initial_window: Option<f64>,
    /// The least window: a full packet.
    least: f64,
    adjust_bytes: f64,
    pub rto: Span,
}

/// The bandwidth-delay product of the reference network: 12 us at 100 Gbit/s.
const REFERENCE_BYTES: f64 = 150_000.0;
const REFERENCE_PS: f64 = 12e6;

impl Rules {
    /// Rules for a fabric. `payload` and `packet` are the sizes of a full packet.
    pub fn new(params: &Params, known: KnownFabric, payload: u16, packet: u16) -> Self {
        let base_rtt = params.base_rtt.unwrap_or(known.base_rtt);
        let rtt = (base_rtt.as_ps() as f64).max(1.0);
        // Ultra Ethernet 1.0 §3.6.13.3: a queue that trims need not be as long.
        let share = if known.trims { 0.75 } else { 1.0 };
        let target = params.target_delay.map_or(share * rtt, |target| target.as_ps() as f64).max(1.0);
        let bytes_per_ps = 1e6 / known.pace.service_of(weft_units::Bytes::new(1_000_000)).as_ps() as f64;
        let payload = f64::from(payload);
        let a = rtt * bytes_per_ps / REFERENCE_BYTES;
        let b = target / REFERENCE_PS;
        let least = f64::from(packet);
        Self {
            rtt,
            target,
            bytes_per_ps,
            alpha: params.proportional * payload * a * b / target,
            fair: params.fair * payload * a,
            eta: params.eta * payload * a,
            fast: params.fast * a,
            fast_below: params.fast_below.as_ps() as f64,
            gamma: params.gamma,
            gain: params.gain,
            gate: (0..params.gate).fold(1.0, |share, _| share / 2.0),
            max_window: params.max_window,
            initial_window: params.initial_window,
            least,
            adjust_bytes: 8.0 * least,
            rto: params.rto.unwrap_or_else(|| Span::from_us(15) + base_rtt.saturating_mul(6)),
        }
    }
}

/// The window of one flow.
#[derive(Debug, Clone)]
pub(crate) struct Nscc {
    pub window: f64,
    /// The least round trip that was seen, in ps; at first that of the rules.
    base_rtt: f64,
    largest: f64,
    mean_delay: f64,
    /// Increases that are not applied yet, times the window; and bytes acknowledged meanwhile.
    increase: f64,
    received: f64,
    adjusted: Time,
    decreased: Time,
    fast_count: f64,
    is_fast: bool,
    /// Bytes acknowledged in this period of quick adapt, and its end; zero before the first.
    achieved: f64,
    period_ends: Time,
    is_alarmed: bool,
    /// Bytes whose marks tell of the time before the last quick adapt: so many, and how many of
    /// them have been seen.
    to_ignore: f64,
    ignored: f64,
}

impl Nscc {
    /// At the beginning of a flow.
    pub fn new(rules: &Rules) -> Self {
        let bdp = rules.rtt * rules.bytes_per_ps;
        let largest = (rules.max_window * bdp).max(rules.least);
        let window = rules.initial_window.map_or(largest, |share| share * bdp);
        Self {
            window: window.clamp(rules.least, largest),
            base_rtt: rules.rtt,
            largest,
            mean_delay: 0.0,
            increase: 0.0,
            received: 0.0,
            adjusted: Time::ZERO,
            decreased: Time::ZERO,
            fast_count: 0.0,
            is_fast: false,
            achieved: 0.0,
            period_ends: Time::ZERO,
            is_alarmed: false,
            to_ignore: 0.0,
            ignored: 0.0,
        }
    }

    /// The least round trip so far.
    pub fn base_rtt(&self) -> Span {
        Span::from_ps(self.base_rtt as u64)
    }

    fn note_rtt(&mut self, rules: &Rules, rtt: f64) {
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.largest = (rules.max_window * rtt * rules.bytes_per_ps).max(rules.least);
        }
    }

    /// An acknowledgement came: of so many bytes that were not known to have come, with a mark or
    /// not; and the round trip of the packet that made it, if that is known. `in_flight` bytes are.
    pub fn acknowledged(
        &mut self,
        rules: &Rules,
        (bytes, is_marked): (u32, bool),
        rtt: Option<Span>,
        in_flight: f64,
        now: Time,
    ) {
        let bytes = f64::from(bytes);
        self.achieved += bytes;
        self.received += bytes;
        self.ignored += bytes;
        let delay = match rtt {
            None => self.mean_delay,
            Some(rtt) => {
                let rtt = rtt.as_ps() as f64;
                self.note_rtt(rules, rtt);
                let delay = rtt - self.base_rtt;
                // A long delay without a mark is one that marks are yet to come of, or was none of
                // the fabric's.
                let counts = if !is_marked && delay > rules.target { self.base_rtt / 4.0 } else { delay };
                self.mean_delay += rules.gain * (counts - self.mean_delay);
                delay
            }
        };
        if self.adapts(rules, false, is_marked, delay, (in_flight, now)) {
            return;
        }
        match (is_marked, delay >= rules.target) {
            (false, true) => self.increase += rules.fair * bytes,
            (false, false) => self.grow(rules, bytes, delay),
            (true, true) => self.shrink(rules, now),
            (true, false) => {}
        }
        self.bound(rules);
        let is_time = now.since(self.adjusted).as_ps() as f64 > rules.rtt;
        if self.received > rules.adjust_bytes || is_time {
            self.apply(rules, now);
        }
    }

    /// In proportion to what is left to the target, or fast where nothing waits.
    fn grow(&mut self, rules: &Rules, bytes: f64, delay: f64) {
        if delay < rules.fast_below {
            self.fast_count += bytes;
            if self.fast_count > self.window || self.is_fast {
                self.window += bytes * rules.fast;
                self.is_fast = true;
                return;
            }
        } else {
            self.fast_count = 0.0;
        }
        self.is_fast = false;
        self.increase += rules.alpha * bytes * (rules.target - delay);
    }

    /// By how far the mean delay is above the target, once a round trip.
    fn shrink(&mut self, rules: &Rules, now: Time) {
        (self.is_fast, self.fast_count) = (false, 0.0);
        let mean = self.mean_delay;
        if mean > rules.target && now.since(self.decreased).as_ps() as f64 > self.base_rtt {
            self.window *= (1.0 - rules.gamma * (mean - rules.target) / mean).max(0.5);
            self.decreased = now;
        }
    }

    fn apply(&mut self, rules: &Rules, now: Time) {
        self.window += self.increase / self.window;
        if now.since(self.adjusted).as_ps() as f64 >= rules.rtt {
            self.window += rules.eta;
            self.adjusted = now;
        }
        (self.increase, self.received) = (0.0, 0.0);
        self.bound(rules);
    }

    fn bound(&mut self, rules: &Rules) {
        self.window = self.window.clamp(rules.least, self.largest);
    }

    /// Quick adapt, if it is due; and whether it has just happened, so that this tells of the time
    /// before it.
    fn adapts(
        &mut self,
        rules: &Rules,
        is_loss: bool,
        is_marked: bool,
        delay: f64,
        (in_flight, now): (f64, Time),
    ) -> bool {
        let mut is_over = self.ignored < self.to_ignore && is_marked;
        if !is_over && now > self.period_ends {
            let is_asked = self.is_alarmed || is_loss || delay > 4.0 * rules.target;
            let got_little = self.achieved < self.largest * rules.gate;
            if self.period_ends > Time::ZERO && is_asked && got_little {
                self.window = self.achieved.max(rules.least);
                (self.to_ignore, self.ignored) = (in_flight, 0.0);
                self.is_alarmed = false;
                is_over = true;
            }
            self.achieved = 0.0;
            self.period_ends = now + Span::from_ps((self.base_rtt + rules.target) as u64);
        }
        if is_over {
            (self.increase, self.received) = (0.0, 0.0);
        }
        is_over
    }

    /// A packet of so many bytes was trimmed; this is the round trip of what was left of it.
    pub fn trimmed(&mut self, rules: &Rules, bytes: u16, rtt: Span, in_flight: f64, now: Time) {
        self.note_rtt(rules, rtt.as_ps() as f64);
        self.ignored += f64::from(bytes);
        // Its queue was full: the delay is taken for a whole round trip.
        self.mean_delay += rules.gain * (rules.rtt - self.mean_delay);
        self.is_alarmed = true;
        if !self.adapts(rules, true, true, 0.0, (in_flight, now)) {
            self.lost(rules, bytes);
        }
    }

    /// A packet of so many bytes is taken for lost.
    pub fn lost(&mut self, rules: &Rules, bytes: u16) {
        self.window -= f64::from(bytes);
        self.bound(rules);
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Rate;

    use super::*;

    fn params() -> Params {
        Params {
            base_rtt: None,
            target_delay: None,
            proportional: 4.0,
            fair: 5.0,
            eta: 0.15,
            fast: 0.25,
            fast_below: Span::from_us(1),
            gamma: 0.8,
            gain: 0.0125,
            gate: 3,
            max_window: 1.5,
            initial_window: None,
            rto: None,
        }
    }

    /// The example of three tiers at 100 Gbit/s, with packets of 4,150 bytes of which 64 are
    /// headers.
    fn rules() -> Rules {
        let pace = Rate::from_gbps(100).ps_per_byte();
        Rules::new(
            &params(),
            KnownFabric { base_rtt: Span::from_ps(14_022_720), pace, trims: true },
            4_086,
            4_150,
        )
    }

    #[test]
    fn where_nothing_is_trimmed_queues_may_hold_a_whole_round_trip() {
        let pace = Rate::from_gbps(100).ps_per_byte();
        let known = KnownFabric { base_rtt: Span::from_us(12), pace, trims: false };
        let target_us = |params: &Params| Rules::new(params, known, 4_086, 4_150).target / 1e6;
        assert!((target_us(&params()) - 12.0).abs() < 1e-9);
        let own = Params { target_delay: Some(Span::from_us(5)), ..params() };
        assert!((target_us(&own) - 5.0).abs() < 1e-9, "what is said counts");
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn the_constants_are_those_of_the_public_simulator() {
        let rules = rules();
        assert!((rules.target - 10_517_040.0).abs() < 1.0);
        assert!((rules.fair - 23_874.0).abs() < 1.0 && (rules.eta - 716.0).abs() < 1.0);
        assert!((rules.fast - 0.2921).abs() < 1e-4);
        assert!((Nscc::new(&rules).window - 262_926.0).abs() < 1.0);
        assert!((rules.rto.as_us() - 99.1).abs() < 0.1);
    }

    #[test]
    fn each_quadrant_does_its_own() {
        let rules = rules();
        let rtt = Span::from_ps(14_022_720);
        let small = Nscc { window: 40_000.0, adjusted: at(99), ..Nscc::new(&rules) };
        let after = |is_marked, beyond: Span, times: u32| {
            let mut nscc = small.clone();
            (nscc.period_ends, nscc.mean_delay) = (at(1_000), 20e6);
            for _ in 0..times {
                nscc.acknowledged(&rules, (4_150, is_marked), Some(rtt + beyond), 40_000.0, at(100));
            }
            nscc.window
        };
        // Nine packets are more than eight: then what was added up is applied.
        let unmarked_short = 40_000.0 + 9.0 * 4_150.0 * rules.alpha * (rules.target - 5e6) / 40_000.0;
        assert!((after(false, Span::from_us(5), 9) - unmarked_short).abs() < 1.0);
        let fair = 40_000.0 + 9.0 * 4_150.0 * rules.fair / 40_000.0;
        assert!((after(false, Span::from_us(11), 9) - fair).abs() < 1.0);
        assert!((after(true, Span::from_us(5), 9) - 40_000.0).abs() < 1e-6, "only paths change");
        // The mean moves by an eightieth; then 1 - 0.8 (mean - T) / mean.
        let mean: f64 = 20e6 + 0.0125 * (30e6 - 20e6);
        let less = 40_000.0 * (1.0 - 0.8 * (mean - rules.target) / mean);
        assert!((after(true, Span::from_us(30), 1) - less).abs() < 1.0);
        assert!((after(true, Span::from_us(30), 2) - less).abs() < 1.0, "once a round trip");
    }

    #[test]
    fn a_path_on_which_nothing_waits_lets_the_window_grow_by_a_quarter_of_what_is_acknowledged() {
        let rules = rules();
        let rtt = Span::from_ps(14_022_720);
        let mut nscc = Nscc { window: 20_000.0, ..Nscc::new(&rules) };
        // Five packets are more than the window: from then on each adds its share.
        for _ in 0..4 {
            nscc.acknowledged(&rules, (4_150, false), Some(rtt), 20_000.0, at(1));
        }
        let before = nscc.window;
        nscc.acknowledged(&rules, (4_150, false), Some(rtt), 20_000.0, at(1));
        assert!((nscc.window - before - 4_150.0 * rules.fast).abs() < 1e-6);
    }

    #[test]
    fn quick_adapt_makes_the_window_what_got_through_and_ignores_what_was_sent_before() {
        let rules = rules();
        let rtt = Span::from_us(30);
        let mut nscc = Nscc::new(&rules);
        // The first period begins; the packet is subtracted.
        nscc.trimmed(&rules, 4_150, rtt, 200_000.0, at(10));
        assert!((nscc.window - (262_926.0 - 4_150.0)).abs() < 1.0);
        nscc.acknowledged(&rules, (8_300, true), Some(rtt), 190_000.0, at(12));
        // When it is over, 14.02 + 10.52 us later, 8,300 bytes got through.
        nscc.trimmed(&rules, 4_150, rtt, 180_000.0, at(35));
        assert!((nscc.window - 8_300.0).abs() < 1e-6);
        nscc.trimmed(&rules, 4_150, rtt, 170_000.0, at(36));
        assert!((nscc.window - 8_300.0).abs() < 1e-6, "it was sent before");
    }

    #[test]
    fn a_shorter_round_trip_lowers_the_largest_window_and_no_window_is_less_than_a_packet() {
        let rules = rules();
        let mut nscc = Nscc::new(&rules);
        nscc.acknowledged(&rules, (4_150, false), Some(Span::from_us(7)), 0.0, at(1));
        assert!((nscc.window - 1.5 * 87_500.0).abs() < 1.0, "{}", nscc.window);
        for _ in 0..100 {
            nscc.lost(&rules, 4_150);
        }
        assert!((nscc.window - 4_150.0).abs() < 1e-9);
    }
}
