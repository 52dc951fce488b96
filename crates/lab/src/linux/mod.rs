//! Linux hosts in a run: what a spec says of them, and the world between their kernel and the
//! fabric.

mod connections;
mod flows;
mod identity;
mod kernels;
mod multipath;
mod numbering;
mod programs;
mod sessions;
mod simulated;
mod spec;
mod world;

pub(crate) use flows::{KernelFlow, KernelWindow, kernel_warnings};
pub(crate) use identity::{missing_on_this_machine, of_machine};
pub(crate) use programs::{KnownProgram, check_programs};
pub(crate) use sessions::{FIRST_PORT, PORT, PORTS, address_of};
pub(crate) use spec::uncoupled;
pub use spec::{CongestionControl, HostsSpec, LinuxSpec};
pub(crate) use world::{HEADERS, KernelResults, LinuxHosts};
