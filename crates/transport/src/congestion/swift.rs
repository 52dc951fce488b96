//! Swift: a window that keeps a delay at its target (Kumar et al., SIGCOMM 2020).
//!
//! There are two windows, one for the delay of the fabric and one for that of the far end; the
//! smaller one counts. A window grows by a packet a round trip while its delay is below the target,
//! and shrinks by how far it is above, once a round trip. The target of the fabric is the higher,
//! the more hops a path has and the smaller the window is (flow-based scaling), for many flows make
//! a longer queue. A window of less than a packet is a pause between packets.

use weft_units::{Span, Time};

/// Checked parameters, for all flows. Times in ps, windows in packets.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// Base target and what the hops add.
    pub fabric_target: f64,
    pub endpoint_target: f64,
    /// Flow-based scaling adds at most so much; `alpha` / sqrt(window) + `beta` below that.
    pub range: f64,
    pub alpha: f64,
    pub beta_of_scaling: f64,
    pub ai: f64,
    /// How strongly a delay above the target counts.
    pub beta: f64,
    /// The largest share that is cut at once.
    pub max_mdf: f64,
    pub initial: f64,
    pub least: f64,
    pub most: f64,
    /// Timeouts in a row after which the window is the least.
    pub resets_after: u32,
}

/// Parameters of flow-based scaling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaling {
    pub range: Span,
    pub least: f64,
    pub most: f64,
}

impl Rules {
    /// Those with this scaling (Swift §3.5).
    #[must_use]
    pub fn scaled(self, scaling: Scaling) -> Self {
        let range = scaling.range.as_ps() as f64;
        let alpha = range / (1.0 / scaling.least.sqrt() - 1.0 / scaling.most.sqrt());
        Self { range, alpha, beta_of_scaling: -alpha / scaling.most.sqrt(), ..self }
    }

    /// None of it is set.
    pub const fn unscaled() -> Self {
        Self {
            fabric_target: 0.0,
            endpoint_target: 0.0,
            range: 0.0,
            alpha: 0.0,
            beta_of_scaling: 0.0,
            ai: 0.0,
            beta: 0.0,
            max_mdf: 0.0,
            initial: 0.0,
            least: 0.0,
            most: 0.0,
            resets_after: 0,
        }
    }

    /// The target delay of the fabric at this window (Swift §3.5).
    pub fn target(&self, window: f64) -> f64 {
        let scaling = self.alpha / window.sqrt() + self.beta_of_scaling;
        self.fabric_target + scaling.clamp(0.0, self.range)
    }
}

/// A window, and when it shrank last.
#[derive(Debug, Clone, Copy)]
struct Window {
    packets: f64,
    shrank: Time,
}

impl Window {
    /// An acknowledgement of so many packets shows this delay (Swift Alg. 1, lines 4 to 13).
    fn follow(
        &mut self,
        rules: &Rules,
        (delay, target): (f64, f64),
        acked: f64,
        may_shrink: bool,
        now: Time,
    ) {
        if delay < target {
            let share = if self.packets >= 1.0 { self.packets } else { 1.0 };
            self.packets += rules.ai / share * acked;
        } else if may_shrink {
            let excess = rules.beta * (delay - target) / delay;
            self.shrink((1.0 - excess).max(1.0 - rules.max_mdf), now);
        }
        self.packets = self.packets.clamp(rules.least, rules.most);
    }

    fn shrink(&mut self, factor: f64, now: Time) {
        self.packets *= factor;
        self.shrank = now;
    }
}

/// The windows of one flow.
#[derive(Debug, Clone)]
pub(crate) struct Swift {
    fabric: Window,
    endpoint: Window,
    /// The last round trip.
    rtt: Span,
    timeouts: u32,
}

impl Swift {
    /// At the beginning of a flow.
    pub fn new(rules: &Rules) -> Self {
        let window = |packets| Window { packets, shrank: Time::ZERO };
        Self {
            fabric: window(rules.initial),
            endpoint: window(rules.most),
            rtt: Span::from_ps(rules.fabric_target as u64),
            timeouts: 0,
        }
    }

    /// The window that counts, in packets.
    #[inline]
    pub const fn window(&self) -> f64 {
        self.fabric.packets.min(self.endpoint.packets)
    }

    /// The last round trip.
    pub const fn rtt(&self) -> Span {
        self.rtt
    }

    /// The pause from one packet to the next, if the window holds less than one (Swift §3.4).
    #[inline]
    pub fn pause(&self) -> Option<Span> {
        let window = self.window();
        (window < 1.0).then(|| Span::from_ps((self.rtt.as_ps() as f64 / window) as u64))
    }

    fn may_shrink(&self, window: Window, now: Time) -> bool {
        now.since(window.shrank) >= self.rtt
    }

    /// An acknowledgement of so many packets came, after this round trip, of which the far end took
    /// a part.
    pub fn acknowledged(&mut self, rules: &Rules, packets: u32, (rtt, at_end): (Span, Span), now: Time) {
        self.timeouts = 0;
        self.rtt = rtt;
        let (may_fabric, may_endpoint) =
            (self.may_shrink(self.fabric, now), self.may_shrink(self.endpoint, now));
        let delay = rtt.saturating_sub(at_end).as_ps() as f64;
        let target = rules.target(self.fabric.packets);
        self.fabric.follow(rules, (delay, target), packets.into(), may_fabric, now);
        let delay = at_end.as_ps() as f64;
        self.endpoint.follow(rules, (delay, rules.endpoint_target), packets.into(), may_endpoint, now);
    }

    /// A packet was lost (Swift Alg. 1, on fast recovery).
    pub fn lost(&mut self, rules: &Rules, now: Time) {
        self.timeouts = 0;
        self.cut(rules, now);
    }

    /// No answer came in time (Swift Alg. 1, on retransmit timeout).
    pub fn timed_out(&mut self, rules: &Rules, now: Time) {
        self.timeouts += 1;
        if self.timeouts < rules.resets_after {
            return self.cut(rules, now);
        }
        for window in [&mut self.fabric, &mut self.endpoint] {
            (window.packets, window.shrank) = (rules.least, now);
        }
    }

    fn cut(&mut self, rules: &Rules, now: Time) {
        if self.may_shrink(self.fabric, now) {
            self.fabric.shrink(1.0 - rules.max_mdf, now);
            self.fabric.packets = self.fabric.packets.max(rules.least);
        }
        if self.may_shrink(self.endpoint, now) {
            self.endpoint.shrink(1.0 - rules.max_mdf, now);
            self.endpoint.packets = self.endpoint.packets.max(rules.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let rules = Rules {
            fabric_target: 30e6,
            endpoint_target: 100e6,
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            initial: 10.0,
            least: 0.001,
            most: 1_000.0,
            resets_after: 5,
            ..Rules::unscaled()
        };
        rules.scaled(Scaling { range: Span::from_us(100), least: 0.1, most: 100.0 })
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    #[test]
    fn small_windows_have_a_longer_target_between_the_bounds_of_scaling() {
        let rules = rules();
        for (window, expected) in [(0.05, 130.0), (0.1, 130.0), (100.0, 30.0), (400.0, 30.0)] {
            assert!((rules.target(window) / 1e6 - expected).abs() < 1e-9, "{window}");
        }
        // alpha = 100 / (sqrt(10) - 0.1), at a window of one: alpha (1 - 0.1).
        let one = 30.0 + 100.0 / (10f64.sqrt() - 0.1) * 0.9;
        assert!((rules.target(1.0) / 1e6 - one).abs() < 1e-9);
    }

    #[test]
    fn below_the_target_a_window_grows_by_a_packet_a_round_trip() {
        let (rules, mut swift) = (rules(), Swift::new(&rules()));
        for _ in 0..10 {
            swift.acknowledged(&rules, 1, (us(12), Span::ZERO), at(100));
        }
        let expected = (0..10).fold(10.0, |window, _| window + 1.0 / window);
        assert!((swift.window() - expected).abs() < 1e-9);
        let mut small = Swift::new(&rules);
        small.fabric.packets = 0.25;
        small.acknowledged(&rules, 1, (us(12), Span::ZERO), at(100));
        assert!((small.window() - 1.25).abs() < 1e-9);
    }

    #[test]
    fn above_the_target_it_shrinks_by_the_excess_once_a_round_trip_and_never_by_more_than_half() {
        let (rules, mut swift) = (rules(), Swift::new(&rules()));
        let target = rules.target(10.0);
        swift.acknowledged(&rules, 1, (us(60), Span::ZERO), at(100));
        let expected = 10.0 * (1.0 - 0.8 * (60e6 - target) / 60e6);
        assert!((swift.window() - expected).abs() < 1e-9);
        swift.acknowledged(&rules, 1, (us(60), Span::ZERO), at(159));
        assert!((swift.window() - expected).abs() < 1e-9, "not twice in a round trip");
        let before = swift.window();
        swift.acknowledged(&rules, 1, (us(900), Span::ZERO), at(2_000));
        assert!((swift.window() - before / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_slow_far_end_shrinks_its_own_window() {
        let (rules, mut swift) = (rules(), Swift::new(&rules()));
        swift.acknowledged(&rules, 1, (us(412), us(400)), at(1_000));
        assert!(swift.fabric.packets > 10.0 && swift.endpoint.packets < 1_000.0);
    }

    #[test]
    fn windows_below_a_packet_are_pauses_and_timeouts_in_a_row_lead_to_the_least() {
        let (rules, mut swift) = (rules(), Swift::new(&rules()));
        swift.acknowledged(&rules, 1, (us(20), Span::ZERO), at(1_000));
        assert_eq!(swift.pause(), None);
        swift.fabric.packets = 0.5;
        assert_eq!(swift.pause(), Some(us(40)));
        for number in 1..=5 {
            swift.timed_out(&rules, at(1_000 + number * 320));
        }
        assert_eq!(swift.pause(), Some(us(20_000)), "a thousandth of a packet");
    }
}
