//! How evenly flows are spread over the paths between racks.

use serde::Serialize;

use super::rows::PathRow;

/// Throughput by path. Racks that sent each other nothing count for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Pairs of racks, by direction.
    pub pairs: u64,
    /// Paths between them, those that carried nothing included.
    pub paths: u64,
    /// The mean throughput of a path, in Mbit/s.
    pub mean_mbps: f64,
    /// The standard deviation over the paths of a pair of racks, as a mean over the pairs: what
    /// differs between pairs is their traffic, not the load balancer.
    pub sd_mbps: f64,
}

impl Spread {
    /// Spread over the paths of these rows, which are sorted by pairs of racks; none without rows.
    pub fn of(rows: &[PathRow]) -> Option<Self> {
        let pairs: Vec<&[PathRow]> =
            rows.chunk_by(|a, b| (a.src_rack, a.dst_rack) == (b.src_rack, b.dst_rack)).collect();
        (!rows.is_empty()).then(|| Self {
            pairs: pairs.len() as u64,
            paths: rows.len() as u64,
            mean_mbps: mean(rows.iter().map(|row| row.throughput_mbps)),
            sd_mbps: mean(pairs.iter().map(|pair| deviation(pair))),
        })
    }
}

/// The standard deviation over all of them: these are the paths, not a sample of them.
fn deviation(rows: &[PathRow]) -> f64 {
    let middle = mean(rows.iter().map(|row| row.throughput_mbps));
    mean(rows.iter().map(|row| (row.throughput_mbps - middle).powi(2))).sqrt()
}

/// The mean of one value or more.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(dst_rack: u16, throughput_mbps: f64) -> PathRow {
        PathRow { src_rack: 0, dst_rack, path: 0, carried_bytes: 0, throughput_mbps }
    }

    #[test]
    fn the_deviation_is_that_within_a_pair_of_racks() {
        assert_eq!(Spread::of(&[]), None);
        // 2, 4, 4, 4, 5, 5, 7, 9 deviate by 2 from their mean of 5; two equal paths do not deviate.
        let mut rows = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(|mbps| path(1, mbps)).to_vec();
        rows.extend([path(2, 100.0), path(2, 100.0)]);
        let expected = Spread { pairs: 2, paths: 10, mean_mbps: 24.0, sd_mbps: 1.0 };
        assert_eq!(Spread::of(&rows), Some(expected));
    }
}
