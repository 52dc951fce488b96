//! Results of collectives: when each began and was done, and the flows for which it waited.

mod check;
mod critical;
mod figures;
mod taken;
mod timeline;

pub(crate) use check::check_collectives;
pub use figures::{CollectiveSummary, CriticalSummary, ScheduleRead};
pub(crate) use timeline::FlowTimes;

use weft_topology::Fabric;
use weft_traffic::Traffic;
use weft_units::Time;

use crate::results::collective_rows::{CollectiveRow, CriticalRow};

/// Results of collectives: their rows, the critical path of each, and a summary of both; nothing
/// without any.
pub(crate) fn collectives(
    traffic: &Traffic,
    fabric: &Fabric,
    seen: FlowTimes,
    end: Time,
) -> (Vec<CollectiveRow>, Vec<CriticalRow>, Vec<CollectiveSummary>) {
    let Some(schedule) = &traffic.schedule else { return Default::default() };
    let timeline = timeline::Timeline::new(&schedule.dependencies, seen);
    let flows = &traffic.flows;
    let (rows, ends) = figures::collective_rows(schedule, &timeline, flows);
    let critical = critical::critical_paths(schedule, &timeline, &ends, (flows, fabric));
    let told = figures::told(&rows, &critical, figures::file_starts(schedule, flows), end);
    (rows, critical.into_iter().map(|link| link.row).collect(), told)
}
