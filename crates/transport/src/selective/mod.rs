//! Selective repeat, apart from congestion control: what a sender has yet to send or to send again,
//! and what a receiver has.
//!
//! A receiver keeps what comes behind a hole, and tells of each such packet in a negative
//! acknowledgement: the next packet in order, and the one that just came (IRN §3.1). A sender
//! remembers which packets have come, and sends a packet again that is missing while a later one
//! has come.

pub(crate) mod intake;
pub(crate) mod outgoing;

pub(crate) use intake::Intake;
pub(crate) use outgoing::Outgo;
pub use outgoing::Resends;
