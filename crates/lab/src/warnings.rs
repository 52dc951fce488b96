//! What a run can do, but hardly means.

use weft_balance::BalancerSpec;
use weft_balance::switch::ecmp::HashSeed;
use weft_packet::Packet;
use weft_topology::{Fabric, Routes};
use weft_transport::{Multipath, Protocol, TransportSpec, Transports, TransportsSpec, Visitor};

use crate::spec::RunSpec;

/// What of transports may go ill with a fabric or a load balancer, by number.
struct Demands {
    /// Whether credits come before data.
    credits: Vec<bool>,
    /// Paths of its own that each flow asks for; `u8::MAX` for all that there are.
    paths: Vec<u8>,
}

/// Asks transports what they demand.
struct Ask;

impl Visitor for Ask {
    type Output = Demands;

    fn visit<T: Transports + 'static>(self, transports: T) -> Demands {
        Demands {
            credits: transports.all().map(|transport| transport.credit_ports().is_some()).collect(),
            paths: transports.all().map(|transport| transport.five_tuples().apart()).collect(),
        }
    }
}

/// Whether ports have queues of credits beside data.
pub(crate) fn has_credit_ports(transports: &TransportsSpec) -> bool {
    transports.with_transports(Ask).is_ok_and(|demands| demands.credits.contains(&true))
}

/// Warnings about transports on this fabric with this load balancer. Their parameters were found good.
pub(crate) fn transport_warnings(
    transports: &TransportsSpec,
    balancer: &BalancerSpec,
    fabric: &Fabric,
) -> Vec<String> {
    let Ok(demands) = transports.with_transports(Ask) else { return Vec::new() };
    let mut warnings = Vec::new();
    for (transport, credits) in transports.all().zip(demands.credits) {
        warnings.extend(credits.then(|| credits_astray(transport, balancer)).flatten());
        warnings.extend(paths_not_its_own(transport, balancer));
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
    warnings
}

/// Says that data may not come back the way that its credit went, if so.
fn credits_astray(transport: &TransportSpec, balancer: &BalancerSpec) -> Option<String> {
    let symmetric = matches!(balancer, BalancerSpec::Ecmp(params) if params.hash == HashSeed::Symmetric);
    (!symmetric).then(|| {
        let found = balancer.name();
        format!(
            "with the load balancer {found}, data may not retrace the path of its credit, which {} counts on: \
             balancer.name = \"ecmp\" with balancer.hash = \"symmetric\" does",
            transport.name()
        )
    })
}

/// Says that a transport which chooses each packet's path, by what switches hash, does not choose it, if so.
fn paths_not_its_own(transport: &TransportSpec, balancer: &BalancerSpec) -> Option<String> {
    let goes_by_hashes = matches!(balancer, BalancerSpec::Ecmp(_) | BalancerSpec::Wcmp(_));
    (matches!(transport, TransportSpec::MpRdma(_)) && !goes_by_hashes).then(|| {
        let (found, name) = (balancer.name(), transport.name());
        format!(
            "with the load balancer {found}, packets do not keep to the paths that {name} chooses by what switches hash: \
             balancer.name = \"ecmp\" or \"wcmp\" go by it"
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

#[cfg(test)]
mod tests {
    use crate::{Prepared, SpecSource};

    fn warnings(keys: &[(&str, &str)]) -> Vec<String> {
        let text = "[fabric]\nkind = \"fat-tree\"\nk = 4\n[traffic]\nsize = \"20KB\"\nload = 0.4\nflows = 20\n\
                    [transport]\nname = \"maxpass\"\n[balancer]\nname = \"ecmp\"\nhash = \"symmetric\"\n";
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

    #[test]
    fn credits_that_data_does_not_retrace_are_warned_of() {
        let found = warnings(&[("balancer.hash", "shared")]);
        assert!(found.len() == 1 && found[0].contains("balancer.hash = \"symmetric\""), "{found:?}");
    }

    #[test]
    fn paths_that_a_transport_chooses_and_packets_do_not_keep_to_are_warned_of() {
        let with = |balancer: &str| {
            warnings(&[
                ("transport", "{ name = \"mprdma\" }"),
                ("balancer", &format!("{{ name = \"{balancer}\" }}")),
            ])
        };
        let found = with("reps");
        assert!(found.len() == 1 && found[0].contains("paths that mprdma chooses"), "{found:?}");
        assert_eq!(with("ecmp"), Vec::<String>::new());
        assert_eq!(with("wcmp"), Vec::<String>::new());
    }
}
