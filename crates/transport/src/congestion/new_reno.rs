//! Slow start and congestion avoidance of RFC 5681, with the answer of RFC 3168 to marks.

use super::{Controller, Window};

/// RFC 5681: the rules of the [`Controller`] as they stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewReno;

impl Controller for NewReno {
    /// RFC 3168 §6.1.2: as if a packet was lost.
    fn on_mark(&self, window: &mut Window) {
        window.scale(0.5);
    }
}
