//! The receiver's side of DCQCN: when it tells the sender of marks (NP, DCQCN §3.1).

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Span, Time};

use super::wire::Wire;
use crate::Outbox;

/// How a receiver tells of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notify {
    /// Not at all: nobody listens.
    Never,
    /// By a notification, at most one in this time.
    Apart(Span),
    /// By a bit of each acknowledgement.
    InAcks,
}

/// State of a receiver that reports marks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Notifier {
    last: Option<Time>,
    /// Notifications sent.
    pub sent: u32,
}

impl Notifier {
    /// A data packet came.
    #[inline]
    pub fn note(&mut self, notify: Notify, wire: &Wire, packet: &Packet, out: &mut impl Outbox) {
        if packet.flags.has(PacketFlags::CE)
            && let Notify::Apart(interval) = notify
        {
            self.tell(interval, wire, packet, out);
        }
    }

    #[cold]
    fn tell(&mut self, interval: Span, wire: &Wire, packet: &Packet, out: &mut impl Outbox) {
        let now = out.now();
        if self.last.is_some_and(|last| now.since(last) < interval) {
            return;
        }
        self.last = Some(now);
        self.sent += 1;
        out.send_ack(wire.answer(Kind::Cnp, packet.seq, packet, true));
    }
}
