//! The tail loss probe (RFC 8985 §7): where no acknowledgement comes for two round trips, one segment is sent that asks for one, and
//! what it tells is RACK's to judge. A loss at the end of a flow then need not wait for the retransmission timer.

use weft_packet::{Packet, PacketFlags};
use weft_units::{Span, Time};

use super::rack::Rack;
use crate::Outbox;
use crate::congestion::Controller;
use crate::tcp::Tcp;
use crate::tcp::sender::{Phase, Sender};

/// When there are probes.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Probing {
    /// Beyond two round trips.
    pub wait: Span,
    /// The same where one segment is out, whose acknowledgement may be delayed.
    pub wait_for_one: Span,
}

/// The probe of a flow.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Probe {
    /// When it is due.
    pub at: Time,
    /// `TLP.end_seq` and `TLP.is_retrans`, while it is out.
    out: Option<(u32, bool)>,
}

impl Default for Probe {
    fn default() -> Self {
        Self { at: Time::NEVER, out: None }
    }
}

impl Probe {
    /// A loss is being repaired: the probe has done its work.
    pub const fn ends(&mut self) {
        (self.at, self.out) = (Time::NEVER, None);
    }
}

impl Sender {
    /// RFC 8985 §7.2: after new data was sent or acknowledged.
    pub(super) fn schedule_probe(&self, tcp: &Tcp, rack: &mut Rack, out: &impl Outbox) {
        rack.probe.at = Time::NEVER;
        let Some(probing) = tcp.probing else { return };
        let recovers = self.phase == Phase::Recovery || rack.after_timeout;
        if recovers || rack.arrived > 0 || rack.lost() > 0 || self.una == self.max || rack.probe.out.is_some()
        {
            return;
        }
        let smoothed = self.rtt.smoothed();
        let wait = if smoothed.is_zero() {
            tcp.initial_rto
        } else {
            let beyond = if self.max - self.una == 1 { probing.wait_for_one } else { probing.wait };
            smoothed.saturating_mul(2) + beyond
        };
        rack.probe.at = tcp.timers.due(out.now(), wait).min(rack.retransmit_at);
    }

    /// RFC 8985 §7.3: sends a new segment, or the last one again.
    pub(super) fn send_probe(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        let is_new = self.next < self.end_of_window(tcp, rack);
        if is_new {
            rack.handed.begins(self.next);
            self.send_new(tcp, rack, out);
        } else {
            self.send_again(tcp, rack, self.max - 1, out);
        }
        rack.probe.out = Some((self.max, !is_new));
        self.restart_timer(tcp, rack, out);
    }

    /// RFC 8985 §7.4.2: what an acknowledgement says of the probe. One that repaired a loss costs what a loss costs. `told`: how
    /// many segments it said to have arrived.
    pub(super) fn judge_probe(
        &mut self,
        control: &impl Controller,
        rack: &mut Rack,
        packet: &Packet,
        told: u32,
    ) {
        let Some((end, again)) = rack.probe.out else { return };
        if packet.seq < end {
            return;
        }
        if !again || packet.flags.has(PacketFlags::RETRANSMISSION) {
            rack.probe.out = None;
        } else if packet.seq > end {
            rack.probe.out = None;
            self.reduce_by_time(control);
            self.window.cwnd = self.window.ssthresh;
            self.cwr_due = true;
        } else if told == 0 {
            rack.probe.out = None;
        }
    }
}
