//! The way out by each of a flow's ports, of a transport that has several.

use weft_packet::Kind;
use weft_transport::{Outbox, Outgoing, Ports, Resend};
use weft_units::{PicosPerByte, Stream, Time};

use super::{HostOutbox, packet_of};

impl Ports for HostOutbox<'_, '_, '_, '_> {
    fn ports(&self) -> u8 {
        (self.end.others().len() + 1) as u8
    }

    fn by(&mut self, port: u8) -> impl Outbox {
        HostPort { out: self, port }
    }

    fn send_mapped(&mut self, port: u8, segment: u32, outgoing: Outgoing) {
        self.send_by(port, outgoing, Some(segment));
    }
}

/// The way out by one port of the flow.
struct HostPort<'o, 's, 'h, 'n, 'a> {
    out: &'o mut HostOutbox<'s, 'h, 'n, 'a>,
    port: u8,
}

impl Outbox for HostPort<'_, '_, '_, '_, '_> {
    fn now(&self) -> Time {
        self.out.now()
    }

    fn link_pace(&self) -> PicosPerByte {
        self.out.link_pace()
    }

    fn free_at(&self) -> Time {
        self.out.free_at()
    }

    fn random(&mut self) -> &mut Stream {
        self.out.random()
    }

    /// As [`HostOutbox::send`].
    #[inline(never)]
    fn send(&mut self, outgoing: Outgoing) {
        if self.out.here.common.sends_apart || outgoing.kind == Kind::CreditRequest {
            return self.out.send_by(self.port, outgoing, None);
        }
        let packet = packet_of(self.out.end.of(self.port), outgoing, self.out.here.common.is_ack_clocked);
        self.out.here.nic.send(packet);
    }

    #[cold]
    fn note_retransmission(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.out.note_resend(self.port, segment, sent, cause);
    }

    fn wake_at(&mut self, at: Time) {
        self.out.wake_at(at);
    }

    fn timed_out(&mut self) {
        self.out.note_timeout(self.port);
    }
}
