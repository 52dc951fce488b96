//! MPTCP of Linux hosts.

use std::sync::atomic::{AtomicU32, Ordering};

use weft_lab::{Outcome, Prepared, SpecSource};

use super::{assert_conserved, column, flows, has_kernel, linux};
use crate::common::run;

/// One flow between two racks over two spines, with no coupling: hosts have 200 Mbit/s, each of the
/// two paths 100 Mbit/s, all links 50 us.
fn two_paths(bytes: &str, subflows: &str) -> SpecSource {
    // One a call: tests run beside each other.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let trace = std::env::temp_dir().join(format!("weft-linux-mptcp-{}-{call}.csv", std::process::id()));
    std::fs::write(&trace, format!("start_us,src,dst,size_bytes\n0,0,4,{bytes}\n")).unwrap();
    let text = format!(
        "hosts = 'linux'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nhost_rate = '200Mbps'\n\
         fabric_rate = '100Mbps'\nhost_delay = '50us'\nfabric_delay = '50us'\noverhead = '38B'\nreroute_after = '10s'\n[traffic]\n\
         trace = '{}'\n[transport]\nname = 'mptcp'\nsubflows = {subflows}\ncoupling = 'none'\nhandshake = true\n",
        trace.display()
    );
    SpecSource::from_text(text)
}

/// The small run over MPTCP of Linux hosts.
fn small(changes: &[(&str, &str)]) -> SpecSource {
    let all = [("transport.name", "mptcp"), ("transport.subflows", "3"), ("transport.coupling", "none")];
    let all: Vec<_> = all.iter().chain(changes).copied().collect();
    linux(&all)
}

/// The uplinks of the first leaf that carry data, by name.
fn uplinks(outcome: &Outcome) -> Vec<String> {
    let links = outcome.table("links").unwrap();
    let names = arrow_array::cast::as_string_array(links.column_by_name("link").unwrap());
    let bytes = column(&links, "bytes");
    let carries = |&row: &usize| names.value(row).starts_with("leaf0>spine") && bytes[row] > 100_000.0;
    (0..bytes.len()).filter(carries).map(|row| names.value(row).to_owned()).collect()
}

/// Checks every run: all bytes came, and nobody could read them before. Returns the table of flows.
fn assert_whole(outcome: &Outcome) -> arrow_array::RecordBatch {
    assert_conserved(outcome);
    let table = flows(outcome);
    assert_eq!(column(&table, "delivered_bytes"), column(&table, "size_bytes"));
    let (fct, read) = (column(&table, "fct_us"), column(&table, "kernel_fct_us"));
    assert!(fct.iter().zip(&read).all(|(fct, read)| read >= fct), "{fct:?}, read {read:?}");
    table
}

#[test]
fn a_lone_mptcp_flow_takes_what_headers_rates_and_delays_say() {
    if !has_kernel() {
        return;
    }
    let (slow, fast) = (|bytes: f64| bytes * 8.0 / 100.0, |bytes: f64| bytes * 8.0 / 200.0);
    let crossing = |bytes: f64| 2.0 * fast(bytes) + 2.0 * slow(bytes) + 4.0 * 50.0;
    // SYN 60 bytes and 4 of MP_CAPABLE; its answer with 12, the last of the handshake, 52 bytes,
    // with 20.
    let (syn, answer, last) = (64.0 + 38.0, 72.0 + 38.0, 72.0 + 38.0);
    // Ten full segments of 1,424 bytes: a first window, and before any acknowledgement is back.
    let full = 1_538.0;
    let by_hand = crossing(syn) + crossing(answer) + fast(last) + crossing(full) + 9.0 * slow(full);
    for subflows in ["1", "8"] {
        let table = assert_whole(&run(&two_paths("14240", subflows)));
        let found = column(&table, "fct_us")[0];
        println!("{subflows} subflows: {found} us, by hand {by_hand} us");
        assert!((0.0..0.01).contains(&(found - by_hand)), "{found} us, by hand {by_hand} us");
        assert_eq!(column(&table, "segments_sent")[0], 10.0);
    }
}

#[test]
fn two_subflows_fill_two_disjoint_paths_and_take_those_that_simulated_ones_take() {
    if !has_kernel() {
        return;
    }
    let bound = 100.0 * 1_424.0 / 1_538.0;
    let mut used = Vec::new();
    for seed in ["1", "2"] {
        let spec = |subflows: &str| two_paths("10000000", subflows).with("run.seed", seed);
        let outcome = run(&spec("2"));
        let table = assert_whole(&outcome);
        let rate = 80_000_000.0 / column(&table, "fct_us")[0];
        let mine = uplinks(&outcome);
        println!("seed {seed}: {rate} Mbit/s over {mine:?}, bound by headers {bound} each");
        let paths = mine.len() as f64;
        assert!((bound * paths * 0.97..=bound * paths).contains(&rate), "{rate} Mbit/s over {mine:?}");
        assert_eq!(mine, uplinks(&run(&spec("2").with("hosts", "simulated"))), "seed {seed}");
        assert_eq!(uplinks(&run(&spec("1"))).len(), 1);
        used.push(mine.len());

        let subflows = outcome.table("subflows").unwrap();
        assert_eq!(column(&subflows, "subflow"), [0.0, 1.0]);
        assert_eq!(column(&subflows, "dst_port"), [5_000.0; 2]);
        assert_eq!(column(&subflows, "src_port")[0], column(&table, "kernel_port")[0]);
        // What is sent once and more is payload; the SYN of each counts as a byte.
        let acknowledged: f64 = column(&subflows, "acknowledged_bytes").iter().sum();
        assert!((10_000_002.0..10_100_000.0).contains(&acknowledged), "{acknowledged} bytes");
        assert_eq!(column(&table, "kernel_subflows"), [2.0]);
    }
    assert_eq!(used, [2, 1], "one seed sends them over both paths, the other over one");
}

#[test]
fn the_same_spec_gives_the_same_bytes_with_several_subflows() {
    if !has_kernel() {
        return;
    }
    let spec = || small(&[("traffic.flows", "12"), ("scheme.name", "letflow")]);
    let (first, second) = (run(&spec()), run(&spec()));
    assert_whole(&first);
    assert_eq!(first.fingerprint().unwrap(), second.fingerprint().unwrap());
    let ports = |outcome: &Outcome| column(&outcome.table("subflows").unwrap(), "src_port");
    let other = run(&small(&[("traffic.flows", "12"), ("scheme.name", "letflow"), ("run.seed", "2")]));
    assert_ne!(ports(&first), ports(&other));
}

#[test]
fn every_load_balancer_serves_subflows_without_knowing_it() {
    if !has_kernel() {
        return;
    }
    for info in weft_balance::schemes() {
        let outcome = run(&small(&[("scheme.name", info.name), ("traffic.flows", "8")]));
        let table = assert_whole(&outcome);
        let mut connections = column(&table, "kernel_subflows");
        connections.sort_by(f64::total_cmp);
        assert_eq!((connections[0], connections[7]), (1.0, 3.0), "{}: short flows and long ones", info.name);
        assert_eq!(
            outcome.table("connections").unwrap().num_rows(),
            0,
            "{}: all belongs to flows",
            info.name
        );
    }
}

#[test]
fn what_subflows_lose_is_sent_again_and_counted_as_the_kernel_counts_it() {
    if !has_kernel() {
        return;
    }
    let lossy = [
        ("fabric.switch_queue.buffer", "60KB"),
        ("fabric.switch_queue.mark", "never"),
        ("traffic.load", "0.8"),
        ("run.seed", "2"),
    ];
    let outcome = run(&small(&lossy));
    let table = assert_whole(&outcome);
    let (fct, read) = (column(&table, "fct_us"), column(&table, "kernel_fct_us"));
    assert!(
        fct.iter().zip(&read).all(|(fct, read)| read - fct < 0.001),
        "one path a subflow: none overtakes"
    );
    let (seen, told) = (column(&table, "retransmissions"), column(&table, "kernel_retransmissions"));
    let dropped = column(&table, "dropped_segments");
    assert!(dropped.iter().filter(|&&count| count > 0.0).count() > 5, "packets are lost: {dropped:?}");
    assert_eq!(seen, told);
    let subflows = outcome.table("subflows").unwrap();
    let again: f64 = column(&subflows, "retransmissions").iter().sum();
    assert_eq!(again, told.iter().sum::<f64>(), "the flow's counts are sums");
}

#[test]
fn a_flow_whose_one_path_dies_goes_on_over_the_other() {
    if !has_kernel() {
        return;
    }
    let dies = two_paths("10000000", "2")
        .with("fabric.fault", "[{ link = \"leaf0>spine0\", at = \"100ms\", blackhole = 1.0 }]");
    let table = assert_whole(&run(&dies));
    let (fct, timeouts) = (column(&table, "fct_us")[0], column(&table, "timeouts")[0]);
    println!("{fct} us, {timeouts} timeouts");
    // About 2 MB are there when it dies; the rest goes over one path.
    let alone = 8_000_000.0 * 8.0 / (100.0 * 1_424.0 / 1_538.0);
    assert!(fct > 100_000.0 + alone && timeouts > 0.0, "{fct} us, {timeouts} timeouts");
    assert!(column(&table, "dropped_segments")[0] > 0.0);
}

#[test]
fn what_mptcp_of_linux_hosts_cannot_do_is_refused_with_what_is_allowed() {
    let refused = |changes: &[(&str, &str)]| match Prepared::new(&small(changes)) {
        Ok(_) => panic!("{changes:?} was taken"),
        Err(error) => error.to_string(),
    };
    assert!(refused(&[("transport.subflows", "9")]).contains("1 to 8, with Linux hosts"));
    let beside = refused(&[("hosts", "linux"), ("hosts.at", "[0]")]);
    assert!(beside.contains("tcp or dctcp, with simulated hosts beside Linux hosts"), "{beside}");
    let option = refused(&[("hosts", "linux"), ("hosts.kernel.max_segment_bytes", "700")]);
    assert!(option.contains("send_buffer_bytes, receive_buffer_bytes, no_delay, cork"), "{option}");
    assert!(refused(&[("transport.header", "20B")]).contains("40B or more"));
}

#[test]
fn windows_that_the_kernel_does_not_couple_are_told_of() {
    if !has_kernel() {
        return;
    }
    let warnings =
        |coupling| run(&two_paths("14240", "2").with("transport.coupling", coupling)).summary.warnings;
    assert_eq!(warnings("none"), Vec::<String>::new());
    assert_eq!(warnings("lia").len(), 1);
    assert!(warnings("lia")[0].starts_with("transport.coupling: "));
}
