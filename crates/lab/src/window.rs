//! Which flows a run measures: those that start after its warm-up, for as long as it says.
//!
//! All flows run, and load the fabric. Those outside the window are rows of `flows` like any other
//! and part of no average.

use std::ops::Range;

use weft_traffic::Flow;
use weft_units::{Mistake, Time};

use crate::spec::{Extent, RunSpec};

/// The flows that are measured, by their numbers; they are in order of start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window(Range<usize>);

impl Window {
    /// Measurement window of a run with these flows, which are sorted by start; none if the spec
    /// asks for none: then all are measured.
    ///
    /// # Errors
    /// A window without any flow that ends.
    pub fn of(run: &RunSpec, flows: &[Flow]) -> Result<Option<Self>, Mistake> {
        if run.warmup.is_none() && run.measure.is_none() {
            return Ok(None);
        }
        let first = run.warmup.map_or(0, |warmup| reach(warmup, flows, 0, Time::ZERO));
        let begin = match run.warmup {
            Some(Extent::Time(time)) => Time::ZERO.saturating_add(time),
            None => Time::ZERO,
            // A number of flows ends when the next one starts.
            Some(_) => flows.get(first).map_or(Time::NEVER, |flow| flow.start),
        };
        let end = run.measure.map_or(flows.len(), |measure| reach(measure, flows, first, begin));
        if ending(&flows[first..end]) > 0 {
            return Ok(Some(Self(first..end)));
        }
        let key = if ending(&flows[first..]) == 0 && run.warmup.is_some() { "warmup" } else { "measure" };
        let said = format!(
            " leaves no flow to measure: {} flows that end start in this run{}",
            ending(flows),
            flows
                .last()
                .map(|last| format!(", the last at {}", last.start.since(Time::ZERO).rounded()))
                .unwrap_or_default()
        );
        Err(Mistake::at(format!("run.{key}"), said).allowed("a window in which a flow starts"))
    }

    /// Whether the flow of this number is in it.
    pub fn has(&self, flow: usize) -> bool {
        self.0.contains(&flow)
    }

    /// How many of these flows it measures.
    pub fn measured(&self, flows: &[Flow]) -> usize {
        ending(&flows[self.0.clone()])
    }
}

/// Flows that can end: the others are in no average.
pub(crate) fn ending(flows: &[Flow]) -> usize {
    flows.iter().filter(|flow| !flow.background).count()
}

/// The number of the first flow that is no longer within `extent`, of those from number `first` and
/// time `begin` on.
fn reach(extent: Extent, flows: &[Flow], first: usize, begin: Time) -> usize {
    let so_many = |count: usize| {
        let mut own = (first..).zip(&flows[first..]).filter(|(_, flow)| !flow.background);
        count.checked_sub(1).map_or(first, |last| own.nth(last).map_or(flows.len(), |(number, _)| number + 1))
    };
    match extent {
        Extent::Time(time) => {
            let end = begin.saturating_add(time);
            flows.partition_point(|flow| flow.start < end)
        }
        Extent::Flows(count) => so_many(count as usize),
        Extent::Share(share) => so_many((share * ending(flows) as f64).round() as usize),
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::{Class, HostId};
    use weft_units::Span;

    use super::*;

    /// Ten flows, one a millisecond from 0 on; the first of them never ends.
    fn flows() -> Vec<Flow> {
        let flow = |ms: u64| Flow {
            start: Time::ZERO + Span::from_ms(ms),
            size_bytes: 1,
            src: HostId(0),
            dst: HostId(1),
            class: Class::Unknown,
            background: ms == 0,
            transport: 0,
        };
        (0..10).map(flow).collect()
    }

    fn window(warmup: Option<Extent>, measure: Option<Extent>) -> Result<Option<Range<usize>>, String> {
        let run = RunSpec { warmup, measure, ..RunSpec::default() };
        Window::of(&run, &flows())
            .map(|found| found.map(|window| window.0))
            .map_err(|error| error.to_string())
    }

    fn at(ms: u64) -> Extent {
        Extent::Time(Span::from_ms(ms))
    }

    #[test]
    fn a_window_is_cut_by_time_by_number_and_by_share() {
        assert_eq!(window(None, None), Ok(None), "all flows are measured");
        // A flow that starts when the warm-up ends is measured, one that starts when the window
        // ends is not.
        assert_eq!(window(Some(at(3)), None), Ok(Some(3..10)));
        assert_eq!(window(Some(at(3)), Some(at(2))), Ok(Some(3..5)));
        assert_eq!(window(None, Some(at(2))), Ok(Some(0..2)));
        // Flows that never end are not counted: numbers 1, 2 and 3 are the first three that do.
        assert_eq!(window(Some(Extent::Flows(3)), None), Ok(Some(4..10)));
        assert_eq!(window(Some(Extent::Flows(3)), Some(Extent::Flows(2))), Ok(Some(4..6)));
        assert_eq!(window(Some(Extent::Flows(3)), Some(at(2))), Ok(Some(4..6)));
        // A third and two ninths of nine flows.
        assert_eq!(window(Some(Extent::Share(0.33)), Some(Extent::Share(0.22))), Ok(Some(4..6)));
        assert_eq!(window(Some(Extent::Share(0.5)), Some(Extent::Share(0.9))), Ok(Some(6..10)));
    }

    #[test]
    fn a_window_without_a_flow_is_refused_by_the_key_that_empties_it() {
        let said = window(Some(at(10)), None).unwrap_err();
        assert!(said.starts_with("run.warmup leaves no flow to measure: 9 flows that end start"), "{said}");
        assert!(said.ends_with("the last at 9 ms"), "{said}");
        assert!(window(Some(Extent::Flows(9)), Some(at(1))).unwrap_err().starts_with("run.warmup"));
        // Only the flow that never ends starts in the first millisecond.
        assert!(window(None, Some(at(1))).unwrap_err().starts_with("run.measure"));
        assert!(window(Some(at(3)), Some(Extent::Share(0.01))).unwrap_err().starts_with("run.measure"));
    }
}
