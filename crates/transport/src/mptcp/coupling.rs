//! How the windows of the subflows grow together.

/// A subflow, as the coupling sees it: its window in segments, and its smoothed round-trip time in seconds (above zero).
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub cwnd: f64,
    pub rtt_s: f64,
}

/// RFC 6356 section 3, equation 1: the most by which a window may grow for each segment acknowledged, `alpha /
/// cwnd_total` with alpha of equation 2. No limit without a subflow that was measured.
pub(super) fn linked_increase(shares: impl Iterator<Item = Share>) -> f64 {
    let (mut best, mut sum) = (0.0_f64, 0.0);
    for Share { cwnd, rtt_s } in shares {
        best = best.max(cwnd / (rtt_s * rtt_s));
        sum += cwnd / rtt_s;
    }
    // alpha = cwnd_total best / sum^2, so that cwnd_total cancels out.
    if sum > 0.0 { best / (sum * sum) } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(shares: &[(f64, f64)]) -> f64 {
        linked_increase(shares.iter().map(|&(cwnd, rtt_s)| Share { cwnd, rtt_s }))
    }

    #[test]
    fn the_increase_is_that_of_rfc_6356_by_hand() {
        // One subflow: alpha = 1, so 1 / cwnd, as TCP.
        assert!((limit(&[(10.0, 0.1)]) - 0.1).abs() < 1e-12);
        // Two alike: together 1 / cwnd_total for each acknowledged segment at either, a quarter of what two TCPs do.
        assert!((limit(&[(10.0, 0.1), (10.0, 0.1)]) - 1.0 / 40.0).abs() < 1e-12);
        // cwnd 10 and 20, RTT 1 and 2: alpha = 30 x 10 / (10 + 10)^2 = 0.75; over a total of 30.
        assert!((limit(&[(10.0, 1.0), (20.0, 2.0)]) - 0.75 / 30.0).abs() < 1e-12);
        assert!(limit(&[]).is_infinite());
    }
}
