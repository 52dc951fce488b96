//! `FlowBender`: a flow whose packets come back marked takes another hash, and so, by ECMP, another
//! path (Kabbani et al., `CoNEXT` 2014).
//!
//! The sender counts, round by round, which share of the acknowledgements echoes a mark. After
//! `rounds` rounds in a row above `threshold` it changes a header field that the switches hash. A
//! retransmission timeout changes it at once: the path may be dead. Where the new hash leads,
//! nobody knows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet};

use super::relabel::Label;
use super::rounds::{Round, Rounds};
use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

/// Parameters of `FlowBender`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of a round's acknowledgements above which the round counts as congested (T): 0 up to,
    /// not including, 1. Source: 5 % in the public ns-3 port and, from memory, in the paper.
    pub threshold: f64,
    /// Congested rounds in a row after which the flow moves (N), at least 1. Source: 1 in the
    /// public ns-3 port and, from memory, in the paper.
    pub rounds: u32,
    /// Draw the rounds to wait for anew after each move, evenly from 1 to 2 x `rounds` - 1, so that
    /// flows that met on one path do not leave it together. Source: the paper, from memory,
    /// proposes random N against synchrony; a choice here how. With one round there is nothing to
    /// draw.
    pub random_rounds: bool,
    /// Whether a retransmission timeout moves the flow. Source: the paper, from memory: that is how
    /// it leaves failed links.
    pub on_timeout: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self { threshold: 0.05, rounds: 1, random_rounds: false, on_timeout: true }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if !(0.0..1.0).contains(&self.threshold) {
            let found = self.threshold.to_string();
            return Err(ParameterError { key: "threshold", found, allowed: "0 up to, not including, 1" });
        }
        if !(1..=1_000).contains(&self.rounds) {
            return Err(ParameterError {
                key: "rounds",
                found: self.rounds.to_string(),
                allowed: "1 to 1000",
            });
        }
        Ok(())
    }
}

/// `FlowBender` at one host.
#[derive(Debug, Clone)]
pub struct FlowBender {
    params: Params,
    moves: u64,
    timeout_moves: u64,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    label: Label,
    rounds: Rounds,
    congested: u32,
    /// Congested rounds to wait for; 0 before the first draw.
    patience: u32,
}

impl FlowBender {
    /// The rounds to wait for before the next move.
    fn patience<C: HostContext + ?Sized>(&self, cx: &mut C) -> u32 {
        if self.params.random_rounds {
            1 + cx.random().below(2 * self.params.rounds - 1)
        } else {
            self.params.rounds
        }
    }

    /// A round is over.
    fn judge<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, round: Round) {
        if f64::from(round.marked_acks) <= self.params.threshold * f64::from(round.acks) {
            flow.congested = 0;
            return;
        }
        flow.congested += 1;
        if flow.patience == 0 {
            flow.patience = self.patience(cx);
        }
        if flow.congested >= flow.patience {
            self.moves += 1;
            self.move_on(cx, flow);
        }
    }

    fn move_on<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        flow.label.change(cx);
        flow.congested = 0;
        flow.patience = self.patience(cx);
    }
}

impl HostScheme for FlowBender {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo<'_>) -> Self {
        Self { params: params.clone(), moves: 0, timeout_moves: 0 }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, ..HostHooks::default() }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, _cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        if packet.kind == Kind::Data {
            flow.rounds.sent(packet);
        }
        flow.label.write(packet);
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        if packet.kind == Kind::Ack
            && let Some(round) = flow.rounds.acknowledged(&packet)
        {
            self.judge(cx, flow, round);
        }
        cx.deliver(packet);
    }

    fn timed_out<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        if self.params.on_timeout {
            self.timeout_moves += 1;
            self.move_on(cx, flow);
        }
    }

    /// Nothing beside the flows.
    fn state_bytes(&self) -> u64 {
        0
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("moves_by_marks", self.moves);
        count("moves_by_timeouts", self.timeout_moves);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::tests::{ack, segment};
    use crate::testing::{FakeHost, with};

    use super::*;

    /// A sender that has sent `sent` segments.
    fn sender(params: &Params, sent: u32) -> (FlowBender, FakeHost, Flow) {
        let (mut scheme, mut host) = (FlowBender::new(params, &FakeHost::info(1)), FakeHost::new(4, 1));
        let mut flow = Flow::default();
        send(&mut scheme, &mut host, &mut flow, 0..sent);
        (scheme, host, flow)
    }

    fn send(
        scheme: &mut FlowBender,
        host: &mut FakeHost,
        flow: &mut Flow,
        seqs: std::ops::Range<u32>,
    ) -> Vec<u32> {
        seqs.map(|seq| with(segment(seq), |packet| scheme.on_send(host, flow, packet)).entropy).collect()
    }

    /// Acknowledges segment after segment up to `to`; every one of `marked` echoes a mark.
    fn acks(scheme: &mut FlowBender, host: &mut FakeHost, flow: &mut Flow, from: u32, to: u32, marked: u32) {
        for (index, seq) in (from..to).enumerate() {
            scheme.on_receive(host, flow, ack(seq + 1, (index as u32) < marked));
        }
    }

    #[test]
    fn a_flow_moves_only_above_the_threshold() {
        // Segment 0 ends the first round; the second has the 20 acknowledgements from 2 to 21.
        for (marked, moves) in [(0, 0), (1, 0), (2, 1), (20, 1)] {
            let (mut scheme, mut host, mut flow) = sender(&Params::default(), 20);
            acks(&mut scheme, &mut host, &mut flow, 0, 1, 0);
            let before = send(&mut scheme, &mut host, &mut flow, 20..21)[0];
            acks(&mut scheme, &mut host, &mut flow, 1, 21, marked);
            let after = send(&mut scheme, &mut host, &mut flow, 21..22)[0];
            // 1 of 20 is 5 %: not above.
            assert_eq!((scheme.moves, before != after), (moves, moves > 0), "{marked} of 20 marked");
        }
    }

    #[test]
    fn a_clean_round_starts_the_count_again() {
        let params = Params { rounds: 2, ..Params::default() };
        for (pattern, moves) in [([true, false, true], 0), ([true, true, false], 1), ([false, true, true], 1)]
        {
            let (mut scheme, mut host, mut flow) = sender(&params, 1);
            acks(&mut scheme, &mut host, &mut flow, 0, 1, 0);
            for (round, congested) in (1..).zip(pattern) {
                send(&mut scheme, &mut host, &mut flow, round..round + 1);
                acks(&mut scheme, &mut host, &mut flow, round, round + 1, u32::from(congested));
            }
            assert_eq!(scheme.moves, moves, "{pattern:?}");
        }
    }

    #[test]
    fn a_timeout_moves_at_once_unless_told_otherwise() {
        for on_timeout in [true, false] {
            let (mut scheme, mut host, mut flow) = sender(&Params { on_timeout, ..Params::default() }, 1);
            let before = send(&mut scheme, &mut host, &mut flow, 1..2);
            scheme.timed_out(&mut host, &mut flow);
            assert_eq!(before != send(&mut scheme, &mut host, &mut flow, 1..2), on_timeout);
        }
    }

    #[test]
    fn random_patience_is_between_one_and_twice_the_rounds() {
        let params = Params { rounds: 3, random_rounds: true, ..Params::default() };
        let (scheme, mut host, _) = sender(&params, 0);
        let mut seen = [0; 7];
        (0..600).for_each(|_| seen[scheme.patience(&mut host) as usize] += 1);
        assert!(seen[0] == 0 && seen[6] == 0 && seen[1..6].iter().all(|&count| count > 0), "{seen:?}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |params: Params| params.validate().map_err(|error| error.key);
        assert_eq!(refused(Params { threshold: 1.0, ..Params::default() }), Err("threshold"));
        assert_eq!(refused(Params { threshold: f64::NAN, ..Params::default() }), Err("threshold"));
        assert_eq!(refused(Params { threshold: -0.1, ..Params::default() }), Err("threshold"));
        assert_eq!(refused(Params { rounds: 0, ..Params::default() }), Err("rounds"));
    }
}
