//! Congestion control: how the window of a sender follows what acknowledgements tell. A file an
//! algorithm.
//!
//! A [`Controller`] holds the rules, which all flows share; what is a flow's own is its [`Window`].
//! When a loss has happened, and which marks count, is found elsewhere (`tcp/recovery`,
//! `tcp/sender.rs`).

mod coupled;
mod cubic;
pub(crate) mod dcqcn;
mod dctcp;
mod lia;
mod new_reno;
pub(crate) mod nscc;
mod olia;
pub(crate) mod swift;
mod whole_cubic;
mod window;

use weft_units::{Span, Time};

pub use coupled::Coupling;
pub(crate) use coupled::{Coupled, Growth, SubflowWindow};
pub(crate) use cubic::{Cubic, CubicState};
pub(crate) use dctcp::Dctcp;
pub(crate) use new_reno::NewReno;
pub(crate) use window::Window;

/// Data was acknowledged, in order or beyond a hole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    /// Segments that it acknowledged; of a sender that goes by time those that it told of first,
    /// which may be none.
    pub acked: u32,
    /// The first segment that is not acknowledged now.
    pub una: u32,
    /// The next segment to send.
    pub next: u32,
    /// Whether it carried ECE.
    pub marked: bool,
    /// When it came.
    pub now: Time,
    /// The round-trip time that it shows, if it shows any.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time, this sample included.
    pub smoothed_rtt: Span,
}

/// How a window follows what acknowledgements tell. Windows are counted in segments.
pub(crate) trait Controller {
    /// Data was acknowledged, in whatever phase.
    #[inline]
    fn on_ack(&self, window: &mut Window, ack: Ack) {
        let _ = (window, ack);
    }

    /// By how much the window grows in congestion avoidance, on `acked` segments.
    ///
    /// RFC 5681 §3.1: acknowledged data is counted, so that delayed acknowledgements do not slow it
    /// down; at most one segment per window.
    #[inline]
    fn increase(&self, window: &mut Window, acked: u32) -> f64 {
        (f64::from(acked) / window.cwnd).min(1.0)
    }

    /// A mark that counts: one a window of data.
    fn on_mark(&self, window: &mut Window);

    /// A loss was found, or a timer expired, while `flight` segments were outstanding.
    ///
    /// RFC 5681 eq. 4; DCTCP treats loss likewise (RFC 8257 §3.5).
    #[inline]
    fn on_loss(&self, window: &mut Window, flight: u32) {
        window.lower_threshold(f64::from(flight) / 2.0);
    }

    /// A loss was found in a round trip in which the window shrinks for a mark already.
    fn on_loss_after_mark(&self, window: &mut Window) {
        let _ = window;
    }

    /// A timer expired, at this time, when this was the next new segment: said after
    /// [`Controller::on_loss`].
    #[inline]
    fn on_timeout(&self, window: &mut Window, now: Time, next: u32) {
        let _ = (window, now, next);
    }
}

/// The controller of a TCP, chosen when it is configured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control {
    /// RFC 5681.
    NewReno(NewReno),
    /// RFC 8257.
    Dctcp(Dctcp),
    /// RFC 9438.
    Cubic(Cubic),
}

impl Control {
    /// The window at the start of a flow, of so many segments.
    pub const fn window(&self, initial: f64, ssthresh: f64) -> Window {
        let alpha = match self {
            Self::NewReno(_) | Self::Cubic(_) => 0.0,
            Self::Dctcp(rules) => rules.initial_alpha,
        };
        Window::new(initial, ssthresh, alpha)
    }
}

/// Does the same with the rules, whichever they are.
macro_rules! rules {
    ($control:expr, $rules:ident => $call:expr) => {
        match $control {
            $crate::congestion::Control::NewReno($rules) => $call,
            $crate::congestion::Control::Dctcp($rules) => $call,
            $crate::congestion::Control::Cubic($rules) => $call,
        }
    };
}
pub(crate) use rules;

impl Controller for Control {
    #[inline]
    fn on_ack(&self, window: &mut Window, ack: Ack) {
        rules!(self, rules => rules.on_ack(window, ack));
    }

    #[inline]
    fn increase(&self, window: &mut Window, acked: u32) -> f64 {
        rules!(self, rules => rules.increase(window, acked))
    }

    fn on_mark(&self, window: &mut Window) {
        rules!(self, rules => rules.on_mark(window));
    }

    fn on_loss(&self, window: &mut Window, flight: u32) {
        rules!(self, rules => rules.on_loss(window, flight));
    }

    fn on_loss_after_mark(&self, window: &mut Window) {
        rules!(self, rules => rules.on_loss_after_mark(window));
    }

    fn on_timeout(&self, window: &mut Window, now: Time, next: u32) {
        rules!(self, rules => rules.on_timeout(window, now, next));
    }
}
