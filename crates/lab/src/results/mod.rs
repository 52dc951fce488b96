//! Results of a run: rows, tables, a summary, and a directory.

pub mod bin;
mod blame;
pub mod collective_rows;
pub mod fault_rows;
pub mod fingerprint;
pub(crate) mod identities;
pub mod invalid;
pub mod lossless;
pub mod output;
pub mod parquet;
pub mod phases;
pub mod port_rows;
pub mod reactions;
pub mod rows;
pub mod some_runs;
pub mod spread;
pub mod stats;
pub mod stored;
pub mod summary;
pub mod table;
pub mod tally;
