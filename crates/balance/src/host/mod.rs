//! Schemes that live at hosts: in a host's virtual switch.

pub mod bitmap;
pub mod clove;
pub mod drb;
pub mod echo;
pub mod entropy;
pub mod flowbender;
pub mod hedera;
pub mod hermes;
pub mod meet;
pub mod oblivious;
pub mod plb;
pub mod presto;
mod relabel;
pub mod reps;
mod rounds;
