//! Collectives, from a spec to their tables: closed forms, dependencies that are kept, and the same
//! bytes on any number of threads.

use std::num::NonZeroUsize;

use crate::common::{run, run_on};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use weft_lab::{Cores, Outcome, SpecSource};

/// One rack of eight hosts at 100 Gbit/s, where windows are no limit and nothing is marked: a flow
/// alone takes its ideal time.
const IDLE: &str = "
[fabric]
kind = \"leaf-spine\"
leaves = 1
spines = 1
hosts_per_leaf = 8
host_rate = \"100Gbps\"
fabric_rate = \"100Gbps\"
host_queue = { mark = \"never\" }
switch_queue = { mark = \"never\", buffer = \"1GB\" }

[transport]
name = \"dctcp\"
initial_window = 1000
";

/// The parts of each flow of a critical path, but for pauses.
const PARTS: [&str; 11] = [
    "waiting_us",
    "compute_us",
    "transmission_us",
    "host_us",
    "leaf_us",
    "spine_us",
    "last_us",
    "reordering_us",
    "timeouts_us",
    "window_us",
    "acknowledgement_us",
];

/// Four racks of four hosts, two jobs, an all-to-all and random flows.
const BUSY: &str = "
[fabric]
kind = \"leaf-spine\"
leaves = 4
spines = 2
hosts_per_leaf = 4

[traffic]
size = \"20KB\"
load = 0.3
flows = 200

[[traffic.job]]
count = 8
placement = \"random\"
pipeline = 2
microbatches = 2
forward = \"20us\"
backward = \"40us\"
activation = \"30KB\"
gradient = \"200KB\"
buckets = 2
steps = 2

[[traffic.collective]]
kind = \"all-to-all\"
size = \"160KB\"
parallel = 2
iterations = 2

[[traffic.collective]]
kind = \"moe\"
size = \"64KB\"
token = \"1KB\"
skew = 1.0
expert_compute = \"100ns\"
";

/// Serialization time of an acknowledgement of 40 bytes on a cable: the last one of a flow leaves
/// its host just before the next flow does.
const ACK_US: f64 = 0.0032;

fn idle(table: &str) -> Outcome {
    run(&SpecSource::from_text(format!("{IDLE}\n[[traffic.collective]]\n{table}")))
}

fn floats(table: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    table.column_by_name(name).expect("a column").as_primitive::<Float64Type>().iter().collect()
}

fn numbers(table: &RecordBatch, name: &str) -> Vec<Option<u32>> {
    table.column_by_name(name).expect("a column").as_primitive::<UInt32Type>().iter().collect()
}

fn completion(outcome: &Outcome) -> f64 {
    floats(&outcome.collectives, "completion_us")[0].expect("it finished")
}

#[test]
fn a_ring_takes_as_many_ideal_times_of_a_part_as_it_has_steps() {
    let outcome = idle("kind = 'all-reduce'\nsize = '800KB'");
    let flows = outcome.flows.read().unwrap();
    let ideal = floats(&flows, "ideal_fct_us")[0].unwrap();
    assert_eq!(flows.num_rows(), 8 * 14);
    let expected = 14.0 * ideal + 13.0 * ACK_US;
    assert!((completion(&outcome) - expected).abs() < 1e-6, "{} and {expected}", completion(&outcome));
    let bus = floats(&outcome.collectives, "bus_bandwidth_mbps")[0].unwrap();
    assert!((bus - 2.0 * 7.0 / 8.0 * 800_000.0 * 8.0 / expected).abs() < 1e-6, "{bus}");
    let critical = &outcome.critical_path;
    assert_eq!(critical.num_rows(), 14, "a flow a step");
    let sum: f64 = floats(critical, "transmission_us").into_iter().flatten().sum();
    assert!((sum - 14.0 * ideal).abs() < 1e-6, "{sum}");
    let others = PARTS.iter().filter(|&&part| part != "transmission_us");
    let rest: f64 = others.flat_map(|part| floats(critical, part)).flatten().sum();
    let gaps = floats(critical, "end_us")
        .iter()
        .zip(&floats(critical, "ready_us")[1..])
        .map(|(end, next)| next.unwrap() - end.unwrap())
        .sum::<f64>();
    assert!((rest + gaps - 13.0 * ACK_US).abs() < 1e-6, "nothing else is on the path: {rest} and {gaps}");
}

#[test]
fn halving_and_doubling_takes_the_ideal_times_of_its_halves() {
    let outcome = idle("kind = 'all-reduce'\nalgorithm = 'halving-doubling'\nsize = '800KB'");
    let flows = outcome.flows.read().unwrap();
    let (ideal, steps) = (floats(&flows, "ideal_fct_us"), numbers(&flows, "collective_step"));
    let of = |step| ideal[steps.iter().position(|&at| at == Some(step)).unwrap()].unwrap();
    let expected: f64 = (0..6).map(of).sum::<f64>() + 5.0 * ACK_US;
    assert!((completion(&outcome) - expected).abs() < 1e-6, "{} and {expected}", completion(&outcome));
}

#[test]
fn computations_are_on_the_path_and_the_parts_of_it_are_the_whole() {
    let outcome = run(&SpecSource::from_text(BUSY));
    let (rows, critical) = (&outcome.collectives, &outcome.critical_path);
    let completion = floats(rows, "completion_us");
    let starts = floats(rows, "start_us");
    let (ready, end) = (floats(critical, "ready_us"), floats(critical, "end_us"));
    let of = numbers(critical, "collective");
    let parts = PARTS.map(|name| floats(critical, name));
    for (row, took) in completion.iter().enumerate() {
        let took = took.unwrap_or_else(|| panic!("collective {row} did not finish"));
        let links: Vec<usize> = (0..of.len()).filter(|&link| of[link] == Some(row as u32)).collect();
        let sum: f64 = links.iter().flat_map(|&link| parts.iter().map(move |part| part[link].unwrap())).sum();
        let begin = ready[links[0]].unwrap();
        assert!(begin >= starts[row].unwrap() - 1e-6, "collective {row}");
        let spread = begin - starts[row].unwrap();
        assert!((sum + spread - took).abs() < 1e-3, "collective {row}: {sum} and {spread} of {took}");
        for pair in links.windows(2) {
            assert!((end[pair[0]].unwrap() - ready[pair[1]].unwrap()).abs() < 1e-6, "collective {row}");
        }
    }
    let kinds = rows.column_by_name("kind").unwrap().as_string::<i32>();
    let steps = kinds.iter().flatten().filter(|&kind| kind == "step").count();
    assert_eq!(steps, 2);
    // A flow that waited long for its computation lost no time in the network by it.
    for path in outcome.summary.collectives.iter().filter_map(|one| one.critical_path.as_ref()) {
        let (Some(by), Some(us)) = (path.worst_late_by, path.worst_late_us) else { continue };
        assert!(!["computation", "waiting", "acknowledgement", "nothing"].contains(&by), "{by}");
        assert!(0.0 < us && us <= path.worst_us + 1e-6, "{by}: {us} of {}", path.worst_us);
    }
    // Two microbatches of two stages, forward and backward, at the least.
    let first = kinds.iter().position(|kind| kind == Some("step")).unwrap();
    assert!(completion[first].unwrap() >= 3.0 * 60.0);
}

/// Two racks of four hosts and two spines, and one link between them at a tenth of the rate of all
/// others: what goes by it waits in its queue, ten times as long as it takes elsewhere, and the
/// path says so.
#[test]
fn the_critical_path_names_the_slow_link_that_a_flow_waited_at() {
    for (slow, by) in [("spine1>leaf1", "spine queue"), ("leaf0>spine1", "leaf queue")] {
        for scheme in ["ecmp", "rps"] {
            let outcome = run(&SpecSource::from_text(format!(
                "scheme = '{scheme}'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
                 host_queue = {{ mark = 'never' }}\nswitch_queue = {{ mark = 'never', buffer = '1GB' }}\n\
                 [[fabric.fault]]\nlink = '{slow}'\nrate = '1Gbps'\n\
                 [transport]\nname = 'tcp'\necn = 'off'\ninitial_window = 1000\nmin_rto = '1s'\ninitial_rto = '1s'\n\
                 [[traffic.collective]]\nkind = 'all-to-all'\nsize = '800KB'\n"
            )));
            let critical = &outcome.critical_path;
            let text = |name: &str| critical.column_by_name(name).unwrap().as_string::<i32>();
            let (late_by, late_at) = (text("late_by"), text("late_at"));
            let last = critical.num_rows() - 1;
            let case = format!("{slow}, {scheme}");
            assert_eq!((late_by.value(last), late_at.value(last)), (by, slow), "{case}");
            // Packets of 100 KB to each of four hosts from each of four: by the one link, at 1
            // Gbit/s, at least a third of them.
            let name = if by == "leaf queue" { "leaf_us" } else { "spine_us" };
            let waited = floats(critical, name)[last].unwrap();
            assert!(waited > 3_000.0, "{case}: {waited}");
            let told = &outcome.summary.collectives[0].critical_path.as_ref().unwrap();
            assert_eq!((told.worst_late_by, told.worst_late_at.as_deref()), (Some(by), Some(slow)), "{case}");
            let row = numbers(critical, "flow").iter().position(|flow| *flow == told.worst_flow).unwrap();
            assert_eq!(told.worst_late_us, floats(critical, name)[row], "{case}");
        }
    }
}

/// Everyone sends to everyone over RDMA, and a tenth of what comes is enough for a port to be
/// paused.
#[test]
fn pauses_are_a_part_of_the_critical_path_and_have_a_place() {
    let outcome = run(&SpecSource::from_text(
        "[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\nfabric_rate = '10Gbps'\n\
         switch_queue = { mark = 'never', lossless = true }\nshared_buffer = { size = '4MB' }\npause = { xoff = '2KB', response = '100ns' }\n\
         [transport]\nname = 'roce'\ndcqcn = false\n\
         [[traffic.collective]]\nkind = 'all-to-all'\nsize = '800KB'\nparallel = 7\n",
    ));
    let critical = &outcome.critical_path;
    let parts = PARTS.into_iter().chain(["pause_us"]);
    let sum: f64 = parts.flat_map(|part| floats(critical, part)).flatten().sum();
    let began =
        floats(critical, "ready_us")[0].unwrap() - floats(&outcome.collectives, "start_us")[0].unwrap();
    assert!((sum + began - completion(&outcome)).abs() < 1e-3, "{sum} and {began}");
    let pause: f64 = floats(critical, "pause_us").into_iter().flatten().sum();
    assert!(pause > 0.2 * sum, "{pause} of {sum}");
    let told = outcome.summary.collectives[0].critical_path.as_ref().expect("a path");
    assert!((told.pause_us.expect("lossless") - pause).abs() < 1e-6);
    let text = |name: &str| critical.column_by_name(name).unwrap().as_string::<i32>();
    let by_pause = text("late_by").iter().zip(text("late_at").iter()).filter(|(by, _)| *by == Some("pause"));
    let places: Vec<&str> = by_pause.map(|(_, at)| at.expect("a place")).collect();
    assert!(!places.is_empty() && places.iter().all(|at| at.contains('>')), "{places:?}");
}

#[test]
fn no_table_depends_on_how_many_threads_there_are() {
    let source = SpecSource::from_text(BUSY);
    let of = |partitions, threads| {
        let threads = NonZeroUsize::new(threads).unwrap();
        run_on(&source, Cores::Exactly { partitions, threads }).fingerprint().unwrap()
    };
    let alone = of(1, 1);
    for (partitions, threads) in [(2, 1), (usize::MAX, 2), (usize::MAX, 4)] {
        assert_eq!(of(partitions, threads), alone, "{partitions} partitions, {threads} threads");
    }
}

#[test]
fn flows_start_when_what_they_wait_for_is_there_and_not_before() {
    let outcome =
        idle("kind = 'all-reduce'\nsize = '800KB'\nchunks = 2\nreduction_rate = '10Gbps'\niterations = 2");
    let flows = outcome.flows.read().unwrap();
    let (starts, fcts) = (floats(&flows, "start_us"), floats(&flows, "fct_us"));
    let ends: Vec<f64> = starts.iter().zip(&fcts).map(|(start, fct)| start.unwrap() + fct.unwrap()).collect();
    let steps = numbers(&flows, "collective_step");
    let of = numbers(&flows, "collective");
    let sizes = flows.column_by_name("size_bytes").unwrap().as_primitive::<UInt64Type>();
    for flow in 0..flows.num_rows() {
        if steps[flow] == Some(0) {
            continue;
        }
        // What came in the step before, of the same collective, is there; and in the first half it
        // was added up.
        let earliest = (0..flows.num_rows())
            .filter(|&other| of[other] == of[flow] && steps[other].unwrap() + 1 == steps[flow].unwrap())
            .map(|other| ends[other])
            .fold(f64::INFINITY, f64::min);
        let adds = steps[flow].unwrap() <= 7;
        let takes = if adds { sizes.value(flow) as f64 * 8.0 / 10_000.0 } else { 0.0 };
        assert!(starts[flow].unwrap() >= earliest + takes - 1e-6, "flow {flow}");
    }
    let (begins, ends) = (floats(&outcome.collectives, "start_us"), floats(&outcome.collectives, "end_us"));
    let first_done = ends[0].unwrap() - floats(&outcome.collectives, "straggler_us")[0].unwrap();
    assert!(begins[1].unwrap() >= first_done, "a rank begins again when it is done");
}

#[test]
fn a_run_without_collectives_has_neither_rows_nor_columns_of_them() {
    let outcome = run(&crate::common::small(&[]));
    assert_eq!((outcome.collectives.num_rows(), outcome.critical_path.num_rows()), (0, 0));
    assert!(outcome.flows.read().unwrap().column_by_name("collective").is_none());
    assert!(!outcome.summary.to_json().unwrap().contains("collectives"));
}

#[test]
fn a_pipeline_on_a_fast_fabric_has_its_bubble_and_little_more() {
    let outcome = idle(
        "kind = 'pipeline'\nsize = '1KB'\nmicrobatches = 16\nforward = '100us'\nbackward = '200us'\nschedule = 'gpipe'",
    );
    // Eight stages: the flows between them add their own times, twice seven of them, and there is
    // nothing else.
    let flows = outcome.flows.read().unwrap();
    let ideal = floats(&flows, "ideal_fct_us")[0].unwrap();
    let last = completion(&outcome);
    let expected = f64::from(16 + 8 - 1) * 300.0 + 14.0 * ideal;
    assert!((last - expected).abs() < 1.0, "{last} and {expected}");
}

/// A host is gone for good while a ring adds up: what waits for it never begins.
const GONE: &str = "
[run]
time_limit = \"5ms\"

[fabric]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 4

[[fabric.fault]]
link = \"host5-leaf1\"
at = \"500us\"
down = true

[[traffic.collective]]
kind = \"all-reduce\"
size = \"1MiB\"
";

#[test]
fn flows_that_never_began_are_told_apart_and_start_at_no_time() {
    let outcome = run(&SpecSource::from_text(GONE));
    let flows = outcome.flows.read().unwrap();
    let nulls = |table: &RecordBatch, name: &str| table.column_by_name(name).unwrap().null_count() as u64;
    let all = outcome.summary.all;
    assert!(all.never_started > 0 && all.unfinished > 0, "{all:?}");
    assert_eq!((all.flows, nulls(&flows, "start_us")), (112, all.never_started));
    assert_eq!(nulls(&flows, "fct_us"), all.unfinished + all.never_started, "the others finished");
    // Who never began did so neither before nor after the host was lost.
    let phases = &outcome.summary.phases;
    assert_eq!(phases.iter().map(|one| one.flows).sum::<u64>(), all.flows - all.never_started);
    assert_eq!(phases.iter().map(|one| one.unfinished).sum::<u64>(), all.unfinished);
    let count = |name: &str| {
        let column = outcome.collectives.column_by_name(name).unwrap();
        column.as_primitive::<UInt64Type>().values().iter().sum::<u64>()
    };
    assert_eq!(
        (count("flows"), count("unfinished"), count("never_started")),
        (112, all.unfinished, all.never_started)
    );
}
