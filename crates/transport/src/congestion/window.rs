//! The congestion window of a flow, and what controllers keep of it.

use super::{Controller, CubicState};

/// Congestion window and slow start threshold, in segments, and what a controller keeps. Plain f64
/// arithmetic only, so that every machine agrees. Without padding: a sender fills two cache lines
/// to the last byte.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow start threshold.
    pub ssthresh: f64,
    /// CUBIC's alone.
    pub cubic: Option<Box<CubicState>>,
    /// DCTCP's alone.
    pub marks: Marks,
    /// The next segment to send when the window was last reduced for a mark: until it is
    /// acknowledged, the window neither shrinks again nor grows.
    pub cwr_end: u32,
}

/// The estimate of the marked share (RFC 8257 §3.3), counted in segments.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct Marks {
    /// `DCTCP.Alpha`.
    pub alpha: f64,
    /// `DCTCP.BytesAcked`.
    pub acked: u32,
    /// `DCTCP.BytesMarked`.
    pub marked: u32,
    /// `DCTCP.WindowEnd`. The first acknowledgement ends the first window.
    pub window_end: u32,
}

/// The smallest slow start threshold, in segments (RFC 5681 eq. 4).
const LEAST_SSTHRESH: f64 = 2.0;

impl Window {
    /// A window at the start of a flow.
    pub const fn new(cwnd: f64, ssthresh: f64, alpha: f64) -> Self {
        let marks = Marks { alpha, acked: 0, marked: 0, window_end: 0 };
        Self { cwnd, ssthresh, cubic: None, marks, cwr_end: 0 }
    }

    /// Whole segments that fit.
    #[inline]
    pub const fn segments(&self) -> u32 {
        self.cwnd as u32
    }

    /// New data was acknowledged outside recovery: `acked` segments by one acknowledgement. The
    /// receiver allows `limit`; in slow start an acknowledgement adds no more than `each`.
    #[inline]
    pub fn grow(&mut self, control: &impl Controller, acked: u32, (limit, each): (u32, u32)) {
        if self.cwnd < self.ssthresh {
            // Slow start, RFC 5681 eq. 2: at most one segment per acknowledgement, however many it
            // covers, unless the configuration counts them (RFC 3465).
            let (more, room) = (f64::from(acked.min(each)), self.ssthresh - self.cwnd);
            if each == 1 || more <= room {
                self.cwnd += more;
            } else {
                // No further than the threshold; the rest counts as after it (`tcp_slow_start` of
                // Linux).
                self.cwnd = self.ssthresh;
                self.cwnd += control.increase(self, (more - room) as u32);
            }
        } else {
            self.cwnd += control.increase(self, acked);
        }
        // A window that the receiver does not allow is not used, hence must not grow: a later
        // reduction would be void.
        self.cwnd = self.cwnd.min(f64::from(limit));
    }

    /// The slow start threshold after a loss: so many segments, or the least (RFC 5681 eq. 4).
    pub fn lower_threshold(&mut self, segments: f64) {
        self.ssthresh = segments.max(LEAST_SSTHRESH);
    }

    /// Scales the window by `factor` on a congestion mark (RFC 3168 §6.1.2, RFC 8257 §3.3 step 9).
    /// It never falls below two segments, as in Linux, nor rises.
    pub fn scale(&mut self, factor: f64) {
        self.ssthresh = (self.cwnd * factor).max(LEAST_SSTHRESH);
        self.cwnd = self.cwnd.min(self.ssthresh);
    }
}
