//! Reductions that are taken back since nothing was lost: because all that was sent again came
//! twice (D-SACK, RFC 3708), because an acknowledgement answers what was sent before anything was
//! sent again (Eifel, RFC 3522), or because after a timeout a segment arrives that was sent once
//! (F-RTO, RFC 5682).
//!
//! What follows from it is as in `tcp_try_undo_recovery`, `tcp_try_undo_partial` and
//! `tcp_process_loss` of Linux 6.1: the window is as before, at once.

use weft_packet::{Packet, PacketFlags};
use weft_units::{Span, Time};

use super::rack::{NewlyAcked, Rack};
use crate::congestion::Window;
use crate::tcp::Tcp;
use crate::tcp::sender::{Phase, Sender};

/// Which reasons count.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // Each is a key of its own.
pub(in crate::tcp) struct UndoRules {
    pub by_dsack: bool,
    pub eifel: bool,
    pub frto: bool,
    /// Tick of time stamps; zero is exact.
    pub tick: Span,
    /// Whether a time stamp tells which copy arrived of what is acknowledged selectively, too.
    pub of_sacked: bool,
}

/// The next segments of a sender after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum Next {
    /// Lost segments first, then new ones.
    LostFirst,
    /// New segments; what may be lost waits for more news.
    NewOnly,
}

/// A reduction for a loss, and the reports that are missing before it is undone.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Undo {
    cwnd: f64,
    ssthresh: f64,
    /// Segments that were sent again and not said to have been in vain.
    again: u32,
}

impl Undo {
    /// Remembers a window before it is reduced. In congestion avoidance the threshold that comes
    /// back is three quarters of it at least, as `tcp_current_ssthresh` has it.
    pub fn of(window: &Window) -> Self {
        Self { cwnd: window.cwnd, ssthresh: window.ssthresh.max(0.75 * window.cwnd), again: 0 }
    }

    /// There was congestion all the same, as a mark reported: what was taken is not given back.
    pub const fn keep(self) -> Self {
        Self { cwnd: 0.0, ssthresh: 0.0, again: self.again }
    }

    /// A segment is sent again.
    pub const fn sends_again(&mut self) {
        self.again += 1;
    }

    /// A segment was said to have come twice. Whether all were that were sent again.
    const fn in_vain(&mut self) -> bool {
        let had = self.again > 0;
        self.again = self.again.saturating_sub(1);
        had && self.again == 0
    }

    /// Gives back what was taken.
    fn restore(self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.cwnd);
        window.ssthresh = window.ssthresh.max(self.ssthresh);
    }
}

impl UndoRules {
    /// Whether any does.
    pub const fn any(self) -> bool {
        self.by_dsack || self.eifel || self.frto
    }

    /// Whether a clock of time stamps shows an earlier time at `a` than at `b`.
    pub fn is_before(self, a: Time, b: Time) -> bool {
        let ticks = |time: Time| time.as_ps() / self.tick.as_ps().max(1);
        ticks(a) < ticks(b)
    }
}

impl Sender {
    /// A recovery begins, or a timer expired: what it takes can be given back. In a reduction that
    /// is under way nothing more is taken.
    pub(super) fn remember(&self, tcp: &Tcp, rack: &mut Rack) {
        let undo = Undo::of(&self.window);
        let undo = if rack.reduction.is_some() { undo.keep() } else { undo };
        rack.undo = tcp.undo_rules.any().then_some(undo);
        if !rack.has_sent_again() {
            rack.first_again = None;
        }
    }

    /// Takes back what was in vain, if the acknowledgement says that something was. `acked`:
    /// whether it is of new data.
    pub(super) fn undo(
        &mut self,
        tcp: &Tcp,
        rack: &mut Rack,
        packet: &Packet,
        acked: u32,
        newly_acked: NewlyAcked,
    ) -> Next {
        let (news, acked) = (acked, acked > 0);
        let rules = tcp.undo_rules;
        let came_twice = packet.flags.has(PacketFlags::RETRANSMISSION);
        if came_twice && rules.by_dsack && rack.undo.as_mut().is_some_and(Undo::in_vain) {
            if rack.after_timeout && acked {
                rack.spare_lost();
            }
            self.give_back(rack);
            return Next::LostFirst;
        }
        // RFC 3522 §3.2 step 5, for each acknowledgement of new data.
        let late = rules.eifel && acked && rack.undo.is_some();
        // Where nothing could be sent again yet, it was late in any case (`tcp_packet_delayed`).
        let late = late && rack.first_again.is_none_or(|first| rules.is_before(packet.sent, first));
        if rack.after_timeout {
            return self.undo_timeout(tcp, rack, acked, late, newly_acked);
        }
        if self.phase != Phase::Recovery || !late {
            return Next::LostFirst;
        }
        if self.una < self.recover {
            // A hole was filled by what was late: the path reorders more than was known.
            rack.saw_reordering(self.una - news);
            if rack.again_in_network() > 0 {
                return Next::NewOnly;
            }
            rack.spare_lost();
        }
        self.give_back(rack);
        Next::LostFirst
    }

    /// Undoes the reduction after a timeout: RFC 5682 §3.1 with RFC 3522 before it, as in
    /// `tcp_process_loss`.
    fn undo_timeout(
        &mut self,
        tcp: &Tcp,
        rack: &mut Rack,
        acked: bool,
        late: bool,
        newly_acked: NewlyAcked,
    ) -> Next {
        // Step 3.b: something arrived that was sent once, before the timeout.
        if late || (rack.frto && newly_acked.original < self.recover) {
            rack.spare_lost();
            self.give_back(rack);
            return Next::LostFirst;
        }
        if !rack.frto {
            return Next::LostFirst;
        }
        if self.next > self.recover {
            // Step 3.a: the new segments tell of a hole.
            rack.frto = newly_acked.selectively == 0;
        } else if acked && self.una < self.recover {
            // Step 2.b.
            let may_send = self.next < self.end_of_window(tcp, rack);
            self.recover = self.next;
            rack.frto = may_send;
            if may_send {
                return Next::NewOnly;
            }
        }
        Next::LostFirst
    }

    /// There was no loss, and no reason for a smaller window.
    fn give_back(&mut self, rack: &mut Rack) {
        if let Some(undo) = rack.undo.take() {
            undo.restore(&mut self.window);
        }
        rack.reduction = None;
        (rack.after_timeout, rack.frto) = (false, false);
        // Marks count again.
        (self.phase, self.recover) = (Phase::Open, 0);
    }
}
