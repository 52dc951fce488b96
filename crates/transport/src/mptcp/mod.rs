//! Multipath TCP: one flow over several subflows, each a TCP connection of its own with its own
//! five-tuple, and so, by ECMP, mostly its own path (RFC 8684; Raiciu et al., SIGCOMM 2011, for
//! datacenters).
//!
//! - Each subflow is a TCP sender and receiver of this crate: own sequence numbers, window, losses,
//!   timeouts.
//! - **Data sequence.** Segments of the flow are numbered once; each segment of a subflow carries
//!   one of them, always the same (the mapping of RFC 8684 §3.3.1). The receiver puts them in
//!   order, and every acknowledgement says, beside the subflow's own number, which segment of the
//!   flow it waits for (`DATA_ACK`, §3.3.2).
//! - **Scheduler.** A subflow takes the next segments when its window opens: the faster its
//!   acknowledgements come, the more it carries. Where several have room at once, the first one is
//!   served first, or the one with the shortest round trip.
//! - **Joining.** The flow starts on one subflow. The others join when `join_after` bytes, and at
//!   least one segment, are acknowledged: a connection must be known to be multipath before a
//!   second subflow may join (§3.2). Each timeout before that opens one more, so that a flow whose
//!   first path is dead goes on: a host that tries another port.
//! - **Reinjection.** When a subflow times out, what it has outstanding is sent on the others, too
//!   (§3.3.6 leaves the policy open). The subflow goes on trying.
//! - **Coupled windows.** In congestion avoidance the windows grow together, as RFC 6356 (LIA) or
//!   Khalili et al. 2012 (OLIA) say, so that subflows that share a bottleneck take what one TCP
//!   takes. Slow start, losses and marks are each subflow's own.
//!
//! On the wire a data segment has 20 bytes of DSS option (§3.3: 4 of kind, length and flags,
//! `DATA_ACK`, data sequence number and subflow sequence number of 4 each, length and checksum of 2
//! each), which the payload makes room for; an acknowledgement has 8 (`DATA_ACK` alone). The number
//! of an acknowledgement's SACK blocks falls from four to three for it.

mod config;
mod data;
mod receiver;
mod sender;

pub(crate) use config::MOST_SUBFLOWS;
pub use config::{Coupling, MptcpConfig, MptcpEcn, Scheduler};
pub use receiver::Receiver;
pub use sender::Sender;
use weft_packet::{Packet, SackBlock};

use crate::{
    ArrivedPacket, Counted, Delivery, FiveTuples, FlowSize, Multipath, Ports, Protocol, ReceiverStats,
    Segmentation, SenderState, SenderStats, Tcp, Written,
};

/// MPTCP with checked parameters: made by [`MptcpConfig::build`], shared by all flows.
#[derive(Debug, Clone)]
pub struct Mptcp {
    /// TCP of each subflow.
    tcp: Tcp,
    subflows: u8,
    /// Segments of the flow that are acknowledged before the other subflows join, at least one.
    join_after: u32,
    coupling: Coupling,
    scheduler: Scheduler,
}

/// `DATA_ACK`: where in the acknowledgement it travels, in place of the last SACK block.
const DATA_ACK: usize = Packet::SACK_BLOCKS - 1;

const fn data_ack(expected: u32) -> SackBlock {
    SackBlock { first: (expected >> 16) as u16, count: expected as u16 }
}

/// Takes `DATA_ACK` out of an acknowledgement: the next segment of the flow that the receiver waits
/// for.
fn take_data_ack(packet: &mut Packet) -> u32 {
    let mut blocks = packet.sack_blocks();
    let SackBlock { first, count } = std::mem::take(&mut blocks[DATA_ACK]);
    packet.set_sack_blocks(blocks);
    u32::from(first) << 16 | u32::from(count)
}

impl Protocol for Mptcp {
    type Sender = Sender;
    type Receiver = Receiver;

    fn segmentation(&self) -> Segmentation {
        self.tcp.segmentation()
    }

    fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
        self.tcp.handshake_wire_bytes()
    }

    fn takes_writes(&self) -> bool {
        true
    }

    fn limit(&self, sender: &mut Sender, written: Written) {
        sender.limit(written);
    }

    fn uses_ecn(&self) -> bool {
        self.tcp.uses_ecn()
    }

    fn sender(&self, size: FlowSize) -> Sender {
        Sender::new(self, size)
    }

    fn receiver(&self, size: FlowSize) -> Receiver {
        Receiver::new(self, size)
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
}

impl Multipath for Mptcp {
    fn five_tuples(&self) -> FiveTuples {
        FiveTuples::Subflows(self.subflows)
    }

    fn start(&self, sender: &mut Sender, out: &mut impl Ports) {
        sender.start(self, out);
    }

    fn sender_writes(&self, sender: &mut Sender, written: Written, out: &mut impl Ports) {
        sender.limit(written);
        sender.push(self, out);
    }

    fn sender_receives(
        &self,
        sender: &mut Sender,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> SenderState {
        sender.receives(self, arrived, out)
    }

    fn sender_wakes(&self, sender: &mut Sender, out: &mut impl Ports) -> SenderState {
        sender.wakes(self, out)
    }

    fn receiver_receives(
        &self,
        receiver: &mut Receiver,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> Delivery {
        receiver.receives(self, arrived, out)
    }

    fn receiver_wakes(&self, receiver: &mut Receiver, out: &mut impl Ports) -> Delivery {
        receiver.wakes(self, out)
    }
}
