//! The congestion index of a port, in whole numbers: from its queue behaviour to its weight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the congestion index follows from occupancy, interval and trend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Occupancy times the time constant less the interval, times the trend: equation 4.
    #[default]
    Product,
    /// A polynomial of degree 1, fitted: equation 11.
    Linear,
    /// A polynomial of degree 2, fitted: equation 12.
    Poly2,
    /// A polynomial of degree 3, fitted: equation 13, as printed.
    Poly3,
    /// As `poly3`, with the coefficient of L T that follows from equation 10.
    Poly3FromEq10,
}

/// Coefficients of a polynomial of degree 3 in L and T.
const TERMS: usize = 10;
/// The order: 1; L, T; L², LT, T²; L³, L²T, LT², T³.
type Coefficients = [i32; TERMS];

/// qall Eq. 11.
const LINEAR: Coefficients = [16, 26, -46, 0, 0, 0, 0, 0, 0, 0];
/// qall Eq. 12.
const POLY2: Coefficients = [17, 79, -89, -106, 142, 84, 0, 0, 0, 0];
/// qall Eq. 13.
const POLY3: Coefficients = [18, 89, -144, -251, 188, 347, 165, -2_294, -5_849, -225];
/// qall Eq. 10, times 100 and truncated as for Eq. 13: 18.873 makes 1887, not 188.
const POLY3_FROM_EQ10: Coefficients = [18, 89, -144, -251, 1_887, 347, 165, -2_294, -5_849, -225];

impl Form {
    /// How many coefficients a user may give; none for a form that is fixed.
    pub const fn terms(self) -> usize {
        match self {
            Self::Product | Self::Poly3FromEq10 => 0,
            Self::Linear => 3,
            Self::Poly2 => 6,
            Self::Poly3 => TERMS,
        }
    }

    /// The published coefficients, or those given in place of them.
    fn coefficients(self, given: &[i32]) -> Coefficients {
        let mut coefficients = match self {
            Self::Product => [0; TERMS],
            Self::Linear => LINEAR,
            Self::Poly2 => POLY2,
            Self::Poly3 => POLY3,
            Self::Poly3FromEq10 => POLY3_FROM_EQ10,
        };
        for (coefficient, &value) in coefficients.iter_mut().zip(given) {
            *coefficient = value;
        }
        coefficients
    }
}

/// The unit of fixed-point numbers, as a shift: 1 is 1,024.
const ONE_BITS: u32 = 10;
/// A full queue, and an interval of the time constant, in fixed point.
pub const ONE: u64 = 1 << ONE_BITS;
/// Places on each axis, less one, at which the largest value of a polynomial is looked for.
const GRID: u64 = 64;

/// The index, with its parameters worked out.
#[derive(Debug, Clone)]
pub struct Index {
    /// `None` for the product.
    polynomial: Option<Coefficients>,
    /// The time constant, in ticks.
    tau: u64,
    rising: u64,
    falling: u64,
    /// `C_max`.
    max: u64,
    /// The smallest weight.
    floor: u64,
}

impl Index {
    /// The index of a form. `tau` is in ticks, at least 1; `given` are coefficients in place of the published ones, or
    /// none; `floor_percent` of `C_max` is the smallest weight.
    pub fn new(form: Form, given: &[i32], tau: u64, rising: u8, falling: u8, floor_percent: u8) -> Self {
        let polynomial = (form != Form::Product).then(|| form.coefficients(given));
        let mut index =
            Self { polynomial, tau, rising: rising.into(), falling: falling.into(), max: u64::MAX, floor: 0 };
        index.max = match polynomial {
            // qall §IV-C: C_max is the value for a full queue, no interval and a rising trend.
            None => index.product(ONE, 0, true),
            Some(coefficients) => largest(&coefficients),
        };
        index.floor = index.max * u64::from(floor_percent) / 100;
        index
    }

    /// qall Eq. 4: C = L (tau - T) V. An interval beyond the time constant counts as the time constant.
    fn product(&self, occupancy: u64, ticks: u64, rising: bool) -> u64 {
        let trend = if rising { self.rising } else { self.falling };
        occupancy * (self.tau - ticks.min(self.tau)) * trend
    }

    /// The congestion index, from 0 to `C_max`. `occupancy` is in parts of [`ONE`], at most that; `ticks` is the dequeue
    /// interval.
    pub fn congestion(&self, occupancy: u64, ticks: u64, rising: bool) -> u64 {
        match &self.polynomial {
            None => self.product(occupancy, ticks, rising),
            Some(coefficients) => {
                let interval = (ticks.min(self.tau) << ONE_BITS) / self.tau;
                value(coefficients, occupancy, interval).clamp(0, self.max.cast_signed()) as u64
            }
        }
    }

    /// qall Eq. 6: W = `C_max` - C.
    pub fn weight(&self, occupancy: u64, ticks: u64, rising: bool) -> u64 {
        (self.max - self.congestion(occupancy, ticks, rising)).max(self.floor)
    }

    /// `C_max`.
    #[cfg(test)]
    pub const fn max(&self) -> u64 {
        self.max
    }
}

/// A polynomial of L and T, both in parts of [`ONE`] and at most that; so is the value, rounded down.
fn value(coefficients: &Coefficients, occupancy: u64, interval: u64) -> i64 {
    let [constant, l, t, ll, lt, tt, lll, llt, ltt, ttt] = coefficients.map(i64::from);
    let (x, y) = (occupancy.cast_signed(), interval.cast_signed());
    let linear = l * x + t * y;
    let quadratic = ll * x * x + lt * x * y + tt * y * y;
    let cubic = lll * x * x * x + llt * x * x * y + ltt * x * y * y + ttt * y * y * y;
    let sum = (constant << (3 * ONE_BITS)) + (linear << (2 * ONE_BITS)) + (quadratic << ONE_BITS) + cubic;
    sum >> (2 * ONE_BITS)
}

/// The largest value of a polynomial for L and T from 0 to 1, or 0 if it is below.
fn largest(coefficients: &Coefficients) -> u64 {
    let places = || (0..=GRID).map(|place| place * (ONE / GRID));
    let values = places().flat_map(|l| places().map(move |t| value(coefficients, l, t)));
    values.max().unwrap_or(0).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(form: Form) -> Index {
        Index::new(form, &[], 10_000, 2, 1, 0)
    }

    #[test]
    fn the_product_is_equation_4_by_hand() {
        let index = index(Form::Product);
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
    fn printed_polynomials_have_their_values_by_hand() {
        // At the four corners (L, T): (0, 0), (1, 0), (0, 1), (1, 1), from the printed coefficients.
        let table = [
            (LINEAR, [16, 42, -30, -4]),
            (POLY2, [17, -10, 12, 127]),
            (POLY3, [18, 21, -4, -7_956]),
            (POLY3_FROM_EQ10, [18, 21, -4, -6_257]),
        ];
        for (coefficients, corners) in table {
            let found = [(0, 0), (ONE, 0), (0, ONE), (ONE, ONE)].map(|(l, t)| value(&coefficients, l, t));
            assert_eq!(found, corners.map(|corner| corner * ONE.cast_signed()));
        }
        // Equation 12 in the middle: 17 + 39.5 - 44.5 - 26.5 + 35.5 + 21.
        assert_eq!(value(&POLY2, ONE / 2, ONE / 2), 42 * ONE.cast_signed());
        // Equation 13 at (1/2, 1/4), term by term: 18 + 44.5 - 36 - 62.75 + 23.5 + 21.6875 + 20.625 - 143.375
        // - 182.78125 - 3.515625 = -300.109375.
        assert_eq!(value(&POLY3, ONE / 2, ONE / 4), -307_312);
    }

    #[test]
    fn a_polynomial_below_zero_is_no_congestion_and_none_is_above_its_maximum() {
        assert_eq!(index(Form::Linear).congestion(0, 10_000, false), 0, "equation 11 is -30 there");
        assert_eq!(index(Form::Linear).max(), 42 * ONE);
        assert_eq!(index(Form::Poly2).max(), 127 * ONE);
        for form in [Form::Linear, Form::Poly2, Form::Poly3, Form::Poly3FromEq10] {
            let index = index(form);
            for (l, t) in (0..=ONE).step_by(7).flat_map(|l| (0..12_000).step_by(61).map(move |t| (l, t))) {
                assert!(index.congestion(l, t, true) <= index.max(), "{form:?} at {l}, {t}");
            }
        }
    }

    #[test]
    fn fits_of_degree_2_and_3_take_a_full_queue_for_less_congested_than_one_a_third_full() {
        // At T = 0, Eq. 12 has its peak at L = 79 / 212; Eq. 13 falls from L = 0.234 on. Eq. 4 and Eq. 11 never fall.
        for form in [Form::Poly2, Form::Poly3, Form::Poly3FromEq10] {
            let index = index(form);
            assert!(index.congestion(ONE, 0, true) < index.congestion(ONE / 3, 0, true), "{form:?}");
        }
        for form in [Form::Product, Form::Linear] {
            let index = index(form);
            let rise: Vec<u64> = (0..=ONE).step_by(64).map(|l| index.congestion(l, 100, true)).collect();
            assert!(rise.is_sorted(), "{form:?}: {rise:?}");
        }
    }

    #[test]
    fn given_coefficients_take_the_place_of_the_published_ones() {
        // 1 + 10 L - 5 T at (1/2, 1/5) is 5, but for a fifth being 204 parts of 1,024 here.
        let index = Index::new(Form::Linear, &[1, 10, -5], 10_000, 2, 1, 0);
        assert_eq!(index.congestion(512, 2_000, false), 6 * ONE - 5 * 204);
        assert_eq!(index.max(), 11 * ONE);
    }

    #[test]
    fn the_floor_is_a_share_of_the_largest_weight() {
        let index = Index::new(Form::Product, &[], 100, 2, 1, 10);
        assert_eq!(index.weight(ONE, 0, true), ONE * 100 * 2 / 10);
        assert_eq!(index.weight(0, 0, true), ONE * 100 * 2);
    }
}
