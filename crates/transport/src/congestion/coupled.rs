//! The windows of one flow's subflows, which grow together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Time;

use super::{Ack, Control, Controller, Window, lia, olia};

/// How the windows of a flow's subflows grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// Each as a TCP of its own.
    None,
    /// Linked increases: RFC 6356.
    #[default]
    Lia,
    /// Opportunistic linked increases: Khalili et al. 2012.
    Olia,
}

/// The controller of a subflow: that of a TCP but for its growth in congestion avoidance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coupled<'a> {
    /// Congestion control of the subflow without the coupling.
    pub alone: &'a Control,
    /// How it grows.
    pub growth: Growth,
}

impl Controller for Coupled<'_> {
    fn on_ack(&self, window: &mut Window, ack: Ack) {
        self.alone.on_ack(window, ack);
    }

    fn increase(&self, window: &mut Window, acked: u32) -> f64 {
        self.growth.applied(self.alone.increase(window, acked), acked, window.cwnd)
    }

    fn on_mark(&self, window: &mut Window) {
        self.alone.on_mark(window);
    }

    fn on_loss(&self, window: &mut Window, flight: u32) {
        self.alone.on_loss(window, flight);
    }

    fn on_timeout(&self, window: &mut Window, now: Time, next: u32) {
        self.alone.on_timeout(window, now, next);
    }
}

/// A subflow, as the coupling sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubflowWindow {
    /// Congestion window of the subflow in segments, above zero.
    pub cwnd: f64,
    /// Smoothed round-trip time of the subflow in seconds, above zero.
    pub rtt_s: f64,
    /// Segments acknowledged since it last reduced its window, or between the last two times if
    /// they are more.
    pub between_losses: u32,
}

/// Increase in congestion avoidance under the coupling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Growth {
    /// The increase of an uncoupled TCP.
    Alone,
    /// No more than this for each segment acknowledged.
    AtMost(f64),
    /// This for each segment acknowledged; below zero, less.
    Of(f64),
}

impl Growth {
    /// The growth of the subflow `own`, which is among `shares`: those that were measured.
    pub fn new(
        coupling: Coupling,
        own: Option<SubflowWindow>,
        shares: impl Iterator<Item = SubflowWindow> + Clone,
    ) -> Self {
        match (coupling, own) {
            (Coupling::Lia, Some(_)) => Self::AtMost(lia::increase(shares)),
            (Coupling::Olia, Some(own)) => Self::Of(olia::increase(own, &shares)),
            _ => Self::Alone,
        }
    }

    /// By how much a window of `cwnd` segments grows on `acked` segments, if a TCP alone would grow
    /// by `alone`. No window shrinks below one segment.
    pub fn applied(self, alone: f64, acked: u32, cwnd: f64) -> f64 {
        match self {
            Self::Alone => alone,
            Self::AtMost(each) => alone.min(each * f64::from(acked)),
            Self::Of(each) => (each * f64::from(acked)).max(1.0 - cwnd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn growth_is_limited_replaced_or_left_alone_and_leaves_a_segment() {
        close(Growth::Alone.applied(0.3, 2, 4.0), 0.3);
        close(Growth::AtMost(0.1).applied(0.3, 2, 4.0), 0.2);
        close(Growth::AtMost(0.1).applied(0.1, 2, 4.0), 0.1);
        close(Growth::Of(0.4).applied(0.3, 2, 4.0), 0.8);
        close(Growth::Of(-0.4).applied(0.3, 2, 1.5), -0.5);
        let own = SubflowWindow { cwnd: 10.0, rtt_s: 0.1, between_losses: 0 };
        let alone = [Coupling::None, Coupling::Lia, Coupling::Olia]
            .map(|coupling| Growth::new(coupling, None, [own].into_iter()));
        assert_eq!(alone, [Growth::Alone; 3]);
    }
}
