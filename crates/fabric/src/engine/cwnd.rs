//! The congestion windows of a few flows over time: only if asked for.

use weft_transport::WindowState;
use weft_units::{Span, Time};

/// The window of a flow at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CwndSample {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// State of the flow's congestion window.
    pub state: WindowState,
}

/// Looks at the windows of flows, each at every interval since its start, as long as its sender is
/// there.
pub struct Windows<'a> {
    /// The flows.
    pub flows: &'a [u32],
    /// The interval.
    pub every: Span,
    /// Samples so far, by time.
    pub seen: Vec<CwndSample>,
}

impl<'a> Windows<'a> {
    /// Traces of these flows, every so often; not zero.
    pub const fn new(flows: &'a [u32], every: Span) -> Self {
        Self { flows, every, seen: Vec::new() }
    }

    /// Notes the window of the flow at this place of the list, if its sender is there. Returns when
    /// to look again.
    pub fn note(&mut self, place: usize, at: Time, found: Option<WindowState>) -> Option<Time> {
        let state = found?;
        self.seen.push(CwndSample { at, flow: self.flows[place], state });
        Some(at.saturating_add(self.every))
    }
}
