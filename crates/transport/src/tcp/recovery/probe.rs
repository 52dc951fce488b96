//! The tail loss probe (RFC 8985 §7): where no acknowledgement comes for two round trips, one
//! segment is sent that asks for one, and what it tells is RACK's to judge. A loss at the end of a
//! flow then need not wait for the retransmission timer.

use weft_packet::{Packet, PacketFlags};
use weft_units::Span;

use super::rack::Rack;
use crate::Outbox;
use crate::congestion::Controller;
use crate::tcp::Tcp;
use crate::tcp::sender::Sender;

/// When there are probes.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Probing {
    /// Beyond two round trips.
    pub wait: Span,
    /// Beyond two round trips while one segment is out, whose acknowledgement may be delayed.
    pub wait_for_one: Span,
}

impl Sender {
    /// RFC 8985 §7.3: sends a new segment, or the last one again. One probe is out at most.
    pub(super) fn send_probe(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        if rack.probe.is_some() {
            return self.set_for_timeout(tcp, rack, out.now());
        }
        let is_new = self.next < self.end_of_window(tcp, rack);
        if is_new {
            self.send_burst(tcp, rack, 1, out);
        } else {
            self.send_again(tcp, rack, self.max - 1, out);
        }
        rack.probe = Some((self.max, !is_new));
        self.set_for_whole_timeout(tcp, rack, out.now());
    }

    /// RFC 8985 §7.4.2: what an acknowledgement says of the probe. One that repaired a loss costs
    /// what a loss costs. `told`: how many segments it said to have arrived.
    pub(super) fn judge_probe(
        &mut self,
        control: &impl Controller,
        rack: &mut Rack,
        packet: &Packet,
        told: u32,
    ) {
        let Some((end, again)) = rack.probe else { return };
        if packet.seq < end {
            return;
        }
        if !again || packet.flags.has(PacketFlags::RETRANSMISSION) {
            rack.probe = None;
        } else if packet.seq > end {
            rack.probe = None;
            self.reduce_by_time(control);
            self.window.cwnd = self.window.ssthresh;
            self.cwr_due = true;
        } else if told == 0 {
            rack.probe = None;
        }
    }
}
