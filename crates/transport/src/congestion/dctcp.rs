//! DCTCP (RFC 8257): the window shrinks by half of the share of segments that were marked.

use super::window::Marks;
use super::{Ack, Controller, Window};

/// RFC 8257.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dctcp {
    /// Weight of the newest window in the estimate, above 0, at most 1.
    pub g: f64,
    /// The estimate at the start of a flow, 0 to 1.
    pub initial_alpha: f64,
    /// Whether windows are whole segments and the estimate whole parts of 1,024, rounded down as in
    /// Linux.
    pub whole_numbers: bool,
}

/// `DCTCP_MAX_ALPHA`: what stands for 1 in whole numbers.
const PARTS: f64 = 1_024.0;

impl Controller for Dctcp {
    /// RFC 8257 §3.3, steps 1 to 8.
    #[inline]
    fn on_ack(&self, window: &mut Window, ack: Ack) {
        let Ack { acked, una, next, marked, .. } = ack;
        let marks = &mut window.marks;
        // Steps 1 to 3.
        marks.acked += acked;
        marks.marked += acked * u32::from(marked);
        // Step 4: the window goes on.
        if una <= marks.window_end {
            return;
        }
        // Steps 5 and 6.
        let share = f64::from(marks.marked) / f64::from(marks.acked.max(1));
        let alpha = if self.whole_numbers {
            self.whole_alpha(marks.alpha, share)
        } else {
            marks.alpha * (1.0 - self.g) + self.g * share
        };
        // Steps 7 and 8.
        *marks = Marks { alpha, acked: 0, marked: 0, window_end: next };
    }

    /// As RFC 5681; in whole numbers, as `dctcp_react_to_loss` has it, of the window, not of what
    /// is unacknowledged.
    fn on_loss(&self, window: &mut Window, flight: u32) {
        let half = if self.whole_numbers { (window.segments() / 2).into() } else { f64::from(flight) / 2.0 };
        window.lower_threshold(half);
    }

    /// In Linux the threshold is half of what the window is by then (`dctcp_state`).
    fn on_loss_after_mark(&self, window: &mut Window) {
        if self.whole_numbers {
            window.lower_threshold((window.segments() / 2).into());
        }
    }

    /// Step 9.
    fn on_mark(&self, window: &mut Window) {
        if self.whole_numbers {
            // `dctcp_ssthresh`: less than a segment is nothing.
            window.cwnd = window.cwnd.floor();
            let less = (window.cwnd * window.marks.alpha / 2.0).floor();
            window.lower_threshold(window.cwnd - less);
            window.cwnd = window.cwnd.min(window.ssthresh);
        } else {
            window.scale(1.0 - window.marks.alpha / 2.0);
        }
    }
}

impl Dctcp {
    /// Step 6 as in `dctcp_update_alpha`: what is less than a part is left out, and where the old
    /// estimate would lose less than that, it loses all.
    fn whole_alpha(&self, alpha: f64, share: f64) -> f64 {
        let old = alpha * PARTS;
        let lost = (old * self.g).floor();
        let lost = if lost == 0.0 { old } else { lost };
        let gained = (PARTS * self.g * share).floor();
        ((old - lost + gained) / PARTS).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Dctcp = Dctcp { g: 1.0 / 16.0, initial_alpha: 1.0, whole_numbers: true };

    #[test]
    fn in_whole_numbers_small_estimates_go_and_small_reductions_are_none() {
        // 1,024 parts lose 64; 15 parts lose all, for a sixteenth of them is none; a fifth of marks
        // is 12.8 parts.
        let next = |parts: f64, share: f64| (WHOLE.whole_alpha(parts / PARTS, share) * PARTS) as u32;
        assert_eq!(
            [next(1_024.0, 0.0), next(15.0, 0.0), next(15.0, 0.2), next(1_024.0, 1.0)],
            [960, 0, 12, 1_024]
        );
        let reduced = |control: Dctcp, cwnd: f64, alpha: f64| {
            let mut window = Window::new(cwnd, f64::INFINITY, alpha);
            control.on_mark(&mut window);
            (window.cwnd, window.ssthresh)
        };
        // A twentieth of 20.9 segments, halved, is half a segment.
        assert_eq!(reduced(WHOLE, 20.9, 0.05), (20.0, 20.0));
        assert_eq!(reduced(WHOLE, 41.9, 0.05), (40.0, 40.0));
        assert_eq!(reduced(WHOLE, 3.5, 1.0), (2.0, 2.0));
        let exact = Dctcp { whole_numbers: false, ..WHOLE };
        assert_eq!(reduced(exact, 20.0, 0.05), (19.5, 19.5));
    }

    #[test]
    fn a_loss_leaves_half_of_what_is_unacknowledged_or_in_whole_numbers_of_the_window_also_behind_a_mark() {
        let left = |control: Dctcp, react: fn(&Dctcp, &mut Window)| {
            let mut window = Window::new(21.5, f64::INFINITY, 0.0);
            react(&control, &mut window);
            window.ssthresh
        };
        let exact = Dctcp { whole_numbers: false, ..WHOLE };
        let loss = |control: &Dctcp, window: &mut Window| control.on_loss(window, 15);
        assert_eq!((left(exact, loss), left(WHOLE, loss)), (7.5, 10.0));
        let behind = |control: &Dctcp, window: &mut Window| control.on_loss_after_mark(window);
        assert_eq!((left(exact, behind), left(WHOLE, behind)), (f64::INFINITY, 10.0));
    }
}
