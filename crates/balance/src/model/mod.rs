//! The formulas of papers, as pure functions: what schemes compute, and what can be printed without a run.

pub mod lbt;
