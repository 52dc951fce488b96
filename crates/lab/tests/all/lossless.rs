//! Lossless fabrics, from a spec to its results: RDMA that loses nothing beside TCP that does, and
//! specs that cannot be meant.

use std::ops::ControlFlow;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use weft_lab::{Cores, Outcome, Prepared, SpecSource};

/// RoCE in a lossless class, TCP in another one, and an incast of RoCE of more than the memory
/// holds.
const SHARED: &str = "
[fabric]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 9

[fabric.shared_buffer]
size = \"600KB\"

[fabric.switch_queue]
scheduler = \"weighted\"

[[fabric.switch_queue.class]]
holds = [\"long\", \"unknown\", \"acks\", \"notifications\"]
lossless = true
mark = \"never\"

[[fabric.switch_queue.class]]
holds = [\"short\", \"best-effort\"]
mark = \"never\"
alpha = 0.1

[[transport]]
name = \"roce\"
dcqcn = false

[[transport]]
name = \"tcp\"
ecn = \"off\"

[traffic]
size = \"40KB\"
load = 0.6
flows = 300

[traffic.classes]
short_below = \"100KB\"
transport = { short = \"tcp\", long = \"roce\", unknown = \"roce\" }

[[traffic.incast]]
senders = 16
size = \"200KB\"
transport = \"roce\"
";

fn outcome(toml: &str) -> Outcome {
    let prepared = Prepared::new(&SpecSource::from_text(toml)).unwrap_or_else(|error| panic!("{error}"));
    let outcome = prepared.run(&mut |_| ControlFlow::Continue(()), None, Cores::All);
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

fn sum(outcome: &Outcome, table: &str, column: &str, of: impl Fn(usize) -> bool) -> u64 {
    let table = outcome.table(table).expect("a table");
    let values = table.column_by_name(column).expect("a column").as_primitive::<UInt64Type>().clone();
    (0..table.num_rows()).filter(|&row| of(row)).map(|row| values.value(row)).sum()
}

#[test]
fn rdma_loses_nothing_beside_tcp_that_does_and_classes_add_up_to_links() {
    let outcome = outcome(SHARED);
    let flows = outcome.flows.read().expect("flows");
    let transport = flows.column_by_name("transport").expect("several").as_string::<i32>().clone();
    let resent = flows.column_by_name("retransmissions").expect("a column");
    let resent = resent.as_primitive::<arrow_array::types::UInt32Type>();
    let of = |name: &str| -> u32 {
        (0..flows.num_rows()).filter(|&row| transport.value(row) == name).map(|row| resent.value(row)).sum()
    };
    assert_eq!(of("roce"), 0);
    assert!(of("tcp") > 0);
    let classes = outcome.table("classes").expect("classes");
    let class = classes.column_by_name("class").expect("a column");
    let class = class.as_primitive::<arrow_array::types::UInt16Type>().clone();
    assert_eq!(sum(&outcome, "classes", "dropped", |row| class.value(row) == 0), 0);
    let dropped = sum(&outcome, "classes", "dropped", |_| true);
    assert!(dropped > 0);
    assert_eq!(dropped, outcome.summary.totals.dropped_packets);
    let lossless = outcome.summary.lossless.as_ref().expect("memory");
    let frames = 2 * lossless.pauses;
    let links = sum(&outcome, "links", "packets", |_| true);
    let in_classes = sum(&outcome, "classes", "packets", |_| true);
    // Some pauses may not have been taken back, or obeyed, when the run ended.
    assert!(
        (frames.saturating_sub(64)..=frames).contains(&(links - in_classes)),
        "{links} {in_classes} {frames}"
    );
}

#[test]
fn an_incast_is_the_root_of_all_pauses_and_flows_know_how_long_they_were_kept() {
    let outcome = outcome(SHARED);
    let lossless = outcome.summary.lossless.as_ref().expect("memory");
    assert!(lossless.root.as_ref().is_some_and(|root| root.contains(">host")), "{:?}", lossless.root);
    assert!(
        lossless.pauses > 0 && lossless.paused_links > 8 && lossless.largest_shared_buffer_bytes <= 600_000
    );
    let flows = outcome.flows.read().expect("flows");
    let column =
        |name: &str| flows.column_by_name(name).expect("a column").as_primitive::<Float64Type>().clone();
    let (blocked, innocent) = (column("blocked_us"), column("blocked_innocently_us"));
    assert!((0..flows.num_rows()).all(|row| innocent.value(row) <= blocked.value(row)));
    assert!(blocked.values().iter().any(|us| *us > 0.0));
    let total: f64 = innocent.values().iter().sum();
    assert!((total - lossless.innocent_us).abs() < 1e-6);
}

#[test]
fn pauses_are_a_part_of_completion_times_where_classes_are_lossless_and_nowhere_else() {
    let parts = [
        "transmission",
        "host",
        "leaf",
        "spine",
        "last",
        "reordering",
        "timeouts",
        "acknowledgement",
        "window",
        "pause",
    ];
    let paused = outcome(SHARED);
    let flows = paused.flows.read().expect("flows");
    let column =
        |name: &str| flows.column_by_name(name).expect("a column").as_primitive::<Float64Type>().clone();
    let columns = parts.map(|part| column(&format!("fct_{part}_us")));
    let fct = column("fct_us");
    for row in (0..flows.num_rows()).filter(|&row| fct.is_valid(row)) {
        let sum: f64 = columns.iter().map(|part| part.value(row)).sum();
        assert!((sum - fct.value(row)).abs() < 1e-5, "flow {row}: {sum} of {}", fct.value(row));
    }
    let pause = columns[9].values().iter().sum::<f64>() / (fct.len() - fct.null_count()) as f64;
    let told = paused.summary.all.fct_breakdown_us.pause.expect("lossless");
    assert!(told > 1.0 && (told - pause).abs() < 1e-6, "{told} and {pause}");
    let plain = outcome("[traffic]\nflows = 20\n");
    assert!(plain.flows.read().expect("flows").column_by_name("fct_pause_us").is_none());
    assert!(!plain.summary.to_json().expect("json").contains("pause"));
}

#[test]
fn ultra_ethernet_over_queues_that_cut_packets_drops_nothing_and_ends() {
    let outcome = outcome(
        "
[fabric]
kind = \"leaf-spine\"
leaves = 2
spines = 4
hosts_per_leaf = 8
host_rate = \"100Gbps\"
fabric_rate = \"100Gbps\"

[fabric.switch_queue]
scheduler = \"strict\"

[[fabric.switch_queue.class]]
holds = [\"trimmed\", \"acks\", \"schemes\"]
buffer = \"1MB\"

[[fabric.switch_queue.class]]
holds = [\"unknown\", \"short\", \"long\", \"best-effort\"]
buffer = \"60KB\"
trim = \"64B\"
mark = \"20KB\"

[transport]
name = \"uec\"

[scheme]
name = \"reps\"

[[traffic.incast]]
senders = 12
size = \"500KB\"
",
    );
    assert_eq!((outcome.summary.all.unfinished, outcome.summary.totals.dropped_packets), (0, 0));
    let trimmed = sum(&outcome, "classes", "trimmed", |_| true);
    assert!(trimmed > 100, "{trimmed}");
    assert!(
        outcome.summary.packets.retransmissions >= Some(trimmed),
        "each payload that was cut is sent again"
    );
    // Of the headers none was lost, so each came to its receiver, which complained, and the sender
    // heard it.
    let counter = |name: &str| {
        let table = outcome.table("scheme").expect("a table");
        let names = table.column_by_name("name").expect("a column").as_string::<i32>().clone();
        let row = (0..table.num_rows()).find(|&row| names.value(row) == name).expect("a counter");
        table.column_by_name("value").expect("a column").as_primitive::<UInt64Type>().value(row)
    };
    assert_eq!(of_flows(&outcome, "trimmed_segments"), trimmed);
    assert_eq!(counter("segments_trimmed"), trimmed);
    assert_eq!(of_flows(&outcome, "nacks"), counter("nacks_sent"));
    let flows = outcome.flows.read().expect("flows");
    assert!(flows.column_by_name("cnps").is_none(), "uec has none, and counts none");
}

/// The sum of a column of flows that have a value there.
fn of_flows(outcome: &Outcome, column: &str) -> u64 {
    let flows = outcome.flows.read().expect("flows");
    let values = flows.column_by_name(column).expect("a column").as_primitive::<UInt32Type>().clone();
    values.iter().flatten().map(u64::from).sum()
}

#[test]
fn only_flows_of_rdma_have_complaints_and_notifications_and_only_fabrics_that_trim_have_trimmed_segments() {
    let marks = SHARED.replacen("mark = \"never\"", "mark = \"20KB\"", 1).replace("dcqcn = false", "");
    let outcome = outcome(&marks);
    let flows = outcome.flows.read().expect("flows");
    let transport = flows.column_by_name("transport").expect("several").as_string::<i32>().clone();
    for column in ["nacks", "cnps"] {
        let values = flows.column_by_name(column).expect("a column");
        assert!((0..flows.num_rows()).all(|row| values.is_valid(row) == (transport.value(row) == "roce")));
    }
    assert!(of_flows(&outcome, "cnps") > 0);
    assert_eq!(of_flows(&outcome, "nacks"), 0, "nothing of RoCE is lost or out of order");
    assert!(flows.column_by_name("trimmed_segments").is_none());
}

#[test]
fn samples_say_when_links_were_paused_and_add_up_to_pauses() {
    let sampled = outcome(&format!("{SHARED}\n[run]\nsample_every = \"20us\"\n"));
    let samples = sampled.table("samples").expect("samples");
    let column =
        |name: &str| samples.column_by_name(name).expect("a column").as_primitive::<Float64Type>().clone();
    let (paused, interval) = (column("paused_us"), column("interval_us"));
    assert!((0..samples.num_rows()).all(|row| paused.value(row) <= interval.value(row) + 1e-9), "one class");
    let (sum, total): (f64, f64) =
        (paused.values().iter().sum(), sampled.summary.lossless.as_ref().expect("memory").paused_us);
    assert!(total > 0.0 && (sum - total).abs() < 1e-6 * total, "{sum} {total}");
    let lossy = outcome("[run]\nsample_every = \"50us\"\n[traffic]\nload = 0.5\nflows = 20\n");
    assert!(lossy.table("samples").expect("samples").column_by_name("paused_us").is_none());
}

#[test]
fn a_limit_of_the_port_is_none_of_its_lossless_classes() {
    // Six senders to one host: the class that is not lossless loses some, the other nothing.
    let incast = |class: &str| {
        format!("[[traffic.incast]]\nsenders = 6\nsize = \"1MB\"\nreceiver = 0\nclass = \"{class}\"\n")
    };
    let text = |class: &str| {
        format!(
            "[fabric]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
             [fabric.switch_queue]\nbuffer = \"10packets\"\nscheduler = \"strict\"\n\
             [[fabric.switch_queue.class]]\nholds = [\"unknown\", \"acks\"]\nlossless = true\n\
             [[fabric.switch_queue.class]]\nholds = [\"short\", \"long\", \"best-effort\"]\n\
             [transport]\nname = \"roce\"\n[traffic]\n{}",
            incast(class)
        )
    };
    let [lossless, lossy] = ["unknown", "short"].map(|class| {
        let outcome = outcome(&text(class));
        sum(&outcome, "classes", "dropped", |_| true)
    });
    assert_eq!(lossless, 0);
    assert!(lossy > 0, "its limit holds");
    // What a resolved spec says is taken again.
    let prepared = Prepared::new(&SpecSource::from_text(text("unknown"))).expect("a spec");
    let explained = prepared.explain(None).expect("JSON");
    let again = explained["toml"].as_str().expect("TOML");
    assert!(Prepared::new(&SpecSource::from_text(again)).is_ok(), "{again}");
}

fn refused(toml: &str) -> String {
    match Prepared::new(&SpecSource::from_text(toml)) {
        Ok(_) => panic!("{toml}: taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_be_lossless_is_refused_with_the_key_and_what_is_needed() {
    let queue = "[fabric]\nkind = \"leaf-spine\"\n[fabric.switch_queue]\n";
    for (text, said) in [
        (
            "lossless = true\n[fabric.pause]\nheadroom = \"1KB\"",
            "fabric.pause.headroom = 1KB: a lossless class needs at least",
        ),
        (
            "lossless = true\n[fabric.shared_buffer]\nsize = \"40KB\"",
            "fabric.shared_buffer.size = 40KB: headroom and reserves of leaf0",
        ),
        ("buffer = \"1MB\"\n[fabric.pause]\nalpha = 1.0", "fabric.switch_queue.lossless is missing"),
        (
            "lossless = true\n[fabric.pause]\nalpha = 1.0\nxoff = \"9KB\"",
            "fabric.pause.xoff and fabric.pause.alpha exclude",
        ),
        ("lossless = true\n[fabric.pause]\nalpha = 0.0", "fabric.pause.alpha = 0: allowed is"),
        ("lossless = true\n[fabric.host_queue]\nlossless = true", "fabric.host_queue.lossless and"),
        ("trim = \"64B\"", "fabric.switch_queue.trim needs a class that holds"),
        (
            "lossless = true\nbuffer = \"10KB\"",
            "fabric.switch_queue.buffer and fabric.switch_queue.lossless exclude each other: with a limit of 10KB",
        ),
        (
            "scheduler = \"strict\"\n[[fabric.switch_queue.class]]\nholds = [\"short\", \"long\", \"unknown\", \"best-effort\"]\n\
             buffer = \"9packets\"\nlossless = true",
            "fabric.switch_queue.class[0].buffer and fabric.switch_queue.class[0].lossless exclude",
        ),
        (
            "lossless = true\nscheduler = \"strict\"\n[[fabric.switch_queue.class]]\nholds = [\"short\", \"long\", \"trimmed\"]\n\
             [[fabric.switch_queue.class]]\nholds = [\"unknown\", \"best-effort\"]\nlossless = false\ntrim = \"64B\"",
            "fabric.switch_queue.class[0].holds and fabric.switch_queue.class[0].lossless exclude",
        ),
        (
            "lossless = true\n[fabric.software_switch]\nport_rate = \"1Mpps\"",
            "fabric.shared_buffer and fabric.software_switch",
        ),
        (
            "scheduler = \"strict\"\n[[fabric.switch_queue.class]]\nholds = [\"short\"]\nlossless = true",
            "no class holds the packets of \"unknown\" flows",
        ),
        (
            "scheduler = \"strict\"\n[[fabric.switch_queue.class]]\nholds = [\"short\", \"long\", \"unknown\", \"best-effort\"]\nalpha = 2.0",
            "fabric.shared_buffer is missing: fabric.switch_queue.class[0] has a share of it",
        ),
    ] {
        let error = refused(&format!("{queue}{text}\n"));
        assert!(error.contains(said), "{text}\n{error}");
    }
}

/// A class of a port for flows of each name, and flows of each: said by tables, by a transport and
/// by the rows of a trace.
const TENANTS: &str = "
[fabric]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 4

[fabric.switch_queue]
scheduler = \"weighted\"
class = [
  { holds = [\"unknown\", \"schemes\"] }, { holds = [\"short\"] }, { holds = [\"long\"] }, { holds = [\"best-effort\"] },
  { holds = [\"tc4\"] }, { holds = [\"tc5\"], weight = 2 }, { holds = [\"tc6\"] }, { holds = [\"tc7\"], lossless = true },
]

[[transport]]
name = \"tcp\"

[[transport]]
name = \"roce\"
class = \"tc7\"

[traffic]
trace = \"flows.csv\"
classes = { transport = { tc6 = \"roce\" } }

[[traffic.incast]]
senders = 2
size = \"3KB\"
transport = \"roce\"

[[traffic.incast]]
senders = 2
size = \"3KB\"
class = \"tc6\"

[[traffic.collective]]
kind = \"all-reduce\"
size = \"8KB\"
hosts = [\"0-3\"]
class = \"tc5\"
";

const NAMES: [&str; 8] = ["unknown", "short", "long", "best-effort", "tc4", "tc5", "tc6", "tc7"];

fn of_tenants(folder: &std::path::Path, toml: &str) -> Result<Prepared, String> {
    let row = |(at, name): (usize, &&str)| format!("{at},{at},{},20000,{name}", (at + 3) % 8);
    let rows: Vec<String> = NAMES.iter().enumerate().map(row).collect();
    let trace = format!("start_us,src,dst,size_bytes,class\n{}\n", rows.join("\n"));
    std::fs::write(folder.join("flows.csv"), trace).map_err(|error| error.to_string())?;
    let source = SpecSource { base_dir: folder.to_owned(), ..SpecSource::from_text(toml) };
    Prepared::new(&source).map_err(|error| error.to_string())
}

#[test]
fn eight_classes_of_flows_come_back_by_name_from_whoever_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = of_tenants(folder.path(), TENANTS).unwrap();
    let again = of_tenants(folder.path(), &prepared.resolved.toml).unwrap();
    assert_eq!(again.resolved.hash, prepared.resolved.hash);
    let outcome = prepared.run(&mut |_| ControlFlow::Continue(()), None, Cores::All).unwrap();
    let flows = outcome.flows.read().unwrap();
    let text = |name: &str| flows.column_by_name(name).unwrap().as_string::<i32>().clone();
    let (classes, carriers) = (text("class"), text("transport"));
    let count = |name: &str| classes.iter().filter(|class| *class == Some(name)).count();
    let all_reduce = classes.len() - 8 - 4;
    assert!(all_reduce > 0);
    assert_eq!(NAMES.map(count), [1, 1, 1, 1, 1, 1 + all_reduce, 3, 3]);
    // RoCE has the flows of `tc6`, and those of its incast, which have its class.
    let of_roce = classes.iter().zip(&carriers).filter(|(_, carrier)| *carrier == Some("roce"));
    assert!(of_roce.clone().all(|(class, _)| matches!(class, Some("tc6" | "tc7"))));
    assert_eq!(of_roce.count(), 5);
    let mut of_summary: Vec<&str> = outcome.summary.classes.iter().map(|class| class.class).collect();
    of_summary.sort_unstable();
    let mut names = NAMES;
    names.sort_unstable();
    assert_eq!(of_summary, names);
    // Data of each came by the class of the ports that holds it.
    let ports = &outcome.classes;
    let number = ports.column_by_name("class").unwrap().as_primitive::<UInt16Type>();
    let packets = ports.column_by_name("packets").unwrap().as_primitive::<UInt64Type>();
    for place in 0..8 {
        let of_class = number.values().iter().zip(packets.values()).filter(|(class, _)| **class == place);
        assert!(of_class.map(|(_, packets)| packets).sum::<u64>() > 0, "{place}");
    }
}

#[test]
fn a_class_of_flows_that_no_class_of_a_port_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let message = |toml: &str| match of_tenants(folder.path(), toml) {
        Err(message) => message,
        Ok(_) => panic!("a mistake was not noticed: {toml}"),
    };
    let without = |name: &str| TENANTS.replace(&format!("\"{name}\"]"), "\"acks\"]");
    let expected = "fabric.switch_queue.class is missing: no class holds the packets of \"tc5\" flows, and the traffic has \
                    such flows";
    let found = message(&without("tc5"));
    assert!(found.ends_with(expected), "{found}");
    let host = "[fabric.host_queue]\nscheduler = \"strict\"\nclass = [{ holds = [\"unknown\", \"short\", \"long\", \"best-effort\", \"tc4\"] }]\n";
    let lossy = TENANTS.replace(", lossless = true", "");
    assert!(
        message(&format!("{lossy}{host}"))
            .contains("fabric.host_queue.class is missing: no class holds the packets of \"tc5\" flows")
    );
    // Nobody needs a place for flows that there are not.
    let ports = TENANTS.split("\n[[transport]]").next().unwrap().replace("\"tc4\"]", "\"acks\"]");
    let random = format!("{ports}\n[traffic]\nsize = \"20KB\"\nload = 0.3\nflows = 10\n");
    assert!(of_tenants(folder.path(), &random).is_ok());
    let near = message(&TENANTS.replace("class = \"tc6\"", "class = \"tc8\""));
    assert!(near.contains("\"tc8\"") && near.contains("did you mean \"tc"), "{near}");
}
