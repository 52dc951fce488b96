//! Whether a run was in a steady state: whether the slowdown of flows rises or falls from the first
//! to the last.
//!
//! A fabric begins empty. Until as many flows end as begin, each flow meets more others than the
//! one before, and a mean over them says as much of how long the run was as of the load balancer.
//! So the flows that a run measures are looked at in order of arrival: the logarithms of their
//! slowdowns, in [`BATCHES`] batches of equal numbers (a batch's mean varies less, and depends less
//! on its neighbours, than a flow; Law, *Simulation Modeling and Analysis*, §9.5). The test of Mann
//! (1945) and Kendall (1975) says whether the batches have a trend: of all pairs of batches, S is
//! how many have the later one higher, less how many have it lower. Without a trend, and with
//! batches that do not depend on each other, S is near normal around 0 with the variance b (b - 1)
//! (2 b + 5) / 18. It asks for no distribution, and one batch with an outlier moves it by b - 1 at
//! most.
//!
//! A run is said to be in no steady state if both hold:
//!
//! - |S| is beyond what chance does once in a thousand runs ([`CRITICAL`]);
//! - the second half of the flows has a geometric mean of slowdowns that differs from that of the
//!   first half by [`LEAST_CHANGE`] or more: in long runs a trend can be certain and of no
//!   interest.
//!
//! It says nothing of fewer than [`LEAST_FLOWS`] flows, nor of flows that all start at once. And it
//! does not prove that a run of which it says nothing is steady: a fabric that fills up slowly
//! against its noise is not told from a steady one, nor is a transient that takes a tenth of the
//! run. Where the batches are shorter than what the fabric remembers, they follow each other's ups
//! and downs, and the test speaks more often; such a run is too short for a mean in any case.

use weft_units::Time;

use crate::results::rows::FlowRow;

/// Batches of flows: 20, of the 10 to 30 that Schmeiser (*Operations Research* 30, 1982) found
/// enough.
const BATCHES: usize = 20;
/// Batches of fewer than 25 flows say little.
const LEAST_FLOWS: usize = 25 * BATCHES;
/// In units of S' standard deviation: two-sided, one in a thousand.
const CRITICAL: f64 = 3.29;
/// A change by less is not worth a word.
const LEAST_CHANGE: f64 = 0.05;

/// Slowdowns by batch, summed up flow after flow.
#[derive(Debug, Clone)]
pub(crate) struct Trend {
    /// Flows that are expected.
    flows: usize,
    seen: usize,
    /// By batch: the sum of logarithms of slowdowns, and how many.
    batches: [(f64, u64); BATCHES],
    first_us: f64,
    last_us: f64,
}

impl Trend {
    /// State of no flow so far; so many will come.
    pub const fn over(flows: usize) -> Self {
        Self { flows, seen: 0, batches: [(0.0, 0); BATCHES], first_us: f64::INFINITY, last_us: 0.0 }
    }

    /// Adds a flow, the next in order of arrival. One that had not finished at `end` has taken so
    /// long at least.
    pub fn add(&mut self, row: &FlowRow, end: Time) {
        if row.background || row.measured == Some(false) {
            return;
        }
        let Some(start_us) = row.start_us else { return self.take(None) };
        let so_far = row.ideal_fct_us.map(|ideal| (end.as_us() - start_us) / ideal);
        let slowdown = row.slowdown.or(so_far).filter(|slowdown| *slowdown > 0.0);
        self.first_us = self.first_us.min(start_us);
        self.last_us = self.last_us.max(start_us);
        self.take(slowdown.map(f64::ln));
    }

    /// Adds a logarithm of a slowdown, or a flow without one.
    fn take(&mut self, log: Option<f64>) {
        let batch = (self.seen * BATCHES / self.flows.max(1)).min(BATCHES - 1);
        self.seen += 1;
        if let Some(log) = log {
            let (sum, count) = &mut self.batches[batch];
            *sum += log;
            *count += 1;
        }
    }

    /// By how much the geometric mean of the second half is above that of the first, as a share of
    /// the first, if there is a trend.
    fn change(&self) -> Option<f64> {
        if self.seen < LEAST_FLOWS || self.batches.iter().any(|(_, count)| *count == 0) {
            return None;
        }
        let means: Vec<f64> = self.batches.iter().map(|(sum, count)| sum / *count as f64).collect();
        let later = |from: usize| means[from + 1..].iter().map(move |mean| (from, mean));
        let order = |(from, mean): (usize, &f64)| match mean.total_cmp(&means[from]) {
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => 1.0,
        };
        let s: f64 = (0..BATCHES).flat_map(later).map(order).sum();
        let b = BATCHES as f64;
        let deviation = (b * (b - 1.0) * (2.0 * b + 5.0) / 18.0).sqrt();
        // S moves in steps of two: one off for continuity.
        if (s.abs() - 1.0) / deviation <= CRITICAL {
            return None;
        }
        let [first, second] = [&self.batches[..BATCHES / 2], &self.batches[BATCHES / 2..]].map(|half| {
            let (sum, count) = half.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            sum / count as f64
        });
        let change = (second - first).exp() - 1.0;
        // A trend up with halves that go down is none.
        (change.abs() >= LEAST_CHANGE && (change > 0.0) == (s > 0.0)).then_some(change)
    }

    /// Says that the run is in no steady state, if so.
    pub fn warning(&self) -> Option<String> {
        if self.first_us >= self.last_us {
            return None;
        }
        let change = self.change()?;
        let (rises, more) = if change > 0.0 { ("rises", "more") } else { ("falls", "less") };
        Some(format!(
            "the run is in no steady state: slowdown {rises} from the first flow to the last (geometric mean {:.0} % {more} in the second \
             half of {} flows), so that averages depend on how many flows there are; more flows (traffic.flows) and a warm-up \
             (run.warmup) help, unless the load is more than the fabric carries",
            change.abs() * 100.0,
            self.seen
        ))
    }
}

#[cfg(test)]
mod tests {
    use weft_units::{Purpose, Stream};

    use super::*;

    /// Logarithms of slowdowns around `level` of the share of the run that is over: with a spread
    /// of 1, as of mixed sizes.
    fn series(flows: usize, seed: u64, memory: f64, level: impl Fn(f64) -> f64) -> Trend {
        let mut random = Stream::new(seed, Purpose::Sizes, 0);
        let mut trend = Trend::over(flows);
        let mut slow = 0.0;
        for flow in 0..flows {
            // About normal, of deviation 1: part of it follows the flows before.
            let mut noise = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            slow = memory * slow + (1.0 - memory * memory).sqrt() * noise();
            trend.take(Some(2.0 + 0.3 * slow + 0.95 * noise() + level(flow as f64 / flows as f64)));
        }
        trend
    }

    fn alarms(flows: usize, memory: f64, level: impl Fn(f64) -> f64 + Copy) -> usize {
        (0..200).filter(|&seed| series(flows, seed, memory, level).change().is_some()).count()
    }

    #[test]
    fn a_series_without_a_trend_is_left_alone() {
        assert!(alarms(2_000, 0.0, |_| 0.0) <= 1);
        assert!(alarms(500, 0.0, |_| 0.0) <= 1);
        // What one flow in a hundred before it met is felt still.
        assert!(alarms(2_000, 0.99, |_| 0.0) <= 10);
    }

    #[test]
    fn a_fabric_that_fills_up_is_told_and_by_how_much() {
        // From a level of 0 towards one of 1, as 1 - exp(-t): through the whole run, and through
        // its first third where flows are many.
        let filling = |length: f64| move |t: f64| 1.0 - (-t / length * 2.0).exp();
        let found = alarms(2_000, 0.9, filling(1.0));
        assert!(found >= 170, "{found} of 200");
        let found =
            (0..40).filter(|&seed| series(20_000, seed, 0.9, filling(0.3)).change().is_some()).count();
        assert!(found >= 35, "{found} of 40");
        // A straight rise by 1: the halves are half of it apart.
        let change = series(50_000, 1, 0.0, |t| t).change().unwrap();
        assert!((change - (0.5f64.exp() - 1.0)).abs() < 0.05, "{change}");
        // And one that empties.
        let change = series(50_000, 1, 0.0, |t| -t).change().unwrap();
        assert!((change - ((-0.5f64).exp() - 1.0)).abs() < 0.05, "{change}");
    }

    #[test]
    fn what_is_too_small_to_matter_or_too_short_to_tell_has_no_word() {
        // 2 % between the halves, and certain.
        assert_eq!(series(1_000_000, 1, 0.0, |t| 0.04 * t).change(), None);
        assert_eq!(series(LEAST_FLOWS - 1, 1, 0.0, |t| 10.0 * t).change(), None);
        assert!(series(LEAST_FLOWS, 1, 0.0, |t| 10.0 * t).change().is_some());
    }

    #[test]
    fn rows_count_as_they_are_measured_and_flows_of_one_instant_have_no_order() {
        let row = |at: usize| FlowRow {
            start_us: Some(at as f64),
            slowdown: (!at.is_multiple_of(10)).then_some(1.0 + at as f64),
            ideal_fct_us: Some(1.0),
            ..FlowRow::default()
        };
        let end = Time::from_ps(10_000 * 1_000_000);
        let warning = |rows: &mut dyn Iterator<Item = FlowRow>, flows| {
            let mut trend = Trend::over(flows);
            rows.for_each(|row| trend.add(&row, end));
            trend.warning()
        };
        let said = warning(&mut (0..1_000).map(row), 1_000).unwrap();
        assert!(said.contains("slowdown rises") && said.contains("half of 1000 flows"), "{said}");
        let at_once = |at| FlowRow { start_us: Some(0.0), ..row(at) };
        assert_eq!(warning(&mut (0..1_000).map(at_once), 1_000), None);
        let outside = |at| FlowRow { measured: Some(at < 400), ..row(at) };
        assert_eq!(warning(&mut (0..1_000).map(outside), 400), None);
    }
}
