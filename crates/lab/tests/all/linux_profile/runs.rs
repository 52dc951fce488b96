//! Measures of a run, and the store of runs of Linux hosts.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use weft_lab::{Cores, Prepared, SpecSource};

/// Sums over the flows of a run.
pub const COUNTED: [&str; 5] =
    ["segments_sent", "retransmissions", "timeouts", "out_of_order_packets", "dropped_segments"];

/// The flows of a run, and sums of some columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub sizes: Vec<f64>,
    pub fcts_ms: Vec<f64>,
    pub sums: [f64; COUNTED.len()],
}

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

/// Runs a spec.
pub fn measure(source: &SpecSource) -> Measured {
    let prepared = Prepared::new(source).unwrap();
    let outcome = prepared.run(&mut |_| ControlFlow::Continue(()), None, Cores::All).unwrap();
    let table = outcome.table("flows").unwrap();
    let measured = Measured {
        sizes: numbers(&table, "size_bytes"),
        fcts_ms: numbers(&table, "fct_us").into_iter().map(|us| us / 1e3).collect(),
        sums: COUNTED.map(|name| numbers(&table, name).iter().sum::<f64>()),
    };
    assert!(measured.fcts_ms.iter().all(|fct| fct.is_finite()), "a flow that did not finish");
    measured
}

/// The mean of runs of the same flows, and the mean logarithm of each flow's time.
pub fn together(runs: &[Measured]) -> (Measured, Vec<f64>) {
    let share = 1.0 / runs.len() as f64;
    let mean = |value: &dyn Fn(&Measured) -> f64| share * runs.iter().map(value).sum::<f64>();
    assert!(runs.iter().all(|run| run.sizes == runs[0].sizes), "the same flows");
    let flows = 0..runs[0].sizes.len();
    let measured = Measured {
        sizes: runs[0].sizes.clone(),
        fcts_ms: flows.clone().map(|flow| mean(&|run| run.fcts_ms[flow])).collect(),
        sums: std::array::from_fn(|column| mean(&|run| run.sums[column])),
    };
    (measured, flows.map(|flow| mean(&|run| run.fcts_ms[flow].ln())).collect())
}

/// A folder in which runs are found again by what they are runs of.
pub struct Kept(pub Option<PathBuf>);

impl Kept {
    /// The run that `name` and `of` describe: what was kept of it, or else `run`, which is kept
    /// then.
    pub fn measured(&self, name: &str, of: impl Hash, run: impl FnOnce() -> Measured) -> Measured {
        let Some(folder) = &self.0 else { return run() };
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        let file = folder.join(format!("{name}-{:016x}.txt", hasher.finish()));
        if let Ok(text) = std::fs::read_to_string(&file) {
            return read(&text).unwrap_or_else(|| panic!("{} is no run", file.display()));
        }
        let measured = run();
        // As a whole or not at all: it may be stopped at any time.
        let unfinished = file.with_extension("part");
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&unfinished, written(&measured)).unwrap();
        std::fs::rename(unfinished, file).unwrap();
        measured
    }
}

/// The sums in the first line, then a line a flow: its size and its time.
fn written(measured: &Measured) -> String {
    let sums: Vec<String> = measured.sums.iter().map(f64::to_string).collect();
    let mut text = sums.join(" ");
    for (size, fct) in measured.sizes.iter().zip(&measured.fcts_ms) {
        write!(text, "\n{size} {fct}").unwrap();
    }
    text
}

fn read(text: &str) -> Option<Measured> {
    let mut lines =
        text.lines().map(|line| line.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>());
    let sums = lines.next()??.try_into().ok()?;
    let flows = lines.collect::<Option<Vec<_>>>()?;
    let column = |place: usize| flows.iter().map(|flow| flow.get(place).copied()).collect::<Option<Vec<_>>>();
    Some(Measured { sizes: column(0)?, fcts_ms: column(1)?, sums })
}

#[test]
fn a_run_that_is_kept_is_the_same_when_it_is_read() {
    let measured = Measured {
        sizes: vec![1.0, 2e9],
        fcts_ms: vec![0.1 + 0.2, 1.0 / 3.0],
        sums: [0.0, 1.5, 2.0, 3.0, 4.0],
    };
    assert_eq!(read(&written(&measured)), Some(measured));
    assert_eq!(read("1 2 3"), None);
}
