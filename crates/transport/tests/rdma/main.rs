//! RDMA transports between two endpoints in a small world of their own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod irn;
mod mprdma;
mod roce;
mod swift;
mod uec;
mod world;
