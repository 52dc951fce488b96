//! The parameters of Swift, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::SwiftTransport;
use crate::ParamError;
use crate::congestion::swift::{Rules, Scaling};
use crate::rdma::config::{positive, timer, wire_of_one_answer};
use crate::rdma::wire::Wire;

crate::keys::define! {
    /// Swift: a window that keeps the delay at its target, over selective repeat.
    pub SwiftConfig {
        /// The target of the fabric's delay, without what hops and flows add. Source: htsim, which
        /// says that the paper leaves it to be measured; Swift §3.5.
        base_target: Span = Span::from_us(20),
        /// Target delay of each hop. Source: htsim, `base_target` / 6.55; Swift §3.5.
        hop_scaling: Span = Span::from_ns(3_053),
        /// Hops of a path, of which a host would read the number off the TTL: the same for all
        /// flows. Source: Swift §3.5; the links of the longest path of a leaf-spine fabric.
        hops: u32 = 4,
        /// The most that flow-based scaling adds to the target; 0s: nothing. Source: htsim, five
        /// times its base target; Swift §3.5.
        scaling_range: Span = Span::from_us(100),
        /// Windows up to this one, in packets, have all of it. Source: htsim, `fs_min_cwnd`; Swift
        /// §3.5.
        scaling_least: f64 = 0.1,
        /// Windows from this one on have nothing of it. Source: htsim, `fs_max_cwnd`; Swift §3.5.
        scaling_most: f64 = 100.0,
        /// The target of the delay at the far end: how long an answer waits at its own host.
        /// Source: Swift §3.3, by a choice: 100us.
        endpoint_target: Span = Span::from_us(100),
        /// Additive increase, in packets a round trip. Source: htsim; Swift Alg. 1.
        ai: f64 = 1.0,
        /// How strongly a delay above the target counts. Source: htsim; Swift Alg. 1.
        beta: f64 = 0.8,
        /// The largest share of a window that is cut at once. Source: htsim; Swift Alg. 1.
        max_mdf: f64 = 0.5,
        /// The first window, in packets. Source: a choice, as TCP's (RFC 6928).
        initial_window: f64 = 10.0,
        /// The least window, in packets: below one, packets are paced. Source: Swift §3.4 has
        /// windows of 0.001.
        min_window: f64 = 0.001,
        /// The largest window, in packets. Source: htsim.
        max_window: f64 = 1_000.0,
        /// A packet is sent again if no answer comes for so long. Source: a choice, as `RTO_high`
        /// of IRN.
        rto: Span = Span::from_us(320),
        /// Timeouts in a row after which the window is the least. Source: htsim;
        /// `RETX_RESET_THRESHOLD` of Swift Alg. 1.
        resets_after: u32 = 5,
    } {
        /// Payload bytes of a full packet. Source: a choice, as that of the other RDMA transports.
        mtu: Bytes = Bytes::new(1_024),
        /// Header bytes of a data packet. Source: a choice, as RoCEv2's (IBTA Annex A17).
        header: Bytes = Bytes::new(62),
        /// Size of an acknowledgement: as RoCEv2's, with 8 for time stamps. Source: Swift §3.2, by
        /// a choice.
        ack_size: Bytes = Bytes::new(74),
    }
}

/// The keys of packets on the wire.
struct Shared {
    mtu: Bytes,
    header: Bytes,
    ack_size: Bytes,
}

impl Shared {
    fn wire(&self) -> Result<Wire, ParamError> {
        wire_of_one_answer(self.mtu, self.header, self.ack_size)
    }
}

impl SwiftConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<SwiftTransport, ParamError> {
        let above_zero =
            |key, value: f64| ParamError::unless(value > 0.0 && value.is_finite(), key, value, "more than 0");
        positive("base_target", self.base_target)?;
        positive("endpoint_target", self.endpoint_target)?;
        timer("rto", self.rto)?;
        above_zero("scaling_least", self.scaling_least)?;
        let allowed = format!("more than scaling_least, {}", self.scaling_least);
        let is_above = self.scaling_most > self.scaling_least && self.scaling_most.is_finite();
        ParamError::unless(is_above, "scaling_most", self.scaling_most, allowed)?;
        above_zero("ai", self.ai)?;
        above_zero("beta", self.beta)?;
        let is_share = self.max_mdf > 0.0 && self.max_mdf < 1.0;
        ParamError::unless(is_share, "max_mdf", self.max_mdf, "above 0, below 1")?;
        ParamError::unless(self.min_window >= 1e-6, "min_window", self.min_window, "0.000001 or more")?;
        let allowed = format!("min_window, {}, or more, and at least 1", self.min_window);
        let is_above = self.max_window >= self.min_window.max(1.0) && self.max_window.is_finite();
        ParamError::unless(is_above, "max_window", self.max_window, allowed).map_err(|error| {
            if self.max_window.is_finite() {
                error.or("min_window", self.min_window, format!("at most max_window, {}", self.max_window))
            } else {
                error
            }
        })?;
        let allowed = format!("min_window to max_window, {} to {}", self.min_window, self.max_window);
        let is_within = (self.min_window..=self.max_window).contains(&self.initial_window);
        ParamError::unless(is_within, "initial_window", self.initial_window, allowed).map_err(|error| {
            let initial = self.initial_window;
            if initial < self.min_window {
                error.or("min_window", self.min_window, format!("at most initial_window, {initial}"))
            } else {
                error.or("max_window", self.max_window, format!("initial_window, {initial}, or more"))
            }
        })?;
        ParamError::unless(self.resets_after >= 1, "resets_after", self.resets_after, "1 timeout or more")?;
        let rules = Rules {
            fabric_target: (self.base_target + self.hop_scaling.saturating_mul(self.hops.into())).as_ps()
                as f64,
            endpoint_target: self.endpoint_target.as_ps() as f64,
            ai: self.ai,
            beta: self.beta,
            max_mdf: self.max_mdf,
            initial: self.initial_window,
            least: self.min_window,
            most: self.max_window,
            resets_after: self.resets_after,
            ..Rules::unscaled()
        };
        let (range, least, most) = (self.scaling_range, self.scaling_least, self.scaling_most);
        Ok(SwiftTransport {
            wire: Shared::from(self).wire()?,
            rules: rules.scaled(Scaling { range, least, most }),
            rto: self.rto,
        })
    }
}
