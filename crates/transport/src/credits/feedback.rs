//! The feedback control of the credit rate: MaxPass Alg. 1, which restates ExpressPass, and
//! MaxPass Alg. 2, its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rate of delivered credits in MaxPass Alg. 1 line 14 and MaxPass Alg. 2 line 20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decrease {
    /// Credits that data answered in the period, over its length.
    #[default]
    Measured,
    /// `cur_rate x (1 - credit_loss)`, as printed. The loss is that of credits sent a round trip
    /// ago, so a rate that was lowered once is lowered for the same loss again.
    AsPrinted,
}

/// Interpretation of MaxPass Alg. 2 line 9: the aggressiveness factor w of one of n subflows, from
/// the second increase in a row on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// w grows as in MaxPass Alg. 1, and every step towards the highest rate is `w / n^2`.
    #[default]
    Weighted,
    /// `w = (w + w_max) / (2 n^2)`, which makes w smaller, not larger, for most n.
    AsPrinted,
}

/// Interpretation of MaxPass Alg. 2 line 21: the rate after a decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateCut {
    /// `max(cur_rate / 2, min_rate)`.
    #[default]
    Half,
    /// `min(cur_rate / 2, min_rate)`: after one decrease, no more than the least rate.
    AsPrinted,
}

/// Which algorithm controls the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Law {
    /// MaxPass Alg. 1.
    ExpressPass,
    /// MaxPass Alg. 2 without lines 15 to 18, which are about paths.
    MaxPass { growth: Growth, cut: RateCut },
}

/// The constants of the algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rules {
    pub w_init: f64,
    pub w_min: f64,
    pub w_max: f64,
    pub target_loss: f64,
    pub decrease: Decrease,
    pub law: Law,
}

/// Feedback from the data of an update period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Period {
    /// Credits that data told of, answered or lost; at least one.
    pub told: u32,
    /// Lost credits among those of `told`.
    pub lost: u32,
    /// Credits answered, over those that the cable could have carried in that time.
    pub throughput: f64,
    /// The least rate: a receiver that sends nothing hears nothing.
    pub least: f64,
    /// How many loops of credits the flow has; at least one.
    pub subflows: u32,
}

/// A credit rate, as a share of what the receiver's own cable carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Control {
    /// `cur_rate / max_rate`: above 1 by as much as the target loss, since what is lost has to be
    /// sent, too.
    pub rate: f64,
    /// The aggressiveness factor.
    w: f64,
    /// Whether the previous phase was an increasing one.
    increased: bool,
    /// Decreasing phases since the last increasing one.
    pub decreases: u32,
}

impl Control {
    /// MaxPass Alg. 1 lines 1 and 2, MaxPass Alg. 2 lines 1 to 3; n comes with each period.
    pub const fn new(rules: &Rules, initial_rate: f64) -> Self {
        Self { rate: initial_rate, w: rules.w_init, increased: false, decreases: 0 }
    }

    /// The end of an update period: MaxPass Alg. 1 lines 3 to 5, MaxPass Alg. 2 lines 4 to 6.
    pub fn update(&mut self, rules: &Rules, period: Period) {
        let loss = f64::from(period.lost) / f64::from(period.told);
        let increases = loss <= rules.target_loss;
        if increases {
            self.increase(rules, period);
            self.decreases = 0;
        } else {
            self.decrease(rules, period, loss);
            self.decreases += 1;
        }
        self.increased = increases;
    }

    /// The increasing phase, with `max_rate` = 1: MaxPass Alg. 1 lines 6 to 11, MaxPass Alg. 2
    /// lines 7 to 12.
    fn increase(&mut self, rules: &Rules, period: Period) {
        let weight = f64::from(period.subflows).powi(2);
        let (divisor, share) = match rules.law {
            Law::ExpressPass => (1.0, 1.0),
            Law::MaxPass { growth: Growth::Weighted, .. } => (1.0, weight),
            Law::MaxPass { growth: Growth::AsPrinted, .. } => (weight, 1.0),
        };
        if self.increased {
            self.w = f64::midpoint(self.w, rules.w_max) / divisor;
        }
        let step = self.w / share;
        self.rate = ((1.0 - step) * self.rate + step * (1.0 + rules.target_loss)).max(period.least.min(1.0));
    }

    /// The decreasing phase: MaxPass Alg. 1 lines 12 to 16, MaxPass Alg. 2 lines 13, 14 and 19 to
    /// 22.
    fn decrease(&mut self, rules: &Rules, period: Period, loss: f64) {
        let through = match rules.decrease {
            Decrease::AsPrinted => self.rate * (1.0 - loss),
            Decrease::Measured => period.throughput,
        };
        let rate = self.rate.min(through * (1.0 + rules.target_loss));
        let least = period.least.min(1.0);
        self.rate = match rules.law {
            Law::ExpressPass => rate.max(least),
            Law::MaxPass { cut: RateCut::Half, .. } => (rate / 2.0).max(least),
            Law::MaxPass { cut: RateCut::AsPrinted, .. } => (rate / 2.0).min(least).max(LEAST_PRINTED),
        };
        self.w = (self.w / 2.0).max(rules.w_min);
    }
}

/// MaxPass Alg. 2 line 21 as printed has no bound below, but a rate of zero would be for ever: a
/// credit in a million that the cable carries.
const LEAST_PRINTED: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        w_init: 0.25,
        w_min: 0.1,
        w_max: 0.5,
        target_loss: 0.1,
        decrease: Decrease::AsPrinted,
        law: Law::ExpressPass,
    };

    fn period(lost: u32, told: u32) -> Period {
        Period { told, lost, throughput: 0.3, least: 0.0, subflows: 2 }
    }

    fn after(rules: &Rules, periods: &[(u32, u32)]) -> Control {
        let mut control = Control::new(rules, 0.5);
        for &(lost, told) in periods {
            control.update(rules, period(lost, told));
        }
        control
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn algorithm_1_by_hand() {
        // Increase: 0.75 x 0.5 + 0.25 x 1.1 = 0.65. The loss may be as high as the target.
        let once = after(&RULES, &[(1, 10)]);
        assert_close(once.rate, 0.65);
        assert_close(once.w, 0.25);
        // Twice in a row: w = (0.25 + 0.5) / 2 = 0.375; 0.625 x 0.65 + 0.375 x 1.1 = 0.81875.
        let twice = after(&RULES, &[(0, 10), (0, 10)]);
        assert_close(twice.rate, 0.818_75);
        assert_close(twice.w, 0.375);
        // Decrease: 0.81875 x (1 - 0.4) x 1.1 = 0.540375; w = 0.1875.
        let decreased = after(&RULES, &[(0, 10), (0, 10), (4, 10)]);
        assert_close(decreased.rate, 0.540_375);
        assert_close(decreased.w, 0.187_5);
        // The first increase after it leaves w: 0.8125 x 0.540375 + 0.1875 x 1.1 = 0.6453046875.
        assert_close(after(&RULES, &[(0, 10), (0, 10), (4, 10), (0, 9)]).rate, 0.645_304_687_5);
    }

    #[test]
    fn what_got_through_is_the_new_rate_however_often_its_loss_is_told() {
        let rules = Rules { decrease: Decrease::Measured, ..RULES };
        // 0.3 of the cable got through: 0.3 x 1.1, once and for all.
        assert_close(after(&rules, &[(4, 10)]).rate, 0.33);
        assert_close(after(&rules, &[(4, 10), (4, 10)]).rate, 0.33);
        // A decrease never raises the rate.
        let mut control = Control::new(&rules, 0.2);
        control.update(&rules, period(4, 10));
        assert_close(control.rate, 0.2);
    }

    #[test]
    fn w_stays_between_its_bounds_and_the_rate_above_the_least_and_at_most_the_target_over_the_highest() {
        assert_close(after(&RULES, &[(5, 10); 9]).w, RULES.w_min);
        let grown = after(&RULES, &[(0, 10); 60]);
        assert!(grown.w <= RULES.w_max && grown.rate <= 1.1 && grown.rate > 1.099);
        let mut starved = Control::new(&RULES, 0.5);
        starved.update(&RULES, Period { least: 0.02, ..period(10, 10) });
        assert_close(starved.rate, 0.02);
        starved.update(&RULES, Period { least: 7.0, ..period(10, 10) });
        assert_close(starved.rate, 1.0);
    }

    fn maxpass(growth: Growth, cut: RateCut) -> Rules {
        Rules { law: Law::MaxPass { growth, cut }, ..RULES }
    }

    #[test]
    fn algorithm_2_by_hand_as_it_is_meant() {
        let rules = maxpass(Growth::Weighted, RateCut::Half);
        // Two subflows: a quarter of w. 0.9375 x 0.5 + 0.0625 x 1.1 = 0.5375.
        assert_close(after(&rules, &[(1, 10)]).rate, 0.537_5);
        // w = 0.375, a step of 0.09375: 0.90625 x 0.5375 + 0.09375 x 1.1 = 0.590234375.
        let twice = after(&rules, &[(0, 10), (0, 10)]);
        assert_close(twice.rate, 0.590_234_375);
        assert_close(twice.w, 0.375);
        // 0.590234375 x (1 - 0.4) x 1.1 / 2.
        let decreased = after(&rules, &[(0, 10), (0, 10), (4, 10)]);
        assert_close(decreased.rate, 0.590_234_375 * 0.33);
        assert_close(decreased.w, 0.187_5);
    }

    #[test]
    fn algorithm_2_by_hand_as_it_is_printed() {
        let rules = maxpass(Growth::AsPrinted, RateCut::AsPrinted);
        assert_close(after(&rules, &[(0, 10)]).rate, 0.65);
        // w = (0.25 + 0.5) / 8 = 0.09375: less than it was.
        let twice = after(&rules, &[(0, 10), (0, 10)]);
        assert_close(twice.w, 0.093_75);
        assert_close(twice.rate, 0.906_25 * 0.65 + 0.093_75 * 1.1);
        // One decrease pins the rate to the least one, or below.
        let mut pinned = Control::new(&rules, 0.5);
        pinned.update(&rules, Period { least: 0.02, ..period(2, 10) });
        assert_close(pinned.rate, 0.02);
        pinned.update(&rules, Period { least: 0.02, ..period(2, 10) });
        assert_close(pinned.rate, 0.02 * 0.8 * 1.1 / 2.0);
    }

    #[test]
    fn one_subflow_of_maxpass_grows_as_expresspass_does_and_falls_to_half() {
        let alone = |rules: &Rules| {
            let mut control = Control::new(rules, 0.5);
            for _ in 0..5 {
                control.update(rules, Period { subflows: 1, ..period(0, 10) });
            }
            control
        };
        for growth in [Growth::Weighted, Growth::AsPrinted] {
            let rules = maxpass(growth, RateCut::Half);
            let (mut control, mut other) = (alone(&rules), alone(&RULES));
            assert_eq!(control, other);
            control.update(&rules, period(5, 10));
            other.update(&RULES, period(5, 10));
            assert_close(control.rate, other.rate / 2.0);
        }
    }

    #[test]
    fn decreases_are_counted_until_the_next_increase() {
        for (periods, count) in [
            (vec![(5, 10), (5, 10), (5, 10)], 3),
            (vec![(5, 10), (0, 10), (5, 10)], 1),
            (vec![(5, 10), (5, 10), (1, 10)], 0),
        ] {
            assert_eq!(after(&maxpass(Growth::Weighted, RateCut::Half), &periods).decreases, count);
        }
    }
}
