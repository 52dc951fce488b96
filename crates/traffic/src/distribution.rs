//! Flow-size distributions: a piecewise linear cumulative distribution, read from two columns.

use weft_units::{Bytes, Stream};

use crate::{MAX_FLOW_BYTES, TrafficError};

/// The first line of a distribution's file.
const HEADER: &str = "size_bytes,cumulative_probability";

/// One row: a share `probability` of the flows has at most `size` bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Knot {
    size: f64,
    probability: f64,
}

/// A distribution of flow sizes.
///
/// Between two knots the size is linear in the probability. Two knots of one size are an atom (a
/// share of the flows has exactly this size); two knots of one probability are a gap. A size drawn
/// is rounded to the nearest byte and is at least one byte; the mean and the quantiles are those of
/// the continuous distribution, before rounding.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    knots: Vec<Knot>,
    mean: f64,
}

impl Distribution {
    /// Every flow has `size` bytes.
    pub fn fixed(size: Bytes) -> Self {
        let size = size.as_u64() as f64;
        Self::of(vec![Knot { size, probability: 0.0 }, Knot { size, probability: 1.0 }])
    }

    /// Reads the text of a CSV file: the line `size_bytes,cumulative_probability`, then two or more
    /// rows. Neither column may fall; the probability goes from 0 to 1; sizes are 0 to 1 TB. Empty
    /// lines and lines that begin with `#` are passed over.
    ///
    /// # Errors
    /// The first line that breaks a rule, as `name:line`, or what the whole file lacks.
    pub fn from_csv(name: &str, text: &str) -> Result<Self, TrafficError> {
        let mut knots = Vec::new();
        let mut has_header = false;
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            let bad = |allowed: String| TrafficError::BadLine {
                file: name.to_owned(),
                line: index + 1,
                found: format!("{line:?}"),
                allowed,
            };
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if has_header {
                knots.push(parse_knot(line, knots.last()).map_err(bad)?);
            } else if line.replace(' ', "") == HEADER {
                has_header = true;
            } else {
                return Err(bad(format!("the header {HEADER:?}")));
            }
        }
        check_ends(name, &knots)?;
        let read = Self::of(knots);
        if read.mean < 1.0 {
            let (found, allowed) =
                (format!("a mean of {} bytes", read.mean), "a mean of at least 1 byte".to_owned());
            return Err(TrafficError::BadFile { file: name.to_owned(), found, allowed });
        }
        Ok(read)
    }

    /// Scales the flow sizes by `factor`, which is above 0.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let knots = self.knots.into_iter().map(|knot| Knot { size: knot.size * factor, ..knot });
        Self { knots: knots.collect(), mean: self.mean * factor }
    }

    fn of(knots: Vec<Knot>) -> Self {
        let mean =
            segments(&knots).map(|(a, b)| (b.probability - a.probability) * (a.size + b.size) / 2.0).sum();
        Self { knots, mean }
    }

    /// The knots: size in bytes, and the share of the flows that have at most this size.
    pub fn knots(&self) -> impl Iterator<Item = [f64; 2]> + '_ {
        self.knots.iter().map(|knot| [knot.size, knot.probability])
    }

    /// The exact mean, in bytes.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The largest size, in bytes.
    pub fn max(&self) -> f64 {
        self.knots.last().map_or(0.0, |knot| knot.size)
    }

    /// The size that a share `p` of the flows does not exceed, in bytes. `p` is taken into 0 to 1.
    /// At a gap, the upper end.
    pub fn quantile(&self, p: f64) -> f64 {
        let p = p.max(0.0);
        let above = self.knots.partition_point(|knot| knot.probability <= p);
        let Some(b) = self.knots.get(above) else { return self.max() };
        let Some(a) = above.checked_sub(1).map(|below| self.knots[below]) else { return b.size };
        let along = (p - a.probability) / (b.probability - a.probability);
        // Rounding must not step beyond the knot, or the quantile would not be monotone.
        (a.size + (b.size - a.size) * along).clamp(a.size, b.size)
    }

    /// The share of the flows that has at most `size` bytes.
    pub fn share_of_flows_up_to(&self, size: f64) -> f64 {
        let above = self.knots.partition_point(|knot| knot.size <= size);
        let Some(b) = self.knots.get(above) else { return 1.0 };
        let Some(a) = above.checked_sub(1).map(|below| self.knots[below]) else { return 0.0 };
        a.probability + (b.probability - a.probability) * (size - a.size) / (b.size - a.size)
    }

    /// The share of the bytes that is in flows of more than `size` bytes.
    pub fn share_of_bytes_above(&self, size: f64) -> f64 {
        let bytes: f64 = segments(&self.knots)
            .filter(|(_, b)| b.size > size)
            .map(|(a, b)| {
                let from = a.size.max(size);
                let share = if b.size > a.size { (b.size - from) / (b.size - a.size) } else { 1.0 };
                (b.probability - a.probability) * share * (from + b.size) / 2.0
            })
            .sum();
        bytes / self.mean
    }

    /// Draws a size in whole bytes, at least one. One draw from the stream.
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        (self.quantile(stream.unit()).round() as u64).max(1)
    }
}

/// Neighbouring knots.
fn segments(knots: &[Knot]) -> impl Iterator<Item = (Knot, Knot)> + '_ {
    knots.windows(2).map(|pair| (pair[0], pair[1]))
}

/// One row after `previous`, or what is allowed in its place.
fn parse_knot(line: &str, previous: Option<&Knot>) -> Result<Knot, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let cells = line.split_once(',').map(|(size, probability)| (number(size), number(probability)));
    let Some((Some(size), Some(probability))) = cells else {
        return Err("two numbers, a size in bytes and a cumulative probability".to_owned());
    };
    if !(0.0..=MAX_FLOW_BYTES as f64).contains(&size) {
        return Err(format!("a size of 0 to {MAX_FLOW_BYTES} bytes"));
    }
    if !(0.0..=1.0).contains(&probability) {
        return Err("a probability of 0 to 1".to_owned());
    }
    match previous {
        None if probability > 0.0 => Err("the probability 0 in the first row".to_owned()),
        Some(last) if size < last.size => {
            Err(format!("a size of at least {}, that of the row before", last.size))
        }
        Some(last) if probability < last.probability => {
            Err(format!("a probability of at least {}, that of the row before", last.probability))
        }
        _ => Ok(Knot { size, probability }),
    }
}

/// Checks that are possible only at the end of the file.
fn check_ends(name: &str, knots: &[Knot]) -> Result<(), TrafficError> {
    let bad = |found: String, allowed: &str| {
        Err(TrafficError::BadFile { file: name.to_owned(), found, allowed: allowed.to_owned() })
    };
    match knots {
        [] | [_] => bad(format!("{} rows", knots.len()), "two rows or more below the header"),
        [.., last] if last.probability < 1.0 => {
            bad(format!("the probability {} in the last row", last.probability), "1 in the last row")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_units::Purpose;

    use super::*;

    /// 0 to 100 bytes evenly for half the flows, an atom of a quarter at 200, 1,000 to 2,000 for
    /// the last quarter.
    const MIXED: &str =
        "size_bytes,cumulative_probability\n0,0\n100,0.5\n200,0.5\n200,0.75\n1000,0.75\n2000,1\n";

    fn mixed() -> Distribution {
        Distribution::from_csv("mixed", MIXED).unwrap()
    }

    fn message(rows: &str) -> String {
        Distribution::from_csv("f.csv", &format!("{HEADER}\n{rows}")).unwrap_err().to_string()
    }

    #[test]
    fn mean_and_shares_are_those_worked_out_by_hand() {
        let mixed = mixed();
        // 0.5 x 50 + 0.25 x 200 + 0.25 x 1,500
        assert!((mixed.mean() - 450.0).abs() < 1e-9);
        assert!((mixed.share_of_flows_up_to(50.0) - 0.25).abs() < 1e-12);
        assert!((mixed.share_of_flows_up_to(199.0) - 0.5).abs() < 1e-12);
        assert!((mixed.share_of_flows_up_to(200.0) - 0.75).abs() < 1e-12);
        assert!((mixed.share_of_flows_up_to(2_000.0) - 1.0).abs() < 1e-12);
        // Half of the last quarter, of mean 1,750; the atom at 200 is not above 200.
        assert!((mixed.share_of_bytes_above(1_500.0) - 0.125 * 1_750.0 / 450.0).abs() < 1e-12);
        assert!((mixed.share_of_bytes_above(200.0) - 375.0 / 450.0).abs() < 1e-12);
        assert!((mixed.share_of_bytes_above(199.0) - 425.0 / 450.0).abs() < 1e-12);
    }

    #[test]
    fn quantiles_meet_knots_atoms_and_gaps() {
        let table =
            [(0.0, 0.0), (0.25, 50.0), (0.6, 200.0), (0.75, 1_000.0), (0.875, 1_500.0), (1.0, 2_000.0)];
        for (p, size) in table {
            assert!((mixed().quantile(p) - size).abs() < 1e-9, "quantile({p}) = {}", mixed().quantile(p));
        }
        let outside = [f64::NAN, -1.0, 2.0].map(|p| mixed().quantile(p).round() as u64);
        assert_eq!(outside, [0, 0, 2_000]);
    }

    #[test]
    fn samples_have_the_exact_mean_and_at_least_one_byte() {
        let mut stream = Stream::new(3, Purpose::Sizes, 0);
        let sizes: Vec<u64> = (0..200_000).map(|_| mixed().sample(&mut stream)).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        // The standard error is 1.4 bytes.
        assert!((mean - 450.0).abs() < 6.0, "mean {mean}");
        assert_eq!(sizes.iter().min(), Some(&1));
        assert_eq!(Distribution::fixed(Bytes::new(64_000)).sample(&mut stream), 64_000);
    }

    #[test]
    fn scaled_sizes_are_the_same_draws_times_the_factor() {
        let drawn = |sizes: &Distribution| -> Vec<u64> {
            let mut stream = Stream::new(3, Purpose::Sizes, 0);
            (0..10_000).map(|_| sizes.sample(&mut stream)).collect()
        };
        let scaled = mixed().scaled(0.1);
        assert!((scaled.mean() - 45.0).abs() < 1e-9 && (scaled.max() - 200.0).abs() < 1e-9);
        for (small, large) in drawn(&scaled).into_iter().zip(drawn(&mixed())) {
            // Both are rounded to whole bytes, and none is below one.
            assert!(
                (small as f64 - (large as f64 / 10.0).max(1.0)).abs() <= 0.55 + 0.5,
                "{small} of {large}"
            );
        }
        assert_eq!(mixed().scaled(1.0), mixed());
    }

    #[test]
    fn each_broken_rule_names_its_line_and_what_is_allowed() {
        let cases = [
            ("", "f.csv: found 0 rows: allowed is two rows"),
            ("1,0", "f.csv: found 1 rows: allowed is two rows"),
            ("1,0.1\n2,1", "f.csv:2: found \"1,0.1\": allowed is the probability 0 in the first row"),
            ("1,0\n2,0.9", "f.csv: found the probability 0.9 in the last row: allowed is 1"),
            ("5,0\n4,1", "f.csv:3: found \"4,1\": allowed is a size of at least 5"),
            ("1,0\n2,0.6\n3,0.5\n4,1", "f.csv:4: found \"3,0.5\": allowed is a probability of at least 0.6"),
            ("-1,0\n2,1", "f.csv:2: found \"-1,0\": allowed is a size of 0 to 1000000000000 bytes"),
            ("1,0\n2000000000000,1", "f.csv:3:"),
            ("1,0\n2,1.5", "allowed is a probability of 0 to 1"),
            ("1,0\n2,nan", "allowed is two numbers"),
            ("1,0\n2", "allowed is two numbers"),
            ("1,0\n2,1,7", "allowed is two numbers"),
            ("0,0\n0,1\n9,1", "f.csv: found a mean of 0 bytes: allowed is a mean of at least 1 byte"),
        ];
        for (rows, expected) in cases {
            assert!(message(rows).contains(expected), "{rows:?}: {}", message(rows));
        }
        let headless = Distribution::from_csv("f.csv", "1,0\n2,1").unwrap_err().to_string();
        assert!(headless.contains("f.csv:1: found \"1,0\": allowed is the header"), "{headless}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>(), rows in "[0-9.,eE+\\-\n#a-z]{0,80}") {
            let _ = Distribution::from_csv("random", &text);
            if let Ok(read) = Distribution::from_csv("random", &format!("{HEADER}\n{rows}")) {
                prop_assert!(read.mean().is_finite());
            }
        }

        #[test]
        fn quantiles_never_fall(
            rows in prop::collection::vec((0.0..1e9f64, 0.0..1.0f64), 0..20),
            mut ps in prop::collection::vec(0.0..=1.0f64, 2..50),
        ) {
            let (mut sizes, mut shares): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            sizes.extend([0.0, 1e9]);
            shares.extend([0.0, 1.0]);
            sizes.sort_by(f64::total_cmp);
            shares.sort_by(f64::total_cmp);
            let lines: Vec<String> = sizes.iter().zip(&shares).map(|(s, p)| format!("{s},{p}")).collect();
            let read = Distribution::from_csv("sorted", &format!("{HEADER}\n{}", lines.join("\n"))).unwrap();
            ps.extend(&shares);
            ps.sort_by(f64::total_cmp);
            let quantiles: Vec<f64> = ps.iter().map(|&p| read.quantile(p)).collect();
            prop_assert!(quantiles.is_sorted(), "{:?}", quantiles);
        }
    }
}
