//! Weft's TCP with `profile = "linux"` beside the kernel's: the same flows, the same fabric, mean completion times by size.
//!
//! `cargo test -p weft-lab --test linux_profile -- --ignored --nocapture` prints the rows of the tables in `docs/linux-tcp.md`, each when it is
//! known. It takes some minutes a seed. `WEFT_SEEDS`, `WEFT_CONTROLS`, `WEFT_BUFFERS`, `WEFT_BALANCERS` and `WEFT_LOADS` say which runs, each a list
//! with commas; `WEFT_BASE` changes the spec of all (`traffic.flows=80`), `WEFT_SET` that of simulated hosts alone
//! (`transport.hystart=false;...`), `WEFT_AGAINST` that of what they are compared with (`hosts=linux`; or another simulated one).

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

/// The flows of a run, and sums of some columns.
struct Measured {
    sizes: Vec<f64>,
    fcts_ms: Vec<f64>,
    sums: [f64; 4],
}

/// Of which columns.
const SUMS: [&str; 4] = ["retransmissions", "timeouts", "fast_recoveries", "dropped_segments"];

fn measure(source: &SpecSource) -> Measured {
    let prepared = Prepared::new(source).unwrap();
    let outcome = prepared.run(&mut |_| ControlFlow::Continue(()), None, Cores::All).unwrap();
    let table = outcome.table("flows").unwrap();
    Measured {
        sizes: numbers(&table, "size_bytes"),
        fcts_ms: numbers(&table, "fct_us").into_iter().map(|us| us / 1e3).collect(),
        sums: SUMS.map(|name| numbers(&table, name).iter().sum::<f64>()),
    }
}

/// Runs of the same flows in pairs: simulated hosts, and what they are compared with.
#[derive(Default)]
struct Pairs {
    /// Size, and both completion times.
    flows: Vec<(f64, f64, f64)>,
    sums: [[f64; 4]; 2],
}

impl Pairs {
    fn add(&mut self, simulated: &Measured, against: &Measured) {
        assert_eq!(simulated.sizes, against.sizes, "the same flows");
        let fcts = simulated.fcts_ms.iter().zip(&against.fcts_ms);
        self.flows
            .extend(simulated.sizes.iter().zip(fcts).map(|(&size, (&ours, &theirs))| (size, ours, theirs)));
        for (sums, of) in self.sums.iter_mut().zip([simulated, against]) {
            for (sum, value) in sums.iter_mut().zip(of.sums) {
                *sum += value;
            }
        }
    }

    /// Means of a bin, and by how much they differ: in per cent of the second, with the interval of 95 % that the differences of
    /// single flows give, as if they were independent.
    fn cell(&self, least: f64, below: f64) -> String {
        let of: Vec<_> = self.flows.iter().filter(|flow| flow.0 >= least && flow.0 < below).collect();
        let count = of.len() as f64;
        let mean =
            |value: &dyn Fn(&(f64, f64, f64)) -> f64| of.iter().map(|flow| value(flow)).sum::<f64>() / count;
        let (ours, theirs) = (mean(&|flow| flow.1), mean(&|flow| flow.2));
        let squares = mean(&|flow| (flow.1 - flow.2 - ours + theirs).powi(2));
        let half = 1.96 * (squares / (count - 1.0)).sqrt();
        let percent = |ms: f64| 100.0 * ms / theirs;
        format!("{ours:.2} / {theirs:.2} ({:+.0} ± {:.0} %)", percent(ours - theirs), percent(half))
    }

    fn row(&self, setting: &str) -> String {
        let mut row = format!("| {setting} |");
        for (index, &below) in BINS.iter().enumerate() {
            let least = if index < 2 { 0.0 } else { BINS[index - 1] };
            write!(row, " {} |", self.cell(least, below)).unwrap();
        }
        for index in 0..SUMS.len() {
            write!(row, " {} / {} |", self.sums[0][index], self.sums[1][index]).unwrap();
        }
        row
    }
}

fn changed(changes: &str, source: SpecSource) -> SpecSource {
    changes.split(';').filter(|change| !change.is_empty()).fold(source, |source, change| {
        let (key, value) = change.split_once('=').unwrap();
        source.with(key, value)
    })
}

#[test]
#[ignore = "a measurement, not a test"]
fn measures() {
    let env = |name: &str, or: &str| std::env::var(name).unwrap_or_else(|_| or.to_owned());
    let list =
        |name: &str, or: &str| -> Vec<String> { env(name, or).split(',').map(str::to_owned).collect() };
    let base = env("WEFT_BASE", "");
    let set = env("WEFT_SET", "transport.profile=linux;fabric.host_queue.mark=never");
    let against = env("WEFT_AGAINST", "hosts=linux");
    let (buffers, balancers) = (list("WEFT_BUFFERS", "375KB,30KB"), list("WEFT_BALANCERS", "ecmp,letflow"));
    let (loads, seeds) = (list("WEFT_LOADS", "0.3,0.7"), list("WEFT_SEEDS", "1,2,3"));
    println!(
        "| control | queue | balancer | load | all | below 100 KB | to 1 MB | above | {} |",
        SUMS.join(" | ")
    );
    println!("|{}", "---|".repeat(8 + SUMS.len()));
    for control in list("WEFT_CONTROLS", "cubic,dctcp") {
        for (buffer, balancer, load) in buffers
            .iter()
            .flat_map(|buffer| balancers.iter().map(move |balancer| (buffer, balancer)))
            .flat_map(|(buffer, balancer)| loads.iter().map(move |load| (buffer, balancer, load)))
        {
            let mut pairs = Pairs::default();
            for seed in &seeds {
                let source = || {
                    let name = if control == "dctcp" { "dctcp" } else { "tcp" };
                    let source = SpecSource::from_text(SPEC)
                        .with("run.seed", seed)
                        .with("transport.name", name)
                        .with("fabric.switch_queue.buffer", buffer)
                        .with("balancer.name", balancer)
                        .with("traffic.load", load);
                    changed(&base, source)
                };
                pairs.add(&measure(&changed(&set, source())), &measure(&changed(&against, source())));
            }
            println!("{}", pairs.row(&format!("{control} | {buffer} | {balancer} | {load}")));
        }
    }
}
