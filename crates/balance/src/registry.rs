//! The one place where schemes are entered: a line each. From it follow the name in specs, the parameters with their
//! docs and JSON Schema, and the dispatch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_packet::Packet;
use weft_units::{Mistake, Span};

use crate::{
    Arrival, EdgeBalancer, EdgeContext, EdgeHooks, HostInfo, Message, NextHops, PortId, Queued,
    SwitchBalancer, SwitchContext, SwitchHooks, SwitchInfo, edge, switch,
};

/// A parameter with a value that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} is {found}: {allowed}")]
pub struct ParameterError {
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub found: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl From<ParameterError> for Mistake {
    fn from(error: ParameterError) -> Self {
        let ParameterError { key, found, allowed } = error;
        Self::at(key, format!(" is {found}: {allowed}")).found(found).allowed(allowed)
    }
}

/// Refuses a table of flows or flowlets that is no power of two, or too large.
pub(crate) fn check_table_size(entries: u32) -> Result<(), ParameterError> {
    if entries.is_power_of_two() && entries <= 1 << 24 {
        return Ok(());
    }
    let allowed = "a power of two, 1 to 16777216";
    Err(ParameterError { key: "entries", found: entries.to_string(), allowed })
}

/// What every scheme's `Params` can do.
pub(crate) trait Parameters {
    /// Refuses values that cannot be meant.
    fn validate(&self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// Reads the files that parameters name, whose paths are absolute by now.
    fn load(&mut self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// Refuses values that cannot be meant on this fabric.
    fn fits(&self, _fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
        Ok(())
    }
}

/// What parameters of a scheme must go with. What takes long to find is found when it is asked for.
pub trait FabricFacts {
    /// How many hosts there are.
    fn hosts(&self) -> u32;

    /// How many ports to other switches the edge switch has that has most.
    fn uplinks(&self) -> u32;

    /// The longest round trip of the idle fabric between two racks: see [`HostInfo::base_rtts`]. Zero if there are no two.
    fn base_rtt(&self) -> Span;

    /// The most explicit routes that lead from one rack to another. 1 if there is never a choice.
    fn routes(&self) -> u16;
}

/// A scheme as `weft schemes` shows it.
#[derive(Debug, Clone)]
pub struct BalancerInfo {
    /// Its name in specs.
    pub name: &'static str,
    /// What it does, in a line.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Where it lives: "switch" or "edge".
    pub place: &'static str,
    /// JSON Schema of its parameters, with their docs.
    pub parameters: serde_json::Value,
}

/// A switch scheme from outside this crate, for prototypes: called through a pointer, once a packet.
pub trait ExternalSwitch: Send {
    /// The optional calls that it wants, asked for once.
    fn hooks(&self) -> SwitchHooks {
        SwitchHooks::default()
    }

    /// As [`SwitchBalancer::choose`].
    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize;

    /// As [`SwitchBalancer::start`].
    fn start(&mut self, _cx: &mut dyn SwitchContext) {}

    /// As [`SwitchBalancer::arriving`].
    fn arriving(&mut self, _cx: &mut dyn SwitchContext, _packet: &mut Packet, _port: PortId) -> Arrival {
        Arrival::Forward
    }

    /// As [`SwitchBalancer::timer`].
    fn timer(&mut self, _cx: &mut dyn SwitchContext, _token: u32) {}

    /// As [`SwitchBalancer::queued`].
    fn queued(&mut self, _cx: &mut dyn SwitchContext, _packet: &mut Packet, _queued: Queued) {}

    /// As [`SwitchBalancer::port_changed`].
    fn port_changed(&mut self, _cx: &mut dyn SwitchContext, _port: PortId) {}

    /// As [`SwitchBalancer::state_bytes`]; 0 if it is not known.
    fn state_bytes(&self) -> u64 {
        0
    }

    /// As [`SwitchBalancer::counters`].
    fn counters(&self, _count: &mut dyn FnMut(&'static str, u64)) {}
}

/// The name of a scheme: its module's name, or the one that it is given.
macro_rules! scheme_name {
    ($module:ident) => {
        stringify!($module)
    };
    ($module:ident $name:literal) => {
        $name
    };
}

/// `switch { module: Type, "title", "source"; … } edge { … }`: the name of a scheme is its module's name, or, where that is
/// none for users, `module as "name"`.
macro_rules! registry {
    (
        switch { $($switch_module:ident $(as $switch_name:literal)?: $Switch:ident, $switch_title:literal, $switch_source:literal;)* }
        edge { $($edge_module:ident: $Edge:ident, $edge_title:literal, $edge_source:literal;)* }
    ) => {
        /// The load balancer of a run, with its parameters.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "name", rename_all = "lowercase")]
        pub enum BalancerSpec {
            $(#[doc = $switch_title] $(#[serde(rename = $switch_name)])? $Switch(switch::$switch_module::Params),)*
            $(#[doc = $edge_title] $Edge(edge::$edge_module::Params),)*
        }

        impl BalancerSpec {
            /// The scheme's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Switch(_) => scheme_name!($switch_module $($switch_name)?),)*
                    $(Self::$Edge(_) => stringify!($edge_module),)*
                }
            }

            /// Refuses parameters that cannot be meant.
            ///
            /// # Errors
            /// The first such parameter.
            pub fn validate(&self) -> Result<(), ParameterError> {
                match self {
                    $(Self::$Switch(params) => params.validate(),)*
                    $(Self::$Edge(params) => params.validate(),)*
                }
            }

            /// Refuses parameters that cannot be meant on this fabric.
            ///
            /// # Errors
            /// The first such parameter.
            pub fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
                match self {
                    $(Self::$Switch(params) => params.fits(fabric),)*
                    $(Self::$Edge(params) => params.fits(fabric),)*
                }
            }

            /// Reads the files that parameters name, whose paths are absolute by now.
            ///
            /// # Errors
            /// The first that cannot be read, or does not hold what it should.
            pub fn load(&mut self) -> Result<(), ParameterError> {
                match self {
                    $(Self::$Switch(params) => params.load(),)*
                    $(Self::$Edge(params) => params.load(),)*
                }
            }

            /// The scheme at one switch. Edge schemes run over ECMP.
            pub fn switch_scheme(&self, info: &SwitchInfo<'_>) -> SwitchScheme {
                match self {
                    $(Self::$Switch(params) => {
                        SwitchScheme::$Switch(switch::$switch_module::$Switch::new(params, info))
                    })*
                    $(Self::$Edge(_) => SwitchScheme::Ecmp(switch::ecmp::Ecmp::new(&Default::default(), info)),)*
                }
            }

            /// The scheme at one host.
            pub fn edge_scheme(&self, info: &HostInfo<'_>) -> EdgeScheme {
                match self {
                    $(Self::$Edge(params) => EdgeScheme::$Edge(edge::$edge_module::$Edge::new(params, info)),)*
                    _ => EdgeScheme::None,
                }
            }

            /// The optional calls that it wants at switches.
            pub fn switch_hooks(&self) -> SwitchHooks {
                match self {
                    $(Self::$Switch(_) => switch::$switch_module::$Switch::HOOKS,)*
                    _ => SwitchHooks::default(),
                }
            }

            /// The optional calls that it wants at hosts.
            pub fn edge_hooks(&self) -> EdgeHooks {
                match self {
                    $(Self::$Edge(params) => edge::$edge_module::$Edge::hooks(params),)*
                    _ => EdgeHooks::default(),
                }
            }
        }

        /// A switch scheme, whichever it is.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum SwitchScheme {
            $($Switch(switch::$switch_module::$Switch),)*
            External(Box<dyn ExternalSwitch>),
        }

        impl SwitchScheme {
            /// The optional calls that a scheme from outside wants; none for the others, whose [`BalancerSpec`] says so.
            pub fn external_hooks(&self) -> SwitchHooks {
                match self {
                    Self::External(scheme) => scheme.hooks(),
                    _ => SwitchHooks::default(),
                }
            }

            /// As [`SwitchBalancer::choose`].
            #[inline]
            pub fn choose(
                &mut self,
                cx: &mut impl SwitchContext,
                packet: &mut Packet,
                hops: &NextHops<'_>,
            ) -> usize {
                match self {
                    $(Self::$Switch(scheme) => scheme.choose(cx, packet, hops),)*
                    Self::External(scheme) => scheme.choose(cx, packet, hops),
                }
            }

            /// As [`SwitchBalancer::foretell`].
            pub fn foretell(&self, entropy: u32, hops: &NextHops<'_>) -> Option<usize> {
                match self {
                    $(Self::$Switch(scheme) => scheme.foretell(entropy, hops),)*
                    Self::External(_) => None,
                }
            }

            /// As [`SwitchBalancer::start`].
            pub fn start(&mut self, cx: &mut impl SwitchContext) {
                match self {
                    $(Self::$Switch(scheme) => scheme.start(cx),)*
                    Self::External(scheme) => scheme.start(cx),
                }
            }

            /// As [`SwitchBalancer::arriving`].
            #[inline]
            pub fn arriving(&mut self, cx: &mut impl SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
                match self {
                    $(Self::$Switch(scheme) => scheme.arriving(cx, packet, port),)*
                    Self::External(scheme) => scheme.arriving(cx, packet, port),
                }
            }

            /// As [`SwitchBalancer::timer`].
            pub fn timer(&mut self, cx: &mut impl SwitchContext, token: u32) {
                match self {
                    $(Self::$Switch(scheme) => scheme.timer(cx, token),)*
                    Self::External(scheme) => scheme.timer(cx, token),
                }
            }

            /// As [`SwitchBalancer::queued`].
            #[inline]
            pub fn queued(&mut self, cx: &mut impl SwitchContext, packet: &mut Packet, queued: Queued) {
                match self {
                    $(Self::$Switch(scheme) => scheme.queued(cx, packet, queued),)*
                    Self::External(scheme) => scheme.queued(cx, packet, queued),
                }
            }

            /// As [`SwitchBalancer::port_changed`].
            pub fn port_changed(&mut self, cx: &mut impl SwitchContext, port: PortId) {
                match self {
                    $(Self::$Switch(scheme) => scheme.port_changed(cx, port),)*
                    Self::External(scheme) => scheme.port_changed(cx, port),
                }
            }

            /// As [`SwitchBalancer::state_bytes`].
            pub fn state_bytes(&self) -> u64 {
                match self {
                    $(Self::$Switch(scheme) => scheme.state_bytes(),)*
                    Self::External(scheme) => scheme.state_bytes(),
                }
            }

            /// As [`SwitchBalancer::counters`].
            pub fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
                match self {
                    $(Self::$Switch(scheme) => scheme.counters(count),)*
                    Self::External(scheme) => scheme.counters(count),
                }
            }
        }

        /// An edge scheme, whichever it is.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum EdgeScheme {
            None,
            $($Edge(edge::$edge_module::$Edge),)*
        }

        /// What an edge scheme keeps of one flow at one end.
        #[derive(Default)]
        #[allow(missing_docs)]
        pub enum EdgeFlow {
            #[default]
            None,
            $($Edge(<edge::$edge_module::$Edge as EdgeBalancer>::Flow),)*
        }

        impl EdgeScheme {
            /// The state of a new flow.
            pub fn new_flow(&self) -> EdgeFlow {
                match self {
                    Self::None => EdgeFlow::None,
                    $(Self::$Edge(_) => EdgeFlow::$Edge(Default::default()),)*
                }
            }

            /// As [`EdgeBalancer::sending`].
            #[inline]
            pub fn sending(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow, packet: &mut Packet) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.sending(cx, flow, packet),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::receiving`].
            #[inline]
            pub fn receiving(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow, packet: Packet) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.receiving(cx, flow, packet),)*
                    _ => cx.deliver(packet),
                }
            }

            /// As [`EdgeBalancer::start`].
            pub fn start(&mut self, cx: &mut impl EdgeContext) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.start(cx),)*
                }
            }

            /// As [`EdgeBalancer::message`].
            pub fn message(&mut self, cx: &mut impl EdgeContext, message: Message) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.message(cx, message),)*
                }
            }

            /// As [`EdgeBalancer::host_timer`].
            pub fn host_timer(&mut self, cx: &mut impl EdgeContext, token: u32) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.host_timer(cx, token),)*
                }
            }

            /// As [`EdgeBalancer::timed_out`].
            pub fn timed_out(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.timed_out(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::finished`].
            pub fn finished(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.finished(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::flow_timer`].
            pub fn flow_timer(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.flow_timer(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::state_bytes`].
            pub fn state_bytes(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $(Self::$Edge(scheme) => scheme.state_bytes(),)*
                }
            }

            /// As [`EdgeBalancer::counters`].
            pub fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.counters(count),)*
                }
            }
        }

        impl EdgeFlow {
            /// As [`EdgeBalancer::held`].
            pub fn held(&self) -> usize {
                match self {
                    Self::None => 0,
                    $(Self::$Edge(flow) => <edge::$edge_module::$Edge as EdgeBalancer>::held(flow),)*
                }
            }
        }

        /// Every scheme, in the order of the registry.
        pub fn balancers() -> Vec<BalancerInfo> {
            vec![
                $(BalancerInfo {
                    name: scheme_name!($switch_module $($switch_name)?),
                    title: $switch_title,
                    source: $switch_source,
                    place: "switch",
                    parameters: schemars::schema_for!(switch::$switch_module::Params).to_value(),
                },)*
                $(BalancerInfo {
                    name: stringify!($edge_module),
                    title: $edge_title,
                    source: $edge_source,
                    place: "edge",
                    parameters: schemars::schema_for!(edge::$edge_module::Params).to_value(),
                },)*
            ]
        }
    };
}

registry! {
    switch {
        ecmp: Ecmp, "Equal-cost multipath: a flow stays on the path that a hash of its five-tuple picks.", "RFC 2992";
        wcmp: Wcmp, "Weighted-cost multipath: ECMP in proportion to the capacity that routing knows.", "Zhou et al., EuroSys 2014";
        rps: Rps, "Random packet spraying: every packet takes a next hop at random.", "Dixit et al., INFOCOM 2013";
        letflow: LetFlow, "LetFlow: every flowlet takes a next hop at random.", "Vanini et al., NSDI 2017";
        drill: Drill, "DRILL: every packet takes the shortest of a few queues, sampled and remembered.", "Ghorbani et al., SIGCOMM 2017";
        tr: Tr, "TR: packets take only uplinks that cannot overtake; short flows the earliest, long ones that with the fewest short flows.", "Zhang et al., Journal of Cloud Computing 2021";
        qall: Qall, "QALL: every packet, or flowlet, takes a port at random, in proportion to how idle its queue has been.", "Liu et al., IEEE TNSM 2024";
        qall_poly as "qall-poly": QallPoly, "QALL with a congestion index that was fitted to traffic: a published polynomial, or one of `weft fit qall`.", "Liu et al., IEEE TNSM 2024";
        lbt: Lbt, "LBT: short flows take the shortest queue; long and best-effort flows fill the longest below a threshold.", "Wang et al., JNCA 2023";
        conga: Conga, "CONGA: every flowlet takes the uplink whose path the far leaf reports least congested.", "Alizadeh et al., SIGCOMM 2014";
        hula: Hula, "HULA: every flowlet takes, at each switch, the next hop that probes found least used.", "Katta et al., SOSR 2016";
    }
    edge {
        drb: Drb, "Digit-reversal bouncing: packets in turn over all paths, from the edge.", "Cao et al., CoNEXT 2013";
        flowbender: FlowBender, "FlowBender: a flow whose packets come back marked takes another hash.", "Kabbani et al., CoNEXT 2014";
        hedera: Hedera, "Hedera: a central controller polls for large flows and places them on paths with room.", "Al-Fares et al., NSDI 2010";
        meet: Meet, "MEET: every flowlet takes the path that probes, or the round trips of its whole rack, show least congested.", "Dong et al., IEEE TPDS 2022";
        plb: Plb, "PLB: a flow that stays congested takes another flow label, best while it is idle.", "Qureshi et al., SIGCOMM 2022";
        presto: Presto, "Presto: 64 KB flowcells in turn over all paths, from the edge.", "He et al., SIGCOMM 2015";
        clove: Clove, "CLOVE: every flowlet takes, by its source port, one of the paths that traces found; marks shift the weights.", "Katta et al., HotNets 2016 and CoNEXT 2017";
        hermes: Hermes, "Hermes: flows leave bad and failed paths, as round trips, marks, losses and probes class them.", "Zhang et al., SIGCOMM 2017";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_name_is_the_name_in_a_spec() {
        for info in balancers() {
            let spec: BalancerSpec =
                serde_json::from_value(serde_json::json!({ "name": info.name })).unwrap();
            assert_eq!(spec.name(), info.name);
            assert_eq!(spec.validate(), Ok(()), "the defaults of {} are valid", info.name);
        }
    }

    #[test]
    fn every_parameter_is_documented_with_its_source() {
        for info in balancers() {
            let Some(properties) = info.parameters["properties"].as_object() else { continue };
            for (key, schema) in properties {
                let doc = schema["description"].as_str().unwrap_or_default();
                assert!(doc.contains("Source:"), "{}.{key} says no source: {doc:?}", info.name);
                assert!(
                    !schema["default"].is_null() || doc.contains("Default:"),
                    "{}.{key}: no default",
                    info.name
                );
            }
        }
    }
}
