//! Process of a kernel, as the system provides it: a socket to it, its start, and an end with all
//! that it started.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::image::AGENT;
use crate::kernel::Options;

/// One end of the link to a kernel.
pub(crate) type Socket = std::os::unix::net::UnixStream;

/// Ends all processes of a group.
pub(crate) fn kill_group(group: u32) {
    if let Some(group) = Pid::from_raw(group.cast_signed()) {
        // No such group: all of it is gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Starts a kernel.
pub(crate) fn spawn(image: &Path, link: Socket, log: &File, options: &Options<'_>) -> io::Result<Child> {
    let image = image.canonicalize()?;
    // The command line goes into the kernel's random numbers: nothing of this machine may be in it.
    // So the agent's file is named from where it is.
    Command::new(&image)
        .arg0("linux")
        .arg("time-travel=weft")
        .arg(format!("mem={}M", options.memory_mib))
        .arg(format!("initrd={AGENT}"))
        .args(["con0=null,fd:1", "con=null", "ssl=null", "noreboot"])
        .args(options.parameters)
        .current_dir(image.parent().unwrap_or(Path::new("/")))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("WEFT_SEED", options.seed.to_string())
        // The C library's restartable sequences do not outlive the memory that a guest's process
        // gets.
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .stdin(Stdio::from(OwnedFd::from(link)))
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .process_group(0)
        .spawn()
}
