//! What papers work out on paper, as pure functions: thresholds that schemes compute, and closed forms to set beside a run.

pub mod lbt;
pub mod tr;
