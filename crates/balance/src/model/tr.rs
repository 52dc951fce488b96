//! TR's model of completion times under RPS and under TR, over good and bad paths (TR §Model
//! analysis).
//!
//! All flows start together and are of one size. A flow's window grows from half to all of its
//! share of the buffers on the paths; packets on good paths arrive before those on bad ones that
//! were sent just before. Packets are of one size.
//!
//! The paper calls its delays "end-to-end" and uses their sum as a round-trip time: here they are
//! those of a whole round.

use crate::ParameterError;

mod inputs;

pub use inputs::Inputs;

/// The model's scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Good paths.
    pub good_paths: u32,
    /// Bad paths; at least one path in all.
    pub bad_paths: u32,
    /// Packets that an output queue holds (B): above 0.
    pub buffer_packets: f64,
    /// Flows that share the paths (N): at least 1.
    pub flows: u32,
    /// Packets of a flow (S): at least 1.
    pub flow_packets: u32,
    /// Packets that must arrive after a missing one for it to be sent again (H): at least 1; TCP
    /// has 3.
    pub duplicates: u32,
    /// Delay of a round over a good path, without queues, in us.
    pub good_us: f64,
    /// Delay of a round over a bad path, without queues, in us.
    pub bad_us: f64,
    /// Time to send a packet, in us.
    pub packet_us: f64,
}

impl Scenario {
    /// Refuses what the equations do not hold for.
    ///
    /// # Errors
    /// The first such value.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found: String, allowed| Err(ParameterError { key, found, allowed });
        let counts = [
            ("good_paths", u64::from(self.good_paths) + u64::from(self.bad_paths)),
            ("flows", self.flows.into()),
            ("flow_packets", self.flow_packets.into()),
            ("duplicates", self.duplicates.into()),
        ];
        if let Some((key, _)) = counts.into_iter().find(|&(_, count)| count == 0) {
            return refuse(key, "0".to_owned(), "at least 1 (good and bad paths together)");
        }
        if !(self.buffer_packets.is_finite() && self.buffer_packets > 0.0) {
            return refuse("buffer_packets", self.buffer_packets.to_string(), "above 0");
        }
        let times = [("good_us", self.good_us), ("bad_us", self.bad_us), ("packet_us", self.packet_us)];
        match times.into_iter().find(|(_, us)| !(us.is_finite() && *us >= 0.0)) {
            Some((key, us)) => refuse(key, us.to_string(), "0 or more"),
            None => Ok(()),
        }
    }

    fn paths(&self) -> f64 {
        f64::from(self.good_paths) + f64::from(self.bad_paths)
    }

    /// The share of good paths.
    fn good(&self) -> f64 {
        f64::from(self.good_paths) / self.paths()
    }

    /// The largest window without reordering, in packets: n B / N.
    pub fn largest_window(&self) -> f64 {
        self.paths() * self.buffer_packets / f64::from(self.flows)
    }

    /// The probability that a flow sends a packet again because of reordering, under RPS.
    ///
    /// TR eq. 4. Its terms, divided by n^S, are those of binomial distributions: packet i is the
    /// first on a bad path, and at least H of the S - i that follow are on good ones. (The paper's
    /// lower limit "k - H" is read as k = H.)
    pub fn fast_retransmit_probability(&self) -> f64 {
        let (good, bad) = (self.good(), f64::from(self.bad_paths) / self.paths());
        let mut sum = 0.0;
        let mut all_before_good = 1.0;
        for packet in 1..=self.flow_packets.saturating_sub(self.duplicates) {
            sum += all_before_good * bad * at_least(self.duplicates, self.flow_packets - packet, good);
            all_before_good *= good;
        }
        sum
    }

    /// The mean window under RPS, in packets: the largest one, or half of it after a packet was
    /// sent again (TR eq. 3, with TR eq. 4 in it TR eq. 5).
    pub fn rps_window(&self) -> f64 {
        let again = self.fast_retransmit_probability();
        let largest = self.largest_window();
        largest * (1.0 - again) + largest / 2.0 * again
    }

    /// The delay of a round with a window of `window` packets under RPS, in us: that of a bad path
    /// if any packet takes one, and the queues (TR eq. 6).
    pub fn rps_round_us(&self, window: f64) -> f64 {
        let all_good = libm::pow(self.good(), window);
        (1.0 - all_good) * self.bad_us + all_good * self.good_us + self.queues_us(window)
    }

    /// The completion time of a flow under RPS, in us (TR eq. 7).
    pub fn rps_completion_us(&self) -> f64 {
        let window = self.rps_window();
        self.completion_us(window, self.rps_round_us(window))
    }

    /// The mean window under TR, in packets: 3 n B / (4 N), since nothing is sent again.
    pub fn tr_window(&self) -> f64 {
        0.75 * self.largest_window()
    }

    /// The completion time of a flow under TR if its first packet takes a bad path and all others
    /// follow it, in us: the worst case (TR eq. 8).
    pub fn tr_completion_us(&self) -> f64 {
        self.completion_us(self.tr_window(), self.tr_round_us())
    }

    /// The delay of a round under TR in the worst case, in us: that of a bad path, and the queues.
    pub fn tr_round_us(&self) -> f64 {
        self.bad_us + self.queues_us(self.tr_window())
    }

    /// The mean time that a round spends in queues, in us: N w t / n.
    fn queues_us(&self, window: f64) -> f64 {
        f64::from(self.flows) * window * self.packet_us / self.paths()
    }

    /// The completion time of a flow whose window goes from half of `window` to all of it, again
    /// and again, in us (tr TR eq. 2): 3 w² / 8 packets in w / 2 rounds.
    fn completion_us(&self, window: f64, round_us: f64) -> f64 {
        4.0 * f64::from(self.flow_packets) * round_us / (3.0 * window)
    }
}

/// The probability that at least `hits` of `draws` hit, each with probability `hit`.
fn at_least(hits: u32, draws: u32, hit: f64) -> f64 {
    let miss = 1.0 - hit;
    if hits > draws {
        return 0.0;
    }
    if miss <= 0.0 {
        return 1.0;
    }
    // One less the probability of fewer hits, each term from the one before.
    let mut term = libm::pow(miss, f64::from(draws));
    let mut fewer = 0.0;
    for count in 0..hits {
        fewer += term;
        term *= f64::from(draws - count) / f64::from(count + 1) * hit / miss;
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three paths, one of them bad.
    const SMALL: Scenario = Scenario {
        good_paths: 2,
        bad_paths: 1,
        buffer_packets: 100.0,
        flows: 10,
        flow_packets: 4,
        duplicates: 2,
        good_us: 200.0,
        bad_us: 400.0,
        packet_us: 12.0,
    };

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
    }

    #[test]
    fn equation_4_worked_by_hand() {
        // i = 1: C(3,2) 2^2 1^2 + C(3,3) 2^3 1 = 12 + 8; i = 2: C(2,2) 2^3 1 = 8; of 3^4 = 81.
        assert_near(SMALL.fast_retransmit_probability(), 28.0 / 81.0);
        let coin = Scenario { good_paths: 1, flow_packets: 3, ..SMALL };
        assert_near(coin.fast_retransmit_probability(), 1.0 / 8.0);
    }

    #[test]
    fn equation_4_is_its_double_sum() {
        let power = |base: f64, exponent: u32| libm::pow(base, exponent.into());
        let choose = |n: u32, k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        for (good, bad, packets, h) in
            [(5, 5, 20, 3), (1, 9, 15, 3), (9, 1, 30, 5), (3, 4, 3, 3), (2, 2, 12, 1)]
        {
            let (g, b) = (f64::from(good), f64::from(bad));
            let mut sum = 0.0;
            for i in 1..=packets - h {
                for k in h..=packets - i {
                    let ways = power(g, i - 1 + k) * power(b, packets - i - k + 1);
                    sum += choose(packets - i, k) * ways;
                }
            }
            let scenario =
                Scenario { good_paths: good, bad_paths: bad, flow_packets: packets, duplicates: h, ..SMALL };
            assert_near(scenario.fast_retransmit_probability(), sum / power(g + b, packets));
        }
    }

    #[test]
    fn paths_of_one_kind_reorder_nothing() {
        let good = Scenario { bad_paths: 0, ..SMALL };
        let bad = Scenario { good_paths: 0, ..SMALL };
        assert_near(good.fast_retransmit_probability(), 0.0);
        assert_near(bad.fast_retransmit_probability(), 0.0);
        assert_near(good.rps_round_us(7.0), 200.0 + 10.0 * 7.0 * 12.0 / 2.0);
        assert_near(bad.rps_round_us(7.0), 400.0 + 10.0 * 7.0 * 12.0);
    }

    #[test]
    fn windows_rounds_and_completion_times_worked_by_hand() {
        // 3 x 100 / 10 = 30 packets; half of it with probability 28 / 81: 30 (1 - 14 / 81).
        assert_near(SMALL.largest_window(), 30.0);
        assert_near(SMALL.rps_window(), 30.0 * 67.0 / 81.0);
        // Two packets: 4/9 both good; queues 10 x 2 x 12 / 3.
        assert_near(SMALL.rps_round_us(2.0), 5.0 / 9.0 * 400.0 + 4.0 / 9.0 * 200.0 + 80.0);
        let window = SMALL.rps_window();
        assert_near(SMALL.rps_completion_us(), 16.0 * SMALL.rps_round_us(window) / (3.0 * window));
        // TR eq. 8 in its last form: S N (16 db + 12 B t) / (9 n B) = 40 x 20,800 / 2,700.
        assert_near(SMALL.tr_completion_us(), 40.0 * 20_800.0 / 2_700.0);
    }

    /// TR Fig. 6: TR is faster at every size and number of flows, though its worst case is what is
    /// counted.
    #[test]
    fn tr_is_faster_than_rps_throughout_the_papers_figure() {
        for ratio in [1.5, 3.5] {
            for (flows, kilobytes) in [(20, 100), (20, 350), (10, 300), (100, 300)] {
                let scenario = Scenario {
                    good_paths: 5,
                    bad_paths: 5,
                    buffer_packets: 250.0,
                    flows,
                    flow_packets: kilobytes * 2 / 3,
                    duplicates: 3,
                    good_us: 200.0,
                    bad_us: 200.0 * ratio,
                    packet_us: 12.0,
                };
                assert_eq!(scenario.validate(), Ok(()));
                let (tr, rps) = (scenario.tr_completion_us(), scenario.rps_completion_us());
                assert!(tr < rps, "{flows} flows, {kilobytes} KB: TR {tr:.0} us, RPS {rps:.0} us");
            }
        }
    }

    #[test]
    fn a_scenario_that_the_equations_do_not_hold_for_is_refused() {
        let refused = |scenario: Scenario| scenario.validate().unwrap_err().key;
        assert_eq!(refused(Scenario { good_paths: 0, bad_paths: 0, ..SMALL }), "good_paths");
        assert_eq!(refused(Scenario { flows: 0, ..SMALL }), "flows");
        assert_eq!(refused(Scenario { flow_packets: 0, ..SMALL }), "flow_packets");
        assert_eq!(refused(Scenario { duplicates: 0, ..SMALL }), "duplicates");
        assert_eq!(refused(Scenario { buffer_packets: f64::NAN, ..SMALL }), "buffer_packets");
        assert_eq!(refused(Scenario { bad_us: -1.0, ..SMALL }), "bad_us");
    }
}
