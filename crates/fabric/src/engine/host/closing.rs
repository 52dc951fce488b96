//! Close of a connection with an external host, which a simulated host does for a flow beyond its
//! transport, which knows no FIN.
//!
//! An external host ends what it sends by a FIN, and keeps the connection until that is
//! acknowledged and the other end has sent its own (RFC 9293 §3.6). The answer is a packet of the
//! host, by way of its host scheme. It may be lost: then the external host says it again, and is
//! answered again.

use weft_packet::{Kind, Packet};
use weft_transport::Transports;
use weft_units::Time;

use super::Side;
use super::external::At;
use super::intake::Intake;
use super::outbox::FlowEnd;
use crate::engine::external_hosts::Frame;

/// The end of a connection at a simulated host.
pub struct Closing {
    end: FlowEnd,
    side: Side,
    /// Data that the external host has sent.
    intake: Intake,
    has_fin: bool,
}

impl Closing {
    /// Nothing has come from the external host.
    pub fn new(end: FlowEnd, side: Side) -> Self {
        Self { end, side, intake: Intake::default(), has_fin: false }
    }

    /// This came from the external host; `size` is that of the flow. Returns whether its FIN is to
    /// be acknowledged now.
    pub fn answers(&mut self, frame: &Frame, size: u64) -> bool {
        self.has_fin |= frame.ends;
        if self.side == Side::Sender {
            // An external host that receives says so when it has everything.
            return frame.ends;
        }
        let before = self.intake.expected;
        self.intake.take(&frame.payload, false, Time::ZERO);
        let is_whole = self.intake.expected >= size;
        is_whole && self.has_fin && (frame.ends || self.intake.expected > before)
    }

    /// Sends the answer to this packet of the external host.
    pub fn answer<T: Transports>(&mut self, packet: &Packet, at: &mut At<'_, '_, T>) {
        let (flow, end) = (packet.flow, &mut self.end.first);
        let mut answer = Packet::default();
        (answer.flow, answer.src, answer.dst) = (flow, packet.dst, packet.src);
        (answer.kind, answer.entropy) = (Kind::Ack, end.entropy());
        answer.flags = answer.flags.with(end.class());
        answer.wire_bytes = at.plan.header_bytes(&at.plan.flows[flow.index()]);
        (answer.seq, answer.sent) = match self.side {
            Side::Sender => (0, at.here.nic.now()),
            Side::Receiver => (at.plan.size(flow).segments.saturating_add(1), packet.sent),
        };
        if at.here.common.hooks.on_send {
            at.host.rest.virtual_switch.route(end, &mut answer, &mut at.here);
        }
        at.here.nic.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use weft_packet::{FlowId, HostId, PacketFlags};

    use super::super::outbox::End;
    use super::*;

    fn closing(side: Side) -> Closing {
        let scheme = weft_balance::AnyHostScheme::None.new_flow();
        let hosts = (HostId(0), HostId(1));
        Closing::new(
            FlowEnd::new(End::new(FlowId(0), side, hosts, 7, PacketFlags::default(), scheme), 0),
            side,
        )
    }

    fn frame(payload: Range<u64>, ends: bool) -> Frame {
        Frame { payload, ends, ..Frame::default() }
    }

    #[test]
    fn a_receiver_answers_a_fin_once_it_has_everything_and_each_time_it_is_said_again() {
        let mut end = closing(Side::Receiver);
        assert!(!end.answers(&frame(10..20, true), 20), "bytes are missing");
        assert!(end.answers(&frame(0..10, false), 20), "what was missing has come");
        assert!(!end.answers(&frame(0..10, false), 20), "a copy of data asks for nothing");
        assert!(end.answers(&frame(10..20, true), 20), "the answer was lost");
        assert!(end.answers(&frame(20..20, true), 20), "a FIN alone");
    }

    #[test]
    fn a_sender_answers_every_fin_and_nothing_else() {
        let mut end = closing(Side::Sender);
        assert!(!end.answers(&frame(0..0, false), 20));
        assert!(end.answers(&frame(0..0, true), 20));
        assert!(end.answers(&frame(0..0, true), 20));
    }
}
