//! What came of collectives: when each began and was done, and which flows it waited for.

mod check;
mod critical;
mod figures;
mod taken;
mod timeline;

pub(crate) use check::check_collectives;
pub(crate) use critical::critical_paths;
pub use figures::{CollectiveSummary, CriticalSummary};
pub(crate) use figures::{collective_rows, told};
pub(crate) use timeline::{Seen, Timeline};
