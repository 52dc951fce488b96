//! A way out with one five-tuple, as the sender takes it that serves both transports.

use weft_units::{PicosPerByte, Stream, Time};

use crate::{Outbox, Outgoing, Ports, Resend};

/// A way out with one port.
pub(crate) struct Alone<'o, O>(pub &'o mut O);

impl<O: Outbox> Outbox for Alone<'_, O> {
    #[inline]
    fn now(&self) -> Time {
        self.0.now()
    }

    fn link_pace(&self) -> PicosPerByte {
        self.0.link_pace()
    }

    fn free_at(&self) -> Time {
        self.0.free_at()
    }

    fn random(&mut self) -> &mut Stream {
        self.0.random()
    }

    #[inline]
    fn send(&mut self, packet: Outgoing) {
        self.0.send(packet);
    }

    fn note_retransmission(&mut self, segment: u32, sent: Time, cause: Resend) {
        self.0.note_retransmission(segment, sent, cause);
    }

    fn wake_at(&mut self, at: Time) {
        self.0.wake_at(at);
    }

    fn timed_out(&mut self) {
        self.0.timed_out();
    }
}

impl<O: Outbox> Ports for Alone<'_, O> {
    fn ports(&self) -> u8 {
        1
    }

    #[inline]
    fn by(&mut self, _: u8) -> impl Outbox {
        Alone(&mut *self.0)
    }

    fn send_mapped(&mut self, _: u8, _: u32, packet: Outgoing) {
        self.send(packet);
    }
}
