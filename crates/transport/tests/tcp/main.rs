//! TCP between two endpoints in a small world of their own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod acks;
mod bursts;
mod compression;
mod ecn;
mod fin;
mod handshake;
mod linux;
mod offload;
mod rack;
mod random;
mod receive_window;
mod recovery;
mod sack;
mod slow_start;
mod specs;
mod spurious;
mod stalls;
mod timeouts;
mod timer;
mod world;
