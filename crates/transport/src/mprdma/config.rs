//! The parameters of MP-RDMA, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::{MpRdma, Rules};
use crate::ParamError;
use crate::rdma::config::{timer, wire_of_one_answer};
use crate::rdma::wire::Wire;

/// By which paths packets go that no acknowledgement called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UncalledPaths {
    /// The path of the last acknowledgement that called for a packet, as it works.
    Last,
    /// Each by one that is drawn, as at the start.
    Drawn,
}

crate::keys::define! {
    /// MP-RDMA: each acknowledgement calls for the next packet on its own path.
    pub MpRdmaConfig {
        /// An acknowledgement that is more than so many packets behind the furthest one calls for
        /// none: 1 to `bitmap`. Source: MP-RDMA §3.3, delta; 32 in its evaluation.
        delta: u32 = 32,
        /// Packets from the first missing one on that a receiver takes; what comes beyond is
        /// refused: 1 to 16,384. Source: MP-RDMA §3.3 and §3.5, L; 64 in its evaluation.
        bitmap: u32 = 64,
        /// Virtual paths that there are to draw from: 1 to 65,536. Source: MP-RDMA §3.1: a path is
        /// a UDP source port.
        paths: u32 = 65_536,
        /// The chance that a packet tries a new path, once a round trip: 0 to 1. Source: MP-RDMA
        /// §3.5, p; 1 % in its evaluation.
        probe: f64 = 0.01,
        /// The first window, in packets, each of which takes a path that is drawn. Default: the
        /// packets that fill the longest round trip of the idle fabric. Source: MP-RDMA §3.2 gives
        /// no number: a choice, as RDMA begins at line rate; two public simulators have 1.
        initial_window: Option<u32> = None,
        /// The least window, in packets. Source: a choice, as in a public simulator; MP-RDMA gives
        /// none.
        min_window: f64 = 1.0,
        /// Packets that one acknowledgement calls for, at most. Source: MP-RDMA §3.5, burst
        /// control: 2.
        burst: u32 = 2,
        /// Time without an acknowledgement, in round trips, after which the sender sends all that
        /// the window allows. Source: MP-RDMA §3.5, burst timer: half a round trip, as an example.
        burst_after: f64 = 0.5,
        /// By which paths it is sent then: `drawn`, or `last`, that of the last acknowledgement
        /// that called for a packet. Source: MP-RDMA §3.5 draws them; the last one in a public
        /// simulator.
        burst_paths: UncalledPaths = UncalledPaths::Drawn,
        /// A sender that had nothing to send for so many round trips begins with the first window
        /// again. Source: MP-RDMA §3.5: 3, as an example.
        idle_after: f64 = 3.0,
        /// Whether a sender that has nothing new sends again what is not acknowledged, each packet
        /// once, instead of waiting for a timeout. Source: MP-RDMA §3.5, after FUSO.
        early_retransmission: bool = true,
        /// The share of the window that a recovery takes when it begins: 0 to below 1. Source:
        /// MP-RDMA names none, it goes by marks alone; TCP takes 0.5.
        loss_cut: f64 = 0.0,
        /// The share of the window that a timeout takes: 0 to below 1. Source: a choice, as in a
        /// public simulator.
        timeout_cut: f64 = 0.5,
        /// By which paths a timeout sends again: `last`, that of the last acknowledgement that
        /// called for a packet; or `drawn`, as at the start. Source: MP-RDMA does not say; the last
        /// one in a public simulator.
        timeout_paths: UncalledPaths = UncalledPaths::Last,
        /// If nothing more comes in order for so long, everything is sent again that is not
        /// acknowledged. Source: MP-RDMA gives no number: a choice, as `RTO_high` of IRN.
        rto: Span = Span::from_us(320),
    } {
        /// Payload bytes of a full packet. Source: a choice, as that of the other RDMA transports.
        mtu: Bytes = Bytes::new(1_024),
        /// Header bytes of a data packet: RoCEv2's 62 and 8 for the numbers of the message and of
        /// the packet in it. Source: MP-RDMA §3.1 has these fields, and no sizes.
        header: Bytes = Bytes::new(70),
        /// Size of an acknowledgement, positive or negative: RoCEv2's 66 and 4 for the next packet
        /// in order. Source: MP-RDMA §3.1 has these fields, and no sizes.
        ack_size: Bytes = Bytes::new(70),
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

/// The most slots of a bitmap.
const MOST_SLOTS: u32 = 16_384;
/// The largest first window.
const MOST_PACKETS: u32 = 1 << 20;

impl MpRdmaConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<MpRdma, ParamError> {
        let wire = Shared::from(self).wire()?;
        let number = |key, value: u32, most: u32| {
            ParamError::unless((1..=most).contains(&value), key, value, format!("1 to {most}"))
        };
        number("bitmap", self.bitmap, MOST_SLOTS)?;
        let allowed = format!("1 to bitmap, {}", self.bitmap);
        ParamError::unless((1..=self.bitmap).contains(&self.delta), "delta", self.delta, allowed).map_err(
            |error| {
                let is_large = self.delta > self.bitmap;
                let or = |error: ParamError| {
                    error.or("bitmap", self.bitmap, format!("delta, {}, or more", self.delta))
                };
                if is_large { or(error) } else { error }
            },
        )?;
        number("paths", self.paths, 1 << 16)?;
        number("burst", self.burst, MOST_PACKETS)?;
        self.initial_window.map_or(Ok(()), |packets| number("initial_window", packets, MOST_PACKETS))?;
        let is_chance = (0.0..=1.0).contains(&self.probe);
        ParamError::unless(is_chance, "probe", self.probe, "0 to 1")?;
        let most = f64::from(MOST_PACKETS);
        let is_window = (1.0..=most).contains(&self.min_window);
        ParamError::unless(is_window, "min_window", self.min_window, format!("1 to {most}"))?;
        let round_trips = |key, value: f64| {
            ParamError::unless(value > 0.0 && value <= 1e6, key, value, "above 0, at most 1000000")
        };
        round_trips("burst_after", self.burst_after)?;
        round_trips("idle_after", self.idle_after)?;
        let share = |key, value: f64| {
            ParamError::unless((0.0..1.0).contains(&value), key, value, "0 or more, below 1")
        };
        share("loss_cut", self.loss_cut)?;
        share("timeout_cut", self.timeout_cut)?;
        timer("rto", self.rto)?;
        let rules = Rules {
            delta: self.delta,
            bitmap: self.bitmap,
            paths: self.paths,
            probe: self.probe,
            initial: 1.0,
            least: self.min_window,
            burst: self.burst,
            burst_after: self.burst_after,
            idle_after: self.idle_after,
            early: self.early_retransmission,
            loss_cut: self.loss_cut,
            timeout_cut: self.timeout_cut,
            burst_paths: self.burst_paths,
            timeout_paths: self.timeout_paths,
            rto: self.rto,
            base_rtt: Span::ZERO,
        };
        Ok(MpRdma::new(wire, rules, self.initial_window))
    }
}
