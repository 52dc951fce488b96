//! Stub of the process module for systems without such processes, as in a browser: no kernel
//! starts.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::kernel::Options;

/// There is none.
#[derive(Debug)]
pub(crate) enum Socket {}

impl Socket {
    /// Fails.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(crate) fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        match *self {}
    }
}

impl Read for Socket {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl Write for Socket {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

/// There is none to end.
pub(crate) fn kill_group(_: u32) {}

/// Fails.
pub(crate) fn spawn(_: &Path, link: Socket, _: &File, _: &Options<'_>) -> io::Result<Child> {
    match link {}
}
