//! The parameters of Ultra Ethernet transport, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::Uec;
use crate::ParamError;
use crate::congestion::nscc::Params;
use crate::rdma::config::{positive, timer, within};
use crate::rdma::wire::Wire;

/// Whose defaults. Keys that a spec names are as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UecProfile {
    /// Those that each key names as its own.
    #[default]
    Spec,
    /// Packets as in the public simulator of the Ultra Ethernet Consortium (uet-htsim, commit
    /// 40ccb05).
    UetHtsim,
}

crate::keys::define! {
    /// Ultra Ethernet transport: selective acknowledgements, trimming and NSCC. Requirements queues
    /// that trim and mark, and a load balancer at hosts that sends each packet its own way.
    pub UecConfig, with defaults by profile {
        /// Whose defaults the other keys have: `spec` or `uet-htsim`. Source: Ultra Ethernet 1.0,
        /// by a choice.
        profile: UecProfile = UecProfile::Spec,
        /// Bytes on the wire that one acknowledgement answers, at most; what was marked, what its
        /// sender asks for and what came before is answered at once. Source: Ultra Ethernet 1.0
        /// §3.5, `ACK_Gen_Trigger`, 16KiB; uet-htsim has the same.
        ack_bytes: Bytes = Bytes::new(16_384),
        /// The round trip of the idle fabric that windows are reckoned by. Default: the longest
        /// that there is. Source: Ultra Ethernet 1.0 §3.6.13, `config_base_rtt`; uet-htsim works
        /// out the same.
        base_rtt: Option<Span> = None,
        /// The delay beyond the base round trip up to which windows grow. Default: three quarters
        /// of the base round trip where queues of switches trim, else all of it. Source: Ultra
        /// Ethernet 1.0 §3.6.13.3; uet-htsim.
        target_delay: Option<Span> = None,
        /// Proportional increase, in full payloads. Source: Ultra Ethernet 1.0 §3.6.13.3, alpha;
        /// uet-htsim.
        proportional: f64 = 4.0,
        /// Fair increase, in full payloads. Source: Ultra Ethernet 1.0.3 Table 3-82, fi; uet-htsim.
        fair: f64 = 5.0,
        /// Window increase each base round trip in any case, in full payloads. Source: Ultra
        /// Ethernet 1.0.3 Table 3-82, eta; uet-htsim.
        eta: f64 = 0.15,
        /// Fast increase, as a share of what is acknowledged. Source: Ultra Ethernet 1.0.3 Table
        /// 3-82, `fi_scale`; uet-htsim.
        fast: f64 = 0.25,
        /// The delay below which nothing is taken to wait. Source: uet-htsim; Ultra Ethernet 1.0
        /// gives no number.
        fast_below: Span = Span::from_us(1),
        /// How strongly a window shrinks with a delay above the target; never by more than half.
        /// Source: Ultra Ethernet 1.0.3 Table 3-82, gamma and `max_md_jump`; uet-htsim.
        gamma: f64 = 0.8,
        /// Gain of the mean delay that decreases go by. Source: uet-htsim, 0.0125; Ultra Ethernet
        /// 1.0 has the mean of the last base round trip, and leaves open how that is taken.
        delay_gain: f64 = 0.0125,
        /// Quick adapt needs less than 2^-n of the largest window to have got through in its
        /// period. Source: Ultra Ethernet 1.0.3 Table 3-82, `qa_gate`; uet-htsim.
        quick_adapt_gate: u32 = 3,
        /// The largest window, in bandwidth-delay products. Source: Ultra Ethernet 1.0.3 Table
        /// 3-82, `MaxWnd`; uet-htsim.
        max_window: f64 = 1.5,
        /// The first window, in bandwidth-delay products of the base round trip. Default: the
        /// largest window. Source: uet-htsim.
        initial_window: Option<f64> = None,
        /// A packet that is not answered for so long is taken for lost. Default: 15us and six base
        /// round trips. Source: uet-htsim, 15us and the time that six full queues of one
        /// bandwidth-delay product take.
        rto: Option<Span> = None,
    } {
        /// Payload bytes of a full packet. Source: a choice among those of Ultra Ethernet 1.0,
        /// which are 1024B, 2048B, 4096B and 8192B; uet-htsim has 4086B.
        mtu: Bytes = Bytes::new(4_096),
        /// Header bytes of a data packet: Ethernet with FCS 18, IPv4 20, UDP 8, PDS request 12, SES
        /// standard header 44. A CRC of 4 behind the payload is not in it. Source: Ultra Ethernet
        /// 1.0 §3.4 and §3.5; uet-htsim has 64B.
        header: Bytes = Bytes::new(102),
        /// Size of an acknowledgement: Ethernet with FCS 18, IPv4 20, UDP 8, PDS `ACK_CC` 32, SES
        /// response 12. Source: Ultra Ethernet 1.0 §3.4 and §3.5; uet-htsim has 64B.
        ack_size: Bytes = Bytes::new(90),
        /// Size of a negative acknowledgement, which is a PDS NACK of 16. Source: Ultra Ethernet
        /// 1.0 §3.5; the least of Ethernet.
        nack_size: Bytes = Bytes::new(64),
    }
}

/// The keys of packets on the wire.
struct Shared {
    mtu: Bytes,
    header: Bytes,
    ack_size: Bytes,
    nack_size: Bytes,
}

impl Shared {
    fn wire(&self) -> Result<Wire, ParamError> {
        Ok(Wire {
            mtu: within("mtu", self.mtu, 1, 32_767)?,
            header: within("header", self.header, 1, 32_767)?,
            ack: within("ack_size", self.ack_size, 1, 9_000)?,
            nack: within("nack_size", self.nack_size, 1, 9_000)?,
            cnp: 0,
        })
    }
}

impl UecConfig {
    /// The defaults of a profile.
    pub fn of(profile: UecProfile) -> Self {
        match profile {
            UecProfile::Spec => Self::default(),
            UecProfile::UetHtsim => Self {
                profile,
                mtu: Bytes::new(4_086),
                header: Bytes::new(64),
                ack_size: Bytes::new(64),
                ..Self::default()
            },
        }
    }

    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<Uec, ParamError> {
        let wire = Shared::from(self).wire()?;
        self.base_rtt.map_or(Ok(()), |span| positive("base_rtt", span))?;
        self.target_delay.map_or(Ok(()), |span| positive("target_delay", span))?;
        self.rto.map_or(Ok(()), |span| timer("rto", span))?;
        let not_negative =
            |key, value: f64| ParamError::unless(value >= 0.0 && value.is_finite(), key, value, "0 or more");
        not_negative("proportional", self.proportional)?;
        not_negative("fair", self.fair)?;
        not_negative("eta", self.eta)?;
        not_negative("fast", self.fast)?;
        let share = |key, value: f64| {
            ParamError::unless(value > 0.0 && value <= 1.0, key, value, "above 0, at most 1")
        };
        share("gamma", self.gamma)?;
        share("delay_gain", self.delay_gain)?;
        ParamError::unless(
            self.quick_adapt_gate <= 32,
            "quick_adapt_gate",
            self.quick_adapt_gate,
            "0 to 32",
        )?;
        let window = |key, value: f64| {
            ParamError::unless(value > 0.0 && value <= 1_000.0, key, value, "above 0, at most 1000")
        };
        window("max_window", self.max_window)?;
        self.initial_window.map_or(Ok(()), |value| window("initial_window", value))?;
        Ok(Uec::new(
            wire,
            self.ack_bytes.as_u64().min(u64::from(u32::MAX)) as u32,
            Params {
                base_rtt: self.base_rtt,
                target_delay: self.target_delay,
                proportional: self.proportional,
                fair: self.fair,
                eta: self.eta,
                fast: self.fast,
                fast_below: self.fast_below,
                gamma: self.gamma,
                gain: self.delay_gain,
                gate: self.quick_adapt_gate,
                max_window: self.max_window,
                initial_window: self.initial_window,
                rto: self.rto,
            },
        ))
    }
}
