//! Transports as state machines without I/O, one file or folder a transport.
//!
//! A transport is a [`Protocol`]: a sender and a receiver that are fed packets and timers, and that
//! answer through an [`Outbox`]. It never sees a link or a clock of its own. Segments are counted,
//! not bytes: a flow is cut into segments of one MSS, the last one shorter.
//!
//! How its ends behave is written as [`SinglePath`] if its flows have one five-tuple, and as
//! [`Multipath`] if they have several: then its way out has [`Ports`], and it is told by which of
//! them a packet [arrived](`ArrivedPacket`).
//!
//! [`TransportSpec`] is the registry: what a spec may name, with parameters, defaults and sources.
//! A run has one transport, or several side by side: [`TransportsSpec`], [`Transports`].
//!
//! Invariant: an end reads its own state and the packets that reach it, and acts through its
//! outbox.

mod any;
mod congestion;
mod credits;
pub mod expresspass;
pub mod irn;
mod keys;
mod labelled;
pub mod maxpass;
pub mod mprdma;
pub mod mptcp;
mod outbox;
mod params;
mod protocol;
mod rdma;
mod registry;
pub mod roce;
mod selective;
mod several;
pub mod swift;
pub mod tcp;
pub mod uec;

pub use expresspass::ExpressPass;
pub use irn::Irn;
pub use labelled::{LabelledTransport, TransportsError, TransportsSpec};
pub use maxpass::MaxPass;
pub use mprdma::MpRdma;
pub use mptcp::Mptcp;
pub use outbox::{ArrivedPacket, Outbox, Outgoing, Ports, Resend};
pub use params::ParamError;
pub use protocol::{
    Counted, CreditPorts, Delivery, FiveTuples, FlowSize, KnownFabric, Multipath, PathRequirement, Protocol,
    Pull, ReceiverStats, Requirements, Segmentation, SenderState, SenderStats, SinglePath, Stalls,
    WindowState, Written,
};
pub use rdma::{CnpBy, DcqcnReaction, RdmaProfile};
pub use registry::{AnyProtocol, AnyReceiver, AnySender, TransportInfo, TransportSpec, Visitor};
pub use roce::Roce;
pub use selective::Resends;
pub use several::{ReceiverOf, SenderOf, Several, Transports};
pub use swift::SwiftTransport;
pub use tcp::{EcnMode, Profile, Tcp};
pub use uec::Uec;
