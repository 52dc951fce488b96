//! Programs of this machine as traffic of a spec. Without the kernel that `make linux-hosts` builds
//! these tests say so and do nothing; with `WEFT_NEEDS_LINUX_HOSTS` they fail.

use crate::common::{run, small};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use weft_lab::{Outcome, Prepared, SpecSource};

/// Two racks of four hosts, two ways between them, links of 100 Mbit/s with 50 us each.
const FABRIC: &str = "hosts = 'linux'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
    host_rate = '100Mbps'\nfabric_rate = '100Mbps'\nhost_delay = '50us'\nfabric_delay = '50us'\n\
    [transport]\nname = 'tcp'\n";

/// Takes what comes by TCP and says how much, connection by connection.
const SINK: &str = "
import socket
s = socket.create_server((\"\", 7000))
while True:
    c, peer = s.accept()
    n = 0
    while part := c.recv(65536):
        n += len(part)
    print(peer[0], n, flush=True)
    c.close()
";

/// Sends a megabyte by TCP and waits until all is read.
const SOURCE: &str = "
import socket, sys, time
t = time.monotonic()
c = socket.create_connection((sys.argv[1], 7000))
c.sendall(bytes(1_000_000))
c.shutdown(socket.SHUT_WR)
c.recv(1)
print(round(8 / (time.monotonic() - t), 1), \"Mbit/s\")
";

/// Sends datagrams of 1,000 bytes to a port, from a port, so many, a millisecond apart.
const DATAGRAMS: &str = "
import socket, sys, time
to, port, own, count = sys.argv[1], *map(int, sys.argv[2:])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((\"\", own))
for _ in range(count):
    s.sendto(bytes(1000), (to, port))
    time.sleep(0.001)
";

/// Counts datagrams until none has come for half a second.
const COUNTER: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((\"\", 7001))
s.settimeout(0.5)
n = 0
try:
    while True:
        s.recv(2000)
        n += 1
except TimeoutError:
    print(n)
";

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

/// The table of a program in Python.
fn python(host: u16, script: &str, arguments: &str, keys: &str) -> String {
    let command = format!("/usr/bin/python3 -I -S -c '{script}' {arguments}");
    format!("[[traffic.program]]\nhost = {host}\ncommand = '''{command}'''\n{keys}\n")
}

fn program(host: u16, command: &str, keys: &str) -> String {
    format!("[[traffic.program]]\nhost = {host}\ncommand = '''{command}'''\n{keys}\n")
}

fn spec(programs: &[String]) -> SpecSource {
    SpecSource::from_text(format!("{FABRIC}{}", programs.concat()))
}

/// A megabyte from host 0 to host 4, by TCP.
fn megabyte() -> [String; 2] {
    [python(4, SINK, "", "serves = true"), python(0, SOURCE, "{host:4}", "start = '1ms'")]
}

/// A column of numbers; what is missing is NaN.
fn numbers(table: &RecordBatch, name: &str) -> Vec<f64> {
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

fn texts(outcome: &Outcome, name: &str) -> Vec<String> {
    let table = &outcome.programs;
    let column = table.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    column.as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
}

fn assert_conserved(outcome: &Outcome) {
    let packets = outcome.packets;
    assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight);
    assert!(packets.sent > 0);
}

#[test]
fn programs_alone_are_a_run_and_what_they_say_and_send_is_kept() {
    if !has_kernel() {
        return;
    }
    let outcome = run(&spec(&megabyte()));
    assert_eq!(outcome.summary.incomplete, Vec::<String>::new());
    assert_conserved(&outcome);
    let (said, how) = (texts(&outcome, "output"), texts(&outcome, "outcome"));
    assert_eq!((&*said[0], how), ("10.0.0.1 1000000\n", vec!["serves".to_owned(), "exited".to_owned()]));
    // Headers take 38 of 1,500 bytes and more; the handshake and slow start the rest.
    let rate: f64 = said[1].split(' ').next().unwrap().parse().unwrap();
    assert!((80.0..96.0).contains(&rate), "{rate} Mbit/s over links of 100 Mbit/s");
    let connections = &outcome.connections;
    assert_eq!(numbers(connections, "src"), [0.0, 4.0]);
    assert_eq!(numbers(connections, "dst_port")[..1], [7_000.0]);
    let (sent, received) = (numbers(connections, "sent_bytes"), numbers(connections, "received_bytes"));
    assert!(sent[0] > 1_030_000.0 && received[0] > 1_030_000.0, "{sent:?} {received:?}");
    let packets: f64 = numbers(connections, "packets_sent").iter().sum();
    assert_eq!(packets as u64, outcome.packets.sent, "each packet of the fabric is counted once");
    assert!(outcome.summary.totals.simulated_us > 85_000.0, "the run lasts as long as they do");
    assert_eq!(outcome.summary.all.flows, 0);
    let kernel = outcome.summary.kernel.as_deref().unwrap_or_default();
    assert_eq!(kernel.len(), 16, "the run says of which kernel it is: {kernel:?}");
    assert_eq!(outcome.fingerprint().unwrap(), run(&spec(&megabyte())).fingerprint().unwrap());
}

#[test]
fn every_kind_of_load_balancer_carries_what_programs_send() {
    if !has_kernel() {
        return;
    }
    for scheme in ["letflow", "conga", "tr", "presto", "hedera", "hermes", "clove", "meet"] {
        let fast = spec(&megabyte()).with("fabric.host_rate", "1Gbps").with("fabric.fabric_rate", "1Gbps");
        let outcome = run(&fast.with("scheme.name", scheme));
        assert_eq!(outcome.summary.incomplete, Vec::<String>::new(), "{scheme}");
        assert_eq!(texts(&outcome, "output")[0], "10.0.0.1 1000000\n", "{scheme}");
        assert_conserved(&outcome);
    }
}

#[test]
fn datagrams_are_hashed_by_their_ports_and_each_is_counted() {
    if !has_kernel() {
        return;
    }
    let mut programs = vec![python(4, COUNTER, "", "")];
    for own in 8_000..8_008 {
        programs.push(python(0, DATAGRAMS, &format!("{{host:4}} 7001 {own} 20"), "start = '1ms'"));
    }
    let outcome = run(&spec(&programs));
    assert_eq!(outcome.summary.incomplete, Vec::<String>::new());
    assert_eq!(texts(&outcome, "output")[0], "160\n");
    let connections = &outcome.connections;
    assert_eq!(numbers(connections, "packets_received"), [20.0; 8]);
    assert_eq!(numbers(connections, "received_bytes"), [20.0 * 1_028.0; 8]);
    let names = outcome.links.column_by_name("link").unwrap().as_string::<i32>().clone();
    let bytes = numbers(&outcome.links, "bytes");
    let of = |name: &str| bytes[names.iter().position(|link| link == Some(name)).unwrap()];
    let ways = [of("leaf0>spine0"), of("leaf0>spine1")];
    assert!(ways.iter().all(|bytes| *bytes > 0.0), "eight ports, two ways: {ways:?}");
    assert_eq!(ways.map(|bytes| bytes as u64 % (20 * 1_028)), [0; 2], "a port keeps its way");
}

#[test]
fn a_program_and_a_flow_share_the_fabric() {
    if !has_kernel() {
        return;
    }
    let trace = std::env::temp_dir().join(format!("weft-programs-{}.csv", std::process::id()));
    std::fs::write(&trace, "start_us,src,dst,size_bytes\n20000,1,4,1000000\n").unwrap();
    let flow = |programs: &[String]| {
        let trace = format!("'{}'", trace.display());
        let outcome = run(&spec(programs).with("traffic.trace", &trace));
        assert_eq!(outcome.summary.incomplete, Vec::<String>::new());
        numbers(&outcome.table("flows").unwrap(), "fct_us")[0]
    };
    let (alone, beside) = (flow(&[]), flow(&megabyte()));
    assert!(beside > alone * 1.3, "{alone} us alone, {beside} us beside a program to the same host");
}

/// A program that speaks to the port of flows is not taken for one, and leaves the flow between the
/// same hosts as it is.
#[test]
fn a_program_is_not_taken_for_a_flow() {
    if !has_kernel() {
        return;
    }
    let trace = std::env::temp_dir().join(format!("weft-programs-not-{}.csv", std::process::id()));
    std::fs::write(&trace, "start_us,src,dst,size_bytes\n20000,0,4,100000\n").unwrap();
    let programs = [program(0, "/bin/bash -c 'echo hello > /dev/tcp/{host:4}/5000'", "")];
    let outcome = run(&spec(&programs).with("traffic.trace", &format!("'{}'", trace.display())));
    assert_eq!(outcome.summary.incomplete, Vec::<String>::new());
    assert_eq!(numbers(&outcome.table("flows").unwrap(), "delivered_bytes"), [100_000.0]);
    assert_eq!(numbers(&outcome.connections, "dst_port")[..1], [5_000.0]);
}

#[test]
fn a_program_that_fails_is_told_in_one_sentence_and_one_that_was_stopped_has_not_failed() {
    if !has_kernel() {
        return;
    }
    let programs = [
        program(0, "/no/such program", ""),
        program(1, "/bin/bash -c 'echo out; echo wrong >&2; exit 3'", ""),
        program(2, "/bin/bash -c 'kill -SEGV $$'", ""),
        program(3, "/bin/sleep 1000", "stop = '20ms'"),
        program(5, "/bin/bash -c 'trap \"\" TERM; while true; do /bin/sleep 1; done'", "stop = '30ms'"),
        program(4, "/bin/true", "start = '500ms'"),
    ];
    let outcome = run(&spec(&programs));
    let incomplete = &outcome.summary.incomplete;
    assert_eq!(incomplete.len(), 3, "{incomplete:?}");
    assert!(incomplete[0].starts_with("program 0 on host 0 (/no/such program) could not be started: "));
    assert!(
        incomplete[1].starts_with("program 1 on host 1 (/bin/bash")
            && incomplete[1].contains("exited with 3 at ")
    );
    assert!(incomplete[1].ends_with("; it says \"wrong\""), "{}", incomplete[1]);
    assert!(incomplete[2].contains("was ended by signal 11"), "{}", incomplete[2]);
    assert_eq!(
        texts(&outcome, "outcome"),
        ["not started", "exited", "killed", "stopped", "stopped", "exited"]
    );
    assert_eq!(texts(&outcome, "output")[1], "out\n");
    let ends = numbers(&outcome.programs, "end_us");
    assert!((20_000.0..20_100.0).contains(&ends[3]), "SIGTERM: {ends:?}");
    assert!((130_000.0..130_100.0).contains(&ends[4]), "SIGKILL, 100 ms later: {ends:?}");
    assert!(ends[5] >= 500_000.0, "the run waits for the last: {ends:?}");
}

#[test]
fn a_program_that_does_not_end_is_incomplete_at_the_time_limit() {
    if !has_kernel() {
        return;
    }
    let programs =
        [program(0, "/bin/sleep 1000", "start = '30ms'"), program(1, "/bin/sleep 1000", "serves = true")];
    let outcome = run(&spec(&programs).with("run.time_limit", "50ms"));
    assert_eq!(
        outcome.summary.incomplete,
        ["program 0 on host 0 (/bin/sleep 1000) had not ended when the run was over"]
    );
    let ended = outcome.summary.totals.simulated_us as u64;
    assert_eq!(ended, 80_000, "the limit counts from the last start");
}

#[test]
fn what_cannot_be_a_program_is_told_before_the_run() {
    let told = |programs: &[String]| Prepared::new(&spec(programs)).map(drop).unwrap_err().to_string();
    let simulated = small(&[("traffic.program", "[{ host = 0, command = 'true' }]")]);
    let simulated = Prepared::new(&simulated).map(drop).unwrap_err().to_string();
    assert!(simulated.contains("traffic.program[0] needs Linux hosts: hosts = \"linux\""), "{simulated}");
    let quote = told(&[program(0, "true", ""), program(0, "echo \"no end", "")]);
    assert!(quote.contains("traffic.program[1].command is") && quote.contains("quotes that end"), "{quote}");
    let nobody = told(&[program(0, "nc {host:8} 80", "")]);
    assert!(nobody.contains("traffic.program[0].command = 8: allowed is a host, 0 to 7"), "{nobody}");
}

#[test]
#[ignore = "needs iperf3"]
fn iperf3_measures_what_the_links_carry() {
    if !has_kernel() {
        return;
    }
    let programs = [
        program(4, "iperf3 -s", "serves = true"),
        program(0, "iperf3 -c {host:4} -t 1 -J", "start = '10ms'"),
    ];
    let outcome = run(&spec(&programs));
    assert_eq!(outcome.summary.incomplete, Vec::<String>::new());
    let said: serde_json::Value = serde_json::from_str(&texts(&outcome, "output")[1]).unwrap();
    let rate = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    println!("iperf3 measures {rate} Mbit/s");
    assert!((85.0..96.6).contains(&rate), "{rate} Mbit/s over links of 100 Mbit/s");
}
