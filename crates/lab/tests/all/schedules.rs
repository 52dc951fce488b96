//! Schedules from files: computations that take turns, and what their times come to on an idle
//! fabric by hand.

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use crate::common::{run, run_on};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use tempfile::TempDir;
use weft_lab::{Cores, Outcome, SpecSource};

/// One rack of eight hosts at 100 Gbit/s and cables of 1 µs, where windows are no limit and nothing
/// is marked: a flow alone takes its ideal time.
const IDLE: &str = "
[fabric]
kind = \"leaf-spine\"
leaves = 1
spines = 1
hosts_per_leaf = 8
host_rate = \"100Gbps\"
fabric_rate = \"100Gbps\"
host_delay = \"1us\"
host_queue = { mark = \"never\" }
switch_queue = { mark = \"never\", buffer = \"1GB\" }

[transport]
name = \"dctcp\"
initial_window = 1000
";

/// Serialization time of an acknowledgement of 40 bytes on a cable: the last one of a flow leaves
/// its host just before the next flow does.
const ACK_US: f64 = 0.0032;

/// Files in a folder of their own, and a spec that reads them.
fn source(fabric: &str, name: &str, files: &[(String, String)], keys: &str) -> (TempDir, SpecSource) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let file = folder.path().join(name);
    let text = format!("{fabric}\n[traffic.schedule]\nfile = '{}'\n{keys}\n", file.display());
    (folder, SpecSource::from_text(text))
}

fn goal(text: &str, keys: &str) -> Outcome {
    let (_folder, source) = source(IDLE, "x.goal", &[("x.goal".to_owned(), text.to_owned())], keys);
    run(&source)
}

/// Traces of so many ranks, whose nodes `nodes` writes as JSON.
fn chakra(ranks: usize, nodes: impl Fn(usize) -> String) -> Outcome {
    let file = |rank| (format!("t.{rank}.json"), format!("{{\"version\": \"0.0.4\"}}\n{}", nodes(rank)));
    let files: Vec<_> = (0..ranks).map(file).collect();
    let (_folder, source) = source(IDLE, "t.{rank}.json", &files, "");
    run(&source)
}

fn floats(table: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    table.column_by_name(name).expect("a column").as_primitive::<Float64Type>().iter().collect()
}

/// By flow: source and destination, start, and ideal completion time.
fn flows(outcome: &Outcome) -> Vec<((u16, u16), f64, f64)> {
    let table = outcome.flows.read().unwrap();
    let host = |name| table.column_by_name(name).unwrap().as_primitive::<UInt16Type>().values().to_vec();
    let (starts, ideal) = (floats(&table, "start_us"), floats(&table, "ideal_fct_us"));
    let ends = host("src").into_iter().zip(host("dst"));
    ends.zip(starts).zip(ideal).map(|((ends, start), ideal)| (ends, start.unwrap(), ideal.unwrap())).collect()
}

/// When the flow from one host to another starts, µs.
fn start(outcome: &Outcome, ends: (u16, u16)) -> f64 {
    flows(outcome).into_iter().find(|flow| flow.0 == ends).expect("a flow").1
}

fn completion(outcome: &Outcome, row: usize) -> f64 {
    floats(&outcome.collectives, "completion_us")[row].expect("it finished")
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
}

/// Rank 0 computes this, and rank 1 gets something for it.
fn two_ranks(rank_0: &str) -> String {
    format!(
        "num_ranks 2\nrank 0 {{\n{rank_0}\ns: send 100b to 1\ns requires a\ns requires b\n}}\nrank 1 {{\nrecv 100b from 0\n}}\n"
    )
}

#[test]
fn calcs_of_one_cpu_take_turns_and_those_of_two_do_not() {
    let one = two_ranks("a: calc 10000\nb: calc 20000");
    assert_near(start(&goal(&one, ""), (0, 1)), 30.0);
    assert_near(start(&goal(&one, "turns = false"), (0, 1)), 20.0);
    assert_near(start(&goal(&one, "compute_scale = 0.5"), (0, 1)), 15.0);
    let two = two_ranks("a: calc 10000 cpu 1\nb: calc 20000");
    assert_near(start(&goal(&two, ""), (0, 1)), 20.0);
    // What a calc requires may stand behind it.
    let behind = two_ranks("a: calc 10000\nb: calc 20000\na requires b");
    assert_near(start(&goal(&behind, "turns = false"), (0, 1)), 30.0);
}

#[test]
fn a_cpu_takes_first_what_is_ready_first_whatever_the_order_of_the_file() {
    // What comes from rank 1 is there within 10 µs: so rank 0 computes a until 10 µs, c until 17
    // µs, d until 22 µs.
    let text = "num_ranks 3\nrank 0 {\nd: calc 5000\nc: calc 7000\na: calc 10000\nr: recv 100b from 1\n\
        c requires r\nd requires a\nsc: send 10b to 1\nsc requires c\nsd: send 10b to 2\nsd requires d\n}\n\
        rank 1 {\nsend 100b to 0\nrecv 10b from 0\n}\nrank 2 {\nrecv 10b from 0\n}\n";
    let outcome = goal(text, "");
    let (_, _, ideal) = flows(&outcome).into_iter().find(|flow| flow.0 == (1, 0)).unwrap();
    assert!(ideal < 10.0, "{ideal}");
    assert_near(start(&outcome, (0, 1)), 17.0);
    assert_near(start(&outcome, (0, 2)), 22.0);
    // Without turns c is done 7 µs after that has come, and d when it was.
    let outcome = goal(text, "turns = false");
    assert_near(start(&outcome, (0, 1)), ideal + 7.0);
    assert_near(start(&outcome, (0, 2)), 15.0);
}

#[test]
fn what_requires_that_a_calc_has_begun_waits_for_its_turn() {
    let text = "num_ranks 2\nrank 0 {\na: calc 10000\nb: calc 20000\ns: send 10b to 1\ns irequires b\n}\nrank 1 {\nrecv 10b from 0\n}\n";
    let outcome = goal(text, "");
    assert_near(start(&outcome, (0, 1)), 10.0);
    // The file ends with b, after a on the same CPU.
    assert_near(completion(&outcome, 0), 30.0);
    assert_near(floats(&outcome.critical_path, "compute_us").into_iter().flatten().sum(), 30.0);
}

#[test]
fn a_message_costs_the_cpu_at_both_ends_its_overhead() {
    // By hand: rank 0 computes until 10 µs, then prepares two messages, until 12 and 14 µs. Rank 1
    // is at work until 40 µs, takes the first in until 42 µs, and the second until 44 µs; what
    // waits for it computes until 49 µs and goes out at 51 µs.
    let text = "num_ranks 2\nrank 0 {\na: calc 10000\ns: send 10b to 1\nt: send 10b to 1 tag 1\ns requires a\nt requires a\n\
        r: recv 10b from 1\n}\n\
        rank 1 {\nw: calc 40000\nr: recv 10b from 0\nq: recv 10b from 0 tag 1\nc: calc 5000\nc requires q\nu: send 10b to 0\n\
        u requires c\n}\n";
    let outcome = goal(text, "overhead = \"2us\"");
    let starts: Vec<_> =
        flows(&outcome).into_iter().filter(|flow| flow.0 == (0, 1)).map(|flow| flow.1).collect();
    assert_eq!(starts.len(), 2);
    assert_near(starts[0], 12.0);
    assert_near(starts[1], 14.0);
    let (_, back, ideal) = flows(&outcome).into_iter().find(|flow| flow.0 == (1, 0)).unwrap();
    assert_near(back, 51.0);
    // It ends when rank 0 has taken the answer in.
    assert_near(completion(&outcome, 0), 51.0 + ideal + 2.0);
    // On another CPU they are taken in while rank 1 is at work.
    let beside = goal(&text.replace("from 0", "from 0 cpu 1"), "overhead = \"2us\"");
    assert_near(start(&beside, (1, 0)), 47.0);
    // Without an overhead everything is as if nobody had said one.
    assert_near(start(&goal(text, "overhead = \"0s\""), (0, 1)), 10.0);
    assert_near(start(&goal(text, "overhead = \"0s\""), (1, 0)), 45.0);
}

fn node(id: u32, kind: &str, micros: u32, after: &[u32], rest: &str) -> String {
    format!(
        "{{\"id\": {id}, \"type\": \"{kind}\", \"duration_micros\": {micros}, \"data_deps\": {after:?}{rest}}}\n"
    )
}

fn collective(id: u32, kind: &str, bytes: u64, after: &[u32]) -> String {
    node(id, "COMM_COLL_NODE", 0, after, &format!(", \"comm_type\": \"{kind}\", \"comm_size\": {bytes}"))
}

#[test]
fn kernels_of_a_rank_take_turns_by_id_and_what_it_sends_goes_on_beside_them() {
    // By hand: kernel 1 until 10 µs, 2 until 30 µs, 3 until 60 µs. The CPU and the memory work
    // beside them.
    let outcome = chakra(2, |rank| {
        if rank == 1 {
            return [10, 20, 30, 40, 50]
                .map(|id| node(id, "COMM_RECV_NODE", 0, &[], ", \"comm_src\": 0"))
                .concat();
        }
        let send =
            |id, after| node(id, "COMM_SEND_NODE", 0, &[after], ", \"comm_dst\": 1, \"comm_size\": 100");
        [
            node(3, "COMP_NODE", 30, &[], ""),
            node(1, "COMP_NODE", 10, &[], ""),
            node(2, "COMP_NODE", 20, &[], ""),
            node(4, "COMP_NODE", 5, &[], ", \"attr\": [{\"name\": \"is_cpu_op\", \"boolVal\": true}]"),
            node(5, "MEM_LOAD_NODE", 7, &[], ""),
            send(10, 1),
            send(20, 2),
            send(30, 3),
            send(40, 4),
            send(50, 5),
        ]
        .concat()
    });
    let mut starts: Vec<f64> = flows(&outcome).iter().map(|flow| flow.1).collect();
    starts.sort_by(f64::total_cmp);
    for (found, expected) in starts.into_iter().zip([5.0, 7.0, 10.0, 30.0, 60.0]) {
        assert_near(found, expected);
    }
}

#[test]
fn a_broadcast_takes_an_ideal_time_and_an_acknowledgement_for_each_child_of_the_root() {
    let outcome = chakra(8, |_| collective(1, "BROADCAST", 100_000, &[]));
    let all = flows(&outcome);
    assert_eq!(all.len(), 7);
    // The root sends to 4, 2 and 1; an acknowledgement passes two cables of 1 µs.
    let (ideal, back) = (all[0].2, 2.0 * (1.0 + ACK_US));
    assert_near(start(&outcome, (0, 2)), ideal + back);
    assert_near(start(&outcome, (4, 6)), ideal);
    // It gets nothing: so it is done when the last of them is acknowledged.
    assert_near(completion(&outcome, 1), 3.0 * (ideal + back));
    assert_near(
        floats(&outcome.collectives, "bus_bandwidth_mbps")[1].unwrap(),
        800_000.0 / completion(&outcome, 1),
    );
}

#[test]
fn a_reduce_takes_an_ideal_time_for_each_level_of_its_tree() {
    let outcome = chakra(8, |_| collective(1, "REDUCE", 100_000, &[]));
    let all = flows(&outcome);
    assert_eq!(all.len(), 7);
    assert_near(completion(&outcome, 1), 3.0 * all[0].2 + 2.0 * ACK_US);
}

#[test]
fn no_rank_goes_on_from_a_barrier_before_all_have_come() {
    let outcome = chakra(8, |rank| {
        let micros = if rank == 5 { 50 } else { 1 };
        let (next, last) = ((rank + 1) % 8, (rank + 7) % 8);
        [
            node(1, "COMP_NODE", micros, &[], ""),
            node(2, "COMM_COLL_NODE", 0, &[1], ", \"comm_type\": 9"),
            node(3, "COMM_SEND_NODE", 0, &[2], &format!(", \"comm_dst\": {next}, \"comm_size\": 5000")),
            node(4, "COMM_RECV_NODE", 0, &[], &format!(", \"comm_src\": {last}")),
        ]
        .concat()
    });
    let table = outcome.flows.read().unwrap();
    let sizes = table.column_by_name("size_bytes").unwrap().as_primitive::<arrow_array::types::UInt64Type>();
    let all = flows(&outcome);
    let after: Vec<f64> =
        all.iter().zip(sizes.values()).filter(|(_, size)| **size == 5_000).map(|(flow, _)| flow.1).collect();
    let ideal = all.iter().zip(sizes.values()).find(|(_, size)| **size == 1).unwrap().0.2;
    assert_eq!((after.len(), all.len()), (8, 8 + 14));
    // Rank 5 is two levels below the root of the tree, and the farthest rank three.
    let (first, last) =
        (after.iter().copied().fold(f64::MAX, f64::min), after.iter().copied().fold(0.0, f64::max));
    assert!(first >= 50.0 + 2.0 * ideal, "{first}");
    assert!(last >= 50.0 + 5.0 * ideal && last < 50.0 + 5.5 * ideal + 3.0, "{last} and {ideal}");
}

/// A schedule of 16 ranks with many calcs that become ready together, and messages among them.
fn busy(seed: u64) -> String {
    let mut state = seed;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let (ranks, rounds) = (16, 12);
    let mut blocks = vec![String::new(); ranks];
    for round in 0..rounds {
        let shift = 1 + draw(ranks as u64 - 1) as usize;
        for (rank, block) in blocks.iter_mut().enumerate() {
            let (to, from) = ((rank + shift) % ranks, (rank + ranks - shift) % ranks);
            let (takes, other, cpu, word) =
                (draw(4) * 1_000, draw(3) * 1_000, draw(2), ["requires", "irequires"][draw(2) as usize]);
            writeln!(block, "c{round}: calc {takes}\nd{round}: calc {other} cpu {cpu}").unwrap();
            writeln!(block, "s{round}: send 20000b to {to} tag {round}").unwrap();
            writeln!(block, "r{round}: recv 20000b from {from} tag {round}").unwrap();
            writeln!(block, "s{round} {word} c{round}\ns{round} requires d{round}").unwrap();
            if round > 1 {
                writeln!(block, "c{round} requires r{}\nd{round} {word} c{}", round - 2, round - 1).unwrap();
            }
        }
    }
    let mut text = format!("num_ranks {ranks}\n");
    for (rank, block) in blocks.iter().enumerate() {
        writeln!(text, "rank {rank} {{\n{block}}}").unwrap();
    }
    text
}

/// Four racks of four hosts at 10 Gbit/s.
const RACKS: &str = "[fabric]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n";

/// The critical path repeats the computations as the hosts did them: its links follow each other,
/// and their parts are the whole.
#[test]
fn turns_are_the_same_in_a_run_and_on_the_critical_path() {
    for seed in 0..8 {
        let (_folder, source) = source(RACKS, "x.goal", &[("x.goal".to_owned(), busy(seed))], "");
        let outcome = run(&source);
        let critical = &outcome.critical_path;
        let of = |name: &str| {
            floats(critical, name).into_iter().map(Option::unwrap_or_default).collect::<Vec<f64>>()
        };
        let (ready, starts, ends) = (of("ready_us"), of("start_us"), of("end_us"));
        let (waiting, computed) = (of("waiting_us"), of("compute_us"));
        assert!(critical.num_rows() > 3, "seed {seed}");
        let links = critical.column_by_name("link").unwrap().as_primitive::<UInt32Type>();
        for row in 0..critical.num_rows() {
            let before_start = ready[row] + waiting[row] + computed[row];
            assert!((before_start - starts[row]).abs() < 1e-6, "seed {seed}, link {row}: {before_start}");
            if links.value(row) > 0 {
                assert!((ends[row - 1] - ready[row]).abs() < 1e-6, "seed {seed}, link {row}");
            }
        }
        assert_near(ends[critical.num_rows() - 1] - ready[0], completion(&outcome, 0));
    }
}

#[test]
fn turns_do_not_depend_on_how_many_groups_and_threads_there_are() {
    let (_folder, source) = source(RACKS, "x.goal", &[("x.goal".to_owned(), busy(3))], "");
    let of = |partitions, threads| {
        let threads = NonZeroUsize::new(threads).unwrap();
        run_on(&source, Cores::Exactly { partitions, threads }).fingerprint().unwrap()
    };
    let alone = of(1, 1);
    for (partitions, threads) in [(2, 1), (usize::MAX, 2), (usize::MAX, 4)] {
        assert_eq!(of(partitions, threads), alone, "{partitions} partitions, {threads} threads");
    }
}
