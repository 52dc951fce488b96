//! The parameters of ExpressPass, and what they must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::ExpressPass;
use super::feedback::{Decrease, Rules};
use crate::ParamError;

/// `ExpressPass`. Wants `hash = "symmetric"` of the load balancer `ecmp`, so that data retraces its credit's path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExpressPassConfig {
    /// Payload bytes of a full segment. Source: the authors' simulator.
    pub mss: Bytes,
    /// Header bytes of a data packet, preamble and inter-frame gap included: a full one takes 1538 bytes on the wire, so
    /// leave the fabric's `overhead` at 0. Source: MaxPass section III.A; the authors' simulator.
    pub header: Bytes,
    /// Size of a credit on the wire, as of a credit request and a credit stop. Source: the smallest Ethernet frame,
    /// MaxPass section III.A.
    pub credit_size: Bytes,
    /// Credits are up to so much smaller or larger, at random, which keeps flows from falling into step. Source: 0 in the
    /// authors' library; 8B (76 to 92 bytes) in their large-scale script.
    pub credit_spread: Bytes,
    /// Credits that a port holds; one that finds it full is dropped. Source: MaxPass section IV.
    pub credit_queue: u32,
    /// Bytes of credits that may leave a port back to back. Source: two credits in the authors' large-scale script.
    pub credit_burst: Bytes,
    /// Rate of credits at the start of a flow, as a share of the highest. Source: the authors' library has 0.5; 1/16 is
    /// advised for realistic workloads.
    pub initial_rate: f64,
    /// Aggressiveness factor at the start of a flow. Source: the authors' large-scale script.
    pub w_init: f64,
    /// Smallest aggressiveness factor. Source: the authors' simulator.
    pub w_min: f64,
    /// Largest aggressiveness factor. Source: MaxPass Algorithm 1.
    pub w_max: f64,
    /// Share of lost credits that is no congestion. Source: the constant of the `ExpressPass` paper; their simulator scales
    /// 0.125 by how far the rate is from the highest.
    pub target_loss: f64,
    /// What a decrease takes for the rate at which credits got through: `measured` counts them; `as-printed` is the current
    /// rate less the loss, which is that of credits sent a round trip ago. Source: the authors' simulator measures; MaxPass
    /// Algorithm 1 line 14 is as printed.
    pub decrease: Decrease,
    /// The time between two credits varies by up to this share, at random. Source: the authors' simulator.
    pub jitter: f64,
    /// A credit request is repeated after this time, doubled each time up to a thousandfold; a segment that is missing is
    /// sent again no sooner. Source: the authors' large-scale script; their library has 100ms. Doubling is a choice.
    pub retransmit_timeout: Span,
    /// A credit stop is repeated after this time, doubled each time. Source: the authors' simulator.
    pub stop_timeout: Span,
}

impl Default for ExpressPassConfig {
    fn default() -> Self {
        Self {
            mss: Bytes::new(1_460),
            header: Bytes::new(78),
            credit_size: Bytes::new(84),
            credit_spread: Bytes::new(0),
            credit_queue: 8,
            credit_burst: Bytes::new(2 * 84),
            initial_rate: 0.5,
            w_init: 1.0 / 16.0,
            w_min: 0.01,
            w_max: 0.5,
            target_loss: 0.1,
            decrease: Decrease::Measured,
            jitter: 0.1,
            retransmit_timeout: Span::from_us(100),
            stop_timeout: Span::from_ms(2),
        }
    }
}

impl ExpressPassConfig {
    /// The transport with these parameters.
    ///
    /// # Errors
    /// If a parameter makes no sense.
    pub fn build(&self) -> Result<ExpressPass, ParamError> {
        self.check_rates()?;
        ParamError::unless(self.credit_queue >= 1, "credit_queue", self.credit_queue, "1 credit or more")?;
        let positive = |key, span: Span| ParamError::unless(!span.is_zero(), key, span, "more than 0s");
        positive("retransmit_timeout", self.retransmit_timeout)?;
        positive("stop_timeout", self.stop_timeout)?;
        let (mss, header) = (within("mss", self.mss, 1, 32_767)?, within("header", self.header, 1, 32_767)?);
        let credit_bytes = within("credit_size", self.credit_size, 1, 9_000)?;
        let credit_spread = within("credit_spread", self.credit_spread, 0, credit_bytes - 1)?;
        let burst_bytes = within("credit_burst", self.credit_burst, credit_bytes + credit_spread, u16::MAX)?;
        Ok(ExpressPass {
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
        ParamError::unless(bounds.contains(&self.w_init), "w_init", self.w_init, allowed)?;
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
