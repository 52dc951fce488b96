//! Linux hosts and simulated hosts in one run.

use weft_lab::{Prepared, SpecSource};

use super::{alone, assert_conserved, column, flows, has_kernel, linux};
use crate::common::run;

/// The small run with these Linux hosts; the others are simulated.
fn mixed(at: &str, changes: &[(&str, &str)]) -> SpecSource {
    let all = [("hosts", "linux"), ("hosts.at", at), ("transport.profile", "linux")];
    let all: Vec<_> = all.iter().chain(changes).copied().collect();
    linux(&all)
}

/// Even hosts: flows of all four kinds.
const EVEN: &str = "[0, 2, 4, 6, 8, 10, 12, 14]";

fn is_linux(host: f64) -> bool {
    host.rem_euclid(2.0) < 0.5
}

/// Checks every flow of an even run, whoever its ends are.
fn assert_whole(source: &SpecSource) -> arrow_array::RecordBatch {
    let outcome = run(source);
    assert_conserved(&outcome);
    assert_eq!(outcome.summary.warnings, Vec::<String>::new());
    let table = flows(&outcome);
    let (src, dst) = (column(&table, "src"), column(&table, "dst"));
    let (delivered, sizes) = (column(&table, "delivered_bytes"), column(&table, "size_bytes"));
    let (fct, read) = (column(&table, "fct_us"), column(&table, "kernel_fct_us"));
    let (closed, told) = (column(&table, "kernel_closed_us"), column(&table, "kernel_retransmissions"));
    for flow in 0..src.len() {
        let (from, to) = (is_linux(src[flow]), is_linux(dst[flow]));
        assert!(!fct[flow].is_nan() && delivered[flow] == sizes[flow], "flow {flow}, {from} to {to}");
        assert_eq!(closed[flow].is_nan(), !from, "flow {flow}: the kernel's end is closed where it sends");
        assert_eq!(told[flow].is_nan(), !from, "flow {flow}: tcp_info is of senders");
        assert_eq!(read[flow].is_nan(), !to, "flow {flow}: it is read where the kernel receives");
        assert!(
            !to || (0.0..0.001).contains(&(read[flow] - fct[flow])),
            "flow {flow}: {}",
            read[flow] - fct[flow]
        );
    }
    table
}

#[test]
fn a_lone_flow_takes_as_long_whichever_of_its_ends_is_a_linux_host() {
    if !has_kernel() {
        return;
    }
    // As by hand in the test with Linux hosts only: 20 KB, 100 Mbit/s, four links of 50 us. The
    // answer to a SYN is acknowledged by a packet of its own, before the first data: 90 bytes, 7.2
    // us.
    let expected = 2_739.84;
    for at in ["[0]", "[4]", "[0, 4]", "[1]"] {
        let source = alone("20000").with("hosts.kind", "linux").with("hosts.at", at);
        let table = flows(&run(&source.with("transport.profile", "linux")));
        let found = column(&table, "fct_us")[0];
        println!("Linux hosts {at}: {found} us");
        assert!(
            (0.0..0.01).contains(&(found - expected)),
            "Linux hosts {at}: {found} us, by hand {expected} us"
        );
    }
}

#[test]
fn flows_between_both_kinds_of_hosts_are_whole_and_each_end_says_what_it_knows() {
    if !has_kernel() {
        return;
    }
    assert_whole(&mixed(EVEN, &[]));
}

#[test]
fn what_is_lost_between_both_kinds_of_hosts_is_sent_again_and_nothing_else() {
    if !has_kernel() {
        return;
    }
    let lossy = [
        ("fabric.switch_queue.buffer", "60KB"),
        ("fabric.switch_queue.mark", "never"),
        ("traffic.load", "0.8"),
    ];
    let table = assert_whole(&mixed(EVEN, &lossy));
    let (src, dst) = (column(&table, "src"), column(&table, "dst"));
    let (dropped, again) = (column(&table, "dropped_segments"), column(&table, "retransmissions"));
    let (timeouts, twice) = (column(&table, "timeouts"), column(&table, "duplicate_segments"));
    for flow in 0..src.len() {
        println!(
            "flow {flow}, {} to {}: {} dropped, {} again, {} twice, {} timeouts",
            src[flow], dst[flow], dropped[flow], again[flow], twice[flow], timeouts[flow]
        );
    }
    for (from, to) in [(true, false), (false, true)] {
        let mine = (0..src.len()).filter(|&flow| (is_linux(src[flow]), is_linux(dst[flow])) == (from, to));
        let lost: Vec<_> = mine.filter(|&flow| dropped[flow] > 0.0).collect();
        assert!(!lost.is_empty(), "{from} to {to}: something is lost");
        for flow in lost {
            // A sender that may send nothing new probes with what it has sent: that comes twice.
            assert_eq!(again[flow], dropped[flow] + twice[flow], "flow {flow}");
        }
    }
}

#[test]
fn marks_slow_a_sender_down_in_both_directions() {
    if !has_kernel() {
        return;
    }
    // Two hosts send to one, through a link as fast as theirs: a queue without end, but for the
    // marks above 30 KB.
    let trace = std::env::temp_dir().join(format!("weft-mixed-marks-{}.csv", std::process::id()));
    std::fs::write(
        &trace,
        "start_us,src,dst,size_bytes\n0,0,4,3000000\n0,1,4,3000000\n0,2,5,3000000\n0,3,5,3000000\n",
    )
    .unwrap();
    let text = format!(
        "[hosts]\nkind = 'linux'\nat = [0, 1, 5]\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n\
         host_rate = '1Gbps'\nfabric_rate = '10Gbps'\nhost_delay = '5us'\nfabric_delay = '5us'\n\
         [fabric.switch_queue]\nbuffer = '1MB'\nmark = '30KB'\n[traffic]\ntrace = '{}'\n\
         [transport]\nname = 'dctcp'\nprofile = 'linux'\n",
        trace.display()
    );
    let outcome = run(&SpecSource::from_text(text));
    assert_conserved(&outcome);
    assert_eq!(outcome.packets.dropped, 0);
    let table = flows(&outcome);
    let (marked, told) = (column(&table, "marked_acks"), column(&table, "kernel_marked"));
    println!("marked acknowledgements {marked:?}, the kernel's {told:?}");
    for (flow, marked) in marked.iter().enumerate() {
        assert!(*marked > 50.0, "flow {flow}: {marked} marks were echoed");
    }
    assert!(told[0] > 50.0 && told[1] > 50.0, "{told:?}");
    let waits = column(&table, "wait_last_us");
    let segments = column(&table, "segments_received");
    for flow in 0..4 {
        // K is 240 us on this link; without marks windows grow to a megabyte, which is 8 ms.
        let mean = waits[flow] / segments[flow];
        println!("flow {flow}: {mean} us in the queue");
        assert!(mean < 500.0, "flow {flow}: {mean} us in the queue");
    }
}

#[test]
fn a_mixed_run_gives_the_same_bytes_each_time_and_its_simulated_flows_know_nothing_of_the_kernel() {
    if !has_kernel() {
        return;
    }
    let spec = || mixed("[\"0-7\"]", &[("traffic.flows", "12"), ("scheme.name", "letflow")]);
    let beside = std::thread::spawn(move || run(&spec()).fingerprint().unwrap());
    let (first, second) = (run(&spec()), run(&spec()));
    assert_eq!(first.fingerprint().unwrap(), second.fingerprint().unwrap());
    assert_eq!(beside.join().unwrap(), first.fingerprint().unwrap(), "two kernels at a time");
    let table = flows(&first);
    let (src, dst, port) = (column(&table, "src"), column(&table, "dst"), column(&table, "kernel_port"));
    for flow in 0..src.len() {
        assert_eq!(port[flow].is_nan(), src[flow] > 7.0 && dst[flow] > 7.0, "flow {flow}");
    }
}

#[test]
fn every_load_balancer_serves_both_kinds_of_hosts_at_once() {
    if !has_kernel() {
        return;
    }
    for info in weft_balance::schemes() {
        let outcome = run(&mixed(EVEN, &[("scheme.name", info.name), ("traffic.flows", "8")]));
        assert_conserved(&outcome);
        let unfinished = column(&flows(&outcome), "fct_us").iter().filter(|fct| fct.is_nan()).count();
        assert_eq!(unfinished, 0, "{}", info.name);
    }
}

#[test]
fn both_kinds_of_hosts_are_refused_where_they_would_not_understand_each_other() {
    let refused = |key: &str, value: &str| match Prepared::new(&mixed(EVEN, &[(key, value)])) {
        Ok(_) => panic!("{key} = {value} was taken"),
        Err(error) => error.to_string(),
    };
    assert!(refused("hosts.at", "[16]").contains("hosts 0 to 15"));
    assert!(refused("hosts.at", "[]").contains("at least one host"));
    assert!(refused("transport.profile", "rfc").contains("allowed is \"linux\", with simulated hosts"));
    assert!(refused("transport.handshake", "false").contains("allowed is true"));
    assert!(refused("transport.header", "40B").contains("52B or more"));
    assert!(refused("hosts.kernel.timestamps", "0").contains("1 or 2"));
    assert!(refused("hosts.kernel.max_segment_bytes", "700").contains("allowed is none"));
    assert!(
        Prepared::new(&mixed("[\"0-15\"]", &[("transport.profile", "rfc")])).is_ok(),
        "all are Linux hosts"
    );
}

#[test]
fn several_kernels_give_the_flows_of_one_and_the_same_bytes_each_time() {
    if !has_kernel() {
        return;
    }
    let spec = |kernels| linux(&[("hosts", "linux"), ("hosts.kernels", kernels), ("traffic.flows", "8")]);
    let (one, two) = (run(&spec("1")), run(&spec("2")));
    assert_conserved(&two);
    assert_eq!(run(&spec("2")).fingerprint().unwrap(), two.fingerprint().unwrap());
    let (one, two) = (flows(&one), flows(&two));
    for name in
        ["fct_us", "segments_sent", "retransmissions", "kernel_fct_us", "kernel_cwnd", "kernel_rtt_us"]
    {
        assert_eq!(column(&one, name), column(&two, name), "{name}");
    }
    // Each kernel draws its own.
    assert_ne!(column(&one, "kernel_port"), column(&two, "kernel_port"));
}

#[test]
fn more_hosts_than_a_kernel_has_are_dealt_to_several() {
    if !has_kernel() {
        return;
    }
    let source = linux(&[("fabric.leaves", "5"), ("fabric.hosts_per_leaf", "60"), ("traffic.flows", "8")]);
    let outcome = run(&source);
    assert_conserved(&outcome);
    let table = flows(&outcome);
    assert!(column(&table, "fct_us").iter().all(|fct| !fct.is_nan()));
    let refused = |kernels: &str| match Prepared::new(
        &source.clone().with("hosts.kind", "linux").with("hosts.kernels", kernels),
    ) {
        Ok(_) => panic!("{kernels} kernels were taken"),
        Err(error) => error.to_string(),
    };
    assert!(refused("1").contains("allowed is 2 to 16, for 300 Linux hosts"), "{}", refused("1"));
    assert!(refused("17").contains("2 to 16"));
}

#[test]
fn a_link_that_fails_and_comes_back_loses_no_flow_of_either_kind() {
    if !has_kernel() {
        return;
    }
    let faults = [
        ("fabric.fault.0.link", "leaf0-spine0"),
        ("fabric.fault.0.down", "true"),
        ("fabric.fault.0.at", "500us"),
        ("fabric.fault.0.until", "20ms"),
        ("fabric.fault.1.link", "host2-leaf0"),
        ("fabric.fault.1.rate", "1Gbps"),
        ("fabric.fault.1.at", "2ms"),
        ("scheme.name", "rps"),
    ];
    let table = assert_whole(&mixed(EVEN, &faults));
    let src = column(&table, "src");
    let (dropped, again) = (column(&table, "dropped_segments"), column(&table, "retransmissions"));
    for flow in 0..src.len() {
        assert!(again[flow] >= dropped[flow], "flow {flow}: {} of {}", again[flow], dropped[flow]);
    }
    let lost = |linux| (0..src.len()).any(|flow| is_linux(src[flow]) == linux && dropped[flow] > 0.0);
    assert!(lost(true) && lost(false), "the failure is felt by senders of both kinds");
}

#[test]
fn a_program_on_a_linux_host_shares_the_fabric_with_flows_of_simulated_hosts() {
    if !has_kernel() {
        return;
    }
    let script = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                  [s.sendto(bytes(1000), (\"{host:4}\", 7001)) for _ in range(500)]";
    let program = format!("/usr/bin/python3 -I -S -c '{script}'");
    let with = |programs: bool| {
        let source = mixed("[0, 4]", &[("traffic.flows", "12")]);
        let source = if programs {
            source.with("traffic.program.0.host", "0").with("traffic.program.0.command", &program)
        } else {
            source
        };
        let outcome = run(&source);
        assert_conserved(&outcome);
        assert_eq!(outcome.summary.incomplete, Vec::<String>::new());
        // Nobody listens there, so the kernel of host 4 answers some of them by ICMP.
        let (src, packets) =
            (column(&outcome.connections, "src"), column(&outcome.connections, "packets_sent"));
        let sent: f64 =
            packets.iter().zip(src).filter(|(_, src)| *src == 0.0).map(|(packets, _)| packets).sum();
        (flows(&outcome), sent)
    };
    let ((beside, sent), (alone, none)) = (with(true), with(false));
    assert_eq!(sent, 500.0, "datagrams of the program");
    assert!(none.abs() < 0.5, "there was no program");
    for table in [&beside, &alone] {
        assert!(column(table, "fct_us").iter().all(|fct| !fct.is_nan()));
    }
    assert_ne!(column(&beside, "fct_us"), column(&alone, "fct_us"), "they are in each other's way");
}
