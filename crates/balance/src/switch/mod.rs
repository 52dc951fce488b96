//! Schemes that live in switches.

pub mod ecmp;
