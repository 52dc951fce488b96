//! Whose defaults the keys of TCP and DCTCP have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::config::{Congestion, DctcpConfig, TcpConfig};

/// Whose defaults. Keys that a spec names are as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Those that each key names as its own.
    #[default]
    Rfc,
    /// Defaults of Linux 6.1 on Ethernet.
    Linux,
    /// Defaults of the ns-3 load-balancing simulator that the authors of Hermes published, as its
    /// runs have them.
    HermesNs3,
}

impl Profile {
    /// Bytes of the time stamps in each segment (RFC 7323) that its hosts send, for which the
    /// payload makes room.
    pub const fn timestamps(self) -> Bytes {
        match self {
            Self::Rfc => Bytes::new(0),
            Self::Linux | Self::HermesNs3 => Bytes::new(12),
        }
    }
}

/// Defaults of Linux that both transports share.
macro_rules! linux {
    ($config:ident { $($own:ident: $value:expr),* }) => {
        $config {
            profile: Profile::Linux,
            $($own: $value,)*
            // IPv4 and TCP with time stamps in a frame of 1,500 bytes; a SYN has 20 bytes of
            // options.
            mss: Bytes::new(1_448),
            header: Bytes::new(52),
            ack_size: Some(Bytes::new(52)),
            syn_size: Some(Bytes::new(60)),
            initial_window: 10,
            // tcp_slow_start() adds what was acknowledged.
            abc_limit: u32::MAX,
            sack: true,
            rack: true,
            // TCP_TIMEOUT_MIN, two ticks of 1 ms.
            rack_wait: Span::from_ms(2),
            // tcp_rack_advance(), as tcp_sacktag_one() calls it.
            rack_echo_of_sacked: false,
            tail_loss_probe: true,
            probe_wait: Span::from_ms(2),
            probe_wait_for_one: Span::from_ms(200),
            prr: true,
            // tcp_enter_loss().
            timeout_keeps_network: true,
            // tcp_may_raise_cwnd().
            grow_beyond_holes: true,
            // tcp_send_fin().
            fin: true,
            sender_acks: true,
            undo: true,
            eifel: true,
            // TCP_TS_HZ.
            timestamp_tick: Span::from_ms(1),
            frto: true,
            // GSO_LEGACY_MAX_SIZE less the room for headers: 45 segments.
            segmentation_offload: Bytes::new(65_215),
            write_ahead: true,
            // sk_pacing_shift, 2^-10 s; sk_buff, skb_shared_info and headers of a packet that is to
            // be cut.
            small_queue: Span::from_ns(976_562),
            small_queue_overhead: Bytes::new(768),
            // Half of the 128KB of tcp_rmem, as far as 16 bits say it.
            receive_window: Bytes::new(65_535),
            // tcp_comp_sack_nr.
            compressed_acks: 44,
            // TCP_RTO_MIN, TCP_RTO_MAX, TCP_TIMEOUT_INIT.
            min_rto: Span::from_ms(200),
            min_rto_beyond_rtt: true,
            max_rto: Span::from_s(120),
            initial_rto: Span::from_s(1),
            syn_timeout: Span::from_s(1),
            // TCP_MAX_QUICKACKS, TCP_DELACK_MIN.
            ack_every: 2,
            quick_acks: 16,
            ack_timeout: Span::from_ms(40),
            // CONFIG_HZ=1000.
            timer_tick: Span::from_ms(1),
            handshake: true,
            ..$config::default()
        }
    };
}

/// Defaults of the simulator of Hermes' authors that both transports share.
macro_rules! hermes_ns3 {
    ($config:ident) => {
        $config {
            profile: Profile::HermesNs3,
            // IPv4 and TCP with time stamps, and 2 bytes of a point-to-point link.
            mss: Bytes::new(1_400),
            header: Bytes::new(54),
            ack_size: Some(Bytes::new(54)),
            syn_size: Some(Bytes::new(54)),
            // Its configuration says 10; its flows begin with two segments.
            initial_window: 2,
            handshake: true,
            min_rto: Span::from_ms(5),
            initial_rto: Span::from_ms(5),
            syn_timeout: Span::from_ms(5),
            ..$config::default()
        }
    };
}

impl TcpConfig {
    /// The defaults of a profile.
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Rfc => Self::default(),
            Profile::HermesNs3 => hermes_ns3!(TcpConfig),
            Profile::Linux => linux!(TcpConfig {
                congestion: Congestion::Cubic,
                cubic_first_growth: 0.05,
                cubic_whole_numbers: true
            }),
        }
    }
}

impl DctcpConfig {
    /// The defaults of a profile.
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Rfc => Self::default(),
            Profile::HermesNs3 => hermes_ns3!(DctcpConfig),
            Profile::Linux => linux!(DctcpConfig { whole_numbers: true }),
        }
    }
}
