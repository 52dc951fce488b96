//! Polynomials in occupancy and dequeue interval: the published ones, a user's own, and those of a
//! file of fits.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Span, read_regular_file};

use crate::ParameterError;

/// The published polynomials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A polynomial of degree 1: QALL eq. 11.
    Linear,
    /// A polynomial of degree 2: QALL eq. 12.
    Poly2,
    /// A polynomial of degree 3: QALL eq. 10 or 13.
    #[default]
    Poly3,
}

/// The equation that has the polynomial of degree 3: the paper prints one coefficient of it in two
/// ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cubic {
    /// QALL eq. 13, as printed.
    #[default]
    Eq13,
    /// QALL eq. 10, in hundredths.
    Eq10,
}

/// QALL eq. 11: QALL eq. 8 times 100, truncated.
const LINEAR: [f64; 3] = [16.0, 26.0, -46.0];
/// QALL eq. 12: QALL eq. 9 times 100, truncated.
const POLY2: [f64; 6] = [17.0, 79.0, -89.0, -106.0, 142.0, 84.0];
/// QALL eq. 13.
const POLY3: [f64; 10] = [18.0, 89.0, -144.0, -251.0, 188.0, 347.0, 165.0, -2_294.0, -5_849.0, -225.0];
/// QALL eq. 10, times 100 and truncated as for QALL eq. 13: 18.873 makes 1887, not 188.
const POLY3_FROM_EQ10: [f64; 10] =
    [18.0, 89.0, -144.0, -251.0, 1_887.0, 347.0, 165.0, -2_294.0, -5_849.0, -225.0];

/// The highest degree: the last of QALL Table I.
pub const MAX_DEGREE: usize = 10;
/// The largest coefficient, and the smallest with its sign changed: no sum of so few terms
/// overflows.
const MAX_COEFFICIENT: f64 = 1e30;

/// How many coefficients a polynomial of this degree in two variables has.
const fn terms(degree: usize) -> usize {
    (degree + 1) * (degree + 2) / 2
}

/// Traffic of a port in hundredths of its rate, as a polynomial of L and T, both from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Polynomial {
    degree: usize,
    /// By degree, and within a degree by falling powers of L: 1; L, T; L², LT, T²; L³, L²T, LT²,
    /// T³; …
    coefficients: Box<[f64]>,
}

impl Polynomial {
    /// The polynomial with these coefficients, or `None` if no degree from 1 to 10 has so many.
    pub fn new(coefficients: &[f64]) -> Option<Self> {
        let degree = (1..=MAX_DEGREE).find(|&degree| terms(degree) == coefficients.len())?;
        Some(Self { degree, coefficients: coefficients.into() })
    }

    /// A published one.
    pub fn published(form: Form, cubic: Cubic) -> Self {
        let (degree, coefficients): (_, &[f64]) = match (form, cubic) {
            (Form::Linear, _) => (1, &LINEAR),
            (Form::Poly2, _) => (2, &POLY2),
            (Form::Poly3, Cubic::Eq13) => (3, &POLY3),
            (Form::Poly3, Cubic::Eq10) => (3, &POLY3_FROM_EQ10),
        };
        Self { degree, coefficients: coefficients.into() }
    }

    /// The coefficient that is no number or too large to be meant.
    pub fn wild(coefficients: &[f64]) -> Option<f64> {
        coefficients.iter().copied().find(|value| value.is_nan() || value.abs() > MAX_COEFFICIENT)
    }

    /// The value at an occupancy and an interval, both from 0 to 1. For whole coefficients and
    /// inputs in parts of a power of two it is exact, so it is what whole numbers would give.
    pub fn value(&self, occupancy: f64, interval: f64) -> f64 {
        let powers = |base: f64| {
            let mut powers = [1.0; MAX_DEGREE + 1];
            (1..=self.degree).for_each(|power| powers[power] = powers[power - 1] * base);
            powers
        };
        let (l, t) = (powers(occupancy), powers(interval));
        let powers = (0..=self.degree).flat_map(|degree| (0..=degree).map(move |of_t| (degree - of_t, of_t)));
        self.coefficients
            .iter()
            .zip(powers)
            .map(|(coefficient, (of_l, of_t))| coefficient * l[of_l] * t[of_t])
            .sum()
    }
}

/// A file of fits, as `weft fit qall` writes it. What else is in it is for people.
#[derive(Debug, Deserialize)]
struct Fits {
    scheme: String,
    /// Time for which T = 1 stands.
    time_constant: Span,
    polynomials: Vec<Fit>,
}

/// One fit: traffic as a share of the port's rate.
#[derive(Debug, Deserialize)]
struct Fit {
    degree: usize,
    coefficients: Vec<f64>,
}

/// Reads the polynomial of a degree from a file of fits, and what T = 1 stands for there.
///
/// # Errors
/// A file that cannot be read or is none of fits, a degree that it does not have, or one with a
/// wrong number of coefficients.
pub fn from_file(file: &str, degree: u8) -> Result<(Polynomial, Span), ParameterError> {
    let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
    let no_fits = "allowed is a file that `weft fit qall --out` wrote";
    let text = match read_regular_file(Path::new(file)) {
        Ok(text) => text,
        Err(error) => return refuse("file", format!("{file:?}, which cannot be read ({error})"), no_fits),
    };
    let fits: Fits = match serde_json::from_str(&text) {
        Ok(fits) => fits,
        Err(error) => return refuse("file", format!("{file:?}, which holds no fits ({error})"), no_fits),
    };
    if fits.scheme != "qall-poly" {
        return refuse("file", format!("{file:?}, which is for the scheme {:?}", fits.scheme), no_fits);
    }
    let Some(fit) = fits.polynomials.iter().find(|fit| fit.degree == usize::from(degree)) else {
        let degrees: Vec<_> = fits.polynomials.iter().map(|fit| fit.degree.to_string()).collect();
        let found = format!("{degree}, and {file:?} has the degrees {}", degrees.join(", "));
        return refuse("degree", found, "allowed is one of those");
    };
    let found = || format!("{file:?}, where degree {degree} has {} coefficients", fit.coefficients.len());
    let hundredths: Vec<f64> = fit.coefficients.iter().map(|share| share * 100.0).collect();
    match Polynomial::new(&hundredths) {
        Some(polynomial) if polynomial.degree == fit.degree => match Polynomial::wild(&hundredths) {
            None => Ok((polynomial, fits.time_constant)),
            Some(wild) => {
                refuse("file", format!("{file:?}, with the coefficient {}", wild / 100.0), COEFFICIENTS)
            }
        },
        _ => refuse("file", found(), "degree n needs (n + 1)(n + 2) / 2 of them"),
    }
}

/// Allowed range of coefficients.
pub const COEFFICIENTS: &str = "each coefficient is from -1e30 to 1e30";

#[cfg(test)]
#[allow(clippy::float_cmp)] // Every value here is exact in binary.
mod tests {
    use super::*;

    #[test]
    fn printed_polynomials_have_their_values_by_hand() {
        // At the four corners (L, T): (0, 0), (1, 0), (0, 1), (1, 1), from the printed
        // coefficients.
        let table = [
            (Form::Linear, Cubic::Eq13, [16.0, 42.0, -30.0, -4.0]),
            (Form::Poly2, Cubic::Eq13, [17.0, -10.0, 12.0, 127.0]),
            (Form::Poly3, Cubic::Eq13, [18.0, 21.0, -4.0, -7_956.0]),
            (Form::Poly3, Cubic::Eq10, [18.0, 21.0, -4.0, -6_257.0]),
        ];
        for (form, cubic, corners) in table {
            let polynomial = Polynomial::published(form, cubic);
            let found = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)].map(|(l, t)| polynomial.value(l, t));
            assert_eq!(found, corners, "{form:?}, {cubic:?}");
        }
        // QALL eq. 12 in the middle: 17 + 39.5 - 44.5 - 26.5 + 35.5 + 21.
        assert_eq!(Polynomial::published(Form::Poly2, Cubic::Eq13).value(0.5, 0.5), 42.0);
        // QALL eq. 13 at (1/2, 1/4), term by term: 18 + 44.5 - 36 - 62.75 + 23.5 + 21.6875 + 20.625
        // - 143.375
        // - 182.78125 - 3.515625.
        assert_eq!(Polynomial::published(Form::Poly3, Cubic::Eq13).value(0.5, 0.25), -300.109_375);
    }

    #[test]
    fn the_order_of_terms_is_by_degree_and_falling_powers_of_l() {
        // A single one among the coefficients of degree 4 makes L^3 T: it stands behind the ten of
        // degree 3 and L^4.
        let mut coefficients = [0.0; 15];
        coefficients[11] = 1.0;
        let polynomial = Polynomial::new(&coefficients).unwrap();
        assert_eq!(polynomial.value(0.5, 0.25), 0.5 * 0.5 * 0.5 * 0.25);
    }

    #[test]
    fn the_number_of_coefficients_is_that_of_a_degree() {
        let degrees: Vec<_> = (0..80).filter(|&count| Polynomial::new(&vec![1.0; count]).is_some()).collect();
        assert_eq!(degrees, [3, 6, 10, 15, 21, 28, 36, 45, 55, 66]);
    }
}
