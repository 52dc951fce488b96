//! The engine for a page in a browser: a run that is looked at as it goes.
//!
//! The page makes an instance of this module for each run, so that a run's memory goes with it. It
//! calls the functions of [`calls`]; texts and numbers lie in the module's memory. A spec is read,
//! a fabric built and a run finished by the same code as on the command line, so equal specs and
//! seeds give equal bytes.
//!
//! Invariant: nothing here decides anything that a result depends on.

#![forbid(unsafe_op_in_unsafe_fn)]

pub mod calls;
mod describe;
mod explain;
mod frame;
mod session;

pub use frame::{FLOW_NUMBERS, LINK_NUMBERS, PACKET_NUMBERS};
pub use session::{Session, catalog};
