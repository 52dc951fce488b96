//! The parameters of RoCE and IRN, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Rate, Span};

use super::notifier::Notify;
use super::wire::Wire;
use crate::ParamError;
use crate::congestion::dcqcn::{Reaction, Rules};
use crate::irn::Irn;
use crate::roce::Roce;
use crate::selective::Resends;

/// Whose defaults. Keys that a spec names are as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RdmaProfile {
    /// Those that each key names as its own: of the papers.
    #[default]
    Paper,
    /// Defaults of ConnectX cards, as NVIDIA's documentation has them (DOCA 3.4, DCQCN CC
    /// Parameters) and `mlxconfig` lists them.
    Nvidia,
    /// Defaults of the public simulator of ConWeave (conweave-ns3, commit 236a801), at 100 Gbit/s.
    ConweaveNs3,
}

/// How a receiver tells of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CnpBy {
    /// By a packet of its own, at most one in `cnp_interval`.
    #[default]
    Packet,
    /// By a bit of each acknowledgement of marked data.
    Ack,
}

/// When a sender acts upon notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnReaction {
    /// At once, each time.
    #[default]
    AtOnce,
    /// At the end of periods: `alpha` each `alpha_timer`, the rate each `decrease_interval`.
    Periodic,
}

/// Adds the keys that RoCE and IRN share.
macro_rules! with_shared_keys {
    ($(#[$attr:meta])* $vis:vis struct $name:ident $(, with defaults by $profile:ident)? { $($own:tt)* }) => {
        $crate::keys::define! { $(#[$attr])* $vis $name $(, with defaults by $profile)? { $($own)* } {
            /// Payload bytes of a full packet. Source: path MTUs of InfiniBand are 256B to 4096B
            /// (IBTA vol. 1 §7.7.8); DCQCN and IRN simulate packets of 1KB.
            mtu: Bytes = Bytes::new(1_024),
            /// Header bytes of a data packet: Ethernet with FCS 18, IPv4 20, UDP 8, BTH 12, ICRC 4.
            /// The 16 of RETH in the first packet of a WRITE are not in it: flows are SENDs.
            /// Source: IBTA Annex A17 (RoCEv2).
            header: Bytes = Bytes::new(62),
            /// Size of an acknowledgement, positive or negative: that header and AETH 4. Source:
            /// IBTA vol. 1 §9.2.
            ack_size: Bytes = Bytes::new(66),
            /// Size of a congestion notification: that header and 16 reserved. Source: IBTA Annex
            /// A17 §17.9.3.
            cnp_size: Bytes = Bytes::new(78),
            /// In-order packets that one acknowledgement answers, at most; what its sender asks
            /// for, and what ends the flow, is answered at once. Source: one per packet in IRN §3
            /// and in the simulators of HPCC and ConWeave; cards coalesce, their vendors do not say
            /// how.
            ack_every: u16 = 1,
            /// How a receiver tells of marks: `packet` or `ack`. Source: DCQCN §3.1 sends CNPs; the
            /// simulator of ConWeave has a bit in acknowledgements.
            cnp_by: CnpBy = CnpBy::Packet,
            /// The least time between two CNPs of a flow (N). Source: DCQCN §3.1 and §5;
            /// `min_time_between_cnps` of ConnectX is 4us, of some firmware 0 or 2us.
            cnp_interval: Span = Span::from_us(50),
            /// Whether the sender acts upon notifications at once (`at-once`) or by periods
            /// (`periodic`). Source: DCQCN Fig. 7; cards of NVIDIA and the simulators of HPCC and
            /// ConWeave have periods.
            reaction: DcqcnReaction = DcqcnReaction::AtOnce,
            /// With periods, the least time between two cuts of the rate. Source:
            /// `rate_reduce_monitor_period` of ConnectX.
            decrease_interval: Span = Span::from_us(4),
            /// How much one notification counts in alpha (g). Source: DCQCN §5, 1/256; ConnectX has
            /// 5/1024 (`dce_tcp_g` 1019).
            g: f64 = 1.0 / 256.0,
            /// Alpha falls if no notification came for so long (K); with periods, it is updated
            /// each. Source: DCQCN §5, 55us; `dce_tcp_rtt` of ConnectX is 1us.
            alpha_timer: Span = Span::from_us(55),
            /// The rate is raised each time (T). Source: DCQCN §5, 55us; `rpg_time_reset` of
            /// ConnectX is 300us.
            rate_timer: Span = Span::from_us(55),
            /// And each time that so many bytes were sent (B); 0B: bytes are not counted. Source:
            /// DCQCN §5, 10MB; `rpg_byte_reset` of ConnectX is 32767B.
            byte_counter: Bytes = Bytes::new(10_000_000),
            /// Increases after a cut that go halfway back to where the rate was (F). Source: DCQCN
            /// §3.2, 5; `rpg_threshold` of ConnectX is 1.
            fast_recovery: u32 = 5,
            /// Additive increase of the target rate. Source: DCQCN §5, 40Mbps; `rpg_ai_rate` of
            /// ConnectX is 5Mbps.
            ai_rate: Rate = Rate::from_bps(40_000_000),
            /// Hyper increase of the target rate. Source: the simulator of ConWeave at 100 Gbit/s;
            /// DCQCN gives none, `rpg_hai_rate` of ConnectX is 50Mbps.
            hai_rate: Rate = Rate::from_bps(100_000_000),
            /// The rate is cut no further. Source: the simulators of HPCC and ConWeave; DCQCN gives
            /// none, `rpg_min_rate` of ConnectX is 1Mbps.
            min_rate: Rate = Rate::from_bps(100_000_000),
        } }
    };
}

with_shared_keys! {
    /// RoCEv2: go-back-N and DCQCN. Requirements a fabric that loses nothing (PFC), and queues that
    /// mark (`red`).
    pub struct RoceConfig, with defaults by profile {
        /// Whose defaults the other keys have: `paper`, `nvidia` or `conweave-ns3`. Source: DCQCN
        /// (Zhu et al., SIGCOMM 2015), by a choice.
        profile: RdmaProfile = RdmaProfile::Paper,
        /// Whether rates follow DCQCN; without it a flow sends at the rate of its cable. Source:
        /// DCQCN §3.
        dcqcn: bool = true,
        /// Bytes of payload that may be unacknowledged, rounded down to whole packets, at least
        /// one. Default: no limit. Source: RoCE has no window; the simulator of HPCC can give it
        /// one.
        window: Option<Bytes> = None,
        /// A receiver that waits for a packet complains of later ones once (0s), or again after
        /// this time. Source: once, IBTA vol. 1 §9.7.5.2.8; the simulator of ConWeave complains
        /// again after 4us.
        nack_interval: Span = Span::ZERO,
        /// Whether complaints count as notifications of congestion, where those are bits of
        /// answers. Source: the simulator of ConWeave; DCQCN tells of marks alone.
        nack_notifies: bool = false,
        /// Everything that is not acknowledged is sent again if no answer comes for so long.
        /// Source: 4.096us x 2^14, the usual local ACK timeout of RDMA applications (IBTA vol. 1
        /// §9.7.6.1.3); the simulator of ConWeave has 4ms.
        timeout: Span = Span::from_ns(67_108_864),
    }
}

with_shared_keys! {
    /// IRN: selective repeat with as much in flight as the path holds, with or without DCQCN. Needs
    /// no PFC.
    pub struct IrnConfig, with defaults by profile {
        /// Whose defaults the other keys have: `paper`, `nvidia` or `conweave-ns3`. Source: IRN
        /// (Mittal et al., SIGCOMM 2018), by a choice.
        profile: RdmaProfile = RdmaProfile::Paper,
        /// Whether rates follow DCQCN, too. Source: IRN §4.2.3 has both; without it by default.
        dcqcn: bool = false,
        /// Bytes on the wire that may be in flight (BDP-FC), rounded down to whole packets, at
        /// least one. Default: the packets that fill the longest round trip of the idle fabric at
        /// the rate of a host's cable. Source: IRN §3.2.
        bdp_cap: Option<Bytes> = None,
        /// The timeout of a sender with few packets in flight (`RTO_low`). Source: IRN §4.1.
        rto_low: Span = Span::from_us(100),
        /// Retransmission timeout of the other packets (`RTO_high`). Source: IRN §4.1.
        rto_high: Span = Span::from_us(320),
        /// Up to how many packets in flight are few (N). Source: IRN §4.1; it uses `RTO_low` if
        /// fewer than N = 3 are.
        few_packets: u32 = 2,
        /// Whether complaints count as notifications of congestion, where those are bits of
        /// answers. Source: the simulator of ConWeave; DCQCN tells of marks alone.
        nack_notifies: bool = false,
        /// Packets that a recovery sends again: `missing`, each packet that is missing while a
        /// later one has come; or `onwards`, all from the first one that is missing on but what is
        /// known to have come, also what may yet be under way. Source: missing, IRN §3.1; the
        /// simulator of ConWeave has onwards.
        resends: Resends = Resends::Missing,
        /// A packet that came early and comes once more is acknowledged (0s), or complained of
        /// again if the last such complaint was so long ago, and not answered otherwise. Source:
        /// the simulator of ConWeave, 4us; IRN does not say.
        nack_interval: Span = Span::ZERO,
    }
}

with_shared_keys! {
    struct Shared {}
}

/// Shared keys with the defaults of NVIDIA's cards and of the simulator of ConWeave.
macro_rules! of_profile {
    ($config:ident, $profile:expr, conweave { $($own:ident: $value:expr),* }) => {
        match $profile {
            RdmaProfile::Paper => $config::default(),
            RdmaProfile::Nvidia => $config {
                profile: RdmaProfile::Nvidia,
                cnp_interval: Span::from_us(4),
                reaction: DcqcnReaction::Periodic,
                g: 5.0 / 1_024.0,
                alpha_timer: Span::from_us(1),
                rate_timer: Span::from_us(300),
                byte_counter: Bytes::new(32_767),
                fast_recovery: 1,
                ai_rate: Rate::from_bps(5_000_000),
                hai_rate: Rate::from_bps(50_000_000),
                min_rate: Rate::from_bps(1_000_000),
                ..$config::default()
            },
            RdmaProfile::ConweaveNs3 => $config {
                profile: RdmaProfile::ConweaveNs3,
                $($own: $value,)*
                mtu: Bytes::new(1_000),
                header: Bytes::new(48),
                ack_size: Bytes::new(60),
                cnp_by: CnpBy::Ack,
                reaction: DcqcnReaction::Periodic,
                alpha_timer: Span::from_us(1),
                rate_timer: Span::from_us(300),
                byte_counter: Bytes::new(0),
                fast_recovery: 1,
                ..$config::default()
            },
        }
    };
}

impl RoceConfig {
    /// The defaults of a profile.
    pub fn of(profile: RdmaProfile) -> Self {
        of_profile!(
            Self,
            profile,
            conweave { nack_interval: Span::from_us(4), nack_notifies: true, timeout: Span::from_ms(4) }
        )
    }

    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<Roce, ParamError> {
        let shared = Shared::from(self);
        let wire = shared.wire()?;
        timer("timeout", self.timeout)?;
        let window = match self.window {
            None => u32::MAX,
            Some(bytes) => {
                ParamError::unless(bytes.as_u64() > 0, "window", bytes, "more than 0B")?;
                packets(bytes, wire.mtu)
            }
        };
        Ok(Roce {
            wire,
            ack_every: shared.ack_every()?,
            notify: shared.notify(self.dcqcn),
            dcqcn: shared.rules(self.dcqcn)?,
            window,
            nack_interval: self.nack_interval,
            nack_notifies: self.nack_notifies,
            timeout: self.timeout,
        })
    }
}

impl IrnConfig {
    /// The defaults of a profile.
    pub fn of(profile: RdmaProfile) -> Self {
        of_profile!(
            Self,
            profile,
            conweave {
                dcqcn: true,
                bdp_cap: Some(Bytes::new(104_000)),
                few_packets: 3,
                nack_notifies: true,
                resends: Resends::Onwards,
                nack_interval: Span::from_us(4)
            }
        )
    }

    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<Irn, ParamError> {
        let shared = Shared::from(self);
        let wire = shared.wire()?;
        timer("rto_low", self.rto_low)?;
        let allowed = format!("rto_low, {}, or more", self.rto_low);
        ParamError::unless(self.rto_high >= self.rto_low, "rto_high", self.rto_high, allowed).map_err(
            |error| error.or("rto_low", self.rto_low, format!("at most rto_high, {}", self.rto_high)),
        )?;
        if let Some(bytes) = self.bdp_cap {
            ParamError::unless(bytes.as_u64() > 0, "bdp_cap", bytes, "more than 0B")?;
        }
        Ok(Irn {
            wire,
            ack_every: shared.ack_every()?,
            notify: shared.notify(self.dcqcn),
            dcqcn: shared.rules(self.dcqcn)?,
            cap: self.bdp_cap.map_or(u32::MAX, |bytes| packets(bytes, wire.mtu + wire.header)),
            has_own_cap: self.bdp_cap.is_some(),
            rto_low: self.rto_low,
            rto_high: self.rto_high,
            few_packets: self.few_packets,
            nack_notifies: self.nack_notifies,
            resends: self.resends,
            nack_interval: self.nack_interval,
        })
    }
}

/// Whole packets of this size, at least one.
pub(crate) fn packets(bytes: Bytes, size: u16) -> u32 {
    (bytes.as_u64() / u64::from(size)).clamp(1, u64::from(u32::MAX)) as u32
}

/// A time that is not zero.
pub(crate) fn positive(key: &'static str, span: Span) -> Result<(), ParamError> {
    ParamError::unless(!span.is_zero(), key, span, "more than 0s")
}

/// A timer that runs again and again: of less than a microsecond, a run would do little else.
pub(crate) fn timer(key: &'static str, span: Span) -> Result<(), ParamError> {
    ParamError::unless(span >= Span::from_us(1), key, span, "1us or more")
}

/// A size in bytes between two bounds.
pub(crate) fn within(key: &'static str, bytes: Bytes, least: u16, most: u16) -> Result<u16, ParamError> {
    let fitting = u16::try_from(bytes.as_u64()).ok().filter(|bytes| (least..=most).contains(bytes));
    fitting.ok_or_else(|| ParamError::new(key, bytes, format!("{least}B to {most}B")))
}

/// The packets of a transport whose complaints are as large as its acknowledgements, and which has
/// no notifications.
pub(crate) fn wire_of_one_answer(mtu: Bytes, header: Bytes, ack_size: Bytes) -> Result<Wire, ParamError> {
    let ack = within("ack_size", ack_size, 1, 9_000)?;
    Ok(Wire {
        mtu: within("mtu", mtu, 1, 32_767)?,
        header: within("header", header, 1, 32_767)?,
        ack,
        nack: ack,
        cnp: 0,
    })
}

impl Shared {
    fn wire(&self) -> Result<Wire, ParamError> {
        Ok(Wire {
            mtu: within("mtu", self.mtu, 1, 32_767)?,
            header: within("header", self.header, 1, 32_767)?,
            ack: within("ack_size", self.ack_size, 1, 9_000)?,
            nack: within("ack_size", self.ack_size, 1, 9_000)?,
            cnp: within("cnp_size", self.cnp_size, 1, 9_000)?,
        })
    }

    fn ack_every(&self) -> Result<u16, ParamError> {
        let every = self.ack_every;
        ParamError::unless(every >= 1, "ack_every", every, "1 packet or more")?;
        Ok(every)
    }

    const fn notify(&self, dcqcn: bool) -> Notify {
        match self.cnp_by {
            _ if !dcqcn => Notify::Never,
            CnpBy::Packet => Notify::Apart(self.cnp_interval),
            CnpBy::Ack => Notify::InAcks,
        }
    }

    fn rules(&self, dcqcn: bool) -> Result<Option<Rules>, ParamError> {
        ParamError::unless(self.g > 0.0 && self.g <= 1.0, "g", self.g, "above 0, at most 1")?;
        positive("alpha_timer", self.alpha_timer)?;
        timer("rate_timer", self.rate_timer)?;
        let counter = self.byte_counter.as_u64();
        let allowed = "0B, or 1KB or more";
        ParamError::unless(counter == 0 || counter >= 1_000, "byte_counter", self.byte_counter, allowed)?;
        positive("decrease_interval", self.decrease_interval)?;
        ParamError::unless(!self.min_rate.is_zero(), "min_rate", self.min_rate, "more than 0bps")?;
        let reaction = match self.reaction {
            DcqcnReaction::AtOnce => Reaction::AtOnce,
            DcqcnReaction::Periodic => Reaction::Periodic { decrease_interval: self.decrease_interval },
        };
        Ok(dcqcn.then(|| Rules {
            reaction,
            g: self.g,
            alpha_timer: self.alpha_timer,
            rate_timer: self.rate_timer,
            byte_counter: self.byte_counter.as_u64(),
            fast_recovery: self.fast_recovery,
            ai: self.ai_rate.as_bps() as f64,
            hai: self.hai_rate.as_bps() as f64,
            min_rate: self.min_rate.as_bps() as f64,
        }))
    }
}
