//! The feedback control of the credit rate: MaxPass Algorithm 1, which restates ExpressPass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What line 14 takes for the rate at which credits got through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decrease {
    /// Credits that data answered in the period, over its length.
    #[default]
    Measured,
    /// `cur_rate x (1 - credit_loss)`, as printed. The loss is that of credits sent a round trip ago, so a rate that was
    /// lowered once is lowered for the same loss again.
    AsPrinted,
}

/// The constants of the algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rules {
    pub w_init: f64,
    pub w_min: f64,
    pub w_max: f64,
    pub target_loss: f64,
    pub decrease: Decrease,
}

/// What data told in an update period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Period {
    /// Credits that data told of, answered or lost; at least one.
    pub told: u32,
    /// Of these, credits that were lost.
    pub lost: u32,
    /// Credits answered, over those that the cable could have carried in that time.
    pub throughput: f64,
}

/// A receiver's credit rate, as a share of what its own cable carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Control {
    /// `cur_rate / max_rate`: above 1 by as much as the target loss, since what is lost has to be sent, too.
    pub rate: f64,
    /// The aggressiveness factor.
    w: f64,
    /// Whether the previous phase was an increasing one.
    increased: bool,
}

impl Control {
    /// Lines 1 and 2.
    pub const fn new(rules: &Rules, initial_rate: f64) -> Self {
        Self { rate: initial_rate, w: rules.w_init, increased: false }
    }

    /// Lines 4 to 17, at the end of an update period. The rate does not fall below `least`: a receiver that sends nothing
    /// hears nothing.
    pub fn update(&mut self, rules: &Rules, period: Period, least: f64) {
        let loss = f64::from(period.lost) / f64::from(period.told);
        if loss <= rules.target_loss {
            if self.increased {
                self.w = f64::midpoint(self.w, rules.w_max);
            }
            // Lines 10 and 11, with max_rate = 1.
            self.rate = (1.0 - self.w) * self.rate + self.w * (1.0 + rules.target_loss);
        } else {
            // Lines 14 to 16.
            let through = match rules.decrease {
                Decrease::AsPrinted => self.rate * (1.0 - loss),
                Decrease::Measured => period.throughput,
            };
            self.rate = self.rate.min(through * (1.0 + rules.target_loss));
            self.w = (self.w / 2.0).max(rules.w_min);
        }
        self.increased = loss <= rules.target_loss;
        self.rate = self.rate.max(least.min(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules =
        Rules { w_init: 0.25, w_min: 0.1, w_max: 0.5, target_loss: 0.1, decrease: Decrease::AsPrinted };

    fn period(lost: u32, told: u32) -> Period {
        Period { told, lost, throughput: 0.3 }
    }

    fn after(rules: &Rules, periods: &[(u32, u32)]) -> Control {
        let mut control = Control::new(rules, 0.5);
        for &(lost, told) in periods {
            control.update(rules, period(lost, told), 0.0);
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
        control.update(&rules, period(4, 10), 0.0);
        assert_close(control.rate, 0.2);
    }

    #[test]
    fn w_stays_between_its_bounds_and_the_rate_above_the_least_and_at_most_the_target_over_the_highest() {
        assert_close(after(&RULES, &[(5, 10); 9]).w, RULES.w_min);
        let grown = after(&RULES, &[(0, 10); 60]);
        assert!(grown.w <= RULES.w_max && grown.rate <= 1.1 && grown.rate > 1.099);
        let mut starved = Control::new(&RULES, 0.5);
        starved.update(&RULES, period(10, 10), 0.02);
        assert_close(starved.rate, 0.02);
        starved.update(&RULES, period(10, 10), 7.0);
        assert_close(starved.rate, 1.0);
    }
}
