//! Ultra Ethernet transport, as far as a fabric sees it: reliable and unordered delivery (RUD) with
//! NSCC.
//!
//! - Each packet may take its own way: a load balancer at hosts chooses its entropy. An answer
//!   leaves with the packet that made it and echoes its mark, so that the load balancer tells the
//!   other end what became of that one.
//! - A receiver keeps what comes in any order, and acknowledges some bytes at a time: what is in
//!   order, and which of 64 packets have come (Ultra Ethernet 1.0 §3.5.12, and its public
//!   simulator).
//! - A packet that a full queue trimmed is asked for again at once. What is neither answered nor
//!   trimmed is sent again after a time.
//! - The window is NSCC's (`congestion/nscc.rs`). There is no pacing.
//!
//! What the sources leave open or is done otherwise here:
//! - Of the receiver's credits (RCCC) there is nothing: NSCC alone is what the specification asks
//!   of every sender.
//! - An acknowledgement brings the time stamp of the packet that made it, in place of a table of
//!   times at the sender, which would say the same.
//! - A window holds a full packet at least, so that a sender whose packets are all lost may send
//!   one again, and needs no request to be allowed to.

mod config;
mod receiver;
mod report;
mod sender;

pub use config::{UecConfig, UecProfile};
pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::Packet;
use weft_units::{Rate, Span};

use crate::congestion::nscc::{Params, Rules};
use crate::rdma::wire::Wire;
use crate::{
    Counted, Delivery, FlowSize, KnownFabric, Outbox, PathRequirement, Protocol, Pull, ReceiverStats,
    Requirements, Segmentation, SenderState, SenderStats, SinglePath, WindowState, Written,
};

/// Ultra Ethernet transport with checked parameters: made by [`UecConfig::build`], shared by all
/// flows.
#[derive(Debug, Clone)]
pub struct Uec {
    wire: Wire,
    /// Bytes on the wire that one acknowledgement answers.
    ack_bytes: u32,
    params: Params,
    /// Rules that follow from the parameters and the fabric.
    rules: Rules,
}

impl Uec {
    /// Until it is told of a fabric, that is the one of NSCC's reference: 12 us at 100 Gbit/s, and
    /// queues that trim.
    pub(crate) fn new(wire: Wire, ack_bytes: u32, params: Params) -> Self {
        let pace = Rate::from_gbps(100).ps_per_byte();
        let known = KnownFabric { base_rtt: Span::from_us(12), pace, trims: true };
        let rules = Rules::new(&params, known, wire.mtu, wire.mtu + wire.header);
        Self { wire, ack_bytes, params, rules }
    }
}

impl Protocol for Uec {
    type Sender = Sender;
    type Receiver = Receiver;

    #[inline]
    fn segmentation(&self) -> Segmentation {
        self.wire.segmentation()
    }

    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        None
    }

    #[inline]
    fn is_rnic_scheduled(&self) -> bool {
        true
    }

    fn needs_fabric(&self) -> bool {
        true
    }

    fn configure(&mut self, known: KnownFabric) {
        let packet = self.wire.mtu + self.wire.header;
        self.rules = Rules::new(&self.params, known, self.wire.mtu, packet);
    }

    fn requirements(&self) -> Requirements {
        Requirements { ways: PathRequirement::Many, trimming: true }
    }

    fn takes_writes(&self) -> bool {
        true
    }

    fn limit(&self, sender: &mut Sender, written: Written) {
        sender.limit(written);
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(self, size)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(size)
    }

    fn finished_receiver(&self, size: FlowSize) -> Option<Receiver> {
        Some(Receiver::finished(size))
    }

    fn counted(&self) -> Counted {
        Counted { marked_acks: true, nacks: true, ..Counted::default() }
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }

    fn prefetch_sender(&self, sender: &Sender, tell: impl FnMut(*const u8)) {
        sender.keeps(tell);
    }

    fn window(&self, sender: &Sender) -> Option<WindowState> {
        Some(sender.window(self))
    }
}

impl SinglePath for Uec {
    fn start(&self, _: &mut Sender, out: &mut impl Outbox) {
        out.request_turn();
    }

    fn sender_writes(&self, sender: &mut Sender, written: Written, out: &mut impl Outbox) {
        sender.limit(written);
        out.request_turn();
    }

    #[inline]
    fn sender_pull(&self, sender: &mut Sender, out: &mut impl Outbox) -> Pull {
        sender.pull(self, out)
    }

    #[inline]
    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        sender.receives(self, packet, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.times_out(self, out);
        SenderState::Open
    }

    #[inline]
    fn receiver_receives(&self, receiver: &mut Receiver, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        receiver.receives(self, packet, out)
    }

    fn receiver_wakes(&self, _: &mut Receiver, _: &mut impl Outbox) -> Delivery {
        Delivery::Ongoing
    }
}
