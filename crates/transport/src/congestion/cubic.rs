//! CUBIC (RFC 9438): after a loss the window follows a cubic function of time, flat where the loss
//! was. Slow start may end before the first loss: `HyStart`, as Linux has it.

use weft_units::{Span, Time};

use super::{Ack, Controller, Window, whole_cubic};

/// RFC 9438.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cubic {
    /// `C`, segments per second cubed; above 0.
    pub c: f64,
    /// `beta_cubic`: what is left of the window after a loss; above 0, below 1.
    pub beta: f64,
    /// RFC 9438 §4.7.
    pub fast_convergence: bool,
    /// The least growth in congestion avoidance before the first loss, a segment acknowledged.
    pub first_growth: f64,
    /// Whether delays may end slow start.
    pub hystart: bool,
    /// Count as Linux does, if so.
    pub whole: Option<whole_cubic::Rules>,
}

/// Inputs of CUBIC from an [`Ack`].
#[derive(Debug, Clone, Copy)]
struct AckSample {
    una: u32,
    next: u32,
    now: Time,
    rtt: Option<Span>,
    smoothed_rtt: Span,
}

/// CUBIC state of a flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct CubicState {
    /// `W_max`, segments; 0 before the first loss and after a timeout.
    w_max: f64,
    /// `cwnd_prior`, segments.
    cwnd_prior: f64,
    /// The stage of congestion avoidance, if it has begun.
    epoch: Option<Epoch>,
    now: Time,
    smoothed_rtt: Span,
    /// The smallest sample of the round-trip time.
    least_rtt: Option<Span>,
    hystart: HyStart,
    /// In place of `epoch`, if it counts as Linux does.
    whole: whole_cubic::State,
}

/// A stage of congestion avoidance.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time,
    /// `K`, seconds.
    k: f64,
    /// The plateau of the cubic function, segments.
    origin: f64,
    /// `W_est`, segments: the window of a Reno with the same losses.
    w_est: f64,
}

/// Linux' `HyStart`: slow start ends when acknowledgements of one round come for longer than half
/// of a round trip, or when the least delay of a round is higher than the least of all.
#[derive(Debug, Clone, Default)]
struct HyStart {
    found: bool,
    /// The next new segment as the round began.
    round_end: u32,
    round_start: Time,
    last_ack: Time,
    /// The least delay in this round.
    round_rtt: Option<Span>,
    samples: u8,
}

/// `hystart_low_window`: below it, slow start goes on whatever comes.
const LOW_WINDOW: f64 = 16.0;
/// `hystart_ack_delta`: acknowledgements further apart than this make no train.
const TRAIN_GAP: Span = Span::from_ms(2);
/// Delays of a round that are looked at before they are believed.
const MIN_SAMPLES: u8 = 8;
/// By how much a round must be slower: an eighth of the least delay, within these.
const DELAY_STEP: (Span, Span) = (Span::from_ms(4), Span::from_ms(16));
/// Linux lets four bursts of 64 KiB disturb a train: so many segments of 1,448 bytes, at twice the
/// rate of window and delay.
const BURST_SEGMENTS: f64 = 181.0;
/// And no longer than this.
const MOST_BURST: Span = Span::from_ms(1);

impl Controller for Cubic {
    #[inline]
    fn on_ack(&self, window: &mut Window, ack: Ack) {
        let Ack { una, next, now, rtt, smoothed_rtt, .. } = ack;
        self.follow(window, AckSample { una, next, now, rtt, smoothed_rtt });
    }

    /// RFC 9438 §§4.2 to 4.5.
    #[inline(never)]
    fn increase(&self, window: &mut Window, acked: u32) -> f64 {
        let cwnd = window.cwnd;
        let state = window.cubic.get_or_insert_default();
        let (now, w_max, cwnd_prior) = (state.now, state.w_max, state.cwnd_prior);
        if let Some(rules) = &self.whole {
            let least_rtt = state.least_rtt.unwrap_or_default();
            return rules.increase(&mut state.whole, (cwnd, w_max), acked, (now, least_rtt));
        }
        let epoch = state.epoch.get_or_insert_with(|| self.epoch(now, w_max, cwnd));
        let t = seconds(now.since(epoch.start));
        // RFC 9438 §4.3: Reno-friendly, until the window is where it was before the loss; then as
        // fast as Reno.
        let alpha = if epoch.w_est < cwnd_prior { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) } else { 1.0 };
        epoch.w_est += alpha * f64::from(acked) / cwnd;
        let probe = if w_max == 0.0 { self.first_growth * f64::from(acked) } else { 0.0 };
        if self.at(epoch, t) < epoch.w_est {
            return (epoch.w_est - cwnd).max(probe);
        }
        // RFC 9438 §4.2: the target, a round trip ahead.
        let target = self.at(epoch, t + seconds(state.smoothed_rtt)).clamp(cwnd, 1.5 * cwnd);
        ((target - cwnd) / cwnd * f64::from(acked)).max(probe)
    }

    /// RFC 9438 §4.6: as a loss.
    fn on_mark(&self, window: &mut Window) {
        self.remember(window);
        match &self.whole {
            Some(rules) => {
                window.lower_threshold(rules.left(window.cwnd));
                window.cwnd = window.cwnd.min(window.ssthresh);
            }
            None => window.scale(self.beta),
        }
    }

    /// RFC 9438 §4.6.
    fn on_loss(&self, window: &mut Window, flight: u32) {
        self.remember(window);
        let left = match &self.whole {
            Some(rules) => rules.left(window.cwnd),
            None => f64::from(flight) * self.beta,
        };
        window.lower_threshold(left);
    }

    /// RFC 9438 §4.8: the next stage begins with `K = 0`. The least delay is forgotten, and all
    /// that is out is one round to `HyStart`, as in Linux.
    fn on_timeout(&self, window: &mut Window, now: Time, next: u32) {
        let state = window.cubic.get_or_insert_default();
        (state.w_max, state.epoch, state.least_rtt) = (0.0, None, None);
        state.hystart = HyStart::begins(now, next);
        state.whole = whole_cubic::State::default();
    }
}

impl Cubic {
    /// Follows an acknowledgement. Apart, so that it weighs on no flow of another control.
    #[inline(never)]
    fn follow(&self, window: &mut Window, ack: AckSample) {
        let (cwnd, ssthresh) = (window.cwnd, window.ssthresh);
        let state = window.cubic.get_or_insert_default();
        (state.now, state.smoothed_rtt) = (ack.now, ack.smoothed_rtt);
        // Right after a recovery delays say little of the path.
        let began = state.epoch.map(|epoch| epoch.start).or_else(|| state.whole.began());
        if began.is_some_and(|began| ack.now < began.saturating_add(Span::from_s(1))) {
            return;
        }
        let Some(rtt) = ack.rtt else { return };
        let least = state.least_rtt.map_or(rtt, |least| least.min(rtt));
        state.least_rtt = Some(least);
        if self.hystart && cwnd < ssthresh && state.hystart.ends(cwnd, least, rtt, ack) {
            window.ssthresh = cwnd;
        }
    }

    /// CUBIC in the integer arithmetic of Linux.
    pub fn in_whole_numbers(self) -> Self {
        let rules = whole_cubic::Rules::new(self.c, self.beta, self.first_growth);
        Self { whole: Some(rules), ..self }
    }

    /// A stage of congestion avoidance begins.
    fn epoch(&self, now: Time, w_max: f64, cwnd: f64) -> Epoch {
        // RFC 9438 eq. 2. Without a loss that the window is still below, K is 0 (§4.10).
        let (k, origin) =
            if w_max > cwnd { (cube_root((w_max - cwnd) / self.c), w_max) } else { (0.0, cwnd) };
        Epoch { start: now, k, origin, w_est: cwnd }
    }

    /// RFC 9438 eq. 1, `t` seconds into the stage.
    fn at(&self, epoch: &Epoch, t: f64) -> f64 {
        let d = t - epoch.k;
        self.c * d * d * d + epoch.origin
    }

    /// RFC 9438 §4.7: a flow that lost below its last maximum leaves room for others.
    fn remember(&self, window: &mut Window) {
        let cwnd = window.cwnd;
        let state = window.cubic.get_or_insert_default();
        let yields = self.fast_convergence && cwnd < state.w_max;
        let yielded = |rules: &whole_cubic::Rules| rules.yielded(cwnd);
        let yielded = self.whole.as_ref().map_or(cwnd * f64::midpoint(1.0, self.beta), yielded);
        state.w_max = if yields { yielded } else { cwnd };
        (state.cwnd_prior, state.epoch) = (cwnd, None);
        state.whole.ends();
    }
}

impl HyStart {
    /// A round begins, which ends when this segment is acknowledged.
    fn begins(now: Time, next: u32) -> Self {
        Self { round_end: next, round_start: now, last_ack: now, ..Self::default() }
    }

    /// Whether slow start ends with this acknowledgement.
    fn ends(&mut self, cwnd: f64, least: Span, rtt: Span, ack: AckSample) -> bool {
        if self.found {
            return false;
        }
        // Whatever the window is: a round that began late would take acknowledgements of the next
        // for its own, as in Linux before 6.14 and before the stable versions that have the mend.
        if ack.una > self.round_end {
            *self = Self::begins(ack.now, ack.next);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let train = self.train_is_long(cwnd, least, ack);
        self.found = train || self.delay_has_risen(least, rtt);
        self.found
    }

    fn train_is_long(&mut self, cwnd: f64, least: Span, ack: AckSample) -> bool {
        if ack.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        let burst = ack.smoothed_rtt.as_ps() as f64 * BURST_SEGMENTS / (2.0 * cwnd);
        let burst = Span::from_ps(burst as u64).min(MOST_BURST);
        ack.now.since(self.round_start).as_ps() > (least + burst).as_ps() / 2
    }

    fn delay_has_risen(&mut self, least: Span, rtt: Span) -> bool {
        let of_round = self.round_rtt.map_or(rtt, |known| known.min(rtt));
        self.round_rtt = Some(of_round);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        of_round > least + Span::from_ps(least.as_ps() / 8).clamp(DELAY_STEP.0, DELAY_STEP.1)
    }
}

fn seconds(span: Span) -> f64 {
    span.as_ps() as f64 / Span::from_s(1).as_ps() as f64
}

/// The cube root of a number that is not negative, in plain arithmetic, so that every machine
/// agrees.
fn cube_root(x: f64) -> f64 {
    let (mut rest, mut scale) = (x, 1.0);
    while rest >= 8.0 {
        (rest, scale) = (rest / 8.0, scale * 2.0);
    }
    while rest > 0.0 && rest < 1.0 {
        (rest, scale) = (rest * 8.0, scale / 2.0);
    }
    // Newton's method, from the middle of 1 to 2.
    let root = (0..6).fold(1.5, |y: f64, _| (2.0 * y + rest / (y * y)) / 3.0);
    if x > 0.0 { root * scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: Cubic =
        Cubic { c: 0.4, beta: 0.7, fast_convergence: true, first_growth: 0.0, hystart: false, whole: None };

    fn window(cwnd: f64) -> Window {
        Window::new(cwnd, 1.0, 0.0)
    }

    fn ack(now: Span, rtt: Span) -> Ack {
        Ack {
            acked: 1,
            una: 1,
            next: 100,
            marked: false,
            now: Time::ZERO + now,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
    }

    /// Congestion avoidance for a while, an acknowledgement a segment, with this round-trip time;
    /// the windows after each round.
    fn rounds(cubic: &Cubic, window: &mut Window, rtt: Span, rounds: u64) -> Vec<f64> {
        let round = |number: u64, window: &mut Window| {
            let now = Span::from_ps(rtt.as_ps() * number);
            for _ in 0..window.segments() {
                cubic.on_ack(window, ack(now, rtt));
                window.grow(cubic, 1, (u32::MAX, 1));
            }
            window.cwnd
        };
        (0..rounds).map(|number| round(number, window)).collect()
    }

    #[test]
    fn cube_roots_are_right_from_small_to_large() {
        for root in [1e-3, 0.5, 1.0, 1.9, 2.0, 7.0, 42.5, 1e4] {
            close(cube_root(root * root * root), root);
        }
        close(cube_root(0.0), 0.0);
    }

    #[test]
    fn after_a_loss_seven_tenths_are_left_and_at_least_two_segments() {
        let mut after = window(100.0);
        RFC.on_loss(&mut after, 90);
        close(after.ssthresh, 63.0);
        let mut small = window(2.0);
        RFC.on_loss(&mut small, 2);
        close(small.ssthresh, 2.0);
    }

    #[test]
    fn a_mark_leaves_seven_tenths_of_the_window() {
        let mut marked = window(100.0);
        RFC.on_mark(&mut marked);
        close(marked.cwnd, 70.0);
    }

    /// Loss at 100, 70 are left: K = cbrt(30 / 0.4) = 4.217 s. Concave before, convex after, and
    /// flat at `W_max`.
    #[test]
    fn the_window_is_concave_up_to_k_and_convex_after_it() {
        let mut window = window(100.0);
        RFC.on_loss(&mut window, 100);
        window.cwnd = window.ssthresh;
        let rtt = Span::from_ms(500);
        let windows = rounds(&RFC, &mut window, rtt, 16);
        // The target is that of a round trip later, and each of a window's acknowledgements goes
        // its part of the way: all of them leave 1/e of it. In the first round the Reno-friendly
        // window is larger.
        let k = 75f64.powf(1.0 / 3.0);
        let at = |round: f64| 0.4 * (0.5 * round - k).powi(3) + 100.0;
        let mut expected = windows[0];
        for (n, found) in (0u8..).map(f64::from).zip(&windows).skip(1) {
            expected = at(n + 1.0) - (at(n + 1.0) - expected) / std::f64::consts::E;
            assert!((found - expected).abs() < 0.01 * expected, "{found}, not {expected}, after round {n}");
        }
        let steps: Vec<f64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
        let flat = steps.iter().position(|step| *step <= least).unwrap();
        assert!((6..=10).contains(&flat), "{steps:?}");
        assert!(steps[0] > steps[3] && steps[14] > steps[11], "{steps:?}");
    }

    /// With 1 ms a round trip the cubic function hardly moves: alpha = 3 * 0.3 / 1.7 segments a
    /// round, up to the window before the loss.
    #[test]
    fn on_short_paths_it_grows_as_a_reno_with_the_same_losses() {
        let mut window = window(20.0);
        RFC.on_loss(&mut window, 20);
        window.cwnd = window.ssthresh;
        let windows = rounds(&RFC, &mut window, Span::from_ms(1), 10);
        let step = (windows[9] - windows[0]) / 9.0;
        assert!((step - 0.9 / 1.7).abs() < 0.03, "{step}: {windows:?}");
        // W_est is above the window before the loss from the twelfth round on: a segment a round.
        let windows = rounds(&RFC, &mut window, Span::from_ms(1), 10);
        let step = windows[9] - windows[8];
        assert!((0.9..=1.05).contains(&step), "{step}: {windows:?}");
    }

    #[test]
    fn a_loss_below_the_last_maximum_yields_room() {
        let mut window = window(100.0);
        RFC.on_loss(&mut window, 100);
        window.cwnd = 80.0;
        RFC.on_loss(&mut window, 80);
        close(window.cubic.as_ref().unwrap().w_max, 80.0 * 0.85);
        let greedy = Cubic { fast_convergence: false, ..RFC };
        window.cwnd = 60.0;
        greedy.on_loss(&mut window, 60);
        close(window.cubic.as_ref().unwrap().w_max, 60.0);
    }

    #[test]
    fn after_a_timeout_the_next_stage_begins_at_its_plateau() {
        let mut window = window(100.0);
        RFC.on_loss(&mut window, 100);
        RFC.on_timeout(&mut window, Time::ZERO, 100);
        window.cwnd = 70.0;
        RFC.on_ack(&mut window, ack(Span::from_s(1), Span::from_ms(1)));
        RFC.increase(&mut window, 1);
        let epoch = window.cubic.unwrap().epoch.unwrap();
        close(epoch.k, 0.0);
        close(epoch.origin, 70.0);
    }

    #[test]
    fn before_the_first_loss_it_may_be_told_to_grow_by_a_twentieth_a_round() {
        let linux = Cubic { first_growth: 0.05, ..RFC };
        let mut window = window(100.0);
        linux.on_ack(&mut window, ack(Span::ZERO, Span::from_us(100)));
        close(linux.increase(&mut window, 1), 0.05);
    }

    /// A round of 20 acknowledgements, the first at 1 s, so far apart and with this round-trip
    /// time. Whether slow start ended.
    fn slow_start(gap: Span, rtts: &[Span]) -> bool {
        let cubic = Cubic { hystart: true, ..RFC };
        let mut window = Window::new(20.0, f64::INFINITY, 0.0);
        for (round, rtt) in (0u32..).zip(rtts) {
            for number in 0..20 {
                let at = Span::from_ps(
                    Span::from_s(1).as_ps() * u64::from(round + 1) + gap.as_ps() * u64::from(number),
                );
                let ack = Ack { una: round * 20 + number + 1, next: round * 20 + 20, ..ack(at, *rtt) };
                cubic.on_ack(&mut window, ack);
            }
        }
        window.ssthresh < 100.0
    }

    #[test]
    fn a_round_begins_below_the_least_window_and_so_the_next_ones_acknowledgements_make_no_train() {
        let cubic = Cubic { hystart: true, ..RFC };
        let (mut window, rtt) = (Window::new(10.0, f64::INFINITY, 0.0), Span::from_us(1_300));
        // Ten segments were out; each acknowledgement lets go of two. That of the eleventh comes a
        // round trip later.
        for una in 1..=12 {
            let (later, number) = if una <= 10 { (Span::ZERO, una) } else { (rtt, una - 10) };
            let at = rtt + later + Span::from_us(20) * u64::from(number);
            cubic.on_ack(&mut window, Ack { una, next: 10 + 2 * (una - 1), ..ack(at, rtt) });
            window.cwnd += 1.0;
        }
        assert!(
            window.ssthresh.is_infinite(),
            "a round from the sixteenth segment of the window on lasted 1.3 ms"
        );
    }

    #[test]
    fn slow_start_ends_by_a_long_train_or_by_a_delay_that_rose_and_not_else() {
        let (short, long) = (Span::from_us(100), Span::from_us(50));
        let quiet = Span::from_us(1);
        // 100 us and a burst of 100 us * 181 / 40 = 452 us; half of both is 276 us.
        assert!(!slow_start(quiet, &[short, short]), "a train of 19 us");
        assert!(slow_start(long, &[short]), "a train of 950 us");
        assert!(!slow_start(quiet, &[short, Span::from_us(4_000)]), "3.9 ms slower");
        assert!(slow_start(quiet, &[short, Span::from_us(4_200)]), "4.1 ms slower");
    }

    #[test]
    fn after_a_timeout_all_that_was_out_is_one_round_to_hystart_and_the_least_delay_is_learned_anew() {
        let cubic = Cubic { hystart: true, ..RFC };
        let (ms, us) = (Span::from_ms, Span::from_us);
        let mut window = Window::new(20.0, 1_000.0, 0.0);
        let state = |window: &Window| window.cubic.clone().unwrap();
        cubic.on_ack(&mut window, ack(ms(1), us(100)));
        cubic.on_timeout(&mut window, Time::ZERO + ms(10), 50);
        assert_eq!(state(&window).least_rtt, None);
        // The train began with the timeout: 900 us later it is longer than half of the least delay,
        // which is 1 ms now, and what bursts disturb.
        cubic.on_ack(&mut window, Ack { una: 40, ..ack(ms(10) + us(900), ms(1)) });
        assert_eq!((state(&window).least_rtt, window.ssthresh), (Some(ms(1)), 1_000.0));
        cubic.on_ack(&mut window, Ack { una: 45, ..ack(ms(10) + us(1_100), ms(1)) });
        close(window.ssthresh, 20.0);
    }
}
