//! The parameters of ExpressPass and MaxPass, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::Terms;
use super::feedback::{Decrease, Growth, Law, RateCut, Rules};
use crate::{ExpressPass, MaxPass, ParamError};

/// Adds the keys that all credit transports share.
macro_rules! with_shared_keys {
    ($(#[$attr:meta])* $vis:vis struct $name:ident { $($own:tt)* }) => {
        $crate::keys::define! { $(#[$attr])* $vis $name { $($own)* } {
            /// Payload bytes of a full segment. Source: the authors' simulator.
            mss: Bytes = Bytes::new(1_460),
            /// Header bytes of a data packet, preamble and inter-frame gap included: a full one
            /// takes 1538 bytes on the wire, so leave the fabric's `overhead` at 0. Source: MaxPass
            /// §III.A; the authors' simulator.
            header: Bytes = Bytes::new(78),
            /// Size of a credit on the wire, as of a credit request and a credit stop. Source: the
            /// smallest Ethernet frame, MaxPass §III.A.
            credit_size: Bytes = Bytes::new(84),
            /// Credits are up to so much smaller or larger, at random, which keeps flows from
            /// falling into step. Source: 0 in the library of ExpressPass's authors; 8B (76 to 92
            /// bytes) in their large-scale script.
            credit_spread: Bytes = Bytes::new(0),
            /// Credits that a port holds; one that finds it full is dropped. Source: MaxPass §IV.
            credit_queue: u32 = 8,
            /// Bytes of credits that may leave a port back to back. Source: two credits in the
            /// large-scale script of ExpressPass's authors.
            credit_burst: Bytes = Bytes::new(2 * 84),
            /// Rate of credits at the start of a flow, as a share of the highest; paths used
            /// together share it evenly. Source: the library of ExpressPass's authors has 0.5; 1/16
            /// is advised for realistic workloads. Sharing is a choice: four paths with 0.5 each
            /// would ask for twice what the cable carries.
            initial_rate: f64 = 0.5,
            /// Aggressiveness factor at the start of a flow. Source: the large-scale script of
            /// ExpressPass's authors.
            w_init: f64 = 1.0 / 16.0,
            /// Smallest aggressiveness factor. Source: the simulator of ExpressPass's authors.
            w_min: f64 = 0.01,
            /// Largest aggressiveness factor. Source: MaxPass Algs. 1 and 2.
            w_max: f64 = 0.5,
            /// Share of lost credits that is no congestion. Source: the constant of the ExpressPass
            /// paper; its authors' simulator scales 0.125 by how far the rate is from the highest.
            target_loss: f64 = 0.1,
            /// Rate of delivered credits that a decrease uses: `measured` counts them; `as-printed`
            /// is the current rate less the loss, which is that of credits sent a round trip ago.
            /// Source: the simulator of ExpressPass's authors measures; MaxPass Alg. 1 line 14 and
            /// MaxPass Alg. 2 line 20 are as printed.
            decrease: Decrease = Decrease::Measured,
            /// The time between two credits varies by up to this share, at random. Source: the
            /// simulator of ExpressPass's authors.
            jitter: f64 = 0.1,
            /// A credit request is repeated after this time, doubled each time up to a
            /// thousandfold; a segment that is missing is sent again no sooner. Source: the
            /// large-scale script of ExpressPass's authors; their library has 100ms. Doubling is a
            /// choice.
            retransmit_timeout: Span = Span::from_us(100),
            /// A credit stop is repeated after this time, doubled each time. Source: the simulator
            /// of ExpressPass's authors.
            stop_timeout: Span = Span::from_ms(2),
        } }
    };
}

/// Which feedback control a credit rate follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// MaxPass Alg. 2.
    #[default]
    MaxPass,
    /// MaxPass Alg. 1, which restates ExpressPass.
    ExpressPass,
}

with_shared_keys! {
    /// `ExpressPass`. Requirements `hash = "symmetric"` of the load balancer `ecmp`, so that data
    /// retraces its credit's path.
    pub struct ExpressPassConfig {}
}

with_shared_keys! {
    /// `MaxPass`. Requirements `hash = "symmetric"` of the load balancer `ecmp`, so that data
    /// retraces its credit's path and hosts know which path a port number leads over.
    pub struct MaxPassConfig {
        /// Paths among which a flow chooses (N), each by a port number of its own; at most 255.
        /// Default: as many as lead from one rack to another. Source: MaxPass §III.A, the number of
        /// core switches.
        paths: Option<u8> = None,
        /// Paths that a flow keeps (k): those with the smallest round-trip times. Source: the
        /// example of MaxPass Fig. 2; the paper gives no value.
        keep: u8 = 2,
        /// Decreases in a row of one subflow after which the flow chooses its paths anew (t).
        /// Source: a choice, since the paper gives no value: three are what a lone flow sees whose
        /// own two subflows fill its cable.
        reselect_after: u32 = 4,
        /// With fewer segments than this to send, the sender stops all subflows but one (SUBCSTOP).
        /// Source: 0, never; MaxPass §III.F says that it can, not when.
        single_below: u32 = 0,
        /// The feedback control: `maxpass` or `expresspass`. Source: MaxPass §III.E.
        feedback: Feedback = Feedback::MaxPass,
        /// Aggressiveness factor w when n subflows grow: `weighted` has steps of w / n^2 with the w
        /// of ExpressPass; `as-printed` is `(w + w_max) / (2 n^2)`. Source: MaxPass Alg. 2 line 9,
        /// as it is meant by a choice and as printed.
        growth: Growth = Growth::Weighted,
        /// Rate that a decrease leaves, apart from the loss: `half`, but not less than one credit a
        /// round trip; `as-printed` is half or one credit a round trip, whichever is less. Source:
        /// MaxPass Alg. 2 line 21, as it is meant by a choice and as printed.
        cut: RateCut = RateCut::Half,
    }
}

with_shared_keys! {
    struct Shared {}
}

impl ExpressPassConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<ExpressPass, ParamError> {
        Ok(ExpressPass { terms: Shared::from(self).build(Law::ExpressPass)? })
    }
}

impl MaxPassConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<MaxPass, ParamError> {
        let paths = self.paths.unwrap_or(u8::MAX);
        ParamError::unless(paths >= 1, "paths", paths, "1 to 255")?;
        let allowed = match self.paths {
            Some(paths) => format!("1 to paths, {paths}"),
            None => "1 to 255".to_owned(),
        };
        ParamError::unless((1..=paths).contains(&self.keep), "keep", self.keep, allowed).map_err(
            |error| {
                if self.keep > paths {
                    error.or("paths", paths, format!("keep, {}, or more", self.keep))
                } else {
                    error
                }
            },
        )?;
        let reselect_after = self.reselect_after;
        ParamError::unless(reselect_after >= 1, "reselect_after", reselect_after, "1 decrease or more")?;
        let law = match self.feedback {
            Feedback::ExpressPass => Law::ExpressPass,
            Feedback::MaxPass => Law::MaxPass { growth: self.growth, cut: self.cut },
        };
        Ok(MaxPass {
            terms: Shared::from(self).build(law)?,
            paths,
            keep: usize::from(self.keep),
            reselect_after,
            single_below: self.single_below,
        })
    }
}

impl Shared {
    fn build(&self, law: Law) -> Result<Terms, ParamError> {
        self.check_rates()?;
        ParamError::unless(self.credit_queue >= 1, "credit_queue", self.credit_queue, "1 credit or more")?;
        let positive = |key, span: Span| ParamError::unless(!span.is_zero(), key, span, "more than 0s");
        positive("retransmit_timeout", self.retransmit_timeout)?;
        positive("stop_timeout", self.stop_timeout)?;
        let (mss, header) = (within("mss", self.mss, 1, 32_767)?, within("header", self.header, 1, 32_767)?);
        let credit_bytes = within("credit_size", self.credit_size, 1, 9_000)?;
        let credit_spread = within("credit_spread", self.credit_spread, 0, credit_bytes - 1)?;
        let burst_bytes = within("credit_burst", self.credit_burst, credit_bytes + credit_spread, u16::MAX)?;
        Ok(Terms {
            mss,
            header,
            credit_bytes,
            credit_spread,
            queue: self.credit_queue,
            burst_bytes,
            initial_rate: self.initial_rate,
            feedback: Rules {
                w_init: self.w_init,
                w_min: self.w_min,
                w_max: self.w_max,
                target_loss: self.target_loss,
                decrease: self.decrease,
                law,
            },
            jitter: self.jitter,
            retransmit_timeout: self.retransmit_timeout,
            stop_timeout: self.stop_timeout,
        })
    }

    fn check_rates(&self) -> Result<(), ParamError> {
        let share = |key, value: f64| {
            ParamError::unless(value > 0.0 && value <= 1.0, key, value, "above 0, at most 1")
        };
        share("initial_rate", self.initial_rate)?;
        share("w_max", self.w_max)?;
        share("w_min", self.w_min)?;
        let bounds = self.w_min..=self.w_max;
        let allowed = format!("w_min to w_max, {} to {}", self.w_min, self.w_max);
        ParamError::unless(bounds.contains(&self.w_init), "w_init", self.w_init, allowed).map_err(
            |error| {
                if self.w_init < self.w_min {
                    error.or("w_min", self.w_min, format!("at most w_init, {}", self.w_init))
                } else {
                    error.or("w_max", self.w_max, format!("w_init, {}, or more", self.w_init))
                }
            },
        )?;
        let below_one =
            |key, value: f64| ParamError::unless((0.0..1.0).contains(&value), key, value, "0 to less than 1");
        below_one("target_loss", self.target_loss)?;
        below_one("jitter", self.jitter)
    }
}

/// A size in bytes between two bounds.
fn within(key: &'static str, bytes: Bytes, least: u16, most: u16) -> Result<u16, ParamError> {
    let fitting = u16::try_from(bytes.as_u64()).ok().filter(|bytes| (least..=most).contains(bytes));
    fitting.ok_or_else(|| ParamError::new(key, bytes, format!("{least}B to {most}B")))
}
