//! Observations of switch ports in windows of time, in the terms in which QALL's index is fitted
//! (QALL §III-B).

use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use weft_fabric::Observation;
use weft_topology::Tier;
use weft_units::{Bytes, Span};

use crate::cores::Cores;
use crate::results::rows::ObservationRow;
use crate::results::table::Row;
use crate::rows::tier_name;
use crate::run::{Observer, Prepared, RunError, Simulated, Watch};
use crate::spec::SpecError;

/// How to observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// How long a window is.
    pub window: Span,
    /// The dequeue interval that is 1.
    pub time_constant: Span,
}

impl Windows {
    /// Reads both times.
    ///
    /// # Errors
    /// A text that is no time, or one of nothing; the message says which.
    pub fn parse(window: &str, time_constant: &str) -> Result<Self, SpecError> {
        let time = |name, text: &str| match text.parse::<Span>() {
            Ok(time) if time.is_zero() => {
                Err(SpecError::new(format!("{name} is {text}: longer than nothing, as in \"1ms\"")))
            }
            other => other.map_err(|error| SpecError::new(format!("{name}: {error}"))),
        };
        Ok(Self { window: time("window", window)?, time_constant: time("time_constant", time_constant)? })
    }
}

impl Prepared {
    /// Runs to the end and returns what each port of a switch to a switch did in each window, by
    /// time and link.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    pub fn observe(&self, observer: Observer<'_>, windows: Windows) -> Result<RecordBatch, RunError> {
        let watch = Watch { observe_every: Some(windows.window), ..Watch::default() };
        let Simulated { results, .. } =
            self.simulate(observer, None, watch, Cores::UpTo(NonZeroUsize::MIN))?;
        let rows: Vec<_> = results.observations.iter().filter_map(|seen| self.row(seen, windows)).collect();
        Ok(ObservationRow::table(&rows)?)
    }

    /// The row of an observation; none for a port to a host.
    fn row(&self, seen: &Observation, windows: Windows) -> Option<ObservationRow> {
        let topology = &self.fabric.topology;
        let link = &topology.links[seen.link as usize];
        if !matches!(link.tier, Tier::Leaf | Tier::Spine) {
            return None;
        }
        let full = seen.full.map(|full| full.as_u64().max(1) as f64);
        let occupancy = |bytes: f64| full.map(|full| (bytes / full).min(1.0));
        let interval = |time: f64| (time / windows.time_constant.as_ps() as f64).min(1.0);
        let packets = seen.packets as f64;
        let service = link.condition.rate.service(Bytes::new(seen.bytes));
        Some(ObservationRow {
            time_us: seen.at.as_us(),
            link: topology.link_name(seen.link),
            tier: tier_name(link.tier),
            packets: seen.packets,
            bytes: seen.bytes,
            traffic: service.as_ps() as f64 / windows.window.as_ps() as f64,
            occupancy: occupancy(seen.found_bytes as f64),
            mean_occupancy: occupancy(seen.found_bytes_sum as f64 / packets),
            interval: interval(seen.interval.as_ps() as f64),
            mean_interval: interval(seen.interval_sum.as_ps() as f64 / packets),
        })
    }
}
