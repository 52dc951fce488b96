//! Listing the packets that links send.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use common::{run, small};
use weft_lab::{Prepared, RunError};

fn packets(changes: &[(&str, &str)], at: &[&str], most: usize) -> Result<RecordBatch, RunError> {
    let at: Vec<String> = at.iter().map(|name| (*name).to_owned()).collect();
    Prepared::new(&small(changes)).unwrap().packets(&mut |_| ControlFlow::Continue(()), &at, most)
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

#[test]
fn a_pcapng_file_has_the_packets_as_ip_with_their_lengths_and_an_interface_a_link() {
    let prepared = Prepared::new(&small(&[("transport.sack", "true")])).unwrap();
    let at = ["host0".to_owned()];
    let file = prepared.pcapng(&mut |_| ControlFlow::Continue(()), &at, 500).unwrap();
    let table = packets(&[("transport.sack", "true")], &["host0"], 500).unwrap();
    let bytes = table.column(7).as_primitive::<UInt16Type>();
    // Blocks of a type, a length, what is in them, and the length again; packets have the type 6, interfaces 1.
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
