//! Whole runs: what they promise about determinism, conservation and the files that they write.

use std::fs;
use std::ops::ControlFlow;

use crate::common::{run, small};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use weft_lab::results::output::files;
use weft_lab::results::parquet::to_parquet;
use weft_lab::results::phases::FaultSummary;
use weft_lab::results::summary::Packets;
use weft_lab::{Cores, Outcome, Prepared, Resolved, RunError, SpecSource, fingerprint};
use weft_transport::TransportSpec;

#[test]
fn one_spec_and_seed_give_the_same_bytes_whatever_the_run_took() {
    let (first, second) = (run(&small(&[])), run(&small(&[])));
    for table in ["flows", "links", "scheme"] {
        let bytes = [&first, &second].map(|outcome| to_parquet(&outcome.table(table).unwrap()).unwrap());
        assert!(bytes[0] == bytes[1], "{table} differs between two runs");
    }
    assert_eq!(first.spec, second.spec);
    assert_ne!(
        fingerprint(&first.flows.read().unwrap()),
        fingerprint(&run(&small(&[]).with_seed(2)).flows.read().unwrap())
    );
}

#[test]
fn a_resolved_spec_resolves_to_itself_and_gives_the_same_result() {
    let source = small(&[("scheme.name", "letflow"), ("fabric.switch_queue.buffer", "250packets")]);
    let resolved = Resolved::new(&source).unwrap();
    let again = Resolved::new(&SpecSource::from_text(resolved.toml.clone())).unwrap();
    assert_eq!(again.toml, resolved.toml);
    assert_eq!(again.hash, resolved.hash);
    let (first, second) = (run(&source), run(&SpecSource::from_text(resolved.toml)));
    assert_eq!(fingerprint(&first.flows.read().unwrap()), fingerprint(&second.flows.read().unwrap()));
}

#[test]
fn how_many_threads_work_is_in_the_resolved_spec_and_neither_in_its_hash_nor_in_what_is_kept() {
    let plain = Resolved::new(&small(&[])).unwrap();
    let source = small(&[("run.threads", "2")]);
    let asked = Resolved::new(&source).unwrap();
    assert!(asked.toml.contains("threads = 2"), "{}", asked.toml);
    assert_eq!((&asked.hash, &asked.result_toml), (&plain.hash, &plain.toml));
    assert_eq!(Resolved::new(&small(&[("run.threads", "automatic")])).unwrap().toml, plain.toml);
    let (one, two) = (run(&small(&[])), run(&source));
    assert_eq!(
        (two.summary.spec_hash, two.flows.read().unwrap()),
        (one.summary.spec_hash, one.flows.read().unwrap())
    );
}

#[test]
fn every_packet_is_delivered_dropped_or_on_its_way() {
    for scheme in ["ecmp", "letflow", "rps", "presto", "drill"] {
        let outcome = run(&small(&[("scheme.name", scheme), ("fabric.switch_queue.buffer", "15KB")]));
        let packets = outcome.packets;
        assert!(packets.sent > 0 && packets.dropped > 0, "{scheme}: the buffers are small enough to drop");
        assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight, "{scheme}");
    }
}

/// Small buffers and packets on paths of different delay: whatever a transport does with a packet
/// that came too early, it came.
#[test]
fn no_more_segments_arrive_behind_a_hole_than_arrive_under_any_transport() {
    let slow = ("fabric.fault", "[{ link = 'leaf0-spine0', delay = '30us' }]");
    for transport in TransportSpec::list() {
        let name = transport.name;
        let outcome = run(&small(&[("scheme.name", "rps"), ("transport.name", name), slow]));
        let flows = outcome.flows.read().unwrap();
        let column = |name: &str| flows.column_by_name(name).unwrap();
        let early = column("out_of_order_packets").as_primitive::<UInt32Type>().values();
        let arrived = column("segments_received").as_primitive::<UInt64Type>().values();
        for (early, arrived) in early.iter().zip(arrived) {
            assert!(u64::from(*early) <= *arrived, "{name}: {early} of {arrived}");
        }
        let share = outcome.summary.packets.out_of_order_share.unwrap();
        assert!((0.0..=1.0).contains(&share), "{name}: {share}");
        assert!(name != "roce" || share > 0.5, "go-back-N refuses most: {share}");
        let delivered = column("delivered_bytes").as_primitive::<UInt64Type>().values();
        let sizes = column("size_bytes").as_primitive::<UInt64Type>().values();
        assert_eq!(delivered, sizes, "{name}: what was refused is not delivered twice");
    }
}

#[test]
fn what_nobody_counted_is_null_and_not_nought() {
    let endless = ("traffic", "{ long_lived = [{ src = 0, dst = 5 }, { src = 1, dst = 5 }] }");
    let outcome = run(&small(&[
        endless,
        ("scheme.name", "rps"),
        ("transport.name", "dctcp"),
        ("run.time_limit", "5ms"),
    ]));
    assert_eq!(outcome.summary.packets, Packets::default(), "no flow that ends");
    let background = outcome.summary.background.unwrap();
    assert!(
        background.packets.data_packets > Some(1_000) && background.packets.out_of_order_packets > Some(0)
    );
    // Go-back-N has no duplicate acknowledgements, and credits no congestion marks.
    for (transport, uncounted, counted) in [
        ("roce", "duplicate_acks", "nacks"),
        ("expresspass", "marked_acks", "timeouts"),
        ("tcp", "", "duplicate_acks"),
    ] {
        let outcome = run(&small(&[("transport.name", transport)]));
        let flows = outcome.flows.read().unwrap();
        let nulls = |name: &str| flows.column_by_name(name).map_or(0, arrow_array::Array::null_count);
        assert_eq!(nulls(uncounted), if uncounted.is_empty() { 0 } else { 40 }, "{transport}");
        assert_eq!(nulls(counted), 0, "{transport}");
        assert_eq!(outcome.summary.all.duplicate_acks.total.is_some(), transport == "tcp");
    }
}

#[test]
fn every_row_of_the_links_table_has_the_name_that_faults_use() {
    let links = run(&small(&[])).links;
    let names = links.column_by_name("link").unwrap().as_string::<i32>();
    let mut directions =
        names.iter().flatten().filter(|name| name.contains("leaf0") && name.contains("spine1"));
    assert_eq!([directions.next(), directions.next()], [Some("leaf0>spine1"), Some("spine1>leaf0")]);
    for name in names.iter().flatten().step_by(5) {
        let fault = format!("[{{ link = '{name}', loss = 0.5 }}]");
        assert!(Prepared::new(&small(&[("fabric.fault", &fault)])).is_ok(), "{name}");
    }
}

#[test]
fn two_schemes_see_the_same_flows() {
    let columns = |scheme| {
        let flows = run(&small(&[("scheme.name", scheme)])).flows.read().unwrap();
        flows.project(&[0, 1, 2, 3, 4, 5, 6]).unwrap()
    };
    assert_eq!(columns("ecmp"), columns("rps"));
}

/// The values of a column of numbers.
fn numbers(table: &RecordBatch, name: &str) -> Vec<f64> {
    table.column_by_name(name).expect("a column").as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn a_pooled_fabric_has_the_flows_and_the_ideal_times_of_the_real_one_and_waits_less() {
    let fault = ("fabric.fault", "[{ link = 'leaf0-spine1', rate = '2Gbps' }]");
    let [real, pooled] = ["{ name = 'ecmp' }", "{ name = 'oracle', kind = 'pooled' }"]
        .map(|scheme| run(&small(&[("scheme", scheme), ("traffic.flows", "300"), fault])));
    let [first, second] = [&real, &pooled].map(|outcome| outcome.flows.read().unwrap());
    for name in ["start_us", "ideal_fct_us"] {
        assert_eq!(numbers(&first, name), numbers(&second, name), "{name}");
    }
    let links = pooled.links.column_by_name("link").unwrap().as_string::<i32>();
    assert!(links.iter().flatten().any(|name| name == "leaf0>pool"));
    // 10 + 2 Gbit/s on the way up of rack 0.
    let rates = pooled.links.column_by_name("rate_bps").unwrap().as_primitive::<UInt64Type>();
    assert!(links.iter().zip(rates).any(|link| link == (Some("leaf0>pool"), Some(12_000_000_000))));
    let waits = |outcome: &weft_lab::Outcome| outcome.summary.wait_us.leaf.unwrap();
    assert!(waits(&pooled) < waits(&real), "{} and {}", waits(&pooled), waits(&real));
}

#[test]
fn a_fabric_that_cannot_be_pooled_is_refused_by_its_key() {
    let one = small(&[
        ("scheme", "{ name = 'oracle', kind = 'pooled' }"),
        ("fabric.leaves", "1"),
        ("traffic.pairs", "anywhere"),
        ("traffic.load_of", "host-links"),
    ]);
    let said = Prepared::new(&one).unwrap_err().to_string();
    assert!(said.contains("scheme.kind is \"pooled\": there is one rack"), "{said}");
}

#[test]
fn a_window_is_part_of_the_resolved_spec_in_the_form_in_which_it_was_written() {
    for (warmup, written) in [("1ms", "warmup = \"1ms\""), ("7", "warmup = 7"), ("0.25", "warmup = 0.25")] {
        let resolved = Resolved::new(&small(&[("run.warmup", warmup)])).unwrap();
        assert!(resolved.toml.contains(written), "{}", resolved.toml);
        assert_eq!(Resolved::new(&SpecSource::from_text(resolved.toml.clone())).unwrap().hash, resolved.hash);
    }
}

#[test]
fn no_flow_is_faster_than_an_empty_fabric_allows() {
    let outcome = run(&small(&[("scheme.name", "rps")]));
    let all = outcome.summary.all;
    assert_eq!((all.flows, all.unfinished), (40, 0));
    assert!(outcome.summary.all.slowdown.p50.unwrap() >= 1.0);
    let json: serde_json::Value = serde_json::from_str(&outcome.summary.to_json().unwrap()).unwrap();
    assert_eq!(json["flows"], 40);
    assert_eq!(json["scheme"], "rps");
}

#[test]
fn flows_that_a_time_limit_cuts_off_leave_means_open() {
    let outcome = run(&small(&[("run.time_limit", "1us")]));
    let all = outcome.summary.all;
    assert!(all.unfinished > 0);
    assert_eq!(all.flows, 40);
    assert_eq!(outcome.summary.time_limit_us, Some(1.0));
    assert!(all.fct_us.mean.is_none() && all.fct_us.at_least.unwrap().mean.unwrap() > 0.0);
    assert_eq!(run(&small(&[])).summary.time_limit_us, None);
}

#[test]
fn an_observer_stops_a_run() {
    let prepared = Prepared::new(&small(&[])).unwrap();
    let stopped = prepared.run(&mut |_| ControlFlow::Break(()), None, Cores::All);
    assert!(matches!(stopped, Err(RunError::Stopped)));
}

#[test]
fn a_result_directory_holds_every_file_and_its_spec_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("result");
    let outcome = run(&small(&[]));
    outcome.write(&target, false).unwrap();
    for file in files() {
        assert!(fs::metadata(target.join(&file)).unwrap().len() > 0, "{file}");
    }
    let spec = fs::read_to_string(target.join("spec.toml")).unwrap();
    assert_eq!(
        fingerprint(&run(&SpecSource::from_text(spec)).flows.read().unwrap()),
        fingerprint(&outcome.flows.read().unwrap())
    );
}

#[test]
fn the_spec_hash_follows_the_content_of_files_and_not_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let hash = |place: &str, content: &str| {
        let base_dir = folder.path().join(place);
        fs::create_dir_all(&base_dir).unwrap();
        fs::write(base_dir.join("flows.csv"), content).unwrap();
        let mut source = SpecSource::from_text("[traffic]\ntrace = \"flows.csv\"\n");
        source.base_dir = base_dir;
        let outcome = run(&source);
        assert_eq!(outcome.summary.all.flows, 1, "{}", outcome.spec);
        outcome.summary.spec_hash
    };
    let trace = "start_us,src,dst,size_bytes\n0,0,17,1000\n";
    assert_eq!(hash("a", trace), hash("b", trace));
    assert_ne!(hash("a", trace), hash("a", "start_us,src,dst,size_bytes\n0,0,17,1001\n"));
}

#[test]
fn sampling_fills_two_tables_that_add_up_and_changes_no_flow() {
    let plain = run(&small(&[]));
    let sampled = run(&small(&[("run.sample_every", "20us")]));
    assert_eq!(sampled.flows.read().unwrap(), plain.flows.read().unwrap());
    assert_eq!(sampled.links, plain.links);
    assert_eq!((plain.samples.num_rows(), plain.deliveries.num_rows()), (0, 0));
    assert_eq!(plain.summary.totals.sample_interval_us, None);
    assert_eq!(sampled.summary.totals.sample_interval_us, Some(20.0));
    let sum = |table: &RecordBatch, name: &str| -> u64 {
        table.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().iter().sum()
    };
    assert_eq!(sum(&sampled.deliveries, "payload_bytes"), sum(&sampled.flows.read().unwrap(), "size_bytes"));
    // Every flow is acknowledged to its end, so nothing but late copies is on the links.
    assert_eq!(sum(&sampled.samples, "sent_bytes"), sum(&sampled.links, "bytes"));
    let used = sampled.samples.column_by_name("utilisation").unwrap().as_primitive::<Float64Type>();
    assert!(used.values().iter().all(|share| (0.0..=1.001).contains(share)));
}

#[test]
fn the_flows_of_a_run_with_several_transports_say_which_one_carried_them() {
    let transports = "[{ name = 'tcp' }, { name = 'mptcp', label = 'bulk', subflows = 2 }]";
    let classes = "{ best_effort = 0.5, transport = { best-effort = 'bulk' } }";
    let outcome = run(&small(&[("transport", transports), ("traffic.classes", classes)]));
    let flows = outcome.flows.read().unwrap();
    let text = |name: &str| flows.column_by_name(name).unwrap().as_string::<i32>();
    let (classes, labels) = (text("class"), text("transport"));
    assert!(classes.iter().any(|class| class == Some("best-effort")));
    for (class, label) in classes.iter().zip(labels) {
        assert_eq!(label, Some(if class == Some("best-effort") { "bulk" } else { "tcp" }));
    }
    assert!(run(&small(&[])).flows.read().unwrap().column_by_name("transport").is_none());
}

/// Two racks with one spine between them, whose link to the first one is down for a while: what is
/// sent meanwhile has no way, and nothing else is lost.
fn with_an_outage(flows: &[[u32; 4]], more: &str) -> std::io::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("flows.csv");
    let rows: Vec<_> =
        flows.iter().map(|[start, from, to, size]| format!("{start},{from},{to},{size}\n")).collect();
    fs::write(&trace, format!("start_us,src,dst,size_bytes\n{}", rows.concat()))?;
    let spec = format!(
        "[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n{more}\n[traffic]\ntrace = '{}'\n[transport]\n\
         name = 'dctcp'\n",
        trace.display()
    );
    Ok(run(&SpecSource::from_text(spec)))
}

#[test]
fn a_packet_that_is_sent_into_an_outage_is_told_with_its_place_its_instant_and_its_phase() {
    let fault = "reroute_after = '10us'\n[[fabric.fault]]\nlink = 'leaf0-spine0'\nat = '100us'\nuntil = '200us'\ndown = true";
    let outcome = with_an_outage(&[0, 150, 50_000].map(|start| [start, 0, 1, 1_000]), fault).unwrap();
    let drops = outcome.table("drops").unwrap();
    let text = |name: &str| drops.column_by_name(name).unwrap().as_string::<i32>().value(0).to_owned();
    assert_eq!(
        (drops.num_rows(), text("place"), text("cause")),
        (1, "leaf0".to_owned(), "no-route".to_owned())
    );
    // 1,040 bytes take 0.832 us at 10 Gbit/s, and the cable 1 us.
    let last = drops.column_by_name("last_us").unwrap().as_primitive::<Float64Type>().value(0);
    assert!((last - 151.832).abs() < 1e-9, "{last}");
    let phases: Vec<_> =
        outcome.summary.phases.iter().map(|one| (one.phase, one.flows, one.lost.no_route)).collect();
    assert_eq!(phases, [("before", 1, 0), ("during", 1, 1), ("after", 1, 0)]);
    // It is sent again after 10 ms, over the link that is back, and takes what a flow takes that
    // meets nobody.
    let [before, during, after] = [0, 1, 2].map(|at| outcome.summary.phases[at].fct_us.mean.unwrap());
    assert!((before - after).abs() < 1e-9 && (during - before - 10_000.0).abs() < 1.0, "{before} {during}");
    let [fault] = &outcome.summary.faults[..] else { panic!("one fault") };
    assert_eq!((fault.links.len(), fault.lost_packets, fault.unroutable_packets), (2, 0, 1));
    assert_eq!((fault.from_us, fault.until_us, fault.last_unroutable_us), (100.0, Some(200.0), Some(last)));
    assert_eq!(outcome.table("faults").unwrap().num_rows(), 2);
}

#[test]
fn what_phases_say_adds_up_to_what_the_run_says() {
    let faults = "[[fabric.fault]]\nlink = 'leaf0>spine0'\nat = '1ms'\nuntil = '30ms'\nloss = 0.02\n\
                  [[fabric.fault]]\nlink = 'spine0>leaf1'\nat = '20ms'\nuntil = '60ms'\nrate = '1Gbps'\n\
                  [fabric.switch_queue]\nbuffer = '30KB'";
    let flows: Vec<_> = (0..80).map(|number| [number * 1_000, 0, 1, 200_000]).collect();
    let outcome = with_an_outage(&flows, faults).unwrap();
    let (summary, phases) = (&outcome.summary, &outcome.summary.phases);
    assert_eq!(phases.iter().map(|one| one.phase).collect::<Vec<_>>(), ["before", "during", "after"]);
    assert_eq!(phases.iter().map(|one| one.flows).sum::<u64>(), summary.all.flows);
    let resent = phases.iter().map(|one| one.retransmissions).sum::<u64>();
    assert_eq!(Some(resent), summary.packets.retransmissions);
    let took: f64 = phases.iter().map(|one| one.simulated_us).sum();
    assert!((took - summary.totals.simulated_us).abs() < 1e-6);
    let lost = phases.iter().map(|one| [one.lost.queue, one.lost.loss]);
    let [queue, loss] = lost.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    assert!(queue > 0 && loss > 0 && queue + loss == summary.totals.dropped_packets, "{queue} and {loss}");
    let of_faults: Vec<_> = summary.faults.iter().map(|fault| fault.lost_packets).collect();
    assert!(of_faults[0] >= loss && of_faults[1] > 0, "{of_faults:?}");
    assert!(summary.faults.iter().all(|fault| fault.last_lost_us <= fault.until_us));
    // Two faults that overlap divide a run into five stretches.
    assert_eq!(outcome.table("phases").unwrap().num_rows(), 5);
    let packets = outcome.table("drops").unwrap();
    let packets: u64 =
        packets.column_by_name("packets").unwrap().as_primitive::<UInt64Type>().values().iter().sum();
    assert_eq!(packets, summary.totals.dropped_packets);
}

#[test]
fn a_fault_that_slows_a_link_says_what_became_of_it_and_no_other_one_does() {
    let faults = "[{ link = 'leaf0-spine0', at = '1ms', until = '3ms', rate = '1Gbps' }, \
                  { link = 'leaf0-spine1', at = '2ms', until = '4ms', loss = 0.01 }]";
    let changes = [("fabric.fault", faults), ("traffic.workload", "web-search"), ("traffic.load", "0.6")];
    let outcome = run(&small(&changes));
    let [slow, lossy] = &outcome.summary.faults[..] else { panic!("two faults") };
    let seen = slow.slowed.unwrap();
    let (before, during) = (seen.share_before.unwrap(), seen.share_during.unwrap());
    assert!((0.0..=1.0).contains(&before) && (0.0..=1.0).contains(&during), "{before} {during}");
    assert!(during > 0.0 && seen.crowded_until_us.is_none_or(|until| (1_000.0..=3_000.0).contains(&until)));
    assert_eq!(lossy.slowed, None, "losses tell of that one");
    let summary = outcome.summary.to_json().unwrap();
    assert_eq!(summary.matches("\"slowed\"").count(), 1);
}

#[test]
fn a_run_without_faults_says_nothing_of_them() {
    let outcome = run(&small(&[("fabric.switch_queue.buffer", "15KB")]));
    assert!(outcome.packets.dropped > 0);
    assert!(["faults", "phases", "drops"].iter().all(|name| outcome.table(name).unwrap().num_rows() == 0));
    let summary = outcome.summary.to_json().unwrap();
    assert!(!summary.contains("\"faults\"") && !summary.contains("\"phases\""));
}

/// Two faults, one of which lasts as long as the run: what is lost into the other one is charged to
/// it alone, by place and time.
#[test]
fn each_lost_packet_is_charged_to_one_fault_and_what_lasts_divides_nothing() {
    let faults = "[{ link = 'leaf0-spine1', rate = '5Gbps' }, \
                  { link = 'leaf2-spine1', at = '1ms', until = '3ms', down = true }]";
    let more = [("fabric.fault", faults), ("traffic.flows", "100"), ("traffic.load", "0.6")];
    let outcome = run(&small(&[&more[..], &[("fabric.switch_queue.buffer", "20KB")]].concat()));
    let summary = &outcome.summary;
    let drops = outcome.table("drops").unwrap();
    let faults = drops.column_by_name("fault").unwrap().as_primitive::<UInt32Type>();
    let packets = drops.column_by_name("packets").unwrap().as_primitive::<UInt64Type>();
    let charged = |fault: Option<u32>| -> u64 {
        let own =
            (0..drops.num_rows()).filter(|&row| faults.is_valid(row).then(|| faults.value(row)) == fault);
        own.map(|row| packets.value(row)).sum()
    };
    for (number, fault) in (0..).zip(&summary.faults) {
        assert_eq!(fault.lost_packets + fault.unroutable_packets, charged(Some(number)), "fault {number}");
    }
    let all = [charged(Some(0)), charged(Some(1)), charged(None)];
    assert!(all.iter().all(|packets| *packets > 0), "{all:?}");
    assert_eq!(all.iter().sum::<u64>(), summary.totals.dropped_packets);
    assert_eq!(summary.faults[0].unroutable_packets, 0);
    let of_links = outcome.table("faults").unwrap();
    for (column, of) in [("lost_packets", 0), ("unroutable_packets", 1)] {
        let sum: u64 =
            of_links.column_by_name(column).unwrap().as_primitive::<UInt64Type>().values().iter().sum();
        let summed = |fault: &FaultSummary| [fault.lost_packets, fault.unroutable_packets][of];
        assert_eq!(sum, summary.faults.iter().map(summed).sum::<u64>(), "{column}");
    }
    assert_eq!(summary.phases.iter().map(|one| one.phase).collect::<Vec<_>>(), ["before", "during", "after"]);
}

/// Everything that a leaf sends vanishes, and there is one spine: who waits for a timer to expire
/// has not moved.
#[test]
fn a_flow_that_is_silent_has_not_moved_away_and_one_that_goes_by_another_path_has() {
    let reaction = |changes: &[(&str, &str)]| {
        let outcome =
            run(&small(&[&[("run.time_limit", "60ms"), ("traffic.load", "0.6")], changes].concat()));
        outcome.summary.faults[0].reaction.unwrap()
    };
    for scheme in ["ecmp", "rps"] {
        let hole = ("fabric.fault", "[{ link = 'leaf0-spine0', blackhole = 1.0 }]");
        let found = reaction(&[("fabric.spines", "1"), ("scheme.name", scheme), hole]);
        assert!(found.hit_flows > 0, "{scheme}");
        assert_eq!(
            (found.moved_flows, found.moved_away_us, found.used_again_us),
            (0, None, None),
            "{scheme}"
        );
    }
    // The leaf knows at once that its link is down; what others send to it is lost until they know,
    // and sent again by the other spine.
    let outage = ("fabric.fault", "[{ link = 'leaf0-spine0', at = '5ms', until = '40ms', down = true }]");
    let found = reaction(&[
        ("fabric.reroute_after", "5ms"),
        ("traffic.flows", "200"),
        ("scheme.name", "rps"),
        outage,
    ]);
    assert!(0 < found.moved_flows && found.moved_flows <= found.hit_flows, "{found:?}");
    let moved = found.moved_away_us.unwrap();
    assert!((5_000.0..40_000.0).contains(&moved), "{moved}");
    assert!(found.used_again_us.is_none_or(|at| at >= 40_000.0), "{found:?}");
}

/// A flow that spreads over all paths loses some packets at each instant while others arrive: it
/// neither moved away nor is stuck.
#[test]
fn a_flow_that_spreads_over_a_fault_has_not_moved_away() {
    for fault in ["at = '2ms', until = '20ms', down = true", "loss = 0.2", "blackhole = 0.5"] {
        let reaction = |scheme| {
            let fault = format!("[{{ link = 'spine0>leaf1', {fault} }}]");
            let changes = [
                ("scheme.name", scheme),
                ("fabric.reroute_after", "50ms"),
                ("run.time_limit", "20ms"),
                ("fabric.fault", &fault),
            ];
            run(&small(&changes)).summary.faults[0].reaction.unwrap()
        };
        let rps = reaction("rps");
        assert!(rps.spread_flows > 0 && rps.spread_until_us.is_some(), "{fault}: {rps:?}");
        assert!(rps.spread_flows + rps.moved_flows <= rps.hit_flows, "{fault}: {rps:?}");
        let lost =
            rps.spread_lost_packets as f64 / (rps.spread_lost_packets + rps.spread_arrived_packets) as f64;
        assert!((0.01..0.7).contains(&lost), "{fault}: {lost}");
        let ecmp = reaction("ecmp");
        assert!(ecmp.hit_flows > 0 && ecmp.spread_flows == 0, "{fault}: {ecmp:?}");
        assert_eq!((ecmp.spread_lost_packets, ecmp.spread_until_us), (0, None), "{fault}");
    }
}

#[test]
fn utilisation_is_at_most_one_whatever_waits_and_however_rates_change() {
    let spec = "
[run]
time_limit = \"400us\"
sample_every = \"10us\"
[fabric]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 4
switch_queue = { mark = \"never\" }
[[fabric.fault]]
link = \"leaf0-spine0\"
until = \"150us\"
rate = \"200Mbps\"
[[fabric.fault]]
link = \"leaf1-host4\"
at = \"155us\"
until = \"251us\"
rate = \"1Gbps\"
[[traffic.long_lived]]
src = 0
dst = 4
[[traffic.long_lived]]
src = 1
dst = 4
[[traffic.long_lived]]
src = 2
dst = 4
";
    let outcome = run(&SpecSource::from_text(spec));
    for table in ["links", "samples"] {
        let table = outcome.table(table).unwrap();
        let column = table.column_by_name("utilisation").unwrap().as_primitive::<Float64Type>().clone();
        let busiest = column.values().iter().copied().fold(0.0, f64::max);
        assert!((0.9..=1.001).contains(&busiest), "{busiest}");
    }
}

/// A packet takes a software switch 4 us, however small it is, so the time that a queue takes says
/// nothing of its bytes: the accounts that are checked when a run ends found more bytes unsent than
/// the link was given.
#[test]
fn a_software_switch_owes_no_more_bytes_than_it_was_given() {
    // The traces of CLOVE are small, and queue up.
    let settings = [
        ("fabric.software_switch.port_rate", "250000pps"),
        ("scheme.name", "clove"),
        ("traffic", "{ size = '20KB', load = 0.5, flows = 10 }"),
        ("fabric.hosts_per_leaf", "4"),
    ];
    run(&small(&settings));
}
