//! The parameters of Hermes, and the thresholds that follow from them for each rack.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use crate::acknowledgements::Acknowledgements;
use crate::registry::Parameters;
use crate::{FabricFacts, ParameterError};

/// Which of the two fabrics that its authors had Hermes is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Their simulations, at 10 Gbit/s.
    #[default]
    Simulation,
    /// Their testbed, at 1 Gbit/s.
    Testbed,
}

/// Measure of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// The time there and back.
    #[default]
    RoundTrip,
    /// The time there.
    OneWay,
}

/// Which of several paths of a class a flow takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prefers {
    /// That by which the host sends least.
    #[default]
    LeastRate,
    /// That with the fewest flows of the host, of those with as short a round trip.
    FewestFlows,
}

/// Whose sending rate keeps a flow on a bad path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateOf {
    /// The flow's own.
    #[default]
    Flow,
    /// The host's by the path.
    Path,
}

/// A parameter that is not given is as its set has it.
macro_rules! with_defaults_by_set {
    ($(#[$attr:meta])* pub struct Params { $($(#[$doc:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$attr])*
        pub struct Params { $($(#[$doc])* pub $field: $type,)* }

        impl<'de> Deserialize<'de> for Params {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Default, Deserialize)]
                #[serde(default, deny_unknown_fields)]
                struct Given { $($field: Option<$type>,)* }
                let given = Given::deserialize(deserializer)?;
                let usual = Self::of(given.set.unwrap_or_default());
                Ok(Self { $($field: given.$field.unwrap_or(usual.$field),)* })
            }
        }
    };
}

with_defaults_by_set! {
    /// Parameters of Hermes. The defaults are what its authors recommend, not those of the public
    /// simulator's driver.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Defaults of the other parameters: `simulation`, as they say themselves, for 10 Gbit/s;
        /// `testbed`, for 1 Gbit/s: `rtt_low` 200us, `rtt_high` 800us, `one_hop_delay` 240us,
        /// `ecn_threshold` 0.5, `reroute_after` 102400B, `reroute_below` 0.45, `retry_gap` 1ms.
        /// Source: what the authors' simulator recommends, and their testbed's module.
        pub set: Set,
        /// Measure of round trips: `round-trip`, there and back; `one-way`, there alone, by clocks
        /// that agree, in steps of 131ns and at most 2.1ms, and then thresholds are of it, and an
        /// idle one takes half the idle round trip. Source: round trips in the paper (recalled);
        /// the authors' simulator measures one way.
        pub measures: Measures,
        /// `T_RTT_low`: a path with a shorter round trip may be good (time). Default: the idle
        /// round trip to the rack and 20us. Source: recommended by the authors' simulator (20us and
        /// the base), and 20 to 40us in the paper (recalled).
        pub rtt_low: Option<Span>,
        /// `T_RTT_high`: a path with a longer round trip may be bad (time). Default: the idle round
        /// trip to the rack and 1.5 times `one_hop_delay`. Source: the paper (recalled); with an
        /// idle round trip of 60us it is the 180us that the authors' simulator recommends.
        pub rtt_high: Option<Span>,
        /// `Delta_RTT`: a path is notably better only if its round trip is shorter by more than
        /// this (time). Default: `one_hop_delay`. Source: the paper (recalled); the authors'
        /// simulator recommends 100us.
        pub delta_rtt: Option<Span>,
        /// How long a queue takes to drain that has just reached the marking threshold (time).
        /// Source: 65 packets of 1,500 bytes at 10 Gbit/s are 78us; 80us gives the recommended
        /// `rtt_high`.
        pub one_hop_delay: Span,
        /// Whether marks count. If not, round trips alone class paths, as for a transport without
        /// ECN. Source: both signals in the paper; the authors' simulations took round trips alone,
        /// their testbed marks alone.
        pub ecn: bool,
        /// `T_ECN`: the share of marked packets above which a path may be bad, and below which it
        /// may be good: 0 to 1. Source: 40 % in the paper (recalled).
        pub ecn_threshold: f64,
        /// `Delta_ECN`: a path is notably better only if its share of marked packets is less by
        /// more than this: 0 to 1. Source: 3 to 10 % in the paper (recalled); not enforced in
        /// public code.
        pub delta_ecn: f64,
        /// Which of several paths of a class a flow takes: `least-rate`, that by which the host
        /// sends least; `fewest-flows`, of those in the lowest class of round trips, 10us wide from
        /// `rtt_low` on, the fifth and last without end, that with the fewest flows of the host.
        /// Source: the least sending rate in the paper (recalled); numbers of flows is what the
        /// authors' simulator compares.
        pub prefers: Prefers,
        /// Whether a flow leaves a bad path for another bad one, the first that is notably better,
        /// if no better path is. Source: no in the paper (recalled); yes in the authors' simulator.
        pub leaves_for_bad: bool,
        /// S: a flow leaves a bad path only when it has sent more than this by it, headers included
        /// (size). Source: recommended by the authors' simulator; 100 to 800 KB in the paper
        /// (recalled).
        pub reroute_after: Bytes,
        /// R: a flow leaves a bad path only if it sends at less than this share of the host's rate:
        /// above 0, at most 1. Source: 20 to 40 % in the paper (recalled).
        pub reroute_below: f64,
        /// Whose rate that is: `flow`, the flow's own; `path`, that of all flows of the host by
        /// this path. Source: the flow's in the paper (recalled); the path's in the authors'
        /// simulator.
        pub reroute_rate: RateOf,
        /// How likely a flow that may leave a bad path tries to: above 0, at most 1. Source: 50 %
        /// in the authors' simulator and testbed, against herds.
        pub reroute_probability: f64,
        /// Least time between two such tries of a flow (time). Source: fixed in the authors'
        /// simulator; 1ms in their testbed of 1 Gbit/s.
        pub retry_gap: Span,
        /// How often an agent probes (time). Source: 500us, of 100 to 500us recommended by the
        /// authors' simulator.
        pub probe_interval: Span,
        /// Whether an agent probes the best path of the time before, too. Source: power of two
        /// choices with memory in the paper (recalled); the authors' simulator never notes which
        /// path was best.
        pub probe_best: bool,
        /// Paths that an agent draws at random each time, beside the best one of the time before: 1
        /// to 64. Source: two choices in the paper, three probed paths in MEET and in the authors'
        /// simulator.
        pub samples: u16,
        /// An estimate that nothing renews loses 1 % of its weight each time this passes (time).
        /// Source: the authors' simulator, and 60us recommended there; open in the paper
        /// (recalled).
        pub aging: Span,
        /// Round trip that old estimates tend to, and that unknown paths are taken to have (time).
        /// Default: midway between the two thresholds. Source: grey, as nothing is known; 1.5 times
        /// the low threshold in the authors' simulator.
        pub aged_rtt: Option<Span>,
        /// A flow of which no acknowledgement came by its path for so long is placed anew (time).
        /// Default: never, but after a timeout. Source: the paper has timeouts (recalled); 1ms in
        /// the authors' simulator, as numbers of flows need it.
        pub forget_after: Option<Span>,
        /// Which way acknowledgements take, and answers to probes and to connection requests:
        /// `balanced`, the path with the number of the data's; `ecmp`, that of their hash. Source:
        /// open in the paper (recalled); ECMP in the authors' simulator, unless asked.
        pub acknowledgements: Acknowledgements,
        /// A path is a blackhole for a pair of hosts after so many timeouts without an
        /// acknowledgement: 1 to 255. Source: the paper (recalled).
        pub blackhole_timeouts: u8,
        /// A path that is not bad drops at random if more than this share of its packets is sent
        /// again: above 0, below 1. Source: 1 % in the paper (recalled).
        pub retransmitted: f64,
        /// For how long packets are counted before that share is taken (time). Source: 10ms in the
        /// paper (recalled).
        pub window: Span,
        /// How long a failed path is left alone (time). Source: the authors' simulator; open in the
        /// paper.
        pub failed_for: Span,
        /// How often an estimator of a sending rate decays (time). Source: the authors' simulator.
        pub t_dre: Span,
        /// By which share it decays: above 0, below 1. Source: the authors' simulator; with `t_dre`
        /// the time constant is 150us.
        pub alpha: f64,
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            set: Set::Simulation,
            measures: Measures::RoundTrip,
            rtt_low: None,
            rtt_high: None,
            delta_rtt: None,
            one_hop_delay: Span::from_us(80),
            ecn: true,
            ecn_threshold: 0.4,
            delta_ecn: 0.05,
            prefers: Prefers::LeastRate,
            leaves_for_bad: false,
            reroute_after: Bytes::from_kb(600),
            reroute_below: 0.3,
            reroute_rate: RateOf::Flow,
            reroute_probability: 0.5,
            retry_gap: Span::from_us(100),
            probe_interval: Span::from_us(500),
            probe_best: true,
            samples: 2,
            aging: Span::from_us(60),
            aged_rtt: None,
            forget_after: None,
            acknowledgements: Acknowledgements::Balanced,
            blackhole_timeouts: 3,
            retransmitted: 0.01,
            window: Span::from_ms(10),
            failed_for: Span::from_s(100),
            t_dre: Span::from_us(30),
            alpha: 0.2,
        }
    }
}

/// Thresholds of round trips to one rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// `T_RTT_low`.
    pub low: Span,
    /// `T_RTT_high`.
    pub high: Span,
}

impl Params {
    /// The defaults of a set.
    pub fn of(set: Set) -> Self {
        let simulation = Self::default();
        match set {
            Set::Simulation => simulation,
            Set::Testbed => Self {
                set,
                rtt_low: Some(Span::from_us(200)),
                rtt_high: Some(Span::from_us(800)),
                // DCTCP's 20 packets at 1 Gbit/s: the module does without.
                one_hop_delay: Span::from_us(240),
                // Above it a path is bad there, and good below 0.1: here is one threshold.
                ecn_threshold: 0.5,
                reroute_after: Bytes::new(102_400),
                // 450 Mbit/s.
                reroute_below: 0.45,
                retry_gap: Span::from_ms(1),
                ..simulation
            },
        }
    }

    /// Above the idle round trip.
    const LOW_ABOVE_BASE: Span = Span::from_us(20);

    /// Measure of an idle path to a rack with this idle round trip.
    fn idle(&self, base_rtt: Span) -> Span {
        match self.measures {
            Measures::RoundTrip => base_rtt,
            Measures::OneWay => base_rtt / 2,
        }
    }

    /// The thresholds for a rack with this idle round trip.
    pub(super) fn thresholds(&self, base_rtt: Span) -> Thresholds {
        let idle = self.idle(base_rtt);
        let low = self.rtt_low.unwrap_or(idle + Self::LOW_ABOVE_BASE);
        let high = self.rtt_high.unwrap_or(idle + self.one_hop_delay * 3 / 2).max(low);
        Thresholds { low, high }
    }

    /// How long after a probe the answer of a path that is not bad is back.
    pub(super) fn answered_after(&self, base_rtt: Span) -> Span {
        self.thresholds(base_rtt).high + (base_rtt - self.idle(base_rtt))
    }

    /// `Delta_RTT`.
    pub(super) fn delta_rtt(&self) -> Span {
        self.delta_rtt.unwrap_or(self.one_hop_delay)
    }
}

fn refuse(key: &'static str, found: &impl ToString, allowed: &'static str) -> Result<(), ParameterError> {
    Err(ParameterError { key, found: found.to_string(), allowed })
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let times = [
            ("one_hop_delay", self.one_hop_delay),
            ("probe_interval", self.probe_interval),
            ("aging", self.aging),
            ("window", self.window),
            ("t_dre", self.t_dre),
        ];
        for (key, time) in times {
            if time.is_zero() {
                return refuse(key, &time, "longer than nothing");
            }
        }
        for (key, share) in [("ecn_threshold", self.ecn_threshold), ("delta_ecn", self.delta_ecn)] {
            if !(0.0..=1.0).contains(&share) {
                return refuse(key, &share, "0 to 1");
            }
        }
        for (key, share) in
            [("reroute_below", self.reroute_below), ("reroute_probability", self.reroute_probability)]
        {
            if !(share > 0.0 && share <= 1.0) {
                return refuse(key, &share, "above 0, at most 1");
            }
        }
        for (key, share) in [("retransmitted", self.retransmitted), ("alpha", self.alpha)] {
            if !(share > 0.0 && share < 1.0) {
                return refuse(key, &share, "above 0, below 1");
            }
        }
        if !(1..=64).contains(&self.samples) {
            return refuse("samples", &self.samples, "1 to 64");
        }
        if let Some(time) = self.forget_after.filter(|time| time.is_zero()) {
            return refuse("forget_after", &time, "longer than nothing");
        }
        if self.blackhole_timeouts == 0 {
            return refuse("blackhole_timeouts", &0, "1 to 255");
        }
        match (self.rtt_low, self.rtt_high) {
            (Some(low), Some(high)) if high <= low => refuse("rtt_high", &high, "longer than rtt_low"),
            _ => Ok(()),
        }
    }

    /// Without a choice of paths nothing is probed or classed, and everything fits.
    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        if fabric.routes() < 2 {
            return Ok(());
        }
        let base = fabric.base_rtt();
        let found = |time: Span| format!("{time} (an idle round trip takes {base})");
        if self.forget_after.is_some_and(|after| after < base) {
            let allowed = "at least the idle round trip: no acknowledgement comes sooner";
            return refuse("forget_after", &found(self.forget_after.unwrap_or_default()), allowed);
        }
        if self.probe_interval < base {
            let allowed = "at least the idle round trip: probes would overtake their answers";
            return refuse("probe_interval", &found(self.probe_interval), allowed);
        }
        let given = [("rtt_low", self.rtt_low), ("rtt_high", self.rtt_high)];
        for (key, time) in given.into_iter().filter_map(|(key, time)| Some((key, time?))) {
            if time <= self.idle(base) {
                let allowed = match self.measures {
                    Measures::RoundTrip => "longer than the idle round trip",
                    Measures::OneWay => "longer than half the idle round trip (measures = \"one-way\")",
                };
                return refuse(key, &found(time), allowed);
            }
        }
        let Thresholds { low, high } = self.thresholds(base);
        if let Some(aged) = self.aged_rtt.filter(|aged| !(low..=high).contains(aged)) {
            return refuse("aged_rtt", &found(aged), "from rtt_low to rtt_high: grey, as nothing is known");
        }
        if high <= low {
            let key = if self.rtt_high.is_some() { "rtt_high" } else { "rtt_low" };
            let allowed = "rtt_low below rtt_high (give both, or neither)";
            return refuse(key, &found(if self.rtt_high.is_some() { high } else { low }), allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::GivenFacts;

    fn changed(change: impl FnOnce(&mut Params)) -> Params {
        let mut params = Params::default();
        change(&mut params);
        params
    }

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    #[test]
    fn thresholds_follow_the_idle_round_trip_unless_given() {
        // 60us is the authors' base: they recommend 60 + 20 (they measure one way: 40 + 20) and
        // 180.
        let defaults = Params::default();
        assert_eq!(defaults.thresholds(us(60)), Thresholds { low: us(80), high: us(180) });
        assert_eq!(defaults.thresholds(us(40)), Thresholds { low: us(60), high: us(160) });
        assert_eq!(defaults.delta_rtt(), us(80));
        let slow = changed(|params| params.one_hop_delay = us(240));
        assert_eq!((slow.thresholds(us(100)).high, slow.delta_rtt()), (us(460), us(240)));
        let given = changed(|params| {
            (params.rtt_low, params.rtt_high, params.delta_rtt) = (Some(us(7)), Some(us(9)), Some(us(3)));
        });
        assert_eq!(given.thresholds(us(40)), Thresholds { low: us(7), high: us(9) });
        assert_eq!(given.delta_rtt(), us(3));
    }

    #[test]
    fn one_way_an_idle_path_takes_half_and_answers_come_a_way_later() {
        let one_way = changed(|params| params.measures = Measures::OneWay);
        // The authors' 40us for a round trip of 40us, with 20us above the way there.
        assert_eq!(one_way.thresholds(us(40)), Thresholds { low: us(40), high: us(140) });
        assert_eq!(
            (Params::default().answered_after(us(40)), one_way.answered_after(us(40))),
            (us(160), us(160))
        );
        let facts = GivenFacts { base_rtt: us(40), routes: 2, hosts: 32 };
        let low = |low| Params { rtt_low: Some(us(low)), ..one_way.clone() }.fits(&facts);
        assert_eq!(low(21), Ok(()));
        assert_eq!(
            low(20).expect_err("too low").allowed,
            "longer than half the idle round trip (measures = \"one-way\")"
        );
    }

    #[test]
    fn a_set_is_chosen_by_name_and_single_parameters_are_as_given() {
        let read = |text: &str| serde_json::from_str::<Params>(text).map_err(|error| error.to_string());
        assert_eq!(read("{}"), Ok(Params::default()));
        assert_eq!(read(r#"{"set": "simulation"}"#), Ok(Params::default()));
        let testbed = read(r#"{"set": "testbed"}"#).unwrap();
        assert_eq!(testbed.thresholds(us(100)), Thresholds { low: us(200), high: us(800) });
        assert_eq!((testbed.delta_rtt(), testbed.retry_gap), (us(240), us(1_000)));
        assert_eq!((testbed.reroute_after, testbed.reroute_below), (Bytes::new(102_400), 0.45));
        assert_eq!(testbed.validate(), Ok(()));
        let given = read(r#"{"retry_gap": "5us", "set": "testbed", "rtt_low": "150us"}"#).unwrap();
        assert_eq!(given, Params { retry_gap: us(5), rtt_low: Some(us(150)), ..testbed });
        // What is written back, as a resolved spec is, reads as the same.
        let written = serde_json::to_string(&given).unwrap();
        assert_eq!(read(&written), Ok(given));
        assert!(read(r#"{"set": "test"}"#).unwrap_err().contains("`simulation` or `testbed`"));
        assert!(read(r#"{"sets": "testbed"}"#).unwrap_err().contains("unknown field `sets`"));
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused_by_name() {
        let bad = [
            ("one_hop_delay", changed(|params| params.one_hop_delay = Span::ZERO)),
            ("probe_interval", changed(|params| params.probe_interval = Span::ZERO)),
            ("aging", changed(|params| params.aging = Span::ZERO)),
            ("window", changed(|params| params.window = Span::ZERO)),
            ("t_dre", changed(|params| params.t_dre = Span::ZERO)),
            ("ecn_threshold", changed(|params| params.ecn_threshold = 1.1)),
            ("delta_ecn", changed(|params| params.delta_ecn = f64::NAN)),
            ("reroute_below", changed(|params| params.reroute_below = 0.0)),
            ("reroute_probability", changed(|params| params.reroute_probability = 1.5)),
            ("retransmitted", changed(|params| params.retransmitted = 1.0)),
            ("alpha", changed(|params| params.alpha = 0.0)),
            ("samples", changed(|params| params.samples = 0)),
            ("blackhole_timeouts", changed(|params| params.blackhole_timeouts = 0)),
            ("rtt_high", changed(|params| (params.rtt_low, params.rtt_high) = (Some(us(9)), Some(us(9))))),
            ("forget_after", changed(|params| params.forget_after = Some(Span::ZERO))),
        ];
        for (key, params) in bad {
            assert_eq!(params.validate().expect_err(key).key, key);
        }
    }

    #[test]
    fn thresholds_and_interval_must_be_above_the_idle_round_trip_where_there_is_a_choice() {
        let [choice, none] = [2, 1].map(|routes| GivenFacts { base_rtt: us(40), routes, hosts: 32 });
        let bad = [
            ("probe_interval", changed(|params| params.probe_interval = us(39))),
            ("forget_after", changed(|params| params.forget_after = Some(us(39)))),
            ("rtt_low", changed(|params| params.rtt_low = Some(us(40)))),
            ("rtt_high", changed(|params| params.rtt_high = Some(us(30)))),
            // Above the base, but not above 40 + 20.
            ("rtt_high", changed(|params| params.rtt_high = Some(us(60)))),
            ("aged_rtt", changed(|params| params.aged_rtt = Some(us(59)))),
            ("aged_rtt", changed(|params| params.aged_rtt = Some(us(161)))),
            // Not below 40 + 1.5 x 80.
            ("rtt_low", changed(|params| params.rtt_low = Some(us(160)))),
        ];
        for (key, params) in bad {
            assert_eq!(params.fits(&choice).expect_err(key).key, key);
            assert_eq!(params.fits(&none), Ok(()), "{key}: nothing to choose");
        }
        assert_eq!(Params::default().fits(&choice), Ok(()));
        let message = changed(|params| params.rtt_low = Some(us(40))).fits(&choice).expect_err("too low");
        let said = "rtt_low is 40us (an idle round trip takes 40us): longer than the idle round trip";
        assert_eq!(message.to_string(), said);
    }
}
