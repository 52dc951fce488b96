//! The transports that a spec may name. One line each.

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use weft_units::Time;

use crate::any::any_protocol;
use crate::expresspass::ExpressPass;
use crate::expresspass::ExpressPassConfig;
use crate::irn::Irn;
use crate::irn::IrnConfig;
use crate::maxpass::MaxPass;
use crate::maxpass::MaxPassConfig;
use crate::mprdma::MpRdma;
use crate::mprdma::MpRdmaConfig;
use crate::mptcp::Mptcp;
use crate::mptcp::MptcpConfig;
use crate::roce::Roce;
use crate::roce::RoceConfig;
use crate::swift::SwiftConfig;
use crate::swift::SwiftTransport;
use crate::tcp::Tcp;
use crate::tcp::{DctcpConfig, TcpConfig};
use crate::uec::Uec;
use crate::uec::UecConfig;
use crate::{
    ArrivedPacket, Counted, CreditPorts, Delivery, FiveTuples, FlowSize, KnownFabric, Multipath, ParamError,
    Ports, Protocol, Pull, ReceiverStats, Requirements, Segmentation, SenderState, SenderStats, Transports,
    WindowState, Written,
};

/// Operation on the transports of a run, whichever they are: compiled once for each that may be
/// alone, and once for several.
pub trait Visitor {
    /// Result of the operation.
    type Output;

    /// Does it.
    fn visit<T: Transports + 'static>(self, transports: T) -> Self::Output;
}

/// Static information about a transport.
#[derive(Debug, Clone)]
pub struct TransportInfo {
    /// Name of the transport in a spec.
    pub name: &'static str,
    /// Description of the transport in one line.
    pub title: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Parameters of the transport: names, docs, types and defaults.
    pub schema: Schema,
}

/// Enters transports: variant, parameters and what they build, name, title, source. The parameters
/// have a `build` that checks them. Whatever must treat one transport like another follows from the
/// line.
macro_rules! transports {
    ($($variant:ident($config:ty => $protocol:ty), $name:literal, $title:literal, $source:literal;)*) => {
        /// A transport and its parameters, as a spec names them: `name = "dctcp"`, then any
        /// parameter.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "name")]
        pub enum TransportSpec {
            $(#[doc = $title] #[serde(rename = $name)] $variant($config),)*
        }

        impl TransportSpec {
            /// Name of the transport in a spec.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Checks the parameters.
            ///
            /// # Errors
            /// The first parameter that makes no sense.
            pub fn validate(&self) -> Result<(), ParamError> {
                match self { $(Self::$variant(config) => config.build().map(drop),)* }
            }

            /// Does something with the transport that has these parameters, alone in a run.
            ///
            /// # Errors
            /// The first parameter that makes no sense.
            pub fn visit<V: Visitor>(&self, visitor: V) -> Result<V::Output, ParamError> {
                match self { $(Self::$variant(config) => Ok(visitor.visit(config.build()?)),)* }
            }

            /// The transport with these parameters, as one of several in a run.
            ///
            /// # Errors
            /// The first parameter that makes no sense.
            pub fn build(&self) -> Result<AnyProtocol, ParamError> {
                match self { $(Self::$variant(config) => Ok(AnyProtocol::$variant(config.build()?)),)* }
            }

            /// Every transport, in the order of this list.
            pub fn list() -> &'static [TransportInfo] {
                static ALL: std::sync::LazyLock<Vec<TransportInfo>> = std::sync::LazyLock::new(|| vec![$(TransportInfo {
                    name: $name,
                    title: $title,
                    source: $source,
                    schema: schema_for!($config),
                },)*]);
                &ALL
            }
        }

        any_protocol! { $($variant($protocol),)* }
    };
}

transports! {
    Tcp(TcpConfig => Tcp), "tcp", "TCP Reno or CUBIC, with NewReno or SACK recovery.", "RFC 5681, 9438, 6298, 6582, 6675";
    Dctcp(DctcpConfig => Tcp), "dctcp", "Data Center TCP.", "RFC 8257; Alizadeh et al., SIGCOMM 2010";
    ExpressPass(ExpressPassConfig => ExpressPass), "expresspass", "ExpressPass: the receiver sends credits, each of which calls for one data packet.", "Cho et al., SIGCOMM 2017; MaxPass, section II.D";
    Mptcp(MptcpConfig => Mptcp), "mptcp", "Multipath TCP: several subflows, coupled windows.", "RFC 8684, 6356; Raiciu et al., SIGCOMM 2011";
    MaxPass(MaxPassConfig => MaxPass), "maxpass", "MaxPass: credits over several paths, of which the fastest are kept.", "Park et al., Journal of Communications and Networks 2019";
    Roce(RoceConfig => Roce), "roce", "RoCEv2: go-back-N at the rate of DCQCN.", "IBTA Annex A17; Zhu et al., SIGCOMM 2015";
    Irn(IrnConfig => Irn), "irn", "IRN: selective repeat with no more in flight than the path holds.", "Mittal et al., SIGCOMM 2018";
    Uec(UecConfig => Uec), "uec", "Ultra Ethernet transport: selective acknowledgements, trimming, NSCC.", "Ultra Ethernet 1.0; uet-htsim";
    Swift(SwiftConfig => SwiftTransport), "swift", "Swift: a window that keeps the delay at its target, over selective repeat.", "Kumar et al., SIGCOMM 2020";
    MpRdma(MpRdmaConfig => MpRdma), "mprdma", "MP-RDMA: each acknowledgement calls for the next packet on its own path.", "Lu et al., NSDI 2018; Chen et al., ToN 2019";
}

impl TransportSpec {
    /// Whether a flow may come to its senders in pieces, as an application writes it:
    /// [`Protocol::takes_writes`].
    pub fn takes_writes(&self) -> bool {
        self.build().is_ok_and(|protocol| protocol.takes_writes())
    }

    /// Counters of the ends that not every transport has: [`Protocol::counted`].
    pub fn counted(&self) -> Counted {
        self.build().map_or_else(|_| Counted::default(), |protocol| protocol.counted())
    }

    /// Whether its senders are asked for packets, as the queue pairs of an RDMA card are:
    /// [`Protocol::is_rnic_scheduled`].
    pub fn is_rnic_scheduled(&self) -> bool {
        self.build().is_ok_and(|protocol| protocol.is_rnic_scheduled())
    }
}

impl Default for TransportSpec {
    fn default() -> Self {
        Self::Dctcp(DctcpConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_documented_with_its_source() {
        for info in TransportSpec::list() {
            let properties =
                info.schema.get("properties").and_then(|properties| properties.as_object()).unwrap();
            assert!(!properties.is_empty(), "{}", info.name);
            for (key, schema) in properties {
                let doc = schema["description"].as_str().unwrap_or_default();
                assert!(doc.contains("Source:"), "{}.{key} says no source: {doc:?}", info.name);
                let default = schema.get("default").is_some_and(|default| !default.is_null());
                assert!(default || doc.contains("Default:"), "{}.{key}: no default", info.name);
            }
        }
    }
}
