//! Linked increases (RFC 6356): all windows of a flow together grow as that of one TCP on its best
//! path.

use super::SubflowWindow;

/// RFC 6356 §3, eq. 1: the most by which a window may grow for each segment acknowledged, `alpha /
/// cwnd_total` with alpha of eq. 2.
pub(super) fn increase(shares: impl Iterator<Item = SubflowWindow>) -> f64 {
    let (mut best, mut sum) = (0.0_f64, 0.0);
    for SubflowWindow { cwnd, rtt_s, .. } in shares {
        best = best.max(cwnd / (rtt_s * rtt_s));
        sum += cwnd / rtt_s;
    }
    // alpha = cwnd_total best / sum^2, so that cwnd_total cancels out.
    best / (sum * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linked_increase_is_that_of_rfc_6356_by_hand() {
        let limit = |shares: &[(f64, f64)]| {
            increase(shares.iter().map(|&(cwnd, rtt_s)| SubflowWindow { cwnd, rtt_s, between_losses: 0 }))
        };
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        // One subflow: alpha = 1, so 1 / cwnd, as TCP.
        close(limit(&[(10.0, 0.1)]), 0.1);
        // Two alike: together 1 / cwnd_total for each acknowledged segment at either, a quarter of
        // what two TCPs do.
        close(limit(&[(10.0, 0.1), (10.0, 0.1)]), 1.0 / 40.0);
        // cwnd 10 and 20, RTT 1 and 2: alpha = 30 x 10 / (10 + 10)^2 = 0.75; over a total of 30.
        close(limit(&[(10.0, 1.0), (20.0, 2.0)]), 0.75 / 30.0);
    }
}
