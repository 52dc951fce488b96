//! Losses: duplicate acknowledgements, fast retransmit, fast recovery and timeouts.
//!
//! NewReno follows RFC 6582 (its "impatient" timer), SACK recovery follows RFC 6675. Both go back to the first
//! unacknowledged segment on a timeout.

use super::Tcp;
use super::sender::{Phase, Sender};
use crate::Outbox;

impl Sender {
    /// An acknowledgement repeated the last one while data is outstanding. `sack_news`: it told of segments that were
    /// not known to have arrived.
    #[cold]
    pub(super) fn on_duplicate_ack(
        &mut self,
        tcp: &Tcp,
        marked: bool,
        sack_news: bool,
        out: &mut impl Outbox,
    ) {
        self.counts.duplicate_acks += 1;
        // RFC 6675 §2: with SACK, a duplicate acknowledgement is one with news.
        if tcp.sack && !sack_news {
            return;
        }
        if self.phase == Phase::Recovery {
            if !tcp.sack {
                // RFC 5681 §3.2 step 4: a segment has left the network.
                self.window.cwnd += 1.0;
            }
            self.send_allowed(tcp, out);
            return;
        }
        if marked {
            self.on_mark(tcp);
        }
        self.dup_acks += 1;
        if !self.may_enter_recovery(tcp) {
            if tcp.sack {
                self.send_allowed(tcp, out);
            }
        } else if self.dup_acks >= tcp.dup_ack_threshold || self.first_is_lost(tcp) {
            self.enter_recovery(tcp, out);
        } else if tcp.limited_transmit {
            self.limited_transmit(tcp, out);
        }
    }

    /// Whether duplicate acknowledgements now mean a new loss, not an echo of the last recovery.
    const fn may_enter_recovery(&self, tcp: &Tcp) -> bool {
        if self.recover == 0 {
            true
        } else if tcp.sack {
            // RFC 6675 §5 and §5.1: HighACK has reached RecoveryPoint.
            self.una >= self.recover
        } else {
            // RFC 6582 §3.2 step 2: more than recover is acknowledged. Below that, the duplicates may come
            // from segments that were retransmitted in vain.
            self.una > self.recover
        }
    }

    /// RFC 3042: one new segment per duplicate acknowledgement, beyond the congestion window, which stays. RFC 3042
    /// speaks of the first two; of a threshold other than three, all below it.
    fn limited_transmit(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let window = self.window.segments().saturating_add(self.dup_acks).min(tcp.max_window);
        if self.next == self.max && self.next < self.segments && self.next - self.una < window {
            self.transmit(tcp, self.next, out);
            self.next += 1;
            self.limited = self.limited.saturating_add(1);
        }
    }

    fn enter_recovery(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        self.counts.fast_recoveries += 1;
        self.phase = Phase::Recovery;
        self.partial_seen = false;
        // RFC 5681 §3.2 step 2: what limited transmit sent does not count. DCTCP treats loss likewise (RFC
        // 8257 §3.5).
        let flight = self.next - self.una;
        self.window.halve_threshold(flight.saturating_sub(u32::from(self.limited)));
        self.recover = self.max;
        self.cwr_due = true;
        self.window.cwnd = self.window.ssthresh;
        if tcp.sack {
            self.begin_sack_recovery();
        } else {
            // RFC 5681 §3.2 step 3: the segments that left the network.
            self.window.cwnd += f64::from(tcp.dup_ack_threshold);
        }
        self.transmit(tcp, self.una, out);
        self.send_allowed(tcp, out);
    }

    /// New data was acknowledged in fast recovery. Returns whether the retransmission timer restarts.
    #[cold]
    pub(super) fn on_ack_in_recovery(&mut self, tcp: &Tcp, acked: u32, out: &mut impl Outbox) -> bool {
        if self.una >= self.recover {
            // Full acknowledgement.
            self.phase = Phase::Open;
            if !tcp.sack {
                // RFC 6582 §3.2 step 3, first option: no burst when little is outstanding.
                let flight = f64::from(self.next - self.una);
                self.window.cwnd = self.window.ssthresh.min(flight.max(1.0) + 1.0);
            }
            return true;
        }
        if tcp.sack {
            return true;
        }
        // Partial acknowledgement: the next hole. Deflate by what left, add back one for the retransmission.
        self.window.cwnd = (self.window.cwnd - f64::from(acked)).max(0.0) + 1.0;
        self.transmit(tcp, self.una, out);
        // RFC 6582 §3.2 step 3: only the first partial acknowledgement restarts the timer.
        !std::mem::replace(&mut self.partial_seen, true)
    }

    /// The retransmission timer expired (RFC 6298 rules 5.4 to 5.6, RFC 5681 §3.1).
    #[cold]
    pub(super) fn time_out(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        self.count_timeout(self.rtt.timeout(tcp, self.backoff));
        out.timed_out();
        // RFC 5681 §3.1: only the first timeout of a segment lowers the threshold.
        if self.backoff == 0 {
            self.window.halve_threshold((self.next - self.una).saturating_sub(u32::from(self.limited)));
        }
        self.window.cwnd = 1.0;
        self.phase = Phase::Open;
        // RFC 6582 §3.2 step 4.
        self.recover = self.max;
        (self.cwr_end, self.cwr_due) = (0, true);
        (self.dup_acks, self.limited) = (0, 0);
        self.backoff = self.backoff.saturating_add(1);
        // Go back: everything that is not acknowledged is sent again as the window opens.
        self.next = self.una;
        self.send_allowed(tcp, out);
        self.arm(tcp, out);
    }
}
