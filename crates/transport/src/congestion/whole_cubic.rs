//! CUBIC as Linux counts it: in whole segments and milliseconds.
//!
//! It is the function of RFC 9438, but for three things. What it says is looked at once a
//! millisecond at most, and not at all for 32 ms where the window stays as it is; then the window
//! follows in jumps. The Reno-friendly window grows by 8/15 segments a window of acknowledgements
//! from beginning to end, where RFC 9438 §4.3 goes on with 1 above the window before the loss. And
//! a loss leaves seven tenths of the window, not of what is unacknowledged.

use weft_units::{Span, Time};

/// Constants of CUBIC that all flows share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// `C`, in parts of 1,024.
    c: u64,
    /// `beta_cubic`, in parts of 1,024.
    beta: u64,
    /// A segment more of the Reno-friendly window takes so many eighths of a window.
    reno_eighths: u64,
    /// Before the first loss a segment more takes so many acknowledged ones at most, if there is a
    /// limit.
    first_step: Option<u64>,
}

/// CUBIC state of a flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    epoch: Option<Epoch>,
    /// Segments that were acknowledged, and do not count in the Reno-friendly window yet.
    uncounted: u64,
    /// A segment more takes so many acknowledged ones.
    step: u64,
    /// Those that count towards the next.
    credit: u64,
    /// The window that was last looked at, and when, in ms.
    seen: u64,
    seen_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Epoch {
    start_ms: u64,
    /// `K`, in parts of 1,024 of a second.
    k: u64,
    origin: u64,
    /// The Reno-friendly window.
    reno: u64,
}

/// `HZ / 32`.
const PATIENCE_MS: u64 = 31;
/// So many windows are to be acknowledged for a segment more where the function says that there is
/// none.
const FLAT: u64 = 100;
/// The window grows by half in a round trip at most.
const LEAST_STEP: u64 = 2;

impl Rules {
    pub fn new(c: f64, beta: f64, first_growth: f64) -> Self {
        let part = |share: f64| (share * 1024.0).round().max(1.0) as u64;
        let beta = part(beta).min(1023);
        Self {
            c: part(c),
            beta,
            reno_eighths: 8 * (1024 + beta) / 3 / (1024 - beta),
            first_step: (first_growth > 0.0).then(|| (1.0 / first_growth) as u64),
        }
    }

    /// Window after a loss or a mark.
    pub fn left(&self, window: f64) -> f64 {
        (window as u64 * self.beta / 1024) as f64
    }

    /// RFC 9438 §4.7.
    pub fn yielded(&self, window: f64) -> f64 {
        (window as u64 * (1024 + self.beta) / 2048) as f64
    }

    /// By how many segments the window grows in congestion avoidance, on so many acknowledged ones.
    /// `w_max`: the window before the last loss, or 0; `least_rtt`: of all samples.
    pub fn increase(
        &self,
        state: &mut State,
        (window, w_max): (f64, f64),
        acked: u32,
        (now, least_rtt): (Time, Span),
    ) -> f64 {
        let (window, w_max, acked) = (window as u64, w_max as u64, u64::from(acked));
        let now_ms = now.as_ps() / Span::from_ms(1).as_ps();
        state.uncounted += acked;
        if state.seen != window || now_ms.saturating_sub(state.seen_ms) > PATIENCE_MS {
            self.look(state, (window, w_max), acked, (now_ms, least_rtt));
        }
        state.grow(acked) as f64
    }

    /// Looks at what the function says now.
    fn look(
        &self,
        state: &mut State,
        (window, w_max): (u64, u64),
        acked: u64,
        (now_ms, least_rtt): (u64, Span),
    ) {
        if state.epoch.is_none() || now_ms != state.seen_ms {
            (state.seen, state.seen_ms) = (window, now_ms);
            let epoch = *state.epoch.get_or_insert_with(|| {
                state.uncounted = acked;
                self.epoch(window, w_max, now_ms)
            });
            let ms = now_ms - epoch.start_ms + least_rtt.as_ps().div_ceil(Span::from_ms(1).as_ps());
            let target = self.at(&epoch, ms * 1024 / 1000);
            state.step = if target > window { window / (target - window) } else { FLAT * window };
            if let Some(most) = self.first_step.filter(|_| w_max == 0) {
                state.step = state.step.min(most);
            }
        }
        if let Some(epoch) = &mut state.epoch {
            let a_segment = (window * self.reno_eighths / 8).max(1);
            // Linux takes them away one by one as long as there are more.
            let more = state.uncounted.saturating_sub(1) / a_segment;
            state.uncounted -= more * a_segment;
            epoch.reno += more;
            if epoch.reno > window {
                state.step = state.step.min(window / (epoch.reno - window));
            }
        }
        state.step = state.step.max(LEAST_STEP);
    }

    fn epoch(&self, window: u64, w_max: u64, now_ms: u64) -> Epoch {
        let (k, origin) = match w_max.checked_sub(window) {
            // RFC 9438 eq. 2.
            Some(below) if below > 0 => (cube_root((1 << 40) / self.c * below), w_max),
            _ => (0, window),
        };
        Epoch { start_ms: now_ms, k, origin, reno: window }
    }

    /// RFC 9438 eq. 1, so many parts of 1,024 of a second into the stage.
    fn at(&self, epoch: &Epoch, t: u64) -> u64 {
        let away = u128::from(t.abs_diff(epoch.k));
        let by = (u128::from(self.c) * away * away * away) >> 40;
        let by = u64::try_from(by).unwrap_or(u64::MAX);
        if t < epoch.k { epoch.origin.saturating_sub(by) } else { epoch.origin.saturating_add(by) }
    }
}

impl State {
    /// A loss, or a mark: the stage is over.
    pub const fn ends(&mut self) {
        (self.epoch, self.credit) = (None, 0);
    }

    /// When the stage began, if one has.
    pub fn began(&self) -> Option<Time> {
        self.epoch.map(|epoch| Time::ZERO + Span::from_ms(epoch.start_ms))
    }

    /// Segments that so many acknowledged ones add.
    const fn grow(&mut self, acked: u64) -> u64 {
        let mut more = 0;
        if self.credit >= self.step {
            // The step was longer when they came.
            (self.credit, more) = (0, 1);
        }
        self.credit += acked;
        more += self.credit / self.step;
        self.credit %= self.step;
        more
    }
}

/// The cube root, rounded down. Linux' own is off by a thousandth or two.
fn cube_root(x: u64) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 22);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if u128::from(middle).pow(3) <= u128::from(x) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> Rules {
        Rules::new(0.4, 0.7, 0.05)
    }

    /// The window after each millisecond, a round trip each, in which a whole window is
    /// acknowledged.
    fn rounds(rules: Rules, window: &mut f64, w_max: f64, rounds: u64) -> Vec<f64> {
        let (mut state, rtt) = (State::default(), Span::from_ms(1));
        let round = |ms: u64| {
            for _ in 0..*window as u64 {
                let now = Time::ZERO + Span::from_ms(ms);
                *window += rules.increase(&mut state, (*window, w_max), 1, (now, rtt));
            }
            *window
        };
        (1..=rounds).map(round).collect()
    }

    #[test]
    fn numbers_are_those_of_linux() {
        let Rules { c, beta, reno_eighths, first_step } = linux();
        assert_eq!((c, beta, reno_eighths, first_step), (410, 717, 15, Some(20)));
        assert_eq!((linux().left(10.0), linux().left(100.0)), (7.0, 70.0));
        assert_eq!(linux().yielded(70.0) as u64, 59);
        for root in [0, 1, 2, 1_624, 99_999] {
            assert_eq!(cube_root(root * root * root), root);
            assert_eq!(cube_root(root * root * root + 3 * root), root);
        }
    }

    #[test]
    fn before_the_first_loss_a_twentieth_of_the_window_is_added_each_round_trip() {
        let windows = rounds(linux(), &mut 100.0, 0.0, 10);
        assert!((104.0..=106.0).contains(&windows[0]), "{windows:?}");
        assert!((windows[9] / windows[0] - 1.05f64.powi(9)).abs() < 0.03, "{windows:?}");
    }

    /// A window of 100 segments shrinks to 70. The function is flat for seconds, so that the window
    /// stays until 32 ms have passed, but for a segment by rounding. Then it catches up at once
    /// with what Reno would have, 8/15 segments each round trip, and stays again.
    #[test]
    fn on_short_paths_the_window_stays_for_32_ms_and_then_catches_up_with_reno() {
        let windows = rounds(linux(), &mut 70.0, 100.0, 60);
        assert!(windows[..33].iter().all(|window| (70.0..=71.0).contains(window)), "{windows:?}");
        assert!((windows[33] - (70.0 + 34.0 * 8.0 / 15.0)).abs() <= 2.0, "{windows:?}");
        assert_eq!(windows[33] as u64, windows[59] as u64, "{windows:?}");
    }

    /// Above the window before the loss RFC 9438 has a segment each round trip; Linux goes on with
    /// 8/15.
    #[test]
    fn above_the_window_before_the_loss_it_grows_no_faster() {
        let windows = rounds(linux(), &mut 20.0, 24.0, 200);
        let step = (windows[199] - windows[99]) / 100.0;
        assert!((step - 8.0 / 15.0).abs() < 0.05, "{step}: {windows:?}");
    }

    /// With 100 ms a round trip the function itself rules: K = cbrt(30 / 0.4) = 4.2 s.
    #[test]
    fn on_long_paths_it_is_the_cubic_function() {
        let (rules, mut state, mut window, rtt) = (linux(), State::default(), 70.0, Span::from_ms(100));
        for round in 0..80 {
            for _ in 0..window as u64 {
                let now = Time::ZERO + Span::from_ms(100 * round);
                window += rules.increase(&mut state, (window, 100.0), 1, (now, rtt));
            }
            let t = 0.1 * (round as f64 + 1.0) - (30.0f64 / 0.4).cbrt();
            let expected = 0.4 * t * t * t + 100.0;
            // The Reno-friendly window is lower but at first: 70 + 8/15 a round trip.
            let expected = expected.max(70.0 + (round as f64 + 1.0) * 8.0 / 15.0);
            assert!((window - expected).abs() <= 0.03 * expected, "round {round}: {window}, not {expected}");
        }
    }
}
