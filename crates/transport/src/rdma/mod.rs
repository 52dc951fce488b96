//! Common parts of RDMA transports: packets on the wire, how receivers report marks, and the keys
//! of RoCE and IRN.

pub(crate) mod config;
pub(crate) mod notifier;
pub(crate) mod wire;

pub use config::{CnpBy, DcqcnReaction, IrnConfig, RdmaProfile, RoceConfig};
