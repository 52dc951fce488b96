//! The parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Span;

use super::discovery::Discovery;
use super::header::PathId;
use crate::acknowledgements::Acknowledgements;
use crate::registry::{FlowletRule, Parameters, check_table_size};
use crate::{FabricFacts, ParameterError};

/// Parameters of CLOVE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Where it runs: `host`, in each host's virtual switch; `leaf`, in the switch of a rack, for
    /// all of its hosts. Source: the hypervisor's virtual switch in CLOVE (recalled); `leaf` is a
    /// reading of this project: MEET's table has a "software edge switch".
    pub at: At,
    /// Choice of a flowlet's path: `ecn`, weights that marks change; `edge-flowlet`, chance.
    /// Source: both in CLOVE; a public ns-3 driver defaults to edge-flowlet, MEET describes ECN.
    pub mode: Mode,
    /// How packets are steered: `entropy`, by what switches hash, after traces have found what
    /// leads where; `routes`, by explicit routes, which hosts know from the start. Source:
    /// entropies in CLOVE; a public ns-3 port is given all paths, and its switches follow labels.
    pub steers: Steers,
    /// Which path a flowlet takes in mode `ecn`: `in-turn`, by weighted round robin; `at-random`,
    /// by chance in proportion to the weights. Source: weighted round robin (recalled); a public
    /// ns-3 port draws.
    pub choice: Choice,
    /// Which way acknowledgements, NACKs and CNPs take: `balanced`, by paths as all packets;
    /// `ecmp`, by their own entropy, and they tell of marks as before. Source: virtual switches at
    /// both ends (recalled); a public ns-3 port steers what the end that opened the connection
    /// sends.
    pub acknowledgements: Acknowledgements,
    /// Pause of a flow that ends a flowlet (time). Default: twice the base round trip to the
    /// destination's rack. Source: one to two round trips (recalled, not checked); a public ns-3
    /// driver takes 500us, its class 40us.
    pub gap: Option<Span>,
    /// Share of a path's weight that a reported mark takes away: above 0, below 1. Source: by a
    /// third (recalled); 0.33 in a public ns-3 port.
    pub cut: f64,
    /// Who receives what was cut: `others`, all other paths; `uncongested`, those of which no mark
    /// was reported for two relay intervals. Source: a public ns-3 port has both and defaults to
    /// all others; the paper says uncongested ones (recalled).
    pub spread: Spread,
    /// Least time between two reports of marks on one path by one far edge, and between two cuts of
    /// one path (time). Default: half the base round trip between the racks. Source: half a round
    /// trip, recalled for reports; a public ns-3 port spaces cuts, by 40us.
    pub relay: Option<Span>,
    /// Who keeps to that time: `both-ends`, the receiving host for reports and the sending host for
    /// cuts; `sender`, the sending host alone, and whatever goes back tells of a mark. Source:
    /// reports are spaced in CLOVE (recalled); a public ns-3 port spaces cuts, and takes each
    /// acknowledgement's echo for a report.
    pub spaced_by: SpacedBy,
    /// Which of the marks that its own transport would see a guest gets: `pass`, all;
    /// `all-congested`, only while marks of every path were reported. Source: CLOVE hides marks
    /// unless all paths are congested (recalled), for guests without ECN; a public ns-3 port, which
    /// runs under DCTCP, passes them.
    pub guest_marks: GuestMarks,
    /// Most paths to a destination that are kept: 1 to 64. Source: open in the paper; 16 are all
    /// paths between two pods of a fat-tree of 8 ports.
    pub paths: u32,
    /// Entropies that a discovery traces: from `paths` to 256. Source: open in the paper; 64 find
    /// all of 8 equally likely paths in 99.8 % of discoveries.
    pub candidates: u32,
    /// Destinations of one table of paths and weights: `rack`, all hosts of a rack; `host`, each
    /// host, as where switches hash addresses too. Source: each pair of hypervisors in the paper
    /// (recalled); a public ns-3 port has one a rack.
    pub scope: Scope,
    /// Time from one discovery to the next (time). Source: hundreds of milliseconds, as MEET cites
    /// CLOVE.
    pub rediscover: Span,
    /// Time after which answers to traces are missed, and asked for again, three times in all
    /// (time). Source: open in the paper; long enough for full queues of 300us on five hops.
    pub trace_timeout: Span,
    /// Entries of the flowlet table of a leaf, where it runs there: a power of two, 1 to
    /// 16,777,216. Source: a choice, as large as CONGA's; a virtual switch has an entry for each of
    /// its flows.
    pub entries: u32,
}

/// Where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// In the virtual switch of each host.
    #[default]
    Host,
    /// In the switch of a rack.
    Leaf,
}

/// Choice of a flowlet's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Chance.
    EdgeFlowlet,
    /// Weights that marks change.
    #[default]
    Ecn,
}

/// How packets are steered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Steers {
    /// By what switches hash.
    #[default]
    Entropy,
    /// By explicit routes.
    Routes,
}

/// Which path a flowlet takes by the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The one whose turn it is.
    #[default]
    InTurn,
    /// Any, in proportion to the weights.
    AtRandom,
}

/// Who receives what was cut off a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All other paths.
    #[default]
    Others,
    /// The other paths of which no mark was reported for two relay intervals.
    Uncongested,
}

/// Who spaces reports and cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpacedBy {
    /// The far edge its reports, and the sending host its cuts.
    #[default]
    BothEnds,
    /// The sending host its cuts.
    Sender,
}

/// Which marks a guest gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestMarks {
    /// All that are meant for it.
    #[default]
    Pass,
    /// Those that arrive while every path is congested.
    AllCongested,
}

/// Destinations that share one table of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All hosts of a rack.
    #[default]
    Rack,
    /// A host.
    Host,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            at: At::default(),
            mode: Mode::default(),
            steers: Steers::default(),
            choice: Choice::default(),
            acknowledgements: Acknowledgements::default(),
            gap: None,
            cut: 0.33,
            spread: Spread::default(),
            relay: None,
            spaced_by: SpacedBy::default(),
            guest_marks: GuestMarks::default(),
            paths: 16,
            candidates: 64,
            scope: Scope::default(),
            rediscover: Span::from_ms(500),
            trace_timeout: Span::from_ms(2),
            entries: 1 << 16,
        }
    }
}

impl Params {
    /// The pause that ends a flowlet to a rack with this base round trip.
    pub fn gap(&self, base_rtt: Span) -> Span {
        self.gap.unwrap_or(base_rtt.saturating_mul(2))
    }

    /// The least time between two reports of one path to a rack with this base round trip.
    pub fn report_interval(&self, base_rtt: Span) -> Span {
        match self.spaced_by {
            SpacedBy::BothEnds => self.relay_interval(base_rtt),
            SpacedBy::Sender => Span::ZERO,
        }
    }

    /// The least time between two cuts of one path to a rack with this base round trip.
    pub fn relay_interval(&self, base_rtt: Span) -> Span {
        self.relay.unwrap_or(base_rtt / 2)
    }
}

fn refuse(key: &'static str, found: &dyn ToString, allowed: &'static str) -> Result<(), ParameterError> {
    Err(ParameterError { key, found: found.to_string(), allowed })
}

impl Parameters for Params {
    fn flowlets(&self, base_rtt: Span) -> Option<FlowletRule> {
        Some(FlowletRule::informed(self.gap(base_rtt)))
    }

    fn validate(&self) -> Result<(), ParameterError> {
        if let Some(gap) = self.gap.filter(|gap| gap.is_zero()) {
            return refuse("gap", &gap, "longer than nothing");
        }
        if let Some(relay) = self.relay.filter(|relay| relay.is_zero()) {
            return refuse("relay", &relay, "longer than nothing");
        }
        if !(self.cut > 0.0 && self.cut < 1.0) {
            return refuse("cut", &self.cut, "above 0 and below 1 (mode = \"edge-flowlet\" has no weights)");
        }
        if !(1..=PathId::SLOTS as u32).contains(&self.paths) {
            return refuse("paths", &self.paths, "1 to 64");
        }
        if self.candidates < self.paths || self.candidates > Discovery::TRACES {
            return refuse("candidates", &self.candidates, "from paths to 256");
        }
        if self.trace_timeout.is_zero() {
            return refuse("trace_timeout", &self.trace_timeout, "longer than nothing");
        }
        if self.rediscover < self.trace_timeout {
            return refuse("rediscover", &self.rediscover, "at least trace_timeout");
        }
        if self.at == At::Leaf && self.scope == Scope::Host {
            return refuse(
                "scope",
                &"host",
                "rack, where at = \"leaf\": a leaf is one edge for all of its hosts",
            );
        }
        if self.at == At::Leaf && self.steers == Steers::Routes {
            return refuse("steers", &"routes", "entropy, where at = \"leaf\": hosts have the map of routes");
        }
        check_table_size(self.entries)
    }

    fn runs_at_switches(&self) -> bool {
        self.at == At::Leaf
    }

    fn asks_for_base_rtts(&self) -> bool {
        self.at == At::Leaf
    }

    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        if self.trace_timeout < fabric.base_rtt() {
            return refuse(
                "trace_timeout",
                &self.trace_timeout,
                "at least the longest base round trip of the fabric: no answer is back sooner",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::GivenFacts;

    fn refused(change: impl FnOnce(&mut Params)) -> Option<&'static str> {
        let mut params = Params::default();
        change(&mut params);
        params.validate().err().map(|error| error.key)
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        assert_eq!(refused(|_| ()), None);
        assert_eq!(refused(|params| params.gap = Some(Span::ZERO)), Some("gap"));
        assert_eq!(refused(|params| params.relay = Some(Span::ZERO)), Some("relay"));
        for cut in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(|params| params.cut = cut), Some("cut"), "{cut}");
        }
        for paths in [0, 65] {
            assert_eq!(refused(|params| params.paths = paths), Some("paths"));
        }
        for candidates in [0, 15, 257] {
            assert_eq!(refused(|params| params.candidates = candidates), Some("candidates"));
        }
        assert_eq!(refused(|params| params.trace_timeout = Span::ZERO), Some("trace_timeout"));
        assert_eq!(refused(|params| params.rediscover = Span::from_ms(1)), Some("rediscover"));
        assert_eq!(refused(|params| (params.paths, params.candidates) = (64, 64)), None);
        assert_eq!(refused(|params| params.entries = 1_000), Some("entries"));
        assert_eq!(refused(|params| (params.at, params.scope) = (At::Leaf, Scope::Host)), Some("scope"));
        assert_eq!(refused(|params| (params.at, params.steers) = (At::Leaf, Steers::Routes)), Some("steers"));
        assert_eq!(refused(|params| params.at = At::Leaf), None);
        assert_eq!(refused(|params| params.steers = Steers::Routes), None);
    }

    #[test]
    fn answers_must_have_time_to_come_back() {
        let fits =
            |us| Params::default().fits(&GivenFacts { base_rtt: Span::from_us(us), hosts: 128, routes: 4 });
        assert_eq!(fits(2_000), Ok(()));
        assert_eq!(fits(2_001).unwrap_err().key, "trace_timeout");
        let one_route = GivenFacts { base_rtt: Span::ZERO, hosts: 128, routes: 1 };
        assert_eq!(Params::default().fits(&one_route), Ok(()), "nothing to choose is no mistake");
    }

    #[test]
    fn what_is_not_said_follows_the_round_trip() {
        let rtt = Span::from_us(40);
        let said = Params { gap: Some(Span::from_us(7)), relay: Some(Span::from_us(9)), ..Params::default() };
        assert_eq!((Params::default().gap(rtt), Params::default().relay_interval(rtt)), (rtt * 2, rtt / 2));
        assert_eq!((said.gap(rtt), said.relay_interval(rtt)), (Span::from_us(7), Span::from_us(9)));
    }
}
