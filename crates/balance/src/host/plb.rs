//! PLB: protective load balancing. A connection that has been congested for some rounds takes
//! another flow label, best when it is idle anyway (Qureshi et al., SIGCOMM 2022; Linux 6.2 and
//! later).
//!
//! A round of a flow is congested if the share of its segments that were acknowledged with a
//! congestion echo is at least `congested_share`. After `idle_rounds` congested rounds in a row the
//! flow takes a new label when it starts to send again with nothing outstanding: then nothing can
//! be reordered. After `forced_rounds` it does so in any case. A retransmission timeout changes the
//! label at once, and suspends PLB for a random time between once and twice `suspend`, lest it go
//! back to a path that is dead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet};
use weft_units::{Span, Time};

use super::relabel::Label;
use super::rounds::{Round, Rounds};
use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

/// Parameters of PLB: those of Linux, by its names `net.ipv4.tcp_plb_*`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Congested rounds in a row after which an idle flow takes a new label; 0 for never. Source:
    /// Linux, `tcp_plb_idle_rehash_rounds` = 3.
    pub idle_rounds: u32,
    /// Congested rounds in a row after which a busy flow does, 1 to 31. Source: Linux,
    /// `tcp_plb_rehash_rounds` = 12.
    pub forced_rounds: u32,
    /// Share of marked segments from which a round counts as congested: above 0 to 1. Source:
    /// Linux, `tcp_plb_cong_thresh` = 128 of 256.
    pub congested_share: f64,
    /// How long a retransmission timeout suspends it, at least; at most twice that. Source: Linux,
    /// `tcp_plb_suspend_rto_sec` = 60.
    pub suspend: Span,
}

impl Default for Params {
    fn default() -> Self {
        Self { idle_rounds: 3, forced_rounds: 12, congested_share: 0.5, suspend: Span::from_s(60) }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if self.idle_rounds > 31 {
            return refuse("idle_rounds", self.idle_rounds.to_string(), "0 to 31");
        }
        if !(1..=31).contains(&self.forced_rounds) {
            return refuse("forced_rounds", self.forced_rounds.to_string(), "1 to 31");
        }
        if !(self.congested_share > 0.0 && self.congested_share <= 1.0) {
            return refuse("congested_share", self.congested_share.to_string(), "above 0 to 1");
        }
        Ok(())
    }
}

/// PLB at one host.
#[derive(Debug, Clone)]
pub struct Plb {
    params: Params,
    counts: Counts,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    idle: u64,
    forced: u64,
    timeouts: u64,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    label: Label,
    rounds: Rounds,
    congested: u32,
    suspended_until: Time,
}

impl Plb {
    /// A round is over. Counts as Linux does: congested rounds stop at what forces a new label.
    fn judge(&self, flow: &mut Flow, round: Round) {
        let congested = f64::from(round.marked_segments)
            >= self.params.congested_share * f64::from(round.segments.max(1));
        flow.congested = if congested { (flow.congested + 1).min(self.params.forced_rounds) } else { 0 };
    }

    /// Takes a new label if congestion lasted and no timeout was lately.
    fn check<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        let idle =
            self.params.idle_rounds > 0 && flow.rounds.is_idle() && flow.congested >= self.params.idle_rounds;
        let forced = flow.congested >= self.params.forced_rounds;
        if !(idle || forced) || cx.now() < flow.suspended_until {
            return;
        }
        *(if idle { &mut self.counts.idle } else { &mut self.counts.forced }) += 1;
        flow.label.change(cx);
        flow.congested = 0;
    }
}

impl HostScheme for Plb {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo<'_>) -> Self {
        Self { params: params.clone(), counts: Counts::default() }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, ..HostHooks::default() }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        if packet.kind == Kind::Data {
            if flow.rounds.is_idle() {
                self.check(cx, flow);
            }
            flow.rounds.sent(packet);
        }
        flow.label.write(packet);
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        if packet.kind == Kind::Ack
            && let Some(round) = flow.rounds.acknowledged(&packet)
        {
            self.judge(flow, round);
            self.check(cx, flow);
        }
        cx.deliver(packet);
    }

    fn timed_out<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        self.counts.timeouts += 1;
        flow.label.change(cx);
        flow.congested = 0;
        let longer = self.params.suspend.as_ps() as f64 * cx.random().unit();
        flow.suspended_until = cx.now().saturating_add(self.params.suspend + Span::from_ps(longer as u64));
    }

    /// Nothing beside the flows.
    fn state_bytes(&self) -> u64 {
        0
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("rehashes_idle", self.counts.idle);
        count("rehashes_forced", self.counts.forced);
        count("rehashes_by_timeouts", self.counts.timeouts);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::tests::{ack, segment};
    use crate::testing::{FakeHost, with};

    use super::*;

    struct World {
        scheme: Plb,
        host: FakeHost,
        flow: Flow,
        next: u32,
    }

    impl World {
        fn new(params: &Params) -> Self {
            let (scheme, host) = (Plb::new(params, &FakeHost::info(1)), FakeHost::new(4, 1));
            Self { scheme, host, flow: Flow::default(), next: 0 }
        }

        fn send(&mut self) -> u32 {
            let (scheme, host, flow) = (&mut self.scheme, &mut self.host, &mut self.flow);
            let sent = with(segment(self.next), |packet| scheme.on_send(host, flow, packet));
            self.next += 1;
            sent.entropy
        }

        /// A round, which ends with the acknowledgement of its first segment; if `busy`, a second
        /// one is outstanding then.
        fn round(&mut self, marked: bool, busy: bool) {
            self.send();
            let seq = self.next;
            if busy {
                self.send();
            }
            self.scheme.on_receive(&mut self.host, &mut self.flow, ack(seq, marked));
        }

        fn counts(&self) -> [u64; 3] {
            let Counts { idle, forced, timeouts } = self.scheme.counts;
            [idle, forced, timeouts]
        }
    }

    #[test]
    fn an_idle_flow_takes_a_new_label_after_three_congested_rounds() {
        let mut world = World::new(&Params::default());
        world.round(true, false);
        world.round(true, false);
        let before = world.send();
        assert_eq!(world.counts(), [0, 0, 0]);
        world.scheme.on_receive(&mut world.host, &mut world.flow, ack(world.next, true));
        // The acknowledgement leaves nothing outstanding: the label changes before the next
        // segment.
        assert_ne!(world.send(), before);
        assert_eq!(world.counts(), [1, 0, 0]);
    }

    #[test]
    fn a_busy_flow_is_forced_after_twelve_and_a_clean_round_forgives() {
        let mut world = World::new(&Params::default());
        (0..11).for_each(|_| world.round(true, true));
        world.round(false, true);
        (0..11).for_each(|_| world.round(true, true));
        assert_eq!(world.counts(), [0, 0, 0]);
        world.round(true, true);
        assert_eq!(world.counts(), [0, 1, 0]);
        assert_eq!(world.flow.congested, 0, "the count starts again");
    }

    #[test]
    fn half_of_a_round_is_enough_and_less_is_not() {
        let mut world = World::new(&Params::default());
        for (marked_segments, congested) in [(4, 0), (5, 1), (10, 2), (4, 0)] {
            let round = Round { segments: 10, marked_segments, ..Round::default() };
            world.scheme.judge(&mut world.flow, round);
            assert_eq!(world.flow.congested, congested);
        }
    }

    #[test]
    fn a_timeout_moves_at_once_and_suspends_for_one_to_two_times_the_span() {
        let mut world = World::new(&Params::default());
        world.send();
        let before = world.send();
        world.scheme.timed_out(&mut world.host, &mut world.flow);
        assert_ne!(world.send(), before);
        let pause = world.flow.suspended_until.since(world.host.now);
        assert!((Span::from_s(60)..Span::from_s(120)).contains(&pause), "{pause}");
        (0..40).for_each(|_| world.round(true, true));
        assert_eq!(world.counts(), [0, 0, 1], "suspended");
        world.host.now = world.flow.suspended_until;
        world.round(true, true);
        assert_eq!(world.counts(), [0, 1, 1], "the rounds were counted meanwhile");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |params: Params| params.validate().map_err(|error| error.key);
        assert_eq!(refused(Params { idle_rounds: 32, ..Params::default() }), Err("idle_rounds"));
        assert_eq!(refused(Params { forced_rounds: 0, ..Params::default() }), Err("forced_rounds"));
        assert_eq!(refused(Params { congested_share: 0.0, ..Params::default() }), Err("congested_share"));
        assert_eq!(
            refused(Params { congested_share: f64::NAN, ..Params::default() }),
            Err("congested_share")
        );
        assert_eq!(refused(Params { idle_rounds: 0, ..Params::default() }), Ok(()));
    }
}
