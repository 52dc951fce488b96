//! The one place where schemes are entered: a line each. From it follow the name in specs, the
//! parameters with their docs and JSON Schema, and the dispatch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::Span;

use crate::python_class::PythonClass;
use crate::{
    Arrival, HostContext, HostHooks, HostInfo, HostScheme, Message, NextHops, PortId, Queued, SwitchContext,
    SwitchHooks, SwitchInfo, SwitchScheme, host, reference, switch,
};

mod external;
mod hosts;
mod parameters;
mod spec;
mod switches;
mod words;

pub use external::ExternalScheme;
pub use parameters::{FabricFacts, FlowletRule, ParameterError};
pub(crate) use parameters::{Parameters, check_table_size};
pub(crate) use words::time_or_words;

/// A scheme as `weft schemes` shows it.
#[derive(Debug, Clone)]
pub struct SchemeInfo {
    /// Name of the scheme in specs.
    pub name: &'static str,
    /// Description of the scheme, in a line.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Where it lives, unless its parameters say otherwise: "switch" or "host"; or "reference", if
    /// it is no scheme and no bound, but something to compare schemes with.
    pub place: &'static str,
    /// Effect of the scheme on the order of a flow, unless its parameters say otherwise.
    pub order: Order,
    /// JSON Schema of its parameters, with their docs.
    pub parameters: serde_json::Value,
}

/// Effect of a scheme on the order in which packets of one flow arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Keeps it: a flow has one path at a time, and no packet overtakes another one where it is
    /// moved.
    Keeps,
    /// Moves a flow now and then, or with care: between flowlets, upon congestion, or where it
    /// should not overtake itself.
    Moves,
    /// Chooses for each packet anew: packets of a flow are on several paths at once, and overtake
    /// each other.
    Sprays,
}

/// `switch { module: Type, Order, "title", "source"; … } host { … } reference { … }`: the name of a
/// scheme is its module's name, or, where that is none for users, `module as "name"`. A host scheme
/// that may run at switches instead, as its parameters say, has the name of that type behind its
/// own: `Host | Leaf`, in the module of the same name among those of switches. A reference is a
/// scheme at hosts as far as hosts go; what it knows beyond what any node can know, the engine
/// knows for it: nothing in this crate can ask.
macro_rules! registry {
    ($($schemes:tt)*) => {
        spec::scheme_spec! { $($schemes)* }
        switches::switch_schemes! { $($schemes)* }
        hosts::host_schemes! { $($schemes)* }
    };
}

registry! {
    switch {
        ecmp: Ecmp, Keeps, "Equal-cost multipath: a flow stays on the path that a hash of its five-tuple picks.", "RFC 2992";
        wcmp: Wcmp, Keeps, "Weighted-cost multipath: ECMP in proportion to the capacity that routing knows.", "Zhou et al., EuroSys 2014";
        rps: Rps, Sprays, "Random packet spraying: every packet takes a next hop at random.", "Dixit et al., INFOCOM 2013";
        letflow: LetFlow, Moves, "LetFlow: every flowlet takes a next hop at random.", "Vanini et al., NSDI 2017";
        drill: Drill, Sprays, "DRILL: every packet takes the shortest of a few queues, sampled and remembered.", "Ghorbani et al., SIGCOMM 2017";
        tr: Tr, Moves, "TR: packets take only uplinks that cannot overtake; short flows the earliest, long ones that with the fewest short flows.", "Zhang et al., Journal of Cloud Computing 2021";
        qall: Qall, Sprays, "QALL: every packet, or flowlet, takes a port at random, in proportion to how idle its queue has been.", "Liu et al., IEEE TNSM 2024";
        qall_poly as "qall-poly": QallPoly, Sprays, "QALL with a congestion index that was fitted to traffic: a published polynomial, or one of `weft fit qall`.", "Liu et al., IEEE TNSM 2024";
        lbt: Lbt, Sprays, "LBT: short flows take the shortest queue; long and best-effort flows fill the longest below a threshold.", "Wang et al., JNCA 2023";
        conga: Conga, Moves, "CONGA: every flowlet takes the uplink whose path the far leaf reports least congested.", "Alizadeh et al., SIGCOMM 2014";
        hula: Hula, Moves, "HULA: every flowlet takes, at each switch, the next hop that probes found least used.", "Katta et al., SOSR 2016";
        ar: Ar, Sprays, "Adaptive routing: every packet, or flowlet, takes a port whose queue is of the least grade.", "NVIDIA, Broadcom, Cisco; uet-htsim";
        conweave: ConWeave, Keeps, "ConWeave: a connection leaves a path that answers late; the far leaf puts its packets in order again.", "Song et al., SIGCOMM 2023";
        flowcut: Flowcut, Keeps, "Flowcut: a flow moves when nothing of it is under way, and waits for that on a congested path.", "Bonato et al., IEEE ToN 2026";
        ofan: Ofan, Sprays, "Ofan: packets to one destination take all ways in turn (destination-based rotation).", "McClure et al., arXiv 2507.21372";
    }
    host {
        drb: Drb, Sprays, "Digit-reversal bouncing: packets in turn over all paths, from the host.", "Cao et al., CoNEXT 2013";
        flowbender: FlowBender, Moves, "FlowBender: a flow whose packets come back marked takes another hash.", "Kabbani et al., CoNEXT 2014";
        hedera: Hedera, Moves, "Hedera: a central controller polls for large flows and places them on paths with room.", "Al-Fares et al., NSDI 2010";
        meet: Meet, Moves, "MEET: every flowlet takes the path that probes, or the round trips of its whole rack, show least congested.", "Dong et al., IEEE TPDS 2022";
        plb: Plb, Moves, "PLB: a flow that stays congested takes another flow label, best while it is idle.", "Qureshi et al., SIGCOMM 2022";
        presto: Presto, Moves, "Presto: 64 KB flowcells in turn over all paths, from the host.", "He et al., SIGCOMM 2015";
        clove: Clove | CloveLeaf, Moves, "CLOVE: every flowlet takes, by its source port, one of the paths that traces found; marks shift the weights.", "Katta et al., HotNets 2016 and CoNEXT 2017";
        hermes: Hermes, Moves, "Hermes: flows leave bad and failed paths, as round trips, marks, losses and probes class them.", "Zhang et al., SIGCOMM 2017";
        oblivious: Oblivious, Sprays, "Oblivious spraying: every packet takes another entropy, which switches hash.", "REPS, EuroSys 2026; uet-htsim";
        bitmap: Bitmap, Sprays, "Bitmap: packets take entropies in turn, but for those that lately met marks or losses.", "uet-htsim; STrack, 2024";
        reps: Reps, Sprays, "REPS: entropies that came back without a mark are used again; a failure freezes the choice to proven ones.", "Bonato et al., EuroSys 2026";
    }
    reference {
        oracle: Oracle, Sprays, "Perfect per-packet choice (reference): every packet takes the path that delivers it first, by all queues as they are.", "this project";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_name_is_the_name_in_a_spec() {
        for info in schemes() {
            let spec: SchemeSpec = serde_json::from_value(serde_json::json!({ "name": info.name })).unwrap();
            assert_eq!(spec.name(), info.name);
            assert_eq!(spec.validate(), Ok(()), "the defaults of {} are valid", info.name);
        }
    }

    /// A scheme that moves flows between flowlets has a gap, and its title says so; some have one
    /// only in a mode of their own.
    #[test]
    fn every_scheme_that_speaks_of_flowlets_says_how_it_tells_them_apart() {
        let rtt = Span::from_us(20);
        for info in schemes() {
            let rule = |key: &str, value: &str| {
                let mut table = serde_json::json!({ "name": info.name });
                if !key.is_empty() {
                    table[key] = value.into();
                }
                serde_json::from_value::<SchemeSpec>(table).ok().and_then(|spec| spec.flowlets(rtt))
            };
            let found = rule("", "").or(rule("mode", "flowlet")).or(rule("granularity", "flowlet"));
            let has_gap = info.parameters["properties"].get("gap").is_some();
            assert_eq!(found.is_some(), has_gap, "{}", info.name);
            assert!(has_gap || !info.title.contains("flowlet"), "{}", info.title);
            assert!(found.is_none_or(|rule| !rule.gap.is_zero()), "{}", info.name);
        }
    }

    #[test]
    fn every_parameter_is_documented_with_its_source() {
        for info in schemes() {
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
