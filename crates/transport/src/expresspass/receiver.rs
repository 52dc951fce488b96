//! The receiving end: paces credits, learns from the data that answers them which were lost, and
//! adapts.

use weft_packet::{Kind, Packet};
use weft_units::{Span, Time};

use super::ExpressPass;
use crate::credits::pacer::Pacer;
use crate::selective::Intake;
use crate::{Delivery, FlowSize, Outbox, ReceiverStats};

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    intake: Intake,
    pacer: Pacer,
    /// Whether the sender wants credits.
    crediting: bool,
}

impl Receiver {
    pub(super) const fn new(protocol: &ExpressPass, size: FlowSize) -> Self {
        Self { intake: Intake::new(size), pacer: Pacer::new(&protocol.terms), crediting: false }
    }

    pub(super) fn receives(
        &mut self,
        protocol: &ExpressPass,
        packet: &Packet,
        out: &mut impl Outbox,
    ) -> Delivery {
        match packet.kind {
            Kind::Data => {
                let now = out.now();
                self.pacer.note_echo(packet.sent, now, out);
                return self.intake.deliver(packet, now);
            }
            Kind::CreditRequest if !self.crediting => self.begin(protocol, out),
            Kind::CreditStop => {
                self.crediting = false;
                self.pacer.end();
                out.wake_at(Time::NEVER);
                out.send(protocol.terms.signal(Kind::Ack, self.intake.expected, packet.sent));
            }
            _ => {}
        }
        Delivery::Ongoing
    }

    /// MaxPass Alg. 1 lines 1 and 2; then the first credit.
    fn begin(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        self.crediting = true;
        self.pacer.begin(&protocol.terms, protocol.terms.initial_rate, out.now());
        self.send_credit(protocol, out);
    }

    /// Sends a credit, and sees to it that the next one follows.
    pub(super) fn send_credit(&mut self, protocol: &ExpressPass, out: &mut impl Outbox) {
        if !self.crediting {
            return;
        }
        let now = out.now();
        self.pacer.update(&protocol.terms, 1, now, out);
        // Data follows its credits' one path: nothing overtakes it, and what is missing is lost.
        let has_hole = self.intake.has_hole(now, || Span::ZERO);
        let next = self.pacer.send(&protocol.terms, (self.intake.expected, has_hole), now, out);
        out.wake_at(next);
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        ReceiverStats { credits_sent: self.pacer.credits_sent(), ..self.intake.stats() }
    }
}
