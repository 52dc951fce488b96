//! Listing the packets that links send.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::common::{run, small};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use weft_lab::packets::PacketsOf;
use weft_lab::{Prepared, RunError};

fn packets(changes: &[(&str, &str)], at: &[&str], most: usize) -> Result<RecordBatch, RunError> {
    let at: Vec<String> = at.iter().map(|name| (*name).to_owned()).collect();
    list(changes, PacketsOf { at: &at, flows: None, most })
}

fn list(changes: &[(&str, &str)], of: PacketsOf<'_>) -> Result<RecordBatch, RunError> {
    Prepared::new(&small(changes)).unwrap().packets(&mut |_| ControlFlow::Continue(()), of)
}

#[test]
fn a_hosts_cable_shows_each_segment_of_its_flows_once_and_never_two_at_a_time() {
    let table = packets(&[], &["host0"], usize::MAX).unwrap();
    let (time, bytes) =
        (table.column(0).as_primitive::<Float64Type>(), table.column(7).as_primitive::<UInt16Type>());
    let links = table.column(1).as_string::<i32>();
    let (flow, src) =
        (table.column(2).as_primitive::<UInt32Type>(), table.column(3).as_primitive::<UInt16Type>());
    let kind = table.column(5).as_string::<i32>();

    let mut free = BTreeMap::new();
    let mut sent: BTreeMap<u32, u64> = BTreeMap::new();
    for row in 0..table.num_rows() {
        let link = links.value(row);
        assert!(["host0>leaf0", "leaf0>host0"].contains(&link), "{link}");
        // 10 Gbit/s: 0.8 ns a byte.
        let begins = time.value(row);
        let until = free.insert(link, begins + f64::from(bytes.value(row)) * 0.000_8).unwrap_or(0.0);
        assert!(begins > until - 1e-6, "row {row}: {begins} us, and the link is busy until {until} us");
        if src.value(row) == 0 && kind.value(row) == "data" && link == "host0>leaf0" {
            *sent.entry(flow.value(row)).or_default() += 1;
        }
    }
    let flows = run(&small(&[])).table("flows").unwrap();
    let column = |name: &str| flows.column_by_name(name).unwrap().clone();
    let (from, segments) = (column("src"), column("segments_sent"));
    let from = from.as_primitive::<UInt16Type>();
    let expected: BTreeMap<u32, u64> = (0..flows.num_rows())
        .filter(|&row| from.value(row) == 0)
        .map(|row| (row as u32, segments.as_primitive::<UInt64Type>().value(row)))
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(sent, expected);
}

#[test]
fn hosts_stands_for_what_every_host_sends() {
    let table = packets(&[], &["hosts"], usize::MAX).unwrap();
    let links = table.column(1).as_string::<i32>();
    let src = table.column(3).as_primitive::<UInt16Type>();
    assert!(
        (0..table.num_rows()).all(|row| links.value(row).starts_with(&format!("host{}>", src.value(row))))
    );
    let sent = run(&small(&[])).packets.sent;
    assert_eq!(table.num_rows() as u64, sent);
}

#[test]
fn listing_packets_moves_no_result_and_stops_at_the_most() {
    assert_eq!(packets(&[], &["leaf0>spine1"], 10).unwrap().num_rows(), 10);
    assert_eq!(packets(&[], &["leaf0>spine1"], 0).unwrap().num_rows(), 0);
    let all = packets(&[], &["leaf0>spine1"], usize::MAX).unwrap();
    let links = run(&small(&[])).table("links").unwrap();
    let names = links.column_by_name("link").unwrap().clone();
    let row =
        (0..links.num_rows()).find(|&row| names.as_string::<i32>().value(row) == "leaf0>spine1").unwrap();
    let sent = links.column_by_name("packets").unwrap().clone();
    assert_eq!(all.num_rows() as u64, sent.as_primitive::<UInt64Type>().value(row));
}

/// Kinds and links of the packets of a table, by flow.
fn seen(table: &RecordBatch) -> Vec<(u32, String, String)> {
    let links = table.column(1).as_string::<i32>();
    let flow = table.column(2).as_primitive::<UInt32Type>();
    let kind = table.column(5).as_string::<i32>();
    (0..table.num_rows())
        .map(|row| (flow.value(row), links.value(row).to_owned(), kind.value(row).to_owned()))
        .collect()
}

#[test]
fn the_packets_of_a_flow_are_those_of_it_wherever_they_are_seen() {
    // Conga sends no packets of its own, HULA does: they belong to no flow, and carry the number 0.
    for scheme in ["conga", "hula"] {
        let changes = [("scheme.name", scheme)];
        let own =
            seen(&list(&changes, PacketsOf { at: &[], flows: Some(&[0, 7]), most: usize::MAX }).unwrap());
        let every =
            list(&changes, PacketsOf { at: &["hosts".to_owned()], flows: Some(&[7]), most: usize::MAX });
        let at_hosts = seen(&every.unwrap());
        assert!(
            own.iter().all(|(flow, _, kind)| [0, 7].contains(flow)
                && ["data", "ack", "syn", "syn-ack"].contains(&&**kind)),
            "{own:?}"
        );
        let sent = |rows: &[(u32, String, String)]| {
            let is_cable = |link: &str| link.starts_with("host");
            rows.iter().filter(|(flow, link, _)| *flow == 7 && is_cable(link)).count()
        };
        assert_eq!(sent(&own), at_hosts.len(), "{scheme}");
        assert!(sent(&own) > 2);
        // From one rack to another there are four links, each way.
        let of_seven: BTreeSet<&str> =
            own.iter().filter(|(flow, ..)| *flow == 7).map(|(_, link, _)| &**link).collect();
        assert!(of_seven.len() >= 8, "{of_seven:?}");
    }
}

#[test]
fn a_capture_of_a_flow_has_an_interface_for_each_link_that_it_took() {
    let prepared = Prepared::new(&small(&[])).unwrap();
    let of = PacketsOf { at: &[], flows: Some(&[7]), most: usize::MAX };
    let file = prepared.pcapng(&mut |_| ControlFlow::Continue(()), of).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut interfaces, mut packets) = (0, 0, 0);
    while at < file.len() {
        interfaces += usize::from(word(at) == 1);
        packets += usize::from(word(at) == 6);
        at += word(at + 4) as usize;
    }
    let own = seen(&list(&[], of).unwrap());
    let links: BTreeSet<&str> = own.iter().map(|(_, link, _)| &**link).collect();
    assert_eq!((interfaces, packets), (links.len(), own.len()));
}

#[test]
fn a_flow_that_there_is_not_is_refused() {
    let of = PacketsOf { at: &[], flows: Some(&[40]), most: 1 };
    let message = list(&[], of).unwrap_err().to_string();
    assert!(message.contains("there is no flow 40: allowed is 0 to 39"), "{message}");
}

#[test]
fn a_pcapng_file_has_the_packets_as_ip_with_their_lengths_and_an_interface_a_link() {
    let prepared = Prepared::new(&small(&[("transport.sack", "true")])).unwrap();
    let at = ["host0".to_owned()];
    let file = prepared
        .pcapng(&mut |_| ControlFlow::Continue(()), PacketsOf { at: &at, flows: None, most: 500 })
        .unwrap();
    let table = packets(&[("transport.sack", "true")], &["host0"], 500).unwrap();
    let bytes = table.column(7).as_primitive::<UInt16Type>();
    // Blocks of a type, a length, what is in them, and the length again; packets have the type 6,
    // interfaces 1.
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut interfaces, mut row) = (0, 0, 0);
    while at < file.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length);
        match word(at) {
            1 => interfaces += 1,
            6 => {
                let (kept, whole) = (word(at + 20) as usize, word(at + 24));
                assert!(kept <= 128);
                // A SACK option is longer than Weft reckons.
                assert!(whole >= u32::from(bytes.value(row)), "packet {row}");
                assert_eq!(file[at + 28], 0x45, "IPv4");
                assert_eq!(u32::from(u16::from_be_bytes([file[at + 30], file[at + 31]])), whole);
                row += 1;
            }
            _ => {}
        }
        at += length;
    }
    assert_eq!((interfaces, row), (2, 500));
}

#[test]
fn a_name_that_none_has_and_a_port_that_cannot_be_listed_are_refused() {
    let refused = |changes: &[(&str, &str)], at| packets(changes, &[at], 1).unwrap_err().to_string();
    assert!(refused(&[], "hots0").contains("did you mean \"host0\"?"));
    let credits = [("transport.name", "expresspass")];
    assert!(refused(&credits, "host0").contains("several queues"), "{}", refused(&credits, "host0"));
}
