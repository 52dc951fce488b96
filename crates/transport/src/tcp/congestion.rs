//! The congestion window, and DCTCP's estimate of the marked share.

use crate::Outbox;

/// Congestion window and slow start threshold, in segments. Plain f64 arithmetic only, so that every machine agrees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub cwnd: f64,
    pub ssthresh: f64,
}

/// The smallest slow start threshold, in segments (RFC 5681 eq. 4).
const LEAST_SSTHRESH: f64 = 2.0;

impl Window {
    /// Whole segments that fit.
    #[inline]
    pub const fn segments(&self) -> u32 {
        self.cwnd as u32
    }

    /// New data was acknowledged: `acked` segments by one acknowledgement. `out` may couple the increase with others.
    #[inline]
    pub fn grow(&mut self, acked: u32, limit: u32, out: &impl Outbox) {
        if self.cwnd < self.ssthresh {
            // Slow start, RFC 5681 eq. 2: at most one segment per acknowledgement, however many it covers.
            self.cwnd += 1.0;
        } else {
            // Congestion avoidance, RFC 5681 §3.1: acknowledged data is counted, so that delayed
            // acknowledgements do not slow it down; at most one segment per window.
            self.cwnd += out.increase((f64::from(acked) / self.cwnd).min(1.0), acked);
        }
        // A window that the receiver does not allow is not used, hence must not grow: a later reduction would be void.
        self.cwnd = self.cwnd.min(f64::from(limit));
    }

    /// A loss was found while `flight` segments were outstanding (RFC 5681 eq. 4).
    pub fn halve_threshold(&mut self, flight: u32) {
        self.ssthresh = (f64::from(flight) / 2.0).max(LEAST_SSTHRESH);
    }

    /// Scales the window by `factor` on a congestion mark (RFC 3168 §6.1.2, RFC 8257 §3.3 step 9). It
    /// never falls below two segments, as in Linux, nor rises.
    pub fn scale(&mut self, factor: f64) {
        self.ssthresh = (self.cwnd * factor).max(LEAST_SSTHRESH);
        self.cwnd = self.cwnd.min(self.ssthresh);
    }
}

/// The estimate of the marked share (RFC 8257 §3.3), counted in segments. Without padding: a sender fills two cache
/// lines to the last byte.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub(super) struct MarkEstimator {
    /// `DCTCP.Alpha`.
    pub alpha: f64,
    /// `DCTCP.BytesAcked`.
    acked: u32,
    /// `DCTCP.BytesMarked`.
    marked: u32,
    /// `DCTCP.WindowEnd`.
    window_end: u32,
}

impl MarkEstimator {
    /// The estimate at the start of a flow. The first acknowledgement ends the first window.
    pub const fn new(alpha: f64) -> Self {
        Self { alpha, acked: 0, marked: 0, window_end: 0 }
    }

    /// `acked` segments were acknowledged, up to `ack`, marked or not; `next` is the next one to send.
    #[inline]
    pub fn count(&mut self, g: f64, acked: u32, marked: bool, ack: u32, next: u32) {
        // Steps 1 to 3.
        self.acked += acked;
        self.marked += acked * u32::from(marked);
        // Step 4: the window goes on.
        if ack <= self.window_end {
            return;
        }
        // Steps 5 and 6.
        let share = f64::from(self.marked) / f64::from(self.acked);
        self.alpha = self.alpha * (1.0 - g) + g * share;
        // Steps 7 and 8.
        *self = Self { alpha: self.alpha, acked: 0, marked: 0, window_end: next };
    }
}
