//! TCP between two endpoints in a small world of their own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod recovery;
mod slow_start;
mod timeouts;
mod world;
