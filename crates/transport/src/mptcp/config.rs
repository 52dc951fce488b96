//! The parameters of MPTCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Mptcp;
use crate::ParamError;
use crate::tcp::Ecn;

/// Which subflow is served first if several have room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The first one.
    #[default]
    ByNumber,
    /// The one with the shortest smoothed round-trip time.
    LowestRtt,
}

/// Use of ECN by the subflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MptcpEcn {
    /// Segments are not ECN-capable.
    #[default]
    Off,
    /// RFC 3168.
    Classic,
    /// Each subflow is a DCTCP sender (RFC 8257), whose increase is coupled.
    Dctcp,
}

impl MptcpEcn {
    pub(super) const fn ecn(self) -> Ecn {
        match self {
            Self::Off => Ecn::Off,
            Self::Classic => Ecn::Classic,
            Self::Dctcp => Ecn::Dctcp,
        }
    }
}

pub use crate::congestion::Coupling;
pub use crate::tcp::MptcpConfig;

/// The most subflows of a flow.
pub(crate) const MOST_SUBFLOWS: u8 = 64;

impl MptcpConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<Mptcp, ParamError> {
        let subflows = self.subflows;
        ParamError::unless((1..=MOST_SUBFLOWS).contains(&subflows), "subflows", subflows, "1 to 64")?;
        let option = self.dss_option;
        ParamError::unless(
            option < self.mss,
            "dss_option",
            option,
            format!("less than the mss, {}", self.mss),
        )?;
        let tcp = self.subflow(self.ecn.ecn())?;
        let per_segment = (self.mss.as_u64() - option.as_u64()).max(1);
        let join_after = self.join_after.as_u64().div_ceil(per_segment).max(1);
        let join_after = u32::try_from(join_after).unwrap_or(u32::MAX);
        Ok(Mptcp { tcp, subflows, join_after, coupling: self.coupling, scheduler: self.scheduler })
    }
}
