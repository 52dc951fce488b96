//! Loss recovery: how losses are found, and what is sent again. A file a way.
//!
//! - [`NewReno`] and [`Sack`] count duplicate acknowledgements, and have in common what is in
//!   `counting.rs`. Their segments may leave in bursts (`bursts.rs`).
//! - `rack` goes by time, and `by_time.rs` sends accordingly, with one timer (`timer.rs`) and
//!   round-trip times of its own (`samples.rs`); with it come tail loss probes (`probe.rs`) and
//!   windows that shrink over a round trip (`reduction.rs`), or grow back since nothing was lost
//!   (`spurious.rs`).

mod bursts;
mod dupack;
mod new_reno;
mod probe;
mod rack;
mod rack_tlp;
mod reduction;
mod sack;
mod samples;
mod sending;
mod timer;
mod undo;

use weft_packet::Packet;

use super::Tcp;
use super::host_stack::Bursts;
use super::sender::Sender;
use crate::Outbox;
use crate::congestion::Controller;

use new_reno::NewReno;
pub(super) use probe::Probing;
pub(super) use rack::Tolerance;
use sack::Sack;
pub(super) use undo::UndoRules;

/// How a TCP finds and mends losses, chosen when it is configured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Recovery {
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
    /// RFC 8985.
    Rack(Tolerance),
}

impl Recovery {
    /// Whether acknowledgements tell what arrived beyond a hole (RFC 2018).
    pub const fn has_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack(_))
    }

    /// Whether it goes by time, not by counting.
    pub const fn is_by_time(self) -> bool {
        matches!(self, Self::Rack(_))
    }

    /// Whether it wants to know of segments that came twice (RFC 2883).
    pub const fn has_dsack(self) -> bool {
        matches!(self, Self::Rack(_))
    }
}

/// Loss detection state per segment.
#[derive(Debug, Clone)]
pub(super) enum LossDetection {
    /// Which of them arrived.
    Sack(sack::Scoreboard),
    /// Nothing but which bursts they left in.
    Bursts(Bursts),
    /// State of the last copy of each segment.
    Rack(Box<rack::Rack>),
}

impl Sender {
    /// The connection is open: sends the first window.
    pub(super) fn send_first_window(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        if let Recovery::Rack(_) = tcp.recovery {
            return self.open_by_time(tcp, out);
        }
        if tcp.stack.sends_bursts() {
            self.begin_bursts(tcp.recovery.has_sack());
        }
        self.send_allowed(tcp, out);
        self.arm(tcp, out);
    }

    /// Follows an acknowledgement that is neither old nor of data never sent.
    #[inline]
    pub(super) fn follow(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        packet: &Packet,
        marked: bool,
        out: &mut impl Outbox,
    ) {
        match tcp.recovery {
            Recovery::NewReno => self.follow_counting::<NewReno>(tcp, control, packet, marked, out),
            Recovery::Sack => self.follow_counting::<Sack>(tcp, control, packet, marked, out),
            Recovery::Rack(_) => self.follow_by_time(tcp, control, packet, marked, out),
        }
    }

    /// The timer is due.
    pub(super) fn on_timer(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        if let Recovery::Rack(_) = tcp.recovery {
            self.wakes_by_time(tcp, out);
        } else if self.una < self.max {
            self.time_out(tcp, out);
        }
    }
}
