//! Tests that `.et` files give the schedule that JSON files give, and of the messages for those
//! that cannot be read.

use proptest::prelude::*;
use prost::Message;

use super::message::{Attribute, BoolList, GlobalMetadata, Held, Node};
use crate::collective::file::tests::{chakra, needs, traffic_of_all};
use crate::{Traffic, TrafficError};

const COMP: i32 = 4;
const SEND: i32 = 5;
const RECV: i32 = 6;
const COLL: i32 = 7;

fn attribute(name: &str, held: Held) -> Attribute {
    Attribute { name: name.to_owned(), held: Some(held) }
}

fn size(bytes: u64) -> Attribute {
    attribute("comm_size", Held::Uint64(bytes))
}

fn node(id: u64, kind: i32, data_deps: &[u64], attributes: Vec<Attribute>) -> Node {
    Node { id, kind, data_deps: data_deps.to_vec(), attributes, ..Node::default() }
}

fn computation(id: u64, data_deps: &[u64]) -> Node {
    Node { duration_micros: 7, ..node(id, COMP, data_deps, Vec::new()) }
}

fn metadata() -> Vec<u8> {
    let attributes = vec![attribute("schema", Held::Text("1.1.1-chakra.0.0.4".to_owned()))];
    GlobalMetadata { version: "0.0.4".to_owned(), attributes }.encode_length_delimited_to_vec()
}

fn file(nodes: &[Node]) -> Vec<u8> {
    nodes.iter().fold(metadata(), |mut bytes, node| {
        node.encode_length_delimited(&mut bytes).unwrap();
        bytes
    })
}

/// Nodes of a rank that `chakra` has as JSON.
fn same_as_json(rank: i32) -> Vec<Node> {
    let (kind, peer) = if rank == 0 { (SEND, "comm_dst") } else { (RECV, "comm_src") };
    let peer = attribute(peer, Held::Int32(1 - rank));
    let collective =
        vec![attribute("comm_type", Held::Int64(0)), attribute("comm_size", Held::Int64(1 << 20))];
    vec![
        computation(1, &[]),
        node(2, kind, &[1], vec![attribute("comm_size", Held::Int64(4_096)), peer]),
        Node { ctrl_deps: vec![2], ..node(3, COLL, &[], collective) },
    ]
}

fn read(zero: &[u8], one: &[u8]) -> Result<Traffic, TrafficError> {
    traffic_of_all("t.{rank}.et", &[("t.0.et", zero), ("t.1.et", one)])
}

#[test]
fn a_trace_is_the_same_schedule_as_protobuf_and_as_json() {
    let binary = read(&file(&same_as_json(0)), &file(&same_as_json(1))).unwrap();
    let text = traffic_of_all("t.{rank}.json", &[("t.0.json", chakra(0)), ("t.1.json", chakra(1))]).unwrap();
    assert_eq!(binary.flows, text.flows);
    assert_eq!(needs(&binary), needs(&text));
    let collectives = |traffic: &Traffic| {
        let all = &traffic.schedule.as_ref().unwrap().collectives;
        all.iter().map(|one| (one.kind, one.size_bytes, one.hosts.clone())).collect::<Vec<_>>()
    };
    assert_eq!(collectives(&binary), collectives(&text));
}

#[test]
fn all_types_of_numbers_are_the_number() {
    let all = [
        Held::Int32(9),
        Held::Int64(9),
        Held::Uint32(9),
        Held::Uint64(9),
        Held::Sint32(9),
        Held::Sint64(9),
        Held::Fixed32(9),
        Held::Fixed64(9),
        Held::Sfixed32(9),
        Held::Sfixed64(9),
    ];
    for held in all {
        let (to, from) = (attribute("comm_dst", Held::Uint32(1)), attribute("comm_src", Held::Uint32(0)));
        let tag = attribute("comm_tag", held.clone());
        let zero = file(&[node(0, SEND, &[], vec![to, size(5), tag])]);
        let one = file(&[node(0, RECV, &[], vec![from, attribute("comm_tag", Held::Int64(9))])]);
        assert_eq!(read(&zero, &one).map(|traffic| traffic.flows.len()), Ok(1), "{held:?}");
    }
}

#[test]
fn the_groups_of_collectives_are_those_of_their_names() {
    let group = |name: &str, dims: &[bool]| {
        let dims = attribute("involved_dim", Held::Bools(BoolList { values: dims.to_vec() }));
        let name = attribute("pg_name", Held::Text(name.to_owned()));
        let kind = attribute("comm_type", Held::Uint64(2));
        file(&[node(1, COLL, &[], vec![kind, size(4_000), dims, name])])
    };
    // A name goes before dimensions.
    let (even, odd) = (group("even", &[true, false]), group("odd", &[false, true]));
    let files = [("t.0.et", &even), ("t.1.et", &odd), ("t.2.et", &even), ("t.3.et", &odd)];
    let traffic = traffic_of_all("t.{rank}.et", &files).unwrap();
    let mut ends: Vec<_> = traffic.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
    ends.sort_unstable();
    assert_eq!(ends, [(0, 2), (1, 3), (2, 0), (3, 1)]);
}

#[test]
fn each_message_that_cannot_be_read_is_told() {
    let good = file(&[computation(1, &[])]);
    let said = |zero: &[u8]| read(zero, &good).unwrap_err().to_string();
    let nodes = |nodes: &[Node]| said(&file(nodes));
    let first = metadata().len();
    let second = first + computation(1, &[]).encode_length_delimited_to_vec().len();
    let whole = file(&same_as_json(0));
    let partial = attribute("involved_dim", Held::Bools(BoolList { values: vec![true, false] }));
    let cases = [
        (said(&[]), "t.0.et: found no byte: allowed is GlobalMetadata and then nodes".to_owned()),
        (said(&metadata()), "t.0.et: found no node: allowed is at least one Node".to_owned()),
        (
            nodes(&[node(1, 1, &[], Vec::new())]),
            "t.0.et: found no node: allowed is at least one Node that is no metadata".to_owned(),
        ),
        (
            said(&whole[..second - 1]),
            format!("t.0.et: message 2 at byte {first}: found a message of 6 B of which the file has 5: allowed is whole"),
        ),
        (
            said(&[&metadata()[..], &[0xff; 11]].concat()),
            format!("t.0.et: message 2 at byte {first}: found no length of a message: allowed is a varint"),
        ),
        (said(b"{\"id\": 1}\n"), "message 1 at byte 0: found a message of 123 B of which the file has 9".to_owned()),
        (said(&[2, 0xff, 0xff]), "message 1 at byte 0: found what is none (failed to decode".to_owned()),
        (
            said(&[&metadata()[..], &[2, 0x08, 0xff]].concat()),
            format!("message 2 at byte {first}: found what is none (failed to decode"),
        ),
        (
            said(&whole[first..]),
            "message 1 at byte 0: found a Node: allowed is GlobalMetadata, which comes first".to_owned(),
        ),
        (
            nodes(&[computation(1, &[]), node(2, 11, &[], Vec::new())]),
            format!("message 3 at byte {second}: found type 11: allowed is METADATA_NODE, MEM_LOAD_NODE"),
        ),
        (
            nodes(&[computation(0, &[]), computation(0, &[])]),
            "found node 0: the id 0 again, which is what a node without an id has: allowed is an id of its own".to_owned(),
        ),
        (
            nodes(&[computation(1, &[]), computation(2, &[9])]),
            format!(
                "t.0.et: message 3 at byte {second}: found node 2: it depends on node 9, which is nowhere: \
                 allowed is a node of the same rank"
            ),
        ),
        (
            nodes(&[computation(1, &[2]), computation(2, &[1])]),
            "a cycle, in which each waits for the next: the computation at host 0 (message 2), the computation at \
             host 0 (message 3), the computation at host 0 (message 2)"
                .to_owned(),
        ),
        (
            nodes(&[node(1, SEND, &[], vec![size(5), attribute("comm_dst", Held::Int32(-1))])]),
            format!("message 2 at byte {first}: found node 1: comm_dst = -1: allowed is a whole number from 0"),
        ),
        (
            nodes(&[node(1, COLL, &[], vec![size(5), attribute("comm_type", Held::Int32(3))])]),
            format!("message 2 at byte {first}: found node 1: comm_type 3: allowed is ALL_REDUCE (0)"),
        ),
        (
            nodes(&[node(1, COLL, &[], vec![size(5), attribute("comm_type", Held::Int32(0)), partial])]),
            "found node 1: an involved_dim that leaves a dimension out, without pg_name".to_owned(),
        ),
        (
            said(&[&metadata()[..], &[4, 0x08, 1, 0x58, 1]].concat()),
            format!("message 2 at byte {first}: found a field 11: allowed is the fields of Node, as in Chakra's"),
        ),
        (
            said(&[&metadata()[..], &[7, 0x08, 1, 0x52, 3, 0x88, 2, 1]].concat()),
            format!("message 2 at byte {first}: found a field 33 in an attribute: allowed is the fields of Node"),
        ),
        (
            said(&[2, 0x18, 1]),
            "message 1 at byte 0: found a Node: allowed is GlobalMetadata, which comes first".to_owned(),
        ),
        (said(&[2, 0x20, 1]), "message 1 at byte 0: found a field 4: allowed is the fields of GlobalMetadata".to_owned()),
    ];
    for (found, expected) in cases {
        assert!(found.contains(&expected), "{expected}: {found}");
    }
    let lone = traffic_of_all("t.et", &[("t.et", "")]).unwrap_err().to_string();
    assert!(lone.contains("a name with {rank} in it"), "{lone}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes that are nearly a trace come further than any.
    #[test]
    fn no_change_of_a_byte_makes_the_reader_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (mut zero, one) = (file(&same_as_json(0)), file(&same_as_json(1)));
        for (at, byte) in changes {
            let at = at.index(zero.len());
            zero[at] = byte;
        }
        let _ = read(&zero, &one);
    }

    #[test]
    fn a_trace_that_ends_early_is_refused(end in any::<prop::sample::Index>()) {
        let (zero, one) = (file(&same_as_json(0)), file(&same_as_json(1)));
        prop_assert!(read(&zero[..end.index(zero.len())], &one).is_err());
    }
}
