//! Classes of flows, as applications state them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Class;
use weft_units::{Bytes, Purpose, Stream};

use crate::{ClassTransports, TrafficError};

/// How flows get their class. Without any key, every flow is `unknown`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClassSpec {
    /// The share of the random flows (by number, not by bytes) that is `best-effort`, 0 to 1,
    /// default 0. Each flow is drawn on its own, whatever its size. Rows of a trace without a class
    /// are drawn too.
    pub best_effort: f64,
    /// Flows smaller than this are `short`, all others `long`. Default: nothing is said, flows are
    /// `unknown`. It also labels incast flows, long-lived flows (as `long`) and rows of a trace
    /// that have no class of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_below: Option<Bytes>,
    /// Which transport carries the flows of a class, by the labels of the spec's `[[transport]]`
    /// tables, as in `{ best-effort = "bulk" }`. Default: the first one carries all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<ClassTransports>,
}

impl ClassSpec {
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        if (0.0..=1.0).contains(&self.best_effort) {
            return Ok(());
        }
        Err(TrafficError::bad_value("traffic.classes.best_effort", self.best_effort, "a share of 0 to 1"))
    }

    /// The class that size alone gives. A long-lived flow has no end: `u64::MAX`.
    pub(crate) fn by_size(&self, size_bytes: u64) -> Class {
        match self.short_below {
            None => Class::Unknown,
            Some(limit) if size_bytes < limit.as_u64() => Class::Short,
            Some(_) => Class::Long,
        }
    }
}

/// Draws the class of each flow.
pub(crate) struct ClassPicker<'a> {
    spec: &'a ClassSpec,
    random: Stream,
}

impl<'a> ClassPicker<'a> {
    pub fn new(spec: &'a ClassSpec, seed: u64) -> Self {
        Self { spec, random: Stream::new(seed, Purpose::Classes, 0) }
    }

    /// One draw a flow.
    pub fn pick(&mut self, size_bytes: u64) -> Class {
        if self.random.unit() < self.spec.best_effort {
            Class::BestEffort
        } else {
            self.spec.by_size(size_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{generate, message};

    const RANDOM: &str = "workload = 'web-search'\nload = 0.5\nflows = 10_000\n";

    #[test]
    fn the_share_of_best_effort_is_by_number_of_flows() {
        let flows =
            generate(&format!("{RANDOM}[classes]\nbest_effort = 0.2\nshort_below = '100KB'")).unwrap().flows;
        let share = flows.iter().filter(|flow| flow.class == Class::BestEffort).count() as f64 / 1e4;
        assert!((share - 0.2).abs() < 0.016, "share {share}");
        for flow in flows.iter().filter(|flow| flow.class != Class::BestEffort) {
            assert_eq!(flow.class, if flow.size_bytes < 100_000 { Class::Short } else { Class::Long });
        }
    }

    #[test]
    fn nothing_is_said_unless_asked_for() {
        assert!(generate(RANDOM).unwrap().flows.iter().all(|flow| flow.class == Class::Unknown));
    }

    #[test]
    fn a_share_above_one_is_refused() {
        for share in ["1.5", "-0.1", "nan"] {
            let found = message(&format!("{RANDOM}[classes]\nbest_effort = {share}"));
            assert!(found.contains("traffic.classes.best_effort = "), "{found}");
        }
    }
}
