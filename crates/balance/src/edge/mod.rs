//! Schemes that live at the edge: in a host's virtual switch.

pub mod drb;
pub(crate) mod echo;
pub mod presto;
