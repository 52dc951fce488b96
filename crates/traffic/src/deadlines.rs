//! Deadlines: by when a flow should be done, counted from its start. Nothing in a run looks at
//! them; results do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Purpose, Span, Stream};

use crate::{Flow, TrafficError};

/// Which flows get a deadline, and which: `fixed`, drawn evenly between `at_least` and `at_most`,
/// or drawn from an exponential distribution with a `mean`. LBT speaks of short flows that miss
/// their deadlines and leaves open what these are; D3, which it cites, draws them exponentially
/// with means of 20, 30 and 40 ms (SIGCOMM 2011).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeadlineSpec {
    /// Flows smaller than this have a deadline, as in `"100KB"`. Default: all but long-lived ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_below: Option<Bytes>,
    /// The deadline of all, as in `"10ms"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Span>,
    /// With `at_most`: the earliest deadline of those drawn evenly. With `mean`: what is drawn
    /// below is raised to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Span>,
    /// With `at_least`: deadlines are drawn evenly between the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Span>,
    /// Deadlines are drawn from an exponential distribution with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Span>,
}

/// How a deadline is found.
#[derive(Clone, Copy)]
enum Rule {
    Fixed(Span),
    Even { from: Span, to: Span },
    Exponential { mean: Span, at_least: Span },
}

impl DeadlineSpec {
    /// Which keys stand together, and what they say.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        self.rule().map(|_| ())
    }

    /// A deadline or none for each flow: one draw a flow, whether it has one or not, so that
    /// `flows_below` moves none.
    pub(crate) fn draw(&self, flows: &[Flow], seed: u64) -> Result<Vec<Option<Span>>, TrafficError> {
        let rule = self.rule()?;
        let mut random = Stream::new(seed, Purpose::Deadlines, 0);
        let below = self.flows_below.map_or(u64::MAX, Bytes::as_u64);
        let deadline = |flow: &Flow| {
            let drawn = rule.draw(&mut random);
            (!flow.background && flow.size_bytes < below).then_some(drawn)
        };
        Ok(flows.iter().map(deadline).collect())
    }

    /// Why no rule follows: two keys that exclude each other, or one that lacks.
    fn amiss(&self) -> TrafficError {
        let reason = "give fixed, or at_least and at_most, or mean (and at_least)";
        let others = [
            ("at_least", self.at_least.is_some()),
            ("at_most", self.at_most.is_some()),
            ("mean", self.mean.is_some()),
        ];
        // Both at_least and at_most go with something, so the pair is told that does not.
        let (one, with) = match (self.fixed, self.at_most, self.mean) {
            (Some(_), ..) => ("fixed", others.into_iter().find(|(_, given)| *given)),
            (None, Some(_), Some(_)) => ("at_most", Some(("mean", true))),
            _ => ("", None),
        };
        with.map_or_else(
            || TrafficError::missing("traffic.deadlines", reason),
            |(other, _)| {
                let key = |key: &str| format!("traffic.deadlines.{key}");
                TrafficError::conflict(key(one), key(other), reason)
            },
        )
    }

    fn rule(&self) -> Result<Rule, TrafficError> {
        let rule = match (self.fixed, self.at_least, self.at_most, self.mean) {
            (Some(fixed), None, None, None) => Rule::Fixed(fixed),
            (None, Some(from), Some(to), None) if from <= to => Rule::Even { from, to },
            (None, Some(from), Some(to), None) => {
                let key = "traffic.deadlines.at_most";
                return Err(TrafficError::bad_value(key, to, format!("at_least = {from} or more")));
            }
            (None, at_least, None, Some(mean)) => {
                Rule::Exponential { mean, at_least: at_least.unwrap_or_default() }
            }
            _ => return Err(self.amiss()),
        };
        let zero = [
            ("fixed", self.fixed.is_some_and(Span::is_zero)),
            ("at_most", self.at_most.is_some_and(Span::is_zero)),
            ("mean", self.mean.is_some_and(Span::is_zero)),
        ];
        match zero.into_iter().find(|(_, zero)| *zero) {
            Some((key, _)) => {
                Err(TrafficError::bad_value(format!("traffic.deadlines.{key}"), Span::ZERO, "more than 0"))
            }
            None => Ok(rule),
        }
    }
}

impl Rule {
    fn draw(self, random: &mut Stream) -> Span {
        match self {
            Self::Fixed(deadline) => deadline,
            Self::Even { from, to } => {
                from + Span::from_ps((random.unit() * (to.as_ps() - from.as_ps()) as f64) as u64)
            }
            Self::Exponential { mean, at_least } => {
                Span::from_ps(random.exponential(mean.as_ps() as f64) as u64).max(at_least)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{generate, message};

    const RANDOM: &str = "workload = 'web-search'\nload = 0.5\nflows = 10_000\n";

    fn deadlines(table: &str) -> Vec<Option<Span>> {
        generate(&format!("{RANDOM}[deadlines]\n{table}")).unwrap().deadlines
    }

    fn mean_ms(deadlines: &[Option<Span>]) -> f64 {
        deadlines.iter().flatten().map(|deadline| deadline.as_us() / 1e3).sum::<f64>()
            / deadlines.len() as f64
    }

    #[test]
    fn deadlines_have_the_distribution_that_is_asked_for() {
        assert!(deadlines("fixed = '3ms'").iter().all(|deadline| *deadline == Some(Span::from_ms(3))));
        let even = deadlines("at_least = '5ms'\nat_most = '25ms'");
        let range = Span::from_ms(5)..=Span::from_ms(25);
        assert!(even.iter().flatten().all(|deadline| range.contains(deadline)));
        // Four standard errors: 20 ms / sqrt(12 x 10,000), and 20 ms / 100.
        assert!((mean_ms(&even) - 15.0).abs() < 0.24, "{}", mean_ms(&even));
        let exponential = deadlines("mean = '20ms'");
        assert!((mean_ms(&exponential) - 20.0).abs() < 0.8, "{}", mean_ms(&exponential));
        let raised = deadlines("mean = '20ms'\nat_least = '1ms'");
        for (raised, drawn) in raised.iter().flatten().zip(exponential.iter().flatten()) {
            assert_eq!(*raised, (*drawn).max(Span::from_ms(1)));
        }
    }

    #[test]
    fn deadlines_move_nothing_else_and_are_not_moved_by_which_flows_have_one() {
        let plain = generate(RANDOM).unwrap();
        assert!(plain.deadlines.is_empty());
        let table = "[[long_lived]]\n[deadlines]\nmean = '20ms'";
        let all = generate(&format!("{RANDOM}{table}")).unwrap();
        assert_eq!(all.flows[1..], plain.flows, "the first is the long-lived one");
        assert_eq!(all.deadlines[0], None);
        let short = generate(&format!("{RANDOM}{table}\nflows_below = '100KB'")).unwrap();
        for ((flow, all), short) in all.flows.iter().zip(&all.deadlines).zip(&short.deadlines) {
            assert_eq!(*short, all.filter(|_| flow.size_bytes < 100_000));
        }
    }

    #[test]
    fn what_does_not_fit_together_is_answered() {
        let cases = [
            ("", "traffic.deadlines is missing: give fixed, or at_least and at_most, or mean"),
            ("at_least = '1ms'", "traffic.deadlines is missing: give fixed, or"),
            (
                "fixed = '1ms'\nmean = '1ms'",
                "traffic.deadlines.fixed and traffic.deadlines.mean exclude each other: give fixed, or",
            ),
            (
                "at_most = '1ms'\nmean = '1ms'",
                "traffic.deadlines.at_most and traffic.deadlines.mean exclude each other: give fixed, or",
            ),
            ("mean = '0ms'", "traffic.deadlines.mean = 0ps: allowed is more than 0"),
            ("fixed = '0ms'", "traffic.deadlines.fixed = 0ps"),
            (
                "at_least = '2ms'\nat_most = '1ms'",
                "traffic.deadlines.at_most = 1ms: allowed is at_least = 2ms or more",
            ),
        ];
        for (table, expected) in cases {
            let found = message(&format!("{RANDOM}[deadlines]\n{table}"));
            assert!(found.contains(expected), "{table:?}: {found}");
        }
    }
}
