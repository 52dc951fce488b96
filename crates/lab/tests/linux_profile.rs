//! Weft's TCP with `profile = "linux"` beside the kernel's: the same flows, the same fabric, mean completion times by size.
//!
//! `cargo test -p weft-lab --test linux_profile -- --ignored --nocapture` prints what `docs/linux-tcp.md` shows, a line a run. It takes some
//! minutes. `WEFT_KINDS`, `WEFT_CONTROLS`, `WEFT_BUFFERS`, `WEFT_BALANCERS` and `WEFT_LOADS` say which runs, each a list with commas;
//! `WEFT_BASE` changes the spec of all (`traffic.flows=80`), `WEFT_SET` that of simulated hosts alone (`transport.hystart=false;...`).

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use weft_lab::{Cores, Prepared, SpecSource};

/// Sixteen hosts at 1 Gbit/s in four racks.
const SPEC: &str = "
[run]
seed = 1
time_limit = '20s'

[fabric]
kind = 'leaf-spine'
leaves = 4
spines = 4
hosts_per_leaf = 4
host_rate = '1Gbps'
fabric_rate = '1Gbps'
host_delay = '5us'
fabric_delay = '5us'

[traffic]
workload = 'web-search'
load = 0.5
flows = 80
";

/// Upper ends of the bins, in bytes.
const BINS: [f64; 4] = [f64::INFINITY, 1e5, 1e6, f64::INFINITY];

fn numbers(table: &RecordBatch, name: &str) -> Vec<f64> {
    let column = table.column_by_name(name).unwrap();
    let value = |row: usize| match column.data_type() {
        _ if column.is_null(row) => f64::NAN,
        arrow_schema::DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        arrow_schema::DataType::UInt32 => f64::from(column.as_primitive::<UInt32Type>().value(row)),
        _ => column.as_primitive::<UInt64Type>().value(row) as f64,
    };
    (0..column.len()).map(value).collect()
}

/// Mean completion time by bin, milliseconds, the number of flows in it, then sums of some columns.
fn measure(source: &SpecSource) -> ([(f64, usize); 4], Vec<f64>) {
    let prepared = Prepared::new(source).unwrap();
    let outcome = prepared.run(&mut |_| ControlFlow::Continue(()), None, Cores::All).unwrap();
    let table = outcome.table("flows").unwrap();
    let (sizes, fcts) = (numbers(&table, "size_bytes"), numbers(&table, "fct_us"));
    let bin = |index: usize| {
        let least = if index < 2 { 0.0 } else { BINS[index - 1] };
        let of: Vec<f64> = (0..sizes.len())
            .filter(|&flow| sizes[flow] >= least && sizes[flow] < BINS[index])
            .map(|flow| fcts[flow] / 1e3)
            .collect();
        (of.iter().sum::<f64>() / of.len() as f64, of.len())
    };
    let sums = ["retransmissions", "timeouts", "fast_recoveries", "dropped_segments"]
        .map(|name| numbers(&table, name).iter().sum::<f64>());
    ([0, 1, 2, 3].map(bin), sums.to_vec())
}

#[test]
#[ignore = "a measurement, not a test"]
fn measures() {
    let env = |name: &str, or: &str| std::env::var(name).unwrap_or_else(|_| or.to_owned());
    let base = env("WEFT_BASE", "");
    let set = env("WEFT_SET", "transport.profile=linux");
    let list =
        |name: &str, or: &str| -> Vec<String> { env(name, or).split(',').map(str::to_owned).collect() };
    let kinds = list("WEFT_KINDS", "linux,simulated");
    for control in list("WEFT_CONTROLS", "dctcp,cubic") {
        for buffer in list("WEFT_BUFFERS", "375KB,30KB") {
            for balancer in list("WEFT_BALANCERS", "ecmp,letflow") {
                for load in list("WEFT_LOADS", "0.3,0.7") {
                    let changed = |changes: &str, source: SpecSource| {
                        changes.split(';').filter(|change| !change.is_empty()).fold(
                            source,
                            |source, change| {
                                let (key, value) = change.split_once('=').unwrap();
                                source.with(key, value)
                            },
                        )
                    };
                    let source = || {
                        let name = if control == "dctcp" { "dctcp" } else { "tcp" };
                        let source = SpecSource::from_text(SPEC)
                            .with("transport.name", name)
                            .with("fabric.switch_queue.buffer", &buffer)
                            .with("balancer.name", &balancer)
                            .with("traffic.load", &load);
                        changed(&base, source)
                    };
                    for kind in &kinds {
                        let source = match kind.as_str() {
                            "linux" => {
                                source().with("hosts", "linux").with("hosts.congestion_control", &control)
                            }
                            _ => changed(&set, source()),
                        };
                        let (bins, sums) = measure(&source);
                        let mut line = format!("{control} {buffer} {balancer} {load} {kind:9}:");
                        for (mean, flows) in bins {
                            write!(line, " {mean:.3} ({flows})").unwrap();
                        }
                        println!("{line} {sums:?}");
                    }
                }
            }
        }
    }
}
