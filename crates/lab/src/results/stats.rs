//! Means and percentiles, of flows that finished and of flows that did not.
//!
//! An unfinished flow has a completion time between a lower bound (the time that has passed, or its
//! ideal if that is longer) and infinity. So every statistic has two bounds: over the lower bounds,
//! and over infinite times in their place. Where both agree, that is its value. Where they do not,
//! it has no value, and what it is at least is reported apart: this module is the one place that
//! decides.

use serde::Serialize;

/// Statistics of a sample of values. Every field is none (`null` in JSON) if the sample is empty,
/// or if flows that did not finish leave it open.
///
/// Percentiles interpolate linearly between the two nearest ranks: of n sorted values, percentile q
/// lies at position (n - 1) q, counted from 0. This is the default of `NumPy` and R (type 7), not
/// that of Polars.
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
    /// Lower bounds of the fields that unfinished flows leave open; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<LowerBounds>,
}

/// Lower bounds of statistics that unfinished flows leave open; null for the others.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LowerBounds {
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
    /// Statistics of `values`, in any order; none may be NaN.
    pub fn of(values: Vec<f64>) -> Self {
        Self::between(&Sample::of(values))
    }

    /// Statistics of values of which some are known by their lower bounds alone.
    pub fn between(sample: &Sample) -> Self {
        let mean = |values: &[f64]| (!values.is_empty()).then(|| sum(values) / values.len() as f64);
        let marks = [sample.bounds(mean), sample.at(0.5), sample.at(0.95), sample.at(0.99), sample.at(0.999)];
        let [mean, p50, p95, p99, p999] = marks.map(|mark| mark.value);
        let lower = marks.map(|mark| mark.at_least);
        let at_least = lower.iter().any(Option::is_some).then(|| {
            let [mean, p50, p95, p99, p999] = lower;
            LowerBounds { mean, p50, p95, p99, p999 }
        });
        Self { mean, p50, p95, p99, p999, at_least }
    }
}

/// Values that are known, or known to lie between two bounds.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Sorted.
    lower: Vec<f64>,
    /// Sorted; none if they are the lower ones.
    upper: Option<Vec<f64>>,
}

/// A statistic of a [`Sample`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Value of the statistic, if both bounds agree.
    pub value: Option<f64>,
    /// Lower bound of the statistic, if they do not.
    pub at_least: Option<f64>,
    /// Upper bound of the statistic, if they do not; it may be infinite.
    pub at_most: Option<f64>,
}

impl Sample {
    /// Values that are all known, in any order.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self { lower: values, upper: None }
    }

    /// Known values, and those that are at least so much.
    pub fn at_least(known: Vec<f64>, bounds: &[f64]) -> Self {
        Self::between(known, bounds.iter().map(|&bound| (bound, f64::INFINITY)))
    }

    /// Known values, and those that lie between two bounds.
    pub fn between(known: Vec<f64>, bounds: impl Iterator<Item = (f64, f64)>) -> Self {
        let (lower, upper): (Vec<f64>, Vec<f64>) = bounds.unzip();
        if lower.is_empty() {
            return Self::of(known);
        }
        let with = |bounds: Vec<f64>| Self::of(known.iter().copied().chain(bounds).collect()).lower;
        Self { lower: with(lower), upper: Some(with(upper)) }
    }

    /// Percentile `q` (0 to 1).
    pub fn at(&self, q: f64) -> Mark {
        self.bounds(|values| percentile(values, q))
    }

    /// A statistic that never falls when a value rises.
    pub fn bounds(&self, statistic: impl Fn(&[f64]) -> Option<f64>) -> Mark {
        let low = statistic(&self.lower);
        match self.upper.as_deref().map(statistic) {
            Some(high) if high != low => Mark { value: None, at_least: low, at_most: high },
            _ => Mark { value: low, at_least: None, at_most: None },
        }
    }
}

/// The sum of sorted values.
pub fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// Percentile `q` (0 to 1) of sorted values, interpolated linearly; none if there are none.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = position - below as f64;
    let (below, above) = (sorted[below], sorted[above]);
    // What lies beyond may be infinite.
    Some(if share == 0.0 || below.total_cmp(&above).is_eq() {
        below
    } else {
        below + (above - below) * share
    })
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

    #[test]
    fn a_percentile_is_known_where_no_unfinished_flow_could_move_it() {
        // Nine flows took 1 to 9, and one has not finished after 20: ranks 0 to 8 are known.
        let late = Sample::at_least((1..10).map(f64::from).collect(), &[20.0]);
        let found = Statistics::between(&late);
        assert_eq!((found.p50, found.p99, found.mean), (Some(5.5), None, None));
        let bounds = found.at_least.unwrap();
        assert_eq!((bounds.p50, bounds.mean), (None, Some(6.5)));
        assert!((bounds.p99.unwrap() - (9.0 + 11.0 * 0.91)).abs() < 1e-9);
        // After 2 it may be anywhere above: the median is then 4.5 at least.
        let early = Statistics::between(&Sample::at_least((1..10).map(f64::from).collect(), &[2.0]));
        assert_eq!((early.p50, early.at_least.unwrap().p50), (None, Some(4.5)));
        assert_eq!(Sample::at_least(vec![1.0, 4.0], &[2.0]).at(0.0).value, Some(1.0));
    }

    #[test]
    fn without_a_finished_flow_there_are_lower_bounds_alone() {
        let found = Statistics::between(&Sample::at_least(Vec::new(), &[3.0, 5.0]));
        assert_eq!((found.mean, found.p50, found.p999), (None, None, None));
        let bounds = found.at_least.unwrap();
        assert_eq!((bounds.mean, bounds.p50), (Some(4.0), Some(4.0)));
    }

    proptest! {
        #[test]
        fn whatever_unfinished_flows_will_take_the_statistics_hold(
            known in proptest::collection::vec(0.0f64..100.0, 0..60),
            open in proptest::collection::vec((0.0f64..100.0, 0.0f64..1e4), 0..12),
        ) {
            let passed: Vec<f64> = open.iter().map(|(passed, _)| *passed).collect();
            let found = Statistics::between(&Sample::at_least(known.clone(), &passed));
            let truth = known.iter().copied().chain(open.iter().map(|(passed, more)| passed + more));
            let truth = Statistics::of(truth.collect());
            let bounds = found.at_least.unwrap_or_default();
            let all = |one: Statistics| [one.mean, one.p50, one.p95, one.p99, one.p999];
            let lower = [bounds.mean, bounds.p50, bounds.p95, bounds.p99, bounds.p999];
            for ((value, lower), truth) in all(found).into_iter().zip(lower).zip(all(truth)) {
                prop_assert!(value.is_none_or(|_| value == truth), "{value:?} {truth:?}");
                prop_assert!(lower.is_none_or(|lower| lower <= truth.unwrap() + 1e-9), "{lower:?} {truth:?}");
                prop_assert!(value.is_none() || lower.is_none());
            }
            prop_assert_eq!(found.mean.is_some(), open.is_empty() && !known.is_empty());
        }

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
