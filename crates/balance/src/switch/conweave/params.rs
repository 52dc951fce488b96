//! The parameters of ConWeave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Span;

use crate::registry::{Parameters, check_table_size};
use crate::{FabricFacts, ParameterError};

/// Parameters of ConWeave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// An answer is late that takes so much longer than between idle leaves (time). Source: 4 us:
    /// `theta_reply` = 8 us where leaves are 4 us apart, there and back (Table 3, §B.1); the
    /// authors' ns-3 code adds 4 us to the base round trip.
    pub reply_extra: Span,
    /// How long a path is not taken after a packet came marked by it (time). Source:
    /// `theta_path_busy` = 8 us, what 100 KB take at 100 Gbit/s, the marking threshold there (Table
    /// 3, §4.1); 16 us in the authors' ns-3 script, 32 us on their testbed at 25 Gbit/s.
    pub path_busy: Span,
    /// A pause after which a connection begins anew, without waiting for word of the last move
    /// (time). Source: `theta_inactive` = 300 us for two tiers (Table 3); 1 ms for three tiers in
    /// the authors' ns-3 script.
    pub inactive: Span,
    /// Paths that are drawn when one is looked for: 1 to 16. Source: 2 (§3.2.2).
    pub samples: u8,
    /// How long packets are held for a TAIL of whose path nothing is known (time). Source:
    /// `theta_resume_default`, 200 us for two tiers and 600 us for three with PFC (appendix A).
    pub resume_default: Span,
    /// How much longer than expected a TAIL is waited for (time). Source: `theta_resume_extra` = 16
    /// us, and 64 us where PFC makes fabrics lossless (appendix A); 16 us for all two-tier fabrics
    /// in the authors' ns-3 script.
    pub resume_extra: Span,
    /// Queues that a port to a host has for packets that are held: 1 to 1,023, each for one
    /// connection at a time. Source: 31 of 32 for 100 Gbit/s on Tofino2 (§3.4.2); the authors' ns-3
    /// code has no limit.
    pub queues: u16,
    /// Behaviour when all queues are taken: `pass`, packets go on out of order; `refuse`, also
    /// answers say so, and the source leaf does not move the connection. Source: §5: unresolved
    /// out-of-order packets; admission control is left for future work there.
    pub when_full: WhenFull,
    /// Ways above each uplink that paths tell apart: 1 to 16. 1 in fabrics of two tiers; above,
    /// switches hash then. Source: `PathID` is the uplink in two tiers; more need source routing
    /// (§3.4, footnote 5), which this is.
    pub above: u8,
    /// Connections that a leaf keeps at once, at either end: a power of two, 1 to 16,777,216;
    /// others go by ECMP. Source: §3.4.3 has ECMP for the rest and no number; 64K as in CONGA's
    /// leaf switches; the authors' ns-3 code has no limit.
    pub entries: u32,
}

/// Behaviour when no queue is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Packets go on out of order.
    #[default]
    Pass,
    /// The source leaf is told, and moves no connection that no queue is free for.
    Refuse,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            reply_extra: Span::from_us(4),
            path_busy: Span::from_us(8),
            inactive: Span::from_us(300),
            samples: 2,
            resume_default: Span::from_us(200),
            resume_extra: Span::from_us(16),
            queues: 31,
            when_full: WhenFull::Pass,
            above: 1,
            entries: 1 << 16,
        }
    }
}

/// Paths that a header tells apart.
const PATHS: u32 = 256;

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        if !(1..=16).contains(&self.samples) {
            return refuse("samples", self.samples.to_string(), "1 to 16");
        }
        if !(1..=1_023).contains(&self.queues) {
            return refuse("queues", self.queues.to_string(), "1 to 1023");
        }
        if !(1..=16).contains(&self.above) {
            return refuse("above", self.above.to_string(), "1 to 16");
        }
        for (key, time) in [("inactive", self.inactive), ("resume_default", self.resume_default)] {
            if time < Span::from_us(1) || time > Span::from_ms(32) {
                return refuse(key, time.to_string(), "1us to 32ms, as far as the header's times go");
            }
        }
        check_table_size(self.entries)
    }

    fn asks_for_base_rtts(&self) -> bool {
        true
    }

    /// Paths of one number would be taken for one.
    fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        let paths = fabric.uplinks() * u32::from(self.above);
        if paths > PATHS {
            let found = format!("{}, at leaves of up to {} uplinks", self.above, fabric.uplinks());
            let allowed = "at most 256 paths, which the header's number tells apart";
            return Err(ParameterError { key: "above", found, allowed });
        }
        Ok(())
    }
}
