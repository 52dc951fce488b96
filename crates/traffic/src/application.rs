//! Applications that write a flow in pieces, with pauses between: which bytes are there to be sent,
//! and when.
//!
//! The writes of a flow follow from the spec, the seed and the flow's number: no scheme, no
//! transport and no fault moves them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Purpose, Span, Stream};

use crate::{MAX_FLOW_BYTES, TrafficError};

/// How the application of each flow that ends hands its bytes over: `write` bytes when the flow
/// starts, and as many again after each pause, whatever has been sent by then, until all are
/// written. A packet leaves when all of its bytes are written: full packets, and the last one.
/// Long-lived flows never pause. Completion times have the pauses in them, and so have ideal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSpec {
    /// Payload that is written at once, as in `"64KB"`: 1KB to 1TB.
    pub write: Bytes,
    /// The time from one write of a flow to the next, or its mean, as in `"500us"`: more than 0, at
    /// most 1h.
    pub pause: Span,
    /// Kind of pauses: `"fixed"`, all of them `pause`; `"exponential"`, drawn for each write of
    /// each flow. Default `"fixed"`.
    #[serde(default)]
    pub pause_distribution: PauseDistribution,
}

/// Distribution of pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseDistribution {
    /// All alike.
    #[default]
    Fixed,
    /// Drawn from an exponential distribution.
    Exponential,
}

impl ApplicationSpec {
    const LONGEST_PAUSE: Span = Span::from_s(3_600);

    /// Whether its values can be meant.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        if !(1_000..=MAX_FLOW_BYTES).contains(&self.write.as_u64()) {
            return Err(TrafficError::bad_value("traffic.application.write", self.write, "1KB to 1TB"));
        }
        if self.pause.is_zero() || self.pause > Self::LONGEST_PAUSE {
            let allowed = "more than 0, at most 1h";
            return Err(TrafficError::bad_value("traffic.application.pause", self.pause, allowed));
        }
        Ok(())
    }
}

/// The applications of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Application {
    spec: ApplicationSpec,
    seed: u64,
}

impl Application {
    /// Application of a run with this seed.
    pub const fn new(spec: ApplicationSpec, seed: u64) -> Self {
        Self { spec, seed }
    }

    /// The writes of the flow with this number and size, in order.
    pub fn writes(&self, flow: u32, size_bytes: u64) -> Writes {
        Writes {
            spec: self.spec,
            pauses: Stream::new(self.seed, Purpose::Pauses, flow.into()),
            size_bytes,
            next: Some(Write { after: Span::ZERO, bytes: self.spec.write.as_u64().min(size_bytes) }),
        }
    }
}

/// A write of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// How long after the flow's start.
    pub after: Span,
    /// How many bytes of the flow are written with it, those of earlier writes included.
    pub bytes: u64,
}

/// The writes of a flow, in order.
#[derive(Debug, Clone)]
pub struct Writes {
    spec: ApplicationSpec,
    pauses: Stream,
    size_bytes: u64,
    next: Option<Write>,
}

impl Writes {
    fn pause(&mut self) -> Span {
        match self.spec.pause_distribution {
            PauseDistribution::Fixed => self.spec.pause,
            PauseDistribution::Exponential => {
                // No two writes are at one time.
                Span::from_ps((self.pauses.exponential(self.spec.pause.as_ps() as f64) as u64).max(1))
            }
        }
    }
}

impl Iterator for Writes {
    type Item = Write;

    fn next(&mut self) -> Option<Write> {
        let write = self.next?;
        self.next = (write.bytes < self.size_bytes).then(|| Write {
            after: Span::from_ps(write.after.as_ps().saturating_add(self.pause().as_ps())),
            bytes: write.bytes.saturating_add(self.spec.write.as_u64()).min(self.size_bytes),
        });
        Some(write)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::{generate, message};

    fn application(pause_distribution: PauseDistribution, seed: u64) -> Application {
        let spec =
            ApplicationSpec { write: Bytes::from_kb(64), pause: Span::from_us(500), pause_distribution };
        Application::new(spec, seed)
    }

    #[test]
    fn fixed_pauses_are_all_alike_and_the_last_write_has_what_is_left() {
        let fixed = application(PauseDistribution::Fixed, 1);
        let writes: Vec<_> = fixed.writes(7, 150_000).collect();
        let expected = [(0, 64_000), (500, 128_000), (1_000, 150_000)]
            .map(|(us, bytes)| Write { after: Span::from_us(us), bytes });
        assert_eq!(writes, expected);
        assert_eq!(fixed.writes(7, 64_000).count(), 1, "one write has it all");
        assert_eq!(fixed.writes(7, 1).collect::<Vec<_>>(), [Write { after: Span::ZERO, bytes: 1 }]);
    }

    #[test]
    fn drawn_pauses_have_their_mean_and_depend_on_the_flow_and_the_seed_alone() {
        let drawn = |seed, flow, size| -> Vec<Write> {
            application(PauseDistribution::Exponential, seed).writes(flow, size).collect()
        };
        let long = drawn(1, 3, 64_000 * 40_001);
        // Four standard errors: 500 us / sqrt(40,000).
        let mean_us = long.last().unwrap().after.as_us() / 40_000.0;
        assert!((mean_us - 500.0).abs() < 10.0, "{mean_us}");
        assert_eq!(drawn(1, 3, 640_000), long[..10], "a longer flow begins as a shorter one does");
        assert_ne!(drawn(1, 4, 640_000), long[..10]);
        assert_ne!(drawn(2, 3, 640_000), long[..10]);
    }

    proptest! {
        #[test]
        fn writes_go_on_in_time_and_end_with_the_flow(
            size in 1u64..10_000_000, write in 1_000u64..200_000, flow in any::<u32>(), drawn in any::<bool>(),
        ) {
            let pause_distribution = if drawn { PauseDistribution::Exponential } else { PauseDistribution::Fixed };
            let spec = ApplicationSpec { write: Bytes::new(write), pause: Span::from_ns(3), pause_distribution };
            let writes: Vec<_> = Application::new(spec, 5).writes(flow, size).collect();
            prop_assert_eq!(writes.len() as u64, size.div_ceil(write));
            prop_assert_eq!(writes.last().map(|last| last.bytes), Some(size));
            prop_assert!(writes.windows(2).all(|pair| pair[0].after < pair[1].after && pair[0].bytes < pair[1].bytes));
        }
    }

    const RANDOM: &str = "workload = 'web-search'\nload = 0.5\nflows = 100\n";

    #[test]
    fn pauses_move_no_flow() {
        let table = "[application]\nwrite = '64KB'\npause = '500us'";
        let (plain, pausing) = (generate(RANDOM).unwrap(), generate(&format!("{RANDOM}{table}")).unwrap());
        assert_eq!(plain.flows, pausing.flows);
        assert!(plain.application.is_none() && pausing.application.is_some());
    }

    #[test]
    fn what_cannot_be_meant_is_answered() {
        let cases = [
            ("write = '999B'\npause = '1us'", "traffic.application.write = 999B: allowed is 1KB to 1TB"),
            ("write = '2KB'\npause = '0us'", "traffic.application.pause = 0ps: allowed is more than 0"),
            ("write = '2KB'\npause = '3601s'", "traffic.application.pause = 3601s: allowed is"),
        ];
        for (table, expected) in cases {
            let found = message(&format!("{RANDOM}[application]\n{table}"));
            assert!(found.contains(expected), "{table:?}: {found}");
        }
        let found = message("[[long_lived]]\n[application]\nwrite = '2KB'\npause = '1us'");
        assert!(found.contains("traffic.application is of use to flows that end"), "{found}");
    }
}
