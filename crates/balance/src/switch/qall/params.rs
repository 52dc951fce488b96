//! The parameters that `qall` and `qall-poly` share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use crate::registry::FlowletRule;
use crate::switch::flowlets;
use crate::{Order, ParameterError};

/// Unit of choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Every packet.
    #[default]
    Packet,
    /// Every flowlet.
    Flowlet,
}

/// The parameters that `qall` and `qall-poly` share: see their docs there.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Shared {
    pub granularity: Granularity,
    pub gap: Span,
    pub entries: u32,
    pub update: Span,
    pub recirculation: Span,
    pub time_constant: Span,
    pub tick: Span,
    pub full_queue: Bytes,
    pub floor_percent: u8,
}

/// Defines `Params` of a scheme: those of its own, with their defaults, and those that are shared.
macro_rules! with_shared_parameters {
    ($(#[$doc:meta])* { $($(#[$own_doc:meta])* $own:ident: $Type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Params {
            $($(#[$own_doc])* pub $own: $Type,)*
            /// Unit of choice: every `packet` (QALL-Pkt) or every `flowlet` (QALL-Flowlet). Source:
            /// QALL Alg. 1; the default is the one that the paper finds best.
            pub granularity: Granularity,
            /// `T_inter`: the longest pause inside a flowlet (time), with `granularity =
            /// "flowlet"`. Source: 10 ms in QALL, §IV-B, which says the order of the end-to-end
            /// delay.
            pub gap: Span,
            /// Entries of a switch's flowlet table, with `granularity = "flowlet"`: a power of two,
            /// 1 to 16,777,216. Source: not in QALL; as `letflow`.
            pub entries: u32,
            /// `T_b`: a port's queue behaviour is sent to the decision by a packet that leaves the
            /// queue longer than this after the last such packet (time). Source: 1 ms in QALL
            /// §IV-E; from 10 us to 100 ms in its Fig. 19.
            pub update: Span,
            /// From a clone's leaving the queue until decisions read it (time). Source: 0.615 ms on
            /// `BMv2` in QALL, Table II.
            pub recirculation: Span,
            /// tau: a longer dequeue interval counts as this (time); up to 1,048,576 ticks. Source:
            /// 10 ms in QALL §IV-C, which says the order of the end-to-end delay.
            pub time_constant: Span,
            /// Unit of dequeue intervals (time): whole ticks, rounded down. Source: 1 us in QALL
            /// §IV-C.
            pub tick: Span,
            /// The queue that counts as full at ports whose buffer has no limit (size). Source: not
            /// in QALL; the default is the order of 250 full-size packets.
            pub full_queue: Bytes,
            /// The smallest weight of a port, in percent of the largest: 0 to 100. Source: none in
            /// QALL, so 0; see the scheme's page for what a weight of zero does to a port.
            pub floor_percent: u8,
        }

        impl Default for Params {
            fn default() -> Self {
                Self {
                    $($own: $default,)*
                    granularity: Granularity::Packet,
                    gap: Span::from_ms(10),
                    entries: 1 << 16,
                    update: Span::from_ms(1),
                    recirculation: Span::from_us(615),
                    time_constant: Span::from_ms(10),
                    tick: Span::from_us(1),
                    full_queue: Bytes::from_kb(375),
                    floor_percent: 0,
                }
            }
        }

        impl Params {
            fn shared(&self) -> Shared {
                Shared {
                    granularity: self.granularity,
                    gap: self.gap,
                    entries: self.entries,
                    update: self.update,
                    recirculation: self.recirculation,
                    time_constant: self.time_constant,
                    tick: self.tick,
                    full_queue: self.full_queue,
                    floor_percent: self.floor_percent,
                }
            }
        }
    };
}
pub(crate) use with_shared_parameters;

/// The most ticks in the time constant.
const MAX_TAU_TICKS: u64 = 1 << 20;

/// The answer to a parameter that cannot be meant.
pub fn refuse(key: &'static str, found: &dyn ToString, allowed: &'static str) -> Result<(), ParameterError> {
    Err(ParameterError { key, found: found.to_string(), allowed })
}

impl Shared {
    /// tau in ticks.
    pub fn tau_ticks(&self) -> u64 {
        self.time_constant.as_ps() / self.tick.as_ps().max(1)
    }

    /// Effect on the order of a flow: `usual` if each packet is chosen for.
    pub fn order(&self, usual: Order) -> Order {
        if self.granularity == Granularity::Flowlet { Order::Moves } else { usual }
    }

    /// The rule that separates flowlets; none if each packet is chosen for.
    pub fn flowlets(&self) -> Option<FlowletRule> {
        (self.granularity == Granularity::Flowlet).then(|| FlowletRule::informed(self.gap))
    }

    /// Refuses values that cannot be meant.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let gaps = "longer than nothing (for a choice a packet: granularity = \"packet\")";
        flowlets::validate(self.entries, self.gap, gaps)?;
        if self.update.is_zero() {
            return refuse("update", &self.update, "longer than nothing");
        }
        if self.tick.is_zero() {
            return refuse("tick", &self.tick, "longer than nothing");
        }
        if !(1..=MAX_TAU_TICKS).contains(&self.tau_ticks()) {
            return refuse("time_constant", &self.time_constant, "1 to 1048576 times `tick`");
        }
        if self.full_queue == Bytes::ZERO {
            return refuse("full_queue", &self.full_queue, "more than nothing");
        }
        if self.floor_percent > 100 {
            return refuse("floor_percent", &self.floor_percent, "0 to 100");
        }
        Ok(())
    }
}
