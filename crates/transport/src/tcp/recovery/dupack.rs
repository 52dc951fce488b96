//! Common parts of NewReno and SACK: duplicate acknowledgements, fast retransmit, limited transmit
//! and timeouts.
//!
//! Both go back to the first unacknowledged segment on a timeout.

use weft_packet::Packet;

use crate::Outbox;
use crate::congestion::Controller;
use crate::tcp::Tcp;
use crate::tcp::sender::{Phase, Sender, SenderFlags};

/// Loss recovery by counting duplicate acknowledgements: what differs from one way to the other.
pub(super) trait Counting {
    /// Whether duplicate acknowledgements, too, may let go segments outside recovery.
    const SENDS_ON_DUPLICATES: bool;

    /// Takes what an acknowledgement tells beyond its number. Returns whether a duplicate counts
    /// that tells this.
    fn take(sender: &mut Sender, packet: &Packet) -> bool;

    /// Whether duplicate acknowledgements now mean a new loss, not an echo of the last recovery,
    /// which there was.
    fn may_enter(sender: &Sender) -> bool;

    /// Whether the first segment is lost, however many duplicates were counted.
    fn first_is_lost(sender: &Sender, tcp: &Tcp) -> bool;

    /// Recovery begins: the first segment is about to be sent again.
    fn begin(sender: &mut Sender, tcp: &Tcp);

    /// A duplicate acknowledgement came in recovery.
    fn on_duplicate(sender: &mut Sender);

    /// New data was acknowledged in recovery, but not all that was out when it began. Returns
    /// whether the retransmission timer restarts.
    fn on_partial_ack(sender: &mut Sender, tcp: &Tcp, acked: u32, out: &mut impl Outbox) -> bool;

    /// All that was out when recovery began is acknowledged.
    fn end(sender: &mut Sender);
}

impl Sender {
    /// Follows an acknowledgement.
    #[inline]
    pub(super) fn follow_counting<R: Counting>(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        packet: &Packet,
        marked: bool,
        out: &mut impl Outbox,
    ) {
        let counts = R::take(self, packet);
        if packet.seq > self.una {
            self.on_new_ack::<R>(tcp, control, packet, marked, out);
        } else if self.una < self.max {
            self.on_duplicate_ack::<R>(tcp, control, (marked, counts), out);
        }
    }

    #[inline]
    fn on_new_ack<R: Counting>(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        packet: &Packet,
        marked: bool,
        out: &mut impl Outbox,
    ) {
        let ack = packet.seq;
        let acked = ack - self.una;
        self.una = ack;
        // After a timeout the acknowledgement may cover segments that arrived before and need not
        // be sent again.
        self.next = self.next.max(ack);
        (self.dup_acks, self.limited, self.backoff) = (0, 0, 0);
        // RFC 7323 §4.1: an acknowledgement of new data gives a sample.
        let rtt = out.now().since(packet.sent);
        self.rtt.sample(rtt);
        let ack = self.ack_info(acked, marked, Some(rtt), out);
        control.on_ack(&mut self.window, ack);
        let mut restart_timer = true;
        if self.phase == Phase::Recovery {
            restart_timer = self.on_ack_in_recovery::<R>(tcp, acked, out);
        } else {
            if marked {
                self.on_mark(control);
            }
            // RFC 3168 §6.1.2: no growth on an acknowledgement with ECE. As in Linux's CWR state,
            // there is none in the whole window that follows the reduction.
            if self.una > self.window.cwr_end {
                self.window.grow(control, acked, (tcp.max_window, tcp.abc_limit));
            }
        }
        if self.una == self.segments && !self.has_more_to_come() {
            self.acknowledge(tcp, out);
            self.finish(out);
            return;
        }
        self.send_allowed(tcp, out);
        if restart_timer {
            self.arm(tcp, out);
        }
    }

    /// An acknowledgement repeated the last one while data is outstanding. `counts`: it reports
    /// what makes a duplicate count.
    #[cold]
    fn on_duplicate_ack<R: Counting>(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        (marked, counts): (bool, bool),
        out: &mut impl Outbox,
    ) {
        self.counts.duplicate_acks += 1;
        if !counts {
            return;
        }
        if self.phase == Phase::Recovery {
            R::on_duplicate(self);
            self.send_allowed(tcp, out);
            return;
        }
        if marked {
            self.on_mark(control);
        }
        self.dup_acks += 1;
        if self.recover != 0 && !R::may_enter(self) {
            if R::SENDS_ON_DUPLICATES {
                self.send_allowed(tcp, out);
            }
        } else if self.dup_acks >= tcp.dup_ack_threshold || R::first_is_lost(self, tcp) {
            self.enter_recovery::<R>(tcp, control, out);
        } else if tcp.limited_transmit {
            self.limited_transmit(tcp, out);
        }
    }

    /// RFC 3042: one new segment per duplicate acknowledgement, beyond the congestion window, which
    /// stays. RFC 3042 speaks of the first two; of a threshold other than three, all below it.
    fn limited_transmit(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let window = self.window.segments().saturating_add(self.dup_acks).min(tcp.max_window);
        if self.next == self.max && self.next < self.segments && self.next - self.una < window {
            self.transmit(tcp, self.next, out);
            self.next += 1;
            self.limited = self.limited.saturating_add(1);
        }
    }

    fn enter_recovery<R: Counting>(&mut self, tcp: &Tcp, control: &impl Controller, out: &mut impl Outbox) {
        self.counts.fast_recoveries += 1;
        self.phase = Phase::Recovery;
        self.facts.set(SenderFlags::PARTIAL_SEEN, false);
        // RFC 5681 §3.2 step 2: what limited transmit sent does not count.
        let flight = self.next - self.una;
        control.on_loss(&mut self.window, flight.saturating_sub(u32::from(self.limited)));
        self.recover = self.max;
        self.cwr_due = true;
        self.window.cwnd = self.window.ssthresh;
        R::begin(self, tcp);
        self.transmit(tcp, self.una, out);
        self.send_allowed(tcp, out);
    }

    /// New data was acknowledged in fast recovery. Returns whether the retransmission timer
    /// restarts.
    #[cold]
    fn on_ack_in_recovery<R: Counting>(&mut self, tcp: &Tcp, acked: u32, out: &mut impl Outbox) -> bool {
        if self.una < self.recover {
            return R::on_partial_ack(self, tcp, acked, out);
        }
        self.phase = Phase::Open;
        R::end(self);
        true
    }

    /// The retransmission timer expired (RFC 6298 rules 5.4 to 5.6, RFC 5681 §3.1).
    #[cold]
    pub(super) fn time_out(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        self.count_timeout(self.rtt.timeout(tcp, self.backoff));
        out.timed_out();
        // RFC 5681 §3.1: only the first timeout of a segment lowers the threshold.
        if self.backoff == 0 {
            let flight = self.next - self.una;
            tcp.control.on_loss(&mut self.window, flight.saturating_sub(u32::from(self.limited)));
            tcp.control.on_timeout(&mut self.window, out.now(), self.max);
        }
        self.window.cwnd = 1.0;
        self.phase = Phase::Open;
        // RFC 6582 §3.2 step 4.
        self.recover = self.max;
        (self.window.cwr_end, self.cwr_due) = (0, true);
        (self.dup_acks, self.limited) = (0, 0);
        self.backoff = self.backoff.saturating_add(1);
        // Go back: everything that is not acknowledged is sent again as the window opens.
        self.next = self.una;
        self.send_allowed(tcp, out);
        self.arm(tcp, out);
    }
}
