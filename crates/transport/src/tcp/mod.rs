//! TCP: Reno or CUBIC congestion control with NewReno or SACK recovery, and DCTCP. The rules of
//! windows are in `congestion`.
//!
//! - Slow start, congestion avoidance, fast retransmit: RFC 5681. Recovery: RFC 6582 or, with SACK,
//!   RFC 6675. Loss by time: RFC 8985. Limited transmit: RFC 3042. Timeouts: RFC 6298, from time
//!   stamps (RFC 7323).
//! - CUBIC: RFC 9438.
//! - ECN: off, classic (RFC 3168) or DCTCP (RFC 8257). Only data segments are ECN-capable;
//!   acknowledgements and the handshake are not.
//! - Windows are counted in segments. The last acknowledgement of a flow is never delayed.
//!
//! A flow that never ends stops after 2^32 - 1 segments, which is 500 s at 100 Gbit/s.

mod compression;
mod config;
mod host_stack;
mod profile;
mod rack_tlp;
mod reassembly;
mod receive_window;
mod receiver;
mod recovery;
mod resequence;
mod rtt;
pub(crate) mod segments;
mod send_queue;
mod sender;
mod timers;

pub use config::{Congestion, DctcpConfig, EcnMode, MptcpConfig, TcpConfig};
pub use profile::Profile;
pub use receiver::Receiver;
pub(crate) use sender::Reductions;
pub use sender::Sender;
use weft_packet::Packet;
use weft_units::Span;

use crate::congestion::{Control, rules};
use crate::{
    Counted, Delivery, FlowSize, Outbox, Protocol, ReceiverStats, Segmentation, SenderState, SenderStats,
    SinglePath, WindowState, Written,
};

/// How an end reacts to marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ecn {
    Off,
    Classic,
    Dctcp,
}

/// TCP with checked parameters: made by [`TcpConfig::build`] or [`DctcpConfig::build`], shared by
/// all flows.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // Each is a key of its own, and all combinations make sense.
pub struct Tcp {
    mss: u16,
    header: u16,
    ack_bytes: u16,
    syn_bytes: u16,
    /// Segments.
    max_window: u32,
    /// The window that a receiver offers, if it is not whatever comes.
    offers: Option<receive_window::Offers>,
    /// Which acknowledgements receivers leave out, if any.
    compresses: Option<compression::Compresses>,
    /// Segments, at most `max_window`.
    initial_window: f64,
    /// Segments.
    initial_ssthresh: f64,
    dup_ack_threshold: u32,
    ack_every: u16,
    quick_acks: u16,
    /// Segments.
    abc_limit: u32,
    ecn: Ecn,
    pub(crate) control: Control,
    recovery: recovery::Recovery,
    /// Zero holds nothing.
    reorder_hold: Span,
    reorder_segments: u32,
    limited_transmit: bool,
    handshake: bool,
    stack: host_stack::Stack,
    probing: Option<recovery::Probing>,
    prr: bool,
    timeout_keeps_network: bool,
    grow_beyond_holes: bool,
    fin: bool,
    sender_acks: bool,
    undo_rules: recovery::UndoRules,
    /// Beyond the reordering window.
    rack_wait: Span,
    min_rto: Span,
    min_rto_beyond_rtt: bool,
    max_rto: Span,
    initial_rto: Span,
    ack_timeout: Span,
    timers: timers::Wheel,
    syn_timeout: Span,
}

impl Protocol for Tcp {
    type Sender = Sender;
    type Receiver = Receiver;

    #[inline]
    fn segmentation(&self) -> Segmentation {
        Segmentation { mss: self.mss, header: self.header }
    }

    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        self.handshake.then_some((self.syn_bytes, self.syn_bytes))
    }

    fn asks_when_free(&self) -> bool {
        self.stack.keeps_queue_small()
    }

    fn uses_ecn(&self) -> bool {
        self.ecn != Ecn::Off
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
        Receiver::new(self, size)
    }

    fn finished_receiver(&self, size: FlowSize) -> Option<Receiver> {
        // A reordering buffer knows more than that.
        self.reorder_hold.is_zero().then(|| Receiver::finished(size))
    }

    fn counted(&self) -> Counted {
        Counted { fast_recoveries: true, duplicate_acks: true, marked_acks: true, ..Counted::default() }
    }

    fn sender_stats(&self, sender: &Sender) -> SenderStats {
        sender.stats()
    }

    fn receiver_stats(&self, receiver: &Receiver) -> ReceiverStats {
        receiver.stats()
    }

    fn window(&self, sender: &Sender) -> Option<WindowState> {
        Some(WindowState {
            cwnd: sender.congestion_window(),
            ssthresh: sender.slow_start_threshold(),
            outstanding: sender.outstanding(),
            smoothed_rtt: sender.round_trip().0,
        })
    }
}

impl SinglePath for Tcp {
    fn start(&self, sender: &mut Sender, out: &mut impl Outbox) {
        sender.start(self, out);
    }

    fn sender_writes(&self, sender: &mut Sender, written: Written, out: &mut impl Outbox) {
        sender.writes(self, written, out);
    }

    #[inline]
    fn sender_receives(&self, sender: &mut Sender, packet: &Packet, out: &mut impl Outbox) -> SenderState {
        // Asked for once: what an acknowledgement does is compiled for each of the rules.
        rules!(&self.control, rules => sender.receives(self, rules, packet, out))
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Outbox) -> SenderState {
        sender.wakes(self, out)
    }

    #[inline]
    fn receiver_receives(&self, receiver: &mut Receiver, packet: &Packet, out: &mut impl Outbox) -> Delivery {
        receiver.receives(self, packet, out)
    }

    fn receiver_wakes(&self, receiver: &mut Receiver, out: &mut impl Outbox) -> Delivery {
        receiver.wakes(self, out)
    }
}
