//! What RDMA transports have in common: packets on the wire, how receivers tell of marks, and the
//! keys of RoCE and IRN.

pub(crate) mod config;
pub(crate) mod notifier;
pub(crate) mod wire;

pub use config::{CnpBy, DcqcnReaction, IrnConfig, RdmaProfile, RoceConfig};
