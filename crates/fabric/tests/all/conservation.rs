//! Whatever the fabric, the faults, the transport and the scheme: no packet is lost sight of, no
//! flow beats its ideal, and a second run, in any number of partitions, is the same run.

use proptest::prelude::*;
use weft_balance::schemes;
use weft_fabric::{ClassTotals, DropCause, HostCpuSpec, Results, identities};
use weft_packet::Class;
use weft_topology::{Fabric, Tier, fabrics};
use weft_traffic::Flow;
use weft_transport::TransportSpec;
use weft_units::Span;

use crate::any_graph::{any_graph, with_graph};
use crate::common::{Run, cases, done_as, fabric, flow};

/// Names of a registry, each with parameters to try: such that everything that it can do happens
/// within 300 us.
type Variants = &'static [(&'static str, &'static [&'static str])];

const TRANSPORTS: Variants = &[
    ("tcp", &["", "sack = true\nack_every = 2", "sack = true\nrack = true"]),
    ("dctcp", &["", "handshake = true", "reorder_hold = '20us'\nreorder_segments = 8\nack_every = 2"]),
    ("expresspass", &["", "credit_spread = '8B'\nretransmit_timeout = '1ms'"]),
    (
        "mptcp",
        &[
            "",
            "subflows = 4\ncoupling = 'olia'\nscheduler = 'lowest-rtt'",
            "subflows = 3\nsack = true\necn = 'dctcp'\nhandshake = true\nack_every = 2",
        ],
    ),
    (
        "maxpass",
        &["", "keep = 4\nreselect_after = 1\nsingle_below = 9\ncut = 'as-printed'\ngrowth = 'as-printed'"],
    ),
    (
        "roce",
        &[
            "timeout = '100us'",
            "profile = 'conweave-ns3'\ntimeout = '60us'",
            "profile = 'nvidia'\ntimeout = '80us'\nwindow = '8KB'\nack_every = 4\nmtu = '4KiB'",
            "dcqcn = false\ntimeout = '100us'",
        ],
    ),
    ("uec", &["rto = '60us'", "profile = 'uet-htsim'\nmtu = '1000B'\nrto = '100us'\nack_bytes = '3KB'"]),
    (
        "mprdma",
        &[
            "rto = '60us'",
            "rto = '100us'\nbitmap = 16\ndelta = 4\npaths = 5\nprobe = 0.5\ninitial_window = 40",
            "rto = '80us'\nearly_retransmission = false\nburst = 1\nloss_cut = 0.5",
        ],
    ),
    (
        "swift",
        &[
            "rto = '60us'",
            "rto = '100us'\nbase_target = '5us'\nhops = 0\nscaling_range = '0us'\nmin_window = 0.25",
        ],
    ),
    ("irn", &["", "dcqcn = true\nack_every = 3", "profile = 'conweave-ns3'\nbdp_cap = '5KB'"]),
];

const SCHEMES: Variants = &[
    ("ecmp", &["", "hash = 'symmetric'"]),
    ("wcmp", &[""]),
    ("rps", &[""]),
    ("letflow", &["gap = '5us'"]),
    ("drill", &["", "d = 3\nm = 2", "length = 'waiting'"]),
    ("tr", &["long_after = '20KB'\nrtt = '20us'\nentries = 8"]),
    ("qall", &["update = '2us'\nrecirculation = '1us'\ntime_constant = '50us'\ntick = '10ns'"]),
    ("qall-poly", &["form = 'poly3'\ngranularity = 'flowlet'\ngap = '5us'\nupdate = '1ns'"]),
    ("lbt", &["long_after = '8KB'\nrefresh = '20us'\nentries = 16"]),
    ("conga", &["gap = '5us'"]),
    ("hula", &["gap = '5us'\ninterval = '10us'\ntau = '20us'\nt_fail = '30us'"]),
    ("ar", &["", "grades = 0", "mode = 'flowlet'\ngap = '5us'\nrebalance = 1\nentries = 16\nfull = '20KB'"]),
    (
        "conweave",
        &[
            "reply_extra = '0us'\nresume_default = '20us'\nresume_extra = '2us'\ninactive = '30us'\nqueues = 2",
            "reply_extra = '0us'\npath_busy = '1us'\nabove = 2\nwhen_full = 'refuse'\nqueues = 1\nentries = 4",
        ],
    ),
    ("flowcut", &["", "ratio = 1.1\nleast = '0B'\nalpha = 1.0\nforget = '60us'"]),
    ("ofan", &["", "small = '0B'\nmerge = 'rack'"]),
    ("drb", &[""]),
    ("oblivious", &["", "entropies = 16\norder = 'permutation'"]),
    ("bitmap", &["", "entropies = 8\ntimeout = 0"]),
    (
        "reps",
        &[
            "freeze_for = '50us'",
            "entropies = 16\nbuffer = 2\nfreeze = 'quiet-timeouts'\nlook_back = '20us'\nfreeze_for = '80us'\nexplore_every = 1",
        ],
    ),
    ("flowbender", &[""]),
    (
        "hedera",
        &[
            "interval = '100us'\ncontrol_delay = '30us'\nlarge = 0.01",
            "interval = '60us'\ncontrol_delay = '30us'\nlarge = 0.01\nplacement = 'annealing'\nsteps = 20",
        ],
    ),
    (
        "meet",
        &[
            "gap = '5us'\nupdate = '20us'\nprobe = '10us'\nwindow = '30us'\nproxy_timeout = '40us'",
            "gap = '5us'\nupdate = '20us'\nprobe = '10us'\nwindow = '30us'\nprober = 'proxy'",
        ],
    ),
    ("plb", &["idle_rounds = 1\nforced_rounds = 2\ncongested_share = 0.1"]),
    ("presto", &["flowcell = '3KB'", "flowcell = '3KB'\nreorder = false"]),
    (
        "clove",
        &[
            "gap = '5us'\nrediscover = '100us'\ntrace_timeout = '60us'\ncandidates = 24",
            "mode = 'edge-flowlet'\ngap = '5us'\nscope = 'host'",
            "at = 'leaf'\ngap = '5us'\nrediscover = '100us'\ntrace_timeout = '60us'\ncandidates = 24\nentries = 64",
        ],
    ),
    (
        "hermes",
        &[
            "reroute_after = '3KB'\nreroute_probability = 1.0\nwindow = '50us'\nfailed_for = '2ms'\nblackhole_timeouts = 1",
            "ecn = false\nprobe_interval = '100us'\nsamples = 1\nreroute_after = '3KB'\none_hop_delay = '2us'",
        ],
    ),
    ("oracle", &["", "hold = '3us'", "hold = '0us'", "kind = 'pooled'"]),
];

/// A registered name with parameters of the list; every name and all of its parameters get their
/// turn.
fn any_of(registered: Vec<&'static str>, variants: Variants) -> impl Strategy<Value = String> {
    let tables = registered.into_iter().flat_map(|name| {
        let known = variants.iter().find(|(known, _)| *known == name);
        let (_, parameters) = known.unwrap_or_else(|| {
            panic!("{name} is registered: add a row with parameters for it to the list above")
        });
        parameters.iter().map(move |parameters| format!("name = '{name}'\n{parameters}"))
    });
    prop::sample::select(tables.collect::<Vec<_>>())
}

fn any_transport() -> impl Strategy<Value = String> {
    any_of(TransportSpec::list().iter().map(|info| info.name).collect(), TRANSPORTS)
}

fn any_scheme() -> impl Strategy<Value = String> {
    any_of(schemes().iter().map(|info| info.name).collect(), SCHEMES)
}

/// A fabric of this registered kind.
fn of_kind(kind: &str) -> BoxedStrategy<String> {
    match kind {
        "leaf-spine" => (1u32..4, 1u32..4, 1u32..4, 1u32..3, prop::sample::select(vec![1u32, 10, 25]))
            .prop_filter("two hosts at least", |(leaves, _, hosts, ..)| leaves * hosts >= 2)
            .prop_map(|(leaves, spines, hosts, parallel, rate)| {
                format!(
                    "leaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
                     links_per_pair = {parallel}\nfabric_rate = '{rate}Gbps'\n"
                )
            })
            .boxed(),
        "fat-tree" => (1u32..3, 1u32..3)
            .prop_map(|(half, hosts)| format!("k = {}\nhosts_per_edge = {hosts}\n", 2 * half))
            .boxed(),
        "rail" => (1u32..3, 1u32..3, 1u32..4, 1u32..3)
            .prop_filter("two hosts at least", |(groups, per_group, gpus, _)| groups * per_group * gpus >= 2)
            .prop_map(|(groups, per_group, gpus, spines)| {
                let servers = groups * per_group;
                format!(
                    "servers = {servers}\nservers_per_group = {per_group}\ngpus = {gpus}\nspines = {spines}\n\
                     host_rate = '10Gbps'\nfabric_rate = '10Gbps'\n"
                )
            })
            .boxed(),
        other => panic!("{other} is registered: say here what its parameters may be"),
    }
}

/// Keys of a fabric, and the file of one that is a graph.
fn any_fabric() -> impl Strategy<Value = (String, Option<String>)> {
    let kinds = fabrics().iter().map(|info| match info.name {
        "graph" => any_graph().prop_map(|graph| (String::new(), Some(graph))).boxed(),
        name => of_kind(name).prop_map(move |keys| (format!("kind = '{name}'\n{keys}"), None)).boxed(),
    });
    let buffer = prop::sample::select(vec!["'8KB'", "'12packets'", "'375KB'", "'unlimited'"]);
    let parts = (prop::strategy::Union::new(kinds), buffer, any_classes(), any_software());
    parts.prop_map(|((fabric, graph), buffer, classes, software)| {
        // A switch that is a program keeps packets in queues of its own.
        let has_memory = classes.contains("[shared_buffer]") || classes.contains("lossless");
        let software = if has_memory { "" } else { software };
        // One queue that is lossless takes no limit.
        let buffer = if classes.starts_with("lossless") { "'unlimited'" } else { buffer };
        (format!("{fabric}{software}[switch_queue]\nbuffer = {buffer}\nmark = '5KB'\n{classes}"), graph)
    })
}

/// One queue, or several under each scheduler, at switches and hosts; of a buffer of their own, or
/// of a memory that ports share, lossless or not. Schemes' packets are with those of flows or not.
fn any_classes() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "",
        "scheduler = 'strict'\n[[switch_queue.class]]\nholds = ['schemes']\nbuffer = '2packets'\n\
         [[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\n",
        "scheduler = 'weighted'\n[[switch_queue.class]]\nholds = ['unknown']\nweight = 2\n\
         [[switch_queue.class]]\nholds = ['short', 'long', 'best-effort', 'schemes']\nmark = 'never'\n\
         [host_queue]\nscheduler = 'strict'\n[[host_queue.class]]\nholds = ['short', 'long', 'best-effort']\n\
         [[host_queue.class]]\nholds = ['unknown']\n",
        "scheduler = 'strict'\n[[switch_queue.class]]\nholds = ['acks', 'notifications', 'trimmed', 'schemes']\nmark = 'never'\n\
         [[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\ntrim = '64B'\nmark_at = 'departure'\n",
        "[shared_buffer]\nsize = '60KB'\n",
        "lossless = true\n[pause]\nxoff = '6KB'\nhysteresis = '2KB'\n",
        "scheduler = 'strict'\n[[switch_queue.class]]\nholds = ['acks', 'notifications', 'trimmed', 'schemes']\nmark = 'never'\n\
         [[switch_queue.class]]\nholds = ['short', 'long']\nlossless = true\n\
         [[switch_queue.class]]\nholds = ['unknown', 'best-effort']\n\
         [shared_buffer]\nsize = '16MB'\nalpha = 0.001\n[pause]\nxoff = '4KB'\nresponse = '1us'\n",
        "scheduler = 'weighted'\n[[switch_queue.class]]\nholds = ['unknown', 'long', 'schemes']\nlossless = true\n\
         [[switch_queue.class]]\nholds = ['short']\nlossless = true\nweight = 3\n\
         [[switch_queue.class]]\nholds = ['best-effort', 'trimmed']\ntrim = '64B'\n\
         [shared_buffer]\nsize = '16MB'\nalpha = 0.002\n[pause]\nxoff = '3KB'\nhysteresis = '0B'\n",
        "scheduler = 'weighted'\n[[switch_queue.class]]\nholds = ['tc7', 'schemes']\nlossless = true\n\
         [[switch_queue.class]]\nholds = ['tc6']\nlossless = true\nweight = 2\n\
         [[switch_queue.class]]\nholds = ['tc5']\nlossless = true\nweight = 3\n\
         [[switch_queue.class]]\nholds = ['tc4', 'acks']\nlossless = true\n\
         [[switch_queue.class]]\nholds = ['best-effort']\n[[switch_queue.class]]\nholds = ['long']\nlossless = true\n\
         [[switch_queue.class]]\nholds = ['short']\n[[switch_queue.class]]\nholds = ['unknown']\nlossless = true\n\
         [shared_buffer]\nsize = '16MB'\nalpha = 0.002\n[pause]\nxoff = '3KB'\n",
    ])
}

/// Switches that forward whatever comes, or are programs.
fn any_software() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "",
        "",
        "[software_switch]\nforwarding_rate = '1Mpps'\ninput_queue = 20\n",
        "[software_switch]\nforwarding_rate = '3Mpps'\nforwarding_per_byte = '500ps'\nport_rate = '700Kpps'\n",
        "[software_switch]\nport_rate = '1Mpps'\n",
    ])
}

/// Hosts that take no time, or whose cards and CPUs do.
fn any_machine() -> impl Strategy<Value = Option<HostCpuSpec>> {
    let moderated = HostCpuSpec {
        receive_offload: true,
        interrupt_delay: Span::from_us(8),
        interrupt_packets: 5,
        ..HostCpuSpec::default()
    };
    let slow = HostCpuSpec {
        receive_ring: 30,
        cpu_per_packet: Span::from_ns(400),
        cpu_per_byte: Span::from_ps(100),
        ..HostCpuSpec::default()
    };
    let both = HostCpuSpec { receive_offload: true, interrupt_delay: Span::from_us(3), ..slow };
    prop::sample::select(vec![None, None, None, Some(moderated), Some(slow), Some(both)])
}

fn any_fault() -> impl Strategy<Value = String> {
    let effect = prop::sample::select(vec![
        "",
        "[[fault]]\nshare = 0.5\nloss = 0.1\n",
        "[[fault]]\nshare = 0.4\nat = '30us'\nuntil = '400us'\ndown = true\n",
        "[[fault]]\nshare = 0.5\nat = '20us'\nuntil = '90us'\nrate = '100Mbps'\ndelay = '7us'\n",
        "[[fault]]\nshare = 0.5\nat = '20us'\nrate = '100Mbps'\ndelay = '7us'\n",
        "[[fault]]\nshare = 1.0\nat = '20us'\nuntil = '60us'\ndelay = '30us'\n",
        "[[fault]]\nshare = 0.3\nblackhole = 0.5\n",
    ]);
    prop::collection::vec(effect, 0..3).prop_map(|faults| faults.concat())
}

fn any_flows() -> impl Strategy<Value = Vec<(u64, u16, u16, u64)>> {
    prop::collection::vec((0u64..100, any::<u16>(), any::<u16>(), 1u64..200_000), 1..25)
}

/// Packets left by class, for the classes that ports of hosts have as those of switches do: packets
/// that came into the fabric in it, without those that hosts got, that ports dropped, and that were
/// cut and went on in another class. The rest is on its way, or was lost on a link. None of a class
/// in which switches send packets of their own.
fn left_by_class(fabric: &Fabric, results: &Results) -> Vec<Option<i64>> {
    let links = &fabric.topology.links;
    let of_tier =
        |tier: Tier| links.iter().find(|link| link.tier == tier).and_then(|link| link.classes.as_ref());
    let Some(classes) = of_tier(Tier::Host).filter(|own| of_tier(Tier::Last) == Some(own)) else {
        return Vec::new();
    };
    let sorting = classes.sorting;
    let of_class = |class: u8| {
        let mut left = 0;
        for of_port in &results.classes {
            let ClassTotals { packets, dropped, trimmed, .. } = of_port.totals;
            let (packets, dropped, trimmed) =
                (packets.cast_signed(), dropped.cast_signed(), trimmed.cast_signed());
            let is_own = of_port.class == class;
            match links[of_port.link as usize].tier {
                Tier::Host if is_own => left += packets,
                Tier::Last if is_own => left -= packets + dropped,
                Tier::Leaf | Tier::Spine if is_own => left -= dropped,
                _ => {}
            }
            // A header comes to the port in the class that holds headers, if any does, or in its
            // own.
            let apart = sorting.trimmed.filter(|holder| *holder != of_port.class);
            left += apart.map_or(0, |holder| trimmed * (i64::from(holder == class) - i64::from(is_own)));
        }
        (sorting.schemes != class).then_some(left)
    };
    (0..classes.classes.len() as u8).map(of_class).collect()
}

fn lacked_headroom(results: &Results) -> bool {
    results.losses.iter().any(|loss| loss.cause == DropCause::Headroom)
}

/// A packet of 4 KB that began at 100 Mbit/s takes 340 us, and keeps a pause waiting for so long,
/// though the cable is fast again and the other direction brings 40 KB at 1 Gbit/s meanwhile.
#[test]
fn headroom_is_for_a_pause_behind_a_packet_that_began_before_its_cable_was_fast_again() {
    let text = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 1\nlinks_per_pair = 2\nfabric_rate = '1Gbps'\n\
        [switch_queue]\nbuffer = '12packets'\nmark = '5KB'\nscheduler = 'weighted'\n\
        [[switch_queue.class]]\nholds = ['tc7', 'schemes']\nlossless = true\n\
        [[switch_queue.class]]\nholds = ['tc6']\nlossless = true\nweight = 2\n\
        [[switch_queue.class]]\nholds = ['tc5']\nlossless = true\nweight = 3\n\
        [[switch_queue.class]]\nholds = ['tc4', 'acks']\nlossless = true\n\
        [[switch_queue.class]]\nholds = ['best-effort']\n[[switch_queue.class]]\nholds = ['long']\nlossless = true\n\
        [[switch_queue.class]]\nholds = ['short']\n[[switch_queue.class]]\nholds = ['unknown']\nlossless = true\n\
        [shared_buffer]\nsize = '16MB'\nalpha = 0.002\n[pause]\nxoff = '3KB'\n\
        [[fault]]\nshare = 0.5\nat = '20us'\nuntil = '90us'\nrate = '100Mbps'\ndelay = '7us'\n";
    let fabric = fabric(text);
    let flow = Flow { class: Class::Long, ..flow(0, 1, 0, 125_410) };
    let clove = "name = 'clove'\nmode = 'edge-flowlet'\ngap = '5us'\nscope = 'host'";
    let run =
        Run { time_limit: Span::from_ms(300), ..Run::new(&fabric, "name = 'uec'\nrto = '60us'", clove) };
    assert!(!lacked_headroom(&run.flows(&[flow])));
}

/// Presto holds packets that come too early. Those of all hosts of a partition come to one place
/// that knows how long pauses kept the last one: for one that was held until nothing else had come,
/// it still did.
#[test]
fn what_pauses_took_of_packets_that_are_held_at_hosts_is_the_same_in_groups() {
    let text = "kind = 'rail'\nservers = 1\nservers_per_group = 1\ngpus = 2\nspines = 2\nhost_rate = '10Gbps'\n\
        fabric_rate = '10Gbps'\n[switch_queue]\nmark = '5KB'\nlossless = true\n\
        [pause]\nxoff = '6KB'\nhysteresis = '2KB'\n\
        [[fault]]\nshare = 0.5\nat = '20us'\nrate = '100Mbps'\ndelay = '7us'\n";
    let fabric = fabric(text);
    let flows =
        [(5, 1, 24_671), (35, 0, 68_620), (36, 0, 1_000), (49, 0, 43_051)].map(|(start, src, bytes)| Flow {
            class: Class::from_bits((bytes % 8) as u8),
            ..flow(start, src, 1 - src, bytes)
        });
    let machine = Some(HostCpuSpec {
        receive_ring: 30,
        cpu_per_packet: Span::from_ns(400),
        cpu_per_byte: Span::from_ps(100),
        ..HostCpuSpec::default()
    });
    let presto = "name = 'presto'\nflowcell = '3KB'";
    let run = Run { time_limit: Span::from_ms(40), machine, ..Run::new(&fabric, "name = 'tcp'", presto) };
    let results = run.flows(&flows);
    assert!(results.flows.iter().any(|record| record.fct_breakdown.pause > Span::ZERO));
    let again = Run { partitions: 2, ..run }.flows(&flows);
    assert_eq!(done_as(again, &results), results);
}

/// Random inputs of a run, but for whether samples are taken: they keep lists of queues that are
/// not kept otherwise.
#[derive(Debug)]
struct Drawn {
    fabric_text: String,
    graph: Option<String>,
    faults: String,
    flows: Vec<(u64, u16, u16, u64)>,
    transport: String,
    scheme: String,
    partitions: usize,
    machine: Option<HostCpuSpec>,
}

fn any_run() -> impl Strategy<Value = Drawn> {
    let parts =
        (any_fabric(), any_fault(), any_flows(), any_transport(), any_scheme(), 1usize..9, any_machine());
    parts.prop_map(|((fabric_text, graph), faults, flows, transport, scheme, partitions, machine)| Drawn {
        fabric_text,
        graph,
        faults,
        flows,
        transport,
        scheme,
        partitions,
        machine,
    })
}

fn assert_accounted(drawn: Drawn, sample_every: Option<Span>) -> Result<(), TestCaseError> {
    let Drawn { fabric_text, graph, faults, flows: raw, transport, scheme, partitions, machine } = drawn;
    let keys = format!("{fabric_text}{faults}");
    let fabric = match graph {
        Some(graph) => with_graph(&keys, &graph).unwrap(),
        None => fabric(&keys),
    };
    let hosts = fabric.topology.hosts as u16;
    let mut flows: Vec<Flow> = raw
        .into_iter()
        .map(|(start, src, offset, size)| {
            let src = src % hosts;
            let class = Class::from_bits((size % 8) as u8);
            Flow { class, ..flow(start, src, (src + 1 + offset % (hosts - 1)) % hosts, size) }
        })
        .collect();
    flows.sort_by_key(|flow| flow.start);
    // Timeouts of 5 ms and their first doublings are within it; what never ends goes on in the same
    // way.
    let time_limit = Span::from_ms(40);
    let run = Run { time_limit, sample_every, machine, ..Run::new(&fabric, &transport, &scheme) };
    let results = run.flows(&flows);
    for (record, flow) in results.flows.iter().zip(&flows) {
        let wrong = identities::of_flow(flow, record, results.end, true);
        prop_assert!(wrong.is_empty(), "{:?}", wrong);
        prop_assert!(record.sender.nacks <= record.receiver.nacks_sent);
    }
    let cut_by_classes: u64 = results.classes.iter().map(|class| class.totals.trimmed).sum();
    let cut_of_flows: u64 = results.flows.iter().map(|record| u64::from(record.trimmed)).sum();
    prop_assert_eq!(cut_of_flows, cut_by_classes, "whatever a class cuts is of one flow");
    let left: Vec<i64> = left_by_class(&fabric, &results).into_iter().flatten().collect();
    let refused =
        |cause: DropCause| matches!(cause, DropCause::Queue | DropCause::SharedBuffer | DropCause::Headroom);
    let lost = results.losses.iter().filter(|loss| !refused(loss.cause)).map(|loss| loss.packets);
    let on_way = results.in_flight + lost.sum::<u64>();
    prop_assert!(left.iter().all(|&left| left >= 0), "{:?}", left);
    prop_assert!(left.iter().sum::<i64>() <= on_way.cast_signed(), "{:?} where {} are left", left, on_way);
    // Where a pause is on a cable that fails, what comes after it finds no room.
    prop_assert!(faults.contains("down") || !lacked_headroom(&results), "a lossless class lost");
    let again = Run { partitions, ..run }.flows(&flows);
    prop_assert_eq!(done_as(again, &results), results);
    Ok(())
}

// Two tests each, so that two cores work on them.
proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn every_packet_is_accounted_for_and_groups_leave_no_trace(drawn in any_run()) {
        assert_accounted(drawn, None)?;
    }

    #[test]
    fn every_packet_is_accounted_for_where_samples_are_taken(drawn in any_run()) {
        assert_accounted(drawn, Some(Span::from_us(7)))?;
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    #[ignore = "nightly"]
    fn nightly_more_runs_account_for_every_packet(drawn in any_run()) {
        assert_accounted(drawn, None)?;
    }

    #[test]
    #[ignore = "nightly"]
    fn nightly_more_runs_with_samples_account_for_every_packet(drawn in any_run()) {
        assert_accounted(drawn, Some(Span::from_us(7)))?;
    }
}
