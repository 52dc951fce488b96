//! Real Linux hosts under Weft's fabric. Without the kernel that `make linux-hosts` builds these
//! tests say so and do nothing; with `WEFT_NEEDS_LINUX_HOSTS` they fail.

// Counts are whole numbers, whatever type a column has.
#![allow(clippy::float_cmp)]

#[path = "linux_hosts/mixed.rs"]
mod mixed;
#[path = "linux_hosts/multipath.rs"]
mod multipath;
#[path = "linux_hosts/windows.rs"]
mod windows;

use crate::common::{run, small};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use weft_lab::{Outcome, Prepared, SpecSource};

/// Whether there is a kernel.
fn has_kernel() -> bool {
    match weft_linux_hosts::find() {
        Ok(_) => true,
        Err(error) if std::env::var_os("WEFT_NEEDS_LINUX_HOSTS").is_none() => {
            eprintln!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn flows(outcome: &Outcome) -> RecordBatch {
    outcome.table("flows").unwrap()
}

/// A column of numbers; what is missing is NaN.
fn column(table: &RecordBatch, name: &str) -> Vec<f64> {
    let column = table.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    let value = |row: usize| match column.data_type() {
        _ if column.is_null(row) => f64::NAN,
        arrow_schema::DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        arrow_schema::DataType::UInt16 => f64::from(column.as_primitive::<UInt16Type>().value(row)),
        arrow_schema::DataType::UInt32 => f64::from(column.as_primitive::<UInt32Type>().value(row)),
        _ => column.as_primitive::<UInt64Type>().value(row) as f64,
    };
    (0..column.len()).map(value).collect()
}

fn assert_conserved(outcome: &Outcome) {
    let packets = outcome.packets;
    assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight);
    assert!(packets.sent > 0);
}

fn linux(changes: &[(&str, &str)]) -> SpecSource {
    changes.iter().fold(small(&[("hosts", "linux")]), |source, (key, value)| source.with(key, value))
}

/// One flow between two racks, on links of 100 Mbit/s with 50 us each.
fn alone(bytes: &str) -> SpecSource {
    let trace = std::env::temp_dir().join(format!("weft-linux-alone-{bytes}-{}.csv", std::process::id()));
    std::fs::write(&trace, format!("start_us,src,dst,size_bytes\n0,0,4,{bytes}\n")).unwrap();
    let text = format!(
        "hosts = 'linux'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\nhost_rate = '100Mbps'\n\
         fabric_rate = '100Mbps'\nhost_delay = '50us'\nfabric_delay = '50us'\noverhead = '38B'\n[traffic]\ntrace = '{}'\n\
         [transport]\nname = 'tcp'\n",
        trace.display()
    );
    SpecSource::from_text(text)
}

#[test]
fn the_kernels_clock_and_the_fabrics_agree_and_every_flow_is_whole() {
    if !has_kernel() {
        return;
    }
    let outcome = run(&linux(&[]));
    assert_conserved(&outcome);
    let table = flows(&outcome);
    let (fct, kernel) = (column(&table, "fct_us"), column(&table, "kernel_fct_us"));
    let mut later: Vec<f64> = kernel.iter().zip(&fct).map(|(kernel, fct)| kernel - fct).collect();
    for (flow, later) in later.iter().enumerate().filter(|(_, later)| **later > 0.01) {
        println!("flow {flow} is read {later} us after its last packet came");
    }
    later.sort_by(f64::total_cmp);
    println!("read after {:?} us in the median, {:?} us at most", later[later.len() / 2], later.last());
    // The packet comes at a part of a nanosecond, and is read in the next one.
    assert!(later[0] >= 0.0 && later[later.len() - 1] < 0.001, "{later:?}");
    let (delivered, sizes) = (column(&table, "delivered_bytes"), column(&table, "size_bytes"));
    assert_eq!(delivered, sizes);
    assert!(column(&table, "slowdown").iter().all(|slowdown| *slowdown >= 1.0));
    let (sent, received, dropped) = (
        column(&table, "segments_sent"),
        column(&table, "segments_received"),
        column(&table, "dropped_segments"),
    );
    for flow in 0..sent.len() {
        assert!(sent[flow] >= received[flow] + dropped[flow] - 1.0 && received[flow] > 0.0, "flow {flow}");
    }
}

#[test]
fn what_the_kernel_counts_as_sent_again_is_what_is_seen_on_its_cables() {
    if !has_kernel() {
        return;
    }
    let source =
        linux(&[("scheme.name", "drill"), ("fabric.switch_queue.buffer", "100KB"), ("run.seed", "2")]);
    let table = flows(&run(&source));
    let (seen, told) = (column(&table, "retransmissions"), column(&table, "kernel_retransmissions"));
    let closed = column(&table, "kernel_closed_us");
    let ends: Vec<f64> =
        column(&table, "start_us").iter().zip(&closed).map(|(start, took)| start + took).collect();
    let over = ends.iter().copied().fold(0.0, f64::max);
    for flow in 0..seen.len() {
        println!(
            "flow {flow}: {} seen, {} told, {} us before the end",
            seen[flow],
            told[flow],
            over - ends[flow]
        );
    }
    assert!(
        seen.iter().filter(|&&count| count > 0.0).count() > 5,
        "packets are lost, and overtake each other"
    );
    for flow in 0..seen.len() {
        assert_eq!(seen[flow], told[flow], "flow {flow}");
    }
}

/// A lone flow takes the time worked out by hand: a handshake, then segments back to back; each
/// link adds its delay and one packet.
#[test]
fn twenty_kilobytes_and_ten_megabytes_take_what_headers_rate_and_delay_say() {
    if !has_kernel() {
        return;
    }
    // Payload 1,448 with time stamps; on the wire 1,500 + 38 bytes, SYN 60 + 38, acknowledgement 52
    // + 38.
    let us = |bytes: f64| bytes * 8.0 / 100.0;
    let hops = 4.0;
    let crossing = |bytes: f64| hops * (us(bytes) + 50.0);
    let handshake = 2.0 * crossing(98.0) + 0.0;
    let table = flows(&run(&alone("20000")));
    let found = column(&table, "fct_us")[0];
    // Ten segments; the first acknowledgement is back before they are sent, so the rest follows
    // without a pause: 14 in all, the last one shorter, after the acknowledgement of the handshake.
    let last = 20_000.0 - 13.0 * 1_448.0 + 52.0 + 38.0;
    let window = us(90.0) + 13.0 * us(1_538.0) + crossing(last) + (hops - 1.0) * (us(1_538.0) - us(last));
    let expected = handshake + window;
    println!("20 KB: {found} us, by hand at least {expected} us");
    assert!(found >= expected - 0.001, "{found} us, by hand {expected} us");

    let table = flows(&run(&alone("10000000")));
    let rate =
        10_000_000.0 * 8.0 / (column(&table, "fct_us")[0] - handshake - crossing(1_538.0) + us(1_538.0));
    let bound = 100.0 * 1_448.0 / 1_538.0;
    println!("10 MB: {rate} Mbit/s, bound by headers {bound}");
    assert!((bound * 0.999..=bound).contains(&rate), "{rate} of {bound} Mbit/s");
}

#[test]
fn the_same_spec_gives_the_same_bytes_and_another_seed_other_ports() {
    if !has_kernel() {
        return;
    }
    let spec = || linux(&[("traffic.flows", "12"), ("scheme.name", "letflow")]);
    let first = run(&spec());
    let beside = std::thread::spawn(move || run(&spec()).fingerprint().unwrap());
    let second = run(&linux(&[("traffic.flows", "12"), ("scheme.name", "letflow")]));
    assert_eq!(first.fingerprint().unwrap(), second.fingerprint().unwrap());
    assert_eq!(beside.join().unwrap(), first.fingerprint().unwrap(), "two kernels at a time");
    let port = |outcome: &Outcome| flows(outcome).column_by_name("kernel_port").unwrap().to_data();
    let other = run(&linux(&[("traffic.flows", "12"), ("scheme.name", "letflow"), ("run.seed", "2")]));
    assert_ne!(port(&first), port(&other));
}

#[test]
fn another_seed_changes_ports_and_sequence_numbers_and_no_time_of_a_flow() {
    if !has_kernel() {
        return;
    }
    // One way, so that no hash decides; two flows that share it, and one that comes later, with
    // losses.
    let trace = std::env::temp_dir().join(format!("weft-linux-seeds-{}.csv", std::process::id()));
    std::fs::write(&trace, "start_us,src,dst,size_bytes\n0,0,4,2000000\n0,1,4,2000000\n300000,2,5,50000\n")
        .unwrap();
    let of_seed = |seed: &str| {
        let source = alone("20000").with("traffic.trace", &trace.display().to_string());
        let table = flows(&run(&source.with("fabric.switch_queue.buffer", "60KB").with("run.seed", seed)));
        let same = [
            "fct_us",
            "segments_sent",
            "dropped_segments",
            "retransmissions",
            "kernel_cwnd",
            "kernel_rtt_us",
        ];
        (same.map(|name| column(&table, name)), column(&table, "kernel_port"))
    };
    let ((first, ports), (second, other_ports)) = (of_seed("1"), of_seed("2"));
    assert!(first[2].iter().sum::<f64>() > 0.0, "something is lost");
    assert_eq!(first, second);
    assert_ne!(ports, other_ports);
}

#[test]
fn every_load_balancer_serves_linux_hosts_without_knowing_it() {
    if !has_kernel() {
        return;
    }
    for info in weft_balance::schemes() {
        let source = linux(&[("scheme.name", info.name), ("traffic.flows", "8")]);
        let outcome = run(&source);
        assert_conserved(&outcome);
        let unfinished = column(&flows(&outcome), "fct_us").iter().filter(|fct| fct.is_nan()).count();
        assert_eq!(unfinished, 0, "{}", info.name);
    }
}

#[test]
fn an_incast_with_losses_waits_for_the_kernels_timeout() {
    if !has_kernel() {
        return;
    }
    let text = "hosts = 'linux'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 16\nhost_rate = '1Gbps'\n\
                fabric_rate = '10Gbps'\n[fabric.switch_queue]\nbuffer = '30KB'\nmark = 'never'\n\
                [[traffic.incast]]\nsenders = 16\nsize = '20KB'\nperiod = '1s'\nrepeats = 1\n[transport]\nname = 'tcp'\n";
    let outcome = run(&SpecSource::from_text(text));
    assert_conserved(&outcome);
    let table = flows(&outcome);
    let waited: f64 = column(&table, "timed_out_us").iter().copied().fold(0.0, f64::max);
    println!("{} drops; longest wait for a timer {waited} us", outcome.packets.dropped);
    assert!(outcome.packets.dropped > 0);
    assert!((200_000.0..450_000.0).contains(&waited), "{waited} us");
    assert!(column(&table, "timeouts").iter().sum::<f64>() > 0.0);
}

#[test]
fn settings_of_the_kernel_and_of_its_cards_are_felt() {
    if !has_kernel() {
        return;
    }
    let fct = |changes: &[(&str, &str)]| {
        let source = alone("20000").with("hosts.kind", "linux");
        let source = changes.iter().fold(source, |source, (key, value)| source.with(key, value));
        column(&flows(&run(&source)), "fct_us")[0]
    };
    let usual = fct(&[]);
    // Two segments of a window at first: the rest waits for acknowledgements, a round trip of some
    // 400 us each time.
    assert!(fct(&[("hosts.kernel.initial_window", "2")]) > usual + 800.0);
    // Each of the packets on the way to the last byte takes 10 us of a CPU at both ends.
    let slow = fct(&[("hosts.cpu_per_packet", "10us")]);
    assert!((usual + 20.0..usual + 500.0).contains(&slow), "{usual} us, with a CPU {slow} us");
    let socket = fct(&[("hosts.kernel.max_pacing_bytes_per_s", "1000000")]);
    assert!(socket > usual + 5_000.0, "paced to 1 MB/s: {socket} us");
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_is_allowed() {
    let refused = |key: &str, value: &str| match Prepared::new(&linux(&[(key, value)])) {
        Ok(_) => panic!("{key} = {value} was taken"),
        Err(error) => error.to_string(),
    };
    assert!(refused("transport.name", "maxpass").contains("tcp, dctcp or mptcp"));
    assert!(refused("transport.header", "20B").contains("40B or more"));
    assert!(refused("hosts.ring", "0").contains("1 to 65536"));
    assert!(refused("hosts.overlay", "2KB").contains("0B to 1KB"));
    assert!(refused("hosts.interrupt_packets", "4").contains("0 without hosts.interrupt_delay"));
    assert!(refused("hosts.cpu_per_byte", "2us").contains("0s to 1us"));
    assert!(refused("hosts.kernel.min_rto_ms", "0").contains("1 to 120000"));
    let unknown = refused("hosts.kernel.min_rto", "10");
    assert!(unknown.contains("did you mean min_rto_ms?"), "{unknown}");
    assert!(refused("hosts", "linus").contains("linux"));
    assert!(refused("hosts.congestion_control", "vegas").contains("cubic"));
}
