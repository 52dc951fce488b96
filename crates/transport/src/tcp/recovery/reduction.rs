//! Windows that shrink over a round trip (PRR, RFC 6937), and reductions that are taken back since nothing was lost.

use crate::congestion::Window;

/// Proportional rate reduction: the state of RFC 6937 §3.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Reduction {
    /// `RecoverFS`: the window before. Linux takes the window for it, not what was in flight.
    before: f64,
    /// `prr_delivered` and `prr_out`, segments.
    delivered: u32,
    sent: u32,
    /// It is over when this segment is acknowledged (for a mark: one above it).
    end: u32,
}

impl Reduction {
    /// Begins, from a window of so many segments.
    pub const fn from(before: f64, end: u32) -> Self {
        Self { before, delivered: 0, sent: 0, end }
    }

    /// Where it ends.
    pub const fn end(&self) -> u32 {
        self.end
    }

    /// A segment is sent.
    pub const fn sends(&mut self) {
        self.sent += 1;
    }

    /// An acknowledgement told of `told` more segments; `advances`: it acknowledged some of them cumulatively and no loss was found.
    /// Sets the window so that what may be sent now just fits.
    pub fn follow(&mut self, window: &mut Window, in_network: u32, told: u32, advances: bool) {
        if told == 0 {
            return;
        }
        self.delivered += told;
        let threshold = window.ssthresh.floor();
        let (network, delivered, sent) =
            (f64::from(in_network), f64::from(self.delivered), f64::from(self.sent));
        let allowed = if network > threshold {
            (delivered * threshold / self.before).ceil() - sent
        } else {
            // PRR-SSRB.
            let conserved = (delivered - sent).max(f64::from(told)) + f64::from(u8::from(advances));
            conserved.min(threshold - network)
        };
        // The first segment is sent again whatever the window says.
        let least = if self.sent == 0 { 1.0 } else { 0.0 };
        window.cwnd = (network + allowed.max(least)).max(1.0);
    }
}

/// What a reduction for a loss took, and what is to be told before it is given back.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Undo {
    cwnd: f64,
    ssthresh: f64,
    /// Segments that were sent again and not said to have been in vain.
    again: u32,
}

impl Undo {
    /// Remembers a window before it is reduced.
    pub const fn of(window: &Window) -> Self {
        Self { cwnd: window.cwnd, ssthresh: window.ssthresh, again: 0 }
    }

    /// A segment is sent again.
    pub const fn sends_again(&mut self) {
        self.again += 1;
    }

    /// A segment was said to have come twice. Whether all were that were sent again.
    pub const fn in_vain(&mut self) -> bool {
        let had = self.again > 0;
        self.again = self.again.saturating_sub(1);
        had && self.again == 0
    }

    /// Gives back what was taken.
    pub fn restore(self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.cwnd);
        window.ssthresh = window.ssthresh.max(self.ssthresh);
    }
}
