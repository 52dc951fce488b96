//! The parameters of TCP and DCTCP, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::profile::Profile;
use super::rack_tlp::ByTime;
use super::timers::Wheel;
use super::{Ecn, Tcp};
use crate::ParamError;
use crate::congestion::{Control, Cubic, Dctcp, NewReno};
use crate::mptcp::{Coupling, MptcpEcn, Scheduler};

/// Adds the keys that all TCPs share.
macro_rules! with_shared_keys {
    ($(#[$attr:meta])* $vis:vis struct $name:ident $(, with defaults by $profile:ident)? { $($own:tt)* }) => {
        $crate::keys::define! { $(#[$attr])* $vis $name $(, with defaults by $profile)? { $($own)* } {
            /// Payload bytes of a full segment. Source: an Ethernet frame of 1,500 bytes less 40 of
            /// TCP/IP headers.
            mss: Bytes = Bytes::new(1_460),
            /// Header bytes of a data segment; its size on the wire is payload + header. Source:
            /// IPv4 and TCP without options.
            header: Bytes = Bytes::new(40),
            /// Size of an acknowledgement on the wire. Default: as `header`. Source: an
            /// acknowledgement is a header without payload.
            ack_size: Option<Bytes> = None,
            /// Size of a SYN and of a SYN-ACK on the wire. Default: as `header`. Source: a SYN is a
            /// header without payload.
            syn_size: Option<Bytes> = None,
            /// Initial congestion window, in segments. Source: RFC 6928; the simulations of TR have
            /// 10, too.
            initial_window: u32 = 10,
            /// The most segments by which one acknowledgement opens the window in slow start.
            /// Source: one in RFC 5681 §3.1; L of RFC 3465, which has two; Linux has no limit.
            abc_limit: u32 = 1,
            /// Initial slow start threshold, in segments. Default: no limit. Source: RFC 5681 §3.1,
            /// arbitrarily high.
            initial_ssthresh: Option<u32> = None,
            /// Receive window: the most that may be unacknowledged, in bytes, rounded down to whole
            /// segments. Default: no limit. Source: a choice, so that the congestion window alone
            /// limits a sender.
            max_window: Option<Bytes> = None,
            /// Selective acknowledgements (RFC 2018) and the recovery that uses them (RFC 6675).
            /// Source: a choice; without them recovery is NewReno's (RFC 6582).
            sack: bool = false,
            /// Longest time for which the receiver's host holds a segment that arrived before an
            /// earlier one, so that TCP sees them in order; 0s holds nothing. Source: a choice; the
            /// reordering buffer of Presto §3.2, which is the scheme's own, holds for some 100us.
            reorder_hold: Span = Span::ZERO,
            /// Most segments of a flow that are held; one more gives up the first gap. Source: a
            /// choice, as Presto's.
            reorder_segments: u32 = 1_024,
            /// Send a new segment on each duplicate acknowledgement before the threshold. Source:
            /// RFC 3042.
            limited_transmit: bool = true,
            /// Duplicate acknowledgements that start a fast retransmit. Source: RFC 5681 §3.2.
            dup_ack_threshold: u32 = 3,
            /// Smallest retransmission timeout. Source: the ns-3 load-balancing simulator of Hermes
            /// and MQ-ECN; the DCTCP paper has 10ms, RFC 6298 has 1s.
            min_rto: Span = Span::from_ms(5),
            /// Whether that is the least beyond the smoothed round trip, and not the least in all;
            /// with `rack` the largest deviation of a round trip counts then, which falls by a
            /// quarter of what is too much each round trip. Source: RFC 6298 rule 2.4 has it in
            /// all; Linux beyond (`tcp_rtt_estimator`).
            min_rto_beyond_rtt: bool = false,
            /// Largest retransmission timeout, backoff included. Source: RFC 6298 rule 2.5.
            max_rto: Span = Span::from_s(60),
            /// Retransmission timeout before the first RTT sample. Source: csg-htsim; RFC 6298 rule
            /// 2.1 has 1s.
            initial_rto: Span = Span::from_ms(10),
            /// In-order segments per acknowledgement; 1 acknowledges each at once. Source: a
            /// choice, since an RTT sample and a mark are then of one segment; RFC 5681 §4.2 allows
            /// 2.
            ack_every: u16 = 1,
            /// Segments at the start of a flow, and from one on that came twice, that are
            /// acknowledged at once, whatever `ack_every` is. Source: RFC 5681 has none; 16 in
            /// Linux (`TCP_MAX_QUICKACKS`).
            quick_acks: u16 = 0,
            /// Longest wait of a delayed acknowledgement. Without effect if `ack_every` is 1. Keep
            /// it below `min_rto`, or it causes timeouts. Source: a choice below `min_rto`; RFC
            /// 5681 §4.2 allows up to 500ms.
            ack_timeout: Span = Span::from_ms(1),
            /// Tick of hosts' timers: one expires with the tick after its time, one that is 63
            /// ticks ahead with the next eighth tick, and so on; 0s is exact. Those of pacing and
            /// of small queues are exact. Source: a choice, the clock granularity G of RFC 6298;
            /// 1ms in Linux with `HZ=1000`, whose timing wheel is as coarse.
            timer_tick: Span = Span::ZERO,
            /// Begin each flow with SYN and SYN-ACK, a round trip before the first segment; without
            /// them the connection is open already. Source: a choice, so that completion times
            /// measure the transfer alone.
            handshake: bool = false,
            /// First timeout of a SYN, doubled at each repetition. Source: the ns-3 load-balancing
            /// simulator of Hermes.
            syn_timeout: Span = Span::from_ms(5),
        } }
    };
}

/// Adds the keys of a TCP that is no subflow: losses by time, and what is built on that.
macro_rules! with_keys_of_one_path {
    ($(#[$attr:meta])* $vis:vis struct $name:ident { $($own:tt)* }) => {
        with_shared_keys! {
            $(#[$attr])* $vis struct $name, with defaults by profile {
                $($own)*
                /// Find losses by time, not by counting duplicate acknowledgements; needs `sack`.
                /// One timer is for this, for probes and for timeouts, and round-trip times are
                /// also those of what arrives beyond a hole, as in Linux. Source: RFC 8985 (RACK),
                /// with its §8.
                rack: bool = false,
                /// How long RACK waits for a segment that was overtaken, in round-trip times (the
                /// flow's smallest); above 0, at most 100. Source: RFC 8985 §6.2 step 4.
                rack_window: f64 = 0.25,
                /// Whether that wait is nothing until reordering is seen, and grows by itself with
                /// each round in which a retransmission was in vain (D-SACK), up to the smoothed
                /// round-trip time; false has it fixed. Source: RFC 8985 §6.2 step 4.
                rack_adaptive: bool = true,
                /// How long the timer waits beyond that; what is overtaken is found by an
                /// acknowledgement before. Source: RFC 8985 has no more; 2ms in Linux.
                rack_wait: Span = Span::ZERO,
                /// Whether of a segment beyond a hole that was sent again, and is told to have
                /// arrived, the time stamp says whether it is the later copy, as of one that is
                /// acknowledged in order. What is echoed may be that of an older segment whose
                /// acknowledgement was delayed; then the arrival tells nothing of others. Source:
                /// RFC 8985 §6.2 step 2; false in Linux, where the round trip alone tells.
                rack_echo_of_sacked: bool = true,
                /// Send one segment where no acknowledgement comes for two round trips, so that the
                /// loss of the last ones is found before the retransmission timer expires; needs
                /// `rack`. Source: RFC 8985 §7; a choice to leave it out.
                tail_loss_probe: bool = false,
                /// How long that waits beyond two round trips. Source: RFC 8985 §7.2 has no more;
                /// 2ms in Linux.
                probe_wait: Span = Span::ZERO,
                /// How long a probe waits beyond two round trips while one segment is out, whose
                /// acknowledgement may be delayed. Source: `TLP.max_ack_delay` of RFC 8985 §7.2,
                /// which gives no number: as `ack_timeout`; the least timeout, 200ms, in Linux.
                probe_wait_for_one: Span = Span::from_ms(1),
                /// Whether the window shrinks over a round trip when a loss or a mark was seen, as
                /// acknowledgements come, and not at once; needs `rack`. A loss or a timeout
                /// meanwhile shrinks it no further. Source: RFC 6937 (PRR) and Linux; RFC 5681 has
                /// it at once.
                prr: bool = false,
                /// Whether after a timeout the window is one segment more than what is in the
                /// network, and not one segment; needs `rack`. Source: RFC 5681 §3.1 has one; Linux
                /// more (`tcp_enter_loss`).
                timeout_keeps_network: bool = false,
                /// Whether the window also grows by what arrives beyond a hole, once a segment was
                /// seen to be late by more than three; needs `rack`. Source: RFC 5681 §3.1 counts
                /// what is acknowledged in order; Linux more (`tcp_may_raise_cwnd`).
                grow_beyond_holes: bool = false,
                /// Whether the window is as before if it is told that all was in vain that a
                /// recovery sent again (D-SACK); needs `rack`. Source: a choice; RFC 3708 and Linux
                /// have it.
                undo: bool = false,
                /// Whether a recovery is taken back, and the window as before, if an
                /// acknowledgement of new data echoes a time stamp from before anything was sent
                /// again: then the segment was late, not lost; needs `rack`. Source: a choice; RFC
                /// 3522 (Eifel detection), without the slower start of RFC 4015, as in Linux.
                eifel: bool = false,
                /// Tick of time stamps, for `eifel` and for RACK; 0s is exact. Source: RFC 7323
                /// §5.4 has 1ms to 1s; 1ms in Linux.
                timestamp_tick: Span = Span::ZERO,
                /// Whether after a timeout two new segments are sent, if the first acknowledgement
                /// leaves the matter open, and the window is as before if a segment that was sent
                /// once is told of; needs `rack`. Source: RFC 5682 (F-RTO) §3.1; a choice to leave
                /// it out.
                frto: bool = false,
                /// Bytes of payload that are handed to the card at once, at most, and leave one
                /// after the other (segmentation offload); less than two segments is none. A sender
                /// then waits for a burst that is worth it. Source: a choice; Linux has up to 64KB.
                segmentation_offload: Bytes = Bytes::new(0),
                /// How long a flow, at its own rate, may wait in its host's own queue (TCP small
                /// queues); 0s has no limit. Its rate is its window by the smoothed round trip,
                /// twice that in slow start and 1.2 times after it. Needs `rack`. Source: a choice;
                /// some 1ms in Linux.
                small_queue: Span = Span::ZERO,
                /// Bytes that may wait there at most, whatever the rate. Source: 1MiB in Linux.
                small_queue_most: Bytes = Bytes::new(1_048_576),
                /// Overhead of each packet in small queues, beyond its payload: a burst is one
                /// until it is its turn to be sent, and then as many as it has segments, until each
                /// has left. Source: a choice; 768 bytes of Linux' memory.
                small_queue_overhead: Bytes = Bytes::new(0),
                /// Whether a burst is at most half of the largest receive window that was offered
                /// when the application wrote it, which has a buffer of 2,304 bytes for each of two
                /// windows of segments, 4 MiB at most; else all is written at once. Needs `rack`.
                /// Source: a choice; Linux (`tcp_bound_to_half_wnd`, `tcp_sndbuf_expand`).
                write_ahead: bool = false,
                /// Whether segments leave no faster than the flow's rate, which is as for
                /// `small_queue`: after each burst the sender waits as long as that takes at this
                /// rate (pacing). The first ten segments are not paced. Needs `rack`. Source: a
                /// choice; Linux with `fq`, whose `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`
                /// are those factors.
                pacing: bool = false,
                /// Receive window that grows: what is offered at first, rounded down to whole
                /// segments; 0B takes whatever comes. It grows to what arrives in a round trip as
                /// the receiver sees it, twice and more (dynamic right-sizing), and is smaller by
                /// what waits beyond a hole. Needs `rack`; an acknowledgement then has three SACK
                /// blocks at most. Source: a choice; 64KB in Linux.
                receive_window: Bytes = Bytes::new(0),
                /// How far it grows; 65,535 segments at most. Source: half of the 6MiB that Linux
                /// gives a buffer where there is memory enough.
                receive_window_most: Bytes = Bytes::new(3 * 1_048_576),
                /// How many acknowledgements a receiver leaves out at most while it tells of a hole
                /// (SACK compression); 0 leaves out none. The first three that tell of a hole are
                /// sent; so is what tells of more than two blocks, of what came twice, or of a
                /// mark. Needs `sack`. Source: RFC 5681 §4.2 wants each at once; 44 in Linux
                /// (`tcp_comp_sack_nr`).
                compressed_acks: u16 = 0,
                /// One is sent after a twentieth of the round trip, but after this at most, counted
                /// from the first that was left out. Source: `tcp_comp_sack_delay_ns` of Linux.
                compression_delay: Span = Span::from_ms(1),
                /// And so much later. Source: `tcp_comp_sack_slack_ns` of Linux, by which its timer
                /// may be late, and is, where nothing else wakes the host.
                compression_slack: Span = Span::from_us(100),
                /// Whether a flow whose data was all sent when its application was done ends with a
                /// segment of its own, without payload (a FIN), and not with its last segment. That
                /// the last one was lost is seen then, where it comes. And whether the segment with
                /// the FIN, be it the last one of the data, is sent when it alone is left, whatever
                /// the congestion window. Needs `rack`. Source: a choice; RFC 9293 §3.6 has the bit
                /// in either; Linux does both (`tcp_send_fin`, `tcp_cwnd_test`).
                fin: bool = false,
                /// Whether a sender acknowledges, too, without payload: the end of the handshake
                /// before its first data, and the FIN of its receiver when all is acknowledged.
                /// Source: RFC 9293 §3.5 and §3.6; a choice to leave them out.
                sender_acks: bool = false,
            }
        }

        impl From<&$name> for ByTime {
            fn from(config: &$name) -> Self {
                Self {
                    rack: config.rack,
                    rack_window: config.rack_window,
                    rack_adaptive: config.rack_adaptive,
                    rack_wait: config.rack_wait,
                    rack_echo_of_sacked: config.rack_echo_of_sacked,
                    tail_loss_probe: config.tail_loss_probe,
                    probe_wait: config.probe_wait,
                    probe_wait_for_one: config.probe_wait_for_one,
                    prr: config.prr,
                    timeout_keeps_network: config.timeout_keeps_network,
                    grow_beyond_holes: config.grow_beyond_holes,
                    undo: config.undo,
                    eifel: config.eifel,
                    timestamp_tick: config.timestamp_tick,
                    frto: config.frto,
                    segmentation_offload: config.segmentation_offload,
                    small_queue: config.small_queue,
                    small_queue_most: config.small_queue_most,
                    small_queue_overhead: config.small_queue_overhead,
                    pacing: config.pacing,
                    write_ahead: config.write_ahead,
                    receive_window: config.receive_window,
                    receive_window_most: config.receive_window_most,
                    compressed_acks: config.compressed_acks,
                    compression_delay: config.compression_delay,
                    compression_slack: config.compression_slack,
                    fin: config.fin,
                    sender_acks: config.sender_acks,
                }
            }
        }
    };
}

/// How the window of a TCP follows losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681.
    #[default]
    Reno,
    /// RFC 9438.
    Cubic,
}

/// Use of ECN by a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// Segments are not ECN-capable.
    #[default]
    Off,
    /// RFC 3168: the receiver echoes a mark until it sees CWR, the sender halves once per window.
    Classic,
}

impl EcnMode {
    const fn ecn(self) -> Ecn {
        match self {
            Self::Off => Ecn::Off,
            Self::Classic => Ecn::Classic,
        }
    }
}

with_keys_of_one_path! {
    /// TCP with slow start and congestion avoidance (RFC 5681, or CUBIC of RFC 9438) and NewReno or
    /// SACK recovery.
    pub struct TcpConfig {
        /// Defaults of the other keys: "rfc", as they say themselves, "linux", as the kernel has
        /// them (see the page on Linux' TCP), or "hermes-ns3", as the simulator of Hermes' authors
        /// has them (see the page on fidelity). Source: a choice; Linux 6.1; runs of that
        /// simulator.
        profile: Profile = Profile::Rfc,
        /// How the window follows losses: "reno" (RFC 5681) or "cubic" (RFC 9438). Source: RFC
        /// 5681; CUBIC is the default of Linux.
        congestion: Congestion = Congestion::Reno,
        /// CUBIC's C, in segments per second cubed; above 0. Source: RFC 9438 §5.
        cubic_c: f64 = 0.4,
        /// Window of CUBIC after a loss, as a share of the window before it; above 0, below 1.
        /// Source: RFC 9438 §4.6.
        cubic_beta: f64 = 0.7,
        /// Whether a CUBIC that loses below its last maximum leaves room for other flows. Source:
        /// RFC 9438 §4.7.
        cubic_fast_convergence: bool = true,
        /// The least by which CUBIC's window grows in congestion avoidance before the first loss, a
        /// round trip: 0 to 1 windows. Source: RFC 9438 has none; a twentieth in Linux.
        cubic_first_growth: f64 = 0.0,
        /// Whether CUBIC counts in whole segments and milliseconds, looks at its function no more
        /// than once in one, and leaves a window that did not move for 32 as it is; the
        /// Reno-friendly window then grows by 8/15 segments a round trip, also above the window
        /// before the loss. Source: RFC 9438 has exact numbers, and 1 above that window (§4.3);
        /// Linux whole ones.
        cubic_whole_numbers: bool = false,
        /// Whether CUBIC ends slow start before a loss, by the length of a train of
        /// acknowledgements or by a delay that rises. Source: Ha and Rhee 2011 (recalled), as in
        /// Linux; RFC 9438 §4.10 asks for it or for `HyStart++` (RFC 9406).
        hystart: bool = true,
        /// Explicit congestion notification: "off" or "classic" (RFC 3168). Source: TCP of RFC 5681
        /// has none.
        ecn: EcnMode = EcnMode::Off,
    }
}

with_keys_of_one_path! {
    /// Data Center TCP (RFC 8257). Set the marking threshold K at the queues.
    pub struct DctcpConfig {
        /// Defaults of the other keys: "rfc", as they say themselves, "linux", as the kernel has
        /// them (see the page on Linux' TCP), or "hermes-ns3", as the simulator of Hermes' authors
        /// has them (see the page on fidelity). Source: a choice; Linux 6.1; runs of that
        /// simulator.
        profile: Profile = Profile::Rfc,
        /// Weight of the newest window in the estimate alpha of the marked share, above 0 and at
        /// most 1. Source: 1/16 in the DCTCP paper and in Linux.
        g: f64 = 1.0 / 16.0,
        /// Alpha at the start of a flow, 0 to 1. Source: RFC 8257 §3.3; Linux.
        initial_alpha: f64 = 1.0,
        /// Whether the window is reduced to whole segments, and alpha counts in parts of 1,024,
        /// both rounded down, so that a reduction by less than a segment is none. Source: RFC 8257
        /// has exact numbers; Linux whole ones.
        whole_numbers: bool = false,
    }
}

fn read_subflows<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let number = weft_units::whole_number(deserializer, 1..=u32::from(crate::mptcp::MOST_SUBFLOWS))?;
    Ok(number as u8)
}

with_shared_keys! {
    /// MPTCP over subflows that are TCPs with these keys.
    pub struct MptcpConfig {
        /// Subflows of a flow, each with a five-tuple of its own: 1 to 64. Source: Raiciu et al.,
        /// SIGCOMM 2011 (recalled), 8 for the best use of a fat-tree.
        #[serde(deserialize_with = "read_subflows")]
        subflows: u8 = 8,
        /// Bytes of a flow that must be acknowledged before the other subflows join; at least one
        /// segment always. Source: a choice, as soon as RFC 8684 §3.2 allows; then short flows stay
        /// on one path.
        join_after: Bytes = Bytes::new(0),
        /// How the windows grow together: "lia" (RFC 6356), "olia" (Khalili et al. 2012), or
        /// "none", each as a TCP alone. Source: RFC 6356.
        coupling: Coupling = Coupling::Lia,
        /// Which subflow is served first if several have room: "by-number", or "lowest-rtt" by the
        /// smoothed round-trip time. Source: a choice; "lowest-rtt" is the default of Linux.
        scheduler: Scheduler = Scheduler::ByNumber,
        /// Reaction of subflows to marks: "off", "classic" (RFC 3168) or "dctcp", each a DCTCP
        /// whose increase is coupled, with g = 1/16 and alpha = 1 at first. Source: TCP of RFC 5681
        /// has no ECN.
        ecn: MptcpEcn = MptcpEcn::Off,
        /// Bytes of the DSS option in a data segment, for which the payload makes room: the payload
        /// is `mss` less this, the header is more by it. Source: RFC 8684 §3.3, with data
        /// acknowledgement and checksum.
        dss_option: Bytes = Bytes::new(20),
        /// Bytes of the DSS option in an acknowledgement, beyond `ack_size`. Source: RFC 8684 §3.3.
        dss_ack: Bytes = Bytes::new(8),
    }
}

with_shared_keys! {
    struct Shared {}
}

impl MptcpConfig {
    /// TCP configuration of each subflow.
    pub(crate) fn subflow(&self, ecn: Ecn) -> Result<Tcp, ParamError> {
        let sum = |a: Bytes, b: Bytes| Bytes::new(a.as_u64().saturating_add(b.as_u64()));
        let mss = Bytes::new(self.mss.as_u64().saturating_sub(self.dss_option.as_u64()));
        let control = match ecn {
            Ecn::Off | Ecn::Classic => Control::NewReno(NewReno),
            Ecn::Dctcp => Control::Dctcp(Dctcp { g: 1.0 / 16.0, initial_alpha: 1.0, whole_numbers: false }),
        };
        let shared = Shared {
            mss,
            header: sum(self.header, self.dss_option),
            ack_size: Some(sum(self.ack_size.unwrap_or(self.header), self.dss_ack)),
            syn_size: Some(self.syn_size.unwrap_or(self.header)),
            ..Shared::from(self)
        };
        shared.build(ecn, control, &ByTime::default())
    }
}

impl TcpConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<Tcp, ParamError> {
        let control = match self.congestion {
            Congestion::Reno => Control::NewReno(NewReno),
            Congestion::Cubic if self.cubic_whole_numbers => Control::Cubic(self.cubic().in_whole_numbers()),
            Congestion::Cubic => Control::Cubic(self.cubic()),
        };
        self.check_cubic()?;
        Shared::from(self).build(self.ecn.ecn(), control, &ByTime::checked(self, self.sack)?)
    }

    const fn cubic(&self) -> Cubic {
        Cubic {
            c: self.cubic_c,
            beta: self.cubic_beta,
            fast_convergence: self.cubic_fast_convergence,
            first_growth: self.cubic_first_growth,
            hystart: self.hystart,
            whole: None,
        }
    }

    fn check_cubic(&self) -> Result<(), ParamError> {
        let Self { cubic_c: c, cubic_beta: beta, cubic_first_growth: growth, .. } = *self;
        ParamError::unless(c > 0.0 && c <= 1e6, "cubic_c", c, "above 0, at most 1e6")?;
        ParamError::unless(beta > 0.0 && beta < 1.0, "cubic_beta", beta, "above 0, below 1")?;
        ParamError::unless((0.0..=1.0).contains(&growth), "cubic_first_growth", growth, "0 to 1")
    }
}

impl DctcpConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<Tcp, ParamError> {
        ParamError::unless(self.g > 0.0 && self.g <= 1.0, "g", self.g, "above 0, at most 1")?;
        let alpha = self.initial_alpha;
        ParamError::unless((0.0..=1.0).contains(&alpha), "initial_alpha", alpha, "0 to 1")?;
        let rules = Dctcp { g: self.g, initial_alpha: alpha, whole_numbers: self.whole_numbers };
        Shared::from(self).build(Ecn::Dctcp, Control::Dctcp(rules), &ByTime::checked(self, self.sack)?)
    }
}

impl Shared {
    fn build(&self, ecn: Ecn, control: Control, by_time: &ByTime) -> Result<Tcp, ParamError> {
        self.check_counts()?;
        self.check_times()?;
        self.check_reordering()?;
        let (mss, header, ack_bytes, syn_bytes) = self.sizes()?;
        let max_window = self.window_in_segments()?;
        Ok(Tcp {
            mss,
            header,
            ack_bytes,
            syn_bytes,
            max_window,
            offers: by_time.offers(self.mss)?,
            compresses: by_time.compresses(),
            initial_window: f64::from(self.initial_window.min(max_window)),
            initial_ssthresh: self.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            dup_ack_threshold: self.dup_ack_threshold,
            ack_every: self.ack_every,
            quick_acks: self.quick_acks,
            abc_limit: self.abc_limit,
            ack_timeout: self.ack_timeout,
            timers: Wheel::new(self.timer_tick),
            syn_timeout: self.syn_timeout,
            initial_rto: self.initial_rto,
            min_rto: self.min_rto,
            min_rto_beyond_rtt: self.min_rto_beyond_rtt,
            max_rto: self.max_rto,
            stack: by_time.stack(mss),
            probing: by_time.probing(),
            prr: by_time.prr,
            timeout_keeps_network: by_time.timeout_keeps_network,
            grow_beyond_holes: by_time.grow_beyond_holes,
            fin: by_time.fin,
            sender_acks: by_time.sender_acks,
            undo_rules: by_time.undo_rules(),
            rack_wait: by_time.rack_wait,
            recovery: by_time.recovery(self.sack),
            reorder_hold: self.reorder_hold,
            reorder_segments: self.reorder_segments,
            limited_transmit: self.limited_transmit,
            handshake: self.handshake,
            ecn,
            control,
        })
    }

    fn check_counts(&self) -> Result<(), ParamError> {
        let at_least_one = |key, value: u32| ParamError::unless(value >= 1, key, value, "1 or more");
        at_least_one("initial_window", self.initial_window)?;
        at_least_one("dup_ack_threshold", self.dup_ack_threshold)?;
        at_least_one("abc_limit", self.abc_limit)?;
        at_least_one("ack_every", u32::from(self.ack_every))?;
        let ssthresh = self.initial_ssthresh.unwrap_or(2);
        ParamError::unless(ssthresh >= 2, "initial_ssthresh", ssthresh, "2 or more segments")
    }

    fn check_times(&self) -> Result<(), ParamError> {
        let Self { min_rto, max_rto, initial_rto, .. } = *self;
        let positive = |key, span: Span| ParamError::unless(!span.is_zero(), key, span, "more than 0s");
        positive("min_rto", min_rto)?;
        positive("ack_timeout", self.ack_timeout)?;
        positive("syn_timeout", self.syn_timeout)?;
        let at_most = |key, span: Span| {
            let checked =
                ParamError::unless(span <= max_rto, key, span, format!("at most max_rto, {max_rto}"));
            checked.map_err(|error| error.or("max_rto", max_rto, format!("{key}, {span}, or more")))
        };
        at_most("min_rto", min_rto)?;
        if !(min_rto..=max_rto).contains(&initial_rto) {
            let allowed = format!("min_rto to max_rto, {min_rto} to {max_rto}");
            let error = ParamError::new("initial_rto", initial_rto, allowed);
            return Err(if initial_rto < min_rto {
                error.or("min_rto", min_rto, format!("at most initial_rto, {initial_rto}"))
            } else {
                error.or("max_rto", max_rto, format!("initial_rto, {initial_rto}, or more"))
            });
        }
        at_most("syn_timeout", self.syn_timeout)
    }

    fn check_reordering(&self) -> Result<(), ParamError> {
        let most = self.reorder_segments;
        ParamError::unless((1..=65_536).contains(&most), "reorder_segments", most, "1 to 65536")
    }

    /// MSS, header, acknowledgement and SYN in bytes, each of which fits the 16 bits of a packet's
    /// size.
    fn sizes(&self) -> Result<(u16, u16, u16, u16), ParamError> {
        let fits = |key, bytes: Bytes| {
            let fitting = u16::try_from(bytes.as_u64()).ok().filter(|&bytes| bytes > 0);
            fitting.ok_or_else(|| ParamError::new(key, bytes, "1B to 65535B"))
        };
        let (mss, header) = (fits("mss", self.mss)?, fits("header", self.header)?);
        let room = u16::MAX - header;
        ParamError::unless(mss <= room, "mss", self.mss, format!("1B to {room}B: 65535B less the header"))?;
        let ack_bytes = fits("ack_size", self.ack_size.unwrap_or(self.header))?;
        let syn_bytes = fits("syn_size", self.syn_size.unwrap_or(self.header))?;
        Ok((mss, header, ack_bytes, syn_bytes))
    }

    fn window_in_segments(&self) -> Result<u32, ParamError> {
        let Some(window) = self.max_window else { return Ok(u32::MAX) };
        let segments = window.as_u64() / self.mss.as_u64();
        ParamError::unless(segments >= 1, "max_window", window, format!("the mss, {}, or more", self.mss))?;
        Ok(u32::try_from(segments).unwrap_or(u32::MAX))
    }
}
