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
}

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
        let share = f64::from(marks.marked) / f64::from(marks.acked);
        let alpha = marks.alpha * (1.0 - self.g) + self.g * share;
        // Steps 7 and 8.
        *marks = Marks { alpha, acked: 0, marked: 0, window_end: next };
    }

    /// Step 9.
    fn on_mark(&self, window: &mut Window) {
        window.scale(1.0 - window.marks.alpha / 2.0);
    }
}
