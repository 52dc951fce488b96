//! Transports that send credits, one end at a time.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod expresspass;
mod maxpass;
mod world;
