//! Tests of the meaning of files, and of the messages for lines that cannot be read.

use std::path::Path;

use proptest::prelude::*;
use weft_units::{Span, Time};

use crate::fixtures::{leaf_spine, spec};
use crate::{GraphNode, Point, Traffic, TrafficError};

/// The traffic of a file of this name and text, on four racks of four hosts.
pub(super) fn traffic_of(name: &str, text: &str) -> Result<Traffic, TrafficError> {
    traffic_of_all(name, &[(name, text)])
}

pub(super) fn traffic_of_all<T: AsRef<[u8]>>(
    name: &str,
    files: &[(&str, T)],
) -> Result<Traffic, TrafficError> {
    traffic_with("", name, files)
}

/// Traffic of a schedule file with these keys beside the name.
pub(super) fn traffic_with<T: AsRef<[u8]>>(
    keys: &str,
    name: &str,
    files: &[(&str, T)],
) -> Result<Traffic, TrafficError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        std::fs::write(folder.path().join(name), contents).unwrap();
    }
    spec(&format!("[schedule]\nfile = '{name}'\n{keys}")).generate(&leaf_spine(), 1, folder.path())
}

#[test]
fn an_unknown_word_of_any_file_is_rejected_with_the_nearest_name() {
    let goal = |line: &str| format!("num_ranks 2\nrank 0 {{\n{line}\n}}\n");
    let matrix = |line: &str| format!("Nodes 2\n{line}\n");
    let node = "[{}, {\"id\": 1, \"type\": 4, \"NAME\": 1}]";
    let cases = [
        ("x.goal", goal("l1: sent 8b to 1"), "send"),
        ("x.goal", goal("l1 require l2"), "requires"),
        ("x.goal", goal("send 8b to 1 tags 3"), "tag"),
        ("x.goal", "num_rank 2\n".to_owned(), "num_ranks"),
        ("x.cm", matrix("0->1 id 1 starts 0 size 9"), "start"),
        ("x.cm", matrix("0->1 id 1 start 0 sizes 9"), "size"),
        ("x.cm", matrix("trigger id 1 one-shot"), "oneshot"),
        ("x.cm", "Node 2\n".to_owned(), "Nodes"),
    ];
    for (name, text, near) in cases {
        let found = said(name, &text);
        assert!(found.ends_with(&format!("; did you mean {near:?}?")), "{text:?}: {found}");
    }
    let files = [("t.0.json", node), ("t.1.json", "[{}]")];
    let found = traffic_of_all("t.{rank}.json", &files).unwrap_err().to_string();
    assert!(found.contains("the field \"NAME\"") && found.ends_with("did you mean \"name\"?"), "{found}");
}

fn said(name: &str, text: &str) -> String {
    traffic_of(name, text).map(|traffic| traffic.flows.len()).unwrap_err().to_string()
}

/// How many flows each flow waits for, in the order of the traffic.
pub(super) fn needs(traffic: &Traffic) -> Vec<u32> {
    let dependencies = &traffic.schedule.as_ref().unwrap().dependencies;
    (0..traffic.flows.len() as u32).map(|flow| dependencies.needs(flow)).collect()
}

const CHAIN: &str = "# three in a row\nNodes 4\nConnections 3\nTriggers 2\n\
    0->1 id 1 start 5000 size 1000 recv_done_trigger 1\n\
    1->2 id 2 trigger 1 size 2000 send_done_trigger 2\n\
    1->3 id 3 trigger 2 size 3000\n\
    trigger id 1 oneshot\n\
    trigger id 2 barrier count 1\n";

#[test]
fn a_matrix_starts_flows_at_their_picoseconds_and_by_their_triggers() {
    let traffic = traffic_with("start_unit = \"ps\"", "x.cm", &[("x.cm", CHAIN)]).unwrap();
    let ends: Vec<_> = traffic.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size_bytes)).collect();
    assert_eq!(ends, [(0, 1, 1_000), (1, 2, 2_000), (1, 3, 3_000)]);
    assert_eq!(traffic.flows[0].start, Time::from_ps(5_000));
    assert_eq!(needs(&traffic), [0, 1, 1]);
}

#[test]
fn a_multishot_trigger_starts_the_next_with_each_activation() {
    let text = "Nodes 4\nConnections 4\nTriggers 1\n\
        0->1 id 1 start 0 size 10 send_done_trigger 1\n0->2 id 2 start 0 size 10 send_done_trigger 1\n\
        0->3 id 3 trigger 1 size 10\n0->1 id 4 trigger 1 size 10\ntrigger id 1 multishot\n";
    let traffic = traffic_of("x.cm", text).unwrap();
    assert_eq!(needs(&traffic), [0, 0, 1, 2], "of two that lead to both");
}

#[test]
fn each_line_of_a_matrix_that_cannot_be_read_is_told() {
    let head = "Nodes 4\n";
    let cases = [
        ("0->1 id 1 start 0 size 0", "x.cm:2: found size \"0\": allowed is a whole number, 1 to"),
        (
            "0->4 id 1 start 0 size 9",
            "x.cm:2: found the destination \"4\": allowed is a whole number, 0 to 3",
        ),
        ("2->2 id 1 start 0 size 9", "x.cm:2: found \"2->2\": allowed is two different nodes"),
        ("0->1 id 1 size 9", "x.cm:2: found neither start nor trigger: allowed is size N with either"),
        ("0->1 id 1 start 0 trigger 1 size 9", "x.cm:2: found both start and trigger"),
        ("0->1 id 1 start 0 size 9 speed 3", "x.cm:2: found \"speed\": allowed is id, start, size"),
        ("0->1 id 1 start", "x.cm:2: found start without a number"),
        ("0->1 id 1 start 0 size 9 size 8", "x.cm:2: found size again: allowed is each of them once"),
        ("0->1 id 1 start 0 size 1.5", "x.cm:2: found size \"1.5\": allowed is a whole number"),
        ("0->1 id 1 start 0 size -9", "x.cm:2: found size \"-9\": allowed is a whole number"),
        ("0->1 id 1 start -1 size 9", "x.cm:2: found start \"-1\": allowed is a time from 0"),
        ("0->1 id 1 start 1e3 size 9", "x.cm:2: found start \"1e3\": allowed is a time from 0"),
        (
            "0->1 id 1 start 0 size 9\n1->0 id 1 start 0 size 9",
            "x.cm:3: found id 1 again: allowed is an id of its own",
        ),
        ("0->3 id 1 start 0 size 9\nNodes 2", "x.cm:3: found Nodes again: allowed is \"Nodes N\" once"),
        (
            "Connections 1\nConnections 1\n0->1 id 1 start 0 size 9",
            "x.cm:3: found Connections again: allowed is \"Connections N\" once",
        ),
        ("trigger id 1 oneshot count 2", "x.cm:2: found oneshot with a count: allowed is barrier count N"),
        ("trigger id 1 oneshot barrier count 2", "x.cm:2: found \"barrier\": allowed is id N, oneshot"),
        ("hello", "x.cm:2: found \"hello\": allowed is \"Nodes N\""),
        ("trigger id 1", "x.cm:2: found a trigger without a type: allowed is oneshot, multishot or barrier"),
        ("trigger id 1 barrier", "x.cm:2: found a barrier without a count"),
        ("trigger id 1 oneshot\ntrigger id 1 oneshot", "x.cm:3: found trigger 1 again"),
        ("Connections 2\n0->1 id 1 start 0 size 9", "x.cm:2: found Connections 2: allowed is Connections 1"),
        ("0->1 id 1 trigger 7 size 9", "x.cm:2: found trigger 7, which is nowhere"),
        ("failure switch_type TOR switch_id 1", "allowed is no failures here: [[fabric.fault]] has them"),
        (
            "0->1 id 1 trigger 1 size 9\ntrigger id 1 oneshot",
            "x.cm:2: found trigger 1 after 1 activations, of which there are 0",
        ),
    ];
    for (lines, expected) in cases {
        let found = said("x.cm", &format!("{head}{lines}\n"));
        assert!(found.contains(expected), "{lines:?}: {found}");
    }
    assert!(said("x.cm", "0->1 id 1 start 0 size 9").contains("a connection before \"Nodes N\""));
    assert!(
        said("x.cm", "Nodes 17\n0->1 id 1 start 0 size 9").contains("found 17 ranks: allowed is 2 to 16")
    );
    assert!(said("x.cm", "Nodes 4").contains("no connection"));
}

#[test]
fn what_no_host_can_know_is_refused_by_name_and_so_is_a_cycle() {
    let stranger = "Nodes 4\n0->1 id 1 start 0 size 9 recv_done_trigger 1\n2->3 id 2 trigger 1 size 9\ntrigger id 1 oneshot\n";
    let found = said("x.cm", stranger);
    assert!(found.contains("waits for the flow 0->1 (line 2), of which host 2 knows nothing"), "{found}");
    let cycle = "Nodes 4\n0->1 id 1 trigger 2 size 9 recv_done_trigger 1\n1->0 id 2 trigger 1 size 9 recv_done_trigger 2\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let found = said("x.cm", cycle);
    assert!(found.contains("a cycle, in which each waits for the next: the flow 0->1 (line 2)"), "{found}");
    assert!(found.contains("the flow 1->0 (line 3)"), "{found}");
}

const GOAL: &str = "num_ranks 3 // so many\nrank 0 {\n  a: send 100b to 1 tag 4 cpu 0\n}\n\
    rank 1 {\n  r: recv 100b from 0 tag 4\n  /* what it\n takes */ c: calc 2000\n  s: send 50b to 2\n  \
    c requires r\n  s requires c\n}\nrank 2 {\n  recv 50b from 1\n}\n";

#[test]
fn a_goal_schedule_sends_what_was_computed_of_what_came() {
    let traffic = traffic_of("x.goal", GOAL).unwrap();
    let ends: Vec<_> = traffic.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size_bytes)).collect();
    assert_eq!(ends, [(0, 1, 100), (1, 2, 50)]);
    assert_eq!((needs(&traffic), traffic.flows[1].start), (vec![0, 1], Time::ZERO + Span::from_us(2)));
}

#[test]
fn each_line_of_a_goal_schedule_that_cannot_be_read_is_told() {
    let cases = [
        ("send 9b to 0", "x.goal:3: found rank 0: allowed is another rank than its own"),
        ("send 9b to 3", "x.goal:3: found the rank \"3\": allowed is a whole number, 0 to 2"),
        ("send 9 to 1", "x.goal:3: found \"9\": allowed is bytes, as in 8192b"),
        ("send 9b from 1", "x.goal:3: found \"send 9b from 1\": allowed is num_ranks N"),
        (
            "recv 9b from -1",
            "x.goal:3: found recv from any rank: allowed is a rank: a schedule whose recvs take what comes first",
        ),
        ("send 9b to 1 colour 3", "x.goal:3: found \"colour 3\": allowed is tag N, cpu N or nic N"),
        ("send 9b to 1 tag", "x.goal:3: found \"tag\": allowed is tag N, cpu N or nic N"),
        ("send 9b to 1 tag 1 tag 2", "x.goal:3: found tag again: allowed is each of tag, cpu and nic once"),
        ("send 9b to 1 tag 1.5", "x.goal:3: found tag \"1.5\": allowed is a whole number from 0"),
        ("calc 1 cpu -1", "x.goal:3: found cpu \"-1\": allowed is a whole number from 0"),
        ("calc 1 nic x", "x.goal:3: found nic \"x\": allowed is a whole number from 0"),
        ("send 9b to 1 tag 4294967295", "x.goal:3: found any tag: allowed is a tag"),
        ("calc 1\n} }", "x.goal:4: found \"} }\": allowed is num_ranks N"),
        ("a requires b", "x.goal:3: found \"a\": allowed is a label of this rank that stands before"),
        ("a: calc 1\na: calc 1", "x.goal:4: found label \"a\" again"),
        ("send 9b to 1 tag 2", "x.goal:3: found send to rank 1 with tag 2, which nothing receives"),
        ("recv 9b from 1", "x.goal:3: found recv from rank 1 with tag 0, which nothing is sent for"),
        ("a: calc 1\nb: calc 1\na requires b\nb requires a", "a cycle, in which each waits for the next"),
    ];
    for (lines, expected) in cases {
        for end in ["\n", "\r\n"] {
            let text = format!("num_ranks 3\nrank 0 {{\n{lines}\n}}\nrank 1 {{\n}}\nrank 2 {{\n}}");
            let found = said("x.goal", &text.replace('\n', end));
            assert!(found.contains(expected), "{lines:?}: {found}");
        }
    }
    let heads = [
        ("num_ranks 4\nrank 3 {\ncalc 1\n}\nnum_ranks 2", "x.goal:5: found \"num_ranks 2\" again"),
        ("num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 0 {\n}", "x.goal:5: found rank 0 again"),
        ("num_ranks 3\nrank 0 {\ncalc 1\n}\nrank 2 {\n}", "x.goal: found no rank 1 of 3"),
        ("num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 1 {\n}\nend", "x.goal:7: found \"end\""),
        ("num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 1 {\n}", "there is no flow: x.goal has no message"),
        ("num_ranks 2\nrank 0 {\ncalc 1 /* a\n}\n", "x.goal:3: found a comment without an end"),
        ("num_ranks 0", "x.goal:1: found num_ranks \"0\": allowed is a whole number, 1 to"),
        ("", "x.goal: found no operation"),
    ];
    for (text, expected) in heads {
        let found = said("x.goal", text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
    let neither = traffic_of_all("x.goal", &[("x.goal", [0xff_u8, 0xfe, 0])]).unwrap_err().to_string();
    assert!(
        neither.contains("found bytes that are neither: allowed is GOAL as text, or the binary"),
        "{neither}"
    );
    assert!(said("x.goal", "rank 0 {\n}").contains("a rank before num_ranks"));
    assert!(said("x.goal", "num_ranks 2\nrank 0 {\ncalc 1").contains("the end of the file in rank 0"));
}

#[test]
fn an_overhead_is_refused_where_no_message_names_a_cpu() {
    let keys = "overhead = \"1us\"\n";
    let found = traffic_with(keys, "x.cm", &[("x.cm", CHAIN)]).unwrap_err().to_string();
    assert!(found.contains("traffic.schedule.overhead") && found.contains(".goal"), "{found}");
    assert!(traffic_with(keys, "x.goal", &[("x.goal", GOAL)]).is_ok());
}

/// As `Goal.hpp` of `LogGOPSim` wrote it: [`GOAL`], but that the calc has CPU 1, and that a calc of
/// 7 ns on CPU 2 waits for its beginning.
const BINARY: &str = "7f100000000000000300000002003600000000000000690000000000000069000000000000001d010000000000001d0100000000000050010000000000000100\
    00000100000000000000000000000101000000640000000000000004000000000000000000000000000000000000000000040000000100000000000000000000\
    000200000000640000000000000004000000000001000000000000000000000001000000010000000300000000d0070000000000000000000001000100000001\
    00000001000000020000000100000001020000003200000000000000000000000000000000000300000000000000030000000100000003000000000700000000\
    00000000000000020000000000030000000000000003000000010000000200000003000000010000000100000000000000000000000201000000320000000000\
    000000000000000000000000000000000000000000000000";

fn binary() -> Vec<u8> {
    let digits = BINARY.as_bytes().chunks_exact(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[test]
fn a_schedule_in_goals_binary_form_is_what_its_text_is() {
    let text = GOAL
        .replace("calc 2000", "calc 2000 cpu 1")
        .replace("  s requires c", "  d: calc 7 cpu 2\n  s requires c\n  d irequires c");
    let of = |traffic: &Traffic| {
        let flows = traffic.flows.iter().map(|flow| (flow.src, flow.dst, flow.size_bytes, flow.start));
        let computations = &traffic.schedule.as_ref().unwrap().dependencies;
        (flows.collect::<Vec<_>>(), needs(traffic), format!("{computations:?}"))
    };
    let expected = of(&traffic_of("x.goal", &text).unwrap());
    for name in ["x.bin", "x.goal"] {
        assert_eq!(of(&traffic_of_all(name, &[(name, binary())]).unwrap()), expected, "{name}");
    }
}

#[test]
fn numbers_of_a_goal_text_are_cut_as_its_binary_form_cuts_them() {
    let of = |tag: &str, cpu: &str| {
        let text = GOAL
            .replace("tag 4", &format!("tag {tag}"))
            .replace("calc 2000", &format!("calc 2000 cpu {cpu}"));
        traffic_of("x.goal", &text).map(|traffic| (needs(&traffic), traffic.schedule)).unwrap()
    };
    // 2^64 + 5 is 5.
    assert_eq!(500_000_100_000_u64 % (1 << 32), 1_783_893_664);
    assert_eq!(of("500000100000", "0"), of("1783893664", "0"));
    assert_eq!(of("18446744073709551621", "258"), of("5", "2"));
    // A comment of one line may have what begins one of several, and the other way round.
    let comments = GOAL.replace("tag 4", "tag 4 // a /* b").replace("// so many", "/* // */");
    assert_eq!(needs(&traffic_of("x.goal", &comments).unwrap()), [0, 1]);
    // A send and a recv whose tags agree in the lower 32 bits belong together.
    let apart = GOAL.replacen("tag 4", "tag 4294967300", 1);
    assert_eq!(needs(&traffic_of("x.goal", &apart).unwrap()), [0, 1]);
}

#[test]
fn a_rank_of_goal_ends_with_the_overhead_of_its_last_send() {
    let keys = "overhead = \"1us\"\n";
    let traffic = traffic_with(keys, "x.goal", &[("x.goal", GOAL)]).unwrap();
    let schedule = traffic.schedule.unwrap();
    // Rank 0 sends and does nothing else: its end waits for the turn of its CPU, and not for an
    // acknowledgement.
    let GraphNode::Computation(end) = schedule.collectives[0].exits[0] else { panic!("{schedule:?}") };
    let dependencies = &schedule.dependencies;
    let leads = (0..dependencies.nodes())
        .filter(|&node| dependencies.dependents(node, Point::Done).any(|next| next == end));
    let leads: Vec<_> = leads.map(|node| (dependencies.is_flow(node), dependencies.takes(node))).collect();
    assert_eq!(leads, [(false, Span::from_us(1))]);
}

#[test]
fn what_cannot_be_in_goals_binary_form_is_told() {
    // The operations of rank 1 are behind the head, the part of rank 0 and their own head.
    let (head, roots) = (8 + 6 + 3 * 16, 12);
    let operation = |place: usize| head + (roots + 39) + roots + 39 * place;
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = binary();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        traffic_of_all("x.bin", &[("x.bin", file)]).unwrap_err().to_string()
    };
    let (any, last) = (u32::MAX.to_le_bytes(), operation(4));
    let cases = [
        (changed(operation(0) + 4, &[9]), "x.bin: found operation 2, of rank 1: type 9: allowed is 1 (send)"),
        (changed(operation(0) + 5, &any), "operation 2, of rank 1: recv from any rank: allowed is a rank"),
        (
            changed(operation(0) + 5, &[1]),
            "operation 2, of rank 1: rank 1: allowed is another rank than its own",
        ),
        (changed(operation(2) + 17, &any), "operation 4, of rank 1: any tag: allowed is a tag"),
        (
            changed(operation(2) + 5, &[0]),
            "operation 6: recv from rank 1 with tag 0, which nothing is sent for",
        ),
        (changed(last, &[4]), "an operation that waits and is not there: allowed is one of 4"),
        (changed(operation(0) + 23, &[99]), "found rank 1 that is not whole"),
        (changed(operation(0) + 23, &any), "found rank 1 that is not whole"),
        (changed(8 + 6, &any), "found rank 0 that is not whole"),
        (changed(8, &any), "found the head that is not whole"),
        (
            changed(operation(0) + 5, &[3]),
            "operation 2, of rank 1: rank 3: allowed is another rank than its own, 0 to 2",
        ),
        (changed(8, &[2]), "found rank 0 that is not whole"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{expected:?}: {found}");
    }
    let table = |rank: usize| 8 + 6 + 16 * rank;
    let first: [u8; 16] = binary()[table(0)..table(1)].try_into().unwrap();
    let twice = changed(table(1), &first);
    assert!(twice.contains("found rank 1 that is not whole"), "{twice}");
    let behind = [binary(), vec![0; 3]].concat();
    let behind = traffic_of_all("x.bin", &[("x.bin", behind)]).unwrap_err().to_string();
    assert!(behind.contains("found 3 bytes behind the last rank"), "{behind}");
    for length in 8..binary().len() {
        assert!(traffic_of_all("x.bin", &[("x.bin", &binary()[..length])]).is_err(), "{length}");
    }
}

/// A computation, what is sent after it, and an all-reduce after that.
pub(super) fn chakra(rank: u32) -> String {
    let other = 1 - rank;
    let (kind, peer) =
        if rank == 0 { ("COMM_SEND_NODE", "comm_dst") } else { ("COMM_RECV_NODE", "comm_src") };
    format!(
        r#"{{"version": "0.0.4"}}
{{"id": "1", "name": "gemm", "type": "COMP_NODE", "durationMicros": "7"}}
{{"id": "2", "type": "{kind}", "dataDeps": ["1"], "attr": [
  {{"name": "comm_size", "int64Val": "4096"}}, {{"name": "{peer}", "int32Val": {other}}}]}}
{{"id": "3", "type": "COMM_COLL_NODE", "ctrlDeps": ["2"], "attr": [
  {{"name": "comm_type", "int64Val": "0"}}, {{"name": "comm_size", "int64Val": "1048576"}}]}}
"#
    )
}

#[test]
fn chakras_traces_send_after_what_they_depend_on() {
    let (zero, one) = (chakra(0), chakra(1));
    let files = [("t.0.json", zero.as_str()), ("t.1.json", one.as_str())];
    let traffic = traffic_of_all("t.{rank}.json", &files).unwrap();
    // The send, and two steps of a ring of two.
    assert_eq!(traffic.flows.len(), 1 + 4);
    let first = &traffic.flows[0];
    assert_eq!((first.src.0, first.dst.0, first.size_bytes), (0, 1, 4_096));
    assert_eq!(first.start, Time::ZERO + Span::from_us(7));
    let schedule = traffic.schedule.as_ref().unwrap();
    let kinds: Vec<_> = schedule.collectives.iter().map(|one| (one.kind.name(), one.step)).collect();
    assert_eq!(kinds, [("file", None), ("all-reduce", Some(0))]);
}

#[test]
fn nodes_of_chakra_that_cannot_be_read_are_told() {
    let good = chakra(1);
    let all = |zero: &str| {
        let files = [("t.0.json", zero), ("t.1.json", good.as_str())];
        traffic_of_all("t.{rank}.json", &files).unwrap_err().to_string()
    };
    let node = |rest: &str| all(&format!("{{}}\n{{\"id\": 1, {rest}}}"));
    let cases = [
        (node("\"type\": \"X\""), "t.0.json:2: found type \"X\": allowed is METADATA_NODE"),
        (
            node("\"type\": 7, \"comm_size\": 5, \"comm_type\": 3"),
            "found node 1: comm_type 3: allowed is ALL_REDUCE (0)",
        ),
        (node("\"type\": 7, \"comm_type\": 0"), "node 1 without a size that can be"),
        (
            node("\"type\": 5, \"comm_size\": 5"),
            "t.0.json:2: found node 1: no comm_dst: allowed is comm_dst, another rank, 0 to 1",
        ),
        (node("\"type\": 5, \"comm_size\": 5, \"comm_dst\": 0"), "found node 1: comm_dst 0"),
        (node("\"type\": 4, \"data_deps\": [9]"), "nothing is sent for"),
        (
            node("\"type\": 4}\n{\"id\": 1, \"type\": 4"),
            "t.0.json:3: found node 1: the id 1 again: allowed is an id",
        ),
        (
            node(
                "\"type\": 7, \"comm_size\": 5, \"comm_type\": 0, \
                 \"attr\": [{\"name\": \"involved_dim\", \"boolList\": {\"values\": [true, false]}}]",
            ),
            "node 1: an involved_dim that leaves a dimension out, without pg_name: allowed is pg_name",
        ),
        (
            node("\"type\": 4, \"durations_micros\": 5"),
            "t.0.json:2: found node 1: the field \"durations_micros\": allowed is id, Id, type",
        ),
        (
            node("\"type\": 4, \"attr\": [{\"name\": \"is_cpu\", \"boolVal\": true}]"),
            "t.0.json:2: found node 1: the attribute \"is_cpu\": allowed is comm_type, comm_size",
        ),
        (
            node("\"type\": 5, \"attr\": [{\"name\": \"comm_tag\", \"int64List\": {\"values\": [1]}}]"),
            "node 1: comm_tag with 0 values that are read: allowed is one value",
        ),
        (
            node(
                "\"type\": 5, \"attr\": [{\"name\": \"comm_size\", \"int64Val\": 5}, \
                 {\"name\": \"comm_size\", \"int64Val\": 6}]",
            ),
            "node 1: comm_size again: allowed is each attribute once",
        ),
        (
            node("\"type\": 4, \"is_cpu_op\": \"yes\""),
            "found is_cpu_op = \"yes\": allowed is true, false, or a number",
        ),
        (
            node(
                "\"type\": 7, \"comm_size\": 5, \"comm_type\": 0, \
                 \"attr\": [{\"name\": \"involved_dim\", \"int64Val\": 1}]",
            ),
            "allowed is a boolList of true and false",
        ),
        (
            node("\"kind\": 4"),
            "t.0.json:2: found \"id\" in an object without a type: allowed is a node with a type, or metadata",
        ),
        (
            node("\"type\": 4, \"num_ops\": 1000000"),
            "node 1: num_ops without duration_micros: allowed is duration_micros, the time that it takes",
        ),
        (
            node("\"type\": 5, \"comm_size\": 5, \"comm_dst\": 1, \"comm_src\": 1"),
            "node 1: comm_src 1 in the trace of rank 0: allowed is comm_src 0, or none",
        ),
        (node("\"type\": 5, \"comm_size\": -5"), "node 1: comm_size = -5: allowed is a whole number from 0"),
        (node("\"type\": 5, \"comm_size\": 1.5"), "node 1: comm_size = 1.5: allowed is a whole number"),
        (node("\"type\": 4, \"duration_micros\": -1"), "node 1: a duration that cannot be"),
        (all("{\"version\": \"0.0.4\"} junk"), "t.0.json:1: found expected value at line 1"),
        (all("{\"id\": 1, \"type\""), "allowed is JSON"),
        (all("{}"), "no node"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    assert!(said("t.json", "{}").contains("a name with {rank} in it"));
    assert!(
        said("t.txt", "")
            .contains("traffic.schedule.file = \"t.txt\": allowed is a file whose name ends in .cm")
    );
}

/// One collective at each of so many ranks.
fn together(ranks: usize, kind: &str, bytes: u64) -> Result<Traffic, TrafficError> {
    let text = format!("{{\"id\": 1, \"type\": 7, \"comm_type\": \"{kind}\", \"comm_size\": {bytes}}}");
    let files: Vec<_> = (0..ranks).map(|rank| (format!("t.{rank}.json"), text.clone())).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    traffic_of_all("t.{rank}.json", &files)
}

#[test]
fn comm_size_is_what_a_rank_brings_in_by_kind_of_collective() {
    // What each rank sends of 1 MiB at 4 ranks: of a broadcast and a reduce, all of them together.
    let (mib, ranks) = (1_u64 << 20, 4);
    let cases = [
        ("ALL_GATHER", 3 * mib, Some(4 * mib)),
        ("REDUCE_SCATTER", 3 * mib / 4, Some(mib)),
        ("ALL_REDUCE", 2 * 3 * mib / 4, Some(mib)),
        ("ALL_TO_ALL", 3 * mib / 4, Some(mib)),
        ("BROADCAST", 3 * mib / 4, Some(mib)),
        ("REDUCE", 3 * mib / 4, Some(mib)),
    ];
    for (kind, sent, size) in cases {
        let traffic = together(ranks, kind, mib).unwrap();
        let total: u64 = traffic.flows.iter().map(|flow| flow.size_bytes).sum();
        assert_eq!(total, ranks as u64 * sent, "{kind}");
        assert_eq!(traffic.schedule.unwrap().collectives[1].size_bytes, size, "{kind}");
    }
}

#[test]
fn ranks_without_a_trace_are_told() {
    let text = "{\"id\": 1, \"type\": 7, \"comm_type\": 0, \"comm_size\": 9}";
    let of = |name: &str, ranks: &[u32]| {
        let folder = tempfile::tempdir().unwrap();
        for rank in ranks {
            let file = folder.path().join(name.replace("{rank}", &rank.to_string()));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        spec(&format!("[schedule]\nfile = '{name}'")).generate(&leaf_spine(), 1, folder.path())
    };
    for name in ["t.{rank}.json", "rank{rank}/t.json", "{rank}/t{rank}.json"] {
        let file = |rank: u32| name.replace("{rank}", &rank.to_string());
        let cases: [(&[u32], String); 4] = [
            (&[0, 1, 3], format!("found {} for rank 3, and no {}", file(3), file(2))),
            (&[1, 2], format!("found {} for rank 2, and no {}", file(2), file(0))),
            (&[0], "found 1 ranks: allowed is 2 to 16".to_owned()),
            (&[], file(0)),
        ];
        for (ranks, expected) in cases {
            let found = of(name, ranks).unwrap_err().to_string();
            assert!(found.contains(&expected), "{name} {ranks:?}: {found}");
        }
        assert_eq!(of(name, &[0, 1, 2]).unwrap().schedule.unwrap().collectives[0].hosts.len(), 3);
    }
    // A collective without a group is of all ranks.
    let alone = [("t.0.json", text), ("t.1.json", text), ("t.2.json", "{\"id\": 1, \"type\": 4}")];
    let found = traffic_of_all("t.{rank}.json", &alone).unwrap_err().to_string();
    assert!(found.contains("collective 0 of group \"\" at 2 of 3 ranks"), "{found}");
}

#[test]
fn a_receive_of_chakra_is_as_large_as_its_send() {
    let of = |sent: u64, received: &str| {
        let send = format!("{{\"id\": 1, \"type\": 5, \"comm_dst\": 1, \"comm_size\": {sent}}}");
        let receive = format!("{{}}\n{{\"id\": 2, \"type\": 6, \"comm_src\": 0{received}}}");
        traffic_of_all("t.{rank}.json", &[("t.0.json", send), ("t.1.json", receive)])
            .map(|traffic| traffic.flows.len())
    };
    for received in ["", ", \"comm_size\": 100000"] {
        assert_eq!(of(100_000, received), Ok(1));
    }
    for received in [50_000, 200_000] {
        let found = of(100_000, &format!(", \"comm_size\": {received}")).unwrap_err().to_string();
        let expected = format!(
            "t.1.json:2: found node 2: comm_size {received} of a receive: allowed is 100000, as node 1 of rank 0 sends"
        );
        assert!(found.contains(&expected), "{found}");
    }
}

#[test]
fn the_examples_are_one_collective_in_two_languages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let of = |name: &str| {
        let traffic =
            spec(&format!("[schedule]\nfile = '{name}'")).generate(&leaf_spine(), 1, &folder).unwrap();
        let mut flows: Vec<_> =
            traffic.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size_bytes)).collect();
        flows.sort_unstable();
        (flows, needs(&traffic).into_iter().filter(|&needs| needs > 0).count())
    };
    assert_eq!(of("ring.cm"), of("ring.goal"));
    assert_eq!(of("ring.cm").1, 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_text_makes_a_reader_panic(
        text in any::<String>(),
        words in "(Nodes 4\n|0->1|1->0| id 1| start 0| size 9| trigger 1|\n|trigger id 1 oneshot|rank 0 \\{|\\}|a: calc 1|a requires a|num_ranks 2){0,30}",
    ) {
        for name in ["x.cm", "x.goal"] {
            let _ = traffic_of(name, &text);
            let _ = traffic_of(name, &words);
        }
        let _ = traffic_of_all("t.{rank}.json", &[("t.0.json", &text), ("t.1.json", &words)]);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = traffic_of_all("t.{rank}.et", &[("t.0.et", &bytes), ("t.1.et", &bytes)]);
        let cookie = 4_223_u64.to_le_bytes();
        let _ = traffic_of_all("x.bin", &[("x.bin", [&cookie, bytes.as_slice()].concat())]);
        let mut spoiled = binary();
        for pair in bytes.chunks_exact(2) {
            let at = 8 + usize::from(pair[0]) % (spoiled.len() - 8);
            spoiled[at] = pair[1];
        }
        let _ = traffic_of_all("x.bin", &[("x.bin", spoiled)]);
    }
}
