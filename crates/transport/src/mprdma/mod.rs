//! MP-RDMA: RDMA over many paths, without state for any of them (Lu et al., NSDI 2018; Chen et al.,
//! IEEE/ACM Trans. Netw. 2019).
//!
//! - A packet has a virtual path, a number that switches hash as they do a UDP source port. Its
//!   acknowledgement leaves at once, on that path, and calls for the next packet on it: so paths
//!   that deliver fast carry more (multi-path ACK clocking, §3.2).
//! - There is one window for all paths. An acknowledgement without a mark adds 1/cwnd to it, one
//!   with a mark takes half a packet (§3.2).
//! - An acknowledgement that is more than `delta` behind the furthest one takes a packet from the
//!   window, and calls for none: slow paths are given up, and packets come nearly in order (§3.3).
//! - A receiver keeps what comes early in a bitmap of `bitmap` slots, and refuses what comes
//!   beyond. That makes a negative acknowledgement, upon which everything from the missing packet
//!   on is sent again, packet by packet as answers come (§3.5).
//! - Once a round trip, by chance, a packet tries a new path (§3.5).
//!
//! What the sources leave open or is done otherwise here:
//! - A sender keeps no map of what has come, so recovery sends what has come already, too.
//! - The window is inflated by acknowledgements of packets beyond a hole. One that is lost would
//!   leave it too small for good: whenever nothing is known to have come beyond what is in order,
//!   the count begins anew ([`window`]).
//! - A negative acknowledgement calls for a packet as a positive one does. What is in order it
//!   tells, too.
//! - A packet that was refused when it was sent again is sent once more upon the answer that says
//!   so.
//! - After a timeout the window is cut and as many packets as it holds are sent again at once, on
//!   the path of the last acknowledgement that called for one.
//! - `synchronise` (§3.4) keeps the packets of one message behind those of another. A flow is one
//!   message: there is nothing to it.

mod ack_detail;
mod config;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod window;

pub use config::{MpRdmaConfig, UncalledPaths};
pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::Packet;
use weft_units::{Rate, Span};

use crate::irn::packets_of_path;
use crate::rdma::wire::Wire;
use crate::{
    Counted, Delivery, FlowSize, KnownFabric, Outbox, PathRequirement, Protocol, Pull, ReceiverStats,
    Requirements, Segmentation, SenderState, SenderStats, SinglePath, WindowState, Written,
};

/// MP-RDMA with checked parameters: made by [`MpRdmaConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct MpRdma {
    pub(crate) wire: Wire,
    pub(crate) rules: Rules,
    /// The first window that the spec gives.
    pub(crate) own_initial: Option<u32>,
}

/// Rules that a sender and a receiver follow.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// How far behind the furthest one an acknowledgement may be.
    pub delta: u32,
    /// How many packets from the first missing one on a receiver takes.
    pub bitmap: u32,
    /// How many virtual paths there are to draw from.
    pub paths: u32,
    /// The chance that a round trip tries a new one.
    pub probe: f64,
    /// The first window, in packets.
    pub initial: f64,
    /// The least window, in packets.
    pub least: f64,
    /// Packets that an acknowledgement calls for at most.
    pub burst: u32,
    /// How long no acknowledgement comes before the rest of the window is sent, in round trips.
    pub burst_after: f64,
    /// How long a sender without data keeps its window, in round trips.
    pub idle_after: f64,
    /// Whether a sender without new data sends again what is not acknowledged.
    pub early: bool,
    /// The share of the window that a recovery takes, and the one that a timeout takes.
    pub loss_cut: f64,
    pub timeout_cut: f64,
    pub burst_paths: UncalledPaths,
    pub timeout_paths: UncalledPaths,
    pub rto: Span,
    /// The round trip until one is measured.
    pub base_rtt: Span,
}

impl MpRdma {
    /// Until it is detail of a fabric, that is one of 12 us at 100 Gbit/s.
    pub(crate) fn new(wire: Wire, rules: Rules, own_initial: Option<u32>) -> Self {
        let mut mprdma = Self { wire, rules, own_initial };
        let pace = Rate::from_gbps(100).ps_per_byte();
        mprdma.configure(KnownFabric { base_rtt: Span::from_us(12), pace, trims: false });
        mprdma
    }
}

impl Protocol for MpRdma {
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
        let path = packets_of_path(known.base_rtt, known.pace, self.wire.mtu + self.wire.header);
        self.rules.initial = f64::from(self.own_initial.unwrap_or(path)).max(self.rules.least);
        self.rules.base_rtt = known.base_rtt;
    }

    fn requirements(&self) -> Requirements {
        Requirements { ways: PathRequirement::Hashed, ..Requirements::default() }
    }

    fn takes_writes(&self) -> bool {
        true
    }

    fn limit(&self, sender: &mut Sender, written: Written) {
        sender.limit(written);
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(&self.rules, size)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(size)
    }

    fn finished_receiver(&self, size: FlowSize) -> Option<Receiver> {
        Some(Receiver::finished(size))
    }

    fn counted(&self) -> Counted {
        Counted { fast_recoveries: true, marked_acks: true, nacks: true, ..Counted::default() }
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }

    fn window(&self, sender: &Sender) -> Option<WindowState> {
        Some(sender.window())
    }
}

impl SinglePath for MpRdma {
    fn start(&self, sender: &mut Sender, out: &mut impl Outbox) {
        sender.start(out);
    }

    fn sender_writes(&self, sender: &mut Sender, written: Written, out: &mut impl Outbox) {
        sender.writes(&self.rules, written, out);
    }

    #[inline]
    fn sender_pull(&self, sender: &mut Sender, out: &mut impl Outbox) -> Pull {
        sender.pull(self, out)
    }

    #[inline]
    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        sender.receives(&self.rules, packet, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.wakes(&self.rules, out);
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
