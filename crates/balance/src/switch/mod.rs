//! Schemes that live in switches.

pub mod ar;
pub mod clove;
pub mod conga;
mod connections;
pub mod conweave;
pub mod drill;
pub mod ecmp;
pub mod flowcut;
pub mod flowlets;
pub mod hula;
pub mod lbt;
pub mod letflow;
pub mod ofan;
mod past;
pub mod qall;
pub mod qall_poly;
pub mod rps;
pub mod tr;
pub mod wcmp;
