//! Hosts that are a real Linux kernel under a simulated clock.
//!
//! A [`Machine`] is one User Mode Linux kernel: an ordinary process, without privileges. Each of
//! its hosts is a network namespace with a simulated [`Card`]. The world that it is in is its clock
//! and the other end of its cards, through the trait [`Guest`]: the kernel's own TCP meets
//! simulated links at exact instants, and how fast the machine is changes nothing.
//!
//! The kernel is built by `make linux-hosts` from Debian's source (folder `linux-hosts/`), and
//! found by [`find`].
//!
//! Invariant: nothing here knows fabrics, schemes or transports. Everything that a kernel writes is
//! checked before it is used.

#![forbid(unsafe_code)]

mod agent;
mod card;
mod clock;
pub mod codec;
mod error;
mod guest;
mod image;
mod kernel;
mod knobs;
mod link;
mod machine;
pub mod pcapng;
#[cfg(not(unix))]
#[path = "no_process.rs"]
mod process;
#[cfg(unix)]
mod process;
mod program;
mod report;
mod wire;

pub use agent::{Flow, HostAddress, Listener, Protocol};
pub use card::Card;
pub use error::{Error, Fault, LogEnd};
pub use guest::{Guest, Sent};
pub use image::{VARIABLE, find, fingerprint, key};
pub use knobs::{FlowOptions, KNOBS, Knob, KnobTarget};
pub use machine::{Host, MAX_HOSTS, Machine, Setup};
pub use program::Program;
pub use report::{Connection, Received, Report, Status, Stream, TcpInfo};
