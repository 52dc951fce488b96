//! Matrices in the forms in which htsim's own generators write them, and what each of their flows
//! waits for.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::tests::{needs, traffic_of, traffic_with};
use crate::fixtures::{racks, spec};
use crate::{Point, Traffic, TrafficError};

/// A matrix of so many nodes and triggers of one kind, with these connections.
fn matrix(nodes: usize, connections: &[String], (triggers, kind): (usize, &str)) -> String {
    let mut text = format!(
        "Nodes {nodes}\nConnections {}\nTriggers {triggers}\n{}\n",
        connections.len(),
        connections.join("\n")
    );
    for trigger in 1..=triggers {
        writeln!(text, "trigger id {trigger} {kind}").unwrap();
    }
    text
}

/// An all-reduce on a ring: each of the parts goes around twice, and its next step is said to wait
/// for what the host before has sent.
fn ring(nodes: usize) -> String {
    let (steps, mut trigger, mut lines) = (2 * nodes - 1, 0, Vec::new());
    for part in 0..nodes {
        for step in 0..steps {
            let (src, dst) = ((part + step) % nodes, (part + step + 1) % nodes);
            let begins = if step == 0 { "start 0".to_owned() } else { format!("trigger {trigger}") };
            let mut line = format!("{src}->{dst} id {} {begins} size 1000", lines.len() + 1);
            if step + 1 < steps {
                trigger += 1;
                write!(line, " send_done_trigger {trigger}").unwrap();
            }
            lines.push(line);
        }
    }
    matrix(nodes, &lines, (trigger, "oneshot"))
}

/// An all-reduce by doubling distances: the next step of a rank waits for what came to it.
fn butterfly(nodes: usize) -> String {
    let (rounds, mut lines) = (nodes.ilog2(), Vec::new());
    let trigger = |round: u32, node: usize| round as usize * nodes + node + 1;
    for round in 0..rounds {
        for src in 0..nodes {
            let dst = src ^ (1 << round);
            let begins = if round == 0 {
                "start 0".to_owned()
            } else {
                format!("trigger {}", trigger(round - 1, src))
            };
            let tells = if round + 1 < rounds {
                format!(" recv_done_trigger {}", trigger(round, dst))
            } else {
                String::new()
            };
            lines.push(format!("{src}->{dst} id {} {begins} size 1000{tells}", lines.len() + 1));
        }
    }
    matrix(nodes, &lines, ((rounds as usize - 1) * nodes, "oneshot"))
}

/// An all-to-all in which each node has two connections under way: each that is through starts the
/// next.
fn all_to_all(nodes: usize) -> String {
    let mut lines = Vec::new();
    for src in 0..nodes {
        for step in 1..nodes {
            let begins = if step <= 2 { "start 0".to_owned() } else { format!("trigger {}", src + 1) };
            let dst = (src + step) % nodes;
            let tells =
                if step + 2 < nodes { format!(" send_done_trigger {}", src + 1) } else { String::new() };
            lines.push(format!("{src}->{dst} id {} {begins} size 1000{tells} prio {step}", lines.len() + 1));
        }
    }
    matrix(nodes, &lines, (nodes, "multishot"))
}

/// Source and destination.
type Ends = (u16, u16);

/// By flow that waits: the flow that it waits for, by way of a trigger, and the point of it.
fn awaited(traffic: &Traffic) -> Vec<(Ends, Ends, Point)> {
    let dependencies = &traffic.schedule.as_ref().unwrap().dependencies;
    let ends = |flow: u32| (traffic.flows[flow as usize].src.0, traffic.flows[flow as usize].dst.0);
    let mut all = Vec::new();
    for flow in 0..dependencies.flows() {
        for (point, join) in dependencies.all_dependents(flow) {
            let waiting = if dependencies.is_flow(join) {
                vec![join]
            } else {
                dependencies.dependents(join, Point::Done).collect()
            };
            let flows = waiting.into_iter().filter(|&next| dependencies.is_flow(next));
            all.extend(flows.map(|next| (ends(next), ends(flow), point)));
        }
    }
    all
}

#[test]
fn a_ring_goes_on_at_the_next_host_once_the_data_have_come_there_though_its_triggers_say_sent() {
    let traffic = traffic_of("x.cm", &ring(8)).unwrap();
    assert_eq!(traffic.flows.len(), 8 * 15);
    assert_eq!(needs(&traffic).iter().filter(|&&needs| needs == 1).count(), 8 * 14);
    let all = awaited(&traffic);
    assert_eq!(all.len(), 8 * 14);
    for (next, before, point) in all {
        assert_eq!((next.0, point), (before.1, Point::Received));
    }
}

#[test]
fn what_a_destination_has_starts_flows_of_the_source_once_it_is_acknowledged() {
    let text = "Nodes 4\n0->1 id 1 start 0 size 9 recv_done_trigger 1\n0->2 id 2 trigger 1 size 9\ntrigger id 1 oneshot\n";
    let traffic = traffic_of("x.cm", text).unwrap();
    assert_eq!(awaited(&traffic), [((0, 2), (0, 1), Point::Acknowledged)]);
}

#[test]
fn a_barrier_counts_at_each_host_what_that_host_knows() {
    let text = "Nodes 4\n0->1 id 1 start 0 size 9 send_done_trigger 1\n1->0 id 2 start 0 size 9 send_done_trigger 1\n\
        0->2 id 3 trigger 1 size 9\n1->3 id 4 trigger 1 size 9\ntrigger id 1 barrier count 2\n";
    let mut all = awaited(&traffic_of("x.cm", text).unwrap());
    all.sort_by_key(|&(next, before, _)| (next, before));
    let expected = [
        ((0, 2), (0, 1), Point::Acknowledged),
        ((0, 2), (1, 0), Point::Received),
        ((1, 3), (0, 1), Point::Received),
        ((1, 3), (1, 0), Point::Acknowledged),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_butterfly_and_an_all_to_all_wait_for_as_much_as_they_say() {
    let butterfly = traffic_of("x.cm", &butterfly(8)).unwrap();
    assert_eq!(needs(&butterfly).iter().filter(|&&needs| needs == 1).count(), 16);
    assert!(
        awaited(&butterfly)
            .iter()
            .all(|(next, before, point)| { (next.0, *point) == (before.1, Point::Received) })
    );
    let all_to_all = traffic_of("x.cm", &all_to_all(6)).unwrap();
    // Of five at each node two start by themselves, and the n-th of the others with the n-th that
    // is through.
    let mut counts = needs(&all_to_all);
    counts.sort_unstable();
    assert_eq!(counts, [[0; 12].as_slice(), &[1; 6], &[2; 6], &[3; 6]].concat());
}

#[test]
fn messages_of_one_connection_are_flows_with_or_without_a_number() {
    let text = "Nodes 2\nConnections 3\nTriggers 1\n0->1 id 1 msg start 0 size 40860\n\
        0->1 id 1 msg 7 start 0 size 40860 send_done_trigger 1\n0->1 id 1 msg trigger 1 size 9\ntrigger id 1 oneshot\n";
    let traffic = traffic_of("x.cm", text).unwrap();
    assert_eq!(needs(&traffic), [0, 0, 1]);
    let cases = [
        ("0->1 id 1 msg 0 start 0 size 9", "x.cm:2: found msg \"0\": allowed is a whole number, 1 to"),
        ("0->1 msg start 0 size 9", "x.cm:2: found msg without an id: allowed is id N"),
        (
            "0->1 id 1 msg start 0 size 9\n1->0 id 1 msg start 0 size 9",
            "x.cm:3: found msg of connection 1, 1->0: allowed is 0->1, as that connection goes",
        ),
    ];
    for (lines, expected) in cases {
        let found = traffic_of("x.cm", &format!("Nodes 2\n{lines}\n")).unwrap_err().to_string();
        assert!(found.contains(expected), "{lines:?}: {found}");
    }
}

#[test]
fn starts_have_the_unit_that_the_spec_says_and_none_without_it() {
    let starts = |unit: &str, starts: &[&str]| {
        let line = |(at, start): (usize, &&str)| format!("0->1 id {} start {start} size 9\n", at + 1);
        let text = format!("Nodes 2\n{}", starts.iter().enumerate().map(line).collect::<String>());
        let traffic = traffic_with(unit, "x.cm", &[("x.cm", text)])?;
        Ok::<_, TrafficError>(traffic.flows.iter().map(|flow| flow.start.as_ps()).collect::<Vec<_>>())
    };
    let (us, ps) = ("start_unit = \"us\"", "start_unit = \"ps\"");
    assert_eq!(starts(us, &["0", "1.5", "20", "20.000001"]), Ok(vec![0, 1_500_000, 20_000_000, 20_000_001]));
    assert_eq!(starts(ps, &["0", "20", "30.000000"]), Ok(vec![0, 20, 30]));
    assert_eq!(starts("", &["0", "0.000000"]), Ok(vec![0, 0]));
    let cases = [
        (
            starts("", &["0", "20"]),
            "x.cm:3: found start 20, whose unit no matrix states: allowed is traffic.schedule.start_unit = \"us\" (20 us: \
             htsim_uec, htsim_eqds and htsim_roce of uet-htsim) or \"ps\" (0.00002 us: htsim_ndp, and the programs of csg-htsim)",
        ),
        (
            starts("", &["0.5"]),
            "start_unit = \"us\" (0.5 us: htsim_uec, htsim_eqds and htsim_roce of uet-htsim)",
        ),
        (starts(ps, &["0.5"]), "x.cm:2: found start \"0.5\": allowed is a whole number"),
        (
            starts(us, &["0.0000001"]),
            "x.cm:2: found start \"0.0000001\": allowed is a time from 0, in microseconds",
        ),
        (
            starts(us, &["8640000000001"]),
            "x.cm:2: found start 8640000000001: allowed is a start within 100 days",
        ),
        (starts(us, &["99999999999999999999"]), "x.cm:2: found start \"99999999999999999999\""),
    ];
    for (found, expected) in cases {
        let found = found.unwrap_err().to_string();
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let other = |name: &str, text: &str| traffic_with(us, name, &[(name, text)]).unwrap_err().to_string();
    assert!(
        other("x.goal", "num_ranks 2").ends_with(
            "exclude each other: a schedule in GOAL has no starts, and its calcs are in nanoseconds; start_unit is of a connection \
             matrix of htsim (.cm)"
        )
    );
    assert!(other("x.{rank}.json", "").contains("a trace of Chakra"));
    let name = other("x.txt", "");
    assert!(name.contains("traffic.schedule.file = \"x.txt\"") && !name.contains("start_unit"), "{name}");
}

/// All matrices in a folder and those in it.
fn matrices(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            matrices(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "cm") {
            found.push(path);
        }
    }
}

/// Reads a folder of matrices of htsim, but for those that its own reader refuses:
/// `WEFT_MATRICES=htsim/sim/datacenter cargo test -p weft-traffic -- --ignored --nocapture
/// every_matrix`.
#[test]
#[ignore = "it needs a copy of htsim"]
fn every_matrix_of_a_folder_is_read_unless_its_header_counts_otherwise() {
    let folder = PathBuf::from(std::env::var_os("WEFT_MATRICES").expect("WEFT_MATRICES names a folder"));
    let mut found = Vec::new();
    matrices(&folder, &mut found);
    assert!(!found.is_empty(), "no .cm in {}", folder.display());
    let mut refused = Vec::new();
    for path in &found {
        let name = path.file_name().unwrap().to_str().unwrap();
        let traffic = spec(&format!("[schedule]\nfile = '{name}'\nstart_unit = 'us'")).generate(
            &racks(64, 128, 1_280),
            1,
            path.parent().unwrap(),
        );
        match traffic {
            Ok(traffic) => println!("{}: {} flows", path.display(), traffic.flows.len()),
            Err(error) => {
                println!("{}: {error}", path.display());
                let error = error.to_string();
                if !error.contains("as many as there are") {
                    refused.push(error);
                }
            }
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}
