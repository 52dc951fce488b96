//! The congestion index of a port, in whole numbers: from its queue behaviour to its weight.

use super::polynomial::Polynomial;

/// How the congestion index follows from occupancy, interval and trend.
#[derive(Debug, Clone)]
pub enum Formula {
    /// Occupancy times the time constant less the interval, times the trend, which is one number
    /// for a queue that grows and one for a queue that shrinks: QALL eq. 4.
    Product {
        /// V of a queue that grows.
        rising: u8,
        /// V of a queue that shrinks.
        falling: u8,
    },
    /// Traffic as a polynomial of occupancy and interval: QALL eqs. 11 to 13.
    Polynomial(Polynomial),
}

/// The unit of fixed-point numbers: a full queue, and a hundredth of a port's rate.
pub const ONE: u64 = 1 << 10;
/// Places on each axis, less one, at which the largest value of a polynomial is looked for.
const GRID: u64 = 64;
/// The largest value of a polynomial: a port sends at most its rate.
const ALL_OF_THE_RATE: f64 = 100.0;

/// The index, with its parameters worked out.
#[derive(Debug, Clone)]
pub struct Index {
    formula: Formula,
    /// The time constant, in ticks.
    tau: u64,
    /// `C_max`.
    max: u64,
    /// The smallest weight.
    floor: u64,
}

impl Index {
    /// The index of a formula. `tau` is in ticks, at least 1; `floor_percent` of `C_max` is the
    /// smallest weight.
    pub fn new(formula: Formula, tau: u64, floor_percent: u8) -> Self {
        let mut index = Self { formula, tau, max: u64::MAX, floor: 0 };
        index.max = match &index.formula {
            // QALL §IV-C: C_max is the value for a full queue, no interval and a rising trend.
            Formula::Product { .. } => index.congestion(ONE, 0, true),
            Formula::Polynomial(polynomial) => largest(polynomial),
        };
        index.floor = index.max * u64::from(floor_percent) / 100;
        index
    }

    /// The congestion index, from 0 to `C_max`. `occupancy` is in parts of [`ONE`], at most that;
    /// `ticks` is the dequeue interval: beyond the time constant it counts as the time constant.
    pub fn congestion(&self, occupancy: u64, ticks: u64, is_rising: bool) -> u64 {
        let ticks = ticks.min(self.tau);
        match &self.formula {
            // QALL eq. 4: C = L (tau - T) V.
            &Formula::Product { rising, falling } => {
                let trend = if is_rising { rising } else { falling };
                occupancy * (self.tau - ticks) * u64::from(trend)
            }
            Formula::Polynomial(polynomial) => {
                let interval = ticks as f64 / self.tau as f64;
                within_rate(polynomial.value(occupancy as f64 / ONE as f64, interval)).min(self.max)
            }
        }
    }

    /// QALL eq. 6: W = `C_max` - C.
    pub fn weight(&self, occupancy: u64, ticks: u64, is_rising: bool) -> u64 {
        (self.max - self.congestion(occupancy, ticks, is_rising)).max(self.floor)
    }

    /// Registers that a controller writes into the switch: see
    /// [`SwitchScheme::registers`](crate::SwitchScheme::registers). Of a polynomial, no numbers
    /// that tables of a switch could hold as they are.
    pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("time_constant_ticks", 0, self.tau);
        set("max", 0, self.max);
        set("floor", 0, self.floor);
        if let &Formula::Product { rising, falling } = &self.formula {
            set("rising", 0, rising.into());
            set("falling", 0, falling.into());
        }
    }

    /// `C_max`.
    #[cfg(test)]
    pub const fn max(&self) -> u64 {
        self.max
    }
}

/// A value of a polynomial in parts of [`ONE`], rounded down: traffic is not negative, and at most
/// the rate.
fn within_rate(value: f64) -> u64 {
    (value.clamp(0.0, ALL_OF_THE_RATE) * ONE as f64) as u64
}

/// The largest value of a polynomial for L and T from 0 to 1.
fn largest(polynomial: &Polynomial) -> u64 {
    let places = || (0..=GRID).map(|place| place as f64 / GRID as f64);
    let values = places().flat_map(|l| places().map(move |t| within_rate(polynomial.value(l, t))));
    values.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::polynomial::{Cubic, Form};
    use super::*;

    const LINEAR: (Form, Cubic) = (Form::Linear, Cubic::Eq13);
    const POLY2: (Form, Cubic) = (Form::Poly2, Cubic::Eq13);
    const CUBICS: [(Form, Cubic); 2] = [(Form::Poly3, Cubic::Eq13), (Form::Poly3, Cubic::Eq10)];

    fn product() -> Index {
        Index::new(Formula::Product { rising: 2, falling: 1 }, 10_000, 0)
    }

    fn polynomial((form, cubic): (Form, Cubic)) -> Index {
        Index::new(Formula::Polynomial(Polynomial::published(form, cubic)), 10_000, 0)
    }

    #[test]
    fn the_product_is_equation_4_by_hand() {
        let index = product();
        assert_eq!(index.max(), 1_024 * 10_000 * 2);
        // Half full, 2,000 us of 10,000 us: 512 x 8,000, twice that when rising.
        assert_eq!(index.congestion(512, 2_000, false), 4_096_000);
        assert_eq!(index.congestion(512, 2_000, true), 8_192_000);
        assert_eq!(index.weight(512, 2_000, true), 20_480_000 - 8_192_000);
        assert_eq!(index.weight(0, 0, true), index.max(), "an empty queue has all the weight");
        assert_eq!(index.weight(ONE, 0, true), 0, "a full one has none");
        assert_eq!(
            index.congestion(ONE, 50_000, true),
            0,
            "a longer interval than the time constant is the constant"
        );
    }

    #[test]
    fn a_polynomial_below_zero_is_no_congestion_and_none_is_above_the_rate_or_its_maximum() {
        assert_eq!(polynomial(LINEAR).congestion(0, 10_000, false), 0, "equation 11 is -30 there");
        assert_eq!(polynomial(LINEAR).max(), 42 * ONE);
        assert_eq!(polynomial(POLY2).max(), 100 * ONE, "equation 12 is 127 at (1, 1)");
        for form in [LINEAR, POLY2].into_iter().chain(CUBICS) {
            let index = polynomial(form);
            for (l, t) in (0..=ONE).step_by(7).flat_map(|l| (0..12_000).step_by(61).map(move |t| (l, t))) {
                assert!(index.congestion(l, t, true) <= index.max(), "{form:?} at {l}, {t}");
            }
        }
    }

    #[test]
    fn fits_of_degree_2_and_3_take_a_full_queue_for_less_congested_than_one_a_third_full() {
        // At T = 0, QALL eq. 12 has its peak at L = 79 / 212; QALL eq. 13 falls from L = 0.234 on.
        // QALL eq. 4 and QALL eq. 11 never fall.
        for form in [POLY2].into_iter().chain(CUBICS) {
            let index = polynomial(form);
            assert!(index.congestion(ONE, 0, true) < index.congestion(ONE / 3, 0, true), "{form:?}");
        }
        for index in [product(), polynomial(LINEAR)] {
            let rise: Vec<u64> = (0..=ONE).step_by(64).map(|l| index.congestion(l, 100, true)).collect();
            assert!(rise.is_sorted(), "{:?}: {rise:?}", index.formula);
        }
    }

    #[test]
    fn a_polynomial_of_any_degree_is_worked_out_from_shares_of_the_queue_and_of_the_time_constant() {
        // 1 + 10 L - 5 T at (1/2, 1/5).
        let index = Index::new(Formula::Polynomial(Polynomial::new(&[1.0, 10.0, -5.0]).unwrap()), 10_000, 0);
        assert_eq!(index.congestion(512, 2_000, false), 5 * ONE);
        assert_eq!(index.max(), 11 * ONE);
        // 64 T^4 at T = 1/2.
        let mut coefficients = [0.0; 15];
        coefficients[14] = 64.0;
        let index = Index::new(Formula::Polynomial(Polynomial::new(&coefficients).unwrap()), 10_000, 0);
        assert_eq!(index.congestion(0, 5_000, false), 4 * ONE);
    }

    #[test]
    fn the_floor_is_a_share_of_the_largest_weight() {
        let index = Index::new(Formula::Product { rising: 2, falling: 1 }, 100, 10);
        assert_eq!(index.weight(ONE, 0, true), ONE * 100 * 2 / 10);
        assert_eq!(index.weight(0, 0, true), ONE * 100 * 2);
    }
}
