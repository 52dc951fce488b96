//! How far two kinds of runs of the same flows are apart, and how certain that is. Flows that meet
//! are not independent of each other: what is taken to be is a block of a run, some of its flows
//! that start one after the other.

/// Quantiles of Student's t for 95 % of its mass, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// Quantile of Student's t for many degrees of freedom.
const NORMAL: f64 = 1.960;

/// Goal: no more than this apart, as a ratio.
const GOAL: f64 = 1.05;

/// Sums over the flows of a block: of a value of each kind of runs, and of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    pub ours: f64,
    pub theirs: f64,
    /// Logarithms of the ratio of single flows.
    pub logarithms: f64,
    pub flows: f64,
}

impl Sums {
    /// A flow took so long in the runs of both kinds; `logarithm`: that of the ratio, as a mean
    /// over runs.
    pub fn add(&mut self, ours: f64, theirs: f64, logarithm: f64) {
        self.ours += ours;
        self.theirs += theirs;
        self.logarithms += logarithm;
        self.flows += 1.0;
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            ours: self.ours + other.ours,
            theirs: self.theirs + other.theirs,
            logarithms: self.logarithms + other.logarithms,
            flows: self.flows + other.flows,
        }
    }

    /// All blocks together.
    pub fn of(blocks: &[Self]) -> Self {
        blocks.iter().copied().fold(Self::default(), Self::and)
    }

    /// The logarithm of the ratio of the two means.
    pub fn of_means(self) -> f64 {
        (self.ours / self.theirs).ln()
    }

    /// The logarithm of the geometric mean of the ratios of single flows.
    pub fn of_flows(self) -> f64 {
        self.logarithms / self.flows
    }
}

/// An estimate of a logarithm of a ratio, with half of its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub logarithm: f64,
    pub half: f64,
}

/// Verdict of an interval on the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Within,
    Beyond,
    Open,
}

impl Estimate {
    /// Estimate from all blocks, with the interval of the jackknife: by how much it moves if one
    /// block is left out.
    pub fn of(blocks: &[Sums], estimate: impl Fn(Sums) -> f64) -> Self {
        let blocks: Vec<_> = blocks.iter().filter(|sums| sums.flows > 0.0).copied().collect();
        let logarithm = estimate(Sums::of(&blocks));
        let count = blocks.len();
        if count < 2 {
            return Self { logarithm, half: f64::INFINITY };
        }
        let without = |left_out: usize| {
            let others = blocks.iter().enumerate().filter(|&(block, _)| block != left_out);
            estimate(others.fold(Sums::default(), |sum, (_, &sums)| sum.and(sums)))
        };
        let found: Vec<f64> = (0..count).map(without).collect();
        let mean = found.iter().sum::<f64>() / count as f64;
        let squares = found.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let error = (squares * (count - 1) as f64 / count as f64).sqrt();
        Self { logarithm, half: T.get(count - 2).unwrap_or(&NORMAL) * error }
    }

    /// The ratio and half of its interval, in per cent.
    pub fn percent(self) -> (f64, f64) {
        let ratio = self.logarithm.exp();
        (100.0 * (ratio - 1.0), 100.0 * ratio * self.half)
    }

    pub fn verdict(self) -> Verdict {
        let (low, high) = (self.logarithm - self.half, self.logarithm + self.half);
        let goal = GOAL.ln();
        if low > -goal && high < goal {
            Verdict::Within
        } else if low > goal || high < -goal {
            Verdict::Beyond
        } else {
            Verdict::Open
        }
    }
}

impl Verdict {
    /// Mark of the verdict in a table.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Beyond => "beyond",
            Self::Open => "open",
        }
    }
}

#[test]
fn the_interval_is_that_of_a_mean_where_the_estimate_is_one() {
    // One flow a block: the geometric mean of the ratios is a mean of logarithms, with Student's
    // interval.
    let blocks = [0.01, 0.05, -0.02, 0.04].map(|logarithm| Sums {
        logarithms: logarithm,
        flows: 1.0,
        ..Sums::default()
    });
    let Estimate { logarithm, half } = Estimate::of(&blocks, Sums::of_flows);
    assert!((logarithm - 0.02).abs() < 1e-12, "{logarithm}");
    let deviation =
        ((0.01_f64.powi(2) + 0.03_f64.powi(2) + 0.04_f64.powi(2) + 0.02_f64.powi(2)) / 3.0).sqrt();
    assert!((half - 3.182 * deviation / 2.0).abs() < 1e-12, "{half}");
}

#[test]
fn a_ratio_of_means_is_certain_where_all_blocks_agree() {
    let blocks =
        [1.0, 2.0, 5.0].map(|theirs| Sums { ours: 1.1 * theirs, theirs, flows: 1.0, ..Sums::default() });
    let estimate = Estimate::of(&blocks, Sums::of_means);
    let (percent, half) = estimate.percent();
    assert!((percent - 10.0).abs() < 1e-9 && half < 1e-9, "{percent} {half}");
    assert_eq!(estimate.verdict(), Verdict::Beyond);
}

#[test]
fn verdicts_go_by_the_whole_interval() {
    let verdict = |logarithm, half| Estimate { logarithm, half }.verdict();
    assert_eq!(verdict(0.01, 0.03), Verdict::Within);
    assert_eq!(verdict(0.01, 0.05), Verdict::Open);
    assert_eq!(verdict(-0.2, 0.1), Verdict::Beyond);
    assert_eq!(verdict(-0.1, 0.1), Verdict::Open);
    assert_eq!(verdict(0.0, f64::INFINITY), Verdict::Open);
}
