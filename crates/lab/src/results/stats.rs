//! Means and percentiles.

use serde::Serialize;

/// What a sample of values amounts to. Every field is none (`null` in JSON) if the sample is empty.
///
/// Percentiles interpolate linearly between the two nearest ranks: of n sorted values, percentile q lies at position
/// (n - 1) q, counted from 0. This is the default of `NumPy` and R (type 7), not that of Polars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Statistics {
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p999: Option<f64>,
}

impl Statistics {
    /// Those of `values`, in any order; none may be NaN.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let at = |q| percentile(&values, q);
        Self { mean, p50: at(0.5), p95: at(0.95), p99: at(0.99), p999: at(0.999) }
    }
}

/// Percentile `q` (0 to 1) of sorted values, interpolated linearly; none if there are none.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = position - below as f64;
    Some(sorted[below] + (sorted[above] - sorted[below]) * share)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_those_of_a_hand_computed_table() {
        let sorted = [10.0, 20.0, 30.0, 40.0, 50.0];
        for (q, expected) in [(0.0, 10.0), (0.25, 20.0), (0.5, 30.0), (0.6, 34.0), (0.95, 48.0), (1.0, 50.0)]
        {
            let found = percentile(&sorted, q).unwrap();
            assert!((found - expected).abs() < 1e-9, "{q}: {found}");
        }
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn an_empty_sample_has_no_statistics() {
        assert_eq!(Statistics::of(Vec::new()), Statistics::default());
        assert_eq!(serde_json::to_string(&Statistics::default()).unwrap().matches("null").count(), 5);
    }

    proptest! {
        #[test]
        fn statistics_are_ordered_within_the_sample_and_blind_to_its_order(
            mut values in proptest::collection::vec(0.0f64..1e9, 1..200),
        ) {
            let found = Statistics::of(values.clone());
            values.reverse();
            prop_assert_eq!(found, Statistics::of(values.clone()));
            values.sort_by(f64::total_cmp);
            let marks = [found.p50, found.p95, found.p99, found.p999].map(Option::unwrap);
            prop_assert!(marks.is_sorted());
            prop_assert!(values[0] <= marks[0] && marks[3] <= values[values.len() - 1]);
        }
    }
}
