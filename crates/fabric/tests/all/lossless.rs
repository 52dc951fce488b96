//! Shared buffer, pauses and trimming, from the fabric's side.

use std::path::Path;

use crate::common::{Run, SMALL, done_as, fabric, flow, link_named};
use weft_fabric::{DropCause, Ending, InputError, Results, Simulation};
use weft_packet::Class;
use weft_topology::{Fabric, FabricSpec};
use weft_traffic::Flow;
use weft_units::Span;

/// A sender that keeps a window as large as it can, and learns of nothing but losses.
const GREEDY: &str = "name = 'tcp'\necn = 'off'\ninitial_window = 64";

/// One leaf pair of 65 hosts; memory of 2 MB.
fn incast_fabric(queue: &str) -> Fabric {
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 33\nhost_rate = '10Gbps'\nfabric_rate = '40Gbps'\n\
         [shared_buffer]\nsize = '2MB'\n{queue}"
    ))
}

const LOSSLESS: &str = "[pause]\nresponse = '500ns'\n[switch_queue]\nlossless = true\nmark = 'never'";

/// 64 hosts send 250 KB each to one, at once: 16 MB, eight times the memory.
fn incast() -> Vec<Flow> {
    (0..66).filter(|&host| host != 1 && host != 40).map(|host| flow(0, host, 1, 250_000)).collect()
}

fn dropped(results: &Results) -> u64 {
    results.packets.dropped
}

#[test]
fn an_incast_of_eight_times_the_memory_loses_not_one_packet_where_ports_are_paused_and_many_where_they_are_not()
 {
    let (lossless, lossy) = (incast_fabric(LOSSLESS), incast_fabric("[switch_queue]\nmark = 'never'"));
    let (results, ending) = Run::new(&lossless, GREEDY, "name = 'ecmp'").ending(&incast());
    assert_eq!((ending, dropped(&results)), (Ending::AllDone, 0));
    assert!(results.flows.iter().all(|flow| flow.sender.retransmissions == 0));
    assert!(results.pauses.iter().map(|pause| pause.totals.pauses).sum::<u64>() > 100);
    assert!(results.shared_buffers.iter().all(|memory| memory.largest_bytes <= 2_000_000));
    let without = Run::new(&lossy, GREEDY, "name = 'ecmp'").flows(&incast());
    assert!(dropped(&without) > 1_000 && without.pauses.is_empty());
    assert!(without.losses.iter().all(|loss| loss.cause == DropCause::SharedBuffer));
}

#[test]
fn a_pause_whose_end_a_failed_cable_lost_is_over_when_the_cable_is_back() {
    let fault = "[[fault]]\nlink = 'leaf1-spine0'\nat = '300us'\nuntil = '600us'\ndown = true\n";
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 6\nhost_rate = '10Gbps'\n\
         [switch_queue]\nlossless = true\n[pause]\nxoff = '20KB'\n{fault}"
    ));
    let flows: Vec<Flow> = (6..12).map(|host| flow(0, host, 0, 400_000)).collect();
    for transport in [GREEDY, "name = 'roce'"] {
        let run = Run { time_limit: Span::from_ms(200), ..Run::new(&fabric, transport, "name = 'ecmp'") };
        let (results, ending) = run.ending(&flows);
        assert_eq!(ending, Ending::AllDone, "{transport}");
        let refused = |cause: DropCause| {
            matches!(cause, DropCause::Queue | DropCause::SharedBuffer | DropCause::Headroom)
        };
        assert!(!results.losses.iter().any(|loss| refused(loss.cause)), "{:?}", results.losses);
        assert_eq!(done_as(Run { partitions: 3, ..run }.flows(&flows), &results), results);
    }
}

/// At 100 Gbit/s, where ports take as long to obey as the standard allows, eight times the memory
/// is offered by RDMA and by TCP, and what still comes fits in the headroom to the last byte.
#[test]
fn an_incast_of_eight_times_the_memory_at_100_gbit_loses_not_one_packet_of_rdma_and_of_tcp() {
    let fabric = |lossless: bool| {
        fabric(&format!(
            "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 33\nhost_rate = '100Gbps'\nfabric_rate = '400Gbps'\n\
             [shared_buffer]\nsize = '8MB'\n[switch_queue]\nmark = 'never'\nlossless = {lossless}"
        ))
    };
    // 64 MB.
    let flows: Vec<Flow> = incast().into_iter().map(|flow| Flow { size_bytes: 1_000_000, ..flow }).collect();
    for transport in ["name = 'roce'", "name = 'tcp'\necn = 'off'\ninitial_window = 700"] {
        let (with, without) = (fabric(true), fabric(false));
        let (results, ending) = Run::new(&with, transport, "name = 'ecmp'").ending(&flows);
        assert_eq!((ending, dropped(&results)), (Ending::AllDone, 0), "{transport}");
        assert!(results.flows.iter().all(|flow| flow.sender.retransmissions == 0), "{transport}");
        assert!(results.pauses.iter().map(|pause| pause.totals.pauses).sum::<u64>() > 100);
        let largest = results.shared_buffers.iter().map(|memory| memory.largest_bytes).max().unwrap();
        assert!((2_000_000..8_000_000).contains(&largest), "{transport}: {largest} bytes");
        let run = Run { time_limit: Span::from_ms(2), ..Run::new(&without, transport, "name = 'ecmp'") };
        assert!(dropped(&run.flows(&flows)) > 1_000, "{transport}");
    }
}

/// Schemes that write into headers what they see leave a queue leave pauses alone: to four racks'
/// hosts, from all others, nothing is lost.
#[test]
fn schemes_that_write_into_packets_leave_pauses_as_they_are() {
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\nhost_rate = '40Gbps'\nfabric_rate = '40Gbps'\n\
         [shared_buffer]\nsize = '2MB'\n{LOSSLESS}"
    ));
    let flows: Vec<Flow> = (0..32u16)
        .flat_map(|src| (1..4u16).map(move |by| flow(0, src, (src + by * 8) % 32, 400_000)))
        .collect();
    for scheme in ["ecmp", "conga", "conweave"] {
        let results = Run::new(&fabric, "name = 'roce'", &format!("name = '{scheme}'")).flows(&flows);
        assert_eq!(dropped(&results), 0, "{scheme}");
        assert!(!results.pauses.is_empty(), "{scheme}");
        assert!(results.flows.iter().all(|flow| flow.acknowledged.is_some()), "{scheme}");
    }
}

#[test]
fn pauses_are_blamed_on_what_the_incast_waits_for() {
    let fabric = incast_fabric(LOSSLESS);
    let results = Run::new(&fabric, GREEDY, "name = 'ecmp'").flows(&incast());
    let last = link_named(&fabric, "leaf0>host1") as u32;
    let leaf0 = fabric.topology.links[last as usize].from;
    for pause in &results.pauses {
        let (link, blamed) =
            (&fabric.topology.links[pause.link as usize], &fabric.topology.links[pause.blamed as usize]);
        assert_eq!(link.to, blamed.from, "whoever pauses blames a link of its own");
        if link.to == leaf0 {
            assert_eq!(pause.blamed, last);
        }
        assert!(pause.totals.longest <= pause.totals.paused && pause.totals.last <= results.end);
    }
    let into = results.pauses.iter().filter(|pause| pause.blamed == last);
    assert!(into.count() > 30, "each host of the leaf was paused, and some spines");
}

#[test]
fn a_pause_of_one_class_stops_no_other() {
    let classes = |text: &str| {
        format!(
            "{text}[switch_queue]\nmark = 'never'\nscheduler = 'strict'\n\
             [[switch_queue.class]]\nholds = ['short', 'acks']\n\
             [[switch_queue.class]]\nholds = ['unknown', 'long', 'best-effort']\nlossless = true"
        )
    };
    let fabric = incast_fabric(&classes("[pause]\nresponse = '500ns'\n"));
    let mut flows = incast();
    // From a host whose long flow is paused, to one that is not busy.
    flows.push(Flow { class: Class::Short, ..flow(500, 2, 40, 50_000) });
    let run = Run::new(&fabric, GREEDY, "name = 'ecmp'");
    let results = run.flows(&flows);
    assert_eq!(dropped(&results), 0);
    let short =
        results.flows[flows.len() - 1].delivered.expect("it ends").since(flows[flows.len() - 1].start);
    assert!(results.pauses.iter().all(|pause| pause.class == 1));
    let ideal = results.flows[flows.len() - 1].ideal;
    assert!(short.as_us() < 1.5 * ideal.as_us(), "{short} where {ideal} are possible");
    for class in &results.classes {
        let of_link = results.links[class.link as usize];
        assert!(class.totals.packets <= of_link.packets && class.totals.dropped == 0);
    }
}

#[test]
fn a_flow_that_goes_another_way_is_blocked_innocently_and_the_incast_is_not() {
    let fabric = incast_fabric(LOSSLESS);
    let mut flows = incast();
    // From the other leaf, by spines that are paused, to a host that is idle.
    flows.push(flow(300, 50, 3, 100_000));
    let results = Run::new(&fabric, GREEDY, "name = 'ecmp'").flows(&flows);
    let of =
        |flow: usize| results.blocked.iter().find(|(id, _)| id.index() == flow).map(|(_, blocked)| *blocked);
    let innocent = of(flows.len() - 1).expect("it was blocked");
    assert!(!innocent.innocently.is_zero() && innocent.innocently <= innocent.blocked);
    for (id, blocked) in &results.blocked {
        if id.index() < flows.len() - 1 && flows[id.index()].src.0 < 33 {
            assert!(
                blocked.innocently.is_zero() && !blocked.blocked.is_zero(),
                "host {id:?} sends to the incast alone"
            );
        }
    }
}

#[test]
fn pauses_cost_bytes_and_time_on_the_cable_back() {
    let fabric = incast_fabric(LOSSLESS);
    let results = Run::new(&fabric, GREEDY, "name = 'ecmp'").flows(&incast());
    let to_host = link_named(&fabric, "leaf0>host5");
    let told: u64 =
        results.pauses.iter().filter(|pause| pause.link == 5).map(|pause| pause.totals.pauses).sum();
    let classes: u64 = results
        .classes
        .iter()
        .filter(|class| class.link == to_host as u32)
        .map(|class| class.totals.packets)
        .sum();
    assert!(told > 0);
    assert_eq!(
        results.links[to_host].packets - classes,
        2 * told,
        "each pause and each end of one is a packet"
    );
}

#[test]
fn groups_and_threads_move_nothing_of_pauses() {
    let fabric = incast_fabric(LOSSLESS);
    let mut run = Run::new(&fabric, GREEDY, "name = 'letflow'");
    let flows = incast();
    let whole = run.flows(&flows);
    for (partitions, threads) in [(2, 1), (2, 2)] {
        (run.partitions, run.threads) = (partitions, threads);
        let parts = run.flows(&flows);
        assert!(parts.cooperation.partitions > 1);
        assert_eq!(done_as(parts, &whole), whole);
    }
}

/// How long the classes of a link were paused, in all samples, and by the totals.
fn paused(results: &Results, link: u32) -> (Span, Span) {
    let sum = |spans: &mut dyn Iterator<Item = Span>| spans.fold(Span::ZERO, |sum, span| sum + span);
    let samples = results.samples.links.iter().filter(|sample| sample.link == link);
    let totals = results.pauses.iter().filter(|pause| pause.link == link);
    (sum(&mut samples.map(|sample| sample.paused)), sum(&mut totals.map(|pause| pause.totals.paused)))
}

#[test]
fn the_pauses_of_all_intervals_are_the_totals_to_the_picosecond() {
    let fabric = incast_fabric(LOSSLESS);
    let plain = Run::new(&fabric, GREEDY, "name = 'ecmp'").flows(&incast());
    for (every, partitions) in [(Span::from_us(7), 1), (Span::from_us(7), 2), (Span::from_ns(1_237), 1)] {
        let run = Run { sample_every: Some(every), partitions, ..Run::new(&fabric, GREEDY, "name = 'ecmp'") };
        let results = run.flows(&incast());
        assert_eq!((&results.flows, &results.pauses), (&plain.flows, &plain.pauses), "looks change nothing");
        for link in 0..fabric.topology.links.len() as u32 {
            let (in_samples, in_all) = paused(&results, link);
            assert_eq!(in_samples, in_all, "{}", fabric.topology.link_name(link));
        }
        let parts = || results.samples.links.iter().map(|sample| sample.paused);
        assert!(parts().all(|paused| paused <= every));
        // Some went on over a whole interval, so they were split, and some did not.
        assert!(parts().any(|paused| paused == every));
        assert!(parts().any(|paused| !paused.is_zero() && paused < every));
    }
}

/// Each of two classes that pause at one time counts, in samples as in totals.
#[test]
fn classes_that_pause_at_one_time_count_each_in_an_interval() {
    let fabric = fabric(&format!(
        "{SMALL}\n[shared_buffer]\nsize = '400KB'\n[pause]\nresponse = '500ns'\n[switch_queue]\nscheduler = 'weighted'\n\
         [[switch_queue.class]]\nholds = ['unknown', 'short', 'schemes']\nlossless = true\nmark = 'never'\n\
         [[switch_queue.class]]\nholds = ['long', 'best-effort']\nlossless = true\nmark = 'never'"
    ));
    let class = |of: u64| if of == 0 { Class::Unknown } else { Class::Long };
    let flows: Vec<Flow> = (0..8)
        .map(|number| Flow {
            class: class(number % 2),
            ..flow(number / 8, (number % 4 / 2) as u16, 3, 400_000)
        })
        .collect();
    let every = Span::from_us(5);
    let run = Run { sample_every: Some(every), ..Run::new(&fabric, GREEDY, "name = 'ecmp'") };
    let results = run.flows(&flows);
    for link in 0..fabric.topology.links.len() as u32 {
        let (in_samples, in_all) = paused(&results, link);
        assert_eq!(in_samples, in_all, "{}", fabric.topology.link_name(link));
    }
    let longest = results.samples.links.iter().map(|sample| sample.paused).max();
    assert!(longest > Some(every) && longest <= Some(every + every), "{longest:?}");
}

/// A port that takes long to obey is still paused when nothing is left to send anywhere, and then
/// each interval says so.
#[test]
fn a_pause_while_the_fabric_rests_is_split_as_any_other() {
    let fabric = fabric(&format!(
        "{SMALL}\n[shared_buffer]\nsize = '16MB'\n[switch_queue]\nlossless = true\nmark = 'never'\n\
         [pause]\nxoff = '20KB'\nresponse = '300us'"
    ));
    // 300 KB take 240 us on the last cable: all is over when ports obey, and long before 2 ms.
    let mut flows: Vec<Flow> = [0, 1, 3].map(|host| flow(0, host, 2, 100_000)).to_vec();
    flows.push(flow(2_000, 1, 3, 1_000));
    let every = Span::from_us(10);
    let run = Run { sample_every: Some(every), ..Run::new(&fabric, GREEDY, "name = 'ecmp'") };
    let results = run.flows(&flows);
    let cable = link_named(&fabric, "host3>leaf1") as u32;
    let (in_samples, in_all) = paused(&results, cable);
    assert!(in_all > Span::from_us(50), "{in_all}");
    assert_eq!(in_samples, in_all);
    let idle = |sample: &&weft_fabric::LinkSample| sample.sent_bytes == 0 && sample.link == cable;
    assert!(results.samples.links.iter().filter(idle).count() > 3, "it was paused and had nothing to send");
    assert!(results.samples.links.iter().all(|sample| sample.paused <= every));
}

fn ring(lossless: bool) -> Fabric {
    let queue = if lossless {
        "[switch_queue]\nlossless = true\nmark = 'never'\n[pause]\nxoff = '50KB'\nlook_every = '100us'"
    } else {
        ""
    };
    let spec: FabricSpec = toml::from_str(&format!("kind = 'graph'\nfile = 'ring.toml'\n{queue}")).unwrap();
    spec.build(1, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")).unwrap()
}

/// Every host sends to the one after next: all go around.
fn around() -> Vec<Flow> {
    (0..5).map(|host| flow(0, host, (host + 2) % 5, 3_000_000)).collect()
}

#[test]
fn a_ring_whose_ways_go_around_deadlocks_and_the_circle_is_named() {
    let fabric = ring(true);
    let (results, ending) = Run::new(&fabric, GREEDY, "name = 'ecmp'").ending(&around());
    assert_eq!(ending, Ending::Deadlock);
    let names: Vec<String> = results
        .deadlock
        .iter()
        .map(|&(link, class)| format!("{} {class}", fabric.topology.link_name(link)))
        .collect();
    assert_eq!(names, ["ring0>ring1 0", "ring1>ring2 0", "ring2>ring3 0", "ring3>ring4 0", "ring4>ring0 0"]);
    assert_eq!(dropped(&results), 0);
    let (_, ending) = Run::new(&ring(false), GREEDY, "name = 'ecmp'").ending(&around());
    assert_eq!(ending, Ending::AllDone, "without pauses packets are lost instead");
}

#[test]
fn flows_that_do_not_close_the_circle_end() {
    let fabric = ring(true);
    let (results, ending) = Run::new(&fabric, GREEDY, "name = 'ecmp'").ending(&around()[..4]);
    assert_eq!(ending, Ending::AllDone);
    assert!(results.deadlock.is_empty() && !results.pauses.is_empty());
}

#[test]
fn a_full_queue_cuts_packets_and_their_headers_arrive() {
    let fabric = fabric(&format!(
        "{SMALL}\n[switch_queue]\nscheduler = 'strict'\nmark = 'never'\n[[switch_queue.class]]\nholds = ['trimmed', 'acks']\n\
         [[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\nbuffer = '15KB'\ntrim = '64B'"
    ));
    let flows = [flow(0, 0, 3, 200_000), flow(0, 1, 3, 200_000), flow(0, 2, 3, 200_000)];
    let results = Run::new(&fabric, GREEDY, "name = 'ecmp'").flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    assert_eq!(dropped(&results), 0, "headers have a queue of 375 KB");
    let trimmed: u64 = results.classes.iter().map(|class| class.totals.trimmed).sum();
    assert!(trimmed > 20);
    let of_flows: u64 = results.flows.iter().map(|flow| u64::from(flow.trimmed)).sum();
    assert_eq!(of_flows, trimmed, "TCP does not know of it, but its flows do");
    let needed: u32 = results.flows.iter().map(|flow| flow.retransmissions.after_loss).sum();
    assert!(needed > 0, "what was cut is sent again, and was needed");
}

#[test]
fn headroom_that_is_too_small_and_memory_without_room_to_share_are_refused() {
    let refused = |text: &str| {
        let fabric = fabric(text);
        let run = Run::new(&fabric, GREEDY, "name = 'ecmp'");
        let (transport, scheme) =
            (crate::common::transports(GREEDY), crate::common::scheme_spec("name = 'ecmp'"));
        match Simulation::new(run.input(&[], &transport, &scheme))
            .err()
            .or_else(|| run.input(&[], &transport, &scheme).check().err())
        {
            Some(InputError::SharedBufferRules(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let small = refused(&format!("{SMALL}\n[switch_queue]\nlossless = true\n[pause]\nheadroom = '5KB'"));
    assert!(small.starts_with("fabric.pause.headroom = 5KB: a lossless class needs at least "), "{small}");
    let full = refused(&format!("{SMALL}\n[switch_queue]\nlossless = true\n[shared_buffer]\nsize = '20KB'"));
    assert!(
        full.starts_with("fabric.shared_buffer.size = 20KB: headroom and reserves of leaf0 alone take "),
        "{full}"
    );
}
