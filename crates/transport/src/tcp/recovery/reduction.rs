//! Windows that shrink over a round trip (PRR, RFC 6937).

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

    /// A recovery that goes on as long takes it over: it ends with that.
    pub const fn until(self, end: u32) -> Self {
        Self { end, ..self }
    }

    /// A segment is sent.
    pub const fn sends(&mut self) {
        self.sent += 1;
    }

    /// An acknowledgement of `newly_acked` more segments; `advances`: it acknowledged some of them
    /// cumulatively and no loss was found. Sets the window so that what may be sent now just fits.
    pub fn follow(&mut self, window: &mut Window, in_network: u32, newly_acked: u32, advances: bool) {
        if newly_acked == 0 {
            return;
        }
        self.delivered += newly_acked;
        let threshold = window.ssthresh.floor();
        let (network, delivered, sent) =
            (f64::from(in_network), f64::from(self.delivered), f64::from(self.sent));
        let allowed = if network > threshold {
            (delivered * threshold / self.before).ceil() - sent
        } else {
            // PRR-SSRB.
            let conserved = (delivered - sent).max(f64::from(newly_acked)) + f64::from(u8::from(advances));
            conserved.min(threshold - network)
        };
        // The first segment is sent again whatever the window says.
        let least = if self.sent == 0 { 1.0 } else { 0.0 };
        window.cwnd = (network + allowed.max(least)).max(1.0);
    }
}
