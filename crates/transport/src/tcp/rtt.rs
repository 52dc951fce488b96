//! Round-trip time and retransmission timeout (RFC 6298).

use weft_units::Span;

use super::Tcp;

/// A timeout that expired `backoff` times in a row: rule 5.5, up to the limit of rule 2.5.
pub(super) fn backed_off(tcp: &Tcp, timeout: Span, backoff: u8) -> Span {
    timeout.saturating_mul(1 << backoff.min(63)).min(tcp.max_rto)
}

/// The estimator of RFC 6298 §2. The clock is exact, so its granularity G is zero and rule 2.3's
/// max(G, ...) falls away.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RttEstimator {
    srtt_ps: u64,
    rttvar_ps: u64,
}

impl RttEstimator {
    /// Takes a sample.
    ///
    /// Time stamps tell which transmission an acknowledgement answers, so samples of retransmitted
    /// segments are good and Karn's rule (§3) is not needed.
    #[inline]
    pub fn sample(&mut self, rtt: Span) {
        let r = rtt.as_ps();
        if self.srtt_ps == 0 {
            // Rule 2.2.
            self.srtt_ps = r;
            self.rttvar_ps = r / 2;
        } else {
            // Rule 2.3, with beta = 1/4 and alpha = 1/8; RTTVAR first, with the old SRTT.
            self.rttvar_ps = self.rttvar_ps - self.rttvar_ps / 4 + self.srtt_ps.abs_diff(r) / 4;
            self.srtt_ps = self.srtt_ps - self.srtt_ps / 8 + r / 8;
        }
    }

    /// Takes a sample whose deviation is reckoned elsewhere: the timeout has so much beyond the
    /// smoothed round trip.
    pub fn sample_with(&mut self, rtt: Span, beyond: Span) {
        self.sample(rtt);
        self.rttvar_ps = beyond.as_ps() / 4;
    }

    /// The timeout before any expiry: rule 2.1 before the first sample, then rules 2.4 and 2.5.
    #[inline]
    fn first_timeout(&self, tcp: &Tcp) -> Span {
        if self.srtt_ps == 0 {
            return tcp.initial_rto;
        }
        let least = if tcp.min_rto_beyond_rtt { tcp.min_rto.as_ps() } else { 0 };
        let rto = self.srtt_ps.saturating_add(self.rttvar_ps.saturating_mul(4).max(least));
        Span::from_ps(rto).clamp(tcp.min_rto, tcp.max_rto)
    }

    /// The timeout after `backoff` expiries in a row.
    #[inline]
    pub fn timeout(&self, tcp: &Tcp, backoff: u8) -> Span {
        let rto = self.first_timeout(tcp);
        if backoff == 0 { rto } else { backed_off(tcp, rto, backoff) }
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub const fn smoothed(&self) -> Span {
        Span::from_ps(self.srtt_ps)
    }

    /// The round-trip time variation; zero before the first sample.
    pub const fn variation(&self) -> Span {
        Span::from_ps(self.rttvar_ps)
    }
}
