//! TR's model of completion times for a scenario that somebody gives, equation by equation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::Scenario;
use crate::ParameterError;
use crate::model::{self, Working, quantities};

/// Inputs of TR's equations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inputs {
    /// `n_g`: good paths. Source: TR, Design motivation.
    pub good_paths: u32,
    /// `n_b`: bad paths. Source: TR, Design motivation.
    pub bad_paths: u32,
    /// `B`: packets that a switch's output queue holds. Source: TR, Design motivation.
    pub buffer_packets: f64,
    /// `N`: flows that start together. Source: TR Fig. 6a.
    pub flows: u32,
    /// `S`: payload of a flow (size), in packets of `segment`. Source: TR Fig. 6b.
    pub size: Bytes,
    /// Payload of a packet (size). Source: not in TR; 1,500 B without 40 B of headers.
    pub segment: Bytes,
    /// `H`: later packets that arrive before a missing one is sent again. Source: RFC 5681 §3.2.
    pub duplicates: u32,
    /// `d_g`: delay of a round over a good path, without queues (time). Source: TR, Design
    /// motivation.
    pub good_delay: Span,
    /// `d_b`: delay of a round over a bad path, without queues (time). Source: TR, Design
    /// motivation has 1.5 to 3.5 times the good one; the middle of that.
    pub bad_delay: Span,
    /// `t`: how long it takes to send a packet (time). Source: 1,500 B at the 1 Gbit/s of TR,
    /// Design motivation.
    pub packet_time: Span,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            good_paths: 5,
            bad_paths: 5,
            buffer_packets: 250.0,
            flows: 20,
            size: Bytes::from_kb(300),
            segment: Bytes::new(1_460),
            duplicates: 3,
            good_delay: Span::from_us(200),
            bad_delay: Span::from_us(500),
            packet_time: Span::from_us(12),
        }
    }
}

impl Inputs {
    fn scenario(&self) -> Result<Scenario, ParameterError> {
        let check = |wrong: bool, key, found: &dyn ToString, allowed| {
            if wrong { Err(ParameterError { key, found: found.to_string(), allowed }) } else { Ok(()) }
        };
        check(self.segment.is_zero(), "segment", &self.segment, "larger than nothing")?;
        check(self.size.is_zero(), "size", &self.size, "larger than nothing")?;
        // TR eq. 4 is a sum over the packets of a flow.
        let packets = self.size.as_u64().div_ceil(self.segment.as_u64());
        let fits = u32::try_from(packets).ok().filter(|&packets| packets <= 10_000_000);
        check(fits.is_none(), "size", &self.size, "at most 10 million packets of `segment`")?;
        check(self.duplicates > 1_000, "duplicates", &self.duplicates, "1 to 1000")?;
        check(self.bad_delay < self.good_delay, "bad_delay", &self.bad_delay, "at least `good_delay`")?;
        let scenario = Scenario {
            good_paths: self.good_paths,
            bad_paths: self.bad_paths,
            buffer_packets: self.buffer_packets,
            flows: self.flows,
            flow_packets: fits.unwrap_or(u32::MAX),
            duplicates: self.duplicates,
            good_us: self.good_delay.as_us(),
            bad_us: self.bad_delay.as_us(),
            packet_us: self.packet_time.as_us(),
        };
        scenario.validate().map(|()| scenario)
    }
}

impl model::Inputs for Inputs {
    const NAME: &'static str = "tr";
    const TITLE: &'static str =
        "TR: completion times under random packet spraying and under TR, over good and bad paths.";
    const SOURCE: &'static str = "Zhang et al., Journal of Cloud Computing 2021, section Model analysis";

    fn work_out(&self) -> Result<Working, ParameterError> {
        let scenario = self.scenario()?;
        let rps_window = scenario.rps_window();
        let rows = [
            ("packets", "given", "S", "packets of a flow", "packets", scenario.flow_packets.into()),
            ("largest_window", "text", "n B / N", "largest window", "packets", scenario.largest_window()),
            (
                "reordered",
                "4",
                "P_fr",
                "probability of a retransmission, RPS",
                "",
                scenario.fast_retransmit_probability(),
            ),
            ("rps_window", "3, 5", "w", "mean window, RPS", "packets", rps_window),
            ("rps_round", "6", "r", "mean round, RPS", "us", scenario.rps_round_us(rps_window)),
            ("rps_time", "2, 7", "F_RPS", "completion time, RPS", "us", scenario.rps_completion_us()),
            ("tr_window", "text", "3 n B / 4 N", "mean window, TR", "packets", scenario.tr_window()),
            ("tr_round", "text", "r", "mean round on bad paths, TR", "us", scenario.tr_round_us()),
            ("tr_time", "8", "F_TR", "completion time at worst, TR", "us", scenario.tr_completion_us()),
        ];
        Ok(Working { quantities: quantities(rows), conclusions: conclusions(&scenario) })
    }
}

fn conclusions(scenario: &Scenario) -> Vec<String> {
    let (rps, tr) = (scenario.rps_completion_us(), scenario.tr_completion_us());
    let mut found = vec![format!("At worst, TR takes {:.3} times as long as RPS.", tr / rps)];
    let window = scenario.largest_window();
    if window < 1.0 {
        found.push(
            "The largest window is less than a packet, which no sender has: the equations do not hold."
                .to_owned(),
        );
    }
    // TR eq. 2: 3 w² / 8 packets while a window grows from half of w to w.
    if f64::from(scenario.flow_packets) < 0.375 * window * window {
        found.push("A flow ends before its window has grown once from half to all of its share: Eq. 2 is a mean that it does not reach.".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Inputs as _;

    fn value(inputs: &Inputs, key: &str) -> f64 {
        inputs.work_out().unwrap().value(key).unwrap()
    }

    #[test]
    fn every_equation_worked_by_hand() {
        // The scenario of the tests of the equations: three paths, four packets.
        let inputs = Inputs {
            good_paths: 2,
            bad_paths: 1,
            buffer_packets: 100.0,
            flows: 10,
            size: Bytes::from_kb(4),
            segment: Bytes::from_kb(1),
            duplicates: 2,
            bad_delay: Span::from_us(400),
            ..Inputs::default()
        };
        let window = 30.0 * 67.0 / 81.0;
        let all_good = libm::pow(2.0 / 3.0, window);
        let round = (1.0 - all_good) * 400.0 + all_good * 200.0 + 10.0 * window * 12.0 / 3.0;
        for (key, expected) in [
            ("packets", 4.0),
            ("largest_window", 30.0),
            ("reordered", 28.0 / 81.0),
            ("rps_window", window),
            ("rps_round", round),
            ("rps_time", 16.0 * round / (3.0 * window)),
            ("tr_window", 22.5),
            ("tr_round", 400.0 + 900.0),
            ("tr_time", 40.0 * 20_800.0 / 2_700.0),
        ] {
            let found = value(&inputs, key);
            assert!((found - expected).abs() < 1e-9 * expected, "{key} is {found}, not {expected}");
        }
    }

    #[test]
    fn a_flow_has_as_many_packets_as_its_payload_fills() {
        let of = |bytes| value(&Inputs { size: Bytes::new(bytes), ..Inputs::default() }, "packets");
        assert_eq!([of(1), of(1_460), of(1_461)].map(|packets| packets as u32), [1, 1, 2]);
    }

    #[test]
    fn sentences_say_where_the_equations_do_not_hold() {
        let said = |flows, kb| {
            let inputs = Inputs { flows, size: Bytes::from_kb(kb), ..Inputs::default() };
            inputs.work_out().unwrap().conclusions.join(" ")
        };
        assert!(said(20, 300).contains("ends before its window has grown once"));
        assert!(!said(250, 300).contains("ends before its window has grown once"));
        assert!(said(2_501, 300).contains("less than a packet"));
    }

    #[test]
    fn inputs_that_the_equations_do_not_hold_for_are_refused() {
        let base = Inputs::default;
        let refused = |inputs: Inputs| inputs.work_out().unwrap_err().key;
        assert_eq!(refused(Inputs { segment: Bytes::ZERO, ..base() }), "segment");
        assert_eq!(refused(Inputs { size: Bytes::ZERO, ..base() }), "size");
        assert_eq!(refused(Inputs { size: Bytes::new(u64::MAX), ..base() }), "size");
        assert_eq!(refused(Inputs { bad_delay: Span::from_us(100), ..base() }), "bad_delay");
        assert_eq!(refused(Inputs { flows: 0, ..base() }), "flows");
        assert_eq!(refused(Inputs { duplicates: u32::MAX, ..base() }), "duplicates");
    }
}
