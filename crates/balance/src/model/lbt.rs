//! LBT's thresholds (LBT §4.1): how long a queue may grow before long and best-effort flows leave
//! it.
//!
//! The paper's load `P · X` is read as the bytes of a class in one period `t`, for only so do LBT
//! eqs. 1 and 2 give a load and LBT eqs. 8 and 10 a difference of bytes; the rate of a class is
//! then `P · X / t`. In LBT eq. 3 the waiting time is not divided by `X_s`, for only so is the
//! result a time. LBT eqs. 6 and 7 print `Q + G` where LBT eqs. 8 and 10 need `Q + G t`.
//!
//! With that, LBT eq. 9 solves LBT eqs. 1, 3 and 5 for the number of paths: it says how many paths
//! make short flows take `E[FCT_s]`. If `E[FCT_s]` is the mean at the load that is there, the
//! answer is the number of paths that are there.

mod inputs;

pub use inputs::Inputs;

/// Givens of the formulas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// `K`: equivalent paths, above 0.
    pub paths: f64,
    /// `G`: what one path carries (bytes/s), above 0.
    pub rate: f64,
    /// `t`: the period in which the load was measured (s), above 0.
    pub period_s: f64,
    /// `W`: the largest window (bytes).
    pub window_bytes: f64,
    /// `m`: what slow start begins with (bytes), above 0.
    pub segment_bytes: f64,
    /// `E[FCT_s]`, if it is a fixed target (s); otherwise it is the mean that LBT eq. 3 gives at
    /// the measured load.
    pub short_fct_s: Option<f64>,
}

/// Load of a class in one period.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClassLoad {
    /// `P`: flows that sent something.
    pub flows: f64,
    /// `P · X`: the bytes that they sent.
    pub bytes: f64,
}

/// Load of all classes in one period.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Short flows.
    pub short: ClassLoad,
    /// Long flows.
    pub long: ClassLoad,
    /// Best-effort flows.
    pub best_effort: ClassLoad,
}

/// `Q1` and `Q2` as the formulas give them (bytes): negative, or infinite, if they do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// `Q1`, of long flows.
    pub long: f64,
    /// `Q2`, of best-effort flows.
    pub best_effort: f64,
}

/// Thresholds, and the intermediate results that lead to them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solution {
    /// `K_s`, `K_l`, `K_b`: paths of each class.
    pub shares: [f64; 3],
    /// `X_s`: mean size of a short flow (bytes), at least a segment.
    pub size: f64,
    /// `Z1` and `Z2`: the paths that short and long flows need, and that all flows need.
    pub needed: [f64; 2],
    /// `Q1` and `Q2`.
    pub thresholds: Thresholds,
}

/// Limits of a threshold in a switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The smallest `Q1` (bytes).
    pub least: u64,
    /// The largest threshold (bytes), at least `least`.
    pub most: u64,
    /// `Q2` is at least this many times `Q1`, unless that is beyond `most`: LBT §5 wants it larger.
    pub ratio: u64,
}

impl Load {
    /// This load, `factor` times over, with the same flows: the same mix, stronger.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let scale = |class: ClassLoad| ClassLoad { bytes: class.bytes * factor, ..class };
        Self { short: scale(self.short), long: scale(self.long), best_effort: scale(self.best_effort) }
    }

    /// The bytes of all classes.
    pub fn total(&self) -> f64 {
        self.short.bytes + self.long.bytes + self.best_effort.bytes
    }
}

impl Model {
    /// The load that `bytes` in a period put on all paths, 1 if they fill them (LBT eqs. 1 and 2).
    pub fn strength(&self, bytes: f64) -> f64 {
        bytes / (self.paths * self.rate * self.period_s)
    }

    /// Round trips that slow start needs for `size` bytes: `log2(X_s / m) + 1`, at least one (LBT
    /// §4.1).
    pub fn rounds(&self, size: f64) -> f64 {
        libm::log2((size / self.segment_bytes).max(1.0)) + 1.0
    }

    /// `E[W_q]`: the mean wait in a queue of this load (s), infinite from load 1 on (LBT eq. 5,
    /// which is LBT LBT eq. 4 for times of service that are all W / G).
    pub fn wait_s(&self, load: f64) -> f64 {
        if load >= 1.0 {
            return f64::INFINITY;
        }
        load / (2.0 * (1.0 - load)) * self.window_bytes / self.rate
    }

    /// `E[FCT_s]`: how long a short flow of `size` bytes takes at this load (s; LBT eq. 3).
    pub fn short_fct_s(&self, load: f64, size: f64) -> f64 {
        self.rounds(size) * self.wait_s(load) + size / self.rate
    }

    /// `Z`: over how many paths `bytes` in a period must be spread for short flows of `size` bytes
    /// to take `fct_s` (LBT LBT eqs. 9 and 11). Infinite if no number of paths is enough.
    pub fn paths_for(&self, bytes: f64, size: f64, fct_s: f64) -> f64 {
        let waiting_s = fct_s - size / self.rate;
        if waiting_s <= 0.0 {
            return f64::INFINITY;
        }
        let rate = bytes / self.period_s;
        let wait = self.window_bytes * self.rounds(size) * rate / (2.0 * waiting_s * self.rate * self.rate);
        wait + rate / self.rate
    }

    /// How long the queue of each of `paths` may grow for `bytes` in a period to go through them
    /// (bytes; LBT eqs. 8 and 10). Negative if they have room to spare; infinite if there is no
    /// path for what there is to send.
    pub fn threshold(&self, bytes: f64, paths: f64) -> f64 {
        let carried = self.rate * self.period_s;
        if bytes == 0.0 {
            return -carried;
        }
        if paths > 0.0 { bytes / paths - carried } else { f64::INFINITY }
    }

    /// `K_s`, `K_l` and `K_b`: shares of the paths in proportion to the flows of each class;
    /// without a flow they are zero.
    pub fn shares(&self, load: &Load) -> [f64; 3] {
        let Load { short, long, best_effort } = load;
        let flows = short.flows + long.flows + best_effort.flows;
        let share = |class: &ClassLoad| if flows > 0.0 { self.paths * class.flows / flows } else { 0.0 };
        [share(short), share(long), share(best_effort)]
    }

    /// LBT eqs. 8 to 11 at this load, if the classes have these shares of the paths.
    pub fn solve(&self, load: &Load, shares: [f64; 3]) -> Solution {
        let Load { short, long, best_effort } = load;
        let size = (short.bytes / short.flows.max(1.0)).max(self.segment_bytes);
        // Without a target, E[FCT_s] is LBT eq. 3 at the load of LBT eq. 1 (LBT eq. 2), and LBT eq.
        // 9 (11) gives K back.
        let z = |bytes| self.short_fct_s.map_or(self.paths, |fct_s| self.paths_for(bytes, size, fct_s));
        let needed = [z(short.bytes + long.bytes), z(load.total())];
        let [ks, kl, kb] = shares;
        let thresholds = Thresholds {
            long: self.threshold(long.bytes, needed[0] - (ks + kb)),
            best_effort: self.threshold(best_effort.bytes, needed[1] - (ks + kl)),
        };
        Solution { shares, size, needed, thresholds }
    }

    /// Both thresholds at this load, with shares of the paths in proportion to flows.
    pub fn thresholds(&self, load: &Load) -> Thresholds {
        self.solve(load, self.shares(load)).thresholds
    }
}

impl Bounds {
    /// The thresholds within these bounds, `Q1` and `Q2` (bytes). A negative one becomes the least,
    /// an infinite one the most.
    pub fn apply(&self, raw: Thresholds) -> [u64; 2] {
        // A conversion of a float to an integer saturates; the formulas give no NaN.
        let long = (raw.long.max(0.0) as u64).clamp(self.least, self.most);
        let beyond = long.saturating_mul(self.ratio).min(self.most);
        [long, (raw.best_effort.max(0.0) as u64).clamp(beyond, self.most)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Four paths of 1 GB/s carry 500,000 B each in a period; a window takes 64 us.
    const MODEL: Model = Model {
        paths: 4.0,
        rate: 1e9,
        period_s: 500e-6,
        window_bytes: 64_000.0,
        segment_bytes: 1_000.0,
        short_fct_s: None,
    };

    fn load(classes: [(f64, f64); 3]) -> Load {
        let [short, long, best_effort] = classes.map(|(flows, bytes)| ClassLoad { flows, bytes });
        Load { short, long, best_effort }
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{found} is not {expected}");
    }

    #[test]
    fn waiting_and_completion_times_are_those_worked_out_by_hand() {
        assert_near(MODEL.strength(1_000_000.0), 0.5);
        assert_near(MODEL.rounds(8_000.0), 4.0);
        assert_near(MODEL.rounds(10.0), 1.0);
        // 0.5 / (2 x 0.5) windows of 64 us; 0.8 / (2 x 0.2) of them; none end at load 1.
        assert_near(MODEL.wait_s(0.5), 32e-6);
        assert_near(MODEL.wait_s(0.8), 128e-6);
        assert!(MODEL.wait_s(1.0).is_infinite() && MODEL.wait_s(1.5).is_infinite());
        // Four rounds of 32 us, and 8,000 B at 1 GB/s.
        assert_near(MODEL.short_fct_s(0.5, 8_000.0), 136e-6);
    }

    #[test]
    fn the_paths_that_a_completion_time_needs_are_those_worked_out_by_hand() {
        // 2 GB/s in all: 64,000 x 4 x 2e9 / (2 x 128e-6 x 1e18) = 2, and 2e9 / 1e9 = 2.
        assert_near(MODEL.paths_for(1_000_000.0, 8_000.0, 136e-6), 4.0);
        // Half the waiting time: 4 + 2.
        assert_near(MODEL.paths_for(1_000_000.0, 8_000.0, 72e-6), 6.0);
        assert!(MODEL.paths_for(1_000_000.0, 8_000.0, 8e-6).is_infinite(), "no time to wait at all");
    }

    #[test]
    fn thresholds_are_those_worked_out_by_hand() {
        // 1,000,000 B over 1, 2 and 4 paths, each of which carries 500,000 B.
        let over = |paths| MODEL.threshold(1_000_000.0, paths);
        assert_near(over(1.0), 500_000.0);
        assert_near(over(2.0), 0.0);
        assert_near(over(4.0), -250_000.0);
        assert!(over(0.0).is_infinite() && over(-1.0).is_infinite());
        assert_near(MODEL.threshold(0.0, 0.0), -500_000.0);
        // Of ten flows seven are short, two long, one best effort: 2.8, 0.8 and 0.4 paths.
        let mixed = load([(7.0, 150_000.0), (2.0, 600_000.0), (1.0, 240_000.0)]);
        let Thresholds { long, best_effort } = MODEL.thresholds(&mixed);
        assert_near(long, 600_000.0 / 0.8 - 500_000.0);
        assert_near(best_effort, 240_000.0 / 0.4 - 500_000.0);
        assert_eq!(MODEL.thresholds(&Load::default()), Thresholds { long: -5e5, best_effort: -5e5 });
    }

    #[test]
    fn thresholds_grow_with_the_load_and_with_the_number_of_short_flows() {
        // Kl = 0.8: (load, Q1). The paths carry 400,000 B of long flows before a queue must stand.
        let base = load([(8.0, 40_000.0), (2.0, 200_000.0), (0.0, 0.0)]);
        for (factor, q1) in [(1.0, -250_000.0), (2.0, 0.0), (3.0, 250_000.0), (6.0, 1_000_000.0)] {
            let found = MODEL.thresholds(&base.scaled(factor)).long;
            assert!((found - q1).abs() < 1e-6, "{found} is not {q1}");
        }
        let with_short = |flows| MODEL.thresholds(&load([(flows, 4e4), (2.0, 4e5), (0.0, 0.0)])).long;
        assert!(with_short(2.0) < with_short(8.0) && with_short(8.0) < with_short(30.0));
    }

    /// The finding of docs/schemes/lbt.md: with a fixed target the formula contradicts LBT §4.1.
    #[test]
    fn with_a_fixed_completion_time_thresholds_fall_as_the_load_grows() {
        let model = Model { short_fct_s: Some(136e-6), ..MODEL };
        // Five short flows of 8,000 B: Z1 is a path for each 250,000 B; Ks = 4 x 5 / 10 = 2.
        let at = |long| model.thresholds(&load([(5.0, 40_000.0), (5.0, long), (0.0, 0.0)])).long;
        assert!(at(400_000.0).is_infinite(), "fewer paths than short flows have: Z1 = 1.76");
        assert_near(at(710_000.0), 710_000.0 / 1.0 - 500_000.0);
        assert_near(at(960_000.0), 960_000.0 / 2.0 - 500_000.0);
        let tight = Model { short_fct_s: Some(8e-6), ..MODEL };
        let loaded = load([(5.0, 40_000.0), (5.0, 960_000.0), (0.0, 0.0)]);
        assert_near(tight.thresholds(&loaded).long, -500_000.0);
    }

    #[test]
    fn bounds_catch_negative_infinite_and_crossed_thresholds() {
        let bounds = Bounds { least: 4_500, most: 384_000, ratio: 2 };
        let apply = |long, best_effort| bounds.apply(Thresholds { long, best_effort });
        assert_eq!(apply(-1.0, -500_000.0), [4_500, 9_000]);
        assert_eq!(apply(20_000.0, 10_000.0), [20_000, 40_000], "Q2 is above Q1");
        assert_eq!(apply(20_000.0, 100_000.0), [20_000, 100_000]);
        assert_eq!(apply(300_000.0, 0.0), [300_000, 384_000], "but never above the most");
        assert_eq!(apply(f64::INFINITY, f64::INFINITY), [384_000, 384_000]);
    }

    fn any_load() -> impl Strategy<Value = Load> {
        let class = || (0u32..200, 0.0..1e7f64).prop_map(|(flows, bytes)| (f64::from(flows), bytes));
        [class(), class(), class()].prop_map(load)
    }

    proptest! {
        #[test]
        fn at_the_completion_time_that_the_load_gives_the_paths_are_those_that_there_are(
            strength in 0.01..0.99f64, size in 1e3..1e5f64, paths in 1.0..64.0f64,
        ) {
            let model = Model { paths, ..MODEL };
            let bytes = strength * paths * model.rate * model.period_s;
            let found = model.paths_for(bytes, size, model.short_fct_s(strength, size));
            prop_assert!((found / paths - 1.0).abs() < 1e-6, "{} of {}", found, paths);
        }

        #[test]
        fn more_of_the_same_never_lowers_a_threshold(load in any_load(), factor in 1.0..10.0f64) {
            let (before, after) = (MODEL.thresholds(&load), MODEL.thresholds(&load.scaled(factor)));
            prop_assert!(before.long <= after.long && before.best_effort <= after.best_effort);
        }

        #[test]
        fn no_load_gives_a_threshold_outside_its_bounds(load in any_load(), fct_us in 0.0..2_000f64, fixed: bool) {
            let model = Model { short_fct_s: fixed.then_some(fct_us * 1e-6), ..MODEL };
            let raw = model.thresholds(&load);
            prop_assert!(!raw.long.is_nan() && !raw.best_effort.is_nan());
            let [q1, q2] = Bounds { least: 4_500, most: 384_000, ratio: 2 }.apply(raw);
            prop_assert!((4_500..=384_000).contains(&q1) && (q1..=384_000).contains(&q2));
        }
    }
}
