//! Opportunistic linked increases (Khalili et al. 2012; draft-khalili-mptcp-congestion-control-05).

use super::SubflowWindow;

/// OLIA (Khalili et al. 2012; draft-khalili-mptcp-congestion-control-05 §3): `w / rtt^2` over the
/// square of the sum of all `w / rtt`, and `alpha / w`, for each segment acknowledged.
pub(super) fn increase(own: SubflowWindow, shares: &(impl Iterator<Item = SubflowWindow> + Clone)) -> f64 {
    let sum: f64 = shares.clone().map(|share| share.cwnd / share.rtt_s).sum();
    own.cwnd / (own.rtt_s * own.rtt_s) / (sum * sum) + alpha(own, shares) / own.cwnd
}

/// OLIA's alpha: window moves from the subflows with the largest one to those that seem best and
/// have less. All alphas add up to zero. Windows are compared in whole segments, as Linux does:
/// exact ones are hardly ever equal.
fn alpha(own: SubflowWindow, shares: &(impl Iterator<Item = SubflowWindow> + Clone)) -> f64 {
    let largest = shares.clone().map(|share| share.cwnd as u32).max().unwrap_or_default();
    let best = shares.clone().map(SubflowWindow::quality).fold(0.0, f64::max);
    let has_largest = |share: &SubflowWindow| share.cwnd as u32 == largest;
    let is_collected = |share: &SubflowWindow| share.quality() >= best && !has_largest(share);
    let count = |of: &dyn Fn(&SubflowWindow) -> bool| shares.clone().filter(of).count() as f64;
    let (all, collected) = (count(&|_| true), count(&is_collected));
    if collected == 0.0 {
        0.0
    } else if is_collected(&own) {
        1.0 / (all * collected)
    } else if has_largest(&own) {
        -1.0 / (all * count(&has_largest))
    } else {
        0.0
    }
}

impl SubflowWindow {
    /// Square of the rate of a TCP on the path: segments between losses / RTT^2, since its rate is
    /// sqrt(2 / loss) / RTT.
    fn quality(self) -> f64 {
        f64::from(self.between_losses) / (self.rtt_s * self.rtt_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share((cwnd, rtt_s, between_losses): (f64, f64, u32)) -> SubflowWindow {
        SubflowWindow { cwnd, rtt_s, between_losses }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    fn all_close<const N: usize>(found: [f64; N], expected: [f64; N]) {
        found.into_iter().zip(expected).for_each(|(found, expected)| close(found, expected));
    }

    fn alphas<const N: usize>(shares: [(f64, f64, u32); N]) -> [f64; N] {
        shares.map(|own| alpha(share(own), &shares.iter().copied().map(share)))
    }

    #[test]
    fn olias_alpha_moves_window_from_the_largest_to_the_best_by_hand() {
        // The best one has the largest window: nothing moves, however many paths there are.
        all_close(alphas([(10.0, 1.0, 50)]), [0.0]);
        all_close(alphas([(20.0, 1.0, 50), (10.0, 1.0, 40)]), [0.0, 0.0]);
        // The best one has less than the largest: +-1/2 / 1.
        all_close(alphas([(20.0, 1.0, 40), (10.0, 1.0, 50)]), [-0.5, 0.5]);
        // Four paths, two largest, one best, one neither: -1/4 / 2 each, 1/4 / 1, and 0.
        all_close(
            alphas([(20.9, 1.0, 40), (20.1, 1.0, 40), (10.0, 1.0, 90), (5.0, 1.0, 10)]),
            [-0.125, -0.125, 0.25, 0.0],
        );
        // Losses are rarer on the second path, but its RTT is twice as long: 40 / 1 against 120 /
        // 4.
        all_close(alphas([(10.0, 1.0, 40), (20.0, 2.0, 120)]), [0.5, -0.5]);
    }

    #[test]
    fn the_increase_is_that_of_the_paper_by_hand() {
        let each = |own: usize, shares: &[(f64, f64, u32)]| {
            increase(share(shares[own]), &shares.iter().copied().map(share))
        };
        // One subflow: 1 / cwnd, as TCP.
        close(each(0, &[(10.0, 0.1, 7)]), 0.1);
        // w / rtt^2 = 20 and 10 over (20 + 10)^2, and -+1/2 over the window.
        let shares = [(20.0, 1.0, 40), (10.0, 1.0, 50)];
        close(each(0, &shares), 20.0 / 900.0 - 0.5 / 20.0);
        close(each(1, &shares), 10.0 / 900.0 + 0.5 / 10.0);
        // cwnd 10 and 20, RTT 1 and 2, alike in quality: 20 / 4 over (10 + 10)^2, and the largest
        // loses 1/2 over 20.
        close(each(1, &[(10.0, 1.0, 40), (20.0, 2.0, 160)]), 5.0 / 400.0 - 0.5 / 20.0);
    }
}
