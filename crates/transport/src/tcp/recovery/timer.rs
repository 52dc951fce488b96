//! The one timer of a sender that goes by time, and what it is set for now (RFC 8985 §8: the timers
//! exclude each other).
//!
//! When it is set anew, and for what, is as in `tcp_rearm_rto`, `tcp_set_xmit_timer` and
//! `tcp_schedule_loss_probe` of Linux 6.1. So a timeout does not come while RACK waits for what was
//! overtaken, nor before a probe. If the timer was set for one of these, what is left for a timeout
//! counts from when the first segment was sent that is not acknowledged, not from now.

use weft_units::{Span, Time};

use super::rack::Rack;
use crate::Outbox;
use crate::tcp::Tcp;
use crate::tcp::sender::{Phase, Sender};

/// Purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The retransmission timeout (RFC 6298).
    Timeout,
    /// A tail loss probe (RFC 8985 §7.2).
    Probe,
    /// The reordering window of a segment that was overtaken is over (RFC 8985 §6.2 step 5).
    Reordering,
}

/// The timer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    /// When it is due; `NEVER` if it is not set.
    pub at: Time,
    pub purpose: Purpose,
}

impl Timer {
    /// One that is not set.
    pub const OFF: Self = Self { at: Time::NEVER, purpose: Purpose::Timeout };
}

/// Shortest wait for a timeout that is overdue.
const LEAST: Span = Span::from_us(1);

impl Sender {
    /// The timer is for a timeout: `tcp_rearm_rto`.
    pub(super) fn set_for_timeout(&self, tcp: &Tcp, rack: &mut Rack, now: Time) {
        let was_for_another = rack.timer.purpose != Purpose::Timeout;
        match was_for_another.then(|| self.left_for_timeout(tcp, rack, now)).flatten() {
            Some(left) => {
                rack.timer = Timer { at: tcp.timers.due(now, left.max(LEAST)), purpose: Purpose::Timeout };
            }
            None => self.set_for_whole_timeout(tcp, rack, now),
        }
    }

    /// Sets the timer, and the timeout counts from now whatever the timer was set for.
    pub(super) fn set_for_whole_timeout(&self, tcp: &Tcp, rack: &mut Rack, now: Time) {
        let wait = self.rtt.timeout(tcp, self.backoff);
        let due = || Timer { at: tcp.timers.due(now, wait), purpose: Purpose::Timeout };
        rack.timer = if self.una < self.max { due() } else { Timer::OFF };
    }

    /// The timer is for RACK, which waits so long for what was overtaken.
    pub(super) fn set_for_reordering(tcp: &Tcp, rack: &mut Rack, wait: Span, now: Time) {
        let at = tcp.timers.due(now, wait + tcp.rack_wait);
        rack.timer = Timer { at, purpose: Purpose::Reordering };
    }

    /// New segments or arrivals: the timer is for a probe if there is to be one, else for a
    /// timeout, from now on.
    pub(super) fn restart_timer(&self, tcp: &Tcp, rack: &mut Rack, now: Time) {
        if !self.set_for_probe(tcp, rack, true, now) {
            self.set_for_timeout(tcp, rack, now);
        }
    }

    /// New segments were sent, none being out before if `was_idle`: `tcp_event_new_data_sent`, and
    /// the end of `tcp_write_xmit`.
    pub(super) fn set_after_sending(&self, tcp: &Tcp, rack: &mut Rack, was_idle: bool, now: Time) {
        if was_idle || rack.timer.purpose == Purpose::Probe {
            self.set_for_timeout(tcp, rack, now);
        }
        self.set_for_probe(tcp, rack, false, now);
    }

    /// RFC 8985 §7.2. A timeout comes no sooner: then the probe is in its place. `restarts`: the
    /// timeout would count from now. Returns whether there is to be a probe.
    fn set_for_probe(&self, tcp: &Tcp, rack: &mut Rack, restarts: bool, now: Time) -> bool {
        let Some(probing) = tcp.probing else { return false };
        // Linux probes in the states Open and CWR, not in Disorder, Recovery and Loss.
        let recovers = self.phase == Phase::Recovery || rack.after_timeout;
        let is_disordered = rack.arrived + rack.lost() > 0 && rack.reduction.is_none();
        if recovers || is_disordered || self.una == self.max {
            return false;
        }
        let smoothed = self.rtt.smoothed();
        let wait = if smoothed.is_zero() {
            tcp.initial_rto
        } else {
            let beyond = if self.max - self.una == 1 { probing.wait_for_one } else { probing.wait };
            smoothed.saturating_mul(2) + beyond
        };
        let left = if restarts {
            Some(self.rtt.timeout(tcp, self.backoff))
        } else {
            self.left_for_timeout(tcp, rack, now).filter(|left| !left.is_zero())
        };
        let wait = left.map_or(wait, |left| wait.min(left));
        rack.timer = Timer { at: tcp.timers.due(now, wait), purpose: Purpose::Probe };
        true
    }

    /// How long it is to a timeout that counts from when the first segment was sent that is not
    /// acknowledged: `tcp_rto_delta_us`. Zero if it is overdue.
    fn left_for_timeout(&self, tcp: &Tcp, rack: &Rack, now: Time) -> Option<Span> {
        let timeout = tcp.timers.whole(self.rtt.timeout(tcp, self.backoff));
        rack.first_sent().map(|sent| sent.saturating_add(timeout).since(now))
    }
}

/// Asks to be woken when the timer is due, or the host's queue takes more.
pub(super) fn wake(rack: &Rack, out: &mut impl Outbox) {
    let at = rack.timer.at.min(rack.handed.resume_at);
    // What is due at this instant is pending already.
    if at > out.now() {
        out.wake_at(at);
    }
}
