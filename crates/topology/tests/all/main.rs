//! Fabrics from specs: what they are made of, and what is refused.
#![allow(missing_docs, clippy::unwrap_used)]

mod any_graph;
mod fat_tree;
mod faults;
mod graph;
mod ideal;
mod leaf_spine;
mod partitioning;
mod pooled;
mod rail;
mod spec;
