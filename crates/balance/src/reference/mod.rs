//! References: no schemes, but something to compare schemes with, which may be ahead of them. A
//! reference may know what no node knows; what it knows of that kind is not here: the engine looks
//! for it, and no type of this crate can be asked for it.

pub mod oracle;

use crate::SchemeSpec;
use oracle::OracleKind;

impl SchemeSpec {
    fn oracle(&self) -> Option<OracleKind> {
        match self {
            Self::Oracle(params) => Some(params.kind),
            _ => None,
        }
    }

    /// Whether paths are to be chosen by the queues of the whole fabric.
    pub fn sees_everything(&self) -> bool {
        self.oracle() == Some(OracleKind::Path)
    }

    /// Whether the fabric between racks is to be one queue.
    pub fn pools_fabric(&self) -> bool {
        self.oracle() == Some(OracleKind::Pooled)
    }
}
