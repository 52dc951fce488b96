//! Warnings on specs that can run, but are hardly meant.

use weft_balance::switch::ecmp::HashSeed;
use weft_balance::{Order, SchemeSpec};
use weft_fabric::MOST_ROWS;
use weft_packet::Packet;
use weft_topology::{Fabric, FaultSpan, Routes};
use weft_transport::{
    FlowSize, Multipath, PathRequirement, Protocol, Requirements, TransportSpec, Transports, TransportsSpec,
    Visitor,
};
use weft_units::{Span, Time};

use crate::proportion::out_of_proportion;
use crate::spec::RunSpec;

/// Demands of transports that may conflict with a fabric or a load balancer, by number.
struct Demands {
    /// Whether credits come before data.
    credits: Vec<bool>,
    /// Paths of its own that each flow asks for; `u8::MAX` for all that there are.
    paths: Vec<u8>,
    /// Other requirements of each transport to work as it is meant.
    requirements: Vec<Requirements>,
    /// Whether any acts upon congestion marks.
    uses_ecn: bool,
    /// The largest packet of any.
    full_bytes: u16,
}

/// Asks transports what they demand.
struct Ask;

impl Visitor for Ask {
    type Output = Demands;

    fn visit<T: Transports + 'static>(self, transports: T) -> Demands {
        Demands {
            credits: transports.all().map(|transport| transport.credit_ports().is_some()).collect(),
            paths: transports.all().map(|transport| transport.five_tuples().apart()).collect(),
            requirements: transports.all().map(Protocol::requirements).collect(),
            uses_ecn: transports.all().any(Protocol::uses_ecn),
            full_bytes: transports.all().map(full_bytes).max().unwrap_or_default(),
        }
    }
}

/// Bytes of a packet of full size on the wire.
fn full_bytes(transport: &impl Protocol) -> u16 {
    let two_segments = FlowSize { segments: 2, last_payload: 1 };
    transport.segment_wire_bytes(two_segments, 0)
}

/// Whether ports have queues of credits beside data.
pub(crate) fn has_credit_ports(transports: &TransportsSpec) -> bool {
    transports.with_transports(Ask).is_ok_and(|demands| demands.credits.contains(&true))
}

/// Warnings about transports on this fabric with this load balancer. Their parameters were found
/// good.
pub(crate) fn transport_warnings(
    transports: &TransportsSpec,
    scheme: &SchemeSpec,
    fabric: &Fabric,
) -> Vec<String> {
    let Ok(demands) = transports.with_transports(Ask) else { return Vec::new() };
    let mut warnings = Vec::new();
    for (transport, credits) in transports.all().zip(demands.credits) {
        warnings.extend(credits.then(|| credits_astray(transport, scheme)).flatten());
    }
    for (transport, requirements) in transports.all().zip(demands.requirements) {
        warnings.extend(choices_amiss(transport, requirements, scheme, fabric));
        warnings.extend(no_trimming(transport, requirements, fabric));
    }
    let tables = match transports {
        TransportsSpec::One(_) => vec!["transport".to_owned()],
        TransportsSpec::Several(several) => {
            (0..several.len()).map(|number| format!("transport[{number}]")).collect()
        }
    };
    for (table, asked) in tables.iter().zip(demands.paths) {
        warnings.extend(too_many_paths(table, asked, fabric));
    }
    warnings.extend(out_of_proportion(fabric, demands.full_bytes, demands.uses_ecn));
    warnings
}

/// Says that data may not come back the way that its credit went, if so.
fn credits_astray(transport: &TransportSpec, scheme: &SchemeSpec) -> Option<String> {
    let symmetric = matches!(scheme, SchemeSpec::Ecmp(params) if params.hash == HashSeed::Symmetric);
    (!symmetric).then(|| {
        let found = scheme.name();
        format!(
            "with the load balancer {found}, data may not retrace the path of its credit, which {} counts on: \
             scheme.name = \"ecmp\" with scheme.hash = \"symmetric\" does",
            transport.name()
        )
    })
}

/// Says that a load balancer does not choose as a transport counts on, if so. A reference is no
/// choice of anybody, and where there is one path, nobody chooses.
fn choices_amiss(
    transport: &TransportSpec,
    requirements: Requirements,
    scheme: &SchemeSpec,
    fabric: &Fabric,
) -> Option<String> {
    let (name, found) = (transport.name(), scheme.name());
    let sprays = scheme.order().map(|order| order == Order::Sprays);
    let goes_by_hashes = matches!(scheme, SchemeSpec::Ecmp(_) | SchemeSpec::Wcmp(_));
    let said = match requirements.ways {
        _ if scheme.is_reference() => return None,
        PathRequirement::InOrder if sprays == Some(true) => format!(
            "the load balancer sprays, and {name} takes the packets of a flow in order alone: what overtakes is sent again, with all \
             that follows"
        ),
        PathRequirement::Many if sprays == Some(false) => format!(
            "the load balancer does not spray, which {name} counts on: all packets of a flow wait in the queues of one path at a time"
        ),
        PathRequirement::Hashed if !goes_by_hashes => format!(
            "with the load balancer {found}, packets do not keep to the paths that {name} chooses by what switches hash: \
             scheme.name = \"ecmp\" or \"wcmp\" go by it"
        ),
        _ => return None,
    };
    // To look for ways takes time, so last.
    let topology = fabric.topology.at_its_best(&fabric.faults);
    (Routes::at_start(&topology).most_choices(&topology) > 0).then_some(said)
}

/// Says that full queues lose packets of a transport that counts on hearing of each, if so.
fn no_trimming(transport: &TransportSpec, requirements: Requirements, fabric: &Fabric) -> Option<String> {
    let topology = &fabric.topology;
    (requirements.trimming && !topology.trims() && !topology.pauses()).then(|| {
        format!(
            "no queue of a switch trims, which {} counts on: what a full queue drops is sent again only when its time is up",
            transport.name()
        )
    })
}

/// Says that more paths are asked for than lead from any rack to another, if so.
fn too_many_paths(table: &str, asked: u8, fabric: &Fabric) -> Option<String> {
    if asked == 1 || asked == u8::MAX {
        return None;
    }
    let topology = fabric.topology.at_its_best(&fabric.faults);
    let most = Routes::at_start(&topology).most_routes(&topology);
    (u32::from(asked) > most).then(|| {
        let paths = if most == 1 { "1 path leads".to_owned() } else { format!("{most} paths lead") };
        format!("{table}.paths is {asked}, but {paths} from one rack to another at most: {most} used")
    })
}

/// Says that paths cannot be told apart, if some of them cannot and the run counts them.
pub(crate) fn paths_alike(run: &RunSpec, fabric: &Fabric) -> Option<String> {
    run.paths_of?;
    let topology = fabric.topology.at_its_best(&fabric.faults);
    let choices = Routes::at_start(&topology).most_choices(&topology);
    let base = topology.trail_base();
    let trails = u64::from(base).checked_pow(choices);
    trails.is_none_or(|trails| trails > u64::from(Packet::LONG_TRAIL)).then(|| {
        format!(
            "run.paths_of: with {choices} choices on a path, at switches of up to {} ports, some paths are counted as one",
            base - 1
        )
    })
}

/// Says which faults begin after the end of the run, and so never happen.
pub(crate) fn late_faults(spans: &[FaultSpan], end: Time) -> Vec<String> {
    let late = spans.iter().enumerate().filter(|(_, span)| span.from > end);
    let told = |(number, span): (usize, &FaultSpan)| {
        let [from, end] = [span.from, end].map(|time| time.since(Time::ZERO).rounded());
        format!("fabric.fault[{number}] begins at {from}, and the run ended at {end}: it never happened")
    };
    late.map(told).collect()
}

/// Says that the run was too long for the interval that was asked for, if it was.
pub(crate) fn coarser_samples(asked: Option<Span>, every: Option<Span>) -> Option<String> {
    let (asked, every) = (asked?, every?);
    (every > asked).then(|| {
        format!(
            "run.sample_every: samples are {} µs apart, not {} µs: a run keeps {MOST_ROWS} rows or so",
            every.as_us(),
            asked.as_us()
        )
    })
}

#[cfg(test)]
mod tests {
    use weft_units::Time;

    use super::late_faults;
    use crate::{Prepared, SpecSource};

    #[test]
    fn faults_after_the_end_are_warned_of() {
        let faults = "[{ link = 'leaf0-spine1', down = true, at = '1us' }, { link = 'leaf0-spine1', down = true, at = '100s' }]";
        let source = SpecSource::from_text("[traffic]\nflows = 2").with("fabric.fault", faults);
        let spans = Prepared::new(&source).unwrap().fabric.spans;
        assert_eq!(
            late_faults(&spans, Time::from_ps(316_570_257)),
            ["fabric.fault[1] begins at 100 s, and the run ended at 317 µs: it never happened"]
        );
    }

    fn warnings(keys: &[(&str, &str)]) -> Vec<String> {
        let text = "[fabric]\nkind = \"fat-tree\"\nk = 4\n[traffic]\nsize = \"20KB\"\nload = 0.4\nflows = 20\n\
                    [transport]\nname = \"maxpass\"\n[scheme]\nname = \"ecmp\"\nhash = \"symmetric\"\n";
        let source =
            keys.iter().fold(SpecSource::from_text(text), |source, (key, value)| source.with(key, value));
        Prepared::new(&source).unwrap().fabric.warnings
    }

    #[test]
    fn more_paths_than_there_are_are_warned_of_once_and_not_where_nobody_asked() {
        assert_eq!(
            warnings(&[("transport.paths", "6")]),
            ["transport.paths is 6, but 4 paths lead from one rack to another at most: 4 used"]
        );
        assert_eq!(warnings(&[("transport.paths", "4")]), Vec::<String>::new());
        assert_eq!(warnings(&[]), Vec::<String>::new());
    }

    #[test]
    fn paths_that_are_counted_as_one_are_warned_of_where_somebody_counts() {
        // A fat-tree has two choices on a path: switches of 254 ports are told apart.
        let wide = "{ kind = \"fat-tree\", k = 4, hosts_per_edge = 300 }";
        let found = warnings(&[("fabric", wide), ("run.paths_of", "0B")]);
        assert!(found.len() == 1 && found[0].starts_with("run.paths_of: with 2 choices"), "{found:?}");
        assert_eq!(warnings(&[("fabric", wide)]), Vec::<String>::new());
        assert_eq!(warnings(&[("run.paths_of", "0B")]), Vec::<String>::new());
    }

    const SPRAYED: &str = "the load balancer sprays, and roce takes";
    const ONE_PATH: &str = "the load balancer does not spray, which uec counts on";
    const UNTRIMMED: &str = "no queue of a switch trims, which uec counts on";

    /// Whether these are the beginnings of the warnings of a spec with these keys.
    fn begin(keys: &[(&str, &str)], beginnings: &[&str]) {
        let found = warnings(keys);
        let fit = found.iter().zip(beginnings).all(|(text, beginning)| text.starts_with(beginning));
        assert!(found.len() == beginnings.len() && fit, "{keys:?}: {found:?}");
    }

    #[test]
    fn roce_is_warned_of_schemes_that_spray_and_uec_of_all_others() {
        let of_switches = "{ scheduler = 'strict', class = [{ holds = ['trimmed', 'acks', 'notifications', 'schemes'] }, \
            { holds = ['unknown', 'short', 'long', 'best-effort'], trim = '64B' }] }";
        let trims = ("fabric.switch_queue", of_switches);
        let run = |transport, scheme, beginnings: &[&str]| {
            begin(&[("transport", transport), ("scheme", scheme), trims], beginnings);
        };
        for scheme in ["ecmp", "letflow", "conweave", "flowcut", "ar:mode=flowlet"] {
            run("roce", scheme, &[]);
            run("uec", scheme, &[ONE_PATH]);
        }
        for scheme in ["rps", "ar", "reps"] {
            run("roce", scheme, &[SPRAYED]);
            run("uec", scheme, &[]);
        }
        for transport in ["irn", "swift", "dctcp"] {
            run(transport, "rps", &[]);
            run(transport, "ecmp", &[]);
        }
        // A reference is nobody's choice.
        run("roce", "oracle", &[]);
        run("uec", "oracle", &[]);
    }

    #[test]
    fn where_there_is_one_path_no_load_balancer_is_warned_of() {
        let one = ("fabric", "{ kind = \"leaf-spine\", leaves = 2, spines = 1, hosts_per_leaf = 4 }");
        begin(&[one, ("transport", "roce"), ("scheme", "rps")], &[]);
        begin(&[one, ("transport", "uec"), ("scheme", "ecmp")], &[UNTRIMMED]);
    }

    #[test]
    fn queues_that_lose_packets_unheard_are_warned_of_under_uec() {
        let uec = [("transport", "uec"), ("scheme", "reps")];
        begin(&uec, &[UNTRIMMED]);
        let lossless = [("fabric.switch_queue.lossless", "true"), ("fabric.shared_buffer.size", "1MB")];
        begin(&[uec, lossless].concat(), &[]);
        begin(&[("transport", "irn"), ("scheme", "reps")], &[]);
    }

    #[test]
    fn credits_that_data_does_not_retrace_are_warned_of() {
        let found = warnings(&[("scheme.hash", "shared")]);
        assert!(found.len() == 1 && found[0].contains("scheme.hash = \"symmetric\""), "{found:?}");
    }

    #[test]
    fn paths_that_a_transport_chooses_and_packets_do_not_keep_to_are_warned_of() {
        let with = |scheme: &str| {
            warnings(&[
                ("transport", "{ name = \"mprdma\" }"),
                ("scheme", &format!("{{ name = \"{scheme}\" }}")),
            ])
        };
        let found = with("reps");
        assert!(found.len() == 1 && found[0].contains("paths that mprdma chooses"), "{found:?}");
        assert_eq!(with("ecmp"), Vec::<String>::new());
        assert_eq!(with("wcmp"), Vec::<String>::new());
        assert_eq!(with("oracle"), Vec::<String>::new(), "a reference is nobody's choice");
    }
}
