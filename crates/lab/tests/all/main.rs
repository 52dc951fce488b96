//! From a spec to results on disk: whole runs by every front door of the crate.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod collectives;
mod common;
mod linux_hosts;
mod linux_profile;
mod linux_programs;
mod lossless;
mod packets;
mod random_specs;
mod runs;
mod schedules;
mod specs;
mod variants;
